//! Feeds: what changes in a table, told to subscribers.
//!
//! # Definitions
//!
//! - *Change*: the old object of a write, the new one, or both.
//! - *Event*: a change, the emptying of the table, or its end.
//! - *Group*: the events of one commit: of a single write, of a write of several objects under one
//!   key of a bag, of a commit, of a part of a list. A group has one *Seq*.
//! - *Follower*: a subscriber, as the queue knows it: its position, and how many events it may fall
//!   behind.
//!
//! ```text
//!            first                                     end
//!   dropped │ e e e │ e │ e e │ e │ . . . . . . . . . . │   new events
//!             └ a group           └ the open group: a list that is being inserted
//!                     ↑ a follower's position
//! ```
//!
//! # Invariants
//!
//! 1. Seqs ascend in the queue. They are drawn from the clock under the queue's lock.
//! 2. The events of one key are in the order of its writes: a write tells its event under the lock
//!    of the entry, or, as part of a commit, while the commit holds the locks of its keys.
//! 3. A write that is no part of a snapshot, and comes after the snapshot's subscription, is told
//!    with a number that is not less than the snapshot's. One that is part has a lesser number. So
//!    a follower with a snapshot passes over what has a lesser number, and misses nothing.
//! 4. The queue has as many events as the largest limit of a follower, at most.
//! 5. Each change owns one count of each handle in its values.
//! 6. Events are of the store that the table has. When the table is emptied, the exchange of the
//!    state word and the event are one step under the lock; what the old store's writers tell
//!    afterwards is dropped. It was changed before the table was emptied.
//!
//! For 3 a write reads, in this order: the clock, the history's newest snapshot, whether there is a
//! follower. A snapshot with a subscription sets them the other way around: follower, pending
//! snapshot, clock.
//!
//! Linearisation point of a write, for followers: the push of its event. The entry is locked from
//! before it to the change.
//!
//! Locks: the queue's is the last of all; a leaf's, a history's and the latch's come before it.
//! Under it nobody pins an epoch, frees an event, or calls the host.

use super::clock;
use crate::ids::TableId;
use crate::raw;
use crate::reclaim::reaper;
use larder_index::sync::{each_thread, point, Mutex, MutexGuard};
use larder_term::object::ObjectView;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Events that are told together at most: a longer list is several groups, a longer commit is told
/// in parts.
const MOST_TOGETHER: u64 = 500;

/// Of more events than these the reaper frees what they have.
const FEW: usize = 1_000;

/// What is called when a follower that found nothing may find something. It is called by a thread
/// that writes, without a lock; it must be short.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Old and new object of a write, as bytes.
pub(crate) struct Change {
    /// The key, the old value, the new value.
    bytes: Box<[u8]>,
    key: usize,
    /// Where the old value ends, if there is one.
    old: Option<usize>,
    is_new: bool,
    cause: Cause,
}

/// Why an object goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody wrote.
    Written,
    /// Its time was over.
    Expired,
    /// There was too much.
    Evicted,
}

impl Change {
    /// Takes counts of the handles in the values. Called while the table, or the caller, has some.
    pub(crate) fn new(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Self {
        let values = [old, new];
        values.into_iter().flatten().for_each(raw::retain_value);
        let [old_bytes, new_bytes] = values.map(Option::unwrap_or_default);
        Change {
            bytes: [key, old_bytes, new_bytes].concat().into(),
            key: key.len(),
            old: old.map(|old| key.len() + old.len()),
            is_new: new.is_some(),
            cause: Cause::Written,
        }
    }

    /// The same change, for this cause.
    pub(crate) fn of(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// Why the old object goes.
    pub(super) fn cause(&self) -> Cause {
        self.cause
    }

    /// The value that was replaced or removed.
    fn old(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.key..self.old?])
    }

    /// The value that is there now.
    fn new_value(&self) -> Option<&[u8]> {
        let from = self.old.unwrap_or(self.key);
        self.is_new.then(|| &self.bytes[from..])
    }

    /// The objects, old and new. `plain` takes what has to be unpacked.
    pub(super) fn objects<'a>(
        &'a self,
        keypos: usize,
        [one, two]: &'a mut [Vec<u8>; 2],
    ) -> [Option<ObjectView<'a>>; 2] {
        let key = &self.bytes[..self.key];
        [
            self.old().map(|old| raw::view(key, old, keypos, one)),
            self.new_value().map(|new| raw::view(key, new, keypos, two)),
        ]
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        for value in [self.old(), self.new_value()].into_iter().flatten() {
            raw::release_value(value);
        }
    }
}

/// What is in the queue.
#[derive(Clone)]
pub(super) enum Event {
    Change(Arc<Change>),
    /// The table was emptied.
    Clear,
    /// The table is gone.
    Gone,
}

struct Slot {
    seq: u64,
    /// What decides whether a snapshot has it (invariant 3).
    number: u64,
    /// The last of its group.
    ends: bool,
    event: Event,
}

/// What is left to do when the locks are given back: see [`Feed::settle`].
#[derive(Default)]
pub(crate) struct Aftermath {
    wakes: bool,
    dropped: SmallVec<[Slot; 1]>,
}

struct Follower {
    id: u64,
    position: u64,
    limit: usize,
    /// The number of its snapshot.
    since: u64,
    /// It found nothing, and is to be woken.
    asleep: bool,
    waker: Waker,
}

/// The list that is being inserted.
struct Open {
    seq: u64,
    /// The position of its first event.
    from: u64,
}

#[derive(Default)]
struct Queue {
    slots: VecDeque<Slot>,
    /// The position of the first slot.
    first: u64,
    /// Of the slot that was dropped last: its Seq, and whether it ended its group.
    dropped: (u64, bool),
    open: Option<Open>,
    /// Which store's writers are heard: the so-many-th.
    store: u64,
    gone: bool,
    followers: Vec<Follower>,
    /// How many of them are asleep.
    asleep: usize,
    /// The largest limit.
    limit: usize,
    next_id: u64,
}

/// A table's feed.
pub(crate) struct Feed {
    table: TableId,
    /// How many followers there are.
    count: AtomicUsize,
    queue: Mutex<Queue>,
}

/// What a follower found.
pub(super) struct Found {
    /// Groups, whole, in order: Seq and event of each.
    pub(super) events: Vec<(u64, Event)>,
    /// Events that were lost before the first, and the Seq of the last of them.
    pub(super) lost: Option<(u64, u64)>,
    /// There was nothing.
    pub(super) is_nothing: bool,
    /// A list is being inserted.
    pub(super) waits: bool,
}

/// Events of a commit that are kept until all of its writes are made.
struct Kept {
    feed: Arc<Feed>,
    store: u64,
    number: u64,
    changes: SmallVec<[Change; 1]>,
}

each_thread! {
    /// Of the commit that this thread makes, if it makes one.
    static KEPT: RefCell<Option<Vec<Kept>>> = const { RefCell::new(None) };
}

impl Feed {
    pub(crate) fn new(table: TableId) -> Self {
        Feed {
            table,
            count: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    /// Whether somebody follows. A write asks after it has read the clock (invariant 3).
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        point();
        // Ordering: SeqCst, as the clock's: set before a snapshot's number is drawn.
        self.count.load(Ordering::SeqCst) != 0
    }

    /// How many follow.
    pub(crate) fn followers(&self) -> usize {
        // Ordering: Relaxed; a figure.
        self.count.load(Ordering::Relaxed)
    }

    /// Which store's writers are heard now. A store that a table has is loaded before.
    pub(crate) fn store(&self) -> u64 {
        self.queue.lock().store
    }

    /// Tells the changes of one write, which is made with this number to the so-many-th store,
    /// under the lock of the entry.
    pub(crate) fn push(
        self: &Arc<Self>,
        (store, number): (u64, u64),
        changes: SmallVec<[Change; 1]>,
        aftermath: &mut Aftermath,
    ) {
        if changes.is_empty() {
            return;
        }
        let changes = KEPT.with(|kept| match &mut *kept.borrow_mut() {
            None => Some(changes),
            Some(kept) => {
                kept.push(Kept {
                    feed: Arc::clone(self),
                    store,
                    number,
                    changes,
                });
                None
            }
        });
        if let Some(changes) = changes {
            let mut queue = self.queue.lock();
            if queue.hears(store) {
                let seq = queue.seq();
                queue.push_group(seq, number, changes, aftermath);
            }
        }
    }

    /// After a write, or a commit, without any lock: wakes who may find something now, and frees
    /// what was dropped.
    #[inline]
    pub(crate) fn settle(&self, aftermath: Aftermath) {
        if aftermath.wakes {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let mut wakers: SmallVec<[Waker; 2]> = SmallVec::new();
        let mut queue = self.queue.lock();
        let end = queue.readable_end();
        for follower in &mut queue.followers {
            if follower.asleep && follower.position < end {
                follower.asleep = false;
                wakers.push(Arc::clone(&follower.waker));
            }
        }
        queue.asleep -= wakers.len();
        drop(queue);
        for waker in wakers {
            waker();
        }
    }

    /// An object of a list is about to be inserted: what is told until `end_list` is one group.
    pub(crate) fn begin_list(&self) {
        if !self.is_followed() {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.open.is_none() && !queue.followers.is_empty() && !queue.gone {
            let (seq, from) = (clock::draw(), queue.end());
            queue.open = Some(Open { seq, from });
        }
    }

    /// The list is in the table.
    pub(crate) fn end_list(&self) -> Aftermath {
        let mut queue = self.queue.lock();
        queue.close();
        Aftermath {
            wakes: queue.asleep > 0,
            ..Aftermath::default()
        }
    }

    /// Runs an exchange of the store for an empty one (invariant 6). `swap` is told by which number
    /// the new store's writers are known, and whether somebody follows; it says whether it was
    /// done.
    pub(crate) fn swapping<R, E>(
        &self,
        swap: impl FnOnce(u64, bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut aftermath = Aftermath::default();
        let mut queue = self.queue.lock();
        let next = queue.store + 1;
        let followed = !queue.followers.is_empty();
        let swapped = swap(next, followed)?;
        queue.store = next;
        if followed {
            queue.close();
            let seq = clock::draw();
            // Whoever follows since before the exchange needs it, and nobody else: followers with a
            // snapshot take theirs anew if it came in between.
            queue.push(seq, u64::MAX, Event::Clear, &mut aftermath);
        }
        drop(queue);
        self.settle(aftermath);
        Ok(swapped)
    }

    /// The table is gone.
    pub(crate) fn end(&self) {
        let mut aftermath = Aftermath::default();
        let mut queue = self.queue.lock();
        queue.close();
        if !queue.followers.is_empty() && !queue.gone {
            let seq = clock::draw();
            queue.push(seq, u64::MAX, Event::Gone, &mut aftermath);
        }
        queue.gone = true;
        drop(queue);
        self.settle(aftermath);
    }

    /// Tells `f` whether somebody follows. Nobody begins to meanwhile.
    pub(crate) fn with_followed<R>(&self, f: impl FnOnce(bool) -> R) -> R {
        let queue = self.queue.lock();
        f(!queue.followers.is_empty())
    }

    /// A new follower, at the end of the queue; its id.
    pub(super) fn follow(&self, limit: usize, waker: Waker) -> u64 {
        let mut queue = self.queue.lock();
        queue.next_id += 1;
        let (id, position) = (queue.next_id, queue.end());
        queue.followers.push(Follower {
            id,
            position,
            limit,
            since: 0,
            asleep: false,
            waker,
        });
        queue.limit = queue.limit.max(limit);
        self.note(&queue);
        id
    }

    /// The follower goes on from here, and is to know of nothing that a snapshot with this number
    /// has.
    pub(super) fn go_to_end(&self, id: u64) {
        let mut queue = self.queue.lock();
        let end = queue.end();
        if let Some(follower) = queue.follower(id) {
            follower.position = end;
        }
    }

    /// The follower has a snapshot with this number.
    pub(super) fn since(&self, id: u64, number: u64) {
        if let Some(follower) = self.queue.lock().follower(id) {
            follower.since = number;
        }
    }

    /// Ends a follower; whether it was the last.
    pub(super) fn unfollow(&self, id: u64) -> bool {
        let mut queue = self.queue.lock();
        let before = queue.followers.len();
        queue.followers.retain(|follower| follower.id != id);
        queue.asleep = queue.followers.iter().filter(|f| f.asleep).count();
        queue.limit = queue.followers.iter().map(|f| f.limit).max().unwrap_or(0);
        let dropped = queue.trim();
        let is_last = before == 1 && queue.followers.is_empty();
        if is_last {
            queue.open = None;
        }
        self.note(&queue);
        drop(queue);
        if dropped.len() > FEW {
            reaper::call(move || drop(dropped));
        }
        is_last
    }

    fn note(&self, queue: &MutexGuard<'_, Queue>) {
        point();
        // Ordering: SeqCst, pairs with `is_followed`.
        self.count.store(queue.followers.len(), Ordering::SeqCst);
    }

    /// The next events of a follower: some groups, of about `most` events. If there is none, and it
    /// `sleeps`, it is woken when there is one.
    pub(super) fn next(&self, id: u64, (most, sleeps): (usize, bool)) -> Found {
        let mut found = Found {
            events: Vec::new(),
            lost: None,
            is_nothing: false,
            waits: false,
        };
        let mut queue = self.queue.lock();
        let dropped = queue.next(id, (most, sleeps), &mut found);
        drop(queue);
        drop(dropped);
        found
    }
}

impl Queue {
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Where what can be read ends.
    fn readable_end(&self) -> u64 {
        match &self.open {
            Some(open) => open.from.max(self.first),
            None => self.end(),
        }
    }

    fn hears(&self, store: u64) -> bool {
        self.store == store && !self.gone && !self.followers.is_empty()
    }

    fn follower(&mut self, id: u64) -> Option<&mut Follower> {
        self.followers.iter_mut().find(|f| f.id == id)
    }

    /// The Seq of what is told next.
    fn seq(&self) -> u64 {
        self.open.as_ref().map_or_else(clock::draw, |open| open.seq)
    }

    /// Adds the changes of one write: a group, or a part of the open one.
    fn push_group(
        &mut self,
        seq: u64,
        number: u64,
        changes: SmallVec<[Change; 1]>,
        aftermath: &mut Aftermath,
    ) {
        let last = changes.len() - 1;
        for (i, change) in changes.into_iter().enumerate() {
            self.push_slot(
                Slot {
                    seq,
                    number,
                    ends: i == last && self.open.is_none(),
                    event: Event::Change(Arc::new(change)),
                },
                aftermath,
            );
        }
        let end = self.end();
        if let Some(open) = &mut self.open {
            // A long list is several groups.
            if end - open.from >= MOST_TOGETHER {
                open.from = end;
                open.seq = clock::draw();
                self.end_group();
            }
        }
        aftermath.wakes |= self.asleep > 0 && self.readable_end() == end;
    }

    /// Adds an event that is a group.
    fn push(&mut self, seq: u64, number: u64, event: Event, aftermath: &mut Aftermath) {
        let ends = true;
        self.push_slot(
            Slot {
                seq,
                number,
                ends,
                event,
            },
            aftermath,
        );
        aftermath.wakes |= self.asleep > 0;
    }

    /// Adds an event, and drops the oldest if there are too many (invariant 4).
    fn push_slot(&mut self, slot: Slot, aftermath: &mut Aftermath) {
        self.slots.push_back(slot);
        while self.slots.len() > self.limit {
            aftermath.dropped.extend(self.drop_first());
        }
    }

    /// Forgets the first event.
    fn drop_first(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.first += 1;
        self.dropped = (slot.seq, slot.ends);
        Some(slot)
    }

    /// The last slot is the last of its group.
    fn end_group(&mut self) {
        match self.slots.back_mut() {
            Some(last) => last.ends = true,
            None => self.dropped.1 = true,
        }
    }

    /// Ends the open group.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            if self.end() > open.from {
                self.end_group();
            }
        }
    }

    /// Seq of the event before a position, and whether it ends its group.
    fn before(&self, position: u64) -> (u64, bool) {
        match position.checked_sub(self.first + 1) {
            Some(i) => {
                let slot = &self.slots[i as usize];
                (slot.seq, slot.ends)
            }
            None => self.dropped,
        }
    }

    fn next(
        &mut self,
        id: u64,
        (most, sleeps): (usize, bool),
        found: &mut Found,
    ) -> VecDeque<Slot> {
        let (end, first) = (self.readable_end(), self.first);
        let waits = self.open.is_some();
        let Some(follower) = self.follower(id) else {
            return VecDeque::new();
        };
        let (from, since, limit) = (follower.position, follower.since, follower.limit as u64);
        // What is too old is lost, and so is the rest of a group that was lost in part.
        let mut position = from.max(first).max(end.saturating_sub(limit));
        if position > from {
            while position < end && !self.before(position).1 {
                position += 1;
            }
            found.lost = Some((position - from, self.before(position).0));
        }
        let begin = position;
        while position < end {
            let slot = &self.slots[(position - first) as usize];
            position += 1;
            if slot.number >= since {
                found.events.push((slot.seq, slot.event.clone()));
            }
            let read = position - begin;
            if read >= MOST_TOGETHER || (slot.ends && read as usize >= most) {
                break;
            }
        }
        found.waits = waits;
        found.is_nothing = position == from;
        if let Some(follower) = self.follower(id) {
            follower.position = position;
            let falls_asleep = found.is_nothing && sleeps;
            if falls_asleep && !std::mem::replace(&mut follower.asleep, true) {
                self.asleep += 1;
            }
        }
        self.trim()
    }

    /// Forgets what all followers have read.
    fn trim(&mut self) -> VecDeque<Slot> {
        let Some(needed) = self.followers.iter().map(|f| f.position).min() else {
            // Nobody needs any of it.
            self.first = self.end();
            return std::mem::take(&mut self.slots);
        };
        let mut dropped = VecDeque::new();
        while self.first < needed || self.slots.len() > self.limit {
            dropped.extend(self.drop_first());
        }
        dropped
    }
}

/// Runs the writes of a commit; what they change is told when `f` has ended, as one group with one
/// Seq in the feeds of all its tables. Called while the locks of the commit's keys are held, until
/// after this (invariant 2).
pub(crate) fn together<R>(f: impl FnOnce() -> R) -> R {
    /// Also if `f` panics: what was changed is told.
    struct Telling;
    impl Drop for Telling {
        fn drop(&mut self) {
            let kept = KEPT.with(RefCell::take).unwrap_or_default();
            if !kept.is_empty() {
                tell(kept);
            }
        }
    }
    KEPT.with(|kept| kept.replace(Some(Vec::new())));
    let _telling = Telling;
    f()
}

/// Tells the events of a commit: the queues of all its tables are locked, in the order of their
/// numbers, before the Seq is drawn.
fn tell(kept: Vec<Kept>) {
    let mut feeds: Vec<Arc<Feed>> = kept.iter().map(|kept| Arc::clone(&kept.feed)).collect();
    feeds.sort_by_key(|feed| feed.table);
    feeds.dedup_by_key(|feed| feed.table);
    let mut aftermaths: Vec<Aftermath> = feeds.iter().map(|_| Aftermath::default()).collect();
    let mut queues: Vec<_> = feeds.iter().map(|feed| feed.queue.lock()).collect();
    let seq = clock::draw();
    let mut groups: Vec<(u64, SmallVec<[Change; 1]>)> = Vec::new();
    groups.resize_with(feeds.len(), Default::default);
    // Freed when the queues are unlocked.
    let mut unheard = Vec::new();
    for Kept {
        feed,
        store,
        number,
        changes,
    } in kept
    {
        let i = feeds.partition_point(|other| other.table < feed.table);
        if queues[i].hears(store) {
            groups[i].0 = number;
            groups[i].1.extend(changes);
        } else {
            unheard.push(changes);
        }
    }
    for ((queue, aftermath), (number, changes)) in
        queues.iter_mut().zip(&mut aftermaths).zip(groups)
    {
        if !changes.is_empty() {
            // A list that is being inserted into the table takes it in.
            let seq = queue.open.as_ref().map_or(seq, |open| open.seq);
            queue.push_group(seq, number, changes, aftermath);
        }
    }
    drop(queues);
    for (feed, aftermath) in feeds.iter().zip(aftermaths) {
        feed.settle(aftermath);
    }
}
