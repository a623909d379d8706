//! Comparing a term of the BEAM with a stored one (`=:=`), without encoding it.

use super::atoms;
use crate::layout;
use crate::sys::*;
use larder_term::object::ObjectView;
use larder_term::{Atom, TermRef, View};

/// The longest stored tuple in a row that is looked into, in bytes. So a comparison takes little.
const LONGEST: usize = 1024;

/// Whether a tuple with these elements may be identical to a stored object with the same key. The
/// terms are compared up to the first one that isn't a small integer, an atom or a tuple of these.
pub fn may_be(env: *mut Env, elements: &[Word], stored: &ObjectView<'_>) -> bool {
    let others = (elements.iter().enumerate())
        .filter(|(i, _)| i + 1 != stored.keypos())
        .map(|(_, &word)| word);
    elements.len() == stored.arity() && compare_all(env, others, stored.others()) != Some(false)
}

/// Whether all terms are identical to the stored ones, as far as the first ones decide that.
fn compare_all<'b>(
    env: *mut Env,
    words: impl Iterator<Item = Word>,
    mut stored: impl Iterator<Item = TermRef<'b>>,
) -> Option<bool> {
    for word in words {
        // The end of a stored term is looked for only if the word can be compared.
        let comparable = Comparable::of(env, word)?;
        match comparable.compare(env, stored.next()?) {
            Some(true) => {}
            decided => return decided,
        }
    }
    Some(true)
}

/// A term that can be compared.
enum Comparable<'a> {
    Small(i64),
    Atom(Atom),
    Tuple(&'a [Word]),
}

impl Comparable<'_> {
    fn of(env: *mut Env, word: Word) -> Option<Self> {
        if let Some(n) = layout::small(word) {
            return Some(Comparable::Small(n));
        }
        if layout::is_atom(word) {
            return Some(Comparable::Atom(atoms::from_word(env, word)));
        }
        layout::tuple(word).map(Comparable::Tuple)
    }

    /// Whether the terms are identical. `None` if that isn't decided here.
    fn compare(&self, env: *mut Env, stored: TermRef<'_>) -> Option<bool> {
        match self {
            Comparable::Small(n) => Some(stored.as_int() == Some(*n)),
            Comparable::Atom(atom) => Some(stored.as_atom() == Some(*atom)),
            Comparable::Tuple(elements) => match stored.view() {
                View::Tuple(tuple) if tuple.arity() == elements.len() => {
                    if stored.bytes().len() > LONGEST {
                        return None;
                    }
                    compare_all(env, elements.iter().copied(), tuple.iter())
                }
                _ => Some(false),
            },
        }
    }
}
