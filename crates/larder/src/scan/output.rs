//! The results of scans, and how a slice of one ends.

use crate::programs::BuiltTerm;
use larder_term::object::ObjectView;
use larder_term::TermRef;

/// One result of a select.
pub enum Output<'a> {
    /// The object itself.
    Object(&'a ObjectView<'a>),
    /// A term that the program has computed, or that it has as a constant.
    Term(TermRef<'a>),
    /// A term whose parts lie in the object and in the program.
    Built(&'a mut BuiltTerm<'a, 'a>),
}

/// A consumer of results.
pub(super) type Sink<'a> = dyn FnMut(Output<'_>) + 'a;

/// The outcome of a slice of a select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanStep {
    /// The budget is used up. Call `step` again.
    More,
    /// The limit is reached. There may be more results: use `continuation`, or call `set_limit` and
    /// `step` again.
    Limit,
    /// The scan is at its end.
    Done,
}
