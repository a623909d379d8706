//! The keys of a view that may have other objects than the table which the view shows.

use super::history::History;
use crate::index::TableIndex;
use crate::indexes::EntriesRead;
use larder_index::Unique;
use std::sync::atomic::Ordering;

/// The keys whose objects may differ.
pub(crate) trait Differences: Send + Sync {
    /// An index of these keys, and possibly of others; `None` if there is no such key.
    fn changed(&self) -> Option<&dyn Unique>;

    /// Notes that these keys are being walked.
    fn note_walk(&self) {}

    /// About how many keys there are. O(1).
    fn about(&self) -> usize {
        /// Keys are counted in an undo index of at most this many bytes.
        const SMALL: usize = 1 << 16;
        /// The least size of a key with its version.
        const LEAST: usize = 32;
        match self.changed() {
            None => 0,
            Some(undo) if undo.memory() <= SMALL => undo.len(),
            Some(undo) => undo.memory() / LEAST,
        }
    }

    /// The number of objects of the table. O(1).
    fn table_size(&self) -> usize;

    /// The objects that the view shows, in an index whose reads aren't added to the read set.
    /// `None` if no reads of the view are.
    fn unnoted(&self) -> Option<&TableIndex> {
        None
    }

    /// How often the view was written to. What was read of it before a write must not be used for a
    /// read that begins after it.
    fn writes(&self) -> u64 {
        0
    }

    /// Adds entries of a secondary index to the read set, if there is one.
    fn note_entries(&self, _read: EntriesRead) {}
}

/// The keys that have changed since a snapshot.
impl Differences for History {
    fn changed(&self) -> Option<&dyn Unique> {
        self.undo()
    }

    fn note_walk(&self) {
        // Ordering: Relaxed, a hint.
        if !self.is_walked.load(Ordering::Relaxed) {
            self.is_walked.store(true, Ordering::Relaxed);
        }
    }

    fn table_size(&self) -> usize {
        self.store().size()
    }
}
