//! Handles: the only place of this crate that turns bytes into pointers. Everything here is `unsafe` for one reason:
//! a handle that no counted run of bytes owns points at nothing.

use super::{is_handle_tag, Payload};
use crate::{
    encoder::{Encoder, Mode},
    skip::Heads,
    tags::{BLOB, HANDLE, SHORTEST_WITH_HANDLE},
    varint,
    view::TermRef,
};
use std::sync::Arc;

/// Turns a count into a handle, which then owns it.
pub(crate) fn handle_of(payload: Arc<Payload>) -> [u8; HANDLE] {
    let address = Arc::into_raw(payload).expose_provenance() as u64;
    address.to_le_bytes()
}

/// The handle that ends at `end`.
#[inline]
fn handle_at(bytes: &[u8], end: usize) -> [u8; HANDLE] {
    let mut handle = [0; HANDLE];
    handle.copy_from_slice(&bytes[end - HANDLE..end]);
    handle
}

#[inline]
fn pointer(handle: [u8; HANDLE]) -> *const Payload {
    std::ptr::with_exposed_provenance(u64::from_le_bytes(handle) as usize)
}

/// What a handle refers to.
///
/// # Safety
/// `handle` was made by [`handle_of`], and a count that it owns is held by somebody for all of `'a`.
#[inline]
unsafe fn borrow<'a>(handle: [u8; HANDLE]) -> &'a Payload {
    // SAFETY: the pointer came from `Arc::into_raw` (the caller says so), and the count that is held keeps it alive for 'a.
    unsafe { &*pointer(handle) }
}

/// A count of one's own on what a handle refers to.
///
/// # Safety
/// As for [`borrow`], for the time of the call.
unsafe fn owned(handle: [u8; HANDLE]) -> Arc<Payload> {
    let pointer = pointer(handle);
    // SAFETY: 1. the pointer came from `Arc::into_raw` of an `Arc<Payload>`; 2. the strong count is at least one during the call,
    // since the caller's is held; 3. the count that `increment` adds is the one that `from_raw` takes over.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}

/// The count that a handle owns.
///
/// # Safety
/// `handle` was made by [`handle_of`], and the caller owns its count, which the result takes over.
pub(super) unsafe fn adopt(handle: [u8; HANDLE]) -> Arc<Payload> {
    // SAFETY: the pointer came from `Arc::into_raw` of an `Arc<Payload>`, whose count is the caller's to give.
    unsafe { Arc::from_raw(pointer(handle)) }
}

/// The handles of a run of whole terms.
pub(super) fn handles(run: &[u8]) -> impl Iterator<Item = [u8; HANDLE]> + '_ {
    let run = if run.len() < SHORTEST_WITH_HANDLE {
        &[]
    } else {
        run
    };
    Heads::new(run)
        .filter(|&(at, _)| is_handle_tag(run[at]))
        .map(|(_, end)| handle_at(run, end))
}

/// Takes one count for each handle in a run of whole terms (none, one or many), for a copy of the run that is to be kept.
///
/// # Safety
/// An encoder wrote the run in this process, and somebody holds the counts of its handles during the call.
pub unsafe fn retain_all(run: &[u8]) {
    for handle in handles(run) {
        // SAFETY: 1. an encoder wrote the handle, so it came from `handle_of`; 2. its count is held during the call: both the caller says.
        unsafe { Arc::increment_strong_count(pointer(handle)) }
    }
}

/// Gives back one count for each handle in a run of whole terms. What nobody counts any more is dropped in this call.
///
/// # Safety
/// An encoder wrote the run in this process; the caller owns the counts of its handles, gives them up, and lets nobody read the run's
/// handles afterwards.
pub unsafe fn release_all(run: &[u8]) {
    for handle in handles(run) {
        // SAFETY: 1. an encoder wrote the handle, so it came from `handle_of`; 2. the count given back is the caller's own.
        unsafe { Arc::decrement_strong_count(pointer(handle)) }
    }
}

/// Bytes of the binaries that the handles of a run of whole terms refer to.
pub fn outside_bytes(run: &[u8]) -> usize {
    let run = if run.len() < SHORTEST_WITH_HANDLE {
        &[]
    } else {
        run
    };
    Heads::new(run)
        .filter(|&(at, _)| run[at] == BLOB)
        .map(|(at, _)| varint::read(run, at + 1).0 as usize)
        .sum()
}

/// What the handle at the end of a term's head refers to; the term is a `BLOB` or a `REF_KEPT`.
#[inline]
pub(crate) fn payload(term: TermRef<'_>) -> &Payload {
    debug_assert!(is_handle_tag(term.bytes()[0]));
    // SAFETY: 1. the tag says that the bytes end with a handle that an encoder wrote; 2. whoever made the `TermRef` promised
    // that its count is held for the lifetime of the term, which is the result's.
    unsafe { borrow(handle_at(term.bytes(), term.bytes().len())) }
}

/// A count of one's own on what [`payload`] gives.
pub(crate) fn owned_payload(term: TermRef<'_>) -> Arc<Payload> {
    debug_assert!(is_handle_tag(term.bytes()[0]));
    // SAFETY: as in `payload`; the call ends before the term's lifetime does.
    unsafe { owned(handle_at(term.bytes(), term.bytes().len())) }
}

/// A run of whole terms that owns the counts of its handles.
///
/// Invariants: an encoder wrote `bytes`; `handles` is set if a handle is among them. Only [`Counted::new`] and [`Counted::fill`] put bytes in.
#[derive(Debug, Default)]
pub(crate) struct Counted<B: AsRef<[u8]>> {
    bytes: B,
    handles: bool,
}

impl<B: AsRef<[u8]>> Counted<B> {
    /// Bytes that hold no handle.
    pub(crate) fn new(bytes: B) -> Self {
        let handles = false;
        Counted { bytes, handles }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    pub(crate) fn has_handles(&self) -> bool {
        self.handles
    }

    #[inline]
    fn release(&mut self) {
        if std::mem::take(&mut self.handles) {
            // SAFETY: 1. an encoder wrote the bytes; 2. the counts are this value's own; 3. `&mut self` shows that nobody borrows from
            // it, and both callers drop or clear the bytes at once.
            unsafe { release_all(self.bytes.as_ref()) }
        }
    }
}

impl Counted<Vec<u8>> {
    /// Empties it, keeping the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.release();
        self.bytes.clear();
    }

    /// Replaces what it holds by what a closure pushes; also gives what the closure returned, and whether it pushed one complete term.
    #[inline]
    pub(crate) fn fill<R>(
        &mut self,
        mode: Mode,
        push: impl FnOnce(&mut Encoder<'_>) -> R,
    ) -> (R, bool) {
        self.clear();
        let mut enc = Encoder::new(&mut self.bytes, mode);
        let result = push(&mut enc);
        let (handles, complete) = (enc.has_handles(), enc.is_complete() && enc.terms() == 1);
        self.handles = handles;
        (result, complete)
    }

    /// The same run in a box of its size.
    pub(crate) fn into_boxed(mut self) -> Counted<Box<[u8]>> {
        let handles = std::mem::take(&mut self.handles);
        let bytes = std::mem::take(&mut self.bytes).into_boxed_slice();
        Counted { bytes, handles }
    }
}

impl<B: AsRef<[u8]>> Drop for Counted<B> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl<B: AsRef<[u8]> + Clone> Clone for Counted<B> {
    fn clone(&self) -> Self {
        if self.handles {
            // SAFETY: 1. an encoder wrote the bytes; 2. `self` holds the counts during the call; the copy owns the new ones.
            unsafe { retain_all(self.bytes.as_ref()) }
        }
        Counted {
            bytes: self.bytes.clone(),
            handles: self.handles,
        }
    }
}

/// Empties the value of an [`crate::object::ObjectBuf`], which owns the counts of its handles.
#[inline]
pub(crate) fn clear_value(value: &mut Vec<u8>) {
    if let Some(run) = crate::object::counted(value) {
        // SAFETY: 1. the run is whole terms that an encoder wrote, since only `object` writes values; 2. the buffer owns its counts;
        // 3. `&mut` shows that nobody borrows from it, and the bytes are gone after the next line.
        unsafe { release_all(run) }
    }
    value.clear();
}
