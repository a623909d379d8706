//! Terms of the BEAM to stored bytes and back: one writer, one reader, and what is particular to
//! some kinds of terms.

pub mod atoms;
pub mod binaries;
pub mod buffer;
pub mod compact;
pub mod decode;
pub mod encode;
pub mod funs;
pub mod kept;
pub mod official;
pub mod same;
pub mod trees;

use crate::heap::Heap;
use crate::sys::*;
use larder_term::tags::TREE_MAP;
use larder_term::Mode;

/// Proves how maps lie; `heap` is that of the load callback.
pub fn prove_maps(heap: &Heap) {
    trees::prove(heap, &|word| tree_comes_back(heap, word));
}

/// Whether a large map that is written and read again is the same.
fn tree_comes_back(heap: &Heap, word: Word) -> bool {
    let mut stack = buffer::stack_bytes();
    let mut writer = encode::Writer::at(&mut stack, heap.env(), Mode::Shared);
    if writer.term(word).is_err() || writer.first() != Some(&TREE_MAP) {
        return false;
    }
    let again = decode::term(heap, writer.as_term());
    // SAFETY: both are terms of the environment.
    unsafe { enif_is_identical(word, again) != 0 }
}
