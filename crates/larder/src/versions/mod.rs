//! Snapshots, transactions and feeds: tables as of an instant, several changes at one instant, and
//! the events of changes.
//!
//! | file | what it has |
//! |---|---|
//! | `clock` | the numbers that say what comes before a snapshot and what after |
//! | `undo` | undo records: what was under a key |
//! | `undo_index` | where the records are |
//! | `filter` | which keys surely have no undo record |
//! | `history` | the undo index of a store, and its live snapshots |
//! | `live` | the numbers of live snapshots, and the versions that these need |
//! | `removed_key` | the key that a thread has removed last |
//! | `watched` | the index of a table that has snapshots |
//! | `merged`, `scan`, `in_place` | the index of a snapshot, and how it is scanned |
//! | `ranks`, `checkpoints` | ranks in a snapshot, and those that are known |
//! | `snapshot` | taking and releasing snapshots |
//! | `count` | the number of a snapshot's objects |
//! | `diff` | what differs between two snapshots |
//! | `differences` | which keys of a view may differ from those of its table |
//! | `own_writes` | what a transaction has written to a table |
//! | `sorted_key` | keys in the B-trees of a transaction |
//! | `lifetimes` | the lifetimes of the objects in a view of a bounded table |
//! | `key_locks` | locks of keys, for tables that commits write to |
//! | `transaction` | views, and their commit |
//! | `feed` | the queue of what changes in a table |
//! | `changed_object` | the old and the new object of a write |
//! | `subscription` | following a feed, alone or from a snapshot on |
//!
//! # Steps of taking a snapshot (docs/design.md §5.5)
//!
//! * sn1: *Watch*: if a table isn't watched yet, replace its store by one that keeps versions of
//!   what its writes change.
//! * sn2: *Register* a pending snapshot with each history. From here on writes keep versions of
//!   what they change.
//! * sn3: *Cut*: increment the clock. The new value is the number of the snapshots. This is the
//!   linearisation point, for all tables of the call.
//! * sn4: *Check* that the tables have the same stores, and that no list batch has held a latch
//!   since before sn1. Otherwise begin again. Then wait until the commits with lesser numbers are
//!   over.
//!
//! # Why a snapshot shows one instant
//!
//! A write decides under the lock of its entry whether it is part of a snapshot. It is not if it
//! reads a clock that is not less than the snapshot's number. In that case it also sees the
//! snapshot, pending or live, and keeps a version. After that, and before its change, it reads the
//! clock again, and this number counts.
//!
//! - *A write that is part of a snapshot is always seen by it.* It took its lock before the cut. A
//!   reader of the snapshot begins after the cut, and waits for the lock.
//! - *A write that is not part of it is never seen.* Its version is in the undo index before its
//!   change can be read, and a reader reads the undo index last.
//! - *No write that is part of it follows one that is not.* Suppose that W is not part of it: W
//!   read the clock after the cut. A write that begins after W takes its lock after the cut. It
//!   sees the snapshot and the clock, and is not part of it either.
//! - *A list is part of it as a whole, or not at all*: its writes have one number, which is drawn
//!   while the list has the latch, and the cut is before or after that. A write that revalidated
//!   before the list may have overtaken it. Such a write may have a greater number than the list,
//!   and be overwritten by it. But a cut between the two numbers would fall into the time for which
//!   the list has the latch.
//!
//! So no writer waits for a snapshot, and a snapshot waits for no writer of a key.
//!
//! Sources: the undo records, and the comparison of a reader's number with them, are from HyPer
//! (Neumann, Mühlbauer, Kemper: Fast Serializable Multi-Version Concurrency Control, SIGMOD 2015).
//! The clock that snapshots increment and writes only read is from vCAS (Wei et al., Constant-Time
//! Snapshots, PPoPP 2021). Deviations: in vCAS each object has its versions. Here they are beside
//! the index, so that a table without snapshots has none, and pays for none. Commits and groups of
//! events increment the clock, too.

mod changed_object;
mod checkpoints;
mod clock;
mod count;
mod diff;
mod differences;
mod feed;
mod filter;
mod followers;
mod gaps;
mod history;
mod in_place;
mod key_locks;
mod lifetimes;
mod live;
mod merged;
mod own_writes;
mod ranks;
mod removed_key;
mod scan;
mod snapshot;
mod sorted_key;
mod subscription;
mod transaction;
mod undo;
mod undo_index;
mod watched;

pub(crate) use clock::wait_for_commits;
pub(crate) use clock::CommitNumber;
pub(crate) use count::Count;
pub use diff::{DiffJob, Difference};
pub(crate) use differences::Differences;
pub(crate) use feed::TableFeed;
pub use followers::Waker;
pub(crate) use history::{History, TableSnapshot};
pub(crate) use lifetimes::ViewLifetimes;
pub(crate) use own_writes::GivenLifetime;
pub use snapshot::SnapshotInfo;
pub use subscription::{FeedEvent, FeedRead, Subscription, SubscriptionOptions};
pub use transaction::{CommitOutcome, EngineTransaction, Turn};
pub(crate) use watched::wrap_watched;
