//! The crate's only unsafe lines: from bytes back to a term.
//!
//! Invariant of the crate: every slice that it passes around as a term is one of
//!
//! 1. a part of a term or of an object that the caller passed as trusted, for as long as the slice
//!    lives;
//! 2. a part of a program's constants: the template's bytes and the arguments, whose counts the
//!    program's `Term`s own, and terms that were assembled of parts of them;
//! 3. a part of the arena of one run: heads that the crate wrote itself, and complete terms copied
//!    from 1 and 2, which outlive the run's result by the signature of `run`.
//!
//! So each slice begins with a complete term that an encoder could have written, and the object or
//! the program owns the counts of the handles in it. Slices are cut only where a head says that a
//! term begins.

use larder_term::TermRef;

/// The first term of a run, as the term layer sees it.
#[inline]
pub(crate) fn view(run: &[u8]) -> TermRef<'_> {
    // SAFETY: 1. the run begins with a whole term, and 2. its handles' counts are held while the
    // slice lives: the module's invariant.
    unsafe { TermRef::split_first(run).0 }
}

/// A slice that is exactly one term, as the term layer sees it.
#[inline]
pub(crate) fn whole(term: &[u8]) -> TermRef<'_> {
    // SAFETY: 1. the slice is one whole term, and 2. its handles' counts are held while the slice
    // lives: the module's invariant.
    unsafe { TermRef::trusted(term) }
}

/// Whether a run begins with a term that is identical to this one, also in the signs of zeros.
/// Terms whose bytes differ are compared up to the first difference.
#[inline]
pub(crate) fn begins(run: &[u8], term: &[u8]) -> bool {
    // SAFETY: the run begins with a whole term, whose handles' counts are held while the slice
    // lives: the module's invariant.
    unsafe { whole(term).begins(run) }
}
