//! Whether two stored objects are the same (`=:=`).

use crate::raw;
use crate::table::Table;
use larder_term::object::COMPRESSED;

impl Table {
    /// Whether two values under one key are the same object (`=:=`). Bytes decide, but where
    /// handles or a zero's sign are in the way.
    #[inline]
    pub(crate) fn same(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        a == b
            || ((raw::has_handles(a)
                || raw::has_handles(b)
                || may_hold_large_maps(a, b)
                || may_be_zeros(a, b))
                && self.same_elements(key, a, b))
    }

    #[cold]
    fn same_elements(&self, key: &[u8], a: &[u8], b: &[u8]) -> bool {
        let (mut plain_a, mut plain_b) = (Vec::new(), Vec::new());
        let a = raw::view(key, a, self.keypos(), &mut plain_a);
        let b = raw::view(key, b, self.keypos(), &mut plain_b);
        a.identical(&b)
    }
}

/// Whether different values may be identical because a large map in them has two forms.
#[inline]
fn may_hold_large_maps(a: &[u8], b: &[u8]) -> bool {
    // So many bytes at least for its keys and values.
    const SHORTEST: usize = 2 * 33;
    a.len().min(b.len()) >= SHORTEST && larder_term::tree_maps()
}

/// Whether different values may be identical because the host's `=:=` takes -0.0 for 0.0: then they
/// differ first in their flags (one keeps its exact key, or is compressed), or in the sign of a
/// float.
fn may_be_zeros(a: &[u8], b: &[u8]) -> bool {
    larder_term::legacy_zero()
        && match a.iter().zip(b).enumerate().find(|(_, (x, y))| x != y) {
            Some((0, _)) => true,
            Some((_, (x, y))) => x ^ y == 0x80 && x & y == 0 || a[0] & COMPRESSED != 0,
            None => false,
        }
}
