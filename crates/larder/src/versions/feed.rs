//! Feeds: publish the changes of a table to its subscribers.
//!
//! # Definitions
//!
//! - *Change*: the old object of a write, the new one, or both.
//! - *Event*: a change, the emptying of the table, or its end.
//! - *Group*: the events that happen at one point in time: those of a single write, of a write of
//!   several objects under one key of a bag, of a transaction's commit, or of a part of an inserted
//!   list. A group has one sequence number, its *Seq*.
//! - *Follower*: the queue's record of a subscriber: its position, and how many events it may lag
//!   behind.
//!
//! ```text
//!            first                                     end
//!   dropped │ e e e │ e │ e e │ e │ . . . . . . . . . . │   new events
//!             └ a group           └ the open group: a list that is being inserted
//!                     ↑ a follower's position
//! ```
//!
//! # Invariants (docs/design.md §5.7.2)
//!
//! * FD1: Seqs ascend in the queue. They are drawn from the clock under the queue's lock.
//! * FD2: The events of one key are in the order of its writes: a write pushes its event under the
//!   lock of the entry or, as a part of a commit, under the locks of the commit's keys.
//! * FD3: The events of all writes that a follower's snapshot does not include are pushed, with
//!   numbers not less than the snapshot's. A follower with a snapshot skips events with lesser
//!   numbers.
//! * FD4: The queue holds at most as many events as the largest limit of a follower.
//! * FD5: All events stem from writes to the table's current store. Events that an earlier store's
//!   writers push are dropped.
//! * FD6: Each change owns one count of each handle in its values.
//!
//! For FD3 a write reads, in this order: the clock, the history's newest snapshot, and whether
//! there is a follower. A snapshot with a subscription sets them in the reverse order: follower,
//! pending snapshot, clock.
//!
//! For followers, the linearisation point of a write is the push of its event. The entry's lock is
//! held from before the push until the change is made.
//!
//! Lock order: the queue's lock comes last, after those of leaves and histories and the latch. A
//! thread that holds it neither pins an epoch, nor frees an event, nor calls the host. It may
//! exchange the table's state word: when the table is emptied (`swapping`), and when it goes back
//! to its plain store or gets a new history (`with_followed`).

use super::changed_object::ChangedObject;
use super::clock;
use super::followers::{Followers, Waker};
use crate::ids::TableId;
use crate::reclaim::reaper;
use larder_index::are_flushes_held;
use larder_index::sync::{each_thread, point, Mutex, MutexGuard};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The most events that are delivered together: a longer list becomes several groups, and a longer
/// commit is delivered in parts.
const MOST_TOGETHER: u64 = 500;

/// A read ends at the end of the group with which its objects have this number of bytes, so that a
/// call of the host that makes terms of them doesn't take long.
const MOST_BYTES: usize = 128 << 10;

/// If the read or the end of a follower drops more events than this, the reaper frees them.
const FREED_INLINE: usize = 1_000;

/// An event (see the module).
#[derive(Clone)]
pub(super) enum QueuedEvent {
    Change(Arc<ChangedObject>),
    /// The table was emptied.
    Clear,
    /// The table is dropped.
    Gone,
}

/// An event in the queue.
struct FeedSlot {
    seq: u64,
    /// The number of the write, which decides whether a snapshot includes it (FD3).
    number: u64,
    /// Whether it is the last of its group.
    ends: bool,
    event: QueuedEvent,
}

/// Work that is deferred until the locks are released: see [`TableFeed::wake_followers`].
#[derive(Default)]
pub(crate) struct DeferredWork {
    /// Whether a follower may have to be woken.
    wakes: bool,
    /// Events to free.
    dropped: SmallVec<[FeedSlot; 1]>,
}

/// The list that is being inserted.
struct Open {
    seq: u64,
    /// The position of its first event.
    from: u64,
}

/// What is known of a slot after it was read or dropped.
#[derive(Clone, Copy, Default)]
struct PastSlot {
    seq: u64,
    /// Whether it was the last one of its group.
    ends: bool,
}

impl FeedSlot {
    fn past(&self) -> PastSlot {
        PastSlot {
            seq: self.seq,
            ends: self.ends,
        }
    }
}

#[derive(Default)]
struct EventQueue {
    slots: VecDeque<FeedSlot>,
    /// The position of the first slot.
    first: u64,
    /// The slot that was dropped last.
    dropped: PastSlot,
    open: Option<Open>,
    /// The number of the table's current store, whose writers alone are listened to (FD5).
    store_number: u64,
    is_over: bool,
    followers: Followers,
}

/// A table's feed.
pub(crate) struct TableFeed {
    table: TableId,
    /// How many followers there are.
    count: AtomicUsize,
    queue: Mutex<EventQueue>,
}

/// The result of a follower's read.
pub(super) struct FollowerRead {
    /// The events in order, each with its Seq: whole groups, or a part of one with more than
    /// `MOST_TOGETHER` events.
    pub(super) events: Vec<(u64, QueuedEvent)>,
    /// The number of events that were lost before the first one, and the Seq of the last of them.
    pub(super) lost: Option<(u64, u64)>,
    /// Whether the follower had read everything already.
    pub(super) is_at_end: bool,
    /// Whether a list is being inserted, whose events can't be read yet.
    pub(super) list_is_open: bool,
}

/// The changes of one write of a commit, held back until all of its writes are made.
struct HeldBack {
    feed: Arc<TableFeed>,
    store_number: u64,
    number: u64,
    changes: SmallVec<[ChangedObject; 1]>,
}

each_thread! {
    /// The changes of the commit that this thread is making, if it is making one.
    static KEPT: RefCell<Option<Vec<HeldBack>>> = const { RefCell::new(None) };
}

impl TableFeed {
    pub(crate) fn new(table: TableId) -> Self {
        TableFeed {
            table,
            count: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    /// Whether there are followers. A write asks after it has read the clock (FD3).
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        point();
        // Ordering: SeqCst, as the clock's: set before a snapshot's number is drawn.
        self.count.load(Ordering::SeqCst) != 0
    }

    /// The number of followers, for a write that reads it instead of calling `is_followed`.
    #[inline]
    pub(super) fn follower_count(&self) -> &AtomicUsize {
        &self.count
    }

    /// The number of followers.
    pub(crate) fn followers(&self) -> usize {
        // Ordering: Relaxed; a figure.
        self.count.load(Ordering::Relaxed)
    }

    /// The number of the table's current store. Called after the table's store was loaded. If the
    /// store is replaced in between, the number is too great, and the caller's exchange fails.
    pub(crate) fn store_number(&self) -> u64 {
        self.queue.lock().store_number
    }

    /// Pushes the changes of one write, given the number of the store it writes to and its own.
    /// The caller holds the lock of the entry.
    pub(crate) fn push(
        self: &Arc<Self>,
        store_number: u64,
        number: u64,
        changes: SmallVec<[ChangedObject; 1]>,
        deferred: &mut DeferredWork,
    ) {
        // A write that has changed nothing has no event.
        if changes.is_empty() {
            return;
        }
        // Within a commit the changes are held back until all writes are made (see `together`). If
        // the thread is ending, the variable is destroyed, and each is pushed by itself.
        let mut changes = Some(changes);
        let _ = KEPT.try_with(|kept| {
            if let Some(kept) = &mut *kept.borrow_mut() {
                kept.extend(changes.take().map(|changes| HeldBack {
                    feed: Arc::clone(self),
                    store_number,
                    number,
                    changes,
                }));
            }
        });
        // The lock of the queue is taken under that of the entry. So the events of a key are in the
        // order of its writes. Nothing is pushed if the table was emptied since the write began.
        if let Some(changes) = changes {
            let mut queue = self.queue.lock();
            if queue.accepts(store_number) {
                let seq = queue.seq();
                queue.push_group(seq, number, changes, deferred);
            }
        }
    }

    /// Called after a write or a commit, when no leaf is locked any more: wakes the followers that
    /// have something to read now, and frees the events that were dropped. The thread may still
    /// hold locks of keys.
    #[inline]
    pub(crate) fn wake_followers(&self, deferred: DeferredWork) {
        if deferred.wakes {
            self.wake();
        }
        if !deferred.dropped.is_empty() {
            free_dropped(deferred.dropped);
        }
    }

    #[cold]
    fn wake(&self) {
        // Wake only followers that have found nothing, and each once.
        let mut queue = self.queue.lock();
        let end = queue.readable_end();
        let wakers = queue.followers.wake_before(end);
        // Wakers call into the host, so the lock is released first.
        drop(queue);
        for waker in wakers {
            waker();
        }
    }

    /// Called when the insertion of a list begins: the events until `end_list` are one group.
    pub(crate) fn begin_list(&self) {
        if !self.is_followed() {
            return;
        }
        // The Seq of the list's events is drawn now. They are pushed to an open group.
        let mut queue = self.queue.lock();
        if queue.open.is_none() && !queue.followers.is_empty() && !queue.is_over {
            let (seq, from) = (clock::draw(), queue.end());
            queue.open = Some(Open { seq, from });
        }
    }

    /// Called when the whole list is in the table.
    pub(crate) fn end_list(&self) -> DeferredWork {
        let mut queue = self.queue.lock();
        queue.close();
        DeferredWork {
            wakes: queue.followers.any_asleep(),
            ..DeferredWork::default()
        }
    }

    /// Replaces the store by an empty one (FD5). `swap` makes the exchange; it is passed the number
    /// of the new store and whether there are followers. If it fails, nothing is pushed.
    pub(crate) fn swapping<R, E>(
        &self,
        swap: impl FnOnce(u64, bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut deferred = DeferredWork::default();
        // The queue's lock is held during the exchange. So no write pushes between the exchange and
        // the event.
        let mut queue = self.queue.lock();
        let next = queue.store_number + 1;
        let followed = !queue.followers.is_empty();
        let swapped = swap(next, followed)?;
        queue.store_number = next;
        if followed {
            queue.close();
            let seq = clock::draw();
            // The number is greater than that of any snapshot, so that no follower skips the event.
            // A follower whose snapshot was being taken meanwhile takes it again.
            // `Clear` is an event of its own, after all events of the old store.
            queue.push(seq, u64::MAX, QueuedEvent::Clear, &mut deferred);
        }
        drop(queue);
        self.wake_followers(deferred);
        Ok(swapped)
    }

    /// Called when the table is deleted.
    pub(crate) fn end(&self) {
        let mut deferred = DeferredWork::default();
        let mut queue = self.queue.lock();
        // An open group ends here, as the list can't be completed.
        queue.close();
        // The last event of the table. After it nothing is pushed.
        if !queue.followers.is_empty() && !queue.is_over {
            let seq = clock::draw();
            queue.push(seq, u64::MAX, QueuedEvent::Gone, &mut deferred);
        }
        queue.is_over = true;
        // Wakers are called without the lock.
        drop(queue);
        self.wake_followers(deferred);
    }

    /// Calls `f` with whether there are followers, under the lock, so that none is added meanwhile.
    pub(crate) fn with_followed<R>(&self, f: impl FnOnce(bool) -> R) -> R {
        let queue = self.queue.lock();
        f(!queue.followers.is_empty())
    }

    /// Adds a follower that begins at the end of the queue, and returns its id.
    pub(super) fn follow(&self, limit: usize, waker: Waker) -> u64 {
        let mut queue = self.queue.lock();
        // The position is the end of the queue: the follower gets what is pushed from now on. The
        // queue keeps as many events as the most patient follower may lag behind.
        let end = queue.end();
        let id = queue.followers.add(end, limit, waker);
        self.publish_count(&queue);
        id
    }

    /// Moves a follower to the end of the queue, before the number of its snapshot is drawn.
    pub(super) fn go_to_end(&self, id: u64) {
        let mut queue = self.queue.lock();
        let end = queue.end();
        queue.followers.go_to(id, end, false);
    }

    /// Records that the follower has a snapshot with this number.
    pub(super) fn set_snapshot_number(&self, id: u64, number: u64) {
        let mut queue = self.queue.lock();
        queue.followers.set_snapshot_number(id, number);
    }

    /// Removes a follower, and returns whether it was the last one.
    pub(super) fn unfollow(&self, id: u64) -> bool {
        let mut queue = self.queue.lock();
        let removed = queue.followers.remove(id);
        // Events that nobody else has yet to read are dropped.
        let dropped = queue.trim();
        let is_last = removed.is_some() && queue.followers.is_empty();
        if is_last {
            queue.open = None;
        }
        self.publish_count(&queue);
        drop(queue);
        // Its waker is the host's, and so may be what that refers to.
        drop(removed);
        free(dropped);
        is_last
    }

    fn publish_count(&self, queue: &MutexGuard<'_, EventQueue>) {
        point();
        // Ordering: SeqCst, pairs with `is_followed`.
        self.count.store(queue.followers.len(), Ordering::SeqCst);
    }

    /// Reads the next events of a follower: whole groups of about `most` events in total, or of
    /// about `MOST_BYTES`. If there are none and `sleeps` is true, the follower is woken when there
    /// are some.
    pub(super) fn next(&self, id: u64, most: usize, sleeps: bool) -> FollowerRead {
        let mut found = FollowerRead {
            events: Vec::new(),
            lost: None,
            is_at_end: false,
            list_is_open: false,
        };
        let mut queue = self.queue.lock();
        let dropped = queue.next(id, most, sleeps, &mut found);
        drop(queue);
        free(dropped);
        found
    }
}

/// Frees events that nobody needs any more. Called without the queue's lock. Many of them take
/// long, so the reaper frees them.
fn free(dropped: VecDeque<FeedSlot>) {
    if dropped.len() > FREED_INLINE {
        let mut dropped = dropped.into_iter();
        reaper::bits(0, move || dropped.by_ref().take(64).count() < 64);
    }
}

/// Frees events that a write has dropped. If the thread holds locks, the reaper frees those that
/// may be the last to refer to a host's values: their destructors may need the locks.
#[cold]
fn free_dropped(dropped: SmallVec<[FeedSlot; 1]>) {
    let has_handles = |slot: &FeedSlot| match &slot.event {
        QueuedEvent::Change(change) => change.has_handles(),
        QueuedEvent::Clear | QueuedEvent::Gone => false,
    };
    if are_flushes_held() && dropped.iter().any(has_handles) {
        // One piece of work for many: each piece weighs much in the reaper's backlog, and each
        // write to a table whose follower lags drops an event.
        let mut waiting = WAITING.lock();
        let is_first = waiting.is_empty();
        waiting.extend(dropped);
        drop(waiting);
        if is_first {
            reaper::bits(0, free_waiting);
        }
    }
}

/// Events that the reaper is to free. While there are some, `free_waiting` is among its work.
static WAITING: parking_lot::Mutex<VecDeque<FeedSlot>> = parking_lot::Mutex::new(VecDeque::new());

/// Frees some of them. Returns whether no others are waiting.
fn free_waiting() -> bool {
    let mut waiting = WAITING.lock();
    let some = waiting.len().min(64);
    let some: Vec<FeedSlot> = waiting.drain(..some).collect();
    let is_over = waiting.is_empty();
    // Freed without the lock: a destructor may write to a table with a feed. If one panics, the
    // others are freed all the same.
    drop(waiting);
    drop(catch_unwind(AssertUnwindSafe(|| drop(some))));
    is_over
}

impl EventQueue {
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The end of the events that can be read: the open group is not readable yet.
    fn readable_end(&self) -> u64 {
        match &self.open {
            Some(open) => open.from.max(self.first),
            None => self.end(),
        }
    }

    fn accepts(&self, store_number: u64) -> bool {
        self.store_number == store_number && !self.is_over && !self.followers.is_empty()
    }

    /// The Seq for the next group: that of the open group, or a new one.
    fn seq(&self) -> u64 {
        self.open.as_ref().map_or_else(clock::draw, |open| open.seq)
    }

    /// Adds the changes of one write, as a group of their own or as a part of the open group.
    fn push_group(
        &mut self,
        seq: u64,
        number: u64,
        changes: SmallVec<[ChangedObject; 1]>,
        deferred: &mut DeferredWork,
    ) {
        // Unless a group is open, the last change ends this one.
        let last = changes.len() - 1;
        for (i, change) in changes.into_iter().enumerate() {
            let slot = FeedSlot {
                seq,
                number,
                ends: i == last && self.open.is_none(),
                event: QueuedEvent::Change(Arc::new(change)),
            };
            self.push_slot(slot, deferred);
        }
        let end = self.end();
        if let Some(open) = &mut self.open {
            // A long list is delivered as several groups: ends this one and opens the next.
            if end - open.from >= MOST_TOGETHER {
                open.from = end;
                open.seq = clock::draw();
                self.end_group();
            }
        }
        // Wake followers only if they can read the new events, and not while their group is open.
        deferred.wakes |= self.followers.any_asleep() && self.readable_end() == end;
    }

    /// Adds an event that is a group of its own.
    fn push(&mut self, seq: u64, number: u64, event: QueuedEvent, deferred: &mut DeferredWork) {
        let slot = FeedSlot {
            seq,
            number,
            ends: true,
            event,
        };
        self.push_slot(slot, deferred);
        deferred.wakes |= self.followers.any_asleep();
    }

    /// Adds an event, and drops the oldest ones if there are too many (FD4).
    fn push_slot(&mut self, slot: FeedSlot, deferred: &mut DeferredWork) {
        self.slots.push_back(slot);
        while self.slots.len() > self.followers.limit() {
            deferred.dropped.extend(self.drop_first());
        }
    }

    /// Drops the first event.
    fn drop_first(&mut self) -> Option<FeedSlot> {
        let slot = self.slots.pop_front()?;
        // What was dropped last stays known, since a follower may stand right after it.
        self.first += 1;
        self.dropped = slot.past();
        Some(slot)
    }

    /// Marks the last slot as the end of its group. It may have been dropped already.
    fn end_group(&mut self) {
        match self.slots.back_mut() {
            Some(last) => last.ends = true,
            None => self.dropped.ends = true,
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

    /// The slot before a position.
    fn before(&self, position: u64) -> PastSlot {
        // The slots begin at `first`. What was before them is `dropped`.
        match position.checked_sub(self.first + 1) {
            Some(i) => self.slots[i as usize].past(),
            None => self.dropped,
        }
    }

    fn next(
        &mut self,
        id: u64,
        most: usize,
        sleeps: bool,
        found: &mut FollowerRead,
    ) -> VecDeque<FeedSlot> {
        // Only whole groups are readable. An open group isn't.
        let (end, first) = (self.readable_end(), self.first);
        let list_is_open = self.open.is_some();
        let Some(follower) = self.followers.get(id) else {
            return VecDeque::new();
        };
        let (from, since, limit) = (follower.position, follower.since, follower.limit as u64);
        let was_cut = follower.is_cut;
        // Events that were dropped, or that exceed the follower's limit, are lost. So is the rest
        // of a group of which events were lost, because only whole groups are delivered.
        let mut position = from.max(first).max(end.saturating_sub(limit));
        let loses = was_cut || position > from;
        while loses && position < end && !self.before(position).ends {
            position += 1;
        }
        // An open group may go on after what is readable.
        let is_cut = loses && !self.before(position).ends;
        if position > from {
            found.lost = Some((position - from, self.before(position).seq));
        }
        // Deliver whole groups until there are `most` events, or `MOST_BYTES`. A group of more than
        // `MOST_TOGETHER` is delivered in parts. So count from its first event, or from where the
        // last call ended.
        let (begin, mut group, mut bytes) = (position, position, 0);
        while position < end {
            let slot = &self.slots[(position - first) as usize];
            position += 1;
            // The follower's snapshot already includes writes with lesser numbers.
            if slot.number >= since {
                found.events.push((slot.seq, slot.event.clone()));
                if let QueuedEvent::Change(change) = &slot.event {
                    bytes += change.len();
                }
            }
            let is_part = position - group >= MOST_TOGETHER;
            if slot.ends {
                group = position;
            }
            let is_enough = (position - begin) as usize >= most || bytes >= MOST_BYTES;
            if is_part || (slot.ends && is_enough) {
                break;
            }
        }
        found.list_is_open = list_is_open;
        found.is_at_end = position == from;
        self.followers.go_to(id, position, is_cut);
        // The follower sleeps only if it wants to and got nothing. Its waker is called once then.
        if found.is_at_end && sleeps {
            self.followers.fall_asleep(id);
        }
        self.trim()
    }

    /// Drops the events that all followers have read, and returns them to be freed without the
    /// lock.
    fn trim(&mut self) -> VecDeque<FeedSlot> {
        let Some(needed) = self.followers.first_position() else {
            // There are no followers.
            self.first = self.end();
            return std::mem::take(&mut self.slots);
        };
        let read = needed.saturating_sub(self.first) as usize;
        let n = read.max(self.slots.len().saturating_sub(self.followers.limit()));
        let Some(last) = n.checked_sub(1).and_then(|last| self.slots.get(last)) else {
            return VecDeque::new();
        };
        self.dropped = last.past();
        self.first += n as u64;
        // Writers wait for the lock. So if there are many, keep the others instead of moving these.
        let kept = self.slots.len() - n;
        if n > kept.max(FREED_INLINE) {
            let kept = self.slots.split_off(n);
            return std::mem::replace(&mut self.slots, kept);
        }
        self.slots.drain(..n).collect()
    }
}

/// Runs the writes of a commit in `f`. When `f` has ended, their changes are pushed to the feeds of
/// all tables as one group with one Seq. The caller holds the locks of the commit's keys until this
/// has returned (FD2).
pub(crate) fn together<R>(f: impl FnOnce() -> R) -> R {
    /// Pushes the changes when it is dropped, so that they are pushed even if `f` panics.
    struct PushOnDrop;
    impl Drop for PushOnDrop {
        fn drop(&mut self) {
            // KEPT is empty again before anything is pushed. So a nested commit on this thread
            // can't add to it.
            let kept = KEPT.try_with(RefCell::take).ok().flatten();
            let kept = kept.unwrap_or_default();
            if !kept.is_empty() {
                push_commit(kept);
            }
        }
    }
    let _ = KEPT.try_with(|kept| kept.replace(Some(Vec::new())));
    let _push = PushOnDrop;
    f()
}

/// Pushes the events of a commit: the queues of all its tables are locked, in the order of their
/// numbers, before the Seq is drawn.
fn push_commit(kept: Vec<HeldBack>) {
    // 1. Lock the queues of all feeds, in one order, so that two commits never wait for each other.
    let mut feeds: Vec<Arc<TableFeed>> = kept.iter().map(|kept| Arc::clone(&kept.feed)).collect();
    feeds.sort_unstable_by_key(|feed| feed.table);
    feeds.dedup_by_key(|feed| feed.table);
    let mut deferred_works: Vec<DeferredWork> =
        feeds.iter().map(|_| DeferredWork::default()).collect();
    let mut queues: Vec<_> = feeds.iter().map(|feed| feed.queue.lock()).collect();
    let seq = clock::draw();
    // 2. Sort the changes by feed. Those of a store that was replaced meanwhile are dropped.
    let mut groups: Vec<(u64, SmallVec<[ChangedObject; 1]>)> = Vec::new();
    groups.resize_with(feeds.len(), Default::default);
    // Freed when the queues are unlocked.
    let mut dropped = Vec::new();
    for HeldBack {
        feed,
        store_number,
        number,
        changes,
    } in kept
    {
        let i = feeds.partition_point(|other| other.table < feed.table);
        if queues[i].accepts(store_number) {
            groups[i].0 = number;
            groups[i].1.extend(changes);
        } else {
            dropped.push(changes);
        }
    }
    // 3. Push each table's changes as one group, all with the same Seq.
    for ((queue, deferred), (number, changes)) in
        queues.iter_mut().zip(&mut deferred_works).zip(groups)
    {
        if !changes.is_empty() {
            // A list that is being inserted into the table takes it in.
            let seq = queue.open.as_ref().map_or(seq, |open| open.seq);
            queue.push_group(seq, number, changes, deferred);
        }
    }
    drop(queues);
    // 4. With the queues unlocked, wake the followers.
    for (feed, deferred) in feeds.iter().zip(deferred_works) {
        feed.wake_followers(deferred);
    }
}
