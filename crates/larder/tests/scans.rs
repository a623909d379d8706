//! Select, count, delete, take and replace, over every type of table.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder::host::{Budget, Direction, Error, Output, ScanStep, Step};
use larder_matchspec::{Context, Program};
use larder_term::{atoms, term, text, Term};
use larder_testing::sorted;
use std::time::Duration;

fn tables() -> [(Table, &'static str); 4] {
    KINDS.map(|kind| (table(Larder::new().table(kind), kind), kind))
}

fn fill(t: &Table, n: i64) {
    let rows: Vec<Term> = (0..n).map(|i| term!({(i), (i % 10)})).collect();
    t.insert_all(&rows).unwrap();
}

fn numbers(range: impl Iterator<Item = i64>) -> Vec<Term> {
    range.map(Term::from).collect()
}

#[test]
fn select_everything_and_some() {
    for (t, kind) in tables() {
        fill(&t, 1000);
        let rows: Vec<Term> = (0..1000i64).map(|i| term!({(i), (i % 10)})).collect();
        assert_eq!(sorted(t.select("[{'_',[],['$_']}]").unwrap()), rows);
        assert_eq!(sorted(t.to_vec().unwrap()), rows);
        let found = t.select("[{{'$1',3},[],['$1']}]").unwrap();
        let expected = numbers((0..1000).filter(|i| i % 10 == 3));
        if kind == "ordered_set" {
            assert_eq!(found, expected);
            let back = t.select_reverse("[{{'$1',3},[],['$1']}]").unwrap();
            assert_eq!(back, expected.into_iter().rev().collect::<Vec<_>>());
        } else {
            assert_eq!(sorted(found), expected);
        }
        assert_eq!(t.select_count("[{{'_',4},[],[true]}]").unwrap(), 100);
        assert_eq!(t.select_count("[{{'_',4},[],[yes]}]").unwrap(), 0);
        assert!(matches!(
            t.select("[{'_',[],['$1']}]"),
            Err(Error::BadSpec(_))
        ));
        assert!(matches!(t.select("[{'_',[],"), Err(Error::BadSpec(_))));
    }
}

#[test]
fn bound_keys() {
    for (t, kind) in tables() {
        fill(&t, 1000);
        t.insert(&term!({7, again})).unwrap();
        let found = t.select("[{{7,'$1'},[],['$1']},{{9,'$1'},[],['$1']},{{7,'_'},[],[no]}]");
        let expected = match kind {
            "set" | "ordered_set" => vec![term!(again), term!(9)],
            _ => vec![term!(7), term!(again), term!(9)],
        };
        assert_eq!(found.unwrap(), expected, "{kind}");
        let float = t.select("[{{7.0,'_'},[],[x]}]").unwrap();
        assert_eq!(float, []);
    }
}

#[test]
fn ranges_by_guards() {
    for (t, kind) in tables() {
        fill(&t, 1000);
        let spec = "[{{'$1','_'},[{'>=','$1',100},{'<','$1',110}],['$1']}]";
        let expected = numbers(100..110);
        let found = t.select(spec).unwrap();
        if kind == "ordered_set" {
            assert_eq!(found, expected);
            let back: Vec<Term> = expected.into_iter().rev().collect();
            assert_eq!(t.select_reverse(spec).unwrap(), back);
        } else {
            assert_eq!(sorted(found), expected);
        }
    }
}

#[test]
fn delete_and_replace() {
    for (t, kind) in tables() {
        fill(&t, 1000);
        assert_eq!(t.select_delete("[{{'_',3},[],[true]}]").unwrap(), 100);
        assert_eq!(t.len(), 900);
        assert_eq!(t.select_count("[{{'_',3},[],[true]}]").unwrap(), 0);
        let replace = "[{{'$1','$2'},[{'<','$2',2}],[{{'$1',{'+','$2',100}}}]}]";
        if kind == "bag" {
            assert_eq!(t.select_replace(replace), Err(Error::TableType));
        } else {
            assert_eq!(t.select_replace(replace).unwrap(), 200);
            assert_eq!(t.lookup(&term!(51)).unwrap(), [term!({51, 101})]);
            assert_eq!(t.len(), 900);
            let bad = "[{{'$1','$2'},[],[{{'$2','$1'}}]}]";
            assert_eq!(t.select_replace(bad), Err(Error::KeyChanged));
        }
        assert_eq!(t.select_delete("[{'_',[],[true]}]").unwrap(), 900);
        assert!(t.is_empty());
    }
}

/// Wherever a slice ends, each object is replaced once.
#[test]
fn slices_replace_each_object_once() {
    let spec = text::parse("[{{'$1','$2'},[],[{{'$1',{'+','$2',1}}}]}]").unwrap();
    let nobody = Term::from(atoms::UNDEFINED);
    let ctx = Context {
        self_pid: nobody.as_ref(),
        node: atoms::NONODE,
    };
    for (t, kind) in tables() {
        if kind == "bag" {
            continue;
        }
        // Three objects a key in a duplicate_bag, one in the others.
        let rows: Vec<Term> = (0..300i64)
            .map(|i| term!({(i / 3), (i % 3 * 1000)}))
            .collect();
        t.insert_all(&rows).unwrap();
        let rows = t.to_vec().unwrap();
        for units in 1..60 {
            let program = Program::compile(spec.as_ref()).unwrap();
            let owner = t.engine_table().owner();
            let mut job = t.engine_table().select_replace(owner, program).unwrap();
            let slice = || Budget::new(units, Duration::from_secs(9));
            while job.step(&mut slice(), &ctx).unwrap() == Step::More {}
            assert_eq!(job.count(), rows.len() as u64, "{kind}, {units} units");
            let replaced = |n: i64| t.select_count(format!("[{{{{'_',{n}}},[],[true]}}]"));
            let each = rows.len() / if kind == "duplicate_bag" { 3 } else { 1 };
            for first in [0, 1000, 2000] {
                let expected = match kind == "duplicate_bag" || first == 2000 {
                    true => each,
                    false => 0,
                };
                let found = replaced(first + i64::from(units)).unwrap();
                assert_eq!(found as usize, expected, "{kind}, {units} units");
            }
        }
    }
}

/// What is taken is what a select finds, slice by slice, and is gone.
#[test]
fn takes_are_selects_that_delete() {
    for (t, kind) in tables() {
        fill(&t, 1000);
        let spec = "[{{'$1',3},[],['$1']},{{'$1','$2'},[{'>','$2',7}],[{{'$2','$1'}}]}]";
        let expected = t.select(spec).unwrap();
        let parsed = text::parse(spec).unwrap();
        let program = Program::compile(parsed.as_ref()).unwrap();
        let owner = t.engine_table().owner();
        let mut job = t.engine_table().select_take(owner, program).unwrap();
        let nobody = Term::from(atoms::UNDEFINED);
        let ctx = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let (mut taken, mut slices) = (Vec::new(), 0);
        loop {
            let before = taken.len();
            let mut sink = |output: Output<'_>| {
                taken.push(match output {
                    Output::Term(term) => Term::from(term),
                    Output::Built(term) => term.whole_term(&mut Vec::new()),
                    Output::Object(_) => panic!("a result is a term here"),
                });
            };
            let mut budget = Budget::new(20, Duration::from_secs(9));
            let step = job.step(&mut budget, &ctx, &mut sink).unwrap();
            slices += 1;
            // What was given is gone, and nothing else.
            assert_eq!(t.len(), 1000 - taken.len());
            assert!(taken.len() - before <= 20);
            if step == Step::Done {
                break;
            }
        }
        assert!(slices > 10);
        match kind == "ordered_set" {
            true => assert_eq!(taken, expected),
            false => assert_eq!(sorted(taken), sorted(expected)),
        }
        assert_eq!(t.select_take(spec).unwrap(), []);
        let rest = t.select("[{'_',[],['$_']}]").unwrap();
        assert_eq!(
            sorted(t.select_take("[{'_',[],['$_']}]").unwrap()),
            sorted(rest)
        );
        assert!(t.is_empty());
    }
}

#[test]
fn bags_with_many_objects_a_key() {
    for (t, kind) in tables() {
        if !kind.ends_with("bag") {
            continue;
        }
        let rows: Vec<Term> = (0..3000i64).map(|i| term!({(i % 3), (i)})).collect();
        t.insert_all(&rows).unwrap();
        let found = t.select("[{{1,'$1'},[],['$1']}]").unwrap();
        assert_eq!(found, numbers((0..3000).filter(|i| i % 3 == 1)));
        assert_eq!(
            t.select_delete("[{{1,'$1'},[{'<','$1',1500}],[true]}]")
                .unwrap(),
            500
        );
        assert_eq!(
            t.select_delete("[{{'_','$1'},[{'<','$1',1500}],[true]}]")
                .unwrap(),
            1000
        );
        assert_eq!(t.len(), 1500);
        if kind == "duplicate_bag" {
            let spec = "[{{'$1','$2'},[],[{{'$1',{'+','$2',1}}}]}]";
            assert_eq!(t.select_replace(spec).unwrap(), 1500);
            let found = t.select("[{{1,'$1'},[],['$1']}]").unwrap();
            assert_eq!(
                found,
                numbers((1500..3000).filter(|i| i % 3 == 1).map(|i| i + 1))
            );
        }
    }
}

/// Runs a select in chunks, each by a new job made from the continuation of the last, one unit of
/// budget a step.
fn in_chunks(t: &Table, spec: &str, limit: usize, direction: Direction) -> Vec<Term> {
    let spec = text::parse(spec).unwrap();
    let program = Program::compile(spec.as_ref()).unwrap();
    let nobody = Term::from(atoms::UNDEFINED);
    let ctx = Context {
        self_pid: nobody.as_ref(),
        node: atoms::NONODE,
    };
    let table = t.engine_table();
    let who = table.owner();
    let mut found = Vec::new();
    let mut continuation: Option<Vec<u8>> = None;
    loop {
        let program = program.clone();
        let mut job = match &continuation {
            None => table.select(who, program, direction, Some(limit)),
            Some(at) => table.select_resume(who, program, direction, Some(limit), at),
        }
        .unwrap();
        let before = found.len();
        loop {
            let mut budget = Budget::new(3, Duration::from_secs(1));
            let step = job.step(&mut budget, &ctx, &mut |output| {
                found.push(match output {
                    Output::Term(term) => Term::from(term),
                    Output::Built(term) => term.whole_term(&mut Vec::new()),
                    Output::Object(_) => panic!("the body is no '$_'"),
                });
            });
            match step.unwrap() {
                ScanStep::More => continue,
                ScanStep::Limit => break,
                ScanStep::Done => return found,
            }
        }
        assert_eq!(found.len() - before, limit);
        continuation = job.continuation();
    }
}

#[test]
fn chunks_and_slices_give_the_same() {
    for (t, kind) in tables() {
        // A table without order gives everything in none, and chunks in that of its index.
        let comparable = |found: Vec<Term>| match kind {
            "ordered_set" => found,
            _ => sorted(found),
        };
        fill(&t, 200);
        t.insert_all(&[term!({5, a}), term!({5, b}), term!({5, c})])
            .unwrap();
        for spec in [
            "[{{'$1','$2'},[],[{{'$1','$2'}}]}]",
            "[{{5,'$2'},[],['$2']},{{9,'$2'},[],['$2']},{{1000,'$2'},[],['$2']}]",
            "[{{'$1','$2'},[{'>','$1',50},{'=<','$1',120}],['$1']}]",
            "[{{'_',none},[],[x]}]",
        ] {
            let whole = comparable(t.select(spec).unwrap());
            let reverse = comparable(t.select_reverse(spec).unwrap());
            for limit in [1, 2, 3, 7, 1000] {
                assert_eq!(
                    comparable(in_chunks(&t, spec, limit, Direction::Forward)),
                    whole,
                    "{t:?} {spec} {limit}"
                );
                assert_eq!(
                    comparable(in_chunks(&t, spec, limit, Direction::Backward)),
                    reverse,
                    "{t:?} {spec} {limit}"
                );
            }
        }
    }
}

/// Slices of a bag end within keys of several objects, and of many, while others come and go there:
/// each object that stays is visited exactly once, and those of a key in order.
#[test]
fn slices_of_a_bag_meet_what_stays_exactly_once() {
    const STAY: i64 = 2000;
    let spec = text::parse("[{{'$1','$2'},[{'<','$2',2000}],['$_']}]").unwrap();
    let program = Program::compile(spec.as_ref()).unwrap();
    let key_of = |i: i64| match i % 3 {
        0 => i,
        1 => 10_000 + i / 20,
        _ => 20_000 + i % 7,
    };
    let bags = tables()
        .into_iter()
        .filter(|(_, kind)| kind.ends_with("bag"));
    for (t, kind) in bags {
        for (units, limit) in [
            (1, None),
            (7, None),
            (100, None),
            (1000, None),
            (50, Some(5)),
        ] {
            let row = |i: i64| term!({(key_of(i)), (i)});
            (0..STAY).for_each(|i| t.insert(&row(i)).unwrap());
            let (table, mut found, mut turn) = (t.engine_table(), Vec::new(), 0);
            let way = Direction::Forward;
            let mut select = table
                .select(table.owner(), program.clone(), way, limit)
                .unwrap();
            loop {
                let mut sink = |output: Output<'_>| match output {
                    Output::Object(object) => {
                        let number = object.element(2).unwrap();
                        found.push(format!("{{{},{number}}}", object.key()));
                    }
                    Output::Term(_) | Output::Built(_) => panic!("the body is '$_'"),
                };
                let mut budget = Budget::new(units, Duration::from_secs(9));
                match select
                    .step(&mut budget, &Context::none(), &mut sink)
                    .unwrap()
                {
                    ScanStep::Done => break,
                    ScanStep::Limit => select.set_limit(limit),
                    ScanStep::More => {}
                }
                // Lists move to the value tree by others, and back when those go.
                let others = (0..40).map(|i| STAY + 3 * turn + 7 * i);
                let rows: Vec<Term> = others.map(row).collect();
                match turn % 4 {
                    0 if turn < 200 => t.insert_all(&rows).unwrap(),
                    1 | 2 => rows.iter().for_each(|row| {
                        t.delete_object(row).unwrap();
                    }),
                    _ => {}
                }
                turn += 1;
            }
            let mut expected: Vec<String> = (0..STAY).map(|i| row(i).to_string()).collect();
            let in_order = |rows: &[String], key: i64| -> Vec<String> {
                let begin = format!("{{{key},");
                let rows = rows.iter().filter(|row| row.starts_with(&begin));
                rows.cloned().collect()
            };
            for key in [0, 10_000, 10_050, 20_000, 20_006] {
                let (left, right) = (in_order(&found, key), in_order(&expected, key));
                assert_eq!(left, right, "{kind} {units}");
            }
            expected.sort();
            found.sort();
            assert!(found == expected, "{kind} {units} {limit:?}");
            t.clear().unwrap();
        }
    }
}

/// A scan for everything stops within leaves that it takes in no order, while these split and
/// merge: each object that stays is visited exactly once, by a select, a count and a delete.
#[test]
fn slices_without_order_meet_what_stays_exactly_once() {
    const STAY: i64 = 3000;
    let spec = text::parse("[{{'$1','_'},[{'<','$1',3000}],['$1']}]").unwrap();
    let program = Program::compile(spec.as_ref()).unwrap();
    let spec = text::parse("[{{'$1','_'},[{'<','$1',3000}],[true]}]").unwrap();
    let test = Program::compile(spec.as_ref()).unwrap();
    for (t, kind) in tables() {
        for units in [1, 7, 100, 1000] {
            fill(&t, STAY);
            let table = t.engine_table();
            let owner = table.owner();
            let mut select = table
                .select(owner, program.clone(), Direction::Forward, None)
                .unwrap();
            let mut count = table.select_count(owner, test.clone()).unwrap();
            let (mut found, mut turn, mut open) = (Vec::new(), 0, (true, true));
            while open.0 || open.1 {
                let budget = || Budget::new(units, Duration::from_secs(9));
                open.0 = open.0 && {
                    let mut sink = |output: Output<'_>| match output {
                        Output::Term(term) => found.push(Term::from(term)),
                        Output::Built(term) => found.push(term.whole_term(&mut Vec::new())),
                        Output::Object(_) => panic!("the body is no '$_'"),
                    };
                    let step = select.step(&mut budget(), &Context::none(), &mut sink);
                    step.unwrap() == ScanStep::More
                };
                open.1 = open.1 && {
                    let step = count.step(&mut budget(), &Context::none());
                    step.unwrap() == larder::host::Step::More
                };
                // Others come, and go again.
                let others = (0..units as i64 / 2 + 1).map(|i| STAY + 1000 * turn + i);
                let rows: Vec<Term> = others.map(|i| term!({(i), x})).collect();
                match turn {
                    0..40 => t.insert_all(&rows).unwrap(),
                    40 => {
                        let gone = t.select_delete("[{{'$1','_'},[{'>=','$1',3000}],[true]}]");
                        assert!(gone.unwrap() > 0);
                    }
                    _ => {}
                }
                turn += 1;
            }
            let all = numbers(0..STAY);
            assert!(sorted(found) == all, "{kind} {units}");
            // A slice ends when its units are spent, and a twentieth more at most.
            let most = i64::from(units) * 21 / 20 + 1;
            assert!(turn >= STAY / most, "{kind} {units}: {turn} slices");
            assert_eq!(count.count(), STAY as u64, "{kind} {units}");
            let mut delete = table.select_delete(owner, test.clone()).unwrap();
            let budget = || Budget::new(units, Duration::from_secs(9));
            while delete.step(&mut budget(), &Context::none()).unwrap() == larder::host::Step::More
            {
            }
            assert_eq!(delete.count(), STAY as u64, "{kind} {units}");
            t.clear().unwrap();
        }
    }
}

#[test]
fn continuations_that_are_none() {
    for (t, _) in tables() {
        fill(&t, 10);
        let spec = text::parse("[{'_',[],['$_']}]").unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        let table = t.engine_table();
        for bytes in [
            &[][..],
            &[1],
            &[9; 20],
            &[1, 0, 0, 0, 0, 0, 0, 0, 0],
            &[1; 9],
            &[0; 10],
        ] {
            let program = program.clone();
            let job = table.select_resume(table.owner(), program, Direction::Forward, None, bytes);
            assert!(
                matches!(job.err(), Some(Error::BadContinuation)),
                "{bytes:?}"
            );
        }
    }
}

/// A scan of keys that was interrupted goes on where it was, though the table has become empty.
#[test]
fn continuations_outlive_the_objects() {
    for (t, _) in tables() {
        fill(&t, 10);
        let spec = text::parse("[{{7,'_'},[],[a]},{{8,'_'},[],[a]},{{9,'_'},[],[a]}]").unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        let (table, nobody) = (t.engine_table(), Term::from(atoms::UNDEFINED));
        let ctx = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let way = Direction::Forward;
        let mut job = table
            .select(table.owner(), program.clone(), way, Some(2))
            .unwrap();
        let mut found = 0;
        let mut step = |job: &mut larder::host::SelectJob| {
            let mut budget = Budget::new(100, Duration::from_secs(1));
            let step = job.step(&mut budget, &ctx, &mut |_| found += 1).unwrap();
            (step, found)
        };
        assert_eq!(step(&mut job), (ScanStep::Limit, 2));
        let place = job.continuation().unwrap();
        t.clear().unwrap();
        let again = table.select_resume(table.owner(), program, way, Some(2), &place);
        assert_eq!(step(&mut again.unwrap()), (ScanStep::Done, 2));
        // Nothing is found among objects that come and go, and then what has come.
        let keys = "[{{'$1','_'},[],['$1']}]";
        assert_eq!(t.select(keys).unwrap(), numbers(0..0));
        fill(&t, 1);
        assert_eq!(t.select(keys).unwrap(), numbers(0..1));
    }
}

/// Pages of any size give what `select` gives, in its order, while others write before and after
/// them.
#[test]
fn rows_come_in_pieces() {
    let larder = Larder::new();
    let table = larder.table("t").ordered_set().create().unwrap();
    let rows: Vec<_> = (0..1000).map(|n| term!({(n), (n % 3)})).collect();
    table.insert_all(&rows).unwrap();
    let spec = "[{{'$1',1},[],['$_']}]";
    for direction in [Direction::Forward, Direction::Backward] {
        let all = match direction {
            Direction::Forward => table.select(spec).unwrap(),
            Direction::Backward => table.select_reverse(spec).unwrap(),
        };
        for most in [1, 7, 333, 334, 5000] {
            let mut pages = table.rows(spec, direction).unwrap();
            let mut found: Vec<Term> = Vec::new();
            assert!(pages.page(0).unwrap().is_empty(), "none were asked for");
            loop {
                let page = pages.page(most).unwrap();
                assert!(page.len() <= most);
                if page.is_empty() {
                    break;
                }
                assert!(page.len() == most || found.len() + page.len() == all.len());
                found.extend(page);
            }
            assert_eq!(found, all, "{most} at a time");
            assert!(pages.rest().unwrap().is_empty());
        }
    }
    let mut pages = table.all_rows(Direction::Forward).unwrap();
    assert_eq!(pages.page(10).unwrap(), rows[..10]);
    table.insert(&term!({(-1), passed})).unwrap();
    table.delete(&term!(10)).unwrap();
    assert_eq!(pages.rest().unwrap(), rows[11..]);
}

/// A page may have any number of results.
#[test]
fn a_page_has_as_many_results_as_there_are() {
    for (t, kind) in tables() {
        let rows: Vec<Term> = match kind {
            "bag" | "duplicate_bag" => (0..20_000).map(|i| term!({1, (i)})).collect(),
            _ => (0..20_000).map(|i| term!({(i), 1})).collect(),
        };
        t.insert_all(&rows).unwrap();
        let spec = "[{{'$1','$2'},[],['$2']}]";
        let mut rows = t.rows(spec, Direction::Forward).unwrap();
        assert_eq!(rows.page(usize::MAX).unwrap().len(), 20_000, "{kind}");
        let mut rows = t
            .rows("[{{1,'$2'},[],['$2']}]", Direction::Forward)
            .unwrap();
        let of_one = rows.page(usize::MAX).unwrap().len();
        assert_eq!(
            of_one,
            if kind.ends_with("bag") { 20_000 } else { 1 },
            "{kind}"
        );
    }
}

/// A search for a key that isn't there is work, too: slices end among many of them.
#[test]
fn slices_end_among_keys_without_objects() {
    let nobody = Term::from(atoms::UNDEFINED);
    let ctx = Context {
        self_pid: nobody.as_ref(),
        node: atoms::NONODE,
    };
    let keys: Vec<String> = (0..2_000).map(|k| format!("{{'=:=','$1',{k}}}")).collect();
    let keys = keys.join(",");
    let spec = format!("[{{{{'$1','_'}},[{{'orelse',{keys}}}],[true]}}]");
    let spec = text::parse(&spec).unwrap();
    for (t, kind) in tables() {
        t.insert_all(&[term!({1, a}), term!({1_999, b})]).unwrap();
        let table = t.engine_table();
        let program = || Program::compile(spec.as_ref()).unwrap();
        // A row takes some units, since the program is long.
        let budget = || Budget::new(500, Duration::from_secs(60));
        let (mut slices, mut found) = (0, 0);
        let mut job = table
            .select(table.owner(), program(), Direction::Forward, None)
            .unwrap();
        while job.step(&mut budget(), &ctx, &mut |_| found += 1).unwrap() == ScanStep::More {
            slices += 1;
        }
        assert!(found == 2 && slices > 2, "{kind}: {slices} slices");
        let mut job = table.select_delete(table.owner(), program()).unwrap();
        slices = 0;
        while job.step(&mut budget(), &ctx).unwrap() == Step::More {
            slices += 1;
        }
        assert!(
            job.count() == 2 && slices > 2,
            "{kind}: {slices} slices of a delete"
        );
    }
}
