//! Bounds of a table: lifetimes of objects, and limits of size and memory.
//!
//! ```text
//!  bounded   table → store → Bounded → index                a value: object ║ stamp
//!  and watched       store → Bounded → WatchedIndex → History → store → the same index
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `clock` | the time |
//! | `stamp` | the stamp after an object: its times |
//! | `layer` | the shared state of a bounded store: settings, and the wheel |
//! | `bounded` | the index of a bounded table |
//! | `wheel` | timers |
//! | `change_cause` | why a change is made, for feeds |
//! | `quota` | the limits of a table, and what it has |
//! | `heat` | how often, or when, keys were used |
//! | `sieve` | in which order SIEVE evicts keys |
//! | `policies` | the data of the table's policy, of the size that it needs |
//! | `candidates` | the choice of objects to evict |
//!
//! # Definitions
//!
//! - *Deadline* of an object: the time from which on it is *expired*. An expired object may still
//!   be in the index.
//! - *Stamp*: the bytes after an object in a bounded table's index. They are one more term, a
//!   binary. So code that walks over the terms of a value needs no special case.
//! - *Timer*: a key and a time in the wheel. It is an object's own timer if the object's stamp is
//!   `armed` with that time.
//!
//! # Invariants (docs/design.md §5.8.2)
//!
//! * EX1: All values of a bounded store's index have a stamp. No code above `Bounded` sees it.
//! * EX2: For all code above `Bounded` an expired object is absent.
//! * EX3: An object with a deadline has one timer of its own, whose time is the deadline or
//!   earlier. (Or the thread that wrote the object is about to put it in the wheel.)
//! * EX4: An expired object is removed under the lock of its entry, if its deadline has passed
//!   then.
//! * EX5: Deadlines are changed under the lock of the entry. Without a write to the table, the
//!   deadline of an object that is not expired only grows.
//!
//! Linearisation point of an expiry: the instant of the deadline. The removal that follows changes
//! nothing that can be observed, except sizes and the feed.
//!
//! # Steps of an expiry (docs/design.md §5.8.4)
//!
//! * ex1: The expirer (see `ops::expirer`) turns the wheel, and takes a chunk of timers.
//! * ex2: Lock the entry of each timer's key. If there is an object, the timer is its own, and its
//!   deadline has passed, remove the object by `EngineTable::remove_one`.
//! * ex3: If the deadline was moved, arm the stamp with it, and add a new timer.
//!
//! A write that replaces an object keeps its timer if that is early enough. So a key that is
//! written all the time has one timer, which costs one additional write each time it is due.

mod bounded;
mod candidates;
mod change_cause;
mod clock;
mod heat;
mod layer;
mod policies;
mod quota;
mod sieve;
mod stamp;
mod wheel;

pub(crate) use bounded::{bound, Bounded};
pub(crate) use candidates::Victim;
pub(crate) use change_cause::{take_cause, ChangeCause};
pub use clock::advance as advance_clock;
pub(crate) use clock::now;
pub(crate) use layer::{BoundState, TimerAction};
pub(crate) use quota::{weight, weight_of_stamped, Quota, SpaceNeeded};
pub(crate) use stamp::{object_of, ObjectTimes, NEVER};
pub(crate) use wheel::{timers, TurnResult};
