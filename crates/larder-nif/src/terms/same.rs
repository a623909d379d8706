//! Comparing a term of the BEAM with a stored one (`=:=`), without encoding it.

use super::atoms;
use crate::layout;
use crate::sys::*;
use larder_term::object::ObjectView;

/// Whether a tuple with these elements may be identical to a stored object with the same key. The
/// elements are compared up to the first one that isn't a small integer or an atom.
pub fn may_be(env: *mut Env, elements: &[Word], stored: &ObjectView<'_>) -> bool {
    let others = (elements.iter().enumerate())
        .filter(|(i, _)| i + 1 != stored.keypos())
        .map(|(_, &word)| word);
    let compared = others.map_while(|word| match layout::small(word) {
        Some(n) => Some((Some(n), None)),
        None if layout::is_atom(word) => Some((None, Some(atoms::from_word(env, word)))),
        None => None,
    });
    elements.len() == stored.arity()
        && compared
            .zip(stored.others())
            .all(|((int, atom), other)| int == other.as_int() && atom == other.as_atom())
}
