//! Capacities of leaves of the B+-tree.

use crate::btree::leaf::memory;
use crate::config::{size_class, LeafConfig};

/// Leaves with less content than this grow twofold.
const SMALL_LEAF: usize = 1200;

impl LeafConfig {
    /// The maximum content of a leaf with a prefix of this length, in bytes. Content and prefix
    /// together are limited, so that the largest leaves have one size. A long prefix doesn't count:
    /// it would leave too little room.
    pub(crate) fn most_beside(&self, prefix: usize) -> usize {
        let prefix = prefix.next_multiple_of(8);
        if prefix <= self.most / 8 {
            self.most - prefix
        } else {
            self.most
        }
    }

    /// The capacity of a leaf with a prefix of this length for `need` bytes of content, which will
    /// soon be `soon` bytes, if that is more. The memory of the leaf is a size class of the
    /// allocator, so that none is wasted.
    pub(crate) fn capacity_for(&self, need: usize, soon: usize, prefix: usize) -> usize {
        let most = self.most_beside(prefix);
        if need >= most {
            return need.next_multiple_of(8);
        }
        // Leave room for two fifths more, so that a leaf isn't replaced at each insert; for as much
        // again in a small leaf, which is mostly a small table; or for what will come, and an
        // eighth more, as some leaves get more than others.
        let more = match need {
            ..SMALL_LEAF => need,
            _ => need * 2 / 5,
        };
        let step = need + more + 32;
        let request = match soon > need {
            true => step.max(soon.min(most) + soon.min(most) / 8),
            false => step,
        };
        let around = memory(0, prefix);
        let class = size_class(memory(request, prefix));
        // The capacity is what the size class has beside head, prefix and samples. Samples take one
        // byte per 64 bytes of content.
        let content = (class - around) * 64 / 65 / 8 * 8;
        content.min(most).max(need.next_multiple_of(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last bytes of a leaf are in a word even if its size is no whole number of words.
    #[test]
    fn leaves_of_any_size_have_room() {
        for most in [160, 161, 999, 1003, LeafConfig::default().most] {
            let config = LeafConfig {
                most,
                ..LeafConfig::default()
            };
            for prefix in [0, 5, 40, 700] {
                assert!((1..most + 50).all(|need| config.capacity_for(need, need, prefix) >= need));
            }
        }
    }
}
