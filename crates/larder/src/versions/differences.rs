//! Which keys of a view may have other objects than the table that it shows.

use super::history::History;
use larder_index::Unique;

/// Keys whose objects may differ.
pub(crate) trait Differences: Send + Sync {
    /// An index of these keys, and perhaps of more; none if there is no such key.
    fn changed(&self) -> Option<&dyn Unique>;

    /// Notes that all keys of the table were looked at, if that matters.
    fn note_read(&self) {}
}

/// Those that have changed since a snapshot.
impl Differences for History {
    fn changed(&self) -> Option<&dyn Unique> {
        self.undo()
    }
}
