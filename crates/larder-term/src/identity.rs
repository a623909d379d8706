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
    contents::{has_negative_zero, is_negative_zero, is_zero},
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
    /// One comparison of bytes. If they differ, a walk over both terms up to the first difference,
    /// and over maps on the way to it.
    #[inline]
    pub fn identical(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes()
            || identical_by_walk(self.bytes(), other.bytes(), legacy_zero()).is_some()
    }

    /// Whether the first term of a run is identical to this one, also in the signs of zeros that
    /// the host takes for identical. Nothing of the run is looked at after the first difference.
    ///
    /// # Safety
    /// The run begins with a whole term that an encoder has written, and the counts of its handles
    /// are held during the call.
    pub unsafe fn begins(self, run: &[u8]) -> bool {
        run.starts_with(self.bytes()) || identical_by_walk(run, self.bytes(), false).is_some()
    }
}

/// If two runs begin with terms that are identical, `=:=`: where these end.
pub(crate) fn identical_ends(a: &[u8], b: &[u8]) -> Option<(usize, usize)> {
    identical_by_walk(a, b, legacy_zero())
}

/// The inline encoding of a term.
fn inline(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    Encoder::new(&mut out, Mode::Inline).term(TermRef::within(bytes));
    out
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

/// Where the identical terms end with which two runs begin; `None` if they aren't identical. Walks
/// over both, and compares what handles refer to. With `ties_zeros`, 0.0 and −0.0 are identical.
fn identical_by_walk(a: &[u8], b: &[u8], ties_zeros: bool) -> Option<(usize, usize)> {
    let (mut i, mut j, mut pending) = (0, 0, 1u64);
    // A map of `a` that ends here, and that of `b`, have no −0.0.
    let mut without_zeros = 0;
    while pending > 0 {
        // The children of both heads are compared in the following iterations. Heads with the same
        // bytes have the same number of children.
        let ((i_end, children), (j_end, others)) = (head(a, i), head(b, j));
        if children != others {
            return None;
        }
        if let (MAP | TREE_MAP, MAP | TREE_MAP) = (a[i], b[j]) {
            let is_checked = !ties_zeros || i < without_zeros;
            if a[i] != b[j] || !is_checked {
                let (end, other_end) = (end_of(a, i), end_of(b, j));
                let (x, y) = (&a[i..end], &b[j..other_end]);
                let zeros = !is_checked && (has_negative_zero(x) || has_negative_zero(y));
                // Maps of different forms have their pairs in different orders, and the sign of a
                // zero may change the order. So the cursors can't go on side by side. Both maps are
                // brought into the sorted form, without signs, and compared as a whole.
                if zeros || a[i] != b[j] {
                    let plain = |map| match zeros {
                        true => without_negative_zero(TermRef::within(map)),
                        false => inline(map),
                    };
                    if plain(x) != plain(y) {
                        return None;
                    }
                    (i, j, pending) = (end, other_end, pending - 1);
                    continue;
                }
                without_zeros = end;
            }
        }
        let (x, y) = (TermRef::within(&a[i..i_end]), TermRef::within(&b[j..j_end]));
        // Leaves with a handle are compared by what the handle refers to.
        let same = x.bytes() == y.bytes()
            || match (a[i], b[j]) {
                (BIN | BLOB, BIN | BLOB) => x.as_binary() == y.as_binary(),
                (REF | REF_KEPT, REF | REF_KEPT) => compare_leaves(x, y, true).is_eq(),
                (FLOAT, FLOAT) => ties_zeros && is_zero(x.bytes()) && is_zero(y.bytes()),
                _ => false,
            };
        if !same {
            return None;
        }
        (i, j) = (i_end, j_end);
        pending = pending - 1 + children;
    }
    Some((i, j))
}
