//! Removing an index.
//!
//! 1. Go down as `find` does.
//! 2. Remove the index from the run. If what is left fits into a smaller form, build that form.
//! 3. On the way back, decrement the count of each branch. Remove a child that has become empty.
//! 4. If the indexes of a branch fit into one leaf with some room left, build that leaf. If a
//!    branch has only one child left, replace the branch by the child. The child's field contains
//!    all the bytes above it.

use super::build::{drop_small, settle, Pile};
use super::find::place;
use super::Cpu;
use crate::layout::{digit, leaf_again, mask, Kind};
use crate::raw::jp::{Form, Jp, View};
use crate::raw::mem::Mem;

/// Removes an index from a slot. Returns its value (zero in a set), if it was there.
/// [`cpu::remove`](crate::raw::cpu::remove) is compiled from this.
#[inline(always)]
pub(crate) fn remove_by<K: Kind>(
    cpu: impl Cpu,
    jp: &mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Option<u64> {
    // As for inserting: branches first.
    match jp.form() {
        Form::Linear(k) => branch_remove(cpu, jp, k, slot, key, mem),
        Form::Bitmap(k) => branch_remove(cpu, jp, k, slot, key, mem),
        Form::Wide(k) => branch_remove(cpu, jp, k, slot, key, mem),
        Form::Null => None,
        Form::One => {
            if !jp.is_one_of(key) {
                return None;
            }
            let value = jp.one_mut().map_or(0, |value| *value);
            *jp = Jp::NULL;
            Some(value)
        }
        Form::Immed { n, k } => {
            let at = place(jp, k, key).ok()?;
            // Two immediates that lose one become a single index.
            if n > 2 {
                return Some(jp.immed_remove(at, mem));
            }
            Some(leave_one(jp, k, at, key, mem))
        }
        Form::Leaf(k) => {
            if jp.strays(k, key) {
                return None;
            }
            let at = place(jp, k, key).ok()?;
            // A leaf that could be in the pair goes there.
            let left = jp.pop() as usize - 1;
            if left == 0 || slot < 8 && Jp::<K>::immed_fits(left, slot) {
                return rebuild_without(jp, k, slot, key, mem);
            }
            Some(jp.leaf_remove(at, mem))
        }
        Form::Bits | Form::Full => dense_remove(jp, slot, key, mem),
    }
}

/// Steps 1 and 3. Inlined once for each form of a branch, so that the form is known.
#[inline(always)]
fn branch_remove<K: Kind>(
    cpu: impl Cpu,
    jp: &mut Jp<K>,
    k: usize,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Option<u64> {
    if jp.strays(k, key) {
        return None;
    }
    let byte = digit(key, k);
    let (tally, child) = jp.child_mut(byte)?;
    let value = cpu.remove(child, k - 1, key, mem)?;
    // 3. On the way back up.
    tally.take_one();
    // The child has lost its last index, so the branch loses the child.
    if child.is_null() {
        jp.remove_null(byte, mem);
    }
    // The branch may now be so small that one leaf could hold it.
    simplify(jp, k, slot, key, mem);
    Some(value)
}

/// Step 2: removes one of two immediates of `k` bytes, the one at `at`. Returns its value.
fn leave_one<K: Kind>(jp: &mut Jp<K>, k: usize, at: usize, key: u64, mem: &mut Mem) -> u64 {
    // The other index, with the bytes above it, becomes the pair.
    let View::Run(run) = jp.view(k).0 else {
        unreachable!("the pair is a run")
    };
    let value = |at| run.value(at).copied().unwrap_or(0);
    let (one, removed) = (
        Jp::one(key & !mask(k) | run.key(1 - at), value(1 - at)),
        value(at),
    );
    jp.drop_run(mem);
    *jp = one;
    removed
}

fn dense_remove<K: Kind>(jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64> {
    if jp.strays(1, key) || jp.dense_mut(key as u8).is_none() {
        return None;
    }
    // A full leaf has no bits. It gets them, and then loses one.
    if jp.form() == Form::Full {
        jp.thin_out(mem);
    }
    // Few enough are left for a linear leaf.
    if jp.pop() - 1 <= leaf_again::<K>(1) {
        return rebuild_without(jp, 1, slot, key, mem);
    }
    Some(jp.bits_remove(key as u8, mem))
}

/// Step 2: rebuilds a run with one index less.
#[cold]
#[inline(never)]
fn rebuild_without<K: Kind>(
    jp: &mut Jp<K>,
    k: usize,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Option<u64> {
    let mut pile = Pile::of(jp, slot, key);
    let value = pile.remove(key);
    jp.drop_run(mem);
    *jp = settle(slot, k, &pile, mem);
    value
}

/// Step 4: replaces a branch by a leaf.
#[cold]
#[inline(never)]
fn leaf_of_branch<K: Kind>(jp: &mut Jp<K>, k: usize, slot: usize, key: u64, mem: &mut Mem) {
    let pile = Pile::of(jp, slot, key);
    drop_small(jp, mem);
    *jp = settle(slot, k, &pile, mem);
}

/// Step 4: gives a branch that has lost an index a simpler form, if it is time.
#[inline(always)]
fn simplify<K: Kind>(jp: &mut Jp<K>, k: usize, slot: usize, key: u64, mem: &mut Mem) {
    // Few enough for a leaf, with a margin, so that the form doesn't change back at the next
    // insert.
    if jp.pop() <= leaf_again::<K>(k) {
        return leaf_of_branch(jp, k, slot, key, mem);
    }
    // Or the branch takes a smaller form, or gives way to its only child.
    match jp.form() {
        Form::Wide(_) => jp.narrow_down(mem),
        Form::Linear(_) if slot < 8 => lift_only_child(jp, mem),
        _ => {}
    }
}

/// A branch with one child left becomes that child.
fn lift_only_child<K: Kind>(jp: &mut Jp<K>, mem: &mut Mem) {
    if jp.linear_count() != 1 {
        return;
    }
    let mut only = Jp::NULL;
    jp.dismantle(mem, |_, child| only = child);
    *jp = only;
}
