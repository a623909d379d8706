//! The seeded hash of keys.

use rapidhash::v3::{rapidhash_v3_micro_inline, RapidSecrets};
use std::fmt;

/// A random member of a family of hash functions over bytes, one for each table: keys that are bad for one seed are good for the next.
#[derive(Clone)]
pub struct Seed(RapidSecrets);

impl Seed {
    /// A seed that nobody can foresee, from the system's random numbers.
    pub fn random() -> Seed {
        use std::hash::{BuildHasher, RandomState};
        Seed::from_number(RandomState::new().hash_one(0u64))
    }

    /// The seed of a number, for tests that must do the same twice.
    pub fn from_number(number: u64) -> Seed {
        Seed(RapidSecrets::seed(number))
    }

    /// The hash of a run of bytes. All 64 bits are good.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        rapidhash_v3_micro_inline::<true, true>(bytes, &self.0)
    }
}

impl fmt::Debug for Seed {
    /// Keeps the seed to itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_bits_spread() {
        let (a, b) = (Seed::random(), Seed::random());
        assert_ne!(a.hash(b"key"), b.hash(b"key"));
        assert_eq!(a.hash(b"key"), a.clone().hash(b"key"));
        let mut tops = [0u32; 256];
        for i in 0..65_536u32 {
            tops[(a.hash(&i.to_le_bytes()) >> 56) as usize] += 1;
        }
        assert!(tops.iter().all(|&n| (128..=384).contains(&n)), "{tops:?}");
    }
}
