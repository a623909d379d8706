//! An inner node of the B+-tree: separators that never change, and children that may be replaced in
//! place.
//!
//! ```text
//!  child 0 | sep 0 | child 1 | sep 1 | … | child n
//!
//!  child i          has the positions p with sep i-1 ≤ p < sep i
//!
//!  lead, prefix_len the common prefix of all separators
//!  heads            the four bytes of each separator after that: searched without a branch
//!  children
//!  whole separators (elsewhere): read where heads are equal, and by changes of structure
//! ```

use super::FANOUT;
use crate::btree::counts::ChildCounts;
use crate::btree::prefix::common;
use crate::btree::search_key::{eight, SearchKey};
use crate::btree::slot::{ChildAddress, ChildSlot};
use crate::memory::prefetch;
use crate::shared::Shared;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::OnceLock;

/// Byte strings in one buffer, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Separators {
    bytes: Vec<u8>,
    /// Where each of them ends in `bytes`. Some dozens of separators with a long common beginning
    /// may have more than 4 GiB together.
    ends: Vec<usize>,
}

impl Separators {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, i: usize) -> &[u8] {
        let from = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from..self.ends[i]]
    }

    pub(super) fn push(&mut self, separator: &[u8]) {
        self.bytes.extend_from_slice(separator);
        self.ends.push(self.bytes.len());
    }

    /// Appends separators `range` of `other`.
    pub(super) fn extend(&mut self, other: &Separators, range: Range<usize>) {
        range.for_each(|i| self.push(other.get(i)));
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// An inner node.
#[repr(C, align(64))]
pub(crate) struct InnerNode {
    /// The first eight bytes of the separators' common prefix.
    lead: u64,
    /// The length of that prefix.
    prefix_len: u32,
    /// The number of separators.
    count: u32,
    separators: Separators,
    /// The head of each separator; `i32::MAX` in unused slots.
    heads: [i32; FANOUT],
    /// Unset in unused slots.
    pub(super) children: [ChildSlot<InnerNode>; FANOUT],
    /// The entry counts of the children; made by the first rank query.
    counts: OnceLock<Box<ChildCounts>>,
}

/// A child, and its count if it is known.
#[derive(Clone, Copy)]
pub(super) struct Child {
    pub(super) address: ChildAddress<InnerNode>,
    count: Option<u64>,
}

impl Child {
    /// A child whose count isn't known.
    pub(super) fn new(address: ChildAddress<InnerNode>) -> Child {
        Child {
            address,
            count: None,
        }
    }
}

/// The four high bytes, mapped to an `i32` of the same order.
#[inline]
fn head(eight: u64) -> i32 {
    ((eight >> 32) as u32 ^ 1 << 31) as i32
}

impl InnerNode {
    /// A node of these children, with a separator between each two; with counts of them, too, if
    /// the tree has counts.
    pub(super) fn new(
        children: &[Child],
        mut separators: Separators,
        has_counts: bool,
    ) -> Box<InnerNode> {
        debug_assert_eq!(children.len(), separators.len() + 1);
        // Separators ascend: what the first and the last share, all do. A search is also right by a
        // part of that.
        let n = separators.len();
        let prefix_len = match n {
            0 => 0,
            _ => common(separators.get(0), separators.get(n - 1)).min(u32::MAX as usize),
        };
        // The separators never change, so they keep no spare capacity.
        separators.bytes.shrink_to_fit();
        separators.ends.shrink_to_fit();
        let lead = match n {
            0 => 0,
            _ => eight(&separators.get(0)[..prefix_len], 0),
        };
        // Heads that aren't used are greater than all others. So the search without branches needs
        // no length.
        Box::new(InnerNode {
            lead,
            prefix_len: prefix_len as u32,
            count: n as u32,
            heads: std::array::from_fn(|i| match i {
                i if i < n => head(eight(separators.get(i), prefix_len)),
                _ => i32::MAX,
            }),
            children: std::array::from_fn(|i| match children.get(i) {
                Some(child) => ChildSlot::new(child.address),
                None => ChildSlot::unset(),
            }),
            counts: match has_counts {
                true => ChildCounts::new(|i| children.get(i)?.count).into(),
                false => OnceLock::new(),
            },
            separators,
        })
    }

    /// Prefetches what a search reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        let base: *const u8 = std::ptr::from_ref(self).cast();
        (0..6).for_each(|line| prefetch(base.wrapping_add(line * 64)));
    }

    /// The separators.
    pub(super) fn separators(&self) -> &Separators {
        &self.separators
    }

    /// The separator before a child, if there is one.
    #[inline]
    pub(super) fn low(&self, child: usize) -> Option<&[u8]> {
        Some(self.separators.get(child.checked_sub(1)?))
    }

    /// The separator before which the positions of a child end, if there is one.
    pub(super) fn high(&self, child: usize) -> Option<&[u8]> {
        (child < self.separators.len()).then(|| self.separators.get(child))
    }

    /// The number of children.
    pub(super) fn len(&self) -> usize {
        self.count as usize + 1
    }

    /// The counts of the children, if there are any.
    #[inline]
    pub(super) fn counts(&self) -> Option<&ChildCounts> {
        self.counts.get().map(|counts| &**counts)
    }

    /// The counts of the children, which are all stale if there were none. The caller holds
    /// `changing`.
    pub(super) fn make_counts(&self, shared: &Shared) -> &ChildCounts {
        self.counts.get_or_init(|| {
            shared.counters.add_bytes(size_of::<ChildCounts>() as isize);
            ChildCounts::new(|_| None)
        })
    }

    /// The children now, with their counts as far as they are known.
    pub(super) fn known_children(&self) -> impl Iterator<Item = Child> + '_ {
        let counts = self.counts();
        self.addresses()
            .into_iter()
            .enumerate()
            .map(move |(i, address)| Child {
                address,
                count: counts.and_then(|counts| counts.known(i)),
            })
    }

    /// Where the children lead now.
    pub(super) fn addresses(&self) -> Vec<ChildAddress<InnerNode>> {
        self.children
            .iter()
            .filter_map(ChildSlot::address)
            .collect()
    }

    /// The child that has the position.
    #[inline]
    pub(super) fn child_for(&self, position: SearchKey<'_>) -> usize {
        self.child(position, false)
    }

    /// The child that has the last position below this one.
    #[inline]
    pub(super) fn child_before(&self, position: SearchKey<'_>) -> usize {
        self.child(position, true)
    }

    #[inline(always)]
    fn child(&self, position: SearchKey<'_>, before: bool) -> usize {
        let (n, count) = (self.prefix_len as usize, self.count as usize);
        // The common prefix of all separators is compared once. A position that begins otherwise
        // belongs to the first child or to the last.
        if n > 0 {
            match self.compare_lead(position, n) {
                Ordering::Less => return 0,
                Ordering::Greater => return count,
                Ordering::Equal => {}
            }
        }
        // Then the next four bytes are compared with all heads at once.
        let key = head(position.from(n, 4));
        let at = self.below(key);
        // An equal head: the whole separators decide.
        if at < count && self.heads[at] == key {
            return self.among_equals(position.bytes(), before, at);
        }
        at
    }

    /// How many heads are below this one: in three steps, of three comparisons each that don't wait
    /// for each other.
    #[inline]
    fn below(&self, key: i32) -> usize {
        let below = |i: usize| usize::from(self.heads[i % FANOUT] < key);
        // The last one is never used: a node has more children than separators.
        let sixteens = 16 * (below(15) + below(31) + below(47));
        let at = |i: usize| below(sixteens + i);
        let fours = sixteens + 4 * (at(3) + at(7) + at(11));
        let at = |i: usize| below(fours + i);
        fours + at(0) + at(1) + at(2)
    }

    /// How the first bytes of a position compare to what all separators begin with, which are `n`
    /// bytes.
    #[inline]
    fn compare_lead(&self, position: SearchKey<'_>, n: usize) -> Ordering {
        let (bytes, word) = (position.bytes(), position.first());
        if n > 8 {
            let lead = &self.separators.get(0)[..n];
            return bytes[..bytes.len().min(n)].cmp(lead);
        }
        let unused = 64 - 8 * n as u32;
        let word = word >> unused << unused;
        // Shorter and equal up to there: below all of them.
        word.cmp(&self.lead).then(bytes.len().min(n).cmp(&n))
    }

    /// The search among separators with equal heads, of which `at` is the first.
    #[inline(never)]
    fn among_equals(&self, position: &[u8], before: bool, at: usize) -> usize {
        let count = self.count as usize;
        let same = self.heads[at];
        // Halving: equal heads are few, and each step compares a whole separator.
        let (mut low, mut high) = (at, count);
        while low < high {
            let middle = (low + high) / 2;
            // Separators with a greater head are above the position. So is one that is equal to it,
            // if the child before the position is sought.
            let below = self.heads[middle] == same
                && match self.separators.get(middle).cmp(position) {
                    Ordering::Less => true,
                    Ordering::Equal => !before,
                    Ordering::Greater => false,
                };
            if below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let counts = self.counts().map_or(0, |_| size_of::<ChildCounts>());
        size_of::<Self>() + self.separators.memory() + counts
    }
}
