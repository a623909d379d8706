//! Numbers that stand for tables and owners, and their hash.
//!
//! The engine, or its host, gives them. Nobody who wants to do harm chooses them, so their hash
//! needs no secret.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// A table's number: never used twice in the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table#{}", self.0)
    }
}

/// An owner of tables, and the caller of an operation. A number: it keeps nothing alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(u64);

impl OwnerId {
    /// The owner with this number, which is the host's choice; 0 is nobody.
    pub fn from_raw(raw: u64) -> Self {
        OwnerId(raw)
    }

    /// The number.
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// The caller of an operation: an owner, or a function that gives it, for when it matters.
pub trait Who {
    /// The owner.
    fn owner(self) -> OwnerId;
}

impl Who for OwnerId {
    #[inline]
    fn owner(self) -> OwnerId {
        self
    }
}

impl<F: FnOnce() -> OwnerId> Who for F {
    #[inline]
    fn owner(self) -> OwnerId {
        self()
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner#{}", self.0)
    }
}

/// A map by such a number: `HashMap<TableId, T, ByNumber>`.
pub type ByNumber = BuildHasherDefault<NumberHasher>;

/// The hash of one number.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        // The golden ratio's bits: neighbouring numbers get values far from each other.
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        // Tables take bits from both ends, and those of one half alone may all be 0.
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = folded ^ folded >> 32;
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn numbers_that_differ_in_few_bits_spread() {
        // Ids in a row, and words of pids, of which the low four bits are always the same.
        for shift in [0, 4, 16, 40] {
            let hashes: Vec<u64> = (0..4096u64)
                .map(|n| ByNumber::default().hash_one(n << shift))
                .collect();
            let low: HashSet<u64> = hashes.iter().map(|hash| hash % 4096).collect();
            let top: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 2048, "{shift}: {}", low.len());
            assert_eq!(top.len(), 128, "{shift}");
        }
    }
}
