//! How hot keys are: what decides which object of a full table goes.
//!
//! Both figures belong to hashes of keys, not to objects: arrays of a few bytes for each object
//! that the table may have. A key has several places in the array, which it shares with others, so
//! a figure may be too high, and is never too low for longer than it takes to be met again. There
//! is no list of objects, and nothing to keep in step with the index.
//!
//! # What a read writes
//!
//! Nothing, where the figure is what it would become: a key that was met in this tick, or whose
//! counter is full. Stores are not atomic with the loads before them: of two threads that meet keys
//! of one word at once, one may be forgotten.
//!
//! Sources: TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017), for counters of four bits that
//! are halved again and again; Caffeine, for counters of a key within one word. Deviations: a word
//! is halved when it is met, not all at once; which epoch it is of lies in the word.

use crossbeam_utils::CachePadded;
use larder_index::sync::random;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// A way to tell what is hot.
pub(super) trait Policy: Send + Sync {
    /// For a table of about so many objects, a power of two.
    fn new(objects: usize) -> Self
    where
        Self: Sized;

    /// A key was read or written.
    fn touched(&self, hash: u64);

    /// So many objects were inserted, since the table began.
    fn inserted(&self, objects: usize);

    /// The hotter, the more. While a key is not touched it doesn't grow.
    fn heat(&self, hash: u64) -> u32;

    /// Bytes of memory.
    fn memory(&self) -> usize;
}

/// A policy's figures, in a size for each power of two: a limit may be set anew.
pub(super) struct PerSize<P>([OnceLock<Box<P>>; usize::BITS as usize]);

impl<P> Default for PerSize<P> {
    fn default() -> Self {
        PerSize([const { OnceLock::new() }; usize::BITS as usize])
    }
}

/// The power of two for so many objects.
fn level(objects: usize) -> usize {
    let up = objects.clamp(1 << 6, 1 << 40).next_power_of_two();
    up.trailing_zeros() as usize
}

impl<P: Policy> PerSize<P> {
    /// For so many objects, if it was made.
    #[inline]
    pub(super) fn get(&self, objects: usize) -> Option<&P> {
        self.0[level(objects)].get().map(|own| &**own)
    }

    /// For so many objects.
    pub(super) fn make(&self, objects: usize) -> &P {
        let level = level(objects);
        self.0[level].get_or_init(|| Box::new(P::new(1 << level)))
    }

    pub(super) fn memory(&self) -> usize {
        let made = self.0.iter().filter_map(OnceLock::get);
        made.map(|own| own.memory()).sum()
    }
}

/// Bits of a hash that those of the index say nothing of.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ hash >> 32
}

/// How often keys were met lately.
///
/// ```text
///  a word   │ epoch │ 3 counters │ 4 counters │ 4 counters │ 4 counters │     four bits each
/// ```
///
/// A key has two words, and a counter of each of the first two groups in the one and of the last
/// two in the other: keys that share a word seldom share both. The least of the four is how often
/// it was met, and that alone is raised. An epoch is over when counters were raised ten times for
/// each object: from then on each is worth half.
pub(super) struct Sketch {
    words: Box<[AtomicU64]>,
    epoch: CachePadded<AtomicU64>,
    /// How often counters were raised in all: every sixteenth time is counted for sixteen.
    raised: CachePadded<AtomicUsize>,
}

const ONES: u64 = 0x1111_1111_1111_1111;
const SAMPLE: usize = 10;
const WORDS_OF_AN_OBJECT: usize = 2;
const ONE_OF: usize = 16;

/// A word as of this epoch.
#[inline]
fn as_of(word: u64, epoch: u64) -> u64 {
    // After sixteen epochs it comes round: a count that is older may be taken for a fresh one.
    let epochs = epoch.wrapping_sub(word) & 15;
    if epochs == 0 {
        return word;
    }
    let by = epochs.min(4);
    ((word >> by) & (ONES * (15 >> by)) & !15) | (epoch & 15)
}

/// A counter: its word, and where it is in it.
type Counter = (usize, u32);

impl Sketch {
    #[inline]
    fn counters(&self, hash: u64) -> [Counter; 4] {
        let hash = mixed(hash);
        let mask = self.words.len() - 1;
        let (one, two) = (hash as usize & mask, (hash >> 24) as usize & mask);
        let bits = (hash >> 48) as u32;
        let place = |group: u32| 4 * (4 * group + (bits >> (2 * group) & 3));
        let first = 4 * (1 + (bits >> 8) % 3);
        [
            (one, first),
            (one, place(1)),
            (two, place(2)),
            (two, place(3)),
        ]
    }

    /// A word as of now.
    #[inline]
    fn now(&self, word: usize) -> u64 {
        // Ordering: Relaxed, as all of this module: estimates, which order nothing.
        as_of(
            self.words[word].load(Ordering::Relaxed),
            self.epoch.load(Ordering::Relaxed),
        )
    }

    #[inline]
    fn least(&self, counters: [Counter; 4]) -> u64 {
        let counts = counters.map(|(word, place)| self.now(word) >> place & 15);
        counts.into_iter().min().unwrap_or(0)
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
        }
    }

    #[inline]
    fn touched(&self, hash: u64) {
        let counters = self.counters(hash);
        let least = self.least(counters);
        if least == 15 {
            return;
        }
        for (word, place) in counters {
            let now = self.now(word);
            if now >> place & 15 == least {
                // Ordering: Relaxed, see `now`; here and below.
                self.words[word].store(now + (1 << place), Ordering::Relaxed);
            }
        }
        if random().is_multiple_of(ONE_OF as u64) {
            let raised = self.raised.fetch_add(ONE_OF, Ordering::Relaxed) + ONE_OF;
            let epoch = raised / (SAMPLE * self.words.len() / WORDS_OF_AN_OBJECT);
            self.epoch.store(epoch as u64, Ordering::Relaxed);
        }
    }

    fn inserted(&self, _: usize) {}

    fn heat(&self, hash: u64) -> u32 {
        self.least(self.counters(hash)) as u32
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }
}

/// When keys were met last, in *ticks*: a thousandth of the table is inserted in one. A key has two
/// places, of which the older tells; the tick comes round after 65,536.
pub(super) struct Recency {
    ticks: Box<[AtomicU16]>,
    now: CachePadded<AtomicU16>,
    /// Objects that are inserted in a tick.
    step: usize,
}

const PLACES_OF_AN_OBJECT: usize = 4;
const TICKS: usize = 1 << 10;

impl Recency {
    #[inline]
    fn places(&self, hash: u64) -> [&AtomicU16; 2] {
        let hash = mixed(hash);
        let mask = self.ticks.len() - 1;
        [hash, hash.rotate_right(31)].map(|bits| &self.ticks[bits as usize & mask])
    }
}

impl Policy for Recency {
    fn new(objects: usize) -> Self {
        let places = PLACES_OF_AN_OBJECT * objects;
        Recency {
            ticks: (0..places).map(|_| AtomicU16::new(0)).collect(),
            now: CachePadded::default(),
            step: (objects / TICKS).max(1),
        }
    }

    #[inline]
    fn touched(&self, hash: u64) {
        // Ordering: Relaxed, see `Sketch::now`; here and below.
        let now = self.now.load(Ordering::Relaxed);
        for tick in self.places(hash) {
            if tick.load(Ordering::Relaxed) != now {
                tick.store(now, Ordering::Relaxed);
            }
        }
    }

    fn inserted(&self, objects: usize) {
        if objects.is_multiple_of(self.step) {
            self.now.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn heat(&self, hash: u64) -> u32 {
        let now = self.now.load(Ordering::Relaxed);
        let age = |tick: &AtomicU16| now.wrapping_sub(tick.load(Ordering::Relaxed));
        let [one, two] = self.places(hash).map(age);
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
    fn what_was_met_more_often_is_hotter_and_all_cool_down() {
        let sketch = Sketch::new(1 << 10);
        (0..9).for_each(|_| sketch.touched(1));
        (0..3).for_each(|_| sketch.touched(2));
        assert_eq!([1, 2, 3].map(|key| sketch.heat(key)), [9, 3, 0]);
        (0..100).for_each(|_| sketch.touched(1));
        assert_eq!(sketch.heat(1), 15);
        sketch.epoch.store(1, Ordering::Relaxed);
        assert_eq!([1, 2, 3].map(|key| sketch.heat(key)), [7, 1, 0]);
        sketch.touched(2);
        assert_eq!(sketch.heat(2), 2);
        sketch.epoch.store(5, Ordering::Relaxed);
        assert_eq!([1, 2].map(|key| sketch.heat(key)), [0, 0]);
        (0..100_000).for_each(|key| sketch.touched(key));
        assert!(sketch.epoch.load(Ordering::Relaxed) >= 7);
    }

    #[test]
    fn counters_are_those_of_few_keys() {
        let sketch = Sketch::new(1 << 12);
        (0..1 << 12).for_each(|key: u64| {
            (0..key % 8).for_each(|_| sketch.touched(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        });
        let wrong = (0..1 << 12).filter(|key: &u64| {
            let heat = sketch.heat(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            assert!(u64::from(heat) >= key % 8 || sketch.epoch.load(Ordering::Relaxed) > 0);
            u64::from(heat) != key % 8
        });
        assert!(wrong.count() < 1 << 7);
    }

    #[test]
    fn what_was_met_later_is_hotter() {
        let recency = Recency::new(1 << 6);
        for key in 0..50 {
            recency.touched(key);
            recency.inserted(key as usize);
        }
        recency.touched(7);
        let coldest = (0..50).min_by_key(|&key| recency.heat(key));
        assert_eq!(coldest, Some(0));
        let hottest = (0..50).max_by_key(|&key| recency.heat(key));
        assert_eq!(hottest, Some(7));
    }
}
