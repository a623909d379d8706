//! Reading by key: lookup, lookup_many, member, lookup_elements.
//!
//! 1. Check the right to read.
//! 2. Pin the epoch. Until the end, nothing is freed that the state word and the index lead to.
//! 3. Load the state word: it gives the store, or the reason for an error (see `begin`).
//! 4. Hash the key with the table's seed.
//! 5. The index copies the values under the key out of the leaf, and validates the leaf's version.
//!    A value that lies outside its leaf is immutable, and is lent instead of copied.
//! 6. The caller visits the values while the epoch is still pinned. The handles in them are counted
//!    by the table, which releases no counts of a removed value before all pinned readers have
//!    unpinned.
//!
//! Linearisation point: the load of the leaf's version that the index has validated. All objects
//! under one key are seen as of one instant. No lock is taken.

use super::begin::{Intent, Operation};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::keys::{KeyBatch, KeyList, MANY_TO_READ};
use crate::local::{with_local, Local};
use crate::raw;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Guard, Key, Lookup, Unique, Values, MAX_KEYS_PER_LOOKUP, SHORT_VALUE};
use larder_term::object::{groups, ObjectView};
use larder_term::TermRef;
use smallvec::SmallVec;

impl EngineTable {
    /// Calls `visit` with each object under the index key, in order of arrival, and returns their
    /// number. O(1) (ordered_set: O(log n)), and linear in the bytes that are found.
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

    /// The same as [`lookup`](EngineTable::lookup), with the thread's `local`, for host interfaces.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn lookup_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        visit: impl FnMut(Stored<'_>),
    ) -> Result<usize, Error> {
        // (1) Whether the table is still alive is checked in (3).
        self.may_read(who)?;
        // (2) Pin the epoch.
        let guard = local.pin();
        // (3) Load the state word. If a list batch is in progress that has objects under the key,
        // this inserts them first.
        let op = self.begin_on(&guard, key, Intent::Read)?;
        // (4) to (6) Hash the key, copy the objects, and visit the copies.
        Ok(self.visit_in(local, &op, self.key(key), visit))
    }

    /// Looks up several keys. `visit` gets each object with the number of its key. After the last
    /// object of a key it is called with `None`, and then returns whether to continue.
    ///
    /// Each key is looked up by itself, so the result is no snapshot. The cache misses of the keys
    /// overlap.
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
        // If a list batch holds the latch, return `Busy`: the keys would have to be settled with it
        // one by one. From here on there are no errors, so no key is visited twice.
        let op = self.begin(&guard)?;
        let mut batch = KeyBatch::new();
        let is_far = op.store.is_far(MANY_TO_READ);
        for from in (0..keys.len()).step_by(MAX_KEYS_PER_LOOKUP) {
            batch.fill(keys.len() - from, |i| self.key(keys.get(from + i)));
            // Prefetch the leaves of all keys of this group, then copy their values if they are
            // short. The keys of a bag are only prefetched here, and looked up one by one below.
            let unique = match &op.store.index {
                TableIndex::Unique(ix) => Some(ix),
                TableIndex::Multi(_) => None,
            };
            match unique {
                Some(ix) => ix.get_many(&guard, batch.keys(), is_far, &mut local.short_values),
                None => op.store.prefetch(&guard, batch.keys(), MANY_TO_READ),
            }
            for (i, &key) in batch.keys().iter().enumerate() {
                let Local {
                    short_values,
                    plain,
                    ..
                } = &mut *local;
                match unique.map(|_| short_values.get(i)) {
                    Some((Lookup::Absent, _)) => {}
                    // The value was copied, and the copy was validated.
                    Some((Lookup::Short(len), bytes)) => {
                        let (key, keypos) = (key.bytes, self.keypos());
                        let stored = Stored::beginning(key, bytes, len, keypos, plain);
                        visit(from + i, Some(stored));
                    }
                    // The value is long, or there may be several: look the key up by itself.
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

    /// Whether there is an object under the index key. See [`lookup`](EngineTable::lookup).
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn member(&self, who: OwnerId, key: &[u8]) -> Result<bool, Error> {
        with_local(|local| self.member_in(local, who, key))
    }

    /// The same as [`member`](EngineTable::member), with the thread's `local`, for host interfaces.
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

    /// Calls `visit` with the elements at these positions (counted from 1) of each object under the
    /// index key, one object after the other. `visit` also gets the place of the position among
    /// `positions`. Returns the number of objects. See [`lookup`](EngineTable::lookup).
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Position` if a position is 0, or beyond the end of one of the
    /// objects. Nothing has been visited then.
    pub fn lookup_elements(
        &self,
        who: OwnerId,
        key: &[u8],
        positions: &[usize],
        visit: &mut dyn FnMut(usize, TermRef<'_>),
    ) -> Result<usize, Error> {
        with_local(|local| self.lookup_elements_in(local, who, key, positions, visit))
    }

    /// The same as [`lookup_elements`](EngineTable::lookup_elements), with the thread's `local`,
    /// for host interfaces.
    ///
    /// # Errors
    /// As `lookup_elements`.
    #[inline]
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
        // The errors of the table take precedence, so the positions are checked after `begin_on`.
        if positions.contains(&0) {
            return Err(Error::Position);
        }
        let key = self.key(key);
        // The common case: one object, copied to the stack if it is short.
        let TableIndex::Unique(ix) = &op.store.index else {
            return self.lookup_elements_of_bag(local, &op, key, positions, &mut visit);
        };
        let mut short = [0; SHORT_VALUE];
        let found = copy_of(&**ix, &guard, key, &mut short, &mut local.value);
        let Some((bytes, len)) = found else {
            return Ok(0);
        };
        // The index has validated the copy. The handles in it stay valid while the epoch is pinned.
        let (keypos, last) = (self.keypos(), || furthest(positions));
        let value = &bytes[..len];
        let object = raw::view_up_to(key.bytes, value, keypos, last, &mut local.plain);
        visit_elements(&object, positions, &mut visit)?;
        Ok(1)
    }

    /// `lookup_elements` of a bag or duplicate_bag.
    fn lookup_elements_of_bag(
        &self,
        local: &mut Local,
        op: &Operation<'_>,
        key: Key<'_>,
        positions: &[usize],
        visit: &mut dyn FnMut(usize, TermRef<'_>),
    ) -> Result<usize, Error> {
        op.store.index.copy(op.guard, key, &mut local.values);
        let (plain, last) = (&mut local.plain, furthest(positions));
        // Check all objects before the first one is visited, since nothing may be visited if there
        // is an error.
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

    /// Steps 5 and 6: visits the objects under a key, and returns their number.
    #[inline]
    pub(crate) fn visit_in(
        &self,
        local: &mut Local,
        op: &Operation<'_>,
        key: Key<'_>,
        mut visit: impl FnMut(Stored<'_>),
    ) -> usize {
        let Local {
            value: long,
            values,
            plain,
            ..
        } = local;
        // (5) Copy the value, if it isn't lent: to the stack if it is short, otherwise to the
        // thread's buffer. In a bag, copy the values of one instant.
        let (mut short, mut others) = ([0; SHORT_VALUE], None);
        let mut found = match &op.store.index {
            TableIndex::Unique(ix) => copy_of(&**ix, op.guard, key, &mut short, long),
            TableIndex::Multi(_) => {
                copy_all(op, key.bytes, key.hash, values);
                others.insert(values.iter()).next().map(whole)
            }
        };
        // (6) Visit them. If the caller opens a compressed object, it is unpacked to `plain`. This
        // is the only call of `visit`, so that it is compiled once, within its caller.
        let mut count = 0;
        while let Some((bytes, len)) = found {
            let object = Stored::beginning(key.bytes, bytes, len, self.keypos(), &mut *plain);
            visit(object);
            count += 1;
            found = others.as_mut().and_then(Iterator::next).map(whole);
        }
        count
    }
}

/// A value and its length, as `copy_of` returns them.
#[inline]
fn whole(value: &[u8]) -> (&[u8], usize) {
    (value, value.len())
}

/// Copies all values under a key of a bag or duplicate_bag. The parts of the key are arguments of
/// their own: if the key were one, the caller would copy it in memory, and wait for the copy.
#[inline(never)]
fn copy_all(op: &Operation<'_>, bytes: &[u8], hash: u64, values: &mut Values) {
    op.store.index.copy(op.guard, Key { bytes, hash }, values);
}

/// The greatest of some positions.
fn furthest(positions: &[usize]) -> usize {
    positions.iter().copied().max().unwrap_or(0)
}

/// Calls `visit` with the elements at these positions, in the order of `positions`. Takes time
/// linear in the number of positions and in the elements up to the last of them.
///
/// # Errors
/// `Position` if the object is too short for one of them. Nothing has been visited then.
#[inline]
fn visit_elements(
    object: &ObjectView<'_>,
    positions: &[usize],
    mut visit: impl FnMut(usize, TermRef<'_>),
) -> Result<(), Error> {
    // One position is the usual case, and needs no list of elements.
    let &[position] = positions else {
        return visit_several(object, positions, &mut visit);
    };
    visit(0, object.element(position).ok_or(Error::Position)?);
    Ok(())
}

/// `visit_elements` for several positions, or none. An element is found by walking over those
/// before it, so one walk finds all of them, in whatever order the positions are. Only a few of a
/// wide object are looked for one by one.
fn visit_several(
    object: &ObjectView<'_>,
    positions: &[usize],
    visit: &mut dyn FnMut(usize, TermRef<'_>),
) -> Result<(), Error> {
    let last = furthest(positions);
    // Checked before the first visit, so that an error has visited nothing.
    if last > object.arity() {
        return Err(Error::Position);
    }
    // A few elements of a wide object are found by the lengths of its groups.
    const FEW: usize = 4;
    let few = positions.len() <= FEW && positions.len() * groups::GROUP < last;
    if few && groups::are_known(object.lengths()) {
        for (i, &position) in positions.iter().enumerate() {
            visit(i, object.element(position).ok_or(Error::Position)?);
        }
        return Ok(());
    }
    // Walk over the elements once, and then pick in the order of the positions.
    let elements: SmallVec<[TermRef<'_>; 32]> = object.iter().take(last).collect();
    for (i, &position) in positions.iter().enumerate() {
        let element = position.checked_sub(1).and_then(|at| elements.get(at));
        visit(i, *element.ok_or(Error::Position)?);
    }
    Ok(())
}

/// Copies the value under a key: to `short` if it fits, otherwise to `long`. Returns the buffer and
/// the length of the value in it. The buffer may have other bytes after the value. A value in
/// memory of its own isn't copied: it is immutable, and stays as long as the guard is pinned.
#[inline]
pub(crate) fn copy_of<'v>(
    ix: &'v dyn Unique,
    guard: &'v Guard,
    key: Key<'_>,
    short: &'v mut [u8; SHORT_VALUE],
    long: &'v mut Vec<u8>,
) -> Option<(&'v [u8], usize)> {
    let mut lent = None;
    // In either case the index has validated the leaf's version after the copy.
    match ix.get_or_lend(guard, key, short, long, &mut lent) {
        Lookup::Absent => None,
        Lookup::Short(len) => Some((short, len)),
        Lookup::Long => {
            let value = lent.unwrap_or(long);
            Some((value, value.len()))
        }
    }
}
