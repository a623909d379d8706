//! An inner node of the B+-tree: separators that never change, and children that may be replaced in place.
//!
//! ```text
//!  child 0 | sep 0 | child 1 | sep 1 | … | child n        child i has the positions p with sep i-1 ≤ p < sep i
//! ```
//!
//! What all separators begin with is cut off; the next eight bytes of each lie side by side and are searched first.

use super::slot::{Address, Slot};

/// An inner node.
pub(crate) struct Inner {
    prefix: Box<[u8]>,
    heads: Box<[u64]>,
    /// Whole separators.
    seps: Box<[Box<[u8]>]>,
    pub(super) children: Box<[Slot<Inner>]>,
}

/// How many leading bytes two runs share.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn head(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let n = bytes.len().min(8);
    head[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(head)
}

impl Inner {
    /// A node of these children, with a separator between each two.
    pub(super) fn new(children: &[Address<Inner>], seps: Vec<Box<[u8]>>) -> Box<Inner> {
        debug_assert_eq!(children.len(), seps.len() + 1);
        let prefix: Box<[u8]> = match (seps.first(), seps.last()) {
            (Some(a), Some(b)) => a[..common(a, b)].into(),
            _ => Box::default(),
        };
        Box::new(Inner {
            heads: seps.iter().map(|sep| head(&sep[prefix.len()..])).collect(),
            children: children.iter().map(|&child| Slot::new(child)).collect(),
            seps: seps.into_boxed_slice(),
            prefix,
        })
    }

    /// The separators.
    pub(super) fn seps(&self) -> &[Box<[u8]>] {
        &self.seps
    }

    /// Where the children lead now.
    pub(super) fn addresses(&self) -> Vec<Address<Inner>> {
        self.children.iter().filter_map(Slot::address).collect()
    }

    /// The child that has the position; if `before`, the one that has the last position below it.
    #[inline]
    pub(super) fn child_of(&self, position: &[u8], before: bool) -> usize {
        let n = self.prefix.len();
        let own = match position.get(..n) {
            Some(lead) => match lead.cmp(&self.prefix) {
                std::cmp::Ordering::Less => return 0,
                std::cmp::Ordering::Greater => return self.seps.len(),
                std::cmp::Ordering::Equal => &position[n..],
            },
            // Shorter than the prefix: below all separators, or above all.
            None if *position < self.prefix[..] => return 0,
            None => return self.seps.len(),
        };
        let sought = head(own);
        let mut at = self.heads.partition_point(|&h| h < sought);
        while at < self.seps.len() && self.heads[at] == sought {
            let below = match self.seps[at][..].cmp(position) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => !before,
                std::cmp::Ordering::Greater => false,
            };
            if !below {
                break;
            }
            at += 1;
        }
        at
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let seps: usize = self.seps.iter().map(|s| s.len()).sum();
        size_of::<Self>()
            + self.prefix.len()
            + seps
            + size_of_val(&*self.seps)
            + size_of_val(&*self.heads)
            + size_of_val(&*self.children)
    }
}
