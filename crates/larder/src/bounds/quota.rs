//! How much a table with limits has, and which of its objects go.
//!
//! # Invariant
//!
//! `weight` is the weight of the objects in the index, expired ones too, but for what threads that
//! have changed an object are about to add. The number of objects is the store's own count.
//!
//! Nobody who reads takes a lock, or writes where nothing changes (see `heat`).

use super::candidates::{self, Candidates, Chooser, Victim};
use super::clock;
use super::heat::{PerSize, Policy, Recency, Sketch};
use super::stamp::{self, object_of};
use crate::options::{Evict, Limits};
use crossbeam_utils::CachePadded;
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Key, Unique};
use larder_term::hash::Seed;
use larder_term::object;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::Arc;

/// Of how many objects one is in the window.
const WINDOW: usize = 100;

/// Bytes of an object besides its key and value: its stamp, its place in a leaf, and a share of
/// what leaves have free.
const OVERHEAD: usize = stamp::LEN + 15;

/// What the limits are now; `usize::MAX`: none.
struct Settings {
    max_size: AtomicUsize,
    max_memory: AtomicUsize,
    /// An `Evict`.
    evict: AtomicU8,
}

/// The state of a table with limits.
pub(crate) struct Quota {
    settings: Arc<Settings>,
    seed: Seed,
    weight: CachePadded<AtomicI64>,
    /// Objects that were inserted since heat is kept.
    inserted: CachePadded<AtomicUsize>,
    /// For how many objects heat is kept; 0: it isn't, as there is much room.
    capacity: AtomicUsize,
    sketch: PerSize<Sketch>,
    recency: PerSize<Recency>,
    candidates: Candidates,
    evicted: AtomicU64,
}

/// The weight of an object without stamp: about the bytes that it takes, with binaries outside.
#[inline]
pub(crate) fn weight(key: &[u8], value: &[u8]) -> i64 {
    (key.len() + value.len() + object::outside_bytes(value) + OVERHEAD) as i64
}

/// What a write makes of a table with limits.
#[derive(Default)]
pub(crate) struct Growth {
    /// By how much the weight changes.
    pub(crate) delta: i64,
    /// There was no object before, or an expired one.
    pub(crate) is_new: bool,
    /// The object, if it is heavier by itself than all may be.
    giant: Option<Victim>,
}

impl Quota {
    /// What a write of an object makes, in the place of a value with stamp, if there is one.
    pub(crate) fn growth(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
        is_new: bool,
    ) -> Growth {
        let heavy = weight(key, new);
        let giant = heavy as usize > self.max_memory();
        Growth {
            delta: heavy - old.map_or(0, |old| weight_of_stamped(key, old)),
            is_new,
            giant: giant.then(|| Victim::certain(key, self.seed.hash(new))),
        }
    }

    /// After a write without the lock, when there are so many objects.
    pub(crate) fn grown(&self, key: &[u8], growth: Growth, objects: usize) {
        self.weigh(growth.delta);
        if growth.is_new {
            self.entered(key, objects);
        }
        if let Some(giant) = growth.giant {
            self.candidates.add(giant);
        }
    }

    pub(super) fn new(limits: &Limits, seed: &Seed) -> Self {
        let settings = Settings {
            max_size: AtomicUsize::new(limits.max_size.unwrap_or(usize::MAX)),
            max_memory: AtomicUsize::new(limits.max_memory.unwrap_or(usize::MAX)),
            evict: AtomicU8::new(limits.evict as u8),
        };
        Self::of(Arc::new(settings), seed)
    }

    fn of(settings: Arc<Settings>, seed: &Seed) -> Self {
        Quota {
            settings,
            seed: seed.clone(),
            weight: CachePadded::default(),
            inserted: CachePadded::default(),
            capacity: AtomicUsize::new(0),
            sketch: PerSize::default(),
            recency: PerSize::default(),
            candidates: Candidates::default(),
            evicted: AtomicU64::new(0),
        }
    }

    /// That of other objects of the same table.
    pub(super) fn anew(&self) -> Self {
        Self::of(Arc::clone(&self.settings), &self.seed)
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

    /// Other limits, from here on.
    pub(super) fn set(&self, limits: &Limits) {
        let Settings {
            max_size,
            max_memory,
            evict,
        } = &*self.settings;
        // Ordering: Relaxed, as of all settings: a write beside this goes by the old or the new.
        max_size.store(limits.max_size.unwrap_or(usize::MAX), Ordering::Relaxed);
        max_memory.store(limits.max_memory.unwrap_or(usize::MAX), Ordering::Relaxed);
        evict.store(limits.evict as u8, Ordering::Relaxed);
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
        match self.settings.evict.load(Ordering::Relaxed) {
            own if own == Evict::Lru as u8 => Evict::Lru,
            own if own == Evict::TinyLfu as u8 => Evict::TinyLfu,
            _ => Evict::None,
        }
    }

    /// Adds to the weight.
    #[inline]
    pub(crate) fn weigh(&self, delta: i64) {
        if delta != 0 {
            // Ordering: Relaxed; a figure that orders nothing.
            self.weight.fetch_add(delta, Ordering::Relaxed);
        }
    }

    /// The weight of all objects.
    pub(crate) fn weight(&self) -> usize {
        // Ordering: Relaxed, as in `weigh`. A removal may be counted before the insert.
        usize::try_from(self.weight.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Whether a table of so many objects has more than it may, and evicts.
    pub(crate) fn has_surplus(&self, objects: usize) -> bool {
        self.evict() != Evict::None
            && (objects > self.max_size() || self.weight() > self.max_memory())
    }

    /// What is said when there is no room.
    pub(crate) fn full(&self, objects: usize) -> String {
        let (most, heaviest) = (self.max_size(), self.max_memory());
        if objects >= most {
            format!("the table is full: its max_size is {most}, and it evicts nothing")
        } else {
            format!(
                "the table has no room for this: its max_memory is {heaviest} bytes, of which it \
                 has {}, its max_size is {}, of which it has {objects}, and it evicts nothing",
                self.weight(),
                if most == usize::MAX {
                    "infinity".to_owned()
                } else {
                    most.to_string()
                }
            )
        }
    }

    /// Whether it refuses what there is no room for.
    pub(crate) fn refuses_some(&self) -> bool {
        self.evict() == Evict::None
    }

    /// Whether a table of so many objects has room for so many more, whatever they weigh.
    pub(crate) fn takes(&self, objects: usize, more: usize) -> bool {
        !self.refuses_some()
            || (self.max_memory() == usize::MAX && objects + more <= self.max_size())
    }

    /// Whether a table of so many objects has no room for so many more, with so much weight: then
    /// they are refused.
    pub(crate) fn refuses(&self, objects: usize, (more, weight): (usize, i64)) -> bool {
        let is_over = |has: usize, more: usize, most: usize| more > 0 && has + more > most;
        self.evict() == Evict::None
            && (is_over(objects, more, self.max_size())
                || is_over(
                    self.weight(),
                    usize::try_from(weight).unwrap_or(0),
                    self.max_memory(),
                ))
    }

    /// The figures of the policy, if they are kept.
    #[inline]
    fn policy(&self, evict: Evict) -> Option<&dyn Policy> {
        // Ordering: Relaxed; what it stands for is published by its `OnceLock`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        Some(match evict {
            _ if capacity == 0 => return None,
            Evict::None => return None,
            Evict::Lru => self.recency.get(capacity)?,
            Evict::TinyLfu => self.sketch.get(capacity)?,
        })
    }

    /// A key was read, or is about to be written.
    #[inline]
    pub(crate) fn meet(&self, key: Key<'_>) {
        let evict = self.evict();
        if evict != Evict::None {
            if let Some(policy) = self.policy(evict) {
                policy.touched(self.seed.hash(key.bytes));
            }
        }
    }

    /// A key was inserted, and there are so many objects now.
    fn entered(&self, key: &[u8], objects: usize) {
        let evict = self.evict();
        if evict == Evict::None || !self.keeps_heat(objects) {
            return;
        }
        // Ordering: Relaxed, a figure.
        let inserted = self.inserted.fetch_add(1, Ordering::Relaxed) + 1;
        self.made(evict).inserted(inserted);
        if evict == Evict::TinyLfu {
            self.candidates.enter_window(objects / WINDOW, key);
        }
    }

    /// Whether heat is kept: not while a table of so many objects is less than half full.
    fn keeps_heat(&self, objects: usize) -> bool {
        // Ordering: Relaxed, as in `policy`; here and below. Of several threads that set it at once
        // any may be the last.
        let capacity = self.capacity.load(Ordering::Relaxed);
        if capacity > 0 && objects <= 2 * capacity {
            return true;
        }
        let (most, heaviest, weight) = (self.max_size(), self.max_memory(), self.weight());
        if objects < most / 2 && weight < heaviest / 2 {
            return false;
        }
        // As many as there will be, if all weigh as much as those that there are.
        let by_weight = match heaviest {
            usize::MAX => most,
            _ => (objects as u128 * heaviest as u128 / weight.max(1) as u128) as usize,
        };
        let capacity = most.min(by_weight).max(objects).max(1);
        self.capacity.store(capacity, Ordering::Relaxed);
        true
    }

    /// The policy's figures, which are made if they are not kept yet.
    fn made(&self, evict: Evict) -> &dyn Policy {
        // Ordering: Relaxed, as in `policy`.
        let capacity = self.capacity.load(Ordering::Relaxed);
        match evict {
            Evict::TinyLfu => self.sketch.make(capacity),
            Evict::None | Evict::Lru => self.recency.make(capacity),
        }
    }

    /// An object that may go, of an index with stamps and so many objects; None if there is none.
    pub(crate) fn choose(
        &self,
        (index, guard): (&dyn Unique, &Guard),
        objects: usize,
    ) -> Option<Victim> {
        let evict = self.evict();
        if evict == Evict::None {
            return None;
        }
        let chooser = Chooser {
            policy: self.made(evict),
            index,
            seed: &self.seed,
            now: clock::now(),
            window: (evict == Evict::TinyLfu).then_some(objects / WINDOW),
        };
        self.candidates.choose(&chooser, guard)
    }

    /// The next choice is from a new sample.
    pub(crate) fn forget_candidates(&self) {
        self.candidates.forget();
    }

    /// Whether what is under a victim's key, a value with stamp, was met or written since the
    /// choice. Asked under the lock of the entry: whoever writes it says so before it has the lock.
    pub(crate) fn is_fresher(&self, victim: &Victim, value: &[u8]) -> bool {
        if planted(Fault::FreshEvicted) {
            return false;
        }
        let policy = self.policy(self.evict());
        let heat = policy.map_or(0, |policy| policy.heat(self.seed.hash(&victim.key)));
        heat > victim.heat || candidates::print(&self.seed, value) != victim.print
    }

    /// An object was evicted.
    pub(crate) fn note_eviction(&self) {
        // Ordering: Relaxed, a figure.
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were.
    pub(super) fn evicted(&self) -> u64 {
        // Ordering: Relaxed, a figure.
        self.evicted.load(Ordering::Relaxed)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let policies = self.sketch.memory() + self.recency.memory();
        size_of::<Self>() + size_of::<Settings>() + policies + self.candidates.memory()
    }
}

/// The weight of a value with stamp under a key.
#[inline]
pub(crate) fn weight_of_stamped(key: &[u8], value: &[u8]) -> i64 {
    weight(key, object_of(value))
}
