//! The plan of a scan: whether a match specification uses a secondary index.
//!
//! # Steps
//!
//! 1. Plan the program by the key (`scan::cursor`). If it fixes keys, no index is considered.
//! 2. For each index, compute the ranges of the entries of rows that can match the program, and
//!    count the entries in them. If there are few, they are read for that, more are counted by the
//!    tree's ranks.
//! 3. Use the index with the fewest entries, if that costs less than the scan.
//!
//! The keys of these entries are the candidates (`candidates`). The rows of each are read, and the
//! program runs on them as in any scan. So the results are those of the scan without an index.

use super::candidates::{count, CandidateKeys, CountedEntries};
use super::ranges::{ranges, EntryRange, EntryRanges};
use super::{Entries, Indexes};
use crate::buffers::{Buffers, ThreadBuffers};
use crate::programs::{Plan, Program};
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::Guard;
use larder_term::Atom;
use std::sync::Arc;

/// An index with this number of entries is used without further comparison.
const FEW: u64 = 64;

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
    /// The maximum number of rows that are visited; `None` if it isn't known, as for a scan of a
    /// snapshot or of a transaction's view. It is estimated if very many entries of the index have
    /// changed since they were last counted.
    pub rows: Option<u64>,
    /// The indexes that could be used, each with the number of its entries that would be visited.
    pub indexes: Vec<(Atom, u64)>,
}

/// Chooses the index by which a program finds its rows, if that is better than scanning the table.
/// `limit` is the number of results that are wanted. `by_key` says that the program limits the key
/// to a range.
pub(crate) fn candidates(
    table: &EngineTable,
    program: &Program,
    limit: Option<usize>,
    by_key: bool,
    buffers: &mut Buffers,
) -> Option<CandidateKeys> {
    let guard = larder_index::pin();
    // While a list is being inserted, some of its entries are missing. They are only counted then.
    let begun = table.begin(&guard).ok();
    let store = match &begun {
        Some(op) => op.store,
        None => table.store(&guard)?,
    };
    // No index, or none that is ready: the table is scanned.
    let indexes = store.layers().indexes.as_ref()?;
    // The index with the fewest entries.
    let Ranked {
        entries,
        ranges,
        counted,
    } = rank(store, indexes, program, &guard, buffers, &mut |_, _| ())?;
    // The rows of a view may differ from the entries.
    let is_whole = begun.is_some() && store.views().is_empty();
    is_better(store, counted.count, limit, by_key).then(|| {
        let keys = counted.keys.filter(|_| is_whole);
        CandidateKeys::new(entries, ranges, keys)
    })
}

/// An index, the ranges of its entries, and the entries in them. In a view their number includes
/// the keys that may differ.
struct Ranked<'i> {
    entries: &'i Arc<Entries>,
    ranges: EntryRanges,
    counted: CountedEntries,
}

/// Returns the index with the fewest entries among those that limit the rows of the program. Calls
/// `see` with each of them and with its number of entries.
fn rank<'i>(
    store: &Store,
    indexes: &'i Indexes,
    program: &Program,
    guard: &Guard,
    buffers: &mut Buffers,
    see: &mut dyn FnMut(Atom, u64),
) -> Option<Ranked<'i>> {
    let mut best = None::<Ranked<'i>>;
    let differing: u64 = store.views().iter().map(|view| view.about() as u64).sum();
    for entries in indexes.each.iter().filter(|entries| entries.is_ready()) {
        // The entries are in the order of values. So what the program says of a value becomes
        // ranges of entries.
        let ranges = ranges(program, entries, &mut buffers.position);
        // One unlimited range: the index doesn't restrict the program.
        if ranges.contains(&EntryRange::ALL) {
            continue;
        }
        let (batch, position) = (&mut buffers.batch, &mut buffers.position);
        let mut counted = count(entries, &ranges, guard, batch, position);
        counted.count = counted.count.saturating_add(differing);
        see(entries.definition.name, counted.count);
        let is_least = |best: &Ranked<'_>| counted.count < best.counted.count;
        if best.as_ref().is_none_or(is_least) {
            best = Some(Ranked {
                entries,
                ranges,
                counted,
            });
        }
    }
    best
}

/// Step 3: whether reading the rows of `count` entries costs less than the scan.
fn is_better(store: &Store, count: u64, limit: Option<usize>, by_key: bool) -> bool {
    if count <= FEW {
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

impl EngineTable {
    /// Returns how a match specification would be evaluated now: by keys, by an index, or by a
    /// scan. `limit` is the number of results that are wanted.
    ///
    /// # Complexity
    /// O(n log n) in the size of the specification; O(log n) for each index of the table, and O(1)
    /// for each of its leaves that has changed since it was last counted, of some thousand at most.
    pub fn explain(&self, program: &Program, limit: Option<usize>) -> Explanation {
        let guard = larder_index::pin();
        // The plan by the key comes first, as in a scan: no index is better than a known key.
        let by_key = program.plan(self.keypos(), self.key_access());
        let none = |plan, rows| Explanation {
            plan,
            rows,
            indexes: Vec::new(),
        };
        // If the specification matches nothing or fixes the keys, no index is considered.
        let is_range = match by_key {
            Plan::Nothing => return none(PlanKind::Nothing, Some(0)),
            Plan::Keys(terms) => {
                let keys = self.index_keys(&terms).len();
                let rows = self.kind().is_unique().then_some(keys as u64);
                return none(PlanKind::Keys(keys), rows);
            }
            Plan::Range { .. } => true,
            Plan::AllKeys => false,
        };
        let Some(store) = self.store(&guard) else {
            return none(PlanKind::Nothing, Some(0));
        };
        let scan = match is_range {
            true => (PlanKind::Range, None),
            // The objects of a view would have to be counted one by one.
            false => {
                let is_view = !store.views().is_empty();
                (PlanKind::Scan, (!is_view).then(|| store.size() as u64))
            }
        };
        let Some(indexes) = &store.layers().indexes else {
            return none(scan.0, scan.1);
        };
        // Count the entries that each index would read. The best one is used if it is better than
        // the scan.
        let (mut all, mut lent) = (Vec::new(), ThreadBuffers::new());
        let see = &mut |name, count| all.push((name, count));
        let best = rank(store, indexes, program, &guard, &mut lent, see);
        let best = best.filter(|best| is_better(store, best.counted.count, limit, is_range));
        let (plan, rows) = match best {
            Some(best) => {
                let name = best.entries.definition.name;
                // Of a bag, all rows under the key of an entry are read.
                let rows = self.kind().is_unique().then_some(best.counted.count);
                (PlanKind::Index(name), rows)
            }
            None => scan,
        };
        Explanation {
            plan,
            rows,
            indexes: all,
        }
    }
}
