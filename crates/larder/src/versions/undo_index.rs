//! The undo index of a store.

use super::filter::BloomFilter;
use super::undo::{each_value, Override, VersionHead};
use crate::index::TableIndex;
use crate::objects::BaseStore;
use larder_index::{with_spare, Chains, Guard, Hint, Key, Unique, SHORT_VALUE};
use larder_term::object::all_outside_bytes;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A thread's buffer of more bytes than this is dropped.
const MAX_KEPT_CAPACITY: usize = 4096;

thread_local! {
    static RECORD: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Calls `f` with the thread's buffer, emptied.
pub(super) fn with_record<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let is_small = |record: &Vec<u8>| record.capacity() <= MAX_KEPT_CAPACITY;
    with_spare(&RECORD, is_small, |record| {
        record.clear();
        f(record)
    })
}

/// The undo index, and a filter that says for most keys without a record that they have none.
pub(super) struct UndoIndex {
    pub(super) index: Arc<dyn Unique>,
    /// The same index, in hash order.
    pub(super) chains: Option<Arc<Chains>>,
    pub(super) filter: BloomFilter,
    /// The bytes to which the handles in its versions lead: binaries, and elements out of line.
    outside: AtomicUsize,
    /// Whether a version is one object.
    is_unique: bool,
}

impl UndoIndex {
    /// An empty undo index of a store.
    pub(super) fn new(store: &BaseStore) -> Self {
        let entries = store.size();
        let is_ordered = store.index.is_ordered();
        let chains = (!is_ordered).then(|| Arc::new(Chains::new(entries)));
        UndoIndex {
            index: match &chains {
                Some(chains) => Arc::clone(chains) as _,
                None => TableIndex::ordered_under_locks(),
            },
            chains,
            filter: BloomFilter::new(entries),
            outside: AtomicUsize::new(0),
            is_unique: store.index.is_unique(),
        }
    }

    /// The index, if a key with this hash may have a record there.
    #[inline]
    pub(super) fn for_hash(&self, hash: u64) -> Option<&dyn Unique> {
        self.filter.may_have(hash).then_some(&*self.index)
    }

    /// Puts the first version of a key, which is all of its record. `place` is the hint of a
    /// `prefetch_entry` of the key, or the default.
    #[inline]
    pub(super) fn put_first(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (number, value): (u64, Override<'_>),
        place: &Hint<'_>,
    ) {
        match &self.chains {
            Some(chains) => {
                // The two parts of the record are written to its node at once.
                let (head, value) = VersionHead::of(number, value);
                chains.put_absent_parts(key, [head.bytes(), value]);
            }
            None => {
                // The tree takes a record in one piece: made on the stack if it is short, otherwise
                // in the thread's buffer.
                let (head, value) = VersionHead::of(number, value);
                let mut short = [0; SHORT_VALUE];
                match head.write(value, &mut short) {
                    Some(record) => self.index.put_absent(guard, key, record, place),
                    None => with_record(|record| {
                        record.extend_from_slice(head.bytes());
                        record.extend_from_slice(value);
                        self.index.put_absent(guard, key, record, place);
                    }),
                }
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.filter.memory()
    }

    /// The bytes to which the handles in its versions lead.
    pub(super) fn outside(&self) -> usize {
        // Ordering: Relaxed, here and below; an estimate.
        self.outside.load(Ordering::Relaxed)
    }

    /// A version is added.
    #[inline]
    pub(super) fn add_outside(&self, version: Override<'_>) {
        match self.outside_bytes(version) {
            0 => {}
            bytes => _ = self.outside.fetch_add(bytes, Ordering::Relaxed),
        }
    }

    /// A version is dropped.
    pub(super) fn subtract_outside(&self, version: Override<'_>) {
        self.outside
            .fetch_sub(self.outside_bytes(version), Ordering::Relaxed);
    }

    fn outside_bytes(&self, version: Override<'_>) -> usize {
        let mut bytes = 0;
        each_value(self.is_unique, version, &mut |value| {
            bytes += all_outside_bytes(value)
        });
        bytes
    }
}
