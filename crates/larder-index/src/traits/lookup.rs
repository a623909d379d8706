//! The results of lookups of short values.

/// The maximum length of a value that [`Unique::get_into`](super::Unique::get_into) copies to its
/// buffer.
pub const SHORT_VALUE: usize = 64;

/// The result of [`Unique::get_into`](super::Unique::get_into).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is no value under the key.
    Absent,
    /// The value has this number of bytes, which were copied.
    Short(usize),
    /// The value is not in the short buffer. It was copied to the long one, if the caller has
    /// passed one, or it was lent ([`Unique::get_or_lend`](super::Unique::get_or_lend)).
    Long,
}

impl Lookup {
    /// Copies a value to `out`. If it is too long for that, it replaces the contents of `long`.
    #[inline]
    pub fn copied(value: &[u8], out: &mut [u8; SHORT_VALUE], long: Option<&mut Vec<u8>>) -> Lookup {
        let Some(to) = out.get_mut(..value.len()) else {
            if let Some(long) = long {
                long.clear();
                long.extend_from_slice(value);
            }
            return Lookup::Long;
        };
        to.copy_from_slice(value);
        Lookup::Short(value.len())
    }
}

/// The maximum number of keys of one call of
/// [`Unique::get_many`](super::Unique::get_many).
///
/// A batch must have enough keys for their cache misses to overlap. From 8 keys on, the time per
/// key doesn't fall any more (`docs/tried.md`). Further keys save calls of `get_many`. 32 of them
/// keep [`ShortValues`] at two and a half kilobytes, which fit in the first-level cache together
/// with the prefetched memory.
pub const MAX_KEYS_PER_LOOKUP: usize = 32;

/// The results of [`Unique::get_many`](super::Unique::get_many), one for each key.
pub struct ShortValues {
    found: [(Lookup, [u8; SHORT_VALUE]); MAX_KEYS_PER_LOOKUP],
}

impl Default for ShortValues {
    fn default() -> Self {
        let none = (Lookup::Absent, [0; SHORT_VALUE]);
        ShortValues {
            found: [none; MAX_KEYS_PER_LOOKUP],
        }
    }
}

impl ShortValues {
    /// The result for key `i`. If it is `Short`, the array begins with the value. The other bytes
    /// are unspecified.
    ///
    /// # Panics
    /// Panics if `i` is not below [`MAX_KEYS_PER_LOOKUP`].
    #[inline]
    pub fn get(&self, i: usize) -> (Lookup, &[u8; SHORT_VALUE]) {
        let (got, value) = &self.found[i];
        (*got, value)
    }

    /// Calls `look` with each of the keys, at most [`MAX_KEYS_PER_LOOKUP`], and with the buffer of
    /// its result.
    #[inline]
    pub(crate) fn fill<K>(
        &mut self,
        keys: impl Iterator<Item = K>,
        mut look: impl FnMut(K, &mut [u8; SHORT_VALUE]) -> Lookup,
    ) {
        for (key, (got, value)) in keys.zip(&mut self.found) {
            *got = look(key, value);
        }
    }
}
