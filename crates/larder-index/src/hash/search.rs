//! How an entry is found in the buckets of a leaf, by a reader or by the holder of the lock.
//!
//! A search looks at the tags of the home bucket, eight bytes at a time, and compares the keys of
//! those that match; it goes on to the next bucket as long as entries were passed on that may be
//! meant: a bucket knows of each eighth of the tags whether there were any, so nearly all misses
//! end where they began.
//!
//! Reads may be torn: then they find anything, or nothing, and the version tells. No place leads
//! out of a bucket (see [`Bucket`]), and a handle is followed only after a check.

use crate::hash::bucket::{
    copy_all, copy_out, entries, lane, matches, place, Bucket, Home, EACH, LANES,
};
use crate::hash::leaf::{Leaf, Look};
use crate::hash::shape::*;
use crate::outside::Handle;
use crate::seqlock::words::{self, Torn};
use crate::{Lookup, SHORT};

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

    /// Appends the value, which is in the bucket, to `out`.
    #[inline(always)]
    pub(crate) fn copy(&self, out: &mut Vec<u8>) {
        copy_out(self.bucket, self.from, self.end, out);
    }

    /// Copies the value, which is in the bucket, to `out`, if it has room there.
    #[inline(always)]
    pub(crate) fn copy_short(&self, out: &mut [u8; SHORT]) -> Lookup {
        let len = self.value_len();
        if len > SHORT {
            return Lookup::Long;
        }
        self.bucket.each_word(self.from, len, |done, word| {
            // Of a value of at most 64 bytes each word begins below 64, at a multiple of eight.
            if let Some(to) = out.get_mut(done..done + 8) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        });
        Lookup::Short(len)
    }
}

/// Whether entries with the tag of this lane may have been passed on from a bucket, which its first
/// word says, too.
#[inline(always)]
fn passed_on(head: u64, lane: u64) -> bool {
    head >> (8 + (lane >> 11 & 7)) & 1 != 0
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

/// The longest key that a quick search is for.
pub(crate) const QUICK: usize = 32;

/// What a search says, in one register: of an entry, where its value begins and where it ends, its
/// lane, whether it is outside, and the number of its bucket (27 bits). Lanes of entries begin with
/// 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said(u64);

impl Said {
    /// There is none.
    pub(crate) const ABSENT: Said = Said(0);
    /// There is none in this bucket, but it may have been passed on.
    const PASSED: Said = Said(1);
    /// It can't tell.
    const UNSURE: Said = Said(2);
    /// What was read is torn.
    const TORN: Said = Said(3);

    const FIELD: u32 = 12;
    const MASK: usize = (1 << Said::FIELD) - 1;
    const LANE_AT: u32 = 2 * Said::FIELD;
    const OUTSIDE_AT: u32 = 3 * Said::FIELD;
    const NUMBER_AT: u32 = 3 * Said::FIELD + 1;

    #[inline(always)]
    fn here(lane: usize, from: usize, end: usize, outside: bool) -> Said {
        let fields = lane << Said::LANE_AT | end << Said::FIELD | from;
        Said(fields as u64 | u64::from(outside) << Said::OUTSIDE_AT)
    }

    /// Whether it is an entry.
    #[inline(always)]
    pub(crate) fn is_here(self) -> bool {
        self.0 >> Said::LANE_AT != 0
    }

    fn in_bucket(self, number: usize) -> Said {
        Said(self.0 | (number as u64) << Said::NUMBER_AT)
    }

    /// The entry, which is here, in this bucket.
    #[inline(always)]
    pub(crate) fn hit(self, bucket: Bucket<'_>) -> Hit<'_> {
        Hit {
            bucket,
            lane: (self.0 >> Said::LANE_AT) as usize & Said::MASK,
            from: self.0 as usize & Said::MASK,
            end: (self.0 >> Said::FIELD) as usize & Said::MASK,
            outside: self.0 >> Said::OUTSIDE_AT & 1 != 0,
        }
    }

    fn number(self) -> usize {
        (self.0 >> Said::NUMBER_AT) as usize
    }
}

/// Searches a bucket, whose keys are not told, for a key of one to [`QUICK`] bytes. Nearly all
/// searches are of this kind. `WIDE`: its unit is more than a byte.
#[inline(always)]
fn search<const WIDE: bool>(bucket: Bucket<'_>, unit: u32, tag: u64, key: &[u8]) -> Said {
    let unit = if WIDE { unit } else { 0 };
    let tags = tag * EACH;
    let (first, unused) = (words::first(key), 8usize.saturating_sub(key.len()) * 8);
    let head = bucket.word(0);
    let n = entries(head);
    // A word of lanes, and the lane in front of it.
    let (mut lanes, mut word, mut front) = (0, head, 0);
    // Lane 0 is no entry.
    let mut hits = matches(head, tags) & !0xFFFF;
    loop {
        while hits != 0 {
            let shift = hits.trailing_zeros() as usize & 0x30;
            let i = lanes + shift / 16;
            if i > n {
                break;
            }
            let now = (word >> shift) as usize;
            if now & usize::from(OUTSIDE) != 0 {
                return Said::UNSURE;
            }
            let (mut from, mut spare) = (place(now, unit), 0);
            if WIDE {
                // An object begins with how many bytes behind it are not its own.
                (from, spare) = (from + 1, bucket.load(from) as usize & 0xFF);
            }
            let differ = (bucket.load(from) ^ first) << unused;
            if differ == 0 && (key.len() <= 8 || goes_on_so(bucket, from, key)) {
                // It ends where the object before it begins.
                let before = place(((word << 16 | front) >> shift) as usize, unit);
                let end = if i == 1 { bucket.len() } else { before };
                let from = from + key.len();
                // What is torn may end before it begins.
                return Said::here(i, from, end.saturating_sub(spare).max(from), false);
            }
            hits &= hits - 1;
        }
        lanes += LANES;
        if lanes > n {
            break;
        }
        front = word >> 48;
        word = bucket.word(lanes / LANES);
        hits = matches(word, tags);
    }
    if passed_on(head, tag) {
        Said::PASSED
    } else {
        Said::ABSENT
    }
}

/// As `search`, in large buckets.
#[inline(never)]
fn search_wide(bucket: Bucket<'_>, unit: u32, tag: u64, key: &[u8]) -> Said {
    search::<true>(bucket, unit, tag, key)
}

/// As `search`, in any bucket.
#[inline(always)]
fn search_any(bucket: Bucket<'_>, unit: u32, tag: u64, key: &[u8]) -> Said {
    match unit {
        0 => search::<false>(bucket, 0, tag, key),
        _ => search_wide(bucket, unit, tag, key),
    }
}

impl<'g> Leaf<'g> {
    /// The quick search for a key: see [`search`]. None if it can't tell.
    #[inline(always)]
    pub(crate) fn quick(self, home: &Home<'g>, key: &[u8]) -> Option<Option<Hit<'g>>> {
        let (mut bucket, tag) = (home.bucket, u64::from(home.tag) << 8);
        let mut said = match self.class() {
            ..=UNIT_CLASS => search::<false>(bucket, 0, tag, key),
            class => search_wide(bucket, unit(class), tag, key),
        };
        if said == Said::PASSED {
            said = self.quick_beyond(bucket, tag | u64::from(GUEST), key);
            if said.is_here() {
                bucket = self.bucket(said.number());
            }
        }
        if said.is_here() {
            return Some(Some(said.hit(bucket)));
        }
        (said == Said::ABSENT).then_some(None)
    }

    /// Goes on behind a home bucket, among guests. All that it takes and gives are registers.
    #[inline(never)]
    fn quick_beyond(self, home: Bucket<'g>, tag: u64, key: &[u8]) -> Said {
        let (shape, home) = (self.shape(), self.number(home));
        let mut at = shape.next(home);
        while at != home {
            let said = search_any(self.bucket(at), unit(self.class()), tag, key);
            if said.is_here() {
                return said.in_bucket(at);
            }
            if said != Said::PASSED {
                return said;
            }
            at = shape.next(at);
        }
        Said::ABSENT
    }
}

/// Whether a key of more than eight bytes, the first eight of which lie at `at`, lies there: the
/// last eight are looked at first, then those between.
#[inline(always)]
fn goes_on_so(bucket: Bucket<'_>, at: usize, key: &[u8]) -> bool {
    if bucket.load(at + key.len() - 8) != words::last(key) {
        return false;
    }
    let mut done = 8;
    while done + 8 < key.len() {
        if bucket.load(at + done) != words::first(&key[done..]) {
            return false;
        }
        done += 8;
    }
    true
}

impl<'g> Look<'g> {
    /// Finds the entry under the key with this hash, which has its home there, of a length that a
    /// quick search is for if `quick`.
    #[inline(always)]
    pub(crate) fn find(
        self,
        (hash, home): (u64, &Home<'g>),
        key: &[u8],
        (quick, told): (bool, bool),
    ) -> Result<Option<Hit<'g>>, Torn> {
        if quick {
            let said = self.leaf.quick(home, key);
            if let Some(known) = said {
                return Ok(known);
            }
        }
        self.resolve(self.find_any(hash, key, (quick, told)))
    }

    /// As `find`, for keys that are probably no quick ones, or not at home.
    #[inline]
    pub(crate) fn find_slowly(
        self,
        hash: u64,
        key: &[u8],
        how: (bool, bool),
    ) -> Result<Option<Hit<'g>>, Torn> {
        self.resolve(self.find_any(hash, key, how))
    }

    #[inline(always)]
    fn resolve(self, said: Said) -> Result<Option<Hit<'g>>, Torn> {
        if said.is_here() {
            return Ok(Some(said.hit(self.leaf.bucket(said.number()))));
        }
        if said == Said::TORN {
            Err(Torn)
        } else {
            Ok(None)
        }
    }

    /// Finds the entry under any key.
    #[inline(never)]
    fn find_any(self, hash: u64, key: &[u8], (quick, told): (bool, bool)) -> Said {
        let shape = self.leaf.shape();
        let (home, tag) = shape.place(hash);
        let (mut at, mut tag) = (home, u64::from(tag) << 8);
        loop {
            let said = self.find_at((at, tag), key, (quick, told));
            if said != Said::PASSED {
                return said;
            }
            at = shape.next(at);
            if at == home {
                return Said::ABSENT;
            }
            // From here on it is a guest.
            tag |= u64::from(GUEST);
        }
    }

    /// Finds the entry in a bucket.
    #[inline(always)]
    fn find_at(&self, (at, tag): (usize, u64), key: &[u8], (quick, told): (bool, bool)) -> Said {
        let bucket = self.leaf.bucket(at);
        let mut said = Said::UNSURE;
        if quick {
            said = search_any(bucket, unit(self.leaf.class()), tag, key);
        }
        if said == Said::UNSURE {
            let found = self.find_in(bucket, tag, &Wanted::new(key, told));
            said = found.unwrap_or(Said::TORN);
        }
        if said.is_here() {
            said.in_bucket(at)
        } else {
            said
        }
    }

    #[inline(never)]
    fn find_in(&self, bucket: Bucket<'g>, tag: u64, wanted: &Wanted<'_>) -> Result<Said, Torn> {
        let tags = tag * EACH;
        // Lane 0 is no entry.
        let head = bucket.word(0);
        let n = entries(head);
        let (mut first, mut word) = (0, head);
        let mut hits = matches(head, tags) & !0xFFFF;
        loop {
            while hits != 0 {
                let shift = hits.trailing_zeros() as usize & 0x30;
                let i = first + shift / 16;
                if i > n {
                    break;
                }
                let hit = self.check(bucket, i, (word >> shift) as usize, wanted)?;
                if let Some(said) = hit {
                    return Ok(said);
                }
                hits &= hits - 1;
            }
            first += LANES;
            if first > n {
                break;
            }
            word = bucket.word(first / LANES);
            hits = matches(word, tags);
        }
        Ok(if passed_on(head, tag) {
            Said::PASSED
        } else {
            Said::ABSENT
        })
    }

    /// The entry of lane `i`, if it is under the key.
    fn check(
        &self,
        bucket: Bucket<'g>,
        i: usize,
        now: usize,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Said>, Torn> {
        let unit = unit(self.leaf.class());
        let mut from = place(now, unit);
        if now & usize::from(OUTSIDE) != 0 {
            let same = self.is_outside(bucket, from, wanted.key)?;
            return Ok(same.then_some(Said::here(i, from, from, true)));
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
        Ok(Some(Said::here(i, value, end, false)))
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
    #[inline]
    pub(crate) fn copy_value(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        if hit.outside {
            return self.copy_outside(hit, out);
        }
        hit.copy(out);
        Ok(())
    }

    #[cold]
    fn copy_outside(&self, hit: &Hit<'_>, out: &mut Vec<u8>) -> Result<(), Torn> {
        out.extend_from_slice(self.object(self.handle(hit))?.value());
        Ok(())
    }

    /// Copies the value of a hit to `out` if it has room there.
    #[inline]
    pub(crate) fn copy_short(&self, hit: &Hit<'_>, out: &mut [u8; SHORT]) -> Result<Lookup, Torn> {
        if hit.outside {
            return self.short_outside(hit, out);
        }
        Ok(hit.copy_short(out))
    }

    #[cold]
    fn short_outside(&self, hit: &Hit<'_>, out: &mut [u8; SHORT]) -> Result<Lookup, Torn> {
        let value = self.object(self.handle(hit))?.value();
        let Some(to) = out.get_mut(..value.len()) else {
            return Ok(Lookup::Long);
        };
        to.copy_from_slice(value);
        Ok(Lookup::Short(value.len()))
    }

    /// Appends the bytes of a bucket to `out`, as they are.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) -> Result<(), Torn> {
        copy_all(self.leaf.bucket(bucket).words(), out);
        Ok(())
    }

    /// Appends the bytes of all buckets to `out`, as they are.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) -> Result<(), Torn> {
        copy_all(self.leaf.words(), out);
        Ok(())
    }
}
