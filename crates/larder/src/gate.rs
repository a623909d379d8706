//! The gate: how a list of objects is inserted all at once.
//!
//! # Steps
//!
//! 1. The batch is put into the table's slot and the state word's `CLOSED` bit is set, both under
//!    the slot's lock. From here on every operation that begins meets the closed gate.
//! 2. For `insert_new`, every key is looked for. One that is there ends the batch without a change.
//! 3. The objects are inserted one by one, in slices, by whoever comes: the one who began, or
//!    anybody who met `Busy` and helps. One at a time holds the batch's progress, for some objects;
//!    if it goes away, the next goes on where it stopped.
//! 4. The bit is cleared and the slot emptied.
//!
//! An operation on one key doesn't wait for (4): it *settles* its key and goes on.
//!
//! * The batch has no object under the key: there is nothing to do. That it has none is read from
//!   the list, which doesn't change any more (see `object_list`).
//! * The batch is being applied (3): the objects under the key that are not in the table yet are
//!   inserted now, in their order, while the batch's progress is held, and noted as settled. (3)
//!   passes them over.
//! * The batch looks for its keys (2): a read goes on. A write of one of its keys is `Busy`.
//!
//! Operations on more than one key, walks, scans and figures answer `Busy`: they wait for (4).
//!
//! # Linearisation points
//!
//! That of a batch that is to be applied in any case is (1). That of an `insert_new` is where (2)
//! ends: up to then it has changed nothing, and no key of its list has changed since it was looked
//! for.
//!
//! # Invariants
//!
//! 1. Of the objects under one key, a first part of the batch's is in the table. Objects are put
//!    there under the progress's lock, each once: those before `next`, and those noted as settled.
//! 2. An operation on a key that begins after the batch's linearisation point looks at the key's
//!    leaf when all of the batch's objects under it are in the table.
//! 3. Between (2)'s look for a key and its end nobody adds that key.
//!
//! # Why nobody sees half
//!
//! * A reader looks at the state word first. If it was open, the reader began before (1); for each
//!   key it sees either the batch's object, as if it had come after, or what was there, as if it
//!   had come before, and a single-key read is one or the other. If it was closed, the reader has
//!   settled its key (invariant 2), or began before (2) ended, or waits for (4). So whoever has
//!   seen one object of the batch misses none in what it begins afterwards.
//! * A writer looks again under its leaf's lock. If the gate was open there, the leaf was locked
//!   before (1) was seen. The batch reads or locks that leaf after (1), so it waits for the writer
//!   and finds its change made. The two orders meet crosswise: lock then load of the word here,
//!   change of the word then load of the leaf's version there. Hence `SeqCst` on the word, and
//!   `after_lock`.
//! * A writer that has settled its key looks at the word again, too, and at the number of closings:
//!   both as they were say that the gate is closed for the same batch. For the next batch it is as
//!   one that found the gate open: `closings` changes before that batch looks at a leaf.
//! * `insert_new` of a bag's list looks for its keys under their locks: a writer of a bag may have
//!   passed the gate and changed nothing yet.
//! * A traversal is no snapshot; a slice of one that began before (1) may see some of the batch.
//!
//! # Cost
//!
//! An operation that finds the gate open has one comparison for all of this. To settle a key takes
//! a look at about a hundred cache lines in a list of a million objects, the insertion of the key's
//! own objects, and the wait for `TURN` objects of another's. A list of one chunk is over soon:
//! those who meet it help with all of it.

use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::keys::{Near, MANY_TO_WRITE};
use crate::object_list::ObjectList;
use crate::owner::OwnerId;
use crate::store::Index;
use crate::table::{At, Pass, Table, CLOSED, DEAD};
use crate::write::index;
use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::{give_way, planted, Fault, Mutex, MutexGuard};
use larder_index::{Guard, Key};
use std::sync::Arc;

/// Lists up to this length are inserted in one step, whatever the budget.
const SMALL: usize = 64;

/// Objects that are worked off while the progress is held.
const TURN: usize = if cfg!(larder_model) { 1 } else { 64 };

/// Objects under one key that are inserted by who settles it; more are everybody's work.
const MOST_OF_A_KEY: usize = 256;

/// What an operation on one key is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    Write,
}

/// The keys of the next objects of a list, brought near together.
struct Ahead<'l> {
    near: Near<'l>,
    from: usize,
    len: usize,
}

impl<'l> Ahead<'l> {
    fn new(len: usize) -> Self {
        Ahead {
            near: Near::new(),
            from: 0,
            len,
        }
    }

    /// Whether object `i` is one of the list, and not among those that are near.
    fn wants(&self, i: usize) -> bool {
        i < self.len && !(self.from..self.from + self.near.keys().len()).contains(&i)
    }

    fn fill(&mut self, table: &Table, list: &'l ObjectList, from: usize) {
        self.from = from;
        self.near
            .fill_with(table, self.len - from, |i| list.get(from + i).0);
    }

    /// The key of object `i`, which is near.
    fn key(&self, i: usize) -> Key<'l> {
        self.near.keys()[i - self.from]
    }
}

/// How far a batch has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Counting the objects that there must be room for, so many so far.
    Measuring(usize),
    /// There is no room.
    Refused,
    /// Looking for keys that are there, `next` being the first not looked for.
    Checking,
    /// Inserting.
    Applying,
    /// Over; whether the objects were inserted.
    Over(bool),
}

struct Progress {
    phase: Phase,
    next: usize,
    /// A bit for each object that was inserted out of turn. Empty as long as there is none.
    settled: Vec<u64>,
}

impl Progress {
    /// Begins a phase, with the first object.
    fn enter(&mut self, phase: Phase) {
        (self.phase, self.next) = (phase, 0);
    }

    /// Whether an object is in the table.
    fn is_in(&self, i: usize) -> bool {
        i < self.next || self.is_settled(i)
    }

    #[inline]
    fn is_settled(&self, i: usize) -> bool {
        self.settled
            .get(i / 64)
            .is_some_and(|bits| bits >> (i % 64) & 1 == 1)
    }

    fn note_settled(&mut self, i: usize, len: usize) {
        if self.settled.is_empty() {
            self.settled = vec![0; len.div_ceil(64)];
        }
        self.settled[i / 64] |= 1 << (i % 64);
    }
}

/// A list on its way into a table.
pub(crate) struct ListBatch {
    list: ObjectList,
    progress: Mutex<Progress>,
}

impl ListBatch {
    fn new(mut list: ObjectList, new: bool) -> Self {
        list.seal();
        let phase = if new {
            Phase::Checking
        } else {
            Phase::Measuring(0)
        };
        ListBatch {
            list,
            progress: Mutex::new(Progress {
                phase,
                next: 0,
                settled: Vec::new(),
            }),
        }
    }

    /// Does one slice, if nobody else is doing one. `Done` when the batch is over.
    fn work(&self, table: &Table, budget: &mut Budget) -> Result<Step, Error> {
        // Pinned before the lock is taken, as a pin may run what others deferred.
        let guard = larder_index::pin();
        let Some(mut progress) = self.progress.try_lock() else {
            drop(guard);
            give_way();
            return Ok(Step::More);
        };
        let at = table.begin_batch(&guard)?;
        let mut near = Ahead::new(self.list.len());
        loop {
            for _ in 0..TURN {
                if near.wants(progress.next) {
                    near.fill(table, &self.list, progress.next);
                    at.store.prefetch(&guard, near.near.keys(), MANY_TO_WRITE);
                }
                if self.advance(table, &at, &mut progress, &near)? {
                    return Ok(Step::Done);
                }
                if !budget.spend(1) && self.list.len() > SMALL {
                    return Ok(Step::More);
                }
            }
            // Whoever waits to settle a key has its turn.
            MutexGuard::unlock_fair(progress);
            progress = self.progress.lock();
        }
    }

    /// Does what there is to do for the next object; whether the batch is over.
    #[inline]
    fn advance(
        &self,
        table: &Table,
        at: &At<'_>,
        progress: &mut Progress,
        near: &Ahead<'_>,
    ) -> Result<bool, Error> {
        let len = self.list.len();
        match progress.phase {
            Phase::Over(_) => return Ok(true),
            Phase::Refused => return Err(table.full(at)),
            // Nearly always there is room for the whole list.
            Phase::Measuring(0) if len <= at.store.room() => {
                // From the first on: there may be room now that there was none of when the first
                // few were looked for.
                progress.enter(Phase::Applying);
                return Ok(false);
            }
            phase if progress.next == len => {
                progress.enter(match phase {
                    Phase::Checking => Phase::Measuring(0),
                    Phase::Measuring(new) if new > at.store.room() => Phase::Refused,
                    Phase::Measuring(_) => Phase::Applying,
                    _ => Phase::Over(true),
                });
                return Ok(false);
            }
            Phase::Checking => {
                // Who passed the open gate may be about to write the key.
                if at.store.contains_settled(at.guard, near.key(progress.next)) {
                    progress.phase = Phase::Over(false);
                    return Ok(false);
                }
            }
            Phase::Measuring(new) => {
                let replaces = table.kind().is_unique()
                    && at.store.contains(at.guard, near.key(progress.next));
                progress.phase = Phase::Measuring(new + usize::from(!replaces));
            }
            Phase::Applying if progress.is_settled(progress.next) => {}
            Phase::Applying => {
                let (_, value) = self.list.get(progress.next);
                table.put(at, near.key(progress.next), value)?;
            }
        }
        progress.next += 1;
        Ok(false)
    }

    /// Sees to it that an operation on a key may go on (see the module); false if it has to wait.
    fn settle(
        &self,
        table: &Table,
        guard: &Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<bool, Error> {
        let at = table.begin_batch(guard)?;
        // What others insert may take the room that the batch has counted on.
        if !self.list.is_indexed() || (intent == Intent::Write && at.store.is_limited()) {
            return Ok(false);
        }
        let under = self.list.under(key, MOST_OF_A_KEY + 1);
        if under.is_empty() {
            return Ok(true);
        }
        let mut progress = self.progress.lock();
        if progress.phase == Phase::Measuring(0) && !at.store.is_limited() {
            progress.enter(Phase::Applying);
        }
        match progress.phase {
            Phase::Over(_) => return Ok(true),
            Phase::Checking => return Ok(intent == Intent::Read),
            Phase::Applying if under.len() <= MOST_OF_A_KEY => {}
            _ => return Ok(false),
        }
        let key = table.key(key);
        for i in under {
            if !progress.is_in(i) {
                table.put(&at, key, self.list.get(i).1)?;
                if !planted(Fault::Unsettled) {
                    progress.note_settled(i, self.list.len());
                }
            }
        }
        Ok(true)
    }
}

/// The slot of a table for the batch that holds it, and how often it was about to be closed.
#[derive(Default)]
pub(crate) struct Gate {
    slot: Mutex<Option<Arc<ListBatch>>>,
    closings: AtomicU64,
}

impl Gate {
    /// How often the gate was about to be closed: as long as it is the same, and the gate open, no
    /// list was begun.
    pub(crate) fn closings(&self) -> u64 {
        // Ordering: SeqCst, against the change in `close`, which comes before the state word's.
        self.closings.load(Ordering::SeqCst)
    }

    /// Forgets the batch of a table that is gone, which nobody will finish. No other comes: `close`
    /// looks whether the table is dead under the same lock.
    pub(crate) fn end(&self) {
        let batch = self.slot.lock().take();
        drop(batch);
    }
}

impl Table {
    /// Does one slice of the batch that holds the gate, if one does. `Done` when the gate is open,
    /// or the table gone.
    pub fn help(&self, budget: &mut Budget) -> Step {
        let Some(batch) = self.gate.slot.lock().clone() else {
            return Step::Done;
        };
        match batch.work(self, budget) {
            Ok(Step::More) => Step::More,
            // A dead table needs no help: whoever asks it something learns that it is dead.
            Ok(Step::Done) | Err(_) => {
                self.open(&batch);
                Step::Done
            }
        }
    }

    /// Begins an operation on one key beside the batch that holds the gate.
    ///
    /// # Errors
    /// `NoTable`; `Busy` when the operation has to wait for the batch.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_beside<'g>(
        &self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<At<'g>, Error> {
        let slot = self.gate.slot.lock();
        let Some(batch) = slot.clone() else {
            drop(slot);
            return self.begin(guard);
        };
        // While the slot is locked the batch keeps the gate, and no other one closes it.
        let seen = self.cell.load(guard);
        let pass = Pass::settled(self.gate.closings());
        drop(slot);
        let Some(store) = seen.get().filter(|_| seen.tag() & DEAD == 0) else {
            return Err(Error::NoTable);
        };
        if !batch.settle(self, guard, key, intent)? {
            return Err(Error::Busy);
        }
        Ok(At {
            guard,
            seen,
            store,
            pass,
        })
    }

    /// Helps until the gate is open. For threads that may wait.
    pub(crate) fn wait(&self) {
        while self.help(&mut Budget::slice()) == Step::More {}
    }

    /// (1) Closes the gate for the batch; `Busy` if another holds it.
    fn close(&self, batch: &Arc<ListBatch>) -> Result<(), Error> {
        let guard = larder_index::pin();
        let mut slot = self.gate.slot.lock();
        if slot.is_some() {
            return Err(Error::Busy);
        }
        loop {
            let seen = self.cell.load(&guard);
            if seen.tag() & DEAD != 0 {
                return Err(Error::NoTable);
            }
            // Ordering: SeqCst, before the state word changes (see `closings`). Once too often does
            // no harm.
            self.gate.closings.fetch_add(1, Ordering::SeqCst);
            if self.cell.set_tag_if(seen, CLOSED, &guard) {
                *slot = Some(Arc::clone(batch));
                // Ordering: after the state word's change and before any look at a leaf (see the
                // module).
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                return Ok(());
            }
        }
    }

    /// (4) Opens the gate if the batch still holds it.
    fn open(&self, batch: &Arc<ListBatch>) {
        let guard = larder_index::pin();
        let mut slot = self.gate.slot.lock();
        if slot.as_ref().is_some_and(|held| Arc::ptr_eq(held, batch)) {
            *slot = None;
            self.cell.clear_tag(CLOSED, &guard);
        }
    }

    /// Puts one object in its place: what `insert` means for the table's type.
    #[inline]
    pub(crate) fn put(
        &self,
        at: &At<'_>,
        key: Key<'_>,
        value: &[u8],
    ) -> Result<crate::write::Written, Error> {
        match index(at) {
            Index::One(ix) => Ok(self.put_one(at, &**ix, key, (value, false), |_| true).0),
            Index::Many(ix) => {
                let dedupe = self.kind() == crate::options::TableKind::Bag;
                self.change_many(at, &**ix, key, &mut |held| {
                    if !dedupe || !self.holds_same(held, key.bytes, value) {
                        held.push(value);
                    }
                    Ok(())
                })
            }
        }
    }

    /// Begins the insertion of a list, all or nothing. With `new`, nothing is inserted if one of
    /// the keys is in the table; a key may come several times in the list.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    ///
    /// # Consistency
    /// Nobody sees some of the objects without the others, but a traversal under way. Meanwhile
    /// other operations answer `Busy`.
    pub fn begin_insert(
        self: &Arc<Self>,
        who: OwnerId,
        list: ObjectList,
        new: bool,
    ) -> Result<ListJob, Error> {
        self.check_write(who)?;
        Ok(ListJob {
            table: Arc::clone(self),
            batch: Arc::new(ListBatch::new(list, new)),
            closed: false,
        })
    }
}

/// The insertion of a list, under way. Dropped before its first step, nothing has happened; dropped
/// later, whoever comes next to the table finishes it.
pub struct ListJob {
    table: Arc<Table>,
    batch: Arc<ListBatch>,
    closed: bool,
}

impl ListJob {
    /// One slice. Helps with another's list first, if there is one.
    ///
    /// # Errors
    /// `NoTable` when the table is dropped meanwhile.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        if self.batch.list.is_empty() {
            return Ok(Step::Done);
        }
        while !self.closed {
            match self.table.close(&self.batch) {
                Ok(()) => self.closed = true,
                Err(Error::Busy) => {
                    if self.table.help(budget) == Step::More || budget.is_exhausted() {
                        return Ok(Step::More);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match self.batch.work(&self.table, budget) {
            Ok(Step::More) => Ok(Step::More),
            done => {
                self.table.open(&self.batch);
                done
            }
        }
    }

    /// After `Done`: whether the objects are in the table. False only for an `insert_new` that
    /// found a key.
    pub fn inserted(&self) -> bool {
        self.batch.list.is_empty() || self.batch.progress.lock().phase == Phase::Over(true)
    }
}
