//! What a thread read ahead of a traversal.
//!
//! Who goes from key to key through a set or ordered_set mostly goes on from the key of the last answer. So the second such step reads some more
//! entries than it needs, the next time more of them, and the steps that follow are answered from what was read, for as long as the table's watch says that
//! nothing has changed (see `scan::watch`): a step then looks at no leaf.
//!
//! ```text
//!   next(k1) -> k2     reads k2                          unwatched
//!   next(k2) -> k3     reads k3 … k10, watched
//!   next(k3) -> k4     from what was read
//! ```
//!
//! A traversal of a table that others change all the time would arm the watch, and have it disarmed, at each step. So after a change the thread reads nothing
//! ahead for some steps.
//!
//! What is kept are copies of bytes. Entries whose values hold handles are never answered from here: nobody counts those copies' handles.

use crate::raw;
use crate::scan::Watched;
use larder_index::{Batch, Direction};

/// Entries that are read ahead at first, and at most.
const FIRST: usize = 8;
const MOST: usize = 128;
/// Steps without reading ahead after the table was changed.
const PAUSE: u32 = 64;
/// More bytes than this are not kept.
const KEEP: usize = 1 << 20;

/// See the module.
pub(crate) struct Ahead {
    /// The number of the table's watch; 0 for none.
    table: u64,
    /// None if what was read is not watched.
    watched: Option<Watched>,
    way: Direction,
    batch: Batch,
    /// The entry of the last answer.
    at: usize,
    /// How many entries to read ahead the next time.
    more: usize,
    /// Steps until something is read ahead again.
    pause: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            table: 0,
            watched: None,
            way: Direction::Forward,
            batch: Batch::default(),
            at: 0,
            more: FIRST,
            pause: 0,
        }
    }
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

impl Ahead {
    /// Whether a step from `key` goes on from the last answer.
    #[inline(always)]
    fn goes_on(&self, table: u64, key: &[u8], way: Direction) -> bool {
        self.table == table
            && self.way == way
            && self.at < self.batch.len()
            && same(self.batch.key(self.at), key)
    }

    /// The entry behind `key`, if it was read and `holds` says that it still is what the table has.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        table: u64,
        key: &[u8],
        way: Direction,
        holds: impl FnOnce(Watched) -> bool,
    ) -> Option<(&[u8], &[u8])> {
        let watched = self.watched?;
        let next = self.at + 1;
        if next >= self.batch.len() || !self.goes_on(table, key, way) || !holds(watched) {
            return None;
        }
        let (key, value) = (self.batch.key(next), self.batch.value(next));
        if raw::has_handles(value) {
            return None;
        }
        self.at = next;
        Some((key, value))
    }

    /// How many entries a step from `key`, which was not answered from here, should read ahead: none, or several, which are to be watched.
    #[inline]
    pub(crate) fn wanted(&mut self, table: u64, key: &[u8], way: Direction) -> usize {
        if !self.goes_on(table, key, way) {
            self.more = FIRST;
            return 0;
        }
        if self.watched.is_some() && self.at + 1 < self.batch.len() {
            // There was an answer, and it did not hold.
            self.pause = PAUSE;
            self.more = FIRST;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return 0;
        }
        let more = self.more;
        self.more = (4 * more).min(MOST);
        more
    }

    /// Keeps what a step has read, of which entry `at` was the answer, unless it is much. The batch is exchanged for another.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        table: u64,
        watched: Option<Watched>,
        way: Direction,
        batch: &mut Batch,
        at: usize,
    ) {
        std::mem::swap(&mut self.batch, batch);
        if self.batch.bytes.capacity() > KEEP {
            *self = Ahead::default();
            return;
        }
        self.table = table;
        self.watched = watched;
        self.way = way;
        self.at = at;
    }
}
