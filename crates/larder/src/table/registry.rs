//! The table of names.
//!
//! A name is an atom, and an atom is a small number. So this is an array over these numbers, in
//! chunks that double in size and are allocated when they are first needed. A lookup takes two
//! loads, no lock, and no change of a reference count. A list of all tables is obtained from the
//! owners.

use super::EngineTable;
use crate::raw::EpochCell;
use larder_index::Guard;
use larder_term::Atom;
use std::sync::{Arc, OnceLock};

/// The number of names in the first chunk, as a power of two.
const FIRST_BITS: u32 = 8;

/// The number of chunks, which is enough for all 32-bit numbers.
const CHUNKS: usize = (u32::BITS - FIRST_BITS) as usize + 1;

type NameSlot = EpochCell<Arc<EngineTable>>;

/// The chunk of a number, and the index in it: chunk c > 0 has the numbers from
/// 2^(FIRST_BITS + c - 1) to twice that.
fn place(number: u32) -> (usize, usize) {
    // The highest bit decides the chunk, so that each chunk is as large as all before it.
    let bits = u32::BITS - number.leading_zeros();
    let chunk = bits.saturating_sub(FIRST_BITS);
    let base = if chunk == 0 {
        0
    } else {
        1u32 << (FIRST_BITS + chunk - 1)
    };
    (chunk as usize, (number - base) as usize)
}

/// The number of slots in a chunk.
fn chunk_size(chunk: usize) -> usize {
    1 << (FIRST_BITS as usize + chunk.saturating_sub(1))
}

/// The tables that have names.
pub(crate) struct Registry {
    names: [OnceLock<Box<[NameSlot]>>; CHUNKS],
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            names: std::array::from_fn(|_| OnceLock::new()),
        }
    }
}

impl Registry {
    /// Finds the table of this name.
    pub(crate) fn named<'g>(&self, name: Atom, guard: &'g Guard) -> Option<&'g Arc<EngineTable>> {
        let (chunk, i) = place(name.id());
        // If the chunk wasn't allocated, none of its names was ever taken.
        self.names[chunk].get()?[i].load(guard).get()
    }

    /// Gives the name to the table. Returns `false` if another table has it.
    pub(crate) fn take_name(&self, name: Atom, table: &Arc<EngineTable>, guard: &Guard) -> bool {
        let (chunk, i) = place(name.id());
        // A chunk never moves, so `named` reads it without a lock.
        let slots = self.names[chunk]
            .get_or_init(|| (0..chunk_size(chunk)).map(|_| EpochCell::empty()).collect());
        // Use compare-and-swap: if several tables want a free name, one gets it.
        let seen = slots[i].load(guard);
        seen.get().is_none() && slots[i].replace(seen, Arc::clone(table), guard).is_ok()
    }

    /// Frees the name, which belongs to the table: the caller holds the table's `admin`.
    pub(crate) fn free_name(&self, name: Atom, guard: &Guard) {
        let (chunk, i) = place(name.id());
        if let Some(slots) = self.names[chunk].get() {
            drop(slots[i].take(guard));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_distinct_and_dense() {
        let mut expected = (0, 0);
        for number in 0..100_000u32 {
            let (chunk, i) = place(number);
            if (chunk, i) != expected {
                expected = (expected.0 + 1, 0);
            }
            assert_eq!((chunk, i), expected, "{number}");
            assert!(i < chunk_size(chunk));
            expected.1 += 1;
        }
        assert!(place(u32::MAX).0 < CHUNKS);
        assert_eq!(place(u32::MAX).1, chunk_size(CHUNKS - 1) - 1);
    }
}
