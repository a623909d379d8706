//! Buffers that calls use again and again, one set a thread.
//!
//! A call takes what it needs and gives it back; a call within a call (none today) would find an empty place and make its own.

use larder_term::object::ObjectBuf;
use std::cell::Cell;

thread_local! {
    static OBJECT: Cell<Option<ObjectBuf>> = const { Cell::new(None) };
    static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static TERM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The most memory that a buffer may keep between calls.
const KEPT: usize = 64 << 10;

/// Runs `f` with an empty object.
#[inline]
pub fn with_object<R>(f: impl FnOnce(&mut ObjectBuf) -> R) -> R {
    let mut object = OBJECT.with(Cell::take).unwrap_or_default();
    let result = f(&mut object);
    object.clear();
    if object.capacity() <= KEPT {
        OBJECT.with(|cell| cell.set(Some(object)));
    }
    result
}

/// Runs `f` with two empty buffers, one for a term and one for a key.
#[inline]
pub fn with_bytes<R>(f: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> R) -> R {
    let (mut term, mut key) = (TERM.with(Cell::take), KEY.with(Cell::take));
    term.clear();
    key.clear();
    let result = f(&mut term, &mut key);
    for (bytes, place) in [(term, &TERM), (key, &KEY)] {
        if bytes.capacity() <= KEPT {
            place.with(|cell| cell.set(bytes));
        }
    }
    result
}
