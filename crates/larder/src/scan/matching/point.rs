//! Match specifications that bind the key: one lookup, and the program is run on the objects that
//! it finds.
//!
//! The program may still not match such an object: in an ordered_set the key 1 finds 1.0. So the
//! whole program is run, including its test of the key.

use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::TableIndex;
use crate::local::Local;
use crate::ops::Intent;
use crate::programs::{Context, Program};
use crate::raw;
use crate::scan::output::{Output, Sink};
use crate::scan::select::result_of;
use crate::table::EngineTable;
use larder_term::TermRef;

/// A program, its context, and the key that it binds (`Program::bound_key`).
#[derive(Clone, Copy)]
pub struct Point<'a> {
    /// The key.
    pub key: TermRef<'a>,
    /// The program.
    pub program: &'a Program,
    /// What the program may ask about its host.
    pub context: &'a Context<'a>,
}

impl EngineTable {
    /// Passes the results for the objects under the key to `sink`, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`. No result has been passed then.
    ///
    /// # Consistency
    /// All objects are seen as of one instant.
    pub fn select_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<(), Error> {
        let mut buffers = ThreadBuffers::new();
        // The key is looked up like any other. Its objects are copies, so the program runs without
        // a lock.
        let read = self.at_point(local, point, |local, key| {
            self.lookup_in(local, who, key, |stored| {
                let (program, scratch) = (Some(point.program), &mut buffers.scratch);
                result_of(program, stored.view(), point.context, scratch, sink);
            })
        })?;
        local.note_read(read);
        Ok(())
    }

    /// Like `select_point`, for a caller that needs few results. If the key may have many objects,
    /// returns `false` and passes nothing: a scan of the key reads no more objects than it needs.
    ///
    /// # Errors
    /// Those of `select_point`.
    pub fn select_point_of_few(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<bool, Error> {
        if self.kind().is_unique() {
            return self.select_point(local, who, point, sink).map(|()| true);
        }
        let mut buffers = ThreadBuffers::new();
        self.at_point(local, point, |local, key| {
            // Right, epoch, state: the steps of `ops::lookup`.
            self.may_read(who)?;
            let guard = local.pin();
            let op = self.begin_on(&guard, key, Intent::Read)?;
            let TableIndex::Multi(ix) = &op.store.index else {
                return Ok(false);
            };
            let Buffers {
                batch,
                plain,
                scratch,
                ..
            } = &mut *buffers;
            Ok(batch.lend(|batch| {
                // Read all objects of the key at one instant, if they are few. Otherwise the batch
                // is empty, and so nothing is passed.
                let is_few = ix.scan_key(&guard, self.key(key), batch);
                for i in 0..batch.len() {
                    let object = raw::view(key, batch.value(i), self.keypos(), plain);
                    result_of(Some(point.program), object, point.context, scratch, sink);
                }
                is_few
            }))
        })
    }

    /// Counts the objects under the key for which the program's result is `true`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn count_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
    ) -> Result<u64, Error> {
        let (mut buffers, mut count) = (ThreadBuffers::new(), 0);
        // As in `select_point`; the program only says whether its result is `true`.
        let read = self.at_point(local, point, |local, key| {
            self.lookup_in(local, who, key, |stored| {
                let object = stored.view();
                let (program, scratch) = (point.program, &mut buffers.scratch);
                count += u64::from(program.is_true(&object, point.context, scratch));
            })
        })?;
        local.note_read(read);
        Ok(count)
    }

    /// Deletes the objects under the key for which the program's result is `true`, in one change.
    /// Returns their number.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
    ) -> Result<u64, Error> {
        self.delete_at(local, who, point, None)
    }

    /// Deletes the objects under the key that the program matches, in one change, and passes its
    /// results for them to `sink`, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`. Nothing has been deleted then, and no result has been passed.
    pub fn take_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<(), Error> {
        self.delete_at(local, who, point, Some(sink))?;
        Ok(())
    }

    /// `delete_point`, or `take_point` if there is a sink for results.
    #[inline(always)]
    fn delete_at(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        take: Option<&mut Sink<'_>>,
    ) -> Result<u64, Error> {
        self.may_write(who)?;
        let (mut buffers, takes) = (ThreadBuffers::new(), take.is_some());
        let (program, scratch) = (point.program, &mut buffers.scratch);
        let mut read = 0;
        let removed = self.at_point(local, point, |local, key| {
            // Stay pinned until the results have been passed on: the handles in the values are
            // counted by the table.
            let guard = local.pin();
            let (plain, values) = (&mut local.plain, &mut local.values);
            if takes {
                values.clear();
            }
            // If the delete restarts, it hasn't shown any value to the closure before.
            let removed = self.delete_where(&guard, key, |value| {
                let object = raw::view(key, value, self.keypos(), plain);
                read += 1;
                if !takes {
                    return program.is_true(&object, point.context, scratch);
                }
                let shown = program.show(&object, point.context, scratch, |_| ());
                let goes = shown.is_some();
                if goes {
                    values.push(value);
                }
                goes
            })?;
            // The objects are deleted. Only now are results passed on, from the copies.
            if let Some(sink) = take {
                for value in values.iter() {
                    let object = raw::view(key, value, self.keypos(), plain);
                    result_of(Some(program), object, point.context, scratch, sink);
                }
            }
            Ok::<_, Error>(removed)
        })?;
        local.note_read(read);
        Ok(removed as u64)
    }

    /// Calls `f` with the index key of a point.
    #[inline]
    pub(super) fn at_point<R>(
        &self,
        local: &mut Local,
        point: Point<'_>,
        f: impl FnOnce(&mut Local, &[u8]) -> R,
    ) -> R {
        // Take the buffer out of `local`, which `f` borrows, and put it back afterwards.
        let mut key = std::mem::take(&mut local.encoded_key);
        key.clear();
        self.encode_key(point.key, &mut key);
        let result = f(local, &key);
        local.encoded_key = key;
        result
    }
}
