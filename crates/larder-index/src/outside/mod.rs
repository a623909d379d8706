//! Outside objects: entries that are too large for a leaf. Each is a separate block of memory, and
//! the leaf stores its handle.
//!
//! ```text
//!  leaf      … handle …
//!               ↓
//!  object    lengths of both | position | value          one block, immutable
//! ```
//!
//! Invariants (docs/design.md §4.2):
//! * O1: An object is immutable. A write of the entry makes a new object.
//! * O2: A handle is in exactly one leaf that isn't obsolete.
//! * O3: A reader follows a handle only after it has validated the leaf's version.
//! * O4: The thread that removes a handle from a leaf retires the object, once, after it has
//!   released the lock.

pub(crate) mod retire;

use crate::memory;
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// The size of a cache line in bytes.
const LINE: usize = 64;
/// The maximum number of cache lines of an object that are prefetched.
const LINES: usize = 8;

/// The head of an object: the lengths of its position and its value, which follow.
#[repr(C)]
struct OutsideHead {
    position: usize,
    value: usize,
}

/// A reference to an object that stays allocated during `'g`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside<'g> {
    head: NonNull<OutsideHead>,
    alive: PhantomData<&'g [u8]>,
}

// SAFETY: it is used like a shared reference to bytes, which other threads may have, too.
unsafe impl Send for Outside<'_> {}
// SAFETY: the same.
unsafe impl Sync for Outside<'_> {}

impl<'g> Outside<'g> {
    #[inline]
    fn head(self) -> &'g OutsideHead {
        // SAFETY: the object stays allocated during `'g`, and is immutable.
        unsafe { self.head.as_ref() }
    }

    /// The position and the value, next to each other.
    #[inline]
    pub(crate) fn bytes(self) -> &'g [u8] {
        let len = self.head().position + self.head().value;
        // SAFETY:
        // 1. `position + value` bytes follow the head, which `new` or `spliced` has written;
        // 2. they stay allocated during `'g`, and are immutable.
        unsafe { std::slice::from_raw_parts(self.head.as_ptr().add(1).cast::<u8>(), len) }
    }

    /// The whole position.
    #[inline]
    pub(crate) fn position(self) -> &'g [u8] {
        &self.bytes()[..self.head().position]
    }

    /// The value.
    #[inline]
    pub(crate) fn value(self) -> &'g [u8] {
        &self.bytes()[self.head().position..]
    }

    /// The memory of the object in bytes.
    #[inline]
    pub(crate) fn memory(self) -> usize {
        self.layout().size()
    }

    /// Prefetches the first cache lines of the object. If it is longer, the processor's own
    /// prefetcher detects the sequential read.
    pub(crate) fn prefetch(self) {
        let bytes = self.bytes();
        for line in bytes[..bytes.len().min(LINES * LINE)].chunks(LINE) {
            memory::prefetch(line.as_ptr());
        }
    }

    #[inline]
    fn layout(self) -> Layout {
        layout(self.head().position, self.head().value)
    }
}

/// The layout of an object.
#[inline]
fn layout(position: usize, value: usize) -> Layout {
    let bytes = size_of::<OutsideHead>() + position + value;
    Layout::from_size_align(bytes.next_multiple_of(8), align_of::<OutsideHead>())
        .expect("what was in memory as a slice has a size below the address space")
}

/// A handle: the address of an object, which a leaf stores. A copy of a handle refers to the same
/// object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u64);

impl Handle {
    /// Makes an object with this position and value. Also returns its size in bytes.
    pub(crate) fn new(position: &[u8], value: &[u8]) -> (Handle, usize) {
        let layout = layout(position.len(), value.len());
        // No other thread can reach the memory until the handle is in a leaf. The unlock of that
        // leaf publishes it.
        let head = memory::allocate(layout).cast::<OutsideHead>();
        // SAFETY: this thread alone has the memory, which is large enough for head, position and
        // value.
        unsafe {
            head.write(OutsideHead {
                position: position.len(),
                value: value.len(),
            });
            let bytes = head.as_ptr().add(1).cast::<u8>();
            bytes.copy_from_nonoverlapping(position.as_ptr(), position.len());
            let bytes = bytes.add(position.len());
            bytes.copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        (Handle::of(head), layout.size())
    }

    /// Makes an object like `old`, but with `new` in place of a part of its value. Also returns its
    /// size in bytes.
    ///
    /// # Panics
    /// If the value has no such part.
    #[inline]
    pub(crate) fn spliced(old: Outside<'_>, part: Range<usize>, new: &[u8]) -> (Handle, usize) {
        let &OutsideHead { position, value } = old.head();
        assert!(part.start <= part.end && part.end <= value);
        let layout = layout(position, value - part.len() + new.len());
        // As in `new`.
        let head = memory::allocate(layout).cast::<OutsideHead>();
        // Where the part begins, counted from the head.
        let at = size_of::<OutsideHead>() + position + part.start;
        // SAFETY:
        // 1. This thread alone has the new memory, which has the size of `layout`.
        // 2. The old object has the size of its own layout. Both begin with a head and the
        //    position.
        // 3. The part is within the old value, as checked above. So all that is copied lies within
        //    the objects.
        unsafe {
            let (from, to) = (old.head.as_ptr().cast::<u8>(), head.as_ptr().cast::<u8>());
            if new.len() == part.len() {
                // One copy of all, head included.
                to.copy_from_nonoverlapping(from, layout.size());
            } else {
                to.copy_from_nonoverlapping(from, at);
                head.as_ptr().write(OutsideHead {
                    position,
                    value: value - part.len() + new.len(),
                });
                let (after, rest) = (from.add(at + part.len()), value - part.end);
                to.add(at + new.len()).copy_from_nonoverlapping(after, rest);
            }
            to.add(at).copy_from_nonoverlapping(new.as_ptr(), new.len());
        }
        (Handle::of(head), layout.size())
    }

    /// The handle of an object that begins with this head.
    #[inline]
    fn of(head: NonNull<OutsideHead>) -> Handle {
        // A leaf stores an integer, from which a reader restores the pointer. So expose its
        // provenance.
        Handle(head.as_ptr().expose_provenance() as u64)
    }

    /// Prefetches the first cache line of the object. The handle may be torn: a prefetch of any
    /// address is harmless.
    #[inline]
    pub(crate) fn prefetch(self) {
        memory::prefetch(std::ptr::without_provenance(self.0 as usize));
    }

    /// The bits that a leaf stores.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// From the bits that a leaf stores.
    pub(crate) fn from_bits(bits: u64) -> Handle {
        Handle(bits)
    }

    /// The object.
    ///
    /// # Safety
    /// One of these holds:
    /// - The handle was in a leaf at some instant since the caller has pinned the epoch, as shown
    ///   by a validated version or the leaf's lock, and the epoch stays pinned during `'g`.
    /// - The caller has exclusive access to the index, or to the object, during `'g`.
    pub(crate) unsafe fn object<'g>(self) -> Outside<'g> {
        let pointer = std::ptr::with_exposed_provenance_mut(self.0 as usize);
        Outside {
            // SAFETY: the handle was made from a pointer that isn't null, in `new` or `spliced`. By
            // the caller's promise it isn't torn, and the object isn't freed during `'g`.
            head: unsafe { NonNull::new_unchecked(pointer) },
            alive: PhantomData,
        }
    }

    /// Frees the object when no reader can use it any more.
    ///
    /// # Safety
    /// The handle has been removed from the only leaf that had it, and is retired only once.
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        // SAFETY:
        // 1. no reader that pins from now on can find the handle;
        // 2. any thread may free the memory;
        // 3. it is freed once, by the caller's promise.
        unsafe { guard.defer_unchecked(move || self.free()) };
    }

    /// Frees the object now.
    ///
    /// # Safety
    /// No thread uses the handle any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller has exclusive access to the object, which is freed below.
        let object = unsafe { self.object() };
        // SAFETY: `new` or `spliced` allocated the memory with this layout, which follows from the
        // head.
        unsafe { memory::release(object.head.cast(), object.layout()) };
    }
}
