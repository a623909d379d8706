//! The entries of some leaves, copied out: what leaves are made of when others are replaced.

use super::plain;
use super::shape::*;
use crate::hash::change::Body;
use crate::hash::leaf::Locked;
use crate::memory::outside::Handle;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// What an index by hash has to be told of its keys.
pub trait KeyRule: Send + Sync {
    /// The hash of a key, the same that `Key::hash` says: only its top 48 bits count. Leaves keep
    /// no hashes: they are made anew when a leaf is replaced, and for scans.
    fn hash(&self, key: &[u8]) -> u64;

    /// Whether a key tells its own end: then leaves don't note its length, which saves a byte or
    /// two a row.
    fn ends_itself(&self) -> bool {
        false
    }

    /// The length of the key that `bytes`, a key and a value behind it, begin with. Called only if
    /// keys end themselves, and only with what was stored; a key has at least one byte then.
    fn key_len(&self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

/// A shared rule.
pub type Rule = Arc<dyn KeyRule>;

impl<T: KeyRule + ?Sized> KeyRule for Arc<T> {
    fn hash(&self, key: &[u8]) -> u64 {
        (**self).hash(key)
    }
    fn ends_itself(&self) -> bool {
        (**self).ends_itself()
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        (**self).key_len(bytes)
    }
}

/// The rule, with what is asked of it all the time.
pub(crate) struct Keys<R> {
    rule: R,
    /// Bodies tell their keys' lengths.
    pub(crate) told: bool,
}

impl<R: KeyRule> Keys<R> {
    pub(crate) fn new(rule: R) -> Self {
        let told = !rule.ends_itself();
        Keys { rule, told }
    }

    /// The hash of a key, as far as it counts.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        counting(self.rule.hash(key))
    }

    /// Where in a body the key is.
    #[inline]
    pub(crate) fn key_in(&self, body: &[u8]) -> Range<usize> {
        if !self.told {
            return 0..self.rule.key_len(body).min(body.len());
        }
        let second = body.get(1).copied().unwrap_or(0);
        let (len, size) = told(u64::from(body[0]) | u64::from(second) << 8);
        size..(size + len).min(body.len())
    }
}

/// The longest body that lives in a leaf. Beyond, a memory of its own wastes less than the rest of
/// a bucket, and is no miss more: a large bucket's objects are not known before its lanes have
/// come.
pub(crate) const MOST_INSIDE: usize = 240;

/// An entry, copied out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) hash: u64,
    /// Where its body is in the gathered bytes; nowhere if it is outside and too large for any
    /// leaf.
    from: u32,
    len: u32,
    /// Where it is if it is outside.
    pub(crate) handle: Option<Handle>,
}

impl Item {
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
    pub(crate) items: Vec<Item>,
}

impl Gather {
    /// Adds all entries of a leaf.
    pub(crate) fn add_leaf<R: KeyRule>(&mut self, leaf: &Locked<'_>, keys: &Keys<R>) {
        let shape = leaf.leaf().shape();
        let base = self.bytes.len();
        self.bytes.extend_from_slice(leaf.bytes());
        self.items.reserve(leaf.leaf().count() + 1);
        let mut outside = SmallVec::<[Handle; 8]>::new();
        for bucket in 0..shape.buckets as usize {
            let at = base + bucket * shape.bucket();
            for (lane, from, end) in plain::lanes(&self.bytes, at, shape) {
                let body = &self.bytes[from..end];
                if lane & OUTSIDE != 0 {
                    outside.push(Handle::from_bits(plain::handle_bits(body)));
                    continue;
                }
                self.items.push(Item {
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

    fn add_outside<R: KeyRule>(&mut self, leaf: &Locked<'_>, handle: Handle, keys: &Keys<R>) {
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
        let len = body_size(key.len(), value.len(), keys.told);
        let from = self.bytes.len() as u32;
        if fits_inside(len) {
            if keys.told {
                let (bytes, n) = tell(key.len());
                self.bytes.extend_from_slice(&bytes[..n]);
            }
            self.bytes.extend_from_slice(key);
            self.bytes.extend_from_slice(value);
        }
        self.items.push(Item {
            hash,
            from,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            handle,
        });
    }

    /// The body of an item that fits inside a leaf.
    #[inline]
    pub(crate) fn body(&self, item: &Item) -> &[u8] {
        &self.bytes[item.from as usize..][..item.len()]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }
}

/// Whether a body of this length may live in some leaf. A body without a byte could not be told
/// from none.
#[inline]
pub(crate) fn fits_inside(body: usize) -> bool {
    (1..=MOST_INSIDE).contains(&body)
}

/// What is stored for an entry in a leaf of this class: inside if it fits.
#[inline]
pub(crate) fn lives_inside(body: usize, class: u8) -> bool {
    fits_inside(body) && body <= most_body(class)
}

/// The body of an entry to be stored inside.
#[inline]
pub(crate) fn inside<'a, R: KeyRule>(key: &'a [u8], value: &'a [u8], keys: &Keys<R>) -> Body<'a> {
    Body::Inside(key, value, keys.told)
}

thread_local! {
    static SPARE: Cell<Option<Box<Gather>>> = const { Cell::new(None) };
}

/// A buffer of more than this is not kept.
const KEEP: usize = 1 << 18;

/// Calls `f` with an empty buffer; its memory is kept for the thread's next call.
pub(crate) fn with_gather<T>(f: impl FnOnce(&mut Gather) -> T) -> T {
    let mut gather = SPARE.take().unwrap_or_default();
    gather.clear();
    let result = f(&mut gather);
    if gather.bytes.capacity() <= KEEP {
        SPARE.set(Some(gather));
    }
    result
}
