//! The gate: how a list of objects is inserted all at once.
//!
//! # Steps
//!
//! 1. The batch is put into the table's slot and the state word's `CLOSED` bit is set, both under
//!    the slot's lock. From here on every operation that begins answers `Busy`. **This is the
//!    batch's linearisation point.**
//! 2. For `insert_new`, every key is looked for. One that is there ends the batch without a change.
//! 3. The objects are inserted one by one, in slices, by whoever comes: the one who began, or
//!    anybody who met `Busy` and helps. One at a time holds the batch's progress; if it goes away
//!    between two slices, the next goes on where it stopped.
//! 4. The bit is cleared and the slot emptied.
//!
//! # Why nobody sees half
//!
//! * A reader looks at the state word first. If it was open, the reader began before (1); for each
//!   key it sees either the batch's object, as if it had come after, or what was there, as if it
//!   had come before, and a single-key read is one or the other. Everything that begins after (1)
//!   waits for (4).
//! * A writer looks at the word again under its leaf's lock. If it was open there, the leaf was
//!   locked before (1) was seen. The batch reads or locks that leaf after (1), so it waits for the
//!   writer and finds its change made. The two orders meet crosswise: lock then load of the word
//!   here, change of the word then load of the leaf's version there. Hence `SeqCst` on the word,
//!   and `after_lock`.
//! * `insert_new` of a bag's list looks for its keys under their locks: a writer of a bag may have
//!   passed the gate and changed nothing yet.
//! * A traversal is no snapshot; a slice of one that began before (1) may see some of the batch.

use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::keys::{Near, MANY_TO_WRITE};
use crate::owner::OwnerId;
use crate::raw;
use crate::reaper;
use crate::store::Index;
use crate::table::{At, Table, CLOSED, DEAD};
use crate::write::index;
use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::{give_way, Mutex};
use larder_index::Key;
use larder_term::object::{ObjectBuf, ObjectRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// Lists up to this length are inserted in one step, whatever the budget.
const SMALL: usize = 64;

/// Objects for `begin_insert`. Holds counts of its own for their handles.
///
/// They lie in chunks of `CHUNK` objects, each a run of memory: adding one never moves more than a
/// chunk, and a long list is freed by the reaper, chunk by chunk.
#[derive(Default)]
pub struct ObjectList {
    chunks: SmallVec<[Chunk; 1]>,
    len: usize,
    bytes: usize,
}

/// Objects in a chunk.
const CHUNK: usize = 512;

#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// For each object: the ends of its key and of its value in `bytes`.
    ends: Vec<(usize, usize)>,
    /// Whether a value has handles.
    handles: bool,
}

impl Chunk {
    fn with_room(bytes: usize) -> Self {
        Chunk {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(CHUNK),
            handles: false,
        }
    }

    #[inline]
    fn push(&mut self, object: ObjectRef<'_>) {
        raw::retain_value(object.value());
        self.handles |= raw::has_handles(object.value());
        self.bytes.extend_from_slice(object.key());
        let key = self.bytes.len();
        self.bytes.extend_from_slice(object.value());
        self.ends.push((key, self.bytes.len()));
    }

    fn get(&self, i: usize) -> (&[u8], &[u8]) {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key, end) = self.ends[i];
        (&self.bytes[start..key], &self.bytes[key..end])
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        for i in 0..if self.handles { self.ends.len() } else { 0 } {
            raw::release_value(self.get(i).1);
        }
    }
}

impl ObjectList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, encoded for the table that the list is for. Copies it.
    pub fn push(&mut self, object: &ObjectBuf) {
        self.push_ref(object.borrow());
    }

    /// As `push`.
    #[inline]
    pub fn push_ref(&mut self, object: ObjectRef<'_>) {
        if self.len.is_multiple_of(CHUNK) {
            self.add_chunk();
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(object);
        }
        self.len += 1;
        self.bytes += object.key().len() + object.value().len();
    }

    fn add_chunk(&mut self) {
        let chunk = match self.chunks.last() {
            // As large as the one before, which is a good guess, but never so large that it costs a
            // slice.
            Some(full) => Chunk::with_room(full.bytes.len().min(64 << 10)),
            None => Chunk::default(),
        };
        self.chunks.push(chunk);
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Key and value of object `i`.
    pub(crate) fn get(&self, i: usize) -> (&[u8], &[u8]) {
        self.chunks[i / CHUNK].get(i % CHUNK)
    }
}

impl Drop for ObjectList {
    fn drop(&mut self) {
        if self.chunks.len() > 1 {
            let mut chunks = std::mem::take(&mut self.chunks);
            let bytes = self.bytes + self.len * size_of::<(usize, usize)>();
            reaper::bits(bytes, move || chunks.pop().is_none());
        }
    }
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
}

/// A list on its way into a table.
pub(crate) struct ListBatch {
    list: ObjectList,
    progress: Mutex<Progress>,
}

impl ListBatch {
    fn new(list: ObjectList, new: bool) -> Self {
        let phase = if new {
            Phase::Checking
        } else {
            Phase::Measuring(0)
        };
        ListBatch {
            list,
            progress: Mutex::new(Progress { phase, next: 0 }),
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
            if near.wants(progress.next) {
                near.fill(table, &self.list, progress.next);
                at.store.prefetch(&guard, near.near.keys(), MANY_TO_WRITE);
            }
            match progress.phase {
                Phase::Over(_) => return Ok(Step::Done),
                Phase::Refused => return Err(table.full(&at)),
                // Nearly always there is room for the whole list.
                Phase::Measuring(0) if self.list.len() <= at.store.room() => {
                    // From the first on: there may be room now that there was none of when the
                    // first few were looked for.
                    (progress.phase, progress.next) = (Phase::Applying, 0);
                    continue;
                }
                phase if progress.next == self.list.len() => {
                    progress.next = 0;
                    progress.phase = match phase {
                        Phase::Checking => Phase::Measuring(0),
                        Phase::Measuring(new) if new > at.store.room() => Phase::Refused,
                        Phase::Measuring(_) => Phase::Applying,
                        _ => Phase::Over(true),
                    };
                    continue;
                }
                Phase::Checking => {
                    // Who passed the open gate may be about to write the key.
                    if at.store.contains_settled(&guard, near.key(progress.next)) {
                        progress.phase = Phase::Over(false);
                        continue;
                    }
                }
                Phase::Measuring(new) => {
                    let replaces = table.kind().is_unique()
                        && at.store.contains(&guard, near.key(progress.next));
                    progress.phase = Phase::Measuring(new + usize::from(!replaces));
                }
                Phase::Applying => {
                    let (_, value) = self.list.get(progress.next);
                    table.put(&at, near.key(progress.next), value)?;
                }
            }
            progress.next += 1;
            if !budget.spend(1) && self.list.len() > SMALL {
                return Ok(Step::More);
            }
        }
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
