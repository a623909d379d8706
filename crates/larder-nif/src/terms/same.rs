//! Whether a term of the BEAM is a stored one (`=:=`), read where both lie.
//!
//! Stored terms lie one behind the other, a container's head before its children. So both are
//! walked over in step, and the first part that differs ends it. Small integers, atoms, tuples and
//! lists are compared part by part. Any other term is encoded, and compared with the stored one; a
//! term that cannot be encoded is no stored one. What lies deeper than [`DEPTH`] levels is encoded,
//! too, as calls within calls would exhaust the thread's stack.

use super::atoms;
use super::encode::{stack_bytes, Writer};
use crate::layout;
use crate::sys::*;
use larder_term::object::ObjectView;
use larder_term::tags::{ILIST, LIST, TUPLE};
use larder_term::{varint, Mode, TermRef};

/// The most levels of containers that are compared by calls within calls.
const DEPTH: u32 = 64;

/// Whether the elements of a tuple are those of a stored object.
pub fn object(env: *mut Env, elements: &[Word], stored: &ObjectView<'_>) -> bool {
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

/// Stored terms that are yet to be compared, one behind the other.
///
/// Invariant: they are whole, as long as all that was compared is the same.
struct Run<'t>(&'t [u8]);

impl<'t> Run<'t> {
    /// Whether the first of them is this term. If so, goes on behind it.
    fn begins_with(&mut self, env: *mut Env, word: Word, depth: u32) -> bool {
        if let (Some(elements), Some(depth)) = (layout::tuple(word), depth.checked_sub(1)) {
            return self.head(TUPLE) == Some(elements.len())
                && elements.iter().all(|&e| self.begins_with(env, e, depth));
        }
        if let (true, Some(depth)) = (layout::is_cell(word), depth.checked_sub(1)) {
            return self.begins_with_list(env, word, depth);
        }
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
        // An improper list's tail, which is no list, follows its elements.
        match proper {
            Some(_) => rest == layout::NIL,
            None => self.begins_with(env, rest, depth),
        }
    }

    /// Goes on behind the head of a container of this kind, if there is one; how many children.
    #[inline]
    fn head(&mut self, tag: u8) -> Option<usize> {
        if self.0[0] != tag {
            return None;
        }
        let (count, at) = varint::read(self.0, 1);
        self.0 = &self.0[at..];
        Some(count as usize)
    }

    /// The first of them, which there is: containers were found to have as many children.
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
    // As a value has it: large binaries are not copied.
    let mut writer = Writer::at(&mut stack, env, Mode::Shared);
    writer.term(word).is_ok() && writer.as_term().identical(stored)
}
