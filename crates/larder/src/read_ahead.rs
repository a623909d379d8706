//! The read-ahead cursor: what a thread read beyond the answer of its last step from key to key.
//!
//! # Definitions
//!
//! - *Last answer*: the key that the thread's last step gave, an entry of the cursor's batch.
//! - A step *continues* if it is of the same table, in the same direction, from the last answer.
//! - The *stamp* of a batch is the table's change stamp from before it was read (see
//!   `change_stamp`); the *version*, that of the leaf that it was read from.
//!
//! # Steps
//!
//! ```text
//!   next(k1) -> k2     reads k2
//!   next(k2) -> k3     continues: arms the change stamp, reads k3 … k10
//!   next(k3) -> k4     from the batch: the stamp holds, no leaf is looked at
//! ```
//!
//! 1. A step that continues is answered from the batch, if its stamp holds.
//! 2. If the table was changed, the index is asked whether the leaf has the version that was read
//!    (`Unique::unchanged`): the step finds its leaf, and no more.
//! 3. Otherwise the index is read: one entry, and if the step continues, some behind it, four times
//!    as many as the last time.
//!
//! A table that others change all the time would have its stamp armed, and ended, at each step. So
//! after a change of the table some batches are read without a stamp (2 alone); after a change of
//! the leaf, some steps read nothing ahead. A step that reads nothing ahead costs little
//! (`Unique::step`), so a drain, which deletes each key that it has passed, needs no read-ahead.
//!
//! A step that begins at the table's edge for the third time, and found the same leaf unchanged the
//! second time, asks whether it is unchanged still (`first_unchanged`). So `first` of a table that
//! is polled, and not drained, finds its leaf and no more.
//!
//! A host that showed the key of an answer as a number of its own, which stands for that key for
//! ever, may ask for the next step by that number: then the key is neither written nor compared.
//!
//! # Invariants
//!
//! 1. An entry whose value holds handles is never answered from here: the batch is a copy, and owns
//!    no counts of them.
//! 2. Of a bag, keys are answered from here, and never objects: the batch may have some of a key's
//!    objects without the others.

use crate::change_stamp::Stamp;
use crate::raw;
use larder_index::{Batch, Direction, Seen};

/// Entries that are read ahead at first, and at most.
const FIRST: usize = 8;
const MOST: usize = 512;
/// Steps that read nothing ahead after the leaf was changed, and batches without a stamp after the
/// table was.
const PAUSE: u32 = 64;
/// More bytes than this are not kept.
const KEEP: usize = 1 << 20;

/// Where a step that may continue begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepFrom<'k> {
    /// An index key.
    Key(&'k [u8]),
    /// The key that was shown as this number, which is not 0.
    Shown(u64),
}

/// What comes after a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextEntry<'a> {
    /// A key, and the first value under it.
    Entry(&'a [u8], &'a [u8]),
    /// Nothing: the key is the last.
    End,
}

/// A thread's cursor (see the module).
#[derive(Default)]
pub(crate) struct ReadAhead {
    /// The number of the table's change stamp; 0 for none.
    table: u64,
    /// The batch's stamp; None if it was read without one.
    stamp: Option<Stamp>,
    backward: bool,
    /// A key has one entry at most.
    unique: bool,
    /// What was read, of which the entry at `at` is the last answer.
    batch: Box<Batch>,
    /// Where the next step reads; it becomes `batch` when the step has an answer.
    pub(crate) spare: Box<Batch>,
    /// Where the next step writes a position.
    pub(crate) position: Vec<u8>,
    /// The entry of the last answer: the first of its key.
    at: usize,
    /// What its key was shown as; 0 if it was not.
    shown: u64,
    /// How many entries were read ahead the last time; 0 for none.
    more: usize,
    /// Steps until something is read ahead again.
    pause: u32,
    /// Batches until one has a stamp again.
    without_stamp: u32,
    /// What is known of steps from the edge.
    first: FromEdge,
}

/// Where the batch was read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum FromEdge {
    /// Behind a key.
    #[default]
    No,
    /// At the table's edge.
    Once,
    /// At the edge, and so was the batch before it, in the same leaf at the same version.
    Again,
}

/// Whether two keys are the same: mostly they are, and short.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    fn ends<const N: usize>(key: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
        (key.first_chunk(), key.last_chunk())
    }
    a.len() == b.len()
        && match a.len() {
            0..=3 => a.iter().zip(b).all(|(a, b)| a == b),
            4..=8 => ends::<4>(a) == ends::<4>(b),
            9..=16 => ends::<8>(a) == ends::<8>(b),
            _ => a == b,
        }
}

impl ReadAhead {
    /// Whether a step continues.
    #[inline(always)]
    pub(crate) fn continues(&self, table: u64, from: StepFrom<'_>, way: Direction) -> bool {
        // The cheap comparisons come first: for most steps that don't continue, one of them says
        // so.
        self.table == table
            && self.backward == (way == Direction::Backward)
            && self.at < self.batch.len()
            && match from {
                StepFrom::Key(key) => same(self.batch.key(self.at), key),
                StepFrom::Shown(number) => self.shown == number,
            }
    }

    /// Whether the key of the last answer was shown as this number, which is not 0.
    #[inline(always)]
    pub(crate) fn has_shown(&self, number: u64) -> bool {
        self.shown == number
    }

    /// Notes what the key of the last answer was shown as.
    #[inline(always)]
    pub(crate) fn show(&mut self, number: u64) {
        self.shown = number;
    }

    /// The first entry of the key after the last answer; the number of entries if the table has no
    /// more. None if it was not read.
    #[inline(always)]
    fn next_place(&self) -> Option<usize> {
        let next = self.at + 1;
        // Behind the last entry, nothing is known, unless the batch reached the table's end.
        match self.batch.entries.get(next) {
            Some(_) if self.unique => Some(next),
            Some(_) => self.next_of_bag(next),
            None => self.batch.done.then_some(next),
        }
    }

    /// As `next_place`, where the key of the last answer may have several entries.
    fn next_of_bag(&self, mut next: usize) -> Option<usize> {
        let key = self.batch.key(self.at);
        while next < self.batch.len() && same(self.batch.key(next), key) {
            next += 1;
        }
        // If the batch ends among the objects of this key, the next key was not read.
        (next < self.batch.len() || self.batch.done).then_some(next)
    }

    /// Makes an entry the last answer and gives it, unless its value holds handles (invariant 1);
    /// at the end, says so.
    #[inline(always)]
    fn go_to(&mut self, next: usize) -> Option<NextEntry<'_>> {
        if next >= self.batch.len() {
            return Some(NextEntry::End);
        }
        let (key, value) = self.batch.entry(next);
        // What a handle refers to may have been freed since the batch was read. The step reads the
        // index instead.
        if raw::has_handles(value) {
            return None;
        }
        // The number was that of the former answer's key.
        (self.at, self.shown) = (next, 0);
        Some(NextEntry::Entry(key, value))
    }

    /// (1) What comes after the last answer, if it was read and `holds` says that its stamp does.
    #[inline(always)]
    pub(crate) fn next(&mut self, holds: impl FnOnce(Stamp) -> bool) -> Option<NextEntry<'_>> {
        // The order matters: the entry was read after the stamp was taken, and the stamp holds now,
        // so the entry is what the table has now.
        let stamp = self.stamp?;
        let next = self.next_place()?;
        if !holds(stamp) {
            return None;
        }
        self.go_to(next)
    }

    /// (2) As `next`, after the table was changed: if `same` says of the key of the last answer
    /// that its leaf has the version that was read.
    #[inline]
    pub(crate) fn next_unchanged(
        &mut self,
        same: impl FnOnce(&[u8], Seen) -> bool,
    ) -> Option<NextEntry<'_>> {
        // An index without versions gave none with the batch: then only a stamp can vouch for it.
        let seen = self.batch.seen?;
        let next = self.next_place()?;
        if !same(self.batch.key(self.at), seen) {
            return None;
        }
        // The table changes elsewhere: the next batches go without a stamp.
        if self.stamp.take().is_some() {
            self.without_stamp = PAUSE;
        }
        self.go_to(next)
    }

    /// The table's first entry, if the last two steps began at the edge, and `same` says of its key
    /// that the leaf has the version that both have read.
    #[inline]
    pub(crate) fn first_unchanged(
        &mut self,
        table: u64,
        same: impl FnOnce(&[u8], Seen) -> bool,
    ) -> Option<NextEntry<'_>> {
        if self.first != FromEdge::Again || self.table != table || self.batch.is_empty() {
            return None;
        }
        // A step from the edge has a version only if no other leaf can have the first entry.
        let seen = self.batch.seen?;
        same(self.batch.key(0), seen).then(|| self.go_to(0))?
    }

    /// (3) How many entries a step that continues, and could not be answered from here, should read
    /// ahead, and whether with a stamp.
    #[inline]
    pub(crate) fn wanted(&mut self) -> (usize, bool) {
        let versioned = self.batch.seen.is_some();
        if (self.stamp.is_some() || versioned) && self.next_place().is_some() {
            // There was an answer, and it was not current: the leaf changes, too.
            self.pause = PAUSE;
            self.more = 0;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return (0, false);
        }
        let with_stamp = self.without_stamp == 0 || !versioned;
        self.without_stamp = self.without_stamp.saturating_sub(1);
        // Four times as many as the last time, from eight on.
        self.more = (4 * self.more).clamp(FIRST, MOST);
        (self.more, with_stamp)
    }

    /// Notes that a step began elsewhere than at the last answer.
    #[inline(always)]
    pub(crate) fn begins_anew(&mut self) {
        self.more = 0;
    }

    /// Keeps what a step has read into `spare`, of which the first entry was the answer, unless it
    /// is much. `is_first`: the step began at the edge.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        table: u64,
        stamp: Option<Stamp>,
        (way, is_first): (Direction, bool),
        unique: bool,
    ) {
        let was_first = self.first != FromEdge::No && self.table == table;
        self.first = match (is_first, was_first && self.batch.seen == self.spare.seen) {
            (false, _) => FromEdge::No,
            (true, false) => FromEdge::Once,
            (true, true) => FromEdge::Again,
        };
        // The old batch is the next step's buffer: a walk needs two, and no more memory from then
        // on.
        std::mem::swap(&mut self.batch, &mut self.spare);
        // A thread doesn't hold a megabyte for a walk that may be over.
        if self.batch.bytes.capacity() > KEEP {
            *self = ReadAhead::default();
            return;
        }
        self.table = table;
        self.stamp = stamp;
        self.backward = way == Direction::Backward;
        self.unique = unique;
        self.at = 0;
    }

    /// Puts a batch back that was taken from `spare`, unless it is large.
    pub(crate) fn put_back(&mut self, batch: Box<Batch>) {
        if batch.bytes.capacity() <= KEEP {
            self.spare = batch;
        }
    }
}
