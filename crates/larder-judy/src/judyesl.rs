//! JudyESL: words under byte strings of any bytes.

use crate::chunks::Counted;
use crate::strings::StringArray;

/// A map of byte strings to `u64`, sorted by bytes. Strings carry their length: they may hold any
/// bytes.
///
/// # Examples
///
/// ```
/// use larder_judy::JudyESL;
/// use std::ops::Bound;
///
/// let mut ages = JudyESL::new();
/// ages.insert(b"ann", 44);
/// ages.insert(b"ann\0e", 39);
/// ages.insert(b"", 0);
/// let mut key = b"ann".to_vec();
/// assert_eq!(ages.after(&mut key), Some(39));
/// assert_eq!(key, b"ann\0e");
/// assert_eq!(ages.nth(1, &mut key), Some(44));
/// assert_eq!(ages.count((Bound::Excluded(&b""[..]), Bound::Unbounded)), 2);
/// assert_eq!(ages.remove(b""), Some(0));
/// assert_eq!(ages.len(), 2);
/// ```
pub type JudyESL = StringArray<Counted>;

impl StringArray<Counted> {
    /// The value of a string, which is inserted with value zero if it was not there.
    #[inline]
    pub fn get_or_insert(&mut self, key: &[u8]) -> &mut u64 {
        self.text.insert(key).0
    }

    /// Sets the value of a string, and returns the one that it had.
    #[inline]
    pub fn insert(&mut self, key: &[u8], value: u64) -> Option<u64> {
        let (slot, new) = self.text.insert(key);
        let old = std::mem::replace(slot, value);
        (!new).then_some(old)
    }
}
