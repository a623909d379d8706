//! The read set of a transaction in one table: keys, ranges of positions, and entries of secondary
//! indexes.
//!
//! What was not there counts as read, too: a key that was looked for, and all of a range. So what
//! comes into a range later, a phantom, is noticed.
//!
//! A range has the positions of keys, from `low` to `high`, both included, so it may say a little
//! more than was read; never less.
//!
//! Entries that were read hold if their counts are the same (`indexes::changes`). The rows that
//! they led to are among the keys. Other rows that a look would meet at the commit have come since,
//! and their entries with them.

use super::super::history::History;
use super::super::undo;
use crate::indexes::{EntriesRead, Indexes};
use larder_index::sync::{planted, Fault};
use larder_index::{Batch, Direction, Guard, Key, Start};
use std::collections::BTreeSet;

/// A range of positions; None where it has no end.
#[derive(Default)]
struct Range {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

/// What a transaction has read of a table.
#[derive(Default)]
pub(super) struct Reads {
    keys: BTreeSet<Vec<u8>>,
    ranges: Vec<Range>,
    entries: Vec<EntriesRead>,
}

impl Reads {
    pub(super) fn key(&mut self, key: &[u8]) {
        if !self.keys.contains(key) {
            self.keys.insert(key.to_vec());
        }
    }

    /// A scan has read from one position to another in this direction.
    pub(super) fn range(&mut self, from: Option<&[u8]>, to: Option<&[u8]>, direction: Direction) {
        let (low, high) = match direction {
            Direction::Forward => (from, to),
            Direction::Backward => (to, from),
        };
        // A scan goes on where it was: one range for all of it.
        if let Some(last) = self.ranges.last_mut() {
            match direction {
                Direction::Forward if last.high.is_some() && last.high.as_deref() == low => {
                    last.high = high.map(<[u8]>::to_vec);
                    return;
                }
                Direction::Backward if last.low.is_some() && last.low.as_deref() == high => {
                    last.low = low.map(<[u8]>::to_vec);
                    return;
                }
                _ => {}
            }
        }
        self.ranges.push(Range {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
        });
    }

    /// Entries of a secondary index were read.
    pub(super) fn entries(&mut self, read: EntriesRead) {
        // The first look counts: what it has seen must not have changed since.
        if !self.entries.iter().any(|other| read.is_within(other)) {
            self.entries.push(read);
        }
    }

    /// The keys that were read.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &key[..])
    }

    /// Whether something was read that no key's lock protects.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty() || !self.entries.is_empty()
    }

    /// Whether a look into the secondary indexes, which are these now, would find the same entries.
    ///
    /// 1. Nothing has changed in the table: then the entries are the same, whatever was counted.
    /// 2. Otherwise each write of a key that has changed is waited for. So its entries are changed
    ///    and counted, and the counts tell.
    pub(super) fn entries_hold(
        &self,
        (history, now): (&History, Option<&Indexes>),
        guard: &Guard,
        number: u64,
    ) -> bool {
        if self.entries.is_empty() {
            return true;
        }
        // (1)
        let mut has_changed = false;
        let objects = &history.store().index;
        each_changed(&Range::default(), (history, guard, number), &mut |key| {
            has_changed = true;
            if !planted(Fault::UnsettledEntry) {
                objects.contains_settled(guard, key);
            }
            true
        });
        // (2) An index that was dropped counts no more.
        let is_counted = |read: &EntriesRead| {
            let mut each = now.iter().flat_map(|now| &now.each);
            each.any(|entries| read.is_of(&entries.changes))
        };
        let holds = |read: &EntriesRead| is_counted(read) && read.holds();
        !has_changed || self.entries.iter().all(holds)
    }

    /// Whether no key in the ranges has changed since the snapshot with this number.
    pub(super) fn ranges_hold(&self, history: &History, guard: &Guard, number: u64) -> bool {
        let is_unchanged = |range: &Range| {
            let mut holds = true;
            each_changed(range, (history, guard, number), &mut |_| {
                holds = false;
                false
            });
            holds
        };
        self.ranges.iter().all(is_unchanged)
    }
}

/// Visits the keys in a range that have changed since the snapshot with this number, until `visit`
/// says false.
fn each_changed(
    range: &Range,
    (history, guard, number): (&History, &Guard, u64),
    visit: &mut dyn FnMut(Key<'_>) -> bool,
) {
    let Some(index) = history.undo() else {
        return;
    };
    let (mut batch, mut position) = (Batch::default(), Vec::new());
    let mut from = range.low.clone();
    loop {
        let start = from.as_ref().map_or(Start::Edge, |from| Start::At(from));
        index.scan(guard, start, Direction::Forward, &mut batch);
        for i in 0..batch.len() {
            let (bytes, record) = batch.entry(i);
            let key = history.key(bytes);
            index.position(key, &mut position);
            if range.high.as_ref().is_some_and(|high| position > *high) {
                return;
            }
            if undo::newest(record) >= number && !visit(key) {
                return;
            }
        }
        if batch.done {
            return;
        }
        from = Some(std::mem::take(&mut batch.resume));
    }
}
