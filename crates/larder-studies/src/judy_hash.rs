//! A hash table whose buckets are in a JudyL array: `judyeh` of the study of 2003.
//!
//! ```text
//!   JudyL    000017A2 -> node          the index of a bucket is the top bits of the hash
//!            0004C100 -> node -> node  two keys in one bucket: a chain, by ascending position
//!            FFE09021 -> node
//! ```
//!
//! Invariants:
//! * **JH1** The array has the buckets with at least one entry. The value of a bucket is the number
//!   of the first node of its chain. A bucket without entries takes no memory.
//! * **JH2** A chain (`chains`) has the entries whose hash begins with the bits of the bucket, by
//!   ascending position.
//!
//! So the array, and the chains in it, are in the order of positions, and a scan can resume at a
//! position.
//!
//! Steps of a change:
//! 1. Find the bucket, and the place in its chain.
//! 2. Let the caller decide.
//! 3. Link or unlink a node. If the first node has changed, store its number in the array.
//!
//! Source: S. L. Fritchie, "A study of Erlang ETS table implementations and performance", Erlang
//! workshop 2003: "a hash table of 2³² buckets, managed by a Judy array"; the array is
//! [`larder_judy::JudyL`]. Deviations: a bucket is chosen by the top bits of the hash, and their
//! number is an option; chains are sorted, and not in order of arrival; nodes have numbers, not
//! addresses.
//!
//! When not to use it: for many writers, since there is one lock; for small tables, in which a
//! plain hash table takes fewer steps; for traversals in key order.

use crate::chains::{ChainCursor, Chains, NewHead};
use crate::position::hash_of;
use crate::sequential::{Act, Actor, Sequential, Visitor};
use crate::slab::NIL;
use crate::Cut;
use larder_index::Stats;
use larder_judy::JudyL;

/// A hash table whose buckets are in a JudyL array. It maps positions, which begin with a hash, to
/// words.
pub struct JudyHash<W> {
    buckets: JudyL,
    chains: Chains<W>,
    /// The number of bits of the hash that are the index of a bucket.
    bits: u32,
}

impl<W> JudyHash<W> {
    /// An empty table with 2^`bits` buckets. `bits` is limited to 1 to 48.
    pub fn new(bits: u32) -> Self {
        JudyHash {
            buckets: JudyL::new(),
            chains: Chains::new(),
            bits: bits.clamp(1, 48),
        }
    }

    #[inline]
    fn bucket(&self, position: &[u8]) -> u64 {
        // The top bits of the hash, so that buckets are in the order of positions.
        hash_of(position) >> (u64::BITS - self.bits)
    }

    #[inline]
    fn head(&self, bucket: u64) -> u32 {
        self.buckets.get(bucket).map_or(NIL, |id| id as u32)
    }

    /// Step 3: stores the first node of a chain in the array. If the chain is empty, removes the
    /// bucket (JH1).
    #[inline]
    fn set_head(&mut self, bucket: u64, head: NewHead) {
        match head {
            None => {}
            Some(NIL) => drop(self.buckets.remove(bucket)),
            Some(node) => drop(self.buckets.insert(bucket, u64::from(node))),
        }
    }

    fn remove_at(&mut self, bucket: u64, place: ChainCursor) -> W {
        let (node, head) = self.chains.unlink(place);
        self.set_head(bucket, head);
        node.word
    }
}

impl<W: Send + Sync> Sequential<W> for JudyHash<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let head = self.head(self.bucket(position));
        self.chains.get(head, position).map(|node| &node.word)
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        // (1)
        let bucket = self.bucket(position);
        let (place, found) = self.chains.find(self.head(bucket), position);
        if !found {
            // (2)
            if let Act::Put(word) = f(None) {
                let head = self.chains.insert(place, position, word, ());
                self.set_head(bucket, head);
            }
            return;
        }
        // The entry is there. The caller may replace its word, or remove it.
        match f(Some(&mut self.chains[place.at].word)) {
            Act::Keep => {}
            Act::Put(word) => self.chains[place.at].word = word,
            Act::Remove => drop(self.remove_at(bucket, place)),
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // Chains come in the order of their buckets, and each chain has the order of its positions.
        let mut chain = |(_, head): (u64, u64)| self.chains.walk(head as u32, cut, |_| true, f);
        let bucket = cut.bytes().map(|bytes| self.bucket(bytes));
        if cut.is_forward() {
            self.buckets.iter_from(bucket.unwrap_or(0)).all(&mut chain)
        } else {
            let from = bucket.unwrap_or(u64::MAX);
            self.buckets.iter_down_from(from).all(&mut chain)
        }
    }

    fn pop(&mut self) -> Option<W> {
        // The first node of the last bucket: its chain needn't be searched.
        let (bucket, head) = self.buckets.last()?;
        let (before, at) = (NIL, head as u32);
        Some(self.remove_at(bucket, ChainCursor { before, at }))
    }

    fn len(&self) -> usize {
        self.chains.len()
    }

    fn memory(&self) -> usize {
        self.chains.memory() + self.buckets.memory_used()
    }

    fn stats(&self, stats: &mut Stats) {
        stats.leaves = self.buckets.len() as usize;
        let more = [("judy_bytes", self.buckets.memory_used() as u64)];
        stats.more.extend(more);
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    fn position(n: u64) -> Vec<u8> {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        [&hash[..6], &n.to_be_bytes(), &[3; 9][..n as usize % 9]].concat()
    }

    /// The invariants.
    fn check<W>(table: &JudyHash<W>) {
        let mut visited = 0;
        for (bucket, head) in table.buckets.iter() {
            assert!(head as u32 != NIL);
            table.chains.check(head as u32, |node| {
                assert_eq!(table.bucket(&node.position), bucket);
                visited += 1;
            });
        }
        assert_eq!(visited, table.chains.len());
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
