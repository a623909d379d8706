//! Lock-free sorted lists, of which lock-free hash tables are made.
//!
//! ```text
//!   start --> [ a | * ]--> [ d | * ]--> [ k | *! ]--> [ p | * ]--> end
//!                               |                       ^
//!                               +-----------------------+
//! ```
//!
//! Here k is marked: it is logically removed. The next writer that passes unlinks it.
//!
//! Invariants:
//! * **LI1** Positions ascend. If the start node of a bucket and an entry have the same position,
//!   the start node comes first.
//! * **LI2** A node is in the list if and only if it is reachable, and its link isn't marked. A
//!   marked link never changes again.
//!
//! Insert:
//! 1. Find the link after which the node belongs. Unlink marked nodes on the way.
//! 2. Let the new node's link point to the next node.
//! 3. Replace the link that was found by one to the new node, by compare-and-exchange. This is the
//!    linearisation point. If the link has changed, start again.
//!
//! Remove:
//! 1. Mark the node's link by compare-and-exchange. This is the linearisation point.
//! 2. Search for the node's position, which unlinks the node.
//!
//! A search passes marked nodes. It writes nothing, and waits for no thread. Writers are lock-free:
//! a writer starts again only because another one has made progress.
//!
//! Source: M. Michael, "High performance dynamic lock-free hash tables and list-based sets", SPAA
//! 2002; T. Harris, 2001. Deviation: nodes are reclaimed by epochs and reference counts. The papers
//! use hazard pointers, or leave reclamation open.

use crate::position::spilled;
use crate::raw::slot::Slot;
use crate::word::Word;
use crate::Position;
use larder_index::sync::{planted, Fault};
use larder_index::Guard;
use std::cmp::Ordering;
use std::sync::Arc;

/// An entry, or the start node of a bucket.
pub(crate) struct ListNode<W: Word> {
    pub(crate) position: Position,
    /// Empty in a start node.
    pub(crate) word: Slot<W>,
    entry: bool,
    pub(crate) next: Slot<ListNode<W>>,
}

impl<W: Word> ListNode<W> {
    /// An entry with this word, or a start node if there is none.
    pub(crate) fn new(position: &[u8], word: Option<W>) -> Arc<Self> {
        Arc::new(ListNode {
            position: Position::from_slice(position),
            entry: word.is_some(),
            word: Slot::new(word.map(Arc::new)),
            next: Slot::new(None),
        })
    }

    /// Whether the node is an entry.
    pub(crate) fn is_entry(&self) -> bool {
        self.entry
    }

    /// Whether the node isn't removed.
    pub(crate) fn is_there(&self, guard: &Guard) -> bool {
        !self.next.load_marked(guard).1
    }

    /// The memory of the node and of its word in bytes. Each is an `Arc`, which has two counts.
    pub(crate) fn bytes(&self) -> isize {
        let word = if self.entry { size_of::<W>() + 16 } else { 0 };
        (size_of::<Self>() + 16 + spilled(&self.position) + word) as isize
    }

    /// Compares the node with a position and a kind. A start node precedes an entry at the same
    /// position.
    fn compare(&self, position: &[u8], entry: bool) -> Ordering {
        let order = self.position[..].cmp(position);
        order.then(self.entry.cmp(&entry))
    }
}

impl<W: Word> Drop for ListNode<W> {
    fn drop(&mut self) {
        // This node may own the last reference to the next one, and so on. Drop them in a loop: a
        // recursion would overflow the stack.
        let mut next = self.next.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.next.take();
        }
    }
}

/// Finds the entry at a position, in the list that begins at `start`. Wait-free.
pub(crate) fn search<'g, W: Word>(
    start: &'g Slot<ListNode<W>>,
    position: &[u8],
    guard: &'g Guard,
) -> Option<&'g ListNode<W>> {
    let mut next = start.load(guard);
    // The list is sorted, so the search ends at the first greater position. It never starts again:
    // the links of a removed node still lead to greater positions.
    while let Some(node) = next {
        match node.compare(position, true) {
            Ordering::Less => next = node.next.load(guard),
            Ordering::Equal if node.is_there(guard) => return Some(node),
            // This one is removed. A new node of the same position may follow.
            Ordering::Equal => next = node.next.load(guard),
            Ordering::Greater => return None,
        }
    }
    None
}

/// Finds the link after which a position belongs, and the node to which the link points. Unlinks
/// marked nodes on the way.
fn place<'g, W: Word>(
    start: &'g Slot<ListNode<W>>,
    position: &[u8],
    entry: bool,
    guard: &'g Guard,
) -> (&'g Slot<ListNode<W>>, Option<&'g ListNode<W>>) {
    'again: loop {
        let mut link = start;
        loop {
            let (node, marked) = link.load_marked(guard);
            if marked {
                // The node of this link was removed meanwhile. A store to its link would be lost,
                // so start again.
                continue 'again;
            }
            // All positions are less, so the place is at the end of the list.
            let Some(node) = node else {
                return (link, None);
            };
            // Read the node's link and its mark at once. If it is marked, it never changes again
            // (LI2). So the list continues at `next`, and the node can be skipped.
            let (next, marked) = node.next.share_marked(guard);
            if marked {
                // Unlink the node. This fails if another node was inserted before it, or if the
                // node of the link was removed. In the second case this part of the list is
                // unlinked itself, so start again.
                if !link.replace_if((Some(node), false), (next, false), guard) {
                    continue 'again;
                }
            } else if node.compare(position, entry) == Ordering::Less {
                link = &node.next;
            } else {
                return (link, Some(node));
            }
        }
    }
}

/// Inserts a node. If there is a node with the same position, returns that one instead.
pub(crate) fn insert<'g, W: Word>(
    start: &'g Slot<ListNode<W>>,
    node: &Arc<ListNode<W>>,
    guard: &'g Guard,
) -> Option<&'g ListNode<W>> {
    loop {
        // (1) Find the place.
        let (link, after) = place(start, &node.position, node.entry, guard);
        if let Some(after) = after {
            if after.compare(&node.position, node.entry).is_eq() {
                return Some(after);
            }
        }
        // (2) Get a counted reference to the next node. The link may have changed since (1). The
        // new node must point to the node that the exchange below expects, or nodes would be lost.
        let (next, marked) = link.share_marked(guard);
        let same = next.as_deref().map(std::ptr::from_ref) == after.map(std::ptr::from_ref);
        if marked || !same {
            continue;
        }
        node.next.store(next, guard);
        // (3) Publish the node.
        if planted(Fault::Overwrite) {
            link.store(Some(node.clone()), guard);
            return None;
        }
        if link.replace_if((after, false), (Some(node.clone()), false), guard) {
            return None;
        }
    }
}

/// Removes a node. Returns `false` if another thread has removed it before.
pub(crate) fn remove<W: Word>(
    start: &Slot<ListNode<W>>,
    node: &ListNode<W>,
    guard: &Guard,
) -> bool {
    // (1) Mark the node.
    loop {
        let (next, marked) = node.next.share_marked(guard);
        if marked {
            return false;
        }
        // If another thread inserts a node after this one, it changes the link, and the exchange
        // fails. A store would drop the new node.
        let current = next.clone();
        if node
            .next
            .replace_if((current.as_deref(), false), (next, true), guard)
        {
            break;
        }
    }
    // (2) A search for the node's position passes it, and unlinks it if no other thread has.
    place(start, &node.position, node.entry, guard);
    true
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::Object;
    use larder_index::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn node(n: u32) -> Arc<ListNode<Object>> {
        ListNode::new(&n.to_be_bytes(), Some(Object::new(&n.to_be_bytes())))
    }

    fn all(start: &Slot<ListNode<Object>>) -> Vec<u32> {
        let guard = pin();
        let nodes = std::iter::successors(start.load(&guard), |node| node.next.load(&guard));
        let there = nodes.filter(|node| node.is_there(&guard));
        there
            .map(|n| u32::from_be_bytes(n.position[..].try_into().unwrap()))
            .collect()
    }

    /// Threads insert and remove the same few nodes: each is inserted once more than removed, or as
    /// often; and the list is sorted all the while.
    #[test]
    fn threads_on_one_list() {
        let start = Slot::new(None);
        let balance: [AtomicUsize; 8] = Default::default();
        let rounds = if cfg!(miri) { 60 } else { 20_000 };
        std::thread::scope(|scope| {
            for t in 0..3u32 {
                let (start, balance) = (&start, &balance);
                scope.spawn(move || {
                    for i in 0..rounds {
                        let (n, guard) = ((i * 5 + t * 3) % 8, pin());
                        // Ordering, in all of this: Relaxed, counted and read after the threads.
                        if (i / 8 + t) % 2 == 0 {
                            if insert(start, &node(n), &guard).is_none() {
                                balance[n as usize].fetch_add(1, Relaxed);
                            }
                        } else if let Some(found) = search(start, &n.to_be_bytes(), &guard) {
                            if remove(start, found, &guard) {
                                balance[n as usize].fetch_sub(1, Relaxed);
                            }
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..rounds / 10 {
                    // A walk may meet one position twice, of a node that went and of one that came;
                    // never a smaller one.
                    assert!(all(&start).windows(2).all(|w| w[0] <= w[1]));
                }
            });
        });
        let left: Vec<u32> = (0..8)
            .filter(|n| balance[*n as usize].load(Relaxed) == 1)
            .collect();
        assert!(balance.iter().all(|b| b.load(Relaxed) <= 1));
        assert_eq!(all(&start), left);
    }

    /// What begins a bucket comes before an entry at the same position.
    #[test]
    fn beginnings_come_first() {
        let (start, guard) = (Slot::new(None), pin());
        let entry = node(7);
        assert!(insert(&start, &entry, &guard).is_none());
        let begin: Arc<ListNode<Object>> = ListNode::new(&entry.position, None);
        assert!(insert(&start, &begin, &guard).is_none());
        assert!(!start.load(&guard).unwrap().is_entry());
        assert!(search(&start, &entry.position, &guard).unwrap().is_entry());
        let again = ListNode::new(&entry.position, None);
        assert!(std::ptr::eq(
            insert(&start, &again, &guard).unwrap(),
            &*begin
        ));
    }

    /// A list is dropped without a step down the stack for each node.
    #[test]
    fn long_lists_are_dropped() {
        let start = Slot::new(None);
        let n = if cfg!(miri) { 100 } else { 200_000 };
        for i in (0..n).rev() {
            assert!(insert(&start, &node(i), &pin()).is_none());
        }
        drop(start);
    }
}
