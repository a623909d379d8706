//! Handles that are separated from their bytes, for callers that remove bytes long before they may
//! give back the counts.
//!
//! ```text
//!  stored bytes ──note──▶ Handles ──own──▶ Counts ──drop──▶ what nobody counts any more is dropped
//!                         own nothing      own the counts
//! ```
//!
//! There are two steps, since a caller may learn which handles will be removed before the removal
//! is certain. If handles were noted and are then dropped, nothing is leaked, since the bytes still
//! own the counts.

use super::raw;
use super::Kept;
use crate::tags::HANDLE;
use smallvec::SmallVec;

/// Copies of handles, which own no counts. Each has the size of the blob that it refers to.
#[derive(Debug, Default)]
pub struct Handles(SmallVec<[([u8; HANDLE], usize); 4]>);

impl Handles {
    /// Copies the handles of a run of complete terms that an encoder wrote.
    pub fn note(&mut self, run: &[u8]) {
        self.0.extend(raw::handles(run));
    }

    /// Whether there are no handles.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over the counts of the handles, and adds them to `counts`.
    ///
    /// # Safety
    /// Each handle was noted from a run that an encoder wrote in this process. The owner of the
    /// run's counts gives them up, and makes sure that nobody relies on the handles of the run
    /// after `counts` has been dropped.
    pub unsafe fn own(self, counts: &mut Counts) {
        for (handle, len) in self.0 {
            // SAFETY:
            // 1. the handle came out of a run that an encoder wrote;
            // 2. its count is the caller's to give up, which it does.
            counts.all.push(unsafe { raw::adopt(handle, len) });
            counts.bytes += len;
        }
    }
}

/// Counts of blobs and anchors. They are given back when this is dropped.
#[derive(Default)]
pub struct Counts {
    all: Vec<Kept>,
    bytes: usize,
}

impl Counts {
    /// No counts.
    pub const fn new() -> Self {
        Counts {
            all: Vec::new(),
            bytes: 0,
        }
    }

    /// The number of counts.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no counts.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number of bytes that would be freed with the counts, if nobody else holds any.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counts({}, {} bytes)", self.len(), self.bytes)
    }
}
