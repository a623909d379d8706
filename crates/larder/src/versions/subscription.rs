//! Subscriptions to feeds.
//!
//! # Steps of a subscription
//!
//! 1. *Watch* the table, if it is not watched already. It stays watched while it has a follower.
//! 2. *Follow*: add a follower at the end of the queue. From here on writes push their events.
//! 3. *Check*: if the table has returned to its plain store in between, watch it again. If a list
//!    was inserted in between, the follower may stand within its events: it is moved to the end of
//!    the queue, and the check is repeated.
//!
//! With a snapshot the steps are fs1 to fs5 (docs/design.md §5.7.4): the follower is added before
//! the table is watched. Each time that the snapshot is taken again, the follower is moved to the
//! end of the queue between sn2 and sn3.

use super::changed_object::Cause;
use super::feed::{QueuedEvent, TableFeed};
use super::followers::Waker;
use super::history::History;
use crate::budget::Budget;
use crate::buffers::ThreadBuffers;
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::options::Access;
use crate::programs::{Context, Program};
use crate::store::Store;
use crate::table::EngineTable;
use larder_term::object::ObjectView;
use std::sync::Arc;

/// The options of a subscription.
pub struct SubscriptionOptions {
    /// How many events it may fall behind, at least 1. Beyond that, the oldest events are lost.
    pub limit: usize,
    /// A filter: only changes whose old or new object matches. `None` for all changes.
    pub filter: Option<Program>,
    /// Called once, by a writing thread, when a subscriber that got [`FeedRead::Nothing`] or
    /// [`FeedRead::Waits`] may ask again.
    pub waker: Waker,
}

/// An event, as a subscriber gets it.
pub enum FeedEvent<'a> {
    /// An object was inserted under a new key, or added to a bag.
    Insert(&'a ObjectView<'a>),
    /// The first object was replaced by the second, which has the same key.
    Replace(&'a ObjectView<'a>, &'a ObjectView<'a>),
    /// An object was deleted.
    Delete(&'a ObjectView<'a>),
    /// An object expired (see [`crate::Bounds`]).
    Expire(&'a ObjectView<'a>),
    /// An object was evicted (see [`crate::Limits`]).
    Evict(&'a ObjectView<'a>),
    /// All objects were deleted.
    Clear,
    /// This number of events was lost, since the subscriber fell behind by more than its limit.
    Overflow(u64),
    /// The table was dropped. No further event follows.
    Gone,
}

/// The result of reading a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedRead {
    /// There may be more.
    Some,
    /// There was no event. The waker is called when there is one.
    Nothing,
    /// A list is being inserted, so there will be events soon. The waker is called. But the thread
    /// that inserts the list may have stopped, so ask again soon: each call helps with a part of
    /// the list.
    Waits,
    /// The table was dropped, and the event that says so was delivered.
    Over,
}

/// A subscription. It ends when it is dropped.
pub struct Subscription {
    table: Arc<EngineTable>,
    /// The owner that subscribed.
    reader: OwnerId,
    feed: Arc<TableFeed>,
    id: u64,
    filter: Option<Program>,
    over: bool,
    plain: [Vec<u8>; 2],
}

impl Subscription {
    /// Step 2.
    fn follow(table: &Arc<EngineTable>, reader: OwnerId, options: SubscriptionOptions) -> Self {
        let feed = Arc::clone(table.feed());
        Subscription {
            // A limit of 0 could never be kept.
            id: feed.follow(options.limit.max(1), options.waker),
            table: Arc::clone(table),
            reader,
            feed,
            filter: options.filter,
            over: false,
            plain: Default::default(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<EngineTable> {
        &self.table
    }

    /// Calls `visit` with the Seq of each of the next events, and the event, in order. Seqs ascend.
    /// Events with the same Seq are those of one commit, and are all delivered in one call, except
    /// those of a commit with more than 500 events. Reads about `most` events, or about 128 KiB of
    /// objects. With `sleeps`, the waker is called once when there are events after there were
    /// none. Otherwise the caller asks again by itself.
    ///
    /// If the subscriber has lost the right to read the table, the subscription ends, with `Gone`
    /// in place of the events.
    ///
    /// # Complexity
    /// Linear in the number of events that are read.
    pub fn next(
        &mut self,
        most: usize,
        sleeps: bool,
        context: &Context<'_>,
        visit: &mut dyn FnMut(u64, FeedEvent<'_>),
    ) -> FeedRead {
        if self.over {
            return FeedRead::Over;
        }
        // Copy the next events from the feed. Its lock isn't held while they are visited.
        let found = self.feed.next(self.id, most.max(1), sleeps);
        // The right is checked after they were read: whatever a new owner has written is after the
        // transfer. A table that is dead keeps its last owner.
        let is_refused =
            self.table.access() == Access::Private && self.table.owner() != self.reader;
        if let (true, Some((seq, _))) = (is_refused, found.events.first()) {
            self.over = true;
            visit(*seq, FeedEvent::Gone);
            return FeedRead::Some;
        }
        // If this follower has fallen behind, the oldest events were dropped. Report that first.
        if let Some((lost, seq)) = found.lost {
            visit(seq, FeedEvent::Overflow(lost));
        }
        let mut buffers = ThreadBuffers::new();
        for (seq, event) in &found.events {
            let change = match event {
                QueuedEvent::Change(change) => change,
                QueuedEvent::Clear => {
                    visit(*seq, FeedEvent::Clear);
                    continue;
                }
                QueuedEvent::Gone => {
                    self.over = true;
                    visit(*seq, FeedEvent::Gone);
                    continue;
                }
            };
            // The filter applies to both the new and the old object. One match suffices, so that a
            // follower sees objects that begin or cease to match.
            let objects = change.objects(self.table.keypos(), &mut self.plain);
            let mut fits = |object: &Option<ObjectView<'_>>| match (object, &self.filter) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(object), Some(program)) => {
                    program.run(object, context, &mut buffers.scratch).is_some()
                }
            };
            // The new object is tried first: it is the one that most filters describe.
            if objects.iter().rev().any(&mut fits) {
                // Which of the two objects exist determines the kind of event.
                match &objects {
                    [None, Some(new)] => visit(*seq, FeedEvent::Insert(new)),
                    [Some(old), None] => {
                        let event = match change.cause() {
                            Cause::Written => FeedEvent::Delete(old),
                            Cause::Expired => FeedEvent::Expire(old),
                            Cause::Evicted => FeedEvent::Evict(old),
                        };
                        visit(*seq, event);
                    }
                    [Some(old), Some(new)] => visit(*seq, FeedEvent::Replace(old, new)),
                    [None, None] => {}
                }
            }
        }
        // Events were read, even if none of them fits the filter.
        if !found.is_at_end {
            FeedRead::Some
        } else if found.list_is_open {
            // A list is being inserted, and its events follow when it is done. Help it.
            self.table.help_batch(&mut Budget::slice());
            FeedRead::Waits
        } else {
            FeedRead::Nothing
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let guard = larder_index::pin();
        // The last follower lets the table go back to its plain store.
        if self.feed.unfollow(self.id) {
            let store = self.table.store(&guard);
            if let Some(history) = store.and_then(Store::history) {
                history.unwatch_if_idle(&guard);
            }
        }
    }
}

impl EngineTable {
    /// Subscribes to all changes of the table from now on.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to read is needed); `Busy` while a list is being inserted;
    /// `TableType` for tables on a structure of the studies, and for snapshots.
    ///
    /// # Consistency
    /// Each change that takes effect after the subscription is delivered once. The changes of a key
    /// are delivered in their order.
    ///
    /// # Complexity
    /// O(1). While there is a subscription, each write copies its old and its new object.
    pub fn subscribe(
        self: &Arc<Self>,
        who: OwnerId,
        options: SubscriptionOptions,
    ) -> Result<Subscription, Error> {
        self.check_read(who)?;
        let guard = larder_index::pin();
        // (1)
        let mut history: Arc<History> = self.watch(&guard)?;
        // (2)
        let subscription = Subscription::follow(self, who, options);
        // (3) A list that began before and isn't over is `Busy`.
        loop {
            let transitions = self.latch.transitions();
            subscription.feed.go_to_end(subscription.id);
            let is_watched = self.has_history(&history, &guard)?;
            if is_watched && self.latch.transitions() == transitions {
                return Ok(subscription);
            }
            history = self.watch(&guard)?;
        }
    }

    /// The number of subscriptions to the table. O(1).
    pub fn subscribers(&self) -> usize {
        self.feed.get().map_or(0, |feed| feed.followers())
    }
}

impl Engine {
    /// Takes a snapshot of a table for `who`, like [`Engine::snapshot`], and subscribes to the
    /// changes after it. Each change is in exactly one of the two, with one exception: an object
    /// that had expired when the snapshot was taken, and was not removed yet, may be reported as
    /// expired, or as deleted or replaced by a transaction that had seen it, though the snapshot
    /// doesn't have it.
    ///
    /// # Errors
    /// Those of [`Engine::snapshot`] and [`EngineTable::subscribe`].
    pub fn snapshot_and_subscribe(
        &self,
        table: &Arc<EngineTable>,
        who: OwnerId,
        options: SubscriptionOptions,
    ) -> Result<(Arc<EngineTable>, Subscription), Error> {
        table.check_read(who)?;
        table.check_watchable()?;
        // Follow before the snapshot is taken. Each attempt to take it moves the follower on
        // (`go_to_end`).
        let subscription = Subscription::follow(table, who, options);
        let (feed, id) = (&subscription.feed, subscription.id);
        let snapshots = self.snapshot_after(&[table], who, Some(&mut || feed.go_to_end(id)))?;
        let snapshot = snapshots.into_iter().next().ok_or(Error::NoTable)?;
        let number = snapshot.snapshot_info().map_or(0, |info| info.number);
        // Events of writes that the snapshot includes are skipped.
        feed.set_snapshot_number(id, number);
        Ok((snapshot, subscription))
    }
}
