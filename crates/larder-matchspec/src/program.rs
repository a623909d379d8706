//! Programs: compiling a specification, and running it.

use crate::{
    body::Gives,
    error::{CompileError, Fault},
    gen::{Gen, Op, Operand, Ops},
    head::{self, Match, Shape},
    ir::{Ir, Node, NodeId},
    lower::{Lowering, Scope},
    machine::{Found, Machine},
    plan::{KeyOrder, Plan},
    raw,
    row::{Fields, Row},
    source::{Map, Source},
    test::{self, Reader, Tests},
    value::{Scratch, Val, FEW},
    wire::Head,
};
use larder_term::{atoms, object::ObjectView, tags, Atom, Term, TermRef};
use smallvec::{smallvec, SmallVec};
use std::sync::OnceLock;

/// What a program may ask of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What `{self}` is.
    pub self_pid: TermRef<'a>,
    /// What `{node}` is, and `{node,X}` of something local.
    pub node: Atom,
}

impl Context<'_> {
    /// The surroundings for a program that asks nothing of them ([`Program::asks_context`]).
    pub fn none() -> Context<'static> {
        Context {
            self_pid: raw::whole(&[tags::NIL]),
            node: atoms::NONODE,
        }
    }
}

/// What a row gave.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'s> {
    /// The row itself: the body was `'$_'`.
    Object,
    /// A term. Its bytes lie in the row, in the program or in the scratch memory, and so do the
    /// counts of the handles in them (a handle in the scratch memory is counted by the row or by
    /// the program): who keeps the term encodes it anew.
    Term(TermRef<'s>),
}

impl Outcome<'_> {
    /// Whether it is the atom `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Outcome::Term(term) if term.as_atom() == Some(atoms::TRUE))
    }
}

/// What `match`, `match_object` and `match_delete` do with the rows that fit a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// `'$$'`: the list of the variables.
    Bindings,
    /// `'$_'`: the row.
    Object,
    /// `true`.
    True,
}

/// A compiled clause.
#[derive(Debug, Default)]
pub(crate) struct Clause {
    pub(crate) head: Match,
    /// The guards as nodes, for planning.
    pub(crate) guards: SmallVec<[NodeId; 4]>,
    /// The place of the list of the body's expressions in the specification.
    pub(crate) body: usize,
    /// What is asked of elements, by position.
    tests: Tests,
    /// How many elements a row must have for the tests, where the head does not say.
    least: usize,
    /// The guards that are no tests.
    checks: Ops,
    result: Ops,
    gives: Gives,
}

/// Room for what a small specification's constants are put together to.
const POOL_ROOM: usize = 32;

/// A compiled match specification. It is immutable and may be shared by any number of threads.
///
/// It holds a copy of the specification, and with it counts for all handles in it.
#[derive(Debug)]
pub struct Program {
    /// Holds the counts for the handles in `pool`, if there are any.
    _held: Option<Term>,
    /// How much of `pool` is the specification, and the way around in it.
    spec: usize,
    map: Map,
    /// The specification's bytes, then everything that was put together of them.
    pub(crate) pool: Vec<u8>,
    pub(crate) ir: Ir,
    pub(crate) clauses: Vec<Clause>,
    /// Whether a clause has many variables or instructions, and so may need many values.
    many: bool,
    /// The plan that was asked for first, and for what.
    pub(crate) planned: OnceLock<(usize, KeyOrder, Plan)>,
}

impl Program {
    /// Compiles a match specification: a list of `{Head, [Guard], [Body]}`.
    ///
    /// # Errors
    /// Whatever `ets` would not take, with the clause at fault. [`Fault::TooDeep`] is its
    /// `system_limit`, all others are its `badarg`.
    ///
    /// # Complexity
    /// O(n log n) in the specification. No recursion: heads and `{const,X}` may be nested to any
    /// depth.
    pub fn compile(spec: TermRef<'_>) -> Result<Program, CompileError> {
        let held = spec.has_handles().then(|| Term::from(spec));
        let bytes = held.as_ref().map_or(spec.bytes(), Term::bytes);
        let map = Map::of(bytes);
        let source = Source::new(bytes, &map);
        let count = look_over(&source)?;
        let mut pool = Vec::with_capacity(bytes.len() + POOL_ROOM);
        pool.extend_from_slice(bytes);
        let (mut ir, mut clauses) = (Ir::default(), Vec::with_capacity(count));
        for (index, at) in source.each(0).enumerate() {
            clauses.push(Clause::default());
            let clause = &mut clauses[index];
            compile_clause(&source, at, (&mut ir, &mut pool), clause)
                .map_err(|fault| fault.in_clause(index))?;
        }
        let spec = bytes.len();
        Ok(Program {
            many: clauses.iter().any(Clause::needs_many),
            _held: held,
            spec,
            map,
            pool,
            ir,
            clauses,
            planned: OnceLock::new(),
        })
    }

    /// Runs on a stored object; `None` if no clause fits.
    ///
    /// # Complexity
    /// Linear in the instructions, in the part of the object that they look at and in the result.
    /// Allocates only when `scratch` must grow.
    #[inline(always)]
    pub fn run<'s>(
        &'s self,
        object: &ObjectView<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        self.run_row(&Row::stored(object), context, scratch)
    }

    /// Whether the result for a stored object is the atom `true`. As [`Program::run`], and quicker
    /// where the result is only looked at.
    #[inline(always)]
    pub fn is_true(
        &self,
        object: &ObjectView<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let row = Row::stored(object);
        let mut fields = Fields::of(&row);
        let Some(at) = self.passed(0, &row, &mut fields) else {
            return false;
        };
        let clause = &self.clauses[at];
        if clause.is_tests() {
            if let Some(is_true) = clause.gives.is_true(&mut fields) {
                return is_true;
            }
        }
        self.run_machine(at, (&row, &mut fields), context, scratch)
            .is_some_and(|outcome| outcome.is_true())
    }

    /// Whether a run may ask its surroundings: whether [`Context`] matters.
    pub fn asks_context(&self) -> bool {
        let asks = |op: &Op| matches!(op, Op::Call(func, _) if func.asks_context());
        self.clauses
            .iter()
            .any(|clause| clause.checks.iter().chain(&clause.result).any(asks))
    }

    /// Runs on a term; `None` if no clause fits. As [`Program::run`].
    pub fn run_term<'s>(
        &'s self,
        term: TermRef<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        self.run_row(&Row::plain(term), context, scratch)
    }

    /// The first clause from `from` on whose tests a row passes.
    #[inline(always)]
    fn passed(&self, from: usize, row: &Row<'_>, fields: &mut Fields<'_>) -> Option<usize> {
        let passes = |clause: &Clause| clause.passes(row, fields, &self.pool);
        Some(from + self.clauses.get(from..)?.iter().position(passes)?)
    }

    #[inline(always)]
    fn run_row<'s>(
        &'s self,
        row: &Row<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        let mut fields = Fields::of(row);
        let at = self.passed(0, row, &mut fields)?;
        let clause = &self.clauses[at];
        if clause.is_tests() && clause.gives.is_uncomputed() {
            return clause.gives.give(&mut fields, &self.pool, scratch);
        }
        self.run_machine(at, (row, &mut fields), context, scratch)
    }

    /// Runs the clauses from `at` on, whose tests the row passes.
    #[inline(never)]
    fn run_machine<'s>(
        &'s self,
        at: usize,
        (row, fields): (&Row<'s>, &mut Fields<'s>),
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        let found = Machine::on(
            (row, fields),
            &self.pool,
            context,
            (&mut *scratch, self.many),
            |machine| {
                let mut next = Some(at);
                while let Some(at) = next {
                    if let Some(value) = self.clauses[at].run(machine) {
                        return Some(machine.found(value));
                    }
                    next = self.passed(at + 1, row, machine.fields);
                }
                None
            },
        );
        Some(match found? {
            Found::Object => Outcome::Object,
            Found::Term(term) => Outcome::Term(raw::whole(term)),
            Found::Arena(span) => Outcome::Term(raw::whole(&scratch.arena[span.range()])),
        })
    }

    /// Whether every clause gives the row itself.
    pub fn returns_object(&self) -> bool {
        self.clauses
            .iter()
            .all(|clause| clause.result[..] == [Op::Push(Operand::Object)])
    }

    /// Whether every clause gives `true`: then a row counts as soon as a clause fits.
    pub fn always_true_body(&self) -> bool {
        self.clauses.iter().all(|clause| match clause.result[..] {
            [Op::Push(Operand::Const(span))] => self.pool[span.range()] == *crate::value::TRUE,
            _ => false,
        })
    }

    /// Roughly how many instructions a row may take: what a caller that works in slices weighs a
    /// row with.
    pub fn cost(&self) -> usize {
        self.clauses
            .iter()
            .map(|clause| {
                let head = clause.head.steps.len() + clause.tests.len();
                1 + head + clause.checks.len() + clause.result.len()
            })
            .sum()
    }

    /// The way around in the specification.
    pub(crate) fn source(&self) -> Source<'_> {
        Source::new(&self.pool[..self.spec], &self.map)
    }
}

impl Clause {
    /// The instructions of the guards that are no tests.
    #[cfg(test)]
    pub(crate) fn checks(&self) -> &[Op] {
        &self.checks
    }

    /// Whether a row has as many elements as the clause wants, and passes its tests.
    #[inline]
    fn passes(&self, row: &Row<'_>, fields: &mut Fields<'_>, pool: &[u8]) -> bool {
        let enough = match self.head.shape {
            Shape::Tuple { arity, .. } => row.tuple_arity() == Some(arity),
            _ => self.least == 0 || row.tuple_arity().is_some_and(|arity| arity >= self.least),
        };
        enough && self.tests.iter().all(|test| test.passes(fields, pool))
    }

    /// Whether a row that passes the tests fits.
    #[inline]
    fn is_tests(&self) -> bool {
        self.checks.is_empty() && self.head.is_tests()
    }

    /// Each instruction pushes one value at most.
    fn needs_many(&self) -> bool {
        [
            self.head.variables.len(),
            self.checks.len(),
            self.result.len(),
        ]
        .iter()
        .any(|&n| n > FEW)
    }

    /// Runs on a row that passes the tests.
    #[inline]
    fn run<'a, 's>(&'a self, machine: &mut Machine<'a, 's>) -> Option<Val<'a>>
    where
        'a: 's,
    {
        machine.next_clause(&self.head);
        if !machine.matches(&self.head) || !machine.guards(&self.checks) {
            return None;
        }
        // In a body every failure has the value 'EXIT'.
        machine.body(&self.result).ok()
    }
}

/// The places of a clause's parts.
struct Parts {
    head: usize,
    guards: usize,
    body: usize,
}

/// Takes a clause apart.
fn parts(source: &Source<'_>, at: usize) -> Option<Parts> {
    let mut each = source.each(at);
    match (source.head(at), each.next(), each.next(), each.next()) {
        (Head::Tuple(3), Some(head), Some(guards), Some(body)) => {
            Some(Parts { head, guards, body })
        }
        _ => None,
    }
}

/// Looks at the shape of every clause, before any is compiled; how many there are.
fn look_over(source: &Source<'_>) -> Result<usize, CompileError> {
    let count = match source.head(0) {
        Head::List(count) => count,
        Head::Improper(_) => return Err(Fault::ImproperList.overall()),
        _ => return Err(Fault::NotAList.overall()),
    };
    for (index, at) in source.each(0).enumerate() {
        if parts(source, at).is_none() {
            return Err(Fault::NotAClause.in_clause(index));
        }
    }
    for (index, at) in source.each(0).enumerate() {
        let looked = parts(source, at).map_or(Ok(()), |parts| {
            list(source, parts.guards, Fault::GuardsNotAList)?;
            match list(source, parts.body, Fault::NoBody)? {
                0 => Err(Fault::NoBody),
                _ => Ok(()),
            }
        });
        looked.map_err(|fault| fault.in_clause(index))?;
    }
    Ok(count)
}

/// How many elements a proper list has.
fn list(source: &Source<'_>, at: usize, otherwise: Fault) -> Result<usize, Fault> {
    match source.head(at) {
        Head::List(count) => Ok(count),
        Head::Improper(_) => Err(Fault::ImproperList),
        _ if source.term(at) == [tags::NIL] => Ok(0),
        _ => Err(otherwise),
    }
}

/// Compiles the clause at `at` into one that is new.
fn compile_clause(
    source: &Source<'_>,
    at: usize,
    (ir, pool): (&mut Ir, &mut Vec<u8>),
    clause: &mut Clause,
) -> Result<(), Fault> {
    let Parts { head, guards, body } = parts(source, at).ok_or(Fault::NotAClause)?;
    head::compile(source, head, &mut clause.head)?;
    clause.body = body;
    let first_node = ir.len();
    let mut lowering = Lowering {
        source,
        ir,
        pool,
        scope: Scope {
            variables: &clause.head.variables,
            whole: clause.head.whole,
        },
    };
    for at in source.each(guards) {
        clause.guards.push(lowering.expression(at)?);
    }
    let mut last = None;
    for at in source.each(body) {
        last = Some(lowering.expression(at)?);
    }
    let used = used(ir, first_node, clause.head.variables.len());
    if !matches!(clause.head.shape, Shape::Any) {
        clause.head.prune(&used);
    }
    test::of_head(&mut clause.head, &mut clause.tests);
    let reader = Reader {
        ir,
        places: &clause.head.places,
        arity: clause.head.arity(),
    };
    for &guard in &clause.guards {
        Gen {
            reader,
            pool,
            ops: &mut clause.checks,
        }
        .check(guard, &mut clause.tests);
    }
    clause.tests.sort_by_key(|test| test.position);
    clause.least = clause.tests.last().map_or(0, |test| test.position);
    // All but the last expression of a body have neither effect nor use.
    if let Some(last) = last {
        Gen {
            reader,
            pool,
            ops: &mut clause.result,
        }
        .value(last);
    }
    clause.gives = Gives::of(&clause.result, &clause.head.places, pool);
    Ok(())
}

/// Of each variable, whether a node from `first` on reads it.
fn used(ir: &Ir, first: usize, variables: usize) -> SmallVec<[bool; 8]> {
    let mut used: SmallVec<[bool; 8]> = smallvec![false; variables];
    for node in ir.since(first) {
        match node {
            Node::Var(slot) => used[*slot as usize] = true,
            Node::Bindings => used.fill(true),
            _ => {}
        }
    }
    used
}

/// Compiles a pattern as `match`, `match_object` and `match_delete` take it.
///
/// # Errors
/// A variable as the key of a map in the pattern.
pub fn compile_pattern(pattern: TermRef<'_>, what: Pattern) -> Result<Program, CompileError> {
    let body = match what {
        Pattern::Bindings => Term::from(atoms::DOLLAR_DOLLAR),
        Pattern::Object => Term::from(atoms::DOLLAR_UNDERSCORE),
        Pattern::True => Term::from(true),
    };
    let body = Term::list([body]);
    let nil = Term::nil();
    let clause = Term::tuple([pattern, nil.as_ref(), body.as_ref()]);
    Program::compile(Term::list([clause]).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;

    /// What a call gives is not kept in the program if it is far more than the call.
    #[test]
    fn large_constants_are_not_kept() {
        let mut body: Term = "{'bsl',1,20000000}".parse().unwrap();
        for _ in 0..60 {
            body = Term::tuple([Term::atom("+"), body, Term::int(1)]);
        }
        let clause = [Term::atom("_"), Term::nil(), Term::list([body])];
        let spec = Term::list([Term::tuple(clause)]);
        let program = Program::compile(spec.as_ref()).unwrap();
        // Each sum has 2.5 MB.
        assert!(program.pool.len() < 1 << 20, "{} bytes", program.pool.len());
        let row: Term = "{a}".parse().unwrap();
        let mut scratch = Scratch::default();
        let context = Context::none();
        let outcome = program.run_term(row.as_ref(), &context, &mut scratch);
        assert!(matches!(outcome, Some(Outcome::Term(sum)) if sum.as_int().is_none()));
    }
}
