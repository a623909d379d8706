//! Searching a run of whole terms for certain kinds of terms.

use crate::{host::tree_maps, skip::Heads, tags::*};

/// Whether the head of a float is that of −0.0.
#[inline]
pub(crate) fn is_negative_zero(head: &[u8]) -> bool {
    head.len() == 9 && head[8] == 0x80 && head[1..8] == [0; 7]
}

/// Whether the head of a float is that of 0.0 or of −0.0.
#[inline]
pub(crate) fn is_zero(head: &[u8]) -> bool {
    head.len() == 9 && head[8] & 0x7F == 0 && head[1..8] == [0; 7]
}

/// Whether a run contains a −0.0.
pub(crate) fn has_negative_zero(bytes: &[u8]) -> bool {
    bytes.len() >= 9
        && Heads::new(bytes)
            .any(|(at, end)| bytes[at] == FLOAT && is_negative_zero(&bytes[at..end]))
}

/// Whether a run contains a map in the order of the host's tree.
pub(crate) fn has_tree_map(run: &[u8]) -> bool {
    tree_maps() && run.len() >= SHORTEST_TREE && Heads::new(run).any(|(at, _)| run[at] == TREE_MAP)
}

/// No map in the order of the host's tree is shorter than this: it has at least 33 pairs.
const SHORTEST_TREE: usize = 2 * 33;
