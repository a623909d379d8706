//! The address function of linear hashing, with buckets in the order of hashes.
//!
//! ```text
//!   6 buckets: level 2, 2 of 4 are split      bucket = the top bits of the hash, reversed
//!
//!   hash 000.. 001.. 010.. 011.. 100.. 101.. 110.. 111..
//!        \ 0 /  \ 4 /  \--- 2 ---/  1     5   \--- 3 ---/      in order: 0 4 2 1 5 3
//! ```
//!
//! Larson takes the number of a bucket from the low bits of the hash. Here it is the top bits in
//! reverse order. So each bucket has one range of hashes, and a split makes two neighbouring
//! ranges. A walk through the buckets in the order of hashes can resume at a hash, however often
//! buckets have been split and joined meanwhile.
//!
//! Invariants:
//! * **AD1** The hashes of a bucket agree in level + 1 bits if its number is less than `divided`,
//!   or at least 2^level. Otherwise they agree in level bits.
//! * **AD2** `divided` < 2^level.
//!
//! Source: P.-Å. Larson, "Dynamic hash tables", CACM 31(4), 1988; W. Litwin, 1980.

/// The number of bits of the hash in a position.
const BITS: u32 = 48;
/// The maximum level. Nodes have 32-bit numbers, so further buckets would be empty.
const MOST_LEVEL: u32 = 31;

/// The number of buckets, which determines the hashes of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    level: u32,
    /// The number of buckets of this level that have been split.
    divided: usize,
}

impl Address {
    /// The number of buckets. Initially one.
    #[inline]
    pub(crate) fn buckets(self) -> usize {
        (1 << self.level) + self.divided
    }

    /// The bucket of a hash, which is in the top bits of the word.
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

    /// The number of bits in which all hashes of a bucket agree.
    fn depth(self, bucket: usize) -> u32 {
        let lower = bucket & ((1 << self.level) - 1);
        self.level + u32::from(lower < self.divided || lower != bucket)
    }

    /// The first hash after the bucket of this one. `None` if it is the last bucket.
    fn past(self, hash: u64) -> Option<u64> {
        let depth = self.depth(self.bucket(hash));
        if depth == 0 {
            return None;
        }
        let step = 1u64 << (u64::BITS - depth);
        (hash & !(step - 1)).checked_add(step)
    }

    /// Calls `each` with the buckets in the order of hashes, beginning with that of a hash, or at
    /// the edge, until `each` returns `false`. Returns whether the end was reached.
    pub(crate) fn walk(
        self,
        forward: bool,
        from: Option<u64>,
        mut each: impl FnMut(usize) -> bool,
    ) -> bool {
        // A walk forward begins at the least hash, one backward at the greatest.
        let mut hash = from.unwrap_or(if forward { 0 } else { u64::MAX });
        while each(self.bucket(hash)) {
            // Go to the first hash of the bucket after this one, or to the last of the one before
            // it.
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

    /// The last hash before the bucket of this one. `None` if it is the first bucket.
    fn before(self, hash: u64) -> Option<u64> {
        let depth = self.depth(self.bucket(hash));
        if depth == 0 {
            return None;
        }
        let step = 1u64 << (u64::BITS - depth);
        (hash & !(step - 1)).checked_sub(1)
    }

    /// Adds a bucket, which becomes the last one. Returns the bucket that is split, and a mask of
    /// the hash. Entries whose hash has this bit set move to the new bucket. `None` if there is no
    /// bit left.
    pub(crate) fn grow(&mut self) -> Option<(usize, u64)> {
        if self.level + 1 >= MOST_LEVEL.min(BITS) {
            return None;
        }
        let bucket = self.divided;
        // The hashes of the bucket agree in the bits above this one, which tells its two halves
        // apart.
        let mask = 1 << (u64::BITS - 1 - self.level);
        self.divided += 1;
        // All buckets of the level are split now, so the next level begins.
        if self.divided == 1 << self.level {
            self.level += 1;
            self.divided = 0;
        }
        Some((bucket, mask))
    }

    /// Removes the last bucket. Returns the bucket that gets its entries. `None` if there is only
    /// one.
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
