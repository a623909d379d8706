//! The result of a scan: a batch of entries.

use std::ops::Bound;

/// Where a batch was read, for [`Unique::is_unchanged`](super::Unique::is_unchanged).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of the index, which is unique in this process.
    pub(crate) index: u64,
    /// The version of the leaf.
    pub(crate) version: u64,
}

/// The number of bytes of a value that a scan copies if the caller needs the values' heads alone.
pub const HEAD: usize = 8;

/// A consistent copy of some neighbouring entries, in scan order, taken at one instant from one
/// leaf. It can be reused: `clear` keeps its memory. The key and the value of an entry are adjacent
/// in one buffer.
#[derive(Debug)]
pub struct Batch {
    /// The keys and values of all entries.
    pub bytes: Vec<u8>,
    /// For each entry: the start of the key, the start of the value, and the end of the value in
    /// `bytes`.
    pub entries: Vec<(usize, usize, usize)>,
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
    /// The caller uses no entries beyond this key, in the direction of the scan. A scan that omits
    /// them sets `done` when it reaches the key. An index may return some nevertheless.
    pub until: Bound<Vec<u8>>,
    /// A hint of the caller: of several values under a key, only the first is needed. An index may
    /// ignore it.
    pub firsts: bool,
    /// A hint of the caller: of each value, only the first [`HEAD`] bytes are needed. An index may
    /// ignore it.
    pub heads: bool,
    /// Whether the entries are in no particular order. If so, they are all entries between the
    /// start of the batch and `resume` (the end, if it is `done`).
    pub unordered: bool,
    /// Where the entries were read, if the index can tell whether they have changed since.
    pub seen: Option<Seen>,
    /// A buffer for the index to sort entries in. Callers don't use it.
    pub order: Vec<u64>,
    /// A buffer for an index of lists, which makes entries of it. Callers don't use it.
    pub raw: Vec<(usize, usize, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            bytes: Vec::new(),
            entries: Vec::new(),
            resume: Vec::new(),
            done: false,
            want: 0,
            any_order: false,
            until: Bound::Unbounded,
            firsts: false,
            heads: false,
            unordered: false,
            seen: None,
            order: Vec::new(),
            raw: Vec::new(),
        }
    }
}

impl Batch {
    /// Empties the batch. Its memory and the hints of the caller are kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.resume.clear();
        self.done = false;
        self.unordered = false;
        self.seen = None;
    }
    /// Empties the batch, and resets what the caller has requested. Its memory is kept.
    pub fn reset(&mut self) {
        self.clear();
        self.want = 0;
        self.any_order = false;
        self.until = Bound::Unbounded;
        self.firsts = false;
        self.heads = false;
    }
    /// The maximum number of entries that the caller needs.
    pub(crate) fn limit(&self) -> usize {
        if self.want == 0 {
            usize::MAX
        } else {
            self.want
        }
    }

    /// The number of bytes of a value that the caller needs.
    #[inline]
    pub(crate) fn value_limit(&self) -> usize {
        if self.heads {
            HEAD
        } else {
            usize::MAX
        }
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
        let (k, v, _) = self.entries[i];
        &self.bytes[k..v]
    }
    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        let (_, v, end) = self.entries[i];
        &self.bytes[v..end]
    }
    /// The key and the value of entry `i`.
    #[inline(always)]
    pub fn entry(&self, i: usize) -> (&[u8], &[u8]) {
        let (k, v, end) = self.entries[i];
        self.bytes[k..end].split_at(v - k)
    }
    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let v = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push((k, v, self.bytes.len()));
    }

    /// Appends an entry, given its key and its value as one run of bytes. The key has `key` bytes.
    #[inline]
    pub(crate) fn push_adjacent(&mut self, entry: &[u8], key: usize) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        self.entries.push((k, k + key, self.bytes.len()));
    }

    /// Appends an entry whose value `read` appends to the bytes. If `read` returns `false`, there
    /// is no entry.
    pub fn push_read(&mut self, key: &[u8], read: impl FnOnce(&mut Vec<u8>) -> bool) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let v = self.bytes.len();
        match read(&mut self.bytes) {
            true => self.entries.push((k, v, self.bytes.len())),
            false => self.bytes.truncate(k),
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Objects may be as long as memory. Offsets of 32 bits once wrapped around behind four
    /// gibibytes.
    #[test]
    #[cfg_attr(miri, ignore = "Miri keeps each byte")]
    fn entries_far_behind_others_are_where_they_were_put() {
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
