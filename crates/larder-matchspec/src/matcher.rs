//! Matchers: a program that is run on many objects of one table.
//!
//! What doesn't depend on the object is found out once: the only clause and its tests, the filter,
//! and the result of a clause that consists of tests alone. So an object that has passed the only
//! test isn't even opened if the result is `true` or the object itself.

use crate::{
    body::{BuiltTerm, TermPart},
    clause::Clause,
    constant::Constants,
    filter::{Filter, Verdict},
    head::{HeadForm, NO_TERMS},
    limits::KeyAccess,
    machine::Environment,
    outcome::{Context, Known, Shown},
    program::Program,
    row::Row,
    test::Test,
    value::Scratch,
};
use larder_term::object::ObjectView;

/// A program and what is known of it for all objects of a table.
#[derive(Debug)]
pub struct Matcher<'p> {
    program: &'p Program,
    constants: Constants<'p>,
    filter: Option<Filter<'p>>,
    /// The clause, if it is the only one, and those of its tests that the filter doesn't do.
    only: Option<(&'p Clause, &'p [Test])>,
    /// The result for an object that passes all tests of the only clause.
    known: Option<Known>,
    /// The parts of the result for such an object, if it is built of parts.
    built: Option<&'p [TermPart]>,
    /// Whether every object passes.
    matches_all: bool,
}

impl Program {
    /// The matcher for objects of a table with the key at position `keypos` (counted from 1).
    ///
    /// # Complexity
    /// O(1).
    #[inline]
    pub fn matcher(&self, keypos: usize, access: KeyAccess) -> Matcher<'_> {
        let constants = self.constants();
        // With several clauses, an object that fails the tests of one may pass those of another. So
        // nothing is found out beforehand.
        let [clause] = &self.code.clauses[..] else {
            return Matcher {
                program: self,
                constants,
                filter: None,
                only: None,
                known: None,
                built: None,
                matches_all: false,
            };
        };
        // A head that is a variable or '_', and no tests: every object passes.
        let known = clause.known_result();
        let is_any = matches!(clause.head.form, HeadForm::Any);
        let matches_all = is_any && clause.tests.is_empty();
        // To look at the arity alone only pays if the result is known then.
        let pays = !clause.tests.is_empty() || known.is_some() && !matches_all;
        let filter = pays
            .then(|| Filter::of(clause, constants, keypos, access))
            .flatten();
        // The filter does the first test.
        let rest = clause.tests.get(1..).unwrap_or_default();
        Matcher {
            program: self,
            constants,
            filter,
            only: Some((clause, rest)),
            known,
            built: clause.built_result(),
            matches_all,
        }
    }
}

impl<'p> Matcher<'p> {
    /// The filter. `None` if the program has several clauses, or if a filter wouldn't help.
    #[inline]
    pub fn filter(&self) -> Option<&Filter<'p>> {
        self.filter.as_ref()
    }

    /// The result for an object of which the filter has said this, if it is known already.
    #[inline]
    pub fn known(&self, verdict: Verdict) -> Option<Known> {
        // The object has passed all tests if there are none, or if the filter has done the only
        // one.
        let is_left = |(_, rest): (_, &[Test])| !rest.is_empty();
        match self.matches_all || verdict == Verdict::Passed && !self.only.is_some_and(is_left) {
            // `None` if the clause consists of more than tests, or if its result is another one.
            true => self.known,
            false => None,
        }
    }

    /// As [`Program::show`], on an object of which the filter has said this: passes the result to
    /// `show`, if the program matches the object.
    #[inline]
    pub fn show<R>(
        &self,
        object: &ObjectView<'_>,
        verdict: Verdict,
        context: &Context<'_>,
        scratch: &mut Scratch,
        show: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        // The tests that the filter hasn't done.
        let mut row = Row::stored(object);
        let at = self.first_passed(verdict, &mut row)?;
        // The clause consists of tests. Its result is built of parts that lie in the row and among
        // the constants, which the host puts together.
        if let Some(parts) = self.built {
            return Some(show(Shown::Built(&mut BuiltTerm {
                parts,
                given: 0,
                row: &mut row,
                constants: &self.constants,
                bound: &NO_TERMS,
            })));
        }
        // Otherwise match the rest of the clause, and compute its body.
        let environment = self.environment(context);
        self.program
            .show_result(at, row, environment, scratch, show)
    }

    /// As [`Program::is_true`], on an object of which the filter has said this.
    #[inline]
    pub fn is_true<'s>(
        &'s self,
        object: &ObjectView<'s>,
        verdict: Verdict,
        context: &Context<'s>,
        scratch: &'s mut Scratch,
    ) -> bool {
        let mut row = Row::stored(object);
        let Some(at) = self.first_passed(verdict, &mut row) else {
            return false;
        };
        let environment = self.environment(context);
        self.program.gives_true(at, &mut row, &environment, scratch)
    }

    /// The number of the first clause whose tests the row passes.
    #[inline(always)]
    fn first_passed(&self, verdict: Verdict, row: &mut Row<'_>) -> Option<usize> {
        match (self.only, verdict) {
            // The filter has checked the arity, and done the first test.
            (Some((clause, rest)), Verdict::Passed) => {
                clause.passes_all(rest, row, &self.constants).then_some(0)
            }
            // The filter hasn't read the object, or there is none.
            (Some((clause, _)), _) => clause.passes(row, &self.constants).then_some(0),
            (None, _) => self.program.first_passed(0, row, &self.constants),
        }
    }

    #[inline]
    fn environment<'c, 's>(&'s self, context: &'c Context<'s>) -> Environment<'c, 's> {
        Environment {
            constants: self.constants,
            context,
        }
    }
}
