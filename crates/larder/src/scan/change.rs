//! Writing scans: delete, take and replace.
//!
//! 1. Objects are read a leaf's worth at a time and matched without a lock.
//! 2. A delete removes those that matched in one change, if they were read without order and their
//!    leaf has the version that was read.
//! 3. Otherwise each that matched is changed under its leaf's lock: as it was read, or, if it has
//!    changed meanwhile, matched anew there.
//! 4. If the slice ends, or a change has to begin anew, among the objects of the batch, the cursor
//!    goes back behind the last that was dealt with.
//!
//! In a bag the objects of a key are dealt with together, in one change, the first time that one of
//! them matches. So each change of one object (of one key in a bag) is atomic; the whole is not.
//!
//! A take is a delete that tells: once an object is gone, the program is run on what it was, as it
//! was removed, and gives its result. The handles in it are the table's, whose counts are released
//! once the epoch is unpinned. A change that begins anew has removed nothing, and told nothing.

use super::point::Point;
use super::select::{cost, result_of, weight, Output, Scan, Sink};
use crate::budget::{Budget, Step};
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::Index;
use crate::local::Local;
use crate::ops::{Operation, ValueList, Written};
use crate::options::TableKind;
use crate::raw;
use crate::table::Table;
use larder_index::{Batch, Change, Direction, Previous, Values};
use larder_matchspec::{Context, Outcome, Program, Scratch};
use larder_term::object::{ObjectBuf, ObjectView};
use std::sync::Arc;

impl Table {
    /// Begins to delete the objects for which `program` gives `true`.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn select_delete(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
    ) -> Result<DeleteJob, Error> {
        self.check_write(who)?;
        Ok(DeleteJob {
            work: WriteScan::new(self, program),
        })
    }

    /// Begins to delete the objects that `program` matches, and to give its results for them.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn select_take(self: &Arc<Self>, who: OwnerId, program: Program) -> Result<TakeJob, Error> {
        Ok(TakeJob(self.select_delete(who, program)?))
    }

    /// Begins to replace each object that `program` matches by its result, which has to keep the
    /// key.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `TableType` (a bag), `KeyChanged` (the program does not prove that keys
    /// are kept).
    pub fn select_replace(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
    ) -> Result<ReplaceJob, Error> {
        self.check_replace(who, &program)?;
        Ok(ReplaceJob {
            work: WriteScan::new(self, program),
            prepared: ObjectBuf::new(),
        })
    }
}

impl Table {
    /// Whether somebody may replace by a program.
    fn check_replace(&self, who: OwnerId, program: &Program) -> Result<(), Error> {
        self.check_write(who)?;
        if self.kind() == TableKind::Bag {
            return Err(Error::TableType);
        }
        match program.replace_keeps_key(self.keypos()) {
            true => Ok(()),
            false => Err(Error::KeyChanged),
        }
    }

    /// Replaces the objects under the key that the program matches by its results; how many.
    ///
    /// # Errors
    /// As `select_replace`; `Busy`.
    pub fn replace_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
    ) -> Result<u64, Error> {
        self.check_replace(who, point.program)?;
        let mut lent = Lent::new();
        let mut prepared = ObjectBuf::new();
        self.at_point(local, point, |local, key| {
            self.writing_under(&local.pin(), key, |op| {
                let mut turn = Turn {
                    program: point.program,
                    ctx: point.context,
                    scratch: &mut lent.scratch,
                    key,
                    value: None,
                };
                turn.replace(self, op, &mut prepared)
            })
        })
    }
}

/// What both jobs are made of.
struct WriteScan {
    scan: Box<Scan>,
    count: u64,
    /// For the objects that are matched under a lock.
    scratch: Scratch,
    /// The objects of a batch that matched.
    chosen: Vec<u32>,
    /// In a bag: the key whose objects were dealt with last.
    dealt: Vec<u8>,
}

/// What a writing scan does.
trait Work {
    /// Whether it removes objects, so that those of a leaf may go in one change.
    const REMOVES: bool;
    /// Whether it sees what went so.
    const SEES: bool;

    /// Whether something is to be done with an object. `turn` has no value, which is what was read.
    fn wants(&self, object: &ObjectView<'_>, turn: &mut Turn<'_>) -> bool;

    /// Does it with an object that is wanted, or with what it has become; with how many.
    fn act(&mut self, table: &Table, op: &Operation<'_>, turn: &mut Turn<'_>)
        -> Result<u64, Error>;

    /// Sees an object that went with others of its leaf, as it was read.
    fn gone(&mut self, table: &Table, turn: &mut Turn<'_>);
}

/// A delete, of what has the result `true`.
struct Deleting;

impl Work for Deleting {
    const REMOVES: bool = true;
    const SEES: bool = false;

    #[inline(always)]
    fn wants(&self, object: &ObjectView<'_>, turn: &mut Turn<'_>) -> bool {
        turn.goes(object, false)
    }

    fn act(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<u64, Error> {
        turn.delete(table, op, None)
    }

    fn gone(&mut self, _: &Table, _: &mut Turn<'_>) {}
}

/// A delete of what has any result, which goes there.
struct Taking<'s, 'o>(&'s mut Sink<'o>);

impl Work for Taking<'_, '_> {
    const REMOVES: bool = true;
    const SEES: bool = true;

    fn wants(&self, object: &ObjectView<'_>, turn: &mut Turn<'_>) -> bool {
        turn.goes(object, true)
    }

    fn act(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<u64, Error> {
        turn.delete(table, op, Some(self.0))
    }

    fn gone(&mut self, table: &Table, turn: &mut Turn<'_>) {
        if let Some(value) = turn.value {
            turn.give(table, value, self.0);
        }
    }
}

/// A replace. `prepared` is memory for new objects.
struct Replacing<'p> {
    /// Whether a key has one object at most.
    one: bool,
    prepared: &'p mut ObjectBuf,
}

impl Work for Replacing<'_> {
    const REMOVES: bool = false;
    const SEES: bool = false;

    /// One object is matched when its replacement is made. A key's objects in a bag are matched
    /// under its lock, if one of them matches without.
    fn wants(&self, object: &ObjectView<'_>, turn: &mut Turn<'_>) -> bool {
        self.one || turn.goes(object, true)
    }

    fn act(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<u64, Error> {
        let (written, count) = turn.replace(table, op, self.prepared)?;
        // What moved is met again by the scan.
        match written {
            Written::Moved => Err(Error::Busy),
            Written::Taken => {
                table.unless_freed(op)?;
                Err(Error::Busy)
            }
            Written::Full => Err(table.full(op)),
            Written::Done => Ok(count),
        }
    }

    fn gone(&mut self, _: &Table, _: &mut Turn<'_>) {}
}

/// One object that matched.
struct Turn<'t> {
    program: &'t Program,
    ctx: &'t Context<'t>,
    scratch: &'t mut Scratch,
    key: &'t [u8],
    /// Its value, as it was read; None if it was not read.
    value: Option<&'t [u8]>,
}

impl WriteScan {
    fn new(table: &Arc<Table>, program: Program) -> Self {
        WriteScan {
            scan: Scan::new(table, Some(program), Direction::Forward, None),
            count: 0,
            scratch: Scratch::default(),
            chosen: Vec::new(),
            dealt: Vec::new(),
        }
    }

    /// One slice: finds objects that are wanted, and does the work with each.
    fn step<W: Work>(
        &mut self,
        budget: &mut Budget,
        ctx: &Context<'_>,
        work: &mut W,
    ) -> Result<Step, Error> {
        let table = Arc::clone(&self.scan.table);
        loop {
            // Pinned anew for each batch: a slice keeps back the memory that others free for no
            // longer than a leaf takes.
            let guard = larder_index::pin();
            let op = table.begin(&guard)?;
            let Scan {
                cursor,
                lent,
                program: Some(program),
                ..
            } = &mut *self.scan
            else {
                return Ok(Step::Done);
            };
            let weight = weight(Some(program));
            let Buffers {
                batch,
                plain,
                scratch,
                ..
            } = &mut **lent;
            if !cursor.gather(&table, &op, budget) {
                return Ok(Step::More);
            }
            let usable = cursor.fill(&table, &op, (0, true), batch);
            if usable == 0 {
                return Ok(Step::Done);
            }
            // (1) The batch is a copy: objects are matched without a lock. Of a bag's key, the
            // first that matches stands for all.
            let one = table.kind().is_unique();
            let (mut dealt, mut go) = (0, true);
            self.chosen.clear();
            while dealt < usable && go {
                let (key, value) = batch.entry(dealt);
                let object = raw::view(key, value, table.keypos(), plain);
                // A bag's key that was dealt with, in this batch or at the end of the one before,
                // is not dealt with again for its other objects.
                let known = !one && self.dealt == key;
                let mut turn = Turn {
                    program,
                    ctx,
                    scratch,
                    key,
                    value: None,
                };
                if !known && work.wants(&object, &mut turn) {
                    self.chosen.push(dealt as u32);
                    if !one {
                        key.clone_into(&mut self.dealt);
                    }
                }
                dealt += 1;
                go = budget.spend(cost(weight, value));
            }
            // (2)
            if W::REMOVES && table.remove_chosen(&op, batch, &self.chosen) {
                self.count += self.chosen.len() as u64;
                for &i in self.chosen.iter().filter(|_| W::SEES) {
                    let (key, value) = batch.entry(i as usize);
                    let mut turn = Turn {
                        program,
                        ctx,
                        scratch: &mut self.scratch,
                        key,
                        value: Some(value),
                    };
                    work.gone(&table, &mut turn);
                }
                self.chosen.clear();
            }
            // (3)
            for &i in &self.chosen {
                let (key, value) = batch.entry(i as usize);
                let mut turn = Turn {
                    program,
                    ctx,
                    scratch: &mut self.scratch,
                    key,
                    value: Some(value),
                };
                // Each change takes its leaf's lock for itself: others write between two of them.
                match work.act(&table, &op, &mut turn) {
                    Ok(n) => self.count += n,
                    Err(error) => {
                        // (4) The entry is met again: nothing was done with it.
                        self.dealt.clear();
                        cursor.stop(&table, &op, batch, i as usize);
                        return Err(error);
                    }
                }
                // (4) Those behind it that matched are matched again in the next slice.
                if !budget.spend(weight) && (i as usize) + 1 < dealt {
                    if !one {
                        key.clone_into(&mut self.dealt);
                    }
                    cursor.stop(&table, &op, batch, i as usize + 1);
                    return Ok(Step::More);
                }
            }
            // (4) The slice ended in (1): the rest of the batch was not matched.
            if dealt < usable {
                cursor.stop(&table, &op, batch, dealt);
            }
            if !go {
                return Ok(Step::More);
            }
        }
    }
}

impl Table {
    /// Removes entries of a batch in one change; false, and nothing was done, if that can't be.
    fn remove_chosen(&self, op: &Operation<'_>, batch: &Batch, chosen: &[u32]) -> bool {
        match &op.store.index {
            Index::Unique(ix) if batch.unordered => self.remove_read(op, &**ix, batch, chosen),
            _ => false,
        }
    }
}

impl Turn<'_> {
    /// Whether an object has the result `true`, or, of a take or a replace, any.
    #[inline(always)]
    fn goes(&mut self, object: &ObjectView<'_>, any: bool) -> bool {
        match any {
            true => self.program.run(object, self.ctx, self.scratch).is_some(),
            false => self.program.is_true(object, self.ctx, self.scratch),
        }
    }

    /// As `goes`, for an object that is a value.
    fn goes_as(&mut self, table: &Table, value: &[u8], any: bool) -> bool {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        self.goes(&object, any)
    }

    /// Gives the result for an object that was removed.
    fn give(&mut self, table: &Table, value: &[u8], sink: &mut Sink<'_>) {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        result_of(Some(self.program), &object, self.ctx, self.scratch, sink);
    }

    /// Writes what replaces an object to `new`; false if the program does not match it.
    fn replacement(
        &mut self,
        table: &Table,
        value: &[u8],
        new: &mut ObjectBuf,
    ) -> Result<bool, Error> {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        let Some(outcome) = self.program.run(&object, self.ctx, self.scratch) else {
            return Ok(false);
        };
        match outcome {
            Outcome::Object => {
                let mut tuple = Vec::new();
                object.to_tuple(&mut tuple);
                table.encode_object(raw::stored(&tuple), new)?;
            }
            Outcome::Term(term) => table.encode_object(term, new)?,
        }
        // The program was proved to keep keys; a proof that is wrong must not put an object under a
        // key that is not its own.
        if new.key() != self.key {
            return Err(Error::KeyChanged);
        }
        Ok(true)
    }

    /// Deletes the object as it was read, or what it has become if that matches, too; in a bag,
    /// those of the key's objects that match. Gives their results to `take`, if there is one.
    fn delete(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        take: Option<&mut Sink<'_>>,
    ) -> Result<u64, Error> {
        let (key, takes) = (table.key(self.key), take.is_some());
        let mut gone = 0;
        // What is to be given and is not as it was read: copied under the lock.
        let mut taken = Values::default();
        let written = match &op.store.index {
            Index::Unique(ix) => {
                // An object that is as it was read has been matched: only one that has changed is
                // matched again, under the lock.
                let read = self.value;
                let (written, was) = table.remove_one(op, &**ix, key, |value| {
                    if read == Some(value) {
                        return true;
                    }
                    let goes = self.goes_as(table, value, takes);
                    if goes && takes {
                        taken.clear();
                        taken.push(value);
                    }
                    goes
                });
                gone = u64::from(was == Previous::Present);
                written
            }
            Index::Multi(ix) => table.change_many(op, &**ix, key, &mut |values| {
                taken.clear();
                gone = values.remove_if(&mut |value| {
                    let goes = self.goes_as(table, value, takes);
                    if goes && takes {
                        taken.push(value);
                    }
                    goes
                }) as u64;
                Ok(())
            })?,
        };
        // What moved is met again by the scan.
        match written {
            Written::Moved => return Err(Error::Busy),
            Written::Full => return Err(table.full(op)),
            Written::Done | Written::Taken => {}
        }
        if let (Some(sink), 1..) = (take, gone) {
            match self.value.filter(|_| taken.is_empty()) {
                Some(read) => self.give(table, read, sink),
                None => taken.iter().for_each(|value| self.give(table, value, sink)),
            }
        }
        Ok(gone)
    }

    /// Replaces the object, or what it has become; in a bag, those of the key's objects that match.
    /// `prepared` is memory for the new object.
    fn replace(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        prepared: &mut ObjectBuf,
    ) -> Result<(Written, u64), Error> {
        let key = table.key(self.key);
        let mut count = 0;
        let written = match &op.store.index {
            Index::Unique(ix) => {
                // What was read is matched before the lock is taken.
                let read = self.value;
                if let Some(read) = read {
                    if !self.replacement(table, read, prepared)? {
                        return Ok((Written::Done, 0));
                    }
                }
                // Both hold the counts of the new object's handles until the table has its own.
                let mut anew = ObjectBuf::new();
                table.change_one(op, &**ix, key, None, &mut |old, scratch| {
                    let Some(old) = old else {
                        return Ok(Change::Keep.into());
                    };
                    let new = if read == Some(old) {
                        &*prepared
                    } else if self.replacement(table, old, &mut anew)? {
                        &anew
                    } else {
                        return Ok(Change::Keep.into());
                    };
                    count = 1;
                    scratch.extend_from_slice(new.value());
                    Ok(Change::PutScratch.into())
                })?
            }
            Index::Multi(ix) => table.change_many(op, &**ix, key, &mut |values| {
                count = self.replace_all(table, values)?;
                Ok(())
            })?,
        };
        Ok((written, count))
    }

    /// Replaces those of a key's objects that the program matches.
    fn replace_all(&mut self, table: &Table, values: &mut ValueList<'_>) -> Result<u64, Error> {
        // All results come first: an error leaves the key's objects as they were.
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

/// A delete by match specification, under way. Dropped before its end, it has deleted some.
pub struct DeleteJob {
    work: WriteScan,
}

impl DeleteJob {
    /// One slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub fn step(&mut self, budget: &mut Budget, ctx: &Context<'_>) -> Result<Step, Error> {
        self.work.step(budget, ctx, &mut Deleting)
    }

    /// The objects deleted so far.
    pub fn count(&self) -> u64 {
        self.work.count
    }
}

/// A delete that gives the program's results for what it deletes, under way. Dropped before its
/// end, it has deleted what it has given.
pub struct TakeJob(DeleteJob);

impl TakeJob {
    /// One slice: gives to `sink` a result for each object that it has deleted, in the order of the
    /// table for an ordered_set, and in that of their arrival for the objects of a key in a bag.
    ///
    /// # Errors
    /// `NoTable`, `Busy`: what was given has been deleted, and nothing else.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        ctx: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<Step, Error> {
        self.0.work.step(budget, ctx, &mut Taking(sink))
    }
}

/// A replace by match specification, under way. Dropped before its end, it has replaced some.
pub struct ReplaceJob {
    work: WriteScan,
    /// Memory for new objects.
    prepared: ObjectBuf,
}

impl ReplaceJob {
    /// One slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if a result has no room in a table with limits; `KeyChanged` and
    /// `NotTuple` if a result is no object of its key, which the program's proof excludes.
    pub fn step(&mut self, budget: &mut Budget, ctx: &Context<'_>) -> Result<Step, Error> {
        let mut work = Replacing {
            one: self.work.scan.table.kind().is_unique(),
            prepared: &mut self.prepared,
        };
        let step = self.work.step(budget, ctx, &mut work);
        self.prepared.clear();
        step
    }

    /// The objects replaced so far.
    pub fn count(&self) -> u64 {
        self.work.count
    }
}
