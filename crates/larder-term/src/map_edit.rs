//! Changing pairs of a map without decoding it.
//!
//! ```text
//!   head │ k1 v1 │ k2 v2 │ k3 v3          put k2 ⇒ w: w in the place of v2
//!                ▲                        put k  ⇒ v: at its place in the order; the head counts
//! ```
//!
//! 1. A key is searched from the left, by identity.
//! 2. A value is replaced in place. The other pairs and the form of the map stay the same, since
//!    the layout of a tree doesn't depend on values.
//! 3. A pair is inserted or removed at its place in a map of sorted form. A map of tree form is
//!    first rewritten in the sorted form, since only the host knows the layout of the new tree. If
//!    the host would write another form, it can make the change itself ([`MapEdit::leaves_tree`]).
//!
//! An edit owns no counts. The handles in it are those of the map and of the terms that were put.

use crate::{
    map_order::key_order,
    skip::skip,
    tags::{MAP, TREE_MAP},
    varint,
    view::{TermRef, View},
};
use std::ops::Range;

/// The emulator stores maps of more pairs than this as trees.
const MOST_SORTED: usize = 32;

/// A map that is being changed.
#[derive(Debug)]
pub struct MapEdit {
    bytes: Vec<u8>,
    /// Whether pairs were inserted or removed.
    is_reshaped: bool,
}

/// The place of a key.
struct Found {
    /// The place of the pair, or the place where it would be inserted in the sorted form.
    at: usize,
    /// The bytes of the value, if the map has the key.
    value: Option<Range<usize>>,
}

impl MapEdit {
    /// Begins to change a map. `None` if the term isn't a map.
    pub fn new(map: TermRef<'_>) -> Option<MapEdit> {
        let bytes = map.bytes();
        matches!(bytes.first(), Some(&(MAP | TREE_MAP))).then(|| MapEdit {
            bytes: bytes.to_vec(),
            is_reshaped: false,
        })
    }

    /// The map as it is now.
    pub fn term(&self) -> TermRef<'_> {
        TermRef::within(&self.bytes)
    }

    /// Whether a change would lose the tree form that the host has for large maps. That is so if a
    /// pair is inserted or removed, and the map is large before or afterwards. `value` is the new
    /// value, or `None` if the key is to be removed.
    pub fn leaves_tree(&self, key: TermRef<'_>, value: Option<TermRef<'_>>) -> bool {
        let most = MOST_SORTED - usize::from(value.is_some());
        let is_large = self.bytes[0] == TREE_MAP || self.len() > most;
        is_large && crate::tree_maps() && self.find(key).value.is_some() != value.is_some()
    }

    /// The number of pairs.
    fn len(&self) -> usize {
        match self.term().view() {
            View::Map(map) => map.len(),
            _ => 0,
        }
    }

    /// The value of a key.
    ///
    /// # Complexity
    /// O(n) in the map.
    pub fn get(&self, key: TermRef<'_>) -> Option<TermRef<'_>> {
        let value = self.find(key).value?;
        Some(TermRef::within(&self.bytes[value]))
    }

    /// Sets the value of a key.
    ///
    /// # Complexity
    /// O(n) in the map. O(n log n) for a new key of a map of tree form.
    pub fn put(&mut self, key: TermRef<'_>, value: TermRef<'_>) {
        // The key is there: the layout stays, and the value is replaced in place.
        if let Some(old) = self.find(key).value {
            self.bytes.splice(old, value.bytes().iter().copied());
            return;
        }
        self.reshape();
        // The search is repeated, since rewriting has moved the pairs.
        let at = self.find(key).at;
        let pair = [key.bytes(), value.bytes()].concat();
        self.bytes.splice(at..at, pair);
        self.count(self.len() + 1);
    }

    /// Removes a key. Returns whether the map had it.
    ///
    /// # Complexity
    /// As [`MapEdit::put`].
    pub fn remove(&mut self, key: TermRef<'_>) -> bool {
        // A key that isn't there leaves the map as it is, in whatever form.
        if self.find(key).value.is_none() {
            return false;
        }
        self.reshape();
        let found = self.find(key);
        if let Some(value) = found.value {
            self.bytes.drain(found.at..value.end);
            self.count(self.len() - 1);
        }
        true
    }

    /// Where the first pair begins.
    fn first(&self) -> usize {
        crate::skip::head(&self.bytes, 0).0
    }

    fn find(&self, key: TermRef<'_>) -> Found {
        // `place` is where the key would have to be inserted: in front of the first greater key.
        let (mut at, mut place) = (self.first(), None);
        for _ in 0..self.len() {
            // A pair is two terms, one behind the other.
            let middle = at + skip(&self.bytes[at..]);
            let end = middle + skip(&self.bytes[middle..]);
            let here = TermRef::within(&self.bytes[at..middle]);
            if here.identical(key) {
                let value = Some(middle..end);
                return Found { at, value };
            }
            // The search goes on behind the place: in a map of tree form, keys aren't sorted, and
            // the key itself may be in a later pair.
            if place.is_none() && key_order(key, here).is_lt() {
                place = Some(at);
            }
            at = end;
        }
        // No key is greater, so a new pair would be the last one.
        let at = place.unwrap_or(at);
        Found { at, value: None }
    }

    /// Rewrites the map in the sorted form, before a pair is inserted or removed.
    fn reshape(&mut self) {
        // From now on `leaves_tree` reports the change of form, even if the map had this form
        // before.
        self.is_reshaped = true;
        if self.bytes[0] == MAP {
            return;
        }
        let View::Map(map) = self.term().view() else {
            return;
        };
        let mut pairs: Vec<_> = map.iter().collect();
        pairs.sort_by(|a, b| key_order(a.0, b.0));
        let mut bytes = Vec::with_capacity(self.bytes.len());
        bytes.push(MAP);
        varint::push(&mut bytes, pairs.len() as u64);
        for (key, value) in pairs {
            bytes.extend_from_slice(key.bytes());
            bytes.extend_from_slice(value.bytes());
        }
        self.bytes = bytes;
    }

    /// Writes the new number of pairs into the head of a map of sorted form.
    fn count(&mut self, pairs: usize) {
        let mut head = vec![MAP];
        varint::push(&mut head, pairs as u64);
        self.bytes.splice(..self.first(), head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;
    use std::collections::BTreeMap;

    fn key(n: u64) -> Term {
        let int = Term::int(n as i64);
        match n % 5 {
            0 => Term::atom(&format!("k{n}")),
            1 => Term::tuple([int]),
            2 => Term::float(n as f64).unwrap(),
            3 => Term::binary(format!("key {n}").as_bytes()),
            _ => int,
        }
    }

    fn whole(pairs: &BTreeMap<u64, Term>) -> Term {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(&n, value)| (key(n), value.clone()))
            .collect();
        Term::map(pairs).unwrap()
    }

    #[test]
    fn edits_are_those_of_the_oracle() {
        let mut seed = 7u64;
        let mut random = |n: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut reshaped = 0;
        for range in [1, 3, 40, 300] {
            let mut oracle = BTreeMap::new();
            for _ in 0..300 {
                let map = whole(&oracle);
                let mut edit = MapEdit::new(map.as_ref()).unwrap();
                for _ in 0..=random(3) {
                    let n = random(range);
                    let found = edit.get(key(n).as_ref()).map(Term::from);
                    assert_eq!(found.as_ref(), oracle.get(&n));
                    if random(4) == 0 {
                        let is_there = oracle.remove(&n).is_some();
                        assert_eq!(edit.remove(key(n).as_ref()), is_there);
                    } else {
                        let value = key(random(1000));
                        edit.put(key(n).as_ref(), value.as_ref());
                        oracle.insert(n, value);
                    }
                    reshaped += usize::from(edit.is_reshaped);
                    assert_eq!(edit.term().bytes(), whole(&oracle).bytes());
                }
            }
        }
        assert!(reshaped > 300);
    }

    #[test]
    fn what_is_no_map_is_none() {
        for text in ["a", "[]", "{a}", "7"] {
            assert!(MapEdit::new(text.parse::<Term>().unwrap().as_ref()).is_none());
        }
    }
}
