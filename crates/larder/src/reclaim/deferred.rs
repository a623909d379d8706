//! Deferred release: what was removed from a table, and may still be copied by readers, is released
//! when those readers have finished.
//!
//! This applies to the counts of what values referred to outside themselves, and to small stores.
//! They are gathered on *release lists*. Each list serves some of the threads, so threads seldom
//! compete for one. A list is handed to the epoch as a whole, in one deferred call. A deferred call
//! for each count, and the effort to ensure that none is forgotten, would cost more than the write
//! that removed the value.
//!
//! ```text
//!  writer   unlinks a value, then puts the counts of its handles on a list ─┐
//!  dropper  takes a small store out of its table, and puts it there ────────┤
//!                   full: one deferred call for the whole list ◀────────────┤
//!                   not full: the reaper defers it on its next sweep ◀──────┘
//!  any thread runs the call: the counts are released, the stores go back to their list
//!  writer, dropper, or the reaper: frees the stores that have come back
//! ```
//!
//! Stores go back because any thread may run the deferred call. If that thread freed them, memory
//! that another core has written, and will allocate again, would move between their caches, which
//! takes several times as long. If many stores have been returned to a list, the thread that runs
//! the call frees the others itself.
//!
//! # Invariants
//!
//! * **RC4** Counts are added to a list after the leaf that had their handles was unlocked, and
//!   stores after they were removed from their tables. So a thread that pins the epoch afterwards
//!   can't find the handles, or the store.
//! * **RC5** They are removed from a list by a thread that defers a call under a guard which it has
//!   pinned. Adding and removing are ordered by the list's lock. So any reader that copied a handle
//!   out of the leaf has pinned before the call was deferred. The call runs when all those readers
//!   have unpinned.
//! * **RC6** `PENDING` counts the lists that are not empty, the deferred calls that have not run,
//!   and the stores that were returned and are not freed. While it is not 0, the reaper keeps
//!   sweeping the lists.

use super::Reaped;
use crate::raw::Retired;
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use larder_index::{are_flushes_held, flush_or_hold};
use larder_term::blob::Counts;
use parking_lot::{Mutex, MutexGuard};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list is full with this number of counts, of bytes that they keep alive, or of stores.
const FULL: usize = 256;
const FULL_BYTES: usize = 1 << 20;
const FULL_STORES: usize = 32;

/// The maximum number of stores that have come back to a list and aren't freed yet. Each is small.
const MAX_RETURNED: usize = 4 * FULL_STORES;

/// How many of them are freed by a thread that puts something on its list. This is more than the
/// one store that it puts there, so they become fewer.
const FREED_AT_ONCE: usize = 2;

/// A store of at most this many bytes is small. It is freed in some microseconds.
const SMALL_STORE_BYTES: usize = 4 << 10;

const LISTS: usize = 16;

/// What is to be released by a deferred call.
#[derive(Default)]
struct ReleaseList {
    counts: Counts,
    stores: Vec<Retired<dyn Reaped>>,
}

/// A release list, and what has come back to it.
struct Releases {
    list: ReleaseList,
    /// Stores of earlier lists, which have no readers any more.
    returned: Vec<Box<dyn Reaped>>,
}

impl Releases {
    const fn new() -> Releases {
        Releases {
            list: ReleaseList::new(),
            returned: Vec::new(),
        }
    }
}

impl ReleaseList {
    const fn new() -> ReleaseList {
        ReleaseList {
            counts: Counts::new(),
            stores: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.stores.is_empty()
    }

    fn is_full(&self) -> bool {
        self.counts.len() >= FULL
            || self.counts.bytes() >= FULL_BYTES
            || self.stores.len() >= FULL_STORES
    }
}

static RELEASE_LISTS: [CachePadded<Mutex<Releases>>; LISTS] =
    [const { CachePadded::new(Mutex::new(Releases::new())) }; LISTS];

/// See RC6.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Whether anything is waiting to be released.
pub(crate) fn is_pending() -> bool {
    // Ordering: Relaxed; it is polled.
    PENDING.load(Ordering::Relaxed) > 0
}

/// Counts `n` more. Returns whether nothing was waiting before.
fn note_pending(n: usize) -> bool {
    // Ordering: Relaxed; the number orders nothing. What is waiting is found under its lock.
    PENDING.fetch_add(n, Ordering::Relaxed) == 0
}

fn note_released() {
    // Ordering: Relaxed, as above.
    PENDING.fetch_sub(1, Ordering::Relaxed);
}

/// The list of the calling thread. Threads choose lists in turn.
fn my_list() -> &'static Mutex<Releases> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Ordering: Relaxed; any distribution of the threads will do.
        static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % LISTS);
    }
    &RELEASE_LISTS[MINE.with(Cell::get)]
}

/// Calls `put` with a list, to add counts whose handles have been unlinked. Returns `true` if
/// nothing was waiting before, so that the reaper must be woken.
pub(crate) fn add(guard: &Guard, put: impl FnOnce(&mut Counts)) -> bool {
    on_list(my_list(), guard, |list| put(&mut list.counts))
}

/// Puts a store on a list if it is small, with the result of `add`. Otherwise returns the store.
pub(crate) fn add_store(
    guard: &Guard,
    store: Retired<dyn Reaped>,
) -> Result<bool, Retired<dyn Reaped>> {
    add_store_to(my_list(), guard, store)
}

/// Puts a store on a list in whose place another one is, which has its objects. With the result of
/// `add`. It may be the last that refers to an index or to versions. These free what is large in
/// the background when they are dropped.
pub(crate) fn add_replaced(guard: &Guard, store: Retired<dyn Reaped>) -> bool {
    on_list(my_list(), guard, |list| list.stores.push(store))
}

fn add_store_to(
    home: &'static Mutex<Releases>,
    guard: &Guard,
    store: Retired<dyn Reaped>,
) -> Result<bool, Retired<dyn Reaped>> {
    if store.memory() > SMALL_STORE_BYTES {
        return Err(store);
    }
    Ok(on_list(home, guard, |list| list.stores.push(store)))
}

/// Calls `put` with a list, and defers the list if it is full then. Returns the result of `add`.
fn on_list(
    home: &'static Mutex<Releases>,
    guard: &Guard,
    put: impl FnOnce(&mut ReleaseList),
) -> bool {
    // The caller has unlinked what it adds (RC4).
    let mut releases = home.lock();
    let list = &mut releases.list;
    let was_empty = list.is_empty();
    put(list);
    // The list begins to wait, and is counted until its call has run (RC6). Only the first of all
    // lists wakes the reaper.
    let first = was_empty && !list.is_empty() && note_pending(1);
    if list.is_full() || !releases.returned.is_empty() {
        defer_and_free(home, releases, guard);
    }
    first
}

/// Defers the list if it is full, and frees some of the stores that have come back to it.
///
/// A caller that holds locks has asked for flushes to be held back (`HeldFlushes`). Then nothing is
/// freed here, since a destructor may need one of these locks.
#[cold]
fn defer_and_free(
    home: &'static Mutex<Releases>,
    mut releases: MutexGuard<'_, Releases>,
    guard: &Guard,
) {
    let list = &mut releases.list;
    let full = list.is_full().then(|| std::mem::take(list));
    let may_free = !are_flushes_held();
    let returned: [_; FREED_AT_ONCE] =
        std::array::from_fn(|_| releases.returned.pop_if(|_| may_free));
    // Unlock first, because what follows may run other deferred calls, and drops of stores, which
    // may lock a list.
    drop(releases);
    if let Some(full) = full {
        // The caller defers the list, under the guard with which it has unlinked (RC5).
        release_later(full, home, guard);
        flush_or_hold(guard);
    }
    returned.into_iter().flatten().for_each(free);
}

/// Frees something that has no readers. The destructor may be that of a host's value. If it panics,
/// the panic is caught, so that the rest of the list is freed, too.
fn free<T>(garbage: T) {
    drop(catch_unwind(AssertUnwindSafe(|| drop(garbage))));
    note_released();
}

/// Releases a list when every reader that is pinned now has unpinned. Its stores go back to `home`.
fn release_later(list: ReleaseList, home: &'static Mutex<Releases>, guard: &Guard) {
    let ReleaseList { counts, stores } = list;
    Retired::all_after_readers(stores, guard, move |stores| {
        // Each store is pending until it is freed (RC6).
        note_pending(stores.len());
        let mut releases = home.lock();
        if releases.returned.len() < MAX_RETURNED {
            releases.returned.extend(stores);
            drop(releases);
        } else {
            drop(releases);
            stores.into_iter().for_each(free);
        }
        // The call itself has been pending, too.
        free(counts);
    });
}

/// Defers the release of all lists that are not empty, and frees the stores that have come back.
pub(crate) fn sweep() {
    RELEASE_LISTS.iter().for_each(|home| sweep_list(home));
}

fn sweep_list(home: &'static Mutex<Releases>) {
    // Unlock the list at once, and pin the epoch after that. Everything on the list was unlinked
    // before this pin (RC5). A pin may run deferred calls, which must not happen under a lock.
    let mut releases = home.lock();
    let list = std::mem::take(&mut releases.list);
    let returned = std::mem::take(&mut releases.returned);
    drop(releases);
    returned.into_iter().for_each(free);
    if !list.is_empty() {
        release_later(list, home, &larder_index::pin());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::EpochCell;
    use larder_term::blob::{live_bytes, live_count, Handles};
    use larder_term::{Encoder, Mode};
    use std::ptr::NonNull;
    use std::time::{Duration, Instant};

    /// Lists and figures are the whole program's: one test at a time. No other test of this program
    /// makes blobs of this size.
    static ALONE: Mutex<()> = Mutex::new(());

    /// The counts of `n` blobs of this number of bytes, put on this thread's list, as a table does
    /// it.
    fn put(guard: &Guard, n: usize, bytes: usize) {
        let mut run = Vec::new();
        for _ in 0..n {
            Encoder::new(&mut run, Mode::Shared).binary(&vec![7; bytes]);
        }
        let mut handles = Handles::default();
        handles.note(&run);
        // The bytes are forgotten: nobody gives their counts back but the list.
        add(guard, |list| crate::raw::own_counts(handles, list));
    }

    fn settle(bytes: usize) {
        let until = Instant::now() + Duration::from_secs(60);
        while live_bytes() > bytes && Instant::now() < until {
            sweep();
            larder_index::pin().flush();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_list_that_does_not_fill_up_is_swept() {
        let _alone = ALONE.lock();
        let before = live_bytes();
        put(&larder_index::pin(), 3, 1000);
        assert!(live_bytes() >= before + 3000 && is_pending());
        settle(before);
        assert!(live_bytes() <= before);
    }

    #[test]
    fn a_full_list_goes_by_itself() {
        let _alone = ALONE.lock();
        let (before, count) = (live_bytes(), live_count());
        for (n, bytes) in [(FULL, 200), (2, FULL_BYTES)] {
            put(&larder_index::pin(), n, bytes);
            assert!(my_list().lock().list.is_empty());
            let until = Instant::now() + Duration::from_secs(60);
            while live_bytes() > before && Instant::now() < until {
                larder_index::pin().flush();
                std::thread::yield_now();
            }
            assert!((live_bytes(), live_count()) <= (before, count));
        }
    }

    #[test]
    fn nothing_goes_while_a_reader_may_look() {
        let _alone = ALONE.lock();
        let before = live_bytes();
        let reader = larder_index::pin();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                put(&larder_index::pin(), FULL, 300);
                for _ in 0..100 {
                    sweep();
                    larder_index::pin().flush();
                }
            });
        });
        assert!(live_bytes() >= before + FULL * 300);
        drop(reader);
        settle(before);
        assert!(live_bytes() <= before);
    }

    /// A store that counts when it is dropped, and may panic then.
    struct Counting(&'static AtomicUsize, bool);

    impl Reaped for Counting {
        fn memory(&self) -> usize {
            1
        }
        fn free_some(&mut self, _: usize) -> bool {
            true
        }
    }

    impl Drop for Counting {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            assert!(!self.1, "planted");
        }
    }

    /// Puts a store on a list, as a table that is dropped does.
    fn put_store(home: &'static Mutex<Releases>, freed: &'static AtomicUsize, panics: bool) {
        let guard = larder_index::pin();
        let cell = EpochCell::new(Counting(freed, panics));
        let store = cell.take(&guard).expect("it has a value");
        let store = store.upcast(|store| store as NonNull<dyn Reaped>);
        assert!(add_store_to(home, &guard, store).is_ok());
    }

    /// Lets deferred calls run, on this thread or another.
    fn flush(until: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !until() && Instant::now() < end {
            larder_index::pin().flush();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stores come back to the list of the thread that dropped them, whichever thread runs the
    /// call. That thread frees them one after the other. One that panics stops no other.
    #[test]
    fn stores_come_back_and_are_freed_a_few_at_a_time() {
        static FREED: AtomicUsize = AtomicUsize::new(0);
        // No other thread sweeps this list.
        static OWN: Mutex<Releases> = Mutex::new(Releases::new());
        let back = || OWN.lock().returned.len();
        (0..FULL_STORES).for_each(|i| put_store(&OWN, &FREED, i == 5));
        std::thread::scope(|scope| {
            scope.spawn(|| flush(|| back() == FULL_STORES));
        });
        assert_eq!((back(), FREED.load(Ordering::SeqCst)), (FULL_STORES, 0));
        put_store(&OWN, &FREED, false);
        assert_eq!(FREED.load(Ordering::SeqCst), FREED_AT_ONCE);
        assert_eq!(back(), FULL_STORES - FREED_AT_ONCE);
        // A sweep frees the rest.
        sweep_list(&OWN);
        assert_eq!(FREED.load(Ordering::SeqCst), FULL_STORES);
        flush(|| back() == 1);
        sweep_list(&OWN);
        assert_eq!(FREED.load(Ordering::SeqCst), FULL_STORES + 1);
    }

    /// However many stores wait for one reader, no more than some of them come back.
    #[test]
    fn a_list_has_a_bound() {
        static FREED: AtomicUsize = AtomicUsize::new(0);
        static OWN: Mutex<Releases> = Mutex::new(Releases::new());
        let many = 10 * MAX_RETURNED;
        let reader = larder_index::pin();
        (0..many).for_each(|_| put_store(&OWN, &FREED, false));
        assert_eq!(FREED.load(Ordering::SeqCst), 0);
        drop(reader);
        let back = || OWN.lock().returned.len();
        flush(|| back() + FREED.load(Ordering::SeqCst) == many);
        assert!(back() <= MAX_RETURNED + FULL_STORES, "{}", back());
        sweep_list(&OWN);
        assert_eq!(FREED.load(Ordering::SeqCst), many);
    }
}
