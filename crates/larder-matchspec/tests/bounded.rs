//! Deep, long and wide specifications: compiled without recursion, refused where `ets` refuses
//! them, and never out of proportion.

mod common;

use common::run;
use larder_matchspec::{Fault, KeyAccess, Plan, Program};
use larder_term::{Term, TermBuf};
use std::time::{Duration, Instant};

/// `depth` layers around a term, from the inside out.
fn nest(depth: usize, inner: &str, layer: impl Fn(&mut larder_term::Encoder<'_>)) -> Term {
    let inner: Term = inner.parse().unwrap();
    let mut buffer = TermBuf::new(larder_term::Mode::Inline);
    buffer.encode(|enc| {
        (0..depth).for_each(|_| layer(enc));
        enc.term(inner.as_ref());
    });
    buffer.into_term().unwrap()
}

fn atom(text: &str) -> Term {
    Term::atom(text)
}

fn spec(head: Term, guards: Vec<Term>, body: Term) -> Term {
    Term::list([Term::tuple([head, Term::list(guards), Term::list([body])])])
}

fn tuples(depth: usize, inner: &str) -> Term {
    nest(depth, inner, |enc| enc.begin_tuple(1))
}

fn lists(depth: usize, inner: &str) -> Term {
    nest(depth, inner, |enc| enc.begin_list(1))
}

fn nots(depth: usize) -> Term {
    let not = larder_term::Atom::new("not");
    nest(depth, "'$1'", |enc| {
        enc.begin_tuple(2);
        enc.atom(not);
    })
}

fn in_time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{what} took {:?}",
        start.elapsed()
    );
    result
}

/// Fails if `work` takes longer than `limit` five times in a row. Other programs may hold up some
/// of the attempts.
fn quickly<T>(limit: Duration, work: impl Fn() -> T) -> T {
    let mut times = Vec::new();
    while times.len() < 5 {
        let start = Instant::now();
        let result = work();
        let time = start.elapsed();
        if time < limit {
            return result;
        }
        times.push(time);
    }
    panic!("the limit is {limit:?}, the attempts took {times:?}");
}

#[test]
fn heads_may_be_nested_to_any_depth() {
    for depth in [1_000, 1_000_000] {
        for nested in [tuples, lists] {
            let program = in_time("compiling", || {
                Program::compile(
                    spec(Term::tuple([nested(depth, "'$1'")]), vec![], atom("$1")).as_ref(),
                )
                .unwrap()
            });
            let object = Term::tuple([nested(depth, "here")]);
            assert_eq!(run(&program, &object), Some(atom("here")));
            assert_eq!(
                run(&program, &Term::tuple([nested(depth - 1, "here")])),
                None
            );
            in_time("planning", || program.plan(1, KeyAccess::Ordered));
            in_time("proving", || program.replace_keeps_key(1));
        }
    }
}

/// Parameters at all levels, the innermost of which is the tail of a list.
#[test]
fn parameters_may_be_nested_to_any_depth() {
    let bind = larder_term::Atom::new("bind");
    let nested = nest(100_000, "[a|{bind,2}]", |enc| {
        enc.begin_list(2);
        enc.begin_tuple(2);
        enc.atom(bind);
        enc.int(1);
    });
    let spec = spec(Term::tuple([nested]), vec![], atom("$_"));
    let prepared = quickly(Duration::from_secs(2), || {
        larder_matchspec::Prepared::compile(spec.as_ref()).unwrap()
    });
    assert_eq!(prepared.parameters(), 2);
}

#[test]
fn constants_may_be_nested_to_any_depth() {
    let deep = tuples(1_000_000, "x");
    let constant = Term::tuple([atom("const"), deep.clone()]);
    let guard = Term::tuple([atom("=:="), atom("$1"), constant.clone()]);
    let program =
        Program::compile(spec(Term::tuple([atom("$1")]), vec![guard], constant).as_ref()).unwrap();
    assert!(run(&program, &Term::tuple([deep.clone()])) == Some(deep));
    in_time("planning", || program.plan(1, KeyAccess::Ordered));
}

#[test]
fn expressions_are_refused_where_ets_refuses_them() {
    let compile = |guards: Vec<Term>, body: Term| {
        Program::compile(spec(Term::tuple([atom("$1")]), guards, body).as_ref()).map(|_| ())
    };
    let too_deep = |result: Result<(), larder_matchspec::CompileError>| matches!(result, Err(error) if error.what == Fault::TooDeep);
    assert!(compile(vec![nots(1_000)], atom("ok")).is_ok());
    assert!(compile(vec![], tuples(1_000, "'$1'")).is_ok());
    assert!(compile(vec![], lists(1_000, "'$1'")).is_ok());
    for depth in [10_000, 1_000_000] {
        assert!(too_deep(compile(vec![nots(depth)], atom("ok"))));
        assert!(too_deep(compile(vec![], nots(depth))));
        assert!(too_deep(compile(vec![], tuples(2 * depth, "'$1'"))));
        assert!(too_deep(compile(vec![], tuples(2 * depth, "1"))));
        assert!(too_deep(compile(vec![], lists(depth, "'$1'"))));
    }
}

#[test]
fn long_literals_are_no_depth() {
    let numbers: Vec<Term> = (0..200_000i64).map(Term::from).collect();
    let body = Term::list(numbers.clone());
    let program = in_time("compiling", || {
        Program::compile(spec(atom("_"), vec![], body.clone()).as_ref()).unwrap()
    });
    assert_eq!(run(&program, &Term::tuple([atom("a")])), Some(body));
}

#[test]
fn a_large_constant_deep_in_a_body_is_copied_once() {
    // Copied at every level, the result would take gigabytes.
    let large = Term::binary(&vec![7; 1 << 20]);
    let wrapped = {
        let mut buffer = TermBuf::new(larder_term::Mode::Inline);
        buffer.encode(|enc| {
            for _ in 0..2_000 {
                enc.begin_tuple(1);
                enc.begin_tuple(1);
            }
            enc.begin_tuple(1);
            enc.begin_tuple(2);
            enc.atom(larder_term::Atom::new("$1"));
            enc.term(large.as_ref());
        });
        buffer.into_term().unwrap()
    };
    let program = in_time("compiling", || {
        Program::compile(spec(Term::tuple([atom("$1")]), vec![], wrapped).as_ref()).unwrap()
    });
    let found = in_time("running", || run(&program, &Term::tuple([atom("a")]))).unwrap();
    assert!(found.bytes().len() < 2 * (1 << 20));
}

#[test]
fn tails_of_long_lists_are_not_copied() {
    let mut expression = atom("$1");
    for _ in 0..2_000 {
        expression = Term::tuple([atom("tl"), expression]);
    }
    let body = Term::tuple([atom("length"), expression]);
    let program = Program::compile(spec(Term::tuple([atom("$1")]), vec![], body).as_ref()).unwrap();
    let row = Term::tuple([Term::list(
        (0..100_000i64).map(Term::from).collect::<Vec<_>>(),
    )]);
    assert_eq!(
        in_time("running", || run(&program, &row)),
        Some(Term::from(98_000i64))
    );
}

#[test]
fn many_clauses_and_many_variables() {
    let variables: Vec<Term> = (0..2_000).map(|n| atom(&format!("${n}"))).collect();
    let clause = Term::tuple([
        Term::tuple(variables),
        Term::nil(),
        Term::list([atom("$$")]),
    ]);
    let clauses = vec![clause; 200];
    let program = in_time("compiling", || {
        Program::compile(Term::list(clauses).as_ref()).unwrap()
    });
    let row = Term::tuple((0..2_000i64).map(Term::from).collect::<Vec<_>>());
    let found = run(&program, &row).unwrap();
    assert_eq!(found.as_ref().as_list().unwrap().len(), 2_000);
}

/// The elements of a wide row from the last one on, and those at both ends in turn.
#[test]
fn a_wide_row_is_not_walked_over_again_and_again() {
    const N: usize = 50_000;
    let variable = |n: usize| atom(&format!("${n}"));
    let variables = || (0..N).map(variable);
    let backwards = Term::tuple([Term::tuple(variables().rev().collect::<Vec<_>>())]);
    let ends = |_| Term::tuple([atom("<"), variable(0), variable(N - 1)]);
    let numbers = || (0..N).map(|n| Term::int(n as i64));
    let row = Term::tuple(numbers().collect::<Vec<_>>());
    let turned = Term::tuple(numbers().rev().collect::<Vec<_>>());
    for (guards, body, found) in [
        (vec![], backwards, turned),
        ((0..N).map(ends).collect(), atom("ok"), atom("ok")),
    ] {
        let head = Term::tuple(variables().collect::<Vec<_>>());
        let program = in_time("compiling", || {
            Program::compile(spec(head, guards, body).as_ref()).unwrap()
        });
        let result = quickly(Duration::from_secs(1), || run(&program, &row));
        assert!(result == Some(found));
    }
}

/// A long prefix with many facts of what comes after it, and as many variables that others are
/// equal to.
#[test]
fn a_long_key_and_many_facts() {
    const N: usize = 20_000;
    let number = |n: usize| Term::int(n as i64);
    let variables = (1..N).map(|n| atom(&format!("${n}")));
    let open = Term::tuple([Term::binary(&vec![7; 1 << 20]), atom("$0")]);
    let key = Term::tuple(variables.chain([open, atom("_")]).collect::<Vec<_>>());
    let equal = |n| Term::tuple([atom("=:="), atom(&format!("${n}")), number(n)]);
    let more = |n| Term::tuple([atom(">"), atom("$0"), number(n)]);
    // The first variable of all is looked for last.
    let guards: Vec<Term> = (1..N).map(equal).chain((0..N).map(more)).collect();
    let program = in_time("compiling", || {
        Program::compile(spec(Term::tuple([key]), guards, atom("$$")).as_ref()).unwrap()
    });
    let plan = quickly(Duration::from_secs(1), || {
        program.plan(1, KeyAccess::Ordered)
    });
    let row = |last: usize| {
        let known = (1..N).map(number);
        let open = Term::tuple([Term::binary(&vec![7; 1 << 20]), number(last)]);
        Term::tuple(known.chain([open, Term::nil()]).collect::<Vec<_>>())
    };
    assert!(plan.covers(row(N).as_ref(), KeyAccess::Ordered));
    assert!(!plan.covers(row(N - 1).as_ref(), KeyAccess::Ordered));
}

/// Many keys, and as many facts about them.
#[test]
fn many_keys_and_many_facts() {
    const N: i64 = 20_000;
    let fact = |cmp, n| Term::tuple([atom(cmp), atom("$1"), Term::int(n)]);
    let equal = (0..N).map(|n| fact("=:=", n));
    let either = Term::tuple(
        std::iter::once(atom("orelse"))
            .chain(equal)
            .collect::<Vec<_>>(),
    );
    // They exclude none of the keys.
    let others = (N..2 * N).map(|n| fact("/=", n));
    let guards: Vec<Term> = std::iter::once(either).chain(others).collect();
    let program = in_time("compiling", || {
        let head = Term::tuple([atom("$1")]);
        Program::compile(spec(head, guards, atom("$$")).as_ref()).unwrap()
    });
    for access in [KeyAccess::Hash, KeyAccess::Ordered] {
        let plan = quickly(Duration::from_secs(1), || program.plan(1, access));
        assert!(matches!(plan, Plan::Keys(keys) if keys.len() == N as usize));
    }
    // Of few keys all facts are looked at.
    let few = spec(
        Term::tuple([atom("$1")]),
        (0..N)
            .map(|n| fact("=/=", n))
            .chain([fact("=:=", N - 1)])
            .collect(),
        atom("$$"),
    );
    let few = Program::compile(few.as_ref()).unwrap();
    assert_eq!(few.plan(1, KeyAccess::Hash), Plan::Nothing);
}

/// The keys of a pattern may be in another order than those of the row's map, as a map of the
/// host's has them.
#[test]
fn wide_maps_in_another_order() {
    let count = 100_000;
    let map = |keys: &mut dyn Iterator<Item = i64>, hole: i64| {
        let map = Term::build(|enc| {
            enc.begin_sorted_map(count as usize);
            for key in keys {
                enc.int(key);
                match key == hole {
                    true => enc.atom(larder_term::atoms::V1),
                    false => enc.int(key + 1),
                }
            }
        });
        Term::tuple([atom("k"), map.unwrap()])
    };
    let row = map(&mut (0..count), -1);
    let matched = |pattern: Term| {
        let program = Program::compile(spec(pattern, vec![], atom("$1")).as_ref()).unwrap();
        in_time("a map in another order", || run(&program, &row))
    };
    for hole in [0, 7, count - 1] {
        let pattern = map(&mut (0..count).rev(), hole);
        assert_eq!(matched(pattern), Some(Term::from(hole + 1)));
    }
    assert_eq!(matched(map(&mut (1..=count).rev(), 7)), None);
}
