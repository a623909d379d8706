//! Sizes of leaves.

/// Sizes of leaves. Use the default. Tests use tiny leaves, so that these split and merge often.
#[derive(Clone, Copy, Debug)]
pub struct LeafConfig {
    /// The maximum content of a leaf in bytes, at most 2^18. A leaf that needs more splits. In key
    /// order, a leaf may become up to seven times as large when its prefix gets shorter; offsets
    /// have 21 bits.
    pub most: usize,
    /// The content of the first leaf in bytes.
    pub first: usize,
    /// The maximum number of children of an inner node, in key order.
    pub fanout: usize,
}

impl Default for LeafConfig {
    fn default() -> Self {
        LeafConfig {
            most: 4096 - 120,
            first: 64,
            fanout: 64,
        }
    }
}

impl LeafConfig {
    /// The smallest sizes that work: leaves of a few entries.
    pub fn tiny() -> Self {
        LeafConfig {
            most: 160,
            first: 32,
            fanout: 4,
        }
    }
}

/// The smallest size class of leaves for this number of bytes. There are four classes between two
/// powers of two, as in mimalloc.
pub(crate) fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 8).max(16);
    bytes.next_multiple_of(step)
}
