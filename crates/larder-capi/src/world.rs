//! Worlds of tables; tables made, found and loaded.

use crate::status::{guarded, guarded_or, Failure, Status};
use crate::table::larder_table;
use crate::terms::{at, text_at};
use crate::view::give;
use ::larder::api::{Builder, Larder, Table};
use std::ffi::{c_char, c_int};

/// A world of tables. Any number of threads may use it at once.
pub struct larder(Larder);

/// One row a key, in no order.
pub const LARDER_SET: c_int = 0;
/// One row a key, in the order of keys; 1 and 1.0 are one key.
pub const LARDER_ORDERED_SET: c_int = 1;
/// Any number of different rows a key, in order of arrival.
pub const LARDER_BAG: c_int = 2;
/// Any number of rows a key, the same one several times too.
pub const LARDER_DUPLICATE_BAG: c_int = 3;

/// How a table is made. Zeroed, it makes a set with the key in front.
#[repr(C)]
pub struct larder_options {
    /// `LARDER_SET`, `LARDER_ORDERED_SET`, `LARDER_BAG` or `LARDER_DUPLICATE_BAG`.
    pub kind: c_int,
    /// The position of the key in each row, from 1; 0 stands for 1.
    pub keypos: usize,
    /// Whether `larder_table_find` finds the table; no other may have its name.
    pub named: bool,
    /// Whether rows are kept compressed: less memory, more work for each access.
    pub compressed: bool,
    /// Whether rows are counted in many places: quicker for many writers, slower to ask.
    pub decentralized_counters: bool,
    /// The structure to build on, with its options: `"btree"`, `"catree(over=btree,m=16)"`; null
    /// for the default, which is best for nearly everything.
    pub structure: *const c_char,
}

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

/// Puts the options into a builder.
///
/// # Safety
/// `structure` is null or ends with a NUL.
unsafe fn apply(options: &larder_options, builder: Builder) -> Result<Builder, Failure> {
    let mut builder = match options.kind {
        LARDER_SET => builder.set(),
        LARDER_ORDERED_SET => builder.ordered_set(),
        LARDER_BAG => builder.bag(),
        LARDER_DUPLICATE_BAG => builder.duplicate_bag(),
        other => {
            let text = format!("there is no kind of table {other}");
            return Err(Failure::new(Status::BadOption, text));
        }
    };
    builder = builder.keypos(options.keypos.max(1));
    if options.named {
        builder = builder.named();
    }
    if options.compressed {
        builder = builder.compressed();
    }
    if options.decentralized_counters {
        builder = builder.decentralized_counters();
    }
    if !options.structure.is_null() {
        // SAFETY: as the caller says.
        builder = builder.structure_text(unsafe { text_at(options.structure, "structure") }?);
    }
    Ok(builder)
}

/// Makes a table, and a handle of it in `*table`: to be given up with `larder_table_free`.
///
/// `options` may be null: a set with the key in front. The table lives until it is dropped, or its
/// world and all its handles are given up. `LARDER_BAD_OPTION` (a name over 255 characters, an
/// option that is none), `LARDER_ALREADY_EXISTS` (the name of a named table).
///
/// # Safety
/// `world` is null or alive; `name` and `options->structure` are null or end with a NUL; `options`
/// is null or valid; `table` is null or may be written to.
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
        // SAFETY: as the caller says.
        if let Some(options) = unsafe { options.as_ref() } {
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

/// The library's version, such as "0.1.0". Static.
#[no_mangle]
pub extern "C" fn larder_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
