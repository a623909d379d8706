//! An index in hash order for entries that are nearly always added, and rarely replaced: each entry
//! is a node of its own, in a chain of nodes whose hashes begin with the same bits.
//!
//! ```text
//!  heads      head │ head │ head │ head │ …      by the top bits of the hash
//!              ↓             ↓
//!             node          node                 hash, key, value
//!              ↓
//!             node
//! ```
//!
//! An insert makes a node and links it: nothing is moved, and mostly nothing is searched. This
//! takes a fifth of the instructions of an insert into `HashOrder`, whose leaves grow and split. It
//! takes more memory: 32 bytes and a head for each entry. Lookups take a cache miss for each node
//! of the chain. So it is for histories, and not for tables.
//!
//! The nodes of `put_absent` are in slabs, which are freed with the index. All others are blocks of
//! their own, which are freed when they are replaced. So slabs have at most one node for each key
//! that was ever absent.
//!
//! Deviation from the contract of [`Unique`](crate::Unique): a batch of a scan isn't of one
//! instant. Each entry is read at an instant between the call and its return.
//!
//! # Invariants (docs/design.md §4.5)
//!
//! * CH1: A key has at most one node. Who may write it: a holder of the lock of its hash, or the
//!   caller of `put_absent`, who guarantees that the key has none.
//! * CH2: A reader takes no lock. A node that was linked before the reader began, or the one that
//!   replaced it, is found.
//! * CH3: A reader that stands at a node which was replaced goes on from there, and reads nothing
//!   older than its begin.
//! * CH4: A node is published by a locked exchange.
//!
//! Linearisation points: of a write, the exchange that links the node; of a read, the load of the
//! link that leads to the node, or of the last link.
//!
//! Sources: chains that only grow at their heads, by a compare-and-exchange, are Treiber's stack
//! (1986). Growing by adding arrays, without moving anything, is like the multi-level structures
//! that are searched from the newest to the oldest level (Bentley, Saxe 1980).

#[allow(unsafe_code)]
mod arena;
#[allow(unsafe_code)]
mod heads;
#[allow(unsafe_code)]
mod node;
mod scan;

use crate::hint::Hint;
use crate::scratch::with_scratch;
use crate::shared::Shared;
use crate::sync::Mutex;
use crate::traits::HASH;
use crate::{
    Batch, Change, Container, Direction, Key, Lookup, Start, Stats, Unique, Updater, SHORT_VALUE,
};
use crossbeam_epoch::Guard;
use heads::{HeadIndex, Heads};
use node::OwnNode;

/// The memory, per head, at which another generation is added. With short entries there are one or
/// two nodes for each head then.
const BYTES_PER_HEAD: usize = 96;

/// An insert whose hash has none of these bits checks whether another generation is needed.
const CHECK_MASK: u64 = if cfg!(larder_model) { 1 } else { 15 };

/// The base-2 logarithms of the least and the greatest number of heads of a new index.
const FIRST_BITS: (u32, u32) = (7, 18);

/// An index of chains.
pub struct Chains {
    heads: Heads,
    shared: Shared,
    bytes_per_head: usize,
    /// Where `free_some` continues.
    freed: Mutex<HeadIndex>,
}

impl Chains {
    /// An empty index, which is probably going to have some fraction of `entries`. The caller may
    /// hold locks of its own while it writes. It calls `flush_postponed` when it holds none.
    pub fn new(entries: usize) -> Self {
        // If a quarter of the entries are replaced, one generation has room for them.
        let bits = (entries / 4).max(1).ilog2();
        Self::with(bits.clamp(FIRST_BITS.0, FIRST_BITS.1), BYTES_PER_HEAD)
    }

    /// An empty index that has generations of many heads from the first entries on. For tests.
    #[doc(hidden)]
    pub fn tiny() -> Self {
        Self::with(0, 24)
    }

    fn with(bits: u32, bytes_per_head: usize) -> Self {
        Chains {
            heads: Heads::new(bits),
            shared: Shared {
                callers_hold_locks: true,
                ..Shared::default()
            },
            bytes_per_head,
            freed: Mutex::new(HeadIndex::default()),
        }
    }

    /// Whether there may be a node with this hash.
    #[inline]
    pub fn may_have(&self, hash: u64) -> bool {
        self.heads.may_have(hash)
    }

    /// Prefetches what `put_absent` writes for a key with this hash.
    #[inline]
    pub fn prefetch_place(&self, hash: u64) {
        self.heads.prefetch_place(hash);
    }

    /// Like [`put_absent`](Unique::put_absent), with a value in two parts.
    #[inline]
    pub fn put_absent_parts(&self, key: Key<'_>, value: [&[u8]; 2]) {
        let add = |bytes| self.add_bytes(bytes);
        let node = self.heads.node(key, value, &add);
        self.insert(key.hash, node);
    }

    /// Inserts a node of a key that has none.
    fn insert(&self, hash: u64, node: OwnNode) {
        let add = |bytes| self.add_bytes(bytes);
        self.heads.push(hash, node, &add);
        // The counters are shared by all threads, so only some inserts read them.
        if hash & CHECK_MASK == 0 {
            let heads = self.heads.len();
            if self.shared.counters.bytes() > heads * self.bytes_per_head {
                add(self.heads.grow(heads));
            }
        }
    }

    fn add_bytes(&self, bytes: usize) {
        self.shared.counters.add_bytes(bytes as isize);
    }
}

impl Unique for Chains {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let node = self.heads.find(key, guard);
        node.inspect(|node| out.extend_from_slice(node.value()))
            .is_some()
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.heads.find(key, guard).is_some()
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        match self.heads.find(key, guard) {
            Some(node) => Lookup::copied(node.value(), out, long),
            None => Lookup::Absent,
        }
    }

    fn prefetch(&self, _: &Guard, keys: &[Key<'_>]) {
        keys.iter().for_each(|key| self.heads.prefetch(key.hash));
    }

    fn prefetch_entry<'g>(&'g self, _: &'g Guard, key: Key<'_>) -> Hint<'g> {
        self.heads.prefetch_first(key.hash);
        Hint::default()
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        with_scratch(|scratch| self.update_with(guard, key, scratch, f))
    }

    fn update_with(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        scratch.clear();
        // Take the lock of the hash. Only its holder replaces or removes the key's node (CH1).
        let lock = self.heads.lock(key.hash);
        let old = self.heads.find(key, guard);
        let value = old.map(|node| node.value());
        // The callback decides under the lock. A node never changes, so the new value is whole.
        let new = match f(value, scratch).whole(value, scratch) {
            Change::Keep => return false,
            Change::Remove if old.is_none() => return false,
            Change::Remove => None,
            // A new key: its node is linked at the head of the newest generation.
            Change::Put | Change::Splice(_) if old.is_none() => {
                let node = OwnNode::new(key.hash, key.bytes, scratch);
                self.add_bytes(node.memory());
                self.insert(key.hash, node);
                return true;
            }
            Change::Put | Change::Splice(_) => Some(OwnNode::new(key.hash, key.bytes, scratch)),
        };
        // One exchange of the link to the old node puts the new node in its place, or removes it
        // (CH2). Readers may still stand at the old node, so it is retired, not freed.
        let bytes = new.as_ref().map_or(0, OwnNode::memory);
        let retired = lock.replace(key, new, guard);
        // Nothing else needs the lock. What follows only counts bytes.
        drop(lock);
        self.add_bytes(bytes);
        self.shared.note_retired(guard, retired);
        true
    }

    fn put_absent(&self, _: &Guard, key: Key<'_>, value: &[u8], _: &Hint<'_>) {
        self.put_absent_parts(key, [value, &[]]);
    }

    fn flush_postponed(&self, guard: &Guard) {
        self.shared.flush_postponed(guard);
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        self.scan_blocks(guard, start, direction, batch);
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
        out.extend_from_slice(key.bytes);
    }
}

impl Container for Chains {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut freed = self.freed.lock();
        let (next, bytes) = self.heads.clear(*freed, limit.max(1), guard, f);
        self.shared.counters.add_bytes(-(bytes as isize));
        *freed = next.unwrap_or_default();
        next.is_none()
    }

    fn len(&self) -> usize {
        self.heads.count(&crate::pin())
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.shared.counters.bytes()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}
