//! Objects by the number of a slot.

use super::begin::Operation;
use crate::budget::Budget;
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::raw;
use crate::table::Table;
use larder_index::{Direction, Key, Start};
use larder_term::object::ObjectView;

/// What `slot` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// So many objects, which were visited.
    Objects(usize),
    /// The slot past the last.
    End,
}

/// Objects that a slot of an unordered table has on average.
const SLOT_LOAD: usize = 4;

type Visit<'v> = dyn FnMut(&ObjectView<'_>) + 'v;

impl Table {
    /// Calls `visit` with each object in slot `i`, from 0. An ordered_set has one slot an object,
    /// in order; O(i). The others have a number of slots that follows from the table's size, about
    /// four objects to a slot; as long as the size stays within a power of two, each object stays
    /// in its slot.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `BadSlot` past `Slot::End`.
    pub fn slot(&self, who: OwnerId, i: usize, visit: &mut Visit<'_>) -> Result<Slot, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        // The number of slots follows from the size at this moment: a caller that goes from slot to
        // slot while others write may meet an object twice, or not.
        let slots = self.slots(&op)?;
        if i >= slots {
            return if i == slots {
                Ok(Slot::End)
            } else {
                Err(Error::BadSlot)
            };
        }
        let mut lent = Lent::new();
        let s = &mut *lent;
        Ok(if self.kind().is_ordered() {
            self.nth_entry(&op, s, i, visit)
        } else {
            Slot::Objects(self.hash_slot(&op, s, i, slots.trailing_zeros(), visit))
        })
    }

    fn slots(&self, op: &Operation<'_>) -> Result<usize, Error> {
        let size = self.size_of(op.store, &mut Budget::scan());
        let size = size.ok_or(Error::Busy)?;
        Ok(if self.kind().is_ordered() {
            size
        } else {
            (size / SLOT_LOAD).next_power_of_two().min(1 << 40)
        })
    }

    /// Visits the i-th object of an ordered_set.
    fn nth_entry(
        &self,
        op: &Operation<'_>,
        s: &mut Buffers,
        mut i: usize,
        visit: &mut Visit<'_>,
    ) -> Slot {
        s.batch.want = 0;
        let (index, guard) = (&op.store.index, op.guard);
        index.scan(guard, Start::Edge, Direction::Forward, &mut s.batch);
        loop {
            if i < s.batch.len() {
                let (key, value) = (s.batch.key(i), s.batch.value(i));
                visit(&raw::view(key, value, self.keypos(), &mut s.plain));
                return Slot::Objects(1);
            }
            if s.batch.done {
                return Slot::End;
            }
            // Entries are counted batch by batch: to ask for a rank would have the table keep
            // counts.
            i -= s.batch.len();
            index.scan_on(guard, Direction::Forward, &mut s.position, &mut s.batch);
        }
    }

    /// Visits the objects whose hash begins with `i`, as a number of `bits` bits.
    fn hash_slot(
        &self,
        op: &Operation<'_>,
        s: &mut Buffers,
        i: usize,
        bits: u32,
        visit: &mut Visit<'_>,
    ) -> usize {
        // With one slot there are no bits, and a shift by the whole word is none that the processor
        // has.
        let slot_of = |hash: u64| hash.checked_shr(u64::BITS - bits).unwrap_or(0);
        let hash = (i as u64).checked_shl(u64::BITS - bits).unwrap_or(0);
        let (index, guard) = (&op.store.index, op.guard);
        // Entries lie in the order of their hashes, so a slot is a range of positions: it begins
        // before all keys with this hash.
        index.position(Key { bytes: &[], hash }, &mut s.position);
        // About as many as a slot has, and what shows that it has no more.
        s.batch.want = 2 * SLOT_LOAD;
        index.scan(
            guard,
            Start::At(&s.position),
            Direction::Forward,
            &mut s.batch,
        );
        let mut seen = 0;
        loop {
            for entry in 0..s.batch.len() {
                let (key, value) = (s.batch.key(entry), s.batch.value(entry));
                // The first entry of another slot: the range ends here.
                if slot_of(self.seed.hash(key)) != i as u64 {
                    return seen;
                }
                visit(&raw::view(key, value, self.keypos(), &mut s.plain));
                seen += 1;
            }
            if s.batch.done {
                return seen;
            }
            index.scan_on(guard, Direction::Forward, &mut s.position, &mut s.batch);
        }
    }
}
