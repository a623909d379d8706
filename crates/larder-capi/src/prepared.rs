//! Match specifications with parameters: compiled once, and run with different values.

use crate::rows::{begin, direction, larder_rows, over_all, taken};
use crate::status::{free, guarded, guarded_or, Failure, Status};
use crate::table::larder_table;
use crate::terms::{at, larder_terms, text_at};
use crate::view::{give, needed};
use larder::api::{BoundSpec, Spec, Table};
use larder::Error;
use std::ffi::c_char;

/// A compiled match specification with parameters. It doesn't belong to a table or a world. Any
/// number of threads may use it at once.
pub struct larder_prepared(Spec);

/// Compiles a match specification in which `{bind, N}` stands for the Nth value, from 1 to 255:
/// `[{{{user,{bind,1}},'$1'},[{'<','$1',{bind,2}}],['$1']}]`. Writes a handle to `*prepared`, which
/// must be freed by `larder_prepared_free`. The functions `larder_…_prepared` take it with values,
/// and don't compile it again. Any term may be a value, and is taken as a constant.
/// `LARDER_BAD_SPEC` if the specification doesn't compile; the message has the reason. O(s log s)
/// for a specification of size s.
///
/// # Safety
/// `spec` is null or ends with a NUL; `prepared` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_prepare(
    spec: *const c_char,
    prepared: *mut *mut larder_prepared,
) -> Status {
    guarded(|| {
        // SAFETY: by the *text* contract of `spec`.
        let spec = unsafe { text_at(spec, "spec") }?;
        // Check this first. Otherwise the handle could never be freed.
        needed(prepared, "prepared")?;
        let made = Box::into_raw(Box::new(larder_prepared(Spec::new(spec)?)));
        // SAFETY: by the *out* contract of `prepared`.
        unsafe { give(prepared, made) };
        Ok(Status::Ok)
    })
}

/// Returns the number of values that the specification needs, which is the greatest number of a
/// parameter; 0 if `prepared` is null. O(1).
///
/// # Safety
/// `prepared` is null, or a handle that was not freed.
#[no_mangle]
pub unsafe extern "C" fn larder_prepared_parameters(prepared: *const larder_prepared) -> usize {
    guarded_or(0, || {
        // SAFETY: by the *handle* contract of `prepared`.
        let prepared = unsafe { at(prepared, "prepared") }?;
        Ok(prepared.0.parameters())
    })
}

/// Frees the handle. Scans that were begun with it continue. Does nothing if `prepared` is null.
/// O(1).
///
/// # Safety
/// `prepared` is null, or came from `larder_prepare` and was not freed; nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn larder_prepared_free(prepared: *mut larder_prepared) {
    // SAFETY: by contract, `prepared` is null, or a handle that was not freed and nobody uses any
    // more. `larder_prepare` made it by `Box::into_raw`.
    unsafe { free(prepared) };
}

/// Binds the specification to the terms of a sequence; to no values, if `values` is null.
///
/// # Safety
/// `prepared` is null or a handle that was not freed; `values` is null or a sequence that nobody
/// changes meanwhile.
unsafe fn bound(
    prepared: *const larder_prepared,
    values: *const larder_terms,
) -> Result<BoundSpec, Failure> {
    // SAFETY: by the *handle* contract of `prepared` and the *sequence* contract of `values`.
    let (prepared, values) = unsafe { (at(prepared, "prepared")?, values.as_ref()) };
    let values = values.map_or(Ok(&[][..]), larder_terms::whole)?;
    Ok(prepared.0.bind(values)?)
}

/// Like `larder_select`, but with a prepared specification and its values, which are the terms of
/// `values`; none if `values` is null. Nothing is compiled: it takes time in proportion to the
/// values. The rows to examine are chosen for these values. `LARDER_BAD_SPEC` if the number of
/// values isn't that of the parameters.
///
/// # Safety
/// As for `larder_table_drop`; `prepared` is null or a handle that was not freed; `values` is null
/// or a sequence that nobody changes meanwhile; `rows` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_select_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    backward: bool,
    rows: *mut *mut larder_rows,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and `prepared`, the *sequence* contract of
    // `values` and the *out* contract of `rows`.
    unsafe {
        begin(table, rows, |table| {
            Ok(table.rows(bound(prepared, values)?, direction(backward))?)
        })
    }
}

/// Runs a prepared specification with its values over all rows. Writes a number to `*count`, unless
/// `count` is null.
///
/// # Safety
/// As for `larder_select_count_prepared`.
unsafe fn counted(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    count: *mut u64,
    run: fn(&Table, BoundSpec) -> Result<u64, Error>,
) -> Status {
    // SAFETY: by the *handle* contract of `prepared` and the *sequence* contract of `values`.
    let spec = || unsafe { bound(prepared, values) };
    // SAFETY: by the *handle* contract of `table` and the *out* contract of `count`.
    unsafe { over_all(table, spec, count, run) }
}

/// Like `larder_select_count`, but with a prepared specification; see `larder_select_prepared`.
///
/// # Safety
/// As for `larder_select_prepared`; `count` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_select_count_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and `prepared`, the *sequence* contract of
    // `values` and the *out* contract of `count`.
    unsafe { counted(table, prepared, values, count, Table::select_count) }
}

/// Like `larder_select_delete`, but with a prepared specification; see `larder_select_prepared`.
///
/// # Safety
/// As for `larder_select_count_prepared`.
#[no_mangle]
pub unsafe extern "C" fn larder_select_delete_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and `prepared`, the *sequence* contract of
    // `values` and the *out* contract of `count`.
    unsafe { counted(table, prepared, values, count, Table::select_delete) }
}

/// Like `larder_select_replace`, but with a prepared specification; see `larder_select_prepared`.
///
/// # Safety
/// As for `larder_select_count_prepared`.
#[no_mangle]
pub unsafe extern "C" fn larder_select_replace_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and `prepared`, the *sequence* contract of
    // `values` and the *out* contract of `count`.
    unsafe { counted(table, prepared, values, count, Table::select_replace) }
}

/// Like `larder_select_take`, but with a prepared specification; see `larder_select_prepared`.
/// `out` may be `values`.
///
/// # Safety
/// As for `larder_select_prepared`; `out` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_select_take_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: by the *handle* contract of `prepared` and the *sequence* contract of `values`.
    let spec = || unsafe { bound(prepared, values) };
    let take = |table: &Table, spec| table.select_take(spec);
    // SAFETY: by the *handle* contract of `table` and the *exclusive sequence* contract of `out`.
    // `out` may be `values`, which `taken` reads before it changes `out`.
    unsafe { taken(table, spec, out, take) }
}
