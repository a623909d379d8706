//! The reaper: a background thread that frees what tables leave behind, in small pieces, so that no
//! caller pays for the size of a table.
//!
//! # Steps
//!
//! It is started by the first work, and anew after it was ended. Each round:
//!
//! 1. *Work off* the queue. A store that readers may still be looking at is handed to the epoch
//!    first, and comes back to the queue when they are gone; then it is freed bit by bit. Between
//!    bits the throttle makes the thread rest, and free pages go back to the system (see `trim`).
//! 2. *Sleep*. While something is pending (a release list, a store that waits for its readers,
//!    garbage of the index), for a nap that doubles up to `LONGEST_NAP`; else until woken, or a
//!    second.
//! 3. After a nap, defer the release lists and move the epoch on. So memory comes back although
//!    nobody uses a table any more.
//! 4. *End*, if it is asked to ([`end`]) and nothing is pending. It says that it is asleep, and
//!    looks once more a moment later: what became pending before anybody could know of that is seen
//!    then. What becomes pending later starts it anew (invariant 3).
//!
//! It takes a quarter of a core as long as that is enough (see `throttle`). When more and more is
//! left to it, it works faster; at last helpers come, which go when the worst is over. So a program
//! that fills and drops tables in a loop can't outrun it: to fill a table takes several times as
//! long as to free it.
//!
//! # Invariants
//!
//! 1. The backlog is the sum of the shares of all work that is queued, under way, or waiting for
//!    readers.
//! 2. `busy` counts the work that was taken from the queue and is not done. The reaper is idle if
//!    the queue is empty, `busy` is 0 and nothing is pending.
//! 3. Whoever makes something pending where nothing was wakes the thread, if it is asleep, and
//!    starts it if there is none.

use super::deferred;
use super::throttle::{self, Throttle};
use super::trim::{self, Trimmer};
use crate::raw::Retired;
use crate::store::Store;
use crossbeam_epoch::Guard;
use larder_term::blob::Counts;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Objects freed in one go, apart from the last leaf's; then the clock is looked at.
const BIT: usize = 64;

/// What a store or a closure weighs in the backlog, apart from its bytes. A store doesn't know how
/// much lies outside its index, in binaries: when a hundred small ones wait, it is time to hurry,
/// whatever they hold.
const WEIGHT: usize = 2 << 20;

/// The first pause between two attempts to move the epoch on after work that was handed over, and
/// where there is only what threads leave behind as they go: nobody waits for that.
const NAP: Duration = Duration::from_micros(200);
const NAP_AFTER_NOTHING: Duration = Duration::from_millis(5);

/// The longest pause between two attempts.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// Between the two looks before the end: far longer than a store takes to be seen by other threads.
const LAST_NAP: Duration = Duration::from_millis(1);

/// What the reaper is asked to do.
enum Work {
    /// Free an index that readers may still look at.
    Retired(Retired<Store>, Share),
    /// Free an index that nobody looks at.
    Store(Box<Store>, Share),
    /// Run something.
    Call(Box<dyn FnOnce() + Send>, Share),
    /// Do something bit by bit: called until it answers that it is done.
    Bits(Box<dyn FnMut() -> bool + Send>, Share),
}

/// A part of the backlog; it is off when this is dropped.
struct Share {
    bytes: usize,
    /// What is not freed yet of the bytes of `LEFT`.
    left: usize,
}

impl Share {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.saturating_add(WEIGHT);
        // Ordering: Relaxed twice; figures to go by, which order nothing.
        BACKLOG.fetch_add(bytes, Ordering::Relaxed);
        LEFT.fetch_add(bytes - WEIGHT, Ordering::Relaxed);
        Share {
            bytes,
            left: bytes - WEIGHT,
        }
    }
}

impl Share {
    /// So many bytes are left of it, or fewer.
    fn shrink(&mut self, left: usize) {
        if let Some(less) = self.left.checked_sub(left) {
            self.left = left;
            // Ordering: Relaxed, as in `new`.
            LEFT.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
        // Ordering: Relaxed, as in `new`.
        BACKLOG.fetch_sub(self.bytes, Ordering::Relaxed);
        trim::freed(self.bytes - WEIGHT);
    }
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    started: bool,
    /// The thread that was started last.
    thread: Option<JoinHandle<()>>,
    /// Whether it is to end when there is nothing to do.
    ending: bool,
    helpers: usize,
    busy: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    work: VecDeque::new(),
    started: false,
    thread: None,
    ending: false,
    helpers: 0,
    busy: 0,
});
static WAKE: Condvar = Condvar::new();

/// Whether the thread comes by only when it is woken, or once a second. While it comes by anyway,
/// what threads leave behind doesn't wake it: a thread that leaves something after each operation
/// would pay for that each time, and the other threads of a small machine for the core that the
/// reaper takes.
static ASLEEP: AtomicBool = AtomicBool::new(true);

/// Stores that wait for their readers to go.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Bytes left to free, about.
static BACKLOG: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the backlog that are not freed yet, without what work weighs apart from its bytes. It
/// falls while a store is freed; the backlog, by which threads hurry, when it is done.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Threads in `idle`.
static AWAITED: AtomicUsize = AtomicUsize::new(0);

/// Frees an index once its readers are gone. Small ones are freed by whose turn it is then, as to
/// hand one over takes longer.
pub(crate) fn free(store: Retired<Store>, guard: &Guard) {
    // The store is out of its table, so no reader that pins from here on finds it.
    match deferred::add_store(guard, store) {
        Ok(true) => wake(),
        Ok(false) => {}
        Err(large) => {
            let share = Share::new(large.memory());
            send(Work::Retired(large, share));
        }
    }
}

/// Frees an index that nobody looks at.
pub(crate) fn free_unread(store: Store) {
    let share = Share::new(store.memory());
    send(Work::Store(Box::new(store), share));
}

/// Runs `f` on the reaper's thread, soon.
pub(crate) fn call(f: impl FnOnce() + Send + 'static) {
    send(Work::Call(Box::new(f), Share::new(0)));
}

/// Calls `f` on the reaper's thread until it answers true, with rests. Each call should take some
/// microseconds; the whole frees about so many bytes.
pub(crate) fn bits(bytes: usize, f: impl FnMut() -> bool + Send + 'static) {
    send(Work::Bits(Box::new(f), Share::new(bytes)));
}

/// Bytes left to free, about.
pub(crate) fn backlog() -> usize {
    // Ordering: Relaxed; a figure to go by.
    BACKLOG.load(Ordering::Relaxed)
}

/// Bytes of what was dropped that are not freed yet, about.
pub(crate) fn bytes_waiting() -> usize {
    // Ordering: Relaxed; a figure to go by.
    LEFT.load(Ordering::Relaxed)
}

/// Puts counts on a list, by way of `put`, to be given back when every reader pinned now is gone.
pub(crate) fn release_later(guard: &Guard, put: impl FnOnce(&mut Counts)) {
    if deferred::add(guard, put) {
        wake();
    }
}

/// Waits until there is nothing left to free, at most `timeout`; whether that came about. For tests
/// and orderly ends. The reaper doesn't rest meanwhile.
pub(crate) fn idle(timeout: Duration) -> bool {
    // Ordering: Relaxed; the reaper looks at it after each piece.
    AWAITED.fetch_add(1, Ordering::Relaxed);
    let done = wait_until_idle(timeout);
    // Ordering: Relaxed, as above.
    AWAITED.fetch_sub(1, Ordering::Relaxed);
    done
}

fn wait_until_idle(timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    loop {
        deferred::sweep();
        larder_index::pin().flush();
        // Under one lock, as a piece goes from the queue to `busy`, and a store from `WAITING` to
        // the queue, without a moment in neither (invariant 2).
        let queue = QUEUE.lock();
        if queue.work.is_empty() && queue.busy == 0 && !is_pending() {
            return true;
        }
        drop(queue);
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the thread when there is nothing to do; waits for that until then. Whether there is none
/// now.
pub(crate) fn end(until: Instant) -> bool {
    loop {
        let mut queue = QUEUE.lock();
        if !queue.started && queue.helpers == 0 {
            let thread = queue.thread.take();
            drop(queue);
            // What it was doing is caught: it doesn't panic.
            thread.into_iter().for_each(|thread| drop(thread.join()));
            // What it had kept for itself became pending when it was gone, perhaps.
            let mut queue = QUEUE.lock();
            if !queue.started && queue.work.is_empty() && !is_pending() {
                return true;
            }
            start(&mut queue);
            continue;
        }
        queue.ending = Instant::now() < until;
        if !queue.ending {
            return false;
        }
        drop(queue);
        WAKE.notify_all();
        std::thread::sleep(LAST_NAP);
    }
}

fn send(work: Work) {
    let mut queue = QUEUE.lock();
    queue.work.push_back(work);
    // Whether a thread takes it is known under the lock with which it was queued.
    let alone = !start(&mut queue);
    // Behind by more than a gigabyte: a helper.
    if backlog() > throttle::HIGH && queue.helpers < throttle::helpers() {
        queue.helpers += usize::from(spawn(help).is_some());
    }
    drop(queue);
    WAKE.notify_one();
    if alone {
        // No thread could be started: the caller does the work.
        work_off(&mut Worker::new(), || true);
    }
}

/// A thread's clocks.
struct Worker {
    throttle: Throttle,
    trimmer: Trimmer,
}

impl Worker {
    fn new() -> Self {
        Worker {
            throttle: Throttle::new(),
            trimmer: Trimmer::new(),
        }
    }

    /// After each bit of work.
    fn pause(&mut self) {
        // Ordering: Relaxed; looked at again after the next piece.
        let awaited = || AWAITED.load(Ordering::Relaxed) > 0;
        if self.throttle.pause(|| (backlog(), awaited())) {
            self.trimmer.pass();
        }
    }
}

/// Whether something waits for readers to go.
fn is_pending() -> bool {
    // Ordering: Relaxed; looked at again until it holds.
    deferred::is_pending() || WAITING.load(Ordering::Relaxed) > 0 || larder_index::garbage_waits()
}

/// Makes sure that the thread comes by to see what waits.
pub(crate) fn wake() {
    // Ordering: Relaxed; if this misses that it fell asleep just now, its next round finds the
    // work.
    if ASLEEP.load(Ordering::Relaxed) {
        start(&mut QUEUE.lock());
        WAKE.notify_one();
    }
}

/// Starts the thread if there is none; false if the system refuses.
fn start(queue: &mut Queue) -> bool {
    if !queue.started {
        queue.thread = spawn(main);
        queue.started = queue.thread.is_some();
    }
    queue.started
}

fn spawn(f: fn()) -> Option<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("larder-reaper".to_owned());
    thread.spawn(f).ok()
}

fn take() -> Option<Work> {
    let mut queue = QUEUE.lock();
    // Popped and counted under one lock (invariant 2).
    let work = queue.work.pop_front();
    queue.busy += usize::from(work.is_some());
    work
}

/// Does what there is to do, while `go_on` says so.
fn work_off(worker: &mut Worker, go_on: impl Fn() -> bool) -> bool {
    let mut some = false;
    while go_on() {
        // The lock is not held while the work is done: others go on adding to the queue.
        let Some(work) = take() else { break };
        run(work, worker);
        some = true;
    }
    some
}

/// The thread: see the steps.
fn main() {
    let mut nap = NAP;
    let mut worker = Worker::new();
    // Ordering: Relaxed, as in `wake`.
    ASLEEP.store(false, Ordering::Relaxed);
    loop {
        // (1)
        if work_off(&mut worker, || true) {
            nap = NAP;
        }
        worker.trimmer.pass();
        // (2) Under the queue's lock, so that nothing comes between the look and the sleep.
        let mut queue = QUEUE.lock();
        if !queue.work.is_empty() {
            continue;
        }
        // What becomes pending behind this look wakes the thread (invariant 3), or waits for the
        // next round.
        if !is_pending() {
            // Ordering: Relaxed, both, as in `wake`.
            ASLEEP.store(true, Ordering::Relaxed);
            if queue.ending {
                // (4)
                WAKE.wait_for(&mut queue, LAST_NAP);
                if queue.ending && queue.work.is_empty() && !is_pending() {
                    queue.ending = false;
                    queue.started = false;
                    return;
                }
            } else {
                WAKE.wait_for(&mut queue, Duration::from_secs(1));
            }
            ASLEEP.store(false, Ordering::Relaxed);
            nap = NAP_AFTER_NOTHING;
        } else {
            WAKE.wait_for(&mut queue, nap);
            drop(queue);
            // (3)
            deferred::sweep();
            larder_index::pin().flush();
            nap = (nap * 2).min(LONGEST_NAP);
        }
        worker.throttle.restart();
    }
}

/// A thread that helps as long as there is too much to free.
fn help() {
    work_off(&mut Worker::new(), || backlog() > throttle::CALM);
    QUEUE.lock().helpers -= 1;
}

fn run(work: Work, worker: &mut Worker) {
    // A panic here would end the thread and leak everything after it; nothing shared is left half
    // done by one.
    let outcome = catch_unwind(AssertUnwindSafe(|| match work {
        Work::Retired(store, share) => queue_after_readers(store, share),
        Work::Store(mut store, mut share) => {
            while !store.free_some(BIT) {
                share.shrink(store.memory());
                // What it frees must not heap up before the collector: a flush takes as much off as
                // a bit can put there.
                larder_index::pin().flush();
                worker.pause();
            }
            drop(store);
            drop(share);
        }
        Work::Call(f, share) => {
            f();
            drop(share);
        }
        Work::Bits(mut f, share) => {
            while !f() {
                worker.pause();
            }
            drop(share);
        }
    }));
    drop(outcome);
    // The share went with the work, or stays with a store that waits; also where something
    // panicked (invariant 1).
    QUEUE.lock().busy -= 1;
    worker.pause();
}

/// Hands a store to the epoch: it is queued again when its readers are gone.
fn queue_after_readers(store: Retired<Store>, share: Share) {
    let guard = larder_index::pin();
    // Ordering: Relaxed; the count is looked at by the reaper alone, again and again, and by tests.
    WAITING.fetch_add(1, Ordering::Relaxed);
    // Counted before `busy` falls, and counted until it is in the queue: the reaper is not idle as
    // long as a store waits (invariant 2).
    store.after_readers(&guard, |store| {
        QUEUE.lock().work.push_back(Work::Store(store, share));
        // Ordering: Relaxed, as above.
        WAITING.fetch_sub(1, Ordering::Relaxed);
    });
    // A store's readers are gone soon, mostly: the flush lets the epoch move on, rather than the
    // next nap.
    guard.flush();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::thread::{self, ThreadId};

    /// The backlog and the queue are the whole program's: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    const LONG: Duration = Duration::from_secs(60);

    fn spin(time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    /// Has 100 bits done, each of a tenth of a millisecond; the time it takes and the time that the
    /// bits took by the same clock.
    fn a_hundred_bits() -> (Duration, Duration) {
        let spent = Arc::new(Mutex::new((0, Duration::ZERO)));
        let (notes, begun) = (Arc::clone(&spent), Instant::now());
        bits(0, move || {
            let bit = Instant::now();
            spin(Duration::from_micros(100));
            let mut spent = notes.lock();
            *spent = (spent.0 + 1, spent.1 + bit.elapsed());
            spent.0 == 100
        });
        while spent.lock().0 < 100 {
            thread::sleep(Duration::from_millis(1));
        }
        let worked = spent.lock().1;
        (begun.elapsed(), worked)
    }

    #[test]
    fn it_rests_three_quarters_of_the_time() {
        let _alone = ALONE.lock();
        assert!(idle(LONG));
        let (took, worked) = a_hundred_bits();
        // The last piece's rest may be under way still; sleeping longer than asked for only adds to
        // it.
        assert!(took >= worked * 7 / 2, "{took:?} for {worked:?} of work");
    }

    #[test]
    fn helpers_come_when_too_much_is_left_and_go_afterwards() {
        let _alone = ALONE.lock();
        let too_much = Share::new(throttle::HIGH);
        let threads: Arc<Mutex<HashSet<ThreadId>>> = Arc::default();
        for _ in 0..200 {
            let threads = Arc::clone(&threads);
            call(move || {
                threads.lock().insert(thread::current().id());
                thread::sleep(Duration::from_micros(500));
            });
        }
        assert!(idle(LONG));
        let came = threads.lock().len();
        assert!(
            (2..=1 + throttle::helpers()).contains(&came),
            "{came} threads"
        );
        drop(too_much);
        let until = Instant::now() + LONG;
        while QUEUE.lock().helpers > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(QUEUE.lock().helpers, 0);
    }

    #[test]
    fn it_ends_when_it_is_asked_to_and_begins_anew() {
        let _alone = ALONE.lock();
        for _ in 0..20 {
            assert!(idle(LONG));
            assert!(end(Instant::now() + LONG));
            // Others in this program may start it again at once: what it is asked for is done.
            let (done, seen) = std::sync::mpsc::channel();
            call(move || done.send(()).expect("it is waited for"));
            seen.recv_timeout(LONG).expect("it was started anew");
        }
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        call(move || {
            let _ = waits.recv_timeout(LONG);
        });
        assert!(!end(Instant::now() + Duration::from_millis(20)));
        drop(go_on);
        assert!(idle(LONG));
    }

    #[test]
    fn a_panic_ends_neither_the_thread_nor_the_count() {
        let _alone = ALONE.lock();
        assert!(idle(LONG));
        let before = backlog();
        bits(1000, || panic!("on purpose"));
        assert!(idle(LONG));
        assert_eq!(backlog(), before);
        let (took, _) = a_hundred_bits();
        assert!(took < LONG);
    }
}
