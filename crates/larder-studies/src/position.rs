//! Positions, by which structures sort their entries.
//!
//! ```text
//!   key order    key
//!   hash order   top 48 bits of the hash (6 bytes, big endian) | key
//!   of a list    top 48 bits of the hash | key | number of the arrival (8 bytes, big endian)
//! ```
//!
//! Positions are prefix-free, because keys are. A hash-ordered structure reads the hash from the
//! beginning of the position.

use larder_index::Key;
use smallvec::SmallVec;

/// The number of bytes of the hash in a position.
pub(crate) const HASH: usize = 6;

/// The number of an arrival, as bytes.
pub(crate) type Bytes = [u8; 8];

/// A stored position. A short one needs no memory of its own.
pub type Position = SmallVec<[u8; 16]>;

/// An entry of a structure.
#[derive(Debug)]
pub(crate) struct Entry<W> {
    pub(crate) position: Position,
    pub(crate) word: W,
}

/// A position that is searched for, on the stack.
pub(crate) type Asked = SmallVec<[u8; 120]>;

/// The bytes of memory that a stored position has on the heap.
pub(crate) fn spilled(position: &Position) -> usize {
    if position.spilled() {
        position.capacity()
    } else {
        0
    }
}

/// The order of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The bytes of the key.
    Key,
    /// The top 48 bits of the hash, then the bytes of the key.
    Hash,
}

impl Order {
    /// The number of bytes before the key in a position.
    pub(crate) fn prefix_len(self) -> usize {
        match self {
            Order::Key => 0,
            Order::Hash => HASH,
        }
    }

    /// Calls `f` with the position of the key.
    #[inline]
    pub(crate) fn with<R>(self, key: Key<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Order::Key => f(key.bytes),
            Order::Hash => {
                let mut position = Asked::new();
                position.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
                position.extend_from_slice(key.bytes);
                f(&position)
            }
        }
    }

    /// Writes the position of the key to `out`, which is cleared first.
    pub(crate) fn write(self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        if self == Order::Hash {
            out.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
        }
        out.extend_from_slice(key.bytes);
    }
}

/// The 48 bits of the hash at the beginning of a position, as the top bits of a word. Bytes that a
/// short position lacks are zero.
#[inline]
pub(crate) fn hash_of(position: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = position.len().min(HASH);
    bytes[..n].copy_from_slice(&position[..n]);
    u64::from_be_bytes(bytes)
}
