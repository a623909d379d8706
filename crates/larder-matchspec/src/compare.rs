//! Comparisons, of integers and of terms.

use crate::func::Cmp;
use larder_term::TermRef;
use std::cmp::Ordering;

/// Compares two integers of 64 bits.
#[inline]
pub(crate) fn compare_ints(cmp: Cmp, a: i64, b: i64) -> bool {
    match cmp {
        Cmp::Same => a == b,
        Cmp::NotSame => a != b,
        _ => holds(cmp, a.cmp(&b)),
    }
}

/// Compares two terms.
pub(crate) fn compare_flat(cmp: Cmp, a: TermRef<'_>, b: TermRef<'_>) -> bool {
    let order = match cmp {
        Cmp::Same | Cmp::NotSame => return a.identical(b) == (cmp == Cmp::Same),
        // Equality needs no order, and is decided by the first difference.
        Cmp::Eq | Cmp::Ne if a.eq_term(b) => Ordering::Equal,
        Cmp::Eq | Cmp::Ne => Ordering::Less,
        _ => a.cmp_term(b),
    };
    holds(cmp, order)
}

/// Whether a comparison holds for two terms that are in this order.
#[inline]
pub(crate) fn holds(cmp: Cmp, order: Ordering) -> bool {
    match cmp {
        Cmp::Gt => order.is_gt(),
        Cmp::Ge => order.is_ge(),
        Cmp::Lt => order.is_lt(),
        Cmp::Le => order.is_le(),
        Cmp::Eq | Cmp::Same => order.is_eq(),
        Cmp::Ne | Cmp::NotSame => order.is_ne(),
    }
}
