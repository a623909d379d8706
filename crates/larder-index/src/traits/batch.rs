//! The result of a scan: a batch of entries.
//!
//! ```text
//!  entries    copied            outside              copied, of one list
//!               ↓                  ↓                   ↓          ↓
//!  bytes      key | value          │               key | … value … value …
//!                                  ↓
//!  object                 position | value           not copied: the epoch keeps it
//! ```
//!
//! The objects of a bag's list share their key.
//!
//! An entry was copied to the bytes of the batch, or it is an outside object, which is immutable,
//! and is read where it lies. So a batch has the lifetime of the index and of the guard with which
//! it was filled: writes retire such objects through the epoch, and an index that is dropped frees
//! them. A caller who keeps a batch for longer lends it to each scan ([`Batch::lend`]), and may
//! have the objects copied ([`Batch::lend_owned`]).

use super::head::value_limit;
use crate::hash::homes::Homes;
use crate::outside::Outside;
use crate::scratch::{with_spare, MAX_KEPT_CAPACITY};
use crate::Direction;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// Where a batch was read, for [`Unique::is_unchanged`](super::Unique::is_unchanged).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of the index, which is unique in this process.
    pub(crate) index: u64,
    /// The version of the leaf.
    pub(crate) version: u64,
    /// Whether the scan began at the edge. If so, `is_unchanged` also says that nothing has come
    /// before the entries.
    pub(crate) from_edge: bool,
}

/// The number of entries by which objects are prefetched before they are copied.
const PREFETCH_DISTANCE: usize = 4;

/// The number of entries that a scan leaves out before it pauses, if it may pause. A scan that has
/// found nothing yet doesn't request more entries than this at once, either.
const MANY_LEFT_OUT: usize = 512;

/// An entry of a batch: where its key and its value are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry<'g> {
    /// The object, if the entry is one outside. Its key is the object's position.
    outside: Option<Outside<'g>>,
    /// Where a copied key begins and ends. The value is after it; the objects of a list share a
    /// key, so other bytes may be in between.
    key: usize,
    key_end: usize,
    /// Where the value begins and ends, in the bytes of the batch or of the object.
    value: usize,
    end: usize,
}

impl<'g> BatchEntry<'g> {
    /// An entry that was copied to the bytes of the batch: where its key begins, where its value
    /// begins, and where that ends.
    #[inline]
    pub(crate) fn copied(key: usize, value: usize, end: usize) -> Self {
        BatchEntry {
            outside: None,
            key,
            key_end: value,
            value,
            end,
        }
    }

    /// An outside object.
    #[inline]
    fn outside(object: Outside<'g>) -> Self {
        let (value, end) = (object.position().len(), object.bytes().len());
        BatchEntry {
            outside: Some(object),
            key: 0,
            key_end: 0,
            value,
            end,
        }
    }

    /// The key of this entry, with a part of the same bytes as its value.
    #[inline]
    pub(crate) fn with_value(self, value: Range<usize>) -> Self {
        BatchEntry {
            value: value.start,
            end: value.end,
            ..self
        }
    }

    /// The bytes in which the entry is.
    #[inline]
    pub(crate) fn base<'b>(&self, bytes: &'b [u8]) -> &'b [u8]
    where
        'g: 'b,
    {
        match self.outside {
            None => bytes,
            Some(object) => object.bytes(),
        }
    }

    /// The key and the value.
    #[inline(always)]
    pub(crate) fn parts<'b>(&self, bytes: &'b [u8]) -> (&'b [u8], &'b [u8])
    where
        'g: 'b,
    {
        match self.outside {
            None => (&bytes[self.key..self.key_end], &bytes[self.value..self.end]),
            Some(object) => (object.position(), &object.bytes()[self.value..self.end]),
        }
    }

    /// The key alone.
    #[inline]
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8]
    where
        'g: 'b,
    {
        match self.outside {
            None => &bytes[self.key..self.key_end],
            Some(object) => object.position(),
        }
    }

    /// The first eight bytes from the beginning of the key on, of which the first is the highest.
    #[inline]
    fn first_word(&self, bytes: &[u8]) -> u64 {
        let bytes = match self.outside {
            None => &bytes[self.key..],
            Some(object) => object.bytes(),
        };
        match bytes.first_chunk() {
            Some(word) => u64::from_be_bytes(*word),
            None => word_at_end(bytes),
        }
    }

    /// Where the value begins and ends in `base`.
    #[inline]
    pub(crate) fn value(&self) -> Range<usize> {
        self.value..self.end
    }
}

/// The maximum number of bytes after its value that belong to an entry (`Batch::around`): in a
/// bag, the number of the object.
const MAX_AFTER: usize = 10;

/// Neighbouring entries of one leaf, in scan order unless it is `unordered`. All were read at one
/// instant; in a bag, those of each key were, and in chains each entry by itself. (A caller may
/// also fill it key by key, with `push_read`.) `clear` keeps the memory. A batch has the lifetime
/// of the guard with which it was filled; see the module.
#[derive(Debug)]
pub struct Batch<'g> {
    /// The keys and values of the entries that were copied.
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<BatchEntry<'g>>,
    /// The position from which a scan continues after this batch, with `Start::At` (forward) or
    /// `Start::Past` (backward). Empty at the end of the scan.
    pub resume: Vec<u8>,
    /// Whether there are no more entries after this batch.
    pub done: bool,
    /// A hint of the caller: only this number of entries is needed (0: all). An index may return
    /// more, but must not return none because of it.
    pub want: usize,
    /// A hint of the caller: the entries may be in any order, since the caller uses all batches of
    /// the scan. An index may ignore it.
    pub any_order: bool,
    /// A hint of the caller: a scan or a step that has left out many entries may end before it has
    /// found one. The batch is then empty, not `done`, and `skipped` isn't 0. An index may ignore
    /// it.
    pub may_pause: bool,
    /// The number of entries that the scan has read and left out, and of empty leaves if it has
    /// paused among them.
    pub skipped: usize,
    /// A hint of the caller: it uses no entries beyond this bound, in the direction of the scan. A
    /// scan that omits them sets `done` when it reaches the bound. An index may return some
    /// nevertheless.
    pub until: Bound<Vec<u8>>,
    /// A hint of the caller: of several values under a key, only the first is needed. An index may
    /// ignore it.
    pub firsts: bool,
    /// A hint of the caller: of each value, only the first [`HEAD`](super::HEAD) bytes are needed.
    /// An index may ignore it.
    pub heads: bool,
    /// A hint of the caller: it searches the batch by hash ([`find`](Batch::find)). An index may
    /// ignore it.
    pub by_hash: bool,
    /// Whether the entries are in no particular order. If so, they are all entries between the
    /// start of the batch and `resume` (the end, if it is `done`).
    pub unordered: bool,
    /// Where the entries were read, if the index can tell whether they have changed since.
    pub seen: Option<Seen>,
    /// Whether entries of a bag were read from its value tree.
    pub(crate) from_tree: bool,
    /// Where the entries of a key are by its hash, if the index has noted it.
    pub(crate) homes: Homes,
    /// Whether an entry may be an outside object.
    has_outside: bool,
    /// A buffer for the index to sort entries in.
    pub(crate) order: Vec<u64>,
    /// The entries while they are replaced by others (`replace_entries`).
    replaced: Vec<BatchEntry<'g>>,
}

impl Default for Batch<'_> {
    fn default() -> Self {
        Batch {
            bytes: Vec::new(),
            entries: Vec::new(),
            resume: Vec::new(),
            done: false,
            want: 0,
            any_order: false,
            may_pause: false,
            skipped: 0,
            until: Bound::Unbounded,
            firsts: false,
            heads: false,
            by_hash: false,
            unordered: false,
            from_tree: false,
            seen: None,
            homes: Homes::default(),
            has_outside: false,
            order: Vec::new(),
            replaced: Vec::new(),
        }
    }
}

impl<'g> Batch<'g> {
    /// The batch for scans that need this number of entries ([`want`](Batch::want)).
    #[must_use]
    pub fn with_want(self, want: usize) -> Self {
        Batch { want, ..self }
    }
    /// The batch for scans that end at this key ([`until`](Batch::until)).
    #[must_use]
    pub fn with_until(self, until: Bound<Vec<u8>>) -> Self {
        Batch { until, ..self }
    }
    /// The batch for scans whose order doesn't matter ([`any_order`](Batch::any_order)).
    #[must_use]
    pub fn in_any_order(self) -> Self {
        Batch {
            any_order: true,
            ..self
        }
    }

    /// Empties the batch. Its memory and the hints of the caller are kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.resume.clear();
        self.done = false;
        self.skipped = 0;
        self.unordered = false;
        self.from_tree = false;
        self.seen = None;
        self.homes.clear();
        self.has_outside = false;
    }
    /// Empties the batch, and resets what the caller has requested. Its memory is kept.
    pub fn reset(&mut self) {
        self.clear();
        self.want = 0;
        self.any_order = false;
        self.may_pause = false;
        self.until = Bound::Unbounded;
        self.firsts = false;
        self.heads = false;
        self.by_hash = false;
    }

    /// Copies the outside objects to the bytes; of their values only the heads, if no more is
    /// needed. Afterwards the batch refers to nothing that the guard protects.
    #[inline]
    pub(super) fn own(&mut self) {
        // Entries that were replaced may be outside objects, too.
        self.replaced.clear();
        if self.has_outside {
            self.copy_outside();
        }
    }

    #[cold]
    fn copy_outside(&mut self) {
        self.has_outside = false;
        let limit = self.value_limit();
        for i in 0..self.entries.len() {
            self.prefetch_outside(i + PREFETCH_DISTANCE);
            let entry = &mut self.entries[i];
            let Some(object) = entry.outside else {
                continue;
            };
            // The entry's value may be a part of the object's. A few bytes after it belong to the
            // entry, too (`MAX_AFTER`).
            let (value, after) = object.bytes()[entry.value..].split_at(entry.value().len());
            let value = &value[..value.len().min(limit)];
            *entry = push_to(&mut self.bytes, object.position(), value);
            let after = &after[..after.len().min(MAX_AFTER)];
            self.bytes.extend_from_slice(after);
        }
    }

    /// Forgets all entries.
    pub(super) fn forget(&mut self) {
        self.clear();
        self.replaced.clear();
    }

    /// The maximum number of entries that the caller needs.
    pub(crate) fn limit(&self) -> usize {
        if self.want == 0 {
            usize::MAX
        } else {
            self.want
        }
    }

    /// Whether a scan that leaves out entries ends with this batch, given how many entries it has
    /// read so far. A batch isn't empty before the end, unless the caller may pause.
    pub fn ends_scan(&self, read: usize) -> bool {
        self.done || !self.is_empty() || self.pauses_after(read)
    }

    /// Whether a scan or a step that has found nothing among this number of entries pauses.
    pub fn pauses_after(&self, read: usize) -> bool {
        self.may_pause && read >= MANY_LEFT_OUT
    }

    /// Raises `want` for the next read of a scan that leaves out entries: the more was left out,
    /// the more is read at once. `want` is what the caller has requested.
    pub fn want_more(&mut self, want: usize) {
        self.want = (2 * self.want).min(MANY_LEFT_OUT.max(want));
    }

    /// The number of bytes of a value that the caller needs.
    #[inline]
    pub(crate) fn value_limit(&self) -> usize {
        value_limit(self.heads)
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The key of entry `i`.
    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        self.entries[i].key(&self.bytes)
    }
    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        self.entries[i].parts(&self.bytes).1
    }
    /// The first byte of each value that isn't empty.
    pub fn value_heads(&self) -> impl Iterator<Item = u8> + '_ {
        self.entries.iter().filter_map(|entry| {
            let value = entry.value();
            let first = entry.base(&self.bytes).get(value.start);
            first.copied().filter(|_| !value.is_empty())
        })
    }

    /// The key and the value of entry `i`.
    #[inline]
    pub fn entry(&self, i: usize) -> (&[u8], &[u8]) {
        self.entries[i].parts(&self.bytes)
    }

    /// The key of entry `i` with the bytes that lie after it, and its length. If the key is short,
    /// whole words of it can be loaded.
    #[inline]
    pub fn key_and_rest(&self, i: usize) -> (&[u8], usize) {
        let entry = &self.entries[i];
        match entry.outside {
            None => (&self.bytes[entry.key..], entry.key_end - entry.key),
            Some(object) => (object.bytes(), object.position().len()),
        }
    }

    /// The first eight bytes of the key of entry `i`, of which the first is the highest. If there
    /// are fewer, zeros follow. So keys that aren't prefixes of each other are in the order of
    /// their words, where these differ.
    #[inline]
    pub(crate) fn key_word(&self, i: usize) -> u64 {
        let entry = &self.entries[i];
        entry.first_word(&self.bytes) & key_mask(self.key_and_rest(i).1)
    }

    /// The first entry from `from` on that doesn't precede entry `i` of another batch, and whether
    /// it has the same key. The entries are in order in this direction.
    #[inline]
    pub fn seek(
        &self,
        from: usize,
        other: &Batch<'_>,
        i: usize,
        direction: Direction,
    ) -> (usize, bool) {
        /// The number of entries that are passed at once, while the last of them precedes the
        /// other one.
        const STRIDE: usize = 8;
        let (key, word) = (other.key(i), other.key_word(i));
        // If a key is shorter than a word, its word has further bytes after the key. `wanted` has
        // zeros there. So the word of an entry with the same key is not less than `wanted`, and the
        // further bytes needn't be cleared.
        let (flip, before) = match direction {
            Direction::Forward => (0, Ordering::Less),
            Direction::Backward => (u64::MAX, Ordering::Greater),
        };
        let wanted = (word ^ flip) & key_mask(key.len());
        let precedes = |entry: &BatchEntry<'_>| entry.first_word(&self.bytes) ^ flip < wanted;
        let mut at = from;
        while self.entries.get(at + STRIDE - 1).is_some_and(precedes) {
            at += STRIDE;
        }
        // The entries that precede it are the first ones. They are counted, without a branch that
        // the processor would mispredict.
        let end = self.len().min(at + STRIDE);
        at += self.entries[at..end].iter().filter(|e| precedes(e)).count();
        // Pass those with the same word that precede it.
        while at < self.len() && self.key_word(at) == word {
            let entry_key = self.key(at);
            // No key is a prefix of another, so short ones with the same word are equal.
            if entry_key.len().max(key.len()) <= size_of_val(&word) || entry_key == key {
                return (at, true);
            }
            if entry_key.cmp(key) != before {
                break;
            }
            at += 1;
        }
        (at, false)
    }

    /// The bytes of the batch before the key of a copied entry, and the bytes after the value of
    /// any entry. The bytes before the key belong to the entry only if they were pushed with it
    /// (`push_between`).
    pub fn around(&self, i: usize) -> (&[u8], &[u8]) {
        let entry = &self.entries[i];
        let (key, end) = (entry.key, entry.end);
        (&self.bytes[..key], &entry.base(&self.bytes)[end..])
    }

    /// Prefetches the beginning of entry `i`, if there is one and it wasn't copied.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        if self.has_outside {
            self.prefetch_outside(i);
        }
    }

    #[inline(never)]
    fn prefetch_outside(&self, i: usize) {
        if let Some(object) = self.entries.get(i).and_then(|entry| entry.outside) {
            object.prefetch();
        }
    }

    /// Appends an outside object.
    #[inline]
    pub(crate) fn push_outside(&mut self, object: Outside<'g>) {
        self.has_outside = true;
        self.entries.push(BatchEntry::outside(object));
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let entry = push_to(&mut self.bytes, key, value);
        self.entries.push(entry);
    }

    /// Replaces entry `i`.
    #[inline]
    pub fn replace(&mut self, i: usize, key: &[u8], value: &[u8]) {
        self.entries[i] = push_to(&mut self.bytes, key, value);
    }

    /// Appends an entry with bytes around it, which are no part of it ([`around`](Batch::around)).
    pub fn push_between(&mut self, before: &[u8], key: &[u8], value: &[u8], after: &[u8]) {
        self.bytes.extend_from_slice(before);
        self.push(key, value);
        self.bytes.extend_from_slice(after);
    }

    /// Appends an entry, given its key and its value as one run of bytes. The key has `key` bytes.
    #[inline]
    pub(crate) fn push_adjacent(&mut self, entry: &[u8], key: usize) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        let entry = BatchEntry::copied(k, k + key, self.bytes.len());
        self.entries.push(entry);
    }

    /// Appends an entry whose value `read` appends to the bytes. If `read` returns `false`, there
    /// is no entry.
    pub fn push_read(&mut self, key: &[u8], read: impl FnOnce(&mut Vec<u8>) -> bool) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let v = self.bytes.len();
        match read(&mut self.bytes) {
            true => {
                let entry = BatchEntry::copied(k, v, self.bytes.len());
                self.entries.push(entry);
            }
            false => self.bytes.truncate(k),
        }
    }

    /// Whether entries can be searched by hash: the caller has asked for it, and the index has
    /// noted where they are.
    #[inline]
    pub fn has_homes(&self) -> bool {
        !self.homes.is_empty()
    }

    /// Ends searches by hash, as entries are going to have other places.
    pub fn forget_homes(&mut self) {
        self.homes.clear();
    }

    /// The first entry with this key, which has this hash; its value may have been replaced. The
    /// batch has homes.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let len = self.len();
        if key.len() <= size_of::<u64>() {
            let (word, mask) = (short_word(key), key_mask(key.len()));
            let is = |i: usize| {
                let entry_word = self.entries[i].first_word(&self.bytes) & mask;
                entry_word == word && self.key_and_rest(i).1 == key.len()
            };
            return self.homes.find(hash, len, &self.bytes, is);
        }
        let is = |i: usize| self.has_key(i, key);
        self.homes.find(hash, len, &self.bytes, is)
    }

    /// Whether entry `i` has this key.
    #[inline]
    pub fn has_key(&self, i: usize, key: &[u8]) -> bool {
        let entry_key = self.key(i);
        // Most keys that are as long differ in their last byte.
        entry_key.len() == key.len() && entry_key.last() == key.last() && entry_key == key
    }

    /// Drops entry `i`; the last one takes its place.
    #[inline]
    pub fn swap_remove(&mut self, i: usize) {
        self.entries.swap_remove(i);
    }

    /// Drops the entries from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    /// Drops entry `i`. O(n).
    pub fn remove(&mut self, i: usize) {
        self.entries.remove(i);
    }

    /// Keeps the entries for which `keep` returns `true`, given number, key and value.
    pub fn retain(&mut self, mut keep: impl FnMut(usize, &[u8], &[u8]) -> bool) {
        let (mut i, bytes) = (0, &self.bytes);
        self.entries.retain(|entry| {
            let (key, value) = entry.parts(bytes);
            i += 1;
            keep(i - 1, key, value)
        });
    }

    /// Drops the last `len` bytes of the value of each entry.
    pub fn shorten_values(&mut self, len: usize) {
        debug_assert!(!self.heads, "the end of a value may not have been copied");
        for entry in &mut self.entries {
            entry.end = entry.value.max(entry.end - len);
        }
    }

    /// Takes all entries out of the batch, and calls `f`, which appends others. It may append those
    /// that were taken again ([`push_entries`](Batch::push_entries)). Their bytes stay.
    pub fn replace_entries<T>(&mut self, f: impl FnOnce(&mut Self, &BatchEntries<'g>) -> T) -> T {
        let mut old = BatchEntries(std::mem::take(&mut self.replaced));
        old.0.clear();
        std::mem::swap(&mut old.0, &mut self.entries);
        let result = f(self, &old);
        self.replaced = old.0;
        result
    }

    /// Appends some of the entries that `replace_entries` has taken.
    pub fn push_entries(&mut self, entries: &BatchEntries<'g>, range: Range<usize>) {
        self.entries.extend_from_slice(&entries.0[range]);
    }

    /// The number of bytes that were copied.
    pub fn copied_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The memory of the batch in bytes.
    pub fn capacity(&self) -> usize {
        let entries = self.entries.capacity() + self.replaced.capacity();
        let words = self.order.capacity();
        self.bytes.capacity()
            + self.resume.capacity()
            + entries * size_of::<BatchEntry<'_>>()
            + words * size_of::<u64>()
    }
}

/// Entries that were taken out of a batch.
#[derive(Debug)]
pub struct BatchEntries<'g>(pub(crate) Vec<BatchEntry<'g>>);

impl BatchEntries<'_> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The bytes of a key of at most eight bytes, of which the first is the highest. Zeros follow.
#[inline]
fn short_word(key: &[u8]) -> u64 {
    match (key.first_chunk(), key.last_chunk()) {
        // The two overlap where both have the same bytes.
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
            u64::from(first) << 32 | u64::from(last) << (64 - 8 * key.len())
        }
        _ => (0..)
            .zip(key)
            .fold(0, |word, (i, &byte)| word | u64::from(byte) << (56 - 8 * i)),
    }
}

/// The first eight bytes of what lies at the end of a batch. Zeros follow.
#[cold]
fn word_at_end(bytes: &[u8]) -> u64 {
    short_word(&bytes[..bytes.len().min(8)])
}

/// The bits of a word that belong to a key of this length.
#[inline]
fn key_mask(len: usize) -> u64 {
    !u64::MAX.unbounded_shr(8 * len.min(8) as u32)
}

/// Appends a key and a value to the bytes, and returns their entry.
fn push_to<'g>(bytes: &mut Vec<u8>, key: &[u8], value: &[u8]) -> BatchEntry<'g> {
    let k = bytes.len();
    bytes.extend_from_slice(key);
    let v = bytes.len();
    bytes.extend_from_slice(value);
    BatchEntry::copied(k, v, bytes.len())
}

thread_local! {
    static SPARE: Cell<Option<Batch<'static>>> = const { Cell::new(None) };
}

/// Calls `f` with an empty batch without hints, whose memory is kept for the thread's next call.
pub(crate) fn with_batch<'g, T>(f: impl FnOnce(&mut Batch<'g>) -> T) -> T {
    with_spare(
        &SPARE,
        |spare| spare.capacity() <= MAX_KEPT_CAPACITY,
        |spare: &mut Batch<'static>| {
            spare.reset();
            spare.lend(f)
        },
    )
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn words_of_keys_are_their_first_bytes() {
        let mut batch = Batch::default();
        for key in [&b"k"[..], b"a key of more bytes", b"eight by", b"", b"end"] {
            batch.push(key, b"v");
        }
        let words: Vec<[u8; 8]> = (0..5).map(|i| batch.key_word(i).to_be_bytes()).collect();
        let right = [
            b"k\0\0\0\0\0\0\0",
            b"a key of",
            b"eight by",
            b"\0\0\0\0\0\0\0\0",
        ];
        assert_eq!(words[..4], right.map(|word| *word));
        assert_eq!(&words[4], b"end\0\0\0\0\0");
    }

    #[test]
    fn heads_of_values_are_their_first_bytes() {
        let mut batch = Batch::default();
        for value in [&b"value"[..], b"", b"other", b""] {
            batch.push(b"key", value);
        }
        assert!(batch.value_heads().eq(*b"vo"));
    }

    /// No key is a prefix of another, and some are longer than a word.
    #[test]
    fn seek_finds_keys_and_their_places() {
        let key = |i: u32| match i {
            0..=8 => format!("{i}"),
            9..=60 => format!("9{i:04}"),
            _ => format!("9999999999{i}"),
        };
        for direction in [Direction::Forward, Direction::Backward] {
            for step in [1, 2, 3, 7, 20] {
                let (mut batch, mut other) = (Batch::default(), Batch::default());
                // What follows a key is greater than any byte of it, or less.
                let mut entries: Vec<u32> = (0..100).filter(|i| i % step == 0).collect();
                let mut all: Vec<u32> = (0..100).collect();
                if direction == Direction::Backward {
                    entries.reverse();
                    all.reverse();
                }
                let fill = |batch: &mut Batch<'_>, keys: &[u32]| {
                    keys.iter().for_each(|&i| {
                        let value = [if i % 2 == 0 { 0xFF } else { 0 }; 3];
                        batch.push(key(i).as_bytes(), &value);
                    });
                };
                fill(&mut batch, &entries);
                fill(&mut other, &all);
                let mut from = 0;
                for (i, &wanted) in all.iter().enumerate() {
                    let right = entries.iter().take_while(|&&entry| match direction {
                        Direction::Forward => key(entry) < key(wanted),
                        Direction::Backward => key(entry) > key(wanted),
                    });
                    let right = (right.count(), entries.contains(&wanted));
                    assert_eq!(batch.seek(from, &other, i, direction), right);
                    assert_eq!(batch.seek(0, &other, i, direction), right);
                    from = right.0;
                }
            }
        }
    }

    /// Objects may be as long as memory. Offsets of 32 bits once wrapped around after four
    /// gibibytes.
    #[test]
    #[cfg_attr(miri, ignore = "Miri keeps each byte")]
    fn entries_far_after_others_are_where_they_were_put() {
        const FAR: usize = 5 << 30;
        const ROOM: usize = 64;
        if Vec::<u8>::new().try_reserve_exact(FAR + ROOM).is_err() {
            // A system with fewer addresses has no such objects.
            return;
        }
        let mut batch = Batch {
            // Zeros that nobody reads take no memory.
            bytes: vec![0; FAR + ROOM],
            ..Batch::default()
        };
        batch.bytes.truncate(FAR);
        batch.push(b"key", b"value");
        batch.push(b"other", b"far");
        assert_eq!((batch.key(0), batch.value(0)), (&b"key"[..], &b"value"[..]));
        assert_eq!((batch.key(1), batch.value(1)), (&b"other"[..], &b"far"[..]));
    }
}
