//! Feeds: the changes of a table, as events in the order of commits.

use super::table::tuple;
use super::{rows, Table};
use crate::error::Error;
use crate::programs::compile;
use crate::versions::{FeedEvent, FeedRead, Subscription, SubscriptionOptions};
use larder_term::object::ObjectView;
use larder_term::Term;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default limit of events that a feed may fall behind.
const LIMIT: usize = 10_000;

/// The number of events that are read and filtered in one step.
const BATCH: usize = 256;

/// How long a feed waits for a list insert that isn't complete before it helps with it.
const PATIENCE: Duration = Duration::from_millis(1);

/// How long a reader that doesn't wait, or whose time is over, reads events that the filter
/// excludes. Others may write them as fast as they are read.
const FILTERING: Duration = Duration::from_millis(10);

/// A change of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A tuple was inserted under a new key.
    Insert(Term),
    /// The first tuple was replaced by the second, which has the same key.
    Replace(Term, Term),
    /// A tuple was deleted.
    Delete(Term),
    /// A tuple expired.
    Expire(Term),
    /// A tuple was evicted.
    Evict(Term),
    /// All tuples were deleted.
    Clear,
    /// This number of events was lost, since the feed fell behind by more than its limit. To follow
    /// the table again, subscribe again with a snapshot.
    Overflow(u64),
    /// The table was dropped. No further event follows.
    Gone,
}

/// The events of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The number of the commit. Numbers increase. A commit that changes several tables has the
    /// same number in the feed of each.
    pub seq: u64,
    /// The events: one, or several that took effect together. A commit with more than 500 events is
    /// delivered in parts. The parts of a transaction have the same number. Those of an inserted
    /// list have different numbers.
    pub events: Vec<Event>,
}

/// Wakes the reader of a feed when there are events for it.
#[derive(Default)]
pub(super) struct FeedSignal {
    /// Whether there was a signal since the reader has last looked.
    is_set: Mutex<bool>,
    condvar: Condvar,
}

impl FeedSignal {
    /// Called by the engine, on the thread of a writer.
    fn set(&self) {
        *self.is_set.lock() = true;
        self.condvar.notify_one();
    }
}

/// A subscription to a table. It ends when this value is dropped.
///
/// It doesn't keep the table. If the last handle of the table's [`Larder`](super::Larder) and of
/// its tables is dropped, the feed ends with [`Event::Gone`].
///
/// ```
/// use larder::api::{Event, Larder};
/// use larder::term;
///
/// # fn main() -> Result<(), larder::Error> {
/// let stock = Larder::new().table("stock").create()?;
/// stock.insert(&term!({apple, 3}))?;
/// let mut feed = stock.subscribe()?;
/// stock.add(&term!(apple), 2, 4)?;
/// stock.delete(&term!(apple))?;
/// let events: Vec<_> = std::iter::from_fn(|| feed.try_recv()).flat_map(|c| c.events).collect();
/// assert_eq!(
///     events,
///     [
///         Event::Replace(term!({apple, 3}), term!({apple, 7})),
///         Event::Delete(term!({apple, 7})),
///     ]
/// );
/// # Ok(()) }
/// ```
pub struct Feed {
    subscription: Subscription,
    signal: Arc<FeedSignal>,
    ready: VecDeque<Commit>,
    over: bool,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "feed of {:?}", self.subscription.table())
    }
}

impl Feed {
    /// A feed of this subscription. It has no handle of its table: that would keep the table alive,
    /// and a reader would never get [`Event::Gone`].
    pub(super) fn new(subscription: Subscription, signal: Arc<FeedSignal>) -> Self {
        Feed {
            subscription,
            signal,
            ready: VecDeque::new(),
            over: false,
        }
    }

    /// Returns the next commit, or `None` if there is none yet.
    ///
    /// # Complexity
    /// Linear in the number of events that are read until one passes the filter. After 10 ms
    /// without one, the next call continues.
    pub fn try_recv(&mut self) -> Option<Commit> {
        let mut end = None;
        while self.ready.is_empty() && self.fill() == FeedRead::Some && self.ready.is_empty() {
            let now = Instant::now();
            if now >= *end.get_or_insert(now + FILTERING) {
                break;
            }
        }
        self.ready.pop_front()
    }

    /// Waits for the next commit. Returns `None` if the table was dropped and [`Event::Gone`] has
    /// been delivered.
    pub fn recv(&mut self) -> Option<Commit> {
        self.recv_until(None)
    }

    /// Like `recv`, but returns `None` after this time. It may take 10 ms more, if others write
    /// what the filter excludes.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Option<Commit> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Whether [`Event::Gone`] has been delivered, so that no further event follows.
    pub fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }

    fn recv_until(&mut self, end: Option<Instant>) -> Option<Commit> {
        loop {
            if let Some(commit) = self.ready.pop_front() {
                return Some(commit);
            }
            // Fetch more. If there is nothing, the engine sets the signal when there is. If a list
            // is being inserted, `fill` has helped it, and is called again after `PATIENCE` at the
            // latest.
            let helps_again = match self.fill() {
                FeedRead::Some if self.ready.is_empty() && is_over(end) => return None,
                FeedRead::Some => continue,
                FeedRead::Over => return None,
                FeedRead::Waits => Some(Instant::now() + PATIENCE),
                FeedRead::Nothing => None,
            };
            // The signal may have been set between `fill` and this lock. The flag records that.
            let FeedSignal { is_set, condvar } = &*self.signal;
            let mut is_set = is_set.lock();
            while !*is_set {
                let until = [end, helps_again].into_iter().flatten().min();
                match until {
                    None => condvar.wait(&mut is_set),
                    Some(until) => {
                        if condvar.wait_until(&mut is_set, until).timed_out() {
                            break;
                        }
                    }
                }
            }
            // A signal has precedence over the end of the time.
            let is_late = !*is_set && end.is_some_and(|end| Instant::now() >= end);
            *is_set = false;
            if is_late {
                return None;
            }
        }
    }

    /// Fetches the next events.
    fn fill(&mut self) -> FeedRead {
        // After `Gone` there are no events.
        if self.over {
            return FeedRead::Over;
        }
        let (ready, over) = (&mut self.ready, &mut self.over);
        let row = |object: &ObjectView<'_>| tuple(object);
        rows::with_context(|context| {
            self.subscription
                .next(BATCH, true, context, &mut |seq, event| {
                    let event = match event {
                        FeedEvent::Insert(new) => Event::Insert(row(new)),
                        FeedEvent::Replace(old, new) => Event::Replace(row(old), row(new)),
                        FeedEvent::Delete(old) => Event::Delete(row(old)),
                        FeedEvent::Expire(old) => Event::Expire(row(old)),
                        FeedEvent::Evict(old) => Event::Evict(row(old)),
                        FeedEvent::Clear => Event::Clear,
                        FeedEvent::Overflow(lost) => Event::Overflow(lost),
                        FeedEvent::Gone => {
                            // The table is dropped. Events in front of this one are still
                            // delivered.
                            *over = true;
                            Event::Gone
                        }
                    };
                    // Events with the same number belong to one commit.
                    match ready.back_mut() {
                        Some(commit) if commit.seq == seq => commit.events.push(event),
                        _ => ready.push_back(Commit {
                            seq,
                            events: vec![event],
                        }),
                    }
                })
        })
    }
}

/// Whether a reader's time is over, and so is the additional time for events that are excluded.
fn is_over(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now().saturating_duration_since(end) >= FILTERING)
}

impl Iterator for Feed {
    type Item = Commit;

    /// See [`Feed::recv`].
    fn next(&mut self) -> Option<Commit> {
        self.recv()
    }
}

/// The options of a feed.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// How many events the feed may fall behind; 10,000 by default. Beyond that, older events are
    /// lost.
    pub limit: usize,
    /// A match specification, written as in Erlang. The feed gets the changes whose old or new
    /// tuple matches. Without the feature `matchspec` a filter is refused.
    pub filter: Option<String>,
}

impl Default for FeedOptions {
    fn default() -> Self {
        FeedOptions {
            limit: LIMIT,
            filter: None,
        }
    }
}

impl FeedOptions {
    /// The engine's options, and the signal that its waker sets.
    pub(super) fn compiled(&self) -> Result<(SubscriptionOptions, Arc<FeedSignal>), Error> {
        // The engine keeps one count of the signal, and the feed the other.
        let signal = Arc::new(FeedSignal::default());
        let waker = Arc::clone(&signal);
        let filter = self.filter.as_deref().map(compile).transpose()?;
        let options = SubscriptionOptions {
            limit: self.limit,
            filter,
            waker: Arc::new(move || waker.set()),
        };
        Ok((options, signal))
    }
}

impl Table {
    /// Subscribes to all changes of the table from now on.
    ///
    /// # Errors
    /// `NoTable`; `TableType` for a table on a structure of the studies, for a snapshot, and in a
    /// transaction.
    ///
    /// # Complexity
    /// O(1). While there is a subscription, each write copies its old and its new tuple.
    ///
    /// # Consistency
    /// The feed gets each change that begins after this call has returned, in the order in which
    /// the changes take effect. No reader sees a change before its event is in the feed, except
    /// that a scan of the table may see a part of a commit earlier.
    pub fn subscribe(&self) -> Result<Feed, Error> {
        self.subscribe_with(&FeedOptions::default())
    }

    /// Like `subscribe`, with options.
    ///
    /// # Errors
    /// Those of `subscribe`; `BadSpec` for the filter.
    pub fn subscribe_with(&self, options: &FeedOptions) -> Result<Feed, Error> {
        let (subscription, signal) = self.patiently(|| {
            let (options, signal) = options.compiled()?;
            let subscription = self.engine_table().subscribe(self.me(), options)?;
            Ok((subscription, signal))
        })?;
        Ok(Feed::new(subscription, signal))
    }
}
