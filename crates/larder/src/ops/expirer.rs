//! The expirer: a background thread that removes objects whose time is over, and those of which
//! writers have left too many (see `evict`).
//!
//! # Steps
//!
//! It is started with the first bounded table. It ends when it is asked to and no table is left,
//! and is started anew with the next. Each round:
//!
//! 1. For each bounded table: chunks of timers that are due are dealt with, and some objects are
//!    evicted, in turn. After each the throttle makes the thread rest; the more is due, the less.
//! 2. *Sleep* until the next timer of a table, but between `SHORTEST` and `LONGEST`. Nobody has to
//!    wake it: what expires meanwhile is absent, and a timer that is added before the one that it
//!    waits for is late by `LONGEST` at most.
//! 3. Tables that are gone are forgotten. Without tables it waits for the next, or ends.

use crate::bounds;
use crate::reclaim::throttle::Throttle;
use crate::table::Table;
use parking_lot::{Condvar, Mutex};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two rounds.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// What a timer that is due weighs for the throttle, in bytes of the reaper's backlog.
const WEIGHT: usize = 1 << 10;

/// Objects that are evicted in a turn.
const EVICTED: usize = 32;

#[derive(Default)]
struct Watched {
    tables: Vec<Weak<Table>>,
    started: bool,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread is to end when there are no tables.
    ending: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    tables: Vec::new(),
    started: false,
    thread: None,
    ending: false,
});
static ADDED: Condvar = Condvar::new();

/// Sees to a bounded table from here on, as long as it lives.
pub(crate) fn watch(table: &Arc<Table>) {
    let mut watched = WATCHED.lock();
    watched.tables.push(Arc::downgrade(table));
    // A model checker's programs remove what is expired themselves.
    if !watched.started && !cfg!(larder_model) {
        let thread = std::thread::Builder::new().name("larder-expirer".to_owned());
        // If the system has no thread for it, the next table tries again. Meanwhile what is expired
        // takes memory, and nothing worse.
        watched.thread = thread.spawn(main).ok();
        watched.started = watched.thread.is_some();
    }
    drop(watched);
    ADDED.notify_one();
}

/// Ends the thread, unless there are bounded tables; waits for that until then.
pub(crate) fn end(until: Instant) {
    loop {
        let mut watched = WATCHED.lock();
        if !watched.started {
            let thread = watched.thread.take();
            drop(watched);
            // What it was doing is caught: it doesn't panic.
            thread.into_iter().for_each(|thread| drop(thread.join()));
            return;
        }
        let is_needed = watched.tables.iter().any(is_alive);
        watched.ending = !is_needed && Instant::now() < until;
        if !watched.ending {
            return;
        }
        drop(watched);
        ADDED.notify_one();
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_alive(table: &Weak<Table>) -> bool {
    table.upgrade().is_some_and(|table| table.is_alive())
}

fn main() {
    let mut throttle = Throttle::new();
    loop {
        // (3)
        let mut watched = WATCHED.lock();
        watched.tables.retain(is_alive);
        let tables = watched.tables.clone();
        if tables.is_empty() {
            // Under the lock: the next table finds it started, or not.
            if watched.ending {
                watched.ending = false;
                watched.started = false;
                return;
            }
            ADDED.wait(&mut watched);
            throttle.restart();
            continue;
        }
        drop(watched);
        // (1)
        while round(&tables, &mut throttle) {}
        // (2)
        let now = bounds::now();
        let next = tables.iter().filter_map(next_of).min();
        let sleep = next.map_or(LONGEST, |next| {
            Duration::from_millis(next.saturating_sub(now)).clamp(SHORTEST, LONGEST)
        });
        std::thread::sleep(sleep);
        throttle.restart();
    }
}

/// The time of a table's next timer.
fn next_of(table: &Weak<Table>) -> Option<u64> {
    let table = table.upgrade()?;
    let guard = larder_index::pin();
    table.store(&guard)?.layer()?.next()
}

/// How many timers of a table are due, about: at most all it has.
fn backlog(table: &Weak<Table>) -> usize {
    let Some(table) = table.upgrade() else {
        return 0;
    };
    let guard = larder_index::pin();
    let layer = table.store(&guard).and_then(|store| store.layer());
    let due = layer.filter(|layer| layer.next().is_some_and(|next| next <= bounds::now()));
    due.map_or(0, |layer| layer.timers()) * WEIGHT
}

/// A chunk of each table; whether more may be due.
fn round(tables: &[Weak<Table>], throttle: &mut Throttle) -> bool {
    let mut more = false;
    for weak in tables {
        let Some(table) = weak.upgrade() else {
            continue;
        };
        // A panic here would end the thread, and nothing would be removed any more.
        let done = catch_unwind(AssertUnwindSafe(|| {
            let expired = table.remove_expired();
            let evicted = table.evict_surplus(&larder_index::pin(), EVICTED);
            evicted == EVICTED || matches!(expired, Ok((_, true)))
        }));
        more |= done.unwrap_or(false);
        drop(table);
        throttle.pause(|| (backlog(weak), false));
    }
    more
}
