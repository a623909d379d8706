//! Tables, snapshots, transactions and feeds by number.
//!
//! ```text
//!  number   generation (32 bits) | slot (32 bits)
//!  slot     generation, odd while open │ users, in some places │ the handle
//! ```
//!
//! Slots are never freed, only used again, with another generation: a number of a closed table
//! finds its slot, and sees there that its generation is over.
//!
//! 1. A call adds itself to the slot's users, at its thread's place, and then looks at the
//!    generation. If that is the number's, the handle stays until the call takes itself out.
//! 2. Whoever closes ends the generation first. From then on (1) refuses new calls.
//! 3. If it is a table, it is dropped for all: what is under way ends soon, with `NoTable`.
//! 4. It waits until each place has been seen without users. Those that came before (2) are gone
//!    then, so the handle is its own, and is given up.
//!
//! No call waits for Java while it is a user, so (4) ends. Several places, so that threads of
//! different places don't write to one cache line.

use crate::failure::Failure;
use crossbeam_utils::{Backoff, CachePadded};
use larder::api::{Larder, Snapshot, Table};
use larder::host::{OwnerId, Table as EngineTable};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Places of a slot at which users are counted.
const PLACES: usize = 8;
/// Slots of the first chunk; each chunk after it has twice as many.
const FIRST_CHUNK: usize = 16;
const CHUNKS: usize = 27;
/// A slot's last generation: it is not used again.
const LAST: u32 = i32::MAX as u32;

/// What a number stands for.
enum Open {
    Table(Handle),
    /// What other modules open: transactions and feeds.
    Other(Box<dyn Any + Send + Sync>),
}

/// A table, a snapshot, or a transaction's view of a table.
pub(crate) struct Handle {
    pub(crate) table: Table,
    pub(crate) engine: Arc<EngineTable>,
    pub(crate) owner: OwnerId,
    /// Whether the table is dropped when the number is closed.
    is_own: bool,
    /// Released when the number is closed.
    _snapshot: Option<Snapshot>,
}

impl Handle {
    pub(crate) fn of_table(table: Table) -> Self {
        let (engine, owner) = (Arc::clone(table.engine_table()), table.larder().owner());
        Handle {
            table,
            engine,
            owner,
            is_own: true,
            _snapshot: None,
        }
    }

    /// A transaction's view, which ends with the transaction.
    pub(crate) fn of_view(view: Table) -> Self {
        let mut handle = Self::of_table(view);
        handle.is_own = false;
        handle
    }

    pub(crate) fn of_snapshot(snapshot: Snapshot) -> Self {
        let mut handle = Self::of_view(Table::clone(&snapshot));
        handle._snapshot = Some(snapshot);
        handle
    }
}

/// The world of all tables of the JVM. It is never given up, so that no thread's end does it.
pub(crate) fn world() -> &'static Larder {
    static WORLD: OnceLock<Larder> = OnceLock::new();
    WORLD.get_or_init(Larder::new)
}

#[derive(Default)]
struct Slot {
    generation: AtomicU32,
    users: [CachePadded<AtomicUsize>; PLACES],
    handle: UnsafeCell<Option<Open>>,
}

// SAFETY: what is open may go from thread to thread and be used by several at once (the assertion
// below). The cell is written by whoever has taken the slot from the free ones and not opened it
// yet, and by whoever ended its generation, after all users are gone (step 4). It is read by users
// alone, while its generation lasts or a closer waits for them.
unsafe impl Sync for Slot {}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Open>();
};

/// Each chunk of slots is made once and stays.
static SLOTS: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free {
    slots: Vec::new(),
    made: 0,
    open: 0,
});

struct Free {
    slots: Vec<u32>,
    /// Slots that were in use at some time.
    made: u32,
    open: usize,
}

/// The chunk of a slot, and its place there.
#[inline]
fn place_of(slot: u32) -> (usize, usize) {
    // Chunk c has FIRST_CHUNK * 2^c slots, so the chunks before it have FIRST_CHUNK * (2^c - 1).
    // Counted from FIRST_CHUNK, the slots of chunk c are those from FIRST_CHUNK * 2^c up to twice
    // that. The logarithm gives c.
    let at = slot as usize + FIRST_CHUNK;
    let chunk = (at / FIRST_CHUNK).ilog2() as usize;
    (chunk, at - (FIRST_CHUNK << chunk))
}

fn make_slot(slot: u32) -> Option<&'static Slot> {
    let (chunk, at) = place_of(slot);
    let make = || (0..FIRST_CHUNK << chunk).map(|_| Slot::default()).collect();
    // Several threads may need a new chunk at once. One makes it, and the others wait.
    SLOTS.get(chunk)?.get_or_init(make).get(at)
}

#[inline]
fn slot_at(slot: u32) -> Option<&'static Slot> {
    let (chunk, at) = place_of(slot);
    SLOTS.get(chunk)?.get()?.get(at)
}

fn split(number: i64) -> (u32, u32) {
    ((number as u64 >> 32) as u32, number as u32)
}

/// Gives a table a number.
///
/// # Errors
/// `Argument` if there are too many numbers.
pub(crate) fn open(handle: Handle) -> Result<i64, Failure> {
    open_any(Open::Table(handle))
}

/// Gives anything else a number.
///
/// # Errors
/// As `open`.
pub(crate) fn open_other(other: impl Any + Send + Sync) -> Result<i64, Failure> {
    open_any(Open::Other(Box::new(other)))
}

fn open_any(handle: Open) -> Result<i64, Failure> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    // A slot that was used before is taken first, so that the chunks grow only with the number of
    // tables that are open at one time.
    let number = match free.slots.pop() {
        Some(slot) => slot,
        None => {
            free.made += 1;
            free.made - 1
        }
    };
    let slot = make_slot(number).ok_or_else(|| Failure::Argument("too many tables".into()))?;
    // The count includes a number before anybody has it. From here on the slot is on no list, so
    // this thread works on it without the lock.
    free.open += 1;
    drop(free);
    // SAFETY: nobody else uses the cell. The slot came from the free ones, or is new. So it is not
    // open, and calls with old numbers are refused by its generation. Its last closer is done with
    // it: a slot becomes free as the closer's last step. The lock gave it to this thread alone.
    unsafe { *slot.handle.get() = Some(handle) };
    // Ordering: Release shows the handle to calls that find the generation (Acquire in `with`); no
    // other thread changes the generation of a slot that is not open.
    // The generation becomes odd: the slot is open.
    let generation = slot.generation.fetch_add(1, Ordering::Release) + 1;
    Ok((u64::from(generation) << 32 | u64::from(number)) as i64)
}

/// A call that uses a slot; ends when it is dropped.
struct User<'s>(&'s AtomicUsize);

impl Drop for User<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, so that a closer that sees this (Acquire in step 4) sees all of the
        // call behind it.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Calls `f` with the table of a number.
///
/// # Errors
/// `Closed`, and what `f` answers.
#[inline]
pub(crate) fn with<R>(
    number: i64,
    f: impl FnOnce(&Handle) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with_any(number, |open| match open {
        Open::Table(handle) => f(handle),
        Open::Other(_) => Err(Failure::Closed),
    })
}

/// Calls `f` with what `open_other` gave a number.
///
/// # Errors
/// `Closed`, also for a number of something else; and what `f` answers.
pub(crate) fn with_other<T: Any, R>(
    number: i64,
    f: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with_any(number, |open| match open {
        Open::Other(other) => f(other.downcast_ref().ok_or(Failure::Closed)?),
        Open::Table(_) => Err(Failure::Closed),
    })
}

/// Calls `f` with what a number stands for.
///
/// # Errors
/// `Closed`, and what `f` answers.
#[inline]
fn with_any<R>(number: i64, f: impl FnOnce(&Open) -> Result<R, Failure>) -> Result<R, Failure> {
    let (generation, slot) = split(number);
    let slot = slot_at(slot).ok_or(Failure::Closed)?;
    // (1) Count this call first, and look at the generation after that.
    // Ordering: SeqCst here and in (2), (4). A user writes the count and then reads the generation.
    // A closer writes the generation and then reads the counts. In one total order at least one of
    // them sees the other's write: the closer sees this user, or this user sees that the generation
    // is over.
    let users = &slot.users[my_place()];
    users.fetch_add(1, Ordering::SeqCst);
    // The count is taken back on every way out of here, by a panic of `f` as well.
    let user = User(users);
    if slot.generation.load(Ordering::SeqCst) != generation || generation & 1 == 0 {
        return Err(Failure::Closed);
    }
    // SAFETY: the generation is the number's, and it was read with Acquire. So this thread sees the
    // handle that `open_any` wrote before it. A closer takes the handle only after it has seen this
    // place without users, and this user stays counted until `f` has returned.
    let handle = unsafe { &*slot.handle.get() };
    let result = handle.as_ref().ok_or(Failure::Closed).and_then(f);
    drop(user);
    result
}

/// Closes what a number stands for: a table goes, for all. Whether it was open: of several that
/// close it, one does.
pub(crate) fn close(number: i64) -> bool {
    let (generation, index) = split(number);
    // An even generation is no number's. Without this check 0, which stands for nothing, would name
    // slot 0 before it was first opened.
    let Some(slot) = slot_at(index).filter(|_| generation & 1 == 1) else {
        return false;
    };
    // (2) Of several closers one succeeds, and the others answer that it was closed already.
    // Ordering: SeqCst as in (1).
    let (now, over) = (generation, generation + 1);
    let ended = (slot.generation).compare_exchange(now, over, Ordering::SeqCst, Ordering::SeqCst);
    if ended.is_err() {
        return false;
    }
    // (3) Drop the table before waiting, so that long calls such as scans end soon.
    // SAFETY: only the thread that ended the generation takes the handle, and that is this one. It
    // takes it below. Until then this thread and the users that are left only read it.
    if let Some(Open::Table(handle)) = unsafe { &*slot.handle.get() } {
        if handle.is_own {
            // The only error is that it is gone already.
            let _ = handle.table.drop_table();
        }
    }
    // (4) A place that is seen empty may fill again, but only with calls that (1) refuses.
    slot.users.iter().for_each(|users| wait_for(users));
    // SAFETY: a user that got past (1) was counted before the generation ended. Each place was seen
    // empty after that, so each such user is gone. Users that come now don't look at the cell.
    let handle = unsafe { (*slot.handle.get()).take() };
    drop(handle);
    // The engine frees memory when no thread can see it any more. Hand over what this thread has
    // deferred, since the thread, a cleaner's for example, may never call the library again.
    crossbeam_epoch::pin().flush();
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.open -= 1;
    // A slot whose generations are used up is retired. So no number ever comes again.
    if over < LAST {
        free.slots.push(index);
    }
    true
}

fn wait_for(users: &AtomicUsize) {
    let backoff = Backoff::new();
    // Ordering: SeqCst as in (1); it also sees what the user did.
    while users.load(Ordering::SeqCst) != 0 {
        // Most calls end within the spins of `snooze`. For a long one, such as a scan, sleep.
        if backoff.is_completed() {
            thread::sleep(Duration::from_micros(50));
        } else {
            backoff.snooze();
        }
    }
}

/// How many numbers are open.
pub(crate) fn count() -> usize {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).open
}

/// The place of this thread among a slot's users.
#[inline]
fn my_place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that ends is at the first place.
    MINE.try_with(|mine| {
        // The first call of this thread: places are given in turns, so that threads are spread
        // evenly.
        if mine.get() == usize::MAX {
            // Ordering: Relaxed; any number will do.
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
        }
        mine.get()
    })
    .unwrap_or(0)
}
