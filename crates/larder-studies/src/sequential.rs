//! The trait of sequential structures: sorted maps from positions to words, for one thread.
//!
//! A sequential structure knows nothing of threads, nor of objects. A synchronisation scheme shares
//! it ([`crate::Scheme`]). An adapter makes an index of a scheme ([`crate::UniqueAdapter`],
//! [`crate::MultiAdapter`]).

use crate::{Cut, Position};
use larder_index::Stats;

/// A change of an entry.
#[derive(Debug)]
pub enum Act<W> {
    /// The entry stays. Its word may have been changed in place.
    Keep,
    /// This word replaces the one under the position, or is inserted.
    Put(W),
    /// The entry is removed, if there is one.
    Remove,
}

/// A function that gets the word under a position, and decides how it is changed. It is called
/// before the structure is changed, so it may panic.
pub type Actor<'f, W> = dyn FnMut(Option<&mut W>) -> Act<W> + 'f;

/// A function that a walk calls with each entry. It returns whether to continue.
pub type Visitor<'f, W> = dyn FnMut(&[u8], &W) -> bool + 'f;

/// A sorted map from positions to words. Positions are prefix-free. Those of a hash-ordered
/// structure begin with six bytes of the hash.
pub trait Sequential<W>: Send + Sync {
    /// The word under the position.
    fn get(&self, position: &[u8]) -> Option<&W>;

    /// Calls `f` exactly once with the word under the position, and performs the change that it
    /// returns.
    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>);

    /// Calls `f` with the entries from the cut on, in order, until `f` returns `false`. Returns
    /// whether the end was reached.
    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool;

    /// Removes the entry that is the least work to remove.
    fn pop(&mut self) -> Option<W>;

    /// Removes entries as `pop` does, and calls `f` with the word of each, until none is left or
    /// `limit` is 0. Takes one off the limit for each of them, and for each other step that takes
    /// about as long. Returns whether none is left.
    fn pop_some(&mut self, limit: &mut usize, f: &mut dyn FnMut(W)) -> bool {
        while *limit > 0 {
            let Some(word) = self.pop() else { return true };
            *limit -= 1;
            f(word);
        }
        self.is_empty()
    }

    /// The number of entries. O(1).
    fn len(&self) -> usize;

    /// Whether there is no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory in bytes, without the fields of the structure itself, and without what words own.
    /// O(1).
    fn memory(&self) -> usize;

    /// Called when the table is fixed, and when it is no longer fixed.
    fn freeze(&mut self, _on: bool) {}

    /// Adds statistics of the structure to those of the scheme. O(1).
    fn stats(&self, _stats: &mut Stats) {}

    /// Puts a word under the position. Returns the one that was there.
    fn insert(&mut self, position: &[u8], word: W) -> Option<W> {
        let (mut new, mut old) = (Some(word), None);
        // `change` may be called once, so the word is moved out of its option.
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

    /// Removes the entry. Returns whether there was one.
    fn remove(&mut self, position: &[u8]) -> bool {
        let mut there = false;
        self.change(position, &mut |word| {
            there = word.is_some();
            Act::Remove
        });
        there
    }
}

/// A sequential structure that a contention-adapting tree can split and join.
///
/// Afterwards `len` may have to count the entries, in O(n). `memory` of each part may be wrong.
/// Only the sum over all parts, modulo 2⁶⁴, must be right.
pub trait Divisible<W>: Sequential<W> + Sized {
    /// An empty structure with the same options.
    fn like(&self) -> Self;

    /// Moves the upper part of the entries to a new structure. Returns a position and that
    /// structure: its entries are at or past the position, and those that stay are before it.
    /// `None` if there are fewer than two entries.
    fn divide(&mut self) -> Option<(Position, Self)>;

    /// Adds the entries of another structure, all of which are past those of this one.
    fn join(&mut self, right: Self);
}
