//! Match specifications that name the key of what they look for: one lookup, and the program on
//! what it finds.
//!
//! What the lookup finds need not fit: in an ordered_set 1 finds 1.0. So the program's test of the
//! key is run with the rest of it.

use super::select::{result_of, Sink};
use super::Output;
use crate::buffers::Lent;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::local::Local;
use crate::raw;
use crate::table::Table;
use larder_matchspec::{Context, Program};
use larder_term::TermRef;

/// A program, what it runs in, and the key that it names (`Program::bound_key`).
#[derive(Clone, Copy)]
pub struct Point<'a> {
    /// The key.
    pub key: TermRef<'a>,
    /// The program.
    pub program: &'a Program,
    /// What the program may ask.
    pub context: &'a Context<'a>,
}

impl Table {
    /// Gives `sink` the results for the objects under the key, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`: then nothing was given.
    ///
    /// # Consistency
    /// As `lookup`: all objects are seen as of one instant.
    pub fn select_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<(), Error> {
        let mut lent = Lent::new();
        self.at_point(local, point, |local, key| {
            self.lookup_in(local, who, key, |stored| {
                let (program, scratch) = (Some(point.program), &mut lent.scratch);
                result_of(program, &stored.view(), point.context, scratch, sink);
            })
        })?;
        Ok(())
    }

    /// Counts the objects under the key for which the program gives `true`. As `select_point`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn count_point(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
    ) -> Result<u64, Error> {
        let (mut lent, mut count) = (Lent::new(), 0);
        self.at_point(local, point, |local, key| {
            self.lookup_in(local, who, key, |stored| {
                let object = stored.view();
                let (program, scratch) = (point.program, &mut lent.scratch);
                count += u64::from(program.is_true(&object, point.context, scratch));
            })
        })?;
        Ok(count)
    }

    /// Deletes the objects under the key for which the program gives `true`, in one change; how
    /// many.
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

    /// Deletes the objects under the key that the program matches, in one change, and gives `sink`
    /// its results for them, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`: then nothing was given.
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

    /// `delete_point`, or `take_point` if there is somewhere to put results.
    #[inline(always)]
    fn delete_at(
        &self,
        local: &mut Local,
        who: OwnerId,
        point: Point<'_>,
        take: Option<&mut Sink<'_>>,
    ) -> Result<u64, Error> {
        self.may_write(who)?;
        let (mut lent, takes) = (Lent::new(), take.is_some());
        let (program, scratch) = (point.program, &mut lent.scratch);
        let gone = self.at_point(local, point, |local, key| {
            // Pinned until the results are given: the handles in the values are the table's.
            let guard = local.pin();
            let (plain, values) = (&mut local.plain, &mut local.values);
            if takes {
                values.clear();
            }
            // An attempt that has to begin again has been shown no value.
            let gone = self.delete_where(&guard, key, |value| {
                let object = raw::view(key, value, self.keypos(), plain);
                if !takes {
                    return program.is_true(&object, point.context, scratch);
                }
                let goes = program.run(&object, point.context, scratch).is_some();
                if goes {
                    values.push(value);
                }
                goes
            })?;
            if let Some(sink) = take {
                for value in values.iter() {
                    let object = raw::view(key, value, self.keypos(), plain);
                    result_of(Some(program), &object, point.context, scratch, sink);
                }
            }
            Ok::<_, Error>(gone)
        })?;
        Ok(gone as u64)
    }

    /// Calls `f` with the index key of a point.
    #[inline]
    pub(super) fn at_point<R>(
        &self,
        local: &mut Local,
        point: Point<'_>,
        f: impl FnOnce(&mut Local, &[u8]) -> R,
    ) -> R {
        // Lent away and put back: `f` needs the rest of `local`, and the key no memory of its own.
        let mut key = std::mem::take(&mut local.bytes);
        key.clear();
        self.encode_key(point.key, &mut key);
        let result = f(local, &key);
        local.bytes = key;
        result
    }
}
