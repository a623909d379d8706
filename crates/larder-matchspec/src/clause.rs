//! Compiled clauses.

use crate::{
    body::Gives,
    constant::Constants,
    gen::Ops,
    head::{Match, Shape},
    ir::NodeId,
    machine::Machine,
    row::{Fields, Row},
    test::Tests,
    value::{Val, FEW},
};
use smallvec::SmallVec;

/// A compiled clause.
#[derive(Debug, Default)]
pub(crate) struct Clause {
    pub(crate) head: Match,
    /// The guards as nodes, for planning.
    pub(crate) guards: SmallVec<[NodeId; 4]>,
    /// What is asked of elements, by position.
    pub(crate) tests: Tests,
    /// How many elements a row must have for the tests, where the head does not say.
    pub(crate) least: usize,
    /// The guards that are no tests.
    pub(crate) checks: Ops,
    pub(crate) result: Ops,
    pub(crate) gives: Gives,
}

impl Clause {
    /// Roughly how many instructions a row may take.
    pub(crate) fn cost(&self) -> usize {
        let head = self.head.steps.len() + self.tests.len();
        1 + head + self.checks.len() + self.result.len()
    }

    /// Whether a row has as many elements as the clause wants, and passes its tests. A part of
    /// every scan's loop.
    #[inline(always)]
    pub(crate) fn passes(
        &self,
        row: &Row<'_>,
        fields: &mut Fields<'_>,
        constants: &Constants<'_>,
    ) -> bool {
        let enough = match self.head.shape {
            Shape::Tuple { arity, .. } => row.tuple_arity() == Some(arity),
            _ => self.least == 0 || row.tuple_arity().is_some_and(|arity| arity >= self.least),
        };
        if !enough {
            return false;
        }
        for test in &self.tests {
            if !test.passes(&self.head, fields, constants) {
                return false;
            }
        }
        true
    }

    /// Whether a row that passes the tests fits.
    #[inline]
    pub(crate) fn is_tests(&self) -> bool {
        self.checks.is_empty() && self.head.is_tests()
    }

    /// Each instruction pushes one value at most.
    pub(crate) fn needs_many(&self) -> bool {
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
    pub(crate) fn run<'a, 's>(&'a self, machine: &mut Machine<'a, 's>) -> Option<Val<'a>>
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
