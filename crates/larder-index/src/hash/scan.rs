//! Scans of the hash order.
//!
//! ```text
//!  batch.bytes     bucket h | bucket h+1 | … | bucket k      a copy of the leaf's buckets
//!  batch.entries   in the order of positions
//! ```
//!
//! Once the copied buckets have been validated they are plain bytes, and the entries of the batch
//! point into them, or to outside objects. A scan that needs few entries copies few buckets.
//!
//! 1. Find the leaf whose range has the bound's hash, and load its version.
//! 2. Copy its buckets, and validate the version. From here on nothing is torn.
//! 3. For each home bucket, in order: collect its entries, both those at home and displaced ones.
//!    Drop those before the bound. Sort by tag, and entries with equal tags by hash and key.
//! 4. Append them to the entries of the batch, until it is full.
//! 5. Record where the scan resumes: after the last entry, or at the first hash of the next leaf.
//!    If the leaf has no entry after the bound, continue with the next leaf.
//!
//! Here *before* and *after* are meant in the direction of the scan.
//!
//! Invariants (docs/design.md §4.3):
//! * H2: Homes are in the order of hashes, and so are the tags of one home. So each home is sorted
//!   separately, and only entries with equal tags need their hashes and keys.
//! * **H18** Positions don't depend on leaves. So a scan that resumes at a position neither misses
//!   nor repeats an entry, however the leaves have been split, merged or replaced meanwhile.
//! * **H19** Copied buckets are contiguous at the beginning of the batch's bytes.
//! * **H20** A batch is of one version of one leaf. Buckets that are copied later are validated
//!   against the same version as the first.
//!
//! A scan that needs no order (`Batch::any_order`) takes the entries of a leaf in the order of
//! their slot entries. Nothing is sorted, displaced entries stay where they are, and no hash is
//! computed. Such a batch is a whole leaf. The scan must be at the first position of the leaf.
//!
//! For one entry, `HashView::next_but` (in `successor`) finds the one after the bound without
//! copying a bucket.

use super::key_rule::{KeyProperties, KeyRule};
use super::plain::{self, SlotBody};
use super::shape::{Probe, Shape, DISPLACED, HASH_BITS, OUTSIDE};
use crate::hash::group::{DisplacedEntries, Group, PackedEntry};
use crate::hash::leaf::HashView;
use crate::hash::successor::LowerBound;
use crate::hash::HashOrder;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::traits::{BatchEntry, HASH};
use crate::{Batch, Direction, Seen, Start};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// A scan that needs at most this number of entries copies bucket by bucket.
const FEW: usize = 64;
/// The difference between neighbouring hashes, of which only the top bits are used.
const STEP: u64 = 1 << (64 - HASH_BITS);

/// The position at which a scan begins.
#[derive(Clone, Copy)]
struct ScanBound<'a> {
    hash: u64,
    /// A key with this hash, and whether its own entry belongs to the scan. `None`: all entries
    /// with this hash belong to the scan.
    key: Option<KeyBound<'a>>,
}

/// A key at which a scan starts.
#[derive(Clone, Copy)]
struct KeyBound<'a> {
    key: &'a [u8],
    /// Whether the entry of the key belongs to the scan.
    inclusive: bool,
}

/// An entry among others with its tag. They are in the order of hash and key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct HashedEntry<'a> {
    hash: u64,
    key: &'a [u8],
    /// The word of a [`PackedEntry`].
    entry: u64,
}

/// Why reading a leaf has ended.
#[derive(PartialEq)]
enum LeafEnd {
    /// The leaf has no more entries.
    Leaf,
    /// The batch is full.
    Batch,
}

/// The bound at which a scan starts; `None` if no entry can be past it.
fn bound(start: Start<'_>, forward: bool) -> Option<ScanBound<'_>> {
    let (position, inclusive) = match start {
        Start::Edge => {
            // The first possible hash, or the last one.
            let hash = if forward { 0 } else { !(STEP - 1) };
            return Some(ScanBound { hash, key: None });
        }
        Start::At(position) => (position, true),
        Start::Past(position) => (position, false),
    };
    // If the position is shorter than a hash, the missing bytes are zeros.
    let n = position.len().min(HASH);
    let mut hash = [0; 8];
    hash[..n].copy_from_slice(&position[..n]);
    let (hash, key) = (u64::from_be_bytes(hash), &position[n..]);
    // A backward scan that starts strictly before the first position with this hash begins with all
    // entries of the previous hash.
    if !forward && !inclusive && key.is_empty() {
        let hash = hash.checked_sub(STEP)?;
        return Some(ScanBound { hash, key: None });
    }
    Some(ScanBound {
        hash,
        key: Some(KeyBound { key, inclusive }),
    })
}

/// See [`Unique::scan`](crate::Unique::scan).
pub(crate) fn scan<'g, R: KeyRule>(
    index: &'g HashOrder<R>,
    guard: &'g Guard,
    start: Start<'_>,
    direction: Direction,
    batch: &mut Batch<'g>,
) {
    let forward = direction == Direction::Forward;
    batch.clear();
    let Some(mut bound) = bound(start, forward) else {
        batch.done = true;
        return;
    };
    // Buckets can only be copied one by one in ascending order, so a backward scan copies all.
    let mut few = forward && batch.limit() <= FEW;
    let (backoff, mut passed) = (Backoff::new(), 0);
    loop {
        // Discard what a failed attempt has read.
        batch.bytes.clear();
        batch.entries.clear();
        batch.homes.clear();
        batch.unordered = false;
        // (1) Find the leaf. If it is obsolete, try again.
        let leaf = index.trie.find(bound.hash, guard);
        let reader = leaf.read().map_err(|_| Torn).map(|view| Reader {
            view,
            shape: leaf.shape(),
            keys: &index.keys,
            bound,
            from_edge: matches!(start, Start::Edge),
            forward,
            few,
        });
        // (2) to (4)
        let ended = reader.and_then(|reader| reader.read(index.shared.number.0, batch));
        // The leaf has changed meanwhile: discard the batch (H20). Or displaced entries were
        // wrapped around to the first bucket, which a scan bucket by bucket can't copy any more.
        // Copy the whole leaf the next time: that takes a single validation, and has all buckets.
        let Ok(ended) = ended else {
            few = false;
            backoff.snooze();
            continue;
        };
        // (5) The batch is full: the scan resumes after its last entry.
        if ended == LeafEnd::Batch {
            resume_after_last(&index.keys, forward, batch);
            return;
        }
        // The leaf is at its end: the scan resumes where the leaf's range ends. The range of a leaf
        // never changes, and ranges have no gaps between them.
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
            Some(hash) => {
                // This leaf has no entry after the bound: read the next one, unless that are many
                // by now, and the caller may pause.
                if batch.is_empty() {
                    index.pass_empty(guard, bound.hash, &mut passed);
                    if !batch.pauses_after(passed as usize) {
                        bound = ScanBound { hash, key: None };
                        continue;
                    }
                    batch.clear();
                    batch.skipped = passed as usize;
                }
                // Backward, the scan resumes strictly before the leaf's first hash.
                let hash = if forward { hash } else { hash + STEP };
                batch.resume.extend_from_slice(&hash.to_be_bytes()[..HASH]);
                return;
            }
        }
    }
}

/// Sets `resume` to the position after the last entry; backward, to the position of the entry.
fn resume_after_last<R: KeyRule>(keys: &KeyProperties<R>, forward: bool, batch: &mut Batch) {
    // A full batch has at least one entry.
    let last = batch.len() - 1;
    // A position is the hash and the key. The batch has no hashes, so compute it again.
    let (key, _) = batch.entries[last].parts(&batch.bytes);
    batch
        .resume
        .extend_from_slice(&keys.hash(key).to_be_bytes()[..HASH]);
    batch.resume.extend_from_slice(key);
    if forward {
        // Keys are prefix-free, so no key is between this one and this one with a zero byte.
        batch.resume.push(0);
    }
}

/// The reader of one leaf.
struct Reader<'a, 'g, R> {
    view: HashView<'g>,
    shape: Shape,
    keys: &'a KeyProperties<R>,
    bound: ScanBound<'a>,
    /// Whether the scan began at the edge.
    from_edge: bool,
    forward: bool,
    /// Whether few entries are needed, so that buckets are copied one by one, when they are needed.
    few: bool,
}

/// The buckets that have been copied to the beginning of the batch's bytes.
struct Copied {
    /// The number of the first one.
    first: usize,
    count: usize,
}

impl<'g, R: KeyRule> Reader<'_, 'g, R> {
    /// Reads the entries after the bound from the leaf, a leaf of the index with this number.
    #[inline]
    fn read(mut self, index: u64, batch: &mut Batch<'g>) -> Result<LeafEnd, Torn> {
        // Record the version in the batch. A later removal or step may rely on it
        // (`remove_scanned`, `is_unchanged`).
        batch.seen = Some(Seen {
            index,
            version: self.view.version(),
            from_edge: self.from_edge,
        });
        // A single entry is found without a copy of its bucket.
        if self.forward && batch.limit() == 1 && !batch.by_hash {
            return self.read_one(batch);
        }
        // All entries of the leaf are wanted, in any order: nothing is sorted.
        if batch.any_order && self.is_whole() {
            self.read_unordered(batch)?;
            return Ok(LeafEnd::Leaf);
        }
        // A leaf of one or two buckets is copied at once.
        self.few &= self.shape.buckets > 2;
        self.read_ordered(batch)
    }

    /// Reads the first entry after the bound, without copying a bucket.
    #[inline(never)]
    fn read_one(&self, batch: &mut Batch<'g>) -> Result<LeafEnd, Torn> {
        let ScanBound { hash, key } = self.bound;
        let bound = LowerBound {
            hash,
            key: key.map(|bound| bound.key),
            inclusive: key.is_none_or(|bound| bound.inclusive),
        };
        // The bound's key may be any bytes, so its entry isn't looked for.
        match self.view.next_but(0, bound, self.keys, batch)? {
            true => Ok(LeafEnd::Batch),
            false => Ok(LeafEnd::Leaf),
        }
    }

    /// Whether the bound is the leaf's first position, so that all of its entries belong to the
    /// scan.
    fn is_whole(&self) -> bool {
        self.forward
            && self.bound.hash == self.shape.first_hash(self.bound.hash)
            && self.bound.key.is_none_or(|bound| bound.key.is_empty())
    }

    /// Reads the entries after the bound, in order.
    fn read_ordered(&self, batch: &mut Batch<'g>) -> Result<LeafEnd, Torn> {
        // Borrow the words of the batch, so that a scan of many leaves allocates them once.
        let mut group = Group::new(std::mem::take(&mut batch.order));
        let ended = self.read_by(batch, &mut group);
        batch.order = group.words;
        ended
    }

    /// Reads all entries of the leaf in the order of their slot entries.
    fn read_unordered(&self, batch: &mut Batch<'g>) -> Result<(), Torn> {
        // (2) Copy all buckets, and validate.
        self.view.copy_buckets(&mut batch.bytes);
        self.check(())?;
        batch.entries.reserve(self.view.count());
        // The bytes are moved out, so that the batch can be changed while they are read.
        let bytes = std::mem::take(&mut batch.bytes);
        let read = self.read_copied(&bytes, batch);
        batch.bytes = bytes;
        batch.unordered = true;
        batch.homes.are_in_buckets();
        read
    }

    /// Step 4: appends the entries of buckets that were copied to these bytes.
    #[inline]
    fn read_copied(&self, bytes: &[u8], batch: &mut Batch<'g>) -> Result<(), Torn> {
        for bucket in 0..self.shape.buckets as usize {
            // All buckets were copied, from the first on (H19).
            let offset = bucket * self.shape.bucket();
            if batch.by_hash {
                let (entry, overflow) = (batch.entries.len(), plain::overflow(bytes, offset));
                batch.homes.begin(self.shape, bucket, entry, overflow);
            }
            // (4) Append the entries.
            for SlotBody { slot, from, end } in plain::slot_entries(bytes, offset, self.shape) {
                let body = &bytes[from..end];
                if slot & OUTSIDE == 0 {
                    // The bytes have been validated, so lengths in them can be trusted.
                    let key = self.keys.key_in(body);
                    let entry = BatchEntry::copied(from + key.start, from + key.end, end);
                    batch.entries.push(entry);
                } else {
                    // The copy was validated under our guard, so the object is alive. `object`
                    // validates once more; if the leaf has changed since, the scan reads it again.
                    let handle = Handle::from_bits(plain::handle_bits(body));
                    batch.push_outside(self.view.object(handle)?);
                }
            }
        }
        Ok(())
    }

    /// Steps 2 to 4. `group` is a buffer for the entries of one home.
    fn read_by(&self, batch: &mut Batch<'g>, group: &mut Group) -> Result<LeafEnd, Torn> {
        let Probe { home, tag } = self.shape.probe(self.bound.hash);
        // (2) Copy the bound's home bucket, or all buckets, and validate.
        let mut copied = self.copy_first(home, batch)?;
        // Walk over the homes, starting at the bound's. All entries of later homes are after the
        // bound, so they needn't be compared with it.
        let (mut at, limit) = (home, batch.limit());
        let mut ended = LeafEnd::Leaf;
        batch.entries.reserve(self.view.count().min(limit));
        // If the whole leaf was copied, assign all displaced entries to their homes in one pass.
        let displaced = self.displaced(batch, group)?;
        loop {
            // (3) Collect the entries of this home, sorted.
            let bound = (at == home).then_some(tag);
            self.collect(at, bound, &displaced, &mut copied, batch, group)?;
            // They are in ascending order.
            if !self.forward {
                group.reverse();
            }
            // Prefetch outside objects. Mostly there are none, which one branch finds out.
            if group.may_be_outside() {
                let found = group.iter().map(|&found| PackedEntry(found));
                for found in found.filter(|found| found.outside()) {
                    self.handle(found, batch).prefetch();
                }
            }
            // (4) Append them to the batch.
            if batch.by_hash && self.forward {
                let entry = batch.entries.len();
                batch.homes.begin(self.shape, at, entry, 0);
            }
            let room = limit - batch.entries.len();
            let fit = group.len().min(room);
            for found in group[..fit].iter().map(|&found| PackedEntry(found)) {
                if found.outside() {
                    // The version is validated before the handle is followed. The epoch then
                    // keeps the object alive.
                    batch.push_outside(self.view.object(self.handle(found, batch))?);
                } else {
                    // The entry points into the copied bucket.
                    let (from, end) = (found.from(), found.end());
                    let key = self.keys.key_in(&batch.bytes[from..end]);
                    let entry = BatchEntry::copied(from + key.start, from + key.end, end);
                    batch.entries.push(entry);
                }
            }
            // The batch is full. The next one begins after its last entry.
            if fit < group.len() {
                ended = LeafEnd::Batch;
                break;
            }
            match self.next_home(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(ended)
    }

    /// Step 3: collects the entries of a home that belong to the scan, in the order of positions.
    /// If this is the bound's home, `bound` is the bound's tag.
    #[inline]
    fn collect(
        &self,
        home: usize,
        bound: Option<u8>,
        displaced: &Option<DisplacedEntries>,
        copied: &mut Copied,
        batch: &mut Batch,
        group: &mut Group,
    ) -> Result<(), Torn> {
        // Copy the bucket, if it hasn't been copied, and validate it. From here on it is plain
        // bytes.
        let offset = self.offset_of(home, copied, batch)?;
        // Replace the group by the entries that are at home in this bucket.
        self.sift(offset, 0, batch, group);
        // Add the displaced entries of this home. Mostly no overflow bit is set, so there are none.
        if plain::has_overflowed(&batch.bytes, offset) {
            match displaced {
                Some(displaced) => displaced.at_home(home).for_each(|word| group.push(word)),
                None => self.collect_displaced(home, copied, batch, group)?,
            }
        }
        // Drop entries before the bound. Only the bound's own home can have such entries.
        if let Some(tag) = bound {
            self.keep_beyond(tag, batch, group)?;
        }
        // Sort by tags, which are in the order of hashes (H2). If tags are equal, hashes and keys
        // decide.
        if group.sort() {
            self.sort_ties(group, batch)?;
        }
        Ok(())
    }

    /// Replaces the group by entries of a bucket: the displaced ones, if `displaced` is
    /// [`DISPLACED`], or those that are at home, if it is 0.
    #[inline]
    fn sift(&self, offset: usize, displaced: u16, batch: &Batch, group: &mut Group) {
        let entries = plain::slot_entries(&batch.bytes, offset, self.shape);
        group.set(entries.map(|SlotBody { slot, from, end }| {
            let wanted = slot & DISPLACED == displaced;
            (PackedEntry::new(slot, from, end), wanted)
        }));
    }

    /// The displaced entries of the leaf by their homes, if the whole leaf was copied.
    fn displaced(
        &self,
        batch: &Batch,
        group: &mut Group,
    ) -> Result<Option<DisplacedEntries>, Torn> {
        if self.few {
            return Ok(None);
        }
        // Homes aren't stored, so the hash of each displaced entry is needed. Compute it once here,
        // instead of once for each home that the entry may belong to.
        let mut displaced = DisplacedEntries::new(self.shape.buckets as usize);
        let size = self.shape.bucket();
        for before in 0..self.shape.buckets as usize {
            // If the bucket before has no overflow bit set, nothing has overflowed it, so this
            // bucket has no displaced entries.
            if !plain::has_overflowed(&batch.bytes, before * size) {
                continue;
            }
            self.sift(self.shape.next(before) * size, DISPLACED, batch, group);
            for &found in group.iter() {
                let hash = self.hash(PackedEntry(found), batch)?;
                displaced.add(self.shape.probe(hash).home, PackedEntry(found));
            }
        }
        Ok(Some(displaced))
    }

    /// Adds the displaced entries of a home to the group, and copies the buckets after it that may
    /// have them.
    #[inline(never)]
    fn collect_displaced(
        &self,
        home: usize,
        copied: &mut Copied,
        batch: &mut Batch,
        group: &mut Group,
    ) -> Result<(), Torn> {
        // They are in the next buckets, up to one without overflow bits.
        let mut at = self.shape.next(home);
        while at != home {
            let offset = self.offset_of(at, copied, batch)?;
            for SlotBody { slot, from, end } in
                plain::slot_entries(&batch.bytes, offset, self.shape)
            {
                let found = PackedEntry::new(slot, from, end);
                // The bucket may have displaced entries of other homes, too. Only the hash tells.
                if slot & DISPLACED != 0 && self.shape.probe(self.hash(found, batch)?).home == home
                {
                    group.push(found.0);
                }
            }
            // No entry of this home can be after a bucket without overflow bits.
            if !plain::has_overflowed(&batch.bytes, offset) {
                break;
            }
            at = self.shape.next(at);
        }
        Ok(())
    }

    /// Drops the entries of the bound's home that are not on the scan's side of the bound.
    #[inline(never)]
    fn keep_beyond(&self, tag: u8, batch: &Batch, group: &mut Group) -> Result<(), Torn> {
        // `kept` is never greater than `i`, so no entry is overwritten before it is examined.
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

    /// The home after this one in the direction of the scan.
    fn next_home(&self, at: usize) -> Option<usize> {
        if self.forward {
            Some(at + 1).filter(|&next| next < self.shape.buckets as usize)
        } else {
            at.checked_sub(1)
        }
    }

    /// Step 2: copies the bucket `home`, or all buckets, and validates the copy.
    fn copy_first(&self, home: usize, batch: &mut Batch) -> Result<Copied, Torn> {
        // A scan that wants few entries copies one bucket at a time.
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

    /// Returns the value if the version is unchanged.
    fn check<T>(&self, value: T) -> Result<T, Torn> {
        if self.view.is_valid() {
            Ok(value)
        } else {
            Err(Torn)
        }
    }

    /// The offset of a bucket in the batch's bytes. Copies the bucket if that hasn't been done.
    fn offset_of(
        &self,
        bucket: usize,
        copied: &mut Copied,
        batch: &mut Batch,
    ) -> Result<usize, Torn> {
        // A walk over displaced entries may wrap around to a bucket before the first copied one.
        // That can't be inserted in front, so fail, and let the scan copy the whole leaf.
        let i = bucket.checked_sub(copied.first).ok_or(Torn)?;
        // Copy all buckets up to this one, so that there are no gaps (H19).
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
        // The body lies in the copied buckets. The rule says where its key ends.
        let body = &batch.bytes[found.from()..found.end()];
        Ok(&body[self.keys.key_in(body)])
    }

    fn hash(&self, found: PackedEntry, batch: &Batch) -> Result<u64, Torn> {
        Ok(self.keys.hash(self.key(found, batch)?))
    }

    /// Whether an entry of the bound's home is on the scan's side of the bound. `tag` is the
    /// bound's.
    fn belongs(&self, tag: u8, found: PackedEntry, batch: &Batch) -> Result<bool, Torn> {
        if found.tag() != tag {
            return Ok((found.tag() > tag) == self.forward);
        }
        // The tags are equal, so hash and key decide. Compare the key with the bound's first, since
        // that needs no hash. The bound says whether its own entry belongs to the scan.
        let key = self.key(found, batch)?;
        if let Some(bound) = self.bound.key {
            if key == bound.key {
                return Ok(bound.inclusive);
            }
        }
        // If the bound has no key, all entries with its hash belong to the scan.
        let order = match (self.keys.hash(key).cmp(&self.bound.hash), self.bound.key) {
            (Ordering::Equal, None) => return Ok(true),
            (Ordering::Equal, Some(bound)) => key.cmp(bound.key),
            (order, _) => order,
        };
        Ok(order.is_gt() == self.forward)
    }

    /// Sorts the entries with equal tags in a group that is sorted by tags.
    #[cold]
    fn sort_ties(&self, group: &mut Group, batch: &Batch) -> Result<(), Torn> {
        // Find the runs of equal tags, and sort each of them.
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

    /// Sorts entries with equal tags by hash and key.
    fn sort_equals(&self, equals: &mut [u64], batch: &Batch) -> Result<(), Torn> {
        // Mostly there are two.
        if let [first, second] = equals {
            let (a, b) = (
                self.key(PackedEntry(*first), batch)?,
                self.key(PackedEntry(*second), batch)?,
            );
            if (self.keys.hash(a), a) > (self.keys.hash(b), b) {
                std::mem::swap(first, second);
            }
            return Ok(());
        }
        // Hash each key once, instead of once per comparison.
        let mut hashed = SmallVec::<[HashedEntry; 8]>::new();
        for &entry in equals.iter() {
            let key = self.key(PackedEntry(entry), batch)?;
            let hash = self.keys.hash(key);
            hashed.push(HashedEntry { hash, key, entry });
        }
        hashed.sort_unstable();
        for (to, from) in equals.iter_mut().zip(&hashed) {
            *to = from.entry;
        }
        Ok(())
    }
}
