//! Keys and values: integers of 64 bits, and bytes, which are binaries in a table.

use crate::failure::Failure;
use larder::host::{EngineTable, Stored};
use larder_term::object::{stored_term, ObjectBuf, ObjectView};
use larder_term::{order_key, text, Encoder, Term, TermRef};
use std::cell::Cell;

/// The longest index key that is written on the stack.
const SHORT_KEY: usize = 96;
/// A buffer with a larger capacity isn't kept.
const MAX_KEPT: usize = 64 << 10;

/// A key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl<'a> Item<'a> {
    /// # Errors
    /// `Stored` for a term that is neither.
    #[inline]
    pub(crate) fn of(term: TermRef<'a>) -> Result<Self, Failure> {
        if let Some(n) = term.as_int() {
            return Ok(Item::Int(n));
        }
        let bytes = term.as_binary().ok_or_else(|| unsupported(term))?;
        Ok(Item::Bytes(bytes))
    }

    /// The value of a row that was found under its key.
    #[inline]
    pub(crate) fn value(stored: Stored<'a>) -> Result<Self, Failure> {
        match stored.beside_key() {
            // The common case: a pair, whose value is read without the row being taken apart.
            // SAFETY: an encoder of the engine wrote the row's bytes. They begin with the one
            // element beside the key, which is a whole term. The row is shown under a pinned epoch,
            // so what a long binary refers to stays while `'a` lasts.
            Some((2, value)) => Item::of(unsafe { TermRef::split_first(stored_term(value)) }.0),
            // A row that is compressed or of another arity, or one with a key of its own, such as
            // a float of another host. The key has to be skipped first.
            _ => Item::row(&stored.view()).map(|(_, value)| value),
        }
    }

    /// The key and the value of a row.
    pub(crate) fn row(row: &ObjectView<'a>) -> Result<(Self, Self), Failure> {
        match (row.arity(), row.element(2)) {
            (2, Some(value)) => Ok((Item::of(row.key())?, Item::of(value)?)),
            _ => Err(Failure::Stored("the row isn't a pair {Key, Value}".into())),
        }
    }

    /// Converts it to an owned term.
    pub(crate) fn term(self) -> Term {
        match self {
            Item::Int(n) => Term::int(n),
            Item::Bytes(bytes) => Term::binary(bytes),
        }
    }

    #[inline]
    fn push(self, enc: &mut Encoder<'_>) {
        match self {
            Item::Int(n) => enc.int(n),
            Item::Bytes(bytes) => enc.binary(bytes),
        }
    }

    /// Calls `f` with the index key of an ordered_set for this key.
    #[inline]
    pub(crate) fn with_key<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Item::Int(n) => {
                // Every integer but -2^63 has an index key of at most nine bytes. They are
                // returned in registers and assembled on the stack.
                if let Some((bytes, used)) = order_key::int_bytes(n) {
                    return f(&bytes[..used]);
                }
            }
            Item::Bytes(bytes) => {
                // Encoded bytes are a little longer than the binary. If they fit, the key is on the
                // stack.
                let mut short = [0u8; SHORT_KEY];
                if let Some(used) = order_key::encode_binary(bytes, &mut short) {
                    return f(&short[..used]);
                }
            }
        }
        f(&self.long_key())
    }

    #[cold]
    fn long_key(self) -> Vec<u8> {
        let mut key = Vec::new();
        // One push makes one whole term.
        let term = Term::build(|enc| self.push(enc)).unwrap_or_else(|_| Term::nil());
        order_key::encode(term.as_ref(), &mut key);
        key
    }

    /// The index key as an owned vector.
    pub(crate) fn index_key(self) -> Vec<u8> {
        self.with_key(<[u8]>::to_vec)
    }
}

/// Returns the integer.
///
/// # Errors
/// `Stored` for bytes.
#[inline]
pub(crate) fn long_of(item: Item<'_>) -> Result<i64, Failure> {
    match item {
        Item::Int(n) => Ok(n),
        Item::Bytes(_) => Err(Failure::Stored("the value is bytes, not a long".into())),
    }
}

/// The beginning of a term's text, which may be long.
pub(crate) fn shown(term: TermRef<'_>) -> String {
    const MOST: usize = 120;
    text::beginning(term, MOST)
}

#[cold]
fn unsupported(term: TermRef<'_>) -> Failure {
    Failure::Stored(format!(
        "the stored term is neither a 64-bit integer nor a binary: {}",
        shown(term)
    ))
}

/// Writes the row of a key and a value.
#[inline]
pub(crate) fn write_row(table: &EngineTable, key: Item<'_>, value: Item<'_>, row: &mut ObjectBuf) {
    let mut enc = table.encoder(row, 2);
    enc.key(|e| key.push(e));
    enc.element(|e| value.push(e));
    // Each has pushed one whole term.
    enc.finish();
}

thread_local! {
    static ROW: Cell<Option<Box<ObjectBuf>>> = const { Cell::new(None) };
}

/// Calls `f` with the row of a key and a value, in the thread's own buffer.
#[inline]
pub(crate) fn with_row<R>(
    table: &EngineTable,
    key: Item<'_>,
    value: Item<'_>,
    f: impl FnOnce(&ObjectBuf) -> R,
) -> R {
    // As in `arrays`: the buffer is taken out of its cell, so it is never lent twice.
    let mut row = ROW.try_with(Cell::take).ok().flatten().unwrap_or_default();
    write_row(table, key, value, &mut row);
    let result = f(&row);
    row.clear();
    if row.capacity() <= MAX_KEPT {
        // A thread that exits keeps no buffer.
        let _ = ROW.try_with(|kept| kept.set(Some(row)));
    }
    result
}
