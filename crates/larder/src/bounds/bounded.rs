//! The index of a bounded table: the index below, without expired objects and without stamps.
//!
//! It ensures EX1 and EX2. A read uses the time at which it begins. A write uses the time at which
//! it has the lock of its entry.
//!
//! If a write replaces an expired object, the layers above count the new one as an insert, and
//! don't know of the old one. So its count and its handles are corrected here.

use super::candidates::Victim;
use super::change_cause::{set_cause, ChangeCause};
use super::layer::{BoundState, PendingTimer, TimerAction};
use super::quota::{weight_of_stamped, Growth, Quota};
use super::stamp::{self, object_of, ObjectTimes, NO_TIME};
use crate::counters::Counter;
use crate::delegate::{delegate_order, delegate_room};
use crate::index::TableIndex;
use crate::raw;
use crate::reclaim::reaper;
use crate::resume_point::ResumePoint;
use larder_index::sync::{planted, Fault};
use larder_index::{
    with_spare, Batch, Change, Container, Direction, Guard, Hint, Key, Lookup, Predicate, Previous,
    Start, Stats, StepEntry, Stepped, Unique, Updater, SHORT_VALUE,
};
use larder_term::blob::Handles;
use larder_term::object;
use std::cell::Cell;
use std::sync::Arc;

/// A thread keeps buffers of at most this many bytes.
const MAX_KEPT_CAPACITY: usize = 1 << 14;

thread_local! {
    static VALUE: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
    static POSITION: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Calls `f` with the thread's buffer, emptied.
fn with_value<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let is_small = |value: &Vec<u8>| value.capacity() <= MAX_KEPT_CAPACITY;
    with_spare(&VALUE, is_small, |value| {
        value.clear();
        f(value)
    })
}

/// The index of a bounded table, or of a view of one.
pub(crate) struct Bounded {
    /// The index below, whose values have stamps.
    below: Arc<dyn Unique>,
    /// The index of the objects, without layers that keep versions or maintain secondary indexes.
    plain: Arc<dyn Unique>,
    layer: Arc<BoundState>,
    count: Arc<Counter>,
    /// Whether the index below keeps versions and pushes events.
    is_watched: bool,
    /// In a view: the time at which it decides what is expired. `None` in a table, which uses the
    /// current time.
    fixed_time: Option<u64>,
    /// Whether reads move deadlines, and are uses of their keys.
    records_reads: bool,
}

impl Bounded {
    /// Wraps the index `below`; `plain` is the index of the objects. `is_watched` says that `below`
    /// keeps versions and pushes events.
    pub(crate) fn new(
        below: Arc<dyn Unique>,
        plain: Arc<dyn Unique>,
        layer: Arc<BoundState>,
        count: Arc<Counter>,
        is_watched: bool,
    ) -> Self {
        Bounded {
            below,
            plain,
            layer,
            count,
            is_watched,
            fixed_time: None,
            records_reads: true,
        }
    }

    /// The same index, for reads that move no deadline and are no uses of their keys.
    pub(crate) fn unrecorded(&self) -> Self {
        let (below, plain) = (Arc::clone(&self.below), Arc::clone(&self.plain));
        let (layer, count) = (Arc::clone(&self.layer), Arc::clone(&self.count));
        Bounded {
            records_reads: false,
            ..Bounded::new(below, plain, layer, count, self.is_watched)
        }
    }

    /// The same index, for which it is another time.
    #[cfg(test)]
    pub(crate) fn at(&self, time: u64) -> Self {
        let (below, plain) = (Arc::clone(&self.below), Arc::clone(&self.plain));
        let (layer, count) = (Arc::clone(&self.layer), Arc::clone(&self.count));
        Bounded {
            fixed_time: Some(time),
            ..Bounded::new(below, plain, layer, count, self.is_watched)
        }
    }

    /// The index below.
    pub(crate) fn below(&self) -> &Arc<dyn Unique> {
        &self.below
    }

    /// Appends the value under a key to `out`, with its stamp, also if it is expired. Returns
    /// whether there is one. It waits for no lock of a key.
    pub(crate) fn stored(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.plain.get(guard, key, out)
    }

    /// The times of the object under a key, also if it is expired. It waits for no lock of a key,
    /// and copies no long object.
    pub(crate) fn times(&self, guard: &Guard, key: Key<'_>) -> Option<ObjectTimes> {
        times_in(&*self.plain, guard, key)
    }

    /// Like `times`. If a commit is writing the key, waits for it, as a look-up does.
    pub(crate) fn committed_times(&self, guard: &Guard, key: Key<'_>) -> Option<ObjectTimes> {
        times_in(&*self.below, guard, key)
    }

    /// The shared state of all indexes of these objects.
    pub(crate) fn layer(&self) -> &Arc<BoundState> {
        &self.layer
    }

    /// The current time, or that of a view. For writes that give a lifetime, and for timers.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.fixed_time.unwrap_or_else(|| self.layer.now())
    }

    /// The time for a read that begins now; `NO_TIME` while no object has a deadline.
    #[inline]
    fn read_time(&self) -> u64 {
        self.fixed_time.unwrap_or_else(|| self.layer.read_time())
    }

    /// The time for a write under the lock of an entry, which gives no lifetime; `NO_TIME` while no
    /// object has a deadline.
    #[inline]
    pub(crate) fn write_time(&self) -> u64 {
        self.fixed_time.unwrap_or_else(|| self.layer.write_time())
    }

    /// Whether a value that was read is expired. While no object has a deadline its stamp isn't
    /// read.
    #[inline]
    fn is_expired(&self, now: u64, value: &[u8]) -> bool {
        now != NO_TIME && ObjectTimes::of(value).is_expired(now)
    }

    /// The object in a value, if there is one, and it is not expired.
    #[inline]
    fn unexpired<'v>(&self, now: u64, value: Option<&'v [u8]>) -> Option<&'v [u8]> {
        let value = value?;
        let live = !ObjectTimes::of(value).is_expired(now);
        live.then(|| object_of(value))
    }

    /// If the table is watched, records the cause of the next change.
    #[inline]
    pub(crate) fn set_cause(&self, cause: ChangeCause) {
        if self.is_watched {
            set_cause(cause);
        }
    }

    /// The quota, if the table has limits; `None` for a view.
    #[inline]
    fn quota(&self) -> Option<&Quota> {
        self.layer.quota().filter(|_| self.fixed_time.is_none())
    }

    /// Records the use of a key whose object is about to be written, or was found by
    /// `get_with_hint`.
    pub(crate) fn record_use(&self, guard: &Guard, key: Key<'_>) {
        if let Some(quota) = self.quota() {
            quota.record_use(guard, key);
        }
    }

    /// Called after a write, without the lock: adds the entry's timer, and updates the quota.
    #[inline]
    pub(crate) fn after_write(
        &self,
        guard: &Guard,
        key: Key<'_>,
        arm: PendingTimer,
        growth: Growth,
    ) {
        self.layer.arm(key.bytes, arm);
        if let Some(quota) = self.quota() {
            let objects = self.count.get() + usize::from(growth.is_new);
            quota.grown(guard, key, growth, objects);
        }
    }

    /// Whether timers are due.
    pub(crate) fn has_due(&self) -> bool {
        self.layer.next().is_some_and(|next| next <= self.now())
    }

    /// Chooses an object to evict.
    pub(crate) fn choose(&self, guard: &Guard, quota: &Quota, objects: usize) -> Option<Victim> {
        quota.choose(&*self.plain, guard, self.read_time(), objects)
    }

    /// Called after a read of a single key: records its use for evictions, and moves its deadline,
    /// if that is due.
    #[inline]
    fn record_read(&self, guard: &Guard, key: Key<'_>, now: u64, value: &[u8]) {
        if self.records_reads {
            self.record_use(guard, key);
            self.keep_alive(guard, key, now, value);
        }
    }

    /// Moves the deadline of an object that was read, if that is due.
    #[inline]
    fn keep_alive(&self, guard: &Guard, key: Key<'_>, now: u64, value: &[u8]) {
        // A view changes nothing, and without times no object has a deadline.
        if self.fixed_time.is_some() || now == NO_TIME {
            return;
        }
        if self
            .layer
            .stamp_after_read(now, ObjectTimes::of(value))
            .is_some()
        {
            self.extend_deadline(guard, key, now);
        }
    }

    #[cold]
    fn extend_deadline(&self, guard: &Guard, key: Key<'_>, read: u64) {
        // Neither versions nor events are needed for this: EX5.
        self.plain.update(guard, key, &mut |old, scratch| {
            let Some(old) = old else {
                return Change::Keep;
            };
            // Since the read, another thread may have found the object expired. In that case it
            // must stay expired.
            let now = match planted(Fault::StaleTime) {
                true => read,
                false => self.now(),
            };
            let stamp = ObjectTimes::of(old);
            if stamp.is_expired(now) {
                return Change::Keep;
            }
            match self.layer.stamp_after_read(now, stamp) {
                None => Change::Keep,
                Some(stamp) => stamp.replace(old, scratch),
            }
        });
    }

    /// Appends the object under a key to `out`, if there is one and it is not expired, and calls
    /// `record` with the time and the stamped value. Returns whether there is one.
    #[inline]
    fn get_by(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut Vec<u8>,
        record: impl FnOnce(u64, &[u8]),
    ) -> bool {
        // Take the time first. An object that expires during the read is still returned.
        let now = self.read_time();
        let from = out.len();
        if !self.below.get(guard, key, out) {
            return false;
        }
        if self.is_expired(now, &out[from..]) {
            out.truncate(from);
            return false;
        }
        record(now, &out[from..]);
        // Callers above know objects without stamps.
        out.truncate(out.len() - stamp::LEN);
        true
    }

    /// The result of a look-up, without the stamp; `Absent` if the object is expired. Otherwise
    /// `record` is called with the stamped value.
    #[inline]
    fn unstamped(
        &self,
        now: u64,
        found: Lookup,
        short: &[u8; SHORT_VALUE],
        (long, lent): (&mut Vec<u8>, &mut Option<&[u8]>),
        record: impl FnOnce(&[u8]),
    ) -> Lookup {
        // The stamped value is where the index has put it: copied, or lent.
        let value = match found {
            Lookup::Absent => return Lookup::Absent,
            Lookup::Short(len) => &short[..len],
            Lookup::Long => lent.unwrap_or(long),
        };
        // An expired object isn't there for any caller, although nobody has removed it yet.
        if self.is_expired(now, value) {
            return Lookup::Absent;
        }
        record(value);
        // The stamp is the end of the value: leave it out.
        let len = value.len() - stamp::LEN;
        match (found, lent) {
            (Lookup::Short(_), _) => Lookup::Short(len),
            (_, Some(lent)) => {
                *lent = &lent[..len];
                Lookup::Long
            }
            _ => {
                long.truncate(len);
                Lookup::Long
            }
        }
    }

    /// `put`, with a hint if there is one.
    ///
    /// While no object has a deadline, the stamp is the same for all, and known before the lock is
    /// taken. Otherwise it depends on the time at which the lock is held, and on the old stamp.
    fn put_at(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        hint: Option<&Hint<'_>>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        if self.fixed_time.is_some() || self.layer.needs_time() {
            return larder_index::put_by_update(self, guard, key, value, predicate);
        }
        let (mut growth, mut is_stale) = (Growth::default(), false);
        let was = with_value(|stamped| {
            stamped.extend_from_slice(value);
            ObjectTimes::UNLIMITED.push(stamped);
            let mut decide = |old: Option<&[u8]>| {
                // Another thread may have written a deadline under the key. Nothing has been
                // changed yet, so start again.
                is_stale = self.layer.needs_time();
                if is_stale || !predicate(old.map(object_of)) {
                    return false;
                }
                if let Some(quota) = self.quota() {
                    quota.record_use(guard, key);
                    growth = quota.growth(key.bytes, old, value, old.is_none());
                }
                true
            };
            let below = &self.below;
            match hint {
                Some(hint) => below.put_with_hint(guard, key, stamped, hint, &mut decide),
                None => below.put(guard, key, stamped, &mut decide),
            }
        });
        if is_stale {
            return larder_index::put_by_update(self, guard, key, value, predicate);
        }
        self.after_write(guard, key, PendingTimer::default(), growth);
        was
    }

    /// Counts the objects that are not expired, by a scan.
    fn count_live(&self) -> usize {
        let (guard, forward) = (larder_index::pin(), Direction::Forward);
        let (mut batch, mut resume, mut sum) = (Batch::default(), ResumePoint::Begin, 0);
        while resume != ResumePoint::End {
            // A scan leaves out expired objects.
            let start = resume.start(Start::Edge, forward);
            self.scan(&guard, start, forward, &mut batch);
            sum += batch.len();
            resume.move_past(&mut batch);
        }
        sum
    }

    /// Arms an object with another timer, if this one is its own. The object itself isn't changed.
    pub(crate) fn rearm(&self, guard: &Guard, key: Key<'_>, time: u64) {
        let mut arm = PendingTimer::default();
        self.plain.update(guard, key, &mut |old, scratch| {
            // The time is read under the lock of the entry. So an object that is live here is live
            // for every reader that comes later.
            let now = self.now();
            // The object may have been replaced since the timer was added. Its stamp says whether
            // this timer is still its own.
            match old.map(|old| {
                (
                    old,
                    self.layer.timer_action(now, time, ObjectTimes::of(old)),
                )
            }) {
                Some((old, TimerAction::Rearm(stamp, again))) => {
                    arm = again;
                    stamp.replace(old, scratch)
                }
                Some((old, TimerAction::Remove)) => {
                    // Its deadline has passed since the timer was checked. Add a timer that is due
                    // at once.
                    let stamp = ObjectTimes::of(old);
                    arm = PendingTimer(Some(stamp.armed));
                    Change::Keep
                }
                _ => Change::Keep,
            }
        });
        self.layer.arm(key.bytes, arm);
    }
}

/// Wraps the index of a view of a bounded table, which has stamps. Objects are expired as of a
/// time. `None` for a bag, which has no bounds.
pub(crate) fn bound(below: &TableIndex, layer: &Arc<BoundState>, at: u64) -> Option<Arc<Bounded>> {
    let TableIndex::Unique(below) = below else {
        return None;
    };
    Some(Arc::new(Bounded {
        // A view has a fixed time: the objects that are expired don't change while it is read.
        fixed_time: Some(at),
        ..Bounded::new(
            Arc::clone(below),
            Arc::clone(below),
            Arc::clone(layer),
            Arc::new(Counter::new(false)),
            false,
        )
    }))
}

/// The times of the object that an index has under a key. No long object is copied.
fn times_in(index: &dyn Unique, guard: &Guard, key: Key<'_>) -> Option<ObjectTimes> {
    let (mut short, mut lent) = ([0; SHORT_VALUE], None);
    with_value(
        |long| match index.get_or_lend(guard, key, &mut short, long, &mut lent) {
            Lookup::Absent => None,
            Lookup::Short(len) => Some(ObjectTimes::of(&short[..len])),
            Lookup::Long => Some(ObjectTimes::of(lent.unwrap_or(long))),
        },
    )
}

impl Unique for Bounded {
    delegate_order!(below);

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.get_by(guard, key, out, |now, value| {
            self.record_read(guard, key, now, value);
        })
    }

    fn get_in_scan(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.get_by(guard, key, out, |_, _| ())
    }

    /// This doesn't count as a read: it moves no deadline.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let now = self.read_time();
        let times = self.committed_times(guard, key);
        times.is_some_and(|times| !times.is_expired(now))
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.below.prefetch(guard, keys);
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let Some(long) = long else {
            // Provide a buffer, because the stamp of a long value must be read.
            return with_value(|value| self.get_into(guard, key, out, Some(value)));
        };
        let now = self.read_time();
        let found = self.below.get_into(guard, key, out, Some(long));
        // Record the use, and extend the deadline if the table has an idle time.
        self.unstamped(now, found, out, (long, &mut None), |value| {
            self.record_read(guard, key, now, value);
        })
    }

    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        let now = self.read_time();
        let found = self.below.get_or_lend(guard, key, out, long, lent);
        self.unstamped(now, found, out, (long, lent), |value| {
            self.record_read(guard, key, now, value);
        })
    }

    /// Moves the deadline, as each look-up does. The use of the key is recorded by the write that
    /// follows, or if there is none by the caller (`record_use`).
    fn get_with_hint<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
        hint: &mut Hint<'g>,
    ) -> Lookup {
        let Some(long) = long else {
            return with_value(|value| self.get_with_hint(guard, key, out, Some(value), hint));
        };
        let now = self.read_time();
        let found = self.below.get_with_hint(guard, key, out, Some(long), hint);
        self.unstamped(now, found, out, (long, &mut None), |value| {
            if self.records_reads {
                self.keep_alive(guard, key, now, value);
            }
        })
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        let mut arm = PendingTimer::default();
        let mut garbage = Handles::default();
        let (mut replaced, mut growth) = (false, Growth::default());
        let changed = self.below.update(guard, key, &mut |old, scratch| {
            // The time at which the lock is held decides whether the object is expired. The
            // caller's function doesn't see an expired one.
            let now = self.write_time();
            let live = self.unexpired(now, old);
            match f(live, scratch).whole(live, scratch) {
                // An expired object is removed by its timer, which pushes an event.
                Change::Remove if live.is_some() => {
                    if let (Some(_), Some(old)) = (self.quota(), old) {
                        growth.delta = -weight_of_stamped(key.bytes, old);
                    }
                    return Change::Remove;
                }
                Change::Keep | Change::Remove => return Change::Keep,
                Change::Put | Change::Splice(_) => {}
            }
            // The weights are without stamps. An expired object counts in the weight, too.
            if let Some(quota) = self.quota() {
                quota.record_use(guard, key);
                growth = quota.growth(key.bytes, old, scratch, live.is_none());
            }
            let stamp;
            (stamp, arm) = self.layer.stamp(now, old.map(ObjectTimes::of), None);
            stamp.push(scratch);
            // An expired object is replaced. The layers above don't know of it, so its handles are
            // released and its count is corrected here.
            if let (Some(old), None) = (old, live) {
                replaced = true;
                object::note_handles(old, &mut garbage);
                self.set_cause(ChangeCause::Expired);
            }
            Change::Put
        });
        // The lock is released. Arm the timer, and update the weight.
        self.after_write(guard, key, arm, growth);
        if replaced {
            self.count.add(-1);
            if !garbage.is_empty() {
                reaper::release_later(guard, |list| raw::own_counts(garbage, list));
            }
        }
        changed
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.put_at(guard, key, value, None, predicate)
    }

    fn put_with_hint(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        hint: &Hint<'_>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.put_at(guard, key, value, Some(hint), predicate)
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let (now, want, mut read) = (self.read_time(), batch.want, 0);
        self.below.scan(guard, start, direction, batch);
        loop {
            read += batch.len() + batch.skipped;
            // Entries expire even if the leaf doesn't change.
            batch.seen = None;
            // Remove expired entries, and strip the stamps of the others.
            batch.retain(|_, _, value| !ObjectTimes::of(value).is_expired(now));
            batch.shorten_values(stamp::LEN);
            batch.skipped = read - batch.len();
            // A batch must not be empty before the end, unless the caller may pause. If all its
            // entries were expired, read the next one.
            if batch.ends_scan(read) {
                batch.want = want;
                return;
            }
            batch.want_more(want);
            with_spare(
                &POSITION,
                |position: &Vec<u8>| position.capacity() <= MAX_KEPT_CAPACITY,
                |position| {
                    std::mem::swap(position, &mut batch.resume);
                    let start = Start::resume(position, direction);
                    self.below.scan(guard, start, direction, batch);
                },
            );
        }
    }

    /// Continues from an expired key as long as it is in the index. An owner that has fixed the
    /// table may have got the key before.
    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        let next = self.below.try_step(guard, key, direction, entry)?;
        // The entry may expire while its leaf stays as it is.
        entry.seen = None;
        if next.found {
            if ObjectTimes::of(entry.value()).is_expired(self.read_time()) {
                return None;
            }
            entry.shorten_value(stamp::LEN);
        }
        Some(next)
    }

    fn step<'g>(
        &'g self,
        guard: &'g Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) -> bool {
        // One time for the whole step. Otherwise an object could be live in one round and expired
        // in the next.
        let now = self.read_time();
        let mut read = 0;
        let is_present = self.below.step(guard, key, direction, batch);
        while let Some(last) = batch.len().checked_sub(1) {
            read += batch.len();
            // `seen` refers to an entry that may be expired and isn't returned, so it proves
            // nothing to the caller.
            batch.seen = None;
            let live = (0..=last).find(|&i| !ObjectTimes::of(batch.value(i)).is_expired(now));
            if let Some(i) = live {
                // Return only one entry, because others could be expired when a step gets to them.
                batch.retain(|at, _, _| at == i);
                batch.shorten_values(stamp::LEN);
                batch.done = false;
                break;
            }
            if batch.pauses_after(read) {
                batch.clear();
                batch.skipped = read;
                break;
            }
            // All entries of the batch are expired. Continue after the last one.
            let passed = batch.key(last).to_vec();
            let passed = Some(self.layer.key(&passed));
            self.below.step(guard, passed, direction, batch);
        }
        is_present
    }
}

impl Container for Bounded {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.below.free_some(guard, limit, f)
    }

    /// In a table this includes expired objects that haven't been removed yet.
    fn len(&self) -> usize {
        match self.fixed_time {
            None => self.below.len(),
            Some(_) => self.count_live(),
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.layer.memory() + self.below.memory()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.below.stats();
        stats.more.push(("timers", self.layer.timers() as u64));
        if let Some(quota) = self.layer.quota() {
            stats.more.push(("weight", quota.weight() as u64));
            stats.more.push(("evicted", quota.evicted()));
        }
        stats
    }

    delegate_room!(below);
}
