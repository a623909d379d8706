//! Secondary indexes.

use crate::status::{guarded, Failure, Status};
use crate::table::{fill, larder_table, table_at};
use crate::terms::{larder_terms, text_at};
use crate::view::larder_view;
use larder::api::Index;
use std::ffi::c_char;

/// Properties of a secondary index, which may be added up.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_index_flags {
    /// No two rows may have equal values.
    Unique = 1,
    /// The value is a list, and each of its elements is indexed. Rows with any other value aren't
    /// in the index.
    Each = 2,
}

const UNIQUE: u32 = larder_index_flags::Unique as u32;
const EACH: u32 = larder_index_flags::Each as u32;

/// Adds an index to a table.
///
/// # Safety
/// As for `larder_add_index`.
unsafe fn add(
    table: *const larder_table,
    name: *const c_char,
    flags: u32,
    index: impl FnOnce(&str) -> Result<Index, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
        let (table, name) = unsafe { (table_at(table)?, text_at(name, "name")?) };
        // Bits that this version doesn't know are refused, not ignored.
        if flags & !(UNIQUE | EACH) != 0 {
            let text = format!("index {name}: {flags} is no sum of larder_index_flags");
            return Err(Failure::new(Status::BadOption, text));
        }
        let mut index = index(name)?;
        if flags & UNIQUE != 0 {
            index = index.unique();
        }
        if flags & EACH != 0 {
            index = index.each();
        }
        table.add_index(&index)?;
        Ok(Status::Ok)
    })
}

/// Adds an index on the element at a position, counted from 1, of each row. Shorter rows aren't in
/// the index. `flags` are `larder_index_flags`. Others may read and write the table meanwhile; they
/// can't use the index before the call has returned. Match specifications use the index
/// automatically. `LARDER_BAD_OPTION` if another index has the name, or if the position or the
/// flags are invalid. `LARDER_NOT_UNIQUE` if a unique index would have a value twice.
/// `LARDER_TABLE_TYPE` if it is a table of a transaction, or has another structure than the
/// default. After an error there is no such index. O(n log n).
///
/// From then on, a write that would add a value to a unique index twice returns
/// `LARDER_NOT_UNIQUE`, and functions that insert what is new return `LARDER_NONE`.
///
/// # Safety
/// As for `larder_table_drop`; `name` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_add_index(
    table: *const larder_table,
    name: *const c_char,
    position: usize,
    flags: u32,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
    unsafe {
        add(table, name, flags, |name| {
            Ok(Index::element(name, position))
        })
    }
}

/// Adds an index on the value of an expression of match specifications, in which `'$_'` is the row:
/// `{map_get, zip, {element, 5, '$_'}}`. Rows for which the expression fails aren't in the index.
/// Apart from that like `larder_add_index`.
///
/// # Safety
/// As for `larder_add_index`; `expression` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_add_index_on(
    table: *const larder_table,
    name: *const c_char,
    expression: *const c_char,
    flags: u32,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *text* contract of `name` and
    // `expression`.
    unsafe {
        add(table, name, flags, |name| {
            let expression = text_at(expression, "expression")?;
            Ok(Index::expression(name, expression))
        })
    }
}

/// Drops an index. `LARDER_NO_INDEX` if there is none with this name. `LARDER_TABLE_TYPE` for a
/// table of a transaction. Calls of others that read the index complete, or return
/// `LARDER_NO_INDEX`. O(1); memory is freed in the background.
///
/// # Safety
/// As for `larder_add_index`.
#[no_mangle]
pub unsafe extern "C" fn larder_drop_index(
    table: *const larder_table,
    name: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
        let (table, name) = unsafe { (table_at(table)?, text_at(name, "name")?) };
        table.drop_index(name)?;
        Ok(Status::Ok)
    })
}

/// Fills `out` with the rows that have a value in an index. Values are compared as
/// `larder_view_compare` does: 1 and 1.0 are one. `LARDER_NONE`, and an empty `out`, if there are
/// none. Each row had the value at an instant during the call, and a row that has the value
/// throughout is found exactly once. In a snapshot and in a transaction the rows are those of its
/// instant. `out` may be the sequence that contains the value. `LARDER_NO_INDEX` if there is no
/// such index, or if it is still being added. O(log n), plus O(log n) for each row.
///
/// # Safety
/// As for `larder_lookup`; `name` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_index_lookup(
    table: *const larder_table,
    name: *const c_char,
    value: larder_view,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
        let (table, name) = unsafe { (table_at(table)?, text_at(name, "name")?) };
        // SAFETY: by the *view* contract of `value`.
        let found = table.index_lookup(name, &unsafe { value.require("value") }?)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `value`, which may be a view of
        // its terms, is not read any more.
        unsafe { fill(out, found) }
    })
}

/// Fills `out` with the results of a match specification for the rows of an index, in the order of
/// their values in the index. `LARDER_NONE`, and an empty `out`, if there are none. If the
/// specification limits the indexed element, only the entries within the limits are read: O(log n)
/// for each. A row whose value changes meanwhile may be found twice or not at all.
/// `LARDER_NO_INDEX` if there is no such index. `LARDER_BAD_SPEC` if the specification doesn't
/// compile.
///
/// # Safety
/// As for `larder_index_lookup`; `spec` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_index_select(
    table: *const larder_table,
    name: *const c_char,
    spec: *const c_char,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *text* contract of `name`.
        let (table, name) = unsafe { (table_at(table)?, text_at(name, "name")?) };
        // SAFETY: by the *text* contract of `spec`.
        let found = table.index_select(name, unsafe { text_at(spec, "spec") }?)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. Nothing here refers to its terms.
        unsafe { fill(out, found) }
    })
}
