//! Judy1: a set of words.

use std::fmt;

use crate::layout::Set;
use crate::ops::seek::Found;
use crate::tree::Tree;
use crate::upkeep::{made_of, reads, upkeep};
use crate::Stats;

/// A sorted set of `u64`.
///
/// An index costs from a sixteenth of a byte, where whole bytes' ranges are full, to about 20,
/// where indexes are random.
///
/// # Examples
///
/// ```
/// use larder_judy::Judy1;
///
/// let mut squares: Judy1 = (0..100).map(|n| n * n).collect();
/// assert!(squares.contains(49));
/// assert_eq!(squares.at_or_after(50), Some(64));
/// assert_eq!(squares.before(49), Some(36));
/// assert_eq!(squares.count(..=100), 11);
/// assert_eq!(squares.nth(10), Some(100));
/// assert_eq!(squares.empty_at_or_after(0), Some(2));
/// assert!(squares.remove(49) && !squares.contains(49));
/// squares.clear();
/// assert_eq!(squares.memory_used(), 0);
/// ```
///
/// # Complexity
///
/// With W = 8 bytes an index: a lookup, insert or removal visits at most W nodes, fewer where
/// indexes are few or share bytes. A method takes O(W) unless its documentation says otherwise.
///
/// # Consistency
///
/// One writer or many readers, which the borrow checker enforces. The array itself does nothing
/// about threads.
pub struct Judy1 {
    tree: Tree<Set>,
}

fn index((key, _): Found<'_>) -> u64 {
    key
}

impl Judy1 {
    /// An empty array. It has no memory of its own yet.
    pub const fn new() -> Self {
        Judy1 { tree: Tree::new() }
    }

    /// Inserts an index, and returns whether it is new.
    #[inline]
    pub fn insert(&mut self, key: u64) -> bool {
        self.tree.insert(key).1
    }

    /// Removes an index, and returns whether it was there.
    #[inline]
    pub fn remove(&mut self, key: u64) -> bool {
        self.tree.remove(key).is_some()
    }

    reads!(u64, index);

    upkeep!(
        tree,
        Stats,
        "Gives back at most `limit` nodes of what `clear_later` left, and returns whether there \
         are more. O(`limit`)."
    );
}

made_of!(Judy1, u64, |array, key| {
    array.insert(key);
});

impl fmt::Debug for Judy1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
