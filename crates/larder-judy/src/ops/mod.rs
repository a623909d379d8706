//! What a tree does, as steps over pairs: safe code, one idea a file.
//!
//! A *slot* is where a pair hangs: the root, or a place in a branch. A slot of level L is reached
//! with the bytes 8 … L+1 of an index decoded, so every index below agrees with the path in them. A
//! node of level k < L in it agrees in the bytes L … k+1 too, and the pair's field holds them.
//! Everything here takes whole indexes, and looks at their low bytes.
//!
//! Invariants, kept by insert and remove, tested by `check` in [`stats`]:
//!
//! 1. A branch of level k has more than `leaf_again(k)` indexes: fewer become one leaf.
//! 2. A branch has at least two children, but at the root, which can't be narrow.
//! 3. One index, in any slot but the root's, is in the pair; so are as many as fit into it.
//! 4. A branch's count is the sum of its children's.

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

/// What a change was compiled for, and goes on with in a child.
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
