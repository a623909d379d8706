//! Terms in registers: integers and short binaries, whose bytes are made without an encoder. They
//! are those of [`Encoder`](crate::Encoder) in inline mode.

use crate::tags::{BIG_POS, BIN, INT1, SMALL};

/// The bytes of an integer, and how many of them count.
///
/// ```
/// use larder_term::{simple, Term};
///
/// let (bytes, used) = simple::int(-300);
/// assert_eq!(bytes[..used], *Term::from(-300).bytes());
/// ```
#[inline]
pub fn int(n: i64) -> ([u8; 9], usize) {
    let (tag, used) = if (0..=127).contains(&n) {
        (SMALL + n as u8, 1)
    } else {
        // As few bytes as have all bits and the sign.
        let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
        let len = bits.div_ceil(8);
        (INT1 + len as u8 - 1, 1 + len)
    };
    // The tag and most of the number are one word, so that a load of it soon afterwards needn't
    // wait for two stores.
    let mut bytes = [0; 9];
    bytes[..8].copy_from_slice(&(n << 8 | i64::from(tag)).to_le_bytes());
    bytes[8] = (n >> 56) as u8;
    (bytes, used)
}

/// The bytes of an unsigned integer of 64 bits whose highest bit is set.
#[inline]
pub fn large(n: u64) -> [u8; 10] {
    debug_assert!(n >> 63 == 1);
    let [a, b, c, d, e, f, g, h] = n.to_le_bytes();
    [BIG_POS, 8, a, b, c, d, e, f, g, h]
}

/// Writes a binary to `out`, and returns its bytes. `None` if it has more than 127 bytes, or more
/// than `out` has room for.
#[inline]
pub fn binary<'o>(bytes: &[u8], out: &'o mut [u8]) -> Option<&'o [u8]> {
    let len = bytes.len();
    // A length of up to 127 takes one byte.
    let out = out.get_mut(..2 + len).filter(|_| len <= 127)?;
    (out[0], out[1]) = (BIN, len as u8);
    out[2..].copy_from_slice(bytes);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    #[test]
    fn the_bytes_are_those_of_the_encoder() {
        for shift in 0..64 {
            for n in [
                1i64 << shift,
                (1i64 << shift).wrapping_sub(1),
                i64::MIN >> shift,
            ] {
                for n in [n, n.wrapping_neg(), !n] {
                    let (bytes, used) = int(n);
                    assert_eq!(bytes[..used], *Term::int(n).bytes(), "{n}");
                }
            }
        }
        for n in [1 << 63, u64::MAX, (1 << 63) + 77] {
            let term = Term::build(|e| e.big(false, &n.to_le_bytes())).expect("a term");
            assert_eq!(large(n), *term.bytes());
        }
        let mut out = [0; 140];
        for len in 0..140 {
            let bytes = vec![len as u8; len];
            match binary(&bytes, &mut out) {
                Some(written) => assert_eq!(written, Term::binary(&bytes).bytes()),
                None => assert!(len > 127),
            }
        }
        assert_eq!(binary(b"four", &mut [0; 5]), None);
    }
}
