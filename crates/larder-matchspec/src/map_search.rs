//! The search for a key in the bytes of a map.

use crate::{raw, wire};

/// A key that is searched for in a map.
pub(crate) struct MapKey<'k> {
    key: &'k [u8],
    /// Whether the key is an integer or an atom of at most eight bytes. Then only its bytes are
    /// compared.
    plain: bool,
    /// The first eight bytes of a plain key, and the number of their bits that don't belong to it.
    eight: u64,
    unused: u32,
}

impl<'k> MapKey<'k> {
    /// The key that these bytes are.
    pub(crate) fn new(key: &'k [u8]) -> Self {
        // Short keys are compared as one word, which is loaded here.
        let used = key.len().min(8);
        let mut eight = [0; 8];
        eight[..used].copy_from_slice(&key[..used]);
        MapKey {
            key,
            plain: used == key.len() && wire::is_integer_or_atom(key),
            eight: u64::from_le_bytes(eight),
            unused: 64 - 8 * used as u32,
        }
    }

    /// Returns what follows the key, if the run begins with it; otherwise, as an error, what
    /// follows the key that the run begins with.
    #[inline]
    pub(crate) fn behind<'a>(&self, run: &'a [u8]) -> Result<&'a [u8], &'a [u8]> {
        // Compare eight bytes at once: most keys are atoms or short binaries.
        if let (true, Some(&eight)) = (self.plain, run.first_chunk()) {
            // No encoding of a key is a prefix of another.
            if (u64::from_le_bytes(eight) ^ self.eight) << self.unused == 0 {
                return Ok(&run[self.key.len()..]);
            }
            return Err(wire::split(run).1);
        }
        // A long key, or one with several encodings.
        let (key, value) = wire::split(run);
        match raw::whole(key).identical(raw::whole(self.key)) {
            true => Ok(value),
            false => Err(value),
        }
    }
}

/// The size of the largest map whose keys are always in order. Keys of larger maps may be in the
/// order of a tree.
pub(crate) const LARGEST_IN_ORDER: usize = 32;

impl MapKey<'_> {
    /// Searches for the key among `left` pairs. Returns what follows it, and updates `left` to the
    /// number of pairs behind it.
    #[inline]
    pub(crate) fn find<'a>(&self, mut run: &'a [u8], left: &mut usize) -> Option<&'a [u8]> {
        while *left > 0 {
            // Pairs are in order of their keys. A pair that isn't the one is skipped, key and
            // value.
            *left -= 1;
            match self.behind(run) {
                Ok(value) => return Some(value),
                Err(value) => run = wire::split(value).1,
            }
        }
        None
    }
}

/// A map whose keys may be stored in another order than the pattern names them.
pub(crate) struct UnorderedMap<'a> {
    /// The encoded pairs, and their number.
    pairs: &'a [u8],
    count: usize,
    /// How many pairs searches have passed.
    passed: usize,
    /// For each pair, where its key and its value begin, and its number, in the exact order of the
    /// keys. Empty until searches have passed many pairs.
    sorted: Vec<(usize, usize, usize)>,
}

/// Searches may pass all pairs of a map this number of times before the pairs are sorted.
const PASSES: usize = 16;

impl<'a> UnorderedMap<'a> {
    /// The map of these pairs, of which there are `count`.
    pub(crate) fn new(pairs: &'a [u8], count: usize) -> Self {
        UnorderedMap {
            pairs,
            count,
            passed: 0,
            sorted: Vec::new(),
        }
    }

    /// Searches for a key, first among the `left` pairs at the beginning of `run`. Returns what
    /// follows it, and updates `left` to the number of pairs behind it.
    pub(crate) fn find(
        &mut self,
        key: &MapKey<'_>,
        run: &'a [u8],
        left: &mut usize,
    ) -> Option<&'a [u8]> {
        if self.passed > PASSES * self.count {
            return self.find_sorted(key, run, left);
        }
        let before = *left;
        let mut found = key.find(run, left);
        self.passed += before - *left;
        if found.is_none() {
            *left = self.count;
            found = key.find(self.pairs, left);
            self.passed += self.count - *left;
        }
        found
    }

    /// As `find`, but looks at the next pair only, and searches for the key in the sorted pairs.
    fn find_sorted(
        &mut self,
        key: &MapKey<'_>,
        run: &'a [u8],
        left: &mut usize,
    ) -> Option<&'a [u8]> {
        let pairs = self.pairs;
        let next = (*left > 0).then(|| key.behind(run));
        if let Some(Ok(value)) = next {
            *left -= 1;
            return Some(value);
        }
        let key_at = |at: usize, middle: usize| raw::whole(&pairs[at..middle]);
        if self.sorted.is_empty() {
            let mut rest = pairs;
            for number in 0..self.count {
                let (_, value) = wire::split(rest);
                let (at, middle) = (pairs.len() - rest.len(), pairs.len() - value.len());
                self.sorted.push((at, middle, number));
                rest = wire::split(value).1;
            }
            let order = |one: &(usize, usize, usize), other: &(usize, usize, usize)| {
                key_at(one.0, one.1).cmp_exact(key_at(other.0, other.1))
            };
            self.sorted.sort_by(order);
        }
        let wanted = raw::whole(key.key);
        let order = |&(at, middle, _): &(usize, usize, usize)| key_at(at, middle).cmp_exact(wanted);
        let (_, middle, number) = self.sorted[self.sorted.binary_search_by(order).ok()?];
        *left = self.count - number - 1;
        Some(&pairs[middle..])
    }
}
