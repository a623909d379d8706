//! Maps the hash of a key to the entries of a batch in hash order that may have the key.
//!
//! ```text
//!  batch    home 2 │ home 3 │ home 4 …       the entries of each bucket, next to each other
//!  homes    start    start    start          and whether others of the bucket were displaced
//! ```
//!
//! Invariants:
//! * **H21** An entry is in its home, or in a later one, if each home from its own on, up to the
//!   one before that, has the overflow bit of the entry's tag. The homes are a ring, as buckets
//!   are.
//! * **H22** If the batch is in order, each entry is in its home, and no overflow bit is set.
//!
//! So a search from the hash's home on finds the entry, if the batch has it. A search for a hash
//! outside of the leaf that was read finds none.

use crate::hash::plain;
use crate::hash::shape::{eighth, truncated, Probe, Shape};
use std::ops::Range;

/// The homes of a batch. There are none if the index doesn't record them.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    shape: Shape,
    /// The number of the first home.
    first: usize,
    /// The beginnings of the homes. The last home ends with the batch.
    starts: Vec<HomeStart>,
    /// Whether the batch begins with the copied buckets, and the entries of each home are those of
    /// its bucket, in the same order. Then the slot entries say which tags they have.
    in_buckets: bool,
}

/// Where a home begins in a batch.
#[derive(Clone, Copy, Debug)]
struct HomeStart {
    /// The number of its first entry.
    entry: u32,
    /// Its overflow bits.
    overflow: u8,
}

/// The entries of a home.
struct HomeEntries {
    range: Range<usize>,
    /// The overflow bits of the home.
    overflow: u8,
}

impl Homes {
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.in_buckets = false;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Notes that the next entry, which has this number, is the first one of a home. The homes are
    /// noted one after the other.
    #[inline]
    pub(crate) fn begin(&mut self, shape: Shape, home: usize, entry: usize, overflow: u8) {
        if self.starts.is_empty() {
            (self.shape, self.first) = (shape, home);
        }
        debug_assert_eq!(self.first + self.starts.len(), home);
        let entry = entry as u32;
        self.starts.push(HomeStart { entry, overflow });
    }

    /// Notes that the batch begins with the copied buckets of all homes, and that its entries are
    /// those of the buckets, in the same order.
    pub(crate) fn are_in_buckets(&mut self) {
        self.in_buckets = true;
    }

    /// The entries of a home, given the number of entries of the batch.
    #[inline]
    fn entries(&self, home: usize, len: usize) -> Option<HomeEntries> {
        // The batch may begin or end within the leaf. `None`: it doesn't have this home.
        let nth = home.checked_sub(self.first)?;
        let &HomeStart { entry, overflow } = self.starts.get(nth)?;
        let next = self.starts.get(nth + 1);
        let end = next.map_or(len, |next| next.entry as usize);
        Some(HomeEntries {
            range: entry as usize..end,
            overflow,
        })
    }

    /// The first entry that may have this hash and that `is_match` accepts, in a batch of `len`
    /// entries that has these bytes.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: u64,
        len: usize,
        bytes: &[u8],
        mut is_match: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let Probe { home, tag } = self.shape.probe(truncated(hash));
        let mut at = home;
        loop {
            let HomeEntries {
                range: mut entries,
                overflow,
            } = self.entries(at, len)?;
            // Where the entries are those of the bucket, tags are compared before keys.
            let found = match self.in_buckets {
                true => {
                    let tags = plain::tags(bytes, at * self.shape.bucket());
                    // Entries that were appended since aren't in the bucket, and have other keys.
                    let mut tagged = tags.zip(entries);
                    let found = tagged.find(|&(entry_tag, i)| entry_tag == tag && is_match(i));
                    found.map(|(_, i)| i)
                }
                false => entries.find(|&i| is_match(i)),
            };
            if found.is_some() {
                return found;
            }
            at = self.shape.next(at);
            // No entry with this tag was displaced beyond this home (H21), or all homes have been
            // searched.
            if overflow & eighth(tag) == 0 || at == home {
                return None;
            }
        }
    }

    /// Takes the starts, as the entries are going to be replaced by others in the same order.
    pub(crate) fn take(&mut self) -> OldHomes {
        OldHomes {
            starts: std::mem::take(&mut self.starts),
            moved: 0,
            is_same: true,
        }
    }

    /// Notes the starts again. All `len` entries were replaced; there are `new` ones now.
    pub(crate) fn put(&mut self, mut old: OldHomes, len: usize, new: usize) {
        old.replace(len, new);
        self.starts = old.starts;
        self.in_buckets &= old.is_same;
    }
}

/// The starts of homes whose entries are being replaced.
pub(crate) struct OldHomes {
    starts: Vec<HomeStart>,
    /// How many of them have the number of a new entry already.
    moved: usize,
    /// Whether each entry was replaced by one.
    is_same: bool,
}

impl OldHomes {
    /// Entry `old` is replaced by entries from `new` on. Entries are replaced one after the other.
    #[inline]
    pub(crate) fn replace(&mut self, old: usize, new: usize) {
        self.is_same &= old == new;
        // The homes that begin at this entry, or at one before it: their first entry is `new` now.
        while let Some(start) = self.starts.get_mut(self.moved) {
            if start.entry as usize > old {
                break;
            }
            start.entry = new as u32;
            self.moved += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        buckets: 4,
        class: 0,
        depth: 0,
    };

    /// A hash with this home, and this tag.
    fn hash(home: u64, tag: u64) -> u64 {
        home << 62 | tag << 56
    }

    /// The entries of a home in a batch of `len` entries.
    fn home(homes: &Homes, home: usize, len: usize) -> Option<Range<usize>> {
        Some(homes.entries(home, len)?.range)
    }

    #[test]
    fn entries_are_found_where_they_were_displaced_to() {
        let mut homes = Homes::default();
        assert!(homes.is_empty());
        for (home, start, overflow) in [(0, 0, 0), (1, 2, eighth(9)), (2, 5, 0), (3, 5, eighth(63))]
        {
            homes.begin(SHAPE, home, start, overflow);
        }
        let search = |hash, entry| homes.find(hash, 7, &[], |i| i == entry);
        // At home.
        assert_eq!(search(hash(0, 1), 1), Some(1));
        assert_eq!(search(hash(1, 9), 4), Some(4));
        assert_eq!(search(hash(3, 9), 6), Some(6));
        // Displaced, over an empty home, and around the end.
        assert_eq!(search(hash(1, 8), 5), None);
        assert_eq!(search(hash(3, 63), 0), Some(0));
        // Another eighth of the tags has not overflowed.
        assert_eq!(search(hash(3, 7), 0), None);
        assert_eq!(home(&homes, 1, 7), Some(2..5));
        assert_eq!(home(&homes, 3, 7), Some(5..7));
        // Entries 2 and 4 are replaced by two each, entry 3 by none.
        let mut old = homes.take();
        for (i, new) in [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 6), (6, 7)] {
            old.replace(i, new);
        }
        homes.put(old, 7, 8);
        assert_eq!(home(&homes, 1, 8), Some(2..6));
        assert_eq!(home(&homes, 2, 8), Some(6..6));
        assert_eq!(home(&homes, 3, 8), Some(6..8));
    }

    #[test]
    fn homes_may_begin_and_end_within_a_leaf() {
        let mut homes = Homes::default();
        homes.begin(SHAPE, 1, 0, 0);
        homes.begin(SHAPE, 2, 3, 0);
        assert_eq!(homes.find(hash(0, 0), 4, &[], |_| true), None);
        assert_eq!(homes.find(hash(2, 0), 4, &[], |_| true), Some(3));
        assert_eq!(homes.find(hash(3, 0), 4, &[], |_| true), None);
        assert_eq!(home(&homes, 0, 4), None);
        assert_eq!(home(&homes, 3, 4), None);
    }
}
