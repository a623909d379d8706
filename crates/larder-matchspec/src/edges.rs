//! Ends of ranges of order keys.

use larder_term::order_key;
use std::{cmp::Ordering, ops::Bound};

/// An end of a range of order keys.
pub(crate) type Edge = Bound<Vec<u8>>;

/// Turns a range of what follows a prefix into a range of order keys. (No order key begins with
/// 0xFF. So what follows an end within the prefix also begins with the prefix.)
pub(crate) fn within(prefix: Vec<u8>, (low, high): (Edge, Edge)) -> (Edge, Edge) {
    // All keys that begin with the prefix.
    if let (Bound::Unbounded, Bound::Unbounded, false) = (&low, &high, prefix.is_empty()) {
        return (Bound::Included(prefix.clone()), after(prefix));
    }
    // An end is what follows the prefix. The order keys of the parts lie one behind the other, so
    // both are concatenated.
    let put = |end: Vec<u8>| [&prefix[..], &end].concat();
    let low = match low {
        Bound::Unbounded if prefix.is_empty() => low,
        Bound::Unbounded => Bound::Included(prefix.clone()),
        end => end.map(put),
    };
    let high = match high {
        Bound::Unbounded if prefix.is_empty() => high,
        Bound::Unbounded => after(prefix.clone()),
        end => end.map(put),
    };
    (low, high)
}

/// The upper end of all order keys that begin with a prefix.
pub(crate) fn after(mut prefix: Vec<u8>) -> Edge {
    match order_key::successor(&mut prefix) {
        true => Bound::Excluded(prefix),
        false => Bound::Unbounded,
    }
}

/// The lower end of all order keys beyond such an end.
pub(crate) fn from_beyond(end: Edge) -> Edge {
    match end {
        Bound::Excluded(bytes) => Bound::Included(bytes),
        // No order key begins with 0xFF.
        _ => Bound::Included(vec![0xFF]),
    }
}

fn low_order(a: &Edge, b: &Edge) -> Ordering {
    // An excluded bound lies behind an included one at the same bytes.
    fn place(edge: &Edge) -> (&[u8], u8) {
        match edge {
            Bound::Unbounded => (&[], 0),
            Bound::Included(bytes) => (bytes, 0),
            Bound::Excluded(bytes) => (bytes, 1),
        }
    }
    place(a).cmp(&place(b))
}

fn high_order(a: &Edge, b: &Edge) -> Ordering {
    match (a, b) {
        // As upper ends: no bound is the greatest, and an excluded bound lies before an included
        // one.
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(a), Bound::Included(b)) | (Bound::Excluded(a), Bound::Excluded(b)) => {
            a.cmp(b)
        }
        (Bound::Included(a), Bound::Excluded(b)) => a.cmp(b).then(Ordering::Greater),
        (Bound::Excluded(a), Bound::Included(b)) => a.cmp(b).then(Ordering::Less),
    }
}

/// The lower of two lower ends.
pub(crate) fn lower(a: Edge, b: Edge) -> Edge {
    if low_order(&a, &b).is_le() {
        a
    } else {
        b
    }
}

/// The higher of two upper ends.
pub(crate) fn higher(a: Edge, b: Edge) -> Edge {
    if high_order(&a, &b).is_ge() {
        a
    } else {
        b
    }
}

/// The intersection of two ranges.
pub(crate) fn tighter(a: (Edge, Edge), b: (Edge, Edge)) -> (Edge, Edge) {
    // The greater of both lower ends, and the lesser of both upper ends.
    let low = if low_order(&a.0, &b.0).is_ge() {
        a.0
    } else {
        b.0
    };
    let high = if high_order(&a.1, &b.1).is_le() {
        a.1
    } else {
        b.1
    };
    (low, high)
}

pub(crate) fn is_empty(low: &Edge, high: &Edge) -> bool {
    match (low, high) {
        // A range with an open end has room. Otherwise the ends must not cross.
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b) | Bound::Included(b)) => {
            a >= b
        }
    }
}
