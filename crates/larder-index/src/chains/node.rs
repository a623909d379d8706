//! The nodes of chains: entries with the hash of their key, and links between them.
//!
//! ```text
//!  head ─→ node  next │ hash │ length of key │ length of value │ key │ value
//!           ↓
//!          node …
//!
//!  head    16 tags │ address of the first node
//! ```
//!
//! A node has the tag with the number of its hash's last four bits. If a tag of a head isn't set,
//! no node of its chain has it.
//!
//! Invariants:
//! * **CH7** A tag is set by the exchange that inserts the first node with it, and never cleared.
//!   Addresses have 48 bits; on processors of 32 bits a head has no tags.
//! * **CH8** The hash, the key and the value of a node never change.
//! * **CH9** Exactly one link points to a node, from when it is published until it is unlinked. The
//!   link of a node that was unlinked is never written again.
//! * **CH10** An unlinked node is freed when no guard is pinned that was pinned before. So what is
//!   loaded from a link may be used as long as the guard.

use super::arena::{Arena, NODE_ALIGN};
use crate::memory;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{planted, Fault};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A node. The bytes of its key and of its value follow.
#[repr(C)]
struct Node {
    next: Link,
    hash: u64,
    /// The length of the key, twice, plus 1 if the node is in a slab.
    key: usize,
    value: usize,
}

/// The head of a chain, or what links a node to the next one. The latter has no tags.
pub(super) struct Link(AtomicPtr<Node>);

/// The bytes of a key and a value that are prefetched with a node.
const SHORT: usize = 16;

/// The number of bits of an address.
const ADDRESS_BITS: u32 = 48;

/// The bits of all tags. There are none on processors of 32 bits.
const TAGS: usize = match usize::MAX.checked_shl(ADDRESS_BITS) {
    Some(tags) => tags,
    None => 0,
};

/// The tag of a node with this hash; 0 if there are none.
fn tag(hash: u64) -> usize {
    1usize
        .checked_shl(ADDRESS_BITS + (hash & 15) as u32)
        .unwrap_or(0)
}

/// The tags in what a link has.
fn tags(link: *mut Node) -> usize {
    link.addr() & TAGS
}

/// The address in a link, without the tags.
fn address(link: *mut Node) -> *mut Node {
    link.map_addr(|address| address & !TAGS)
}

/// A node that stays allocated during `'g`.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'g> {
    node: NonNull<Node>,
    alive: PhantomData<&'g Node>,
}

/// A node that no link points to.
pub(super) struct OwnNode(NonNull<Node>);

// SAFETY: no other thread can reach the node, and any thread may free its memory.
unsafe impl Send for OwnNode {}

/// The layout of a node.
fn layout(key: usize, value: usize) -> Layout {
    let bytes = size_of::<Node>() + key + value;
    Layout::from_size_align(bytes.next_multiple_of(NODE_ALIGN), NODE_ALIGN)
        .expect("what was in memory as slices has a size below the address space")
}

impl OwnNode {
    /// A node with this key, its hash, and this value.
    pub(super) fn new(hash: u64, key: &[u8], value: &[u8]) -> OwnNode {
        let memory = memory::allocate(layout(key.len(), value.len()));
        Self::write(memory, false, hash, key, [value, &[]])
    }

    /// The same, with a value in two parts, in a slab of an arena, if it isn't too large for one.
    /// `added` is called with the size of a slab that is added.
    ///
    /// # Safety
    /// The arena outlives the chain into which the node is inserted.
    #[inline]
    pub(super) unsafe fn in_arena(
        arena: &Arena,
        hash: u64,
        key: &[u8],
        value: [&[u8]; 2],
        added: &dyn Fn(usize),
    ) -> OwnNode {
        let layout = layout(key.len(), value[0].len() + value[1].len());
        let (memory, in_slab) = match arena.take(layout.size(), added) {
            Some(memory) => (memory, true),
            None => {
                added(layout.size());
                (memory::allocate(layout), false)
            }
        };
        Self::write(memory, in_slab, hash, key, value)
    }

    /// Writes a node to memory that is large enough, and belongs to the caller.
    #[inline]
    fn write(
        memory: NonNull<u8>,
        in_slab: bool,
        hash: u64,
        key: &[u8],
        [value, rest]: [&[u8]; 2],
    ) -> OwnNode {
        let node = memory.cast::<Node>();
        // SAFETY: this thread alone has the memory, which is large enough for the node, the key and
        // both parts of the value.
        unsafe {
            node.write(Node {
                next: Link::new(),
                hash,
                key: key.len() << 1 | usize::from(in_slab),
                value: value.len() + rest.len(),
            });
            let bytes = node.as_ptr().add(1).cast::<u8>();
            bytes.copy_from_nonoverlapping(key.as_ptr(), key.len());
            let after = bytes.add(key.len());
            after.copy_from_nonoverlapping(value.as_ptr(), value.len());
            let after = after.add(value.len());
            after.copy_from_nonoverlapping(rest.as_ptr(), rest.len());
        }
        OwnNode(node)
    }

    fn node(&self) -> NodeRef<'_> {
        NodeRef {
            node: self.0,
            alive: PhantomData,
        }
    }

    /// The memory of the node in bytes, if it is a block of its own; else 0.
    pub(super) fn memory(&self) -> usize {
        self.node().memory()
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        // Slabs are freed with their arena.
        if self.node().is_in_slab() {
            return;
        }
        let layout = self.node().layout();
        // SAFETY: `new` allocated the memory with this layout, and nobody else has the node.
        unsafe { memory::release(self.0.cast(), layout) };
    }
}

impl<'g> NodeRef<'g> {
    fn head(self) -> &'g Node {
        // SAFETY: the node stays allocated during `'g`. It is only changed by its atomic.
        unsafe { self.node.as_ref() }
    }

    fn bytes(self, from: usize, len: usize) -> &'g [u8] {
        // SAFETY: `key + value` bytes follow the head, which `OwnNode::new` has written. All
        // callers stay within them. They stay allocated during `'g`, and never change.
        unsafe { std::slice::from_raw_parts(self.node.as_ptr().add(1).cast::<u8>().add(from), len) }
    }

    pub(super) fn hash(self) -> u64 {
        self.head().hash
    }

    pub(super) fn key_len(self) -> usize {
        self.head().key >> 1
    }

    fn is_in_slab(self) -> bool {
        self.head().key & 1 != 0
    }

    pub(super) fn key(self) -> &'g [u8] {
        self.bytes(0, self.key_len())
    }

    pub(super) fn value(self) -> &'g [u8] {
        self.bytes(self.key_len(), self.head().value)
    }

    /// The key and the value as one run of bytes.
    pub(super) fn entry(self) -> &'g [u8] {
        self.bytes(0, self.key_len() + self.head().value)
    }

    /// The link to the next node.
    pub(super) fn next(self) -> &'g Link {
        &self.head().next
    }

    fn layout(self) -> Layout {
        layout(self.key_len(), self.head().value)
    }

    /// The memory of the node in bytes, if it is a block of its own; else 0.
    pub(super) fn memory(self) -> usize {
        match self.is_in_slab() {
            true => 0,
            false => self.layout().size(),
        }
    }
}

impl Link {
    /// An empty chain.
    pub(super) const fn new() -> Link {
        Link(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The node that the link points to.
    #[inline]
    pub(super) fn load<'g>(&'g self, _guard: &'g Guard) -> Option<NodeRef<'g>> {
        // Ordering: Acquire, pairs with the exchanges below: the bytes of the node are seen.
        let node = NonNull::new(address(self.0.load(Ordering::Acquire)))?;
        Some(NodeRef {
            node,
            alive: PhantomData,
        })
    }

    /// Whether the chain may have a node with this hash. The link is the head of the chain.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        // Ordering: SeqCst, as the loads of `Heads::generations`, on which users rely. It is a
        // plain load on x86-64.
        let head = self.0.load(Ordering::SeqCst);
        match tag(hash) {
            0 => !head.is_null(),
            tag => head.addr() & tag != 0,
        }
    }

    /// Prefetches the first node: its head, and the beginning of its key and its value.
    #[inline]
    pub(super) fn prefetch_first(&self) {
        // Ordering: Relaxed; a prefetch of any address is harmless.
        let node = address(self.0.load(Ordering::Relaxed));
        // Without a node, prefetch what is in the cache: the processor would look for the page of a
        // null pointer each time.
        let node = match node.is_null() {
            true => std::ptr::from_ref(self).cast_mut().cast(),
            false => node,
        };
        memory::prefetch(node.cast());
        memory::prefetch(node.wrapping_add(1).cast::<u8>().wrapping_add(SHORT));
    }

    /// Prefetches the link.
    #[inline]
    pub(super) fn prefetch(&self) {
        memory::prefetch(std::ptr::from_ref(self).cast());
    }

    /// Inserts a node at the beginning of the chain. The link is the head of the chain.
    #[inline]
    pub(super) fn push(&self, node: OwnNode) {
        let inserted = std::mem::ManuallyDrop::new(node);
        // Ordering: Relaxed; the exchange checks it.
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // Ordering: Relaxed; no other thread can reach the node yet.
            inserted
                .node()
                .next()
                .0
                .store(address(first), Ordering::Relaxed);
            let new = inserted.0.as_ptr();
            let new = new.map_addr(|address| address | tags(first) | tag(inserted.node().hash()));
            if planted(Fault::Overwrite) {
                return self.0.store(new, Ordering::SeqCst);
            }
            // Ordering: SeqCst. It publishes the node, for `load`. A locked exchange is a full
            // barrier on x86-64, on which users rely (see `Chains`). A failure reads a pointer that
            // the next exchange checks.
            let exchanged =
                self.0
                    .compare_exchange(first, new, Ordering::SeqCst, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Replaces the node that this link points to, or removes it if there is no other one. If the
    /// link points to another node by now, returns what was to be stored. A node that was replaced
    /// is freed when no reader can use it.
    ///
    /// # Safety
    /// `old` is in the chain of this link. No other thread calls this for a node of the same chain
    /// meanwhile.
    pub(super) unsafe fn replace(
        &self,
        old: NodeRef<'_>,
        new: Option<OwnNode>,
        guard: &Guard,
    ) -> Result<(), Option<OwnNode>> {
        // Ordering: Relaxed. Only `replace` writes the link of a published node, which the caller
        // excludes, or has done before under the same lock.
        let next = old.next().0.load(Ordering::Relaxed);
        let to = match &new {
            None => next,
            Some(new) => {
                // Ordering: Relaxed; no other thread can reach the node yet.
                new.node().next().0.store(next, Ordering::Relaxed);
                new.0.as_ptr()
            }
        };
        // If the link is the head of the chain, another thread may have inserted a node.
        // Ordering: Relaxed; the exchange checks it.
        let now = self.0.load(Ordering::Relaxed);
        let to = to.map_addr(|address| address | tags(now));
        // Ordering: SeqCst, as in `push`.
        if address(now) != old.node.as_ptr()
            || self
                .0
                .compare_exchange(now, to, Ordering::SeqCst, Ordering::Relaxed)
                .is_err()
        {
            return Err(new);
        }
        // The chain has it now.
        std::mem::forget(new);
        // SAFETY: the exchange has removed the only link to the node (CH9), and only the thread
        // whose exchange has removed it retires it.
        unsafe { retire(old, guard) };
        Ok(())
    }

    /// Removes all nodes of a chain, and calls `f` with the value of each. Returns their number and
    /// their memory. They are freed when no reader can use them. The link is the head of the chain.
    ///
    /// # Safety
    /// No other thread calls `replace` for a node of the chain meanwhile.
    pub(super) unsafe fn clear(&self, guard: &Guard, f: &mut dyn FnMut(&[u8])) -> (usize, usize) {
        // Ordering: AcqRel; the bytes of the nodes are seen.
        let first = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        let Some(first) = NonNull::new(address(first)) else {
            return (0, 0);
        };
        let (mut nodes, mut bytes) = (0, 0);
        let mut next = Some(NodeRef {
            node: first,
            alive: PhantomData,
        });
        while let Some(node) = next {
            f(node.value());
            (nodes, bytes) = (nodes + 1, bytes + node.memory());
            next = node.next().load(guard);
            // SAFETY: the exchange has removed the only link to the first node. The others can only
            // be reached through it, and this thread retires all of them, once.
            unsafe { retire(node, guard) };
        }
        (nodes, bytes)
    }

    /// Frees the chain.
    pub(super) fn free(&mut self) {
        let first = std::mem::replace(self.0.get_mut(), std::ptr::null_mut());
        let first = NonNull::new(address(first));
        // SAFETY: the link is borrowed exclusively, and it alone leads to the nodes.
        unsafe { free(first) };
    }
}

/// Frees a node when no reader can use it any more.
///
/// # Safety
/// No reader that pins from now on finds the node, and it is retired once.
unsafe fn retire(node: NodeRef<'_>, guard: &Guard) {
    if !node.is_in_slab() {
        let unlinked = OwnNode(node.node);
        // SAFETY: no reader that pins from now on finds it; any thread may free it; and it is freed
        // once.
        unsafe { guard.defer_unchecked(move || drop(unlinked)) };
    }
}

/// Frees the nodes from this one on.
///
/// # Safety
/// No other thread can reach them.
unsafe fn free(first: Option<NonNull<Node>>) {
    let mut next = first;
    while let Some(node) = next {
        let freed = OwnNode(node);
        // Ordering: Relaxed; no other thread can reach the node.
        next = NonNull::new(freed.node().next().0.load(Ordering::Relaxed));
    }
}
