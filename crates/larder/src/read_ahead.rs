//! The read-ahead cursor: what a thread read beyond its last step from key to key.
//!
//! Who goes from key to key through a table mostly goes on from the key of the last answer. So the
//! second such step reads some more entries than it needs, the next time more of them, and the
//! steps that follow are answered from what was read, for as long as the table's watch says that
//! nothing has changed (see `scan::watch`): a step then looks at no leaf.
//!
//! ```text
//!   next(k1) -> k2     reads k2                          unwatched
//!   next(k2) -> k3     reads k3 … k10, watched
//!   next(k3) -> k4     from what was read
//! ```
//!
//! A table that others change all the time would have its watch armed, and disarmed, at each step.
//! There the index is asked whether the leaf that was read is as it was (`Unique::unchanged`): a
//! step then finds its leaf, and no more. After a change of the table the thread goes on so for a
//! while, without the watch; after a change of the leaf it reads nothing ahead for some steps. A
//! step that reads nothing ahead costs little (`Unique::step`), so a drain, which deletes each key
//! that it has passed, needs no read-ahead.
//!
//! A host that showed the key of an answer as a number of its own, which stands for that key for
//! ever, may ask for the next step by that number: then the key is neither written nor compared.
//!
//! What is kept are copies of bytes. Entries whose values hold handles are never answered from
//! here: nobody counts those copies' handles. Of a bag, keys are answered from here, and never
//! objects: what was read may have some of a key's objects without the others.

use crate::change_stamp::Stamp;
use crate::raw;
use larder_index::{Batch, Direction, Seen};

/// Entries that are read ahead at first, and at most.
const FIRST: usize = 8;
const MOST: usize = 512;
/// Steps without reading ahead after what had been read was changed; and readings without the watch
/// after the table was.
const PAUSE: u32 = 64;
/// More bytes than this are not kept.
const KEEP: usize = 1 << 20;

/// Where a step that goes on from the last answer begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepFrom<'k> {
    /// An index key.
    Key(&'k [u8]),
    /// The key that was shown as this number, which is not 0.
    Shown(u64),
}

/// What lies behind a key, as far as was read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextEntry<'a> {
    /// A key, and the first value under it.
    Entry(&'a [u8], &'a [u8]),
    /// Nothing: the key is the last.
    End,
}

/// See the module.
#[derive(Default)]
pub(crate) struct ReadAhead {
    /// The number of the table's watch; 0 for none.
    table: u64,
    /// None if what was read is not watched.
    stamp: Option<Stamp>,
    backward: bool,
    /// A key has one entry at most.
    unique: bool,
    /// What was read.
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
    /// Readings until the watch is asked again.
    without_stamp: u32,
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
    /// Whether a step goes on from the last answer.
    #[inline(always)]
    pub(crate) fn goes_on(&self, table: u64, from: StepFrom<'_>, way: Direction) -> bool {
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

    /// The first entry of the key behind that of the last answer; the number of entries if there is
    /// none at all. None if it was not read.
    #[inline(always)]
    fn next_place(&self) -> Option<usize> {
        let next = self.at + 1;
        match self.batch.entries.get(next) {
            Some(_) if self.unique => Some(next),
            Some(_) => self.next_of_bag(next),
            None => self.batch.done.then_some(next),
        }
    }

    /// As `behind`, where the key of the last answer may have several entries.
    fn next_of_bag(&self, mut next: usize) -> Option<usize> {
        let key = self.batch.key(self.at);
        while next < self.batch.len() && same(self.batch.key(next), key) {
            next += 1;
        }
        (next < self.batch.len() || self.batch.done).then_some(next)
    }

    /// Goes to an entry and gives it, unless its value holds handles; at the end, says so.
    #[inline(always)]
    fn go_to(&mut self, next: usize) -> Option<NextEntry<'_>> {
        if next >= self.batch.len() {
            return Some(NextEntry::End);
        }
        let (key, value) = self.batch.entry(next);
        if raw::has_handles(value) {
            return None;
        }
        (self.at, self.shown) = (next, 0);
        Some(NextEntry::Entry(key, value))
    }

    /// What lies behind the key of the last answer, if it was read and `holds` says that it still
    /// is what the table has.
    #[inline(always)]
    pub(crate) fn next(&mut self, holds: impl FnOnce(Stamp) -> bool) -> Option<NextEntry<'_>> {
        let stamp = self.stamp?;
        let next = self.next_place()?;
        if !holds(stamp) {
            return None;
        }
        self.go_to(next)
    }

    /// As `next`, after the table was changed: if `same` says of the key of the last answer that
    /// what was read around it was not.
    #[inline]
    pub(crate) fn next_unchanged(
        &mut self,
        same: impl FnOnce(&[u8], Seen) -> bool,
    ) -> Option<NextEntry<'_>> {
        let seen = self.batch.seen?;
        let next = self.next_place()?;
        if !same(self.batch.key(self.at), seen) {
            return None;
        }
        if self.stamp.take().is_some() {
            self.without_stamp = PAUSE;
        }
        self.go_to(next)
    }

    /// How many entries a step that goes on from the last answer, and could not be answered from
    /// here, should read ahead, and whether they are to be watched.
    #[inline]
    pub(crate) fn wanted(&mut self) -> (usize, bool) {
        let tells = self.batch.seen.is_some();
        if (self.stamp.is_some() || tells) && self.next_place().is_some() {
            // There was an answer, and it did not hold.
            self.pause = PAUSE;
            self.more = 0;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return (0, false);
        }
        let watch = self.without_stamp == 0 || !tells;
        self.without_stamp = self.without_stamp.saturating_sub(1);
        self.more = (4 * self.more).clamp(FIRST, MOST);
        (self.more, watch)
    }

    /// Notes that a step began elsewhere than at the last answer.
    #[inline(always)]
    pub(crate) fn begins_anew(&mut self) {
        self.more = 0;
    }

    /// Keeps what a step has read into `spare`, of which the first entry was the answer, unless it
    /// is much.
    #[inline]
    pub(crate) fn keep(&mut self, table: u64, stamp: Option<Stamp>, way: Direction, unique: bool) {
        std::mem::swap(&mut self.batch, &mut self.spare);
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
