//! Changing pairs of a map without decoding it.
//!
//! ```text
//!   head │ k1 v1 │ k2 v2 │ k3 v3          put k2 ⇒ w: w in place of v2
//!                ▲                        put k  ⇒ v: at its place in the order; the head counts
//! ```
//!
//! 1. A key is searched from the left, by identity.
//! 2. A value is replaced in place. The other pairs and the form of the map stay the same, since
//!    the layout of a tree doesn't depend on values.
//! 3. A pair is inserted or removed at its place in a map of sorted form. A map of tree form is
//!    first rewritten in the sorted form, since only the host knows the layout of the new tree. If
//!    the host would write another form, it can make the change itself ([`MapEdit::leaves_tree`]).
//! 4. Many changes are made in one pass over the map: the changes are put in the order of their
//!    keys, and each key of the map is looked for among them ([`MapEdit::change_all`]). Many
//!    searches put the pairs in order once ([`MapSearch`]).
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
pub(crate) const MOST_SORTED: usize = 32;

/// A map that is being changed.
#[derive(Debug)]
pub struct MapEdit {
    bytes: Vec<u8>,
    /// Whether pairs were inserted or removed.
    is_reshaped: bool,
}

/// A key of a map, and its new value; `None` removes the key.
pub type PairChange<'a> = (TermRef<'a>, Option<TermRef<'a>>);

/// The offsets of a pair: its key is from `key` to `value`, its value from there to `end`.
#[derive(Clone, Copy, Debug)]
struct PairAt {
    key: usize,
    value: usize,
    end: usize,
}

impl PairAt {
    /// The key of this pair of the map.
    fn key_in(self, map: &[u8]) -> TermRef<'_> {
        TermRef::within(&map[self.key..self.value])
    }

    /// The value of this pair of the map.
    fn value_in(self, map: &[u8]) -> TermRef<'_> {
        TermRef::within(&map[self.value..self.end])
    }
}

/// The offset of a key.
struct Found {
    /// The offset of the pair, or that at which it would be inserted in the sorted form.
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
        len(&self.bytes)
    }

    /// Makes some changes in their order, in one pass. If that would lose the tree form that the
    /// host has for large maps (see `leaves_tree`), and `keeps_form` is set, returns `false` and
    /// changes nothing.
    ///
    /// # Complexity
    /// O((n + m) log m) for m changes of a map of n pairs. O(n log n) more if keys come or go.
    pub fn change_all(&mut self, changes: &[PairChange<'_>], keeps_form: bool) -> bool {
        // 1. Of several changes of one key, the last one counts. Changes are in the order of keys.
        let changes = last_of_each_key(changes);
        // 2. Walk over the map. For each pair, find the change of its key, if there is one.
        let mut is_found = vec![false; changes.len()];
        let mut pairs = Vec::with_capacity(self.len());
        for pair in offsets(&self.bytes) {
            let key = pair.key_in(&self.bytes);
            let change = changes.binary_search_by(|change| change.0.cmp_exact(key));
            if let Ok(i) = change {
                is_found[i] = true;
            }
            pairs.push((pair, change.ok()));
        }
        // 3. Decide whether pairs are inserted or removed. A key that comes wasn't found, and one
        //    that goes was.
        let after = changes.iter().filter(|change| change.1.is_some()).count()
            + pairs.iter().filter(|(_, change)| change.is_none()).count();
        let is_reshaped = (changes.iter().zip(&is_found))
            .any(|(change, is_found)| change.1.is_some() != *is_found);
        let is_large = self.bytes[0] == TREE_MAP || self.len().max(after) > MOST_SORTED;
        if is_reshaped && keeps_form && is_large && crate::tree_maps() {
            return false;
        }
        // 4. Write the new map. The value of a pair is that of its change, or the old one.
        let mut out = Vec::with_capacity(self.bytes.len());
        let value_of = |pair: PairAt, change: Option<usize>| match change {
            Some(i) => changes[i].1,
            None => Some(pair.value_in(&self.bytes)),
        };
        if is_reshaped {
            // The pairs that stay, and the new ones, are sorted.
            let stay = pairs.iter().filter_map(|&(pair, change)| {
                Some((pair.key_in(&self.bytes), value_of(pair, change)?))
            });
            let new = changes.iter().zip(&is_found);
            let new = new.filter_map(|(change, is_found)| match is_found {
                true => None,
                false => Some((change.0, change.1?)),
            });
            push_sorted(stay.chain(new).collect(), &mut out);
        } else {
            // The pairs stay where they are.
            out.extend_from_slice(&self.bytes[..self.first()]);
            for (pair, change) in pairs {
                out.extend_from_slice(pair.key_in(&self.bytes).bytes());
                if let Some(value) = value_of(pair, change) {
                    out.extend_from_slice(value.bytes());
                }
            }
        }
        self.is_reshaped |= is_reshaped;
        self.bytes = out;
        true
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
        first(&self.bytes)
    }

    fn find(&self, key: TermRef<'_>) -> Found {
        // `insert_at` is where the key would have to be inserted: in front of the first greater
        // key.
        let (mut after, mut insert_at) = (self.first(), None);
        for pair in offsets(&self.bytes) {
            let (at, here) = (pair.key, pair.key_in(&self.bytes));
            if here.identical(key) {
                let value = Some(pair.value..pair.end);
                return Found { at, value };
            }
            // The search goes on after that offset: in a map of tree form, keys aren't sorted, and
            // the key itself may be in a later pair.
            if insert_at.is_none() && key_order(key, here).is_lt() {
                insert_at = Some(at);
            }
            after = pair.end;
        }
        // No key is greater, so a new pair would be the last one.
        let at = insert_at.unwrap_or(after);
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
        let mut bytes = Vec::with_capacity(self.bytes.len());
        push_sorted(map.iter().collect(), &mut bytes);
        self.bytes = bytes;
    }

    /// Writes the new number of pairs into the head of a map of sorted form.
    fn count(&mut self, pairs: usize) {
        let mut head = vec![MAP];
        varint::push(&mut head, pairs as u64);
        self.bytes.splice(..self.first(), head);
    }
}

/// The number of pairs of a map.
fn len(map: &[u8]) -> usize {
    match TermRef::within(map).view() {
        View::Map(map) => map.len(),
        _ => 0,
    }
}

/// Where the first pair of a map begins.
fn first(map: &[u8]) -> usize {
    crate::skip::head(map, 0).0
}

/// The offsets of the pairs of a map, in the order in which they lie.
fn offsets(map: &[u8]) -> impl Iterator<Item = PairAt> + '_ {
    let mut at = first(map);
    (0..len(map)).map(move |_| {
        // A pair is two terms, one after the other.
        let key = at;
        let value = key + skip(&map[key..]);
        at = value + skip(&map[value..]);
        PairAt {
            key,
            value,
            end: at,
        }
    })
}

/// The last change of each key, in the exact order of the keys.
fn last_of_each_key<'a>(changes: &[PairChange<'a>]) -> Vec<PairChange<'a>> {
    let mut sorted = changes.to_vec();
    // The sort is stable, so of the changes of one key the last one is after the others.
    sorted.sort_by(|one, other| one.0.cmp_exact(other.0));
    let mut last: Vec<PairChange<'a>> = Vec::with_capacity(sorted.len());
    for change in sorted {
        match last.last_mut() {
            Some(before) if before.0.cmp_exact(change.0).is_eq() => *before = change,
            _ => last.push(change),
        }
    }
    last
}

/// Writes a map of these pairs in the sorted form.
fn push_sorted(mut pairs: Vec<(TermRef<'_>, TermRef<'_>)>, out: &mut Vec<u8>) {
    pairs.sort_unstable_by(|one, other| key_order(one.0, other.0));
    out.push(MAP);
    varint::push(out, pairs.len() as u64);
    for (key, value) in pairs {
        out.extend_from_slice(key.bytes());
        out.extend_from_slice(value.bytes());
    }
}

/// Searches for keys of one map. The first ones walk over the map. If there are more, its pairs are
/// put in order.
#[derive(Debug)]
pub struct MapSearch {
    map: Vec<u8>,
    /// How many searches have walked over the map.
    walks: usize,
    /// The pairs in the exact order of their keys. Empty until there were many searches.
    pairs: Vec<PairAt>,
}

/// The number of searches that walk over the map.
const WALKS: usize = 16;

impl MapSearch {
    /// For a copy of a map. `None` if the term isn't a map.
    pub fn new(map: TermRef<'_>) -> Option<MapSearch> {
        let MapEdit { bytes, .. } = MapEdit::new(map)?;
        Some(MapSearch {
            map: bytes,
            walks: 0,
            pairs: Vec::new(),
        })
    }

    /// The value of a key.
    ///
    /// # Complexity
    /// O(log n) in the map. The first searches take O(n), and one of them O(n log n).
    pub fn get(&mut self, key: TermRef<'_>) -> Option<TermRef<'_>> {
        let map = &self.map;
        // One of the first searches: walk.
        if self.walks < WALKS {
            self.walks += 1;
            let found = offsets(map).find(|pair| pair.key_in(map).identical(key));
            return found.map(|pair| pair.value_in(map));
        }
        // Put the pairs in order, once.
        if self.pairs.is_empty() {
            let mut pairs: Vec<_> = offsets(map).collect();
            pairs.sort_unstable_by(|one, other| one.key_in(map).cmp_exact(other.key_in(map)));
            self.pairs = pairs;
        }
        let order = |pair: &PairAt| pair.key_in(map).cmp_exact(key);
        let found = self.pairs.binary_search_by(order).ok()?;
        Some(self.pairs[found].value_in(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;
    use std::collections::BTreeMap;

    impl MapEdit {
        fn get(&self, key: TermRef<'_>) -> Option<TermRef<'_>> {
            let value = self.find(key).value?;
            Some(TermRef::within(&self.bytes[value]))
        }
    }

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

    /// Gives pseudorandom numbers below its argument.
    fn random_numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |n| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % n
        }
    }

    #[test]
    fn edits_are_those_of_the_oracle() {
        let mut random = random_numbers(7);
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
    fn many_changes_are_those_one_by_one() {
        let mut random = random_numbers(3);
        for round in 0..300 {
            let range = [3, 40, 300][round % 3];
            let pairs = (0..random(range + 1)).map(|_| (random(range), key(random(1000))));
            let map = whole(&pairs.collect());
            let changes: Vec<(Term, Option<Term>)> = (0..random(60))
                .map(|_| {
                    (
                        key(random(range)),
                        (random(4) > 0).then(|| key(random(1000))),
                    )
                })
                .collect();
            let mut one_by_one = MapEdit::new(map.as_ref()).unwrap();
            let mut at_once = MapEdit::new(map.as_ref()).unwrap();
            for (key, value) in &changes {
                match value {
                    Some(value) => one_by_one.put(key.as_ref(), value.as_ref()),
                    None => {
                        one_by_one.remove(key.as_ref());
                    }
                }
            }
            let refs = { changes.iter() }
                .map(|(key, value)| (key.as_ref(), value.as_ref().map(Term::as_ref)));
            assert!(at_once.change_all(&refs.collect::<Vec<_>>(), false));
            assert_eq!(at_once.term().bytes(), one_by_one.term().bytes());
            let mut search = MapSearch::new(map.as_ref()).unwrap();
            let edit = MapEdit::new(map.as_ref()).unwrap();
            for n in 0..range.min(50) {
                let (key, found) = (key(n), edit.get(key(n).as_ref()).map(Term::from));
                assert_eq!(search.get(key.as_ref()).map(Term::from), found);
            }
        }
    }

    /// One by one, these take minutes.
    #[test]
    fn many_changes_take_time_in_proportion() {
        let keys: Vec<_> = (0..100_000).rev().map(Term::int).collect();
        let (zero, one) = (Term::int(0), Term::int(1));
        let map = Term::map(keys.iter().map(|key| (key.clone(), zero.clone()))).unwrap();
        let changes = keys.iter().map(|key| (key.as_ref(), Some(one.as_ref())));
        let mut edit = MapEdit::new(map.as_ref()).unwrap();
        assert!(edit.change_all(&changes.collect::<Vec<_>>(), true));
        let mut search = MapSearch::new(edit.term()).unwrap();
        let is_one = |key: &Term| {
            let found = search.get(key.as_ref());
            found.is_some_and(|found| found.identical(one.as_ref()))
        };
        assert!(keys.iter().all(is_one));
    }

    #[test]
    fn what_is_no_map_is_none() {
        for text in ["a", "[]", "{a}", "7"] {
            assert!(MapEdit::new(text.parse::<Term>().unwrap().as_ref()).is_none());
        }
    }
}
