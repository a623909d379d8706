//! Operations by key, on a handle's table.

use crate::failure::Failure;
use crate::handles::Handle;
use crate::item::{long_of, with_row, write_row, Item};
use larder::host::{
    with_local, Budget, Decision, Error, Local, ObjectList, Step, Stored, TimeLeft,
};
use larder_term::object::ObjectBuf;

/// What `Handle::change` does with the value under a key.
enum Change<'v> {
    Keep,
    Remove,
    Put(Item<'v>),
}

impl Handle {
    /// Retries an operation until no list that is being inserted blocks it.
    #[inline]
    pub(crate) fn patiently<R>(
        &self,
        mut f: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Failure> {
        loop {
            match f() {
                // A list of rows that takes effect at one instant blocks the operation. Help the
                // list to its end instead of waiting: its own thread may be suspended. Or there is
                // no list, and the call has done only a slice of its work, such as sums of ranks.
                // Then the next call continues there.
                Err(Error::Busy) => {
                    while self.engine.help_batch(&mut Budget::slice()) == Step::More {}
                }
                result => return result.map_err(Failure::Engine),
            }
        }
    }

    /// As `patiently`, for an operation on an index key.
    #[inline]
    fn at<R>(
        &self,
        key: Item<'_>,
        mut f: impl FnMut(&[u8]) -> Result<R, Error>,
    ) -> Result<R, Failure> {
        key.with_key(|key| self.patiently(|| f(key)))
    }

    /// Calls `visit` with the value that `call` passes to the visitor, and returns its result.
    /// `None` if there is no value.
    #[inline]
    fn with_visited<R, V: FnMut(Item<'_>) -> Result<R, Failure>, T>(
        &self,
        key: Item<'_>,
        visit: V,
        mut call: impl FnMut(&mut Local, &[u8], &mut Visitor<V, R>) -> Result<T, Error>,
    ) -> Result<Option<R>, Failure> {
        let mut visitor = Visitor::new(visit);
        self.at(key, |key| {
            with_local(|local| call(local, key, &mut visitor))
        })?;
        visitor.result
    }

    /// Calls `visit` with the value under a key, and returns its result. `None` if there is no
    /// value.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        key: Item<'_>,
        visit: impl FnMut(Item<'_>) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        self.with_visited(key, visit, |local, key, visitor| {
            (self.engine).lookup_in(local, self.owner, key, |stored| visitor.visit(stored))
        })
    }

    pub(crate) fn contains(&self, key: Item<'_>) -> Result<bool, Failure> {
        self.at(key, |key| self.engine.member(self.owner, key))
    }

    pub(crate) fn put(&self, key: Item<'_>, value: Item<'_>) -> Result<(), Failure> {
        with_row(&self.engine, key, value, |row| {
            self.patiently(|| self.engine.insert(self.owner, row))
        })
    }

    /// Puts a row that expires after `ttl` milliseconds, or never if that is `None`.
    pub(crate) fn put_for(
        &self,
        key: Item<'_>,
        value: Item<'_>,
        ttl: Option<u64>,
    ) -> Result<(), Failure> {
        with_row(&self.engine, key, value, |row| {
            self.patiently(|| self.engine.insert_with(self.owner, row, ttl))
        })
    }

    pub(crate) fn expire(&self, key: Item<'_>, ttl: Option<u64>) -> Result<bool, Failure> {
        self.at(key, |key| self.engine.expire(self.owner, key, ttl))
    }

    pub(crate) fn time_left(&self, key: Item<'_>) -> Result<TimeLeft, Failure> {
        self.at(key, |key| self.engine.time_left(self.owner, key))
    }

    /// Puts a value. Returns the result of `visit` for the value that it replaces.
    #[inline]
    pub(crate) fn exchange<R>(
        &self,
        key: Item<'_>,
        value: Item<'_>,
        visit: impl FnMut(Item<'_>) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        let mut visitor = Visitor::new(visit);
        with_row(&self.engine, key, value, |row| {
            self.patiently(|| {
                with_local(|local| {
                    let visit = |stored: Stored<'_>| visitor.visit(stored);
                    (self.engine).exchange_in(local, self.owner, row.borrow(), visit)
                })
            })
        })?;
        visitor.result
    }

    /// Puts a value unless there is one. Returns the result of `visit` for the existing value.
    pub(crate) fn put_new<R>(
        &self,
        key: Item<'_>,
        value: Item<'_>,
        mut visit: impl FnMut(Item<'_>) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        with_row(&self.engine, key, value, |row| loop {
            if self.patiently(|| self.engine.insert_new(self.owner, row))? {
                return Ok(None);
            }
            // There was a row. It is read in a second step, so another thread may have removed it
            // meanwhile. Then start again. Each round fails only because somebody else has made
            // progress.
            if let Some(there) = self.get(key, &mut visit)? {
                return Ok(Some(there));
            }
        })
    }

    /// Removes a row. Returns the result of `visit` for its value.
    #[inline]
    pub(crate) fn remove<R>(
        &self,
        key: Item<'_>,
        visit: impl FnMut(Item<'_>) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        self.with_visited(key, visit, |local, key, visitor| {
            (self.engine).take_in(local, self.owner, key, |stored| visitor.visit(stored))
        })
    }

    /// Changes the value under a key as `decide` says. Atomic; `decide` is called again if another
    /// thread changes the value meanwhile.
    fn change<'v>(
        &self,
        key: Item<'_>,
        mut decide: impl FnMut(Option<Item<'_>>) -> Result<Change<'v>, Failure>,
    ) -> Result<(), Failure> {
        let mut failed = None;
        self.at(key, |index_key| {
            with_local(|local| {
                let f = |stored: Option<Stored<'_>>, row: &mut ObjectBuf| {
                    // No lock is held. `stored` is a copy of the value. If the row has another
                    // value when the decision is carried out, the engine calls this again.
                    // Beside a list the engine begins again. What has failed stays failed.
                    if failed.is_some() {
                        return Ok(Decision::Keep);
                    }
                    let decision = stored.map(Item::value).transpose().and_then(&mut decide);
                    Ok(match decision {
                        Ok(Change::Keep) => Decision::Keep,
                        Ok(Change::Remove) => Decision::Remove,
                        Ok(Change::Put(value)) => {
                            write_row(&self.engine, key, value, row);
                            Decision::Put
                        }
                        Err(failure) => {
                            // The engine has no decision that fails. Leave the row as it is, and
                            // fail after the call.
                            failed = Some(failure);
                            Decision::Keep
                        }
                    })
                };
                self.engine.compute_in(local, self.owner, index_key, f)
            })
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Replaces `expected` by `new`, where `None` means no row. Returns whether it did. Atomic.
    pub(crate) fn compare_and_set(
        &self,
        key: Item<'_>,
        expected: Option<Item<'_>>,
        new: Option<Item<'_>>,
    ) -> Result<bool, Failure> {
        let mut did = false;
        self.change(key, |now| {
            did = now == expected;
            Ok(match new {
                _ if !did => Change::Keep,
                None => Change::Remove,
                Some(value) => Change::Put(value),
            })
        })?;
        Ok(did)
    }

    /// Adds to the integer under a key, or to 0 if there is none. Returns the sum, which wraps as
    /// in Java: as an `int` or as a `long`. Atomic.
    pub(crate) fn add(&self, key: Item<'_>, increment: i64, is_int: bool) -> Result<i64, Failure> {
        let mut sum = 0;
        self.change(key, |now| {
            let long = now.map_or(Ok(0), long_of)?.wrapping_add(increment);
            sum = if is_int { i64::from(long as i32) } else { long };
            Ok(Change::Put(Item::Int(sum)))
        })?;
        Ok(sum)
    }

    /// Inserts rows all at once.
    pub(crate) fn put_all<'a>(
        &self,
        rows: impl Iterator<Item = Result<(Item<'a>, Item<'a>), Failure>>,
    ) -> Result<(), Failure> {
        let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
        for row in rows {
            let (key, value) = row?;
            write_row(&self.engine, key, value, &mut object);
            list.push(&object);
        }
        // The rows take effect at one instant. Other threads that the list blocks before that help
        // it to its end (`patiently`).
        let mut job = self.engine.begin_insert(self.owner, list, false)?;
        while job.step(&mut Budget::slice())? == Step::More {}
        Ok(())
    }
}

/// A callback for the value that an operation finds, and the callback's result.
struct Visitor<V, R> {
    visit: V,
    /// `None` until the callback has been called.
    result: Result<Option<R>, Failure>,
}

impl<R, V: FnMut(Item<'_>) -> Result<R, Failure>> Visitor<V, R> {
    #[inline]
    fn new(visit: V) -> Self {
        Visitor {
            visit,
            result: Ok(None),
        }
    }

    #[inline]
    fn visit(&mut self, stored: Stored<'_>) {
        self.result = Item::value(stored).and_then(&mut self.visit).map(Some);
    }
}
