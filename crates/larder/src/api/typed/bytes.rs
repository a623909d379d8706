//! Index keys and objects of typed tables, written to the thread's own buffers.
//!
//! A key that is an integer or a short binary becomes an index key in registers or on the stack,
//! and is decoded from that. Any other key is first written as a term, and the term as an order
//! key. Both take one pass over a few bytes.

use super::key::{bad_key, EncodeKey, Leaf};
use super::ser;
use crate::error::Error;
use crate::raw;
use crate::table::Table;
use larder_term::object::{ObjectBuf, ObjectEncoder};
use larder_term::{order_key, Encoder, Mode};
use serde::Serialize;
use std::cell::Cell;

/// The longest index key that is written on the stack.
const SHORT_KEY: usize = 96;

/// Larger buffers are dropped.
const KEEP: usize = 64 << 10;

/// The buffers with which a thread writes keys and objects.
#[derive(Default)]
pub(super) struct Buffers {
    term: Vec<u8>,
    key: Vec<u8>,
    object: ObjectBuf,
}

thread_local! {
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Calls `f` with the thread's buffers; with fresh ones if they are in use further up the stack.
#[inline]
fn with_buffers<R>(f: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = f(&mut buffers);
    let memory = buffers.term.capacity() + buffers.key.capacity() + buffers.object.capacity();
    if memory <= KEEP {
        buffers.object.clear();
        // A thread that is ending keeps no buffer.
        let _ = KEPT.try_with(|kept| kept.set(Some(buffers)));
    }
    result
}

/// Calls `f` with the index key of an ordered_set for a key.
///
/// # Errors
/// `WrongType` for an invalid key.
#[inline]
pub(super) fn with_key<K: EncodeKey + ?Sized, R>(
    key: &K,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<R, Error> {
    // Most keys are integers or short binaries, and become index keys on the stack.
    with_leaf(key, |leaf| match leaf {
        Some(leaf) => Ok(f(leaf)),
        None => with_buffers(|Buffers { term, key: out, .. }| {
            push_key(key, term, out)?;
            Ok(f(out))
        }),
    })
}

/// Calls `f` with the index key of an ordered_set for a key that is an integer or a short binary,
/// and with `None` for any other key. The key comes back from this index key.
#[inline(always)]
fn with_leaf<K: EncodeKey + ?Sized, R>(key: &K, f: impl FnOnce(Option<&[u8]>) -> R) -> R {
    // The forms below are written without a term in between.
    match key.leaf() {
        Leaf::Int(n) => {
            if let Some((first, rest, used)) = order_key::of_int(n) {
                let [a, b, c, d, e, g, h, i] = rest;
                return f(Some(&[first, a, b, c, d, e, g, h, i][..1 + used]));
            }
        }
        Leaf::Large(n) => return f(Some(&order_key::of_large(n))),
        Leaf::Binary(bytes) => {
            let mut short = [0u8; SHORT_KEY];
            if let Some(used) = order_key::encode_binary(bytes, &mut short) {
                return f(Some(&short[..used]));
            }
        }
        Leaf::Other => {}
    }
    f(None)
}

/// Writes the index key of an ordered_set for any key, by way of its term.
fn push_key<K: EncodeKey + ?Sized>(
    key: &K,
    term: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    // The key is a term of any kind: encode it, and derive its order key.
    term.clear();
    let mut enc = Encoder::new(term, Mode::Inline);
    key.encode_key(&mut enc)?;
    // A key that a user's type encodes is checked. A broken one never gets into the index.
    if !enc.is_complete() || enc.terms() != 1 {
        return Err(bad_key("its EncodeKey wrote no whole term, or several"));
    }
    let term = raw::stored(term);
    // Most order keys are short. A longer one is written by the general encoder.
    out.clear();
    out.resize(SHORT_KEY, 0);
    match order_key::encode_flat(term, &mut out[..]) {
        Some((used, _)) => out.truncate(used),
        None => {
            out.clear();
            order_key::encode(term, out);
        }
    }
    Ok(())
}

/// The index key of an ordered_set for a key.
///
/// # Errors
/// `WrongType` for an invalid key.
pub(super) fn index_key<K: EncodeKey + ?Sized>(key: &K) -> Result<Vec<u8>, Error> {
    with_key(key, <[u8]>::to_vec)
}

/// Calls `f` with the row of a key and a value as an object of a table.
///
/// # Errors
/// `WrongType` for an invalid key, and for values that serde can't convert to terms.
#[inline]
pub(super) fn with_object<K: EncodeKey + ?Sized, V: Serialize + ?Sized, R>(
    table: &Table,
    key: &K,
    value: &V,
    f: impl FnOnce(&ObjectBuf) -> R,
) -> Result<R, Error> {
    with_buffers(|Buffers { object, .. }| {
        write_object(table, key, value, object)?;
        Ok(f(object))
    })
}

/// Writes the row of a key and a value.
///
/// # Errors
/// Those of `with_object`.
#[inline]
pub(super) fn write_object<K: EncodeKey + ?Sized, V: Serialize + ?Sized>(
    table: &Table,
    key: &K,
    value: &V,
    object: &mut ObjectBuf,
) -> Result<(), Error> {
    let (form, compressed) = (table.key_form(), table.compressed());
    // A row that is not finished leaves an empty buffer.
    let mut enc = ObjectEncoder::new(object, 2, 1, form, compressed);
    with_leaf(key, |leaf| match leaf {
        Some(leaf) => {
            enc.order_key(leaf);
            Ok(())
        }
        None => enc.key(|e| key.encode_key(e)),
    })?;
    // An `order_key` was pushed, or a whole key. The value is the only other element.
    enc.element(|e| ser::write(value, e))?;
    match enc.finish() {
        true => Ok(()),
        false => Err(ser::incomplete()),
    }
}
