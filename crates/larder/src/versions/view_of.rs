//! What a table that is a view of another says of itself.

use super::count::Count;
use super::history::{History, TableSnapshot};
use crate::error::Error;
use crate::ids::TableId;
use crate::table::EngineTable;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The description of a table that is a view of another.
pub(crate) struct ViewOf {
    pub(crate) table: TableId,
    /// Whether it can be written to.
    pub(crate) writes: bool,
    /// `None` for a transaction's view.
    pub(super) snapshot: Option<Box<SnapshotOf>>,
}

/// The description of a table that is a snapshot.
pub(crate) struct SnapshotOf {
    /// The table that it was taken of.
    pub(super) source: Weak<EngineTable>,
    /// Only the snapshot's index owns the history, and releases it when it is dropped.
    pub(super) history: Weak<History>,
    pub(super) number: u64,
    pub(super) taken: Instant,
    pub(super) count: Count,
}

impl ViewOf {
    /// A snapshot of a table.
    pub(super) fn snapshot(source: &Arc<EngineTable>, snapshot: &TableSnapshot) -> Self {
        ViewOf {
            table: source.id(),
            writes: false,
            snapshot: Some(Box::new(SnapshotOf {
                source: Arc::downgrade(source),
                history: Arc::downgrade(&snapshot.history),
                number: snapshot.number(),
                taken: Instant::now(),
                count: Count::default(),
            })),
        }
    }

    /// A transaction's view of a table.
    pub(crate) fn transaction(table: TableId, writes: bool) -> Self {
        ViewOf {
            table,
            writes,
            snapshot: None,
        }
    }

    /// The error of an attempt to write to it.
    pub(crate) fn why_read_only(&self) -> Error {
        match self.snapshot {
            Some(_) => Error::ReadOnly,
            // The owner of the transaction has no right to write the table.
            None => Error::Access,
        }
    }

    /// The error of an attempt to change it as a whole: to drop it, rename it or give it away.
    pub(crate) fn why_fixed(&self) -> Error {
        match self.snapshot {
            Some(_) => Error::ReadOnly,
            None => Error::View,
        }
    }
}
