//! The undo index of a store.

use super::filter::Filter;
use super::history::with_record;
use super::undo::{self, Override, VersionHead};
use crate::index::TableIndex;
use crate::objects::BaseStore;
use larder_index::{Chains, Guard, Key, Unique};
use std::sync::Arc;

/// The undo index, and a filter that says for most keys without a record that they have none.
pub(super) struct UndoIndex {
    pub(super) index: Arc<dyn Unique>,
    /// The same index, in hash order.
    pub(super) chains: Option<Arc<Chains>>,
    pub(super) filter: Filter,
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
            filter: Filter::new(entries),
        }
    }

    /// Puts the first version of a key.
    #[inline]
    pub(super) fn put_first(&self, guard: &Guard, key: Key<'_>, number: u64, value: Override<'_>) {
        match &self.chains {
            Some(chains) => {
                // The record is written to its node at once.
                let (head, value) = VersionHead::of(number, value);
                chains.put_absent_parts(key, [head.bytes(), value]);
            }
            None => with_record(|record| {
                undo::push(number, value, record);
                self.index.put_absent(guard, key, record);
            }),
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.filter.memory()
    }
}
