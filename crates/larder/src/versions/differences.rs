//! Which keys of a view may have other objects than the table that it shows.

use super::history::History;
use crate::index::Index;
use crate::indexes::EntriesRead;
use larder_index::Unique;

/// Keys whose objects may differ.
pub(crate) trait Differences: Send + Sync {
    /// An index of these keys, and perhaps of more; none if there is no such key.
    fn changed(&self) -> Option<&dyn Unique>;

    /// The objects that the view shows, for a look that is no read of theirs; None if none is.
    fn unnoted(&self) -> Option<&Index> {
        None
    }

    /// Notes that entries of a secondary index were read, if that matters.
    fn note_entries(&self, _read: EntriesRead) {}
}

/// Those that have changed since a snapshot.
impl Differences for History {
    fn changed(&self) -> Option<&dyn Unique> {
        self.undo()
    }
}
