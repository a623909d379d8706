//! The choice of objects to evict from a full table: samples of its objects, of which the coldest
//! are kept as *candidates*.
//!
//! # Steps of a choice
//!
//! 1. *Sample* the index: about 192 objects, before every 48th victim, with `sieve` every 24th. In
//!    hash order these are some whole leaves, in key order six objects from each of 32 leaves. The
//!    coldest third, with `sieve` the coldest quarter, join the candidates. Of all candidates the
//!    96 coldest stay.
//! 2. The coldest candidate is the victim, unless it was used since it was sampled.
//! 3. With `tinylfu`, new objects pass through a *window* of a hundredth of the table. An object
//!    that leaves it is the victim instead, unless it is hotter. After 192 such victims the index
//!    is sampled, too: the candidates that are left may be hot, where others have become cold.
//!
//! So four objects are sampled for each victim, with `sieve` eight, and one for a victim from the
//! window. What is left of one sample competes with the next ones, so the victims are colder than
//! the coldest quarter of each sample.
//!
//! There are several shards, each with candidates and a window of its own. A thread uses one of
//! them. Reads don't take its lock. The result of a choice is a key with its heat at that time. If
//! the key was sampled, it has a fingerprint of its object. The thread that removes the object must
//! check, under the lock of its entry, that the heat has not risen, that no heats were lowered, and
//! that the object is the same (EX7).
//!
//! Sources: sampling in place of a list is from Redis, and from Psounis and Prabhakar (INFOCOM
//! 2001). The window is from W-TinyLFU (Einziger, Eytan, Friedman and Manes, Middleware 2018).
//! Deviation: the main part has no segments and no order.

use super::heat::Policy;
use super::stamp::{object_of, ObjectTimes, NO_TIME};
use crate::buffers::ThreadBuffers;
use crate::cores::cores;
use crossbeam_utils::CachePadded;
use larder_index::sync::{random, thread_number, Mutex};
use larder_index::{Batch, Guard, Key, Unique};
use larder_term::hash::Seed;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// The approximate number of objects of a sample, if there are that many. In hash order it takes
/// several leaves: each has some objects that are colder than those of others.
const SAMPLE: usize = 192;
/// The maximum number of candidates that are kept.
const KEPT: usize = 96;
/// The maximum number of draws for a sample, because a point may be empty.
const DRAWS: usize = 8;

/// The bytes of a key. Short ones need no memory of their own.
pub(crate) type OwnKey = SmallVec<[u8; 24]>;

/// An object that is chosen for eviction.
#[derive(Clone, Debug)]
pub(crate) struct Victim {
    pub(crate) key: OwnKey,
    /// The hash of the key, also if the index is ordered.
    pub(crate) hash: u64,
    /// Identifies the object. `None` for a key that has left the window: whatever object it has is
    /// the victim, if it wasn't used since.
    pub(super) fingerprint: Option<u64>,
    /// The heat of the key at the choice. `None` for an object that precedes all others, unless it
    /// is written again.
    heat: Option<Heat>,
}

/// A heat, and when it was computed. Heats of different times can only be compared if the rest is
/// the same.
#[derive(Clone, Copy, Debug)]
struct Heat {
    figure: u32,
    /// The policy's epoch.
    epoch: u64,
    /// The address of the policy's data. The thread that has chosen removes the victim under the
    /// same guard, so it isn't used for other data meanwhile.
    policy: usize,
}

/// The address that identifies the data of a policy.
fn address(policy: &dyn Policy) -> usize {
    std::ptr::from_ref(policy).addr()
}

impl Victim {
    /// A victim that precedes all others.
    pub(super) fn certain(key: &[u8], hash: u64, fingerprint: u64) -> Self {
        Victim {
            key: key.into(),
            hash,
            fingerprint: Some(fingerprint),
            heat: None,
        }
    }

    /// Whether it precedes all others. These have been taken out of the candidates.
    pub(super) fn is_certain(&self) -> bool {
        self.heat.is_none()
    }

    /// Whether it has left the window.
    #[cfg(test)]
    pub(crate) fn is_from_window(&self) -> bool {
        self.fingerprint.is_none()
    }

    /// Whether the key was used since the choice, by the figures of this policy.
    pub(super) fn is_used(&self, policy: &dyn Policy) -> bool {
        self.heat.is_some_and(|was| {
            // If heats were lowered meanwhile, a use may not show.
            policy.heat(self.hash) > was.figure
                || policy.epoch() != was.epoch
                || address(policy) != was.policy
        })
    }
}

/// One of the coldest objects of a sample.
#[derive(Default)]
struct Candidate {
    key: OwnKey,
    hash: u64,
    fingerprint: u64,
    heat: u32,
    /// Whether it was expired when it was sampled. Its heat is 0.
    is_expired: bool,
}

impl Candidate {
    /// Adjusts the heat of a candidate, which may have cooled down since it was sampled. Compared
    /// with its old heat, new objects would have to be as hot as what was hot at that time. Returns
    /// `false` if it was used since.
    fn cool(&mut self, policy: &dyn Policy) -> bool {
        if self.is_expired {
            return true;
        }
        let now = policy.heat(self.hash);
        let was = std::mem::replace(&mut self.heat, now);
        now <= was
    }
}

/// A set of hashes that is small, because it may take another hash for one of its own.
#[derive(Default)]
struct HashFilter([u64; 16]);

impl HashFilter {
    /// The number of the word, and the bit in it. In a leaf of the hash order all hashes begin with
    /// the same bits, so the last ones are used.
    #[inline]
    fn bit_of(hash: u64) -> (usize, u64) {
        (hash as usize & 15, 1 << (hash >> 4 & 63))
    }

    /// Adds a hash. Returns whether it may have been there.
    #[inline]
    fn add(&mut self, hash: u64) -> bool {
        let (word, bit) = Self::bit_of(hash);
        let was = self.0[word];
        self.0[word] = was | bit;
        was & bit != 0
    }

    /// Whether a hash may be there.
    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = Self::bit_of(hash);
        self.0[word] & bit != 0
    }
}

/// A recently inserted key, with its hash.
struct NewKey {
    key: OwnKey,
    hash: u64,
}

struct CandidateShard {
    /// The point of the next sample.
    point: u64,
    /// Candidates, the coldest last.
    candidates: Vec<Candidate>,
    /// A buffer for `merge`, empty in between.
    sorted: Vec<Candidate>,
    /// How many objects of the last sample are left to be used up by victims. At 0, the next choice
    /// takes a new sample.
    sample_left: usize,
    /// Recently inserted keys, the oldest first.
    window: VecDeque<NewKey>,
}

impl CandidateShard {
    /// Adds the candidates of a sample to those that are left, and keeps the coldest.
    fn merge(&mut self, sample: Vec<Candidate>, policy: &dyn Policy) {
        let mut hashes = HashFilter::default();
        for new in &sample {
            hashes.add(new.hash);
        }
        // What is in both was sampled again, and may have changed.
        let is_in = |old: &Candidate| {
            hashes.may_have(old.hash) && sample.iter().any(|new| new.hash == old.hash)
        };
        self.candidates
            .retain_mut(|old| !is_in(old) && old.cool(policy));
        self.candidates.extend(sample);
        // Sort by the heat, the hottest first. Words are sorted, with the number of the candidate
        // in the lower half, and then each candidate is moved once.
        let word = |(i, other): (usize, &Candidate)| u64::from(!other.heat) << 32 | i as u64;
        let mut words: SmallVec<[u64; SAMPLE]> = SmallVec::new();
        words.extend(self.candidates.iter().enumerate().map(word));
        words.sort_unstable();
        let surplus = words.len().saturating_sub(KEPT);
        for &word in &words[surplus..] {
            let candidate = &mut self.candidates[word as u32 as usize];
            self.sorted.push(std::mem::take(candidate));
        }
        std::mem::swap(&mut self.candidates, &mut self.sorted);
        self.sorted.clear();
    }

    /// Takes keys from the window while it has more than `most`, up to one that is no hotter than
    /// the coldest candidate. The hotter ones stay in the table. Returns it with its heat; its
    /// object may be removed.
    fn next_new(
        &mut self,
        most: usize,
        coldest: u32,
        policy: &dyn Policy,
    ) -> Option<(NewKey, u32)> {
        while self.window.len() > most {
            let new = self.window.pop_front()?;
            let heat = policy.heat(new.hash);
            if heat <= coldest {
                return Some((new, heat));
            }
        }
        None
    }
}

/// The coldest objects of a sample, with their hashes.
struct Coldest {
    candidates: Vec<Candidate>,
    hashes: HashFilter,
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

/// The shards, and the objects that precede all candidates.
pub(super) struct Candidates {
    shards: Box<[CachePadded<Mutex<CandidateShard>>]>,
    /// Objects that are heavier by themselves than the table may be. Whoever evicts must take these
    /// first, or everything else would go for them.
    certain: Mutex<Vec<Victim>>,
    /// Whether there are any.
    has_certain: AtomicBool,
}

impl Default for Candidates {
    fn default() -> Self {
        // The window is divided among the shards. There are about as many as threads that can run
        // at the same time, a power of two, so that a thread finds its own without a division.
        let shards = if cfg!(larder_model) {
            1
        } else {
            cores().min(16).next_power_of_two()
        };
        let shard = |_| {
            CachePadded::new(Mutex::new(CandidateShard {
                point: random(),
                candidates: Vec::new(),
                sorted: Vec::new(),
                sample_left: 0,
                window: VecDeque::new(),
            }))
        };
        Candidates {
            shards: (0..shards).map(shard).collect(),
            certain: Mutex::default(),
            has_certain: AtomicBool::new(false),
        }
    }
}

impl Candidates {
    fn shard(&self) -> &Mutex<CandidateShard> {
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    /// The number of objects in the window of a shard, for a window of this total size.
    fn share(&self, window: usize) -> usize {
        (window / self.shards.len()).max(1)
    }

    /// Adds an inserted key to the window, which has this total size.
    pub(super) fn enter_window(&self, window: usize, key: Key<'_>) {
        let mut shard = self.shard().lock();
        shard.window.push_back(NewKey {
            key: key.bytes.into(),
            hash: key.hash,
        });
        // While the table has room no victim is chosen, and the oldest keys are dropped from the
        // window. So they are after a limit was lowered.
        let most = 2 * self.share(window) + 16;
        let surplus = shard.window.len().saturating_sub(most);
        shard.window.drain(..surplus);
    }

    /// Adds a victim that is certain.
    pub(super) fn add(&self, victim: Victim) {
        let mut certain = self.certain.lock();
        certain.push(victim);
        // Ordering: Relaxed, as in `next_certain`: the lock orders the list.
        self.has_certain.store(true, Ordering::Relaxed);
    }

    /// A victim that is certain. It stays the next one until `settle`: nobody takes others for it
    /// while a thread is about to remove it, and if it can't be removed now, it is later.
    fn next_certain(&self) -> Option<Victim> {
        if !self.has_certain.load(Ordering::Relaxed) {
            return None;
        }
        self.certain.lock().last().cloned()
    }

    /// Called when a victim is removed, or its object is another one by now. If it was added twice,
    /// as its object was written again, it stays once: the other object may be there.
    pub(super) fn settle(&self, victim: &Victim) {
        if !victim.is_certain() {
            return;
        }
        let mut certain = self.certain.lock();
        let same =
            |other: &Victim| (&other.key, other.fingerprint) == (&victim.key, victim.fingerprint);
        // It was the last one when it was chosen.
        if let Some(at) = certain.iter().rposition(same) {
            certain.swap_remove(at);
        }
        self.has_certain
            .store(!certain.is_empty(), Ordering::Relaxed);
    }

    /// Drops this thread's candidates, except those that are certain.
    pub(super) fn forget(&self) {
        self.shard().lock().candidates.clear();
    }

    /// Empties the windows.
    pub(super) fn clear_windows(&self) {
        for shard in &self.shards {
            shard.lock().window = VecDeque::new();
        }
    }

    /// Chooses an object to evict; `None` if the table is empty.
    pub(super) fn choose(&self, chooser: &Chooser<'_>, guard: &Guard) -> Option<Victim> {
        if let Some(certain) = self.next_certain() {
            return Some(certain);
        }
        let mut shard = self.shard().lock();
        let policy = chooser.policy;
        let epoch = loop {
            if shard.sample_left == 0 || shard.candidates.is_empty() {
                let mut point = shard.point;
                drop(shard);
                // (1) Sample without the shard's lock.
                let (sample, seen) = chooser.sample(guard, &mut point);
                shard = self.shard().lock();
                shard.point = point;
                shard.sample_left = seen;
                shard.merge(sample, policy);
            }
            // (2) A candidate that was used since is none any more. Unless all were, the loop ends
            // here.
            let epoch = policy.epoch();
            let coldest = shard.candidates.last_mut();
            if coldest?.cool(policy) {
                break epoch;
            }
            shard.candidates.pop();
        };
        let heat = |figure| {
            Some(Heat {
                figure,
                epoch,
                policy: address(policy),
            })
        };
        // (3)
        if let Some(window) = chooser.window {
            let coldest = shard.candidates.last().map(|coldest| coldest.heat);
            // The candidate stays for the next choice.
            if let Some((new, figure)) = shard.next_new(self.share(window), coldest?, policy) {
                shard.sample_left = shard.sample_left.saturating_sub(1);
                return Some(Victim {
                    key: new.key,
                    hash: new.hash,
                    fingerprint: None,
                    heat: heat(figure),
                });
            }
        }
        let per_victim = policy.sampling().per_victim;
        shard.sample_left = shard.sample_left.saturating_sub(per_victim);
        let coldest = shard.candidates.pop()?;
        Some(Victim {
            key: coldest.key,
            hash: coldest.hash,
            fingerprint: Some(coldest.fingerprint),
            heat: heat(policy.chosen(coldest.hash, coldest.heat)),
        })
    }

    /// The approximate memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let shard = |shard: &CachePadded<Mutex<CandidateShard>>| {
            // One shard at a time is locked. The sum is approximate.
            let shard = shard.lock();
            let candidates = shard.candidates.iter().map(|candidate| candidate.key.len());
            let window = shard.window.iter().map(|new| new.key.len());
            candidates
                .map(|len| len + size_of::<Candidate>())
                .sum::<usize>()
                + window.map(|len| len + size_of::<NewKey>()).sum::<usize>()
        };
        let certain = self.certain.lock().iter().fold(0, |sum, victim| {
            sum + victim.key.len() + size_of::<Victim>()
        });
        self.shards.iter().map(shard).sum::<usize>() + size_of_val(&*self.shards) + certain
    }
}

/// A hash that identifies the object under a key. It doesn't include the times.
pub(super) fn fingerprint(seed: &Seed, value: &[u8]) -> u64 {
    seed.hash(object_of(value))
}

impl Chooser<'_> {
    /// (1) Samples the index. Returns the coldest objects of the sample, and how many it had.
    fn sample(&self, guard: &Guard, point: &mut u64) -> (Vec<Candidate>, usize) {
        let mut buffers = ThreadBuffers::new();
        // An index may return fewer, for instance those of one leaf.
        buffers.batch.want = SAMPLE;
        let mut seen = 0;
        let mut coldest = Coldest {
            candidates: Vec::with_capacity(KEPT),
            hashes: HashFilter::default(),
        };
        for _ in 0..DRAWS {
            seen += buffers.batch.lend(|batch| {
                *point = self.index.sample(guard, *point, batch);
                self.add_coldest(batch, &mut coldest);
                batch.len()
            });
            if seen >= SAMPLE {
                break;
            }
        }
        (coldest.candidates, seen)
    }

    /// Adds the coldest objects of a batch.
    fn add_coldest(&self, batch: &Batch, coldest: &mut Coldest) {
        // While no object has a deadline, values needn't be read.
        let is_expired =
            |i| self.now != NO_TIME && ObjectTimes::of(batch.value(i)).is_expired(self.now);
        // All hashes, then all heats, so that loads of the heats don't wait for one another.
        let mut hashes: SmallVec<[u64; SAMPLE]> = SmallVec::from_elem(0, batch.len());
        for (i, hash) in hashes.iter_mut().enumerate() {
            *hash = self.seed.hash(batch.key(i));
        }
        let mut words = hashes.clone();
        self.policy.heats(&mut words);
        // Choose by the heat first. Keys are copied only for the objects that stay. The number of
        // the object is in the lower half of a word, so that words are compared and moved.
        for (i, word) in words.iter_mut().enumerate() {
            // What is expired goes first.
            let heat = if is_expired(i) { 0 } else { *word };
            *word = heat << 32 | i as u64;
        }
        let most = words.len().div_ceil(self.policy.sampling().per_candidate);
        if most < words.len() {
            words.select_nth_unstable(most);
            words.truncate(most);
        }
        for word in words {
            let (i, heat) = (word as u32 as usize, (word >> 32) as u32);
            let hash = hashes[i];
            // In a small index two points may be in the same leaf, and an object is there twice.
            if coldest.hashes.add(hash) && coldest.candidates.iter().any(|other| other.hash == hash)
            {
                continue;
            }
            let (key, value) = batch.entry(i);
            coldest.candidates.push(Candidate {
                key: key.into(),
                hash,
                fingerprint: fingerprint(self.seed, value),
                heat,
                is_expired: is_expired(i),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread has evicted the object, and another one writes the same before that is noted.
    #[test]
    fn an_object_that_is_written_again_stays_the_first_to_go() {
        let candidates = Candidates::default();
        let victim = Victim::certain(b"key", 1, 2);
        candidates.add(victim.clone());
        let chosen = candidates.next_certain().unwrap();
        candidates.add(victim);
        candidates.settle(&chosen);
        let again = candidates.next_certain().unwrap();
        assert_eq!(again.key, chosen.key);
        candidates.settle(&again);
        assert!(candidates.next_certain().is_none());
    }
}
