//! Changing one element of a stored value without taking the object apart.

use super::{COMPRESSED, EXACT_KEY, FLAG_BITS};
use crate::{
    encoder::push_int,
    skip::end_of,
    tags::{INT1, INT8, SMALL},
    varint,
    view::{little_endian, TermRef},
};

/// Where the element at `position` lies in a value; `None` for a compressed value, the key's position, or one that the object has not.
fn place(value: &[u8], keypos: usize, position: usize) -> Option<(usize, usize)> {
    let (header, mut at) = varint::read(value, 0);
    let flags = header as u8 & ((1 << FLAG_BITS) - 1);
    let arity = (header >> FLAG_BITS) as usize;
    if flags & COMPRESSED != 0 || position == keypos || !(1..=arity).contains(&position) {
        return None;
    }
    if flags & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    for _ in 0..position - 1 - usize::from(position > keypos) {
        at = end_of(value, at);
    }
    Some((at, end_of_leaf(value, at)))
}

/// [`end_of`], quick for integers.
#[inline]
fn end_of_leaf(value: &[u8], at: usize) -> usize {
    match value[at] {
        SMALL.. => at + 1,
        tag @ INT1..=INT8 => at + 2 + usize::from(tag - INT1),
        _ => end_of(value, at),
    }
}

/// Appends a run of bytes that is mostly empty or one byte.
#[inline]
fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [] => {}
        &[byte] => out.push(byte),
        _ => out.extend_from_slice(bytes),
    }
}

/// Appends to `out` the value with `n` added to its integer at `position`, and gives the sum. `None`, and nothing written, where it is not as
/// simple as that: a compressed value, no such element, an integer that does not fit before or afterwards, anything else than an integer.
///
/// # Complexity
/// Linear in the value.
#[inline]
pub fn add(value: &[u8], keypos: usize, position: usize, n: i64, out: &mut Vec<u8>) -> Option<i64> {
    // Mostly the element behind the key, at the front of the value.
    let (start, end) = match super::beside_key(value) {
        Some((2.., others)) if (keypos, position) == (1, 2) => (1, 1 + end_of_leaf(others, 0)),
        _ => place(value, keypos, position)?,
    };
    let old = match value[start] {
        tag @ SMALL.. => i64::from(tag - SMALL),
        INT1..=INT8 => little_endian(&value[start + 1..end]),
        _ => return None,
    };
    let sum = old.checked_add(n)?;
    out.reserve(value.len() + 9);
    append(out, &value[..start]);
    push_int(out, sum);
    append(out, &value[end..]);
    Some(sum)
}

/// Appends to `out` the value with `term`, which holds no handle, in the place of its element at `position`. False, and nothing written, where
/// it is not as simple as that: a compressed value, no such element.
///
/// # Complexity
/// Linear in the value and the term.
#[inline]
pub fn set(
    value: &[u8],
    keypos: usize,
    position: usize,
    term: TermRef<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let Some((start, end)) = place(value, keypos, position) else {
        return false;
    };
    out.extend_from_slice(&value[..start]);
    out.extend_from_slice(term.bytes());
    out.extend_from_slice(&value[end..]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{encode, KeyForm, ObjectBuf};
    use crate::{term, Term};

    const FORMS: [KeyForm; 2] = [KeyForm::Hash { legacy_zero: false }, KeyForm::Ordered];

    fn object(tuple: &Term, keypos: usize, form: KeyForm, compress: bool) -> ObjectBuf {
        let mut object = ObjectBuf::new();
        encode(tuple.as_ref(), keypos, form, compress, &mut object).unwrap();
        object
    }

    #[test]
    fn one_element_changes_and_the_others_stay() {
        for form in FORMS {
            for keypos in 1..=4 {
                let before = term!({[a], 100, "bin", (-7)});
                let stored = object(&before, keypos, form, false);
                for position in 0..=5 {
                    for n in [0, 1, 27, 28, 1 << 40, -93, -300, i64::MAX - 50] {
                        let mut out = vec![9];
                        let sum = add(stored.value(), keypos, position, n, &mut out);
                        let old = match position {
                            2 => Some(100),
                            4 => Some(-7),
                            _ => None,
                        };
                        let expected = old
                            .filter(|_| position != keypos)
                            .and_then(|old: i64| old.checked_add(n));
                        assert_eq!(sum, expected);
                        let Some(sum) = sum else {
                            assert_eq!(out, [9]);
                            continue;
                        };
                        let mut elements: Vec<Term> = before
                            .as_ref()
                            .as_tuple()
                            .unwrap()
                            .iter()
                            .map(Term::from)
                            .collect();
                        elements[position - 1] = Term::from(sum);
                        let after = object(&Term::tuple(elements), keypos, form, false);
                        assert_eq!(&out[1..], after.value());
                    }
                    let mut out = Vec::new();
                    let new = term!({x, "y"});
                    let set = set(stored.value(), keypos, position, new.as_ref(), &mut out);
                    assert_eq!(set, (1..=4).contains(&position) && position != keypos);
                    if set {
                        let mut elements: Vec<Term> = before
                            .as_ref()
                            .as_tuple()
                            .unwrap()
                            .iter()
                            .map(Term::from)
                            .collect();
                        elements[position - 1] = new.clone();
                        let after = object(&Term::tuple(elements), keypos, form, false);
                        assert_eq!(out, after.value());
                    }
                }
            }
        }
    }

    #[test]
    fn compressed_values_are_left_alone() {
        let long = Term::tuple([
            Term::from(1),
            Term::from(2),
            Term::list(vec![term!(word); 100]),
        ]);
        let stored = object(&long, 1, FORMS[0], true);
        let mut out = Vec::new();
        assert_eq!(add(stored.value(), 1, 2, 1, &mut out), None);
        assert!(!set(stored.value(), 1, 2, term!(3).as_ref(), &mut out));
        assert!(out.is_empty());
    }
}
