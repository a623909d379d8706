//! Objects too large for a leaf: they live in a box of their own, the leaf has the handle.
//!
//! An outside object never changes once it is reachable. It is retired by whoever takes its handle out of a leaf, under the leaf's lock.

use crossbeam_epoch::Guard;

/// A retired object of at least this many bytes is worth an attempt to free at once.
const LARGE: usize = 1 << 20;

/// A whole position and its value.
#[derive(Debug)]
pub(crate) struct Outside {
    /// Bytes of the position, which come first.
    position: usize,
    bytes: Box<[u8]>,
}

impl Outside {
    /// The position.
    pub(crate) fn position(&self) -> &[u8] {
        &self.bytes[..self.position]
    }

    /// The value.
    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.position..]
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }
}

/// What a leaf keeps of an outside object: where it is. Copying a handle copies no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u64);

impl Handle {
    /// Moves position and value to a box of their own. Returns its bytes of memory, too.
    pub(crate) fn new(position: &[u8], value: &[u8]) -> (Handle, usize) {
        let mut bytes = Vec::with_capacity(position.len() + value.len());
        bytes.extend_from_slice(position);
        bytes.extend_from_slice(value);
        let outside = Box::new(Outside {
            position: position.len(),
            bytes: bytes.into_boxed_slice(),
        });
        let memory = outside.memory();
        (
            Handle(Box::into_raw(outside).expose_provenance() as u64),
            memory,
        )
    }

    /// The bits that a leaf stores.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// From the bits that a leaf stores.
    pub(crate) fn from_bits(bits: u64) -> Handle {
        Handle(bits)
    }

    fn pointer(self) -> *mut Outside {
        std::ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    /// The object.
    ///
    /// # Safety
    /// The handle was in a leaf at some instant while the caller's epoch was pinned (the version was checked, or the leaf is locked), and
    /// the epoch stays pinned, or the index is owned alone, for `'g`.
    pub(crate) unsafe fn object<'g>(self) -> &'g Outside {
        // SAFETY: 1. the pointer came from a box in `new`; 2. what was in a leaf after the pin is not freed before the unpin, says the caller.
        unsafe { &*self.pointer() }
    }

    /// Frees the object when no reader can have it any more.
    ///
    /// # Safety
    /// The handle has just been taken out of the only leaf that had it, and nobody retires it again.
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        // SAFETY: the object is alive: it is retired only here.
        let large = unsafe { self.object() }.bytes.len() >= LARGE;
        // SAFETY: no reader that pins from now on can find the handle; a box is `Send`.
        unsafe { guard.defer_unchecked(move || self.free()) };
        if large {
            guard.flush();
        }
    }

    /// Frees the object now.
    ///
    /// # Safety
    /// Nobody can use the handle any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: 1. the pointer came from a box; 2. this is its only end.
        drop(unsafe { Box::from_raw(self.pointer()) });
    }
}
