//! Counters of the changes of an index, by value.
//!
//! A transaction that has read an index must find out at its commit whether reading it again would
//! return the same entries. Comparing the entries isn't enough: one may have been added before the
//! commit and removed after it.
//!
//! # Steps
//!
//! 1. A reader loads the counter of the value, or the sum for all values, and then reads the
//!    entries.
//! 2. A writer changes an entry, increments the counter of the value, and then unlocks the row.
//! 3. At the commit, the reader waits until no changed row is locked, and compares the counter
//!    (`Reads::entries_are_valid`).
//!
//! # Invariants
//!
//! * **X15** A change that is included in the count of (1) is visible to the read that follows.
//! * **X16** A change that the read has missed is included in the count of (3), if its writer was
//!   waited for.
//!
//! Values share counters. So a counter may include other changes, but never misses one.

use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::{planted, Fault};
use larder_term::hash::Seed;
use std::sync::Arc;

/// The number of counters, a power of two.
const COUNTS: usize = 64;

/// The counters of one index.
pub(crate) struct EntryChanges {
    counts: [AtomicU64; COUNTS],
    seed: Seed,
}

impl EntryChanges {
    pub(super) fn new(seed: &Seed) -> Self {
        EntryChanges {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            seed: seed.clone(),
        }
    }

    fn place(&self, value: &[u8]) -> usize {
        self.seed.hash(value) as usize % COUNTS
    }

    /// (2) Counts a change of an entry of this value.
    pub(super) fn note(&self, value: &[u8]) {
        if planted(Fault::UncountedEntry) {
            return;
        }
        // Ordering: Release, pairs with `count`: a thread that reads this count sees the changed
        // entry (X15).
        self.counts[self.place(value)].fetch_add(1, Ordering::Release);
    }

    /// The number of changes of the values of a counter, or of all values.
    fn count(&self, place: Option<usize>) -> u64 {
        // Ordering: Acquire, pairs with `note`. X16 is ensured by the lock of the row.
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        match place {
            Some(place) => count(&self.counts[place]),
            // The counters are not read at one instant. But each only grows, so if the sum is the
            // same, all of them are.
            None => self.counts.iter().map(count).sum(),
        }
    }
}

/// The count that a reader has loaded before it read entries.
pub(crate) struct EntriesRead {
    changes: Arc<EntryChanges>,
    /// The index of the counter of the value that was read; `None` for a range of values.
    place: Option<usize>,
    count: u64,
}

impl EntriesRead {
    /// (1) Called before entries of this value are read; with `None`, before entries of any value.
    pub(super) fn begin(changes: &Arc<EntryChanges>, value: Option<&[u8]>) -> Self {
        let place = value.map(|value| changes.place(value));
        EntriesRead {
            count: changes.count(place),
            changes: Arc::clone(changes),
            place,
        }
    }

    /// Whether `other` covers everything that this one does.
    pub(crate) fn is_within(&self, other: &EntriesRead) -> bool {
        self.is_of(&other.changes) && (other.place.is_none() || other.place == self.place)
    }

    /// Whether it belongs to the index with these counters.
    pub(crate) fn is_of(&self, changes: &Arc<EntryChanges>) -> bool {
        Arc::ptr_eq(&self.changes, changes)
    }

    /// (3) Whether nothing was counted since.
    pub(crate) fn holds(&self) -> bool {
        self.changes.count(self.place) == self.count
    }
}
