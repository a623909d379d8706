//! Copies of neighbouring entries. A scan returns them, and a merge or a change of the prefix
//! builds a new leaf from them.
//!
//! ```text
//!  bytes      position 0 | value 0 | position 1 | value 1 | …
//!  entries    from, middle, end of each
//!  handles    number, handle of each entry that has a handle
//! ```
//!
//! Invariant: an entry has a handle or a value, not both. The value of one with a handle is empty.

use crate::btree::record::{StoredValue, SLOT};
use crate::outside::Handle;
use crate::scratch::{with_spare, MAX_KEPT_CAPACITY};
use std::cell::Cell;

/// Entries in order, with their whole positions.
#[derive(Default, Debug)]
pub(crate) struct EntryCopies {
    pub(crate) bytes: Vec<u8>,
    /// Where the position of each begins, where its value begins, and where that ends, as in
    /// [`Batch::entries`](crate::Batch::entries).
    pub(crate) entries: Vec<(usize, usize, usize)>,
    handles: Vec<(usize, Handle)>,
}

impl EntryCopies {
    /// Removes all copies, but keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.truncate(0, 0);
    }

    /// Removes all entries but the first `entries`, and the bytes from `bytes` on.
    pub(crate) fn truncate(&mut self, entries: usize, bytes: usize) {
        self.entries.truncate(entries);
        self.bytes.truncate(bytes);
        let kept = self.handles.partition_point(|&(i, _)| i < entries);
        self.handles.truncate(kept);
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Appends an entry whose bytes have already been appended. Its position begins at `from`, and
    /// its value, which ends at the end of the bytes, at `middle`.
    #[inline]
    pub(crate) fn end_entry(&mut self, from: usize, middle: usize, handle: Option<Handle>) {
        if let Some(handle) = handle {
            self.handles.push((self.entries.len(), handle));
        }
        self.entries.push((from, middle, self.bytes.len()));
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, position: &[u8], stored: StoredValue<'_>) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(position);
        let middle = self.bytes.len();
        // An object outside the leaf is represented by its handle.
        match stored {
            StoredValue::Inline(value) => {
                self.bytes.extend_from_slice(value);
                self.end_entry(from, middle, None);
            }
            StoredValue::Outside(handle) => self.end_entry(from, middle, Some(handle)),
        }
    }

    /// The position of entry `i`.
    pub(crate) fn position(&self, i: usize) -> &[u8] {
        let (from, middle, _) = self.entries[i];
        &self.bytes[from..middle]
    }

    /// The value of entry `i`, which has no handle.
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        let (_, middle, end) = self.entries[i];
        &self.bytes[middle..end]
    }

    /// The contents of the record of entry `i`.
    pub(crate) fn stored(&self, i: usize) -> StoredValue<'_> {
        match self.handles.binary_search_by_key(&i, |&(i, _)| i) {
            Ok(at) => StoredValue::Outside(self.handles[at].1),
            Err(_) => StoredValue::Inline(self.value(i)),
        }
    }

    /// The size of entry `i`, slot and record, in a leaf with a prefix of this length.
    pub(crate) fn size(&self, i: usize, prefix: usize) -> usize {
        SLOT + self.stored(i).record(self.position(i).len() - prefix)
    }

    /// The total size of some entries in a leaf with a prefix of this length.
    pub(crate) fn content_size(&self, range: std::ops::Range<usize>, prefix: usize) -> usize {
        range.map(|i| self.size(i, prefix)).sum()
    }
}

thread_local! {
    static SPARE: Cell<Option<EntryCopies>> = const { Cell::new(None) };
}

/// Calls `f` with empty `EntryCopies`, whose memory is kept for the thread's next call.
pub(crate) fn with_copies<T>(f: impl FnOnce(&mut EntryCopies) -> T) -> T {
    // Don't keep the memory of unusually many copies.
    let small = |copies: &EntryCopies| {
        copies.bytes.capacity() <= MAX_KEPT_CAPACITY
            && copies.entries.capacity() * size_of::<(usize, usize, usize)>() <= MAX_KEPT_CAPACITY
    };
    with_spare(&SPARE, small, |copies| {
        copies.clear();
        f(copies)
    })
}
