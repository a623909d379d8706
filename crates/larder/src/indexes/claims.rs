//! Values of unique indexes, which are claimed before a row is written.
//!
//! A write claims the values that its row is to have while it holds the lock of the row's key. If
//! another row has one of them, the write is refused, and gives back what it has claimed.
//!
//! A claim may stand for a row that never comes: of a write that is refused for another value, or
//! that a change of the table's state word stops, of a list, or of a commit. A write that meets a
//! claim must not be refused for such a one. So claims that may be given back are counted while
//! they are under way, and those that were given back. A write is refused only if no claim was
//! under way when it met another's, and none was given back since it began. Otherwise it begins
//! anew.
//!
//! # Invariants
//!
//! 1. All indexes of a table, one set of them after the other, have one `Claims`: a claim that was
//!    made by way of an older set is counted for the newer ones.
//! 2. A write revalidates once more when it has made its claims. A batch that takes a value out of
//!    an index and brings it back holds the latch meanwhile. So who claims the value in between
//!    gives it back.
//! 3. The number of a commit, and the clock that a write reads, come after their claims. A write
//!    that gives a value up reads the clock before it removes the entry. So whoever gets the value
//!    is not before the one that gave it up, for any snapshot.

use super::entries::Claim;
use super::layer::{with_working, Working};
use super::values::has;
use super::{Entries, Indexes};
use larder_index::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Values};
use larder_term::Atom;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Claims of a table.
#[derive(Default)]
pub(super) struct Claims {
    /// Claims that may be given back.
    under_way: AtomicUsize,
    /// Claims that were given back.
    undone: AtomicU64,
}

/// Why a row must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another row has its value in the index of this name.
    Taken(Atom),
    /// Another write has claimed its value, and may give it back.
    Unsettled,
}

/// Values that are claimed for rows which are to be written.
pub(crate) struct Claimed {
    indexes: Arc<Indexes>,
    made: Vec<Made>,
    /// Values that one of the rows gives up to another.
    heirs: Vec<Made>,
    are_kept: bool,
}

/// A claim that was made: the number of the index, the value, the key.
type Made = (usize, Vec<u8>, Vec<u8>);

impl Claims {
    fn begin(&self) {
        // Ordering: SeqCst, all of this file: who meets a claim that is given back later sees it
        // under way, or sees that one was given back.
        self.under_way.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self, are_kept: bool) {
        if !are_kept {
            self.undone.fetch_add(1, Ordering::SeqCst);
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }

    fn undone(&self) -> u64 {
        self.undone.load(Ordering::SeqCst)
    }

    /// Whether a claim that was met stands for a row that is there, if so many were given back
    /// before; `own` are under way for the caller.
    fn is_settled(&self, undone: u64, own: usize) -> bool {
        let others = self.under_way.load(Ordering::SeqCst) - own;
        others == 0 && self.undone() == undone || planted(Fault::UnsettledClaim)
    }
}

impl Indexes {
    /// Claims the values of a row that is to be written in place of another, or beside the others
    /// of a bag's key. Called under the key's lock. If it is refused, or `revalidate` says no
    /// afterwards, nothing is claimed.
    pub(crate) fn claim(
        self: &Arc<Self>,
        guard: &Guard,
        (key, old, new): (&[u8], Option<&[u8]>, &[u8]),
        revalidate: impl FnOnce() -> bool,
    ) -> Result<(), Refused> {
        if !self.has_unique() {
            return Ok(());
        }
        let mut claimed = Claimed::begin(self);
        claimed.claim(guard, key, old, new)?;
        claimed.keep_if(revalidate)
    }

    fn claim_each(
        &self,
        guard: &Guard,
        key: &[u8],
        (old, new): (Option<&[u8]>, &[u8]),
        made: &mut Vec<Made>,
    ) -> Result<(), Refused> {
        with_working(|working| {
            let Working {
                plain,
                scratch,
                old: before,
                new: after,
                ..
            } = working;
            for (number, entries) in self.unique() {
                before.clear();
                if let Some(old) = old {
                    self.values_of(entries, (key, old), (plain, scratch), before);
                }
                self.values_of(entries, (key, new), (plain, scratch), after);
                for value in after.iter().filter(|value| !has(before, value)) {
                    self.claim_value((number, entries), guard, (value, key), made)?;
                }
            }
            Ok(())
        })
    }

    fn claim_value(
        &self,
        (number, entries): (usize, &Entries),
        guard: &Guard,
        (value, key): (&[u8], &[u8]),
        made: &mut Vec<Made>,
    ) -> Result<(), Refused> {
        let undone = self.claims.undone();
        match entries.claim(guard, (value, key), self.one) {
            Claim::Made => made.push((number, value.to_vec(), key.to_vec())),
            Claim::Own => {}
            Claim::Taken if !self.claims.is_settled(undone, 1) => return Err(Refused::Unsettled),
            // An index that is being built is given up instead.
            Claim::Taken if entries.breaks() => {}
            Claim::Taken => return Err(Refused::Taken(entries.definition.name)),
        }
        Ok(())
    }

    /// Makes the entry of a value that so many rows of a key have, in a unique index that is being
    /// built. Called under the key's lock.
    ///
    /// # Errors
    /// As of `claim`. A value that several rows of the key have breaks the index.
    pub(super) fn claim_for_build(
        &self,
        entries: &Entries,
        guard: &Guard,
        (value, key, rows): (&[u8], &[u8], u64),
    ) -> Result<(), Refused> {
        let undone = self.claims.undone();
        // The rows are there: this claim is not given back.
        let claim = entries.claim(guard, (value, key), true);
        if claim == Claim::Taken && !self.claims.is_settled(undone, 0) {
            return Err(Refused::Unsettled);
        }
        if rows > 1 {
            entries.breaks();
        }
        match claim {
            Claim::Taken => Err(Refused::Taken(entries.definition.name)),
            Claim::Made | Claim::Own => Ok(()),
        }
    }

    /// The values of all rows of a key, in order.
    fn all_values(&self, entries: &Entries, key: &[u8], rows: &Values) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        with_working(|working| {
            for row in rows.iter() {
                let buffers = (&mut working.plain, &mut working.scratch);
                self.values_of(entries, (key, row), buffers, &mut working.new);
                all.extend(working.new.iter().map(<[u8]>::to_vec));
            }
        });
        all.sort_unstable();
        all
    }

    /// The unique indexes, with their numbers.
    fn unique(&self) -> impl Iterator<Item = (usize, &Arc<Entries>)> {
        let each = self.each.iter().enumerate();
        each.filter(|(_, entries)| entries.definition.unique)
    }

    fn give_back(&self, guard: &Guard, made: &[Made]) {
        let mut position = Vec::new();
        for (number, value, key) in made.iter().rev() {
            self.each[*number].remove(guard, (value, key), &mut position);
        }
    }
}

impl Claimed {
    /// No claims yet, for rows that are written together.
    pub(crate) fn begin(indexes: &Arc<Indexes>) -> Self {
        indexes.claims.begin();
        Claimed {
            indexes: Arc::clone(indexes),
            made: Vec::new(),
            heirs: Vec::new(),
            are_kept: false,
        }
    }

    /// Claims the values of one more row.
    pub(crate) fn claim(
        &mut self,
        guard: &Guard,
        key: &[u8],
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<(), Refused> {
        let Claimed { indexes, made, .. } = self;
        indexes.claim_each(guard, key, (old, new), made)
    }

    /// Claims the values of rows that are written together: of each key, what it has and what it is
    /// to have. A value that one of them gives up may be another's.
    pub(crate) fn claim_together(
        &mut self,
        guard: &Guard,
        rows: &[(&[u8], Values, Values)],
    ) -> Result<(), Refused> {
        let indexes = Arc::clone(&self.indexes);
        for (number, entries) in indexes.unique() {
            let mut given_up = BTreeMap::<Vec<u8>, Option<&[u8]>>::new();
            let mut wanted = Vec::<(Vec<u8>, &[u8])>::new();
            for (key, old, new) in rows {
                let (before, after) = (
                    indexes.all_values(entries, key, old),
                    indexes.all_values(entries, key, new),
                );
                // Two rows of a bag's key.
                if after.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(Refused::Taken(entries.definition.name));
                }
                let is_in = |all: &[Vec<u8>], value: &Vec<u8>| all.binary_search(value).is_ok();
                let (stay, new): (Vec<_>, Vec<_>) =
                    after.into_iter().partition(|own| is_in(&before, own));
                wanted.extend(new.into_iter().map(|value| (value, *key)));
                let gone = before.into_iter().filter(|own| !is_in(&stay, own));
                given_up.extend(gone.map(|value| (value, None)));
            }
            for (value, key) in &wanted {
                match given_up.get_mut(value) {
                    // These come last, as they are not given back.
                    Some(heir @ None) => *heir = Some(key),
                    Some(_) => return Err(Refused::Taken(entries.definition.name)),
                    None => self.claim_value((number, entries), guard, (value, key))?,
                }
            }
            for (value, heir) in given_up {
                if let Some(key) = heir {
                    self.heirs.push((number, value, key.to_vec()));
                }
            }
        }
        Ok(())
    }

    fn claim_value(
        &mut self,
        (number, entries): (usize, &Entries),
        guard: &Guard,
        (value, key): (&[u8], &[u8]),
    ) -> Result<(), Refused> {
        let (indexes, made) = (&self.indexes, &mut self.made);
        indexes.claim_value((number, entries), guard, (value, key), made)
    }

    /// Hands the values that rows give up to those that are to have them. Nothing is given back
    /// after this: the rows are written.
    pub(crate) fn hand_over(&mut self, guard: &Guard) {
        for (number, value, key) in self.heirs.drain(..) {
            self.indexes.each[number].hand_over(guard, (&value, &key));
        }
    }

    /// Gives the claim that was made last back; false if there is none left.
    pub(crate) fn give_one_back(&mut self, guard: &Guard) -> bool {
        let last = self.made.pop();
        self.indexes.give_back(guard, last.as_slice());
        last.is_some()
    }

    /// The claims stay if `revalidate` consents: then the rows are written.
    pub(crate) fn keep_if(self, revalidate: impl FnOnce() -> bool) -> Result<(), Refused> {
        if self.made.is_empty() || revalidate() {
            self.keep();
            return Ok(());
        }
        Err(Refused::Unsettled)
    }

    /// The rows are written: the claims stay.
    pub(crate) fn keep(mut self) {
        self.are_kept = true;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.are_kept {
            self.indexes.give_back(&larder_index::pin(), &self.made);
        }
        self.indexes.claims.end(self.are_kept);
    }
}
