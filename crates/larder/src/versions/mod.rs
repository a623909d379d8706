//! Tables as of an instant, several changes at one instant, and what changes in tables: snapshots,
//! transactions and feeds.
//!
//! | file | what it has |
//! |---|---|
//! | `clock` | the numbers that say what comes before a snapshot and what after |
//! | `undo` | undo records: what was under a key |
//! | `filter` | which keys surely have no undo record |
//! | `history` | the undo index of a store, and its live snapshots |
//! | `watched` | the index of a table that has snapshots |
//! | `merged`, `scan` | the index of a snapshot, and how it is scanned |
//! | `ranks`, `checkpoints` | ranks in a snapshot, and those that are known |
//! | `snapshot` | taking and releasing snapshots |
//! | `count` | the number of a snapshot's objects |
//! | `diff` | what differs between two snapshots |
//! | `differences` | which keys of a view may differ from those of its table |
//! | `key_locks` | locks of keys, for tables that commits write to |
//! | `transaction` | views, and their commit |
//! | `feed` | the queue of what changes in a table |
//! | `subscription` | following a feed, alone or from a snapshot on |
//!
//! # Steps of taking a snapshot
//!
//! 1. *Watch*: each table's store is replaced by one that keeps what its writes change, if it is
//!    not one already.
//! 2. *Register* a pending snapshot with each history. From here on writes keep what they change.
//! 3. *Cut*: the clock is moved on; its number is the snapshots'. This is the linearisation point,
//!    for all tables of the call.
//! 4. *Look again*: if a table has another store by now, or a list batch holds its latch, or has
//!    held it since before (1), the snapshots are released and taken anew (after the batch).
//!
//! # Why a snapshot is of one instant
//!
//! A write decides under the lock of its entry whether it is part of a snapshot: it is not if the
//! clock that it sees is not less than the snapshot's number. In that case it sees the snapshot
//! (pending, or live), too, and keeps what was there. It looks at the clock again when that is
//! kept, still before its change: what it sees then counts.
//!
//! - *A write that is part of a snapshot is always seen by it.* It took its lock before the cut. A
//!   reader of the snapshot begins after the cut, and waits for the lock.
//! - *A write that is not part is never seen.* Its version is in the undo index before its change
//!   can be read, and a reader looks there last.
//! - *No write that is part comes after one that is not.* Let W be no part: it read the clock after
//!   the cut. A write that begins when W has ended takes its lock after the cut: it sees the
//!   snapshot and the clock, and is no part either.
//! - *A list is part or not as a whole*: its writes have one number, which is drawn while the list
//!   has the latch, and the cut is before or after that. A write that has overtaken the list, as it
//!   revalidated before, may have a greater number than the list, and lie below it; a cut between
//!   the two would be one while the list has the latch.
//!
//! So no writer waits for a snapshot, and none has to be waited for.
//!
//! Sources: the undo records and the check of a reader's number against them are those of HyPer
//! (Neumann, Mühlbauer, Kemper: Fast Serializable Multi-Version Concurrency Control, SIGMOD 2015);
//! the clock that snapshots alone move on is that of vCAS (Wei et al., Constant-Time Snapshots,
//! PPoPP 2021). There each object has its versions; here they lie beside the index, so that a table
//! without snapshots has none, and pays for none.

mod checkpoints;
mod clock;
mod count;
mod diff;
mod differences;
mod feed;
mod filter;
mod history;
mod key_locks;
mod merged;
mod ranks;
mod scan;
mod snapshot;
mod subscription;
mod transaction;
mod undo;
mod watched;

pub(crate) use clock::wait_for_commits;
pub(crate) use clock::CommitNumber;
pub use diff::{DiffJob, Difference};
pub(crate) use differences::Differences;
pub(crate) use feed::Feed;
pub use feed::Waker;
pub(crate) use history::History;
pub use snapshot::SnapshotInfo;
pub(crate) use snapshot::ViewOf;
pub use subscription::{FeedEvent, Subscription, Told, Wishes};
pub use transaction::{Outcome, Transaction, Turn};
pub(crate) use watched::watch;
