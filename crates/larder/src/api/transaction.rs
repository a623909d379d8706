//! Transactions: several reads and writes at one instant.

use super::{patiently, Larder, Table};
use crate::error::Error;
use crate::versions::{Outcome, Turn};
use larder_index::sync::give_way;
use std::time::Duration;

/// Attempts after which a transaction that loses makes others wait.
// The model checker's threads have no clock in common.
const PATIENCE: u32 = if cfg!(larder_model) { u32::MAX } else { 10 };

impl Larder {
    /// Calls `f` with views of the tables, and makes what it writes to them take effect at one
    /// instant. If others have changed what it has read, it had no effect, and `f` is called again.
    /// If `f` fails it had no effect either.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let (from, to) = (larder.table("from").create()?, larder.table("to").create()?);
    /// from.insert(&term!({alice, 10}))?;
    /// to.insert(&term!({bob, 0}))?;
    /// larder.transaction(&[&from, &to], |views| {
    ///     views[0].add(&term!(alice), 2, -3)?;
    ///     views[1].add(&term!(bob), 2, 3)
    /// })?;
    /// assert_eq!(from.lookup(&term!(alice))?, [term!({alice, 7})]);
    /// assert_eq!(to.lookup(&term!(bob))?, [term!({bob, 3})]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `f` answers; `NoTable`; `TableType` for a table on a structure of the studies, and for
    /// a snapshot; `BadOption` if a table is named twice.
    ///
    /// # Consistency
    /// Transactions are serialisable, among themselves and with operations on one key. `f` sees the
    /// tables as of one instant, with its own writes. Ranges and absences count as read.
    ///
    /// Views may be handed to other threads while `f` runs. But ranks (`rank`, `nth`, `slice`,
    /// `count_range`) take one call at a time for granted: of a view to which another thread writes
    /// meanwhile, they may be wrong, then and for the rest of the attempt. What was counted counts
    /// as read all the same.
    pub fn transaction<R>(
        &self,
        tables: &[&Table],
        mut f: impl FnMut(&[Table]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let engine_tables: Vec<_> = tables.iter().map(|table| table.engine_table()).collect();
        for attempt in 0.. {
            let _turn = turn(attempt);
            let begin = || self.engine().begin(&engine_tables, self.owner());
            let transaction = patiently(&engine_tables, begin)?;
            let view = |view| Table::new(view, &self.0);
            let views: Vec<Table> = transaction.views().cloned().map(view).collect();
            let result = f(&views)?;
            let outcome = patiently(&engine_tables, || transaction.commit())?;
            if outcome == Outcome::Committed {
                return Ok(result);
            }
            give_way();
        }
        unreachable!("attempts are not counted so far")
    }
}

/// The turn, if so many attempts were lost that others have to wait; waits if somebody else has it.
pub(super) fn turn(attempts: u32) -> Option<Turn> {
    let turn = (attempts > PATIENCE).then(Turn::take).flatten();
    while turn.is_none() && Turn::is_taken() {
        std::thread::sleep(Duration::from_micros(100));
    }
    turn
}
