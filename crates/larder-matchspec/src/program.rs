//! Programs: running a specification on rows.
//!
//! 1. Find the first clause whose tests the row passes. Tests look at the bytes of single elements.
//! 2. If the rest of the clause's head can be matched without the machine, no guard is left, and
//!    the result needs no computation, its parts are known.
//! 3. Otherwise start the machine. It matches the rest of the clause's head, evaluates the rest of
//!    its guards, and computes the body. If the clause fails there, continue with the next clause
//!    whose tests the row passes.

use crate::{
    body::Found,
    code::Code,
    constant::{Arguments, Constant, Constants},
    error::CompileError,
    head::{Bound, NO_TERMS},
    machine::{Environment, Machine, Memory},
    outcome::{Context, Outcome, PatternResult, Shown},
    raw,
    reads::Reads,
    row::Row,
    template::Template,
    value::{Scratch, TRUE},
};
use larder_term::{object::ObjectView, Term, TermRef};
use std::sync::Arc;

/// A compiled match specification: code, and arguments for the holes of its template. It is
/// immutable and may be shared by any number of threads.
///
/// It owns copies of the specification's constants, and counts of all handles in them.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) code: Arc<Code>,
    pub(crate) arguments: Arguments,
}

impl Program {
    /// Compiles a match specification: a list of `{Head, [Guard], [Body]}`.
    ///
    /// # Errors
    /// If `ets` would refuse the specification, with the clause at fault. For
    /// [`crate::Fault::TooDeep`] `ets` raises `system_limit`, for all others `badarg`.
    ///
    /// # Complexity
    /// O(n log n) in the specification. There is no recursion: heads and `{const,X}` may be nested
    /// to any depth.
    pub fn compile(spec: TermRef<'_>) -> Result<Program, CompileError> {
        let held = spec.has_handles().then(|| Term::from(spec));
        let (template, arguments) = Template::of(spec);
        let code = Arc::new(Code::of(template, held)?);
        Ok(Program { code, arguments })
    }

    /// Makes a program of code and arguments. `push` adds the terms that [`Template::read`] has
    /// found to the arguments. `None` if the template has another number of holes, or if `push`
    /// fails.
    #[inline]
    pub fn new<E>(
        code: Arc<Code>,
        push: impl FnOnce(&mut Arguments) -> Result<(), E>,
    ) -> Option<Program> {
        let mut program = Program {
            code,
            arguments: Arguments::new(),
        };
        // Both must hold: the arguments were read, and there is one for each hole.
        let is_pushed = push(&mut program.arguments).is_ok();
        (is_pushed && program.arguments.len() == program.code.holes()).then_some(program)
    }

    /// The positions of the elements of a tuple that the program looks at, in ascending order;
    /// `None`: it may look at all of them. The result for a tuple doesn't depend on its other
    /// elements, unless it is [`crate::Outcome::Object`]. So they may be given to
    /// [`Program::run_term`] as any other terms.
    ///
    /// # Examples
    /// ```
    /// use larder_matchspec::Program;
    /// use larder_term::Term;
    ///
    /// let spec: Term = "[{{'$1','_','$3','$4'},[{'>','$3',7}],[{{'$1'}}]}]".parse().unwrap();
    /// let program = Program::compile(spec.as_ref()).unwrap();
    /// assert_eq!(program.positions_read(), Some(&[1, 3][..]));
    /// ```
    pub fn positions_read(&self) -> Option<&[usize]> {
        match self.code.reads() {
            Reads::All => None,
            Reads::Some(positions) => Some(positions),
        }
    }

    /// Its code, if it has no arguments. Then all programs of the code are the same.
    pub fn only_code(&self) -> Option<&Arc<Code>> {
        self.arguments.is_empty().then_some(&self.code)
    }

    /// Whether two programs differ in their arguments alone, so that they could share their code.
    pub fn is_like(&self, other: &Program) -> bool {
        self.code.is_of(&other.code.template)
    }

    /// All constants: those of the code, and the arguments.
    #[inline]
    pub(crate) fn constants(&self) -> Constants<'_> {
        Constants::of(&self.code.pool, &self.code.maps, &self.arguments)
    }

    /// The specification: the template with the arguments in its holes. Handles in it are counted
    /// by the program.
    pub(crate) fn specification(&self) -> Template {
        let (template, constants) = (&self.code.template, self.constants());
        let mut whole = Template::new();
        // Arguments are put where the template has their holes, of one byte each.
        // `from` is where the part that has not been copied yet begins.
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

    /// Runs on a stored object. Returns `None` if no clause matches.
    ///
    /// # Complexity
    /// Linear in the instructions, in the part of the object that they look at, and in the result.
    /// Allocates only if `scratch` must grow, or if elements of a wide object are looked at in
    /// another order than theirs.
    #[inline(always)]
    pub fn run<'s>(
        &'s self,
        object: &ObjectView<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        self.run_row(&mut Row::stored(object), context, scratch)
    }

    /// Whether the result for a stored object is the atom `true`. Faster than [`Program::run`], as
    /// no result has to be built.
    #[inline(always)]
    pub fn is_true(
        &self,
        object: &ObjectView<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let mut row = Row::stored(object);
        let constants = self.constants();
        let Some(at) = self.first_passed(0, &mut row, &constants) else {
            return false;
        };
        let environment = Environment { constants, context };
        self.gives_true(at, &mut row, &environment, scratch)
    }

    /// Steps (2) and (3), for `is_true`. The row has passed the tests of clause `at`.
    #[inline(always)]
    pub(crate) fn gives_true<'s>(
        &'s self,
        at: usize,
        row: &mut Row<'s>,
        environment: &Environment<'_, 's>,
        scratch: &mut Scratch,
    ) -> bool {
        // (2) If there is nothing left to match, the result may be known without the machine.
        let clause = &self.code.clauses[at];
        if clause.is_tests() {
            if let Some(is_true) = clause.direct.is_true(row, &environment.constants) {
                return is_true;
            }
        }
        // (3) Run the machine.
        let found = self.run_machine(at, row, environment, scratch);
        found.is_some_and(|found| match found {
            Found::Term(term) => term == TRUE,
            Found::Arena(span) => scratch.arena[span.range()] == *TRUE,
            Found::Object | Found::Built(_) => false,
        })
    }

    /// Whether the program uses its [`Context`].
    #[inline]
    pub fn asks_context(&self) -> bool {
        self.code.asks_context
    }

    /// As [`Program::run`], for a host that makes its own term of the result. Returns what `show`
    /// returns.
    #[inline]
    pub fn show<R>(
        &self,
        object: &ObjectView<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
        show: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        self.show_row(Row::stored(object), context, scratch, show)
    }

    /// Runs on a term. Returns `None` if no clause matches. See [`Program::run`].
    pub fn run_term<'s>(
        &'s self,
        term: TermRef<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        self.run_row(&mut Row::plain(term), context, scratch)
    }

    /// Step 1: the first clause from `from` on whose tests the row passes.
    #[inline]
    pub(crate) fn first_passed(
        &self,
        from: usize,
        row: &mut Row<'_>,
        constants: &Constants<'_>,
    ) -> Option<usize> {
        let mut at = from;
        // The tests of a clause are cheap. Clauses that fail them never start the machine.
        while let Some(clause) = self.code.clauses.get(at) {
            if clause.passes(row, constants) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Runs on a row; see the module's steps.
    #[inline(always)]
    fn run_row<'s>(
        &'s self,
        row: &mut Row<'s>,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        let constants = self.constants();
        // (1) Find a clause whose tests the row passes.
        let at = self.first_passed(0, row, &constants)?;
        let environment = Environment { constants, context };
        let mut bound = None;
        let found = self.find(at, row, &environment, &mut bound, scratch)?;
        Some(Outcome::Term(raw::whole(match found {
            Found::Object => return Some(Outcome::Object),
            Found::Term(term) => term,
            Found::Arena(span) => &scratch.arena[span.range()],
            Found::Built(mut term) => term.bytes(&mut scratch.arena),
        })))
    }

    /// As `run_row`, for [`Program::show`].
    #[inline(always)]
    pub(crate) fn show_row<R>(
        &self,
        mut row: Row<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
        show: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        let constants = self.constants();
        let at = self.first_passed(0, &mut row, &constants)?;
        let environment = Environment { constants, context };
        self.show_result(at, row, environment, scratch, show)
    }

    /// Steps 2 and 3, for [`Program::show`]. The row has passed the tests of clause `at`.
    #[inline(always)]
    pub(crate) fn show_result<'s, R>(
        &'s self,
        at: usize,
        row: Row<'s>,
        environment: Environment<'_, 's>,
        scratch: &mut Scratch,
        show: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        // All of these live equally long.
        let (mut row, mut bound, mut built) = (row, None, None);
        let found = self.find(at, &mut row, &environment, &mut bound, scratch)?;
        Some(show(match found {
            Found::Object => Shown::Object,
            Found::Term(term) => Shown::Term(raw::whole(term)),
            Found::Arena(span) => Shown::Term(raw::whole(&scratch.arena[span.range()])),
            Found::Built(term) => Shown::Built(built.insert(term)),
        }))
    }

    /// Steps 2 and 3. The row has passed the tests of clause `at`. `bound` is for the variables
    /// that plain steps bind.
    #[inline(always)]
    fn find<'r, 's>(
        &'s self,
        at: usize,
        row: &'r mut Row<'s>,
        environment: &'r Environment<'_, 's>,
        bound: &'r mut Option<Bound<'s>>,
        scratch: &mut Scratch,
    ) -> Option<Found<'r, 's>> {
        let constants = &environment.constants;
        // (2) There is nothing to compute: neither a guard that is no test, nor a part of the body.
        let clause = &self.code.clauses[at];
        if clause.checks.is_empty() && clause.direct.is_uncomputed() {
            // The tests are all of the head, so the clause matches.
            if clause.head.is_tests() {
                return Some(clause.direct.find(row, constants, &NO_TERMS, scratch));
            }
            // What is left of the head are plain steps, which take terms and open tuples.
            if clause.head.plain {
                let bound = bound.insert(NO_TERMS);
                if clause.head.matches_plainly(row, constants, bound) {
                    return Some(clause.direct.find(row, constants, bound, scratch));
                }
                // The clause doesn't match. If it is the last one, no clause does. Otherwise the
                // machine goes on, and finds once more that this one doesn't match.
                if at + 1 == self.code.clauses.len() {
                    return None;
                }
            }
        }
        // (3) Run the machine.
        self.run_machine(at, row, environment, scratch)
    }

    /// Step 3: runs the clauses from `at` on. The row has passed the tests of clause `at`.
    #[inline(never)]
    fn run_machine<'r, 's>(
        &'s self,
        at: usize,
        row: &mut Row<'s>,
        &Environment { constants, context }: &Environment<'_, 's>,
        scratch: &mut Scratch,
    ) -> Option<Found<'r, 's>> {
        let environment = Environment { constants, context };
        // Several clauses need a larger stack than one.
        let memory = Memory {
            scratch,
            many: self.code.many,
        };
        Machine::on(
            &self.code.clauses[at].head,
            row,
            environment,
            memory,
            |machine| {
                // Run one clause after the other until one matches. Those whose tests fail are
                // skipped.
                let mut next = Some(at);
                while let Some(at) = next {
                    if let Some(value) = self.code.clauses[at].run(machine) {
                        return Some(machine.locate_result(value));
                    }
                    next = self.first_passed(at + 1, machine.row, &constants);
                }
                None
            },
        )
    }

    /// Roughly how many instructions a row may take. Callers that run in slices use it as the
    /// weight of a row.
    #[inline]
    pub fn cost(&self) -> usize {
        self.code.cost
    }

    /// The number of bytes of its template and its arguments. Compiling and planning take time in
    /// proportion to it, and so may a row: a large map that is searched often is sorted.
    #[inline]
    pub fn size(&self) -> usize {
        self.code.template.size() + self.arguments.size()
    }
}

/// Compiles a pattern of `match`, `match_object` or `match_delete`.
///
/// # Errors
/// A variable as the key of a map in the pattern.
pub fn compile_pattern(
    pattern: TermRef<'_>,
    result: PatternResult,
) -> Result<Program, CompileError> {
    let body = Term::list([Term::from(result.body())]);
    let nil = Term::nil();
    let clause = Term::tuple([pattern, nil.as_ref(), body.as_ref()]);
    Program::compile(Term::list([clause]).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;

    /// Constants that are arguments count in the size.
    #[test]
    fn arguments_count_in_the_size() {
        let size = |elements: usize| {
            let tuple = format!("{{{}1}}", "1000000,".repeat(elements));
            let spec = format!("[{{{{'$1'}},[{{'=:=','$1',{{const,{tuple}}}}}],[true]}}]");
            let spec: Term = spec.parse().unwrap();
            Program::compile(spec.as_ref()).unwrap().size()
        };
        assert!(size(0) < 200);
        assert!(size(10_000) > 40_000);
    }

    /// The result of a call is not kept in the program if it is far larger than the call.
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
