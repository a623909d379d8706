//! A slab: nodes in chunks, identified by 32-bit numbers.
//!
//! ```text
//!   chunks   [ 256 slots ] [ 256 slots ] [ 17 slots ]      node 515 = chunk 2, slot 3
//!   a slot   a node, or the number of the next free slot of its chunk
//! ```
//!
//! An insert never moves a node. A chunk without nodes frees its memory, so an empty slab has none.
//! A slab has at most four billion nodes.

use std::ops::{Index, IndexMut};

/// The number that means no node.
pub(crate) const NIL: u32 = u32::MAX;

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;

#[derive(Debug)]
enum SlabSlot<T> {
    Node(T),
    Free(u32),
}

#[derive(Debug)]
struct Chunk<T> {
    slots: Vec<SlabSlot<T>>,
    /// The first slot of the free list. [`NIL`] if all slots that were ever used have nodes.
    free: u32,
    live: u32,
}

impl<T> Chunk<T> {
    fn is_full(&self) -> bool {
        self.free == NIL && self.slots.len() >= SLOTS
    }
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    /// The chunks with room.
    open: Vec<u32>,
    live: usize,
    /// The number of slots that are allocated.
    capacity: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Slab {
            chunks: Vec::new(),
            open: Vec::new(),
            live: 0,
            capacity: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// The memory in bytes. O(1).
    pub(crate) fn memory(&self) -> usize {
        self.capacity * size_of::<SlabSlot<T>>()
            + self.chunks.capacity() * size_of::<Chunk<T>>()
            + self.open.capacity() * size_of::<u32>()
    }

    /// Stores a node. Returns its number.
    pub(crate) fn insert(&mut self, node: T) -> u32 {
        // Take the chunk that was opened last. Make one if all are full.
        let at = match self.open.last() {
            Some(&at) => at,
            None => self.add_chunk(),
        };
        let chunk = &mut self.chunks[at as usize];
        chunk.live += 1;
        self.live += 1;
        // Prefer slots of the free list, so that chunks stay full.
        let slot = if chunk.free != NIL {
            let slot = chunk.free;
            match std::mem::replace(&mut chunk.slots[slot as usize], SlabSlot::Node(node)) {
                SlabSlot::Free(next) => chunk.free = next,
                SlabSlot::Node(_) => unreachable!("the free list has free slots alone"),
            }
            slot
        } else {
            let before = chunk.slots.capacity();
            chunk.slots.push(SlabSlot::Node(node));
            self.capacity += chunk.slots.capacity() - before;
            chunk.slots.len() as u32 - 1
        };
        // The chunk is full now, and was the last one of `open`.
        if chunk.is_full() {
            self.open.pop();
        }
        at << BITS | slot
    }

    fn add_chunk(&mut self) -> u32 {
        let at = self.chunks.len() as u32;
        assert!(at < NIL >> BITS, "four thousand million nodes are the most");
        // Chunks after the first are likely to be filled, so allocate them at once.
        let first = if at == 0 { 0 } else { SLOTS };
        self.capacity += first;
        self.chunks.push(Chunk {
            slots: Vec::with_capacity(first),
            free: NIL,
            live: 0,
        });
        self.open.push(at);
        at
    }

    /// Removes a node.
    pub(crate) fn remove(&mut self, id: u32) -> T {
        let (at, slot) = (id >> BITS, id & (SLOTS as u32 - 1));
        let chunk = &mut self.chunks[at as usize];
        // A full chunk gets room again.
        if chunk.is_full() {
            self.open.push(at);
        }
        let free = SlabSlot::Free(chunk.free);
        let SlabSlot::Node(node) = std::mem::replace(&mut chunk.slots[slot as usize], free) else {
            unreachable!("links lead to nodes")
        };
        chunk.free = slot;
        chunk.live -= 1;
        self.live -= 1;
        // Free the memory of an empty chunk. It stays open, and its number is used again.
        if chunk.live == 0 {
            self.capacity -= chunk.slots.capacity();
            chunk.slots = Vec::new();
            chunk.free = NIL;
        }
        if self.live == 0 {
            *self = Slab::new();
        }
        node
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        match &self.chunks[(id >> BITS) as usize].slots[id as usize & (SLOTS - 1)] {
            SlabSlot::Node(node) => node,
            SlabSlot::Free(_) => unreachable!("links lead to nodes"),
        }
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        match &mut self.chunks[(id >> BITS) as usize].slots[id as usize & (SLOTS - 1)] {
            SlabSlot::Node(node) => node,
            SlabSlot::Free(_) => unreachable!("links lead to nodes"),
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_memory_comes_back() {
        let mut slab = Slab::new();
        let ids: Vec<u32> = (0..1000u64).map(|i| slab.insert(Box::new(i))).collect();
        assert_eq!((slab.len(), *slab[ids[700]]), (1000, 700));
        let full = slab.memory();
        for &id in &ids[..512] {
            slab.remove(id);
        }
        assert!(slab.memory() < full * 6 / 10);
        let again: Vec<u32> = (0..512u64).map(|i| slab.insert(Box::new(i))).collect();
        assert!(again.iter().all(|id| *id < 1024) && slab.memory() <= full);
        for id in again.into_iter().chain(ids[512..].iter().copied()) {
            slab.remove(id);
        }
        assert_eq!((slab.len(), slab.memory()), (0, 0));
    }
}
