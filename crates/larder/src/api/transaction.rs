//! Transactions: several reads and writes that take effect at one instant.

use super::{patiently, Larder, Table};
use crate::error::Error;
use crate::table::EngineTable;
use crate::versions::{CommitOutcome, EngineTransaction, Turn};
use larder_index::sync::yield_now;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The number of lost attempts after which a transaction takes the turn, so that others wait.
// The model checker's threads have no clock in common.
const PATIENCE: u32 = if cfg!(larder_model) { u32::MAX } else { 10 };

impl Larder {
    /// Calls `f` with views of the tables. When `f` returns, its writes to the views take effect at
    /// one instant. If other threads have changed what `f` has read, its writes have no effect, and
    /// `f` is called again. If `f` fails, its writes have no effect.
    ///
    /// No lookup, snapshot or transaction sees a part of the writes. A scan of a table itself may.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
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
    /// The errors of `f`; `NoTable`; `Full` and `NotUnique` if the writes are refused; `TableType`
    /// for a table on a structure of the studies, and for a snapshot; `BadOption` if a table is
    /// given twice.
    ///
    /// # Consistency
    /// Transactions are serialisable, also with operations on single keys. `f` sees the tables as
    /// of one instant, with its own writes. Ranges and absent keys count as read.
    ///
    /// Views may be passed to other threads while `f` runs. But ranks (`rank`, `nth`, `slice`,
    /// `count_range`) assume one call at a time. If another thread writes to a view meanwhile, its
    /// ranks may be wrong for the rest of the attempt. The entries that were counted are still part
    /// of the read set.
    pub fn transaction<R>(
        &self,
        tables: &[&Table],
        f: impl FnMut(&[Table]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.try_transaction(tables, f)
    }

    /// As [`transaction`](Self::transaction), with an error type of the program's own, by which `f`
    /// can say why it writes nothing.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Failed {
    ///     TooFew,
    ///     Table(larder::Error),
    /// }
    /// impl From<larder::Error> for Failed {
    ///     fn from(error: larder::Error) -> Self {
    ///         Failed::Table(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let stock = larder.table("stock").create()?;
    /// stock.insert(&term!({pears, 3}))?;
    /// let sold = larder.try_transaction(&[&stock], |views| {
    ///     let left = views[0].add(&term!(pears), 2, -5)?;
    ///     if left < term!(0) {
    ///         return Err(Failed::TooFew);
    ///     }
    ///     Ok(())
    /// });
    /// assert_eq!(sold, Err(Failed::TooFew));
    /// assert_eq!(stock.lookup(&term!(pears))?, [term!({pears, 3})]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of `f`; those of `transaction`, converted.
    ///
    /// # Consistency
    /// That of `transaction`.
    pub fn try_transaction<R, E: From<Error>>(
        &self,
        tables: &[&Table],
        mut f: impl FnMut(&[Table]) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut transaction = self.begin(tables)?;
        // `f` runs again from its beginning, with new views, until its reads still hold at the
        // commit.
        loop {
            let result = f(transaction.views())?;
            if transaction.commit()? {
                return Ok(result);
            }
        }
    }

    /// Begins a transaction that the caller commits, for code that can't be put into one function.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
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
    /// Those of [`transaction`](Self::transaction), except the errors of its function.
    pub fn begin(&self, tables: &[&Table]) -> Result<Transaction, Error> {
        let tables = tables.iter().map(|table| Arc::clone(table.engine_table()));
        let mut transaction = Transaction {
            larder: self.clone(),
            tables: tables.collect(),
            views: Vec::new(),
            current: None,
            attempts: 0,
            turn: None,
        };
        transaction.attempt()?;
        Ok(transaction)
    }
}

/// A transaction that was begun with [`Larder::begin`]. If it is dropped before its commit, it has
/// no effect.
pub struct Transaction {
    larder: Larder,
    tables: Vec<Arc<EngineTable>>,
    views: Vec<Table>,
    /// `None` after a commit.
    current: Option<EngineTransaction>,
    /// The number of attempts so far.
    attempts: u32,
    turn: Option<Turn>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction on {:?}", self.tables)
    }
}

impl Transaction {
    /// The views of the tables, in the order in which the tables were given.
    pub fn views(&self) -> &[Table] {
        &self.views
    }

    /// Returns whether everything that was read or written so far is unchanged. A long transaction
    /// can call this to find out before its end that it has lost. Even after `true`, another thread
    /// may change something at any moment. A transaction without writes doesn't need this: it sees
    /// the tables as of its beginning, and its commit succeeds whatever this returns. Linear in
    /// what was read and written.
    ///
    /// # Errors
    /// `NoTable` if one of the tables was dropped, or if the transaction has ended.
    pub fn validate(&self) -> Result<bool, Error> {
        let current = self.current.as_ref().ok_or(Error::NoTable)?;
        let tables: Vec<_> = self.tables.iter().collect();
        patiently(&tables, || current.validate())
    }

    /// Makes the writes to the views take effect at one instant. Returns `false` if other threads
    /// have changed what was read. In that case nothing has happened, and the transaction has begun
    /// again, with new views. After a success the views are gone.
    ///
    /// # Errors
    /// `NoTable` if one of the tables was dropped, or if the transaction has ended; `NotUnique` if
    /// another tuple has a value that was written, in a unique index; `Full` if a table has no room
    /// for the new tuples. In each case nothing has happened, and the transaction has ended.
    ///
    /// # Complexity
    /// Linear in what was read, and an `insert` for each tuple that was written. The keys that were
    /// written are locked meanwhile. A transaction that has lost more than ten times has priority:
    /// for at most 100 ms no other one begins.
    pub fn commit(&mut self) -> Result<bool, Error> {
        // Without an attempt in progress, the transaction has ended.
        let current = self.current.take().ok_or(Error::NoTable)?;
        // The views end with the attempt. If nobody else has them, their stores are dropped with
        // it, by this thread, and not later by any thread.
        self.views.clear();
        let tables: Vec<_> = self.tables.iter().collect();
        let outcome = patiently(&tables, || current.commit());
        // Release what the attempt holds before the next one begins, and let others have the turn.
        drop(current);
        self.turn = None;
        if outcome? == CommitOutcome::Committed {
            return Ok(true);
        }
        // Another thread has written. Let it go on before the next attempt.
        yield_now();
        self.attempt()?;
        Ok(false)
    }

    /// Begins an attempt.
    fn attempt(&mut self) -> Result<(), Error> {
        // After several failed attempts, take turns with other transactions, so that one of them
        // succeeds.
        self.turn = turn(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        let tables: Vec<_> = self.tables.iter().collect();
        let begin = || self.larder.engine().begin(&tables, self.larder.owner());
        let current = patiently(&tables, begin)?;
        let view = |view| Table::new(view, &self.larder.0);
        self.views = current.views().cloned().map(view).collect();
        self.current = Some(current);
        Ok(())
    }
}

thread_local! {
    /// The end of the turn that this thread has taken last.
    static MINE: Cell<u64> = const { Cell::new(0) };
}

/// Takes the turn, if enough attempts were lost. Otherwise waits while a transaction of another
/// thread has the turn. It doesn't wait if this thread has taken the turn: that transaction can't
/// end before what begins within it.
pub(super) fn turn(attempts: u32) -> Option<Turn> {
    let turn = (attempts > PATIENCE).then(Turn::take).flatten();
    if let Some(turn) = &turn {
        let _ = MINE.try_with(|mine| mine.set(turn.end()));
    }
    let is_mine = |end| MINE.try_with(Cell::get) == Ok(end);
    while turn.is_none() && Turn::taken().is_some_and(|end| !is_mine(end)) {
        std::thread::sleep(Duration::from_micros(100));
    }
    turn
}
