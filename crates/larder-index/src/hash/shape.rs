//! The shape of a leaf, and of the objects in its buckets.
//!
//! ```text
//!  leaf     head (64 bytes) | bucket 0 | bucket 1 | … | bucket B-1
//!  bucket   slot entry 0 | slot entry 1 | … | slot entry n →     free     ← object n … object 1
//!
//!  slot entry 0   n (low byte) | which eighths of the tags overflowed (high byte, a bit each)
//!  slot entry i   where object i begins, in units (low byte)
//!                 | tag: six bits of the hash
//!                 | displaced: its home is another bucket (1 bit) | outside (1 bit)
//!  object         the body: [the key's length,] key, value; or the eight bytes of a handle
//! ```
//!
//! Objects lie from the bucket's end downwards in the order of their slot entries, without gaps:
//! object i ends where object i-1 begins. In buckets of more than 256 bytes a unit is 2 or 4 bytes,
//! and an object begins with a byte that says how many bytes at its end are unused.
//!
//! The bits of a hash after the leaf's depth are treated as a fraction of one, and multiplied by
//! the number of buckets. The integer part of the product is the number of the *home* bucket. The
//! first six bits of its fraction are the tag. So buckets are in the order of hashes, and so are
//! the tags of one home.

/// The number of bytes of a leaf's head.
pub(crate) const HEAD: usize = 64;
/// The number of bytes of the smallest bucket.
pub(crate) const SMALLEST: usize = 64;
/// The class of the largest bucket: 1024 bytes.
pub(crate) const TOP_CLASS: u8 = 4;
/// The class of the largest bucket whose unit is a byte.
pub(crate) const UNIT_CLASS: u8 = 2;
/// The number of bytes of a slot entry.
pub(crate) const SLOT_ENTRY: usize = 2;
/// The number of bytes of a handle.
pub(crate) const HANDLE: usize = 8;
/// The flag of an outside object in a slot entry.
pub(crate) const OUTSIDE: u16 = 0x8000;
/// The flag of a displaced entry in a slot entry.
pub(crate) const DISPLACED: u16 = 0x4000;
/// The bits of a slot entry that are the tag.
pub(crate) const TAG: u16 = 0x3F00;
/// The number of leading bits of a hash that are used. A position begins with them, so fewer bits
/// make positions shorter. 48 bits are enough:
/// - The depth, the home bucket and the tag of an entry take the leading log₂ n + 4 bits of n
///   entries, approximately: there is a bucket for about five of them, and a tag has six bits. So
///   48 bits distinguish the buckets of more entries than fit in memory.
/// - Of n random hashes, n² / 2⁴⁹ pairs agree in 48 bits: 2,000 pairs of a billion. These entries
///   are ordered by their keys, so a collision costs time and no more.
pub(crate) const HASH_BITS: u32 = 48;
/// Clears the bits of a hash that aren't used.
#[inline]
pub(crate) fn truncated(hash: u64) -> u64 {
    hash & !0xFFFF
}

/// The shape of a leaf, which never changes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The number of buckets.
    pub(crate) buckets: u32,
    /// The size of the buckets, which have `SMALLEST << class` bytes.
    pub(crate) class: u8,
    /// The number of bits that all hashes of the leaf's range share.
    pub(crate) depth: u8,
}

/// Where the search for a hash begins in a leaf, and the tag that it compares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Probe {
    /// The number of their home bucket.
    pub(crate) home: usize,
    /// Six bits of the hash.
    pub(crate) tag: u8,
}

/// The range of a leaf: all hashes that begin with the first `depth` bits of `hash`.
#[derive(Clone, Copy)]
pub(crate) struct LeafRange {
    pub(crate) hash: u64,
    pub(crate) depth: u8,
}

impl Shape {
    /// The number of bytes of a bucket.
    #[inline]
    pub(crate) fn bucket(self) -> usize {
        SMALLEST << self.class
    }

    /// The number of bytes of all buckets.
    #[inline]
    pub(crate) fn content(self) -> usize {
        self.buckets as usize * self.bucket()
    }

    /// The binary logarithm of the bytes of a unit.
    #[inline]
    pub(crate) fn unit_shift(self) -> u32 {
        unit_shift(self.class)
    }

    /// The home bucket and the tag of a hash.
    #[inline]
    pub(crate) fn probe(self, hash: u64) -> Probe {
        // The bits after those that all hashes of the leaf share, as a fraction of 2^64.
        let fraction = hash << self.depth;
        // Times the number of buckets. The whole part is the bucket, and the bits after it begin
        // with the tag.
        let product = u128::from(fraction) * u128::from(self.buckets);
        Probe {
            home: (product >> 64) as usize,
            tag: (product as u64 >> 58) as u8,
        }
    }

    /// The bucket after this one.
    #[inline]
    pub(crate) fn next(self, bucket: usize) -> usize {
        // The buckets are a ring.
        if bucket + 1 == self.buckets as usize {
            0
        } else {
            bucket + 1
        }
    }

    /// The bucket before this one.
    pub(crate) fn before(self, bucket: usize) -> usize {
        bucket.checked_sub(1).unwrap_or(self.buckets as usize - 1)
    }

    /// The first hash of the leaf's range, given any hash of it.
    pub(crate) fn first_hash(self, hash: u64) -> u64 {
        prefix(hash, self.depth)
    }

    /// The first hash after the leaf's range, given any hash of it; `None` for the last leaf.
    pub(crate) fn end_hash(self, hash: u64) -> Option<u64> {
        // The range of depth 0 has all hashes. The addition overflows for the last leaf.
        match self.depth {
            0 => None,
            depth => self.first_hash(hash).checked_add(1 << (64 - depth)),
        }
    }
}

/// The overflow bit for this tag, in the high byte of slot entry 0. It is set if an entry with such
/// a tag may have overflowed to a later bucket. There are eight bits because that byte has room for
/// eight. A search loads them together with the first tags, in one word.
#[inline]
pub(crate) fn eighth(tag: u8) -> u8 {
    1 << (tag >> 3)
}

/// The hash with all bits after the first `depth` cleared.
pub(crate) fn prefix(hash: u64, depth: u8) -> u64 {
    // A shift by all 64 bits isn't possible.
    match depth {
        0 => 0,
        _ => hash >> (64 - depth) << (64 - depth),
    }
}

/// The binary logarithm of the bytes of a unit, in buckets of this class.
#[inline]
pub(crate) fn unit_shift(class: u8) -> u32 {
    // Offsets in buckets of up to 256 bytes are counted in bytes.
    u32::from(class.saturating_sub(UNIT_CLASS))
}

/// The size of an object with a body of this length in a bucket of this class, without its slot
/// entry.
#[inline]
pub(crate) fn object_size(body: usize, class: u8) -> usize {
    match unit_shift(class) {
        0 => body,
        unit_shift => (body + 1).next_multiple_of(1 << unit_shift),
    }
}

/// The longest body that is stored inside a bucket of this class.
pub(crate) fn most_body(class: u8) -> usize {
    (SMALLEST << class) / 2 - 16
}

/// The number of bytes of a bucket that objects and their slot entries can use.
pub(crate) fn usable(class: u8) -> usize {
    (SMALLEST << class) - SLOT_ENTRY
}

/// The length of a body.
#[inline]
pub(crate) fn body_size(key: usize, value: usize, length_prefixed: bool) -> usize {
    let lead = if length_prefixed {
        LengthPrefix::of(key).size
    } else {
        0
    };
    lead + key + value
}

/// The length of a key, which a body begins with if the index stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LengthPrefix {
    pub(crate) key_len: usize,
    /// How many bytes encode it: 1 or 2.
    pub(crate) size: usize,
}

impl LengthPrefix {
    /// The prefix for a key of this length.
    #[inline]
    pub(crate) fn of(key_len: usize) -> LengthPrefix {
        // A length below 128 takes one byte.
        let size = 1 + usize::from(key_len >= 0x80);
        LengthPrefix { key_len, size }
    }

    /// Encodes the length. The first `size` bytes are used.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; 2] {
        let LengthPrefix { key_len, size } = self;
        // The first byte has the continuation bit 0x80 and the high bits of a longer length.
        if size == 1 {
            [key_len as u8, 0]
        } else {
            [0x80 | (key_len >> 8) as u8, key_len as u8]
        }
    }

    /// Decodes the prefix from the low bytes of `bits`.
    #[inline]
    pub(crate) fn decode(bits: u64) -> LengthPrefix {
        // The continuation bit of the first byte says whether there is a second one.
        let first = (bits & 0xFF) as usize;
        if first < 0x80 {
            return LengthPrefix {
                key_len: first,
                size: 1,
            };
        }
        LengthPrefix {
            key_len: (first & 0x7F) << 8 | (bits >> 8 & 0xFF) as usize,
            size: 2,
        }
    }
}

/// The longest body that is stored inside a leaf. For a longer one, an allocation of its own wastes
/// less than the unused rest of a bucket would. It costs no additional cache miss, since in a large
/// bucket the offset of an object isn't known either before its slot entries have arrived.
pub(crate) const MOST_INSIDE: usize = 240;

/// Whether a body of this length may be stored inside a leaf. An empty body could not be
/// distinguished from an absent one.
#[inline]
pub(crate) fn fits_inside(body: usize) -> bool {
    (1..=MOST_INSIDE).contains(&body)
}

/// Whether a body of this length is stored inside a leaf of this class.
#[inline]
pub(crate) fn lives_inside(body: usize, class: u8) -> bool {
    fits_inside(body) && body <= most_body(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_tags_follow_the_order_of_hashes() {
        for depth in [0, 3, 17, 47, 48] {
            for buckets in [1, 2, 5, 31] {
                let shape = Shape {
                    buckets,
                    class: 1,
                    depth,
                };
                let step = 1u64 << (64 - 12 - u32::from(depth.min(36)));
                let places: Vec<_> = (0..4096u64)
                    .map(|i| shape.probe(i.wrapping_mul(step)))
                    .collect();
                assert!(places.windows(2).all(|w| w[0] <= w[1]) || depth > 36);
                assert!(places
                    .iter()
                    .all(|place| place.home < buckets as usize && place.tag < 64));
            }
        }
    }

    #[test]
    fn lengths_come_back() {
        for n in [0, 1, 127, 128, 500, 0x7FFF] {
            let prefix = LengthPrefix::of(n);
            let bits = u64::from(u16::from_le_bytes(prefix.bytes()));
            assert_eq!(LengthPrefix::decode(bits), prefix);
        }
    }

    #[test]
    fn ranges_of_leaves_meet() {
        let shape = |depth| Shape {
            buckets: 1,
            class: 1,
            depth,
        };
        let hash = 0xABCD_EF01_2345_0000;
        assert_eq!(shape(0).end_hash(hash), None);
        assert_eq!(shape(4).first_hash(hash), 0xA000_0000_0000_0000);
        assert_eq!(shape(4).end_hash(hash), Some(0xB000_0000_0000_0000));
        assert_eq!(shape(4).end_hash(!0), None);
        assert_eq!(shape(48).end_hash(hash), Some(hash + 0x1_0000));
    }
}
