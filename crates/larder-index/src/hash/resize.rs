//! How leaves of the hash order come and go: they grow, split, shrink and merge.
//!
//! 1. An entry has no room: the leaf is replaced by one of some buckets more, up to the size at
//!    which leaves split (`build`).
//! 2. Else it splits at the first bit in which its hashes differ. The entry that had no room goes
//!    straight to the successors.
//! 3. A leaf that removals leave half empty is replaced by a smaller one, or merges with its
//!    buddy: the leaf whose range together with its own is that of one bit less.
//!
//! ```text
//!  10  ─→  100      no entry: all hashes begin with 101
//!          1010     the entries whose bit 3 is 0
//!          1011     those whose bit 3 is 1              a split at bit 3 of a leaf of depth 2
//! ```
//!
//! Each has two ways. Leaves of small rows are redistributed, straight from the old leaf to the new
//! ones (`redistribute`). All others go by way of a copy of their entries (`gather`).
//!
//! Invariants:
//! 1. The caller's lock is passed on with the leaf. It ends when the trie makes the leaf obsolete,
//!    or when nothing is done and the leaf is dropped.
//! 2. New leaves are their maker's alone until the trie publishes them: what fails before that has
//!    changed nothing.
//! 3. Handles whose objects have come inside are retired after the old leaf is obsolete, with no
//!    lock held: until then readers may follow them.
//! 4. The leaves of a split cover the old leaf's range, without gap or overlap.
//!
//! Source: extendible hashing (Fagin, Nievergelt, Pippenger and Strong 1979). Deviation: a leaf
//! grows through several sizes before it splits, and splits at the first bit that tells its hashes
//! apart, not at the next one.

use super::build::{build, is_sparse, plan, Built, KeySplit, Plan, Reason};
use super::gather::{with_gather, Gather, GatheredEntry};
use super::key_rule::KeyRule;
use super::plain;
use super::shape::{lead, HASH_BITS};
use crate::hash::change::Body;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};
use crate::hash::trie::split::SplitPart;
use crate::hash::HashOrder;
use crate::outside::Handle;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// Bits that all hashes of a leaf may share before it grows instead of splitting.
const SHARED_BITS: u32 = 16;

impl<R: KeyRule> HashOrder<R> {
    /// Steps 1 and 2 of the module's head: the entry has no room in the leaf.
    #[cold]
    pub(crate) fn make_room(
        &self,
        guard: &Guard,
        (hash, key, value): (u64, &[u8], &[u8]),
        leaf: LockedHashLeaf<'_>,
        body: Body<'_>,
    ) {
        let mut leaf = leaf;
        // Small rows go straight from the old leaf to the new ones. Where that can't be done, the
        // leaf comes back, locked and as it was (invariant 2).
        let handle = match body {
            Body::Outside(handle) => Some(handle),
            Body::Inside(..) => {
                let mut row = SmallVec::<[u8; 128]>::from_slice(key);
                row.extend_from_slice(value);
                match self.make_room_by_redistributing(guard, (hash, &row), leaf) {
                    Ok(()) => return,
                    Err(other) => leaf = other,
                }
                None
            }
        };
        // The other way: all entries are copied, and their hashes made anew, as the leaf doesn't
        // have them.
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            // The entry that had no room is one of them: it needs no further search.
            gather.push(hash, key, value, handle, &self.keys);
            let shape = leaf.leaf().shape();
            let plan = plan(
                &gather.items,
                &self.sizes,
                Reason::Grows(shape),
                shape.depth,
            );
            // Step 2, unless the hashes share so many bits that a split would make a long chain of
            // nodes for few rows; then step 1, beyond the usual size.
            let common = common_bits(gather);
            let splits =
                plan.splits && (common < u32::from(shape.depth) + SHARED_BITS || plan.huge);
            // Hashes that are all alike can't be told apart: such a leaf grows without end.
            if splits && common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            } else {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Writers meet here often: two leaves let them pass each other.
    #[cold]
    pub(crate) fn split_early(&self, guard: &Guard, leaf: LockedHashLeaf<'_>) {
        // The entry was stored already. Without a bit that differs the leaf stays, and is unlocked.
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            let common = common_bits(gather);
            if common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            }
        });
    }

    fn build(
        &self,
        gather: &Gather,
        items: std::ops::Range<usize>,
        plan: Plan,
        (depth, hash): (u8, u64),
    ) -> Built {
        let split: &KeySplit<'_> = &|body| {
            let key = self.keys.key_in(body);
            (&body[key.clone()], &body[key.end..])
        };
        build(
            gather,
            &gather.items[items],
            plan,
            depth,
            (&self.shared, &self.sizes),
            (split, hash),
        )
    }

    /// Puts a leaf of the same range with all that was gathered in the place of this one.
    fn replace(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, gather: &Gather, plan: Plan) {
        // Any hash of the range leads to the leaf. Callers have gathered one at least.
        let Some(hash) = gather.items.first().map(|i| i.hash) else {
            return;
        };
        // (1)
        let built = self.build(
            gather,
            0..gather.items.len(),
            plan,
            (leaf.leaf().shape().depth, hash),
        );
        self.trie
            .replace(&self.shared, leaf, hash, built.leaf, guard);
        // The old leaf can't be found any more (invariant 3).
        built
            .inside_now
            .into_iter()
            .for_each(|h| self.shared.retire(guard, Some(h)));
    }

    /// Splits the leaf at bit `common`, the first in which the gathered hashes differ.
    fn split(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, gather: &mut Gather, common: u32) {
        // (2) Both sides get an entry: bit `common` differs in some.
        let right = |hash: u64| hash >> (63 - common) & 1 == 1;
        let cut = partition(&mut gather.items, |i| right(i.hash));
        let (first, shape) = (gather.items[0].hash, leaf.leaf().shape());
        let mut parts = Vec::new();
        // For each bit that all hashes share behind the leaf's depth: an empty leaf for the side
        // that none of them has. With the two below, they cover the range (invariant 4).
        for depth in shape.depth + 1..=common as u8 {
            // The bits up to `depth`, the last of them the other way.
            let hash = lead(first, depth) ^ 1 << (64 - depth);
            let leaf = self.sizes.empty(self.sizes.least(depth), hash);
            parts.push(SplitPart { hash, leaf });
        }
        // The two leaves that get the entries, one bit deeper.
        let mut inside_now = Vec::new();
        for items in [0..cut, cut..gather.items.len()] {
            let (hash, depth) = (gather.items[items.start].hash, common as u8 + 1);
            let plan = plan(
                &gather.items[items.clone()],
                &self.sizes,
                Reason::Splits,
                depth,
            );
            let built = self.build(gather, items, plan, (depth, hash));
            inside_now.extend(built.inside_now);
            parts.push(SplitPart {
                hash,
                leaf: built.leaf,
            });
        }
        // The trie makes the old leaf obsolete and publishes the new ones. No lock is held
        // afterwards: what went may be retired (invariant 3).
        self.trie.split(&self.shared, leaf, parts, guard);
        inside_now
            .into_iter()
            .for_each(|h| self.shared.retire(guard, Some(h)));
    }

    /// Gives room back that removals have left: the leaf merges with its neighbour, or a smaller
    /// one takes its place.
    #[cold]
    pub(crate) fn reclaim_space(
        &self,
        guard: &Guard,
        hash: u64,
        leaf: LockedHashLeaf<'_>,
        mergeable: bool,
    ) {
        // (3)
        let mut leaf = leaf;
        if mergeable {
            // Each merge gives a larger leaf, which may merge with its own buddy.
            loop {
                match self.merge(guard, hash, leaf) {
                    Ok(()) => {}
                    Err(alone) => {
                        leaf = alone;
                        break;
                    }
                }
                // The united leaf was unlocked when it was published.
                match self.trie.find(hash, guard).try_lock() {
                    Ok(Some(next)) => leaf = next,
                    _ => return,
                }
            }
        }
        // It could not merge, or it was not asked to: a smaller one may do. A leaf with nearly all
        // entries in one half stays: in a smaller one most of them would be displaced.
        if is_sparse(leaf.leaf().shape(), leaf.leaf().live()) && !is_lopsided(leaf.leaf()) {
            self.shrink(guard, hash, leaf);
        }
    }

    fn shrink(&self, guard: &Guard, hash: u64, leaf: LockedHashLeaf<'_>) {
        let leaf = match self.shrink_by_redistributing(guard, hash, leaf) {
            Ok(()) => return,
            Err(leaf) => leaf,
        };
        // Rows of other kinds go by way of a copy.
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            let shape = leaf.leaf().shape();
            // An empty leaf is as small as a leaf can be.
            if gather.items.is_empty() {
                let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
                self.trie.replace(&self.shared, leaf, hash, new, guard);
                return;
            }
            let plan = plan(&gather.items, &self.sizes, Reason::Shrinks, shape.depth);
            // The same size again would save nothing.
            if !plan.is_as(shape) {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Merges the leaf with its buddy, if both are small and nobody is at work there; gives it back
    /// if not.
    pub(crate) fn merge<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        // The buddy is only tried for: two threads that merge the same pair from both sides must
        // not wait for each other.
        let shape = leaf.leaf().shape();
        let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
            return Err(leaf);
        };
        // Both are locked, and neither is obsolete: together they have the range of one bit less,
        // and nobody can split either. They unite if the new leaf is at most half full and neither
        // half of it would have nearly all entries.
        let live = leaf.leaf().live() + buddy.leaf().live();
        if lopsided(leaf.leaf().count(), buddy.leaf().count()) {
            return Err(leaf);
        }
        if !self
            .sizes
            .fits_one(shape.class.min(buddy.leaf().shape().class), live)
        {
            return Err(leaf);
        }
        // Small rows go straight from both to the new leaf.
        if let Some(new) = self.merged_by_redistributing(hash, [&leaf, &buddy]) {
            self.trie
                .merge(&self.shared, [leaf, buddy], hash, new, guard);
            return Ok(());
        }
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            gather.add_leaf(&buddy, &self.keys);
            // Other rows go by way of a copy. A leaf with a buddy has a depth of one at least.
            let depth = shape.depth - 1;
            let plan = plan(&gather.items, &self.sizes, Reason::Shrinks, depth);
            let built = self.build(gather, 0..gather.items.len(), plan, (depth, hash));
            self.trie
                .merge(&self.shared, [leaf, buddy], hash, built.leaf, guard);
            built
                .inside_now
                .into_iter()
                .for_each(|h| self.shared.retire(guard, Some(h)));
        });
        Ok(())
    }

    /// Empties a leaf, calling `f` with each value; returns how many there were.
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
        // The lock is held: values are shown where they lie, before anything is changed.
        for bucket in 0..shape.buckets as usize {
            let bytes = leaf.bytes();
            for e in plain::entries(bytes, bucket * shape.bucket(), shape) {
                n += 1;
                let body = &bytes[e.from..e.end];
                if e.outside {
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    f(leaf.object(handle).value());
                    handles.push(handle);
                } else {
                    f(&body[self.keys.key_in(body).end..]);
                }
            }
        }
        // An empty leaf of the same range takes its place; then the objects outside can go
        // (invariant 3).
        if n > 0 {
            let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
            self.trie.replace(&self.shared, leaf, hash, new, guard);
            handles
                .into_iter()
                .for_each(|h| self.shared.retire(guard, Some(h)));
        }
        n
    }

    /// Merges the leaf with its buddy as long as both are empty.
    pub(crate) fn merge_empty(&self, guard: &Guard, hash: u64) {
        while let Ok(Some(leaf)) = self.trie.find(hash, guard).try_lock() {
            // Both locks are held from here to the merge, so nothing can come in between. Each
            // merge gives a leaf of one bit less, so the loop ends at the root at the latest.
            let empty = |leaf: HashLeaf<'_>| leaf.count() == 0;
            let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
                return;
            };
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

/// So few entries may lie anywhere in a leaf.
pub(crate) const FEW: usize = 8;

/// Whether nearly all entries would be in one half of a leaf with so many in each. Removals from
/// one end leave such leaves. In a smaller one most entries would be displaced entries, far from
/// home.
fn lopsided(first: usize, second: usize) -> bool {
    first + second > FEW && 4 * first.min(second) < first + second
}

/// As `lopsided`, by the buckets of a leaf.
fn is_lopsided(leaf: HashLeaf<'_>) -> bool {
    let (half, count) = (leaf.shape().buckets as usize / 2, leaf.count());
    let first: usize = (0..half).map(|bucket| leaf.entries_of(bucket)).sum();
    half > 0 && lopsided(first.min(count), count - first.min(count))
}

/// Puts the items of the right behind the others; says how many those are.
fn partition(items: &mut [GatheredEntry], right: impl Fn(&GatheredEntry) -> bool) -> usize {
    // Buckets lie in the order of hashes: nearly all items are where they should be. What is before
    // `from` belongs to the left, what is from `end` on to the right.
    let (mut from, mut end) = (0, items.len());
    loop {
        while from < end && !right(&items[from]) {
            from += 1;
        }
        while from < end && right(&items[end - 1]) {
            end -= 1;
        }
        if from == end {
            return from;
        }
        // Both are on the wrong side.
        items.swap(from, end - 1);
    }
}

/// How many leading bits all gathered hashes share.
fn common_bits(gather: &Gather) -> u32 {
    let first = gather.items.first().map_or(0, |i| i.hash);
    let differ = gather.items.iter().fold(0, |d, i| d | (i.hash ^ first));
    differ.leading_zeros().min(HASH_BITS)
}
