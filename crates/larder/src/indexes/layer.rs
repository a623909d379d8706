//! The layer of a store that maintains the secondary indexes: it wraps the index of the table's
//! rows, and changes the entries together with the rows.
//!
//! It is the innermost layer. The closure of a write is called first, under the entry's lock. If
//! it changes something, the entries are changed, still under the lock, and then the row.

use super::values::has;
use super::{Entries, IndexEntry, Indexes};
use crate::bounds::{self, object_of, ObjectTimes};
use crate::delegate::{delegate_container, delegate_multi, delegate_unique};
use crate::index::TableIndex;
use crate::noted::{NotedObjects, Notes};
use crate::programs::Scratch;
use crate::raw;
use larder_index::sync::{planted, Fault};
use larder_index::{
    with_spare, Batch, Change, Container, Guard, Key, Lookup, MarkedUpdater, Multi, Objects,
    Predicate, Preparation, Previous, ReadyMark, ShortValues, Unique, Updater, Values, SHORT_VALUE,
};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// The buffers for reading the values of a row.
#[derive(Default)]
pub(super) struct RowBuffers {
    /// The unpacked elements of a compressed row.
    plain: Vec<u8>,
    /// Those of the row that replaces it.
    plain_new: Vec<u8>,
    /// The memory of the program of an expression.
    scratch: Scratch,
}

/// The buffers for a change of entries.
#[derive(Default)]
pub(super) struct EntryBuffers {
    pub(super) row: RowBuffers,
    /// The values of the old row.
    pub(super) old: Values,
    /// The values of the new row.
    pub(super) new: Values,
    removals: Vec<Removal>,
    /// A position of an index.
    pub(super) position: Vec<u8>,
}

/// The change of a row: its value before, and after. `None` if there is no row.
#[derive(Clone, Copy)]
struct RowChange<'a> {
    old: Option<&'a [u8]>,
    new: Option<&'a [u8]>,
}

/// An entry that is to be removed.
struct Removal {
    /// The number of the index.
    index: usize,
    /// Most values are short, and take no allocation.
    value: SmallVec<[u8; 32]>,
}

type BoxedBuffers = Box<EntryBuffers>;

thread_local! {
    static BUFFERS: Cell<Option<BoxedBuffers>> = const { Cell::new(None) };
}

/// Buffers that together have more bytes than this are dropped.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// Calls `f` with the thread's buffers.
pub(super) fn with_entry_buffers<R>(f: impl FnOnce(&mut EntryBuffers) -> R) -> R {
    let is_small = |buffers: &BoxedBuffers| {
        let values = buffers.old.bytes.capacity() + buffers.new.bytes.capacity();
        let rows = buffers.row.plain.capacity() + buffers.row.plain_new.capacity();
        values + rows + buffers.position.capacity() <= MAX_KEPT_CAPACITY
    };
    with_spare(&BUFFERS, is_small, |buffers: &mut BoxedBuffers| f(buffers))
}

impl Indexes {
    /// Writes the values of a row of this key to `out`.
    pub(super) fn values_of(
        &self,
        entries: &Entries,
        key: &[u8],
        row: &[u8],
        buffers: &mut RowBuffers,
        out: &mut Values,
    ) {
        let RowBuffers { plain, scratch, .. } = buffers;
        let row = raw::view(key, row, self.keys.position, plain);
        entries.extractor.values(&row, scratch, out);
    }

    /// Changes the entries of a key when a row of it is replaced. Called under the entry's lock,
    /// before the row is changed. `old_may_lack_entries` says that the old row may lack entries.
    fn change(&self, guard: &Guard, key: &[u8], change: RowChange<'_>, old_may_lack_entries: bool) {
        // Most writes change no indexed element.
        if !old_may_lack_entries && self.has_same_elements(change) {
            return;
        }
        with_entry_buffers(|buffers| {
            let mut removals = std::mem::take(&mut buffers.removals);
            self.add_new_entries(
                guard,
                key,
                change,
                old_may_lack_entries,
                buffers,
                &mut removals,
            );
            self.remove_old_entries(guard, key, &mut removals, &mut buffers.position);
            buffers.removals = removals;
        });
    }

    /// Whether a row is replaced by one with the same indexed elements, so that all entries stay.
    /// `false` of a compressed row, and if an index is on an expression.
    #[inline]
    fn has_same_elements(&self, RowChange { old, new }: RowChange<'_>) -> bool {
        let (Some(old), Some(new)) = (old, new) else {
            return false;
        };
        let keypos = self.keys.position;
        let mut each = self.each.iter();
        each.all(|entries| entries.extractor.keeps_element(old, new, keypos))
    }

    /// Makes the new entries, and collects the old ones.
    fn add_new_entries(
        &self,
        guard: &Guard,
        key: &[u8],
        change: RowChange<'_>,
        old_may_lack_entries: bool,
        buffers: &mut EntryBuffers,
        removals: &mut Vec<Removal>,
    ) {
        let EntryBuffers {
            row,
            old: before,
            new: after,
            position,
            ..
        } = buffers;
        let RowBuffers {
            plain,
            plain_new,
            scratch,
        } = row;
        let view = |row, plain| raw::view(key, row, self.keys.position, plain);
        let (old, new) = (
            change.old.map(|old| view(old, plain)),
            change.new.map(|new| view(new, plain_new)),
        );
        for (index, entries) in self.each.iter().enumerate() {
            // The indexes of other elements keep their entries.
            if let (Some(old), Some(new), false) = (&old, &new, old_may_lack_entries) {
                if entries.extractor.is_same_element(old, new) {
                    continue;
                }
            }
            before.clear();
            after.clear();
            if let Some(old) = &old {
                entries.extractor.values(old, scratch, before);
            }
            if let Some(new) = &new {
                entries.extractor.values(new, scratch, after);
            }
            // X3: make the new entries first.
            let mut is_moved = false;
            let is_new = |value: &&[u8]| old_may_lack_entries || !has(before, value);
            for value in after.iter().filter(is_new) {
                let entry = IndexEntry { value, key };
                entries.add(guard, entry, self.keys.one_row, position);
                is_moved = true;
            }
            let removed = before.iter().filter(|value| !has(after, value));
            // The old ones are removed after the entries of all indexes are made.
            let first = removals.len();
            removals.extend(removed.map(|value| Removal {
                index,
                value: SmallVec::from_slice(value),
            }));
            // A select that gathers entries in slices may pass the new entry's position before the
            // entry is there, and reach the old one's after it was removed. It would then miss the
            // row. The counter makes it start again.
            if is_moved && removals.len() > first && !planted(Fault::UncountedMove) {
                entries.note_move();
            }
        }
    }

    /// Removes the old entries that were collected.
    fn remove_old_entries(
        &self,
        guard: &Guard,
        key: &[u8],
        removals: &mut Vec<Removal>,
        position: &mut Vec<u8>,
    ) {
        let stays = planted(Fault::LeftEntry);
        for Removal { index, value } in removals.drain(..).filter(|_| !stays) {
            let value = &value;
            let entry = IndexEntry { value, key };
            self.each[index].remove(guard, entry, self.keys.one_row, position);
        }
    }
}

/// An index of rows, with secondary indexes to be maintained.
struct Indexed<I: ?Sized> {
    index: Arc<I>,
    indexes: Arc<Indexes>,
    /// Whether each row is followed by a stamp, because the table is bounded.
    has_stamps: bool,
}

/// Wraps an index of rows, so that changes of rows change their entries, too. `has_stamps` says
/// that each row is followed by a stamp (`bounds`).
pub(crate) fn wrap_indexed(
    index: TableIndex,
    indexes: &Arc<Indexes>,
    has_stamps: bool,
) -> TableIndex {
    let indexes = Arc::clone(indexes);
    match index {
        TableIndex::Unique(index) => TableIndex::Unique(Arc::new(Indexed {
            index,
            indexes,
            has_stamps,
        })),
        TableIndex::Multi(index) => TableIndex::Multi(Arc::new(Indexed {
            index,
            indexes,
            has_stamps,
        })),
    }
}

/// Each write asks the caller's closure first, under the leaf's lock. If it changes no row, no
/// entry changes. Otherwise the entries change first, and the row is written last. Readers of the
/// key wait for the lock, so they find row and entries in agreement.
impl Indexed<dyn Unique> {
    /// Changes the entries of a key when its row is replaced. Returns `true`.
    ///
    /// An expired row keeps its entries until it is removed, like any other row. It may only lack
    /// those of an index that was added since its deadline, because the scan that builds an index
    /// skips it.
    fn change(&self, guard: &Guard, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
        if !self.has_stamps {
            let change = RowChange { old, new };
            self.indexes.change(guard, key, change, false);
            return true;
        }
        let is_expired = old.is_some_and(|old| ObjectTimes::of(old).is_expired(bounds::now()));
        let change = RowChange {
            old: old.map(object_of),
            new: new.map(object_of),
        };
        self.indexes.change(guard, key, change, is_expired);
        true
    }

    /// Changes the entries of a key when `change` is made. Returns the change, with the whole new
    /// value in the buffer.
    fn update_entries(
        &self,
        guard: &Guard,
        key: Key<'_>,
        old: Option<&[u8]>,
        change: Change,
        new: &mut Vec<u8>,
    ) -> Change {
        let change = change.whole(old, new);
        if change != Change::Keep {
            self.change(guard, key.bytes, old, change.value(new));
        }
        change
    }

    /// The closure of an update: calls `f`, and changes the entries with the row.
    fn with_entries<'a, 'f: 'a>(
        &'a self,
        guard: &'a Guard,
        key: Key<'a>,
        f: &'a mut Updater<'f>,
    ) -> impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change + use<'a, 'f> {
        move |old, new| {
            let change = f(old, new);
            self.update_entries(guard, key, old, change, new)
        }
    }

    /// Calls `write`. Then frees large pieces that the changes of entries have retired, since no
    /// lock is held any more.
    fn write_then_free<R>(&self, guard: &Guard, write: impl FnOnce(&dyn Unique) -> R) -> R {
        let result = write(&*self.index);
        self.indexes.flush_postponed(guard);
        result
    }
}

impl Unique for Indexed<dyn Unique> {
    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.index.get(guard, key, out)
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.index.contains(guard, key)
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.index.get_into(guard, key, out, long)
    }

    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.index.get_or_lend(guard, key, out, long, lent)
    }

    fn get_many(
        &self,
        guard: &Guard,
        keys: &[Key<'_>],
        prefetch_first: bool,
        out: &mut ShortValues,
    ) {
        self.index.get_many(guard, keys, prefetch_first, out);
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        self.write_then_free(guard, |index| {
            index.update(guard, key, &mut self.with_entries(guard, key, f))
        })
    }

    fn update_with(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        self.write_then_free(guard, |index| {
            index.update_with(guard, key, scratch, &mut self.with_entries(guard, key, f))
        })
    }

    fn update_present(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        self.write_then_free(guard, |index| {
            index.update_present(guard, key, scratch, &mut self.with_entries(guard, key, f))
        })
    }

    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedUpdater<'_>) -> bool {
        self.write_then_free(guard, |index| {
            index.update_marked(guard, key, &mut |old, new, mark| {
                let change = f(old, new, mark);
                self.update_entries(guard, key, old, change, new)
            })
        })
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.write_then_free(guard, |index| {
            index.put(guard, key, value, &mut |old| {
                predicate(old) && self.change(guard, key.bytes, old, Some(value))
            })
        })
    }

    fn put_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
        preparation: &mut Preparation<'_>,
    ) -> Previous {
        self.write_then_free(guard, |index| {
            // The entries of the indexes change after the preparation, as the row does.
            let mut prepared = Preparation {
                ready: ReadyMark::none(),
                prepare: &mut |old, mark| {
                    *mark = preparation.run(old, *mark);
                    self.change(guard, key.bytes, old, Some(value));
                },
            };
            index.put_marked(guard, key, value, predicate, &mut prepared)
        })
    }

    fn remove(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        self.write_then_free(guard, |index| {
            index.remove(guard, key, &mut |old| {
                predicate(old) && self.change(guard, key.bytes, Some(old), None)
            })
        })
    }

    fn remove_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Previous {
        self.write_then_free(guard, |index| {
            index.remove_marked(guard, key, &mut |old, mark| {
                predicate(old, mark) && self.change(guard, key.bytes, Some(old), None)
            })
        })
    }

    delegate_unique!(index);
}

/// Maintains secondary indexes when objects under a key of a bag change.
///
/// Scans of a bag may read an object beside its change. So old entries are removed after the
/// objects are changed, still under the lock. A reader that misses an entry doesn't find the object
/// afterwards.
struct EntryNotes<'a> {
    indexes: &'a Indexes,
    guard: &'a Guard,
    key: &'a [u8],
    removals: Vec<Removal>,
}

impl Notes for EntryNotes<'_> {
    fn begin(&mut self, objects: &mut dyn Objects) {
        // X2: readers of the key wait from here on.
        objects.begin_change();
    }

    fn note(&mut self, old: Option<&[u8]>, new: Option<&[u8]>) {
        let (change, removals) = (RowChange { old, new }, &mut self.removals);
        with_entry_buffers(|buffers| {
            let indexes = self.indexes;
            indexes.add_new_entries(self.guard, self.key, change, false, buffers, removals);
        });
    }

    fn end(&mut self) {
        with_entry_buffers(|buffers| {
            let (removals, position) = (&mut self.removals, &mut buffers.position);
            self.indexes
                .remove_old_entries(self.guard, self.key, removals, position);
        });
    }
}

impl Multi for Indexed<dyn Multi> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        self.index.read(guard, key, values)
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.index.contains(guard, key)
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.index.update(guard, key, &mut |objects| {
            let notes = EntryNotes {
                indexes: &self.indexes,
                guard,
                key: key.bytes,
                removals: Vec::new(),
            };
            f(&mut NotedObjects { objects, notes });
        });
        self.indexes.flush_postponed(guard);
    }

    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        self.index.scan_key(guard, key, batch)
    }

    delegate_multi!(index);
}

impl<I: Container + ?Sized> Container for Indexed<I> {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.index.free_some(guard, limit, f)
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.index.memory() + self.indexes.memory()
    }

    delegate_container!(index);
}
