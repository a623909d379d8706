//! Identity of stored objects: whether two are exactly equal (`=:=`).
//!
//! An object has one canonical encoding in most cases. Then two objects are identical if and only
//! if their bytes are equal. There are exceptions:
//!
//! | exception | why bytes may differ |
//! |---|---|
//! | handles | equal binaries may be stored as different blobs |
//! | large maps | a map of more than 32 pairs may be stored in tree form or in canonical form |
//! | zeros | hosts before OTP 27 take -0.0 and 0.0 for the same |
//!
//! If none of them is possible, bytes decide. Otherwise the elements are compared as terms.

use crate::raw;
use crate::table::EngineTable;
use larder_term::object::COMPRESSED;
use larder_term::tags::TREE_MAP;

impl EngineTable {
    /// Whether two values under one key are the same object (`=:=`).
    #[inline]
    pub(crate) fn same(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        a == b
            || ((raw::has_handles(a)
                || raw::has_handles(b)
                || may_hold_large_maps(a, b)
                || may_be_zeros(a, b))
                && self.same_elements(key, a, b))
    }

    /// Compares the elements as terms.
    #[cold]
    fn same_elements(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        let (mut plain_a, mut plain_b) = (Vec::new(), Vec::new());
        let a = raw::view(key, a, self.keypos(), &mut plain_a);
        let b = raw::view(key, b, self.keypos(), &mut plain_b);
        a.identical(&b)
    }
}

/// Whether values with different bytes may be identical because of a large map.
#[inline]
fn may_hold_large_maps(a: &[u8], b: &[u8]) -> bool {
    // A large map has at least 33 keys and 33 values, of at least one byte each.
    const SHORTEST: usize = 2 * 33;
    // In two maps of the canonical form the bytes decide. So one of both must have a tree, or be
    // compressed, so that its bytes say nothing.
    let may_have_tree = |value: &[u8]| value[0] & COMPRESSED != 0 || value.contains(&TREE_MAP);
    a.len().min(b.len()) >= SHORTEST
        && larder_term::tree_maps()
        && (may_have_tree(a) || may_have_tree(b))
}

/// Whether values with different bytes may be identical because the host's `=:=` takes -0.0 and 0.0
/// for the same. The first difference of such values is in the flags (one has an exact key, or is
/// compressed) or is the sign of a zero.
fn may_be_zeros(a: &[u8], b: &[u8]) -> bool {
    larder_term::legacy_zero()
        && match a.iter().zip(b).enumerate().find(|(_, (x, y))| x != y) {
            // The flags are in the first byte.
            Some((0, _)) => true,
            // The sign is the highest bit of a float's first byte. The other bits of that byte are
            // zero in a zero. If both are compressed, the bytes say nothing.
            Some((_, (x, y))) => x ^ y == 0x80 && x & y == 0 || a[0] & COMPRESSED != 0,
            None => false,
        }
}
