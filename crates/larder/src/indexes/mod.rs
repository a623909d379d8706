//! Secondary indexes: finding rows by a value.
//!
//! | file | what it has |
//! |---|---|
//! | `definition` | the definition of an index |
//! | `values` | the values that a row has in an index |
//! | `entries` | the entries of one index, in a tree |
//! | `changes` | counters of changes of entries, for transactions that read them |
//! | `layer` | the layer of a store that maintains the entries |
//! | `claims` | values of unique indexes, claimed before a row is written |
//! | `refusal` | why a write was refused |
//! | `build` | adding an index while other threads write, and dropping one |
//! | `lookup` | finding rows by their values |
//! | `differing` | rows of a view that differ from what the entries say |
//! | `part` | the entries of a view, in parts |
//! | `paused` | the part that a select with a limit leaves for its next page |
//! | `ranges` | ranges of entries, read leaf by leaf |
//! | `choice` | whether a match specification uses an index |
//! | `candidates` | the keys of the rows that may match then |
//!
//! # Definitions
//!
//! - *Value* of a row in an index: the element, or the result of the expression; with `each`, every
//!   element of that list. Two values are the same if they are equal (`==`).
//! - *Entry*: a value and a key of the table. It says that at least one row of the key has the
//!   value.
//! - *Window* of a write: the time from its first change of an entry until it unlocks the row.
//!
//! # Invariants (docs/design.md §5.10.2)
//!
//! * X1: Outside of windows, a ready index has an entry for each value of each row, and no other.
//!   (Expired rows may have none.)
//! * X2: A write changes entries only while it holds the lock of its row's key, and every reader of
//!   that key waits meanwhile.
//! * X3: Within its window a write first makes all new entries in all indexes, and then removes the
//!   old ones.
//!
//! # Reading by an index
//!
//! A reader takes keys from the entries, then reads their rows in the table, and keeps those that
//! have the value. So what it returns was in the table, with that value, at the instant at which
//! the row was read.
//!
//! # Why a write takes effect at one instant
//!
//! The instant lies in the window: all new entries are there, and no old one is removed yet. That
//! holds for readers by an index and for readers by the key:
//!
//! - A reader that finds an entry during the window waits for the entry's lock, and sees the new
//!   row.
//! - A reader that misses a new entry has read the index before the instant, when the row had its
//!   old value.
//! - A reader that misses an old entry has read the index after the instant.
//! - A reader of the row by its key waits during the window, and sees the new row.
//!
//! # More than one value
//!
//! A reader that looks for several values, or a range, reads the entries one leaf after the other.
//! Suppose that a row's value moves meanwhile from a leaf that has not been read to one that has.
//! The reader would miss the row. So a write that moves a value increments a counter, after it has
//! made the new entries and before it removes the old ones (`Entries::note_move`). A reader that
//! must not miss any row compares the counter before and after.

mod build;
mod candidates;
mod changes;
mod choice;
mod claims;
pub(crate) mod definition;
mod differing;
mod entries;
mod layer;
mod lookup;
mod part;
mod paused;
mod ranges;
mod refusal;
mod values;

use crate::error::Error;
use claims::Claims;
use larder_index::Guard;
use larder_term::hash::Seed;
use larder_term::Atom;
use std::sync::Arc;

pub use build::IndexBuild;
pub(crate) use candidates::{CandidateKeys, Gathered};
pub(crate) use changes::EntriesRead;
pub(crate) use choice::candidates;
pub use choice::{Explanation, PlanKind};
pub(crate) use claims::{Claimed, Refused, ReplacedRows};
pub use definition::{IndexDefinition, IndexOn};
pub(crate) use entries::{Entries, IndexEntry};
pub(crate) use layer::wrap_indexed;
pub use lookup::{IndexInfo, IndexJob};
pub(crate) use paused::PausedEntries;
pub(crate) use refusal::{note_taken, take_holder, taken, Holder};

/// The keys of a table.
#[derive(Clone, Copy)]
pub(crate) struct TableKeys {
    /// The position of the key in each row.
    pub(crate) position: usize,
    /// Whether a key has at most one row.
    pub(crate) one_row: bool,
}

/// The secondary indexes of a store.
pub(crate) struct Indexes {
    keys: TableKeys,
    pub(crate) each: Vec<Arc<Entries>>,
    /// Whether one of them is unique.
    has_unique: bool,
    claims: Arc<Claims>,
    seed: Seed,
}

impl Indexes {
    fn of(
        each: Vec<Arc<Entries>>,
        keys: TableKeys,
        seed: &Seed,
        claims: Arc<Claims>,
    ) -> Option<Arc<Self>> {
        (!each.is_empty()).then(|| {
            Arc::new(Indexes {
                keys,
                has_unique: each.iter().any(|entries| entries.definition.unique),
                each,
                claims,
                seed: seed.clone(),
            })
        })
    }

    /// Makes these indexes for an empty table.
    ///
    /// # Errors
    /// `BadOption` if a definition is invalid.
    #[cold]
    pub(crate) fn new(
        indexes: &[IndexDefinition],
        keys: TableKeys,
        seed: &Seed,
    ) -> Result<Option<Arc<Self>>, Error> {
        let each = indexes.iter();
        let each = each.map(|definition| Entries::new(definition, seed, true).map(Arc::new));
        let each = each.collect::<Result<_, _>>()?;
        Ok(Self::of(each, keys, seed, Arc::default()))
    }

    /// Makes the same indexes for an empty table.
    pub(crate) fn emptied(&self) -> Result<Option<Arc<Self>>, Error> {
        let each = self.each.iter().map(|entries| {
            // An empty table has no rows to be indexed. So each index is ready, even if the old one
            // was being built or was broken.
            entries.emptied(&self.seed).map(Arc::new)
        });
        let each = each.collect::<Result<_, _>>()?;
        // X6: succeeding sets of indexes share the counts.
        let claims = Arc::clone(&self.claims);
        Ok(Self::of(each, self.keys, &self.seed, claims))
    }

    /// Those of the indexes that are ready for a view of a bounded table as of this time (see
    /// `Entries::is_ready_at`).
    pub(crate) fn ready_at(self: &Arc<Self>, time: u64) -> Option<Arc<Self>> {
        let is_ready = |entries: &&Arc<Entries>| entries.is_ready_at(time);
        if self.each.iter().all(|entries| is_ready(&entries)) {
            return Some(Arc::clone(self));
        }
        let each = self.each.iter().filter(is_ready).cloned().collect();
        Self::of(each, self.keys, &self.seed, Arc::clone(&self.claims))
    }

    /// The index of this name, if it is ready.
    pub(crate) fn find(&self, name: Atom) -> Option<&Arc<Entries>> {
        let is_named = |entries: &&Arc<Entries>| entries.definition.name == name;
        self.each
            .iter()
            .find(is_named)
            .filter(|entries| entries.is_ready())
    }

    /// Whether a holder still has its value, in the entries of its index.
    pub(crate) fn has(&self, guard: &Guard, holder: &Holder) -> bool {
        let mut named = self
            .each
            .iter()
            .filter(|entries| entries.definition.name == holder.index);
        named.any(|entries| entries.holder(guard, &holder.value).as_ref() == Some(&holder.key))
    }

    /// Gives up the index of this name, for which a write would be refused, if it is being built.
    /// Returns whether it is given up, and refuses nothing.
    #[cold]
    pub(crate) fn give_up(&self, name: Atom) -> bool {
        let mut named = self
            .each
            .iter()
            .filter(|entries| entries.definition.name == name);
        named.any(|entries| entries.mark_broken())
    }

    /// Whether one of them is unique.
    #[inline]
    pub(crate) fn has_unique(&self) -> bool {
        self.has_unique
    }

    /// The memory of the indexes in bytes.
    pub(crate) fn memory(&self) -> usize {
        let each = self.each.iter().map(|entries| entries.memory());
        size_of::<Self>() + each.sum::<usize>()
    }

    /// Frees memory that writes have retired and kept until the thread holds no lock.
    #[inline]
    fn flush_postponed(&self, guard: &Guard) {
        self.each
            .iter()
            .for_each(|entries| entries.tree.flush_postponed(guard));
    }
}
