//! Finding rows by their values in an index.
//!
//! # Steps of a slice
//!
//! 1. Read a batch of entries, starting where the last slice has stopped.
//! 2. For each entry read the rows of its key, and select those that have the value.
//! 3. Return each selected row, or the result of the program if it matches the row.
//!
//! In a snapshot or a transaction's view, the rows may differ from what the entries say. So (1)
//! also makes entries for the rows that may differ (`part`). In a transaction's view, (1) adds the
//! entries to the read set (`changes`), and (2) adds the keys.

use super::part::ViewEntries;
use super::ranges::{ranges, EntryRange, EntryRanges};
use super::values::ValueCheck;
use super::{Entries, IndexDefinition, IndexEntry, Indexes};
use crate::budget::Budget;
use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::TableIndex;
use crate::keys::{KeyBatch, MANY_TO_READ};
use crate::ops::{copy_of, Operation};
use crate::pairs::Pairs;
use crate::programs::{Context, Program, Scratch, Shown};
use crate::raw;
use crate::scan::{cost, pass_on, Output, ScanStep};
use crate::table::EngineTable;
use larder_index::{
    Batch, Direction, Hint, Key, Multi, Unique, Values, MAX_KEYS_PER_LOOKUP, SHORT_VALUE,
};
use larder_term::object::ObjectView;
use larder_term::{Atom, TermRef};
use smallvec::smallvec;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a lookup reads the row of an entry again because the entry may have been moved away
/// and back.
const TRIES: u32 = 16;

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

/// A lookup in an index, in progress. It runs in slices. Between two batches of entries no epoch is
/// pinned, and nothing is locked.
pub struct IndexJob {
    table: Arc<EngineTable>,
    definition: IndexDefinition,
    ranges: EntryRanges,
    program: Option<Program>,
    limit: Option<usize>,
    resume: IndexResumePoint,
    /// The entries of a view.
    of_view: ViewEntries,
    /// Buffers. The entries of a batch are in `pairs`.
    buffers: ThreadBuffers,
}

/// The position of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct IndexResumePoint {
    /// The number of the range.
    range: usize,
    /// The entry of the range to continue with; `None` for the first one.
    from: Option<Vec<u8>>,
    /// The number of rows of that entry that were processed.
    rows: usize,
}

impl EngineTable {
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
        let mut buffers = ThreadBuffers::new();
        let range = EntryRange::of_value(value, &mut buffers.position);
        self.look_into(who, name, buffers, |_| smallvec![range])
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
        let mut position = Vec::new();
        let ranges = |entries: &Entries| ranges(&program, entries, &mut position);
        let mut job = self.look_into(who, name, ThreadBuffers::new(), ranges)?;
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
        job.resume = IndexResumePoint::of_bytes(continuation).ok_or(Error::BadContinuation)?;
        Ok(job)
    }

    /// Begins a job on the index of this name, in the ranges that `ranges` returns for it.
    fn look_into(
        self: &Arc<Self>,
        who: OwnerId,
        name: Atom,
        buffers: ThreadBuffers,
        ranges: impl FnOnce(&Entries) -> EntryRanges,
    ) -> Result<IndexJob, Error> {
        // Nothing is read yet. The job keeps the definition, not the index: between two slices the
        // index may be dropped.
        self.check_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        let entries = find(&op, name)?;
        let (definition, ranges) = (entries.definition.clone(), ranges(entries));
        Ok(IndexJob {
            table: Arc::clone(self),
            definition,
            ranges,
            program: None,
            limit: None,
            resume: IndexResumePoint::default(),
            of_view: ViewEntries::default(),
            buffers,
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
        while self.resume.range < self.ranges.len() {
            // Pin again for each batch, so that a slice delays the freeing of memory only for the
            // duration of a batch.
            let guard = larder_index::pin();
            let op = self.table.begin(&guard)?;
            let entries = find(&op, self.definition.name)?;
            // Another index of the same name has other values.
            if entries.definition != self.definition {
                return Err(Error::NoIndex(self.definition.name.into()));
            }
            // (1) Read a batch of entries. `next` is where the next batch of the range begins.
            let next = match self.read_entries(&op, entries) {
                ControlFlow::Break(next) => next,
                ControlFlow::Continue(cost) if budget.spend(cost) => continue,
                ControlFlow::Continue(_) => return Ok(ScanStep::More),
            };
            // (2), (3) Pass on the results for their rows. If that stops among them, `give` has set
            // the resume point.
            if let Some(step) = self.give(&op, entries, budget, context, sink) {
                if step == ScanStep::Limit {
                    self.of_view.pause(&op);
                }
                return Ok(step);
            }
            // All of them were processed. Go on in this range, or with the next one.
            self.resume = match next {
                Some(from) => IndexResumePoint {
                    from: Some(from),
                    range: self.resume.range,
                    rows: 0,
                },
                None => IndexResumePoint {
                    range: self.resume.range + 1,
                    ..IndexResumePoint::default()
                },
            };
            // A range without entries takes a search, too.
            if !budget.spend(1) {
                return Ok(ScanStep::More);
            }
        }
        Ok(ScanStep::Done)
    }

    /// (1) Reads the next entries of the range, and breaks with the point where to continue, if it
    /// has more. In a view, continues with the costs if there is more to read before.
    fn read_entries(
        &mut self,
        op: &Operation<'_>,
        entries: &Arc<Entries>,
    ) -> ControlFlow<Option<Vec<u8>>, u32> {
        let range = &self.ranges[self.resume.range];
        let from = self.resume.from.as_deref();
        if !op.store.views().is_empty() {
            let (table, buffers) = (&self.table, &mut *self.buffers);
            let view = (&**table, op);
            return (self.of_view).read(view, entries, range, from, self.limit, buffers);
        }
        let Buffers {
            batch, position, ..
        } = &mut *self.buffers;
        // The first entry may be the one at which the page before has ended.
        batch.want = self.limit.map_or(0, |limit| limit.max(8).saturating_add(1));
        batch.any_order = false;
        // The resume point is within the range, or a continuation was made up.
        ControlFlow::Break(batch.lend_owned(|batch| {
            let forward = Direction::Forward;
            entries.read_leaf(op.guard, range, from, forward, position, batch)
        }))
    }

    /// (2), (3) Returns the results for the rows of the entries. `None` if all were processed.
    fn give(
        &mut self,
        op: &Operation<'_>,
        entries: &Entries,
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
            element,
            pairs,
            position,
            passing: _,
        } = &mut *self.buffers;
        let (table, resume) = (&*self.table, &mut self.resume);
        // The entries that (1) has read.
        let wanted = self.ranges[resume.range].wanted();
        let has_views = !op.store.views().is_empty();
        let list = EntryList {
            entries,
            batch,
            pairs: has_views.then_some(pairs),
            one_value: wanted.map(|wanted| &wanted.value[..]),
        };
        let mut values = RowValues::new(values);
        let mut giving = Giving {
            program: self.program.as_ref(),
            limit: &mut self.limit,
            check: ValueCheck::new(&entries.extractor, wanted, scratch, indexed, element),
            rows: RowIndex::of(op.store.rows()),
            is_late: false,
            keypos: table.keypos(),
            plain,
            count: RowCount::new(entries, has_views, resume, position),
            budget,
            context,
            sink,
        };
        // If the table is larger than the caches, the rows of several entries are prefetched at
        // once.
        let (mut keys, is_far) = (KeyBatch::new(), op.store.is_far(MANY_TO_READ));
        for i in 0..list.len() {
            let key = match is_far {
                false => table.key(list.key(i)),
                true => list.prefetched_key(i, table, op, &mut keys),
            };
            let value = list.value(i, key.bytes);
            giving.count.begin_entry(value, key.bytes);
            // The rows of a bag's key that lack the value may have taken all of the time. At least
            // the entries at one position are processed.
            if giving.is_late && giving.count.is_first {
                giving.count.stop_at(value, key.bytes, resume);
                return Some(ScanStep::More);
            }
            // (2) Copy all rows under the key, as of one instant.
            let mut given = giving.copy(op, value, key, &mut values);
            // A view has the entries of all its rows, so none is missed there.
            if given == Given::Nothing && !has_views {
                let key = key.bytes;
                given = giving.follow(table, op, entries, IndexEntry { value, key }, values.long);
            }
            if let Given::Stop(step) = given {
                giving.count.stop_at(value, key.bytes, resume);
                return Some(step);
            }
        }
        None
    }

    /// The position as bytes, for `index_select_resume`.
    pub fn continuation(&self) -> Vec<u8> {
        self.resume.to_bytes()
    }
}

/// The entries that (1) has read: those of a table are in the batch, those of a view in pairs.
struct EntryList<'b> {
    entries: &'b Entries,
    batch: &'b Batch<'b>,
    pairs: Option<&'b Pairs>,
    /// The value, if all are entries of the same one.
    one_value: Option<&'b [u8]>,
}

impl<'b> EntryList<'b> {
    #[inline]
    fn len(&self) -> usize {
        self.pairs.map_or(self.batch.len(), Pairs::len)
    }

    /// The key of entry `i`.
    #[inline(always)]
    fn key(&self, i: usize) -> &'b [u8] {
        if let Some(pairs) = self.pairs {
            return pairs.get(i).1;
        }
        match self.one_value {
            Some(value) => self.entries.key_after(value, self.batch, i),
            None => {
                let (position, record) = self.batch.entry(i);
                self.entries.entry(position, record).key
            }
        }
    }

    /// The key of entry `i`, with its hash. For the first of some keys, hashes all of
    /// them and prefetches their rows. The rows of neighbouring entries are in unrelated places, so
    /// their cache misses then overlap.
    #[inline]
    fn prefetched_key(
        &self,
        i: usize,
        table: &EngineTable,
        op: &Operation<'_>,
        keys: &mut KeyBatch<'b>,
    ) -> Key<'b> {
        let number = i % MAX_KEYS_PER_LOOKUP;
        if number == 0 {
            keys.fill(self.len() - i, |ahead| table.key(self.key(i + ahead)));
            op.store.index.prefetch(op.guard, keys.keys());
        }
        keys.keys()[number]
    }

    /// The value of entry `i`, which has this key.
    #[inline]
    fn value(&self, i: usize, key: &[u8]) -> &'b [u8] {
        match (self.one_value, self.pairs) {
            (Some(value), _) => value,
            (None, Some(pairs)) => pairs.get(i).0,
            (None, None) => self.entries.value_before(self.batch.key(i), key),
        }
    }
}

/// The outcome for the rows under a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    /// No row has the value.
    Nothing,
    /// There are such rows, and the lookup goes on.
    Some,
    /// The slice ends after a row.
    Stop(ScanStep),
}

/// The memory for copies of rows: one on the stack for a short value, and a list.
struct RowValues<'a> {
    short: [u8; SHORT_VALUE],
    long: &'a mut Values,
}

impl RowValues<'_> {
    #[inline]
    fn new(long: &mut Values) -> RowValues<'_> {
        let short = [0; SHORT_VALUE];
        RowValues { short, long }
    }
}

/// The index of the rows, without the reference count that leads to it. So the address isn't
/// computed again for each row.
#[derive(Clone, Copy)]
enum RowIndex<'a> {
    /// At most one for each key.
    One(&'a dyn Unique),
    /// Any number for each key.
    Many(&'a dyn Multi),
}

impl<'a> RowIndex<'a> {
    #[inline]
    fn of(index: &'a TableIndex) -> Self {
        match index {
            TableIndex::Unique(index) => RowIndex::One(&**index),
            TableIndex::Multi(index) => RowIndex::Many(&**index),
        }
    }
}

/// (3) Gives the rows that have their entry's value.
struct Giving<'a> {
    program: Option<&'a Program>,
    limit: &'a mut Option<usize>,
    check: ValueCheck<'a>,
    rows: RowIndex<'a>,
    /// Whether rows that lack their entry's value have taken all of the time.
    is_late: bool,
    keypos: usize,
    plain: &'a mut Vec<u8>,
    count: RowCount<'a>,
    budget: &'a mut Budget,
    context: &'a Context<'a>,
    sink: &'a mut dyn FnMut(Output<'_>),
}

/// Counts the rows that are found at the position of an entry, so that a lookup can stop among
/// them.
struct RowCount<'a> {
    entries: &'a Entries,
    /// Whether entries may be at one position: those of a view. In a transaction's view two keys
    /// may have the same value of a unique index. Their entries are then neighbours.
    has_views: bool,
    /// The entry before, if entries may be at one position.
    previous: Option<IndexEntry<'a>>,
    /// The position at which the last slice has stopped, and how many rows it has given there.
    resumed: Option<(Vec<u8>, usize)>,
    /// A buffer.
    position: &'a mut Vec<u8>,
    /// The number of rows that were found at the position.
    rows: usize,
    /// How many of these were given by an earlier slice.
    rows_to_skip: usize,
    /// Whether the entry is the first one at its position.
    is_first: bool,
    /// Whether the rows of each entry are counted on their own, and from the first one.
    is_plain: bool,
}

impl<'a> RowCount<'a> {
    /// Begins to count for a slice that starts at a resume point.
    fn new(
        entries: &'a Entries,
        has_views: bool,
        resume: &mut IndexResumePoint,
        position: &'a mut Vec<u8>,
    ) -> Self {
        // The last slice has stopped among the rows of the first entry, if it has counted any.
        let rows = resume.rows;
        let resumed = resume.from.take().filter(|_| rows > 0);
        RowCount {
            entries,
            has_views,
            previous: None,
            is_plain: !has_views && resumed.is_none(),
            resumed: resumed.map(|position| (position, rows)),
            position,
            rows: 0,
            rows_to_skip: 0,
            is_first: true,
        }
    }

    /// Begins an entry.
    #[inline]
    fn begin_entry(&mut self, value: &'a [u8], key: &'a [u8]) {
        if self.is_plain {
            self.rows = 0;
        } else {
            self.begin_beside(IndexEntry { value, key });
        }
    }

    /// Begins an entry that may be at the position of the one before, or at which the last slice
    /// may have stopped.
    #[inline(never)]
    fn begin_beside(&mut self, entry: IndexEntry<'a>) {
        let previous = match self.has_views {
            true => self.previous.replace(entry),
            false => None,
        };
        let is_beside = |previous| self.entries.are_at_one_position(previous, entry);
        self.is_first = !previous.is_some_and(is_beside);
        // Rows are counted for each position, whichever entry leads to them.
        if self.is_first {
            self.rows = 0;
        }
        // At the position where the last slice has stopped, skip the rows that it has given.
        if let Some((stopped, given)) = &self.resumed {
            self.entries.position(entry.value, entry.key, self.position);
            self.rows_to_skip = if stopped == self.position { *given } else { 0 };
        }
    }

    /// Counts a row. Returns whether an earlier slice has given it.
    #[inline]
    fn is_given(&mut self) -> bool {
        self.rows += 1;
        self.rows <= self.rows_to_skip
    }

    /// Moves the resume point to this entry, after the rows that were counted.
    #[inline(never)]
    fn stop_at(&mut self, value: &[u8], key: &[u8], resume: &mut IndexResumePoint) {
        self.entries.position(value, key, self.position);
        resume.from = Some(self.position.clone());
        resume.rows = self.rows;
    }
}

impl Giving<'_> {
    /// Copies all rows under a key, as of one instant, and gives those that have the value.
    #[inline]
    fn copy(
        &mut self,
        op: &Operation<'_>,
        value: &[u8],
        key: Key<'_>,
        values: &mut RowValues<'_>,
    ) -> Given {
        let RowValues { short, long } = values;
        match self.rows {
            RowIndex::One(ix) => match copy_of(ix, op.guard, key, short, &mut long.bytes) {
                Some((row, len)) => self.row(value, key.bytes, &row[..len]),
                // The row was removed since the entry was read.
                None => Given::Nothing,
            },
            RowIndex::Many(ix) => {
                long.clear();
                ix.read(op.guard, key, long);
                self.all_rows(value, key.bytes, long)
            }
        }
    }

    /// Gives a row under a key, if it has the value.
    ///
    /// 1. Check the row: it may have changed since the entry was read.
    /// 2. Skip it if an earlier slice has given it.
    /// 3. Pass it, or the program's result for it, to the sink.
    /// 4. Stop if the limit is reached, or if the budget is used up.
    #[inline(always)]
    fn row(&mut self, value: &[u8], key: &[u8], row: &[u8]) -> Given {
        // A small row costs two units: it is looked up by its key.
        let cost = cost(2, row);
        let row = raw::view(key, row, self.keypos, self.plain);
        // (1)
        if !self.check.has(&row, value) {
            return Given::Nothing;
        }
        // (2)
        if self.count.is_given() {
            return Given::Some;
        }
        // (3) A row that the program doesn't match is no result, but costs as much.
        let is_result = match self.program {
            None => {
                (self.sink)(Output::Object(&row));
                true
            }
            Some(program) => {
                let scratch = self.check.scratch();
                give_result(program, &row, self.context, scratch, self.sink)
            }
        };
        // (4)
        let has_time = self.budget.spend(cost);
        if let (Some(limit), true) = (&mut *self.limit, is_result) {
            *limit -= 1;
            if *limit == 0 {
                return Given::Stop(ScanStep::Limit);
            }
        }
        match has_time {
            true => Given::Some,
            false => Given::Stop(ScanStep::More),
        }
    }

    /// Gives the rows under a key that have the value.
    #[inline(never)]
    fn all_rows(&mut self, value: &[u8], key: &[u8], rows: &Values) -> Given {
        let (mut given, mut without) = (Given::Nothing, 0);
        for row in rows.iter() {
            match self.row(value, key, row) {
                Given::Nothing => without += 1,
                Given::Some => given = Given::Some,
                stop => return stop,
            }
        }
        // Those that don't have the value were read, too.
        self.is_late = !self.budget.spend(without);
        given
    }

    /// Gives the row that has the value of an entry whose key has no such row any more.
    ///
    /// A commit may have moved a value of a unique index from one row to another. The entry led to
    /// the first one, the copy of it waited for the commit, and it doesn't have the value any more.
    #[cold]
    fn follow(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        entries: &Entries,
        entry: IndexEntry<'_>,
        values: &mut Values,
    ) -> Given {
        let (mut key, mut seen, mut tries) = (entry.key.to_vec(), Hint::default(), 0);
        loop {
            let mut now = Hint::default();
            match entries.holder_at(op.guard, entry.value, &mut now) {
                Some(holder) if holder != key => key = holder,
                // Its leaf has changed: commits may have moved the value away and back since the
                // entry was read. Mostly another write has claimed it, or other entries have
                // changed, so this is tried a few times only.
                Some(_) if !now.is_same(&seen) && tries < TRIES => tries += 1,
                // No row had the value at the instant of the copy.
                _ if table.state.holds(op.state, op.guard) => return Given::Nothing,
                // The table's first transaction has begun since this operation did, whose store
                // doesn't wait for commits. Read the entry again with the new store.
                _ => return Given::Stop(ScanStep::More),
            }
            seen = now;
            op.store.index.copy(op.guard, table.key(&key), values);
            match self.all_rows(entry.value, &key, values) {
                Given::Nothing => {}
                given => return given,
            }
        }
    }
}

/// (3) Passes the result of a program for a row to `sink`, if the row matches. Returns whether it
/// does. This is not inlined, for the reason of `values::run`.
#[inline(never)]
fn give_result(
    program: &Program,
    row: &ObjectView<'_>,
    context: &Context<'_>,
    scratch: &mut Scratch,
    sink: &mut dyn FnMut(Output<'_>),
) -> bool {
    let show = |shown: Shown<'_>| pass_on(shown, *row, sink);
    program.show(row, context, scratch, show).is_some()
}

impl IndexResumePoint {
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
        Some(IndexResumePoint {
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
