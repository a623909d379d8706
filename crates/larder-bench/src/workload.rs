//! Keys, values, orders and mixes: the same for every structure.

use crate::maps::peers::Hand;
use crate::result::{ensure, Failure, Outcome};

/// The value that belongs under a key, so that every answer can be checked.
pub fn value_of(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D
}

/// A bijection of 64 bits that leaves no pattern (the finaliser of SplitMix64): entry `i` has the
/// key `random_key(i)`.
pub fn random_key(i: u64) -> u64 {
    let i = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let i = (i ^ (i >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    i ^ (i >> 31)
}

/// Pseudo-random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// Numbers that are the same for the same seed.
    pub fn new(seed: u64) -> Self {
        Random(random_key(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        random_key(self.0)
    }

    /// A number below `bound`, which is at most 2³².
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() >> 32) * bound) >> 32
    }

    /// A number from 0 (included) to 1 (not included).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Entries 0..n in random order.
pub fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(n).expect("fewer than 2^32 entries")).collect();
    let mut random = Random::new(seed);
    for i in (1..n).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// Keys for a map that is filled, searched and emptied.
pub struct Keys {
    /// Random keys, in the order of insertion.
    pub insert: Vec<u64>,
    /// The same keys in another order, since entries often lie in memory in the order of insertion.
    pub visit: Vec<u64>,
    /// As many keys that aren't inserted.
    pub missing: Vec<u64>,
    /// The sum of all keys, and the exclusive or of all values.
    pub sums: (u64, u64),
}

impl Keys {
    /// `n` keys of each kind.
    pub fn new(n: usize) -> Self {
        let order = shuffled(n, 3);
        let insert: Vec<u64> = (0..n as u64).map(random_key).collect();
        // What a complete scan must sum up to, in any order.
        Keys {
            sums: insert.iter().fold((0, 0), |(keys, values), &key| {
                (key.wrapping_add(keys), values ^ value_of(key))
            }),
            visit: order.iter().map(|&i| insert[i as usize]).collect(),
            // Numbers with a bit that no inserted number has. So none of these keys is found.
            missing: order
                .iter()
                .map(|&i| random_key(u64::from(i) | 1 << 40))
                .collect(),
            insert,
        }
    }
}

/// Ranks from 0 that follow Zipf's law with an exponent below 1: by the formula of Gray and others,
/// "Quickly generating billion-record synthetic databases", 1994, as the YCSB benchmark has it.
pub struct Zipf {
    n: f64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks below `n`. Takes time proportional to `n`.
    pub fn new(n: usize, theta: f64) -> Self {
        let zeta: f64 = (1..=n).map(|i| (i as f64).powf(-theta)).sum();
        let two = 1.0 + 2f64.powf(-theta);
        Zipf {
            n: n as f64,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta: (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - two / zeta),
        }
    }

    /// The next rank.
    pub fn next(&self, random: &mut Random) -> usize {
        let u = random.unit();
        // The first two ranks have their exact parts. The formula approximates those of the others.
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

/// The kind of an operation.
#[derive(Clone, Copy)]
pub enum Drawn {
    /// An insert.
    Insert,
    /// A removal.
    Remove,
    /// A lookup.
    Lookup,
    /// The other operation of the mix.
    Other,
}

/// The shares of the operations.
#[derive(Clone, Copy)]
pub struct Mix {
    /// Draws of 32 bits below the limits are inserts, removals, lookups.
    limits: [u64; 3],
}

impl Mix {
    /// Percentages of inserts, removals and lookups; the rest is the other operation.
    pub fn new([insert, remove, lookup]: [f64; 3]) -> Mix {
        let draw = |percent: f64| (percent / 100.0 * (1u64 << 32) as f64).round() as u64;
        let limits = [insert, insert + remove, insert + remove + lookup].map(draw);
        Mix { limits }
    }

    /// Whether it has inserts or removals.
    pub fn changes(&self) -> bool {
        self.limits[1] > 0
    }

    /// Draws the next operation, and the number of its key, which is less than `keys`.
    #[inline]
    pub fn draw(&self, random: &mut Random, keys: u64) -> (Drawn, u64) {
        let bits = random.bits();
        // The low half of the bits chooses the key. The product, shifted, is evenly distributed
        // below `keys`, and takes no division.
        let key = ((bits & 0xFFFF_FFFF) * keys) >> 32;
        // The high half chooses the operation, by the limits between them.
        let what = bits >> 32;
        let [insert, remove, lookup] = self.limits;
        let drawn = match what {
            _ if what < insert => Drawn::Insert,
            _ if what < remove => Drawn::Remove,
            _ if what < lookup => Drawn::Lookup,
            _ => Drawn::Other,
        };
        (drawn, key)
    }
}

/// The operations that a thread repeats on a structure: one of the mix, on the entry of a number
/// below `range`.
pub struct Load<'a, E> {
    /// The structure's name.
    pub name: &'a str,
    /// Which operations.
    pub mix: Mix,
    /// How many entries there may be.
    pub range: u64,
    /// The key of a number, and the value that every thread puts there.
    pub entry: E,
}

impl<E: Fn(u64) -> (u64, u64)> Load<'_, E> {
    /// Draws operations while `more` returns true for the number that were done. Returns that
    /// number. `other` is the other operation of the mix, on a key.
    ///
    /// # Errors
    /// A value that was found and is not its key's. A missing one is right: other threads may have
    /// removed it.
    pub fn work<H: Hand + ?Sized>(
        &self,
        hand: &mut H,
        random: &mut Random,
        more: impl Fn(u64) -> bool,
        other: impl Fn(&mut H, u64, &mut Random) -> Result<(), String>,
    ) -> Outcome<u64> {
        let mut done = 0;
        while more(done) {
            let (drawn, number) = self.mix.draw(random, self.range);
            let (key, value) = (self.entry)(number);
            match drawn {
                Drawn::Insert => hand.insert(key, value),
                Drawn::Remove => _ = hand.remove(key),
                Drawn::Lookup => right(self.name, key, value, hand.get(key))?,
                Drawn::Other => {
                    let done = other(hand, key, random);
                    done.map_err(|what| Failure::wrong(self.name, what))?;
                }
            }
            done += 1;
        }
        Ok(done)
    }

    /// How many entries of these numbers are there. Each is looked up by itself, so that none is
    /// hidden by a fault of scans.
    ///
    /// # Errors
    /// A value that is not its key's.
    pub fn there<H: Hand + ?Sized>(
        &self,
        hand: &mut H,
        numbers: impl Iterator<Item = u64>,
    ) -> Outcome<u64> {
        let mut there = 0;
        for (key, value) in numbers.map(&self.entry) {
            let found = hand.get(key);
            right(self.name, key, value, found)?;
            there += u64::from(found.is_some());
        }
        Ok(there)
    }
}

fn right(name: &str, key: u64, value: u64, found: Option<u64>) -> Outcome {
    ensure!(
        found.is_none_or(|found| found == value),
        name,
        "lookup of {key} gave {found:?}, not {value}"
    );
    Ok(())
}

/// Whether a thread goes on that has done so many operations, until it `is_over`. The flag is
/// looked at now and then, since that costs more than some operations. One operation is done in any
/// case, since a thread may come late to a short time.
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
    fn a_mix_has_its_parts() {
        let (mix, mut random) = (Mix::new([5.0, 10.0, 80.0]), Random::new(1));
        let (mut seen, mut keys) = ([0; 4], [0; 10]);
        for _ in 0..100_000 {
            let (drawn, key) = mix.draw(&mut random, 10);
            seen[drawn as usize] += 1;
            keys[key as usize] += 1;
        }
        let near = |n: i32, percent: i32| (n - 1000 * percent).abs() < 1000;
        let all = seen.into_iter().zip([5, 10, 80, 5]);
        assert!(
            all.into_iter().all(|(n, percent)| near(n, percent)),
            "{seen:?}"
        );
        assert!(keys.into_iter().all(|n| near(n, 10)), "{keys:?}");
        assert!(mix.changes() && !Mix::new([0.0, 0.0, 100.0]).changes());
    }

    #[test]
    fn zipf_prefers_low_ranks_as_the_law_says() {
        let (zipf, mut random) = (Zipf::new(1000, 0.99), Random::new(1));
        let mut seen = vec![0u32; 1000];
        (0..200_000).for_each(|_| seen[zipf.next(&mut random)] += 1);
        // 1 / (sum of i^-0.99 for 1..=1000) is 0.129; rank 10 has 10^-0.99 of that.
        assert!(
            (0.12..0.14).contains(&(f64::from(seen[0]) / 200_000.0)),
            "{}",
            seen[0]
        );
        assert!(
            (8.0..12.5).contains(&(f64::from(seen[0]) / f64::from(seen[9]))),
            "{}",
            seen[9]
        );
        assert!(seen[999] > 0);
    }
}
