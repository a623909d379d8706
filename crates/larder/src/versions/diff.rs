//! The differences between two snapshots of a table.
//!
//! ```text
//!  undo index    key: versions     a: 7        b: 12 3      c: 9 4      numbers of versions
//!  snapshots     older 4, newer 8  changed     the same     changed     4 ≤ version < 8
//! ```
//!
//! A key that changed between the two has a version that the older snapshot sees and the newer does
//! not: its number is not less than the older snapshot's, but less than the newer's. Only keys with
//! such a version are compared; the rest of the table is not read.
//!
//! # Steps
//!
//! 1. *Wait* until every thread that was pinned when the job began has been unpinned. A write that
//!    read the clock before the newer snapshot was taken is part of that snapshot, but may not have
//!    stored its version yet. It is pinned from before it takes its lock until after it has
//!    released it, so after the wait the version is there.
//! 2. *Scan* the undo index, which now contains all such versions.
//! 3. *Compare* what both snapshots see under each key with such a version. The two may be equal,
//!    if a later write restored the old object.
//!
//! If `delete_all_objects` emptied the table between the two, the snapshots have different
//! histories. Then all keys are compared: first those of the older snapshot, then those that only
//! the newer one has. The same is done if step 1 takes very long, for example because the caller
//! itself is pinned.

use super::undo::{self, BagObjects, Override, Versions};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::ops::Operation;
use crate::raw;
use crate::resume_point::ResumePoint;
use crate::scan::Cursor;
use crate::table::{EngineTable, SnapshotOf};
use larder_index::{Batch, Direction, Guard, Start, Values};
use larder_term::object::{self, ObjectView};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A difference between two snapshots: a change that leads from the first to the second.
#[derive(Clone, Copy)]
pub enum Difference<'a> {
    /// An object that only the second has.
    Insert(&'a ObjectView<'a>),
    /// The object under a key of a set or an ordered_set differs.
    Replace {
        /// The object in the first.
        old: &'a ObjectView<'a>,
        /// The object in the second.
        new: &'a ObjectView<'a>,
    },
    /// An object that only the first has.
    Delete(&'a ObjectView<'a>),
}

/// The callback for each difference.
type DifferenceSink<'s> = dyn FnMut(Difference<'_>) + 's;

/// How many bytes of objects cost as much of the budget as one key.
const BYTES_PER_BUDGET_UNIT: usize = 256;

/// A comparison of two snapshots, which proceeds in slices.
pub struct DiffJob {
    old: Arc<EngineTable>,
    new: Arc<EngineTable>,
    phase: DiffPhase,
    buffers: DiffBuffers,
}

/// How often step 1 polls before it gives up.
const LOOKS: u32 = 100_000;
/// How often step 1 polls in a slice. A few times are usually enough.
const LOOKS_A_SLICE: u32 = 8;

/// The progress of a comparison.
enum DiffPhase {
    /// Step 1. The flag is set when the wait is over; the number of polls is limited.
    Wait(Arc<AtomicBool>, u32),
    /// Steps 2 and 3, at a point of the undo index.
    Undo(ResumePoint),
    /// All keys are compared; the scan is in the older snapshot or in the newer.
    All(Box<Cursor>, Side),
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

#[derive(Default)]
struct DiffBuffers {
    batch: Batch<'static>,
    old: Values,
    new: Values,
    /// If all keys are compared: the key that was compared last.
    last: Vec<u8>,
}

impl EngineTable {
    /// Begins a comparison of two snapshots of a table: this one and another. The cost depends on
    /// the number of keys that have changed since the oldest live snapshot was taken, not on the
    /// size of the table. If `delete_all_objects` was called between the two, it depends on the
    /// number of all keys.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `TableType` if one is not a snapshot or they are of different tables.
    pub fn diff(
        self: &Arc<Self>,
        other: &Arc<EngineTable>,
        who: OwnerId,
    ) -> Result<DiffJob, Error> {
        // Both must be readable. The two may have other owners than the table.
        self.check_read(who)?;
        other.check_read(who)?;
        let (Some(old), Some(new)) = (self.snapshot_of(), other.snapshot_of()) else {
            return Err(Error::TableType);
        };
        if !Weak::ptr_eq(&old.source, &new.source) {
            return Err(Error::TableType);
        }
        // In a bounded table objects expire without leaving a version, so all keys are compared.
        let history = old.history.upgrade();
        let bounded = history.is_some_and(|history| history.is_bounded());
        let phase = if Weak::ptr_eq(&old.history, &new.history) && !bounded {
            DiffPhase::wait()
        } else {
            DiffPhase::all(self, Side::Old)
        };
        Ok(DiffJob {
            old: Arc::clone(self),
            new: Arc::clone(other),
            phase,
            buffers: DiffBuffers::default(),
        })
    }
}

impl DiffPhase {
    fn wait() -> DiffPhase {
        let gone_on = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone_on);
        let guard = larder_index::pin();
        // Ordering: Release, pairs with the load in `look`. The versions are visible because of the
        // epoch's own orderings.
        guard.defer(move || flag.store(true, Ordering::Release));
        guard.flush();
        DiffPhase::Wait(gone_on, LOOKS)
    }

    /// Step 1: polls once, and returns the next phase if the wait is over.
    fn look(&mut self, table: &EngineTable) -> Option<DiffPhase> {
        let DiffPhase::Wait(gone_on, left) = self else {
            return None;
        };
        // Runs the deferred function if its epoch has passed.
        larder_index::pin().flush();
        // Ordering: Acquire, as in `wait`.
        if gone_on.load(Ordering::Acquire) {
            return Some(DiffPhase::Undo(ResumePoint::Begin));
        }
        *left = left.saturating_sub(1);
        (*left == 0).then(|| DiffPhase::all(table, Side::Old))
    }

    fn all(table: &EngineTable, side: Side) -> DiffPhase {
        DiffPhase::All(
            Box::new(Cursor::everywhere(table, Direction::Forward)),
            side,
        )
    }
}

impl DiffJob {
    /// Works for one slice and calls `sink` with the differences found, in no particular order.
    ///
    /// # Errors
    /// `NoTable` if one of the snapshots was released meanwhile.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        sink: &mut dyn FnMut(Difference<'_>),
    ) -> Result<Step, Error> {
        let DiffJob {
            old,
            new,
            phase,
            buffers,
        } = self;
        // Step 1. A few looks in each slice, since others only need to end their current operation.
        if let DiffPhase::Wait(..) = phase {
            match (0..LOOKS_A_SLICE).find_map(|_| phase.look(old)) {
                Some(next) => *phase = next,
                None => return Ok(Step::More),
            }
        }
        loop {
            // The pin lasts for one batch, as in other long scans. Meanwhile the snapshots keep
            // their versions, and the handles in copies of them stay valid.
            let guard = larder_index::pin();
            let pair = SnapshotPair {
                guard: &guard,
                old: Opened {
                    table: old,
                    op: old.begin(&guard)?,
                },
                new: Opened {
                    table: new,
                    op: new.begin(&guard)?,
                },
            };
            // Steps 2 and 3 for one batch. `next` is the phase that follows if this one is over.
            let next = match phase {
                DiffPhase::End => return Ok(Step::Done),
                DiffPhase::Wait(..) => return Ok(Step::More),
                DiffPhase::Undo(at) => pair.scan_undo(at, budget, buffers, sink),
                DiffPhase::All(cursor, side) => pair.scan_all(cursor, *side, budget, buffers, sink),
            };
            if let Some(next) = next {
                *phase = next;
            }
            if budget.is_exhausted() {
                return Ok(match phase {
                    DiffPhase::End => Step::Done,
                    _ => Step::More,
                });
            }
        }
    }
}

/// Two snapshots that are being read.
struct SnapshotPair<'g> {
    guard: &'g Guard,
    old: Opened<'g>,
    new: Opened<'g>,
}

/// A snapshot, and an operation that reads it.
struct Opened<'g> {
    table: &'g EngineTable,
    op: Operation<'g>,
}

impl SnapshotPair<'_> {
    /// The descriptions of the first and the second snapshot.
    fn snapshots(&self) -> Option<(&SnapshotOf, &SnapshotOf)> {
        Some((self.old.table.snapshot_of()?, self.new.table.snapshot_of()?))
    }

    /// Steps 2 and 3 for one batch of the undo index, which begins at `resume`. Moves that past the
    /// keys that were compared, and returns the end if there are no more.
    fn scan_undo(
        &self,
        resume: &mut ResumePoint,
        budget: &mut Budget,
        buffers: &mut DiffBuffers,
        sink: &mut DifferenceSink<'_>,
    ) -> Option<DiffPhase> {
        let (old, new) = self.snapshots()?;
        // The numbers of the versions that one of the two sees and the other does not. The caller
        // may have passed them in either order.
        let range = old.number.min(new.number)..old.number.max(new.number);
        let history = old.history.upgrade();
        let undo = history.as_ref().and_then(|history| history.undo());
        let (false, Some(undo)) = (range.is_empty(), undo) else {
            return Some(DiffPhase::End);
        };
        let forward = Direction::Forward;
        let mut lent = std::mem::take(&mut buffers.batch);
        lent.lend(|batch| {
            let start = resume.start(Start::Edge, forward);
            undo.scan(self.guard, start, forward, batch);
            // A position stays valid even if the key's record is dropped meanwhile.
            resume.move_past(batch);
            for i in 0..batch.len() {
                // The record has all versions of the key. One of them in the range shows a change
                // between the two.
                let (key, record) = batch.entry(i);
                let changed = Versions::of(record).any(|(number, _)| range.contains(&number));
                let cost = match changed {
                    true => self.compare(key, Some(record), buffers, sink),
                    false => 0,
                };
                // The slice ends in the middle of the batch. The next one scans on from this key.
                if !budget.spend(1 + cost) && i + 1 < batch.len() {
                    let mut position = Vec::new();
                    undo.position(self.old.table.key(key), &mut position);
                    *resume = ResumePoint::Past(position);
                    break;
                }
            }
        });
        buffers.batch = lent;
        (*resume == ResumePoint::End).then_some(DiffPhase::End)
    }

    /// Compares what both snapshots see under the next keys of one of them.
    fn scan_all(
        &self,
        cursor: &mut Cursor,
        side: Side,
        budget: &mut Budget,
        buffers: &mut DiffBuffers,
        sink: &mut DifferenceSink<'_>,
    ) -> Option<DiffPhase> {
        // The receiver of `diff` is scanned first, and then its argument. Either may be the older.
        let Opened { table, op } = match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        };
        let mut lent = std::mem::take(&mut buffers.batch);
        let usable = lent.lend(|batch| {
            // What the snapshot doesn't have may be much, and costs, too.
            let filled = cursor.fill_in_slice(table, op, 0, false, budget, batch);
            let ControlFlow::Continue(usable) = filled else {
                return 0;
            };
            for i in 0..usable {
                let key = batch.key(i);
                // The objects of one key of a bag are adjacent. They are compared together.
                let mut cost = 0;
                if buffers.last != key {
                    buffers.last.clear();
                    buffers.last.extend_from_slice(key);
                    let indexed = table.key(key);
                    // Keys that both have were compared in the scan of the older snapshot.
                    let compared =
                        side == Side::New && self.old.op.store.index.contains(self.guard, indexed);
                    if !compared {
                        cost = self.compare(key, None, buffers, sink);
                    }
                }
                if !budget.spend(1 + cost) && i + 1 < usable {
                    cursor.stop(table, op, batch, i + 1);
                    break;
                }
            }
            usable
        });
        buffers.batch = lent;
        // The batch had entries. The next call goes on after them.
        match side {
            _ if usable > 0 || !cursor.is_at_end() => None,
            Side::Old => {
                buffers.last.clear();
                Some(DiffPhase::all(self.new.table, Side::New))
            }
            Side::New => Some(DiffPhase::End),
        }
    }

    /// Calls `sink` with the differences under a key, and returns the cost beyond that of the key
    /// itself. `record` has the versions of the key, if the snapshots share a history.
    fn compare(
        &self,
        key: &[u8],
        record: Option<&[u8]>,
        buffers: &mut DiffBuffers,
        sink: &mut DifferenceSink<'_>,
    ) -> u32 {
        let DiffBuffers { old, new, .. } = buffers;
        // What each snapshot sees under the key.
        self.read(&self.old, key, record, old);
        self.read(&self.new, key, record, new);
        // Comparing costs as much as there is to read.
        let bytes: usize = old.iter().chain(new.iter()).map(object::plain_len).sum();
        let cost = bytes / BYTES_PER_BUDGET_UNIT + old.len() + new.len();
        if self.old.table.kind().is_unique() {
            self.compare_one(key, old.iter().next(), new.iter().next(), sink);
        } else {
            self.compare_all(key, old, new, sink);
        }
        u32::try_from(cost).unwrap_or(u32::MAX / 2)
    }

    /// Reads the objects that a snapshot sees under a key.
    fn read(
        &self,
        Opened { table, op }: &Opened<'_>,
        key: &[u8],
        record: Option<&[u8]>,
        values: &mut Values,
    ) {
        // The record is read once for both snapshots. So both see the same versions.
        // A record stays valid for a live snapshot, so the copy made by the scan can be used.
        let number = table.snapshot_of().map_or(0, |of| of.number);
        // Without a version, the snapshot sees what is in the store.
        match record.and_then(|record| undo::as_of(record, number)) {
            None => op.store.index.copy(self.guard, table.key(key), values),
            Some(version) => {
                values.clear();
                match version {
                    Override::Value(value) if table.kind().is_unique() => values.push(value),
                    list => BagObjects::of(list).for_each(|(_, value)| values.push(value)),
                }
            }
        }
    }

    /// Compares the objects under a key of a set or ordered_set.
    fn compare_one(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        sink: &mut DifferenceSink<'_>,
    ) {
        let table = self.old.table;
        // Both objects are open at once, so each has a buffer for its unpacked elements.
        let (mut plain_old, mut plain_new) = (Vec::new(), Vec::new());
        let old_object = old.map(|value| raw::view(key, value, table.keypos(), &mut plain_old));
        let new_object = new.map(|value| raw::view(key, value, table.keypos(), &mut plain_new));
        match (&old_object, &new_object) {
            (None, None) => {}
            (None, Some(new)) => sink(Difference::Insert(new)),
            (Some(old), None) => sink(Difference::Delete(old)),
            // The key has a version, but the object may have been written back unchanged.
            (Some(old_object), Some(new_object)) => {
                let same = match (old, new) {
                    (Some(old), Some(new)) => table.same(key, old, new),
                    _ => false,
                };
                if !same {
                    sink(Difference::Replace {
                        old: old_object,
                        new: new_object,
                    });
                }
            }
        }
    }

    /// Compares the objects under a key of a bag as multisets: their order does not matter.
    fn compare_all(&self, key: &[u8], old: &Values, new: &Values, sink: &mut DifferenceSink<'_>) {
        let table = self.old.table;
        let mut plain = Vec::new();
        let mut view = |value,
                        sink: &mut DifferenceSink<'_>,
                        of: fn(&ObjectView<'_>, &mut DifferenceSink<'_>)| {
            of(&raw::view(key, value, table.keypos(), &mut plain), sink);
        };
        // The objects of the older snapshot that have no counterpart yet, by a hash on which equal
        // objects agree.
        let mut alone: HashMap<u64, Vec<&[u8]>> = HashMap::new();
        // Objects are matched by hash first. Two are compared only if their hashes are equal.
        for value in old.iter() {
            alone
                .entry(raw::object_hash(value))
                .or_default()
                .push(value);
        }
        // Each object of the newer snapshot takes one equal object away. What it finds no partner
        // for is new.
        for value in new.iter() {
            let hash = raw::object_hash(value);
            let counterpart = alone.get_mut(&hash).and_then(|those| {
                let i = those.iter().position(|that| table.same(key, that, value))?;
                Some(those.swap_remove(i))
            });
            if counterpart.is_none() {
                view(value, sink, |object, sink| sink(Difference::Insert(object)));
            }
        }
        // What is left over was deleted.
        for value in alone.into_values().flatten() {
            view(value, sink, |object, sink| sink(Difference::Delete(object)));
        }
    }
}
