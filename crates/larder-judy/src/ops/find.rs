//! Finding one index.
//!
//! 1. A branch: if the index strays from the bytes that the whole subtree shares, it is not there; else go on in the
//!    child of its byte.
//! 2. Anything else: search the index's low bytes.

use crate::layout::{digit, mask, Kind};
use crate::raw::jp::{Form, Jp, Run, View};

/// A value's place: nothing in a set.
pub(crate) type Slot<'a> = Option<&'a u64>;

/// The value of an index, if the index is there.
#[inline]
pub(crate) fn get<K: Kind>(root: &Jp<K>, key: u64) -> Option<Slot<'_>> {
    let mut jp = root;
    loop {
        let (view, k) = jp.view(7);
        match view {
            View::Branch(branch) => {
                if jp.strays(k, key) {
                    return None;
                }
                jp = branch.child(digit(key, k))?;
            }
            View::Null => return None,
            View::Run(Run::One(one)) => {
                return jp.is_one_of(key).then(|| K::VALUES.then(|| one.value()))
            }
            View::Run(Run::Immed(run)) => {
                return run.search(key & mask(k)).ok().map(|at| run.value(at))
            }
            View::Run(Run::Leaf(run)) => {
                if jp.strays(k, key) {
                    return None;
                }
                return run.search(key & mask(k)).ok().map(|at| run.value(at));
            }
            View::Run(Run::Bits(run)) => {
                return if jp.strays(1, key) {
                    None
                } else {
                    run.get(key as u8)
                };
            }
            View::Run(Run::Full(run)) => {
                return if jp.strays(1, key) {
                    None
                } else {
                    Some(run.get(key as u8))
                };
            }
        }
    }
}

/// The value of an index, to be written, if the index is there.
#[inline]
pub(crate) fn get_mut<K: Kind>(root: &mut Jp<K>, key: u64) -> Option<Option<&mut u64>> {
    let mut jp = root;
    loop {
        match jp.form() {
            Form::Null => return None,
            Form::One => return jp.is_one_of(key).then(|| jp.one_mut()),
            Form::Immed { k, .. } => {
                let at = place(jp, k, key).ok()?;
                return Some(jp.immed_value_mut(at));
            }
            Form::Leaf(k) => {
                if jp.strays(k, key) {
                    return None;
                }
                let at = place(jp, k, key).ok()?;
                return Some(jp.leaf_value_mut(at));
            }
            Form::Bits | Form::Full => {
                return if jp.strays(1, key) {
                    None
                } else {
                    jp.dense_mut(key as u8)
                };
            }
            Form::Linear(k) | Form::Bitmap(k) | Form::Wide(k) => {
                if jp.strays(k, key) {
                    return None;
                }
                let at = jp.find_child(digit(key, k))?;
                jp = jp.child_mut(at)?.1;
            }
        }
    }
}

/// The place of an index in a pair that is a run of level `k`, or where it would stand.
#[inline(always)]
pub(crate) fn place<K: Kind>(jp: &Jp<K>, k: usize, key: u64) -> Result<usize, usize> {
    match jp.view(k).0 {
        View::Run(run) => run.search(key & mask(k)),
        _ => Err(0),
    }
}
