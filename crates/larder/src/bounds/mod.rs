//! Bounds of a table: objects whose time is over, and when that is; how much there may be.
//!
//! ```text
//!  bounded   table → store → Bounded → index                a value: object ║ stamp
//!  and watched       store → Bounded → Watched → History → store → the same index
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `clock` | what time it is |
//! | `stamp` | what lies behind an object: its times |
//! | `layer` | what a bounded store shares: settings, and the wheel |
//! | `bounded` | the index of a bounded table |
//! | `wheel` | timers |
//! | `gone` | why an object goes, for feeds |
//! | `quota` | how much a table with limits has |
//! | `heat` | how often, or when, a key was met |
//! | `candidates` | which objects may go |
//!
//! # Definitions
//!
//! - *Deadline* of an object: the time from which on it is *expired*. An expired object may still
//!   be in the index.
//! - *Stamp*: the bytes behind an object in a bounded table's index. They are one more term, a
//!   binary, so what walks over a value's terms needs to know nothing of it.
//! - *Timer*: a key and a time in the wheel. It is an object's own if the object's stamp says
//!   `armed` with that time.
//!
//! # Invariants
//!
//! 1. All values of a bounded store's index have a stamp. Nobody above `Bounded` sees one.
//! 2. To all above `Bounded` an expired object is absent. So each operation is right by itself:
//!    `insert_new` succeeds in its place, and a write of the key begins with nothing.
//! 3. An object with a deadline has one timer of its own, at its deadline or before (or the thread
//!    that wrote it is about to put it in the wheel). Timers of others are dropped when their time
//!    comes.
//! 4. An object is removed under the lock of its entry, if its deadline has passed then: never one
//!    that was written, or given more time, in between.
//! 5. Deadlines are moved under the lock of the entry. Without a write of the table's, a deadline
//!    of an object that is not expired only moves on: no snapshot sees a difference.
//!
//! Linearisation point of an expiry: the instant of the deadline. The removal that follows changes
//! nothing that can be seen, but for sizes, and the feed.
//!
//! # Steps of an expiry
//!
//! 1. The wheel is turned, by the expirer (see `ops::expirer`), and gives a chunk of timers.
//! 2. Under the lock of each timer's key: if there is an object, the timer is its own, and its
//!    deadline has passed, the object is removed by way of the table's own commit. So snapshots
//!    keep it, and feeds tell it.
//! 3. If the deadline was moved, the stamp is armed with it, and there is a new timer.
//!
//! A write that finds an object with a timer that comes early enough leaves it at that. So a key
//! that is written all the time has one timer, which costs one more write each time it is due.

mod bounded;
mod candidates;
mod clock;
mod gone;
mod heat;
mod layer;
mod quota;
mod stamp;
mod wheel;

pub(crate) use bounded::{bound, Bounded};
pub(crate) use candidates::Victim;
pub use clock::advance as advance_clock;
pub(crate) use clock::now;
pub(crate) use gone::{take as take_gone, Gone};
pub(crate) use layer::{Due, Layer};
pub(crate) use quota::{weight, weight_of_stamped, Quota};
pub(crate) use stamp::{object_of, Stamp, FAR};
pub(crate) use wheel::timers;
