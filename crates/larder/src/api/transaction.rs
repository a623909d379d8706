//! Transactions: several reads and writes at one instant.

use super::{patiently, Larder, Table};
use crate::error::Error;
use crate::table::Table as EngineTable;
use crate::versions::{Outcome, Transaction as UnderWay, Turn};
use larder_index::sync::give_way;
use std::fmt;
use std::sync::Arc;
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
        let mut transaction = self.begin(tables)?;
        loop {
            let result = f(transaction.views())?;
            if transaction.commit()? {
                return Ok(result);
            }
        }
    }

    /// Begins a transaction that is ended by hand, for what can't be one function.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let stock = larder.table("stock").create()?;
    /// let mut transaction = larder.begin(&[&stock])?;
    /// loop {
    ///     transaction.views()[0].insert(&term!({pears, 3}))?;
    ///     assert!(stock.is_empty());
    ///     if transaction.commit()? {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(stock.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As of [`transaction`](Self::transaction), but for what its function answers.
    pub fn begin(&self, tables: &[&Table]) -> Result<Transaction, Error> {
        let tables = tables.iter().map(|table| Arc::clone(table.engine_table()));
        let mut transaction = Transaction {
            larder: self.clone(),
            tables: tables.collect(),
            views: Vec::new(),
            under_way: None,
            attempts: 0,
            turn: None,
        };
        transaction.attempt()?;
        Ok(transaction)
    }
}

/// A transaction under way: [`Larder::begin`]. Dropped before its commit, it had no effect.
pub struct Transaction {
    larder: Larder,
    tables: Vec<Arc<EngineTable>>,
    views: Vec<Table>,
    /// None after a commit.
    under_way: Option<UnderWay>,
    /// How many were begun.
    attempts: u32,
    turn: Option<Turn>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction on {:?}", self.tables)
    }
}

impl Transaction {
    /// The views of the tables, in their order.
    pub fn views(&self) -> &[Table] {
        &self.views
    }

    /// Whether nobody has changed what was read or written so far: for one that takes long, and
    /// would rather begin anew at once than at its end. If nobody has, somebody may at any moment.
    /// A transaction that has written nothing needs no such thing: it is as of its beginning.
    ///
    /// # Errors
    /// `NoTable` if one of the tables is gone, or the transaction has ended.
    pub fn validate(&self) -> Result<bool, Error> {
        let under_way = self.under_way.as_ref().ok_or(Error::NoTable)?;
        let tables: Vec<_> = self.tables.iter().collect();
        patiently(&tables, || under_way.validate())
    }

    /// Makes what was written to the views take effect at one instant. False if others have changed
    /// what was read: then nothing has happened, and the transaction has begun anew, with new
    /// views. After success the views are gone.
    ///
    /// # Errors
    /// `NoTable` if one of the tables is gone, or the transaction has ended; `NotUnique` if another
    /// row has the value of one that was written, in a unique index; `Full` if a table has no room
    /// for what is new. Nothing has happened then, and the transaction has ended.
    pub fn commit(&mut self) -> Result<bool, Error> {
        let under_way = self.under_way.take().ok_or(Error::NoTable)?;
        let tables: Vec<_> = self.tables.iter().collect();
        let outcome = patiently(&tables, || under_way.commit());
        drop(under_way);
        self.turn = None;
        if outcome? == Outcome::Committed {
            return Ok(true);
        }
        give_way();
        self.attempt()?;
        Ok(false)
    }

    /// Begins, for the first time or anew.
    fn attempt(&mut self) -> Result<(), Error> {
        self.turn = turn(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        let tables: Vec<_> = self.tables.iter().collect();
        let begin = || self.larder.engine().begin(&tables, self.larder.owner());
        let under_way = patiently(&tables, begin)?;
        let view = |view| Table::new(view, &self.larder.0);
        self.views = under_way.views().cloned().map(view).collect();
        self.under_way = Some(under_way);
        Ok(())
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
