//! Transactions: begun, committed, ended. What runs between is Erlang's (`larder_transaction`).
//!
//! A transaction is a resource. If its process dies, the resource goes, and with it the views and
//! the snapshots: nothing of it was seen.

use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::resource::Registered;
use crate::sys::*;
use crate::tables::{self, owners::ENGINE, who};
use crate::terms::atoms;
use larder::{Error, Outcome, Table, Transaction, Turn};
use parking_lot::Mutex;
use std::sync::Arc;

/// Keys that are written by a commit on the scheduler that asks for it. More take a dirty one.
const FEW: usize = 500;

/// A transaction, and the turn, if it has it.
pub struct Running {
    tables: Vec<Arc<Table>>,
    transaction: Transaction,
    turn: Mutex<Option<Turn>>,
}

/// Transactions.
pub static TRANSACTIONS: Registered<Running> = Registered::new();

/// begin_transaction(Tables, Urgent) -> {Transaction, Views} | wait. It is urgent when it has lost
/// so often that others have to wait for it.
pub fn begin(call: &Call<'_>) -> Reply {
    let tables = tables::get_all(call, call.args[0], |_| Ok(()))?;
    let turn = if call.args[1] == atoms::TRUE.word() {
        Turn::take()
    } else {
        None
    };
    if turn.is_none() && Turn::is_taken() {
        return Ok(atoms::WAIT.word());
    }
    let transaction = match ENGINE.begin(&tables.iter().collect::<Vec<_>>(), who(call)) {
        Ok(transaction) => transaction,
        Err(error) => return Err(refused(call, &tables, &error)),
    };
    let views: Vec<Word> = transaction
        .views()
        .map(|view| tables::term(call.env, view))
        .collect();
    let running = TRANSACTIONS.make(Running {
        tables,
        transaction,
        turn: Mutex::new(turn),
    });
    Ok(call.tuple(&[running.term(call.env), call.list(&views)]))
}

/// What the engine refused for some tables: each may be in the way of the call.
pub(super) fn refused(call: &Call<'_>, tables: &[Arc<Table>], error: &Error) -> Raise {
    for table in tables {
        if let Raise::Again = tables::refused(call, table, error) {
            return Raise::Again;
        }
    }
    match tables.first() {
        Some(table) => tables::refused(call, table, error),
        None => BADARG,
    }
}

fn running<'c>(call: &'c Call<'_>) -> Result<&'c Running, Raise> {
    TRANSACTIONS.get(call.env, call.args[0]).ok_or(BADARG)
}

/// commit_transaction(Transaction) -> boolean(): false if it has lost.
pub fn commit(call: &Call<'_>) -> Reply {
    if running(call)?.transaction.keys_written() > FEW {
        // The locks of its keys are held throughout, so it is not done in slices.
        return Ok(call.later(entry::commit_large, call.args));
    }
    commit_large(call)
}

/// As `commit`, on a dirty scheduler.
pub fn commit_large(call: &Call<'_>) -> Reply {
    let running = running(call)?;
    match running.transaction.commit() {
        Ok(outcome) => {
            drop(running.turn.lock().take());
            Ok(boolean(outcome == Outcome::Committed))
        }
        Err(error) => Err(refused(call, &running.tables, &error)),
    }
}

/// end_transaction(Transaction) -> true. It had no effect, unless it was committed.
pub fn end(call: &Call<'_>) -> Reply {
    let running = running(call)?;
    running.transaction.end();
    drop(running.turn.lock().take());
    Ok(atoms::TRUE.word())
}
