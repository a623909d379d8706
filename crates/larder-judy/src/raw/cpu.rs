//! The processor's own bit count, where it has one.
//!
//! Without the instruction, counting bits takes a dozen others, and a path through bitmap branches
//! counts bits in each of them. So searches and changes are compiled twice. The processor is asked
//! once for each call which of the two to use (`std` caches the answer). After that, a value of
//! type [`Cpu`] is passed from node to node and from word to word, and tells which one was chosen.
//! This file has the operations on words; `raw/text/cpu.rs` has those on strings.

use crate::layout::Kind;
use crate::ops::find::Slot;
use crate::ops::insert::Inserted;
use crate::ops::seek::Found;
use crate::ops::{find, insert, remove, seek, Cpu};
use crate::raw::jp::Jp;
use crate::raw::mem::Mem;

/// Any processor.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

/// A processor that counts bits by one instruction: only one that has been asked makes this.
#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
#[derive(Clone, Copy)]
pub(crate) struct Counting(());

#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
impl Counting {
    #[inline]
    pub(in crate::raw) fn here() -> Option<Self> {
        std::arch::is_x86_feature_detected!("popcnt").then_some(Counting(()))
    }
}

impl Cpu for Plain {
    #[inline(always)]
    fn insert<'a, K: Kind>(
        self,
        jp: &'a mut Jp<K>,
        slot: usize,
        key: u64,
        mem: &mut Mem,
    ) -> Inserted<'a> {
        insert_plain(jp, slot, key, mem)
    }

    #[inline(always)]
    fn remove<K: Kind>(self, jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64> {
        remove_plain(jp, slot, key, mem)
    }
}

#[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
impl Cpu for Counting {
    #[inline(always)]
    fn insert<'a, K: Kind>(
        self,
        jp: &'a mut Jp<K>,
        slot: usize,
        key: u64,
        mem: &mut Mem,
    ) -> Inserted<'a> {
        // SAFETY: a `Counting` exists only if the processor has the instruction.
        unsafe { insert_counting(self, jp, slot, key, mem) }
    }

    #[inline(always)]
    fn remove<K: Kind>(self, jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64> {
        // SAFETY: as above.
        unsafe { remove_counting(self, jp, slot, key, mem) }
    }
}

/// Compiles a body twice, with the instruction and without, and a function that chooses.
macro_rules! twice {
    ($(#[$doc:meta])* $name:ident, $counting:ident, $plain:ident,
     [$($generic:tt)*] [$($given:tt)*] ($($arg:ident: $type:ty),*) -> $result:ty = |$cpu:pat_param| $body:expr) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name<$($generic)*>($($arg: $type),*) -> $result {
            #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
            if let Some(cpu) = $crate::raw::cpu::Counting::here() {
                // SAFETY: the processor has just been asked.
                return unsafe { $counting::<$($given)*>(cpu, $($arg),*) };
            }
            $plain::<$($given)*>($($arg),*)
        }

        /// With the instruction.
        ///
        /// # Safety
        ///
        /// The processor has the instruction.
        #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt")))]
        #[target_feature(enable = "popcnt")]
        unsafe fn $counting<$($generic)*>(cpu: $crate::raw::cpu::Counting, $($arg: $type),*) -> $result {
            let $cpu = cpu;
            $body
        }

        /// For any processor. A function of its own, as it may call itself.
        #[inline(never)]
        fn $plain<$($generic)*>($($arg: $type),*) -> $result {
            let $cpu = $crate::raw::cpu::Plain;
            $body
        }
    };
}

twice! {
    /// The value of an index.
    get, get_counting, get_plain,
    [K: Kind] [K] (root: &Jp<K>, key: u64) -> Option<Slot<'_>>
    = |_| find::get_by(root, key)
}

twice! {
    /// The nearest index from `key` on.
    seek, seek_counting, seek_plain,
    [const UP: bool, K: Kind] [UP, K] (root: &Jp<K>, key: u64) -> Option<Found<'_>>
    = |_| seek::seek_by::<UP, K>(root, key)
}

twice! {
    /// Inserts an index into a slot.
    insert, insert_counting, insert_plain,
    ['a, K: Kind] [K] (jp: &'a mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Inserted<'a>
    = |cpu| insert::insert_by(cpu, jp, slot, key, mem)
}

twice! {
    /// Removes an index from a slot.
    remove, remove_counting, remove_plain,
    [K: Kind] [K] (jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64>
    = |cpu| remove::remove_by(cpu, jp, slot, key, mem)
}

pub(in crate::raw) use twice;
