//! Scans of chains, block by block. A block is a range of hashes: those that begin with the same
//! bits.
//!
//! 1. Find the blocks of the start and of the end of the scan.
//! 2. Collect the nodes of the next block from the chains of all generations, and sort them.
//!    Meanwhile the block after it is prefetched.
//! 3. Drop the nodes before the start and after the end.
//! 4. Append the others to the batch. If it is full, the scan resumes at the end of the block.
//!    Otherwise continue with (2).
//!
//! So a batch ends between two blocks, and may have more entries than were wanted.

use super::heads::Heads;
use super::node::NodeRef;
use super::Chains;
use crate::traits::HASH;
use crate::{Batch, Direction, Start};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Bound;

/// The entries after which a batch ends, if the caller wants no other number.
const BATCH: usize = 64;

/// The bits of a hash that aren't in a position.
const REST_BITS: u32 = 64 - 8 * HASH as u32;

/// Those bits.
const REST: u64 = (1 << REST_BITS) - 1;

/// A position: the hash, as far as it is part of a position, and the key.
type HashAndKey<'p> = (u64, &'p [u8]);

/// A node, and its hash, as far as it is part of a position.
type HashAndNode<'g> = (u64, NodeRef<'g>);

/// Nodes of a block.
type Nodes<'g> = SmallVec<[HashAndNode<'g>; BATCH]>;

/// The hash and the key of a position. Missing bytes of the hash are zeros.
fn hash_and_key(position: &[u8]) -> HashAndKey<'_> {
    let (hash, key) = position.split_at(position.len().min(HASH));
    let mut bytes = [0; 8];
    bytes[..hash.len()].copy_from_slice(hash);
    (u64::from_be_bytes(bytes), key)
}

/// The part of a node's hash that is part of its position.
fn hash_of(node: NodeRef<'_>) -> u64 {
    node.hash() >> REST_BITS << REST_BITS
}

/// The block of a hash.
fn block_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(64 - bits).unwrap_or(0)
}

/// The blocks of a scan.
struct Blocks {
    /// How many bits of the hash are the number of a block.
    bits: u32,
    first: u64,
    last: u64,
    direction: Direction,
}

impl Blocks {
    /// The blocks from `start` to `until`.
    fn of(start: Start<'_>, until: &Bound<Vec<u8>>, direction: Direction, bits: u32) -> Self {
        let block_at = |position| block_of(hash_and_key(position).0, bits);
        let highest = (1u64 << bits) - 1;
        let (near, far) = match direction {
            Direction::Forward => (0, highest),
            Direction::Backward => (highest, 0),
        };
        Blocks {
            bits,
            first: match start {
                Start::Edge => near,
                Start::At(position) | Start::Past(position) => block_at(position),
            },
            last: match until {
                Bound::Unbounded => far,
                Bound::Included(position) | Bound::Excluded(position) => block_at(position),
            },
            direction,
        }
    }

    /// The block after this one.
    fn after(&self, block: u64) -> u64 {
        match self.direction {
            Direction::Forward => block + 1,
            Direction::Backward => block.wrapping_sub(1),
        }
    }

    /// Whether no block after this one is scanned.
    fn is_last(&self, block: u64) -> bool {
        match self.direction {
            Direction::Forward => block >= self.last,
            Direction::Backward => block <= self.last,
        }
    }

    /// The position at which a block ends, for `Batch::resume`.
    fn end_of(&self, block: u64) -> [u8; HASH] {
        let number = match self.direction {
            Direction::Forward => block + 1,
            Direction::Backward => block,
        };
        // The positions of a block begin with its bits.
        let bytes = number
            .checked_shl(64 - self.bits)
            .unwrap_or(0)
            .to_be_bytes();
        *bytes
            .first_chunk()
            .expect("a hash in a position is a part of a word")
    }

    /// Keeps the nodes of a block that are between the two ends of the scan. Only the first block
    /// has nodes before the start, and only the last one after the end.
    fn retain_in_range(
        &self,
        block: u64,
        start: Start<'_>,
        until: &Bound<Vec<u8>>,
        nodes: &mut Nodes<'_>,
    ) {
        // How a node after a position compares with it.
        let after = match self.direction {
            Direction::Forward => Ordering::Greater,
            Direction::Backward => Ordering::Less,
        };
        match start {
            Start::At(position) if block == self.first => {
                retain(nodes, position, |order| order != after.reverse());
            }
            Start::Past(position) if block == self.first => {
                retain(nodes, position, |order| order == after);
            }
            _ => {}
        }
        match until {
            Bound::Included(position) | Bound::Excluded(position) if block == self.last => {
                retain(nodes, position, |order| order != after);
            }
            _ => {}
        }
    }
}

/// Collects the nodes of a block, in the order of the scan.
fn nodes_of<'g>(
    heads: &'g Heads,
    block: u64,
    bits: u32,
    direction: Direction,
    guard: &'g Guard,
    nodes: &mut Nodes<'g>,
) {
    nodes.clear();
    heads.each_in(block, bits, guard, &mut |node| {
        nodes.push((hash_of(node), node));
    });
    nodes.sort_unstable_by(|a: &HashAndNode<'_>, b: &HashAndNode<'_>| {
        // Few hashes are equal.
        a.0.cmp(&b.0).then_with(|| a.1.key().cmp(b.1.key()))
    });
    if direction == Direction::Backward {
        nodes.reverse();
    }
}

/// Keeps the nodes whose order, compared with a position, is one of those that `keeps` accepts.
fn retain(nodes: &mut Nodes<'_>, position: &[u8], keeps: impl Fn(Ordering) -> bool) {
    let position = hash_and_key(position);
    nodes.retain(|&mut (hash, node)| keeps((hash, node.key()).cmp(&position)));
}

impl Chains {
    /// Calls `f` with the hash, the key and the value of each entry whose hash, as far as it is
    /// part of a position, is between those at the beginnings of two positions, or equal to one.
    /// `None` stands for the first or the last hash. Entries come in no order. Ends if `f` returns
    /// `false`; returns whether it has not.
    ///
    /// As in a scan, each entry is read at an instant between the call and its return.
    pub fn each_between<'g>(
        &'g self,
        guard: &'g Guard,
        first: Option<&[u8]>,
        last: Option<&[u8]>,
        f: &mut dyn FnMut(u64, &'g [u8], &'g [u8]) -> bool,
    ) -> bool {
        // A position has only the top bits of a hash. So the last hash is the greatest with these.
        let first = first.map_or(0, |position| hash_and_key(position).0);
        let last = last.map_or(u64::MAX, |position| hash_and_key(position).0 | REST);
        if first > last {
            return true;
        }
        // A chain has nodes of neighbouring hashes, too.
        self.heads.each_between(first, last, guard, &mut |node| {
            !(first..=last).contains(&node.hash()) || f(node.hash(), node.key(), node.value())
        })
    }

    /// See `Unique::scan`.
    pub(super) fn scan_blocks<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        batch.clear();
        // (1) A generation that is added meanwhile doesn't change the blocks of this batch.
        let blocks = Blocks::of(start, &batch.until, direction, self.heads.block_bits());
        let wanted = match batch.want {
            0 => BATCH,
            wanted => wanted,
        };
        let (mut block, mut nodes) = (blocks.first, Nodes::new());
        loop {
            // (2) This block was prefetched before the last one was read, if there was one.
            let next = blocks.after(block);
            self.heads.prefetch_block(next, blocks.bits);
            nodes_of(
                &self.heads,
                block,
                blocks.bits,
                direction,
                guard,
                &mut nodes,
            );
            // (3), (4) Entries are nodes, which stay where they are while the guard is pinned. So
            // nothing is copied.
            blocks.retain_in_range(block, start, &batch.until, &mut nodes);
            for &(_, node) in &nodes {
                batch.push_adjacent(node.entry(), node.key_len());
            }
            if blocks.is_last(block) {
                batch.done = true;
                return;
            }
            if batch.len() >= wanted {
                batch.resume.extend_from_slice(&blocks.end_of(block));
                return;
            }
            block = next;
        }
    }
}
