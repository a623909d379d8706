//! The reaper: one background thread that frees what tables leave behind, in small pieces, so that no caller pays for the size of a table.
//!
//! It is started by the first work and never ends. Work that readers may still be looking at waits until the epoch has moved past them;
//! while any waits, the thread moves the epoch on by itself, so that memory comes back although nobody uses a table any more.

use crate::raw::Retired;
use crate::store::Store;
use crossbeam_epoch::Guard;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Objects freed between two looks at whether somebody else wants the processor.
const PIECE: usize = 512;

/// The longest pause between two attempts to move the epoch on.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// What the reaper is asked to do.
enum Work {
    /// Free an index that readers may still look at.
    Retired(Retired<Store>),
    /// Free an index that nobody looks at.
    Store(Box<Store>),
    /// Run something.
    Call(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    started: bool,
    busy: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    work: VecDeque::new(),
    started: false,
    busy: false,
});
static WAKE: Condvar = Condvar::new();

/// Deferred calls that have not run yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Frees an index once its readers are gone.
pub(crate) fn free(store: Retired<Store>) {
    send(Work::Retired(store));
}

/// Runs `f` on the reaper's thread, soon.
pub(crate) fn call(f: impl FnOnce() + Send + 'static) {
    send(Work::Call(Box::new(f)));
}

/// Runs `f` when every reader pinned now is gone.
pub(crate) fn after_readers(guard: &Guard, f: impl FnOnce() + Send + 'static) {
    // Ordering: Relaxed; the count is looked at by the reaper alone, again and again, and by tests.
    let waiting = WAITING.fetch_add(1, Ordering::Relaxed);
    guard.defer(move || {
        f();
        // Ordering: Relaxed, as above.
        WAITING.fetch_sub(1, Ordering::Relaxed);
    });
    // What is deferred lies with this thread until it is flushed; the thread may never come back.
    guard.flush();
    if waiting == 0 {
        wake();
    }
}

/// Waits until there is nothing left to free, at most `timeout`; whether that came about. For tests and orderly ends.
pub(crate) fn idle(timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    loop {
        larder_index::pin().flush();
        let queue = QUEUE.lock();
        // Ordering: Relaxed; looked at again until it holds.
        if queue.work.is_empty() && !queue.busy && WAITING.load(Ordering::Relaxed) == 0 {
            return true;
        }
        drop(queue);
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(work: Work) {
    let mut queue = QUEUE.lock();
    queue.work.push_back(work);
    let alone = !start(&mut queue);
    drop(queue);
    WAKE.notify_one();
    if alone {
        // No thread could be started: the caller does the work.
        while let Some(work) = take() {
            run(work);
        }
    }
}

/// Makes sure that the thread is there to see what waits.
fn wake() {
    start(&mut QUEUE.lock());
    WAKE.notify_one();
}

/// Starts the thread if there is none; false if the system refuses.
fn start(queue: &mut Queue) -> bool {
    if !queue.started {
        let thread = std::thread::Builder::new().name("larder-reaper".to_owned());
        queue.started = thread.spawn(main).is_ok();
    }
    queue.started
}

fn take() -> Option<Work> {
    let mut queue = QUEUE.lock();
    let work = queue.work.pop_front();
    queue.busy = work.is_some();
    work
}

/// The thread.
fn main() {
    let mut nap = Duration::from_micros(200);
    loop {
        if let Some(work) = take() {
            run(work);
            nap = Duration::from_micros(200);
            continue;
        }
        let mut queue = QUEUE.lock();
        if !queue.work.is_empty() {
            continue;
        }
        // Ordering: Relaxed; a miss is made good by the wake-up that follows each first deferral, or by the next round.
        if WAITING.load(Ordering::Relaxed) == 0 {
            WAKE.wait_for(&mut queue, Duration::from_secs(1));
            nap = Duration::from_micros(200);
        } else {
            WAKE.wait_for(&mut queue, nap);
            drop(queue);
            larder_index::pin().flush();
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }
}

fn run(work: Work) {
    // A panic here would end the thread and leak everything after it; nothing shared is left half done by one.
    let outcome = catch_unwind(AssertUnwindSafe(|| match work {
        Work::Retired(store) => {
            let guard = larder_index::pin();
            // Ordering: Relaxed, as in `after_readers`.
            WAITING.fetch_add(1, Ordering::Relaxed);
            store.after_readers(&guard, |store| {
                QUEUE.lock().work.push_back(Work::Store(store));
                // Ordering: Relaxed, as in `after_readers`.
                WAITING.fetch_sub(1, Ordering::Relaxed);
            });
            guard.flush();
        }
        Work::Store(store) => {
            while !store.free_some(PIECE) {
                std::thread::yield_now();
            }
        }
        Work::Call(f) => f(),
    }));
    drop(outcome);
    QUEUE.lock().busy = false;
}
