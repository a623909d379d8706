//! Reading and writing encoded terms, as far as compiling and matching do so directly. Everything
//! else about terms is in `larder_term`.
//!
//! A *run* is a slice that begins with a whole term, and may have other bytes after it.

use larder_term::{atoms, simple, tags, varint, Atom};

/// The head of a term: its kind, and the number of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A tuple of this number of elements.
    Tuple(usize),
    /// A proper list of this number of elements, of which there is at least one.
    List(usize),
    /// An improper list of this number of elements, followed by the tail.
    Improper(usize),
    /// A map of this number of pairs.
    Map(usize),
    /// Anything else.
    Leaf,
}

/// What follows the first `n` terms of a run.
pub(crate) fn skip_terms(run: &[u8], n: usize) -> &[u8] {
    let mut left = run;
    for _ in 0..n {
        left = split(left).1;
    }
    left
}

/// The head of the first term of a run, and where its parts begin (0 for a leaf).
#[inline]
pub(crate) fn open(run: &[u8]) -> (Head, usize) {
    // The tag decides what the count becomes. Leaves have none.
    let make_head: fn(usize) -> Head = match run.first() {
        Some(&tags::TUPLE) => Head::Tuple,
        Some(&tags::LIST) => Head::List,
        Some(&tags::ILIST) => Head::Improper,
        Some(&tags::MAP) => Head::Map,
        Some(&tags::TREE_MAP) => {
            // The head of a large map also contains the layout of its tree.
            let (at, children) = larder_term::head(run, 0);
            return (Head::Map(children as usize / 2), at);
        }
        _ => return (Head::Leaf, 0),
    };
    let (n, at) = read_count(run, 1);
    (make_head(n), at)
}

/// Splits a run after its first term.
#[inline]
pub(crate) fn split(run: &[u8]) -> (&[u8], &[u8]) {
    run.split_at(larder_term::skip(run))
}

/// Whether a run begins with some bytes. There are usually few, for which a loop is faster than a
/// call.
#[inline]
pub(crate) fn begins(run: &[u8], bytes: &[u8]) -> bool {
    match run.get(..bytes.len()) {
        None => false,
        Some(begin) if bytes.len() <= 16 => begin.iter().zip(bytes).all(|(a, b)| a == b),
        Some(begin) => begin == bytes,
    }
}

/// Whether a term is a binary of at most 127 bytes. It has one encoding.
#[inline]
pub(crate) fn is_short_binary(term: &[u8]) -> bool {
    matches!(term, [tags::BIN, 0..0x80, ..])
}

/// Whether a term is an atom or an integer of 64 bits.
#[inline]
pub(crate) fn is_integer_or_atom(term: &[u8]) -> bool {
    matches!(
        term.first(),
        Some(tags::INT1..=tags::INT8 | tags::ATOM1..=tags::ATOM4 | tags::SMALL..)
    )
}

/// Decodes an atom, if the term is one.
#[inline]
pub(crate) fn atom(term: &[u8]) -> Option<Atom> {
    match *term.first()? {
        tag @ tags::ATOM1..=tags::ATOM4 => {
            // The tag says how many bytes the number of the atom has.
            let n = usize::from(tag - tags::ATOM1) + 1;
            let mut id = [0; 4];
            id[..n].copy_from_slice(term.get(1..=n)?);
            Atom::from_id(u32::from_le_bytes(id))
        }
        _ => None,
    }
}

/// Decodes the first term of a run, if it is an integer of at most eight bytes.
#[inline]
pub(crate) fn int(run: &[u8]) -> Option<i64> {
    let tag = *run.first()?;
    if tag >= tags::SMALL {
        return Some(i64::from(tag - tags::SMALL));
    }
    match tag {
        tags::INT1..=tags::INT8 => {
            let n = usize::from(tag - tags::INT1) + 1;
            Some(match *run.get(1..=n)? {
                [byte] => i64::from(byte as i8),
                [low, high] => i64::from(i16::from_le_bytes([low, high])),
                // The last byte has the sign. For so few bytes, a loop is faster than a copy of
                // unknown length.
                [ref low @ .., last] => {
                    let value = i64::from(last as i8);
                    let bytes = low.iter().rev();
                    bytes.fold(value, |value, &byte| value << 8 | i64::from(byte))
                }
                [] => return None,
            })
        }
        _ => None,
    }
}

/// Decodes the first term of a run, if it is a float.
#[inline]
pub(crate) fn float(run: &[u8]) -> Option<f64> {
    let (&tags::FLOAT, bits) = run.split_first()? else {
        return None;
    };
    bits.first_chunk().map(|bits| f64::from_le_bytes(*bits))
}

/// The bytes of the first term of a run, if it is an inline binary.
#[inline]
pub(crate) fn binary(run: &[u8]) -> Option<&[u8]> {
    if run.first() != Some(&tags::BIN) {
        return None;
    }
    let (len, at) = read_count(run, 1);
    run.get(at..at + len)
}

/// The number of a variable: `'$0'`, `'$1'` and so on. An atom with a leading zero is no variable.
/// Numbers wrap around in 32 bits, as in `ets`; if the result is negative, the atom is no variable
/// either.
pub(crate) fn variable(atom: Atom) -> Option<u32> {
    let digits = atom.text().strip_prefix('$')?.as_bytes();
    // No digits, a leading zero, or anything else than digits.
    if digits.is_empty()
        || (digits.len() > 1 && digits[0] == b'0')
        || !digits.iter().all(u8::is_ascii_digit)
    {
        return None;
    }
    let number = digits.iter().fold(0i32, |n, d| {
        n.wrapping_mul(10).wrapping_add(i32::from(d - b'0'))
    });
    u32::try_from(number).ok()
}

/// Whether an atom is a variable or `'_'`.
#[inline]
pub(crate) fn is_loose(atom: Atom) -> bool {
    match atom.id() {
        id if id == atoms::UNDERSCORE.id() => true,
        // The first atoms to be interned; of these only V1 to V5 are variables.
        id if id <= atoms::V5.id() => id >= atoms::V1.id(),
        _ => variable(atom).is_some(),
    }
}

/// The encoding of a short term, which is an integer or an atom.
#[derive(Clone, Copy)]
pub(crate) struct Short {
    bytes: [u8; 9],
    len: u8,
}

impl Short {
    /// An integer.
    #[inline]
    pub(crate) fn int(n: i64) -> Short {
        let (bytes, len) = simple::int(n);
        let len = len as u8;
        Short { bytes, len }
    }

    /// An atom.
    #[inline]
    pub(crate) fn atom(atom: Atom) -> Short {
        let mut bytes = [0; 9];
        let id = atom.id();
        // As few bytes as the number of the atom needs, at least one.
        let len = ((32 - id.leading_zeros()).div_ceil(8) as usize).max(1);
        bytes[0] = tags::ATOM1 + len as u8 - 1;
        bytes[1..=len].copy_from_slice(&id.to_le_bytes()[..len]);
        Short {
            bytes,
            len: len as u8 + 1,
        }
    }

    /// The encoded bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Appends the encoded bytes. Appending a fixed number of bytes, and truncating afterwards, is
    /// faster than a copy of unknown length.
    #[inline]
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        out.truncate(out.len() + usize::from(self.len) - self.bytes.len());
    }
}

/// Appends the head of a container with `n` parts. For a map, `n` is the number of pairs.
#[inline]
pub(crate) fn push_head(out: &mut Vec<u8>, tag: u8, n: usize) {
    if n < 0x80 {
        return out.extend_from_slice(&[tag, n as u8]);
    }
    out.push(tag);
    varint::push(out, n as u64);
}

/// A term that contains a large map, which has two encodings, has at least this number of bytes.
const SHORTEST_LARGE_MAP: usize = 2 * 33;

/// Whether terms with other bytes may be identical to this one. That is so if it contains a large
/// map, or a binary or reference that another encoding has by handle. May return `true` for other
/// terms, too.
pub(crate) fn may_hold_handles(bytes: &[u8]) -> bool {
    bytes.len() >= SHORTEST_LARGE_MAP
        || bytes
            .iter()
            .any(|b| matches!(*b, tags::BLOB | tags::REF | tags::REF_KEPT))
}

/// Decodes the count at `at`. Also returns the offset after it.
#[inline]
fn read_count(run: &[u8], at: usize) -> (usize, usize) {
    let (n, at) = varint::read(run, at);
    (n as usize, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;

    #[test]
    fn short_terms_have_the_bytes_of_the_term_layer() {
        let mut ints = vec![
            0i64,
            1,
            -1,
            127,
            128,
            -128,
            -129,
            255,
            256,
            32767,
            32768,
            i64::MAX,
            i64::MIN,
        ];
        ints.extend((0..63).flat_map(|shift| {
            [
                1 << shift,
                -(1 << shift),
                (1 << shift) - 1,
                -(1 << shift) - 1,
            ]
        }));
        for n in ints {
            assert_eq!(Short::int(n).bytes(), Term::int(n).bytes(), "{n}");
            assert_eq!(int(Term::int(n).bytes()), Some(n));
        }
        for text in ["true", "x1", "x2", "x3"] {
            let term = Term::from(Atom::new(text));
            assert_eq!(Short::atom(Atom::new(text)).bytes(), term.bytes());
            assert_eq!(atom(term.bytes()), Some(Atom::new(text)));
        }
    }

    #[test]
    fn variables_have_no_leading_zero() {
        let number = |text| variable(Atom::new(text));
        assert_eq!(number("$0"), Some(0));
        assert_eq!(number("$1000000000"), Some(1_000_000_000));
        for text in [
            "$",
            "$00",
            "$01",
            "$a",
            "$1a",
            "$ 1",
            "$+1",
            "$_",
            "$$",
            "1",
            "$2147483648",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn counts_come_back() {
        for n in [0, 1, 127, 128, 300, 1 << 20] {
            let mut out = Vec::new();
            push_head(&mut out, tags::TUPLE, n);
            assert_eq!(open(&out), (Head::Tuple(n), out.len()));
        }
    }
}
