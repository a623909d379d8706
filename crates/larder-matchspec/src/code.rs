//! Compiling a template to code.
//!
//! 1. Check the form of all clauses (`look_over`). So errors of form are reported before all
//!    others.
//! 2. Compile each clause (`compile_clause`):
//!    - a. its head to steps, which also says which variables there are (`head`);
//!    - b. its guards and its body to nodes (`lower`), which shows which variables are read;
//!    - c. conditions on single elements to tests (`test`);
//!    - d. the other guards, and the last expression of the body, to instructions (`gen`).
//! 3. Record what a caller must know before it runs the program.
//!
//! The demands on keys (`demand`) are derived when they are first needed.

use crate::{
    body::DirectBody,
    clause::Clause,
    constant::{Constant, LargeMaps},
    demand::{Demands, Element},
    error::{CompileError, Fault},
    gen::{Gen, Op},
    head::{self, HeadForm},
    ir::{Ir, Node},
    key_proof::KeyProof,
    lower::{Lowering, Scope},
    map_search::ConstantMap,
    reads::Reads,
    source::{Source, TermIndex},
    template::Template,
    test::{self, Reader},
    wire::Head,
};
use larder_term::{tags, Term};
use smallvec::{smallvec, SmallVec};
use std::sync::OnceLock;

/// Additional capacity of the pool, for constants that are assembled at compile time.
const POOL_SPARE: usize = 32;

/// The common part of all specifications with the same template: a program without its arguments.
/// It is immutable, and any number of threads may share it.
#[derive(Debug)]
pub struct Code {
    /// Owns the counts of the handles in the template, if there are any. With parameters, it is the
    /// specification.
    pub(crate) held: Option<Term>,
    /// Whether the specification has parameters.
    pub(crate) is_prepared: bool,
    pub(crate) template: Template,
    /// The index of the template's terms.
    index: TermIndex,
    /// The template's bytes, followed by all constants that were assembled at compile time.
    pub(crate) pool: Vec<u8>,
    /// The constants of the pool that are large maps.
    pub(crate) maps: LargeMaps,
    pub(crate) ir: Ir,
    pub(crate) clauses: Vec<Clause>,
    /// Whether a clause has many variables or instructions, and so may need many values.
    pub(crate) many: bool,
    /// See [`crate::Program::cost`].
    pub(crate) cost: usize,
    /// See [`crate::Program::asks_context`].
    pub(crate) asks_context: bool,
    /// The demands on keys, for the position of the first call.
    demands: OnceLock<Demands>,
    /// See [`crate::Program::positions_read`].
    reads: OnceLock<Reads>,
    /// See [`crate::Program::replace_keeps_key`].
    pub(crate) key_proof: OnceLock<KeyProof>,
}

impl Code {
    /// Compiles the template of a match specification: a list of `{Head, [Guard], [Body]}`. The
    /// code takes the template over. After an error it is unchanged.
    ///
    /// # Errors
    /// As [`crate::Program::compile`].
    ///
    /// # Complexity
    /// That of [`crate::Program::compile`].
    pub fn compile(template: &mut Template) -> Result<Code, CompileError> {
        let compiled = CompiledClauses::of(template)?;
        Ok(compiled.code(std::mem::take(template), None))
    }

    /// As `compile`, for a specification with parameters, whose arguments are made of their values.
    pub(crate) fn of_prepared(template: Template, spec: Term) -> Result<Code, CompileError> {
        let code = Code::of(template, Some(spec))?;
        Ok(Code {
            is_prepared: true,
            ..code
        })
    }

    /// As `compile`. `held` owns the counts of the handles in the template.
    pub(crate) fn of(template: Template, held: Option<Term>) -> Result<Code, CompileError> {
        Ok(CompiledClauses::of(&template)?.code(template, held))
    }

    /// The demands on keys at a position, counted from 1. Those of the first call are kept, since a
    /// program usually serves one table, or several of one kind. Those for another position are put
    /// into `others`.
    #[inline]
    pub(crate) fn demands<'s>(
        &'s self,
        keypos: usize,
        others: &'s mut Option<Demands>,
    ) -> &'s Demands {
        let derive = || {
            self.derive_demands(Some(Element {
                position: keypos,
                is_key: true,
            }))
        };
        let kept = self.demands.get_or_init(derive);
        if kept.keypos == keypos {
            kept
        } else {
            // A table of another kind has the key elsewhere. Its demands are derived again, which
            // is rare.
            others.insert(derive())
        }
    }

    /// The demands on an element that isn't the key.
    pub(crate) fn demands_of_element(&self, position: usize) -> Demands {
        self.derive_demands(Some(Element {
            position,
            is_key: false,
        }))
    }

    /// The elements that the clauses look at.
    pub(crate) fn reads(&self) -> &Reads {
        self.reads.get_or_init(|| Reads::of(&self.clauses))
    }

    /// The facts of the guards alone.
    pub(crate) fn demands_of_guards(&self) -> Demands {
        self.derive_demands(None)
    }

    /// Derives the demands on an element.
    fn derive_demands(&self, element: Option<Element>) -> Demands {
        Demands::of(&self.clauses, &self.ir, &self.source(), &self.pool, element)
    }

    /// The template that it was compiled from.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Whether this is the code of a template.
    pub fn is_of(&self, template: &Template) -> bool {
        self.template == *template
    }

    /// The number of arguments.
    #[inline]
    pub(crate) fn holes(&self) -> usize {
        self.template.holes.len()
    }

    /// The index of the template's terms.
    pub(crate) fn source(&self) -> Source<'_> {
        Source::new(&self.template, &self.index)
    }
}

/// What code has besides its template.
struct CompiledClauses {
    index: TermIndex,
    pool: Vec<u8>,
    ir: Ir,
    clauses: Vec<Clause>,
}

impl CompiledClauses {
    /// Compiles the clauses of a template.
    fn of(template: &Template) -> Result<CompiledClauses, CompileError> {
        let index = TermIndex::of(&template.bytes);
        let source = Source::new(template, &index);
        // (1)
        let count = look_over(&source)?;
        // Folded constants are added to the pool as well.
        let mut pool = Vec::with_capacity(template.bytes.len() + POOL_SPARE);
        pool.extend_from_slice(&template.bytes);
        let (mut ir, mut clauses) = (Ir::default(), Vec::with_capacity(count));
        // (2)
        for (index, at) in source.each(0).enumerate() {
            clauses.push(Clause::default());
            let clause = &mut clauses[index];
            compile_clause(&source, at, &mut ir, &mut pool, clause)
                .map_err(|fault| fault.in_clause(index))?;
        }
        Ok(CompiledClauses {
            index,
            pool,
            ir,
            clauses,
        })
    }

    /// The code of the template that was compiled. `held` owns the counts of its handles.
    fn code(self, template: Template, held: Option<Term>) -> Code {
        let CompiledClauses {
            index,
            pool,
            ir,
            clauses,
        } = self;
        // (3)
        // A body or a guard may ask for what only the host knows, such as `self()`.
        let asks =
            |op: &Op| matches!(op, Op::Call(func, _) | Op::CallOne(func, _) if func.asks_context());
        let asks = |clause: &Clause| clause.checks.iter().chain(&clause.result).any(asks);
        Code {
            many: clauses.iter().any(Clause::needs_many),
            cost: clauses.iter().map(Clause::cost).sum(),
            asks_context: clauses.iter().any(asks),
            held,
            is_prepared: false,
            template,
            index,
            maps: large_maps(&ir, &pool),
            pool,
            ir,
            clauses,
            demands: OnceLock::new(),
            reads: OnceLock::new(),
            key_proof: OnceLock::new(),
        }
    }
}

/// The constants of a pool that are large maps.
fn large_maps(ir: &Ir, pool: &[u8]) -> LargeMaps {
    let map = |node: &Node| match *node {
        Node::Const(Constant::Fixed(span)) if ConstantMap::is_for(&pool[span.range()]) => {
            Some((span, ConstantMap::default()))
        }
        _ => None,
    };
    ir.since(0).iter().filter_map(map).collect()
}

/// The offsets of a clause's parts.
struct ClauseParts {
    head: usize,
    guards: usize,
    body: usize,
}

/// Finds the parts of a clause.
fn parts(source: &Source<'_>, at: usize) -> Option<ClauseParts> {
    // Exactly three parts: anything else isn't a clause.
    let mut each = source.each(at);
    match (source.head(at), each.next(), each.next(), each.next()) {
        (Head::Tuple(3), Some(head), Some(guards), Some(body)) => {
            Some(ClauseParts { head, guards, body })
        }
        _ => None,
    }
}

/// Checks the shape of all clauses before any is compiled. Returns their number.
fn look_over(source: &Source<'_>) -> Result<usize, CompileError> {
    // The form of every clause is checked first, then that of guards and bodies. So errors of form
    // come before all others.
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

/// The number of elements of a proper list.
fn list(source: &Source<'_>, at: usize, otherwise: Fault) -> Result<usize, Fault> {
    match source.head(at) {
        Head::List(count) => Ok(count),
        Head::Improper(_) => Err(Fault::ImproperList),
        _ if source.term(at) == [tags::NIL] => Ok(0),
        _ => Err(otherwise),
    }
}

/// Compiles the clause at `at` into `clause`, which is empty.
fn compile_clause(
    source: &Source<'_>,
    at: usize,
    ir: &mut Ir,
    pool: &mut Vec<u8>,
    clause: &mut Clause,
) -> Result<(), Fault> {
    let ClauseParts { head, guards, body } = parts(source, at).ok_or(Fault::NotAClause)?;
    // (2a)
    head::compile(source, head, &mut clause.head)?;
    // (2b)
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
    // A variable that nothing reads is the same as `'_'`.
    let used = used(ir, first_node, clause.head.variables.len());
    if !matches!(clause.head.form, HeadForm::Any) {
        clause.head.prune(&used);
    }
    // (2c), (2d)
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
    // A row is walked once, from the left. So tests are in the order of their positions.
    clause.tests.sort_by_key(|test| test.position);
    clause.min_arity = clause.tests.last().map_or(0, |test| test.position);
    // Only the last expression of a body has an effect.
    if let Some(last) = last {
        Gen {
            reader,
            pool,
            ops: &mut clause.result,
        }
        .value(last);
    }
    clause.head.plain = clause.head.has_plain_steps();
    clause.direct = DirectBody::of(&clause.result, &clause.head, pool);
    Ok(())
}

/// Whether a node from `first` on reads a variable, for each variable.
fn used(ir: &Ir, first: usize, variables: usize) -> SmallVec<[bool; 8]> {
    let mut used: SmallVec<[bool; 8]> = smallvec![false; variables];
    for node in ir.since(first) {
        match node {
            Node::Var(slot) => used[*slot as usize] = true,
            // `'$$'` reads all of them.
            Node::Bindings => used.fill(true),
            _ => {}
        }
    }
    used
}
