//! The common prefix of the positions in a leaf. A leaf stores it once. Slots and records only have
//! what follows it. So the five-byte heads in the slots distinguish most entries.
//!
//! ```text
//!  positions   user/1041   user/1187   user/2203        fences: us … use\x7f
//!  prefix      user/                                    fenced: us, common to both fences
//!  heads       1041        1187        2203
//! ```
//!
//! Invariants (docs/design.md §4.4):
//! * B2: The prefix of a leaf never changes, so readers need no lock for it.
//! * **B9** Both fences begin with the first `fenced` bytes of the prefix. So every position of the
//!   range does, present or not.
//! * **B10** Every entry begins with the whole prefix. A position of the range that doesn't is
//!   absent. It is less than the positions of all entries, or greater than all of them.
//!
//! When a leaf is built, its prefix is computed from its entries. If a position that doesn't begin
//! with the prefix is inserted, the leaf is replaced by one with a shorter prefix
//! (`shorten_prefix`).
//!
//! Source: prefix truncation after Bayer and Unterauer 1977. Deviation: they truncate only what the
//! fences have in common. The entries often have more in common, for example if the table is small,
//! or its keys are tuples with a constant element.

use std::borrow::Cow;

/// The maximum of `fenced`.
const MOST_FENCED: usize = 1024;
/// The maximum length beyond `fenced`. If an insert shortens the prefix to `fenced`, each entry of
/// the leaf grows by that difference.
const MOST_SHARED: usize = 64;
/// The number of bytes by which a prefix must become longer, or it isn't replaced.
const WORTH: usize = 2;

/// The length of the common prefix.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The prefix of a leaf, or of one that is being built.
#[derive(Clone, Debug)]
pub(crate) struct Prefix<'p> {
    bytes: Cow<'p, [u8]>,
    /// The length of the part that the fences have in common.
    fenced: usize,
}

impl<'p> Prefix<'p> {
    /// The common prefix of the fences. Empty for the first and the last leaf, which have only one.
    pub(crate) fn of_fences(low: Option<&'p [u8]>, high: Option<&'p [u8]>) -> Self {
        // A leaf without a fence on one side has positions with any beginning.
        let bytes = match (low, high) {
            (Some(low), Some(high)) => &low[..common(low, high).min(MOST_FENCED)],
            _ => &[],
        };
        Prefix {
            bytes: bytes.into(),
            fenced: bytes.len(),
        }
    }

    /// A leaf's prefix, of which the fences have the first `fenced` bytes in common.
    pub(crate) fn of_leaf(bytes: &'p [u8], fenced: usize) -> Self {
        Prefix {
            bytes: bytes.into(),
            fenced,
        }
    }

    /// The common prefix of this prefix and a position of the leaf's range.
    pub(crate) fn shared_with(&self, position: &[u8]) -> Prefix<'_> {
        let shared = common(&self.bytes, position);
        debug_assert!(shared >= self.fenced, "a position is between its fences");
        Prefix {
            bytes: self.bytes[..shared].into(),
            fenced: self.fenced,
        }
    }

    /// The longer one of this and `other`, for the fences of this. All entries must begin with
    /// both.
    pub(crate) fn or_longer(self, other: &'p [u8]) -> Self {
        match other.len() > self.len() {
            true => Prefix::of_leaf(other, self.fenced),
            false => self,
        }
    }

    /// The common prefix of the entries from `first` to `last`, if it is longer than this one by
    /// [`WORTH`] bytes or more. Otherwise this one. Entries are sorted, so what the first and the
    /// last one have in common, all have.
    pub(crate) fn extended(self, first: &[u8], last: &[u8]) -> Self {
        // The part beyond the fences is limited.
        let shared = common(first, last).min(self.fenced + MOST_SHARED);
        // A slightly longer prefix would save less than it takes.
        if shared < self.len() + WORTH {
            return self;
        }
        Prefix {
            bytes: first[..shared].to_vec().into(),
            fenced: self.fenced,
        }
    }

    /// Estimates from the heads whether `extended` would return a longer prefix that makes entries
    /// smaller. `equal` is the number of bytes that the heads have in common, and `suffix` the
    /// length of the suffixes. With at most five bytes, a suffix is in the slot, so nothing is
    /// saved.
    pub(crate) fn is_worth(equal: usize, suffix: usize) -> bool {
        equal >= WORTH && suffix > 5
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The length.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The length of the part that the fences have in common.
    pub(crate) fn fenced(&self) -> usize {
        self.fenced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_what_fences_give_or_what_entries_share() {
        let fences = |low, high| Prefix::of_fences(low, high);
        assert_eq!(fences(None, Some(b"ab")).len(), 0);
        let shared = fences(Some(b"user/1"), Some(b"user/7"));
        assert_eq!((shared.bytes(), shared.fenced()), (&b"user/"[..], 5));

        let longer = shared.clone().extended(b"user/1041", b"user/1042");
        assert_eq!((longer.bytes(), longer.fenced()), (&b"user/104"[..], 5));
        // One more byte is less than `WORTH`.
        assert_eq!(shared.clone().extended(b"user/1041", b"user/1187").len(), 5);
        let long = [b"user/1".to_vec(), vec![7; 100]].concat();
        assert_eq!(shared.extended(&long, &long).len(), 5 + MOST_SHARED);

        let shorter = longer.shared_with(b"user/2");
        assert_eq!((shorter.bytes(), shorter.fenced()), (&b"user/"[..], 5));
    }
}
