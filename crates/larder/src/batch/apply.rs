//! Applies a list batch: its objects one by one, by any thread that helps, and the objects of one
//! key for an operation that settles it. Numbers in brackets are the steps of the module
//! [`batch`](super).

use super::{BatchProgress, ListBatch, Phase};
use crate::bounds::SpaceNeeded;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::index::TableIndex;
use crate::indexes::{take_holder, Claimed, Refused};
use crate::keys::{KeyBatch, MANY_TO_READ, MANY_TO_WRITE};
use crate::ops::{Intent, Operation, Written};
use crate::options::TableKind;
use crate::table::EngineTable;
use crate::versions::History;
use larder_index::sync::{planted, yield_now, Fault, MutexGuard};
use larder_index::{Guard, HeldFlushes, Key, Previous, Values, MAX_KEYS_PER_LOOKUP};
use larder_term::Atom;
use std::ops::Range;

/// Lists of up to this length, and of so many bytes, are inserted in one step, whatever the budget.
const SMALL: usize = 64;
const SMALL_BYTES: usize = 64 << 10;

/// The number of bytes of an object that cost as much as the rest of its insertion.
const BYTES_PER_UNIT: usize = 256;

/// How many keys of a longer list are looked for, to know how many of all are new.
const LOOKED_FOR: usize = 8;

/// The number of objects after which the lock of the progress is handed over.
const TURN: usize = if cfg!(larder_model) { 1 } else { 64 };

/// The maximum number of objects under one key that an operation inserts to settle it, in one
/// piece. If there are more, or several with more than `SMALL_BYTES`, the operation waits for the
/// batch.
const MOST_OF_A_KEY: usize = 256;

/// The phase after the measurement. Values are also claimed if there is no room, since a taken
/// value is reported first.
fn once_measured(op: &Operation<'_>, fits: bool) -> Phase {
    match (op.store.unique_indexes(), fits) {
        (Some(_), _) => Phase::Claiming { fits },
        (None, true) => Phase::Applying,
        (None, false) => Phase::Refused,
    }
}

/// Whether the unique index of this name is complete.
fn is_ready(op: &Operation<'_>, index: Atom) -> bool {
    let indexes = op.store.unique_indexes();
    indexes.is_some_and(|indexes| indexes.find(index).is_some())
}

impl ListBatch {
    /// (lb2, lb3) Runs one slice, if no other thread is running one. Returns `Done` when the batch
    /// is over.
    // The guard was pinned before the lock is taken, since a pin may run deferred calls.
    pub(super) fn work(
        &self,
        table: &EngineTable,
        guard: &Guard,
        budget: &mut Budget,
    ) -> Result<Step, Error> {
        // Nor does a flush run any under the lock. They may use the table.
        let held = HeldFlushes::begin(guard);
        let Some(mut progress) = self.progress.try_lock() else {
            // Another thread runs a slice, or settles a key.
            yield_now();
            return Ok(Step::More);
        };
        // While the latch is held nobody replaces the store. `guard` keeps the store alive even if
        // the table is dropped between two turns.
        let op = table.begin_of_batch(guard)?;
        self.enter_first_phase(&op, &mut progress);
        let done = self.work_in_turns(table, &op, (progress, &held), budget);
        if self.is_announced() {
            op.store.index.expect_keys(0, 0);
        }
        done
    }

    /// Enters the first phase, if no slice has run.
    fn enter_first_phase(&self, op: &Operation<'_>, progress: &mut BatchProgress) {
        if progress.phase == Phase::Begun {
            progress.enter(match self.is_new {
                true => Phase::Checking,
                // An `insert` has no keys to check: its linearisation point is the acquisition of
                // the latch.
                false => self.begin_measuring(op),
            });
        }
    }

    /// The phase that follows when no key has to be checked any more. Nearly always there is room
    /// for the whole list, and nothing has to be measured.
    fn begin_measuring(&self, op: &Operation<'_>) -> Phase {
        match op.store.has_capacity_for(self.list.len()) {
            true => once_measured(op, true),
            false => Phase::Measuring,
        }
    }

    /// Runs turns of a slice, until the budget is exhausted or the batch is over.
    fn work_in_turns<'b>(
        &'b self,
        table: &EngineTable,
        op: &Operation<'_>,
        (mut progress, held): (MutexGuard<'b, BatchProgress>, &HeldFlushes<'_>),
        budget: &mut Budget,
    ) -> Result<Step, Error> {
        // The objects whose memory has been prefetched.
        let mut asked = 0..0;
        let is_small = self.is_small();
        // Mostly no object is long, so none has to be looked at.
        let are_short = self.list.longest() < BYTES_PER_UNIT;
        // Spends the units of an object of this size. Returns `false` if the slice ends.
        let mut spend = |size: usize| {
            let units = match are_short {
                true => 1,
                false => 1 + size / BYTES_PER_UNIT,
            };
            budget.spend(u32::try_from(units).unwrap_or(u32::MAX)) || is_small
        };
        loop {
            self.announce(table, op, &mut progress);
            let mut left = TURN;
            while left > 0 {
                let next = progress.next;
                if next < self.list.len() && !asked.contains(&next) {
                    asked = self.prefetch(table, op, next);
                }
                // Keys are checked and objects inserted in runs. All else is done one by one.
                let is_run = matches!(progress.phase, Phase::Checking | Phase::Applying);
                let last = asked.end.min(next + left);
                let goes_on = if is_run && next < last {
                    self.run(table, op, &mut progress, next..last, &mut spend)?
                } else if self.advance(table, op, &mut progress)? {
                    return Ok(Step::Done);
                } else {
                    spend(if are_short { 0 } else { self.list.size(next) })
                };
                if !goes_on {
                    return Ok(Step::More);
                }
                left -= progress.next.saturating_sub(next).max(1);
            }
            // Let an operation that waits to settle its key take the lock. It may insert objects
            // out of turn, so nothing of the progress is kept across this point.
            MutexGuard::unlock_fair(progress);
            held.catch_up();
            progress = self.progress.lock();
        }
    }

    /// Whether the list is inserted in one step.
    fn is_small(&self) -> bool {
        self.list.len() <= SMALL && self.list.bytes() <= SMALL_BYTES
    }

    /// Whether the list is so long that the index should know what comes.
    fn is_announced(&self) -> bool {
        self.list.len() > SMALL
    }

    /// Announces to the index about how many keys there will be when the list is inserted.
    ///
    /// If the table was empty, these are the keys of the list. Otherwise some of them may be in the
    /// table already: as many of those to come as of those so far, or of some that are looked for.
    /// Of a bag, objects are counted, since it isn't known how many keys it had.
    fn announce(&self, table: &EngineTable, op: &Operation<'_>, progress: &mut BatchProgress) {
        if !self.is_announced() {
            return;
        }
        let size = op.store.about();
        let before = *progress.before.get_or_insert(size);
        let is_unique = table.kind().is_unique();
        let done = match progress.phase {
            Phase::Applying => progress.next,
            _ => 0,
        };
        // The number of objects that are still to be inserted.
        let left = self.list.len() - done;
        let soon = match (before, done) {
            (0, _) if is_unique => self.list.keys().unwrap_or(self.list.len()),
            (0, _) => self.list.keys().unwrap_or(0),
            _ if self.is_new => size + left,
            (_, 0) if progress.next == 0 => {
                size + left * self.absent_among_first(table, op) / LOOKED_FOR
            }
            // The list is still being measured or claimed, so nothing is known yet.
            (_, 0) => 0,
            _ => size + left * size.saturating_sub(before).min(done) / done,
        };
        let soon = match is_unique || before == 0 {
            true => soon,
            // As a proportion (see `expect_keys`).
            false => soon.min((4 * size).saturating_sub(1)),
        };
        op.store.index.expect_keys(size, soon);
    }

    /// How many of the keys of the first objects aren't in the table.
    fn absent_among_first(&self, table: &EngineTable, op: &Operation<'_>) -> usize {
        let is_absent = |&i: &usize| {
            let (key, _) = self.object(table, i);
            !op.store.index.contains(op.guard, key)
        };
        (0..LOOKED_FOR).filter(is_absent).count()
    }

    /// The key and the value of object `i`.
    // Inlined, since a load of two words that were just stored waits for both.
    #[inline]
    fn object(&self, table: &EngineTable, i: usize) -> (Key<'_>, &[u8]) {
        let (key, value) = self.list.get(i);
        (table.key(key), value)
    }

    /// If it pays, prefetches the leaves of some objects from this one on, before the first of them
    /// is locked, so that their cache misses overlap. Returns the range of the objects.
    fn prefetch(&self, table: &EngineTable, op: &Operation<'_>, from: usize) -> Range<usize> {
        // Only a long list can outrun the clearing of the pages that it needs (see
        // `MANY_TO_WRITE`).
        let many = match self.list.is_long() {
            true => MANY_TO_WRITE,
            false => MANY_TO_READ,
        };
        let left = (self.list.len() - from).min(MAX_KEYS_PER_LOOKUP);
        if op.store.is_far(many) {
            let mut keys = KeyBatch::new();
            keys.fill(left, |i| self.object(table, from + i).0);
            op.store.prefetch(op.guard, keys.keys(), many);
        }
        from..from + left
    }

    /// Processes the next object as the phase requires. Returns whether the batch is over.
    #[inline]
    fn advance(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        progress: &mut BatchProgress,
    ) -> Result<bool, Error> {
        let len = self.list.len();
        match progress.phase {
            Phase::Over(_) => return Ok(true),
            Phase::Refused => return Err(table.full(op)),
            Phase::Taken(index) => return Err(Error::NotUnique(index.into())),
            // One claim at a time, as in the other phases.
            Phase::GivingBack(taken) => {
                self.give_one_back(op, progress, taken);
                return Ok(false);
            }
            Phase::Begun => {
                self.enter_first_phase(op, progress);
                return Ok(false);
            }
            // There may be room now that was missing when the first objects were measured.
            Phase::Measuring
                if progress.need == SpaceNeeded::default() && op.store.has_capacity_for(len) =>
            {
                progress.enter(once_measured(op, true));
                return Ok(false);
            }
            // All objects were processed. Enter the next phase. For an `insert_new` that found no
            // key, this is the linearisation point, when `Checking` ends.
            phase if progress.next == len && progress.again().is_none() => {
                let next = match phase {
                    Phase::Checking => self.begin_measuring(op),
                    Phase::Measuring => once_measured(op, !op.store.refuses(progress.need)),
                    Phase::Claiming { fits: true } => Phase::Applying,
                    Phase::Claiming { fits: false } => Phase::GivingBack(None),
                    // `Applying` ends the batch. Its claims are entries of the indexes from now on.
                    _ => {
                        let extra = progress.extra.as_mut();
                        let claimed = extra.and_then(|extra| extra.claimed.take());
                        claimed.into_iter().for_each(Claimed::keep);
                        Phase::Over(true)
                    }
                };
                progress.enter(next);
                return Ok(matches!(next, Phase::Over(_)));
            }
            // The next object's values, or those of an earlier object once more (`again`).
            Phase::Claiming { .. } => {
                if !self.claim_next(table, op, progress) {
                    return Ok(false);
                }
            }
            Phase::Measuring => {
                progress.need = self.measured(table, op, progress.next, progress.need);
            }
            // See `run`. All objects were processed already.
            Phase::Checking | Phase::Applying => return Ok(false),
        }
        progress.next += 1;
        Ok(false)
    }

    /// `Checking` and `Applying`: checks the keys of the range, of which the first is the next one,
    /// or inserts their objects, up to the end of the chunk. Calls `spend` with the size of each
    /// object, and stops when it returns `false`. Returns whether it never did.
    #[inline]
    fn run(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        progress: &mut BatchProgress,
        range: Range<usize>,
        spend: &mut impl FnMut(usize) -> bool,
    ) -> Result<bool, Error> {
        let is_check = progress.phase == Phase::Checking;
        for (i, (key, value)) in (range.start..).zip(self.list.run(range)) {
            let key = table.key(key);
            if is_check {
                // A write that revalidated before the latch was acquired may be about to store the
                // key. This search waits for it.
                if op.store.index.contains_after_writer(op.guard, key) {
                    progress.phase = Phase::Over(false);
                    return Ok(true);
                }
            } else if !progress.is_settled(i) {
                // An object that is in the table already (LB1) isn't inserted again.
                self.put(table, op, key, value)?;
            }
            progress.next = i + 1;
            if !spend(key.bytes.len() + value.len()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `Claiming`: claims the values of the next object. Returns `false` if they aren't claimed:
    /// the phase has changed, or the object has to be claimed again.
    fn claim_next(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        progress: &mut BatchProgress,
    ) -> bool {
        let fits = progress.phase == Phase::Claiming { fits: true };
        let again = progress.again();
        let (key, value) = self.object(table, again.unwrap_or(progress.next));
        match self.claim(table, op, key, value, progress) {
            // An object that was claimed again isn't counted a second time.
            Ok(()) => {
                let extra = progress.extra.as_mut();
                return extra.and_then(|extra| extra.again.pop()).is_none();
            }
            // A list without room breaks no index that is being built.
            Err(Refused::Taken(index)) if !fits && !is_ready(op, index) => {
                progress.enter(Phase::GivingBack(None));
            }
            // Another row has the value. The claim is repeated if that row has expired, or if the
            // index, which is being built, is given up.
            Err(Refused::Taken(index)) => {
                let is_free = self.free(table, op, progress) || op.give_up(index);
                if !is_free {
                    progress.enter(Phase::GivingBack(Some(index)));
                }
            }
            // A write that began before the batch has a claim. It will be over soon.
            Err(Refused::Undecided) => yield_now(),
        }
        false
    }

    /// Whether the value that couldn't be claimed may be claimed again: the row that had it was
    /// expired, and is removed.
    #[cold]
    fn free(&self, table: &EngineTable, op: &Operation<'_>, progress: &mut BatchProgress) -> bool {
        let Some(holder) = take_holder() else {
            return false;
        };
        match table.free(op, &holder) {
            Some(Previous::Present) => {
                // The values of earlier objects with the same key may have been those of the row
                // that was removed. They must be claimed now.
                let same = self.list.under(&holder.key, usize::MAX).into_iter();
                let next = progress.next;
                progress.extra().again.extend(same.filter(|&i| i < next));
                true
            }
            // Its timer has removed it meanwhile, unless it is an object of this list.
            Some(Previous::Absent) => {
                let claimed = progress.claimed().as_ref();
                !claimed.is_some_and(|claimed| claimed.is_holder(&holder))
            }
            None | Some(Previous::Refused) => false,
        }
    }

    /// `GivingBack`: gives one claim back. After the last one the batch is over.
    fn give_one_back(&self, op: &Operation<'_>, progress: &mut BatchProgress, taken: Option<Atom>) {
        let claimed = progress.claimed().as_mut();
        if claimed.is_none_or(|claimed| !claimed.give_one_back(op.guard)) {
            *progress.claimed() = None;
            progress.phase = match taken {
                None => Phase::Refused,
                // For an `insert_new`, this is the same as a key that is in the table.
                Some(_) if self.is_new => Phase::Over(false),
                Some(index) => Phase::Taken(index),
            };
        }
    }

    /// `Measuring`: what the objects up to `next` need, given what those before it need.
    fn measured(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        next: usize,
        so_far: SpaceNeeded,
    ) -> SpaceNeeded {
        // An object that replaces another one needs less space, or none. The free space can't
        // shrink meanwhile: in a table with a limit no other write inserts beside a batch.
        let (key, new) = self.object(table, next);
        let mut old = Values::default();
        if table.kind().is_unique() {
            // Of several objects with the key, the last one stays.
            if self.list.has_key_from(key.bytes, next + 1) {
                return so_far;
            }
            op.store.index.copy_for_write(op.guard, key, &mut old);
        }
        let mut need = so_far;
        need += op.store.need(key, old.iter().next(), Some(new));
        need
    }

    /// Claims the values of an object, the next one of the list.
    fn claim(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
        progress: &mut BatchProgress,
    ) -> Result<(), Refused> {
        // Without indexes, there is nothing to claim.
        let Some(indexes) = &op.store.layers().indexes else {
            return Ok(());
        };
        // A write of this key would have to settle it first, which needs the lock of the progress.
        // So what is there now is what the insert will replace.
        let mut there = Values::default();
        match &op.store.index {
            TableIndex::Unique(_) => op.store.index.copy_for_write(op.guard, key, &mut there),
            // An object that is in the bag, or that came earlier in the list, isn't inserted again.
            TableIndex::Multi(ix) if table.kind() == TableKind::Bag => {
                let same = |other: &[u8]| table.same(key.bytes, value, other);
                let mut is_there = false;
                ix.update_present(op.guard, key, &mut |objects| {
                    is_there = objects.find(value, &mut |other| same(other));
                });
                let before = self.list.under(key.bytes, usize::MAX);
                let mut before = before.into_iter().filter(|&i| i < progress.next);
                if is_there || before.any(|i| same(self.list.get(i).1)) {
                    return Ok(());
                }
            }
            // Whatever is there stays.
            TableIndex::Multi(_) => {}
        }
        let old = there.iter().next();
        // All claims of the batch are kept, or given back, when all of its objects were considered.
        let claimed = progress.claimed();
        let claimed = claimed.get_or_insert_with(|| Claimed::begin(indexes));
        claimed.claim(op.guard, key.bytes, old, value)
    }

    /// Inserts an object of the list.
    #[inline(always)]
    fn put(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
    ) -> Result<Written, Error> {
        // A list is one write for snapshots, and its events are pushed together.
        match op.store.history() {
            Some(history) => self.put_watched(table, op, key, value, history),
            None => table.put(op, key, value),
        }
    }

    /// `put` for a table that is watched.
    #[cold]
    #[inline(never)]
    fn put_watched(
        &self,
        table: &EngineTable,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
        history: &History,
    ) -> Result<Written, Error> {
        // Events of a list are pushed together, when the list is complete.
        history.feed().begin_list();
        // All objects of the list get the same number. For a snapshot they are one write.
        self.number.during(|| table.put(op, key, value))
    }

    /// Whether these objects of the list may be inserted in one piece.
    fn is_little(&self, objects: &[usize]) -> bool {
        let bytes = || objects.iter().map(|&i| self.list.get(i).1.len());
        objects.len() <= 1
            || (objects.len() <= MOST_OF_A_KEY && bytes().sum::<usize>() <= SMALL_BYTES)
    }

    /// Settles a key, so that an operation on it can continue beside the batch (see the module).
    /// Returns `false` if the operation has to wait.
    pub(super) fn settle(
        &self,
        table: &EngineTable,
        guard: &Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<bool, Error> {
        let op = table.begin_of_batch(guard)?;
        // A short list will be over soon. In a store with a limit, other inserts could take the
        // space that the batch has measured; with a unique index, a value that it is about to
        // claim.
        if !self.list.is_indexed() || (intent == Intent::Write && op.store.holds_lists_back()) {
            return Ok(false);
        }
        // The list is sealed, so reading it needs no lock.
        let under = self.list.under(key, MOST_OF_A_KEY + 1);
        if under.is_empty() {
            return Ok(true);
        }
        // No destructor of a host runs under the lock, as in `work`.
        let _held = HeldFlushes::begin(guard);
        // This waits for `TURN` objects at most, after which `work` hands the lock over.
        let mut progress = self.progress.lock();
        self.enter_first_phase(&op, &mut progress);
        match progress.phase {
            Phase::Over(_) => return Ok(true),
            // The batch has made no change yet, so a read comes before it. A write could add a key
            // that was already looked for.
            Phase::Checking | Phase::Claiming { .. } | Phase::GivingBack(_) | Phase::Taken(_) => {
                return Ok(intent == Intent::Read);
            }
            Phase::Applying if self.is_little(&under) => {}
            _ => return Ok(false),
        }
        // With the lock of the progress held: the objects before `next` and the settled ones are in
        // the table. Insert the others, in their order.
        let key = table.key(key);
        for i in under {
            if !progress.is_in(i) {
                self.put(table, &op, key, self.list.get(i).1)?;
                if !planted(Fault::Unsettled) {
                    progress.note_settled(i, self.list.len());
                }
            }
        }
        Ok(true)
    }
}
