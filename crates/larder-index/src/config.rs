//! Sizes of leaves.

/// Sizes of leaves. The default is right for all but tests, which make leaves tiny so that they
/// split and merge all the time.
#[derive(Clone, Copy, Debug)]
pub struct LeafConfig {
    /// Bytes of content at which a leaf splits.
    pub most: usize,
    /// Bytes of content of the first leaf.
    pub first: usize,
    /// Children of an inner node of the key order, at most.
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

/// The least of a leaf's sizes for so many bytes: they are a quarter of a power of two apart, as
/// mimalloc's are, and those in regions whole units.
pub(crate) fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 8).max(16);
    bytes.next_multiple_of(step)
}
