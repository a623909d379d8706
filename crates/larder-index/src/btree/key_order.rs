//! The default index of ordered tables. Its entries are sorted by the bytes of their keys.
//!
//! A position is the key itself. The operations are those of the B+-tree (`btree`).

use crate::btree::{BPlusTree, ScanRequest, StepStart};
use crate::hint::Hint;
use crate::scratch::with_scratch;
use crate::{
    Batch, Container, Direction, Key, LeafConfig, Lookup, MarkedUpdater, Predicate, Preparation,
    Previous, Ranked, Start, Stats, StepEntry, Stepped, Unique, Updater, SHORT_VALUE,
};
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// An index in key order.
pub struct KeyOrder(BPlusTree);

impl KeyOrder {
    /// An empty index.
    pub(crate) fn new(config: LeafConfig) -> Self {
        KeyOrder(BPlusTree::new(config))
    }

    /// The same index, for users who hold locks of their own while they write to it.
    pub(crate) fn under_locks(self) -> Self {
        KeyOrder(self.0.under_locks())
    }
}

impl Unique for KeyOrder {
    fn is_ordered(&self) -> bool {
        true
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.0.get(guard, key.bytes, out)
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.0.contains(guard, key.bytes)
    }

    fn is_seen_empty(&self, guard: &Guard) -> bool {
        self.0.is_seen_empty(guard)
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.0.prefetch(guard, keys.iter().map(|key| key.bytes));
    }

    fn prefetch_entry<'g>(&'g self, guard: &'g Guard, key: Key<'_>) -> Hint<'g> {
        self.0.prefetch_leaf(guard, key.bytes)
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.0.get_into(guard, key.bytes, out, long)
    }

    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.0.get_or_lend(guard, key.bytes, out, long, lent)
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.0.put(guard, key.bytes, value, predicate)
    }

    fn put_absent(&self, guard: &Guard, key: Key<'_>, value: &[u8], hint: &Hint<'_>) {
        self.0.put_absent(guard, key.bytes, value, hint);
    }

    fn get_with_hint<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
        hint: &mut Hint<'g>,
    ) -> Lookup {
        self.0.get_with_hint(guard, key.bytes, out, long, hint)
    }

    fn put_with_hint(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        hint: &Hint<'_>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.0
            .put_with_hint(guard, key.bytes, value, hint, predicate)
    }

    fn remove(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        self.0.remove(guard, key.bytes, predicate)
    }

    fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.0
            .remove_scanned(guard, key.bytes, (batch, chosen), predicate)
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        with_scratch(|scratch| self.0.update(guard, key.bytes, scratch, f))
    }

    fn update_with(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        self.0.update(guard, key.bytes, scratch, f)
    }

    fn update_present(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        self.0.update_present(guard, key.bytes, scratch, f)
    }

    fn put_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
        preparation: &mut Preparation<'_>,
    ) -> Previous {
        self.0
            .put_marked(guard, key.bytes, value, predicate, preparation)
    }

    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedUpdater<'_>) -> bool {
        with_scratch(|scratch| self.0.update_marked(guard, key.bytes, scratch, f))
    }

    fn remove_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Previous {
        self.0.remove_marked(guard, key.bytes, predicate)
    }

    fn flush_postponed(&self, guard: &Guard) {
        self.0.flush_postponed(guard);
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        // All positions, from the start to the caller's end, within its limits. The end is taken
        // out of the batch while the batch is filled.
        let until = std::mem::replace(&mut batch.until, Bound::Unbounded);
        let request = ScanRequest {
            start,
            direction,
            until: until.as_ref().map(Vec::as_slice),
            limit: batch.limit(),
            value_limit: batch.value_limit(),
        };
        self.0.scan(guard, &request, batch);
        batch.until = until;
    }

    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        let from = match key {
            Some(key) => StepStart::Position(key.bytes),
            None => StepStart::Edge,
        };
        self.0.try_step(guard, from, direction, entry)
    }

    fn sample<'g>(&'g self, guard: &'g Guard, point: u64, batch: &mut Batch<'g>) -> u64 {
        self.0.sample(guard, point, batch)
    }

    fn ranked(&self) -> Option<&dyn Ranked> {
        Some(&self.0)
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(key.bytes);
    }
}

impl Container for KeyOrder {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.0.free_some(guard, limit, f)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.memory()
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }

    fn expect_keys(&self, now: usize, soon: usize) {
        self.0.expect_keys(now, soon);
    }
}
