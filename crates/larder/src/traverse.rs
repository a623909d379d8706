//! Going from key to key: first, next, last, prev, and slots.
//!
//! A step asks the index for the entry next to a key; it needs nothing to be fixed. Hash order and
//! key order both survive whatever else happens to the table: a key that is there throughout is met
//! exactly once.
//!
//! Who goes on and on is answered from what the thread read ahead, while the table, or the leaf,
//! does not change (see `ahead`).
//!
//! Linearisation point: the load of the leaf's version that the index's check confirms; for an
//! answer that was read ahead, the look at the watch, or the load of the version that says that the
//! leaf is as it was.

use crate::ahead::{Ahead, Behind, StepFrom};
use crate::error::Error;
use crate::local::{with_local, Local};
use crate::owner::{OwnerId, Who};
use crate::raw;
use crate::read::Stored;
use crate::scratch::{self, Scratch};
use crate::store::Index;
use crate::table::{At, Table};
use larder_index::{Batch, Direction, Key, Seen, Start};
use larder_term::object::ObjectView;
use larder_term::TermRef;

/// What `slot` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// So many objects, which were visited.
    Objects(usize),
    /// The slot past the last.
    End,
}

/// Objects that a slot of an unordered table has on average.
const SLOT_LOAD: usize = 4;

type Visit<'v> = dyn FnMut(&ObjectView<'_>) + 'v;

impl Table {
    /// Calls `visit` with the first key; false if the table is empty.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn first(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(
            who,
            None,
            Direction::Forward,
            &mut |o| visit(o.key()),
            false,
        )
    }

    /// Calls `visit` with the last key; for the unordered types, as `first`.
    ///
    /// # Errors
    /// As `first`.
    pub fn last(&self, who: OwnerId, visit: &mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error> {
        self.step(
            who,
            None,
            Direction::Backward,
            &mut |o| visit(o.key()),
            false,
        )
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
        self.step(
            who,
            Some(key),
            Direction::Forward,
            &mut |o| visit(o.key()),
            false,
        )
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
        self.step(
            who,
            Some(key),
            Direction::Backward,
            &mut |o| visit(o.key()),
            false,
        )
    }

    /// As `first`, with all objects under the key.
    ///
    /// # Errors
    /// As `first`.
    pub fn first_lookup(&self, who: OwnerId, visit: &mut Visit<'_>) -> Result<bool, Error> {
        self.step(who, None, Direction::Forward, visit, true)
    }

    /// As `last`, with all objects under the key.
    ///
    /// # Errors
    /// As `first`.
    pub fn last_lookup(&self, who: OwnerId, visit: &mut Visit<'_>) -> Result<bool, Error> {
        self.step(who, None, Direction::Backward, visit, true)
    }

    /// As `next`, with all objects under the key.
    ///
    /// # Errors
    /// As `next`.
    pub fn next_lookup(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<bool, Error> {
        self.step(who, Some(key), Direction::Forward, visit, true)
    }

    /// As `prev`, with all objects under the key.
    ///
    /// # Errors
    /// As `next`.
    pub fn prev_lookup(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<bool, Error> {
        self.step(who, Some(key), Direction::Backward, visit, true)
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
        visit: &mut Visit<'_>,
        all: bool,
    ) -> Result<bool, Error> {
        let visit = |stored: Stored<'_>| {
            visit(&stored.view());
            0
        };
        with_local(|local| self.step_in(local, who, from, (direction, all), visit))
    }

    /// One step, for hosts: from a key, or from the edge for none, to the next key in a direction.
    /// Calls `visit` with the first object under it, or with `all` each. Its answer is a number
    /// that stands for the key for ever, or 0 for none: see [`Local::has_shown`].
    ///
    /// 1. A step that goes on from the last is answered from what was read ahead, if that holds.
    /// 2. Otherwise the index is asked for the entry next to the key, or, where steps go on and on,
    ///    for some more.
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
        let mut goes_on = false;
        if let Some(key) = from.filter(|_| self.reads_ahead(all)) {
            goes_on = self.goes_on(&local.ahead, StepFrom::Key(key), way);
            if !goes_on {
                local.ahead.begins_anew();
            } else if let Some(behind) = self.read_ahead(&mut local.ahead) {
                let shown = self.show(behind, &mut local.plain, &mut visit);
                return Ok(note(&mut local.ahead, shown));
            }
        }
        self.look(local, (from, goes_on), (way, all), &mut visit)
    }

    /// A step that goes on from the key that was shown as this number. None, and nothing was done,
    /// if it can't be answered from what was read ahead.
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
        if !self.goes_on(&local.ahead, StepFrom::Shown(number), self.way(direction)) {
            return None;
        }
        let behind = self.read_ahead(&mut local.ahead)?;
        let shown = self.show(behind, &mut local.plain, &mut visit);
        Some(note(&mut local.ahead, shown))
    }

    /// Whether a step may be answered from what was read ahead.
    #[inline(always)]
    fn reads_ahead(&self, all: bool) -> bool {
        !all || self.kind().is_unique()
    }

    /// Whether a step goes on from the last answer of this thread.
    #[inline(always)]
    fn goes_on(&self, ahead: &Ahead, from: StepFrom<'_>, way: Direction) -> bool {
        ahead.goes_on(self.fixation.watch().number(), from, way)
    }

    /// What lies behind the last answer, from what was read ahead. It has no handles, so nobody has
    /// to be kept from giving them back meanwhile.
    #[inline(always)]
    fn read_ahead<'l>(&self, ahead: &'l mut Ahead) -> Option<Behind<'l>> {
        if self.cell.tag() != 0 {
            // Dead or busy: `begin` says which.
            return None;
        }
        ahead.next(|watched| self.fixation.watch().holds(watched))
    }

    /// Shows what lies behind a key. None at the end, else what the key was shown as.
    #[inline(always)]
    fn show(
        &self,
        behind: Behind<'_>,
        plain: &mut Vec<u8>,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Option<u64> {
        match behind {
            Behind::Entry(key, value) => Some(visit(Stored::new(key, value, self.keypos(), plain))),
            Behind::End => None,
        }
    }

    /// A step that looks at leaves: from a key, and whether it goes on from the last answer.
    #[inline(never)]
    fn look(
        &self,
        local: &mut Local,
        (from, goes_on): (Option<&[u8]>, bool),
        (way, all): (Direction, bool),
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> Result<bool, Error> {
        let guard = local.pin();
        let at = self.begin(&guard)?;
        let watch = self.fixation.watch();
        let (mut watched, mut more) = (None, 0);
        if goes_on {
            // The table was changed: perhaps the leaf that was read was not.
            let same = |key: &[u8], seen| at.unchanged(self.key(key), seen);
            if let Some(behind) = local.ahead.next_unchanged(same) {
                let shown = self.show(behind, &mut local.plain, visit);
                return Ok(note(&mut local.ahead, shown));
            }
            let watching;
            (more, watching) = local.ahead.wanted();
            // A store that was replaced before the watch was armed is watched by nobody.
            watched = watching
                .then(|| watch.arm())
                .filter(|_| self.cell.holds(at.seen, &guard));
        }
        let from = from.map(|key| self.key(key));
        let here = at.go(from, way, more, &mut local.ahead);
        if let (Some(key), false, false) = (from, here, self.kind().is_ordered()) {
            self.check_deleted(&at, key)?;
        }
        if !self.reads_ahead(all) {
            return Ok(self.give_all(&at, local, visit));
        }
        let Ahead { spare, .. } = &local.ahead;
        let behind = match spare.is_empty() {
            true => Behind::End,
            false => Behind::Entry(spare.key(0), spare.value(0)),
        };
        let shown = self.show(behind, &mut local.plain, visit);
        if shown.is_some() {
            let unique = self.kind().is_unique();
            local.ahead.keep(watch.number(), watched, way, unique);
        }
        Ok(note(&mut local.ahead, shown))
    }

    /// Whether a key that is not in the table, which has no order, was deleted since it was fixed.
    ///
    /// # Errors
    /// `BadKey` if it was not.
    #[cold]
    fn check_deleted(&self, at: &At<'_>, key: Key<'_>) -> Result<(), Error> {
        if !self.fixation.is_fixed() {
            return Err(Error::BadKey);
        }
        if !self.kind().is_unique() {
            // Who is taking its last objects out remembers the key before this has an answer. Were
            // it back meanwhile, it would still be known.
            let _ = at.store.contains(at.guard, key);
        }
        match self.fixation.was_deleted(at.guard, key) {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }

    /// Visits all objects of a bag under the key that was read, or under the next that has some.
    fn give_all(
        &self,
        at: &At<'_>,
        local: &mut Local,
        visit: &mut impl FnMut(Stored<'_>) -> u64,
    ) -> bool {
        loop {
            let batch = std::mem::take(&mut local.ahead.spare);
            let key = (!batch.is_empty()).then(|| self.key(batch.key(0)));
            let see = |stored: Stored<'_>| {
                visit(stored);
            };
            let some = key.map(|key| self.visit_in(local, at, key, see) > 0);
            if some == Some(false) {
                // The key went between the step and the look-up: on to the next.
                at.go(key, Direction::Forward, 0, &mut local.ahead);
                continue;
            }
            local.ahead.put_back(batch);
            return some.is_some();
        }
    }

    /// Calls `visit` with each object in slot `i`, from 0. An ordered_set has one slot an object,
    /// in order; O(i). The others have a number of slots that follows from the table's size, about
    /// four objects to a slot; as long as the size stays within a power of two, each object stays
    /// in its slot.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `BadSlot` past `Slot::End`.
    pub fn slot(&self, who: OwnerId, i: usize, visit: &mut Visit<'_>) -> Result<Slot, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let at = self.begin(&guard)?;
        let slots = self.slots(&at);
        if i >= slots {
            return if i == slots {
                Ok(Slot::End)
            } else {
                Err(Error::BadSlot)
            };
        }
        scratch::with(|s| {
            Ok(if self.kind().is_ordered() {
                self.nth(&at, s, i, visit)
            } else {
                Slot::Objects(self.hash_slot(&at, s, i, slots.trailing_zeros(), visit))
            })
        })
    }

    fn slots(&self, at: &At<'_>) -> usize {
        let size = at.store.count.get();
        if self.kind().is_ordered() {
            size
        } else {
            (size / SLOT_LOAD).next_power_of_two().min(1 << 40)
        }
    }

    /// Visits the i-th object of an ordered_set.
    fn nth(&self, at: &At<'_>, s: &mut Scratch, mut i: usize, visit: &mut Visit<'_>) -> Slot {
        s.batch.want = 0;
        at.scan(Start::Edge, Direction::Forward, &mut s.batch);
        loop {
            if i < s.batch.len() {
                let (key, value) = (s.batch.key(i), s.batch.value(i));
                visit(&raw::view(key, value, self.keypos(), &mut s.plain));
                return Slot::Objects(1);
            }
            if s.batch.done {
                return Slot::End;
            }
            i -= s.batch.len();
            at.resume(s, Direction::Forward);
        }
    }

    /// Visits the objects whose hash begins with `i`, as a number of `bits` bits.
    fn hash_slot(
        &self,
        at: &At<'_>,
        s: &mut Scratch,
        i: usize,
        bits: u32,
        visit: &mut Visit<'_>,
    ) -> usize {
        let slot_of = |hash: u64| hash.checked_shr(u64::BITS - bits).unwrap_or(0);
        let hash = (i as u64).checked_shl(u64::BITS - bits).unwrap_or(0);
        at.position(Key { bytes: &[], hash }, &mut s.position);
        // About as many as a slot has, and what shows that it has no more.
        s.batch.want = 2 * SLOT_LOAD;
        at.scan(Start::At(&s.position), Direction::Forward, &mut s.batch);
        let mut seen = 0;
        loop {
            for entry in 0..s.batch.len() {
                let (key, value) = (s.batch.key(entry), s.batch.value(entry));
                if slot_of(self.seed.hash(key)) != i as u64 {
                    return seen;
                }
                visit(&raw::view(key, value, self.keypos(), &mut s.plain));
                seen += 1;
            }
            if s.batch.done {
                return seen;
            }
            at.resume(s, Direction::Forward);
        }
    }
}

/// Notes what the key of an answer was shown as. Whether there was an answer.
#[inline(always)]
fn note(ahead: &mut Ahead, shown: Option<u64>) -> bool {
    if let Some(number) = shown {
        ahead.show(number);
    }
    shown.is_some()
}

impl At<'_> {
    /// A scan of the index, whichever kind it is.
    pub(crate) fn scan(&self, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        match &self.store.index {
            Index::One(ix) => ix.scan(self.guard, start, direction, batch),
            Index::Many(ix) => ix.scan(self.guard, start, direction, batch),
        }
    }

    /// Whether what was read around a key is as it was.
    fn unchanged(&self, key: Key<'_>, seen: Seen) -> bool {
        match &self.store.index {
            Index::One(ix) => ix.unchanged(self.guard, key, seen),
            Index::Many(ix) => ix.unchanged(self.guard, key, seen),
        }
    }

    /// Reads the entry next to a key, or the first of the direction for none, into the cursor's
    /// spare batch, and if `more` is not 0, about so many behind it. Whether the key is there.
    #[inline]
    fn go(&self, key: Option<Key<'_>>, way: Direction, more: usize, ahead: &mut Ahead) -> bool {
        let batch = &mut ahead.spare;
        match (key, &self.store.index) {
            (Some(key), _) if more > 0 => self.go_far(key, way, 1 + more, ahead),
            (_, Index::One(ix)) => ix.step(self.guard, key, way, batch),
            (_, Index::Many(ix)) => ix.step(self.guard, key, batch),
        }
    }

    fn go_far(&self, key: Key<'_>, way: Direction, want: usize, ahead: &mut Ahead) -> bool {
        let here = self.store.contains(self.guard, key);
        self.end_position(key, &mut ahead.position);
        ahead.spare.want = want;
        ahead.spare.firsts = true;
        self.scan(Start::Past(&ahead.position), way, &mut ahead.spare);
        here
    }

    /// The position of a key: the one before all its objects, going forward.
    pub(crate) fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match &self.store.index {
            Index::One(ix) => ix.position(key, out),
            Index::Many(ix) => ix.first_position(key, out),
        }
    }

    /// The position behind all objects of a key.
    pub(crate) fn end_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match &self.store.index {
            Index::One(ix) => ix.position(key, out),
            Index::Many(ix) => ix.last_position(key, out),
        }
    }

    /// Scans on from behind a key, for so many entries.
    pub(crate) fn past(&self, key: Key<'_>, want: usize, s: &mut Scratch, direction: Direction) {
        self.end_position(key, &mut s.position);
        s.batch.want = want;
        self.scan(Start::Past(&s.position), direction, &mut s.batch);
    }

    /// Scans on from where the batch ended.
    pub(crate) fn resume(&self, s: &mut Scratch, direction: Direction) {
        std::mem::swap(&mut s.position, &mut s.batch.resume);
        let start = match direction {
            Direction::Forward => Start::At(&s.position),
            Direction::Backward => Start::Past(&s.position),
        };
        self.scan(start, direction, &mut s.batch);
    }
}
