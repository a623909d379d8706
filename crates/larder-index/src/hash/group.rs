//! The entries of one home, which a scan sorts.
//!
//! ```text
//!  words    one for each tag | twins ║ tag | outside | length | where it begins
//! ```
//!
//! `len` is the number of entries. An entry is one word ([`PackedEntry`]), whose top byte is the
//! tag. A home has few entries, and mostly no two with the same tag. So each word is put in the
//! place of its tag, and they are read back in the order of tags. Tags are random, so a branch for
//! each comparison of two would be mispredicted half of the time.
//!
//! Invariant (H2): within a home, the order of tags is the order of positions, except for entries
//! with equal tags. The scan sorts those itself, since their keys are needed.

use super::shape::{OUTSIDE, TAG};
use smallvec::{smallvec, SmallVec};

/// The number of tags.
const TAGS: usize = 64;
/// The number of words before those of the group: one for each tag, and twins.
const BEFORE: usize = 2 * TAGS;

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
/// There are always at least `MOST` words after those before, of which the first `len` are
/// used. So an entry can be written before it is known whether it is needed.
pub(super) struct Group {
    pub(super) words: Vec<u64>,
    pub(super) len: usize,
    /// All words that were written since `set`, combined by "or".
    any: u64,
}

impl Group {
    /// The largest count of entries that a bucket's head can contain.
    const MOST: usize = 255;

    /// An empty group in this memory.
    pub(super) fn new(mut words: Vec<u64>) -> Self {
        // All entries of a bucket fit without a bounds check, even if its count is torn.
        words.resize(words.len().max(BEFORE + Group::MOST), 0);
        Group {
            words,
            len: 0,
            any: 0,
        }
    }

    /// Replaces the group by those entries of a bucket that are wanted. There are `MOST` at most.
    #[inline(always)]
    pub(super) fn set(&mut self, entries: impl Iterator<Item = (PackedEntry, bool)>) {
        // A branch on what is wanted couldn't be predicted. So write each entry, and advance only
        // if it is wanted; otherwise the next one overwrites it.
        let (words, mut kept, mut any) = (&mut self.words[BEFORE..BEFORE + Group::MOST], 0, 0);
        for (entry, wanted) in entries {
            words[kept] = entry.0;
            any |= entry.0;
            kept += usize::from(wanted);
        }
        (self.len, self.any) = (kept, any);
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, word: u64) {
        match self.words.get_mut(BEFORE + self.len) {
            Some(place) => *place = word,
            None => self.words.push(word),
        }
        self.len += 1;
        self.any |= word;
    }

    /// Whether there may be an outside object among the entries.
    #[inline]
    pub(super) fn may_be_outside(&self) -> bool {
        PackedEntry(self.any).outside()
    }

    /// Sorts the entries by their tags. Returns whether two have the same.
    #[inline]
    pub(super) fn sort(&mut self) -> bool {
        let (by_tag, others) = self.words.split_at_mut(TAGS);
        let (twins, group) = others.split_at_mut(TAGS);
        let group = &mut group[..self.len];
        if group.len() > TAGS {
            // Hashes are much alike.
            group.sort_unstable();
            return true;
        }
        // Bit `t` is set if there is an entry with tag `t`. If another one takes its place, it
        // becomes a twin.
        let (mut tags, mut count) = (0u64, 0);
        for &word in &*group {
            let tag = usize::from(PackedEntry(word).tag()) % TAGS;
            twins[count % TAGS] = std::mem::replace(&mut by_tag[tag], word);
            count += (tags >> tag & 1) as usize;
            tags |= 1 << tag;
        }
        // Without twins, take the entries in the order of the bits.
        let Some(twins) = twins.get(..count).filter(|twins| !twins.is_empty()) else {
            for place in group {
                *place = by_tag[tags.trailing_zeros() as usize % TAGS];
                tags &= tags.wrapping_sub(1);
            }
            return false;
        };
        // Entries with equal tags are beside each other then, in any order. The caller compares
        // them by their hashes.
        merge(group, by_tag, tags, twins);
        true
    }
}

/// Writes the entries with these tags, each followed by its twins.
#[inline(never)]
fn merge(group: &mut [u64], by_tag: &[u64], mut tags: u64, twins: &[u64]) {
    let mut places = group.iter_mut();
    while tags != 0 {
        let word = by_tag[tags.trailing_zeros() as usize];
        tags &= tags - 1;
        let same = |twin: &&u64| PackedEntry(**twin).tag() == PackedEntry(word).tag();
        let words = [word].into_iter().chain(twins.iter().filter(same).copied());
        // A place is taken only if there is a word for it.
        words
            .zip(&mut places)
            .for_each(|(word, place)| *place = word);
    }
}

impl std::ops::Deref for Group {
    type Target = [u64];
    #[inline]
    fn deref(&self) -> &[u64] {
        &self.words[BEFORE..BEFORE + self.len]
    }
}

impl std::ops::DerefMut for Group {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[BEFORE..BEFORE + self.len]
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
    pub(super) fn new(homes: usize) -> Self {
        DisplacedEntries {
            first: smallvec![0; homes],
            all: SmallVec::new(),
        }
    }

    /// Adds one, in front of its home's list.
    #[inline]
    pub(super) fn add(&mut self, home: usize, found: PackedEntry) {
        let next = std::mem::replace(&mut self.first[home], self.all.len() as u32 + 1);
        self.all.push(DisplacedEntry { entry: found, next });
    }

    /// Those of a home.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_home_is_sorted_by_tags(tags in prop_oneof![
            prop::collection::vec(0..64u64, 0..40),
            prop::collection::hash_set(0..64u64, 0..=64).prop_map(Vec::from_iter),
        ]) {
            let found = |(i, tag): (usize, u64)| tag << 56 | (i as u64 * 7 % 41);
            let mut all: Vec<u64> = tags.iter().copied().enumerate().map(found).collect();
            let (mut group, mut wanted) = (Group::new(Vec::new()), tags);
            group.set(all.iter().map(|&word| (PackedEntry(word), true)));
            let tie = group.sort();
            wanted.sort_unstable();
            prop_assert_eq!(tie, wanted.windows(2).any(|pair| pair[0] == pair[1]));
            prop_assert_eq!(group.iter().map(|word| word >> 56).collect::<Vec<_>>(), wanted);
            group.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(&group[..], &all[..]);
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
