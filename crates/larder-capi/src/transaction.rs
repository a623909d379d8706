//! Transactions: several reads and writes at one instant.

use crate::status::{free, guarded, guarded_or, Failure, Status};
use crate::table::{larder_table, tables_at};
use crate::terms::{at, at_mut};
use crate::view::{give, needed};
use larder::api::Transaction;

/// An open transaction. Only one thread at a time may use it.
pub struct larder_transaction {
    transaction: Transaction,
    /// Handles of its views. They stay in place when the transaction is restarted.
    views: Box<[larder_table]>,
}

impl larder_transaction {
    fn new(transaction: Transaction) -> Self {
        let views = transaction.views().iter().cloned();
        let views = views.map(larder_table::view).collect();
        larder_transaction { transaction, views }
    }

    /// Replaces the views of the last attempt by those of the next one. C has the addresses of the
    /// handles, and other threads may use them meanwhile, so the handles are only shared here.
    fn renew(&self) {
        for (table, view) in self.views.iter().zip(self.transaction.views()) {
            table.renew(view.clone());
        }
    }
}

/// Begins a transaction on `count` tables of one world, and writes a handle of it to
/// `*transaction`, which must be freed by `larder_transaction_free`. O(1) for each table. If a list
/// is being inserted into a table, the call first helps to finish that. While a transaction has
/// priority (see `larder_commit`), others wait here, for at most 100 ms.
///
/// In the transaction, use the tables that `larder_transaction_table` returns in place of the
/// others. They have the contents of one instant, and what the transaction itself has written,
/// which nobody else sees yet. Then call `larder_commit`, in a loop: `do { … } while ((status =
/// larder_commit(transaction)) == LARDER_CONFLICT);`
///
/// `LARDER_BAD_ARGUMENT` if `count` is 0. `LARDER_BAD_OPTION` if a table occurs twice.
/// `LARDER_TABLE_TYPE` if a table is a snapshot or belongs to a transaction, or has another
/// structure than the default.
///
/// # Safety
/// `tables` is null or has `count` pointers, each null or a handle that was not freed;
/// `transaction` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_begin(
    tables: *const *const larder_table,
    count: usize,
    transaction: *mut *mut larder_transaction,
) -> Status {
    guarded(|| {
        needed(transaction, "transaction")?;
        // SAFETY: by contract, `tables` is null or has `count` pointers, each null or a handle that
        // was not freed.
        let those = unsafe { tables_at(tables, count) }?;
        let Some(first) = those.first() else {
            let text = "count is 0: a transaction is on one table or more";
            return Err(Failure::new(Status::BadArgument, text));
        };
        let begun = larder_transaction::new(first.larder().begin(&Vec::from_iter(&those))?);
        // SAFETY: by the *out* contract of `transaction`.
        unsafe { give(transaction, Box::into_raw(Box::new(begun))) };
        Ok(Status::Ok)
    })
}

/// Returns the table to use in a transaction in place of the one at `index`, counted from 0, of
/// those on which it was begun; null if there is none. O(1). The table belongs to the transaction:
/// it must not be freed, and is valid as long as the transaction. It can't be dropped or renamed,
/// and has no snapshots, feeds or new indexes. Any number of threads may use it at once. But if one
/// of them writes while another reads by rank, ranks may be wrong for the rest of the attempt.
/// After the transaction has ended, the table returns `LARDER_NO_TABLE`.
///
/// # Safety
/// `transaction` is null, or one that was not freed and nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_transaction_table(
    transaction: *const larder_transaction,
    index: usize,
) -> *const larder_table {
    guarded_or(std::ptr::null(), || {
        // SAFETY: by the *exclusive handle* contract of `transaction`.
        let transaction = unsafe { at(transaction, "transaction") }?;
        let table = transaction.views.get(index);
        Ok(table.map_or(std::ptr::null(), std::ptr::from_ref))
    })
}

/// Checks whether anybody has changed what the transaction has read or written so far. `LARDER_OK`
/// if not, and `LARDER_CONFLICT` if somebody has: `larder_commit` would return that, too, if the
/// transaction has written anything. This doesn't restart the transaction. Use it in a long
/// transaction, to call `larder_commit` early, and so restart it. After `LARDER_OK`, others may
/// change the data at any moment. `LARDER_NO_TABLE` if a table was dropped, or the transaction has
/// ended. Linear in what was read and written.
///
/// # Safety
/// `transaction` is null, or one that was not freed and nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_validate(transaction: *const larder_transaction) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `transaction`.
        let handle = unsafe { at(transaction, "transaction") }?;
        match handle.transaction.validate()? {
            true => Ok(Status::Ok),
            false => Err(Failure::new(
                Status::Conflict,
                "others have changed what the transaction has read",
            )),
        }
    })
}

/// Commits a transaction. Its writes take effect at one instant, if nobody has changed what it has
/// read, including ranges and keys that don't exist. No lookup, snapshot or transaction of another
/// thread sees some of the writes without the others; a scan of a table may. Linear in what was
/// read; for each row that was written the cost of `larder_insert`. Others who read or write one of
/// these keys wait while the writes are applied. A transaction that has written nothing doesn't
/// fail.
///
/// `LARDER_CONFLICT` if somebody has. Then nothing has changed, and the transaction is restarted
/// with the contents of this moment. Its tables are the same pointers, and everything must be read
/// again. Scans of them have to be begun again. A transaction that fails more than ten times is
/// given priority: for at most 100 ms no other one begins.
///
/// Other threads may use the tables of the transaction meanwhile. A call that is under way when the
/// attempt ends may see rows as they are at that moment, some of the commit's among them. A later
/// one belongs to the next attempt, or returns `LARDER_NO_TABLE`; `larder_size` and `larder_memory`
/// may return 0. What is written to the attempt that ends may have no effect.
///
/// After any other status the transaction has ended, and must be freed. These are `LARDER_OK`, and
/// errors after which nothing has changed: `LARDER_NO_TABLE` (a table was dropped, or the
/// transaction had already ended), `LARDER_NOT_UNIQUE` and `LARDER_FULL`.
///
/// # Safety
/// `transaction` is null, or one that was not freed and nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_commit(transaction: *mut larder_transaction) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `transaction`.
        let handle = unsafe { at_mut(transaction, "transaction") }?;
        if handle.transaction.commit()? {
            return Ok(Status::Ok);
        }
        // The tables are the same pointers, with the contents of this moment.
        handle.renew();
        Err(Failure::new(
            Status::Conflict,
            "others have changed what the transaction has read; it has begun anew",
        ))
    })
}

/// Frees a transaction. If it wasn't committed, it has no effect. Does nothing if `transaction` is
/// null. Linear in what it has written.
///
/// # Safety
/// `transaction` is null, or came from `larder_begin` and was not freed; nobody uses it or its
/// tables any more.
#[no_mangle]
pub unsafe extern "C" fn larder_transaction_free(transaction: *mut larder_transaction) {
    // SAFETY: by contract, `transaction` is null, or one that was not freed and nobody uses any
    // more. `larder_begin` made it by `Box::into_raw`.
    unsafe { free(transaction) };
}
