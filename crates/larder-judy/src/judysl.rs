//! JudySL: words under zero-terminated byte strings.

use std::fmt;
use std::ops::RangeBounds;

use crate::chunks::{zero_at, Terminated};
use crate::range::count_between;
use crate::raw::text::Text;
use crate::stats::TextStats;

/// A map of byte strings without zero bytes to `u64`, sorted by bytes. Keys are given without the zero that ends them in C.
///
/// Where keys hold zero bytes, or may, use [`JudyESL`](crate::JudyESL): it takes seven bytes a step, this one eight.
///
/// # Examples
///
/// ```
/// use larder_judy::JudySL;
///
/// # fn main() -> Result<(), larder_judy::ZeroByte> {
/// let mut ages = JudySL::new();
/// ages.insert(b"ann", 44)?;
/// ages.insert(b"anne of green gables", 11)?;
/// let mut key = b"anna".to_vec();
/// assert_eq!(ages.at_or_after(&mut key), Some(11));
/// assert_eq!(key, b"anne of green gables");
/// assert!(ages.insert(b"zero\0", 1).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Complexity
///
/// A lookup, insert or removal takes O(length of the string). Where nothing else is said, so does a method.
///
/// # Consistency
///
/// One writer or many readers, as the borrow checker has it; the array knows nothing of threads.
pub struct JudySL {
    text: Text<Terminated>,
}

/// A key of a [`JudySL`] has a zero byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroByte {
    /// Where the first one is.
    pub at: usize,
}

impl fmt::Display for ZeroByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a zero byte at {} in a key of zero-terminated strings",
            self.at
        )
    }
}

impl std::error::Error for ZeroByte {}

/// Whether a word of the key, or the key itself, ends with a zero byte: then its words could be taken for those of another string.
#[inline]
fn ends_in_zeros(key: &[u8]) -> bool {
    key.last() == Some(&0) || key.iter().skip(7).step_by(8).any(|&byte| byte == 0)
}

fn checked(key: &[u8]) -> Result<&[u8], ZeroByte> {
    match zero_at(key) {
        None => Ok(key),
        Some(at) => Err(ZeroByte { at }),
    }
}

impl JudySL {
    /// An empty array; it takes no memory beside itself.
    pub const fn new() -> Self {
        JudySL { text: Text::new() }
    }

    /// How many strings there are. O(1).
    pub fn len(&self) -> u64 {
        self.text.len()
    }

    /// Whether there are none. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string. A key with a zero byte has none.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.text.get(key).copied()
    }

    /// The value of a string, to be written. A key with a zero byte has none.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut u64> {
        self.text.get_mut(checked(key).ok()?)
    }

    /// The value of a string, which is inserted with value zero if it was not there.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] if the key has one.
    #[inline]
    pub fn get_or_insert(&mut self, key: &[u8]) -> Result<&mut u64, ZeroByte> {
        Ok(self.text.insert(checked(key)?).0)
    }

    /// Sets the value of a string, and returns the one that it had.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] if the key has one.
    #[inline]
    pub fn insert(&mut self, key: &[u8], value: u64) -> Result<Option<u64>, ZeroByte> {
        let (slot, new) = self.text.insert(checked(key)?);
        let old = std::mem::replace(slot, value);
        Ok((!new).then_some(old))
    }

    /// Removes a string, and returns its value. A key with a zero byte has none.
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Option<u64> {
        self.text.remove(key)
    }

    /// Keys with a zero byte lie right above what is before it, as no string of the array begins with that and a zero.
    #[inline]
    fn seek<const UP: bool>(&self, key: &mut Vec<u8>, inclusive: bool) -> Option<u64> {
        // Other zero bytes are where none of a string's are, and words with them lie where such keys do.
        let at = if ends_in_zeros(key) {
            zero_at(key)
        } else {
            None
        };
        let Some(at) = at else {
            return self.text.seek::<UP>(key, inclusive).copied();
        };
        let tail = key.split_off(at);
        let found = self.text.seek::<UP>(key, !UP).copied();
        if found.is_none() {
            key.extend_from_slice(&tail);
        }
        found
    }

    /// Puts the least string into `key`, and returns its value; without strings `key` stays.
    pub fn first(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<true>(key).copied()
    }

    /// Puts the greatest string into `key`, and returns its value; without strings `key` stays.
    pub fn last(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<false>(key).copied()
    }

    /// Replaces `key` by the least string not below it, and returns its value; if there is none, `key` stays.
    pub fn at_or_after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.seek::<true>(key, true)
    }

    /// Replaces `key` by the least string above it, and returns its value; if there is none, `key` stays.
    pub fn after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.seek::<true>(key, false)
    }

    /// Replaces `key` by the greatest string not above it, and returns its value; if there is none, `key` stays.
    pub fn at_or_before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.seek::<false>(key, true)
    }

    /// Replaces `key` by the greatest string below it, and returns its value; if there is none, `key` stays.
    pub fn before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.seek::<false>(key, false)
    }

    /// Strings before this one, or up to it. A key with a zero byte lies right above what is before that.
    fn rank(&self, key: &[u8], inclusive: bool) -> u64 {
        let at = zero_at(key);
        let key = &key[..at.unwrap_or(key.len())];
        let inclusive = inclusive || at.is_some();
        self.text.rank(key) + (inclusive && self.text.get(key).is_some()) as u64
    }

    /// How many strings there are in a range, by counting the words beside the ways to its bounds and the runs below those, without
    /// putting strings together or comparing them: O(strings before the range's end), a step much shorter than one of `after`.
    pub fn count(&self, range: impl RangeBounds<[u8]>) -> u64 {
        count_between(range, self.len(), |key, inclusive| {
            self.rank(key, inclusive)
        })
    }

    /// Puts the string that has `n` strings before it into `key`, and returns its value; if there are not so many, `key` stays. O(`n`), as `count`.
    pub fn nth(&self, n: u64, key: &mut Vec<u8>) -> Option<u64> {
        self.text.nth(n, key).copied()
    }

    /// All strings in order, each with its value. A step takes a new descent and a copy of the string.
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

    /// Removes everything. Visits every node.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Removes everything, and leaves the memory to be given back by [`free_some`](Self::free_some), or by `drop`. The
    /// array is empty at once and can be used. O(1).
    pub fn clear_later(&mut self) {
        self.text.clear_later();
    }

    /// Gives back at most `limit` nodes of what `clear_later` left, short-cut leaves not counted, and returns whether
    /// there are more. O(256 `limit`).
    pub fn free_some(&mut self, limit: usize) -> bool {
        self.text.free_some(limit)
    }

    /// The bytes that the array's nodes take, exactly, with those that wait to be given back. O(1).
    pub fn memory_used(&self) -> usize {
        self.text.memory_used()
    }

    /// Which nodes the array is made of. Visits every node.
    pub fn stats(&self) -> TextStats {
        self.text.stats()
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.text.check();
    }
}

impl Default for JudySL {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for JudySL {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
