//! The processor's own bit count, where it has one.
//!
//! Compiled for any x86-64, counting bits takes a dozen instructions, and a path through bitmap branches counts at each. So
//! searches and changes are compiled twice, and the processor is asked which one to take (the answer is kept by `std`).

use crate::layout::Kind;
use crate::ops::find::Slot;
use crate::ops::insert::Inserted;
use crate::ops::seek::Found;
use crate::ops::{find, insert, remove, seek};
use crate::raw::jp::Jp;
use crate::raw::mem::Mem;

/// Whether the processor counts bits by one instruction.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[inline(always)]
fn counts() -> bool {
    std::arch::is_x86_feature_detected!("popcnt")
}

/// `find::get`, with the instruction.
///
/// # Safety
///
/// The processor has the instruction.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[target_feature(enable = "popcnt")]
unsafe fn get_counting<K: Kind>(root: &Jp<K>, key: u64) -> Option<Slot<'_>> {
    find::get_by(root, key)
}

/// `seek::seek`, with the instruction.
///
/// # Safety
///
/// The processor has the instruction.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[target_feature(enable = "popcnt")]
unsafe fn seek_counting<const UP: bool, K: Kind>(root: &Jp<K>, key: u64) -> Option<Found<'_>> {
    seek::seek_by::<UP, K>(root, key)
}

/// `insert::insert`, with the instruction.
///
/// # Safety
///
/// The processor has the instruction.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[target_feature(enable = "popcnt")]
unsafe fn insert_counting<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    insert::insert_by(jp, slot, key, mem)
}

/// `remove::remove`, with the instruction.
///
/// # Safety
///
/// The processor has the instruction.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[target_feature(enable = "popcnt")]
unsafe fn remove_counting<K: Kind>(
    jp: &mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Option<u64> {
    remove::remove_by(jp, slot, key, mem)
}

/// Inserts an index into a slot.
#[inline(always)]
pub(crate) fn insert<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    if counts() {
        // SAFETY: the processor has just been asked.
        return unsafe { insert_counting(jp, slot, key, mem) };
    }
    insert_plain(jp, slot, key, mem)
}

/// `insert::insert`, for any processor. A function of its own, as it calls itself.
#[inline(never)]
fn insert_plain<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    insert::insert_by(jp, slot, key, mem)
}

/// Removes an index from a slot.
#[inline(always)]
pub(crate) fn remove<K: Kind>(jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64> {
    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    if counts() {
        // SAFETY: the processor has just been asked.
        return unsafe { remove_counting(jp, slot, key, mem) };
    }
    remove_plain(jp, slot, key, mem)
}

/// `remove::remove`, for any processor. A function of its own, as it calls itself.
#[inline(never)]
fn remove_plain<K: Kind>(jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64> {
    remove::remove_by(jp, slot, key, mem)
}

/// The value of an index.
#[inline(always)]
pub(crate) fn get<K: Kind>(root: &Jp<K>, key: u64) -> Option<Slot<'_>> {
    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    if counts() {
        // SAFETY: the processor has just been asked.
        return unsafe { get_counting(root, key) };
    }
    find::get_by(root, key)
}

/// The nearest index from `key` on.
#[inline(always)]
pub(crate) fn seek<const UP: bool, K: Kind>(root: &Jp<K>, key: u64) -> Option<Found<'_>> {
    #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
    if counts() {
        // SAFETY: the processor has just been asked.
        return unsafe { seek_counting::<UP, K>(root, key) };
    }
    seek::seek_by::<UP, K>(root, key)
}
