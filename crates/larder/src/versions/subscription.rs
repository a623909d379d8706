//! Subscriptions: how a feed is followed.
//!
//! # Steps of a subscription
//!
//! 1. *Watch* the table, if it is not watched already. It stays so while somebody follows.
//! 2. *Follow*: a follower is added, at the end of the queue. From here on writes tell.
//! 3. *Look again*: if the table has gone back to its plain store in between, it is watched anew.
//!
//! With a snapshot, (2) comes before (1), and the follower goes to the end of the queue each time
//! that the snapshot is taken anew, between the steps *register* and *cut* (see the folder).

use super::feed::{Cause, Event, Feed, Waker};
use super::history::History;
use crate::budget::Budget;
use crate::buffers::Lent;
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::store::Store;
use crate::table::Table;
use larder_matchspec::{Context, Program};
use larder_term::object::ObjectView;
use std::sync::Arc;

/// What a subscriber wants.
pub struct Wishes {
    /// Events it may fall behind, at least 1. What comes on top is lost, the oldest first.
    pub limit: usize,
    /// Changes of which objects, old or new: those that this fits. None: of all.
    pub filter: Option<Program>,
    /// What is called when a subscriber that was told [`Told::Nothing`] or [`Told::Waits`] may ask
    /// again: once, by a thread that writes.
    pub waker: Waker,
}

/// What a subscriber is told.
pub enum FeedEvent<'a> {
    /// An object is new.
    Insert(&'a ObjectView<'a>),
    /// An object, the first, was replaced by another with the same key.
    Replace(&'a ObjectView<'a>, &'a ObjectView<'a>),
    /// An object is gone.
    Delete(&'a ObjectView<'a>),
    /// An object is gone, as its time was over (see [`crate::Bounds`]).
    Expire(&'a ObjectView<'a>),
    /// An object is gone, as there was too much (see [`crate::Limits`]).
    Evict(&'a ObjectView<'a>),
    /// All objects are gone.
    Clear,
    /// So many events were lost, as the subscriber fell behind by more than its limit.
    Overflow(u64),
    /// The table is gone. Nothing follows.
    Gone,
}

/// How a look at a feed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// There may be more.
    Some,
    /// There was nothing. The waker is called when there is.
    Nothing,
    /// A list is being inserted: there will be something soon. The waker is called, but whoever
    /// inserts the list may have stopped, so ask again soon: each time a part of it is done.
    Waits,
    /// The table is gone, and was said to be.
    Over,
}

/// A subscription. It ends when it is dropped.
pub struct Subscription {
    table: Arc<Table>,
    feed: Arc<Feed>,
    id: u64,
    filter: Option<Program>,
    over: bool,
    plain: [Vec<u8>; 2],
}

impl Subscription {
    /// Step 2.
    fn follow(table: &Arc<Table>, wishes: Wishes) -> Self {
        let feed = Arc::clone(table.feed());
        Subscription {
            id: feed.follow(wishes.limit.max(1), wishes.waker),
            table: Arc::clone(table),
            feed,
            filter: wishes.filter,
            over: false,
            plain: Default::default(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The filter.
    pub fn filter(&self) -> Option<&Program> {
        self.filter.as_ref()
    }

    /// Calls `visit` with the Seq of each of the next events, and the event, in order. Seqs only
    /// grow; events with the same are of one commit, and none of them is left for the next call,
    /// but for a commit of over 500.
    /// About `most` events are looked at. With `sleeps`, the waker is called once there is
    /// something after there was nothing; otherwise the caller asks again by itself.
    ///
    /// # Complexity
    /// The events that are looked at.
    pub fn next(
        &mut self,
        (most, sleeps): (usize, bool),
        ctx: &Context<'_>,
        visit: &mut dyn FnMut(u64, FeedEvent<'_>),
    ) -> Told {
        if self.over {
            return Told::Over;
        }
        let found = self.feed.next(self.id, (most.max(1), sleeps));
        if let Some((lost, seq)) = found.lost {
            visit(seq, FeedEvent::Overflow(lost));
        }
        let mut lent = Lent::new();
        for (seq, event) in &found.events {
            let change = match event {
                Event::Change(change) => change,
                Event::Clear => {
                    visit(*seq, FeedEvent::Clear);
                    continue;
                }
                Event::Gone => {
                    self.over = true;
                    visit(*seq, FeedEvent::Gone);
                    continue;
                }
            };
            let objects = change.objects(self.table.keypos(), &mut self.plain);
            let mut fits = |object: &Option<ObjectView<'_>>| match (object, &self.filter) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(object), Some(program)) => {
                    program.run(object, ctx, &mut lent.scratch).is_some()
                }
            };
            if objects.iter().rev().any(&mut fits) {
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
        if !found.is_nothing {
            Told::Some
        } else if found.waits {
            self.table.help_batch(&mut Budget::slice());
            Told::Waits
        } else {
            Told::Nothing
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let guard = larder_index::pin();
        if self.feed.unfollow(self.id) {
            let store = self.table.store(&guard);
            if let Some(history) = store.and_then(Store::history) {
                history.end_if_idle(&guard);
            }
        }
    }
}

impl Table {
    /// Subscribes to what changes in the table from here on.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to read is needed); `Busy` while a list is being inserted;
    /// `TableType` for tables on a structure of the studies, and for snapshots.
    ///
    /// # Consistency
    /// Each change that takes effect after the subscription is told once. The changes of a key are
    /// told in their order.
    ///
    /// # Complexity
    /// O(1). While somebody is subscribed, each write copies its object, old and new.
    pub fn subscribe(
        self: &Arc<Self>,
        who: OwnerId,
        wishes: Wishes,
    ) -> Result<Subscription, Error> {
        self.check_read(who)?;
        let guard = larder_index::pin();
        // (1)
        let mut history: Arc<History> = self.watch(&guard)?;
        // (2)
        let subscription = Subscription::follow(self, wishes);
        // (3)
        while !self.has_history(&history, &guard)? {
            history = self.watch(&guard)?;
        }
        Ok(subscription)
    }

    /// How many are subscribed to the table. O(1).
    pub fn subscribers(&self) -> usize {
        self.feed.get().map_or(0, |feed| feed.followers())
    }
}

impl Engine {
    /// A snapshot of a table for `who`, as of [`Engine::snapshot`], and a subscription to what
    /// changes after it: no change is in both, and none in neither.
    ///
    /// # Errors
    /// As [`Engine::snapshot`] and [`Table::subscribe`].
    pub fn snapshot_and_subscribe(
        &self,
        table: &Arc<Table>,
        who: OwnerId,
        wishes: Wishes,
    ) -> Result<(Arc<Table>, Subscription), Error> {
        table.check_read(who)?;
        table.check_watchable()?;
        let subscription = Subscription::follow(table, wishes);
        let (feed, id) = (&subscription.feed, subscription.id);
        let snapshots = self.snapshot_after(&[table], who, &mut || feed.go_to_end(id))?;
        let snapshot = snapshots.into_iter().next().ok_or(Error::NoTable)?;
        let number = snapshot.snapshot_info().map_or(0, |info| info.number);
        feed.since(id, number);
        Ok((snapshot, subscription))
    }
}
