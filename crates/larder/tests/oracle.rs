//! Random sequences of operations on a table and on an obviously right oracle, over every type,
//! plain and compressed, fixed or not.

use larder::api::{Larder, Table};
use larder::host::{Error, FixTime};
use larder_term::{term, Term};
use proptest::prelude::*;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Set,
    Ordered,
    Bag,
    Duplicate,
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Term),
    InsertNew(Term),
    InsertAll(Vec<Term>),
    InsertAllNew(Vec<Term>),
    Lookup(Term),
    Delete(Term),
    DeleteObject(Term),
    Take(Term),
    Add(Term, usize, i64),
    AddOr(Term, usize, i64, Term),
    Update(Term, usize, Term),
    Next(Term),
    Prev(Term),
    Walk,
    Clear,
    SelectValue(i64),
    SelectRange(i64, i64),
    SelectDelete(i64),
    SelectReplace(i64),
    Size,
}

/// The oracle: rows in order of arrival; nothing clever.
struct Oracle {
    kind: Kind,
    rows: Vec<Term>,
}

fn element(row: &Term, i: usize) -> Option<Term> {
    row.as_ref().as_tuple()?.get(i).map(Term::from)
}

fn key_of(row: &Term) -> Term {
    element(row, 0).unwrap()
}

fn number(row: &Term, i: usize) -> Option<i64> {
    element(row, i)?.as_ref().as_int()
}

fn with(row: &Term, i: usize, new: Term) -> Term {
    let mut elements: Vec<Term> = row
        .as_ref()
        .as_tuple()
        .unwrap()
        .iter()
        .map(Term::from)
        .collect();
    elements[i] = new;
    Term::tuple(elements)
}

impl Oracle {
    fn is(&self, row: &Term, key: &Term) -> bool {
        match self.kind {
            Kind::Ordered => key_of(row).as_ref().eq_term(key.as_ref()),
            _ => key_of(row) == *key,
        }
    }

    fn under(&self, key: &Term) -> Vec<Term> {
        self.rows
            .iter()
            .filter(|row| self.is(row, key))
            .cloned()
            .collect()
    }

    fn insert(&mut self, row: &Term) {
        let key = key_of(row);
        match self.kind {
            Kind::Set | Kind::Ordered => {
                self.delete(&key);
            }
            Kind::Bag if self.rows.contains(row) => return,
            _ => {}
        }
        self.rows.push(row.clone());
    }

    fn remove(&mut self, goes: impl Fn(&Self, &Term) -> bool) -> usize {
        let rows = std::mem::take(&mut self.rows);
        let before = rows.len();
        let kept = rows.into_iter().filter(|row| !goes(self, row)).collect();
        self.rows = kept;
        before - self.rows.len()
    }

    fn delete(&mut self, key: &Term) -> usize {
        self.remove(|oracle, row| oracle.is(row, key))
    }

    fn unique(&self) -> bool {
        matches!(self.kind, Kind::Set | Kind::Ordered)
    }

    /// What `update_counter` does with one op.
    fn add(
        &mut self,
        key: &Term,
        pos: usize,
        incr: i64,
        default: Option<&Term>,
    ) -> Result<Term, Error> {
        if !self.unique() {
            return Err(Error::TableType);
        }
        let row = match (self.under(key).pop(), default) {
            (Some(row), _) => row,
            (None, Some(default)) => with(default, 0, key.clone()),
            (None, None) => return Err(Error::BadKey),
        };
        let sum = self.counter(&row, pos)? + incr;
        self.insert(&with(&row, pos - 1, Term::from(sum)));
        Ok(Term::from(sum))
    }

    fn counter(&self, row: &Term, pos: usize) -> Result<i64, Error> {
        match pos {
            1 => Err(Error::Keypos),
            0 => Err(Error::Position),
            _ => match element(row, pos - 1) {
                None => Err(Error::Position),
                Some(term) => term.as_ref().as_int().ok_or(Error::NotInteger),
            },
        }
    }

    fn update(&mut self, key: &Term, pos: usize, new: &Term) -> Result<bool, Error> {
        if !self.unique() {
            return Err(Error::TableType);
        }
        let Some(row) = self.under(key).pop() else {
            return Ok(false);
        };
        match pos {
            1 => return Err(Error::Keypos),
            0 => return Err(Error::Position),
            _ if element(&row, pos - 1).is_none() => return Err(Error::Position),
            _ => {}
        }
        self.insert(&with(&row, pos - 1, new.clone()));
        Ok(true)
    }

    /// The key beside one, in order.
    fn beside(&self, key: &Term, wanted: Ordering) -> Option<Term> {
        let keys = self.rows.iter().map(key_of);
        let beyond = keys.filter(|k| k.as_ref().cmp_term(key.as_ref()) == wanted);
        match wanted {
            Ordering::Greater => beyond.min(),
            _ => beyond.max(),
        }
    }

    fn sorted(&self) -> Vec<Term> {
        sorted(self.rows.clone())
    }
}

fn sorted(mut rows: Vec<Term>) -> Vec<Term> {
    rows.sort();
    rows
}

fn keys() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => (0..6i64).prop_map(Term::from),
        2 => (0..6i64).prop_map(|n| Term::float(n as f64).unwrap()),
        1 => (0..3i64).prop_map(|n| term!({(n), x})),
        1 => (0..3u8).prop_map(|n| Term::binary(&[n; 180])),
        1 => Just(term!(apple)),
    ]
}

fn values() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => (0..4i64).prop_map(Term::from),
        1 => (0..2u8).prop_map(|n| Term::binary(&[n; 150])),
        1 => Just(term!([a, b | c])),
        1 => (0..2i64).prop_map(|n| Term::list(vec![Term::from(n); 60])),
    ]
}

fn rows() -> impl Strategy<Value = Term> {
    prop_oneof![
        6 => (keys(), values()).prop_map(|(k, v)| Term::tuple([k, v])),
        1 => keys().prop_map(|k| Term::tuple([k])),
        1 => (keys(), values(), values()).prop_map(|(k, v, w)| Term::tuple([k, v, w])),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let list = || prop::collection::vec(rows(), 0..8);
    prop_oneof![
        8 => rows().prop_map(Op::Insert),
        3 => rows().prop_map(Op::InsertNew),
        2 => list().prop_map(Op::InsertAll),
        2 => list().prop_map(Op::InsertAllNew),
        4 => keys().prop_map(Op::Lookup),
        4 => keys().prop_map(Op::Delete),
        4 => rows().prop_map(Op::DeleteObject),
        2 => keys().prop_map(Op::Take),
        3 => (keys(), 0..4usize, -3..3i64).prop_map(|(k, p, n)| Op::Add(k, p, n)),
        2 => (keys(), 0..4usize, -3..3i64, rows()).prop_map(|(k, p, n, r)| Op::AddOr(k, p, n, r)),
        3 => (keys(), 0..4usize, values()).prop_map(|(k, p, v)| Op::Update(k, p, v)),
        2 => keys().prop_map(Op::Next),
        2 => keys().prop_map(Op::Prev),
        1 => Just(Op::Walk),
        1 => Just(Op::Clear),
        1 => (0..4i64).prop_map(Op::SelectValue),
        2 => (0..6i64, 0..6i64).prop_map(|(a, b)| Op::SelectRange(a, b)),
        1 => (0..4i64).prop_map(Op::SelectDelete),
        1 => (0..4i64).prop_map(Op::SelectReplace),
        1 => Just(Op::Size),
    ]
}

/// Does one operation on both and compares.
fn step(t: &Table, m: &mut Oracle, op: &Op) {
    match op {
        Op::Insert(row) => {
            t.insert(row).unwrap();
            m.insert(row);
        }
        Op::InsertNew(row) => {
            let new = m.under(&key_of(row)).is_empty();
            assert_eq!(t.insert_new(row).unwrap(), new);
            if new {
                m.insert(row);
            }
        }
        Op::InsertAll(rows) => {
            t.insert_all(rows).unwrap();
            rows.iter().for_each(|row| m.insert(row));
        }
        Op::InsertAllNew(rows) => {
            let new = rows.iter().all(|row| m.under(&key_of(row)).is_empty());
            assert_eq!(t.insert_all_new(rows).unwrap(), new);
            if new {
                rows.iter().for_each(|row| m.insert(row));
            }
        }
        Op::Lookup(key) => {
            assert_eq!(t.lookup(key).unwrap(), m.under(key));
            assert_eq!(t.contains(key).unwrap(), !m.under(key).is_empty());
        }
        Op::Delete(key) => assert_eq!(t.delete(key).unwrap(), m.delete(key)),
        Op::DeleteObject(row) => {
            assert_eq!(t.delete_object(row).unwrap(), m.remove(|_, r| r == row));
        }
        Op::Take(key) => {
            assert_eq!(t.take(key).unwrap(), m.under(key));
            m.delete(key);
        }
        Op::Add(key, pos, n) => assert_eq!(t.add(key, *pos, *n), m.add(key, *pos, *n, None)),
        Op::AddOr(key, pos, n, default) => {
            let expected = m.add(key, *pos, *n, Some(default));
            assert_eq!(t.add_or(key, *pos, *n, default), expected);
        }
        Op::Update(key, pos, new) => {
            assert_eq!(t.update(key, *pos, new), m.update(key, *pos, new));
        }
        Op::Next(key) if m.kind == Kind::Ordered => {
            assert_eq!(t.next(key).unwrap(), m.beside(key, Ordering::Greater));
        }
        Op::Prev(key) if m.kind == Kind::Ordered => {
            assert_eq!(t.prev(key).unwrap(), m.beside(key, Ordering::Less));
        }
        Op::Next(key) | Op::Prev(key) => {
            if !m.under(key).is_empty() {
                t.next(key).unwrap();
            } else if !t.engine_table().info().unwrap().fixed {
                assert_eq!(t.next(key), Err(Error::BadKey));
            }
        }
        Op::Walk => walk(t, m),
        Op::Clear => {
            assert_eq!(t.clear().unwrap(), m.rows.len());
            m.rows.clear();
        }
        Op::Size => assert_eq!(t.len(), m.rows.len()),
        _ => select(t, m, op),
    }
}

/// Does one operation by match specifications on both and compares.
fn select(t: &Table, m: &mut Oracle, op: &Op) {
    match op {
        Op::SelectValue(n) => {
            let found = t.select(format!("[{{{{'$1',{n}}},[],['$_']}}]")).unwrap();
            let fits = |row: &&Term| number(row, 1) == Some(*n) && element(row, 2).is_none();
            let expected = m.rows.iter().filter(fits).cloned().collect();
            assert_eq!(sorted(found), sorted(expected));
        }
        Op::SelectRange(a, b) => {
            let spec = format!("[{{{{'$1','_'}},[{{'>=','$1',{a}}},{{'<','$1',{b}}}],['$_']}}]");
            let (low, high) = (Term::from(*a), Term::from(*b));
            let fits = |row: &&Term| {
                let key = key_of(row);
                element(row, 1).is_some()
                    && element(row, 2).is_none()
                    && key.as_ref().cmp_term(low.as_ref()) != Ordering::Less
                    && key.as_ref().cmp_term(high.as_ref()) == Ordering::Less
            };
            let expected: Vec<Term> = m.rows.iter().filter(fits).cloned().collect();
            let (found, mut back) = (t.select(&spec).unwrap(), t.select_reverse(&spec).unwrap());
            if m.kind == Kind::Ordered {
                back.reverse();
            }
            assert_eq!(found, back);
            assert_eq!(sorted(found), sorted(expected));
        }
        Op::SelectDelete(n) => {
            let spec = format!("[{{{{'_',{n}}},[],[true]}}]");
            let gone = m.remove(|_, row| number(row, 1) == Some(*n) && element(row, 2).is_none());
            assert_eq!(t.select_count(&spec).unwrap(), gone as u64);
            assert_eq!(t.select_delete(&spec).unwrap(), gone as u64);
        }
        Op::SelectReplace(n) => {
            let spec = format!("[{{{{'$1',{n}}},[],[{{{{'$1',{{'+',{n},1}}}}}}]}}]");
            if m.kind == Kind::Bag {
                assert_eq!(t.select_replace(&spec), Err(Error::TableType));
                return;
            }
            let mut count = 0;
            for row in &mut m.rows {
                if number(row, 1) == Some(*n) && element(row, 2).is_none() {
                    *row = with(row, 1, Term::from(n + 1));
                    count += 1;
                }
            }
            assert_eq!(t.select_replace(&spec).unwrap(), count);
        }
        _ => unreachable!("{op:?} is no select"),
    }
}

/// Goes through all keys, and reads everything.
fn walk(t: &Table, m: &Oracle) {
    let mut seen = Vec::new();
    let mut at = t.first().unwrap();
    while let Some(key) = at {
        at = t.next(&key).unwrap();
        seen.push(key);
    }
    let mut expected: Vec<Term> = m.rows.iter().map(key_of).collect();
    expected.sort();
    expected.dedup();
    if m.kind == Kind::Ordered {
        assert_eq!(t.first().unwrap(), expected.first().cloned());
        assert_eq!(t.last().unwrap(), expected.last().cloned());
        let mut rows = m.rows.clone();
        rows.sort_by_key(key_of);
        assert_eq!(t.to_vec().unwrap(), rows);
    } else {
        seen.sort();
    }
    assert_eq!(seen, expected);
    assert_eq!(sorted(t.to_vec().unwrap()), m.sorted());
}

fn run(kind: Kind, compressed: bool, fixed: bool, ops: &[Op]) {
    let larder = Larder::new();
    let builder = match kind {
        Kind::Set => larder.table("set").set(),
        Kind::Ordered => larder.table("ordered").ordered_set(),
        Kind::Bag => larder.table("bag").bag(),
        Kind::Duplicate => larder.table("duplicate").duplicate_bag(),
    };
    let builder = if compressed {
        builder.compressed()
    } else {
        builder
    };
    let t = builder.create().unwrap();
    if fixed {
        let now = FixTime::default();
        t.engine_table().safe_fix(larder.owner(), now).unwrap();
    }
    let mut m = Oracle {
        kind,
        rows: Vec::new(),
    };
    for op in ops {
        step(&t, &mut m, op);
    }
    walk(&t, &m);
    assert_eq!(t.len(), m.rows.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_do_what_the_oracle_does(
        ops in prop::collection::vec(ops(), 1..60),
        kind in prop::sample::select(vec![Kind::Set, Kind::Ordered, Kind::Bag, Kind::Duplicate]),
        compressed: bool,
        fixed: bool,
    ) {
        run(kind, compressed, fixed, &ops);
    }
}

/// Found by the property.
#[test]
fn rows_of_two_sizes() {
    let ops = [Op::Insert(term!({0, 0})), Op::Insert(term!({ 1 }))];
    run(Kind::Ordered, false, false, &ops);
}
