//! Secondary indexes beside the same questions without them: random rows, specifications and
//! indexes, all four types.

mod indexed;
mod kinds;
mod lists;

use indexed::table;
use kinds::KINDS;
use larder::api::{Index, Larder, MatchSpec, Table};
use larder::host::{Budget, Context, Error, IndexDefinition, IndexOn, PlanKind, ScanStep, Step};
use larder_term::{term, Atom, Term};
use larder_testing::environment::{seed, times};
use larder_testing::mix;
use larder_testing::sorted;
use lists::list;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A few values of all kinds, some of which are equal without being the same.
fn value(chance: u64) -> Term {
    let texts = [
        "0",
        "1",
        "1.0",
        "2",
        "3",
        "4",
        "5",
        "a",
        "b",
        "\"ab\"",
        "{a,1}",
        "{a,1.0}",
        "[]",
        "[a,b]",
        "#{a => 1}",
        "99999999999999999999",
        "6",
        "7",
    ];
    let text = texts[(chance % texts.len() as u64) as usize];
    larder_term::text::parse(text).expect("a term")
}

fn row(chance: u64) -> Term {
    let key = Term::from((chance >> 8) as i64 % 90);
    let (a, b) = (value(chance >> 20), value(chance >> 30));
    let tags: Vec<Term> = (0..(chance >> 40) % 4)
        .map(|i| value(chance >> (41 + 3 * i)))
        .collect();
    match (chance >> 55) % 6 {
        0 => Term::tuple([key, a]),
        1 => Term::tuple([key, a, b]),
        _ => Term::tuple([key, a, b, Term::list(tags)]),
    }
}

fn spec(chance: u64) -> String {
    let (v, w) = (value(chance >> 10), value(chance >> 20));
    match chance % 15 {
        0 => format!("[{{{{'$1',{v},'_','_'}},[],['$_']}}]"),
        1 => format!("[{{{{'_',{v}}},[],['$_']}}]"),
        2 => format!("[{{'$1',[{{'==',{{element,2,'$1'}},{{const,{v}}}}}],['$1']}}]"),
        3 => format!("[{{{{'$1','$2','_','_'}},[{{'>=','$2',{{const,{v}}}}},{{'<','$2',{{const,{w}}}}}],['$_']}}]"),
        4 => format!("[{{{{'_','$2','$3','_'}},[{{'orelse',{{'==','$2',{{const,{v}}}}},{{'==','$2',{{const,{w}}}}}}}],['$_']}}]"),
        5 => format!("[{{{{'_',{v},'$3'}},[],['$3']}},{{{{'_',{w},'$3','_'}},[],['$3']}}]"),
        6 => format!("[{{{{'_',{v},{w},'_'}},[],['$_']}}]"),
        7 => format!("[{{{{'_','_',{w},'_'}},[],['$_']}}]"),
        8 => format!("[{{{{'_','$2','$2','_'}},[{{'=:=','$2',{{const,{v}}}}}],['$_']}}]"),
        9 => format!("[{{'_',[{{'=<',{{element,3,'$_'}},{{const,{v}}}}}],['$_']}}]"),
        10 => "[{'_',[],['$_']}]".to_owned(),
        // By the expression of an index, written in several ways.
        11 => format!("[{{{{'_','_','$3','_'}},[{{'==',{{map_get,a,'$3'}},{{const,{v}}}}}],['$_']}}]"),
        12 => format!("[{{'$1',[{{'orelse',{{'=:=',{{const,{v}}},{{map_get,a,{{element,3,'$_'}}}}}},{{'==',{{map_get,a,{{element,3,'$1'}}}},{{const,{w}}}}}}}],['$1']}}]"),
        13 => format!("[{{'_',[{{'>=',{{map_get,a,{{element,3,'$_'}}}},{{const,{v}}}}}],['$_']}},{{{{'_','$2','_'}},[{{'>=',{{map_get,a,{{element,2,'$_'}}}},0}}],['$2']}}]"),
        _ => format!("[{{{{7,{v},'_','_'}},[],['$_']}}]"),
    }
}

/// Results as they come from an ordered_set, sorted from other tables: no two of these have one
/// order.
fn in_order(table: &Table, rows: Vec<Term>) -> Vec<Term> {
    match table.engine_table().kind().is_ordered() {
        true => rows,
        false => sorted(rows),
    }
}

/// What an index should have under a value.
fn with_value(rows: &[Term], name: &str, sought: &Term) -> Vec<Term> {
    let fits = |row: &&Term| {
        let Some(tuple) = row.as_ref().as_tuple() else {
            return false;
        };
        let equal = |found: larder_term::TermRef<'_>| found.eq_term(sought.as_ref());
        match name {
            "a" => tuple.get(1).is_some_and(equal),
            "b" => tuple.get(2).is_some_and(equal),
            "tags" => {
                let tags = tuple.get(3).and_then(|tags| tags.as_list());
                tags.is_some_and(|mut tags| tags.any(equal))
            }
            _ => {
                let map = tuple.get(2).map(|b| b.view());
                matches!(map, Some(larder_term::View::Map(map))
                    if map.get(term!(a).as_ref()).is_some_and(equal))
            }
        }
    };
    rows.iter().filter(fits).cloned().collect()
}

fn indexes() -> [Index; 4] {
    [
        Index::element("a", 2),
        Index::element("b", 3),
        Index::element("tags", 4).each(),
        Index::expression("in_b", "{map_get,a,{element,3,'$_'}}"),
    ]
}

/// Asks the same of a table with indexes and of one without.
fn compare(with: &Table, without: &Table, chance: u64) -> Result<(), Error> {
    let spec = spec(chance);
    let plan = with.explain(&spec)?;
    assert_eq!(
        in_order(with, with.select(&spec)?),
        in_order(without, without.select(&spec)?),
        "{spec} by {plan:?}"
    );
    let counting = spec
        .replace("['$_']}", "[true]}")
        .replace("['$1']}", "[true]}");
    assert_eq!(
        with.select_count(&counting)?,
        without.select_count(&counting)?,
        "{counting}"
    );
    let all = without.to_vec()?;
    let sought = value(chance >> 33);
    for name in ["a", "b", "tags", "in_b"] {
        let found = sorted(with.index_lookup(name, &sought)?);
        assert_eq!(
            found,
            sorted(with_value(&all, name, &sought)),
            "{name} of {sought}"
        );
    }
    let ordered = with.index_select("a", "[{'_',[],['$_']}]")?;
    let values: Vec<Term> = ordered
        .iter()
        .map(|row| Term::from(row.as_ref().as_tuple().expect("a tuple").get(1).expect("a")))
        .collect();
    assert!(values.is_sorted_by(|x, y| x.as_ref().cmp_term(y.as_ref()).is_le()));
    assert_eq!(ordered.len(), all.len());
    Ok(())
}

/// Whether the question of this chance is answered by an index.
fn is_by_index(table: &Table, chance: u64) -> Result<bool, Error> {
    let plan = table.explain(spec(chance))?.plan;
    Ok(matches!(plan, PlanKind::Index(_)))
}

/// Pages of a select go on where they were, whatever the plan.
fn pages(with: &Table, without: &Table, chance: u64) -> Result<(), Error> {
    let spec = spec(chance);
    let mut found = Vec::new();
    let mut rows = with.rows(&spec, larder::Direction::Forward)?;
    loop {
        let page = rows.page(1 + (chance >> 50) as usize % 5)?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    let expected = without.select(&spec)?;
    assert_eq!(in_order(with, found), in_order(without, expected), "{spec}");
    Ok(())
}

fn write(table: &Table, step: u64, chance: u64) -> Result<u64, Error> {
    let row = row(chance);
    let key = Term::from(
        row.as_ref()
            .as_tuple()
            .expect("a tuple")
            .get(0)
            .expect("a key"),
    );
    Ok(match step % 16 {
        0..8 => {
            table.insert(&row)?;
            1
        }
        8 => u64::from(table.insert_new(&row)?),
        9 => {
            let list: Vec<Term> = (0..5).map(|i| self::row(mix(chance + i))).collect();
            table.insert_all(&list)?;
            5
        }
        10 => table.take(&key)?.len() as u64,
        11 => table.delete(&key)? as u64,
        12 => table.delete_object(&row)? as u64,
        13 => table.select_delete(spec(chance).replace("['$_']}", "[true]}"))?,
        14 if chance >> 58 == 0 => {
            table.clear()?;
            0
        }
        _ => {
            let replace =
                "[{{'$1','$2','$3','_'},[{is_integer,'$2'}],[{{'$1','$3','$2',['$2']}}]}]";
            match table.select_replace(replace) {
                Err(Error::TableType) => 0,
                other => other?,
            }
        }
    })
}

#[test]
fn answers_are_those_without_indexes() -> Result<(), Error> {
    for kind in KINDS {
        let (with, without) = (table(kind, &indexes()), table(kind, &[]));
        let mut by_index = 0;
        for step in 0..times(3_000) as u64 {
            let chance = mix(seed(20_261_125) << 20 ^ step);
            let done = write(&with, step, chance)?;
            assert_eq!(done, write(&without, step, chance)?, "{kind}, step {step}");
            if step % 4 == 0 {
                compare(&with, &without, chance)?;
                pages(&with, &without, mix(chance))?;
                by_index += u64::from(is_by_index(&with, chance)?);
            }
        }
        assert!(
            by_index > 100,
            "{kind}: {by_index} of the questions by an index"
        );
        with.clear()?;
        assert!(with.indexes().iter().all(|index| index.entries == 0));
    }
    Ok(())
}

#[test]
fn snapshots_and_transactions_see_their_own_instant() -> Result<(), Error> {
    for kind in KINDS {
        let (with, without) = (table(kind, &indexes()), table(kind, &[]));
        for step in 0..400 {
            let chance = mix(seed(7) << 20 ^ step);
            write(&with, step, chance)?;
            write(&without, step, chance)?;
        }
        // Snapshots of both tables are compared with each other while rows change.
        let mut by_index = 0;
        for round in 0..10 {
            let (then, before) = (with.snapshot()?, without.snapshot()?);
            for step in 0..30 {
                let chance = mix(seed(7) << 20 ^ (400 + 30 * round + step));
                write(&with, step, chance)?;
                write(&without, step, chance)?;
                if step % 3 == 0 {
                    compare(&then, &before, chance)?;
                    pages(&then, &before, mix(chance))?;
                    by_index += u64::from(is_by_index(&then, chance)?);
                }
            }
        }
        let larder = with.larder();
        larder.transaction(&[&with], |views| {
            let view = &views[0];
            for step in 700..800 {
                let chance = mix(seed(7) << 20 ^ step);
                write(view, step % 14, chance)?;
                write(&without, step % 14, chance)?;
                if step % 2 == 0 {
                    compare(view, &without, mix(chance))?;
                    pages(view, &without, chance)?;
                    by_index += u64::from(is_by_index(view, mix(chance))?);
                }
            }
            Ok(())
        })?;
        assert!(by_index > 3, "{kind}: {by_index} by an index");
        assert_eq!(sorted(with.to_vec()?), sorted(without.to_vec()?));
        for chance in 0..60 {
            compare(&with, &without, mix(chance))?;
        }
    }
    Ok(())
}

#[test]
fn a_unique_index_refuses_what_is_taken() -> Result<(), Error> {
    for kind in KINDS {
        let unique = [
            Index::element("mail", 2).unique(),
            Index::element("nick", 3).unique(),
        ];
        let users = table(kind, &unique);
        users.insert(&term!({1, "a", x}))?;
        let taken = |index: &str| Err(Error::NotUnique(larder_term::Atom::new(index).into()));
        assert_eq!(users.insert(&term!({2, "a", y})), taken("mail"));
        assert_eq!(users.insert(&term!({2, "b", x})), taken("nick"));
        assert!(!users.insert_new(&term!({2, "b", x}))?);
        // What was refused has left no claim.
        users.insert(&term!({2, "b", y}))?;
        let list = [term!({3, "c", z}), term!({4, "c", w})];
        assert_eq!(users.insert_all(&list), taken("mail"));
        assert!(!users.insert_all_new(&list)?);
        assert_eq!(users.len(), 2);
        users.insert_all(&[term!({3, "c", z}), term!({4, "d", w})])?;
        // Not even what the list itself would free.
        if kind.ends_with("set") {
            let passed = [term!({3, "m", m}), term!({8, "c", n})];
            assert_eq!(users.insert_all(&passed), taken("mail"));
            users.insert_all(&[term!({3, "m", m}), term!({3, "c", z})])?;
            assert_eq!(
                users.index_lookup("mail", &term!("c"))?,
                [term!({3, "c", z})]
            );
            assert_eq!(users.index_lookup("mail", &term!("m"))?, []);
        }
        users.delete(&term!(3))?;
        users.insert(&term!({5, "c", z}))?;
        if kind.ends_with("set") {
            // A row's own values are no obstacle.
            users.insert(&term!({5, "c", z}))?;
            users.insert(&term!({5, "e", z}))?;
            users.insert(&term!({6, "c", v}))?;
            let update = users.update(&term!(6), 2, &term!("a"));
            assert_eq!(update, taken("mail").map(|()| true));
        }
        let larder = users.larder();
        // A transaction may pass a value from one row to another.
        larder.transaction(&[&users], |views| {
            views[0].delete(&term!(1))?;
            views[0].insert(&term!({7, "a", x}))
        })?;
        let refused = larder.transaction(&[&users], |views| {
            views[0].insert(&term!({8, "g", g}))?;
            views[0].insert(&term!({9, "a", h}))
        });
        assert_eq!(refused, taken("mail"));
        assert_eq!(
            users.index_lookup("mail", &term!("a"))?,
            [term!({7, "a", x})]
        );
        assert_eq!(users.index_lookup("mail", &term!("g"))?, []);
        users.insert(&term!({8, "g", g}))?;
    }
    Ok(())
}

#[test]
fn an_index_is_added_while_others_write() -> Result<(), Error> {
    for kind in KINDS {
        let (with, rows) = (table(kind, &[]), 20_000i64);
        for k in 0..rows {
            with.insert(&Term::tuple([
                Term::from(k),
                Term::from(k % 100),
                value(k as u64),
            ]))?;
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2u64)
                .map(|w| {
                    let (with, stop) = (&with, &stop);
                    scope.spawn(move || {
                        let mut chance = mix(w + 1);
                        while !stop.load(Ordering::Relaxed) {
                            chance = mix(chance);
                            // Each writer has keys of its own.
                            let k = Term::from((chance % 5_000) as i64 * 2 + w as i64);
                            if chance >> 60 == 0 {
                                with.delete(&k)?;
                            } else {
                                let a = Term::from((chance >> 20) as i64 % 100);
                                with.insert(&Term::tuple([k, a, value(chance >> 30)]))?;
                            }
                        }
                        Ok::<_, Error>(())
                    })
                })
                .collect();
            for _ in 0..5 {
                with.add_index(&Index::element("a", 2))?;
                // Rows that nobody writes are all there.
                for v in 0..100 {
                    let found = with.index_lookup("a", &Term::from(v))?;
                    let key = |row: &Term| row.as_ref().as_tuple().and_then(|t| t.get(0)?.as_int());
                    let old = found.iter().filter(|row| key(row) >= Some(10_000));
                    assert_eq!(old.count(), 100, "{kind}");
                }
                with.drop_index("a")?;
            }
            with.add_index(&Index::element("a", 2))?;
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                writer.join().expect("a writer")?;
            }
            Ok::<_, Error>(())
        })?;
        let all = with.to_vec()?;
        for v in 0..100 {
            let found = sorted(with.index_lookup("a", &Term::from(v))?);
            assert_eq!(
                found,
                sorted(with_value(&all, "a", &Term::from(v))),
                "{kind}"
            );
        }
        let entries = with.indexes()[0].entries;
        assert!(
            entries <= all.len(),
            "{kind}: {entries} entries of {} rows",
            all.len()
        );
    }
    Ok(())
}

#[test]
fn an_index_is_added_in_slices_that_end_when_their_budget_does() -> Result<(), Error> {
    const ROWS: i64 = 3_000;
    // Ten keys.
    const SLICE: u32 = 40;
    for kind in KINDS {
        let with = table(kind, &[]);
        // In a bag, three rows a key.
        let row = |k: i64| Term::tuple([Term::from(k / 3), Term::from(k)]);
        for k in 0..ROWS {
            with.insert(&row(k))?;
        }
        let definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
        let engine = with.engine_table();
        let mut job = engine.add_index(engine.owner(), definition)?;
        let (mut slices, mut before) = (0, 0);
        while job.step(&mut Budget::new(SLICE, Duration::from_secs(60)))? == Step::More {
            let now = with.indexes()[0].entries;
            assert!(
                now - before <= SLICE as usize,
                "{kind}: {now} after {before}"
            );
            // Between slices a key goes that is in the batch, and another one comes.
            let k = slices % (ROWS / 3);
            with.delete(&Term::from(k))?;
            with.insert(&row(ROWS + 3 * k))?;
            (slices, before) = (slices + 1, with.indexes()[0].entries);
        }
        assert!(slices > 50, "{kind}: {slices} slices");
        let all = with.to_vec()?;
        assert_eq!(with.indexes()[0].entries, all.len(), "{kind}");
        for row in all {
            let value = row
                .as_ref()
                .as_tuple()
                .and_then(|t| t.get(1))
                .map(Term::from);
            let found = with.index_lookup("v", &value.expect("two elements"))?;
            assert_eq!(found, [row], "{kind}");
        }
    }
    Ok(())
}

/// Rows with many values each, and rows with long ones, end a slice as soon as their share of it is
/// used.
#[test]
fn an_index_of_many_or_long_values_is_added_in_as_many_slices() -> Result<(), Error> {
    const ROWS: i64 = 60;
    const VALUES: i32 = 500;
    for kind in KINDS {
        let t = table(kind, &[]);
        for k in 0..ROWS {
            let values = (0..VALUES).map(|n| Term::from(1_000 * k + i64::from(n)));
            let long = Term::list(vec![Term::from(k); 12_000]);
            t.insert(&Term::tuple([Term::from(k), Term::list(values), long]))?;
        }
        let engine = t.engine_table();
        for (position, each) in [(2, true), (3, false)] {
            let mut definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(position));
            definition.each = each;
            let mut job = engine.add_index(engine.owner(), definition)?;
            let mut slices = 0;
            // Ten small rows.
            while job.step(&mut Budget::new(40, Duration::from_secs(60)))? == Step::More {
                slices += 1;
            }
            assert!(slices >= ROWS, "{kind}: {slices} slices");
            let entries = if each { ROWS * i64::from(VALUES) } else { ROWS };
            assert_eq!(t.indexes()[0].entries, entries as usize, "{kind}");
            t.drop_index("v")?;
        }
    }
    Ok(())
}

#[test]
fn an_index_that_is_not_unique_is_not_added() -> Result<(), Error> {
    let rows = table("set", &[]);
    for k in 0..1000 {
        rows.insert(&Term::tuple([Term::from(k), Term::from(k % 999)]))?;
    }
    let index = Index::element("v", 2).unique();
    assert!(matches!(rows.add_index(&index), Err(Error::NotUnique(_))));
    assert!(rows.indexes().is_empty());
    rows.delete(&term!(999))?;
    rows.add_index(&index)?;
    assert!(matches!(
        rows.insert(&term!({5000, 7})),
        Err(Error::NotUnique(_))
    ));
    Ok(())
}

/// An index is added in time in proportion to the number of a key's objects. If all of them are
/// indexed for each batch that the scan reads, it takes minutes.
#[test]
fn an_index_of_a_key_with_many_objects_is_added_in_time() -> Result<(), Error> {
    const OBJECTS: i64 = 400_000;
    let t = table("duplicate_bag", &[]);
    let rows: Vec<Term> = (0..OBJECTS).map(|n| term!({1, (n % 200_000)})).collect();
    t.insert_all(&rows)?;
    let begun = Instant::now();
    t.add_index(&Index::element("v", 2))?;
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(t.indexes()[0].entries, 200_000);
    // Each entry is that of two objects.
    let row = term!({1, 7});
    assert_eq!(t.index_lookup("v", &term!(7))?, [row.clone(), row.clone()]);
    t.delete_object(&row)?;
    assert_eq!(t.index_lookup("v", &term!(7))?, []);
    assert_eq!(t.indexes()[0].entries, 199_999);
    Ok(())
}

#[test]
fn errors_are_described() {
    let create = |index: Index| Larder::new().table("t").index(index).create().err();
    for (index, text) in [
        (Index::element("x", 0), "positions count from 1"),
        (Index::expression("x", "{map_get,"), "index x"),
        (Index::expression("x", "{nonsense,'$_'}"), "index x"),
        (Index::expression("x", "{self}"), "the row alone"),
        (Index::expression("x", "'$1'"), "variable $1 is not bound"),
    ] {
        let error = create(index).expect("an error").to_string();
        assert!(error.contains(text), "{error}");
    }
    let twice = Larder::new()
        .table("t")
        .index(Index::element("x", 1))
        .index(Index::element("x", 2))
        .create();
    let error = twice.map(|_| ()).expect_err("two of one name").to_string();
    assert!(error.contains("two indexes"), "{error}");
    let t = table("set", &[]);
    assert!(matches!(
        t.index_lookup("x", &term!(1)),
        Err(Error::NoIndex(_))
    ));
    assert!(matches!(t.drop_index("x"), Err(Error::NoIndex(_))));
}

/// A list is claimed in time in proportion to its length, however many objects its key has. If
/// these are copied for each object of the list, it takes minutes.
#[test]
fn a_list_is_added_to_many_objects_of_a_key_in_time() {
    let row = |n: i64| term!({1, (n)});
    for kind in ["bag", "duplicate_bag"] {
        let t = table(kind, &[Index::element("v", 2).unique()]);
        (0..200_000).for_each(|n| t.insert(&row(n)).unwrap());
        let begun = Instant::now();
        let mut rows: Vec<Term> = (200_000..208_000).map(row).collect();
        t.insert_all(&rows).unwrap();
        rows = vec![row(500_000), row(50_000)];
        match kind {
            // It is in the bag.
            "bag" => t.insert_all(&rows).unwrap(),
            _ => assert!(matches!(t.insert_all(&rows), Err(Error::NotUnique(_)))),
        }
        assert_eq!(t.len(), if kind == "bag" { 208_001 } else { 208_000 });
        assert!(begun.elapsed() < Duration::from_secs(10), "{kind}");
    }
}

/// A change of a list of many values takes time in proportion to it. What is compared in pairs
/// takes minutes.
#[test]
fn lists_of_many_values_are_changed_in_time() {
    let begun = Instant::now();
    let row = |from: i64| {
        let tags = Term::list((from..from + 50_000).map(Term::from).collect::<Vec<_>>());
        term!({1, (tags)})
    };
    for index in [
        Index::element("tags", 2).each(),
        Index::element("tags", 2).each().unique(),
    ] {
        for kind in KINDS {
            let t = table(kind, std::slice::from_ref(&index));
            t.insert(&row(0)).unwrap();
            t.delete(&Term::from(1)).unwrap();
            t.insert(&row(0)).unwrap();
            if kind.ends_with("set") {
                t.insert(&row(1)).unwrap();
                assert!(t.index_lookup("tags", &Term::from(0)).unwrap().is_empty());
                let last = t.index_lookup("tags", &Term::from(50_000)).unwrap();
                assert_eq!(last, [row(1)]);
            }
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A search for a value that no row has is work, too: slices end among many of them.
#[test]
fn slices_end_among_values_without_rows() -> Result<(), Error> {
    let t = table("set", &[Index::element("v", 2)]);
    t.insert_all(&[term!({1, 1}), term!({2, 1_999})])?;
    let values: Vec<String> = (0..2_000).map(|v| format!("{{'==','$1',{v}}}")).collect();
    let values = values.join(",");
    let spec = format!("[{{{{'_','$1'}},[{{'orelse',{values}}}],['$1']}}]");
    let engine = t.engine_table();
    let (name, program) = (Atom::new("v"), spec.program()?);
    let mut job = engine.index_select(engine.owner(), name, program, None)?;
    let (mut slices, mut found) = (0, 0);
    loop {
        let budget = &mut Budget::new(100, Duration::from_secs(60));
        match job.step(budget, &Context::none(), &mut |_| found += 1)? {
            ScanStep::More => slices += 1,
            _ => break,
        }
    }
    assert!(found == 2 && slices > 10, "{slices} slices");
    Ok(())
}

/// The objects of a key are replaced in time in proportion to their number. If each of them is
/// looked for from the first one on, it takes minutes.
#[test]
fn many_objects_of_a_key_are_replaced_in_time() {
    const OBJECTS: i64 = 80_000;
    let t = table("duplicate_bag", &[Index::element("v", 2)]);
    let rows: Vec<Term> = (0..OBJECTS).map(|n| term!({1, (n), 0})).collect();
    t.insert_all(&rows).unwrap();
    let begun = Instant::now();
    for step in 1..3 {
        // The second time, somebody follows the table.
        let feed = (step == 2).then(|| t.subscribe().unwrap());
        let spec = "[{{'$1','$2','$3'},[],[{{'$1',{'+','$2',1},'$3'}}]}]";
        assert_eq!(t.select_replace(spec).unwrap(), OBJECTS as u64);
        drop(feed);
        assert_eq!(t.index_lookup("v", &Term::from(step - 1)).unwrap(), []);
        let last = OBJECTS - 1 + step;
        let found = t.index_lookup("v", &Term::from(last)).unwrap();
        assert_eq!(found, [term!({1, (last), 0})]);
        assert_eq!(t.indexes()[0].entries, OBJECTS as usize);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// The index of a table that is emptied meanwhile goes, too, when it is given up.
#[test]
fn an_index_that_is_given_up_after_a_clear_is_gone() {
    let t = Larder::new().table("t").create().unwrap();
    (0..10_000).for_each(|k| t.insert(&term!({(k), (k)})).unwrap());
    let definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
    let mut job = t
        .engine_table()
        .add_index(t.engine_table().owner(), definition)
        .unwrap();
    let budget = &mut Budget::new(10, Duration::from_secs(60));
    assert_eq!(job.step(budget).unwrap(), Step::More);
    t.clear().unwrap();
    drop(job);
    assert!(t.indexes().is_empty());
}

/// Of a key of a bag all rows are read, however many of them have the value.
#[test]
fn explain_says_how_many_rows_are_read() -> Result<(), Error> {
    for kind in KINDS {
        let t = table(kind, &[Index::element("v", 2)]);
        for v in 0..100i64 {
            t.insert(&term!({1, (v)}))?;
        }
        let plan = t.explain("[{{'_',99},[],['$_']}]")?;
        assert_eq!(plan.plan, PlanKind::Index(Atom::new("v")), "{kind}");
        let is_bag = kind.ends_with("bag");
        assert_eq!(plan.rows, (!is_bag).then_some(1), "{kind}");
    }
    Ok(())
}

/// To explain a select of a view or a snapshot reads none of its rows.
#[test]
fn explain_reads_no_rows() -> Result<(), Error> {
    const SPEC: &str = "[{{'_',1},[],['$_']}]";
    for kind in KINDS {
        let t = table(kind, &[]);
        t.insert(&term!({1, 1}))?;
        let larder = t.larder();
        let mut transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        let plan = view.explain(SPEC)?;
        assert_eq!((plan.plan, plan.rows), (PlanKind::Scan, None), "{kind}");
        view.insert(&term!({2, 1}))?;
        t.insert(&term!({3, 1}))?;
        // What was explained wasn't read, so this is no conflict.
        assert!(transaction.commit()?, "{kind}");
        assert_eq!(t.snapshot()?.explain(SPEC)?.rows, None, "{kind}");
        assert_eq!(t.explain(SPEC)?.rows, Some(3), "{kind}");
    }
    Ok(())
}

/// Whoever gives up an index doesn't wait for a list that is being inserted.
#[test]
fn an_index_that_is_given_up_beside_a_list_is_gone_later() {
    let t = Larder::new().table("t").create().unwrap();
    (0..1_000).for_each(|k| t.insert(&term!({(k), (k)})).unwrap());
    let engine = t.engine_table();
    let definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
    let mut build = engine.add_index(engine.owner(), definition).unwrap();
    let budget = || Budget::new(10, Duration::from_secs(60));
    assert_eq!(build.step(&mut budget()).unwrap(), Step::More);
    let rows = list(&t, (1_000..500_000).map(|k| term!({(k), 1})));
    let mut insert = engine.begin_insert(engine.owner(), rows, false).unwrap();
    assert_eq!(insert.step(&mut budget()).unwrap(), Step::More);
    drop(build);
    assert_eq!(insert.step(&mut budget()).unwrap(), Step::More);
    while insert.step(&mut Budget::unlimited()).unwrap() == Step::More {}
    let begun = Instant::now();
    while !t.indexes().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(t.len(), 500_000);
}
