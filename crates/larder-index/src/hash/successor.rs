//! Finding the entry behind a position in a leaf, without copying or sorting its buckets.
//!
//! ```text
//!  position   (home bucket, tag, the rest of the hash, key)       homes and tags follow the hash
//! ```
//!
//! 1. In the bound's home bucket, find the least tag above the bound's, by one pass over the slot
//!    entries.
//! 2. Compare the entries that have the bound's own tag by hash and key.
//! 3. If the bucket has overflowed with entries whose tags may be less, compare the displaced
//!    entries of this home, too.
//! 4. If nothing was found, continue with the least tag of the next bucket.
//!
//! Invariants: the entries of a home have greater positions than those of all homes before it. Of
//! two entries of one home, the one with the lesser tag has the lesser position. For each eighth of
//! the tags, a bucket records whether an entry with such a tag has overflowed.
//!
//! The hash of a key is computed again only if tags are equal or the entry is displaced.
//!
//! Reads may be torn. The version is validated before a key is measured or hashed, and before
//! anything is returned.
//!
//! Differences from a scan (`scan`): only the keys that must be compared and the resulting entry
//! are copied. Slot entries are compared a word at a time, which is four.
//!
//! When not to use it: for more than one or two entries. A scan copies a bucket once for all of its
//! entries.

use crate::hash::bucket::{self, entries, Bucket, Home, ENTRIES_PER_WORD, ENTRY_LSBS};
use crate::hash::key_rule::{KeyProperties, KeyRule};
use crate::hash::leaf::HashView;
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::traits::BatchEntry;
use crate::Batch;
use std::ops::Range;

/// A position. The search is for the first entry behind it.
#[derive(Clone, Copy)]
pub(crate) struct LowerBound<'a> {
    pub(crate) hash: u64,
    /// The key of the position. `None`: all entries with this hash are behind the bound.
    pub(crate) key: Option<&'a [u8]>,
}

impl LowerBound<'_> {
    /// Whether an entry with this hash and key is behind the bound.
    fn is_before(&self, hash: u64, key: &[u8]) -> bool {
        match self.key {
            Some(bound_key) => (hash, key) > (self.hash, bound_key),
            None => hash >= self.hash,
        }
    }
}

/// What [`HashView::next`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Successor {
    /// Whether the bound's own key is present.
    pub(crate) is_present: bool,
    /// Whether the leaf has an entry behind the bound. It is in the batch.
    pub(crate) found: bool,
}

/// A bound, and its tag in the leaf that is searched.
#[derive(Clone, Copy)]
struct TaggedBound<'a> {
    tag: u8,
    bound: LowerBound<'a>,
}

/// Which entries of a home a search considers.
#[derive(Clone, Copy)]
struct SearchFilter<'a> {
    /// The least tag.
    from: u8,
    /// Only entries behind this bound; `None`: all entries.
    bound: Option<LowerBound<'a>>,
}

/// An entry that may be the successor.
#[derive(Clone, Copy)]
struct Candidate<'g> {
    bucket: Bucket<'g>,
    slot: usize,
    tag: u8,
}

/// One more than the greatest tag.
const TAGS: u8 = 64;

/// The eighths of the tags that overlap `from..=to`, as the bits of [`eighth`].
fn eighths(from: u8, to: u8) -> u8 {
    // Bits 0 to `eighth`. This takes sixteen bits, since `2 << 7` has nine.
    let up_to = |eighth: u8| (2u16 << eighth) - 1;
    let below = (1u16 << (from >> 3)) - 1;
    (up_to(to >> 3) & !below) as u8
}

/// The overflow bits of the bucket with this first word.
fn overflow_bits(head: u64) -> u8 {
    (head >> 8) as u8
}

/// All bits of a slot entry but the top one.
const BELOW_TOP: u64 = 0x7FFF;

/// Calls `f` for each word of slot entries: with the number of its first slot entry, the word, and
/// a mask of the slot entries that are entries.
#[inline]
fn each_word(bucket: Bucket<'_>, mut f: impl FnMut(usize, u64, u64)) {
    let head = bucket.word(0);
    let n = entries(head);
    // Slot entry 0 is the bucket's head, so it is masked out.
    let (mut first, mut word, mut ours) = (0, head, !0xFFFF);
    // Words in which all slot entries are entries. `n` may be torn, but no read goes outside the
    // bucket (see `Bucket`).
    while first + ENTRIES_PER_WORD <= n {
        f(first, word, ours);
        first += ENTRIES_PER_WORD;
        (word, ours) = (bucket.word(first / ENTRIES_PER_WORD), u64::MAX);
    }
    // The last word: slot entries above `n` are free bytes or objects, and are masked out.
    f(
        first,
        word,
        ours & u64::MAX >> ((ENTRIES_PER_WORD - 1 - n % ENTRIES_PER_WORD) * 16),
    );
}

/// The minimum of each pair of slot entries of two words. Their top bits must be clear.
#[inline]
fn lesser(a: u64, b: u64) -> u64 {
    const ENTRY_MSBS: u64 = 0x8000 * ENTRY_LSBS;
    // Subtract all four at once. The top bits are set in `a`, so no difference borrows from its
    // neighbour, and a top bit stays set exactly where `a >= b`. Then widen these bits to masks.
    let not_less = (((a | ENTRY_MSBS) - b) & ENTRY_MSBS) >> 15;
    let not_less = (not_less << 16).wrapping_sub(not_less);
    b & not_less | a & !not_less
}

/// The position of an entry, in a buffer that its key has been copied to.
struct CopiedPosition {
    hash: u64,
    /// Where its key is in the buffer.
    key: Range<usize>,
}

/// An entry that is at home in a bucket.
struct HomeEntry {
    tag: u8,
    /// The number of its slot entry.
    slot: usize,
}

/// The entry with the least tag that is not below `low`, among those that are at home in a bucket.
#[inline]
fn least(bucket: Bucket<'_>, low: u8) -> Option<HomeEntry> {
    let numbers = 0x0003_0002_0001_0000;
    let mut least = BELOW_TOP * ENTRY_LSBS;
    each_word(bucket, |first, word, ours| {
        // Rank each slot entry by its distance from `low`, and then by its number. The distance is
        // modulo 128, and bit 6 is set in displaced entries. So displaced entries and tags below
        // `low` rank behind all others.
        let tags = (word >> 8) & (0x7F * ENTRY_LSBS);
        let above =
            ((tags | (0x80 * ENTRY_LSBS)) - u64::from(low) * ENTRY_LSBS) & (0x7F * ENTRY_LSBS);
        let ranked = above << 8 | (numbers + first as u64 * ENTRY_LSBS);
        least = lesser(least, (ranked & ours) | (!ours & (BELOW_TOP * ENTRY_LSBS)));
    });
    // Reduce the four ranks to their minimum: first the upper two with the lower two.
    let two = lesser(least, least >> 32 | BELOW_TOP << 32 | BELOW_TOP << 48);
    let least = (two & BELOW_TOP).min(two >> 16 & BELOW_TOP);
    // A distance of `TAGS - low` or more is a displaced entry, a tag below `low`, or no entry.
    let above = (least >> 8) as u8;
    (above < TAGS - low).then_some(HomeEntry {
        tag: above + low,
        slot: least as usize & 0xFF,
    })
}

/// The top bits of the slot entries of a word that are at home and have this tag. `ours` is the
/// mask of entries.
#[inline]
fn with_tag(word: u64, ours: u64, tag: u8) -> u64 {
    bucket::matches(word, (u64::from(tag) << 8) * ENTRY_LSBS) & ours
}

/// The number of entries with this tag that are at home in a bucket.
#[inline]
fn count_with(bucket: Bucket<'_>, tag: u8) -> usize {
    let mut counts = 0;
    each_word(bucket, |_, word, ours| {
        counts += with_tag(word, ours, tag) >> 15;
    });
    // Each of the four counts is at most 64, a quarter of a bucket's entries, so none overflows.
    // The multiplication adds all four in the top 16 bits.
    (counts.wrapping_mul(ENTRY_LSBS) >> 48) as usize
}

/// The numbers of the slot entries of a word that have a bit set. The first one has the number
/// `first`.
#[inline]
fn numbers(first: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (bits != 0).then(|| first + bits.trailing_zeros() as usize / 16);
        bits &= bits.wrapping_sub(1);
        next
    })
}

impl<'g> HashView<'g> {
    /// Copies the first entry of this leaf that is behind the bound to the empty batch. The result
    /// is validated: it was true at one instant.
    #[inline]
    pub(crate) fn next<R: KeyRule>(
        self,
        bound: LowerBound<'_>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Successor, Torn> {
        // The bound's hash is in the leaf's range, so entries behind the bound have the same home
        // or a later one.
        let shape = self.leaf.shape();
        let HashPlace { home: first, tag } = shape.place(bound.hash);
        let home = self.leaf.home(bound.hash);
        let hit = match bound.key {
            Some(key) => self.find(bound.hash, &home, key, keys.form(key))?,
            None => None,
        };
        // Note whether the bound's own entry is present, and whether it is in its home bucket.
        let is_present = hit.is_some();
        let at_home = hit.is_some_and(|hit| hit.bucket.address() == home.bucket.address());
        // (1) to (3) Search the bound's home.
        let bound = TaggedBound { tag, bound };
        let mut found = self.behind_in_home(&home, first, bound, at_home, keys, batch)?;
        // (4) Search the later homes. Homes are in the order of hashes, so the first one with an
        // entry has the successor.
        let mut at = first + 1;
        while found.is_none() && at < shape.buckets as usize {
            let bucket = self.leaf.bucket(at);
            // Skip buckets without entries and without overflow bits.
            if bucket.word(0) & 0xFFFF != 0 {
                found = self.first_of_home(bucket, at, keys, batch)?;
            }
            at += 1;
        }
        // Validate the version, whether there is an entry or not. `give` does so before it measures
        // the key.
        match found {
            Some(found) => self.give(found, keys, batch)?,
            None => self.confirm()?,
        }
        let found = found.is_some();
        Ok(Successor { is_present, found })
    }

    /// Steps 1 to 3: searches the bound's home, which is bucket `number`. `at_home` says whether
    /// the bound's own entry is in that bucket.
    #[inline]
    fn behind_in_home<R: KeyRule>(
        &self,
        home: &Home<'g>,
        number: usize,
        bound: TaggedBound<'_>,
        at_home: bool,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let (bucket, tag) = (home.bucket, bound.tag);
        // (1) Find the least tag above the bound's.
        let mut best = self.least_of(bucket, number, tag + 1, keys, batch)?;
        // (2) Other entries than the bound's own have the bound's tag. They may lie on either side
        // of the bound. One that is behind it precedes `best`, whose tag is greater.
        if count_with(bucket, tag) > usize::from(at_home) {
            best = self.with_same_tag(bucket, number, bound, best, keys, batch)?;
        }
        // (3) A displaced entry of this home may precede `best`.
        let wanted = SearchFilter {
            from: tag,
            bound: Some(bound.bound),
        };
        self.with_displaced(bucket, number, wanted, best, keys, batch)
    }

    /// Step 4: finds the entry with the least position of a home.
    #[inline]
    fn first_of_home<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        // Every tag is at least 0, so this is the least tag of the bucket.
        let best = self.least_of(bucket, number, 0, keys, batch)?;
        let all = SearchFilter {
            from: 0,
            bound: None,
        };
        self.with_displaced(bucket, number, all, best, keys, batch)
    }

    /// Step 1: finds the least entry at home in a bucket whose tag is not below `low`.
    #[inline(always)]
    fn least_of<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        low: u8,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let Some(HomeEntry { tag, slot }) = least(bucket, low) else {
            return Ok(None);
        };
        let best = Candidate { bucket, slot, tag };
        // If several entries have this tag, their hashes and keys decide. Otherwise no key has to
        // be read.
        if count_with(bucket, tag) > 1 {
            // All entries are behind this bound.
            let bound = LowerBound { hash: 0, key: None };
            let bound = TaggedBound { tag, bound };
            return self.with_same_tag(bucket, number, bound, None, keys, batch);
        }
        Ok(Some(best))
    }

    /// Step 2: the least of `best` and of the entries at home in the bucket that have the bound's
    /// tag and are behind the bound.
    #[cold]
    #[inline(never)]
    fn with_same_tag<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        bound: TaggedBound<'_>,
        best: Option<Candidate<'g>>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let TaggedBound { tag, bound } = bound;
        let mut best = Ok(best);
        // Several entries may have this tag. The hash and the key decide between them.
        each_word(bucket, |first, word, ours| {
            for slot in numbers(first, with_tag(word, ours, tag)) {
                let one = Candidate { bucket, slot, tag };
                best =
                    best.and_then(|best| self.better(one, number, Some(bound), best, keys, batch));
            }
        });
        best
    }

    /// Step 3: the least of `best` and of the home's wanted entries that are displaced.
    #[inline]
    fn with_displaced<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        wanted: SearchFilter<'_>,
        best: Option<Candidate<'g>>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        // Only a displaced entry whose tag is at most that of `best` can precede it. Mostly the
        // overflow bits say that there is none.
        let to = best.map_or(TAGS - 1, |best| best.tag);
        if overflow_bits(bucket.word(0)) & eighths(wanted.from, to) == 0 {
            return Ok(best);
        }
        self.among_displaced(number, wanted, best, keys, batch)
    }

    /// The slow path of step 3: walks the buckets behind the home.
    #[inline(never)]
    fn among_displaced<R: KeyRule>(
        &self,
        home: usize,
        wanted: SearchFilter<'_>,
        best: Option<Candidate<'g>>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let SearchFilter { from, bound } = wanted;
        let shape = self.leaf.shape();
        let mut best = Ok(best);
        // The eighths that have overflowed all buckets from the home up to the one before `at`.
        let mut on_the_way = overflow_bits(self.leaf.bucket(home).word(0));
        let mut at = shape.next(home);
        while at != home {
            let bucket = self.leaf.bucket(at);
            let head = bucket.word(0);
            each_word(bucket, |first, word, ours| {
                let displaced = word & ours & (u64::from(DISPLACED) * ENTRY_LSBS);
                for slot in numbers(first, displaced) {
                    // Skip the entry if its tag can't be the least, or if the overflow bits say
                    // that it didn't pass this home.
                    let tag = ((bucket::slot_entry(bucket, slot) as u16 & TAG) >> 8) as u8;
                    best = best.and_then(|best| {
                        let to = best.map_or(TAGS - 1, |best: Candidate<'_>| best.tag);
                        if !(from..=to).contains(&tag) || eighth(tag) & on_the_way == 0 {
                            return Ok(best);
                        }
                        let one = Candidate { bucket, slot, tag };
                        self.better(one, home, bound, best, keys, batch)
                    });
                }
            });
            // An entry of this home can only lie further on if its eighth has overflowed all
            // buckets on the way. `best` may have a lesser tag by now, which excludes more eighths.
            let to = best?.map_or(TAGS - 1, |best| best.tag);
            on_the_way &= overflow_bits(head) & eighths(from, to);
            if on_the_way == 0 {
                break;
            }
            at = shape.next(at);
        }
        best
    }

    /// Returns `one` if it belongs to the home, is behind the bound, and precedes `best`; otherwise
    /// `best`. The tag of `one` is at most that of `best`.
    fn better<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        home: usize,
        bound: Option<LowerBound<'_>>,
        best: Option<Candidate<'g>>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        // Copy the keys behind the batch's bytes, which serve as a scratch buffer here.
        let from = batch.bytes.len();
        let CopiedPosition { hash, key } = self.position(one, keys, &mut batch.bytes)?;
        let belongs = self.leaf.shape().place(hash).home == home
            && bound.is_none_or(|bound| bound.is_before(hash, &batch.bytes[key.clone()]));
        // If the tags are equal, hashes and keys decide. Otherwise `one` has the lesser tag.
        let less = match best {
            Some(best) if belongs && best.tag == one.tag => {
                let best = self.position(best, keys, &mut batch.bytes)?;
                (hash, &batch.bytes[key]) < (best.hash, &batch.bytes[best.key])
            }
            _ => belongs,
        };
        batch.bytes.truncate(from);
        Ok(if less { Some(one) } else { best })
    }

    /// Appends an entry's body to `out`, or the key of an outside object.
    fn position<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        keys: &KeyProperties<R>,
        out: &mut Vec<u8>,
    ) -> Result<CopiedPosition, Torn> {
        // The version is validated before a handle is followed (in `object`), and before the key of
        // a body is measured.
        let from = out.len();
        let key = match self.copy_body(one, out) {
            Some(handle) => {
                out.extend_from_slice(self.object(handle)?.position());
                from..out.len()
            }
            None => {
                self.confirm()?;
                let key = keys.key_in(&out[from..]);
                from + key.start..from + key.end
            }
        };
        let hash = keys.hash(&out[key.clone()]);
        Ok(CopiedPosition { hash, key })
    }

    /// Copies an entry to the empty batch.
    #[inline]
    fn give<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<(), Torn> {
        // The batch is empty, so the body begins at its front.
        if let Some(handle) = self.copy_body(one, &mut batch.bytes) {
            batch.push_outside(self.object(handle)?);
            return Ok(());
        }
        self.confirm()?;
        let key = keys.key_in(&batch.bytes);
        let entry = BatchEntry::copied(key.start, key.end, batch.bytes.len());
        batch.entries.push(entry);
        Ok(())
    }

    /// Appends the body of an entry to `out`. If its object is outside, appends nothing and returns
    /// the handle.
    #[inline]
    fn copy_body(&self, one: Candidate<'g>, out: &mut Vec<u8>) -> Option<Handle> {
        let Candidate { bucket, slot, .. } = one;
        let unit_shift = unit_shift(self.leaf.class());
        let bits = bucket::slot_entry(bucket, slot);
        let mut from = bucket::place(bits, unit_shift);
        // The handle may be torn. The caller validates before it follows it.
        if bits & usize::from(OUTSIDE) != 0 {
            return Some(Handle::from_bits(bucket.load(from)));
        }
        // The object ends where the one before it begins.
        let mut end = match slot {
            1 => bucket.len(),
            _ => bucket::place(bucket::slot_entry(bucket, slot - 1), unit_shift),
        };
        if unit_shift > 0 {
            end = end.saturating_sub(bucket.load(from) as usize & 0xFF);
            from += 1;
        }
        // If the slot entries are torn, `end` may be less than `from`.
        bucket::copy_out(bucket, from, end.max(from), out);
        None
    }

    /// Validates the version.
    fn confirm(&self) -> Result<(), Torn> {
        if self.is_valid() {
            Ok(())
        } else {
            Err(Torn)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesser_lanes_are_each_less() {
        let values = [0, 1, 2, 0x100, 0x3FFF, 0x4000, 0x7FFE, 0x7FFF];
        for a in values {
            for b in values {
                let (ab, ba) = (a | b << 16 | a << 48, b | a << 16 | b << 32);
                let expect = a.min(b) | a.min(b) << 16;
                assert_eq!(lesser(ab, ba), expect, "{a} {b}");
            }
        }
    }

    #[test]
    fn eighths_have_the_tags_between() {
        for from in 0..TAGS {
            for to in 0..TAGS {
                let all = (from..=to).fold(0, |bits, tag| bits | eighth(tag));
                if from <= to {
                    assert_eq!(eighths(from, to), all, "{from}..={to}");
                }
            }
        }
    }
}
