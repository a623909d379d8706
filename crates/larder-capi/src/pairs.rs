//! Rows of a key and a value, `{Key, Value}`, without terms to build and take apart.
//!
//! Rows may have more elements: what is got and added to is the second. The key is in front.

use crate::status::{guarded, Failure, Status};
use crate::table::{fill, larder_table, on, summed, whether};
use crate::terms::{all_at, at, larder_terms};
use crate::view::{copy_text, give, larder_view};
use larder_term::{Term, TermRef, View};
use std::ffi::{c_char, CStr};

/// The position of the value.
const VALUE: usize = 2;

/// What a `larder_key` is.
const NOTHING: u32 = 0;
const INTEGER: u32 = 1;
const BINARY: u32 = 2;
const TERM: u32 = 3;

/// A key, or a bound of a range, made by a function `larder_key_…`; zeroed, nothing. It leads to
/// the text, the bytes or the term that it was made of, which have to stay as they are meanwhile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct larder_key {
    /// What it is.
    pub form: u32,
    /// The integer.
    pub integer: i64,
    /// The bytes of a binary or a view.
    pub bytes: *const u8,
    /// How many they are.
    pub len: usize,
}

impl larder_key {
    const NOTHING: larder_key = larder_key {
        form: NOTHING,
        integer: 0,
        bytes: std::ptr::null(),
        len: 0,
    };

    /// The key as a term; None for nothing.
    ///
    /// # Safety
    /// What the key leads to is as it was when it was made.
    pub(crate) unsafe fn term(self) -> Result<Option<Term>, Failure> {
        let (bytes, len) = (self.bytes, self.len);
        Ok(Some(match self.form {
            NOTHING => return Ok(None),
            INTEGER => Term::int(self.integer),
            // SAFETY: as the caller says.
            BINARY => Term::binary(unsafe { all_at(bytes, len, "bytes") }?),
            TERM => {
                let view = larder_view { bytes, len };
                // SAFETY: as the caller says.
                Term::from(unsafe { view.some("key") }?)
            }
            other => {
                let text =
                    format!("key has the form {other}, which no function larder_key_… makes");
                return Err(Failure::new(Status::BadArgument, text));
            }
        }))
    }

    /// The key, which has to be something.
    ///
    /// # Safety
    /// As for `term`.
    unsafe fn some(self) -> Result<Term, Failure> {
        // SAFETY: as the caller says.
        unsafe { self.term() }?
            .ok_or_else(|| Failure::new(Status::BadTerm, "key is a key of nothing"))
    }
}

/// The integer as a key.
#[no_mangle]
pub extern "C" fn larder_key_i64(key: i64) -> larder_key {
    larder_key {
        form: INTEGER,
        integer: key,
        ..larder_key::NOTHING
    }
}

/// The binary of a text's bytes, without the NUL, as a key. Null is nothing.
///
/// # Safety
/// `key` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_key_str(key: *const c_char) -> larder_key {
    if key.is_null() {
        return larder_key::NOTHING;
    }
    // SAFETY: as the caller says.
    let len = unsafe { CStr::from_ptr(key) }.count_bytes();
    larder_key_bytes(key.cast(), len)
}

/// The binary of `len` bytes, which may be anything, as a key.
#[no_mangle]
pub extern "C" fn larder_key_bytes(key: *const u8, len: usize) -> larder_key {
    larder_key {
        form: BINARY,
        bytes: key,
        len,
        ..larder_key::NOTHING
    }
}

/// The term as a key; of a view of nothing, nothing.
#[no_mangle]
pub extern "C" fn larder_key_view(key: larder_view) -> larder_key {
    match key.bytes.is_null() {
        true => larder_key::NOTHING,
        false => larder_key {
            form: TERM,
            bytes: key.bytes,
            len: key.len,
            ..larder_key::NOTHING
        },
    }
}

/// The table and the key of a pair.
///
/// # Safety
/// `table` is null or a handle that was not given up; what the key leads to is as it was when it
/// was made.
unsafe fn pair<'a>(
    table: *const larder_table,
    key: larder_key,
) -> Result<(&'a larder_table, Term), Failure> {
    // SAFETY: as the caller says.
    let (table, key) = unsafe { (at(table, "table")?, key.some()?) };
    match table.0.engine_table().keypos() {
        1 => Ok((table, key)),
        keypos => {
            let text = format!(
                "rows of a key and a value are for tables with the key in front, and it is at \
                 position {keypos} of this one's"
            );
            Err(Failure::new(Status::TableType, text))
        }
    }
}

/// Inserts a pair.
///
/// # Safety
/// As for `larder_put`.
unsafe fn put(
    table: *const larder_table,
    key: larder_key,
    value: impl FnOnce() -> Result<Term, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        let row = Term::tuple([key, value()?]);
        on(table, ("row", row.as_ref()), table.0.insert(&row))?;
        Ok(Status::Ok)
    })
}

/// Inserts the row `{Key, Value}`, as `larder_insert`: in a set in place of the one with the key.
/// `LARDER_TABLE_TYPE`, as for all functions on pairs: the table's key is not in front.
///
/// # Safety
/// As for `larder_table_drop`; the view's terms, and what the key leads to, are as they were when
/// they were made.
#[no_mangle]
pub unsafe extern "C" fn larder_put(
    table: *const larder_table,
    key: larder_key,
    value: larder_view,
) -> Status {
    // SAFETY: as the caller says.
    unsafe { put(table, key, || Ok(Term::from(value.some("value")?))) }
}

/// As `larder_put`; the value is an integer.
///
/// # Safety
/// As for `larder_put`.
#[no_mangle]
pub unsafe extern "C" fn larder_put_i64(
    table: *const larder_table,
    key: larder_key,
    value: i64,
) -> Status {
    // SAFETY: as the caller says.
    unsafe { put(table, key, || Ok(Term::int(value))) }
}

/// As `larder_put`; the value is a float. `LARDER_BAD_TERM` for infinities and NaN.
///
/// # Safety
/// As for `larder_put`.
#[no_mangle]
pub unsafe extern "C" fn larder_put_f64(
    table: *const larder_table,
    key: larder_key,
    value: f64,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        put(table, key, || {
            let bad = |_| {
                Failure::new(
                    Status::BadTerm,
                    format!("{value} is no term: floats are finite"),
                )
            };
            Term::float(value).map_err(bad)
        })
    }
}

/// As `larder_put`; the value is the binary of a text's bytes, without the NUL.
///
/// # Safety
/// As for `larder_put`; `value` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_put_str(
    table: *const larder_table,
    key: larder_key,
    value: *const c_char,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        put(table, key, || match value.is_null() {
            true => Err(Failure::null("value")),
            false => Ok(Term::binary(CStr::from_ptr(value).to_bytes())),
        })
    }
}

/// As `larder_put`; the value is the binary of `len` bytes, which may be anything.
///
/// # Safety
/// As for `larder_put`; `value` leads to `len` bytes, or `len` is 0.
#[no_mangle]
pub unsafe extern "C" fn larder_put_bytes(
    table: *const larder_table,
    key: larder_key,
    value: *const u8,
    len: usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        put(table, key, || {
            Ok(Term::binary(all_at(value, len, "value")?))
        })
    }
}

/// Looks a value up; `read` gives it to C, if it is of the type that C has asked for.
///
/// # Safety
/// As for `larder_get`.
unsafe fn get(
    table: *const larder_table,
    key: larder_key,
    what: &str,
    read: impl FnOnce(TermRef<'_>) -> Result<bool, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        let Some(found) = value_of(table, &key)? else {
            return Ok(Status::None);
        };
        match read(found.as_ref())? {
            true => Ok(Status::Ok),
            false => {
                let text = format!("the value under {key} is not {what}");
                Err(Failure::new(Status::ValueType, text))
            }
        }
    })
}

fn value_of(table: &larder_table, key: &Term) -> Result<Option<Term>, Failure> {
    let rows = table.0.lookup_elements(key, &[VALUE]);
    let rows = on(table, ("key", key.as_ref()), rows)?;
    Ok(rows.into_iter().flatten().next())
}

/// Fills `out` with the value under a key: the second element of its row, in a bag of the row that
/// came first. `LARDER_NONE`, and an empty `out`, if there is none; `LARDER_BAD_ROW` if the row has
/// no second element. As `larder_lookup_elements`.
///
/// # Safety
/// As for `larder_table_drop`; what the key leads to is as it was when it was made; `out` is null
/// or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_get(
    table: *const larder_table,
    key: larder_key,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        let found = value_of(table, &key)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// As `larder_get`; the integer, in `*value`, which else stays as it is. `LARDER_VALUE_TYPE` if it
/// is none of 64 bits.
///
/// # Safety
/// As for `larder_get`; `value` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_get_i64(
    table: *const larder_table,
    key: larder_key,
    value: *mut i64,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        get(table, key, "an integer of 64 bits", |found| {
            let Some(n) = found.as_int() else {
                return Ok(false);
            };
            give(value, n);
            Ok(true)
        })
    }
}

/// As `larder_get`; the float, in `*value`, which else stays as it is. `LARDER_VALUE_TYPE` if it is
/// none.
///
/// # Safety
/// As for `larder_get_i64`.
#[no_mangle]
pub unsafe extern "C" fn larder_get_f64(
    table: *const larder_table,
    key: larder_key,
    value: *mut f64,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        get(table, key, "a float", |found| {
            let View::Float(x) = found.view() else {
                return Ok(false);
            };
            give(value, x);
            Ok(true)
        })
    }
}

/// As `larder_get`; the binary's bytes, as `snprintf` writes: `capacity` at most, the last a NUL,
/// which is not the binary's; how many it has, in `*len` unless that is null. What is there was cut
/// if `*len` is `capacity` or more. `LARDER_VALUE_TYPE` if the value is no binary.
///
/// # Safety
/// As for `larder_get`; `out` points to `capacity` bytes, or `capacity` is 0; `len` is null or may
/// be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_get_str(
    table: *const larder_table,
    key: larder_key,
    out: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        get(table, key, "a binary", |found| {
            let Some(bytes) = found.as_binary() else {
                return Ok(false);
            };
            copy_text(bytes, out, capacity)?;
            give(len, bytes.len());
            Ok(true)
        })
    }
}

/// Adds to the integer under a key; the sum in `*sum` unless that is null. A counter that is not
/// there begins with 0. Atomic. As `larder_add`.
///
/// # Safety
/// As for `larder_put`; `sum` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_add_i64(
    table: *const larder_table,
    key: larder_key,
    increment: i64,
    sum: *mut i64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        let none = Term::tuple([&key, &Term::int(0)]);
        let total = table.0.add_or(&key, VALUE, increment, &none);
        let total = on(table, ("key", key.as_ref()), total)?;
        // SAFETY: as the caller says.
        unsafe { summed(&total, sum) }
    })
}

/// Whether there is a row under a key: `LARDER_OK` or `LARDER_NONE`.
///
/// # Safety
/// As for `larder_table_drop`; what the key leads to is as it was when it was made.
#[no_mangle]
pub unsafe extern "C" fn larder_has(table: *const larder_table, key: larder_key) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        Ok(whether(table.0.contains(&key)?))
    })
}

/// Deletes what is under a key. `LARDER_NONE` if that is nothing.
///
/// # Safety
/// As for `larder_has`.
#[no_mangle]
pub unsafe extern "C" fn larder_remove(table: *const larder_table, key: larder_key) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { pair(table, key) }?;
        Ok(whether(table.0.delete(&key)? > 0))
    })
}
