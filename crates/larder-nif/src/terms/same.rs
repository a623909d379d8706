//! Comparing a term of the BEAM with a stored one (`=:=`), without encoding it.

use super::atoms;
use crate::layout;
use crate::sys::*;
use larder_term::object::ObjectView;
use larder_term::{TermRef, View};

/// The levels of tuples that are looked at.
const DEPTH: u32 = 8;

/// Whether a tuple with these elements may be identical to a stored object with the same key. The
/// terms are compared up to the first one that isn't a small integer, an atom or a tuple of these.
pub fn may_be(env: *mut Env, elements: &[Word], stored: &ObjectView<'_>) -> bool {
    let others = (elements.iter().enumerate())
        .filter(|(i, _)| i + 1 != stored.keypos())
        .map(|(_, &word)| word);
    elements.len() == stored.arity()
        && compare_all(env, others.zip(stored.others()), DEPTH) != Some(false)
}

/// Whether all pairs are of identical terms, as far as that is decided by the first pairs.
fn compare_all<'b>(
    env: *mut Env,
    mut pairs: impl Iterator<Item = (Word, TermRef<'b>)>,
    depth: u32,
) -> Option<bool> {
    let first_other = pairs.find_map(|(word, stored)| {
        let same = compare(env, word, stored, depth);
        (same != Some(true)).then_some(same)
    });
    first_other.unwrap_or(Some(true))
}

/// Whether the terms are identical. `None` if that isn't decided here.
fn compare(env: *mut Env, word: Word, stored: TermRef<'_>, depth: u32) -> Option<bool> {
    if let Some(n) = layout::small(word) {
        return Some(stored.as_int() == Some(n));
    }
    if layout::is_atom(word) {
        return Some(stored.as_atom() == Some(atoms::from_word(env, word)));
    }
    let elements = layout::tuple(word).filter(|_| depth > 0)?;
    match stored.view() {
        View::Tuple(tuple) if tuple.arity() == elements.len() => {
            compare_all(env, elements.iter().copied().zip(tuple.iter()), depth - 1)
        }
        _ => Some(false),
    }
}
