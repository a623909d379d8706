//! The default structure of unordered tables: entries sorted by hash, then by key.
//!
//! ```text
//!  trie over the bits of hashes ─→ leaf     head | bucket | bucket | … | bucket
//!                                  bucket   slot entries (tag, offset) →  free  ← objects
//! ```
//!
//! A position is the top 48 bits of the hash (6 bytes, big endian) and then the key. The first bits
//! of the hash lead through the trie to a leaf. The bits after the leaf's depth are a fraction of
//! one. It is multiplied by the number of buckets: the whole part is the entry's *home bucket*, and
//! the next six bits are the *tag* in its slot entry.
//!
//! Invariants (docs/design.md §4.3):
//! * H1: An entry is in its home bucket, or *displaced* to a later one. Then each bucket from its
//!   home up to the one before its own has the overflow bit for the entry's eighth of the tags.
//! * H2: Home buckets are in the order of hashes, and so are the tags of the entries of one home.
//! * H3: The range and the shape of a leaf never change.
//! * H4: Leaves store no hashes except the tags. Hashes are computed again by the index's
//!   [`KeyRule`].
//!
//! Where things are:
//!
//! | file | what |
//! |---|---|
//! | `read`, `write` | the steps of a read and of a write |
//! | `search`, `hit` | finding an entry in a leaf, and reading its value |
//! | `successor`, `tags` | finding the entry after a position |
//! | `key_rule` | how keys are delimited and hashed |
//! | `change` | changes of buckets by the holder of the lock |
//! | `removed` | what this thread has removed from a leaf, for scans that read it |
//! | `resize`, `rebuild`, `sizes` | leaves grow, split, shrink, merge |
//! | `trie` | the path to the leaves |
//! | `scan`, `group` | scans, and the entries of one home in their order |
//! | `homes` | which entries of a scan's batch may have a hash |
//! | `marks` | numbers that users keep beside entries |
//! | `leaf`, `bucket`, `slot` | memory that readers and one writer share: the unsafe code |
//! | `eight` | eight slot entries in a vector |
//! | `shape`, `plain` | the layout of buckets, as numbers and as plain bytes |
//!
//! Source: extendible hashing (Fagin, Nievergelt, Pippenger and Strong 1979) with leaves of
//! buckets; optimistic lock coupling (Leis, Scheibner, Kemper and Neumann 2016) for readers; tags
//! as in the tables of F14 and SwissTable; splits under contention after contention-adapting trees
//! (Sagonas and Winblad 2015). Deviations: the directory is a trie of nodes; a bucket is a slotted
//! page whose entries may be displaced to the next; objects of up to 240 bytes lie in their leaf,
//! whatever their lengths; longer ones lie outside.
//!
//! When not to use it: if all hashes are equal, there is a single leaf, which grows without bound
//! and is searched from end to end. This works, but slowly. Ranges of keys need the key order.

#[allow(unsafe_code)]
pub(crate) mod bucket;
mod change;
#[allow(unsafe_code)]
mod eight;
mod group;
pub(crate) mod hit;
pub(crate) mod homes;
pub(crate) mod key_rule;
#[allow(unsafe_code)]
pub(crate) mod leaf;
mod marks;
pub(crate) mod plain;
mod read;
mod rebuild;
pub(crate) mod removed;
mod resize;
mod scan;
pub(crate) mod search;
pub(crate) mod shape;
mod sizes;
#[allow(unsafe_code)]
mod slot;
mod successor;
mod tags;
#[allow(unsafe_code)]
mod trie;
pub(crate) mod write;

use crate::config::LeafConfig;
use crate::contention::UNCONTENDED;
use crate::hash::key_rule::{KeyProperties, KeyRule, Rule};
use crate::hash::search::Undecided;
use crate::hash::shape::truncated;
use crate::hash::sizes::Sizes;
use crate::hash::successor::LowerBound;
use crate::hash::trie::Trie;
use crate::hint::Hint;
use crate::scratch::with_scratch;
use crate::shared::Shared;
use crate::sync::Mutex;
use crate::traits::{step_by_scan, HASH};
use crate::{
    Batch, Change, Container, Direction, Key, Lookup, MarkedUpdater, Predicate, Preparation,
    Previous, Seen, ShortValues, Start, Stats, StepEntry, Stepped, Unique, Updater,
    MAX_KEYS_PER_LOOKUP, SHORT_VALUE,
};
use crossbeam_epoch::Guard;
use read::LeafStep;
use smallvec::SmallVec;
use write::{Found, LockedKey};

/// An index whose entries are sorted by hash, then by key.
pub struct HashOrder<R: KeyRule = Rule> {
    pub(crate) trie: Trie,
    pub(crate) keys: KeyProperties<R>,
    pub(crate) shared: Shared,
    pub(crate) sizes: Sizes,
    /// The hash at which `free_some` continues; `None` at the end.
    freed: Mutex<Option<u64>>,
}

impl<R: KeyRule> HashOrder<R> {
    /// An empty index, whose keys follow this rule.
    pub(crate) fn new(rule: R, config: LeafConfig) -> Self {
        // The sizes are computed once. They depend on the configuration alone.
        let sizes = Sizes::new(&config);
        let shared = Shared {
            config,
            ..Shared::default()
        };
        let keys = KeyProperties::new(rule);
        HashOrder {
            trie: Trie::new(&shared, sizes.empty(sizes.first_shape(), 0)),
            keys,
            shared,
            sizes,
            freed: Mutex::new(Some(0)),
        }
    }

    /// The same index, for callers that hold locks of their own during an operation. Large garbage
    /// is only freed when they call `flush_postponed`.
    pub(crate) fn under_locks(mut self) -> Self {
        self.shared.callers_hold_locks = true;
        self
    }

    /// Frees large garbage that was put off until the caller holds no lock.
    #[inline]
    pub(crate) fn flush_postponed(&self, guard: &Guard) {
        self.shared.flush_postponed(guard);
    }
}

impl<R: KeyRule> Unique for HashOrder<R> {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        let found = self.try_read(guard, key, |view, hit| {
            // `hit` isn't validated yet. What is copied here is discarded if it turns out to be
            // torn.
            if let Some(hit) = &hit {
                view.copy_value(hit, out)?;
            }
            Ok(hit.is_some())
        });
        match found {
            Ok(found) => found,
            Err(search::Undecided) => {
                // Remove what the attempt has appended. The general read decides.
                out.truncate(from);
                self.get_general(guard, key, out)
            }
        }
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.get_into_at(guard, self.locate(guard, key), key, out, long)
    }

    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.get_or_lend_at(guard, key, out, long, lent)
    }

    fn get_many(
        &self,
        guard: &Guard,
        keys: &[Key<'_>],
        _prefetch_first: bool,
        out: &mut ShortValues,
    ) {
        // `prefetch_first` makes no difference: `locate` prefetches all leaves before the first is
        // searched.
        let places = keys.iter().map(|&key| (key, self.locate(guard, key)));
        let places: SmallVec<[_; MAX_KEYS_PER_LOOKUP]> = places.take(MAX_KEYS_PER_LOOKUP).collect();
        out.fill(places.iter(), |&(key, place), value| {
            self.get_into_at(guard, place, key, value, None)
        });
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        match self.try_read(guard, key, |_, hit| Ok(hit.is_some())) {
            Ok(found) => found,
            Err(search::Undecided) => self.contains_general(guard, key),
        }
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        for &key in keys {
            self.locate(guard, key);
        }
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let Found { locked, hit } = self.find_locked::<false>(guard, key);
        let hit = hit.as_ref();
        let found = Found { locked, hit };
        self.put_found::<false>(guard, key, found, value, predicate, |_, mark| mark)
    }

    fn put_new(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        match self.find_absent(guard, key) {
            // The key was absent when the leaf was read, and is so still: the leaf is locked at the
            // version that was read.
            Ok(Some(locked)) => {
                let found = Found { locked, hit: None };
                self.put_found::<false>(guard, key, found, value, predicate, |_, mark| mark)
            }
            // The key is there. No lock was taken: the operation is a read.
            Ok(None) => Previous::Refused,
            // As any put, under the lock from the beginning.
            Err(Undecided) => self.put(guard, key, value, &mut |old| {
                old.is_none() && predicate(old)
            }),
        }
    }

    fn get_with_hint<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
        hint: &mut Hint<'g>,
    ) -> Lookup {
        self.get_with_hint_at(guard, self.locate(guard, key), key, out, long, hint)
    }

    fn put_with_hint(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        hint: &Hint<'_>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        // The hint is of no use if another writer holds the lock or has changed the leaf, or if it
        // is a hint of another index. Then the key is searched for.
        let Some((mut leaf, home, hit)) = hint.lock_hash(self.shared.number.0) else {
            return self.put(guard, key, value, predicate);
        };
        // The leaf is as the read has found it, so the entry is where it was.
        let contention = leaf.add_contention(UNCONTENDED);
        let locked = LockedKey {
            leaf,
            home,
            contention,
        };
        let hit = Some(hit);
        let found = Found { locked, hit };
        self.put_found::<false>(guard, key, found, value, predicate, |_, mark| mark)
    }

    fn remove(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        // As in `put`, the predicate decides under the lock.
        self.remove_if(guard, key, |leaf, hit| predicate(leaf.value(hit)))
    }

    fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        // The version is only meaningful in the index that the batch was read from.
        let Some(seen) = batch.seen.filter(|seen| seen.index == self.shared.number.0) else {
            return false;
        };
        let hash = truncated(key.hash);
        let Ok(mut leaf) = self.trie.find(hash, guard).lock() else {
            return false;
        };
        // An unordered batch lists the leaf's entries in the order of their slot entries. If the
        // version is still the same, they are all in the same places (see `is_unchanged`).
        if !batch.unordered || !leaf.was_at(seen.version) || !predicate() {
            return false;
        }
        // Nobody can have changed the leaf since the check of its version: the lock is held. So the
        // entries that are removed are those that the scan matched.
        let handles = leaf.remove_chosen(chosen);
        if leaf.leaf().live_bytes() < leaf.leaf().bounds().least as usize {
            self.shrink_or_merge_read(guard, hash, leaf);
        } else {
            drop(leaf);
        }
        // Retire the outside objects without a lock: this may free arbitrary garbage.
        for handle in handles {
            self.shared.retire(guard, Some(handle));
        }
        true
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        with_scratch(|scratch| self.update_with(guard, key, scratch, f))
    }

    fn update_with(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        let Found { locked, hit } = self.find_locked::<false>(guard, key);
        let hit = hit.as_ref();
        let found = Found { locked, hit };
        self.update_found::<false>(guard, key, found, scratch, |old, new, _| f(old, new))
    }

    fn update_present(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        match self.find_present(guard, key) {
            // The leaf is locked at the version that was read, so the entry is where it was found.
            Ok(Some(Found { locked, hit })) => {
                let hit = Some(&hit);
                let found = Found { locked, hit };
                self.update_found::<false>(guard, key, found, scratch, |old, new, _| f(old, new))
            }
            // The key is absent. No lock was taken: the operation is a read.
            Ok(None) => false,
            // As any update, under the lock from the beginning.
            Err(Undecided) => self.update_with(guard, key, scratch, &mut |old, new| match old {
                Some(_) => f(old, new),
                None => Change::Keep,
            }),
        }
    }

    fn put_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
        preparation: &mut Preparation<'_>,
    ) -> Previous {
        let Found { locked, hit } = self.find_locked::<true>(guard, key);
        let hit = hit.as_ref();
        let found = Found { locked, hit };
        self.put_found::<true>(guard, key, found, value, predicate, |old, mark| {
            preparation.run(old, mark)
        })
    }

    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedUpdater<'_>) -> bool {
        with_scratch(|scratch| {
            let Found { locked, hit } = self.find_locked::<true>(guard, key);
            let hit = hit.as_ref();
            let found = Found { locked, hit };
            self.update_found::<true>(guard, key, found, scratch, f)
        })
    }

    fn remove_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Previous {
        self.remove_if(guard, key, |leaf, hit| {
            predicate(leaf.value(hit), leaf.mark(hit))
        })
    }

    fn flush_postponed(&self, guard: &Guard) {
        self.shared.flush_postponed(guard);
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        crate::hash::scan::scan(self, guard, start, direction, batch);
    }

    /// A leaf: its entries have nothing in common but the beginning of their hashes. The next
    /// sample is the next leaf. Leaves at random points wouldn't do: where a table has shrunk,
    /// leaves with small ranges of hashes may have as many entries as others.
    fn sample<'g>(&'g self, guard: &'g Guard, point: u64, batch: &mut Batch<'g>) -> u64 {
        // A scan from the leaf's first hash reads the whole leaf, unsorted, if no number of entries
        // is wanted. Set the batch so for this scan.
        let hash = self.trie.find(point, guard).shape().first_hash(point);
        let want = std::mem::take(&mut batch.want);
        let any_order = std::mem::replace(&mut batch.any_order, true);
        with_scratch(|position| {
            self.position(Key { bytes: &[], hash }, position);
            self.scan(guard, Start::At(position), Direction::Forward, batch);
        });
        (batch.want, batch.any_order) = (want, any_order);
        // After the last leaf, begin again with the first one.
        if batch.done {
            return 0;
        }
        // The scan would go on at the first hash of the next leaf.
        let mut next = [0; 8];
        next[..HASH].copy_from_slice(&batch.resume[..HASH]);
        u64::from_be_bytes(next)
    }

    fn step<'g>(
        &'g self,
        guard: &'g Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) -> bool {
        if direction == Direction::Backward {
            return step_by_scan(self, guard, key, direction, batch);
        }
        // Forward only: homes and tags are searched in ascending order.
        batch.clear();
        let mut bound = LowerBound::of_step(key);
        // The first leaf tells whether the key is present. If it has no entry after the key, the
        // following leaves are searched from their first hashes on, until one has an entry.
        let (mut is_present, mut passed) = (false, 0);
        loop {
            let LeafStep { next, end } = self.step_in_leaf(guard, bound, batch);
            is_present |= next.is_present;
            match end {
                _ if next.found => {
                    // Empty leaves may have been skipped.
                    batch
                        .seen
                        .iter_mut()
                        .for_each(|seen| seen.from_edge = key.is_none());
                    return is_present;
                }
                Some(hash) => {
                    self.pass_empty(guard, bound.hash, &mut passed);
                    // Empty leaves are work like entries that are left out.
                    if batch.pauses_after(passed as usize) {
                        batch.clear();
                        batch.skipped = passed as usize;
                        return is_present;
                    }
                    bound = LowerBound::all_from(hash);
                }
                None => {
                    batch.done = true;
                    return is_present;
                }
            }
        }
    }

    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        match direction {
            Direction::Forward => self.try_step_in_leaf(guard, LowerBound::of_step(key), entry),
            Direction::Backward => None,
        }
    }

    fn is_unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        // The version that is found under a key only grows, also when its leaf is replaced (see
        // `seqlock::version`). So an equal version means the same leaf with the same entries.
        let hash = truncated(key.hash);
        let leaf = match seen.from_edge {
            true => self.find_past_empty(guard, hash),
            false => Some(self.trie.find(hash, guard)),
        };
        let version = leaf.and_then(|leaf| leaf.version().ok());
        seen.index == self.shared.number.0 && version == Some(seen.version)
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
        out.extend_from_slice(key.bytes);
    }
}

impl<R: KeyRule> Container for HashOrder<R> {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let mut freed = 0;
        while let Some(hash) = *cursor {
            if freed >= limit.max(1) {
                return false;
            }
            // If the leaf is obsolete, search for its successor.
            let Ok(locked) = self.trie.find(hash, guard).lock() else {
                continue;
            };
            // `empty` may replace the leaf, so read the end of its range first.
            let end = locked.leaf().shape().end_hash(hash);
            freed += 1 + self.empty(guard, hash, locked, f);
            self.merge_empty(guard, hash);
            *cursor = end;
        }
        // The next call starts over, and finds entries that were inserted meanwhile.
        *cursor = Some(0);
        true
    }

    fn len(&self) -> usize {
        let guard = crate::pin();
        let (mut len, mut at) = (0, Some(0));
        // Leaf by leaf, by the ranges of hashes. Each count is of one instant, and the sum isn't.
        while let Some(hash) = at {
            let leaf = self.trie.find(hash, &guard);
            len += leaf.count();
            at = leaf.shape().end_hash(hash);
        }
        len
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.shared.counters.bytes()
    }

    fn expect_keys(&self, now: usize, soon: usize) {
        self.shared.expected.announce(now, soon);
    }

    fn stats(&self) -> Stats {
        let depth = self.trie.depth(&crate::pin());
        self.shared.counters.stats(depth)
    }
}
