//! A B+-tree. Its entries are sorted by position. They are stored in leaves, which a reader reaches
//! through the inner nodes.
//!
//! ```text
//!              [ sep | sep ]                inner nodes: separators, and four-byte heads of them
//!             /      |      \
//!      [ sep ]    [ sep ]   [ sep ]
//!      /     \
//!   leaf     leaf   …                       slots → records; each leaf has its own lock
//! ```
//!
//! Invariants (docs/design.md §4.4):
//! * B1: A leaf has exactly the entries whose positions are in its range.
//! * B2: The range of a leaf never changes. A leaf that is split or merged becomes obsolete before
//!   its successors can be reached (I4).
//! * B3: The slots of a leaf are in the order of positions.
//! * B4: The separators of a published node never change. Only the addresses in its child slots do
//!   (`inner`).
//!
//! Files:
//!
//! | file | contents |
//! |---|---|
//! | `read`, `write` | the steps of a read and of a write |
//! | `overflow`, `reclaim` | a write whose leaf has no room; a leaf that has too much |
//! | `found_slot` | the slot in which a write finds its entry |
//! | `inner`, `node`, `slot` | the inner levels: the path to a leaf, a node, a child slot |
//! | `tail` | the shortcut to the last leaf, for appends |
//! | `restructure` | replacing, splitting and merging leaves, and the nodes above them |
//! | `sizes` | the capacities of leaves |
//! | `leaf`, `record` | the memory of a leaf, and the format of its records |
//! | `stored` | whether a value goes into its leaf, or into an outside object |
//! | `insert_run` | the run of inserts that a leaf records |
//! | `search_key` | the position that a search looks for, with its first bytes as a word |
//! | `sample` | entries from all parts of the tree, for tables that evict |
//! | `prefix` | the common prefix of a leaf's entries |
//! | `marks` | numbers that users keep beside entries |
//! | `view`, `locked` | the operations of a leaf's reader, and of the holder of its lock |
//! | `counts`, `stale`, `ranks` | counts per subtree, their invalidation, rank queries |
//! | `entries`, `copies` | the entries of a leaf by reference, and as copies |
//! | `scan`, `clear` | reading and removing many entries |
//! | `key_order` | the tree as an index by key |
//!
//! Sources:
//! - the tree: Bayer and McCreight 1972
//! - prefix and suffix truncation: Bayer and Unterauer 1977
//! - heads: Graefe and Larson 2001
//! - optimistic readers: optimistic lock coupling (Leis, Scheibner, Kemper and Neumann 2016)
//! - splits under contention: contention-adapting trees (Sagonas and Winblad 2015)
//!
//! Deviations: a reader validates only the version of the leaf, since inner nodes are immutable
//! except for their child slots. Changes of structure take one mutex. Leaves are not linked.
//!
//! When not to use it: for tables that are never read in order. A lookup has one more cache miss
//! per level than in the hash order.

mod clear;
pub(crate) mod copies;
mod counts;
pub(crate) mod entries;
mod found_slot;
#[allow(unsafe_code)]
pub(crate) mod inner;
mod insert_run;
pub(crate) mod key_order;
#[allow(unsafe_code)]
pub(crate) mod leaf;
mod locked;
mod marks;
mod node;
mod overflow;
mod prefix;
mod ranks;
mod read;
mod reclaim;
pub(crate) mod record;
#[allow(unsafe_code)]
mod restructure;
mod sample;
mod scan;
pub(crate) mod search_key;
mod sizes;
#[allow(unsafe_code)]
mod slot;
mod stale;
mod stored;
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

/// The maximum number of children of an inner node. The counts of a node have one bit per child,
/// all in one word.
const FANOUT: usize = 64;

/// The tree.
pub(crate) struct BPlusTree {
    inner: InnerLevels,
    shared: Shared,
    /// The position at which the next call of `free_some` continues. Empty at the start.
    freed: Mutex<Vec<u8>>,
}

impl BPlusTree {
    /// An empty tree.
    pub(crate) fn new(mut config: LeafConfig) -> Self {
        config.most = config.most.min(1 << 18);
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

    /// The same tree for users who hold locks of their own while they write to it. They call
    /// `flush_postponed` when they hold none.
    pub(crate) fn under_locks(mut self) -> Self {
        self.shared.callers_hold_locks = true;
        self
    }

    /// Frees retired objects, if a write has postponed that until no lock is held (`retire`).
    #[inline]
    pub(crate) fn flush_postponed(&self, guard: &Guard) {
        self.shared.flush_postponed(guard);
    }

    /// The number of entries, counted leaf by leaf. Entries that are inserted or removed meanwhile
    /// may be counted or not.
    pub(crate) fn len(&self) -> usize {
        let (guard, backoff) = (crate::pin(), Backoff::new());
        let (mut len, mut cursor): (_, &[u8]) = (0, &[]);
        loop {
            let found = self
                .inner
                .find_fenced(Seek::At(cursor), RangeEnd::High, &guard);
            let FencedLeaf { leaf, fence } = found;
            // If the leaf is obsolete, descend to the same position again, to its successor.
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            // The number is one word, so it needs no validation.
            len += view.len();
            // The next leaf begins at this one's upper fence. The last leaf has none.
            match fence {
                Some(high) => cursor = high,
                None => return len,
            }
        }
    }

    /// The memory in bytes, without the fields of the tree itself.
    pub(crate) fn memory(&self) -> usize {
        self.shared.counters.bytes()
    }

    /// Announces about how many keys there are and will soon be.
    pub(crate) fn expect_keys(&self, now: usize, soon: usize) {
        self.shared.expected.announce(now, soon);
    }

    /// Statistics of the tree.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.counters.stats(self.inner.depth(&crate::pin()))
    }
}
