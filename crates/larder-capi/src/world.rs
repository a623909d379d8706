//! Worlds of tables; tables made, found and loaded; the version.

use crate::options::{apply, larder_options};
use crate::status::{guarded, guarded_or, Failure, Status};
use crate::table::{larder_table, whether};
use crate::terms::{at, text_at};
use crate::view::give;
use ::larder::api::{Larder, Table};
use std::ffi::c_char;
use std::time::Duration;

/// A world of tables. Any number of threads may use it at once.
pub struct larder(Larder);

/// Makes an empty world. Never null.
#[no_mangle]
pub extern "C" fn larder_new() -> *mut larder {
    Box::into_raw(Box::new(larder(Larder::new())))
}

/// Gives up a world. Its tables go with it, once their handles are given up, too. Null is nothing
/// to give up. O(1); memory is freed behind.
///
/// # Safety
/// `world` is null, or came from `larder_new` and was not freed.
#[no_mangle]
pub unsafe extern "C" fn larder_free(world: *mut larder) {
    guarded_or((), || {
        if !world.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(world) });
        }
        Ok(())
    });
}

/// Waits until all that was deleted, dropped or given up is freed, in all worlds, and ends the
/// library's threads; `LARDER_NONE` if that has not come about after so many milliseconds, as it
/// may be while others delete. The threads begin anew when there is something to do.
///
/// For orderly ends: after `larder_free` and this nothing of the library is left to a leak checker.
/// And before a `fork`, if the child is to use the library, too.
#[no_mangle]
pub extern "C" fn larder_quiesce(timeout_ms: u64) -> Status {
    guarded(|| {
        let is_done = Larder::quiesce(Duration::from_millis(timeout_ms));
        Ok(whether(is_done))
    })
}

/// The version of the library that runs, such as "0.1.0": that of the header is `LARDER_VERSION`.
/// Static.
#[no_mangle]
pub extern "C" fn larder_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The same as a number, to be compared with `LARDER_VERSION_NUMBER`: 10000 times the major
/// version, 100 times the minor one, and the patch.
#[no_mangle]
pub extern "C" fn larder_version_number() -> i32 {
    let part = |text: &str| text.parse().unwrap_or(0);
    10_000 * part(env!("CARGO_PKG_VERSION_MAJOR"))
        + 100 * part(env!("CARGO_PKG_VERSION_MINOR"))
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The world and the text of what asks for a table, and whether there is a place for its handle.
///
/// # Safety
/// `world` is null or alive for `'a`; the text is null or ends with a NUL.
unsafe fn asked<'a>(
    world: *const larder,
    (text, what): (*const c_char, &str),
    table: *mut *mut larder_table,
) -> Result<(&'a larder, &'a str), Failure> {
    // SAFETY: as the caller says.
    let asked = unsafe { (at(world, "world")?, text_at(text, what)?) };
    match table.is_null() {
        // Before a table is made or found: without a place for its handle it would be out of the
        // caller's reach.
        true => Err(Failure::null("table")),
        false => Ok(asked),
    }
}

/// Gives C a handle of a table.
///
/// # Safety
/// `out` may be written to.
unsafe fn hand_out(table: Table, out: *mut *mut larder_table) {
    let handle = Box::into_raw(Box::new(larder_table(table, None)));
    // SAFETY: as the caller says.
    unsafe { give(out, handle) };
}

/// Makes a table, and a handle of it in `*table`: to be given up with `larder_table_free`.
///
/// `options` may be null: a set with the key in front. The table lives until it is dropped, or its
/// world and all its handles are given up. `LARDER_BAD_OPTION` (a name over 255 characters, an
/// option that is none, a size that is none), `LARDER_ALREADY_EXISTS` (the name of a named table).
///
/// # Safety
/// `world` is null or alive; `name` and `options->structure` are null or end with a NUL; `options`
/// is null, or has as many bytes as its size says; `table` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_table_new(
    world: *const larder,
    name: *const c_char,
    options: *const larder_options,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (world, name) = unsafe { asked(world, (name, "name"), table) }?;
        let mut builder = world.0.table(name);
        if !options.is_null() {
            // SAFETY: as the caller says.
            builder = unsafe { apply(options, builder) }?;
        }
        // SAFETY: as the caller says.
        unsafe { hand_out(builder.create()?, table) };
        Ok(Status::Ok)
    })
}

/// Finds a table that was made with `named`, and makes another handle of it in `*table`.
/// `LARDER_NONE` if there is none.
///
/// # Safety
/// As for `larder_table_new`.
#[no_mangle]
pub unsafe extern "C" fn larder_table_find(
    world: *const larder,
    name: *const c_char,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (world, name) = unsafe { asked(world, (name, "name"), table) }?;
        let Some(found) = world.0.find(name) else {
            return Ok(Status::None);
        };
        // SAFETY: as the caller says.
        unsafe { hand_out(found, table) };
        Ok(Status::Ok)
    })
}

/// Makes the table that a file holds, with the options it was saved with, and a handle of it in
/// `*table`. The whole file is checked before the first row is taken from it. `LARDER_FILE` (no
/// table's file, cut short, damaged, or what the system said), `LARDER_ALREADY_EXISTS`: nothing is
/// left of the table then. The file's atoms are kept for ever: not for files from strangers.
///
/// # Safety
/// As for `larder_table_new`.
#[no_mangle]
pub unsafe extern "C" fn larder_table_load(
    world: *const larder,
    path: *const c_char,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (world, path) = unsafe { asked(world, (path, "path"), table) }?;
        // SAFETY: as the caller says.
        unsafe { hand_out(world.0.load(path)?, table) };
        Ok(Status::Ok)
    })
}
