//! How many keys an index will soon have, as its user has announced.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The announcement. It is a hint, so a reader may see the parts of two announcements together.
#[derive(Debug, Default)]
pub(crate) struct ExpectedKeys {
    /// About how many keys there are.
    now: AtomicUsize,
    /// About how many there will be; 0 if that isn't known.
    soon: AtomicUsize,
}

/// Most keys are still to come if there will be this many times as many.
const MOSTLY_NEW: usize = 4;

impl ExpectedKeys {
    pub(crate) fn announce(&self, now: usize, soon: usize) {
        // Ordering: Relaxed, hints.
        self.now.store(now, Relaxed);
        self.soon.store(soon, Relaxed);
    }

    /// About how many keys there will soon be, if most of them are still to come.
    pub(crate) fn mostly_new(&self) -> Option<usize> {
        // Ordering: Relaxed, hints.
        let (now, soon) = (self.now.load(Relaxed), self.soon.load(Relaxed));
        (soon / MOSTLY_NEW >= now.max(1)).then_some(soon)
    }

    /// About how many bytes the entries of a leaf will soon need that need this number now, if the
    /// leaf grows as the index does. At least as many.
    pub(crate) fn grown(&self, need: usize) -> usize {
        // Ordering: Relaxed, hints.
        let (now, soon) = (self.now.load(Relaxed).max(1), self.soon.load(Relaxed));
        match soon > now {
            true => need.saturating_mul(soon) / now,
            false => need,
        }
    }
}
