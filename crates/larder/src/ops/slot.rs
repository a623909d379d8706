//! Objects by slot number, as `ets:slot/2`.
//!
//! ```text
//!  ordered_set       slot i is the i-th object
//!  other types       slot i is the objects whose hash begins with the bits of i
//! ```

use super::begin::Operation;
use crate::budget::Budget;
use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::raw;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Key, Start};
use larder_term::object::ObjectView;

/// The result of [`EngineTable::slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The slot has this number of objects, all of which were visited.
    Objects(usize),
    /// The slot after the last one.
    End,
}

/// The greatest average number of objects in a slot of an unordered table: about what a bucket of
/// the index has, since a scan copies and sorts whole buckets.
const SLOT_LOAD: usize = 16;

type Visit<'v> = dyn FnMut(&ObjectView<'_>) + 'v;

/// What a search for a slot works with.
struct SlotBuffers<'b, 'g> {
    batch: &'b mut Batch<'g>,
    plain: &'b mut Vec<u8>,
    position: &'b mut Vec<u8>,
}

impl EngineTable {
    /// Calls `visit` with each object in slot `i`, from 0.
    ///
    /// An ordered_set has one slot per object, in order. Other tables have a number of slots that
    /// follows from their size, with eight to sixteen objects per slot on average. As long as that
    /// number is the same, each object stays in its slot.
    ///
    /// # Errors
    /// - `NoTable`, `Access`: as for other reads.
    /// - `Busy`: as for other reads, and while leaves are being counted (see `rank`).
    /// - `BadSlot`: `i` is after [`Slot::End`].
    ///
    /// # Complexity
    /// Ordered: that of `rank`; O(i) if the index answers no queries of ranks. Unordered: O(1) on
    /// average.
    pub fn slot(&self, who: OwnerId, i: usize, visit: &mut Visit<'_>) -> Result<Slot, Error> {
        with_local(|local| self.slot_in(local, who, i, visit))
    }

    /// Like `slot`, for hosts.
    ///
    /// # Errors
    /// Those of `slot`.
    pub fn slot_in(
        &self,
        local: &mut Local,
        who: impl Who,
        i: usize,
        visit: &mut Visit<'_>,
    ) -> Result<Slot, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let op = self.begin(&guard)?;
        // The number of slots follows from the current size. So if others write while a caller
        // walks from slot to slot, it may visit an object twice or not at all.
        let slots = self.slots(&op)?;
        // Exactly one number after the last slot is the end, as in `ets`. Beyond it is an error.
        if i >= slots {
            return if i == slots {
                Ok(Slot::End)
            } else {
                Err(Error::BadSlot)
            };
        }
        let mut buffers = ThreadBuffers::new();
        let Buffers {
            batch,
            plain,
            position,
            ..
        } = &mut *buffers;
        batch.lend(|batch| {
            let mut s = SlotBuffers {
                batch,
                plain,
                position,
            };
            // In an unordered table, a slot has the objects whose hashes begin with its number.
            if !self.kind().is_ordered() {
                let bits = slots.trailing_zeros();
                return Ok(Slot::Objects(self.hash_slot(&op, &mut s, i, bits, visit)));
            }
            // In an ordered_set, it has the i-th object. Find that by its rank, if the index knows
            // ranks.
            let (n, forward) = (i as u64, Direction::Forward);
            let is_there = self.with_ranks_of(local, &op, |ranked, work| {
                ranked.nth(&guard, n, forward, work, s.batch)
            });
            match is_there {
                Ok(true) => Ok(self.only_object(&mut s, 0, visit)),
                // Others have removed so many objects meanwhile that there is none.
                Ok(false) => Ok(Slot::End),
                Err(Error::Unranked) => Ok(self.nth_entry(&op, &mut s, i, visit)),
                Err(error) => Err(error),
            }
        })
    }

    /// Visits an entry of the batch, the only object of its slot.
    fn only_object(
        &self,
        s: &mut SlotBuffers<'_, '_>,
        entry: usize,
        visit: &mut Visit<'_>,
    ) -> Slot {
        let (key, value) = s.batch.entry(entry);
        visit(&raw::view(key, value, self.keypos(), s.plain));
        Slot::Objects(1)
    }

    /// The number of slots.
    fn slots(&self, op: &Operation<'_>) -> Result<usize, Error> {
        let size = self.size_of(op.store, &mut Budget::scan());
        // A snapshot counts its objects in slices, when it is first asked. It isn't done yet.
        let size = size.ok_or(Error::Busy)?;
        // A power of two, so that a slot is a range of hashes.
        Ok(if self.kind().is_ordered() {
            size
        } else {
            (size / SLOT_LOAD).next_power_of_two().min(1 << 40)
        })
    }

    /// Visits the i-th object of an ordered_set whose index answers no queries of ranks. Returns
    /// `End` if others have removed so many objects meanwhile that there is none.
    fn nth_entry<'g>(
        &self,
        op: &Operation<'g>,
        s: &mut SlotBuffers<'_, 'g>,
        mut i: usize,
        visit: &mut Visit<'_>,
    ) -> Slot {
        // Read whole leaves. `i` is counted from the beginning of the batch.
        s.batch.want = 0;
        let (index, guard) = (&op.store.index, op.guard);
        index.scan(guard, Start::Edge, Direction::Forward, s.batch);
        loop {
            if i < s.batch.len() {
                return self.only_object(s, i, visit);
            }
            if s.batch.done {
                return Slot::End;
            }
            // Skip the whole batch, and read the next one.
            i -= s.batch.len();
            index.scan_on(guard, Direction::Forward, s.position, s.batch);
        }
    }

    /// Visits the objects whose hash begins with the `bits` bits of `i`. Returns their number.
    fn hash_slot<'g>(
        &self,
        op: &Operation<'g>,
        s: &mut SlotBuffers<'_, 'g>,
        i: usize,
        bits: u32,
        visit: &mut Visit<'_>,
    ) -> usize {
        // If there is one slot, `bits` is 0. A shift by 64 overflows, so handle it.
        let slot_of = |hash: u64| hash.checked_shr(u64::BITS - bits).unwrap_or(0);
        let hash = (i as u64).checked_shl(u64::BITS - bits).unwrap_or(0);
        let (index, guard) = (&op.store.index, op.guard);
        // Entries are in the order of their hashes, so a slot is a range of positions. An empty key
        // sorts before all keys, so this position is the start of the range.
        index.position(Key { bytes: &[], hash }, s.position);
        // Ask for a few more entries than a slot has on average. The first one of the next slot
        // then shows where this one ends.
        s.batch.want = SLOT_LOAD + SLOT_LOAD / 2;
        index.scan(guard, Start::At(s.position), Direction::Forward, s.batch);
        let mut seen = 0;
        loop {
            // Find the first entry of the next slot. A search computes few hashes.
            let (mut end, mut after) = (0, s.batch.len());
            while end < after {
                let middle = end.midpoint(after);
                match slot_of(self.seed.hash(s.batch.key(middle))) == i as u64 {
                    true => end = middle + 1,
                    false => after = middle,
                }
            }
            for entry in 0..end {
                let (key, value) = s.batch.entry(entry);
                visit(&raw::view(key, value, self.keypos(), s.plain));
            }
            seen += end;
            if end < s.batch.len() || s.batch.done {
                return seen;
            }
            index.scan_on(guard, Direction::Forward, s.position, s.batch);
        }
    }
}
