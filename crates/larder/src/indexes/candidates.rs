//! The keys of rows that may match a program, found by an index.
//!
//! ```text
//!  few entries       read when they are counted (`choice`)      all keys at once
//!  one value         read leaf by leaf (`next_part`)            the keys of one leaf at a time
//!  any other         read in slices (`gather`), each key once   all keys at once
//! ```
//!
//! # Invariants
//!
//! * **X10** The keys include that of every row that matches from the choice of the plan until its
//!   key is read.
//! * **X11** Each key is returned once.
//!
//! # Why no row is missed
//!
//! *Entries that are read at one instant*, which are those of one leaf, include those of all rows
//! that match at that instant.
//!
//! *One value.* A row that has the value throughout has its entry throughout, at the same position.
//! So the leaves may be read at different instants. Entries of one value have different keys. If
//! the index is dropped between two leaves, nobody changes its entries any more. They still include
//! those of all rows that have had the value since before.
//!
//! *Several values*, or a range. A row that matches throughout may move meanwhile from a value that
//! has not been read to one that has. Writes count such moves (`Entries::note_move`). If the count
//! has changed while more than one leaf was read, the keys are gathered again. After `TRIES`
//! attempts the table is scanned instead. Both entries of a row that moves may be read, so keys are
//! compared in the end.
//!
//! # Views
//!
//! In a snapshot or a transaction's view the keys of the rows that may differ from the entries are
//! candidates, too, if a row has a value in the ranges (`differing`). They are read after the
//! entries, so no row is missed, and moves don't matter: a row that has moved since is among them.
//! In a transaction's view the entries are added to the read set (`changes`), and the keys are
//! added when their rows are read.

use super::changes::EntriesRead;
use super::differing::Differing;
use super::ranges::{is_within, EntryRange, EntryRanges};
use super::Entries;
use crate::budget::Budget;
use crate::buffers::ThreadBuffers;
use crate::keys::KeyList;
use crate::ops::Operation;
use crate::table::EngineTable;
use larder_index::sync::{planted, Fault};
use larder_index::{Batch, Direction, Guard, Ranked};
use std::sync::Arc;

/// The number of entries that are counted one by one.
const COUNTED_SINGLY: usize = if cfg!(larder_model) { 4 } else { 64 };

/// The number of changed leaves of entries that a plan counts: some hundred microseconds. If there
/// are more, the number of entries is estimated.
const COUNTED_LEAVES: usize = 4096;

/// How often candidates are gathered before the table is scanned instead.
const TRIES: u32 = 3;

/// More keys than this are put in order in a slice of its own. It can't be cut, and takes some 100
/// nanoseconds for each key.
const MANY_KEYS: usize = if cfg!(larder_model) { 4 } else { 1 << 13 };

/// The entries in some ranges.
#[derive(Default)]
pub(super) struct CountedEntries {
    /// Their number. It is exact if there are few, or few leaves have changed since they were last
    /// counted, and no thread writes.
    pub(super) count: u64,
    /// Their keys, if all of them were read.
    pub(super) keys: Option<KeyList>,
}

/// The keys of rows that may match, found by an index.
pub(crate) struct CandidateKeys {
    entries: Arc<Entries>,
    ranges: EntryRanges,
    /// The range whose entries are being read, and the position in it.
    range: usize,
    from: Option<Vec<u8>>,
    /// A buffer for positions.
    position: Vec<u8>,
    /// The count of moves when the first entry was read, and the number of leaves that were read
    /// since.
    began: Option<(u64, u32)>,
    tries: u32,
    /// In a view: the walk over the keys that may differ, once all entries are read.
    differing: Differing,
    /// Whether `keys` has all of them.
    is_complete: bool,
    keys: KeyList,
}

/// How the gathering continues.
pub(crate) enum Gathered {
    /// In the next slice.
    More,
    /// These are the keys, each once, in the order of the entries or in that of the keys.
    Keys(KeyList),
    /// `next_part` returns the keys.
    InParts,
    /// The table must be scanned: the index was dropped, or changes too fast.
    Scan,
}

/// Whether these are the entries of one value.
fn is_one_value(ranges: &[EntryRange]) -> bool {
    matches!(ranges, [EntryRange::Value(_)])
}

/// Whether the rows may be read between two leaves of these entries; see the module.
fn reads_in_parts(ranges: &[EntryRange]) -> bool {
    is_one_value(ranges) || (ranges.len() == 1 && planted(Fault::RangeInParts))
}

/// Counts the entries in some ranges, and reads them if there are few.
pub(super) fn count(
    entries: &Entries,
    ranges: &[EntryRange],
    guard: &Guard,
    batch: &mut Batch<'static>,
    position: &mut Vec<u8>,
) -> CountedEntries {
    // A row that moves between leaves while these are read may be missed. So compare the count of
    // moves at the end.
    let moves = entries.moves();
    let (mut keys, mut leaves) = (KeyList::new(), 0);
    for range in ranges {
        let mut from: Option<Vec<u8>> = None;
        loop {
            // One more shows that there are more than are counted one by one.
            batch.want = COUNTED_SINGLY + 1 - keys.len();
            let next = batch.lend(|batch| {
                let forward = Direction::Forward;
                let next =
                    entries.read_leaf(guard, range, from.as_deref(), forward, position, batch);
                add_keys(entries, range, batch, &mut keys);
                next
            });
            leaves += 1;
            // There are many: count the rest by the ranks of the tree, without reading them.
            if keys.len() > COUNTED_SINGLY {
                return CountedEntries {
                    count: count_by_ranks(entries, ranges, guard),
                    keys: None,
                };
            }
            match next {
                Some(next) => from = Some(next),
                None => break,
            }
        }
    }
    // Several leaves were read at several instants; see the module.
    let has_all = leaves <= 1 || is_one_value(ranges) || entries.moves() == moves;
    CountedEntries {
        count: keys.len() as u64,
        keys: has_all.then_some(keys),
    }
}

/// Adds the keys of the entries of a batch, which are those of a range.
fn add_keys(entries: &Entries, range: &EntryRange, batch: &Batch<'_>, keys: &mut KeyList) {
    keys.reserve(batch.len(), batch.copied_bytes());
    for i in 0..batch.len() {
        keys.push(match range.value() {
            Some(value) => entries.key_after(value, batch, i),
            None => {
                let (position, record) = batch.entry(i);
                entries.entry(position, record).key
            }
        });
    }
}

/// Counts the entries in some ranges by the ranks of the tree. The plan is made in one piece, so
/// few leaves are counted. The next plan finds these counted.
fn count_by_ranks(entries: &Entries, ranges: &[EntryRange], guard: &Guard) -> u64 {
    let Some(ranked) = entries.tree.ranked() else {
        return u64::MAX;
    };
    let mut leaves = COUNTED_LEAVES;
    let each = ranges.iter().map(|range| {
        let (low, high) = (range.low(), range.high(Vec::new()));
        let counted = ranked.count_between(guard, low, high.as_deref(), &mut leaves);
        match counted {
            Some(counted) => counted.entries,
            None => about(entries.len(), ranked, guard, low, high.as_deref()),
        }
    });
    each.fold(0, u64::saturating_add)
}

/// About how many of `all` entries are between two positions.
fn about(
    all: usize,
    ranked: &dyn Ranked,
    guard: &Guard,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
) -> u64 {
    let below = |position: &[u8]| ranked.part_below(guard, position);
    let parts = (low.map_or(Some(0.0), below), high.map_or(Some(1.0), below));
    match parts {
        (Some(low), Some(high)) => (all as f64 * (high - low).max(0.0)) as u64,
        _ => u64::MAX,
    }
}

impl CandidateKeys {
    /// The keys of the entries in some ranges. If all were read when they were counted, `keys` has
    /// them.
    pub(super) fn new(entries: &Arc<Entries>, ranges: EntryRanges, keys: Option<KeyList>) -> Self {
        CandidateKeys {
            entries: Arc::clone(entries),
            ranges,
            range: 0,
            from: None,
            position: Vec::new(),
            began: None,
            tries: 0,
            differing: Differing::default(),
            is_complete: keys.is_some(),
            keys: keys.unwrap_or_default(),
        }
    }

    /// Gathers keys until there are no more, or until the budget is exhausted. `in_parts` says that
    /// the caller needs the keys in the order of the entries, or in no order, and takes them by
    /// `next_part`.
    pub(crate) fn gather(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        budget: &mut Budget,
        in_parts: bool,
    ) -> Gathered {
        if self.is_complete {
            return self.gathered(op);
        }
        // The index may have been dropped, or the table emptied, since the last slice.
        let entries = &self.entries;
        let is_own = |other: &Arc<Entries>| Arc::ptr_eq(other, entries);
        let indexes = op.store.layers().indexes.as_ref();
        if !indexes.is_some_and(|indexes| indexes.each.iter().any(is_own)) {
            return Gathered::Scan;
        }
        let views = op.store.views();
        // What was gathered in earlier slices must be gathered to the end.
        let begins = self.began.is_none();
        if in_parts && begins && views.is_empty() && reads_in_parts(&self.ranges) {
            return Gathered::InParts;
        }
        let mut buffers = ThreadBuffers::new();
        loop {
            // All ranges were read. The keys are complete if no value has moved since the first
            // entry was read, or if there was only one leaf, which was read at one instant.
            let Some(range) = self.ranges.get(self.range) else {
                let (before, leaves) = self.began.unwrap_or_default();
                if !views.is_empty() {
                    return self.gather_differing(table, op, budget);
                }
                if leaves <= 1 || is_one_value(&self.ranges) || entries.moves() == before {
                    return self.gathered(op);
                }
                self.tries += 1;
                if self.tries == TRIES {
                    return Gathered::Scan;
                }
                (self.range, self.from, self.began) = (0, None, None);
                self.keys.clear();
                continue;
            };
            // Read the count of moves before the first entry.
            let (moves, leaves) = self.began.unwrap_or_else(|| (entries.moves(), 0));
            self.began = Some((moves, leaves + 1));
            if self.from.is_none() {
                for view in views {
                    view.note_entries(EntriesRead::begin(&entries.changes, range.value()));
                }
            }
            // Continue where the last leaf ended, or at the beginning of the range.
            let (from, forward) = (self.from.as_deref(), Direction::Forward);
            let (keys, position) = (&mut self.keys, &mut self.position);
            let (next, count) = buffers.batch.lend(|batch| {
                let next = entries.read_leaf(op.guard, range, from, forward, position, batch);
                add_keys(entries, range, batch, keys);
                (next, batch.len())
            });
            if next.is_none() {
                self.range += 1;
            }
            self.from = next;
            if !budget.spend(1 + count as u32) {
                return Gathered::More;
            }
        }
    }

    /// Replaces `keys` by those of the next leaf of entries, in the order of the entries or in the
    /// opposite one. There are none at the end. May be called after `gather` has returned
    /// `InParts`.
    pub(crate) fn next_part(
        &mut self,
        op: &Operation<'_>,
        direction: Direction,
        keys: &mut KeyList,
    ) {
        keys.clear();
        let mut buffers = ThreadBuffers::new();
        // Read leaf after leaf of the range, until one has entries of it.
        while let (Some(range), true) = (self.ranges.first(), keys.is_empty()) {
            let (entries, from) = (&self.entries, self.from.as_deref());
            let position = &mut self.position;
            self.from = buffers.batch.lend(|batch| {
                let next = entries.read_leaf(op.guard, range, from, direction, position, batch);
                add_keys(entries, range, batch, keys);
                next
            });
            // The range is at its end. There is only one (`InParts`).
            // The range, which is the only one (`reads_in_parts`), is at its end.
            if self.from.is_none() {
                self.ranges.clear();
            }
        }
    }

    /// Gathers the keys of a view that may differ, if a row has a value in the ranges. All entries
    /// were read before.
    fn gather_differing(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        budget: &mut Budget,
    ) -> Gathered {
        let entries = &self.entries;
        let mut buffers = ThreadBuffers::new();
        loop {
            let (keys, ranges, position) = (&mut self.keys, &self.ranges, &mut self.position);
            let read = self
                .differing
                .next(table, op, entries, &mut buffers, |value, key| {
                    // The index may lack the entry of such a row. So its value is looked at here.
                    entries.position(value, key, position);
                    if is_within(ranges, position) {
                        keys.push(key);
                    }
                });
            let Some(read) = read else {
                return self.gathered(op);
            };
            // Each key is read in the view, which costs more than an entry.
            if !budget.spend(1 + 4 * read as u32) {
                return Gathered::More;
            }
        }
    }

    /// The keys, each once, or `More` if they are many and have just been completed.
    fn gathered(&mut self, op: &Operation<'_>) -> Gathered {
        let was_complete = std::mem::replace(&mut self.is_complete, true);
        if self.is_long() && !was_complete {
            return Gathered::More;
        }
        // Entries of one value have different keys. In a view the row of an entry may also be among
        // those that may differ.
        if !is_one_value(&self.ranges) || !op.store.views().is_empty() {
            self.keys.sort();
        }
        Gathered::Keys(std::mem::take(&mut self.keys))
    }

    /// Whether the next slice puts many keys in order.
    pub(crate) fn is_long(&self) -> bool {
        self.is_complete && self.keys.len() > MANY_KEYS
    }
}
