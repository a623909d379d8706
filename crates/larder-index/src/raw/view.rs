//! A look at a leaf: by a reader, who checks afterwards whether it was true, or by the lock's holder.

use super::leaf::{head_of, length, Leaf, HANDLE_MARK, PLACE_BITS};
use super::memory::prefetch;
use super::outside::{Handle, Outside};
use super::words::{self, Torn};
use crate::run::Run;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::{Batch, SHORT};
use std::cmp::Ordering;

const HEAD_MASK: u64 = !((1 << PLACE_BITS) - 1);

/// A look at a leaf's content.
#[derive(Clone, Copy)]
pub(crate) struct View<'g> {
    leaf: Leaf<'g>,
    words: &'g [AtomicU64],
    count: usize,
    /// What a reader has to check; the lock's holder has nothing to.
    version: Option<u64>,
}

/// A record, taken apart.
#[derive(Clone, Copy)]
enum Record {
    Inline {
        /// Bytes of the position after the leaf's prefix.
        suffix: usize,
        /// Where those after the slot's five begin.
        rest_at: usize,
        value_at: usize,
        value: usize,
    },
    Outside(Handle),
}

impl<'g> View<'g> {
    #[inline]
    pub(super) fn new(leaf: Leaf<'g>, version: Option<u64>) -> Self {
        // Ordering: Relaxed, see the head of `raw`.
        let count = leaf.head().count.load(Relaxed) as usize;
        View {
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
    pub(crate) fn holds(&self) -> bool {
        self.version.is_none_or(|v| self.leaf.unchanged(v))
    }

    fn slot(&self, i: usize) -> Result<u64, Torn> {
        words::word(self.words, i)
    }

    fn record(&self, slot: u64) -> Result<Record, Torn> {
        let at = (slot & !HEAD_MASK) as usize;
        let bits = words::load(self.words, at)?;
        if bits as u8 == HANDLE_MARK {
            let bits = words::load(self.words, at + 1)?;
            return Ok(Record::Outside(Handle::from_bits(bits)));
        }
        let (suffix, a) = length(bits);
        let (value, b) = length(bits >> (8 * a));
        let rest_at = at + a + b;
        Ok(Record::Inline {
            suffix,
            rest_at,
            value_at: rest_at + suffix.saturating_sub(5),
            value,
        })
    }

    /// The outside object of a handle that was read from this leaf.
    fn object(&self, handle: Handle) -> Result<Outside<'g>, Torn> {
        if !self.holds() {
            return Err(Torn);
        }
        // SAFETY: 1. the check says that the handle was in the leaf, while the guard that `'g` stands for was held; 2. it is held on for `'g`.
        Ok(unsafe { handle.object() })
    }

    /// Where the first position is that is not below prefix + `suffix`, and whether it is that one.
    #[inline]
    pub(crate) fn search(&self, suffix: &[u8]) -> Result<(usize, bool), Torn> {
        let head = head_of(suffix);
        let (low, high) = self.sampled(head);
        let i = self.first(head, low, high)?;
        match self.slot(i) {
            Ok(slot) if i < self.count && slot & HEAD_MASK == head => self.tied(slot, suffix, i),
            _ => Ok((i, false)),
        }
    }

    /// Asks for what a search for prefix + `suffix` will read, after the samples.
    pub(crate) fn ask(&self, suffix: &[u8]) {
        self.sampled(head_of(suffix));
    }

    /// Asks for the record that a search for prefix + `suffix` will read, after the slots.
    pub(crate) fn ask_record(&self, suffix: &[u8]) {
        let head = head_of(suffix);
        let (low, high) = self.sampled(head);
        let slot = self.first(head, low, high).and_then(|i| self.slot(i));
        if let Ok(slot) = slot {
            let base: *const u8 = self.words.as_ptr().cast();
            prefetch(base.wrapping_add((slot & !HEAD_MASK) as usize));
        }
    }

    /// The first slot among `low..high` whose head is not below this one.
    #[inline]
    fn first(&self, head: u64, low: usize, high: usize) -> Result<usize, Torn> {
        /// So few slots are counted through faster than they are halved.
        const FEW: usize = 4;
        let slots = self.words.get(low..high).ok_or(Torn)?;
        // The low bits of `head` are zeros: whatever those of a slot are, it is below just if its head is.
        // Ordering: Relaxed, see the head of `raw`.
        let below = |slot: &AtomicU64| usize::from(slot.load(Relaxed) < head);
        // Without a branch, which would be guessed wrong every other time.
        let (mut from, mut size) = (0, slots.len());
        while size > FEW {
            let half = size / 2;
            from += half * slots.get(from + half - 1).map_or(0, below);
            size -= half;
        }
        let rest = slots.get(from..from + size).ok_or(Torn)?;
        Ok(low + from + rest.iter().map(below).sum::<usize>())
    }

    /// The search among entries with equal heads, of which `i` is the first.
    #[inline]
    fn tied(&self, slot: u64, suffix: &[u8], i: usize) -> Result<(usize, bool), Torn> {
        match self.compare(slot, suffix)? {
            Ordering::Equal => Ok((i, true)),
            Ordering::Greater => Ok((i, false)),
            Ordering::Less => self.among_equals(slot & HEAD_MASK, suffix, i + 1),
        }
    }

    #[cold]
    fn among_equals(&self, head: u64, suffix: &[u8], first: usize) -> Result<(usize, bool), Torn> {
        let (mut low, mut high) = (first, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slot(middle)?;
            let order = match (slot & HEAD_MASK).cmp(&head) {
                Ordering::Equal => self.compare(slot, suffix)?,
                unequal => unequal,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok((middle, true)),
            }
        }
        Ok((low, false))
    }

    /// Bounds for the search, from the samples. Asks for the slots between them, and for where their records are if records lie in order.
    #[inline]
    fn sampled(&self, head: u64) -> (usize, usize) {
        let sought = (head >> 32) as u32;
        // Ordering: Relaxed, here and below, see the head of `raw`.
        let spacing = self.leaf.head().spacing.load(Relaxed) & 31;
        let samples = self.leaf.samples();
        let last = (self.count.saturating_sub(1) >> spacing).min(samples.len());
        let used = &samples[..last];
        let count_below = |samples: &[AtomicU32]| -> usize {
            let below = |sample: &AtomicU32| usize::from(sample.load(Relaxed) < sought);
            samples.iter().map(below).sum()
        };
        let (fours, rest) = used.split_at(last & !3);
        let below = fours.chunks_exact(4).map(count_below).sum::<usize>() + count_below(rest);
        let mut end = below;
        while used.get(end).is_some_and(|s| s.load(Relaxed) == sought) {
            end += 1;
        }
        let high = if end == last {
            self.count
        } else {
            (end + 1) << spacing
        };
        let low = below << spacing;
        self.ask_for(low, high);
        (low, high)
    }

    /// Prefetches slots, and where their records are if records lie in order.
    #[inline]
    fn ask_for(&self, low: usize, high: usize) {
        const LINE: usize = 64;
        let base: *const u8 = self.words.as_ptr().cast();
        // Mostly sixteen slots: two lines, or three.
        let slots = base.wrapping_add(low * 8);
        prefetch(slots);
        prefetch(slots.wrapping_add(LINE));
        prefetch(slots.wrapping_add(2 * LINE));
        // Ordering: Relaxed, see the head of `raw`.
        let live = self.leaf.head().live.load(Relaxed) as u32;
        let each = live / (self.count as u32).max(1);
        let end = self.words.len() * 8;
        let from = end.saturating_sub(high * each as usize);
        let records = base.wrapping_add(from);
        prefetch(records);
        prefetch(records.wrapping_add(LINE));
        prefetch(records.wrapping_add(2 * LINE));
    }

    /// How entry `i` compares to prefix + `suffix`.
    fn compare_at(&self, i: usize, suffix: &[u8]) -> Result<Ordering, Torn> {
        let slot = self.slot(i)?;
        match (slot & HEAD_MASK).cmp(&head_of(suffix)) {
            Ordering::Equal => self.compare(slot, suffix),
            unequal => Ok(unequal),
        }
    }

    /// Whether prefix + `suffix` is not there and would come right before entry `i`.
    pub(super) fn belongs_at(&self, i: usize, suffix: &[u8]) -> Result<bool, Torn> {
        let above = match i.checked_sub(1) {
            Some(below) => self.compare_at(below, suffix)? == Ordering::Less,
            None => true,
        };
        Ok(above && (i == self.count || self.compare_at(i, suffix)? == Ordering::Greater))
    }

    /// How the entry compares to prefix + `suffix`, when their heads are equal.
    #[inline]
    fn compare(&self, slot: u64, suffix: &[u8]) -> Result<Ordering, Torn> {
        match self.record(slot)? {
            Record::Inline {
                suffix: len,
                rest_at,
                ..
            } => {
                if len > 5 && suffix.len() > 5 {
                    words::compare(self.words, rest_at, len - 5, &suffix[5..])
                } else {
                    // Equal heads, padded with zeros: the shorter is a prefix of the other.
                    Ok(len.cmp(&suffix.len()))
                }
            }
            Record::Outside(handle) => {
                let position = self.object(handle)?.position();
                let own = position.get(self.leaf.prefix_len()..).ok_or(Torn)?;
                Ok(own.cmp(suffix))
            }
        }
    }

    /// What of a beginning of positions is behind the leaf's prefix; None if no position of the leaf begins so.
    #[inline]
    pub(crate) fn behind_prefix<'b>(&self, beginning: &'b [u8]) -> Option<&'b [u8]> {
        let prefix = self.leaf.prefix();
        let common = beginning.len().min(prefix.len());
        (beginning[..common] == prefix[..common]).then(|| &beginning[common..])
    }

    /// Whether the position of entry `i` begins so, behind the leaf's prefix.
    #[inline]
    pub(crate) fn begins_with(&self, i: usize, sought: &[u8]) -> Result<bool, Torn> {
        let slot = self.slot(i)?;
        let in_head = sought.len().min(5);
        // Heads are padded with zeros: whether a zero is one of the position's is seen below.
        if slot.to_be_bytes()[..in_head] != sought[..in_head] {
            return Ok(false);
        }
        match self.record(slot)? {
            Record::Inline { suffix, .. } if suffix < sought.len() => Ok(false),
            Record::Inline { rest_at, .. } if sought.len() > 5 => {
                let order = words::compare(self.words, rest_at, sought.len() - 5, &sought[5..])?;
                Ok(order == Ordering::Equal)
            }
            Record::Inline { .. } => Ok(true),
            Record::Outside(handle) => {
                let own = self.object(handle)?.position();
                let own = own.get(self.leaf.prefix_len()..).ok_or(Torn)?;
                Ok(own.starts_with(sought))
            }
        }
    }

    /// As `search`, for any position: also one that does not begin with the leaf's prefix.
    pub(crate) fn search_any(&self, position: &[u8]) -> Result<(usize, bool), Torn> {
        let prefix = self.leaf.prefix();
        let common = position.len().min(prefix.len());
        match position[..common].cmp(&prefix[..common]) {
            Ordering::Less => Ok((0, false)),
            Ordering::Greater => Ok((self.count, false)),
            Ordering::Equal if common < prefix.len() => Ok((0, false)),
            Ordering::Equal => self.search(&position[common..]),
        }
    }

    /// Appends the value of entry `i` to `out`. If the entry is outside the copy is made after a check, of what can't change.
    #[inline]
    pub(crate) fn copy_value(&self, i: usize, out: &mut Vec<u8>) -> Result<(), Torn> {
        let slot = self.slot(i)?;
        match self.record(slot)? {
            Record::Inline {
                value_at, value, ..
            } => words::copy_out(self.words, value_at, value, out),
            Record::Outside(handle) => {
                out.extend_from_slice(self.object(handle)?.value());
                Ok(())
            }
        }
    }

    /// Copies the value of entry `i` to the front of `out`, if it has room there, and gives its length.
    #[inline]
    pub(crate) fn copy_short(
        &self,
        i: usize,
        out: &mut [u8; SHORT],
    ) -> Result<Option<usize>, Torn> {
        let slot = self.slot(i)?;
        match self.record(slot)? {
            Record::Inline {
                value_at, value, ..
            } => {
                if value > SHORT {
                    return Ok(None);
                }
                words::copy_short(self.words, value_at, value, out)?;
                Ok(Some(value))
            }
            Record::Outside(handle) => {
                let value = self.object(handle)?.value();
                let Some(to) = out.get_mut(..value.len()) else {
                    return Ok(None);
                };
                to.copy_from_slice(value);
                Ok(Some(value.len()))
            }
        }
    }

    /// The handle of entry `i`, if it is outside.
    pub(crate) fn handle(&self, i: usize) -> Result<Option<Handle>, Torn> {
        match self.record(self.slot(i)?)? {
            Record::Inline { .. } => Ok(None),
            Record::Outside(handle) => Ok(Some(handle)),
        }
    }

    /// Appends entry `i` to the run: outside objects as handles.
    #[inline]
    pub(crate) fn collect(&self, i: usize, run: &mut Run) -> Result<(), Torn> {
        let from = run.bytes.len();
        let (middle, handle) = self.copy_entry(i, &mut run.bytes)?;
        run.end_entry(from, middle, handle);
        Ok(())
    }

    /// Appends position and value of entry `i`; of an outside object the position alone, and gives its handle. Where the value begins.
    #[inline]
    fn copy_entry(&self, i: usize, bytes: &mut Vec<u8>) -> Result<(usize, Option<Handle>), Torn> {
        let slot = self.slot(i)?;
        match self.record(slot)? {
            Record::Inline {
                suffix,
                rest_at,
                value_at,
                value,
            } => {
                let prefix = self.leaf.prefix();
                bytes.reserve(prefix.len() + 8);
                bytes.extend_from_slice(prefix);
                let head = bytes.len();
                bytes.extend_from_slice(&slot.to_be_bytes());
                bytes.truncate(head + suffix.min(5));
                // The rest of the position and the value are neighbours.
                let rest = value_at - rest_at;
                words::copy_out(self.words, rest_at, rest + value, bytes)?;
                Ok((bytes.len() - value, None))
            }
            Record::Outside(handle) => {
                bytes.extend_from_slice(self.object(handle)?.position());
                Ok((bytes.len(), Some(handle)))
            }
        }
    }

    /// Writes the record of entry `i` once more. Gives its head.
    #[inline]
    pub(super) fn copy_record(
        &self,
        i: usize,
        writer: &mut words::Writer<'_>,
    ) -> Result<u64, Torn> {
        let slot = self.slot(i)?;
        let at = (slot & !HEAD_MASK) as usize;
        let len = match self.record(slot)? {
            Record::Inline {
                value_at, value, ..
            } => value_at + value - at,
            Record::Outside(_) => super::leaf::HANDLE_RECORD,
        };
        writer.copy(self.words, at, len)?;
        Ok(slot & HEAD_MASK)
    }

    /// Makes entry `i` the first of the batch.
    #[inline]
    pub(crate) fn only(&self, i: usize, batch: &mut Batch) -> Result<(), Torn> {
        let (middle, handle) = self.copy_entry(i, &mut batch.bytes)?;
        if let Some(handle) = handle {
            batch.bytes.extend_from_slice(self.object(handle)?.value());
        }
        let end = batch.bytes.len();
        batch.entries.push((0, middle as u32, end as u32));
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

    /// The value of entry `i`, in place.
    ///
    /// # Safety
    /// The caller holds the leaf's lock for `'v`, and writes nothing to the leaf in that time.
    pub(super) unsafe fn value_in_place<'v>(&self, i: usize) -> &'v [u8] {
        let record = self.slot(i).and_then(|slot| self.record(slot));
        match record.expect("the lock's holder reads no torn record") {
            Record::Inline {
                value_at, value, ..
            } => {
                let content: *const u8 = self.words.as_ptr().cast();
                assert!(value_at + value <= self.words.len() * 8);
                // SAFETY: 1. within the content, checked above; 2. nobody writes to it during `'v`, says the caller; other threads only load.
                unsafe { std::slice::from_raw_parts(content.add(value_at), value) }
            }
            // SAFETY: the handle is in a locked leaf, so its object is alive while the lock is held.
            Record::Outside(handle) => unsafe { handle.object() }.value(),
        }
    }

    /// Bytes of the record of entry `i`.
    pub(super) fn record_len(&self, i: usize) -> usize {
        match self.slot(i).and_then(|slot| self.record(slot)) {
            Ok(Record::Inline { suffix, value, .. }) => super::leaf::record_size(suffix, value),
            Ok(Record::Outside(_)) => super::leaf::HANDLE_RECORD,
            Err(Torn) => 0,
        }
    }
}
