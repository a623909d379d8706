//! The traits of indexes, and the types of their arguments and results.
//!
//! Keys and values are bytes. An index knows nothing of terms. The keys of an index must be
//! **prefix-free**: no key is a proper prefix of another one. For a hash-ordered index, the caller
//! computes the 64-bit hash of each key, with a seed.
//!
//! ```text
//!  Container     how many entries, how much memory, freeing them
//!    ├ Unique    at most one value per key             HashOrder, KeyOrder
//!    └ Multi     any number, in order of insertion     Bag
//!
//!  scan     start ─→ Batch { entries, resume } ─→ scan from resume ─→ … ─→ Batch { done }
//! ```
//!
//! Invariants that every index keeps (docs/design.md §4.2):
//! * I8: Every operation of `Unique` and `Multi` takes effect at one instant between its call and
//!   its return. A scan does so once for each batch. (Exceptions: in a bag it does so once for the
//!   objects of each key; in [`Chains`](crate::Chains) and some structures of the studies, for each
//!   entry.)
//! * I9: The batches of a scan contain each entry exactly once that is in the index during the
//!   whole scan.
//! * I10: A closure that is passed to a write is called once, under the lock of the entry. It must
//!   be short, and must not call the index.
//! * I11: The guard that is passed to an operation is pinned throughout, so memory that was read
//!   stays allocated.
//!
//! An index need not implement the methods that have a default. A default does the same by means of
//! other methods, with more work, or is a hint that does nothing.

mod batch;
mod container;
mod head;
mod key;
#[allow(unsafe_code)]
mod lend;
mod lookup;
mod multi;
mod stats;
mod step;
mod unique;
mod write;

pub(crate) use batch::{with_batch, BatchEntry};
pub use batch::{Batch, BatchEntries, Seen};
pub use container::Container;
pub use head::HEAD;
pub(crate) use key::HASH;
pub use key::{Direction, Key, Start};
pub use lookup::{Lookup, ShortValues, MAX_KEYS_PER_LOOKUP, SHORT_VALUE};
pub use multi::{MarkedObjectsUpdater, Multi, ObjectHash, Objects};
pub use stats::Stats;
pub use step::{StepEntry, Stepped};
pub(crate) use unique::step_by_scan;
pub use unique::{put_by_update, Unique};
pub(crate) use write::Part;
pub use write::{Change, MarkedUpdater, Predicate, Preparation, Previous, ReadyMark, Updater};
