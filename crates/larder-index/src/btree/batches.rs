//! Batches out of a tree: what its users have in common.

use crate::btree::run::with_run;
use crate::btree::{Tree, Wish};
use crate::{Batch, Direction, Start};
use crossbeam_epoch::Guard;

/// Scans a tree: `front` bytes of a position precede the key.
pub(crate) fn scan<R: crate::shared::Route>(
    tree: &Tree<R>,
    guard: &Guard,
    (start, direction): (Start<'_>, Direction),
    front: usize,
    batch: &mut Batch,
) {
    batch.clear();
    with_run(|run| {
        let wish = Wish {
            start,
            direction,
            within: &[],
            until: batch.until.as_ref().map(Vec::as_slice),
            limit: batch.limit(),
        };
        batch.done = tree.scan(guard, &wish, run, &mut batch.resume);
        // The batch takes the run's bytes as they are.
        std::mem::swap(&mut run.bytes, &mut batch.bytes);
        let entries = run.entries.iter();
        batch
            .entries
            .extend(entries.map(|e| (e.from + front, e.middle, e.end)));
    });
}
