//! Read-ahead cursors: entries that a thread has read beyond the result of its last step from key
//! to key. A thread has two, for two walks side by side, in one table or in two.
//!
//! # Definitions
//!
//! - *Last answer*: the key that the cursor's last step returned: an entry of the cursor's batch,
//!   or one that was read alone.
//! - A step *continues* if it starts at the last answer of a cursor, in the same table and the same
//!   direction. A step that continues neither cursor takes the one that was least recently used.
//! - The *stamp* of a batch is the table's change stamp, taken before the batch was read (see
//!   `change_stamp`). Its *version* is that of the leaf that it was read from.
//!
//! # Steps
//!
//! ```text
//!   next(k1) -> k2     reads k2 alone
//!   next(k2) -> k3     continues: arms the change stamp, reads k3 … k10
//!   next(k3) -> k4     from the batch: the stamp holds, no leaf is looked at
//! ```
//!
//! 1. A step that continues is answered from the batch, if the batch's stamp is still valid.
//! 2. If the table was changed, ask the index whether the leaf still has the version that was read
//!    (`Unique::is_unchanged`), or one at which this thread has left it, having removed keys that
//!    the walk has passed (`seen_after_removals`). Such a step finds its leaf, but doesn't search
//!    it.
//! 3. Otherwise read the index: one entry, and if the step continues, some entries after it, four
//!    times as many as the last time.
//!
//! A thread may change the objects of a walk's last two answers, one of which it stands on. The
//! batch has neither after its last answer, so its stamp stays valid beside such a change
//! (`passed`, `ChangeStamp::note_beside`). A removed or inserted key ends it.
//!
//! In a table that other threads change all the time, each step would arm the stamp in vain. So
//! after a change of the table some batches are read without a stamp, and only (2) applies to them.
//! After a change of the leaf, some steps don't read ahead. A step without read-ahead costs little
//! (`Unique::try_step`).
//!
//! Walks of two or three steps use little of what is read ahead. After such walks, the next walks
//! of the cursor begin with 1, 3, 7, then 15 steps that don't read ahead, until a walk is longer.
//!
//! Consider steps from the table's edge (`first`). If the second of them finds the same leaf,
//! unchanged, the third asks whether it is still unchanged. So `first` of a table that is polled
//! only finds its leaf. The third also arms the stamp, and the next ones look at no leaf while it
//! is valid. An index without versions only has the stamp.
//!
//! A table is consumed if the thread removes each key that `first` has returned. Then such a step
//! continues the last one, and reads ahead: the table's first entry is the next one of the batch
//! (`seen_after_removal_of`), if the leaf is as the thread has left it.
//!
//! A host may represent some keys by a number that always means the same key, such as the word of
//! an immediate term. A key that was *shown* is one that the host has returned as such a number.
//! The host may ask for the next step by the number. The key is then neither encoded nor compared.
//!
//! # Invariants
//!
//! * **RA1** An entry whose value holds handles is never answered from the batch. The batch is a
//!   copy, and owns no counts of the handles.
//! * **RA2** In a bag, keys are answered from the batch, but never objects: the batch may have only
//!   some of the objects of a key.
//! * **RA3** If a step wants the key alone, the batch has only the heads of large values
//!   (`Batch::heads`). Such a batch never answers with objects. An entry whose value begins with
//!   the exact key is answered from it only if the value was not cut. A table in which a cut one
//!   was found is read with whole values from then on.

use crate::change_stamp::Stamp;
use crate::raw;
use larder_index::{Batch, Direction, Key, Seen, StepEntry, HEAD};
use larder_term::object::has_exact_key;
use std::cell::Cell;

/// The number of entries of the first read-ahead, and the maximum.
const FIRST_READ_AHEAD: usize = 8;
const MAX_READ_AHEAD: usize = 512;
/// The number of steps without read-ahead after a change of the leaf, and the number of batches
/// without a stamp after a change of the table.
const PAUSE: u32 = 64;
/// The largest number of steps at the beginning of a walk that don't read ahead.
const MAX_CAUTION: u32 = 15;
/// In place of the number of an entry of a batch: the entry was read alone.
const ALONE: usize = usize::MAX;
/// In place of the number of an entry of a batch: there is none.
const NOTHING: usize = usize::MAX - 1;
/// A batch with a larger buffer than this is not kept.
const MAX_KEPT_CAPACITY: usize = 1 << 20;

/// The starting point of a step that may continue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepFrom<'k> {
    /// An index key.
    Key(&'k [u8]),
    /// The key that was shown as this number, which is not 0.
    Shown(u64),
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextEntry<'a> {
    /// The next key, and the first value under it.
    Entry(&'a [u8], &'a [u8]),
    /// There is no next key.
    End,
}

impl NextEntry<'_> {
    /// Whether this is an entry whose value, if it may have been cut, may lack the key.
    #[inline]
    pub(crate) fn lacks_key(&self) -> bool {
        matches!(self, NextEntry::Entry(_, value) if is_truncated_key(value))
    }
}

/// A read-ahead cursor of a thread (see the module).
#[derive(Default)]
pub(crate) struct ReadAhead {
    /// The number of the table's change stamp; 0 for none.
    table: u64,
    /// The batch's stamp; `None` if it was read without one.
    stamp: Option<Stamp>,
    backward: bool,
    /// Whether each key has at most one entry.
    unique: bool,
    /// Where the last answer was read, if the index can tell whether it has changed since.
    seen: Option<Seen>,
    /// The last answer, if a step has read it without others, and `at` is `ALONE`.
    pub(crate) alone: StepEntry,
    /// The entries that were read. The one at `at` is the last answer.
    batch: Box<Batch<'static>>,
    /// The buffer of the next step. It becomes `batch` if the step returns an entry.
    pub(crate) spare: Box<Batch<'static>>,
    /// The buffer for a position.
    pub(crate) position: Vec<u8>,
    /// The number of the entry of the last answer, the first of its key.
    at: usize,
    /// If the batch was read by a step that continues: the number of the answer before it, which is
    /// an entry of `spare`, or `ALONE`. Otherwise `NOTHING`.
    before: usize,
    /// The number that its key was shown as; 0 if it was not shown.
    shown: u64,
    /// The number of entries of the last read-ahead of this walk; 0 if there was none.
    more: usize,
    /// The number of steps of this walk that could have read ahead, and were too early for it.
    early: u32,
    /// The number of such steps at the beginning of a walk. It grows with walks of few steps.
    caution: u32,
    /// The number of remaining steps without read-ahead.
    pause: u32,
    /// The number of remaining batches without a stamp.
    without_stamp: u32,
    /// The state of steps from the edge.
    first: FromEdge,
    /// If the batch was read at the edge: the number of the entry that is the table's first while
    /// the leaf has the version `ReadAhead::seen`. Those before it have been removed.
    edge: usize,
    /// The hash of the key of that entry, once a step has needed it.
    edge_hash: Cell<Option<u64>>,
    /// The number of the change stamp of a table whose keys need whole values; 0 for none.
    exact: u64,
}

/// The two cursors of a thread.
pub(crate) type Cursors<'l> = [&'l mut Box<ReadAhead>; 2];

/// Where the batch was read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum FromEdge {
    /// After a key.
    #[default]
    No,
    /// At the table's edge.
    Once,
    /// At the edge, and so was the batch before it, in the same leaf at the same version.
    Again,
}

/// See [`ReadAhead::last_edge`].
#[derive(Clone, Copy)]
pub(crate) struct LastEdge {
    table: u64,
    first: FromEdge,
}

/// Whether an entry with this value, of which only the head was read if `heads` is set, is an
/// answer later on. Not if the value holds handles (RA1), or was cut so that the key is missing
/// (RA3).
#[inline]
fn may_answer(value: &[u8], heads: bool) -> bool {
    // What a handle refers to may have been freed since the entry was read. The step reads the
    // index instead. A key that isn't in the value has no handle.
    let needs_value = !heads || has_exact_key(value);
    let has_handles = needs_value && raw::has_handles(value);
    !(has_handles || heads && is_truncated_key(value))
}

/// Compares two keys, which are mostly equal and short.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    // A key of `N` to `2 * N` bytes is equal to another of its length if both its beginning and
    // its end are. They may overlap.
    fn ends<const N: usize>(key: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
        (key.first_chunk(), key.last_chunk())
    }
    a.len() == b.len()
        // Keys of 4 to 16 bytes are compared as two words each, without a call of `memcmp`.
        && match a.len() {
            0..=3 => a.iter().zip(b).all(|(a, b)| a == b),
            4..=8 => ends::<4>(a) == ends::<4>(b),
            9..=16 => ends::<8>(a) == ends::<8>(b),
            _ => a == b,
        }
}

/// Whether a value, if it may have been cut, may lack the exact key with which it begins.
#[inline]
fn is_truncated_key(value: &[u8]) -> bool {
    value.len() <= HEAD && has_exact_key(value)
}

impl ReadAhead {
    /// Whether a step from there continues.
    #[inline(always)]
    pub(crate) fn continues(&self, table: u64, from: StepFrom<'_>, direction: Direction) -> bool {
        // Make the cheap comparisons first. For most steps that don't continue, one of them fails.
        self.table == table
            && self.backward == (direction == Direction::Backward)
            && match from {
                StepFrom::Key(key) => self.key_at(self.at).is_some_and(|last| same(last, key)),
                StepFrom::Shown(number) => self.shown == number,
            }
    }

    /// The key of an entry, if there is one.
    #[inline]
    fn key_at(&self, at: usize) -> Option<&[u8]> {
        match at {
            ALONE => Some(self.alone.key()),
            _ => (at < self.batch.len()).then(|| self.batch.key(at)),
        }
    }

    /// The batch's stamp, if the batch is of this table and this key is one of the last two answers
    /// of the walk: a change of its object concerns nothing that was read ahead.
    #[inline]
    pub(crate) fn passed(&self, table: u64, key: &[u8]) -> Option<Stamp> {
        // An answer that was read alone is given again, with its object.
        let stamp = self
            .stamp
            .filter(|_| self.table == table && self.at != ALONE)?;
        let is = |batch: &Batch<'_>, at| at < batch.len() && same(batch.key(at), key);
        let is_answer = is(&self.batch, self.at)
            || match (self.at.checked_sub(1), self.before) {
                (Some(before), _) => is(&self.batch, before),
                (None, ALONE) => same(self.alone.key(), key),
                (None, before) => is(&self.spare, before),
            };
        is_answer.then_some(stamp)
    }

    /// Replaces the batch's stamp.
    pub(crate) fn set_stamp(&mut self, stamp: Option<Stamp>) {
        self.stamp = stamp;
    }

    /// Prepares the buffer of a step that reads the index. `heads` and `may_pause` are those of
    /// `Batch`.
    #[inline]
    pub(crate) fn begin_read(&mut self, heads: bool, may_pause: bool) {
        (self.spare.heads, self.spare.may_pause) = (heads, may_pause);
        // The buffer may have had the answer before the batch.
        self.before = NOTHING;
    }

    /// Prepares the buffer of a step that reads one entry. Until `keep_alone`, there is no last
    /// answer: the buffer may have had it.
    #[inline]
    pub(crate) fn begin_alone(&mut self, heads: bool) {
        (self.table, self.at) = (0, NOTHING);
        self.alone.heads = heads;
    }

    /// Whether the key of the last answer was shown as this number, which is not 0.
    #[inline]
    pub(crate) fn has_shown(&self, number: u64) -> bool {
        self.shown == number
    }

    /// Records the number that the key of the last answer was shown as.
    #[inline]
    pub(crate) fn show(&mut self, number: u64) {
        self.shown = number;
    }

    /// The place of the first entry of the key after the last answer. The number of entries if the
    /// table has no further key. `None` if that part wasn't read.
    #[inline]
    fn next_place(&self) -> Option<usize> {
        if self.at >= NOTHING {
            return None;
        }
        let next = self.at + 1;
        // What comes after the last entry is unknown, unless the batch reached the table's end.
        match next < self.batch.len() {
            true if self.unique => Some(next),
            true => self.next_of_bag(next),
            false => self.batch.done.then_some(next),
        }
    }

    /// Like `next_place`, for tables whose keys may have several entries.
    fn next_of_bag(&self, mut next: usize) -> Option<usize> {
        let key = self.batch.key(self.at);
        while next < self.batch.len() && same(self.batch.key(next), key) {
            next += 1;
        }
        // If the batch ends among the objects of this key, the next key was not read.
        (next < self.batch.len() || self.batch.done).then_some(next)
    }

    /// Whether whole objects were read.
    #[inline]
    pub(crate) fn has_objects(&self) -> bool {
        match self.at {
            ALONE => !self.alone.heads,
            _ => !self.batch.heads,
        }
    }

    /// Whether the keys of a table need whole values.
    #[inline]
    pub(crate) fn needs_values(&self, table: u64) -> bool {
        self.exact == table
    }

    /// Remembers that the keys of a table need whole values.
    #[cold]
    pub(crate) fn note_exact(&mut self, table: u64) {
        self.exact = table;
    }

    /// Makes an entry the last answer, and returns it. `None` if it can't be one (`may_answer`).
    #[inline(always)]
    fn go_to(&mut self, next: usize) -> Option<NextEntry<'_>> {
        if next >= self.batch.len() {
            return Some(NextEntry::End);
        }
        let (key, value) = self.batch.entry(next);
        if !may_answer(value, self.batch.heads) {
            return None;
        }
        // `shown` belongs to the key of the previous answer.
        (self.at, self.shown) = (next, 0);
        Some(NextEntry::Entry(key, value))
    }

    /// The last answer again, if it was read alone.
    #[inline(always)]
    fn again(&self) -> Option<NextEntry<'_>> {
        let (key, value) = (self.alone.key(), self.alone.value());
        may_answer(value, self.alone.heads).then_some(NextEntry::Entry(key, value))
    }

    /// (1) The entry after the last answer, if it was read, and if `holds` confirms the batch's
    /// stamp.
    #[inline(always)]
    pub(crate) fn next(&mut self, holds: impl FnOnce(Stamp) -> bool) -> Option<NextEntry<'_>> {
        // The entry was read after the stamp was taken, and the stamp is valid after that. So the
        // entry is what the table has now.
        let stamp = self.stamp?;
        let next = self.next_place()?;
        if !holds(stamp) {
            return None;
        }
        self.go_to(next)
    }

    /// (2) Like `next`, after the table was changed. `same` says whether the leaf of a key, that of
    /// the last answer, still has the version that was read, or another one at which it has the
    /// same entries from that key on. It returns the version.
    #[inline]
    pub(crate) fn next_unchanged(
        &mut self,
        same: impl FnOnce(&[u8], Seen) -> Option<Seen>,
    ) -> Option<NextEntry<'_>> {
        // An index without versions sets no `seen`. In that case only a stamp can confirm the
        // batch.
        let seen = self.seen?;
        let next = self.next_place()?;
        let now = same(self.batch.key(self.at), seen)?;
        if now != seen {
            // The table's first entry may be among those that were removed.
            (self.seen, self.first) = (Some(now), FromEdge::No);
        }
        // The changes are elsewhere in the table. Read the next batches without a stamp.
        if self.stamp.take().is_some() {
            self.without_stamp = PAUSE;
        }
        self.go_to(next)
    }

    /// The key of the table's first entry, as it was when the batch was read, and where that was.
    /// `None` if the batch wasn't read at the edge of this table, or the index can't tell. `hash`
    /// computes the hash of a key. A table that is polled has the hash computed once.
    #[inline]
    pub(crate) fn edge(
        &self,
        table: u64,
        hash: impl FnOnce(&[u8]) -> u64,
    ) -> Option<(Key<'_>, Seen)> {
        let seen = self.seen?;
        if self.first == FromEdge::No || self.table != table {
            return None;
        }
        let bytes = self.key_at(self.edge)?;
        let hash = self.edge_hash.get().unwrap_or_else(|| hash(bytes));
        self.edge_hash.set(Some(hash));
        Some((Key { bytes, hash }, seen))
    }

    /// The key after that of `edge`, if the last answer was that one, and the batch has another.
    #[inline]
    pub(crate) fn after_edge(&self) -> Option<&[u8]> {
        let next = self.next_place().filter(|_| self.at == self.edge)?;
        (next < self.batch.len()).then(|| self.batch.key(next))
    }

    /// Whether the last two steps from the edge have found the leaf at one version.
    #[inline]
    pub(crate) fn is_polled(&self) -> bool {
        self.first == FromEdge::Again
    }

    /// (1) The entry at the edge of a table that is polled, if `holds` confirms its stamp.
    #[inline]
    pub(crate) fn polled(
        &mut self,
        table: u64,
        direction: Direction,
        holds: impl FnOnce(Stamp) -> bool,
    ) -> Option<NextEntry<'_>> {
        // An answer that was read alone only has a stamp if it was read at the edge.
        let stamp = self.stamp?;
        if self.at != ALONE || self.table != table || !self.is_directed(direction) {
            return None;
        }
        if !holds(stamp) {
            self.stamp = None;
            self.without_stamp = PAUSE;
            return None;
        }
        self.again()
    }

    /// Whether a step from the edge should arm the stamp.
    #[inline]
    pub(crate) fn wants_stamp_at_edge(&mut self, table: u64, direction: Direction) -> bool {
        let is_polled = self.is_polled() && self.table == table && self.is_directed(direction);
        if is_polled && self.without_stamp > 0 {
            self.without_stamp -= 1;
            return false;
        }
        is_polled
    }

    /// Whether the cursor goes in this direction.
    #[inline]
    fn is_directed(&self, direction: Direction) -> bool {
        self.backward == (direction == Direction::Backward)
    }

    /// The table's first entry, which is that of `edge`. The stamp is one that was armed before the
    /// leaf was found unchanged.
    #[inline]
    pub(crate) fn first(&mut self, stamp: Option<Stamp>) -> Option<NextEntry<'_>> {
        if self.edge != ALONE {
            return self.go_to(self.edge);
        }
        self.stamp = stamp;
        self.again()
    }

    /// The table's first entry, which is the one after that of `edge`. `now` is where the leaf is
    /// read now.
    #[inline]
    pub(crate) fn first_after_removal(&mut self, now: Seen) -> Option<NextEntry<'_>> {
        self.edge = self.next_place()?;
        self.edge_hash.set(None);
        self.seen = Some(now);
        self.go_to(self.edge)
    }

    /// (3) How many entries a step should read ahead that continues and couldn't be answered from
    /// the batch, and whether with a stamp. `is_own` says that no other thread has changed the
    /// leaf.
    #[inline]
    pub(crate) fn wanted(&mut self, is_own: bool) -> (usize, bool) {
        let versioned = self.seen.is_some();
        if !is_own && (self.stamp.is_some() || versioned) && self.next_place().is_some() {
            // The batch had the answer, but wasn't current. So this leaf is changed, too.
            self.pause = PAUSE;
            self.more = 0;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return (0, false);
        }
        if self.early < self.caution {
            self.early += 1;
            return (0, false);
        }
        let with_stamp = self.without_stamp == 0 || !versioned;
        self.without_stamp = self.without_stamp.saturating_sub(1);
        // Read four times as many as the last time, starting with eight.
        self.more = (4 * self.more).clamp(FIRST_READ_AHEAD, MAX_READ_AHEAD);
        (self.more, with_stamp)
    }

    /// Called when a step doesn't start at the last answer: one walk is over, and another begins.
    #[inline]
    pub(crate) fn begin_walk(&mut self) {
        if self.more > 0 || self.early > 0 {
            self.adapt_caution();
        }
    }

    /// Called after a walk that has read ahead, or could have.
    #[inline(never)]
    fn adapt_caution(&mut self) {
        // Reading the first entries ahead pays if it saves two steps.
        let steps = match self.at {
            ALONE | NOTHING => 0,
            at => at,
        };
        let pays = self.more > FIRST_READ_AHEAD || self.early as usize + steps >= 2;
        self.caution = match pays {
            true => 0,
            false => (2 * self.caution + 1).min(MAX_CAUTION),
        };
        (self.more, self.early) = (0, 0);
    }

    /// Whether the batch was read at the edge of this table.
    #[inline]
    pub(crate) fn is_at_edge(&self, table: u64) -> bool {
        self.table == table && self.first != FromEdge::No
    }

    /// Keeps the entries that a step has read into `spare`, unless the buffer is large. The first
    /// entry is the answer. `is_first` says that the step started at the edge.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        table: u64,
        stamp: Option<Stamp>,
        direction: Direction,
        is_first: bool,
        unique: bool,
    ) {
        let was_first = self.first != FromEdge::No && self.table == table;
        self.first = match (is_first, was_first && self.seen == self.spare.seen) {
            (false, _) => FromEdge::No,
            (true, false) => FromEdge::Once,
            (true, true) => FromEdge::Again,
        };
        self.seen = self.spare.seen;
        // The old batch becomes the next step's buffer. So a traversal needs two buffers, and
        // allocates nothing after that.
        std::mem::swap(&mut self.batch, &mut self.spare);
        // Don't keep a megabyte for a traversal that may be over.
        if self.batch.capacity() > MAX_KEPT_CAPACITY {
            return self.drop_buffers();
        }
        self.table = table;
        self.stamp = stamp;
        self.backward = direction == Direction::Backward;
        self.unique = unique;
        // A batch with a stamp was read by a step that continues, or at the edge.
        self.before = if is_first { NOTHING } else { self.at };
        (self.at, self.edge) = (0, 0);
        self.edge_hash.set(None);
    }

    /// Keeps the entry that a step from a key has read alone.
    #[inline]
    pub(crate) fn keep_alone(&mut self, table: u64, direction: Direction) {
        (self.table, self.stamp, self.seen) = (table, None, self.alone.seen);
        self.backward = direction == Direction::Backward;
        (self.at, self.first) = (ALONE, FromEdge::No);
        if self.alone.capacity() > MAX_KEPT_CAPACITY {
            self.drop_buffers();
        }
    }

    /// Like `keep_alone`, for a step from the edge. `last` says what the steps before it were.
    #[inline]
    pub(crate) fn keep_edge(
        &mut self,
        table: u64,
        direction: Direction,
        stamp: Option<Stamp>,
        last: LastEdge,
    ) {
        // Whether the step before was from the same edge, and has found the leaf as this one has.
        let is_same = last.table == table && self.is_directed(direction);
        let is_again = is_same && last.first != FromEdge::No && self.seen == self.alone.seen;
        self.keep_alone(table, direction);
        // `keep_alone` may have dropped a large answer. Then there is nothing to keep.
        if self.table != 0 {
            self.stamp = stamp;
            self.first = match is_again {
                true => FromEdge::Again,
                false => FromEdge::Once,
            };
            self.edge = ALONE;
            self.edge_hash.set(None);
        }
    }

    /// Which steps from the edge the cursor has seen.
    #[inline]
    pub(crate) fn last_edge(&self) -> LastEdge {
        let (table, first) = (self.table, self.first);
        LastEdge { table, first }
    }

    #[cold]
    #[inline(never)]
    fn drop_buffers(&mut self) {
        *self = ReadAhead::default();
    }
}
