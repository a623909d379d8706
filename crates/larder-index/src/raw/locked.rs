//! What the holder of a leaf's lock may do.

use super::leaf::{
    head_of, write_record, Leaf, Locked, Stored, HANDLE_RECORD, MOST_INLINE, PLACE_BITS, SLOT,
};
use super::outside::Handle;
use super::view::View;
use super::words::{Torn, Writer};
use crate::run::Run;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and the version tells readers (see the head of `raw`).

impl<'g> Locked<'g> {
    /// The leaf.
    pub(crate) fn leaf(&self) -> Leaf<'g> {
        self.leaf
    }

    /// A look that needs no check.
    pub(crate) fn view(&self) -> View<'g> {
        View::new(self.leaf, None)
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

    /// Where prefix + `suffix` is or would be.
    pub(crate) fn search(&self, suffix: &[u8]) -> (usize, bool) {
        self.view()
            .search(suffix)
            .expect("the lock's holder reads nothing torn")
    }

    /// Where prefix + `suffix` would be, if it is beside the last insert of a run of them.
    pub(crate) fn beside_last(&self, suffix: &[u8]) -> Option<usize> {
        // Ordering: Relaxed, see above.
        let now = self.leaf.head().adapt.load(Relaxed);
        if now >> 32 & 0xFFFF == 0 {
            return None;
        }
        let i = (now >> 49) as usize + usize::from(!self.descends());
        let belongs = i <= self.len() && self.view().belongs_at(i, suffix).is_ok_and(|b| b);
        belongs.then_some(i)
    }

    /// The value of entry `i`, in place, while this borrow of the lock lasts.
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        // SAFETY: the lock is held; writing takes `&mut self`, which this borrow excludes.
        unsafe { self.view().value_in_place(i) }
    }

    /// The handle of entry `i`, if it is outside.
    pub(crate) fn handle(&self, i: usize) -> Option<Handle> {
        self.view()
            .handle(i)
            .expect("the lock's holder reads nothing torn")
    }

    /// Inserts an entry before slot `i`. False, and nothing changed, if there is no room.
    pub(crate) fn put_entry(&mut self, i: usize, suffix: &[u8], stored: Stored<'_>) -> bool {
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        if (n + 1) * SLOT + size > heap {
            return false;
        }
        self.changed = true;
        let slots = &self.leaf.words()[i..=n];
        shift_up(slots);
        self.write(i, suffix, stored, heap - size);
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
        let (words, samples) = (self.leaf.words(), self.leaf.samples());
        // Ordering: Relaxed, see above.
        let mut spacing = head.spacing.load(Relaxed);
        let mut first = i.saturating_sub(1) >> spacing;
        if n.saturating_sub(1) >> spacing > samples.len() && !samples.is_empty() {
            while (n - 1) >> spacing > samples.len() {
                spacing += 1;
            }
            first = 0;
            // Ordering: Relaxed, see above.
            head.spacing.store(spacing, Relaxed);
        }
        let last = (n.saturating_sub(1) >> spacing).min(samples.len());
        for k in first..last {
            // Ordering: Relaxed, both, see above.
            let slot = words[(k + 1) << spacing].load(Relaxed);
            samples[k].store((slot >> 32) as u32, Relaxed);
        }
    }

    /// Replaces the record of entry `i`. False, and nothing changed, if there is no room. The old handle, if any, is the caller's to retire.
    pub(crate) fn put_again(&mut self, i: usize, suffix: &[u8], stored: Stored<'_>) -> bool {
        let (n, heap, size) = (self.len(), self.heap(), stored.record(suffix.len()));
        let old = self.view().record_len(i);
        if old == size {
            // The same room will do.
            // Ordering: Relaxed, see above.
            let slot = self.leaf.words()[i].load(Relaxed);
            let place = slot & ((1 << PLACE_BITS) - 1);
            self.changed = true;
            self.write(i, suffix, stored, place as usize);
            return true;
        }
        if n * SLOT + size > heap {
            return false;
        }
        self.changed = true;
        self.write(i, suffix, stored, heap - size);
        self.set(n, heap - size, self.live() + size - old);
        true
    }

    fn write(&mut self, i: usize, suffix: &[u8], stored: Stored<'_>, place: usize) {
        let words = self.leaf.words();
        let mut writer = Writer::new(words, place);
        write_record(&mut writer, suffix, stored);
        writer.finish();
        // Ordering: Relaxed, see above.
        words[i].store(head_of(suffix) | place as u64, Relaxed);
    }

    /// Removes entry `i`. Its handle, if any, is the caller's to retire.
    pub(crate) fn remove(&mut self, i: usize) {
        let (n, size) = (self.len(), self.view().record_len(i));
        self.changed = true;
        let slots = &self.leaf.words()[i..n];
        for k in 1..slots.len() {
            // Ordering: Relaxed, both, see above.
            slots[k - 1].store(slots[k].load(Relaxed), Relaxed);
        }
        // A leaf without entries has all its room again.
        let heap = if n == 1 {
            self.leaf.capacity()
        } else {
            self.heap()
        };
        self.set(n - 1, heap, self.live() - size);
        self.sample(i);
    }

    /// Moves all records together, so that all room is in one piece.
    pub(crate) fn compact(&mut self, run: &mut Run) {
        let n = self.len();
        run.clear();
        self.collect_all(run);
        let prefix = self.leaf.prefix_len();
        self.changed = true;
        let (mut heap, mut live) = (self.leaf.capacity(), 0);
        for i in 0..n {
            let (suffix, stored) = (&run.position(i)[prefix..], run.stored(i));
            let size = stored.record(suffix.len());
            heap -= size;
            live += size;
            self.write(i, suffix, stored, heap);
        }
        self.set(n, heap, live);
    }

    /// Appends all entries to the run, outside objects as handles.
    pub(crate) fn collect_all(&self, run: &mut Run) {
        let view = self.view();
        for i in 0..view.len() {
            let done: Result<(), Torn> = view.collect(i, run);
            done.expect("the lock's holder reads nothing torn");
        }
    }

    /// Adds to the contention counter, within bounds, and returns it.
    pub(crate) fn contention(&mut self, add: i32) -> i32 {
        const BOUND: i32 = 20_000;
        let adapt = &self.leaf.head().adapt;
        // Ordering: Relaxed, see above.
        let now = adapt.load(Relaxed);
        let sum = (now as u32 as i32 + add).clamp(-BOUND, BOUND);
        // Ordering: Relaxed, see above.
        adapt.store(now & !0xFFFF_FFFF | u64::from(sum as u32), Relaxed);
        sum
    }

    /// Notes that an insert went to slot `i`, and returns how many in a row went each beside the one before, on the same side.
    ///
    /// The note: 15 bits of where the last one went, a bit that is set when the run descends, 16 bits of its length.
    pub(crate) fn insert_run(&mut self, i: usize) -> usize {
        const PLACE: u64 = 0x7FFF;
        let adapt = &self.leaf.head().adapt;
        // Ordering: Relaxed, see above.
        let now = adapt.load(Relaxed);
        let (last, run) = (now >> 49, (now >> 32 & 0xFFFF) as usize);
        let up = i as u64 & PLACE == (last + 1) & PLACE;
        let down = i as u64 & PLACE == last;
        // The side of a run is what its second insert says.
        let run = match run {
            0 if up || down => 1,
            n if n > 0 && (if self.descends() { down } else { up }) => (n + 1).min(0xFFFF),
            _ => 0,
        };
        let descends = if run == 1 { down } else { self.descends() };
        let noted = (i as u64 & PLACE) << 49 | u64::from(descends) << 48 | (run as u64) << 32;
        // Ordering: Relaxed, see above.
        adapt.store(now & 0xFFFF_FFFF | noted, Relaxed);
        run
    }

    /// Whether the run of inserts that is being noted goes down.
    pub(crate) fn descends(&self) -> bool {
        // Ordering: Relaxed, see above.
        self.leaf.head().adapt.load(Relaxed) >> 48 & 1 == 1
    }
}

/// Moves all slots but the last one up, by one.
#[inline]
fn shift_up(slots: &[AtomicU64]) {
    let mut left = slots;
    while let [before @ .., a, b, c, d, e] = left {
        // Ordering: Relaxed, all, see above.
        let four = [a, b, c, d].map(|slot| slot.load(Relaxed));
        for (slot, own) in [b, c, d, e].into_iter().zip(four) {
            // Ordering: Relaxed, see above.
            slot.store(own, Relaxed);
        }
        left = &left[..before.len() + 1];
    }
    for k in (1..left.len()).rev() {
        // Ordering: Relaxed, both, see above.
        left[k].store(left[k - 1].load(Relaxed), Relaxed);
    }
}

/// Whether an entry must live outside, in leaves of at most `most` bytes.
pub(crate) fn lives_outside(suffix: usize, value: usize, most: usize) -> bool {
    let bound = (most / 8).clamp(HANDLE_RECORD, MOST_INLINE);
    suffix > MOST_INLINE || value > MOST_INLINE || suffix + value > bound
}
