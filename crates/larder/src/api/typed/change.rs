//! Changes that depend on the present value: compute, compare_exchange, pop, retain.

use super::key::{EncodeKey, OrderedKey};
use super::order::Order;
use super::row::View;
use super::{bytes, range, row, Typed};
use crate::budget::Step;
use crate::error::Error;
use crate::local::with_local;
use crate::ops::Decision;
use crate::scan::{KeyBounds, Page};
use larder_index::Direction;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::borrow::Borrow;

/// About how many rows `retain` reads at once in a table with an order.
const PAGE: usize = 64;

/// The change of a value.
pub(super) enum Next<'n, V> {
    /// Leave it as it is.
    Keep,
    /// Replace it by this one.
    Put(&'n V),
    /// Remove it.
    Remove,
}

impl<K: OrderedKey, V: Serialize + DeserializeOwned, O: Order> Typed<K, V, O> {
    /// Calls `f` with the value under a key, if there is one. `then` turns the result into a
    /// change. Repeats both if another thread changes the value meanwhile.
    pub(super) fn change<Q: EncodeKey + ?Sized>(
        &self,
        key: &Q,
        mut f: impl FnMut(
            Option<V>,
            &mut dyn FnMut(Next<'_, V>) -> Result<(), Error>,
        ) -> Result<(), Error>,
    ) -> Result<(), Error> {
        const { super::key::inserted_by::<K, Q>() };
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |index_key| {
            with_local(|local| {
                // This closure is called without a lock. If the row has changed when its decision
                // is to be written, it is called again.
                table.compute_in(local, me, index_key, |stored, object| {
                    // The stored value as a value of Rust. `f` has it alone.
                    let old = stored.map(row::value).transpose()?;
                    let mut decision = Decision::Keep;
                    f(old, &mut |next| {
                        decision = match next {
                            Next::Keep => Decision::Keep,
                            Next::Remove => Decision::Remove,
                            Next::Put(value) => {
                                bytes::write_object(table, key, value, object, |leaf, enc| {
                                    O::leave_out_key(leaf, enc)
                                })?;
                                Decision::Put
                            }
                        };
                        Ok(())
                    })?;
                    Ok(decision)
                })
            })
        })
    }

    /// Replaces the value under a key by the result of `f` for it. `None` stands for no value,
    /// before and after. Returns the result of `f`. Atomic: no update is lost.
    ///
    /// `f` is called again if another thread changes the value meanwhile. It may use other tables,
    /// and this one.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let words = Larder::new().typed::<String, u64>("words")?;
    /// for word in "the cat and the hat".split(' ') {
    ///     words.compute(word, |n| Some(n.unwrap_or(0) + 1))?;
    /// }
    /// assert_eq!(words.get("the")?, Some(2));
    /// // The last one goes.
    /// words.compute("cat", |n| n.filter(|&n| n > 1))?;
    /// assert_eq!(words.get("cat")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for an invalid key, a value that can't be converted to a term, and a row of
    /// other types. Nothing is changed then. `NoTable`, `ReadOnly`, `Full`, `NotUnique`.
    ///
    /// # Complexity
    /// That of a `get` and a `put` for each call of `f`.
    pub fn compute<Q>(
        &self,
        key: &Q,
        mut f: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        // The last attempt's value is the one that was stored.
        let mut made = None;
        self.change(key, |old, then| {
            made = f(old);
            then(made.as_ref().map_or(Next::Remove, Next::Put))
        })?;
        Ok(made)
    }

    /// Replaces the value under a key by `new`, if it equals `current`. `None` stands for no value.
    /// Returns `Ok` with the previous value if it did, and otherwise `Err` with the present value.
    /// Atomic.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let leases = Larder::new().typed::<String, u32>("leases")?;
    /// assert_eq!(leases.compare_exchange("disk", None, Some(&1))?, Ok(None));
    /// assert_eq!(leases.compare_exchange("disk", None, Some(&2))?, Err(Some(1)));
    /// assert_eq!(leases.compare_exchange("disk", Some(&1), None)?, Ok(Some(1)));
    /// assert_eq!(leases.get("disk")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `compute`.
    pub fn compare_exchange<Q>(
        &self,
        key: &Q,
        current: Option<&V>,
        new: Option<&V>,
    ) -> Result<Result<Option<V>, Option<V>>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
        V: PartialEq,
    {
        let mut answer = Ok(None);
        // The answer is set in each attempt, so the last one counts.
        self.change(key, |old, then| {
            let fits = old.as_ref() == current;
            then(match (fits, new) {
                (false, _) => Next::Keep,
                (true, Some(new)) => Next::Put(new),
                (true, None) => Next::Remove,
            })?;
            answer = if fits { Ok(old) } else { Err(old) };
            Ok(())
        })?;
        Ok(answer)
    }

    /// Removes the rows for which `f` returns `false`. Returns their number. `f` is called once for
    /// each row. Each row is checked and removed atomically: if another thread changes its value in
    /// between, `f` is called again.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().typed::<String, u32>("stock")?;
    /// stock.extend([("pear".into(), 0), ("plum".into(), 20)])?;
    /// assert_eq!(stock.retain(|_, n| *n > 0)?, 1);
    /// assert_eq!(stock.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `iter`, and `ReadOnly`. Rows that were removed before the error stay removed.
    ///
    /// # Consistency
    /// That of `iter`: `f` may be called for rows that other threads insert meanwhile, or not.
    pub fn retain(&self, mut f: impl FnMut(&K, &V) -> bool) -> Result<usize, Error> {
        // Without an order, a leaf is read at once.
        let wanted = if O::KIND.is_ordered() { PAGE } else { 0 };
        let (mut removed, mut unread, mut page) = (0, KeyBounds::ALL, Page::default());
        loop {
            let end = Direction::Forward;
            let step = range::next_page(&self.table, &mut unread, end, wanted, &mut page)?;
            // Nothing is pinned or locked while `f` is called with the rows of a page.
            while let Some(stored) = page.next() {
                let (key, value, term) = row::with_term::<K, V, O>(stored)?;
                if f(&key, &value) {
                    continue;
                }
                // The value was tested, unless there is another one now.
                let is_removed = self.remove_if(&key, |now| {
                    Ok(now.term().identical(term.as_ref()) || !f(&key, &now.read()?))
                })?;
                removed += usize::from(is_removed);
            }
            if step != Step::More {
                return Ok(removed);
            }
        }
    }

    /// Removes the row under a key, if there is one and `goes` returns `true` for its value.
    /// Returns whether it did.
    fn remove_if(
        &self,
        key: &K,
        mut goes: impl FnMut(View<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        let mut is_removed = false;
        self.at(key, |index_key| {
            with_local(|local| {
                table.compute_in(local, me, index_key, |stored, _| {
                    is_removed = match stored {
                        Some(stored) => goes(row::view(stored)?)?,
                        None => false,
                    };
                    Ok(match is_removed {
                        true => Decision::Remove,
                        false => Decision::Keep,
                    })
                })
            })
        })?;
        Ok(is_removed)
    }
}

impl<K: OrderedKey, V: Serialize + DeserializeOwned> Typed<K, V> {
    /// Removes the first row, and returns it. Concurrent calls get different rows.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let jobs = Larder::new().typed::<(u8, u64), String>("jobs")?;
    /// jobs.insert((1, 7), "urgent".into())?;
    /// jobs.insert((5, 3), "later".into())?;
    /// assert_eq!(jobs.pop_first()?, Some(((1, 7), "urgent".into())));
    /// assert_eq!(jobs.pop_last()?, Some(((5, 3), "later".into())));
    /// assert_eq!(jobs.pop_first()?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a row of other types, which stays; `NoTable`, `ReadOnly`.
    ///
    /// # Consistency
    /// The row was the first one at an instant during the call. Another row that is inserted before
    /// it after that instant may be in the table when the row is removed.
    pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(Self::first)
    }

    /// Removes the last row, and returns it. See `pop_first`.
    ///
    /// # Errors
    /// Those of `pop_first`.
    pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(Self::last)
    }

    fn pop(
        &self,
        edge: impl Fn(&Self) -> Result<Option<(K, V)>, Error>,
    ) -> Result<Option<(K, V)>, Error> {
        while let Some((key, _)) = edge(self)? {
            let mut taken = None;
            self.change(&key, |old, then| {
                taken = old;
                then(Next::Remove)
            })?;
            // Another thread may have removed it. Try the next one.
            if let Some(value) = taken {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}
