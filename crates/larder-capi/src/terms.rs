//! Sequences of terms: pushed by C, or filled with results.

use crate::build::{Open, Push};
use crate::status::{free, guarded, guarded_or, Failure, Status};
use crate::view::larder_view;
use larder_term::{etf, text, Atom, NodeName, Term};
use std::ffi::{c_char, CStr};

/// A sequence of terms. Rows and keys are built in one, and results are returned in one. It may be
/// reused. Views of its terms are valid until it is cleared, filled with results by a call, or
/// freed. Only one thread at a time may use it.
#[derive(Default)]
pub struct larder_terms {
    done: Vec<Term>,
    open: Open,
}

impl larder_terms {
    /// Replaces the contents by results.
    pub(crate) fn fill(&mut self, found: Vec<Term>) {
        self.open = Open::default();
        self.done = found;
    }

    /// The terms. An error if one has been begun and isn't complete.
    pub(crate) fn whole(&self) -> Result<&[Term], Failure> {
        match self.open.is_open() {
            false => Ok(&self.done),
            true => Err(Failure::new(
                Status::BadTerm,
                "the last term was begun and is not whole",
            )),
        }
    }

    fn push(&mut self, push: Push) -> Result<Status, Failure> {
        let whole = self.open.push(push)?;
        self.done.extend(whole);
        Ok(Status::Ok)
    }
}

/// Dereferences a pointer. An error if it is null.
///
/// # Safety
/// `pointer` is null, or valid for `'a`.
pub(crate) unsafe fn at<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: by contract, `pointer` is null, or valid for `'a`.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// As `at`, for a mutable reference.
///
/// # Safety
/// `pointer` is null, or valid for `'a`, and nobody else uses the target during `'a`.
pub(crate) unsafe fn at_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: by contract, `pointer` is null, or valid for `'a`, and nobody else uses the target
    // during `'a`.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// A text of C.
///
/// # Safety
/// `text` is null, or points to bytes that end with a NUL and don't change during `'a`.
pub(crate) unsafe fn text_at<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: `text` is not null. So by contract, it points to bytes that end with a NUL and don't
    // change during `'a`.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes
        .to_str()
        .map_err(|e| Failure::new(Status::BadArgument, format!("{what} is not UTF-8: {e}")))
}

/// An array of C: bytes, or other plain numbers.
///
/// # Safety
/// `len` is 0, or `all` is null or points to `len` elements, which don't change during `'a`.
pub(crate) unsafe fn all_at<'a, T: Copy>(
    all: *const T,
    len: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    // C programs pass null with a length of 0.
    if len == 0 {
        return Ok(&[]);
    }
    if all.is_null() {
        return Err(Failure::null(what));
    }
    // More bytes than can be addressed are a mistake, which would otherwise be undefined behaviour.
    if len > isize::MAX as usize / size_of::<T>() {
        let text = format!("{len} {what} are more than there can be");
        return Err(Failure::new(Status::BadArgument, text));
    }
    // SAFETY: `all` is not null. So by contract, it points to `len` elements, which don't change
    // during `'a`. Their size was checked to fit in an `isize`.
    Ok(unsafe { std::slice::from_raw_parts(all, len) })
}

/// Makes an empty sequence. Never returns null. O(1).
#[no_mangle]
pub extern "C" fn larder_terms_new() -> *mut larder_terms {
    Box::into_raw(Box::default())
}

/// Frees a sequence and its terms. Does nothing if `terms` is null. O(terms).
///
/// # Safety
/// `terms` is null, or came from `larder_terms_new` and was not freed; nobody uses it or a view of
/// its terms any more.
#[no_mangle]
pub unsafe extern "C" fn larder_terms_free(terms: *mut larder_terms) {
    // SAFETY: by contract, `terms` is null, or a sequence that was not freed and nobody uses any
    // more. `larder_terms_new` made it by `Box::into_raw`.
    unsafe { free(terms) };
}

/// Removes all terms from a sequence, and also a term that has been begun and isn't complete. Does
/// nothing if `terms` is null. O(terms).
///
/// # Safety
/// `terms` is null or a sequence that nobody else uses; no view of its terms is used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_terms_clear(terms: *mut larder_terms) {
    guarded_or((), || {
        // SAFETY: by the *exclusive sequence* contract of `terms`.
        let terms = unsafe { at_mut(terms, "terms") }?;
        terms.open = Open::default();
        terms.done.clear();
        Ok(())
    });
}

/// Returns the number of complete terms; 0 if `terms` is null. O(1).
///
/// # Safety
/// `terms` is null or a sequence that nobody changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn larder_terms_count(terms: *const larder_terms) -> usize {
    guarded_or(0, || {
        // SAFETY: by the *sequence* contract of `terms`.
        Ok(unsafe { at(terms, "terms") }?.done.len())
    })
}

/// Returns a view of the term at `index`, counted from 0; a view of nothing if there is none. O(1).
///
/// # Safety
/// As for `larder_terms_count`.
#[no_mangle]
pub unsafe extern "C" fn larder_terms_get(terms: *const larder_terms, index: usize) -> larder_view {
    guarded_or(larder_view::NOTHING, || {
        // SAFETY: by the *sequence* contract of `terms`.
        let terms = unsafe { at(terms, "terms") }?;
        let term = terms.done.get(index).map(Term::as_ref);
        Ok(term.map_or(larder_view::NOTHING, larder_view::of))
    })
}

/// Pushes onto a sequence.
///
/// # Safety
/// `terms` is null or a sequence that nobody else uses.
unsafe fn push(terms: *mut larder_terms, what: impl FnOnce() -> Result<Push, Failure>) -> Status {
    guarded(|| {
        let what = what()?;
        // SAFETY: by the *exclusive sequence* contract of `terms`.
        unsafe { at_mut(terms, "terms") }?.push(what)
    })
}

/// Pushes an integer. It is a term of the sequence, or the next element of the container that was
/// begun last and isn't complete. As for all functions that push: O(1), and when the outermost
/// container is complete, time in proportion to it. After an error of an argument nothing was
/// pushed.
///
/// # Safety
/// `terms` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_push_int(terms: *mut larder_terms, value: i64) -> Status {
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, || Ok(Push::Int(value))) }
}

/// Pushes an integer that may be 2^63 or more. Like `larder_push_int`.
///
/// # Safety
/// As for `larder_push_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_uint(terms: *mut larder_terms, value: u64) -> Status {
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, || Ok(Push::Uint(value))) }
}

/// Pushes a float. `LARDER_BAD_TERM` if it is infinite or NaN, which no term is. Like
/// `larder_push_int`.
///
/// # Safety
/// As for `larder_push_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_float(terms: *mut larder_terms, value: f64) -> Status {
    let float = || match value.is_finite() {
        true => Ok(Push::Float(value)),
        false => Err(Failure::new(
            Status::BadTerm,
            format!("{value} is no term: floats are finite"),
        )),
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, float) }
}

/// Pushes the atom with this name, which has at most 255 characters of UTF-8. `LARDER_BAD_TERM` if
/// it has more. Atoms are never freed: use them for names, and binaries for data. Like
/// `larder_push_int`.
///
/// # Safety
/// As for `larder_push_int`; `name` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_push_atom(terms: *mut larder_terms, name: *const c_char) -> Status {
    let atom = || {
        // SAFETY: by the *text* contract of `name`.
        let name = unsafe { text_at(name, "name") }?;
        let atom = Atom::try_new(name);
        atom.map(Push::Atom)
            .map_err(|e| Failure::new(Status::BadTerm, e.to_string()))
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, atom) }
}

/// Pushes a binary with a copy of `len` arbitrary bytes. Like `larder_push_int`, and O(len).
///
/// # Safety
/// As for `larder_push_int`; `bytes` points to `len` bytes, or `len` is 0.
#[no_mangle]
pub unsafe extern "C" fn larder_push_binary(
    terms: *mut larder_terms,
    bytes: *const u8,
    len: usize,
) -> Status {
    let binary = || {
        // SAFETY: by contract, `bytes` points to `len` bytes, or `len` is 0.
        let bytes = unsafe { all_at(bytes, len, "bytes") }?;
        Ok(Push::Binary(bytes.to_vec()))
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, binary) }
}

/// Begins a tuple. The next `size` terms that are pushed are its elements. If `size` is 0, pushes
/// the empty tuple. Like `larder_push_int`.
///
/// # Safety
/// As for `larder_push_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_tuple(terms: *mut larder_terms, size: usize) -> Status {
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, || Ok(Push::Tuple(size))) }
}

/// Begins a list. The next `size` terms that are pushed are its elements. If `size` is 0, pushes
/// the empty list. Like `larder_push_int`.
///
/// # Safety
/// As for `larder_push_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_list(terms: *mut larder_terms, size: usize) -> Status {
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, || Ok(Push::List(size))) }
}

/// Begins a map. The next terms that are pushed are its keys and values: `pairs` keys in any order,
/// each followed by its value. If two keys are identical, the push that completes the outermost
/// term returns `LARDER_BAD_TERM`, and the term is discarded. If `pairs` is 0, pushes the empty
/// map. Like `larder_push_int`; completing a map of p pairs takes O(p log p).
///
/// # Safety
/// As for `larder_push_int`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_map(terms: *mut larder_terms, pairs: usize) -> Status {
    let map = || match pairs.checked_mul(2) {
        Some(_) => Ok(Push::Map(pairs)),
        None => Err(Failure::new(
            Status::BadArgument,
            format!("{pairs} pairs are more than a map can have"),
        )),
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, map) }
}

/// Pushes a copy of a term, which may be one of this sequence. Like `larder_push_int`, and O(bytes
/// of the term).
///
/// # Safety
/// As for `larder_push_int`; the view's terms are as they were when it was made.
#[no_mangle]
pub unsafe extern "C" fn larder_push_view(terms: *mut larder_terms, view: larder_view) -> Status {
    // SAFETY: by the *view* contract of `view`. `push` calls this before it changes `terms`.
    let copy = || Ok(Push::Term(Term::from(unsafe { view.require("view") }?)));
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, copy) }
}

/// Pushes the term that a text describes in Erlang's syntax, such as `{apple, 3, <<"red">>, #{price
/// => 1.5}}`. `LARDER_BAD_TERM` if the text isn't a term; the message says where. Names in the text
/// become atoms, which are never freed. So don't use this function for untrusted text. Like
/// `larder_push_int`, and O(length of the text).
///
/// # Safety
/// As for `larder_push_int`; `source` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_push_text(
    terms: *mut larder_terms,
    source: *const c_char,
) -> Status {
    let parsed = || {
        // SAFETY: by the *text* contract of `source`.
        let source = unsafe { text_at(source, "source") }?;
        let term = text::parse(source);
        term.map(Push::Term)
            .map_err(|e| Failure::new(Status::BadTerm, e.to_string()))
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, parsed) }
}

/// Pushes the term that `len` bytes encode in Erlang's external term format. `LARDER_BAD_TERM` if
/// they aren't exactly one term; the message says why. Only if `trusted` is set may the bytes
/// create new atoms, which are never freed; otherwise a new atom is `LARDER_BAD_TERM`. Like
/// `larder_push_int`, and O(len), or O(bytes of the term) if it is compressed.
///
/// # Safety
/// As for `larder_push_binary`.
#[no_mangle]
pub unsafe extern "C" fn larder_push_etf(
    terms: *mut larder_terms,
    bytes: *const u8,
    len: usize,
    trusted: bool,
) -> Status {
    let decoded = || {
        // SAFETY: by contract, `bytes` points to `len` bytes, or `len` is 0.
        let bytes = unsafe { all_at(bytes, len, "bytes") }?;
        let options = etf::EtfOptions {
            safe: !trusted,
            ..etf::EtfOptions::default()
        };
        let bad = |text: String| Failure::new(Status::BadTerm, text);
        let (term, used) =
            etf::decode_term(bytes, &NodeName::NONE, &options).map_err(|e| bad(e.to_string()))?;
        // Bytes after the term are refused: they may be a second one that the caller has
        // forgotten.
        match used == bytes.len() {
            true => Ok(Push::Term(term)),
            false => Err(bad(format!("the term ends at byte {used} of {len}"))),
        }
    };
    // SAFETY: by the *exclusive sequence* contract of `terms`.
    unsafe { push(terms, decoded) }
}
