//! Going from key to key: first, next, last, prev.
//!
//! A step asks the index for the entry next to a key; it needs nothing to be fixed. Hash order and
//! key order both survive whatever else happens to the table: a key that is there throughout is met
//! exactly once.
//!
//! Steps that follow each other are answered from the thread's read-ahead cursor, while the table,
//! or the leaf, does not change (see `read_ahead`).
//!
//! Linearisation point: the load of the leaf's version that the index's check confirms; for an
//! answer that was read ahead, the load of the change stamp, or of the version that says that the
//! leaf is as it was.

use super::begin::Operation;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::read_ahead::{NextEntry, ReadAhead, StepFrom};
use crate::stored::Stored;
use crate::table::Table;
use larder_index::{Direction, Key};
use larder_term::TermRef;

impl Table {
    /// Calls `visit` with the first key; false if the table is empty.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn first(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(who, None, Direction::Forward, visit)
    }

    /// Calls `visit` with the last key; for the unordered types, as `first`.
    ///
    /// # Errors
    /// As `first`.
    pub fn last(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(who, None, Direction::Backward, visit)
    }

    /// Calls `visit` with the key after this one; false if it is the last. An ordered_set takes any
    /// key; the others one that is there, or was deleted since the table was fixed.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `BadKey`.
    pub fn next(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<bool, Error> {
        self.step(who, Some(key), Direction::Forward, visit)
    }

    /// Calls `visit` with the key before this one; for the unordered types, as `next`.
    ///
    /// # Errors
    /// As `next`.
    pub fn prev(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<bool, Error> {
        self.step(who, Some(key), Direction::Backward, visit)
    }

    /// The way a traversal really goes: unordered tables know only one.
    pub(crate) fn way(&self, direction: Direction) -> Direction {
        if self.kind().is_ordered() {
            direction
        } else {
            Direction::Forward
        }
    }

    fn step(
        &self,
        who: OwnerId,
        from: Option<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<bool, Error> {
        let visit = |stored: Stored<'_>| {
            visit(stored.view().key());
            0
        };
        with_local(|local| self.step_in(local, who, from, (direction, false), visit))
    }

    /// One step, for hosts: from a key, or from the edge for none, to the next key in a direction.
    /// Calls `visit` with the first object under it, or with `all` each. Its answer is a number
    /// that stands for the key for ever, or 0 for none: see [`Local::has_shown`].
    ///
    /// 1. A step that continues the last is answered from what was read ahead, if that is current.
    /// 2. Otherwise the index is asked for the entry next to the key and, if the step continues the
    ///    last, for some more.
    /// 3. In a table without order the key must be there, or have been deleted since the table was
    ///    fixed.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `BadKey` as `next`.
    #[inline]
    pub fn step_in(
        &self,
        local: &mut Local,
        who: impl Who,
        from: Option<&[u8]>,
        (direction, all): (Direction, bool),
        mut visit: impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        self.may_read(who)?;
        let way = self.way(direction);
        let mut continues = false;
        // (1) No epoch is pinned, and no leaf looked at. All objects of a bag's key are never
        // answered so.
        if let Some(key) = from.filter(|_| self.reads_ahead(all)) {
            continues = self.continues(&local.read_ahead, StepFrom::Key(key), way);
            if !continues {
                local.read_ahead.begins_anew();
            } else if let Some(next) = self.read_ahead(&mut local.read_ahead) {
                let shown = self.show(next, &mut local.plain, &mut visit);
                return Ok(note_shown(&mut local.read_ahead, shown));
            }
        }
        self.look(local, (from, continues), (way, all), &mut visit)
    }

    /// A step from the key that was shown as this number. It is answered from what was read ahead,
    /// or None, and nothing was done.
    #[inline]
    pub fn step_on(
        &self,
        local: &mut Local,
        who: impl Who,
        number: u64,
        direction: Direction,
        mut visit: impl FnMut(Stored<'_>) -> u64,
    ) -> Option<bool> {
        self.may_read(who).ok()?;
        if !self.continues(
            &local.read_ahead,
            StepFrom::Shown(number),
            self.way(direction),
        ) {
            return None;
        }
        let next = self.read_ahead(&mut local.read_ahead)?;
        let shown = self.show(next, &mut local.plain, &mut visit);
        Some(note_shown(&mut local.read_ahead, shown))
    }

    /// Whether a step may be answered from what was read ahead.
    #[inline(always)]
    fn reads_ahead(&self, all: bool) -> bool {
        !all || self.kind().is_unique()
    }

    /// Whether a step continues the last of this thread.
    #[inline(always)]
    fn continues(&self, ahead: &ReadAhead, from: StepFrom<'_>, way: Direction) -> bool {
        ahead.continues(self.changes.number(), from, way)
    }

    /// What comes after the last answer, from what was read ahead. It has no handles, so nobody has
    /// to be kept from releasing them meanwhile.
    #[inline(always)]
    fn read_ahead<'l>(&self, ahead: &'l mut ReadAhead) -> Option<NextEntry<'l>> {
        if self.state.tag() != 0 {
            // Dead or busy: `begin` says which.
            return None;
        }
        ahead.next(|stamp| self.changes.holds(stamp))
    }

    /// Shows what comes after a key. None at the end, else what the key was shown as.
    #[inline(always)]
    fn show(
        &self,
        next: NextEntry<'_>,
        plain: &mut Vec<u8>,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Option<u64> {
        match next {
            NextEntry::Entry(key, value) => {
                Some(visit(Stored::new(key, value, self.keypos(), plain)))
            }
            NextEntry::End => None,
        }
    }

    /// (2), (3) A step that looks at leaves: from a key, and whether it continues the last.
    #[inline(never)]
    fn look(
        &self,
        local: &mut Local,
        (from, continues): (Option<&[u8]>, bool),
        (way, all): (Direction, bool),
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        let guard = local.pin();
        let op = self.begin(&guard)?;
        let changes = &self.changes;
        let (mut stamp, mut more) = (None, 0);
        // What is read ahead of a bounded table may be expired when it is asked for.
        let lasts = op.store.bounded().is_none();
        let same = |key: &[u8], seen| op.store.index.unchanged(&guard, self.key(key), seen);
        if from.is_none() && lasts && self.reads_ahead(all) {
            let first = local.read_ahead.first_unchanged(changes.number(), same);
            if let Some(first) = first {
                let shown = self.show(first, &mut local.plain, visit);
                return Ok(note_shown(&mut local.read_ahead, shown));
            }
        }
        if continues && lasts {
            // The table was changed: perhaps the leaf that was read was not. Then the next entry
            // of the cursor is current, although its stamp is not.
            if let Some(next) = local.read_ahead.next_unchanged(same) {
                let shown = self.show(next, &mut local.plain, visit);
                return Ok(note_shown(&mut local.read_ahead, shown));
            }
            let with_stamp;
            (more, with_stamp) = local.read_ahead.wanted();
            // Armed before the leaf is read. Changes of a store that was replaced before note
            // nothing that this stamp would see: it is kept for the current store alone.
            stamp = with_stamp
                .then(|| changes.arm())
                .filter(|_| self.state.holds(op.state, &guard));
        }
        // The entries go to the cursor's spare batch, so that the last answer stays until there is
        // another.
        let is_first = from.is_none();
        let from = from.map(|key| self.key(key));
        let here = op.go(from, way, more, &mut local.read_ahead);
        // (3) The key need not be there in an ordered_set.
        if let (Some(key), false, false) = (from, here, self.kind().is_ordered()) {
            self.check_deleted(&op, key)?;
        }
        if !self.reads_ahead(all) {
            return Ok(self.give_all(&op, local, visit));
        }
        let ReadAhead { spare, .. } = &local.read_ahead;
        let next = match spare.is_empty() {
            true => NextEntry::End,
            false => NextEntry::Entry(spare.key(0), spare.value(0)),
        };
        let shown = self.show(next, &mut local.plain, visit);
        if shown.is_some() {
            // What lies behind the answer is kept, for a step that continues it.
            let unique = self.kind().is_unique();
            local
                .read_ahead
                .keep(changes.number(), stamp, (way, is_first), unique);
        }
        Ok(note_shown(&mut local.read_ahead, shown))
    }

    /// Whether a key that is not in the table, which has no order, was deleted since it was fixed.
    ///
    /// # Errors
    /// `BadKey` if it was not.
    #[cold]
    fn check_deleted(&self, op: &Operation<'_>, key: Key<'_>) -> Result<(), Error> {
        if !self.fixation.is_fixed() {
            return Err(Error::BadKey);
        }
        if !self.kind().is_unique() {
            // A writer that is taking its last objects out remembers the key before this returns.
            // If the key is back meanwhile, it is remembered all the same.
            let _ = op.store.index.contains(op.guard, key);
        }
        match self.fixation.was_deleted(op.guard, key) {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }

    /// Visits all objects of a bag under the key that was read, or under the next that has some.
    fn give_all(
        &self,
        op: &Operation<'_>,
        local: &mut Local,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> bool {
        loop {
            // Lent away, as the look-up of the key's objects needs the rest of `local`.
            let batch = std::mem::take(&mut local.read_ahead.spare);
            let key = (!batch.is_empty()).then(|| self.key(batch.key(0)));
            let see = |stored: Stored<'_>| {
                visit(stored);
            };
            let some = key.map(|key| self.visit_in(local, op, key, see) > 0);
            if some == Some(false) {
                // The key went between the step and the look-up: on to the next.
                op.go(key, Direction::Forward, 0, &mut local.read_ahead);
                continue;
            }
            local.read_ahead.put_back(batch);
            return some.is_some();
        }
    }
}

/// Notes what the key of an answer was shown as. Whether there was an answer.
#[inline(always)]
fn note_shown(ahead: &mut ReadAhead, shown: Option<u64>) -> bool {
    if let Some(number) = shown {
        ahead.show(number);
    }
    shown.is_some()
}

impl Operation<'_> {
    /// Reads the entry next to a key, or the first of the direction for none, into the cursor's
    /// spare batch, and if `more` is not 0, about so many after it. Whether the key is there.
    #[inline]
    fn go(&self, key: Option<Key<'_>>, way: Direction, more: usize, ahead: &mut ReadAhead) -> bool {
        let batch = &mut ahead.spare;
        match key {
            Some(key) if more > 0 => self.go_far(key, way, 1 + more, ahead),
            _ => self.store.index.step(self.guard, key, way, batch),
        }
    }

    fn go_far(&self, key: Key<'_>, way: Direction, want: usize, ahead: &mut ReadAhead) -> bool {
        let (index, guard) = (&self.store.index, self.guard);
        // Not of the same instant as what follows: a key that goes in between was there when the
        // step began.
        let here = index.contains(guard, key);
        ahead.spare.want = want;
        ahead.spare.firsts = true;
        index.scan_past(guard, key, way, &mut ahead.position, &mut ahead.spare);
        here
    }
}
