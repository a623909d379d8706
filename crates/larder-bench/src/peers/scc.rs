//! scc's two structures for many readers: a hash index and a B+-tree. An insert leaves a value that
//! is there.

use super::{Operations, Shared};
use scc::{HashIndex, TreeIndex};

/// `HashIndex<u64, u64>`.
pub struct Index(HashIndex<u64, u64>);
/// `TreeIndex<u64, u64>`.
pub struct Tree(TreeIndex<u64, u64>);

macro_rules! shared {
    ($peer:ident, $inner:ident, $name:literal, $ordered:literal) => {
        impl Operations for &$peer {
            fn insert(&mut self, key: u64, value: u64) {
                // An error means that the key is there, with the same value.
                let _ = self.0.insert_sync(key, value);
            }
            fn get(&mut self, key: u64) -> Option<u64> {
                self.0.peek_with(&key, |_, value| *value)
            }
            fn remove(&mut self, key: u64) {
                self.0.remove_sync(&key);
            }
        }

        impl Shared for $peer {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;
            type Hand<'a> = &'a $peer;

            fn empty() -> Self {
                $peer($inner::new())
            }
            fn hand(&self) -> &$peer {
                self
            }
        }
    };
}

shared!(Index, HashIndex, "scc::HashIndex", false);
shared!(Tree, TreeIndex, "scc::TreeIndex", true);
