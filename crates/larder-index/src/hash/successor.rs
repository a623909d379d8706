//! Finding the entry after a position in a leaf, without copying or sorting its buckets.
//!
//! ```text
//!  position   (home bucket, tag, the rest of the hash, key)       homes and tags follow the hash
//! ```
//!
//! 1. In the bound's home bucket, find the least tag that is not below the bound's, except that of
//!    the bound's own entry, by one pass over the slot entries (`tags`).
//! 2. If several entries have this tag, or it is the bound's, compare these by hash and key.
//! 3. If the bucket has overflowed with entries whose tags may be less, compare the displaced
//!    entries of this home, too.
//! 4. If nothing was found, continue with the least tag of the next bucket.
//!
//! Invariants (H1, H2): the entries of a home have greater positions than those of all homes before
//! it. Of two entries of one home, the one with the lesser tag has the lesser position. For each
//! eighth of the tags, a bucket records whether an entry with such a tag has overflowed.
//!
//! The hash of a key is computed again only if tags are equal, or if the home of a displaced entry
//! doesn't follow from the overflow bits.
//!
//! Reads may be torn. The version is validated before a key is measured or hashed, and before
//! anything is returned.
//!
//! Differences from a scan (`scan`): only the keys that must be compared and the resulting entry
//! are copied. Slot entries are compared eight at a time.
//!
//! When not to use it: for more than one or two entries. A scan copies a bucket once for all of its
//! entries.

use crate::hash::bucket::{self, Bucket, Home};
use crate::hash::key_rule::{KeyProperties, KeyRule};
use crate::hash::leaf::HashView;
use crate::hash::search::begins_with;
use crate::hash::shape::*;
use crate::hash::tags::{least_tag, only_tag, with_tags, LeastTag, OnlyTag, TagRange, TAGS};
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::traits::BatchEntry;
use crate::{Batch, Key, StepEntry, Stepped};
use std::num::NonZeroU64;
use std::ops::Range;

/// A position. The search is for the first entry after it.
#[derive(Clone, Copy)]
pub(crate) struct LowerBound<'a> {
    pub(crate) hash: u64,
    /// The key of the position. `None`: all entries with this hash are after the bound.
    pub(crate) key: Option<&'a [u8]>,
    /// Whether the entry at the position itself counts as after the bound.
    pub(crate) inclusive: bool,
}

impl LowerBound<'_> {
    /// All entries with this hash and with greater ones are after it.
    pub(crate) fn all_from(hash: u64) -> Self {
        LowerBound {
            hash,
            key: None,
            inclusive: true,
        }
    }

    /// The bound of a step from a key, or from the edge.
    #[inline]
    pub(crate) fn of_step<'a>(key: Option<Key<'a>>) -> LowerBound<'a> {
        match key {
            Some(key) => LowerBound {
                hash: truncated(key.hash),
                key: Some(key.bytes),
                inclusive: false,
            },
            None => LowerBound::all_from(0),
        }
    }

    /// Whether an entry with this hash and key is after the bound.
    fn is_before(&self, hash: u64, key: &[u8]) -> bool {
        match self.key {
            Some(bound_key) if self.inclusive => (hash, key) >= (self.hash, bound_key),
            Some(bound_key) => (hash, key) > (self.hash, bound_key),
            None => hash >= self.hash,
        }
    }
}

/// What was found of the bound's own entry.
struct OwnEntry {
    is_present: bool,
    /// Its slot entry, if it is in its home bucket; otherwise 0.
    slot: usize,
}

/// The search for the least position of a home.
#[derive(Clone, Copy)]
struct HomeSearch<'a> {
    /// The number of the home bucket.
    home: usize,
    /// The least tag.
    from: u8,
    /// Only entries after this bound, whose tag is `from`; `None`: all entries.
    bound: Option<LowerBound<'a>>,
    /// The slot entry of the bound's own entry in the home bucket; 0 if it isn't there.
    own: usize,
}

impl HomeSearch<'_> {
    /// The search for the least position of all in a home.
    fn all(home: usize) -> Self {
        HomeSearch {
            home,
            from: 0,
            bound: None,
            own: 0,
        }
    }

    /// Whether an entry with this tag may be on either side of the bound.
    fn is_bound_tag(&self, tag: u8) -> bool {
        self.bound.is_some() && tag == self.from
    }
}

/// An entry that may be the successor, in one word, so that it is passed in a register.
///
/// ```text
///  bit 0: 1   bits 1..8: its tag   bits 8..16: the number of its slot entry   the rest: its bucket
/// ```
#[derive(Clone, Copy)]
struct Candidate(NonZeroU64);

impl Candidate {
    #[inline]
    fn new(bucket: usize, slot: usize, tag: u8) -> Self {
        let fields = bucket << 16 | slot << 8 | usize::from(tag) << 1;
        Candidate(NonZeroU64::MIN | fields as u64)
    }

    #[inline]
    fn tag(self) -> u8 {
        (self.0.get() >> 1) as u8 & (TAGS - 1)
    }

    #[inline]
    fn slot(self) -> usize {
        self.0.get() as usize >> 8 & 0xFF
    }

    #[inline]
    fn bucket(self) -> usize {
        (self.0.get() >> 16) as usize
    }
}

/// The greatest tag that can precede a candidate, or be equal to it.
#[inline]
fn last_tag(best: Option<Candidate>) -> u8 {
    best.map_or(TAGS - 1, Candidate::tag)
}

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

/// The position of an entry, in a buffer that its key has been copied to.
struct CopiedPosition {
    hash: u64,
    /// Where its key is in the buffer.
    key: Range<usize>,
}

impl CopiedPosition {
    /// The hash and the key, given the buffer.
    fn parts<'b>(&self, bytes: &'b [u8]) -> (u64, &'b [u8]) {
        (self.hash, &bytes[self.key.clone()])
    }
}

impl<'g> HashView<'g> {
    /// Copies the first entry of this leaf that is after the bound to the empty batch. The result
    /// is validated: it was true at one instant. The key of the bound, if it has one, is a whole
    /// one, whose own entry isn't after the bound.
    #[inline]
    pub(crate) fn next<R: KeyRule>(
        self,
        bound: LowerBound<'_>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<Stepped, Torn> {
        let OwnEntry { is_present, slot } =
            self.find_own_entry(bound, &self.leaf.home(bound.hash), keys)?;
        let found = self.next_but(slot, bound, keys, batch)?;
        Ok(Stepped { is_present, found })
    }

    /// Like `next`, with a copy of a single entry. `home` is that of the bound.
    #[inline(always)]
    pub(crate) fn next_copied<R: KeyRule>(
        self,
        bound: LowerBound<'_>,
        home: &Home<'g>,
        keys: &KeyProperties<R>,
        entry: &mut StepEntry,
    ) -> Result<Stepped, Torn> {
        entry.bytes.clear();
        let scratch = &mut entry.bytes;
        let (is_present, found) = match self.only_entry(bound.key, home, keys) {
            // One pass over the tags has found both the bound's own entry and the next one.
            Some(OnlyTag { slot, next }) => {
                let search = self.search_after(bound, slot);
                (
                    true,
                    self.finish_home(home.bucket, search, next, keys, scratch)?,
                )
            }
            None => {
                let OwnEntry { is_present, slot } = self.find_own_entry(bound, home, keys)?;
                let search = self.search_after(bound, slot);
                let found = self.least_of_home(home.bucket, search, keys, scratch)?;
                (is_present, found)
            }
        };
        // (4) The home has no entry after the bound.
        let found = match found {
            None => self.least_after(self.leaf.number(home.bucket), keys, scratch)?,
            found => found,
        };
        // Copy the entry. It is validated, and so is the fact that there is none.
        match found {
            Some(one) => self.copy_to_entry(one, keys, entry)?,
            None => self.confirm()?,
        }
        let found = found.is_some();
        Ok(Stepped { is_present, found })
    }

    /// The entry of a key that the fast search handles, if it is the only one at home with its tag.
    #[inline(always)]
    fn only_entry<R: KeyRule>(
        &self,
        key: Option<&[u8]>,
        home: &Home<'g>,
        keys: &KeyProperties<R>,
    ) -> Option<OnlyTag> {
        let key = key.filter(|key| keys.is_short(key) && self.leaf.class() <= UNIT_CLASS)?;
        // If no other entry at home has the tag, hashes needn't be compared. The entry is the key's
        // if its object begins with the key.
        let only = only_tag(home.bucket, home.tag)?;
        let bits = bucket::slot_entry(home.bucket, only.slot);
        let is_inside = bits & usize::from(OUTSIDE) == 0;
        let at = bucket::object_offset(bits, 0);
        (is_inside && begins_with(home.bucket, at, key)).then_some(only)
    }

    /// The search for the first entry after a bound, in its home. `own` is that of `next_but`.
    #[inline]
    fn search_after<'b>(&self, bound: LowerBound<'b>, own: usize) -> HomeSearch<'b> {
        let Probe { home, tag } = self.leaf.shape().probe(bound.hash);
        HomeSearch {
            home,
            from: tag,
            bound: Some(bound),
            own,
        }
    }

    /// Searches for the bound's own entry.
    #[inline(always)]
    fn find_own_entry<R: KeyRule>(
        self,
        bound: LowerBound<'_>,
        home: &Home<'g>,
        keys: &KeyProperties<R>,
    ) -> Result<OwnEntry, Torn> {
        let hit = match bound.key {
            Some(key) => self.find(bound.hash, home, key, keys.form(key))?,
            // A bound without a key has no entry.
            None => None,
        };
        // Its slot entry is left out of the search by tags, which only looks at the home bucket. A
        // displaced entry is left out by a comparison with the bound.
        let at_home = hit.filter(|hit| hit.bucket.address() == home.bucket.address());
        Ok(OwnEntry {
            is_present: hit.is_some(),
            slot: at_home.map_or(0, |hit| hit.slot),
        })
    }

    /// Like `next`, for any position. `own` is the slot entry of the position's own entry, if that
    /// is known and is to be left out; otherwise 0. Returns whether there is an entry.
    #[inline(always)]
    pub(crate) fn next_but<R: KeyRule>(
        self,
        own: usize,
        bound: LowerBound<'_>,
        keys: &KeyProperties<R>,
        batch: &mut Batch<'g>,
    ) -> Result<bool, Torn> {
        let found = self.successor(own, bound, keys, &mut batch.bytes)?;
        // Validate the version, whether there is an entry or not. `copy_to_batch` does so before it
        // measures the key.
        match found {
            Some(found) => self.copy_to_batch(found, keys, batch)?,
            None => self.confirm()?,
        }
        Ok(found.is_some())
    }

    /// The first entry of this leaf that is after the bound. It isn't validated. `own` is that of
    /// `next_but`. Keys are copied after the bytes of `scratch`, where they must be compared.
    #[inline]
    fn successor<R: KeyRule>(
        &self,
        own: usize,
        bound: LowerBound<'_>,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        // The bound's hash is in the leaf's range, so entries after the bound have the same home
        // or a later one.
        let search = self.search_after(bound, own);
        let bucket = self.leaf.bucket(search.home);
        match self.least_of_home(bucket, search, keys, scratch)? {
            None => self.least_after(search.home, keys, scratch),
            found => Ok(found),
        }
    }

    /// Step 4: the first entry of the homes after this one.
    #[inline(never)]
    fn least_after<R: KeyRule>(
        &self,
        home: usize,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        // Homes are in the order of hashes, so the first one with an entry has the successor.
        for home in home + 1..self.leaf.shape().buckets as usize {
            let bucket = self.leaf.bucket(home);
            let found = self.least_of_home(bucket, HomeSearch::all(home), keys, scratch)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Steps 1 to 3: the wanted entry with the least position of a home, which is this bucket.
    #[inline(never)]
    fn least_of_home<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        search: HomeSearch<'_>,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        // Skip a home without entries and without overflow bits.
        if bucket.word(0) & 0xFFFF == 0 {
            return Ok(None);
        }
        // (1) Find the least tag.
        let least = least_tag(bucket, search.from, search.own);
        self.finish_home(bucket, search, least, keys, scratch)
    }

    /// Steps 2 and 3: the wanted entry with the least position of a home, given the least tag.
    #[inline]
    fn finish_home<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        search: HomeSearch<'_>,
        least: Option<LeastTag>,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        let best = match least {
            // (2) Hashes and keys decide.
            Some(least) if least.is_shared || search.is_bound_tag(least.tag) => {
                self.with_equal_tags(bucket, search, least.tag, keys, scratch)?
            }
            // Mostly no key has to be read.
            least => least.map(|least| Candidate::new(search.home, least.slot, least.tag)),
        };
        // (3) Only a displaced entry whose tag is at most that of `best` can precede it. Mostly the
        // overflow bits say that there is none.
        if overflow_bits(bucket.word(0)) & eighths(search.from, last_tag(best)) == 0 {
            return Ok(best);
        }
        self.among_displaced(search, best, keys, scratch)
    }

    /// The slow path of step 2: the least position at home in a bucket, given the least tag, which
    /// several entries have, or the bound.
    #[cold]
    #[inline(never)]
    fn with_equal_tags<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        search: HomeSearch<'_>,
        mut tag: u8,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        loop {
            // Compare the entries with this tag by hash and key.
            if let Some(slot) = self.least_with_tag(bucket, search, tag, keys, scratch)? {
                return Ok(Some(Candidate::new(search.home, slot, tag)));
            }
            // None is wanted: the tag is the bound's, and all entries with it are before the bound.
            // Entries with greater tags are after it.
            match least_tag(bucket, tag + 1, 0) {
                Some(least) if least.is_shared => tag = least.tag,
                least => {
                    let one = least.map(|one| Candidate::new(search.home, one.slot, one.tag));
                    return Ok(one);
                }
            }
        }
    }

    /// Step 2: the slot entry of the least position that has this tag, among the wanted ones at
    /// home in a bucket.
    fn least_with_tag<R: KeyRule>(
        &self,
        bucket: Bucket<'g>,
        search: HomeSearch<'_>,
        tag: u8,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<usize>, Torn> {
        // Copy the keys after the bytes of `scratch`.
        let from = scratch.len();
        let mut best: Option<(CopiedPosition, usize)> = None;
        let tags = TagRange {
            from: tag,
            to: tag,
            displaced: false,
        };
        // The bound's own entry isn't wanted.
        for slot in with_tags(bucket, tags).filter(|&slot| slot != search.own) {
            // Copy the key, and compute its hash: slot entries only have the tag.
            let one = self.position(Candidate::new(search.home, slot, tag), keys, scratch)?;
            let bytes = &*scratch;
            let is_less = |best: &CopiedPosition| one.parts(bytes) < best.parts(bytes);
            let (hash, key) = one.parts(bytes);
            // Keep it if it is after the bound, and before the best one so far.
            if search.bound.is_none_or(|bound| bound.is_before(hash, key))
                && best.as_ref().is_none_or(|(best, _)| is_less(best))
            {
                best = Some((one, slot));
            }
        }
        scratch.truncate(from);
        Ok(best.map(|(_, slot)| slot))
    }

    /// The slow path of step 3: the least of `best` and of the home's wanted entries that are
    /// displaced. Walks the buckets after the home.
    #[inline(never)]
    fn among_displaced<R: KeyRule>(
        &self,
        search: HomeSearch<'_>,
        mut best: Option<Candidate>,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        let (shape, home) = (self.leaf.shape(), search.home);
        let overflow = |bucket| overflow_bits(self.leaf.bucket(bucket).word(0));
        // The eighths that have overflowed the bucket before the home. And those that have
        // overflowed all buckets from the home up to the one before `at`.
        let (before, mut on_the_way) = (overflow(shape.before(home)), overflow(home));
        let mut at = shape.next(home);
        let mut is_next = true;
        while at != home {
            let bucket = self.leaf.bucket(at);
            let tags = TagRange {
                from: search.from,
                to: last_tag(best),
                displaced: true,
            };
            for slot in with_tags(bucket, tags) {
                // Skip the entry if its tag isn't the least any more, or if the overflow bits say
                // that it didn't pass this home. The slot entry is read again, and may be torn.
                let tag = ((bucket::slot_entry(bucket, slot) as u16 & TAG) >> 8) as u8;
                let passed = |bits: u8| eighth(tag) & bits != 0;
                if !(search.from..=last_tag(best)).contains(&tag) || !passed(on_the_way) {
                    continue;
                }
                let one = Candidate::new(at, slot, tag);
                // If an entry in the next bucket hasn't passed the one before the home, this is its
                // home (H1). If its tag is less, no key has to be read.
                let belongs = is_next && !passed(before);
                let is_less = best.is_none_or(|best| tag < best.tag());
                best = match belongs && is_less && !search.is_bound_tag(tag) {
                    true => Some(one),
                    false => self.better(one, search, best, keys, scratch)?,
                };
            }
            // An entry of this home can only lie further on if its eighth has overflowed all
            // buckets on the way. `best` may have a lesser tag by now, which excludes more eighths.
            let to = last_tag(best);
            on_the_way &= overflow_bits(bucket.word(0)) & eighths(search.from, to);
            if on_the_way == 0 {
                break;
            }
            (at, is_next) = (shape.next(at), false);
        }
        Ok(best)
    }

    /// Returns `one` if it belongs to the home, is after the bound, and precedes `best`; otherwise
    /// `best`. The tag of `one` is at most that of `best`.
    fn better<R: KeyRule>(
        &self,
        one: Candidate,
        search: HomeSearch<'_>,
        best: Option<Candidate>,
        keys: &KeyProperties<R>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Candidate>, Torn> {
        // Copy the keys after the bytes of `scratch`.
        let from = scratch.len();
        let position = self.position(one, keys, scratch)?;
        let (hash, key) = position.parts(scratch);
        let belongs = self.leaf.shape().probe(hash).home == search.home
            && search.bound.is_none_or(|bound| bound.is_before(hash, key));
        // If the tags are equal, hashes and keys decide. Otherwise `one` has the lesser tag.
        let less = match best {
            Some(best) if belongs && best.tag() == one.tag() => {
                let best = self.position(best, keys, scratch)?;
                position.parts(scratch) < best.parts(scratch)
            }
            _ => belongs,
        };
        scratch.truncate(from);
        Ok(if less { Some(one) } else { best })
    }

    /// Appends an entry's body to `out`, or the key of an outside object.
    fn position<R: KeyRule>(
        &self,
        one: Candidate,
        keys: &KeyProperties<R>,
        out: &mut Vec<u8>,
    ) -> Result<CopiedPosition, Torn> {
        // The version is validated before a handle is followed (in `object`), and before the key of
        // a body is measured: the length of a torn key could be any.
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
    #[inline(always)]
    fn copy_to_batch<R: KeyRule>(
        &self,
        one: Candidate,
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

    /// Copies an entry. The bytes of `entry` are empty.
    #[inline(always)]
    fn copy_to_entry<R: KeyRule>(
        &self,
        one: Candidate,
        keys: &KeyProperties<R>,
        entry: &mut StepEntry,
    ) -> Result<(), Torn> {
        // The object may be outside the leaf. Otherwise validate the body, and then measure its
        // key.
        if let Some(handle) = self.copy_body(one, &mut entry.bytes) {
            return self.copy_outside_entry(handle, entry);
        }
        self.confirm()?;
        entry.set(keys.key_in(&entry.bytes), entry.bytes.len());
        Ok(())
    }

    #[inline(never)]
    fn copy_outside_entry(&self, handle: Handle, entry: &mut StepEntry) -> Result<(), Torn> {
        let object = self.object(handle)?;
        entry.copy(object.position(), object.value(), entry.value_limit());
        Ok(())
    }

    /// Appends the body of an entry to `out`. If its object is outside, appends nothing and returns
    /// the handle.
    #[inline(always)]
    fn copy_body(&self, one: Candidate, out: &mut Vec<u8>) -> Option<Handle> {
        let (bucket, slot) = (self.leaf.bucket(one.bucket()), one.slot());
        let unit_shift = unit_shift(self.leaf.class());
        let bits = bucket::slot_entry(bucket, slot);
        let mut from = bucket::object_offset(bits, unit_shift);
        // The handle may be torn. The caller validates before it follows it.
        if bits & usize::from(OUTSIDE) != 0 {
            return Some(Handle::from_bits(bucket.load(from)));
        }
        // The object ends where the one before it begins.
        let mut end = match slot {
            1 => bucket.len(),
            _ => bucket::object_offset(bucket::slot_entry(bucket, slot - 1), unit_shift),
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
