//! Reading by key.
//!
//! Linearisation point of each: the load of the leaf's version that the index's check confirms. All
//! objects under one key are seen as of one instant. No lock is taken.

use crate::error::Error;
use crate::gate::Intent;
use crate::keys::{KeyList, Near, MANY_TO_READ};
use crate::local::{with_local, Local};
use crate::owner::{OwnerId, Who};
use crate::raw;
use crate::scratch;
use crate::store::Index;
use crate::table::{At, Table};
use larder_index::{Guard, Key, Lookup, Unique, Values, SHORT, TOGETHER};
use larder_term::object::{self, ObjectView, COMPRESSED};
use larder_term::TermRef;

/// An object that was found under a key, as it is stored.
pub struct Stored<'a> {
    key: &'a [u8],
    /// The value, and whatever lies behind it.
    bytes: &'a [u8],
    len: usize,
    keypos: usize,
    plain: &'a mut Vec<u8>,
}

impl<'a> Stored<'a> {
    /// The object of a key and a value; `plain` takes what has to be unpacked.
    #[inline]
    pub(crate) fn new(
        key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        plain: &'a mut Vec<u8>,
    ) -> Self {
        Stored {
            key,
            bytes: value,
            len: value.len(),
            keypos,
            plain,
        }
    }

    /// The object.
    #[inline]
    pub fn view(self) -> ObjectView<'a> {
        raw::view(self.key, &self.bytes[..self.len], self.keypos, self.plain)
    }

    /// Its key, if it is an integer that an ordered_set found, or else the object.
    #[inline]
    pub fn int_key_or_view(self) -> Result<i64, ObjectView<'a>> {
        match object::ordered_int(self.key, self.bytes) {
            Some(n) => Ok(n),
            None => Err(self.view()),
        }
    }

    /// Its key, where that is known without opening the object: mostly, in a table without order.
    #[inline]
    pub fn index_key(&self) -> Option<TermRef<'a>> {
        object::index_key_is_key(self.bytes).then(|| raw::stored(self.key))
    }

    /// Which element is the key, from 1.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.keypos
    }

    /// Bytes of the value.
    #[inline]
    pub fn size(&self) -> usize {
        self.len
    }

    /// The arity, and the bytes of the elements without the key with others behind them, where
    /// nothing has to be unpacked and the key is the very term that leads to its index key: a term
    /// without floats that found it is it.
    #[inline]
    pub fn beside_key(&self) -> Option<(usize, &'a [u8])> {
        object::beside_key(self.bytes)
    }
}

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

    /// As `lookup`, for doors.
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
        self.may_read(who)?;
        let guard = local.pin();
        let at = self.begin_on(&guard, key, Intent::Read)?;
        Ok(self.visit_in(local, &at, self.key(key), visit))
    }

    /// As `lookup`, for several keys; `visit` is told which key an object belongs to. Each key is
    /// looked up by itself: the whole is no snapshot. Their misses in the processor's caches
    /// overlap.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`: before anything is visited.
    pub fn lookup_many(
        &self,
        who: OwnerId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &ObjectView<'_>),
    ) -> Result<usize, Error> {
        let mut all = KeyList::new();
        keys.iter().for_each(|key| all.push(key));
        let mut found = 0;
        with_local(|local| {
            self.lookup_many_in(local, who, &all, |i, stored| {
                if let Some(stored) = stored {
                    found += 1;
                    visit(i, &stored.view());
                }
                true
            })
        })?;
        Ok(found)
    }

    /// As `lookup_many`, for doors. `visit` is called with `None` after the last object of each
    /// key, and then says whether to go on.
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
        let at = self.begin(&guard)?;
        let mut near = Near::new();
        let is_far = at.store.is_far(MANY_TO_READ);
        for from in (0..keys.len()).step_by(TOGETHER) {
            near.fill(self, keys, from);
            // Short values are copied at once, after the ways to all of their leaves were asked
            // for.
            let unique = match &at.store.index {
                Index::One(ix) => Some(ix),
                Index::Many(_) => None,
            };
            match unique {
                Some(ix) => ix.get_short_many(&guard, near.keys(), is_far, &mut local.shorts),
                None => at.store.prefetch(&guard, near.keys(), MANY_TO_READ),
            }
            for (i, &key) in near.keys().iter().enumerate() {
                let Local { shorts, plain, .. } = &mut *local;
                match unique.map(|_| shorts.get(i)) {
                    Some((Lookup::Absent, _)) => {}
                    Some((Lookup::Short(len), bytes)) => {
                        let (key, keypos) = (key.bytes, self.keypos());
                        let stored = Stored {
                            key,
                            bytes,
                            len,
                            keypos,
                            plain,
                        };
                        visit(from + i, Some(stored));
                    }
                    Some((Lookup::Long, _)) | None => {
                        self.visit_in(local, &at, key, |stored| {
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

    /// As `member`, for doors.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline(always)]
    pub fn member_in(&self, local: &mut Local, who: impl Who, key: &[u8]) -> Result<bool, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let at = self.begin_on(&guard, key, Intent::Read)?;
        Ok(at.store.contains(&guard, self.key(key)))
    }

    /// Calls `visit` with the element at `pos` (from 1) of each object under the index key; gives
    /// how many, 0 if the key is absent. As `lookup`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Position` if `pos` is 0, or past the end of one of the
    /// objects: then nothing is visited.
    pub fn lookup_element(
        &self,
        who: OwnerId,
        key: &[u8],
        pos: usize,
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<usize, Error> {
        with_local(|local| self.lookup_element_in(local, who, key, pos, visit))
    }

    /// As `lookup_element`, for doors.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `Position`.
    #[inline(always)]
    pub fn lookup_element_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        pos: usize,
        mut visit: impl FnMut(TermRef<'_>),
    ) -> Result<usize, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let at = self.begin_on(&guard, key, Intent::Read)?;
        if pos == 0 {
            return Err(Error::Position);
        }
        let key = self.key(key);
        let Index::One(ix) = &at.store.index else {
            return self.elements_of(local, &at, key, pos, &mut visit);
        };
        let mut short = [0; SHORT];
        let found = copy_of(&**ix, &guard, key, &mut short, &mut local.value);
        let Some((bytes, len)) = found else {
            return Ok(0);
        };
        let object = raw::view(key.bytes, &bytes[..len], self.keypos(), &mut local.plain);
        visit(object.element(pos).ok_or(Error::Position)?);
        Ok(1)
    }

    /// `lookup_element` where there may be several objects under the key.
    fn elements_of(
        &self,
        local: &mut Local,
        at: &At<'_>,
        key: Key<'_>,
        pos: usize,
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<usize, Error> {
        self.copy(at, key.bytes, &mut local.values);
        let plain = &mut local.plain;
        let long_enough = local
            .values
            .iter()
            .all(|value| raw::view(key.bytes, value, self.keypos(), plain).arity() >= pos);
        if !long_enough {
            return Err(Error::Position);
        }
        for value in local.values.iter() {
            let object = raw::view(key.bytes, value, self.keypos(), plain);
            if let Some(element) = object.element(pos) {
                visit(element);
            }
        }
        Ok(local.values.len())
    }

    /// Copies the values under a key, all as of one instant.
    pub(crate) fn copy(&self, at: &At<'_>, key: &[u8], values: &mut Values) {
        values.clear();
        let key = self.key(key);
        match &at.store.index {
            Index::One(ix) => {
                if ix.get(at.guard, key, &mut values.bytes) {
                    values.end(0);
                }
            }
            Index::Many(ix) => {
                ix.read(at.guard, key, values);
            }
        }
    }

    /// Visits the objects under a key.
    pub(crate) fn visit(
        &self,
        at: &At<'_>,
        key: &[u8],
        visit: &mut dyn FnMut(&ObjectView<'_>),
    ) -> usize {
        scratch::with(|s| {
            self.copy(at, key, &mut s.values);
            for value in s.values.iter() {
                visit(&raw::view(key, value, self.keypos(), &mut s.plain));
            }
            s.values.len()
        })
    }

    /// As `visit`, for a key with its hash.
    #[inline(always)]
    pub(crate) fn visit_in(
        &self,
        local: &mut Local,
        at: &At<'_>,
        key: Key<'_>,
        mut visit: impl FnMut(Stored<'_>),
    ) -> usize {
        let Index::One(ix) = &at.store.index else {
            return self.visit_all(local, at, key, &mut visit);
        };
        let mut short = [0; SHORT];
        let found = copy_of(&**ix, at.guard, key, &mut short, &mut local.value);
        let Some((bytes, len)) = found else {
            return 0;
        };
        visit(Stored {
            key: key.bytes,
            bytes,
            len,
            keypos: self.keypos(),
            plain: &mut local.plain,
        });
        1
    }

    /// `visit_in` where there may be several objects under the key.
    fn visit_all(
        &self,
        local: &mut Local,
        at: &At<'_>,
        key: Key<'_>,
        visit: &mut dyn FnMut(Stored<'_>),
    ) -> usize {
        self.copy(at, key.bytes, &mut local.values);
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

    /// Whether two values under one key are the same object (`=:=`). Bytes decide, but where
    /// handles or a zero's sign are in the way.
    #[inline]
    pub(crate) fn same(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        a == b
            || ((raw::has_handles(a)
                || raw::has_handles(b)
                || may_hold_large_maps(a, b)
                || may_be_zeros(a, b))
                && self.same_elements(key, a, b))
    }

    #[cold]
    fn same_elements(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        let (mut plain_a, mut plain_b) = (Vec::new(), Vec::new());
        let a = raw::view(key, a, self.keypos(), &mut plain_a);
        let b = raw::view(key, b, self.keypos(), &mut plain_b);
        a.identical(&b)
    }
}

/// A copy of the value under a key: in `short` if it is, else in `long`; with what lies behind it,
/// and its length.
#[inline(always)]
fn copy_of<'v>(
    ix: &dyn Unique,
    guard: &Guard,
    key: Key<'_>,
    short: &'v mut [u8; SHORT],
    long: &'v mut Vec<u8>,
) -> Option<(&'v [u8], usize)> {
    match ix.get_short(guard, key, short, Some(long)) {
        Lookup::Absent => None,
        Lookup::Short(len) => Some((short, len)),
        Lookup::Long => Some((&long[..], long.len())),
    }
}

/// Whether different values may be identical because a large map in them has two forms.
#[inline]
fn may_hold_large_maps(a: &[u8], b: &[u8]) -> bool {
    // So many bytes at least for its keys and values.
    const SHORTEST: usize = 2 * 33;
    a.len().min(b.len()) >= SHORTEST && larder_term::tree_maps()
}

/// Whether different values may be identical because the host's `=:=` takes -0.0 for 0.0: then they
/// differ first in their flags (one keeps its exact key, or is compressed), or in the sign of a
/// float.
fn may_be_zeros(a: &[u8], b: &[u8]) -> bool {
    larder_term::legacy_zero()
        && match a.iter().zip(b).enumerate().find(|(_, (x, y))| x != y) {
            Some((0, _)) => true,
            Some((_, (x, y))) => x ^ y == 0x80 && x & y == 0 || a[0] & COMPRESSED != 0,
            None => false,
        }
}
