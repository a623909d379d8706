//! The lengths of groups of elements in wide objects.
//!
//! ```text
//!  {k, e1, …, e19}     BIN 2 | 31 17 | e1 … e8 | e9 … e16 | e17 e18 e19
//! ```
//!
//! An element is found by passing those before it. So a value of at least [`WIDE`] elements says
//! how long each group of [`GROUP`] elements is which another element follows. The lengths are a
//! binary in front of the elements: whatever walks over the terms of a value passes it as one more.
//!
//! * A length is one byte. [`MOST`] stands for itself and for all greater lengths: such a group is
//!   passed element by element.
//! * The length of an element includes its prefix (`object/sized.rs`).
//! * A compressed value has no lengths. Its elements are passed after they were unpacked, or lie in
//!   the run.
//! * Like all of an encoding, the lengths don't depend on how the object was made.

use super::{sized::close, COMPRESSED, EXACT_KEY, FLAG_BITS};
use crate::{skip::end_of, tags::BIN, varint};
use std::ops::Range;

/// The fewest elements of a value that has lengths of groups.
pub const WIDE: usize = 12;

/// The number of elements of a group.
pub const GROUP: usize = 8;

/// The greatest length that is stored.
const MOST: u8 = u8::MAX;

/// The number of groups of which a plain value says how long they are.
#[inline]
pub fn count(arity: usize) -> usize {
    match arity < WIDE {
        true => 0,
        // Without the key, and without the last element, which is never passed.
        false => (arity - 2) / GROUP,
    }
}

/// The length of the binary without the lengths in it: its tag and their number.
#[inline]
fn head(arity: usize) -> usize {
    match count(arity) {
        0 => 0,
        1..0x80 => 2,
        count => 1 + varint::write(&mut [0; varint::MOST], count as u64),
    }
}

/// Writes the binary, with lengths that are set later. Nothing for a narrow object.
#[inline]
pub fn begin(arity: usize, push: impl FnMut(&[u8])) {
    if arity >= WIDE {
        begin_wide(arity, push);
    }
}

#[inline(never)]
fn begin_wide(arity: usize, mut push: impl FnMut(&[u8])) {
    // Most fit in one piece.
    const PIECE: usize = 32;
    let (head, mut left) = (head(arity), count(arity));
    let mut piece = [0; PIECE];
    piece[0] = BIN;
    varint::write(&mut piece[1..], left as u64);
    let mut end = (head + left).min(PIECE);
    left -= end - head;
    push(&piece[..end]);
    while left > 0 {
        end = left.min(PIECE);
        push(&[0; PIECE][..end]);
        left -= end;
    }
}

/// Splits what follows the exact key of a plain value into the lengths and the elements.
#[inline]
pub(super) fn split(arity: usize, bytes: &[u8]) -> (&[u8], &[u8]) {
    match arity < WIDE {
        true => (&[], bytes),
        false => bytes[head(arity)..].split_at(count(arity)),
    }
}

/// The length of what stands in front of the elements of a plain value.
#[inline]
pub(super) fn size(arity: usize) -> usize {
    head(arity) + count(arity)
}

/// Goes from an element of a run to a later one, over whole groups. Both are counted from 0; the
/// first one begins at `at`. Returns the element that it comes to, and where that begins: the
/// wanted one, or one of its group.
#[inline(never)]
pub(crate) fn pass(
    lengths: &[u8],
    run: &[u8],
    (mut index, mut at): (usize, usize),
    wanted: usize,
) -> (usize, usize) {
    // To the beginning of a group, if the wanted element isn't in this one.
    while index % GROUP != 0 && wanted / GROUP > index / GROUP {
        at = end_of(run, at);
        index += 1;
    }
    while wanted - index >= GROUP {
        at = end_of_group(lengths, run, index / GROUP, at);
        index += GROUP;
    }
    (index, at)
}

/// The end of a group that begins at `at`.
#[inline]
fn end_of_group(lengths: &[u8], run: &[u8], group: usize, at: usize) -> usize {
    match lengths.get(group) {
        Some(&length) if length < MOST => at + usize::from(length),
        _ => (0..GROUP).fold(at, |at, _| end_of(run, at)),
    }
}

/// The elements of a value that is being written.
pub(crate) struct Run {
    /// How many elements were begun, without the key.
    begun: usize,
    /// Where the last one begins.
    last: usize,
    /// Where its group begins.
    start: usize,
    /// Where the lengths of the groups stand.
    lengths: Range<usize>,
}

impl Run {
    /// Before the first element.
    #[inline]
    pub(super) fn begin(arity: usize, value: &mut Vec<u8>) -> Run {
        begin(arity, |bytes| value.extend_from_slice(bytes));
        let end = value.len();
        Run {
            begun: 0,
            last: end,
            start: end,
            lengths: end - count(arity)..end,
        }
    }

    /// An element begins. Writes what stands in front of the one before it, and the length of the
    /// group that it ends.
    // A call, so that the encoder of any other term stays in registers.
    #[inline(never)]
    pub(crate) fn element(&mut self, value: &mut Vec<u8>) {
        close(value, self.last);
        self.last = value.len();
        if self.begun == GROUP {
            if let Some(at) = self.lengths.next() {
                value[at] = stored(self.last - self.start);
            }
            (self.begun, self.start) = (0, self.last);
        }
        self.begun += 1;
    }
}

/// How a length is stored.
#[inline]
pub fn stored(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(MOST)
}

/// Whether an object has lengths, and each of them tells how long its group is.
pub fn are_known(lengths: &[u8]) -> bool {
    !lengths.is_empty() && !lengths.contains(&MOST)
}

/// A plain value without the lengths of its groups. `None` if it has none.
pub(super) fn without(value: &[u8]) -> Option<Vec<u8>> {
    let (arity, at) = elements_of(value);
    (arity >= WIDE).then(|| [&value[..at], &value[at + size(arity)..]].concat())
}

/// Adds the lengths of its groups to a plain value that has none.
pub(super) fn add(value: &mut Vec<u8>) {
    let (arity, at) = elements_of(value);
    if arity < WIDE {
        return;
    }
    let mut lengths = Vec::new();
    begin(arity, |bytes| lengths.extend_from_slice(bytes));
    let (head, mut start) = (lengths.len() - count(arity), at);
    for length in &mut lengths[head..] {
        let end = (0..GROUP).fold(start, |at, _| end_of(value, at));
        *length = stored(end - start);
        start = end;
    }
    value.splice(at..at, lengths);
}

/// The arity of a plain value, and where its exact key ends.
fn elements_of(value: &[u8]) -> (usize, usize) {
    debug_assert_eq!(value[0] & COMPRESSED, 0);
    let (header, mut at) = varint::read(value, 0);
    if header as u8 & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    ((header >> FLAG_BITS) as usize, at)
}

/// Some elements of a plain wide value, whose first one begins at `first`, were replaced: `out` is
/// the new form of the bytes `changed`. Adds the lengths of the groups to `out`, if one of them may
/// change. Returns from where on `out` replaces the bytes then.
///
/// # Complexity
/// Linear in the heads of the terms of `out`, and in the number of groups before it.
#[inline(never)]
pub(super) fn measure_again(
    value: &[u8],
    (arity, first): (usize, usize),
    changed: Range<usize>,
    out: &mut Vec<u8>,
) -> usize {
    if have_same_ends(&value[changed.clone()], out) {
        return changed.start;
    }
    let count = count(arity);
    let lengths = &value[first - count..first];
    // 1. Find the group in which the change begins. No length is stored for the last one.
    let (mut group, mut start, mut end) = (0, first, first);
    loop {
        if group == count {
            return changed.start;
        }
        end = end_of_group(lengths, value, group, end);
        if changed.start < end {
            break;
        }
        (group, start) = (group + 1, end);
    }
    // 2. Put what lies before the change in front of it, from the lengths on.
    prepend(&value[first - count..changed.start], out);
    // 3. Measure the groups up to the one in which the change ends. The rest of that stays.
    let mut at = count + start - first;
    while group < count {
        let (begin, mut after) = (at, changed.end);
        for _ in 0..GROUP {
            match at < out.len() {
                true => at = end_of(out, at),
                false => after = end_of(value, after),
            }
        }
        out[group] = stored(at - begin + after - changed.end);
        if at == out.len() {
            break;
        }
        group += 1;
    }
    first - count
}

/// Inserts bytes at the beginning. (`splice` would copy them one by one.)
fn prepend(bytes: &[u8], out: &mut Vec<u8>) {
    let len = out.len();
    out.extend_from_slice(bytes);
    out.copy_within(..len, bytes.len());
    out[..bytes.len()].copy_from_slice(bytes);
}

/// Whether two runs of as many elements have all their ends at the same offsets.
fn have_same_ends(old: &[u8], new: &[u8]) -> bool {
    let (mut at, mut same) = (0, old.len() == new.len());
    while same && at < new.len() {
        let end = end_of(new, at);
        same = end_of(old, at) == end;
        at = end;
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::Counts;
    use crate::object::patch::{plain_value, Passed, Patch};
    use crate::object::sized::tests::{stored, FORMS};
    use crate::object::NewElements;
    use crate::object::{self, has_same_element, ObjectBuf, ObjectEncoder};
    use crate::skip::Heads;
    use crate::{term, Term};
    use proptest::prelude::*;

    /// Elements of many lengths, up to those of which a group is too long for its length.
    fn element() -> impl Strategy<Value = Term> {
        prop_oneof![
            4 => any::<i64>().prop_map(Term::from),
            4 => (0i64..100).prop_map(Term::from),
            2 => Just(term!(undefined)),
            2 => "[a-z]{0,12}".prop_map(|text| Term::binary(text.as_bytes())),
            1 => (0i32..200).prop_map(|len| Term::list((0..len).map(Term::from))),
            1 => (0usize..300).prop_map(|len| Term::binary(&vec![7; len])),
        ]
    }

    fn has_handles(object: &ObjectBuf) -> bool {
        object::value_has_handles(object.value())
    }

    /// What the lengths of a value have to be, found by a walk over its elements.
    fn walked(value: &[u8]) -> Vec<u8> {
        let (arity, at) = elements_of(value);
        let mut ends: Vec<usize> = vec![end_of(value, at)];
        (1..arity).for_each(|i| ends.push(end_of(value, ends[i - 1])));
        let groups = (arity - 2) / GROUP;
        (1..=groups)
            .map(|i| ends[i * GROUP] - ends[(i - 1) * GROUP])
            .map(|length| length.min(255) as u8)
            .collect()
    }

    fn stored_lengths(value: &[u8]) -> Vec<u8> {
        let (arity, at) = elements_of(value);
        split(arity, &value[at..]).0.to_vec()
    }

    #[test]
    fn only_wide_objects_have_lengths() {
        for arity in 1..40 {
            let row: Vec<Term> = (0..arity).map(|n| Term::from(n as i64)).collect();
            let object = stored(&row, 1, FORMS[0], false);
            // A header, and one byte for each element but the key.
            let plain = if arity < 8 { arity } else { arity + 1 };
            let lengths = if arity < 12 { 0 } else { 2 + (arity - 2) / 8 };
            assert_eq!(object.value().len(), plain + lengths, "{arity}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn wide_objects_are_read_as_they_were_written(
            row in prop::collection::vec(element(), 1..70),
            keypos in any::<prop::sample::Index>(),
            form in 0..2usize,
            compress in any::<bool>(),
        ) {
            let (keypos, form) = (keypos.index(row.len()) + 1, FORMS[form]);
            let object = stored(&row, keypos, form, compress);
            let mut plain = Vec::new();
            let value = plain_value(object.value(), &mut plain);
            if row.len() >= WIDE {
                prop_assert_eq!(stored_lengths(value), walked(value));
            }
            // Whatever walks over the terms of a value comes to its end.
            let at = varint::read(value, 0).1;
            prop_assert_eq!(Heads::new(&value[at..]).last().map_or(at, |(_, end)| at + end),
                            value.len());
            let mut scratch = Vec::new();
            let view = object.view(keypos, &mut scratch);
            let tuple = Term::tuple(row.clone());
            prop_assert!(view.identical_tuple(tuple.as_ref()));
            for (i, element) in row.iter().enumerate().rev() {
                prop_assert!(view.element(i + 1).unwrap().identical(element.as_ref()));
                if !element.as_ref().has_handles() {
                    prop_assert!(view.element_is(i + 1, element.as_ref().bytes()));
                }
            }
            prop_assert!(view.element(row.len() + 1).is_none());

            // Made element by element, it is the same.
            let mut other = ObjectBuf::new();
            let mut enc = ObjectEncoder::new(&mut other, row.len(), keypos, form, compress);
            enc.key(|e| e.term(row[keypos - 1].as_ref()));
            for (_, element) in row.iter().enumerate().filter(|(i, _)| i + 1 != keypos) {
                enc.element(|e| e.term(element.as_ref()));
            }
            prop_assert!(enc.finish());
            if !has_handles(&object) {
                prop_assert_eq!(object.value(), other.value());
            }
            // SAFETY: the objects hold the counts.
            let hashes = unsafe { [object::hash(object.value()), object::hash(other.value())] };
            prop_assert_eq!(hashes[0], hashes[1]);
            let whole = stored(&row, keypos, form, false);
            // SAFETY: as above.
            prop_assert_eq!(hashes[0], unsafe { object::hash(whole.value()) });
        }

        #[test]
        fn patched_values_are_those_of_changed_objects(
            row in prop::collection::vec(element(), 2..70),
            keypos in any::<prop::sample::Index>(),
            form in 0..2usize,
            compress in any::<bool>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), element()), 1..40),
        ) {
            let (keypos, form) = (keypos.index(row.len()) + 1, FORMS[form]);
            let before = stored(&row, keypos, form, compress);
            let (mut plain, mut out) = (Vec::new(), Vec::new());
            let value = plain_value(before.value(), &mut plain);
            let mut patch = Patch::new(value, keypos, &mut out);
            let mut passed = Passed::new(&patch);
            let mut changed = row.clone();
            let mut changes: Vec<_> = changes
                .into_iter()
                .map(|(position, new)| (position.index(row.len()) + 1, new))
                .filter(|(position, _)| *position != keypos)
                .collect();
            // They are read in any order, and put in ascending order.
            let mut found: Vec<_> = changes
                .iter()
                .map(|(position, _)| {
                    (*position, patch.element_in_any_order(&mut passed, *position))
                })
                .collect();
            found.sort_by_key(|(position, _)| *position);
            found.dedup_by_key(|(position, _)| *position);
            changes.sort_by_key(|(position, _)| *position);
            changes.dedup_by_key(|(position, _)| *position);
            for ((position, old), (_, new)) in found.into_iter().zip(&changes) {
                prop_assert!(old.term.identical(row[position - 1].as_ref()));
                patch.put(old, new.as_ref(), &mut NewElements::new(None, &mut Counts::new()));
                changed[position - 1] = new.clone();
            }
            let (at, len) = patch.finish().map_or((0, 0), |patched| (patched.at, patched.len));
            let patched = [&value[..at], &out, &value[at + len..]].concat();
            prop_assert!(row.len() < WIDE || stored_lengths(&patched) == walked(&patched));
            let whole = stored(&changed, keypos, form, false);
            // The flag stays if the last handle goes.
            if !has_handles(&whole) && !has_handles(&before) {
                prop_assert_eq!(&patched, whole.value());
            }
            if before.value()[0] & COMPRESSED == 0 && whole.value()[0] & EXACT_KEY == 0 {
                for position in 1..=row.len() {
                    let same = has_same_element(before.value(), whole.value(), keypos, position);
                    let is_same = row[position - 1] == changed[position - 1];
                    // Handles of equal binaries differ.
                    prop_assert!(same == Some(is_same) || (same == Some(false) && is_same));
                    let has_any = has_handles(&whole) || has_handles(&before);
                    prop_assert!(has_any || same == Some(is_same));
                }
            }
        }
    }
}
