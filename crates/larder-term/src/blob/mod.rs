//! What terms refer to outside of their bytes: shared binaries, anchors, and elements that are
//! stored out of line. All are reference-counted.
//!
//! ```text
//!  ... BLOB  length  handle ─┐     ... BLOB  length  handle ─┐
//!                            └──────────▶ Payload ◀──────────┘
//!
//!  ... BLOB  length  handle | 1 ───▶ a binary of the host's
//!  ... REF_KEPT words handle | 1 ──▶ an object of the host's
//! ```
//!
//! A payload has one count for each handle in any counted run of bytes. What is the host's is
//! counted as the host counts it (see [`HostObjects`]).
//!
//! Invariants: a handle in bytes that an [`crate::Encoder`] wrote owns one count. The owner of the
//! bytes owns these counts. [`crate::Term`], [`crate::TermBuf`] and [`crate::object::ObjectBuf`]
//! give them back when they are dropped. Whoever stores a copy of bytes takes counts of its own by
//! [`retain_all`], and gives them back by [`release_all`]. If bytes are lost without that, what
//! they refer to is leaked; nothing worse happens.

mod handles;
mod owner;
mod raw;
mod total;

pub use handles::{Counts, Handles};
#[cfg(feature = "etf")]
pub(crate) use raw::exported;
pub(crate) use raw::{
    bytes, element, handle_of, host_address, outside_bytes, owned, payload, Counted,
};
pub use raw::{release_all, retain_all};
pub use total::OutOfLineBytes;

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

/// The number of blobs, anchors and elements out of line that are alive in this process.
pub fn live_count() -> usize {
    // Ordering: Relaxed; a statistic. Tests that need it exact join their threads first.
    LIVE_COUNT.load(Ordering::Relaxed)
}

/// The total size of the blobs that are alive.
pub fn live_bytes() -> usize {
    // Ordering: Relaxed; a statistic, as in `live_count`.
    LIVE_BYTES.load(Ordering::Relaxed)
}

enum Content {
    Slice(Box<[u8]>),
    Owner(Owner),
    Anchor(Arc<dyn Any + Send + Sync>),
    Element(ElementOutOfLine),
}

/// The term of an element that is stored out of line.
struct ElementOutOfLine {
    term: Counted<Box<[u8]>>,
    /// The total size of the binaries to which the term has handles.
    outside: usize,
    /// Where its length is counted.
    total: Arc<OutOfLineBytes>,
}

/// The object that a handle refers to.
pub(crate) struct Payload {
    content: Content,
    len: usize,
}

impl Payload {
    fn new(content: Content) -> Arc<Payload> {
        let len = match &content {
            Content::Slice(bytes) => bytes.len(),
            Content::Owner(owner) => owner.bytes().len(),
            // A table counts the bytes of its elements itself.
            Content::Anchor(_) | Content::Element(_) => 0,
        };
        // Ordering: Relaxed twice; statistics, as in `live_count`.
        LIVE_COUNT.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(len, Ordering::Relaxed);
        Arc::new(Payload { content, len })
    }

    /// An element that is stored out of line. Its length is counted in `total` while it is alive.
    pub(crate) fn element(term: Counted<Box<[u8]>>, total: &Arc<OutOfLineBytes>) -> Arc<Payload> {
        total.add(term.bytes().len());
        let outside = match term.has_handles() {
            true => outside_bytes(term.bytes()),
            false => 0,
        };
        Payload::new(Content::Element(ElementOutOfLine {
            term,
            outside,
            total: Arc::clone(total),
        }))
    }

    /// The bytes of a blob, or of an element's term. An anchor has none.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Slice(bytes) => bytes,
            Content::Owner(owner) => owner.bytes(),
            Content::Anchor(_) => &[],
            Content::Element(element) => element.term.bytes(),
        }
    }

    /// The total size of the binaries to which an element's term has handles.
    fn outside_bytes(&self) -> usize {
        match &self.content {
            Content::Element(element) => element.outside,
            _ => 0,
        }
    }

    /// The owner of a blob's bytes, if it is of this type.
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
        if let Content::Element(ElementOutOfLine { term, total, .. }) = &self.content {
            total.subtract(term.bytes().len());
        }
    }
}

/// A binary that is reference-counted, by this library or by the host. Cloning takes a count, and
/// copies no bytes. Derefs to the bytes.
#[derive(Clone)]
pub struct Blob(pub(crate) Kept);

/// One count.
#[derive(Clone)]
pub(crate) enum Kept {
    /// A count of this library.
    Payload(Arc<Payload>),
    /// A count of an object of the host.
    Host(HostObject),
}

/// How the host counts references to its binaries, and to other objects that its references keep
/// alive. Their addresses, which are even numbers, identify them.
#[derive(Clone, Copy, Debug)]
pub struct HostObjects {
    /// Takes a count of an object, of which somebody holds a count.
    pub hold: unsafe fn(usize),
    /// Gives back a count.
    pub release: unsafe fn(usize),
    /// The address of the bytes of a binary. It is valid as long as somebody holds a count.
    pub bytes: unsafe fn(usize) -> *const u8,
    /// Called when a reference to an object is written in the external term format. It may be read
    /// again while the object is alive.
    pub exported: unsafe fn(usize),
}

static HOST: OnceLock<HostObjects> = OnceLock::new();

/// Sets how the host of this process counts references to its objects. Only the first call has an
/// effect.
///
/// # Safety
/// The functions do what their descriptions say, for addresses that were passed to
/// [`Blob::of_host`] or [`Anchor::of_host`], on any thread.
pub unsafe fn set_host_objects(host: HostObjects) {
    // A later call is ignored. Counts that were taken by the first functions must be given back by
    // them.
    let _the_first_counts = HOST.set(host);
}

/// A count of an object of the host.
///
/// Invariant: this value owns the count. If `len` isn't 0, the object is a binary of at least `len`
/// bytes.
pub(crate) struct HostObject {
    address: usize,
    len: usize,
}

impl Blob {
    /// A blob with a copy of these bytes.
    pub fn from_slice(bytes: &[u8]) -> Blob {
        Blob(Kept::Payload(Payload::new(Content::Slice(bytes.into()))))
    }

    /// A blob of the first `len` bytes of a binary of the host.
    ///
    /// # Safety
    /// The host has a binary at this even address (see [`set_host_objects`]), which has at least
    /// `len` bytes. The caller owns a count of it, and gives it up.
    #[inline]
    pub unsafe fn of_host(address: usize, len: usize) -> Blob {
        Blob(Kept::Host(HostObject { address, len }))
    }

    /// A blob of bytes that `owner` owns. Its `as_ref` must always return the same bytes: they are
    /// the value of the term.
    pub fn from_owner<T: AsRef<[u8]> + Any + Send + Sync>(owner: T) -> Blob {
        Blob(Kept::Payload(Payload::new(Content::Owner(Owner::new(
            owner,
        )))))
    }

    /// The owner that was passed to [`Blob::from_owner`], if it is of this type.
    pub fn owner<T: Any>(&self) -> Option<&T> {
        match &self.0 {
            Kept::Payload(payload) => payload.owner(),
            Kept::Host(_) => None,
        }
    }

    /// Converts the blob into a handle, which takes over the count. For callers that write encoded
    /// bytes themselves.
    #[inline]
    pub fn into_handle(self) -> [u8; HANDLE] {
        // The handle is the address of the payload or of the host's binary. It is written into
        // terms, which then own the count.
        handle_of(self.0)
    }

    /// Whether both are the same blob, not just blobs of equal bytes.
    pub fn same(&self, other: &Blob) -> bool {
        match (&self.0, &other.0) {
            (Kept::Payload(a), Kept::Payload(b)) => Arc::ptr_eq(a, b),
            // Two blobs may be different beginnings of one binary.
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

/// An object of the host that a stored reference keeps alive.
#[derive(Clone)]
pub struct Anchor(pub(crate) Kept);

impl Anchor {
    /// An anchor that keeps `kept` alive as long as there is a term with this anchor.
    pub fn new(kept: Arc<dyn Any + Send + Sync>) -> Anchor {
        Anchor(Kept::Payload(Payload::new(Content::Anchor(kept))))
    }

    /// An anchor that is a count of an object of the host.
    ///
    /// # Safety
    /// The host has an object at this even address (see [`set_host_objects`]). The caller owns a
    /// count of it, and gives it up.
    pub unsafe fn of_host(address: usize) -> Anchor {
        Anchor(Kept::Host(HostObject { address, len: 0 }))
    }

    /// Converts the anchor into a handle, like [`Blob::into_handle`].
    pub fn into_handle(self) -> [u8; HANDLE] {
        handle_of(self.0)
    }

    /// What the anchor keeps alive. `None` if that is an object of the host.
    pub fn kept(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        match &self.0 {
            Kept::Payload(payload) => match &payload.content {
                Content::Anchor(kept) => Some(kept),
                _ => None,
            },
            Kept::Host(_) => None,
        }
    }
}

impl fmt::Debug for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anchor(..)")
    }
}

/// Whether a run of complete terms, which an encoder wrote, contains a handle.
///
/// # Complexity
/// Linear in the heads of the run. Constant if the run is too short to contain a handle.
pub fn has_handles(run: &[u8]) -> bool {
    run.len() >= SHORTEST_WITH_HANDLE && Heads::new(run).any(|(at, _)| is_handle_tag(run[at]))
}

#[inline]
pub(crate) fn is_handle_tag(tag: u8) -> bool {
    matches!(tag, BLOB | REF_KEPT | OUT_OF_LINE)
}
