//! Whether a match specification is answered by a secondary index: the plan of a scan.
//!
//! # Steps
//!
//! 1. The program is planned by the key (`scan::cursor`). If it names keys, no index is asked.
//! 2. For each index: the ranges of the entries that rows can have which fit the program, and the
//!    number of entries in them. Up to `FEW` are counted one by one, more by the tree's ranks.
//! 3. The index with the fewest entries is used, if that costs less than the scan.
//!
//! # Candidates
//!
//! The keys of the entries are gathered, in slices, and put in the order of a scan of the table.
//! Then the rows of each are read, and the program is run on them as on those of any scan. So the
//! results are those of the scan without an index, in the same order.
//!
//! A row that fits throughout must not be missed, though its value may change meanwhile from one
//! that fits to another. Writes count such moves (`Entries::note_move`). If the count has changed
//! while more than one leaf of entries was read, the candidates are gathered anew. After `TRIES`
//! attempts the table is scanned instead.

use super::lookup::{ranges, Range};
use super::{Entries, Indexes};
use crate::budget::Budget;
use crate::ops::Operation;
use crate::store::Store;
use crate::table::Table;
use larder_index::{Batch, Direction, Guard, Start};
use larder_matchspec::{KeyOrder, Plan, Program};
use larder_term::object::KeyForm;
use larder_term::Atom;
use std::sync::Arc;

/// Entries that are counted one by one.
const FEW: u64 = 64;

/// How often candidates are gathered before the table is scanned instead.
const TRIES: u32 = 3;

/// The cost of a row that is found by an index, where one that a scan meets costs 1.
const COST: u64 = 4;

/// How a match specification finds its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Nothing can fit.
    Nothing,
    /// By these keys: so many.
    Keys(usize),
    /// A range of an ordered_set's keys is scanned.
    Range,
    /// The rows of an index's entries are read.
    Index(Atom),
    /// The table is scanned.
    Scan,
}

/// How a match specification would be answered at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What is chosen.
    pub plan: PlanKind,
    /// Rows that are looked at, at most; None if it isn't known.
    pub rows: Option<u64>,
    /// Each index that could be used, and the number of its entries that would be looked at.
    pub indexes: Vec<(Atom, u64)>,
}

/// Keys whose rows may fit, found by an index.
pub(crate) struct Candidates {
    entries: Arc<Entries>,
    ranges: Vec<Range>,
    /// The range whose entries are gathered, and from where on.
    range: usize,
    from: Option<Vec<u8>>,
    /// The count of moves when the first entry was read, and how many leaves were read since.
    began: Option<(u64, u32)>,
    tries: u32,
    keys: Vec<Vec<u8>>,
}

/// How gathering goes on.
pub(crate) enum Gathered {
    /// In the next slice.
    More,
    /// These are the keys, each once, in no order.
    Keys(Vec<Vec<u8>>),
    /// By a scan of the table: the index has gone, or changes too fast.
    Scan,
}

/// The index by which a program finds its rows, if that is better than to scan the table. `limit`
/// is how many results are wanted, `by_key` whether a range of keys is known already.
pub(crate) fn candidates(
    table: &Table,
    program: &Program,
    limit: Option<usize>,
    by_key: bool,
) -> Option<Candidates> {
    let guard = larder_index::pin();
    let store = table.store(&guard)?;
    let indexes = usable(store)?;
    let (_, best) = rank(indexes, program, &guard);
    let (entries, ranges, count) = best?;
    is_better(store, count, limit, by_key).then(|| Candidates {
        entries: Arc::clone(entries),
        ranges,
        range: 0,
        from: None,
        began: None,
        tries: 0,
        keys: Vec::new(),
    })
}

/// The indexes that scans of a store may use: not those of views, whose rows may differ.
fn usable(store: &Store) -> Option<&Arc<Indexes>> {
    let indexes = store.layers().indexes.as_ref()?;
    store.views().is_empty().then_some(indexes)
}

/// An index, the ranges of its entries, and how many they have.
type Ranked<'i> = (&'i Arc<Entries>, Vec<Range>, u64);

/// The indexes that limit where the program's rows can be, each with its number of entries, and the
/// one with the fewest.
fn rank<'i>(
    indexes: &'i Indexes,
    program: &Program,
    guard: &Guard,
) -> (Vec<(Atom, u64)>, Option<Ranked<'i>>) {
    let (mut all, mut best) = (Vec::new(), None::<Ranked<'i>>);
    for entries in indexes.each.iter().filter(|entries| entries.is_ready()) {
        let ranges = ranges(program, entries);
        // One unlimited range: the index says nothing about the program.
        if ranges.contains(&Range::default()) {
            continue;
        }
        let count = count(entries, &ranges, guard);
        all.push((entries.definition.name, count));
        if best.as_ref().is_none_or(|(_, _, least)| count < *least) {
            best = Some((entries, ranges, count));
        }
    }
    (all, best)
}

/// Step 3: whether reading the rows of `count` entries costs less than the scan.
fn is_better(store: &Store, count: u64, limit: Option<usize>, by_key: bool) -> bool {
    if count <= FEW {
        return true;
    }
    // The scan would be of a range of keys. It isn't known how many rows that has.
    if by_key {
        return false;
    }
    let rows = store.size() as u64;
    // A scan with a limit ends when it has met so many results. They are taken to be spread evenly:
    // one among `rows / count` rows.
    let scanned = match limit {
        Some(limit) => rows.min((limit as u64).saturating_mul(rows / count + 1)),
        None => rows,
    };
    count.saturating_mul(COST) <= scanned
}

/// How many entries lie in some ranges: exactly, if they are few and nobody writes.
fn count(entries: &Entries, ranges: &[Range], guard: &Guard) -> u64 {
    let mut batch = Batch::default();
    let mut sum = 0;
    for range in ranges {
        let start = match &range.low {
            Some(low) => Start::At(low),
            None => Start::Edge,
        };
        batch.want = FEW as usize + 1;
        batch.until = range.until();
        entries
            .tree
            .scan(guard, start, Direction::Forward, &mut batch);
        let here = (0..batch.len())
            .filter(|&i| range.has(batch.key(i)))
            .count();
        let is_all = batch.done || here < batch.len();
        sum += match entries.tree.ranked().filter(|_| !is_all) {
            None => here as u64,
            Some(ranked) => {
                let (low, high) = (range.low.as_deref(), range.high.as_deref());
                let counted = ranked.count_between(guard, low, high, &mut usize::MAX.clone());
                counted.map_or(u64::MAX, |counted| counted.entries)
            }
        };
    }
    sum
}

impl Candidates {
    /// Gathers keys until there are no more or the budget is used up.
    pub(crate) fn gather(&mut self, op: &Operation<'_>, budget: &mut Budget) -> Gathered {
        let own = &self.entries;
        let is_own = |other: &Arc<Entries>| Arc::ptr_eq(other, own);
        if !usable(op.store).is_some_and(|indexes| indexes.each.iter().any(is_own)) {
            return Gathered::Scan;
        }
        let mut batch = Batch::default();
        loop {
            // All ranges are read. The keys are complete if no value has moved since the first
            // entry was read, or if there was only one leaf, which was read at one instant.
            let Some(range) = self.ranges.get(self.range) else {
                let (before, leaves) = self.began.unwrap_or_default();
                if leaves <= 1 || own.moves() == before {
                    self.keys.sort_unstable();
                    self.keys.dedup();
                    return Gathered::Keys(std::mem::take(&mut self.keys));
                }
                self.tries += 1;
                if self.tries == TRIES {
                    return Gathered::Scan;
                }
                (self.range, self.from, self.began) = (0, None, None);
                self.keys.clear();
                continue;
            };
            // The count of moves is read before the first entry.
            let (moves, leaves) = self.began.unwrap_or_else(|| (own.moves(), 0));
            self.began = Some((moves, leaves + 1));
            let from = self.from.as_ref().or(range.low.as_ref());
            let start = from.map_or(Start::Edge, |from| Start::At(from));
            batch.until = range.until();
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
}

impl Table {
    /// How a match specification would be answered at this moment: by keys, by an index, by a scan.
    /// `limit` is how many results are wanted.
    ///
    /// # Complexity
    /// O(n log n) in the specification; O(log n) for each index of the table, and O(1) for each of
    /// its leaves that has changed since it was last counted.
    pub fn explain(&self, program: &Program, limit: Option<usize>) -> Explanation {
        let guard = larder_index::pin();
        let order = match self.key_form() {
            KeyForm::Ordered => KeyOrder::Ordered,
            KeyForm::Hash { .. } => KeyOrder::Hash,
        };
        let by_key = program.plan(self.keypos(), order);
        let none = |plan, rows| Explanation {
            plan,
            rows,
            indexes: Vec::new(),
        };
        let is_range = match by_key {
            Plan::Nothing => return none(PlanKind::Nothing, Some(0)),
            Plan::Keys(keys) => {
                let rows = self.kind().is_unique().then_some(keys.len() as u64);
                return none(PlanKind::Keys(keys.len()), rows);
            }
            Plan::Range { .. } => true,
            Plan::Full => false,
        };
        let Some(store) = self.store(&guard) else {
            return none(PlanKind::Nothing, Some(0));
        };
        let scan = match is_range {
            true => (PlanKind::Range, None),
            false => (PlanKind::Scan, Some(store.size() as u64)),
        };
        let Some(indexes) = usable(store) else {
            return none(scan.0, scan.1);
        };
        let (all, best) = rank(indexes, program, &guard);
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
