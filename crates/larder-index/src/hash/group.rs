//! The entries of one home, which a scan sorts.
//!
//! ```text
//!  words    tag | outside | length | where it begins        len: how many words are used
//! ```
//!
//! 1. The scan reads a leaf's buckets one after the other. Each entry becomes one word
//!    ([`PackedEntry`]), whose top byte is the tag.
//! 2. The words of a home are put into one [`Group`]: those of its bucket, without entries of other
//!    homes, and the home's displaced entries ([`DisplacedEntries`]).
//! 3. The group is sorted by comparing words ([`sort`]). Tags are random, and a home has few
//!    entries. So this usually takes no branch that depends on a tag: half of them would be
//!    mispredicted.
//!
//! Invariant (H2): within a home, the order of tags is the order of positions, except for entries
//! with equal tags. The scan sorts those itself, since their keys are needed.

use super::shape::{OUTSIDE, TAG};
use smallvec::{smallvec, SmallVec};

/// A home of at most this number of entries is sorted by ranks.
const RANKED: usize = 16;

/// An entry in the batch's bytes, packed in one word. Words are in the order of tags.
///
/// ```text
///  bits   61–56   52        51–32    31–0
///         tag     outside   length   where it begins in the batch's bytes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedEntry(pub(super) u64);

impl PackedEntry {
    /// Packs an entry, given its slot entry and its offset in the batch's bytes.
    #[inline]
    pub(super) fn new(slot: u16, from: usize, end: usize) -> Self {
        let (tag, outside) = (u64::from(slot & TAG), u64::from(slot & OUTSIDE != 0));
        PackedEntry(tag << 48 | outside << 52 | ((end - from) as u64) << 32 | from as u64)
    }

    /// The tag, with the two bits above it, which are clear.
    #[inline]
    pub(super) fn tag(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// Whether the batch has a handle instead of the object.
    #[inline]
    pub(super) fn outside(self) -> bool {
        self.0 >> 52 & 1 != 0
    }

    /// Where the entry begins in the batch's bytes.
    #[inline]
    pub(super) fn from(self) -> usize {
        self.0 as u32 as usize
    }

    /// Where the entry ends there.
    #[inline]
    pub(super) fn end(self) -> usize {
        self.from() + ((self.0 >> 32) as usize & 0xF_FFFF)
    }
}

/// Entries of a bucket or of a home, as the words of [`PackedEntry`].
///
/// There are always at least `MOST` words, of which the first `len` are used. So an entry can be
/// written before it is known whether it is needed.
pub(super) struct Group {
    pub(super) words: Vec<u64>,
    pub(super) len: usize,
}

impl Group {
    /// The largest count of entries that a bucket's head can contain.
    pub(super) const MOST: usize = 255;

    /// An empty group in this memory.
    pub(super) fn new(mut words: Vec<u64>) -> Self {
        // All entries of a bucket fit without a bounds check, even if its count is torn.
        words.resize(words.len().max(Group::MOST), 0);
        Group { words, len: 0 }
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, word: u64) {
        // Words after the first `len` are unused, and are overwritten.
        match self.words.get_mut(self.len) {
            Some(place) => *place = word,
            None => self.words.push(word),
        }
        self.len += 1;
    }
}

impl std::ops::Deref for Group {
    type Target = [u64];
    #[inline]
    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl std::ops::DerefMut for Group {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.len]
    }
}

/// The displaced entries of a leaf by their homes, as a linked list for each home.
pub(super) struct DisplacedEntries {
    /// For each home the number of its first entry, counted from 1; 0 if there is none.
    first: SmallVec<[u32; 128]>,
    all: SmallVec<[DisplacedEntry; 64]>,
}

/// A displaced entry, in the list of its home.
struct DisplacedEntry {
    entry: PackedEntry,
    /// The number of the next one of its home, counted from 1; 0 for none.
    next: u32,
}

impl DisplacedEntries {
    /// No entries, for a leaf of so many homes.
    pub(super) fn new(homes: usize) -> Self {
        DisplacedEntries {
            first: smallvec![0; homes],
            all: SmallVec::new(),
        }
    }

    /// Adds an entry, in front of its home's list.
    #[inline]
    pub(super) fn add(&mut self, home: usize, found: PackedEntry) {
        let next = std::mem::replace(&mut self.first[home], self.all.len() as u32 + 1);
        self.all.push(DisplacedEntry { entry: found, next });
    }

    /// The entries of a home, in no order: `sort` sorts them with the others.
    #[inline]
    pub(super) fn at_home(&self, home: usize) -> impl Iterator<Item = u64> + '_ {
        let mut next = self.first[home];
        std::iter::from_fn(move || {
            let found = self.all.get((next as usize).checked_sub(1)?)?;
            next = found.next;
            Some(found.entry.0)
        })
    }
}

/// Sorts entries by their tags. Returns whether two of them have the same tag.
#[inline]
pub(super) fn sort(group: &mut [u64]) -> bool {
    // A home has few entries, unless hashes are much alike.
    if group.len() > RANKED {
        group.sort_unstable();
    } else {
        sort_few(group);
    }
    // Neighbours with equal top bytes have equal tags. All pairs are looked at, without a branch
    // for each.
    let tags = |pair: &[u64]| (pair[0] ^ pair[1]) >> 56;
    group
        .windows(2)
        .fold(false, |tie, pair| tie | (tags(pair) == 0))
}

/// Sorts a few entries by their tags. The rank of an entry is the number of entries that come
/// before it, which is its index in the sorted group.
#[inline]
fn sort_few(group: &mut [u64]) {
    // 1. Make a short key of each entry.
    let (mut keys, mut words) = ([i16::MAX; RANKED], [0; RANKED]);
    for (i, &word) in group.iter().enumerate() {
        // Six bits of tag and four of index: no two keys are alike, so ranks are a permutation.
        (keys[i], words[i]) = ((word >> 56 << 4) as i16 | i as i16, word);
    }
    // 2. Count for each key how many others are less.
    let mut ranks = [0i16; RANKED];
    for &other in &keys[..group.len()] {
        // Always all lanes, so that it is vector code. Unused keys are the greatest, and their
        // ranks are not read.
        for (rank, &key) in ranks.iter_mut().zip(&keys) {
            *rank += i16::from(other < key);
        }
    }
    // 3. Put each entry at its rank.
    for i in 0..group.len() {
        group[ranks[i] as usize] = words[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_home_is_sorted_by_tags(tags in prop::collection::vec(0..64u64, 0..40)) {
            let found = |(i, tag): (usize, u64)| tag << 56 | (i as u64 * 7 % 41);
            let mut group: Vec<u64> = tags.iter().copied().enumerate().map(found).collect();
            let (mut all, mut wanted) = (group.clone(), tags);
            let tie = sort(&mut group);
            wanted.sort_unstable();
            prop_assert_eq!(tie, wanted.windows(2).any(|pair| pair[0] == pair[1]));
            prop_assert_eq!(group.iter().map(|word| word >> 56).collect::<Vec<_>>(), wanted);
            group.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(group, all);
        }

        #[test]
        fn displaced_entries_are_found_by_their_homes(homes in prop::collection::vec(0..9usize, 0..80)) {
            let mut displaced = DisplacedEntries::new(9);
            for (i, &home) in homes.iter().enumerate() {
                displaced.add(home, PackedEntry(i as u64));
            }
            for home in 0..9 {
                let mut found: Vec<u64> = displaced.at_home(home).collect();
                found.reverse();
                let right = homes.iter().enumerate().filter(|displaced| *displaced.1 == home);
                prop_assert_eq!(found, right.map(|displaced| displaced.0 as u64).collect::<Vec<_>>());
            }
        }
    }
}
