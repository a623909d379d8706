//! What lies outside the bytes of a term: shared binaries and anchors, counted.
//!
//! ```text
//!  ... BLOB  length  handle ─┐     ... BLOB  length  handle ─┐
//!                            └──────────▶ Payload ◀──────────┘      one count for each handle in any counted run of bytes
//! ```
//!
//! Invariants: a handle in bytes that an [`crate::Encoder`] wrote owns one count. Whoever owns the bytes owns those counts:
//! [`crate::Term`], [`crate::TermBuf`] and [`crate::object::ObjectBuf`] give them back when dropped; whoever copies bytes to keep them
//! takes counts of its own with [`retain_all`] and gives them back with [`release_all`]. Bytes that are lost without it leak what
//! they refer to, and nothing worse.

mod handles;
mod raw;

pub use handles::{Counts, Handles};
pub(crate) use raw::{clear_value, handle_of, outside_bytes, owned_payload, payload, Counted};
pub use raw::{release_all, retain_all};

use crate::{skip::Heads, tags::*};
use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
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

trait Owner: Send + Sync {
    fn bytes(&self) -> &[u8];
    fn any(&self) -> &dyn Any;
}

impl<T: AsRef<[u8]> + Any + Send + Sync> Owner for T {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }
    fn any(&self) -> &dyn Any {
        self
    }
}

enum Content {
    Slice(Box<[u8]>),
    Owner(Box<dyn Owner>),
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

impl Drop for Payload {
    fn drop(&mut self) {
        // Ordering: Relaxed twice; statistics, as in `live_count`.
        LIVE_COUNT.fetch_sub(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// A binary kept once and counted. Cloning takes a count, no copy. Derefs to its bytes.
#[derive(Clone)]
pub struct Blob(pub(crate) Arc<Payload>);

impl Blob {
    /// A blob with a copy of these bytes.
    pub fn from_slice(bytes: &[u8]) -> Blob {
        Blob(Payload::new(Content::Slice(bytes.into())))
    }

    /// A blob whose bytes lie in something that a door owns. Its `as_ref` must give the same bytes each time: they are the term's value.
    pub fn from_owner<T: AsRef<[u8]> + Any + Send + Sync>(owner: T) -> Blob {
        Blob(Payload::new(Content::Owner(Box::new(owner))))
    }

    /// The owner that [`Blob::from_owner`] was given, if it is of this type.
    pub fn owner<T: Any>(&self) -> Option<&T> {
        match &self.0.content {
            Content::Owner(owner) => owner.any().downcast_ref(),
            _ => None,
        }
    }

    /// Whether both are the same blob, not only equal bytes.
    pub fn same(&self, other: &Blob) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Blob {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
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
