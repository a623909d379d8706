//! The engine's only unsafe code: pointers that are swapped under readers, and the trust in stored
//! bytes.
//!
//! # The pointer and its readers
//!
//! [`EpochCell`] holds a pointer to a `T` (or none) and three tag bits. Readers pin the epoch and
//! load it; what they get lives as long as their guard. Writers swap the pointer; what was there
//! comes back as [`Retired`], which must outlive every guard pinned at the time: its only ways out
//! are [`Retired::after_readers`] and [`Retired::drop_after_readers`], or staying where it is.
//!
//! Pairing of orderings: every store that publishes a pointer is `AcqRel` or stronger, every load
//! `Acquire` or stronger, so that what a reader reaches is initialised. The places where two
//! threads each write one word and read the other's (batch latch against leaf lock) use `SeqCst`;
//! they are described in `batch`.

use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use larder_index::sync::point;
use larder_term::blob::{Counts, Handles};
use larder_term::object::{self, ObjectView};
use larder_term::TermRef;
use std::ops::Deref;
use std::sync::atomic::Ordering;

/// A swappable pointer with tag bits (see the module).
pub(crate) struct EpochCell<T>(Atomic<T>);

/// What a load of an [`EpochCell`] saw.
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

    /// What the pointer led to.
    pub(crate) fn get(self) -> Option<&'g T> {
        // SAFETY: the pointer was published by `new`, `set` or `replace`, all of which initialise
        // it before; it is freed by `Retired` alone, after every guard that could have loaded it,
        // so it lives for 'g. Guards come from `larder_index::pin`, the default collector, the same
        // one that `Retired` defers to.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell with a value and no tag.
    pub(crate) fn new(value: T) -> Self {
        EpochCell(Atomic::new(value))
    }

    /// A cell with nothing in it.
    pub(crate) fn empty() -> Self {
        EpochCell(Atomic::null())
    }

    /// What is in the cell now.
    #[inline]
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> Loaded<'g, T> {
        point();
        // Ordering: SeqCst, because a writer that holds a leaf's lock looks here whether the batch
        // latch is free, while whoever acquires it then looks at leaves (see `batch`). On the
        // machines in use it costs what Acquire costs.
        Loaded(self.0.load(Ordering::SeqCst, guard))
    }

    /// The tag bits now.
    #[inline]
    pub(crate) fn tag(&self) -> usize {
        // SAFETY: the pointer is not looked through, only its tag is, so what it leads to need not
        // live.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        self.load(guard).tag()
    }

    /// Whether the cell still holds exactly what `seen` saw, tags included.
    #[inline]
    pub(crate) fn holds(&self, seen: Loaded<'_, T>, guard: &Guard) -> bool {
        point();
        // Ordering: as in `load`.
        self.0.load(Ordering::SeqCst, guard) == seen.0
    }

    /// Sets tag bits; gives the bits of before.
    pub(crate) fn set_tag(&self, bits: usize, guard: &Guard) -> usize {
        point();
        // Ordering: SeqCst, the other side of `load`.
        self.0.fetch_or(bits, Ordering::SeqCst, guard).tag()
    }

    /// Sets tag bits if the cell still holds what was seen.
    pub(crate) fn set_tag_if(&self, seen: Loaded<'_, T>, bits: usize, guard: &Guard) -> bool {
        let new = seen.0.with_tag(seen.0.tag() | bits);
        point();
        // Ordering: SeqCst as in `set_tag`; a failure publishes nothing and reads nothing through
        // the pointer.
        self.0
            .compare_exchange(seen.0, new, Ordering::SeqCst, Ordering::Relaxed, guard)
            .is_ok()
    }

    /// Clears tag bits.
    pub(crate) fn clear_tag(&self, bits: usize, guard: &Guard) {
        point();
        // Ordering: SeqCst; its Release half makes what was done under the tag visible to a thread
        // that sees the tag gone.
        self.0.fetch_and(!bits, Ordering::SeqCst, guard);
    }

    /// Puts `value` in place of what was seen, if that is still there; gives back the value
    /// otherwise.
    pub(crate) fn replace(
        &self,
        seen: Loaded<'_, T>,
        value: T,
        guard: &Guard,
    ) -> Result<Option<Retired<T>>, T> {
        let new = Owned::new(value);
        point();
        // Ordering: SeqCst as in `set_tag`; its Release half publishes the value.
        match self
            .0
            .compare_exchange(seen.0, new, Ordering::SeqCst, Ordering::Relaxed, guard)
        {
            Ok(_) => Ok(retire(seen.0)),
            Err(failed) => Err(*failed.new.into_box()),
        }
    }

    /// Takes what is in the cell out, leaving it empty with the same tags.
    pub(crate) fn take(&self, guard: &Guard) -> Option<Retired<T>> {
        let mut seen = self.load(guard);
        loop {
            if seen.0.is_null() {
                return None;
            }
            // The tags stay: a table that is dead is so without a store, too.
            let empty = Shared::null().with_tag(seen.tag());
            point();
            // Ordering: as in `replace`.
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

/// Makes the owner of a pointer that was just swapped out of its cell.
fn retire<T>(shared: Shared<'_, T>) -> Option<Retired<T>> {
    if shared.is_null() {
        return None;
    }
    // SAFETY: 1. the pointer came from an `Owned` and is not null; 2. one exchange took it out of
    // the only cell that held it, so no other `Owned` is made of it; 3. readers may still look at
    // it, shared only: `Retired` gives shared access alone until they are gone.
    Some(Retired(Some(unsafe { shared.into_owned() })))
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else can load from this cell any more, and a guard that has
        // loaded from it borrows it or what keeps it alive; `try_into_owned` takes the value if
        // there is one.
        drop(unsafe { std::mem::take(&mut self.0).try_into_owned() });
    }
}

/// Something swapped out of a cell, which readers may still be looking at.
pub(crate) struct Retired<T>(Option<Owned<T>>);

impl<T> Deref for Retired<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // The option is empty only inside `after_readers` and `drop`.
        match &self.0 {
            Some(owned) => owned,
            None => unreachable!("a retired value is looked at after it was given away"),
        }
    }
}

impl<T> Retired<T> {
    /// A look at the value for as long as `guard` lives, even if the value is given to
    /// `after_readers` meanwhile.
    pub(crate) fn share<'g>(&self, _guard: &'g Guard) -> &'g T {
        // SAFETY: `&self` shows that the value has not been given away or dropped yet; when it is,
        // it is freed by a deferred call only, which waits for the guard, pinned before.
        unsafe { &*std::ptr::from_ref::<T>(self) }
    }
}

impl<T: Send + 'static> Retired<T> {
    /// Calls `f` with the value once no reader looks at it any more.
    pub(crate) fn after_readers(mut self, guard: &Guard, f: impl FnOnce(Box<T>) + Send + 'static) {
        if let Some(owned) = self.0.take() {
            // A `T: Send` in its box may be handed to the thread that runs the deferred call.
            guard.defer(move || f(owned.into_box()));
        }
    }

    /// Drops the values once no reader looks at any of them any more, then calls `f`.
    pub(crate) fn drop_after_readers(
        values: Vec<Self>,
        guard: &Guard,
        f: impl FnOnce() + Send + 'static,
    ) {
        guard.defer(move || {
            for mut value in values {
                drop(value.0.take());
            }
            f();
        });
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        if let Some(owned) = self.0.take() {
            let guard = larder_index::pin();
            let shared = owned.into_shared(&guard);
            // SAFETY: the pointer is in no cell any more (see `retire`), so no new reader finds it;
            // those of before hold guards.
            unsafe { guard.defer_destroy(shared) };
        }
    }
}

/// The first term of bytes that came out of a table or an encoder of this engine.
#[inline]
pub(crate) fn stored(bytes: &[u8]) -> TermRef<'_> {
    // SAFETY: every run of bytes that the engine keeps was written by an encoder of larder-term,
    // and is read either under a guard that was pinned before it was copied out of the index
    // (counts of handles are given back through the epoch only), or while its owner lives.
    unsafe { TermRef::trusted(bytes) }
}

/// Whether a stored value has handles, which count what lies outside it.
#[inline]
pub(crate) fn has_handles(value: &[u8]) -> bool {
    object::value_has_handles(value)
}

/// A hash that two values share if they are the same object but for their keys (see `Table::same`).
pub(crate) fn object_hash(value: &[u8]) -> u64 {
    // SAFETY: the value was written by larder-term's object encoder; its handles are alive: it is
    // in a table or about to be put there by a caller that holds counts.
    unsafe { object::hash(value) }
}

/// Counts one more holder of everything that the value's handles refer to.
#[inline]
pub(crate) fn retain_value(value: &[u8]) {
    if has_handles(value) {
        // SAFETY: 1. the value was written by larder-term's object encoder; 2. its handles are
        // alive: the caller holds counts of its own, or has read the value under a guard pinned
        // before (counts are given back through the epoch only).
        unsafe { object::retain_value(value) };
    }
}

/// Gives back the counts that `retain_value` or an encoder took for these bytes. Called once for
/// each such count.
#[inline]
pub(crate) fn release_value(value: &[u8]) {
    if has_handles(value) {
        // SAFETY: as above; the caller gives back counts that it holds, and uses the bytes no more.
        unsafe { object::release_value(value) };
    }
}

/// Puts the counts of handles with others. Called once the values that had them are in no index any
/// more, by whoever took them out; `counts` are dropped when no reader of before can look.
pub(crate) fn own_counts(handles: Handles, counts: &mut Counts) {
    // SAFETY: 1. the values were written by larder-term's object encoder, and held counts, which
    // `retain_value` took; 2. one writer took them out of the index, and gives the counts up here;
    // 3. readers that copied the values meanwhile hold guards, for which `reclaim` waits.
    unsafe { handles.own(counts) }
}

/// A view of an object that the engine stored, or that an encoder of this engine made.
#[inline(always)]
pub(crate) fn view<'a>(
    key: &'a [u8],
    value: &'a [u8],
    keypos: usize,
    plain: &'a mut Vec<u8>,
) -> ObjectView<'a> {
    // SAFETY: as in `stored`: key and value were written by larder-term's object encoder for this
    // key position.
    unsafe { ObjectView::open(key, value, keypos, plain) }
}
