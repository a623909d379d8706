//! Lists of operations that take effect together or not at all. Their keys must be known
//! beforehand.

use crate::status::{free, guarded, guarded_or, Failure, Status};
use crate::table::{larder_table, table_at};
use crate::terms::{at, at_mut, larder_terms};
use crate::view::{give, larder_view};
use larder::api::{Operations, Table};
use larder_term::Term;

/// One operation.
enum Step {
    Check(Term, Vec<Term>),
    Insert(Term),
    InsertNew(Term),
    Delete(Term),
    DeleteRow(Term),
    Add(Term, usize, i64),
    Update(Term, usize, Term),
}

impl Step {
    fn add_to<'t>(&self, list: Operations<'t>, table: &'t Table) -> Operations<'t> {
        match self {
            Step::Check(key, rows) => list.check(table, key, rows),
            Step::Insert(row) => list.insert(table, row),
            Step::InsertNew(row) => list.insert_new(table, row),
            Step::Delete(key) => list.delete(table, key),
            Step::DeleteRow(row) => list.delete_object(table, row),
            Step::Add(key, position, increment) => list.add(table, key, *position, *increment),
            Step::Update(key, position, element) => list.update(table, key, *position, element),
        }
    }
}

/// A list of operations that take effect at one instant, if the conditions of all hold. It costs
/// less than a transaction, but all keys must be known beforehand. Only one thread at a time may
/// use it.
#[derive(Default)]
pub struct larder_operations {
    steps: Vec<(Table, Step)>,
}

/// Makes an empty list. Never returns null. O(1).
#[no_mangle]
pub extern "C" fn larder_operations_new() -> *mut larder_operations {
    Box::into_raw(Box::default())
}

/// Frees a list. Does nothing if `operations` is null. O(operations).
///
/// # Safety
/// `operations` is null, or came from `larder_operations_new` and was not freed; nobody uses it any
/// more.
#[no_mangle]
pub unsafe extern "C" fn larder_operations_free(operations: *mut larder_operations) {
    // SAFETY: by contract, `operations` is null, or a list that was not freed and nobody uses any
    // more. `larder_operations_new` made it by `Box::into_raw`.
    unsafe { free(operations) };
}

/// Removes all operations from a list. Does nothing if `operations` is null. O(operations).
///
/// # Safety
/// `operations` is null, or a list that was not freed and nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_operations_clear(operations: *mut larder_operations) {
    guarded_or((), || {
        // SAFETY: by the *exclusive handle* contract of `operations`.
        unsafe { at_mut(operations, "operations") }?.steps.clear();
        Ok(())
    });
}

/// Adds an operation to a list.
///
/// # Safety
/// `operations` is null, or a list that was not freed and nobody else uses; `table` is null or a
/// handle that was not freed.
unsafe fn push(
    operations: *mut larder_operations,
    table: *const larder_table,
    step: impl FnOnce() -> Result<Step, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `operations` and the *handle* contract of
        // `table`.
        let (list, table) = unsafe { (at_mut(operations, "operations")?, table_at(table)?) };
        let step = step()?;
        list.steps.push((table.into_owned(), step));
        Ok(Status::Ok)
    })
}

/// A copy of a term of C.
///
/// # Safety
/// The view's terms are as they were when it was made.
unsafe fn to_term(view: larder_view, what: &str) -> Result<Term, Failure> {
    // SAFETY: by the *view* contract of `view`.
    Ok(Term::from(unsafe { view.require(what) }?))
}

/// Adds an operation to a list: inserts a row, like `larder_insert`. As for all functions
/// `larder_op_…`: the list copies the terms, in time in proportion to them, and keeps the table as
/// a handle does. The table isn't changed, and what is wrong with a row or a position is said by
/// the commit.
///
/// # Safety
/// `operations` is null, or a list that was not freed and nobody else uses; otherwise as for
/// `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_op_insert(
    operations: *mut larder_operations,
    table: *const larder_table,
    row: larder_view,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `row`.
    unsafe { push(operations, table, || Ok(Step::Insert(to_term(row, "row")?))) }
}

/// Adds an operation to a list: inserts a row. Its condition is that there is no row under the key.
/// Apart from that like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_op_insert_new(
    operations: *mut larder_operations,
    table: *const larder_table,
    row: larder_view,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `row`.
    unsafe {
        push(operations, table, || {
            Ok(Step::InsertNew(to_term(row, "row")?))
        })
    }
}

/// Adds a condition to a list: that the rows under the key are those of the sequence, in the same
/// order. If `rows` is null, there must be none. Apart from that like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`; `rows` is null or a sequence that nobody changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn larder_op_check(
    operations: *mut larder_operations,
    table: *const larder_table,
    key: larder_view,
    rows: *const larder_terms,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`,
    // the *view* contract of `key` and the *sequence* contract of `rows`.
    unsafe {
        push(operations, table, || {
            let rows = rows.as_ref().map_or(Ok(&[][..]), larder_terms::whole)?;
            Ok(Step::Check(to_term(key, "key")?, rows.to_vec()))
        })
    }
}

/// Adds an operation to a list: deletes all rows under a key, if there are any. Apart from that
/// like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_op_delete(
    operations: *mut larder_operations,
    table: *const larder_table,
    key: larder_view,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `key`.
    unsafe { push(operations, table, || Ok(Step::Delete(to_term(key, "key")?))) }
}

/// Adds an operation to a list: deletes the row that is identical to this one, if there is one.
/// Apart from that like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_op_delete_row(
    operations: *mut larder_operations,
    table: *const larder_table,
    row: larder_view,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `row`.
    unsafe {
        push(operations, table, || {
            Ok(Step::DeleteRow(to_term(row, "row")?))
        })
    }
}

/// Adds an operation to a list: adds to the integer at a position, counted from 1, of the row under
/// a key. Its condition is that there is a row. Apart from that like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_op_add(
    operations: *mut larder_operations,
    table: *const larder_table,
    key: larder_view,
    position: usize,
    increment: i64,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `key`.
    unsafe {
        push(operations, table, || {
            Ok(Step::Add(to_term(key, "key")?, position, increment))
        })
    }
}

/// Adds an operation to a list: replaces the element at a position, counted from 1, of the row
/// under a key. Its condition is that there is a row. Apart from that like `larder_op_insert`.
///
/// # Safety
/// As for `larder_op_insert`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_op_update(
    operations: *mut larder_operations,
    table: *const larder_table,
    key: larder_view,
    position: usize,
    element: larder_view,
) -> Status {
    // SAFETY: by the *exclusive handle* contract of `operations`, the *handle* contract of `table`
    // and the *view* contract of `key` and `element`.
    unsafe {
        push(operations, table, || {
            let (key, element) = (to_term(key, "key")?, to_term(element, "element")?);
            Ok(Step::Update(key, position, element))
        })
    }
}

/// Commits the operations of a list. They take effect at one instant, in their order: each sees the
/// effects of those before it. No lookup, snapshot or transaction of another thread sees some of
/// them without the others; a scan of a table may. `LARDER_OK` if all conditions hold, also for an
/// empty list. `LARDER_NONE` if one doesn't; the number of the first such operation, counted from
/// 1, is then written to `*first`, unless `first` is null. Errors are those of `larder_begin`, but
/// for a table that occurs twice, and of the function of each operation. Unless the status is
/// `LARDER_OK`, nothing has changed.
///
/// The cost is that of each operation's function, and of a lock for each key. Others who read or
/// write one of the keys wait while the operations are applied. The list doesn't change, and may be
/// committed again.
///
/// # Safety
/// `operations` is null, or a list that was not freed and nobody changes meanwhile; `first` is null
/// or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_operations_commit(
    operations: *const larder_operations,
    first: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: by contract, `operations` is null, or a list that was not freed and nobody
        // changes meanwhile.
        let steps = &unsafe { at(operations, "operations") }?.steps;
        let Some((table, _)) = steps.first() else {
            return Ok(Status::Ok);
        };
        let mut list = table.larder().operations();
        for (table, step) in steps {
            list = step.add_to(list, table);
        }
        let Some(failed) = list.commit()? else {
            return Ok(Status::Ok);
        };
        // SAFETY: by the *out* contract of `first`.
        unsafe { give(first, failed) };
        Ok(Status::None)
    })
}
