//! Going from key to key: first, next, last, prev.
//!
//! A step asks the index for the entry next to a key. The table needs not be fixed. Both orders
//! stay the same whatever else happens to the table: a key that is in the table throughout is
//! visited exactly once.
//!
//! Successive steps are answered from the thread's read-ahead cursor, as long as the table, or the
//! leaf, doesn't change (see `read_ahead`).
//!
//! Linearisation point: the load of the leaf's version that the index then validates. For an answer
//! that was read ahead, it is the load of the change stamp, or of the version that shows that the
//! leaf is unchanged.

use super::begin::Operation;
use crate::change_stamp::Stamp;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::read_ahead::{Cursors, NextEntry, ReadAhead, StepFrom};
use crate::stored::{Stored, StoredKey};
use crate::table::EngineTable;
use larder_index::{
    seen_after_removal_of, seen_after_removals, Batch, Direction, Key, Start, Stepped,
};
use larder_term::TermRef;
use smallvec::SmallVec;

impl EngineTable {
    /// Calls `visit` with the first key. Returns `false` if the table is empty.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn first(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(who, None, Direction::Forward, visit)
    }

    /// Calls `visit` with the last key. In an unordered table, the same as `first`.
    ///
    /// # Errors
    /// Those of `first`.
    pub fn last(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(who, None, Direction::Backward, visit)
    }

    /// Calls `visit` with the key after this one. Returns `false` if it is the last one. In an
    /// ordered_set the key need not be in the table. In the others it must be, or must have been
    /// deleted since the table was fixed.
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

    /// Calls `visit` with the key before this one. In an unordered table, the same as `next`.
    ///
    /// # Errors
    /// Those of `next`.
    pub fn prev(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<bool, Error> {
        self.step(who, Some(key), Direction::Backward, visit)
    }

    /// The actual direction of a traversal: unordered tables have only one.
    pub(crate) fn scan_direction(&self, direction: Direction) -> Direction {
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
        // A number of 0 says that the key isn't remembered.
        let visit = |key: StoredKey<'_>| {
            visit(key.term());
            0
        };
        with_local(|local| self.step_to_key(local, who, from, 0, direction, visit))
    }

    /// Takes one step, for hosts: from a key, or from the edge if there is none, to the next key in
    /// a direction. Calls `visit` with that key. `visit` returns a number that stands for the key
    /// for ever, or 0 for none: see [`Local::has_shown`]. `number` is that of the key `from`, or 0
    /// if it has none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `BadKey` as `next`.
    #[inline]
    pub fn step_to_key(
        &self,
        local: &mut Local,
        who: impl Who,
        from: Option<&[u8]>,
        number: u64,
        direction: Direction,
        mut visit: impl FnMut(StoredKey<'_>) -> u64,
    ) -> Result<bool, Error> {
        self.may_read(who)?;
        let request = self.step_request(from, number, direction, WantedPart::Key);
        let visit = |object: Stored<'_>| visit(object.into_key());
        self.step_to(local, request, visit)
    }

    /// Like `step_to_key`. Calls `visit` with each object under the key.
    ///
    /// # Errors
    /// Those of `step_to_key`.
    #[inline]
    pub fn step_to_objects(
        &self,
        local: &mut Local,
        who: impl Who,
        from: Option<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<bool, Error> {
        self.may_read(who)?;
        // In a bag, step to the next key, and then look it up.
        if !self.kind().is_unique() {
            let request = self.step_request(from, 0, direction, WantedPart::Key);
            return self.step_to_all(local, request, visit);
        }
        // Otherwise the step reads the object with its key.
        let request = self.step_request(from, 0, direction, WantedPart::Objects);
        // A number of 0 says that the key isn't remembered.
        let visit = |object: Stored<'_>| {
            visit(object);
            0
        };
        self.step_to(local, request, visit)
    }

    /// A step that a host has asked for.
    #[inline]
    fn step_request<'k>(
        &self,
        from: Option<&'k [u8]>,
        number: u64,
        direction: Direction,
        wanted: WantedPart,
    ) -> StepRequest<'k> {
        StepRequest {
            from,
            number,
            direction: self.scan_direction(direction),
            wanted,
            needs_key: !self.kind().is_ordered(),
            continues: false,
        }
    }

    /// Takes a step to the next key of a bag that has objects, and visits all of them.
    #[inline]
    fn step_to_all(
        &self,
        local: &mut Local,
        request: StepRequest<'_>,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<bool, Error> {
        let mut removed: Option<SmallVec<[u8; 64]>> = None;
        loop {
            let mut request = request;
            // Step from the key that was removed. It needn't be there any more.
            if let Some(key) = &removed {
                (request.from, request.number, request.needs_key) = (Some(&key[..]), 0, false);
            }
            let mut key: SmallVec<[u8; 64]> = SmallVec::new();
            let found = self.step_to(local, request, |object| {
                key.extend_from_slice(object.index_key());
                0
            })?;
            if !found {
                return Ok(false);
            }
            // The lookup of the key's objects needs the rest of `local`.
            let guard = local.pin();
            let op = self.begin(&guard)?;
            if self.visit_in(local, &op, self.key(&key), &mut visit) > 0 {
                return Ok(true);
            }
            // The key was removed between the step and the lookup. Continue with the next one.
            removed = Some(key);
        }
    }

    /// Takes a step, and calls `visit` with what is wanted of the next key: one object under it, of
    /// which only the key may be used, or the only object.
    ///
    /// 1. Answer a step that continues the last one from the read-ahead batch, if that is current.
    /// 2. Otherwise ask the index for the entry next to the key. If the step continues the last
    ///    one, also read some entries after it.
    /// 3. In an unordered table, check that the key is there, or was deleted since the table was
    ///    fixed.
    #[inline]
    fn step_to(
        &self,
        local: &mut Local,
        mut request: StepRequest<'_>,
        mut visit: impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        // (1) This pins no epoch, and reads no leaf.
        // Only a step that goes on from the last answer of a cursor can be read ahead.
        request.continues = self.choose_cursor(local, &request);
        let next = match request.from {
            Some(_) if request.continues => self.read_ahead(&mut local.read_ahead),
            None => self.polled(&mut local.read_ahead, &request),
            _ => None,
        };
        if let Some(next) = next {
            let shown = self.show(next, &mut local.plain, &mut visit);
            return Ok(note_shown(&mut local.read_ahead, shown));
        }
        self.look(local, request, &mut visit)
    }

    /// Takes a step from the key that was shown as this number. Answers it from the read-ahead
    /// batch, or returns `None` and does nothing.
    #[inline]
    pub fn step_on(
        &self,
        local: &mut Local,
        who: impl Who,
        number: u64,
        direction: Direction,
        mut visit: impl FnMut(StoredKey<'_>) -> u64,
    ) -> Option<bool> {
        // Rights are checked by every step, read ahead or not.
        self.may_read(who).ok()?;
        let (from, direction) = (StepFrom::Shown(number), self.scan_direction(direction));
        if !self.continues(&local.read_ahead, from, direction) {
            // If neither cursor continues, their order stays: the step isn't taken here.
            if !self.continues(&local.older_ahead, from, direction) {
                return None;
            }
            local.swap_cursors();
        }
        // The next entry of the batch, if the table or the leaf hasn't changed.
        let next = self.read_ahead(&mut local.read_ahead)?;
        let mut visit = |object: Stored<'_>| visit(object.into_key());
        let shown = self.show(next, &mut local.plain, &mut visit);
        Some(note_shown(&mut local.read_ahead, shown))
    }

    /// Makes the cursor whose last answer a step continues the current one; of steps from the edge,
    /// the one that was read there. If there is none, the older one, whose entries the step will
    /// replace. Returns whether the step continues.
    #[inline(always)]
    fn choose_cursor(&self, local: &mut Local, request: &StepRequest<'_>) -> bool {
        // A step from the edge continues nothing. It replaces what was read at the edge before, if
        // the current cursor has that.
        let Some(key) = request.from else {
            if !local.read_ahead.is_at_edge(self.changes.number()) {
                local.swap_cursors();
            }
            return false;
        };
        // A key that has a number is the last answer only if that was shown as the number.
        let (from, wanted) = match request.number {
            0 => (StepFrom::Key(key), request.wanted),
            number => (StepFrom::Shown(number), request.wanted),
        };
        // A walk over one table mostly continues the current cursor.
        let cursor = &local.read_ahead;
        if self.may_answer(cursor, wanted) && self.continues(cursor, from, request.direction) {
            return true;
        }
        // Two walks that take turns find theirs in the older one.
        local.swap_cursors();
        let cursor = &mut local.read_ahead;
        if self.may_answer(cursor, wanted) && self.continues(cursor, from, request.direction) {
            return true;
        }
        // Neither: a walk begins with this step.
        cursor.begin_walk();
        false
    }

    /// Whether a step may be answered from the read-ahead batch: a step to a key always, a step to
    /// its only object if the batch has it (RA3).
    #[inline]
    fn may_answer(&self, cursor: &ReadAhead, wanted: WantedPart) -> bool {
        match wanted {
            WantedPart::Key => true,
            WantedPart::Objects => cursor.has_objects(),
        }
    }

    /// Whether a step continues the last one of this thread.
    #[inline]
    fn continues(&self, cursor: &ReadAhead, from: StepFrom<'_>, direction: Direction) -> bool {
        cursor.continues(self.changes.number(), from, direction)
    }

    /// The entry after the last answer, from the read-ahead batch. It has no handles, so nothing
    /// has to be kept from being released meanwhile.
    #[inline]
    fn read_ahead<'l>(&self, cursor: &'l mut ReadAhead) -> Option<NextEntry<'l>> {
        if self.state.tag() != 0 {
            // The table is dead or busy. `begin` returns the right error.
            return None;
        }
        cursor.next(|stamp| self.changes.holds(stamp))
    }

    /// The entry at the edge, if steps from there have found it again and again, and the table
    /// hasn't changed.
    #[inline(always)]
    fn polled<'l>(
        &self,
        cursor: &'l mut ReadAhead,
        request: &StepRequest<'_>,
    ) -> Option<NextEntry<'l>> {
        // The table is dead or busy: `begin` returns the right error. Or the cursor has only a key.
        if self.state.tag() != 0 || !self.may_answer(cursor, request.wanted) {
            return None;
        }
        let holds = |stamp| self.changes.holds(stamp);
        cursor.polled(self.changes.number(), request.direction, holds)
    }

    /// Shows the entry after a key. `None` at the end, otherwise the number that its key was shown
    /// as.
    #[inline]
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

    /// (2), (3) Takes a step that reads leaves.
    #[inline(never)]
    fn look(
        &self,
        local: &mut Local,
        request: StepRequest<'_>,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        let guard = local.pin();
        let op = self.begin(&guard)?;
        // Entries that were read ahead from a bounded table may have expired when they are needed.
        let may_read_ahead = op.store.bounded().is_none();
        // How many entries to read beyond the next one, and the stamp that makes them valid.
        let (mut more, mut stamp) = (0, None);
        if (request.continues || request.from.is_none()) && may_read_ahead {
            let cursor = &mut local.read_ahead;
            stamp = self.stamp_at_edge(&op, cursor, &request);
            // The table has changed since the entries were read, but not their leaf (I7).
            if let Some(next) = self.unchanged_ahead(&op, cursor, request, stamp) {
                let shown = self.show(next, &mut local.plain, visit);
                return Ok(note_shown(&mut local.read_ahead, shown));
            }
            // The walk goes on, so read ahead again.
            if request.continues || self.consumes(&op, cursor) {
                (more, stamp) = self.wanted_ahead(&op, cursor, request.from.is_none());
            }
        }
        let start = request.from.map(|key| self.key(key));
        // Of a step to a key, the index copies the key and little else. A layer above the index
        // (bounds, versions) may need the whole values.
        let heads = request.wanted == WantedPart::Key
            && op.store.is_bare()
            && !local.read_ahead.needs_values(self.changes.number());
        if more > 0 {
            return self.look_far(&op, local, request, (start, heads), (more, stamp), visit);
        }
        // (3) Read one entry.
        let (table, last) = (self.changes.number(), local.read_ahead.last_edge());
        local.read_ahead.begin_alone(heads);
        let entry = &mut local.read_ahead.alone;
        let stepped = (op.store.index).try_step(op.guard, start, request.direction, entry);
        // One attempt in one leaf was undecided.
        let Some(Stepped { is_present, found }) = stepped else {
            return self.look_far(&op, local, request, (start, heads), (0, None), visit);
        };
        // The key isn't there. That is an error, unless it was deleted since the table was fixed.
        if let (Some(key), false, true) = (start, is_present, request.needs_key) {
            self.check_deleted(&op, key)?;
        }
        if !found {
            return Ok(false);
        }
        let next = NextEntry::Entry(entry.key(), entry.value());
        if heads && next.lacks_key() {
            return self.look_again(local, request, visit);
        }
        let shown = self.show(next, &mut local.plain, visit);
        // Keep the answer, so that the next step can tell that it continues this one.
        match start {
            Some(_) => local.read_ahead.keep_alone(table, request.direction),
            None => (local.read_ahead).keep_edge(table, request.direction, stamp, last),
        }
        Ok(note_shown(&mut local.read_ahead, shown))
    }

    /// (3) Repeats a step to a key with whole values: the key is in the part of the value that was
    /// cut.
    #[cold]
    fn look_again(
        &self,
        local: &mut Local,
        request: StepRequest<'_>,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        local.read_ahead.note_exact(self.changes.number());
        // The first attempt has given up the cursor's last answer.
        let request = StepRequest {
            continues: false,
            ..request
        };
        self.look(local, request, visit)
    }

    /// (3) Takes a step that reads ahead, or that one attempt in a leaf hasn't decided. `heads` is
    /// a hint of the batch, `more` how many entries to read ahead, and `stamp` their stamp.
    #[inline(never)]
    fn look_far(
        &self,
        op: &Operation<'_>,
        local: &mut Local,
        request: StepRequest<'_>,
        (start, heads): (Option<Key<'_>>, bool),
        (more, stamp): (usize, Option<Stamp>),
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        let StepRequest {
            from, direction, ..
        } = request;
        // Read the entries into the cursor's spare batch, so that the last answer stays until there
        // is another one.
        local.read_ahead.begin_read(heads, local.is_impatient);
        let is_present = op.go(start, direction, more, &mut local.read_ahead);
        let ReadAhead { spare, .. } = &*local.read_ahead;
        // The index has only skipped entries so far. The host repeats the call where it may take
        // long.
        if local.is_impatient && spare.is_empty() && !spare.done && spare.skipped > 0 {
            return Err(Error::Long);
        }
        // In an ordered_set the key need not be there.
        if let (Some(key), false, true) = (start, is_present, request.needs_key) {
            self.check_deleted(op, key)?;
        }
        let ReadAhead { spare, .. } = &*local.read_ahead;
        let next = match spare.is_empty() {
            true => NextEntry::End,
            false => NextEntry::Entry(spare.key(0), spare.value(0)),
        };
        if heads && next.lacks_key() {
            return self.look_again(local, request, visit);
        }
        let shown = self.show(next, &mut local.plain, visit);
        if shown.is_some() {
            // Keep the entries after the answer, for a step that continues it.
            let (table, unique) = (self.changes.number(), self.kind().is_unique());
            let is_first = from.is_none();
            local
                .read_ahead
                .keep(table, stamp, direction, is_first, unique);
        }
        Ok(note_shown(&mut local.read_ahead, shown))
    }

    /// Arms the stamp for a step from the edge of a table that is polled.
    #[inline]
    fn stamp_at_edge(
        &self,
        op: &Operation<'_>,
        cursor: &mut ReadAhead,
        request: &StepRequest<'_>,
    ) -> Option<Stamp> {
        let wants = request.from.is_none()
            && cursor.wants_stamp_at_edge(self.changes.number(), request.direction);
        // As in `wanted_ahead`, only for the current store.
        let stamp = wants.then(|| self.changes.arm());
        stamp.filter(|_| self.state.holds(op.state, op.guard))
    }

    /// The entry that a step shows, if it was read ahead, and its leaf is unchanged. `stamp` is one
    /// that was armed before, for an entry at the edge.
    #[inline(always)]
    fn unchanged_ahead<'l>(
        &self,
        op: &Operation<'_>,
        cursor: &'l mut ReadAhead,
        request: StepRequest<'_>,
        stamp: Option<Stamp>,
    ) -> Option<NextEntry<'l>> {
        let is_unchanged = |key: Key<'_>, seen| op.store.index.is_unchanged(op.guard, key, seen);
        match request.from {
            // The first entry is as it was when it was read, or this thread has removed it.
            None if self.may_answer(cursor, request.wanted) => {
                let (first, seen) = cursor.edge(self.changes.number(), |key| self.key(key).hash)?;
                if cursor.is_polled() && is_unchanged(first, seen) {
                    return cursor.first(stamp);
                }
                seen_after_removal_of(first, seen)?;
                // If the next key has a greater hash, no other entry has that of the first one.
                let next = self.key(cursor.after_edge()?);
                let now = seen_after_removals(next, seen).filter(|&now| is_unchanged(next, now))?;
                cursor.first_after_removal(now)
            }
            // The table was changed, but maybe not the leaf that was read, or only by this thread,
            // which has removed keys that it has passed. In that case the next entry of the cursor
            // is current, although its stamp isn't.
            Some(_) if request.continues => cursor.next_unchanged(|key, seen| {
                let key = self.key(key);
                let seen = seen_after_removals(key, seen).unwrap_or(seen);
                is_unchanged(key, seen).then_some(seen)
            }),
            _ => None,
        }
    }

    /// Whether a step from the edge continues the last one: this thread has removed the entry that
    /// was the first, and nobody has changed its leaf since.
    #[inline]
    fn consumes(&self, op: &Operation<'_>, cursor: &mut ReadAhead) -> bool {
        let is_removed = |(first, seen)| {
            seen_after_removal_of(first, seen)
                .is_some_and(|now| op.store.index.is_unchanged(op.guard, first, now))
        };
        let edge = cursor.edge(self.changes.number(), |key| self.key(key).hash);
        let consumes = edge.is_some_and(is_removed);
        if !consumes {
            cursor.begin_walk();
        }
        consumes
    }

    /// How many entries a step reads ahead that continues the last one, and their stamp, which is
    /// armed before the leaf is read.
    #[inline]
    fn wanted_ahead(
        &self,
        op: &Operation<'_>,
        cursor: &mut ReadAhead,
        is_own: bool,
    ) -> (usize, Option<Stamp>) {
        let (more, with_stamp) = cursor.wanted(is_own);
        // Changes of a store that was replaced earlier aren't recorded in a way that this stamp
        // detects. So it is only kept for the current store.
        let stamp = with_stamp.then(|| self.changes.arm());
        let stamp = stamp.filter(|_| self.state.holds(op.state, op.guard));
        (more, stamp)
    }

    /// The stamp of a walk that has just passed this key, if there is one. If the object under the
    /// key is there and stays, the walk has read nothing ahead that a change of it concerns.
    #[inline]
    pub(crate) fn stamp_of_walk(&self, cursors: &Cursors<'_>, key: &[u8]) -> Option<Stamp> {
        // Most tables aren't walked while they are changed.
        match self.changes.is_armed() && self.kind().is_unique() {
            true => self.stamp_of_passed(cursors, key),
            false => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn stamp_of_passed(&self, cursors: &Cursors<'_>, key: &[u8]) -> Option<Stamp> {
        let table = self.changes.number();
        cursors.iter().find_map(|cursor| cursor.passed(table, key))
    }

    /// After a change under a key, gives the walks that have passed it and had the stamp `before`
    /// the stamp that it has become.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_walking(
        &self,
        cursors: Cursors<'_>,
        key: &[u8],
        before: Option<Stamp>,
        now: Option<Stamp>,
    ) {
        let table = self.changes.number();
        for cursor in cursors {
            // The write itself has changed the stamp. It concerns nothing that this walk has read
            // ahead.
            if cursor.passed(table, key) == before {
                cursor.set_stamp(now);
            }
        }
    }

    /// Checks that a key which is not in an unordered table was deleted since it was fixed.
    ///
    /// # Errors
    /// `BadKey` if it was not.
    #[cold]
    fn check_deleted(&self, op: &Operation<'_>, key: Key<'_>) -> Result<(), Error> {
        if !self.fixation.is_fixed() {
            return Err(Error::BadKey);
        }
        if !self.kind().is_unique() {
            // A writer that is removing the last objects of the key records the key before this
            // returns. If the key is inserted again meanwhile, it is recorded nevertheless.
            let _ = op.store.index.contains(op.guard, key);
        }
        match self.fixation.was_deleted(op.guard, key) {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }
}

/// A step.
#[derive(Clone, Copy)]
struct StepRequest<'k> {
    /// The index key to step from; `None` to step to the first entry.
    from: Option<&'k [u8]>,
    /// The number that this key would be shown as; 0 if it has none.
    number: u64,
    direction: Direction,
    wanted: WantedPart,
    /// Whether the key must be in the table, or must have been deleted since it was fixed.
    needs_key: bool,
    /// Whether it continues the last step of this thread.
    continues: bool,
}

/// What a step shows of the next key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WantedPart {
    Key,
    Objects,
}

/// Records the number that the key of an answer was shown as. Returns whether there was an answer.
#[inline]
fn note_shown(cursor: &mut ReadAhead, shown: Option<u64>) -> bool {
    if let Some(number) = shown {
        cursor.show(number);
    }
    shown.is_some()
}

impl<'g> Operation<'g> {
    /// Reads the entry next to a key, or the first one in the direction if there is no key, into
    /// the cursor's spare batch. If `more` is not 0, also reads about this number of entries after
    /// it. Returns whether the key is there; in an index in key order, `true` if it reads ahead.
    #[inline]
    fn go(
        &self,
        key: Option<Key<'_>>,
        direction: Direction,
        more: usize,
        cursor: &mut ReadAhead,
    ) -> bool {
        match key {
            // The walk is expected to go on, so read further entries of the leaf, too.
            _ if more > 0 => self.go_far(key, direction, 1 + more, cursor),
            // Only the next entry. `lend_owned` copies it if it is outside its leaf, since the
            // cursor outlives the guard.
            _ => {
                let step = |batch: &mut Batch<'g>| {
                    self.store.index.step(self.guard, key, direction, batch)
                };
                cursor.spare.lend_owned(step)
            }
        }
    }

    fn go_far(
        &self,
        key: Option<Key<'_>>,
        direction: Direction,
        want: usize,
        cursor: &mut ReadAhead,
    ) -> bool {
        let (index, guard) = (&self.store.index, self.guard);
        // This is not of the same instant as the next read. If the key is removed in between, it
        // was there when the step began. In order of keys it makes no difference.
        let here = index.is_ordered() || key.is_some_and(|key| index.contains(guard, key));
        let ReadAhead {
            spare, position, ..
        } = cursor;
        (spare.want, spare.firsts) = (want, true);
        spare.lend_owned(|batch| match key {
            Some(key) => index.scan_past(guard, key, direction, position, batch),
            None => index.scan(guard, Start::Edge, direction, batch),
        });
        here
    }
}
