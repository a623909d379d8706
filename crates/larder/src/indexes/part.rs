//! The entries of the rows of a view, read in parts.
//!
//! # Definitions
//!
//! A *part* is a range of positions. Its entries are those that the table has there, and those of
//! the rows that differ in the view (`differing`) and have values there.
//!
//! # Steps
//!
//! 1. Read entries of the table, leaf by leaf, until there are enough for a part.
//! 2. Walk over all keys that may differ in the view, and add the entries of their rows that are in
//!    the part.
//! 3. Return the entries in order, some at a time.
//!
//! A job can pause after each leaf of (1), and after each batch of (2). A job that stops at its
//! limit leaves the part with the view (`PausedEntries`), for the job that continues.
//!
//! # Invariants
//!
//! * **X12** (2) begins after (1) has read all entries of the part. So a row whose entry is missed
//!   by (1) is found by (2), also if it changes between two slices. A row that changes after that
//!   has its entry in the part, and is read in the view.
//! * **X13** A part has at most `MOST` entries of the table, and as many of the rows that differ,
//!   except if all of the latter are at one position.
//! * **X14** A part has all entries at or above `low` that the view had in the range when (2)
//!   began. So any job on the view may go on with it.
//!
//! # Costs
//!
//! Each part walks over all keys that differ. So a part has `PER_KEY` times as many entries as the
//! walk before it has seen keys: walking costs about as much as reading. Thus the costs of `n`
//! entries of a range and `d` keys are O(n + d log d), and O(n d / `MOST`) if `d` is greater than
//! `MOST / PER_KEY`. Each range has parts of its own.
//!
//! The first part of a job with a limit has as many entries as it wants results, or as keys may
//! differ. The next page may never be read, or only after a write of the transaction, when what was
//! read is of no use. Each part after it has twice as many. A page costs no walk if the page before
//! has left a part with its entries.

use super::changes::EntriesRead;
use super::differing::Differing;
use super::ranges::EntryRange;
use super::Entries;
use crate::buffers::Buffers;
use crate::ops::Operation;
use crate::pairs::Pairs;
use crate::table::EngineTable;
use larder_index::Direction;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of entries of the first part of a job without a limit, if the range has as many. A
/// part has at least `FEW`.
const MANY: usize = 1024;
const FEW: usize = 8;

/// The maximum number of them. They take about 12 MB, and those of rows that differ 25 MB, if
/// values and keys are short.
const MOST: usize = 1 << 18;

/// The number of entries per key that differs. Reading a key in the view costs about as much as
/// reading this number of entries.
const PER_KEY: usize = 4;

/// The number of entries that are returned together, if as many are wanted.
const TOGETHER: usize = 256;

/// A position of the index; `None` is the end of the range.
type IndexPosition = Option<Vec<u8>>;

/// The entries of a view, as a job reads them.
#[derive(Default)]
pub(super) struct ViewEntries {
    /// Apart, as jobs on tables have none.
    part: Option<Box<Part>>,
    /// The number of keys that the last walk has seen.
    walked: usize,
    /// How many entries the last part was to have; 0 before the first one.
    enough: usize,
}

/// A part of a range.
struct Part {
    entries: Arc<Entries>,
    range: EntryRange,
    /// The number of the view's writes before the part was read.
    writes: u64,
    /// The positions of the part: at or above `low`, and below `high`, if there is one.
    low: Vec<u8>,
    high: IndexPosition,
    /// Whether the range has no more after it.
    is_last: bool,
    /// The entries of the table, and the number of those that aren't needed any more.
    read: Pairs,
    done: usize,
    /// The entries of rows that differ: value and key, and the length of the value.
    differing: BTreeMap<Box<[u8]>, usize>,
    /// The bytes of their values and keys.
    differing_bytes: usize,
    stage: Stage,
    /// The walk over the keys that may differ, and the number of those that it has seen.
    walk: Differing,
    walked: usize,
}

/// The stage at which a part is.
enum Stage {
    /// (1) Where to continue.
    Read(Vec<u8>),
    /// (2)
    Walk,
    /// (3)
    Return,
}

impl ViewEntries {
    /// Does some of the reading of the entries of a range, at `from` and after it, and continues
    /// with its costs. Breaks once the next entries are in `buffers.pairs`, in order, with the
    /// position to continue from. `limit` is how many results are wanted, if there is a limit.
    pub(super) fn read(
        &mut self,
        (table, op): (&EngineTable, &Operation<'_>),
        entries: &Arc<Entries>,
        range: &EntryRange,
        from: Option<&[u8]>,
        limit: Option<usize>,
        buffers: &mut Buffers,
    ) -> ControlFlow<IndexPosition, u32> {
        let writes = op.store.views().iter().map(|view| view.writes()).sum();
        // No position is less than the empty one.
        let from = from.max(range.low()).unwrap_or_default();
        let is_within = |read: &ViewEntries| {
            let part = read.part.as_deref();
            part.is_some_and(|part| part.has(entries, range, from))
        };
        // This job has no part that has the position. Another one may have left its own.
        if !is_within(self) {
            // A job that begins after a write of the transaction sees it.
            let is_current = |read: &ViewEntries| {
                let part = read.part.as_deref();
                is_within(read) && part.is_some_and(|part| part.writes == writes)
            };
            let paused = op.store.paused_entries();
            if let Some(read) = paused.and_then(|paused| paused.take_if(is_current)) {
                *self = *read;
            }
        }
        // No part has it: begin a new one. The transaction's commit will check what it reads.
        if !is_within(self) {
            // A position after the range, which no part has, was made up.
            if range.high(Vec::new()).is_some_and(|high| from >= &high[..]) {
                buffers.pairs.clear();
                return ControlFlow::Break(None);
            }
            for view in op.store.views() {
                view.note_entries(EntriesRead::begin(&entries.changes, range.value()));
            }
            self.part = None;
            let differing = op.store.views().iter().map(|view| view.about()).sum();
            // The first entry may be the one at which the page before has ended.
            let wanted = limit.map_or(MANY, |limit| {
                limit.saturating_add(1).max(differing).clamp(FEW, MANY)
            });
            // Each part is larger than the one before, and large enough to pay for the walk over
            // the keys that may differ.
            let more = (2 * self.enough).min(MANY).max(wanted);
            self.enough = self.walked.saturating_mul(PER_KEY).clamp(more, MOST);
        }
        let part = self
            .part
            .get_or_insert_with(|| Box::new(Part::new(entries, range, from, writes)));
        // Do a piece of the work of the part's stage.
        match &part.stage {
            Stage::Read(at) => {
                let at = at.clone();
                ControlFlow::Continue(part.read_leaf(op, range, &at, self.enough, buffers))
            }
            Stage::Walk => {
                let cost = part.walk(table, op, buffers);
                self.walked = part.walked;
                ControlFlow::Continue(cost)
            }
            Stage::Return => {
                // As above.
                let together = limit.map_or(TOGETHER, |limit| limit.clamp(FEW, TOGETHER) + 1);
                ControlFlow::Break(part.fill(from, together, &mut buffers.pairs))
            }
        }
    }

    /// Leaves what was read with the view, for the job that continues.
    pub(super) fn pause(&mut self, op: &Operation<'_>) {
        let paused = op.store.paused_entries();
        if let (Some(paused), Some(part)) = (paused, &self.part) {
            let memory = part.memory();
            paused.leave(Box::new(std::mem::take(self)), memory);
        }
    }
}

impl Part {
    fn new(entries: &Arc<Entries>, range: &EntryRange, from: &[u8], writes: u64) -> Self {
        Part {
            entries: Arc::clone(entries),
            range: range.clone(),
            writes,
            low: from.to_vec(),
            high: range.high(Vec::new()),
            is_last: true,
            read: Pairs::default(),
            done: 0,
            differing: BTreeMap::new(),
            differing_bytes: 0,
            stage: Stage::Read(from.to_vec()),
            walk: Differing::default(),
            walked: 0,
        }
    }

    /// The approximate memory in bytes.
    fn memory(&self) -> usize {
        // The tree's node has a pointer and two lengths for each entry, and some room.
        let differing = self.differing_bytes + self.differing.len() * 48;
        size_of::<Self>() + self.read.memory() + differing
    }

    /// Whether the part is of this range of these entries, and a position is in it.
    fn has(&self, entries: &Arc<Entries>, range: &EntryRange, position: &[u8]) -> bool {
        Arc::ptr_eq(&self.entries, entries) && self.range == *range && self.is_at(position)
    }

    /// Whether a position is in the part.
    fn is_at(&self, position: &[u8]) -> bool {
        let is_below = |high: &Vec<u8>| position < &high[..];
        position >= &self.low[..] && self.high.as_ref().is_none_or(is_below)
    }

    /// Ends the part before a position, as the range has more.
    fn end_before(&mut self, position: Vec<u8>) {
        (self.high, self.is_last) = (Some(position), false);
    }

    /// (1) Reads the leaf at a position. The part ends after it if it has enough entries. Returns
    /// the costs.
    fn read_leaf(
        &mut self,
        op: &Operation<'_>,
        range: &EntryRange,
        at: &[u8],
        enough: usize,
        buffers: &mut Buffers,
    ) -> u32 {
        let Buffers {
            batch, position, ..
        } = buffers;
        // No more of the leaf than the part lacks, which is not full yet.
        let lacks = enough.saturating_sub(self.read.len()).max(1);
        (batch.want, batch.any_order) = (lacks, false);
        let entries = &self.entries;
        let next = batch.lend_owned(|batch| {
            let forward = Direction::Forward;
            entries.read_leaf(op.guard, range, Some(at), forward, position, batch)
        });
        // The entries are copied: the job may pause after this leaf, and drop its guard.
        for i in 0..batch.len() {
            let entry = entries.entry(batch.key(i), batch.value(i));
            self.read.push(entry.value, entry.key);
        }
        // The part ends where the range does, or before the next leaf once there are enough
        // entries.
        self.stage = match next {
            Some(next) if self.read.len() < enough => Stage::Read(next),
            Some(end) => {
                self.end_before(end);
                Stage::Walk
            }
            None => Stage::Walk,
        };
        1 + batch.len() as u32
    }

    /// (2) Walks over a batch of keys. Returns the costs.
    fn walk(&mut self, table: &EngineTable, op: &Operation<'_>, buffers: &mut Buffers) -> u32 {
        (buffers.batch.want, buffers.batch.any_order) = (0, false);
        let (mut walk, mut bytes) = (std::mem::take(&mut self.walk), Vec::new());
        let entries = Arc::clone(&self.entries);
        // Called with each value of each row that differs, as the view has it, and its key.
        let see = |value: &[u8], key: &[u8]| {
            bytes.clear();
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(key);
            if self.is_at(position_of(&entries, (&bytes, value.len()))) {
                // A row may be seen twice, if it changes meanwhile. Its entry is there once.
                if self
                    .differing
                    .insert(bytes[..].into(), value.len())
                    .is_none()
                {
                    self.differing_bytes += bytes.len();
                }
                self.shorten();
            }
        };
        // No key is left: the part is complete.
        let Some(count) = walk.next(table, op, &entries, buffers, see) else {
            self.stage = Stage::Return;
            return 1;
        };
        (self.walk, self.walked) = (walk, self.walked + count);
        (1 + PER_KEY * count) as u32
    }

    /// Ends the part earlier if it has too many entries of rows that differ (X13).
    fn shorten(&mut self) {
        if self.differing.len() <= MOST {
            return;
        }
        let position = |bytes: &[u8], value| position_of(&self.entries, (bytes, value)).to_vec();
        let first = self.differing.first_key_value();
        let first = first.map(|(bytes, value)| position(bytes, *value));
        let last = self.differing.last_key_value();
        let last = last.map(|(bytes, value)| position(bytes, *value));
        // Drop the entries at the last position, and end the part before it. If there is only one
        // position, they stay: the part must not become empty.
        let (Some(last), true) = (&last, first != last) else {
            return;
        };
        // In a transaction's view, several keys may have one value of a unique index.
        while let Some(entry) = self.differing.last_entry() {
            if position_of(&self.entries, (entry.key(), *entry.get())) < &last[..] {
                break;
            }
            self.differing_bytes -= entry.remove_entry().0.len();
        }
        self.end_before(last.to_vec());
    }

    /// (3) Fills `pairs` with the next entries, about `together`, which are at `from` or after it.
    /// Those before `from` are dropped: the part begins there from now on. Returns where to
    /// continue.
    fn fill(&mut self, from: &[u8], together: usize, pairs: &mut Pairs) -> IndexPosition {
        let Part {
            entries,
            low,
            high,
            read,
            done,
            differing,
            differing_bytes,
            ..
        } = self;
        low.clear();
        low.extend_from_slice(from);
        while *done < read.len() && position_of(entries, read.joined(*done)) < from {
            *done += 1;
        }
        while let Some(entry) = differing.first_entry() {
            if position_of(entries, (entry.key(), *entry.get())) >= from {
                break;
            }
            *differing_bytes -= entry.remove_entry().0.len();
        }
        // Merge both. No order key is a prefix of another, so the order of entries is that of their
        // bytes.
        let is_within = |entry: &(&[u8], usize)| {
            let position = position_of(entries, *entry);
            high.as_ref().is_none_or(|high| position < &high[..])
        };
        let read = (*done..read.len()).map(|i| read.joined(i));
        let mut read = read.take_while(is_within).peekable();
        let mut differing = differing.iter().map(|(bytes, value)| (&bytes[..], *value));
        let mut next_differing = differing.next();
        pairs.clear();
        let mut last: &[u8] = &[];
        loop {
            let next = match (read.peek(), next_differing) {
                (Some(one), Some(other)) => (*one).min(other),
                (one, other) => match one.copied().or(other) {
                    Some(next) => next,
                    None => break,
                },
            };
            // Entries at one position are returned together.
            let position = position_of(entries, next);
            if pairs.len() >= together && position != last {
                return Some(position.to_vec());
            }
            // The row of an entry may be among those that differ.
            read.next_if_eq(&next);
            if next_differing == Some(next) {
                next_differing = differing.next();
            }
            let (value, key) = next.0.split_at(next.1);
            pairs.push(value, key);
            last = position;
        }
        // After the part.
        self.high.clone().filter(|_| !self.is_last)
    }
}

/// The position of an entry: value and key, and the length of the value.
fn position_of<'e>(entries: &Entries, (bytes, value): (&'e [u8], usize)) -> &'e [u8] {
    match entries.definition.unique {
        true => &bytes[..value],
        false => bytes,
    }
}
