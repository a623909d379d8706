//! Where the crates take their atomics, locks and waiting from: one place, so that a model checker can choose who goes next.
//!
//! Built with `--cfg larder_model`, each operation on an atomic or a lock first lets Shuttle (a checker that runs threads one at a time, in orders of
//! its choice) go on with another thread. The atomics stay words of memory with the same layout, so that leaves can be made of them.
//! Shuttle's orders are sequentially consistent; weaker ones are the business of Miri and of ThreadSanitizer.
//!
//! Public for the crates above, which say with it where their threads meet; not part of what the index promises.
//!
//! What is not here: figures for people and hints, which no other word depends on. They stay plain atomics, so that the checker has no more
//! orders to try than there are protocols.

/// A fault that tests plant, to see that they find it. Only builds for the model checker have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An exchange that comes too late says that it was done: two writers take one lock.
    Exchange,
    /// A reader doesn't ask whether what it read without a lock was true.
    BlindRead,
    /// What a slot of a structure gives up is dropped at once, whoever may be reading it.
    EarlyDrop,
    /// The lazy skip list links a node without a look at whether those before it are still there.
    Unvalidated,
    /// A writer of the lock-free tree replaces a leaf that a join has frozen.
    Thaw,
    /// A rotation of the relaxed AVL tree doesn't say that keys are elsewhere now.
    Unshrunk,
    /// A writer of the contention-adapting tree goes on in a base that was replaced while it waited.
    Obsolete,
    /// A list's insertion stores a link where it should compare and swap it.
    Overwrite,
    /// A writer of the lock with reader groups takes the first group alone.
    NoGroup,
    /// A writer doesn't look at the gate again under its leaf's lock.
    OpenGate,
}

#[cfg(not(larder_model))]
mod real {
    pub use crossbeam_utils::Backoff;
    pub use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    use std::cell::Cell;
    pub use std::sync::atomic;
    pub use std::thread::yield_now as give_way;

    /// A place at which another thread may go on. Only a model checker sees it.
    #[inline(always)]
    pub const fn point() {}

    /// Whether this fault was planted.
    #[inline(always)]
    pub const fn planted(_: super::Fault) -> bool {
        false
    }

    /// The calling thread's number: the next that no thread had, when it first asks.
    #[inline]
    pub fn thread_number() -> usize {
        static NEXT: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
        thread_local! {
            static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        MINE.with(|mine| {
            if mine.get() == usize::MAX {
                // Ordering: Relaxed, only a number of its own.
                mine.set(NEXT.fetch_add(1, atomic::Ordering::Relaxed));
            }
            mine.get()
        })
    }

    /// A random number, for choices that need not be fair: each thread has the same row of them.
    #[inline]
    pub fn random() -> u64 {
        thread_local! {
            static STATE: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) };
        }
        STATE.with(|state| {
            // Marsaglia's xorshift.
            let mut x = state.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            x
        })
    }
}
#[cfg(not(larder_model))]
pub use real::*;

#[cfg(larder_model)]
mod model;
#[cfg(larder_model)]
pub use model::*;
