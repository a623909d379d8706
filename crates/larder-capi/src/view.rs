//! Terms as C sees them: a `larder_view` is a pointer to the bytes of a term in the library's own
//! encoding, and their length. It owns nothing. Functions that open a term read one level of it,
//! and return views of what is inside.

use crate::status::{guarded_or, Failure, Status};
use larder_term::{etf, text, NodeName, TermRef, View};
use std::cmp::Ordering;
use std::ffi::c_char;
use std::ptr;

/// A view of a term in a `larder_terms`, which must not be changed while the view is used. It may
/// be copied freely. Read it with the functions `larder_view_…` only. A zeroed view is a view of
/// nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct larder_view {
    /// The term in the library's own encoding.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
}

impl larder_view {
    pub(crate) const NOTHING: larder_view = larder_view {
        bytes: ptr::null(),
        len: 0,
    };

    pub(crate) fn of(term: TermRef<'_>) -> larder_view {
        let bytes = term.bytes();
        larder_view {
            bytes: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// The term, if there is one.
    ///
    /// # Safety
    /// The view is of nothing, or of a term that is as it was when the view was made, and stays so
    /// during `'a`.
    pub(crate) unsafe fn term<'a>(self) -> Option<TermRef<'a>> {
        if self.bytes.is_null() || self.len == 0 {
            return None;
        }
        // SAFETY: views are made of whole terms that an encoder wrote in this process. By contract,
        // the term is unchanged during `'a`. So its bytes can be read, and its owner holds the
        // counts of the handles in them.
        Some(unsafe { TermRef::trusted(std::slice::from_raw_parts(self.bytes, self.len)) })
    }

    /// The term; an error if there is none.
    ///
    /// # Safety
    /// That of `term`.
    pub(crate) unsafe fn require<'a>(self, what: &str) -> Result<TermRef<'a>, Failure> {
        // SAFETY: the contract is that of `term`.
        unsafe { self.term() }
            .ok_or_else(|| Failure::new(Status::BadTerm, format!("{what} is a view of nothing")))
    }
}

/// The kind of a term.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum larder_kind {
    /// No term: a zeroed view.
    Nothing = 0,
    /// An integer of any size.
    Integer = 1,
    /// A float.
    Float = 2,
    /// An atom.
    Atom = 3,
    /// A reference.
    Reference = 4,
    /// A fun.
    Fun = 5,
    /// A port.
    Port = 6,
    /// A pid.
    Pid = 7,
    /// A tuple.
    Tuple = 8,
    /// A map.
    Map = 9,
    /// The empty list.
    Nil = 10,
    /// A list with elements.
    List = 11,
    /// A binary.
    Binary = 12,
    /// A bitstring that isn't a binary: its number of bits isn't a multiple of eight.
    Bitstring = 13,
}

/// Returns the kind of the term. O(1).
///
/// # Safety
/// The view's terms are as they were when it was made.
#[no_mangle]
pub unsafe extern "C" fn larder_view_kind(view: larder_view) -> larder_kind {
    guarded_or(larder_kind::Nothing, || {
        // SAFETY: by the *view* contract of `view`.
        let Some(term) = (unsafe { view.term() }) else {
            return Ok(larder_kind::Nothing);
        };
        Ok(match term.view() {
            View::Int(_) | View::Big(_) => larder_kind::Integer,
            View::Float(_) => larder_kind::Float,
            View::Atom(_) => larder_kind::Atom,
            View::Ref(_) => larder_kind::Reference,
            View::Fun(_) | View::Export { .. } => larder_kind::Fun,
            View::Port(_) => larder_kind::Port,
            View::Pid(_) => larder_kind::Pid,
            View::Tuple(_) => larder_kind::Tuple,
            View::Map(_) => larder_kind::Map,
            View::Nil => larder_kind::Nil,
            View::List(_) => larder_kind::List,
            View::Bin(_) => larder_kind::Binary,
            View::Bits { .. } => larder_kind::Bitstring,
        })
    })
}

/// Writes `value` to `*out`, unless `out` is null. The memory may be uninitialised, so it is never
/// read, and no reference to it is made.
///
/// # Safety
/// `out` is null or may be written to.
pub(crate) unsafe fn give<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: `out` is not null, so by contract it may be written to.
        unsafe { out.write(value) };
    }
}

/// Returns an error if the out-parameter is null. Exported functions call this before they create
/// anything, so that nothing leaks.
pub(crate) fn needed<T>(out: *mut T, what: &str) -> Result<(), Failure> {
    match out.is_null() {
        true => Err(Failure::null(what)),
        false => Ok(()),
    }
}

/// Gets the integer, if the term is one that fits in 64 bits. Otherwise returns false, and `*value`
/// is unchanged. O(1).
///
/// # Safety
/// The view's terms are as they were when it was made; `value` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_view_int(view: larder_view, value: *mut i64) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `view`.
        let int = unsafe { view.term() }.and_then(TermRef::as_int);
        // SAFETY: by the *out* contract of `value`.
        int.into_iter().for_each(|n| unsafe { give(value, n) });
        Ok(int.is_some())
    })
}

/// Gets the integer, if the term is one from 0 to 2^64 − 1. Otherwise returns false, and `*value`
/// is unchanged. O(1).
///
/// # Safety
/// As for `larder_view_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_view_uint(view: larder_view, value: *mut u64) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `view`.
        let uint = match unsafe { view.term() }.map(TermRef::view) {
            Some(View::Int(n)) => u64::try_from(n).ok(),
            Some(View::Big(big)) if !big.negative && big.magnitude.len() <= 8 => {
                let bytes = big.magnitude.iter().rev();
                Some(bytes.fold(0, |n, byte| n << 8 | u64::from(*byte)))
            }
            _ => None,
        };
        // SAFETY: by the *out* contract of `value`.
        uint.into_iter().for_each(|n| unsafe { give(value, n) });
        Ok(uint.is_some())
    })
}

/// Gets the float, if the term is one. Otherwise returns false, and `*value` is unchanged. An
/// integer isn't converted. O(1).
///
/// # Safety
/// As for `larder_view_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_view_float(view: larder_view, value: *mut f64) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `view`.
        match unsafe { view.term() }.map(TermRef::view) {
            Some(View::Float(x)) => {
                // SAFETY: by the *out* contract of `value`.
                unsafe { give(value, x) };
                Ok(true)
            }
            _ => Ok(false),
        }
    })
}

/// Gets the text of the atom, if the term is one. Otherwise returns false, and nothing is written.
/// The text is UTF-8, isn't terminated by a NUL, and is never freed. O(1).
///
/// # Safety
/// The view's terms are as they were when it was made; `text` and `len` are null or may be written
/// to.
#[no_mangle]
pub unsafe extern "C" fn larder_view_atom(
    view: larder_view,
    text: *mut *const c_char,
    len: *mut usize,
) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `view`.
        let Some(atom) = (unsafe { view.term() }).and_then(TermRef::as_atom) else {
            return Ok(false);
        };
        let all = atom.text();
        // SAFETY: by the *out* contract of `text` and `len`.
        unsafe {
            give(text, all.as_ptr().cast());
            give(len, all.len());
        }
        Ok(true)
    })
}

/// Gets the bytes of the binary, if the term is one. Otherwise returns false, and nothing is
/// written. The bytes aren't copied, and are valid as long as the term is. O(1).
///
/// # Safety
/// The view's terms are as they were when it was made; `bytes` and `len` are null or may be written
/// to.
#[no_mangle]
pub unsafe extern "C" fn larder_view_binary(
    view: larder_view,
    bytes: *mut *const u8,
    len: *mut usize,
) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `view`.
        let Some(all) = (unsafe { view.term() }).and_then(TermRef::as_binary) else {
            return Ok(false);
        };
        // SAFETY: by the *out* contract of `bytes` and `len`.
        unsafe {
            give(bytes, all.as_ptr());
            give(len, all.len());
        }
        Ok(true)
    })
}

/// Returns the number of elements of a tuple or list, of pairs of a map, or of bytes of a binary; 0
/// for any other term. The tail of a list doesn't count as an element. O(1).
///
/// # Safety
/// As for `larder_view_kind`.
#[no_mangle]
pub unsafe extern "C" fn larder_view_size(view: larder_view) -> usize {
    guarded_or(0, || {
        // SAFETY: by the *view* contract of `view`.
        Ok(match unsafe { view.term() }.map(TermRef::view) {
            Some(View::Tuple(tuple)) => tuple.arity(),
            Some(View::List(list)) => list.len(),
            Some(View::Map(map)) => map.len(),
            Some(View::Bin(bytes)) => bytes.len(),
            _ => 0,
        })
    })
}

/// Returns the element of a tuple or list at `index`, counted from 0; a view of nothing if there is
/// none. (Positions in rows, as in `larder_add`, are counted from 1.) O(index). To get all
/// elements, use `larder_view_elements`.
///
/// # Safety
/// As for `larder_view_kind`. The element is valid as long as `view` is.
#[no_mangle]
pub unsafe extern "C" fn larder_view_element(view: larder_view, index: usize) -> larder_view {
    guarded_or(larder_view::NOTHING, || {
        // SAFETY: by the *view* contract of `view`.
        let element = match unsafe { view.term() }.map(TermRef::view) {
            Some(View::Tuple(tuple)) => tuple.get(index),
            Some(View::List(list)) => list.iter().nth(index),
            _ => None,
        };
        Ok(element.map_or(larder_view::NOTHING, larder_view::of))
    })
}

/// Writes views of the elements of a tuple or list to `out`; for a map, of its keys and values,
/// each key before its value. Writes at most `capacity` views. Returns how many there are, so a
/// result greater than `capacity` says that some are missing; 0 for any other term. O(views
/// written).
///
/// # Safety
/// As for `larder_view_kind`; `out` points to `capacity` views, or `capacity` is 0.
#[no_mangle]
pub unsafe extern "C" fn larder_view_elements(
    view: larder_view,
    out: *mut larder_view,
    capacity: usize,
) -> usize {
    guarded_or(0, || {
        if capacity > 0 {
            needed(out, "out")?;
        }
        // Count all, and write as many as fit, as `snprintf` does.
        let put = |at: usize, term: TermRef<'_>| {
            if at < capacity {
                // SAFETY: `at` is less than `capacity`, and `out` is not null. So by contract,
                // `out` points to more than `at` views.
                unsafe { out.add(at).write(larder_view::of(term)) };
            }
        };
        // SAFETY: by the *view* contract of `view`.
        Ok(match unsafe { view.term() }.map(TermRef::view) {
            Some(View::Tuple(tuple)) => {
                let first = tuple.iter().take(capacity);
                first.enumerate().for_each(|(at, term)| put(at, term));
                tuple.arity()
            }
            Some(View::List(list)) => {
                let first = list.iter().take(capacity);
                first.enumerate().for_each(|(at, term)| put(at, term));
                list.len()
            }
            Some(View::Map(map)) => {
                for (at, (key, value)) in map.iter().take(capacity.div_ceil(2)).enumerate() {
                    put(2 * at, key);
                    put(2 * at + 1, value);
                }
                2 * map.len()
            }
            _ => 0,
        })
    })
}

/// Returns the tail of a list: `[]` for a proper list, any other term for an improper one; a view
/// of nothing if the term isn't a list. O(1), for an improper list O(elements).
///
/// # Safety
/// As for `larder_view_element`.
#[no_mangle]
pub unsafe extern "C" fn larder_view_tail(view: larder_view) -> larder_view {
    guarded_or(larder_view::NOTHING, || {
        // SAFETY: by the *view* contract of `view`.
        Ok(match unsafe { view.term() } {
            Some(term) => match term.view() {
                View::List(list) => larder_view::of(list.tail()),
                View::Nil => view,
                _ => larder_view::NOTHING,
            },
            None => larder_view::NOTHING,
        })
    })
}

/// Returns the value under an identical key of a map; a view of nothing if there is none, or the
/// term isn't a map. O(pairs).
///
/// # Safety
/// As for `larder_view_element`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_view_find(map: larder_view, key: larder_view) -> larder_view {
    guarded_or(larder_view::NOTHING, || {
        // SAFETY: by the *view* contract of `map` and `key`.
        let (map, key) = unsafe { (map.term(), key.term()) };
        let value = match (map.map(TermRef::view), key) {
            (Some(View::Map(map)), Some(key)) => map.get(key),
            _ => None,
        };
        Ok(value.map_or(larder_view::NOTHING, larder_view::of))
    })
}

/// Returns whether two terms are identical, as by `=:=`: 1 is not 1.0. Two views of nothing are
/// identical. Linear in the terms, up to their first difference.
///
/// # Safety
/// As for `larder_view_kind`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_view_same(a: larder_view, b: larder_view) -> bool {
    guarded_or(false, || {
        // SAFETY: by the *view* contract of `a` and `b`.
        Ok(match unsafe { (a.term(), b.term()) } {
            (Some(a), Some(b)) => a.identical(b),
            (a, b) => a.is_none() && b.is_none(),
        })
    })
}

/// Compares two terms in Erlang's order, in which 1 and 1.0 are equal. Returns a number less than,
/// equal to or greater than 0 if `a` is less than, equal to or greater than `b`. A view of nothing
/// is less than any term. Linear in the terms, up to their first difference; the keys of maps are
/// put in order first.
///
/// # Safety
/// As for `larder_view_kind`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_view_compare(a: larder_view, b: larder_view) -> i32 {
    guarded_or(0, || {
        // SAFETY: by the *view* contract of `a` and `b`.
        let order = match unsafe { (a.term(), b.term()) } {
            (Some(a), Some(b)) => a.cmp_term(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        // C expects a number, not an ordering.
        Ok(match order {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
    })
}

/// Copies at most `capacity` bytes. Returns how many there are.
///
/// # Safety
/// `out` is null, or points to `capacity` bytes outside `all`, or `capacity` is 0.
unsafe fn copy_out(all: &[u8], out: *mut u8, capacity: usize) -> Result<usize, Failure> {
    if capacity > 0 {
        needed(out, "out")?;
    }
    let n = all.len().min(capacity);
    if n > 0 {
        // SAFETY: `capacity` is not 0, so `out` is not null. By contract it points to `capacity`
        // bytes outside `all`, and `n` is at most `capacity`.
        unsafe { ptr::copy_nonoverlapping(all.as_ptr(), out, n) };
    }
    Ok(all.len())
}

/// Writes the text of the term, as Erlang would print it, in UTF-8. Like `snprintf`, writes at most
/// `capacity` bytes, of which the last is a NUL, and returns the length of the whole text without
/// the NUL. A truncated text may end within a character. A view of nothing has the empty text.
/// `larder_push_text` reads the text. O(length of the whole text).
///
/// # Safety
/// As for `larder_view_kind`; `out` points to `capacity` bytes, or `capacity` is 0.
#[no_mangle]
pub unsafe extern "C" fn larder_view_text(
    view: larder_view,
    out: *mut c_char,
    capacity: usize,
) -> usize {
    guarded_or(0, || {
        // SAFETY: by the *view* contract of `view`.
        let text = unsafe { view.term() }.map_or(String::new(), text::print);
        // SAFETY: by contract, `out` points to `capacity` bytes, or `capacity` is 0. They are
        // outside `text`, which belongs to this call.
        unsafe { copy_text(text.as_bytes(), out, capacity) }?;
        Ok(text.len())
    })
}

/// Writes bytes as `snprintf` does: at most `capacity`, of which the last is a NUL.
///
/// # Safety
/// `out` is null, or points to `capacity` bytes outside `bytes`, or `capacity` is 0.
pub(crate) unsafe fn copy_text(
    bytes: &[u8],
    out: *mut c_char,
    capacity: usize,
) -> Result<(), Failure> {
    if capacity == 0 {
        return Ok(());
    }
    needed(out, "out")?;
    // A truncated text may end within a character, as with `snprintf`. The caller sees by the
    // length that it was truncated.
    let n = bytes.len().min(capacity - 1);
    // SAFETY: `capacity` is not 0, and `out` is not null. So by contract, `out` points to
    // `capacity` bytes outside `bytes`, and `n + 1` is at most `capacity`.
    unsafe {
        copy_out(&bytes[..n], out.cast(), n)?;
        out.add(n).write(0);
    }
    Ok(())
}

/// Writes the term in Erlang's external term format, as `term_to_binary` does. Writes at most
/// `capacity` bytes, and returns how many there are; 0 for a view of nothing. `larder_push_etf`
/// reads the format. O(bytes of the term).
///
/// # Safety
/// As for `larder_view_text`.
#[no_mangle]
pub unsafe extern "C" fn larder_view_etf(
    view: larder_view,
    out: *mut u8,
    capacity: usize,
) -> usize {
    guarded_or(0, || {
        let mut bytes = Vec::new();
        // SAFETY: by the *view* contract of `view`.
        if let Some(term) = unsafe { view.term() } {
            etf::encode(term, &NodeName::NONE, &mut bytes);
        }
        // SAFETY: by contract, `out` points to `capacity` bytes, or `capacity` is 0. They are
        // outside `bytes`, which belongs to this call.
        unsafe { copy_out(&bytes, out, capacity) }
    })
}
