//! Reads of the B+-tree.
//!
//! 1. Descend to the leaf whose range has the position (`inner`).
//! 2. Load the leaf's version. Wait while the leaf is locked.
//! 3. Search the leaf's slots, and compare the record (`view`).
//! 4. Copy the value, or whatever part of the entry the caller needs.
//! 5. Validate the version. If it has changed, restart from the root.
//!
//! The descent itself takes no lock and validates nothing. Inner nodes are immutable except for
//! their child slots, and a leaf that isn't obsolete covers the range that its path says, however
//! old the nodes on the path are.

use super::BPlusTree;
use crate::btree::leaf::{Obsolete, TreeLeaf};
use crate::btree::record::Record;
use crate::btree::search_key::SearchKey;
use crate::btree::view::{SearchResult, TreeView};
use crate::hint::Hint;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::{Lookup, SHORT_VALUE};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

impl BPlusTree {
    /// Reads the record at a position, and retries until the version is unchanged. Returns the
    /// result of `look`, which gets the record, or `None`. `look` may be called several times; all
    /// calls but the last may see torn data.
    #[inline]
    fn read<'g, T>(
        &self,
        guard: &'g Guard,
        position: &[u8],
        mut look: impl FnMut(&TreeView<'g>, SearchResult) -> Result<T, Torn>,
    ) -> T {
        let key = SearchKey::new(position);
        let backoff = Backoff::new();
        loop {
            // (1) Descend from the root.
            let leaf = self.inner.find(key, guard);
            // (2) to (5) Read the leaf.
            if let Ok(result) = read_leaf(leaf, key, &mut look) {
                return result;
            }
            // The leaf was obsolete or was changed meanwhile. Its writer needs a moment.
            backoff.snooze();
        }
    }

    /// Appends the value at the position to `out`. Returns `false` if there is none.
    #[inline]
    pub(crate) fn get(&self, guard: &Guard, position: &[u8], out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read(guard, position, |view, spot| {
            // An earlier attempt may have appended torn bytes.
            out.truncate(from);
            match spot.record {
                Some(record) => view.copy_value(&record, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// See [`Unique::get_into`](crate::Unique::get_into).
    #[inline]
    pub(crate) fn get_into(
        &self,
        guard: &Guard,
        position: &[u8],
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.read(guard, position, |view, spot| {
            copy_short(view, spot.record, out, &mut long)
        })
    }

    /// See [`Unique::get_or_lend`](crate::Unique::get_or_lend).
    #[inline]
    pub(crate) fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        position: &[u8],
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.read(guard, position, |view, spot| {
            // Each attempt overwrites what the one before has written. An outside value is lent: it
            // is immutable, and the guard keeps it. `outside` validates the version before it
            // follows the handle (O3).
            *lent = match spot.record {
                Some(record) if record.is_outside() => Some(view.outside(&record)?.value()),
                _ => None,
            };
            // Any other value, or none, lies in the leaf, and is copied.
            match lent {
                Some(_) => Ok(Lookup::Long),
                None => copy_short(view, spot.record, out, &mut Some(&mut *long)),
            }
        })
    }

    /// See [`Unique::get_with_hint`](crate::Unique::get_with_hint).
    pub(crate) fn get_with_hint<'g>(
        &'g self,
        guard: &'g Guard,
        position: &[u8],
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&mut Vec<u8>>,
        hint: &mut Hint<'g>,
    ) -> Lookup {
        self.read(guard, position, |view, spot| {
            // The hint is only valid if the version is, which `read` checks afterwards.
            let found = copy_short(view, spot.record, out, &mut long)?;
            *hint = match spot.record {
                Some(record) => view.hint(self.address(), spot.i, record),
                None => Hint::default(),
            };
            Ok(found)
        })
    }

    /// Makes one attempt to find where the entry at a position is. `Ok(None)` if there is none.
    ///
    /// # Errors
    /// `Torn` if a writer is in the leaf, or has been.
    #[inline]
    pub(super) fn find<'g>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'_>,
    ) -> Result<Option<Hint<'g>>, Torn> {
        let leaf = self.inner.find(key, guard);
        // A writer is in the leaf. A read would have to wait for it; the caller waits for the lock
        // instead.
        if leaf.is_locked() {
            return Err(Torn);
        }
        // The hint is only valid if the version is, which is checked afterwards.
        read_leaf(leaf, key, &mut |view, spot| {
            let hint = |record| view.hint(self.address(), spot.i, record);
            Ok(spot.record.map(hint))
        })
    }

    /// The address of the tree, which tells hints of its leaves from those of other trees.
    #[inline]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether there is a value at the position.
    pub(crate) fn contains(&self, guard: &Guard, position: &[u8]) -> bool {
        self.read(guard, position, |_, spot| Ok(spot.record.is_some()))
    }

    /// See [`Unique::is_seen_empty`](crate::Unique::is_seen_empty).
    pub(crate) fn is_seen_empty(&self, guard: &Guard) -> bool {
        // If the root is a leaf that isn't obsolete, it has all entries of the tree.
        let Some(leaf) = self.inner.only_leaf(guard) else {
            return false;
        };
        let view = leaf.read();
        view.is_ok_and(|view| view.len() == 0 && view.is_valid())
    }

    /// See [`Unique::prefetch_entry`](crate::Unique::prefetch_entry). A few nodes lead to many
    /// leaves, so nodes are probably in the cache, and the leaf isn't.
    pub(crate) fn prefetch_leaf<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Hint<'g> {
        let key = SearchKey::new(position);
        // The tail is probably in the cache, and inserts find it without a descent.
        if self.inner.tail.find(key, guard).is_some() {
            return Hint::default();
        }
        Hint::of_leaf(self.address(), self.inner.find(key, guard))
    }

    /// See [`Unique::prefetch`](crate::Unique::prefetch). Makes three passes over the positions,
    /// for leaves, slots and records, so that the misses of each pass overlap.
    pub(crate) fn prefetch<'p>(&self, guard: &Guard, positions: impl Iterator<Item = &'p [u8]>) {
        /// Leaves per round. A processor doesn't have more loads than these in flight.
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
            // The heads of the leaves have arrived, or are waited for now. Prefetch the slots.
            let views: SmallVec<[(TreeView<'_>, u64); AT_ONCE]> = leaves
                .iter()
                .map(|(leaf, key)| (leaf.peek(), key.head(leaf.prefix_len())))
                .collect();
            views
                .iter()
                .for_each(|(view, head)| view.prefetch_slots(*head));
            // The slots have arrived. Prefetch the records. A torn slot only makes the processor
            // fetch a useless line.
            for (view, head) in &views {
                view.prefetch_record(*head);
            }
        }
    }
}

/// Steps (2) to (5): one attempt to read a leaf.
///
/// # Errors
/// `Torn` if the leaf is obsolete, or a writer has changed it meanwhile.
#[inline]
fn read_leaf<'g, T>(
    leaf: TreeLeaf<'g>,
    key: SearchKey<'_>,
    look: &mut impl FnMut(&TreeView<'g>, SearchResult) -> Result<T, Torn>,
) -> Result<T, Torn> {
    // (2) Load the version. If the leaf is obsolete, its successors can only be found by another
    // descent.
    let view = leaf.read().map_err(|Obsolete| Torn)?;
    // (3) Search the leaf. If the position doesn't begin with the leaf's prefix, it is absent. The
    // prefix never changes, so it can be compared without validation.
    let prefix = leaf.prefix_len();
    let suffix = key.suffix(prefix);
    let found = match suffix.filter(|_| leaf.beside_prefix(key).is_eq()) {
        Some(suffix) => view.search(key.head(prefix), suffix),
        None => Ok(SearchResult { i: 0, record: None }),
    };
    // (4) A concurrent writer may change the leaf during the search and the copy. The result is
    // then `Torn`, or arbitrary bytes of the leaf.
    let result = found.and_then(|spot| look(&view, spot));
    // (5) If the version is unchanged, no writer held the lock in between. Everything that was read
    // is the state of the leaf at the load in (2), which is the linearisation point.
    match view.is_valid() {
        true => result,
        false => Err(Torn),
    }
}

/// Copies the value of a record to `out` if it is short, otherwise to `long`.
#[inline(always)]
fn copy_short(
    view: &TreeView<'_>,
    record: Option<Record>,
    out: &mut [u8; SHORT_VALUE],
    long: &mut Option<&mut Vec<u8>>,
) -> Result<Lookup, Torn> {
    // Absent, short or long. A long value is only copied if the caller wants it.
    let Some(record) = record else {
        return Ok(Lookup::Absent);
    };
    if let Some(len) = view.copy_short(&record, out)? {
        return Ok(Lookup::Short(len));
    }
    // The value doesn't fit in `out`, which has been left as it was.
    if let Some(long) = long {
        long.clear();
        view.copy_value(&record, long)?;
    }
    Ok(Lookup::Long)
}
