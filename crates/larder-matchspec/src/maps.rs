//! Building maps: the order of the pairs in the encoding, and which of several pairs with the same
//! key is kept.

use crate::{raw, wire};
use larder_term::{key_order, tags, Encoder, Mode};
use std::borrow::Cow;

/// Sorts pairs into the order of the encoding. Of pairs with the same key, keeps the last one.
pub(crate) fn in_order<T>(pairs: &mut Vec<T>, key: impl Fn(&T) -> &[u8]) {
    let order = kept(pairs.iter().map(key).collect());
    let mut slots: Vec<Option<T>> = pairs.drain(..).map(Some).collect();
    pairs.extend(order.into_iter().filter_map(|i| slots[i].take()));
}

/// The numbers of the keys in the order of the encoding; of equal keys, the last one's.
fn kept(keys: Vec<&[u8]>) -> Vec<usize> {
    // Handles aren't part of a key's identity, so keys are compared by their inline form.
    let mut keyed: Vec<(Cow<'_, [u8]>, usize)> = keys
        .into_iter()
        .enumerate()
        .map(|(i, key)| (inline(key), i))
        .collect();
    // Of equal keys the last one comes first, and `dedup_by` keeps the first.
    keyed
        .sort_unstable_by(|a, b| key_order(raw::whole(&a.0), raw::whole(&b.0)).then(b.1.cmp(&a.1)));
    // The host may take 0.0 and −0.0 for identical.
    keyed.dedup_by(|next, kept| raw::whole(&next.0).identical(raw::whole(&kept.0)));
    keyed.into_iter().map(|(_, i)| i).collect()
}

/// The inline encoding of a key.
fn inline(key: &[u8]) -> Cow<'_, [u8]> {
    let term = raw::whole(key);
    // Most keys have no handles, and are borrowed as they are.
    if !wire::may_hold_handles(key) || !term.has_handles() {
        return Cow::Borrowed(key);
    }
    let mut bytes = Vec::with_capacity(key.len());
    Encoder::new(&mut bytes, Mode::Inline).term(term);
    Cow::Owned(bytes)
}

/// Appends the map of these pairs. Of pairs with the same key, the last one is used.
pub(crate) fn write(mut pairs: Vec<(&[u8], &[u8])>, out: &mut Vec<u8>) {
    in_order(&mut pairs, |pair| pair.0);
    wire::push_head(out, tags::MAP, pairs.len());
    for (key, value) in pairs {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
}
