//! What a structure for one thread does: a sorted map from positions to words.
//!
//! A sequential structure knows nothing of threads and nothing of objects. A synchronisation scheme
//! shares it ([`crate::Scheme`]), an adapter makes an index of the two ([`crate::UniqueAdapter`],
//! [`crate::MultiAdapter`]).

use crate::{Cut, Position};
use larder_index::Stats;

/// What is done with an entry.
#[derive(Debug)]
pub enum Act<W> {
    /// Nothing, or nothing more than was done to the word in its place.
    Keep,
    /// This word is put under the position, in place of the one that was there.
    Put(W),
    /// The entry goes.
    Remove,
}

/// What sees the word under a position and decides. It is called before anything is changed, so
/// that it may panic.
pub type Actor<'f, W> = dyn FnMut(Option<&mut W>) -> Act<W> + 'f;

/// What a walk calls with each entry; it answers whether to go on.
pub type Visitor<'f, W> = dyn FnMut(&[u8], &W) -> bool + 'f;

/// A sorted map from positions, which are prefix-free, to words. Hash-ordered ones take positions
/// that begin with six bytes of hash.
pub trait Sequential<W>: Send + Sync {
    /// The word under the position.
    fn get(&self, position: &[u8]) -> Option<&W>;

    /// Calls `f` exactly once with the word under the position and does what it answers.
    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>);

    /// Calls `f` with the entries from the cut on, in order, until it answers false (the first of
    /// them is the first at or past a bound, or the last before it). Answers whether the end was
    /// reached.
    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool;

    /// Removes an entry, whichever is the least work.
    fn pop(&mut self) -> Option<W>;

    /// Entries. O(1).
    fn len(&self) -> usize;

    /// Whether there is no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory, without the structure's own fields and what words hold. O(1).
    fn memory(&self) -> usize;

    /// The table is fixed from now on, or is not any more.
    fn freeze(&mut self, _on: bool) {}

    /// Writes figures of its own to those of the scheme. O(1).
    fn stats(&self, _stats: &mut Stats) {}

    /// Puts a word under the position; gives the one that was there.
    fn insert(&mut self, position: &[u8], word: W) -> Option<W> {
        let (mut new, mut old) = (Some(word), None);
        self.change(position, &mut |there| {
            let Some(word) = new.take() else {
                return Act::Keep;
            };
            match there {
                None => Act::Put(word),
                Some(there) => {
                    old = Some(std::mem::replace(there, word));
                    Act::Keep
                }
            }
        });
        old
    }

    /// Removes the entry; answers whether there was one.
    fn remove(&mut self, position: &[u8]) -> bool {
        let mut there = false;
        self.change(position, &mut |word| {
            there = word.is_some();
            Act::Remove
        });
        there
    }
}

/// A sequential structure that a contention-adapting tree can take apart and put together.
///
/// Once that was done, `len` may have to count, O(n), and what each of the parts says of its memory
/// may be wrong: only their sum, modulo 2⁶⁴, has to be right.
pub trait Divisible<W>: Sequential<W> + Sized {
    /// An empty one with the same options.
    fn like(&self) -> Self;

    /// Moves the upper part of two or more entries to a structure of its own. Gives it and a
    /// position: all in it are at or past that, all that stay are before it. None where there are
    /// fewer than two entries.
    fn divide(&mut self) -> Option<(Position, Self)>;

    /// Takes the entries of another, all of which lie past those here.
    fn join(&mut self, right: Self);
}
