//! Changes of structure in the hash order: leaves grow, split, shrink and merge.
//!
//! 1. If an entry has no room, its leaf is replaced by a larger one, with more buckets or larger
//!    ones, up to the size at which leaves split (`sizes`).
//! 2. A leaf of that size splits at the first bit in which its hashes differ. The entry that had no
//!    room is put directly into one of the two new leaves. If the hashes share more than
//!    `SHARED_BITS` bits after the leaf's depth, the leaf grows instead.
//! 3. If removals leave a leaf sparse, it is replaced by a smaller one, or it merges with its
//!    buddy: the leaf whose range differs from its own in the last bit alone.
//!
//! ```text
//!  10  ─→  100      no entry: all hashes begin with 101
//!          1010     the entries whose bit 3 is 0
//!          1011     those whose bit 3 is 1              a split at bit 3 of a leaf of depth 2
//! ```
//!
//! The new leaves are planned by `sizes`, and filled by `rebuild`.
//!
//! If it is known how many entries there will soon be (`expected`), a leaf gets at once the size
//! that its share of them needs. If they will need several leaves, it splits while it has few
//! entries.
//!
//! Invariants (docs/design.md §4.2 and 4.3):
//! * O4: If an outside object is moved into a new leaf, its handle is retired after the old leaf is
//!   obsolete, and with no lock held. Until then readers may follow the handle.
//! * **H15** The functions take over the caller's lock together with the leaf. It is released when
//!   the trie marks the leaf obsolete, or, if nothing is done, when the leaf is dropped.
//! * **H16** New leaves are private until the trie publishes them. So a function that fails before
//!   that has changed nothing.
//! * **H17** The leaves of a split cover the old leaf's range, without gap or overlap.
//!
//! What others see meanwhile: readers read the old leaf until it is marked obsolete. From then
//! until the new leaves are published, readers and writers of its range search from the root again
//! and again. The new leaves are complete by then, so this takes a few stores.
//!
//! Source: extendible hashing (Fagin, Nievergelt, Pippenger and Strong 1979). Deviation: a leaf
//! grows through several sizes before it splits, and it splits at the first bit in which its hashes
//! differ, which need not be the next one.

use super::key_rule::KeyRule;
use super::plain;
use super::rebuild::{Built, Rebuild};
use super::removed;
use super::shape::{prefix, LeafRange, Shape, HASH_BITS, SMALLEST, TOP_CLASS};
use super::sizes::{is_sparse, Reason};
use crate::hash::change::Body;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};
use crate::hash::trie::split::SplitPart;
use crate::hash::HashOrder;
use crate::outside::Handle;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// A leaf whose hashes share more than this number of bits after its depth grows instead of
/// splitting.
const SHARED_BITS: u32 = 16;

/// The buddies that a sparse leaf may merge with.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Partner {
    /// None: the leaf only shrinks.
    None,
    Any,
    /// Those that a forward scan of the leaf need not read: a buddy that lies before the leaf, or
    /// is empty. Other leaves after it stay as they are, so that the scan reads each as a whole.
    Passed,
}

impl Partner {
    /// Whether a leaf of this depth, which has this hash in its range, may merge with its buddy.
    /// The buddy need not be locked. If another thread fills it meanwhile, the scan reads only a
    /// part of the merged leaf, which does no harm.
    fn admits(self, hash: u64, depth: u8, buddy: HashLeaf<'_>) -> bool {
        // If the last bit of the leaf's prefix is 1, its buddy, whose last bit is 0, lies before
        // it.
        let is_second = hash >> (64 - u32::from(depth)) & 1 == 1;
        match self {
            Partner::None => false,
            Partner::Any => true,
            Partner::Passed => is_second || buddy.count() == 0,
        }
    }
}

/// The leaves that replace a leaf which splits.
#[derive(Default)]
struct SplitLeaves {
    parts: Vec<SplitPart>,
    /// The handles of outside objects that were moved inside.
    inside_now: SmallVec<[Handle; 4]>,
}

/// An entry that has no room in its leaf.
#[derive(Clone, Copy)]
pub(super) struct NewEntry<'a> {
    pub(super) hash: u64,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<R: KeyRule> HashOrder<R> {
    /// Steps 1 and 2: inserts an entry for which the leaf has no room. The leaf grows or splits.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_overflow(
        &self,
        guard: &Guard,
        entry: NewEntry<'_>,
        leaf: LockedHashLeaf<'_>,
        body: Body<'_>,
    ) {
        let NewEntry { hash, key, value } = entry;
        let shape = leaf.leaf().shape();
        // The new entry is moved to a new leaf like all others, from a bucket of its own.
        let (mut bucket, alone) = (
            [0; SMALLEST << TOP_CLASS],
            Shape {
                buckets: 1,
                ..shape
            },
        );
        let bucket = &mut bucket[..shape.bucket()];
        let put = match body {
            Body::Inside {
                length_prefixed, ..
            } => plain::put_whole(bucket, alone, hash, key, value, length_prefixed),
            Body::Outside(handle) => plain::put_handle(bucket, alone, hash, handle),
        };
        debug_assert!(put.is_some(), "an empty bucket has room for one entry");
        let leaves = [&leaf];
        let mut rebuild = self.rebuild(&leaves, bucket);
        let depth = shape.depth;
        let range = LeafRange { hash, depth };
        let plan = rebuild.plan(range, Reason::Grows(shape));
        // (2) Split the leaf if it would become too large. If its hashes share many bits, a split
        // would add a long chain of nodes to the trie for few entries. Such a leaf grows beyond the
        // usual size.
        let most = match plan.huge {
            true => HASH_BITS,
            false => HASH_BITS.min(u32::from(depth) + SHARED_BITS),
        };
        if plan.splits {
            if let Some(split) = self.split(&mut rebuild, hash, shape, most) {
                return self.publish_split(guard, leaf, split);
            }
        }
        // (1) Otherwise replace it by a larger one.
        let built = rebuild.build(plan, range);
        self.replace(guard, leaf, hash, built);
    }

    /// Splits a leaf that isn't full, because writers often wait for its lock. With two leaves,
    /// they wait for each other half as often.
    #[cold]
    pub(crate) fn split_early(&self, guard: &Guard, leaf: LockedHashLeaf<'_>) {
        // The caller's entry has been stored already. If all hashes are equal, the leaf can't be
        // split, and is unlocked as it is. So this is checked before anything is built: new outside
        // objects would belong to leaves that are never published.
        let leaves = [&leaf];
        let mut rebuild = self.rebuild(&leaves, &[]);
        let common = rebuild.common_bits();
        if common.bits == HASH_BITS {
            return;
        }
        let split = self.split(&mut rebuild, common.hash, leaf.leaf().shape(), HASH_BITS);
        if let Some(split) = split {
            self.publish_split(guard, leaf, split);
        }
    }

    fn rebuild<'l>(
        &'l self,
        leaves: &'l [&'l LockedHashLeaf<'l>],
        more: &'l [u8],
    ) -> Rebuild<'l, R> {
        Rebuild::new(leaves, more, &self.keys, &self.shared, &self.sizes)
    }

    /// Replaces the leaf, whose range has the hash, by one with the same range. Returns the version
    /// of that.
    fn replace(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, hash: u64, built: Built<1>) -> u64 {
        // Mark the old leaf obsolete and publish the new one.
        let [new] = built.leaves;
        let version = self.trie.replace(&self.shared, leaf, hash, new, guard);
        self.retire_all(guard, built.inside_now);
        version
    }

    /// Retires outside objects that are inside a new leaf now. Readers that pinned before may still
    /// follow their handles, so they are retired, not freed (O4).
    fn retire_all(&self, guard: &Guard, handles: impl IntoIterator<Item = Handle>) {
        for handle in handles {
            self.shared.retire(guard, Some(handle));
        }
    }

    /// Builds the leaves that replace a leaf of this shape, whose range has the hash. `None` if all
    /// hashes share their first `most` bits.
    #[inline(never)]
    fn split(
        &self,
        rebuild: &mut Rebuild<'_, R>,
        hash: u64,
        shape: Shape,
        most: u32,
    ) -> Option<SplitLeaves> {
        // Nearly always hashes differ in the first bit after the depth.
        let mut bit = u32::from(shape.depth);
        loop {
            if bit >= most {
                return None;
            }
            // All hashes share the bits before this one. Try to divide them by it.
            let depth = bit as u8 + 1;
            let first = prefix(hash, bit as u8);
            let ranges = [first, first | 1 << (63 - bit)].map(|hash| LeafRange { hash, depth });
            if let Some(built) = rebuild.build_two(ranges, bit) {
                // For each of the bits between the leaf's depth and this one, make an empty leaf
                // for the hashes in which it is inverted. Together with the two leaves they cover
                // the range (H17).
                let empty = (shape.depth + 1..depth).map(|depth| {
                    let hash = prefix(hash, depth) ^ 1 << (64 - depth);
                    let leaf = self.sizes.empty(self.sizes.least(depth), hash);
                    SplitPart { hash, leaf }
                });
                let mut parts: Vec<SplitPart> = empty.collect();
                for (range, leaf) in ranges.into_iter().zip(built.leaves) {
                    let hash = range.hash;
                    parts.push(SplitPart { hash, leaf });
                }
                let inside_now = built.inside_now;
                return Some(SplitLeaves { parts, inside_now });
            }
            // All hashes share this bit, too. Go on with the first one in which they differ.
            bit = rebuild.common_bits().bits;
        }
    }

    fn publish_split(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, split: SplitLeaves) {
        // Mark the old leaf obsolete and publish the new ones.
        self.trie.split(&self.shared, leaf, split.parts, guard);
        self.retire_all(guard, split.inside_now);
    }

    /// Step 3: merges a sparse leaf with its buddy, if `partner` admits that, or replaces it by a
    /// smaller one.
    #[cold]
    pub(crate) fn reclaim_space<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        mut leaf: LockedHashLeaf<'g>,
        partner: Partner,
    ) {
        if partner != Partner::None {
            // Each merge yields a leaf of one bit less, which may merge with its own buddy in turn.
            loop {
                match self.merge(guard, hash, leaf, partner) {
                    Ok(()) => {}
                    Err(alone) => {
                        leaf = alone;
                        break;
                    }
                }
                // The merged leaf was unlocked when it was published. Another thread may be at work
                // on it by now; if so, leave it alone.
                match self.trie.find(hash, guard).try_lock() {
                    Ok(Some(next)) => leaf = next,
                    _ => return,
                }
            }
        }
        // It wasn't merged, so try a smaller leaf. If nearly all entries are in one half of the
        // leaf, keep it: in a smaller one most of them would be displaced.
        if is_sparse(leaf.leaf().shape(), leaf.leaf().live_bytes()) && !is_lopsided(leaf.leaf()) {
            self.shrink(guard, hash, leaf);
        }
    }

    /// Replaces the leaf by a smaller one, if its entries fit in one.
    fn shrink(&self, guard: &Guard, hash: u64, leaf: LockedHashLeaf<'_>) {
        let shape = leaf.leaf().shape();
        let (id, now) = (self.leaf_id(&leaf, hash), leaf.version_after());
        // An empty leaf gets the smallest shape.
        if leaf.leaf().count() == 0 {
            let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
            let version = self.trie.replace(&self.shared, leaf, hash, new, guard);
            return removed::note_replaced(id, now, version);
        }
        let leaves = [&leaf];
        let mut rebuild = self.rebuild(&leaves, &[]);
        let depth = shape.depth;
        let range = LeafRange { hash, depth };
        let plan = rebuild.plan(range, Reason::Shrinks);
        // A leaf of the same shape would save nothing.
        if !plan.is_as(shape) {
            let built = rebuild.build(plan, range);
            let version = self.replace(guard, leaf, hash, built);
            removed::note_replaced(id, now, version);
        }
    }

    /// Merges the leaf with its buddy, if `partner` admits the buddy, both are small, and the
    /// buddy's lock is free.
    ///
    /// # Errors
    /// The leaf, still locked, if they aren't merged.
    fn merge<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        leaf: LockedHashLeaf<'g>,
        partner: Partner,
    ) -> Result<(), LockedHashLeaf<'g>> {
        // Try to lock the buddy. Don't wait for it: another thread may hold its lock and try to
        // lock our leaf for the same merge.
        let shape = leaf.leaf().shape();
        let admits = |buddy: HashLeaf<'_>| partner.admits(hash, shape.depth, buddy);
        let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, admits, guard) else {
            return Err(leaf);
        };
        // Both leaves are locked and not obsolete, so nobody can split or replace either of them.
        // Merge them only if neither half of the new leaf gets nearly all entries, and if it is at
        // most half full.
        let live = leaf.leaf().live_bytes() + buddy.leaf().live_bytes();
        if lopsided(leaf.leaf().count(), buddy.leaf().count()) {
            return Err(leaf);
        }
        if !self
            .sizes
            .fits_one(shape.class.min(buddy.leaf().shape().class), live)
        {
            return Err(leaf);
        }
        let leaves = [&leaf, &buddy];
        let mut rebuild = self.rebuild(&leaves, &[]);
        // A leaf with a buddy has a depth of at least one.
        let depth = shape.depth - 1;
        let range = LeafRange { hash, depth };
        let built = rebuild.build(rebuild.plan(range, Reason::Shrinks), range);
        let [new] = built.leaves;
        let (id, now) = (self.leaf_id(&leaf, hash), leaf.version_after());
        let version = self
            .trie
            .merge(&self.shared, [leaf, buddy], hash, new, guard);
        removed::note_replaced(id, now, version);
        self.retire_all(guard, built.inside_now);
        Ok(())
    }

    /// Replaces a leaf by an empty one, and calls `f` with each of its values. Returns their
    /// number.
    pub(crate) fn empty(
        &self,
        guard: &Guard,
        hash: u64,
        leaf: LockedHashLeaf<'_>,
        f: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let shape = leaf.leaf().shape();
        let mut handles = Vec::new();
        let mut n = 0;
        // Show the values in place. The lock is held, so they don't change meanwhile.
        for bucket in 0..shape.buckets as usize {
            let bytes = leaf.bytes();
            for e in plain::entries(bytes, bucket * shape.bucket(), shape) {
                n += 1;
                let body = &bytes[e.from..e.end];
                // The body is a handle, or key and value.
                if e.outside {
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    f(leaf.object(handle).value());
                    handles.push(handle);
                } else {
                    f(&body[self.keys.key_in(body).end..]);
                }
            }
        }
        // Publish an empty leaf of the same range, then retire the outside objects (O4). A leaf
        // that is empty already is unlocked as it is.
        if n > 0 {
            let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
            self.trie.replace(&self.shared, leaf, hash, new, guard);
            self.retire_all(guard, handles);
        }
        n
    }

    /// Called by a reader that finds the leaf of the hash empty. `passed` is the number of empty
    /// leaves that it has passed before.
    ///
    /// Usually leaves merge when they are emptied, but not if they are contended or the buddy's
    /// lock is held. The first reader to pass a long run of empty leaves then merges them. It waits
    /// for no lock, and no entry changes.
    #[inline]
    pub(super) fn pass_empty(&self, guard: &Guard, hash: u64, passed: &mut u32) {
        *passed += 1;
        if *passed > MOST_EMPTY {
            self.merge_empty(guard, hash);
        }
    }

    /// Merges the leaf of the hash with its buddy as long as both are empty.
    #[cold]
    #[inline(never)]
    pub(crate) fn merge_empty(&self, guard: &Guard, hash: u64) {
        // Each merge yields a leaf of one bit less, so the loop ends at depth zero at the latest.
        while let Ok(Some(leaf)) = self.trie.find(hash, guard).try_lock() {
            let empty = |leaf: HashLeaf<'_>| leaf.count() == 0;
            let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, empty, guard) else {
                return;
            };
            // Both locks are held from here to the merge, so nobody can insert in between.
            if !empty(leaf.leaf()) || !empty(buddy.leaf()) {
                return;
            }
            let depth = leaf.leaf().shape().depth - 1;
            let new = self.sizes.empty(self.sizes.least(depth), hash);
            self.trie
                .merge(&self.shared, [leaf, buddy], hash, new, guard);
        }
    }
}

/// The greatest number of consecutive empty leaves of which no two are buddies: two of each depth.
pub(super) const MOST_EMPTY: u32 = 2 * HASH_BITS;

/// Up to this number of entries, their distribution over a leaf doesn't matter.
pub(crate) const FEW: usize = 8;

/// Whether one half of a leaf has nearly all entries, given the numbers of both halves. Removals
/// from one end, such as those of a queue, leave such leaves. In a smaller leaf most of the entries
/// would be displaced, far from their homes.
fn lopsided(first: usize, second: usize) -> bool {
    first + second > FEW && 4 * first.min(second) < first + second
}

/// Whether the first or the second half of the leaf's buckets has nearly all of its entries.
fn is_lopsided(leaf: HashLeaf<'_>) -> bool {
    let (half, count) = (leaf.shape().buckets as usize / 2, leaf.count());
    let first: usize = (0..half).map(|bucket| leaf.entries_of(bucket)).sum();
    half > 0 && lopsided(first.min(count), count - first.min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::CONTENTION_BOUND;
    use crate::hash::key_rule::KeyRule;
    use crate::{
        pin, Batch, Change, Container, Direction, Key, LeafConfig, Previous, Start, Unique,
    };

    /// The first byte of a key, spread over the bits, is its hash.
    struct FirstByte;

    impl KeyRule for FirstByte {
        fn hash(&self, key: &[u8]) -> u64 {
            u64::from_be_bytes([key[0]; 8])
        }
    }

    fn put(index: &HashOrder<FirstByte>, key: [u8; 2], value: &[u8]) {
        let key = Key {
            hash: FirstByte.hash(&key),
            bytes: &key,
        };
        index.update(&pin(), key, &mut |_, out| {
            out.extend_from_slice(value);
            Change::Put
        });
    }

    /// The leaf of a hash as if writers had often waited for it.
    fn contend<R: KeyRule>(index: &HashOrder<R>, hash: u64) {
        let guard = pin();
        let Ok(mut leaf) = index.trie.find(hash, &guard).lock() else {
            panic!("nobody else is here");
        };
        leaf.add_contention(CONTENTION_BOUND);
    }

    /// A contended leaf splits before it is full, if its hashes differ. If they are equal, it stays
    /// as it is, and nothing is made for a leaf that won't be.
    #[test]
    fn a_contended_leaf_splits_if_its_hashes_differ() {
        let long = vec![7; 2000];
        for (hashes, splits) in [([9, 9, 9, 9], 0), ([0x10, 0x50, 0x90, 0xD0], 1)] {
            let index = HashOrder::new(FirstByte, LeafConfig::default());
            // One object inside the leaf, and others outside.
            for (i, hash) in hashes.into_iter().enumerate() {
                put(&index, [hash, i as u8], if i == 0 { b"x" } else { &long });
            }
            let bytes = index.shared.counters.bytes();
            contend(&index, FirstByte.hash(&[hashes[0]]));
            put(&index, [hashes[0], 0], b"y");
            let stats = index.shared.counters.stats(0);
            assert_eq!((stats.splits, stats.leaves), (splits, 1 + splits as usize));
            if splits == 0 {
                assert_eq!(index.shared.counters.bytes(), bytes);
            }
            for (i, hash) in hashes.into_iter().enumerate() {
                let key = [hash, i as u8];
                let key = Key {
                    hash: FirstByte.hash(&key),
                    bytes: &key,
                };
                let mut out = Vec::new();
                assert!(index.get(&pin(), key, &mut out));
                assert_eq!(out, if i == 0 { &b"y"[..] } else { &long });
            }
        }
    }

    /// The key is its hash.
    struct Itself;

    impl KeyRule for Itself {
        fn hash(&self, key: &[u8]) -> u64 {
            u64::from_be_bytes(key.try_into().unwrap_or_default())
        }
    }

    /// An index of many contended leaves, and its keys.
    fn contended() -> (HashOrder<Itself>, Vec<[u8; 8]>) {
        let index = HashOrder::new(Itself, LeafConfig::tiny());
        let keys: Vec<_> = (0..8192u64).map(|i| (i << 51).to_be_bytes()).collect();
        for bytes in &keys {
            index.put(&pin(), key(bytes), b"value", &mut |_| true);
        }
        let (guard, mut at) = (pin(), Some(0));
        while let Some(hash) = at {
            contend(&index, hash);
            at = index.trie.find(hash, &guard).shape().end_hash(hash);
        }
        assert!(leaves(&index) > 4 * MOST_EMPTY as usize);
        (index, keys)
    }

    fn key(bytes: &[u8]) -> Key<'_> {
        let hash = Itself.hash(bytes);
        Key { hash, bytes }
    }

    fn leaves<R: KeyRule>(index: &HashOrder<R>) -> usize {
        index.shared.counters.stats(0).leaves
    }

    /// Contended leaves that removals by key have emptied don't merge. The first reader to pass
    /// them merges them, so that the next ones pass few.
    #[test]
    fn a_reader_merges_a_long_run_of_empty_leaves() {
        for by_step in [true, false] {
            let (index, keys) = contended();
            let (last, others) = keys.split_last().unwrap();
            for bytes in others {
                assert!(index.remove(&pin(), key(bytes), &mut |_| true) == Previous::Present);
            }
            let before = leaves(&index);
            assert!(before > 4 * MOST_EMPTY as usize, "{before}");
            let (guard, mut batch) = (pin(), Batch::default());
            let past_empty = |index| HashOrder::find_past_empty(index, &guard, Itself.hash(last));
            // A step can't be repeated cheaply where so many leaves lie before its entry.
            assert!(past_empty(&index).is_none());
            if by_step {
                assert!(!index.step(&guard, None, Direction::Forward, &mut batch));
            } else {
                index.scan(&guard, Start::Edge, Direction::Forward, &mut batch);
            }
            assert_eq!((batch.len(), batch.key(0)), (1, &last[..]));
            let after = leaves(&index);
            assert!(after <= 2 * MOST_EMPTY as usize, "{before} {after}");
            assert!(past_empty(&index).is_some());
        }
    }

    /// A caller that may pause passes part of a long run at a time.
    #[test]
    fn a_reader_pauses_in_a_long_run_of_empty_leaves() {
        for by_step in [true, false] {
            let (index, keys) = contended();
            let (last, others) = keys.split_last().unwrap();
            for bytes in others {
                index.remove(&pin(), key(bytes), &mut |_| true);
            }
            let (guard, mut at, mut pauses) = (pin(), Vec::new(), 0);
            let mut batch = Batch::default();
            batch.may_pause = true;
            loop {
                if by_step {
                    // It begins anew, and finds fewer leaves.
                    index.step(&guard, None, Direction::Forward, &mut batch);
                } else {
                    index.scan(&guard, Start::At(&at), Direction::Forward, &mut batch);
                    at.clone_from(&batch.resume);
                }
                if !batch.is_empty() {
                    break;
                }
                assert!(!batch.done && batch.skipped > 0);
                pauses += 1;
            }
            assert_eq!((batch.len(), batch.key(0)), (1, &last[..]));
            assert!((1..20).contains(&pauses), "{pauses}");
        }
    }

    /// Contended leaves that a scan has emptied merge.
    #[test]
    fn contended_leaves_that_a_scan_empties_merge() {
        let (index, _) = contended();
        let mut at = Vec::new();
        loop {
            let (guard, mut batch) = (pin(), Batch::default().in_any_order());
            index.scan(&guard, Start::At(&at), Direction::Forward, &mut batch);
            let chosen: Vec<u32> = (0..batch.len() as u32).collect();
            let all = (&batch, &chosen[..]);
            assert!(index.remove_scanned(&guard, key(batch.key(0)), all, &mut || true));
            if batch.done {
                break;
            }
            at.clone_from(&batch.resume);
        }
        assert_eq!((index.len(), leaves(&index)), (0, 1));
    }
}
