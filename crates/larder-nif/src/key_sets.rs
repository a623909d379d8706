//! What a thread remembers of sets of keys of maps.
//!
//! Rows of one table mostly have keys from one small stock, but seldom all of them: 64,000 packages of Debian have 1,642 sets of some 25 keys. So there is
//! room for many sets. Each has four places where it may be, by its hash; a new one takes a place that is free, or else that of the oldest of the four.

use crate::sys::Word;
use std::rc::Rc;

/// The most sets that are remembered.
const SETS: usize = 1024;
/// Places for one set.
const WAYS: usize = 4;

/// The keys, in some order, and what is known of them.
type Entry<T> = (Box<[Word]>, Rc<T>);

/// Something about each of many sets of keys, which are words that are whole terms, and the same for ever. Nothing is allocated before the first.
pub struct KeySets<T> {
    places: Vec<Option<Entry<T>>>,
    /// How many were added.
    added: usize,
}

impl<T> KeySets<T> {
    /// Nothing is remembered.
    pub const fn new() -> Self {
        KeySets {
            places: Vec::new(),
            added: 0,
        }
    }

    /// What is known of these keys in this order; if nothing is, what `learn` says, which is remembered.
    #[inline]
    pub fn of(&mut self, keys: &[Word], learn: impl FnOnce() -> Option<T>) -> Option<&Rc<T>> {
        let first = place_of(keys);
        let known = self.places.get(first..first + WAYS).and_then(|places| {
            let is_it = |place: &Option<Entry<T>>| matches!(place, Some((k, _)) if **k == *keys);
            places.iter().position(is_it)
        });
        let place = match known {
            Some(way) => first + way,
            None => self.add(first, keys, learn()?),
        };
        self.places[place].as_ref().map(|(_, known)| known)
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, first: usize, keys: &[Word], known: T) -> usize {
        if self.places.is_empty() {
            self.places.resize_with(SETS, || None);
        }
        let ways = &self.places[first..first + WAYS];
        let way = ways.iter().position(Option::is_none);
        // Each of the four in its turn is nearly the oldest one, and needs no clock.
        let place = first + way.unwrap_or(self.added % WAYS);
        self.added += 1;
        self.places[place] = Some((keys.into(), Rc::new(known)));
        place
    }
}

/// The first of the places where these keys may be.
#[inline]
fn place_of(keys: &[Word]) -> usize {
    let mix = |sum: u64, &key: &Word| {
        (sum.rotate_left(5) ^ key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    (keys.iter().fold(0, mix) >> 40) as usize % (SETS / WAYS) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers below `n` whose bits are set.
    fn set(n: Word, bits: Word) -> Vec<Word> {
        (0..n).filter(|i| bits >> i & 1 == 1).collect()
    }

    #[test]
    fn many_sets_are_remembered() {
        let mut sets = KeySets::new();
        let mut learnt = 0;
        for _ in 0..10 {
            for bits in 0..512 {
                let keys = set(9, bits);
                let known = sets.of(&keys, || {
                    learnt += 1;
                    Some(bits)
                });
                assert_eq!(known.map(|known| **known), Some(bits));
            }
        }
        // Half as many as there is room for: a few share their four places with more than three others.
        assert!((512..700).contains(&learnt), "{learnt}");
    }

    #[test]
    fn more_than_there_is_room_for() {
        let mut sets = KeySets::new();
        for bits in (0..20_000).chain(0..20_000) {
            let keys = set(15, bits);
            assert_eq!(
                sets.of(&keys, || Some(keys.len())).map(|n| **n),
                Some(keys.len())
            );
        }
        assert_eq!(sets.places.len(), SETS);
    }

    #[test]
    fn what_cannot_be_learnt_is_not_remembered() {
        let mut sets = KeySets::new();
        assert!(sets.of(&[1, 2], || None::<u8>).is_none());
        assert_eq!(sets.of(&[1, 2], || Some(3)).map(|n| **n), Some(3));
        // Another order is another set.
        assert_eq!(sets.of(&[2, 1], || Some(4)).map(|n| **n), Some(4));
        assert_eq!(sets.of(&[1, 2], || Some(5)).map(|n| **n), Some(3));
    }
}
