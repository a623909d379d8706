//! Compiling a template.

use crate::{
    body::Gives,
    clause::Clause,
    demand::Demands,
    error::{CompileError, Fault},
    gen::{Gen, Op},
    head::{self, Shape},
    ir::{Ir, Node},
    lower::{Lowering, Scope},
    source::{Map, Source},
    template::Template,
    test::{self, Reader},
    wire::Head,
};
use larder_term::{tags, Term};
use smallvec::{smallvec, SmallVec};
use std::sync::OnceLock;

/// Room for what a small specification's constants are put together to.
const POOL_ROOM: usize = 32;

/// What is the same in all specifications of one template: a program without its arguments. It is
/// immutable and may be shared by any number of threads.
#[derive(Debug)]
pub struct Code {
    /// Holds the counts for the handles in the template, if there are any. Of a specification with
    /// parameters, the specification.
    pub(crate) held: Option<Term>,
    /// Whether it has parameters.
    pub(crate) is_prepared: bool,
    pub(crate) template: Template,
    /// The way around in the template.
    map: Map,
    /// The template's bytes, then everything that was put together of them.
    pub(crate) pool: Vec<u8>,
    pub(crate) ir: Ir,
    pub(crate) clauses: Vec<Clause>,
    /// Whether a clause has many variables or instructions, and so may need many values.
    pub(crate) many: bool,
    /// See [`crate::Program::cost`].
    pub(crate) cost: usize,
    /// See [`crate::Program::asks_context`].
    pub(crate) asks_context: bool,
    /// What is demanded of keys, for the position that was asked for first.
    demands: OnceLock<Demands>,
}

impl Code {
    /// Compiles the template of a match specification: a list of `{Head, [Guard], [Body]}`.
    ///
    /// # Errors
    /// As [`crate::Program::compile`].
    ///
    /// # Complexity
    /// As there.
    pub fn compile(template: Template) -> Result<Code, CompileError> {
        Code::of(template, None)
    }

    /// As `compile`, of a specification with parameters, whose arguments their values make.
    pub(crate) fn of_prepared(template: Template, spec: Term) -> Result<Code, CompileError> {
        let code = Code::of(template, Some(spec))?;
        Ok(Code {
            is_prepared: true,
            ..code
        })
    }

    /// The same. `held` holds the counts for the handles in the template.
    pub(crate) fn of(template: Template, held: Option<Term>) -> Result<Code, CompileError> {
        let map = Map::of(&template.bytes);
        let source = Source::new(&template, &map);
        let count = look_over(&source)?;
        let mut pool = Vec::with_capacity(template.bytes.len() + POOL_ROOM);
        pool.extend_from_slice(&template.bytes);
        let (mut ir, mut clauses) = (Ir::default(), Vec::with_capacity(count));
        for (index, at) in source.each(0).enumerate() {
            clauses.push(Clause::default());
            let clause = &mut clauses[index];
            compile_clause(&source, at, (&mut ir, &mut pool), clause)
                .map_err(|fault| fault.in_clause(index))?;
        }
        let asks =
            |op: &Op| matches!(op, Op::Call(func, _) | Op::CallOne(func, _) if func.asks_context());
        let asks = |clause: &Clause| clause.checks.iter().chain(&clause.result).any(asks);
        Ok(Code {
            many: clauses.iter().any(Clause::needs_many),
            cost: clauses.iter().map(Clause::cost).sum(),
            asks_context: clauses.iter().any(asks),
            held,
            is_prepared: false,
            template,
            map,
            pool,
            ir,
            clauses,
            demands: OnceLock::new(),
        })
    }

    /// What is demanded of keys at a position, from 1. What is asked first is kept: a program
    /// mostly serves one table, or several of one kind.
    /// Others are put into `others`.
    #[inline]
    pub(crate) fn demands<'s>(
        &'s self,
        keypos: usize,
        others: &'s mut Option<Demands>,
    ) -> &'s Demands {
        let work_out = || self.work_out(Some((keypos, true)));
        let kept = self.demands.get_or_init(work_out);
        if kept.keypos == keypos {
            kept
        } else {
            others.insert(work_out())
        }
    }

    /// What is demanded of an element that is no key.
    pub(crate) fn demands_of_element(&self, position: usize) -> Demands {
        self.work_out(Some((position, false)))
    }

    /// What guards alone demand, of no element.
    pub(crate) fn demands_of_guards(&self) -> Demands {
        self.work_out(None)
    }

    /// For the element at a position, and whether it is the key; None for none.
    fn work_out(&self, element: Option<(usize, bool)>) -> Demands {
        let clauses = (&self.clauses[..], &self.ir);
        Demands::of(clauses, &self.source(), &self.pool, element)
    }

    /// Whether it is the code of this template.
    pub fn is_of(&self, template: &Template) -> bool {
        self.template == *template
    }

    /// How many arguments it wants.
    #[inline]
    pub(crate) fn holes(&self) -> usize {
        self.template.holes.len()
    }

    /// The way around in the template.
    pub(crate) fn source(&self) -> Source<'_> {
        Source::new(&self.template, &self.map)
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
        holes: source.holes(),
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
