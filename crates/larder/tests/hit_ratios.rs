//! How often a table that evicts has what is asked for, beside plain implementations of the
//! policies that it comes near to: exact LRU, and W-TinyLFU with exact counts.

use larder::api::{Larder, Table};
use larder::Evict;
use larder_term::term;
use larder_testing::random::Random;
use std::collections::{BTreeMap, HashMap};

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

/// Numbers from 0 by Zipf's law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=keys).map(|rank| {
            sum += 1.0 / (rank as f64).powf(exponent);
            sum
        });
        Zipf(sums.collect())
    }

    fn next(&self, random: &mut Random) -> u64 {
        let all = self.0[self.0.len() - 1];
        let at = random.below(1 << 53) as f64 / (1u64 << 53) as f64 * all;
        self.0.partition_point(|&sum| sum <= at) as u64
    }
}

const KEYS: usize = 10_000;
const MOST: usize = 500;
const ASKED: usize = 120_000;

/// The traces: names, and which keys are asked for.
fn traces() -> Vec<(&'static str, Vec<u64>)> {
    let mut random = Random(3);
    let mut zipf = |exponent, map: &dyn Fn(usize, u64) -> u64| {
        let zipf = Zipf::new(KEYS, exponent);
        (0..ASKED)
            .map(|i| map(i, zipf.next(&mut random)))
            .collect::<Vec<_>>()
    };
    let once = |i: usize| (KEYS + i) as u64;
    vec![
        ("zipf 0.7", zipf(0.7, &|_, key| key)),
        ("zipf 0.9", zipf(0.9, &|_, key| key)),
        ("zipf 1.2", zipf(1.2, &|_, key| key)),
        (
            "zipf 0.9, and scans",
            zipf(0.9, &|i, key| match i / 1_000 % 4 {
                3 => once(i),
                _ => key,
            }),
        ),
        (
            "a loop",
            (0..ASKED).map(|i| (i % (MOST * 3 / 2)) as u64).collect(),
        ),
        (
            "zipf 0.9, another hot set each time",
            zipf(0.9, &|i, key| key + (i / (ASKED / 4) * KEYS) as u64),
        ),
    ]
}

/// Hits in a hundred, of the second half.
fn ratio(cache: &mut dyn Cache, trace: &[u64]) -> f64 {
    let hits = trace
        .iter()
        .map(|&key| cache.asks(key))
        .skip(trace.len() / 2);
    100.0 * hits.filter(|&hit| hit).count() as f64 / (trace.len() / 2) as f64
}

/// In an ordered_set the hottest keys are neighbours here, which makes it harder to tell what is
/// cold from a few of them.
#[test]
fn hit_ratios_are_those_of_the_policies() {
    for (name, trace) in traces() {
        let (most, order) = (MOST, Order::default());
        let lru = ratio(&mut Lru { most, order }, &trace);
        let tiny_lfu = ratio(&mut TinyLfu::new(MOST), &trace);
        for (kind, is_ordered) in [("set", false), ("ordered_set", true)] {
            for (evict, exact) in [(Evict::Lru, lru), (Evict::TinyLfu, tiny_lfu)] {
                let ours = ratio(&mut Larders::new(MOST, evict, is_ordered), &trace);
                println!("{name}, {kind}, {evict:?}: {ours:.2} (exactly {exact:.2})");
                assert!(
                    ours >= exact - 1.0,
                    "{name}, {kind}, {evict:?}: {ours:.2}, exactly {exact:.2}"
                );
            }
        }
    }
}
