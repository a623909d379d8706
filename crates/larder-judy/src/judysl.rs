//! JudySL: words under zero-terminated byte strings.

use std::fmt;

use crate::chunks::{Chunks, Terminated};
use crate::strings::StringArray;

/// A map of byte strings without zero bytes to `u64`, sorted by bytes. Keys are given without the
/// zero that ends them in C.
///
/// A key with a zero byte has no value. It comes directly after the part before that byte: no
/// string of the array begins with that and a zero. Where keys hold zero bytes, or may, use
/// [`JudyESL`](crate::JudyESL): it takes seven bytes a step, this one eight.
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
pub type JudySL = StringArray<Terminated>;

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

#[inline]
fn checked(key: &[u8]) -> Result<&[u8], ZeroByte> {
    match Terminated::stray(key) {
        None => Ok(key),
        Some(at) => Err(ZeroByte { at }),
    }
}

impl StringArray<Terminated> {
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
}
