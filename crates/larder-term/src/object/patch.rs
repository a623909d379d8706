//! Replacing elements of a stored value, without decoding the object.
//!
//! ```text
//!  value     head [exact key] | e1 | e2 | e4 | e5 | e6 …   (the key is the third element)
//!                                  ▲         ▲    ▲
//!                                from     done    at        e2 and e4 were replaced, e6 is next
//!  out                             e2' e4'
//! ```
//!
//! 1. [`Patch::new`] reads the header, and is then before the first element.
//! 2. [`Patch::element`] walks to a position, and returns the element there. It skips elements by
//!    their heads, without decoding them. It continues from the last position;
//!    [`Patch::element_in_any_order`] may start again.
//! 3. [`Patch::put`] copies the bytes between `done` and an element in one run, and writes the new
//!    term in place of the element.
//! 4. [`Patch::finish`] returns which bytes of the value `out` replaces.
//!
//! Invariants: `out` is the new form of the bytes `from..done` of the value; both are 0 before the
//! first element is replaced. Elements are put in ascending order of their positions. A [`Patch`]
//! owns no counts: whoever stores the result takes counts of the added handles, and gives back
//! those of the removed ones.
//!
//! If the lengths of groups change (`object/groups.rs`), they are replaced, too: `from` is then
//! where they stand.
//!
//! The run at the beginning of a compressed value is plain (see `object/packed.rs`), and is patched
//! in place. [`close`] then writes the new length of the run. For elements after the run, the
//! value must be unpacked first ([`patchable`]).

use super::{groups, packed, term_at, NewElements, COMPRESSED, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::blob;
use crate::skip::end_of;
use crate::varint;
use crate::view::TermRef;

/// An element of a value that is being patched.
#[derive(Clone, Copy)]
pub struct Element<'v> {
    at: usize,
    end: usize,
    /// The element's term.
    pub term: TermRef<'v>,
}

/// The result of a [`Patch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patched {
    /// How many bytes of the value lie before those that the buffer replaces.
    pub at: usize,
    /// How many bytes of the value the buffer replaces.
    pub len: usize,
    /// No element with handles was replaced or written, so that the value's handles are unchanged.
    pub same_handles: bool,
}

/// An offset between two elements of a value.
#[derive(Clone, Copy)]
struct Cursor<'v> {
    value: &'v [u8],
    keypos: usize,
    /// The position of the element that begins at `at`. If it is that of the key, the element has
    /// no bytes.
    position: usize,
    at: usize,
}

impl Cursor<'_> {
    /// Moves to the next position.
    #[inline]
    fn step(&mut self) {
        // The key has a position but no bytes.
        if self.position != self.keypos {
            self.at = end_of(self.value, self.at);
        }
        self.position += 1;
    }
}

/// As `step`, over whole groups, towards the position `wanted` of a plain wide value. Returns the
/// position to which it comes, and where its element begins.
// It gets the parts of a cursor, which so stay in registers.
#[inline(never)]
fn pass_groups(
    value: &[u8],
    (arity, first, keypos): (usize, usize, usize),
    (position, at): (usize, usize),
    wanted: usize,
) -> (usize, usize) {
    let number = |position| position - 1 - usize::from(position > keypos);
    let (from, wanted) = (number(position), number(wanted));
    // Another group is found from the front, if few groups lie before this element. To go on from
    // here, the rest of this group would be passed element by element.
    const FRONT: usize = 8 * groups::GROUP;
    let from = match from < FRONT && wanted / groups::GROUP > from / groups::GROUP {
        true => (0, first),
        false => (from, at),
    };
    let lengths = &value[first - groups::count(arity)..first];
    let (index, at) = groups::pass(lengths, value, from, wanted);
    // The key has a position but no bytes.
    (index + 1 + usize::from(index + 1 >= keypos), at)
}

/// How many elements a value has, where the first one begins if there are lengths of groups
/// (otherwise 0), and where it begins.
#[inline(never)]
fn start(value: &[u8]) -> (usize, usize, usize) {
    let (header, mut at) = varint::read(value, 0);
    // The run of a packed value has its length in front of it.
    at += usize::from(header as u8 & COMPRESSED != 0);
    // Skip the exact key. It is copied along with the header.
    if header as u8 & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    let arity = (header >> FLAG_BITS) as usize;
    if arity < groups::WIDE || header as u8 & COMPRESSED != 0 {
        return (arity, 0, at);
    }
    at += groups::size(arity);
    (arity, at, at)
}

/// A walk over the elements of a value, which writes what replaces some of them. In a packed value
/// it walks only over the run.
// No function that isn't inlined gets a reference to it: then its parts are kept in registers.
pub struct Patch<'v, 'o> {
    arity: usize,
    cursor: Cursor<'v>,
    /// Where the first element begins, if the value has lengths of groups of elements; otherwise 0.
    first: usize,
    /// Where the first element begins that was replaced.
    from: usize,
    /// Where the last element ends that was replaced.
    done: usize,
    /// Whether an element was replaced by one of another length.
    resized: bool,
    /// Whether a term that has a handle was replaced.
    changed: bool,
    /// Whether a new term has a handle.
    handles: bool,
    out: &'o mut Vec<u8>,
}

impl<'v, 'o> Patch<'v, 'o> {
    /// Begins to patch a value. `out` is empty. `keypos` must be that with which the value was
    /// encoded. In a packed value, only elements in its run may be requested.
    #[inline(always)]
    pub fn new(value: &'v [u8], keypos: usize, out: &'o mut Vec<u8>) -> Self {
        // The header is usually one byte: the arity, and four flags. Mostly the elements follow.
        let (arity, first, at) = match value[0] {
            header if header & (0x80 | COMPRESSED | EXACT_KEY) == 0 => {
                (usize::from(header >> FLAG_BITS), 0, 1)
            }
            _ => start(value),
        };
        Patch {
            arity,
            first,
            cursor: Cursor {
                value,
                keypos,
                position: 1,
                at,
            },
            from: 0,
            done: 0,
            resized: false,
            changed: false,
            handles: false,
            out,
        }
    }

    /// The last position that was requested; 1 if there was none.
    #[inline]
    pub fn position(&self) -> usize {
        self.cursor.position
    }

    /// Whether there is an element at a position, from 1, that may be replaced. The key may not.
    #[inline]
    pub fn has(&self, position: usize) -> bool {
        position.wrapping_sub(1) < self.arity && position != self.cursor.keypos
    }

    /// The element at a position, which the value must have. No later position has been requested.
    ///
    /// # Complexity
    /// Linear in the heads of the terms between this position and the last one.
    #[inline(always)]
    pub fn element(&mut self, position: usize) -> Element<'v> {
        debug_assert!(self.has(position) && position >= self.cursor.position);
        // In a wide object, pass whole groups by their lengths.
        if self.first != 0 && position - self.cursor.position >= groups::GROUP {
            let Cursor {
                value,
                keypos,
                position: from,
                at,
            } = self.cursor;
            let row = (self.arity, self.first, keypos);
            (self.cursor.position, self.cursor.at) = pass_groups(value, row, (from, at), position);
        }
        while self.cursor.position < position {
            self.cursor.step();
        }
        // The element begins at `at`. Skip it once more to find its end.
        let Cursor { value, at, .. } = self.cursor;
        let end = end_of(value, at);
        Element {
            at,
            end,
            term: TermRef::within(term_at(&value[at..end])),
        }
    }

    /// As `element`, for positions in any order. `passed` was made before the first request.
    ///
    /// # Complexity
    /// If the position is after the last one that was requested, that of `element`. Requesting all
    /// elements, in any order, is linear in the value.
    // It is rare: its callers needn't keep the patch in registers.
    #[inline(never)]
    pub fn element_in_any_order(&mut self, passed: &mut Passed, position: usize) -> Element<'v> {
        match position < self.cursor.position {
            true => passed.step_back(&mut self.cursor, position),
            false => passed.step_forward(&mut self.cursor, position),
        }
        self.element(position)
    }

    /// As `element`, for any position. `None` if the value has no such element, if it may not be
    /// replaced, if a later position was requested, or if the value would have to be unpacked.
    /// `packs` says whether the value is one of a compressed table.
    #[inline(always)]
    pub fn element_in_place(&mut self, position: usize, packs: bool) -> Option<Element<'v>> {
        let Cursor { value, keypos, .. } = self.cursor;
        let is_here = self.has(position)
            && position >= self.cursor.position
            && (!packs || packed::has_in_run(value, keypos, position));
        is_here.then(|| self.element(position))
    }

    /// Replaces an element after the last one that was replaced. `write` appends the new term as it
    /// is stored, which must have no handle.
    #[inline(always)]
    pub fn put_with(&mut self, old: Element<'v>, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.done <= old.at);
        // Copy the bytes since the last one that was replaced in one run. No element begins at 0.
        match self.done {
            0 => self.from = old.at,
            done => self.out.extend_from_slice(&self.cursor.value[done..old.at]),
        }
        let start = self.out.len();
        write(self.out);
        self.resized |= self.out.len() - start != old.end - old.at;
        // Search the old element for a handle only if the value has any.
        let value = self.cursor.value;
        self.changed |=
            super::value_has_handles(value) && blob::has_handles(&value[old.at..old.end]);
        // Skip the old element.
        self.done = old.end;
    }

    /// Replaces an element after the last one that was replaced. `elements` gets the new one if it
    /// is stored out of line, and must hold it until the patched value has counts of its own.
    #[inline(always)]
    pub fn put(&mut self, old: Element<'v>, new: TermRef<'_>, elements: &mut NewElements<'_>) {
        let is_last = old.end == self.cursor.value.len();
        let mut handles = false;
        self.put_with(old, |out| handles = elements.push(new, is_last, out));
        self.handles |= handles;
    }

    /// Returns which bytes of the value the buffer replaces; `None` if no element was replaced.
    #[inline(always)]
    pub fn finish(mut self) -> Option<Patched> {
        if self.done == 0 {
            return None;
        }
        // An element of a wide object has another length now, and so has its group. The lengths lie
        // before all elements, so the replaced bytes begin there.
        if self.first != 0 && self.resized {
            let (row, changed) = ((self.arity, self.first), self.from..self.done);
            self.from = groups::measure_again(self.cursor.value, row, changed, self.out);
        }
        // The value has its first handle. The flag is in its header, so everything from there on is
        // replaced.
        if self.handles && !super::value_has_handles(self.cursor.value) {
            flag_handles(&self.cursor.value[..self.from], self.out);
            self.from = 0;
        }
        Some(Patched {
            at: self.from,
            len: self.done - self.from,
            same_handles: !self.changed && !self.handles,
        })
    }
}

/// The elements that a patch has passed, for requests in any order.
pub struct Passed {
    /// The offset of the first element.
    first: usize,
    /// How often an element was requested that had been passed.
    steps_back: usize,
    /// The offsets of the elements, from the first, as far as they were recorded.
    starts: Vec<usize>,
}

impl Passed {
    /// For a patch of which no element was requested yet.
    pub fn new(patch: &Patch<'_, '_>) -> Passed {
        debug_assert_eq!(patch.cursor.position, 1);
        Passed {
            first: patch.cursor.at,
            steps_back: 0,
            starts: Vec::new(),
        }
    }

    /// Moves the cursor back to a position that was passed, or to one before it.
    fn step_back(&mut self, cursor: &mut Cursor<'_>, position: usize) {
        // Steps back are rare in real patches. The first few begin at the front again, which needs
        // no memory.
        const FEW: usize = 4;
        let passed = cursor.position;
        self.steps_back += 1;
        if self.steps_back <= FEW {
            (cursor.position, cursor.at) = (1, self.first);
            return;
        }
        // This happens often. Record the offsets of the passed elements, once each.
        let noted = self.starts.last().copied();
        (cursor.position, cursor.at) = match noted {
            Some(at) => (self.starts.len(), at),
            None => (1, self.first),
        };
        if noted.is_none() {
            self.starts.push(self.first);
        }
        while cursor.position < passed {
            cursor.step();
            self.starts.push(cursor.at);
        }
        (cursor.position, cursor.at) = (position, self.starts[position - 1]);
    }

    /// Moves the cursor towards a position, as far as the offsets were recorded.
    fn step_forward(&self, cursor: &mut Cursor<'_>, position: usize) {
        let known = position.min(self.starts.len());
        if known > cursor.position {
            (cursor.position, cursor.at) = (known, self.starts[known - 1]);
        }
    }
}

/// Sets the flag of a value that gets its first handle: the header, and what lies between it and
/// the first element that was replaced, are replaced, too.
#[cold]
#[inline(never)]
fn flag_handles(before: &[u8], out: &mut Vec<u8>) {
    out.splice(..0, before.iter().copied());
    out[0] |= HAS_HANDLES;
}

/// The value in a form in which a [`Patch`] can replace elements up to position `last()`: the value
/// itself, or its unpacked form, which is written to `plain`.
#[inline]
pub fn patchable<'v>(
    value: &'v [u8],
    keypos: usize,
    last: impl FnOnce() -> usize,
    plain: &'v mut Vec<u8>,
) -> &'v [u8] {
    // Only elements in the packed part need the whole value unpacked.
    match value[0] & COMPRESSED != 0 && !packed::has_in_run(value, keypos, last()) {
        true => unpacked(value, plain),
        false => value,
    }
}

/// The value without compression: the value itself, or its unpacked form, which is written to
/// `plain`.
#[inline]
pub fn plain_value<'v>(value: &'v [u8], plain: &'v mut Vec<u8>) -> &'v [u8] {
    match value[0] & COMPRESSED {
        0 => value,
        _ => unpacked(value, plain),
    }
}

/// Whether the result of a [`Patch`] is complete: all other bytes of the value stay as they are.
/// `new` is the number of bytes that it puts. (Otherwise [`close`] completes the value.)
#[inline]
pub fn is_complete(value: &[u8], patched: Patched, new: usize) -> bool {
    // The length of a run stands in front of it.
    value[0] & COMPRESSED == 0 || patched.len == new
}

/// Completes a value that a [`Patch`] wrote. `before` is the length of the old value. Returns
/// whether the result is what an encoder would write. If not, the caller must start again with the
/// plain value.
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
    groups::add(plain);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::Counts;
    use crate::object::{encode, KeyForm, ObjectBuf};
    use crate::{term, Term};

    const FORMS: [KeyForm; 2] = [KeyForm::Hash { legacy_zero: false }, KeyForm::Ordered];

    fn object(tuple: &Term, keypos: usize, form: KeyForm, compress: bool) -> ObjectBuf {
        let mut object = ObjectBuf::new();
        encode(tuple.as_ref(), keypos, form, compress, &mut object).unwrap();
        object
    }

    /// The value that is patched.
    fn complete(value: &[u8], patched: Option<Patched>, new: &[u8]) -> Vec<u8> {
        let (at, len) = patched.map_or((0, 0), |patched| (patched.at, patched.len));
        [&value[..at], new, &value[at + len..]].concat()
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
            patch.put(
                old,
                term.as_ref(),
                &mut NewElements::new(None, &mut Counts::new()),
            );
            all[position - 1] = term.clone();
        }
        let patched = patch.finish();
        assert!(patched.is_none_or(|patched| patched.same_handles));
        let whole = object(&Term::tuple(all), keypos, form, false);
        (
            complete(stored.value(), patched, &spliced),
            whole.value().to_vec(),
        )
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
    fn elements_are_replaced_in_place_if_nothing_is_unpacked() {
        let terms = [term!(1), term!(1000), Term::from(1i64 << 40), term!(x)];
        for (form, arity) in FORMS
            .into_iter()
            .flat_map(|form| [1, 2, 7, 8, 11, 12, 40].map(|n| (form, n)))
        {
            let all: Vec<Term> = (0..arity).map(|n| terms[n % 3].clone()).collect();
            let all_but_one = |last| [&all[..arity - 1], &[last]].concat();
            let packed = all_but_one(Term::list(vec![term!(word); 100]));
            for (keypos, position) in [1, arity]
                .into_iter()
                .flat_map(|keypos| (0..arity + 2).map(move |position| (keypos, position)))
            {
                for (row, packs) in [(&all, false), (&all, true), (&packed, true)] {
                    let stored = object(&Term::tuple(row.clone()), keypos, form, packs);
                    for new in &terms {
                        let mut out = Vec::new();
                        let mut patch = Patch::new(stored.value(), keypos, &mut out);
                        let has = patch.has(position);
                        let Some(old) = patch.element_in_place(position, packs) else {
                            assert!(!has || packs, "{arity} {keypos} {position}");
                            continue;
                        };
                        assert!(!packs || position <= 4);
                        patch.put_with(old, |out| out.extend_from_slice(new.bytes()));
                        let patched = patch.finish().unwrap();
                        let mut row = row.clone();
                        row[position - 1] = new.clone();
                        let whole = object(&Term::tuple(row), keypos, form, packs);
                        let is_packed = stored.value()[0] & COMPRESSED != 0;
                        let same_len = old.term.bytes().len() == new.bytes().len();
                        let is_complete = is_complete(stored.value(), patched, out.len());
                        assert_eq!(is_complete, !is_packed || same_len);
                        if is_complete {
                            let complete = complete(stored.value(), Some(patched), &out);
                            assert_eq!(complete, whole.value());
                        }
                    }
                }
            }
        }
        // No element is found before the last one.
        let stored = object(&Term::tuple((0..5).map(Term::from)), 1, FORMS[0], false);
        let mut out = Vec::new();
        let mut patch = Patch::new(stored.value(), 1, &mut out);
        assert!(patch.element_in_place(3, false).is_some());
        assert!(patch.element_in_place(2, false).is_none());
        assert!(patch.element_in_place(3, false).is_some());
    }

    #[test]
    fn elements_are_found_in_any_order() {
        let row = Term::tuple((0..50).map(Term::from));
        for keypos in [1, 7, 50] {
            let stored = object(&row, keypos, FORMS[0], false);
            let mut out = Vec::new();
            let mut patch = Patch::new(stored.value(), keypos, &mut out);
            let mut passed = Passed::new(&patch);
            let down = (1..=50).rev();
            let sawtooth = (1..=10).flat_map(|i| [5 * i, i, 50 - i]);
            for position in down.clone().chain(sawtooth).chain(1..=50).chain(down) {
                if position != keypos {
                    let element = patch.element_in_any_order(&mut passed, position);
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
                    patch.put(
                        old,
                        new.as_ref(),
                        &mut NewElements::new(None, &mut Counts::new()),
                    );
                    let patched = patch.finish();
                    let mut out = complete(&value, patched, &out);
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
