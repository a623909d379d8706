//! Ranges of strings, counted by what is before their bounds.

use std::ops::{Bound, RangeBounds};

/// How many of `len` strings there are in a range. `rank` tells how many are before a string, or up
/// to it where it is asked inclusively.
pub(crate) fn count_between(
    range: impl RangeBounds<[u8]>,
    len: u64,
    rank: impl Fn(&[u8], bool) -> u64,
) -> u64 {
    // A bound that is inside the range counts what is before it at the low end, and what is up to
    // it at the high end.
    let from = match range.start_bound() {
        Bound::Unbounded => 0,
        Bound::Included(key) => rank(key, false),
        Bound::Excluded(key) => rank(key, true),
    };
    let to = match range.end_bound() {
        Bound::Unbounded => len,
        Bound::Included(key) => rank(key, true),
        Bound::Excluded(key) => rank(key, false),
    };
    to.saturating_sub(from)
}
