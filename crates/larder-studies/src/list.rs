//! Sorted lists that threads change without locks: what lock-free hash tables are made of.
//!
//! ```text
//!   start --> [ a | * ]--> [ d | * ]--> [ k | *! ]--> [ p | * ]--> end        k is marked: it is out of the list, and is unlinked
//!                               |                       ^                    by the next writer that comes along
//!                               +-----------------------+
//! ```
//!
//! Invariants:
//! 1. Positions ascend; where a mere mark of a bucket and an entry have the same, the bucket's
//!    comes first.
//! 2. A node is in the list exactly while a way leads to it and its link is not marked. A marked
//!    link never changes again.
//!
//! *To insert*: (1) find the link behind which the node belongs, unlinking marked nodes on the way;
//! (2) make the node's link what is there; (3) compare and swap the link: the linearisation point;
//! if it has changed, begin again.
//!
//! *To remove*: (1) mark the node's link by compare and swap: the linearisation point; (2) go along
//! the list once, which unlinks it.
//!
//! A search goes past marked nodes, writes nothing and waits for nobody. Writers are lock-free: one
//! begins again only because another was done.
//!
//! Source: M. Michael, "High performance dynamic lock-free hash tables and list-based sets", SPAA
//! 2002; T. Harris, 2001. Deviations: nodes are reclaimed by epochs and counts, where the papers
//! take hazard pointers or leave it open.

use crate::position::spilled;
use crate::raw::slot::Slot;
use crate::word::Word;
use crate::Position;
use larder_index::sync::{planted, Fault};
use larder_index::Guard;
use std::cmp::Ordering;
use std::sync::Arc;

/// A node, or the beginning of a bucket.
pub(crate) struct Node<W: Word> {
    pub(crate) position: Position,
    /// Empty in the beginning of a bucket.
    pub(crate) word: Slot<W>,
    entry: bool,
    pub(crate) next: Slot<Node<W>>,
}

impl<W: Word> Node<W> {
    /// An entry, or the beginning of a bucket for None.
    pub(crate) fn new(position: &[u8], word: Option<W>) -> Arc<Self> {
        Arc::new(Node {
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

    /// Whether nobody has removed the node.
    pub(crate) fn is_there(&self, guard: &Guard) -> bool {
        !self.next.load_marked(guard).1
    }

    /// Bytes of the node and of its word's place; each `Arc` has two counts.
    pub(crate) fn bytes(&self) -> isize {
        let word = if self.entry { size_of::<W>() + 16 } else { 0 };
        (size_of::<Self>() + 16 + spilled(&self.position) + word) as isize
    }

    fn compare(&self, position: &[u8], entry: bool) -> Ordering {
        let order = self.position[..].cmp(position);
        order.then(self.entry.cmp(&entry))
    }
}

impl<W: Word> Drop for Node<W> {
    fn drop(&mut self) {
        // A node may be the last that has the next one, and so on to the end: one after the other,
        // not one inside the other.
        let mut next = self.next.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.next.take();
        }
    }
}

/// The entry at the position, in the list that begins in the slot. Wait-free.
pub(crate) fn search<'g, W: Word>(
    start: &'g Slot<Node<W>>,
    position: &[u8],
    guard: &'g Guard,
) -> Option<&'g Node<W>> {
    let mut next = start.load(guard);
    while let Some(node) = next {
        match node.compare(position, true) {
            Ordering::Less => next = node.next.load(guard),
            Ordering::Equal if node.is_there(guard) => return Some(node),
            // Behind one that is on its way out, the new one may come.
            Ordering::Equal => next = node.next.load(guard),
            Ordering::Greater => return None,
        }
    }
    None
}

/// The link behind which the position belongs, and the node there. Unlinks marked nodes on the way.
fn place<'g, W: Word>(
    start: &'g Slot<Node<W>>,
    position: &[u8],
    entry: bool,
    guard: &'g Guard,
) -> (&'g Slot<Node<W>>, Option<&'g Node<W>>) {
    'again: loop {
        let mut link = start;
        loop {
            let (node, marked) = link.load_marked(guard);
            if marked {
                // The node that the link belongs to was removed.
                continue 'again;
            }
            // Up to here all positions are less: the place is found at the list's end.
            let Some(node) = node else {
                return (link, None);
            };
            // A marked link never changes again (invariant 2): what was read here is where the list
            // goes on.
            let (next, marked) = node.next.share_marked(guard);
            if marked {
                // Fails if something came in between, or the link's own node was removed: then the
                // way up to here is not to be relied on.
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

/// Puts the node in the list, unless there is one at its place; gives that, then.
pub(crate) fn insert<'g, W: Word>(
    start: &'g Slot<Node<W>>,
    node: &Arc<Node<W>>,
    guard: &'g Guard,
) -> Option<&'g Node<W>> {
    loop {
        // (1)
        let (link, after) = place(start, &node.position, node.entry, guard);
        if let Some(after) = after {
            if after.compare(&node.position, node.entry).is_eq() {
                return Some(after);
            }
        }
        // (2) What was found may have changed since: what the new node leads to has to be what the
        // exchange below takes the place of.
        let (next, marked) = link.share_marked(guard);
        let same = next.as_deref().map(std::ptr::from_ref) == after.map(std::ptr::from_ref);
        if marked || !same {
            continue;
        }
        node.next.store(next, guard);
        // (3)
        if planted(Fault::Overwrite) {
            link.store(Some(node.clone()), guard);
            return None;
        }
        if link.replace_if((after, false), (Some(node.clone()), false), guard) {
            return None;
        }
    }
}

/// Takes the node out of the list; answers whether nobody else did before.
pub(crate) fn remove<W: Word>(start: &Slot<Node<W>>, node: &Node<W>, guard: &Guard) -> bool {
    // (1)
    loop {
        let (next, marked) = node.next.share_marked(guard);
        if marked {
            return false;
        }
        // An insert behind this node changes the link: then the exchange fails, as a mark on the
        // old link would leave the new node out.
        let current = next.clone();
        if node
            .next
            .replace_if((current.as_deref(), false), (next, true), guard)
        {
            break;
        }
    }
    // (2) The search for the node's own position passes it, and unlinks it if nobody else has.
    place(start, &node.position, node.entry, guard);
    true
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::Object;
    use larder_index::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn node(n: u32) -> Arc<Node<Object>> {
        Node::new(&n.to_be_bytes(), Some(Object::new(&n.to_be_bytes())))
    }

    fn all(start: &Slot<Node<Object>>) -> Vec<u32> {
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
        let begin: Arc<Node<Object>> = Node::new(&entry.position, None);
        assert!(insert(&start, &begin, &guard).is_none());
        assert!(!start.load(&guard).unwrap().is_entry());
        assert!(search(&start, &entry.position, &guard).unwrap().is_entry());
        let again = Node::new(&entry.position, None);
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
