//! How a scan reads the leaves of the hash order.
//!
//! The buckets that the scan needs are copied as they are into the batch's bytes, and checked: from then on they are plain bytes, and the
//! batch's entries point into them. Buckets lie in the order of hashes; within one home the tags do, and where tags are equal the hashes are
//! made. A scan that wants few entries copies few buckets.

use super::gather::Keys;
use super::plain;
use super::shape::{Shape, HASH_BITS};
use crate::hash_order::HashOrder;
use crate::raw::bucket_leaf::Look;
use crate::raw::outside::{Handle, Outside};
use crate::raw::words::Torn;
use crate::sync::Backoff;
use crate::traits::HASH;
use crate::{Batch, Direction, Start};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// A scan that wants at most this many entries copies bucket by bucket.
const FEW: usize = 8;
/// A scan's batch ends before its bytes pass this, if it has an entry.
const BATCH_BYTES: usize = 1 << 20;
/// The step between hashes that count.
const STEP: u64 = 1 << (64 - HASH_BITS);

/// Where the scan's part of the index begins.
#[derive(Clone, Copy)]
struct Bound<'a> {
    hash: u64,
    /// A key under this hash, and whether an entry under it belongs to the scan. None: all under this hash do.
    key: Option<(&'a [u8], bool)>,
}

/// Why the reading of a leaf ended.
#[derive(PartialEq)]
enum Ended {
    /// There is no more in it.
    Leaf,
    /// The batch is full.
    Batch,
}

/// An entry of a home, in the batch's bytes.
#[derive(Clone, Copy)]
struct Found {
    tag: u8,
    outside: bool,
    from: u32,
    end: u32,
}

type Group = SmallVec<[Found; 32]>;

/// The first bound of a scan; None if nothing can lie behind it.
fn bound(start: Start<'_>, forward: bool) -> Option<Bound<'_>> {
    let (position, with) = match start {
        Start::Edge => {
            let hash = if forward { 0 } else { !(STEP - 1) };
            return Some(Bound { hash, key: None });
        }
        Start::At(position) => (position, true),
        Start::Past(position) => (position, false),
    };
    // A missing part of the hash is zeros.
    let n = position.len().min(HASH);
    let mut hash = [0; 8];
    hash[..n].copy_from_slice(&position[..n]);
    let (hash, key) = (u64::from_be_bytes(hash), &position[n..]);
    if !forward && !with && key.is_empty() {
        // Strictly before all under this hash.
        let hash = hash.checked_sub(STEP)?;
        return Some(Bound { hash, key: None });
    }
    Some(Bound {
        hash,
        key: Some((key, with)),
    })
}

/// As `Unique::scan`.
pub(crate) fn scan(
    index: &HashOrder,
    guard: &Guard,
    start: Start<'_>,
    direction: Direction,
    batch: &mut Batch,
) {
    let forward = direction == Direction::Forward;
    batch.clear();
    let Some(mut bound) = bound(start, forward) else {
        batch.done = true;
        return;
    };
    let mut few = forward && batch.limit() <= FEW;
    let backoff = Backoff::new();
    loop {
        batch.bytes.clear();
        batch.entries.clear();
        let leaf = index.trie.find(bound.hash, guard);
        let ended = leaf.read().map_err(|_| Torn).and_then(|look| {
            let shape = leaf.shape();
            let reader = Reader {
                look,
                shape,
                keys: &index.keys,
                bound,
                forward,
                few: few && shape.buckets > 2,
            };
            reader.read(batch)
        });
        let Ok(ended) = ended else {
            // Others are at work: fewer checks are needed when all is copied at once.
            few = false;
            backoff.snooze();
            continue;
        };
        if ended == Ended::Batch {
            resume_after_last(&index.keys, forward, batch);
            return;
        }
        let next = if forward {
            leaf.shape().end_hash(bound.hash)
        } else {
            leaf.shape().first_hash(bound.hash).checked_sub(STEP)
        };
        match next {
            None => {
                batch.done = true;
                return;
            }
            Some(hash) if batch.is_empty() => bound = Bound { hash, key: None },
            Some(hash) => {
                // Backward, the scan goes on strictly before the leaf's first hash.
                let hash = if forward { hash } else { hash + STEP };
                batch.resume.extend_from_slice(&hash.to_be_bytes()[..HASH]);
                return;
            }
        }
    }
}

/// Notes the position of the last entry, or the first after it.
fn resume_after_last(keys: &Keys, forward: bool, batch: &mut Batch) {
    let last = batch.len() - 1;
    let hash = keys.hash(batch.key(last));
    let (from, end, _) = batch.entries[last];
    batch.resume.extend_from_slice(&hash.to_be_bytes()[..HASH]);
    batch
        .resume
        .extend_from_slice(&batch.bytes[from as usize..end as usize]);
    if forward {
        // Keys are prefix-free: nothing lies between.
        batch.resume.push(0);
    }
}

/// The reading of one leaf.
struct Reader<'a, 'g> {
    look: Look<'g>,
    shape: Shape,
    keys: &'a Keys,
    bound: Bound<'a>,
    forward: bool,
    /// Copy bucket by bucket.
    few: bool,
}

/// The buckets that were copied to the beginning of the batch's bytes.
struct Copied {
    first: usize,
    count: usize,
}

impl<'g> Reader<'_, 'g> {
    fn read(&self, batch: &mut Batch) -> Result<Ended, Torn> {
        let (home, tag) = self.shape.place(self.bound.hash);
        let mut copied = self.copy_first(home, batch)?;
        let mut outside: SmallVec<[(usize, Handle); 8]> = SmallVec::new();
        let mut bytes = 0;
        let mut at = home;
        let mut ended = Ended::Leaf;
        'homes: loop {
            let mut group = self.group(at, &mut copied, batch)?;
            if at == home {
                self.cut(tag, &mut group, batch)?;
            }
            self.sort(&mut group, batch)?;
            for found in group {
                if batch.len() >= batch.limit() || bytes > BATCH_BYTES {
                    ended = Ended::Batch;
                    break 'homes;
                }
                let (from, end) = (found.from as usize, found.end as usize);
                if found.outside {
                    let handle = self.handle(&found, batch);
                    outside.push((batch.len(), handle));
                    bytes += self.look.object(handle)?.memory();
                    batch.entries.push((0, 0, 0));
                } else {
                    let key = self.keys.key_in(&batch.bytes[from..end]);
                    let entry = (
                        (from + key.start) as u32,
                        (from + key.end) as u32,
                        found.end,
                    );
                    batch.entries.push(entry);
                }
            }
            match self.next_home(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        for (i, handle) in outside {
            append(i, self.look.object(handle)?, batch);
        }
        Ok(ended)
    }

    fn next_home(&self, at: usize) -> Option<usize> {
        if self.forward {
            Some(at + 1).filter(|&next| next < self.shape.buckets as usize)
        } else {
            at.checked_sub(1)
        }
    }

    /// Copies what is surely needed, and checks it.
    fn copy_first(&self, home: usize, batch: &mut Batch) -> Result<Copied, Torn> {
        let copied = if self.few {
            self.look.copy_bucket(home, &mut batch.bytes);
            Copied {
                first: home,
                count: 1,
            }
        } else {
            self.look.copy_buckets(&mut batch.bytes);
            Copied {
                first: 0,
                count: self.shape.buckets as usize,
            }
        };
        self.check(copied)
    }

    fn check<T>(&self, value: T) -> Result<T, Torn> {
        if self.look.holds() {
            Ok(value)
        } else {
            Err(Torn)
        }
    }

    /// Where the bucket lies in the batch's bytes; it is copied if it isn't there yet.
    fn place(&self, bucket: usize, copied: &mut Copied, batch: &mut Batch) -> Result<usize, Torn> {
        // Behind the last bucket comes the first: then all are copied.
        let i = bucket.checked_sub(copied.first).ok_or(Torn)?;
        while copied.count <= i {
            self.look
                .copy_bucket(copied.first + copied.count, &mut batch.bytes);
            copied.count += 1;
        }
        self.check(i * self.shape.bucket())
    }

    /// Whether the bucket may have entries of other homes.
    fn has_guests(&self, bucket: usize, copied: &Copied, batch: &Batch) -> bool {
        let before = match bucket {
            0 => self.shape.buckets as usize - 1,
            _ => bucket - 1,
        };
        match before.checked_sub(copied.first) {
            Some(i) if i < copied.count => plain::passed(&batch.bytes, i * self.shape.bucket()),
            _ => self.look.passed(before),
        }
    }

    /// All entries of a home, in no order.
    fn group(&self, home: usize, copied: &mut Copied, batch: &mut Batch) -> Result<Group, Torn> {
        let mut group = Group::new();
        let mut at = home;
        loop {
            let guests = self.has_guests(at, copied, batch);
            let place = self.place(at, copied, batch)?;
            for e in plain::entries(&batch.bytes, place, self.shape) {
                let found = Found {
                    tag: e.tag,
                    outside: e.outside,
                    from: e.from as u32,
                    end: e.end as u32,
                };
                if !guests || self.shape.place(self.hash(&found, batch)?).0 == home {
                    group.push(found);
                }
            }
            let passed = plain::passed(&batch.bytes, place);
            at = self.shape.next(at);
            if !passed || at == home {
                return Ok(group);
            }
        }
    }

    fn handle(&self, found: &Found, batch: &Batch) -> Handle {
        let range = found.from as usize..found.end as usize;
        Handle::from_bits(plain::handle_bits(&batch.bytes, range))
    }

    /// The key of an entry.
    fn key<'b>(&self, found: &Found, batch: &'b Batch) -> Result<&'b [u8], Torn>
    where
        'g: 'b,
    {
        if found.outside {
            return Ok(self.look.object(self.handle(found, batch))?.position());
        }
        let body = &batch.bytes[found.from as usize..found.end as usize];
        Ok(&body[self.keys.key_in(body)])
    }

    fn hash(&self, found: &Found, batch: &Batch) -> Result<u64, Torn> {
        Ok(self.keys.hash(self.key(found, batch)?))
    }

    /// Keeps those of the bound's home that belong to the scan. `tag` is the bound's.
    fn cut(&self, tag: u8, group: &mut Group, batch: &Batch) -> Result<(), Torn> {
        let mut kept = Group::new();
        for found in group.iter() {
            let belongs = match (found.tag.cmp(&tag), self.forward) {
                (std::cmp::Ordering::Equal, _) => self.belongs(found, batch)?,
                (order, forward) => order.is_gt() == forward,
            };
            if belongs {
                kept.push(*found);
            }
        }
        *group = kept;
        Ok(())
    }

    fn belongs(&self, found: &Found, batch: &Batch) -> Result<bool, Torn> {
        let key = self.key(found, batch)?;
        let order = match (self.keys.hash(key).cmp(&self.bound.hash), self.bound.key) {
            (std::cmp::Ordering::Equal, None) => return Ok(true),
            (std::cmp::Ordering::Equal, Some((bound, with))) => match key.cmp(bound) {
                std::cmp::Ordering::Equal => return Ok(with),
                order => order,
            },
            (order, _) => order,
        };
        Ok(order.is_gt() == self.forward)
    }

    /// Sorts a group as the scan goes.
    fn sort(&self, group: &mut Group, batch: &Batch) -> Result<(), Torn> {
        group.sort_unstable_by_key(|f| f.tag);
        let mut from = 0;
        for i in 1..=group.len() {
            if i < group.len() && group[i].tag == group[from].tag {
                continue;
            }
            if i - from > 1 {
                self.sort_equals(&mut group[from..i], batch)?;
            }
            from = i;
        }
        if !self.forward {
            group.reverse();
        }
        Ok(())
    }

    /// Sorts entries with equal tags.
    fn sort_equals(&self, equals: &mut [Found], batch: &Batch) -> Result<(), Torn> {
        let mut known: SmallVec<[(u64, &[u8], Found); 8]> = SmallVec::new();
        for found in equals.iter() {
            let key = self.key(found, batch)?;
            known.push((self.keys.hash(key), key, *found));
        }
        known.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        for (to, (_, _, found)) in equals.iter_mut().zip(&known) {
            *to = *found;
        }
        Ok(())
    }
}

/// Puts an outside object in the place that entry `i` of the batch keeps for it.
fn append(i: usize, object: Outside<'_>, batch: &mut Batch) {
    let from = batch.bytes.len() as u32;
    batch.bytes.extend_from_slice(object.position());
    let middle = batch.bytes.len() as u32;
    batch.bytes.extend_from_slice(object.value());
    batch.entries[i] = (from, middle, batch.bytes.len() as u32);
}
