//! Changes of a leaf's buckets by the holder of its lock.
//!
//! Invariants, whenever the lock isn't held:
//! * H1: Each bucket that a displaced entry has passed has the overflow bit for the entry's tag. A
//!   bit may be set without such an entry, until a displaced entry past the bucket is removed
//!   (`clear_overflow`).
//! * H5: Objects have no gaps between them. So when an object grows, shrinks or is removed, all
//!   objects below it move, and their slot entries change.
//! * **H10** The head's count and bytes are the sums over all buckets (`add`).
//!
//! Every function that writes first calls `change` or `add`. The unlock then stores a new version,
//! so a reader that saw a part of the change fails to validate.

use crate::contention::CONTENTION_BOUND;
use crate::hash::bucket::{
    entries, object_offset, slot_entry, Bucket, Home, ENTRIES_PER_WORD, ENTRY_LSBS,
};
use crate::hash::hit::Hit;
use crate::hash::leaf::LockedHashLeaf;
use crate::hash::plain::{self, SlotBody};
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::{self, Writer};
use crate::sync::atomic::Ordering::Relaxed;
use smallvec::SmallVec;
use std::ops::Range;

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and readers validate the
// version (see `seqlock`).

/// The body of an entry that is to be stored.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    /// The object is in the bucket.
    Inside {
        key: &'a [u8],
        value: &'a [u8],
        /// Whether the object begins with the length of its key.
        length_prefixed: bool,
    },
    /// The object is outside the leaf. The bucket has its handle.
    Outside(Handle),
}

impl Body<'_> {
    /// The bytes that the body takes in a bucket of this class, without its slot entry.
    #[inline(always)]
    pub(crate) fn size(&self, class: u8) -> usize {
        match self {
            Body::Inside {
                key,
                value,
                length_prefixed,
            } => object_size(body_size(key.len(), value.len(), *length_prefixed), class),
            Body::Outside(_) => HANDLE,
        }
    }
}

/// A slot entry that is to be appended to a bucket.
struct NewSlot {
    /// How many entries the bucket has without it.
    entries: usize,
    tag: u8,
    /// [`DISPLACED`], or 0.
    displaced: u16,
    /// Where its object begins.
    from: usize,
    /// Where its object ends.
    end: usize,
}

/// Where the lowest object of a bucket with `n` entries begins.
#[inline]
fn heap(bucket: Bucket<'_>, n: usize, unit_shift: u32) -> usize {
    match n {
        0 => bucket.len(),
        n => object_offset(slot_entry(bucket, n), unit_shift),
    }
}

#[inline]
fn set_slot_entry(bucket: Bucket<'_>, i: usize, slot: u64) {
    let shift = i % ENTRIES_PER_WORD * 16;
    let rest = bucket.word(i / ENTRIES_PER_WORD) & !(0xFFFF << shift);
    bucket.set_word(i / ENTRIES_PER_WORD, rest | slot << shift);
}

/// The most bytes that stay unused after a value that has become shorter, in buckets whose objects
/// can record it. If the value grows again, nothing has to move.
const SPARE: usize = 8;

impl LockedHashLeaf<'_> {
    /// The value of a hit, in place, while this borrow of the lock lasts.
    #[inline]
    pub(crate) fn value<'a>(&'a self, hit: &Hit<'a>) -> &'a [u8] {
        if hit.outside {
            return self.object(self.view().handle(hit)).value();
        }
        &self.plain(hit.bucket)[hit.from..hit.end]
    }

    /// The handle of a hit, if its object is outside.
    #[inline]
    pub(crate) fn handle(&self, hit: &Hit<'_>) -> Option<Handle> {
        hit.outside.then(|| self.view().handle(hit))
    }

    /// Adds to the leaf's count of entries and to its live bytes, and marks the leaf as changed.
    #[inline]
    fn add(&mut self, entries: i32, bytes: isize) {
        let head = self.leaf.head();
        self.change();
        let count = self.leaf.count() as i32 + entries;
        let live = self.leaf.live_bytes() as isize + bytes;
        // Ordering: Relaxed, see above.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, see above.
        head.live.store(live as u32, Relaxed);
    }

    /// Overwrites the bytes of a value from `at` on. The value of the hit is in its bucket.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, hit: &Hit<'_>, at: usize, bytes: &[u8]) {
        debug_assert!(!hit.outside && at + bytes.len() <= hit.value_len());
        self.change();
        hit.bucket.store_bytes(hit.from + at, bytes);
    }

    /// Replaces a part of the value of a hit, which is in its bucket. Returns `false`, and changes
    /// nothing, if there is no room, or if the whole value is needed for that.
    #[inline(always)]
    pub(crate) fn replace_part(&mut self, hit: &Hit<'_>, part: Range<usize>, new: &[u8]) -> bool {
        if part.len() == new.len() {
            self.overwrite(hit, part.start, new);
            return true;
        }
        let place = (hit.from + part.start, part.len());
        self.leaf.class() <= UNIT_CLASS && self.splice((hit.bucket, hit.slot), place, new)
    }

    /// Replaces the value of a hit, which is in its bucket, with one of another length. Returns
    /// `false`, and changes nothing, if there is no room, or if the object must be outside.
    #[inline]
    pub(crate) fn replace_value(&mut self, hit: &Hit<'_>, value: &[u8]) -> bool {
        match self.leaf.class() {
            ..=UNIT_CLASS => {
                let place = (hit.from, hit.value_len());
                self.splice((hit.bucket, hit.slot), place, value)
            }
            _ => self.resize(hit, value),
        }
    }

    /// Replaces the handle at `at` in a bucket by another one. Returns the old one.
    #[inline]
    pub(crate) fn exchange_handle(
        &mut self,
        (bucket, at): (Bucket<'_>, usize),
        handle: Handle,
    ) -> Handle {
        let old = Handle::from_bits(bucket.load(at));
        self.change();
        bucket.store(at, handle.bits(), HANDLE);
        old
    }

    /// Replaces the bytes of a bucket from `at` on, of which there are `len`, by `new`, which has
    /// another length. They are a part of the value of slot entry `i`. The bytes of the object
    /// before them, and the objects below it, move by the difference. The bucket's unit is a byte.
    ///
    /// Returns `false`, and changes nothing, if there is no room, or if the object must be outside.
    ///
    /// ```text
    ///  before   slot entries →    free    ← object n … object i+1 | key part rest | object i-1 …
    ///  after    slot entries →  free  ← object n … object i+1 | key longer rest | object i-1 …
    /// ```
    #[inline(never)]
    pub(crate) fn splice(
        &mut self,
        (bucket, i): (Bucket<'_>, usize),
        (at, len): (usize, usize),
        new: &[u8],
    ) -> bool {
        let n = entries(bucket.word(0));
        let lowest = object_offset(slot_entry(bucket, n), 0);
        // The part becomes shorter: what lies below it moves up. There is always room for that.
        if new.len() < len {
            let gap = len - new.len();
            self.add(0, -(gap as isize));
            bucket.move_up(lowest, at, gap);
            lower_slots(bucket, i, n, (gap as u64).wrapping_neg());
            bucket.store_bytes(at + gap, new);
            return true;
        }
        // Check that there is room in the bucket, and that the leaf stays below its upper bound.
        // Nothing has been changed so far, so the caller can still take another path.
        let more = new.len() - len;
        let free = lowest - SLOT_ENTRY * (n + 1);
        let (body, class) = (self.size_of(bucket, i) + more, self.leaf.class());
        let live = self.leaf.live_bytes() + more;
        if more > free || live > self.leaf.bounds().most as usize || !lives_inside(body, class) {
            return false;
        }
        // What lies below the part moves down, so the new bytes begin lower, and the end of the
        // object stays (H5).
        self.add(0, more as isize);
        bucket.move_down(lowest, at, more);
        lower_slots(bucket, i, n, more as u64);
        bucket.store_bytes(at - more, new);
        true
    }

    /// The size of the object of slot entry `i`, in a bucket whose unit is a byte.
    #[inline]
    fn size_of(&self, bucket: Bucket<'_>, i: usize) -> usize {
        heap(bucket, i - 1, 0) - object_offset(slot_entry(bucket, i), 0)
    }

    /// Replaces the value of a hit, which is in its bucket, with one of another length, as `splice`
    /// does, in a bucket with a unit of more than a byte. There, an object begins with the number
    /// of unused bytes at its end.
    #[inline(never)]
    pub(crate) fn resize(&mut self, hit: &Hit<'_>, value: &[u8]) -> bool {
        let class = self.leaf.class();
        let (unit_shift, bucket, i) = (unit_shift(class), hit.bucket, hit.slot);
        let n = entries(bucket.word(0));
        let (from, end) = (
            object_offset(slot_entry(bucket, i), unit_shift),
            heap(bucket, i - 1, unit_shift),
        );
        let lowest = heap(bucket, n, unit_shift);
        // If the new body fits in the place of the old one and leaves few bytes unused, the size of
        // the object stays the same, and nothing below it moves.
        let body = hit.from - from - 1 + value.len();
        let old = end - from;
        let new = match (body + 1..=body + 1 + SPARE).contains(&old) {
            true => old,
            false => object_size(body, class),
        };
        // Check the room, as in `splice`.
        let (more, most) = (new.saturating_sub(old), self.leaf.bounds().most as usize);
        let free = lowest - SLOT_ENTRY * (n + 1);
        if more > free || self.leaf.live_bytes() + more > most || !lives_inside(body, class) {
            return false;
        }
        self.add(0, new as isize - old as isize);
        // Move the key, which lies before the value, and all objects below it.
        if new > old {
            bucket.move_down(lowest, hit.from, new - old);
        } else if new < old {
            bucket.move_up(lowest, hit.from, old - new);
        }
        // Adjust the slot entries of the objects that have moved: `i` to `n`.
        if new != old {
            let down = (new as u64).wrapping_sub(old as u64) as i64 >> unit_shift;
            lower_slots(bucket, i, n, down as u64);
        }
        // Record how many bytes at the object's end are unused now.
        bucket.store(end - new, (new - 1 - body) as u64, 1);
        // Write the value. The object still ends at `end`, and the value's distance from the
        // object's beginning is the same.
        bucket.store_bytes(end - new + (hit.from - from), value);
        true
    }

    /// Inserts an entry. Returns `false`, and changes nothing, if no bucket has room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, home: &Home<'_>, body: Body<'_>) -> bool {
        let shape = self.leaf.shape();
        let (bucket, size) = (home.bucket, body.size(shape.class));
        let n = entries(bucket.word(0));
        let heap = heap(bucket, n, shape.unit_shift());
        // Slot entries grow upwards from the beginning of the bucket, and objects downwards from
        // its end. Slot entries 0 to n + 1 and the new object must fit in between.
        if SLOT_ENTRY * (n + 2) + size > heap {
            return self.insert_beyond(home, body);
        }
        // Concurrent readers of this leaf may see the following stores in any order. The version
        // is odd until the unlock, and greater afterwards, so they fail to validate.
        self.add(1, (SLOT_ENTRY + size) as isize);
        let slot = NewSlot {
            entries: n,
            tag: home.tag,
            displaced: 0,
            from: heap - size,
            end: heap,
        };
        append(bucket, shape.unit_shift(), slot, body);
        true
    }

    /// Inserts an entry in the first bucket after its home that has room.
    #[inline(never)]
    fn insert_beyond(&mut self, home: &Home<'_>, body: Body<'_>) -> bool {
        let shape = self.leaf.shape();
        let number = self.leaf.number(home.bucket);
        let size = body.size(shape.class);
        let mut at = shape.next(number);
        // Probe linearly. The last bucket is followed by the first.
        while at != number {
            let bucket = self.leaf.bucket(at);
            let n = entries(bucket.word(0));
            let heap = heap(bucket, n, shape.unit_shift());
            if SLOT_ENTRY * (n + 2) + size <= heap {
                self.add(1, (SLOT_ENTRY + size) as isize);
                // Set the overflow bits of all buckets before it, so that a search for this
                // tag doesn't end before it gets here.
                self.set_overflow(number, at, home.tag);
                let slot = NewSlot {
                    entries: n,
                    tag: home.tag,
                    displaced: DISPLACED,
                    from: heap - size,
                    end: heap,
                };
                append(bucket, shape.unit_shift(), slot, body);
                return true;
            }
            at = shape.next(at);
        }
        // No bucket has room. Nothing has been changed.
        false
    }

    /// Sets the overflow bit for this tag in each bucket from `home` up to the one before `at`.
    fn set_overflow(&mut self, home: usize, at: usize, tag: u8) {
        let mut from = home;
        while from != at {
            let bucket = self.leaf.bucket(from);
            bucket.set_word(0, bucket.word(0) | u64::from(eighth(tag)) << 8);
            from = self.leaf.shape().next(from);
        }
    }

    /// Clears overflow bits that are no longer needed, after a displaced entry was removed from
    /// bucket `at`.
    ///
    /// An entry that has overflowed the bucket before `at` is either in `at`, or has overflowed
    /// that, too. So the bucket before keeps the bits of its eighths for which one of the two is
    /// true. If it loses a bit, the same may be true of the bucket before it, and so on.
    fn clear_overflow(&mut self, at: usize) {
        // Walk backwards, from the bucket that lost an entry towards the home buckets.
        let mut at = at;
        loop {
            let before = self.leaf.shape().before(at);
            let (bucket, previous) = (self.leaf.bucket(at), self.leaf.bucket(before));
            // The bits for displaced entries in this bucket, and for those that have overflowed it.
            let needed = bucket.word(0) & OVERFLOW_BITS | displaced(bucket) << 8;
            let (head, kept) = (
                previous.word(0),
                previous.word(0) & (needed | !OVERFLOW_BITS),
            );
            // The bucket before needs all of its bits, so those before it do, too.
            if kept == head {
                return;
            }
            previous.set_word(0, kept);
            at = before;
        }
    }

    /// Removes the entry of a hit. The caller retires its outside object, if it has one.
    #[inline(always)]
    pub(crate) fn remove(&mut self, home: &Home<'_>, hit: &Hit<'_>) {
        self.remove_slot(hit.bucket, hit.slot);
        // The entry was displaced. It may have been the last for which a bucket before it has its
        // overflow bit set.
        if hit.bucket.address() != home.bucket.address() {
            self.clear_overflow(self.leaf.number(hit.bucket));
        }
    }

    /// Removes slot entry `i` of a bucket and its object. Overflow bits stay as they are.
    ///
    /// The last object is moved to the place of the removed one if the two are equally long, which
    /// they mostly are in an index with entries of one kind. Otherwise the objects below move up.
    #[inline(always)]
    fn remove_slot(&mut self, bucket: Bucket<'_>, i: usize) {
        // The object ends where the one before it begins.
        let unit_shift = unit_shift(self.leaf.class());
        let n = entries(bucket.word(0));
        let (from, end) = (
            object_offset(slot_entry(bucket, i), unit_shift),
            heap(bucket, i - 1, unit_shift),
        );
        let gap = end - from;
        self.add(-1, -((SLOT_ENTRY + gap) as isize));
        let mut last_moves = false;
        // If it is the last object, lowering the count is enough.
        if i < n {
            let last = slot_entry(bucket, n);
            let lowest = object_offset(last, unit_shift);
            last_moves = heap(bucket, n - 1, unit_shift) - lowest == gap;
            if last_moves {
                // The last object is equally long: copy it into the gap, and its tag and flags
                // into this slot entry.
                bucket.copy(lowest, from, gap);
                set_slot_entry(bucket, i, (last & !0xFF | from >> unit_shift) as u64);
            } else {
                // The lengths differ: move the objects below up, and the later slot entries down.
                let gap = Gap { from, len: gap };
                close_gap(bucket, i, n, gap, lowest, unit_shift);
            }
        }
        self.remove_mark(bucket, i, n, last_moves);
        bucket.set_word(0, bucket.word(0) - 1);
    }

    /// Removes the chosen entries. Returns the handles of their outside objects, which the caller
    /// retires.
    ///
    /// Entries are numbered over the whole leaf, in the order of buckets and slot entries. `chosen`
    /// is ascending.
    pub(crate) fn remove_chosen(&mut self, chosen: &[u32]) -> SmallVec<[Handle; 4]> {
        let shape = self.leaf.shape();
        let mut handles = SmallVec::new();
        let (mut chosen, mut first) = (chosen, 0);
        for number in 0..shape.buckets as usize {
            let bucket = self.leaf.bucket(number);
            let n = entries(bucket.word(0));
            let next = first + n as u32;
            // Split off those of this bucket, whose entries have the numbers `first..next`.
            let (within, others) = chosen.split_at(chosen.partition_point(|&place| place < next));
            if !within.is_empty() {
                // Collect flags and handles before the slot entries are overwritten.
                let flags = self.flags(number, within, first, &mut handles);
                if within.len() == n {
                    // All entries are removed, so it is enough to set the count to zero. The
                    // overflow bits stay: entries that have overflowed still lie past this
                    // bucket.
                    let bytes = SLOT_ENTRY * n + bucket.len() - heap(bucket, n, shape.unit_shift());
                    self.add(-(n as i32), -(bytes as isize));
                    self.unmark(bucket);
                    bucket.set_word(0, bucket.word(0) & !0xFF);
                } else {
                    // Remove the last one first. `remove_slot` only moves slot entries after the
                    // removed one, which are not chosen or are removed already.
                    for &place in within.iter().rev() {
                        self.remove_slot(bucket, (place - first) as usize + 1);
                    }
                }
                // A displaced entry was removed. It may have been the last for which a bucket
                // before has its overflow bit set.
                if flags & DISPLACED != 0 {
                    self.clear_overflow(number);
                }
            }
            (chosen, first) = (others, next);
        }
        handles
    }

    /// The union of the flags of the chosen entries of a bucket, whose first entry has the number
    /// `first`. Adds the handles of their outside objects to `handles`.
    fn flags(
        &self,
        bucket: usize,
        chosen: &[u32],
        first: u32,
        handles: &mut SmallVec<[Handle; 4]>,
    ) -> u16 {
        let shape = self.leaf.shape();
        let (bytes, mut all) = (self.bytes(), 0);
        // `chosen` ascends, so one pass over the slots finds them all.
        let mut slots = plain::slot_entries(bytes, bucket * shape.bucket(), shape).zip(first..);
        for &place in chosen {
            let Some((SlotBody { slot, from, end }, _)) = slots.find(|&(_, at)| at == place) else {
                break;
            };
            // Bits of tags and offsets are included, which the caller ignores.
            all |= slot;
            if slot & OUTSIDE != 0 {
                handles.push(Handle::from_bits(plain::handle_bits(&bytes[from..end])));
            }
        }
        all
    }

    /// Adds to the contention counter, and returns the new value. The counter is clamped to its
    /// bounds.
    #[inline]
    pub(crate) fn add_contention(&mut self, add: i32) -> i32 {
        let contention = &self.leaf.head().contention;
        // Ordering: Relaxed, see above.
        let sum =
            (contention.load(Relaxed) as i32 + add).clamp(-CONTENTION_BOUND, CONTENTION_BOUND);
        // Ordering: Relaxed, see above.
        contention.store(sum as u32, Relaxed);
        sum
    }
}

/// The overflow bits in a bucket's first word.
const OVERFLOW_BITS: u64 = 0xFF00;

/// The eighths that the tags of a bucket's displaced entries are in.
fn displaced(bucket: Bucket<'_>) -> u64 {
    (1..=entries(bucket.word(0)))
        .map(|i| slot_entry(bucket, i) as u16)
        .filter(|slot| slot & DISPLACED != 0)
        .fold(0, |all, slot| {
            all | u64::from(eighth(((slot & TAG) >> 8) as u8))
        })
}

/// The bytes of an object that is removed.
#[derive(Clone, Copy)]
struct Gap {
    from: usize,
    len: usize,
}

/// Closes the gap that the object of slot entry `i` of `n` leaves. The objects below it, of which
/// the last begins at `lowest`, move up, and the slot entries after `i` follow.
#[inline(never)]
fn close_gap(bucket: Bucket<'_>, i: usize, n: usize, gap: Gap, lowest: usize, unit_shift: u32) {
    // The object's bytes first, and then the slot entries, whose offsets refer to them.
    bucket.move_up(lowest, gap.from, gap.len);
    close_slot(bucket, i, n, (gap.len >> unit_shift) as u64);
}

/// Removes slot entry `i` of `n`. Each slot entry after it moves down by one, and its offset grows
/// by `up` units.
///
/// Four slot entries are moved at a time: a word gets its own upper three and the lowest of the
/// next word.
#[inline]
fn close_slot(bucket: Bucket<'_>, i: usize, n: usize, up: u64) {
    let (mut w, last) = (i / ENTRIES_PER_WORD, n / ENTRIES_PER_WORD);
    let mut word = bucket.word(w);
    // The bits of a word from this slot entry on.
    let bits_from = |slot: usize| u64::MAX << (slot % ENTRIES_PER_WORD * 16);
    // `ours` selects the slot entries that change. In the first word, those below `i` stay.
    let mut ours = bits_from(i);
    while w < last {
        let next = bucket.word(w + 1);
        let moved = (word >> 16 | next << 48) & ours;
        bucket.set_word(
            w,
            word & !ours | moved.wrapping_add(up * (ENTRY_LSBS & ours)),
        );
        (w, word, ours) = (w + 1, next, u64::MAX);
    }
    // In the last word, bits from slot entry `n` on stay: objects may begin there. Slot entry `n`
    // itself is no longer counted.
    ours &= !bits_from(n);
    let moved = word >> 16 & ours;
    bucket.set_word(
        w,
        word & !ours | moved.wrapping_add(up * (ENTRY_LSBS & ours)),
    );
}

/// Lowers the offsets of the slot entries `i` to `n` by `down` units; raises them, if `down` is
/// negative.
#[inline]
fn lower_slots(bucket: Bucket<'_>, i: usize, n: usize, down: u64) {
    for w in i / ENTRIES_PER_WORD..=n / ENTRIES_PER_WORD {
        let mut ours = ENTRY_LSBS;
        if w == i / ENTRIES_PER_WORD {
            ours &= u64::MAX << (i % ENTRIES_PER_WORD * 16);
        }
        if w == n / ENTRIES_PER_WORD {
            ours &= u64::MAX >> ((ENTRIES_PER_WORD - 1 - n % ENTRIES_PER_WORD) * 16);
        }
        // One subtraction changes all offsets of the word. Each new offset fits in its byte, so
        // nothing is borrowed from a neighbour.
        bucket.set_word(w, bucket.word(w).wrapping_sub(down.wrapping_mul(ours)));
    }
}

/// Appends an entry, which has room, to a bucket.
#[inline(always)]
fn append(bucket: Bucket<'_>, unit_shift: u32, slot: NewSlot, body: Body<'_>) {
    let NewSlot {
        entries,
        tag,
        displaced,
        from,
        end,
    } = slot;
    let outside = match body {
        Body::Inside { .. } => 0,
        // The flag says whether the bytes are the object or a handle to it.
        Body::Outside(_) => OUTSIDE,
    };
    // Write the object. Up to sixteen bytes are assembled in registers and stored without a branch.
    match body {
        Body::Inside {
            key,
            value,
            length_prefixed: false,
        } if unit_shift == 0 && end - from <= 16 && end > from => {
            let body = short(key) | short(value) << (8 * (key.len() & 15));
            bucket.store_pair(from, body, end - from);
        }
        _ => write_body(bucket, from, end, unit_shift, body),
    }
    // Write the slot entry, and count it in the bucket's head.
    let flags = outside | displaced;
    let word = (from >> unit_shift) as u64 | u64::from(tag) << 8 | u64::from(flags);
    set_slot_entry(bucket, entries + 1, word);
    bucket.set_word(0, bucket.word(0) + 1);
}

/// Up to 16 bytes as a little-endian number.
#[inline(always)]
fn short(bytes: &[u8]) -> u128 {
    let n = bytes.len();
    if n <= 8 {
        return u128::from(words::little(bytes));
    }
    u128::from(words::first(bytes)) | u128::from(words::last(bytes)) << (8 * (n - 8))
}

/// Writes a body to the bytes from `from` to `end`.
#[inline(never)]
fn write_body(bucket: Bucket<'_>, from: usize, end: usize, unit_shift: u32, body: Body<'_>) {
    // The unlock publishes all of it. So the order of these stores is free.
    let mut writer = Writer::new(bucket.words(), from);
    match body {
        Body::Inside {
            key,
            value,
            length_prefixed,
        } => {
            // With a larger unit, the object begins with the number of unused bytes at its end.
            if unit_shift > 0 {
                let unused = end - from - 1 - body_size(key.len(), value.len(), length_prefixed);
                writer.push(unused as u64, 1);
            }
            if length_prefixed {
                let prefix = LengthPrefix::of(key.len());
                writer.bytes(&prefix.bytes()[..prefix.size]);
            }
            writer.bytes(key);
            writer.bytes(value);
        }
        Body::Outside(handle) => writer.push(handle.bits(), 8),
    }
    writer.finish();
}
