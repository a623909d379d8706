//! Building new leaves of the entries of a locked leaf, for splits and changes of size.
//!
//! ```text
//!  old leaf   slots, and records in any order
//!  parts      for each entry: its head, and the offset of its record in the old leaf
//!  new leaf   slots, and records in the order of the slots
//! ```
//!
//! 1. Collect the parts of all entries, by which the sizes of new leaves are computed. A new entry
//!    that has no room in the old leaf may be inserted among them.
//! 2. Build a new leaf of a range of the parts. Its prefix begins with that of the old leaf. If it
//!    is longer, heads and records get shorter. The entries keep their marks.
//!
//! A new leaf is private until it is published, and nobody writes to the old one while it is
//! locked. So both are plain bytes here.

use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf};
use crate::btree::prefix::Prefix;
use crate::btree::record::{
    length_size, record_size, Record, StoredValue, HANDLE_RECORD, HANDLE_TAG, SLOT,
};
use crate::btree::search_key::{eight, head_of, HEAD_MASK, MARK_MASK, OFFSET_MASK};
use crate::outside::Handle;
use crate::scratch::with_spare;
use std::cell::Cell;
use std::ops::Range;

/// The head, the mark and the record of an entry. The record is in the old leaf, or in
/// `Entries::new` if it is that of the new entry.
#[derive(Clone, Copy, Debug)]
struct EntryRef {
    head: u64,
    /// The bits of the old slot that say whether the entry has the leaf's mark (see `marks`).
    mark: u64,
    record: Record,
}

impl EntryRef {
    /// The size of the record in a leaf whose prefix is longer by `prefix_growth` bytes.
    #[inline]
    fn size(&self, prefix_growth: usize) -> usize {
        if self.record.is_outside() {
            return HANDLE_RECORD;
        }
        record_size(self.record.suffix() - prefix_growth, self.record.value())
    }
}

/// All entries of a leaf, and possibly a new one.
#[derive(Default)]
pub(crate) struct Entries {
    parts: Vec<EntryRef>,
    /// The record of the new entry, without its lengths.
    new: Vec<u8>,
    /// The number of the new entry.
    new_at: Option<usize>,
}

thread_local! {
    static SPARE: Cell<Option<Entries>> = const { Cell::new(None) };
}

/// Calls `f` with an empty list, whose memory is kept for the thread's next call.
pub(crate) fn with_entries<T>(f: impl FnOnce(&mut Entries) -> T) -> T {
    /// A list with a greater capacity isn't kept.
    const MAX_KEPT_CAPACITY: usize = 1 << 16;
    let small = |entries: &Entries| {
        entries.parts.capacity() <= MAX_KEPT_CAPACITY && entries.new.capacity() <= MAX_KEPT_CAPACITY
    };
    with_spare(&SPARE, small, f)
}

impl Entries {
    /// Step 1: collects all entries of a leaf.
    pub(crate) fn collect(&mut self, leaf: &LockedTreeLeaf<'_>) {
        // The lock is held, so the content is plain bytes.
        let content = leaf.content();
        self.parts.clear();
        self.new_at = None;
        let slots = content.chunks_exact(SLOT).take(leaf.len());
        self.parts.extend(slots.map(|slot| {
            // The head is in the slot. The record at the slot's offset says how long it is.
            let slot = u64::from_ne_bytes(slot.try_into().unwrap_or_default());
            let at = (slot & OFFSET_MASK) as usize;
            EntryRef {
                head: slot & HEAD_MASK,
                mark: slot & MARK_MASK,
                record: Record::of(word_at(content, at), at),
            }
        }));
    }

    /// Step 1: inserts a new entry before entry `i`. `suffix` is its position without the old
    /// leaf's prefix.
    pub(crate) fn insert(&mut self, i: usize, suffix: &[u8], stored: StoredValue<'_>) {
        // Five bytes of the suffix are in the head, so they aren't stored again.
        self.new.clear();
        let record = match stored {
            StoredValue::Inline(value) => {
                self.new.extend_from_slice(suffix.get(5..).unwrap_or(&[]));
                self.new.extend_from_slice(value);
                // `from` is 0: the record lies in `new`, not in the old leaf.
                Record::inline(0, suffix.len(), value.len())
            }
            StoredValue::Outside(handle) => {
                self.new.extend_from_slice(&handle.bits().to_le_bytes());
                Record::outside(0)
            }
        };
        let head = head_of(suffix);
        let part = EntryRef {
            head,
            mark: 0,
            record,
        };
        self.parts.insert(i, part);
        self.new_at = Some(i);
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The content that some entries take in a leaf whose prefix is longer than the old one's by
    /// `prefix_growth` bytes.
    pub(crate) fn content_size(&self, range: Range<usize>, prefix_growth: usize) -> usize {
        range.len() * SLOT + self.records_size(range, prefix_growth)
    }

    /// The total size of the records of some entries.
    fn records_size(&self, range: Range<usize>, prefix_growth: usize) -> usize {
        let parts = self.parts[range].iter();
        parts.map(|part| part.size(prefix_growth)).sum()
    }

    /// Where to cut the entries so that both sides have about the same size, and at least one
    /// entry.
    pub(crate) fn middle(&self) -> usize {
        // Sizes are those in the old leaf. A longer prefix makes all records shorter.
        let total = self.content_size(0..self.len(), 0);
        let mut below = 0;
        let at = self.parts.iter().position(|part| {
            below += SLOT + part.size(0);
            below * 2 >= total
        });
        at.map_or(1, |i| i + 1).clamp(1, self.len() - 1)
    }

    /// The bytes that contain the record of entry `i`.
    #[inline]
    fn source<'s>(&'s self, i: usize, old: &'s [u8]) -> &'s [u8] {
        if self.new_at == Some(i) {
            &self.new
        } else {
            old
        }
    }

    /// The whole position of entry `i`.
    pub(crate) fn position(&self, old: &LockedTreeLeaf<'_>, i: usize) -> Vec<u8> {
        let (part, source) = (self.parts[i], self.source(i, old.content()));
        if part.record.is_outside() {
            return old.outside(handle(source, part)).position().to_vec();
        }
        let head = &part.head.to_be_bytes()[..part.record.suffix().min(5)];
        let rest = &source[part.record.rest_at()..][..part.record.rest()];
        [old.leaf().prefix(), head, rest].concat()
    }

    /// The prefix of a new leaf with some of the entries. `fences` is the common prefix of its
    /// fences.
    pub(crate) fn prefix<'p>(
        &self,
        old: &LockedTreeLeaf<'p>,
        range: Range<usize>,
        fences: Prefix<'p>,
    ) -> Prefix<'p> {
        let prefix = fences.or_longer(old.leaf().prefix());
        let [first, .., last] = &self.parts[range.clone()] else {
            return prefix;
        };
        // Heads and suffixes begin after the old leaf's prefix. Estimate by them whether a longer
        // prefix than the one so far is worth it.
        let stripped = prefix.len() - old.leaf().prefix_len();
        let equal = (first.head ^ last.head).leading_zeros() as usize / 8;
        let suffix = first.record.suffix().max(last.record.suffix());
        if !Prefix::is_worth(
            equal.saturating_sub(stripped),
            suffix - stripped.min(suffix),
        ) {
            return prefix;
        }
        let position = |i| self.position(old, i);
        prefix.extended(&position(range.start), &position(range.end - 1))
    }

    /// Step 2: builds a leaf with some of the entries, with a capacity of `content` bytes.
    pub(crate) fn build(
        &self,
        old: &LockedTreeLeaf<'_>,
        range: Range<usize>,
        content: usize,
        prefix: &Prefix<'_>,
    ) -> NewTreeLeaf {
        let mut new = NewTreeLeaf::empty(content, prefix);
        let count = range.len();
        // Records grow down from the end of the content, slots up from its beginning.
        let to = new.content();
        let heap = self.lay_out(old, range, prefix.len(), to);
        let records = to.len() - heap;
        new.finish_content(count, heap, records);
        new.inherit_mark(old.leaf());
        new
    }

    /// Writes the slots and records of some entries to `to`, the content of a leaf with a prefix of
    /// this length. Returns where the records begin.
    pub(super) fn lay_out(
        &self,
        old: &LockedTreeLeaf<'_>,
        range: Range<usize>,
        prefix: usize,
        to: &mut [u8],
    ) -> usize {
        let prefix_growth = prefix - old.leaf().prefix_len();
        let (first, count, from) = (range.start, range.len(), old.content());
        // The total size of the records is known, so they can be written without gaps up to the
        // end.
        let heap = to.len() - self.records_size(range.clone(), prefix_growth);
        assert!(
            count * SLOT <= heap,
            "a new leaf has capacity for its entries"
        );
        let parts = &self.parts[range];
        // The new entry's record isn't in the old leaf.
        let new = self.new_at.and_then(|i| i.checked_sub(first));
        let mut at = heap;
        // Write the records in ascending order of their offsets, the last entry first. A copy may
        // then write beyond its record, where the next one is written afterwards.
        for (k, part) in parts.iter().enumerate().rev() {
            let record = &mut to[at..];
            let moved = match new == Some(k) {
                false => move_short_record(part, prefix_growth, from, record),
                true => None,
            };
            let (head, len) = match moved {
                Some(moved) => moved,
                None => self.lay_out_one(old, first + k, prefix, record),
            };
            let slot = (head | part.mark | at as u64).to_ne_bytes();
            to[k * SLOT..][..SLOT].copy_from_slice(&slot);
            at += len;
        }
        heap
    }

    /// Writes the record of entry `i`, of any kind, to the front of `to`. Returns its new head, and
    /// the size of the record.
    #[inline(never)]
    fn lay_out_one(
        &self,
        old: &LockedTreeLeaf<'_>,
        i: usize,
        prefix: usize,
        to: &mut [u8],
    ) -> (u64, usize) {
        let (part, source) = (self.parts[i], self.source(i, old.content()));
        if !part.record.is_outside() {
            return write_inline_record(part, prefix - old.leaf().prefix_len(), source, to);
        }
        // The handle moves to the new leaf (O2). The object itself stays where it is.
        let handle = handle(source, part);
        to[0] = HANDLE_TAG;
        to[1..][..8].copy_from_slice(&handle.bits().to_le_bytes());
        let position = old.outside(handle).position();
        // Take the head from the object, which has the whole position.
        (head_of(&position[prefix..]), HANDLE_RECORD)
    }
}

/// The eight bytes from `at` on, of those that are there.
#[inline]
fn word_at(content: &[u8], at: usize) -> u64 {
    match content.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().unwrap_or_default()),
        None => crate::seqlock::words::little(&content[at..]),
    }
}

/// The handle of an outside object.
fn handle(source: &[u8], part: EntryRef) -> Handle {
    Handle::from_bits(word_at(source, part.record.rest_at()))
}

/// Writes the record of an entry to the front of `to`. Returns its new head, and the size of the
/// record.
fn write_inline_record(
    part: EntryRef,
    prefix_growth: usize,
    source: &[u8],
    to: &mut [u8],
) -> (u64, usize) {
    // The suffix loses the bytes by which the prefix grows. The new head begins after these, and
    // so takes as many bytes from the rest of the position, if it has as many: `stripped` of them.
    let (record, at) = (part.record, part.record.rest_at());
    let (left, value, rest) = (
        record.suffix() - prefix_growth,
        record.value(),
        record.rest(),
    );
    let stripped = rest.min(prefix_growth);
    // Write the new length of the suffix, and the length of the value. A length of less than 128
    // has one byte, any other two.
    let mut lengths = 0;
    for n in [left, value] {
        if n < 0x80 {
            to[lengths] = n as u8;
        } else {
            to[lengths] = 0x80 | (n >> 8) as u8;
            to[lengths + 1] = n as u8;
        }
        lengths += length_size(n);
    }
    // Copy the rest of the position that isn't in the longer prefix or in the head, and the value.
    let copied = rest - stripped + value;
    copy(source, at + stripped, to, lengths, copied);
    let head = match prefix_growth {
        0 => part.head,
        _ => head_after_growth(part.head, &source[at..][..rest], prefix_growth),
    };
    (head, lengths + copied)
}

/// The fast path of `lay_out_one`, for a short record of the old leaf and a prefix that grows by
/// less than a head. `None` if the record isn't short, or lies at the end of the source.
#[inline]
fn move_short_record(
    part: &EntryRef,
    prefix_growth: usize,
    source: &[u8],
    to: &mut [u8],
) -> Option<(u64, usize)> {
    const SIZE: usize = 32;
    let (suffix, value) = (part.record.suffix(), part.record.value());
    let (at, rest) = (part.record.rest_at(), part.record.rest());
    // The new head begins `prefix_growth` bytes later. So it takes as many bytes from the beginning
    // of the rest, which are no longer in the record.
    let stripped = rest.min(prefix_growth);
    let copied = rest - stripped + value;
    if copied > SIZE || prefix_growth >= 5 {
        return None;
    }
    // Each of the two lengths has one byte. Whole words are copied: bytes after the record are
    // overwritten, too.
    let source: &[u8; SIZE + 8] = source.get(at..)?.first_chunk()?;
    let from: &[u8; SIZE] = source[stripped..].first_chunk()?;
    let to: &mut [u8; SIZE + 2] = to.first_chunk_mut()?;
    to[..2].copy_from_slice(&((suffix - prefix_growth) as u16 | (value as u16) << 8).to_le_bytes());
    to[2..].copy_from_slice(from);
    // The bytes after the old head, padded with zeros. Those that the head takes in are shifted
    // so that they follow what is left of it, and the others are masked out.
    let padding = u64::MAX.checked_shr(8 * rest as u32).unwrap_or(0);
    let next = u64::from_be_bytes(*source.first_chunk()?) & !padding;
    let head = part.head << (8 * prefix_growth) | next >> (40 - 8 * prefix_growth);
    Some((head & HEAD_MASK, 2 + copied))
}

/// The new head of a position, if the prefix is longer by `prefix_growth` bytes. `rest` are the
/// bytes after the old head.
#[inline]
fn head_after_growth(head: u64, rest: &[u8], prefix_growth: usize) -> u64 {
    let new_head = match prefix_growth {
        0..5 => head << (8 * prefix_growth) | eight(rest, 0) >> (40 - 8 * prefix_growth),
        _ => eight(rest, prefix_growth - 5),
    };
    new_head & HEAD_MASK
}

/// Copies `len` bytes. If they are few, copies a fixed number of bytes, which is faster; the bytes
/// after them are overwritten, too.
#[inline]
fn copy(from: &[u8], at: usize, to: &mut [u8], to_at: usize, len: usize) {
    const MOSTLY: usize = 16;
    if len <= MOSTLY {
        if let (Some(from), Some(to)) =
            (from.get(at..at + MOSTLY), to.get_mut(to_at..to_at + MOSTLY))
        {
            return to.copy_from_slice(from);
        }
    }
    to[to_at..][..len].copy_from_slice(&from[at..][..len]);
}
