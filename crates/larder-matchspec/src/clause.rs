//! Compiled clauses.

use crate::{
    body::{DirectBody, TermPart},
    constant::Constants,
    gen::Ops,
    head::{CompiledHead, HeadForm},
    ir::NodeId,
    machine::Machine,
    outcome::Known,
    row::Row,
    test::{Test, Tests},
    value::{Val, INLINE_VALUES},
};
use smallvec::SmallVec;

/// A compiled clause.
#[derive(Debug, Default)]
pub(crate) struct Clause {
    pub(crate) head: CompiledHead,
    /// The guards as nodes, for planning.
    pub(crate) guards: SmallVec<[NodeId; 4]>,
    /// The tests of single elements, sorted by position.
    pub(crate) tests: Tests,
    /// The number of elements that a row must have for the tests, if the head doesn't determine it.
    pub(crate) min_arity: usize,
    /// The instructions of the guards that aren't tests.
    pub(crate) checks: Ops,
    /// The instructions of the body.
    pub(crate) result: Ops,
    /// The body, if it needs no computation.
    pub(crate) direct: DirectBody,
}

impl Clause {
    /// Roughly how many instructions a row may take.
    pub(crate) fn cost(&self) -> usize {
        let head = self.head.steps.len() + self.tests.len();
        1 + head + self.checks.len() + self.result.len()
    }

    /// Whether a row has enough elements, and passes the tests. Every scan calls this for each row
    /// and clause.
    #[inline(always)]
    pub(crate) fn passes(&self, row: &mut Row<'_>, constants: &Constants<'_>) -> bool {
        self.has_arity(row) && self.passes_all(&self.tests, row, constants)
    }

    /// Whether a row has as many elements as the head wants, and enough for the tests. They find
    /// elements by position without a check.
    #[inline]
    fn has_arity(&self, row: &Row<'_>) -> bool {
        match self.head.form {
            // A head that is a tuple matches tuples of its own size only. Any other head needs as
            // many elements as its tests look at.
            HeadForm::Tuple { arity, .. } => row.tuple_arity() == Some(arity),
            _ => {
                self.min_arity == 0
                    || row
                        .tuple_arity()
                        .is_some_and(|arity| arity >= self.min_arity)
            }
        }
    }

    /// Whether a row that has enough elements passes some of the tests.
    #[inline(always)]
    pub(crate) fn passes_all(
        &self,
        tests: &[Test],
        row: &mut Row<'_>,
        constants: &Constants<'_>,
    ) -> bool {
        for test in tests {
            if !test.passes(&self.head, row, constants) {
                return false;
            }
        }
        true
    }

    /// Whether every row that passes the tests matches the clause.
    #[inline]
    pub(crate) fn is_tests(&self) -> bool {
        self.checks.is_empty() && self.head.is_tests()
    }

    /// The result for every row that passes the tests, if it depends on nothing else.
    pub(crate) fn known_result(&self) -> Option<Known> {
        match self.direct {
            _ if !self.is_tests() => None,
            DirectBody::True => Some(Known::True),
            DirectBody::Object => Some(Known::Object),
            _ => None,
        }
    }

    /// The parts of the result for every row that passes the tests, if it is built of parts.
    pub(crate) fn built_result(&self) -> Option<&[TermPart]> {
        match &self.direct {
            DirectBody::Built(parts) if self.is_tests() => Some(parts),
            _ => None,
        }
    }

    /// Whether the clause may need more than the few values that the machine has inline. Each
    /// instruction pushes at most one value.
    pub(crate) fn needs_many(&self) -> bool {
        // Variables, checks and results never hold more values at once than they have instructions.
        [
            self.head.variables.len(),
            self.checks.len(),
            self.result.len(),
        ]
        .iter()
        .any(|&n| n > INLINE_VALUES)
    }

    /// Runs on a row that has passed the tests. Returns `None` if the clause doesn't match.
    #[inline]
    pub(crate) fn run<'a, 's>(&'a self, machine: &mut Machine<'a, 's>) -> Option<Val<'a>>
    where
        'a: 's,
    {
        // Variables of the clause before are forgotten.
        machine.next_clause(&self.head);
        // The steps of the head bind the variables that the guards and the body use.
        if !machine.matches(&self.head) || !machine.guards(&self.checks) {
            return None;
        }
        // An error in a body doesn't fail the clause: the result is 'EXIT'.
        machine.body(&self.result).ok()
    }
}
