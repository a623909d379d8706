//! Arguments and results of writes.

/// The result of the closure of `Unique::update`: what to do with the entry.
#[derive(Clone, Copy, Debug)]
pub enum Change<'v> {
    /// Leave the entry as it is. If it is absent, it stays absent.
    Keep,
    /// Store this value, which outlives the call.
    Put(&'v [u8]),
    /// Store the content of the scratch buffer.
    PutScratch,
    /// Remove the entry.
    Remove,
}

/// The closure of [`Unique::update`](super::Unique::update). It is called with the value under the
/// key and an empty scratch buffer.
pub type Updater<'f, 'v> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change<'v> + 'f;

/// The condition of [`Unique::put`](super::Unique::put) and
/// [`Unique::remove`](super::Unique::remove). It is called with the value under the key, before
/// anything is changed.
pub type Predicate<'f> = dyn FnMut(Option<&[u8]>) -> bool + 'f;

/// The condition of [`Unique::put_marked`](super::Unique::put_marked). It is called like a
/// [`Predicate`], with the mark of the entry, which it may change.
pub type MarkedPredicate<'f> = dyn FnMut(Option<&[u8]>, &mut u64) -> bool + 'f;

/// The closure of [`Unique::update_marked`](super::Unique::update_marked). It is called like an
/// [`Updater`], with the mark of the entry, which it may change.
pub type MarkedUpdater<'f, 'v> =
    dyn FnMut(Option<&[u8]>, &mut Vec<u8>, &mut u64) -> Change<'v> + 'f;

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
