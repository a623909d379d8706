//! The reaper: a background thread that frees the memory of dropped tables, in small pieces, so
//! that no caller pays for the size of a table.
//!
//! # Steps
//!
//! The first work starts the thread, and starts it again after it has ended. Each round:
//!
//! 1. *Work off* the queue. A store that may still have readers is first passed to the epoch, and
//!    is queued again when they have finished. Then it is freed bit by bit. Between bits the thread
//!    rests as the throttle says, does what was queued as urgent meanwhile, and returns free pages
//!    to the system (see `trim`). Others wait for what is urgent, so it comes first.
//! 2. *Sleep*. While something is pending (a release list, a store that waits for its readers,
//!    garbage of the index), sleep for a time that doubles up to `LONGEST_NAP`. Otherwise sleep
//!    until woken, or for a second.
//! 3. After such a nap, defer the release lists and advance the epoch. So memory is freed even if
//!    no thread uses a table any more.
//! 4. *End*, if that is requested ([`end`]) and nothing is pending. The thread first sets `ASLEEP`,
//!    and checks once more a moment later. It then sees what became pending before other threads
//!    could see `ASLEEP`. Anything that becomes pending later starts the thread again (RC9).
//!
//! The reaper takes a quarter of a core as long as that suffices (see `throttle`). If its backlog
//! grows, it works faster. In the end helpers are started, which end when the backlog is small
//! again. So a program that fills and drops tables in a loop can't outrun it, because filling a
//! table takes several times as long as freeing it.
//!
//! # Invariants
//!
//! * **RC7** The backlog is the sum of the shares of all work that is queued, running, or waiting
//!   for readers.
//! * **RC8** `busy` is the number of pieces of work that were taken from the queue and are not
//!   done. The reaper is idle if the queue is empty, `busy` is 0 and nothing is pending.
//! * **RC9** A thread that makes something pending when nothing was pending wakes the reaper if it
//!   is asleep, and starts it if it doesn't run.

use super::deferred;
use super::throttle::{self, Throttle};
use super::trim::{self, Trimmer};
use super::Reaped;
use crate::raw::Retired;
use crate::threads::spawn;
use crossbeam_epoch::Guard;
use larder_term::blob::Counts;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of objects that are freed between two readings of the clock, apart from those of the
/// last leaf.
const BIT: usize = 64;

/// What a store or a closure adds to the backlog, besides its bytes. A store doesn't know how many
/// bytes of binaries are outside its index. So when a hundred small ones are waiting, it is time to
/// hurry, whatever they hold.
const WEIGHT: usize = 2 << 20;

/// The first nap between two attempts to advance the epoch: after work from the queue, and when
/// only the garbage of other threads is pending, for which nobody waits.
const NAP: Duration = Duration::from_micros(200);
const NAP_AFTER_NOTHING: Duration = Duration::from_millis(5);

/// The longest nap between two attempts.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// The time between the two checks before the end. It is far longer than it takes until other
/// threads see a store.
const LAST_NAP: Duration = Duration::from_millis(1);

/// The work of the reaper.
enum ReaperWork {
    /// Free a store that may have readers.
    Retired(Retired<dyn Reaped>, Share),
    /// Free a store without readers.
    Unread(Box<dyn Reaped>, Share),
    Bits(ReaperBits),
}

/// A closure that is called repeatedly until it returns `true`.
type ReaperBits = (Box<dyn FnMut() -> bool + Send>, Share);

/// A part of the backlog, until it is dropped.
struct Share {
    bytes: usize,
    /// The part of `LEFT` that is not freed yet.
    left: usize,
}

impl Share {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.saturating_add(WEIGHT);
        // Ordering: Relaxed twice; estimates, which order nothing.
        BACKLOG.fetch_add(bytes, Ordering::Relaxed);
        LEFT.fetch_add(bytes - WEIGHT, Ordering::Relaxed);
        Share {
            bytes,
            left: bytes - WEIGHT,
        }
    }
}

impl Share {
    /// Records that at most this many bytes are left.
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
struct WorkQueue {
    urgent: VecDeque<ReaperBits>,
    work: VecDeque<ReaperWork>,
    started: bool,
    /// The thread that was started last.
    thread: Option<JoinHandle<()>>,
    /// Whether the thread should end when there is nothing to do.
    ending: bool,
    helpers: usize,
    busy: usize,
}

impl WorkQueue {
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.work.is_empty()
    }
}

static QUEUE: Mutex<WorkQueue> = Mutex::new(WorkQueue {
    urgent: VecDeque::new(),
    work: VecDeque::new(),
    started: false,
    thread: None,
    ending: false,
    helpers: 0,
    busy: 0,
});
static WAKE: Condvar = Condvar::new();

/// Whether the thread only comes by when it is woken, or once a second. While it comes by anyway,
/// garbage of other threads doesn't wake it. Otherwise a thread that leaves garbage after each
/// operation would pay for that each time, and on a small machine other threads would lose the core
/// that the reaper takes.
static ASLEEP: AtomicBool = AtomicBool::new(true);

/// The number of stores that wait for their readers.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The approximate number of bytes left to free.
static BACKLOG: AtomicUsize = AtomicUsize::new(0);

/// The bytes of the backlog that are not freed yet, without the weights of the pieces of work. This
/// number falls while a store is freed. The backlog, which determines the speed, falls when the
/// store is done.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The number of threads in `idle`.
static AWAITED: AtomicUsize = AtomicUsize::new(0);

/// Frees a store when its readers have finished. A small one is freed by a thread that drops such
/// stores (`deferred`), because passing it to the reaper would take longer.
pub(crate) fn free(store: Retired<impl Reaped + 'static>, guard: &Guard) {
    let store = store.upcast(|store| store as NonNull<dyn Reaped>);
    // The store was removed from its table, so a reader that pins from here on doesn't find it.
    match deferred::add_store(guard, store) {
        Ok(true) => wake(),
        Ok(false) => {}
        Err(large) => {
            let share = Share::new(large.memory());
            send(ReaperWork::Retired(large, share));
        }
    }
}

/// Drops a store, if there is one, when its readers have finished. Another one has its objects and
/// its place. If it were left to the epoch alone, it would stay in a bag of the thread until the
/// thread has deferred some sixty other calls. With it would stay the versions or the index that
/// only it refers to, and the objects, should the table be dropped meanwhile.
pub(crate) fn drop_replaced(store: Option<Retired<impl Reaped + 'static>>, guard: &Guard) {
    if let Some(store) = store {
        let store = store.upcast(|store| store as NonNull<dyn Reaped>);
        if deferred::add_replaced(guard, store) {
            wake();
        }
    }
}

/// Frees a store that has no readers.
pub(crate) fn free_unread(store: impl Reaped + 'static) {
    let share = Share::new(store.memory());
    send(ReaperWork::Unread(Box::new(store), share));
}

/// Like `bits`, but before all that is left to free, also in the middle of a store.
pub(crate) fn urgent_bits(f: impl FnMut() -> bool + Send + 'static) {
    let bits = (Box::new(f) as _, Share::new(0));
    queue(|queue| queue.urgent.push_back(bits));
}

/// Calls `f` on the reaper's thread repeatedly, with rests, until it returns `true`. Each call
/// should take some microseconds. All of them together free about this many bytes.
pub(crate) fn bits(bytes: usize, f: impl FnMut() -> bool + Send + 'static) {
    send(ReaperWork::Bits((Box::new(f), Share::new(bytes))));
}

/// The approximate number of bytes left to free.
pub(crate) fn backlog() -> usize {
    // Ordering: Relaxed; an estimate.
    BACKLOG.load(Ordering::Relaxed)
}

/// The approximate number of bytes of dropped tables that are not freed yet.
pub(crate) fn bytes_waiting() -> usize {
    // Ordering: Relaxed; a figure to go by.
    LEFT.load(Ordering::Relaxed)
}

/// Calls `put` with a list, to add counts that are released when every reader that is pinned now
/// has unpinned.
pub(crate) fn release_later(guard: &Guard, put: impl FnOnce(&mut Counts)) {
    if deferred::add(guard, put) {
        wake();
    }
}

/// Waits until there is nothing left to free, at most for `timeout`. Returns whether that was
/// reached. For tests and orderly shutdowns. The reaper doesn't rest meanwhile.
pub(crate) fn idle(timeout: Duration) -> bool {
    // Ordering: Relaxed; the reaper reads it after each piece.
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
        // Check under one lock. A piece of work moves from the queue to `busy`, and a store from
        // `WAITING` to the queue, without being in neither for a moment (RC8).
        let queue = QUEUE.lock();
        if queue.is_empty() && queue.busy == 0 && !is_pending() {
            return true;
        }
        drop(queue);
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the thread when there is nothing to do, and waits for that, at most until this time.
/// Returns whether the thread has ended.
pub(crate) fn end(until: Instant) -> bool {
    loop {
        let mut queue = QUEUE.lock();
        // The thread, and all helpers, have ended.
        if !queue.started && queue.helpers == 0 {
            let thread = queue.thread.take();
            drop(queue);
            // Panics of its work are caught, so the thread doesn't panic.
            thread.into_iter().for_each(|thread| drop(thread.join()));
            // Garbage that the thread had kept may have become pending when it ended.
            let mut queue = QUEUE.lock();
            if !queue.started && queue.is_empty() && !is_pending() {
                return true;
            }
            // There is work again. The thread ends another time.
            start(&mut queue);
            continue;
        }
        // After the deadline, the thread goes on as usual.
        queue.ending = Instant::now() < until;
        if !queue.ending {
            return false;
        }
        drop(queue);
        WAKE.notify_all();
        std::thread::sleep(LAST_NAP);
    }
}

fn send(work: ReaperWork) {
    queue(|queue| queue.work.push_back(work));
}

/// Queues work with `put`, and makes sure that a thread takes it.
fn queue(put: impl FnOnce(&mut WorkQueue)) {
    let mut queue = QUEUE.lock();
    put(&mut queue);
    // Whether a thread will take the work is decided under the same lock.
    let alone = !start(&mut queue);
    // If the backlog exceeds a gigabyte, start a helper.
    if backlog() > throttle::HIGH && queue.helpers < throttle::helpers() {
        queue.helpers += usize::from(spawn(NAME, help).is_some());
    }
    drop(queue);
    WAKE.notify_one();
    if alone {
        // No thread could be started, so the caller does the work.
        work_off(&mut Worker::new(), || true);
    }
}

/// The clocks of a thread.
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

    /// Called after each bit of work.
    fn pause(&mut self) {
        if self.rest() {
            self.do_urgent();
            self.trimmer.pass();
        }
    }

    /// Rests if it is time to. Returns whether it was.
    fn rest(&mut self) -> bool {
        // Ordering: Relaxed; it is read again after the next piece.
        let awaited = || AWAITED.load(Ordering::Relaxed) > 0;
        self.throttle.pause(|| (backlog(), awaited()))
    }

    /// Does what is urgent. Returns whether there was anything.
    fn do_urgent(&mut self) -> bool {
        let mut some = false;
        while let Some((mut f, share)) = take(|queue| queue.urgent.pop_front()) {
            run(|| {
                while !f() {
                    self.rest();
                }
                // What the closure owns may be much, and its drop may panic.
                drop((f, share));
            });
            some = true;
        }
        some
    }
}

/// Whether anything waits for readers.
fn is_pending() -> bool {
    // Ordering: Relaxed; it is polled until it is 0.
    deferred::is_pending() || WAITING.load(Ordering::Relaxed) > 0 || larder_index::garbage_waits()
}

/// Makes sure that the thread comes by for what is pending.
pub(crate) fn wake() {
    // Ordering: Relaxed; if this misses that the thread has just fallen asleep, the thread's next
    // round finds the work.
    if ASLEEP.load(Ordering::Relaxed) {
        start(&mut QUEUE.lock());
        WAKE.notify_one();
    }
}

/// The name of the thread, and of those that help it.
const NAME: &str = "larder-reaper";

/// Starts the thread if it doesn't run. Returns `false` if the system refuses.
fn start(queue: &mut WorkQueue) -> bool {
    if !queue.started {
        queue.thread = spawn(NAME, main);
        queue.started = queue.thread.is_some();
    }
    queue.started
}

/// Takes work with `next`.
fn take<T>(next: impl FnOnce(&mut WorkQueue) -> Option<T>) -> Option<T> {
    let mut queue = QUEUE.lock();
    // Take and count the work under one lock (RC8).
    let work = next(&mut queue);
    queue.busy += usize::from(work.is_some());
    work
}

/// Works off the queue while `go_on` returns `true`. Returns whether there was any work.
fn work_off(worker: &mut Worker, go_on: impl Fn() -> bool) -> bool {
    let mut some = false;
    while go_on() {
        some |= worker.do_urgent();
        // The lock isn't held during the work, so other threads can add to the queue.
        let Some(work) = take(|queue| queue.work.pop_front()) else {
            break;
        };
        run(|| free_bits(work, worker));
        worker.pause();
        some = true;
    }
    some
}

/// The thread (see the steps of the module).
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
        // (2) Check and sleep under the queue's lock, so that nothing is queued in between.
        let mut queue = QUEUE.lock();
        if !queue.is_empty() {
            continue;
        }
        // Anything that becomes pending after this check wakes the thread (RC9), or waits for the
        // next round.
        if !is_pending() {
            // Ordering: Relaxed, both, as in `wake`.
            ASLEEP.store(true, Ordering::Relaxed);
            if queue.ending {
                // (4)
                WAKE.wait_for(&mut queue, LAST_NAP);
                if queue.ending && queue.is_empty() && !is_pending() {
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

/// A thread that helps as long as the backlog is too large.
fn help() {
    work_off(&mut Worker::new(), || backlog() > throttle::CALM);
    QUEUE.lock().helpers -= 1;
}

/// Does work that was taken from the queue.
fn run(work: impl FnOnce()) {
    // Catch panics. A panic would end the thread, and leak all that is queued after it. It leaves
    // no shared state inconsistent.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    drop(outcome);
    // The share was dropped with the work, also if that has panicked, or is kept by a store that
    // waits (RC7).
    QUEUE.lock().busy -= 1;
}

/// Frees a store, or what a closure frees, bit by bit.
fn free_bits(work: ReaperWork, worker: &mut Worker) {
    match work {
        ReaperWork::Retired(store, share) => queue_after_readers(store, share),
        ReaperWork::Unread(mut store, mut share) => {
            while !store.free_some(BIT) {
                share.shrink(store.memory());
                // What is freed must not accumulate in the collector. A flush removes as much as a
                // bit can add.
                larder_index::pin().flush();
                worker.pause();
            }
            drop(store);
            drop(share);
        }
        ReaperWork::Bits((mut f, share)) => {
            while !f() {
                worker.pause();
            }
            drop(share);
        }
    }
}

/// Passes a store to the epoch. It is queued again when its readers have finished.
fn queue_after_readers(store: Retired<dyn Reaped>, share: Share) {
    let guard = larder_index::pin();
    // Ordering: Relaxed; only the reaper and tests poll this count.
    WAITING.fetch_add(1, Ordering::Relaxed);
    // The count is incremented before `busy` falls, and decremented after the store is in the
    // queue. So the reaper isn't idle while a store waits (RC8).
    store.after_readers(&guard, |store| {
        QUEUE
            .lock()
            .work
            .push_back(ReaperWork::Unread(store, share));
        // Ordering: Relaxed, as above.
        WAITING.fetch_sub(1, Ordering::Relaxed);
    });
    // The readers of a store usually finish soon. The flush lets the epoch advance now, and not
    // only at the next nap.
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

    /// Has 100 bits done, each of a tenth of a millisecond. Returns the time until the next one
    /// begins, after the rest that the last ones call for; the time that the bits took by the same
    /// clock; and whether somebody waits for the end of the work, for whom there is no rest.
    fn a_hundred_bits() -> (Duration, Duration, bool) {
        let (done, times) = std::sync::mpsc::channel();
        let (begun, mut count, mut worked) = (Instant::now(), 0, Duration::ZERO);
        bits(0, move || {
            if count == 100 {
                // Who waits has waited since the work began, or longer.
                let is_awaited = AWAITED.load(Ordering::SeqCst) > 0;
                return done.send((begun.elapsed(), worked, is_awaited)).is_ok();
            }
            let bit = Instant::now();
            spin(Duration::from_micros(100));
            (count, worked) = (count + 1, worked + bit.elapsed());
            false
        });
        times.recv_timeout(LONG).expect("all bits are done")
    }

    #[test]
    fn it_rests_three_quarters_of_the_time() {
        let _alone = ALONE.lock();
        assert!(idle(LONG));
        // Another test of this program may wait for the reaper.
        let mut tries = (0..100).map(|_| a_hundred_bits());
        let rested = tries.find(|(.., is_awaited)| !is_awaited);
        let (took, worked, _) = rested.expect("nobody waits for ever");
        // The last bit may be less than a piece, which calls for no rest yet.
        assert!(took >= worked * 7 / 2, "{took:?} for {worked:?} of work");
    }

    #[test]
    fn helpers_come_when_too_much_is_left_and_go_afterwards() {
        let _alone = ALONE.lock();
        let too_much = Share::new(throttle::HIGH);
        let threads: Arc<Mutex<HashSet<ThreadId>>> = Arc::default();
        let are_queued = Arc::new(AtomicBool::new(false));
        let begun = Instant::now();
        for _ in 0..200 {
            let (threads, are_queued) = (Arc::clone(&threads), Arc::clone(&are_queued));
            // A helper that found the queue empty between two bits would end, and another one come.
            // The first thread waits for the second, which may begin late.
            bits(0, move || {
                thread::sleep(Duration::from_micros(500));
                are_queued.load(Ordering::SeqCst) && {
                    let mut threads = threads.lock();
                    threads.insert(thread::current().id());
                    threads.len() > 1 || begun.elapsed() > LONG
                }
            });
        }
        are_queued.store(true, Ordering::SeqCst);
        assert!(idle(LONG * 2));
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
    fn what_is_urgent_does_not_wait_for_what_is_left_to_free() {
        let _alone = ALONE.lock();
        assert!(idle(LONG));
        let done = Arc::new(AtomicBool::new(false));
        let (seen, begun) = (Arc::clone(&done), Instant::now());
        bits(0, move || {
            spin(Duration::from_micros(100));
            seen.load(Ordering::SeqCst) || begun.elapsed() > LONG
        });
        let mut left = 10;
        urgent_bits(move || {
            left -= 1;
            done.store(left == 0, Ordering::SeqCst);
            left == 0
        });
        assert!(idle(LONG * 2));
        assert!(begun.elapsed() < LONG);
    }

    #[test]
    fn it_ends_when_it_is_asked_to_and_begins_anew() {
        let _alone = ALONE.lock();
        for _ in 0..20 {
            assert!(idle(LONG));
            assert!(end(Instant::now() + LONG));
            // Others in this program may start it again at once. Its work is done in any case.
            let (done, seen) = std::sync::mpsc::channel();
            bits(0, move || done.send(()).is_ok());
            seen.recv_timeout(LONG).expect("it was started anew");
        }
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        bits(0, move || waits.recv_timeout(LONG).is_err());
        assert!(!end(Instant::now() + Duration::from_millis(20)));
        drop(go_on);
        assert!(idle(LONG));
    }

    #[test]
    fn a_panic_ends_neither_the_thread_nor_the_count() {
        let _alone = ALONE.lock();
        assert!(idle(LONG));
        bits(1000, || panic!("on purpose"));
        assert!(idle(LONG));
        // Other tests of this program drop tables meanwhile.
        let until = Instant::now() + LONG;
        while backlog() > 0 {
            assert!(Instant::now() < until, "{} bytes stay", backlog());
            thread::yield_now();
        }
        let (took, ..) = a_hundred_bits();
        assert!(took < LONG);
    }
}
