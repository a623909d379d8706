//! What a structure for many threads does: what [`crate::Sequential`] does, from everywhere at
//! once.

use crate::sequential::{Act, Visitor};
use crate::Cut;
use larder_index::{Guard, Stats};

/// The word under a position, as a change finds it.
#[derive(Debug)]
pub enum Old<'w, W> {
    /// There is none.
    Absent,
    /// It may be changed in its place: nobody else sees it.
    Mine(&'w mut W),
    /// Others may be reading it: it can only be replaced.
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

/// What a reader calls with the word under a position.
pub type Reader<'f, W> = dyn FnMut(Option<&W>) + 'f;

/// What a change calls with the word under a position, exactly once. It may panic: then nothing is
/// changed.
pub type Changer<'f, W> = dyn FnMut(Old<'_, W>) -> Act<W> + 'f;

/// A sorted map from positions to words, shared by threads. Reads and changes are linearizable.
pub trait Scheme<W>: Send + Sync {
    /// Calls `f` once with the word under the position.
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>);

    /// Whether there is a word under the position, once no change of it that began before is still
    /// under way: one that is waited for here has looked at its world before, and is seen. Who has
    /// told the world that something else begins, relies on it.
    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        let mut found = false;
        self.read(guard, position, &mut |word| found = word.is_some());
        found
    }

    /// Calls `f` exactly once with the word under the position and does what it answers, in one
    /// step. Answers whether another thread contended.
    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool;

    /// Calls `f` with some entries from the cut on, in order, as of one instant, until it answers
    /// false. At least one, unless there is none; answers whether the end was reached.
    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool;

    /// Removes some entries, at most about `limit`, while nobody else writes; answers whether none
    /// is left. One call takes bounded time; all of them, until none is left, take time in
    /// proportion to the table.
    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool;

    /// Bytes of memory, without the scheme's own fields and what words hold.
    fn memory(&self, guard: &Guard) -> usize;

    /// Objects at which an index of this is full; none if it never is.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// Figures.
    fn stats(&self, guard: &Guard) -> Stats;

    /// The table is fixed from now on, or is not any more. Who fixes it has said so to all that
    /// change it: what is read afterwards is not what a change that didn't know of it is about to
    /// take away. A scheme whose `read` waits for nobody waits here.
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

/// What an index of a scheme, with its counts, says of both.
macro_rules! as_the_scheme_says {
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

pub(crate) use as_the_scheme_says;
