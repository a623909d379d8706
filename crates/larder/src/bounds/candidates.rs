//! The choice of objects to evict from a full table: samples of its objects, of which the coldest
//! are kept as *candidates*.
//!
//! # Steps of a choice
//!
//! 1. *Sample* the index, if no candidate is left: about 192 objects. In hash order these are
//!    some whole leaves, in key order six objects from each of 32 leaves. The coldest sixteenth are
//!    candidates.
//! 2. The coldest candidate is the victim.
//! 3. With `tinylfu`, new objects pass through a *window* of a hundredth of the table. An object
//!    that leaves it is the victim instead, unless it is hotter.
//!
//! There are several shards, each with candidates and a window of its own. A thread uses one of
//! them. Reads don't take its lock. The result of a choice is a key, with its heat and a
//! fingerprint of its object at that time. The thread that removes the object must check, under the
//! lock of its entry, that both are still the same.
//!
//! Sources: sampling in place of a list is from Redis, and from Psounis and Prabhakar (INFOCOM
//! 2001). The window is from W-TinyLFU (Einziger, Eytan, Friedman and Manes, Middleware 2018).
//! Deviation: the main part has no segments and no order.

use super::heat::Policy;
use super::stamp::{object_of, ObjectTimes};
use crate::buffers::Lent;
use crossbeam_utils::CachePadded;
use larder_index::sync::{random, thread_number, Mutex};
use larder_index::{Batch, Guard, Key, Unique};
use larder_term::hash::Seed;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The approximate number of objects of a sample, if there are that many. In hash order it takes
/// several leaves: each has some objects that are colder than those of others.
const SAMPLE: usize = 192;
/// The distance between successive places: the golden ratio. So all parts of the index are sampled
/// about equally often, however many places are used (Weyl's sequence).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// One of this number of objects becomes a candidate.
const ONE_OF: usize = 16;
/// The maximum number of draws for a sample, because a place may be empty.
const DRAWS: usize = 8;

/// An object that is chosen for eviction.
#[derive(Debug)]
pub(crate) struct Victim {
    pub(crate) key: Vec<u8>,
    pub(super) heat: u32,
    pub(super) fingerprint: u64,
}

impl Victim {
    /// A victim that precedes all others, unless it is written again.
    pub(super) fn certain(key: &[u8], fingerprint: u64) -> Self {
        let (key, heat) = (key.to_vec(), u32::MAX);
        Victim {
            key,
            heat,
            fingerprint,
        }
    }
}

struct CandidateShard {
    /// The place of the last sample.
    place: u64,
    /// Candidates, the coldest last. Those that are certain come after it.
    candidates: Vec<Victim>,
    /// Recently inserted keys, the oldest first.
    window: VecDeque<Box<[u8]>>,
}

/// The context of a choice.
pub(super) struct Chooser<'a> {
    pub(super) policy: &'a dyn Policy,
    /// The index, with stamps.
    pub(super) index: &'a dyn Unique,
    pub(super) seed: &'a Seed,
    pub(super) now: u64,
    /// The number of objects in all windows together; `None` if there is no window.
    pub(super) window: Option<usize>,
}

/// The shards.
pub(super) struct Candidates(Box<[CachePadded<Mutex<CandidateShard>>]>);

impl Default for Candidates {
    fn default() -> Self {
        // The window is divided among the shards. There are as many as threads that can run at the
        // same time.
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let shards = if cfg!(larder_model) {
            1
        } else {
            threads.min(16)
        };
        let shard = |_| {
            CachePadded::new(Mutex::new(CandidateShard {
                place: random(),
                candidates: Vec::new(),
                window: VecDeque::new(),
            }))
        };
        Candidates((0..shards).map(shard).collect())
    }
}

impl Candidates {
    fn shard(&self) -> &Mutex<CandidateShard> {
        &self.0[thread_number() % self.0.len()]
    }

    /// The number of objects in the window of a shard, for a window of this total size.
    fn share(&self, window: usize) -> usize {
        (window / self.0.len()).max(1)
    }

    /// Adds an inserted key to the window, which has this total size.
    pub(super) fn enter_window(&self, window: usize, key: &[u8]) {
        let mut shard = self.shard().lock();
        shard.window.push_back(key.into());
        // While the table has room no victim is chosen, and the oldest keys are dropped from the
        // window.
        if shard.window.len() > 2 * self.share(window) + 16 {
            shard.window.pop_front();
        }
    }

    /// Adds a victim that is certain.
    pub(super) fn add(&self, victim: Victim) {
        self.shard().lock().candidates.push(victim);
    }

    /// Drops this thread's candidates, except those that are certain.
    pub(super) fn forget(&self) {
        let is_certain = |victim: &Victim| victim.heat == u32::MAX;
        self.shard().lock().candidates.retain(is_certain);
    }

    /// Chooses an object to evict; `None` if the table is empty.
    pub(super) fn choose(&self, chooser: &Chooser<'_>, guard: &Guard) -> Option<Victim> {
        let mut shard = self.shard().lock();
        if shard.candidates.is_empty() {
            let mut place = shard.place;
            drop(shard);
            // (1) Sample without the shard's lock.
            let sample = chooser.sample(guard, &mut place);
            shard = self.shard().lock();
            shard.place = place;
            shard.candidates.extend(sample);
            shard.candidates.sort_by_key(|victim| Reverse(victim.heat));
        }
        // (2)
        let mut coldest = shard.candidates.pop()?;
        if coldest.heat != u32::MAX {
            // It may have cooled down since it was sampled. Compared with its old heat, new objects
            // would have to be as hot as what was hot at that time. If it was used since, it keeps
            // its old heat, so that the thread that removes it detects the use.
            let heat = chooser.policy.heat(chooser.seed.hash(&coldest.key));
            coldest.heat = coldest.heat.min(heat);
        }
        // (3)
        let Some(window) = chooser.window.filter(|_| coldest.heat != u32::MAX) else {
            return Some(coldest);
        };
        while shard.window.len() > self.share(window) {
            let key = shard.window.pop_front()?;
            let hash = chooser.seed.hash(&key);
            // A hotter one stays in the table. The key may also be the candidate.
            if chooser.policy.heat(hash) > coldest.heat || *key == *coldest.key {
                continue;
            }
            // The key may be gone. Otherwise it is the victim, and the candidate stays for the next
            // choice.
            if let Some(new) = chooser.victim(guard, Key { bytes: &key, hash }) {
                shard.candidates.push(coldest);
                return Some(new);
            }
        }
        Some(coldest)
    }

    /// The approximate memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let shard = |shard: &CachePadded<Mutex<CandidateShard>>| {
            // One shard at a time is locked. The sum is approximate.
            let shard = shard.lock();
            let keys = shard.candidates.iter().map(|victim| victim.key.len());
            let window = shard.window.iter().map(|key| key.len() + 16);
            keys.map(|len| len + size_of::<Victim>()).sum::<usize>() + window.sum::<usize>()
        };
        self.0.iter().map(shard).sum::<usize>() + size_of_val(&*self.0)
    }
}

/// A hash that identifies the object under a key. It doesn't include the times.
pub(super) fn fingerprint(seed: &Seed, value: &[u8]) -> u64 {
    seed.hash(object_of(value))
}

impl Chooser<'_> {
    /// The heat of an object, given the hash of its key; the least one if it is expired.
    fn heat(&self, hash: u64, value: &[u8]) -> u32 {
        match ObjectTimes::of(value).is_expired(self.now) {
            true => 0,
            false => self.policy.heat(hash),
        }
    }

    /// Makes a victim of the object under a key, if there is one. The key has its hash, also if the
    /// index is ordered.
    fn victim(&self, guard: &Guard, key: Key<'_>) -> Option<Victim> {
        let mut value = Vec::new();
        // An ordered index finds keys by their bytes. The hash is only used for the heat.
        let index_key = match self.index.is_ordered() {
            true => Key { hash: 0, ..key },
            false => key,
        };
        let found = self.index.get(guard, index_key, &mut value);
        found.then(|| Victim {
            key: key.bytes.to_vec(),
            heat: self.heat(key.hash, &value),
            fingerprint: fingerprint(self.seed, &value),
        })
    }

    /// (1) Samples the index. Returns the coldest objects of the sample.
    fn sample(&self, guard: &Guard, place: &mut u64) -> Vec<Victim> {
        let mut lent = Lent::new();
        // An index may return fewer, for instance those of one leaf.
        lent.batch.want = SAMPLE;
        let (mut seen, mut coldest) = (0, Vec::new());
        for _ in 0..DRAWS {
            // The next place is far from this one, and from all recent ones.
            *place = place.wrapping_add(GOLDEN);
            seen += lent.batch.lend(|batch| {
                self.index.sample(guard, *place, batch);
                self.add_coldest(batch, &mut coldest);
                batch.len()
            });
            if seen >= SAMPLE {
                break;
            }
        }
        coldest.sort_by_key(|victim: &Victim| victim.heat);
        // What is kept is a fraction of what was seen, however many that were.
        coldest.truncate(seen.div_ceil(ONE_OF));
        // In a small index two places may be the same leaf, and an object is there twice.
        let mut each = Vec::with_capacity(coldest.len());
        for victim in coldest {
            if !each.iter().any(|other: &Victim| other.key == victim.key) {
                each.push(victim);
            }
        }
        each
    }

    /// Adds the objects of a batch that may be among the coldest sixteenth of the sample.
    fn add_coldest(&self, batch: &Batch, coldest: &mut Vec<Victim>) {
        let heat = |i| {
            let hash = self.seed.hash(batch.key(i));
            (self.heat(hash, batch.value(i)), i)
        };
        // Choose by the figures first. Keys are copied only for the objects that stay.
        let mut heats: SmallVec<[(u32, usize); SAMPLE]> = (0..batch.len()).map(heat).collect();
        let most = heats.len().max(SAMPLE).div_ceil(ONE_OF);
        if most < heats.len() {
            heats.select_nth_unstable(most);
            heats.truncate(most);
        }
        coldest.extend(heats.into_iter().map(|(heat, i)| Victim {
            key: batch.key(i).to_vec(),
            heat,
            fingerprint: fingerprint(self.seed, batch.value(i)),
        }));
    }
}
