//! What lies outside the bytes of a term: shared binaries and anchors, counted.
//!
//! ```text
//!  ... BLOB  length  handle ─┐     ... BLOB  length  handle ─┐
//!                            └──────────▶ Payload ◀──────────┘      one count for each handle in any counted run of bytes
//!
//!  ... BLOB  length  handle | 1 ───▶ a binary of the host's         counted as the host counts it (see [`HostBinaries`])
//! ```
//!
//! Invariants: a handle in bytes that an [`crate::Encoder`] wrote owns one count. Whoever owns the
//! bytes owns those counts: [`crate::Term`], [`crate::TermBuf`] and [`crate::object::ObjectBuf`]
//! give them back when dropped; whoever copies bytes to keep them takes counts of its own with
//! [`retain_all`] and gives them back with [`release_all`]. Bytes that are lost without it leak
//! what they refer to, and nothing worse.

mod handles;
mod owner;
mod raw;

pub use handles::{Counts, Handles};
pub(crate) use raw::{
    bytes, clear_value, handle_of, host_address, outside_bytes, owned, payload, Counted,
};
pub use raw::{release_all, retain_all};

use crate::{skip::Heads, tags::*};
use owner::Owner;
use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, OnceLock,
    },
};

static LIVE_COUNT: AtomicUsize = AtomicUsize::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// How many blobs and anchors are alive in this process.
pub fn live_count() -> usize {
    // Ordering: Relaxed; a statistic. Tests that need it exact join their threads first.
    LIVE_COUNT.load(Ordering::Relaxed)
}

/// How many bytes the living blobs hold.
pub fn live_bytes() -> usize {
    // Ordering: Relaxed; a statistic, as in `live_count`.
    LIVE_BYTES.load(Ordering::Relaxed)
}

enum Content {
    Slice(Box<[u8]>),
    Owner(Owner),
    Anchor(Arc<dyn Any + Send + Sync>),
}

/// What a handle refers to.
pub(crate) struct Payload {
    content: Content,
    len: usize,
}

impl Payload {
    fn new(content: Content) -> Arc<Payload> {
        let len = match &content {
            Content::Slice(bytes) => bytes.len(),
            Content::Owner(owner) => owner.bytes().len(),
            Content::Anchor(_) => 0,
        };
        // Ordering: Relaxed twice; statistics, as in `live_count`.
        LIVE_COUNT.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(len, Ordering::Relaxed);
        Arc::new(Payload { content, len })
    }

    /// The bytes of a blob; none for an anchor.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Slice(bytes) => bytes,
            Content::Owner(owner) => owner.bytes(),
            Content::Anchor(_) => &[],
        }
    }
}

impl Payload {
    /// The host's owner of a blob's bytes, if it is of this type.
    #[inline]
    pub(crate) fn owner<T: Any>(&self) -> Option<&T> {
        match &self.content {
            Content::Owner(owner) => owner.value(),
            _ => None,
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // Ordering: Relaxed twice; statistics, as in `live_count`.
        LIVE_COUNT.fetch_sub(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// A binary that is counted, by this library or by the host. Cloning takes a count, no copy. Derefs
/// to its bytes.
#[derive(Clone)]
pub struct Blob(pub(crate) Kept);

/// One count.
#[derive(Clone)]
pub(crate) enum Kept {
    /// On something of this library's.
    Payload(Arc<Payload>),
    /// On a binary of the host's.
    Host(HostBinary),
}

/// How a host counts binaries of its own, which are named by their addresses, even numbers.
#[derive(Clone, Copy, Debug)]
pub struct HostBinaries {
    /// Takes one more count of a binary that somebody holds.
    pub hold: unsafe fn(usize),
    /// Gives one count back.
    pub release: unsafe fn(usize),
    /// Where the bytes of a binary begin, for as long as somebody holds it.
    pub bytes: unsafe fn(usize) -> *const u8,
}

static HOST: OnceLock<HostBinaries> = OnceLock::new();

/// Says how the host of this process counts its binaries. A later call changes nothing.
///
/// # Safety
/// The functions do what is said of them, for addresses that [`Blob::of_host`] was given, on any
/// thread.
pub unsafe fn set_host_binaries(host: HostBinaries) {
    let _the_first_counts = HOST.set(host);
}

/// A count on a binary of the host's.
///
/// Invariant: it is this value's to give back; the binary has so many bytes at least.
pub(crate) struct HostBinary {
    address: usize,
    len: usize,
}

impl Blob {
    /// A blob with a copy of these bytes.
    pub fn from_slice(bytes: &[u8]) -> Blob {
        Blob(Kept::Payload(Payload::new(Content::Slice(bytes.into()))))
    }

    /// The first bytes of a binary that the host counts.
    ///
    /// # Safety
    /// The host counts a binary at this even address (see [`set_host_binaries`]), which has so many
    /// bytes at least; the caller gives one count of it up.
    #[inline]
    pub unsafe fn of_host(address: usize, len: usize) -> Blob {
        Blob(Kept::Host(HostBinary { address, len }))
    }

    /// A blob whose bytes lie in something that the host owns. Its `as_ref` must give the same
    /// bytes each time: they are the term's value.
    pub fn from_owner<T: AsRef<[u8]> + Any + Send + Sync>(owner: T) -> Blob {
        Blob(Kept::Payload(Payload::new(Content::Owner(Owner::new(
            owner,
        )))))
    }

    /// The owner that [`Blob::from_owner`] was given, if it is of this type.
    pub fn owner<T: Any>(&self) -> Option<&T> {
        match &self.0 {
            Kept::Payload(payload) => payload.owner(),
            Kept::Host(_) => None,
        }
    }

    /// The handle of the blob, for those who write bytes themselves: it owns the count that this
    /// was.
    #[inline]
    pub fn into_handle(self) -> [u8; HANDLE] {
        handle_of(self.0)
    }

    /// Whether both are the same blob, not only equal bytes.
    pub fn same(&self, other: &Blob) -> bool {
        match (&self.0, &other.0) {
            (Kept::Payload(a), Kept::Payload(b)) => Arc::ptr_eq(a, b),
            (Kept::Host(a), Kept::Host(b)) => (a.address, a.len) == (b.address, b.len),
            _ => false,
        }
    }
}

impl Deref for Blob {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Payload(payload) => payload.bytes(),
            Kept::Host(binary) => binary.bytes(),
        }
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.len())
    }
}

/// Something of the host that a stored reference keeps alive.
#[derive(Clone)]
pub struct Anchor(pub(crate) Arc<Payload>);

impl Anchor {
    /// An anchor that holds `kept` until the last term with it is gone.
    pub fn new(kept: Arc<dyn Any + Send + Sync>) -> Anchor {
        Anchor(Payload::new(Content::Anchor(kept)))
    }

    /// The handle of the anchor, as [`Blob::into_handle`].
    pub fn into_handle(self) -> [u8; HANDLE] {
        handle_of(Kept::Payload(self.0))
    }

    /// What it holds.
    pub fn kept(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        match &self.0.content {
            Content::Anchor(kept) => Some(kept),
            _ => None,
        }
    }
}

impl fmt::Debug for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anchor(..)")
    }
}

/// Whether a run of whole terms that an encoder wrote holds a handle.
///
/// # Complexity
/// Linear in the heads of the run; constant when it is too short to hold one.
pub fn has_handles(run: &[u8]) -> bool {
    run.len() >= SHORTEST_WITH_HANDLE && Heads::new(run).any(|(at, _)| is_handle_tag(run[at]))
}

#[inline]
pub(crate) fn is_handle_tag(tag: u8) -> bool {
    tag == BLOB || tag == REF_KEPT
}
