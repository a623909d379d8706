//! Tables, snapshots, transactions and feeds by number.
//!
//! ```text
//!  number   generation (32 bits) | slot (32 bits)
//!  slot     generation, odd while open │ user counts, one per stripe │ the resource
//! ```
//!
//! Slots are never freed. They are reused with another generation, so the number of a closed table
//! finds a slot whose generation differs.
//!
//! 1. A call increments its stripe's user count, then checks the generation. If it matches, the
//!    handle stays valid until the call decrements the count.
//! 2. A close ends the generation first. New calls are refused from then on.
//! 3. If the resource is a table, the close drops it for all. Calls that still use it end soon,
//!    with `NoTable`.
//! 4. It waits until each stripe has been seen at zero. The users from before (2) have returned
//!    then, and it drops the handle.
//!
//! No call waits for Java while it is counted, so (4) terminates. Stripes keep threads off one
//! cache line.

use crate::failure::Failure;
use crossbeam_utils::{Backoff, CachePadded};
use larder::api::{Larder, Snapshot, Table};
use larder::host::{EngineTable, OwnerId};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// The number of counters of a slot's users.
const STRIPES: usize = 8;
/// The number of slots of the first chunk. Each further chunk has twice as many as the one before.
const FIRST_CHUNK: usize = 16;
/// The maximum number of chunks. Together they have nearly 2^31 slots.
const CHUNKS: usize = 27;
/// The last generation of a slot. After it the slot isn't reused.
const LAST_GENERATION: u32 = i32::MAX as u32;

/// The object that a number refers to.
enum Resource {
    Table(Handle),
    /// A resource of another module: a transaction or a feed.
    Other(Box<dyn Any + Send + Sync>),
}

/// A table, a snapshot, or a transaction's view of a table.
pub(crate) struct Handle {
    pub(crate) table: Table,
    pub(crate) engine: Arc<EngineTable>,
    pub(crate) owner: OwnerId,
    /// Whether closing the number drops the table.
    drops_table: bool,
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
            drops_table: true,
            _snapshot: None,
        }
    }

    /// A transaction's view, which ends with the transaction.
    pub(crate) fn of_view(view: Table) -> Self {
        let mut handle = Self::of_table(view);
        handle.drops_table = false;
        handle
    }

    pub(crate) fn of_snapshot(snapshot: Snapshot) -> Self {
        let mut handle = Self::of_view(Table::clone(&snapshot));
        handle._snapshot = Some(snapshot);
        handle
    }
}

/// The world of all tables of the JVM. It is never dropped, so that no thread's exit drops it.
pub(crate) fn world() -> &'static Larder {
    static WORLD: OnceLock<Larder> = OnceLock::new();
    WORLD.get_or_init(Larder::new)
}

#[derive(Default)]
struct Slot {
    generation: AtomicU32,
    users: [CachePadded<AtomicUsize>; STRIPES],
    resource: UnsafeCell<Option<Resource>>,
}

// SAFETY: a resource is Send and Sync (the assertion below). Two threads write the cell: the one
// that took the slot from the free list, before it opens the slot, and the one that ended the
// generation, after all users have returned (step 4). Only users read it, and the closer, which
// waits for them before it writes.
unsafe impl Sync for Slot {}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Resource>();
};

/// Each chunk of slots is allocated once and never freed.
static SLOTS: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free {
    slots: Vec::new(),
    made: 0,
    open: 0,
});

struct Free {
    slots: Vec<u32>,
    /// Slots that have been in use, including free ones.
    made: u32,
    open: usize,
}

/// The chunk of a slot, and the slot's offset in the chunk.
#[inline]
fn chunk_and_offset(slot: u32) -> (usize, usize) {
    // Chunk c has FIRST_CHUNK * 2^c slots, so the chunks before it have FIRST_CHUNK * (2^c - 1).
    // Counted from FIRST_CHUNK, the slots of chunk c are those from FIRST_CHUNK * 2^c up to twice
    // that. The logarithm gives c.
    let at = slot as usize + FIRST_CHUNK;
    let chunk = (at / FIRST_CHUNK).ilog2() as usize;
    (chunk, at - (FIRST_CHUNK << chunk))
}

/// The slot of this number, in a chunk that is made if it is missing. `None` if there can be no
/// such slot.
fn get_or_make_slot(slot: u32) -> Option<&'static Slot> {
    let (chunk, at) = chunk_and_offset(slot);
    let make = || (0..FIRST_CHUNK << chunk).map(|_| Slot::default()).collect();
    // Several threads may need a new chunk at once. One makes it, and the others wait.
    SLOTS.get(chunk)?.get_or_init(make).get(at)
}

/// The slot of this number, if its chunk was made.
#[inline]
fn slot_at(slot: u32) -> Option<&'static Slot> {
    let (chunk, at) = chunk_and_offset(slot);
    SLOTS.get(chunk)?.get()?.get(at)
}

/// The generation and the slot of a number.
fn split(number: i64) -> (u32, u32) {
    ((number as u64 >> 32) as u32, number as u32)
}

/// Gives a table a number.
///
/// # Errors
/// `Argument` if there are too many numbers.
pub(crate) fn open(handle: Handle) -> Result<i64, Failure> {
    open_any(Resource::Table(handle))
}

/// Gives any other resource a number.
///
/// # Errors
/// As `open`.
pub(crate) fn open_other(other: impl Any + Send + Sync) -> Result<i64, Failure> {
    open_any(Resource::Other(Box::new(other)))
}

fn open_any(resource: Resource) -> Result<i64, Failure> {
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
    let slot =
        get_or_make_slot(number).ok_or_else(|| Failure::Argument("too many tables".into()))?;
    // The count includes a number before anybody has it. From here on the slot is on no list, so
    // this thread works on it without the lock.
    free.open += 1;
    drop(free);
    // SAFETY: nobody else uses the cell. The slot came from the free list, or is new. So it is not
    // open, and calls with old numbers are refused by its generation. Its last closer is done with
    // it: a slot becomes free as the closer's last step. The lock gave it to this thread alone.
    unsafe { *slot.resource.get() = Some(resource) };
    // The generation becomes odd: the slot is open. No other thread changes the generation of a
    // slot that isn't open.
    // Ordering: Release, so that calls that find the generation see the handle (`with_any`).
    let generation = slot.generation.fetch_add(1, Ordering::Release) + 1;
    Ok((u64::from(generation) << 32 | u64::from(number)) as i64)
}

/// A call that uses a slot; ends when it is dropped.
struct User<'s>(&'s AtomicUsize);

impl Drop for User<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, so that a closer that sees this (SeqCst in step 4) sees all of the
        // call before it.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Calls `f` with the table of a number.
///
/// # Errors
/// `Closed`, and those of `f`.
#[inline]
pub(crate) fn with<R>(
    number: i64,
    f: impl FnOnce(&Handle) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with_any(number, |resource| match resource {
        Resource::Table(handle) => f(handle),
        Resource::Other(_) => Err(Failure::Closed),
    })
}

/// Calls `f` with the resource that `open_other` gave a number.
///
/// # Errors
/// `Closed`, also if the number's resource has another type; and those of `f`.
pub(crate) fn with_other<T: Any, R>(
    number: i64,
    f: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with_any(number, |resource| match resource {
        Resource::Other(other) => f(other.downcast_ref().ok_or(Failure::Closed)?),
        Resource::Table(_) => Err(Failure::Closed),
    })
}

/// Calls `f` with the resource of a number.
///
/// # Errors
/// `Closed`, and those of `f`.
#[inline]
fn with_any<R>(number: i64, f: impl FnOnce(&Resource) -> Result<R, Failure>) -> Result<R, Failure> {
    let (generation, slot) = split(number);
    let slot = slot_at(slot).ok_or(Failure::Closed)?;
    // (1) Count this call first, and check the generation afterwards.
    // Ordering: SeqCst here and in (2), (4). A user writes the count and then reads the generation.
    // A closer writes the generation and then reads the counts. In one total order at least one of
    // them sees the other's write: the closer sees this user, or this user sees that the generation
    // is over.
    let users = &slot.users[my_stripe()];
    users.fetch_add(1, Ordering::SeqCst);
    // The count is decremented on every exit, also if `f` panics.
    let user = User(users);
    if slot.generation.load(Ordering::SeqCst) != generation || generation & 1 == 0 {
        return Err(Failure::Closed);
    }
    // SAFETY: the generation is the number's, and it was read with SeqCst. So this thread sees the
    // handle that `open_any` wrote before it. A closer takes the handle only after it has seen this
    // stripe at zero, and this user stays counted until `f` has returned.
    let handle = unsafe { &*slot.resource.get() };
    let result = handle.as_ref().ok_or(Failure::Closed).and_then(f);
    drop(user);
    result
}

/// Closes a number. If it is a table's, the table is dropped for all. Returns whether the number
/// was open: of several concurrent closes, one returns true.
pub(crate) fn close(number: i64) -> bool {
    let (generation, index) = split(number);
    // No number has an even generation. Without this check 0, which refers to nothing, would match
    // slot 0 before it was first opened.
    let Some(slot) = slot_at(index).filter(|_| generation & 1 == 1) else {
        return false;
    };
    // (2) Of several closers one succeeds. The others return false.
    // Ordering: SeqCst as in (1).
    let (now, over) = (generation, generation + 1);
    let ended = (slot.generation).compare_exchange(now, over, Ordering::SeqCst, Ordering::SeqCst);
    if ended.is_err() {
        return false;
    }
    // (3) Drop the table before waiting, so that long calls such as scans end soon.
    // SAFETY: only the thread that ended the generation takes the handle, and that is this one. It
    // takes it below. Until then this thread and the users that are left only read it.
    if let Some(Resource::Table(handle)) = unsafe { &*slot.resource.get() } {
        if handle.drops_table {
            // The only error is that the table was dropped already.
            let _ = handle.table.drop_table();
        }
    }
    // (4) A stripe that was seen at zero may be counted up again, but only by calls that (1)
    // refuses.
    slot.users.iter().for_each(|users| wait_for(users));
    // SAFETY: a user that got past (1) was counted before the generation ended. Each stripe was
    // seen at zero after that, so each such user has returned. Later users don't read the cell.
    let handle = unsafe { (*slot.resource.get()).take() };
    drop(handle);
    // Flush this thread's deferred frees: the thread, such as a Cleaner's, may never call the
    // library again.
    crossbeam_epoch::pin().flush();
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.open -= 1;
    // A slot whose generations are used up is retired, so no number is ever reused.
    if over < LAST_GENERATION {
        free.slots.push(index);
    }
    true
}

/// Step 4, for one stripe: waits until its count is zero.
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

/// The number of open resources.
pub(crate) fn count() -> usize {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).open
}

/// The stripe at which this thread is counted.
#[inline]
fn my_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // While the thread exits, its thread-local is destroyed: it uses stripe 0.
    MINE.try_with(|mine| {
        // The first call of this thread: stripes are assigned round robin.
        if mine.get() == usize::MAX {
            // Ordering: Relaxed; any number will do.
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        mine.get()
    })
    .unwrap_or(0)
}
