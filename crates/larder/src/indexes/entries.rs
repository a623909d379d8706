//! The entries of one index. They say which keys have rows with a value.
//!
//! ```text
//!  index        position         record
//!  not unique   value ‖ key      the value's length; how many rows of the key have it
//!  unique       value            the key
//! ```
//!
//! A value is an order key, and a key is that of the table. Both are prefix-free, so positions are,
//! too. In a bag, several rows of a key may have the same value. In other tables the number of rows
//! is 1.
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
use crate::bounds;
use crate::counters::Counter;
use crate::error::Error;
use crate::index::TableIndex;
use crate::reclaim::reaper;
use larder_index::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use larder_index::{Batch, Change, Guard, Hint, Key, Lookup, Previous, Unique, SHORT_VALUE};
use larder_term::hash::Seed;
use larder_term::varint;
use std::sync::Arc;

const BUILDING: u8 = 0;
const READY: u8 = 1;
const BROKEN: u8 = 2;

/// Entries of at most this many bytes are freed by the thread that drops them.
const FREE_INLINE_BYTES: usize = 1 << 14;

/// One index of a table.
pub(crate) struct Entries {
    pub(crate) definition: IndexDefinition,
    pub(crate) extractor: Extractor,
    pub(crate) tree: Arc<dyn Unique>,
    state: AtomicU8,
    /// The time at which the index became ready; 0 if it was made for an empty table.
    ready_since: AtomicU64,
    /// The number of rows whose values have changed. It is incremented after the new entries are
    /// made and before the old ones are removed.
    moves: AtomicU64,
    /// Counters of the changes of entries, for transactions that have read some.
    pub(crate) changes: Arc<EntryChanges>,
    /// The number of entries.
    count: Counter,
    /// Shared with the index that takes its place when the table is emptied.
    pub(super) origin: Arc<()>,
}

/// An entry: a value, and a key of the table that has rows with the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry<'a> {
    pub(crate) value: &'a [u8],
    /// The key in the table.
    pub(crate) key: &'a [u8],
}

/// The result of a claim of a value in a unique index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The key has it from now on.
    Made,
    /// The key already had it.
    Own,
    /// Another row has it.
    Taken,
}

/// Makes a key of a position in the tree.
fn at(position: &[u8]) -> Key<'_> {
    Key {
        bytes: position,
        hash: 0,
    }
}

impl Entries {
    /// Makes an index without entries. `ready` must be set only if the table has no rows.
    pub(crate) fn new(
        definition: &IndexDefinition,
        seed: &Seed,
        ready: bool,
    ) -> Result<Self, Error> {
        Ok(Entries {
            extractor: Extractor::of(definition)?,
            definition: definition.clone(),
            tree: TableIndex::ordered_under_locks(),
            state: AtomicU8::new(if ready { READY } else { BUILDING }),
            ready_since: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            changes: Arc::new(EntryChanges::new(seed)),
            count: Counter::new(true),
            origin: Arc::default(),
        })
    }

    /// The same index for an empty table, which is ready.
    pub(super) fn emptied(&self, seed: &Seed) -> Result<Self, Error> {
        let mut fresh = Self::new(&self.definition, seed, true)?;
        fresh.origin = Arc::clone(&self.origin);
        Ok(fresh)
    }

    /// Whether all rows have their entries.
    pub(crate) fn is_ready(&self) -> bool {
        // Ordering: Acquire, pairs with `finish`: the entries that the builder has made are
        // visible.
        self.state.load(Ordering::Acquire) == READY
    }

    /// Whether all rows that aren't expired at this time have their entries.
    ///
    /// The builder has skipped rows that were expired when it came to them. A view of an earlier
    /// time may show them.
    pub(super) fn is_ready_at(&self, time: u64) -> bool {
        // Ordering: Relaxed, the time was stored before the state that `is_ready` has acquired.
        self.is_ready() && self.ready_since.load(Ordering::Relaxed) <= time
    }

    /// Makes the index ready, since all rows have their entries. Returns `false` if the index is
    /// broken.
    pub(super) fn finish(&self) -> bool {
        // Ordering: Relaxed, published by the exchange below.
        self.ready_since.store(bounds::now(), Ordering::Relaxed);
        // Ordering: AcqRel; Release pairs with `is_ready`. A write that breaks the index exchanges
        // the same word, so one of the two comes first.
        let was = self
            .state
            .compare_exchange(BUILDING, READY, Ordering::AcqRel, Ordering::Acquire);
        was != Err(BROKEN)
    }

    /// Breaks the index, since two rows have the same value. Returns `false` if the index is ready;
    /// in that case the second row is refused.
    pub(super) fn mark_broken(&self) -> bool {
        // Ordering: AcqRel, as in `finish`.
        let was =
            self.state
                .compare_exchange(BUILDING, BROKEN, Ordering::AcqRel, Ordering::Acquire);
        was != Err(READY)
    }

    /// Whether the index was broken, and is given up.
    pub(super) fn is_broken(&self) -> bool {
        // Ordering: Acquire, as in `is_ready`.
        self.state.load(Ordering::Acquire) == BROKEN
    }

    /// The number of rows whose values have changed.
    pub(crate) fn moves(&self) -> u64 {
        // Ordering: Acquire, pairs with `note_move`: the new entries of the moves that are included
        // in the number are visible to reads after this.
        self.moves.load(Ordering::Acquire)
    }

    /// Counts a row whose values change. Called when its new entries exist, and its old ones still
    /// exist.
    pub(super) fn note_move(&self) {
        // Ordering: AcqRel. Release pairs with `moves`. A reader that misses an old entry has read
        // the tree after its removal, which comes after this. So it then reads a greater number.
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

    /// Whether two entries have the same position.
    pub(super) fn are_at_one_position(&self, one: IndexEntry<'_>, other: IndexEntry<'_>) -> bool {
        one.value == other.value && (self.definition.unique || one.key == other.key)
    }

    /// Adds one row of a key that has a value. `one_row_per_key` says that a key has at most one
    /// row.
    pub(super) fn add(
        &self,
        guard: &Guard,
        entry: IndexEntry<'_>,
        one_row_per_key: bool,
        position: &mut Vec<u8>,
    ) {
        let IndexEntry { value, key } = entry;
        if self.definition.unique {
            // It was claimed for the key. Or it is the key's again, after another object of a list
            // had it. In that case the entry there is a claim that will be given back.
            let is_other = |old: Option<&[u8]>| old != Some(key);
            let was = self
                .tree
                .put(guard, at(value), key, &mut |old| is_other(old));
            return self.note_put(value, was);
        }
        self.position(value, key, position);
        if one_row_per_key {
            // The record is made after the position.
            let end = position.len();
            append_record(value.len(), 1, position);
            let (place, record) = position.split_at(end);
            let is_new = &mut |old: Option<&[u8]>| old.is_none();
            return self.note_put(value, self.tree.put(guard, at(place), record, is_new));
        }
        let mut new = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            let rows = old.map_or(1, |old| rows(old) + 1);
            new = i64::from(old.is_none());
            write_record(value.len(), rows, record);
            Change::Put
        });
        self.note_change(value, new);
    }

    /// Counts a put of an entry, given what was there before.
    fn note_put(&self, value: &[u8], was: Previous) {
        self.note_change(value, i64::from(was == Previous::Absent));
    }

    /// Counts that a value has `more` additional entries. If their number hasn't changed, an entry
    /// may have changed for rows whose own change every reader of the entry detects.
    fn note_change(&self, value: &[u8], more: i64) {
        if more != 0 {
            self.changes.note(value);
            self.count.add(more);
        }
    }

    /// Sets the number of rows of a key that have a value, in an index that is not unique.
    pub(super) fn set(
        &self,
        guard: &Guard,
        entry: IndexEntry<'_>,
        rows: u64,
        position: &mut Vec<u8>,
    ) {
        let IndexEntry { value, key } = entry;
        self.position(value, key, position);
        // Whether the entry is new is known under the lock of the leaf.
        let mut new = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            new = i64::from(old.is_none());
            write_record(value.len(), rows, record);
            Change::Put
        });
        self.note_change(value, new);
    }

    /// Removes one row of a key that has a value. `one_row_per_key` says that a key has at most one
    /// row.
    pub(super) fn remove(
        &self,
        guard: &Guard,
        entry: IndexEntry<'_>,
        one_row_per_key: bool,
        position: &mut Vec<u8>,
    ) {
        let IndexEntry { value, key } = entry;
        let is_unique = self.definition.unique;
        self.position(value, key, position);
        if is_unique || one_row_per_key {
            // The entry of a unique index may have passed to another key meanwhile (`hand_over`).
            let is_own = &mut |record: &[u8]| !is_unique || record == key;
            let was = self.tree.remove(guard, at(position), is_own);
            return self.note_change(value, -i64::from(was == Previous::Present));
        }
        // A bag's key may have several rows with the value. Their entry has their number.
        let mut removed = 0;
        self.tree.update(guard, at(position), &mut |old, record| {
            let Some(rows) = old.map(rows) else {
                return Change::Keep;
            };
            // The last row of the key with the value is removed.
            if rows <= 1 {
                removed = 1;
                return Change::Remove;
            }
            write_record(value.len(), rows - 1, record);
            Change::Put
        });
        self.note_change(value, -removed);
    }

    /// Claims a value of a unique index for a key. `one_row_per_key` says that a key has at most
    /// one row. In that case the key's own entry is that of the row that is replaced. `count` is
    /// called before a claim that is made can be seen, perhaps more than once.
    ///
    /// Linearisation point: the store that unlocks the leaf of the value.
    pub(super) fn claim(
        &self,
        guard: &Guard,
        entry: IndexEntry<'_>,
        one_row_per_key: bool,
        mut count: impl FnMut(),
    ) -> Claim {
        let IndexEntry { value, key } = entry;
        let mut found = Claim::Made;
        // The entry of a value has the key as its value. So the claim is an insert of the value
        // that is refused if the value is there.
        let was = self.tree.put(guard, at(value), key, &mut |old| {
            // The leaf of the value is locked: of several claims at once, one is made.
            found = match old {
                None => Claim::Made,
                // The row that is replaced has the value. The new row keeps its entry.
                Some(holder) if holder == key && one_row_per_key => Claim::Own,
                // Note whose it is: the caller may find that this row has expired.
                Some(holder) => {
                    refusal::note_holder(self.definition.name, value, holder);
                    Claim::Taken
                }
            };
            let is_made = found == Claim::Made;
            if is_made {
                count();
            }
            is_made
        });
        debug_assert_eq!(was == Previous::Refused, found != Claim::Made);
        self.note_put(value, was);
        found
    }

    /// Passes a value of a unique index to another key.
    pub(super) fn hand_over(&self, guard: &Guard, entry: IndexEntry<'_>) {
        let IndexEntry { value, key } = entry;
        let was = self.tree.put(guard, at(value), key, &mut |_| true);
        self.note_put(value, was);
    }

    /// The key whose row has a value of a unique index.
    pub(super) fn holder(&self, guard: &Guard, value: &[u8]) -> Option<Vec<u8>> {
        self.holder_at(guard, value, &mut Hint::default())
    }

    /// Like `holder`. Writes to `hint`, which is `default`, where the entry was found.
    pub(super) fn holder_at<'g>(
        &'g self,
        guard: &'g Guard,
        value: &[u8],
        hint: &mut Hint<'g>,
    ) -> Option<Vec<u8>> {
        if !self.definition.unique {
            return None;
        }
        let (mut short, mut long) = ([0; SHORT_VALUE], Vec::new());
        let found = self
            .tree
            .get_with_hint(guard, at(value), &mut short, Some(&mut long), hint);
        match found {
            Lookup::Absent => None,
            Lookup::Short(len) => Some(short[..len].to_vec()),
            Lookup::Long => Some(long),
        }
    }

    /// Decodes an entry of the tree.
    pub(crate) fn entry<'a>(&self, position: &'a [u8], record: &'a [u8]) -> IndexEntry<'a> {
        if self.definition.unique {
            return IndexEntry {
                // In a unique index, the position is the value, and the record is the key.
                value: position,
                key: record,
            };
        }
        // Otherwise the record says where the value ends and the key begins.
        let (len, _) = varint::read(record, 0);
        let (value, key) = position.split_at(len as usize);
        IndexEntry { value, key }
    }

    /// The key of entry `i` of a batch, which is one of this value: what follows the value; in a
    /// unique index, the record.
    #[inline(always)]
    pub(super) fn key_after<'a>(&self, value: &[u8], batch: &'a Batch<'_>, i: usize) -> &'a [u8] {
        match self.definition.unique {
            true => batch.value(i),
            false => &batch.key(i)[value.len()..],
        }
    }

    /// The value of an entry of this key.
    #[inline]
    pub(super) fn value_before<'a>(&self, position: &'a [u8], key: &[u8]) -> &'a [u8] {
        match self.definition.unique {
            true => position,
            false => &position[..position.len() - key.len()],
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.count.get()
    }

    /// The memory of the entries in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory() + self.count.memory()
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let bytes = self.tree.memory();
        if bytes > FREE_INLINE_BYTES {
            // Entries have no handles, so only memory has to be freed.
            let tree = Arc::clone(&self.tree);
            reaper::bits(bytes, move || {
                tree.free_some(&larder_index::pin(), 64, &mut |_| ())
            });
        }
    }
}

/// The number of rows that an entry represents.
fn rows(record: &[u8]) -> u64 {
    let (_, at) = varint::read(record, 0);
    varint::read(record, at).0
}

fn write_record(value: usize, rows: u64, out: &mut Vec<u8>) {
    out.clear();
    append_record(value, rows, out);
}

fn append_record(value: usize, rows: u64, out: &mut Vec<u8>) {
    varint::push(out, value as u64);
    varint::push(out, rows);
}
