//! Handles apart from the bytes that they were in, for those who take bytes out of use long before
//! their counts may be given back.
//!
//! ```text
//!  stored bytes ──note──▶ Handles ──own──▶ Counts ──drop──▶ what nobody counts any more is dropped
//!                         own nothing      own the counts
//! ```
//!
//! The two steps are for those who learn what goes before it is certain to go: handles that were
//! noted and are forgotten leak nothing, since the bytes own the counts still.

use super::raw;
use super::Kept;
use crate::tags::HANDLE;
use smallvec::SmallVec;

/// Copies of handles, which own nothing, each with the bytes that it leads to.
#[derive(Debug, Default)]
pub struct Handles(SmallVec<[([u8; HANDLE], usize); 4]>);

impl Handles {
    /// Copies the handles of a run of whole terms that an encoder wrote.
    pub fn note(&mut self, run: &[u8]) {
        self.0.extend(raw::handles(run));
    }

    /// Whether none was noted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the counts of these handles with others.
    ///
    /// # Safety
    /// Each was noted from a run that an encoder wrote in this process and whose counts somebody
    /// owns who gives them up, and lets nobody take the handles of that run for counted once
    /// `counts` has been dropped.
    pub unsafe fn own(self, counts: &mut Counts) {
        for (handle, len) in self.0 {
            // SAFETY: 1. the handle came out of a run that an encoder wrote; 2. its count is the
            // caller's to give up, which it does.
            counts.all.push(unsafe { raw::adopt(handle, len) });
            counts.bytes += len;
        }
    }
}

/// Counts on blobs and anchors, given back when dropped.
#[derive(Default)]
pub struct Counts {
    all: Vec<Kept>,
    bytes: usize,
}

impl Counts {
    /// None.
    pub const fn new() -> Self {
        Counts {
            all: Vec::new(),
            bytes: 0,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The bytes that they keep alive, if nobody else does.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counts({}, {} bytes)", self.len(), self.bytes)
    }
}
