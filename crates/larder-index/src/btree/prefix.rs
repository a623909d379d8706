//! What all entries of a leaf begin with. It is kept once, so that slots and records have what is
//! behind it, and the five bytes in a slot tell entries apart.
//!
//! ```text
//!  positions   user/1041   user/1187   user/2203        fences: us … use\x7f
//!  prefix      user/                                    fenced: us
//!  heads       1041        1187        2203
//! ```
//!
//! Invariants:
//! 1. Every position of the leaf's range begins with the first `fenced` bytes: both fences do.
//! 2. Every entry begins with the whole prefix. What doesn't isn't in the leaf: it comes before all
//!    of its entries or behind all of them.
//!
//! The prefix never changes. When the leaf is made anew it becomes what its entries have in common;
//! an insert of what doesn't begin so replaces the leaf by one with a shorter prefix
//! (`shorten_prefix`).
//!
//! Source: prefix truncation after Bayer and Unterauer 1977. Deviation: theirs is what the fences
//! have in common; keys of a small table, or tuples with a constant element, have more.

use std::borrow::Cow;

/// The most bytes that fences may give.
const MOST_FENCED: usize = 1024;
/// The most bytes beyond them. A leaf whose prefix is shortened grows by as much for each entry.
const MOST_SHARED: usize = 64;
/// Bytes that a longer prefix saves at least, or it stays as it is.
const WORTH: usize = 2;

/// How many leading bytes two runs share.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The prefix of a leaf that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Prefix<'p> {
    bytes: Cow<'p, [u8]>,
    fenced: usize,
}

impl<'p> Prefix<'p> {
    /// What all positions between the fences begin with.
    pub(crate) fn of_fences(low: Option<&'p [u8]>, high: Option<&'p [u8]>) -> Self {
        let bytes = match (low, high) {
            (Some(low), Some(high)) => &low[..common(low, high).min(MOST_FENCED)],
            _ => &[],
        };
        Prefix {
            bytes: bytes.into(),
            fenced: bytes.len(),
        }
    }

    /// That of a leaf, of which the fences give so many.
    pub(crate) fn of_leaf(bytes: &'p [u8], fenced: usize) -> Self {
        Prefix {
            bytes: bytes.into(),
            fenced,
        }
    }

    /// What this and a position of the leaf's range have in common.
    pub(crate) fn shared_with(&self, position: &[u8]) -> Prefix<'_> {
        let shared = common(&self.bytes, position);
        debug_assert!(shared >= self.fenced, "a position is between its fences");
        Prefix {
            bytes: self.bytes[..shared].into(),
            fenced: self.fenced,
        }
    }

    /// As long as this one or `other`, whichever is longer, for the fences of this one. All entries
    /// begin with both.
    pub(crate) fn or_longer(self, other: &'p [u8]) -> Self {
        match other.len() > self.len() {
            true => Prefix::of_leaf(other, self.fenced),
            false => self,
        }
    }

    /// What entries have in common of which these are the first and the last, if that is enough
    /// more than this.
    pub(crate) fn extended(self, first: &[u8], last: &[u8]) -> Self {
        let shared = common(first, last).min(self.fenced + MOST_SHARED);
        if shared < self.len() + WORTH {
            return self;
        }
        Prefix {
            bytes: first[..shared].to_vec().into(),
            fenced: self.fenced,
        }
    }

    /// Whether heads of this many equal bytes, of positions that have so many bytes behind the
    /// prefix, say that a longer prefix may be worth while.
    pub(crate) fn is_worth(equal: usize, suffix: usize) -> bool {
        equal >= WORTH && suffix > 5
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many of them the fences give.
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
        let own = fences(Some(b"user/1"), Some(b"user/7"));
        assert_eq!((own.bytes(), own.fenced()), (&b"user/"[..], 5));

        let longer = own.clone().extended(b"user/1041", b"user/1042");
        assert_eq!((longer.bytes(), longer.fenced()), (&b"user/104"[..], 5));
        // One byte is not worth it.
        assert_eq!(own.clone().extended(b"user/1041", b"user/1187").len(), 5);
        let long = [b"user/1".to_vec(), vec![7; 100]].concat();
        assert_eq!(own.extended(&long, &long).len(), 5 + MOST_SHARED);

        let shorter = longer.shared_with(b"user/2");
        assert_eq!((shorter.bytes(), shorter.fenced()), (&b"user/"[..], 5));
    }
}
