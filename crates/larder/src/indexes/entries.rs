//! The entries of one index: which keys have rows with a value.
//!
//! ```text
//!  index        position         what lies there
//!  not unique   value ‖ key      the value's length; how many rows of the key have it
//!  unique       value            the key
//! ```
//!
//! A value is an order key, a key is the table's own. Both are prefix-free, so positions are, too.
//! In a bag a key may have several rows with one value; elsewhere the number is 1.
//!
//! # States
//!
//! ```text
//!  building ──→ ready       all rows of the table have their entries
//!      └──────→ broken      two rows have one value in a unique index
//! ```

use super::changes::EntryChanges;
use super::definition::IndexDefinition;
use super::refusal;
use super::values::Extractor;
use crate::counters::Counter;
use crate::error::Error;
use crate::index::Index;
use crate::reclaim::reaper;
use larder_index::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use larder_index::{Change, Guard, Key, Previous, Unique};
use larder_term::hash::Seed;
use larder_term::varint;
use std::sync::Arc;

const BUILDING: u8 = 0;
const READY: u8 = 1;
const BROKEN: u8 = 2;

/// Entries of at most this many bytes are freed by whoever drops them.
const SMALL: usize = 1 << 14;

/// One index of a table.
pub(crate) struct Entries {
    pub(crate) definition: IndexDefinition,
    pub(crate) extractor: Extractor,
    pub(crate) tree: Arc<dyn Unique>,
    state: AtomicU8,
    /// Counts the rows whose values have changed, each between its new entries and the removal of
    /// its old ones.
    moves: AtomicU64,
    /// Counts the changes of entries, for transactions that have read some.
    pub(crate) changes: Arc<EntryChanges>,
    /// How many entries there are.
    count: Counter,
}

/// An entry of a tree, taken apart.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) value: &'a [u8],
    /// The key of its rows in the table.
    pub(crate) key: &'a [u8],
}

/// What became of a claim of a value in a unique index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The key has it now.
    Made,
    /// The key had it.
    Own,
    /// Another row has it.
    Taken,
}

/// A position of a tree as a key.
fn at(position: &[u8]) -> Key<'_> {
    Key {
        bytes: position,
        hash: 0,
    }
}

impl Entries {
    /// An index without entries. `ready` if the table has no rows.
    pub(crate) fn new(
        definition: &IndexDefinition,
        seed: &Seed,
        ready: bool,
    ) -> Result<Self, Error> {
        Ok(Entries {
            extractor: Extractor::of(definition)?,
            definition: definition.clone(),
            tree: Index::keyed_under_locks(true, seed),
            state: AtomicU8::new(if ready { READY } else { BUILDING }),
            moves: AtomicU64::new(0),
            changes: Arc::new(EntryChanges::new(seed)),
            count: Counter::new(true),
        })
    }

    /// Whether all rows have their entries.
    pub(crate) fn is_ready(&self) -> bool {
        // Ordering: Acquire, pairs with `finish`: the entries that the builder has made are seen.
        self.state.load(Ordering::Acquire) == READY
    }

    /// All rows have their entries now. False if the index is broken.
    pub(super) fn finish(&self) -> bool {
        // Ordering: AcqRel; Release pairs with `is_ready`. A writer that breaks the index and this
        // exchange the same word: one of them comes first.
        let was = self
            .state
            .compare_exchange(BUILDING, READY, Ordering::AcqRel, Ordering::Acquire);
        was != Err(BROKEN)
    }

    /// Two rows have one value. False if the index is ready: then the second is refused.
    pub(super) fn breaks(&self) -> bool {
        // Ordering: AcqRel, as in `finish`.
        let was =
            self.state
                .compare_exchange(BUILDING, BROKEN, Ordering::AcqRel, Ordering::Acquire);
        was != Err(READY)
    }

    /// Whether it is given up.
    pub(super) fn is_broken(&self) -> bool {
        // Ordering: Acquire, as in `is_ready`.
        self.state.load(Ordering::Acquire) == BROKEN
    }

    /// The number of values that have been changed.
    pub(crate) fn moves(&self) -> u64 {
        // Ordering: Acquire, pairs with `note_move`: the new entries of the moves that were counted
        // are seen by what is read after this.
        self.moves.load(Ordering::Acquire)
    }

    /// Counts a row whose values change. Its new entries are there, and its old ones still.
    pub(super) fn note_move(&self) {
        // Ordering: AcqRel. Release pairs with `moves`. A reader that misses an old entry has seen
        // the tree after its removal, which comes after this: it then reads a greater number.
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    /// Writes the position of an entry.
    pub(super) fn position(&self, value: &[u8], key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(value);
        if !self.definition.unique {
            out.extend_from_slice(key);
        }
    }

    /// Whether two entries, a value and a key each, have one position.
    pub(super) fn are_at_one_position(&self, one: (&[u8], &[u8]), other: (&[u8], &[u8])) -> bool {
        one.0 == other.0 && (self.definition.unique || one.1 == other.1)
    }

    /// Counts one more row of a key that has a value. With `one`, a key has one row at most.
    pub(super) fn add(
        &self,
        guard: &Guard,
        (value, key): (&[u8], &[u8]),
        one: bool,
        position: &mut Vec<u8>,
    ) {
        if self.definition.unique {
            // It was claimed for the key, or is the key's again after another object of a list
            // took its place: what lies there is a claim that is given back.
            let is_other = |old: Option<&[u8]>| old != Some(key);
            let was = self
                .tree
                .put(guard, at(value), key, &mut |old| is_other(old));
            return self.note_put(value, was);
        }
        self.position(value, key, position);
        let mut new = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            let rows = match old {
                Some(_) if one => return Change::Keep,
                Some(old) => rows(old) + 1,
                None => 1,
            };
            new = i64::from(old.is_none());
            write_record(value.len(), rows, record);
            Change::PutScratch
        });
        self.note_change(value, new);
    }

    /// An entry of a unique index was put, where this was before.
    fn note_put(&self, value: &[u8], was: Previous) {
        self.note_change(value, i64::from(was == Previous::Absent));
    }

    /// There are so many more entries of a value now. Where there are as many, an entry may say
    /// something else of rows whose own change every reader of it finds.
    fn note_change(&self, value: &[u8], more: i64) {
        if more != 0 {
            self.changes.note(value);
            self.count.add(more);
        }
    }

    /// Says how many rows of a key have a value, in an index that is not unique.
    pub(super) fn set(
        &self,
        guard: &Guard,
        (value, key): (&[u8], &[u8]),
        rows: u64,
        position: &mut Vec<u8>,
    ) {
        self.position(value, key, position);
        let mut new = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            new = i64::from(old.is_none());
            write_record(value.len(), rows, record);
            Change::PutScratch
        });
        self.note_change(value, new);
    }

    /// One row less of a key has a value.
    pub(super) fn remove(
        &self,
        guard: &Guard,
        (value, key): (&[u8], &[u8]),
        position: &mut Vec<u8>,
    ) {
        self.position(value, key, position);
        if self.definition.unique {
            let is_own = |old: Option<&[u8]>| old == Some(key);
            let remove = &mut |old: Option<&[u8]>| is_own(old);
            let was = self.tree.remove(guard, at(position), remove);
            return self.note_change(value, -i64::from(was == Previous::Present));
        }
        let mut gone = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            let Some(rows) = old.map(rows) else {
                return Change::Keep;
            };
            if rows <= 1 {
                gone = 1;
                return Change::Remove;
            }
            write_record(value.len(), rows - 1, record);
            Change::PutScratch
        });
        self.note_change(value, -gone);
    }

    /// Claims a value of a unique index for a key. With `one`, a key has one row at most, so its
    /// own claim stands for the row that is replaced.
    ///
    /// Linearisation point: the store that unlocks the leaf of the value.
    pub(super) fn claim(&self, guard: &Guard, (value, key): (&[u8], &[u8]), one: bool) -> Claim {
        let mut found = Claim::Made;
        let was = self.tree.put(guard, at(value), key, &mut |old| {
            found = match old {
                None => Claim::Made,
                Some(holder) if holder == key && one => Claim::Own,
                Some(holder) => {
                    refusal::note_holder(holder);
                    Claim::Taken
                }
            };
            found == Claim::Made
        });
        debug_assert_eq!(was == Previous::Refused, found != Claim::Made);
        self.note_put(value, was);
        found
    }

    /// Makes a value of a unique index another key's.
    pub(super) fn hand_over(&self, guard: &Guard, (value, key): (&[u8], &[u8])) {
        let was = self.tree.put(guard, at(value), key, &mut |_| true);
        self.note_put(value, was);
    }

    /// The key that has a value of a unique index.
    pub(super) fn holder(&self, guard: &Guard, value: &[u8]) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        let is_there = self.definition.unique && self.tree.get(guard, at(value), &mut key);
        is_there.then_some(key)
    }

    /// Takes an entry of its tree apart.
    pub(crate) fn entry<'a>(&self, position: &'a [u8], record: &'a [u8]) -> Entry<'a> {
        if self.definition.unique {
            return Entry {
                value: position,
                key: record,
            };
        }
        let (len, _) = varint::read(record, 0);
        let (value, key) = position.split_at(len as usize);
        Entry { value, key }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.count.get()
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory() + self.count.memory()
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let bytes = self.tree.memory();
        if bytes > SMALL {
            // Entries have no handles: nothing has to be given back but memory.
            let tree = Arc::clone(&self.tree);
            reaper::bits(bytes, move || {
                tree.free_some(&larder_index::pin(), 64, &mut |_| ())
            });
        }
    }
}

/// How many rows an entry stands for.
fn rows(record: &[u8]) -> u64 {
    let (_, at) = varint::read(record, 0);
    varint::read(record, at).0
}

fn write_record(value: usize, rows: u64, out: &mut Vec<u8>) {
    out.clear();
    varint::push(out, value as u64);
    varint::push(out, rows);
}
