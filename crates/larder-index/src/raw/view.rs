//! A look at a leaf: by a reader, who checks afterwards whether it was true, or by the lock's holder.

use super::leaf::{head_of, length, Leaf, HANDLE_MARK, PLACE_BITS};
use super::outside::{Handle, Outside};
use super::words::{self, Torn};
use crate::run::Run;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

const HEAD_MASK: u64 = !((1 << PLACE_BITS) - 1);

/// A look at a leaf's content.
#[derive(Clone, Copy)]
pub(crate) struct View<'g> {
    leaf: Leaf<'g>,
    words: &'g [AtomicU64],
    count: usize,
    /// What a reader has to check; the lock's holder has nothing to.
    version: Option<u64>,
}

/// A record, taken apart.
#[derive(Clone, Copy)]
enum Record {
    Inline {
        /// Bytes of the position after the leaf's prefix.
        suffix: usize,
        /// Where those after the slot's five begin.
        rest_at: usize,
        value_at: usize,
        value: usize,
    },
    Outside(Handle),
}

impl<'g> View<'g> {
    #[inline]
    pub(super) fn new(leaf: Leaf<'g>, version: Option<u64>) -> Self {
        // Ordering: Relaxed, see the head of `raw`.
        let count = leaf.head().count.load(Relaxed) as usize;
        View {
            leaf,
            words: leaf.words(),
            count,
            version,
        }
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether all that was read so far is true.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.version.is_none_or(|v| self.leaf.unchanged(v))
    }

    fn slot(&self, i: usize) -> Result<u64, Torn> {
        words::word(self.words, i)
    }

    fn record(&self, slot: u64) -> Result<Record, Torn> {
        let at = (slot & !HEAD_MASK) as usize;
        let bits = words::load(self.words, at)?;
        if bits as u8 == HANDLE_MARK {
            let bits = words::load(self.words, at + 1)?;
            return Ok(Record::Outside(Handle::from_bits(bits)));
        }
        let (suffix, a) = length(bits);
        let (value, b) = length(bits >> (8 * a));
        let rest_at = at + a + b;
        Ok(Record::Inline {
            suffix,
            rest_at,
            value_at: rest_at + suffix.saturating_sub(5),
            value,
        })
    }

    /// The outside object of a handle that was read from this leaf.
    fn object(&self, handle: Handle) -> Result<Outside<'g>, Torn> {
        if !self.holds() {
            return Err(Torn);
        }
        // SAFETY: 1. the check says that the handle was in the leaf, while the guard that `'g` stands for was held; 2. it is held on for `'g`.
        Ok(unsafe { handle.object() })
    }

    /// Where the first position is that is not below prefix + `suffix`, and whether it is that one.
    #[inline]
    pub(crate) fn search(&self, suffix: &[u8]) -> Result<(usize, bool), Torn> {
        let head = head_of(suffix);
        let (mut low, mut high) = self.guess(head)?;
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slot(middle)?;
            let order = match (slot & HEAD_MASK).cmp(&head) {
                Ordering::Equal => self.compare(slot, suffix)?,
                unequal => unequal,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok((middle, true)),
            }
        }
        Ok((low, false))
    }

    /// Bounds for the search. In a trie of hashes heads are spread evenly: the place can be guessed, and is mostly less than a cache line away.
    #[inline]
    fn guess(&self, head: u64) -> Result<(usize, usize), Torn> {
        /// How far to walk before the whole leaf is searched after all.
        const WALK: usize = 32;
        let (n, depth) = (self.count, self.leaf.depth());
        if depth == 0 || n == 0 {
            return Ok((0, n));
        }
        let at = |i: usize| self.slot(i).map(|slot| slot & HEAD_MASK);
        let spread = head << (depth % 8);
        let mut i = (((u128::from(spread) * n as u128) >> 64) as usize).min(n - 1);
        let mut left = WALK;
        // Down while the one below is not below `head`, else up to the first that is not.
        while i > 0 && left > 0 && at(i - 1)? >= head {
            i -= 1;
            left -= 1;
        }
        while i < n && left > 0 && at(i)? < head {
            i += 1;
            left -= 1;
        }
        if left == 0 {
            return Ok((0, n));
        }
        // Now `i` is the first that is not below.
        match i {
            i if i == n || at(i)? > head => Ok((i, i)),
            i if i + 1 < n && at(i + 1)? == head => Ok((i, n)),
            i => Ok((i, i + 1)),
        }
    }

    /// How the entry compares to prefix + `suffix`, when their heads are equal.
    fn compare(&self, slot: u64, suffix: &[u8]) -> Result<Ordering, Torn> {
        match self.record(slot)? {
            Record::Inline {
                suffix: len,
                rest_at,
                ..
            } => {
                if len > 5 && suffix.len() > 5 {
                    words::compare(self.words, rest_at, len - 5, &suffix[5..])
                } else {
                    // Equal heads, padded with zeros: the shorter is a prefix of the other.
                    Ok(len.cmp(&suffix.len()))
                }
            }
            Record::Outside(handle) => {
                let position = self.object(handle)?.position();
                let own = position.get(self.leaf.prefix_len()..).ok_or(Torn)?;
                Ok(own.cmp(suffix))
            }
        }
    }

    /// As `search`, for any position: also one that does not begin with the leaf's prefix.
    pub(crate) fn search_any(&self, position: &[u8]) -> Result<(usize, bool), Torn> {
        let prefix = self.leaf.prefix();
        let common = position.len().min(prefix.len());
        match position[..common].cmp(&prefix[..common]) {
            Ordering::Less => Ok((0, false)),
            Ordering::Greater => Ok((self.count, false)),
            Ordering::Equal if common < prefix.len() => Ok((0, false)),
            Ordering::Equal => self.search(&position[common..]),
        }
    }

    /// Appends the value of entry `i` to `out`. If the entry is outside the copy is made after a check, of what can't change.
    #[inline]
    pub(crate) fn copy_value(&self, i: usize, out: &mut Vec<u8>) -> Result<(), Torn> {
        match self.record(self.slot(i)?)? {
            Record::Inline {
                value_at, value, ..
            } => words::copy_out(self.words, value_at, value, out),
            Record::Outside(handle) => {
                out.extend_from_slice(self.object(handle)?.value());
                Ok(())
            }
        }
    }

    /// The handle of entry `i`, if it is outside.
    pub(crate) fn handle(&self, i: usize) -> Result<Option<Handle>, Torn> {
        match self.record(self.slot(i)?)? {
            Record::Inline { .. } => Ok(None),
            Record::Outside(handle) => Ok(Some(handle)),
        }
    }

    /// Appends entry `i` to the run: outside objects as handles.
    pub(crate) fn collect(&self, i: usize, run: &mut Run) -> Result<(), Torn> {
        let slot = self.slot(i)?;
        match self.record(slot)? {
            Record::Inline {
                suffix,
                rest_at,
                value_at,
                value,
            } => {
                let from = run.bytes.len();
                run.bytes.extend_from_slice(self.leaf.prefix());
                run.bytes
                    .extend_from_slice(&slot.to_be_bytes()[..suffix.min(5)]);
                words::copy_out(
                    self.words,
                    rest_at,
                    suffix.saturating_sub(5),
                    &mut run.bytes,
                )?;
                let middle = run.bytes.len();
                words::copy_out(self.words, value_at, value, &mut run.bytes)?;
                run.end_entry(from, middle, None);
            }
            Record::Outside(handle) => {
                let from = run.bytes.len();
                run.bytes.extend_from_slice(self.object(handle)?.position());
                let middle = run.bytes.len();
                run.end_entry(from, middle, Some(handle));
            }
        }
        Ok(())
    }

    /// As `collect`, with the value's bytes wherever they are.
    pub(crate) fn collect_whole(&self, i: usize, run: &mut Run) -> Result<(), Torn> {
        self.collect(i, run)?;
        if let Some(handle) = run.take_last_handle() {
            let object = self.object(handle)?;
            run.extend_last(object.value());
        }
        Ok(())
    }

    /// The value of entry `i`, in place.
    ///
    /// # Safety
    /// The caller holds the leaf's lock for `'v`, and writes nothing to the leaf in that time.
    pub(super) unsafe fn value_in_place<'v>(&self, i: usize) -> &'v [u8] {
        let record = self.slot(i).and_then(|slot| self.record(slot));
        match record.expect("the lock's holder reads no torn record") {
            Record::Inline {
                value_at, value, ..
            } => {
                let content: *const u8 = self.words.as_ptr().cast();
                assert!(value_at + value <= self.words.len() * 8);
                // SAFETY: 1. within the content, checked above; 2. nobody writes to it during `'v`, says the caller; other threads only load.
                unsafe { std::slice::from_raw_parts(content.add(value_at), value) }
            }
            // SAFETY: the handle is in a locked leaf, so its object is alive while the lock is held.
            Record::Outside(handle) => unsafe { handle.object() }.value(),
        }
    }

    /// Bytes of the record of entry `i`.
    pub(super) fn record_len(&self, i: usize) -> usize {
        match self.slot(i).and_then(|slot| self.record(slot)) {
            Ok(Record::Inline { suffix, value, .. }) => super::leaf::record_size(suffix, value),
            Ok(Record::Outside(_)) => super::leaf::HANDLE_RECORD,
            Err(Torn) => 0,
        }
    }
}
