//! Arguments and results of writes.

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
    pub fn splice(old: &[u8], (at, len): (usize, usize), new: &mut Vec<u8>) -> Change {
        match (u32::try_from(at), u32::try_from(len)) {
            (Ok(at), Ok(len)) => Change::Splice(Part { at, len }),
            _ => {
                complete(old, (at, len), new);
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
            (Change::Splice(part), Some(old)) => {
                complete(old, (part.at as usize, part.len as usize), new);
                Change::Put
            }
            _ => self,
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

/// Some adjacent bytes of a value.
// Small, so that a `Change` travels in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    at: u32,
    len: u32,
}

impl Part {
    /// The place of the part, if `new` is as long as the part, so that the bytes behind it stay
    /// where they are.
    #[inline]
    pub(crate) fn place_for(self, new: &[u8]) -> Option<usize> {
        (new.len() == self.len as usize).then_some(self.at as usize)
    }
}

/// Replaces `len` bytes of `value`, from `at` on, by `new`, which becomes the whole result.
#[inline(never)]
fn complete(value: &[u8], (at, len): (usize, usize), new: &mut Vec<u8>) {
    let (before, rest) = value.split_at(at);
    let own = new.len();
    // Make room for the bytes before, and copy them there.
    new.extend_from_slice(before);
    new.copy_within(..own, at);
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

/// The condition of [`Unique::put_marked`](super::Unique::put_marked). It is called like a
/// [`Predicate`], with the mark of the entry, which it may change.
pub type MarkedPredicate<'f> = dyn FnMut(Option<&[u8]>, &mut u64) -> bool + 'f;

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
    pub(crate) fn of(present: bool) -> Previous {
        if present {
            Previous::Present
        } else {
            Previous::Absent
        }
    }
}
