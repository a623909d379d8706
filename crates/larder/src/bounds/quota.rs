//! The limits of a table, the weight of its objects, and the choice of victims.
//!
//! # Invariants (docs/design.md §5.9.2)
//!
//! * EX6: `weight` is the weight of the objects in the index, expired ones included. Only the
//!   changes of threads that have changed an object and not updated the weight yet are missing.
//! * EX8: A read takes no lock, and writes nothing if the written value would be the same (see
//!   `heat`).

use super::candidates::{self, Candidates, Chooser, Victim};
use super::heat::Policy;
use super::policies::CurrentPolicy;
use super::stamp::{self, object_of};
use crate::keys;
use crate::options::{Evict, Limits};
use crossbeam_utils::CachePadded;
use larder_index::sync::{planted, Fault, RwLock, RwLockReadGuard, RwLockWriteGuard};
use larder_index::{Guard, Key, Unique};
use larder_term::hash::Seed;
use larder_term::object;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::Arc;

/// One of this number of objects is in the window.
const WINDOW: usize = 100;

/// Data of a policy for more objects than this are made by the expirer, unless a victim must be
/// chosen before: that takes a millisecond and more.
const MADE_AT_ONCE: usize = 1 << 16;

/// The bytes of an object besides its key and value: its stamp, its slot in a leaf, and a share of
/// the free space in leaves.
const OVERHEAD: usize = stamp::LEN + 15;

/// What a write adds to a table, less what it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceNeeded {
    pub(crate) objects: i64,
    pub(crate) weight: i64,
}

impl std::ops::AddAssign for SpaceNeeded {
    fn add_assign(&mut self, other: SpaceNeeded) {
        self.objects += other.objects;
        self.weight += other.weight;
    }
}

/// The current limits; `usize::MAX` if there is none.
struct LimitSettings {
    max_size: AtomicUsize,
    max_memory: AtomicUsize,
    /// An `Evict`.
    evict: AtomicU8,
}

/// The state of a table with limits.
pub(crate) struct Quota {
    settings: Arc<LimitSettings>,
    seed: Seed,
    /// Whether the index is ordered. Its keys come without hashes.
    ordered: bool,
    weight: CachePadded<AtomicI64>,
    /// The number of objects that were inserted since heat is recorded.
    inserted: CachePadded<AtomicUsize>,
    /// The number of objects for which heat is recorded; 0 if it isn't recorded, because the table
    /// has much room.
    capacity: AtomicUsize,
    data: CurrentPolicy,
    candidates: Candidates,
    evicted: AtomicU64,
    /// Held from the comparison with the limits until the victim is removed: shared by writers,
    /// exclusively by the expirer. So the expirer never evicts for a surplus that a writer has
    /// seen.
    evictors: RwLock<()>,
}

/// The weight of an object without its stamp: approximately the bytes that it takes, with its
/// binaries outside.
#[inline]
pub(crate) fn weight(key: &[u8], value: &[u8]) -> i64 {
    (key.len() + value.len() + object::all_outside_bytes(value) + OVERHEAD) as i64
}

/// How a write changes a table with limits.
#[derive(Default)]
pub(crate) struct Growth {
    /// The change of the weight.
    pub(crate) delta: i64,
    /// Whether there was no object before, or an expired one.
    pub(crate) is_new: bool,
    /// The object, if it is heavier by itself than the limit.
    giant: Option<Victim>,
}

impl Quota {
    /// The effect of a write of an object that replaces a value with a stamp, if there is one.
    pub(crate) fn growth(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
        is_new: bool,
    ) -> Growth {
        let heavy = weight(key, new);
        // In a table that evicts, an object that alone exceeds the limit goes at once: nothing else
        // could make room for it. In another table nobody would take it from the candidates.
        let giant = !self.refuses_when_full() && heavy as usize > self.max_memory();
        Growth {
            delta: heavy - old.map_or(0, |old| weight_of_stamped(key, old)),
            is_new,
            giant: giant.then(|| {
                let [hash, fingerprint] = [key, new].map(|bytes| self.seed.hash(bytes));
                Victim::certain(key, hash, fingerprint)
            }),
        }
    }

    /// Called after a write, without the lock. `objects` is the number of objects.
    pub(crate) fn grown(&self, guard: &Guard, key: Key<'_>, growth: Growth, objects: usize) {
        // An object that is heavier than the whole table may be is a candidate before its weight
        // counts. So nobody evicts anything else for it.
        if let Some(giant) = growth.giant {
            self.candidates.add(giant);
        }
        self.add_weight(growth.delta);
        // Only a new object enters the window of new objects.
        if growth.is_new {
            self.record_insert(guard, key, objects);
        }
    }

    pub(super) fn new(limits: &Limits, seed: &Seed, ordered: bool) -> Self {
        let settings = LimitSettings {
            max_size: AtomicUsize::new(limits.max_size.unwrap_or(usize::MAX)),
            max_memory: AtomicUsize::new(limits.max_memory.unwrap_or(usize::MAX)),
            evict: AtomicU8::new(limits.evict as u8),
        };
        Self::of(Arc::new(settings), seed, ordered)
    }

    fn of(settings: Arc<LimitSettings>, seed: &Seed, ordered: bool) -> Self {
        Quota {
            settings,
            seed: seed.clone(),
            ordered,
            weight: CachePadded::default(),
            inserted: CachePadded::default(),
            capacity: AtomicUsize::new(0),
            data: CurrentPolicy::default(),
            candidates: Candidates::default(),
            evicted: AtomicU64::new(0),
            evictors: RwLock::new(()),
        }
    }

    /// Makes a quota for other objects of the same table.
    pub(super) fn anew(&self) -> Self {
        Self::of(Arc::clone(&self.settings), &self.seed, self.ordered)
    }

    /// The limits.
    pub(super) fn limits(&self) -> Limits {
        let most = |most: usize| Some(most).filter(|&most| most != usize::MAX);
        Limits {
            max_size: most(self.max_size()),
            max_memory: most(self.max_memory()),
            evict: self.evict(),
        }
    }

    /// Sets other limits. Data of other policies are dropped.
    pub(super) fn set(&self, limits: &Limits) {
        let LimitSettings {
            max_size,
            max_memory,
            evict,
        } = &*self.settings;
        // Ordering: Relaxed, as for all settings: a concurrent write uses the old limits or the new
        // ones.
        max_size.store(limits.max_size.unwrap_or(usize::MAX), Ordering::Relaxed);
        max_memory.store(limits.max_memory.unwrap_or(usize::MAX), Ordering::Relaxed);
        // Ordering: SeqCst, pairs with `policy_or_new`. A thread that makes data of the old policy
        // sees the new one after it, or these are seen here.
        evict.store(limits.evict as u8, Ordering::SeqCst);
        self.keep_only(limits.evict, &larder_index::pin());
    }

    /// Drops the data of other policies than this one.
    #[cold]
    fn keep_only(&self, evict: Evict, guard: &Guard) {
        self.data.keep_only(evict, guard);
        if evict != Evict::TinyLfu {
            self.candidates.clear_windows();
        }
    }

    pub(crate) fn max_size(&self) -> usize {
        // Ordering: Relaxed, as in `set`.
        self.settings.max_size.load(Ordering::Relaxed)
    }

    pub(crate) fn max_memory(&self) -> usize {
        // Ordering: Relaxed, as in `set`.
        self.settings.max_memory.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn evict(&self) -> Evict {
        // Ordering: Relaxed, as in `set`.
        self.evict_by(Ordering::Relaxed)
    }

    #[inline]
    fn evict_by(&self, ordering: Ordering) -> Evict {
        match self.settings.evict.load(ordering) {
            policy if policy == Evict::Lru as u8 => Evict::Lru,
            policy if policy == Evict::TinyLfu as u8 => Evict::TinyLfu,
            policy if policy == Evict::Sieve as u8 => Evict::Sieve,
            _ => Evict::None,
        }
    }

    /// Adds to the weight.
    #[inline]
    pub(crate) fn add_weight(&self, delta: i64) {
        if delta != 0 {
            // Ordering: Release, pairs with `weight`: a thread that finds the weight of an object
            // also finds the object among those that go first (`grown`).
            self.weight.fetch_add(delta, Ordering::Release);
        }
    }

    /// The weight of all objects.
    pub(crate) fn weight(&self) -> usize {
        // Ordering: Acquire, see `add_weight`. A removal may be counted before the insert.
        usize::try_from(self.weight.load(Ordering::Acquire)).unwrap_or(0)
    }

    /// Whether a table with this number of objects exceeds its limits, and evicts.
    pub(crate) fn has_surplus(&self, objects: usize) -> bool {
        !self.refuses_when_full()
            && (objects > self.max_size() || self.weight() > self.max_memory())
    }

    /// Keeps the expirer from evicting. Waits at most for one eviction.
    pub(crate) fn evicting(&self) -> RwLockReadGuard<'_, ()> {
        self.evictors.read()
    }

    /// Keeps writers from evicting, unless one does.
    pub(crate) fn evicting_alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.evictors.try_write()
    }

    /// The text of the error when there is no room.
    pub(crate) fn full(&self, objects: usize) -> String {
        // The caller doesn't know which of the limits was exceeded, so the text names those that
        // there are.
        let (most, heaviest) = (self.max_size(), self.max_memory());
        let mut limits = String::new();
        if most != usize::MAX {
            limits += &format!("its max_size is {most}, of which it has {objects}, ");
        }
        if heaviest != usize::MAX {
            let weight = self.weight();
            limits += &format!("its max_memory is {heaviest} bytes, of which it has {weight}, ");
        }
        format!("the table has no room for this: {limits}and it evicts nothing")
    }

    /// Whether writes are refused when there is no room.
    pub(crate) fn refuses_when_full(&self) -> bool {
        self.evict() == Evict::None
    }

    /// Whether a table with this number of objects has room for `more` objects, whatever their
    /// weight.
    pub(crate) fn has_capacity_for(&self, objects: usize, more: usize) -> bool {
        !self.refuses_when_full()
            || (self.max_memory() == usize::MAX && objects + more <= self.max_size())
    }

    /// Whether a table with this number of objects has no room for what is needed, and refuses it.
    pub(crate) fn refuses(&self, objects: usize, need: SpaceNeeded) -> bool {
        // What isn't needed can't exceed a limit, even if the table is over it.
        let is_over = |has: usize, more: i64, most: usize| {
            usize::try_from(more).is_ok_and(|more| more > 0 && has + more > most)
        };
        self.refuses_when_full()
            && (is_over(objects, need.objects, self.max_size())
                || is_over(self.weight(), need.weight, self.max_memory()))
    }

    /// The data of the policy, if they are recorded.
    fn policy<'g>(&self, guard: &'g Guard) -> Option<&'g dyn Policy> {
        // Ordering: Relaxed; the data are published by their cell.
        let capacity = self.capacity.load(Ordering::Relaxed);
        if capacity == 0 {
            return None;
        }
        Some(self.data.get(self.evict(), capacity, guard)?.policy())
    }

    /// Records that an object was read, or is about to be written. A write does so under the lock
    /// of the entry, when it is certain. So a thread that evicts sees the use if it has the lock
    /// later, and an operation that writes nothing is no use.
    #[inline]
    pub(crate) fn record_use(&self, guard: &Guard, key: Key<'_>) {
        // Ordering: Relaxed, as in `policy`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        if capacity == 0 {
            return;
        }
        if let Some(data) = self.data.get(self.evict(), capacity, guard) {
            data.record_use(self.hash(key));
        }
    }

    /// The hash of a key by which its heat is recorded. An index in hash order has computed it.
    #[inline]
    fn hash(&self, key: Key<'_>) -> u64 {
        keys::hash_of(&self.seed, self.ordered, key)
    }

    /// Records that a key was inserted. `objects` is the current number of objects.
    fn record_insert(&self, guard: &Guard, key: Key<'_>, objects: usize) {
        let evict = self.evict();
        if evict == Evict::None || !self.ensure_capacity(guard, objects) {
            return;
        }
        // Ordering: Relaxed, a figure.
        let inserted = self.inserted.fetch_add(1, Ordering::Relaxed) + 1;
        let hash = self.hash(key);
        // Ordering: Relaxed, as in `policy`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        // A large policy takes long to make. A background thread does that, and inserts until then
        // aren't recorded.
        match self.data.get(evict, capacity, guard) {
            Some(data) => data.policy().inserted(hash, inserted),
            None if capacity > MADE_AT_ONCE => {}
            None => self.policy_or_new(evict, guard).inserted(hash, inserted),
        }
        // A new object enters the window first (`candidates`).
        if evict == Evict::TinyLfu {
            let key = Key { hash, ..key };
            self.candidates.enter_window(objects / WINDOW, key);
        }
    }

    /// Whether heat is recorded, for which a capacity is chosen if need be. It is not while the
    /// table is less than half full.
    fn ensure_capacity(&self, guard: &Guard, objects: usize) -> bool {
        // Ordering: Relaxed, as in `policy`; here and below. If several threads set it at the same
        // time, any of them may be the last.
        let capacity = self.capacity.load(Ordering::Relaxed);
        // It was chosen for at most twice the objects of that time. With a third of it, the limits
        // have been lowered, or the table was emptied.
        if capacity > 0 && (capacity / 3..=2 * capacity).contains(&objects) {
            return true;
        }
        let (most, heaviest, weight) = (self.max_size(), self.max_memory(), self.weight());
        if objects < most / 2 && weight < heaviest / 2 {
            if capacity > 0 {
                self.capacity.store(0, Ordering::Relaxed);
                self.keep_only(Evict::None, guard);
            }
            return false;
        }
        // The number of objects that the table will have, if all weigh as much as the present ones
        // do. There may be more now, which will be evicted.
        let by_weight = match heaviest {
            usize::MAX => most,
            _ => (objects as u128 * heaviest as u128 / weight.max(1) as u128) as usize,
        };
        let capacity = most.min(by_weight).max(1);
        self.capacity.store(capacity, Ordering::Relaxed);
        true
    }

    /// For the expirer: makes the data of the policy if heat is to be recorded. If the table has
    /// far fewer objects than they are for, replaces them by smaller ones. `objects` is their
    /// number.
    pub(crate) fn fit(&self, guard: &Guard, objects: usize) {
        let evict = self.evict();
        // Ordering: Relaxed, as in `policy`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        if evict == Evict::None || capacity == 0 {
            return;
        }
        if capacity / 3 <= objects || self.ensure_capacity(guard, objects) {
            self.policy_or_new(evict, guard);
        }
    }

    /// The data of the policy, which are created if they don't exist yet.
    fn policy_or_new<'g>(&self, evict: Evict, guard: &'g Guard) -> &'g dyn Policy {
        // Ordering: Relaxed, as in `policy`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        let data = self.data.make(evict, capacity, guard).policy();
        // Ordering: SeqCst, see `set`.
        let now = self.evict_by(Ordering::SeqCst);
        if now != evict {
            self.keep_only(now, guard);
        }
        data
    }

    /// Chooses an object to evict from an index with stamps. `None` if there is none.
    pub(crate) fn choose(
        &self,
        index: &dyn Unique,
        guard: &Guard,
        now: u64,
        objects: usize,
    ) -> Option<Victim> {
        // The policy may have been changed meanwhile. It is read once for the whole choice.
        let evict = self.evict();
        if evict == Evict::None {
            return None;
        }
        let chooser = Chooser {
            policy: self.policy_or_new(evict, guard),
            index,
            seed: &self.seed,
            now,
            // Only this policy has a window. Its size follows the number of objects, as that
            // changes.
            window: (evict == Evict::TinyLfu).then_some(objects / WINDOW),
        };
        self.candidates.choose(&chooser, guard)
    }

    /// Called when a victim is removed, or its object is another one by now.
    pub(crate) fn settle_victim(&self, victim: &Victim) {
        self.candidates.settle(victim);
    }

    /// Makes the next choice use a new sample.
    pub(crate) fn forget_candidates(&self) {
        self.candidates.forget();
    }

    /// Whether the key of a victim was used, or its value written, since the choice. Called under
    /// the lock of the entry, under which a writer records the use of a key.
    pub(crate) fn is_fresher(&self, guard: &Guard, victim: &Victim, value: &[u8]) -> bool {
        if planted(Fault::FreshEvicted) {
            return false;
        }
        let policy = self.policy(guard);
        let is_other = |was| candidates::fingerprint(&self.seed, value) != was;
        // The limit may have been raised since.
        let fits = || weight_of_stamped(&victim.key, value) as usize <= self.max_memory();
        policy.is_some_and(|policy| victim.is_used(policy))
            || victim.fingerprint.is_some_and(is_other)
            || victim.is_certain() && fits()
    }

    /// The heat of a key.
    #[cfg(test)]
    pub(crate) fn heat_of(&self, key: Key<'_>) -> u32 {
        let guard = larder_index::pin();
        let policy = self.policy(&guard).unwrap();
        policy.heat(self.hash(key))
    }

    /// Halves the counts of `tinylfu`.
    #[cfg(test)]
    pub(crate) fn halve_counts(&self) {
        let guard = larder_index::pin();
        let capacity = self.capacity.load(Ordering::Relaxed);
        let data = self.data.get(Evict::TinyLfu, capacity, &guard).unwrap();
        data.end_epoch();
    }

    /// Counts an eviction.
    pub(crate) fn note_eviction(&self) {
        // Ordering: Relaxed, a figure.
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of evictions.
    pub(super) fn evicted(&self) -> u64 {
        // Ordering: Relaxed, a figure.
        self.evicted.load(Ordering::Relaxed)
    }

    /// The memory of the quota in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of::<LimitSettings>()
            + self.data.memory()
            + self.candidates.memory()
    }
}

/// The weight of a value with stamp under a key.
#[inline]
pub(crate) fn weight_of_stamped(key: &[u8], value: &[u8]) -> i64 {
    weight(key, object_of(value))
}
