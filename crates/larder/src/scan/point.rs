//! Match specifications that name the key of what they look for: one lookup, and the program on
//! what it finds.
//!
//! What the lookup finds need not fit: in an ordered_set 1 finds 1.0. So the program's test of the
//! key is run with the rest of it.

use super::Output;
use crate::buffers::Lent;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::local::Local;
use crate::raw;
use crate::table::Table;
use larder_matchspec::{Context, Outcome, Program};
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
                let object = stored.view();
                match point.program.run(&object, point.context, &mut lent.scratch) {
                    Some(Outcome::Object) => sink(Output::Object(&object)),
                    Some(Outcome::Term(term)) => sink(Output::Term(term)),
                    None => {}
                }
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
        self.may_write(who)?;
        let mut lent = Lent::new();
        let gone = self.at_point(local, point, |local, key| {
            let guard = local.pin();
            let plain = &mut local.plain;
            self.delete_where(&guard, key, |value| {
                let object = raw::view(key, value, self.keypos(), plain);
                let (program, scratch) = (point.program, &mut lent.scratch);
                program.is_true(&object, point.context, scratch)
            })
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
