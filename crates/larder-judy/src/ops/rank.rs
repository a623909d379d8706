//! Counting: how many indexes are below a given one, and which is the n-th.
//!
//! Each pair knows its population. So both operations go down a single path. In each branch they
//! add up the counts of the children on one side of the path: on the lower side if the byte is less
//! than 128, otherwise on the upper side.

use super::find::Slot;
use super::seek::with_digit;
use crate::layout::{digit, mask, Kind};
use crate::raw::jp::branch::Branch;
use crate::raw::jp::{Jp, View};

/// How many indexes of a slot are below `key`, whose path leads to it.
pub(crate) fn rank<K: Kind>(root: &Jp<K>, root_slot: usize, key: u64) -> u64 {
    let (mut jp, mut slot, mut below) = (root, root_slot, 0);
    loop {
        let (view, k) = jp.view(slot);
        // A subtree that strays lies before the key as a whole, or after it.
        if k < slot && jp.strays(k, key) {
            return below + if jp.base(k, key) < key { jp.pop() } else { 0 };
        }
        match view {
            View::Null => return below,
            View::Run(run) => {
                let (Ok(at) | Err(at)) = run.search(key & mask(k));
                return below + at as u64;
            }
            View::Branch(branch) => {
                // Add what the children in front of the key's child hold, and go on in that one.
                let byte = digit(key, k);
                below += before(&branch, jp.pop(), byte);
                let Some(child) = branch.child(byte) else {
                    return below;
                };
                (jp, slot) = (child, k - 1);
            }
        }
    }
}

/// How many indexes of a branch are below a byte's child.
fn before<K: Kind>(branch: &Branch<'_, K>, pop: u64, byte: u8) -> u64 {
    // Sum over the shorter side. The other one is the difference to the branch's own count.
    let sum = |children: &[Jp<K>]| children.iter().map(Jp::pop).sum::<u64>();
    match branch {
        Branch::Wide(pairs) if byte < 128 => sum(&pairs[..byte as usize]),
        Branch::Wide(pairs) => pop - sum(&pairs[byte as usize..]),
        _ if byte < 128 => branch
            .children()
            .take_while(|(at, _)| *at < byte)
            .map(|(_, jp)| jp.pop())
            .sum(),
        _ => {
            pop - branch
                .children_down()
                .take_while(|(at, _)| *at >= byte)
                .map(|(_, jp)| jp.pop())
                .sum::<u64>()
        }
    }
}

/// The index with `n` indexes below it, and its value.
pub(crate) fn nth<K: Kind>(root: &Jp<K>, root_slot: usize, n: u64) -> Option<(u64, Slot<'_>)> {
    let (mut jp, mut slot, mut path, mut left) = (root, root_slot, 0, n);
    loop {
        let (view, k) = jp.view(slot);
        // A narrow pair has bytes of the path in its field.
        if k < slot {
            path = jp.base(k, path);
        }
        match view {
            View::Null => return None,
            View::Run(run) => {
                let at = usize::try_from(left).ok().filter(|&at| at < run.len())?;
                return Some(((path & !mask(k)) | run.key(at), run.value(at)));
            }
            View::Branch(branch) => {
                // Pass children until the one that holds the index.
                let (byte, child) = branch.children().find(|(_, child)| {
                    let here = left < child.pop();
                    left -= if here { 0 } else { child.pop() };
                    here
                })?;
                path = with_digit(path, k, byte);
                (jp, slot) = (child, k - 1);
            }
        }
    }
}
