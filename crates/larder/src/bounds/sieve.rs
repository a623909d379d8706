//! SIEVE: a queue of objects in the order of insertion, and a *hand* that goes round it.
//!
//! In exact SIEVE the hand goes from the oldest object to the newest, and begins again. If an
//! object was used since the hand came last, the hand clears its *visited* bit and passes. The
//! first object without that bit is evicted. Objects that stay don't move.
//!
//! # The queue without a list
//!
//! The queue is a ring of slots. The slot of an object is the number of insertions before it, in
//! *ticks* of a thousandth of the table, modulo the number of slots. The hand is the number of
//! slots that it has passed. For each key its *turn* is recorded: the hand at which its object is
//! evicted. No bit has to be cleared when the hand passes.
//!
//! ```text
//!          hand                           hand + RING                      hand + 2 · RING
//!  ─────────┴──────────────┬───────────────────┴──────────────┬──────────────────┴──────▶
//!                    the next visit                    the visit after it
//!                   of a slot: the turn               the turn of what was
//!                   of a new object                   used since the last one
//! ```
//!
//! 1. *Insert*: the turn is the hand's next visit of the slot.
//! 2. *Use*: the turn is the visit after the next one. If it is so already, nothing is written.
//! 3. *Choose*: the candidate with the earliest turn is the victim, and the hand moves to its turn.
//!
//! If all objects were candidates, this would be exact SIEVE: all that the hand passes was used. It
//! is not quite that for objects of one tick, for those that stay while 16 times as many are
//! inserted as the table has, because others then get their slots, and if keys are confused.
//!
//! Turns are kept by the hash of keys in buckets of eight entries. A key without an entry gets the
//! one whose turn is the earliest, which mostly is that of a removed key. If it isn't, the
//! other key goes first until its next use.
//!
//! Source: SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024). Deviation: candidates are
//! sampled, so the hand may pass an object whose turn it is. Such an object is the coldest of all
//! until it is sampled, and stays if it is used before. For that reason twice as many objects are
//! sampled for a victim as with other policies.

use super::heat::{mixed, Policy, Sampling};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32, Ordering};

/// The turns of keys.
///
/// ```text
///  an entry   │ 12 bits of the hash │ 20 bits: the turn │
/// ```
///
/// An entry that no key has taken is 0. So the bits of a hash are a *tag* from 1 on: 0 becomes 1.
pub(super) struct Sieve {
    buckets: Box<[Bucket]>,
    hand: CachePadded<AtomicU32>,
    /// The number of objects that are inserted in a tick.
    step: usize,
}

#[derive(Default)]
#[repr(align(32))]
struct Bucket([AtomicU32; ENTRIES]);

/// The number of entries of a bucket.
const ENTRIES: usize = 8;
/// The number of entries for each object.
const ENTRIES_OF_AN_OBJECT: usize = 2;
/// The number of ticks in which as many objects are inserted as the table has.
const TICKS: usize = 1 << 10;
/// The number of slots, which are those of 16 times as many objects as the table has.
const RING: u32 = 1 << 14;
/// The bits of an entry that are its turn. So turns wrap around after 64 rings.
const TURN: u32 = (1 << 20) - 1;
/// The order of a turn that is now. No turn is two rings or more ahead of the hand when it is
/// recorded, so what seems to be has been passed long ago.
const NOW: u32 = TURN - 2 * RING;

/// A number that is less for an earlier turn.
#[inline]
fn order(hand: u32, turn: u32) -> u32 {
    turn.wrapping_sub(hand).wrapping_add(NOW) & TURN
}

/// The hand's next visit of the slot that has this turn, or this number of ticks.
#[inline]
fn next(hand: u32, slot: u32) -> u32 {
    hand + slot.wrapping_sub(hand) % RING
}

/// Where the turn of a key is recorded.
struct KeyBucket<'a> {
    tag: u32,
    bucket: &'a Bucket,
}

impl<'a> KeyBucket<'a> {
    /// The entry of the key, and its turn.
    #[inline]
    fn find(&self) -> Option<(&'a AtomicU32, u32)> {
        self.bucket.0.iter().find_map(|entry| {
            // Ordering: Relaxed, see `Sieve::hand`.
            let value = entry.load(Ordering::Relaxed);
            (value & !TURN == self.tag).then_some((entry, value & TURN))
        })
    }

    /// The entry that the key may take: that with the earliest turn.
    fn earliest(&self, hand: u32) -> &'a AtomicU32 {
        let (mut entry, mut earliest) = (&self.bucket.0[0], u32::MAX);
        for other in &self.bucket.0 {
            // Ordering: Relaxed, see `Sieve::hand`.
            let order = order(hand, other.load(Ordering::Relaxed));
            if order < earliest {
                (entry, earliest) = (other, order);
            }
        }
        entry
    }

    #[inline]
    fn set(&self, entry: &AtomicU32, turn: u32) {
        // Ordering: Relaxed, see `Sieve::hand`.
        entry.store(self.tag | turn & TURN, Ordering::Relaxed);
    }
}

impl Sieve {
    #[inline]
    fn hand(&self) -> u32 {
        // Ordering: Relaxed, as in all of this module: these are estimates, which order nothing.
        self.hand.load(Ordering::Relaxed)
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> KeyBucket<'_> {
        let hash = mixed(hash);
        KeyBucket {
            tag: ((hash >> 32) as u32 & !TURN).max(TURN + 1),
            bucket: &self.buckets[hash as usize & (self.buckets.len() - 1)],
        }
    }
}

impl Policy for Sieve {
    fn new(objects: usize) -> Self {
        let buckets = ENTRIES_OF_AN_OBJECT * objects / ENTRIES;
        Sieve {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            hand: CachePadded::default(),
            step: (objects / TICKS).max(1),
        }
    }

    #[inline]
    fn record_use(&self, hash: u64) {
        let (hand, bucket) = (self.hand(), self.bucket_of(hash));
        // (2) A key without an entry was inserted before turns were recorded, or has lost its
        // entry. It gets the hand's own slot.
        let Some((entry, turn)) = bucket.find() else {
            return bucket.set(bucket.earliest(hand), hand + RING);
        };
        let later = next(hand, turn) + RING;
        if turn != later & TURN {
            bucket.set(entry, later);
        }
    }

    fn inserted(&self, hash: u64, objects: usize) {
        let (hand, bucket) = (self.hand(), self.bucket_of(hash));
        let entry = match bucket.find() {
            Some((entry, _)) => entry,
            None => bucket.earliest(hand),
        };
        // (1)
        bucket.set(entry, next(hand, (objects / self.step) as u32));
    }

    #[inline]
    fn heat(&self, hash: u64) -> u32 {
        let hand = self.hand();
        let found = self.bucket_of(hash).find();
        found.map_or(0, |(_, turn)| order(hand, turn))
    }

    fn chosen(&self, hash: u64, heat: u32) -> u32 {
        let hand = self.hand();
        // (3) The hand doesn't go back: a thread that finds it moved leaves it there. If the key
        // was used since its heat was computed, its turn is a ring later. The hand doesn't go
        // there, because it would pass all objects and clear their visited bits.
        let ahead = NOW + 1..=heat;
        if let Some((_, turn)) = self
            .bucket_of(hash)
            .find()
            .filter(|&(_, turn)| ahead.contains(&order(hand, turn)))
        {
            // Ordering: Relaxed, see `hand`.
            let _ = self
                .hand
                .compare_exchange(hand, turn, Ordering::Relaxed, Ordering::Relaxed);
        }
        // The turn is now, or was earlier. A use makes it a later one.
        heat.min(NOW)
    }

    fn sampling(&self) -> Sampling {
        Sampling {
            per_victim: 8,
            per_candidate: 4,
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evicts the coldest of some keys, as if all were candidates.
    fn evict(sieve: &Sieve, keys: &mut Vec<u64>) -> u64 {
        let coldest = (0..keys.len())
            .min_by_key(|&i| sieve.heat(keys[i]))
            .unwrap();
        let heat = sieve.heat(keys[coldest]);
        sieve.chosen(keys[coldest], heat);
        keys.remove(coldest)
    }

    #[test]
    fn the_hand_passes_what_was_used_and_goes_round() {
        let sieve = Sieve::new(1 << 6);
        let mut keys: Vec<u64> = (0..6).collect();
        keys.iter()
            .for_each(|&key| sieve.inserted(key, key as usize));
        [0, 1, 3].iter().for_each(|&key| sieve.record_use(key));
        assert_eq!(evict(&sieve, &mut keys), 2);
        // What the hand has passed has lost its visited bit, what is used now is passed the next
        // time.
        sieve.record_use(1);
        sieve.inserted(6, 6);
        keys.push(6);
        let rest = [(); 4].map(|()| evict(&sieve, &mut keys));
        assert_eq!(rest, [4, 5, 6, 0]);
        assert_eq!([(); 2].map(|()| evict(&sieve, &mut keys)), [3, 1]);
    }

    /// Eight keys that were used: the hand goes to the turn of the first.
    #[test]
    fn a_use_after_the_choice_makes_the_victim_hotter() {
        let sieve = Sieve::new(1 << 6);
        for key in 0..8 {
            sieve.inserted(key, key as usize);
            sieve.record_use(key);
        }
        let heat = sieve.chosen(0, sieve.heat(0));
        assert_eq!(sieve.hand.load(Ordering::Relaxed), RING);
        assert_eq!(sieve.heat(0), heat);
        sieve.record_use(0);
        assert!(sieve.heat(0) > heat);
        // A use between the computation of the heat and the choice doesn't move the hand further.
        let cool = sieve.heat(1);
        sieve.record_use(1);
        let heat = sieve.chosen(1, cool);
        assert_eq!(sieve.hand.load(Ordering::Relaxed), RING);
        assert!(sieve.heat(1) > heat);
    }

    #[test]
    fn a_key_without_an_entry_has_no_turn() {
        let sieve = Sieve::new(1 << 6);
        assert!((0..100_000).all(|key| sieve.bucket_of(key).find().is_none()));
        assert!((0..100_000).any(|key| (mixed(key) >> 32) as u32 & !TURN == 0));
    }

    /// A plain queue beside the turns, for so long that both the ring and the turns wrap around.
    #[test]
    fn with_all_as_candidates_it_is_sieve() {
        let sieve = Sieve::new(1 << 6);
        let (mut keys, mut queue, mut hand) = (Vec::new(), Vec::<(u64, bool, usize)>::new(), 0);
        let mut state = 1u64;
        for step in 0..3_000_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let key = (state >> 33).isqrt() >> 9;
            if let Some(waiting) = queue.iter_mut().find(|waiting| waiting.0 == key) {
                waiting.1 = true;
                sieve.record_use(key);
                continue;
            }
            if queue.len() == 20 {
                while queue[hand % 20].1 {
                    queue[hand % 20].1 = false;
                    hand = hand % 20 + 1;
                }
                hand %= 20;
                let (expected, _, inserted) = queue.remove(hand);
                assert!(
                    step - inserted < RING as usize,
                    "step {step}: it is a ring later"
                );
                assert_eq!(evict(&sieve, &mut keys), expected, "step {step}");
            }
            queue.push((key, false, step));
            keys.push(key);
            sieve.inserted(key, step);
        }
    }
}
