//! Bounded tables: limits of the lifetime of tuples.

use super::Table;
use crate::error::Error;
use crate::ops::TimeLeft;
use crate::options::Bounds;
use larder_term::AsTerm;
use std::time::Duration;

/// A lifetime in whole milliseconds, of which a part counts as one: only no time is none. A longer
/// one is cut to the longest that can be stored.
pub(super) fn ms(time: Option<Duration>) -> Option<u64> {
    let ms = |time: Duration| time.as_nanos().div_ceil(1_000_000);
    time.map(|time| u64::try_from(ms(time)).unwrap_or(u64::MAX))
}

/// Operations of a bounded table: one that was created with [`Builder::ttl`](super::Builder::ttl),
/// [`Builder::idle`](super::Builder::idle) or [`Builder::bounds`](super::Builder::bounds).
///
/// ```
/// use larder::api::Larder;
/// use larder::TimeLeft;
/// use larder::term;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), larder::Error> {
/// let sessions = Larder::new().table("sessions").ttl(Duration::from_secs(3600)).create()?;
/// sessions.insert(&term!({1, ann}))?;
/// sessions.insert_with(&term!({2, bob}), Some(Duration::ZERO))?;
/// assert!(sessions.contains(&term!(1))?);
/// assert!(!sessions.contains(&term!(2))?);
/// assert!(sessions.expire(&term!(1), None)?);
/// assert_eq!(sessions.time_left(&term!(1))?, TimeLeft::Unlimited);
/// # Ok(()) }
/// ```
impl Table {
    /// Inserts a tuple with a lifetime of its own, in place of the table's `ttl`. With `None`, the
    /// tuple doesn't expire. In a transaction, the lifetime begins at the commit. Atomic.
    ///
    /// # Errors
    /// As `insert`; `Unbounded` if the table has no bounds.
    pub fn insert_with(&self, tuple: &impl AsTerm, ttl: Option<Duration>) -> Result<(), Error> {
        let object = self.object(tuple)?;
        let table = self.engine_table();
        self.patiently(|| table.insert_with(self.me(), &object, ms(ttl)))
    }

    /// Sets the remaining lifetime of the tuple under a key. With `None`, the tuple doesn't expire.
    /// In a transaction, the lifetime begins at the commit. Returns whether there is such a tuple.
    /// Feeds get no event for this. O(1) (ordered_set: O(log n)).
    ///
    /// # Errors
    /// `NoTable`; `Unbounded` if the table has no bounds; `ReadOnly` for a snapshot.
    pub fn expire(&self, key: &impl AsTerm, ttl: Option<Duration>) -> Result<bool, Error> {
        let key = self.key(key);
        let table = self.engine_table();
        self.patiently(|| table.expire(self.me(), &key, ms(ttl)))
    }

    /// Returns the remaining lifetime of the tuple under a key. Like `contains`, this doesn't count
    /// as a read for `idle`. In a snapshot or a transaction, it is the lifetime as of its instant;
    /// that of what the transaction has written counts from the commit.
    ///
    /// # Errors
    /// `NoTable`; `Unbounded` if the table has no bounds.
    pub fn time_left(&self, key: &impl AsTerm) -> Result<TimeLeft, Error> {
        let key = self.key(key);
        let table = self.engine_table();
        self.patiently(|| table.time_left(self.me(), &key))
    }

    /// Sets the bounds of a bounded table, all of them: `None` in place of limits removes
    /// those that the table has. They apply to tuples written from now on. Existing tuples keep
    /// their lifetimes.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`; `Unlimited` for limits if the table was created without limits,
    /// `Unbounded` for lifetimes alone if it was created without bounds; `BadOption` for a limit of
    /// 0; `ReadOnly` for a snapshot, `View` in a transaction.
    pub fn set_bounds(&self, bounds: &Bounds) -> Result<(), Error> {
        self.engine_table().set_bounds(self.me(), bounds)
    }
}
