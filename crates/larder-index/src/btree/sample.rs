//! A sample of the entries, from all over the tree: what a table that evicts chooses from.
//!
//! Neighbours in key order are often alike (the newest, those of one user), so a few entries each
//! of several leaves are taken. Their places are fractions of the tree, equally far from each
//! other:
//!
//! ```text
//!  place      0.6 of four children:     the third, and 0.4 of it
//!             0.4 of five children:     the third, and 0.0 of it     ... down to a leaf
//! ```
//!
//! 1. Go down from the root, to the child in which the place is.
//! 2. Copy some entries of the leaf, from the place on.
//! 3. Validate the leaf's version. If it has changed, nothing is taken of it.
//!
//! All children of a node have the same share, whatever they hold: entries of a leaf that is half
//! empty, or of a node with few children, are looked at more often than others.

use super::BPlusTree;
use crate::btree::leaf::TreeLeaf;
use crate::Batch;
use crossbeam_epoch::Guard;

/// Entries that are taken of a leaf.
const NEIGHBOURS: usize = 6;

/// Which of so many parts a place is in. The place becomes that within the part.
fn part(place: &mut u64, parts: usize) -> usize {
    let product = u128::from(*place) * parts as u128;
    *place = product as u64;
    (product >> 64) as usize
}

impl BPlusTree {
    /// Fills `batch` (cleared first) with about as many entries as it wants; those of one leaf are
    /// of one instant. Fewer, if leaves are empty or have changed meanwhile.
    pub(crate) fn sample(&self, guard: &Guard, place: u64, batch: &mut Batch) {
        batch.clear();
        let places = batch.want.div_ceil(NEIGHBOURS).max(1) as u64;
        for i in 0..places {
            let mut place = place.wrapping_add(i * (u64::MAX / places));
            let (bytes, entries) = (batch.bytes.len(), batch.entries.len());
            // (1)
            let leaf = self
                .inner
                .descend(guard, |node| part(&mut place, node.len()));
            if copy_some(leaf, place, batch).is_none() {
                batch.bytes.truncate(bytes);
                batch.entries.truncate(entries);
            }
        }
    }
}

/// (2), (3) None if the leaf is obsolete, or a writer was at work.
fn copy_some(leaf: TreeLeaf<'_>, mut place: u64, batch: &mut Batch) -> Option<()> {
    let view = leaf.read().ok()?;
    let len = view.len();
    let count = NEIGHBOURS.min(len);
    let from = part(&mut place, len - count + 1);
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
        let mut batch = Batch {
            want: 48,
            ..Batch::default()
        };
        tree.sample(&guard, 7, &mut batch);
        assert!(batch.is_empty());
        for i in 0..20_000u32 {
            let bytes = &i.to_be_bytes();
            let key = crate::Key { bytes, hash: 0 };
            tree.put(&guard, key, bytes, &mut |_| true);
        }
        let mut hundredths = BTreeSet::new();
        for place in 0..200u64 {
            tree.sample(&guard, place * (u64::MAX / 200), &mut batch);
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
