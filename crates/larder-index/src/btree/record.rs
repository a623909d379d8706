//! How an entry lies in a leaf of the B+-tree: the format of records.
//!
//! ```text
//!  inside    key length | value length | rest of the position | value
//!  outside   0xFF | the eight bytes of a handle
//! ```
//!
//! Lengths have one byte or two. The first five bytes of a position behind the leaf's prefix lie in
//! its slot, the rest in the record.

use crate::outside::Handle;
use crate::seqlock::words;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 8;

/// Bytes of a record, for a position's suffix of this length.
pub(crate) fn record_size(suffix: usize, value: usize) -> usize {
    length_size(suffix) + length_size(value) + suffix.saturating_sub(5) + value
}

/// Bytes of a record that is a handle.
pub(crate) const HANDLE_RECORD: usize = 9;
/// First byte of a record that is a handle.
pub(crate) const HANDLE_MARK: u8 = 0xFF;
/// The longest key suffix or value in a leaf.
pub(crate) const MOST_INLINE: usize = 0x7E00;

/// Bytes of a length: one below 128, else two, the first of them `0x80..=0xFE`.
pub(crate) fn length_size(n: usize) -> usize {
    1 + usize::from(n >= 0x80)
}

/// Reads the length in the low bytes of `bits`: the length, and how many bytes it took.
#[inline]
pub(super) fn length(bits: u64) -> (usize, usize) {
    let first = (bits & 0xFF) as usize;
    if first < 0x80 {
        (first, 1)
    } else {
        ((first & 0x7F) << 8 | (bits >> 8 & 0xFF) as usize, 2)
    }
}

/// What a leaf stores for an entry.
#[derive(Clone, Copy)]
pub(crate) enum Stored<'v> {
    /// The value lies in the leaf.
    Inline(&'v [u8]),
    /// The object lies outside.
    Outside(Handle),
}

impl Stored<'_> {
    /// Bytes of the record, for a position's suffix of this length.
    pub(crate) fn record(&self, suffix: usize) -> usize {
        match self {
            Stored::Inline(value) => record_size(suffix, value.len()),
            Stored::Outside(_) => HANDLE_RECORD,
        }
    }
}

/// Writes a record.
#[inline]
pub(super) fn write_record(writer: &mut words::Writer<'_>, suffix: &[u8], stored: Stored<'_>) {
    match stored {
        Stored::Outside(handle) => {
            writer.push(u64::from(HANDLE_MARK), 1);
            writer.push(handle.bits(), 8);
        }
        Stored::Inline(value) if suffix.len() <= 5 && value.len() <= 6 => {
            let lengths = suffix.len() | value.len() << 8;
            writer.push(words::little(value) << 16 | lengths as u64, value.len() + 2);
        }
        Stored::Inline(value) => {
            let (mut lengths, mut taken) = (0, 0);
            for n in [suffix.len(), value.len()] {
                let long = (0x80 | n >> 8 | (n & 0xFF) << 8) as u64;
                let own = if n < 0x80 { n as u64 } else { long };
                lengths |= own << (8 * taken);
                taken += length_size(n);
            }
            writer.push(lengths, taken);
            writer.bytes(suffix.get(5..).unwrap_or(&[]));
            writer.bytes(value);
        }
    }
}

/// A record, taken apart. It fits in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Where what is behind the lengths begins: the position's bytes behind the slot's five, then
    /// the value. Of an outside object: its handle.
    rest: u32,
    /// Bytes of the position after the leaf's prefix; [`OUTSIDE`] for an outside object.
    suffix: u16,
    /// Bytes of the value.
    value: u16,
}

/// The suffix of an outside object: no other is as long.
const OUTSIDE: u16 = u16::MAX;

impl Record {
    /// That of an entry of so many bytes, whose own begin at `rest`.
    pub(super) fn inline(rest: usize, suffix: usize, value: usize) -> Record {
        Record {
            rest: rest as u32,
            suffix: suffix as u16,
            value: value as u16,
        }
    }

    /// That of an outside object, whose handle is at `rest`.
    pub(super) fn outside(rest: usize) -> Record {
        Record {
            rest: rest as u32,
            suffix: OUTSIDE,
            value: 0,
        }
    }

    /// From the first bytes of a record at `at`.
    #[inline(always)]
    pub(super) fn of(bits: u64, at: usize) -> Record {
        if bits & 0x8080 == 0 {
            let (suffix, value) = (bits as u16 & 0x7F, (bits >> 8) as u16 & 0x7F);
            let rest = at as u32 + 2;
            return Record {
                rest,
                suffix,
                value,
            };
        }
        Record::of_long(bits, at)
    }

    #[cold]
    fn of_long(bits: u64, at: usize) -> Record {
        if bits as u8 == HANDLE_MARK {
            return Record::outside(at + 1);
        }
        let (suffix, a) = length(bits);
        let (value, b) = length(bits >> (8 * a));
        Record::inline(at + a + b, suffix, value)
    }

    #[inline]
    pub(super) fn is_outside(&self) -> bool {
        self.suffix == OUTSIDE
    }

    /// Where what is behind the lengths begins.
    #[inline]
    pub(super) fn rest_at(&self) -> usize {
        self.rest as usize
    }

    /// Bytes of the position after the leaf's prefix.
    #[inline]
    pub(super) fn suffix(&self) -> usize {
        self.suffix.into()
    }

    /// Those of them that lie in the record.
    #[inline]
    pub(super) fn rest(&self) -> usize {
        self.suffix().saturating_sub(5)
    }

    /// Where the value begins.
    #[inline]
    pub(super) fn value_at(&self) -> usize {
        self.rest_at() + self.rest()
    }

    /// Bytes of the value.
    #[inline]
    pub(super) fn value(&self) -> usize {
        self.value.into()
    }

    /// Bytes of the record.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.is_outside() {
            return HANDLE_RECORD;
        }
        record_size(self.suffix(), self.value())
    }
}
