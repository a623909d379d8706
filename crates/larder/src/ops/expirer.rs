//! The expirer: a background thread that removes expired objects, and evicts objects that writers
//! have left (see `evict`).
//!
//! # Steps
//!
//! It is started with the first bounded table. It ends when that is requested and no table is left,
//! and starts again with the next table. Each round:
//!
//! 1. For each bounded table in turn: process chunks of timers that are due, evict some objects,
//!    and drop timers of removed objects if they are the majority. After each, rest as the
//!    throttle says. The more is due, the shorter the rest. Tables that have more to do get further
//!    turns between those of the others: none waits for thousands that have nothing to do.
//! 2. *Sleep* until the next timer of a table, at least `SHORTEST` and at most `LONGEST`. The
//!    thread needs no wake-up: objects that expire meanwhile are absent, and a timer that is added
//!    before the next one is late by at most `LONGEST`.
//! 3. Drop the tables that no longer exist. Without tables, wait for the next one, or end.

use crate::bounds;
use crate::reclaim::throttle::Throttle;
use crate::table::EngineTable;
use crate::threads::spawn;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashSet, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The limits of the time between two rounds.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// The weight of a due timer for the throttle, in bytes of the reaper's backlog.
const WEIGHT: usize = 1 << 10;

/// The number of objects that are evicted in a turn.
const EVICTED: usize = 32;

/// The number of first turns of tables after which those that have more to do get further ones, and
/// how many.
const FIRST_TURNS: usize = 32;
const FURTHER_TURNS: usize = 8;

#[derive(Default)]
struct ExpiringTables {
    tables: Vec<Weak<EngineTable>>,
    started: bool,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread should end when there are no tables.
    ending: bool,
}

static WATCHED: Mutex<ExpiringTables> = Mutex::new(ExpiringTables {
    tables: Vec::new(),
    started: false,
    thread: None,
    ending: false,
});
static ADDED: Condvar = Condvar::new();

/// Adds a bounded table, which the thread processes as long as it lives.
pub(crate) fn watch(table: &Arc<EngineTable>) {
    let mut watched = WATCHED.lock();
    watched.tables.push(Arc::downgrade(table));
    // The programs of the model checker remove expired objects themselves.
    if !watched.started && !cfg!(larder_model) {
        // If no thread can be started, the next table tries again. Until then expired objects only
        // take memory.
        watched.thread = spawn("larder-expirer", main);
        watched.started = watched.thread.is_some();
    }
    drop(watched);
    ADDED.notify_one();
}

/// Ends the thread, unless there are bounded tables. Waits for that, at most until this time.
pub(crate) fn end(until: Instant) {
    loop {
        let mut watched = WATCHED.lock();
        // Nobody has started the thread, or it has ended.
        if !watched.started {
            let thread = watched.thread.take();
            drop(watched);
            // Panics of its work are caught, so the thread doesn't panic.
            thread.into_iter().for_each(|thread| drop(thread.join()));
            return;
        }
        // A table that was created meanwhile keeps the thread.
        let is_needed = watched.tables.iter().any(is_alive);
        watched.ending = !is_needed && Instant::now() < until;
        if !watched.ending {
            return;
        }
        // The thread may be asleep. It looks at `ending` when it wakes up.
        drop(watched);
        ADDED.notify_one();
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_alive(table: &Weak<EngineTable>) -> bool {
    table.upgrade().is_some_and(|table| table.is_alive())
}

fn main() {
    let mut throttle = Throttle::new();
    let mut waiting = WaitingTables::default();
    loop {
        // (3)
        let mut watched = WATCHED.lock();
        watched.tables.retain(is_alive);
        let tables = watched.tables.clone();
        if tables.is_empty() {
            waiting = WaitingTables::default();
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
        // (1) Tables that were added meanwhile join after each round.
        if round(&tables, &mut waiting, &mut throttle) {
            continue;
        }
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
fn next_of(table: &Weak<EngineTable>) -> Option<u64> {
    let table = table.upgrade()?;
    let guard = larder_index::pin();
    table.store(&guard)?.layer()?.next()
}

/// The approximate number of due timers of a table: at most the number of all its timers.
fn backlog(table: &Weak<EngineTable>) -> usize {
    let Some(table) = table.upgrade() else {
        return 0;
    };
    let guard = larder_index::pin();
    let Some(store) = table.store(&guard) else {
        return 0;
    };
    // The timers aren't counted by time. If the first one is due, all count. So they do if most are
    // of removed objects.
    let due = store.layer().filter(|layer| {
        layer.next().is_some_and(|next| next <= bounds::now())
            || layer.has_stale_timers(store.size())
    });
    due.map_or(0, |layer| layer.timers()) * WEIGHT
}

/// Tables that have more to do than a turn, each once.
#[derive(Default)]
struct WaitingTables {
    queue: VecDeque<Weak<EngineTable>>,
    /// Their addresses, which are theirs as long as they are in the queue.
    addresses: HashSet<usize>,
}

impl WaitingTables {
    fn add(&mut self, table: &Weak<EngineTable>) {
        if self.addresses.insert(table.as_ptr().addr()) {
            self.queue.push_back(table.clone());
        }
    }

    fn next(&mut self) -> Option<Weak<EngineTable>> {
        let table = self.queue.pop_front()?;
        self.addresses.remove(&table.as_ptr().addr());
        Some(table)
    }
}

/// Processes a chunk of each table, and further ones of those that have more to do. Returns whether
/// more timers may be due.
fn round(
    tables: &[Weak<EngineTable>],
    waiting: &mut WaitingTables,
    throttle: &mut Throttle,
) -> bool {
    for some in tables.chunks(FIRST_TURNS) {
        // A first turn for some tables. Those that have more to do wait for another one.
        for table in some {
            if turn(table, throttle) {
                waiting.add(table);
            }
        }
        // Further turns for some that wait, in the order in which they came. So a table with much
        // to do delays the first turns of others by a bounded time.
        for _ in 0..FURTHER_TURNS {
            let Some(table) = waiting.next() else {
                break;
            };
            if turn(&table, throttle) {
                waiting.add(&table);
            }
        }
    }
    // Those that still wait get their turns in the next round.
    !waiting.queue.is_empty()
}

/// Processes a chunk of a table. Returns whether it may have more to do.
fn turn(weak: &Weak<EngineTable>, throttle: &mut Throttle) -> bool {
    // A table that was dropped is left out, until the list is cleaned.
    let Some(table) = weak.upgrade() else {
        return false;
    };
    // A panic would end the thread, and expired objects would no longer be removed.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let expired = table.remove_expired();
        let guard = larder_index::pin();
        let evicted = table.evict_left(&guard, EVICTED);
        let dropped = table.drop_stale_timers(&guard);
        evicted == EVICTED || dropped || matches!(expired, Ok((_, true)))
    }));
    drop(table);
    throttle.pause(|| (backlog(weak), false));
    done.unwrap_or(false)
}
