//! Writes of a set or ordered_set that depend on the previous object, or return it: `exchange`,
//! `compute`.
//!
//! `compute` calls its caller's function without a lock:
//!
//! 1. Copy the value under the key, as a lookup does, and note where it was found.
//! 2. Let the function decide: keep the value, replace it, or remove it.
//! 3. Write, if the value has the same bytes under the leaf's lock. Otherwise start again. If the
//!    leaf hasn't changed since (1), a replacement needs no search for the place.
//!
//! In a bounded table this is at most one use of the key, however often it starts: the write, or a
//! lookup if the value is kept. A removal and a call that fails are none.
//!
//! Equal bytes are the same object: the epoch is pinned from (1) to (3), so no copied handle is
//! released and reused meanwhile.
//!
//! Linearisation points: the store with which the index unlocks the leaf; if `compute` keeps what
//! is there, the load of the leaf's version that the copy's check confirms.

use super::begin::{Intent, Operation};
use super::change::{NewValue, Put};
use super::refusal::Written;
use crate::error::Error;
use crate::ids::Who;
use crate::index::TableIndex;
use crate::local::Local;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Hint, Lookup, Previous, Unique, SHORT_VALUE};
use larder_term::object::{ObjectBuf, ObjectRef};

/// The change of the object under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave it as it is. If it is absent, it stays absent.
    Keep,
    /// Replace it by the object that was written to the buffer.
    Put,
    /// Remove it.
    Remove,
}

impl Operation<'_> {
    /// The index of a set or ordered_set.
    ///
    /// # Errors
    /// `TableType` for a bag, whose keys may have several objects.
    fn unique(&self) -> Result<&dyn Unique, Error> {
        match &self.store.index {
            TableIndex::Unique(ix) => Ok(&**ix),
            TableIndex::Multi(_) => Err(Error::TableType),
        }
    }
}

impl EngineTable {
    /// Inserts an object, and calls `visit` with the one that it has replaced. Returns whether
    /// there was one.
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
        // Pin until the old object was visited, because its handles are released only after that.
        let guard = local.pin();
        let old = &mut local.value;
        let there = self.writing_under(&guard, key.bytes, |op| {
            // An attempt that has to be repeated may have copied an object that another thread has
            // replaced since.
            old.clear();
            let value = NewValue::of(&object);
            // It was copied under the lock, and is visited without it.
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

    /// Calls `f` with the object under an index key, if there is one, and makes the change that it
    /// returns. To replace the object, `f` writes one to a buffer, of which the value is used. If
    /// another thread changes the object meanwhile, `f` is called again, with the new object. No
    /// lock is held while `f` runs, so it may use any table. The epoch is pinned, so memory that
    /// other threads retire is kept until `f` returns.
    ///
    /// # Errors
    /// The error of `f`, after which nothing is changed; `NoTable`, `Access`, `Busy`; `TableType`
    /// for bags.
    pub fn compute_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        mut f: impl FnMut(Option<Stored<'_>>, &mut ObjectBuf) -> Result<Decision, Error>,
    ) -> Result<(), Error> {
        self.may_write(who)?;
        let (guard, hashed) = (local.pin(), self.key(key));
        let Local {
            value: long,
            plain,
            object,
            ..
        } = local;
        let mut attempt = || {
            // (1)
            // A read, though a write may follow: nothing is locked while `f` decides.
            let op = self.begin_on(&guard, key, Intent::Read)?;
            let mut short = [0; SHORT_VALUE];
            let (ix, mut hint) = (op.unique()?, Hint::default());
            let found = ix.get_with_hint(&guard, hashed, &mut short, Some(long), &mut hint);
            let old = match found {
                Lookup::Absent => None,
                Lookup::Short(len) => Some(&short[..len]),
                Lookup::Long => Some(&long[..]),
            };
            // (2)
            // The bytes are a copy. The handles in them stay valid while the epoch is pinned.
            let stored = old.map(|old| Stored::new(key, old, self.keypos(), plain));
            let decision = f(stored, object)?;
            // (3)
            self.writing_under(&guard, key, |op| match (decision, old) {
                (Decision::Keep, Some(_)) => {
                    if let Some(bounded) = op.store.bounded() {
                        bounded.record_use(op.guard, hashed);
                    }
                    Ok((Written::Done, true))
                }
                (Decision::Keep | Decision::Remove, None) => Ok((Written::Done, true)),
                (Decision::Put, _) => {
                    let (ix, value) = (op.unique()?, NewValue::copied(object.value()));
                    let (written, was) =
                        self.put_by(op, ix, hashed, value, Put::At(&hint), |now| now == old);
                    Ok((written, was != Previous::Refused))
                }
                (Decision::Remove, Some(old)) => {
                    let (written, was) =
                        self.remove_one(op, op.unique()?, hashed, |now| now == old);
                    Ok((written, was == Previous::Present))
                }
            })
        };
        let result = loop {
            match attempt() {
                Ok(true) => break Ok(()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        // The table has counts of its own of the new object's handles. After an error nobody needs
        // the object.
        object.clear();
        result
    }
}
