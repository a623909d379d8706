//! The rows of a view that may differ from what the entries of an index say.
//!
//! The entries say what the rows of a table are now. The rows of a snapshot or of a transaction's
//! view can only differ under keys that have changed since the snapshot, or that the transaction
//! has written. So a reader of a view adds the values of the rows under all those keys.
//!
//! Invariant:
//! * **X17** The entries are read before these keys. A write keeps a version of its key before it
//!   changes entries, so a row whose entry is missed is found here.

use super::Entries;
use crate::buffers::Buffers;
use crate::ops::Operation;
use crate::raw;
use crate::table::EngineTable;
use larder_index::sync::{planted, Fault};
use larder_index::{Direction, Start};

/// A walk over the keys that may differ in the views of a store.
#[derive(Default)]
pub(super) struct Differing {
    /// The number of the view, and the position in its keys.
    view: usize,
    from: Option<Vec<u8>>,
}

impl Differing {
    /// Reads the next keys, and calls `see` with each value that a row of the view under one of
    /// them has in the index, and with the key. Returns the number of keys; `None` at the end.
    pub(super) fn next(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        entries: &Entries,
        buffers: &mut Buffers,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Option<usize> {
        if planted(Fault::MissedDifference) {
            return None;
        }
        let Buffers {
            batch,
            plain,
            scratch,
            values,
            indexed,
            ..
        } = buffers;
        let views = op.store.views();
        // Find the first view from this one on in which keys differ. After the last view, this is
        // the end.
        let index = loop {
            let view = views.get(self.view)?;
            match view.changed() {
                Some(index) => {
                    view.note_walk();
                    break index;
                }
                None => self.view += 1,
            }
        };
        // Most of these rows have no value that is looked for, so reading them here isn't added to
        // the read set. Those that have one are read again.
        let unnoted = views.iter().find_map(|view| view.unnoted());
        let objects = unnoted.unwrap_or(&op.store.index);
        // Read the next batch of keys that differ in this view.
        let start = self.from.as_deref().map_or(Start::Edge, Start::At);
        batch.lend_owned(|batch| index.scan(op.guard, start, Direction::Forward, batch));
        for i in 0..batch.len() {
            // Copy the rows under the key, as the views show them.
            let key = batch.key(i);
            objects.copy(op.guard, table.key(key), values);
            for row in values.iter() {
                let row = raw::view(key, row, table.keypos(), plain);
                entries.extractor.values(&row, scratch, indexed);
                indexed.iter().for_each(|value| see(value, key));
            }
        }
        // Go on after the batch, or with the next view.
        if batch.done {
            (self.view, self.from) = (self.view + 1, None);
        } else {
            self.from = Some(std::mem::take(&mut batch.resume));
        }
        Some(batch.len())
    }
}
