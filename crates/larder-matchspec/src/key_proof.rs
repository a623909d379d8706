//! What is kept with compiled code of the proof that a replacement keeps keys (see `replace`).

use smallvec::SmallVec;

/// What is known of all programs of some code, for a key at one position.
#[derive(Debug)]
pub(crate) struct KeyProof {
    pub(crate) keypos: usize,
    pub(crate) proved: Proved,
}

#[derive(Debug)]
pub(crate) enum Proved {
    /// Keys stay if the two arguments of each pair are the same leaf.
    If(SamePairs),
    /// Keys may change.
    Refused,
    /// That depends on the arguments.
    Undecided,
}

/// An argument in the head, and the one that must be the same in the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamePair {
    pub(crate) head: u32,
    pub(crate) body: u32,
    /// Whether the second one is in a `{const,X}`.
    pub(crate) constant: bool,
}

pub(crate) type SamePairs = SmallVec<[SamePair; 1]>;
