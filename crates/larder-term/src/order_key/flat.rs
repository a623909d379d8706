//! Order keys of flat terms, without a stack.
//!
//! Of integers, atoms, binaries, `[]`, and tuples of these, an order key has the pieces in the
//! order of the encoding, and nothing behind a tuple's last element:
//!
//! ```text
//!  {user, <<"ab">>, 7}    TUPLE 3  ATOM u s e r    BIN 2 a b           7
//!                         F6 3     F0 u s e r 00   FA a b 00 08        8E
//! ```
//!
//! So one walk over the heads does, which remembers nothing of what is open. Nearly all keys are of
//! this kind. [`encode`](super::encode()) knows all terms.

use super::{numbers::of_int, ATOM, BITSTRING, NIL_KEY, TUPLE_KEY};
use crate::{
    atom::Atom,
    tags::*,
    view::{little_endian, TermRef},
};
use std::mem::MaybeUninit;

/// Where a byte goes: it may be unwritten before.
pub trait Place {
    /// Writes it.
    fn put(&mut self, byte: u8);
}

impl Place for u8 {
    #[inline]
    fn put(&mut self, byte: u8) {
        *self = byte;
    }
}

impl Place for MaybeUninit<u8> {
    #[inline]
    fn put(&mut self, byte: u8) {
        self.write(byte);
    }
}

/// Writes eight bytes to the front of some room, which has as many.
#[inline]
fn put_eight<P: Place>(room: &mut [P], eight: [u8; 8]) -> Option<()> {
    let places: &mut [P; 8] = room.first_chunk_mut()?;
    places
        .iter_mut()
        .zip(eight)
        .for_each(|(place, byte)| place.put(byte));
    Some(())
}

/// Writes the order key of a term to the front of `out`: the bytes that [`encode`](super::encode())
/// appends. Gives how many they are, and whether [`comes_back`](super::comes_back()) holds for the
/// term. `None` where it is not so simple (a float, a list, a map, an identifier, a tuple or a
/// binary of more than 127) or where there is no room; some of `out` may be written then.
///
/// # Complexity
/// Linear in the term; no recursion.
pub fn encode_flat<P: Place>(term: TermRef<'_>, out: &mut [P]) -> Option<(usize, bool)> {
    let bytes = term.bytes();
    let mut writer = Writer { out, len: 0 };
    let (mut at, mut comes_back) = (0, true);
    while let Some(&tag) = bytes.get(at) {
        at = match tag {
            SMALL.. => {
                writer.int(i64::from(tag - SMALL))?;
                at + 1
            }
            INT1..=INT8 => {
                let end = at + 2 + usize::from(tag - INT1);
                writer.int(little_endian(bytes.get(at + 1..end)?))?;
                end
            }
            ATOM1..=ATOM4 => {
                let end = at + 2 + usize::from(tag - ATOM1);
                let id = bytes.get(at + 1..end)?.iter().rev();
                let id = id.fold(0, |id, &byte| id << 8 | u32::from(byte));
                writer.text(Atom::trusted(id).text())?;
                comes_back = false;
                end
            }
            NIL => {
                writer.byte(NIL_KEY)?;
                at + 1
            }
            TUPLE => {
                writer.byte(TUPLE_KEY)?;
                writer.byte(short(bytes, at + 1)?)?;
                at + 2
            }
            BIN => {
                let end = at + 2 + usize::from(short(bytes, at + 1)?);
                writer.binary(bytes.get(at + 2..end)?)?;
                end
            }
            _ => return None,
        };
    }
    Some((writer.len, comes_back))
}

/// A count of one byte.
#[inline]
fn short(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied().filter(|&count| count < 0x80)
}

/// Invariant: the first `len` bytes of `out` are written.
struct Writer<'o, P> {
    out: &'o mut [P],
    len: usize,
}

impl<P: Place> Writer<'_, P> {
    /// Room for so many bytes.
    #[inline]
    fn room(&mut self, most: usize) -> Option<&mut [P]> {
        self.out.get_mut(self.len..)?.get_mut(..most)
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.out.get_mut(self.len)?.put(byte);
        self.len += 1;
        Some(())
    }

    #[inline]
    fn int(&mut self, n: i64) -> Option<()> {
        let (first, rest, used) = of_int(n)?;
        let (head, tail) = self.room(9)?.split_first_mut()?;
        head.put(first);
        put_eight(tail, rest)?;
        self.len += 1 + used;
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        // Each byte becomes one or two.
        let room = self.room(2 * text.len() + 2)?;
        room[0].put(ATOM);
        let mut at = 1;
        for &byte in text.as_bytes() {
            if byte <= 1 {
                room[at].put(1);
                at += 1;
            }
            room[at].put(if byte <= 1 { byte + 1 } else { byte });
            at += 1;
        }
        room[at].put(0);
        self.len += at + 1;
        Some(())
    }

    fn binary(&mut self, bytes: &[u8]) -> Option<()> {
        // As above, and the end takes two.
        let room = self.room(2 * bytes.len() + 3)?;
        room[0].put(BITSTRING);
        let mut at = 1;
        for chunk in bytes.chunks(8) {
            match <[u8; 8]>::try_from(chunk) {
                Ok(eight) if !has_zero(u64::from_le_bytes(eight)) => {
                    put_eight(&mut room[at..], eight)?;
                    at += 8;
                }
                _ => at = with_zeros(chunk, room, at),
            }
        }
        let in_last = if bytes.is_empty() { 0 } else { 8 };
        room[at].put(0);
        room[at + 1].put(in_last);
        self.len += at + 2;
        Some(())
    }
}

/// Writes bytes with a mark behind each zero, from `at` on; gives the place behind them.
#[inline]
fn with_zeros<P: Place>(bytes: &[u8], room: &mut [P], mut at: usize) -> usize {
    for &byte in bytes {
        // The mark is written in any case: behind another byte the next one takes its place.
        room[at].put(byte);
        room[at + 1].put(0xFF);
        at += 1 + usize::from(byte == 0);
    }
    at
}

/// Whether one of the bytes of a word is zero.
#[inline]
fn has_zero(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 0xFF;
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{order_key, term, Term};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What `encode_flat` makes of a term in so much room.
    fn flat(term: &Term, room: usize) -> Option<(Vec<u8>, bool)> {
        let mut out = vec![0xEE; room];
        let (len, comes_back) = encode_flat(term.as_ref(), &mut out)?;
        out.truncate(len);
        Some((out, comes_back))
    }

    fn plain(term: &Term) -> (Vec<u8>, bool) {
        let mut key = Vec::new();
        order_key::encode(term.as_ref(), &mut key);
        (key, order_key::comes_back(term.as_ref()))
    }

    fn terms() -> impl Strategy<Value = Term> {
        let byte = prop_oneof![Just(0u8), Just(1), any::<u8>()];
        let leaf = prop_oneof![
            (any::<i64>(), 0..64u32).prop_map(|(n, shift)| Term::from((n >> shift).max(-i64::MAX))),
            (0..130i64).prop_map(Term::from),
            "[a-c\u{0}\u{1}é]{0,9}".prop_map(|text| Term::from(Atom::new(&text))),
            vec(byte, 0..40).prop_map(|bytes| Term::binary(&bytes)),
            Just(term!([])),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| vec(inner, 0..6).prop_map(Term::tuple))
    }

    proptest! {
        #[test]
        fn it_is_the_order_key_of_all_terms(term in terms(), less in 1..20usize) {
            let whole = plain(&term);
            let ample = 2 * whole.0.len() + 9;
            prop_assert_eq!(flat(&term, ample), Some(whole.clone()));
            // Where there is no room there is no key, or all of it.
            let short = flat(&term, ample.saturating_sub(less));
            prop_assert!(short.is_none_or(|key| key == whole));
            prop_assert_eq!(flat(&term, whole.0.len() - 1), None);
        }
    }

    #[test]
    fn what_is_not_flat_is_left_to_others() {
        for term in [
            term!(1.5),
            term!([1]),
            term!({1, [2]}),
            term!({2, 1.0}),
            Term::from(i64::MIN),
            Term::binary(&[7; 128]),
            Term::tuple(vec![Term::from(1); 128]),
        ] {
            assert_eq!(flat(&term, 1000), None, "{term:?}");
        }
    }
}
