//! The seeded hash of keys.

use rapidhash::v3::{rapidhash_v3_micro_inline, RapidSecrets};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;

/// A random member of a family of hash functions over bytes. Each table has its own. Keys that
/// collide often with one seed don't with another.
#[derive(Clone)]
pub struct Seed(RapidSecrets);

impl Seed {
    /// An unpredictable seed, made of the system's random numbers. The multipliers take long to
    /// compute, and are the same for all seeds of the process. The value with which they are mixed
    /// differs.
    pub fn random() -> Seed {
        // Computing the multipliers is slow, so all tables share them.
        static STATE: LazyLock<(RandomState, RapidSecrets)> = LazyLock::new(|| {
            let state = RandomState::new();
            let secrets = RapidSecrets::seed(state.hash_one(u64::MAX));
            (state, secrets)
        });
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (state, secrets) = &*STATE;
        Seed(RapidSecrets {
            // Ordering: Relaxed; it only matters that the numbers are different.
            seed: state.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)),
            ..*secrets
        })
    }

    /// The seed that a number determines, for tests that must be repeatable.
    pub fn from_number(number: u64) -> Seed {
        Seed(RapidSecrets::seed(number))
    }

    /// The hash of some bytes. All 64 bits are well distributed.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        match bytes.len() {
            0..=SHORT => self.hash_short(bytes),
            _ => self.hash_long(bytes),
        }
    }

    #[inline(never)]
    fn hash_long(&self, bytes: &[u8]) -> u64 {
        rapidhash_v3_micro_inline::<true, true>(bytes, &self.0)
    }

    /// The same for at most `SHORT` bytes. It takes two multiplications, and is small enough to be
    /// inlined.
    #[inline(always)]
    fn hash_short(&self, bytes: &[u8]) -> u64 {
        let len = bytes.len() as u64;
        let mut seed = self.0.seed;
        // 1. Read the ends of the key as two words, by the length. The words overlap if the key is
        // shorter than both, which is harmless: no byte is left out.
        let (a, b) = match (ends(bytes), ends(bytes)) {
            (Some((first, last)), _) => {
                seed ^= len;
                (u64::from_le_bytes(first), u64::from_le_bytes(last))
            }
            (_, Some((first, last))) => {
                seed ^= len;
                let (first, last) = (u32::from_le_bytes(first), u32::from_le_bytes(last));
                (first.into(), last.into())
            }
            // Up to three bytes: the first, the middle and the last one are all there are. The
            // length is mixed in below, so that keys of equal bytes and different lengths differ.
            _ => match (bytes.first(), bytes.last()) {
                (Some(&first), Some(&last)) => {
                    let middle = bytes[bytes.len() / 2];
                    (u64::from(first) << 45 | u64::from(last), middle.into())
                }
                _ => (0, 0),
            },
        };
        // 2. Mix both words with the secrets in two rounds. Each round folds a product of 128 bits,
        // so that every bit of the key reaches every bit of the result.
        let secret = self.0.secrets[1];
        let (low, high) = multiply(a ^ secret, b ^ seed);
        let (low, high) = multiply(low ^ 0xAAAA_AAAA_AAAA_AAAA, high ^ secret ^ len);
        low ^ high
    }
}

/// The length of the longest bytes that [`Seed::hash`] handles inline.
const SHORT: usize = 16;

/// The first and the last `N` bytes, if there are as many.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> Option<([u8; N], [u8; N])> {
    Some((*bytes.first_chunk()?, *bytes.last_chunk()?))
}

/// Both halves of a product, each mixed with a factor. So the result depends on both factors, even
/// if one is 0.
#[inline]
fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (a ^ product as u64, b ^ (product >> 64) as u64)
}

impl fmt::Debug for Seed {
    /// Doesn't show the seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_have_the_hash_that_long_ones_have() {
        let bytes: Vec<u8> = (0..=255).map(|n: u8| n.wrapping_mul(37) ^ 0x5C).collect();
        for number in 0..50 {
            let seed = Seed::from_number(number);
            for len in 0..=2 * SHORT {
                for run in bytes.windows(len.max(1)).map(|run| &run[..len]) {
                    assert_eq!(seed.hash(run), seed.hash_long(run));
                }
            }
        }
    }

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
