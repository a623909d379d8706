//! Reading a leaf of the B+-tree: as a reader, who validates the version afterwards, or as the
//! holder of the lock.
//!
//! ```text
//!  samples   compared all at once        → about sixteen slots
//!  slots     heads of five bytes         → the entry, or a few with equal heads
//!  records   the rest of the position    → the entry
//! ```
//!
//! Invariants (docs/design.md §4.2 and 4.4):
//! * O3: A handle is followed only after the version has been validated.
//! * **B17** No read goes outside the leaf. An offset that would is an error, [`Torn`]: only torn
//!   bytes can contain it.
//! * **B18** Everything that was read is correct if the view is valid afterwards. Until then it may
//!   be an arbitrary mixture of old and new bytes.
//! * **B19** The holder of the lock has no version to validate, and its reads are never torn.

use crate::btree::copies::EntryCopies;
use crate::btree::leaf::{Obsolete, TreeLeaf};
use crate::btree::record::{Record, RecordParts};
use crate::btree::search_key::{eight, head_of, HEAD_MASK, OFFSET_MASK};
use crate::hint::Hint;
use crate::memory::prefetch;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::{self, ShortBytes, Torn};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::traits::BatchEntry;
use crate::{Batch, Seen, StepEntry, SHORT_VALUE};
use std::cmp::Ordering;

/// A view of a leaf's content.
#[derive(Clone, Copy)]
pub(crate) struct TreeView<'g> {
    leaf: TreeLeaf<'g>,
    words: &'g [AtomicU64],
    count: usize,
    /// The version that a reader validates. `None` if the view is never validated: that of the
    /// lock's holder, for prefetching, and while the leaf is freed.
    version: Option<u64>,
}

/// The slot and the record of an entry, as far as they were read.
struct RecordRead {
    slot: u64,
    /// The first eight bytes of the record.
    bits: u64,
    parts: RecordParts,
}

/// The result of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchResult {
    /// The number of the first entry whose position is not below the one sought.
    pub(crate) i: usize,
    /// The record of that entry, if its position is equal to the one sought.
    pub(crate) record: Option<Record>,
}

impl<'g> TreeLeaf<'g> {
    /// Begins an optimistic read. Waits while the leaf is locked.
    #[inline]
    pub(crate) fn read(self) -> Result<TreeView<'g>, Obsolete> {
        Ok(TreeView::new(self, Some(self.head().version.read()?)))
    }

    /// A view that is never validated, for prefetching.
    pub(crate) fn peek(self) -> TreeView<'g> {
        TreeView::new(self, None)
    }

    /// Frees the leaf and its outside objects.
    ///
    /// # Safety
    /// Nobody can use the leaf any more; the handles in it are not in another leaf.
    pub(super) unsafe fn free_all(self) {
        let view = TreeView::new(self, None);
        for i in 0..view.len() {
            if let Ok(Some(handle)) = view.handle(i) {
                // SAFETY: only this leaf had the handle.
                unsafe { handle.free() };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.free() };
    }
}

impl<'g> TreeView<'g> {
    #[inline]
    pub(super) fn new(leaf: TreeLeaf<'g>, version: Option<u64>) -> Self {
        // Ordering: Relaxed, see `seqlock`.
        let count = leaf.head().count.load(Relaxed) as usize;
        TreeView {
            leaf,
            words: leaf.words(),
            count,
            version,
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A hint for a write to entry `i`, which has this record, of the tree at this address. It must
    /// not be used unless the view is valid. The holder of the lock needs no hint.
    #[inline]
    pub(super) fn hint(&self, tree: usize, i: usize, record: Record) -> Hint<'g> {
        match self.version {
            Some(version) => Hint::of_tree(tree, self.leaf, version, i, record),
            None => Hint::default(),
        }
    }

    /// Where the entries were read, in the index of this number. `None` of the holder of the lock.
    pub(super) fn seen(&self, index: u64) -> Option<Seen> {
        self.version.map(|version| Seen {
            index,
            version,
            from_edge: false,
        })
    }

    /// Whether everything that was read so far is correct.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.version.is_none_or(|v| self.leaf.is_unchanged(v))
    }

    #[inline]
    fn slot(&self, i: usize) -> Result<u64, Torn> {
        words::word(self.words, i)
    }

    #[inline]
    fn record(&self, slot: u64) -> Result<Record, Torn> {
        let (bits, at) = self.begin_record(slot)?;
        Ok(Record::of(bits, at))
    }

    /// The first eight bytes of a record, and its offset.
    #[inline]
    fn begin_record(&self, slot: u64) -> Result<(u64, usize), Torn> {
        let at = (slot & OFFSET_MASK) as usize;
        Ok((words::load(self.words, at)?, at))
    }

    /// The handle of a record, if the object is outside.
    #[inline]
    pub(super) fn handle_of(&self, record: &Record) -> Result<Option<Handle>, Torn> {
        if !record.is_outside() {
            return Ok(None);
        }
        let bits = words::load(self.words, record.rest_at())?;
        Ok(Some(Handle::from_bits(bits)))
    }

    /// The outside object of a record.
    #[inline(never)]
    pub(super) fn outside(&self, record: &Record) -> Result<Outside<'g>, Torn> {
        let bits = words::load(self.words, record.rest_at())?;
        self.object(Handle::from_bits(bits))
    }

    /// The outside object of a handle that was read from this leaf.
    pub(super) fn object(&self, handle: Handle) -> Result<Outside<'g>, Torn> {
        if !self.is_valid() {
            return Err(Torn);
        }
        // SAFETY:
        // 1. the check says that the handle was in the leaf, while the guard that `'g` stands for
        //    was held;
        // 2. it is held on for `'g`.
        Ok(unsafe { handle.object() })
    }

    /// Searches for the position prefix + `suffix`. `head` is the head of the suffix.
    #[inline(always)]
    pub(crate) fn search(&self, head: u64, suffix: &[u8]) -> Result<SearchResult, Torn> {
        // Narrow the search to the slots between two samples, which are mostly sixteen, and
        // prefetch them.
        let (low, high) = self.sampled(head);
        // Find the first slot whose head is not below the position's.
        let i = self.first(head, low, high)?;
        // If its head is greater, the position is absent. Only if the heads are equal, a record has
        // to be read.
        match self.slot(i) {
            Ok(slot) if i < self.count && slot & HEAD_MASK == head => self.tied(slot, suffix, i),
            _ => Ok(SearchResult { i, record: None }),
        }
    }

    /// Prefetches the slots that a search for this head reads after the samples.
    pub(crate) fn prefetch_slots(&self, head: u64) {
        self.sampled(head);
    }

    /// Prefetches the record that a search for this head reads after the slots.
    pub(crate) fn prefetch_record(&self, head: u64) {
        let (low, high) = self.sampled(head);
        let slot = self.first(head, low, high).and_then(|i| self.slot(i));
        if let Ok(slot) = slot {
            let base: *const u8 = self.words.as_ptr().cast();
            prefetch(base.wrapping_add((slot & OFFSET_MASK) as usize));
        }
    }

    /// The first slot of `low..high` whose head is not below this one.
    #[inline(always)]
    fn first(&self, head: u64, low: usize, high: usize) -> Result<usize, Torn> {
        /// Up to this number of slots, a linear search is faster than a binary one.
        const FEW: usize = 8;
        // `low` and `high` may come from torn samples.
        let slots = self.words.get(low..high).ok_or(Torn)?;
        // The low bits of `head` are zeros. So a whole slot is below `head` if and only if the
        // slot's head is. Ordering: Relaxed, see `seqlock`.
        let below = |slot: &AtomicU64| usize::from(slot.load(Relaxed) < head);
        // Binary search without a branch on the comparison: the processor would mispredict it half
        // of the time. The first two steps are unrolled, since the compiler would make branches of
        // them in a loop.
        let halve = |(from, size): (usize, usize)| {
            let half = size / 2;
            let slot = slots.get(from + half - 1).ok_or(Torn)?;
            Ok((from + half * below(slot), size - half))
        };
        let mut window = (0, slots.len());
        if window.1 > FEW {
            window = halve(window)?;
            if window.1 > FEW {
                window = halve(window)?;
                while window.1 > FEW {
                    window = halve(window)?;
                }
            }
        }
        // Then count the slots of the window that are below, four at a time.
        let rest = slots.get(window.0..window.0 + window.1).ok_or(Torn)?;
        let (fours, few) = rest.split_at(rest.len() & !3);
        let count = |slots: &[AtomicU64]| slots.iter().map(below).sum::<usize>();
        let fours = fours.chunks_exact(4).map(count).sum::<usize>();
        Ok(low + window.0 + fours + count(few))
    }

    /// Continues the search among the entries with equal heads, of which `i` is the first.
    #[inline(always)]
    fn tied(&self, slot: u64, suffix: &[u8], i: usize) -> Result<SearchResult, Torn> {
        let record = self.record(slot)?;
        // The first of them is mostly the only one.
        match self.compare(&record, suffix)? {
            Ordering::Equal => Ok(SearchResult {
                i,
                record: Some(record),
            }),
            Ordering::Greater => Ok(SearchResult { i, record: None }),
            Ordering::Less => self.among_equals(slot & HEAD_MASK, suffix, i + 1),
        }
    }

    /// Continues the search from entry `first` on, where several entries have equal heads.
    #[cold]
    fn among_equals(&self, head: u64, suffix: &[u8], first: usize) -> Result<SearchResult, Torn> {
        let (mut low, mut high) = (first, self.count);
        // Mostly the next entry is above: a scan that continues after an entry has its head.
        let mut i = first;
        while low < high {
            // Binary search by heads, and then by records. Torn slots may be in any order, but the
            // range shrinks in each step, so the loop ends.
            let slot = self.slot(i)?;
            match (slot & HEAD_MASK).cmp(&head) {
                Ordering::Less => low = i + 1,
                Ordering::Greater => high = i,
                Ordering::Equal => {
                    let record = self.record(slot)?;
                    match self.compare(&record, suffix)? {
                        Ordering::Less => low = i + 1,
                        Ordering::Greater => high = i,
                        Ordering::Equal => {
                            let record = Some(record);
                            return Ok(SearchResult { i, record });
                        }
                    }
                }
            }
            i = (low + high) / 2;
        }
        let record = None;
        Ok(SearchResult { i: low, record })
    }

    /// Searches the samples. Returns the range of slots that may have the head, and prefetches
    /// these slots and their records.
    #[inline]
    fn sampled(&self, head: u64) -> (usize, usize) {
        let key = (head >> 32) as u32;
        // Ordering: Relaxed, here and below, see `seqlock`.
        let spacing = self.leaf.head().spacing.load(Relaxed) & 31;
        let samples = self.leaf.samples();
        // `count` and the spacing may be torn, so the number of samples bounds the slice.
        let last = (self.count.saturating_sub(1) >> spacing).min(samples.len());
        let used = &samples[..last];
        let count_below = |samples: &[AtomicU32]| -> usize {
            let below = |sample: &AtomicU32| usize::from(sample.load(Relaxed) < key);
            samples.iter().map(below).sum()
        };
        // Count the samples that are below. All are compared, four at a time, so no branch depends
        // on the result.
        let (fours, rest) = used.split_at(last & !3);
        let below = fours.chunks_exact(4).map(count_below).sum::<usize>() + count_below(rest);
        // A sample is only the upper half of a head. If it is equal, its slot may be on either side
        // of the position, so extend the range past it.
        let mut end = below;
        while used.get(end).is_some_and(|s| s.load(Relaxed) == key) {
            end += 1;
        }
        // Sample `i` is of slot `(i + 1) << spacing`. The last sample below the head is the lower
        // end of the range, and the first one above it the upper end.
        let high = if end == last {
            self.count
        } else {
            (end + 1) << spacing
        };
        let low = below << spacing;
        self.prefetch_range(low, high);
        (low, high)
    }

    /// Prefetches the slots `low..high`, and guesses where their records are.
    #[inline]
    fn prefetch_range(&self, low: usize, high: usize) {
        const LINE: usize = 64;
        let base: *const u8 = self.words.as_ptr().cast();
        // Sixteen slots take two or three cache lines.
        let slots = base.wrapping_add(low * 8);
        prefetch(slots);
        prefetch(slots.wrapping_add(LINE));
        prefetch(slots.wrapping_add(2 * LINE));
        // A leaf that was built from entries in order has its records in order, too, the first one
        // at the end. Guess that, with the average length. A wrong guess costs three useless lines.
        // Ordering: Relaxed, see `seqlock`.
        let live = self.leaf.head().live.load(Relaxed) as u32;
        let each = live / (self.count as u32).max(1);
        let end = self.words.len() * 8;
        let from = end.saturating_sub(high * each as usize);
        let records = base.wrapping_add(from);
        prefetch(records);
        prefetch(records.wrapping_add(LINE));
        prefetch(records.wrapping_add(2 * LINE));
    }

    /// Compares entry `i` with the position prefix + `suffix`. `head` is the head of the suffix.
    #[inline]
    fn compare_at(&self, i: usize, head: u64, suffix: &[u8]) -> Result<Ordering, Torn> {
        let slot = self.slot(i)?;
        match (slot & HEAD_MASK).cmp(&head) {
            Ordering::Equal => self.compare(&self.record(slot)?, suffix),
            unequal => Ok(unequal),
        }
    }

    /// Whether the position prefix + `suffix` is absent and would be inserted before entry `i`.
    #[inline]
    pub(super) fn belongs_at(&self, i: usize, head: u64, suffix: &[u8]) -> Result<bool, Torn> {
        let above = match i.checked_sub(1) {
            Some(below) => self.compare_at(below, head, suffix)? == Ordering::Less,
            None => true,
        };
        Ok(above && (i == self.count || self.compare_at(i, head, suffix)? == Ordering::Greater))
    }

    /// Compares the entry with this record with the position prefix + `suffix`. Their heads are
    /// equal.
    #[inline(always)]
    fn compare(&self, record: &Record, suffix: &[u8]) -> Result<Ordering, Torn> {
        // One of the two ends within the head. Heads are padded with zeros and are equal, so the
        // shorter one is a prefix of the other. (An outside object's record has a tag in place of
        // the length.)
        if (record.suffix() <= 5 || suffix.len() <= 5) && !record.is_outside() {
            return Ok(record.suffix().cmp(&suffix.len()));
        }
        // The first five bytes are equal, so the bytes after them decide.
        let (rest, other) = (record.rest(), suffix.len().saturating_sub(5));
        if rest > 8 || other > 8 {
            return self.compare_long(record, suffix);
        }
        // Compare both as big-endian words, padded with zeros. If the words are equal, the shorter
        // one is a prefix of the other.
        let bytes = words::load(self.words, record.rest_at())?.swap_bytes();
        let word = bytes & !(u64::MAX.checked_shr(8 * rest as u32).unwrap_or(0));
        Ok(word.cmp(&eight(suffix, 5)).then(rest.cmp(&other)))
    }

    #[inline(never)]
    fn compare_long(&self, record: &Record, suffix: &[u8]) -> Result<Ordering, Torn> {
        if record.is_outside() {
            let position = self.outside(record)?.position();
            let found = position.get(self.leaf.prefix_len()..).ok_or(Torn)?;
            return Ok(found.cmp(suffix));
        }
        // The first five bytes are equal. `rest` and `other` are the lengths of what follows.
        let (rest, other) = (record.rest(), suffix.len().saturating_sub(5));
        if rest <= 16 && other <= 16 {
            if let Some([high, low]) = words::sixteen(self.words, record.rest_at()) {
                // As in `compare`, with numbers of sixteen bytes.
                let both = |high, low| u128::from(high) << 64 | u128::from(low);
                let beyond = u128::MAX.checked_shr(8 * rest as u32).unwrap_or(0);
                let found = both(high.swap_bytes(), low.swap_bytes()) & !beyond;
                let sought = both(eight(suffix, 5), eight(suffix, 13));
                return Ok(found.cmp(&sought).then(rest.cmp(&other)));
            }
        }
        // One of the two is longer, or fewer than sixteen bytes of the leaf are left.
        let sought = suffix.get(5..).unwrap_or(&[]);
        words::compare(self.words, record.rest_at(), rest, sought)
    }

    /// Strips the leaf's prefix from the beginning of a position. The result is empty if the prefix
    /// is longer. `None` if no entry of the leaf has this beginning.
    #[inline]
    pub(crate) fn after_prefix<'b>(&self, beginning: &'b [u8]) -> Option<&'b [u8]> {
        let prefix = self.leaf.prefix();
        let common = beginning.len().min(prefix.len());
        (beginning[..common] == prefix[..common]).then(|| &beginning[common..])
    }

    /// Whether the position of entry `i`, without the leaf's prefix, begins with `key`.
    #[inline]
    pub(crate) fn begins_with(&self, i: usize, key: &[u8]) -> Result<bool, Torn> {
        let slot = self.slot(i)?;
        let in_head = key.len().min(5);
        // Heads are padded with zeros. Whether a zero belongs to the position is checked below, by
        // the length in the record.
        if slot.to_be_bytes()[..in_head] != key[..in_head] {
            return Ok(false);
        }
        let record = self.record(slot)?;
        if record.is_outside() {
            let found = self.outside(&record)?.position();
            let found = found.get(self.leaf.prefix_len()..).ok_or(Torn)?;
            return Ok(found.starts_with(key));
        }
        if record.suffix() < key.len() || key.len() <= 5 {
            return Ok(record.suffix() >= key.len());
        }
        let (at, len) = (record.rest_at(), key.len() - 5);
        Ok(words::compare(self.words, at, len, &key[5..])? == Ordering::Equal)
    }

    /// Searches for any position, also one that doesn't begin with the leaf's prefix. Returns the
    /// number of the first entry that isn't below it, and whether that entry's position is equal.
    pub(crate) fn search_any(&self, position: &[u8]) -> Result<(usize, bool), Torn> {
        let suffix = match self.suffix_of(position) {
            Ok(suffix) => suffix,
            Err(i) => return Ok((i, false)),
        };
        let spot = self.search(head_of(suffix), suffix)?;
        Ok((spot.i, spot.record.is_some()))
    }

    /// Like `search_any`, for a position that is expected not far after entry `from`, and isn't
    /// below it. The distance is doubled until an entry isn't below the position.
    pub(crate) fn search_from(&self, from: usize, position: &[u8]) -> Result<(usize, bool), Torn> {
        let suffix = match self.suffix_of(position) {
            Ok(suffix) => suffix,
            Err(i) => return Ok((i, false)),
        };
        let head = head_of(suffix);
        // Entries before `low` are below the position, and `high` isn't, if there is such an entry.
        let (mut low, mut high, mut step) = (from, self.count, 1);
        // Whether an entry above the position was found. From then on the range between the two is
        // halved.
        let mut is_near = false;
        while low < high {
            let i = if is_near {
                (low + high) / 2
            } else {
                (low + step).min(high) - 1
            };
            match self.compare_at(i, head, suffix)? {
                Ordering::Equal => return Ok((i, true)),
                Ordering::Less => (low, step) = (i + 1, 2 * step),
                Ordering::Greater => (high, is_near) = (i, true),
            }
        }
        Ok((low, false))
    }

    /// The part of a position after the leaf's prefix. If the position doesn't begin with the
    /// prefix, it isn't in the leaf: the error is the number of the first entry that isn't below.
    fn suffix_of<'p>(&self, position: &'p [u8]) -> Result<&'p [u8], usize> {
        let prefix = self.leaf.prefix();
        // Compare as much as both have. If the prefix is longer, a position that ends in it
        // precedes all entries.
        let common = position.len().min(prefix.len());
        match position[..common].cmp(&prefix[..common]) {
            Ordering::Greater => Err(self.count),
            Ordering::Equal if common == prefix.len() => Ok(&position[common..]),
            Ordering::Equal | Ordering::Less => Err(0),
        }
    }

    /// The record of entry `i`.
    #[inline]
    pub(crate) fn record_of(&self, i: usize) -> Result<Record, Torn> {
        self.record(self.slot(i)?)
    }

    /// Appends the value of a record to `out`. If the object is outside, the version is validated
    /// first. Outside objects never change.
    #[inline]
    pub(crate) fn copy_value(&self, record: &Record, out: &mut Vec<u8>) -> Result<(), Torn> {
        if record.is_outside() {
            out.extend_from_slice(self.outside(record)?.value());
            return Ok(());
        }
        words::copy_out(self.words, record.value_at(), record.value(), out)
    }

    /// Copies the value of a record to the front of `out`, and returns its length. `None` if it is
    /// too long.
    #[inline(always)]
    pub(crate) fn copy_short(
        &self,
        record: &Record,
        out: &mut [u8; SHORT_VALUE],
    ) -> Result<Option<usize>, Torn> {
        // An outside value is immutable. It is read after the version was validated (O3).
        if record.is_outside() {
            let value = self.outside(record)?.value();
            let Some(to) = out.get_mut(..value.len()) else {
                return Ok(None);
            };
            to.copy_from_slice(value);
            return Ok(Some(value.len()));
        }
        // The length may be torn. If it is short enough, some bytes are copied, and the caller's
        // validation fails.
        let value = record.value();
        if value > SHORT_VALUE {
            return Ok(None);
        }
        words::copy_short(self.words, record.value_at(), value, out)?;
        Ok(Some(value))
    }

    /// The handle of entry `i`, if its object is outside.
    pub(crate) fn handle(&self, i: usize) -> Result<Option<Handle>, Torn> {
        self.handle_of(&self.record_of(i)?)
    }

    /// Appends entry `i` to the copies. An outside object is added as its handle.
    #[inline]
    pub(crate) fn collect(&self, i: usize, copies: &mut EntryCopies) -> Result<(), Torn> {
        let (from, read) = (copies.bytes.len(), self.read_record(i)?);
        if let Some(record) = read.parts.outside() {
            let handle = self.handle_of(&record)?;
            copies
                .bytes
                .extend_from_slice(self.outside(&record)?.position());
            copies.end_entry(from, copies.bytes.len(), handle);
            return Ok(());
        }
        let bytes = &mut copies.bytes;
        let middle = self.copy_inside(&read, &self.front(), usize::MAX, bytes)?;
        copies.end_entry(from, middle, None);
        Ok(())
    }

    /// The beginning of all positions of the leaf.
    #[inline]
    pub(crate) fn front(&self) -> words::CopyPrefix<'g> {
        words::CopyPrefix::new(self.leaf.prefix())
    }

    /// Reads the slot and the beginning of the record of entry `i`.
    #[inline]
    fn read_record(&self, i: usize) -> Result<RecordRead, Torn> {
        let slot = self.slot(i)?;
        let (bits, at) = self.begin_record(slot)?;
        let parts = RecordParts::of(bits, at);
        Ok(RecordRead { slot, bits, parts })
    }

    /// Appends the position of an entry that isn't outside, and the first `limit` bytes of its
    /// value. Returns where the value begins.
    #[inline(always)]
    fn copy_inside(
        &self,
        read: &RecordRead,
        front: &words::CopyPrefix<'_>,
        limit: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, Torn> {
        // Assemble the position from its three parts: the leaf's prefix, up to five bytes in the
        // slot, and the rest in the record.
        let RecordRead { slot, bits, parts } = *read;
        let in_slot = ShortBytes {
            bytes: slot.to_be_bytes(),
            len: parts.suffix.min(5),
        };
        // The value follows the rest of the position, so one copy gets both.
        let value = parts.value.min(limit);
        let (at, len) = (parts.rest_at, parts.suffix - in_slot.len + value);
        // If the two lengths have a byte each, the next six bytes were loaded with them.
        if len <= 6 && at == (slot & OFFSET_MASK) as usize + 2 {
            words::push_after(front, in_slot, (u128::from(bits >> 16), len), bytes);
            return Ok(bytes.len() - value);
        }
        // Most others are short, too, and are copied without a call.
        if let (Some([low, high]), true) = (words::sixteen(self.words, at), len <= 16) {
            let both = u128::from(low) | u128::from(high) << 64;
            words::push_after(front, in_slot, (both, len), bytes);
            return Ok(bytes.len() - value);
        }
        words::copy_out_after(front, in_slot, self.words, at, len, bytes)?;
        Ok(bytes.len() - value)
    }

    /// Copies entry `i`.
    #[inline]
    pub(crate) fn copy_entry(&self, i: usize, entry: &mut StepEntry) -> Result<(), Torn> {
        let read = self.read_record(i)?;
        if let Some(record) = read.parts.outside() {
            let object = self.outside(&record)?;
            entry.copy(object.position(), object.value(), entry.value_limit());
            return Ok(());
        }
        let limit = entry.value_limit();
        entry.bytes.clear();
        let middle = self.copy_inside(&read, &self.front(), limit, &mut entry.bytes)?;
        entry.set(0..middle, entry.bytes.len());
        Ok(())
    }

    /// Appends entry `i` to the batch.
    #[inline(always)]
    pub(crate) fn copy_next(&self, i: usize, batch: &mut Batch<'g>) -> Result<(), Torn> {
        self.add_to(batch, i, &self.front(), batch.value_limit())
    }

    /// Appends entry `i` to the batch: an outside object as it is, otherwise a copy with the first
    /// `limit` bytes of the value. `front` is that of the view.
    #[inline(always)]
    pub(crate) fn add_to(
        &self,
        batch: &mut Batch<'g>,
        i: usize,
        front: &words::CopyPrefix<'_>,
        limit: usize,
    ) -> Result<(), Torn> {
        let (from, read) = (batch.bytes.len(), self.read_record(i)?);
        // An outside object stays where it is: the guard of the batch keeps it.
        if let Some(record) = read.parts.outside() {
            batch.push_outside(self.outside(&record)?);
            return Ok(());
        }
        // The position is put together of the leaf's prefix, the slot's head and the record. The
        // value follows it, from `middle` on.
        let middle = self.copy_inside(&read, front, limit, &mut batch.bytes)?;
        let entry = BatchEntry::copied(from, middle, batch.bytes.len());
        batch.entries.push(entry);
        Ok(())
    }
}
