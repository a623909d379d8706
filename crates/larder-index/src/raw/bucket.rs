//! How an entry is found in the buckets of a leaf, by a reader or by the holder of the lock.
//!
//! A search looks at the tags of the home bucket, eight bytes at a time, and compares the keys of those that match; it goes on to the next
//! bucket as long as entries were passed on. A bucket knows how many were, so most misses end where they began.
//!
//! Reads may be torn: then they find anything, or nothing, and the version tells. No place leads out of a bucket (see [`Bucket`]), and a handle is
//! followed only after a check.

use super::bucket_leaf::{Leaf, Look};
use super::bucket_words::Bucket;
use super::outside::Handle;
use super::words::{self, Torn};
use crate::hash::shape::*;
use crate::SHORT;

/// Lanes in a word.
pub(super) const LANES: usize = 8 / LANE;
/// The tag of each lane of a word, and whether it is a guest.
const TAGS: u64 = 0x7F00_7F00_7F00_7F00;
/// One in each lane.
pub(super) const EACH: u64 = 0x0001_0001_0001_0001;
const TOPS: u64 = 0x8000_8000_8000_8000;

/// Where a hash is at home in a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Home<'g> {
    pub(super) bucket: Bucket<'g>,
    pub(super) tag: u8,
}

/// An entry that was found.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'g> {
    pub(super) bucket: Bucket<'g>,
    /// Its lane.
    pub(super) lane: usize,
    /// Where its value begins in the bucket, and where it ends; or its handle.
    pub(super) from: usize,
    pub(super) end: usize,
    /// The object is outside.
    pub(crate) outside: bool,
}

impl Hit<'_> {
    /// Bytes of the value, if it is in the bucket.
    #[inline(always)]
    pub(crate) fn value_len(&self) -> usize {
        self.end - self.from
    }
}

/// The top bits of the lanes whose tags are those of `wanted`.
#[inline(always)]
fn matches(word: u64, wanted: u64) -> u64 {
    // A lane without difference stays below the top bit; no carry leaves a lane.
    !(((word ^ wanted) & TAGS) + TAGS) & TOPS
}

/// Lane `i`.
#[inline(always)]
pub(super) fn lane(bucket: Bucket<'_>, i: usize) -> usize {
    (bucket.word(i / LANES) >> (i % LANES * 16)) as usize & 0xFFFF
}

/// Where the object of the lane begins.
#[inline(always)]
pub(super) fn place(lane: usize, unit: u32) -> usize {
    (lane & 0xFF) << unit
}

/// How many entries a bucket has, and whether any were passed on from it: what its first word says.
#[inline(always)]
pub(super) fn entries(head: u64) -> usize {
    head as usize & 0xFF
}

#[inline(always)]
fn passed_on(head: u64) -> bool {
    head & 0xFF00 != 0
}

/// A key to be found, taken apart: its first eight bytes and its last eight, which may overlap.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    key: &'a [u8],
    first: u64,
    last: u64,
    /// How far to shift `first` to see its bytes alone.
    unused: u32,
    told: bool,
}

impl<'a> Wanted<'a> {
    #[inline(always)]
    fn new(key: &'a [u8], told: bool) -> Self {
        let n = key.len();
        if n > 8 {
            return Wanted {
                key,
                first: words::first(key),
                last: words::last(key),
                unused: 0,
                told,
            };
        }
        Wanted {
            key,
            first: words::little(key),
            last: 0,
            // For no byte at all: 64, which shifts by none; such a key is compared to nothing.
            unused: 64 - 8 * n as u32,
            told,
        }
    }

    /// Whether the bucket has the key at `at`.
    #[inline(always)]
    fn is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let n = self.key.len();
        let differ = bucket.load(at) ^ self.first;
        if differ << (self.unused & 63) != 0 {
            return n == 0;
        }
        n <= 8 || bucket.load(at + n - 8) == self.last && (n <= 16 || self.rest_is_at(bucket, at))
    }

    /// Whether the bytes between the first eight and the last are there, too.
    #[inline(never)]
    fn rest_is_at(&self, bucket: Bucket<'_>, at: usize) -> bool {
        let middle = self.key[8..self.key.len() - 8].chunks(8);
        let mut at = at;
        { middle }.all(|chunk| {
            at += 8;
            let differ = bucket.load(at) ^ words::little(chunk);
            differ << (64 - 8 * chunk.len()) == 0
        })
    }
}

/// What a quick search says.
pub(crate) enum Quick<'g> {
    /// The entry.
    Here(Hit<'g>),
    /// There is none.
    Absent,
    /// There is none in this bucket, but some were passed on.
    Passed,
    /// It can't tell.
    Unsure,
}

/// The longest key that a quick search is for.
pub(crate) const QUICK: usize = 16;

/// Searches a bucket, whose keys are not told and whose unit is a byte, for a key of one to [`QUICK`] bytes. Nearly all searches are of
/// this kind; as few values as possible are held in it, so that none has to wait on the stack.
#[inline(always)]
fn search<'g>(bucket: Bucket<'g>, tag: u64, key: &[u8]) -> Quick<'g> {
    let tags = tag * EACH;
    let first = words::first(key);
    let unused = 8usize.saturating_sub(key.len()) * 8;
    let head = bucket.word(0);
    let (mut w, mut word) = (0, head);
    // Lane 0 is no entry.
    let mut hits = matches(head, tags) & !0xFFFF;
    loop {
        while hits != 0 {
            let shift = hits.trailing_zeros() as usize & 0x30;
            let lane_of = w * LANES + shift / 16;
            if lane_of > entries(head) {
                break;
            }
            let now = (word >> shift) as usize;
            if now & usize::from(OUTSIDE) != 0 {
                return Quick::Unsure;
            }
            let from = now & 0xFF;
            let differ = (bucket.load(from) ^ first) << unused;
            if differ == 0 && (key.len() <= 8 || ends_so(bucket, from, key)) {
                let before = place(lane(bucket, lane_of - 1), 0);
                let end = if lane_of == 1 { bucket.len() } else { before };
                let from = from + key.len();
                return Quick::Here(Hit {
                    bucket,
                    lane: lane_of,
                    from,
                    // What is torn may end before it begins.
                    end: end.max(from),
                    outside: false,
                });
            }
            hits &= hits - 1;
        }
        w += 1;
        if w * LANES > entries(head) {
            break;
        }
        word = bucket.word(w);
        hits = matches(word, tags);
    }
    if passed_on(head) {
        Quick::Passed
    } else {
        Quick::Absent
    }
}

impl<'g> Leaf<'g> {
    /// The quick search for a key at home: see [`search`].
    #[inline(always)]
    pub(crate) fn quick(self, home: &Home<'g>, key: &[u8]) -> Quick<'g> {
        match search(home.bucket, u64::from(home.tag) << 8, key) {
            Quick::Passed => self.quick_beyond(home.bucket, home.tag, key),
            other => other,
        }
    }

    /// Goes on behind the home bucket, among guests.
    #[inline(never)]
    fn quick_beyond(self, home: Bucket<'g>, tag: u8, key: &[u8]) -> Quick<'g> {
        let tag = u64::from(tag) << 8 | u64::from(GUEST);
        let shape = self.shape();
        let home = self.number(home);
        let mut at = shape.next(home);
        while at != home {
            match search(self.bucket(at), tag, key) {
                Quick::Passed => at = shape.next(at),
                other => return other,
            }
        }
        Quick::Absent
    }
}

/// Whether the last eight bytes of a key lie where they should, if it begins at `at`.
#[inline(always)]
fn ends_so(bucket: Bucket<'_>, at: usize, key: &[u8]) -> bool {
    bucket.load(at + key.len() - 8) == words::last(key)
}

impl<'g> Look<'g> {
    /// Finds the entry under the key.
    #[inline(always)]
    pub(crate) fn find(self, hash: u64, key: &[u8], told: bool) -> Result<Option<Hit<'g>>, Torn> {
        let short = key.len().wrapping_sub(1) < QUICK;
        if short && !told && self.leaf.shape().class <= UNIT_CLASS {
            match self.leaf.quick(&self.leaf.home(hash), key) {
                Quick::Here(hit) => return Ok(Some(hit)),
                Quick::Absent => return Ok(None),
                Quick::Passed | Quick::Unsure => {}
            }
        }
        self.find_any(hash, key, told)
    }

    /// Finds the entry under any key.
    #[inline(never)]
    pub(crate) fn find_any(
        self,
        hash: u64,
        key: &[u8],
        told: bool,
    ) -> Result<Option<Hit<'g>>, Torn> {
        let shape = self.leaf.shape();
        let (home, tag) = shape.place(hash);
        let wanted = Wanted::new(key, told);
        let mut tags = (u64::from(tag) << 8) * EACH;
        let mut at = home;
        loop {
            let bucket = self.leaf.bucket(at);
            let head = bucket.word(0);
            let hit = self.find_in(bucket, head, tags, &wanted)?;
            at = shape.next(at);
            if hit.is_some() || !passed_on(head) || at == home {
                return Ok(hit);
            }
            // From here on it is a guest.
            tags |= u64::from(GUEST) * EACH;
        }
    }

    fn find_in(
        &self,
        bucket: Bucket<'g>,
        head: u64,
        tags: u64,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Hit<'g>>, Torn> {
        // Lane 0 is no entry.
        let n = entries(head);
        let (mut first, mut word) = (0, head);
        let mut hits = matches(head, tags) & !0xFFFF;
        loop {
            while hits != 0 {
                let shift = hits.trailing_zeros() as usize & 0x30;
                let i = first + shift / 16;
                if i > n {
                    return Ok(None);
                }
                let lane = (word >> shift) as usize;
                let hit = self.check(bucket, i, lane, wanted)?;
                if hit.is_some() {
                    return Ok(hit);
                }
                hits &= hits - 1;
            }
            first += LANES;
            if first > n {
                return Ok(None);
            }
            word = bucket.word(first / LANES);
            hits = matches(word, tags);
        }
    }

    /// The entry of lane `i`, if it is under the key.
    #[inline(always)]
    fn check(
        &self,
        bucket: Bucket<'g>,
        i: usize,
        now: usize,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Hit<'g>>, Torn> {
        let unit = self.leaf.shape().unit();
        let mut from = place(now, unit);
        let hit = |from: usize, end: usize, outside| Hit {
            bucket,
            lane: i,
            from,
            end,
            outside,
        };
        if now & usize::from(OUTSIDE) != 0 {
            let same = self.is_outside(bucket, from, wanted.key)?;
            return Ok(same.then_some(hit(from, from, true)));
        }
        let mut end = match i {
            1 => bucket.len(),
            _ => place(lane(bucket, i - 1), unit),
        };
        if unit > 0 {
            end = end.saturating_sub(bucket.load(from) as usize & 0xFF);
            from += 1;
        }
        if wanted.told {
            let (len, size) = told(bucket.load(from));
            if len != wanted.key.len() {
                return Ok(None);
            }
            from += size;
        }
        let value = from + wanted.key.len();
        // No key begins another: an object that begins with the key is under it.
        if value > end || !wanted.is_at(bucket, from) {
            return Ok(None);
        }
        Ok(Some(hit(value, end, false)))
    }

    /// Whether the handle in the bucket is of an object under the key.
    #[cold]
    fn is_outside(&self, bucket: Bucket<'g>, at: usize, key: &[u8]) -> Result<bool, Torn> {
        let handle = Handle::from_bits(bucket.load(at));
        Ok(self.object(handle)?.position() == key)
    }

    /// The handle of a hit that is outside.
    pub(crate) fn handle(&self, hit: &Hit<'_>) -> Handle {
        Handle::from_bits(hit.bucket.load(hit.from))
    }

    /// Appends the value of a hit to `out`.
    #[inline(always)]
    pub(crate) fn copy_value(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        if hit.outside {
            return self.copy_outside(hit, out);
        }
        let (from, len) = (out.len(), hit.value_len());
        // Whole words are written, the last of them beyond the end.
        out.reserve(len + 8);
        // SAFETY: `from` is within the vector's memory.
        let to = unsafe { out.as_mut_ptr().add(from) };
        hit.bucket.each_word(hit.from, len, |done, word| {
            // SAFETY: `done < len`, and there is room for `len + 8` bytes.
            unsafe { to.add(done).cast::<u64>().write_unaligned(word.to_le()) };
        });
        // SAFETY: 1. there is room; 2. all `len` bytes were written.
        unsafe { out.set_len(from + len) };
        Ok(())
    }

    #[cold]
    fn copy_outside(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        out.extend_from_slice(self.object(self.handle(hit))?.value());
        Ok(())
    }

    /// Copies the value of a hit to `out` if it has room there; gives its length, or None if it has not.
    #[inline(always)]
    pub(crate) fn copy_short(
        &self,
        hit: &Hit<'_>,
        out: &mut [u8; SHORT],
    ) -> Result<Option<usize>, Torn> {
        if hit.outside {
            return self.short_outside(hit, out);
        }
        let len = hit.value_len();
        if len > SHORT {
            return Ok(None);
        }
        hit.bucket.each_word(hit.from, len, |done, word| {
            if let Some(to) = out.get_mut(done..done + 8) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        });
        Ok(Some(len))
    }

    #[cold]
    fn short_outside(&self, hit: &Hit<'_>, out: &mut [u8; SHORT]) -> Result<Option<usize>, Torn> {
        let value = self.object(self.handle(hit))?.value();
        let Some(to) = out.get_mut(..value.len()) else {
            return Ok(None);
        };
        to.copy_from_slice(value);
        Ok(Some(value.len()))
    }

    /// Appends the bytes of a bucket to `out`, as they are.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) -> Result<(), Torn> {
        let words = self.leaf.bucket(bucket).words();
        words::copy_out(words, 0, words.len() * 8, out)
    }

    /// Appends the bytes of all buckets to `out`, as they are.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) -> Result<(), Torn> {
        let words = self.leaf.words();
        words::copy_out(words, 0, words.len() * 8, out)
    }
}

impl<'g> Leaf<'g> {
    /// Where the hash is at home.
    #[inline(always)]
    pub(crate) fn home(self, hash: u64) -> Home<'g> {
        let (number, tag) = self.shape().place(hash);
        // SAFETY: a leaf has at least one bucket, and `place` gives the whole part of a fraction times their number, which is below it.
        let bucket = unsafe { self.bucket_unchecked(number) };
        Home { bucket, tag }
    }
}
