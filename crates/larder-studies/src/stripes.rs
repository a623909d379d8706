//! Striped locks: a hash table in parts, each with a lock. So are `set`, `bag` and `duplicate_bag`
//! with write concurrency, since R11B.
//!
//! ```text
//!   layout: lock, in reader groups      every operation takes it for reading
//!      |
//!      +--> [ lock | table 00.. ] [ lock | table 01.. ] [ lock | table 10.. ] [ lock | table 11..
//!      ]
//! ```
//!
//! Invariants:
//! * **ST1** There are 2^bits parts. Part i has the entries whose hash begins with the bits of i.
//!   So the parts, in the order of their numbers, are in the order of positions.
//! * **ST2** A thread that uses a part holds the lock of the layout for reading, and the lock of
//!   the part. A thread that replaces the parts holds the lock of the layout for writing.
//!
//! *auto.* Each part has a contention count, as in OTP 25. A writer that had to wait adds 100. One
//! that didn't subtracts 1. Above 1,000 the number of locks doubles, below −10,000,000 it halves.
//! There are 64 to 8,192.
//!
//! A fixed table keeps its number of locks, and each part is fixed (`linear_hash`).
//!
//! Linearisation point of an operation: any instant at which it holds the lock of its part.
//!
//! Source: OTP's `erl_db_hash`. Deviation: in OTP, all locks are for one table, whose buckets are
//! split in one common order. Here each lock has a table of its own, which grows by itself. So a
//! change of the number of locks moves all entries, in O(n). OTP only changes locks.
//!
//! When not to use it: for many small tables, since each lock takes more than two cache lines; for
//! many readers, since each of them writes to a lock.

use crate::counts::Counts;
use crate::linear_hash::LinearHash;
use crate::position::hash_of;
use crate::raw::group_lock::GroupLock;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Sequential, Visitor};
use crate::word::Word;
use crate::Cut;
use crossbeam_utils::CachePadded;
use larder_index::sync::RwLock;
use larder_index::{Guard, Start, Stats};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Added to a part's count by a writer that had to wait.
const CONTENDED: i64 = 100;
/// Added by a writer that didn't have to wait.
const QUIET: i64 = -1;
/// The number of locks doubles above this count.
const DOUBLE: i64 = 1_000;
/// The number of locks halves below this count.
const HALVE: i64 = -10_000_000;
const LEAST_BITS: u32 = 6;
const MOST_BITS: u32 = 13;

struct Stripe<W> {
    table: RwLock<LinearHash<W>>,
    contention: AtomicI64,
}

struct Layout<W> {
    bits: u32,
    /// Whether the table is fixed. If so, the layout doesn't change.
    frozen: bool,
    parts: Box<[CachePadded<Stripe<W>>]>,
}

impl<W: Word> Layout<W> {
    fn new(bits: u32, chain: usize) -> Self {
        let part = |_| {
            CachePadded::new(Stripe {
                table: RwLock::new(LinearHash::new(chain, bits)),
                contention: AtomicI64::new(0),
            })
        };
        Layout {
            bits,
            frozen: false,
            parts: (0..1usize << bits).map(part).collect(),
        }
    }

    fn index(&self, hash: u64) -> usize {
        match self.bits {
            0 => 0,
            bits => (hash >> (u64::BITS - bits)) as usize,
        }
    }

    /// The memory of all parts' tables. The layout is locked for writing.
    fn tables(&mut self) -> usize {
        let parts = self.parts.iter_mut();
        parts.map(|part| part.table.get_mut().memory()).sum()
    }
}

/// A linear hash table in parts, with a lock for each part.
pub struct Stripes<W> {
    layout: GroupLock<Layout<W>>,
    chain: usize,
    adapts: bool,
    contended: AtomicU64,
    doubled: AtomicU64,
    halved: AtomicU64,
    /// The memory of the parts' tables. There may be thousands, and it is asked for again and again
    /// while a table is freed.
    counts: Counts,
    /// The part at which the next call of [`Scheme::pop`] continues.
    popped: AtomicUsize,
}

impl<W: Word> Stripes<W> {
    /// A table with 2^`bits` locks. If `bits` is `None`, their number adapts to the contention.
    pub fn new(bits: Option<u32>, chain: usize, groups: usize) -> Self {
        let mut layout = Layout::new(bits.unwrap_or(LEAST_BITS), chain);
        let counts = Counts::default();
        counts.add(0, layout.tables() as isize);
        Stripes {
            layout: GroupLock::new(layout, groups),
            chain,
            adapts: bits.is_none(),
            contended: AtomicU64::new(0),
            doubled: AtomicU64::new(0),
            halved: AtomicU64::new(0),
            counts,
            popped: AtomicUsize::new(0),
        }
    }

    /// Counts the memory of a table, or of all, that was `before` and is `now`.
    fn count_memory(&self, before: usize, now: usize) {
        self.counts.add(0, now.wrapping_sub(before) as isize);
    }

    /// Counts a write, which had to wait or not. Returns whether the number of locks should change.
    fn count(&self, part: &Stripe<W>, bits: u32, contended: bool) -> bool {
        if contended {
            // Ordering: Relaxed, a statistic.
            self.contended.fetch_add(1, Relaxed);
        }
        if !self.adapts {
            return false;
        }
        let by = if contended { CONTENDED } else { QUIET };
        // Ordering: Relaxed, a hint. `adapt` checks again with the layout locked.
        let now = part.contention.fetch_add(by, Relaxed) + by;
        now > DOUBLE && bits < MOST_BITS || now < HALVE && bits > LEAST_BITS
    }

    /// Doubles or halves the number of locks, if a part's count still asks for it.
    fn adapt(&self) {
        let (mut layout, _) = self.layout.write();
        if layout.frozen {
            return;
        }
        // Ordering: Relaxed, the lock of the layout excludes all other threads.
        let counts = layout
            .parts
            .iter()
            .map(|part| part.contention.load(Relaxed));
        let (least, most) = counts.fold((0, 0), |(a, b), n| (n.min(a), n.max(b)));
        let bits = layout.bits;
        // If several writers call this at once, only the first one changes the layout. The counts
        // of the new layout are 0, so the others return.
        let new = if most > DOUBLE && bits < MOST_BITS {
            // Ordering: Relaxed, a statistic.
            self.doubled.fetch_add(1, Relaxed);
            bits + 1
        } else if least < HALVE && bits > LEAST_BITS {
            // Ordering: Relaxed, a statistic.
            self.halved.fetch_add(1, Relaxed);
            bits - 1
        } else {
            return;
        };
        // Move all entries to tables of a new layout.
        let before = layout.tables();
        let mut moved = Layout::new(new, self.chain);
        for part in &mut layout.parts {
            for (position, word) in part.table.get_mut().drain() {
                let index = moved.index(hash_of(&position));
                moved.parts[index].table.get_mut().insert(&position, word);
            }
        }
        self.count_memory(before, moved.tables());
        *layout = moved;
    }
}

impl<W: Word> Scheme<W> for Stripes<W> {
    fn read(&self, _guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        let layout = self.layout.read();
        let part = &layout.parts[layout.index(hash_of(position))];
        f(part.table.read().get(position));
    }

    fn change(&self, _guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        let (contended, adapt) = {
            let layout = self.layout.read();
            let part = &layout.parts[layout.index(hash_of(position))];
            // The lock of the layout is held until the change is made. So the parts aren't replaced
            // meanwhile. Try the part's lock first, to find out whether another thread holds it.
            let (mut table, contended) = match part.table.try_write() {
                Some(table) => (table, false),
                None => (part.table.write(), true),
            };
            let before = table.memory();
            table.change(position, &mut |word| f(word.map_or(Old::Absent, Old::Mine)));
            self.count_memory(before, table.memory());
            // The layout of a fixed table can't change. Don't take its lock for nothing.
            let adapt = self.count(part, layout.bits, contended) && !layout.frozen;
            (contended, adapt)
        };
        // The lock of the layout has been released. `adapt` takes it for writing.
        if adapt {
            self.adapt();
        }
        contended
    }

    fn walk(&self, _guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // The layout stays locked for reading, so the number of parts can't change under the walk.
        let layout = self.layout.read();
        let forward = cut.is_forward();
        let edge = if forward { 0 } else { u64::MAX };
        let mut index = layout.index(cut.bytes().map_or(edge, hash_of));
        let mut cut = cut;
        let mut visited = false;
        loop {
            // The entries of a part are read under its lock, so they are of one instant. Those of
            // the next part would be of another, and are the next batch.
            let ended = layout.parts[index].table.read().walk(cut, &mut |p, w| {
                visited = true;
                f(p, w)
            });
            let last = if forward { layout.parts.len() - 1 } else { 0 };
            if !ended || index == last {
                return ended;
            }
            // Something was visited under the lock of another part. The caller continues with
            // another batch.
            if visited {
                return false;
            }
            // This part had nothing for the walk. Continue with the next one, from its edge.
            index = if forward { index + 1 } else { index - 1 };
            cut = Cut::new(Start::Edge, cut.direction());
        }
    }

    fn pop(&self, _guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let layout = self.layout.read();
        let mut left = limit;
        // Ordering, of all three: Relaxed, it is this thread's alone: nobody else writes.
        let from = self.popped.load(Relaxed);
        for (index, part) in layout.parts.iter().enumerate().skip(from) {
            // One part at a time, so that readers of the others don't wait.
            let mut table = part.table.write();
            let before = table.memory();
            let is_empty = table.pop_some(&mut left, f);
            self.count_memory(before, table.memory());
            if !is_empty {
                self.popped.store(index, Relaxed);
                return false;
            }
        }
        // A later call begins at the first part, and finds entries of later inserts.
        self.popped.store(0, Relaxed);
        true
    }

    fn memory(&self, _guard: &Guard) -> usize {
        let layout = self.layout.read();
        self.layout.memory() + size_of_val(&*layout.parts) + self.counts.bytes()
    }

    fn stats(&self, _guard: &Guard) -> Stats {
        let layout = self.layout.read();
        let mut sum = Stats::default();
        for part in &layout.parts {
            part.table.read().add_to(&mut sum);
        }
        Stats {
            leaves: layout.parts.len(),
            // Ordering, of these three: Relaxed, statistics.
            splits: self.doubled.load(Relaxed),
            merges: self.halved.load(Relaxed),
            contended: self.contended.load(Relaxed),
            ..sum
        }
    }

    fn freeze(&self, on: bool) {
        let (mut layout, _) = self.layout.write();
        layout.frozen = on;
        let (parts, before) = (layout.parts.len(), layout.tables());
        for part in &mut layout.parts {
            part.table.get_mut().freeze_part(on, parts);
        }
        self.count_memory(before, layout.tables());
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::Act;
    use larder_index::{pin, Direction};
    use std::sync::Barrier;

    fn position(n: u64) -> [u8; 14] {
        let mut position = [0; 14];
        position[..6].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..6]);
        position[6..].copy_from_slice(&n.to_be_bytes());
        position
    }

    fn put(table: &Stripes<u64>, n: u64) -> bool {
        table.change(&pin(), &position(n), &mut |_| Act::Put(n))
    }

    /// Lets a writer of this key wait for another, 13 times: enough for the locks to double.
    fn contend(table: &Stripes<u64>, n: u64) {
        let mut waited = 0;
        while waited < 13 {
            let inside = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    table.change(&pin(), &position(n), &mut |_| {
                        inside.wait();
                        std::thread::sleep(std::time::Duration::from_millis(3));
                        Act::Keep
                    });
                });
                inside.wait();
                // On a busy machine this thread may come after the other has left.
                waited += u32::from(put(table, n));
            });
        }
    }

    fn all(table: &Stripes<u64>) -> Vec<u64> {
        let (mut all, mut last, guard) = (Vec::new(), None, pin());
        loop {
            let start = last
                .as_ref()
                .map_or(Start::Edge, |p: &[u8; 14]| Start::Past(p));
            let ended = table.walk(&guard, Cut::new(start, Direction::Forward), &mut |_, n| {
                all.push(*n);
                true
            });
            last = all.last().map(|n| position(*n));
            if ended {
                return all;
            }
        }
    }

    /// Writers that are made to meet double the locks; a part that was left alone for long halves
    /// them.
    #[test]
    fn auto_doubles_and_halves() {
        let table = Stripes::new(None, 1, 1);
        (0..1000).for_each(|n| assert!(!put(&table, n)));
        let before = all(&table);
        assert_eq!((before.len(), table.stats(&pin()).leaves), (1000, 64));
        contend(&table, 7);
        let stats = table.stats(&pin());
        assert!(stats.leaves == 128 && stats.splits == 1, "{stats:?}");
        assert_eq!(all(&table), before);
        // Ordering: Relaxed, in a test. Ten million quiet writes are simulated.
        table.layout.read().parts[0]
            .contention
            .store(HALVE, Relaxed);
        (0..1000).for_each(|n| assert!(!put(&table, n)));
        let stats = table.stats(&pin());
        assert!(stats.leaves == 64 && stats.merges == 1, "{stats:?}");
        assert_eq!(all(&table), before);
    }

    /// A fixed table's layout stays as it is: who can't change it doesn't wait for all others to
    /// see that. It changes with the first write afterwards.
    #[test]
    fn writers_of_a_fixed_table_wait_for_no_reader() {
        let table = Stripes::new(None, 1, 1);
        table.freeze(true);
        contend(&table, 7);
        let reading = table.layout.read();
        let (said, done) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let table = &table;
            scope.spawn(move || {
                put(table, 7);
                said.send(()).expect("the test waits");
            });
            let contended = done.recv_timeout(std::time::Duration::from_secs(30));
            drop(reading);
            assert!(contended.is_ok(), "a write contended for a reader");
        });
        assert_eq!(table.stats(&pin()).leaves, 64);
        table.freeze(false);
        put(&table, 7);
        assert_eq!(table.stats(&pin()).leaves, 128);
    }

    /// The memory that is counted is that of all parts, whatever is done.
    #[test]
    fn the_memory_of_parts_is_counted() {
        let table = Stripes::new(None, 1, 1);
        let check = || {
            let counts = Counts::default();
            counts.contended();
            let tables = table.layout.write().0.tables();
            let counted = table.counts.bytes();
            assert!((tables..=tables + counts.bytes()).contains(&counted));
        };
        check();
        (0..2_000).for_each(|n| assert!(!put(&table, n)));
        check();
        table.freeze(true);
        for n in 0..1_500 {
            table.change(&pin(), &position(n), &mut |_| Act::Remove);
        }
        check();
        table.freeze(false);
        check();
        contend(&table, 7);
        assert_eq!(table.stats(&pin()).leaves, 128);
        check();
        while !table.pop(&pin(), 100, &mut drop) {}
        check();
        assert!(all(&table).is_empty());
    }

    /// Parts that were emptied are not locked again, so a table of many parts is emptied in time
    /// that is linear in it.
    #[test]
    fn parts_are_emptied_once() {
        let table = Stripes::new(Some(4), 1, 1);
        (0..1000).for_each(|n| assert!(!put(&table, n)));
        let is_empty = |part: usize| table.layout.read().parts[part].table.read().is_empty();
        while !is_empty(0) {
            assert!(!table.pop(&pin(), 10, &mut drop));
        }
        // The part is looked at once more at most.
        assert!(!table.pop(&pin(), 10, &mut drop));
        let layout = table.layout.read();
        let reading = layout.parts[0].table.read();
        let (said, done) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let table = &table;
            scope.spawn(move || {
                table.pop(&pin(), 10, &mut drop);
                said.send(()).expect("the test waits");
            });
            let popped = done.recv_timeout(std::time::Duration::from_secs(30));
            drop(reading);
            assert!(popped.is_ok(), "an empty part was locked");
        });
        drop(layout);
        while !table.pop(&pin(), 10, &mut drop) {}
        assert!(all(&table).is_empty());
        assert!(!put(&table, 7));
        assert!(table.pop(&pin(), 10, &mut drop));
    }

    #[test]
    fn fixed_numbers_stay() {
        for bits in [0, 4, 13] {
            let table = Stripes::new(Some(bits), 6, 1);
            (0..300).for_each(|n| assert!(!put(&table, n)));
            (0..15).for_each(|_| contend(&table, 7));
            assert_eq!(table.stats(&pin()).leaves, 1 << bits);
            assert_eq!(all(&table).len(), 300);
        }
    }
}
