//! Writing scans: delete and replace.
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

use super::point::Point;
use super::select::{cost, weight, Scan};
use crate::budget::{Budget, Step};
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::Index;
use crate::local::Local;
use crate::ops::Operation;
use crate::ops::{ValueList, Written};
use crate::options::TableKind;
use crate::raw;
use crate::table::Table;
use larder_index::{Batch, Change, Direction, Previous};
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

/// Whether something is to be done with an object.
type Matches<'a> = dyn Fn(&Program, &ObjectView<'_>, &Context<'_>, &mut Scratch) -> bool + 'a;

/// What is to be done with an object that matched.
type Act<'a> = dyn FnMut(&Table, &Operation<'_>, &mut Turn<'_>) -> Result<u64, Error> + 'a;

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
            scan: Scan::new(table, Some(program), Direction::Forward),
            count: 0,
            scratch: Scratch::default(),
            chosen: Vec::new(),
            dealt: Vec::new(),
        }
    }

    /// One slice: finds objects that are `wanted` and calls `act` with each; `at_once` removes
    /// those of a leaf instead, where it can.
    fn step(
        &mut self,
        budget: &mut Budget,
        ctx: &Context<'_>,
        (wanted, at_once): (&Matches<'_>, bool),
        act: &mut Act<'_>,
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
                if !known && wanted(program, &object, ctx, scratch) {
                    self.chosen.push(dealt as u32);
                    if !one {
                        key.clone_into(&mut self.dealt);
                    }
                }
                dealt += 1;
                go = budget.spend(cost(weight, value));
            }
            // (2)
            if at_once && table.remove_chosen(&op, batch, &self.chosen) {
                self.count += self.chosen.len() as u64;
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
                match act(&table, &op, &mut turn) {
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
    /// Whether an object has the result `true`.
    fn is_true(&mut self, table: &Table, value: &[u8]) -> bool {
        let mut plain = Vec::new();
        let object = raw::view(self.key, value, table.keypos(), &mut plain);
        self.program.is_true(&object, self.ctx, self.scratch)
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
    /// those of the key's objects that match.
    fn delete(&mut self, table: &Table, op: &Operation<'_>) -> Result<u64, Error> {
        let key = table.key(self.key);
        let mut gone = 0;
        let written = match &op.store.index {
            Index::Unique(ix) => {
                // An object that is as it was read has been matched: only one that has changed is
                // matched again, under the lock.
                let read = self.value;
                let (written, was) = table.remove_one(op, &**ix, key, |value| {
                    read == Some(value) || self.is_true(table, value)
                });
                gone = u64::from(was == Previous::Present);
                written
            }
            Index::Multi(ix) => table.change_many(op, &**ix, key, &mut |values| {
                gone = values.remove_if(&mut |value| self.is_true(table, value)) as u64;
                Ok(())
            })?,
        };
        // What moved is met again by the scan.
        match written {
            Written::Moved => Err(Error::Busy),
            Written::Full => Err(table.full(op)),
            Written::Done => Ok(gone),
        }
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
        for (ordinal, old, object) in &new {
            values.replace(*ordinal, old, object.value());
        }
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
        let mut act =
            |table: &Table, op: &Operation<'_>, turn: &mut Turn<'_>| turn.delete(table, op);
        self.work
            .step(budget, ctx, (&Program::is_true, true), &mut act)
    }

    /// The objects deleted so far.
    pub fn count(&self) -> u64 {
        self.work.count
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
    /// `NoTable`, `Busy`; `KeyChanged` and `NotTuple` if a result is no object of its key, which
    /// the program's proof excludes.
    pub fn step(&mut self, budget: &mut Budget, ctx: &Context<'_>) -> Result<Step, Error> {
        let mut prepared = std::mem::take(&mut self.prepared);
        let mut act = |table: &Table, op: &Operation<'_>, turn: &mut Turn<'_>| {
            let (written, count) = turn.replace(table, op, &mut prepared)?;
            // What moved is met again by the scan.
            match written {
                Written::Moved => Err(Error::Busy),
                _ => Ok(count),
            }
        };
        // One object is matched when its replacement is made. A key's objects in a bag are matched
        // under its lock, if one of them matches without.
        let one = self.work.scan.table.kind().is_unique();
        let wanted = |program: &Program,
                      object: &ObjectView<'_>,
                      ctx: &Context<'_>,
                      scratch: &mut Scratch| {
            one || program.run(object, ctx, scratch).is_some()
        };
        let step = self.work.step(budget, ctx, (&wanted, false), &mut act);
        prepared.clear();
        self.prepared = prepared;
        step
    }

    /// The objects replaced so far.
    pub fn count(&self) -> u64 {
        self.work.count
    }
}
