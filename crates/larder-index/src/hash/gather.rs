//! The entries of some leaves, copied out: what leaves are made of when others are replaced.
//!
//! ```text
//!  bytes   buckets of the leaf, as they are | bodies of outside objects that fit inside a leaf
//!  items   hash, where the body is, handle    the leaf has no hashes: each is made once, here
//! ```
//!
//! Invariant: an entry whose body was not copied has a handle.
//!
//! When not to use it: leaves of small rows need no copy (`redistribute`).

use super::plain;
use super::shape::*;
use crate::hash::key_rule::{KeyRule, Keys};
use crate::hash::leaf::LockedHashLeaf;
use crate::outside::Handle;
use crate::scratch::with_spare;
use smallvec::SmallVec;
use std::cell::Cell;

/// An entry, copied out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredEntry {
    pub(crate) hash: u64,
    /// Where its body is in the gathered bytes; nowhere if it is outside and too large for any
    /// leaf.
    from: u32,
    len: u32,
    /// Where it is if it is outside.
    pub(crate) handle: Option<Handle>,
}

impl GatheredEntry {
    /// Bytes of the body. More than any leaf has room for if the body was not copied.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

/// Entries of some leaves.
#[derive(Default)]
pub(crate) struct Gather {
    bytes: Vec<u8>,
    pub(crate) items: Vec<GatheredEntry>,
}

impl Gather {
    /// Adds all entries of a leaf.
    pub(crate) fn add_leaf<R: KeyRule>(&mut self, leaf: &LockedHashLeaf<'_>, keys: &Keys<R>) {
        let shape = leaf.leaf().shape();
        // All buckets are copied as they are: bodies inside need no other copy.
        let base = self.bytes.len();
        self.bytes.extend_from_slice(leaf.bytes());
        self.items.reserve(leaf.leaf().count() + 1);
        let mut outside = SmallVec::<[Handle; 8]>::new();
        for bucket in 0..shape.buckets as usize {
            let at = base + bucket * shape.bucket();
            for (slot, from, end) in plain::slot_entries(&self.bytes, at, shape) {
                let body = &self.bytes[from..end];
                // Objects are appended behind the buckets, once the iterator has let go of the
                // bytes.
                if slot & OUTSIDE != 0 {
                    outside.push(Handle::from_bits(plain::handle_bits(body)));
                    continue;
                }
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
        self.push(keys.hash(key), key, value, Some(handle), keys);
    }

    /// Adds an entry that is not in a leaf yet: the handle is its body's if that is outside.
    pub(crate) fn push<R: KeyRule>(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        handle: Option<Handle>,
        keys: &Keys<R>,
    ) {
        let len = body_size(key.len(), value.len(), keys.length_prefixed);
        // A body that no leaf can have inside is not copied: its handle stands for it.
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

    /// The body of an item that fits inside a leaf.
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

/// A buffer of more than this is not kept.
const KEEP: usize = 1 << 18;

/// Calls `f` with an empty buffer; its memory is kept for the thread's next call.
pub(crate) fn with_gather<T>(f: impl FnOnce(&mut Gather) -> T) -> T {
    with_spare(
        &SPARE,
        |gather| gather.bytes.capacity() <= KEEP,
        |gather| {
            gather.clear();
            f(gather)
        },
    )
}
