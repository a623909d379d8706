//! The unsafe code of the engine: pointers that are replaced while others read them, and functions
//! that trust stored bytes. All other modules of this crate forbid unsafe code.
//!
//! # The pointer and its readers
//!
//! ```text
//!              load                         replace, take                 no reader is left
//!  EpochCell ────────→ Loaded<'guard>       EpochCell ──────→ Retired ────────────────────→ freed
//! ```
//!
//! An [`EpochCell`] has a pointer to a `T`, or null, and three tag bits. A reader pins the epoch
//! and loads the pointer. The value stays allocated as long as the reader's guard exists. A writer
//! replaces the pointer, and gets the old value as a [`Retired`].
//!
//! Invariants:
//! * **RC1** A value is in at most one cell, or in one `Retired`.
//! * **RC2** A value is freed only by [`Retired`], after all guards are dropped that were pinned
//!   when it was taken out of its cell. Dropping a `Retired` defers the drop of the value.
//! * **RC3** A `Retired` gives only shared access, since readers may still use the value.
//!
//! *Orderings.* All operations on a cell are `SeqCst`. Their Release and Acquire halves publish the
//! value: a reader that loads a pointer sees what it points to initialised. The total order is
//! needed where two threads each store to one word and then load the other's: the batch latch and
//! the lock of a leaf (see `batch`).

use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use larder_index::sync::point;
use larder_term::blob::{Counts, Handles};
use larder_term::object::{self, ObjectView, UnopenedObject};
use larder_term::TermRef;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// A pointer that can be replaced while others read it, with three tag bits.
pub(crate) struct EpochCell<T>(Atomic<T>);

/// The content of an [`EpochCell`] at an instant: the pointer and the tag bits.
pub(crate) struct Loaded<'g, T>(Shared<'g, T>);

impl<T> Clone for Loaded<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Loaded<'_, T> {}

impl<'g, T> Loaded<'g, T> {
    /// The tag bits.
    pub(crate) fn tag(self) -> usize {
        self.0.tag()
    }

    /// The value, or `None` if the pointer was null.
    pub(crate) fn get(self) -> Option<&'g T> {
        // SAFETY:
        // 1. the pointer was published by `new` or `replace`, after the value had been initialised;
        // 2. the value is freed after every guard that could have loaded it (RC2), so it lives for
        //    'g. All guards come from `larder_index::pin`, which uses the collector that `Retired`
        //    defers to.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell with a value, and no tag bits set.
    pub(crate) fn new(value: T) -> Self {
        EpochCell(Atomic::new(value))
    }

    /// A cell without a value.
    pub(crate) fn empty() -> Self {
        EpochCell(Atomic::null())
    }

    /// Loads the pointer and the tag bits.
    #[inline]
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> Loaded<'g, T> {
        point();
        // Ordering: SeqCst, pairs with `set_tag`. A writer takes the lock of a leaf and then loads
        // the tag, to see whether the batch latch is held. A thread that acquires the latch sets
        // the tag and then looks at leaves. At least one of them must see the other (`batch`). On
        // x86-64 it is the same instruction as an Acquire load.
        Loaded(self.0.load(Ordering::SeqCst, guard))
    }

    /// Loads the tag bits.
    #[inline]
    pub(crate) fn tag(&self) -> usize {
        // SAFETY: the pointer isn't dereferenced, so no guard has to keep the value alive.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        self.load(guard).tag()
    }

    /// Whether the cell still has the pointer and the tag bits of `seen`. The value can't have been
    /// freed and its address used again, since `seen` lives no longer than its guard.
    #[inline]
    pub(crate) fn holds(&self, seen: Loaded<'_, T>, guard: &Guard) -> bool {
        point();
        // Ordering: as in `load`.
        self.0.load(Ordering::SeqCst, guard) == seen.0
    }

    /// Sets tag bits. Returns the tag bits from before.
    pub(crate) fn set_tag(&self, bits: usize, guard: &Guard) -> usize {
        point();
        // Ordering: SeqCst, pairs with `load`.
        self.0.fetch_or(bits, Ordering::SeqCst, guard).tag()
    }

    /// Sets tag bits if the cell still has the content `seen`. Returns whether it did.
    pub(crate) fn set_tag_if(&self, seen: Loaded<'_, T>, bits: usize, guard: &Guard) -> bool {
        let new = seen.0.with_tag(seen.0.tag() | bits);
        point();
        // Ordering: SeqCst as in `set_tag`. Relaxed on failure, since the current pointer isn't
        // used then.
        self.0
            .compare_exchange(seen.0, new, Ordering::SeqCst, Ordering::Relaxed, guard)
            .is_ok()
    }

    /// Clears tag bits.
    pub(crate) fn clear_tag(&self, bits: usize, guard: &Guard) {
        point();
        // Ordering: SeqCst. Its Release half makes everything that was done while the tag was set
        // visible to a thread that loads the cleared tag.
        self.0.fetch_and(!bits, Ordering::SeqCst, guard);
    }

    /// Replaces the pointer by one to `value`, without tag bits, if the cell still has the content
    /// `seen`. Returns the old value. If the content has changed, returns `value` as an error.
    pub(crate) fn replace(
        &self,
        seen: Loaded<'_, T>,
        value: T,
        guard: &Guard,
    ) -> Result<Option<Retired<T>>, T> {
        let new = Owned::new(value);
        point();
        // Ordering: SeqCst as in `set_tag`. Its Release half publishes the value. Relaxed on
        // failure, since the current pointer isn't used then.
        match self
            .0
            .compare_exchange(seen.0, new, Ordering::SeqCst, Ordering::Relaxed, guard)
        {
            Ok(_) => Ok(retire(seen.0)),
            Err(failed) => Err(*failed.new.into_box()),
        }
    }

    /// Takes the value out. The cell is empty then, and its tag bits are the same.
    pub(crate) fn take(&self, guard: &Guard) -> Option<Retired<T>> {
        let mut seen = self.load(guard);
        loop {
            if seen.0.is_null() {
                return None;
            }
            // Keep the tag bits: a dead table stays dead without a store.
            let empty = Shared::null().with_tag(seen.tag());
            point();
            // Ordering: as in `replace`. SeqCst on failure, since the current pointer is used in
            // the next round.
            match self
                .0
                .compare_exchange(seen.0, empty, Ordering::SeqCst, Ordering::SeqCst, guard)
            {
                Ok(_) => return retire(seen.0),
                Err(failed) => seen = Loaded(failed.current),
            }
        }
    }
}

/// Takes ownership of a pointer that was just taken out of its cell by an exchange.
fn retire<T: Send + Sync + 'static>(shared: Shared<'_, T>) -> Option<Retired<T>> {
    if shared.is_null() {
        return None;
    }
    // The pointer came from an `Owned`, whose memory is that of a box. The exchange took it out of
    // the only cell that had it (RC1).
    NonNull::new(shared.as_raw().cast_mut()).map(Retired)
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` shows that no other thread can load from this cell any more. A thread
        // that has loaded from it has kept the cell alive since then, by a borrow or a reference
        // count. `try_into_owned` returns `None` for a null pointer.
        drop(unsafe { std::mem::take(&mut self.0).try_into_owned() });
    }
}

/// A value that was taken out of a cell, and that readers may still use. Dropping it defers the
/// drop of the value until no reader is left.
///
/// The pointer is that of a box, which this value owns. No box is made of it before the readers are
/// gone (RC3).
pub(crate) struct Retired<T: ?Sized + Send + Sync + 'static>(NonNull<T>);

// SAFETY: it owns a `T`, to which it gives shared access, and which another thread may drop.
unsafe impl<T: ?Sized + Send + Sync + 'static> Send for Retired<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync + 'static> Sync for Retired<T> {}

impl<T: ?Sized + Send + Sync + 'static> Deref for Retired<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the value is freed after `self` is gone, and others have shared access only.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + Send + Sync + 'static> Retired<T> {
    /// The value, for as long as `guard` exists, even if the `Retired` is consumed meanwhile.
    pub(crate) fn share<'g>(&self, _guard: &'g Guard) -> &'g T {
        // SAFETY: `&self` shows that the value is still there. All ways to consume `self` free the
        // value by a deferred call, which waits for `guard`, since that is pinned already.
        unsafe { &*std::ptr::from_ref::<T>(self) }
    }
}

impl<T: ?Sized + Send + Sync + 'static> Retired<T> {
    /// The same value with a type that says less. `as_less` must return the pointer that it gets,
    /// converted.
    pub(crate) fn upcast<U>(self, as_less: fn(NonNull<T>) -> NonNull<U>) -> Retired<U>
    where
        U: ?Sized + Send + Sync + 'static,
    {
        Retired(as_less(ManuallyDrop::new(self).0))
    }

    /// The box.
    ///
    /// # Safety
    /// No reader is left.
    unsafe fn into_box(self) -> Box<T> {
        // SAFETY: the pointer is that of a box, which `self` owns, and nobody else uses the value.
        unsafe { Box::from_raw(ManuallyDrop::new(self).0.as_ptr()) }
    }

    /// Calls `f` with the value when no reader is left.
    pub(crate) fn after_readers(self, guard: &Guard, f: impl FnOnce(Box<T>) + Send + 'static) {
        // SAFETY: the value is in no cell any more (RC1). So a reader that pins from now on can't
        // load it. Earlier readers hold guards, for which the deferred call waits.
        guard.defer(move || f(unsafe { self.into_box() }));
    }

    /// Calls `f` with the values when no reader of any of them is left.
    pub(crate) fn all_after_readers(
        values: Vec<Self>,
        guard: &Guard,
        f: impl FnOnce(Vec<Box<T>>) + Send + 'static,
    ) {
        guard.defer(move || {
            // SAFETY: as in `after_readers`.
            let boxes = values.into_iter().map(|value| unsafe { value.into_box() });
            f(boxes.collect());
        });
    }
}

impl<T: ?Sized + Send + Sync + 'static> Drop for Retired<T> {
    fn drop(&mut self) {
        // `self` isn't used any more, so this is the only owner.
        Retired(self.0).after_readers(&larder_index::pin(), drop);
    }
}

/// The first term of bytes that come from a table, or from an encoder of `larder-term`.
#[inline]
pub(crate) fn stored(bytes: &[u8]) -> TermRef<'_> {
    // SAFETY:
    // 1. all bytes that the engine stores were written by an encoder of larder-term;
    // 2. the handles in them are alive: the caller has a guard that was pinned before the bytes
    //    were copied out of the index, and counts of handles are released through the epoch; or the
    //    caller owns counts.
    unsafe { TermRef::trusted(bytes) }
}

/// The term of the stored element with which bytes begin that come from a table.
#[cfg(feature = "serde")]
#[inline]
pub(crate) fn stored_element(bytes: &[u8]) -> TermRef<'_> {
    // SAFETY: as in `stored`. What an element out of line leads to is a whole term, too.
    unsafe { TermRef::trusted(object::stored_term(bytes)) }
}

/// Whether a stored value has handles: counted references to blobs and anchors.
#[inline]
pub(crate) fn has_handles(value: &[u8]) -> bool {
    object::value_has_handles(value)
}

/// A hash of a value, without its key. Two values under one key have the same hash if they are the
/// same object (`EngineTable::same`).
pub(crate) fn object_hash(value: &[u8]) -> u64 {
    // SAFETY:
    // 1. the value was written by larder-term's object encoder;
    // 2. its handles are alive: it is in a table, or the caller holds counts and is about to insert
    //    it.
    unsafe { object::hash(value) }
}

/// Increments the counts of all handles in a value.
#[inline]
pub(crate) fn retain_value(value: &[u8]) {
    if has_handles(value) {
        // SAFETY:
        // 1. the value was written by larder-term's object encoder;
        // 2. its handles are alive: the caller holds counts, or has read the value while its epoch
        //    was pinned, and counts are released through the epoch.
        unsafe { object::retain_value(value) };
    }
}

/// Decrements the counts of all handles in a value. Called once for each increment, by
/// `retain_value` or an encoder.
#[inline]
pub(crate) fn release_value(value: &[u8]) {
    if has_handles(value) {
        // SAFETY:
        // 1. as in `retain_value`;
        // 2. the caller holds the counts that are released, and doesn't use the handles any more.
        unsafe { object::release_value(value) };
    }
}

/// Moves the counts that the handles stand for to `counts`, which are released when no reader is
/// left. The caller has removed the values with these handles from the index.
pub(crate) fn own_counts(handles: Handles, counts: &mut Counts) {
    // SAFETY:
    // 1. the values were written by larder-term's object encoder, and held counts that
    //    `retain_value` or the encoder had taken;
    // 2. only the caller has removed them from the index, and it gives up the counts here;
    // 3. readers that have copied the values hold guards, for which `reclaim` waits.
    unsafe { handles.own(counts) }
}

/// The key of an object that the engine stored. Unless the value begins with the exact key, its
/// first byte suffices.
#[inline]
pub(crate) fn key_of<'a>(key: &'a [u8], value: &'a [u8], plain: &'a mut Vec<u8>) -> TermRef<'a> {
    // SAFETY: as in `view`. Values are cut only if they don't begin with the exact key (see
    // `read_ahead`).
    unsafe { ObjectView::key_of(key, value, plain) }
}

/// Opens an object from a table, or from an encoder of `larder-term`. `plain` is the buffer for the
/// unpacked elements of a compressed object.
#[inline]
pub(crate) fn view<'a>(
    key: &'a [u8],
    value: &'a [u8],
    keypos: usize,
    plain: &'a mut Vec<u8>,
) -> ObjectView<'a> {
    // SAFETY: as in `stored`. Key and value were written by larder-term's object encoder for this
    // key position.
    unsafe { ObjectView::open(key, value, keypos, plain) }
}

/// An object of a table that isn't opened.
#[inline]
pub(crate) fn unopened<'a>(key: &'a [u8], value: &'a [u8]) -> UnopenedObject<'a> {
    // SAFETY: as in `view`.
    unsafe { UnopenedObject::new(key, value) }
}

/// Like `view`, for a caller that reads no element after position `last()`.
#[inline]
pub(crate) fn view_up_to<'a>(
    key: &'a [u8],
    value: &'a [u8],
    keypos: usize,
    last: impl FnOnce() -> usize,
    plain: &'a mut Vec<u8>,
) -> ObjectView<'a> {
    // SAFETY: as in `view`.
    unsafe { ObjectView::open_up_to(key, value, keypos, last, plain) }
}
