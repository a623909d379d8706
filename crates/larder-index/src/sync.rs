//! Where the crates take their atomics, locks and waiting from: one place, so that a model checker
//! can choose who goes next.
//!
//! Built with `--cfg larder_model`, each operation on an atomic or a lock first lets Shuttle (a
//! checker that runs threads one at a time, in orders of its choice) go on with another thread. The
//! atomics stay words of memory with the same layout, so that leaves can be made of them. Shuttle's
//! orders are sequentially consistent; weaker ones are the business of Miri and of ThreadSanitizer.
//!
//! Public for the crates above, which say with it where their threads meet; not part of what the
//! index promises.
//!
//! What is not here: figures for people and hints, which no other word depends on. They stay plain
//! atomics, so that the checker has no more orders to try than there are protocols.
//!
//! Invariant: `real` and `model` have the same names, with the same signatures as far as the crates
//! use them. No caller knows which it has.

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
    /// A writer of the contention-adapting tree goes on in a base that was replaced while it
    /// waited.
    Obsolete,
    /// A list's insertion stores a link where it should compare and swap it.
    Overwrite,
    /// A writer of the lock with reader groups takes the first group alone.
    NoGroup,
    /// A writer doesn't revalidate the state word under its leaf's lock.
    NotRevalidated,
    /// A write takes a snapshot that is being taken for none: what it changes is lost.
    LostVersion,
    /// A write keeps what was there after it has changed it.
    LateVersion,
    /// A write reads the clock before it has the lock of its entry.
    EarlyClock,
    /// A write asks whether somebody follows the table before it reads the clock.
    EarlyLook,
    /// A transaction commits whatever has become of the keys that it read.
    NotValidated,
    /// Operations that are committed don't lock the keys that they use.
    KeysUnlocked,
    /// A read doesn't look whether a commit is writing its key.
    HalfCommit,
    /// A transaction commits whatever has come into the ranges that it read.
    Phantom,
    /// A write doesn't read the clock again when its version is kept.
    OneLook,
    /// A transaction looks at the ranges that it read while commits before it are under way.
    NoWait,
    /// A snapshot is taken although a list came and went meanwhile.
    ListPasses,
    /// A writer changes a counted leaf, and doesn't say so.
    Uncounted,
    /// A node is said to be counted after its own bits were looked at.
    LateClear,
    /// A timer removes what is under its key, whatever time that has.
    FreshExpired,
    /// An object is evicted although it was met or written since it was chosen.
    FreshEvicted,
    /// A read gives an object more time as of when it began.
    StaleTime,
    /// A leaf counts one entry too many.
    OffByOne,
    /// A write leaves the entry of what was there in a secondary index.
    LeftEntry,
    /// A change of an indexed value isn't counted.
    UncountedMove,
    /// A change of an entry of a secondary index isn't counted.
    UncountedEntry,
    /// A transaction looks at the counts of entries while writes of rows are under way.
    UnsettledEntry,
    /// A write is refused by a claim that may be given back.
    UnsettledClaim,
    /// What was inserted out of turn to settle a key isn't noted: the batch inserts it again.
    Unsettled,
}

mod own;

#[cfg(not(larder_model))]
mod real {
    pub use super::own::{random, thread_number};
    pub use crossbeam_utils::Backoff;
    pub use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic;
    pub use std::thread::yield_now as give_way;
    pub use std::thread_local as each_thread;

    /// A place at which another thread may go on. Only a model checker sees it.
    #[inline(always)]
    pub const fn point() {}

    /// Whether this fault was planted.
    #[inline(always)]
    pub const fn planted(_: super::Fault) -> bool {
        false
    }
}
#[cfg(not(larder_model))]
pub use real::*;

#[cfg(larder_model)]
mod model;
#[cfg(larder_model)]
pub use model::*;
