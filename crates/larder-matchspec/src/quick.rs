//! Quick forms: clauses that are decided on a row's bytes, element by element, without the machine.
//!
//! Most specifications that go over whole tables ask little of a row: that an element is a
//! constant, that another compares so with an integer, that a third is an atom; and they give
//! elements, or a term that is built of some. Such a clause becomes a list of tests by position,
//! taken in one pass over the row that goes no further than the last element of a test, or the
//! first test that fails:
//!
//! ```text
//!   [{{'$1',on,'_','$2'}, [{'>','$1',10}, {is_atom,'$2'}], ['$1']}]
//!
//!   arity 4 · 1: > 10 · 2: on · 4: an atom · gives element 1
//! ```
//!
//! Invariants:
//!
//! 1. A test neither fails otherwise than by being false, nor has an effect: so guards may be
//!    tested in any order, and `and` is `andalso`.
//! 2. A program has quick forms for all its clauses or for none; what they give is what the machine
//!    would give.
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
use smallvec::{smallvec, SmallVec};

/// A clause in its quick form.
#[derive(Debug)]
pub(crate) struct Quick {
    /// How many elements a row has to have; `None` for any number.
    arity: Option<usize>,
    /// By position, ascending.
    tests: SmallVec<[Test; 4]>,
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
    /// So compared to the element at this position, which stands no further back.
    Pair(Cmp, usize),
}

/// What a row gives.
#[derive(Debug)]
enum Gives {
    True,
    Object,
    Constant(Span),
    Element(usize),
    /// The list of elements at these positions, which ascend.
    List(SmallVec<[usize; 4]>),
    /// What these pieces make, one behind the other.
    Built(SmallVec<[Piece; 4]>),
}

/// A part of a term that is built.
#[derive(Debug, Clone, Copy)]
enum Piece {
    /// Bytes of the pool.
    Raw(Span),
    /// The element at a position.
    Element(usize),
}

impl Quick {
    /// The quick forms of all clauses, if each has one.
    pub(crate) fn of(clauses: &[Clause], pool: &[u8]) -> Option<Vec<Quick>> {
        let mut all = Vec::with_capacity(clauses.len());
        for clause in clauses {
            all.push(quick(clause, pool)?);
        }
        Some(all)
    }

    /// Whether the row fits.
    #[inline]
    fn fits(&self, row: &Row<'_>, pool: &[u8]) -> bool {
        let last = self.tests.last().map_or(0, |test| test.position);
        let enough = match self.arity {
            Some(arity) => row.tuple_arity() == Some(arity),
            None => last == 0 || row.tuple_arity().is_some_and(|arity| arity >= last),
        };
        let mut cursor = row.cursor();
        enough
            && self
                .tests
                .iter()
                .all(|test| test.is.so(cursor.seek(test.position), row, pool))
    }
}

impl Is {
    /// Whether the first term of a run is so.
    #[inline]
    fn so(self, run: &[u8], row: &Row<'_>, pool: &[u8]) -> bool {
        match self {
            Is::Int(cmp, n) => match wire::int(run) {
                Some(value) => builtins::compare_ints(cmp, value, n),
                None => compares(cmp, run, n),
            },
            // The encoding is free of prefixes: a run that begins with the bytes begins with the
            // term.
            Is::Bytes(span, is) => begins(run, &pool[span.range()]) == is,
            Is::Pair(cmp, other) => pair(cmp, run, row.cursor().seek(other)),
            Is::Tag(has) => run.first().is_some_and(|&tag| has(tag)),
            Is::Term(span) => {
                let wanted = &pool[span.range()];
                begins(run, wanted) || raw::view(run).identical(raw::whole(wanted))
            }
        }
    }
}

/// Whether a run begins with some bytes, which are few as a rule: a loop is quicker than a call
/// then.
#[inline]
fn begins(run: &[u8], bytes: &[u8]) -> bool {
    match run.get(..bytes.len()) {
        None => false,
        Some(begin) if bytes.len() <= 16 => begin.iter().zip(bytes).all(|(a, b)| a == b),
        Some(begin) => begin == bytes,
    }
}

/// The comparison of the first terms of two runs.
#[inline]
fn pair(cmp: Cmp, a: &[u8], b: &[u8]) -> bool {
    match (wire::int(a), wire::int(b)) {
        (Some(a), Some(b)) => builtins::compare_ints(cmp, a, b),
        _ => compare_runs(cmp, a, b),
    }
}

#[inline(never)]
fn compare_runs(cmp: Cmp, a: &[u8], b: &[u8]) -> bool {
    builtins::compare_flat(cmp, raw::view(a), raw::view(b))
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
        Gives::Built(pieces) => built(pieces, pool, row, scratch),
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
            Gives::Object | Gives::Constant(_) | Gives::List(_) | Gives::Built(_) => false,
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

fn built<'s>(
    pieces: &[Piece],
    pool: &[u8],
    row: &Row<'s>,
    scratch: &'s mut Scratch,
) -> Outcome<'s> {
    let arena = &mut scratch.arena;
    arena.clear();
    let (mut cursor, mut last) = (row.cursor(), 0);
    for &piece in pieces {
        match piece {
            Piece::Raw(span) => arena.extend_from_slice(&pool[span.range()]),
            Piece::Element(position) => {
                if position <= last {
                    cursor = row.cursor();
                }
                let (element, left) = wire::split(cursor.seek(position));
                arena.extend_from_slice(element);
                cursor.passed(position, left);
                last = position;
            }
        }
    }
    Outcome::Term(raw::whole(arena))
}

/// The quick form of a clause, if it has one.
fn quick(clause: &Clause, pool: &[u8]) -> Option<Quick> {
    let mut form = Form {
        pool,
        places: smallvec![None; clause.head.variables.len()],
        tests: SmallVec::new(),
    };
    let arity = form.head(&clause.head)?;
    form.guards(clause.checks())?;
    let gives = form.gives(clause.result(), arity.is_none())?;
    form.tests.sort_by_key(|test| test.position);
    // What asks for an element that no row of this arity has is left to the machine.
    let last = form.tests.last().map_or(0, |test| test.position);
    if arity.is_some_and(|arity| last > arity) {
        return None;
    }
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
    places: SmallVec<[Option<usize>; 4]>,
    tests: SmallVec<[Test; 4]>,
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
                [Step::Same(slot)] => Is::Pair(Cmp::Same, self.places[slot as usize]?),
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
        if let Some(&Op::CompareInt(cmp, slot, n)) = ops.get(at) {
            self.test(slot, Is::Int(cmp, n))?;
            return Some(at + 1);
        }
        let element = self.element(ops, at);
        self.element_first(ops, element)
            .or_else(|| self.constant_first(ops, at))
    }

    /// The test of an element: its type, or its comparison with a constant or with another element.
    fn element_first(&mut self, ops: &[Op], element: Option<(usize, usize)>) -> Option<usize> {
        let (position, next) = element?;
        let (is, next) = match ops[next..] {
            [Op::Call(func, 1), ..] => (Is::Tag(tag_test(func)?), next + 1),
            [Op::Int(n), Op::Call(Func::Cmp(cmp), 2), ..] => (Is::Int(cmp, n), next + 2),
            [Op::Push(Operand::Const(span)), Op::Call(Func::Cmp(cmp), 2), ..] => {
                (self.constant(cmp, span)?, next + 2)
            }
            _ => {
                let (other, next) = self.element(ops, next)?;
                let Some(&Op::Call(Func::Cmp(cmp), 2)) = ops.get(next) else {
                    return None;
                };
                let (far, is) = if other <= position {
                    (position, Is::Pair(cmp, other))
                } else {
                    (other, Is::Pair(cmp.flipped(), position))
                };
                self.tests.push(Test { position: far, is });
                return Some(next + 1);
            }
        };
        self.tests.push(Test { position, is });
        Some(next)
    }

    /// The comparison of a constant with an element.
    fn constant_first(&mut self, ops: &[Op], at: usize) -> Option<usize> {
        let (position, next) = self.element(ops, at + 1)?;
        let Some(&Op::Call(Func::Cmp(cmp), 2)) = ops.get(next) else {
            return None;
        };
        let is = match *ops.get(at)? {
            Op::Int(n) => Is::Int(cmp.flipped(), n),
            Op::Push(Operand::Const(span)) => self.constant(cmp, span)?,
            _ => return None,
        };
        self.tests.push(Test { position, is });
        Some(next + 1)
    }

    /// The position of the element that is pushed, as a variable or by `element/2`, and the place
    /// behind that.
    fn element(&self, ops: &[Op], at: usize) -> Option<(usize, usize)> {
        match *ops.get(at..)? {
            [Op::Push(Operand::Var(slot)), ..] => Some((self.places[slot as usize]?, at + 1)),
            [Op::Int(position), Op::Push(Operand::Object), Op::Call(Func::Element, 2), ..] => {
                let position = usize::try_from(position).ok().filter(|&p| p > 0)?;
                Some((position, at + 3))
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
                let positions: SmallVec<[usize; 4]> =
                    self.places.iter().copied().collect::<Option<_>>()?;
                let usable = !positions.is_empty() && positions.is_sorted();
                usable.then_some(Gives::List(positions))
            }
            [Op::Build, ref parts @ .., Op::Built(0)] => {
                let mut pieces = SmallVec::new();
                for part in parts {
                    pieces.push(match *part {
                        Op::Raw(span) | Op::Put(Operand::Const(span)) => Piece::Raw(span),
                        Op::Put(Operand::Var(slot)) => Piece::Element(self.places[slot as usize]?),
                        _ => return None,
                    });
                }
                Some(Gives::Built(pieces))
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
        Func::IsMap => |tag| matches!(tag, tags::MAP | tags::TREE_MAP),
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
            "[{{'$1','$1'},[],['$_']}]",
            "[{{'$1','$2'},[{'>','$1','$2'}],['$_']}]",
            "[{'$1',[{'>',{element,2,'$1'},1},{'=<',7,{element,3,'$_'}},{is_atom,{element,4,'$_'}}],['$1']}]",
            "[{{'_','_'},[],['$_']},{{'$1','$2'},[],[{{'$2',a,['$1',#{k=>'$2'}]}}]}]",
        ] {
            assert!(is_quick(spec), "{spec}");
        }
    }

    #[test]
    fn what_asks_more_is_not() {
        for spec in [
            "[{{'$1',{'$2'}},[],['$2']}]",
            "[{{'$1','_'},[{'>',{'+','$1',1},2}],['$_']}]",
            "[{{'$1','_'},[{'>',{element,'$1','$_'},2}],['$_']}]",
            "[{{'$1','_'},[{'>',{element,0,'$_'},2}],['$_']}]",
            "[{{'$1','_'},[{'orelse',{'>','$1',1},{is_atom,'$1'}}],['$_']}]",
            "[{{'$1','_'},['$1'],['$_']}]",
            "[{{'$1','_'},[{'==','$1',1.0}],['$_']}]",
            "[{{'_','_'},[],['$_']},{{'$1','_'},[],[{{{'+','$1',1}}}]}]",
            "[{{'$1','$2'},[],[['$1'|'$2']]}]",
        ] {
            assert!(!is_quick(spec), "{spec}");
        }
    }
}
