//! JudyL: words under words.

use std::fmt;

use crate::layout::Map;
use crate::ops::seek::Found;
use crate::tree::Tree;
use crate::upkeep::{made_of, reads, upkeep};
use crate::Stats;

/// A sorted map of `u64` to `u64`.
///
/// An index costs from 8 bytes with its value, where indexes are dense, to about 24, where they are
/// random.
///
/// # Examples
///
/// ```
/// use larder_judy::JudyL;
///
/// let mut squares: JudyL = (0..100).map(|n| (n * n, n)).collect();
/// assert_eq!(squares.get(49), Some(7));
/// assert_eq!(squares.at_or_after(50), Some((64, 8)));
/// assert_eq!(squares.before(49), Some((36, 6)));
/// assert_eq!(squares.count(..=100), 11);
/// assert_eq!(squares.nth(10), Some((100, 10)));
/// assert_eq!(squares.empty_at_or_after(0), Some(2));
/// assert_eq!(squares.remove(49), Some(7));
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
pub struct JudyL {
    tree: Tree<Map>,
}

fn pair((key, value): Found<'_>) -> (u64, u64) {
    (key, value.copied().unwrap_or(0))
}

impl JudyL {
    /// An empty array. It has no memory of its own yet.
    pub const fn new() -> Self {
        JudyL { tree: Tree::new() }
    }

    /// The value of an index.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        self.tree.get(key).flatten().copied()
    }

    /// The value of an index, to be written.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut u64> {
        self.tree.get_mut(key)
    }

    /// The value of an index, which is inserted with value zero if it was not there.
    #[inline]
    pub fn get_or_insert(&mut self, key: u64) -> &mut u64 {
        match self.tree.insert(key).0 {
            Some(value) => value,
            None => unreachable!("a map has values"),
        }
    }

    /// Sets the value of an index, and returns the one that it had.
    #[inline]
    pub fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let (slot, new) = self.tree.insert(key);
        let old = slot.map(|slot| std::mem::replace(slot, value));
        old.filter(|_| !new)
    }

    /// Removes an index, and returns its value.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        self.tree.remove(key)
    }

    reads!((u64, u64), pair);

    upkeep!(
        tree,
        Stats,
        "Gives back at most `limit` nodes of what `clear_later` left, and returns whether there \
         are more. O(`limit`)."
    );
}

made_of!(JudyL, (u64, u64), |array, (key, value)| {
    array.insert(key, value);
});

impl fmt::Debug for JudyL {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
