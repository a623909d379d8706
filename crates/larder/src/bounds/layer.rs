//! The shared state of a bounded store: its settings, its timers, and the seed of its hashes.

use super::clock;
use super::quota::Quota;
use super::stamp::{later, ObjectTimes, NEVER, NO_TIME};
use super::wheel::{TimerChunk, TurnResult, Wheel};
use crate::keys;
use crate::options::Bounds;
use larder_index::sync::{planted, Fault, Mutex};
use larder_index::Key;
use larder_term::hash::Seed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// A table may have this number of timers of removed objects, however small it is.
const FEW_TIMERS: usize = 4096;

/// The current bounds of a table. Times are in milliseconds.
struct BoundSettings {
    ttl: AtomicU64,
    idle: AtomicU64,
}

/// The shared state of all indexes of a bounded table's objects.
pub(crate) struct BoundState {
    settings: Arc<BoundSettings>,
    wheel: Mutex<Wheel>,
    /// The number of chunks of timers that threads have taken out of the wheel and are processing.
    in_hand: AtomicUsize,
    /// The number of those that they have processed.
    processed: AtomicU64,
    /// Whether any object was ever given a deadline. Until then reads don't need the time.
    has_deadlines: AtomicBool,
    /// `None` if the table has no limits.
    quota: Option<Box<Quota>>,
    seed: Seed,
    ordered: bool,
}

/// A timer to be put in the wheel after the entry is unlocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct PendingTimer(pub(crate) Option<u64>);

/// The deadline that a read sets: 9/8 of `idle` from now. A read writes only if the deadline is no
/// more than `idle` away, so at most once in an eighth of `idle` for each object. (If it is `idle`
/// away, it isn't quite so long: a part of the millisecond is over.)
fn idle_deadline(now: u64, idle: u64) -> u64 {
    if idle == NEVER {
        return NEVER;
    }
    later(now, idle.saturating_add((idle / 8).max(1)))
}

impl BoundState {
    pub(crate) fn new(bounds: &Bounds, seed: &Seed, ordered: bool) -> Self {
        // No lifetime is one that never ends, so that reading it needs no distinction.
        let settings = BoundSettings {
            ttl: AtomicU64::new(bounds.ttl.unwrap_or(NEVER)),
            idle: AtomicU64::new(bounds.idle.unwrap_or(NEVER)),
        };
        BoundState {
            settings: Arc::new(settings),
            wheel: Mutex::default(),
            in_hand: AtomicUsize::new(0),
            processed: AtomicU64::new(0),
            has_deadlines: AtomicBool::new(false),
            quota: bounds
                .limits
                .map(|limits| Box::new(Quota::new(&limits, seed, ordered))),
            seed: seed.clone(),
            ordered,
        }
    }

    /// Makes a layer for other objects of the same table.
    pub(crate) fn anew(&self) -> Self {
        // Settings are shared, since they belong to the table. Timers belong to the objects.
        BoundState {
            settings: Arc::clone(&self.settings),
            wheel: Mutex::default(),
            in_hand: AtomicUsize::new(0),
            processed: AtomicU64::new(0),
            has_deadlines: AtomicBool::new(false),
            quota: self.quota().map(|quota| Box::new(quota.anew())),
            seed: self.seed.clone(),
            ordered: self.ordered,
        }
    }

    /// The bounds.
    pub(crate) fn bounds(&self) -> Bounds {
        let time = |ms| Some(ms).filter(|&ms| ms != NEVER);
        Bounds {
            ttl: time(self.ttl()),
            idle: time(self.idle()),
            limits: self.quota().map(Quota::limits),
        }
    }

    /// The quota, if the table has limits.
    #[inline]
    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.quota.as_deref()
    }

    /// Sets other bounds, for objects that are written from now on. Limits are ignored if the table
    /// has no quota.
    pub(crate) fn set(&self, bounds: &Bounds) {
        // Ordering: Relaxed; a concurrent write uses the old bounds or the new ones.
        let BoundSettings { ttl, idle } = &*self.settings;
        ttl.store(bounds.ttl.unwrap_or(NEVER), Ordering::Relaxed);
        idle.store(bounds.idle.unwrap_or(NEVER), Ordering::Relaxed);
        if let Some(quota) = self.quota() {
            quota.set(&bounds.limits.unwrap_or_default());
        }
    }

    fn ttl(&self) -> u64 {
        // Ordering: Relaxed, as in `set`.
        self.settings.ttl.load(Ordering::Relaxed)
    }

    #[inline]
    fn idle(&self) -> u64 {
        // Ordering: Relaxed, as in `set`.
        self.settings.idle.load(Ordering::Relaxed)
    }

    /// Makes a key with its hash.
    #[inline]
    pub(super) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        keys::with_hash(&self.seed, self.ordered, bytes)
    }

    /// The deadline of an object that is written at this time, with the lifetime `ttl` or that of
    /// the table, and the latest one that reads may give it.
    pub(crate) fn deadlines(&self, now: u64, ttl: Option<u64>) -> (u64, u64) {
        // Without a time the table gave objects no lifetime when the write began. One that is set
        // meanwhile is for objects that are written later.
        let of_table = |ms| if now == NO_TIME { NEVER } else { ms };
        let hard = match ttl.unwrap_or_else(|| of_table(self.ttl())) {
            NEVER => NEVER,
            ms => later(now, ms),
        };
        (hard.min(idle_deadline(now, of_table(self.idle()))), hard)
    }

    /// The stamp of an object that is written at this time, with the lifetime `ttl` or that of the
    /// table. `old` is the stamp of the object that is replaced, expired or not. Also returns the
    /// timer that the object needs (EX3).
    pub(crate) fn stamp(
        &self,
        now: u64,
        old: Option<ObjectTimes>,
        ttl: Option<u64>,
    ) -> (ObjectTimes, PendingTimer) {
        let (deadline, hard) = self.deadlines(now, ttl);
        // Ordering: Relaxed. A thread that reads this object after its entry was unlocked sees
        // this, too.
        if deadline != NEVER && !self.has_deadlines.load(Ordering::Relaxed) {
            self.has_deadlines.store(true, Ordering::Relaxed);
        }
        Self::armed(old, deadline, hard)
    }

    fn armed(old: Option<ObjectTimes>, deadline: u64, hard: u64) -> (ObjectTimes, PendingTimer) {
        // A timer that fires earlier is enough: when it fires, it is armed again for the deadline.
        // So an extended deadline needs no new timer.
        let there = old.map_or(NEVER, |old| old.armed);
        let (armed, arm) = if there <= deadline {
            (there, None)
        } else {
            (deadline, Some(deadline))
        };
        let stamp = ObjectTimes {
            deadline,
            armed,
            hard,
        };
        (stamp, PendingTimer(arm))
    }

    /// The stamp after a read at this time; `None` if the read doesn't change it.
    #[inline]
    pub(crate) fn stamp_after_read(&self, now: u64, stamp: ObjectTimes) -> Option<ObjectTimes> {
        let idle = self.idle();
        if idle == NEVER || stamp.deadline >= stamp.hard || stamp.deadline - now > idle {
            return None;
        }
        let deadline = stamp.hard.min(idle_deadline(now, idle));
        (deadline > stamp.deadline).then_some(ObjectTimes { deadline, ..stamp })
    }

    /// Puts a timer in the wheel, after the entry was unlocked.
    #[inline]
    pub(crate) fn arm(&self, key: &[u8], PendingTimer(time): PendingTimer) {
        if let Some(time) = time {
            self.push(time, key);
        }
    }

    /// Determines what a timer that is due requires for the object under its key.
    pub(crate) fn timer_action(&self, now: u64, time: u64, stamp: ObjectTimes) -> TimerAction {
        if planted(Fault::FreshExpired) {
            return TimerAction::Remove;
        }
        // The object has another timer by now. This one says nothing about it.
        if stamp.armed != time {
            return TimerAction::Nothing;
        }
        if stamp.is_expired(now) {
            return TimerAction::Remove;
        }
        // The deadline was extended since the timer was added. Arm the object again: this timer is
        // gone.
        let (stamp, arm) = Self::armed(None, stamp.deadline, stamp.hard);
        TimerAction::Rearm(stamp, arm)
    }

    /// Puts a timer in the wheel.
    pub(crate) fn push(&self, time: u64, key: &[u8]) {
        self.wheel.lock().push(time, key);
    }

    /// Turns the wheel: see [`Wheel::turn`]. If timers are due, also returns the proof that the
    /// caller is processing them. The caller drops it when their objects are removed.
    pub(crate) fn turn(&self, until: u64) -> (TurnResult, Option<InHand<'_>>) {
        let mut wheel = self.wheel.lock();
        let result = wheel.turn(until);
        let in_hand = matches!(result, TurnResult::Due(_)).then(|| self.take_in_hand());
        (result, in_hand)
    }

    /// Called under the lock of the wheel, by whoever takes a chunk out of it.
    fn take_in_hand(&self) -> InHand<'_> {
        // Ordering, here and below: SeqCst. A thread that finds the wheel without the chunk also
        // finds that it is being processed, or finds its objects removed.
        self.in_hand.fetch_add(1, Ordering::SeqCst);
        InHand(self)
    }

    /// How many chunks of timers were processed. `None` while a thread is processing one.
    pub(crate) fn chunks_processed(&self) -> Option<u64> {
        // In this order: if a chunk is taken and processed in between, it counts the next time.
        let processed = self.processed.load(Ordering::SeqCst);
        (self.in_hand.load(Ordering::SeqCst) == 0).then_some(processed)
    }

    /// Whether any object was ever given a deadline.
    pub(crate) fn has_deadlines(&self) -> bool {
        // Ordering: Relaxed, as in `needs_time`.
        self.has_deadlines.load(Ordering::Relaxed)
    }

    /// See [`Wheel::next`].
    pub(crate) fn next(&self) -> Option<u64> {
        self.wheel.lock().next()
    }

    /// The number of timers.
    pub(crate) fn timers(&self) -> usize {
        self.wheel.lock().len()
    }

    /// Whether most timers are those of removed objects, in a table of this number of
    /// objects. A live object has at most one of its own.
    pub(crate) fn has_stale_timers(&self, objects: usize) -> bool {
        self.timers() > 2 * objects + FEW_TIMERS
    }

    /// See [`Wheel::sweep`]. The chunk is in the caller's hand as long as it has the second result.
    pub(crate) fn sweep(&self) -> Option<(TimerChunk, InHand<'_>)> {
        let mut wheel = self.wheel.lock();
        let chunk = wheel.sweep()?;
        Some((chunk, self.take_in_hand()))
    }

    /// The memory of the layer in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of::<BoundSettings>()
            + self.wheel.lock().memory()
            + self.quota().map_or(0, Quota::memory)
    }

    /// The time with which a write of an object without a lifetime of its own decides what is
    /// expired, under the lock of its entry. It is [`NO_TIME`] while no object has a deadline and
    /// the table gives none: reading the clock takes a tenth of a write.
    #[inline]
    pub(crate) fn write_time(&self) -> u64 {
        match self.needs_time() {
            true => clock::now(),
            false => NO_TIME,
        }
    }

    /// Whether an object has a deadline, or the table gives some to objects without a lifetime of
    /// their own. If not, under the lock of an entry, its object has none.
    #[inline]
    pub(crate) fn needs_time(&self) -> bool {
        // Ordering: Relaxed. A thread sets the flag before it unlocks an object with a deadline. So
        // it is seen by those that lock that object later.
        self.has_deadlines.load(Ordering::Relaxed) || self.ttl() != NEVER || self.idle() != NEVER
    }

    /// The current time.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        clock::now()
    }

    /// The time with which a read that begins now decides what is expired. While no object has a
    /// deadline, it is [`NO_TIME`]. An object that gets a deadline meanwhile is written after the
    /// read began, and is not expired by then.
    #[inline]
    pub(crate) fn read_time(&self) -> u64 {
        // Ordering: Relaxed. A write that ended before this read began is visible to it.
        match self.has_deadlines.load(Ordering::Relaxed) {
            true => clock::now(),
            false => NO_TIME,
        }
    }
}

/// A chunk of timers that a thread has taken out of the wheel and is processing.
pub(crate) struct InHand<'l>(&'l BoundState);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        // Ordering: see `BoundState::turn`.
        self.0.processed.fetch_add(1, Ordering::SeqCst);
        self.0.in_hand.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What to do with an object when a timer is due.
pub(crate) enum TimerAction {
    /// Nothing: the timer is not the object's own.
    Nothing,
    /// Remove it: its deadline has passed.
    Remove,
    /// Arm it again: its deadline was moved.
    Rearm(ObjectTimes, PendingTimer),
}
