//! Changing some elements of one object: counters, elements, and maps in elements.
//!
//! ```text
//!  update_counter_in    update_element_in    update_map_in      a file each: operations
//!          \___________________│___________________/
//!                            edit              up1  begins the write
//!                             └─→ change_one      locks the leaf, revalidates
//!                                  ├─→ f       up2  checks and applies the operations
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
//! # Compressed values
//!
//! A compressed value has a run of plain elements at its front. If all elements that change are in
//! the run, they are patched where they lie, and nothing is unpacked. Otherwise the value is
//! unpacked, patched, and packed again.

mod counter;
mod counter_op;
mod element;
mod map;

use super::change::{Edit, EditBuffer};
use crate::error::Error;
use crate::ids::Who;
use crate::index::TableIndex;
use crate::local::Local;
use crate::raw;
use crate::table::EngineTable;
use larder_index::Change;
use larder_term::object::patch::{self, Patched};
use larder_term::object::{self, NewElements, ObjectBuf, ObjectRef, COMPRESSED};
use larder_term::TermRef;

pub use counter::Sums;
pub use counter_op::{CounterOp, CounterOps};
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

impl EngineTable {
    /// Replaces the object under the index key by the result of `f` for it. If there is none,
    /// inserts the result of `f` for `default`. Returns `false` if there was neither.
    ///
    /// `f` replaces elements of a value by a [`patch::Patch`], under the leaf's lock, but none
    /// after position `last()`. It gets an empty buffer for the patch, and holds the elements that
    /// the patch puts out of line. It may be called several times, because a write may be repeated.
    /// Only its last call counts.
    #[inline]
    fn edit(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        (default, last): (Option<&ObjectRef<'_>>, &impl Fn() -> usize),
        f: &mut impl FnMut(&[u8], Patching<'_, '_>) -> Result<Option<Patched>, Error>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let hashed = self.key(key);
        let guard = local.pin();
        // The buffers are the thread's own, so an update allocates nothing in the common case. The
        // new value is written to `spare`; a compressed value is unpacked to `plain`.
        let (spare, plain) = (&mut local.value, &mut local.plain);
        // Dropped at the end: the new value has counts of its own then.
        let mut elements = NewElements::new(self.out_of_line(), &mut local.elements);
        let cursors = [&mut local.read_ahead, &mut local.older_ahead];
        // (up1) Repeat the closure as long as the state word has changed under the lock.
        self.writing_beside_walks(cursors, &guard, key, |op| {
            // A key of a bag may have several objects.
            let TableIndex::Unique(ix) = &op.store.index else {
                return Err(Error::TableType);
            };
            let mut found = false;
            // Without a default, an absent key is only looked at.
            let buffer = match default {
                Some(_) => EditBuffer::Given(spare),
                None => EditBuffer::OfPresent(spare),
            };
            let written = self.change_one(op, &**ix, hashed, buffer, &mut |old, out| {
                // The leaf is locked and the table revalidated: what is read here is what is
                // replaced. `old` lies in the leaf, and `out` is `spare`, emptied.
                let Some(value) = old.or(default.map(|row| row.value())) else {
                    return Ok(Change::Keep.into());
                };
                found = true;
                if old.is_none() {
                    op.inserts();
                }
                self.patched(key, (old, value), last, f, (plain, out, &mut elements))
            })?;
            Ok((written, found))
        })
    }

    /// (up2, up3) The change of `value` that `f` makes. `value` is `old`, or the default if that is
    /// `None`.
    ///
    /// A value without compression is patched as it lies, and the loop ends after one turn. So is a
    /// compressed one whose run has all elements that change. If `patch::close` finds that the
    /// changed run is no valid run any more (an element is of another kind now, or too long), the
    /// second turn patches the unpacked value.
    // A part of `edit`, and inlined there with `f`. For that `f` is called at one place, so a loop.
    #[inline(always)]
    fn patched<'v>(
        &self,
        key: &[u8],
        (old, value): (Option<&'v [u8]>, &'v [u8]),
        last: &impl Fn() -> usize,
        f: &mut impl FnMut(&[u8], Patching<'_, '_>) -> Result<Option<Patched>, Error>,
        (plain, out, elements): (&mut Vec<u8>, &mut Vec<u8>, &mut NewElements<'_>),
    ) -> Result<Edit, Error> {
        let mut whole = false;
        loop {
            let before = match whole {
                false => patch::patchable(value, self.keypos(), last, plain),
                true => patch::plain_value(value, plain),
            };
            let Some(patched) = f(before, (out, elements))? else {
                // Unchanged, an object stays in its leaf, and a default is stored as it is.
                if old.is_some() {
                    return Ok(Change::Keep.into());
                }
                out.extend_from_slice(value);
                return Ok(Change::Put.into());
            };
            let change = Change::splice(before, patched.at, patched.len, out);
            // (up4) The new value takes over the old one's counts if the handles are the same.
            // Otherwise `change_one` takes its own counts and releases the old value's. The counts
            // of a default's handles are the caller's.
            let same_handles = patched.same_handles && old.is_some();
            let edit = |change| Edit {
                change,
                same_handles,
            };
            if old.is_some() && !self.compressed() {
                return Ok(edit(change));
            }
            let change = change.whole(Some(before), out);
            if whole || patch::close(out, before.len()) {
                if self.compressed() && out[0] & COMPRESSED == 0 {
                    self.pack(key, out);
                }
                return Ok(edit(change));
            }
            out.clear();
            whole = true;
        }
    }

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
