//! An entry that a search has found, and how its value is read.
//!
//! A reader's hit may be torn: then it names any bytes of its bucket, and the version tells. No
//! place leads out of a bucket (see [`Bucket`]), and a handle is followed only after a check.

use crate::hash::bucket::{copy_out, Bucket};
use crate::hash::leaf::HashView;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::{Lookup, SHORT};

/// An entry that was found.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'g> {
    pub(super) bucket: Bucket<'g>,
    /// The number of its slot entry.
    pub(super) slot: usize,
    /// Where its value begins in the bucket, and where it ends; or its handle.
    pub(super) from: usize,
    pub(super) end: usize,
    /// The object is outside.
    pub(crate) outside: bool,
}

impl Hit<'_> {
    /// Bytes of the value, if it is in the bucket.
    #[inline(always)]
    pub(crate) fn value_len(&self) -> usize {
        self.end - self.from
    }

    /// Appends the value, which is in the bucket, to `out`.
    #[inline(always)]
    pub(crate) fn copy(&self, out: &mut Vec<u8>) {
        copy_out(self.bucket, self.from, self.end, out);
    }

    /// Copies the value, which is in the bucket, to `out`, if it has room there.
    #[inline(always)]
    pub(crate) fn copy_short(&self, out: &mut [u8; SHORT]) -> Lookup {
        let len = self.value_len();
        if len > SHORT {
            return Lookup::Long;
        }
        self.bucket.each_word(self.from, len, |done, word| {
            // Of a value of at most 64 bytes each word begins below 64, at a multiple of eight.
            if let Some(to) = out.get_mut(done..done + 8) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        });
        Lookup::Short(len)
    }
}

/// What the search of a bucket says, in one register: results of several words would travel
/// through memory.
///
/// ```text
///  bits 0..12   where the value begins        bits 24..36   the number of the slot entry, from 1
///  bits 12..24  where it ends                 bit 36        the object is outside
///                                             bits 37..64   the number of the bucket
/// ```
///
/// Without a slot entry it is one of the constants below.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedHit(u64);

impl PackedHit {
    /// There is none.
    pub(super) const ABSENT: PackedHit = PackedHit(0);
    /// There is none in this bucket, but it may have been passed on.
    pub(super) const PASSED: PackedHit = PackedHit(1);
    /// The fast search can't tell.
    pub(super) const UNDECIDED: PackedHit = PackedHit(2);
    /// What was read is torn.
    pub(super) const TORN: PackedHit = PackedHit(3);

    const FIELD: u32 = 12;
    const MASK: usize = (1 << PackedHit::FIELD) - 1;
    const SLOT_AT: u32 = 2 * PackedHit::FIELD;
    const OUTSIDE_AT: u32 = 3 * PackedHit::FIELD;
    const NUMBER_AT: u32 = 3 * PackedHit::FIELD + 1;

    /// An entry.
    #[inline(always)]
    pub(super) fn new(slot: usize, from: usize, end: usize, outside: bool) -> PackedHit {
        let fields = slot << PackedHit::SLOT_AT | end << PackedHit::FIELD | from;
        PackedHit(fields as u64 | u64::from(outside) << PackedHit::OUTSIDE_AT)
    }

    /// Whether it is an entry.
    #[inline(always)]
    pub(super) fn is_entry(self) -> bool {
        self.0 >> PackedHit::SLOT_AT != 0
    }

    /// The entry, with the number of its bucket.
    pub(super) fn in_bucket(self, number: usize) -> PackedHit {
        PackedHit(self.0 | (number as u64) << PackedHit::NUMBER_AT)
    }

    /// The number of its bucket, if that was noted.
    pub(super) fn number(self) -> usize {
        (self.0 >> PackedHit::NUMBER_AT) as usize
    }

    /// The entry, of this bucket.
    #[inline(always)]
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

impl HashView<'_> {
    /// The handle of a hit that is outside.
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

    #[cold]
    fn copy_outside(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        out.extend_from_slice(self.object(self.handle(hit))?.value());
        Ok(())
    }

    /// Copies the value of a hit to `out` if it has room there.
    #[inline]
    pub(crate) fn copy_short(&self, hit: &Hit<'_>, out: &mut [u8; SHORT]) -> Result<Lookup, Torn> {
        if hit.outside {
            return self.copy_short_outside(hit, out);
        }
        Ok(hit.copy_short(out))
    }

    #[cold]
    fn copy_short_outside(&self, hit: &Hit<'_>, out: &mut [u8; SHORT]) -> Result<Lookup, Torn> {
        let value = self.object(self.handle(hit))?.value();
        let Some(to) = out.get_mut(..value.len()) else {
            return Ok(Lookup::Long);
        };
        to.copy_from_slice(value);
        Ok(Lookup::Short(value.len()))
    }
}
