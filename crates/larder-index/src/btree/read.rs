//! How the B+-tree is read.
//!
//! 1. Find the leaf that has the position (`inner`).
//! 2. Take the leaf's version; wait while it is locked.
//! 3. Search its slots, and compare the record (`view`).
//! 4. Copy the value, or whatever is asked for.
//! 5. Validate the version. If it has changed, begin again from the root.

use super::BPlusTree;
use crate::btree::leaf::TreeLeaf;
use crate::btree::record::Record;
use crate::btree::search_key::SearchKey;
use crate::btree::view::{SearchResult, TreeView};
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::{Lookup, SHORT};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

impl BPlusTree {
    /// Reads at a position until what was read is true: `look` gets the record there, if there is
    /// one.
    #[inline]
    fn read<T>(
        &self,
        guard: &Guard,
        position: &[u8],
        mut look: impl FnMut(&TreeView<'_>, Option<Record>) -> Result<T, Torn>,
    ) -> T {
        let key = SearchKey::new(position);
        let backoff = Backoff::new();
        loop {
            // (1)
            let leaf = self.inner.find(key, guard);
            // (2) An obsolete leaf has successors, which only a new search from the root finds.
            if let Ok(view) = leaf.read() {
                // (3) A position that doesn't begin with the leaf's prefix is not there.
                let prefix = leaf.prefix_len();
                let suffix = key.suffix(prefix);
                let found = match suffix.filter(|_| leaf.beside_prefix(key).is_eq()) {
                    Some(suffix) => view.search(key.head(prefix), suffix),
                    None => Ok(SearchResult { i: 0, record: None }),
                };
                // (4)
                let result = found.and_then(|spot| look(&view, spot.record));
                // (5) The version is the one from before: all that was read was true when it was
                // loaded. That is the read's linearisation point.
                if view.is_valid() {
                    if let Ok(result) = result {
                        return result;
                    }
                }
            }
            backoff.snooze();
        }
    }

    /// Copies the value at the position to the end of `out`; false if there is none.
    #[inline]
    pub(crate) fn get(&self, guard: &Guard, position: &[u8], out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read(guard, position, |view, record| {
            out.truncate(from);
            match record {
                Some(record) => view.copy_value(&record, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// As `Unique::get_short`.
    #[inline]
    pub(crate) fn get_short(
        &self,
        guard: &Guard,
        position: &[u8],
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.read(guard, position, |view, record| {
            let Some(record) = record else {
                return Ok(Lookup::Absent);
            };
            if let Some(len) = view.copy_short(&record, out)? {
                return Ok(Lookup::Short(len));
            }
            if let Some(long) = &mut long {
                long.clear();
                view.copy_value(&record, long)?;
            }
            Ok(Lookup::Long)
        })
    }

    /// Whether there is a value at the position.
    pub(crate) fn contains(&self, guard: &Guard, position: &[u8]) -> bool {
        self.read(guard, position, |_, record| Ok(record.is_some()))
    }

    /// As `Unique::is_seen_empty`.
    pub(crate) fn is_seen_empty(&self, guard: &Guard) -> bool {
        // While the root is a leaf that is not obsolete, its entries are all that there are.
        let Some(leaf) = self.inner.only_leaf(guard) else {
            return false;
        };
        let view = leaf.read();
        view.is_ok_and(|view| view.len() == 0 && view.is_valid())
    }

    /// As `Unique::prefetch`, in three passes over the positions: leaves, slots, records.
    pub(crate) fn prefetch<'p>(&self, guard: &Guard, positions: impl Iterator<Item = &'p [u8]>) {
        /// Leaves at a time: more loads than these are not under way at once.
        const AT_ONCE: usize = 32;
        let mut positions = positions.peekable();
        while positions.peek().is_some() {
            let leaves: SmallVec<[(TreeLeaf<'_>, SearchKey<'_>); AT_ONCE]> = positions
                .by_ref()
                .take(AT_ONCE)
                .map(|position| {
                    let key = SearchKey::new(position);
                    (self.inner.find(key, guard), key)
                })
                .collect();
            // The heads have come, or come now: they lead to the slots.
            let views: SmallVec<[(TreeView<'_>, u64); AT_ONCE]> = leaves
                .iter()
                .map(|(leaf, key)| (leaf.peek(), key.head(leaf.prefix_len())))
                .collect();
            views
                .iter()
                .for_each(|(view, head)| view.prefetch_slots(*head));
            // The slots have come: they lead to the records. Whatever is torn only makes the
            // processor fetch a line that is of no use.
            for (view, head) in &views {
                view.prefetch_record(*head);
            }
        }
    }
}
