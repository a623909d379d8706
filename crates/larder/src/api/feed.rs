//! Feeds: what changes in a table, as it changes.

use super::snapshot::Snapshot;
use super::spec::MatchSpec;
use super::table::tuple;
use super::{select, Table};
use crate::error::Error;
use crate::versions::{FeedEvent, Subscription, Told, Wishes};

use larder_term::object::ObjectView;
use larder_term::Term;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events that a feed may fall behind, unless it says otherwise.
const LIMIT: usize = 10_000;

/// Events that are looked at together.
const BATCH: usize = 256;

/// How long a feed waits for the end of a list before it helps with it.
const PATIENCE: Duration = Duration::from_millis(1);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A tuple is new.
    Insert(Term),
    /// A tuple, the first, was replaced by another with the same key.
    Replace(Term, Term),
    /// A tuple is gone.
    Delete(Term),
    /// A tuple is gone, as its time was over.
    Expire(Term),
    /// A tuple is gone, as there was too much.
    Evict(Term),
    /// All tuples are gone.
    Clear,
    /// So many events were lost, as the feed fell behind by more than its limit. To follow the
    /// table again, subscribe anew with a snapshot.
    Overflow(u64),
    /// The table is gone. Nothing follows.
    Gone,
}

/// The events of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number. It only grows; a commit that changed several tables has the same in each.
    pub seq: u64,
    /// What it changed: one event, or several that took effect together. A commit of over 500 comes
    /// in parts, with one number.
    pub events: Vec<Event>,
}

/// What a feed waits with.
#[derive(Default)]
struct Bell {
    rang: Mutex<bool>,
    signal: Condvar,
}

/// A subscription to a table. It ends when it is dropped.
///
/// ```
/// use larder::api::{Event, Larder};
/// use larder_term::term;
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
    bell: Arc<Bell>,
    ready: VecDeque<Commit>,
    over: bool,
    /// The table is kept.
    _table: Table,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "feed of {:?}", self.subscription.table())
    }
}

impl Feed {
    /// The next commit that changed something; None if there is none yet.
    ///
    /// # Complexity
    /// The events that are looked at, of objects that fit or not, until one does.
    pub fn try_recv(&mut self) -> Option<Commit> {
        while self.ready.is_empty() && self.fill() == Told::Some {}
        self.ready.pop_front()
    }

    /// The next commit; waits for it. None if the table is gone and [`Event::Gone`] was given.
    pub fn recv(&mut self) -> Option<Commit> {
        self.recv_until(None)
    }

    /// As `recv`, but waits no longer than so.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Option<Commit> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Whether [`Event::Gone`] was given: nothing follows.
    pub fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }

    fn recv_until(&mut self, end: Option<Instant>) -> Option<Commit> {
        loop {
            if let Some(commit) = self.ready.pop_front() {
                return Some(commit);
            }
            let told = self.fill();
            let patience = match told {
                Told::Some => continue,
                Told::Over => return None,
                Told::Waits => Some(Instant::now() + PATIENCE),
                Told::Nothing => None,
            };
            let mut rang = self.bell.rang.lock();
            while !*rang {
                let until = [end, patience].into_iter().flatten().min();
                match until {
                    None => self.bell.signal.wait(&mut rang),
                    Some(until) => {
                        if self.bell.signal.wait_until(&mut rang, until).timed_out() {
                            break;
                        }
                    }
                }
            }
            let is_late = !*rang && end.is_some_and(|end| Instant::now() >= end);
            *rang = false;
            if is_late {
                return None;
            }
        }
    }

    /// Fetches the next events.
    fn fill(&mut self) -> Told {
        if self.over {
            return Told::Over;
        }
        let (ready, over) = (&mut self.ready, &mut self.over);
        let row = |object: &ObjectView<'_>| tuple(object);
        select::with_context(|ctx| {
            self.subscription
                .next((BATCH, true), ctx, &mut |seq, event| {
                    let event = match event {
                        FeedEvent::Insert(new) => Event::Insert(row(new)),
                        FeedEvent::Replace(old, new) => Event::Replace(row(old), row(new)),
                        FeedEvent::Delete(old) => Event::Delete(row(old)),
                        FeedEvent::Expire(old) => Event::Expire(row(old)),
                        FeedEvent::Evict(old) => Event::Evict(row(old)),
                        FeedEvent::Clear => Event::Clear,
                        FeedEvent::Overflow(lost) => Event::Overflow(lost),
                        FeedEvent::Gone => {
                            *over = true;
                            Event::Gone
                        }
                    };
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

impl Iterator for Feed {
    type Item = Commit;

    /// As `recv`.
    fn next(&mut self) -> Option<Commit> {
        self.recv()
    }
}

/// What a feed is to have.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// Events that it may fall behind; 10,000 unless said. Older ones are lost.
    pub limit: usize,
    /// A match specification, written as in Erlang: the changes of tuples, old or new, that match.
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
    fn wishes(&self) -> Result<(Wishes, Arc<Bell>), Error> {
        let bell = Arc::new(Bell::default());
        let rings = Arc::clone(&bell);
        let filter = self.filter.as_ref().map(MatchSpec::program).transpose()?;
        let wishes = Wishes {
            limit: self.limit,
            filter,
            waker: Arc::new(move || {
                *rings.rang.lock() = true;
                rings.signal.notify_one();
            }),
        };
        Ok((wishes, bell))
    }
}

impl Table {
    /// A feed of all that changes in the table from here on.
    ///
    /// # Errors
    /// `NoTable`; `TableType` for a table on a structure of the studies, and for a snapshot.
    pub fn subscribe(&self) -> Result<Feed, Error> {
        self.subscribe_with(&FeedOptions::default())
    }

    /// As `subscribe`.
    ///
    /// # Errors
    /// As `subscribe`; `BadSpec` for the filter.
    pub fn subscribe_with(&self, options: &FeedOptions) -> Result<Feed, Error> {
        let (subscription, bell) = self.patiently(|| {
            let (wishes, bell) = options.wishes()?;
            let subscription = self.engine_table().subscribe(self.me(), wishes)?;
            Ok((subscription, bell))
        })?;
        Ok(self.feed(subscription, bell))
    }

    /// A snapshot, and a feed of what changes after it: no change is in both, and none in neither.
    ///
    /// ```
    /// use larder::api::{Event, FeedOptions, Larder};
    /// use larder_term::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().table("stock").create()?;
    /// stock.insert(&term!({apple, 3}))?;
    /// let (before, mut feed) = stock.snapshot_and_subscribe(&FeedOptions::default())?;
    /// stock.insert(&term!({pear, 1}))?;
    /// assert_eq!(before.to_vec()?, [term!({apple, 3})]);
    /// assert_eq!(feed.recv().unwrap().events, [Event::Insert(term!({pear, 1}))]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As `subscribe_with`.
    pub fn snapshot_and_subscribe(&self, options: &FeedOptions) -> Result<(Snapshot, Feed), Error> {
        let ((snapshot, subscription), bell) = self.patiently(|| {
            let (wishes, bell) = options.wishes()?;
            let (larder, table) = (self.larder(), self.engine_table());
            let engine = larder.engine();
            Ok((
                engine.snapshot_and_subscribe(table, self.me(), wishes)?,
                bell,
            ))
        })?;
        let snapshot = Snapshot::of(Table::new(snapshot, &self.larder().0));
        Ok((snapshot, self.feed(subscription, bell)))
    }

    fn feed(&self, subscription: Subscription, bell: Arc<Bell>) -> Feed {
        Feed {
            subscription,
            bell,
            ready: VecDeque::new(),
            over: false,
            _table: self.clone(),
        }
    }
}
