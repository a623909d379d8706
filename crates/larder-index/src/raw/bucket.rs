//! Buckets of a published leaf: how a reader finds an entry, and what the holder of the lock may change in place.
//!
//! A search looks at the tags of the home bucket, eight bytes at a time, and compares the keys of those that match; it goes on to the next
//! bucket as long as entries were passed on. A bucket knows how many were, so most misses end where they began.
//!
//! Reads may be torn: every place is checked against the bucket's size. See the head of `raw`.

use super::bucket_leaf::{Leaf, Locked, Look};
use super::outside::Handle;
use super::words::{self, Torn, Writer};
use crate::hash::shape::*;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and the version tells readers (see the head of `raw`).

/// Lanes in a word.
const LANES: usize = 8 / LANE;
/// The tag of each lane of a word, and whether it is a guest.
const TAGS: u64 = 0x7F00_7F00_7F00_7F00;
/// One in each lane.
const EACH: u64 = 0x0001_0001_0001_0001;
const TOPS: u64 = 0x8000_8000_8000_8000;

/// An entry that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    bucket: u32,
    /// Its lane.
    lane: u16,
    /// Where its value begins in the bucket, and where it ends; or its handle.
    from: u16,
    end: u16,
    /// The object is outside.
    pub(crate) outside: bool,
}

impl Hit {
    /// Bytes of the value, if it is in the bucket.
    #[inline]
    pub(crate) fn value_len(&self) -> usize {
        usize::from(self.end) - usize::from(self.from)
    }
}

/// An entry that is to be stored.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    /// In the bucket: the key, the value, and whether the key's length is told.
    Inside(&'a [u8], &'a [u8], bool),
    /// The object is outside.
    Outside(Handle),
}

impl Body<'_> {
    /// Bytes in a bucket of this class, without the lane.
    #[inline]
    fn size(&self, class: u8) -> usize {
        match self {
            Body::Inside(key, value, told) => {
                object_size(body_size(key.len(), value.len(), *told), class)
            }
            Body::Outside(_) => HANDLE,
        }
    }
}

/// The top bits of the lanes whose tags are those of `wanted`.
#[inline]
fn matches(word: u64, wanted: u64) -> u64 {
    // A lane without difference stays below the top bit; no carry leaves a lane.
    !(((word ^ wanted) & TAGS) + TAGS) & TOPS
}

#[inline]
fn lane(bucket: &[AtomicU64], i: usize) -> Result<u16, Torn> {
    let word = u64::from_le(words::word(bucket, i / LANES)?);
    Ok((word >> (i % LANES * 16)) as u16)
}

/// Where the object of the lane begins.
#[inline]
fn place(lane: u16, unit: u32) -> usize {
    usize::from(lane & 0xFF) << unit
}

/// Whether the bucket has these bytes at `at`.
#[inline]
fn equal(bucket: &[AtomicU64], at: usize, bytes: &[u8]) -> Result<bool, Torn> {
    for (i, chunk) in bytes.chunks(8).enumerate() {
        let differ = words::load(bucket, at + 8 * i)? ^ words::little(chunk);
        if differ << (64 - 8 * chunk.len()) != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A key to be found, taken apart.
struct Wanted<'a> {
    key: &'a [u8],
    /// Its first bytes, and how far to shift to see them alone.
    first: u64,
    unused: u32,
    /// Its tag in each lane; behind its home, with the mark of a guest.
    tags: u64,
    told: bool,
}

impl<'a> Wanted<'a> {
    #[inline(always)]
    fn new(key: &'a [u8], tag: u8, told: bool) -> Self {
        let n = key.len().min(8);
        Wanted {
            key,
            first: words::little(&key[..n]),
            unused: (64 - 8 * n as u32) & 63,
            tags: (u64::from(tag) << 8) * EACH,
            told,
        }
    }

    /// Whether the bucket has the key at `at`.
    #[inline(always)]
    fn is_at(&self, bucket: &[AtomicU64], at: usize) -> Result<bool, Torn> {
        if self.key.is_empty() {
            return Ok(true);
        }
        let differ = words::load(bucket, at)? ^ self.first;
        if differ << self.unused != 0 {
            return Ok(false);
        }
        if self.key.len() <= 8 {
            return Ok(true);
        }
        equal(bucket, at + 8, &self.key[8..])
    }
}

impl<'g> Look<'g> {
    /// Finds the entry under the key.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, key: &[u8], told: bool) -> Result<Option<Hit>, Torn> {
        let (home, tag) = self.leaf.shape().place(hash);
        let wanted = Wanted::new(key, tag, told);
        let bucket = self.leaf.bucket(home);
        let head = u64::from_le(words::word(bucket, 0)?);
        if let Some(hit) = self.find_in(home, bucket, head, &wanted)? {
            return Ok(Some(hit));
        }
        if head & 0xFF00 == 0 {
            return Ok(None);
        }
        let tags = wanted.tags | (u64::from(GUEST) * EACH);
        self.find_beyond(home, &Wanted { tags, ..wanted })
    }

    /// Goes on behind the home bucket.
    #[inline(never)]
    fn find_beyond(&self, home: usize, wanted: &Wanted<'_>) -> Result<Option<Hit>, Torn> {
        let shape = self.leaf.shape();
        let mut at = shape.next(home);
        while at != home {
            let bucket = self.leaf.bucket(at);
            let head = u64::from_le(words::word(bucket, 0)?);
            if let Some(hit) = self.find_in(at, bucket, head, wanted)? {
                return Ok(Some(hit));
            }
            if head & 0xFF00 == 0 {
                break;
            }
            at = shape.next(at);
        }
        Ok(None)
    }

    #[inline(always)]
    fn find_in(
        &self,
        at: usize,
        bucket: &[AtomicU64],
        head: u64,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Hit>, Torn> {
        // Lane 0 is no entry.
        let lanes = (head & 0xFF) as usize + 1;
        let words = bucket.get(..lanes.div_ceil(LANES)).ok_or(Torn)?;
        for (w, word) in words.iter().enumerate() {
            // Ordering: Relaxed, see above.
            let word = u64::from_le(word.load(Relaxed));
            let mut hits = matches(word, wanted.tags);
            while hits != 0 {
                let shift = hits.trailing_zeros() & 0x30;
                let i = w * LANES + shift as usize / 16;
                if i > 0 && i < lanes {
                    let lane = (word >> shift) as u16;
                    if let Some(hit) = self.check(at, bucket, i, lane, wanted)? {
                        return Ok(Some(hit));
                    }
                }
                hits &= hits - 1;
            }
        }
        Ok(None)
    }

    /// The entry of lane `i`, if it is under the key.
    #[inline(always)]
    fn check(
        &self,
        at: usize,
        bucket: &[AtomicU64],
        i: usize,
        now: u16,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Hit>, Torn> {
        let unit = self.leaf.shape().unit();
        let mut from = place(now, unit);
        let hit = |from: usize, end: usize, outside| Hit {
            bucket: at as u32,
            lane: i as u16,
            from: from as u16,
            end: end as u16,
            outside,
        };
        if now & OUTSIDE != 0 {
            let same = self.is_outside(bucket, from, wanted.key)?;
            return Ok(same.then_some(hit(from, from, true)));
        }
        let mut end = match i {
            1 => bucket.len() * 8,
            _ => place(lane(bucket, i - 1)?, unit),
        };
        if unit > 0 {
            end = end.saturating_sub(words::load(bucket, from)? as usize & 0xFF);
            from += 1;
        }
        if wanted.told {
            let (len, size) = told(words::load(bucket, from)?);
            if len != wanted.key.len() {
                return Ok(None);
            }
            from += size;
        }
        let value = from + wanted.key.len();
        // No key begins another: an object that begins with the key is under it.
        if value > end || !wanted.is_at(bucket, from)? {
            return Ok(None);
        }
        Ok(Some(hit(value, end, false)))
    }

    /// Whether the handle in the bucket is of an object under the key.
    #[cold]
    fn is_outside(&self, bucket: &[AtomicU64], at: usize, key: &[u8]) -> Result<bool, Torn> {
        let handle = Handle::from_bits(words::load(bucket, at)?);
        Ok(self.object(handle)?.position() == key)
    }

    /// The handle of a hit that is outside.
    pub(crate) fn handle(&self, hit: &Hit) -> Result<Handle, Torn> {
        let bucket = self.leaf.bucket(hit.bucket as usize);
        words::load(bucket, hit.from.into()).map(Handle::from_bits)
    }

    /// Appends the value of a hit to `out`.
    #[inline]
    pub(crate) fn copy_value(&self, hit: &Hit, out: &mut Vec<u8>) -> Result<(), Torn> {
        if hit.outside {
            out.extend_from_slice(self.object(self.handle(hit)?)?.value());
            return Ok(());
        }
        let bucket = self.leaf.bucket(hit.bucket as usize);
        words::copy_out(bucket, hit.from.into(), hit.value_len(), out)
    }

    /// Appends the bytes of a bucket to `out`, as they are.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) -> Result<(), Torn> {
        let words = self.leaf.bucket(bucket);
        words::copy_out(words, 0, words.len() * 8, out)
    }

    /// Appends the bytes of all buckets to `out`, as they are.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) -> Result<(), Torn> {
        let words = self.leaf.words();
        words::copy_out(words, 0, words.len() * 8, out)
    }
}

impl Leaf<'_> {
    /// How many entries the bucket has.
    fn entries(self, bucket: &[AtomicU64]) -> usize {
        // Ordering: Relaxed, see above.
        usize::from(u64::from_le(bucket[0].load(Relaxed)) as u8)
    }

    /// Where the objects of a bucket begin.
    fn heap(self, bucket: &[AtomicU64]) -> usize {
        match self.entries(bucket) {
            0 => self.shape().bucket(),
            n => place(steady(bucket, n), self.shape().unit()),
        }
    }
}

/// Lane `i`, as the lock's holder sees it.
fn steady(bucket: &[AtomicU64], i: usize) -> u16 {
    lane(bucket, i).expect("the lock's holder reads nothing torn")
}

fn set_lane(bucket: &[AtomicU64], i: usize, lane: u16) {
    let (word, shift) = (&bucket[i / LANES], i % LANES * 16);
    // Ordering: Relaxed, see above.
    let now = u64::from_le(word.load(Relaxed));
    let next = now & !(0xFFFF << shift) | u64::from(lane) << shift;
    // Ordering: Relaxed, see above.
    word.store(next.to_le(), Relaxed);
}

impl Locked<'_> {
    /// The value of a hit, in place, while this borrow of the lock lasts.
    #[inline]
    pub(crate) fn value(&self, hit: &Hit) -> &[u8] {
        if let Some(handle) = self.handle(hit) {
            return self.object(handle).value();
        }
        let at = hit.bucket as usize * self.leaf.shape().bucket();
        &self.bytes()[at + usize::from(hit.from)..at + usize::from(hit.end)]
    }

    /// The handle of a hit, if it is outside.
    #[inline]
    pub(crate) fn handle(&self, hit: &Hit) -> Option<Handle> {
        let handle = || self.look().handle(hit);
        hit.outside
            .then(|| handle().expect("the lock's holder reads nothing torn"))
    }

    fn add(&mut self, entries: i32, bytes: isize) {
        let head = self.leaf.head();
        self.changed = true;
        let count = self.leaf.count() as i32 + entries;
        let live = self.leaf.live() as isize + bytes;
        // Ordering: Relaxed, see above.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, see above.
        head.live.store(live as u32, Relaxed);
    }

    /// Overwrites the value of a hit, which is in its bucket, with one of the same length.
    #[inline]
    pub(crate) fn overwrite(&mut self, hit: &Hit, value: &[u8]) {
        debug_assert!(!hit.outside && hit.value_len() == value.len());
        self.changed = true;
        write(
            self.leaf.bucket(hit.bucket as usize),
            hit.from.into(),
            value,
        );
    }

    /// Inserts an entry. False, and nothing changed, if no bucket has room.
    pub(crate) fn insert(&mut self, hash: u64, body: Body<'_>) -> bool {
        let shape = self.leaf.shape();
        let (home, tag) = shape.place(hash);
        let size = body.size(shape.class);
        let mut at = home;
        let (bucket, n, heap) = loop {
            let bucket = self.leaf.bucket(at);
            let (n, heap) = (self.leaf.entries(bucket), self.leaf.heap(bucket));
            if LANE * (n + 2) + size <= heap {
                break (bucket, n, heap);
            }
            at = shape.next(at);
            if at == home {
                return false;
            }
        };
        self.add(1, (LANE + size) as isize);
        self.pass(home, at, 1);
        let from = heap - size;
        let mark = match body {
            Body::Inside(..) => 0,
            Body::Outside(_) => OUTSIDE,
        };
        let guest = if at == home { 0 } else { GUEST };
        let lane = (from >> shape.unit()) as u16 | u16::from(tag) << 8 | mark | guest;
        write_body(bucket, from, heap, shape.unit(), body);
        set_lane(bucket, n + 1, lane);
        set_lane(bucket, 0, steady(bucket, 0) + 1);
        true
    }

    /// One more or one less was passed on from each of the buckets from its home up to the one that has it.
    fn pass(&mut self, home: usize, at: usize, add: i16) {
        let mut from = home;
        while from != at {
            let bucket = self.leaf.bucket(from);
            let lane = steady(bucket, 0);
            let passed = lane >> 8;
            if passed != MANY {
                let passed = passed.wrapping_add_signed(add).min(MANY);
                set_lane(bucket, 0, lane & 0xFF | passed << 8);
            }
            from = self.leaf.shape().next(from);
        }
    }

    /// Removes the entry of a hit. Its handle, if any, is the caller's to retire.
    pub(crate) fn remove(&mut self, hash: u64, hit: &Hit) {
        let shape = self.leaf.shape();
        let unit = shape.unit();
        let bucket = self.leaf.bucket(hit.bucket as usize);
        let lane_of = usize::from(hit.lane);
        let n = self.leaf.entries(bucket);
        let from = place(steady(bucket, lane_of), unit);
        let end = match lane_of {
            1 => shape.bucket(),
            i => place(steady(bucket, i - 1), unit),
        };
        let gap = end - from;
        self.add(-1, -((LANE + gap) as isize));
        // The objects below move up, and so do their places.
        let heap = self.leaf.heap(bucket);
        let mut top = from;
        while top > heap {
            let take = (top - heap).min(8);
            top -= take;
            let bytes = words::load(bucket, top).map_or([0; 8], u64::to_le_bytes);
            write(bucket, top + gap, &bytes[..take]);
        }
        for i in lane_of + 1..=n {
            set_lane(bucket, i - 1, steady(bucket, i) + (gap >> unit) as u16);
        }
        set_lane(bucket, 0, steady(bucket, 0) - 1);
        self.pass(shape.place(hash).0, hit.bucket as usize, -1);
    }

    /// Adds to the contention counter, within bounds, and returns it.
    #[inline]
    pub(crate) fn contention(&mut self, add: i32) -> i32 {
        const BOUND: i32 = 20_000;
        let adapt = &self.leaf.head().adapt;
        // Ordering: Relaxed, see above.
        let sum = (adapt.load(Relaxed) as i32 + add).clamp(-BOUND, BOUND);
        // Ordering: Relaxed, see above.
        adapt.store(sum as u32, Relaxed);
        sum
    }
}

/// Writes `bytes` from byte `at`. The caller holds the leaf's lock, and the bytes lie within the bucket.
#[inline]
fn write(bucket: &[AtomicU64], at: usize, bytes: &[u8]) {
    let mut writer = Writer::new(bucket, at);
    writer.bytes(bytes);
    writer.finish();
}

/// Writes a body to the room between `from` and `end`.
#[inline]
fn write_body(bucket: &[AtomicU64], from: usize, end: usize, unit: u32, body: Body<'_>) {
    let mut writer = Writer::new(bucket, from);
    match body {
        Body::Inside(key, value, told) => {
            if unit > 0 {
                let unused = end - from - 1 - body_size(key.len(), value.len(), told);
                writer.push(unused as u64, 1);
            }
            if told {
                let (bytes, len) = tell(key.len());
                writer.bytes(&bytes[..len]);
            }
            writer.bytes(key);
            writer.bytes(value);
        }
        Body::Outside(handle) => writer.push(handle.bits(), 8),
    }
    writer.finish();
}
