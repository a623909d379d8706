//! An allocator that detects use after free, for builds for the model checker.
//!
//! Freed memory is filled with a byte that is invalid as an address, a length or a tag. It is
//! returned to the system only after [`WAITING`] other blocks were freed. So a structure that frees
//! too early reads garbage, which is detected by the recorded history, by an assertion, or by a
//! fault of the processor. (AddressSanitizer can't follow the stacks of the checker's threads.) A
//! test makes it the global allocator of its program, so that nodes of the studies' structures are
//! covered, too.
//!
//! Invariant: a block belongs to its user, to the ring, or to the system. In the ring it is filled
//! with garbage, and nobody uses it.
//!
//! When not to use it: outside the model checker. It keeps up to a gibibyte of freed blocks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, PoisonError};

/// The byte that freed memory is filled with.
const NONSENSE: u8 = 0xDB;

/// The number of blocks in the ring.
const WAITING: usize = 1 << 14;

/// Larger blocks are returned at once.
const LARGE: usize = 1 << 16;

struct Ring {
    blocks: [(usize, usize, usize); WAITING],
    next: usize,
}

/// This must be a lock that doesn't allocate. `parking_lot`'s lock allocates when threads wait for
/// it: a thread would call this allocator again, and wait for itself.
static RING: Mutex<Ring> = Mutex::new(Ring {
    blocks: [(0, 0, 0); WAITING],
    next: 0,
});

/// The allocator.
#[derive(Clone, Copy, Debug)]
pub struct Quarantine;

// SAFETY:
// 1. Each block is allocated by `System`, for the layout that was requested.
// 2. It is returned to `System` once, with the same address and layout: when it leaves the ring, or
//    at once if it is large.
// 3. Until then nobody else gets it.
unsafe impl GlobalAlloc for Quarantine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() > LARGE {
            // SAFETY: The caller owns the block, which was allocated by `System` with this layout.
            return unsafe { System.dealloc(block, layout) };
        }
        // SAFETY: The caller has given up the block, which has this many bytes.
        unsafe { block.write_bytes(NONSENSE, layout.size()) };
        // A thread that panicked has left the ring consistent, since each call replaces one block.
        let mut ring = RING.lock().unwrap_or_else(PoisonError::into_inner);
        let next = ring.next;
        ring.next = (next + 1) % WAITING;
        let new = (block.expose_provenance(), layout.size(), layout.align());
        // The oldest block leaves the ring. An address of zero means that the ring isn't full yet.
        let (address, size, align) = std::mem::replace(&mut ring.blocks[next], new);
        drop(ring);
        if address != 0 {
            let old = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY:
            // 1. Size and alignment were taken from the layout with which the block was freed, so
            //    they are valid.
            // 2. The block has left the ring, so nobody else frees it.
            unsafe { System.dealloc(old, Layout::from_size_align_unchecked(size, align)) };
        }
    }
}
