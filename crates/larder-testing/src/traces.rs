//! The keys that a program requests from a cache: the access patterns that studies of caches use.
//!
//! | trace | what it stands for |
//! |---|---|
//! | `zipf 0.7`, `zipf 0.9`, `zipf 1.2` | Zipf's law: a flat, a usual and a steep one |
//! | `zipf and scans` | every fourth thousand of requests is for keys requested once |
//! | `loop` | 1.5 times as many keys as the cache holds, in order, repeatedly |
//! | `hot set moves` | Zipf 0.9, over different keys in each quarter of the trace |

/// A trace of requests.
#[derive(Debug)]
pub struct Trace {
    /// Its name in reports.
    pub name: &'static str,
    /// The requested keys, in order.
    pub keys: Vec<u64>,
}

/// Ranks from 0 that follow Zipf's law, with any exponent. The vector has the cumulative weights of
/// the ranks.
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

    /// The rank for `unit`, a random number from 0 (included) to 1 (not included).
    fn rank(&self, unit: f64) -> u64 {
        let all = self.0.last().copied().unwrap_or(0.0);
        let at = unit * all;
        self.0.partition_point(|&sum| sum <= at) as u64
    }
}

/// All traces, in the order of the table above: `requests` requests each, over `keys` keys, for a
/// cache of `capacity` entries. The traces depend on `unit` alone, which returns random numbers
/// from 0 (included) to 1 (not included).
pub fn all(
    requests: usize,
    keys: usize,
    capacity: usize,
    unit: &mut dyn FnMut() -> f64,
) -> Vec<Trace> {
    // A trace by Zipf's law. `map` converts the `i`th request from a rank to a key.
    let mut zipf = |name, exponent, map: &dyn Fn(usize, u64) -> u64| {
        let zipf = Zipf::new(keys, exponent);
        let keys = (0..requests).map(|i| map(i, zipf.rank(unit())));
        let keys = keys.collect();
        Trace { name, keys }
    };
    // Lengths are fixed by the number of requests and the capacity, so that traces of different
    // sizes have the same shape.
    let (quarter, looped) = (requests.div_ceil(4), capacity * 3 / 2);
    vec![
        zipf("zipf 0.7", 0.7, &|_, rank| rank),
        zipf("zipf 0.9", 0.9, &|_, rank| rank),
        zipf("zipf 1.2", 1.2, &|_, rank| rank),
        // Each request of a scan is for a new key, after all others.
        zipf("zipf and scans", 0.9, &|i, rank| match i / 1_000 % 4 {
            3 => (keys + i) as u64,
            _ => rank,
        }),
        Trace {
            // With LRU no request is a hit, although two thirds of the keys fit.
            name: "loop",
            keys: (0..requests).map(|i| (i % looped) as u64).collect(),
        },
        // Each quarter has keys of its own.
        zipf("hot set moves", 0.9, &|i, rank| {
            (i / quarter * keys) as u64 + rank
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn traces_are_what_their_names_say() {
        let mut random = Random(3);
        let traces = all(40_000, 1_000, 100, &mut || random.unit());
        let of = |name| &traces.iter().find(|trace| trace.name == name).unwrap().keys;
        let share = |name| {
            let keys = of(name);
            keys.iter().filter(|&&key| key == 0).count() as f64 / keys.len() as f64
        };
        // 1 / (sum of i^-s for 1..=1000), for s of 0.7 and 1.2.
        assert!((0.035..0.043).contains(&share("zipf 0.7")));
        assert!((0.20..0.25).contains(&share("zipf 1.2")));
        assert_eq!(of("loop")[150..153], [0, 1, 2]);
        let once = of("zipf and scans").iter().filter(|&&key| key >= 1_000);
        assert_eq!(once.count(), 10_000);
        assert!(of("hot set moves")[30_000..]
            .iter()
            .all(|&key| key >= 3_000));
    }
}
