//! Selects by an index whose rows are read in parts, while others write and drop the index: rows
//! that stay are found once. All four types.

mod indexed;
mod kinds;

use indexed::table;
use kinds::KINDS;
use larder::api::{Index, MatchSpec, Table};
use larder::host::{Budget, Context, Direction, Error, Output, PlanKind, ScanStep, SelectJob};
use larder_term::{term, Atom, Term, TermRef};
use std::time::{Duration, Instant};

/// Of all rows, one in `VALUES` has each value.
const ROWS: i64 = 5_000;
const VALUES: i64 = 10;

fn row(k: i64, v: i64) -> Term {
    Term::tuple([k, v, k].map(Term::from))
}

fn filled(kind: &str, indexes: &[Index]) -> Result<Table, Error> {
    let t = table(kind, indexes);
    for k in 0..ROWS {
        t.insert(&row(k, k % VALUES))?;
    }
    Ok(t)
}

fn is_by_index(t: &Table, spec: &str) -> Result<bool, Error> {
    Ok(matches!(t.explain(spec)?.plan, PlanKind::Index(_)))
}

/// Writes keys with the value 3 that are odd multiples of 5: some go, some come back, and some have
/// another value for a moment.
fn write(t: &Table, step: i64) -> Result<(), Error> {
    let k = (step * 7 % (ROWS / 20)) * 20 + 13;
    match step % 3 {
        0 => drop(t.delete(&Term::from(k))?),
        1 => t.insert(&row(k, 4))?,
        _ => t.insert(&row(k, 3))?,
    }
    // A key that has not been there.
    t.insert(&row(ROWS + step, 3))
}

/// Whether nobody writes a row.
fn stays(k: i64) -> bool {
    k < ROWS && k % 20 != 13
}

fn key(output: Output<'_>) -> i64 {
    let term = |term: TermRef<'_>| term.as_int();
    match output {
        Output::Object(object) => object.element(1).and_then(term),
        Output::Term(found) => term(found),
        Output::Built(found) => term(found.whole_term(&mut Vec::new()).as_ref()),
    }
    .expect("a number")
}

/// A select in small slices, between which `between` is called.
fn selected(
    t: &Table,
    spec: &str,
    direction: Direction,
    mut between: impl FnMut(i64) -> Result<(), Error>,
) -> Result<Vec<i64>, Error> {
    let (engine, mut found) = (t.engine_table(), Vec::new());
    let program = spec.program()?;
    let mut job = engine.select(engine.owner(), program, direction, None)?;
    let mut slices = 0;
    loop {
        let budget = &mut Budget::new(8, Duration::from_secs(60));
        let sink = &mut |output: Output<'_>| found.push(key(output));
        match job.step(budget, &Context::none(), sink)? {
            ScanStep::More => {}
            ScanStep::Done => break,
            ScanStep::Limit => unreachable!("there is no limit"),
        }
        between(slices)?;
        slices += 1;
    }
    assert!(slices > 20, "{slices} slices");
    Ok(found)
}

#[test]
fn rows_that_stay_are_found_once() -> Result<(), Error> {
    let specs = [
        // One value, of whose rows more are read than are counted.
        "[{{'$1',3,'_'},[],['$1']}]",
        "[{{'_',3,'_'},[],['$_']}]",
        // Two values, between which rows move.
        "[{{'$1','$2','_'},[{'orelse',{'=:=','$2',3},{'=:=','$2',4}}],['$1']}]",
        // A range.
        "[{{'$1','$2','_'},[{'>','$2',2},{'<','$2',4}],['$1']}]",
    ];
    for kind in KINDS {
        for (number, spec) in specs.into_iter().enumerate() {
            for direction in [Direction::Forward, Direction::Backward] {
                for drops in [false, true] {
                    let t = filled(kind, &[Index::element("v", 2)])?;
                    assert!(is_by_index(&t, spec)?, "{spec}");
                    let mut found = selected(&t, spec, direction, |slice| {
                        if drops && slice == 10 {
                            t.drop_index("v")?;
                        }
                        write(&t, slice)
                    })?;
                    found.retain(|&k| stays(k));
                    if kind == "ordered_set" {
                        let is_in_order = match direction {
                            Direction::Forward => found.is_sorted(),
                            Direction::Backward => found.iter().rev().is_sorted(),
                        };
                        assert!(is_in_order, "{spec}: {found:?}");
                    }
                    found.sort_unstable();
                    let is_sought = |k: &i64| match number {
                        2 => matches!(k % VALUES, 3 | 4),
                        _ => k % VALUES == 3,
                    };
                    let expected: Vec<i64> =
                        (0..ROWS).filter(is_sought).filter(|&k| stays(k)).collect();
                    assert_eq!(found, expected, "{kind}: {spec}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn writes_by_a_value_are_those_without_an_index() -> Result<(), Error> {
    for kind in KINDS {
        let with = filled(kind, &[Index::element("v", 2)])?;
        let without = filled(kind, &[])?;
        let deleted = "[{{'_',3,'_'},[],[true]}]";
        assert!(is_by_index(&with, deleted)?);
        let many = (ROWS / VALUES) as u64;
        assert_eq!(with.select_count(deleted)?, many);
        assert_eq!(with.select_delete(deleted)?, many, "{kind}");
        assert_eq!(without.select_delete(deleted)?, many, "{kind}");
        if kind != "bag" {
            // The rows get the value that is looked for again, and another one.
            for replaced in [
                "[{{'$1',5,'_'},[],[{{'$1',5,x}}]}]",
                "[{{'$1',5,'_'},[],[{{'$1',6,y}}]}]",
            ] {
                assert!(is_by_index(&with, replaced)?);
                assert_eq!(with.select_replace(replaced)?, many, "{kind}");
                assert_eq!(without.select_replace(replaced)?, many, "{kind}");
            }
        }
        let (mut rows, mut expected) = (with.to_vec()?, without.to_vec()?);
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{kind}");
        assert_eq!(with.indexes()[0].entries, rows.len(), "{kind}");
        assert_eq!(with.index_lookup("v", &term!(3))?, [], "{kind}");
    }
    Ok(())
}

/// Before the step that puts many keys in order, the job says so.
#[test]
fn a_long_step_is_announced() -> Result<(), Error> {
    const FOUND: i64 = 10_000;
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2)]);
        let rows: Vec<Term> = (0..5 * FOUND).map(|k| row(k, -k)).collect();
        t.insert_all(&rows)?;
        for (found, expected) in [(FOUND, 1), (FOUND / 2, 0)] {
            let spec = format!("[{{{{'$1','$2','_'}},[{{'>','$2',-{found}}}],['$1']}}]");
            assert!(is_by_index(&t, &spec)?);
            let engine = t.engine_table();
            let way = Direction::Forward;
            let mut job = engine.select(engine.owner(), spec.program()?, way, None)?;
            let (mut keys, mut long) = (Vec::new(), 0);
            loop {
                long += i64::from(job.is_long());
                let budget = &mut Budget::new(1_000, Duration::from_secs(60));
                let sink = &mut |output: Output<'_>| keys.push(key(output));
                if job.step(budget, &Context::none(), sink)? == ScanStep::Done {
                    break;
                }
            }
            assert!(kind != "ordered_set" || keys.is_sorted(), "{kind}");
            keys.sort_unstable();
            assert_eq!(keys, (0..found).collect::<Vec<_>>(), "{kind}");
            assert_eq!(long, expected, "{kind}");
        }
    }
    Ok(())
}

/// An emptied table has no rows, even if a select has begun to read them.
#[test]
fn a_table_that_is_emptied_has_no_rows() -> Result<(), Error> {
    for kind in KINDS {
        let t = filled(kind, &[Index::element("v", 2)])?;
        let spec = "[{{'$1',3,'_'},[],['$1']}]";
        let mut emptied = false;
        let found = selected(&t, spec, Direction::Forward, |slice| {
            if slice == 21 {
                t.clear()?;
                emptied = true;
            }
            Ok(())
        })?;
        assert!(emptied && found.len() < (ROWS / VALUES) as usize, "{kind}");
    }
    Ok(())
}

/// Runs a slice of this number of units. Returns how many results it has.
fn step(job: &mut SelectJob, units: u32) -> Result<i64, Error> {
    let (budget, mut found) = (&mut Budget::new(units, Duration::from_secs(60)), 0);
    job.step(budget, &Context::none(), &mut |_| found += 1)?;
    Ok(found)
}

/// The least time that ten slices of one row take.
fn least(job: &mut SelectJob) -> Result<Duration, Error> {
    let mut least = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(step(job, 1)?, 1);
        }
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// A slice that ends after many of the keys that were gathered takes no longer than one that ends
/// after few.
#[test]
fn a_slice_ends_as_soon_after_many_keys_as_after_few() -> Result<(), Error> {
    const FOUND: i64 = 40_000;
    let t = table("set", &[Index::element("v", 2)]);
    let rows: Vec<Term> = (0..5 * FOUND).map(|k| row(k, k)).collect();
    t.insert_all(&rows)?;
    let spec = format!("[{{{{'$1','$2','_'}},[{{'<','$2',{FOUND}}}],['$1']}}]");
    assert!(is_by_index(&t, &spec)?);
    let engine = t.engine_table();
    let mut job = engine.select(engine.owner(), spec.program()?, Direction::Forward, None)?;
    let mut found = 0;
    while found == 0 {
        found += step(&mut job, 100)?;
    }
    let few = least(&mut job)?;
    while found < FOUND - 3_000 {
        found += step(&mut job, 1_000)?;
    }
    let many = least(&mut job)?;
    assert!(many < 5 * few, "{many:?}, not {few:?}");
    Ok(())
}

/// A row costs as much of a slice as there is to read of it.
#[test]
fn large_rows_end_a_slice() -> Result<(), Error> {
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2)]);
        let zeros = Term::list(vec![Term::from(0); 25_600]);
        for k in 0..50 {
            t.insert(&Term::tuple([Term::from(k), Term::from(7), zeros.clone()]))?;
        }
        let (engine, mut found) = (t.engine_table(), 0);
        let mut job = engine.index_lookup(engine.owner(), Atom::new("v"), term!(7).as_ref())?;
        let budget = &mut Budget::new(1000, Duration::from_secs(60));
        let step = job.step(budget, &Context::none(), &mut |_| found += 1)?;
        assert_eq!(step, ScanStep::More, "{kind}");
        assert!(found <= 10, "{kind}: {found}");
    }
    Ok(())
}

/// Each entry of a bag's key leads to all of its rows, of which one has the value.
#[test]
fn rows_without_the_value_end_a_slice() -> Result<(), Error> {
    for kind in ["bag", "duplicate_bag"] {
        let t = table(kind, &[Index::element("v", 2)]);
        let rows: Vec<_> = (0..400).map(|v| row(1, v)).collect();
        t.insert_all(&rows)?;
        let (engine, mut found) = (t.engine_table(), Vec::new());
        let program = "[{{'_','$1','_'},[],['$1']}]".program()?;
        let name = Atom::new("v");
        let mut job = engine.index_select(engine.owner(), name, program, None)?;
        loop {
            let before = found.len();
            let budget = &mut Budget::new(1_000, Duration::from_secs(60));
            let sink = &mut |output: Output<'_>| found.push(key(output));
            let step = job.step(budget, &Context::none(), sink)?;
            assert!(found.len() - before <= 3, "{} rows", found.len() - before);
            if step == ScanStep::Done {
                break;
            }
        }
        assert!(found.iter().copied().eq(0..400), "{kind}: {found:?}");
    }
    Ok(())
}
