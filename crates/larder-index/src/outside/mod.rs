//! Objects too large for a leaf: they live in memory of their own, in one piece, the leaf has the
//! handle.
//!
//! ```text
//!  leaf      … handle …
//!               ↓
//!  object    lengths of both | position | value          one block, never changed
//! ```
//!
//! Invariants:
//! 1. An object never changes once its handle is in a leaf.
//! 2. A handle is in one leaf that isn't obsolete. When that is replaced, it goes to one successor.
//! 3. A reader follows a handle only after a check of the leaf's version: then it was in the leaf
//!    while the reader's epoch was pinned, and the object stays until the unpin.
//! 4. The thread that takes a handle out of a leaf, under the leaf's lock, retires the object once,
//!    when it has let go of the lock.

pub(crate) mod retire;

use crate::memory;
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Lines of an object that are prefetched.
const LINES: usize = 8;

/// What the memory of an object begins with; position and value follow.
#[repr(C)]
struct OutsideHead {
    position: usize,
    value: usize,
}

/// A whole position and its value, alive for `'g`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside<'g> {
    head: NonNull<OutsideHead>,
    alive: PhantomData<&'g [u8]>,
}

impl<'g> Outside<'g> {
    fn head(self) -> &'g OutsideHead {
        // SAFETY: an `Outside` is alive for `'g`, and never changes.
        unsafe { self.head.as_ref() }
    }

    fn bytes(self, from: usize, len: usize) -> &'g [u8] {
        // SAFETY: 1. the bytes follow the head, `position + value` of them, written before the
        // handle was made; 2. all callers stay within them; 3. alive for `'g`, never changed.
        unsafe { std::slice::from_raw_parts(self.head.as_ptr().add(1).cast::<u8>().add(from), len) }
    }

    /// The position.
    pub(crate) fn position(self) -> &'g [u8] {
        self.bytes(0, self.head().position)
    }

    /// The value.
    pub(crate) fn value(self) -> &'g [u8] {
        self.bytes(self.head().position, self.head().value)
    }

    /// Bytes of memory.
    pub(crate) fn memory(self) -> usize {
        self.layout().size()
    }

    /// Asks for the object's lines: the first ones, of a long one, after which the processor goes
    /// on by itself.
    pub(crate) fn prefetch(self) {
        let len = self.head().position + self.head().value;
        for line in self.bytes(0, len.min(LINES * LINE)).chunks(LINE) {
            memory::prefetch(line.as_ptr());
        }
    }

    fn layout(self) -> Layout {
        layout(self.head().position, self.head().value)
    }
}

/// The memory of an object.
fn layout(position: usize, value: usize) -> Layout {
    let bytes = size_of::<OutsideHead>() + position + value;
    Layout::from_size_align(bytes.next_multiple_of(8), align_of::<OutsideHead>())
        .expect("what was in memory as a slice has a size below the address space")
}

/// What a leaf keeps of an outside object: where it is. Copying a handle copies no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u64);

impl Handle {
    /// Copies position and value to memory of their own. Returns its bytes, too.
    pub(crate) fn new(position: &[u8], value: &[u8]) -> (Handle, usize) {
        // Nobody else has the memory before the handle is in a leaf, whose unlock publishes it.
        let layout = layout(position.len(), value.len());
        let head = memory::allocate(layout).cast::<OutsideHead>();
        // SAFETY: the memory is ours alone, and large enough for a head and the bytes of both.
        unsafe {
            head.write(OutsideHead {
                position: position.len(),
                value: value.len(),
            });
            let bytes = head.as_ptr().add(1).cast::<u8>();
            bytes.copy_from_nonoverlapping(position.as_ptr(), position.len());
            let after = bytes.add(position.len());
            after.copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        // A leaf stores bits, from which a reader makes the pointer again.
        let handle = Handle(head.as_ptr().expose_provenance() as u64);
        (handle, layout.size())
    }

    /// Asks for the line where the object begins. The bits may be any.
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
    /// The handle was in a leaf at some instant while the caller's epoch was pinned (the version
    /// was checked, or the leaf is locked), and the epoch stays pinned, or the index is owned
    /// alone, for `'g`.
    pub(crate) unsafe fn object<'g>(self) -> Outside<'g> {
        let pointer = std::ptr::with_exposed_provenance_mut(self.0 as usize);
        Outside {
            // SAFETY: the bits came from a pointer that was not null, in `new`. What was in a leaf
            // after the pin is not freed before the unpin, says the caller.
            head: unsafe { NonNull::new_unchecked(pointer) },
            alive: PhantomData,
        }
    }

    /// Frees the object when no reader can have it any more.
    ///
    /// # Safety
    /// The handle has just been taken out of the only leaf that had it, and nobody retires it
    /// again.
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        // SAFETY: 1. no reader that pins from now on can find the handle; 2. the memory belongs to
        // no thread; 3. this is its only end, says the caller.
        unsafe { guard.defer_unchecked(move || self.free()) };
    }

    /// Frees the object now.
    ///
    /// # Safety
    /// Nobody can use the handle any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: alive until the end of this, which is its only one.
        let object = unsafe { self.object() };
        // SAFETY: `new` took the memory with this layout, which its head tells.
        unsafe { memory::release(object.head.cast(), object.layout()) };
    }
}
