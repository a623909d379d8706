//! Secondary indexes.

use crate::status::{guarded, Failure, Status};
use crate::table::{fill, larder_table};
use crate::terms::{at, larder_terms, text_at};
use crate::view::larder_view;
use larder::api::Index;
use std::ffi::c_char;

/// What a secondary index is like: added up.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_index_flags {
    /// No two rows may have values that are equal.
    Unique = 1,
    /// The value is a list, each of whose elements is indexed. Rows with something else are not in
    /// the index.
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
        // SAFETY: as the caller says.
        let (table, name) = unsafe { (at(table, "table")?, text_at(name, "name")?) };
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
        table.0.add_index(&index)?;
        Ok(Status::Ok)
    })
}

/// Adds an index of the element at a position, from 1, of each row; rows that are shorter are not
/// in it. `flags` are `larder_index_flags`. Others read and write the table meanwhile; match
/// specifications find the index by themselves. `LARDER_BAD_OPTION` (a name that another index has,
/// a position or flags that are none), `LARDER_NOT_UNIQUE`, `LARDER_TABLE_TYPE` (a structure other
/// than the usual, a snapshot). O(n log n).
///
/// From then on a write that would give a unique index a value twice is `LARDER_NOT_UNIQUE`.
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
    // SAFETY: as the caller says.
    unsafe {
        add(table, name, flags, |name| {
            Ok(Index::element(name, position))
        })
    }
}

/// Adds an index of what an expression of match specifications gives for each row, `'$_'`:
/// `{map_get, zip, {element, 5, '$_'}}`. Rows for which it fails are not in it. As
/// `larder_add_index`.
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
    // SAFETY: as the caller says.
    unsafe {
        add(table, name, flags, |name| {
            let expression = text_at(expression, "expression")?;
            Ok(Index::expression(name, expression))
        })
    }
}

/// Drops an index. O(1). `LARDER_NO_INDEX`.
///
/// # Safety
/// As for `larder_add_index`.
#[no_mangle]
pub unsafe extern "C" fn larder_drop_index(
    table: *const larder_table,
    name: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, name) = unsafe { (at(table, "table")?, text_at(name, "name")?) };
        table.0.drop_index(name)?;
        Ok(Status::Ok)
    })
}

/// Fills `out` with the rows that have a value in an index; `LARDER_NONE`, and an empty `out`, if
/// there are none. A row that has it throughout the call is there once. `out` may be the sequence
/// that the value is viewed in. `LARDER_NO_INDEX`. O(log n), and O(log n) for each row.
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
        // SAFETY: as the caller says.
        let (table, name) = unsafe { (at(table, "table")?, text_at(name, "name")?) };
        // SAFETY: as the caller says.
        let found = table
            .0
            .index_lookup(name, &unsafe { value.some("value") }?)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found) }
    })
}

/// Fills `out` with what a match specification gives for the rows of an index, in the order of
/// their values there; `LARDER_NONE`, and an empty `out`, if that is nothing. A row whose value
/// changes meanwhile may be met twice or not at all. `LARDER_NO_INDEX`, `LARDER_BAD_SPEC`.
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
        // SAFETY: as the caller says.
        let (table, name) = unsafe { (at(table, "table")?, text_at(name, "name")?) };
        // SAFETY: as the caller says.
        let found = table
            .0
            .index_select(name, unsafe { text_at(spec, "spec") }?)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found) }
    })
}
