//! Linear hashing: `set`, `bag` and `duplicate_bag` in every release of OTP.
//!
//! ```text
//!   segments   [ 0 1 2 ... 63 ] [ 64 ... 127 ] [ 128 ... ]      a bucket: the number of its
//!                  |                                             first node
//!                  v
//!               node -> node -> node                             by ascending position
//! ```
//!
//! Invariants:
//! * **LH1** The chain of a bucket (`chains`) has the entries with the hashes of the bucket
//!   (`address`), by ascending position.
//! * **LH2** There are at most `chain` entries per bucket on average. If there are several buckets,
//!   there are at least half as many. This doesn't hold while the table is fixed, or until some
//!   changes later.
//! * **LH3** A *kept* node is not an entry: it was deleted while the table was fixed. The buckets
//!   of kept nodes are in `waiting`, and so are those of *listed* nodes, which stay as long as the
//!   table is fixed.
//!
//! Steps of a change:
//! 1. Find the bucket, and the place in its chain.
//! 2. Let the caller decide.
//! 3. Link or unlink a node.
//! 4. If LH2 requires it, split the next bucket in turn, or join the last one with the one that it
//!    was split from.
//!
//! So the table grows by one bucket at a time, and no insert pays for a rehash of the whole table.
//!
//! *Fixation.* As in `ets`, a fixed table neither grows nor shrinks. A deleted node is kept in its
//! chain, invisible. An insert of the same key uses it again. When the table is released, kept
//! nodes are removed: those of some buckets at once, and those of 16 more buckets by each later
//! change. The number of buckets catches up after that.
//!
//! Source: P.-Å. Larson, "Dynamic hash tables", CACM 31(4), 1988; OTP's documented behaviour:
//! chains of 6 in 2003, and of 1 today.
//!
//! Deviations: buckets are chosen by the top bits of the hash, and chains are sorted. So a scan
//! visits entries in one order, however the table grows or shrinks, and traversals don't need
//! fixation.
//!
//! When not to use it: for large tables, since an operation has a cache miss for the bucket and for
//! each node of the chain, and each object has 48 bytes of overhead; if all hashes are equal, since
//! all entries are then in one chain.

use crate::address::Address;
use crate::chains::{ChainCursor, ChainNode, Chains, NewHead};
use crate::position::hash_of;
use crate::sequential::{Act, Actor, Sequential, Visitor};
use crate::slab::NIL;
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::Stats;

const SEGMENT: usize = 64;

/// The number of buckets whose kept nodes are removed when the table is released.
const AT_ONCE: usize = 4096;
/// The number of buckets whose kept nodes are removed by each later change.
const LATER: usize = 16;

/// The flags of a node (LH3).
#[derive(Clone, Copy, Debug, Default)]
struct NodeFlags {
    kept: bool,
    listed: bool,
}

/// A linear hash table. It maps positions, which begin with a hash, to words.
#[derive(Debug)]
pub struct LinearHash<W> {
    chains: Chains<W, NodeFlags>,
    segments: Vec<Box<[u32]>>,
    address: Address,
    chain: usize,
    /// The number of leading bits of the hash that are the same for all entries.
    skip: u32,
    frozen: bool,
    /// The number of kept nodes, and the bytes that their words own.
    kept: (usize, usize),
    /// The buckets with kept nodes. Some may have none any more. None occurs twice, unless the
    /// table was fixed again before it was tidied.
    waiting: Vec<usize>,
}

impl<W: Word> LinearHash<W> {
    /// An empty table that grows when there are more than `chain` entries per bucket. All hashes
    /// begin with the same `skip` bits.
    pub fn new(chain: usize, skip: u32) -> Self {
        LinearHash {
            chains: Chains::new(),
            segments: Vec::new(),
            address: Address::default(),
            chain: chain.max(1),
            skip,
            frozen: false,
            kept: (0, 0),
            waiting: Vec::new(),
        }
    }

    /// The part of the hash that distinguishes entries.
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

    fn set_head(&mut self, bucket: usize, head: NewHead) {
        if let Some(node) = head {
            self.segments[bucket / SEGMENT][bucket % SEGMENT] = node;
        }
    }

    /// Steps 3 and 4 of an insert.
    fn insert_at(&mut self, bucket: usize, place: ChainCursor, position: &[u8], word: W) {
        if self.segments.is_empty() {
            self.add_segment();
        }
        let head = self
            .chains
            .insert(place, position, word, NodeFlags::default());
        self.set_head(bucket, head);
        self.settle(true);
    }

    /// Step 4: adds or removes up to two buckets. Two are added if the table was fixed, and has to
    /// catch up.
    fn settle(&mut self, grew: bool) {
        if self.frozen {
            return;
        }
        // Remove kept nodes first, a few with each change, so that no change pays for all.
        self.tidy(LATER);
        if !self.waiting.is_empty() {
            // `waiting` has numbers of buckets, which would change.
            return;
        }
        for _ in 0..2 {
            let (nodes, capacity) = (self.chains.len(), self.address.buckets() * self.chain);
            if grew && nodes > capacity {
                self.grow();
            } else if !grew && nodes * 2 < capacity {
                // If chains have one entry, one entry less means two buckets less.
                self.shrink();
            }
        }
    }

    /// Steps 3 and 4 of a removal.
    fn remove_at(&mut self, bucket: usize, place: ChainCursor) -> W {
        let word = self.unlink(bucket, place).word;
        self.settle(false);
        word
    }

    /// Unlinks a node, and removes it.
    fn unlink(&mut self, bucket: usize, place: ChainCursor) -> ChainNode<W, NodeFlags> {
        let (node, head) = self.chains.unlink(place);
        self.set_head(bucket, head);
        node
    }

    fn add_segment(&mut self) {
        self.segments.push(vec![NIL; SEGMENT].into());
    }

    /// Splits the bucket whose turn it is.
    fn grow(&mut self) {
        let new = self.address.buckets();
        // The new bucket becomes the last one. The next bucket in turn is split, however long its
        // chain is.
        let Some((bucket, bit)) = self.address.grow() else {
            return;
        };
        if new == self.segments.len() * SEGMENT {
            self.add_segment();
        }
        // The hashes of the bucket agree in all bits before this one, and the chain is sorted. So
        // the nodes that stay are at its beginning, and the others at its end.
        let stays = |node: &ChainNode<W, NodeFlags>| self.hash(&node.position) & bit == 0;
        // Cut the chain in two. No node is moved.
        let place = self.chains.past(self.head(bucket), stays);
        self.set_head(new, Some(place.at));
        let head = self.chains.link(place, NIL);
        self.set_head(bucket, head);
    }

    /// Joins the last bucket with the one that it was split from.
    fn shrink(&mut self) {
        let last = self.address.buckets() - 1;
        let Some(bucket) = self.address.shrink() else {
            return;
        };
        // All hashes of the last bucket are greater than those of the other one. So its chain is
        // appended, and the result is sorted (LH1).
        let tail = self.head(last);
        self.set_head(last, Some(NIL));
        let end = self.chains.past(self.head(bucket), |_| true);
        let head = self.chains.link(end, tail);
        self.set_head(bucket, head);
        if last.is_multiple_of(SEGMENT) && last > 0 {
            self.segments.pop();
        }
    }

    /// Removes all entries.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Position, W)> {
        let mut table = std::mem::replace(self, LinearHash::new(self.chain, self.skip));
        let mut bucket = table.address.buckets();
        let mut at = NIL;
        std::iter::from_fn(move || {
            // From the last bucket to the first. Nodes are removed one by one. If the iterator is
            // dropped early, `table` drops the rest.
            while at == NIL {
                bucket = bucket.checked_sub(1)?;
                at = table.head(bucket);
            }
            let node = table.chains.take(at);
            at = node.next;
            Some(node)
        })
        .filter(|node| !node.flags.kept)
        .map(|node| (node.position, node.word))
    }
}

impl<W: Word> LinearHash<W> {
    /// Called when a table that has `parts` parts like this one is fixed, and when it is no longer
    /// fixed.
    pub(crate) fn freeze_part(&mut self, on: bool, parts: usize) {
        self.frozen = on;
        if !on {
            self.tidy(AT_ONCE.div_ceil(parts));
        }
    }

    /// Removes the kept nodes of this number of buckets.
    fn tidy(&mut self, buckets: usize) {
        for _ in 0..buckets {
            // All is tidied. Release the memory of the list, too.
            let Some(bucket) = self.waiting.pop() else {
                self.waiting = Vec::new();
                return;
            };
            let (mut before, mut at) = (NIL, self.head(bucket));
            while at != NIL {
                // Read this before the node may be removed.
                let next = self.chains[at].next;
                if self.chains[at].flags.kept {
                    // The predecessor stays the same, since the node between is gone.
                    self.unkeep(bucket, ChainCursor { before, at });
                } else {
                    self.chains[at].flags.listed = false;
                    before = at;
                }
                at = next;
            }
        }
    }

    /// Adds the statistics of this part to those of other parts.
    pub(crate) fn add_to(&self, stats: &mut Stats) {
        const NAMES: [&str; 3] = ["buckets", "kept", "frozen"];
        if stats.more.is_empty() {
            stats.more.extend(NAMES.map(|name| (name, 0)));
        }
        stats.more[0].1 += self.address.buckets() as u64;
        stats.more[1].1 += self.kept.0 as u64;
        // Parts are fixed together.
        stats.more[2].1 = u64::from(self.frozen);
    }

    /// Removes a kept node.
    fn unkeep(&mut self, bucket: usize, place: ChainCursor) {
        let node = self.unlink(bucket, place);
        self.kept.0 -= 1;
        self.kept.1 -= node.word.heap_bytes();
    }

    /// Step 3 of a removal in a fixed table: makes the node a kept one.
    fn keep_at(&mut self, bucket: usize, place: ChainCursor) {
        let node = &mut self.chains[place.at];
        // The node stays in the chain, with its word. Lookups and scans don't see it.
        node.flags.kept = true;
        self.kept.0 += 1;
        self.kept.1 += node.word.heap_bytes();
        // If keys of the bucket are inserted and deleted repeatedly, it is added once.
        let unlisted = |node: &ChainNode<W, NodeFlags>| !node.flags.listed;
        if self.chains.past(self.head(bucket), unlisted).at == NIL {
            self.chains[place.at].flags.listed = true;
            self.waiting.push(bucket);
        }
    }

    /// Step 3 of an insert at a position that has a kept node: makes it an entry with this word.
    fn put_kept(&mut self, place: ChainCursor, word: W) {
        let node = &mut self.chains[place.at];
        node.flags.kept = false;
        let old = std::mem::replace(&mut node.word, word);
        self.kept.0 -= 1;
        self.kept.1 -= old.heap_bytes();
    }
}

/// What a step of `pop` has removed: an entry, or a kept node or an empty bucket.
enum Popped<W> {
    Entry(W),
    Other,
    End,
}

impl<W: Word> LinearHash<W> {
    /// Removes from the end, taking away buckets that are empty: none is looked at twice.
    fn pop_step(&mut self) -> Popped<W> {
        let bucket = self.address.buckets() - 1;
        let (before, at) = (NIL, self.head(bucket));
        if at != NIL {
            // The first of its chain: nothing is before it.
            let place = ChainCursor { before, at };
            if self.chains[at].flags.kept {
                // A kept node is not an entry. Remove it without reporting it.
                self.unkeep(bucket, place);
                return Popped::Other;
            }
            return Popped::Entry(self.unlink(bucket, place).word);
        }
        if bucket == 0 {
            return Popped::End;
        }
        // The bucket is empty. `shrink` joins it with another one, so it isn't looked at again.
        self.shrink();
        Popped::Other
    }
}

impl<W: Word> Sequential<W> for LinearHash<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let head = self.head(self.address.bucket(self.hash(position)));
        let node = self.chains.get(head, position)?;
        (!node.flags.kept).then_some(&node.word)
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        // (1) Find the place.
        let bucket = self.address.bucket(self.hash(position));
        let (place, found) = self.chains.find(self.head(bucket), position);
        if !found {
            // (2) There is no entry.
            if let Act::Put(word) = f(None) {
                self.insert_at(bucket, place, position, word);
            }
            return;
        }
        // (2) A kept node is not an entry (LH3), so `f` gets none.
        if self.chains[place.at].flags.kept {
            if let Act::Put(word) = f(None) {
                self.put_kept(place, word);
            }
            return;
        }
        // (2), (3) There is an entry.
        match f(Some(&mut self.chains[place.at].word)) {
            Act::Keep => {}
            Act::Put(word) => self.chains[place.at].word = word,
            Act::Remove if self.frozen => self.keep_at(bucket, place),
            Act::Remove => drop(self.remove_at(bucket, place)),
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let from = cut.bytes().map(|bytes| self.hash(bytes));
        self.address.walk(cut.is_forward(), from, |bucket| {
            let head = self.head(bucket);
            self.chains.walk(head, cut, |node| !node.flags.kept, f)
        })
    }

    fn pop(&mut self) -> Option<W> {
        loop {
            match self.pop_step() {
                Popped::Entry(word) => return Some(word),
                Popped::Other => {}
                Popped::End => return None,
            }
        }
    }

    fn pop_some(&mut self, limit: &mut usize, f: &mut dyn FnMut(W)) -> bool {
        // There may be a million kept nodes, or empty buckets, before the next entry.
        while *limit > 0 {
            match self.pop_step() {
                Popped::Entry(word) => f(word),
                Popped::Other => {}
                Popped::End => return true,
            }
            *limit -= 1;
        }
        self.chains.len() == 0
    }

    fn len(&self) -> usize {
        self.chains.len() - self.kept.0
    }

    fn freeze(&mut self, on: bool) {
        self.freeze_part(on, 1);
    }

    fn stats(&self, stats: &mut Stats) {
        self.add_to(stats);
    }

    fn memory(&self) -> usize {
        self.chains.memory()
            + self.kept.1
            + self.waiting.capacity() * size_of::<usize>()
            + self.segments.len() * SEGMENT * size_of::<u32>()
            + self.segments.capacity() * size_of::<Box<[u32]>>()
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    fn position(n: u64) -> [u8; 14] {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let mut position = [0; 14];
        position[..6].copy_from_slice(&hash[..6]);
        position[6..].copy_from_slice(&n.to_be_bytes());
        position
    }

    /// LH1 and LH2.
    fn check<W: Word>(table: &LinearHash<W>) {
        let buckets = table.address.buckets();
        assert!(table.chains.len() <= buckets * table.chain);
        assert!(buckets == 1 || table.chains.len() * 2 >= buckets * table.chain);
        let mut visited = 0;
        for bucket in 0..buckets {
            table.chains.check(table.head(bucket), |node| {
                assert_eq!(table.address.bucket(table.hash(&node.position)), bucket);
                visited += 1;
            });
        }
        assert_eq!(visited, table.chains.len());
    }

    #[test]
    fn a_fixed_table_notes_a_bucket_few_times() {
        let mut table = LinearHash::<u64>::new(1, 0);
        for n in 0..100 {
            table.insert(&position(n), n);
        }
        let bucket = |table: &LinearHash<u64>, n| table.address.bucket(table.hash(&position(n)));
        let other = (1..100).find(|n| bucket(&table, *n) != bucket(&table, 0));
        let keys = [0, other.expect("several buckets")];
        table.freeze(true);
        for _ in 0..5_000 {
            for n in keys {
                assert!(table.remove(&position(n)));
            }
            for n in keys {
                table.insert(&position(n), n);
            }
        }
        assert_eq!(table.waiting.len(), 2);
        table.freeze(false);
        for n in 1000..3000 {
            table.insert(&position(n), n);
        }
        check(&table);
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

    /// A fixed table stays as wide as it is and keeps what is deleted; released, it becomes what it
    /// would have been.
    #[test]
    fn fixed_tables_keep_what_is_deleted() {
        let mut table = LinearHash::new(1, 0);
        (0..10_000).for_each(|n| assert!(table.insert(&position(n), n).is_none()));
        let buckets = |table: &LinearHash<u64>| table.address.buckets();
        let before = (buckets(&table), table.chains.memory());
        table.freeze(true);
        for n in 0..9_000 {
            assert!(table.remove(&position(n)) && !table.remove(&position(n)));
        }
        assert_eq!((table.len(), table.kept.0), (1_000, 9_000));
        assert_eq!((buckets(&table), table.chains.memory()), before);
        // Some come back, and others come for the first time.
        (0..50).for_each(|n| assert_eq!(table.insert(&position(n), n + 1), None));
        (20_000..21_000).for_each(|n| assert!(table.insert(&position(n), n).is_none()));
        assert_eq!((table.len(), table.kept.0), (2_050, 8_950));
        assert_eq!(buckets(&table), before.0);
        let mut visited = Vec::new();
        let all = Cut::new(larder_index::Start::Edge, larder_index::Direction::Forward);
        table.walk(all, &mut |_, n| {
            visited.push(*n);
            true
        });
        visited.sort_unstable();
        assert!(visited
            .into_iter()
            .eq((1..51).chain(9_000..10_000).chain(20_000..21_000)));
        for n in 0..9_000 {
            assert_eq!(table.get(&position(n)).is_some(), n < 50);
        }
        table.freeze(false);
        assert!(table.kept.0 < 8_950 && table.kept.0 > 0);
        for n in 30_000..34_000 {
            table.insert(&position(n), n);
            assert!(table.remove(&position(n)));
        }
        assert_eq!((table.kept.0, table.len()), (0, 2_050));
        check(&table);
        let popped = std::iter::from_fn(|| table.pop()).count();
        assert_eq!((popped, table.chains.len()), (2_050, 0));
    }

    /// A fixed table that is dropped gives back what is there, and not what is kept.
    #[test]
    fn what_is_kept_is_not_popped() {
        let mut table = LinearHash::new(6, 0);
        (0..500).for_each(|n| assert!(table.insert(&position(n), n).is_none()));
        table.freeze(true);
        (0..400).for_each(|n| assert!(table.remove(&position(n))));
        let mut left: Vec<_> = std::iter::from_fn(|| table.pop()).collect();
        left.sort_unstable();
        assert!(left.into_iter().eq(400..500));
        assert_eq!((table.kept, table.len()), ((0, 0), 0));
    }

    /// Slices are short, however many nodes are kept and however few entries are left.
    #[test]
    fn what_is_kept_is_freed_in_slices() {
        let mut table = LinearHash::new(1, 0);
        (0..500).for_each(|n| assert!(table.insert(&position(n), n).is_none()));
        table.freeze(true);
        (0..499).for_each(|n| assert!(table.remove(&position(n))));
        let (mut left, mut slices) = (Vec::new(), 1);
        while !table.pop_some(&mut 10, &mut |n| left.push(n)) {
            slices += 1;
        }
        assert_eq!((left, table.chains.len()), (vec![499], 0));
        assert!((50..150).contains(&slices), "{slices}");
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
        assert_eq!(table.chains.memory(), 0);
        assert_eq!(table.segments.len(), 1);
    }
}
