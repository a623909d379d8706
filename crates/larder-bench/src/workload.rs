//! Keys, values, orders and mixes, the same for every structure.

use crate::maps::peers::Handle;
use crate::result::{ensure, Failure, Outcome};
use fastrand::Rng;

/// The value of a key. Every answer is checked against it.
pub fn value_of(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D
}

/// The key of entry `i`: a bijection of 64 bits without a pattern (the finaliser of SplitMix64).
pub fn random_key(i: u64) -> u64 {
    let i = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let i = (i ^ (i >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    i ^ (i >> 31)
}

/// Pseudo-random numbers, the same for the same seed.
pub fn random(seed: u64) -> Rng {
    Rng::with_seed(random_key(seed))
}

/// The random numbers of a worker. The upper 24 bits of the seed are zero.
pub fn random_of_worker(seed: u64, number: usize) -> Rng {
    random(seed ^ (number as u64) << 40)
}

/// The numbers `0..n` in random order.
pub fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(n).expect("fewer than 2^32 entries")).collect();
    random(seed).shuffle(&mut order);
    order
}

/// Keys for a map that is filled, searched and emptied.
pub struct Keys {
    /// Random keys, in the order of insertion.
    pub insert: Vec<u64>,
    /// The same keys in another order. Entries often lie in memory in the order of insertion.
    pub visit: Vec<u64>,
    /// As many keys that aren't inserted.
    pub missing: Vec<u64>,
    /// The sum of all keys, and the exclusive or of all values: the result of a complete scan.
    pub sums: (u64, u64),
}

impl Keys {
    /// `n` keys of each kind.
    pub fn new(n: usize) -> Self {
        let order = shuffled(n, 3);
        let insert: Vec<u64> = (0..n as u64).map(random_key).collect();
        let sums = insert.iter().fold((0, 0), |(keys, values), &key| {
            (key.wrapping_add(keys), values ^ value_of(key))
        });
        // The bit distinguishes the numbers of missing keys from all inserted ones.
        let missing = order.iter().map(|&i| random_key(u64::from(i) | 1 << 40));
        Keys {
            visit: order.iter().map(|&i| insert[i as usize]).collect(),
            missing: missing.collect(),
            insert,
            sums,
        }
    }
}

/// Ranks from 0 that follow Zipf's law with an exponent below 1, by the formula of Gray and others,
/// "Quickly generating billion-record synthetic databases", 1994, as in the YCSB benchmark.
pub struct Zipf {
    n: f64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks below `n`. Takes time proportional to `n`.
    pub fn new(ranks: usize, theta: f64) -> Self {
        let n = ranks as f64;
        let zeta: f64 = (1..=ranks).map(|i| (i as f64).powf(-theta)).sum();
        let two = 1.0 + 2f64.powf(-theta);
        Zipf {
            n,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta: (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - two / zeta),
        }
    }

    pub fn next(&self, random: &mut Rng) -> usize {
        let u = random.f64();
        // The first two ranks are exact. The formula approximates the others.
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as usize).min(self.n as usize - 1)
    }
}

#[derive(Clone, Copy)]
pub enum Operation {
    Insert,
    Remove,
    Lookup,
    Other,
}

/// The key of a number, and the value that all threads put under it.
pub trait Entry: Fn(u64) -> (u64, u64) + Sync {}
impl<E: Fn(u64) -> (u64, u64) + Sync> Entry for E {}

/// Random operations of a mix on the entries of the numbers below `range`.
pub struct Load<'a, E> {
    /// The name of the structure, for failures.
    pub name: &'a str,
    /// Draws of 32 bits below the limits are inserts, removals, lookups.
    limits: [u64; 3],
    pub range: u64,
    pub entry: E,
}

impl<'a, E: Entry> Load<'a, E> {
    /// A load from its name, percentages of inserts, removals and lookups (the rest are other
    /// operations), range and entries.
    pub fn new(name: &'a str, percent: [f64; 3], range: u64, entry: E) -> Load<'a, E> {
        let [insert, remove, lookup] = percent;
        let draw = |percent: f64| (percent / 100.0 * (1u64 << 32) as f64).round() as u64;
        Load {
            name,
            limits: [insert, insert + remove, insert + remove + lookup].map(draw),
            range,
            entry,
        }
    }

    /// Whether there are inserts or removals.
    pub fn changes(&self) -> bool {
        self.limits[1] > 0
    }

    /// Draws an operation, and the number of its entry.
    #[inline]
    pub fn draw(&self, random: &mut Rng) -> (Operation, u64) {
        let bits = random.u64(..);
        // The low half of the bits chooses the entry. The shifted product is evenly distributed
        // below the range, and takes no division.
        let number = ((bits & 0xFFFF_FFFF) * self.range) >> 32;
        let [insert, remove, lookup] = self.limits;
        // The high half chooses the operation.
        let operation = match bits >> 32 {
            draw if draw < insert => Operation::Insert,
            draw if draw < remove => Operation::Remove,
            draw if draw < lookup => Operation::Lookup,
            _ => Operation::Other,
        };
        (operation, number)
    }

    /// Inserts the entries of these numbers.
    pub fn fill<H: Handle + ?Sized>(&self, handle: &mut H, numbers: impl Iterator<Item = u64>) {
        for (key, value) in numbers.map(&self.entry) {
            handle.insert(key, value);
        }
    }

    /// Executes operations while `more` returns true for their number. Returns their number.
    /// `other` executes the other operation of the mix with a key. A value that isn't that of its
    /// key is an error. A key may be missing: other threads remove keys.
    pub fn work<H: Handle + ?Sized>(
        &self,
        handle: &mut H,
        random: &mut Rng,
        more: impl Fn(u64) -> bool,
        other: impl Fn(&mut H, u64, &mut Rng) -> Result<(), String>,
    ) -> Outcome<u64> {
        let mut done = 0;
        while more(done) {
            let (operation, number) = self.draw(random);
            let (key, value) = (self.entry)(number);
            match operation {
                Operation::Insert => handle.insert(key, value),
                Operation::Remove => _ = handle.remove(key),
                Operation::Lookup => self.check(key, value, handle.get(key))?,
                Operation::Other => {
                    other(handle, key, random).map_err(|what| Failure::wrong(self.name, what))?
                }
            }
            done += 1;
        }
        Ok(done)
    }

    /// The number of entries that are present, of these numbers. Each is looked up by itself, so
    /// that a fault of scans hides none. A value that isn't that of its key is an error.
    pub fn count<H: Handle + ?Sized>(
        &self,
        handle: &mut H,
        numbers: impl Iterator<Item = u64>,
    ) -> Outcome<u64> {
        let mut count = 0;
        for (key, value) in numbers.map(&self.entry) {
            let found = handle.get(key);
            self.check(key, value, found)?;
            count += u64::from(found.is_some());
        }
        Ok(count)
    }

    fn check(&self, key: u64, value: u64, found: Option<u64>) -> Outcome {
        let right = found.is_none_or(|found| found == value);
        ensure!(right, self.name; "lookup of {key} gave {found:?}, not {value}");
        Ok(())
    }
}

/// Whether a thread continues after a number of operations, until `is_over`. The flag is read now
/// and then, since reading it costs more than some operations. One operation is executed in any
/// case, since a thread may start late.
pub fn until(is_over: impl Fn() -> bool) -> impl Fn(u64) -> bool {
    move |done| done == 0 || done % 16 != 0 || !is_over()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_entry_once() {
        let mut order = shuffled(1000, 7);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_mix_has_its_shares() {
        let load = |percent| Load::new("", percent, 10, |number| (number, number));
        let (mix, mut random) = (load([5.0, 10.0, 80.0]), random(1));
        let (mut seen, mut keys) = ([0; 4], [0; 10]);
        for _ in 0..100_000 {
            let (operation, key) = mix.draw(&mut random);
            seen[operation as usize] += 1;
            keys[key as usize] += 1;
        }
        let near = |n: i32, percent: i32| (n - 1000 * percent).abs() < 1000;
        let mut shares = seen.into_iter().zip([5, 10, 80, 5]);
        assert!(shares.all(|(n, share)| near(n, share)), "{seen:?}");
        assert!(keys.into_iter().all(|n| near(n, 10)), "{keys:?}");
        assert!(mix.changes() && !load([0.0, 0.0, 100.0]).changes());
    }

    #[test]
    fn zipf_prefers_low_ranks() {
        let (zipf, mut random) = (Zipf::new(1000, 0.99), random(1));
        let mut seen = vec![0u32; 1000];
        (0..200_000).for_each(|_| seen[zipf.next(&mut random)] += 1);
        // 1 / (sum of i^-0.99 for 1..=1000) is 0.129; rank 10 has 10^-0.99 of that.
        let [first, tenth] = [seen[0], seen[9]].map(f64::from);
        assert!((0.12..0.14).contains(&(first / 200_000.0)), "{first}");
        assert!((8.0..12.5).contains(&(first / tenth)), "{tenth}");
        assert!(seen[999] > 0);
    }
}
