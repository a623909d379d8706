//! The keys of a scan whose path is keys, which a secondary index or the plan gave.

use crate::indexes::CandidateKeys;
use crate::keys::{KeyBatch, KeyList, MANY_TO_READ};
use crate::ops::Operation;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Unique};
use std::sync::Arc;

/// Once the objects of a batch have more bytes than this, no more are read.
const BATCH_BYTES: usize = 32 << 10;

/// Keys that were gathered from a secondary index, in the order of the scan.
pub(super) struct GatheredKeys {
    pub(super) keys: KeyList,
    /// Their positions; `None` if the scan has no order. It then has no continuation.
    pub(super) positions: Option<KeyList>,
    /// Where more keys come from, once these have been read.
    pub(super) rest: Option<Box<CandidateKeys>>,
}

impl GatheredKeys {
    /// The keys in the direction of the scan.
    pub(super) fn in_order(
        keys: &KeyList,
        table: &EngineTable,
        op: &Operation<'_>,
        direction: Direction,
    ) -> Self {
        // An index gives keys in the order of its values. A scan with a continuation needs the
        // order of the table's own positions.
        let (mut positions, mut position) = (KeyList::new(), Vec::new());
        for i in 0..keys.len() {
            let key = table.key(keys.get(i));
            op.store.index.position(key, &mut position);
            positions.push(&position);
        }
        let mut order = positions.order();
        if direction == Direction::Backward {
            order.reverse();
        }
        // Both lists get that order, so that entry `i` of one belongs to entry `i` of the other.
        GatheredKeys {
            keys: keys.picked(&order),
            positions: Some(positions.picked(&order)),
            rest: None,
        }
    }

    /// If all keys have been read, and others may follow, replaces them by those, and returns
    /// `true`. At the end there are none.
    pub(super) fn go_on(&mut self, read: usize, op: &Operation<'_>, direction: Direction) -> bool {
        let keys = &mut self.keys;
        match &mut self.rest {
            Some(rest) if read == keys.len() => {
                rest.next_part(op, direction, keys);
                true
            }
            _ => false,
        }
    }
}

/// The number of a key among those of a path, which is `first` or greater. Linear in the keys
/// between the two.
pub(super) fn number(keys: &KeyList, first: usize, key: &[u8]) -> Option<usize> {
    (first..keys.len()).find(|&i| keys.get(i) == key)
}

/// Reads the objects under the next keys, of which `from` is the first, into a batch. Returns the
/// number of the key after them.
pub(super) fn read<'g>(
    keys: &KeyList,
    table: &EngineTable,
    op: &Operation<'g>,
    index: &Arc<dyn Unique>,
    from: usize,
    batch: &mut Batch<'g>,
) -> usize {
    // Take as many keys as results are wanted, and no more than a key batch has.
    let left = keys.len() - from;
    let wanted = match batch.want {
        0 => left,
        wanted => left.min(wanted),
    };
    let (mut next, mut to) = (KeyBatch::new(), from);
    next.fill(wanted, |i| table.key(keys.get(from + i)));
    // Neighbouring keys have unrelated places. So their cache misses overlap.
    op.store.prefetch(op.guard, next.keys(), MANY_TO_READ);
    // Each key is read by itself. A key without an object leaves nothing in the batch.
    for &key in next.keys() {
        batch.push_read(key.bytes, |value| index.get_in_scan(op.guard, key, value));
        to += 1;
        if batch.copied_bytes() > BATCH_BYTES {
            break;
        }
    }
    to
}
