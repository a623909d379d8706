//! Counters, elements, and maps in them: changing some elements of one object.
//!
//! Everything is checked against the object under the leaf's lock before anything is written, so a
//! call is all or nothing and no update is lost. Linearisation point: the store that unlocks the
//! leaf.
//!
//! New elements are put in the order of their positions, in one walk over the object, which copies
//! what lies between. Counters are applied in the order in which they came; each element that is
//! counted in is put once. A compressed value is unpacked and packed again.

mod counter;
mod counter_op;
mod element;
mod map;

use super::commit::Edit;
use crate::error::Error;
use crate::ids::Who;
use crate::index::Index;
use crate::local::Local;
use crate::raw;
use crate::table::Table;
use larder_index::Change;
use larder_term::object::patch;
use larder_term::object::{self, ObjectBuf, ObjectEncoder, ObjectRef, COMPRESSED};
use larder_term::TermRef;

pub use counter::Sums;
pub use counter_op::CounterOp;
pub use map::{MapHost, MapOp, Pair, Sorted};

/// The object that an update works on if there is none under the key.
#[derive(Clone, Copy)]
pub struct NewRow<'a> {
    /// The key that goes to the object's key position.
    pub key: TermRef<'a>,
    /// The object but for its key.
    pub tuple: TermRef<'a>,
}

impl Table {
    /// Stores what `f` makes of the object under the index key, or of `default` if there is none:
    /// it is given a value of which it may change the elements up to position `last()`, and an
    /// empty buffer. Whether there was an object to work on.
    #[inline]
    fn edit(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        (default, last): (Option<ObjectRef<'_>>, impl Fn() -> usize),
        mut f: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Edited, Error>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let hashed = self.key(key);
        let guard = local.pin();
        // The buffers are the thread's own: an update of an object takes no memory in the common
        // case.
        let (spare, plain) = (&mut local.value, &mut local.plain);
        self.writing_under(&guard, key, |op| {
            // A bag's key has no one object that could be meant.
            let Index::Unique(ix) = &op.store.index else {
                return Err(Error::TableType);
            };
            let mut found = false;
            let written = self.change_one(op, &**ix, hashed, Some(spare), &mut |old, out| {
                // Whoever gives the default has the counts of its handles; the table takes its own.
                // The leaf is locked: what is read here is what is replaced.
                let Some(value) = old.or(default.map(|row| row.value())) else {
                    return Ok(Change::Keep.into());
                };
                found = true;
                // Of a compressed value the elements up to the last one that changes lie as they
                // are, mostly: they alone are patched. If the result can't be closed so, the whole
                // value is unpacked and patched.
                let mut whole = false;
                // One call of `f`, so that it is inlined here.
                let edited = loop {
                    let patched = match whole {
                        false => patch::patchable(value, self.keypos(), &last, plain),
                        true => patch::plain_value(value, plain),
                    };
                    let (before, edited) = (patched.len(), f(patched, out)?);
                    if whole || edited == Edited::Same || patch::close(out, before) {
                        break edited;
                    }
                    out.clear();
                    whole = true;
                };
                // Nothing to do for an object that is there; the default is stored as it is.
                if let (Edited::Same, Some(_)) = (edited, old) {
                    return Ok(Change::Keep.into());
                }
                if let Edited::Same = edited {
                    out.extend_from_slice(value);
                } else if self.compressed() && out[0] & COMPRESSED == 0 {
                    self.pack(key, out);
                }
                // The same handles, each as often: the new value takes the old one's counts over.
                Ok(Edit {
                    change: Change::PutScratch,
                    same_handles: edited == Edited::SameHandles && old.is_some(),
                })
            })?;
            Ok((written, found))
        })
    }

    /// What is wrong with a position at which nothing may be replaced.
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
        // The tuple's own element at the key's position is left out: the key that was asked for is
        // put there.
        Ok(self.object_of(row.key, arity, others.map(|(_, element)| element)))
    }

    /// An object of the table with this key and these elements beside it.
    fn object_of<'t>(
        &self,
        key: TermRef<'_>,
        arity: usize,
        others: impl Iterator<Item = TermRef<'t>>,
    ) -> ObjectBuf {
        let (mut object, compressed) = (ObjectBuf::new(), self.compressed());
        let mut enc = ObjectEncoder::new(
            &mut object,
            arity,
            self.keypos(),
            self.key_form(),
            compressed,
        );
        enc.key(|e| e.term(key));
        others.for_each(|term| enc.element(|e| e.term(term)));
        enc.finish();
        object
    }

    /// Compresses a value that was put together.
    #[cold]
    fn pack(&self, key: &[u8], value: &mut Vec<u8>) {
        // Bytes alone may be compressed as they are. Where there are handles, the object is encoded
        // anew, as it would be on insertion.
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

/// The ops of a call by their positions: those for one in the order in which they came.
struct Order(Vec<usize>);

impl Order {
    /// Needs no memory where they came so.
    #[inline]
    fn of<T>(ops: &[T], position: impl Fn(&T) -> usize) -> Order {
        if ops.is_sorted_by_key(&position) {
            return Order(Vec::new());
        }
        Order(sorted(ops, position))
    }

    /// Which op is the `i`th.
    #[inline]
    fn place(&self, i: usize) -> usize {
        self.0.get(i).copied().unwrap_or(i)
    }

    /// The `i`th op.
    #[inline]
    fn get<'o, T>(&self, ops: &'o [T], i: usize) -> Option<&'o T> {
        ops.get(self.place(i))
    }
}

/// The numbers of the ops in the order of their positions, those for one in the order in which they
/// came. Linear where there are as many ops as positions.
#[cold]
fn sorted<T>(ops: &[T], position: impl Fn(&T) -> usize) -> Vec<usize> {
    let last = ops.iter().map(&position).max().unwrap_or(0);
    // A position far beyond the number of ops would have a place made for each position below it:
    // then they are sorted instead.
    if last > ops.len() {
        let mut order: Vec<usize> = (0..ops.len()).collect();
        order.sort_by_key(|&i| position(&ops[i]));
        return order;
    }
    // Where those for each position begin; then where the next of them goes.
    let mut places = vec![0; last + 1];
    for op in ops {
        places[position(op)] += 1;
    }
    let mut before = 0;
    for place in &mut places {
        (before, *place) = (before + *place, before);
    }
    // Places go up as ops are put there, so those for one position keep their order.
    let mut order = vec![0; ops.len()];
    for (i, op) in ops.iter().enumerate() {
        let place = &mut places[position(op)];
        order[*place] = i;
        *place += 1;
    }
    order
}

/// What became of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edited {
    /// There was nothing to do, and nothing was written.
    Same,
    /// It was written anew, with the handles that it had.
    SameHandles,
    /// It was written anew.
    Anew,
}

impl Edited {
    #[inline]
    fn anew(same_handles: bool) -> Self {
        if same_handles {
            Edited::SameHandles
        } else {
            Edited::Anew
        }
    }
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
            let order = Order::of(&ops, |op| op.0);
            let found: Vec<_> = (0..ops.len()).filter_map(|i| order.get(&ops, i)).collect();
            let mut expected: Vec<_> = ops.iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
