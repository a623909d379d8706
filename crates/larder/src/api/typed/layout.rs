//! How typed tables are stored: in the order of their keys, or by hash.
//!
//! An index key of the key order is an order key, and one of the hash order the key's term. Both
//! are made on the stack for a key that is an integer or a short binary.

use super::key::{Leaf, OrderedKey};
use crate::options::TableKind;
use crate::raw;
use crate::stored::Stored;
use larder_term::object::ObjectEncoder;
use larder_term::{order_key, simple};

/// The longest index key that is written on the stack.
pub(super) const SHORT_KEY: usize = 96;

/// The memory of an index key on the stack.
pub(super) type ShortKey = [u8; SHORT_KEY];

/// Writes bytes to `out`. Returns their number.
#[inline]
fn put<const N: usize>(bytes: [u8; N], out: &mut ShortKey) -> usize {
    out[..N].copy_from_slice(&bytes);
    N
}

/// Rows are in the order of their keys. There are ranges, ranks, a first and a last row. The table
/// is an ordered_set.
#[derive(Clone, Copy, Debug)]
pub struct Ordered;

/// Rows are in no order. They are found by hash, which takes less time. The table is a set.
#[derive(Clone, Copy, Debug)]
pub struct Hashed;

/// What is stored differently. The module is private, so there are no other implementations.
pub trait Layout: Send + Sync + 'static {
    /// The type of the table.
    const KIND: TableKind;

    /// Writes the index key of a simple key to `out`, and returns it. `None` for other keys.
    fn index_key<'o>(leaf: Leaf<'_>, out: &'o mut ShortKey) -> Option<&'o [u8]>;

    /// Sets the key of a row to a simple key. Returns `false`, and does nothing, for other keys.
    fn push_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool;

    /// Like `push_key`, for a row of which only the value is used. So the key may be left out.
    fn leave_out_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool;

    /// The key of a row whose value has no exact key, if it can be read from the index key alone.
    fn key_of<K: OrderedKey>(stored: &Stored<'_>) -> Option<K>;
}

impl Layout for Ordered {
    const KIND: TableKind = TableKind::OrderedSet;

    #[inline]
    fn index_key<'o>(leaf: Leaf<'_>, out: &'o mut ShortKey) -> Option<&'o [u8]> {
        let used = match leaf {
            Leaf::Int(n) => {
                let (bytes, used) = order_key::int_bytes(n)?;
                put(bytes, out);
                used
            }
            Leaf::Large(n) => put(order_key::of_large(n), out),
            Leaf::Binary(bytes) => order_key::encode_binary(bytes, out)?,
            Leaf::Other => return None,
        };
        out.get(..used)
    }

    #[inline]
    fn push_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool {
        if let Leaf::Int(n) = leaf {
            return enc.int_order_key(n);
        }
        let key = Self::index_key(leaf, &mut [0; SHORT_KEY]).map(|key| enc.order_key(key));
        key.is_some()
    }

    #[inline]
    fn leave_out_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool {
        match leaf {
            // The order key of −2^63 is made through a term.
            Leaf::Int(i64::MIN) => false,
            Leaf::Int(_) => {
                enc.leave_out_key();
                true
            }
            // Only the order key itself says whether these come back from it.
            _ => Self::push_key(leaf, enc),
        }
    }

    #[inline]
    fn key_of<K: OrderedKey>(stored: &Stored<'_>) -> Option<K> {
        // Only simple keys are read from an order key without a term.
        K::of_leaf(match stored.int_key() {
            Some(n) => Leaf::Int(n),
            None => stored.binary_key().map_or(Leaf::Other, Leaf::Binary),
        })
    }
}

impl Layout for Hashed {
    const KIND: TableKind = TableKind::Set;

    #[inline]
    fn index_key<'o>(leaf: Leaf<'_>, out: &'o mut ShortKey) -> Option<&'o [u8]> {
        // The index key is the key's term.
        let used = match leaf {
            Leaf::Int(n) => {
                let (bytes, used) = simple::int(n);
                put(bytes, out);
                used
            }
            Leaf::Large(n) => put(simple::large(n), out),
            Leaf::Binary(bytes) => return simple::binary(bytes, out),
            Leaf::Other => return None,
        };
        out.get(..used)
    }

    #[inline]
    fn push_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool {
        match leaf {
            Leaf::Int(n) => enc.int_key(n),
            Leaf::Binary(bytes) => return enc.binary_key(bytes),
            Leaf::Large(_) | Leaf::Other => return false,
        }
        true
    }

    #[inline]
    fn leave_out_key(leaf: Leaf<'_>, enc: &mut ObjectEncoder<'_>) -> bool {
        match leaf {
            Leaf::Int(_) => enc.leave_out_key(),
            _ => return Self::push_key(leaf, enc),
        }
        true
    }

    #[inline]
    fn key_of<K: OrderedKey>(stored: &Stored<'_>) -> Option<K> {
        // The index key is the key's term.
        K::decode_key(raw::stored(stored.index_key()))
    }
}
