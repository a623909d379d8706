//! Identity, `=:=`: whether two terms are the same, even if their bytes differ.
//!
//! Two terms in inline mode are identical if their bytes are equal. Otherwise, identical terms may
//! have different bytes for three reasons:
//!
//! * A binary or a reference may be stored by a handle.
//! * A large map has one of two forms: sorted (`MAP`), or in the order of the host's tree
//!   (`TREE_MAP`). Two maps of the same form are identical if their bytes are equal. Two maps of
//!   different forms are identical if their sorted forms are.
//! * The host may take 0.0 and −0.0 for one number.

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
    /// One comparison of bytes. If they differ, a walk over both terms follows only if one of them
    /// contains a handle or a map in the order of a tree, or if a −0.0 is identical to 0.0.
    #[inline]
    pub fn identical(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes() || identical_apart(self.bytes(), other.bytes())
    }
}

/// The inline encoding of a term.
fn inline(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    Encoder::new(&mut out, Mode::Inline).term(TermRef::within(bytes));
    out
}

/// Whether two terms are identical although their bytes differ.
fn identical_apart(a: &[u8], b: &[u8]) -> bool {
    // Look for the reasons one by one, and only for those that are possible here. Without any,
    // different bytes are different terms.
    let handles = |t: &[u8]| crate::blob::has_handles(t);
    if legacy_zero() && (has_negative_zero(a) || has_negative_zero(b)) {
        let plain = |bytes| without_negative_zero(TermRef::within(bytes));
        return plain(a) == plain(b);
    }
    (handles(a) || handles(b) || has_tree_map(a) || has_tree_map(b)) && identical_by_walk(a, b)
}

/// The inline encoding of a term in which each −0.0 is replaced by 0.0.
///
/// The size of a float doesn't change, but the order of a map's pairs may. So the term is encoded
/// anew, head by head.
pub fn without_negative_zero(term: TermRef<'_>) -> Vec<u8> {
    let bytes = term.bytes();
    let plain = inline(bytes);
    let mut out = Vec::with_capacity(plain.len());
    let mut enc = Encoder::new(&mut out, Mode::Inline);
    // For each open map: its token, and the number of terms that were pending around it.
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
            // Two keys that differ only in the sign of a zero stay two keys. A host that takes them
            // for one key never sends both.
            let _both_kept = maps.pop().map(|(token, _)| enc.end_map(token));
        }
    }
    out
}

/// Whether two terms of the same shape are identical: walks over both, and compares what handles
/// refer to.
fn identical_by_walk(a: &[u8], b: &[u8]) -> bool {
    let (mut i, mut j, mut pending) = (0, 0, 1u64);
    while pending > 0 {
        // Maps of different forms have their pairs in different orders, so the cursors can't go on
        // side by side. Both are brought into the sorted form, and compared as a whole.
        if let (MAP, TREE_MAP) | (TREE_MAP, MAP) = (a[i], b[j]) {
            let (i_end, j_end) = (end_of(a, i), end_of(b, j));
            if inline(&a[i..i_end]) != inline(&b[j..j_end]) {
                return false;
            }
            (i, j, pending) = (i_end, j_end, pending - 1);
            continue;
        }
        // The children of both heads are compared in the following iterations. Heads with the same
        // bytes have the same number of children.
        let ((i_end, children), (j_end, _)) = (head(a, i), head(b, j));
        let (x, y) = (TermRef::within(&a[i..i_end]), TermRef::within(&b[j..j_end]));
        // Leaves with a handle are compared by what the handle refers to.
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
