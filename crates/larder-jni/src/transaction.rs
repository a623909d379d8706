//! Transactions, and lists of conditional operations.

use crate::failure::Failure;
use crate::handles::{self, with, with_other, world, Handle};
use crate::item::Item;
use crate::wire::Request;
use larder::api::{Table, Transaction};
use larder::Error;
use larder_term::Term;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// A transaction in progress, and the numbers of its views, in the order of its tables.
pub(crate) struct Attempt {
    transaction: Transaction,
    views: Vec<i64>,
}

impl Attempt {
    /// Gives the views of this attempt their numbers.
    fn open_views(&mut self) -> Result<(), Failure> {
        for view in self.transaction.views() {
            self.views
                .push(handles::open(Handle::of_view(view.clone()))?);
        }
        Ok(())
    }

    /// Closes the views' numbers. Waits for the calls that use them.
    fn close_views(&mut self) {
        self.views.drain(..).for_each(|view| {
            handles::close(view);
        });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.close_views();
    }
}

/// The table of a number.
fn table_of(id: i64) -> Result<Table, Failure> {
    with(id, |handle| Ok(handle.table.clone()))
}

/// Begins a transaction on the tables of these numbers. Returns its number. Calls `visit` with the
/// numbers of its views.
pub(crate) fn begin(tables: &[i64], visit: impl FnMut(i64)) -> Result<i64, Failure> {
    let tables: Vec<Table> = tables
        .iter()
        .copied()
        .map(table_of)
        .collect::<Result<_, _>>()?;
    // If anything below fails, the attempt is dropped: its views are closed, and the transaction
    // has no effect.
    let mut attempt = Attempt {
        transaction: world().begin(&tables.iter().collect::<Vec<_>>())?,
        views: Vec::new(),
    };
    attempt.open_views()?;
    attempt.views.iter().copied().for_each(visit);
    handles::open_other(Mutex::new(attempt))
}

/// Commits a transaction, and ends its views. Returns whether it took effect. If it didn't, it has
/// begun again; `visit` is called with the numbers of its new views.
pub(crate) fn commit(id: i64, visit: impl FnMut(i64)) -> Result<bool, Failure> {
    with_other(id, |attempt: &Mutex<Attempt>| {
        // If a thread panicked, the transaction was either committed or not. Both states are
        // complete.
        let mut attempt = attempt.lock().unwrap_or_else(PoisonError::into_inner);
        // Close the views before the commit. Calls of other threads on them end, and what they
        // wrote is committed. Later ones find the number closed.
        attempt.close_views();
        if attempt.transaction.commit()? {
            return Ok(true);
        }
        // The transaction has begun again, at a later instant. Its views are others, so that a view
        // that was kept from the lost attempt can't write to this one.
        attempt.open_views()?;
        attempt.views.iter().copied().for_each(visit);
        Ok(false)
    })
}

/// One of a list of conditional operations.
enum Step<'a> {
    /// The rows under a key have to be these.
    Check(Term, Vec<Term>),
    Put(Term),
    PutNew(Term),
    Remove(Term),
    /// The increment, and whether the sum is an `int` of Java.
    Add(Item<'a>, i64, bool),
    /// There has to be a row.
    AddIfPresent(Item<'a>, i64, bool),
}

const CHECK: u8 = 0;
const PUT: u8 = 1;
const PUT_NEW: u8 = 2;
const REMOVE: u8 = 3;
const ADD: u8 = 4;
const ADD_IF_PRESENT: u8 = 5;

impl<'a> Step<'a> {
    fn read(request: &mut Request<'a>) -> Result<Self, Failure> {
        let kind = request.byte()?;
        let key = request.item()?;
        match kind {
            CHECK => {
                let value = request.optional_item()?;
                let rows = value.into_iter().map(|value| row(key, value)).collect();
                Ok(Step::Check(key.term(), rows))
            }
            PUT => Ok(Step::Put(row(key, request.item()?))),
            PUT_NEW => Ok(Step::PutNew(row(key, request.item()?))),
            REMOVE => Ok(Step::Remove(key.term())),
            ADD => Ok(Step::Add(key, request.long()?, request.byte()? != 0)),
            ADD_IF_PRESENT => {
                let increment = request.long()?;
                Ok(Step::AddIfPresent(key, increment, request.byte()? != 0))
            }
            _ => Err(Failure::Argument(format!("there is no operation {kind}"))),
        }
    }
}

fn row(key: Item<'_>, value: Item<'_>) -> Term {
    Term::tuple([key.term(), value.term()])
}

/// Performs a list of operations at one instant, if the conditions of all hold: the number of
/// tables, their numbers, the number of operations; of each, the index of its table and what it
/// does. Returns the number, from 1, of the first whose condition didn't hold.
pub(crate) fn commit_operations(request: &mut Request<'_>) -> Result<Option<usize>, Failure> {
    let tables = (0..request.int()?).map(|_| table_of(request.long()?));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    // A step of the engine's list may fail with the engine's errors alone. If a sum fails for
    // another reason, the step fails with `NotInteger`, and the reason is kept here.
    let failed = Cell::new(None);
    let add = |view: &Table, key, increment, is_int| {
        let view = Handle::of_view(view.clone());
        let sum = view.add(key, increment, is_int);
        sum.map_err(|failure| match failure {
            Failure::Engine(error) => error,
            other => {
                failed.set(Some(other));
                Error::NotInteger
            }
        })
    };
    let mut operations = world().operations();
    for _ in 0..request.int()? {
        // Tables are named once. Each operation has its table's index in that list.
        let index = request.int()? as usize;
        let table = tables.get(index).ok_or(Failure::Closed)?;
        operations = match Step::read(request)? {
            Step::Check(key, rows) => operations.check(table, &key, &rows),
            Step::Put(row) => operations.insert(table, &row),
            Step::PutNew(row) => operations.insert_new(table, &row),
            Step::Remove(key) => operations.delete(table, &key),
            // The engine has no addition that wraps. The step reads and writes by the view it is
            // given, within the same commit.
            Step::Add(key, increment, is_int) => operations.run(table, &key.term(), move |view| {
                add(view, key, increment, is_int).map(|_sum| true)
            }),
            Step::AddIfPresent(key, increment, is_int) => {
                operations.run(table, &key.term(), move |view| {
                    let is_present = view.contains(&key.term())?;
                    if is_present {
                        add(view, key, increment, is_int)?;
                    }
                    Ok(is_present)
                })
            }
        };
    }
    let committed = operations.commit();
    // The reason that was kept says more than the engine's error.
    match failed.take() {
        Some(failure) => Err(failure),
        None => Ok(committed?),
    }
}
