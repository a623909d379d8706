//! Changing maps in rows in place.

use crate::status::{guarded, Status};
use crate::table::{larder_table, ok_or_none, summed, table_at, with_context};
use crate::view::larder_view;

/// Sets the value under a key of a map. The map is the element at `position`, counted from 1, of
/// the row under `key`. Atomic: a reader sees the old map or the new one. The row's bytes are
/// copied, but not decoded: linear in the row, and O(1), in an ordered_set O(log n), to find it.
/// `LARDER_NONE` if there is no such row; `LARDER_NOT_MAP` if the element isn't a map;
/// `LARDER_BAD_ROW` if there is no such position, or if it is the key's; `LARDER_TABLE_TYPE` for
/// bags.
///
/// # Safety
/// As for `larder_insert`, for all views.
#[no_mangle]
pub unsafe extern "C" fn larder_map_put(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    map_key: larder_view,
    value: larder_view,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by the *view* contract of `map_key` and `value`.
        let (map_key, value) = unsafe { (map_key.require("map_key")?, value.require("value")?) };
        let put = table.update_map(&key, position, &map_key, &value);
        Ok(ok_or_none(with_context(&table, "key", key, put)?))
    })
}

/// Removes a key from a map, if the map has it. Otherwise like `larder_map_put`.
///
/// # Safety
/// As for `larder_map_put`.
#[no_mangle]
pub unsafe extern "C" fn larder_map_remove(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    map_key: larder_view,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by the *view* contract of `map_key`.
        let map_key = unsafe { map_key.require("map_key") }?;
        let removed = table.remove_map_key(&key, position, &map_key);
        Ok(ok_or_none(with_context(&table, "key", key, removed)?))
    })
}

/// Adds to the integer under a key of a map, and writes the sum to `*sum`, unless `sum` is null.
/// Atomic. If the map doesn't have the key, the counter starts from `*initial`; if `initial` is
/// null, this is `LARDER_BAD_KEY`. So is a row that doesn't exist. Otherwise like `larder_add` and
/// `larder_map_put`.
///
/// # Safety
/// As for `larder_map_put`; `initial` is null or may be read, `sum` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_map_add(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    map_key: larder_view,
    increment: i64,
    initial: *const i64,
    sum: *mut i64,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *view* contract of `key`.
        let (table, key) = unsafe { (table_at(table)?, key.require("key")?) };
        // SAFETY: by contract, the terms of the view `map_key` are unchanged; `initial` is null or
        // may be read.
        let (map_key, initial) = unsafe { (map_key.require("map_key")?, initial.as_ref()) };
        let initial = initial.copied();
        let total = table.add_in_map(&key, position, &map_key, increment, initial);
        let total = with_context(&table, "key", key, total)?;
        // SAFETY: by the *out* contract of `sum`.
        unsafe { summed(&total, sum) }
    })
}
