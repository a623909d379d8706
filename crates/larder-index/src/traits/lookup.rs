//! The results of lookups of short values.

/// The maximum length of a value that [`Unique::get_short`](super::Unique::get_short) copies to its
/// buffer.
pub const SHORT: usize = 64;

/// The result of [`Unique::get_short`](super::Unique::get_short).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is no value under the key.
    Absent,
    /// The value has this number of bytes, which were copied.
    Short(usize),
    /// The value is longer than [`SHORT`]. It was copied only if the caller has passed a buffer for
    /// it.
    Long,
}

/// The maximum number of keys of one call of
/// [`Unique::get_short_many`](super::Unique::get_short_many).
///
/// A batch must have enough keys for their cache misses to overlap. From 8 keys on, the time per
/// key doesn't fall any more (`docs/tried.md`). Further keys save calls of `get_short_many`. 32 of
/// them keep [`Shorts`] at two and a half kilobytes, which fit in the first-level cache together
/// with the prefetched memory.
pub const TOGETHER: usize = 32;

/// The results of [`Unique::get_short_many`](super::Unique::get_short_many), one for each key.
pub struct Shorts {
    found: [(Lookup, [u8; SHORT]); TOGETHER],
}

impl Default for Shorts {
    fn default() -> Self {
        let none = (Lookup::Absent, [0; SHORT]);
        Shorts {
            found: [none; TOGETHER],
        }
    }
}

impl Shorts {
    /// The result for key `i`. If it is `Short`, the array begins with the value. The other bytes
    /// are unspecified.
    ///
    /// # Panics
    /// Panics if `i` is not below [`TOGETHER`].
    #[inline]
    pub fn get(&self, i: usize) -> (Lookup, &[u8; SHORT]) {
        let (got, value) = &self.found[i];
        (*got, value)
    }

    /// Calls `look` with each of the keys, at most [`TOGETHER`], and with the buffer of its result.
    #[inline]
    pub(crate) fn fill<K>(
        &mut self,
        keys: impl Iterator<Item = K>,
        mut look: impl FnMut(K, &mut [u8; SHORT]) -> Lookup,
    ) {
        for (key, (got, value)) in keys.zip(&mut self.found) {
            *got = look(key, value);
        }
    }
}
