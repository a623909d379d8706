//! Beginnings of order keys, by which the keys of an ordered table are limited.

use crate::{
    raw,
    value::NIL,
    wire::{self, Head},
};
use larder_term::order_key;

/// Writes what precedes each element in the order key of a list: the order key of a list of one
/// element without that of the element.
pub(crate) fn push_cons(out: &mut Vec<u8>) {
    let (mut with, mut element) = (Vec::new(), Vec::new());
    order_key::list_prefix(&[raw::whole(NIL)], &mut with);
    order_key::encode(raw::whole(NIL), &mut element);
    out.extend_from_slice(&with[..with.len() - element.len()]);
}

/// Appends the order key of a closed pattern up to the first map in it, whose size is open. Returns
/// what follows the first term of `pattern`, if it has no map.
pub(crate) fn push_prefix<'p>(pattern: &'p [u8], out: &mut Vec<u8>) -> Option<&'p [u8]> {
    let (head, at) = wire::open(pattern);
    let mut rest = &pattern[at..];
    match head {
        // Terms with other pairs match it, too, so their order keys have no prefix in common.
        Head::Map(_) => None,
        Head::Leaf => {
            let (leaf, rest) = wire::split(pattern);
            order_key::encode(raw::whole(leaf), out);
            Some(rest)
        }
        Head::Tuple(count) => {
            order_key::tuple_prefix(count, &[], out);
            for _ in 0..count {
                rest = push_prefix(rest, out)?;
            }
            Some(rest)
        }
        Head::List(count) | Head::Improper(count) => {
            for _ in 0..count {
                push_cons(out);
                rest = push_prefix(rest, out)?;
            }
            // The tail ends a list: any term of an improper list, `[]` of a proper one.
            if matches!(head, Head::Improper(_)) {
                return push_prefix(rest, out);
            }
            order_key::encode(raw::whole(NIL), out);
            Some(rest)
        }
    }
}
