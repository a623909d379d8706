//! Reading by key.
//!
//! Linearisation point of each: the load of the leaf's version that the index's check confirms. All objects under one key are seen as of
//! one instant. No lock is taken.

use crate::error::Error;
use crate::owner::OwnerId;
use crate::raw;
use crate::scratch::{self, Values};
use crate::store::Index;
use crate::table::{At, Table};
use larder_term::object::{ObjectView, COMPRESSED};
use larder_term::TermRef;

impl Table {
    /// Calls `visit` with each object under the index key, in order of arrival; gives how many. O(1) (ordered_set: O(log n)) and
    /// linear in what is found.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn lookup(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(&ObjectView<'_>),
    ) -> Result<usize, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let at = self.begin(&guard)?;
        Ok(self.visit(&at, key, visit))
    }

    /// As `lookup`, for several keys; `visit` is told which key an object belongs to. Each key is looked up by itself: the whole is no snapshot.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`: before anything is visited.
    pub fn lookup_many(
        &self,
        who: OwnerId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &ObjectView<'_>),
    ) -> Result<usize, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let at = self.begin(&guard)?;
        let found = keys
            .iter()
            .enumerate()
            .map(|(i, key)| self.visit(&at, key, &mut |object| visit(i, object)));
        Ok(found.sum())
    }

    /// Whether there is an object under the index key. As `lookup`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn member(&self, who: OwnerId, key: &[u8]) -> Result<bool, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let at = self.begin(&guard)?;
        Ok(at.store.contains(&guard, self.key(key)))
    }

    /// Calls `visit` with the element at `pos` (from 1) of each object under the index key; gives how many, 0 if the key is absent. As `lookup`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Position` if `pos` is 0, or past the end of one of the objects: then nothing is visited.
    pub fn lookup_element(
        &self,
        who: OwnerId,
        key: &[u8],
        pos: usize,
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<usize, Error> {
        self.check_read(who)?;
        if pos == 0 {
            return Err(Error::Position);
        }
        let guard = larder_index::pin();
        let at = self.begin(&guard)?;
        scratch::with(|s| {
            self.copy(&at, key, &mut s.values);
            let long_enough = s
                .values
                .iter()
                .all(|value| raw::view(key, value, self.keypos(), &mut s.plain).arity() >= pos);
            if !long_enough {
                return Err(Error::Position);
            }
            for value in s.values.iter() {
                let object = raw::view(key, value, self.keypos(), &mut s.plain);
                if let Some(element) = object.element(pos) {
                    visit(element);
                }
            }
            Ok(s.values.len())
        })
    }

    /// Copies the values under a key, all as of one instant.
    pub(crate) fn copy(&self, at: &At<'_>, key: &[u8], values: &mut Values) {
        values.clear();
        let key = self.key(key);
        match &at.store.index {
            Index::One(ix) => {
                if ix.get(at.guard, key, &mut values.bytes) {
                    values.end();
                }
            }
            Index::Many(ix) => {
                ix.get(at.guard, key, &mut |value| values.push(value));
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

    /// Whether two values under one key are the same object (`=:=`). Bytes decide, but where handles or a zero's sign are in the way.
    #[inline]
    pub(crate) fn same(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        a == b
            || ((raw::has_handles(a) || raw::has_handles(b) || may_be_zeros(a, b))
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

/// Whether different values may be identical because the host's `=:=` takes -0.0 for 0.0: then they differ first in their flags (one keeps
/// its exact key, or is compressed), or in the sign of a float.
fn may_be_zeros(a: &[u8], b: &[u8]) -> bool {
    larder_term::legacy_zero()
        && match a.iter().zip(b).enumerate().find(|(_, (x, y))| x != y) {
            Some((0, _)) => true,
            Some((_, (x, y))) => x ^ y == 0x80 && x & y == 0 || a[0] & COMPRESSED != 0,
            None => false,
        }
}
