//! Changes of structure in the hash order: leaves grow, split, shrink and merge.
//!
//! 1. If an entry has no room, its leaf is replaced by one with more buckets, up to the size at
//!    which leaves split (`build`).
//! 2. A leaf of that size splits at the first bit in which its hashes differ. The entry that had no
//!    room is put directly into one of the two new leaves.
//! 3. If removals leave a leaf sparse, it is replaced by a smaller one, or it merges with its
//!    buddy: the leaf whose range differs from its own in the last bit alone.
//!
//! ```text
//!  10  ─→  100      no entry: all hashes begin with 101
//!          1010     the entries whose bit 3 is 0
//!          1011     those whose bit 3 is 1              a split at bit 3 of a leaf of depth 2
//! ```
//!
//! Each of these is implemented twice. Small rows are *redistributed*: copied directly from the old
//! leaf to their places in the new ones (`redistribute`). All other rows are *gathered* first:
//! copied to a buffer, from which the new leaves are built (`gather`).
//!
//! Invariants:
//! 1. The functions take over the caller's lock together with the leaf. It is released when the
//!    trie marks the leaf obsolete, or, if nothing is done, when the leaf is dropped.
//! 2. New leaves are private until the trie publishes them. So a function that fails before that
//!    has changed nothing.
//! 3. If an outside object is moved into a new leaf, its handle is retired after the old leaf is
//!    obsolete, and with no lock held. Until then readers may follow the handle.
//! 4. The leaves of a split cover the old leaf's range, without gap or overlap.
//!
//! What others see meanwhile: readers read the old leaf until it is marked obsolete. From then
//! until the new leaves are published, readers and writers of its range search from the root again
//! and again. The new leaves are complete by then, so this takes a few stores.
//!
//! Source: extendible hashing (Fagin, Nievergelt, Pippenger and Strong 1979). Deviation: a leaf
//! grows through several sizes before it splits, and it splits at the first bit in which its hashes
//! differ, which need not be the next one.

use super::build::{build, is_sparse, plan, Built, KeySplit, Plan, Reason};
use super::gather::{with_gather, Gather, GatheredEntry};
use super::key_rule::KeyRule;
use super::plain;
use super::shape::{prefix, LeafRange, HASH_BITS};
use crate::hash::change::Body;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};
use crate::hash::trie::split::SplitPart;
use crate::hash::HashOrder;
use crate::outside::Handle;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// A leaf whose hashes share more than this number of bits behind its depth grows instead of
/// splitting.
const SHARED_BITS: u32 = 16;

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
    pub(super) fn make_room(
        &self,
        guard: &Guard,
        entry: NewEntry<'_>,
        mut leaf: LockedHashLeaf<'_>,
        body: Body<'_>,
    ) {
        let NewEntry { hash, key, value } = entry;
        // Try to redistribute the rows first. If that isn't possible, the leaf is returned, still
        // locked and unchanged (invariant 2).
        let handle = match body {
            Body::Outside(handle) => Some(handle),
            Body::Inside { .. } => {
                let mut row = SmallVec::<[u8; 128]>::from_slice(key);
                row.extend_from_slice(value);
                match self.make_room_by_redistributing(guard, hash, &row, leaf) {
                    Ok(()) => return,
                    Err(other) => leaf = other,
                }
                None
            }
        };
        // Otherwise gather all entries. The leaf doesn't store their hashes, so they are computed
        // again.
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            // Add the new entry. It is then placed in a new leaf like all others.
            gather.push(hash, key, value, handle, &self.keys);
            let shape = leaf.leaf().shape();
            let plan = plan(
                &gather.items,
                &self.sizes,
                Reason::Grows(shape),
                shape.depth,
            );
            // Split the leaf if it would become too large (step 2). If its hashes share many bits,
            // a split would add a long chain of nodes to the trie for few rows. Such a leaf grows
            // beyond the usual size (step 1).
            let common = common_bits(gather);
            let splits =
                plan.splits && (common < u32::from(shape.depth) + SHARED_BITS || plan.huge);
            // If all hashes are equal, no bit separates them: the leaf grows without bound.
            if splits && common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            } else {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Splits a leaf that isn't full, because writers often wait for its lock. With two leaves,
    /// they wait for each other half as often.
    #[cold]
    pub(crate) fn split_early(&self, guard: &Guard, leaf: LockedHashLeaf<'_>) {
        // The caller's entry has been stored already. If all hashes are equal, the leaf can't be
        // split: it is unlocked as it is.
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            let common = common_bits(gather);
            if common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            }
        });
    }

    /// Builds a leaf of some of the gathered items.
    fn build(
        &self,
        gather: &Gather,
        items: std::ops::Range<usize>,
        plan: Plan,
        range: LeafRange,
    ) -> Built {
        // A body is a key and a value without a mark between them. Only the index's rule knows
        // where the key ends.
        let split: &KeySplit<'_> = &|body| {
            let key = self.keys.key_in(body);
            (&body[key.clone()], &body[key.end..])
        };
        build(
            gather,
            &gather.items[items],
            plan,
            range,
            &self.shared,
            &self.sizes,
            split,
        )
    }

    /// Replaces the leaf by one with the same range that has all gathered items.
    fn replace(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, gather: &Gather, plan: Plan) {
        // Any hash of the range leads to the leaf. Callers have gathered at least one.
        let Some(hash) = gather.items.first().map(|i| i.hash) else {
            return;
        };
        // Fill the new leaf while nobody else can reach it.
        let depth = leaf.leaf().shape().depth;
        let range = LeafRange { hash, depth };
        let built = self.build(gather, 0..gather.items.len(), plan, range);
        // Mark the old leaf obsolete and publish the new one.
        self.trie
            .replace(&self.shared, leaf, hash, built.leaf, guard);
        // Some outside objects are inside the new leaf now. Readers that pinned before may still
        // follow their handles, so the objects are retired, not freed (invariant 3).
        built
            .inside_now
            .into_iter()
            .for_each(|h| self.shared.retire(guard, Some(h)));
    }

    /// Splits the leaf at bit `common`, the first in which the gathered hashes differ.
    fn split(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, gather: &mut Gather, common: u32) {
        // Partition the entries by bit `common`. Neither side is empty, since the bit differs.
        let right = |hash: u64| hash >> (63 - common) & 1 == 1;
        let cut = partition(&mut gather.items, |i| right(i.hash));
        let (first, shape) = (gather.items[0].hash, leaf.leaf().shape());
        let mut parts = Vec::new();
        // Between the leaf's depth and `common`, all hashes share their bits. For each of these
        // bits, make an empty leaf for the hashes in which it is inverted. Together with the two
        // leaves below they cover the range (invariant 4).
        for depth in shape.depth + 1..=common as u8 {
            let hash = prefix(first, depth) ^ 1 << (64 - depth);
            let leaf = self.sizes.empty(self.sizes.least(depth), hash);
            parts.push(SplitPart { hash, leaf });
        }
        // Build the two leaves that get the entries.
        let mut inside_now = Vec::new();
        for items in [0..cut, cut..gather.items.len()] {
            let (hash, depth) = (gather.items[items.start].hash, common as u8 + 1);
            let plan = plan(
                &gather.items[items.clone()],
                &self.sizes,
                Reason::Splits,
                depth,
            );
            let built = self.build(gather, items, plan, LeafRange { hash, depth });
            inside_now.extend(built.inside_now);
            parts.push(SplitPart {
                hash,
                leaf: built.leaf,
            });
        }
        // Mark the old leaf obsolete and publish the new ones.
        self.trie.split(&self.shared, leaf, parts, guard);
        // No lock is held any more, so outside objects can be retired (invariant 3).
        inside_now
            .into_iter()
            .for_each(|h| self.shared.retire(guard, Some(h)));
    }

    /// Step 3: merges a sparse leaf with its buddy, if `mergeable` is set, or replaces it by a
    /// smaller one.
    #[cold]
    pub(crate) fn reclaim_space<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        mut leaf: LockedHashLeaf<'g>,
        mergeable: bool,
    ) {
        if mergeable {
            // Each merge yields a leaf of one bit less, which may merge with its own buddy in turn.
            loop {
                match self.merge(guard, hash, leaf) {
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
        let leaf = match self.shrink_by_redistributing(guard, hash, leaf) {
            Ok(()) => return,
            Err(leaf) => leaf,
        };
        with_gather(|gather| {
            // Rows that can't be redistributed: gather them, and build the new leaf from the copy.
            gather.add_leaf(&leaf, &self.keys);
            let shape = leaf.leaf().shape();
            // An empty leaf gets the smallest shape.
            if gather.items.is_empty() {
                let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
                self.trie.replace(&self.shared, leaf, hash, new, guard);
                return;
            }
            let plan = plan(&gather.items, &self.sizes, Reason::Shrinks, shape.depth);
            // A leaf of the same shape would save nothing.
            if !plan.is_as(shape) {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Merges the leaf with its buddy, if both are small and the buddy's lock is free.
    ///
    /// # Errors
    /// The leaf, still locked, if they aren't merged.
    pub(crate) fn merge<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        // Try to lock the buddy. Don't wait for it: another thread may hold its lock and try to
        // lock our leaf for the same merge.
        let shape = leaf.leaf().shape();
        let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
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
        // Redistribute the rows of both, if that is possible.
        if let Some(new) = self.merged_by_redistributing(hash, [&leaf, &buddy]) {
            self.trie
                .merge(&self.shared, [leaf, buddy], hash, new, guard);
            return Ok(());
        }
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            gather.add_leaf(&buddy, &self.keys);
            // A leaf with a buddy has a depth of at least one.
            let depth = shape.depth - 1;
            let plan = plan(&gather.items, &self.sizes, Reason::Shrinks, depth);
            let range = LeafRange { hash, depth };
            let built = self.build(gather, 0..gather.items.len(), plan, range);
            self.trie
                .merge(&self.shared, [leaf, buddy], hash, built.leaf, guard);
            built
                .inside_now
                .into_iter()
                .for_each(|h| self.shared.retire(guard, Some(h)));
        });
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
                if e.outside {
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    f(leaf.object(handle).value());
                    handles.push(handle);
                } else {
                    f(&body[self.keys.key_in(body).end..]);
                }
            }
        }
        // Publish an empty leaf of the same range, then retire the outside objects (invariant 3).
        if n > 0 {
            let new = self.sizes.empty(self.sizes.least(shape.depth), hash);
            self.trie.replace(&self.shared, leaf, hash, new, guard);
            handles
                .into_iter()
                .for_each(|h| self.shared.retire(guard, Some(h)));
        }
        n
    }

    /// Merges the leaf of the hash with its buddy as long as both are empty.
    pub(crate) fn merge_empty(&self, guard: &Guard, hash: u64) {
        // Each merge yields a leaf of one bit less, so the loop ends at depth zero at the latest.
        while let Ok(Some(leaf)) = self.trie.find(hash, guard).try_lock() {
            let empty = |leaf: HashLeaf<'_>| leaf.count() == 0;
            let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
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

/// Moves the items for which `right` holds behind all others. Returns the number of the others.
fn partition(items: &mut [GatheredEntry], right: impl Fn(&GatheredEntry) -> bool) -> usize {
    // Buckets are in the order of hashes, so nearly all items are on the correct side already.
    let (mut from, mut end) = (0, items.len());
    loop {
        // Items before `from` belong to the left, items from `end` on to the right.
        while from < end && !right(&items[from]) {
            from += 1;
        }
        while from < end && right(&items[end - 1]) {
            end -= 1;
        }
        if from == end {
            return from;
        }
        // Both of these are on the wrong side.
        items.swap(from, end - 1);
    }
}

/// The number of leading bits that all gathered hashes share.
fn common_bits(gather: &Gather) -> u32 {
    let first = gather.items.first().map_or(0, |i| i.hash);
    let differ = gather.items.iter().fold(0, |d, i| d | (i.hash ^ first));
    differ.leading_zeros().min(HASH_BITS)
}
