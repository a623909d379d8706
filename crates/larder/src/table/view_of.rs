//! What a table that is a view of another says of itself.

use super::EngineTable;
use crate::error::Error;
use crate::ids::TableId;
use crate::options::Access;
use crate::versions::{Count, History, TableSnapshot};
use larder_term::object::OutOfLineBytes;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The description of a table that is a view of another.
pub(crate) struct ViewOf {
    pub(crate) table: TableId,
    /// Whether it can be written to.
    pub(crate) writes: bool,
    /// Where the table counts its elements out of line, if the view makes any.
    pub(crate) out_of_line: Option<Arc<OutOfLineBytes>>,
    /// `None` for a transaction's view.
    pub(crate) snapshot: Option<Box<SnapshotOf>>,
    /// The protection that a file of a transaction's view gets: that of the table. The view itself
    /// is private.
    #[cfg_attr(not(feature = "files"), allow(dead_code))]
    pub(crate) saved_access: Option<Access>,
}

/// The description of a table that is a snapshot.
pub(crate) struct SnapshotOf {
    /// The table that it was taken of.
    pub(crate) source: Weak<EngineTable>,
    /// Only the snapshot's index owns the history, and releases it when it is dropped.
    pub(crate) history: Weak<History>,
    pub(crate) number: u64,
    pub(crate) taken: Instant,
    pub(crate) count: Count,
}

impl ViewOf {
    /// A snapshot of a table.
    pub(crate) fn snapshot(source: &Arc<EngineTable>, snapshot: &TableSnapshot) -> Self {
        ViewOf {
            table: source.id(),
            writes: false,
            out_of_line: None,
            snapshot: Some(Box::new(SnapshotOf {
                source: Arc::downgrade(source),
                history: Arc::downgrade(&snapshot.history),
                number: snapshot.number(),
                taken: Instant::now(),
                count: Count::default(),
            })),
            saved_access: None,
        }
    }

    /// A transaction's view of a table.
    pub(crate) fn transaction(table: &EngineTable, writes: bool) -> Self {
        ViewOf {
            table: table.id(),
            writes,
            out_of_line: table.out_of_line().cloned(),
            snapshot: None,
            saved_access: Some(table.access()),
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
