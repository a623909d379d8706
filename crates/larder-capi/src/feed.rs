//! Feeds: what changes in a table, as it changes.
//!
//! A feed gives its changes one by one: it keeps the one that C looks at, so that views of its rows
//! are valid until the next is asked for, and the rest of the commit.

use crate::status::{guarded, guarded_or, Failure, Status};
use crate::table::larder_table;
use crate::terms::{at, at_mut, text_at};
use crate::view::{give, larder_view};
use larder::api::{Event, Feed, FeedOptions, Table};
use larder_term::Term;
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// What happened to a row, or to a table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_event {
    /// A row is new: `after`.
    Insert = 1,
    /// A row, `before`, was replaced by another with its key, `after`.
    Replace = 2,
    /// A row is gone: `before`.
    Delete = 3,
    /// A row is gone as its time was over: `before`.
    Expire = 4,
    /// A row is gone as there was too much: `before`.
    Evict = 5,
    /// All rows are gone.
    Clear = 6,
    /// The feed fell behind by more than its limit, and `lost` changes are lost. To follow the
    /// table again, subscribe anew, with a snapshot.
    Overflow = 7,
    /// The table was dropped. Nothing follows.
    Gone = 8,
}

/// A change, as a feed gives it. It is the feed's, and valid until the next one is asked for, with
/// its views. Later versions of the library may add fields at the end.
#[repr(C)]
pub struct larder_change {
    /// What happened.
    pub event: larder_event,
    /// Whether the next change is of the same commit: the two took effect together. A commit of
    /// over 500 changes comes in parts, with one number.
    pub more: bool,
    /// The number of the commit. It only grows; a commit that changed several tables has the same
    /// in each.
    pub seq: u64,
    /// The row that was there, or nothing.
    pub before: larder_view,
    /// The row that is there, or nothing.
    pub after: larder_view,
    /// How many changes are lost.
    pub lost: u64,
}

/// A subscription to a table. For one thread at a time; it needs no handle of the table to stay.
pub struct larder_feed {
    feed: Feed,
    seq: u64,
    /// What is left of a commit.
    left: std::vec::IntoIter<Event>,
    /// What `change` has views of.
    _rows: [Option<Term>; 2],
    change: larder_change,
}

impl larder_feed {
    fn new(feed: Feed) -> Self {
        larder_feed {
            feed,
            seq: 0,
            left: Vec::new().into_iter(),
            _rows: [None, None],
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

    /// The next change; waits for it so long, for ever if None. None if none has come.
    fn next(&mut self, timeout: Option<Duration>) -> Option<&larder_change> {
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
        // A term's bytes are on the heap: they stay where they are when it moves.
        let view = |row: &Option<Term>| {
            let row = row.as_ref().map(Term::as_ref);
            row.map_or(larder_view::NOTHING, larder_view::of)
        };
        self.change = larder_change {
            event,
            more: self.left.len() > 0,
            seq: self.seq,
            before: view(&before),
            after: view(&after),
            lost,
        };
        self._rows = [before, after];
    }
}

/// Subscribes to all that changes in a table from here on; a handle of the feed in `*feed`, to be
/// given up with `larder_feed_free`.
///
/// `filter` is null, or a match specification: the changes of rows, old or new, that match.
/// `limit`: so many changes the feed may fall behind, 0 for 10,000; older ones are lost, which it
/// says. `snapshot`, unless it is null, gets a handle of a snapshot of the moment at which the feed
/// begins: no change is in both, and none in neither. `LARDER_BAD_SPEC`; `LARDER_TABLE_TYPE`: a
/// snapshot, or a table on a structure other than the usual.
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
        // SAFETY: as the caller says.
        let table = unsafe { at(table, "table") }?;
        // Before anything is begun: a handle without a place could never be given up.
        if feed.is_null() {
            return Err(Failure::null("feed"));
        }
        let mut options = FeedOptions::default();
        if !filter.is_null() {
            // SAFETY: as the caller says.
            options.filter = Some(unsafe { text_at(filter, "filter") }?.to_owned());
        }
        if limit > 0 {
            options.limit = limit;
        }
        let begun = if snapshot.is_null() {
            table.0.subscribe_with(&options)?
        } else {
            let (before, begun) = table.0.snapshot_and_subscribe(&options)?;
            let handle = larder_table(Table::clone(&before), Some(before));
            // SAFETY: as the caller says.
            unsafe { give(snapshot, Box::into_raw(Box::new(handle))) };
            begun
        };
        // SAFETY: as the caller says.
        unsafe { give(feed, Box::into_raw(Box::new(larder_feed::new(begun)))) };
        Ok(Status::Ok)
    })
}

/// Puts the next change into `*change`; waits for it so many milliseconds: with 0 not at all, with
/// a negative number as long as it takes. `LARDER_NONE`, and null in `*change`, if none has come;
/// `LARDER_NO_TABLE` after `LARDER_EVENT_GONE`.
///
/// # Safety
/// `feed` is null, or a feed that was not given up and nobody else uses; `change` is null or may be
/// written to.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_next(
    feed: *mut larder_feed,
    timeout_ms: i64,
    change: *mut *const larder_change,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (feed, change) = unsafe { (at_mut(feed, "feed")?, at_mut(change, "change")?) };
        *change = std::ptr::null();
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let over = feed.feed.is_over() && feed.left.len() == 0;
        match feed.next(timeout) {
            Some(next) => {
                *change = next;
                Ok(Status::Ok)
            }
            None if over => Err(Failure::new(
                Status::NoTable,
                "the feed is over: its table was dropped",
            )),
            None => Ok(Status::None),
        }
    })
}

/// Calls `f` with `data` and each change, on this thread, as it comes, until `f` answers false or
/// the table is dropped: `LARDER_OK`, or `LARDER_NO_TABLE` if the feed was over before. For a
/// thread of the program's own that follows a table. `f` may do everything with every table; it
/// must not use or give up this feed, leave by `longjmp`, or throw.
///
/// # Safety
/// As for `larder_feed_next`; `f` is null or a function that takes these, and keeps the rules.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_each(
    feed: *mut larder_feed,
    f: Option<unsafe extern "C" fn(data: *mut c_void, change: *const larder_change) -> bool>,
    data: *mut c_void,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let feed = unsafe { at_mut(feed, "feed") }?;
        let f = f.ok_or_else(|| Failure::null("f"))?;
        let mut is_first = true;
        while let Some(change) = feed.next(None) {
            is_first = false;
            // SAFETY: as the caller says.
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

/// Ends a subscription. Null is nothing to end.
///
/// # Safety
/// `feed` is null, or a feed that was not given up; no change of it is used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_feed_free(feed: *mut larder_feed) {
    guarded_or((), || {
        if !feed.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(feed) });
        }
        Ok(())
    });
}
