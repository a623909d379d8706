//! Binaries that are stored inline, and that the emulator doesn't keep on a heap: those of 65 to
//! 127 bytes.
//!
//! The emulator allocates a reference-counted binary for each, which takes longer than all else
//! that is done for it. So those that stand near each other in an object are copied to one such
//! binary, with what stands between them, and the terms are parts of it:
//!
//! ```text
//!  stored     … BIN 70 token | 17 | BIN 90 url | …
//!                      ╰──────────┬──────────╯
//!  the copy            token, 17, BIN 90, url      {token, 17, url}: parts 0..70 and 73..163
//! ```
//!
//! 1. The first such binary of a group looks ahead for the others (`end_of_group`), and makes the
//!    copy. The heap keeps it for the rest of the object ([`Heap::copied`]).
//! 2. Each binary of the group, this one and the later ones, becomes a part of the copy.
//!
//! A part that is kept keeps the others alive. So a copy never has more than [`MOST`] bytes, hardly
//! more than those of its parts, and none of another object.

use super::Reader;
use crate::heap::{CopiedBytes, Heap, MAX_HEAP_BINARY};
use crate::sys::*;
use larder_term::{fixed_len, tags::*};

/// The most bytes of a copy.
const MOST: usize = 1024;
/// The most bytes between two binaries of a copy.
const APART: usize = 32;
/// The most terms between two binaries of a copy.
const TERMS_APART: usize = 6;

/// Makes a binary of the next `len` bytes of the input, more than fit on a heap.
#[inline(never)]
pub fn binary(heap: &Heap, input: Reader<'_>, len: usize) -> Word {
    let bytes = input.bytes();
    let at = bytes.as_ptr() as usize;
    // The copy that was made last, by the addresses of the stored bytes that it has.
    let mut copied = heap.copied.get();
    // (1) This binary isn't in it, so another group begins here.
    if !(copied.from <= at && at + len <= copied.to) {
        let Some(end) = end_of_group(bytes, len) else {
            // No other one is near. It gets a binary of its own.
            return heap.counted_binary(&bytes[..len]);
        };
        copied = CopiedBytes {
            from: at,
            to: at + end,
            word: heap.counted_binary(&bytes[..end]),
        };
        heap.copied.set(copied);
    }
    // (2) The part of the copy that these bytes are.
    // SAFETY: the environment may be used; the term is a binary that was made in it, and has the
    // bytes.
    unsafe { enif_make_sub_binary(heap.env(), copied.word, at - copied.from, len) }
}

/// Step 1: where the group ends whose first binary is the first `len` bytes: after its last binary.
/// `None` if no other binary is near enough. After the object's last element there may be any
/// bytes.
fn end_of_group(bytes: &[u8], len: usize) -> Option<usize> {
    let most = bytes.len().min(MOST);
    // The group so far ends at `end`. After it are `terms` terms that are no such binaries, up to
    // `at`.
    let (mut at, mut end, mut terms) = (len, len, 0);
    while let Some(&tag) = bytes.get(at) {
        let (next, is_next) = match (tag, bytes.get(at + 1)) {
            (BIN, Some(&len @ ..0x80)) => {
                let len = usize::from(len);
                (at + 2 + len, len > MAX_HEAP_BINARY)
            }
            // Terms of other kinds would have to be walked over, so they end the group.
            _ => match fixed_len(tag) {
                0 => break,
                len => (at + len, false),
            },
        };
        if next > most {
            break;
        }
        at = next;
        if is_next {
            (end, terms) = (at, 0);
        } else {
            terms += 1;
            if terms > TERMS_APART || at - end > APART {
                break;
            }
        }
    }
    (end > len).then_some(end)
}
