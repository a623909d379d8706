//! The common part of both string arrays: maps from byte strings to words. They differ in how they
//! cut strings into words.

use std::fmt;
use std::ops::RangeBounds;

use crate::chunks::Chunks;
use crate::range::count_between;
use crate::raw::text::Text;
use crate::stats::TextStats;
use crate::upkeep::upkeep;

/// A map of byte strings to `u64`, sorted by bytes: [`JudySL`](crate::JudySL) or
/// [`JudyESL`](crate::JudyESL). The two differ in the strings that they accept, and therefore in
/// the result of an insert.
///
/// # Examples
///
/// ```
/// use larder_judy::{Chunks, JudyESL, JudySL, StringArray};
///
/// fn least<C: Chunks>(array: &StringArray<C>) -> Vec<u8> {
///     let mut key = Vec::new();
///     array.first(&mut key);
///     key
/// }
///
/// # fn main() -> Result<(), larder_judy::ZeroByte> {
/// let (mut short, mut any) = (JudySL::new(), JudyESL::new());
/// short.insert(b"ann", 44)?;
/// any.insert(b"an\0", 39);
/// assert_eq!((least(&short), least(&any)), (b"ann".to_vec(), b"an\0".to_vec()));
/// # Ok(())
/// # }
/// ```
///
/// # Complexity
///
/// A lookup takes O(length of the string), and so does every method that doesn't say otherwise. An
/// insert or removal also takes O(length of the single string that is separated from this one, or
/// that is left without it).
///
/// # Consistency
///
/// There may be one writer or many readers, as the borrow checker enforces. The array has no
/// synchronisation of its own.
pub struct StringArray<C: Chunks> {
    pub(crate) text: Text<C>,
}

impl<C: Chunks> StringArray<C> {
    /// An empty array, which allocates nothing.
    pub const fn new() -> Self {
        StringArray { text: Text::new() }
    }

    /// The number of strings. O(1).
    pub fn len(&self) -> u64 {
        self.text.len()
    }

    /// Whether there are no strings. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string. `None` if the string is absent, or if the array doesn't accept it.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.text.get(key).copied()
    }

    /// A mutable reference to the value of a string. `None` if the string is absent, or if the
    /// array doesn't accept it.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut u64> {
        self.text.get_mut(key)
    }

    /// Removes a string, and returns its value. `None` if the string is absent, or if the array
    /// doesn't accept it.
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Option<u64> {
        self.text.remove(key)
    }

    /// Writes the least string to `key`, and returns its value. If there are no strings, `key` is
    /// unchanged.
    pub fn first(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<true>(key).copied()
    }

    /// Writes the greatest string to `key`, and returns its value. If there are no strings, `key`
    /// is unchanged.
    pub fn last(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<false>(key).copied()
    }

    /// Replaces `key` by the least string that isn't below it, and returns its value. If there is
    /// none, `key` is unchanged.
    pub fn at_or_after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<true>(key, true).copied()
    }

    /// Replaces `key` by the least string above it, and returns its value. If there is none, `key`
    /// is unchanged.
    pub fn after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<true>(key, false).copied()
    }

    /// Replaces `key` by the greatest string that isn't above it, and returns its value. If there
    /// is none, `key` is unchanged.
    pub fn at_or_before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<false>(key, true).copied()
    }

    /// Replaces `key` by the greatest string below it, and returns its value. If there is none,
    /// `key` is unchanged.
    pub fn before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<false>(key, false).copied()
    }

    /// The number of strings before this one; with `inclusive`, up to it. A string that the array
    /// doesn't accept sorts right after its longest prefix that the array accepts.
    fn rank(&self, key: &[u8], inclusive: bool) -> u64 {
        // Up to the byte that strays, the key is a string that may be in the array. It is before
        // the whole key then.
        let at = C::stray(key);
        let key = &key[..at.unwrap_or(key.len())];
        let inclusive = inclusive || at.is_some();
        self.text.rank(key) + (inclusive && self.text.get(key).is_some()) as u64
    }

    /// The number of strings in a range. Counts the words beside the paths to its bounds, and the
    /// runs below these, without assembling or comparing strings. Takes O(strings before the end of
    /// the range, and the words that they share); a step takes much less than one of `after`.
    pub fn count(&self, range: impl RangeBounds<[u8]>) -> u64 {
        count_between(range, self.len(), |key, inclusive| {
            self.rank(key, inclusive)
        })
    }

    /// Writes the string that has `n` strings before it to `key`, and returns its value. If there
    /// are fewer, `key` is unchanged. Counts the strings before it as `count` does, but may have to
    /// count up to `n` strings again at each word of the string. So it takes O(`n` · length of the
    /// string) in the worst case.
    pub fn nth(&self, n: u64, key: &mut Vec<u8>) -> Option<u64> {
        self.text.nth(n, key).copied()
    }

    /// All strings in order, each with its value. Each step descends from the root, and copies the
    /// string.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u8>, u64)> + '_ {
        let (mut key, mut begun) = (Vec::new(), false);
        std::iter::from_fn(move || {
            let value = if begun {
                self.after(&mut key)
            } else {
                self.first(&mut key)
            };
            begun = true;
            value.map(|value| (key.clone(), value))
        })
    }

    upkeep!(
        text,
        TextStats,
        "Gives back at most `limit` nodes of what `clear_later` left, short-cut leaves not \
         counted, and returns whether there are more. O(256 `limit`)."
    );
}

impl<C: Chunks> Default for StringArray<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Chunks> fmt::Debug for StringArray<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
