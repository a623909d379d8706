//! How the entry behind a position is found in the buckets of a leaf, without copying or sorting
//! them.
//!
//! ```text
//!  position   (home bucket, tag, the rest of the hash, key)       homes and tags follow the hash
//! ```
//!
//! 1. In the bound's home bucket: the least tag above the bound's, by one pass over the slot
//!    entries.
//! 2. Entries with the bound's own tag are compared by hash and key.
//! 3. If the bucket passed on entries whose tags may be less, the displaced entries behind it that
//!    belong to it are compared, too.
//! 4. If nothing was found, the same from the next bucket's least tag on.
//!
//! Invariants: the entries of a home have greater positions than those of all homes before it. Of
//! two entries of one home, the one with the lesser tag has the lesser position. A bucket knows of
//! each eighth of the tags whether it passed on an entry with such a tag.
//!
//! Hashes are made anew, from the key, only where tags are equal or an entry is a displaced entry.
//!
//! Reads may be torn. No key is measured or hashed, and nothing is given, before a check.
//!
//! Deviation from a scan (`scan`): nothing is copied but the keys that must be compared, and the
//! entry that is given. Words of slot entries are compared as a whole, four at a time.
//!
//! When not to use it: for more than an entry or two. A scan copies a bucket once for all of its
//! entries.

use crate::hash::bucket::{self, entries, Bucket, Home, EACH, ENTRIES_PER_WORD};
use crate::hash::key_rule::{KeyRule, Keys};
use crate::hash::leaf::HashView;
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::Batch;
use std::ops::Range;

/// The position behind which an entry is looked for.
#[derive(Clone, Copy)]
pub(crate) struct LowerBound<'a> {
    pub(crate) hash: u64,
    /// The key of that position. None: entries with this hash count as behind it.
    pub(crate) key: Option<&'a [u8]>,
}

impl LowerBound<'_> {
    /// Whether an entry with this hash and key is behind it.
    fn is_passed_by(&self, hash: u64, key: &[u8]) -> bool {
        match self.key {
            Some(own) => (hash, key) > (self.hash, own),
            None => hash >= self.hash,
        }
    }
}

/// What [`HashView::next`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Successor {
    /// The bound's own key is there.
    pub(crate) here: bool,
    /// There is an entry behind the bound in this leaf. It is in the batch.
    pub(crate) found: bool,
}

/// An entry that may be the one.
#[derive(Clone, Copy)]
struct Candidate<'g> {
    bucket: Bucket<'g>,
    slot: usize,
    tag: u8,
}

/// One more than the greatest tag.
const TAGS: u8 = 64;

/// Those eighths of the tags that have some of `from..=to`, as the bits of [`eighth`].
fn eighths(from: u8, to: u8) -> u8 {
    // Bits 0 to `eighth`. In sixteen bits, as `2 << 7` has nine.
    let up_to = |eighth: u8| (2u16 << eighth) - 1;
    let below = (1u16 << (from >> 3)) - 1;
    (up_to(to >> 3) & !below) as u8
}

/// The eighths of the tags that a bucket with this first word has passed on.
fn passed(head: u64) -> u8 {
    (head >> 8) as u8
}

/// All bits of a slot entry but the top one.
const BELOW_TOP: u64 = 0x7FFF;

/// Calls `f` with the words of a bucket's slot entries, with the number of the first slot entry of
/// each, and all bits of those of its slot entries that are entries.
#[inline(always)]
fn each_word(bucket: Bucket<'_>, mut f: impl FnMut(usize, u64, u64)) {
    let head = bucket.word(0);
    let n = entries(head);
    // Slot entry 0 is the bucket's head: no entry.
    let (mut first, mut word, mut ours) = (0, head, !0xFFFF);
    // Whole words of slot entries. `n` may be torn, but no read leaves the leaf (see `Bucket`).
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

/// The lesser of each slot entry of two words, whose slot entries have their top bits clear.
#[inline(always)]
fn lesser(a: u64, b: u64) -> u64 {
    const TOPS: u64 = 0x8000 * EACH;
    // With the top bits set in `a` alone, no difference borrows from the next slot entry. They stay
    // set where `a` is not less, and become all bits of such slot entries.
    let not_less = (((a | TOPS) - b) & TOPS) >> 15;
    let not_less = (not_less << 16).wrapping_sub(not_less);
    b & not_less | a & !not_less
}

/// The least tag of the entries at home in a bucket that is not below `low`, with its slot entry.
#[inline(always)]
fn least(bucket: Bucket<'_>, low: u8) -> Option<(u8, usize)> {
    let numbers = 0x0003_0002_0001_0000;
    let mut least = BELOW_TOP * EACH;
    each_word(bucket, |first, word, ours| {
        // How far above `low` its tag is, modulo the tags of entries at home and those of displaced
        // entries behind them: so displaced entries, and what is below, are above all that counts.
        // Then its number.
        let tags = (word >> 8) & (0x7F * EACH);
        let above = ((tags | (0x80 * EACH)) - u64::from(low) * EACH) & (0x7F * EACH);
        let ranked = above << 8 | (numbers + first as u64 * EACH);
        least = lesser(least, (ranked & ours) | (!ours & (BELOW_TOP * EACH)));
    });
    // The least of four slot entries: of the upper two and the lower two, then of those two.
    let two = lesser(least, least >> 32 | BELOW_TOP << 32 | BELOW_TOP << 48);
    let least = (two & BELOW_TOP).min(two >> 16 & BELOW_TOP);
    // Displaced entries and tags below `low` are at `TAGS - low` or above it; so is what is no
    // entry.
    let above = (least >> 8) as u8;
    (above < TAGS - low).then_some((above + low, least as usize & 0xFF))
}

/// The top bits of those slot entries of a word, of which `ours` are entries, that are at home and
/// have this tag.
#[inline(always)]
fn with_tag(word: u64, ours: u64, tag: u8) -> u64 {
    bucket::matches(word, (u64::from(tag) << 8) * EACH) & ours
}

/// How many entries at home in a bucket have this tag.
#[inline(always)]
fn count_with(bucket: Bucket<'_>, tag: u8) -> usize {
    let mut counts = 0;
    each_word(bucket, |_, word, ours| {
        counts += with_tag(word, ours, tag) >> 15;
    });
    // A slot entry's count can't pass 64, a quarter of a bucket's entries. The product has the sum
    // of all four in its top slot entry.
    (counts.wrapping_mul(EACH) >> 48) as usize
}

/// The numbers of the slot entries of a word, the first of which is `first`, that have one bit set.
#[inline(always)]
fn numbers(first: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (bits != 0).then(|| first + bits.trailing_zeros() as usize / 16);
        bits &= bits.wrapping_sub(1);
        next
    })
}

impl<'g> HashView<'g> {
    /// Copies the first entry of this leaf behind the bound to the batch, which is empty. What it
    /// says was true at one instant.
    #[inline]
    pub(crate) fn next<R: KeyRule>(
        self,
        bound: LowerBound<'_>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Successor, Torn> {
        // The bound's hash is in the leaf's range: what is behind it in this leaf has the same home
        // or a later one.
        let shape = self.leaf.shape();
        let (first, tag) = shape.place(bound.hash);
        let home = self.leaf.home(bound.hash);
        let hit = match bound.key {
            Some(key) => self.find((bound.hash, &home), key, keys.form(key))?,
            None => None,
        };
        // Whether the bound's own entry is there is known now, and whether in its home bucket.
        let here = hit.is_some();
        let at_home = hit.is_some_and(|hit| hit.bucket.address() == home.bucket.address());
        // (1) to (3)
        let mut found = self.behind_in_home(&home, first, (tag, bound, at_home), keys, batch)?;
        // (4) Homes lie in the order of hashes: the first later one with an entry has the next.
        let mut at = first + 1;
        while found.is_none() && at < shape.buckets as usize {
            let bucket = self.leaf.bucket(at);
            // Nothing is in an empty one, nor was anything passed on from it.
            if bucket.word(0) & 0xFFFF != 0 {
                found = self.first_of_home(bucket, at, keys, batch)?;
            }
            at += 1;
        }
        // What is given, or that there is nothing, is true only if the version holds. `give` checks
        // before it measures a key.
        match found {
            Some(found) => self.give(found, keys, batch)?,
            None => self.confirm()?,
        }
        let found = found.is_some();
        Ok(Successor { here, found })
    }

    /// Steps 1 to 3, in the bound's home. `at_home`: the bound's own entry is in that bucket.
    #[inline(always)]
    fn behind_in_home<R: KeyRule>(
        &self,
        home: &Home<'g>,
        number: usize,
        (tag, bound, at_home): (u8, LowerBound<'_>, bool),
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let bucket = home.bucket;
        // (1)
        let mut best = self.least_of(bucket, number, tag + 1, keys, batch)?;
        // (2) More entries with the bound's tag than its own: any of them has a lesser tag than
        // `best`, and may lie on either side of the bound.
        if count_with(bucket, tag) > usize::from(at_home) {
            best = self.with_same_tag(bucket, number, (tag, bound), best, keys, batch)?;
        }
        // (3)
        self.with_displaced(bucket, number, (tag, Some(bound)), best, keys, batch)
    }

    /// Step 4: the entry with the least position of a home.
    #[inline]
    fn first_of_home<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let best = self.least_of(bucket, number, 0, keys, batch)?;
        self.with_displaced(bucket, number, (0, None), best, keys, batch)
    }

    /// Step 1.
    #[inline(always)]
    fn least_of<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        low: u8,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let Some((tag, slot)) = least(bucket, low) else {
            return Ok(None);
        };
        let best = Candidate { bucket, slot, tag };
        // A tag that is there once needs no key: its entry has the least position.
        if count_with(bucket, tag) > 1 {
            // All of them lie behind such a bound.
            let none = (tag, LowerBound { hash: 0, key: None });
            return self.with_same_tag(bucket, number, none, None, keys, batch);
        }
        Ok(Some(best))
    }

    /// Step 2: the least of `best` and of the entries at home in the bucket with this tag that are
    /// behind the bound.
    #[cold]
    #[inline(never)]
    fn with_same_tag<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        (tag, bound): (u8, LowerBound<'_>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let mut best = Ok(best);
        each_word(bucket, |first, word, ours| {
            for slot in numbers(first, with_tag(word, ours, tag)) {
                let one = Candidate { bucket, slot, tag };
                best =
                    best.and_then(|best| self.better(one, number, Some(bound), best, keys, batch));
            }
        });
        best
    }

    /// Step 3: the least of `best` and of the home's entries in other buckets. `from` is the least
    /// tag that counts.
    #[inline(always)]
    fn with_displaced<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        (from, bound): (u8, Option<LowerBound<'_>>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let to = best.map_or(TAGS - 1, |best| best.tag);
        // Nothing with a tag that could be less was passed on, by the invariant on eighths: nearly
        // always so.
        if passed(bucket.word(0)) & eighths(from, to) == 0 {
            return Ok(best);
        }
        self.among_displaced(number, (from, bound), best, keys, batch)
    }

    #[inline(never)]
    fn among_displaced<R: KeyRule>(
        &self,
        home: usize,
        (from, bound): (u8, Option<LowerBound<'_>>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let shape = self.leaf.shape();
        let mut best = Ok(best);
        // The eighths of the tags that each bucket up to the one before `at` has passed on.
        let mut on_the_way = passed(self.leaf.bucket(home).word(0));
        let mut at = shape.next(home);
        while at != home {
            let bucket = self.leaf.bucket(at);
            let head = bucket.word(0);
            each_word(bucket, |first, word, ours| {
                let displaced = word & ours & (u64::from(DISPLACED) * EACH);
                // Of each: whether its tag can be the least, and whether it came by way of this
                // home.
                for slot in numbers(first, displaced) {
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
            // Only eighths that all buckets on the way have passed on can lie further on.
            let to = best?.map_or(TAGS - 1, |best| best.tag);
            on_the_way &= passed(head) & eighths(from, to);
            if on_the_way == 0 {
                break;
            }
            at = shape.next(at);
        }
        best
    }

    /// The lesser of an entry and of `best`, whose tag is not less, if the entry is behind the
    /// bound and belongs to that home.
    fn better<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        home: usize,
        bound: Option<LowerBound<'_>>,
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        // The batch's bytes are scratch here: what is appended goes again below.
        let from = batch.bytes.len();
        let (hash, key) = self.position(one, keys, &mut batch.bytes)?;
        let belongs = self.leaf.shape().place(hash).0 == home
            && bound.is_none_or(|bound| bound.is_passed_by(hash, &batch.bytes[key.clone()]));
        // Tags decide but where they are equal, and the caller never offers a greater one.
        let less = match best {
            Some(best) if belongs && best.tag == one.tag => {
                let (other, at) = self.position(best, keys, &mut batch.bytes)?;
                (hash, &batch.bytes[key]) < (other, &batch.bytes[at])
            }
            _ => belongs,
        };
        batch.bytes.truncate(from);
        Ok(if less { Some(one) } else { best })
    }

    /// Appends an entry's body, or an outside entry's key, to `out`; its hash, and where its key
    /// is.
    fn position<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        keys: &Keys<R>,
        out: &mut Vec<u8>,
    ) -> Result<(u64, Range<usize>), Torn> {
        // A handle is checked when it is followed, a body before its key is measured.
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
        Ok((keys.hash(&out[key.clone()]), key))
    }

    /// Makes an entry the only one of the batch.
    #[inline(always)]
    fn give<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<(), Torn> {
        if let Some(handle) = self.copy_body(one, &mut batch.bytes) {
            let object = self.object(handle)?;
            batch.push(object.position(), object.value());
            return Ok(());
        }
        self.confirm()?;
        let key = keys.key_in(&batch.bytes);
        batch.entries.push((key.start, key.end, batch.bytes.len()));
        Ok(())
    }

    /// Appends the body of an entry to `out`; of one that is outside nothing, and gives the handle.
    #[inline(always)]
    fn copy_body(&self, one: Candidate<'g>, out: &mut Vec<u8>) -> Option<Handle> {
        let Candidate { bucket, slot, .. } = one;
        let unit = unit(self.leaf.class());
        let bits = bucket::slot_entry(bucket, slot);
        let mut from = bucket::place(bits, unit);
        // Not followed here: the caller checks first.
        if bits & usize::from(OUTSIDE) != 0 {
            return Some(Handle::from_bits(bucket.load(from)));
        }
        // The object ends where the one before it begins.
        let mut end = match slot {
            1 => bucket.len(),
            _ => bucket::place(bucket::slot_entry(bucket, slot - 1), unit),
        };
        if unit > 0 {
            end = end.saturating_sub(bucket.load(from) as usize & 0xFF);
            from += 1;
        }
        // What is torn may end before it begins.
        bucket::copy_out(bucket, from, end.max(from), out);
        None
    }

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
