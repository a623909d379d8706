//! The list batch: a list of objects is inserted all at once, behind the table's *batch latch*.
//!
//! A *batch* is a list of objects on its way into a table. The *latch* is held by at most one
//! batch: a bit of the state word (`LATCHED`), and a slot that says which batch. *Settling* a key
//! with a batch means to put the batch's objects under the key into the table, out of turn.
//!
//! # Steps
//!
//! 1. *Acquire*: the batch is put into the table's slot and the state word's `LATCHED` bit is set,
//!    both under the slot's lock. From here on every operation that begins finds the latch held.
//! 2. *Check*: for `insert_new`, every key is looked for. One that is there ends the batch without
//!    a change.
//! 3. *Apply*: the objects are inserted one by one, in slices, by whoever comes: the thread that
//!    began, or any that met `Busy` and helps. One at a time holds the batch's progress, for some
//!    objects; if it goes away, the next continues where it stopped.
//! 4. *Release*: the bit is cleared and the slot emptied.
//!
//! An operation on one key doesn't wait for (4). It settles its key and goes on beside the batch:
//!
//! * The batch has no object under the key: there is nothing to do. That it has none is read from
//!   the list, which is sealed (see `object_list`).
//! * The batch is being applied (3): the objects under the key that are not in the table yet are
//!   inserted now, in their order, under the lock of the batch's progress, and noted as settled.
//!   (3) passes them over.
//! * The batch checks its keys (2): a read goes on. A write of one of its keys is `Busy`.
//!
//! Where a table has unique indexes, there is a step between (2) and (3):
//!
//! * *Claim*: the values of all objects are claimed (`indexes`). If another row has one of them,
//!   the claims are given back, and the batch ends without a change. Meanwhile, and during (3),
//!   writes of all keys are `Busy`, so that nobody else claims what the batch is to write.
//!
//! Operations on more than one key, walks, scans and figures answer `Busy`: they wait for (4).
//!
//! # Linearisation points
//!
//! That of a batch that is to be applied in any case is (1). That of an `insert_new` is the end of
//! (2): up to then it has changed nothing, and no key of its list has changed since it was looked
//! for. With unique indexes it is the end of the claims.
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
//! *A reader* loads the state word first.
//!
//! * The latch was free: the reader began before (1). For each key it sees the batch's object, as
//!   if it had come after, or what was there, as if it had come before; a read of a single key is
//!   one or the other.
//! * The latch was held: the reader has settled its key (invariant 2), or began before (2) ended,
//!   or waits for (4).
//! * So whoever has seen one object of the batch misses none in what it begins afterwards.
//!
//! *A writer* revalidates under its leaf's lock.
//!
//! * If the latch was free there, the leaf was locked before (1) was seen. The batch reads or locks
//!   that leaf after (1), so it waits for the writer and finds its change made.
//! * The two orders cross: lock, then load of the word, here; change of the word, then load of the
//!   leaf's version, there. Hence `SeqCst` on the word, and `after_lock`.
//! * A writer that has settled its key revalidates the word and how often the latch has changed
//!   hands: both unchanged say that the same batch holds the latch. For the next batch it is as a
//!   writer that found the latch free: `turns` changes before that batch looks at a leaf.
//! * `insert_new` of a bag's list looks for its keys under their locks: a writer of a bag may have
//!   revalidated and changed nothing yet.
//!
//! A traversal is no snapshot: a slice that began before (1) may see some of the batch.
//!
//! # Cost
//!
//! An operation that finds the latch free has one comparison for all of this. To settle a key takes
//! a look at about a hundred cache lines in a list of a million objects, the insertion of the key's
//! own objects, and the wait for `TURN` objects of another's. A list of one chunk is over soon:
//! those who meet it help with all of it.

mod apply;
mod insert;
mod latch;
mod object_list;

use crate::indexes::Claimed;
use crate::versions::CommitNumber;
use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::Mutex;
use larder_term::Atom;
use std::sync::Arc;

pub use insert::ListJob;
pub use object_list::ObjectList;

/// What a batch does with its next object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Counting what there must be room for: how many objects so far, and how much weight.
    Measuring((usize, i64)),
    /// There is no room.
    Refused,
    /// Looking for keys that are there, `next` being the first not looked for.
    Checking,
    /// Claiming the values of unique indexes.
    Claiming,
    /// Giving them back, as another row has one in the index of this name.
    GivingBack(Atom),
    /// Nothing was inserted, for that.
    Taken(Atom),
    /// Inserting.
    Applying,
    /// Over; whether the objects were inserted.
    Over(bool),
}

/// How far a batch has come.
struct Progress {
    phase: Phase,
    /// The first object that the phase has not dealt with.
    next: usize,
    /// A bit for each object that was inserted out of turn. Empty as long as there is none.
    settled: Vec<u64>,
    /// The values of unique indexes that were claimed.
    claimed: Option<Claimed>,
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
        // Most batches end before anybody has settled a key: they take no memory for it.
        if self.settled.is_empty() {
            self.settled = vec![0; len.div_ceil(64)];
        }
        self.settled[i / 64] |= 1 << (i % 64);
    }
}

/// A list on its way into a table.
pub(crate) struct ListBatch {
    list: ObjectList,
    /// Whether it is an `insert_new`.
    is_new: bool,
    progress: Mutex<Progress>,
    /// Of its writes, for snapshots. A snapshot draws its number while no batch holds the latch: it
    /// is of before this number was drawn, or of after the batch.
    number: CommitNumber,
}

impl ListBatch {
    fn new(mut list: ObjectList, new: bool) -> Self {
        list.seal();
        // An `insert` has no keys to look for: its linearisation point is the acquisition.
        let phase = if new {
            Phase::Checking
        } else {
            Phase::Measuring((0, 0))
        };
        ListBatch {
            list,
            is_new: new,
            progress: Mutex::new(Progress {
                phase,
                next: 0,
                settled: Vec::new(),
                claimed: None,
            }),
            number: CommitNumber::default(),
        }
    }
}

/// A table's latch: which batch holds it, and how often it was acquired or released.
#[derive(Default)]
pub(crate) struct BatchLatch {
    slot: Mutex<Option<Arc<ListBatch>>>,
    turns: AtomicU64,
}

impl BatchLatch {
    /// How often the latch was acquired or released, or about to be. If the latch was free at two
    /// moments, and this is the same before the first and after the second, then no batch held it
    /// in between: one that did has counted its release in between.
    pub(crate) fn turns(&self) -> u64 {
        // Ordering: SeqCst, against `count_turn`, which comes before the state word's change.
        self.turns.load(Ordering::SeqCst)
    }

    /// The latch is about to be acquired or released.
    fn count_turn(&self) {
        // Ordering: SeqCst, before the state word changes (see `turns`).
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    /// Forgets the batch of a table that is gone, which nobody will finish. No other comes:
    /// `acquire_latch` looks whether the table is dead under the same lock.
    pub(crate) fn end(&self) {
        let batch = self.slot.lock().take();
        drop(batch);
    }
}
