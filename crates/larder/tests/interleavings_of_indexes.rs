//! Interleavings of tables with secondary indexes that a model checker chooses. Faults that are
//! planted must be found: an entry that is left behind, a change of a value that is not counted, a
//! row of a view that differs from the entries and is missed, a refusal for a claim that is given
//! back.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`; see
//! `larder_testing::model_checker`.
#![cfg(larder_model)]

mod indexed;
mod kinds;

use kinds::KINDS;
use larder::api::{Index, Table};
use larder::{Error, PlanKind};
use larder_index::sync::Fault;
use larder_index::Quarantine;
use larder_term::{term, Term};
use larder_testing::model_checker::{alone, check, finds, Search};
use std::sync::Arc;

#[global_allocator]
static HEAP: Quarantine = Quarantine;

const SEARCH: [Search; 2] = [Search::Random(600), Search::Pct(400)];
const FAULT: [Search; 1] = [Search::Random(20_000)];

fn table(kind: &str, indexes: &[Index]) -> Arc<Table> {
    Arc::new(indexed::table(kind, indexes))
}

fn beside<T: Send + 'static>(
    table: &Arc<Table>,
    f: impl FnOnce(&Table) -> T + Send + 'static,
) -> shuttle::thread::JoinHandle<T> {
    let shared = Arc::clone(table);
    shuttle::thread::spawn(move || f(&shared))
}

/// A long key, of which few are in a leaf.
fn key(i: u32) -> Term {
    Term::from(format!("{i:02}{}", "-".repeat(300)).as_str())
}

/// The same with rows that are not in any index, between those of the first and the last key: they
/// are in different leaves.
fn filled(kind: &str, indexes: &[Index]) -> Arc<Table> {
    let t = table(kind, indexes);
    for i in 1..LAST {
        t.insert(&Term::tuple([key(i)])).expect("a table");
    }
    t
}

const LAST: u32 = 24;

fn row<const N: usize>(i: u32, values: [i64; N]) -> Term {
    let mut all = vec![key(i)];
    all.extend(values.map(Term::from));
    Term::tuple(all)
}

fn found(table: &Table, name: &str, value: i64) -> usize {
    table
        .index_lookup(name, &Term::from(value))
        .expect("an index")
        .len()
}

/// Nobody writes now: there is an entry for each value of each row, and no other.
fn is_whole(table: &Table, kind: &str) {
    let all = table.to_vec().expect("a table");
    let is_indexed = |row: &Term| {
        row.as_ref()
            .as_tuple()
            .is_some_and(|row| row.get(1).is_some())
    };
    let rows: Vec<Term> = all.into_iter().filter(is_indexed).collect();
    for index in table.indexes() {
        assert_eq!(index.entries, rows.len(), "{kind}: {rows:?}");
    }
    for row in rows {
        let value = row.as_ref().as_tuple().and_then(|row| row.get(1)?.as_int());
        let value = value.expect("a number");
        assert!(found(table, "v", value) > 0, "{kind}: {row:?}");
    }
}

/// A row is written in three steps. Whoever has seen one by the index or by the key sees no earlier
/// one by the other.
fn one_instant(kind: &'static str) {
    let t = table(kind, &[Index::element("v", 2)]);
    t.insert(&term!({a, 1})).expect("a table");
    let is_bag = kind.ends_with("bag");
    let writer = beside(&t, move |t| {
        if is_bag {
            t.insert(&term!({a, 2})).expect("a table");
            t.delete_object(&term!({a, 1})).expect("a table");
        } else {
            t.insert(&term!({a, 2})).expect("a table");
        }
        t.delete(&term!(a)).expect("a table");
    });
    let by_key = |t: &Table| t.lookup(&term!(a)).expect("a table");
    let has = |rows: &[Term], row: Term| rows.contains(&row);
    if found(&t, "v", 2) == 1 {
        // It was there, so what comes later has it or nothing.
        let rows = by_key(&t);
        assert!(is_bag || !has(&rows, term!({a, 1})), "{kind}: {rows:?}");
        assert!(is_bag || found(&t, "v", 1) == 0, "{kind}");
    }
    if found(&t, "v", 1) == 0 {
        let rows = by_key(&t);
        assert!(!has(&rows, term!({a, 1})), "{kind}: {rows:?}");
        let rows = t.select("[{'_',[],['$_']}]").expect("a table");
        assert!(!has(&rows, term!({a, 1})), "{kind}: {rows:?}");
    }
    if by_key(&t).is_empty() {
        assert_eq!(found(&t, "v", 1) + found(&t, "v", 2), 0, "{kind}");
    }
    writer.join().expect("no panic");
    assert_eq!(t.indexes()[0].entries, 0, "{kind}");
}

/// A row has one of two values throughout: a select of both by the index has it once.
fn one_of_two(kind: &'static str) {
    let t = table(kind, &[Index::element("v", 2)]);
    for key in 0..6 {
        t.insert(&Term::tuple([Term::from(key), 3.into()]))
            .expect("a table");
    }
    t.insert(&term!({a, 2})).expect("a table");
    let writer = beside(&t, |t| {
        for v in [1i64, 2, 1] {
            t.insert(&Term::tuple([term!(a), v.into()]))
                .expect("a table");
        }
    });
    let spec = "[{{'_',1},[],['$_']},{{'_',2},[],['$_']}]";
    let plan = t.explain(spec).expect("a specification").plan;
    assert!(matches!(plan, PlanKind::Index(_)), "{plan:?}");
    let rows = t.select(spec).expect("a table");
    assert_eq!(rows.len(), 1, "{kind}: {rows:?}");
    writer.join().expect("no panic");
    is_whole(&t, kind);
}

/// A select is by an index.
fn is_by_index(t: &Table, spec: &str) {
    let plan = t.explain(spec).expect("a specification").plan;
    assert!(matches!(plan, PlanKind::Index(_)), "{plan:?}");
}

/// The numbers of the rows that a select has found.
fn selected(t: &Table, spec: &str) -> Vec<i64> {
    let rows = t.select(spec).expect("a table");
    let number = |row: &Term| row.as_ref().as_tuple()?.get(2)?.as_int();
    let mut numbers: Vec<i64> = rows.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Rows have one value throughout, and their entries are in several leaves: a select by the value
/// has each once, and a row that comes or goes at most once.
fn in_parts(kind: &'static str) {
    let t = table(kind, &[Index::element("v", 2)]);
    for i in 0..LAST {
        t.insert(&row(i, [1, i.into()])).expect("a table");
    }
    let spec = "[{{'_',1,'_'},[],['$_']}]";
    is_by_index(&t, spec);
    let writer = beside(&t, |t| {
        t.delete(&key(5)).expect("a table");
        t.insert(&row(LAST, [1, LAST.into()])).expect("a table");
        t.insert(&row(5, [1, 5])).expect("a table");
    });
    let mut numbers = selected(&t, spec);
    let all = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), all, "{kind}: {numbers:?}");
    let stays = |i: &i64| (0..LAST.into()).contains(i) && *i != 5;
    let stay = numbers.iter().copied().filter(stays).count();
    assert_eq!(stay, LAST as usize - 1, "{kind}: {numbers:?}");
    writer.join().expect("no panic");
    is_whole(&t, kind);
}

/// A row moves within a range of values, whose entries are in several leaves: a select of the range
/// has it once.
fn moved_in_range(kind: &'static str) {
    let t = table(kind, &[Index::element("v", 2)]);
    for i in 0..LAST {
        t.insert(&row(i, [2, 0])).expect("a table");
    }
    t.insert(&row(LAST, [1, 7])).expect("a table");
    let spec = "[{{'_','$2','_'},[{'>=','$2',1},{'<','$2',4}],['$_']}]";
    is_by_index(&t, spec);
    let writer = beside(&t, |t| {
        // The select takes many steps before it reads the first leaf, and may read others only when
        // the writer has ended.
        for i in 0..15 {
            let v = if i % 2 == 0 { 3 } else { 1 };
            t.insert(&row(LAST, [v, 7])).expect("a table");
        }
    });
    let mut numbers = selected(&t, spec);
    numbers.retain(|i| *i == 7);
    assert_eq!(numbers.len(), 1, "{kind}");
    writer.join().expect("no panic");
    is_whole(&t, kind);
}

/// Two writers of one value: one has it.
fn one_value(kind: &'static str) {
    let t = filled(kind, &[Index::element("v", 2).unique()]);
    let other = beside(&t, |t| t.insert(&row(0, [1])).is_ok());
    let this = t.insert(&row(LAST, [1])).is_ok();
    let other = other.join().expect("no panic");
    assert!(this != other, "{kind}: {this}, {other}");
    is_whole(&t, kind);
}

/// A write is refused for its second value, and gives its first back. Nobody is refused for that.
fn given_back(kind: &'static str, by_list: bool) {
    let unique = [
        Index::element("v", 2).unique(),
        Index::element("w", 3).unique(),
    ];
    let t = filled(kind, &unique);
    t.insert(&row(LAST + 1, [3, 7])).expect("a table");
    let other = beside(&t, move |t| {
        let result = match by_list {
            true => t.insert_all(&[row(0, [1, 5]), row(LAST + 2, [4, 7])]),
            false => t.insert(&row(0, [1, 7])),
        };
        assert!(matches!(result, Err(Error::NotUnique(_))), "{result:?}");
    });
    t.insert(&row(LAST, [1, 8]))
        .expect("a value that nobody has");
    other.join().expect("no panic");
    assert_eq!(t.len(), LAST as usize + 1, "{kind}");
    is_whole(&t, kind);
}

/// A value passes from a row that is deleted to one that a commit writes: no snapshot shows both.
fn one_in_snapshots(kind: &'static str) {
    let t = filled(kind, &[Index::element("v", 2).unique()]);
    t.insert(&row(0, [1])).expect("a table");
    let deleter = beside(&t, |t| t.delete(&key(0)).expect("a table"));
    let committer = beside(&t, |t| {
        let insert = |views: &[Table]| views[0].insert(&row(LAST, [1]));
        let result = t.larder().transaction(&[t], insert);
        assert!(
            matches!(result, Ok(()) | Err(Error::NotUnique(_))),
            "{result:?}"
        );
    });
    for _ in 0..3 {
        let snapshot = t.snapshot().expect("a table");
        let rows = snapshot.select("[{{'_','_'},[],['$_']}]").expect("a table");
        assert!(rows.len() <= 1, "{kind}: {rows:?}");
        assert_eq!(found(&snapshot, "v", 1), rows.len(), "{kind}");
    }
    deleter.join().expect("no panic");
    committer.join().expect("no panic");
    is_whole(&t, kind);
}

/// A select by the index of a snapshot or of a transaction's view has the rows that lookups by
/// their keys have there.
fn selected_in_views(kind: &'static str) {
    let t = table(kind, &[Index::element("v", 2)]);
    for row in [term!({a, 1}), term!({b, 2})] {
        t.insert(&row).expect("a table");
    }
    let writer = beside(&t, |t| {
        t.insert(&term!({a, 3})).expect("a table");
        let pass = |views: &[Table]| {
            views[0].delete(&term!(b))?;
            views[0].insert(&term!({c, 2}))
        };
        t.larder().transaction(&[t], pass).expect("a table");
    });
    let agrees = |view: &Table| {
        let spec = "[{{'_','$2'},[{'>=','$2',1},{'<','$2',4}],['$_']}]";
        let plan = view.explain(spec)?.plan;
        assert!(matches!(plan, PlanKind::Index(_)), "{plan:?}");
        let mut by_index = view.select(spec)?;
        let mut by_key = Vec::new();
        for key in [term!(a), term!(b), term!(c), term!(d)] {
            by_key.extend(view.lookup(&key)?);
        }
        by_index.sort();
        by_key.sort();
        assert_eq!(by_index, by_key, "{kind}");
        Ok(())
    };
    for _ in 0..2 {
        agrees(&t.snapshot().expect("a table")).expect("a snapshot");
    }
    let read = |views: &[Table]| {
        views[0].insert(&term!({d, 1}))?;
        agrees(&views[0])
    };
    t.larder().transaction(&[&*t], read).expect("a table");
    writer.join().expect("no panic");
    is_whole(&t, kind);
}

/// A commit passes a value from one row to another: somebody has it all the time.
fn passed_on(kind: &'static str) {
    let t = filled(kind, &[Index::element("v", 2).unique()]);
    t.insert(&row(0, [1])).expect("a table");
    let committer = beside(&t, |t| {
        let pass = |views: &[Table]| {
            views[0].delete(&key(0))?;
            views[0].insert(&row(LAST, [1]))
        };
        t.larder().transaction(&[t], pass).expect("a table");
    });
    for _ in 0..4 {
        assert_eq!(found(&t, "v", 1), 1, "{kind}");
    }
    committer.join().expect("no panic");
    is_whole(&t, kind);
}

/// An index is added beside writes, and has all rows then.
fn added(kind: &'static str, unique: bool) {
    let t = table(kind, &[]);
    t.insert(&term!({a, 1})).expect("a table");
    let writer = beside(&t, |t| {
        t.delete(&term!(a)).expect("a table");
        t.insert(&term!({b, 1})).expect("a value that nobody has");
        t.insert(&term!({a, 2})).expect("a value that nobody has");
    });
    let index = Index::element("v", 2);
    let index = if unique { index.unique() } else { index };
    t.add_index(&index).expect("values that differ");
    writer.join().expect("no panic");
    assert_eq!(t.indexes().len(), 1);
    is_whole(&t, kind);
}

#[test]
fn rows_and_entries_agree() {
    let _alone = alone();
    for kind in KINDS {
        let name = format!("a row of an indexed {kind}");
        check(&name, &SEARCH, move || one_instant(kind));
        let name = format!("a value read in parts, {kind}");
        check(&name, &SEARCH, move || in_parts(kind));
        for unique in [false, true] {
            let name = format!("an index added to a {kind}, unique: {unique}");
            check(&name, &SEARCH, move || added(kind, unique));
        }
    }
    for kind in ["set", "ordered_set"] {
        let name = format!("two values in a {kind}");
        check(&name, &SEARCH, move || one_of_two(kind));
        let name = format!("a move within a range, {kind}");
        check(&name, &SEARCH, move || moved_in_range(kind));
        let name = format!("views of an indexed {kind}");
        check(&name, &SEARCH, move || selected_in_views(kind));
    }
}

#[test]
fn unique_values_are_unique() {
    let _alone = alone();
    for kind in KINDS {
        let name = format!("a value of two rows in a {kind}");
        check(&name, &SEARCH, move || one_value(kind));
        for by_list in [false, true] {
            let name = format!("a claim given back in a {kind}, by a list: {by_list}");
            check(&name, &SEARCH, move || given_back(kind, by_list));
        }
    }
    for kind in ["set", "bag"] {
        let name = format!("a value of a {kind} in snapshots");
        check(&name, &SEARCH, move || one_in_snapshots(kind));
        let name = format!("a value of a {kind} passed on");
        check(&name, &SEARCH, move || passed_on(kind));
    }
}

#[test]
fn faults_are_found() {
    let _alone = alone();
    let fault = |fault, program: fn()| {
        assert!(finds(fault, &FAULT, program), "{fault:?}");
    };
    fault(Fault::LeftEntry, || one_instant("set"));
    fault(Fault::UncountedMove, || one_of_two("ordered_set"));
    fault(Fault::RangeInParts, || moved_in_range("set"));
    fault(Fault::MissedDifference, || selected_in_views("set"));
    fault(Fault::UnsettledClaim, || given_back("ordered_set", false));
}
