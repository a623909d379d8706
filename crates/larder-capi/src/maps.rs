//! Maps in rows: changed in their place.

use crate::status::{guarded, Status};
use crate::table::{larder_table, on, summed, whether};
use crate::terms::at;
use crate::view::larder_view;

/// Gives a key of a map this value; the map is the element at a position, from 1, of the row under
/// a key. `LARDER_NONE` if there is no such row. Atomic; nothing else of the row is looked at or
/// copied out. `LARDER_NOT_MAP` if the element is none, `LARDER_BAD_ROW` (no such position, or the
/// key's), `LARDER_TABLE_TYPE` (bags).
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
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let (map_key, value) = unsafe { (map_key.some("map_key")?, value.some("value")?) };
        let put = table.0.update_map(&key, position, &map_key, &value);
        Ok(whether(on(table, ("key", key), put)?))
    })
}

/// Removes a key of such a map, if the map has it: as `larder_map_put`.
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
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let map_key = unsafe { map_key.some("map_key") }?;
        let removed = table.0.remove_map_key(&key, position, &map_key);
        Ok(whether(on(table, ("key", key), removed)?))
    })
}

/// Adds to the integer that a key of such a map has; the sum in `*sum` unless that is null. Atomic.
/// A map without the key gets it, and the counter begins with `*initial`; if `initial` is null,
/// that is `LARDER_BAD_KEY`, and so is a row that is not there. Otherwise as `larder_add` and
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
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let (map_key, initial) = unsafe { (map_key.some("map_key")?, initial.as_ref()) };
        let initial = initial.copied();
        let total = table
            .0
            .add_in_map(&key, position, &map_key, increment, initial);
        let total = on(table, ("key", key), total)?;
        // SAFETY: as the caller says.
        unsafe { summed(&total, sum) }
    })
}
