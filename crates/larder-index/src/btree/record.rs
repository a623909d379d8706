//! The format of records, in which leaves of the B+-tree store entries.
//!
//! ```text
//!  inside    suffix length | value length | rest of the suffix | value
//!  outside   0xFF | the eight bytes of a handle
//! ```
//!
//! The *suffix* of a position is what follows the leaf's prefix. Its first five bytes are in the
//! slot, the rest is in the record. The suffix length counts both.
//!
//! ```text
//!  length    0xxxxxxx                     below 0x80
//!            1hhhhhhh llllllll            up to 0x7E00; the high bits are in the first byte
//! ```
//!
//! A suffix or value in a leaf has at most 0x7E00 bytes. So the first byte of a length is at most
//! 0xFE, and 0xFF says that a handle follows.

use crate::outside::Handle;
use crate::seqlock::words;
use std::num::NonZeroU64;

/// The size of a slot in bytes.
pub(crate) const SLOT: usize = 8;

/// The size of a record whose suffix and value have these lengths.
pub(crate) fn record_size(suffix: usize, value: usize) -> usize {
    length_size(suffix) + length_size(value) + suffix.saturating_sub(5) + value
}

/// The size of a record with a handle.
pub(crate) const HANDLE_RECORD: usize = 9;
/// The first byte of a record with a handle.
pub(crate) const HANDLE_TAG: u8 = 0xFF;
/// The maximum length of a suffix or a value in a leaf. An entry with a longer one is outside.
pub(crate) const MOST_INLINE: usize = 0x7E00;

/// The size of an encoded length.
pub(crate) fn length_size(n: usize) -> usize {
    1 + usize::from(n >= 0x80)
}

/// Decodes the length in the low bytes of `bits`. Returns the length and its encoded size.
#[inline]
pub(super) fn length(bits: u64) -> (usize, usize) {
    let first = (bits & 0xFF) as usize;
    if first < 0x80 {
        (first, 1)
    } else {
        ((first & 0x7F) << 8 | (bits >> 8 & 0xFF) as usize, 2)
    }
}

/// The record of an entry in a leaf.
#[derive(Clone, Copy)]
pub(crate) enum StoredValue<'v> {
    /// The value itself.
    Inline(&'v [u8]),
    /// The handle of an outside object.
    Outside(Handle),
}

impl StoredValue<'_> {
    /// The size of the record, if the suffix of the position has this length.
    pub(crate) fn record(&self, suffix: usize) -> usize {
        match self {
            StoredValue::Inline(value) => record_size(suffix, value.len()),
            StoredValue::Outside(_) => HANDLE_RECORD,
        }
    }
}

/// The record of an entry with this suffix as sixteen bytes, low ones first, and its size. `None`
/// if it doesn't fit, or has a handle.
#[inline]
pub(super) fn short_record(suffix: &[u8], stored: StoredValue<'_>) -> Option<(u128, usize)> {
    let StoredValue::Inline(value) = stored else {
        return None;
    };
    // The slot has the first five bytes of the suffix.
    let rest = suffix.get(5..).unwrap_or(&[]);
    let len = 2 + rest.len() + value.len();
    if len > 16 || rest.len().max(value.len()) > 8 {
        return None;
    }
    // Each of the two lengths has one byte.
    let body = u128::from(words::little(rest))
        | u128::from(words::little(value)) << (8 * rest.len() as u32);
    let lengths = suffix.len() | value.len() << 8;
    Some((body << 16 | lengths as u128, len))
}

/// Writes the record of an entry with this suffix.
#[inline]
pub(super) fn write_record(writer: &mut words::Writer<'_>, suffix: &[u8], stored: StoredValue<'_>) {
    match stored {
        StoredValue::Outside(handle) => {
            writer.push(u64::from(HANDLE_TAG), 1);
            writer.push(handle.bits(), 8);
        }
        // The most frequent case: the slot has the whole suffix, so lengths and value fit in one
        // word. Both lengths are below 0x80, so each is one byte.
        StoredValue::Inline(value) if suffix.len() <= 5 && value.len() <= 6 => {
            let lengths = suffix.len() | value.len() << 8;
            writer.push(words::little(value) << 16 | lengths as u64, value.len() + 2);
        }
        StoredValue::Inline(value) => {
            // Encode both lengths, two to four bytes, in one word.
            let (mut lengths, mut taken) = (0, 0);
            for n in [suffix.len(), value.len()] {
                // Of a long length, the high bits and the continuation bit are in the first, low
                // byte.
                let long = (0x80 | n >> 8 | (n & 0xFF) << 8) as u64;
                let encoded = if n < 0x80 { n as u64 } else { long };
                lengths |= encoded << (8 * taken);
                taken += length_size(n);
            }
            writer.push(lengths, taken);
            // The slot has the first five bytes of the suffix.
            writer.bytes(suffix.get(5..).unwrap_or(&[]));
            writer.bytes(value);
        }
    }
}

/// A decoded record.
///
/// ```text
///  bit 63        set
///  bits 32..63   the offset of what follows the lengths: the rest of the suffix, then the value;
///                the offset of the handle, if the object is outside
///  bits 16..32   the length of the suffix, or OUTSIDE if the object is outside
///  bits 0..16    the length of the value
/// ```
///
/// It is one word, so that it is copied as one. If parts of it were stored one by one and loaded
/// together, the processor would wait for the stores. Bit 63, which no offset reaches, is set, so
/// that a record that may be absent is one word, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record(NonZeroU64);

/// The bit that is always set.
const PRESENT: NonZeroU64 = NonZeroU64::new(1 << 63).unwrap();

/// The length of the suffix of an outside object. No suffix in a leaf is that long.
const OUTSIDE: usize = u16::MAX as usize;

impl Record {
    /// The record of an entry in a leaf. What follows the lengths begins at `rest`.
    #[inline(always)]
    pub(super) fn inline(rest: usize, suffix: usize, value: usize) -> Record {
        // Offsets and lengths in a leaf are smaller than their fields, and those of a torn record
        // may be anything.
        let fields = (rest as u64) << 32 | (suffix as u64 & 0xFFFF) << 16 | (value as u64 & 0xFFFF);
        Record(PRESENT | fields)
    }

    /// The record of an outside object, whose handle is at `rest`.
    pub(super) fn outside(rest: usize) -> Record {
        Record::inline(rest, OUTSIDE, 0)
    }

    /// Decodes the record at the offset `at`. `bits` are its first eight bytes, the first one
    /// lowest. The result of torn bytes may be any record: the caller checks offsets before it uses
    /// them.
    #[inline]
    pub(super) fn of(bits: u64, at: usize) -> Record {
        // One test for the common case: both lengths have one byte, and there is no handle.
        if bits & 0x8080 == 0 {
            let (suffix, value) = (bits as usize & 0x7F, (bits >> 8) as usize & 0x7F);
            return Record::inline(at + 2, suffix, value);
        }
        Record::of_long(bits, at)
    }

    #[cold]
    fn of_long(bits: u64, at: usize) -> Record {
        // The tag of a handle must be tested first: decoded as a length, it would look like a long
        // one.
        if bits as u8 == HANDLE_TAG {
            return Record::outside(at + 1);
        }
        let (suffix, a) = length(bits);
        let (value, b) = length(bits >> (8 * a));
        Record::inline(at + a + b, suffix, value)
    }

    /// The parts, each for itself.
    #[inline]
    pub(super) fn parts(self) -> RecordParts {
        RecordParts {
            rest_at: self.rest_at(),
            suffix: self.suffix(),
            value: self.value(),
        }
    }

    #[inline]
    pub(super) fn is_outside(&self) -> bool {
        self.suffix() == OUTSIDE
    }

    /// The offset of what follows the lengths.
    #[inline]
    pub(super) fn rest_at(&self) -> usize {
        (self.0.get() >> 32) as usize & 0x7FFF_FFFF
    }

    /// The length of the suffix.
    #[inline]
    pub(super) fn suffix(&self) -> usize {
        (self.0.get() >> 16) as usize & 0xFFFF
    }

    /// The length of the part of the suffix that is in the record.
    #[inline]
    pub(super) fn rest(&self) -> usize {
        self.suffix().saturating_sub(5)
    }

    /// The offset of the value.
    #[inline]
    pub(super) fn value_at(&self) -> usize {
        self.rest_at() + self.rest()
    }

    /// The length of the value.
    #[inline]
    pub(super) fn value(&self) -> usize {
        self.0.get() as usize & 0xFFFF
    }

    /// The size of the record.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.is_outside() {
            return HANDLE_RECORD;
        }
        record_size(self.suffix(), self.value())
    }
}

/// The parts of a [`Record`], for code that uses all of them at once and keeps none.
#[derive(Clone, Copy)]
pub(super) struct RecordParts {
    pub(super) rest_at: usize,
    pub(super) suffix: usize,
    pub(super) value: usize,
}

impl RecordParts {
    /// The parts of the record at the offset `at`, as [`Record::of`].
    #[inline(always)]
    pub(super) fn of(bits: u64, at: usize) -> RecordParts {
        // The common case, as there.
        if bits & 0x8080 == 0 {
            let (suffix, value) = (bits as usize & 0x7F, (bits >> 8) as usize & 0x7F);
            let rest_at = at + 2;
            return RecordParts {
                rest_at,
                suffix,
                value,
            };
        }
        Record::of_long(bits, at).parts()
    }

    /// The record of an outside object, if it is one.
    #[inline(always)]
    pub(super) fn outside(&self) -> Option<Record> {
        (self.suffix == OUTSIDE).then(|| Record::outside(self.rest_at))
    }
}
