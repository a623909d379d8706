//! The system's allocator, with a count of live bytes on demand.
//!
//! Outside of [`counted`], an allocation only costs one more relaxed load: timings aren't disturbed
//! by a cache line that all threads write.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);

pub struct Counting;

fn count(bytes: isize) {
    // Ordering: Relaxed, both. One thread switches counting on, allocates, and reads the count.
    if COUNTING.load(Relaxed) {
        LIVE.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call is passed to the system's allocator unchanged. Counting only writes statics.
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

/// Returns the result of `build`, and the bytes that it has allocated and kept. No other thread may
/// allocate meanwhile.
pub fn counted<T>(build: impl FnOnce() -> T) -> (T, usize) {
    // Ordering: Relaxed, see `count`.
    LIVE.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let built = build();
    COUNTING.store(false, Relaxed);
    // Freeing older memory counts as negative.
    (built, LIVE.load(Relaxed).max(0) as usize)
}
