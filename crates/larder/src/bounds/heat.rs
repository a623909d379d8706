//! The heat of keys, which decides which objects of a full table are evicted.
//!
//! All policies record figures for hashes of keys, not for objects, in arrays of a few bytes for
//! each object that the table may have. So no list of objects has to be kept consistent with the
//! index. Keys share cells of the array, so a figure may be too high. It is never too low for
//! longer than until the next use of the key. `sieve` is in a module of its own.
//!
//! # What a read writes
//!
//! A read writes nothing if the figure would stay the same: if the key was already used in this
//! tick, or if its counter is at its maximum. Stores are not atomic with the loads before them. If
//! two threads use keys of the same word at the same time, one of the uses may be lost.
//!
//! Sources: TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017), for counters of four bits that
//! are periodically halved; Caffeine, for counters of a key within one word. Deviations: a word is
//! halved when it is next used, and not all words at once. The epoch of a word is stored in the
//! word.

use crossbeam_utils::CachePadded;
use larder_index::sync::counts_for_sixteen;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// A policy that measures heat.
pub(super) trait Policy: Send + Sync {
    /// Makes the data for a table of about this number of objects, a power of two.
    fn new(objects: usize) -> Self
    where
        Self: Sized;

    /// Records that a key was read or written.
    fn record_use(&self, hash: u64);

    /// Records that a key was inserted, and the number of objects that were inserted so far.
    fn inserted(&self, hash: u64, objects: usize);

    /// The heat of a key. Uses of other keys that share its cells may raise it. With `Recency` it
    /// starts again at the maximum after 65,536 ticks.
    fn heat(&self, hash: u64) -> u32;

    /// Replaces each hash of a key by the heat of the key.
    fn heats(&self, hashes: &mut [u64]) {
        for hash in hashes {
            *hash = self.heat(*hash).into();
        }
    }

    /// A number that changes when heats are lowered, after which a use may not show. Load it before
    /// the first heat that is compared, and after the second.
    fn epoch(&self) -> u64 {
        0
    }

    /// Records that a candidate with this heat was chosen as a victim. Returns the heat that it has
    /// then, which any later use makes greater if it changes the figure of the key.
    fn chosen(&self, _hash: u64, heat: u32) -> u32 {
        heat
    }

    /// How many objects are sampled.
    fn sampling(&self) -> Sampling {
        Sampling {
            per_victim: 4,
            per_candidate: 3,
        }
    }

    /// The memory in bytes.
    fn memory(&self) -> usize;
}

/// How many objects are sampled for one that is evicted, and for one that becomes a candidate.
pub(super) struct Sampling {
    pub(super) per_victim: usize,
    pub(super) per_candidate: usize,
}

/// Mixes a hash, so that its bits are independent of those that the index uses.
pub(super) fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ hash >> 32
}

/// How often keys were used recently.
///
/// ```text
///  a word   │ epoch │ 3 counters │ 4 counters │ 4 counters │ 4 counters │     four bits each
/// ```
///
/// A key has two words. It has a counter in each of the first two groups of the first word, and in
/// each of the last two groups of the second word. So keys that share a word seldom share both
/// counters. The least of the four counters is the number of uses, and only the counters with that
/// value are incremented. An epoch ends when counters were incremented ten times for each object.
/// At the end of an epoch, each counter is halved.
///
/// An epoch has ten *periods*, of one increment for each object. If a period has a sixth more
/// inserts than the one before, and more inserts than half of the increments, other keys have
/// become hot. (With fewer it may be a loop, whose inserts come in bursts.) Then the epoch ends
/// early, and each counter is quartered, so that those keys needn't outdo the old counts.
pub(super) struct Sketch {
    words: Box<[AtomicU64]>,
    epoch: CachePadded<AtomicU64>,
    /// How often counters were incremented in total. It is an estimate: some increments are counted
    /// for sixteen.
    raised: CachePadded<AtomicUsize>,
    /// How many objects were inserted.
    inserted: CachePadded<AtomicUsize>,
    periods: Periods,
}

/// What is known of past periods. It is used when a period ends.
#[derive(Default)]
struct Periods {
    /// The number of those that have ended in this epoch.
    number: AtomicUsize,
    /// How many objects had been inserted when the last one ended.
    inserted: AtomicUsize,
    /// How many objects were inserted in the last one.
    last: AtomicUsize,
}

/// A one in each group of four bits.
const ONES: u64 = 0x1111_1111_1111_1111;
/// The number of periods of an epoch, if it doesn't end early.
const PERIODS: usize = 10;
/// The number of words of a sketch for each object.
const WORDS_OF_AN_OBJECT: usize = 2;
/// An epoch has this number of periods at least. When counters were halved, those at their maximum
/// are incremented again, so the first period has a smaller share of inserts.
const LEAST_PERIODS: usize = 3;
/// Epochs of smaller tables don't end early: the numbers of inserts vary too much by chance.
const LEAST_OBJECTS: usize = 1 << 12;

/// Converts a word to this epoch.
#[inline]
fn as_of(word: u64, epoch: u64) -> u64 {
    // The epoch has four bits, so a word that is sixteen epochs old may be treated as a current
    // one.
    let epochs = epoch.wrapping_sub(word) & 15;
    if epochs == 0 {
        return word;
    }
    let by = epochs.min(4);
    ((word >> by) & (ONES * (15 >> by)) & !15) | (epoch & 15)
}

/// The counters of a key: the numbers of its two words, and the positions of two counters in each.
#[derive(Clone, Copy)]
struct KeyCounters {
    words: [usize; 2],
    shifts: [[u32; 2]; 2],
}

impl KeyCounters {
    /// The smallest of the four counters, given the contents of the words.
    #[inline]
    fn least(&self, contents: [u64; 2]) -> u64 {
        let count = |word: usize, i: usize| contents[word] >> self.shifts[word][i] & 15;
        count(0, 0)
            .min(count(0, 1))
            .min(count(1, 0))
            .min(count(1, 1))
    }
}

impl Sketch {
    #[inline]
    fn counters(&self, hash: u64) -> KeyCounters {
        let hash = mixed(hash);
        let mask = self.words.len() - 1;
        let word = hash as usize & mask;
        // Never the same word: `| 1` makes the difference odd, so it is not zero.
        let other = word ^ ((hash >> 24) as usize & mask | 1);
        let bits = (hash >> 48) as u32;
        let shift = |group: u32| 4 * (4 * group + (bits >> (2 * group) & 3));
        // The first group holds the word's epoch in its first counter. So one of the other three is
        // chosen there.
        let first = 4 * (1 + (bits >> 8) % 3);
        KeyCounters {
            words: [word, other],
            shifts: [[first, shift(1)], [shift(2), shift(3)]],
        }
    }

    /// Ends a period, and the epoch, if it was the last one or others have become hot.
    #[cold]
    fn end_period(&self) {
        let Periods {
            number,
            inserted,
            last,
        } = &self.periods;
        // `here` and `before` are the numbers of objects that were inserted in the period that ends
        // and in the one before it.
        // Ordering: Relaxed, see `now`.
        let all = self.inserted.load(Ordering::Relaxed);
        let here = all.saturating_sub(inserted.swap(all, Ordering::Relaxed));
        let before = last.swap(here, Ordering::Relaxed);
        let ended = number.fetch_add(1, Ordering::Relaxed) + 1;
        let objects = self.words.len() / WORDS_OF_AN_OBJECT;
        // Whether other keys have become hot: more inserts by a sixth, and more than half of the
        // period's increments, of which there is one for each object.
        let has_changed = objects >= LEAST_OBJECTS
            && ended >= LEAST_PERIODS
            && here > (before + before / 6).max(objects / 2);
        if has_changed || ended >= PERIODS {
            number.store(0, Ordering::Relaxed);
            let halvings = if has_changed { 2 } else { 1 };
            self.end_epoch(halvings);
        }
    }

    /// Halves each counter this number of times.
    pub(super) fn end_epoch(&self, halvings: u64) {
        // Ordering: Relaxed, see `now`.
        self.epoch.fetch_add(halvings, Ordering::Relaxed);
    }

    /// The two words of a key, converted to the current epoch.
    #[inline]
    fn now(&self, counters: &KeyCounters) -> [u64; 2] {
        // Ordering: Relaxed, as in all of this module: these are estimates, which order nothing.
        let epoch = self.epoch.load(Ordering::Relaxed);
        counters
            .words
            .map(|word| as_of(self.words[word].load(Ordering::Relaxed), epoch))
    }
}

impl Policy for Sketch {
    fn new(objects: usize) -> Self {
        Sketch {
            words: (0..WORDS_OF_AN_OBJECT * objects)
                .map(|_| AtomicU64::new(0))
                .collect(),
            epoch: CachePadded::default(),
            raised: CachePadded::default(),
            inserted: CachePadded::default(),
            periods: Periods::default(),
        }
    }

    #[inline]
    fn record_use(&self, hash: u64) {
        let counters = self.counters(hash);
        let now = self.now(&counters);
        // The least of the counters is the estimate: others have been raised by other keys, too.
        let least = counters.least(now);
        // All are at their maximum. Nothing is written, so that hot keys stay shared between
        // caches.
        if least == 15 {
            return;
        }
        // Raise only the least counters (a conservative update), so that estimates stay closer to
        // the truth.
        for (i, now) in now.into_iter().enumerate() {
            let one = |shift: u32| u64::from(now >> shift & 15 == least) << shift;
            let more = one(counters.shifts[i][0]) + one(counters.shifts[i][1]);
            if more != 0 {
                // Ordering: Relaxed, see `now`; here and below.
                self.words[counters.words[i]].store(now + more, Ordering::Relaxed);
            }
        }
        if counts_for_sixteen() {
            let raised = self.raised.fetch_add(16, Ordering::Relaxed) + 16;
            // The number of objects is a multiple of sixteen, so one thread comes here a period.
            if raised.is_multiple_of(self.words.len() / WORDS_OF_AN_OBJECT) {
                self.end_period();
            }
        }
    }

    fn inserted(&self, _: u64, objects: usize) {
        self.inserted.store(objects, Ordering::Relaxed);
    }

    #[inline]
    fn heat(&self, hash: u64) -> u32 {
        let counters = self.counters(hash);
        counters.least(self.now(&counters)) as u32
    }

    fn epoch(&self) -> u64 {
        // Ordering: Relaxed. Loads of one atomic by one thread are in order, so this one isn't
        // before that of an earlier `heat`, nor after that of a later one.
        self.epoch.load(Ordering::Relaxed)
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }
}

/// When keys were last used, in *ticks*. A tick is the time in which a thousandth of the table is
/// inserted. A key has two cells, and the older one counts. Ticks wrap around after 65,536.
pub(super) struct Recency {
    ticks: Box<[AtomicU16]>,
    now: CachePadded<AtomicU16>,
    /// The number of objects that are inserted in a tick.
    step: usize,
}

/// The number of cells for each object.
const CELLS_OF_AN_OBJECT: usize = 4;
/// The number of ticks in which as many objects are inserted as the table has.
const TICKS: usize = 1 << 10;

impl Recency {
    #[inline]
    fn cells(&self, hash: u64) -> [&AtomicU16; 2] {
        let hash = mixed(hash);
        let mask = self.ticks.len() - 1;
        [hash, hash.rotate_right(31)].map(|bits| &self.ticks[bits as usize & mask])
    }
}

impl Policy for Recency {
    fn new(objects: usize) -> Self {
        let cells = CELLS_OF_AN_OBJECT * objects;
        Recency {
            ticks: (0..cells).map(|_| AtomicU16::new(0)).collect(),
            now: CachePadded::default(),
            step: (objects / TICKS).max(1),
        }
    }

    #[inline]
    fn record_use(&self, hash: u64) {
        // Ordering: Relaxed, see `Sketch::now`; here and below.
        let now = self.now.load(Ordering::Relaxed);
        for tick in self.cells(hash) {
            if tick.load(Ordering::Relaxed) != now {
                tick.store(now, Ordering::Relaxed);
            }
        }
    }

    fn inserted(&self, _: u64, objects: usize) {
        if objects.is_multiple_of(self.step) {
            self.now.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn heat(&self, hash: u64) -> u32 {
        let now = self.now.load(Ordering::Relaxed);
        let age = |tick: &AtomicU16| now.wrapping_sub(tick.load(Ordering::Relaxed));
        let [one, two] = self.cells(hash).map(age);
        u32::from(u16::MAX - one.max(two))
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_more_often_is_hotter_and_all_cool_down() {
        let sketch = Sketch::new(1 << 10);
        (0..9).for_each(|_| sketch.record_use(1));
        (0..3).for_each(|_| sketch.record_use(2));
        assert_eq!([1, 2, 3].map(|key| sketch.heat(key)), [9, 3, 0]);
        (0..100).for_each(|_| sketch.record_use(1));
        assert_eq!(sketch.heat(1), 15);
        sketch.epoch.store(1, Ordering::Relaxed);
        assert_eq!([1, 2, 3].map(|key| sketch.heat(key)), [7, 1, 0]);
        sketch.record_use(2);
        assert_eq!(sketch.heat(2), 2);
        sketch.epoch.store(5, Ordering::Relaxed);
        assert_eq!([1, 2].map(|key| sketch.heat(key)), [0, 0]);
        (0..100_000).for_each(|key| sketch.record_use(key));
        assert!(sketch.epoch.load(Ordering::Relaxed) >= 7);
    }

    /// Each period has this number of inserts for four increments.
    fn periods(sketch: &Sketch, inserted: &mut usize, of_four: &[usize]) -> u64 {
        let objects = sketch.words.len() / WORDS_OF_AN_OBJECT;
        for share in of_four {
            *inserted += objects * share / 4;
            sketch.inserted(0, *inserted);
            sketch.end_period();
        }
        sketch.epoch.load(Ordering::Relaxed)
    }

    #[test]
    fn an_epoch_ends_early_when_other_keys_become_hot() {
        let (sketch, inserted) = (Sketch::new(LEAST_OBJECTS), &mut 0);
        assert_eq!(periods(&sketch, inserted, &[2, 2, 2, 2]), 0);
        assert_eq!(periods(&sketch, inserted, &[4]), 2);
        // Again only in the third period, and not for a share below one half.
        assert_eq!(periods(&sketch, inserted, &[2, 4, 0, 2, 1, 2, 2, 2, 2]), 2);
        assert_eq!(periods(&sketch, inserted, &[2]), 3);
        let (small, inserted) = (Sketch::new(LEAST_OBJECTS / 2), &mut 0);
        assert_eq!(periods(&small, inserted, &[2, 2, 2, 2, 4]), 0);
    }

    #[test]
    fn counters_are_those_of_few_keys() {
        let sketch = Sketch::new(1 << 12);
        (0..1 << 12).for_each(|key: u64| {
            (0..key % 8).for_each(|_| sketch.record_use(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        });
        let wrong = (0..1 << 12).filter(|key: &u64| {
            let heat = sketch.heat(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            assert!(u64::from(heat) >= key % 8 || sketch.epoch.load(Ordering::Relaxed) > 0);
            u64::from(heat) != key % 8
        });
        assert!(wrong.count() < 1 << 7);
    }

    #[test]
    fn what_was_used_later_is_hotter() {
        let recency = Recency::new(1 << 6);
        for key in 0..50 {
            recency.record_use(key);
            recency.inserted(key, key as usize);
        }
        recency.record_use(7);
        let coldest = (0..50).min_by_key(|&key| recency.heat(key));
        assert_eq!(coldest, Some(0));
        let hottest = (0..50).max_by_key(|&key| recency.heat(key));
        assert_eq!(hottest, Some(7));
    }
}
