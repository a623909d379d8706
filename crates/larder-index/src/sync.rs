//! Atomics, locks and waiting, for all crates. A model checker replaces them in its builds.
//!
//! ```text
//!  normal builds            real    std, parking_lot, crossbeam
//!  --cfg larder_model       model   the same operations, each preceded by a scheduling point
//! ```
//!
//! In builds with `--cfg larder_model`, each operation on an atomic or a lock first lets Shuttle
//! choose another thread to run. Shuttle is a model checker that runs one thread at a time. The
//! atomics keep their size and layout, since leaves are made of them. Executions under Shuttle are
//! sequentially consistent. Weaker orderings are tested by Miri and ThreadSanitizer.
//!
//! This module is public for the crates above. It isn't part of the interface of the index.
//!
//! Statistics and hints, on which no other word depends, use plain atomics instead of these. So the
//! checker has fewer interleavings to explore.
//!
//! Invariant: `real` and `model` define the same names, with the same signatures as far as the
//! crates use them. No caller knows which one it uses.

/// A fault that a test plants, to verify that the suites find it. Only builds for the model checker
/// can have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A failed compare-and-exchange reports success. So two writers take one lock.
    Exchange,
    /// An optimistic reader doesn't validate.
    BlindRead,
    /// An object that is removed from a structure is dropped at once, although others may read it.
    EarlyDrop,
    /// The lazy skip list links a node without validating that its predecessors are still linked.
    Unvalidated,
    /// A writer of the lock-free tree replaces a leaf that a join has frozen.
    Thaw,
    /// A rotation of the relaxed AVL tree doesn't change the version of the node that it moves
    /// down.
    Unshrunk,
    /// A writer of the contention-adapting tree uses a base that was replaced while it waited.
    Obsolete,
    /// An insertion into a list stores a link instead of a compare-and-exchange.
    Overwrite,
    /// A writer of the lock with reader groups locks only the first group.
    NoGroup,
    /// A writer doesn't revalidate the state word under its leaf's lock.
    NotRevalidated,
    /// A write ignores a snapshot that is being taken, and doesn't keep a version for it.
    LostVersion,
    /// A write keeps the old version after it has changed the object.
    LateVersion,
    /// The marks of a bucket stay when an entry is removed and others move.
    MovedMark,
    /// The marks of a leaf stay when it gets another mark.
    OldMarks,
    /// A write reads the clock before it has the lock of its entry.
    EarlyClock,
    /// A write checks whether the table has followers before it reads the clock.
    EarlyLook,
    /// A commit doesn't validate the keys that the transaction has read.
    NotValidated,
    /// A commit doesn't lock the keys that it uses.
    KeysUnlocked,
    /// A read doesn't check whether a commit is writing its key.
    HalfCommit,
    /// A commit doesn't validate the ranges that the transaction has read.
    Phantom,
    /// A write doesn't read the clock again when its version is kept.
    OneLook,
    /// A commit validates its ranges without waiting for the commits before it.
    NoWait,
    /// A snapshot is taken although a list batch began and ended meanwhile.
    ListPasses,
    /// A writer changes a counted leaf without invalidating the counts.
    Uncounted,
    /// A node is marked as counted after its own bits were checked.
    LateClear,
    /// A timer removes the object under its key without checking the deadline.
    FreshExpired,
    /// An object is evicted although it was used or written since it was chosen.
    FreshEvicted,
    /// A read extends the deadline of an object from the time at which the read began.
    StaleTime,
    /// A leaf counts one entry too many.
    OffByOne,
    /// A write doesn't remove the entry of the old row from a secondary index.
    LeftEntry,
    /// The move of a value in a secondary index isn't counted.
    UncountedMove,
    /// A select by a range of values reads rows between two leaves of entries, as one by a single
    /// value may.
    RangeInParts,
    /// A reader of a view by a secondary index doesn't look at the keys that have changed since.
    MissedDifference,
    /// A change of an entry of a secondary index isn't counted.
    UncountedEntry,
    /// A commit validates the counts of entries while writes of rows are in progress.
    UnsettledEntry,
    /// A write is refused because of a claim that may be given back.
    UnsettledClaim,
    /// Objects that were inserted out of turn, to settle a key, aren't noted. So the batch inserts
    /// them again.
    Unsettled,
}

mod thread_values;

#[cfg(not(larder_model))]
mod real {
    pub use super::thread_values::{counts_for_sixteen, random, thread_number};
    pub use crossbeam_utils::Backoff;
    pub use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic;
    pub use std::thread::yield_now;
    pub use std::thread_local as each_thread;

    /// A scheduling point, at which the model checker may switch threads. Here it does nothing.
    #[inline]
    pub const fn point() {}

    /// Whether this fault was planted. It never is.
    #[inline]
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
