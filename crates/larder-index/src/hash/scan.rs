//! How a scan reads the leaves of the hash order.
//!
//! The buckets that the scan needs are copied as they are into the batch's bytes, and checked: from
//! then on they are plain bytes, and the batch's entries point into them. Buckets lie in the order
//! of hashes; within one home the tags do, and where tags are equal the hashes are made. A scan
//! that wants few entries copies few buckets.
//!
//! 1. Find the leaf that has the bound's hash, and its version.
//! 2. Copy its buckets, and check the version: from here on nothing is torn.
//! 3. For each home bucket, in order: collect its entries, at home and displaced; leave out those
//!    before the bound; sort by tags, and ties by hash and key.
//! 4. Make entries of the batch of them, until it is full.
//! 5. Note where the scan goes on: behind the last entry, or at the first hash of the next leaf. A
//!    leaf without such an entry is passed over.
//!
//! Invariant: positions don't depend on leaves. A scan that goes on at one misses nothing and
//! repeats nothing, whatever has become of the leaves.
//!
//! A scan that takes entries in any order (`Batch::any_order`) reads a leaf's as its slot entries
//! have them: nothing is sorted, no displaced entry is brought home and no hash is made. Such a
//! batch is the whole leaf, from a position that is the leaf's first.

use super::key_rule::{KeyRule, Keys};
use super::plain;
use super::shape::{Shape, DISPLACED, HASH_BITS, OUTSIDE, TAG};
use crate::hash::leaf::HashView;
use crate::hash::HashOrder;
use crate::outside::{Handle, Outside};
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::traits::HASH;
use crate::{Batch, Direction, Seen, Start};
use crossbeam_epoch::Guard;
use smallvec::{smallvec, SmallVec};
use std::cmp::Ordering;

/// A scan that wants at most this many entries copies bucket by bucket.
const FEW: usize = 64;
/// A scan's batch ends before its bytes pass this, if it has an entry.
const BATCH_BYTES: usize = 1 << 20;
/// An outside object is asked for so many before it is copied.
const AHEAD: usize = 2;
/// A home with at most this many entries is sorted by ranks.
const RANKED: usize = 16;
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

/// An entry of a home, in the batch's bytes: its tag, whether it is outside, its length and where
/// it begins, in one word, so that words are in the order of tags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PackedEntry(u64);

impl PackedEntry {
    /// From an entry's slot entry, and where it lies in the batch's bytes.
    #[inline(always)]
    fn new(slot: u16, from: usize, end: usize) -> Self {
        let (tag, outside) = (u64::from(slot & TAG), u64::from(slot & OUTSIDE != 0));
        PackedEntry(tag << 48 | outside << 52 | ((end - from) as u64) << 32 | from as u64)
    }
    #[inline(always)]
    fn tag(self) -> u8 {
        (self.0 >> 56) as u8
    }
    #[inline(always)]
    fn outside(self) -> bool {
        self.0 >> 52 & 1 != 0
    }
    #[inline(always)]
    fn from(self) -> usize {
        self.0 as u32 as usize
    }
    #[inline(always)]
    fn end(self) -> usize {
        self.from() + ((self.0 >> 32) as usize & 0xF_FFFF)
    }
}

/// Entries of a bucket or of a home: the words of [`PackedEntry`].
///
/// There are always `MOST` words, or as many as were ever needed, of which the first `len` count:
/// so that one can be written before it is known to be needed.
struct Group {
    words: Vec<u64>,
    len: usize,
}

impl Group {
    /// The most entries that a bucket can say that it has.
    const MOST: usize = 255;

    fn new(mut words: Vec<u64>) -> Self {
        words.resize(words.len().max(Group::MOST), 0);
        Group { words, len: 0 }
    }

    fn push(&mut self, word: u64) {
        match self.words.get_mut(self.len) {
            Some(place) => *place = word,
            None => self.words.push(word),
        }
        self.len += 1;
    }
}

impl std::ops::Deref for Group {
    type Target = [u64];
    #[inline(always)]
    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl std::ops::DerefMut for Group {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.len]
    }
}

/// The displaced entries of a leaf, by their homes: a chain for each home.
struct DisplacedEntries {
    /// The first of each home's chain, from 1; 0 for none.
    first: SmallVec<[u32; 128]>,
    /// The word of each, and the next of its chain.
    all: SmallVec<[(u64, u32); 64]>,
}

impl DisplacedEntries {
    fn new(homes: usize) -> Self {
        DisplacedEntries {
            first: smallvec![0; homes],
            all: SmallVec::new(),
        }
    }

    #[inline]
    fn add(&mut self, home: usize, found: PackedEntry) {
        let next = std::mem::replace(&mut self.first[home], self.all.len() as u32 + 1);
        self.all.push((found.0, next));
    }

    /// Those of a home.
    #[inline]
    fn at_home(&self, home: usize) -> impl Iterator<Item = u64> + '_ {
        let mut next = self.first[home];
        std::iter::from_fn(move || {
            let &(word, behind) = self.all.get((next as usize).checked_sub(1)?)?;
            next = behind;
            Some(word)
        })
    }
}

/// The first bound of a scan; None if nothing can lie behind it.
fn bound(start: Start<'_>, forward: bool) -> Option<ScanBound<'_>> {
    let (position, with) = match start {
        Start::Edge => {
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
    if !forward && !with && key.is_empty() {
        // Strictly before all under this hash.
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
    let mut few = forward && batch.limit() <= FEW;
    let backoff = Backoff::new();
    loop {
        // What an attempt before this one has read was torn, or nothing.
        batch.bytes.clear();
        batch.entries.clear();
        batch.unordered = false;
        // (1)
        let leaf = index.trie.find(bound.hash, guard);
        let ended = leaf.read().map_err(|_| Torn).and_then(|view| {
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
                few: few && shape.buckets > 2,
            };
            // (2) to (4)
            if batch.any_order && whole && reader.read_unordered(batch)? {
                return Ok(Ended::Leaf);
            }
            reader.read(batch)
        });
        let Ok(ended) = ended else {
            // Others are at work: fewer checks are needed when all is copied at once.
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
    let last = batch.len() - 1;
    let hash = keys.hash(batch.key(last));
    let (from, end, _) = batch.entries[last];
    batch.resume.extend_from_slice(&hash.to_be_bytes()[..HASH]);
    batch.resume.extend_from_slice(&batch.bytes[from..end]);
    if forward {
        // Keys are prefix-free: nothing lies between.
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
        let mut much = 0;
        batch.entries.reserve(self.view.count());
        for bucket in 0..self.shape.buckets as usize {
            let place = bucket * self.shape.bucket();
            // (4) Entries as they lie. Places of outside objects are kept, and filled below.
            for (slot, from, end) in plain::slot_entries(&batch.bytes, place, self.shape) {
                let body = &batch.bytes[from..end];
                let mut entry = (0, 0, 0);
                if slot & OUTSIDE == 0 {
                    let key = self.keys.key_in(body);
                    entry = (from + key.start, from + key.end, end);
                } else {
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    outside.push((batch.entries.len(), handle));
                    // A handle is followed only while the version says that it is alive.
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
        let (mut bytes, mut at, mut limit) = (0, home, batch.limit());
        let mut ended = Ended::Leaf;
        batch.entries.reserve(self.view.count().min(limit));
        let displaced = self.displaced(batch, group)?;
        'homes: loop {
            // (3) Only the bound's own home can have entries before the bound.
            let bound = (at == home).then_some(tag);
            self.collect((at, bound), &displaced, &mut copied, batch, group)?;
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
                    let handle = self.handle(found, batch);
                    outside.push((batch.len(), handle));
                    bytes += self.view.object(handle)?.memory();
                    batch.entries.push((0, 0, 0));
                    if bytes > BATCH_BYTES {
                        limit = batch.len();
                    }
                } else {
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
        let place = self.place(home, copied, batch)?;
        // Those at home.
        self.sift(place, 0, batch, group);
        // Those that were passed on from here.
        if plain::passed(&batch.bytes, place) {
            match displaced {
                Some(displaced) => displaced.at_home(home).for_each(|word| group.push(word)),
                None => self.collect_displaced(home, copied, batch, group)?,
            }
        }
        // In the bound's home: only those behind it.
        if let Some(tag) = bound {
            self.keep_beyond(tag, batch, group)?;
        }
        // Tags follow the hash; only equal ones need hashes and keys.
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
        let mut displaced = DisplacedEntries::new(self.shape.buckets as usize);
        let size = self.shape.bucket();
        for before in 0..self.shape.buckets as usize {
            // Displaced entries come by way of the bucket before.
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

    /// What was passed on from a home: it is among the displaced entries of those behind.
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
                if slot & DISPLACED != 0 && self.shape.place(self.hash(found, batch)?).0 == home {
                    group.push(found.0);
                }
            }
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
        // Behind the last bucket comes the first: then all are copied.
        let i = bucket.checked_sub(copied.first).ok_or(Torn)?;
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
        // Equal tags: hash and key decide. The bound's own key belongs to the scan if it is said
        // to.
        let key = self.key(found, batch)?;
        if let Some((bound, with)) = self.bound.key {
            if key == bound {
                return Ok(with);
            }
        }
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

/// Sorts entries by their tags. Whether two have the same.
#[inline(always)]
fn sort(group: &mut [u64]) -> bool {
    // A home has few entries, unless hashes are much alike.
    if group.len() > RANKED {
        group.sort_unstable();
    } else {
        sort_few(group);
    }
    let tags = |pair: &[u64]| (pair[0] ^ pair[1]) >> 56;
    group
        .windows(2)
        .fold(false, |tie, pair| tie | (tags(pair) == 0))
}

/// Sorts a few entries by their tags: each goes to the place that is its rank. Tags are random, so
/// each comparison that chose a way would choose the wrong one half of the time.
#[inline(always)]
fn sort_few(group: &mut [u64]) {
    let (mut keys, mut words) = ([i16::MAX; RANKED], [0; RANKED]);
    for (i, &word) in group.iter().enumerate() {
        // Tags have six bits. No two are alike with their places.
        (keys[i], words[i]) = ((word >> 56 << 4) as i16 | i as i16, word);
    }
    let mut ranks = [0i16; RANKED];
    for &other in &keys[..group.len()] {
        for (rank, &key) in ranks.iter_mut().zip(&keys) {
            *rank += i16::from(other < key);
        }
    }
    for i in 0..group.len() {
        group[ranks[i] as usize] = words[i];
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_home_is_sorted_by_tags(tags in prop::collection::vec(0..64u64, 0..40)) {
            let found = |(i, tag): (usize, u64)| tag << 56 | (i as u64 * 7 % 41);
            let mut group: Vec<u64> = tags.iter().copied().enumerate().map(found).collect();
            let (mut all, mut wanted) = (group.clone(), tags);
            let tie = sort(&mut group);
            wanted.sort_unstable();
            prop_assert_eq!(tie, wanted.windows(2).any(|pair| pair[0] == pair[1]));
            prop_assert_eq!(group.iter().map(|word| word >> 56).collect::<Vec<_>>(), wanted);
            group.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(group, all);
        }

        #[test]
        fn displaced_entries_are_found_by_their_homes(homes in prop::collection::vec(0..9usize, 0..80)) {
            let mut displaced = DisplacedEntries::new(9);
            for (i, &home) in homes.iter().enumerate() {
                displaced.add(home, PackedEntry(i as u64));
            }
            for home in 0..9 {
                let mut found: Vec<u64> = displaced.at_home(home).collect();
                found.reverse();
                let right = homes.iter().enumerate().filter(|displaced| *displaced.1 == home);
                prop_assert_eq!(found, right.map(|displaced| displaced.0 as u64).collect::<Vec<_>>());
            }
        }
    }
}
