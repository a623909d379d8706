//! What an index by hash has to be told of its keys, and how keys lie in bodies.

use super::shape::{counting, told};
use std::ops::Range;
use std::sync::Arc;

/// What an index by hash has to be told of its keys.
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
    /// Bodies tell their keys' lengths.
    pub(crate) told: bool,
}

impl<R: KeyRule> Keys<R> {
    pub(crate) fn new(rule: R) -> Self {
        let told = !rule.ends_itself();
        Keys { rule, told }
    }

    /// The hash of a key, as far as it counts.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        counting(self.rule.hash(key))
    }

    /// Where in a body the key is.
    #[inline]
    pub(crate) fn key_in(&self, body: &[u8]) -> Range<usize> {
        if !self.told {
            return 0..self.rule.key_len(body).min(body.len());
        }
        let second = body.get(1).copied().unwrap_or(0);
        let (len, size) = told(u64::from(body[0]) | u64::from(second) << 8);
        size..(size + len).min(body.len())
    }
}
