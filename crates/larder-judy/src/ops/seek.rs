//! The nearest index: first, last, next and previous are all this.
//!
//! `seek::<UP>` finds the first index from a given one on, itself included, in one slot; `UP` is the direction. Where the
//! child of the index's byte has none, the nearest child beyond has: its *edge*, the first (last) index below it.

use std::cmp::Ordering;

use super::find::Slot;
use crate::layout::{digit, mask, Kind};
use crate::raw::jp::{Jp, Run, View};

/// An index and its value (nothing in a set).
pub(crate) type Found<'a> = (u64, Slot<'a>);

/// The nearest index from `key` on, upwards or downwards, in a slot to which the path of `key` leads.
pub(crate) fn seek<const UP: bool, K: Kind>(
    jp: &Jp<K>,
    slot: usize,
    key: u64,
) -> Option<Found<'_>> {
    let (view, k) = jp.view(slot);
    if k < slot && jp.strays(k, key) {
        let beyond = if UP {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        return if jp.base(k, key).cmp(&key) == beyond {
            edge::<UP, K>(jp, slot, key)
        } else {
            None
        };
    }
    match view {
        View::Null => None,
        View::Run(run) => seek_run::<UP, K>(&run, k, key),
        View::Branch(branch) => {
            let byte = digit(key, k);
            if let Some(child) = branch.child(byte) {
                if let Some(found) = seek::<UP, K>(child, k - 1, key) {
                    return Some(found);
                }
            }
            let (byte, child) = branch.beyond::<UP>(byte)?;
            edge::<UP, K>(child, k - 1, with_digit(key, k, byte))
        }
    }
}

#[inline(always)]
fn seek_run<'a, const UP: bool, K: Kind>(
    run: &Run<'a, K>,
    k: usize,
    key: u64,
) -> Option<Found<'a>> {
    let path = key & !mask(k);
    if let Run::Bits(bits) = run {
        return bits
            .seek::<UP>(key as u8)
            .map(|(low, value)| (path | low, value));
    }
    let at = match run.search(key & mask(k)) {
        Ok(at) => at,
        Err(at) if UP => at,
        Err(at) => at.checked_sub(1)?,
    };
    (at < run.len()).then(|| (path | run.key(at), run.value(at)))
}

/// The first (last) index below a pair that is not null; `path` gives the bytes above the slot.
pub(crate) fn edge<const UP: bool, K: Kind>(
    root: &Jp<K>,
    root_slot: usize,
    path: u64,
) -> Option<Found<'_>> {
    let (mut jp, mut slot, mut path) = (root, root_slot, path);
    loop {
        let (view, k) = jp.view(slot);
        if k < slot {
            path = jp.base(k, path);
        }
        match view {
            View::Null => return None,
            View::Run(run) => {
                let from = (path & !mask(k)) | if UP { 0 } else { mask(k) };
                return seek_run::<UP, K>(&run, k, from);
            }
            View::Branch(branch) => {
                let (byte, child) = branch.seek::<UP>(if UP { 0 } else { 255 })?;
                path = with_digit(path, k, byte);
                (jp, slot) = (child, k - 1);
            }
        }
    }
}

/// The index with another byte at level `k`.
#[inline(always)]
pub(crate) fn with_digit(key: u64, k: usize, byte: u8) -> u64 {
    let shift = 8 * (k - 1);
    (key & !(0xff << shift)) | (byte as u64) << shift
}
