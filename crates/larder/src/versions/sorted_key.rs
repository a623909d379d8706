//! Keys in the B-trees of a transaction.
//!
//! A key lies in the node, if it is short, after a word by which it is compared first. Nearly all
//! comparisons are of words. So a search reads the nodes on its path, and no other memory.

use smallvec::SmallVec;

/// Keys of at most this number of bytes lie in the node.
const SHORT: usize = 32;

/// A key with its word. Words are in the order of the keys, except that different keys may have the
/// same word.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortedKey {
    word: u64,
    key: SmallVec<[u8; SHORT]>,
}

impl SortedKey {
    /// A key that is ordered by its bytes. The word has the first ones.
    #[inline]
    pub(super) fn in_order(key: &[u8]) -> Self {
        let mut first = [0; 8];
        match key.first_chunk() {
            Some(chunk) => first = *chunk,
            // A zero after a short key is less than any byte, or the same.
            None => first[..key.len()].copy_from_slice(key),
        }
        Self::of_hash(u64::from_be_bytes(first), key)
    }

    /// A key that is ordered by a hash first.
    #[inline]
    pub(super) fn of_hash(hash: u64, key: &[u8]) -> Self {
        SortedKey {
            word: hash,
            key: SmallVec::from_slice(key),
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.key
    }

    /// The word: the hash of a key that is ordered by a hash.
    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_the_order_of_the_keys() {
        let keys: [&[u8]; 9] = [
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"a\0\0\0\0\0\0\0",
            b"a\0\0\0\0\0\0\0\x01",
            b"a\x01",
            b"abcdefgh",
            b"abcdefghi",
        ];
        for (i, one) in keys.iter().enumerate() {
            for (j, other) in keys.iter().enumerate() {
                let order = SortedKey::in_order(one).cmp(&SortedKey::in_order(other));
                assert_eq!(order, i.cmp(&j), "{one:?} {other:?}");
            }
        }
    }
}
