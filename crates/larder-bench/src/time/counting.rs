//! The system's allocator, with a count of live bytes while somebody wants it.
//!
//! Outside of [`counted`] an allocation costs only one relaxed load more. So timings are not
//! disturbed by a cache line that all threads write.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The allocator.
pub struct Counting;

fn count(bytes: isize) {
    // Ordering: Relaxed, both. The switch is turned, and the count read, by the one thread that
    // allocates meanwhile.
    if COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is handed on to the system's allocator unchanged; counting touches no memory
// but two statics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// What `build` makes, and the bytes that it has taken from Rust's allocator and kept. Nobody else
/// may allocate meanwhile.
pub fn counted<T>(build: impl FnOnce() -> T) -> (T, usize) {
    // Ordering: Relaxed, see `count`.
    // Memory from before that is freed meanwhile counts as negative. A sum below zero is taken for
    // zero.
    LIVE.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    let built = build();
    COUNTING.store(false, Ordering::Relaxed);
    (built, LIVE.load(Ordering::Relaxed).max(0) as usize)
}
