//! A sample of entries from all parts of the tree, from which a table that evicts chooses.
//!
//! Neighbours in key order are often alike (the newest entries, or those of one user). So the
//! sample has a few entries from each of several leaves. Their sample points are fractions of the
//! tree, at equal distances:
//!
//! ```text
//!  point      0.6 of four children:     the third, and 0.4 of it
//!             0.4 of five children:     the third, and 0.0 of it     ... down to a leaf
//! ```
//!
//! 1. Descend from the root to the child that contains the point.
//! 2. Copy some entries of the leaf, starting at the point.
//! 3. Validate the leaf's version. If it has changed, discard the entries of this leaf.
//!
//! All children of a node get the same share, whatever they hold. So entries of a half-empty leaf,
//! or of a node with few children, are sampled more often than others.

use super::BPlusTree;
use crate::btree::leaf::TreeLeaf;
use crate::Batch;
use crossbeam_epoch::Guard;

/// The number of entries that are taken from a leaf.
const NEIGHBOURS: usize = 6;
/// The distance between the points of successive samples: the golden ratio. So all parts of the
/// tree are sampled about equally often, however many points are used (Weyl's sequence).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns which of the parts contains the point. Sets the point to that within the part.
fn part(point: &mut u64, parts: usize) -> usize {
    let product = u128::from(*point) * parts as u128;
    *point = product as u64;
    (product >> 64) as usize
}

impl BPlusTree {
    /// Fills `batch`, which is cleared first, with about as many entries as it wants. Those of one
    /// leaf are of one instant. There are fewer if leaves are empty or have changed meanwhile.
    /// Returns the point of the next sample, which is far from this one and all recent ones.
    pub(crate) fn sample<'g>(&'g self, guard: &'g Guard, point: u64, batch: &mut Batch<'g>) -> u64 {
        batch.clear();
        let points = batch.want.div_ceil(NEIGHBOURS).max(1) as u64;
        for i in 0..points {
            // Points are at equal distances, and wrap around.
            let mut point = point.wrapping_add(i * (u64::MAX / points));
            let (bytes, entries) = (batch.bytes.len(), batch.entries.len());
            // (1)
            let leaf = self
                .inner
                .descend(guard, |node| part(&mut point, node.len()));
            // The leaf was changed meanwhile. What was copied of it may be torn.
            if copy_some(leaf, point, batch).is_none() {
                batch.bytes.truncate(bytes);
                batch.entries.truncate(entries);
            }
        }
        point.wrapping_add(GOLDEN)
    }
}

/// (2), (3) Returns `None` if the leaf is obsolete or has changed.
fn copy_some<'g>(leaf: TreeLeaf<'g>, mut point: u64, batch: &mut Batch<'g>) -> Option<()> {
    let view = leaf.read().ok()?;
    // Fewer entries if the leaf has fewer, all of them from one point.
    let len = view.len();
    let count = NEIGHBOURS.min(len);
    let from = part(&mut point, len - count + 1);
    for i in from..from + count {
        view.copy_next(i, batch).ok()?;
    }
    view.is_valid().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyOrder, Unique};
    use std::collections::BTreeSet;

    #[test]
    fn samples_come_from_all_over() {
        let (tree, guard) = (KeyOrder::new(Default::default()), crate::pin());
        let mut batch = Batch::default().with_want(48);
        tree.sample(&guard, 7, &mut batch);
        assert!(batch.is_empty());
        for i in 0..20_000u32 {
            let bytes = &i.to_be_bytes();
            let key = crate::Key { bytes, hash: 0 };
            tree.put(&guard, key, bytes, &mut |_| true);
        }
        let mut hundredths = BTreeSet::new();
        for point in 0..200u64 {
            tree.sample(&guard, point * (u64::MAX / 200), &mut batch);
            assert_eq!(batch.len(), 48);
            let mut eighths = BTreeSet::new();
            for i in 0..batch.len() {
                assert_eq!(batch.key(i), batch.value(i));
                let key = u32::from_be_bytes(batch.key(i).try_into().unwrap());
                hundredths.insert(key / 200);
                eighths.insert(key / 2_500);
            }
            assert!(eighths.len() >= 4, "{eighths:?}");
        }
        assert_eq!(hundredths.len(), 100);
    }
}
