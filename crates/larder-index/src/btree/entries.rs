//! How a leaf is made of the entries of another, whose lock is held: in a split, or with more room
//! or less.
//!
//! ```text
//!  old leaf   slots, and records here and there
//!  parts      of each entry, where its record lies in the old leaf
//!  new leaf   slots, and records in the slots' order
//! ```
//!
//! 1. All entries are looked at once: their parts tell all sizes. One entry may come among them
//!    that has no room in the old leaf.
//! 2. A new leaf gets a range of them. Its prefix begins with that of the old leaf: the bytes that
//!    it has more go from heads and records.
//!
//! A new leaf is its maker's alone until it is published, and nobody writes to the old one: both
//! are plain bytes here.

use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf};
use crate::btree::prefix::Prefix;
use crate::btree::record::{
    length_size, record_size, Record, Stored, HANDLE_MARK, HANDLE_RECORD, SLOT,
};
use crate::btree::search_key::{eight, head_of, HEAD_MASK};
use crate::outside::Handle;
use crate::scratch::with_spare;
use std::cell::Cell;
use std::ops::Range;

/// An entry's head, and its record: in the old leaf, or in memory of its own if it is the one that
/// comes.
#[derive(Clone, Copy, Debug)]
struct EntryPart {
    head: u64,
    record: Record,
}

impl EntryPart {
    /// Bytes of the record in a leaf whose prefix is longer by so much.
    #[inline]
    fn size(&self, longer: usize) -> usize {
        if self.record.is_outside() {
            return HANDLE_RECORD;
        }
        record_size(self.record.suffix() - longer, self.record.value())
    }
}

/// All entries of a leaf, and one that comes.
#[derive(Default)]
pub(crate) struct Entries {
    parts: Vec<EntryPart>,
    /// The one that comes: its record without lengths.
    new: Vec<u8>,
    /// Which one that is.
    new_at: Option<usize>,
}

thread_local! {
    static SPARE: Cell<Option<Entries>> = const { Cell::new(None) };
}

/// Calls `f` with no entries yet; their memory is kept for the thread's next call.
pub(crate) fn with_entries<T>(f: impl FnOnce(&mut Entries) -> T) -> T {
    /// More than this is not kept.
    const KEEP: usize = 1 << 16;
    let small =
        |entries: &Entries| entries.parts.capacity() <= KEEP && entries.new.capacity() <= KEEP;
    with_spare(&SPARE, small, f)
}

impl Entries {
    /// Step 1: all of a leaf.
    pub(crate) fn collect(&mut self, leaf: &LockedTreeLeaf<'_>) {
        let content = leaf.content();
        self.parts.clear();
        self.new_at = None;
        let slots = content.chunks_exact(SLOT).take(leaf.len());
        self.parts.extend(slots.map(|slot| {
            let slot = u64::from_ne_bytes(slot.try_into().unwrap_or_default());
            let at = (slot & !HEAD_MASK) as usize;
            EntryPart {
                head: slot & HEAD_MASK,
                record: Record::of(begin(content, at), at),
            }
        }));
    }

    /// Step 1: one more, before entry `i`. `suffix` is its position without the old leaf's prefix.
    pub(crate) fn insert(&mut self, i: usize, suffix: &[u8], stored: Stored<'_>) {
        self.new.clear();
        let record = match stored {
            Stored::Inline(value) => {
                self.new.extend_from_slice(suffix.get(5..).unwrap_or(&[]));
                self.new.extend_from_slice(value);
                Record::inline(0, suffix.len(), value.len())
            }
            Stored::Outside(handle) => {
                self.new.extend_from_slice(&handle.bits().to_le_bytes());
                Record::outside(0)
            }
        };
        let head = head_of(suffix);
        self.parts.insert(i, EntryPart { head, record });
        self.new_at = Some(i);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of content that some take in a leaf whose prefix is longer than the old one's by so
    /// much.
    pub(crate) fn sizes(&self, range: Range<usize>, longer: usize) -> usize {
        range.len() * SLOT + self.records(range, longer)
    }

    fn records(&self, range: Range<usize>, longer: usize) -> usize {
        let parts = self.parts[range].iter();
        parts.map(|part| part.size(longer)).sum()
    }

    /// Where to cut them in two so that both parts take about the same room: at least one entry
    /// each.
    pub(crate) fn middle(&self) -> usize {
        let total = self.sizes(0..self.len(), 0);
        let mut below = 0;
        let at = self.parts.iter().position(|part| {
            below += SLOT + part.size(0);
            below * 2 >= total
        });
        at.map_or(1, |i| i + 1).clamp(1, self.len() - 1)
    }

    /// Where the bytes of entry `i` lie.
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

    /// The prefix of a leaf with some of them, between fences that give this one.
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
        // Heads and suffixes are those behind the old leaf's prefix.
        let gone = prefix.len() - old.leaf().prefix_len();
        let equal = (first.head ^ last.head).leading_zeros() as usize / 8;
        let suffix = first.record.suffix().max(last.record.suffix());
        if !Prefix::is_worth(equal.saturating_sub(gone), suffix - gone.min(suffix)) {
            return prefix;
        }
        let position = |i| self.position(old, i);
        prefix.extended(&position(range.start), &position(range.end - 1))
    }

    /// Step 2: a leaf with some of them, and room for `content` bytes.
    pub(crate) fn build(
        &self,
        old: &LockedTreeLeaf<'_>,
        range: Range<usize>,
        content: usize,
        prefix: &Prefix<'_>,
    ) -> NewTreeLeaf {
        let mut new = NewTreeLeaf::empty(content, prefix);
        let count = range.len();
        let to = new.content();
        let heap = self.lay_out(old, range, prefix.len(), to);
        let records = to.len() - heap;
        new.filled(count, heap, records);
        new
    }

    /// Writes slots and records of some of them to what is to be the content of a leaf with a
    /// prefix of this length. Gives where the records begin.
    pub(super) fn lay_out(
        &self,
        old: &LockedTreeLeaf<'_>,
        range: Range<usize>,
        prefix: usize,
        to: &mut [u8],
    ) -> usize {
        let longer = prefix - old.leaf().prefix_len();
        let (first, count, from) = (range.start, range.len(), old.content());
        // The sum of all records is known, so they are written without a gap up to the end.
        let heap = to.len() - self.records(range, longer);
        assert!(
            count * SLOT <= heap,
            "a new leaf has capacity for its entries"
        );
        let mut at = heap;
        // The last entry's record comes first: copies may run over into what comes next.
        for k in (0..count).rev() {
            let (part, source) = (self.parts[first + k], self.source(first + k, from));
            let (head, len) = if part.record.is_outside() {
                let handle = handle(source, part);
                to[at] = HANDLE_MARK;
                to[at + 1..][..8].copy_from_slice(&handle.bits().to_le_bytes());
                let position = old.outside(handle).position();
                // The object has the whole position; the old leaf's head may lie before the new
                // suffix.
                (head_of(&position[prefix..]), HANDLE_RECORD)
            } else {
                inline(part, longer, source, &mut to[at..])
            };
            to[k * SLOT..][..SLOT].copy_from_slice(&(head | at as u64).to_ne_bytes());
            at += len;
        }
        heap
    }
}

/// The first bytes of a record.
#[inline(always)]
fn begin(content: &[u8], at: usize) -> u64 {
    match content.get(at..at + 8) {
        Some(own) => u64::from_le_bytes(own.try_into().unwrap_or_default()),
        None => crate::seqlock::words::little(&content[at..]),
    }
}

/// The handle of an outside object.
fn handle(source: &[u8], part: EntryPart) -> Handle {
    Handle::from_bits(begin(source, part.record.rest_at()))
}

/// Writes the record of an entry to the front of `to`. Gives its head, and the bytes of the record.
#[inline(always)]
fn inline(part: EntryPart, longer: usize, source: &[u8], to: &mut [u8]) -> (u64, usize) {
    let (record, at) = (part.record, part.record.rest_at());
    if let Some(len) = short(record, longer, source, to) {
        return (part.head << (8 * longer), len);
    }
    let (left, value, rest) = (record.suffix() - longer, record.value(), record.rest());
    let gone = rest.min(longer);
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
    let copied = rest - gone + value;
    copy(source, at + gone, to, lengths, copied);
    let head = match longer {
        0 => part.head,
        _ => behind(part.head, &source[at..][..rest], longer),
    };
    (head, lengths + copied)
}

/// As `inline` for a short entry whose record has no byte of its position: the record as it lies
/// there, but for the length.
#[inline(always)]
fn short(record: Record, longer: usize, source: &[u8], to: &mut [u8]) -> Option<usize> {
    const SIZE: usize = 16;
    if record.suffix() > 5 || record.value() > SIZE - 2 {
        return None;
    }
    let at = record.rest_at().checked_sub(2)?;
    let from: &[u8; SIZE] = source.get(at..at + SIZE)?.try_into().ok()?;
    let to: &mut [u8; SIZE] = to.first_chunk_mut()?;
    *to = *from;
    to[0] = (record.suffix() - longer) as u8;
    Some(record.value() + 2)
}

/// The head of a position of which so many bytes more are in the prefix.
#[inline]
fn behind(head: u64, rest: &[u8], longer: usize) -> u64 {
    let own = match longer {
        0..5 => head << (8 * longer) | eight(rest, 0) >> (40 - 8 * longer),
        _ => eight(rest, longer - 5),
    };
    own & HEAD_MASK
}

/// Copies bytes, and some of what is behind them, too, if there is room.
#[inline(always)]
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
