//! The default for tables without order: entries by hash, then by key.
//!
//! A position is the top 48 bits of the hash (6 bytes, big endian) and then the key: two bytes less in each row than with the whole hash, and
//! enough to tell apart the keys of one leaf in all but the rarest case, where the key does. See `raw::trie` for the way to the leaves,
//! and `tree` for what happens in them.

use crate::raw::trie::Trie;
use crate::run::with_run;
use crate::traits::HASH;
use crate::tree::{Tree, Wish};
use crate::{Batch, Direction, Key, LeafConfig, Start, Stats, Unique, Updater};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// A position that mostly needs no memory of its own.
type Position = SmallVec<[u8; 104]>;

/// Entries by hash, then by key.
pub struct HashOrder(Tree<Trie>);

impl HashOrder {
    /// An empty index.
    pub fn new(config: LeafConfig) -> Self {
        HashOrder(Tree::new(config, Trie::new))
    }
}

#[inline]
fn position(key: Key<'_>) -> Position {
    let mut position = Position::new();
    position.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
    position.extend_from_slice(key.bytes);
    position
}

/// Scans a tree: `front` bytes of a position precede the key.
pub(crate) fn scan<R: crate::route::Route>(
    tree: &Tree<R>,
    guard: &Guard,
    (start, direction): (Start<'_>, Direction),
    front: usize,
    batch: &mut Batch,
) {
    batch.clear();
    with_run(|run| {
        let wish = Wish {
            start,
            direction,
            within: &[],
            limit: batch.limit(),
        };
        batch.done = tree.scan(guard, &wish, run, &mut batch.resume);
        // The batch takes the run's bytes as they are.
        std::mem::swap(&mut run.bytes, &mut batch.bytes);
        let entries = run.entries.iter();
        batch
            .entries
            .extend(entries.map(|e| ((e.from + front) as u32, e.middle as u32, e.end as u32)));
    });
}

impl Unique for HashOrder {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.0.get(guard, &position(key), out)
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.0.contains(guard, &position(key))
    }

    fn update<'v>(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_, 'v>) -> bool {
        self.0.update(guard, &position(key), f)
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        scan(&self.0, guard, (start, direction), HASH, batch);
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&position(key));
    }

    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.0.free_some(guard, limit, f)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.memory()
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}
