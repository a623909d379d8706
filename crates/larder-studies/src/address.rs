//! The addresses of linear hashing, for buckets in the order of hashes.
//!
//! ```text
//!   6 buckets: level 2, 2 of 4 divided       bucket = the hash's bits from the top down, the first one lowest
//!
//!   hash 000.. 001.. 010.. 011.. 100.. 101.. 110.. 111..
//!        \ 0 /  \ 4 /  \--- 2 ---/  1     5   \--- 3 ---/      in order: 0 4 2 1 5 3
//! ```
//!
//! Larson takes a bucket's number from the low bits of the hash. Here the bits are the top ones in
//! reverse, so that each bucket has one run of hashes and a bucket that is divided leaves two
//! neighbours: who goes through the buckets in the order of hashes goes on from where they were,
//! however often buckets have been divided and joined meanwhile.
//!
//! Invariants: 1. A bucket below `divided`, or at or past 2^level, has the hashes that begin with
//! its level + 1 bits; the others with level bits.
//! 2. `divided` < 2^level.
//!
//! Source: P.-Å. Larson, "Dynamic hash tables", CACM 31(4), 1988; W. Litwin, 1980.

/// Bits of hash in a position.
const BITS: u32 = 48;
/// No more buckets than there are numbers for chains of nodes.
const MOST_LEVEL: u32 = 31;

/// How many buckets there are, and which hashes each has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    level: u32,
    divided: usize,
}

impl Address {
    /// The number of buckets; one at the beginning.
    #[inline]
    pub(crate) fn buckets(self) -> usize {
        (1 << self.level) + self.divided
    }

    /// The bucket of a hash (at the top of the word).
    #[inline]
    pub(crate) fn bucket(self, hash: u64) -> usize {
        let bits = hash.reverse_bits() as usize;
        let bucket = bits & ((1 << self.level) - 1);
        if bucket < self.divided {
            bits & ((2 << self.level) - 1)
        } else {
            bucket
        }
    }

    /// The bits of hash that are the same for all of a bucket.
    fn depth(self, bucket: usize) -> u32 {
        let lower = bucket & ((1 << self.level) - 1);
        self.level + u32::from(lower < self.divided || lower != bucket)
    }

    /// The first hash past the bucket of this one; none at the end.
    fn past(self, hash: u64) -> Option<u64> {
        let depth = self.depth(self.bucket(hash));
        if depth == 0 {
            return None;
        }
        let step = 1u64 << (u64::BITS - depth);
        (hash & !(step - 1)).checked_add(step)
    }

    /// Calls `each` with the buckets from a hash on (from the edge, if it is none), until it
    /// answers false; answers whether the end was reached.
    pub(crate) fn walk(
        self,
        forward: bool,
        from: Option<u64>,
        mut each: impl FnMut(usize) -> bool,
    ) -> bool {
        let mut hash = from.unwrap_or(if forward { 0 } else { u64::MAX });
        while each(self.bucket(hash)) {
            let next = if forward {
                self.past(hash)
            } else {
                self.before(hash)
            };
            match next {
                Some(next) => hash = next,
                None => return true,
            }
        }
        false
    }

    /// The last hash before the bucket of this one; none at the beginning.
    fn before(self, hash: u64) -> Option<u64> {
        let depth = self.depth(self.bucket(hash));
        if depth == 0 {
            return None;
        }
        let step = 1u64 << (u64::BITS - depth);
        (hash & !(step - 1)).checked_sub(1)
    }

    /// One bucket more: gives the bucket that is divided and the bit (as a mask of the hash) that
    /// says which of its entries go to the new one, which is the last. None if there is no bit
    /// left.
    pub(crate) fn grow(&mut self) -> Option<(usize, u64)> {
        if self.level + 1 >= MOST_LEVEL.min(BITS) {
            return None;
        }
        let bucket = self.divided;
        let mask = 1 << (u64::BITS - 1 - self.level);
        self.divided += 1;
        if self.divided == 1 << self.level {
            self.level += 1;
            self.divided = 0;
        }
        Some((bucket, mask))
    }

    /// One bucket less: gives the bucket that takes the entries of the last one. None if there is
    /// but one.
    pub(crate) fn shrink(&mut self) -> Option<usize> {
        if self.divided == 0 {
            self.level = self.level.checked_sub(1)?;
            self.divided = 1 << self.level;
        }
        self.divided -= 1;
        Some(self.divided)
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    #[test]
    fn buckets_go_by_the_order_of_hashes() {
        let mut address = Address::default();
        for n in 1..300 {
            assert_eq!(address.buckets(), n);
            let (mut hash, mut visited) = (0, Vec::new());
            loop {
                visited.push(address.bucket(hash));
                let Some(next) = address.past(hash) else {
                    break;
                };
                assert!(next > hash);
                assert_eq!(address.before(next), Some(next - 1));
                assert_eq!(address.bucket(next - 1), address.bucket(hash));
                hash = next;
            }
            visited.sort_unstable();
            assert!(visited.into_iter().eq(0..n));
            let before = address;
            let (divided, bit) = address.grow().unwrap();
            let hashes = (0..1000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            for hash in hashes {
                let (old, new) = (before.bucket(hash), address.bucket(hash));
                let goes = old == divided && hash & bit != 0;
                assert_eq!(new, if goes { n } else { old });
            }
        }
        for n in (1..300).rev() {
            let last = address.buckets() - 1;
            let to = address.shrink().unwrap();
            assert_eq!(address.buckets(), n);
            assert!(to < last);
        }
        assert_eq!((address.shrink(), address), (None, Address::default()));
    }
}
