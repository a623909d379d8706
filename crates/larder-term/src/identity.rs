//! Identity, `=:=`: whether two terms are the same, where their bytes alone don't say it.
//!
//! Terms in inline mode are identical if their bytes are. Three things make identical terms differ
//! in their bytes:
//!
//! * what is kept outside, by a handle;
//! * a map of many pairs, which has one of two forms: sorted (`MAP`), or in the order of the host's
//!   tree (`TREE_MAP`). Two maps of one form are identical if their bytes are; of different forms,
//!   if the sorted forms are;
//! * zeros of either sign, where the host takes them for one.

use crate::{
    compare::compare_leaves,
    contents::{has_negative_zero, has_tree_map, is_negative_zero},
    encoder::{Encoder, Mode},
    host::legacy_zero,
    skip::{end_of, head, Heads},
    tags::*,
    view::TermRef,
};

impl TermRef<'_> {
    /// Whether both are the same term: Erlang's `=:=`.
    ///
    /// # Complexity
    /// One comparison of bytes; a walk only if they differ and something in them is kept outside,
    /// or is a map in the order of a tree (or legacy zeros are about).
    #[inline]
    pub fn identical(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes() || identical_apart(self.bytes(), other.bytes())
    }
}

fn inline(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    Encoder::new(&mut out, Mode::Inline).term(TermRef::within(bytes));
    out
}

/// Whether two terms whose bytes differ are identical all the same.
fn identical_apart(a: &[u8], b: &[u8]) -> bool {
    let handles = |t: &[u8]| crate::blob::has_handles(t);
    if legacy_zero() && (has_negative_zero(a) || has_negative_zero(b)) {
        let plain = |bytes| without_negative_zero(TermRef::within(bytes));
        return plain(a) == plain(b);
    }
    (handles(a) || handles(b) || has_tree_map(a) || has_tree_map(b)) && in_step(a, b)
}

/// The inline bytes of a term with 0.0 for every −0.0.
///
/// The size of a float does not change, so only the order of a map's pairs may: the term is encoded
/// anew, head by head.
pub fn without_negative_zero(term: TermRef<'_>) -> Vec<u8> {
    let bytes = term.bytes();
    let plain = inline(bytes);
    let mut out = Vec::with_capacity(plain.len());
    let mut enc = Encoder::new(&mut out, Mode::Inline);
    // The open maps: their token, and how many terms were pending around them.
    let mut maps = Vec::new();
    let mut pending = 1u64;
    for (at, end) in Heads::new(&plain) {
        let children = head(&plain, at).1;
        pending = pending - 1 + children;
        match plain[at] {
            FLOAT if is_negative_zero(&plain[at..end]) => enc.float(0.0),
            MAP | TREE_MAP => maps.push((enc.begin_map(children as usize / 2), pending - children)),
            _ => enc.raw_head(&plain[at..end], children),
        }
        while maps.last().is_some_and(|&(_, around)| around == pending) {
            // Two keys that differ by the sign of a zero stay two: the host that takes them for one
            // never sends both.
            let _both_kept = maps.pop().map(|(token, _)| enc.end_map(token));
        }
    }
    out
}

/// Whether two terms of the same shape are identical when what is kept outside is taken for what it
/// is.
fn in_step(a: &[u8], b: &[u8]) -> bool {
    let (mut i, mut j, mut pending) = (0, 0, 1u64);
    while pending > 0 {
        if let (MAP, TREE_MAP) | (TREE_MAP, MAP) = (a[i], b[j]) {
            let (i_end, j_end) = (end_of(a, i), end_of(b, j));
            if inline(&a[i..i_end]) != inline(&b[j..j_end]) {
                return false;
            }
            (i, j, pending) = (i_end, j_end, pending - 1);
            continue;
        }
        let ((i_end, children), (j_end, _)) = (head(a, i), head(b, j));
        let (x, y) = (TermRef::within(&a[i..i_end]), TermRef::within(&b[j..j_end]));
        let same = x.bytes() == y.bytes()
            || match (a[i], b[j]) {
                (BIN | BLOB, BIN | BLOB) => x.as_binary() == y.as_binary(),
                (REF | REF_KEPT, REF | REF_KEPT) => compare_leaves(x, y, true).is_eq(),
                _ => false,
            };
        if !same {
            return false;
        }
        (i, j) = (i_end, j_end);
        pending = pending - 1 + children;
    }
    true
}
