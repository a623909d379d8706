//! Destinations of order keys: the end of a vector, or a slice of the caller's.

use std::mem::MaybeUninit;

/// A destination to which bytes are appended.
pub trait Sink {
    /// Appends the first `used` of these bytes.
    fn run<const N: usize>(&mut self, bytes: [u8; N], used: usize);

    /// Appends bytes.
    fn slice(&mut self, bytes: &[u8]);

    /// Appends this number of zero bytes.
    fn zeros(&mut self, count: usize) {
        const SOME: [u8; 64] = [0; 64];
        let mut left = count;
        // In slices of a constant, which most counts need once.
        while left > 0 {
            let some = left.min(SOME.len());
            self.slice(&SOME[..some]);
            left -= some;
        }
    }

    /// Appends groups of `size` bytes, each with a continuation byte after it.
    #[inline]
    fn groups(&mut self, bytes: &[u8], size: usize, continuation: u8) {
        for group in bytes.chunks_exact(size) {
            self.slice(&group[..size]);
            self.byte(continuation);
        }
    }

    /// Appends a byte.
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.run([byte], 1);
    }
}

impl Sink for Vec<u8> {
    #[inline(always)]
    fn run<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        self.extend_from_slice(&bytes[..used]);
    }

    #[inline]
    fn slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A byte of a slice of the caller's, which may be uninitialized.
pub trait OutputByte {
    /// Writes the byte.
    fn put(&mut self, byte: u8);
}

impl OutputByte for u8 {
    #[inline]
    fn put(&mut self, byte: u8) {
        *self = byte;
    }
}

impl OutputByte for MaybeUninit<u8> {
    #[inline]
    fn put(&mut self, byte: u8) {
        self.write(byte);
    }
}

/// A slice of the caller's, filled from its beginning.
///
/// Invariant: the first `len` bytes of `out` are written. If any bytes didn't fit, `is_full` is
/// set, and stays so.
pub(super) struct SliceSink<'o, P> {
    out: &'o mut [P],
    len: usize,
    is_full: bool,
}

impl<'o, P: OutputByte> SliceSink<'o, P> {
    /// A destination into which nothing is written yet.
    #[inline]
    pub(super) fn new(out: &'o mut [P]) -> Self {
        SliceSink {
            out,
            len: 0,
            is_full: false,
        }
    }

    /// The number of bytes that were written so far, if they have fitted.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of bytes that were written. `None` if some did not fit.
    #[inline]
    pub(super) fn finish(self) -> Option<usize> {
        (!self.is_full).then_some(self.len)
    }

    /// Writes bytes after the first `len` ones, without changing `len`. Returns `false`, and
    /// writes nothing, if they don't fit.
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> bool {
        let free = self.out.get_mut(self.len..).unwrap_or_default();
        let Some(places) = free.get_mut(..bytes.len()) else {
            return false;
        };
        let pairs = places.iter_mut().zip(bytes);
        pairs.for_each(|(place, &byte)| place.put(byte));
        true
    }
}

impl<P: OutputByte> Sink for SliceSink<'_, P> {
    #[inline(always)]
    fn run<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        // The fast path: write all `N` bytes at once, if there is space for those that don't count,
        // too.
        if self.put(&bytes) {
            self.len += used;
        } else {
            self.slice(&bytes[..used]);
        }
    }

    #[inline]
    fn slice(&mut self, bytes: &[u8]) {
        if self.put(bytes) {
            self.len += bytes.len();
        } else {
            self.is_full = true;
        }
    }

    #[inline]
    fn groups(&mut self, bytes: &[u8], size: usize, continuation: u8) {
        let groups = bytes.chunks_exact(size);
        let len = groups.len() * (size + 1);
        let free = self.out.get_mut(self.len..).unwrap_or_default();
        // The space of all groups is looked for once.
        let Some(places) = free.get_mut(..len) else {
            self.is_full = true;
            return;
        };
        for (places, group) in places.chunks_exact_mut(size + 1).zip(groups) {
            let pairs = places[..size].iter_mut().zip(&group[..size]);
            pairs.for_each(|(place, &byte)| place.put(byte));
            places[size].put(continuation);
        }
        self.len += len;
    }
}
