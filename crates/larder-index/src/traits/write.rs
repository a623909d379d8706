//! Arguments and results of writes.

use crate::sync::point;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The result of the closure of `Unique::update`: what to do with the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Leave the entry as it is. If it is absent, it stays absent.
    Keep,
    /// Store the content of the buffer.
    Put,
    /// Replace a part of the value, which must be there, by the content of the buffer.
    Splice(Part),
    /// Remove the entry.
    Remove,
}

impl Change {
    /// The change that replaces `len` bytes of the value `old`, from `at` on, by the content of the
    /// buffer.
    #[inline]
    pub fn splice(old: &[u8], at: usize, len: usize, new: &mut Vec<u8>) -> Change {
        match Part::new(at, len) {
            Some(part) => Change::Splice(part),
            None => {
                complete(old, at, len, new);
                Change::Put
            }
        }
    }

    /// The same change with the whole new value in the buffer, if this one replaces a part of the
    /// value. `old` is the value under the key.
    #[inline]
    #[must_use]
    pub fn whole(self, old: Option<&[u8]>, new: &mut Vec<u8>) -> Change {
        match (self, old) {
            (Change::Splice(_), Some(_)) => {
                self.complete_value(old, new);
                Change::Put
            }
            _ => self,
        }
    }

    /// Completes the content of the buffer to the whole new value, if the change replaces a part of
    /// the value.
    #[inline]
    pub(crate) fn complete_value(self, old: Option<&[u8]>, new: &mut Vec<u8>) {
        if let (Change::Splice(part), Some(old)) = (self, old) {
            let part = part.range();
            complete(old, part.start, part.len(), new);
        }
    }

    /// The value that a [`whole`](Self::whole) change stores; `None` if it stores none. `new` is
    /// the content of the buffer.
    #[inline]
    pub fn value(self, new: &[u8]) -> Option<&[u8]> {
        match self {
            Change::Keep | Change::Remove => None,
            Change::Put | Change::Splice(_) => Some(new),
        }
    }
}

/// Some adjacent bytes of a value: their offset in the upper half, their number in the lower one.
// One word, so that a `Change` is two words, and travels in registers. With two fields it would be
// stored field by field and loaded as one word, and such a load waits for the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(u64);

impl Part {
    /// `None` if the part begins beyond the first 4 GiB, or is longer.
    #[inline]
    fn new(at: usize, len: usize) -> Option<Part> {
        let (at, len) = (at as u64, len as u64);
        ((at | len) >> 32 == 0).then_some(Part(at << 32 | len))
    }

    #[inline]
    fn at(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    fn len(self) -> usize {
        self.0 as u32 as usize
    }

    /// Where the part lies in the value.
    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        self.at()..self.at() + self.len()
    }

    /// The offset of the part, if `new` is as long as the part, so that the bytes after it stay
    /// where they are.
    #[inline]
    pub(crate) fn place_for(self, new: &[u8]) -> Option<usize> {
        (new.len() == self.len()).then_some(self.at())
    }
}

/// Replaces `len` bytes of `value`, from `at` on, by `new`, which becomes the whole result.
#[inline(never)]
fn complete(value: &[u8], at: usize, len: usize, new: &mut Vec<u8>) {
    let (before, rest) = value.split_at(at);
    let len_of_new = new.len();
    // Make room for the bytes before, and copy them there.
    new.extend_from_slice(before);
    new.copy_within(..len_of_new, at);
    new[..at].copy_from_slice(before);
    new.extend_from_slice(&rest[len..]);
}

/// The closure of [`Unique::update`](super::Unique::update). It is called with the value under the
/// key and an empty buffer.
pub type Updater<'f> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change + 'f;

/// The condition of [`Unique::put`](super::Unique::put) and
/// [`Unique::remove`](super::Unique::remove). It is called with the value under the key, before
/// anything is changed.
pub type Predicate<'f> = dyn FnMut(Option<&[u8]>) -> bool + 'f;

/// The mark of entries that are *ready*: a write changes them without preparing the change. The
/// index itself compares marks with it, so most writes need no call for that.
#[derive(Clone, Copy)]
pub struct ReadyMark<'m> {
    mark: &'m AtomicU64,
    /// The number of reasons for which no entry is ready.
    holds: &'m AtomicUsize,
}

impl<'m> ReadyMark<'m> {
    /// While `holds` is 0, entries with the mark `mark` are ready, unless the mark is 0.
    #[inline]
    pub const fn new(mark: &'m AtomicU64, holds: &'m AtomicUsize) -> Self {
        ReadyMark { mark, holds }
    }

    /// A mark that no entry has.
    #[inline]
    pub fn none() -> ReadyMark<'static> {
        static NO_MARK: AtomicU64 = AtomicU64::new(0);
        static NO_HOLDS: AtomicUsize = AtomicUsize::new(0);
        ReadyMark::new(&NO_MARK, &NO_HOLDS)
    }

    /// Whether an entry with this mark is ready. Called under the entry's lock.
    #[inline]
    pub fn is(self, mark: u64) -> bool {
        if mark == 0 {
            return false;
        }
        // Ordering: SeqCst, both, and in this order, for users that order the mark and the holds
        // with other atomics of theirs.
        point();
        if mark != self.mark.load(Ordering::SeqCst) {
            return false;
        }
        point();
        self.holds.load(Ordering::SeqCst) == 0
    }
}

/// What [`Unique::put_marked`](super::Unique::put_marked) does between its predicate and its
/// change.
pub struct Preparation<'f> {
    /// An entry with this mark is ready: `prepare` isn't called.
    pub ready: ReadyMark<'f>,
    /// Called for any other entry, with the value under the key, and with the mark of the entry,
    /// which it may change.
    pub prepare: &'f mut dyn FnMut(Option<&[u8]>, &mut u64),
}

impl Preparation<'_> {
    /// Prepares the change of an entry with this mark, if it isn't ready. Returns the mark that the
    /// entry gets.
    #[inline]
    pub fn run(&mut self, old: Option<&[u8]>, mut mark: u64) -> u64 {
        if self.ready.is(mark) {
            return mark;
        }
        (self.prepare)(old, &mut mark);
        mark
    }
}

/// The closure of [`Unique::update_marked`](super::Unique::update_marked). It is called like an
/// [`Updater`], with the mark of the entry, which it may change.
pub type MarkedUpdater<'f> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>, &mut u64) -> Change + 'f;

/// The result of a write: what was under the key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// The predicate returned `false`. Nothing was changed.
    Refused,
    /// There was no value.
    Absent,
    /// There was a value.
    Present,
}

impl Previous {
    /// The result of a write that was made.
    #[inline]
    pub fn of(present: bool) -> Previous {
        if present {
            Previous::Present
        } else {
            Previous::Absent
        }
    }
}
