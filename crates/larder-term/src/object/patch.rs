//! Changing some elements of a stored value without taking the object apart.
//!
//! ```text
//!  value     head [exact key] | e1 | e2 | e4 | e5 …        (the key is the third element)
//!                             ▲    ▲
//!                          done    at, position 2           e1 is yet to be copied, e2 is next
//!  out       head [exact key]
//! ```
//!
//! 1. [`Patch::new`] reads the head and stands before the first element. Nothing is written yet.
//! 2. [`Patch::element`] walks to a position and gives the element there. The walk is by heads: no
//!    element on the way is read. It goes on where the last one ended, or begins anew.
//! 3. [`Patch::put`] copies what lies between `done` and an element in one run, and writes the new
//!    term in its place.
//! 4. [`Patch::finish`] copies the rest, and says whether the value's handles are the same.
//!
//! Invariants: `out` is what the value's first `done` bytes have become; elements are put in the
//! order of their positions. A [`Patch`] owns no counts: who stores the result takes those of the
//! handles that came, and drops those that went.
//!
//! Of a compressed value the run at its front is plain (see `object/packed.rs`), and is patched
//! where it lies; [`close`] then writes the run's new length. Elements behind the run need the
//! value unpacked first ([`patchable`]).

use super::{packed, COMPRESSED, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::blob;
use crate::skip::{end_of, skip};
use crate::varint;
use crate::view::TermRef;

/// An element of a value that is written anew.
#[derive(Clone, Copy)]
pub struct Element<'v> {
    at: usize,
    /// What it is.
    pub term: TermRef<'v>,
}

/// A walk over the elements of a value, which writes the value anew. Of a packed one only its run
/// is walked over.
pub struct Patch<'v, 'o> {
    value: &'v [u8],
    arity: usize,
    keypos: usize,
    /// Where the first element begins.
    first: usize,
    /// The element that begins at `at`; the key has no bytes there.
    position: usize,
    at: usize,
    /// How often an element was asked for that had been passed.
    steps_back: usize,
    /// Where elements begin, from the first, as far as that was noted.
    starts: Vec<usize>,
    /// How much of the value is written, or was put otherwise.
    done: usize,
    /// Whether a term with a handle went or came.
    changed: bool,
    /// Whether a term with a handle came.
    handles: bool,
    out: &'o mut Vec<u8>,
}

impl<'v, 'o> Patch<'v, 'o> {
    /// Begins to write a value to `out`, which is empty; `keypos` is the one it was encoded with.
    /// Of a packed value only elements in its run may be asked for.
    #[inline(always)]
    pub fn new(value: &'v [u8], keypos: usize, out: &'o mut Vec<u8>) -> Self {
        // The head is mostly one byte: the arity, and four flags.
        let (header, mut at) = match value[0] {
            header @ 0..0x80 => (u64::from(header), 1),
            _ => varint::read(value, 0),
        };
        // Before a run stands its length.
        at += usize::from(header as u8 & COMPRESSED != 0);
        // The exact key is no element: it is copied along with the head.
        if header as u8 & EXACT_KEY != 0 {
            at = end_of(value, at);
        }
        // Counters grow by a few bytes at the most, so this is mostly all that is needed.
        out.reserve(value.len() + 16);
        Patch {
            value,
            arity: (header >> FLAG_BITS) as usize,
            keypos,
            first: at,
            position: 1,
            at,
            steps_back: 0,
            starts: Vec::new(),
            done: 0,
            changed: false,
            handles: false,
            out,
        }
    }

    /// Whether there is an element at a position, from 1, that may be replaced: the key may not.
    #[inline]
    pub fn has(&self, position: usize) -> bool {
        position.wrapping_sub(1) < self.arity && position != self.keypos
    }

    /// The element at a position that the value has.
    ///
    /// # Complexity
    /// Linear in the heads of the terms between it and the last one that was asked for, if that is
    /// before it. All elements, asked for in any order: linear in the value.
    #[inline(always)]
    pub fn element(&mut self, position: usize) -> Element<'v> {
        debug_assert!(self.has(position));
        if position < self.position {
            self.step_back(position);
        }
        while self.position < position {
            self.step();
        }
        // `at` is where the element begins. It is skipped once more to know its end.
        let rest = &self.value[self.at..];
        Element {
            at: self.at,
            term: TermRef::within(&rest[..skip(rest)]),
        }
    }

    /// Goes on to the next position.
    #[inline(always)]
    fn step(&mut self) {
        // The key takes a position and no bytes.
        if self.position != self.keypos {
            self.at += skip(&self.value[self.at..]);
        }
        self.position += 1;
    }

    /// Goes back to a position that was passed, or to one before it.
    #[cold]
    fn step_back(&mut self, position: usize) {
        const FEW: usize = 4;
        let passed = self.position;
        self.steps_back += 1;
        if self.steps_back <= FEW {
            (self.position, self.at) = (1, self.first);
            return;
        }
        // Often: where the elements begin that were passed is noted, once for each.
        let noted = self.starts.last().copied();
        (self.position, self.at) = match noted {
            Some(at) => (self.starts.len(), at),
            None => (1, self.first),
        };
        if noted.is_none() {
            self.starts.push(self.first);
        }
        while self.position < passed {
            self.step();
            self.starts.push(self.at);
        }
        (self.position, self.at) = (position, self.starts[position - 1]);
    }

    /// Has `write` append one term, which holds no handle, in the place of an element behind the
    /// last one that was put.
    #[inline(always)]
    pub fn put_with(&mut self, old: Element<'v>, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.done <= old.at);
        // All that lies before the old element is kept, in one copy.
        self.copy(old.at);
        write(self.out);
        // Whether a handle goes is looked for only where the value says it has any.
        let old_bytes = old.term.bytes();
        self.changed |= super::value_has_handles(self.value) && blob::has_handles(old_bytes);
        // The old element is done with: it is not copied.
        self.done = old.at + old_bytes.len();
    }

    /// Puts a term in the place of an element behind the last one that was put.
    #[inline(always)]
    pub fn put(&mut self, old: Element<'v>, new: TermRef<'_>) {
        self.handles |= new.has_handles();
        self.put_with(old, |out| out.extend_from_slice(new.bytes()));
    }

    /// Writes the rest. Whether the handles are those of before, each as often.
    #[inline(always)]
    pub fn finish(mut self) -> bool {
        // Elements behind the last that was put.
        self.copy(self.value.len());
        if self.handles {
            self.out[0] |= HAS_HANDLES;
        }
        !self.changed && !self.handles
    }

    #[inline(always)]
    fn copy(&mut self, to: usize) {
        // Neighbouring counters have nothing between them, or a byte: no call for those.
        match &self.value[self.done..to] {
            [] => {}
            &[byte] => self.out.push(byte),
            bytes => self.out.extend_from_slice(bytes),
        }
    }
}

/// The value as a [`Patch`] up to position `last()` can be made of it: itself, or what is unpacked
/// to `plain`.
#[inline]
pub fn patchable<'v>(
    value: &'v [u8],
    keypos: usize,
    last: impl FnOnce() -> usize,
    plain: &'v mut Vec<u8>,
) -> &'v [u8] {
    match value[0] & COMPRESSED != 0 && !packed::has_in_run(value, keypos, last()) {
        true => unpacked(value, plain),
        false => value,
    }
}

/// The value without compression: itself, or what is unpacked to `plain`.
#[inline]
pub fn plain_value<'v>(value: &'v [u8], plain: &'v mut Vec<u8>) -> &'v [u8] {
    match value[0] & COMPRESSED {
        0 => value,
        _ => unpacked(value, plain),
    }
}

/// Makes a value of this length whole again that a [`Patch`] wrote. Whether it is what an encoder
/// would write; else the work is to be done on the plain value.
#[inline]
pub fn close(patched: &mut [u8], before: usize) -> bool {
    patched[0] & COMPRESSED == 0 || packed::close_run(patched, before)
}

#[cold]
fn unpacked<'v>(value: &[u8], plain: &'v mut Vec<u8>) -> &'v [u8] {
    let at = varint::read(value, 0).1;
    plain.clear();
    plain.extend_from_slice(&value[..at]);
    plain[0] &= !COMPRESSED;
    packed::unpack(value, plain);
    plain
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

    /// The tuple with other elements, as it is spliced, and as it is encoded.
    fn both(
        before: &Term,
        keypos: usize,
        form: KeyForm,
        new: &[(usize, Term)],
    ) -> (Vec<u8>, Vec<u8>) {
        let stored = object(before, keypos, form, false);
        let tuple = before.as_ref().as_tuple().unwrap();
        let mut all: Vec<Term> = tuple.iter().map(Term::from).collect();
        let mut spliced = Vec::new();
        let mut patch = Patch::new(stored.value(), keypos, &mut spliced);
        for position in 0..all.len() + 2 {
            let may = (1..=all.len()).contains(&position) && position != keypos;
            assert_eq!(patch.has(position), may);
        }
        for (position, term) in new {
            let old = patch.element(*position);
            assert!(old.term.identical(all[position - 1].as_ref()));
            patch.put(old, term.as_ref());
            all[position - 1] = term.clone();
        }
        assert!(patch.finish());
        let whole = object(&Term::tuple(all), keypos, form, false);
        (spliced, whole.value().to_vec())
    }

    #[test]
    fn some_elements_change_and_the_others_stay() {
        let before = term!({[a], 100, "bin", (-7), {x, 1.5}});
        let terms = [term!(1), term!({x, "y"}), Term::from(1i64 << 40), term!([])];
        for form in FORMS {
            for keypos in 1..=5 {
                for chosen in 0..1 << 5 {
                    let new: Vec<_> = (1..=5)
                        .filter(|position| chosen >> (position - 1) & 1 == 1 && *position != keypos)
                        .map(|position| (position, terms[(position + chosen) % 4].clone()))
                        .collect();
                    let (spliced, whole) = both(&before, keypos, form, &new);
                    assert_eq!(spliced, whole, "{keypos} {new:?}");
                }
            }
        }
    }

    #[test]
    fn elements_are_found_in_any_order() {
        let row = Term::tuple((0..50).map(Term::from));
        for keypos in [1, 7, 50] {
            let stored = object(&row, keypos, FORMS[0], false);
            let mut out = Vec::new();
            let mut patch = Patch::new(stored.value(), keypos, &mut out);
            let down = (1..=50).rev();
            let sawtooth = (1..=10).flat_map(|i| [5 * i, i, 50 - i]);
            for position in down.clone().chain(sawtooth).chain(1..=50).chain(down) {
                if position != keypos {
                    let element = patch.element(position);
                    assert!(element
                        .term
                        .identical(Term::from(position as i64 - 1).as_ref()));
                }
            }
        }
    }

    #[test]
    fn a_row_may_have_many_elements() {
        let before = Term::tuple((0..200).map(Term::from));
        let new = [(2, term!(x)), (77, term!("y")), (200, term!(z))];
        let (spliced, whole) = both(&before, 1, FORMS[0], &new);
        assert_eq!(spliced, whole);
    }

    #[test]
    fn a_compressed_value_is_unpacked() {
        let long = [
            Term::from(1),
            Term::from(2),
            Term::list(vec![term!(word); 100]),
        ];
        let long = Term::tuple(long);
        let (packed, whole) = (
            object(&long, 1, FORMS[0], true),
            object(&long, 1, FORMS[0], false),
        );
        assert!(packed.value().len() < whole.value().len());
        let mut plain = Vec::new();
        assert_eq!(plain_value(packed.value(), &mut plain), whole.value());
        assert_eq!(plain_value(whole.value(), &mut Vec::new()), whole.value());
    }

    /// A row of which some elements stand before what is packed.
    fn long_row(key: Term, first: [Term; 4]) -> Term {
        let rest = (0..40).map(|i| term!({"a row", (i), "that repeats itself"}));
        let all: Vec<Term> = [key].into_iter().chain(first).chain(rest).collect();
        Term::tuple(all)
    }

    #[test]
    fn the_front_of_a_packed_value_is_changed_where_it_lies() {
        let small = [1, -1, 127, 128, 300, i64::MAX, 1 << 20].map(Term::from);
        let large = [
            term!("text"),
            Term::bigint(&(num_bigint::BigInt::from(7) << 70)),
        ];
        let keys = [
            term!(7),
            term!(k),
            term!([a]),
            Term::binary(&[7; 50]),
            Term::list(vec![Term::from(1i64 << 40); 9]),
        ];
        let first = |n: usize, term: &Term| {
            let mut first = [term!(0), term!(0.5), term!(b), term!(3)];
            first[n] = term.clone();
            first
        };
        for (form, key) in FORMS
            .iter()
            .flat_map(|form| keys.iter().map(move |key| (*form, key)))
        {
            let before = object(&long_row(key.clone(), first(0, &small[0])), 1, form, true);
            assert_ne!(before.value()[0] & COMPRESSED, 0);
            let is_long = before.value()[0] & EXACT_KEY != 0 && key.bytes().len() > 32;
            for n in 0..4 {
                let mut plain = Vec::new();
                let value = patchable(before.value(), 1, || n + 2, &mut plain);
                assert_eq!(value == before.value(), n < 3 && !is_long, "{key:?} {n}");
                let value = value.to_vec();
                for new in small.iter().chain(&large) {
                    let mut out = Vec::new();
                    let mut patch = Patch::new(&value, 1, &mut out);
                    let old = patch.element(n + 2);
                    patch.put(old, new.as_ref());
                    patch.finish();
                    let mut row = first(0, &small[0]);
                    row[n] = new.clone();
                    let whole = object(&long_row(key.clone(), row), 1, form, true);
                    let mut unpacked = Vec::new();
                    if close(&mut out, value.len()) {
                        let same = plain_value(&out, &mut unpacked);
                        assert_eq!(same, plain_value(whole.value(), &mut Vec::new()));
                        if out[0] & COMPRESSED != 0 {
                            assert_eq!(out, whole.value());
                        }
                    } else {
                        assert!(large.contains(new));
                    }
                }
            }
        }
    }
}
