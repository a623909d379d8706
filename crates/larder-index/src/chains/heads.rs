//! The heads of the chains: arrays that are indexed by the top bits of a hash. There are several
//! generations of them, each of eight times as many heads as the one before.
//!
//! ```text
//!  generation 0   array │ array │ …                 128 to 262,144 heads
//!  generation 1   array │ array │ array │ …         eight times as many
//!  …
//!  array          head │ head │ …                   128 heads, allocated when one is first needed
//! ```
//!
//! Invariants:
//! * **CH5** A node is in the chain of its hash in one generation, and stays there. New nodes go to
//!   the newest generation. So nothing is moved when there are more.
//! * **CH6** A node is replaced or removed under the lock of its hash. A hash has one lock, of
//!   which the chains of all generations in which it may be are part.

use super::arena::Arena;
use super::node::{Link, NodeRef, OwnNode};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{thread_number, Mutex, MutexGuard};
use crate::Key;
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use std::sync::OnceLock;

/// The number of heads in an array.
const ARRAY_LEN: usize = 128;
/// The base-2 logarithm of how many times more heads a generation has than the one before.
const FACTOR_BITS: u32 = 3;
/// The maximum number of generations. The last one has 32 million heads or more.
const GENERATIONS: usize = 7;
/// The base-2 logarithm of the number of locks. It is not greater than that of the least number of
/// heads, so that a chain is part of one lock.
const LOCK_BITS: u32 = 4;
/// How many heads before it is read the first node of a chain is prefetched.
const PREFETCH_DISTANCE: usize = 24;
/// The same for the second node, when the first one is in the cache.
const SECOND_PREFETCH_DISTANCE: usize = 8;
/// The number of arenas. Threads are spread over them.
const ARENAS: usize = 4;

type HeadArray = OnceLock<Box<[Link; ARRAY_LEN]>>;

/// The heads of one generation.
struct Generation {
    /// The base-2 logarithm of their number.
    bits: u32,
    arrays: Box<[HeadArray]>,
}

impl Generation {
    fn new(bits: u32) -> Self {
        let arrays = (1usize << bits).div_ceil(ARRAY_LEN);
        Generation {
            bits,
            arrays: (0..arrays).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The number of the head for a hash.
    fn number(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    /// A head, if its array was allocated.
    fn head(&self, number: usize) -> Option<&Link> {
        let array = self.arrays[number / ARRAY_LEN].get()?;
        Some(&array[number % ARRAY_LEN])
    }

    /// Prefetches the first node of a chain, if there is one.
    #[inline]
    fn prefetch_first(&self, number: usize) {
        let array = self.arrays.get(number / ARRAY_LEN).and_then(OnceLock::get);
        if let Some(array) = array {
            array[number % ARRAY_LEN].prefetch_first();
        }
    }

    /// Prefetches the second node of a chain, if there is one, whose first one was prefetched.
    #[inline]
    fn prefetch_second(&self, number: usize, guard: &Guard) {
        let array = self.arrays.get(number / ARRAY_LEN).and_then(OnceLock::get);
        if let Some(node) = array.and_then(|array| array[number % ARRAY_LEN].load(guard)) {
            node.next().prefetch_first();
        }
    }

    /// A head. Its array is allocated if necessary; `bytes` is called with the size.
    fn make_head(&self, number: usize, bytes: &dyn Fn(usize)) -> &Link {
        let mut made = 0;
        let array = self.arrays[number / ARRAY_LEN].get_or_init(|| {
            made = size_of::<[Link; ARRAY_LEN]>();
            Box::new([const { Link::new() }; ARRAY_LEN])
        });
        if made != 0 {
            bytes(made);
        }
        &array[number % ARRAY_LEN]
    }
}

/// The number of a head: that of its generation, and its own in it.
#[derive(Clone, Copy, Default)]
pub(super) struct HeadIndex(usize, usize);

/// The heads of all generations.
pub(super) struct Heads {
    generations: [OnceLock<Generation>; GENERATIONS],
    /// The number of the newest generation.
    newest: AtomicUsize,
    locks: [Mutex<()>; 1 << LOCK_BITS],
    /// The slabs of nodes. They are dropped after the chains (`drop`).
    arenas: [CachePadded<Arena>; ARENAS],
}

impl Heads {
    /// Heads, 2 to the power of `bits` in the first generation, and at least 16.
    pub(super) fn new(bits: u32) -> Self {
        let bits = bits.max(LOCK_BITS);
        let heads = Heads {
            generations: [const { OnceLock::new() }; GENERATIONS],
            newest: AtomicUsize::new(0),
            locks: Default::default(),
            arenas: Default::default(),
        };
        heads.generations[0].get_or_init(|| Generation::new(bits));
        heads
    }

    /// The generations, from the newest on.
    #[inline]
    fn generations(&self) -> impl Iterator<Item = &Generation> {
        // Ordering: SeqCst, pairs with `grow`: the generation is seen. Users rely on the order of
        // this load after their own exchanges (see `Chains`).
        let newest = self.newest.load(Ordering::SeqCst);
        let all = self.generations[..=newest].iter().rev();
        all.filter_map(OnceLock::get)
    }

    fn newest(&self) -> &Generation {
        self.generations()
            .next()
            .unwrap_or_else(|| unreachable!("there is a first generation"))
    }

    /// The number of heads of the newest generation.
    pub(super) fn len(&self) -> usize {
        1 << self.newest().bits
    }

    /// Adds a generation, unless another thread has done so since there were `len` heads, or there
    /// are as many as there may be. Returns the size of what was allocated.
    #[cold]
    pub(super) fn grow(&self, len: usize) -> usize {
        // Ordering: SeqCst, as in `generations`.
        let newest = self.newest.load(Ordering::SeqCst);
        let bits = len.ilog2();
        let next = newest + 1;
        if next == GENERATIONS || self.generations[newest].get().map(|g| g.bits) != Some(bits) {
            return 0;
        }
        // Several threads may get here. One of them makes the generation, and the others wait.
        let mut made = 0;
        self.generations[next].get_or_init(|| {
            let generation = Generation::new(bits + FACTOR_BITS);
            made = size_of_val(&*generation.arrays);
            generation
        });
        // Ordering: SeqCst, pairs with the load in `generations`. Whoever comes first publishes it.
        self.newest.fetch_max(next, Ordering::SeqCst);
        made
    }

    /// Takes the lock of a hash.
    pub(super) fn lock(&self, hash: u64) -> HashLock<'_> {
        HashLock {
            heads: self,
            _lock: self.locks[(hash >> (64 - LOCK_BITS)) as usize].lock(),
        }
    }

    /// Prefetches the heads of a hash.
    pub(super) fn prefetch(&self, hash: u64) {
        for generation in self.generations() {
            if let Some(head) = generation.head(generation.number(hash)) {
                head.prefetch();
            }
        }
    }

    /// Prefetches the first nodes of the chains of a hash.
    pub(super) fn prefetch_first(&self, hash: u64) {
        for generation in self.generations() {
            generation.prefetch_first(generation.number(hash));
        }
    }

    /// Prefetches the head for a new node with this hash.
    #[inline]
    pub(super) fn prefetch_place(&self, hash: u64) {
        let newest = self.newest();
        if let Some(head) = newest.head(newest.number(hash)) {
            head.prefetch();
        }
    }

    /// Whether there may be a node with this hash.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        self.generations().any(|generation| {
            let head = generation.head(generation.number(hash));
            head.is_some_and(|head| head.may_have(hash))
        })
    }

    /// The node of a key.
    #[inline]
    pub(super) fn find<'g>(&'g self, key: Key<'_>, guard: &'g Guard) -> Option<NodeRef<'g>> {
        self.find_link(key, guard).map(|(_, node)| node)
    }

    /// The node of a key, and the link to it.
    fn find_link<'g>(&'g self, key: Key<'_>, guard: &'g Guard) -> Option<(&'g Link, NodeRef<'g>)> {
        // A node stays in its generation, so all of them are searched, the newest one first (CH5).
        for generation in self.generations() {
            // The head says for most absent keys that its chain has no node of their class.
            let head = generation.head(generation.number(key.hash));
            let mut link = head.filter(|head| head.may_have(key.hash));
            while let Some(place) = link {
                let Some(node) = place.load(guard) else {
                    break;
                };
                // The links are in the nodes, so a node is replaced at the link that leads to it.
                if node.hash() == key.hash && node.key() == key.bytes {
                    return Some((place, node));
                }
                link = Some(node.next());
            }
        }
        None
    }

    /// A node in a slab, for a chain of these heads, with a value in two parts. `bytes` is called
    /// with the size of what is allocated.
    #[inline]
    pub(super) fn node(&self, key: Key<'_>, value: [&[u8]; 2], bytes: &dyn Fn(usize)) -> OwnNode {
        let arena = &self.arenas[thread_number() % ARENAS];
        // SAFETY: the arena is dropped after the chains.
        unsafe { OwnNode::in_arena(arena, key.hash, key.bytes, value, bytes) }
    }

    /// Inserts a node, whose key has none. `bytes` is called with the size of what is allocated
    /// besides.
    pub(super) fn push(&self, hash: u64, node: OwnNode, bytes: &dyn Fn(usize)) {
        let newest = self.newest();
        newest.make_head(newest.number(hash), bytes).push(node);
    }

    /// The number of blocks: ranges of hashes, of which each has eight heads of the newest
    /// generation or less.
    pub(super) fn block_bits(&self) -> u32 {
        self.newest().bits.saturating_sub(FACTOR_BITS)
    }

    /// Prefetches the first nodes of the chains of a block of the newest generation, if there is
    /// one.
    pub(super) fn prefetch_block(&self, block: u64, bits: u32) {
        let newest = self.newest();
        let Some(more) = newest.bits.checked_sub(bits).filter(|_| block >> bits == 0) else {
            return;
        };
        for number in (block << more) as usize..((block + 1) << more) as usize {
            if let Some(head) = newest.head(number) {
                head.prefetch_first();
            }
        }
    }

    /// Calls `f` with the nodes whose hashes begin with the `bits` bits of `block`.
    pub(super) fn each_in<'g>(
        &'g self,
        block: u64,
        bits: u32,
        guard: &'g Guard,
        f: &mut dyn FnMut(NodeRef<'g>),
    ) {
        for generation in self.generations() {
            // A generation with more heads than there are blocks has several for this block. One
            // with fewer has a head of which the block is a part.
            let more = generation.bits.checked_sub(bits);
            let heads = match more {
                Some(more) => (block << more) as usize..((block + 1) << more) as usize,
                None => {
                    let head = (block >> (bits - generation.bits)) as usize;
                    head..head + 1
                }
            };
            for number in heads {
                let mut link = generation.head(number);
                // Walk over the chain. The chain of a shared head has nodes of other blocks, too.
                while let Some(node) = link.and_then(|link| link.load(guard)) {
                    if more.is_some() || node.hash().checked_shr(64 - bits).unwrap_or(0) == block {
                        f(node);
                    }
                    link = Some(node.next());
                }
            }
        }
    }

    /// Calls `f` with the nodes of the chains for the hashes from `first` to `last`, among which
    /// there may be nodes with other hashes, until it returns `false`. Returns whether it has not.
    pub(super) fn each_between<'g>(
        &'g self,
        first: u64,
        last: u64,
        guard: &'g Guard,
        f: &mut dyn FnMut(NodeRef<'g>) -> bool,
    ) -> bool {
        for generation in self.generations() {
            // The first and the last chain. Between two chains that are walked, the first node of a
            // later one is prefetched, and then the second node of one that is nearer.
            let (from, to) = (generation.number(first), generation.number(last));
            // The caller probably goes on after the last one. So what is prefetched there is of
            // use, too.
            for number in from..from + PREFETCH_DISTANCE.min(to - from) {
                generation.prefetch_first(number);
            }
            for number in from..=to {
                generation.prefetch_first(number + PREFETCH_DISTANCE);
                generation.prefetch_second(number + SECOND_PREFETCH_DISTANCE, guard);
                let mut link = generation.head(number);
                while let Some(node) = link.and_then(|link| link.load(guard)) {
                    node.next().prefetch_first();
                    if !f(node) {
                        return false;
                    }
                    link = Some(node.next());
                }
            }
        }
        true
    }

    /// Removes all nodes of the heads from this one on, until there were about `limit` of them,
    /// and calls `f` with the value of each. Returns the next head, if there is one, and the
    /// memory of the nodes.
    pub(super) fn clear(
        &self,
        HeadIndex(first, mut number): HeadIndex,
        limit: usize,
        guard: &Guard,
        f: &mut dyn FnMut(&[u8]),
    ) -> (Option<HeadIndex>, usize) {
        let (mut work, mut freed) = (0, 0);
        for (place, generation) in self.generations.iter().enumerate().skip(first) {
            let Some(generation) = generation.get() else {
                break;
            };
            while number < 1 << generation.bits {
                if work >= limit {
                    return (Some(HeadIndex(place, number)), freed);
                }
                let Some(head) = generation.head(number) else {
                    // The whole array is empty.
                    number = (number / ARRAY_LEN + 1) * ARRAY_LEN;
                    continue;
                };
                let _lock = self.locks[number >> (generation.bits - LOCK_BITS)].lock();
                // SAFETY: the lock is that of all hashes of the chain, and `replace` is only called
                // by its holder (`HashLock`).
                let (nodes, bytes) = unsafe { head.clear(guard, f) };
                // An empty head costs something, too.
                (work, freed) = (work + nodes + usize::from(number % 8 == 0), freed + bytes);
                number += 1;
            }
            number = 0;
        }
        (None, freed)
    }

    /// The number of nodes. O(n).
    pub(super) fn count(&self, guard: &Guard) -> usize {
        let mut nodes = 0;
        self.each_in(0, 0, guard, &mut |_| nodes += 1);
        nodes
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        let generations = self.generations.iter_mut().filter_map(OnceLock::get_mut);
        let arrays = generations.flat_map(|generation| &mut *generation.arrays);
        for array in arrays.filter_map(OnceLock::get_mut) {
            array.iter_mut().for_each(Link::free);
        }
    }
}

/// The lock of a hash.
pub(super) struct HashLock<'h> {
    heads: &'h Heads,
    _lock: MutexGuard<'h, ()>,
}

impl HashLock<'_> {
    /// Replaces the node of a key whose hash has the lock, or removes it if there is no other one.
    /// Returns the memory of the old one.
    pub(super) fn replace(&self, key: Key<'_>, new: Option<OwnNode>, guard: &Guard) -> usize {
        let mut new = new;
        loop {
            let Some((link, old)) = self.heads.find_link(key, guard) else {
                return 0;
            };
            let bytes = old.memory();
            // SAFETY: the node was found from the head of its chain, and only holders of the lock
            // replace or remove nodes of the chain (CH6). So it is still there.
            match unsafe { link.replace(old, new, guard) } {
                Ok(()) => return bytes,
                // Another thread has inserted a node before it.
                Err(again) => new = again,
            }
        }
    }
}
