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
/// The tag of each lane of a word.
const TAGS: u64 = 0x7F00_7F00_7F00_7F00;
const TOPS: u64 = 0x8000_8000_8000_8000;

/// An entry that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    bucket: usize,
    /// Its lane.
    lane: usize,
    /// Where its value begins in the bucket, and where it ends.
    value: (usize, usize),
    /// The object is outside: then the value is there.
    pub(crate) handle: Option<Handle>,
}

impl Hit {
    /// Bytes of the value, if it is in the bucket.
    #[inline]
    pub(crate) fn value_len(&self) -> usize {
        self.value.1 - self.value.0
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
    let mut at = at;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        if words::load(bucket, at)? != words::little(chunk) {
            return Ok(false);
        }
        at += 8;
    }
    let rest = chunks.remainder();
    if rest.is_empty() {
        return Ok(true);
    }
    let differ = words::load(bucket, at)? ^ words::little(rest);
    Ok(differ << (64 - 8 * rest.len()) == 0)
}

impl<'g> Look<'g> {
    /// Finds the entry under the key.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8], told: bool) -> Result<Option<Hit>, Torn> {
        let shape = self.leaf.shape();
        let (home, tag) = shape.place(hash);
        let mut at = home;
        loop {
            let bucket = self.leaf.bucket(at);
            let head = u64::from_le(words::word(bucket, 0)?);
            if let Some(hit) = self.find_in(bucket, head, tag, key, told)? {
                return Ok(Some(Hit { bucket: at, ..hit }));
            }
            at = shape.next(at);
            if head & 0xFF00 == 0 || at == home {
                return Ok(None);
            }
        }
    }

    #[inline]
    fn find_in(
        &self,
        bucket: &[AtomicU64],
        head: u64,
        tag: u8,
        key: &[u8],
        told: bool,
    ) -> Result<Option<Hit>, Torn> {
        let wanted = u64::from(tag) * 0x0100_0100_0100_0100;
        let mut left = (head & 0xFF) as usize + 1;
        let (mut word, mut first) = (head, 0);
        // Lane 0 is no entry.
        let mut hits = matches(word, wanted) & !0xFFFF;
        loop {
            if left < LANES {
                hits &= (1 << (16 * left)) - 1;
            }
            while hits != 0 {
                let i = hits.trailing_zeros() as usize / 16;
                let lane = (word >> (16 * i)) as u16;
                if let Some(hit) = self.check(bucket, first + i, lane, key, told)? {
                    return Ok(Some(hit));
                }
                hits &= hits - 1;
            }
            if left <= LANES {
                return Ok(None);
            }
            left -= LANES;
            first += LANES;
            word = u64::from_le(words::word(bucket, first / LANES)?);
            hits = matches(word, wanted);
        }
    }

    /// The entry of lane `i`, if it is under the key.
    #[inline]
    fn check(
        &self,
        bucket: &[AtomicU64],
        i: usize,
        now: u16,
        key: &[u8],
        told: bool,
    ) -> Result<Option<Hit>, Torn> {
        let shape = self.leaf.shape();
        let unit = shape.unit();
        let mut from = place(now, unit);
        if now & OUTSIDE != 0 {
            let handle = Handle::from_bits(words::load(bucket, from)?);
            let same = self.object(handle)?.position() == key;
            return Ok(same.then_some(Hit {
                bucket: 0,
                lane: i,
                value: (from, from),
                handle: Some(handle),
            }));
        }
        let mut end = match i {
            1 => shape.bucket(),
            _ => place(lane(bucket, i - 1)?, unit),
        };
        if unit > 0 {
            end = end.saturating_sub(words::load(bucket, from)? as usize & 0xFF);
            from += 1;
        }
        if told {
            let (len, size) = self::told(words::load(bucket, from)?);
            if len != key.len() {
                return Ok(None);
            }
            from += size;
        }
        let value = from + key.len();
        // No key begins another: an object that begins with the key is under it.
        if value > end || !equal(bucket, from, key)? {
            return Ok(None);
        }
        Ok(Some(Hit {
            bucket: 0,
            lane: i,
            value: (value, end),
            handle: None,
        }))
    }

    /// Appends the value of a hit to `out`.
    #[inline]
    pub(crate) fn copy_value(&self, hit: &Hit, out: &mut Vec<u8>) -> Result<(), Torn> {
        if let Some(handle) = hit.handle {
            out.extend_from_slice(self.object(handle)?.value());
            return Ok(());
        }
        let bucket = self.leaf.bucket(hit.bucket);
        let (from, len) = (hit.value.0, hit.value_len());
        if len > 16 {
            return words::copy_out(bucket, from, len, out);
        }
        if len == 0 {
            return Ok(());
        }
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words::load(bucket, from)?.to_le_bytes());
        if len > 8 {
            bytes[8..].copy_from_slice(&words::load(bucket, from + 8)?.to_le_bytes());
        }
        out.extend_from_slice(&bytes[..len]);
        Ok(())
    }

    /// Appends the bytes of a bucket to `out`, as they are.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) {
        copy(self.leaf.bucket(bucket), out);
    }

    /// Appends the bytes of all buckets to `out`, as they are.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) {
        copy(self.leaf.words(), out);
    }

    /// Whether entries were passed on from this bucket.
    pub(crate) fn passed(&self, bucket: usize) -> bool {
        // Ordering: Relaxed, see above.
        let head = self.leaf.bucket(bucket)[0].load(Relaxed);
        u64::from_le(head) & 0xFF00 != 0
    }
}

fn copy(words: &[AtomicU64], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + words.len() * 8, 0);
    for (to, word) in out[from..].chunks_exact_mut(8).zip(words) {
        // Ordering: Relaxed, see above.
        to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
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
        match hit.handle {
            Some(handle) => self.object(handle).value(),
            None => {
                let at = hit.bucket * self.leaf.shape().bucket();
                &self.bytes()[at + hit.value.0..at + hit.value.1]
            }
        }
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
        debug_assert!(hit.handle.is_none() && hit.value_len() == value.len());
        self.changed = true;
        write(self.leaf.bucket(hit.bucket), hit.value.0, value);
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
        let lane = (from >> shape.unit()) as u16 | u16::from(tag) << 8 | mark;
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
        let bucket = self.leaf.bucket(hit.bucket);
        let n = self.leaf.entries(bucket);
        let from = place(steady(bucket, hit.lane), unit);
        let end = match hit.lane {
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
        for i in hit.lane + 1..=n {
            set_lane(bucket, i - 1, steady(bucket, i) + (gap >> unit) as u16);
        }
        set_lane(bucket, 0, steady(bucket, 0) - 1);
        self.pass(shape.place(hash).0, hit.bucket, -1);
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
