//! The lifetimes of the objects in a view of a bounded table.

use super::own_writes::{GivenLifetime, Writes};
use crate::bounds::{Bounded, ObjectTimes, NEVER};
use larder_index::{Guard, Key};
use std::sync::Arc;

/// The lifetimes in a view. They are those of its instant, and those that a transaction gives.
pub(crate) struct ViewLifetimes {
    /// The table as of the view's instant.
    table: Arc<Bounded>,
    /// The transaction's writes. `None` for a snapshot.
    writes: Option<Arc<Writes>>,
}

impl ViewLifetimes {
    pub(super) fn new(table: Arc<Bounded>, writes: Option<Arc<Writes>>) -> Self {
        ViewLifetimes { table, writes }
    }

    /// The time at which the view decides what is expired.
    pub(crate) fn now(&self) -> u64 {
        self.table.now()
    }

    /// Announces the lifetime that comes with the next write of the view. Called under the lock of
    /// its writes.
    pub(crate) fn announce(&self, given: GivenLifetime) {
        // Writes to a snapshot are refused before.
        if let Some(writes) = &self.writes {
            writes.announce(given);
        }
    }

    /// The deadline of the object under a key of the view. What a transaction has written lives
    /// from its commit on, which counts as now. `None` if there is no object.
    pub(crate) fn deadline(&self, guard: &Guard, key: Key<'_>) -> Option<u64> {
        let written = self.writes.as_ref().and_then(|writes| writes.lifetime(key));
        if let Some(given) = written {
            let ttl = given.map(|given| given.ttl.unwrap_or(NEVER));
            let (deadline, _) = self.table.layer().deadlines(self.now(), ttl);
            return Some(deadline);
        }
        let mut value = Vec::new();
        let is_there = self.table.below().get(guard, key, &mut value);
        is_there.then(|| ObjectTimes::of(&value).deadline)
    }
}
