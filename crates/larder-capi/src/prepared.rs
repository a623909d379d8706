//! Match specifications with parameters: compiled once, and asked with other values each time.

use crate::rows::{begin, direction, larder_rows, over_all, taken};
use crate::status::{guarded, guarded_or, Failure, Status};
use crate::table::larder_table;
use crate::terms::{at, larder_terms, text_at};
use crate::view::give;
use larder::api::{BoundSpec, Spec, Table};
use larder::Error;
use std::ffi::c_char;

/// A match specification with parameters, compiled. It is of no table and no world; any number of
/// threads may use it.
pub struct larder_prepared(Spec);

/// Compiles a match specification in which `{bind, N}` stands for the Nth value, from 1 to 255:
/// `[{{{user,{bind,1}},'$1'},[{'<','$1',{bind,2}}],['$1']}]`. A handle in `*prepared`, to be given
/// up with `larder_prepared_free`. The functions `larder_…_prepared` take it with values, and
/// compile nothing. A value is a constant, whatever it is. `LARDER_BAD_SPEC`, with the reason.
///
/// # Safety
/// `spec` is null or ends with a NUL; `prepared` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_prepare(
    spec: *const c_char,
    prepared: *mut *mut larder_prepared,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let spec = unsafe { text_at(spec, "spec") }?;
        // First: a handle without a place to put it could never be given up.
        if prepared.is_null() {
            return Err(Failure::null("prepared"));
        }
        let made = Box::into_raw(Box::new(larder_prepared(Spec::new(spec)?)));
        // SAFETY: as the caller says.
        unsafe { give(prepared, made) };
        Ok(Status::Ok)
    })
}

/// How many values it wants: the greatest number of a parameter.
///
/// # Safety
/// `prepared` is null, or a handle that was not given up.
#[no_mangle]
pub unsafe extern "C" fn larder_prepared_parameters(prepared: *const larder_prepared) -> usize {
    guarded_or(0, || {
        // SAFETY: as the caller says.
        let prepared = unsafe { at(prepared, "prepared") }?;
        Ok(prepared.0.parameters())
    })
}

/// Gives up the handle. Scans that were begun with it go on. Null is nothing to give up.
///
/// # Safety
/// `prepared` is null, or a handle that was not given up.
#[no_mangle]
pub unsafe extern "C" fn larder_prepared_free(prepared: *mut larder_prepared) {
    guarded_or((), || {
        if !prepared.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(prepared) });
        }
        Ok(())
    });
}

/// The specification with all terms of a sequence for its values; null is none.
///
/// # Safety
/// As for `larder_select_prepared`.
unsafe fn bound(
    prepared: *const larder_prepared,
    values: *const larder_terms,
) -> Result<BoundSpec, Failure> {
    // SAFETY: as the caller says.
    let (prepared, values) = unsafe { (at(prepared, "prepared")?, values.as_ref()) };
    let values = values.map_or(Ok(&[][..]), larder_terms::whole)?;
    Ok(prepared.0.bind(values)?)
}

/// As `larder_select`, with a prepared specification and its values: all terms of `values`, which
/// is null for none. What is looked at is chosen for the values. `LARDER_BAD_SPEC` if there are
/// more or fewer than it has parameters.
///
/// # Safety
/// As for `larder_table_drop`; `prepared` is null or a handle that was not given up; `values` is
/// null or a sequence that nobody changes meanwhile; `rows` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_select_prepared(
    table: *const larder_table,
    prepared: *const larder_prepared,
    values: *const larder_terms,
    backward: bool,
    rows: *mut *mut larder_rows,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        begin(table, rows, |table| {
            Ok(table.rows(bound(prepared, values)?, direction(backward))?)
        })
    }
}

/// Runs a prepared specification over all rows, with its values; a number in `*count` unless that
/// is null.
///
/// # Safety
/// As for `larder_select_count_prepared`.
unsafe fn counted(
    table: *const larder_table,
    (prepared, values): (*const larder_prepared, *const larder_terms),
    count: *mut u64,
    run: fn(&Table, BoundSpec) -> Result<u64, Error>,
) -> Status {
    // SAFETY: as the caller says.
    let spec = || unsafe { bound(prepared, values) };
    // SAFETY: as the caller says.
    unsafe { over_all(table, spec, count, run) }
}

/// As `larder_select_count`, with a prepared specification: see `larder_select_prepared`.
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
    // SAFETY: as the caller says.
    unsafe { counted(table, (prepared, values), count, Table::select_count) }
}

/// As `larder_select_delete`, with a prepared specification: see `larder_select_prepared`.
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
    // SAFETY: as the caller says.
    unsafe { counted(table, (prepared, values), count, Table::select_delete) }
}

/// As `larder_select_replace`, with a prepared specification: see `larder_select_prepared`.
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
    // SAFETY: as the caller says.
    unsafe { counted(table, (prepared, values), count, Table::select_replace) }
}

/// As `larder_select_take`, with a prepared specification: see `larder_select_prepared`. `out` may
/// be `values`.
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
    // SAFETY: as the caller says.
    let spec = || unsafe { bound(prepared, values) };
    let take = |table: &Table, spec| table.select_take(spec);
    // SAFETY: as the caller says.
    unsafe { taken(table, spec, out, take) }
}
