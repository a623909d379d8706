//! What the holder of a leaf's lock may do.
//!
//! ```text
//!  content   slot 0 | slot 1 | … | slot n-1 →   free   | record | (no entry's) | record
//!                                                      ↑ heap                          ↑ capacity
//! ```
//!
//! Invariants, whenever the lock isn't held:
//! 1. Slots `0..count` lie in the order of positions, and each names a record at or above `heap`.
//! 2. `live` is the sum of the records that slots name. The others' bytes are free again when all
//!    records are moved together (`compact`).
//! 3. Sample `i` is the upper half of slot `(i + 1) << spacing`, as far as there is such a slot.
//!
//! A change writes a record to free bytes, moves slots, and stores one that leads to the record. A
//! reader may see any mixture of old and new, in any order: its check fails, because the unlock
//! makes a new version. So these stores need no order. What they need is that each function that
//! stores to the content sets `changed`.

use crate::btree::entries::Entries;
use crate::btree::leaf::{LockedTreeLeaf, TreeLeaf};
use crate::btree::record::{write_record, Record, Stored, HANDLE_RECORD, MOST_INLINE, SLOT};
use crate::btree::run::Run;
use crate::btree::search_key::{SearchKey, PLACE_BITS};
use crate::btree::view::{SearchResult, TreeView};
use crate::contention::CONTENTION_BOUND;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::{little, Torn, Writer};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

/// Where the next entry of a run of inserts goes.
pub(crate) struct AppendSlot {
    head: u64,
    /// Bytes of the position.
    suffix: usize,
    /// Where its record begins.
    place: usize,
}

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and the version tells
// readers (see `seqlock`).

impl<'g> LockedTreeLeaf<'g> {
    /// The leaf.
    pub(crate) fn leaf(&self) -> TreeLeaf<'g> {
        self.leaf
    }

    /// A view that needs no check.
    pub(crate) fn view(&self) -> TreeView<'g> {
        TreeView::new(self.leaf, None)
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().count.load(Relaxed) as usize
    }

    fn heap(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().heap.load(Relaxed) as usize
    }

    /// Bytes of the records in use.
    fn live(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaf.head().live.load(Relaxed) as usize
    }

    /// Bytes of content in use: slots and records.
    pub(crate) fn used(&self) -> usize {
        self.len() * SLOT + self.live()
    }

    fn set(&mut self, count: usize, heap: usize, live: usize) {
        let head = self.leaf.head();
        self.changed = true;
        // Ordering: Relaxed, see above.
        head.count.store(count as u64, Relaxed);
        // Ordering: Relaxed, see above.
        head.heap.store(heap as u64, Relaxed);
        // Ordering: Relaxed, see above.
        head.live.store(live as u64, Relaxed);
    }

    /// Where a position of the leaf's range is or would be. Looks first beside the last insert, if
    /// it was one of a run.
    #[inline]
    pub(crate) fn search(&self, key: SearchKey<'_>) -> SearchResult {
        // A position that doesn't begin with the prefix is before all entries or behind all.
        let edge = match self.leaf.beside_prefix(key) {
            Ordering::Equal => None,
            Ordering::Less => Some(0),
            Ordering::Greater => Some(self.len()),
        };
        if let Some(i) = edge {
            return SearchResult { i, record: None };
        }
        // Where inserts run on, the place is beside the last one: two comparisons say so.
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

    /// Where a position would be, if it is beside the last insert of a run of them.
    #[inline]
    fn beside_last(&self, head: u64, suffix: &[u8]) -> Option<usize> {
        // Ordering: Relaxed, see above.
        let now = self.leaf.head().statistics.load(Relaxed);
        if now >> 32 & 0xFFFF == 0 {
            return None;
        }
        // Upwards the next place is behind the last insert's, downwards it is that place itself.
        let i = (now >> 49) as usize + usize::from(!self.descends());
        // The note is 15 bits and doesn't follow removals: it is a guess, which is checked here.
        let belongs = i <= self.len() && self.view().belongs_at(i, head, suffix).is_ok_and(|b| b);
        belongs.then_some(i)
    }

    /// Whether the leaf has entries, and the position is above all of theirs.
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

    /// Where a short entry with a value of so many bytes goes, if it is the next of a run of
    /// inserts at the end and there is room for it. None otherwise: then `put_entry` decides.
    #[inline(always)]
    pub(crate) fn append_slot(&self, key: SearchKey<'_>, value: usize) -> Option<AppendSlot> {
        let (head, n) = (self.leaf.head(), self.len());
        let (words, samples) = (self.leaf.words(), self.leaf.samples());
        // Ordering: Relaxed, see above.
        let statistics = head.statistics.load(Relaxed);
        // The last one went to the end, and the run doesn't descend: its bit is part of the number,
        // which is above any length when the bit is set.
        let runs = (statistics >> 49) as usize + 1 == n
            && (1..=0xFFFF).contains(&(statistics >> 32 & 0x1_FFFF));
        // Such a position lies in the slot's head as a whole, and the record is one word.
        let short = key.bytes().len() <= 5 && value <= 6 && self.leaf.prefix_len() == 0;
        // Ordering: Relaxed, both, see above.
        let (spacing, last) = (head.spacing.load(Relaxed), words.get(n.wrapping_sub(1))?);
        // Ordering: Relaxed, see above.
        let (own, last) = (key.head(0), last.load(Relaxed));
        // Room for the slot and the record: `place` is at or above the slots' new end.
        let place = self.heap().checked_sub((n + 1) * SLOT + value + 2)? + (n + 1) * SLOT;
        (runs && short && last < own && n >> spacing <= samples.len()).then_some(AppendSlot {
            head: own,
            suffix: key.bytes().len(),
            place,
        })
    }

    /// Inserts an entry that is the next of a run, with a value of as many bytes as was said.
    #[inline(always)]
    pub(crate) fn append(&mut self, next: AppendSlot, value: &[u8]) {
        let (head, n, slot) = (self.leaf.head(), self.len(), next.head | next.place as u64);
        let (words, size) = (self.leaf.words(), value.len() + 2);
        self.changed = true;
        let mut writer = Writer::new(words, next.place);
        // Two bytes of lengths and at most six of the value: one word, written at once.
        let lengths = (next.suffix | value.len() << 8) as u64;
        writer.push(lengths | little(value) << 16, size);
        writer.finish();
        // Ordering: Relaxed, see above.
        words[n].store(slot, Relaxed);
        self.set(n + 1, next.place, self.live() + size);
        // Invariant 3: slot `n` is new, and may be one that a sample is of. `append_slot` has asked
        // that the spacing needs no change.
        // Ordering: Relaxed, see above.
        let spacing = head.spacing.load(Relaxed);
        if n % (1 << spacing) == 0 {
            let sample = (n >> spacing).checked_sub(1);
            if let Some(sample) = sample.and_then(|i| self.leaf.samples().get(i)) {
                // Ordering: Relaxed, see above.
                sample.store((slot >> 32) as u32, Relaxed);
            }
        }
        self.note_insert(n);
    }

    /// The value of entry `i`, whose record a search has found, in place, while this borrow of the
    /// lock lasts.
    #[inline]
    pub(crate) fn value(&self, i: usize, record: &Record) -> &[u8] {
        if record.is_outside() {
            let handle = self.handle(&self.record_of(i));
            return handle.map_or(&[], |handle| self.outside(handle).value());
        }
        &self.content()[record.value_at()..][..record.value()]
    }

    /// The handle of a record that is in the leaf, if the object is outside.
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

    /// Inserts an entry, at prefix + `suffix`, whose head is given, before slot `i`. False, and
    /// nothing changed, if there is no room.
    #[inline]
    pub(crate) fn put_entry(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: Stored<'_>,
    ) -> bool {
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        // The record goes below the heap's top, and must not reach the slots with one more.
        if (n + 1) * SLOT + size > heap {
            return false;
        }
        self.changed = true;
        // Slot `n` is free: the last one moves there.
        let slots = &self.leaf.words()[i..=n];
        shift_up(slots);
        self.write(i, head, suffix, stored, heap - size);
        self.set(n + 1, heap - size, self.live() + size);
        self.sample(i);
        true
    }

    /// The leaf was empty, and has been filled.
    pub(super) fn filled(&mut self, count: usize, heap: usize, live: usize) {
        self.set(count, heap, live);
        self.sample(0);
    }

    /// Brings the samples up to date, after the slots from `i` on have moved.
    fn sample(&mut self, i: usize) {
        let (head, n) = (self.leaf.head(), self.len());
        let samples = self.leaf.samples();
        // Ordering: Relaxed, see above.
        let mut spacing = head.spacing.load(Relaxed);
        // The sample of slot `i` or of the first one behind it.
        let mut first = i.saturating_sub(1) >> spacing;
        // Too many slots for so many samples: the spacing doubles until there are enough, and all
        // samples are taken again. It never shrinks while the leaf lives.
        if n.saturating_sub(1) >> spacing > samples.len() && !samples.is_empty() {
            while (n - 1) >> spacing > samples.len() {
                spacing += 1;
            }
            first = 0;
            // Ordering: Relaxed, see above.
            head.spacing.store(spacing, Relaxed);
        }
        // Samples behind the last slot are of no slot: nobody looks at them.
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

    /// Replaces the value of entry `i`, which has this record. False, and nothing changed, if there
    /// is no room. The old handle, if any, is the caller's to retire.
    #[inline]
    pub(crate) fn replace_value(
        &mut self,
        i: usize,
        head: u64,
        suffix: &[u8],
        stored: Stored<'_>,
        old: &Record,
    ) -> bool {
        if let Stored::Inline(new) = stored {
            if old.value() == new.len() && !old.is_outside() {
                // The same room will do, and the rest of the record: a slot, lengths and suffix are
                // as they were. A reader may see it half overwritten; its check fails.
                self.changed = true;
                let mut writer = Writer::new(self.leaf.words(), old.value_at());
                writer.bytes(new);
                writer.finish();
                return true;
            }
        }
        // A value of another length, or an object that is outside now or was. A record of as many
        // bytes takes the old one's place.
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        if old.len() == size {
            // Ordering: Relaxed, see above.
            let slot = self.leaf.words()[i].load(Relaxed);
            let place = slot & ((1 << PLACE_BITS) - 1);
            self.changed = true;
            self.write(i, head, suffix, stored, place as usize);
            return true;
        }
        // Any other is written at the end of the free space. The slot leads to it, so the old bytes
        // are no entry's (invariant 2).
        if n * SLOT + size > heap {
            return false;
        }
        self.changed = true;
        self.write(i, head, suffix, stored, heap - size);
        self.set(n, heap - size, self.live() + size - old.len());
        true
    }

    #[inline]
    fn write(&mut self, i: usize, head: u64, suffix: &[u8], stored: Stored<'_>, place: usize) {
        let words = self.leaf.words();
        let mut writer = Writer::new(words, place);
        write_record(&mut writer, suffix, stored);
        writer.finish();
        // Ordering: Relaxed, see above.
        words[i].store(head | place as u64, Relaxed);
    }

    /// Removes entry `i`, which has this record. Its handle, if any, is the caller's to retire.
    pub(crate) fn remove(&mut self, i: usize, record: &Record) {
        // The last slot keeps what it had, and no longer counts.
        let n = self.len();
        self.changed = true;
        shift_down(&self.leaf.words()[i..n]);
        // The record's bytes stay, as no entry's. A leaf without entries has all its room again.
        let heap = if n == 1 {
            self.leaf.capacity()
        } else {
            self.heap()
        };
        self.set(n - 1, heap, self.live() - record.len());
        self.sample(i);
    }

    /// Removes all entries. Their handles are the caller's to retire.
    pub(crate) fn clear(&mut self) {
        self.set(0, self.leaf.capacity(), 0);
    }

    /// Moves all records together, so that all room is in one piece. `buffer` is for the content
    /// meanwhile.
    #[inline(never)]
    pub(crate) fn compact(&mut self, entries: &mut Entries, buffer: &mut Vec<u8>) {
        // The content is laid out anew beside, as for a new leaf.
        entries.collect(self);
        buffer.clear();
        buffer.resize(self.leaf.capacity(), 0);
        let prefix = self.leaf.prefix_len();
        let (n, heap) = (
            entries.len(),
            entries.lay_out(self, 0..entries.len(), prefix, buffer),
        );
        self.changed = true;
        let words = self
            .leaf
            .words()
            .iter()
            .zip(buffer.chunks_exact(SLOT))
            .enumerate();
        // Then it is written back, but for the free bytes between slots and records: a word is left
        // out only if no slot and no record has a byte of it.
        for (i, (word, own)) in words {
            if i < n || (i + 1) * SLOT > heap {
                let own: [u8; SLOT] = own.try_into().unwrap_or_default();
                // Ordering: Relaxed, see above.
                word.store(u64::from_ne_bytes(own), Relaxed);
            }
        }
        self.set(n, heap, self.leaf.capacity() - heap);
    }

    /// Appends all entries to the run, outside objects as handles.
    pub(crate) fn collect_all(&self, run: &mut Run) {
        let view = self.view();
        // Handles are copied, not objects: they go to the leaf that takes this one's place.
        for i in 0..view.len() {
            let done: Result<(), Torn> = view.collect(i, run);
            done.expect("the lock's holder reads nothing torn");
        }
    }

    /// Adds to the contention counter, within bounds, and returns it.
    pub(crate) fn add_contention(&mut self, add: i32) -> i32 {
        let statistics = &self.leaf.head().statistics;
        // Ordering: Relaxed, see above.
        let now = statistics.load(Relaxed);
        let sum = (now as u32 as i32 + add).clamp(-CONTENTION_BOUND, CONTENTION_BOUND);
        // Ordering: Relaxed, see above.
        statistics.store(now & !0xFFFF_FFFF | u64::from(sum as u32), Relaxed);
        sum
    }

    /// Notes that an insert went to slot `i`, and returns how many in a row went each beside the
    /// one before, on the same side.
    ///
    /// The note: 15 bits of where the last one went, a bit that is set when the run descends, 16
    /// bits of its length.
    pub(crate) fn note_insert(&mut self, i: usize) -> usize {
        const PLACE: u64 = 0x7FFF;
        let statistics = &self.leaf.head().statistics;
        // Ordering: Relaxed, see above.
        let now = statistics.load(Relaxed);
        let (last, run) = (now >> 49, (now >> 32 & 0xFFFF) as usize);
        let up = i as u64 & PLACE == (last + 1) & PLACE;
        let down = i as u64 & PLACE == last;
        // The side of a run is what its second insert says; from then on each must go on there.
        let run = match run {
            0 if up || down => 1,
            n if n > 0 && (if self.descends() { down } else { up }) => (n + 1).min(0xFFFF),
            _ => 0,
        };
        let descends = if run == 1 { down } else { self.descends() };
        let noted = (i as u64 & PLACE) << 49 | u64::from(descends) << 48 | (run as u64) << 32;
        // Ordering: Relaxed, see above.
        statistics.store(now & 0xFFFF_FFFF | noted, Relaxed);
        run
    }

    /// Whether inserts go up, at the end.
    pub(super) fn appends(&self) -> bool {
        // Ordering: Relaxed, see above.
        let now = self.leaf.head().statistics.load(Relaxed);
        now >> 32 & 0xFFFF > 0 && !self.descends() && (now >> 49) as usize + 1 >= self.len()
    }

    /// Whether the run of inserts that is being noted goes down.
    pub(crate) fn descends(&self) -> bool {
        // Ordering: Relaxed, see above.
        self.leaf.head().statistics.load(Relaxed) >> 48 & 1 == 1
    }
}

/// Moves all slots but the last one up, by one.
#[inline]
fn shift_up(slots: &[AtomicU64]) {
    up_by::<1>(up_by::<8>(slots));
}

/// Moves slots up as long as there are so many, which are moved at once. Gives those that are left.
#[inline(always)]
fn up_by<const N: usize>(slots: &[AtomicU64]) -> &[AtomicU64] {
    // From the end, so that each slot is read before another is written over it.
    let mut left = slots;
    while let [before @ .., _] = left {
        let (Some(from), Some(to)) = (before.last_chunk::<N>(), left.last_chunk::<N>()) else {
            break;
        };
        copy(from, to);
        left = &left[..left.len() - N];
    }
    left
}

/// Moves all slots but the first one down, by one.
#[inline]
fn shift_down(slots: &[AtomicU64]) {
    down_by::<1>(down_by::<8>(slots));
}

/// As `up_by`, the other way.
#[inline(always)]
fn down_by<const N: usize>(slots: &[AtomicU64]) -> &[AtomicU64] {
    // From the front, for the same reason.
    let mut left = slots;
    while let [_, after @ ..] = left {
        let (Some(from), Some(to)) = (after.first_chunk::<N>(), left.first_chunk::<N>()) else {
            break;
        };
        copy(from, to);
        left = &left[N..];
    }
    left
}

/// Copies slots, which may overlap.
#[inline(always)]
fn copy<const N: usize>(from: &[AtomicU64; N], to: &[AtomicU64; N]) {
    // All are read before the first is written.
    // Ordering: Relaxed, all, see above.
    let own = from.each_ref().map(|slot| slot.load(Relaxed));
    for (slot, own) in to.iter().zip(own) {
        // Ordering: Relaxed, see above.
        slot.store(own, Relaxed);
    }
}

/// Whether an entry must live outside, in leaves of at most `most` bytes.
pub(crate) fn lives_outside(suffix: usize, value: usize, most: usize) -> bool {
    let bound = (most / 8).clamp(HANDLE_RECORD, MOST_INLINE);
    suffix > MOST_INLINE || value > MOST_INLINE || suffix + value > bound
}
