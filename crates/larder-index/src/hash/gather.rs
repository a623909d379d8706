//! Gathering the entries of leaves that are to be replaced: the general way to build new leaves.
//!
//! ```text
//!  bytes   a copy of the leaf's buckets | bodies of outside objects that may be inside a leaf
//!  items   hash, place of the body, handle       hashes are not in the leaf: each is computed once
//! ```
//!
//! Invariant: an entry whose body wasn't copied has a handle.
//!
//! When not to use it: leaves of small rows are redistributed without this copy (`redistribute`).

use super::plain;
use super::shape::*;
use crate::hash::key_rule::{KeyRule, Keys};
use crate::hash::leaf::LockedHashLeaf;
use crate::outside::Handle;
use crate::scratch::with_spare;
use smallvec::SmallVec;
use std::cell::Cell;

/// A gathered entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredEntry {
    pub(crate) hash: u64,
    /// Where its body begins in the gathered bytes. Meaningless if the body is too large for any
    /// leaf.
    from: u32,
    len: u32,
    /// The handle of its outside object, if it has one.
    pub(crate) handle: Option<Handle>,
}

impl GatheredEntry {
    /// The length of the body. If the body wasn't copied, this is more than fits in any leaf.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

/// The gathered entries of some leaves.
#[derive(Default)]
pub(crate) struct Gather {
    bytes: Vec<u8>,
    pub(crate) items: Vec<GatheredEntry>,
}

impl Gather {
    /// Adds all entries of a leaf.
    pub(crate) fn add_leaf<R: KeyRule>(&mut self, leaf: &LockedHashLeaf<'_>, keys: &Keys<R>) {
        let shape = leaf.leaf().shape();
        // Copy all buckets as they are. Bodies inside need no further copy.
        let base = self.bytes.len();
        self.bytes.extend_from_slice(leaf.bytes());
        self.items.reserve(leaf.leaf().count() + 1);
        let mut outside = SmallVec::<[Handle; 8]>::new();
        for bucket in 0..shape.buckets as usize {
            let at = base + bucket * shape.bucket();
            for (slot, from, end) in plain::slot_entries(&self.bytes, at, shape) {
                let body = &self.bytes[from..end];
                // Collect handles. Their objects are appended below, when the iterator no longer
                // borrows the bytes.
                if slot & OUTSIDE != 0 {
                    outside.push(Handle::from_bits(plain::handle_bits(body)));
                    continue;
                }
                // Hashes aren't stored. Each is computed once here, and kept for all the steps that
                // follow.
                self.items.push(GatheredEntry {
                    hash: keys.hash(&body[keys.key_in(body)]),
                    from: from as u32,
                    len: (end - from) as u32,
                    handle: None,
                });
            }
        }
        for handle in outside {
            self.add_outside(leaf, handle, keys);
        }
    }

    fn add_outside<R: KeyRule>(
        &mut self,
        leaf: &LockedHashLeaf<'_>,
        handle: Handle,
        keys: &Keys<R>,
    ) {
        let object = leaf.object(handle);
        let (key, value) = (object.position(), object.value());
        // The object itself has the key and the value. The handle stays its owner.
        self.push(keys.hash(key), key, value, Some(handle), keys);
    }

    /// Adds an entry. `handle` is that of its outside object, if it has one.
    pub(crate) fn push<R: KeyRule>(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        handle: Option<Handle>,
        keys: &Keys<R>,
    ) {
        let len = body_size(key.len(), value.len(), keys.length_prefixed);
        // A body that is too long for any leaf isn't copied. Its handle represents it.
        let from = self.bytes.len() as u32;
        if fits_inside(len) {
            if keys.length_prefixed {
                let (bytes, n) = encode_key_len(key.len());
                self.bytes.extend_from_slice(&bytes[..n]);
            }
            self.bytes.extend_from_slice(key);
            self.bytes.extend_from_slice(value);
        }
        self.items.push(GatheredEntry {
            hash,
            from,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            handle,
        });
    }

    /// The body of an item, if it fits inside a leaf.
    #[inline]
    pub(crate) fn body(&self, item: &GatheredEntry) -> &[u8] {
        &self.bytes[item.from as usize..][..item.len()]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }
}

thread_local! {
    static SPARE: Cell<Option<Box<Gather>>> = const { Cell::new(None) };
}

/// A buffer with a greater capacity isn't kept.
const MAX_KEPT_CAPACITY: usize = 1 << 18;

/// Calls `f` with an empty buffer, whose memory is kept for the thread's next call.
pub(crate) fn with_gather<T>(f: impl FnOnce(&mut Gather) -> T) -> T {
    with_spare(
        &SPARE,
        // A large buffer isn't kept.
        |gather| gather.bytes.capacity() <= MAX_KEPT_CAPACITY,
        |gather| {
            gather.clear();
            f(gather)
        },
    )
}
