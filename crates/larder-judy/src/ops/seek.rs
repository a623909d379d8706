//! The nearest index. First, last, next and previous are all special cases of it.
//!
//! `seek::<UP>` finds the first index from a given one on, in the direction `UP`, the given one
//! included. It goes down to the child of the index's byte. If it finds nothing there, the result
//! is the *edge* of the next child in the direction: the first (last) index below that child.

use super::find::Slot;
use super::ROOT;
use crate::layout::{digit, mask, Kind};
use crate::raw::jp::{on_form, Jp, Run};

/// An index and its value (nothing in a set).
pub(crate) type Found<'a> = (u64, Slot<'a>);

/// The nearest index from `key` on, upwards or downwards, in the tree below the root's pair: what
/// [`cpu::seek`](crate::raw::cpu::seek) is compiled from.
///
/// 1. Descend along `key`, and remember each branch by its level. Stop at a run, at a missing
///    child, or at a pair whose prefix differs from that of `key`.
/// 2. If a run was reached, search it. If a prefix differs, the whole subtree lies before `key` or
///    beyond it in the direction. If it lies beyond, its edge is the result.
/// 3. Otherwise climb to the lowest branch with a further child in the direction. The result is
///    that child's edge.
#[inline(always)]
pub(crate) fn seek_by<const UP: bool, K: Kind>(root: &Jp<K>, key: u64) -> Option<Found<'_>> {
    // The branches of the path, by their levels, for the ascent.
    let mut path = [root; ROOT + 1];
    let (mut jp, mut slot) = (root, ROOT);
    // 1. Descend along `key`.
    loop {
        on_form!(jp, slot,
        Null => break,
        Run(run, k, narrow) => {
            // 2. Search the run, or compare the prefix of its subtree with `key`.
            if narrow && jp.strays(k, key) {
                if (jp.base(k, key) > key) == UP {
                    return edge::<UP, K>(jp, slot, key);
                }
            } else if let Some(found) = seek_run::<UP, K>(&run, k, key) {
                return Some(found);
            }
            break;
        },
        Branch(branch, k) => {
            // 2. The same for a subtree of branches.
            if jp.strays(k, key) {
                if (jp.base(k, key) > key) == UP {
                    return edge::<UP, K>(jp, slot, key);
                }
                break;
            }
            (path[k], slot) = (jp, k - 1);
            match branch.child(digit(key, k)) {
                Some(child) => jp = child,
                None => break,
            }
        });
    }
    // 3. Climb to a branch with a further child.
    climb::<UP, K>(&path, slot + 1, key)
}

/// Step 3 of [`seek_by`]: climbs from level `from`. Entries of `path` for levels that the descent
/// skipped hold the root's pair, which is of another level.
#[inline(always)]
fn climb<'a, const UP: bool, K: Kind>(
    path: &[&'a Jp<K>; ROOT + 1],
    from: usize,
    key: u64,
) -> Option<Found<'a>> {
    // The lowest branch first: the nearest index beyond is below the lowest one that has a further
    // child.
    for (k, &jp) in path.iter().enumerate().skip(from) {
        if jp.form().level() != Some(k) {
            continue;
        }
        let beyond = on_form!(jp, ROOT,
            Null => None,
            Run(_, _, _) => None,
            Branch(branch, _) => branch.beyond::<UP>(digit(key, k)));
        if let Some((byte, child)) = beyond {
            return edge::<UP, K>(child, k - 1, with_digit(key, k, byte));
        }
    }
    None
}

#[inline(always)]
fn seek_run<'a, const UP: bool, K: Kind>(
    run: &Run<'a, K>,
    k: usize,
    key: u64,
) -> Option<Found<'a>> {
    let path = key & !mask(k);
    if let Run::Bits(bits) = run {
        // Indexes in a bitmap mostly have neighbours. So the processor predicts that the index is
        // found, and a caller that goes from one to the next needn't wait for the words of the
        // leaf.
        if let Some(value) = bits.get(key as u8) {
            return Some((key, value));
        }
        return bits
            .seek::<UP>(key as u8)
            .map(|(low, value)| (path | low, value));
    }
    // The place of the index, or of the nearest one in the direction.
    let at = match run.search(key & mask(k)) {
        Ok(at) => at,
        Err(at) if UP => at,
        Err(at) => at.checked_sub(1)?,
    };
    (at < run.len()).then(|| (path | run.key(at), run.value(at)))
}

/// The first (last) index below a pair that is not null; `path` gives the bytes above the slot.
#[inline(never)]
pub(crate) fn edge<const UP: bool, K: Kind>(
    root: &Jp<K>,
    root_slot: usize,
    path: u64,
) -> Option<Found<'_>> {
    let (mut jp, mut slot, mut path) = (root, root_slot, path);
    // Take the first child, or the last one, on every level.
    loop {
        on_form!(jp, slot,
        Null => return None,
        Run(run, k, narrow) => {
            // A narrow pointer has the bytes between its slot and the run. `path` has those above.
            let base = if narrow && k < slot { jp.base(k, path) } else { path & !mask(k) };
            let at = if UP { 0 } else { run.len() - 1 };
            return Some((base | run.key(at), run.value(at)));
        },
        Branch(branch, k) => {
            // The same for a branch. Then go on at its first child, or at its last one.
            path = if k < slot { jp.base(k, path) } else { path };
            let (byte, child) = branch.seek::<UP>(if UP { 0 } else { 255 })?;
            path = with_digit(path, k, byte);
            (jp, slot) = (child, k - 1);
        });
    }
}

/// The index with another byte at level `k`.
#[inline]
pub(crate) fn with_digit(key: u64, k: usize, byte: u8) -> u64 {
    let shift = 8 * (k - 1);
    (key & !(0xff << shift)) | (byte as u64) << shift
}
