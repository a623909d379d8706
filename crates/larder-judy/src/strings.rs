//! What both string arrays are: words under byte strings, cut into words in one way or the other.

use std::fmt;
use std::ops::RangeBounds;

use crate::chunks::Chunks;
use crate::range::count_between;
use crate::raw::text::Text;
use crate::stats::TextStats;
use crate::upkeep::upkeep;

/// A map of byte strings to `u64`, sorted by bytes: [`JudySL`](crate::JudySL) or
/// [`JudyESL`](crate::JudyESL), which differ in the strings that they take, and so in what an
/// insert answers.
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
/// A lookup takes O(length of the string). Where nothing else is said, so does a method. An insert
/// or removal takes O(length of the string, and of the lone string that it parts from or leaves
/// alone).
///
/// # Consistency
///
/// One writer or many readers, as the borrow checker has it; the array knows nothing of threads.
pub struct StringArray<C: Chunks> {
    pub(crate) text: Text<C>,
}

impl<C: Chunks> StringArray<C> {
    /// An empty array; it takes no memory beside itself.
    pub const fn new() -> Self {
        StringArray { text: Text::new() }
    }

    /// How many strings there are. O(1).
    pub fn len(&self) -> u64 {
        self.text.len()
    }

    /// Whether there are none. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string. A string that the array can't have has none.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        self.text.get(key).copied()
    }

    /// The value of a string, to be written. A string that the array can't have has none.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut u64> {
        self.text.get_mut(key)
    }

    /// Removes a string, and returns its value. A string that the array can't have has none.
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Option<u64> {
        self.text.remove(key)
    }

    /// Puts the least string into `key`, and returns its value; without strings `key` stays.
    pub fn first(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<true>(key).copied()
    }

    /// Puts the greatest string into `key`, and returns its value; without strings `key` stays.
    pub fn last(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.first::<false>(key).copied()
    }

    /// Replaces `key` by the least string not below it, and returns its value; if there is none,
    /// `key` stays.
    pub fn at_or_after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<true>(key, true).copied()
    }

    /// Replaces `key` by the least string above it, and returns its value; if there is none, `key`
    /// stays.
    pub fn after(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<true>(key, false).copied()
    }

    /// Replaces `key` by the greatest string not above it, and returns its value; if there is none,
    /// `key` stays.
    pub fn at_or_before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<false>(key, true).copied()
    }

    /// Replaces `key` by the greatest string below it, and returns its value; if there is none,
    /// `key` stays.
    pub fn before(&self, key: &mut Vec<u8>) -> Option<u64> {
        self.text.seek::<false>(key, false).copied()
    }

    /// Strings before this one, or up to it. A string that the array can't have lies right above
    /// the most of it that the array can.
    fn rank(&self, key: &[u8], inclusive: bool) -> u64 {
        let at = C::stray(key);
        let key = &key[..at.unwrap_or(key.len())];
        let inclusive = inclusive || at.is_some();
        self.text.rank(key) + (inclusive && self.text.get(key).is_some()) as u64
    }

    /// How many strings there are in a range, by counting the words beside the ways to its bounds
    /// and the runs below those, without putting strings together or comparing them: O(strings
    /// before the range's end, and the words that they share), a step much shorter than one of
    /// `after`.
    pub fn count(&self, range: impl RangeBounds<[u8]>) -> u64 {
        count_between(range, self.len(), |key, inclusive| {
            self.rank(key, inclusive)
        })
    }

    /// Puts the string that has `n` strings before it into `key`, and returns its value; if there
    /// are not so many, `key` stays. Passes the strings before it as `count` does, but may have to
    /// count up to `n` strings again at each word of the string: O(`n` · length of the string) at
    /// worst.
    pub fn nth(&self, n: u64, key: &mut Vec<u8>) -> Option<u64> {
        self.text.nth(n, key).copied()
    }

    /// All strings in order, each with its value. A step takes a new descent and a copy of the
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
