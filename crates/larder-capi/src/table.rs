//! Operations by key, and on whole tables.
//!
//! A `larder_table` is a handle of a table, of a snapshot, or of the view of a table in a
//! transaction. Functions of all files get the table to use from `table_at`. Results that are terms
//! are put into a `larder_terms` of the caller.

use crate::status::{free, guarded, guarded_or, Failure, Status};
use crate::terms::{all_at, at, at_mut, larder_terms, text_at};
use crate::view::{give, larder_view, needed};
use larder::api::{Snapshot, Table};
use larder::Error;
use larder_term::number::Number;
use larder_term::{Atom, Term, TermRef};
use std::borrow::Cow;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle of a table. A table may have several handles, and any number of threads may use a
/// handle at once.
pub struct larder_table(Handle);

enum Handle {
    Table(Table),
    /// Shared with the scans of it.
    Snapshot(Arc<Snapshot>),
    /// The view of a table in a transaction. Each attempt has another one, which the commit sets
    /// while other threads may use the handle.
    View(Mutex<Table>),
}

impl larder_table {
    pub(crate) fn view(table: Table) -> Self {
        larder_table(Handle::View(Mutex::new(table)))
    }

    /// The table that the handle is of. That of a view is a clone, so that no lock is held during
    /// the operation.
    #[inline]
    pub(crate) fn current(&self) -> Cow<'_, Table> {
        match &self.0 {
            Handle::Table(table) => Cow::Borrowed(table),
            Handle::Snapshot(snapshot) => Cow::Borrowed(snapshot),
            Handle::View(view) => Cow::Owned(locked(view).clone()),
        }
    }

    /// Replaces the table of a view.
    pub(crate) fn renew(&self, next: Table) {
        if let Handle::View(view) = &self.0 {
            // The last attempt's view is dropped after the lock is released.
            let _last = std::mem::replace(&mut *locked(view), next);
        }
    }

    /// The snapshot. An error if the table isn't one.
    pub(crate) fn snapshot(&self) -> Result<&Snapshot, Failure> {
        match &self.0 {
            Handle::Snapshot(snapshot) => Ok(snapshot),
            _ => Err(Failure::new(
                Status::TableType,
                "the table is not a snapshot",
            )),
        }
    }

    /// The snapshot, for a scan that keeps it; `None` if the table isn't one.
    pub(crate) fn kept(&self) -> Option<Arc<Snapshot>> {
        match &self.0 {
            Handle::Snapshot(snapshot) => Some(Arc::clone(snapshot)),
            _ => None,
        }
    }
}

impl From<Table> for larder_table {
    fn from(table: Table) -> Self {
        larder_table(Handle::Table(table))
    }
}

impl From<Snapshot> for larder_table {
    fn from(snapshot: Snapshot) -> Self {
        larder_table(Handle::Snapshot(Arc::new(snapshot)))
    }
}

/// Locks the mutex, ignoring poison: only a clone or a move runs under it, and neither can be left
/// half done.
fn locked(view: &Mutex<Table>) -> MutexGuard<'_, Table> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table of a handle. A call asks once, so all that it does is of one attempt.
///
/// # Safety
/// `table` is null, or a handle that isn't freed during `'a`.
#[inline]
pub(crate) unsafe fn table_at<'a>(table: *const larder_table) -> Result<Cow<'a, Table>, Failure> {
    // SAFETY: by contract, `table` is null, or a handle that isn't freed during `'a`.
    Ok(unsafe { at(table, "table") }?.current())
}

/// The tables of an array of handles.
///
/// # Safety
/// `tables` is null or has `count` pointers, each null or a handle that was not freed.
pub(crate) unsafe fn tables_at(
    tables: *const *const larder_table,
    count: usize,
) -> Result<Vec<Table>, Failure> {
    // SAFETY: by contract, `tables` is null or has `count` pointers.
    let handles = unsafe { all_at(tables, count, "tables") }?;
    let table = |&handle| {
        // SAFETY: by contract, each pointer is null or a handle that was not freed.
        Ok(unsafe { at::<larder_table>(handle, "tables") }?
            .current()
            .into_owned())
    };
    handles.iter().map(table).collect()
}

/// Writes a new handle to `*out`.
///
/// # Safety
/// `out` may be written to.
pub(crate) unsafe fn hand_out(table: impl Into<larder_table>, out: *mut *mut larder_table) {
    // SAFETY: by contract, `out` may be written to.
    unsafe { give(out, Box::into_raw(Box::new(table.into()))) };
}

/// `LARDER_OK` if there is something, and `LARDER_NONE` if not.
pub(crate) fn ok_or_none(something: bool) -> Status {
    match something {
        true => Status::Ok,
        false => Status::None,
    }
}

/// The result of an operation. Adds to a failure the term that it is about.
pub(crate) fn with_context<R>(
    table: &Table,
    what: &str,
    it: TermRef<'_>,
    result: Result<R, Error>,
) -> Result<R, Failure> {
    result.map_err(|error| Failure::from(error).with_context(table, what, it))
}

/// Replaces the contents of a sequence by results. The sequence may be the one that contains the
/// key, so this must come after all use of the key.
///
/// # Safety
/// `out` is null or a sequence that nobody else uses. No reference to its terms is used any more.
pub(crate) unsafe fn fill(out: *mut larder_terms, found: Vec<Term>) -> Result<Status, Failure> {
    let something = !found.is_empty();
    // SAFETY: by the *exclusive sequence* contract of `out`.
    unsafe { at_mut(out, "out") }?.fill(found);
    Ok(ok_or_none(something))
}

/// Frees a handle. The table itself continues to exist until it is dropped by `larder_table_drop`,
/// or its world and all its handles are freed. A snapshot ends with its handle and its scans. Does
/// nothing if `table` is null. O(1); memory is freed in the background.
///
/// # Safety
/// `table` is null or a handle that was not freed, and isn't one of those that
/// `larder_transaction_table` returns; nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn larder_table_free(table: *mut larder_table) {
    // SAFETY: by contract, `table` is null, or a handle that was not freed and nobody uses any
    // more. The function that wrote it made it by `Box::into_raw`.
    unsafe { free(table) };
}

/// Drops the table. From then on, all its handles return `LARDER_NO_TABLE`; they must still be
/// freed. Calls of other threads in progress complete, or return `LARDER_NO_TABLE`. Snapshots of it
/// stay. `LARDER_BAD_ARGUMENT` for a table of a transaction. O(1); memory is freed in the
/// background.
///
/// # Safety
/// `table` is null or a handle that was not freed.
#[no_mangle]
pub unsafe extern "C" fn larder_table_drop(table: *const larder_table) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        unsafe { table_at(table) }?.drop_table()?;
        Ok(Status::Ok)
    })
}

/// Renames the table. `LARDER_BAD_OPTION` if the name has more than 255 characters.
/// `LARDER_ALREADY_EXISTS` if the table is a named one, and a named table has the name, this one
/// included. `LARDER_BAD_ARGUMENT` for a table of a transaction. O(1). For a moment
/// `larder_table_find` finds the table by both names. The name is kept until the process ends.
///
/// # Safety
/// As for `larder_table_drop`; `name` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_table_rename(
    table: *const larder_table,
    name: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
        let (table, name) = unsafe { (table_at(table)?, text_at(name, "name")?) };
        table.rename(name)?;
        Ok(Status::Ok)
    })
}

/// Inserts a row, which is a tuple. In a set or ordered_set it replaces the row with the same key;
/// in a bag it is added to the others. Atomic: a reader of the key sees the old row or the new one.
/// O(1), in an ordered_set O(log n); in a bag O(log m) if there are m rows under the key, and many.
/// `LARDER_BAD_ROW` if the row isn't a tuple, or is too short to have a key. `LARDER_FULL` if there
/// is no room: the table has a limit and doesn't evict, or its structure has a fixed size.
/// `LARDER_NOT_UNIQUE` if another row has the value in a unique index.
///
/// # Safety
/// As for `larder_table_drop`; the view's terms are as they were when it was made.
#[no_mangle]
pub unsafe extern "C" fn larder_insert(table: *const larder_table, row: larder_view) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `row`.
        let (table, row) = unsafe { (table_at(table)?, row.require("row")?) };
        with_context(&table, "row", row, table.insert(&row))?;
        Ok(Status::Ok)
    })
}

/// Inserts a row if its key doesn't exist. Otherwise returns `LARDER_NONE`, also if another row has
/// the value in a unique index. Atomic: of several threads that insert the same new key, one gets
/// `LARDER_OK`. Apart from that like `larder_insert`.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_new(table: *const larder_table, row: larder_view) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `row`.
        let (table, row) = unsafe { (table_at(table)?, row.require("row")?) };
        let inserted = with_context(&table, "row", row, table.insert_new(&row))?;
        Ok(ok_or_none(inserted))
    })
}

/// Inserts all rows of a sequence at once: no reader sees some of them without the others, but for
/// a scan that began before. If one of them is bad, none is inserted. The cost is that of
/// `larder_insert` for each row. Meanwhile other threads read and write single keys. Other calls on
/// the table, such as `larder_next` and `larder_select`, first help to finish the list. Statuses
/// are those of `larder_insert`.
///
/// # Safety
/// As for `larder_table_drop`; `rows` is null or a sequence that nobody changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_all(
    table: *const larder_table,
    rows: *const larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *sequence* contract of `rows`.
        let (table, rows) = unsafe { (table_at(table)?, at(rows, "rows")?) };
        table.insert_all(rows.whole()?)?;
        Ok(Status::Ok)
    })
}

/// Inserts all rows of a sequence at once, if none of their keys exists. Otherwise inserts none,
/// and returns `LARDER_NONE`; so it does if a row has a value that is taken in a unique index.
/// Apart from that like `larder_insert_all`, and a lookup of each key before.
///
/// # Safety
/// As for `larder_insert_all`.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_all_new(
    table: *const larder_table,
    rows: *const larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *sequence* contract of `rows`.
        let (table, rows) = unsafe { (table_at(table)?, at(rows, "rows")?) };
        Ok(ok_or_none(table.insert_all_new(rows.whole()?)?))
    })
}

/// Fills `out` with the rows under a key, in order of arrival. `LARDER_NONE`, and an empty `out`,
/// if there are none. All rows of the key are seen as of one instant. Takes no lock: it waits at
/// most while another thread changes the same leaf, or commits a change of the key. O(1) plus the
/// rows; in an ordered_set O(log n) plus the rows. `out` may be the sequence that contains the key.
///
/// # Safety
/// As for `larder_insert`; `out` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_lookup(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let found = table.lookup(&key)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `key`, which may be a view of its
        // terms, is not read any more.
        unsafe { fill(out, found) }
    })
}

/// Fills `out` with the elements at `count` positions, counted from 1, of the rows under a key.
/// Rows are in order of arrival, and the elements of each row are in the order of the positions.
/// The rest of the rows isn't copied. `LARDER_NONE`, and an empty `out`, if there is no such key.
/// `LARDER_BAD_ROW` if a position is 0, or one of the rows is shorter. O(elements up to the
/// greatest position) for each row. Apart from that like `larder_lookup`.
///
/// # Safety
/// As for `larder_lookup`; `positions` is null or points to `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn larder_lookup_elements(
    table: *const larder_table,
    key: larder_view,
    positions: *const usize,
    count: usize,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by contract, `positions` is null or points to `count` numbers.
        let positions = unsafe { all_at(positions, count, "positions") }?;
        let rows = table.lookup_elements(&key, positions);
        let rows = with_context(&table, "key", key, rows)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `key`, which may be a view of its
        // terms, is not read any more.
        unsafe { fill(out, rows.concat()) }?;
        // Even if there are no positions, the status says whether the key exists.
        Ok(ok_or_none(!rows.is_empty()))
    })
}

/// Returns whether there is a row under the key: `LARDER_OK` or `LARDER_NONE`. Copies nothing, and
/// doesn't count as a read for `idle_ms`. O(1), in an ordered_set O(log n). Apart from that like
/// `larder_lookup`.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_contains(table: *const larder_table, key: larder_view) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        Ok(ok_or_none(table.contains(&key)?))
    })
}

/// Deletes all rows under the key. Writes their number to `*gone`, unless `gone` is null.
/// `LARDER_NONE`, and 0 in `*gone`, if there was none. Atomic: a reader of the key sees all of them
/// or none. O(1), in an ordered_set O(log n), and O(1) for each row of a bag.
///
/// # Safety
/// As for `larder_insert`; `gone` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_delete(
    table: *const larder_table,
    key: larder_view,
    gone: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let n = table.delete(&key)?;
        // SAFETY: by the *out* contract of `gone`.
        unsafe { give(gone, n) };
        Ok(ok_or_none(n > 0))
    })
}

/// Deletes the row that is identical to this one; in a duplicate_bag, all copies of it. Other rows
/// of the key stay. `LARDER_BAD_ROW` if the row isn't a tuple, or is too short to have a key. Apart
/// from that like `larder_delete`.
///
/// # Safety
/// As for `larder_delete`.
#[no_mangle]
pub unsafe extern "C" fn larder_delete_row(
    table: *const larder_table,
    row: larder_view,
    gone: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `row`.
        let (table, row) = unsafe { (table_at(table)?, row.require("row")?) };
        let n = table.delete_object(&row)?;
        // SAFETY: by the *out* contract of `gone`.
        unsafe { give(gone, n) };
        Ok(ok_or_none(n > 0))
    })
}

/// Deletes all rows under the key, and fills `out` with them like `larder_lookup`: `LARDER_NONE`,
/// and an empty `out`, if there are none. Atomic: if several threads take the same row, only one
/// gets it. If `out` is null, nothing is deleted. The cost is that of `larder_lookup` and
/// `larder_delete`.
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_take(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // Check this first. Otherwise the rows would be deleted, and lost.
        needed(out, "out")?;
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let found = table.take(&key)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `key`, which may be a view of its
        // terms, is not read any more.
        unsafe { fill(out, found) }
    })
}

/// Adds to the integer at a position, counted from 1, of the row under a key. Writes the sum to
/// `*sum`, unless `sum` is null. Atomic: no addition is lost, however many threads add. If the key
/// doesn't exist, first inserts the row `otherwise` with this key; if `otherwise` is a view of
/// nothing, returns `LARDER_BAD_KEY`. The cost is that of `larder_insert`, and of finding the
/// position.
///
/// `LARDER_NOT_INTEGER` if the element isn't an integer. `LARDER_BAD_ROW` if there is no such
/// position, if it is the key's, or if `otherwise` is too short. `LARDER_TABLE_TYPE` for bags.
/// `LARDER_BIG_SUM` if the sum doesn't fit in 64 bits; the addition has taken effect, and `*sum` is
/// unchanged. `LARDER_SYSTEM_LIMIT` if the sum is larger than integers can be.
///
/// # Safety
/// As for `larder_insert`, for both views; `sum` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_add(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    increment: i64,
    otherwise: larder_view,
    sum: *mut i64,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by the *view* contract of `otherwise`.
        let otherwise = unsafe { otherwise.term() };
        let total = table.add_number(&key, position, increment, otherwise);
        let total = with_context(&table, "key", key, total)?;
        // SAFETY: by the *out* contract of `sum`.
        unsafe { counted(total, sum) }
    })
}

/// Writes the sum of an addition to `*sum`.
///
/// # Safety
/// `sum` is null or may be written to.
pub(crate) unsafe fn counted(total: Number, sum: *mut i64) -> Result<Status, Failure> {
    // A term is made only of a sum that is beyond 64 bits, for the message.
    let total = match total {
        Number::Int(total) => {
            // SAFETY: by the *out* contract of `sum`.
            unsafe { give(sum, total) };
            return Ok(Status::Ok);
        }
        total => Term::build(|enc| total.encode(enc)).unwrap_or_else(|_| Term::nil()),
    };
    // SAFETY: by the *out* contract of `sum`.
    unsafe { summed(&total, sum) }
}

/// `counted` of a sum that is a term.
///
/// # Safety
/// `sum` is null or may be written to.
pub(crate) unsafe fn summed(total: &Term, sum: *mut i64) -> Result<Status, Failure> {
    // The addition has taken effect. The error must say so; otherwise the caller might add again.
    let Some(total) = total.as_ref().as_int() else {
        return Err(Failure::new(
            Status::BigSum,
            format!("the sum is {total}, which is beyond 64 bits; it is in the table"),
        ));
    };
    // SAFETY: by the *out* contract of `sum`.
    unsafe { give(sum, total) };
    Ok(Status::Ok)
}

/// Replaces the element at a position, counted from 1, of the row under a key. `LARDER_NONE` if the
/// key doesn't exist. Atomic: a reader sees the old element or the new one. The row's bytes are
/// copied, so the cost is that of `larder_insert`. `LARDER_BAD_ROW` if there is no such position,
/// or if it is the key's. `LARDER_TABLE_TYPE` for bags.
///
/// # Safety
/// As for `larder_insert`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_update(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    element: larder_view,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by the *view* contract of `element`.
        let element = unsafe { element.require("element") }?;
        let updated = table.update(&key, position, &element);
        Ok(ok_or_none(with_context(&table, "key", key, updated)?))
    })
}

/// A step in a traversal of the keys: fills `out` with the key that is found.
///
/// # Safety
/// `table` is null or a handle that was not freed; `out` is null or a sequence that nobody else
/// uses.
unsafe fn step(
    table: *const larder_table,
    out: *mut larder_terms,
    find: impl FnOnce(&Table) -> Result<Option<Term>, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let table = unsafe { table_at(table) }?;
        let found = find(&table)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. What `find` returned doesn't refer
        // to its terms.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// Fills `out` with the first key; in an ordered_set, with the least one. Other tables have an
/// order of their own, which stays as it is while nobody inserts or deletes. `LARDER_NONE`, and an
/// empty `out`, if the table is empty. The key was the first at an instant during the call. O(1),
/// in an ordered_set O(log n).
///
/// # Safety
/// As for `larder_table_drop`; `out` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_first(
    table: *const larder_table,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *exclusive sequence* contract of `out`.
    unsafe { step(table, out, |table| Ok(table.first()?)) }
}

/// Fills `out` with the greatest key of an ordered_set. For other tables the same as
/// `larder_first`. Apart from that like `larder_first`.
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_last(table: *const larder_table, out: *mut larder_terms) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *exclusive sequence* contract of `out`.
    unsafe { step(table, out, |table| Ok(table.last()?)) }
}

/// Fills `out` with the key after this one. `LARDER_NONE`, and an empty `out`, if it is the last.
/// `out` may be the sequence that contains the key. In an ordered_set the key need not exist; in
/// other tables, `LARDER_BAD_KEY` if it doesn't. A traversal finds each key that exists throughout
/// exactly once, whatever others write; a key that is inserted or deleted meanwhile may be found or
/// not. O(1), in an ordered_set O(log n).
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_next(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *view* contract of `key` and the *exclusive
    // sequence* contract of `out`. `step` reads the key before it changes `out`.
    unsafe {
        step(table, out, |table| {
            let key = key.require("key")?;
            with_context(table, "key", key, table.next(&key))
        })
    }
}

/// Like `larder_next`, but in descending order in an ordered_set: fills `out` with the key before
/// this one. In other tables the same as `larder_next`.
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_prev(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *view* contract of `key` and the *exclusive
    // sequence* contract of `out`. `step` reads the key before it changes `out`.
    unsafe {
        step(table, out, |table| {
            let key = key.require("key")?;
            with_context(table, "key", key, table.prev(&key))
        })
    }
}

/// Deletes all rows at one instant: a reader sees all of them or none. Writes their number to
/// `*gone`, unless `gone` is null. The number is exact if nobody was writing at that instant. O(1);
/// memory is freed in the background. In a table of a transaction O(n).
///
/// # Safety
/// As for `larder_table_drop`; `gone` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_clear(table: *const larder_table, gone: *mut usize) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let n = unsafe { table_at(table) }?.clear()?;
        // SAFETY: by the *out* contract of `gone`.
        unsafe { give(gone, n) };
        Ok(Status::Ok)
    })
}

/// Returns the number of rows; 0 for a table that was dropped. Rows that have expired count until
/// the library has removed them. O(1). The first call for a snapshot counts its rows, and so does
/// each call in a transaction, which has read all of them then: O(n).
///
/// # Safety
/// As for `larder_table_drop`.
#[no_mangle]
pub unsafe extern "C" fn larder_size(table: *const larder_table) -> usize {
    // SAFETY: by the *handle* contract of `table`.
    guarded_or(0, || Ok(unsafe { table_at(table) }?.len()))
}

/// Returns the memory that the table takes, in bytes, with its indexes and what it keeps for
/// snapshots, and without binaries of more than 127 bytes; 0 for a table that was dropped. O(1). A
/// program that has many tables adds them up.
///
/// # Safety
/// As for `larder_table_drop`.
#[no_mangle]
pub unsafe extern "C" fn larder_memory(table: *const larder_table) -> usize {
    // SAFETY: by the *handle* contract of `table`.
    guarded_or(0, || Ok(unsafe { table_at(table) }?.memory()))
}

/// Fills `out` with one map of the properties of the table. Its keys are the atoms `name`, `named`,
/// `type`, `keypos`, `size`, `memory` (in bytes), `compressed`, `decentralized_counters`,
/// `structure` and `stats`. The value of `stats` is a map of figures of the structure. The
/// properties are read one after the other, and not at one instant. O(1); the size of a snapshot as
/// in `larder_size`.
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_info(table: *const larder_table, out: *mut larder_terms) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let table = unsafe { table_at(table) }?;
        let found = info_map(&table)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. Nothing here refers to its terms.
        unsafe { fill(out, vec![found]) }
    })
}

fn info_map(table: &Table) -> Result<Term, Failure> {
    let table = table.engine_table();
    let info = table.info().ok_or(Error::NoTable)?;
    let stats = table.stats();
    let figures = [
        ("leaves", stats.leaves as u64),
        ("inner_nodes", stats.inner_nodes as u64),
        ("depth", stats.depth as u64),
        ("splits", stats.splits),
        ("merges", stats.merges),
        ("contended", stats.contended),
    ];
    // Figures of the structure differ from one to the other, so they are a map of their own.
    let figures = figures.into_iter().chain(stats.more);
    let figures: Vec<_> = figures
        .map(|(name, n)| (Term::atom(name), Term::from(n)))
        .collect();
    let properties = vec![
        (Term::atom("name"), Term::from(info.name)),
        (Term::atom("named"), Term::from(info.named)),
        (Term::atom("type"), Term::from(kind(info.kind))),
        (Term::atom("keypos"), Term::from(info.keypos as u64)),
        (Term::atom("size"), Term::from(info.size as u64)),
        (Term::atom("memory"), Term::from(info.memory as u64)),
        (Term::atom("compressed"), Term::from(info.compressed)),
        (
            Term::atom("decentralized_counters"),
            Term::from(info.decentralized_counters),
        ),
        (Term::atom("structure"), Term::atom(&info.structure)),
        (Term::atom("stats"), map(figures)?),
    ];
    map(properties)
}

fn map(pairs: Vec<(Term, Term)>) -> Result<Term, Failure> {
    Term::map(pairs).map_err(|e| Failure::new(Status::Panic, e.to_string()))
}

fn kind(kind: larder::TableKind) -> Atom {
    Atom::new(match kind {
        larder::TableKind::Set => "set",
        larder::TableKind::OrderedSet => "ordered_set",
        larder::TableKind::Bag => "bag",
        larder::TableKind::DuplicateBag => "duplicate_bag",
    })
}

/// Writes the table to a file, as of one instant during the call, whatever other threads write
/// meanwhile. An existing file is replaced when the new one is complete and on the disk.
/// `LARDER_FILE` if the system reports an error, which is in the message; the existing file is
/// unchanged then. Nobody waits for it. (A table with another structure than the default is written
/// as a scan sees it.) O(n).
///
/// # Safety
/// As for `larder_table_drop`; `path` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_table_save(
    table: *const larder_table,
    path: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `path`.
        let (table, path) = unsafe { (table_at(table)?, text_at(path, "path")?) };
        table.save(path)?;
        Ok(Status::Ok)
    })
}
