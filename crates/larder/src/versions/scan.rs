//! Scans of a merged index.
//!
//! # Steps of a scan
//!
//! 1. Read a batch of the base, which covers the positions up to its `resume`.
//! 2. Read the overrides of those positions. If there are many, or many records that override
//!    nothing for this reader, end the batch after one of them.
//! 3. If there are no overrides, return the batch. Otherwise merge: entries of an overridden key
//!    are replaced by those of the override. No other entry is copied, or compared to find its
//!    place. An unordered batch stays unordered.
//! 4. If nothing is left, continue after the batch; or end with an empty batch, if the caller may
//!    pause and many entries were left out.

use super::merged::{MergeInput, Merged, Overrides};
use super::undo::Override;
use larder_index::{with_spare, Batch, BatchEntries, Direction, Guard, Start, Unique};
use std::cell::Cell;
use std::ops::Bound;

/// A batch ends when it has this number of overridden keys.
pub(super) const MOST: usize = 512;

/// A batch ends when this number of records was passed that override nothing for its reader, such
/// as those of keys that were deleted before its snapshot, for an older one.
pub(super) const MOST_PASSED: usize = 4096;

/// The number of overrides that are read together.
const MIN_BATCH: usize = 32;

/// Of a key that was not found yet: neither entries nor an insertion point.
const NOWHERE: Span = usize::MAX..usize::MAX;

/// A range of positions, in the direction of a scan.
#[derive(Clone, Copy)]
pub(super) struct ViewRange<'p> {
    start: Start<'p>,
    /// Where the scan continues, if it does: at this position forward, strictly before it backward.
    resume: Option<&'p [u8]>,
    pub(super) direction: Direction,
}

impl ViewRange<'_> {
    /// Whether the scan has reached a position.
    pub(super) fn has_begun(&self, position: &[u8]) -> bool {
        // Positions are compared as bytes, in the direction of the scan.
        match (self.start, self.direction) {
            (Start::Edge, _) => true,
            (Start::At(start), Direction::Forward) => position >= start,
            (Start::Past(start), Direction::Forward) => position > start,
            (Start::At(start), Direction::Backward) => position <= start,
            (Start::Past(start), Direction::Backward) => position < start,
        }
    }

    /// Whether a position is left to the batches that follow.
    pub(super) fn is_past_end(&self, position: &[u8]) -> bool {
        self.resume.is_some_and(|resume| match self.direction {
            Direction::Forward => position >= resume,
            Direction::Backward => position < resume,
        })
    }

    /// Whether the scan has reached a position with this prefix.
    pub(super) fn has_begun_prefix(&self, prefix: &[u8]) -> bool {
        match self.start {
            Start::At(start) | Start::Past(start) if start.starts_with(prefix) => true,
            _ => self.has_begun(prefix),
        }
    }

    /// Whether positions with this prefix may lie on both sides of an end of the range.
    pub(super) fn cuts(&self, prefix: &[u8]) -> bool {
        let cuts = |end: &[u8]| end.starts_with(prefix);
        let is_cut = match self.start {
            Start::Edge => false,
            Start::At(start) | Start::Past(start) => cuts(start),
        };
        is_cut || self.resume.is_some_and(cuts)
    }

    /// Whether all positions with this prefix are left to the batches that follow.
    pub(super) fn is_prefix_past_end(&self, prefix: &[u8]) -> bool {
        self.is_past_end(prefix) && !self.resume.is_some_and(|resume| resume.starts_with(prefix))
    }
}

/// Some neighbouring entries.
type Span = std::ops::Range<usize>;

/// An overridden key.
struct OverriddenKey {
    /// The batch of `Overridden::reads` that has its override.
    read: usize,
    /// The number of the override in that batch.
    entry: usize,
    /// Its entries in the base's batch, or its insertion point.
    place: Span,
}

/// The overridden keys of a batch of the base.
#[derive(Default)]
struct Overridden {
    /// The overrides as they were read, a batch for each scan. Batches after that of the last scan
    /// are left from earlier merges.
    reads: Vec<Batch<'static>>,
    /// The keys, in the order of the scan.
    keys: Vec<OverriddenKey>,
    /// A hash table with numbers of `keys`, from 1, by `slot`; 0 in a free slot. Its size is a
    /// power of two.
    slots: Vec<u16>,
}

/// The buffers of a merge. Each thread keeps one set.
#[derive(Default)]
struct MergeBuffers {
    overridden: Overridden,
    /// The numbers of the overridden keys, in the order of `place`.
    order: Vec<u16>,
    position: Vec<u8>,
    resume: Vec<u8>,
}

/// The thread's buffers are moved out while they are used.
#[derive(Default)]
struct BoxedSpare(Box<MergeBuffers>);

/// A thread keeps buffers of at most this many bytes.
const MAX_KEPT_CAPACITY: usize = 256 << 10;

thread_local! {
    static SPARE: Cell<Option<BoxedSpare>> = const { Cell::new(None) };
}

impl MergeBuffers {
    fn is_small(&self) -> bool {
        let reads = self.overridden.reads.iter();
        reads.map(Batch::capacity).sum::<usize>() <= MAX_KEPT_CAPACITY
    }
}

/// The slot at which the search for a key begins, which is the first `len` of these bytes: a
/// hash, whose low bits are used. It takes few instructions for a short key, even if the length
/// isn't known beforehand.
#[inline]
fn slot(bytes: &[u8], len: usize, overrides: &Overrides) -> usize {
    let key = &bytes[..len];
    // Use all bytes of a short key. Hash a long one, because many keys may have both ends in
    // common.
    let sum = match (key.first_chunk(), key.last_chunk()) {
        (Some(first), Some(last)) if key.len() <= 16 => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(21)
        }
        (Some(_), _) => overrides.hash(key),
        // Mostly other bytes follow the key. They are loaded with it, and cleared.
        (None, _) => {
            let word = match bytes.first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => key.iter().rfold(0, |sum, &byte| sum << 8 | u64::from(byte)),
            };
            word & ((1 << (8 * key.len())) - 1)
        }
    };
    (sum.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}

impl Overridden {
    /// The key and the record of an override.
    #[inline]
    fn entry(&self, key: &OverriddenKey) -> (&[u8], &[u8]) {
        self.reads[key.read].entry(key.entry)
    }

    /// Builds the hash table of the keys.
    fn fill_slots(&mut self, overrides: &Overrides) {
        // Most keys that are searched for are in no slot. Few slots are used, so that nearly all of
        // these meet a free one first.
        let slots = (16 * self.keys.len()).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (i, key) in self.keys.iter().enumerate() {
            let (bytes, len) = self.reads[key.read].key_and_rest(key.entry);
            let mut at = slot(bytes, len, overrides) % slots;
            // Linear probing. A slot has the number of the key plus one, and 0 if it is empty.
            while self.slots[at] != 0 {
                at = (at + 1) % slots;
            }
            self.slots[at] = i as u16 + 1;
        }
    }

    /// The number of the key that the first `len` of these bytes are, if it is overridden.
    #[inline(always)]
    fn find(&self, bytes: &[u8], len: usize, overrides: &Overrides) -> Option<usize> {
        let at = slot(bytes, len, overrides) & (self.slots.len() - 1);
        // Most of the slots are free.
        match self.slots[at] {
            0 => None,
            _ => self.find_from(at, &bytes[..len]),
        }
    }

    /// The number of a key whose search begins at this slot.
    fn find_from(&self, at: usize, key: &[u8]) -> Option<usize> {
        let last = self.slots.len() - 1;
        let mut at = at;
        while let Some(i) = usize::from(self.slots[at]).checked_sub(1) {
            if self.entry(&self.keys[i]).0 == key {
                return Some(i);
            }
            at = (at + 1) & last;
        }
        None
    }
}

impl<I: MergeInput + ?Sized> Merged<I> {
    /// See `Unique::scan` and `Multi::scan`, and the module.
    pub(super) fn scan_merged<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let (any_order, by_hash, want) = (batch.any_order, batch.by_hash, batch.want);
        let in_hash_order = self.overrides.chains().is_some();
        batch.by_hash = in_hash_order;
        let mut resume = Vec::new();
        let (mut start, mut read) = (start, 0);
        loop {
            // (1)
            batch.any_order &= !self.begins_among_objects(start);
            self.base.scan(guard, start, direction, batch);
            read += batch.len() + batch.skipped;
            // The entries are those of the snapshot, even if the leaf changes.
            batch.seen = None;
            let Some(index) = self.overrides.index() else {
                break;
            };
            // (2), (3)
            let chains = self.overrides.chains();
            let chains = chains.filter(|_| self.merges_in_place(batch, direction));
            let merged = match chains {
                Some(chains) => self.merge_in_place(guard, chains, start, batch),
                None => with_spare(
                    &SPARE,
                    |spare: &BoxedSpare| spare.0.is_small(),
                    |BoxedSpare(spare)| {
                        self.merge_batch(guard, index, start, direction, batch, spare)
                    },
                ),
            };
            let Some(passed) = merged else {
                // Read the batch again, in order.
                (batch.any_order, batch.by_hash) = (false, false);
                continue;
            };
            read += passed;
            // (4)
            if batch.ends_scan(read) {
                break;
            }
            std::mem::swap(&mut resume, &mut batch.resume);
            start = Start::resume(&resume, direction);
            (batch.any_order, batch.by_hash) = (any_order, in_hash_order);
            batch.want_more(want);
        }
        batch.skipped = read.saturating_sub(batch.len());
        (batch.any_order, batch.by_hash, batch.want) = (any_order, by_hash, want);
    }

    /// Whether a batch that begins here begins between the objects of a key, or after them. It is
    /// read in order then: in any order, a version of the key would be put in as a whole. (The
    /// entries of the batch may be those of a later leaf, if this one has no more.)
    fn begins_among_objects(&self, start: Start<'_>) -> bool {
        match start {
            Start::Edge => false,
            // A position that is before all objects of its key is compared without its end.
            Start::At(position) | Start::Past(position) => {
                !self.base.has_one_each() && self.base.comparable(position).len() == position.len()
            }
        }
    }

    /// Steps 2 and 3 for a batch of the base that begins at `start`. Returns the number of records
    /// that override nothing for this reader; or `None`, and does nothing, if the batch must be in
    /// order.
    fn merge_batch(
        &self,
        guard: &Guard,
        index: &dyn Unique,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
        spare: &mut MergeBuffers,
    ) -> Option<usize> {
        let (cut, passed) = self.find_overridden(guard, index, start, direction, batch, spare);
        // An unordered batch can't be cut, since it has no order. The caller reads it again in
        // order.
        if cut.is_some() && batch.unordered {
            return None;
        }
        if let Some(cut) = cut {
            (batch.resume, batch.done) = (cut, false);
            self.truncate_batch(direction, batch, &mut spare.position);
        }
        if spare.overridden.keys.is_empty() {
            return Some(passed);
        }
        // (3)
        self.place_overridden(direction, batch, index, spare);
        if self.base.has_one_each() && self.replace_in_place(batch, spare) {
            return Some(passed);
        }
        // Pushing overrides must not change where the scan resumes.
        let resume = std::mem::take(&mut batch.resume);
        let range = self.range(start, direction, (!batch.done).then_some(&resume[..]));
        batch.replace_entries(|batch, base| self.push_merged(&range, base, batch, spare));
        batch.resume = resume;
        Some(passed)
    }

    /// Step 3 for the overridden keys that have an entry, and an override with a value, if each key
    /// has at most one entry. The others are left in `order`. Returns whether there are none.
    fn replace_in_place(&self, batch: &mut Batch, spare: &mut MergeBuffers) -> bool {
        let MergeBuffers {
            overridden, order, ..
        } = spare;
        order.retain(|&i| {
            let overridden_key = &overridden.keys[usize::from(i)];
            let (key, record) = overridden.entry(overridden_key);
            match self.overrides.read(record) {
                Some(Override::Value(value)) if overridden_key.place.len() == 1 => {
                    batch.replace(overridden_key.place.start, key, value);
                    false
                }
                _ => true,
            }
        });
        order.is_empty()
    }

    /// Step 3: appends what lies before each overridden key in the entries of the base, then what
    /// the override has in place of its entries, and in the end the rest.
    fn push_merged<'g>(
        &self,
        range: &ViewRange<'_>,
        base: &BatchEntries<'g>,
        batch: &mut Batch<'g>,
        spare: &mut MergeBuffers,
    ) {
        let mut from = 0;
        let overridden = &spare.overridden;
        let last = overridden.keys.len() - 1;
        for i in spare.order.iter().map(|&i| usize::from(i)) {
            let overridden_key = &overridden.keys[i];
            batch.push_entries(base, from..overridden_key.place.start);
            from = overridden_key.place.end;
            // An override without a value for this reader: the key's entries are left out.
            let (key, record) = overridden.entry(overridden_key);
            let Some(value) = self.overrides.read(record) else {
                continue;
            };
            // A batch may begin and end between the objects of a key.
            if i == 0 || i == last {
                self.push_within(range, key, value, batch, &mut spare.position);
            } else {
                self.base.push(key, value, range.direction, batch);
            }
        }
        batch.push_entries(base, from..base.len());
    }

    /// Appends the entries of an override that are in the range.
    pub(super) fn push_within(
        &self,
        range: &ViewRange<'_>,
        key: &[u8],
        value: Override<'_>,
        batch: &mut Batch,
        position: &mut Vec<u8>,
    ) {
        // A key of a bag may have several entries. Append all of them, and then remove those beside
        // the range, the last one first, so that the numbers of the others stay.
        let pushed = batch.len();
        self.base.push(key, value, range.direction, batch);
        let key = self.overrides.key(key);
        for i in (pushed..batch.len()).rev() {
            self.base.entry_position(batch, i, key, position);
            let position = self.base.comparable(position);
            if !range.has_begun(position) || range.is_past_end(position) {
                batch.remove(i);
            }
        }
    }

    /// Step 2: the overridden keys between the beginning and the end of a batch of the base, in the
    /// order of the scan. If there are too many, or too many records that override nothing, returns
    /// where the batch must end. Also returns the number of the latter.
    fn find_overridden(
        &self,
        guard: &Guard,
        index: &dyn Unique,
        start: Start<'_>,
        direction: Direction,
        batch: &Batch,
        spare: &mut MergeBuffers,
    ) -> (Option<Vec<u8>>, usize) {
        let MergeBuffers {
            overridden: Overridden { reads, keys, .. },
            position,
            resume,
            ..
        } = spare;
        keys.clear();
        // An override counts if it is between the beginning of the batch and its end.
        let range = self.range(start, direction, (!batch.done).then_some(&batch.resume[..]));
        let (mut next, mut passed) = (self.first_overridden(start), 0);
        for number in 0.. {
            if number == reads.len() {
                reads.push(Batch::default());
            }
            let read = &mut reads[number];
            // Nothing after the batch is needed.
            read.until = match batch.done {
                true => batch.until.clone(),
                false => Bound::Included(self.base.key_position(&batch.resume).to_vec()),
            };
            // Read some records, which begin where the last ones have ended. Their batches are
            // kept: the overridden keys refer to them.
            read.want = MIN_BATCH;
            read.lend_owned(|read| index.scan(guard, next, direction, read));
            let end = self.end_of_range(index, read, &range, position);
            for entry in 0..end {
                // Records without a version for this reader don't override anything.
                if !self.overrides.has_override(read.value(entry)) {
                    passed += 1;
                    continue;
                }
                keys.push(OverriddenKey {
                    read: number,
                    entry,
                    place: NOWHERE,
                });
                // Many overrides are merged in parts. The batch ends after this one.
                if keys.len() == MOST {
                    return (self.cut_after(read.key(entry), &range), passed);
                }
            }
            // The batch ends before the next record.
            if end < read.len() || read.done || range.is_prefix_past_end(&read.resume) {
                break;
            }
            // Many records override nothing for this reader. Let the caller have what there is.
            if let (Some(last), MOST_PASSED..) = (end.checked_sub(1), passed) {
                return (self.cut_after(read.key(last), &range), passed);
            }
            std::mem::swap(resume, &mut read.resume);
            next = Start::resume(resume, direction);
        }
        (None, passed)
    }

    /// Where the overridden keys of a batch begin that begins at `start`. If the batch begins
    /// between the objects of a key, an override of that key counts, too.
    fn first_overridden<'s>(&self, start: Start<'s>) -> Start<'s> {
        match start {
            Start::Edge => Start::Edge,
            Start::At(position) => Start::At(self.base.key_position(position)),
            Start::Past(position) => match self.base.key_position(position) {
                key if key.len() == position.len() => Start::Past(key),
                key => Start::At(key),
            },
        }
    }

    /// The number of the first of these overrides that is after a batch with this range. They are
    /// in order, so those after it are the last ones.
    fn end_of_range(
        &self,
        index: &dyn Unique,
        overrides: &Batch,
        range: &ViewRange<'_>,
        position: &mut Vec<u8>,
    ) -> usize {
        let mut is_past_end = |i| {
            index.position(self.overrides.key(overrides.key(i)), position);
            range.is_prefix_past_end(position)
        };
        match overrides.len() {
            end if end > 0 && is_past_end(end - 1) => {
                partition_point(0..end - 1, |i| !is_past_end(i))
            }
            end => end,
        }
    }

    /// The end of a batch that is cut after a key. `None` if it ends sooner: the batch of the base
    /// may end between the objects of this key.
    fn cut_after(&self, key: &[u8], range: &ViewRange<'_>) -> Option<Vec<u8>> {
        let mut cut = Vec::new();
        let key = self.overrides.key(key);
        self.base.resume_after(key, range.direction, &mut cut);
        let sooner = range.is_past_end(self.base.comparable(&cut));
        (!sooner).then_some(cut)
    }

    /// Drops the entries of an ordered batch that are after its `resume`.
    #[cold]
    fn truncate_batch(&self, direction: Direction, batch: &mut Batch, position: &mut Vec<u8>) {
        let resume = std::mem::take(&mut batch.resume);
        let range = self.range(Start::Edge, direction, Some(&resume[..]));
        // Entries ascend in the direction of the scan.
        let end = partition_point(0..batch.len(), |i| {
            let key = self.overrides.key(batch.key(i));
            self.base.entry_position(batch, i, key, position);
            !range.is_past_end(self.base.comparable(position))
        });
        batch.truncate(end);
        batch.resume = resume;
    }

    /// Finds the entries of each overridden key in a batch, or its insertion point, and the order
    /// of these.
    fn place_overridden(
        &self,
        direction: Direction,
        batch: &Batch,
        index: &dyn Unique,
        spare: &mut MergeBuffers,
    ) {
        let MergeBuffers {
            overridden,
            order,
            position,
            resume: there,
            ..
        } = spare;
        order.clear();
        let all = 0..overridden.keys.len() as u16;
        // In key order both lists are sorted by key, so neither keys nor positions are made.
        if self.overrides.ordered && !batch.unordered {
            place_in_order(direction, batch, overridden);
            return order.extend(all);
        }
        overridden.fill_slots(&self.overrides);
        // Most overridden keys have entries in the batch. They are found by one pass over it.
        for i in 0..batch.len() {
            let (bytes, len) = batch.key_and_rest(i);
            if let Some(number) = overridden.find(bytes, len, &self.overrides) {
                // The entries of a key are adjacent.
                let place = &mut overridden.keys[number].place;
                if *place == NOWHERE {
                    order.push(number as u16);
                }
                *place = place.start.min(i)..i + 1;
            }
        }
        let Overridden { reads, keys, .. } = overridden;
        // The insertion points of the others don't matter.
        if batch.unordered {
            for (i, overridden_key) in keys.iter_mut().enumerate() {
                if overridden_key.place == NOWHERE {
                    overridden_key.place = batch.len()..batch.len();
                    order.push(i as u16);
                }
            }
            return;
        }
        // Each of them is inserted between its neighbours. Both lists are in order, so each search
        // begins where the last one has ended.
        let mut from = 0;
        for overridden_key in keys {
            if overridden_key.place == NOWHERE {
                let key = self
                    .overrides
                    .key(reads[overridden_key.read].key(overridden_key.entry));
                index.position(key, position);
                // The first entry that isn't before the key in the direction of the scan.
                let at = partition_point(from..batch.len(), |i| {
                    let key = self.overrides.key(batch.key(i));
                    self.base.entry_position(batch, i, key, there);
                    let there = self.base.key_position(there);
                    match direction {
                        Direction::Forward => there < &position[..],
                        Direction::Backward => there > &position[..],
                    }
                });
                overridden_key.place = at..at;
            }
            from = overridden_key.place.end;
        }
        order.clear();
        order.extend(all);
    }

    /// The range of a batch.
    pub(super) fn range<'p>(
        &self,
        start: Start<'p>,
        direction: Direction,
        resume: Option<&'p [u8]>,
    ) -> ViewRange<'p> {
        // Both ends as bytes that compare in the order of the scan.
        let comparable = |position| self.base.comparable(position);
        ViewRange {
            start: match start {
                Start::Edge => Start::Edge,
                Start::At(position) => Start::At(comparable(position)),
                Start::Past(position) => Start::Past(comparable(position)),
            },
            resume: resume.map(comparable),
            direction,
        }
    }
}

/// The first number of a range for which `precedes` isn't true, or its end. It is true for the
/// numbers before that one, and for no other.
pub(super) fn partition_point(range: Span, mut precedes: impl FnMut(usize) -> bool) -> usize {
    let Span { mut start, mut end } = range;
    while start < end {
        let middle = (start + end) / 2;
        if precedes(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}

/// Finds the entry of each overridden key in a batch in key order, or its insertion point.
/// Each search begins where the last one has ended, since both lists ascend in the direction of the
/// scan.
fn place_in_order(direction: Direction, batch: &Batch, overridden: &mut Overridden) {
    let Overridden { reads, keys, .. } = overridden;
    let mut from = 0;
    for key in keys {
        let (at, is_there) = batch.seek(from, &reads[key.read], key.entry, direction);
        key.place = at..at + usize::from(is_there);
        from = key.place.end;
    }
}
