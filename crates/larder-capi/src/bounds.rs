//! Rows that expire, of tables that were made with bounds.

use crate::status::{guarded, Status};
use crate::table::{larder_table, on, whether};
use crate::terms::at;
use crate::view::{give, larder_view};
use ::larder::TimeLeft;
use std::time::Duration;

/// A time of C's: a negative one is none.
fn time(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// Inserts a row, as `larder_insert`, that lives for so many milliseconds, whatever the table's
/// `ttl_ms`; a negative number stands for ever. `LARDER_TABLE_TYPE`: the table was made without
/// bounds.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_for(
    table: *const larder_table,
    row: larder_view,
    ttl_ms: i64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, row) = unsafe { (at(table, "table")?, row.some("row")?) };
        let inserted = table.0.insert_with(&row, time(ttl_ms));
        on(table, ("row", row), inserted)?;
        Ok(Status::Ok)
    })
}

/// Gives the row under a key so many milliseconds to live, from now on; a negative number stands
/// for ever. `LARDER_NONE` if there is no row. Feeds are not told. As `larder_insert_for`.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_expire(
    table: *const larder_table,
    key: larder_view,
    ttl_ms: i64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let found = table.0.expire(&key, time(ttl_ms));
        Ok(whether(on(table, ("key", key), found)?))
    })
}

/// How many milliseconds the row under a key has left, in `*ttl_ms` unless that is null: -1 for
/// ever. `LARDER_NONE` if there is no row. It is no read that `idle_ms` counts. As
/// `larder_insert_for`.
///
/// # Safety
/// As for `larder_insert`; `ttl_ms` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_time_left(
    table: *const larder_table,
    key: larder_view,
    ttl_ms: *mut i64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let left = match on(table, ("key", key), table.0.time_left(&key))? {
            TimeLeft::Absent => return Ok(Status::None),
            TimeLeft::Unlimited => -1,
            TimeLeft::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
        };
        // SAFETY: as the caller says.
        unsafe { give(ttl_ms, left) };
        Ok(Status::Ok)
    })
}
