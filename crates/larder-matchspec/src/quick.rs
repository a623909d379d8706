//! Quick forms: clauses that are decided on a row's bytes, element by element, without the machine.
//!
//! Most specifications that go over whole tables ask little of a row: that an element is a constant, that another compares so with
//! an integer, that a third is an atom. Such a clause becomes a list of tests by position, taken in one pass over the row that goes
//! no further than the last element of a test, or the first test that fails:
//!
//! ```text
//!   [{{'$1',on,'_','$2'}, [{'>','$1',10}, {is_atom,'$2'}], ['$1']}]
//!
//!   arity 4 · 1: > 10 · 2: on · 4: an atom · gives element 1
//! ```
//!
//! Invariants:
//!
//! 1. A test neither fails otherwise than by being false, nor has an effect: so guards may be tested in any order, and `and` is
//!    `andalso`.
//! 2. A program has quick forms for all its clauses or for none; what they give is what the machine would give.
//!
//! Whatever else a specification asks is left to the machine.

use crate::{
    builtins,
    func::{Cmp, Func},
    gen::{Op, Operand},
    head::{Match, Shape, Step},
    program::{Clause, Outcome},
    raw,
    row::Row,
    source::Span,
    value::{Scratch, TRUE},
    wire::{self, Short},
};
use larder_term::tags;

/// A clause in its quick form.
#[derive(Debug)]
pub(crate) struct Quick {
    /// How many elements a row has to have; `None` for any number.
    arity: Option<usize>,
    /// By position, ascending.
    tests: Vec<Test>,
    gives: Gives,
}

/// What an element has to be.
#[derive(Debug, Clone, Copy)]
struct Test {
    position: usize,
    is: Is,
}

#[derive(Debug, Clone, Copy)]
enum Is {
    /// These bytes; or, for `false`, others.
    Bytes(Span, bool),
    /// Identical to a constant that may have other bytes.
    Term(Span),
    /// So compared to an integer.
    Int(Cmp, i64),
    /// A term with such a tag.
    Tag(fn(u8) -> bool),
}

/// What a row gives.
#[derive(Debug)]
enum Gives {
    True,
    Object,
    Constant(Span),
    Element(usize),
    /// The list of elements at these positions, which ascend.
    List(Vec<usize>),
}

impl Quick {
    /// The quick forms of all clauses, if each has one.
    pub(crate) fn of(clauses: &[Clause], pool: &[u8]) -> Option<Vec<Quick>> {
        clauses.iter().map(|clause| quick(clause, pool)).collect()
    }

    /// Whether the row fits.
    #[inline]
    fn fits(&self, row: &Row<'_>, pool: &[u8]) -> bool {
        if self
            .arity
            .is_some_and(|arity| row.tuple_arity() != Some(arity))
        {
            return false;
        }
        let mut cursor = row.cursor();
        self.tests
            .iter()
            .all(|test| test.is.so(cursor.seek(test.position), pool))
    }
}

impl Is {
    /// Whether the first term of a run is so.
    #[inline]
    fn so(self, run: &[u8], pool: &[u8]) -> bool {
        match self {
            Is::Int(cmp, n) => match wire::int(run) {
                Some(value) => builtins::compare_ints(cmp, value, n),
                None => compares(cmp, run, n),
            },
            // The encoding is free of prefixes: a run that begins with the bytes begins with the term.
            Is::Bytes(span, is) => begins(run, &pool[span.range()]) == is,
            Is::Tag(has) => run.first().is_some_and(|&tag| has(tag)),
            Is::Term(span) => {
                let wanted = &pool[span.range()];
                begins(run, wanted) || raw::view(run).identical(raw::whole(wanted))
            }
        }
    }
}

/// Whether a run begins with some bytes, which are few as a rule: a loop is quicker than a call then.
#[inline]
fn begins(run: &[u8], bytes: &[u8]) -> bool {
    match run.get(..bytes.len()) {
        None => false,
        Some(begin) if bytes.len() <= 16 => begin.iter().zip(bytes).all(|(a, b)| a == b),
        Some(begin) => begin == bytes,
    }
}

/// The comparison of what is no small integer with one.
#[cold]
fn compares(cmp: Cmp, run: &[u8], n: i64) -> bool {
    builtins::compare_flat(cmp, raw::view(run), raw::whole(Short::int(n).bytes()))
}

/// Runs the quick forms of a program on a row; `None` if no clause fits.
#[inline]
pub(crate) fn run<'s>(
    quick: &'s [Quick],
    pool: &'s [u8],
    row: &Row<'s>,
    scratch: &'s mut Scratch,
) -> Option<Outcome<'s>> {
    let quick = quick.iter().find(|quick| quick.fits(row, pool))?;
    Some(match &quick.gives {
        Gives::True => Outcome::Term(raw::whole(TRUE)),
        Gives::Object => Outcome::Object,
        Gives::Constant(span) => Outcome::Term(raw::whole(&pool[span.range()])),
        Gives::Element(position) => Outcome::Term(raw::view(row.cursor().seek(*position))),
        Gives::List(positions) => list(positions, row, scratch),
    })
}

/// Whether the first clause that fits gives `true`.
#[inline]
pub(crate) fn is_true(quick: &[Quick], pool: &[u8], row: &Row<'_>) -> bool {
    match quick.iter().find(|quick| quick.fits(row, pool)) {
        None => false,
        Some(quick) => match quick.gives {
            Gives::True => true,
            Gives::Element(position) => begins(row.cursor().seek(position), TRUE),
            Gives::Object | Gives::Constant(_) | Gives::List(_) => false,
        },
    }
}

fn list<'s>(positions: &[usize], row: &Row<'s>, scratch: &'s mut Scratch) -> Outcome<'s> {
    let arena = &mut scratch.arena;
    arena.clear();
    wire::push_head(arena, tags::LIST, positions.len());
    let mut cursor = row.cursor();
    for &position in positions {
        let (element, left) = wire::split(cursor.seek(position));
        arena.extend_from_slice(element);
        cursor.passed(position, left);
    }
    Outcome::Term(raw::whole(arena))
}

/// The quick form of a clause, if it has one.
fn quick(clause: &Clause, pool: &[u8]) -> Option<Quick> {
    let mut form = Form {
        pool,
        places: vec![None; clause.head.variables.len()],
        tests: Vec::new(),
    };
    let arity = form.head(&clause.head)?;
    form.guards(clause.checks())?;
    let gives = form.gives(clause.result(), arity.is_none())?;
    form.tests.sort_by_key(|test| test.position);
    Some(Quick {
        arity,
        tests: form.tests,
        gives,
    })
}

/// A quick form in the making.
struct Form<'a> {
    pool: &'a [u8],
    /// The position that each variable is bound at.
    places: Vec<Option<usize>>,
    tests: Vec<Test>,
}

impl Form<'_> {
    /// The arity that a head asks for (`Some(None)` for none), once its tests are noted.
    fn head(&mut self, head: &Match) -> Option<Option<usize>> {
        let (arity, elements) = match &head.shape {
            Shape::Any => return Some(None),
            Shape::Other => return None,
            Shape::Tuple { arity, elements } => (*arity, elements),
        };
        for element in elements {
            let position = element.position;
            let is = match head.steps[element.steps.clone()] {
                [Step::Bind(slot)] => {
                    self.places[slot as usize] = Some(position);
                    continue;
                }
                [Step::Eq(span)] => Is::Bytes(span, true),
                [Step::EqTerm(span)] => Is::Term(span),
                _ => return None,
            };
            self.tests.push(Test { position, is });
        }
        Some(Some(arity))
    }

    /// Notes the tests that guards are, if they are nothing else.
    fn guards(&mut self, ops: &[Op]) -> Option<()> {
        let mut at = 0;
        while let Some(&op) = ops.get(at) {
            at = match op {
                Op::CheckInt(cmp, slot, n) => {
                    self.test(slot, Is::Int(cmp, n))?;
                    at + 1
                }
                _ => self.guard(ops, at)?,
            };
        }
        Some(())
    }

    /// One guard: values joined by `andalso` or by `and`, and the check. Gives the place behind it.
    fn guard(&mut self, ops: &[Op], mut at: usize) -> Option<usize> {
        let mut waiting = 0;
        loop {
            at = self.value(ops, at)?;
            waiting += 1;
            match *ops.get(at)? {
                Op::Check if waiting == 1 => return Some(at + 1),
                Op::And(n) if n == waiting && ops.get(at + 1) == Some(&Op::Check) => {
                    return Some(at + 2)
                }
                Op::AndAlso(to) if waiting == 1 && leads_to_check(ops, to) => {
                    at += 1;
                    waiting = 0;
                }
                _ => {}
            }
        }
    }

    /// Notes the test that a value is; the place behind it.
    fn value(&mut self, ops: &[Op], at: usize) -> Option<usize> {
        match ops[at..] {
            [Op::CompareInt(cmp, slot, n), ..] => {
                self.test(slot, Is::Int(cmp, n))?;
                Some(at + 1)
            }
            [Op::Push(Operand::Var(slot)), Op::Push(Operand::Const(span)), Op::Call(Func::Cmp(cmp), 2), ..]
            | [Op::Push(Operand::Const(span)), Op::Push(Operand::Var(slot)), Op::Call(Func::Cmp(cmp), 2), ..] =>
            {
                let is = self.constant(cmp, span)?;
                self.test(slot, is)?;
                Some(at + 3)
            }
            [Op::Push(Operand::Var(slot)), Op::Call(func, 1), ..] => {
                self.test(slot, Is::Tag(tag_test(func)?))?;
                Some(at + 2)
            }
            _ => None,
        }
    }

    fn test(&mut self, slot: u32, is: Is) -> Option<()> {
        let position = self.places[slot as usize]?;
        self.tests.push(Test { position, is });
        Some(())
    }

    /// Equality with a constant that equals nothing with other bytes: an atom or a short binary.
    fn constant(&self, cmp: Cmp, span: Span) -> Option<Is> {
        let bytes = &self.pool[span.range()];
        let plain = matches!(
            bytes.first(),
            Some(&(tags::ATOM1..=tags::ATOM4 | tags::BIN))
        ) && !wire::may_hold_handles(bytes);
        match cmp {
            Cmp::Same | Cmp::Eq if plain => Some(Is::Bytes(span, true)),
            Cmp::NotSame | Cmp::Ne if plain => Some(Is::Bytes(span, false)),
            _ => None,
        }
    }

    /// What a body gives. `any`: the head takes any row, so there are no variables.
    fn gives(&self, ops: &[Op], any: bool) -> Option<Gives> {
        match *ops {
            [Op::Push(Operand::Object)] => Some(Gives::Object),
            [Op::Push(Operand::Const(span))] if self.pool[span.range()] == *TRUE => {
                Some(Gives::True)
            }
            [Op::Push(Operand::Const(span))] => Some(Gives::Constant(span)),
            [Op::Push(Operand::Var(slot))] => self.places[slot as usize].map(Gives::Element),
            [Op::Push(Operand::Bindings)] if !any => {
                let positions: Vec<usize> = self.places.iter().copied().collect::<Option<_>>()?;
                let usable = !positions.is_empty() && positions.is_sorted();
                usable.then_some(Gives::List(positions))
            }
            _ => None,
        }
    }
}

/// Whether a jump with `false` leads to a check, which then fails the clause.
fn leads_to_check(ops: &[Op], mut to: u32) -> bool {
    // Jumps lead forward: each round is further on.
    while let Some(Op::AndAlso(next)) = ops.get(to as usize) {
        to = *next;
    }
    ops.get(to as usize) == Some(&Op::Check)
}

/// The test of a tag that a function of one argument is.
fn tag_test(func: Func) -> Option<fn(u8) -> bool> {
    Some(match func {
        Func::IsAtom => |tag| matches!(tag, tags::ATOM1..=tags::ATOM4),
        Func::IsInteger => |tag| {
            matches!(
                tag,
                tags::SMALL..|tags::INT1..=tags::INT8| tags::BIG_POS | tags::BIG_NEG
            )
        },
        Func::IsFloat => |tag| tag == tags::FLOAT,
        Func::IsNumber => |tag| {
            matches!(
                tag,
                tags::SMALL..|tags::INT1..=tags::INT8| tags::BIG_POS | tags::BIG_NEG | tags::FLOAT
            )
        },
        Func::IsTuple => |tag| tag == tags::TUPLE,
        Func::IsList => |tag| matches!(tag, tags::NIL | tags::LIST | tags::ILIST),
        Func::IsMap => |tag| tag == tags::MAP,
        Func::IsBinary => |tag| matches!(tag, tags::BIN | tags::BLOB),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::Program;
    use larder_term::Term;

    fn is_quick(spec: &str) -> bool {
        let spec: Term = spec.parse().unwrap();
        Program::compile(spec.as_ref()).unwrap().quick().is_some()
    }

    #[test]
    fn what_asks_little_is_quick() {
        for spec in [
            "[{'_',[],['$_']}]",
            "[{{'_','$1'},[{'<','$1',0}],[true]}]",
            "[{{'$1',on,'_','$2'},[{'>','$1',10},{is_atom,'$2'}],['$1']}]",
            "[{{'$1','$2'},[{'andalso',{'>','$1',1},{'andalso',{'<','$1',9},{'=:=','$2',a}}}],['$$']}]",
            "[{{'$1','$2'},[{'andalso',{'andalso',{'>','$1',1},{'<','$1',9}},{'=/=','$2',a}}],['$2']}]",
            "[{{'$1','$2'},[{'and',{'>','$1',1},{'==',a,'$2'}}],[{const,{a}}]},{{{k,1},'_'},[],['$_']}]",
        ] {
            assert!(is_quick(spec), "{spec}");
        }
    }

    #[test]
    fn what_asks_more_is_not() {
        for spec in [
            "[{{'$1','$1'},[],['$_']}]",
            "[{{'$1',{'$2'}},[],['$2']}]",
            "[{{'$1','_'},[{'>',{'+','$1',1},2}],['$_']}]",
            "[{{'$1','$2'},[{'>','$1','$2'}],['$_']}]",
            "[{{'$1','_'},[{'orelse',{'>','$1',1},{is_atom,'$1'}}],['$_']}]",
            "[{{'$1','_'},['$1'],['$_']}]",
            "[{{'$1','_'},[{'==','$1',1.0}],['$_']}]",
            "[{{'_','_'},[],['$_']},{{'$1','_'},[],[{{'$1'}}]}]",
        ] {
            assert!(!is_quick(spec), "{spec}");
        }
    }
}
