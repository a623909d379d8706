//! Going from key to key: first, next, last, prev, and slots.
//!
//! A step is one short scan from a position; it needs nothing to be fixed. Hash order and key order both survive whatever else happens to the table:
//! a key that is there throughout is met exactly once.
//!
//! Who goes on and on through a set or ordered_set is answered from what the thread read ahead, while the table, or the leaf, does not change (see `ahead`).
//!
//! Linearisation point: the load of the leaf's version that the scan's check confirms; for an answer that was read ahead, the look at the watch, or the load of
//! the version that says that the leaf is as it was.

use crate::ahead::{Ahead, StepFrom};
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

    /// Calls `visit` with the key after this one; false if it is the last. An ordered_set takes any key; the others one that is there, or was deleted
    /// since the table was fixed.
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
        let mut visit = |stored: Stored<'_>| visit(&stored.view());
        with_local(|local| self.step_in(local, who, from, direction, all, &mut visit))
    }

    /// One step, for doors: from a key, or from the edge for none, to the next key. Calls `visit` with the first object under it, or with `all`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `BadKey` as `next`.
    #[inline]
    pub fn step_in(
        &self,
        local: &mut Local,
        who: impl Who,
        from: Option<&[u8]>,
        direction: Direction,
        all: bool,
        visit: &mut dyn FnMut(Stored<'_>),
    ) -> Result<bool, Error> {
        self.may_read(who)?;
        let way = self.way(direction);
        if let Some(key) = from {
            let from = StepFrom::Key(key);
            if let Some((key, value)) = self.read_ahead(&mut local.ahead, from, way) {
                visit(Stored::new(key, value, self.keypos(), &mut local.plain));
                return Ok(true);
            }
        }
        self.look(local, from, way, all, visit)
    }

    /// The entry behind another, from what was read ahead. It has no handles, so nobody has to be kept from giving them back meanwhile.
    #[inline(always)]
    pub(crate) fn read_ahead<'l>(
        &self,
        ahead: &'l mut Ahead,
        from: StepFrom<'_>,
        way: Direction,
    ) -> Option<(&'l [u8], &'l [u8])> {
        if self.cell.tag() != 0 {
            // Dead or busy: `begin` says which.
            return None;
        }
        let watch = self.fixation.watch();
        ahead.next(watch.number(), from, way, |watched| watch.holds(watched))
    }

    /// As `read_ahead`, after the table was changed: if the leaf that was read was not.
    #[inline]
    pub(crate) fn read_unchanged<'l>(
        &self,
        at: &At<'_>,
        ahead: &'l mut Ahead,
        from: StepFrom<'_>,
        way: Direction,
    ) -> Option<(&'l [u8], &'l [u8])> {
        let same = |key: &[u8], seen| at.unchanged(self.key(key), seen);
        ahead.next_unchanged(self.fixation.watch().number(), from, way, same)
    }

    /// A step that looks at leaves.
    fn look(
        &self,
        local: &mut Local,
        from: Option<&[u8]>,
        way: Direction,
        all: bool,
        visit: &mut dyn FnMut(Stored<'_>),
    ) -> Result<bool, Error> {
        let guard = local.pin();
        let at = self.begin(&guard)?;
        let watch = self.fixation.watch();
        let table = watch.number();
        let unique = self.kind().is_unique();
        let (mut watched, mut more) = (None, 0);
        if let (Some(key), true) = (from, unique) {
            let from = StepFrom::Key(key);
            if let Some((key, value)) = self.read_unchanged(&at, &mut local.ahead, from, way) {
                visit(Stored::new(key, value, self.keypos(), &mut local.plain));
                return Ok(true);
            }
            let watching;
            (more, watching) = local.ahead.wanted(table, key, way);
            // A store that was replaced before the watch was armed is watched by nobody.
            watched = watching
                .then(|| watch.arm())
                .filter(|_| self.cell.holds(at.seen, &guard));
        }
        scratch::with(|s| {
            let i = self.go(&at, from, way, more, s)?;
            let found = self.give(&at, (s, local), i, way, visit, all);
            if unique {
                let ahead = &mut local.ahead;
                ahead.keep(table, watched, way, &mut s.batch, i);
            }
            Ok(found)
        })
    }

    /// Reads what lies behind a key, or at the edge for none: an entry, and `more`. Gives the place of that entry in the batch.
    fn go(
        &self,
        at: &At<'_>,
        from: Option<&[u8]>,
        way: Direction,
        more: usize,
        s: &mut Scratch,
    ) -> Result<usize, Error> {
        Ok(match from {
            None => {
                s.batch.want = 1 + more;
                at.scan(Start::Edge, way, &mut s.batch);
                0
            }
            Some(key) if self.kind().is_ordered() => {
                at.past(self.key(key), 1 + more, s, way);
                0
            }
            Some(key) => self.after(at, key, more, s)?,
        })
    }

    /// Finds the entry after a key of an unordered table: its place in the batch.
    fn after(
        &self,
        at: &At<'_>,
        bytes: &[u8],
        more: usize,
        s: &mut Scratch,
    ) -> Result<usize, Error> {
        let key = self.key(bytes);
        at.position(key, &mut s.position);
        s.batch.want = 2 + more;
        at.scan(Start::At(&s.position), Direction::Forward, &mut s.batch);
        let is_here = !s.batch.is_empty() && s.batch.key(0) == bytes;
        if !is_here {
            if !self.kind().is_unique() && self.fixation.is_fixed() {
                // Who is taking its last objects out remembers the key before this has an answer. Were it back meanwhile, it would still be known.
                let _ = at.store.contains(at.guard, key);
            }
            let known = self.fixation.is_fixed() && self.fixation.was_deleted(at.guard, key);
            return if known { Ok(0) } else { Err(Error::BadKey) };
        }
        if s.batch.len() > 1 && s.batch.key(1) != bytes {
            return Ok(1);
        }
        at.past(key, 1 + more, s, Direction::Forward);
        Ok(0)
    }

    /// Visits entry `i` of the batch, or all objects under its key.
    fn give(
        &self,
        at: &At<'_>,
        (s, local): (&mut Scratch, &mut Local),
        mut i: usize,
        way: Direction,
        visit: &mut dyn FnMut(Stored<'_>),
        all: bool,
    ) -> bool {
        while i < s.batch.len() {
            if !all || self.kind().is_unique() {
                visit(Stored::new(
                    s.batch.key(i),
                    s.batch.value(i),
                    self.keypos(),
                    &mut s.plain,
                ));
                return true;
            }
            let key = s.batch.key(i).to_vec();
            if self.visit_in(local, at, self.key(&key), &mut *visit) > 0 {
                return true;
            }
            // The key went between the scan and the look-up: on to the next.
            at.past(self.key(&key), 1, s, way);
            i = 0;
        }
        false
    }

    /// Calls `visit` with each object in slot `i`, from 0. An ordered_set has one slot an object, in order; O(i). The others have a number of slots that follows
    /// from the table's size, about four objects to a slot; as long as the size stays within a power of two, each object stays in its slot.
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
        s.batch.want = 0;
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
            Index::Many(_) => false,
        }
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
