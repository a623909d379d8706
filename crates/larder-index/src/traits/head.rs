//! How much of a value is read.

/// The number of bytes of a value that a scan copies if the caller needs the values' heads alone.
pub const HEAD: usize = 8;

/// The number of bytes of a value that a caller needs: with `heads`, those of its head.
#[inline]
pub(super) fn value_limit(heads: bool) -> usize {
    if heads {
        HEAD
    } else {
        usize::MAX
    }
}
