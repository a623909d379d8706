//! Ranks of the rows of an ordered_set.

use crate::status::{guarded, Status};
use crate::table::{fill, larder_table, table_at};
use crate::terms::larder_terms;
use crate::view::{give, larder_view};

/// Gets the rank of the row under a key of an ordered_set, which is 1 for the first row. Writes it
/// to `*rank`, unless `rank` is null. `LARDER_NONE`, and an unchanged `*rank`, if there is no such
/// row. O(log n). The first call of a function about ranks also counts all rows of the table, and
/// later calls count what has changed since.
///
/// The rank is exact in a snapshot, and if nobody inserts or deletes meanwhile. Otherwise, a row
/// that exists throughout the call counts once, and a row that is inserted or deleted meanwhile may
/// count or not. `LARDER_TABLE_TYPE` if the table isn't an ordered_set, has bounds (`ttl_ms`,
/// `idle_ms`, `max_size` or `max_memory`), or has another structure than the default.
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
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let Some(found) = table.rank(&key)? else {
            return Ok(Status::None);
        };
        // SAFETY: by the *out* contract of `rank`.
        unsafe { give(rank, found) };
        Ok(Status::Ok)
    })
}

/// Fills `out` with the n-th row of an ordered_set. 1 is the first row, 2 the second, and so on; -1
/// is the last row, -2 the one before it, and so on. `LARDER_NONE`, and an empty `out`, if there is
/// no such row, as for 0. Apart from that like `larder_rank`.
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
        // SAFETY: by the *handle* contract of `table`.
        let found = unsafe { table_at(table) }?.nth(n)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. Nothing here refers to its terms.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// Fills `out` with `most` rows of an ordered_set, in order, from the n-th row on, or with fewer if
/// there are fewer. `n` is counted as by `larder_nth`. `LARDER_NONE`, and an empty `out`, if there
/// are none. Apart from that like `larder_rank`, plus O(rows).
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
        // SAFETY: by the *handle* contract of `table`.
        let found = unsafe { table_at(table) }?.slice(n, most)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. Nothing here refers to its terms.
        unsafe { fill(out, found) }
    })
}

/// Counts the rows of an ordered_set whose keys are at least `low` and less than `high`. Writes the
/// number to `*count`, unless `count` is null. Apart from that like `larder_rank`.
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
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `low`.
        let (table, low) = unsafe { (table_at(table)?, low.require("low")?) };
        // SAFETY: by the *view* contract of `high`.
        let high = unsafe { high.require("high") }?;
        let n = table.count_range(&low, &high)?;
        // SAFETY: by the *out* contract of `count`.
        unsafe { give(count, n) };
        Ok(Status::Ok)
    })
}
