//! Worlds of tables; making, finding and loading tables; the version.

use crate::options::{apply, larder_options};
use crate::status::{free, guarded, Failure, Status};
use crate::table::{hand_out, larder_table, ok_or_none};
use crate::terms::{at, text_at};
use crate::view::needed;
use ::larder::api::Larder;
use std::ffi::c_char;
use std::time::Duration;

/// A world: a set of tables. Any number of threads may use it at once.
pub struct larder(Larder);

/// Makes an empty world. Never returns null. O(1).
#[no_mangle]
pub extern "C" fn larder_new() -> *mut larder {
    Box::into_raw(Box::new(larder(Larder::new())))
}

/// Frees a world. Its tables are dropped when all their handles are freed, too: those of tables and
/// snapshots, and the scans, transactions and lists of operations that use them. A feed doesn't
/// count: it ends with `LARDER_EVENT_GONE`. Does nothing if `world` is null. O(1) for each table;
/// memory is freed in the background.
///
/// # Safety
/// `world` is null, or came from `larder_new` and was not freed; nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn larder_free(world: *mut larder) {
    // SAFETY: by contract, `world` is null, or a world that was not freed and nobody uses any more.
    // `larder_new` made it by `Box::into_raw`.
    unsafe { free(world) };
}

/// Waits until all memory of what was deleted, dropped or freed is given back, in all worlds, and
/// ends the library's threads. `LARDER_NONE` if that isn't achieved within `timeout_ms`
/// milliseconds, of which a day is the most, as may happen while others delete. The threads start
/// again when they are needed. Other threads may use tables meanwhile. It takes the time that the
/// library's threads need to free the memory.
///
/// Call this after `larder_free` at the end of a program, so that a leak checker finds nothing of
/// the library. Also call it before a `fork`, if the child process is to use the library. While
/// there are tables whose rows may expire or be evicted, the thread that removes these rows stays:
/// drop such tables before. Otherwise nothing is removed in the child, and what the thread had
/// locked stays locked there.
#[no_mangle]
pub extern "C" fn larder_quiesce(timeout_ms: u64) -> Status {
    guarded(|| {
        let is_done = Larder::quiesce(Duration::from_millis(timeout_ms));
        Ok(ok_or_none(is_done))
    })
}

/// Returns the version of the library that runs, such as "0.1.0". The version of the header is
/// `LARDER_VERSION`. The text is never freed.
#[no_mangle]
pub extern "C" fn larder_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the version of the library that runs as a number, for comparisons with
/// `LARDER_VERSION_NUMBER`: 10000 times the major version, plus 100 times the minor version, plus
/// the patch level.
#[no_mangle]
pub extern "C" fn larder_version_number() -> i32 {
    let part = |text: &str| text.parse().unwrap_or(0);
    10_000 * part(env!("CARGO_PKG_VERSION_MAJOR"))
        + 100 * part(env!("CARGO_PKG_VERSION_MINOR"))
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The world and the text of a call that asks for a table. Checks that there is a place for the
/// handle.
///
/// # Safety
/// `world` is null or a world that isn't freed during `'a`; the text is null or ends with a NUL,
/// and doesn't change during `'a`.
unsafe fn world_and_text<'a>(
    world: *const larder,
    text: *const c_char,
    what: &str,
    table: *mut *mut larder_table,
) -> Result<(&'a larder, &'a str), Failure> {
    // SAFETY: by contract, `world` is null or a world that isn't freed during `'a`; `text` is null
    // or ends with a NUL, and doesn't change during `'a`.
    let found = unsafe { (at(world, "world")?, text_at(text, what)?) };
    // Check this before a table is made or found. Its handle would be lost.
    needed(table, "table")?;
    Ok(found)
}

/// Makes a table, and writes a handle of it to `*table`, which must be freed by
/// `larder_table_free`. O(1).
///
/// If `options` is null, the table is a set, and the key is the first element of each row. The
/// table exists until it is dropped, or its world and all its handles are freed.
/// `LARDER_BAD_OPTION` if the name has more than 255 characters, if an option doesn't exist, is out
/// of range or isn't for this type of table, or if the size is wrong; the message says which.
/// `LARDER_ALREADY_EXISTS` if the option `named` is set, and another named table of the world has
/// the name. The name is kept until the process ends, so don't make names of data.
///
/// # Safety
/// `world` is null or a world that was not freed; `name` and `options->structure` are null or end
/// with a NUL; `options` is null, or has as many bytes as its size says, and each `bool` of it is
/// true or false; `table` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_table_new(
    world: *const larder,
    name: *const c_char,
    options: *const larder_options,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `world` and the *text* contract of `name`.
        let (world, name) = unsafe { world_and_text(world, name, "name", table) }?;
        let mut builder = world.0.table(name);
        if !options.is_null() {
            // SAFETY: `options` is not null. So by contract, it has as many bytes as its size says,
            // each `bool` is true or false, and `structure` is null or ends with a NUL.
            builder = unsafe { apply(options, builder) }?;
        }
        // SAFETY: by the *out* contract of `table`.
        unsafe { hand_out(builder.create()?, table) };
        Ok(Status::Ok)
    })
}

/// Finds a table of the world that was made with the option `named`, and writes another handle of
/// it to `*table`. `LARDER_NONE`, and an unchanged `*table`, if there is none with this name. O(1).
/// While another thread renames the table, it is found by its old name, its new one, or for a
/// moment by both.
///
/// # Safety
/// `world` is null or a world that was not freed; `name` is null or ends with a NUL; `table` is
/// null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_table_find(
    world: *const larder,
    name: *const c_char,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `world` and the *text* contract of `name`.
        let (world, name) = unsafe { world_and_text(world, name, "name", table) }?;
        let Some(found) = world.0.find(name) else {
            return Ok(Status::None);
        };
        // SAFETY: by the *out* contract of `table`.
        unsafe { hand_out(found, table) };
        Ok(Status::Ok)
    })
}

/// Loads a table from a file, and writes a handle of it to `*table`. It has the type, key position,
/// name and compression of the table that was saved, but none of its limits, lifetimes and indexes.
/// The whole file is checked before the first row is loaded. O(n), in an ordered_set O(n log n). If
/// it is a named one, `larder_table_find` finds it before the call returns, with a part of its
/// rows.
///
/// `LARDER_FILE` if the file isn't that of a table, is truncated or damaged, or if the system
/// reports an error. `LARDER_ALREADY_EXISTS` if the table was saved as a named one, and another
/// named table has the name. After an error no table is left. Atoms in the file are never freed, so
/// don't load untrusted files.
///
/// # Safety
/// `world` is null or a world that was not freed; `path` is null or ends with a NUL; `table` is
/// null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_table_load(
    world: *const larder,
    path: *const c_char,
    table: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `world` and the *text* contract of `path`.
        let (world, path) = unsafe { world_and_text(world, path, "path", table) }?;
        // SAFETY: by the *out* contract of `table`.
        unsafe { hand_out(world.0.load(path)?, table) };
        Ok(Status::Ok)
    })
}
