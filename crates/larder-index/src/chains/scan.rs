//! Scans of chains, block by block. A block is a range of hashes. Its nodes are collected from the
//! chains of all generations, and sorted.

use super::heads::Heads;
use super::node::NodeRef;
use super::Chains;
use crate::traits::HASH;
use crate::{Batch, Direction, Start};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Bound;

/// The entries after which a batch ends, if the caller wants no other number.
const BATCH: usize = 64;

/// The bits of a hash that aren't in a position.
const REST_BITS: u32 = 64 - 8 * HASH as u32;

/// A position: the hash, as far as it is part of a position, and the key.
type HashAndKey<'p> = (u64, &'p [u8]);

/// The hash and the key of a position. Missing bytes of the hash are zeros.
fn hash_and_key(position: &[u8]) -> HashAndKey<'_> {
    let (hash, key) = position.split_at(position.len().min(HASH));
    let mut bytes = [0; 8];
    bytes[..hash.len()].copy_from_slice(hash);
    (u64::from_be_bytes(bytes), key)
}

/// The hash and the key of a node.
fn of_node<'g>(node: NodeRef<'g>) -> HashAndKey<'g> {
    (node.hash() >> REST_BITS << REST_BITS, node.key())
}

/// The block of a hash.
fn block_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(64 - bits).unwrap_or(0)
}

/// The nodes of a block, from `start` on, in the order of the scan.
fn nodes_of<'g>(
    heads: &'g Heads,
    (block, bits): (u64, u32),
    (start, direction): (Start<'_>, Direction),
    guard: &'g Guard,
) -> SmallVec<[NodeRef<'g>; BATCH]> {
    let begins = match start {
        Start::Edge => None,
        Start::At(position) | Start::Past(position) => Some(hash_and_key(position)),
    };
    let included = matches!(start, Start::At(_));
    let has_begun = |node: NodeRef<'_>| match (begins, direction) {
        (None, _) => true,
        (Some(begins), _) if of_node(node) == begins => included,
        (Some(begins), Direction::Forward) => of_node(node) > begins,
        (Some(begins), Direction::Backward) => of_node(node) < begins,
    };
    let mut nodes = SmallVec::new();
    heads.each_in(block, bits, guard, &mut |node| {
        if has_begun(node) {
            nodes.push(node);
        }
    });
    match direction {
        Direction::Forward => nodes.sort_unstable_by_key(|&node| of_node(node)),
        Direction::Backward => nodes.sort_unstable_by(|&a, &b| of_node(b).cmp(&of_node(a))),
    }
    nodes
}

impl Chains {
    /// See `Unique::scan`.
    pub(super) fn scan_blocks(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) {
        batch.clear();
        let bits = self.heads.block_bits();
        let last = (1u64 << bits) - 1;
        let block_at = |position| block_of(hash_and_key(position).0, bits);
        let mut block = match (start, direction) {
            (Start::Edge, Direction::Forward) => 0,
            (Start::Edge, Direction::Backward) => last,
            (Start::At(position) | Start::Past(position), _) => block_at(position),
        };
        let end = match (&batch.until, direction) {
            (Bound::Unbounded, Direction::Forward) => last,
            (Bound::Unbounded, Direction::Backward) => 0,
            (Bound::Included(position) | Bound::Excluded(position), _) => block_at(position),
        };
        let wanted = match batch.want {
            0 => BATCH,
            wanted => wanted,
        };
        // The positions of a block begin with its bits.
        let first = |block: u64| block.checked_shl(64 - bits).unwrap_or(0).to_be_bytes();
        loop {
            // This block was prefetched before the last one was read, if there was one.
            let next = match direction {
                Direction::Forward => block + 1,
                Direction::Backward => block.wrapping_sub(1),
            };
            self.heads.prefetch_block(next, bits);
            for node in nodes_of(&self.heads, (block, bits), (start, direction), guard) {
                batch.push(node.key(), node.value());
            }
            let is_end = match direction {
                Direction::Forward => block >= end,
                Direction::Backward => block <= end,
            };
            if is_end {
                batch.done = true;
                return;
            }
            if batch.len() >= wanted {
                let resume = match direction {
                    Direction::Forward => first(block + 1),
                    Direction::Backward => first(block),
                };
                batch.resume.extend_from_slice(&resume[..HASH]);
                return;
            }
            block = next;
        }
    }
}
