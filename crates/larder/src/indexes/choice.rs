//! The plan of a scan: whether a match specification uses a secondary index.
//!
//! # Steps
//!
//! 1. Plan the program by the key (`scan::cursor`). If it fixes keys, no index is considered.
//! 2. For each index, compute the ranges of the entries of rows that can match the program, and
//!    count the entries in them. Up to `COUNTED_SINGLY` are counted one by one, more by the tree's
//!    ranks.
//! 3. Use the index with the fewest entries, if that costs less than the scan.
//!
//! # Candidates
//!
//! The keys of the entries are gathered, in slices, and sorted in the order of a scan of the table.
//! Then the rows of each key are read, and the program runs on them as in any scan. So the results
//! are those of the scan without an index, in the same order.
//!
//! A row that matches throughout must not be missed, even if its value changes meanwhile from one
//! that matches to another. Writes count such moves (`Entries::note_move`). If the count has
//! changed while more than one leaf of entries was read, the candidates are gathered again. After
//! `TRIES` attempts the table is scanned instead.
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
use super::lookup::{ranges, EntryRange, EntryRanges};
use super::{Entries, Indexes};
use crate::budget::Budget;
use crate::buffers::Lent;
use crate::ops::Operation;
use crate::programs::{KeyOrder, Plan, Program};
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Guard, Start};
use larder_term::object::KeyForm;
use larder_term::Atom;
use std::ops::Bound;
use std::sync::Arc;

/// The number of entries that are counted one by one.
const COUNTED_SINGLY: u64 = 64;

/// How often candidates are gathered before the table is scanned instead.
const TRIES: u32 = 3;

/// The cost of a row that is found by an index, compared with a row in a scan.
const COST: u64 = 4;

/// How a match specification finds its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// No row can match.
    Nothing,
    /// This number of keys is looked up.
    Keys(usize),
    /// A range of an ordered_set's keys is scanned.
    Range,
    /// The rows of an index's entries are read.
    Index(Atom),
    /// The table is scanned.
    Scan,
}

/// How a match specification would be evaluated now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The plan.
    pub plan: PlanKind,
    /// The maximum number of rows that are visited; `None` if it isn't known.
    pub rows: Option<u64>,
    /// The indexes that could be used, each with the number of its entries that would be visited.
    pub indexes: Vec<(Atom, u64)>,
}

/// The keys of rows that may match, found by an index.
pub(crate) struct CandidateKeys {
    entries: Arc<Entries>,
    ranges: EntryRanges,
    /// The range whose entries are being gathered, and the position in it.
    range: usize,
    from: Option<Vec<u8>>,
    /// The count of moves when the first entry was read, and the number of leaves that were read
    /// since.
    began: Option<(u64, u32)>,
    tries: u32,
    /// In a view: the walk over the keys that may differ, once all entries are read.
    differing: Differing,
    keys: Vec<Vec<u8>>,
}

/// How the gathering continues.
pub(crate) enum Gathered {
    /// In the next slice.
    More,
    /// It is complete: these are the keys, each once, in no order.
    Keys(Vec<Vec<u8>>),
    /// The table must be scanned: the index was dropped, or changes too fast.
    Scan,
}

/// Chooses the index by which a program finds its rows, if that is better than scanning the table.
/// `limit` is the number of results that are wanted. `by_key` says that the program limits the key
/// to a range.
pub(crate) fn candidates(
    table: &EngineTable,
    program: &Program,
    limit: Option<usize>,
    by_key: bool,
) -> Option<CandidateKeys> {
    let guard = larder_index::pin();
    let store = table.store(&guard)?;
    // No index, or none that is ready: the table is scanned.
    let indexes = usable(table, store)?;
    // The index with the fewest entries.
    let (_, best) = rank(store, indexes, program, &guard);
    let (entries, ranges, count) = best?;
    is_better(store, count, limit, by_key).then(|| CandidateKeys {
        entries: Arc::clone(entries),
        ranges,
        range: 0,
        from: None,
        began: None,
        tries: 0,
        differing: Differing::default(),
        keys: Vec::new(),
    })
}

/// The indexes that scans of a store may use. Views of bounded tables are scanned: an index may
/// lack an object that had expired when the index was built, but not yet at the instant of the
/// view.
fn usable<'s>(table: &EngineTable, store: &'s Store) -> Option<&'s Arc<Indexes>> {
    let indexes = store.layers().indexes.as_ref()?;
    let is_of_table = store.views().is_empty();
    (is_of_table || table.options().bounds.is_none()).then_some(indexes)
}

/// An index, the ranges of its entries, and the number of entries in them. In a view that includes
/// the keys that may differ.
type Ranked<'i> = (&'i Arc<Entries>, EntryRanges, u64);

/// Returns the indexes that limit the rows of the program, each with its number of entries, and the
/// one with the fewest entries.
fn rank<'i>(
    store: &Store,
    indexes: &'i Indexes,
    program: &Program,
    guard: &Guard,
) -> (Vec<(Atom, u64)>, Option<Ranked<'i>>) {
    let (mut all, mut best) = (Vec::new(), None::<Ranked<'i>>);
    let differing = store.views().iter().map(|view| view.about() as u64).sum();
    for entries in indexes.each.iter().filter(|entries| entries.is_ready()) {
        // The entries are in the order of values. So what the program says of a value becomes
        // ranges of entries.
        let ranges = ranges(program, entries);
        // One unlimited range: the index doesn't restrict the program.
        if ranges.contains(&EntryRange::ALL) {
            continue;
        }
        let count = count(entries, &ranges, guard).saturating_add(differing);
        all.push((entries.definition.name, count));
        if best.as_ref().is_none_or(|(_, _, least)| count < *least) {
            best = Some((entries, ranges, count));
        }
    }
    (all, best)
}

/// Step 3: whether reading the rows of `count` entries costs less than the scan.
fn is_better(store: &Store, count: u64, limit: Option<usize>, by_key: bool) -> bool {
    if count <= COUNTED_SINGLY {
        return true;
    }
    // The scan would be that of a range of keys. The number of its rows isn't known.
    if by_key {
        return false;
    }
    let rows = store.about() as u64;
    // A scan with a limit ends when it has found this number of results. They are assumed to be
    // spread evenly: one among `rows / count` rows.
    let scanned = match limit {
        Some(limit) => rows.min((limit as u64).saturating_mul(rows / count + 1)),
        None => rows,
    };
    count.saturating_mul(COST) <= scanned
}

/// Counts the entries in some ranges. The result is exact if there are few entries, and no thread
/// writes.
fn count(entries: &Entries, ranges: &[EntryRange], guard: &Guard) -> u64 {
    let mut batch = Batch::default();
    let mut sum = 0;
    for range in ranges {
        let start = range.low().map_or(Start::Edge, Start::At);
        // First read a few entries. That is the cheapest way if there are no more.
        batch.want = COUNTED_SINGLY as usize + 1;
        batch.until = range.until(Vec::new());
        entries
            .tree
            .scan(guard, start, Direction::Forward, &mut batch);
        let here = (0..batch.len())
            .filter(|&i| range.has(batch.key(i)))
            .count();
        // There are more entries than were asked for.
        let is_all = batch.done || here < batch.len();
        // Otherwise count the range by ranks.
        sum += match entries.tree.ranked().filter(|_| !is_all) {
            None => here as u64,
            Some(ranked) => {
                let high = match &batch.until {
                    Bound::Excluded(high) => Some(&high[..]),
                    _ => None,
                };
                let limit = &mut usize::MAX.clone();
                let counted = ranked.count_between(guard, range.low(), high, limit);
                counted.map_or(u64::MAX, |counted| counted.entries)
            }
        };
    }
    sum
}

impl CandidateKeys {
    /// Gathers keys until there are no more, or until the budget is exhausted.
    pub(crate) fn gather(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        budget: &mut Budget,
    ) -> Gathered {
        // The index may have been dropped, or the table emptied, since the last slice.
        let own = &self.entries;
        let is_own = |other: &Arc<Entries>| Arc::ptr_eq(other, own);
        if !usable(table, op.store).is_some_and(|indexes| indexes.each.iter().any(is_own)) {
            return Gathered::Scan;
        }
        let views = op.store.views();
        let mut batch = Batch::default();
        loop {
            // All ranges were read. The keys are complete if no value has moved since the first
            // entry was read, or if there was only one leaf, which was read at one instant.
            let Some(range) = self.ranges.get(self.range) else {
                let (before, leaves) = self.began.unwrap_or_default();
                if !views.is_empty() {
                    return self.gather_differing(table, op, budget);
                }
                if leaves <= 1 || own.moves() == before {
                    return self.gathered();
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
            let (moves, leaves) = self.began.unwrap_or_else(|| (own.moves(), 0));
            self.began = Some((moves, leaves + 1));
            if self.from.is_none() {
                for view in views {
                    view.note_entries(EntriesRead::begin(&own.changes, range.value()));
                }
            }
            // Continue where the last leaf ended, or at the beginning of the range.
            let from = self.from.as_deref().or(range.low());
            let start = from.map_or(Start::Edge, Start::At);
            batch.until = range.until(Vec::new());
            own.tree
                .scan(op.guard, start, Direction::Forward, &mut batch);
            let mut is_beyond = false;
            for i in 0..batch.len() {
                if !range.has(batch.key(i)) {
                    is_beyond = true;
                    break;
                }
                let entry = own.entry(batch.key(i), batch.value(i));
                self.keys.push(entry.key.to_vec());
            }
            if batch.done || is_beyond {
                (self.range, self.from) = (self.range + 1, None);
            } else {
                self.from = Some(std::mem::take(&mut batch.resume));
            }
            if !budget.spend(1 + batch.len() as u32) {
                return Gathered::More;
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
        let own = &self.entries;
        let (mut lent, mut position) = (Lent::new(), Vec::new());
        loop {
            let read = self
                .differing
                .next(table, (op, own), &mut lent, |value, key| {
                    own.position(value, key, &mut position);
                    if self.ranges.iter().any(|range| range.has(&position)) {
                        self.keys.push(key.to_vec());
                    }
                });
            let Some(read) = read else {
                return self.gathered();
            };
            // Each key is read in the view, which costs more than an entry.
            if !budget.spend(1 + 4 * read as u32) {
                return Gathered::More;
            }
        }
    }

    /// The keys, each once.
    fn gathered(&mut self) -> Gathered {
        self.keys.sort_unstable();
        self.keys.dedup();
        Gathered::Keys(std::mem::take(&mut self.keys))
    }
}

impl EngineTable {
    /// Returns how a match specification would be evaluated now: by keys, by an index, or by a
    /// scan. `limit` is the number of results that are wanted.
    ///
    /// # Complexity
    /// O(n log n) in the size of the specification; O(log n) for each index of the table, and O(1)
    /// for each of its leaves that has changed since it was last counted.
    pub fn explain(&self, program: &Program, limit: Option<usize>) -> Explanation {
        let guard = larder_index::pin();
        let order = match self.key_form() {
            KeyForm::Ordered => KeyOrder::Ordered,
            KeyForm::Hash { .. } => KeyOrder::Hash,
        };
        // The plan by the key comes first, as in a scan: no index is better than a known key.
        let by_key = program.plan(self.keypos(), order);
        let none = |plan, rows| Explanation {
            plan,
            rows,
            indexes: Vec::new(),
        };
        // If the specification matches nothing or fixes the keys, no index is considered.
        let is_range = match by_key {
            Plan::Nothing => return none(PlanKind::Nothing, Some(0)),
            Plan::Keys(keys) => {
                let rows = self.kind().is_unique().then_some(keys.len() as u64);
                return none(PlanKind::Keys(keys.len()), rows);
            }
            Plan::Range { .. } => true,
            Plan::AllKeys => false,
        };
        let Some(store) = self.store(&guard) else {
            return none(PlanKind::Nothing, Some(0));
        };
        let scan = match is_range {
            true => (PlanKind::Range, None),
            false => (PlanKind::Scan, Some(store.size() as u64)),
        };
        let Some(indexes) = usable(self, store) else {
            return none(scan.0, scan.1);
        };
        // Count the entries that each index would read. The best one is used if it is better than
        // the scan.
        let (all, best) = rank(store, indexes, program, &guard);
        let best = best.filter(|(_, _, count)| is_better(store, *count, limit, is_range));
        let (plan, rows) = match best {
            Some((entries, _, count)) => (PlanKind::Index(entries.definition.name), Some(count)),
            None => scan,
        };
        Explanation {
            plan,
            rows,
            indexes: all,
        }
    }
}
