//! A hash table of 2³² buckets, managed by a JudyL array: `judyeh` of the study of 2003.
//!
//! ```text
//!   JudyL    000017A2 -> node          a bucket's index is the top of the hash; a bucket without entries takes no memory
//!            0004C100 -> node -> node  two keys in one bucket: a chain, by ascending position
//!            FFE09021 -> node
//! ```
//!
//! Invariants:
//! 1. An index of the array is a bucket with at least one entry; its value is the number of the chain's first node.
//! 2. A chain has the entries whose hash begins with the bucket's bits, by ascending position.
//!
//! So the array's order, and the chains', is the order of positions, and a scan goes on where it was.
//!
//! Steps of a change: (1) find the bucket, go along its chain; (2) let the caller decide; (3) link or unlink a node; the first of a chain is the array's
//! value.
//!
//! Source: S. L. Fritchie, "A study of Erlang ETS table implementations and performance", Erlang workshop 2003: "a hash table of 2³² buckets, managed by
//! a Judy array"; the array is [`larder_judy::JudyL`]. Deviations: a bucket goes by the top bits of the hash, whose number is an option; chains are sorted,
//! where the study's were in order of arrival; nodes have numbers, not addresses.
//!
//! Not for: many writers (one lock); small tables, where a plain hash table takes fewer steps; keys in their order.

use crate::position::{hash_of, spilled};
use crate::sequential::{Act, Actor, Sequential, Visitor};
use crate::slab::{Slab, NIL};
use crate::{Cut, Position};
use larder_index::Stats;
use larder_judy::JudyL;
use smallvec::SmallVec;
use std::cmp::Ordering;

#[derive(Debug)]
struct Node<W> {
    position: Position,
    word: W,
    next: u32,
}

/// Where a chain is gone along: the node before (`NIL`: the array) and the node there (`NIL`: its end).
#[derive(Clone, Copy)]
struct Place {
    bucket: u64,
    before: u32,
    at: u32,
}

/// A hash table, its buckets in a JudyL array, from positions, which begin with a hash, to words.
pub struct JudyHash<W> {
    buckets: JudyL,
    nodes: Slab<Node<W>>,
    /// Bits of hash that are a bucket's index.
    bits: u32,
    /// Bytes of positions that are too long to stand in their nodes.
    spilled: usize,
}

impl<W> JudyHash<W> {
    /// An empty table of 2^`bits` buckets; `bits` is from 1 to 48.
    pub fn new(bits: u32) -> Self {
        JudyHash {
            buckets: JudyL::new(),
            nodes: Slab::new(),
            bits: bits.clamp(1, 48),
            spilled: 0,
        }
    }

    #[inline]
    fn bucket(&self, position: &[u8]) -> u64 {
        hash_of(position) >> (u64::BITS - self.bits)
    }

    #[inline]
    fn head(&self, bucket: u64) -> u32 {
        self.buckets.get(bucket).map_or(NIL, |id| id as u32)
    }

    /// Step 1. Gives the place of the position, and whether it is there.
    fn find(&self, position: &[u8]) -> (Place, bool) {
        let bucket = self.bucket(position);
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
        match (place.before, to) {
            (NIL, NIL) => drop(self.buckets.remove(place.bucket)),
            (NIL, to) => drop(self.buckets.insert(place.bucket, u64::from(to))),
            (before, to) => self.nodes[before].next = to,
        }
    }

    /// Step 3.
    fn insert_at(&mut self, place: Place, position: &[u8], word: W) {
        let position = Position::from_slice(position);
        self.spilled += spilled(&position);
        let node = self.nodes.insert(Node {
            position,
            word,
            next: place.at,
        });
        self.link(place, node);
    }

    /// Step 3.
    fn remove_at(&mut self, place: Place) -> W {
        let next = self.nodes[place.at].next;
        self.link(place, next);
        let node = self.nodes.remove(place.at);
        self.spilled -= spilled(&node.position);
        node.word
    }

    /// Visits what the cut admits of a chain; answers whether to go on.
    fn walk_chain(&self, head: u32, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let mut ids: SmallVec<[u32; 16]> = SmallVec::new();
        let mut at = head;
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

impl<W: Send + Sync> Sequential<W> for JudyHash<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let mut at = self.head(self.bucket(position));
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
        let mut chain = |(_, head): (u64, u64)| self.walk_chain(head as u32, cut, f);
        let bucket = cut.bytes().map(|bytes| self.bucket(bytes));
        if cut.is_forward() {
            self.buckets.iter_from(bucket.unwrap_or(0)).all(&mut chain)
        } else {
            let from = bucket.unwrap_or(u64::MAX);
            self.buckets.iter_down_from(from).all(&mut chain)
        }
    }

    fn pop(&mut self) -> Option<W> {
        let (bucket, head) = self.buckets.last()?;
        Some(self.remove_at(Place {
            bucket,
            before: NIL,
            at: head as u32,
        }))
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn memory(&self) -> usize {
        self.nodes.memory() + self.spilled + self.buckets.memory_used()
    }

    fn stats(&self, stats: &mut Stats) {
        stats.leaves = self.buckets.len() as usize;
        let more = [("judy_bytes", self.buckets.memory_used() as u64)];
        stats.more.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(n: u64) -> Vec<u8> {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        [&hash[..6], &n.to_be_bytes(), &[3; 9][..n as usize % 9]].concat()
    }

    /// The invariants.
    fn check<W>(table: &JudyHash<W>) {
        let mut met = 0;
        for (bucket, head) in table.buckets.iter() {
            let (mut last, mut at) = (None, head as u32);
            assert!(at != NIL);
            while at != NIL {
                let node = &table.nodes[at];
                assert_eq!(table.bucket(&node.position), bucket);
                assert!(last < Some(&node.position));
                (last, at) = (Some(&node.position), node.next);
                met += 1;
            }
        }
        assert_eq!(met, table.nodes.len());
    }

    #[test]
    fn buckets_and_chains_come_and_go() {
        // From one chain of nearly all to no chain of two.
        for bits in [1, 7, 32, 48] {
            let mut table = JudyHash::new(bits);
            for n in 0..700 {
                assert!(table.insert(&position(n), n).is_none());
                assert_eq!(table.insert(&position(n), n), Some(n));
                if n % 50 == 0 {
                    check(&table);
                }
            }
            let mut stats = Stats::default();
            table.stats(&mut stats);
            assert!(stats.leaves <= 1 << bits && (bits < 32 || stats.leaves == 700));
            for n in 0..700 {
                assert_eq!(table.get(&position(n)), Some(&n));
                assert!(table.remove(&position(n)) && !table.remove(&position(n)));
                if n % 50 == 0 {
                    check(&table);
                }
            }
            assert_eq!((table.memory(), table.pop()), (0, None));
        }
    }
}
