//! A B+-tree: entries at positions, in leaves, to which inner nodes lead.
//!
//! ```text
//!              [ sep | sep ]                inner nodes: separators, and heads of four bytes
//!             /      |      \
//!      [ sep ]    [ sep ]   [ ]
//!      /     \
//!   leaf     leaf   …                       slots → records, under one lock
//! ```
//!
//! Invariants:
//! 1. A leaf has the entries whose positions are in its range, which the separators on the path
//!    give. The range never changes: a leaf for which it would is made obsolete, under its lock,
//!    before its successors can be reached.
//! 2. The slots of a leaf lie in the order of positions.
//! 3. Separators of a published node never change; child slots may (`inner`).
//!
//! Where things are:
//!
//! | file | what |
//! |---|---|
//! | `read`, `write` | the steps of a read and of a write |
//! | `inner`, `node`, `slot` | the path to a leaf |
//! | `tail` | the last leaf, found without the path |
//! | `restructure` | leaves are replaced, split, merged, and the nodes above them |
//! | `leaf`, `record` | the memory of a leaf, and how entries lie in it |
//! | `prefix` | what all entries of a leaf begin with |
//! | `view`, `locked` | what a reader does in a leaf, and what the lock's holder |
//! | `counts`, `stale`, `ranks` | how many entries lie where, who says that it has changed, and questions |
//! | `entries`, `run` | entries of a leaf by reference, and copied out |
//! | `scan`, `clear` | many entries: reading, removing |
//! | `key_order` | the tree as an index by key |
//!
//! Source: Bayer and McCreight 1972; prefix and suffix truncation after Bayer and Unterauer 1977;
//! heads after Graefe and Larson 2001; readers by optimistic lock coupling (Leis, Scheibner, Kemper
//! and Neumann 2016); splits under contention after contention-adapting trees (Sagonas and Winblad
//! 2015). Deviations: readers validate the leaf alone, as inner nodes are immutable but for their
//! child slots; changes of structure take one mutex; there are no links between leaves.
//!
//! When not to use it: tables that are never read in order. A lookup takes one more miss a level
//! than in the hash order.

mod clear;
mod counts;
pub(crate) mod entries;
#[allow(unsafe_code)]
pub(crate) mod inner;
pub(crate) mod key_order;
#[allow(unsafe_code)]
pub(crate) mod leaf;
mod locked;
mod node;
mod prefix;
mod ranks;
mod read;
mod record;
#[allow(unsafe_code)]
mod restructure;
pub(crate) mod run;
mod sample;
mod scan;
pub(crate) mod search_key;
mod sizes;
#[allow(unsafe_code)]
mod slot;
mod stale;
mod tail;
#[allow(unsafe_code)]
mod view;
mod write;

use crate::btree::inner::{FencedLeaf, InnerLevels, RangeEnd, Seek};
use crate::config::LeafConfig;
use crate::shared::Shared;
use crate::sync::{Backoff, Mutex};
use crate::Stats;
use crossbeam_epoch::Guard;

pub(crate) use scan::{ScanRequest, StepStart};

/// Children of an inner node, at most: its counts have a bit for each in a word.
const FANOUT: usize = 64;

/// Entries at positions.
pub(crate) struct BPlusTree {
    inner: InnerLevels,
    shared: Shared,
    /// How far `free_some` has come.
    freed: Mutex<Vec<u8>>,
}

impl BPlusTree {
    /// An empty tree.
    pub(crate) fn new(config: LeafConfig) -> Self {
        let shared = Shared {
            config,
            ..Shared::default()
        };
        BPlusTree {
            inner: InnerLevels::new(&shared),
            shared,
            freed: Mutex::default(),
        }
    }

    /// The same tree, whose users hold locks of their own: they say when what is large may be
    /// freed, by `free_large`.
    pub(crate) fn under_locks(mut self) -> Self {
        self.shared.holds_more = true;
        self
    }

    /// Frees what was left for when no lock is held, if there is anything.
    #[inline]
    pub(crate) fn free_large(&self, guard: &Guard) {
        self.shared.free_large(guard);
    }

    /// Entries, counted leaf by leaf.
    pub(crate) fn len(&self) -> usize {
        let (guard, backoff) = (crate::pin(), Backoff::new());
        let (mut len, mut cursor) = (0, Vec::new());
        loop {
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, &guard);
            let FencedLeaf { leaf, fence } = found;
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            len += view.len();
            match fence {
                Some(high) => cursor = high,
                None => return len,
            }
        }
    }

    /// Bytes of memory, apart from the tree's own fields.
    pub(crate) fn memory(&self) -> usize {
        self.shared.counters.bytes()
    }

    /// Figures of the structure.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.counters.stats(self.inner.depth(&crate::pin()))
    }
}
