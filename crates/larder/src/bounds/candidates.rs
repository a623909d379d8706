//! Which objects of a full table go: samples of what it has, of which the coldest are kept as
//! *candidates*.
//!
//! # Steps of a choice
//!
//! 1. *Sample* the index, if no candidate is left: 48 objects or more. In hash order that is a
//!    leaf, in key order six objects each of eight leaves. The coldest sixteenth are candidates.
//! 2. The coldest candidate is the victim.
//! 3. With `tinylfu`, new objects pass through a *window* of a hundredth of the table. One that
//!    leaves it is the victim instead, unless it is hotter.
//!
//! Each thread has one of several shards, with candidates and a window of its own: nobody who reads
//! takes its lock. What is chosen is a key, with its heat and a print of its object as of then. It
//! is for whoever removes it to see, under the lock of its entry, that both are the same still.
//!
//! Sources: sampling instead of a list: Redis, and Psounis and Prabhakar (INFOCOM 2001); the
//! window: W-TinyLFU (Einziger, Eytan, Friedman and Manes, Middleware 2018). Deviation: the main
//! part has no segments and no order.

use super::heat::Policy;
use super::stamp::{object_of, Stamp};
use crate::buffers::Lent;
use crossbeam_utils::CachePadded;
use larder_index::sync::{random, thread_number, Mutex};
use larder_index::{Batch, Guard, Key, Unique};
use larder_term::hash::Seed;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Objects that are looked at for candidates, about, if there are as many.
const SAMPLE: usize = 48;
/// From one place to the next: by the golden ratio, so that all of the index is looked at about
/// equally often, however many places there are (Weyl's sequence).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Of how many one becomes a candidate.
const ONE_OF: usize = 16;
/// How often some are drawn for a sample, at most: a place may be empty.
const DRAWS: usize = 8;

/// An object that may go.
#[derive(Debug)]
pub(crate) struct Victim {
    pub(crate) key: Vec<u8>,
    pub(super) heat: u32,
    pub(super) print: u64,
}

impl Victim {
    /// One that goes before all others, unless it is written again.
    pub(super) fn certain(key: &[u8], print: u64) -> Self {
        let (key, heat) = (key.to_vec(), u32::MAX);
        Victim { key, heat, print }
    }
}

struct Shard {
    /// Where the index was sampled last.
    place: u64,
    /// The coldest last, and after it those that are certain.
    candidates: Vec<Victim>,
    /// Keys that were inserted lately, the oldest first.
    window: VecDeque<Box<[u8]>>,
}

/// What is asked in a choice.
pub(super) struct Chooser<'a> {
    pub(super) policy: &'a dyn Policy,
    /// The index, with stamps.
    pub(super) index: &'a dyn Unique,
    pub(super) seed: &'a Seed,
    pub(super) now: u64,
    /// Objects in all windows together; None: there is no window.
    pub(super) window: Option<usize>,
}

/// The shards.
pub(super) struct Candidates(Box<[CachePadded<Mutex<Shard>>]>);

impl Default for Candidates {
    fn default() -> Self {
        // A window is shared out among the shards: as many as threads that run at once.
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let shards = if cfg!(larder_model) {
            1
        } else {
            threads.min(16)
        };
        let shard = |_| {
            CachePadded::new(Mutex::new(Shard {
                place: random(),
                candidates: Vec::new(),
                window: VecDeque::new(),
            }))
        };
        Candidates((0..shards).map(shard).collect())
    }
}

impl Candidates {
    fn shard(&self) -> &Mutex<Shard> {
        &self.0[thread_number() % self.0.len()]
    }

    /// Objects in the window of a shard, of so many in all.
    fn share(&self, window: usize) -> usize {
        (window / self.0.len()).max(1)
    }

    /// A key was inserted, with a window of so many.
    pub(super) fn enter_window(&self, window: usize, key: &[u8]) {
        let mut shard = self.shard().lock();
        shard.window.push_back(key.into());
        // While the table has room nobody chooses: the oldest just leave it.
        if shard.window.len() > 2 * self.share(window) + 16 {
            shard.window.pop_front();
        }
    }

    /// Adds one that is certain.
    pub(super) fn add(&self, victim: Victim) {
        self.shard().lock().candidates.push(victim);
    }

    /// Forgets this thread's candidates, but those that are certain.
    pub(super) fn forget(&self) {
        let is_certain = |victim: &Victim| victim.heat == u32::MAX;
        self.shard().lock().candidates.retain(is_certain);
    }

    /// An object that may go; None if the table is empty.
    pub(super) fn choose(&self, chooser: &Chooser<'_>, guard: &Guard) -> Option<Victim> {
        let mut shard = self.shard().lock();
        if shard.candidates.is_empty() {
            let mut place = shard.place;
            drop(shard);
            // (1) Without the shard's lock.
            let sample = chooser.sample(guard, &mut place);
            shard = self.shard().lock();
            shard.place = place;
            shard.candidates.extend(sample);
            shard.candidates.sort_by_key(|victim| Reverse(victim.heat));
        }
        // (2)
        let mut coldest = shard.candidates.pop()?;
        if coldest.heat != u32::MAX {
            // It may have cooled down since it was sampled. By its old heat, new objects would have
            // to be as hot as what was hot then. One that was met since goes on to have its old
            // heat, by which whoever removes it sees that.
            coldest.heat = coldest.heat.min(chooser.heat_of(&coldest.key));
        }
        // (3)
        let Some(window) = chooser.window.filter(|_| coldest.heat != u32::MAX) else {
            return Some(coldest);
        };
        while shard.window.len() > self.share(window) {
            let key = shard.window.pop_front()?;
            // One that is hotter has made it. It may be gone, too, or be the candidate.
            if chooser.heat_of(&key) > coldest.heat || *key == *coldest.key {
                continue;
            }
            if let Some(new) = chooser.look(guard, &key) {
                shard.candidates.push(coldest);
                return Some(new);
            }
        }
        Some(coldest)
    }

    /// Bytes of memory, about.
    pub(super) fn memory(&self) -> usize {
        let shard = |shard: &CachePadded<Mutex<Shard>>| {
            let shard = shard.lock();
            let keys = shard.candidates.iter().map(|victim| victim.key.len());
            let window = shard.window.iter().map(|key| key.len() + 16);
            keys.map(|len| len + size_of::<Victim>()).sum::<usize>() + window.sum::<usize>()
        };
        self.0.iter().map(shard).sum::<usize>() + size_of_val(&*self.0)
    }
}

/// What tells an object from others under its key: not its times.
pub(super) fn print(seed: &Seed, value: &[u8]) -> u64 {
    seed.hash(object_of(value))
}

impl Chooser<'_> {
    /// How hot a key is.
    fn heat_of(&self, key: &[u8]) -> u32 {
        self.policy.heat(self.seed.hash(key))
    }

    /// How hot an object is; one that is expired is as cold as any.
    fn heat(&self, key: &[u8], value: &[u8]) -> u32 {
        match Stamp::of(value).is_expired(self.now) {
            true => 0,
            false => self.heat_of(key),
        }
    }

    /// The object under a key, as it is now.
    fn look(&self, guard: &Guard, key: &[u8]) -> Option<Victim> {
        let mut value = Vec::new();
        let hash = self.seed.hash(key);
        let known = match self.index.is_ordered() {
            true => Key {
                bytes: key,
                hash: 0,
            },
            false => Key { bytes: key, hash },
        };
        let there = self.index.get(guard, known, &mut value);
        there.then(|| Victim {
            key: key.to_vec(),
            heat: self.heat(key, &value),
            print: print(self.seed, &value),
        })
    }

    /// (1)
    fn sample(&self, guard: &Guard, place: &mut u64) -> Vec<Victim> {
        let mut lent = Lent::new();
        let batch = &mut lent.batch;
        batch.want = SAMPLE;
        let (mut seen, mut coldest) = (0, Vec::new());
        for _ in 0..DRAWS {
            *place = place.wrapping_add(GOLDEN);
            self.index.sample(guard, *place, batch);
            self.add_coldest(batch, &mut coldest);
            seen += batch.len();
            if seen >= SAMPLE {
                break;
            }
        }
        coldest.sort_by_key(|victim: &Victim| victim.heat);
        coldest.truncate(seen.div_ceil(ONE_OF));
        coldest
    }

    /// Adds those of a batch that may be among the coldest sixteenth of all.
    fn add_coldest(&self, batch: &Batch, coldest: &mut Vec<Victim>) {
        let heat = |i| (self.heat(batch.key(i), batch.value(i)), i);
        let mut heats: SmallVec<[(u32, usize); 2 * SAMPLE]> = (0..batch.len()).map(heat).collect();
        let most = heats.len().max(SAMPLE).div_ceil(ONE_OF);
        if most < heats.len() {
            heats.select_nth_unstable(most);
            heats.truncate(most);
        }
        coldest.extend(heats.into_iter().map(|(heat, i)| Victim {
            key: batch.key(i).to_vec(),
            heat,
            print: print(self.seed, batch.value(i)),
        }));
    }
}
