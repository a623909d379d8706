//! Writing scans: delete, take and replace.
//!
//! 1. Read a batch, which is the entries of one leaf or a part of them, and match the objects
//!    without a lock. A replace in a set matches in (3) instead, when it makes the new object.
//! 2. A delete tries to remove all objects that matched in one change. That succeeds if the leaf
//!    still has the version that was read; in a bag, if all objects of their keys have matched.
//! 3. Otherwise change each object that matched under its leaf's lock. If it has been changed since
//!    it was read, match it again there.
//! 4. If the slice ends within the batch, or a change has to be restarted, move the cursor back
//!    to just after the last processed object.
//!
//! In a bag (3) processes all objects of a key together, in one change. So each change of one
//! object (in a bag, of one key) is atomic, and (4) passes all objects of the last key. The scan as
//! a whole is not atomic.
//!
//! A take is a delete that yields results: after an object has been removed, the program is run on
//! the removed object. The counts of the handles in it are released after the epoch is unpinned. A
//! change that is restarted has removed nothing and yielded nothing.

use super::point::Point;
use crate::budget::{Budget, Step};
use crate::buffers::{Buffers, PassingEntry, ThreadBuffers};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::TableIndex;
use crate::local::Local;
use crate::ops::{EditBuffer, Operation, ValueList, Written};
use crate::options::TableKind;
use crate::programs::{Context, Outcome, Program, Scratch};
use crate::raw;
use crate::scan::output::Sink;
use crate::scan::select::{base_cost, cost, result_of, Passing, Scan, ScannedObject};
use crate::scan::Cursor;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Change, Direction, Previous, Values};
use larder_term::object::{ObjectBuf, ObjectView};
use std::ops::ControlFlow;
use std::sync::Arc;

impl EngineTable {
    /// Checks that `who` may replace objects by the results of a program.
    pub(super) fn check_replace(&self, who: OwnerId, program: &Program) -> Result<(), Error> {
        self.check_write(who)?;
        if self.kind() == TableKind::Bag {
            return Err(Error::TableType);
        }
        // The key of a replaced object must stay, or the object would be at a wrong place.
        match program.replace_keeps_key(self.keypos()) {
            true => Ok(()),
            false => Err(Error::KeyChanged),
        }
    }

    /// Replaces the objects under the key that the program matches by its results. Returns their
    /// number.
    ///
    /// # Errors
    /// Those of `select_replace`; `Busy`.
    pub fn replace_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
    ) -> Result<u64, Error> {
        self.check_replace(who, point.program)?;
        let mut buffers = ThreadBuffers::new();
        let mut prepared = ObjectBuf::new();
        // The key is known, so this is a change of one key, without a scan.
        self.at_point(local, point, |local, key| {
            self.writing_under(&local.pin(), key, |op| {
                let mut matched = Matched {
                    program: point.program,
                    context: point.context,
                    scratch: &mut buffers.scratch,
                    key,
                    value: None,
                    read: 0,
                };
                let replaced = matched.replace(self, op, &mut prepared);
                local.note_read(matched.read);
                replaced
            })
        })
    }
}

/// The scan of a writing job.
pub(super) struct WriteScan {
    pub(super) scan: Box<Scan>,
    pub(super) count: u64,
    /// The scratch space of programs that are run under a lock.
    scratch: Scratch,
    /// The numbers of the objects of a batch that (2) or (3) looks at: those that have matched, or
    /// in a replace in a set, all.
    chosen: Vec<u32>,
    /// In a bag: the key whose objects were processed last.
    last_key: Vec<u8>,
}

/// The kind of a writing scan.
pub(super) trait ScanWork {
    /// Whether it removes the objects that match, so that those of a leaf can be removed in one
    /// change.
    const REMOVES: bool;
    /// Whether `removed` must be called for each object that is removed so.
    const SEES: bool;

    /// Whether an object matches.
    fn wants(
        &self,
        object: ScannedObject<'_, '_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool;

    /// Changes an object that has matched. If it has been changed meanwhile, matches it again.
    /// Returns the number of changed objects.
    fn apply(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        matched: &mut Matched<'_>,
    ) -> Result<u64, Error>;

    /// Called for an object that was removed together with others of its leaf.
    fn removed(&mut self, table: &EngineTable, matched: &mut Matched<'_>);
}

/// A delete of the objects for which the program's result is `true`.
pub(super) struct Deleting;

impl ScanWork for Deleting {
    const REMOVES: bool = true;
    const SEES: bool = false;

    #[inline(always)]
    fn wants(
        &self,
        object: ScannedObject<'_, '_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        object.gives_true(context, scratch)
    }

    fn apply(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        matched: &mut Matched<'_>,
    ) -> Result<u64, Error> {
        matched.delete(table, op, None)
    }

    fn removed(&mut self, _: &EngineTable, _: &mut Matched<'_>) {}
}

/// A delete of the objects that match. Their results are passed to the sink.
pub(super) struct TakeMatched<'s, 'o>(pub(super) &'s mut Sink<'o>);

impl ScanWork for TakeMatched<'_, '_> {
    const REMOVES: bool = true;
    const SEES: bool = true;

    fn wants(
        &self,
        object: ScannedObject<'_, '_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        object.matches(context, scratch)
    }

    fn apply(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        matched: &mut Matched<'_>,
    ) -> Result<u64, Error> {
        matched.delete(table, op, Some(self.0))
    }

    fn removed(&mut self, table: &EngineTable, matched: &mut Matched<'_>) {
        if let Some(value) = matched.value {
            matched.give(table, value, self.0);
        }
    }
}

/// A replacement of the objects that match.
pub(super) struct ReplaceMatched<'p> {
    /// Whether a key has at most one object.
    pub(super) is_unique: bool,
    /// A buffer for new objects.
    pub(super) prepared: &'p mut ObjectBuf,
    /// That of `EngineTable::expire_for_write`.
    pub(super) last: &'p mut Option<u64>,
}

impl ScanWork for ReplaceMatched<'_> {
    const REMOVES: bool = false;
    const SEES: bool = false;

    /// In a set, the object is matched when its replacement is made, not here. In a duplicate_bag,
    /// if one object of a key matches here, all of them are matched again under the lock.
    fn wants(
        &self,
        object: ScannedObject<'_, '_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        self.is_unique || object.matches(context, scratch)
    }

    fn apply(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        matched: &mut Matched<'_>,
    ) -> Result<u64, Error> {
        let (written, count) = matched.replace(table, op, self.prepared)?;
        // After `Busy` the scan returns to this object.
        match written {
            Written::Stale => Err(Error::Busy),
            Written::Taken => table.free_taken_value(op).and(Err(Error::Busy)),
            // Expired objects make room.
            Written::Full => table
                .expire_for_write(op, Some(self.last))
                .and(Err(Error::Busy)),
            Written::Done => Ok(count),
        }
    }

    fn removed(&mut self, _: &EngineTable, _: &mut Matched<'_>) {}
}

/// An object of a scan, and what is needed to run the program on it.
pub(super) struct Matched<'t> {
    program: &'t Program,
    context: &'t Context<'t>,
    scratch: &'t mut Scratch,
    key: &'t [u8],
    /// The value that was read and has matched; `None` while it is being matched.
    value: Option<&'t [u8]>,
    /// The number of objects for which a replacement was sought.
    read: usize,
}

impl WriteScan {
    pub(super) fn new(table: &Arc<EngineTable>, program: Program) -> Self {
        WriteScan {
            scan: Scan::new(table, Some(program), Direction::Forward, None),
            count: 0,
            scratch: Scratch::default(),
            chosen: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// Runs one slice; see the module's steps.
    pub(super) fn step<W: ScanWork>(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        work: &mut W,
    ) -> Result<Step, Error> {
        let table = Arc::clone(&self.scan.table);
        loop {
            // Pin the epoch anew for each batch, so that a slice doesn't keep garbage from being
            // freed for longer than one leaf takes.
            let guard = larder_index::pin();
            let op = table.begin(&guard)?;
            let mut batch = std::mem::take(&mut self.scan.buffers.batch);
            let stepped = batch.lend(|batch| {
                let Some(slice) = Slice::new(self, batch, &table, &op, context) else {
                    return Ok(Some(Step::Done));
                };
                slice.step(budget, work)
            });
            self.scan.buffers.batch = batch;
            if let Some(step) = stepped? {
                return Ok(step);
            }
        }
    }
}

/// What the steps of a slice work with: the scan, and one operation on its table.
struct Slice<'s, 't> {
    table: &'t EngineTable,
    op: &'t Operation<'t>,
    program: &'s Program,
    context: &'t Context<'t>,
    cursor: &'s mut Cursor,
    batch: &'s mut Batch<'t>,
    passing: &'s mut Vec<PassingEntry>,
    plain: &'s mut Vec<u8>,
    /// The scratch space of the program, and the one for runs under a lock.
    scratch: (&'s mut Scratch, &'s mut Scratch),
    count: &'s mut u64,
    chosen: &'s mut Vec<u32>,
    last_key: &'s mut Vec<u8>,
}

impl<'s, 't> Slice<'s, 't> {
    fn new(
        scan: &'s mut WriteScan,
        batch: &'s mut Batch<'t>,
        table: &'t EngineTable,
        op: &'t Operation<'t>,
        context: &'t Context<'t>,
    ) -> Option<Self> {
        // Borrow each part by itself, so that the batch and the cursor can be used at once.
        let WriteScan {
            scan,
            count,
            scratch: scratch_under_lock,
            chosen,
            last_key,
        } = scan;
        let Scan {
            cursor,
            buffers,
            program,
            ..
        } = &mut **scan;
        let Buffers {
            passing,
            plain,
            scratch,
            ..
        } = &mut **buffers;
        Some(Slice {
            table,
            op,
            program: program.as_ref()?,
            context,
            cursor,
            batch,
            passing,
            plain,
            scratch: (scratch, scratch_under_lock),
            count,
            chosen,
            last_key,
        })
    }

    /// Reads one batch and changes its objects. Returns `None` if the slice continues with the next
    /// batch.
    #[inline(always)]
    fn step<W: ScanWork>(
        mut self,
        budget: &mut Budget,
        work: &mut W,
    ) -> Result<Option<Step>, Error> {
        // If the plan uses a secondary index, gather all keys from its entries first.
        if !self.cursor.gather(self.table, self.op, true, budget) {
            return Ok(Some(Step::More));
        }
        // (1) Read a batch, and match its first `usable` objects. The numbers of those that match
        // are in `chosen` then.
        let (table, op) = (self.table, self.op);
        let filled = self
            .cursor
            .fill_in_slice(table, op, 0, true, budget, self.batch);
        let usable = match filled {
            ControlFlow::Continue(usable) => usable,
            ControlFlow::Break(step) => return Ok(Some(step)),
        };
        let (matched_to, has_budget) = self.match_batch(usable, budget, work);
        // (2) Remove all of them in one change, if their leaf hasn't changed. `note_removed`
        // empties `chosen`.
        if W::REMOVES && self.table.remove_scanned(self.op, self.batch, self.chosen) {
            self.note_removed(work);
        }
        // (3) Change those that are left in `chosen` one by one.
        if !self.apply_each(matched_to, budget, work)? {
            return Ok(Some(Step::More));
        }
        // (4) The budget was used up in (1), and the rest of the batch wasn't matched.
        if matched_to < usable {
            self.stop(matched_to);
        }
        Ok((!has_budget).then_some(Step::More))
    }

    /// (1) Matches the first `usable` objects of the batch, while there is budget. The batch is a
    /// validated copy, so no lock is needed. Other threads may change the objects meanwhile, which
    /// (2) and (3) detect. Returns how many objects were matched, and whether there is budget left.
    #[inline(always)]
    fn match_batch<W: ScanWork>(
        &mut self,
        usable: usize,
        budget: &mut Budget,
        work: &W,
    ) -> (usize, bool) {
        let is_unique = self.table.kind().is_unique();
        // A batch of a whole leaf has all objects of its keys, which (2) may remove.
        let each = is_unique || W::REMOVES && self.batch.unordered;
        let (base_cost, keypos) = (base_cost(Some(self.program)), self.table.keypos());
        self.chosen.clear();
        let (matcher, batch) = (
            self.program.matcher(keypos, self.table.key_access()),
            &*self.batch,
        );
        let passing = Passing::of(Some(&matcher), batch, usable, base_cost, self.passing);
        for n in 0..passing.len() {
            let entry = passing.entry(batch, n);
            let (key, value) = batch.entry(entry.index);
            // In a bag, skip the objects of a key that was processed at the end of the batch
            // before, and unless (2) needs them, those of a key that has been chosen: (3) processes
            // all objects of a key.
            let known = !is_unique && *self.last_key == key;
            let object = ScannedObject {
                matcher: Some(&matcher),
                stored: Stored::new(key, value, keypos, self.plain),
                verdict: entry.verdict,
            };
            if !known && work.wants(object, self.context, self.scratch.0) {
                self.chosen.push(entry.index as u32);
                if !each {
                    key.clone_into(self.last_key);
                }
            }
            if !budget.spend(cost(base_cost, value).saturating_add(entry.rejected)) {
                return (entry.index + 1, false);
            }
        }
        (usable, budget.spend(passing.rejected))
    }

    /// (2) All chosen objects were removed in one change.
    fn note_removed<W: ScanWork>(&mut self, work: &mut W) {
        *self.count += self.chosen.len() as u64;
        if W::SEES {
            for n in 0..self.chosen.len() {
                let table = self.table;
                work.removed(table, &mut self.chosen_object(self.chosen[n] as usize));
            }
        }
        self.chosen.clear();
    }

    /// (3) Changes the chosen objects one by one. Each change takes the lock of its leaf, so other
    /// threads may write in between. Returns `false` if the budget is used up before the last one.
    fn apply_each<W: ScanWork>(
        &mut self,
        matched_to: usize,
        budget: &mut Budget,
        work: &mut W,
    ) -> Result<bool, Error> {
        let base_cost = base_cost(Some(self.program));
        for n in 0..self.chosen.len() {
            let (i, table, op) = (self.chosen[n] as usize, self.table, self.op);
            // In a bag, the change of the object before has changed all objects of the key.
            if n > 0 && self.have_one_key(self.chosen[n - 1] as usize, i) {
                continue;
            }
            match work.apply(table, op, &mut self.chosen_object(i)) {
                Ok(changed) => *self.count += changed,
                Err(error) => {
                    // (4) Nothing was done with this object. The next slice begins with it.
                    self.last_key.clear();
                    self.stop(i);
                    return Err(error);
                }
            }
            // (4) The budget is used up. The other chosen objects are matched again in the next
            // slice.
            if !budget.spend(base_cost) && i + 1 < matched_to {
                if !table.kind().is_unique() {
                    self.batch.entry(i).0.clone_into(self.last_key);
                }
                self.stop(i + 1);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two objects of the batch are in a bag, under one key.
    fn have_one_key(&self, a: usize, b: usize) -> bool {
        !self.table.kind().is_unique() && self.batch.key(a) == self.batch.key(b)
    }

    /// Object `i` of the batch, which has matched.
    fn chosen_object(&mut self, i: usize) -> Matched<'_> {
        let (key, value) = self.batch.entry(i);
        Matched {
            program: self.program,
            context: self.context,
            scratch: self.scratch.1,
            key,
            value: Some(value),
            read: 0,
        }
    }

    /// (4) Moves the cursor back, to just after the first `done` objects of the batch. If the last
    /// one is of the key that was processed last, all objects of the key were. The next slice may
    /// read an unordered batch in another order, so they are passed together.
    fn stop(&mut self, done: usize) {
        let mut done = done;
        if self.batch.unordered && !self.table.kind().is_unique() && done > 0 {
            let key = self.batch.key(done - 1);
            if *self.last_key == key {
                // The objects of a key are side by side.
                while done < self.batch.len() && self.batch.key(done) == key {
                    done += 1;
                }
            }
        }
        self.cursor.stop(self.table, self.op, self.batch, done);
    }
}

impl Matched<'_> {
    /// Whether the program's result for an object is `true`; with `any`, whether there is a result.
    #[inline(always)]
    fn matches(&mut self, object: &ObjectView<'_>, any: bool) -> bool {
        match any {
            true => self
                .program
                .show(object, self.context, self.scratch, |_| ())
                .is_some(),
            false => self.program.is_true(object, self.context, self.scratch),
        }
    }

    /// `matches` for the value of an object.
    fn matches_value(&mut self, table: &EngineTable, value: &[u8], any: bool) -> bool {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        self.matches(&object, any)
    }

    /// Passes on the result for an object that was removed.
    fn give(&mut self, table: &EngineTable, value: &[u8], sink: &mut Sink<'_>) {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        result_of(Some(self.program), object, self.context, self.scratch, sink);
    }

    /// Writes the replacement of an object to `new`. Returns `false` if the program doesn't match
    /// the object.
    fn replacement(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        new: &mut ObjectBuf,
    ) -> Result<bool, Error> {
        let mut plain = Vec::new();
        self.read += 1;
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        let Some(outcome) = self.program.run(&object, self.context, self.scratch) else {
            return Ok(false);
        };
        match outcome {
            // The object itself is the result: it is encoded anew as a tuple.
            Outcome::Object => {
                let mut tuple = Vec::new();
                object.to_tuple(&mut tuple);
                table.encode_object(raw::stored(&tuple), new)?;
            }
            Outcome::Term(term) => table.encode_object(term, new)?,
        }
        // It was proved that the program keeps keys. If the proof is wrong, the object must not be
        // stored under another key.
        if new.key() != self.key {
            return Err(Error::KeyChanged);
        }
        Ok(true)
    }

    /// Deletes the object if it is still as it was read, or matches again; in a bag, all objects of
    /// the key that match. Passes their results to `take`, if there is one. Returns the number of
    /// deleted objects.
    fn delete(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        take: Option<&mut Sink<'_>>,
    ) -> Result<u64, Error> {
        let (key, takes) = (table.key(self.key), take.is_some());
        let mut removed = 0;
        // Values that differ from the one that was read, copied under the lock for `take`.
        let mut taken = Values::default();
        let written = match &op.store.index {
            TableIndex::Unique(ix) => {
                // If the object is still as it was read, it has matched. Otherwise match it again
                // under the lock.
                let read = self.value;
                let (written, was) = table.remove_one(op, &**ix, key, |value| {
                    if read == Some(value) {
                        return true;
                    }
                    let is_picked = self.matches_value(table, value, takes);
                    if is_picked && takes {
                        taken.clear();
                        taken.push(value);
                    }
                    is_picked
                });
                removed = u64::from(was == Previous::Present);
                written
            }
            TableIndex::Multi(ix) => table.change_present(op, &**ix, key, |values| {
                // A repeated attempt begins with nothing taken.
                taken.clear();
                removed = values.remove_if(|value| {
                    let is_picked = self.matches_value(table, value, takes);
                    if is_picked && takes {
                        taken.push(value);
                    }
                    is_picked
                }) as u64;
                Ok(())
            })?,
        };
        // A removal needs no room, and claims no value of a unique index. So it is done, unless the
        // table has got another store. After `Busy` the scan returns to this object.
        if let Written::Stale = written {
            return Err(Error::Busy);
        }
        if let (Some(sink), 1..) = (take, removed) {
            // Without copies, what was removed is what was read.
            match self.value.filter(|_| taken.is_empty()) {
                Some(read) => self.give(table, read, sink),
                None => taken.iter().for_each(|value| self.give(table, value, sink)),
            }
        }
        Ok(removed)
    }

    /// Replaces the object if it is still as it was read, or matches again; in a duplicate_bag, all
    /// objects of the key that match. `prepared` is a buffer for the new object. Also returns the
    /// number of replaced objects.
    fn replace(
        &mut self,
        table: &EngineTable,
        op: &Operation<'_>,
        prepared: &mut ObjectBuf,
    ) -> Result<(Written, u64), Error> {
        let key = table.key(self.key);
        let mut count = 0;
        let written = match &op.store.index {
            TableIndex::Unique(ix) => {
                // Make the replacement of the object that was read before the lock is taken.
                let read = self.value;
                if let Some(read) = read {
                    if !self.replacement(table, read, prepared)? {
                        return Ok((Written::Done, 0));
                    }
                }
                // If the object has changed, its replacement is made under the lock, in `anew`. The
                // two buffers hold counts of the handles until the table has taken its own.
                let mut anew = ObjectBuf::new();
                table.change_one(op, &**ix, key, EditBuffer::Own, |old, scratch| {
                    let Some(old) = old else {
                        return Ok(Change::Keep.into());
                    };
                    // (3) The object is as it was read. Otherwise match it again, as it is now.
                    let new = if read == Some(old) {
                        &*prepared
                    } else if self.replacement(table, old, &mut anew)? {
                        &anew
                    } else {
                        return Ok(Change::Keep.into());
                    };
                    count = 1;
                    scratch.extend_from_slice(new.value());
                    Ok(Change::Put.into())
                })?
            }
            TableIndex::Multi(ix) => table.change_present(op, &**ix, key, |values| {
                count = self.replace_all(table, values)?;
                Ok(())
            })?,
        };
        Ok((written, count))
    }

    /// Replaces the objects of a key that the program matches.
    fn replace_all(
        &mut self,
        table: &EngineTable,
        values: &mut ValueList<'_>,
    ) -> Result<u64, Error> {
        // Make all replacements before the first object is changed. So after an error all objects
        // of the key are unchanged.
        // Old values are copied, since the list changes when the first object is replaced.
        let mut new = Vec::new();
        let mut failed = None;
        values.each(&mut |ordinal, value| {
            let mut object = ObjectBuf::new();
            match self.replacement(table, value, &mut object) {
                Ok(true) => new.push((ordinal, value.to_vec(), object)),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let changes: Vec<_> = new
            .iter()
            .map(|(ordinal, old, object)| (*ordinal, &old[..], object.value()))
            .collect();
        values.replace_each(&changes);
        Ok(new.len() as u64)
    }
}
