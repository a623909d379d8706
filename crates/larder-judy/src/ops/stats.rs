//! Counting the forms that a tree consists of, and checking its invariants.

use crate::layout::Kind;
use crate::raw::jp::branch::Branch;
use crate::raw::jp::{Jp, Run, View};
use crate::Stats;

/// Counts the nodes below a pair by form.
pub(crate) fn stats<K: Kind>(jp: &Jp<K>, slot: usize, depth: usize, stats: &mut Stats) {
    let (view, k) = jp.view(slot);
    stats.depth = stats.depth.max(depth);
    stats.narrow += (k < slot) as usize;
    match view {
        View::Null => {}
        View::Run(run) => {
            let count = match run {
                Run::One(_) | Run::Immed(_) => &mut stats.immediate,
                Run::Leaf(_) => &mut stats.linear_leaves[k],
                Run::Bits(_) => &mut stats.bitmap_leaves,
                Run::Full(_) => &mut stats.full_leaves,
            };
            *count += 1;
        }
        View::Branch(branch) => {
            let count = match branch {
                Branch::Linear(..) => &mut stats.linear_branches,
                Branch::Bitmap(_) => &mut stats.bitmap_branches,
                Branch::Wide(_) => &mut stats.wide_branches,
            };
            *count += 1;
            for (_, child) in branch.children() {
                self::stats(child, k - 1, depth + 1, stats);
            }
        }
    }
}

/// Checks the invariants of `ops` below a pair, and returns the number of indexes.
#[cfg(test)]
pub(crate) fn check<K: Kind>(jp: &Jp<K>, slot: usize, path: u64) -> u64 {
    use crate::layout::{leaf_again, mask};
    let (view, k) = jp.view(slot);
    // The bytes that the pair skips, as in a descent.
    let base = if k < slot {
        jp.base(k, path)
    } else {
        path & !mask(k)
    };
    assert!(
        k == slot || (slot < 8 && (base ^ path) & !mask(slot) == 0),
        "a narrow pair keeps to its slot's path"
    );
    match view {
        View::Null => assert!(slot == 8, "only the root may be null"),
        View::Run(run) => {
            let keys: Vec<u64> = (0..run.len()).map(|at| run.key(at)).collect();
            // Indexes ascend, and have no bytes above the node's level.
            assert!(
                keys.windows(2).all(|w| w[0] < w[1]) && keys.iter().all(|&key| key & !mask(k) == 0)
            );
            assert!(
                slot == 8 || !matches!(run, Run::Leaf(_)) || !Jp::<K>::immed_fits(run.len(), slot),
                "3"
            );
            assert_eq!(run.len() as u64, jp.pop());
        }
        View::Branch(branch) => {
            // Numbers are those of JU1 to JU4 (`ops`).
            assert!(jp.pop() > leaf_again::<K>(k), "1");
            assert!(branch.len() > 1 || slot == 8, "2");
            let below = |(byte, child): (u8, _)| {
                check::<K>(child, k - 1, base | (byte as u64) << (8 * (k - 1)))
            };
            assert_eq!(branch.children().map(below).sum::<u64>(), jp.pop(), "4");
        }
    }
    jp.pop()
}
