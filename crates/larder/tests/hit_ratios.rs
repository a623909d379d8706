//! The hit ratios of tables that evict, compared with plain implementations of the policies that
//! they approximate: exact LRU, W-TinyLFU with exact counts, and exact SIEVE.

use larder::api::{Larder, Table};
use larder::{Bounds, Evict, Limits};
use larder_term::term;
use larder_testing::random::Random;
use larder_testing::traces;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

/// A cache of keys.
trait Cache {
    /// Whether the key is there; if not, it is put there.
    fn asks(&mut self, key: u64) -> bool;
}

struct Larders(Table);

impl Larders {
    fn new(most: usize, evict: Evict, is_ordered: bool) -> Self {
        let builder = Larder::new().table("t").max_size(most).evict(evict);
        let builder = match is_ordered {
            true => builder.ordered_set(),
            false => builder,
        };
        Larders(builder.create().unwrap())
    }
}

impl Cache for Larders {
    fn asks(&mut self, key: u64) -> bool {
        let key = key as i64;
        let is_there = !self.0.lookup(&term!((key))).unwrap().is_empty();
        if !is_there {
            self.0.insert(&term!({(key), 0})).unwrap();
        }
        is_there
    }
}

/// A table from which absent keys are deleted all the time.
struct WithDeletes(Larders, i64);

impl Cache for WithDeletes {
    fn asks(&mut self, key: u64) -> bool {
        for _ in 0..16 {
            self.1 -= 1;
            self.0 .0.delete(&term!((self.1))).unwrap();
        }
        self.0.asks(key)
    }
}

/// Keys in the order in which they were asked for last.
#[derive(Default)]
struct Order {
    when: HashMap<u64, u64>,
    keys: BTreeMap<u64, u64>,
    now: u64,
}

impl Order {
    /// Whether it was there.
    fn put(&mut self, key: u64) -> bool {
        self.now += 1;
        let was = self.when.insert(key, self.now);
        was.map(|was| self.keys.remove(&was));
        self.keys.insert(self.now, key);
        was.is_some()
    }

    fn oldest(&self) -> u64 {
        *self.keys.first_key_value().unwrap().1
    }

    fn remove(&mut self, key: u64) {
        let was = self.when.remove(&key).unwrap();
        self.keys.remove(&was);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

struct Lru {
    most: usize,
    order: Order,
}

impl Cache for Lru {
    fn asks(&mut self, key: u64) -> bool {
        let is_there = self.order.put(key);
        if self.order.len() > self.most {
            self.order.remove(self.order.oldest());
        }
        is_there
    }
}

/// A window of a hundredth; a main part of which four fifths are protected.
struct TinyLfu {
    most: usize,
    window: Order,
    probation: Order,
    protected: Order,
    counts: HashMap<u64, u32>,
    counted: usize,
}

impl TinyLfu {
    fn new(most: usize) -> Self {
        TinyLfu {
            most,
            window: Order::default(),
            probation: Order::default(),
            protected: Order::default(),
            counts: HashMap::new(),
            counted: 0,
        }
    }

    fn count(&mut self, key: u64) {
        let count = self.counts.entry(key).or_default();
        *count = (*count + 1).min(15);
        self.counted += 1;
        if self.counted == 10 * self.most {
            self.counted = 0;
            self.counts.values_mut().for_each(|count| *count /= 2);
        }
    }
}

impl Cache for TinyLfu {
    fn asks(&mut self, key: u64) -> bool {
        self.count(key);
        if self.window.when.contains_key(&key) {
            return self.window.put(key);
        }
        if self.protected.when.contains_key(&key) {
            return self.protected.put(key);
        }
        if self.probation.when.contains_key(&key) {
            self.probation.remove(key);
            self.protected.put(key);
            if self.protected.len() > self.most * 4 / 5 {
                let oldest = self.protected.oldest();
                self.protected.remove(oldest);
                self.probation.put(oldest);
            }
            return true;
        }
        self.window.put(key);
        if self.window.len() > (self.most / 100).max(1) {
            let new = self.window.oldest();
            self.window.remove(new);
            if self.window.len() + self.probation.len() + self.protected.len() < self.most {
                self.probation.put(new);
                return false;
            }
            let old = self.probation.oldest();
            if self.counts[&new] > self.counts.get(&old).copied().unwrap_or(0) {
                self.probation.remove(old);
                self.probation.put(new);
            }
        }
        false
    }
}

/// A queue in the order of insertion, and a hand.
struct Sieve {
    most: usize,
    /// Keys by the number of their insertion, and whether they were used since the hand came.
    queue: BTreeMap<u64, (u64, bool)>,
    inserted: HashMap<u64, u64>,
    next: u64,
    hand: u64,
}

impl Sieve {
    fn new(most: usize) -> Self {
        Sieve {
            most,
            queue: BTreeMap::new(),
            inserted: HashMap::new(),
            next: 0,
            hand: 0,
        }
    }

    fn evict(&mut self) {
        loop {
            let Some((&number, (key, used))) = self.queue.range_mut(self.hand..).next() else {
                self.hand = 0;
                continue;
            };
            self.hand = number + 1;
            if !std::mem::take(used) {
                self.inserted.remove(key);
                self.queue.remove(&number);
                return;
            }
        }
    }
}

impl Cache for Sieve {
    fn asks(&mut self, key: u64) -> bool {
        if let Some(number) = self.inserted.get(&key) {
            self.queue.get_mut(number).unwrap().1 = true;
            return true;
        }
        if self.queue.len() == self.most {
            self.evict();
        }
        self.inserted.insert(key, self.next);
        self.queue.insert(self.next, (key, false));
        self.next += 1;
        false
    }
}

const KEYS: usize = 10_000;
const CAPACITY: usize = 500;
const REQUESTS: usize = 120_000;
/// The first key of long scans, each of which is requested once.
const SCANNED: u64 = 1 << 40;

/// Hits in percent, of the second half of a trace. Keys of long scans don't count.
fn ratio(cache: &mut dyn Cache, trace: &[u64]) -> f64 {
    let (mut hits, mut all) = (0, 0);
    for (i, &key) in trace.iter().enumerate() {
        let is_hit = cache.asks(key);
        if i >= trace.len() / 2 && key < SCANNED {
            hits += usize::from(is_hit);
            all += 1;
        }
    }
    100.0 * hits as f64 / all as f64
}

/// The difference from the exact policy, in points. On most traces it is about a point at most.
///
/// In a loop the oldest object is the next one that is needed, and a sample doesn't always have it.
/// Where the hot set moves the hand of exact SIEVE is slow to leave the old one. That of a table
/// goes on as soon as all candidates are in use. With SIEVE a run on Zipf 0.9 differs from the next
/// by up to half a point, where the hot set moves by up to four.
fn tolerance(trace: &str, evict: Evict) -> RangeInclusive<f64> {
    match (trace, evict) {
        ("loop", Evict::Lru | Evict::TinyLfu) => 2.0..=8.0,
        ("loop", Evict::Sieve) => 0.0..=3.0,
        ("zipf 0.9", Evict::Sieve) => -1.5..=1.0,
        ("hot set moves", Evict::Sieve) => 6.0..=13.0,
        _ => -1.5..=1.5,
    }
}

/// The mean of so many runs is compared, that chance doesn't take it out of the tolerance.
fn runs(trace: &str, evict: Evict) -> u32 {
    match (trace, evict) {
        ("hot set moves", Evict::Sieve) => 4,
        _ => 1,
    }
}

fn check(name: &str, evict: Evict, ours: f64, exact: f64, tolerance: &RangeInclusive<f64>) {
    println!("{name}, {evict:?}: {ours:.2} (exactly {exact:.2})");
    assert!(
        tolerance.contains(&(ours - exact)),
        "{name}, {evict:?}: {ours:.2}, exactly {exact:.2}, tolerance {tolerance:?}"
    );
}

/// An operation that finds nothing is no use of a key, and takes no place from those that are.
#[test]
fn deletes_of_absent_keys_change_nothing() {
    let mut random = Random(4);
    let trace = traces::all(REQUESTS, KEYS, CAPACITY, &mut || random.unit()).swap_remove(0);
    for evict in [Evict::Lru, Evict::TinyLfu, Evict::Sieve] {
        let without = ratio(&mut Larders::new(CAPACITY, evict, false), &trace.keys);
        let table = Larders::new(CAPACITY, evict, false);
        let with = ratio(&mut WithDeletes(table, 0), &trace.keys);
        check("with deletes", evict, with, without, &(-1.0..=1.0));
    }
}

/// In an ordered_set the hottest keys are neighbours here, which makes it harder to tell what is
/// cold from a few of them.
#[test]
fn hit_ratios_are_those_of_the_policies() {
    let mut random = Random(3);
    for trace in traces::all(REQUESTS, KEYS, CAPACITY, &mut || random.unit()) {
        let (name, trace) = (trace.name, trace.keys);
        let (most, order) = (CAPACITY, Order::default());
        let lru = ratio(&mut Lru { most, order }, &trace);
        let tiny_lfu = ratio(&mut TinyLfu::new(CAPACITY), &trace);
        let sieve = ratio(&mut Sieve::new(CAPACITY), &trace);
        for (kind, is_ordered) in [("set", false), ("ordered_set", true)] {
            for (evict, exact) in [
                (Evict::Lru, lru),
                (Evict::TinyLfu, tiny_lfu),
                (Evict::Sieve, sieve),
            ] {
                let runs = runs(name, evict);
                let ours = (0..runs)
                    .map(|_| ratio(&mut Larders::new(CAPACITY, evict, is_ordered), &trace))
                    .sum::<f64>()
                    / f64::from(runs);
                let tolerance = tolerance(name, evict);
                check(&format!("{name}, {kind}"), evict, ours, exact, &tolerance);
            }
        }
    }
}

/// What is recorded of uses was sized for the limit of before.
#[test]
fn hit_ratios_follow_a_limit_that_is_lowered() {
    let mut random = Random(7);
    let traces = traces::all(REQUESTS, KEYS, CAPACITY, &mut || random.unit());
    let trace = traces.iter().find(|trace| trace.name == "hot set moves");
    let trace = &trace.unwrap().keys;
    let (most, order) = (CAPACITY, Order::default());
    let lru = ratio(&mut Lru { most, order }, trace);
    let tiny_lfu = ratio(&mut TinyLfu::new(CAPACITY), trace);
    for (evict, exact) in [(Evict::Lru, lru), (Evict::TinyLfu, tiny_lfu)] {
        let before = 400 * CAPACITY;
        let mut larders = Larders::new(before, evict, false);
        for key in 0..before as u64 / 4 * 3 {
            larders.asks(SCANNED + key);
        }
        let limits = Limits {
            max_size: Some(CAPACITY),
            max_memory: None,
            evict,
        };
        let bounds = Bounds {
            limits: Some(limits),
            ..Bounds::default()
        };
        larders.0.set_bounds(&bounds).unwrap();
        while larders.0.len() > CAPACITY {
            std::thread::yield_now();
        }
        let ours = ratio(&mut larders, trace);
        check("a lowered limit", evict, ours, exact, &(-1.0..=1.5));
    }
}

/// More than the least number of objects with which a table of `tinylfu` ends epochs early.
const LARGE: usize = 10_000;

/// A trace with a scan of six times as many keys as the table has after 15 times as many requests.
fn with_long_scans(trace: &[u64]) -> Vec<u64> {
    let mut scanned = SCANNED..;
    let with_scan = |part: &[u64]| {
        let scan = scanned.by_ref().take(6 * LARGE);
        part.iter().copied().chain(scan).collect::<Vec<_>>()
    };
    trace.chunks(15 * LARGE).flat_map(with_scan).collect()
}

/// In a large table, an epoch of `tinylfu` ends early when other keys become hot. So it has more
/// hits than exact counts where the hot set moves, and no fewer where it stays. A long scan is
/// taken for a hot set that moves, which costs hits.
#[test]
fn epochs_end_early_when_the_hot_set_moves() {
    let mut random = Random(5);
    let mut unit = || random.unit();
    let all = traces::all(100 * LARGE, 20 * LARGE, LARGE, &mut unit);
    for (name, is_scanned, tolerance) in [
        ("zipf 0.7", false, -1.0..=1.0),
        ("zipf 0.9", false, -1.0..=1.0),
        ("zipf 0.9", true, -5.5..=1.0),
        ("hot set moves", false, 1.5..=4.0),
    ] {
        let trace = all.iter().find(|trace| trace.name == name).unwrap();
        let (name, keys) = match is_scanned {
            true => ("long scans", with_long_scans(&trace.keys)),
            false => (name, trace.keys.clone()),
        };
        let exact = ratio(&mut TinyLfu::new(LARGE), &keys);
        let ours = ratio(&mut Larders::new(LARGE, Evict::TinyLfu, false), &keys);
        check(name, Evict::TinyLfu, ours, exact, &tolerance);
    }
}
