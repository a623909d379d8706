//! An index that others override: what a snapshot reads, and a transaction.
//!
//! ```text
//!  base        a 1   c 3   d 4   f 6        the objects as they are now
//!  overrides         c 2   d –   e 5        an undo index, as of the snapshot's number
//!  merged      a 1   c 2   e 5   f 6
//! ```
//!
//! Both lie in the same order, so a scan is a merge of two scans.
//!
//! Invariant: the base is read before the overrides. A write puts its override before its change
//! can be seen, so what the base shows of a later time is overridden when the overrides are read.
//!
//! # Steps of a scan
//!
//! 1. Read a batch of the base, which covers the positions up to its `resume`.
//! 2. Read the overrides of those positions. If there are many, the batch ends behind one of them.
//! 3. If there is none, the batch is what was read. Else merge: an entry whose key is overridden
//!    gives way to the override's.
//! 4. If nothing is left, go on behind the batch.

use super::history::{History, Snapshot};
use super::undo::{self, Listed, Override};
use crate::index::Index;
use larder_index::{
    Batch, Direction, Guard, Key, Multi, Objects, Start, Stats, Unique, Updater, Values,
};
use larder_term::hash::Seed;
use std::sync::{Arc, OnceLock};

/// Once a batch has so many keys that are overridden, it ends.
const MOST: usize = 64;

/// What overrides an index.
pub(crate) struct Overrides {
    source: Source,
    /// The number as of which records are read.
    number: u64,
    /// How keys are hashed; none in an ordered_set.
    seed: Option<Seed>,
}

/// Where overrides are.
enum Source {
    /// In the undo index of a snapshot, which is live as long as this.
    Snapshot(Snapshot),
    /// In the undo index of a snapshot that somebody else keeps.
    History(Arc<History>),
    /// In an index of their own.
    Writes(Arc<dyn Unique>),
}

impl Overrides {
    /// What a snapshot sees.
    pub(crate) fn of_snapshot(snapshot: Snapshot, seed: Option<Seed>) -> Self {
        Overrides {
            number: snapshot.number(),
            source: Source::Snapshot(snapshot),
            seed,
        }
    }

    /// What a snapshot with this number sees, which the caller keeps.
    pub(crate) fn of_history(history: Arc<History>, number: u64, seed: Option<Seed>) -> Self {
        Overrides {
            source: Source::History(history),
            number,
            seed,
        }
    }

    /// What somebody writes, who sees every record.
    pub(crate) fn of_writes(writes: Arc<dyn Unique>, seed: Option<Seed>) -> Self {
        Overrides {
            source: Source::Writes(writes),
            number: 0,
            seed,
        }
    }

    /// The index of the overrides, if there is one.
    #[inline]
    fn index(&self) -> Option<&dyn Unique> {
        match &self.source {
            Source::Snapshot(snapshot) => snapshot.history.undo(),
            Source::History(history) => history.undo(),
            Source::Writes(writes) => Some(&**writes),
        }
    }

    /// Whether they stay as they are.
    fn are_fixed(&self) -> bool {
        !matches!(self.source, Source::Writes(_))
    }

    /// What a record of that index says; None if it overrides nothing.
    #[inline]
    fn read<'r>(&self, record: &'r [u8]) -> Option<Override<'r>> {
        undo::as_of(record, self.number)
    }

    /// Calls `f` with what overrides a key; None if nothing does.
    #[inline]
    fn with<R>(&self, guard: &Guard, key: Key<'_>, f: impl FnOnce(Option<Override<'_>>) -> R) -> R {
        let Some(index) = self.index() else {
            return f(None);
        };
        let mut record = Vec::new();
        let there = index.get(guard, key, &mut record);
        f(there.then(|| self.read(&record)).flatten())
    }

    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.seed.as_ref().map_or(0, |seed| seed.hash(bytes)),
        }
    }
}

/// An index and what overrides it.
pub(crate) struct Merged<I: ?Sized> {
    base: Arc<I>,
    overrides: Overrides,
    /// The number of entries, once it was asked for.
    len: OnceLock<usize>,
}

/// The index of a snapshot.
pub(crate) fn merge(base: Index, overrides: Overrides) -> Index {
    let len = OnceLock::new();
    match base {
        Index::Unique(base) => Index::Unique(Arc::new(Merged {
            base,
            overrides,
            len,
        })),
        Index::Multi(base) => Index::Multi(Arc::new(Merged {
            base,
            overrides,
            len,
        })),
    }
}

/// What a merge asks of either kind of index.
pub(crate) trait Entries {
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch);
    /// The position of entry `i`, whose key is `key`.
    fn entry_position(&self, batch: &Batch, i: usize, key: Key<'_>, out: &mut Vec<u8>);
    /// What all positions of a position's key begin with.
    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8];
    /// A position as bytes that compare as the scan goes.
    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8];
    /// Where a scan goes on behind all entries of a key.
    fn resume_behind(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>);
    /// Appends entry `i` of a batch to another.
    fn copy_entry(&self, from: &Batch, i: usize, to: &mut Batch);
    /// Appends the entries that override a key, in the direction of the scan.
    fn push(&self, key: &[u8], value: Override<'_>, direction: Direction, batch: &mut Batch);
}

impl Entries for dyn Unique {
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        Unique::scan(self, guard, start, direction, batch);
    }

    fn entry_position(&self, _: &Batch, _: usize, key: Key<'_>, out: &mut Vec<u8>) {
        self.position(key, out);
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    fn resume_behind(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>) {
        self.position(key, out);
        // Keys are prefix-free: with a zero byte it lies behind the key and before all others.
        if direction == Direction::Forward {
            out.push(0);
        }
    }

    fn copy_entry(&self, from: &Batch, i: usize, to: &mut Batch) {
        let (key, value) = from.entry(i);
        to.push(key, value);
    }

    fn push(&self, key: &[u8], value: Override<'_>, _: Direction, batch: &mut Batch) {
        if let Override::Value(value) = value {
            batch.push(key, value);
        }
    }
}

impl Entries for dyn Multi {
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        Multi::scan(self, guard, start, direction, batch);
    }

    fn entry_position(&self, batch: &Batch, i: usize, _: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        Multi::entry_position(self, batch, i, out);
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::key_position(self, position)
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::comparable(self, position)
    }

    fn resume_behind(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>) {
        out.clear();
        match direction {
            Direction::Forward => self.last_position(key, out),
            Direction::Backward => self.first_position(key, out),
        }
    }

    fn copy_entry(&self, from: &Batch, i: usize, to: &mut Batch) {
        let (key, value) = from.entry(i);
        self.push_entry(to, key, value, self.entry_number(from, i));
    }

    fn push(&self, key: &[u8], value: Override<'_>, direction: Direction, batch: &mut Batch) {
        let mut push = |(number, value): (u64, &[u8])| self.push_entry(batch, key, value, number);
        match direction {
            Direction::Forward => Listed::of(value).for_each(push),
            Direction::Backward => {
                let mut objects: Vec<_> = Listed::of(value).collect();
                objects.reverse();
                objects.into_iter().for_each(&mut push);
            }
        }
    }
}

/// A range of positions, in the direction of a scan.
#[derive(Clone, Copy)]
struct Range<'p> {
    start: Start<'p>,
    /// Where the scan goes on, if it does: at it forward, strictly before it backward.
    resume: Option<&'p [u8]>,
    direction: Direction,
}

impl Range<'_> {
    /// Whether a position lies where the scan has come to.
    fn has_begun(&self, position: &[u8]) -> bool {
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

    /// Whether all positions that begin so are left to the batches that follow.
    fn are_behind(&self, prefix: &[u8]) -> bool {
        self.is_behind(prefix) && !self.resume.is_some_and(|resume| resume.starts_with(prefix))
    }

    /// Whether one position comes before another in the scan.
    fn precedes(&self, one: &[u8], other: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => one < other,
            Direction::Backward => one > other,
        }
    }
}

/// A key that is overridden.
struct Overridden {
    /// What the positions of its entries begin with.
    position: Vec<u8>,
    key: Vec<u8>,
    record: Vec<u8>,
}

impl<I: Entries + ?Sized> Merged<I> {
    /// As `Unique::scan` and `Multi::scan`; see the module.
    fn scan_merged(
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
            // The entries are those of the snapshot, whatever becomes of the leaf.
            batch.seen = None;
            // (2)
            let (overridden, cut) = self.overridden(guard, start, direction, batch);
            if overridden.is_empty() {
                break;
            }
            if batch.unordered {
                // Read again, in order.
                batch.any_order = false;
                continue;
            }
            // (3)
            if let Some(cut) = cut {
                (batch.resume, batch.done) = (cut, false);
            }
            self.merge_batch(&overridden, start, direction, batch);
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

    /// The keys that are overridden from where a batch of the base begins up to where it ends, in
    /// the order of the scan. If they are too many, where the batch has to end instead.
    fn overridden(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &Batch,
    ) -> (Vec<Overridden>, Option<Vec<u8>>) {
        let mut found = Vec::new();
        let Some(index) = self.overrides.index() else {
            return (found, None);
        };
        let range = self.range(start, direction, (!batch.done).then_some(&batch.resume));
        let mut read = Batch {
            until: batch.until.clone(),
            ..Batch::default()
        };
        // A key among whose objects the batch begins is overridden for it, too.
        let mut next = match start {
            Start::Edge => Start::Edge,
            Start::At(position) => Start::At(self.base.key_position(position)),
            Start::Past(position) => match self.base.key_position(position) {
                key if key.len() == position.len() => Start::Past(key),
                key => Start::At(key),
            },
        };
        let mut resume = Vec::new();
        loop {
            index.scan(guard, next, direction, &mut read);
            for i in 0..read.len() {
                let (bytes, record) = read.entry(i);
                if self.overrides.read(record).is_none() {
                    continue;
                }
                let key = self.overrides.key(bytes);
                let mut position = Vec::new();
                index.position(key, &mut position);
                if range.are_behind(&position) {
                    return (found, None);
                }
                found.push(Overridden {
                    position,
                    key: bytes.to_vec(),
                    record: record.to_vec(),
                });
                if found.len() == MOST {
                    let mut cut = Vec::new();
                    self.base.resume_behind(key, direction, &mut cut);
                    // The batch of the base may end among the objects of this key.
                    let sooner = range.is_behind(self.base.comparable(&cut));
                    return (found, (!sooner).then_some(cut));
                }
            }
            if read.done || range.are_behind(&read.resume) {
                return (found, None);
            }
            std::mem::swap(&mut resume, &mut read.resume);
            next = match direction {
                Direction::Forward => Start::At(&resume),
                Direction::Backward => Start::Past(&resume),
            };
        }
    }

    /// The number of entries; counted once, if it stays.
    fn objects(&self) -> usize {
        if self.overrides.are_fixed() {
            *self.len.get_or_init(|| self.count())
        } else {
            self.count()
        }
    }

    /// Counts the entries.
    fn count(&self) -> usize {
        let guard = larder_index::pin();
        let mut batch = Batch {
            any_order: true,
            ..Batch::default()
        };
        let mut position = Vec::new();
        self.scan_merged(&guard, Start::Edge, Direction::Forward, &mut batch);
        let mut sum = batch.len();
        while !batch.done {
            std::mem::swap(&mut position, &mut batch.resume);
            let start = Start::At(&position);
            self.scan_merged(&guard, start, Direction::Forward, &mut batch);
            sum += batch.len();
        }
        sum
    }

    /// The range of a batch.
    fn range<'p>(
        &self,
        start: Start<'p>,
        direction: Direction,
        resume: Option<&'p Vec<u8>>,
    ) -> Range<'p> {
        let comparable = |position| self.base.comparable(position);
        Range {
            start: match start {
                Start::Edge => Start::Edge,
                Start::At(position) => Start::At(comparable(position)),
                Start::Past(position) => Start::Past(comparable(position)),
            },
            resume: resume.map(|resume| comparable(resume)),
            direction,
        }
    }

    /// Step 3: merges a batch of the base, which begins at `start`, with what overrides it.
    fn merge_batch(
        &self,
        overridden: &[Overridden],
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) {
        let mut merged = Batch::default();
        let resume = std::mem::take(&mut batch.resume);
        let range = self.range(start, direction, (!batch.done).then_some(&resume));
        let mut overridden = overridden.iter().peekable();
        let mut position = Vec::new();
        // A key's entries come together on either side.
        for i in 0..batch.len() {
            let key = self.overrides.key(batch.key(i));
            self.base.entry_position(batch, i, key, &mut position);
            let prefix = self.base.key_position(&position);
            // What comes before the entry, or in its place.
            while let Some(own) = overridden.next_if(|own| range.precedes(&own.position, prefix)) {
                self.push_overriding(own, range, &mut merged);
            }
            let gives_way = overridden.peek().is_some_and(|own| own.position == prefix);
            if !gives_way && !range.is_behind(&position) {
                self.base.copy_entry(batch, i, &mut merged);
            }
        }
        overridden.for_each(|own| self.push_overriding(own, range, &mut merged));
        batch.bytes = merged.bytes;
        batch.entries = merged.entries;
        batch.resume = resume;
    }

    /// Appends the entries of a key that is overridden, as far as they belong to the batch.
    fn push_overriding(&self, own: &Overridden, range: Range<'_>, merged: &mut Batch) {
        let Some(value) = self.overrides.read(&own.record) else {
            return;
        };
        let from = merged.len();
        self.base.push(&own.key, value, range.direction, merged);
        // A batch may begin and end among the objects of a key.
        let (key, mut position) = (self.overrides.key(&own.key), Vec::new());
        for i in (from..merged.len()).rev() {
            self.base.entry_position(merged, i, key, &mut position);
            if !range.has_begun(&position) || range.is_behind(&position) {
                merged.entries.remove(i);
            }
        }
    }
}

impl Unique for Merged<dyn Unique> {
    fn is_ordered(&self) -> bool {
        self.base.is_ordered()
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        let there = self.base.get(guard, key, out);
        self.overrides.with(guard, key, |value| match value {
            None => there,
            Some(Override::Absent) => {
                out.truncate(from);
                false
            }
            Some(Override::Value(value)) => {
                out.truncate(from);
                out.extend_from_slice(value);
                true
            }
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let there = self.base.contains(guard, key);
        self.overrides.with(guard, key, |value| match value {
            None => there,
            Some(value) => value != Override::Absent,
        })
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.base.prefetch(guard, keys);
    }

    /// A snapshot's table has no right to write.
    fn update<'v>(&self, _: &Guard, _: Key<'_>, _: &mut Updater<'_, 'v>) -> bool {
        debug_assert!(false, "a snapshot is written");
        false
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        self.scan_merged(guard, start, direction, batch);
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.base.position(key, out);
    }

    /// The objects are others'.
    fn free_some(&self, _: &Guard, _: usize, _: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.objects()
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

impl Multi for Merged<dyn Multi> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let mut own = Values::default();
        self.base.read(guard, key, &mut own);
        self.overrides.with(guard, key, |value| {
            let before = values.len();
            match value {
                None => own.iter().for_each(|value| values.push(value)),
                Some(list) => Listed::of(list).for_each(|(_, value)| values.push(value)),
            }
            values.len() - before
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        // `contains` of a bag waits for no writer, as a read does.
        self.read(guard, key, &mut Values::default()) > 0
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.base.prefetch(guard, keys);
    }

    /// A snapshot's table has no right to write.
    fn update(&self, _: &Guard, _: Key<'_>, _: &mut dyn FnMut(&mut dyn Objects)) {
        debug_assert!(false, "a snapshot is written");
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        self.scan_merged(guard, start, direction, batch);
    }

    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.base.first_position(key, out);
    }

    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.base.last_position(key, out);
    }

    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>) {
        self.base.entry_position(batch, i, out);
    }

    fn entry_number(&self, batch: &Batch, i: usize) -> u64 {
        self.base.entry_number(batch, i)
    }

    fn push_entry(&self, batch: &mut Batch, key: &[u8], value: &[u8], number: u64) {
        self.base.push_entry(batch, key, value, number);
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::key_position(&*self.base, position)
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::comparable(&*self.base, position)
    }

    /// The objects are others'.
    fn free_some(&self, _: &Guard, _: usize, _: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.objects()
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}
