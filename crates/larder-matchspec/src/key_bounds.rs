//! Ends of ranges of order keys.

use larder_term::order_key;
use std::{cmp::Ordering, ops::Bound};

/// An end of a range of order keys.
pub(crate) type KeyBound = Bound<Vec<u8>>;

/// Prepends `prefix` to both ends of a range. An unbounded end becomes the first or the last key
/// with the prefix. (Order keys don't begin with 0xFF, so the result contains only keys with the
/// prefix.)
pub(crate) fn within(prefix: Vec<u8>, low: KeyBound, high: KeyBound) -> (KeyBound, KeyBound) {
    // All keys that begin with the prefix.
    if let (Bound::Unbounded, Bound::Unbounded, false) = (&low, &high, prefix.is_empty()) {
        return (Bound::Included(prefix.clone()), after(prefix));
    }
    // An end is what follows the prefix. The order keys of the parts lie one after the other, so
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
pub(crate) fn after(mut prefix: Vec<u8>) -> KeyBound {
    match order_key::successor(&mut prefix) {
        true => Bound::Excluded(prefix),
        false => Bound::Unbounded,
    }
}

/// The lower end of all order keys beyond such an end.
pub(crate) fn from_beyond(end: KeyBound) -> KeyBound {
    match end {
        Bound::Excluded(bytes) => Bound::Included(bytes),
        // No order key begins with 0xFF.
        _ => Bound::Included(vec![0xFF]),
    }
}

fn low_order(a: &KeyBound, b: &KeyBound) -> Ordering {
    // An excluded bound lies after an included one at the same bytes.
    fn place(bound: &KeyBound) -> (&[u8], u8) {
        match bound {
            Bound::Unbounded => (&[], 0),
            Bound::Included(bytes) => (bytes, 0),
            Bound::Excluded(bytes) => (bytes, 1),
        }
    }
    place(a).cmp(&place(b))
}

fn high_order(a: &KeyBound, b: &KeyBound) -> Ordering {
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
pub(crate) fn lower(a: KeyBound, b: KeyBound) -> KeyBound {
    if low_order(&a, &b).is_le() {
        a
    } else {
        b
    }
}

/// The higher of two upper ends.
pub(crate) fn higher(a: KeyBound, b: KeyBound) -> KeyBound {
    if high_order(&a, &b).is_ge() {
        a
    } else {
        b
    }
}

/// The intersection of two ranges.
pub(crate) fn tighter(a: (KeyBound, KeyBound), b: (KeyBound, KeyBound)) -> (KeyBound, KeyBound) {
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

pub(crate) fn is_empty(low: &KeyBound, high: &KeyBound) -> bool {
    match (low, high) {
        // A range with an open end has room. Otherwise the ends must not cross.
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b) | Bound::Included(b)) => {
            a >= b
        }
    }
}
