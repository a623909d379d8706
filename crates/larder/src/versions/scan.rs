//! Scans of a merged index.
//!
//! # Steps of a scan
//!
//! 1. Read a batch of the base, which covers the positions up to its `resume`.
//! 2. Read the overrides of those positions. If there are many, end the batch behind one of them.
//! 3. If there are no overrides, return the batch. Otherwise merge: entries of an overridden key
//!    are replaced by those of the override. No other entry is copied, or compared to find its
//!    place. An unordered batch stays unordered.
//! 4. If nothing is left, continue behind the batch.

use super::merged::{MergeInput, Merged, Overrides};
use larder_index::{with_spare, Batch, Direction, Guard, Start, Unique};
use std::cell::Cell;
use std::ops::Bound;

/// A batch ends when it has this number of overridden keys.
const MOST: usize = 512;

/// The number of overrides that are read together.
const MIN_BATCH: usize = 32;

/// The place of a key that was not found.
const NOWHERE: Span = usize::MAX..usize::MAX;

/// A range of positions, in the direction of a scan.
#[derive(Clone, Copy)]
struct ViewRange<'p> {
    start: Start<'p>,
    /// Where the scan continues, if it does: at this position forward, strictly before it backward.
    resume: Option<&'p [u8]>,
    direction: Direction,
}

impl ViewRange<'_> {
    /// Whether the scan has reached a position.
    fn has_begun(&self, position: &[u8]) -> bool {
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
    fn is_behind(&self, position: &[u8]) -> bool {
        self.resume.is_some_and(|resume| match self.direction {
            Direction::Forward => position >= resume,
            Direction::Backward => position < resume,
        })
    }

    /// Whether all positions with this prefix are left to the batches that follow.
    fn are_behind(&self, prefix: &[u8]) -> bool {
        self.is_behind(prefix) && !self.resume.is_some_and(|resume| resume.starts_with(prefix))
    }
}

/// A place in a buffer.
type Span = std::ops::Range<usize>;

/// An overridden key: spans of `MergeBuffers::bytes`.
struct OverriddenKey {
    /// The common prefix of the positions of its entries.
    position: Span,
    key: Span,
    record: Span,
    /// Its entries in the base's batch, or the place where they would be.
    place: Span,
}

/// The buffers of a merge. Each thread keeps one set.
#[derive(Default)]
struct MergeBuffers {
    /// The overrides that were read.
    read: Batch,
    /// The overridden keys, in the order of the scan.
    found: Vec<OverriddenKey>,
    /// Their bytes.
    bytes: Vec<u8>,
    /// A hash table with numbers of `found`, from 1, by `MergeBuffers::slot` of the key; 0 in a
    /// free place. Its size is a power of two.
    slots: Vec<u16>,
    /// The entries of the base's batch.
    entries: Vec<(usize, usize, usize)>,
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
        self.read.bytes.capacity() + self.bytes.capacity() <= MAX_KEPT_CAPACITY
    }

    /// The place at which the search for a key begins: a hash, whose low bits are used.
    #[inline]
    fn slot(key: &[u8], overrides: &Overrides) -> usize {
        let word = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_le_bytes(*bytes));
        // Use all bytes of a short key. Hash a long one, because many keys may have both ends in
        // common.
        let sum = match (word(key.first_chunk()), word(key.last_chunk())) {
            (Some(first), Some(last)) if key.len() <= 16 => first ^ last.rotate_left(21),
            (Some(_), _) => overrides.hash(key),
            // Two overlapping halves, or single bytes.
            (None, _) => match (key.first_chunk(), key.last_chunk()) {
                (Some(first), Some(last)) => {
                    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
                    half(first) << 32 | half(last)
                }
                _ => key.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
            },
        };
        (sum.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
    }

    /// Builds the hash table of the keys that were found.
    fn fill_slots(&mut self, overrides: &Overrides) {
        // Most keys that are searched for are in no slot. Few slots are used, so that nearly all of
        // these meet a free one first.
        let slots = (16 * self.found.len()).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (i, own) in self.found.iter().enumerate() {
            let mut at = Self::slot(&self.bytes[own.key.clone()], overrides) % slots;
            // Linear probing. A slot has the number of the key plus one, and 0 if it is empty.
            while self.slots[at] != 0 {
                at = (at + 1) % slots;
            }
            self.slots[at] = i as u16 + 1;
        }
    }

    /// The number of a key that was found.
    #[inline]
    fn find(&self, key: &[u8], overrides: &Overrides) -> Option<usize> {
        let last = self.slots.len() - 1;
        let mut at = Self::slot(key, overrides) & last;
        // Most of the slots are free.
        while let Some(i) = usize::from(self.slots[at]).checked_sub(1) {
            if self.bytes[self.found[i].key.clone()] == *key {
                return Some(i);
            }
            at = (at + 1) & last;
        }
        None
    }
}

impl<I: MergeInput + ?Sized> Merged<I> {
    /// See `Unique::scan` and `Multi::scan`, and the module.
    pub(super) fn scan_merged(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) {
        let any_order = batch.any_order;
        let mut resume = Vec::new();
        let mut start = start;
        loop {
            // (1)
            self.base.scan(guard, start, direction, batch);
            // The entries are those of the snapshot, even if the leaf changes.
            batch.seen = None;
            let Some(index) = self.overrides.index() else {
                break;
            };
            // (2), (3)
            let merged = with_spare(
                &SPARE,
                |spare: &BoxedSpare| spare.0.is_small(),
                |BoxedSpare(spare)| {
                    self.merge_batch(guard, index, (start, direction), batch, spare)
                },
            );
            if !merged {
                // Read the batch again, in order.
                batch.any_order = false;
                continue;
            }
            if !batch.is_empty() || batch.done {
                break;
            }
            // (4)
            std::mem::swap(&mut resume, &mut batch.resume);
            start = match direction {
                Direction::Forward => Start::At(&resume),
                Direction::Backward => Start::Past(&resume),
            };
            batch.any_order = any_order;
        }
        batch.any_order = any_order;
    }

    /// Steps 2 and 3 for a batch of the base that begins at `start`. Returns `false`, and does
    /// nothing, if the batch must be in order.
    fn merge_batch(
        &self,
        guard: &Guard,
        index: &dyn Unique,
        (start, direction): (Start<'_>, Direction),
        batch: &mut Batch,
        spare: &mut MergeBuffers,
    ) -> bool {
        let cut = self.find_overridden(guard, index, (start, direction), batch, spare);
        if spare.found.is_empty() {
            return true;
        }
        // An unordered batch can't be cut, since it has no order. The caller reads it again in
        // order.
        if cut.is_some() && batch.unordered {
            return false;
        }
        if let Some(cut) = cut {
            (batch.resume, batch.done) = (cut, false);
            self.truncate_batch(direction, batch, &mut spare.position);
        }
        // (3)
        if batch.unordered || !self.overrides.ordered {
            spare.fill_slots(&self.overrides);
        }
        // Entries of overridden keys are dropped, wherever they lie. The overrides are appended
        // behind the others.
        if batch.unordered {
            let mut i = 0;
            let Batch { bytes, entries, .. } = &mut *batch;
            entries.retain(|&(key, value, _)| {
                i += 1;
                spare.find(&bytes[key..value], &self.overrides).is_none()
            });
        } else {
            self.place_overridden(direction, batch, spare);
            std::mem::swap(&mut batch.entries, &mut spare.entries);
            batch.entries.clear();
        }
        // Pushing overrides must not change where the scan resumes.
        let resume = std::mem::take(&mut batch.resume);
        let range = self.range(start, direction, (!batch.done).then_some(&resume));
        let mut from = 0;
        let last = spare.found.len() - 1;
        // Copy what lies before each overridden key, then what the override has in place of its
        // entries.
        for (i, own) in spare.found.iter().enumerate() {
            if !batch.unordered {
                let before = &spare.entries[from..own.place.start];
                batch.entries.extend_from_slice(before);
                from = own.place.end;
            }
            // An override without a value for this reader: the key's entries are left out.
            let Some(value) = self.overrides.read(&spare.bytes[own.record.clone()]) else {
                continue;
            };
            let (key, pushed) = (&spare.bytes[own.key.clone()], batch.len());
            self.base.push(key, value, direction, batch);
            // A batch may begin and end between the objects of a key.
            if i == 0 || i == last {
                let key = self.overrides.key(key);
                for i in (pushed..batch.len()).rev() {
                    self.base.entry_position(batch, i, key, &mut spare.position);
                    let position = self.base.comparable(&spare.position);
                    if !range.has_begun(position) || range.is_behind(position) {
                        batch.entries.remove(i);
                    }
                }
            }
        }
        if !batch.unordered {
            batch.entries.extend_from_slice(&spare.entries[from..]);
        }
        batch.resume = resume;
        true
    }

    /// Step 2: the overridden keys between the beginning and the end of a batch of the base, in the
    /// order of the scan. If there are too many, returns where the batch must end instead.
    fn find_overridden(
        &self,
        guard: &Guard,
        index: &dyn Unique,
        (start, direction): (Start<'_>, Direction),
        batch: &Batch,
        spare: &mut MergeBuffers,
    ) -> Option<Vec<u8>> {
        let MergeBuffers {
            read,
            found,
            bytes,
            position,
            resume,
            ..
        } = spare;
        found.clear();
        bytes.clear();
        // Nothing behind the batch is needed.
        read.until = match batch.done {
            true => batch.until.clone(),
            false => Bound::Included(self.base.key_position(&batch.resume).to_vec()),
        };
        read.want = MIN_BATCH;
        // An override counts if it is between the beginning of the batch and its end.
        let range = self.range(start, direction, (!batch.done).then_some(&batch.resume));
        // If the batch begins between the objects of a key, an override of that key counts, too.
        let mut next = match start {
            Start::Edge => Start::Edge,
            Start::At(position) => Start::At(self.base.key_position(position)),
            Start::Past(position) => match self.base.key_position(position) {
                key if key.len() == position.len() => Start::Past(key),
                key => Start::At(key),
            },
        };
        loop {
            index.scan(guard, next, direction, read);
            for i in 0..read.len() {
                let (key, record) = read.entry(i);
                // Records without a version for this reader don't override anything.
                if self.overrides.read(record).is_none() {
                    continue;
                }
                let indexed = self.overrides.key(key);
                index.position(indexed, position);
                if range.are_behind(position) {
                    return None;
                }
                // The record is copied: the next scan reuses the batch in which it lies.
                let mut keep = |part: &[u8]| {
                    let from = bytes.len();
                    bytes.extend_from_slice(part);
                    from..bytes.len()
                };
                found.push(OverriddenKey {
                    position: keep(position),
                    key: keep(key),
                    record: keep(record),
                    place: NOWHERE,
                });
                // Many overrides are merged in parts. The batch ends behind this one.
                if found.len() == MOST {
                    let mut cut = Vec::new();
                    self.base.resume_behind(indexed, direction, &mut cut);
                    // The batch of the base may end between the objects of this key.
                    let sooner = range.is_behind(self.base.comparable(&cut));
                    return (!sooner).then_some(cut);
                }
            }
            if read.done || range.are_behind(&read.resume) {
                return None;
            }
            std::mem::swap(resume, &mut read.resume);
            next = match direction {
                Direction::Forward => Start::At(resume),
                Direction::Backward => Start::Past(resume),
            };
        }
    }

    /// Drops the entries of an ordered batch that are behind its `resume`.
    #[cold]
    fn truncate_batch(&self, direction: Direction, batch: &mut Batch, position: &mut Vec<u8>) {
        let resume = std::mem::take(&mut batch.resume);
        let range = self.range(Start::Edge, direction, Some(&resume));
        // Entries ascend in the direction of the scan, so the first one behind the end is found by
        // halving.
        let (mut low, mut high) = (0, batch.len());
        while low < high {
            let middle = (low + high) / 2;
            let key = self.overrides.key(batch.key(middle));
            self.base.entry_position(batch, middle, key, position);
            if range.is_behind(self.base.comparable(position)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        batch.entries.truncate(low);
        batch.resume = resume;
    }

    /// Finds the entries of each overridden key in an ordered batch, or the place where they would
    /// be.
    fn place_overridden(&self, direction: Direction, batch: &Batch, spare: &mut MergeBuffers) {
        // In key order both lists are sorted by key, so neither keys nor positions are made.
        if self.overrides.ordered {
            return place_in_order(direction, batch, spare);
        }
        // Most overridden keys have entries in the batch. They are found by one pass over it.
        for i in 0..batch.len() {
            if let Some(own) = spare.find(batch.key(i), &self.overrides) {
                // The entries of a key are adjacent.
                let place = &mut spare.found[own].place;
                *place = place.start.min(i)..i + 1;
            }
        }
        // The others get the place between their neighbours. Both lists are in order, so each
        // search begins where the last one has ended.
        let mut from = 0;
        for own in &mut spare.found {
            if own.place == NOWHERE {
                let position = &spare.bytes[own.position.clone()];
                let (mut low, mut high) = (from, batch.len());
                while low < high {
                    let middle = (low + high) / 2;
                    let key = self.overrides.key(batch.key(middle));
                    let there = &mut spare.position;
                    self.base.entry_position(batch, middle, key, there);
                    let there = self.base.key_position(there);
                    let precedes = match direction {
                        Direction::Forward => there < position,
                        Direction::Backward => there > position,
                    };
                    if precedes {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                own.place = low..low;
            }
            from = own.place.end;
        }
    }

    /// The range of a batch.
    fn range<'p>(
        &self,
        start: Start<'p>,
        direction: Direction,
        resume: Option<&'p Vec<u8>>,
    ) -> ViewRange<'p> {
        // Both ends as bytes that compare in the order of the scan.
        let comparable = |position| self.base.comparable(position);
        ViewRange {
            start: match start {
                Start::Edge => Start::Edge,
                Start::At(position) => Start::At(comparable(position)),
                Start::Past(position) => Start::Past(comparable(position)),
            },
            resume: resume.map(|resume| comparable(resume)),
            direction,
        }
    }
}

/// Finds the entry of each overridden key in a batch in key order, or the place where it would be.
/// Each search begins where the last one has ended, with steps that double, since both lists ascend
/// in the direction of the scan.
fn place_in_order(direction: Direction, batch: &Batch, spare: &mut MergeBuffers) {
    let mut low = 0;
    for own in &mut spare.found {
        let key = &spare.bytes[own.key.clone()];
        let precedes = |i| match direction {
            Direction::Forward => batch.key(i) < key,
            Direction::Backward => batch.key(i) > key,
        };
        let mut step = 1;
        while low + step <= batch.len() && precedes(low + step - 1) {
            low += step;
            step *= 2;
        }
        // The entry at `high` doesn't precede the key, or is the end.
        let mut high = (low + step - 1).min(batch.len());
        while low < high {
            let middle = (low + high) / 2;
            if precedes(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let is_there = low < batch.len() && batch.key(low) == key;
        own.place = low..low + usize::from(is_there);
        low = own.place.end;
    }
}
