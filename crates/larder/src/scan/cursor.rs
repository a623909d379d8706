//! The scan cursor: the path of a scan, and its resume point on the path.
//!
//! # Definitions
//!
//! - *Path*: where the program can find objects: nowhere, under some keys, in a range of an
//!   ordered_set, or everywhere. It follows from the program's plan. If a secondary index finds the
//!   rows more cheaply, the path is the keys that it gives: they are gathered first (`gather`), and
//!   then read as those of a plan are (`gathered`).
//! - *Resume point*: how far the scan has advanced on its path, as a position of the index. A
//!   position is a run of bytes (the key, or the hash and the key). It stays meaningful whatever
//!   happens to the table.
//! - *Batch*: entries of one leaf, which the index has read at one instant (in a bag: those of
//!   each key), and copied, save objects outside the leaf. On a path of keys: the objects of some
//!   keys, each read by itself.
//!
//! # Steps
//!
//! 1. `fill` reads the next batch, starting at the resume point, and moves that past the batch.
//! 2. The scan processes the entries one by one. If it stops among them, `stop` moves the resume
//!    point back, to just after the last processed entry.
//! 3. Between slices the cursor keeps the resume point, and the entries to skip. A continuation
//!    (`to_bytes`) has the resume point and the number of the current key, but no entries to skip.
//!    So there is none within an unordered batch, and none among keys that a secondary index gave
//!    in no order. `go_to` reads the resume point from it.
//!
//! # Unordered batches
//!
//! A scan of everything whose results need no order reads the entries of a leaf as they lie
//! (`Batch::any_order`). Such a batch has no order in which "after entry i" is a resume point. If
//! the scan stops within it, the cursor returns to where the batch began, and remembers the
//! processed entries: by their keys, or in a bag by their positions. From there on it reads in
//! order, and skips the remembered entries, until it is past the batch.
//!
//! ```text
//!   batch, from p to q     k7 k2 k9 │ k4 k1        stops after k9
//!   cursor                 Next(p), processed {k7 k2 k9}, until q
//!   the next batches       k1 k4                   in order; from q on in any order again
//! ```
//!
//! # Invariants
//!
//! * **CU1** An entry that is present throughout the scan is processed once. Entries before the
//!   resume point have been processed or are not on the path. Entries after it have not been
//!   processed, unless they are among `processed`.
//! * **CU2** `processed` only has entries between the resume point and its `until`.

use crate::budget::{Budget, Step};
use crate::buffers::Buffers;
use crate::error::Error;
use crate::index::TableIndex;
use crate::indexes::{self, CandidateKeys, Gathered};
use crate::keys::KeyList;
use crate::ops::Operation;
use crate::programs::{Plan, Program};
use crate::resume_point::ResumePoint;
use crate::scan::gathered::{self, GatheredKeys};
use crate::scan::range::{scan_to, start_at, KeyBounds};
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Start};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The least number of entries that is read at a time, after the first batch of a job. The first
/// batch has as many entries as results are wanted, which is enough if all of them match. If it
/// isn't, many more entries may be needed.
const MIN_BATCH: usize = 16;

/// The path of a scan; see the module.
enum Path {
    /// Nowhere.
    Nothing,
    /// Under these index keys, in this order.
    Keys(KeyList),
    /// Between two order keys.
    Range(KeyBounds),
    /// Everywhere.
    Full,
    /// Under keys that are being gathered from a secondary index.
    Gathering(Box<CandidateKeys>),
    /// Under keys that were gathered from a secondary index.
    Gathered(GatheredKeys),
}

/// Entries that a scan has already processed and must skip.
struct Processed {
    /// What identifies each of them (`identity`).
    identities: HashSet<Vec<u8>>,
    /// The position after all of them; `None` is the end.
    until: Option<Vec<u8>>,
}

/// The resume point and the number of the current key before a batch was read.
#[derive(Clone)]
struct BatchStart {
    resume: ResumePoint,
    key: usize,
}

/// A path, and how far a scan has advanced on it.
pub(crate) struct Cursor {
    path: Path,
    direction: Direction,
    resume: ResumePoint,
    /// Where the last batch began. `stop` returns there if none of the batch was processed, or if
    /// it is unordered.
    batch_start: BatchStart,
    /// The entries after `resume` that have been processed already; see the module.
    processed: Option<Processed>,
    /// The number of the current key, on a path of keys or of gathered keys.
    key: usize,
    /// Whether the table is an ordered_set.
    ordered: bool,
    /// Whether a batch was read.
    has_begun: bool,
}

impl Cursor {
    /// A cursor at the beginning of the path of `program` in `table`. `limit` is the number of
    /// results that are wanted at first.
    pub(crate) fn new(
        table: &EngineTable,
        program: &Program,
        direction: Direction,
        limit: Option<usize>,
        buffers: &mut Buffers,
    ) -> Self {
        // In an unordered table both directions are the same way.
        let direction = table.scan_direction(direction);
        let path = path(table, program, direction, limit, buffers);
        Self::on_path(table, path, direction)
    }

    /// A cursor at the beginning of a path that is everywhere.
    pub(crate) fn everywhere(table: &EngineTable, direction: Direction) -> Self {
        Self::on_path(table, Path::Full, table.scan_direction(direction))
    }

    fn on_path(table: &EngineTable, path: Path, direction: Direction) -> Self {
        Cursor {
            path,
            direction,
            resume: ResumePoint::Begin,
            batch_start: BatchStart {
                resume: ResumePoint::Begin,
                key: 0,
            },
            processed: None,
            key: 0,
            ordered: table.kind().is_ordered(),
            has_begun: false,
        }
    }

    /// Moves the cursor to a position of a path that is everywhere, going forward.
    pub(crate) fn begin_at(&mut self, position: Vec<u8>) {
        debug_assert!(matches!(self.path, Path::Full));
        self.resume = ResumePoint::Next(position);
    }

    /// Confines a scan that has not begun to a range of an ordered_set.
    pub(crate) fn confine(&mut self, bounds: KeyBounds) {
        debug_assert!(self.ordered && self.resume == ResumePoint::Begin);
        self.path = Path::Range(bounds);
    }

    /// If the path is gathered from a secondary index, gathers its keys. Returns `false` if the
    /// budget is used up before all are gathered; the next call then continues. `any_order` is that
    /// of `fill`.
    #[inline]
    pub(crate) fn gather(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        any_order: bool,
        budget: &mut Budget,
    ) -> bool {
        match self.path {
            Path::Gathering(_) => self.gather_slice(table, op, any_order, budget),
            _ => true,
        }
    }

    /// Whether the next call of `gather` puts many keys in order.
    pub(crate) fn is_long(&self) -> bool {
        matches!(&self.path, Path::Gathering(candidates) if candidates.is_long())
    }

    /// A slice of gathering. When it is over, the path has the keys.
    #[inline(never)]
    fn gather_slice(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        any_order: bool,
        budget: &mut Budget,
    ) -> bool {
        let Path::Gathering(mut candidates) = std::mem::replace(&mut self.path, Path::Full) else {
            return true;
        };
        // A scan that wants everything has no continuation, and a table by hash has no order.
        let is_whole = any_order && self.resume == ResumePoint::Begin;
        let keys = match candidates.gather(table, op, budget, is_whole) {
            Gathered::More => {
                self.path = Path::Gathering(candidates);
                return false;
            }
            // There are too many keys, so scan the table. A resume point is a position of the
            // table, whatever the path is, so it stays the same.
            Gathered::Scan => return true,
            // The entries of one value are in the order of their keys.
            Gathered::InParts => {
                self.path = Path::Gathered(GatheredKeys {
                    keys: KeyList::new(),
                    positions: None,
                    rest: Some(candidates),
                });
                return true;
            }
            Gathered::Keys(keys) => keys,
        };
        self.key = 0;
        self.path = Path::Gathered(if is_whole && !self.ordered {
            GatheredKeys {
                keys,
                positions: None,
                rest: None,
            }
        } else {
            let gathered = GatheredKeys::in_order(&keys, table, op, self.direction);
            if let Some(positions) = &gathered.positions {
                self.skip_before_resume(positions, &op.store.index);
            }
            gathered
        });
        true
    }

    /// Skips the gathered keys before the resume point. The key of the resume point isn't skipped
    /// if it may have unread objects: in a bag, or if the resume point is the start of a batch.
    fn skip_before_resume(&mut self, positions: &KeyList, index: &TableIndex) {
        // The position of the key at which the scan stopped. In a bag, the resume point also has
        // the number of an object.
        let resume = match &self.resume {
            ResumePoint::Begin | ResumePoint::End => return,
            ResumePoint::Past(resume) | ResumePoint::Next(resume) => index.key_position(resume),
        };
        // Keys beyond it in the direction of the scan are unread. Whether it is unread itself
        // (`stays`): `Next` means that nothing at it was read; in a bag, some of its objects may
        // be left.
        let stays = !index.is_unique() || matches!(self.resume, ResumePoint::Next(_));
        let is_unread = |i: &usize| match index.key_position(positions.get(*i)) {
            position if position == resume => stays,
            position if self.direction == Direction::Forward => position > resume,
            position => position < resume,
        };
        // Continue with the first unread key.
        let first = (0..positions.len()).find(is_unread);
        let is_resume = |i: usize| index.key_position(positions.get(i)) == resume;
        let is_within = first.is_some_and(is_resume) && !index.is_unique();
        self.key = first.unwrap_or(positions.len());
        // The resume point is only needed among the objects of one key. Otherwise the number of the
        // key says all.
        if !is_within {
            self.resume = ResumePoint::Begin;
        }
    }

    /// Step 1 of this module: fills `batch` with the next entries, and moves the cursor past them.
    /// Returns how many of the first entries are on the path. 0 means the end of the path
    /// (`is_at_end`), or, if the batch may pause (`Batch::may_pause`), that the index has only
    /// skipped entries so far.
    ///
    /// `wanted` is how many entries the caller can use (0: any number). `any_order` says that it
    /// uses all of them, and needs no order.
    pub(crate) fn fill<'g>(
        &mut self,
        table: &EngineTable,
        op: &Operation<'g>,
        wanted: usize,
        any_order: bool,
        batch: &mut Batch<'g>,
    ) -> usize {
        loop {
            // The first batch has as many entries as are wanted. If these weren't enough, read more
            // at a time (`MIN_BATCH`).
            batch.want = match wanted {
                wanted if self.has_begun && wanted > 0 => wanted.max(MIN_BATCH),
                wanted => wanted,
            };
            self.has_begun = true;
            self.begin_batch(any_order, batch);
            if self.resume == ResumePoint::End {
                return 0;
            }
            // Read on from the resume point, in the way of the path. Each of these moves it past
            // the batch.
            let usable = match &self.path {
                Path::Nothing => self.fill_nowhere(),
                Path::Keys(_) | Path::Gathered(_) => self.fill_under_keys(table, op, wanted, batch),
                Path::Gathering(_) => unreachable!("`gather` ends before the path is read"),
                Path::Range(_) => self.fill_in_range(op, batch),
                Path::Full => self.fill_anywhere(op, batch),
            };
            // If no entry of the batch is usable, this isn't the end of the path. The resume point
            // is past the batch, so read the next one.
            if usable > 0 || batch.may_pause && batch.skipped > 0 {
                return usable;
            }
        }
    }

    /// Like `fill`, in a slice: entries that the index skips use the budget, too. `Break` ends
    /// the slice.
    #[inline]
    pub(crate) fn fill_in_slice<'g>(
        &mut self,
        table: &EngineTable,
        op: &Operation<'g>,
        wanted: usize,
        any_order: bool,
        budget: &mut Budget,
        batch: &mut Batch<'g>,
    ) -> ControlFlow<Step, usize> {
        // The index may return an empty batch before the end, after many entries that it skips.
        batch.may_pause = true;
        let filled = loop {
            let usable = self.fill(table, op, wanted, any_order, batch);
            // There are entries to process. Whoever does that looks at the budget afterwards.
            if usable > 0 {
                budget.spend(batch.skipped as u32);
                break ControlFlow::Continue(usable);
            }
            if self.is_at_end() {
                break ControlFlow::Break(Step::Done);
            }
            // It was a pause. Go on if there is time left.
            if !budget.spend(batch.skipped as u32) {
                break ControlFlow::Break(Step::More);
            }
        };
        batch.may_pause = false;
        filled
    }

    /// Empties the batch, and notes where the next one begins.
    fn begin_batch(&mut self, any_order: bool, batch: &mut Batch) {
        batch.clear();
        // Once the resume point is past the batch in which the scan stopped, there is nothing left
        // to skip.
        if self.processed.is_some() {
            self.forget_processed();
        }
        // While there are entries to skip, read in order: only then is it known when the resume
        // point is past all of them.
        batch.any_order = any_order && self.processed.is_none();
        // Save the resume point. `stop` returns to it if the batch is unordered, or if none of its
        // entries is processed.
        self.batch_start = BatchStart {
            resume: self.resume.clone(),
            key: self.key,
        };
    }

    /// `fill` on a path that is nowhere.
    fn fill_nowhere(&mut self) -> usize {
        self.resume = ResumePoint::End;
        0
    }

    /// The keys of the path, if it has any.
    fn keys(&self) -> Option<&KeyList> {
        match &self.path {
            Path::Keys(keys) => Some(keys),
            Path::Gathered(gathered) => Some(&gathered.keys),
            _ => None,
        }
    }

    /// `fill` under the next key of the path.
    fn fill_under_key<'g>(
        &mut self,
        table: &EngineTable,
        op: &Operation<'g>,
        batch: &mut Batch<'g>,
    ) -> usize {
        let is_left = |keys: &&KeyList| self.key < keys.len();
        let Some(keys) = self.keys().filter(is_left) else {
            self.resume = ResumePoint::End;
            return 0;
        };
        let key = keys.get(self.key);
        let (usable, next) = under_key(table, op, (key, self.looks_up()), &self.resume, batch);
        self.resume = next;
        // A key without objects takes a search, which counts as an object that was skipped.
        batch.skipped += usize::from(usable == 0);
        // When the resume point is `Begin` again, the key is done.
        if self.resume == ResumePoint::Begin {
            self.key += 1;
        }
        usable
    }

    /// `fill` on a path of keys. Of a set, reads the objects of several keys at once, up to
    /// `wanted`.
    fn fill_under_keys<'g>(
        &mut self,
        table: &EngineTable,
        op: &Operation<'g>,
        wanted: usize,
        batch: &mut Batch<'g>,
    ) -> usize {
        if let Path::Gathered(gathered) = &mut self.path {
            if gathered.go_on(self.key, op, self.direction) {
                // The list was replaced by its next part: begin at its first key, also after a
                // `stop`.
                self.key = 0;
                self.batch_start.key = 0;
            }
        }
        match (&op.store.index, self.keys()) {
            // A resume point within a key is one that a process has made up.
            (TableIndex::Unique(index), Some(keys))
                if self.key < keys.len()
                    && self.resume == ResumePoint::Begin
                    && !self.looks_up() =>
            {
                // A read counts in the read set of a transaction. So read no more rows than are
                // wanted.
                batch.want = wanted;
                let from = self.key;
                let to = gathered::read(keys, table, op, index, from, batch);
                self.key = to;
                batch.skipped += to - from - batch.len();
                batch.len()
            }
            _ => self.fill_under_key(table, op, batch),
        }
    }

    /// Whether the scan is a lookup: its plan names a single key.
    fn looks_up(&self) -> bool {
        matches!(&self.path, Path::Keys(keys) if keys.len() == 1)
    }

    /// `fill` in a range: reads from its near end, or from where the last batch ended, towards the
    /// far end.
    fn fill_in_range<'g>(&mut self, op: &Operation<'g>, batch: &mut Batch<'g>) -> usize {
        let Path::Range(bounds) = &mut self.path else {
            return 0;
        };
        let (near, far) = bounds.near_and_far(self.direction);
        let start = self.resume.start(start_at(near), self.direction);
        scan_to(op, start, far, self.direction, batch);
        self.resume.move_past(batch);
        batch.len()
    }

    /// `fill` on a path that is everywhere.
    fn fill_anywhere<'g>(&mut self, op: &Operation<'g>, batch: &mut Batch<'g>) -> usize {
        let start = self.resume.start(Start::Edge, self.direction);
        op.store.index.scan(op.guard, start, self.direction, batch);
        if self.processed.is_some() {
            self.drop_processed(op, batch);
        }
        self.resume.move_past(batch);
        batch.len()
    }

    /// Drops the entries of a batch that have been processed already.
    #[cold]
    fn drop_processed(&mut self, op: &Operation<'_>, batch: &mut Batch) {
        let Some(processed) = &self.processed else {
            return;
        };
        // First look at all entries, and then remove: `identity` takes the number of an entry,
        // which removals change.
        let wanted: Vec<bool> = (0..batch.len())
            .map(|i| !processed.identities.contains(&identity(op, batch, i)))
            .collect();
        let mut wanted = wanted.into_iter();
        batch.retain(|_, _, _| wanted.next() == Some(true));
    }

    /// Forgets the processed entries if the resume point is past all of them.
    #[cold]
    fn forget_processed(&mut self) {
        if let (Some(processed), ResumePoint::Next(here)) = (&self.processed, &self.resume) {
            if processed.until.as_ref().is_some_and(|until| here >= until) {
                self.processed = None;
            }
        }
    }

    /// Whether the cursor is at the end of the path.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.resume == ResumePoint::End
    }

    /// Whether the path consists of keys, and all of them have been read.
    pub(crate) fn has_read_all_keys(&self) -> bool {
        match &self.path {
            Path::Keys(keys) => self.resume == ResumePoint::Begin && self.key == keys.len(),
            _ => false,
        }
    }

    /// Whether a page ends just after its last entry, also if that is the last one of its batch: in
    /// an ordered_set the next page has what is inserted after the entry, as in `ets`.
    pub(super) fn pages_end_after_entries(&self) -> bool {
        self.ordered && matches!(self.path, Path::Full | Path::Range(_))
    }

    /// Step 2: moves the cursor back, to just after the first `done` entries of the last batch.
    pub(crate) fn stop(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        batch: &Batch,
        done: usize,
    ) {
        if batch.unordered {
            return self.stop_unordered(op, batch, done);
        }
        let Some(last) = done.checked_sub(1) else {
            let BatchStart { resume, key } = self.batch_start.clone();
            (self.resume, self.key) = (resume, key);
            return;
        };
        // If the batch was the last one of its key, `fill` has advanced to the next key. Go back.
        // The keys of the batch begin with the one at which it was begun.
        let first = self.batch_start.key;
        if let Some(keys) = self.keys() {
            let number = gathered::number(keys, first, batch.key(last));
            self.key = number.unwrap_or(self.key);
            if op.store.index.is_unique() {
                // The key has no other object.
                (self.resume, self.key) = (ResumePoint::Begin, self.key + 1);
                return;
            }
        }
        // The batch is ordered, so the resume point is just after the last processed entry. It
        // doesn't matter which leaf has that position when the scan is resumed.
        let (mut position, index) = (Vec::new(), &op.store.index);
        let key = table.key(batch.key(last));
        // If the next entry has another key, this one had no more objects. So the next read needn't
        // begin with this key, whose objects it would drop.
        let is_last = done < batch.len() && batch.key(done) != batch.key(last);
        match is_last {
            true => index.end_position(key, &mut position),
            false => index.entry_position(batch, last, key, &mut position),
        }
        self.resume = ResumePoint::Past(position);
    }

    /// `stop` in an unordered batch: remembers the processed entries, and returns to where the
    /// batch began.
    #[cold]
    fn stop_unordered(&mut self, op: &Operation<'_>, batch: &Batch, done: usize) {
        // From the resume point after the batch on, there is nothing to skip.
        self.processed = Some(Processed {
            identities: (0..done).map(|i| identity(op, batch, i)).collect(),
            until: match &self.resume {
                ResumePoint::Past(position) | ResumePoint::Next(position) => Some(position.clone()),
                ResumePoint::Begin | ResumePoint::End => None,
            },
        });
        self.resume = self.batch_start.resume.clone();
    }

    /// The resume point as bytes. `None` within an unordered batch, and among gathered keys in no
    /// order.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        if self.processed.is_some() {
            return None;
        }
        let Path::Gathered(gathered) = &self.path else {
            return Some(self.resume.to_bytes(self.key));
        };
        let positions = gathered.positions.as_ref()?;
        // When the scan is resumed, the keys are gathered again, and may be others. So write a
        // position of the table instead of the number of a key. In an ordered_set it is right
        // after the last key, as without an index: the next page has what is inserted there.
        let resume = match self.key.checked_sub(1) {
            Some(last) if self.resume == ResumePoint::Begin => match self.key {
                _ if self.ordered => ResumePoint::Past(positions.get(last).to_vec()),
                next if next == positions.len() => ResumePoint::End,
                next => ResumePoint::Next(positions.get(next).to_vec()),
            },
            _ => self.resume.clone(),
        };
        Some(resume.to_bytes(0))
    }

    /// Goes to a resume point that `to_bytes` wrote for the same path.
    pub(crate) fn go_to(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // The bytes come from the host's continuation, which a process may have made up. So they
        // are checked.
        let (resume, number) = ResumePoint::of_bytes(bytes).ok_or(Error::BadContinuation)?;
        // With keys, the number says which one is next.
        let keys = match &self.path {
            Path::Keys(keys) => keys.len() as u64,
            // The table is empty now. The path may have had keys when the resume point was written.
            Path::Nothing => u64::MAX,
            _ => 0,
        };
        if number > keys {
            return Err(Error::BadContinuation);
        }
        // The number is within the path. Any position is a valid one: one that no entry can have
        // lies between entries.
        self.key = number as usize;
        self.resume = resume;
        Ok(())
    }
}

/// What identifies entry `i` of a batch in its table: its key, or in a bag its position.
fn identity(op: &Operation<'_>, batch: &Batch, i: usize) -> Vec<u8> {
    match &op.store.index {
        TableIndex::Unique(_) => batch.key(i).to_vec(),
        TableIndex::Multi(ix) => {
            // The objects of a key are told apart by their positions.
            let mut position = Vec::new();
            ix.entry_position(batch, i, &mut position);
            position
        }
    }
}

/// Whether the table was empty at an instant of the call, if that is cheap to find out.
fn is_seen_empty(table: &EngineTable) -> bool {
    let guard = larder_index::pin();
    // While a list is being inserted, some of its objects are not in the index yet.
    let Ok(op) = table.begin(&guard) else {
        return false;
    };
    match &op.store.index {
        TableIndex::Unique(ix) => ix.is_seen_empty(&guard),
        TableIndex::Multi(_) => false,
    }
}

/// The path of a program in a table.
fn path(
    table: &EngineTable,
    program: &Program,
    direction: Direction,
    limit: Option<usize>,
    buffers: &mut Buffers,
) -> Path {
    // An object that is inserted later wasn't present throughout the scan, so it may be missed.
    if is_seen_empty(table) {
        return Path::Nothing;
    }
    match program.plan(table.keypos(), table.key_access()) {
        Plan::Nothing => Path::Nothing,
        // No key is given. An index may still say where the rows are.
        Plan::AllKeys => match indexes::candidates(table, program, limit, false, buffers) {
            Some(candidates) => Path::Gathering(Box::new(candidates)),
            None => Path::Full,
        },
        Plan::Range { low, high } => {
            match indexes::candidates(table, program, limit, true, buffers) {
                Some(candidates) => Path::Gathering(Box::new(candidates)),
                None => Path::Range(KeyBounds { low, high }),
            }
        }
        Plan::Keys(terms) => {
            // Each index key is visited once, in an ordered_set in the order of the scan.
            let mut keys = table.index_keys(&terms);
            if table.kind().is_ordered() && direction == Direction::Backward {
                keys.reverse();
            }
            Path::Keys(keys)
        }
    }
}

/// Reads objects under one key into the batch. Returns how many of the first entries are under the
/// key, and the resume point after them, which is `Begin` when the key is done. `looks_up` says
/// that this is a lookup, which a bounded table records.
fn under_key<'g>(
    table: &EngineTable,
    op: &Operation<'g>,
    (key, looks_up): (&[u8], bool),
    resume: &ResumePoint,
    batch: &mut Batch<'g>,
) -> (usize, ResumePoint) {
    let indexed = table.key(key);
    match &op.store.index {
        TableIndex::Unique(ix) => {
            // A set has one object under the key. After it the key is done.
            if *resume == ResumePoint::Begin {
                batch.push_read(key, |value| match looks_up {
                    true => ix.get(op.guard, indexed, value),
                    false => ix.get_in_scan(op.guard, indexed, value),
                });
            }
            (batch.len(), ResumePoint::Begin)
        }
        // Most keys have few objects, which are read at once.
        TableIndex::Multi(ix)
            if *resume == ResumePoint::Begin && ix.scan_key(op.guard, indexed, batch) =>
        {
            (batch.len(), ResumePoint::Begin)
        }
        TableIndex::Multi(ix) => {
            // Limit the read: entries of later keys would be copied for nothing. If few are wanted,
            // one more shows whether the key has more (`has_read_all_keys`).
            match batch.want {
                0 if *resume == ResumePoint::Begin => batch.want = MIN_BATCH,
                0 => {}
                wanted => batch.want = wanted.saturating_add(1),
            }
            let mut first = Vec::new();
            ix.first_position(indexed, &mut first);
            let forward = Direction::Forward;
            let start = resume.start(Start::At(&first), forward);
            ix.scan(op.guard, start, forward, batch);
            // An entry of another key ends this one. It is in the batch, but is not used.
            match (0..batch.len()).position(|i| batch.key(i) != key) {
                Some(others) => (others, ResumePoint::Begin),
                None if batch.done => (batch.len(), ResumePoint::Begin),
                None => (batch.len(), ResumePoint::after(batch)),
            }
        }
    }
}
