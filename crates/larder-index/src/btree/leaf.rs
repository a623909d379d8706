//! A leaf: neighbouring entries in one block of memory, under one lock.
//!
//! ```text
//!  head (64 bytes)  version | count | heap | live | statistics | sizes (fixed), samples' spacing
//!  samples          the upper halves of slot 2^s, slot 2·2^s, slot 3·2^s, …, four bytes each
//!  content          slot 0, slot 1, … slot n-1 →    free    ← record … record
//!  prefix           the common prefix of the positions of all entries (see `prefix`)
//!
//!  slot    40 bits: the head, the first five bytes of the position after the prefix
//!          3 bits: whether the entry has the leaf's mark (see `marks`)
//!          21 bits: the offset of the record in the content
//!  record  lengths, the rest of the position, the value (see `record`)
//! ```
//!
//! Invariants (docs/design.md §4.2 and 4.4):
//! * I2: Only the holder of the lock writes to a published leaf. Readers validate the version
//!   (`seqlock`).
//! * I11: The memory of a leaf is freed after all guards are dropped that could have found it.
//! * B2: The range, the prefix and the capacity of a leaf never change.
//! * B3: Slots are in the order of positions. If two heads are equal, the records decide.
//!
//! *Samples.* A binary search of the slots would have a cache miss in each step, one after the
//! other. Instead, a search first compares the samples, which are next to the head and fetched
//! together with it. They narrow the search to the slots between two samples, which are then
//! fetched together. The spacing 2^s is at first 16 slots. It doubles when there are more slots
//! than the samples can cover. While the records of a leaf are in the order of its slots, as in a
//! new leaf, the search also guesses and prefetches the cache lines of the record.

use crate::btree::copies::EntryCopies;
use crate::btree::insert_run::InsertRun;
use crate::btree::prefix::Prefix;
use crate::btree::record::{write_record, SLOT};
pub(super) use crate::btree::search_key::head_of;
use crate::btree::search_key::{SearchKey, OFFSET_BITS};
use crate::memory::{self as allocator, prefetch};
pub(crate) use crate::seqlock::version::Obsolete;
use crate::seqlock::version::{HeldVersion, Version};
use crate::seqlock::words;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The maximum content in bytes: an offset in a slot has [`OFFSET_BITS`] bits.
pub(crate) const MOST_CONTENT: usize = 1 << OFFSET_BITS;

/// Words of content per word of samples. A word of samples is two samples.
const SAMPLED: usize = 64;
/// The initial spacing of samples, as a power of two.
const SPACING: u32 = 4;

/// The head of a leaf. It is a cache line.
#[repr(C, align(64))]
pub(super) struct TreeLeafHead {
    pub(super) version: Version,
    /// The number of entries.
    pub(super) count: AtomicU32,
    /// 1 if the node above has a valid count of this leaf's entries (see `counts`). Used only by
    /// the holder of the lock.
    counted: AtomicU32,
    /// The offset in bytes from which on records lie. The content between the slots and here is
    /// free.
    pub(super) heap: AtomicU64,
    /// The total length of the records of entries. It is less than the capacity minus `heap`, if
    /// entries were removed, or records got shorter or another place.
    pub(super) live: AtomicU64,
    /// The contention counter, and the current run of inserts (see [`InsertRun`]).
    pub(super) statistics: AtomicU64,
    /// The capacity of the content in words.
    words: u32,
    /// The length of the prefix in bytes.
    prefix: u32,
    /// The length of the part of the prefix that the two fences have in common.
    fenced: u32,
    /// The exponent of the spacing of samples.
    pub(super) spacing: AtomicU32,
    /// The mark of those entries that have one (see `marks`).
    pub(super) mark: AtomicU64,
}

/// A reference to a leaf that stays allocated during `'g`.
#[derive(Clone, Copy)]
pub(crate) struct TreeLeaf<'g> {
    head: NonNull<TreeLeafHead>,
    alive: PhantomData<&'g Guard>,
}

/// A new leaf, which no other thread can reach yet. It is freed when dropped, unless it was
/// published.
pub(crate) struct NewTreeLeaf(TreeLeaf<'static>);

/// The lock of a leaf. While it is held, no other thread writes to the leaf, and no reader can
/// validate.
pub(crate) struct LockedTreeLeaf<'g> {
    pub(super) leaf: TreeLeaf<'g>,
    held: HeldVersion,
}

impl<'g> TreeLeaf<'g> {
    /// Makes a reference from an address.
    ///
    /// # Safety
    /// The address is that of a published leaf, which is not freed during `'g`.
    pub(super) unsafe fn at(head: NonNull<()>) -> TreeLeaf<'g> {
        TreeLeaf {
            head: head.cast(),
            alive: PhantomData,
        }
    }

    /// The leaf's address.
    pub(super) fn address(self) -> NonNull<()> {
        self.head.cast()
    }

    /// Whether a writer holds the lock, or the leaf is obsolete. A hint, which says nothing of the
    /// next instant.
    #[inline]
    pub(super) fn is_locked(self) -> bool {
        self.head().version.is_locked()
    }

    /// Whether both refer to the same leaf.
    pub(crate) fn is(self, other: TreeLeaf<'_>) -> bool {
        self.head == other.head
    }

    pub(super) fn head(self) -> &'g TreeLeafHead {
        // SAFETY:
        // 1. the leaf stays allocated during `'g`;
        // 2. fields that are changed after the leaf was published are atomic.
        unsafe { self.head.as_ref() }
    }

    /// The content.
    #[inline]
    pub(super) fn words(self) -> &'g [AtomicU64] {
        let len = self.head().words as usize;
        // SAFETY:
        // 1. the content follows head and samples, `words` words of it, by the layout of the
        //    allocation;
        // 2. it is alive for `'g`;
        // 3. all bit patterns are words.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<AtomicU64>();
            std::slice::from_raw_parts(at.add(sample_words(len)), len)
        }
    }

    /// All samples, including those that are not in use.
    #[inline]
    pub(super) fn samples(self) -> &'g [AtomicU32] {
        let len = sample_words(self.head().words as usize) * 2;
        // SAFETY:
        // 1. the samples follow the head, by the layout of the allocation;
        // 2. they are alive for `'g`;
        // 3. all bit patterns are samples.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<AtomicU32>();
            std::slice::from_raw_parts(at, len)
        }
    }

    /// Prefetches the head and the first samples, which a search reads first.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.head.as_ptr().cast());
        prefetch(self.head.as_ptr().wrapping_add(1).cast());
    }

    /// The common prefix of all entries.
    pub(crate) fn prefix(self) -> &'g [u8] {
        let head = self.head();
        let words = head.words as usize;
        // SAFETY:
        // 1. the prefix follows the content;
        // 2. it was written before the leaf was published and never changes.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<u64>();
            let at = at.add(sample_words(words) + words);
            std::slice::from_raw_parts(at.cast::<u8>(), head.prefix as usize)
        }
    }

    /// The length of the prefix in bytes.
    #[inline]
    pub(crate) fn prefix_len(self) -> usize {
        self.head().prefix as usize
    }

    /// The prefix, with the length of the part that the fences have in common.
    pub(crate) fn prefix_and_fences(self) -> Prefix<'g> {
        Prefix::of_leaf(self.prefix(), self.head().fenced as usize)
    }

    /// Compares a position of the leaf's range with the prefix. `Equal` if the position begins with
    /// the prefix. Otherwise it is less or greater than the positions of all entries.
    #[inline]
    pub(crate) fn beside_prefix(self, position: SearchKey<'_>) -> cmp::Ordering {
        let head = self.head();
        // Every position of the range begins with the part that the fences have in common. So only
        // the rest of the prefix has to be compared. Mostly there is none.
        if head.prefix == head.fenced {
            return cmp::Ordering::Equal;
        }
        let (prefix, fenced) = (self.prefix(), head.fenced as usize);
        let beginning = &position.bytes()[..position.bytes().len().min(prefix.len())];
        // A position that ends within the prefix is less than all entries, as a shorter slice is.
        beginning
            .get(fenced..)
            .unwrap_or(&[])
            .cmp(&prefix[fenced..])
    }

    /// The capacity of the content in bytes.
    pub(crate) fn capacity(self) -> usize {
        self.head().words as usize * 8
    }

    /// The memory of the leaf in bytes.
    pub(crate) fn memory(self) -> usize {
        let head = self.head();
        layout(head.words as usize, head.prefix as usize).size()
    }

    /// Whether no thread has written since `version` was loaded. If so, everything that was read
    /// since is consistent.
    #[inline]
    pub(super) fn is_unchanged(self, version: u64) -> bool {
        self.head().version.validate(version)
    }

    /// Takes the lock if it is free. Returns `Ok(None)` if it isn't.
    #[inline]
    pub(crate) fn try_lock(self) -> Result<Option<LockedTreeLeaf<'g>>, Obsolete> {
        let before = self.head().version.try_lock()?;
        Ok(before.map(|before| LockedTreeLeaf::new(self, before)))
    }

    /// Takes the lock if the version is still this one, which a read has validated.
    #[inline]
    pub(crate) fn try_lock_at(self, version: u64) -> Option<LockedTreeLeaf<'g>> {
        let locked = self.head().version.try_lock_at(version);
        locked.then(|| LockedTreeLeaf::new(self, version))
    }

    /// Takes the lock. Also returns whether another thread held it.
    #[inline]
    pub(crate) fn lock(self) -> Result<(LockedTreeLeaf<'g>, bool), Obsolete> {
        let (before, contended) = self.head().version.lock()?;
        Ok((LockedTreeLeaf::new(self, before), contended))
    }

    /// Frees the leaf's memory when no reader can use it any more. Its outside objects are not
    /// freed.
    ///
    /// # Safety
    /// The leaf is obsolete, no child slot refers to it any more, and it is retired only once.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        let address = self.head.as_ptr().expose_provenance();
        // SAFETY:
        // 1. no child slot refers to the leaf, so a thread that pins from now on can't find it;
        // 2. the memory came from `NewTreeLeaf::empty`;
        // 3. the closure may run on another thread: it captures the address, which is `Send`, and
        //    no reference.
        unsafe {
            guard.defer_unchecked(move || {
                let head = std::ptr::with_exposed_provenance_mut::<()>(address);
                TreeLeaf::at(NonNull::new_unchecked(head)).free();
            });
        }
    }

    /// Frees the leaf's memory now.
    ///
    /// # Safety
    /// No thread uses the leaf any more.
    pub(super) unsafe fn free(self) {
        let head = self.head();
        let layout = layout(head.words as usize, head.prefix as usize);
        // SAFETY: the memory was allocated with this layout. Both sizes never change.
        unsafe { allocator::release(self.head.cast(), layout) };
    }
}

impl<'g> LockedTreeLeaf<'g> {
    /// The guard of the lock, which the caller has just taken.
    #[inline]
    fn new(leaf: TreeLeaf<'g>, before: u64) -> Self {
        let held = HeldVersion::at(before);
        LockedTreeLeaf { leaf, held }
    }

    /// Whether nothing was changed between loading this version and taking the lock.
    pub(super) fn was_at(&self, version: u64) -> bool {
        self.held.before() == version
    }

    /// Records that the content is about to be changed, so that the unlock stores a new version.
    #[inline(always)]
    pub(super) fn change(&mut self) {
        self.held.change();
    }

    /// The content as plain bytes.
    #[inline]
    pub(super) fn content(&self) -> &[u8] {
        let words = self.leaf.words();
        // SAFETY:
        // 1. the words are initialised, and stay allocated while the lock is held;
        // 2. only the holder of the lock writes, by methods that take `&mut self`, which this
        //    borrow excludes.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
    }

    /// Whether the node above has a valid count of the leaf's entries.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        // Ordering: Relaxed, only the holder of the lock loads and stores it.
        self.leaf.head().counted.load(Relaxed) != 0
    }

    /// Records whether the node above has a valid count of the leaf's entries.
    pub(super) fn set_counted(&self, counted: bool) {
        // Ordering: Relaxed, as above.
        self.leaf.head().counted.store(u32::from(counted), Relaxed);
    }

    /// Unlocks the leaf, and marks it obsolete. A thread that finds it from now on restarts from
    /// the root.
    pub(super) fn mark_obsolete(self) {
        self.leaf.head().version.mark_obsolete(self.held.before());
        // Skip `drop`, which would restore a version without the obsolete bit.
        std::mem::forget(self);
    }
}

impl Drop for LockedTreeLeaf<'_> {
    /// Unlocks. If the leaf was not changed, it gets back its old version, so that no reader has to
    /// retry.
    fn drop(&mut self) {
        self.leaf.head().version.unlock(self.held);
    }
}

/// The number of words of samples in a leaf with this capacity in words.
#[inline]
fn sample_words(words: usize) -> usize {
    words / SAMPLED
}

/// The memory of a leaf with this capacity and length of the prefix, all in bytes.
pub(crate) fn memory(content: usize, prefix: usize) -> usize {
    layout(content.div_ceil(8), prefix).size()
}

/// The layout of a leaf: head, samples, content, prefix.
fn layout(words: usize, prefix: usize) -> Layout {
    let bytes =
        size_of::<TreeLeafHead>() + (sample_words(words) + words) * 8 + prefix.next_multiple_of(8);
    Layout::from_size_align(bytes, align_of::<TreeLeafHead>())
        .expect("a leaf's size is far below the address space")
}

impl NewTreeLeaf {
    /// An empty leaf with a capacity of `content` bytes.
    pub(crate) fn empty(content: usize, prefix: &Prefix<'_>) -> NewTreeLeaf {
        assert!(content <= MOST_CONTENT, "a slot has the offset of a record");
        let words = content.div_ceil(8);
        let layout = layout(words, prefix.len());
        let head = allocator::allocate_zeroed(layout).cast::<TreeLeafHead>();
        // SAFETY:
        // 1. this thread alone has the memory, which is large enough for head, samples, `words`
        //    words and prefix;
        // 2. zeroed memory is a valid head, and valid words.
        unsafe {
            let head = head.as_ptr();
            // The rest of the head stays zero: the first version, no entries, no statistics.
            (*head).words = words as u32;
            (*head).prefix = prefix.len() as u32;
            (*head).fenced = prefix.fenced() as u32;
            // Records are put in from the end of the content downwards.
            (*head).heap = AtomicU64::new(words as u64 * 8);
            (*head).spacing = AtomicU32::new(SPACING);
            // The prefix is written before the leaf is published, so readers need no lock for it.
            let at = head.add(1).cast::<u64>();
            let at = at.add(sample_words(words) + words).cast::<u8>();
            std::ptr::copy_nonoverlapping(prefix.bytes().as_ptr(), at, prefix.len());
        }
        NewTreeLeaf(TreeLeaf {
            head,
            alive: PhantomData,
        })
    }

    /// A leaf with some of the copied entries, and a capacity of `content` bytes. All their
    /// positions begin with `prefix`.
    pub(crate) fn build(
        copies: &EntryCopies,
        range: std::ops::Range<usize>,
        content: usize,
        prefix: &Prefix<'_>,
    ) -> NewTreeLeaf {
        let new = NewTreeLeaf::empty(content, prefix);
        // The prefix is stored once for the leaf, so records have only what follows it.
        let suffix = |i: usize| &copies.position(i)[prefix.len()..];
        let records = range
            .clone()
            .map(|i| copies.stored(i).record(suffix(i).len()));
        // `fill` numbers the entries of the new leaf from 0.
        let first = range.start;
        new.fill(range.len(), records.sum(), |i, writer| {
            let (suffix, stored) = (suffix(first + i), copies.stored(first + i));
            write_record(writer, suffix, stored);
            head_of(suffix)
        });
        new
    }

    /// Writes entries to an empty leaf. `write` writes the record of the entry with this number,
    /// and returns its head. `records` is the total length of the records.
    fn fill(
        &self,
        entries: usize,
        records: usize,
        mut write: impl FnMut(usize, &mut words::Writer<'_>) -> u64,
    ) {
        let words = self.0.words();
        let heap = words.len() * 8 - records;
        debug_assert!(
            entries * SLOT <= heap,
            "a new leaf has capacity for its entries"
        );
        // The writer moves upwards, from `heap` to the end of the content. The last entry is
        // written first, so that the record of the first one is at the end, where `prefetch_range`
        // guesses it.
        let mut writer = words::Writer::new(words, heap);
        for i in (0..entries).rev() {
            let at = writer.at();
            let head = write(i, &mut writer);
            // Ordering: Relaxed, no other thread can reach the leaf yet. The store that publishes
            // it is a Release.
            words[i].store(head | at as u64, Relaxed);
        }
        writer.finish();
        self.locked().finish_content(entries, heap, records);
    }

    /// A guard without a lock. No other thread can reach the leaf, so none is needed.
    fn locked(&self) -> LockedTreeLeaf<'_> {
        LockedTreeLeaf::new(self.0, 0)
    }

    /// The content as plain bytes.
    pub(super) fn content(&mut self) -> &mut [u8] {
        let words = self.0.head().words as usize;
        // SAFETY:
        // 1. the content follows head and samples, `words` words of it, by the layout of the
        //    allocation;
        // 2. it is initialised;
        // 3. no other thread can reach the leaf, and `self` is borrowed exclusively while the slice
        //    lives.
        unsafe {
            let at = self.0.head.as_ptr().add(1).cast::<u64>();
            let at = at.add(sample_words(words)).cast::<u8>();
            std::slice::from_raw_parts_mut(at, words * 8)
        }
    }

    /// Sets the head after the content has been written: the number of entries, where their records
    /// begin, and the total length of the records.
    pub(super) fn finish_content(&mut self, entries: usize, heap: usize, records: usize) {
        self.locked().finish_content(entries, heap, records);
    }

    /// The memory of the leaf in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Starts from a greater version than any of this leaf, which it will replace.
    pub(super) fn succeed(&self, old: &LockedTreeLeaf<'_>) {
        self.0.head().version.succeed(old.held.before());
    }

    /// Copies the statistics of a leaf that this one will replace. The lock of that leaf is held.
    pub(crate) fn inherit(&self, other: TreeLeaf<'_>) {
        // Ordering: Relaxed, both: one leaf is locked, the other is not published yet.
        let known = other.head().statistics.load(Relaxed);
        self.0.head().statistics.store(known, Relaxed);
    }

    /// Takes over the mark of a leaf whose slots' marks this leaf has. The lock of that leaf is
    /// held.
    pub(super) fn inherit_mark(&self, other: TreeLeaf<'_>) {
        // Ordering: Relaxed, both, as above.
        let mark = other.head().mark.load(Relaxed);
        self.0.head().mark.store(mark, Relaxed);
    }

    /// Like `inherit`, if the last insert of the current run is at slot `i` of this leaf.
    pub(crate) fn inherit_at(&self, other: TreeLeaf<'_>, i: usize) {
        self.inherit(other);
        let statistics = &self.0.head().statistics;
        // Ordering: Relaxed, both, as above.
        let run = InsertRun::of(statistics.load(Relaxed)).at_slot(i);
        statistics.store(run.into_bits(), Relaxed);
    }

    /// Gives up the ownership of the leaf, to a child slot that will refer to it.
    pub(super) fn publish(self) -> TreeLeaf<'static> {
        let leaf = self.0;
        std::mem::forget(self);
        leaf
    }
}

impl Drop for NewTreeLeaf {
    fn drop(&mut self) {
        // SAFETY: no other thread could ever reach it. If it has handles, they still belong to the
        // leaf that it was built from.
        unsafe { self.0.free() };
    }
}
