//! Rows of a key and a value, `{Key, Value}`, without building and decoding terms.
//!
//! The first element of a row must be the key. Rows may have more than two elements; these
//! functions read and add to the second.

use crate::status::{guarded, Failure, Status};
use crate::table::{counted, fill, larder_table, ok_or_none, table_at, with_context};
use crate::terms::{all_at, larder_terms};
use crate::view::{copy_text, give, larder_view};
use larder::api::Table;
use larder::Error;
use larder_term::{simple, AsTerm, Term, TermRef, View};
use std::borrow::Cow;
use std::ffi::{c_char, CStr};

/// The position of the value.
const VALUE: usize = 2;

/// The forms of a `larder_key`.
const NOTHING: u32 = 0;
const INTEGER: u32 = 1;
const BINARY: u32 = 2;
const TERM: u32 = 3;

/// A key, or a bound of a range, as made by a function `larder_key_…`. A zeroed key is a key of
/// nothing. It refers to the text, the bytes or the term of which it was made, which must stay
/// unchanged while the key is used.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct larder_key {
    /// The form of the key, which is internal.
    pub form: u32,
    /// The integer.
    pub integer: i64,
    /// The bytes of a binary or a view.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
}

impl larder_key {
    const NOTHING: larder_key = larder_key {
        form: NOTHING,
        integer: 0,
        bytes: std::ptr::null(),
        len: 0,
    };

    /// The key as a term; `None` for a key of nothing.
    ///
    /// # Safety
    /// What the key refers to is as it was when the key was made.
    pub(crate) unsafe fn term(self) -> Result<Option<OwnTerm>, Failure> {
        let (bytes, len) = (self.bytes, self.len);
        Ok(Some(match self.form {
            NOTHING => return Ok(None),
            INTEGER => OwnTerm::int(self.integer),
            // SAFETY: by contract, what the key refers to is unchanged. For this form, `bytes` is
            // null or points to `len` bytes, or `len` is 0.
            BINARY => OwnTerm::binary(unsafe { all_at(bytes, len, "bytes") }?),
            TERM => {
                let view = larder_view { bytes, len };
                // SAFETY: by contract, what the key refers to is unchanged. For this form, it is
                // the term of a view.
                OwnTerm::from(unsafe { view.require("key") }?)
            }
            other => {
                let text =
                    format!("key has the form {other}, which no function larder_key_… makes");
                return Err(Failure::new(Status::BadArgument, text));
            }
        }))
    }

    /// The key as a term. An error for a key of nothing.
    ///
    /// # Safety
    /// As for `term`.
    unsafe fn require(self) -> Result<OwnTerm, Failure> {
        // SAFETY: the contract is that of `term`.
        unsafe { self.term() }?
            .ok_or_else(|| Failure::new(Status::BadTerm, "key is a key of nothing"))
    }
}

/// The longest term that is made on the stack, in bytes.
const SHORT: usize = 64;

/// A term of C's making: on the stack if it is an integer or a short binary.
pub(crate) enum OwnTerm {
    /// The bytes of a term without handles, and their number.
    Short([u8; SHORT], usize),
    Long(Term),
}

impl OwnTerm {
    fn int(n: i64) -> Self {
        let (bytes, used) = simple::int(n);
        let mut short = [0; SHORT];
        short[..bytes.len()].copy_from_slice(&bytes);
        OwnTerm::Short(short, used)
    }

    fn binary(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT];
        match simple::binary(bytes, &mut short).map(<[u8]>::len) {
            Some(used) => OwnTerm::Short(short, used),
            None => OwnTerm::Long(Term::binary(bytes)),
        }
    }
}

impl From<TermRef<'_>> for OwnTerm {
    fn from(term: TermRef<'_>) -> Self {
        OwnTerm::Long(Term::from(term))
    }
}

impl AsTerm for OwnTerm {
    fn as_term(&self) -> TermRef<'_> {
        match self {
            // SAFETY: `int` and `binary` have written one term, as an encoder writes it, and it has
            // no handles.
            OwnTerm::Short(bytes, used) => unsafe { TermRef::trusted(&bytes[..*used]) },
            OwnTerm::Long(term) => term.as_ref(),
        }
    }
}

/// Returns a key that is an integer. O(1).
#[no_mangle]
pub extern "C" fn larder_key_i64(key: i64) -> larder_key {
    larder_key {
        form: INTEGER,
        integer: key,
        ..larder_key::NOTHING
    }
}

/// Returns a key that is the binary of a text's bytes, without the NUL. If `key` is null, it is a
/// key of nothing. O(length). The text isn't copied.
///
/// # Safety
/// `key` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_key_str(key: *const c_char) -> larder_key {
    if key.is_null() {
        return larder_key::NOTHING;
    }
    // SAFETY: `key` is not null, so by contract it ends with a NUL.
    let len = unsafe { CStr::from_ptr(key) }.count_bytes();
    larder_key_bytes(key.cast(), len)
}

/// Returns a key that is a binary of `len` arbitrary bytes. While the key is used, `key` must point
/// to `len` bytes, unless `len` is 0. O(1). The bytes aren't copied.
#[no_mangle]
pub extern "C" fn larder_key_bytes(key: *const u8, len: usize) -> larder_key {
    larder_key {
        form: BINARY,
        bytes: key,
        len,
        ..larder_key::NOTHING
    }
}

/// Returns a key that is a term. Of a view of nothing, it is a key of nothing. O(1).
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
/// `table` is null or a handle that was not freed; what the key refers to is as it was when the key
/// was made.
unsafe fn pair<'a>(
    table: *const larder_table,
    key: larder_key,
) -> Result<(Cow<'a, Table>, OwnTerm), Failure> {
    // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
    let (table, key) = unsafe { (table_at(table)?, key.require()?) };
    // A row of a key and a value has the key first.
    match table.engine_table().keypos() {
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
/// As for `larder_has`.
unsafe fn put(
    table: *const larder_table,
    key: larder_key,
    value: impl FnOnce() -> Result<OwnTerm, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        let value = value()?;
        match table.insert_pair(&key, &value) {
            Ok(()) => Ok(Status::Ok),
            Err(error) => {
                let row = Term::tuple([key, value]);
                Err(Failure::from(error).with_context(&table, "row", row.as_ref()))
            }
        }
    })
}

/// Inserts the row `{Key, Value}`, like `larder_insert`: the same cost, the same statuses, and the
/// same for readers. In a set or ordered_set it replaces the row with the same key.
/// `LARDER_TABLE_TYPE`, as for all functions on pairs, if the key isn't the first element of the
/// table's rows.
///
/// # Safety
/// As for `larder_table_drop`; the view's terms, and what the key refers to, are as they were when
/// the view and the key were made.
#[no_mangle]
pub unsafe extern "C" fn larder_put(
    table: *const larder_table,
    key: larder_key,
    value: larder_view,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *key* contract of `key` and the *view*
    // contract of `value`.
    unsafe { put(table, key, || Ok(OwnTerm::from(value.require("value")?))) }
}

/// Like `larder_put`, but the value is an integer.
///
/// # Safety
/// As for `larder_put`.
#[no_mangle]
pub unsafe extern "C" fn larder_put_i64(
    table: *const larder_table,
    key: larder_key,
    value: i64,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
    unsafe { put(table, key, || Ok(OwnTerm::int(value))) }
}

/// Like `larder_put`, but the value is a float. `LARDER_BAD_TERM` if it is infinite or NaN.
///
/// # Safety
/// As for `larder_put`.
#[no_mangle]
pub unsafe extern "C" fn larder_put_f64(
    table: *const larder_table,
    key: larder_key,
    value: f64,
) -> Status {
    // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
    unsafe {
        put(table, key, || {
            let bad = |_| {
                Failure::new(
                    Status::BadTerm,
                    format!("{value} is no term: floats are finite"),
                )
            };
            Ok(OwnTerm::Long(Term::float(value).map_err(bad)?))
        })
    }
}

/// Like `larder_put`, but the value is the binary of a text's bytes, without the NUL.
///
/// # Safety
/// As for `larder_put`; `value` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_put_str(
    table: *const larder_table,
    key: larder_key,
    value: *const c_char,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *key* contract of `key` and the *text*
    // contract of `value`.
    unsafe {
        put(table, key, || match value.is_null() {
            true => Err(Failure::null("value")),
            false => Ok(OwnTerm::binary(CStr::from_ptr(value).to_bytes())),
        })
    }
}

/// Like `larder_put`, but the value is a binary of `len` arbitrary bytes.
///
/// # Safety
/// As for `larder_put`; `value` points to `len` bytes, or `len` is 0.
#[no_mangle]
pub unsafe extern "C" fn larder_put_bytes(
    table: *const larder_table,
    key: larder_key,
    value: *const u8,
    len: usize,
) -> Status {
    // SAFETY: by contract, `table` is null or a handle that was not freed; what `key` refers to is
    // unchanged; `value` points to `len` bytes, or `len` is 0.
    unsafe {
        put(table, key, || {
            Ok(OwnTerm::binary(all_at(value, len, "value")?))
        })
    }
}

/// Looks up a value. `read` passes it to C, if it has the requested type.
///
/// # Safety
/// As for `larder_has`.
unsafe fn get(
    table: *const larder_table,
    key: larder_key,
    what: &str,
    read: impl FnOnce(TermRef<'_>) -> Result<bool, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        let found = table.with_element(&key, VALUE, read);
        match with_context(&table, "key", key.as_term(), found)? {
            // No row isn't an error. The status says it.
            None => Ok(Status::None),
            Some(read) => match read? {
                true => Ok(Status::Ok),
                false => {
                    let failure =
                        Failure::new(Status::ValueType, format!("the value is not {what}"));
                    Err(failure.with_context(&table, "key", key.as_term()))
                }
            },
        }
    })
}

/// Fills `out` with the value under a key: the second element of its row; in a bag, that of the row
/// that arrived first. `LARDER_NONE`, and an empty `out`, if there is no such key. `LARDER_BAD_ROW`
/// if a row has no second element. Apart from that like `larder_lookup_elements`. As for all
/// functions `larder_get…`, it counts as a read for `idle_ms`.
///
/// # Safety
/// As for `larder_table_drop`; what the key refers to is as it was when the key was made; `out` is
/// null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_get(
    table: *const larder_table,
    key: larder_key,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        let found = table.with_element(&key, VALUE, |found| Term::from(found));
        let found = with_context(&table, "key", key.as_term(), found)?;
        // SAFETY: by the *exclusive sequence* contract of `out`. `key` and `found` are copies, so
        // nothing here refers to its terms.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// Like `larder_get`, but writes the integer to `*value`. `LARDER_VALUE_TYPE` if the value isn't an
/// integer of 64 bits. If the status isn't `LARDER_OK`, `*value` is unchanged.
///
/// # Safety
/// As for `larder_get`; `value` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_get_i64(
    table: *const larder_table,
    key: larder_key,
    value: *mut i64,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *key* contract of `key` and the *out*
    // contract of `value`.
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

/// Like `larder_get`, but writes the float to `*value`. `LARDER_VALUE_TYPE` if the value isn't a
/// float. If the status isn't `LARDER_OK`, `*value` is unchanged.
///
/// # Safety
/// As for `larder_get_i64`.
#[no_mangle]
pub unsafe extern "C" fn larder_get_f64(
    table: *const larder_table,
    key: larder_key,
    value: *mut f64,
) -> Status {
    // SAFETY: by the *handle* contract of `table`, the *key* contract of `key` and the *out*
    // contract of `value`.
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

/// Like `larder_get`, but writes the bytes of a binary to `out`, as `snprintf` does: at most
/// `capacity` bytes, of which the last is a NUL that isn't part of the binary. Writes the length of
/// the binary to `*len`, unless `len` is null. If `*len` is `capacity` or more, the bytes were
/// truncated. `LARDER_VALUE_TYPE` if the value isn't a binary. If the status isn't `LARDER_OK`,
/// nothing is written.
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
    // SAFETY: by contract, `table` is null or a handle that was not freed; what `key` refers to is
    // unchanged; `out` points to `capacity` bytes, or `capacity` is 0; `len` is null or may be
    // written to. `out` is outside `bytes`, which belong to the library.
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

/// Adds to the integer under a key, the second element of its row. Writes the sum to `*sum`, unless
/// `sum` is null. A counter that doesn't exist starts from 0. Atomic. Apart from that like
/// `larder_add`.
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
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        let total = match table.add_number(&key, VALUE, increment, None) {
            // The row that is inserted is only made if it is needed.
            Err(Error::BadKey) => {
                let none = Term::tuple([key.as_term(), Term::int(0).as_ref()]);
                table.add_number(&key, VALUE, increment, Some(none.as_ref()))
            }
            total => total,
        };
        let total = with_context(&table, "key", key.as_term(), total)?;
        // SAFETY: by the *out* contract of `sum`.
        unsafe { counted(total, sum) }
    })
}

/// Returns whether there is a row under a key: `LARDER_OK` or `LARDER_NONE`. Apart from that like
/// `larder_contains`.
///
/// # Safety
/// As for `larder_table_drop`; what the key refers to is as it was when the key was made.
#[no_mangle]
pub unsafe extern "C" fn larder_has(table: *const larder_table, key: larder_key) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        Ok(ok_or_none(table.contains(&key)?))
    })
}

/// Deletes all rows under a key. `LARDER_NONE` if there is none. Apart from that like
/// `larder_delete`.
///
/// # Safety
/// As for `larder_has`.
#[no_mangle]
pub unsafe extern "C" fn larder_remove(table: *const larder_table, key: larder_key) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `table` and the *key* contract of `key`.
        let (table, key) = unsafe { pair(table, key) }?;
        Ok(ok_or_none(table.delete(&key)? > 0))
    })
}
