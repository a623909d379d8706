//! A lock-free hash table that grows: one list in split order.
//!
//! ```text
//!   buckets   0        1        2        3         2 bits: bucket = the top bits of the
//!                                                            hash, reversed
//!             |        +-----------+     |
//!             |  +-----|-----------+-----|--+
//!             v  |     +-------+   |     +--|----+
//!            (0) --> a --> b --> (2) --> d --> (1) --> k --> (3) --> p --> end
//!            000..              010..          100..         110..
//! ```
//!
//! All entries are in one list, in the order of their positions. A bucket is a link into the list:
//! the slot of its start node, (0) to (3) here, which is before its first entry. Doubling the
//! number of buckets changes one number. The start node of a new bucket is inserted by the first
//! writer that uses the bucket, from the bucket that it was split from. Entries never move.
//!
//! Invariants:
//! * **SO1** The list is sorted (`list`). Start nodes are never removed.
//! * **SO2** Of 2^bits buckets, bucket b begins at the hash whose top bits are those of b,
//!   reversed. Its parent is b without its highest bit, and begins before it.
//! * **SO3** The number of buckets never decreases. The slot of a bucket is empty until its start
//!   node is in the list.
//!
//! Steps of a change:
//! 1. Find the bucket. If it has no start node yet, insert one, those of its parents first.
//! 2. Change the list.
//! 3. If there are more than `load` entries per bucket, double the number of buckets.
//!
//! Source: O. Shalev, N. Shavit, "Split-ordered lists: lock-free extensible hash tables", JACM
//! 53(3), 2006.
//!
//! Deviations:
//! - The order is that of the top bits of the hash, and the numbers of buckets are reversed. The
//!   paper reverses hashes.
//! - If a bucket has no start node, readers begin at its parent.
//! - The writers of one position exclude each other.
//! - Nodes are reclaimed by epochs.
//!
//! When not to use it: for large tables, since an operation has a cache miss for the bucket and for
//! each node; for tables that shrink, since buckets stay.

use crate::list::{self, ListNode};
use crate::list_hash::{Buckets, Start};
use crate::position::HASH;
use crate::raw::slot::Slot;
use crate::word::Word;
use crossbeam_utils::CachePadded;
use larder_index::sync::atomic::AtomicU32;
use larder_index::Guard;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

/// The binary logarithm of the maximum number of buckets.
const MOST_BITS: u32 = 28;

/// Some buckets. Segment `i` has those from 2^i to 2^(i + 1) - 1.
type Segment<W> = OnceLock<Box<[Slot<ListNode<W>>]>>;

/// The buckets: links into one list.
pub struct SplitOrder<W: Word> {
    /// The start node of bucket 0, with which the list begins.
    first: Slot<ListNode<W>>,
    segments: [Segment<W>; MOST_BITS as usize + 1],
    bits: AtomicU32,
    entries: CachePadded<AtomicIsize>,
    load: usize,
    /// The memory of all start nodes except the first, in bytes.
    nodes: AtomicUsize,
}

impl<W: Word> SplitOrder<W> {
    /// One bucket. Their number doubles when there are more than `load` entries per bucket.
    pub fn new(load: usize) -> Self {
        SplitOrder {
            first: Slot::new(Some(ListNode::new(&[], None))),
            segments: std::array::from_fn(|_| OnceLock::new()),
            bits: AtomicU32::new(0),
            entries: CachePadded::default(),
            load: load.max(1),
            nodes: AtomicUsize::new(0),
        }
    }

    fn bits(&self) -> u32 {
        // Ordering: Relaxed. A thread that sees an old number begins at a parent, which is also
        // right. Start nodes are published by their slots.
        self.bits.load(Relaxed)
    }

    fn bucket(&self, hash: u64) -> usize {
        hash.reverse_bits() as usize & ((1 << self.bits()) - 1)
    }

    /// The start node of a bucket, if it has one.
    fn node<'g>(&'g self, bucket: usize, guard: &'g Guard) -> Option<&'g ListNode<W>> {
        if bucket == 0 {
            return self.first.load(guard);
        }
        let level = bucket.ilog2();
        let segment = self.segments[level as usize].get()?;
        segment[bucket - (1 << level)].load(guard)
    }

    /// Step 1: inserts the start node of a bucket whose parent has one, and returns it. May return
    /// the parent's instead.
    fn add<'g>(
        &'g self,
        bucket: usize,
        parent: &'g ListNode<W>,
        guard: &'g Guard,
    ) -> &'g ListNode<W> {
        let level = bucket.ilog2();
        let segment = self.segments[level as usize].get_or_init(|| Slot::empty(1 << level));
        let slot = &segment[bucket - (1 << level)];
        // The reversed number of the bucket is its least hash. The position of the node is only
        // that hash, without a key. So it is before all entries with that hash.
        let hash = (bucket as u64).reverse_bits().to_be_bytes();
        let node = ListNode::new(&hash[..HASH], None);
        // If several threads insert the node, one succeeds. It sets the slot after that (SO3).
        if list::insert(&parent.next, &node, guard).is_none() {
            // Ordering: Relaxed, a statistic.
            self.nodes.fetch_add(node.bytes() as usize, Relaxed);
            slot.store(Some(node), guard);
        }
        // Another thread may have inserted the node, and not set the slot yet. Then begin at the
        // parent.
        slot.load(guard).unwrap_or(parent)
    }
}

/// The bucket from which this one was split.
fn parent(bucket: usize) -> usize {
    bucket & !(1 << bucket.ilog2())
}

impl<W: Word> Buckets<W> for SplitOrder<W> {
    fn look<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W> {
        let mut bucket = self.bucket(hash);
        loop {
            match self.node(bucket, guard) {
                Some(node) => return Start(&node.next),
                None if bucket == 0 => return Start(&self.first),
                // A parent begins before its child (SO2). The search from there is longer, but has
                // the same result.
                None => bucket = parent(bucket),
            }
        }
    }

    fn prepare<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W> {
        // Find the nearest ancestor that has a start node.
        let mut missing = smallvec::SmallVec::<[usize; MOST_BITS as usize]>::new();
        let mut bucket = self.bucket(hash);
        let mut node = loop {
            match self.node(bucket, guard) {
                Some(node) => break node,
                None if bucket == 0 => return Start(&self.first),
                None => missing.push(bucket),
            }
            bucket = parent(bucket);
        };
        // Insert the missing start nodes, each from that of its parent, so that searches are short.
        while let Some(bucket) = missing.pop() {
            node = self.add(bucket, node, guard);
        }
        Start(&node.next)
    }

    fn span(&self, hash: u64) -> (u64, u64) {
        let low = u64::MAX >> self.bits();
        (hash & !low, hash | low)
    }

    fn came(&self, by: isize) {
        // Ordering: Relaxed, a count.
        let entries = self.entries.fetch_add(by, Relaxed) + by;
        let bits = self.bits();
        if by > 0 && entries > (self.load << bits) as isize && bits < MOST_BITS {
            // Ordering: Relaxed; who comes second finds it done.
            let _ = self.bits.compare_exchange(bits, bits + 1, Relaxed, Relaxed);
        }
    }

    fn memory(&self) -> usize {
        let segments = self.segments.iter().filter_map(OnceLock::get);
        let slots: usize = segments.map(|slots| size_of_val(&**slots)).sum();
        // Ordering: Relaxed, a statistic.
        slots + self.nodes.load(Relaxed)
    }

    fn count(&self) -> usize {
        1 << self.bits()
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::{Act, ListHash, Object, Scheme};
    use larder_index::pin;

    fn position(n: u64) -> [u8; 14] {
        let mut position = [0; 14];
        position[..6].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..6]);
        position[6..].copy_from_slice(&n.to_be_bytes());
        position
    }

    #[test]
    fn buckets_double_and_no_entry_moves() {
        let table = ListHash::new(SplitOrder::new(2));
        for n in 0..1000u64 {
            table.change(&pin(), &position(n), &mut |_| {
                Act::Put(Object::new(&n.to_be_bytes()))
            });
            let buckets = table.stats(&pin()).leaves;
            assert!(buckets.is_power_of_two() && (n as usize) < 2 * buckets);
        }
        assert_eq!(table.stats(&pin()).leaves, 512);
        for n in 0..1000u64 {
            table.read(&pin(), &position(n), &mut |word| {
                assert_eq!(word.unwrap().bytes(), n.to_be_bytes());
            });
        }
    }

    /// SO2: the node of each bucket stands where the bucket begins, and is found there.
    #[test]
    fn buckets_begin_where_they_should() {
        let (order, guard) = (SplitOrder::<Object>::new(1), pin());
        for _ in 0..64 {
            order.came(1);
        }
        assert_eq!(order.count(), 64);
        for i in (0..64u64).rev() {
            let hash = i << 58;
            order.prepare(hash, &guard);
            let node = order.node(order.bucket(hash), &guard).unwrap();
            assert_eq!(
                node.position[..],
                hash.to_be_bytes()[..if i == 0 { 0 } else { HASH }]
            );
            assert_eq!(order.span(hash | 77), (hash, hash | ((1 << 58) - 1)));
        }
        let first = order.first.load(&guard);
        let nodes = std::iter::successors(first, |node| node.next.load(&guard));
        let nodes: Vec<_> = nodes.map(|node| node.position.clone()).collect();
        assert!(nodes.len() == 64 && nodes.windows(2).all(|w| w[0] < w[1]));
    }
}
