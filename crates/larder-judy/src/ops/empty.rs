//! The nearest index that is *not* there.
//!
//! Full subtrees are skipped by their counts: a branch of level k with 256^k indexes is not
//! entered.

use super::seek::with_digit;
use crate::layout::{digit, mask, Kind};
use crate::raw::jp::{Jp, Run, View};

/// The nearest missing index from `key` on, itself included, in a slot to which the path of `key`
/// leads.
pub(crate) fn empty<const UP: bool, K: Kind>(jp: &Jp<K>, slot: usize, key: u64) -> Option<u64> {
    let (view, k) = jp.view(slot);
    // The key isn't in this subtree at all, so it is missing itself.
    if k < slot && jp.strays(k, key) {
        return Some(key);
    }
    let inside = match view {
        View::Null => Some(key),
        // A run is searched. A branch is searched child by child, unless it is full.
        View::Run(run) => empty_in_run::<UP, K>(&run, k, key),
        View::Branch(_) if k < 7 && jp.pop() == 1 << (8 * k) => None,
        View::Branch(branch) => {
            let missing = |byte: u8, from: u64| match branch.child(byte) {
                None => Some(from),
                Some(child) => empty::<UP, K>(child, k - 1, from),
            };
            // The key's own child first, from the key on; then the others, from their edges.
            let byte = digit(key, k);
            let edge = if UP { 0 } else { mask(k - 1) };
            let from = |byte| with_digit(key & !mask(k - 1) | edge, k, byte);
            missing(byte, key).or_else(|| {
                if UP {
                    (byte..255).find_map(|below| missing(below + 1, from(below + 1)))
                } else {
                    (0..byte).rev().find_map(|byte| missing(byte, from(byte)))
                }
            })
        }
    };
    // No index of this node is missing. The next index outside the node's range may be missing.
    inside.or_else(|| beside::<UP>(k, slot, key))
}

/// The missing index next to a node that is full from `key` on, if its slot has room beside it.
fn beside<const UP: bool>(k: usize, slot: usize, key: u64) -> Option<u64> {
    if UP {
        // The last index that the node can have. If it is the slot's last, too, there is no room
        // after it.
        let last = key | mask(k);
        (last != key | mask(slot)).then(|| last + 1)
    } else {
        let first = key & !mask(k);
        (first != key & !mask(slot)).then(|| first - 1)
    }
}

fn empty_in_run<const UP: bool, K: Kind>(run: &Run<'_, K>, k: usize, key: u64) -> Option<u64> {
    let low = key & mask(k);
    match run {
        // A full leaf misses nothing. A bitmap finds a missing bit by itself.
        Run::Full(_) => return None,
        Run::Bits(bits) => {
            let missing = bits.seek_missing::<UP>(low as u8)?;
            return Some(key & !mask(k) | missing);
        }
        _ => {}
    }
    // The key itself is missing, which is the answer.
    let Ok(mut at) = run.search(low) else {
        return Some(key);
    };
    // Walk along neighbours, as long as each is the next number.
    let mut last = low;
    loop {
        let next = if UP {
            at.checked_add(1).filter(|&at| at < run.len())
        } else {
            at.checked_sub(1)
        };
        let beyond = if UP {
            last.wrapping_add(1)
        } else {
            last.wrapping_sub(1)
        };
        match next {
            Some(next) if run.key(next) == beyond => (at, last) = (next, beyond),
            _ if last == if UP { mask(k) } else { 0 } => return None,
            _ => return Some(key & !mask(k) | beyond),
        }
    }
}
