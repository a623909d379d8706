//! Programs: running a specification.

use crate::{
    code::Code,
    constant::{Arguments, Constant, Constants},
    error::CompileError,
    gen::{Op, Operand},
    machine::{Found, Machine},
    outcome::{Context, Outcome, Pattern},
    raw,
    row::{Fields, Row},
    template::Template,
    value::{Scratch, TRUE},
};
use larder_term::{object::ObjectView, Term, TermRef};
use std::sync::Arc;

/// A compiled match specification: code, and the arguments that belong in the holes of its
/// template. It is immutable and may be shared by any number of threads.
///
/// It holds copies of the specification's constants, and with them counts for all handles in them.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) code: Arc<Code>,
    pub(crate) arguments: Arguments,
}

impl Program {
    /// Compiles a match specification: a list of `{Head, [Guard], [Body]}`.
    ///
    /// # Errors
    /// Whatever `ets` would not take, with the clause at fault. [`crate::Fault::TooDeep`] is its
    /// `system_limit`, all others are its `badarg`.
    ///
    /// # Complexity
    /// O(n log n) in the specification. No recursion: heads and `{const,X}` may be nested to any
    /// depth.
    pub fn compile(spec: TermRef<'_>) -> Result<Program, CompileError> {
        let held = spec.has_handles().then(|| Term::from(spec));
        let (template, arguments) = Template::of(spec);
        let code = Arc::new(Code::of(template, held)?);
        Ok(Program { code, arguments })
    }

    /// The program of code and of the terms that [`Template::read`] found, which `push` adds to the
    /// arguments. None if the template wants another number of them, or if `push` fails.
    #[inline]
    pub fn new<E>(
        code: Arc<Code>,
        push: impl FnOnce(&mut Arguments) -> Result<(), E>,
    ) -> Option<Program> {
        let mut program = Program {
            code,
            arguments: Arguments::new(),
        };
        let is_pushed = push(&mut program.arguments).is_ok();
        (is_pushed && program.arguments.len() == program.code.holes()).then_some(program)
    }

    /// Whether it differs from another in arguments alone: both could share their code.
    pub fn is_like(&self, other: &Program) -> bool {
        self.code.is_of(&other.code.template)
    }

    /// All its constants.
    #[inline(always)]
    pub(crate) fn constants(&self) -> Constants<'_> {
        Constants::of(&self.code.pool, &self.arguments)
    }

    /// The specification: the template with the arguments in its holes. What it holds by handle is
    /// counted by the program.
    pub(crate) fn specification(&self) -> Template {
        let (template, constants) = (&self.code.template, self.constants());
        let mut whole = Template::new();
        let mut from = 0;
        for (index, hole) in (0..).zip(&template.holes) {
            let at = hole.at as usize;
            whole.bytes.extend_from_slice(&template.bytes[from..at]);
            whole
                .bytes
                .extend_from_slice(constants.get(Constant::Argument(index)));
            from = at + 1;
        }
        whole.bytes.extend_from_slice(&template.bytes[from..]);
        whole
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
        let constants = self.constants();
        let Some(at) = self.passed(0, &row, &mut fields, &constants) else {
            return false;
        };
        let clause = &self.code.clauses[at];
        if clause.is_tests() {
            if let Some(is_true) = clause.gives.is_true(&mut fields, &constants) {
                return is_true;
            }
        }
        self.run_machine(at, (&row, &mut fields), (constants, context), scratch)
            .is_some_and(|outcome| outcome.is_true())
    }

    /// Whether a run may ask its surroundings: whether [`Context`] matters.
    #[inline]
    pub fn asks_context(&self) -> bool {
        self.code.asks_context
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
    fn passed(
        &self,
        from: usize,
        row: &Row<'_>,
        fields: &mut Fields<'_>,
        constants: &Constants<'_>,
    ) -> Option<usize> {
        let mut at = from;
        while let Some(clause) = self.code.clauses.get(at) {
            if clause.passes(row, fields, constants) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    #[inline(always)]
    fn run_row<'s>(
        &'s self,
        row: &Row<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        let mut fields = Fields::of(row);
        let constants = self.constants();
        let at = self.passed(0, row, &mut fields, &constants)?;
        let clause = &self.code.clauses[at];
        if clause.is_tests() && clause.gives.is_uncomputed() {
            return clause.gives.give(&mut fields, &constants, scratch);
        }
        self.run_machine(at, (row, &mut fields), (constants, context), scratch)
    }

    /// Runs the clauses from `at` on, whose tests the row passes.
    #[inline(never)]
    fn run_machine<'s>(
        &'s self,
        at: usize,
        (row, fields): (&Row<'s>, &mut Fields<'s>),
        (constants, context): (Constants<'s>, &Context<'s>),
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        let found = Machine::on(
            &self.code.clauses[at].head,
            (row, fields),
            constants,
            context,
            (&mut *scratch, self.code.many),
            |machine| {
                let mut next = Some(at);
                while let Some(at) = next {
                    if let Some(value) = self.code.clauses[at].run(machine) {
                        return Some(machine.found(value));
                    }
                    next = self.passed(at + 1, row, machine.fields, &constants);
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
        self.code
            .clauses
            .iter()
            .all(|clause| clause.result[..] == [Op::Push(Operand::Object)])
    }

    /// Whether every clause gives `true`: then a row counts as soon as a clause fits.
    pub fn always_true_body(&self) -> bool {
        self.code
            .clauses
            .iter()
            .all(|clause| match clause.result[..] {
                [Op::Push(Operand::Const(constant))] => {
                    constant.fixed(&self.code.pool) == Some(TRUE)
                }
                _ => false,
            })
    }

    /// Roughly how many instructions a row may take: what a caller that works in slices weighs a
    /// row with.
    #[inline]
    pub fn cost(&self) -> usize {
        self.code.cost
    }
}

/// Compiles a pattern as `match`, `match_object` and `match_delete` take it.
///
/// # Errors
/// A variable as the key of a map in the pattern.
pub fn compile_pattern(pattern: TermRef<'_>, what: Pattern) -> Result<Program, CompileError> {
    let body = Term::list([Term::from(what.body())]);
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
        assert!(
            program.code.pool.len() < 1 << 20,
            "{} bytes",
            program.code.pool.len()
        );
        let row: Term = "{a}".parse().unwrap();
        let mut scratch = Scratch::default();
        let context = Context::none();
        let outcome = program.run_term(row.as_ref(), &context, &mut scratch);
        assert!(matches!(outcome, Some(Outcome::Term(sum)) if sum.as_int().is_none()));
    }
}
