//! What the core needs of the way to the leaves. There is one: a B+-tree (key order).

use crate::btree::entries::Entries;
use crate::btree::leaf::{memory, Leaf, Locked, NewLeaf};
use crate::btree::search_key::Sought;
use crate::counters::Counters;
use crossbeam_epoch::Guard;
use std::sync::atomic::AtomicBool;

/// Sizes of leaves. The default is right for all but tests, which make leaves tiny so that they
/// split and merge all the time.
#[derive(Clone, Copy, Debug)]
pub struct LeafConfig {
    /// Bytes of content at which a leaf splits.
    pub most: usize,
    /// Bytes of content of the first leaf.
    pub first: usize,
    /// Children of an inner node of the key order, at most.
    pub fanout: usize,
}

impl Default for LeafConfig {
    fn default() -> Self {
        LeafConfig {
            most: 4096 - 120,
            first: 64,
            fanout: 64,
        }
    }
}

impl LeafConfig {
    /// The smallest sizes that work: leaves of a few entries.
    pub fn tiny() -> Self {
        LeafConfig {
            most: 160,
            first: 32,
            fanout: 4,
        }
    }

    /// Bytes of content at which a leaf with a prefix of this length splits: its memory is to be of
    /// one size, whatever its prefix.
    pub(crate) fn most_beside(&self, prefix: usize) -> usize {
        let prefix = prefix.next_multiple_of(8);
        if prefix <= self.most / 8 {
            self.most - prefix
        } else {
            self.most
        }
    }

    /// As `capacity`, for a leaf with a prefix of this length, whose memory is to be of a size that
    /// the allocator gives without waste.
    pub(crate) fn room(&self, need: usize, prefix: usize) -> usize {
        let most = self.most_beside(prefix);
        if need >= most {
            return need.next_multiple_of(8);
        }
        let wish = need + need * 2 / 5 + 32;
        let around = memory(0, prefix);
        let class = size_class(memory(wish, prefix));
        // The samples take one byte in 64.
        let content = (class - around) * 64 / 65 / 8 * 8;
        content.min(most).max(need.next_multiple_of(8))
    }
}

/// The least of a leaf's sizes for so many bytes: they are a quarter of a power of two apart, as
/// mimalloc's are, and those in regions whole units.
pub(crate) fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 8).max(16);
    bytes.next_multiple_of(step)
}

/// What all parts of an index share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) config: LeafConfig,
    pub(crate) counters: Counters,
    /// Who changes the index holds more locks than a leaf's.
    pub(crate) holds_more: bool,
    /// Something large was retired meanwhile.
    pub(crate) large_waits: AtomicBool,
}

/// Which leaf is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'a> {
    First,
    Last,
    /// The one whose range has the position.
    At(&'a [u8]),
    /// The one whose range has the last position below this one.
    Before(&'a [u8]),
}

/// Which end of a leaf's range is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The position that its range begins at.
    Low,
    /// The position that its range ends before.
    High,
}

/// A leaf and one end of its range. No fence: no bound there.
pub(crate) struct Found<'g> {
    pub(crate) leaf: Leaf<'g>,
    pub(crate) fence: Option<Vec<u8>>,
}

/// The way to the leaves.
pub(crate) trait Route: Send + Sync {
    /// The leaf whose range has the position. It may be obsolete: then ask again.
    fn find<'g>(&self, position: Sought<'_>, guard: &'g Guard) -> Leaf<'g>;

    /// The first leaf, whose range has no lower end, or the last, whose range has no higher one. It
    /// may be obsolete: then ask again.
    fn find_edge<'g>(&self, end: End, guard: &'g Guard) -> Leaf<'g>;

    /// The last leaf, if inserts go on at its end as far as is known, and if the position may
    /// belong there. It may be obsolete.
    fn tail<'g>(&self, position: Sought<'_>, guard: &'g Guard) -> Option<Leaf<'g>>;

    /// What was looked for at the tail's end did not belong there. After a few in a row there is no
    /// tail.
    fn missed_tail(&self);

    /// What was looked for at the tail's end went there.
    fn met_tail(&self);

    /// A leaf, and one end of its range if it isn't obsolete. None: there is no position before the
    /// one asked for.
    fn find_fenced<'g>(&self, seek: Seek<'_>, end: End, guard: &'g Guard) -> Option<Found<'g>>;

    /// Puts `new`, of the same range, in the place of the leaf.
    fn replace(
        &self,
        shared: &Shared,
        leaf: Locked<'_>,
        position: Sought<'_>,
        new: NewLeaf,
        guard: &Guard,
    );

    /// Splits the leaf. `entries` are what its successors shall have: its own with all changes, two
    /// at least. `at` is where a splitter that has the choice cuts.
    fn split(
        &self,
        shared: &Shared,
        leaf: Locked<'_>,
        position: Sought<'_>,
        entries: &Entries,
        at: Option<usize>,
        guard: &Guard,
    );

    /// Merges the leaf with a neighbour, if both fit in half a leaf and no other is at work there.
    /// Whether it did.
    fn merge(&self, shared: &Shared, leaf: Locked<'_>, position: Sought<'_>, guard: &Guard)
        -> bool;

    /// Levels above the leaves, at most.
    fn depth(&self, guard: &Guard) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that are no whole words once had none for the last bytes of a leaf.
    #[test]
    fn leaves_of_any_size_have_room() {
        for most in [160, 161, 999, 1003, LeafConfig::default().most] {
            let config = LeafConfig {
                most,
                ..LeafConfig::default()
            };
            for prefix in [0, 5, 40, 700] {
                assert!((1..most + 50).all(|need| config.room(need, prefix) >= need));
            }
        }
    }
}
