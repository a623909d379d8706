//! What differs between two snapshots of a table.
//!
//! ```text
//!  undo index    key: versions     a: 7        b: 12 3      c: 9 4      numbers of versions
//!  snapshots     older 4, newer 8  changed     the same     changed     4 ≤ version < 8
//! ```
//!
//! A key that changed between the two has a version that the older one sees and the newer one does
//! not: one whose number is not less than the older's, and less than the newer's. So only keys with
//! such a version are compared, and the rest of the table is not read.
//!
//! # Steps
//!
//! 1. *Wait* until nobody is pinned who was when the job began. A write that read the clock before
//!    the newer snapshot was taken, and is part of it, may not have added its version before. It is
//!    pinned from before it takes its lock until it has given it back.
//! 2. *Scan* the undo index, which has all such versions now.
//! 3. *Compare* what both snapshots see under each key that has one. A version may keep what a
//!    later write put back, so this may be the same.
//!
//! If the table was emptied by `delete_all_objects` between the two, they have different histories:
//! then all keys are compared, first the older's, then those that only the newer has. So they are
//! if (1) takes very long, as the caller itself may be pinned.

use super::snapshot::SnapshotOf;
use super::undo::{self, Listed, Override, Versions};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::ops::Operation;
use crate::raw;
use crate::scan::Cursor;
use crate::table::Table;
use larder_index::{Batch, Direction, Guard, Start, Values};
use larder_term::object::ObjectView;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A difference between two snapshots: what has to be done to the first to get the second.
#[derive(Clone, Copy)]
pub enum Difference<'a> {
    /// An object that only the second has.
    Insert(&'a ObjectView<'a>),
    /// The object under a key of a set or an ordered_set is another one.
    Replace {
        /// What the first has.
        old: &'a ObjectView<'a>,
        /// What the second has.
        new: &'a ObjectView<'a>,
    },
    /// An object that only the first has.
    Delete(&'a ObjectView<'a>),
}

/// What is called with each difference.
type Sink<'s> = dyn FnMut(Difference<'_>) + 's;

/// Bytes of an object that cost as much as a key.
const BYTES_A_UNIT: usize = 256;

/// A comparison of two snapshots under way.
pub struct DiffJob {
    old: Arc<Table>,
    new: Arc<Table>,
    place: Place,
    buffers: Buffers,
}

/// How often a job looks whether those have gone on who were pinned when it began.
const LOOKS: u32 = 100_000;
/// And how often in a slice: mostly they have, after a few.
const LOOKS_A_SLICE: u32 = 8;

/// How far a comparison has come.
enum Place {
    /// Nobody is pinned who was, once the flag is set; so many looks are left.
    Wait(Arc<AtomicBool>, u32),
    /// At a position of the undo index.
    Undo(UndoPlace),
    /// Among all objects of the older snapshot, or of the newer.
    All(Box<Cursor>, Side),
    End,
}

enum UndoPlace {
    Begin,
    At(Vec<u8>),
    Past(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

#[derive(Default)]
struct Buffers {
    batch: Batch,
    old: Values,
    new: Values,
    /// The key that was compared last, when all are.
    last: Vec<u8>,
}

impl Table {
    /// Begins to find what differs between two snapshots of a table: this one, and another. The
    /// cost is that of the keys that changed since the oldest live snapshot was taken, whatever the
    /// size of the table; of all keys if `delete_all_objects` was called between the two.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `TableType` if one is no snapshot, or they are of different tables.
    pub fn diff(self: &Arc<Self>, other: &Arc<Table>, who: OwnerId) -> Result<DiffJob, Error> {
        self.check_read(who)?;
        other.check_read(who)?;
        let (Some(old), Some(new)) = (self.snapshot_of(), other.snapshot_of()) else {
            return Err(Error::TableType);
        };
        if !Weak::ptr_eq(&old.source, &new.source) {
            return Err(Error::TableType);
        }
        // Objects expire without leaving a version.
        let history = old.history.upgrade();
        let bounded = history.is_some_and(|own| own.store().bounded().is_some());
        let place = if Weak::ptr_eq(&old.history, &new.history) && !bounded {
            Place::wait()
        } else {
            Place::all(self, Side::Old)
        };
        Ok(DiffJob {
            old: Arc::clone(self),
            new: Arc::clone(other),
            place,
            buffers: Buffers::default(),
        })
    }
}

impl Place {
    fn wait() -> Place {
        let gone_on = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone_on);
        let guard = larder_index::pin();
        // Ordering: Release, pairs with the load in `look`. The epoch's own orderings are what
        // makes the versions be seen.
        guard.defer(move || flag.store(true, Ordering::Release));
        guard.flush();
        Place::Wait(gone_on, LOOKS)
    }

    /// Step 1: another look. The next place, if it is time to go on.
    fn look(&mut self, table: &Table) -> Option<Place> {
        let Place::Wait(gone_on, left) = self else {
            return None;
        };
        // Runs what is deferred, if its time has come.
        larder_index::pin().flush();
        // Ordering: Acquire, as in `wait`.
        if gone_on.load(Ordering::Acquire) {
            return Some(Place::Undo(UndoPlace::Begin));
        }
        *left = left.saturating_sub(1);
        (*left == 0).then(|| Place::all(table, Side::Old))
    }

    fn all(table: &Table, side: Side) -> Place {
        Place::All(
            Box::new(Cursor::new(table, None, Direction::Forward, None)),
            side,
        )
    }
}

impl DiffJob {
    /// One slice: calls `sink` with differences, in no particular order.
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
            place,
            buffers,
        } = self;
        if let Place::Wait(..) = place {
            match (0..LOOKS_A_SLICE).find_map(|_| place.look(old)) {
                Some(next) => *place = next,
                None => return Ok(Step::More),
            }
        }
        loop {
            // Pinned for a batch, as in other long scans. While it is pinned, the snapshots hold
            // what they see, and the handles in copies of it stay alive.
            let guard = larder_index::pin();
            let pair = Pair {
                guard: &guard,
                old: (old, old.begin(&guard)?),
                new: (new, new.begin(&guard)?),
            };
            let next = match place {
                Place::End => return Ok(Step::Done),
                Place::Wait(..) => return Ok(Step::More),
                Place::Undo(at) => pair.scan_undo(at, budget, buffers, sink),
                Place::All(cursor, side) => pair.scan_all(cursor, *side, budget, buffers, sink),
            };
            if let Some(next) = next {
                *place = next;
            }
            if budget.is_exhausted() {
                return Ok(match place {
                    Place::End => Step::Done,
                    _ => Step::More,
                });
            }
        }
    }
}

/// Two snapshots that are read.
struct Pair<'g> {
    guard: &'g Guard,
    old: (&'g Table, Operation<'g>),
    new: (&'g Table, Operation<'g>),
}

impl Pair<'_> {
    /// What the snapshots know of themselves: the first and the second.
    fn snapshots(&self) -> Option<(&SnapshotOf, &SnapshotOf)> {
        Some((self.old.0.snapshot_of()?, self.new.0.snapshot_of()?))
    }

    /// Compares what both see under the keys of a batch of the undo index, which begins at a place.
    /// Moves the place behind the keys that were compared; gives the end when there is no more.
    fn scan_undo(
        &self,
        place: &mut UndoPlace,
        budget: &mut Budget,
        buffers: &mut Buffers,
        sink: &mut Sink<'_>,
    ) -> Option<Place> {
        let (old, new) = self.snapshots()?;
        let range = old.number.min(new.number)..old.number.max(new.number);
        let history = old.history.upgrade();
        let undo = history.as_ref().and_then(|history| history.undo());
        let (false, Some(undo)) = (range.is_empty(), undo) else {
            return Some(Place::End);
        };
        let start = match place {
            UndoPlace::Begin => Start::Edge,
            UndoPlace::At(position) => Start::At(position),
            UndoPlace::Past(position) => Start::Past(position),
        };
        let mut batch = std::mem::take(&mut buffers.batch);
        batch.clear();
        undo.scan(self.guard, start, Direction::Forward, &mut batch);
        let mut stopped = None;
        for i in 0..batch.len() {
            let (key, record) = batch.entry(i);
            let changed = Versions::of(record).any(|(number, _)| range.contains(&number));
            let cost = match changed {
                true => self.compare(key, Some(record), buffers, sink),
                false => 0,
            };
            if !budget.spend(1 + cost) && i + 1 < batch.len() {
                let mut position = Vec::new();
                undo.position(self.old.0.key(key), &mut position);
                stopped = Some(position);
                break;
            }
        }
        let end = stopped.is_none() && batch.done;
        *place = match stopped {
            Some(position) => UndoPlace::Past(position),
            None => UndoPlace::At(std::mem::take(&mut batch.resume)),
        };
        buffers.batch = batch;
        end.then_some(Place::End)
    }

    /// Compares what both see under the next keys of one of them.
    fn scan_all(
        &self,
        cursor: &mut Cursor,
        side: Side,
        budget: &mut Budget,
        buffers: &mut Buffers,
        sink: &mut Sink<'_>,
    ) -> Option<Place> {
        let (table, op) = match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        };
        let mut batch = std::mem::take(&mut buffers.batch);
        let usable = cursor.fill(table, op, (0, false), &mut batch);
        for i in 0..usable {
            let key = batch.key(i);
            // The objects of a bag's key come one after another.
            let mut cost = 0;
            if buffers.last != key {
                buffers.last.clear();
                buffers.last.extend_from_slice(key);
                let indexed = table.key(key);
                // What both have was compared among the older's.
                let compared =
                    side == Side::New && self.old.1.store.index.contains(self.guard, indexed);
                if !compared {
                    cost = self.compare(key, None, buffers, sink);
                }
            }
            if !budget.spend(1 + cost) && i + 1 < usable {
                cursor.stop(table, op, &batch, i + 1);
                break;
            }
        }
        buffers.batch = batch;
        match side {
            _ if usable > 0 => None,
            Side::Old => {
                buffers.last.clear();
                Some(Place::all(self.new.0, Side::New))
            }
            Side::New => Some(Place::End),
        }
    }

    /// Calls `sink` with the differences under a key, of which `record` has the versions, if they
    /// share them; what that cost beside a unit.
    fn compare(
        &self,
        key: &[u8],
        record: Option<&[u8]>,
        buffers: &mut Buffers,
        sink: &mut Sink<'_>,
    ) -> u32 {
        let Buffers { old, new, .. } = buffers;
        self.read(&self.old, key, record, old);
        self.read(&self.new, key, record, new);
        let cost = (old.bytes.len() + new.bytes.len()) / BYTES_A_UNIT + old.len() + new.len();
        if self.old.0.kind().is_unique() {
            self.compare_one(key, old.iter().next(), new.iter().next(), sink);
        } else {
            self.compare_all(key, old, new, sink);
        }
        u32::try_from(cost).unwrap_or(u32::MAX / 2)
    }

    /// Reads what a snapshot sees under a key.
    fn read(
        &self,
        (table, op): &(&Table, Operation<'_>),
        key: &[u8],
        record: Option<&[u8]>,
        values: &mut Values,
    ) {
        // What a record says of a live snapshot is so for as long as that lives.
        let number = table.snapshot_of().map_or(0, |of| of.number);
        match record.and_then(|record| undo::as_of(record, number)) {
            None => op.store.index.copy(self.guard, table.key(key), values),
            Some(version) => {
                values.clear();
                match version {
                    Override::Value(value) if table.kind().is_unique() => values.push(value),
                    list => Listed::of(list).for_each(|(_, value)| values.push(value)),
                }
            }
        }
    }

    fn compare_one(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>, sink: &mut Sink<'_>) {
        let table = self.old.0;
        let (mut plain_old, mut plain_new) = (Vec::new(), Vec::new());
        let old_object = old.map(|value| raw::view(key, value, table.keypos(), &mut plain_old));
        let new_object = new.map(|value| raw::view(key, value, table.keypos(), &mut plain_new));
        match (&old_object, &new_object) {
            (None, None) => {}
            (None, Some(new)) => sink(Difference::Insert(new)),
            (Some(old), None) => sink(Difference::Delete(old)),
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

    /// Compares the objects under a key of a bag: how often each is there, in no order.
    fn compare_all(&self, key: &[u8], old: &Values, new: &Values, sink: &mut Sink<'_>) {
        let table = self.old.0;
        let mut plain = Vec::new();
        let mut view = |value, sink: &mut Sink<'_>, of: fn(&ObjectView<'_>, &mut Sink<'_>)| {
            of(&raw::view(key, value, table.keypos(), &mut plain), sink);
        };
        // The older one's objects that have no counterpart, by a hash that the same objects share.
        let mut alone: HashMap<u64, Vec<&[u8]>> = HashMap::new();
        for value in old.iter() {
            alone
                .entry(raw::object_hash(value))
                .or_default()
                .push(value);
        }
        for value in new.iter() {
            let hash = raw::object_hash(value);
            let counterpart = alone.get_mut(&hash).and_then(|those| {
                let i = those.iter().position(|own| table.same(key, own, value))?;
                Some(those.swap_remove(i))
            });
            if counterpart.is_none() {
                view(value, sink, |object, sink| sink(Difference::Insert(object)));
            }
        }
        for value in alone.into_values().flatten() {
            view(value, sink, |object, sink| sink(Difference::Delete(object)));
        }
    }
}
