//! An entry that a search has found, and access to its value.
//!
//! A reader's hit may be torn: it may name arbitrary bytes of its bucket, which only validating the
//! leaf's version detects. No offset leads out of a bucket (see [`Bucket`]), and a handle is only
//! followed after the version has been validated.

use crate::hash::bucket::{copy_out, Bucket};
use crate::hash::leaf::HashView;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::Torn;
use crate::{Lookup, SHORT_VALUE};

/// An entry that was found.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'g> {
    pub(super) bucket: Bucket<'g>,
    /// The number of its slot entry.
    pub(super) slot: usize,
    /// Where its value begins in the bucket. If the object is outside: where its handle begins.
    pub(super) from: usize,
    /// Where its value ends.
    pub(super) end: usize,
    /// Whether the object is outside the leaf.
    pub(crate) outside: bool,
}

impl Hit<'_> {
    /// The length of the value, if it is in the bucket.
    #[inline]
    pub(crate) fn value_len(&self) -> usize {
        self.end - self.from
    }

    /// Appends the value, which is in the bucket, to `out`.
    #[inline]
    pub(crate) fn copy(&self, out: &mut Vec<u8>) {
        copy_out(self.bucket, self.from, self.end, out);
    }

    /// Copies the value, which is in the bucket, to `out`, if it fits.
    #[inline]
    pub(crate) fn copy_short(&self, out: &mut [u8; SHORT_VALUE]) -> Lookup {
        let len = self.value_len();
        if len > SHORT_VALUE {
            return Lookup::Long;
        }
        self.bucket.each_word(self.from, len, |done, word| {
            // `done` is a multiple of eight below 64, so this is always `Some`. The last word may
            // include bytes after the value.
            if let Some(to) = out.get_mut(done..done + 8) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        });
        Lookup::Short(len)
    }
}

/// The result of searching a bucket, packed in one register. A result of several words would be
/// returned through memory.
///
/// ```text
///  bits 0..12   where the value begins        bits 24..36   the number of the slot entry, from 1
///  bits 12..24  where it ends                 bit 36        the object is outside
///                                             bits 37..64   the number of the bucket
/// ```
///
/// If the number of the slot entry is zero, the result is one of the constants below.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedHit(u64);

impl PackedHit {
    /// The key is absent.
    pub(super) const ABSENT: PackedHit = PackedHit(0);
    /// The key isn't in this bucket, but its entry may have overflowed to a later one.
    pub(super) const OVERFLOWED: PackedHit = PackedHit(1);
    /// A writer changed the leaf during the search.
    pub(super) const TORN: PackedHit = PackedHit(2);

    const FIELD: u32 = 12;
    const MASK: usize = (1 << PackedHit::FIELD) - 1;
    const SLOT_AT: u32 = 2 * PackedHit::FIELD;
    const OUTSIDE_AT: u32 = 3 * PackedHit::FIELD;
    const BUCKET_AT: u32 = 3 * PackedHit::FIELD + 1;

    /// An entry.
    #[inline]
    pub(super) fn new(slot: usize, from: usize, end: usize, outside: bool) -> PackedHit {
        let fields = slot << PackedHit::SLOT_AT | end << PackedHit::FIELD | from;
        PackedHit(fields as u64 | u64::from(outside) << PackedHit::OUTSIDE_AT)
    }

    /// Whether it is an entry.
    #[inline]
    pub(super) fn is_entry(self) -> bool {
        self.0 >> PackedHit::SLOT_AT != 0
    }

    /// The same entry, with the number of its bucket.
    pub(super) fn in_bucket(self, number: usize) -> PackedHit {
        PackedHit(self.0 | (number as u64) << PackedHit::BUCKET_AT)
    }

    /// The number of its bucket, if `in_bucket` has set it.
    pub(super) fn bucket_number(self) -> usize {
        (self.0 >> PackedHit::BUCKET_AT) as usize
    }

    /// Unpacks the entry, which is in this bucket.
    #[inline]
    pub(super) fn hit(self, bucket: Bucket<'_>) -> Hit<'_> {
        Hit {
            bucket,
            slot: (self.0 >> PackedHit::SLOT_AT) as usize & PackedHit::MASK,
            from: self.0 as usize & PackedHit::MASK,
            end: (self.0 >> PackedHit::FIELD) as usize & PackedHit::MASK,
            outside: self.0 >> PackedHit::OUTSIDE_AT & 1 != 0,
        }
    }
}

impl<'g> HashView<'g> {
    /// The outside object of a hit.
    #[inline]
    pub(crate) fn outside(&self, hit: &Hit<'g>) -> Result<Outside<'g>, Torn> {
        self.object(self.handle(hit))
    }

    /// The handle of a hit whose object is outside.
    pub(crate) fn handle(&self, hit: &Hit<'_>) -> Handle {
        Handle::from_bits(hit.bucket.load(hit.from))
    }

    /// Appends the value of a hit to `out`.
    #[inline]
    pub(crate) fn copy_value(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        if hit.outside {
            return self.copy_outside(hit, out);
        }
        hit.copy(out);
        Ok(())
    }

    #[inline(never)]
    fn copy_outside(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        out.extend_from_slice(self.object(self.handle(hit))?.value());
        Ok(())
    }

    /// Copies the value of a hit to `out`, if it fits.
    #[inline]
    pub(crate) fn copy_short(
        &self,
        hit: &Hit<'_>,
        out: &mut [u8; SHORT_VALUE],
    ) -> Result<Lookup, Torn> {
        if hit.outside {
            return self.copy_outside_to(hit.bucket, hit.from, out, None);
        }
        Ok(hit.copy_short(out))
    }

    /// Copies the value of a hit that is outside to `out`, if it fits, otherwise to `long`. Takes
    /// the hit's parts: if its address were passed, it would be kept in memory.
    #[inline(never)]
    pub(crate) fn copy_outside_to(
        &self,
        bucket: Bucket<'_>,
        from: usize,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Result<Lookup, Torn> {
        let value = self.object(Handle::from_bits(bucket.load(from)))?.value();
        Ok(Lookup::copied(value, out, long))
    }
}
