//! LEB128 varints: seven bits in each byte, the lowest first. The top bit is set in all bytes but
//! the last one. The encoding is as short as possible.

/// Appends a number.
#[inline]
pub fn push(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The greatest number of bytes of a number.
pub const MOST: usize = 10;

/// Writes a number to the beginning of `out`, and returns how many bytes it has.
///
/// # Panics
/// Panics if `out` has fewer bytes than the number; [`MOST`] always suffice.
#[inline]
pub fn write(out: &mut [u8], mut n: u64) -> usize {
    let mut len = 0;
    while n >= 0x80 {
        out[len] = n as u8 | 0x80;
        n >>= 7;
        len += 1;
    }
    out[len] = n as u8;
    len + 1
}

/// Reads the number at `at`. Also returns the offset after it.
///
/// # Panics
/// Panics if the bytes end inside the number, which never happens for bytes that an encoder wrote.
#[inline]
pub fn read(bytes: &[u8], at: usize) -> (u64, usize) {
    let first = bytes[at];
    if first < 0x80 {
        return (u64::from(first), at + 1);
    }
    read_long(bytes, at)
}

fn read_long(bytes: &[u8], mut at: usize) -> (u64, usize) {
    // Most lengths have one byte, and don't get here.
    let (mut n, mut shift) = (0u64, 0u32);
    loop {
        let byte = bytes[at];
        at += 1;
        n |= u64::from(byte & 0x7F).wrapping_shl(shift);
        if byte < 0x80 {
            return (n, at);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for shift in 0..64 {
            for n in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = vec![7];
                push(&mut out, n);
                assert_eq!(read(&out, 1), (n, out.len()));
                let mut same = [0; MOST];
                let len = write(&mut same, n);
                assert_eq!(same[..len], out[1..]);
            }
        }
    }
}
