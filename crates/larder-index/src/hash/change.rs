//! What the holder of a leaf's lock may change in its buckets.
//!
//! Invariants, whenever the lock isn't held:
//! 1. Object `i` of a bucket ends where object `i - 1` begins: there are no gaps. So what grows,
//!    shrinks or goes moves all objects below it, and lowers or raises their slot entries.
//! 2. A displaced entry has its eighth of the tags noted in each bucket from its home up to the one
//!    before its own. What is noted may be more, until a displaced entry goes (`forget_passed`).
//! 3. The head's count and bytes are the sums over all buckets (`add`).
//!
//! Each change calls `change`, or `add`: then the unlock makes a new version, and readers that saw
//! a part of it read again.

use crate::contention::CONTENTION_BOUND;
use crate::hash::bucket::{entries, place, slot_entry, Bucket, Home, EACH, ENTRIES_PER_WORD};
use crate::hash::hit::Hit;
use crate::hash::leaf::LockedHashLeaf;
use crate::hash::plain;
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::{self, Writer};
use crate::sync::atomic::Ordering::Relaxed;
use smallvec::SmallVec;

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and the version tells
// readers (see `seqlock`).

/// An entry that is to be stored.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    /// In the bucket: the key, the value, and whether the key's length lies before it.
    Inside(&'a [u8], &'a [u8], bool),
    /// The object is outside.
    Outside(Handle),
}

impl Body<'_> {
    /// Bytes in a bucket of this class, without the slot entry.
    #[inline(always)]
    pub(crate) fn size(&self, class: u8) -> usize {
        match self {
            Body::Inside(key, value, length_prefixed) => {
                object_size(body_size(key.len(), value.len(), *length_prefixed), class)
            }
            Body::Outside(_) => HANDLE,
        }
    }
}

/// Where the objects of a bucket with `n` entries begin.
#[inline(always)]
fn heap(bucket: Bucket<'_>, n: usize, unit: u32) -> usize {
    match n {
        0 => bucket.len(),
        n => place(slot_entry(bucket, n), unit),
    }
}

#[inline(always)]
fn set_slot_entry(bucket: Bucket<'_>, i: usize, slot: u64) {
    let shift = i % ENTRIES_PER_WORD * 16;
    let rest = bucket.word(i / ENTRIES_PER_WORD) & !(0xFFFF << shift);
    bucket.set_word(i / ENTRIES_PER_WORD, rest | slot << shift);
}

/// So many bytes at the most stay unused behind a value that has become shorter, in a bucket where
/// that can be said: they are there when it grows again, and nothing moves.
const SPARE: usize = 8;

impl LockedHashLeaf<'_> {
    /// The value of a hit, in place, while this borrow of the lock lasts.
    #[inline(always)]
    pub(crate) fn value<'a>(&'a self, hit: &Hit<'a>) -> &'a [u8] {
        if hit.outside {
            return self.object(self.view().handle(hit)).value();
        }
        &self.plain(hit.bucket)[hit.from..hit.end]
    }

    /// The handle of a hit, if it is outside.
    #[inline]
    pub(crate) fn handle(&self, hit: &Hit<'_>) -> Option<Handle> {
        hit.outside.then(|| self.view().handle(hit))
    }

    #[inline(always)]
    fn add(&mut self, entries: i32, bytes: isize) {
        let head = self.leaf.head();
        self.change();
        let count = self.leaf.count() as i32 + entries;
        let live = self.leaf.live() as isize + bytes;
        // Ordering: Relaxed, see above.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, see above.
        head.live.store(live as u32, Relaxed);
    }

    /// Overwrites the value of a hit, which is in its bucket, with one of the same length.
    #[inline(always)]
    pub(crate) fn overwrite(&mut self, hit: &Hit<'_>, value: &[u8]) {
        debug_assert!(!hit.outside && hit.value_len() == value.len());
        self.change();
        hit.bucket.store_bytes(hit.from, value);
    }

    /// Puts a value of another length in the place of that of a hit, which is in its bucket: its
    /// key, and the objects below it, move by the difference. False, and nothing changed, if there
    /// is no room, or if the object is to live outside.
    #[inline(never)]
    pub(crate) fn resize(&mut self, hit: &Hit<'_>, value: &[u8]) -> bool {
        let class = self.leaf.class();
        let (unit, bucket, i) = (unit(class), hit.bucket, hit.slot);
        let n = entries(bucket.word(0));
        let (from, end) = (
            place(slot_entry(bucket, i), unit),
            heap(bucket, i - 1, unit),
        );
        let lowest = heap(bucket, n, unit);
        // The byte that says how many are unused.
        let lead = usize::from(unit > 0);
        // A body that fits in the place of the old one, with a few bytes to spare, stays there.
        let body = hit.from - from - lead + value.len();
        let old = end - from;
        let new = match lead > 0 && (body + lead..=body + lead + SPARE).contains(&old) {
            true => old,
            false => object_size(body, class),
        };
        // Room in the bucket, and in the leaf before it is full; nothing was changed so far.
        let (more, most) = (new.saturating_sub(old), self.leaf.bounds().most as usize);
        let free = lowest - SLOT_ENTRY * (n + 1);
        if more > free || self.leaf.live() + more > most || !lives_inside(body, class) {
            return false;
        }
        self.add(0, new as isize - old as isize);
        // The key before the value, and all objects below, move by the difference.
        if new > old {
            bucket.move_down(lowest, hit.from, new - old);
        } else if new < old {
            bucket.move_up(lowest, hit.from, old - new);
        }
        if new != old {
            // The slot entries from this one on say so.
            let down = (new as u64).wrapping_sub(old as u64) as i64 >> unit;
            lower_slots(bucket, i, n, down as u64);
        }
        if lead > 0 {
            bucket.store(end - new, (new - lead - body) as u64, lead);
        }
        // The object still ends at `end`; its key lies as far behind its beginning as before.
        bucket.store_bytes(end - new + (hit.from - from), value);
        true
    }

    /// Inserts an entry. False, and nothing changed, if no bucket has room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, home: &Home<'_>, body: Body<'_>) -> bool {
        let shape = self.leaf.shape();
        let (bucket, size) = (home.bucket, body.size(shape.class));
        let n = entries(bucket.word(0));
        let heap = heap(bucket, n, shape.unit());
        // Slot entries grow up from the bucket's beginning, objects down from its end: slot entries
        // 0 to n + 1 and the object must fit between.
        if SLOT_ENTRY * (n + 2) + size > heap {
            return self.insert_beyond(home, body);
        }
        // From here on readers of this leaf are to read again: the version is odd, and changes with
        // the unlock.
        self.add(1, (SLOT_ENTRY + size) as isize);
        append(
            (bucket, shape.unit()),
            n,
            heap,
            (heap - size, home.tag),
            body,
            0,
        );
        true
    }

    /// As `insert`, where the home bucket has no room.
    #[inline(never)]
    fn insert_beyond(&mut self, home: &Home<'_>, body: Body<'_>) -> bool {
        let shape = self.leaf.shape();
        let number = self.leaf.number(home.bucket);
        let size = body.size(shape.class);
        let mut at = shape.next(number);
        // Linear probing, modulo the number of buckets.
        while at != number {
            let bucket = self.leaf.bucket(at);
            let n = entries(bucket.word(0));
            let heap = heap(bucket, n, shape.unit());
            if SLOT_ENTRY * (n + 2) + size <= heap {
                // The entry will be displaced: all buckets on the way note its eighth of the tags,
                // so that searches go on.
                self.add(1, (SLOT_ENTRY + size) as isize);
                self.pass(number, at, home.tag);
                let (bucket, from) = ((bucket, shape.unit()), heap - size);
                append(bucket, n, heap, (from, home.tag), body, DISPLACED);
                return true;
            }
            at = shape.next(at);
        }
        false
    }

    /// An entry with this tag was passed on from each of the buckets from its home up to the one
    /// that has it.
    fn pass(&mut self, home: usize, at: usize, tag: u8) {
        let mut from = home;
        while from != at {
            let bucket = self.leaf.bucket(from);
            bucket.set_word(0, bucket.word(0) | u64::from(eighth(tag)) << 8);
            from = self.leaf.shape().next(from);
        }
    }

    /// A displaced entry has gone from this bucket. Entries that the bucket before passed on lie
    /// here, or were passed on from here. So that bucket forgets the eighths of the tags of which
    /// neither is left.
    fn forget_passed(&mut self, at: usize) {
        let mut at = at;
        loop {
            let before = self.leaf.shape().before(at);
            let (bucket, other) = (self.leaf.bucket(at), self.leaf.bucket(before));
            let still = bucket.word(0) & PASSED | displaced(bucket) << 8;
            let (head, kept) = (other.word(0), other.word(0) & (still | !PASSED));
            if kept == head {
                return;
            }
            other.set_word(0, kept);
            at = before;
        }
    }

    /// Removes the entry of a hit. Its handle, if any, is the caller's to retire.
    ///
    /// The last object takes its place, if it is as long, as it is among rows of one kind; else
    /// those below it move up.
    #[inline(always)]
    pub(crate) fn remove(&mut self, home: &Home<'_>, hit: &Hit<'_>) {
        self.remove_slot(hit.bucket, hit.slot);
        if hit.bucket.address() != home.bucket.address() {
            self.forget_passed(self.leaf.number(hit.bucket));
        }
    }

    /// Removes the entry of a slot entry. What is known of displaced entries stays as it is.
    #[inline(always)]
    fn remove_slot(&mut self, bucket: Bucket<'_>, i: usize) {
        // The object reaches from its place up to the one before it.
        let unit = unit(self.leaf.class());
        let n = entries(bucket.word(0));
        let (from, end) = (
            place(slot_entry(bucket, i), unit),
            heap(bucket, i - 1, unit),
        );
        let gap = end - from;
        self.add(-1, -((SLOT_ENTRY + gap) as isize));
        if i < n {
            // It isn't the last: the hole is filled by the last object, or closed.
            let last = slot_entry(bucket, n);
            let lowest = place(last, unit);
            if heap(bucket, n - 1, unit) - lowest == gap {
                // Of the same length: the last object is copied over it, and its slot entry
                // replaces this one.
                bucket.copy(lowest, from, gap);
                set_slot_entry(bucket, i, (last & !0xFF | from >> unit) as u64);
            } else {
                // Of another length: what lies below moves up, and the slot entries behind move
                // down by one.
                close(bucket, (i, n), (from, lowest), (gap, unit));
            }
        }
        bucket.set_word(0, bucket.word(0) - 1);
    }

    /// Removes the entries at these places, which ascend, among all entries of the leaf in the
    /// order of buckets and slot entries. Gives the handles of those that are outside, which are
    /// the caller's to retire.
    pub(crate) fn remove_chosen(&mut self, chosen: &[u32]) -> SmallVec<[Handle; 4]> {
        let shape = self.leaf.shape();
        let mut handles = SmallVec::new();
        let (mut chosen, mut first) = (chosen, 0);
        for number in 0..shape.buckets as usize {
            let bucket = self.leaf.bucket(number);
            let n = entries(bucket.word(0));
            let next = first + n as u32;
            // The chosen places of this bucket: they ascend, and `first..next` are its entries.
            let (here, others) = chosen.split_at(chosen.partition_point(|&place| place < next));
            if !here.is_empty() {
                // What the removal needs of the entries is read before they go.
                let marks = self.marks(number, here, first, &mut handles);
                if here.len() == n {
                    // All go: the count is all that changes. What the bucket has passed on stays
                    // noted.
                    let bytes = SLOT_ENTRY * n + bucket.len() - heap(bucket, n, shape.unit());
                    self.add(-(n as i32), -(bytes as isize));
                    bucket.set_word(0, bucket.word(0) & !0xFF);
                } else {
                    // From the last on: a slot entry that is moved to another's place stays.
                    for &place in here.iter().rev() {
                        self.remove_slot(bucket, (place - first) as usize + 1);
                    }
                }
                // A displaced entry went: buckets before may have noted an eighth for it alone.
                if marks & DISPLACED != 0 {
                    self.forget_passed(number);
                }
            }
            (chosen, first) = (others, next);
        }
        handles
    }

    /// All marks of the chosen entries of a bucket, whose first entry is the `first` of the leaf;
    /// adds the handles of those that are outside.
    fn marks(
        &self,
        bucket: usize,
        chosen: &[u32],
        first: u32,
        handles: &mut SmallVec<[Handle; 4]>,
    ) -> u16 {
        let shape = self.leaf.shape();
        let (bytes, mut all) = (self.bytes(), 0);
        let mut slots = plain::slot_entries(bytes, bucket * shape.bucket(), shape).zip(first..);
        for &place in chosen {
            let Some(((slot, from, end), _)) = slots.find(|&(_, at)| at == place) else {
                break;
            };
            all |= slot;
            if slot & OUTSIDE != 0 {
                handles.push(Handle::from_bits(plain::handle_bits(&bytes[from..end])));
            }
        }
        all
    }

    /// Adds to the contention counter, within bounds, and returns it.
    #[inline(always)]
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

/// The part of a bucket's first word that says which eighths of the tags were passed on.
const PASSED: u64 = 0xFF00;

/// The eighths of the tags of a bucket's displaced entries.
fn displaced(bucket: Bucket<'_>) -> u64 {
    (1..=entries(bucket.word(0)))
        .map(|i| slot_entry(bucket, i) as u16)
        .filter(|slot| slot & DISPLACED != 0)
        .fold(0, |all, slot| {
            all | u64::from(eighth(((slot & TAG) >> 8) as u8))
        })
}

/// Takes the object of slot entry `i` of `n`, which begins at `from`, out of a bucket: those below
/// it, from `lowest` on, move up by its `gap` bytes, and their places with them.
#[inline(never)]
fn close(
    bucket: Bucket<'_>,
    (i, n): (usize, usize),
    (from, lowest): (usize, usize),
    (gap, unit): (usize, u32),
) {
    bucket.move_up(lowest, from, gap);
    close_slot(bucket, i, n, (gap >> unit) as u64);
}

/// Takes slot entry `i` of `n` out: those behind it move down by one, and each says that its object
/// lies `up` units higher.
#[inline(always)]
fn close_slot(bucket: Bucket<'_>, i: usize, n: usize, up: u64) {
    let (mut w, last) = (i / ENTRIES_PER_WORD, n / ENTRIES_PER_WORD);
    let mut word = bucket.word(w);
    // Behind the last slot entry there may be objects.
    let behind = |slot: usize| u64::MAX << (slot % ENTRIES_PER_WORD * 16);
    let mut ours = behind(i);
    while w < last {
        let next = bucket.word(w + 1);
        let moved = (word >> 16 | next << 48) & ours;
        bucket.set_word(w, word & !ours | moved.wrapping_add(up * (EACH & ours)));
        (w, word, ours) = (w + 1, next, u64::MAX);
    }
    // The last word: slot entry n itself stays, whatever it says is no entry.
    ours &= !behind(n);
    let moved = word >> 16 & ours;
    bucket.set_word(w, word & !ours | moved.wrapping_add(up * (EACH & ours)));
}

/// The objects of the slot entries `i` to `n` lie `down` units lower now; higher, if that is
/// negative.
#[inline(always)]
fn lower_slots(bucket: Bucket<'_>, i: usize, n: usize, down: u64) {
    for w in i / ENTRIES_PER_WORD..=n / ENTRIES_PER_WORD {
        let mut ours = EACH;
        if w == i / ENTRIES_PER_WORD {
            ours &= u64::MAX << (i % ENTRIES_PER_WORD * 16);
        }
        if w == n / ENTRIES_PER_WORD {
            ours &= u64::MAX >> ((ENTRIES_PER_WORD - 1 - n % ENTRIES_PER_WORD) * 16);
        }
        // Each place stays in its byte: so none borrows from its neighbour.
        bucket.set_word(w, bucket.word(w).wrapping_sub(down.wrapping_mul(ours)));
    }
}

/// Makes a body, which has room, the last entry of a bucket of `n`, whose objects began at `end`
/// and now do at `from`.
#[inline(always)]
fn append(
    (bucket, unit): (Bucket<'_>, u32),
    n: usize,
    end: usize,
    (from, tag): (usize, u8),
    body: Body<'_>,
    marks: u16,
) {
    let mark = match body {
        Body::Inside(..) => 0,
        Body::Outside(_) => OUTSIDE,
    };
    // Up to sixteen bytes are made in registers and written without a branch.
    match body {
        Body::Inside(key, value, false) if unit == 0 && end - from <= 16 && end > from => {
            let own = short(key) | short(value) << (8 * (key.len() & 15));
            bucket.store_pair(from, own, end - from);
        }
        _ => write_body(bucket, from, end, unit, body),
    }
    // The slot entry counts once the bucket's head says that there is one more.
    let slot = (from >> unit) as u64 | u64::from(tag) << 8 | u64::from(mark | marks);
    set_slot_entry(bucket, n + 1, slot);
    bucket.set_word(0, bucket.word(0) + 1);
}

/// Up to 16 bytes, low ones first; zeros above.
#[inline(always)]
fn short(bytes: &[u8]) -> u128 {
    let n = bytes.len();
    if n <= 8 {
        return u128::from(words::little(bytes));
    }
    u128::from(words::first(bytes)) | u128::from(words::last(bytes)) << (8 * (n - 8))
}

/// Writes a body to the room between `from` and `end`.
#[inline(never)]
fn write_body(bucket: Bucket<'_>, from: usize, end: usize, unit: u32, body: Body<'_>) {
    let mut writer = Writer::new(bucket.words(), from);
    match body {
        Body::Inside(key, value, length_prefixed) => {
            if unit > 0 {
                let unused = end - from - 1 - body_size(key.len(), value.len(), length_prefixed);
                writer.push(unused as u64, 1);
            }
            if length_prefixed {
                let (bytes, len) = encode_key_len(key.len());
                writer.bytes(&bytes[..len]);
            }
            writer.bytes(key);
            writer.bytes(value);
        }
        Body::Outside(handle) => writer.push(handle.bits(), 8),
    }
    writer.finish();
}
