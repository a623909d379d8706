//! Linear hashing: `set`, `bag` and `duplicate_bag` in every release of OTP.
//!
//! ```text
//!   segments   [ 0 1 2 ... 63 ] [ 64 ... 127 ] [ 128 ... ]      a bucket is the number of its first node
//!                  |
//!                  v
//!               node -> node -> node                             by ascending position
//! ```
//!
//! Invariants:
//! 1. A chain has the entries whose hash its bucket has (see `address.rs`), by ascending position.
//! 2. There are at most `chain` entries a bucket on the average, and at least half as many where there is more than one bucket.
//!
//! Steps of a change: (1) find the bucket, go along its chain; (2) let the caller decide; (3) link or unlink a node; (4) if invariant 2 asks for it,
//! divide the next bucket in turn, or join the last one to the one it came from.
//!
//! So the table grows one bucket at a time (and shrinks by one, by two where chains are of one), and no insert pays for a rehash of all.
//!
//! Source: P.-Å. Larson, "Dynamic hash tables", CACM 31(4), 1988; OTP's documented behaviour: chains of 6 in 2003, 1 today. Deviations: buckets go by
//! the top bits of the hash, and chains are sorted, so that a scan sees the entries in one order whatever happens to the table: `ets` needs to fix a
//! table for that, which freezes its size and keeps what was deleted. Here fixation costs nothing and remembers nothing.
//!
//! Not for: large tables (a miss for the bucket and one for each node of the chain, and 48 bytes beside each object); hashes that are all alike, whose chain
//! is gone through from end to end.

use crate::address::Address;
use crate::position::{hash_of, spilled};
use crate::sequential::{Act, Actor, Sequential, Visitor};
use crate::slab::{Slab, NIL};
use crate::{Cut, Position};
use std::cmp::Ordering;

const SEGMENT: usize = 64;

#[derive(Debug)]
struct Node<W> {
    position: Position,
    word: W,
    next: u32,
}

/// A linear hash table from positions, which begin with a hash, to words.
#[derive(Debug)]
pub struct LinearHash<W> {
    nodes: Slab<Node<W>>,
    segments: Vec<Box<[u32]>>,
    address: Address,
    chain: usize,
    /// Bits of hash that are the same for all entries.
    skip: u32,
    /// Bytes of positions that are too long to stand in their nodes.
    spilled: usize,
}

/// Where a chain is gone along: the node before (`NIL`: the bucket itself) and the node there (`NIL` at its end).
#[derive(Clone, Copy)]
struct Place {
    bucket: usize,
    before: u32,
    at: u32,
}

impl<W> LinearHash<W> {
    /// An empty table that grows when there are more than `chain` entries a bucket. All hashes begin with the same `skip` bits.
    pub fn new(chain: usize, skip: u32) -> Self {
        LinearHash {
            nodes: Slab::new(),
            segments: Vec::new(),
            address: Address::default(),
            chain: chain.max(1),
            skip,
            spilled: 0,
        }
    }

    /// The part of the hash that tells entries apart.
    #[inline]
    fn hash(&self, position: &[u8]) -> u64 {
        hash_of(position) << self.skip
    }

    fn head(&self, bucket: usize) -> u32 {
        match self.segments.get(bucket / SEGMENT) {
            Some(segment) => segment[bucket % SEGMENT],
            None => NIL,
        }
    }

    fn set_head(&mut self, bucket: usize, node: u32) {
        self.segments[bucket / SEGMENT][bucket % SEGMENT] = node;
    }

    /// Step 1. Gives the place of the position, and whether it is there.
    fn find(&self, position: &[u8]) -> (Place, bool) {
        let bucket = self.address.bucket(self.hash(position));
        let (mut before, mut at) = (NIL, self.head(bucket));
        let mut found = false;
        while at != NIL {
            let node = &self.nodes[at];
            match node.position[..].cmp(position) {
                Ordering::Less => {}
                order => {
                    found = order == Ordering::Equal;
                    break;
                }
            }
            (before, at) = (at, node.next);
        }
        (Place { bucket, before, at }, found)
    }

    /// Makes `to` what follows the place's `before`.
    fn link(&mut self, place: Place, to: u32) {
        match place.before {
            NIL => self.set_head(place.bucket, to),
            before => self.nodes[before].next = to,
        }
    }

    fn insert_at(&mut self, place: Place, position: &[u8], word: W) {
        // (3)
        if self.segments.is_empty() {
            self.add_segment();
        }
        let position = Position::from_slice(position);
        self.spilled += spilled(&position);
        let node = self.nodes.insert(Node {
            position,
            word,
            next: place.at,
        });
        self.link(place, node);
        // (4)
        if self.nodes.len() > self.address.buckets() * self.chain {
            self.grow();
        }
    }

    fn remove_at(&mut self, place: Place) -> W {
        // (3)
        let next = self.nodes[place.at].next;
        self.link(place, next);
        let node = self.nodes.remove(place.at);
        self.spilled -= spilled(&node.position);
        // (4)
        // With chains of one, a node less means two buckets less.
        for _ in 0..2 {
            if self.nodes.len() * 2 < self.address.buckets() * self.chain {
                self.shrink();
            }
        }
        node.word
    }

    fn add_segment(&mut self) {
        self.segments.push(vec![NIL; SEGMENT].into());
    }

    /// Divides the bucket whose turn it is. Both halves keep the order of the chain.
    fn grow(&mut self) {
        let new = self.address.buckets();
        let Some((bucket, bit)) = self.address.grow() else {
            return;
        };
        if new == self.segments.len() * SEGMENT {
            self.add_segment();
        }
        // The new bit is the next of the hash: the chain's end goes, its beginning stays.
        let (mut before, mut at) = (NIL, self.head(bucket));
        while at != NIL && self.hash(&self.nodes[at].position) & bit == 0 {
            (before, at) = (at, self.nodes[at].next);
        }
        self.set_head(new, at);
        self.link(Place { bucket, before, at }, NIL);
    }

    /// Joins the last bucket to the one it came from, whose hashes are all less.
    fn shrink(&mut self) {
        let last = self.address.buckets() - 1;
        let Some(bucket) = self.address.shrink() else {
            return;
        };
        let tail = self.head(last);
        self.set_head(last, NIL);
        let (mut before, mut at) = (NIL, self.head(bucket));
        while at != NIL {
            (before, at) = (at, self.nodes[at].next);
        }
        self.link(Place { bucket, before, at }, tail);
        if last % SEGMENT == 0 && last > 0 {
            self.segments.pop();
        }
    }

    /// Takes out all entries.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Position, W)> {
        let mut table = std::mem::replace(self, LinearHash::new(self.chain, self.skip));
        let mut bucket = table.address.buckets();
        let mut at = NIL;
        std::iter::from_fn(move || {
            while at == NIL {
                bucket = bucket.checked_sub(1)?;
                at = table.head(bucket);
            }
            let node = table.nodes.remove(at);
            at = node.next;
            Some((node.position, node.word))
        })
    }

    /// Visits what the cut admits of a chain; answers whether to go on.
    fn walk_chain(&self, bucket: usize, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let mut ids: smallvec::SmallVec<[u32; 16]> = smallvec::SmallVec::new();
        let mut at = self.head(bucket);
        while at != NIL {
            let node = &self.nodes[at];
            if cut.admits(&node.position) {
                ids.push(at);
            }
            at = node.next;
        }
        if !cut.is_forward() {
            ids.reverse();
        }
        ids.into_iter().all(|id| {
            let node = &self.nodes[id];
            f(&node.position, &node.word)
        })
    }
}

impl<W: Send + Sync> Sequential<W> for LinearHash<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let mut at = self.head(self.address.bucket(self.hash(position)));
        while at != NIL {
            let node = &self.nodes[at];
            if node.position[..] == *position {
                return Some(&node.word);
            }
            at = node.next;
        }
        None
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        // (1)
        let (place, found) = self.find(position);
        if !found {
            // (2)
            if let Act::Put(word) = f(None) {
                self.insert_at(place, position, word);
            }
            return;
        }
        match f(Some(&mut self.nodes[place.at].word)) {
            Act::Keep => {}
            Act::Put(word) => self.nodes[place.at].word = word,
            Act::Remove => drop(self.remove_at(place)),
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let forward = cut.is_forward();
        let edge = if forward { 0 } else { u64::MAX };
        let mut hash = cut.bytes().map_or(edge, |bytes| self.hash(bytes));
        loop {
            if !self.walk_chain(self.address.bucket(hash), cut, f) {
                return false;
            }
            let next = if forward {
                self.address.past(hash)
            } else {
                self.address.before(hash)
            };
            match next {
                Some(next) => hash = next,
                None => return true,
            }
        }
    }

    fn pop(&mut self) -> Option<W> {
        // From the end, taking away buckets that are empty: none is looked at twice.
        loop {
            let bucket = self.address.buckets() - 1;
            let (before, at) = (NIL, self.head(bucket));
            if at != NIL {
                return Some(self.remove_at(Place { bucket, before, at }));
            }
            if bucket == 0 {
                return None;
            }
            self.shrink();
        }
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn memory(&self) -> usize {
        self.nodes.memory()
            + self.spilled
            + self.segments.len() * SEGMENT * size_of::<u32>()
            + self.segments.capacity() * size_of::<Box<[u32]>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(n: u64) -> [u8; 14] {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let mut position = [0; 14];
        position[..6].copy_from_slice(&hash[..6]);
        position[6..].copy_from_slice(&n.to_be_bytes());
        position
    }

    /// Invariants 1 and 2.
    fn check<W>(table: &LinearHash<W>) {
        let buckets = table.address.buckets();
        assert!(table.nodes.len() <= buckets * table.chain);
        assert!(buckets == 1 || table.nodes.len() * 2 >= buckets * table.chain);
        let mut met = 0;
        for bucket in 0..buckets {
            let (mut last, mut at) = (None, table.head(bucket));
            while at != NIL {
                let node = &table.nodes[at];
                assert_eq!(table.address.bucket(table.hash(&node.position)), bucket);
                assert!(last < Some(&node.position));
                (last, at) = (Some(&node.position), node.next);
                met += 1;
            }
        }
        assert_eq!(met, table.nodes.len());
    }

    #[test]
    fn grows_and_shrinks_one_bucket_at_a_time() {
        for chain in [1, 6] {
            let mut table = LinearHash::new(chain, 0);
            for n in 0..2000 {
                let before = table.address.buckets();
                assert!(table.insert(&position(n), n).is_none());
                assert!(table.address.buckets() - before <= 1);
                if n % 50 == 0 {
                    check(&table);
                }
            }
            assert_eq!(
                table.address.buckets(),
                2000 / chain + usize::from(chain > 1)
            );
            for n in 0..2000 {
                assert_eq!(table.get(&position(n)), Some(&n));
                let before = table.address.buckets();
                assert!(table.remove(&position(n)));
                assert!(before - table.address.buckets() <= 2);
                if n % 50 == 0 {
                    check(&table);
                }
            }
            assert!(table.address.buckets() <= 2);
        }
    }

    /// Emptying the table is linear: no bucket is looked at again and again.
    #[test]
    fn pops_all() {
        let mut table = LinearHash::new(1, 0);
        for n in 0..50_000 {
            table.insert(&position(n), n);
        }
        let mut popped: Vec<_> = std::iter::from_fn(|| table.pop()).collect();
        popped.sort_unstable();
        assert!(popped.into_iter().eq(0..50_000));
        assert_eq!((table.nodes.memory(), table.spilled), (0, 0));
        assert_eq!(table.segments.len(), 1);
    }
}
