//! Finding one index.
//!
//! 1. In a branch, compare the bytes that all its indexes share. If those of the index are
//!    different, it is missing. Otherwise go on to the child of its next byte.
//! 2. In any other node, search for the low bytes of the index.

use crate::layout::{digit, mask, Kind};
use crate::raw::jp::{on_form, Form, Jp, View};

/// The value of an index. `None` in a set.
pub(crate) type Slot<'a> = Option<&'a u64>;

/// The value of an index, if the index is there. [`cpu::get`](crate::raw::cpu::get) is compiled
/// from this.
#[inline(always)]
pub(crate) fn get_by<K: Kind>(root: &Jp<K>, key: u64) -> Option<Slot<'_>> {
    let mut jp = root;
    loop {
        // The pair of one index holds seven bytes of it, so that its slot's level does not matter
        // here.
        jp = on_form!(jp, 7,
        Null => return None,
        Run(run, k, narrow) => {
            return if narrow && jp.strays(k, key) { None } else { run.get(key & mask(k)) };
        },
        Branch(branch, k) => {
            if jp.strays(k, key) {
                return None;
            }
            branch.child(digit(key, k))?
        });
    }
}

/// The value of an index, mutably, if the index is there.
#[inline]
pub(crate) fn get_mut<K: Kind>(root: &mut Jp<K>, key: u64) -> Option<Option<&mut u64>> {
    // The loop goes down one branch at a time. Each form has its own, so that its search is
    // inlined.
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
            Form::Linear(k) => jp = child_on_path(jp, k, key)?,
            Form::Bitmap(k) => jp = child_on_path(jp, k, key)?,
            Form::Wide(k) => jp = child_on_path(jp, k, key)?,
        }
    }
}

/// The child of a branch of level `k` that an index leads to. Called once for each form, which it
/// knows then.
#[inline]
fn child_on_path<K: Kind>(jp: &mut Jp<K>, k: usize, key: u64) -> Option<&mut Jp<K>> {
    if jp.strays(k, key) {
        return None;
    }
    Some(jp.child_mut(digit(key, k))?.1)
}

/// The place of an index in a pair that is a run of level `k`, or where it would stand.
#[inline(always)]
pub(crate) fn place<K: Kind>(jp: &Jp<K>, k: usize, key: u64) -> Result<usize, usize> {
    match jp.view(k).0 {
        View::Run(run) => run.search(key & mask(k)),
        _ => Err(0),
    }
}
