//! The trait of concurrent structures: sorted maps that are shared by threads.
//!
//! The operations are those of [`crate::Sequential`]. A scheme is a lock, or several, around
//! sequential structures, or a concurrent structure of its own.

use crate::sequential::{Act, Visitor};
use crate::{Cut, Position};
use larder_index::{Guard, Stats};

/// The word under a position, as a change gets it.
#[derive(Debug)]
pub enum Old<'w, W> {
    /// There is none.
    Absent,
    /// The word, which may be changed in place, since no other thread can read it.
    Mine(&'w mut W),
    /// The word, which can only be replaced, since other threads may be reading it.
    Shared(&'w W),
}

impl<W> Old<'_, W> {
    /// The word.
    pub fn word(&self) -> Option<&W> {
        match self {
            Old::Absent => None,
            Old::Mine(word) => Some(word),
            Old::Shared(word) => Some(word),
        }
    }
}

/// The most parts of a structure, such as buckets, that one call of [`Scheme::pop`] looks at: many
/// may be empty, and the caller works in slices.
pub(crate) const EMPTY_AT_ONCE: usize = 4096;

/// Moves the place at which `pop` continues, once it has emptied a part, to that part's bound.
/// Returns whether the part was the last one. A later call then begins at the first one, and finds
/// entries of later inserts.
pub(crate) fn pop_past(from: &mut Position, bound: Option<&Position>) -> bool {
    match bound {
        Some(next) => *from = next.clone(),
        None => from.clear(),
    }
    bound.is_none()
}

/// A function that is called with the word under a position.
pub type Reader<'f, W> = dyn FnMut(Option<&W>) + 'f;

/// A function that is called with the word under a position, exactly once, and decides what is
/// changed. If it panics, nothing is.
pub type Changer<'f, W> = dyn FnMut(Old<'_, W>) -> Act<W> + 'f;

/// A sorted map from positions to words, shared by threads. Reads and changes are linearizable.
pub trait Scheme<W>: Send + Sync {
    /// Calls `f` once with the word under the position.
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>);

    /// Whether there is a word under the position. First waits until the changes of the position
    /// that have begun before are finished. So a caller that has published a flag before the call
    /// knows that every change either is seen here, or begins after the flag was published, and
    /// sees it: the function that a change calls makes a full barrier before it loads the flag.
    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        let mut found = false;
        self.read(guard, position, &mut |word| found = word.is_some());
        found
    }

    /// Calls `f` exactly once with the word under the position, and performs the change that it
    /// returns, all in one atomic step. Returns whether the thread had to wait for another one.
    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool;

    /// Calls `f` with some entries from the cut on, in order, until `f` returns `false`. The
    /// entries are as of one instant; in skip lists and lock-free lists, each is as of an instant
    /// of its own during the call (I8). There is at least one entry, unless the walk is at the end.
    /// Returns whether the end was reached.
    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool;

    /// Removes about `limit` entries at most, and calls `f` with the word of each. Returns whether
    /// none is left. The caller guarantees that no other thread writes. The time of a call is
    /// bounded. All calls together, until none is left, take time linear in the table.
    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool;

    /// The memory in bytes, without the fields of the scheme itself, and without what words own.
    fn memory(&self, guard: &Guard) -> usize;

    /// The number of objects at which an index of this scheme is full. `None` if it has no limit.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// Statistics.
    fn stats(&self, guard: &Guard) -> Stats;

    /// Called when the table is fixed, and when it is no longer fixed. The caller has published the
    /// fixation before. After this call, no read returns an entry that a change is about to remove
    /// without having seen the fixation. So a scheme whose `read` doesn't wait for changes waits
    /// for them here.
    fn freeze(&self, _on: bool) {}
}

impl<W> Scheme<W> for Box<dyn Scheme<W>> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        (**self).read(guard, position, f);
    }

    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        (**self).has(guard, position)
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        (**self).change(guard, position, f)
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        (**self).walk(guard, cut, f)
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        (**self).pop(guard, limit, f)
    }

    fn memory(&self, guard: &Guard) -> usize {
        size_of_val(&**self) + (**self).memory(guard)
    }

    fn stats(&self, guard: &Guard) -> Stats {
        (**self).stats(guard)
    }

    fn limit(&self) -> Option<usize> {
        (**self).limit()
    }

    fn freeze(&self, on: bool) {
        (**self).freeze(on);
    }
}

/// The methods of `Container` for an adapter with the fields `scheme` and `counts`.
macro_rules! delegate_to_scheme {
    () => {
        fn len(&self) -> usize {
            self.counts.len()
        }

        fn memory(&self) -> usize {
            size_of::<Self>() + self.scheme.memory(&larder_index::pin()) + self.counts.bytes()
        }

        fn stats(&self) -> Stats {
            self.scheme.stats(&larder_index::pin())
        }

        fn limit(&self) -> Option<usize> {
            self.scheme.limit()
        }

        fn freeze(&self, on: bool) {
            self.scheme.freeze(on);
        }
    };
}

pub(crate) use delegate_to_scheme;
