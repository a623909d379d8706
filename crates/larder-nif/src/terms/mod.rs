//! Encoding terms of the BEAM as stored bytes, and decoding them: one writer, one reader, and
//! modules for particular kinds of terms.

pub mod atoms;
pub mod binaries;
pub mod buffer;
pub mod compact;
pub mod decode;
pub mod encode;
pub mod foreign;
pub mod funs;
pub mod kept;
pub mod official;
mod recent;
pub mod same;
pub mod trees;

use crate::heap::Heap;
use crate::sys::*;
pub use kept::share_counts;
use larder_term::tags::TREE_MAP;
use larder_term::Mode;

/// Verifies the layout of maps. `heap` is that of the load callback.
pub fn prove_maps(heap: &Heap) {
    trees::prove(heap, &|word| tree_comes_back(heap, word));
}

/// Whether a large map is the same after it has been encoded and decoded.
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
