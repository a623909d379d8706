//! Memory for nodes that are never freed before the whole index is: slabs, of which each node takes
//! the next bytes.
//!
//! ```text
//!  arena   ─→ slab   older │ used │ size │ node │ node │ …  free
//!               ↓
//!              slab
//! ```
//!
//! Slabs have 2 to 16 KiB, so they are blocks of regions (`memory::regions`).
//!
//! Invariants:
//! * **CH11** What lies before `used` has been given away, each byte once. `used` only grows, also
//!   beyond the end: then the slab is full.
//! * **CH12** A slab is freed together with its arena.

use crate::memory;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::Mutex;
use std::alloc::Layout;
use std::ptr::{null_mut, NonNull};

/// The alignment of what is given away.
pub(super) const NODE_ALIGN: usize = 8;

/// The size of the first slab. Each has twice the size of the one before, up to `LAST`.
const FIRST: usize = 2 << 10;
/// The size of the largest slabs.
const LAST: usize = 16 << 10;

/// The size above which nothing is taken from slabs, so that little is left over at their ends.
const LARGE: usize = 256;

/// The bytes of a cache line.
const LINE: usize = 64;

/// The head of a slab.
struct Slab {
    older: *mut Slab,
    used: AtomicUsize,
    size: usize,
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, align_of::<Slab>()).expect("a slab is small")
}

/// Slabs, of which the newest is in use.
pub(super) struct Arena {
    newest: AtomicPtr<Slab>,
    /// Held while a slab is added.
    adding: Mutex<()>,
}

// SAFETY: `older` leads to slabs that the arena alone owns. They are only read by `drop`.
unsafe impl Send for Arena {}
// SAFETY: as above; everything else is atomic or under the lock.
unsafe impl Sync for Arena {}

impl Default for Arena {
    fn default() -> Self {
        Arena {
            newest: AtomicPtr::new(null_mut()),
            adding: Mutex::default(),
        }
    }
}

impl Arena {
    /// Takes this number of bytes, which are a multiple of `NODE_ALIGN`. They belong to the caller
    /// as long as the arena exists. `added` is called with the size of a slab that is added. `None`
    /// if there are too many bytes for a slab.
    #[inline]
    pub(super) fn take(&self, bytes: usize, added: &dyn Fn(usize)) -> Option<NonNull<u8>> {
        if bytes > LARGE {
            return None;
        }
        loop {
            // Ordering: Acquire, pairs with the store in `add`: the head of the slab is seen.
            let newest = NonNull::new(self.newest.load(Ordering::Acquire));
            if let Some(slab) = newest {
                // SAFETY: a slab is freed with the arena, and its head is only changed by its
                // atomic.
                let head = unsafe { slab.as_ref() };
                // Ordering: Relaxed; only that each byte is taken once matters.
                let at = head.used.fetch_add(bytes, Ordering::Relaxed);
                if at + bytes <= head.size {
                    // SAFETY: the slab has `size` bytes.
                    let taken = unsafe { slab.cast::<u8>().add(at) };
                    // The next bytes will be written soon. If they weren't in the cache then, the
                    // exchange that publishes them would wait for it.
                    let next = taken.as_ptr().wrapping_add(bytes);
                    memory::prefetch(next.wrapping_add(LINE));
                    memory::prefetch(next.wrapping_add(2 * LINE));
                    return Some(taken);
                }
            }
            added(self.add(newest));
        }
    }

    /// Adds a slab, unless another thread has done so. Returns its size.
    #[cold]
    fn add(&self, newest: Option<NonNull<Slab>>) -> usize {
        let _adding = self.adding.lock();
        let older = newest.map_or(null_mut(), NonNull::as_ptr);
        // Ordering: Relaxed; it is only stored to under the lock.
        if self.newest.load(Ordering::Relaxed) != older {
            return 0;
        }
        let size = match newest {
            None => FIRST,
            // SAFETY: as in `take`.
            Some(slab) => (2 * unsafe { slab.as_ref() }.size).min(LAST),
        };
        let slab = memory::allocate(layout(size)).cast::<Slab>();
        // SAFETY: this thread alone has the memory, which is large enough.
        unsafe {
            slab.write(Slab {
                older,
                used: AtomicUsize::new(size_of::<Slab>()),
                size,
            });
        }
        // Ordering: Release, pairs with the load in `take`.
        self.newest.store(slab.as_ptr(), Ordering::Release);
        size
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut next = NonNull::new(*self.newest.get_mut());
        while let Some(slab) = next {
            // SAFETY: the arena is borrowed exclusively, and its slabs are not freed yet.
            let head = unsafe { slab.as_ref() };
            next = NonNull::new(head.older);
            let layout = layout(head.size);
            // SAFETY: `add` allocated it with this layout, and nobody uses it any more.
            unsafe { memory::release(slab.cast(), layout) };
        }
    }
}
