//! Selects by an index on views in which thousands of keys differ from the table: of snapshots and
//! of transactions, in slices and in pages, while others write. All four types.

mod indexed;
mod kinds;

use indexed::table;
use kinds::KINDS;
use larder::api::{Index, Larder, MatchSpec, Table};
use larder::host::{Budget, Context, Error, IndexJob, Output, ScanStep};
use larder_term::object::ObjectView;
use larder_term::{term, Atom, Term, TermRef};
use larder_testing::environment::seed;
use larder_testing::mix;
use std::time::{Duration, Instant};

const ROWS: i64 = 3_000;
const VALUES: i64 = 40;

/// Of all rows, and of those of a range of values.
const ALL: &str = "[{'_',[],['$_']}]";
const SOME: &str = "[{{'_','$1','_'},[{'>=','$1',10},{'<','$1',30}],['$_']}]";

/// A key, a value, and a number that tells the rows of a bag apart.
type Row = (i64, i64, i64);

fn term_of((k, v, n): Row) -> Term {
    Term::tuple([k, v, n].map(Term::from))
}

fn int(term: Option<TermRef<'_>>) -> i64 {
    term.and_then(|term| term.as_int()).expect("an integer")
}

fn row_of(object: &ObjectView<'_>) -> Row {
    let element = |position| int(object.element(position));
    (element(1), element(2), element(3))
}

fn row_of_term(row: &Term) -> Row {
    let tuple = row.as_ref().as_tuple().expect("a tuple");
    (int(tuple.get(0)), int(tuple.get(1)), int(tuple.get(2)))
}

/// The rows of a table, found without an index, in the order of an index of the values.
fn by_value(table: &Table, spec: &str) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = table.to_vec()?.iter().map(row_of_term).collect();
    rows.retain(|(_, v, _)| spec == ALL || (10..30).contains(v));
    rows.sort_unstable_by_key(|&(k, v, n)| (v, k, n));
    Ok(rows)
}

/// Writes some row: changes its value, or deletes it, or inserts a new one.
fn write(table: &Table, chance: u64) -> Result<(), Error> {
    let key = (chance >> 8) as i64 % (ROWS + ROWS / 4);
    let value = (chance >> 32) as i64 % VALUES;
    match chance % 4 {
        0 => table.delete(&Term::from(key)).map(drop),
        number => table.insert(&term_of((key, value, number as i64))),
    }
}

fn filled(kind: &str) -> Result<Table, Error> {
    let t = table(kind, &[Index::element("v", 2)]);
    for k in 0..ROWS {
        t.insert(&term_of((k, k * 7 % VALUES, 0)))?;
    }
    Ok(t)
}

/// A select by the index. Stops after `page` results, and continues in another job.
struct Pages<'t> {
    table: &'t Table,
    spec: &'t str,
    limit: Option<usize>,
}

impl Pages<'_> {
    fn begin(&self, place: Option<&[u8]>) -> Result<IndexJob, Error> {
        let (table, name) = (self.table.engine_table(), Atom::new("v"));
        let (who, program) = (table.owner(), self.spec.program()?);
        match place {
            None => table.index_select(who, name, program, self.limit),
            Some(place) => table.index_select_resume(who, name, program, self.limit, place),
        }
    }

    /// All results, in slices of this number of units. Calls `between` between two slices.
    fn read(
        &self,
        units: u32,
        mut between: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Vec<Row>, Error> {
        let (mut job, mut found, mut slices) = (self.begin(None)?, Vec::new(), 0);
        loop {
            let budget = &mut Budget::new(units, Duration::from_secs(60));
            let sink = &mut |output: Output<'_>| match output {
                Output::Object(object) => found.push(row_of(object)),
                Output::Term(term) => found.push(row_of_term(&Term::from(term))),
                Output::Built(term) => found.push(row_of_term(&term.whole_term(&mut Vec::new()))),
            };
            let step = job.step(budget, &Context::none(), sink)?;
            // A slice ends with a batch of keys or a leaf of entries.
            assert!(
                budget.spent() < u64::from(units) + 1_000,
                "{}",
                budget.spent()
            );
            match step {
                ScanStep::More => {}
                ScanStep::Limit => job = self.begin(Some(&job.continuation()))?,
                ScanStep::Done => return Ok(found),
            }
            between(slices)?;
            slices += 1;
        }
    }
}

/// Compares what selects by the index find in a view with what it has. Calls `write` between
/// slices.
fn compare(
    view: &Table,
    kind: &str,
    mut write: impl FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    for spec in [ALL, SOME] {
        let expected = by_value(view, spec)?;
        assert!(expected.len() > ROWS as usize / 3, "{kind}");
        for (limit, units) in [
            (None, u32::MAX),
            (None, 50),
            (Some(300), 300),
            (Some(7), 60),
        ] {
            let (table, name) = (view, format!("{kind} {spec} {limit:?} {units}"));
            let pages = Pages { table, spec, limit };
            let mut found = pages.read(units, &mut write)?;
            // Rows of one key and value are in no particular order.
            assert!(found.is_sorted_by_key(|&(_, v, _)| v), "{name}");
            found.sort_unstable_by_key(|&(k, v, n)| (v, k, n));
            assert_eq!(found, expected, "{name}");
        }
    }
    for v in [0, 11] {
        let mut found: Vec<Row> = view
            .index_lookup("v", &Term::from(v))?
            .iter()
            .map(row_of_term)
            .collect();
        found.sort_unstable();
        let mut expected = by_value(view, ALL)?;
        expected.retain(|row| row.1 == v);
        assert_eq!(found, expected, "{kind} {v}");
    }
    Ok(())
}

#[test]
fn a_snapshot_has_the_rows_of_its_instant_beside_writes() -> Result<(), Error> {
    let seed = seed(1);
    for kind in KINDS {
        let t = filled(kind)?;
        let snapshot = t.snapshot()?;
        // Nothing has changed yet, or a few keys, or most of them. Others change between slices.
        for (round, changes) in [0, 100, 4 * ROWS as u64].into_iter().enumerate() {
            let chance = |i: u64| mix(seed ^ (round as u64) << 32 ^ i);
            (0..changes).try_for_each(|i| write(&t, chance(i)))?;
            compare(&snapshot, kind, |slice| {
                (0..3).try_for_each(|i| write(&t, chance(1 << 20 | slice << 2 | i)))
            })?;
        }
    }
    Ok(())
}

#[test]
fn a_transaction_sees_its_own_rows_beside_writes() -> Result<(), Error> {
    let seed = seed(1);
    for kind in KINDS {
        let t = filled(kind)?;
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        (0..1_000).try_for_each(|i| write(&t, mix(seed ^ i)))?;
        (0..1_000).try_for_each(|i| write(view, mix(seed ^ 1 << 20 ^ i)))?;
        compare(view, kind, |slice| write(&t, mix(seed ^ 1 << 30 ^ slice)))?;
    }
    Ok(())
}

/// In a transaction's view, several rows may have one value of a unique index. Entries of one value
/// are at one position.
#[test]
fn rows_of_one_unique_value_are_all_found() -> Result<(), Error> {
    const SAME: i64 = 700;
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2).unique()]);
        for k in 0..ROWS {
            t.insert(&term_of((k, k, 0)))?;
        }
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        for k in 0..SAME {
            view.insert(&term_of((k, 1_500, 1)))?;
        }
        let expected = by_value(view, ALL)?;
        for (limit, units) in [(None, u32::MAX), (None, 7), (Some(100), 1_000)] {
            let (table, spec) = (view, ALL);
            let mut found = Pages { table, spec, limit }.read(units, |_| Ok(()))?;
            assert!(found.is_sorted_by_key(|&(_, v, _)| v), "{kind}");
            found.sort_unstable_by_key(|&(k, v, n)| (v, k, n));
            assert_eq!(found, expected, "{kind} {limit:?} {units}");
        }
    }
    Ok(())
}

/// The units of a select that returns nothing, on a view.
fn work(view: &Table) -> Result<u64, Error> {
    let table = view.engine_table();
    let spec = "[{'_',[{'==',{element,3,'$_'},none}],['$_']}]";
    let mut job = table.index_select(table.owner(), Atom::new("v"), spec.program()?, None)?;
    let budget = &mut Budget::new(u32::MAX, Duration::from_secs(3600));
    let step = job.step(budget, &Context::none(), &mut |_| panic!("nothing matches"))?;
    assert_eq!(step, ScanStep::Done);
    Ok(budget.spent())
}

/// The costs are in proportion to the sum of entries and of keys that differ, not to the product.
#[test]
fn keys_that_differ_are_visited_a_few_times() -> Result<(), Error> {
    const ROWS: i64 = 40_000;
    const CHANGED: i64 = 4_000;
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2)]);
        for k in 0..ROWS {
            t.insert(&term_of((k, k, 0)))?;
        }
        let snapshot = t.snapshot()?;
        let before = work(&snapshot)?;
        for k in 0..CHANGED {
            t.delete(&Term::from(k * 10))?;
        }
        let after = work(&snapshot)?;
        // A key costs four units. All are visited after the first thousand entries, and then once
        // for each four entries.
        let most = before + 8 * CHANGED as u64 + 2 * ROWS as u64;
        assert!(after < most, "{kind}: {before}, {after}");
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        for k in 0..CHANGED {
            view.insert(&term_of((k * 10, -1, 1)))?;
        }
        let own = work(view)?;
        assert!(own < most + 8 * CHANGED as u64, "{kind}: {before}, {own}");
    }
    Ok(())
}

/// The units of a select by the index of all rows of a view, in pages of this number of results.
fn work_in_pages(view: &Table, page: usize) -> Result<u64, Error> {
    let (table, spec, limit) = (view, ALL, Some(page));
    let pages = Pages { table, spec, limit };
    let (mut job, mut units, mut rows) = (pages.begin(None)?, 0, 0);
    loop {
        let budget = &mut Budget::new(u32::MAX, Duration::from_secs(3600));
        let step = job.step(budget, &Context::none(), &mut |_| rows += 1)?;
        units += budget.spent();
        match step {
            ScanStep::More => {}
            ScanStep::Limit => job = pages.begin(Some(&job.continuation()))?,
            ScanStep::Done => break,
        }
    }
    assert_eq!(rows, view.len());
    Ok(units)
}

/// A page goes on with what the page before has read.
#[test]
fn pages_do_not_visit_all_keys_that_differ_again() -> Result<(), Error> {
    const CHANGED: u64 = 2_000;
    for kind in KINDS {
        let t = filled(kind)?;
        let snapshot = t.snapshot()?;
        (0..CHANGED as i64).try_for_each(|k| t.delete(&Term::from(k)).map(drop))?;
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let own = &transaction.views()[0];
        (0..CHANGED as i64).try_for_each(|k| own.insert(&term_of((k, 1, 1))))?;
        for view in [&snapshot, own] {
            let whole = work_in_pages(view, 100_000)?;
            let pages = work_in_pages(view, 10)?;
            // A page reads some entries again.
            let most = whole + view.len() as u64 / 10 * 40;
            assert!(pages < most, "{kind}: {whole}, {pages}");
        }
    }
    Ok(())
}

/// A page of few results reads few entries, also if the transaction writes after each page, so that
/// what was read is of no use.
#[test]
fn a_page_reads_about_as_many_entries_as_it_returns() -> Result<(), Error> {
    const PAGE: usize = 10;
    for kind in KINDS {
        let t = filled(kind)?;
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let own = &transaction.views()[0];
        for view in [&t.snapshot()?, own] {
            let (table, spec, limit) = (view, ALL, Some(PAGE));
            let pages = Pages { table, spec, limit };
            let (mut job, mut spent, mut most) = (pages.begin(None)?, 0, 0);
            for page in 0..20 {
                let (budget, mut rows) = (&mut Budget::new(u32::MAX, Duration::from_secs(3600)), 0);
                let step = job.step(budget, &Context::none(), &mut |_| rows += 1)?;
                assert_eq!((step, rows), (ScanStep::Limit, PAGE), "{kind}");
                // A row costs two units, an entry one, and a key that was written four.
                spent += budget.spent();
                most += 4 * PAGE as u64 + 5 * page + 10;
                if std::ptr::eq(view, own) {
                    own.insert(&term_of((ROWS + page as i64, VALUES, 0)))?;
                }
                job = pages.begin(Some(&job.continuation()))?;
            }
            assert!(spent <= most, "{kind}: {spent}, not {most}");
        }
    }
    Ok(())
}

/// A lookup that begins after a page doesn't go on with what that has read if the transaction has
/// written since.
#[test]
fn own_writes_after_a_page_are_found() -> Result<(), Error> {
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2)]);
        (0..10).try_for_each(|k| t.insert(&term_of((k, 1, 0))))?;
        let larder = Larder::new();
        let transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        let (table, spec, limit) = (view, "[{{'_',1,'_'},[],['$_']}]", Some(1));
        let mut job = Pages { table, spec, limit }.begin(None)?;
        let step = job.step(&mut Budget::unlimited(), &Context::none(), &mut |_| {})?;
        assert_eq!(step, ScanStep::Limit);
        (100..102).try_for_each(|k| view.insert(&term_of((k, 1, 0))))?;
        let found = view.index_lookup("v", &Term::from(1))?;
        assert_eq!(found.len(), 12, "{kind}");
    }
    Ok(())
}

/// What a page leaves for the next one is memory of the view, until a job continues there.
#[test]
fn what_a_page_leaves_counts_as_memory() -> Result<(), Error> {
    for kind in KINDS {
        let t = filled(kind)?;
        let snapshot = t.snapshot()?;
        (0..2_000).try_for_each(|k| t.delete(&Term::from(k)).map(drop))?;
        let memory = || snapshot.engine_table().memory();
        let before = memory();
        let (table, spec) = (&snapshot, ALL);
        let page = |limit| {
            let pages = Pages { table, spec, limit };
            let mut job = pages.begin(None)?;
            job.step(&mut Budget::unlimited(), &Context::none(), &mut |_| {})
        };
        assert_eq!(page(Some(1))?, ScanStep::Limit);
        // The part has a thousand entries at least, of two integers each.
        assert!(memory() >= before + 20_000, "{kind} {before} {}", memory());
        assert_eq!(page(None)?, ScanStep::Done);
        assert_eq!(memory(), before, "{kind}");
    }
    Ok(())
}

/// A place before what the last page has read, another program, and two readers in turns.
#[test]
fn pages_may_be_read_in_any_order() -> Result<(), Error> {
    for kind in KINDS {
        let t = filled(kind)?;
        let snapshot = t.snapshot()?;
        (0..ROWS / 2).try_for_each(|k| t.insert(&term_of((k, VALUES, 0))))?;
        let table = &snapshot;
        let expected = by_value(table, ALL)?;
        let limit = Some(70);
        let (all, some) = (
            Pages {
                table,
                spec: ALL,
                limit,
            },
            Pages {
                table,
                spec: SOME,
                limit,
            },
        );
        let page = |pages: &Pages<'_>, place: Option<&[u8]>| {
            let (mut job, mut found) = (pages.begin(place)?, Vec::new());
            let sink = &mut |output: Output<'_>| match output {
                Output::Object(object) => found.push(row_of(object)),
                Output::Term(term) => found.push(row_of_term(&Term::from(term))),
                Output::Built(term) => found.push(row_of_term(&term.whole_term(&mut Vec::new()))),
            };
            let step = job.step(&mut Budget::unlimited(), &Context::none(), sink)?;
            let place = (step == ScanStep::Limit).then(|| job.continuation());
            Ok::<_, Error>((found, place))
        };
        let (mut place, mut other, mut found) = (None, None, Vec::new());
        loop {
            let (rows, next) = page(&all, place.as_deref())?;
            other = page(&some, other.as_deref())?.1;
            // Once more from the same place.
            assert_eq!(page(&all, place.as_deref())?.0, rows, "{kind}");
            found.extend(rows);
            place = next;
            if place.is_none() {
                break;
            }
        }
        found.sort_unstable_by_key(|&(k, v, n)| (v, k, n));
        assert_eq!(found, expected, "{kind}");
    }
    Ok(())
}

/// More values of rows that differ than a part has.
#[test]
fn a_part_ends_earlier_if_many_values_differ() -> Result<(), Error> {
    const KEYS: i64 = 3_000;
    const EACH: i64 = 90;
    let t = table("set", &[Index::element("v", 2).each()]);
    let row = |k: i64| {
        let values = (0..EACH).map(|i| Term::from(i * KEYS + k));
        term!({(k), (Term::list(values.collect::<Vec<_>>()))})
    };
    (0..KEYS).try_for_each(|k| t.insert(&row(k)))?;
    let snapshot = t.snapshot()?;
    for k in 0..KEYS {
        t.insert(&term!({(k), []}))?;
    }
    let found = snapshot.index_select("v", "[{{'$1','_'},[],['$1']}]")?;
    assert_eq!(found.len() as i64, KEYS * EACH);
    let is_in_turn = |(i, k): (i64, &Term)| k.as_ref().as_int() == Some(i % KEYS);
    assert!((0..).zip(&found).all(is_in_turn));
    Ok(())
}

/// A resume point after its range, which a process has made up, is the end of the range.
#[test]
fn a_resume_point_after_its_range_is_the_end() -> Result<(), Error> {
    let t = filled("set")?;
    let snapshot = t.snapshot()?;
    // A position, in the first range.
    let mut place = vec![1];
    place.extend([0; 16]);
    place.push(0xFF);
    let tables: [&Table; 2] = [&t, &snapshot];
    for table in tables {
        let (spec, limit) = (SOME, Some(5));
        let mut job = Pages { table, spec, limit }.begin(Some(&place))?;
        let (mut slices, mut found) = (0, 0);
        let mut step = || {
            let sink = &mut |_: Output<'_>| found += 1;
            job.step(&mut Budget::slice(), &Context::none(), sink)
        };
        while step()? != ScanStep::Done {
            slices += 1;
            assert!(slices < 100);
        }
        assert_eq!(found, 0);
    }
    Ok(())
}

/// A look-up by an index in a view walks all keys that have versions. Where there are such
/// look-ups, few versions are kept on when no snapshot needs them.
#[test]
fn look_ups_do_not_walk_what_no_view_needs() {
    let larder = Larder::new();
    let builder = larder.table("t").ordered_set();
    let t = builder.index(Index::element("v", 2)).create().unwrap();
    let row = |k: i64, v: i64| Term::tuple([k, v].map(Term::from));
    (0..60_000).for_each(|k| t.insert(&row(k, 0)).unwrap());
    let write = |k| {
        let written = larder.transaction(&[&t], |views| views[0].insert(&row(k, 1)));
        written.unwrap();
    };
    let look_up = || {
        let none = Term::from(7);
        let found = larder.transaction(&[&t], |views| views[0].index_lookup("v", &none));
        assert_eq!(found, Ok(vec![]));
    };
    let snapshot = t.snapshot().unwrap();
    (0..5_000).for_each(write);
    look_up();
    let now_one = snapshot.index_lookup("v", &Term::from(1));
    assert_eq!(now_one, Ok(vec![]));
    drop(snapshot);
    // The numbers of snapshots are given up a little later.
    let begun = Instant::now();
    while t.engine_table().snapshots().1 > 16 << 10 {
        let kept = t.engine_table().snapshots().1;
        assert!(begun.elapsed() < Duration::from_secs(20), "{kept} bytes");
        std::thread::sleep(Duration::from_millis(5));
        look_up();
    }
}
