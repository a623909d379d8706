//! A view of a leaf: by a reader, who checks afterwards whether it was true, or by the lock's
//! holder.
//!
//! ```text
//!  samples   compared all at once        → about sixteen slots
//!  slots     heads of five bytes         → the entry, or a few with equal heads
//!  records   the rest of the position    → the entry
//! ```
//!
//! Invariants:
//! 1. No read leaves the leaf: what would is [`Torn`], as only torn bytes lead there.
//! 2. What a view says is true if it is valid afterwards. Until then it may be any mixture.
//! 3. A handle is followed only after a check: it was in the leaf while the epoch was pinned.
//! 4. For the lock's holder there is no version to check, and nothing is torn.

use crate::btree::leaf::{Obsolete, TreeLeaf};
use crate::btree::record::Record;
use crate::btree::run::Run;
use crate::btree::search_key::{eight, head_of, HEAD_MASK};
use crate::memory::prefetch;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::{self, Torn};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::{Batch, SHORT};
use std::cmp::Ordering;

/// A view of a leaf's content.
#[derive(Clone, Copy)]
pub(crate) struct TreeView<'g> {
    leaf: TreeLeaf<'g>,
    words: &'g [AtomicU64],
    count: usize,
    /// What a reader has to check; the lock's holder has nothing to.
    version: Option<u64>,
}

/// What a search finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchResult {
    /// Where the first position is that is not below the one sought.
    pub(crate) i: usize,
    /// The record of that entry, if its position is the one sought.
    pub(crate) record: Option<Record>,
}

impl<'g> TreeLeaf<'g> {
    /// Begins an optimistic read; waits while a writer is at work.
    #[inline]
    pub(crate) fn read(self) -> Result<TreeView<'g>, Obsolete> {
        Ok(TreeView::new(self, Some(self.head().version.read()?)))
    }

    /// A view of the leaf for a caller that believes nothing of what it reads.
    pub(crate) fn peek(self) -> TreeView<'g> {
        TreeView::new(self, None)
    }

    /// Frees the leaf and the outside objects that it leads to. Returns how many entries it had.
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

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether all that was read so far is true.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.version.is_none_or(|v| self.leaf.unchanged(v))
    }

    #[inline]
    fn slot(&self, i: usize) -> Result<u64, Torn> {
        words::word(self.words, i)
    }

    #[inline(always)]
    fn record(&self, slot: u64) -> Result<Record, Torn> {
        let at = (slot & !HEAD_MASK) as usize;
        Ok(Record::of(words::load(self.words, at)?, at))
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
    #[cold]
    fn outside(&self, record: &Record) -> Result<Outside<'g>, Torn> {
        let bits = words::load(self.words, record.rest_at())?;
        self.object(Handle::from_bits(bits))
    }

    /// The outside object of a handle that was read from this leaf.
    pub(super) fn object(&self, handle: Handle) -> Result<Outside<'g>, Torn> {
        if !self.is_valid() {
            return Err(Torn);
        }
        // SAFETY: 1. the check says that the handle was in the leaf, while the guard that `'g`
        // stands for was held; 2. it is held on for `'g`.
        Ok(unsafe { handle.object() })
    }

    /// Searches for prefix + `suffix`, whose head is given.
    #[inline(always)]
    pub(crate) fn search(&self, head: u64, suffix: &[u8]) -> Result<SearchResult, Torn> {
        // The samples leave mostly sixteen slots, whose lines are prefetched.
        let (low, high) = self.sampled(head);
        // The first of them whose head is not below the position's.
        let i = self.first(head, low, high)?;
        // Only if the heads are equal does a record have to be read.
        match self.slot(i) {
            Ok(slot) if i < self.count && slot & HEAD_MASK == head => self.tied(slot, suffix, i),
            _ => Ok(SearchResult { i, record: None }),
        }
    }

    /// Prefetches the slots that a search for a head will read after the samples.
    pub(crate) fn prefetch_slots(&self, head: u64) {
        self.sampled(head);
    }

    /// Prefetches the record that a search for a head will read after the slots.
    pub(crate) fn prefetch_record(&self, head: u64) {
        let (low, high) = self.sampled(head);
        let slot = self.first(head, low, high).and_then(|i| self.slot(i));
        if let Ok(slot) = slot {
            let base: *const u8 = self.words.as_ptr().cast();
            prefetch(base.wrapping_add((slot & !HEAD_MASK) as usize));
        }
    }

    /// The first slot among `low..high` whose head is not below this one.
    #[inline(always)]
    fn first(&self, head: u64, low: usize, high: usize) -> Result<usize, Torn> {
        /// So few slots are searched faster by counting those below than by halving.
        const FEW: usize = 8;
        let slots = self.words.get(low..high).ok_or(Torn)?;
        // The low bits of `head` are zeros. So a whole slot is below it if and only if the slot's
        // head is. Ordering: Relaxed, see `seqlock`.
        let below = |slot: &AtomicU64| usize::from(slot.load(Relaxed) < head);
        // A binary search without a branch on the comparison, as the processor would predict that
        // wrongly half of the time. The first two halvings are written out: in a loop the compiler
        // makes a branch of them.
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
        let rest = slots.get(window.0..window.0 + window.1).ok_or(Torn)?;
        let (fours, few) = rest.split_at(rest.len() & !3);
        let count = |slots: &[AtomicU64]| slots.iter().map(below).sum::<usize>();
        let fours = fours.chunks_exact(4).map(count).sum::<usize>();
        Ok(low + window.0 + fours + count(few))
    }

    /// The search among entries with equal heads, of which `i` is the first.
    #[inline(always)]
    fn tied(&self, slot: u64, suffix: &[u8], i: usize) -> Result<SearchResult, Torn> {
        let record = self.record(slot)?;
        match self.compare(&record, suffix)? {
            Ordering::Equal => Ok(SearchResult {
                i,
                record: Some(record),
            }),
            Ordering::Greater => Ok(SearchResult { i, record: None }),
            Ordering::Less => self.among_equals(slot & HEAD_MASK, suffix, i + 1),
        }
    }

    #[cold]
    fn among_equals(&self, head: u64, suffix: &[u8], first: usize) -> Result<SearchResult, Torn> {
        let (mut low, mut high) = (first, self.count);
        while low < high {
            // Halving, by heads first and then by records. Torn slots may be in any order: the loop
            // still ends.
            let i = (low + high) / 2;
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
        }
        let record = None;
        Ok(SearchResult { i: low, record })
    }

    /// Bounds for the search, from the samples. Asks for the slots between them, and for where
    /// their records are if records lie in order.
    #[inline]
    fn sampled(&self, head: u64) -> (usize, usize) {
        let key = (head >> 32) as u32;
        // Ordering: Relaxed, here and below, see `seqlock`.
        let spacing = self.leaf.head().spacing.load(Relaxed) & 31;
        let samples = self.leaf.samples();
        // `count` and the spacing may be torn: the slice is bounded by the samples that there are.
        let last = (self.count.saturating_sub(1) >> spacing).min(samples.len());
        let used = &samples[..last];
        let count_below = |samples: &[AtomicU32]| -> usize {
            let below = |sample: &AtomicU32| usize::from(sample.load(Relaxed) < key);
            samples.iter().map(below).sum()
        };
        // All samples are compared, four at a time: no branch depends on them.
        let (fours, rest) = used.split_at(last & !3);
        let below = fours.chunks_exact(4).map(count_below).sum::<usize>() + count_below(rest);
        // Equal samples stand for slots on either side of the position.
        let mut end = below;
        while used.get(end).is_some_and(|s| s.load(Relaxed) == key) {
            end += 1;
        }
        // Sample `i` is of slot `(i + 1) << spacing`: those below say where the search begins, the
        // next one where it ends.
        let high = if end == last {
            self.count
        } else {
            (end + 1) << spacing
        };
        let low = below << spacing;
        self.prefetch_range(low, high);
        (low, high)
    }

    /// Prefetches slots, and where their records are if records lie in order.
    #[inline]
    fn prefetch_range(&self, low: usize, high: usize) {
        const LINE: usize = 64;
        let base: *const u8 = self.words.as_ptr().cast();
        // Mostly sixteen slots: two lines, or three.
        let slots = base.wrapping_add(low * 8);
        prefetch(slots);
        prefetch(slots.wrapping_add(LINE));
        prefetch(slots.wrapping_add(2 * LINE));
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

    /// How entry `i` compares to prefix + `suffix`, whose head is given.
    #[inline]
    fn compare_at(&self, i: usize, head: u64, suffix: &[u8]) -> Result<Ordering, Torn> {
        let slot = self.slot(i)?;
        match (slot & HEAD_MASK).cmp(&head) {
            Ordering::Equal => self.compare(&self.record(slot)?, suffix),
            unequal => Ok(unequal),
        }
    }

    /// Whether prefix + `suffix` is not there and would come right before entry `i`.
    #[inline]
    pub(super) fn belongs_at(&self, i: usize, head: u64, suffix: &[u8]) -> Result<bool, Torn> {
        let above = match i.checked_sub(1) {
            Some(below) => self.compare_at(below, head, suffix)? == Ordering::Less,
            None => true,
        };
        Ok(above && (i == self.count || self.compare_at(i, head, suffix)? == Ordering::Greater))
    }

    /// How the entry with this record compares to prefix + `suffix`, when their heads are equal.
    #[inline(always)]
    fn compare(&self, record: &Record, suffix: &[u8]) -> Result<Ordering, Torn> {
        if record.suffix() <= 5 || suffix.len() <= 5 {
            // Equal heads, padded with zeros: the shorter is a prefix of the other. No position is
            // as long as the mark of outside objects says.
            if !record.is_outside() {
                return Ok(record.suffix().cmp(&suffix.len()));
            }
        }
        // The first five bytes are equal, so what is behind them decides.
        let (own, other) = (record.rest(), &suffix[5.min(suffix.len())..]);
        if own > 8 || other.len() > 8 {
            return self.compare_long(record, suffix);
        }
        // Both are a word, with zeros behind them. If the words are equal, the shorter is a prefix
        // of the other.
        let bytes = words::load(self.words, record.rest_at())?.swap_bytes();
        let word = bytes & !(u64::MAX.checked_shr(8 * own as u32).unwrap_or(0));
        Ok(word.cmp(&eight(other, 0)).then(own.cmp(&other.len())))
    }

    #[inline(never)]
    fn compare_long(&self, record: &Record, suffix: &[u8]) -> Result<Ordering, Torn> {
        if record.is_outside() {
            let position = self.outside(record)?.position();
            let own = position.get(self.leaf.prefix_len()..).ok_or(Torn)?;
            return Ok(own.cmp(suffix));
        }
        words::compare(self.words, record.rest_at(), record.rest(), &suffix[5..])
    }

    /// The rest of a beginning of positions behind the leaf's prefix; empty if the prefix is
    /// longer. None if no entry of the leaf begins so.
    #[inline]
    pub(crate) fn behind_prefix<'b>(&self, beginning: &'b [u8]) -> Option<&'b [u8]> {
        let prefix = self.leaf.prefix();
        let common = beginning.len().min(prefix.len());
        (beginning[..common] == prefix[..common]).then(|| &beginning[common..])
    }

    /// Whether the position of entry `i` begins so, behind the leaf's prefix.
    #[inline]
    pub(crate) fn begins_with(&self, i: usize, key: &[u8]) -> Result<bool, Torn> {
        let slot = self.slot(i)?;
        let in_head = key.len().min(5);
        // Heads are padded with zeros: whether a zero is one of the position's is seen below.
        if slot.to_be_bytes()[..in_head] != key[..in_head] {
            return Ok(false);
        }
        let record = self.record(slot)?;
        if record.is_outside() {
            let own = self.outside(&record)?.position();
            let own = own.get(self.leaf.prefix_len()..).ok_or(Torn)?;
            return Ok(own.starts_with(key));
        }
        if record.suffix() < key.len() || key.len() <= 5 {
            return Ok(record.suffix() >= key.len());
        }
        let (at, len) = (record.rest_at(), key.len() - 5);
        Ok(words::compare(self.words, at, len, &key[5..])? == Ordering::Equal)
    }

    /// As `search`, for any position: also one that does not begin with the leaf's prefix.
    pub(crate) fn search_any(&self, position: &[u8]) -> Result<(usize, bool), Torn> {
        let prefix = self.leaf.prefix();
        let common = position.len().min(prefix.len());
        match position[..common].cmp(&prefix[..common]) {
            Ordering::Less => Ok((0, false)),
            Ordering::Greater => Ok((self.count, false)),
            Ordering::Equal if common < prefix.len() => Ok((0, false)),
            Ordering::Equal => {
                let suffix = &position[common..];
                let spot = self.search(head_of(suffix), suffix)?;
                Ok((spot.i, spot.record.is_some()))
            }
        }
    }

    /// The record of entry `i`.
    #[inline]
    pub(crate) fn record_of(&self, i: usize) -> Result<Record, Torn> {
        self.record(self.slot(i)?)
    }

    /// Appends the value of a record to `out`. If the object is outside the copy is made after a
    /// check, of what can't change.
    #[inline]
    pub(crate) fn copy_value(&self, record: &Record, out: &mut Vec<u8>) -> Result<(), Torn> {
        if record.is_outside() {
            out.extend_from_slice(self.outside(record)?.value());
            return Ok(());
        }
        words::copy_out(self.words, record.value_at(), record.value(), out)
    }

    /// Copies the value of a record to the front of `out`, if it has room there, and gives its
    /// length.
    #[inline]
    pub(crate) fn copy_short(
        &self,
        record: &Record,
        out: &mut [u8; SHORT],
    ) -> Result<Option<usize>, Torn> {
        if record.is_outside() {
            let value = self.outside(record)?.value();
            let Some(to) = out.get_mut(..value.len()) else {
                return Ok(None);
            };
            to.copy_from_slice(value);
            return Ok(Some(value.len()));
        }
        let value = record.value();
        if value > SHORT {
            return Ok(None);
        }
        words::copy_short(self.words, record.value_at(), value, out)?;
        Ok(Some(value))
    }

    /// The handle of entry `i`, if it is outside.
    pub(crate) fn handle(&self, i: usize) -> Result<Option<Handle>, Torn> {
        self.handle_of(&self.record_of(i)?)
    }

    /// Appends entry `i` to the run: outside objects as handles.
    #[inline]
    pub(crate) fn collect(&self, i: usize, run: &mut Run) -> Result<(), Torn> {
        let from = run.bytes.len();
        let (middle, handle) = self.copy_entry(i, &mut run.bytes)?;
        run.end_entry(from, middle, handle);
        Ok(())
    }

    /// Appends position and value of entry `i`; of an outside object the position alone, and gives
    /// its handle. Where the value begins.
    #[inline]
    fn copy_entry(&self, i: usize, bytes: &mut Vec<u8>) -> Result<(usize, Option<Handle>), Torn> {
        let slot = self.slot(i)?;
        let record = self.record(slot)?;
        if record.is_outside() {
            let handle = self.handle_of(&record)?;
            bytes.extend_from_slice(self.outside(&record)?.position());
            return Ok((bytes.len(), handle));
        }
        // The position in three pieces: the leaf's prefix, the slot's five bytes, the record's
        // rest.
        let prefix = self.leaf.prefix();
        bytes.reserve(prefix.len() + 8);
        bytes.extend_from_slice(prefix);
        let head = bytes.len();
        bytes.extend_from_slice(&slot.to_be_bytes());
        bytes.truncate(head + record.suffix().min(5));
        // The rest of the position and the value are neighbours.
        let (at, len) = (record.rest_at(), record.rest() + record.value());
        words::copy_out(self.words, at, len, bytes)?;
        Ok((bytes.len() - record.value(), None))
    }

    /// Makes entry `i` the first of the batch.
    #[inline]
    pub(crate) fn copy_only(&self, i: usize, batch: &mut Batch) -> Result<(), Torn> {
        let (middle, handle) = self.copy_entry(i, &mut batch.bytes)?;
        if let Some(handle) = handle {
            batch.bytes.extend_from_slice(self.object(handle)?.value());
        }
        batch.entries.push((0, middle, batch.bytes.len()));
        Ok(())
    }

    /// As `collect`, with the value's bytes wherever they are.
    pub(crate) fn collect_whole(&self, i: usize, run: &mut Run) -> Result<(), Torn> {
        self.collect(i, run)?;
        if let Some(handle) = run.take_last_handle() {
            let object = self.object(handle)?;
            run.extend_last(object.value());
        }
        Ok(())
    }
}
