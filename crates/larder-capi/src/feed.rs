//! Feeds: the changes of a table as they happen.
//!
//! A feed returns changes one by one. It keeps the current change, so that views of its rows are
//! valid until the next one is requested, and the rest of its commit.

use crate::status::{free, guarded, Failure, Status};
use crate::table::{hand_out, larder_table, table_at};
use crate::terms::{at_mut, text_at};
use crate::view::{give, larder_view, needed};
use larder::api::{Event, Feed, FeedOptions};
use larder_term::Term;
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// What happened to a row, or to the table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_event {
    /// The row `after` was inserted.
    Insert = 1,
    /// The row `before` was replaced by the row `after`, which has the same key.
    Replace = 2,
    /// The row `before` was deleted.
    Delete = 3,
    /// The row `before` has expired.
    Expire = 4,
    /// The row `before` was evicted, because the table had reached its limit.
    Evict = 5,
    /// All rows were deleted.
    Clear = 6,
    /// The feed fell behind by more than its limit, and `lost` changes were lost. To follow the
    /// table again, subscribe again, with a snapshot.
    Overflow = 7,
    /// The table was dropped. No change follows.
    Gone = 8,
}

/// A change. It belongs to the feed. It and its views are valid until the next one is requested.
/// Later versions of the library may add fields at the end.
#[repr(C)]
pub struct larder_change {
    /// What happened.
    pub event: larder_event,
    /// Whether the next change belongs to the same commit: both took effect at the same instant. A
    /// commit of more than 500 changes is split into parts. Those of a transaction have the same
    /// number, those of a list that is inserted have not.
    pub more: bool,
    /// The number of the commit. Numbers never decrease. A commit that changed several tables has
    /// the same number in each of them.
    pub seq: u64,
    /// The row before the change, or a view of nothing.
    pub before: larder_view,
    /// The row after the change, or a view of nothing.
    pub after: larder_view,
    /// The number of changes that were lost.
    pub lost: u64,
}

/// A subscription to a table. Only one thread at a time may use it. It doesn't need the table's
/// handle to stay.
pub struct larder_feed {
    feed: Feed,
    seq: u64,
    /// The rest of the commit.
    left: std::vec::IntoIter<Event>,
    /// The rows of which `change` has views.
    rows: [Option<Term>; 2],
    change: larder_change,
}

impl larder_feed {
    fn new(feed: Feed) -> Self {
        larder_feed {
            feed,
            seq: 0,
            left: Vec::new().into_iter(),
            rows: [None, None],
            change: larder_change {
                event: larder_event::Gone,
                more: false,
                seq: 0,
                before: larder_view::NOTHING,
                after: larder_view::NOTHING,
                lost: 0,
            },
        }
    }

    /// The next change. Waits for it during the timeout, or without a limit if that is `None`.
    /// `None` if there was no change.
    fn next(&mut self, timeout: Option<Duration>) -> Option<&larder_change> {
        // The events of one commit are handed out one by one.
        while self.left.len() == 0 {
            let commit = match timeout {
                Some(Duration::ZERO) => self.feed.try_recv(),
                Some(timeout) => self.feed.recv_timeout(timeout),
                None => self.feed.recv(),
            }?;
            self.seq = commit.seq;
            self.left = commit.events.into_iter();
        }
        let event = self.left.next()?;
        self.keep(event);
        Some(&self.change)
    }

    /// Makes an event the current change, and keeps its rows.
    fn keep(&mut self, event: Event) {
        let (event, before, after, lost) = match event {
            Event::Insert(new) => (larder_event::Insert, None, Some(new), 0),
            Event::Replace(old, new) => (larder_event::Replace, Some(old), Some(new), 0),
            Event::Delete(old) => (larder_event::Delete, Some(old), None, 0),
            Event::Expire(old) => (larder_event::Expire, Some(old), None, 0),
            Event::Evict(old) => (larder_event::Evict, Some(old), None, 0),
            Event::Clear => (larder_event::Clear, None, None, 0),
            Event::Overflow(lost) => (larder_event::Overflow, None, None, lost),
            Event::Gone => (larder_event::Gone, None, None, 0),
        };
        // Views of the rows must stay valid until the next call, so the rows are kept. The views
        // are made of the rows that are in place.
        self.rows = [before, after];
        let [before, after] = self.rows.each_ref().map(|row| {
            let row = row.as_ref().map(Term::as_ref);
            row.map_or(larder_view::NOTHING, larder_view::of)
        });
        self.change = larder_change {
            event,
            more: self.left.len() > 0,
            seq: self.seq,
            before,
            after,
            lost,
        };
    }
}

/// Subscribes to the changes of a table from this moment on. Writes a handle of the feed to
/// `*feed`, which must be freed by `larder_feed_free`. O(1). While there is a feed, each write of
/// the table copies its old and its new row. Writers never wait for a feed.
///
/// If `filter` isn't null, it is a match specification, and the feed only has changes of rows whose
/// old or new form matches. `limit` is the number of changes by which the feed may fall behind; 0
/// means 10,000. Beyond that, the oldest changes are lost, which the feed reports. Changes that the
/// filter excludes count, too. If `snapshot` isn't null, a handle of a snapshot of the moment at
/// which the feed begins is written to it. Each change is either in the snapshot or in the feed,
/// and none is in both, with one exception: a row that had expired then, and was not removed yet,
/// may be reported as expired, or as deleted or replaced by a transaction that had seen it, though
/// the snapshot doesn't have it. `LARDER_BAD_SPEC` if the filter doesn't compile.
/// `LARDER_TABLE_TYPE` if the table is a snapshot or belongs to a transaction, or has another
/// structure than the default.
///
/// # Safety
/// As for `larder_table_drop`; `filter` is null or ends with a NUL; `snapshot` and `feed` are null
/// or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_subscribe(
    table: *const larder_table,
    filter: *const c_char,
    limit: usize,
    snapshot: *mut *mut larder_table,
    feed: *mut *mut larder_feed,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let table = unsafe { table_at(table) }?;
        // Check this first. Otherwise the handle could never be freed.
        needed(feed, "feed")?;
        let mut options = FeedOptions::default();
        if !filter.is_null() {
            // SAFETY: by the *text* contract of `filter`.
            options.filter = Some(unsafe { text_at(filter, "filter") }?.to_owned());
        }
        if limit > 0 {
            options.limit = limit;
        }
        let begun = if snapshot.is_null() {
            table.subscribe_with(&options)?
        } else {
            let (before, begun) = table.snapshot_and_subscribe(&options)?;
            // SAFETY: `snapshot` is not null, so by contract it may be written to.
            unsafe { hand_out(before, snapshot) };
            begun
        };
        // SAFETY: by the *out* contract of `feed`.
        unsafe { give(feed, Box::into_raw(Box::new(larder_feed::new(begun)))) };
        Ok(Status::Ok)
    })
}

/// Writes the address of the next change to `*change`. Waits for it for `timeout_ms` milliseconds;
/// without a limit, if that is negative; not at all, if it is 0. `LARDER_NONE`, and null in
/// `*change`, if there was no change. `LARDER_NO_TABLE`, and null in `*change`, after
/// `LARDER_EVENT_GONE`. Changes come in the order of their commits, each once. O(changes that are
/// read until one passes the filter), for at most 10 ms beyond the timeout.
///
/// # Safety
/// `feed` is null, or a feed that was not freed and nobody else uses; `change` is null or may be
/// written to.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_next(
    feed: *mut larder_feed,
    timeout_ms: i64,
    change: *mut *const larder_change,
) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `feed`.
        let feed = unsafe { at_mut(feed, "feed") }?;
        // Check this first. Otherwise the change would be lost.
        needed(change, "change")?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        // Asked before the call: an event that is still queued is delivered after the table is
        // gone.
        let over = feed.feed.is_over() && feed.left.len() == 0;
        let next = feed.next(timeout);
        // SAFETY: by contract, `change` may be written to.
        unsafe { give(change, next.map_or(std::ptr::null(), std::ptr::from_ref)) };
        match next {
            Some(_) => Ok(Status::Ok),
            None if over => Err(Failure::new(
                Status::NoTable,
                "the feed is over: its table was dropped",
            )),
            None => Ok(Status::None),
        }
    })
}

/// Calls `f` with `data` and each change, on this thread, as changes happen. Waits without a limit
/// for the next one. Returns `LARDER_OK` when `f` returns false, or when the table was dropped.
/// `LARDER_NO_TABLE` if the feed had already ended. This function is for a thread of the program
/// that follows a table. `f` may use all tables. It must not use or free this feed, call `longjmp`
/// to leave, or throw an exception. No lock is held while it runs.
///
/// # Safety
/// As for `larder_feed_next`; `f` is null or a function with these parameters that follows these
/// rules and may be called with `data`.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_each(
    feed: *mut larder_feed,
    f: Option<unsafe extern "C" fn(data: *mut c_void, change: *const larder_change) -> bool>,
    data: *mut c_void,
) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `feed`.
        let feed = unsafe { at_mut(feed, "feed") }?;
        let f = f.ok_or_else(|| Failure::null("f"))?;
        let mut is_first = true;
        // The feed belongs to this thread, so it may wait without a limit.
        while let Some(change) = feed.next(None) {
            is_first = false;
            // SAFETY: by contract, `f` may be called with `data`. `change` is valid until the
            // feed's next change, which `f` by contract doesn't request.
            if !unsafe { f(data, change) } {
                break;
            }
        }
        match is_first {
            false => Ok(Status::Ok),
            true => Err(Failure::new(
                Status::NoTable,
                "the feed is over: its table was dropped",
            )),
        }
    })
}

/// Ends a subscription, and frees its feed. Does nothing if `feed` is null. O(changes that were not
/// read).
///
/// # Safety
/// `feed` is null, or came from `larder_subscribe` and was not freed; nobody uses it or a change of
/// it any more.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_free(feed: *mut larder_feed) {
    // SAFETY: by contract, `feed` is null, or a feed that was not freed and nobody uses any more.
    // `larder_subscribe` made it by `Box::into_raw`.
    unsafe { free(feed) };
}
