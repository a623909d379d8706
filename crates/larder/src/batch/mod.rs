//! The list batch: a list of objects is inserted as a whole, under the table's *batch latch*.
//!
//! A *batch* is a list of objects that is being inserted into a table. The *latch* is held by at
//! most one batch: a bit of the state word (`LATCHED`), and a slot with a pointer to the batch. To
//! *settle* a key with a batch means to insert the batch's objects under that key out of turn.
//!
//! # Steps
//!
//! * **lb1** *Acquire*: put the batch into the table's slot, and set the `LATCHED` bit of the state
//!   word, both under the slot's lock. Every operation that begins afterwards finds the latch held.
//! * **lb2** *Check* (`insert_new` only): look for every key in the table. If one is there, the
//!   batch ends without a change.
//! * **lb3** *Apply*: insert the objects one by one, in slices. Any thread may run a slice: the one
//!   that began the batch, or one that got `Busy` and helps. A lock on the batch's progress lets
//!   one thread work at a time, for some objects. If that thread is stopped between slices, the
//!   next one continues from there.
//! * **lb4** *Release*: clear the bit, and empty the slot.
//!
//! An operation on one key doesn't wait for lb4. It settles its key, and continues beside the
//! batch:
//!
//! * If the batch has no object under the key, there is nothing to do. The list is sealed, so this
//!   is read from it without a lock (see `object_list`).
//! * If the batch is being applied (lb3), insert the objects under the key that aren't in the table
//!   yet, in their order, under the lock of the batch's progress. Mark them as settled. lb3 skips
//!   them.
//! * If the batch is checking its keys (lb2), a read continues. A write of one of its keys returns
//!   `Busy`.
//!
//! In a table with unique indexes there is a step between lb2 and lb3:
//!
//! * *Claim*: claim the values of all objects (`indexes`). If another row has one of them, give the
//!   claims back, and end the batch without a change. During this step and lb3, writes of all keys
//!   return `Busy`, so that no other write claims a value that the batch is going to write.
//!
//! Operations on several keys, steps from key to key, scans and statistics return `Busy`: they wait
//! for lb4.
//!
//! A table has one batch at a time. So a key that is in several lists is settled with one batch
//! after the other. Suppose that the batch ends while an operation settles its key, and that the
//! next batch acquires the latch. A read then takes effect before the next batch. A write finds
//! another count of `transitions` when it revalidates, begins again, and settles its key with the
//! next batch.
//!
//! # Linearisation points
//!
//! For a batch that is applied unconditionally, it is lb1. For an `insert_new` it is the end of
//! lb2: the batch has changed nothing before, and no key of its list has been added since it was
//! looked for. With unique indexes it is the end of the claims.
//!
//! # Invariants (docs/design.md §5.2)
//!
//! * LB1: Of the batch's objects under one key, a first part is in the table: those before `next`,
//!   and those marked as settled. Each object is inserted once.
//! * LB2: An operation on a key that begins after the batch's linearisation point finds all of the
//!   batch's objects under the key in the table.
//! * LB3: Between the search of lb2 for a key and the end of lb2, no other thread adds that key.
//!
//! # Why nobody sees a part of a list
//!
//! *A reader* loads the state word first.
//!
//! * If the latch was free, the reader began before lb1. For each key it sees either the batch's
//!   object, as if it had come after the batch, or the previous state, as if it had come before. A
//!   read of a single key sees one of the two.
//! * If the latch was held, the reader has settled its key (LB2), or began before the end of lb2,
//!   or waits for lb4.
//! * So a thread that has seen one object of the batch misses none in operations that it begins
//!   afterwards.
//!
//! *A writer* revalidates under its leaf's lock.
//!
//! * If the latch was free then, the leaf was locked before the writer could see lb1. The batch
//!   reads or locks that leaf after lb1. So it waits for the writer, and finds the writer's change.
//! * The two sides access two words in opposite orders. The writer locks the leaf, then loads the
//!   state word. The batch changes the state word, then loads the version of the leaf. Hence
//!   `SeqCst` on the state word, and `fence_after_lock`.
//! * A writer that has settled its key revalidates the state word and `transitions`. If both are
//!   unchanged, the same batch still holds the latch. To the next batch it is like a writer that
//!   found the latch free, since `transitions` changes before that batch reads any leaf.
//! * `insert_new` of a list in a bag looks for its keys under their locks, because a writer of a
//!   bag may have revalidated without having changed anything yet.
//!
//! A traversal is no snapshot: a slice that began before lb1 may see a part of the list.
//!
//! # Cost
//!
//! If the latch is free, an operation pays one comparison for all of this. Settling a key reads
//! about a hundred cache lines in a list of a million objects, inserts the key's own objects, and
//! waits for at most `TURN` objects of another thread. A list of one chunk is inserted quickly, so
//! operations that meet it help to insert all of it.

mod apply;
mod insert;
mod latch;
mod object_list;

use crate::bounds::SpaceNeeded;
use crate::indexes::Claimed;
use crate::versions::CommitNumber;
use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::Mutex;
use larder_term::Atom;
use std::sync::Arc;

pub use insert::ListJob;
pub use object_list::ObjectList;

/// The state of a batch, which determines what is done with the next object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No slice has run.
    Begun,
    /// Computing the space that the list needs.
    Measuring,
    /// There is no room.
    Refused,
    /// Looking for keys in the table. `next` is the first object whose key hasn't been looked for.
    Checking,
    /// Claiming the values of unique indexes. Without room, only to see whether they are taken.
    Claiming { fits: bool },
    /// Giving claims back, since another row has a value in the index of this name, or since there
    /// is no room.
    GivingBack(Option<Atom>),
    /// Nothing was inserted, since another row has a value in the index of this name.
    Taken(Atom),
    /// Inserting objects.
    Applying,
    /// The batch is over; whether its objects were inserted.
    Over(bool),
}

/// The progress of a batch.
struct BatchProgress {
    phase: Phase,
    /// The first object that the phase hasn't processed.
    next: usize,
    /// The space that the objects need that were measured.
    need: SpaceNeeded,
    /// The number of objects in the table when the first slice began.
    before: Option<usize>,
    /// `None` if all of it is empty, as in most batches.
    extra: Option<Box<Extra>>,
}

/// What few batches have.
#[derive(Default)]
struct Extra {
    /// Earlier objects whose values must be claimed again.
    again: Vec<usize>,
    /// A bit for each object that was inserted out of turn. Empty if there is none.
    settled: Vec<u64>,
    /// The claimed values of unique indexes.
    claimed: Option<Claimed>,
}

impl BatchProgress {
    /// Enters a phase, and starts with the first object.
    fn enter(&mut self, phase: Phase) {
        (self.phase, self.next) = (phase, 0);
        if let Some(extra) = &mut self.extra {
            extra.again.clear();
        }
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The last of the earlier objects whose values must be claimed again.
    #[inline]
    fn again(&self) -> Option<usize> {
        self.extra.as_ref()?.again.last().copied()
    }

    fn claimed(&mut self) -> &mut Option<Claimed> {
        &mut self.extra().claimed
    }

    /// Whether an object is in the table.
    fn is_in(&self, i: usize) -> bool {
        i < self.next || self.is_settled(i)
    }

    #[inline]
    fn is_settled(&self, i: usize) -> bool {
        let settled = self.extra.as_ref().map_or(&[][..], |extra| &extra.settled);
        settled
            .get(i / 64)
            .is_some_and(|bits| bits >> (i % 64) & 1 == 1)
    }

    fn note_settled(&mut self, i: usize, len: usize) {
        // Most batches end before any key is settled. They don't allocate the bits.
        let settled = &mut self.extra().settled;
        if settled.is_empty() {
            *settled = vec![0; len.div_ceil(64)];
        }
        settled[i / 64] |= 1 << (i % 64);
    }
}

/// A list that is being inserted into a table.
pub(crate) struct ListBatch {
    list: ObjectList,
    /// Whether it is an `insert_new`.
    is_new: bool,
    progress: Mutex<BatchProgress>,
    /// The number of its writes, for snapshots. A snapshot draws its number while no batch holds
    /// the latch. So it draws it either before this number is drawn, or after the batch.
    number: CommitNumber,
}

impl ListBatch {
    fn new(mut list: ObjectList, new: bool) -> Self {
        // From here on the list never changes. So any thread may read it without a lock.
        list.seal();
        ListBatch {
            list,
            is_new: new,
            progress: Mutex::new(BatchProgress {
                phase: Phase::Begun,
                next: 0,
                need: SpaceNeeded::default(),
                before: None,
                extra: None,
            }),
            number: CommitNumber::default(),
        }
    }
}

/// A table's latch: the batch that holds it, and how often it was acquired or released.
#[derive(Default)]
pub(crate) struct BatchLatch {
    slot: Mutex<Option<Arc<ListBatch>>>,
    transitions: AtomicU64,
}

impl BatchLatch {
    /// How often the latch was acquired or released, or is about to be. Suppose that the latch was
    /// free at two moments, and that this count is the same before the first and after the second.
    /// Then no batch held it in between, since the batch would have counted its release in between.
    pub(crate) fn transitions(&self) -> u64 {
        // Ordering: SeqCst, against `count_transition`, which comes before the state word's change.
        self.transitions.load(Ordering::SeqCst)
    }

    /// Counts an acquisition or release that is about to happen. The slot is locked, so no other
    /// thread counts.
    fn count_transition(&self) {
        // Ordering: Release, of a thread's own count. The `SeqCst` change of the state word comes
        // next: a thread that sees it, or anything that follows it, sees this count.
        let before = self.transitions.load(Ordering::Relaxed);
        self.transitions.store(before + 1, Ordering::Release);
    }

    /// Drops the batch of a dropped table, which nobody will finish. No other batch can follow:
    /// `acquire_latch` checks under the same lock whether the table is dead.
    pub(crate) fn end(&self) {
        let batch = self.slot.lock().take();
        drop(batch);
    }
}
