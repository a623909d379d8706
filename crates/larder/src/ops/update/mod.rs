//! Changing some elements of one object: counters, elements, and maps in elements.
//!
//! ```text
//!  update_counter_in    update_element_in    update_map_in      a file each: operations
//!          \___________________│___________________/
//!                            edit              up1  begins the write
//!                             └─→ change_one      locks the leaf, revalidates
//!                                  ├─→ apply   up2  checks and applies the operations; in the
//!                                  │                common case `apply_in_order`
//!                                  │   └─→ Patch  up3  writes the new elements to a buffer
//!                                  └─→ index   up4  stores it and unlocks the leaf
//! ```
//!
//! # Steps
//!
//! * **up1** `edit` begins a write on the key (`begin`). `change_one` locks the key's leaf,
//!   revalidates, and calls back with the old value where it lies in the leaf (`change`).
//! * **up2** The operations are checked in the order in which they came. If one is wrong, the call
//!   ends here, and the object is as it was.
//! * **up3** A [`patch::Patch`] writes the new elements to the thread's buffer, in the order of
//!   their positions, and copies what lies between.
//! * **up4** The index replaces this part of the value by the buffer, and unlocks the leaf. If the
//!   part keeps its length, the rest of the value isn't touched.
//!
//! Steps up2 to up4 are under the leaf's lock. So a call is all or nothing, and no update is lost.
//! Linearisation point: that of any write (see `change`).
//!
//! If there is no object, a call with a default makes one of it (`insert_updated`). The operations
//! are applied to the default without a lock, and the result is inserted if there is no object
//! then. Otherwise the call begins again.
//!
//! # Compressed values
//!
//! A compressed value has a run of plain elements at its front. If all elements that change are in
//! the run, they are patched where they lie, and nothing is unpacked. Otherwise the value is
//! unpacked, patched, and packed again.

mod counter;
mod counter_op;
mod element;
mod map;

use super::change::{Edit, EditBuffer, NewValue, Put};
use crate::error::Error;
use crate::ids::Who;
use crate::index::TableIndex;
use crate::local::Local;
use crate::raw;
use crate::table::EngineTable;
use larder_index::{Change, Previous};
use larder_term::object::patch::{self, Patched};
use larder_term::object::{self, NewElements, ObjectBuf, ObjectRef, COMPRESSED};
use larder_term::TermRef;

pub use counter::Sums;
pub use counter_op::{CounterOp, CounterOps, SmallOp};
pub use map::{MapChange, MapHost, MapOp, Sorted};

/// The object that an update works on if there is none under the key.
#[derive(Clone, Copy)]
pub struct NewRow<'a> {
    /// The key that goes to the object's key position.
    pub key: TermRef<'a>,
    /// The object but for its key.
    pub tuple: TermRef<'a>,
}

/// The buffer for a patch, and the new elements that it puts out of line.
type Patching<'b, 't> = (&'b mut Vec<u8>, &'b mut NewElements<'t>);

/// The operations of a call on one object.
trait ElementUpdate {
    /// A position after which no element is replaced. Only needed if the value is compressed.
    fn last(&self) -> usize;

    /// As `apply`, in the common case: the elements are replaced in the order of the operations, by
    /// terms that are stored as they are, and nothing is unpacked. `None` in any other case, and if
    /// an operation is wrong; `out` may have been written to then.
    fn apply_in_order(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Patched>;

    /// Replaces elements of a value by a [`patch::Patch`]. It gets an empty buffer for the patch,
    /// and holds the elements that the patch puts out of line.
    ///
    /// It may be called several times, because a write may be repeated. Only its last call counts.
    ///
    /// # Errors
    /// Those of the operations.
    fn apply(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        patching: Patching<'_, '_>,
    ) -> Result<Option<Patched>, Error>;
}

/// An update of the object under a key.
struct ObjectUpdate<'u, 't, U: ?Sized> {
    table: &'u EngineTable,
    key: &'u [u8],
    update: &'u mut U,
    /// A compressed value is unpacked to this buffer.
    plain: &'u mut Vec<u8>,
    elements: NewElements<'t>,
    /// Whether there is an object.
    found: bool,
}

impl EngineTable {
    /// Updates the object under the index key. Returns `false` if there is none.
    #[inline(always)]
    fn edit(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        update: &mut impl ElementUpdate,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let hashed = self.key(key);
        let guard = local.pin();
        let cursors = [&mut local.read_ahead, &mut local.older_ahead];
        // The buffers are the thread's own, so an update allocates nothing in the common case. The
        // new value is written to `spare`.
        let spare = &mut local.value;
        let mut object = ObjectUpdate {
            table: self,
            key,
            update,
            plain: &mut local.plain,
            // Dropped at the end: the new value has counts of its own then.
            elements: NewElements::new(self.out_of_line(), &mut local.elements),
            found: false,
        };
        // (up1) Repeat the closure as long as the state word has changed under the lock.
        self.writing_beside_walks(cursors, &guard, key, |op| {
            // A key of a bag may have several objects.
            let TableIndex::Unique(ix) = &op.store.index else {
                return Err(Error::TableType);
            };
            object.found = false;
            // An absent key is only looked at.
            let buffer = EditBuffer::OfPresent(spare);
            let written = self.change_one(op, &**ix, hashed, buffer, |old, out| {
                // The leaf is locked and the table revalidated: what is read here is what is
                // replaced. `old` lies in the leaf, and `out` is `spare`, emptied.
                let Some(value) = old else {
                    return Ok(Change::Keep.into());
                };
                object.found = true;
                object.change(value, out)
            })?;
            Ok((written, object.found))
        })
    }

    /// Inserts an object if there is none under its key. Its elements are updated before. Returns
    /// whether it did.
    #[inline(never)]
    fn insert_updated(
        &self,
        local: &mut Local,
        who: impl Who,
        row: &ObjectRef<'_>,
        update: &mut dyn ElementUpdate,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(row.key());
        let guard = local.pin();
        let cursors = [&mut local.read_ahead, &mut local.older_ahead];
        let new = &mut local.value;
        let mut object = ObjectUpdate {
            table: self,
            key: key.bytes,
            update,
            plain: &mut local.plain,
            elements: NewElements::new(self.out_of_line(), &mut local.elements),
            found: false,
        };
        // (up2, up3) No other thread sees the object yet. Its new value is made once, in `new`, and
        // serves all attempts below.
        new.clear();
        let value = row.value();
        match object.change(value, new)?.change {
            // No operation has changed it.
            Change::Keep | Change::Remove => new.extend_from_slice(value),
            // `new` may have a part only. Complete it.
            change => _ = change.whole(Some(value), new),
        }
        // (up1, up4) The table takes counts of its own of the handles.
        self.writing_beside_walks(cursors, &guard, key.bytes, |op| {
            let TableIndex::Unique(ix) = &op.store.index else {
                return Err(Error::TableType);
            };
            // An object that is there stays: the caller then updates that one.
            let new = NewValue::copied(new);
            let (written, was) = self.put_by(op, &**ix, key, new, Put::New, |_| true);
            let inserted = was == Previous::Absent;
            if inserted {
                op.inserts();
            }
            Ok((written, inserted))
        })
    }
}

impl<U: ElementUpdate + ?Sized> ObjectUpdate<'_, '_, U> {
    /// (up2, up3) The change of the value.
    #[inline(always)]
    fn change(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<Edit, Error> {
        match self.update.apply_in_order(self.table, value, out) {
            // The common case: `out` has the bytes of the part that changes.
            Some(patched) if patch::is_complete(value, patched, out.len()) => Ok(Edit {
                change: Change::splice(value, patched.at, patched.len, out),
                same_handles: patched.same_handles,
            }),
            _ => self.change_in_general(value, out),
        }
    }

    /// `change`, for any operations on any value.
    ///
    /// A value without compression is patched as it lies, and the loop ends after one turn. So is a
    /// compressed one whose run has all elements that change. If `patch::close` finds that the
    /// changed run is no valid run any more (an element is of another kind now, or too long), the
    /// second turn patches the unpacked value.
    #[inline(never)]
    fn change_in_general(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<Edit, Error> {
        let (table, mut whole) = (self.table, false);
        out.clear();
        loop {
            let update = &mut *self.update;
            // What is patched: as much of the value as can be left compressed, or all of it.
            let before = match whole {
                false => patch::patchable(value, table.keypos(), || update.last(), self.plain),
                true => patch::plain_value(value, self.plain),
            };
            // No element has changed.
            let Some(patched) = update.apply(table, before, (out, &mut self.elements))? else {
                return Ok(Change::Keep.into());
            };
            let change = Change::splice(before, patched.at, patched.len, out);
            // (up4) The new value takes over the old one's counts if the handles are the same.
            // Otherwise `change_one` takes its own counts and releases the old value's.
            let edit = |change| Edit {
                change,
                same_handles: patched.same_handles,
            };
            if !table.compressed() {
                return Ok(edit(change));
            }
            let change = change.whole(Some(before), out);
            if whole || patch::close(out, before.len()) {
                // The value was unpacked for the patch, or wasn't packed before.
                if out[0] & COMPRESSED == 0 {
                    table.pack(self.key, out);
                }
                return Ok(edit(change));
            }
            // The changed run is no valid one. Begin again with the unpacked value.
            out.clear();
            whole = true;
        }
    }
}

impl EngineTable {
    /// The error for a position at which nothing may be replaced.
    #[cold]
    fn no_element(&self, pos: usize) -> Error {
        if pos == self.keypos() {
            Error::Keypos
        } else {
            Error::Position
        }
    }

    /// The default as an object of the table.
    fn new_row(&self, row: NewRow<'_>) -> Result<ObjectBuf, Error> {
        let tuple = row.tuple.as_tuple().ok_or(Error::BadDefault)?;
        let arity = tuple.arity();
        if arity < self.keypos() {
            return Err(Error::BadDefault);
        }
        let elements = tuple.iter().enumerate();
        let others = elements.filter(|(i, _)| i + 1 != self.keypos());
        // Leave out the tuple's own element at the key's position. The key of the call is put
        // there.
        Ok(self.object_of(row.key, arity, others.map(|(_, element)| element)))
    }

    /// An object of the table with this key and these elements beside it.
    fn object_of<'t>(
        &self,
        key: TermRef<'_>,
        arity: usize,
        others: impl Iterator<Item = TermRef<'t>>,
    ) -> ObjectBuf {
        // An object of its own, which the table stores if the key is absent.
        let mut object = ObjectBuf::new();
        let mut enc = self.encoder(&mut object, arity);
        // What is encoded is whole, since the elements were counted.
        enc.key(|e| e.term(key));
        others.for_each(|term| enc.element(|e| e.term(term)));
        enc.finish();
        object
    }

    /// Compresses a value that was put together.
    #[cold]
    fn pack(&self, key: &[u8], value: &mut Vec<u8>) {
        // Bytes without handles can be compressed as they are. If there are handles, encode the
        // object again, as on insertion.
        if !object::value_has_handles(value) {
            if let Some(packed) = object::compressed(value) {
                *value = packed;
            }
            return;
        }
        let mut plain = Vec::new();
        let object = raw::view(key, value, self.keypos(), &mut plain);
        let others = object.iter().enumerate();
        let others = others.filter(|(i, _)| i + 1 != self.keypos());
        let packed = self.object_of(object.key(), object.arity(), others.map(|(_, term)| term));
        // The handles in here are those of the old object and of the caller's terms, whose counts
        // outlive the buffer's.
        value.clear();
        value.extend_from_slice(packed.value());
    }
}

/// The order of a call's operations by position; those for one position keep the order in which
/// they came. Holds the numbers of the operations, or nothing if they came in this order.
struct PositionOrder(Vec<usize>);

impl PositionOrder {
    /// Linear, and without an allocation, if the operations came in this order.
    #[inline]
    fn of<T>(ops: &[T], position: impl Fn(&T) -> usize) -> PositionOrder {
        if ops.is_sorted_by_key(&position) {
            return PositionOrder(Vec::new());
        }
        PositionOrder(sorted(ops, position))
    }

    /// The `i`th operation in this order.
    #[inline]
    fn get<'o, T>(&self, ops: &'o [T], i: usize) -> Option<&'o T> {
        ops.get(self.0.get(i).copied().unwrap_or(i))
    }
}

/// The numbers of the operations, sorted by position with a stable counting sort. Linear if no
/// position is greater than the number of operations.
#[cold]
fn sorted<T>(ops: &[T], position: impl Fn(&T) -> usize) -> Vec<usize> {
    let last = ops.iter().map(&position).max().unwrap_or(0);
    // A counting sort needs a counter for each position up to the last. If there are more of them
    // than operations, the operations are compared instead.
    if last > ops.len() {
        let mut order: Vec<(usize, usize)> = ops.iter().map(position).zip(0..).collect();
        order.sort_unstable();
        return order.into_iter().map(|(_, i)| i).collect();
    }
    // How many operations each position has.
    let mut next = vec![0; last + 1];
    for op in ops {
        next[position(op)] += 1;
    }
    // Prefix sums: where in `order` the next operation of each position goes.
    let mut sum = 0;
    for slot in &mut next {
        (sum, *slot) = (sum + *slot, sum);
    }
    // Operations are placed as they came, so the sort is stable.
    let mut order = vec![0; ops.len()];
    for (i, op) in ops.iter().enumerate() {
        let slot = &mut next[position(op)];
        order[*slot] = i;
        *slot += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ops_are_in_the_order_of_their_positions(
            positions in prop::collection::vec(0usize..40, 0..60),
            far in any::<bool>(),
        ) {
            let mut ops: Vec<(usize, usize)> = positions.into_iter().zip(0..).collect();
            if far {
                ops.push((usize::MAX, 60));
                ops.push((3, 61));
            }
            let order = PositionOrder::of(&ops, |op| op.0);
            let found: Vec<_> = (0..ops.len()).filter_map(|i| order.get(&ops, i)).collect();
            let mut expected: Vec<_> = ops.iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
