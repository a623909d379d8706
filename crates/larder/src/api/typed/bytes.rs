//! Index keys and objects of typed tables, written to the thread's own buffers.
//!
//! A key that is an integer or a short binary becomes an index key in registers or on the stack,
//! and is decoded from that. Any other key is first written as a term. By hash that is the index
//! key; in order, the term is written as an order key. Each takes one pass over a few bytes.

use super::key::{bad_key, EncodeKey, Leaf};
use super::layout::{Layout, Ordered, SHORT_KEY};
use super::ser;
use crate::error::Error;
use crate::keys;
use crate::raw;
use crate::table::EngineTable;
use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
use larder_term::{order_key, Encoder, Mode};
use serde::Serialize;
use std::cell::Cell;

/// Most order keys are no longer than this.
const FLAT_KEY: usize = 96;

/// Larger buffers are dropped.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// The buffers with which a thread writes keys and objects.
#[derive(Default)]
pub(super) struct TypedBuffers {
    term: Vec<u8>,
    key: Vec<u8>,
    object: ObjectBuf,
}

thread_local! {
    static KEPT: Cell<Option<Box<TypedBuffers>>> = const { Cell::new(None) };
}

/// Takes the thread's buffers; fresh ones if they are in use further up the stack.
#[inline]
fn take_buffers() -> Box<TypedBuffers> {
    KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default()
}

/// Gives buffers back to the thread, unless they are large.
#[inline]
fn give_back(mut buffers: Box<TypedBuffers>) {
    let memory = buffers.term.capacity() + buffers.key.capacity() + buffers.object.capacity();
    if memory <= MAX_KEPT_CAPACITY {
        buffers.object.clear();
        // A thread that is ending keeps no buffer.
        let _ = KEPT.try_with(|kept| kept.set(Some(buffers)));
    }
}

/// Calls `f` with the index key of a key, in the form of a table of kind `O`.
///
/// # Errors
/// `WrongType` for an invalid key.
#[inline]
pub(super) fn with_key<O: Layout, K: EncodeKey + ?Sized, R>(
    form: KeyForm,
    key: &K,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<R, Error> {
    // Most keys are integers or short binaries, and become index keys on the stack.
    let (mut short, mut buffers) = ([0; SHORT_KEY], None::<Box<_>>);
    let index_key = match O::index_key(key.leaf(), &mut short) {
        Some(simple) => simple,
        None => push_key(form, key, buffers.insert(take_buffers()))?,
    };
    // The only call of `f`, so that it is compiled once, within its caller.
    let result = f(index_key);
    if let Some(buffers) = buffers {
        give_back(buffers);
    }
    Ok(result)
}

/// Writes the index key of any key, through its term.
fn push_key<'b, K: EncodeKey + ?Sized>(
    form: KeyForm,
    key: &K,
    buffers: &'b mut TypedBuffers,
) -> Result<&'b [u8], Error> {
    let TypedBuffers { term, key: out, .. } = buffers;
    // The key is a term of any kind: encode it, and derive the index key from it.
    term.clear();
    let place = &raw const *term;
    let mut enc = Encoder::new(term, Mode::Inline);
    key.encode_key(&mut enc)?;
    // A key that a user's type encodes is checked. A broken one never gets into the index.
    if !enc.is_complete() || enc.terms() != 1 || !enc.appends_to(place) {
        return Err(bad_key("its EncodeKey wrote no whole term, or several"));
    }
    let term = raw::stored(term);
    out.clear();
    if form == KeyForm::Ordered {
        // Most order keys are short. A longer one is written by the general encoder.
        out.resize(FLAT_KEY, 0);
        if let Some((used, _)) = order_key::encode_flat(term, &mut out[..]) {
            out.truncate(used);
            return Ok(out);
        }
        out.clear();
    }
    keys::encode(form, term, out);
    Ok(out)
}

/// The index key of an ordered_set for a key.
///
/// # Errors
/// `WrongType` for an invalid key.
pub(super) fn index_key<K: EncodeKey + ?Sized>(key: &K) -> Result<Vec<u8>, Error> {
    with_key::<Ordered, _, _>(KeyForm::Ordered, key, <[u8]>::to_vec)
}

/// Calls `f` with the row of a key and a value as an object of a table.
///
/// # Errors
/// `WrongType` for an invalid key, and for values that serde can't convert to terms.
#[inline]
pub(super) fn with_object<O: Layout, K: EncodeKey + ?Sized, V: Serialize + ?Sized, R>(
    table: &EngineTable,
    key: &K,
    value: &V,
    f: impl FnOnce(&ObjectBuf) -> R,
) -> Result<R, Error> {
    let mut buffers = take_buffers();
    let written = write_object(table, key, value, &mut buffers.object, |leaf, enc| {
        O::push_key(leaf, enc)
    });
    let result = written.map(|()| f(&buffers.object));
    give_back(buffers);
    result
}

/// Writes the row of a key and a value. `simple_key` writes the key of a leaf: `Layout::push_key`,
/// or `Layout::leave_out_key` if only the value of the row is used.
///
/// # Errors
/// Those of `with_object`.
#[inline]
pub(super) fn write_object<K: EncodeKey + ?Sized, V: Serialize + ?Sized>(
    table: &EngineTable,
    key: &K,
    value: &V,
    object: &mut ObjectBuf,
    simple_key: impl FnOnce(Leaf<'_>, &mut ObjectEncoder<'_>) -> bool,
) -> Result<(), Error> {
    // A row that is not finished leaves an empty buffer.
    let mut enc = table.encoder(object, 2);
    if !simple_key(key.leaf(), &mut enc) {
        enc.key(|e| key.encode_key(e))?;
    }
    // A simple key is set, or any other one. The value is the only other element.
    enc.element(|e| ser::write(value, e))?;
    match enc.finish_here() {
        true => Ok(()),
        false => Err(ser::incomplete()),
    }
}
