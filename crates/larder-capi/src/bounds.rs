//! Rows that expire, in tables that were made with bounds.

use crate::status::{guarded, Status};
use crate::table::{larder_table, ok_or_none, table_at, with_context};
use crate::view::{give, larder_view};
use ::larder::TimeLeft;
use std::time::Duration;

/// A time of C. A negative one means `None`.
fn time(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// Inserts a row, like `larder_insert`, that expires after `ttl_ms` milliseconds, whatever the
/// table's own `ttl_ms` is. If it is negative, the row doesn't expire. In a transaction the time
/// begins at the commit. `LARDER_TABLE_TYPE` if the table was made without bounds.
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
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `row`.
        let (table, row) = unsafe { (table_at(table)?, row.require("row")?) };
        let inserted = table.insert_with(&row, time(ttl_ms));
        with_context(&table, "row", row, inserted)?;
        Ok(Status::Ok)
    })
}

/// Sets the time to live of the row under a key to `ttl_ms` milliseconds from now, in a transaction
/// from its commit. If it is negative, the row doesn't expire. Atomic. Feeds don't report this.
/// `LARDER_NONE` if there is no row. `LARDER_TABLE_TYPE` if the table was made without bounds.
/// O(1), in an ordered_set O(log n).
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
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let found = table.expire(&key, time(ttl_ms));
        Ok(ok_or_none(with_context(&table, "key", key, found)?))
    })
}

/// Gets the remaining time of the row under a key in milliseconds, or -1 if the row doesn't expire.
/// Writes it to `*ttl_ms`, unless `ttl_ms` is null. This doesn't count as a read for `idle_ms`. In
/// a snapshot it is the time that was left at its instant. `LARDER_NONE`, and an unchanged
/// `*ttl_ms`, if there is no row. `LARDER_TABLE_TYPE` if the table was made without bounds. The
/// cost is that of `larder_contains`.
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
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        let left = match with_context(&table, "key", key, table.time_left(&key))? {
            TimeLeft::Absent => return Ok(Status::None),
            TimeLeft::Unlimited => -1,
            TimeLeft::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
        };
        // SAFETY: by the *out* contract of `ttl_ms`.
        unsafe { give(ttl_ms, left) };
        Ok(Status::Ok)
    })
}
