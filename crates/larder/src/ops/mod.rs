//! Operations by key, each written once.
//!
//! | file | operations |
//! |---|---|
//! | `begin` | how each begins, and how a write looks again |
//! | `lookup` | lookup, lookup_many, member, lookup_elements |
//! | `insert` | insert, insert_new |
//! | `delete`, `take` | delete, delete_object, delete_all_objects; take |
//! | `update` | update_counter, update_element, update_map |
//! | `exchange` | exchange, compute |
//! | `lifetime` | the lifetimes of a bounded table's objects |
//! | `expire` | the removal of what is expired |
//! | `evict` | what a table with limits has too much |
//! | `expirer` | the thread that removes objects that have expired, or are too many |
//! | `rank` | rank, nth, count_range, slice |
//! | `step`, `slot` | first, next, last, prev; slot |
//! | `change` | what every change of an entry goes through |
//! | `refusal` | whether there is room for a change, and unique indexes admit it |
//! | `identity` | whether two objects are the same |

mod begin;
mod change;
mod delete;
mod evict;
mod exchange;
mod expire;
pub(crate) mod expirer;
mod identity;
mod insert;
mod lifetime;
mod lookup;
mod rank;
mod refusal;
mod slot;
mod step;
mod take;
mod update;

pub(crate) use begin::{fence_after_lock, Admission, Intent, Operation};
pub(crate) use change::{EditBuffer, NewValue, ValueList};
pub use exchange::Decision;
pub use lifetime::TimeLeft;
pub(crate) use lookup::copy_of;
pub(crate) use refusal::Written;
pub use slot::Slot;
pub use update::{CounterOp, CounterOps, MapChange, MapHost, MapOp, NewRow, SmallOp, Sorted, Sums};
