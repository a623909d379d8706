//! The lengths of long elements.
//!
//! ```text
//!  {k, [1, …, 100], x}     SIZED | 102 | LIST 100 1 … 100 | x
//! ```
//!
//! An element is found by passing those before it, and a container is passed by walking over its
//! heads. So the length of a container of more than [`LONG`] bytes stands in front of it. That
//! holds for elements of values that another stored element follows: not for keys, not for parts of
//! elements, and not for the last one, which nobody passes. Like all of an encoding, it doesn't
//! depend on how the object was made.
//!
//! A still longer element isn't among the others at all (`object/out_of_line.rs`).

use crate::{tags::*, varint};

/// No element of at most this many bytes has a prefix.
pub const LONG: usize = 64;

/// The most bytes of the tag and the length.
const MOST: usize = 1 + varint::MOST;

/// What stands in front of an element: the tag and the length. Empty for one that isn't a long
/// container.
#[derive(Default)]
pub struct Prefix {
    bytes: [u8; MOST],
    used: usize,
}

impl Prefix {
    /// The prefix of an element that others follow, given its bytes.
    pub fn of(element: &[u8]) -> Prefix {
        let mut prefix = Prefix::default();
        if element.len() > LONG && matches!(element[0], LIST | ILIST | TUPLE | MAP | TREE_MAP | FUN)
        {
            prefix.bytes[0] = SIZED;
            prefix.used = 1 + varint::write(&mut prefix.bytes[1..], element.len() as u64);
        }
        prefix
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// Inserts the prefix of an element, which begins at `start` and ends where `out` does.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, start: usize) {
    if out.len() - start > LONG {
        close_long(out, start);
    }
}

#[inline(never)]
fn close_long(out: &mut Vec<u8>, start: usize) {
    let prefix = Prefix::of(&out[start..]);
    out.splice(start..start, prefix.bytes().iter().copied());
}

/// Appends an element. `is_last` says whether no other one follows.
#[inline]
pub(super) fn push(element: &[u8], is_last: bool, out: &mut Vec<u8>) {
    if element.len() > LONG && !is_last {
        out.extend_from_slice(Prefix::of(element).bytes());
    }
    out.extend_from_slice(element);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::blob::Counts;
    use crate::object::patch::{plain_value, Patch};
    use crate::object::NewElements;
    use crate::object::{self, encode, has_same_element, KeyForm, ObjectBuf, ObjectEncoder};
    use crate::view::TermRef;
    use crate::{term, Term};

    pub(in crate::object) const FORMS: [KeyForm; 2] =
        [KeyForm::Hash { legacy_zero: false }, KeyForm::Ordered];

    fn list(len: i32) -> Term {
        Term::list((0..len).map(|n| Term::from(n % 100)))
    }

    /// Elements around the length from which on there is a prefix, of all kinds of containers and
    /// of others.
    fn elements() -> Vec<Term> {
        let (long, word) = (Term::binary(&[7; 100]), Term::binary(b"eight by"));
        let mut elements = vec![
            term!(1),
            term!(a),
            term!([]),
            term!("b"),
            long,
            word.clone(),
        ];
        elements.extend([61, 62, 63, 127, 128, 5000].map(list));
        elements.push(Term::tuple((0..70).map(Term::from)));
        elements.push(term!({x, [(word.clone()), (word.clone()), (word.clone()), [1, 2], {}], y}));
        elements.push(Term::binary(&[7; 1000]));
        elements.push(Term::list(vec![Term::binary(&[7; 300]); 12]));
        let map = (0..10).map(|n| (Term::from(n), word.clone()));
        elements.push(Term::map(map).unwrap());
        elements
    }

    /// An object with these elements.
    pub(in crate::object) fn stored(
        row: &[Term],
        keypos: usize,
        form: KeyForm,
        compress: bool,
    ) -> ObjectBuf {
        let (mut object, row) = (ObjectBuf::new(), Term::tuple(row.to_vec()));
        encode(row.as_ref(), keypos, form, compress, &mut object).unwrap();
        object
    }

    fn each_row(mut f: impl FnMut(&[Term], usize, KeyForm, bool)) {
        let all = elements();
        for (i, first) in all.iter().enumerate() {
            let second = &all[(i + 7) % all.len()];
            for third in &all {
                let row = [first.clone(), second.clone(), third.clone()];
                for keypos in 1..=3 {
                    for form in FORMS {
                        f(&row, keypos, form, false);
                        f(&row, keypos, form, true);
                    }
                }
            }
        }
    }

    #[test]
    fn objects_are_read_as_they_were_written() {
        each_row(|row, keypos, form, compress| {
            let object = stored(row, keypos, form, compress);
            let tuple = Term::tuple(row.to_vec());
            let mut scratch = Vec::new();
            let view = object.view(keypos, &mut scratch);
            assert!(view.identical_tuple(tuple.as_ref()));
            for (i, element) in row.iter().enumerate() {
                assert!(view.element(i + 1).unwrap().identical(element.as_ref()));
            }
            let mut bytes = Vec::new();
            view.to_tuple(&mut bytes);
            assert_eq!(skip_all(&bytes), bytes.len());
            assert!(TermRef::within(&bytes).identical(tuple.as_ref()));
        });
    }

    /// The end of a term without a prefix in it.
    fn skip_all(bytes: &[u8]) -> usize {
        let mut at = 0;
        for (start, end) in crate::skip::Heads::new(bytes) {
            assert_ne!(bytes[start], SIZED);
            at = end;
        }
        at
    }

    #[test]
    fn an_object_has_one_form_however_it_was_made() {
        each_row(|row, keypos, form, compress| {
            let object = stored(row, keypos, form, compress);
            let mut other = ObjectBuf::new();
            let mut enc = ObjectEncoder::new(&mut other, row.len(), keypos, form, compress);
            enc.key(|e| e.term(row[keypos - 1].as_ref()));
            for (_, element) in row.iter().enumerate().filter(|(i, _)| i + 1 != keypos) {
                enc.element(|e| e.term(element.as_ref()));
            }
            assert!(enc.finish());
            // Handles of one binary differ.
            if object.value()[0] & object::HAS_HANDLES == 0 {
                assert_eq!(object.value(), other.value());
            }
            let (mut a, mut b) = (Vec::new(), Vec::new());
            assert!(object
                .view(keypos, &mut a)
                .identical(&other.view(keypos, &mut b)));
            // SAFETY: the objects hold the counts.
            let hashes = unsafe { [object::hash(object.value()), object::hash(other.value())] };
            assert_eq!(hashes[0], hashes[1]);
        });
    }

    #[test]
    fn a_patched_value_is_that_of_the_changed_object() {
        each_row(|row, keypos, form, compress| {
            if compress {
                return;
            }
            let before = stored(row, keypos, form, false);
            for position in (1..=3).filter(|position| *position != keypos) {
                for new in [term!(5), list(64), list(3), Term::binary(&[9; 100])] {
                    let mut out = Vec::new();
                    let mut patch = Patch::new(before.value(), keypos, &mut out);
                    let old = patch.element(position);
                    assert!(old.term.identical(row[position - 1].as_ref()));
                    patch.put(
                        old,
                        new.as_ref(),
                        &mut NewElements::new(None, &mut Counts::new()),
                    );
                    let patched = patch.finish().unwrap();
                    let value = before.value();
                    let rest = &value[patched.at + patched.len..];
                    let after = [&value[..patched.at], &out, rest].concat();
                    let mut row = row.to_vec();
                    row[position - 1] = new.clone();
                    let whole = stored(&row, keypos, form, false);
                    if whole.value()[0] & object::HAS_HANDLES == 0 {
                        // The flag stays if the last handle goes.
                        assert_eq!(after[1..], whole.value()[1..]);
                    }
                }
            }
        });
    }

    #[test]
    fn elements_are_compared_without_their_lengths() {
        let form = FORMS[0];
        // The list is the last element of one of the objects only.
        let rows = [
            vec![term!(1), list(100)],
            vec![term!(1), list(100), term!(x)],
            vec![term!(1), list(100), term!(y)],
            vec![term!(1), list(101), term!(y)],
        ];
        let objects = rows.map(|row| (stored(&row, 1, form, false), row));
        for (one, row) in &objects {
            for (other, others) in &objects {
                for position in 2..=3 {
                    let same = has_same_element(one.value(), other.value(), 1, position);
                    let wanted = row.get(position - 1) == others.get(position - 1);
                    assert_eq!(same, Some(wanted));
                    let mut scratch = Vec::new();
                    let (view, element) = (other.view(1, &mut scratch), row.get(position - 1));
                    if let Some(element) = element {
                        let is = view.element_is(position, element.as_ref().bytes());
                        assert_eq!(is, wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn only_long_containers_that_others_follow_have_a_prefix() {
        let form = FORMS[0];
        let lengths = |row: &[Term]| {
            let object = stored(row, 1, form, false);
            let value = plain_value(object.value(), &mut Vec::new()).to_vec();
            (value.len(), value.contains(&SIZED))
        };
        // Head, tag, number, elements; `x` takes two bytes.
        let x = term!(x);
        let x_len = x.as_ref().bytes().len();
        assert_eq!(
            lengths(&[term!(1), list(62), x.clone()]),
            (65 + x_len, false)
        );
        assert_eq!(
            lengths(&[term!(1), list(63), x.clone()]),
            (68 + x_len, true)
        );
        assert_eq!(
            lengths(&[term!(1), x.clone(), list(63)]),
            (66 + x_len, false)
        );
        assert_eq!(
            lengths(&[term!(1), Term::binary(&[1; 100]), x]),
            (103 + x_len, false)
        );
    }
}
