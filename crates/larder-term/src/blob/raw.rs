//! Handles. This is the only file of the crate that turns bytes into pointers. All functions that
//! are `unsafe` are so for one reason: a handle whose count nobody owns is a dangling pointer.

use super::{is_handle_tag, HostObject, HostObjects, Kept, Payload, HOST};
use crate::{
    encoder::{Encoder, Mode},
    skip::Heads,
    tags::{BLOB, HANDLE, OUT_OF_LINE, SHORTEST_WITH_HANDLE},
    varint,
    view::TermRef,
};
use std::sync::Arc;

/// Set in the handle of an object of the host's.
const HOST_BIT: u64 = 1;

fn host() -> &'static HostObjects {
    match HOST.get() {
        Some(host) => host,
        None => unreachable!("an object of a host that said nothing of its objects"),
    }
}

impl HostObject {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant; `host` is as `set_host_objects` was told.
        unsafe { std::slice::from_raw_parts((host().bytes)(self.address), self.len) }
    }
}

impl Clone for HostObject {
    fn clone(&self) -> Self {
        // SAFETY: this value holds the object meanwhile; the new count is the clone's.
        unsafe { (host().hold)(self.address) }
        HostObject { ..*self }
    }
}

impl Drop for HostObject {
    fn drop(&mut self) {
        // SAFETY: the count is this value's, given back once.
        unsafe { (host().release)(self.address) }
    }
}

/// Turns a counted pointer into a handle, which then owns the count.
#[inline]
pub(crate) fn handle_of(kept: Kept) -> [u8; HANDLE] {
    // The address of a payload is even, so the low bit can say which of the two it is.
    let handle = match kept {
        Kept::Payload(payload) => Arc::into_raw(payload).expose_provenance() as u64,
        Kept::Host(binary) => {
            let binary = std::mem::ManuallyDrop::new(binary);
            binary.address as u64 | HOST_BIT
        }
    };
    handle.to_le_bytes()
}

/// The handle that ends at `end`.
#[inline]
fn handle_at(bytes: &[u8], end: usize) -> [u8; HANDLE] {
    let mut handle = [0; HANDLE];
    handle.copy_from_slice(&bytes[end - HANDLE..end]);
    handle
}

/// The target of a handle.
#[derive(Clone, Copy)]
enum Target {
    Payload(*const Payload),
    Host(usize),
}

#[inline]
fn target(handle: [u8; HANDLE]) -> Target {
    let word = u64::from_le_bytes(handle);
    if word & HOST_BIT != 0 {
        return Target::Host((word & !HOST_BIT) as usize);
    }
    Target::Payload(std::ptr::with_exposed_provenance(word as usize))
}

/// Increments the count of what a handle leads to.
///
/// # Safety
/// `handle` was made by [`handle_of`], and a count that it owns is held by somebody during the
/// call.
#[inline]
unsafe fn retain(handle: [u8; HANDLE]) {
    // SAFETY:
    // 1. the pointer came from `Arc::into_raw`, or the address is a host's object's;
    // 2. a count is held: both the caller says.
    unsafe {
        match target(handle) {
            Target::Payload(pointer) => Arc::increment_strong_count(pointer),
            Target::Host(address) => (host().hold)(address),
        }
    }
}

/// Turns a handle into a counted pointer, which takes over the handle's count. `len` is the length
/// of the blob, which is encoded before the handle.
///
/// # Safety
/// `handle` was made by [`handle_of`], and the caller owns its count, which the result takes over.
pub(super) unsafe fn adopt(handle: [u8; HANDLE], len: usize) -> Kept {
    match target(handle) {
        // SAFETY: the pointer came from `Arc::into_raw` of an `Arc<Payload>`, whose count is the
        // caller's to give.
        Target::Payload(pointer) => Kept::Payload(unsafe { Arc::from_raw(pointer) }),
        Target::Host(address) => Kept::Host(HostObject { address, len }),
    }
}

/// The handles in a run of whole terms, each with the length of all that it leads to; 0 for an
/// anchor.
pub(super) fn handles(run: &[u8]) -> impl Iterator<Item = ([u8; HANDLE], usize)> + '_ {
    // Most runs are too short for any handle, and aren't walked over.
    let run = if run.len() < SHORTEST_WITH_HANDLE {
        &[]
    } else {
        run
    };
    Heads::new(run)
        .filter(|&(at, _)| is_handle_tag(run[at]))
        .map(|(at, end)| {
            let nested = match run[at] {
                OUT_OF_LINE => leads_to(&run[..end]).map_or(0, Payload::outside_bytes),
                _ => 0,
            };
            (handle_at(run, end), outside_len(&run[at..]) + nested)
        })
}

/// The length of a blob, or of an element out of line; 0 for any other term.
#[inline]
fn outside_len(term: &[u8]) -> usize {
    match term[0] {
        BLOB | OUT_OF_LINE => varint::read(term, 1).0 as usize,
        _ => 0,
    }
}

/// Increments the count of each handle in a run of whole terms, of which there may be any number.
/// Call this for a copy of the run.
///
/// # Safety
/// An encoder wrote the run in this process, and somebody holds the counts of its handles during
/// the call.
pub unsafe fn retain_all(run: &[u8]) {
    for (handle, _) in handles(run) {
        // SAFETY:
        // 1. an encoder wrote the handle, so it came from `handle_of`;
        // 2. its count is held during the call: both the caller says.
        unsafe { retain(handle) }
    }
}

/// Decrements the count of each handle in a run of whole terms. What has no counts left is dropped
/// in this call.
///
/// # Safety
/// An encoder wrote the run in this process; the caller owns the counts of its handles, gives them
/// up, and lets nobody read the run's handles afterwards.
pub unsafe fn release_all(run: &[u8]) {
    for (handle, len) in handles(run) {
        // SAFETY:
        // 1. an encoder wrote the handle, so it came from `handle_of`;
        // 2. the count given back is the caller's own.
        drop(unsafe { adopt(handle, len) });
    }
}

/// The total length of the blobs in a run of whole terms, and in the elements out of line that it
/// leads to.
pub(crate) fn outside_bytes(run: &[u8]) -> usize {
    // As in `handles`: a short run has no blob.
    let run = if run.len() < SHORTEST_WITH_HANDLE {
        &[]
    } else {
        run
    };
    let binaries = |(at, end)| match run[at] {
        BLOB => outside_len(&run[at..]),
        OUT_OF_LINE => leads_to(&run[..end]).map_or(0, Payload::outside_bytes),
        _ => 0,
    };
    Heads::new(run).map(binaries).sum()
}

/// The handle at the end of a term, which is a `BLOB` or a `REF_KEPT`.
#[inline]
fn handle_in(term: TermRef<'_>) -> [u8; HANDLE] {
    debug_assert!(is_handle_tag(term.bytes()[0]));
    handle_at(term.bytes(), term.bytes().len())
}

/// The payload that the handle of a term leads to; `None` if it leads to an object of the host's.
#[inline]
pub(crate) fn payload(term: TermRef<'_>) -> Option<&Payload> {
    debug_assert!(is_handle_tag(term.bytes()[0]));
    leads_to(term.bytes())
}

/// The payload that the handle at the end of some bytes leads to; `None` if it leads to an object
/// of the host's.
#[inline]
fn leads_to(bytes: &[u8]) -> Option<&Payload> {
    match target(handle_at(bytes, bytes.len())) {
        // SAFETY:
        // 1. the callers saw a tag that says that the bytes end with a handle that an encoder
        //    wrote;
        // 2. whoever made the `TermRef`, or opened the object, promised that its count is held for
        //    the lifetime of the bytes, which is the result's.
        Target::Payload(pointer) => Some(unsafe { &*pointer }),
        Target::Host(_) => None,
    }
}

/// The term of an element that is stored out of line, given its stored bytes.
#[inline]
pub(crate) fn element(stored: &[u8]) -> &[u8] {
    debug_assert_eq!(stored[0], OUT_OF_LINE);
    leads_to(stored).map_or(&[], Payload::bytes)
}

/// The address of what the handle of a term leads to, if it is the host's.
#[inline]
pub(crate) fn host_address(term: TermRef<'_>) -> Option<usize> {
    match target(handle_in(term)) {
        Target::Payload(_) => None,
        Target::Host(address) => Some(address),
    }
}

/// Tells the host that a reference to its object is written in the external term format.
#[cfg(feature = "etf")]
pub(crate) fn exported(term: TermRef<'_>) {
    if let Some(address) = host_address(term) {
        // SAFETY: as in `payload`: the count is held meanwhile.
        unsafe { (host().exported)(address) }
    }
}

/// The bytes of a blob.
#[inline]
pub(crate) fn bytes(term: TermRef<'_>) -> &[u8] {
    match target(handle_in(term)) {
        // SAFETY: as in `payload`.
        Target::Payload(pointer) => unsafe { &*pointer }.bytes(),
        // SAFETY: as in `payload`; the host's binary has as many bytes as stand before the handle.
        Target::Host(address) => unsafe {
            std::slice::from_raw_parts((host().bytes)(address), outside_len(term.bytes()))
        },
    }
}

/// A counted pointer to what the handle of a term leads to, with a count of its own.
pub(crate) fn owned(term: TermRef<'_>) -> Kept {
    let handle = handle_in(term);
    // SAFETY: as in `payload`; the count that is taken is the result's.
    unsafe {
        retain(handle);
        adopt(handle, outside_len(term.bytes()))
    }
}

/// A run of whole terms that owns the counts of its handles.
///
/// Invariants: an encoder wrote `bytes`; `handles` is set if a handle is among them. Only
/// [`Counted::new`], [`Counted::fill`] and [`Counted::taking`] put bytes in.
#[derive(Debug, Default)]
pub(crate) struct Counted<B: AsRef<[u8]>> {
    bytes: B,
    handles: bool,
}

impl<B: AsRef<[u8]>> Counted<B> {
    /// A run without handles.
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
            // SAFETY:
            // 1. an encoder wrote the bytes;
            // 2. the counts are this value's own;
            // 3. `&mut self` shows that nobody borrows from it, and both callers drop or clear the
            //    bytes at once.
            unsafe { release_all(self.bytes.as_ref()) }
        }
    }
}

impl Counted<Box<[u8]>> {
    /// A copy of a run that takes over the counts of its handles. `handles` is set if there are
    /// any.
    ///
    /// # Safety
    /// An encoder wrote the run. The caller owns the counts of its handles, and gives them up.
    pub(crate) unsafe fn taking(run: &[u8], handles: bool) -> Self {
        let bytes = run.into();
        Counted { bytes, handles }
    }

    /// A copy of a term, with counts of its own.
    pub(crate) fn copy_of(term: TermRef<'_>) -> Self {
        let (bytes, handles) = (term.bytes().into(), term.has_handles());
        if handles {
            // SAFETY: whoever made the `TermRef` promised that an encoder wrote its bytes, and that
            // its counts are held meanwhile. The copy owns the new ones.
            unsafe { retain_all(term.bytes()) }
        }
        Counted { bytes, handles }
    }
}

impl Counted<Vec<u8>> {
    /// Empties it, keeping the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.release();
        self.bytes.clear();
    }

    /// The capacity of the buffer.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Replaces the run by what a closure encodes. Returns the closure's result, and whether it has
    /// encoded exactly one complete term.
    #[inline]
    pub(crate) fn fill<R>(
        &mut self,
        mode: Mode,
        push: impl FnOnce(&mut Encoder<'_>) -> R,
    ) -> (R, bool) {
        self.clear();
        // If the closure panics, the counts of what it has pushed are given back.
        self.handles = true;
        let place = &raw const self.bytes;
        let mut enc = Encoder::new(&mut self.bytes, mode);
        let result = push(&mut enc);
        // A term that is incomplete has no end, and two terms are no run of one.
        let complete = enc.is_complete() && enc.terms() == 1 && enc.appends_to(place);
        let handles = enc.has_handles();
        self.handles = handles;
        (result, complete)
    }

    /// The same run in a box.
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
            // SAFETY:
            // 1. an encoder wrote the bytes;
            // 2. `self` holds the counts during the call; the copy owns the new ones.
            unsafe { retain_all(self.bytes.as_ref()) }
        }
        Counted {
            bytes: self.bytes.clone(),
            handles: self.handles,
        }
    }
}
