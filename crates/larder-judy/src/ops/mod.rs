//! The operations of a tree, as steps over pointer pairs. All code here is safe, and each file has
//! one operation.
//!
//! A *slot* is the place of a pair: the root, or a place in a branch. In a slot of level L, the
//! bytes 8 … L+1 of an index have been decoded. So all indexes below have the same values in these
//! bytes as the path. If the slot has a node of a lower level k, all indexes below also agree in
//! the bytes L … k+1, which are in the pair's field. The functions here take whole indexes, and
//! look at their low bytes.
//!
//! Invariants, which insert and remove preserve, and `check` in [`stats`] tests:
//!
//! * **JU1** A branch of level k has more than `leaf_again(k)` indexes. One with fewer becomes a
//!   leaf.
//! * **JU2** A branch has at least two children. The root's may have one, since it can't be narrow.
//! * **JU3** Indexes that fit into the pair are in the pair, except in the root's slot.
//! * **JU4** The count of a branch is the sum of the counts of its children.

pub(crate) mod build;
pub(crate) mod cursor;
pub(crate) mod empty;
pub(crate) mod find;
pub(crate) mod free;
pub(crate) mod insert;
pub(crate) mod rank;
pub(crate) mod remove;
pub(crate) mod seek;
pub(crate) mod stats;

use self::insert::Inserted;
use crate::layout::Kind;
use crate::raw::jp::Jp;
use crate::raw::mem::Mem;

/// The processor for which a change was compiled. The change continues with it in a child.
pub(crate) trait Cpu: Copy {
    /// Inserts an index into a slot.
    fn insert<'a, K: Kind>(
        self,
        jp: &'a mut Jp<K>,
        slot: usize,
        key: u64,
        mem: &mut Mem,
    ) -> Inserted<'a>;

    /// Removes an index from a slot.
    fn remove<K: Kind>(self, jp: &mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Option<u64>;
}

/// The level of the root's slot.
pub(crate) const ROOT: usize = 8;
