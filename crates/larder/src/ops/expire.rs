//! The removal of expired objects (ex2 and ex3).
//!
//! Linearisation point: the store with which the index unlocks the leaf. The operations work below
//! the table's bounds, on values with stamps, by `EngineTable::remove_one`.

use super::begin::Operation;
use super::refusal::Written;
use crate::bounds::{
    timers, weight_of_stamped, Bounded, ChangeCause, ObjectTimes, TimerAction, TurnResult,
};
use crate::error::Error;
use crate::indexes::{take_holder, Holder};
use crate::table::EngineTable;
use larder_index::{Guard, Key, Previous};
use std::collections::BTreeSet;

impl EngineTable {
    /// Removes expired objects, about as many as have two kilobytes of keys. Returns how many
    /// timers were processed, and whether more may be due. The library does this by itself, on a
    /// thread of its own.
    ///
    /// # Errors
    /// `NoTable`; `Busy` while a list is being inserted. The timers that were not processed stay
    /// due.
    pub fn remove_expired(&self) -> Result<(usize, bool), Error> {
        let guard = larder_index::pin();
        let store = self.store(&guard).ok_or(Error::NoTable)?;
        let Some(layer) = store.layer() else {
            return Ok((0, false));
        };
        // One chunk of timers. The caller repeats, and rests in between.
        let (turned, _in_hand) = layer.turn(layer.now());
        let chunk = match turned {
            TurnResult::Due(chunk) => chunk,
            TurnResult::Done => return Ok((0, false)),
            TurnResult::Stopped => return Ok((0, true)),
        };
        // After an error, the other timers of the chunk aren't looked at.
        let (mut looked, mut result) = (0, Ok(()));
        for (time, key) in timers(&chunk) {
            result = result.and_then(|()| self.timer_due(&guard, time, key));
            match result {
                Ok(()) => looked += 1,
                // Make the rest due again at once.
                Err(_) => layer.push(time, key),
            }
        }
        result.map(|()| (looked, true))
    }

    /// Drops some timers of removed objects, if they are the majority: the timer of an object
    /// that was deleted or evicted stays in the wheel otherwise until its time comes. Returns
    /// whether there may be more of them.
    pub(crate) fn drop_stale_timers(&self, guard: &Guard) -> bool {
        let Some(store) = self.store(guard) else {
            return false;
        };
        let Some(bounded) = store.bounded() else {
            return false;
        };
        let layer = bounded.layer();
        if !layer.has_stale_timers(store.size()) {
            return false;
        }
        let Some((chunk, _in_hand)) = layer.sweep() else {
            // The end of a round. The next one begins at once, if there are still too many.
            return true;
        };
        let mut passed = BTreeSet::new();
        // A timer that isn't its object's own now never becomes so again: whoever arms an object
        // with a time adds a timer for it after that.
        for (time, key) in timers(&chunk) {
            let times = bounded.times(guard, self.key(key));
            let is_own = times.is_some_and(|times| times.armed == time);
            // A key that was written again and again within a millisecond has equal timers.
            if is_own && passed.insert((time, key)) {
                layer.push(time, key);
            }
        }
        true
    }

    /// If the row that has the value of a unique index which the thread could not claim is expired,
    /// removes it. Returns what was there; `Absent` also for a row without the value, and `Refused`
    /// if the row is not expired. `None` for a table without bounds.
    #[cold]
    pub(crate) fn free_holder(&self, op: &Operation<'_>) -> Option<Previous> {
        let holder = take_holder()?;
        self.free(op, &holder)
    }

    /// As `free_holder`, for a holder that was taken.
    #[cold]
    pub(crate) fn free(&self, op: &Operation<'_>, holder: &Holder) -> Option<Previous> {
        let was = self.free_expired(op, &holder.key)?;
        let indexes = op.store.layers().indexes.as_ref()?;
        // A row that lives may have replaced the expired one, and have another value.
        let has_value = was != Previous::Refused || indexes.has(op.guard, holder);
        Some(if has_value { was } else { Previous::Absent })
    }

    /// Removes the row under a key if it is expired, like its timer would. Returns the same as
    /// `free_holder`.
    fn free_expired(&self, op: &Operation<'_>, key: &[u8]) -> Option<Previous> {
        let bounded = op.store.bounded()?;
        // Decide under the lock: the row may have been replaced by one that lives.
        let (written, was) = self.remove_below(op, bounded, self.key(key), |value| {
            let is_expired = ObjectTimes::of(value).is_expired(bounded.now());
            is_expired.then_some(ChangeCause::Expired)
        });
        Some(match written {
            // The operation starts again in any case.
            Written::Stale => Previous::Absent,
            _ => was,
        })
    }

    /// Steps ex2 and ex3.
    fn timer_due(&self, guard: &Guard, time: u64, key: &[u8]) -> Result<(), Error> {
        let key = self.key(key);
        self.writing_under(guard, key.bytes, |op| {
            let Some(bounded) = op.store.bounded() else {
                return Ok((Written::Done, ()));
            };
            // (ex2) Decide under the lock of the entry. A write may have moved the deadline, or
            // replaced the object by one with another timer.
            let mut again = false;
            let (written, was) = self.remove_below(op, bounded, key, |value| {
                let times = ObjectTimes::of(value);
                match bounded.layer().timer_action(bounded.now(), time, times) {
                    TimerAction::Nothing => None,
                    TimerAction::Rearm(..) => {
                        again = true;
                        None
                    }
                    TimerAction::Remove => Some(ChangeCause::Expired),
                }
            });
            // (ex3) The deadline is later.
            debug_assert!(!again || was == Previous::Refused);
            if again && matches!(written, Written::Done) {
                bounded.rearm(op.guard, key, time);
            }
            Ok((written, ()))
        })
    }

    /// Removes the entry under a key, below the table's bounds, if there is one and `why` returns a
    /// cause. `why` is called under the lock, with the value and its stamp. Returns the same as
    /// `remove_one`.
    pub(super) fn remove_below(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        mut why: impl FnMut(&[u8]) -> Option<ChangeCause>,
    ) -> (Written, Previous) {
        let mut freed = 0;
        let (written, was) = self.remove_one(op, &**bounded.below(), key, |value| {
            let cause = why(value);
            // The removal is certain now. The index below takes the cause when it is made.
            if let Some(cause) = cause {
                bounded.set_cause(cause);
                freed = weight_of_stamped(key.bytes, value);
            }
            cause.is_some()
        });
        // The removal bypasses `Bounded`, which otherwise counts weights (see `bounds::quota`). The
        // weight is reduced after the removal. Until then it is too high, never too low.
        if let (Previous::Present, Some(quota)) = (was, bounded.layer().quota()) {
            quota.add_weight(-freed);
        }
        (written, was)
    }
}
