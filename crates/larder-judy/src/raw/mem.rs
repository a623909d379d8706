//! Allocating and counting the memory of nodes.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};

/// The memory of a tree: the exact number of words that its nodes take.
#[derive(Debug, Default)]
pub(crate) struct Mem {
    words: usize,
}

impl Mem {
    pub(crate) const fn new() -> Self {
        Mem { words: 0 }
    }

    /// The bytes of all allocated blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.words * 8
    }

    /// Allocates a block of this number of words, which is at least one. It isn't initialised.
    ///
    /// # Panics
    ///
    /// If there are more words than an address space has.
    #[inline]
    pub(super) fn take(&mut self, words: usize) -> *mut u64 {
        debug_assert!(words > 0);
        let layout = layout(words);
        self.words += words;
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        block.cast()
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// The block came from `take` of a memory with the same `words`, and nobody uses it any more.
    #[inline]
    pub(super) unsafe fn give(&mut self, block: *mut u64, words: usize) {
        self.words -= words;
        // SAFETY: by this function's contract the block came from `alloc` with this layout.
        unsafe { dealloc(block.cast(), layout(words)) }
    }
}

#[inline]
fn layout(words: usize) -> Layout {
    Layout::array::<u64>(words).expect("capacity overflow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "capacity overflow")]
    fn a_block_beyond_the_address_space_is_refused() {
        Mem::new().take(usize::MAX / 8);
    }
}
