//! Binaries that rows share with the emulator.
//!
//! If a binary of more than 127 bytes is already reference-counted by the emulator, it isn't copied
//! into a table. The table takes a count of it, and returns terms that refer to the same bytes.
//! There are two exceptions, which are copied: a small part of a large binary, which would keep all
//! of it alive; and a binary to which the emulator may still append. Copies are also binaries of
//! the emulator, so they are returned without another copy.

use crate::layout::{self, Bits, Counted, SharedBinary};
use crate::resource::Registered;
use crate::sys::*;
use larder_term::blob::Blob;
use larder_term::TermRef;

/// The resource type of the engine's own blobs, to which binaries of the host refer.
pub static BLOBS: Registered<Blob> = Registered::new();

/// A part of a binary is copied if the whole has more than this many times its bytes.
const MOST_OF_WHOLE: usize = 2;

/// Some bytes of a reference-counted binary.
///
/// Invariant: this owns one count, and the bytes belong to the binary.
struct CountedBytes {
    counted: *mut Counted,
    bytes: *const u8,
    len: usize,
}

// SAFETY: the bytes don't change while a count is held, and the count is atomic.
unsafe impl Send for CountedBytes {}
// SAFETY: as above.
unsafe impl Sync for CountedBytes {}

impl AsRef<[u8]> for CountedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the invariant.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        // SAFETY: the count is this value's, given back once.
        unsafe { layout::release(self.counted, self.bytes, self.len) }
    }
}

/// Makes a blob of these bytes, which belong to the shared binary, if there is one.
pub fn blob(bytes: &[u8], shared: Option<SharedBinary>) -> Blob {
    match shared {
        Some(shared) if is_kept(bytes, &shared) => {
            // SAFETY: the term that was read holds the binary during the call.
            unsafe { layout::retain(shared.binary) }
            // For the beginning of the binary, the count is sufficient: the address of its bytes is
            // known from the binary.
            if bytes.as_ptr() == shared.whole.0 {
                // SAFETY: the bytes are the binary's first, and the count is the blob's.
                return unsafe { Blob::of_host(shared.binary as usize, bytes.len()) };
            }
            Blob::from_owner(CountedBytes {
                counted: shared.binary,
                bytes: bytes.as_ptr(),
                len: bytes.len(),
            })
        }
        _ => copy(bytes),
    }
}

/// Tells the emulator not to append to a binary any more. From then on it copies the bytes when it
/// appends, as after an insert into a table of `ets`. The bytes may have moved.
#[cold]
pub fn no_longer_written<'a>(env: *mut Env, word: Word) -> Option<Bits<'a>> {
    let mut binary = Binary::empty();
    // SAFETY: `env` and the term are the running call's. The call gives where the bytes are, so it
    // sees to it that they stay there.
    unsafe { enif_inspect_binary(env, word, &mut binary) };
    layout::bits(word)
}

fn is_kept(bytes: &[u8], shared: &SharedBinary) -> bool {
    let (start, size) = shared.whole;
    !shared.is_written
        && size <= bytes.len().saturating_mul(MOST_OF_WHOLE)
        // Otherwise a term that is made of the count would have other bytes: those of a resource
        // are elsewhere.
        && layout::is_whole(shared.binary, start)
}

/// Whether a binary or bitstring keeps hardly more than its own bytes alive.
#[inline]
pub fn is_most_of_its_binary(word: Word) -> bool {
    layout::bits(word).is_some_and(|bits| {
        let most = bits.bytes.len().saturating_mul(MOST_OF_WHOLE);
        bits.shared.is_none_or(|shared| shared.whole.1 <= most)
    })
}

/// Makes a blob of a copy.
fn copy(bytes: &[u8]) -> Blob {
    if !layout::are_counts_known() {
        return Blob::from_slice(bytes);
    }
    let mut binary = Binary::empty();
    // SAFETY: on success the call gives memory for as many bytes as asked, and a count of it, which
    // are nobody else's.
    unsafe {
        if enif_alloc_binary(bytes.len(), &mut binary) == 0 {
            return Blob::from_slice(bytes);
        }
        binary
            .data
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    // SAFETY: as many bytes were asked for, and the count is the blob's.
    unsafe { Blob::of_host(binary.counted as usize, bytes.len()) }
}

/// Makes the binary to which a stored blob refers.
pub fn term(env: *mut Env, term: TermRef<'_>, len: usize) -> Option<Word> {
    if let Some(address) = term.host_object() {
        // SAFETY: the stored term holds the binary during the call, and this is the number of its
        // bytes.
        return unsafe {
            of_counted(
                env,
                address as *mut Counted,
                layout::own_bytes(address),
                len,
            )
        };
    }
    match term.blob_owner::<CountedBytes>() {
        // SAFETY: as above.
        Some(held) => unsafe { of_counted(env, held.counted, held.bytes, held.len) },
        None => term.blob().map(|blob| resource_binary(env, blob)),
    }
}

/// Makes a binary of some bytes of a reference-counted one.
///
/// # Safety
/// Somebody holds the reference-counted binary during the call, and the bytes belong to it.
unsafe fn of_counted(
    env: *mut Env,
    counted: *mut Counted,
    bytes: *const u8,
    len: usize,
) -> Option<Word> {
    // SAFETY: the caller's promise; the count that is added is the new term's.
    let word = unsafe {
        layout::retain(counted);
        layout::counted_term(env, counted, bytes, len)
    };
    // A term of the count is the whole binary. For a part, make a part of that term.
    let whole = layout::bits(word)?.bytes;
    if whole.len() == len {
        return Some(word);
    }
    let offset = bytes as usize - whole.as_ptr() as usize;
    // SAFETY: the bytes lie in the whole.
    Some(unsafe { enif_make_sub_binary(env, word, offset, len) })
}

/// Makes a binary that refers to a blob of the engine's own.
#[cold]
fn resource_binary(env: *mut Env, blob: Blob) -> Word {
    let (data, size) = (blob.as_ptr(), blob.len());
    let held = BLOBS.make(blob);
    // SAFETY: the bytes are the blob's, which the resource holds; a blob neither moves nor changes.
    unsafe { held.binary(env, data, size) }
}

/// The bytes of a binary. They live until the running call ends. `None` if the term isn't a binary.
#[inline]
pub fn bytes<'a>(env: *mut Env, word: Word) -> Option<&'a [u8]> {
    match layout::heap_binary(word) {
        Some(bytes) => Some(bytes),
        None => any_bytes(env, word),
    }
}

fn any_bytes<'a>(env: *mut Env, word: Word) -> Option<&'a [u8]> {
    let mut binary = Binary::empty();
    // SAFETY: `env` and the term are the running call's.
    if unsafe { enif_inspect_binary(env, word, &mut binary) } == 0 {
        return None;
    }
    if binary.size == 0 {
        return Some(&[]);
    }
    // SAFETY: on success there are `size` bytes at `data`, alive as long as the term and the call.
    Some(unsafe { std::slice::from_raw_parts(binary.data, binary.size) })
}
