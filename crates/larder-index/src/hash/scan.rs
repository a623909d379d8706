//! How a scan reads the leaves of the hash order.
//!
//! ```text
//!  batch.bytes     bucket h | bucket h+1 | … | bucket k |  position, value | position, value
//!                  copied as they are                      outside objects, behind all buckets
//!  batch.entries   (key from, value from, end)             in the order of positions
//! ```
//!
//! Copied buckets are checked once. From then on they are plain bytes, and the batch's entries
//! point into them. A scan that wants few entries copies few buckets.
//!
//! 1. Find the leaf that has the bound's hash, and its version.
//! 2. Copy its buckets, and check the version: from here on nothing is torn.
//! 3. For each home bucket, in order: collect its entries, at home and displaced; leave out those
//!    before the bound; sort by tags, and ties by hash and key.
//! 4. Make entries of the batch of them, until it is full.
//! 5. Note where the scan goes on: behind the last entry, or at the first hash of the next leaf. A
//!    leaf without such an entry is passed over.
//!
//! Invariants:
//! 1. Positions don't depend on leaves. A scan that goes on at one misses nothing and repeats
//!    nothing, whatever has become of the leaves.
//! 2. Homes lie in the order of hashes, and so do the tags of one home. So a home is sorted by
//!    itself, and only equal tags need hashes and keys.
//! 3. Copied buckets lie side by side from the beginning of the batch's bytes. Nothing else is
//!    appended before the last bucket was copied.
//! 4. All of a batch is of one version of one leaf: buckets that are copied later are checked
//!    against the same version as the first.
//!
//! A scan that takes entries in any order (`Batch::any_order`) reads a leaf's as its slot entries
//! have them: nothing is sorted, no displaced entry is brought home and no hash is made. Such a
//! batch is the whole leaf, from a position that is the leaf's first.
//!
//! When not to use it: for one entry. `HashView::next` (in `successor`) finds the entry behind a
//! position without copying a bucket.

use super::key_rule::{KeyRule, Keys};
use super::plain;
use super::shape::{Shape, DISPLACED, HASH_BITS, OUTSIDE};
use crate::hash::group::{sort, DisplacedEntries, Group, PackedEntry};
use crate::hash::leaf::HashView;
use crate::hash::HashOrder;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::traits::HASH;
use crate::{Batch, Direction, Seen, Start};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// A scan that wants at most this many entries copies bucket by bucket.
const FEW: usize = 64;
/// Once a batch's outside objects have more bytes than this, it takes no further entry.
const BATCH_BYTES: usize = 1 << 20;
/// An outside object is asked for so many before it is copied.
const AHEAD: usize = 2;
/// The step between hashes that count.
const STEP: u64 = 1 << (64 - HASH_BITS);

/// Where the scan's part of the index begins.
#[derive(Clone, Copy)]
struct ScanBound<'a> {
    hash: u64,
    /// A key under this hash, and whether an entry under it belongs to the scan. None: all under
    /// this hash do.
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

/// The first bound of a scan; None if nothing can lie behind it.
fn bound(start: Start<'_>, forward: bool) -> Option<ScanBound<'_>> {
    let (position, with) = match start {
        Start::Edge => {
            // The first hash that counts, or the last one.
            let hash = if forward { 0 } else { !(STEP - 1) };
            return Some(ScanBound { hash, key: None });
        }
        Start::At(position) => (position, true),
        Start::Past(position) => (position, false),
    };
    // A missing part of the hash is zeros.
    let n = position.len().min(HASH);
    let mut hash = [0; 8];
    hash[..n].copy_from_slice(&position[..n]);
    let (hash, key) = (u64::from_be_bytes(hash), &position[n..]);
    // Backward and without a key: the position is the first under its hash.
    if !forward && !with && key.is_empty() {
        // So the scan begins with all under the hash before, if there is one.
        let hash = hash.checked_sub(STEP)?;
        return Some(ScanBound { hash, key: None });
    }
    Some(ScanBound {
        hash,
        key: Some((key, with)),
    })
}

/// As `Unique::scan`.
pub(crate) fn scan<R: KeyRule>(
    index: &HashOrder<R>,
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
    // Buckets are copied one by one upwards only, so a backward scan copies all.
    let mut few = forward && batch.limit() <= FEW;
    let backoff = Backoff::new();
    loop {
        // What an attempt before this one has read was torn, or nothing.
        batch.bytes.clear();
        batch.entries.clear();
        batch.unordered = false;
        // (1)
        let leaf = index.trie.find(bound.hash, guard);
        // An obsolete leaf counts as torn: the loop waits and descends again.
        let ended = leaf.read().map_err(|_| Torn).and_then(|view| {
            // The batch says which version it is of: a later removal may rely on it (`unchanged`).
            batch.seen = Some(Seen {
                index: index.number,
                version: view.version(),
            });
            let shape = leaf.shape();
            // From the leaf's first hash on, all of its entries belong to the scan.
            let whole = forward
                && bound.hash == shape.first_hash(bound.hash)
                && bound.key.is_none_or(|(key, _)| key.is_empty());
            let reader = Reader {
                view,
                shape,
                keys: &index.keys,
                bound,
                forward,
                // One or two buckets are copied at once.
                few: few && shape.buckets > 2,
            };
            // (2) to (4)
            if batch.any_order && whole && reader.read_unordered(batch)? {
                return Ok(Ended::Leaf);
            }
            reader.read(batch)
        });
        // What was read of a leaf that changed meanwhile is dropped as a whole (invariant 4).
        let Ok(ended) = ended else {
            // Others are at work, or a walk went round the leaf's end: copied at once, a leaf needs
            // a single check and has every bucket.
            few = false;
            backoff.snooze();
            continue;
        };
        // (5)
        if ended == Ended::Batch {
            resume_after_last(&index.keys, forward, batch);
            return;
        }
        // The end of the leaf: the next one begins where its range ends.
        // Ranges of leaves meet without gaps, and a leaf's never changes.
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
            // Nothing in this leaf lies behind the bound: on in the next one.
            Some(hash) if batch.is_empty() => bound = ScanBound { hash, key: None },
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
fn resume_after_last<R: KeyRule>(keys: &Keys<R>, forward: bool, batch: &mut Batch) {
    // A full batch has an entry: the limit is one at least.
    let last = batch.len() - 1;
    let hash = keys.hash(batch.key(last));
    let (from, end, _) = batch.entries[last];
    batch.resume.extend_from_slice(&hash.to_be_bytes()[..HASH]);
    // A position is the hash that counts and the key; the batch keeps no hashes.
    batch.resume.extend_from_slice(&batch.bytes[from..end]);
    if forward {
        // Keys are prefix-free: nothing lies between the key and the key with one byte more.
        batch.resume.push(0);
    }
}

/// The reading of one leaf.
struct Reader<'a, 'g, R> {
    view: HashView<'g>,
    shape: Shape,
    keys: &'a Keys<R>,
    bound: ScanBound<'a>,
    forward: bool,
    /// Copy bucket by bucket.
    few: bool,
}

/// The buckets that were copied to the beginning of the batch's bytes.
struct Copied {
    first: usize,
    count: usize,
}

impl<'g, R: KeyRule> Reader<'_, 'g, R> {
    fn read(&self, batch: &mut Batch) -> Result<Ended, Torn> {
        // The batch lends its own words: a scan of many leaves allocates them once.
        let mut group = Group::new(std::mem::take(&mut batch.order));
        let ended = self.read_by(batch, &mut group);
        batch.order = group.words;
        ended
    }

    /// Reads all entries of the leaf as its slot entries have them. False, and the batch is empty,
    /// if they are too much for one batch.
    fn read_unordered(&self, batch: &mut Batch) -> Result<bool, Torn> {
        // (2)
        self.view.copy_buckets(&mut batch.bytes);
        self.check(())?;
        let mut outside = SmallVec::<[(usize, Handle); 4]>::new();
        // Outside objects come behind the last bucket; until then they are counted, not copied.
        let mut much = 0;
        batch.entries.reserve(self.view.count());
        for bucket in 0..self.shape.buckets as usize {
            // Invariant 3: all buckets were copied, from the first on.
            let place = bucket * self.shape.bucket();
            // (4) Entries as they lie. Places of outside objects are kept, and filled below.
            for (slot, from, end) in plain::slot_entries(&batch.bytes, place, self.shape) {
                let body = &batch.bytes[from..end];
                let mut entry = (0, 0, 0);
                if slot & OUTSIDE == 0 {
                    // The bytes were checked, so lengths in them are those of the leaf.
                    let key = self.keys.key_in(body);
                    entry = (from + key.start, from + key.end, end);
                } else {
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    outside.push((batch.entries.len(), handle));
                    // `object` checks the version: a handle of an older one may be retired, and by
                    // now freed.
                    much += self.view.object(handle)?.memory();
                    if much > BATCH_BYTES {
                        break;
                    }
                }
                batch.entries.push(entry);
            }
        }
        // Too much for one batch: the caller reads the leaf in order, in parts.
        batch.unordered = much <= BATCH_BYTES;
        if batch.unordered {
            self.append_outside(&outside, batch)?;
        } else {
            batch.bytes.clear();
            batch.entries.clear();
        }
        Ok(batch.unordered)
    }

    /// Puts outside objects in the places that the batch keeps for them.
    fn append_outside(&self, outside: &[(usize, Handle)], batch: &mut Batch) -> Result<(), Torn> {
        // The epoch keeps objects alive that the version still names: each is checked when
        // followed.
        for (n, &(i, handle)) in outside.iter().enumerate() {
            if let Some(&(_, later)) = outside.get(n + AHEAD) {
                self.view.object(later)?.prefetch();
            }
            append(i, self.view.object(handle)?, batch);
        }
        Ok(())
    }

    fn read_by(&self, batch: &mut Batch, group: &mut Group) -> Result<Ended, Torn> {
        let (home, tag) = self.shape.place(self.bound.hash);
        // (2)
        let mut copied = self.copy_first(home, batch)?;
        let mut outside = SmallVec::<[(usize, Handle); 4]>::new();
        // Homes before the bound's have lesser positions, those behind it greater ones: the walk
        // begins there and needs no other comparison with the bound.
        let (mut bytes, mut at, mut limit) = (0, home, batch.limit());
        let mut ended = Ended::Leaf;
        batch.entries.reserve(self.view.count().min(limit));
        // A leaf that was copied as a whole has its displaced entries brought home in one pass.
        let displaced = self.displaced(batch, group)?;
        'homes: loop {
            // (3) Only the bound's own home can have entries before the bound.
            let bound = (at == home).then_some(tag);
            self.collect((at, bound), &displaced, &mut copied, batch, group)?;
            // Within a home the order is ascending.
            if !self.forward {
                group.reverse();
            }
            let group = || group.iter().map(|&found| PackedEntry(found));
            // Nearly always none is outside, which is found without a branch for each.
            if group().fold(false, |any, found| any | found.outside()) {
                for found in group().filter(|found| found.outside()) {
                    self.handle(found, batch).prefetch();
                }
            }
            // (4)
            for found in group() {
                if batch.entries.len() >= limit {
                    ended = Ended::Batch;
                    break 'homes;
                }
                if found.outside() {
                    // The entry is a place that `append_outside` fills, for nothing may lie between
                    // copied buckets (invariant 3).
                    let handle = self.handle(found, batch);
                    outside.push((batch.len(), handle));
                    bytes += self.view.object(handle)?.memory();
                    batch.entries.push((0, 0, 0));
                    if bytes > BATCH_BYTES {
                        // The entry that passes the bound is still given, so each batch has one.
                        limit = batch.len();
                    }
                } else {
                    // Its bytes stay where they were copied.
                    let (from, end) = (found.from(), found.end());
                    let key = self.keys.key_in(&batch.bytes[from..end]);
                    let entry = (from + key.start, from + key.end, end);
                    batch.entries.push(entry);
                }
            }
            match self.next_home(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        // No bucket is copied from here on.
        self.append_outside(&outside, batch)?;
        Ok(ended)
    }

    /// All entries of a home that belong to the scan, in the order of positions. `bound` is the
    /// bound's tag, in its home.
    #[inline(always)]
    fn collect(
        &self,
        (home, bound): (usize, Option<u8>),
        displaced: &Option<DisplacedEntries>,
        copied: &mut Copied,
        batch: &mut Batch,
        group: &mut Group,
    ) -> Result<(), Torn> {
        // Copied and checked: what follows reads plain bytes.
        let place = self.place(home, copied, batch)?;
        // Those at home. The group is replaced, not added to.
        self.sift(place, 0, batch, group);
        // A bucket that has passed nothing on has all of its home's entries, which most have.
        if plain::passed(&batch.bytes, place) {
            match displaced {
                Some(displaced) => displaced.at_home(home).for_each(|word| group.push(word)),
                None => self.collect_displaced(home, copied, batch, group)?,
            }
        }
        // Only in the bound's home can entries lie before the bound.
        if let Some(tag) = bound {
            self.keep_beyond(tag, batch, group)?;
        }
        // Tags follow the hash (invariant 2); only equal ones need hashes and keys.
        if sort(group) {
            self.sort_ties(group, batch)?;
        }
        Ok(())
    }

    /// Puts the entries of a bucket in the place of the group: its displaced entries, or those who
    /// are at home.
    #[inline(always)]
    fn sift(&self, place: usize, displaced: u16, batch: &Batch, group: &mut Group) {
        // Which entries are displaced can't be foretold: each is written, and the next one over it
        // if it isn't wanted.
        let (words, mut kept) = (&mut group.words[..Group::MOST], 0);
        for (slot, from, end) in plain::slot_entries(&batch.bytes, place, self.shape) {
            words[kept] = PackedEntry::new(slot, from, end).0;
            kept += usize::from(slot & DISPLACED == displaced);
        }
        group.len = kept;
    }

    /// All displaced entries of a leaf, if all of it was copied.
    fn displaced(
        &self,
        batch: &Batch,
        group: &mut Group,
    ) -> Result<Option<DisplacedEntries>, Torn> {
        if self.few {
            return Ok(None);
        }
        // Their homes are not stored, so each needs its hash: once here, not once for each home.
        let mut displaced = DisplacedEntries::new(self.shape.buckets as usize);
        let size = self.shape.bucket();
        for before in 0..self.shape.buckets as usize {
            // A displaced entry was passed on by each bucket from its home up to the one before its
            // own: so without a mark there, this bucket has none.
            if !plain::passed(&batch.bytes, before * size) {
                continue;
            }
            self.sift(self.shape.next(before) * size, DISPLACED, batch, group);
            for &found in group.iter() {
                let hash = self.hash(PackedEntry(found), batch)?;
                displaced.add(self.shape.place(hash).0, PackedEntry(found));
            }
        }
        Ok(Some(displaced))
    }

    /// Adds what was passed on from a home: it is among the displaced entries of the buckets behind
    /// it. Copies them if need be.
    #[inline(never)]
    fn collect_displaced(
        &self,
        home: usize,
        copied: &mut Copied,
        batch: &mut Batch,
        group: &mut Group,
    ) -> Result<(), Torn> {
        // They lie in the next buckets, up to one that has passed nothing on.
        let mut at = self.shape.next(home);
        while at != home {
            let place = self.place(at, copied, batch)?;
            for (slot, from, end) in plain::slot_entries(&batch.bytes, place, self.shape) {
                let found = PackedEntry::new(slot, from, end);
                // Displaced entries of other homes lie here, too: only the hash says whose they
                // are.
                if slot & DISPLACED != 0 && self.shape.place(self.hash(found, batch)?).0 == home {
                    group.push(found.0);
                }
            }
            // No entry of this home has gone past a bucket that passed nothing on.
            if !plain::passed(&batch.bytes, place) {
                break;
            }
            at = self.shape.next(at);
        }
        Ok(())
    }

    /// Keeps what lies on the scan's side of the bound, which is at home here.
    #[inline(never)]
    fn keep_beyond(&self, tag: u8, batch: &Batch, group: &mut Group) -> Result<(), Torn> {
        // `kept` never passes `i`: nothing is overwritten before it was looked at.
        let mut kept = 0;
        for i in 0..group.len() {
            if self.belongs(tag, PackedEntry(group[i]), batch)? {
                group[kept] = group[i];
                kept += 1;
            }
        }
        group.len = kept;
        Ok(())
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
            self.view.copy_bucket(home, &mut batch.bytes);
            Copied {
                first: home,
                count: 1,
            }
        } else {
            self.view.copy_buckets(&mut batch.bytes);
            Copied {
                first: 0,
                count: self.shape.buckets as usize,
            }
        };
        self.check(copied)
    }

    fn check<T>(&self, value: T) -> Result<T, Torn> {
        if self.view.is_valid() {
            Ok(value)
        } else {
            Err(Torn)
        }
    }

    /// Where the bucket lies in the batch's bytes; it is copied if it isn't there yet.
    fn place(&self, bucket: usize, copied: &mut Copied, batch: &mut Batch) -> Result<usize, Torn> {
        // A walk that goes round the end asks for a bucket before the first that was copied, which
        // can't be put in front: torn, so the scan begins again and copies all.
        let i = bucket.checked_sub(copied.first).ok_or(Torn)?;
        // Without a gap, so that a bucket's place follows from its number (invariant 3).
        while copied.count <= i {
            self.view
                .copy_bucket(copied.first + copied.count, &mut batch.bytes);
            copied.count += 1;
        }
        self.check(i * self.shape.bucket())
    }

    fn handle(&self, found: PackedEntry, batch: &Batch) -> Handle {
        Handle::from_bits(plain::handle_bits(&batch.bytes[found.from()..found.end()]))
    }

    /// The key of an entry.
    fn key<'b>(&self, found: PackedEntry, batch: &'b Batch) -> Result<&'b [u8], Torn>
    where
        'g: 'b,
    {
        if found.outside() {
            return Ok(self.view.object(self.handle(found, batch))?.position());
        }
        let body = &batch.bytes[found.from()..found.end()];
        Ok(&body[self.keys.key_in(body)])
    }

    fn hash(&self, found: PackedEntry, batch: &Batch) -> Result<u64, Torn> {
        Ok(self.keys.hash(self.key(found, batch)?))
    }

    /// Whether an entry of the bound's home is on the scan's side of the bound, whose tag is given.
    fn belongs(&self, tag: u8, found: PackedEntry, batch: &Batch) -> Result<bool, Torn> {
        if found.tag() != tag {
            return Ok((found.tag() > tag) == self.forward);
        }
        // Equal tags: hash and key decide. The bound's own key belongs to the scan if the bound
        // says so. It is compared first: equal keys need no hash.
        let key = self.key(found, batch)?;
        if let Some((bound, with)) = self.bound.key {
            if key == bound {
                return Ok(with);
            }
        }
        // Without a key, the bound has all entries under its hash on the scan's side.
        let order = match (self.keys.hash(key).cmp(&self.bound.hash), self.bound.key) {
            (Ordering::Equal, None) => return Ok(true),
            (Ordering::Equal, Some((bound, _))) => key.cmp(bound),
            (order, _) => order,
        };
        Ok(order.is_gt() == self.forward)
    }

    /// Sorts what has equal tags in a group that is sorted by tags.
    #[cold]
    fn sort_ties(&self, group: &mut Group, batch: &Batch) -> Result<(), Torn> {
        // Runs of equal tags are sorted each by itself; the order of tags stays.
        let same = |a: u64, b: u64| PackedEntry(a).tag() == PackedEntry(b).tag();
        let mut from = 0;
        while let Some(pair) = group[from..].windows(2).position(|w| same(w[0], w[1])) {
            from += pair;
            let run = group[from..].iter();
            let len = run.take_while(|&&word| same(word, group[from])).count();
            self.sort_equals(&mut group[from..from + len], batch)?;
            from += len;
        }
        Ok(())
    }

    /// Sorts entries with equal tags.
    fn sort_equals(&self, equals: &mut [u64], batch: &Batch) -> Result<(), Torn> {
        if let [first, second] = equals {
            // Mostly they are two, whose hashes differ.
            let (a, b) = (
                self.key(PackedEntry(*first), batch)?,
                self.key(PackedEntry(*second), batch)?,
            );
            if (self.keys.hash(a), a) > (self.keys.hash(b), b) {
                std::mem::swap(first, second);
            }
            return Ok(());
        }
        // Each key is hashed once, not once a comparison.
        let mut known: SmallVec<[(u64, &[u8], u64); 8]> = SmallVec::new();
        for &found in equals.iter() {
            let key = self.key(PackedEntry(found), batch)?;
            known.push((self.keys.hash(key), key, found));
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
    let from = batch.bytes.len();
    batch.bytes.extend_from_slice(object.position());
    let middle = batch.bytes.len();
    batch.bytes.extend_from_slice(object.value());
    batch.entries[i] = (from, middle, batch.bytes.len());
}
