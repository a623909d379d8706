//! The search for a key in the bytes of a map.

use crate::{
    raw,
    wire::{self, Head},
};
use larder_term::TermRef;
use std::hint::black_box;
use std::sync::{
    atomic::{AtomicUsize, Ordering},
    OnceLock,
};

/// A key that is searched for in a map.
pub(crate) struct MapKey<'k> {
    key: &'k [u8],
    /// Whether the key is an integer, an atom or a short binary. Then only its bytes are compared.
    plain: bool,
    /// The first eight bytes of the key, and the number of their bits that don't belong to it.
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
            plain: wire::is_integer_or_atom(key) || wire::is_short_binary(key),
            eight: u64::from_le_bytes(eight),
            unused: 64 - 8 * used as u32,
        }
    }

    /// Returns what follows the key, if the run begins with it; otherwise, as an error, what
    /// follows the key that the run begins with.
    #[inline]
    pub(crate) fn after<'a>(&self, run: &'a [u8]) -> Result<&'a [u8], &'a [u8]> {
        // Compare eight bytes at once: most keys are atoms or short binaries.
        if let (true, Some(&eight)) = (self.plain, run.first_chunk()) {
            // No encoding of a key is a prefix of another.
            let begins = (u64::from_le_bytes(eight) ^ self.eight) << self.unused == 0;
            if begins && (self.key.len() <= 8 || run.starts_with(self.key)) {
                return Ok(&run[self.key.len()..]);
            }
            return Err(after_key(run));
        }
        // A key with several encodings, or one that may be at the end of a short map.
        let (key, value) = wire::split(run);
        match raw::whole(key).identical(raw::whole(self.key)) {
            true => Ok(value),
            false => Err(value),
        }
    }
}

/// What follows the key that a run begins with.
#[inline]
fn after_key(run: &[u8]) -> &[u8] {
    // The keys of a map have mostly the same length. The branch for it is predicted, so the search
    // goes on before the key has been loaded. Doing something in each branch, which takes no
    // instruction, keeps the compiler from adding the length that the table has instead.
    match larder_term::fixed_len(run[0]) {
        0 => wire::split(run).1,
        1 => {
            black_box(());
            &run[1..]
        }
        2 => {
            black_box(());
            &run[2..]
        }
        3 => {
            black_box(());
            &run[3..]
        }
        len => &run[len..],
    }
}

/// The size of the largest map whose keys are always in order. Keys of larger maps may be in the
/// order of a tree.
pub(crate) const LARGEST_IN_ORDER: usize = 32;

impl MapKey<'_> {
    /// Searches for the key among `left` pairs. Returns what follows it, and updates `left` to the
    /// number of pairs after it.
    #[inline]
    pub(crate) fn find<'a>(&self, mut run: &'a [u8], left: &mut usize) -> Option<&'a [u8]> {
        while *left > 0 {
            // Pairs are in order of their keys. A pair that isn't the one is skipped, key and
            // value.
            *left -= 1;
            match self.after(run) {
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
    /// The pairs in the exact order of their keys. Empty until searches have passed many pairs.
    sorted: Vec<Pair>,
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
    /// follows it, and updates `left` to the number of pairs after it.
    pub(crate) fn find(
        &mut self,
        key: &MapKey<'_>,
        run: &'a [u8],
        left: &mut usize,
    ) -> Option<&'a [u8]> {
        // The walks below have taken as long as sorting the keys would.
        if self.passed > PASSES * self.count {
            return self.find_sorted(key, run, left);
        }
        // Mostly the key is one of those after the last one that was found.
        let before = *left;
        let mut found = key.find(run, left);
        self.passed += before - *left;
        // Otherwise search from the first pair on.
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
        // Mostly the next key of the map is the next one that is searched for.
        let next = (*left > 0).then(|| key.after(run));
        if let Some(Ok(value)) = next {
            *left -= 1;
            return Some(value);
        }
        // Sort the keys at the first search, and search in halves.
        if self.sorted.is_empty() {
            self.sorted = sorted(pairs, self.count);
        }
        let (value, number) = search(pairs, &self.sorted, raw::whole(key.key))?;
        *left = self.count - number - 1;
        Some(value)
    }
}

/// A pair of a map: where its key and its value begin, and its number.
type Pair = (usize, usize, usize);

/// The pairs of a map, of which there are `count`, in the exact order of their keys.
fn sorted(pairs: &[u8], count: usize) -> Vec<Pair> {
    let mut rest = pairs;
    let mut sorted: Vec<Pair> = (0..count)
        .map(|number| {
            let (_, value) = wire::split(rest);
            let (at, middle) = (pairs.len() - rest.len(), pairs.len() - value.len());
            rest = wire::split(value).1;
            (at, middle, number)
        })
        .collect();
    let key = |&(at, middle, _): &Pair| raw::whole(&pairs[at..middle]);
    sorted.sort_unstable_by(|one, other| key(one).cmp_exact(key(other)));
    sorted
}

/// Searches for a key in sorted pairs. Returns what follows the key, and the number of the pair.
fn search<'a>(pairs: &'a [u8], sorted: &[Pair], key: TermRef<'_>) -> Option<(&'a [u8], usize)> {
    let order = |&(at, middle, _): &Pair| raw::whole(&pairs[at..middle]).cmp_exact(key);
    let (_, middle, number) = sorted[sorted.binary_search_by(order).ok()?];
    Some((&pairs[middle..], number))
}

/// A large map among the constants of a program, in which a key of each row may be searched for.
#[derive(Debug, Default)]
pub(crate) struct ConstantMap {
    /// How many pairs searches have passed.
    passed: AtomicUsize,
    /// As in `UnorderedMap`.
    sorted: OnceLock<Vec<Pair>>,
}

impl ConstantMap {
    /// Whether a constant is a large map.
    #[inline]
    pub(crate) fn is_for(constant: &[u8]) -> bool {
        matches!(wire::open(constant), (Head::Map(count), _) if count > LARGEST_IN_ORDER)
    }

    /// Searches for a key in the map, whose pairs and their number are given. Returns what follows
    /// the key.
    pub(crate) fn find<'a>(
        &self,
        key: TermRef<'_>,
        pairs: &'a [u8],
        count: usize,
    ) -> Option<&'a [u8]> {
        // Relaxed: the number decides when the pairs are sorted, and nothing else.
        let passed = self.passed.load(Ordering::Relaxed);
        if passed > PASSES * count {
            let sorted = self.sorted.get_or_init(|| sorted(pairs, count));
            return Some(search(pairs, sorted, key)?.0);
        }
        let mut left = count;
        let found = MapKey::new(key.bytes()).find(pairs, &mut left);
        self.passed.store(passed + count - left, Ordering::Relaxed);
        found
    }
}
