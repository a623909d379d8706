//! Ranks of an ordered_set's rows.

use crate::status::{guarded, Status};
use crate::table::{fill, larder_table};
use crate::terms::{at, larder_terms};
use crate::view::{give, larder_view};

/// The rank of the row under a key of an ordered_set, 1 for the first, in `*rank` unless that is
/// null; `LARDER_NONE` if there is no such row. O(log n); the first question about ranks counts the
/// table once, each later one what has changed since.
///
/// Exact while nobody inserts or deletes, and of a snapshot. Otherwise a row that is there
/// throughout the call counts once; one that comes or goes meanwhile may count or not.
/// `LARDER_TABLE_TYPE`: a table that is no ordered_set, or on a structure other than the usual.
///
/// # Safety
/// As for `larder_insert`; `rank` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_rank(
    table: *const larder_table,
    key: larder_view,
    rank: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let Some(found) = table.0.rank(&key)? else {
            return Ok(Status::None);
        };
        // SAFETY: as the caller says.
        unsafe { give(rank, found) };
        Ok(Status::Ok)
    })
}

/// Fills `out` with the n-th row of an ordered_set: from 1 on from the first, from -1 on from the
/// last. `LARDER_NONE`, and an empty `out`, if there are fewer, and for 0. As `larder_rank`.
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_nth(
    table: *const larder_table,
    n: i64,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let found = unsafe { at(table, "table") }?.0.nth(n)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// Fills `out` with rows of an ordered_set, in order, from the n-th on, which is counted as by
/// `larder_nth`: `most`, or as many as there are. `LARDER_NONE`, and an empty `out`, if that is
/// none. As `larder_rank`, and O(rows).
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_slice(
    table: *const larder_table,
    n: i64,
    most: usize,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let found = unsafe { at(table, "table") }?.0.slice(n, most)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found) }
    })
}

/// How many rows of an ordered_set have keys from `low` on and before `high`, in `*count` unless
/// that is null. As `larder_rank`.
///
/// # Safety
/// As for `larder_insert`, for both views; `count` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_count_range(
    table: *const larder_table,
    low: larder_view,
    high: larder_view,
    count: *mut u64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, low) = unsafe { (at(table, "table")?, low.some("low")?) };
        // SAFETY: as the caller says.
        let high = unsafe { high.some("high") }?;
        let n = table.0.count_range(&low, &high)?;
        // SAFETY: as the caller says.
        unsafe { give(count, n) };
        Ok(Status::Ok)
    })
}
