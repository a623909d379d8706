//! Beginning, committing and ending transactions. Erlang runs what is in between
//! (`larder_transaction`).
//!
//! A transaction is a resource. If its process dies, the resource is dropped, with the views and
//! the snapshots, and the transaction has had no effect.

use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::resource::Registered;
use crate::sys::*;
use crate::tables::{self, caller_id, owners::ENGINE};
use crate::terms::atoms;
use larder::host::{Budget, CommitOutcome, EngineTable, EngineTransaction, Error, Turn};
use parking_lot::Mutex;
use std::sync::Arc;

/// The greatest number of written keys of a commit that runs on a normal scheduler. One with more
/// keys runs on a dirty scheduler.
const MAX_INLINE_TRANSACTION_KEYS: usize = 500;

/// The number of keys whose validation takes as long as the write of one.
const VALIDATED_PER_WRITE: usize = 8;

/// The units of a time slice that the write of a key takes.
const UNITS_PER_WRITE: usize = 2;

/// A transaction, and its turn, if it has one.
pub struct Running {
    tables: Vec<Arc<EngineTable>>,
    /// `None` when it has ended. The resource may be garbage in its process's heap for a long time,
    /// and must not keep the contents of the tables meanwhile.
    transaction: Mutex<Option<EngineTransaction>>,
    turn: Mutex<Option<Turn>>,
}

/// The resource type of transactions.
pub static TRANSACTIONS: Registered<Running> = Registered::new();

/// begin_transaction(Tables, Urgent) -> {Transaction, Views} | wait. Urgent says that the
/// transaction has failed so often that others must wait for it.
pub fn begin(call: &Call<'_>) -> Reply {
    let tables = tables::get_all(call, call.args[0], |_| Ok(()))?;
    // An urgent transaction takes its turn before it begins.
    let turn = if call.args[1] == atoms::TRUE.word() {
        Turn::take()
    } else {
        None
    };
    // Another transaction has priority. The Erlang side waits, and calls again.
    if turn.is_none() && Turn::is_taken() {
        return Ok(atoms::WAIT.word());
    }
    let transaction = match ENGINE.begin(&tables.iter().collect::<Vec<_>>(), caller_id(call)) {
        Ok(transaction) => transaction,
        Err(error) => return Err(refused(call, &tables, &error)),
    };
    let views: Vec<Word> = transaction
        .views()
        .map(|view| tables::term(call.env, view))
        .collect();
    let running = TRANSACTIONS.make(Running {
        tables,
        transaction: Mutex::new(Some(transaction)),
        // The turn is given back when the transaction ends, or its process does.
        turn: Mutex::new(turn),
    });
    Ok(call.tuple(&[running.term(call.env), call.list(&views)]))
}

/// The exception for an error of the engine about some tables. Each of the tables may be what is in
/// the way of the call.
pub(super) fn refused(call: &Call<'_>, tables: &[Arc<EngineTable>], error: &Error) -> Raise {
    // A list may be in the way in any of them, and its process may be dead.
    if let Error::Busy = error {
        let mut budget = Budget::slice();
        for table in tables {
            table.help_batch(&mut budget);
        }
        return Raise::Again;
    }
    // The caller may be the heir of one of them, whose owner has just died.
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
    TRANSACTIONS.get(call, call.args[0]).ok_or(BADARG)
}

/// commit_transaction(Transaction) -> boolean(). `false` if there was a conflict.
pub fn commit(call: &Call<'_>) -> Reply {
    let writes = running(call)?.transaction.lock().as_ref().map_or(0, writes);
    if writes > MAX_INLINE_TRANSACTION_KEYS {
        // The commit holds the locks of its keys throughout, so it can't be run in slices.
        return Ok(call.later(entry::commit_large, call.args));
    }
    let reply = commit_large(call);
    call.spent((UNITS_PER_WRITE * writes) as u64);
    reply
}

/// The number of writes that take as long as a commit, which also validates what was read.
fn writes(transaction: &EngineTransaction) -> usize {
    match transaction.keys_written() {
        // What has only read isn't validated.
        0 => 0,
        written => written + transaction.keys_to_validate() / VALIDATED_PER_WRITE,
    }
}

/// As `commit`, on a dirty scheduler.
pub fn commit_large(call: &Call<'_>) -> Reply {
    let running = running(call)?;
    let transaction = running.transaction.lock();
    // One that has ended finds its tables gone, as its views do.
    let outcome = match &*transaction {
        Some(transaction) => transaction.commit(),
        None => Err(Error::NoTable),
    };
    match outcome {
        Ok(outcome) => {
            drop(running.turn.lock().take());
            Ok(boolean(outcome == CommitOutcome::Committed))
        }
        Err(error) => Err(refused(call, &running.tables, &error)),
    }
}

/// end_transaction(Transaction) -> true. Unless the transaction was committed, it has no effect.
pub fn end(call: &Call<'_>) -> Reply {
    let running = running(call)?;
    let ended = running.transaction.lock().take();
    drop(ended);
    drop(running.turn.lock().take());
    Ok(atoms::TRUE.word())
}
