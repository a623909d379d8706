//! Reading by key: lookup, member, lookup_elements.
//!
//! 1. The right to read.
//! 2. The thread pins the epoch: what the index and the state word lead to stays until the end.
//! 3. The state word: the store, or why not (see `begin`).
//! 4. The key's hash, with the table's seed.
//! 5. The index copies the values under the key out of the leaf, and checks the leaf's version.
//! 6. The caller visits the copies, still pinned: the counts of their handles are the table's, and
//!    are not released while the epoch is pinned.
//!
//! Linearisation point of each: the load of the leaf's version that the index's check confirms. All
//! objects under one key are seen as of one instant. No lock is taken.

use super::begin::{Intent, Operation};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::Index;
use crate::keys::{KeyBatch, KeyList, MANY_TO_READ};
use crate::local::{with_local, Local};
use crate::raw;
use crate::stored::Stored;
use crate::table::Table;
use larder_index::{Guard, Key, Lookup, Unique, SHORT, TOGETHER};
use larder_term::object::ObjectView;
use larder_term::TermRef;
use smallvec::SmallVec;

impl Table {
    /// Calls `visit` with each object under the index key, in order of arrival; gives how many.
    /// O(1) (ordered_set: O(log n)) and linear in what is found.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn lookup(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(&ObjectView<'_>),
    ) -> Result<usize, Error> {
        with_local(|local| self.lookup_in(local, who, key, |stored| visit(&stored.view())))
    }

    /// As `lookup`, for hosts.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline(always)]
    pub fn lookup_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        visit: impl FnMut(Stored<'_>),
    ) -> Result<usize, Error> {
        // (1) The table's life is looked at in (3).
        self.may_read(who)?;
        // (2)
        let guard = local.pin();
        // (3) A list batch that has objects under the key is settled here.
        let op = self.begin_on(&guard, key, Intent::Read)?;
        // (4) to (6)
        Ok(self.visit_in(local, &op, self.key(key), visit))
    }

    /// As `lookup`, for several keys; `visit` is given the number of the key that an object belongs
    /// to. It is called with `None` after the last object of each key, and then says whether to go
    /// on. Each key is looked up by itself: the whole is no snapshot. Their misses in the
    /// processor's caches overlap.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`: before anything is visited.
    #[inline]
    pub fn lookup_many_in(
        &self,
        local: &mut Local,
        who: impl Who,
        keys: &KeyList,
        mut visit: impl FnMut(usize, Option<Stored<'_>>) -> bool,
    ) -> Result<(), Error> {
        self.may_read(who)?;
        let guard = local.pin();
        // A batch that holds the latch is waited for: its keys would have to be settled one by one.
        // From here on nothing is refused, so no key is visited twice.
        let op = self.begin(&guard)?;
        let mut batch = KeyBatch::new();
        let is_far = op.store.is_far(MANY_TO_READ);
        for from in (0..keys.len()).step_by(TOGETHER) {
            batch.fill(keys.len() - from, |i| self.key(keys.get(from + i)));
            // Short values are copied at once, after the memory of all of their leaves was asked
            // for: the misses overlap. Of a bag, the memory is asked for, and the keys are looked
            // up one by one.
            let unique = match &op.store.index {
                Index::Unique(ix) => Some(ix),
                Index::Multi(_) => None,
            };
            match unique {
                Some(ix) => ix.get_short_many(&guard, batch.keys(), is_far, &mut local.shorts),
                None => op.store.prefetch(&guard, batch.keys(), MANY_TO_READ),
            }
            for (i, &key) in batch.keys().iter().enumerate() {
                let Local { shorts, plain, .. } = &mut *local;
                match unique.map(|_| shorts.get(i)) {
                    Some((Lookup::Absent, _)) => {}
                    // A copy of the whole value, checked.
                    Some((Lookup::Short(len), bytes)) => {
                        let (key, keypos) = (key.bytes, self.keypos());
                        let stored = Stored::beginning(key, (bytes, len), keypos, plain);
                        visit(from + i, Some(stored));
                    }
                    // Too long for a short copy, or several values: the lookup of one key.
                    Some((Lookup::Long, _)) | None => {
                        self.visit_in(local, &op, key, |stored| {
                            visit(from + i, Some(stored));
                        });
                    }
                }
                if !visit(from + i, None) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether there is an object under the index key. As `lookup`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn member(&self, who: OwnerId, key: &[u8]) -> Result<bool, Error> {
        with_local(|local| self.member_in(local, who, key))
    }

    /// As `member`, for hosts.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline(always)]
    pub fn member_in(&self, local: &mut Local, who: impl Who, key: &[u8]) -> Result<bool, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let op = self.begin_on(&guard, key, Intent::Read)?;
        Ok(op.store.index.contains(&guard, self.key(key)))
    }

    /// Calls `visit` with the elements at these positions (from 1) of each object under the index
    /// key, one object after the other, and with the place among `positions` of each; gives how
    /// many objects, 0 if the key is absent. As `lookup`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Position` if a position is 0, or past the end of one of the
    /// objects: then nothing is visited.
    pub fn lookup_elements(
        &self,
        who: OwnerId,
        key: &[u8],
        positions: &[usize],
        visit: &mut dyn FnMut(usize, TermRef<'_>),
    ) -> Result<usize, Error> {
        with_local(|local| self.lookup_elements_in(local, who, key, positions, visit))
    }

    /// As `lookup_elements`, for hosts.
    ///
    /// # Errors
    /// As `lookup_elements`.
    #[inline(always)]
    pub fn lookup_elements_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        positions: &[usize],
        mut visit: impl FnMut(usize, TermRef<'_>),
    ) -> Result<usize, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let op = self.begin_on(&guard, key, Intent::Read)?;
        // After the table's own errors: a dead table answers so, whatever else is wrong.
        if positions.contains(&0) {
            return Err(Error::Position);
        }
        let key = self.key(key);
        let Index::Unique(ix) = &op.store.index else {
            return self.elements_of(local, &op, key, positions, &mut visit);
        };
        let mut short = [0; SHORT];
        let found = copy_of(&**ix, &guard, key, &mut short, &mut local.value);
        let Some((bytes, len)) = found else {
            return Ok(0);
        };
        // The copy was checked by the index; its handles are the table's, and good while `guard`
        // is.
        let object = raw::view(key.bytes, &bytes[..len], self.keypos(), &mut local.plain);
        visit_elements(&object, positions, &mut visit)?;
        Ok(1)
    }

    /// `lookup_elements` where there may be several objects under the key.
    fn elements_of(
        &self,
        local: &mut Local,
        op: &Operation<'_>,
        key: Key<'_>,
        positions: &[usize],
        visit: &mut dyn FnMut(usize, TermRef<'_>),
    ) -> Result<usize, Error> {
        op.store.index.copy(op.guard, key, &mut local.values);
        let (plain, last) = (&mut local.plain, furthest(positions));
        // All are looked at before the first is visited: an error shows nothing.
        let long_enough = local
            .values
            .iter()
            .all(|value| raw::view(key.bytes, value, self.keypos(), plain).arity() >= last);
        if !long_enough {
            return Err(Error::Position);
        }
        for value in local.values.iter() {
            let object = raw::view(key.bytes, value, self.keypos(), plain);
            visit_elements(&object, positions, &mut *visit)?;
        }
        Ok(local.values.len())
    }

    /// Visits the objects under a key.
    #[inline(always)]
    pub(crate) fn visit_in(
        &self,
        local: &mut Local,
        op: &Operation<'_>,
        key: Key<'_>,
        mut visit: impl FnMut(Stored<'_>),
    ) -> usize {
        let Index::Unique(ix) = &op.store.index else {
            return self.visit_all(local, op, key, &mut visit);
        };
        // (5) A short value is copied to the stack, a longer one to the thread's buffer.
        let mut short = [0; SHORT];
        let found = copy_of(&**ix, op.guard, key, &mut short, &mut local.value);
        let Some((bytes, len)) = found else {
            return 0;
        };
        // (6) `plain` is where a compressed object is unpacked, if the caller opens it.
        let (keypos, plain) = (self.keypos(), &mut local.plain);
        visit(Stored::beginning(key.bytes, (bytes, len), keypos, plain));
        1
    }

    /// `visit_in` where there may be several objects under the key.
    fn visit_all(
        &self,
        local: &mut Local,
        op: &Operation<'_>,
        key: Key<'_>,
        visit: &mut dyn FnMut(Stored<'_>),
    ) -> usize {
        op.store.index.copy(op.guard, key, &mut local.values);
        for value in local.values.iter() {
            visit(Stored::new(
                key.bytes,
                value,
                self.keypos(),
                &mut local.plain,
            ));
        }
        local.values.len()
    }
}

/// The last of some positions.
fn furthest(positions: &[usize]) -> usize {
    positions.iter().copied().max().unwrap_or(0)
}

/// Calls `visit` with the elements at these positions, in their order. O(positions, and the
/// object's elements up to the last of them).
///
/// # Errors
/// `Position` if the object is too short for one of them: then nothing is visited.
#[inline(always)]
fn visit_elements(
    object: &ObjectView<'_>,
    positions: &[usize],
    mut visit: impl FnMut(usize, TermRef<'_>),
) -> Result<(), Error> {
    let &[position] = positions else {
        return visit_several(object, positions, &mut visit);
    };
    visit(0, object.element(position).ok_or(Error::Position)?);
    Ok(())
}

/// `visit_elements` for several positions, or none. Elements lie one behind the other: they are
/// walked over once, however the positions are ordered.
fn visit_several(
    object: &ObjectView<'_>,
    positions: &[usize],
    visit: &mut dyn FnMut(usize, TermRef<'_>),
) -> Result<(), Error> {
    let last = furthest(positions);
    if last > object.arity() {
        return Err(Error::Position);
    }
    let elements: SmallVec<[TermRef<'_>; 32]> = object.iter().take(last).collect();
    for (i, &position) in positions.iter().enumerate() {
        let element = position.checked_sub(1).and_then(|at| elements.get(at));
        visit(i, *element.ok_or(Error::Position)?);
    }
    Ok(())
}

/// A copy of the value under a key: in `short` if it is, else in `long`; with what lies behind it,
/// and its length.
#[inline(always)]
pub(super) fn copy_of<'v>(
    ix: &dyn Unique,
    guard: &Guard,
    key: Key<'_>,
    short: &'v mut [u8; SHORT],
    long: &'v mut Vec<u8>,
) -> Option<(&'v [u8], usize)> {
    // The index has checked the leaf's version after the copy, whichever it was.
    match ix.get_short(guard, key, short, Some(long)) {
        Lookup::Absent => None,
        Lookup::Short(len) => Some((short, len)),
        Lookup::Long => Some((&long[..], long.len())),
    }
}
