//! What a hash-ordered index must know about its keys, and the layout of keys in bodies.

use super::shape::{truncated, LengthPrefix};
use std::ops::Range;
use std::sync::Arc;

/// What a hash-ordered index must know about its keys.
pub trait KeyRule: Send + Sync {
    /// The hash of a key, equal to `Key::hash`. Only the top 48 bits are used. Leaves store no
    /// hashes: they are computed again when a leaf is replaced, and by scans.
    fn hash(&self, key: &[u8]) -> u64;

    /// Whether keys are self-delimiting. If so, leaves don't store the length of a key, which saves
    /// one or two bytes per entry.
    fn is_self_delimiting(&self) -> bool {
        false
    }

    /// The length of the key at the beginning of `bytes`, which are a key and the value after it.
    /// Only called if keys are self-delimiting, and only with bytes that were stored. Such a key
    /// has at least one byte.
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
    fn is_self_delimiting(&self) -> bool {
        (**self).is_self_delimiting()
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        (**self).key_len(bytes)
    }
}

/// The rule for keys, and the properties of keys that every operation needs.
pub(crate) struct KeyProperties<R> {
    rule: R,
    /// Whether a body begins with the length of its key.
    pub(crate) length_prefixed: bool,
    /// The longest key that the fast search handles; 0 if the lengths of keys are stored.
    longest_short: usize,
}

/// The longest key that the fast search handles.
const LONGEST_SHORT: usize = 32;

/// What a search must know about a key.
#[derive(Clone, Copy)]
pub(crate) struct SearchForm {
    /// Whether the fast search handles the key.
    pub(crate) short: bool,
    /// Whether a body begins with the length of its key.
    pub(crate) length_prefixed: bool,
}

impl<R: KeyRule> KeyProperties<R> {
    pub(crate) fn new(rule: R) -> Self {
        let length_prefixed = !rule.is_self_delimiting();
        // Keys with a length can't be compared by the fast search.
        let longest_short = if length_prefixed { 0 } else { LONGEST_SHORT };
        KeyProperties {
            rule,
            length_prefixed,
            longest_short,
        }
    }

    /// Whether the fast search handles this key.
    #[inline]
    pub(crate) fn is_short(&self, key: &[u8]) -> bool {
        // An empty key wraps around, and so isn't short.
        key.len().wrapping_sub(1) < self.longest_short
    }

    /// What a search must know about this key.
    #[inline]
    pub(crate) fn form(&self, key: &[u8]) -> SearchForm {
        SearchForm {
            short: self.is_short(key),
            length_prefixed: self.length_prefixed,
        }
    }

    /// The hash of a key, reduced to the bits that are used.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        truncated(self.rule.hash(key))
    }

    /// Where the key lies in a body.
    #[inline]
    pub(crate) fn key_in(&self, body: &[u8]) -> Range<usize> {
        if !self.length_prefixed {
            return 0..self.rule.key_len(body).min(body.len());
        }
        let second = body.get(1).copied().unwrap_or(0);
        let prefix = LengthPrefix::decode(u64::from(body[0]) | u64::from(second) << 8);
        prefix.size..(prefix.size + prefix.key_len).min(body.len())
    }
}
