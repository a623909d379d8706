//! The keys of a view that may have other objects than the table which the view shows.

use super::history::History;
use crate::index::Index;
use crate::indexes::EntriesRead;
use larder_index::Unique;

/// The keys whose objects may differ.
pub(crate) trait Differences: Send + Sync {
    /// An index of these keys, and possibly of others; `None` if there is no such key.
    fn changed(&self) -> Option<&dyn Unique>;

    /// The objects that the view shows, in an index whose reads aren't added to the read set.
    /// `None` if no reads of the view are.
    fn unnoted(&self) -> Option<&Index> {
        None
    }

    /// Adds entries of a secondary index to the read set, if there is one.
    fn note_entries(&self, _read: EntriesRead) {}
}

/// The keys that have changed since a snapshot.
impl Differences for History {
    fn changed(&self) -> Option<&dyn Unique> {
        self.undo()
    }
}
