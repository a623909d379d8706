//! Writes of a set or ordered_set that depend on what is there, or give it: `exchange`, `compute`.
//!
//! `compute` calls its caller's function without a lock:
//!
//! 1. Copy the value under the key, as a lookup does.
//! 2. Let the function decide: keep it, put another in its place, remove it.
//! 3. Write, if under the leaf's lock the value has the bytes that were copied; else begin anew.
//!
//! Equal bytes are the same object: the epoch is pinned from (1) to (3), so no handle that was
//! copied is given back and used for something else meanwhile.
//!
//! Linearisation points: the store with which the index unlocks the leaf; if `compute` keeps what
//! is there, the load of the leaf's version that the copy's check confirms.

use super::begin::{Intent, Operation};
use super::commit::Written;
use crate::error::Error;
use crate::ids::Who;
use crate::index::Index;
use crate::local::Local;
use crate::stored::Stored;
use crate::table::Table;
use larder_index::{Previous, Unique};
use larder_term::object::{ObjectBuf, ObjectRef};

/// What becomes of the object under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is; absent stays absent.
    Keep,
    /// The object that was written takes its place.
    Put,
    /// It is removed.
    Remove,
}

impl Operation<'_> {
    /// The index of a set or ordered_set.
    ///
    /// # Errors
    /// `TableType` for a bag, whose key has no one object that could be meant.
    fn unique(&self) -> Result<&dyn Unique, Error> {
        match &self.store.index {
            Index::Unique(ix) => Ok(&**ix),
            Index::Multi(_) => Err(Error::TableType),
        }
    }
}

impl Table {
    /// Inserts an object, and calls `visit` with the one whose place it took; whether there was
    /// one.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `TableType` for bags.
    #[inline]
    pub fn exchange_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
        visit: impl FnOnce(Stored<'_>),
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(object.key());
        // Pinned until the old object was visited: its handles are given back only then.
        let guard = local.pin();
        let old = &mut local.value;
        let there = self.writing_under(&guard, key.bytes, |op| {
            // An attempt that has to begin anew has copied what may be another's by now.
            old.clear();
            let value = (object.value(), object.is_given());
            // Copied under the lock, visited without it.
            let (written, was) = self.put_one(op, op.unique()?, key, value, |value| {
                value.into_iter().for_each(|v| old.extend_from_slice(v));
                true
            });
            Ok((written, was == Previous::Present))
        })?;
        if there {
            let (keypos, plain) = (self.keypos(), &mut local.plain);
            visit(Stored::new(key.bytes, &local.value, keypos, plain));
        }
        Ok(there)
    }

    /// Does with the object under an index key what `f` decides, which sees it, if there is one,
    /// and writes an object of this key to a buffer if it is to take its place. `f` is called
    /// again, with what is there then, if somebody else changed the object meanwhile. No lock is
    /// held while it runs, so it may use any table; the epoch is pinned, so memory that others free
    /// is kept until it returns.
    ///
    /// # Errors
    /// What `f` answers, and then nothing is changed; `NoTable`, `Access`, `Busy`; `TableType` for
    /// bags.
    pub fn compute_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        mut f: impl FnMut(Option<Stored<'_>>, &mut ObjectBuf) -> Result<Decision, Error>,
    ) -> Result<(), Error> {
        self.may_write(who)?;
        let (guard, hashed) = (local.pin(), self.key(key));
        // Taken out of the thread's things: `f` may come back here.
        let mut seen = std::mem::take(&mut local.bytes);
        let mut object = ObjectBuf::new();
        loop {
            // (1)
            seen.clear();
            let op = self.begin_on(&guard, key, Intent::Read)?;
            op.unique()?;
            let there = self.visit_in(local, &op, hashed, |stored| {
                seen.extend_from_slice(stored.value());
            }) > 0;
            // (2)
            let (keypos, plain) = (self.keypos(), &mut local.plain);
            let stored = there.then(|| Stored::new(key, &seen, keypos, plain));
            let decision = f(stored, &mut object)?;
            // (3)
            let old = there.then_some(&seen[..]);
            let is_done = self.writing_under(&guard, key, |op| match (decision, old) {
                (Decision::Keep, _) | (Decision::Remove, None) => Ok((Written::Done, true)),
                (Decision::Put, _) => {
                    let (ix, value) = (op.unique()?, (object.value(), false));
                    let (written, was) = self.put_one(op, ix, hashed, value, |now| now == old);
                    Ok((written, was != Previous::Refused))
                }
                (Decision::Remove, Some(old)) => {
                    let (written, was) =
                        self.remove_one(op, op.unique()?, hashed, |now| now == old);
                    Ok((written, was == Previous::Present))
                }
            })?;
            if is_done {
                local.bytes = seen;
                return Ok(());
            }
        }
    }
}
