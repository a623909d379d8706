//! What an index by hash must know of its keys, and how keys lie in bodies.

use super::shape::{counting, decode_key_len};
use std::ops::Range;
use std::sync::Arc;

/// What an index by hash must know of its keys.
pub trait KeyRule: Send + Sync {
    /// The hash of a key, the same that `Key::hash` says: only its top 48 bits count. Leaves keep
    /// no hashes: they are made anew when a leaf is replaced, and for scans.
    fn hash(&self, key: &[u8]) -> u64;

    /// Whether a key tells its own end: then leaves don't note its length, which saves a byte or
    /// two a row.
    fn ends_itself(&self) -> bool {
        false
    }

    /// The length of the key that `bytes`, a key and a value behind it, begin with. Called only if
    /// keys end themselves, and only with what was stored; a key has at least one byte then.
    fn key_len(&self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

/// A shared rule.
pub type Rule = Arc<dyn KeyRule>;

impl<T: KeyRule + ?Sized> KeyRule for Arc<T> {
    fn hash(&self, key: &[u8]) -> u64 {
        (**self).hash(key)
    }
    fn ends_itself(&self) -> bool {
        (**self).ends_itself()
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        (**self).key_len(bytes)
    }
}

/// The rule, with what is asked of it all the time.
pub(crate) struct Keys<R> {
    rule: R,
    /// Bodies have their keys' lengths before them.
    pub(crate) length_prefixed: bool,
    /// The longest key that the fast search is for; 0 if keys have their lengths before them.
    longest_short: usize,
}

/// The longest key that the fast search is for.
pub(crate) const LONGEST_SHORT: usize = 32;

/// What a search has to know of a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyForm {
    /// The fast search is for such keys.
    pub(crate) short: bool,
    /// Bodies have their keys' lengths before them.
    pub(crate) length_prefixed: bool,
}

impl<R: KeyRule> Keys<R> {
    pub(crate) fn new(rule: R) -> Self {
        let length_prefixed = !rule.ends_itself();
        let longest_short = if length_prefixed { 0 } else { LONGEST_SHORT };
        Keys {
            rule,
            length_prefixed,
            longest_short,
        }
    }

    /// Whether the fast search is for keys like this one.
    #[inline(always)]
    pub(crate) fn is_short(&self, key: &[u8]) -> bool {
        key.len().wrapping_sub(1) < self.longest_short
    }

    /// What a search has to know of a key.
    #[inline(always)]
    pub(crate) fn form(&self, key: &[u8]) -> KeyForm {
        KeyForm {
            short: self.is_short(key),
            length_prefixed: self.length_prefixed,
        }
    }

    /// The hash of a key, as far as it counts.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        counting(self.rule.hash(key))
    }

    /// Where in a body the key is.
    #[inline]
    pub(crate) fn key_in(&self, body: &[u8]) -> Range<usize> {
        if !self.length_prefixed {
            return 0..self.rule.key_len(body).min(body.len());
        }
        let second = body.get(1).copied().unwrap_or(0);
        let (len, size) = decode_key_len(u64::from(body[0]) | u64::from(second) << 8);
        size..(size + len).min(body.len())
    }
}
