//! What a run of whole terms holds somewhere.

use crate::{host::tree_maps, skip::Heads, tags::*};

/// Whether the head of a float is that of −0.0.
#[inline]
pub(crate) fn is_negative_zero(head: &[u8]) -> bool {
    head.len() == 9 && head[8] == 0x80 && head[1..8] == [0; 7]
}

/// Whether a −0.0 lies somewhere in a term.
pub(crate) fn has_negative_zero(bytes: &[u8]) -> bool {
    bytes.len() >= 9
        && Heads::new(bytes)
            .any(|(at, end)| bytes[at] == FLOAT && is_negative_zero(&bytes[at..end]))
}

/// Whether a map in the order of the host's tree lies somewhere in a run of whole terms.
pub(crate) fn has_tree_map(run: &[u8]) -> bool {
    tree_maps() && run.len() >= SHORTEST_TREE && Heads::new(run).any(|(at, _)| run[at] == TREE_MAP)
}

/// No map in the order of the host's tree is shorter: it has 33 pairs at least.
const SHORTEST_TREE: usize = 2 * 33;
