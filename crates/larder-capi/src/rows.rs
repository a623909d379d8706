//! Match specifications, ranges and scans.

use crate::pairs::larder_key;
use crate::status::{free, guarded, Failure, Status};
use crate::table::{fill, larder_table, table_at};
use crate::terms::{at, at_mut, larder_terms, text_at};
use crate::view::{give, needed};
use larder::api::{Rows, Snapshot, Table};
use larder::Direction;
use larder_term::AsTerm;
use larder_term::Term;
use std::ffi::c_char;
use std::ops::Bound;
use std::sync::Arc;

/// A scan, whose results are returned page by page. Only one thread at a time may use it. It
/// doesn't need the table's handle to stay.
pub struct larder_rows {
    rows: Rows,
    /// The snapshot that is scanned, which would end with its handle.
    _kept: Option<Arc<Snapshot>>,
}

/// Begins a scan, and writes a handle of it to `*rows`.
///
/// # Safety
/// `table` is null or a handle that was not freed; `rows` is null or may be written to.
pub(crate) unsafe fn begin(
    table: *const larder_table,
    rows: *mut *mut larder_rows,
    scan: impl FnOnce(&Table) -> Result<Rows, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let handle = unsafe { at(table, "table") }?;
        // Check this before the scan begins: its handle could never be freed.
        needed(rows, "rows")?;
        let begun = larder_rows {
            rows: scan(&handle.current())?,
            _kept: handle.kept(),
        };
        // SAFETY: by the *out* contract of `rows`.
        unsafe { give(rows, Box::into_raw(Box::new(begun))) };
        Ok(Status::Ok)
    })
}

pub(crate) fn direction(backward: bool) -> Direction {
    match backward {
        true => Direction::Backward,
        false => Direction::Forward,
    }
}

/// Begins a scan for the results of a match specification in Erlang's syntax, such as
/// `[{{'$1','$2'},[{'<','$2',5}],['$1']}]`. Writes a handle of the scan to `*rows`, which must be
/// freed by `larder_rows_free`. `larder_rows_next` returns the results. If `backward` is set, the
/// scan of an ordered_set is in descending order; other tables have one order only. If the key is
/// known, or guards limit the key of an ordered_set, or an index has what is asked for, only
/// matching rows are examined. Otherwise all are: O(n) in all. The call itself compiles the
/// specification, in time in proportion to it, and takes O(1), in an ordered_set O(log n).
/// `LARDER_BAD_SPEC` if the specification doesn't compile; the message has the reason.
///
/// A row that exists throughout the scan is found exactly once. One that is inserted, deleted or
/// replaced meanwhile may be found in either state, or not. A scan of a snapshot sees one instant.
/// While a scan exists, its world and its table stay, as with a handle.
///
/// # Safety
/// As for `larder_table_drop`; `spec` is null or ends with a NUL; `rows` is null or may be written
/// to.
#[no_mangle]
pub unsafe extern "C" fn larder_select(
    table: *const larder_table,
    spec: *const c_char,
    backward: bool,
    rows: *mut *mut larder_rows,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *text* contract of `spec` and the *out*
    // contract of `rows`.
    unsafe {
        begin(table, rows, |table| {
            Ok(table.rows(text_at(spec, "spec")?, direction(backward))?)
        })
    }
}

/// Begins a scan of all rows, which `larder_rows_next` returns. O(1), in an ordered_set O(log n).
/// Apart from that like `larder_select`.
///
/// # Safety
/// As for `larder_select`.
#[no_mangle]
pub unsafe extern "C" fn larder_each(
    table: *const larder_table,
    backward: bool,
    rows: *mut *mut larder_rows,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *out* contract of `rows`.
    unsafe {
        begin(
            table,
            rows,
            |table| Ok(table.all_rows(direction(backward))?),
        )
    }
}

/// Begins a scan of the rows of an ordered_set whose keys are at least `low` and less than `high`.
/// A key of nothing is no bound. There are no rows if `low` isn't less than `high`.
/// `LARDER_TABLE_TYPE` for other tables. O(log n) plus the rows that are returned. Apart from that
/// like `larder_select`.
///
/// # Safety
/// As for `larder_select`; what the keys refer to is as it was when they were made.
#[no_mangle]
pub unsafe extern "C" fn larder_range(
    table: *const larder_table,
    low: larder_key,
    high: larder_key,
    backward: bool,
    rows: *mut *mut larder_rows,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *key* contract of `low` and `high` and the
    // *out* contract of `rows`.
    unsafe {
        begin(table, rows, |table| {
            let (low, high) = (low.term()?, high.term()?);
            let low = low.as_ref().map_or(Bound::Unbounded, Bound::Included);
            let high = high.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let (low, high) = (low.map(|key| key.as_term()), high.map(|key| key.as_term()));
            Ok(table.range(low, high, direction(backward))?)
        })
    }
}

/// Fills `out` with the next results: `most` of them, or fewer at the end. `LARDER_NONE`, and an
/// empty `out`, if there are no more. `LARDER_BAD_ARGUMENT` if `most` is 0. `LARDER_NO_TABLE` if
/// the table was dropped, or the attempt of the transaction has ended. Nothing is locked between
/// calls: others may write. A row that exists throughout the scan is found exactly once. O(rows
/// that are examined).
///
/// # Safety
/// `rows` is null, or a scan that was not freed and nobody else uses; `out` is null or a sequence
/// that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_rows_next(
    rows: *mut larder_rows,
    most: usize,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *exclusive handle* contract of `rows`.
        let rows = unsafe { at_mut(rows, "rows") }?;
        // Check this first. Otherwise the page would be lost.
        needed(out, "out")?;
        // A page of no rows would look like the end.
        if most == 0 {
            return Err(Failure::new(Status::BadArgument, "most is 0"));
        }
        let found = rows.rows.page(most)?;
        // SAFETY: by the *exclusive sequence* contract of `out`.
        unsafe { fill(out, found) }
    })
}

/// Frees a scan, which need not be at its end. Does nothing if `rows` is null. O(1).
///
/// # Safety
/// `rows` is null, or a scan that was not freed; nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn larder_rows_free(rows: *mut larder_rows) {
    // SAFETY: by contract, `rows` is null, or a scan that was not freed and nobody uses any more.
    // `begin` made it by `Box::into_raw`.
    unsafe { free(rows) };
}

/// Runs a match specification over all rows. Writes a number to `*count`, unless `count` is null.
///
/// # Safety
/// `table` is null or a handle that was not freed; `count` is null or may be written to.
pub(crate) unsafe fn over_all<S>(
    table: *const larder_table,
    spec: impl FnOnce() -> Result<S, Failure>,
    count: *mut u64,
    run: impl FnOnce(&Table, S) -> Result<u64, larder::Error>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table`.
        let table = unsafe { table_at(table) }?;
        let n = run(&table, spec()?)?;
        // SAFETY: by the *out* contract of `count`.
        unsafe { give(count, n) };
        Ok(Status::Ok)
    })
}

/// Counts the rows for which a match specification returns `true`. Writes their number to `*count`,
/// unless `count` is null. Examines the rows that `larder_select` does, and sees writes of others
/// as that does. `LARDER_BAD_SPEC` if the specification doesn't compile.
///
/// # Safety
/// As for `larder_table_drop`; `spec` is null or ends with a NUL; `count` is null or may be written
/// to.
#[no_mangle]
pub unsafe extern "C" fn larder_select_count(
    table: *const larder_table,
    spec: *const c_char,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *text* contract of `spec`.
    let spec = || unsafe { text_at(spec, "spec") };
    // SAFETY: by the *handle* contract of `table` and the *out* contract of `count`.
    unsafe { over_all(table, spec, count, |table, spec| table.select_count(spec)) }
}

/// Deletes the rows for which a match specification returns `true`. Writes their number to
/// `*count`, unless `count` is null. Each row, in a bag all rows of a key, is deleted at one
/// instant, and not all of them together: others may see some of them gone. Examines the rows that
/// `larder_select` does. `LARDER_BAD_SPEC` if the specification doesn't compile; nothing is deleted
/// then.
///
/// # Safety
/// As for `larder_select_count`.
#[no_mangle]
pub unsafe extern "C" fn larder_select_delete(
    table: *const larder_table,
    spec: *const c_char,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *text* contract of `spec`.
    let spec = || unsafe { text_at(spec, "spec") };
    // SAFETY: by the *handle* contract of `table` and the *out* contract of `count`.
    unsafe { over_all(table, spec, count, |table, spec| table.select_delete(spec)) }
}

/// Fills `out` with the results of a match specification that deletes rows.
///
/// # Safety
/// `table` is null or a handle that was not freed; `out` is null or a sequence that nobody else
/// uses.
pub(crate) unsafe fn taken<S>(
    table: *const larder_table,
    spec: impl FnOnce() -> Result<S, Failure>,
    out: *mut larder_terms,
    take: impl FnOnce(&Table, S) -> Result<Vec<Term>, larder::Error>,
) -> Status {
    guarded(|| {
        // Check this before anything is deleted: the results would be lost.
        needed(out, "out")?;
        // SAFETY: by the *handle* contract of `table`.
        let table = unsafe { table_at(table) }?;
        let found = take(&table, spec()?)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `found` doesn't refer to its
        // terms.
        unsafe { fill(out, found) }
    })
}

/// Deletes the rows that a match specification matches, and fills `out` with its results for them,
/// which are those that `larder_select` would return. Each row, in a bag all rows of a key, is
/// taken at one instant, and not all of them together. If several threads take the same row, only
/// one gets it. `LARDER_NONE`, and an empty `out`, if nothing matched. If `out` is null, nothing is
/// deleted. Examines the rows that `larder_select` does. `LARDER_BAD_SPEC` if the specification
/// doesn't compile. If the table is dropped meanwhile, `LARDER_NO_TABLE`, and the rows that were
/// taken are lost.
///
/// # Safety
/// As for `larder_table_drop`; `spec` is null or ends with a NUL; `out` is null or a sequence that
/// nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_select_take(
    table: *const larder_table,
    spec: *const c_char,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: by the *text* contract of `spec`.
    let spec = || unsafe { text_at(spec, "spec") };
    let take = |table: &Table, spec: &str| table.select_take(spec);
    // SAFETY: by the *handle* contract of `table` and the *exclusive sequence* contract of `out`.
    unsafe { taken(table, spec, out, take) }
}

/// Replaces the rows that a match specification matches by its results, each at one instant, and
/// only if it is still the row that was matched. A result must have the key of its row. Writes the
/// number of rows to `*count`, unless `count` is null. Examines the rows that `larder_select` does.
/// `LARDER_BAD_SPEC` if the specification doesn't compile. `LARDER_TABLE_TYPE` if a key might
/// change, and for bags. After `LARDER_NOT_UNIQUE` or `LARDER_FULL` the rows before are replaced.
///
/// # Safety
/// As for `larder_select_count`.
#[no_mangle]
pub unsafe extern "C" fn larder_select_replace(
    table: *const larder_table,
    spec: *const c_char,
    count: *mut u64,
) -> Status {
    // SAFETY: by the *text* contract of `spec`.
    let spec = || unsafe { text_at(spec, "spec") };
    // SAFETY: by the *handle* contract of `table` and the *out* contract of `count`.
    unsafe { over_all(table, spec, count, |table, spec| table.select_replace(spec)) }
}
