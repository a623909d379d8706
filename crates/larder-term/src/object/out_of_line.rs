//! Elements that are stored out of line.
//!
//! ```text
//!  {k, 17, [1, …, 5000]}      17 | OUT_OF_LINE 10003 handle ──▶ LIST 5000 1 … 5000
//! ```
//!
//! A value is copied as a whole when one of its elements is replaced, when it is stored, and when
//! its leaf is rewritten. So an element of more than [`LONGEST_IN_LINE`] bytes isn't a part of the
//! value of a table that isn't compressed: it has an allocation of its own, to which the value has
//! a handle, as to a shared binary. Copies of the value share it. It is never changed.
//!
//! * The element owns the counts of the handles in its term. The value owns one count of the
//!   element.
//! * A key is never out of line, nor is a part of an element.
//! * Values are compared and hashed by their terms, so an element out of line is equal to
//!   the same one in line.
//! * A table counts the bytes of its elements out of line ([`OutOfLineBytes`]). They are freed with
//!   the last value that has a handle to them, which may be that of a snapshot.

use super::{groups, sized, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::skip::fixed_len;
use crate::{
    blob::{self, Counted, Counts, Handles, Kept, OutOfLineBytes, Payload},
    skip::end_of,
    tags::{HANDLE, OUT_OF_LINE, SIZED},
    varint,
    view::TermRef,
};
use std::sync::Arc;

/// No element of at most this many bytes is out of line: copying it takes less than another
/// allocation.
pub const LONGEST_IN_LINE: usize = 2048;

/// It takes less to search the bytes of a shorter run than to pass its elements.
const SHORT: usize = 64;

/// Appends the stored form of an element, which takes over the count.
fn push(element: Arc<Payload>, out: &mut Vec<u8>) {
    out.push(OUT_OF_LINE);
    varint::push(out, element.bytes().len() as u64);
    out.extend_from_slice(&blob::handle_of(Kept::Payload(element)));
}

/// The value with all long elements out of line; `None` if none is long. The elements in line keep
/// their counts, which then belong to the new value.
///
/// # Safety
/// An encoder of objects wrote the plain value in this process, but its flag for handles may not be
/// set yet: `handles` says whether it has any. The caller owns their counts. If the result isn't
/// `None`, they belong to it, and those of the old value are given up.
///
/// # Complexity
/// Linear in the number of elements, in the length of the short ones, and in the heads of the long
/// ones.
pub unsafe fn put_out_of_line(
    value: &[u8],
    handles: bool,
    total: &Arc<OutOfLineBytes>,
) -> Option<Vec<u8>> {
    let (header, mut at) = varint::read(value, 0);
    if header as u8 & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    let arity = (header >> FLAG_BITS) as usize;
    // The lengths of the groups change: they are left out, and added again at the end.
    let mut out = value[..at].to_vec();
    at += groups::size(arity);
    // `copied` is where the elements end that were copied to `out`.
    let (mut copied, mut any) = (at, false);
    for others in (0..arity - 1).rev() {
        // No walk is needed to the end of the last one.
        let end = match others {
            0 => value.len(),
            _ => end_of(value, at),
        };
        let term = term_at(&value[at..end]);
        if term.len() > LONGEST_IN_LINE {
            out.extend_from_slice(&value[copied..at]);
            // SAFETY: an encoder wrote the term, and the caller gives up the counts of its handles:
            // the bytes of this element aren't copied to the new value.
            let term = unsafe { Counted::taking(term, handles && blob::has_handles(term)) };
            push(Payload::element(term, total), &mut out);
            (copied, any) = (end, true);
        }
        at = end;
    }
    if !any {
        return None;
    }
    out.extend_from_slice(&value[copied..]);
    out[0] |= HAS_HANDLES;
    groups::add(&mut out);
    Some(out)
}

/// The total length of the elements of a plain value that are out of line. Linear in the number of
/// elements if the value has handles, otherwise constant.
#[inline]
pub fn out_of_line_len(value: &[u8]) -> usize {
    match super::value_has_handles(value) {
        true => total_len(&value[varint::read(value, 0).1..]),
        false => 0,
    }
}

/// The total length of the elements out of line in a run of stored elements, in front of which may
/// be terms.
#[inline(never)]
pub(super) fn total_len(run: &[u8]) -> usize {
    let (mut at, mut total) = (0, 0);
    // Mostly the bytes of a short run show that there is none.
    if run.len() < SHORT && !run.contains(&OUT_OF_LINE) {
        return 0;
    }
    while at < run.len() {
        if run[at] == OUT_OF_LINE {
            total += varint::read(run, at + 1).0 as usize;
        }
        at = end_of(run, at);
    }
    total
}

/// Whether the stored element with which a run begins is more than its term: it has a prefix, or is
/// out of line. The run may be empty.
#[inline]
pub(super) fn is_long(run: &[u8]) -> bool {
    matches!(run.first(), Some(&(SIZED | OUT_OF_LINE)))
}

/// The term of the stored element with which a run begins. Unless it is long, the term is followed
/// by whatever follows the element. The run may be empty.
#[inline]
pub(crate) fn term_at(run: &[u8]) -> &[u8] {
    match is_long(run) {
        true => long_term(run),
        false => run,
    }
}

#[inline(never)]
fn long_term(run: &[u8]) -> &[u8] {
    if run[0] == OUT_OF_LINE {
        let end = varint::read(run, 1).1 + HANDLE;
        return blob::element(&run[..end]);
    }
    let (len, at) = varint::read(run, 1);
    &run[at..at + len as usize]
}

/// Whether a term has no handle, and is stored as it is wherever it stands. With `packs`, also
/// whether the run of a packed value may have it.
#[inline]
pub fn is_stored_as_is(term: TermRef<'_>, packs: bool) -> bool {
    let bytes = term.bytes();
    fixed_len(bytes[0]) != 0 || !packs && is_short(bytes)
}

#[inline(never)]
fn is_short(term: &[u8]) -> bool {
    term.len() <= sized::LONG && !blob::has_handles(term)
}

/// Makes elements out of line for a [`Patch`](super::patch::Patch), and holds a count of each until
/// it is dropped. Whoever stores the patched value takes counts of its own before that.
#[derive(Debug)]
pub struct NewElements<'t> {
    total: Option<&'t Arc<OutOfLineBytes>>,
    kept: &'t mut Counts,
}

impl<'t> NewElements<'t> {
    /// Holds its counts in `kept`, which is empty. With `total`, long elements are put out of line,
    /// and counted there.
    #[inline]
    pub fn new(total: Option<&'t Arc<OutOfLineBytes>>, kept: &'t mut Counts) -> Self {
        NewElements { total, kept }
    }

    /// Appends an element. `is_last` says whether no other one follows. Returns whether it has
    /// handles.
    #[inline]
    pub(super) fn push(&mut self, term: TermRef<'_>, is_last: bool, out: &mut Vec<u8>) -> bool {
        // Most elements are a single integer or atom.
        if is_stored_as_is(term, false) {
            out.extend_from_slice(term.bytes());
            return false;
        }
        self.push_other(term, is_last, out)
    }

    #[inline(never)]
    fn push_other(&mut self, term: TermRef<'_>, is_last: bool, out: &mut Vec<u8>) -> bool {
        match self.total {
            Some(total) if term.bytes().len() > LONGEST_IN_LINE => {
                self.push_long(term, total, out);
                true
            }
            _ => {
                sized::push(term.bytes(), is_last, out);
                term.has_handles()
            }
        }
    }

    #[cold]
    fn push_long(&mut self, term: TermRef<'_>, total: &Arc<OutOfLineBytes>, out: &mut Vec<u8>) {
        let start = out.len();
        push(Payload::element(Counted::copy_of(term), total), out);
        let mut handles = Handles::default();
        handles.note(&out[start..]);
        // SAFETY: `push` has just written the handle. Its count is given up to `kept`, and whoever
        // relies on the handle takes one of its own before `kept` is emptied.
        unsafe { handles.own(self.kept) }
    }
}

impl Drop for NewElements<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.kept.is_empty() {
            *self.kept = Counts::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::patch::Patch;
    use crate::object::sized::tests::{stored, FORMS};
    use crate::object::{self, has_same_element, plain_len, KeyForm, ObjectBuf};
    use crate::{term, Term};

    /// Terms of each length around the limit, and of each kind that may be long.
    fn elements() -> Vec<Term> {
        let list = |len: usize| Term::list((0..len).map(|n| Term::from(n as i64 % 100)));
        let shared = Term::binary(&[7; 300]);
        let mut elements = [1, 70, 2045, 2046, 5000].map(list).to_vec();
        elements.push(Term::tuple(vec![term!(word); 2000]));
        elements.push(Term::list(vec![shared.clone(); 500]));
        elements.push(Term::map((0..900i32).map(|n| (Term::from(n), shared.clone()))).unwrap());
        elements.extend([term!(17), term!(a), Term::binary(&[1; 5000])]);
        elements
    }

    /// A copy of a stored object, with counts of its own.
    ///
    /// # Safety
    /// This crate made `value` in this process. Somebody holds the counts of its handles during
    /// the call.
    unsafe fn copy(key: &[u8], value: &[u8]) -> ObjectBuf {
        // SAFETY: the caller's promise is the callee's precondition; the copy's counts are then
        // those of the buffer.
        unsafe { object::retain_value(value) }
        let (key, value) = (key.to_vec(), value.to_vec());
        ObjectBuf { key, value }
    }

    fn is_long(term: &Term) -> bool {
        term.as_ref().bytes().len() > LONGEST_IN_LINE
    }

    fn encoded(
        row: &[Term],
        keypos: usize,
        form: KeyForm,
        total: &Arc<OutOfLineBytes>,
    ) -> ObjectBuf {
        let (mut object, tuple) = (ObjectBuf::new(), Term::tuple(row.to_vec()));
        let encode = object::encode_out_of_line;
        encode(
            tuple.as_ref(),
            keypos,
            form,
            false,
            &mut object,
            Some(total),
        )
        .unwrap();
        object
    }

    /// The bytes of the long elements of a row without its key.
    fn long_bytes(row: &[Term], keypos: usize) -> usize {
        let others = row.iter().enumerate().filter(|(i, _)| i + 1 != keypos);
        let long = others.filter(|(_, term)| is_long(term));
        long.map(|(_, term)| term.as_ref().bytes().len()).sum()
    }

    /// Short rows and wide ones, with each element at each place.
    fn each_row(mut f: impl FnMut(&[Term], usize, KeyForm)) {
        let all = elements();
        for (i, first) in all.iter().enumerate() {
            let (second, third) = (&all[(i + 3) % all.len()], &all[(i + 5) % all.len()]);
            let narrow = vec![term!(1), first.clone(), second.clone(), third.clone()];
            let mut wide = vec![term!(x); 30];
            (wide[1], wide[9], wide[29]) = (first.clone(), second.clone(), third.clone());
            for row in [narrow, wide] {
                for keypos in [1, 2, row.len()] {
                    FORMS.iter().for_each(|form| f(&row, keypos, *form));
                }
            }
        }
    }

    #[test]
    fn objects_are_those_that_were_written() {
        each_row(|row, keypos, form| {
            let total = Arc::default();
            let object = encoded(row, keypos, form, &total);
            let (whole, tuple) = (stored(row, keypos, form, false), Term::tuple(row.to_vec()));
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let (view, in_line) = (object.view(keypos, &mut a), whole.view(keypos, &mut b));
            assert!(view.identical_tuple(tuple.as_ref()));
            assert!(view.identical(&in_line) && in_line.identical(&view));
            for (i, element) in row.iter().enumerate().rev() {
                assert!(view.element(i + 1).unwrap().identical(element.as_ref()));
                if !element.as_ref().has_handles() {
                    assert!(view.element_is(i + 1, element.as_ref().bytes()));
                    let values = (object.value(), whole.value());
                    if values.0[0] & EXACT_KEY == 0 && !(is_long(element) && i + 1 != keypos) {
                        assert_eq!(
                            has_same_element(values.0, values.1, keypos, i + 1),
                            Some(true)
                        );
                    }
                }
            }
            // As bytes they are compared by what they lead to.
            let twin = encoded(row, keypos, form, &Arc::default());
            for (i, element) in row.iter().enumerate() {
                if object.value()[0] & EXACT_KEY == 0 && !element.as_ref().has_handles() {
                    let (one, other) = (object.value(), twin.value());
                    assert_eq!(has_same_element(one, other, keypos, i + 1), Some(true));
                }
            }
            let mut bytes = Vec::new();
            view.to_tuple(&mut bytes);
            assert!(TermRef::within(&bytes).identical(tuple.as_ref()));
            // SAFETY: the objects hold the counts.
            let hashes = unsafe { [object::hash(object.value()), object::hash(whole.value())] };
            assert_eq!(hashes[0], hashes[1]);

            // What is out of line is counted.
            let long = long_bytes(row, keypos);
            assert_eq!((total.get(), out_of_line_len(object.value())), (long, long));
            assert_eq!(plain_len(object.value()), object.value().len() + long);
            assert_eq!(view.others_len(), view.others_bytes().len() + long);
            let outside = |object: &ObjectBuf| object::outside_bytes(object.value());
            assert_eq!(outside(&object), outside(&whole));
            // Copies share it, and the last one frees it.
            // SAFETY: the object holds the counts.
            let copy = unsafe { copy(object.key(), object.value()) };
            drop(object);
            assert_eq!(total.get(), long);
            assert!(copy
                .view(keypos, &mut Vec::new())
                .identical_tuple(tuple.as_ref()));
            drop(copy);
            assert_eq!(total.get(), 0);
        });
    }

    #[test]
    fn long_elements_come_and_go_by_patches() {
        each_row(|row, keypos, form| {
            let total: Arc<OutOfLineBytes> = Arc::default();
            let before = encoded(row, keypos, form, &total);
            for position in (1..=row.len()).filter(|position| *position != keypos) {
                for new in [term!(5), Term::list(vec![term!(y); 3000]), row[1].clone()] {
                    let (mut out, mut kept) = (Vec::new(), Counts::new());
                    let mut elements = NewElements::new(Some(&total), &mut kept);
                    let mut patch = Patch::new(before.value(), keypos, &mut out);
                    let old = patch.element(position);
                    assert!(old.term.identical(row[position - 1].as_ref()));
                    patch.put(old, new.as_ref(), &mut elements);
                    let patched = patch.finish().unwrap();
                    let is_outside = |term: &Term| is_long(term) || term.as_ref().has_handles();
                    let same = !is_outside(&new) && !is_outside(&row[position - 1]);
                    assert_eq!(patched.same_handles, same);
                    let value = before.value();
                    let rest = &value[patched.at + patched.len..];
                    let after = [&value[..patched.at], &out, rest].concat();
                    let mut row = row.to_vec();
                    row[position - 1] = new.clone();
                    // Stored, the new value has counts of its own.
                    // SAFETY: `before`, `elements` and `new` hold the counts.
                    let object = unsafe { copy(before.key(), &after) };
                    drop(elements);
                    let whole = encoded(&row, keypos, form, &Arc::default());
                    assert_eq!(object.value().len(), whole.value().len());
                    let mut scratch = Vec::new();
                    let view = object.view(keypos, &mut scratch);
                    assert!(view.identical_tuple(Term::tuple(row).as_ref()));
                }
            }
            assert_eq!(total.get(), long_bytes(row, keypos));
        });
    }

    #[test]
    fn compressed_objects_have_all_in_line() {
        let (total, row) = (Arc::default(), elements());
        let (mut object, tuple) = (ObjectBuf::new(), Term::tuple(row));
        let encode = object::encode_out_of_line;
        encode(tuple.as_ref(), 1, FORMS[0], true, &mut object, Some(&total)).unwrap();
        assert_eq!(total.get(), 0);
        assert!(object
            .view(1, &mut Vec::new())
            .identical_tuple(tuple.as_ref()));
    }
}
