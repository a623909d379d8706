//! The search key: a position for which a search looks, with its first eight bytes as a word.
//!
//! A node compares four bytes of the position with its separators, and a leaf five bytes with its
//! slots. These bytes begin after the common prefix of the node or leaf. If they are among the
//! first eight bytes, they are the word, shifted. So for most positions, a descent from the root to
//! the record doesn't read the position's bytes from memory.
//!
//! Words have the first byte in their highest bits. So words compare as positions do. Bytes past
//! the end of a position are zero.

/// The number of low bits of a leaf's slot that are the offset of the record.
pub(crate) const OFFSET_BITS: u32 = 21;
/// The bits of a slot that are the offset of the record.
pub(super) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The bits of a slot that are the head of the position.
pub(super) const HEAD_MASK: u64 = !((1 << 24) - 1);
/// The bits of a slot that say whether the entry has the leaf's mark (see `marks`).
pub(super) const MARK_MASK: u64 = !HEAD_MASK & !OFFSET_MASK;

/// A position, and its first eight bytes as a word.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'p> {
    bytes: &'p [u8],
    first: u64,
}

impl<'p> SearchKey<'p> {
    #[inline]
    pub(crate) fn new(bytes: &'p [u8]) -> Self {
        SearchKey {
            bytes,
            first: eight(bytes, 0),
        }
    }

    /// The whole position.
    #[inline]
    pub(crate) fn bytes(&self) -> &'p [u8] {
        self.bytes
    }

    /// The first eight bytes.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// A word whose first `wanted` bytes, at most eight, are those of the position from `at` on.
    /// Its other bytes are the next ones of the position, or zeros.
    #[inline]
    pub(super) fn from(&self, at: usize, wanted: usize) -> u64 {
        // The word has all of them. If the position has fewer than eight bytes, those past its end
        // are zeros in any case. It would be the same with eight, but then large integers, which
        // have eight bytes or nine, would take a branch that can't be predicted.
        if at + wanted <= 8 || self.bytes.len() < 8 {
            if at >= 8 {
                return 0;
            }
            return self.first << (8 * at);
        }
        eight(self.bytes, at)
    }

    /// The head of the position in a leaf with a prefix of this length.
    #[inline]
    pub(crate) fn head(&self, prefix: usize) -> u64 {
        self.from(prefix, 5) & HEAD_MASK
    }

    /// The suffix of the position in a leaf with a prefix of this length. `None` if the position is
    /// shorter than the prefix, and so isn't in the leaf.
    #[inline]
    pub(crate) fn suffix(&self, prefix: usize) -> Option<&'p [u8]> {
        self.bytes.get(prefix..)
    }
}

/// The eight bytes of a position from `at` on, as a word.
#[inline]
pub(super) fn eight(bytes: &[u8], at: usize) -> u64 {
    let n = bytes.len();
    if let Some(word) = bytes.get(at..at + 8) {
        return u64::from_be_bytes(word.try_into().unwrap_or_default());
    }
    // There are fewer than eight bytes from `at` on. Load the last bytes of the position without a
    // loop, by loads that may overlap. Then shift out the `before` bytes that precede `at`.
    let (all, before) = match n {
        8.. => {
            let last: [u8; 8] = bytes[n - 8..].try_into().unwrap_or_default();
            (u64::from_be_bytes(last), at + 8 - n)
        }
        4..=7 => {
            let four = |at: usize| {
                let four: [u8; 4] = bytes[at..at + 4].try_into().unwrap_or_default();
                u64::from(u32::from_be_bytes(four))
            };
            (four(0) << 32 | four(n - 4) << (64 - 8 * n), at)
        }
        1..=3 => {
            // The first byte, the one in the middle, and the last one: each byte is among them, and
            // a byte that is loaded twice is at the same place.
            let one = |i: usize| u64::from(bytes[i]) << (56 - 8 * i);
            (one(0) | one(n / 2) | one(n - 1), at)
        }
        0 => (0, at),
    };
    if before < 8 {
        all << (8 * before)
    } else {
        0
    }
}

/// The first five bytes of a position's suffix, as the high bits of a slot.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u64 {
    eight(suffix, 0) & HEAD_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_from_anywhere() {
        let bytes: Vec<u8> = (1..=20).collect();
        for n in 0..=20 {
            let key = SearchKey::new(&bytes[..n]);
            for at in 0..24 {
                let mut word = [0; 8];
                for (i, byte) in word.iter_mut().enumerate() {
                    *byte = bytes[..n].get(at + i).copied().unwrap_or(0);
                }
                let expect = u64::from_be_bytes(word);
                assert_eq!(eight(&bytes[..n], at), expect, "{n} {at}");
                for wanted in 1..=8 {
                    let high = !0 << (64 - 8 * wanted as u32);
                    assert_eq!(
                        key.from(at, wanted) & high,
                        expect & high,
                        "{n} {at} {wanted}"
                    );
                }
                assert_eq!(key.head(at), expect & HEAD_MASK);
                let suffix = bytes[..n].get(at..);
                assert_eq!(key.suffix(at), suffix);
                assert!(suffix.is_none_or(|suffix| head_of(suffix) == expect & HEAD_MASK));
            }
        }
    }
}
