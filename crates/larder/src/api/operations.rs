//! Lists of operations on keys that are known beforehand. They take effect together, or not at all.

use super::transaction::turn;
use super::{patiently, Larder, Table};
use crate::error::Error;
use crate::table::EngineTable;
use crate::versions::CommitOutcome;
use larder_index::sync::yield_now;
use larder_term::{AsTerm, Term};
use std::sync::Arc;

/// What one operation does.
enum OperationStep<'t> {
    Check(Term, Vec<Term>),
    Insert(Term),
    InsertNew(Term),
    Delete(Term),
    DeleteObject(Term),
    Add(Term, usize, i64),
    Update(Term, usize, Term),
    Run(Run<'t>),
}

type Run<'t> = Box<dyn Fn(&Table) -> Result<bool, Error> + 't>;

/// Operations that take effect together, or not at all; see [`Larder::operations`].
#[must_use = "nothing happens before `commit`"]
pub struct Operations<'t> {
    larder: Larder,
    tables: Vec<&'t Table>,
    /// The operations. Each comes with the place of its table in `tables`.
    steps: Vec<(usize, OperationStep<'t>)>,
    /// The keys that they use, with the places of their tables.
    keys: Vec<(usize, Vec<u8>)>,
    /// The first error: a tuple that isn't a tuple, or that has no key.
    wrong: Option<Error>,
}

impl Larder {
    /// Starts a list of operations that take effect at one instant, if the conditions of all of
    /// them hold. Each operation sees the effects of those before it. This costs less than a
    /// [`transaction`](Self::transaction): the keys are known, so nothing is run again because
    /// another thread has written them.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let (stock, orders) = (larder.table("stock").create()?, larder.table("orders").create()?);
    /// stock.insert(&term!({pears, 3}))?;
    /// let order = || {
    ///     larder
    ///         .operations()
    ///         .check(&stock, &term!(pears), &[term!({pears, 3})])
    ///         .add(&stock, &term!(pears), 2, -1)
    ///         .insert_new(&orders, &term!({1, pears}))
    ///         .commit()
    /// };
    /// assert_eq!(order()?, None);
    /// // There are two pears now: the first operation doesn't hold.
    /// assert_eq!(order()?, Some(1));
    /// assert_eq!(orders.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn operations<'t>(&self) -> Operations<'t> {
        Operations {
            larder: self.clone(),
            tables: Vec::new(),
            steps: Vec::new(),
            keys: Vec::new(),
            wrong: None,
        }
    }
}

impl<'t> Operations<'t> {
    /// Checks that the tuples under the key are these, in this order. If not, the list has no
    /// effect.
    pub fn check(self, table: &'t Table, key: &impl AsTerm, tuples: &[Term]) -> Self {
        let step = OperationStep::Check(Term::from(key.as_term()), tuples.to_vec());
        self.on_key(table, key, step)
    }

    /// Inserts a tuple; see [`Table::insert`].
    pub fn insert(self, table: &'t Table, tuple: &impl AsTerm) -> Self {
        self.on_tuple(table, tuple, OperationStep::Insert)
    }

    /// Inserts a tuple. If there is a tuple under its key, the list has no effect.
    pub fn insert_new(self, table: &'t Table, tuple: &impl AsTerm) -> Self {
        self.on_tuple(table, tuple, OperationStep::InsertNew)
    }

    /// Deletes the tuples under a key, if there are any.
    pub fn delete(self, table: &'t Table, key: &impl AsTerm) -> Self {
        let step = OperationStep::Delete(Term::from(key.as_term()));
        self.on_key(table, key, step)
    }

    /// Deletes a tuple that equals this one, if there is one; see [`Table::delete_object`].
    pub fn delete_object(self, table: &'t Table, tuple: &impl AsTerm) -> Self {
        self.on_tuple(table, tuple, OperationStep::DeleteObject)
    }

    /// Adds to the element at a position, from 1. If there is no tuple under the key, the list has
    /// no effect.
    pub fn add(self, table: &'t Table, key: &impl AsTerm, pos: usize, incr: i64) -> Self {
        let step = OperationStep::Add(Term::from(key.as_term()), pos, incr);
        self.on_key(table, key, step)
    }

    /// Replaces the element at a position, from 1. If there is no tuple under the key, the list has
    /// no effect.
    pub fn update(
        self,
        table: &'t Table,
        key: &impl AsTerm,
        pos: usize,
        element: &impl AsTerm,
    ) -> Self {
        // The list may outlive the arguments, so it has terms of its own.
        let (key_copy, element) = (Term::from(key.as_term()), Term::from(element.as_term()));
        self.on_key(table, key, OperationStep::Update(key_copy, pos, element))
    }

    /// Runs a function on a view of the table, for hosts whose values have operations of their own.
    /// It must only use the tuples under this key, and must not wait for another thread. If it
    /// returns `false`, the list has no effect.
    #[doc(hidden)]
    pub fn run(
        self,
        table: &'t Table,
        key: &impl AsTerm,
        f: impl Fn(&Table) -> Result<bool, Error> + 't,
    ) -> Self {
        self.on_key(table, key, OperationStep::Run(Box::new(f)))
    }

    fn on_key(mut self, table: &'t Table, key: &impl AsTerm, step: OperationStep<'t>) -> Self {
        let place = self.place(table);
        self.keys.push((place, table.key(key).to_vec()));
        self.steps.push((place, step));
        self
    }

    fn on_tuple(
        mut self,
        table: &'t Table,
        tuple: &impl AsTerm,
        step: impl FnOnce(Term) -> OperationStep<'t>,
    ) -> Self {
        let place = self.place(table);
        // The key is known now, so `commit` can lock it before any operation runs. Of several
        // errors it reports the first.
        match table.object(tuple) {
            Ok(object) => self.keys.push((place, object.key().to_vec())),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self.steps.push((place, step(Term::from(tuple.as_term()))));
        self
    }

    fn place(&mut self, table: &'t Table) -> usize {
        let is_same = |known: &&Table| Arc::ptr_eq(known.engine_table(), table.engine_table());
        self.tables.iter().position(is_same).unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        })
    }

    /// Performs the operations at one instant. Returns `None` if they took effect. Otherwise
    /// nothing has happened, and the result is the number, from 1, of the first operation whose
    /// condition didn't hold.
    ///
    /// # Errors
    /// Those of [`Larder::transaction`] and of each operation's function. Nothing has happened
    /// then.
    pub fn commit(self) -> Result<Option<usize>, Error> {
        if let Some(error) = self.wrong {
            return Err(error);
        }
        let (engine, owner) = (self.larder.engine(), self.larder.owner());
        let tables: Vec<_> = self
            .tables
            .iter()
            .map(|table| table.engine_table())
            .collect();
        let keys = self.keys.iter().map(|(table, key)| (*table, &key[..]));
        let keys: Vec<(usize, &[u8])> = keys.collect();
        for attempt in 0.. {
            // After some lost attempts, ask for priority.
            let _turn = turn(attempt);
            let mut stopped = Ok(None);
            let done = patiently(&tables, || {
                // The closure runs with all keys locked. Its answer decides whether anything is
                // written.
                engine.commit_on_keys(&tables, &keys, owner, |transaction| {
                    stopped = self.first_that_fails(&transaction.views().collect::<Vec<_>>());
                    stopped == Ok(None)
                })
            });
            // An attempt that has lost against another commit has changed nothing. Its answer is
            // void.
            match (stopped, done?) {
                (_, CommitOutcome::Conflict) => yield_now(),
                (stopped, CommitOutcome::Committed) => return stopped,
            }
        }
        unreachable!("the loop over the attempts has no end")
    }

    /// Runs the operations on views of the tables. Returns the number of the first one whose
    /// condition doesn't hold.
    fn first_that_fails(&self, views: &[&Arc<EngineTable>]) -> Result<Option<usize>, Error> {
        // In the given order. Each operation sees the effects of those before it.
        for (i, (place, step)) in self.steps.iter().enumerate() {
            // The view of the operation's table, which is the same for all of its operations.
            let view = Table::new(Arc::clone(views[*place]), &self.larder.0);
            if !step.run(&view)? {
                return Ok(Some(i + 1));
            }
        }
        Ok(None)
    }
}

impl OperationStep<'_> {
    /// Runs the operation on a view of its table. Returns whether its condition holds.
    fn run(&self, view: &Table) -> Result<bool, Error> {
        match self {
            // A check compares complete tuples, in order.
            OperationStep::Check(key, tuples) => return Ok(view.lookup(key)? == *tuples),
            OperationStep::Insert(tuple) => view.insert(tuple)?,
            OperationStep::InsertNew(tuple) => return view.insert_new(tuple),
            OperationStep::Delete(key) => drop(view.delete(key)?),
            OperationStep::DeleteObject(tuple) => drop(view.delete_object(tuple)?),
            // Without a tuple there is nothing to add to, and the list fails. That is no error.
            OperationStep::Add(key, pos, incr) => {
                if !view.contains(key)? {
                    return Ok(false);
                }
                view.add(key, *pos, *incr)?;
            }
            OperationStep::Update(key, pos, element) => return view.update(key, *pos, element),
            OperationStep::Run(f) => return f(view),
        }
        Ok(true)
    }
}
