//! Finding rows by their values in an index.
//!
//! # Steps of a slice
//!
//! 1. Read a batch of entries, starting where the last slice has stopped.
//! 2. For each entry read the rows of its key, and select those that have the value.
//! 3. Return each selected row, or the result of the program if it matches the row.
//!
//! In a snapshot or a transaction's view, the rows may differ from what the entries say. Rows can
//! only differ under keys that were changed since, or written by the transaction. So (1) also makes
//! entries for the rows of all such keys, after it has read the others. None is missed, since a
//! write keeps a version before it changes entries. In a transaction's view, (1) adds the entries
//! to the read set (`changes`), and (2) adds the keys.

use super::changes::EntriesRead;
use super::values::{run, ValueCheck};
use super::{Entries, IndexDefinition, IndexEntry, Indexes};
use crate::budget::Budget;
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::keys::{KeyBatch, MANY_TO_READ};
use crate::ops::Operation;
use crate::programs::{Context, Outcome, Plan, Program, Scratch};
use crate::raw;
use crate::scan::{Output, ScanStep};
use crate::table::Table;
use larder_index::{Direction, Hint, Start, TOGETHER};
use larder_term::object::ObjectView;
use larder_term::{order_key, Atom, TermRef};
use smallvec::{smallvec, SmallVec};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// The number of entries of a view that are read together.
const CHUNK: usize = 1024;

/// How often a lookup reads the row of an entry again because the entry may have been moved away
/// and back.
const TRIES: u32 = 16;

/// A range of positions of entries: at or above `low`, and below `high`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryRange {
    pub(super) low: Option<Vec<u8>>,
    pub(super) high: Option<Vec<u8>>,
    /// Whether these are the entries of one value, which is `low`.
    is_one_value: bool,
}

impl EntryRange {
    /// The entries of a value.
    pub(super) fn of_value(term: TermRef<'_>) -> Self {
        let mut value = Vec::new();
        order_key::encode(term, &mut value);
        EntryRange {
            high: behind(&value),
            low: Some(value),
            is_one_value: true,
        }
    }

    /// The entries of the values in a range.
    fn of_values(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Self {
        EntryRange {
            low: match low {
                Bound::Included(value) => Some(value),
                // If there is no position behind it, the range is empty.
                Bound::Excluded(value) => Some(behind(&value).unwrap_or(vec![u8::MAX])),
                Bound::Unbounded => None,
            },
            high: match high {
                Bound::Included(value) => behind(&value),
                Bound::Excluded(value) => Some(value),
                Bound::Unbounded => None,
            },
            is_one_value: false,
        }
    }

    /// The value, if these are the entries of one value.
    fn value(&self) -> Option<&[u8]> {
        self.low.as_deref().filter(|_| self.is_one_value)
    }

    pub(super) fn has(&self, position: &[u8]) -> bool {
        self.low.as_ref().is_none_or(|low| position >= &low[..])
            && self.high.as_ref().is_none_or(|high| position < &high[..])
    }

    pub(super) fn until(&self) -> Bound<Vec<u8>> {
        match &self.high {
            Some(high) => Bound::Excluded(high.clone()),
            None => Bound::Unbounded,
        }
    }
}

/// The first position behind all that begin with `value`.
fn behind(value: &[u8]) -> Option<Vec<u8>> {
    let mut end = value.to_vec();
    order_key::successor(&mut end).then_some(end)
}

/// Ranges of positions, in order. Mostly there is one.
pub(super) type EntryRanges = SmallVec<[EntryRange; 1]>;

/// The ranges in which an index has the entries of rows that match a program.
pub(super) fn ranges(program: &Program, entries: &Entries) -> EntryRanges {
    match entries.extractor.plan(program) {
        Plan::Nothing => SmallVec::new(),
        Plan::Full => smallvec![EntryRange::default()],
        Plan::Keys(terms) => {
            let each = terms.iter().map(|term| EntryRange::of_value(term.as_ref()));
            each.collect()
        }
        Plan::Range { low, high } => smallvec![EntryRange::of_values(low, high)],
    }
}

/// The state of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexInfo {
    /// The definition with which it was created.
    pub definition: IndexDefinition,
    /// Whether it is ready. It is not while it is being added.
    pub ready: bool,
    /// The number of its entries.
    pub entries: usize,
    /// Its memory in bytes.
    pub memory: usize,
}

/// A lookup in an index that is under way, in slices. Between two batches of entries no epoch is
/// pinned, and nothing is locked.
pub struct IndexJob {
    table: Arc<Table>,
    definition: IndexDefinition,
    ranges: EntryRanges,
    program: Option<Program>,
    limit: Option<usize>,
    place: EntryPlace,
    /// Buffers. The entries of a batch are in `pairs`.
    lent: Lent,
}

/// The position of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EntryPlace {
    /// The number of the range.
    range: usize,
    /// The entry of the range to continue with; `None` for the first one.
    from: Option<Vec<u8>>,
    /// The number of rows of that entry that were processed.
    rows: usize,
}

impl Table {
    /// Begins to look up the rows that have a value in an index (`==`).
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `NoIndex`.
    ///
    /// # Consistency
    /// Each row that is returned was in the table, with that value, at some instant during the
    /// call. A row that has it throughout is returned once.
    ///
    /// # Complexity
    /// O(log n) for the index and for each row.
    pub fn index_lookup(
        self: &Arc<Self>,
        who: OwnerId,
        name: Atom,
        value: TermRef<'_>,
    ) -> Result<IndexJob, Error> {
        self.look_into(who, name, |_| smallvec![EntryRange::of_value(value)])
    }

    /// Begins to evaluate a program for the rows of an index. The results are in the order of the
    /// values, and for equal values in the order of the keys as bytes. With a limit, the job pauses
    /// after this number of results.
    ///
    /// # Errors
    /// Those of `index_lookup`.
    ///
    /// # Consistency
    /// A row that is in the table throughout, with the same value, is visited exactly once. A row
    /// whose value changes meanwhile may be visited twice or not at all.
    pub fn index_select(
        self: &Arc<Self>,
        who: OwnerId,
        name: Atom,
        program: Program,
        limit: Option<usize>,
    ) -> Result<IndexJob, Error> {
        let mut job = self.look_into(who, name, |own| ranges(&program, own))?;
        job.program = Some(program);
        job.limit = limit;
        Ok(job)
    }

    /// Resumes an `index_select` at the `continuation` of another job. Table, index and program
    /// must be the same.
    ///
    /// # Errors
    /// Those of `index_lookup`; `BadContinuation`.
    pub fn index_select_resume(
        self: &Arc<Self>,
        who: OwnerId,
        name: Atom,
        program: Program,
        limit: Option<usize>,
        continuation: &[u8],
    ) -> Result<IndexJob, Error> {
        let mut job = self.index_select(who, name, program, limit)?;
        job.place = EntryPlace::of_bytes(continuation).ok_or(Error::BadContinuation)?;
        Ok(job)
    }

    /// Begins a job on the index of this name, in the ranges that `ranges` returns for it.
    fn look_into(
        self: &Arc<Self>,
        who: OwnerId,
        name: Atom,
        ranges: impl FnOnce(&Entries) -> EntryRanges,
    ) -> Result<IndexJob, Error> {
        self.check_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        let own = find(&op, name)?;
        let (definition, ranges) = (own.definition.clone(), ranges(own));
        Ok(IndexJob {
            table: Arc::clone(self),
            definition,
            ranges,
            program: None,
            limit: None,
            place: EntryPlace::default(),
            lent: Lent::new(),
        })
    }

    /// Returns the states of the table's indexes. O(1) for each.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let guard = larder_index::pin();
        let indexes = self
            .store(&guard)
            .and_then(|store| store.layers().indexes.as_ref());
        let each = indexes.map_or(&[][..], |indexes| &indexes.each);
        let info = each.iter().map(|entries| IndexInfo {
            definition: entries.definition.clone(),
            ready: entries.is_ready(),
            entries: entries.len(),
            memory: entries.memory(),
        });
        info.collect()
    }
}

/// Finds the index of this name in the table of an operation.
fn find<'g>(op: &Operation<'g>, name: Atom) -> Result<&'g Arc<Entries>, Error> {
    let indexes: Option<&Arc<Indexes>> = op.store.layers().indexes.as_ref();
    let found = indexes.and_then(|indexes| indexes.find(name));
    found.ok_or(Error::NoIndex(name.into()))
}

impl IndexJob {
    /// Runs one slice: passes results to `sink` until the budget or the limit is exhausted, or
    /// there are no more.
    ///
    /// # Errors
    /// `NoTable`, `NoIndex` if the table or the index was dropped; `Busy`: help with the list, and
    /// step again.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, Error> {
        if self.limit == Some(0) {
            return Ok(ScanStep::Limit);
        }
        while self.place.range < self.ranges.len() {
            // Pin again for each batch, so that a slice delays the freeing of memory only for the
            // duration of a batch.
            let guard = larder_index::pin();
            let op = self.table.begin(&guard)?;
            let own = find(&op, self.definition.name)?;
            // Another index of the same name has other values.
            if own.definition != self.definition {
                return Err(Error::NoIndex(self.definition.name.into()));
            }
            let next = self.read_entries(&op, own);
            if let Some(step) = self.give(&op, own, budget, context, sink) {
                return Ok(step);
            }
            self.place = match next {
                Some(from) => EntryPlace {
                    from: Some(from),
                    range: self.place.range,
                    rows: 0,
                },
                None => EntryPlace {
                    range: self.place.range + 1,
                    ..EntryPlace::default()
                },
            };
            if budget.is_exhausted() {
                return Ok(ScanStep::More);
            }
        }
        Ok(ScanStep::Done)
    }

    /// (1) Reads the next entries of the range. Returns where to continue, if it has more.
    fn read_entries(&mut self, op: &Operation<'_>, own: &Entries) -> Option<Vec<u8>> {
        let range = &mut self.ranges[self.place.range];
        let first = self.place.from.as_ref().or(range.low.as_ref());
        let views = op.store.views();
        for view in views {
            view.note_entries(EntriesRead::begin(&own.changes, range.value()));
        }
        let Buffers { batch, pairs, .. } = &mut *self.lent;
        batch.want = self.limit.map_or(0, |limit| limit.max(8));
        batch.any_order = false;
        pairs.clear();
        // The batch borrows the end of the range. If the scan panics, the job isn't continued.
        batch.until = range.high.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut resume: Option<Vec<u8>> = None;
        let next = loop {
            batch.clear();
            let from = resume.as_ref().or(first);
            let start = from.map_or(Start::Edge, |from| Start::At(from));
            own.tree.scan(op.guard, start, Direction::Forward, batch);
            // They are in order, so those beyond the range are at the end.
            let is_within = |i: &usize| match &batch.until {
                Bound::Excluded(high) => batch.key(*i) < &high[..],
                _ => true,
            };
            let within = (0..batch.len()).rev().find(is_within).map_or(0, |i| i + 1);
            let is_over = batch.done || within < batch.len();
            batch.entries.truncate(within);
            let next = (!is_over).then(|| std::mem::take(&mut batch.resume));
            // The entries of a table are returned batch by batch.
            if views.is_empty() {
                break next;
            }
            // Those of a view are read in larger parts, because each part visits all keys that
            // differ.
            for i in 0..batch.len() {
                let entry = own.entry(batch.key(i), batch.value(i));
                pairs.push((entry.value, entry.key));
            }
            if next.is_none() || pairs.len() >= CHUNK {
                break next;
            }
            resume = next;
        };
        if let Bound::Excluded(high) = std::mem::replace(&mut batch.until, Bound::Unbounded) {
            range.high = Some(high);
        }
        if !views.is_empty() {
            let part = EntryRange {
                low: first.cloned(),
                high: next.clone().or(range.high.clone()),
                is_one_value: false,
            };
            self.read_differing(op, own, &part);
        }
        next
    }

    /// Makes entries of the rows of all keys that differ in a view, and sorts all entries.
    fn read_differing(&mut self, op: &Operation<'_>, own: &Entries, part: &EntryRange) {
        let Buffers {
            batch,
            plain,
            scratch,
            values,
            indexed,
            pairs,
            position,
        } = &mut *self.lent;
        // Most of these rows have no value in the part, so reading them here isn't added to the
        // read set. Those that have one are read again in (2), by the entries that are made of
        // them.
        let unnoted = op.store.views().iter().find_map(|view| view.unnoted());
        let objects = unnoted.unwrap_or(&op.store.index);
        for view in op.store.views() {
            let Some(index) = view.changed() else {
                continue;
            };
            batch.want = 0;
            let mut start: Option<Vec<u8>> = None;
            loop {
                let from = start.as_ref().map_or(Start::Edge, |from| Start::At(from));
                index.scan(op.guard, from, Direction::Forward, batch);
                // The scan yields keys that differ. Read the rows of each in the view.
                for i in 0..batch.len() {
                    let key = batch.key(i);
                    objects.copy(op.guard, self.table.key(key), values);
                    for row in values.iter() {
                        let row = raw::view(key, row, self.table.keypos(), plain);
                        own.extractor.values(&row, scratch, indexed);
                        for value in indexed.iter() {
                            own.position(value, key, position);
                            // Only values in the part that is looked at.
                            if part.has(position) {
                                pairs.push((value, key));
                            }
                        }
                    }
                }
                if batch.done {
                    break;
                }
                start = Some(std::mem::take(&mut batch.resume));
            }
        }
        pairs.sort();
    }

    /// (2), (3) Returns the results for the rows of the entries. `None` if all were processed.
    fn give(
        &mut self,
        op: &Operation<'_>,
        own: &Entries,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Option<ScanStep> {
        let Buffers {
            batch,
            plain,
            scratch,
            values,
            indexed,
            pairs,
            position,
        } = &mut *self.lent;
        let has_views = !op.store.views().is_empty();
        // The entries that (1) has read: those of a table are in the batch, those of a view in
        // pairs.
        let count = if has_views { pairs.len() } else { batch.len() };
        let entry_at = |i: usize| {
            if has_views {
                let (value, key) = pairs.get(i);
                return IndexEntry { value, key };
            }
            own.entry(batch.key(i), batch.value(i))
        };
        let mut check = ValueCheck::new(&own.extractor, scratch, indexed);
        let (keypos, is_far) = (self.table.keypos(), op.store.is_far(MANY_TO_READ));
        let mut next_keys = KeyBatch::new();
        let resumed = self.place.from.take().filter(|_| self.place.rows > 0);
        // The previous entry, and the number of rows that were found at its position so far.
        let (mut previous, mut rows) = (None, 0);
        for i in 0..count {
            let entry = entry_at(i);
            let IndexEntry { value, key } = entry;
            if is_far && i % TOGETHER == 0 {
                // The rows of neighbouring entries are in unrelated places. Prefetch them, so that
                // their cache misses overlap.
                next_keys.fill(count - i, |next| self.table.key(entry_at(i + next).key));
                op.store.index.prefetch(op.guard, next_keys.keys());
            }
            // In a transaction's view two keys may have the same value of a unique index. Their
            // entries are neighbours, and have the same position.
            let is_beside = |previous| has_views && own.are_at_one_position(previous, entry);
            if !previous.is_some_and(is_beside) {
                (previous, rows) = (Some(entry), 0);
            }
            // The last slice may have stopped at this position, after some of its rows.
            let is_resumed = resumed.as_ref().is_some_and(|resumed| {
                own.position(value, key, position);
                resumed == position
            });
            let rows_to_skip = if is_resumed { self.place.rows } else { 0 };
            let (mut key, mut seen, mut tries) = (Cow::Borrowed(key), Hint::default(), 0);
            loop {
                // (2) Copy all rows under the key, as of one instant.
                let mut is_found = false;
                op.store.index.copy(op.guard, self.table.key(&key), values);
                for row in values.iter() {
                    let row = raw::view(&key, row, keypos, plain);
                    if !check.has(&row, value) {
                        continue;
                    }
                    (is_found, rows) = (true, rows + 1);
                    if rows <= rows_to_skip {
                        continue;
                    }
                    // (3)
                    let is_result = match &self.program {
                        None => {
                            sink(Output::Object(&row));
                            true
                        }
                        Some(program) => give_result(program, &row, context, check.scratch(), sink),
                    };
                    let mut stop = (!budget.spend(2)).then_some(ScanStep::More);
                    if let (Some(limit), true) = (&mut self.limit, is_result) {
                        *limit -= 1;
                        if *limit == 0 {
                            stop = Some(ScanStep::Limit);
                        }
                    }
                    if stop.is_some() {
                        own.position(entry.value, entry.key, position);
                        self.place.from = Some(position.clone());
                        self.place.rows = rows;
                        return stop;
                    }
                }
                // A view has the entries of all its rows, so none is missed here.
                if is_found || has_views {
                    break;
                }
                // A commit may have moved a value of a unique index from this row to another. The
                // entry led here, the copy waited for the commit, and the row doesn't have the
                // value any more. Return the row that has it now.
                let mut now = Hint::default();
                match own.holder_at(op.guard, value, &mut now) {
                    Some(holder) if *holder != *key => key = Cow::Owned(holder),
                    // Its leaf has changed: commits may have moved the value away and back since
                    // the entry was read. Mostly another write has claimed it, or other entries
                    // have changed, so this is tried a few times only.
                    Some(_) if !now.is_same(&seen) && tries < TRIES => tries += 1,
                    // No row had the value at the instant of the copy.
                    _ if self.table.state.holds(op.state, op.guard) => break,
                    // The table's first transaction has begun since this operation did, whose store
                    // doesn't wait for commits. Read the entry again with the new store.
                    _ => {
                        own.position(entry.value, entry.key, position);
                        self.place.from = Some(position.clone());
                        self.place.rows = rows;
                        return Some(ScanStep::More);
                    }
                }
                seen = now;
            }
        }
        None
    }

    /// The position as bytes, for `index_select_resume`.
    pub fn continuation(&self) -> Vec<u8> {
        self.place.to_bytes()
    }

    /// Sets how many more results are wanted; `None` for all.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }
}

/// (3) Passes the result of a program for a row to `sink`, if the row matches. Returns whether it
/// does.
fn give_result(
    program: &Program,
    row: &ObjectView<'_>,
    context: &Context<'_>,
    scratch: &mut Scratch,
    sink: &mut dyn FnMut(Output<'_>),
) -> bool {
    match run(program, row, context, scratch) {
        Some(Outcome::Object) => sink(Output::Object(row)),
        Some(Outcome::Term(term)) => sink(Output::Term(term)),
        None => return false,
    }
    true
}

impl EntryPlace {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.from.is_some())];
        bytes.extend_from_slice(&(self.range as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.rows as u64).to_le_bytes());
        bytes.extend_from_slice(self.from.as_deref().unwrap_or_default());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, from) = bytes.split_at_checked(17)?;
        let number = |at: usize| Some(u64::from_le_bytes(head[at..at + 8].try_into().ok()?));
        Some(EntryPlace {
            range: usize::try_from(number(1)?).ok()?,
            rows: usize::try_from(number(9)?).ok()?,
            from: match head[0] {
                0 if from.is_empty() => None,
                1 => Some(from.to_vec()),
                _ => return None,
            },
        })
    }
}
