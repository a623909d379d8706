//! Transactions: several reads and writes at one instant.

use crate::status::{guarded, guarded_or, Failure, Status};
use crate::table::larder_table;
use crate::terms::{all_at, at, at_mut};
use crate::view::give;
use larder::api::{Table, Transaction};

/// A transaction under way. For one thread at a time.
pub struct larder_transaction {
    transaction: Transaction,
    /// Handles of its views; they stay in their places when it begins anew.
    views: Box<[larder_table]>,
}

impl larder_transaction {
    fn new(transaction: Transaction) -> Self {
        let views = transaction.views().iter();
        let views = views.map(|view| larder_table(view.clone(), None)).collect();
        larder_transaction { transaction, views }
    }

    /// Puts the views of the next attempt in the places of the last one's.
    fn renew(&mut self) {
        for (own, view) in self.views.iter_mut().zip(self.transaction.views()) {
            own.0 = view.clone();
        }
    }
}

/// Begins a transaction on `count` tables of one world, and puts a handle of it in `*transaction`,
/// to be given up with `larder_transaction_free`. O(1) for each table.
///
/// Read and write the tables that `larder_transaction_table` gives in their stead: they are as of
/// one instant, with what the transaction has written itself; nobody else sees that yet. Then
/// `larder_commit`, in a loop: `do { … } while ((status = larder_commit(transaction)) ==
/// LARDER_CONFLICT);`
///
/// `LARDER_BAD_OPTION` (a table twice), `LARDER_TABLE_TYPE`: a snapshot, or a table on a structure
/// other than the usual.
///
/// # Safety
/// `tables` is null or has `count` pointers, each null or a handle that was not given up;
/// `transaction` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_begin(
    tables: *const *const larder_table,
    count: usize,
    transaction: *mut *mut larder_transaction,
) -> Status {
    guarded(|| {
        if transaction.is_null() {
            return Err(Failure::null("transaction"));
        }
        // SAFETY: as the caller says.
        let handles = unsafe { all_at(tables, count, "tables") }?;
        let mut those: Vec<&Table> = Vec::with_capacity(count);
        for &handle in handles {
            // SAFETY: as the caller says.
            those.push(&unsafe { at(handle, "tables") }?.0);
        }
        let Some(first) = those.first() else {
            let text = "count is 0: a transaction is on one table or more";
            return Err(Failure::new(Status::BadArgument, text));
        };
        let begun = larder_transaction::new(first.larder().begin(&those)?);
        // SAFETY: as the caller says.
        unsafe { give(transaction, Box::into_raw(Box::new(begun))) };
        Ok(Status::Ok)
    })
}

/// The table to use within a transaction for the one at `index`, from 0, of those that it was begun
/// on; null if there is none. It belongs to the transaction: it is not to be given up, and is valid
/// as long as that one. When the transaction has ended it answers `LARDER_NO_TABLE`.
///
/// # Safety
/// `transaction` is null, or one that was not given up.
#[no_mangle]
pub unsafe extern "C" fn larder_transaction_table(
    transaction: *const larder_transaction,
    index: usize,
) -> *const larder_table {
    guarded_or(std::ptr::null(), || {
        // SAFETY: as the caller says.
        let transaction = unsafe { at(transaction, "transaction") }?;
        let table = transaction.views.get(index);
        Ok(table.map_or(std::ptr::null(), std::ptr::from_ref))
    })
}

/// Whether nobody has changed what was read or written so far: `LARDER_OK`, or `LARDER_CONFLICT` if
/// `larder_commit` would answer that. For one that takes long, and would rather begin anew at once,
/// by `larder_commit`, than at its end. If it is `LARDER_OK`, somebody may change it at any moment.
/// `LARDER_NO_TABLE`: one was dropped, or the transaction has ended.
///
/// # Safety
/// `transaction` is null, or one that was not given up and nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_validate(transaction: *const larder_transaction) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let own = unsafe { at(transaction, "transaction") }?;
        match own.transaction.validate()? {
            true => Ok(Status::Ok),
            false => Err(Failure::new(
                Status::Conflict,
                "others have changed what the transaction has read",
            )),
        }
    })
}

/// Makes what was written take effect, at one instant, if nobody has changed what was read: ranges
/// and absences count, too.
///
/// `LARDER_CONFLICT`: somebody has. Nothing has happened, and the transaction has begun anew, of
/// this moment: its tables are the same pointers, and what was read is to be read again. One that
/// loses again and again gets its turn before others.
///
/// After every other answer the transaction has ended, and is to be given up: `LARDER_OK`;
/// `LARDER_NO_TABLE` (one was dropped, or the transaction had ended), `LARDER_NOT_UNIQUE`,
/// `LARDER_FULL`: nothing has happened.
///
/// # Safety
/// `transaction` is null, or one that was not given up and nobody else uses; scans of its tables
/// are not used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_commit(transaction: *mut larder_transaction) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let own = unsafe { at_mut(transaction, "transaction") }?;
        if own.transaction.commit()? {
            return Ok(Status::Ok);
        }
        own.renew();
        Err(Failure::new(
            Status::Conflict,
            "others have changed what the transaction has read; it has begun anew",
        ))
    })
}

/// Gives up a transaction; without `larder_commit` it had no effect. Null is nothing to give up.
///
/// # Safety
/// `transaction` is null, or one that was not given up; its tables are not used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_transaction_free(transaction: *mut larder_transaction) {
    guarded_or((), || {
        if !transaction.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(transaction) });
        }
        Ok(())
    });
}
