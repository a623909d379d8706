//! Operations of the holder of a leaf's lock.
//!
//! ```text
//!  content   slot 0 | slot 1 | … | slot n-1 →   free   | record | (no entry's) | record
//!                                                      ↑ heap                          ↑ capacity
//! ```
//!
//! Invariants, whenever the lock isn't held:
//! * **B11** Each of the slots `0..count` points to a record at or above `heap`. They are in the
//!   order of positions (B3).
//! * **B12** `live` is the total length of the records that slots point to. Bytes between two of
//!   them belong to the place of the first: its record may grow into them. All of them are reused
//!   after the records have been compacted (`compact`).
//! * **B13** Sample `i` is the upper half of slot `(i + 1) << spacing`, if there is such a slot.
//!
//! A change writes a record to free bytes, shifts slots, and stores a slot that points to the
//! record. A concurrent reader may see any mixture of old and new words. It fails to validate,
//! because the unlock stores a new version. So the order of these stores doesn't matter. But every
//! function that stores to the content must call `change`.

use crate::btree::copies::EntryCopies;
use crate::btree::entries::Entries;
use crate::btree::insert_run::InsertRun;
use crate::btree::leaf::{LockedTreeLeaf, TreeLeaf};
use crate::btree::record::{
    short_record, write_record, Record, StoredValue, HANDLE_RECORD, MOST_INLINE, SLOT,
};
use crate::btree::search_key::{SearchKey, MARK_MASK, OFFSET_MASK};
use crate::btree::view::{SearchResult, TreeView};
use crate::contention::CONTENTION_BOUND;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::{self, little, Torn, Writer};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

/// If a leaf has at most this number of entries, it is worth while to look for the next record.
/// With more, compacting the leaf now and then takes less time.
const FEW: usize = 64;

/// The slot for the next entry of a run of inserts.
pub(crate) struct AppendSlot {
    head: u64,
    /// The length of the position.
    suffix: usize,
    /// Where its record begins.
    record_offset: usize,
}

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and readers validate the
// version (see `seqlock`).

impl<'g> LockedTreeLeaf<'g> {
    /// The leaf.
    pub(crate) fn leaf(&self) -> TreeLeaf<'g> {
        self.leaf
    }

    /// A view that needs no validation.
    pub(crate) fn view(&self) -> TreeView<'g> {
        TreeView::new(self.leaf, None)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().count.load(Relaxed) as usize
    }

    fn heap(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().heap.load(Relaxed) as usize
    }

    /// Bytes of the records in use.
    fn record_bytes(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().live.load(Relaxed) as usize
    }

    /// Bytes of content in use: slots and records.
    pub(crate) fn live_bytes(&self) -> usize {
        self.len() * SLOT + self.record_bytes()
    }

    fn set_head(&mut self, count: usize, heap: usize, live: usize) {
        let head = self.leaf.head();
        self.change();
        // Ordering: Relaxed, see above.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, see above.
        head.heap.store(heap as u64, Relaxed);
        // Ordering: Relaxed, see above.
        head.live.store(live as u64, Relaxed);
    }

    /// Finds the slot of a position of the leaf's range, or where it would be inserted. If inserts
    /// run on, looks beside the last insert first.
    #[inline]
    pub(crate) fn search(&self, key: SearchKey<'_>) -> SearchResult {
        // A position that doesn't begin with the prefix is before all entries, or after all of
        // them.
        let edge = match self.leaf.beside_prefix(key) {
            Ordering::Equal => None,
            Ordering::Less => Some(0),
            Ordering::Greater => Some(self.len()),
        };
        if let Some(i) = edge {
            return SearchResult { i, record: None };
        }
        // In a run of inserts the slot is beside the last insert. Two comparisons confirm that.
        // Otherwise search the leaf.
        let prefix = self.leaf.prefix_len();
        let (head, suffix) = (key.head(prefix), key.suffix(prefix).unwrap_or(&[]));
        match self.beside_last(head, suffix) {
            Some(i) => SearchResult { i, record: None },
            None => {
                let spot = self.view().search(head, suffix);
                spot.expect("the lock's holder reads nothing torn")
            }
        }
    }

    /// The slot for a position that isn't in the leaf, if it is beside the last insert of a run.
    #[inline]
    fn beside_last(&self, head: u64, suffix: &[u8]) -> Option<usize> {
        let run = self.insert_run();
        if run.length() == 0 {
            return None;
        }
        // In an ascending run the next slot is after the last insert, in a descending run it is
        // the slot of the last insert.
        let i = run.last_slot() + usize::from(!run.descends());
        // The recorded slot has only 15 bits and doesn't follow removals. So it is a guess, which
        // is verified here.
        let belongs = i <= self.len() && self.view().belongs_at(i, head, suffix).is_ok_and(|b| b);
        belongs.then_some(i)
    }

    /// Whether the leaf has entries, and the position is above all of them.
    #[inline]
    pub(crate) fn is_all_below(&self, key: SearchKey<'_>) -> bool {
        let beside = self.leaf.beside_prefix(key);
        if beside != Ordering::Equal {
            return beside == Ordering::Greater && self.len() > 0;
        }
        let (n, prefix) = (self.len(), self.leaf.prefix_len());
        let (head, suffix) = (key.head(prefix), key.suffix(prefix).unwrap_or(&[]));
        n > 0 && self.view().belongs_at(n, head, suffix).is_ok_and(|b| b)
    }

    /// The slot for a short entry, with a value of `value` bytes, if it continues a run of inserts
    /// at the end of the leaf and there is room. `None` otherwise; the general path then decides.
    #[inline]
    pub(crate) fn append_slot(&self, key: SearchKey<'_>, value: usize) -> Option<AppendSlot> {
        let (head, n) = (self.leaf.head(), self.len());
        let (words, samples) = (self.leaf.words(), self.leaf.samples());
        // Whether the last insert was at the end, and a run is going on that doesn't descend.
        let run = self.insert_run();
        let run_continues = run.last_slot() + 1 == n && run.ascends();
        // Whether the slot's head has the whole position, and the record is one word.
        let short = key.bytes().len() <= 5 && value <= 6 && self.leaf.prefix_len() == 0;
        // Ordering: Relaxed, both, see above.
        let (spacing, last) = (head.spacing.load(Relaxed), words.get(n.wrapping_sub(1))?);
        // Ordering: Relaxed, see above.
        let (new_slot_head, last) = (key.head(0), last.load(Relaxed));
        // Check that there is room for the slot and the record: the record must begin at or above
        // the new end of the slots.
        let record_offset = self.heap().checked_sub((n + 1) * SLOT + value + 2)? + (n + 1) * SLOT;
        (run_continues && short && last < new_slot_head && n >> spacing <= samples.len()).then_some(
            AppendSlot {
                head: new_slot_head,
                suffix: key.bytes().len(),
                record_offset,
            },
        )
    }

    /// Inserts an entry at the slot that `append_slot` has returned for it.
    #[inline]
    pub(crate) fn append(&mut self, next: AppendSlot, value: &[u8]) {
        let (head, n, slot) = (
            self.leaf.head(),
            self.len(),
            next.head | next.record_offset as u64,
        );
        let (words, size) = (self.leaf.words(), value.len() + 2);
        self.change();
        let mut writer = Writer::new(words, next.record_offset);
        // Write the record, two bytes of lengths and at most six of the value, as one word.
        let lengths = (next.suffix | value.len() << 8) as u64;
        writer.push(lengths | little(value) << 16, size);
        writer.finish();
        // Ordering: Relaxed, see above.
        words[n].store(slot, Relaxed);
        self.set_head(n + 1, next.record_offset, self.record_bytes() + size);
        // Update the sample, if slot `n` has one (B13). `append_slot` has checked that the spacing
        // needs no change.
        // Ordering: Relaxed, see above.
        let spacing = head.spacing.load(Relaxed);
        if n % (1 << spacing) == 0 {
            let sample = (n >> spacing).checked_sub(1);
            if let Some(sample) = sample.and_then(|i| self.leaf.samples().get(i)) {
                // Ordering: Relaxed, see above.
                sample.store((slot >> 32) as u32, Relaxed);
            }
        }
        self.record_insert(n);
    }

    /// The value of entry `i`, which has this record, in place.
    #[inline]
    pub(crate) fn value(&self, i: usize, record: &Record) -> &[u8] {
        if record.is_outside() {
            let handle = self.handle(&self.record_of(i));
            return handle.map_or(&[], |handle| self.outside(handle).value());
        }
        &self.content()[record.value_at()..][..record.value()]
    }

    /// The handle of a record, if its object is outside.
    #[inline]
    pub(crate) fn handle(&self, record: &Record) -> Option<Handle> {
        if !record.is_outside() {
            return None;
        }
        let handle = self.view().handle_of(record);
        handle.expect("the lock's holder reads nothing torn")
    }

    /// The record of entry `i`.
    #[inline]
    pub(crate) fn record_of(&self, i: usize) -> Record {
        let record = self.view().record_of(i);
        record.expect("the lock's holder reads nothing torn")
    }

    /// The outside object of a handle that was read from this leaf.
    pub(super) fn outside(&self, handle: Handle) -> Outside<'_> {
        let object = self.view().object(handle);
        object.expect("the lock's holder reads nothing torn")
    }

    /// Inserts an entry at the position prefix + `suffix` before slot `i`. `head` is the head of
    /// the suffix. Returns `false`, and changes nothing, if there is no room.
    #[inline]
    pub(crate) fn put_entry(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: StoredValue<'_>,
    ) -> bool {
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        // The record is put below the others. It must not overlap the slots, which are one more.
        if (n + 1) * SLOT + size > heap {
            return false;
        }
        // From here on a reader may see any of the stores, and fails to validate.
        self.change();
        // Shift the slots from `i` on by one. Slot `n` is free.
        let slots = &self.leaf.words()[i..=n];
        shift_up(slots);
        self.write(i, head, suffix, stored, heap - size);
        self.set_head(n + 1, heap - size, self.record_bytes() + size);
        self.update_samples(i);
        true
    }

    /// Sets the head and the samples of an empty leaf whose content has been written.
    pub(super) fn finish_content(&mut self, count: usize, heap: usize, live: usize) {
        self.set_head(count, heap, live);
        self.update_samples(0);
    }

    /// Updates the samples after the slots from `i` on have changed.
    fn update_samples(&mut self, i: usize) {
        let (head, n) = (self.leaf.head(), self.len());
        let samples = self.leaf.samples();
        // Ordering: Relaxed, see above.
        let mut spacing = head.spacing.load(Relaxed);
        // The first sample whose slot is `i` or a later one.
        let mut first = i.saturating_sub(1) >> spacing;
        // If the samples don't reach the last slots, double the spacing until they do, and take all
        // samples again. The spacing never shrinks in the life of a leaf.
        if n.saturating_sub(1) >> spacing > samples.len() && !samples.is_empty() {
            while (n - 1) >> spacing > samples.len() {
                spacing += 1;
            }
            first = 0;
            // Ordering: Relaxed, see above.
            head.spacing.store(spacing, Relaxed);
        }
        // Samples of slots after the last one are not read by anybody.
        let last = (n.saturating_sub(1) >> spacing).min(samples.len());
        if first >= last {
            return;
        }
        let (slots, mut at) = (self.leaf.words(), (first + 1) << spacing);
        for sample in &samples[first..last] {
            // Ordering: Relaxed, both, see above.
            sample.store((slots[at].load(Relaxed) >> 32) as u32, Relaxed);
            at += 1 << spacing;
        }
    }

    /// Overwrites the bytes of a value from `at` on. The value is in this record. A concurrent
    /// reader may see both old and new bytes, and fails to validate.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, record: &Record, at: usize, bytes: &[u8]) {
        debug_assert!(!record.is_outside() && at + bytes.len() <= record.value());
        self.change();
        let (words, at) = (self.leaf.words(), record.value_at() + at);
        let is_short = bytes.len() <= 8;
        if is_short && words::write_word(words, at, little(bytes), bytes.len()) {
            return;
        }
        let mut writer = Writer::new(words, at);
        writer.bytes(bytes);
        writer.finish();
    }

    /// Replaces the handle of a record whose object is outside, and returns the old one. The caller
    /// retires that after it has unlocked the leaf.
    pub(crate) fn set_handle(&mut self, record: &Record, handle: Handle) -> Option<Handle> {
        let old = self.handle(record);
        self.change();
        let mut writer = Writer::new(self.leaf.words(), record.rest_at());
        writer.bytes(&handle.bits().to_le_bytes());
        writer.finish();
        old
    }

    /// Replaces the value of entry `i`, which has the record `old`. Returns `false`, and changes
    /// nothing, if there is no room. The caller retires the old outside object, if there is one.
    #[inline]
    pub(crate) fn replace_value(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: StoredValue<'_>,
        old: &Record,
    ) -> bool {
        if let StoredValue::Inline(new) = stored {
            // Nearly all updates keep the length.
            if old.value() == new.len() && !old.is_outside() {
                // The slot and the rest of the record stay.
                self.overwrite(old, 0, new);
                return true;
            }
        }
        self.replace_record(i, head, suffix, stored, old)
    }

    /// The same, if the lengths of the values differ, or one of the objects is outside.
    #[inline(never)]
    fn replace_record(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: StoredValue<'_>,
        old: &Record,
    ) -> bool {
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        // Ordering: Relaxed, see above.
        let slot = self.leaf.words()[i].load(Relaxed);
        // The entry keeps its mark.
        let (head, at) = (head | slot & MARK_MASK, (slot & OFFSET_MASK) as usize);
        let live = self.record_bytes() + size - old.len();
        // If it fits in the place of the old record, it is written there. The bytes that a shorter
        // record leaves belong to no entry, and are here again if the value grows.
        let fits = size <= old.len() || n <= FEW && size <= self.end_of_place(at, n) - at;
        let (at, heap) = match fits {
            true => (at, heap),
            // Otherwise below the other records, and the slot then points there. The bytes of the
            // old record are wasted until the leaf is compacted (B12).
            false if n * SLOT + size <= heap => (heap - size, heap - size),
            // It would overlap the slots. Nothing has been changed.
            false => return false,
        };
        self.change();
        self.write(i, head, suffix, stored, at);
        self.set_head(n, heap, live);
        true
    }

    /// Where the place of the record at the offset `at` ends: where the next record begins. `n` is
    /// the number of entries, in which it is linear.
    #[inline]
    fn end_of_place(&self, at: usize, n: usize) -> usize {
        // Without branches, since the records are in no order: the distance from `at` to a record
        // before it is huge.
        let distance = |slot: &AtomicU64| {
            // Ordering: Relaxed, see above.
            ((slot.load(Relaxed) & OFFSET_MASK) as usize).wrapping_sub(at + 1)
        };
        let none = self.leaf.capacity() - at - 1;
        let slots = self.leaf.words()[..n].iter();
        at + 1 + slots.map(distance).fold(none, usize::min)
    }

    /// Writes a record at `record_offset`, and the slot `i` that points to it.
    #[inline]
    fn write(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: StoredValue<'_>,
        record_offset: usize,
    ) {
        let words = self.leaf.words();
        // A short record is put together in registers, and written without a branch.
        let is_written = short_record(suffix, stored)
            .is_some_and(|(bytes, len)| words::write_short(words, record_offset, bytes, len));
        if !is_written {
            let mut writer = Writer::new(words, record_offset);
            write_record(&mut writer, suffix, stored);
            writer.finish();
        }
        // Ordering: Relaxed, see above.
        words[i].store(head | record_offset as u64, Relaxed);
    }

    /// Removes entry `i`, which has this record. The caller retires its outside object, if it has
    /// one.
    pub(crate) fn remove(&mut self, i: usize, record: &Record) {
        // Shift the slots after it down by one. The last slot keeps its word, which is no longer
        // counted.
        let n = self.len();
        self.change();
        shift_down(&self.leaf.words()[i..n]);
        // The bytes of the record are wasted until the leaf is compacted. If this was the last
        // entry, all of the leaf is free again.
        let heap = if n == 1 {
            self.leaf.capacity()
        } else {
            self.heap()
        };
        self.set_head(n - 1, heap, self.record_bytes() - record.len());
        self.update_samples(i);
    }

    /// Removes all entries. The caller retires their outside objects.
    pub(crate) fn clear(&mut self) {
        self.set_head(0, self.leaf.capacity(), 0);
    }

    /// Compacts the records, so that all free bytes are contiguous. `entries` and `buffer` are
    /// scratch space.
    #[inline(never)]
    pub(crate) fn compact(&mut self, entries: &mut Entries, buffer: &mut Vec<u8>) {
        // Lay out the content in the buffer, as for a new leaf.
        entries.collect(self);
        buffer.clear();
        buffer.resize(self.leaf.capacity(), 0);
        let prefix = self.leaf.prefix_len();
        let (n, heap) = (
            entries.len(),
            entries.lay_out(self, 0..entries.len(), prefix, buffer),
        );
        self.change();
        let words = self
            .leaf
            .words()
            .iter()
            .zip(buffer.chunks_exact(SLOT))
            .enumerate();
        // Write it back, except the words between slots and records that are free as a whole.
        for (i, (word, slot)) in words {
            if i < n || (i + 1) * SLOT > heap {
                let slot: [u8; SLOT] = slot.try_into().unwrap_or_default();
                // Ordering: Relaxed, see above.
                word.store(u64::from_ne_bytes(slot), Relaxed);
            }
        }
        self.set_head(n, heap, self.leaf.capacity() - heap);
    }

    /// Appends all entries to the copies. Outside objects are added as their handles, which the
    /// successor of this leaf takes over.
    pub(crate) fn collect_all(&self, copies: &mut EntryCopies) {
        let view = self.view();
        for i in 0..view.len() {
            let done: Result<(), Torn> = view.collect(i, copies);
            done.expect("the lock's holder reads nothing torn");
        }
    }

    /// Adds to the contention counter, and returns the new value. The counter is clamped to its
    /// bounds.
    pub(crate) fn add_contention(&mut self, add: i32) -> i32 {
        let statistics = &self.leaf.head().statistics;
        // Ordering: Relaxed, see above.
        let now = statistics.load(Relaxed);
        let sum = (now as u32 as i32 + add).clamp(-CONTENTION_BOUND, CONTENTION_BOUND);
        // Ordering: Relaxed, see above.
        statistics.store(now & !0xFFFF_FFFF | u64::from(sum as u32), Relaxed);
        sum
    }

    /// Records that an insert went to slot `i`. Returns the length of the run that it belongs to:
    /// the number of inserts that each went beside the one before, on the same side.
    pub(crate) fn record_insert(&mut self, i: usize) -> usize {
        let run = self.insert_run().after(i);
        // Ordering: Relaxed, see above.
        self.leaf.head().statistics.store(run.into_bits(), Relaxed);
        run.length()
    }

    /// The run of inserts that the leaf has recorded.
    #[inline]
    fn insert_run(&self) -> InsertRun {
        // Ordering: Relaxed, see above.
        InsertRun::of(self.leaf.head().statistics.load(Relaxed))
    }

    /// Whether an ascending run of inserts is going on at the end of the leaf.
    pub(super) fn appends(&self) -> bool {
        let run = self.insert_run();
        run.ascends() && run.last_slot() + 1 >= self.len()
    }

    /// Whether the recorded run of inserts descends.
    pub(crate) fn descends(&self) -> bool {
        self.insert_run().descends()
    }
}

/// Moves all slots except the last one up by one.
#[inline]
fn shift_up(slots: &[AtomicU64]) {
    let Some(nine) = slots.first_chunk::<9>() else {
        up_by::<1>(slots);
        return;
    };
    // The first eight are read before anything is written, and written last. So it takes no branch
    // how many are left of fewer than eight. The others of the eight are written twice.
    let ([first @ .., _], [_, to @ ..]) = (nine, nine);
    let moved = load(first);
    up_by::<8>(slots);
    store(to, moved);
}

/// Moves slots up by one, `N` at a time from the end on. Fewer than `N` are left at the beginning.
#[inline]
fn up_by<const N: usize>(slots: &[AtomicU64]) {
    // Start at the end, so that each slot is read before it is overwritten.
    let mut left = slots;
    while let [before @ .., _] = left {
        let (Some(from), Some(to)) = (before.last_chunk::<N>(), left.last_chunk::<N>()) else {
            break;
        };
        copy(from, to);
        left = &left[..left.len() - N];
    }
}

/// Moves all slots except the first one down by one.
#[inline]
fn shift_down(slots: &[AtomicU64]) {
    let Some(nine) = slots.last_chunk::<9>() else {
        down_by::<1>(slots);
        return;
    };
    // As in `shift_up`, with the last eight.
    let ([_, last @ ..], [to @ .., _]) = (nine, nine);
    let moved = load(last);
    down_by::<8>(slots);
    store(to, moved);
}

/// Moves slots down by one, `N` at a time. Fewer than `N` are left at the end.
#[inline]
fn down_by<const N: usize>(slots: &[AtomicU64]) {
    // Start at the beginning, so that each slot is read before it is overwritten.
    let mut left = slots;
    while let [_, after @ ..] = left {
        let (Some(from), Some(to)) = (after.first_chunk::<N>(), left.first_chunk::<N>()) else {
            break;
        };
        copy(from, to);
        left = &left[N..];
    }
}

/// Copies slots. The two ranges may overlap.
#[inline]
fn copy<const N: usize>(from: &[AtomicU64; N], to: &[AtomicU64; N]) {
    // Read all slots before the first one is written.
    store(to, load(from));
}

#[inline]
fn load<const N: usize>(slots: &[AtomicU64; N]) -> [u64; N] {
    // Ordering: Relaxed, all, see above.
    slots.each_ref().map(|slot| slot.load(Relaxed))
}

#[inline]
fn store<const N: usize>(slots: &[AtomicU64; N], contents: [u64; N]) {
    for (slot, contents) in slots.iter().zip(contents) {
        // Ordering: Relaxed, see above.
        slot.store(contents, Relaxed);
    }
}

/// Whether the object of an entry must be outside, if leaves have at most `most` bytes.
pub(crate) fn lives_outside(suffix: usize, value: usize, most: usize) -> bool {
    let bound = (most / 8).clamp(HANDLE_RECORD, MOST_INLINE);
    suffix > MOST_INLINE || value > MOST_INLINE || suffix + value > bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::BPlusTree;
    use crate::{pin, LeafConfig};

    /// Values whose lengths vary stay in their places, so that the leaf isn't compacted again and
    /// again.
    #[test]
    fn a_record_that_grows_again_stays_in_its_place() {
        let (tree, guard) = (BPlusTree::new(LeafConfig::default()), pin());
        let keys: Vec<_> = (0..8u32).map(u32::to_be_bytes).collect();
        let put = |key, len: usize| {
            tree.put(&guard, key, &vec![len as u8; len], &mut |_| true);
        };
        let head = || {
            let found = tree.inner.find(SearchKey::new(&keys[0]), &guard).lock();
            let leaf = found
                .ok()
                .map(|found| found.0)
                .expect("no leaf is replaced");
            (leaf.heap(), leaf.record_bytes())
        };
        keys.iter().for_each(|key| put(key, 200));
        let (heap, live) = head();
        for len in [199, 130, 200, 3, 90, 200] {
            for (i, key) in keys.iter().enumerate() {
                put(key, len);
                let mut value = Vec::new();
                assert!(tree.get(&guard, key, &mut value));
                assert_eq!(value, vec![len as u8; len]);
                // Another one is as it was.
                value.clear();
                assert!(tree.get(&guard, &keys[(i + 1) % 8], &mut value));
                assert!(value.iter().all(|byte| usize::from(*byte) == value.len()));
            }
            assert_eq!(head().0, heap, "{len}");
        }
        assert_eq!(head(), (heap, live));
        // One that is longer than ever gets another place. The record before it grows into its old
        // one.
        put(&keys[3], 210);
        assert_eq!(head().0, heap - 213);
        put(&keys[4], 400);
        assert_eq!(head(), (heap - 213, live + 210));
    }
}
