//! Comparing a term of the BEAM with a stored one (`=:=`), in place.
//!
//! Stored terms are in prefix order, so both terms are walked over in lockstep, up to the first
//! difference. Small integers, atoms, tuples and lists are compared directly. Any other term is
//! encoded, and the encodings are compared. A term that can't be encoded isn't identical to any
//! stored one. Containers below [`DEPTH`] levels are also encoded, as recursion would exhaust the
//! thread's stack.

use super::atoms;
use super::encode::{stack_bytes, Writer};
use crate::layout;
use crate::sys::*;
use larder_term::object::ObjectView;
use larder_term::tags::{ILIST, LIST, TUPLE};
use larder_term::{varint, Mode, TermRef};

/// The most levels of containers that are compared recursively.
const DEPTH: u32 = 64;

/// Whether a tuple with these elements is identical to a stored object.
pub fn object(env: *mut Env, elements: &[Word], stored: &ObjectView<'_>) -> bool {
    // The key is stored apart from the other elements. Each run is consumed as it is compared.
    let (mut key, mut others) = (Run(stored.key().bytes()), Run(stored.others_bytes()));
    elements.len() == stored.arity()
        && elements.iter().enumerate().all(|(i, &word)| {
            let run = match i + 1 == stored.keypos() {
                true => &mut key,
                false => &mut others,
            };
            run.begins_with(env, word, DEPTH)
        })
}

/// The adjacent stored terms that are still to be compared.
///
/// Invariant: the terms are complete, as long as everything compared so far is identical.
struct Run<'t>(&'t [u8]);

impl<'t> Run<'t> {
    /// Whether the first of the terms is identical to this one. If so, moves behind it.
    fn begins_with(&mut self, env: *mut Env, word: Word, depth: u32) -> bool {
        // Containers: compare the heads, and then the children, without encoding anything.
        if let (Some(elements), Some(depth)) = (layout::tuple(word), depth.checked_sub(1)) {
            return self.head(TUPLE) == Some(elements.len())
                && elements.iter().all(|&e| self.begins_with(env, e, depth));
        }
        if let (true, Some(depth)) = (layout::is_cell(word), depth.checked_sub(1)) {
            return self.begins_with_list(env, word, depth);
        }
        // A leaf, or a container that is too deep.
        let stored = self.next();
        if let Some(n) = layout::small(word) {
            stored.as_int() == Some(n)
        } else if layout::is_atom(word) {
            stored.as_atom() == Some(atoms::from_word(env, word))
        } else {
            is_encoded(env, word, stored)
        }
    }

    fn begins_with_list(&mut self, env: *mut Env, word: Word, depth: u32) -> bool {
        // A list without its head has no elements to compare.
        let proper = self.head(LIST);
        let Some(count) = proper.or_else(|| self.head(ILIST)) else {
            return false;
        };
        let mut rest = word;
        for _ in 0..count {
            match layout::cell(rest) {
                Some((head, tail)) if self.begins_with(env, head, depth) => rest = tail,
                _ => return false,
            }
        }
        // The tail of an improper list, which isn't a list, follows its elements.
        match proper {
            Some(_) => rest == layout::NIL,
            None => self.begins_with(env, rest, depth),
        }
    }

    /// If the next term is a container of this kind, moves behind its head. Returns the number of
    /// its children.
    #[inline]
    fn head(&mut self, tag: u8) -> Option<usize> {
        if self.0[0] != tag {
            return None;
        }
        let (count, at) = varint::read(self.0, 1);
        self.0 = &self.0[at..];
        Some(count as usize)
    }

    /// The first of the terms. There is one: both containers were found to have the same number of
    /// children.
    #[inline]
    fn next(&mut self) -> TermRef<'t> {
        // SAFETY: whole terms, says the invariant, of a view that keeps their handles alive.
        let (term, rest) = unsafe { TermRef::split_first(self.0) };
        self.0 = rest;
        term
    }
}

#[inline(never)]
fn is_encoded(env: *mut Env, word: Word, stored: TermRef<'_>) -> bool {
    let mut stack = stack_bytes();
    // Encode it as in a value, so that large binaries aren't copied.
    let mut writer = Writer::at(&mut stack, env, Mode::Shared);
    writer.term(word).is_ok() && writer.as_term().identical(stored)
}
