//! A stream of operations on a table, beside a list of rows that does the same in the most obvious
//! way.

use crate::Input;
use larder::api::{Larder, Table};
use larder::{structures, TableKind};
use larder_term::{term, Term};

/// The obvious table: rows in order of arrival.
struct Oracle {
    kind: TableKind,
    rows: Vec<(Term, Term)>,
}

impl Oracle {
    fn same(&self, a: &Term, b: &Term) -> bool {
        match self.kind {
            TableKind::OrderedSet => a.as_ref().eq_term(b.as_ref()),
            _ => a == b,
        }
    }

    fn under(&self, key: &Term) -> Vec<Term> {
        let rows = self.rows.iter();
        rows.filter(|(k, _)| self.same(k, key)).map(row).collect()
    }

    fn insert(&mut self, key: Term, value: Term) {
        match self.kind {
            TableKind::Set | TableKind::OrderedSet => {
                self.delete(&key);
            }
            TableKind::Bag if self.rows.iter().any(|(k, v)| *k == key && *v == value) => return,
            _ => {}
        }
        self.rows.push((key, value));
    }

    fn is_bag(&self) -> bool {
        matches!(self.kind, TableKind::Bag | TableKind::DuplicateBag)
    }

    /// The value of the only row under a key.
    fn value(&self, key: &Term) -> Option<Term> {
        let row = self.rows.iter().find(|(k, _)| self.same(k, key));
        row.map(|(_, value)| value.clone())
    }

    /// Changes the value of the only row under a key; whether there is one.
    fn change(&mut self, key: &Term, f: impl FnOnce(&Term) -> Term) -> bool {
        let at = (0..self.rows.len()).find(|&at| self.same(&self.rows[at].0, key));
        let Some(at) = at else { return false };
        self.rows[at].1 = f(&self.rows[at].1);
        true
    }

    fn delete(&mut self, key: &Term) -> usize {
        let before = self.rows.len();
        let kind = self.kind;
        let ordered = kind == TableKind::OrderedSet;
        self.rows.retain(|(k, _)| match ordered {
            true => !k.as_ref().eq_term(key.as_ref()),
            false => k != key,
        });
        before - self.rows.len()
    }
}

fn row((key, value): &(Term, Term)) -> Term {
    Term::tuple([key.clone(), value.clone()])
}

fn key(input: &mut Input<'_>) -> Term {
    match input.below(8) {
        0..=4 => Term::int(i64::from(input.byte() % 40)),
        5 => term!({a, (i64::from(input.byte() % 4))}),
        6 => Term::float(f64::from(input.byte() % 8)).unwrap_or_else(|_| Term::nil()),
        _ => input.term(1),
    }
}

fn value(input: &mut Input<'_>) -> Term {
    match input.below(4) {
        0..=2 => Term::int(i64::from(input.byte() % 4)),
        _ => input.term(2),
    }
}

/// A table of a type and structure, and operations on it.
pub fn operations(data: &[u8]) {
    let mut input = Input::new(data);
    let larder = Larder::new();
    let all: Vec<_> = structures().collect();
    let structure = &all[input.below(all.len())];
    let kinds: [(&str, TableKind); 4] = [
        ("set", TableKind::Set),
        ("ordered_set", TableKind::OrderedSet),
        ("bag", TableKind::Bag),
        ("duplicate_bag", TableKind::DuplicateBag),
    ];
    let (name, kind) = input.pick(&kinds);
    let builder = match kind {
        TableKind::Set => larder.table("t").set(),
        TableKind::OrderedSet => larder.table("t").ordered_set(),
        TableKind::Bag => larder.table("t").bag(),
        TableKind::DuplicateBag => larder.table("t").duplicate_bag(),
    };
    let builder = match structure.types.contains(&name) {
        true => builder.structure(structure.name),
        false => builder,
    };
    let builder = match input.below(4) {
        0 => builder.compressed(),
        _ => builder,
    };
    let table = builder
        .create()
        .unwrap_or_else(|error| panic!("{} {name}: {error}", structure.name));
    let mut oracle = Oracle {
        kind,
        rows: Vec::new(),
    };
    while !input.is_over() {
        one(&mut input, &table, &mut oracle);
        assert_eq!(table.len(), oracle.rows.len(), "{} {name}", structure.name);
    }
    compare(&table, &oracle);
    table.drop_table().expect("one's own table");
}

fn one(input: &mut Input<'_>, table: &Table, oracle: &mut Oracle) {
    match input.below(18) {
        0..=2 => {
            let pair = (key(input), value(input));
            table.insert(&row(&pair)).expect("insert");
            oracle.insert(pair.0, pair.1);
        }
        3 => {
            let pair = (key(input), value(input));
            let new = oracle.under(&pair.0).is_empty();
            assert_eq!(table.insert_new(&row(&pair)).expect("insert_new"), new);
            if new {
                oracle.insert(pair.0, pair.1);
            }
        }
        4 => {
            let pairs: Vec<_> = (0..input.below(80))
                .map(|_| (key(input), value(input)))
                .collect();
            let rows: Vec<Term> = pairs.iter().map(row).collect();
            table.insert_all(&rows).expect("insert_all");
            pairs.into_iter().for_each(|(k, v)| oracle.insert(k, v));
        }
        5 | 6 => {
            let key = key(input);
            assert_eq!(table.lookup(&key).expect("lookup"), oracle.under(&key));
        }
        7 => {
            let key = key(input);
            let held = oracle.delete(&key);
            assert_eq!(table.delete(&key).expect("delete"), held);
        }
        8 => {
            let key = key(input);
            let under = oracle.under(&key);
            oracle.delete(&key);
            assert_eq!(table.take(&key).expect("take"), under);
        }
        9 => {
            let pair = (key(input), value(input));
            let before = oracle.rows.len();
            oracle.rows.retain(|held| *held != pair);
            let gone = before - oracle.rows.len();
            assert_eq!(
                table.delete_object(&row(&pair)).expect("delete_object"),
                gone
            );
        }
        which @ (10 | 11 | 15) => by_pattern(which, table, oracle),
        12 if input.below(4) == 0 => {
            table.clear().expect("clear");
            oracle.rows.clear();
        }
        13 => {
            let (key, value) = (key(input), value(input));
            match table.update(&key, 2, &value) {
                Ok(was) => assert_eq!(was, oracle.change(&key, |_| value)),
                Err(error) => assert!(oracle.is_bag(), "{error}"),
            }
        }
        14 => add(table, oracle, &key(input), i64::from(input.byte()) - 100),
        16 => walk_back(table, oracle),
        _ => walk(table, oracle),
    }
}

/// Counts, deletes or replaces rows by a match specification.
fn by_pattern(which: usize, table: &Table, oracle: &mut Oracle) {
    match which {
        10 => {
            let found = table
                .select_count("[{{'_','$1'},[{'<','$1',2}],[true]}]")
                .expect("count");
            let two = term!(2);
            let rows = oracle.rows.iter();
            let count = rows
                .filter(|(_, v)| v.as_ref().cmp_term(two.as_ref()).is_lt())
                .count();
            assert_eq!(found, count as u64);
        }
        11 => {
            let one = term!(1);
            let before = oracle.rows.len();
            oracle.rows.retain(|(_, v)| *v != one);
            let gone = before - oracle.rows.len();
            assert_eq!(
                table
                    .select_delete("[{{'_',1},[],[true]}]")
                    .expect("delete"),
                gone as u64
            );
        }
        _ => {
            let three = |oracle: &mut Oracle| {
                let ones = oracle.rows.iter_mut().filter(|(_, v)| *v == term!(1));
                ones.map(|(_, v)| *v = term!(3)).count()
            };
            match table.select_replace("[{{'$1',1},[],[{{'$1',3}}]}]") {
                Ok(count) => assert_eq!(count, three(oracle) as u64),
                Err(error) => assert!(oracle.is_bag(), "{error}"),
            }
        }
    }
}

/// The keys from one on, by such steps.
fn steps(from: Option<Term>, oracle: &Oracle, step: impl Fn(&Term) -> Option<Term>) -> Vec<Term> {
    let mut keys: Vec<Term> = Vec::new();
    let mut at = from;
    while let Some(key) = at {
        at = step(&key);
        keys.push(key);
        assert!(keys.len() <= oracle.rows.len(), "a walk that does not end");
    }
    keys
}

/// From key to key: every key once, in order where there is one.
fn walk(table: &Table, oracle: &Oracle) {
    let first = table.first().expect("first");
    let mut keys = steps(first, oracle, |key| table.next(key).expect("next"));
    if oracle.kind == TableKind::OrderedSet {
        assert!(keys
            .windows(2)
            .all(|two| two[0].as_ref().cmp_term(two[1].as_ref()).is_lt()));
    }
    let mut expected: Vec<Term> = oracle.rows.iter().map(|(key, _)| key.clone()).collect();
    expected.sort();
    expected.dedup();
    keys.sort();
    assert_eq!(keys, expected);
}

/// From key to key backwards, where there is an order.
fn walk_back(table: &Table, oracle: &Oracle) {
    if oracle.kind != TableKind::OrderedSet {
        return;
    }
    let last = table.last().expect("last");
    let keys = steps(last, oracle, |key| table.prev(key).expect("prev"));
    let mut expected: Vec<Term> = oracle.rows.iter().map(|(key, _)| key.clone()).collect();
    expected.sort_by(|a, b| b.as_ref().cmp_term(a.as_ref()));
    assert_eq!(keys, expected);
}

/// Adds to what may be no number, or not be there.
fn add(table: &Table, oracle: &mut Oracle, key: &Term, by: i64) {
    let before = oracle.value(key);
    let sum = table.add(key, 2, by);
    let small = before.as_ref().and_then(|value| value.as_ref().as_int());
    if let Some(expected) = small.and_then(|n| n.checked_add(by)) {
        assert_eq!(
            sum.as_ref().ok(),
            (!oracle.is_bag()).then_some(&Term::int(expected))
        );
    }
    match sum {
        Ok(sum) => assert!(oracle.change(key, |_| sum)),
        Err(_) => assert!(oracle.is_bag() || small.is_none()),
    }
}

fn compare(table: &Table, oracle: &Oracle) {
    let mut found = table.to_vec().expect("all rows");
    let mut expected: Vec<Term> = oracle.rows.iter().map(row).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    walk(table, oracle);
}
