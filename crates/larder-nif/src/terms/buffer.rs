//! A growing buffer that begins on the stack, and moves to the heap when it outgrows that.
//!
//! Most keys and rows are short. Their bytes are written to [`StackBytes`] of the caller, without
//! an allocation. Each write first reserves the capacity that it needs, so the stores themselves
//! check nothing.

use larder_term::{
    object::{Prefix, LONG},
    order_key::Sink,
    varint,
};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The capacity on the stack.
const ON_STACK: usize = 2048;

/// The uninitialized memory on the stack in which a buffer begins.
pub type StackBytes = MaybeUninit<[u8; ON_STACK]>;

/// Makes uninitialized memory for a buffer to begin in.
#[inline]
pub fn stack_bytes() -> StackBytes {
    MaybeUninit::uninit()
}

/// A growing buffer on the stack or the heap.
///
/// Invariant: `start` points to `capacity` bytes, on the stack or of `heap`, which nobody else
/// uses. The first `len` of them are initialized.
// `start` and `len` are apart: were they copied by one load, as a slice, it would wait for the
// store of the last length.
#[repr(C)]
pub struct Buffer<'p> {
    start: *mut u8,
    capacity: usize,
    len: usize,
    heap: Vec<u8>,
    stack: PhantomData<&'p mut StackBytes>,
}

impl std::ops::Deref for Buffer<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are written, says the invariant.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<'p> Buffer<'p> {
    /// An empty buffer.
    #[inline]
    pub fn at(stack: &'p mut StackBytes) -> Self {
        Buffer {
            start: stack.as_mut_ptr().cast(),
            len: 0,
            capacity: ON_STACK,
            heap: Vec::new(),
            stack: PhantomData,
        }
    }

    /// Makes sure that `more` bytes can be appended.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        if self.capacity - self.len < more {
            self.grow(more);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        let capacity = (self.len + more).next_power_of_two().max(2 * ON_STACK);
        let mut heap = Vec::with_capacity(capacity);
        heap.extend_from_slice(self);
        self.heap = heap;
        (self.start, self.capacity) = (self.heap.as_mut_ptr(), self.heap.capacity());
    }

    /// The spare capacity after the bytes, at least this number of bytes.
    #[inline]
    pub fn spare(&mut self, at_least: usize) -> &mut [MaybeUninit<u8>] {
        self.reserve(at_least);
        // SAFETY: the bytes after the first `len` are the buffer's, up to its capacity; they may
        // be unwritten.
        unsafe {
            let free = self.start.add(self.len).cast();
            std::slice::from_raw_parts_mut(free, self.capacity - self.len)
        }
    }

    /// Adds bytes that were written to `spare`.
    ///
    /// # Safety
    /// This number of bytes was written.
    #[inline]
    pub unsafe fn written(&mut self, count: usize) {
        self.len += count;
    }

    /// Appends a tag, and the first `used` bytes of a little-endian payload.
    #[inline]
    pub fn tagged(&mut self, tag: u8, payload: u64, used: usize) {
        self.reserve(9);
        // SAFETY: nine bytes were reserved, and `used` is eight at most.
        unsafe {
            let end = self.start.add(self.len);
            // Write the tag and most of the payload by one store, so that a load of it soon
            // afterwards needn't wait for the cache.
            (end.cast::<u64>()).write_unaligned((payload << 8 | u64::from(tag)).to_le());
            end.add(8).write((payload >> 56) as u8);
        }
        self.len += 1 + used.min(8);
    }

    /// Appends a byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.reserve(1);
        // SAFETY: its place was reserved.
        unsafe { self.start.add(self.len).write(byte) }
        self.len += 1;
    }

    /// Appends bytes.
    #[inline]
    pub fn slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: their place was reserved; nobody else has the buffer's memory.
        unsafe {
            let end = self.start.add(self.len);
            end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
    }

    /// Appends a tag, and a count in LEB128.
    #[inline]
    pub fn head(&mut self, tag: u8, count: usize) {
        self.byte(tag);
        self.varint(count as u64);
    }

    /// Appends a count in LEB128.
    #[inline]
    pub fn varint(&mut self, count: u64) {
        if count < 0x80 {
            self.byte(count as u8);
        } else {
            self.long_varint(count);
        }
    }

    #[inline(never)]
    fn long_varint(&mut self, mut count: u64) {
        while count >= 0x80 {
            self.byte(count as u8 | 0x80);
            count >>= 7;
        }
        self.byte(count as u8);
    }

    /// Replaces the byte at `at` by a count in LEB128.
    #[inline]
    pub fn set_count(&mut self, at: usize, count: usize) {
        match count {
            0..0x80 => self.change(at, |_| count as u8),
            _ => self.set_long_count(at, count),
        }
    }

    #[cold]
    #[inline(never)]
    fn set_long_count(&mut self, at: usize, count: usize) {
        let mut bytes = [0; varint::MOST];
        let length = varint::write(&mut bytes, count as u64);
        self.change(at, |_| bytes[0]);
        self.insert(at + 1, &bytes[1..length]);
    }

    /// Inserts what stands in front of a stored element that begins at `start` and ends here.
    #[inline]
    pub fn insert_prefix(&mut self, start: usize) {
        if self.len - start > LONG {
            self.insert_long_prefix(start);
        }
    }

    #[inline(never)]
    fn insert_long_prefix(&mut self, start: usize) {
        let prefix = Prefix::of(&self[start..]);
        if !prefix.bytes().is_empty() {
            self.insert(start, prefix.bytes());
        }
    }

    /// Inserts bytes at `at`.
    #[cold]
    #[inline(never)]
    fn insert(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len);
        self.reserve(bytes.len());
        // SAFETY: what is after `at` lies within what was written, and past its end as many bytes
        // as are inserted were reserved. Nobody else has the buffer's memory.
        unsafe {
            let place = self.start.add(at);
            place.add(bytes.len()).copy_from(place, self.len - at);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
    }

    /// Changes a byte.
    #[inline]
    pub fn change(&mut self, at: usize, f: impl FnOnce(u8) -> u8) {
        assert!(at < self.len);
        // SAFETY: within what was written.
        unsafe {
            let byte = self.start.add(at);
            byte.write(f(byte.read()));
        }
    }

    /// Removes all bytes except the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Replaces the bytes.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        self.heap = bytes;
        self.len = self.heap.len();
        (self.start, self.capacity) = (self.heap.as_mut_ptr(), self.heap.capacity());
    }
}

impl Sink for Buffer<'_> {
    #[inline]
    fn run<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        self.reserve(N);
        // SAFETY: the place of `N` bytes was reserved; nobody else has the buffer's memory.
        unsafe { self.start.add(self.len).cast::<[u8; N]>().write(bytes) }
        self.len += used.min(N);
    }

    #[inline]
    fn slice(&mut self, bytes: &[u8]) {
        Buffer::slice(self, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_move_to_the_heap() {
        let mut stack = stack_bytes();
        let mut buffer = Buffer::at(&mut stack);
        let mut expected = Vec::new();
        for i in 0..5000u64 {
            buffer.tagged(7, i, 2);
            expected.extend_from_slice(&[7, i as u8, (i >> 8) as u8]);
        }
        buffer.head(9, 300);
        expected.extend_from_slice(&[9, 0xAC, 2]);
        buffer.change(0, |byte| byte + 1);
        expected[0] = 8;
        assert_eq!(*buffer, expected[..]);
        buffer.set_count(1, 5);
        expected[1] = 5;
        assert_eq!(*buffer, expected[..]);
        for (count, bytes) in [(300, vec![0xAC, 2]), (1 << 21, vec![0x80, 0x80, 0x80, 1])] {
            buffer.change(1, |_| 0);
            buffer.set_count(1, count);
            expected.splice(1..2, bytes);
            assert_eq!(*buffer, expected[..]);
        }
        buffer.truncate(4);
        assert_eq!(*buffer, expected[..4]);
        buffer.replace(b"xyz".to_vec());
        buffer.byte(b'!');
        assert_eq!(*buffer, *b"xyz!");
    }
}
