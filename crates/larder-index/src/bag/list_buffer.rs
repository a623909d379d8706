//! The bytes of a list while it is written.

use crate::scratch::{keep_scratch, take_scratch};
use std::ops::{Deref, DerefMut};

/// The number of bytes up to which a list is written on the stack.
const SHORT: usize = 96;

/// The bytes of a list that is being written. Those of a longer one are in the thread's buffer.
pub(super) struct ListBuffer {
    short: [u8; SHORT],
    /// The number of bytes in `short`.
    len: usize,
    /// All bytes, if `is_long` is set.
    long: Vec<u8>,
    is_long: bool,
}

impl ListBuffer {
    /// An empty buffer.
    #[inline]
    pub(super) fn new() -> Self {
        ListBuffer {
            short: [0; SHORT],
            len: 0,
            long: Vec::new(),
            is_long: false,
        }
    }

    /// Appends a byte.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        match self.short.get_mut(self.len) {
            Some(place) if !self.is_long => {
                *place = byte;
                self.len += 1;
            }
            _ => self.extend_long(&[byte]),
        }
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        match self.short.get_mut(self.len..self.len + bytes.len()) {
            Some(place) if !self.is_long => {
                place.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            _ => self.extend_long(bytes),
        }
    }

    #[inline(never)]
    fn extend_long(&mut self, bytes: &[u8]) {
        if !self.is_long {
            self.long = take_scratch();
            self.long.extend_from_slice(&self.short[..self.len]);
            self.is_long = true;
        }
        self.long.extend_from_slice(bytes);
    }

    /// Keeps the first bytes, of which there are `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.long.truncate(len);
    }
}

impl Deref for ListBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.is_long {
            true => &self.long,
            false => &self.short[..self.len],
        }
    }
}

impl DerefMut for ListBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self.is_long {
            true => &mut self.long,
            false => &mut self.short[..self.len],
        }
    }
}

impl Drop for ListBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.is_long {
            keep_scratch(std::mem::take(&mut self.long));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer has the same bytes as a vector, wherever it becomes long.
    #[test]
    fn bytes_come_back() {
        for pieces in [[1, 2, 3], [95, 1, 1], [96, 1, 0], [97, 0, 5], [40, 300, 7]] {
            let (mut list, mut expected) = (ListBuffer::new(), Vec::new());
            for (i, len) in pieces.into_iter().enumerate() {
                let piece = vec![i as u8; len];
                list.extend_from_slice(&piece);
                list.push(9);
                expected.extend(piece);
                expected.push(9);
            }
            assert_eq!(*list, expected);
            list[0] = 7;
            expected[0] = 7;
            // Shorter, and then longer again.
            list.truncate(pieces[0]);
            expected.truncate(pieces[0]);
            list.extend_from_slice(&[1; 100]);
            expected.extend([1; 100]);
            assert_eq!(*list, expected);
        }
    }
}
