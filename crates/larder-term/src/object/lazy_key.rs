//! The key of a stored object, decoded from its order key when it is first asked for.
//!
//! Most scans look at the keys of few rows, or at none. Decoding a long key takes longer than all
//! else that a scan does with its row.
//!
//! Invariants of a buffer of an undecoded key, while a [`LazyKey`] has it:
//! 1. It is empty until the key is asked for. Nobody has a reference to its bytes until then.
//! 2. From then on it holds the key, which has at least one byte, and it doesn't change.

use crate::{order_key, view::TermRef};
use std::{cell::Cell, fmt};

/// Order keys of up to this length are decoded at once: that costs as much as deferring it.
const SHORT: usize = 16;

/// The key of a stored object, which is decoded when it is first asked for.
#[derive(Clone, Copy)]
pub struct LazyKey<'a> {
    /// The encoded key, or its order key.
    bytes: &'a [u8],
    /// The buffer for the key, if `bytes` is an order key.
    decoded: Option<&'a Cell<Vec<u8>>>,
}

impl<'a> LazyKey<'a> {
    /// A key that needs no decoding.
    #[inline(always)]
    pub fn of(key: TermRef<'a>) -> Self {
        LazyKey {
            bytes: key.bytes(),
            decoded: None,
        }
    }

    /// The key of an order key. Its bytes will be in `buffer`.
    #[inline(always)]
    pub(super) fn from_order(order: &'a [u8], buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        if order.len() <= SHORT {
            order_key::decode(order, buffer);
            return LazyKey::of(TermRef::within(buffer));
        }
        LazyKey {
            bytes: order,
            decoded: Some(Cell::from_mut(buffer)),
        }
    }

    /// The key.
    #[inline(always)]
    pub fn term(self) -> TermRef<'a> {
        TermRef::within(match self.decoded {
            None => self.bytes,
            Some(buffer) => decoded(self.bytes, buffer),
        })
    }
}

impl fmt::Debug for LazyKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.term().fmt(f)
    }
}

/// The key that the buffer holds, or is about to hold.
#[inline(never)]
fn decoded<'a>(order: &[u8], buffer: &'a Cell<Vec<u8>>) -> &'a [u8] {
    // SAFETY:
    // 1. the vector is alive for `'a`, borrowed by the keys that share the cell, on one thread;
    // 2. `take` and `set` below are the only accesses that change it, and no reference of this
    //    function lives then.
    let is_empty = unsafe { (*buffer.as_ptr()).is_empty() };
    if is_empty {
        // Nobody has a reference to its bytes yet (invariant 1).
        let mut bytes = buffer.take();
        order_key::decode(order, &mut bytes);
        buffer.set(bytes);
    }
    // SAFETY:
    // 1. as above;
    // 2. it isn't empty, so nobody changes it any more while a key has it (invariant 2). It was
    //    borrowed exclusively by `from_order` for `'a`.
    unsafe { (*buffer.as_ptr()).as_slice() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    #[test]
    fn a_key_is_decoded_once_and_stays() {
        let mut buffer = vec![1, 2, 3];
        for len in [0, 3, 12, 13, 14, 700] {
            for byte in [0, 7] {
                let term = Term::binary(&vec![byte; len]);
                let mut order = Vec::new();
                order_key::encode(term.as_ref(), &mut order);
                let key = LazyKey::from_order(&order, &mut buffer);
                let (first, copy) = (key.term(), key);
                assert!(first.identical(term.as_ref()), "{len} {byte}");
                // The same bytes, and not others that are equal.
                assert_eq!(copy.term().bytes().as_ptr(), first.bytes().as_ptr());
            }
        }
    }

    #[test]
    fn a_long_key_that_nobody_asks_for_is_not_decoded() {
        let mut order = Vec::new();
        order_key::encode(Term::binary(&[7; 100]).as_ref(), &mut order);
        let mut buffer = Vec::new();
        let _key = LazyKey::from_order(&order, &mut buffer);
        assert!(buffer.is_empty());
    }
}
