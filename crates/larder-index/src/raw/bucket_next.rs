//! How the entry behind a position is found in the buckets of a leaf, without copying or sorting
//! them.
//!
//! ```text
//!  position   (home bucket, tag, the rest of the hash, key)       homes and tags follow the hash
//!
//!  1. In the bound's home bucket: the least tag above the bound's, by one pass over the lanes.
//!  2. Entries with the bound's own tag are compared by hash and key.
//!  3. If the bucket passed entries on whose tags may be less, the guests behind it that belong to
//!     it are compared, too.
//!  4. If nothing was found, the same from the next bucket's least tag on.
//! ```
//!
//! Invariants: the entries of a home have greater positions than those of all homes before it. Of
//! two entries of one home, the one with the lesser tag has the lesser position. A bucket knows of
//! each eighth of the tags whether it passed on an entry with such a tag.
//!
//! Hashes are made anew, from the key, only where tags are equal or an entry is a guest.
//!
//! Reads may be torn. No key is measured or hashed, and nothing is given, before a check.

use super::bucket::{self, entries, Home, LANES};
use super::bucket_leaf::Look;
use super::bucket_words::Bucket;
use super::outside::Handle;
use super::words::Torn;
use crate::hash::gather::{KeyRule, Keys};
use crate::hash::shape::*;
use crate::Batch;
use std::ops::Range;

/// The position behind which an entry is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Behind<'a> {
    pub(crate) hash: u64,
    /// The key of that position. None: entries with this hash count as behind it.
    pub(crate) key: Option<&'a [u8]>,
}

impl Behind<'_> {
    /// Whether an entry with this hash and key is behind it.
    fn is_passed_by(&self, hash: u64, key: &[u8]) -> bool {
        match self.key {
            Some(own) => (hash, key) > (self.hash, own),
            None => hash >= self.hash,
        }
    }
}

/// What [`Look::next`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Next {
    /// The bound's own key is there.
    pub(crate) here: bool,
    /// There is an entry behind the bound in this leaf. It is in the batch.
    pub(crate) found: bool,
}

/// An entry that may be the one.
#[derive(Clone, Copy)]
struct Candidate<'g> {
    bucket: Bucket<'g>,
    lane: usize,
    tag: u8,
}

/// One more than the greatest tag.
const TAGS: u8 = 64;

/// Those eighths of the tags that have some of `from..=to`, as the bits of [`eighth`].
fn eighths(from: u8, to: u8) -> u8 {
    let up_to = |eighth: u8| (2u16 << eighth) - 1;
    let below = (1u16 << (from >> 3)) - 1;
    (up_to(to >> 3) & !below) as u8
}

/// The eighths of the tags that a bucket with this first word has passed on.
fn passed(head: u64) -> u8 {
    (head >> 8) as u8
}

/// The least tag of the entries at home in a bucket that is not below `low`, with its lane, and
/// whether another has the same.
#[inline(always)]
fn least(bucket: Bucket<'_>, low: u8) -> Option<(u8, usize, bool)> {
    let head = bucket.word(0);
    let n = entries(head);
    let (mut least, mut second) = (u32::MAX, u32::MAX);
    let (mut first, mut word) = (0, head);
    loop {
        for k in 0..LANES {
            let i = first + k;
            // How far above `low`, modulo the tags of entries at home and those of guests behind
            // them: so guests, and what is below, are above all that count.
            let above = ((word >> (16 * k + 8)) as u8).wrapping_sub(low) & (2 * TAGS - 1);
            let ranked = u32::from(above) << 16 | i as u32;
            // Lane 0 is no entry.
            let ranked = if i.wrapping_sub(1) < n {
                ranked
            } else {
                u32::MAX
            };
            second = second.min(least.max(ranked));
            least = least.min(ranked);
        }
        first += LANES;
        if first > n {
            break;
        }
        word = bucket.word(first / LANES);
    }
    let above = least >> 16;
    let tie = second >> 16 == above;
    let counts = above < u32::from(TAGS - low);
    counts.then(|| (above as u8 + low, least as usize & 0xFFFF, tie))
}

/// The lanes of a bucket with this tag whose entries are at home.
fn lanes_with(bucket: Bucket<'_>, tag: u8) -> impl Iterator<Item = usize> + '_ {
    let wanted = usize::from(tag) << 8;
    let marks = usize::from(TAG | GUEST);
    (1..=entries(bucket.word(0))).filter(move |&i| bucket::lane(bucket, i) & marks == wanted)
}

impl<'g> Look<'g> {
    /// Copies the first entry of this leaf behind the bound to the batch, which is empty. What it
    /// says was true at one instant. `how` is that of [`Look::find`].
    #[inline]
    pub(crate) fn next<R: KeyRule>(
        self,
        bound: Behind<'_>,
        keys: &Keys<R>,
        how: (bool, bool),
        batch: &mut Batch,
    ) -> Result<Next, Torn> {
        let shape = self.leaf.shape();
        let (first, tag) = shape.place(bound.hash);
        let home = self.leaf.home(bound.hash);
        let hit = match bound.key {
            Some(key) => self.find((bound.hash, &home), key, how)?,
            None => None,
        };
        let here = hit.is_some();
        let at_home = hit.is_some_and(|hit| hit.bucket.address() == home.bucket.address());
        let mut found = self.behind_in_home(&home, first, (tag, bound, at_home), keys, batch)?;
        let mut at = first + 1;
        while found.is_none() && at < shape.buckets as usize {
            found = self.first_of_home(at, keys, batch)?;
            at += 1;
        }
        match found {
            Some(found) => self.give(found, keys, batch)?,
            None => self.confirm()?,
        }
        let found = found.is_some();
        Ok(Next { here, found })
    }

    /// Steps 1 to 3, in the bound's home. `at_home`: the bound's own entry is in that bucket.
    #[inline(always)]
    fn behind_in_home<R: KeyRule>(
        &self,
        home: &Home<'g>,
        number: usize,
        (tag, bound, at_home): (u8, Behind<'_>, bool),
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let bucket = home.bucket;
        let mut best = self.least_of(bucket, number, tag + 1, keys, batch)?;
        if lanes_with(bucket, tag).count() > usize::from(at_home) {
            best = self.with_same_tag(bucket, number, (tag, bound), best, keys, batch)?;
        }
        self.with_guests(bucket, number, (tag, Some(bound)), best, keys, batch)
    }

    /// Step 4: the entry with the least position of a home.
    #[inline]
    fn first_of_home<R: KeyRule>(
        &self,
        number: usize,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let bucket = self.leaf.bucket(number);
        let best = self.least_of(bucket, number, 0, keys, batch)?;
        self.with_guests(bucket, number, (0, None), best, keys, batch)
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
        let Some((tag, lane, tie)) = least(bucket, low) else {
            return Ok(None);
        };
        let best = Candidate { bucket, lane, tag };
        if tie {
            let none = (tag, Behind { hash: 0, key: None });
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
        (tag, bound): (u8, Behind<'_>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let mut best = best;
        for lane in lanes_with(bucket, tag) {
            let one = Candidate { bucket, lane, tag };
            best = self.better(one, number, Some(bound), best, keys, batch)?;
        }
        Ok(best)
    }

    /// Step 3: the least of `best` and of the home's entries in other buckets. `from` is the least
    /// tag that counts.
    #[inline(always)]
    fn with_guests<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        number: usize,
        (from, bound): (u8, Option<Behind<'_>>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let to = best.map_or(TAGS - 1, |best| best.tag);
        if passed(bucket.word(0)) & eighths(from, to) == 0 {
            return Ok(best);
        }
        self.among_guests(number, (from, bound), best, keys, batch)
    }

    #[inline(never)]
    fn among_guests<R: KeyRule>(
        &self,
        home: usize,
        (from, bound): (u8, Option<Behind<'_>>),
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let shape = self.leaf.shape();
        let mut best = best;
        // The eighths of the tags that each bucket up to the one before `at` has passed on.
        let mut on_the_way = passed(self.leaf.bucket(home).word(0));
        let mut at = shape.next(home);
        while at != home {
            let bucket = self.leaf.bucket(at);
            let head = bucket.word(0);
            for lane in 1..=entries(head) {
                let bits = bucket::lane(bucket, lane) as u16;
                let tag = ((bits & TAG) >> 8) as u8;
                let to = best.map_or(TAGS - 1, |best| best.tag);
                let may_be = bits & GUEST != 0 && (from..=to).contains(&tag);
                if may_be && eighth(tag) & on_the_way != 0 {
                    let one = Candidate { bucket, lane, tag };
                    best = self.better(one, home, bound, best, keys, batch)?;
                }
            }
            let to = best.map_or(TAGS - 1, |best| best.tag);
            on_the_way &= passed(head) & eighths(from, to);
            if on_the_way == 0 {
                break;
            }
            at = shape.next(at);
        }
        Ok(best)
    }

    /// The lesser of an entry and of `best`, whose tag is not less, if the entry is behind the
    /// bound and belongs to that home.
    fn better<R: KeyRule>(
        &self,
        one: Candidate<'g>,
        home: usize,
        bound: Option<Behind<'_>>,
        best: Option<Candidate<'g>>,
        keys: &Keys<R>,
        batch: &mut Batch,
    ) -> Result<Option<Candidate<'g>>, Torn> {
        let from = batch.bytes.len();
        let (hash, key) = self.position(one, keys, &mut batch.bytes)?;
        let belongs = self.leaf.shape().place(hash).0 == home
            && bound.is_none_or(|bound| bound.is_passed_by(hash, &batch.bytes[key.clone()]));
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
        let Candidate { bucket, lane, .. } = one;
        let unit = unit(self.leaf.class());
        let bits = bucket::lane(bucket, lane);
        let mut from = bucket::place(bits, unit);
        if bits & usize::from(OUTSIDE) != 0 {
            return Some(Handle::from_bits(bucket.load(from)));
        }
        let mut end = match lane {
            1 => bucket.len(),
            _ => bucket::place(bucket::lane(bucket, lane - 1), unit),
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
        if self.holds() {
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
