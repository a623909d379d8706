//! A leaf: some neighbouring entries in one run of memory, under one lock.
//!
//! ```text
//!  head (64 bytes)  version | count | heap | live | statistics | sizes (fixed), samples' spacing
//!  samples          the upper halves of slot 2^s, slot 2·2^s, slot 3·2^s, …, four bytes each
//!  content          slot 0, slot 1, … slot n-1 →    free    ← record … record
//!  prefix           the bytes that all entries of the leaf begin with (see `prefix`)
//!
//!  slot    40 bits: the first five bytes of the position after the prefix
//!          24 bits: where the record is
//!  record  lengths, the rest of the position, the value (see `record`)
//! ```
//!
//! Slots lie in the order of positions. Two positions with equal heads are distinguished by their
//! records.
//!
//! *Samples.* A search would touch many lines of slots, one after the other. The samples are
//! fetched together with the head and say which two lines to fetch next; the spacing 2^s is 16
//! slots, and doubles when there are more slots than the samples can stand for. Where a leaf's
//! records lie in the order of its slots, as they do when it was just made, a search also guesses
//! the record's line.
//!
//! The range, the prefix and the size of a leaf never change; a leaf for which they would is
//! replaced.

use crate::btree::prefix::Prefix;
use crate::btree::record::{write_record, SLOT};
use crate::btree::run::Run;
pub(super) use crate::btree::search_key::head_of;
use crate::btree::search_key::{SearchKey, PLACE_BITS};
use crate::memory::{self as allocator, prefetch};
pub(crate) use crate::seqlock::version::Obsolete;
use crate::seqlock::version::Version;
use crate::seqlock::words;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::cmp;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The most bytes of content: what a slot can point into.
pub(crate) const MOST_CONTENT: usize = 1 << PLACE_BITS;

/// Words of content for which there is one word of samples.
const SAMPLED: usize = 64;
/// The least spacing of samples, as a power of two.
pub(super) const SPACING: u32 = 4;

/// What a leaf's memory begins with.
#[repr(C, align(64))]
pub(super) struct TreeLeafHead {
    pub(super) version: Version,
    /// Slots in use.
    pub(super) count: AtomicU64,
    /// Where the records begin, in bytes.
    pub(super) heap: AtomicU64,
    /// Bytes of the records in use.
    pub(super) live: AtomicU64,
    /// Low half: the contention counter. High half: where the last insert went and how many went
    /// there in a row.
    pub(super) statistics: AtomicU64,
    /// Words of content.
    words: u32,
    /// Bytes of prefix.
    prefix: u32,
    /// How many of them the fences give.
    fenced: u32,
    /// Two to this are the slots from one sample to the next.
    pub(super) spacing: AtomicU32,
    /// 1 if the node above has the leaf's count (see `counts`). Of the lock's holder alone.
    counted: AtomicU64,
}

/// A leaf that is alive for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct TreeLeaf<'g> {
    head: NonNull<TreeLeafHead>,
    alive: PhantomData<&'g Guard>,
}

/// A leaf that nobody else can reach yet. Freed if it is never published.
pub(crate) struct NewTreeLeaf(TreeLeaf<'static>);

/// What a writer holds: no other writer is at work on the leaf, and no reader believes what it
/// reads.
pub(crate) struct LockedTreeLeaf<'g> {
    pub(super) leaf: TreeLeaf<'g>,
    /// The version before the lock was taken.
    before: u64,
    pub(super) changed: bool,
}

impl<'g> TreeLeaf<'g> {
    /// From a leaf's address.
    ///
    /// # Safety
    /// A leaf that was published lies there, and is not freed during `'g`.
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

    /// Whether both are the same leaf.
    pub(crate) fn is(self, other: TreeLeaf<'_>) -> bool {
        self.head == other.head
    }

    pub(super) fn head(self) -> &'g TreeLeafHead {
        // SAFETY: a `TreeLeaf` is alive for `'g`; the head is shared by atomics and what never
        // changes.
        unsafe { self.head.as_ref() }
    }

    /// The content's words.
    #[inline]
    pub(super) fn words(self) -> &'g [AtomicU64] {
        let len = self.head().words as usize;
        // SAFETY: 1. the content follows head and samples, `words` words of it, by the layout of
        // the allocation; 2. it is alive for `'g`;
        // 3. all bit patterns are words.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<AtomicU64>();
            std::slice::from_raw_parts(at.add(sample_words(len)), len)
        }
    }

    /// The samples, in use or not.
    #[inline]
    pub(super) fn samples(self) -> &'g [AtomicU32] {
        let len = sample_words(self.head().words as usize) * 2;
        // SAFETY: 1. the samples follow the head, by the layout of the allocation; 2. they are
        // alive for `'g`; 3. all bit patterns are samples.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<AtomicU32>();
            std::slice::from_raw_parts(at, len)
        }
    }

    /// Fetches what a search reads first.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.head.as_ptr().cast());
        prefetch(self.head.as_ptr().wrapping_add(1).cast());
    }

    /// What all entries of the leaf begin with: see `prefix`.
    pub(crate) fn prefix(self) -> &'g [u8] {
        let head = self.head();
        let words = head.words as usize;
        // SAFETY: 1. the prefix follows the content; 2. it was written before the leaf was
        // published and never changes.
        unsafe {
            let at = self.head.as_ptr().add(1).cast::<u64>();
            let at = at.add(sample_words(words) + words);
            std::slice::from_raw_parts(at.cast::<u8>(), head.prefix as usize)
        }
    }

    /// Bytes of prefix.
    #[inline]
    pub(crate) fn prefix_len(self) -> usize {
        self.head().prefix as usize
    }

    /// The prefix, and how much of it the leaf's fences give.
    pub(crate) fn prefix_and_fences(self) -> Prefix<'g> {
        Prefix::of_leaf(self.prefix(), self.head().fenced as usize)
    }

    /// The part of the prefix that the leaf's fences give.
    pub(crate) fn prefix_of_fences(self) -> Prefix<'g> {
        let fenced = self.head().fenced as usize;
        Prefix::of_leaf(&self.prefix()[..fenced], fenced)
    }

    /// How a position of the leaf's range compares to the prefix: `Equal` if it begins so. Else it
    /// is before all entries, or behind all.
    #[inline(always)]
    pub(crate) fn beside_prefix(self, position: SearchKey<'_>) -> cmp::Ordering {
        let head = self.head();
        if head.prefix == head.fenced {
            return cmp::Ordering::Equal;
        }
        let (prefix, fenced) = (self.prefix(), head.fenced as usize);
        let own = &position.bytes()[..position.bytes().len().min(prefix.len())];
        own.get(fenced..).unwrap_or(&[]).cmp(&prefix[fenced..])
    }

    /// Bytes of content that it can hold.
    pub(crate) fn capacity(self) -> usize {
        self.head().words as usize * 8
    }

    /// Bytes of memory.
    pub(crate) fn memory(self) -> usize {
        let head = self.head();
        layout(head.words as usize, head.prefix as usize).size()
    }

    /// Whether nobody wrote since `version` was read: all that was read since is true.
    #[inline]
    pub(super) fn unchanged(self, version: u64) -> bool {
        self.head().version.validate(version)
    }

    /// Takes the lock if it is free: `Ok(None)` if it isn't.
    #[inline]
    pub(crate) fn try_lock(self) -> Result<Option<LockedTreeLeaf<'g>>, Obsolete> {
        let before = self.head().version.try_lock()?;
        Ok(before.map(|before| LockedTreeLeaf::new(self, before)))
    }

    /// Takes the lock. Also says whether another had it.
    #[inline]
    pub(crate) fn lock(self) -> Result<(LockedTreeLeaf<'g>, bool), Obsolete> {
        let (before, contended) = self.head().version.lock()?;
        Ok((LockedTreeLeaf::new(self, before), contended))
    }

    /// Frees the leaf's memory when no reader can have it any more; what its handles lead to stays.
    ///
    /// # Safety
    /// The leaf is obsolete, no slot leads to it any more, and nobody retires it again.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        let address = self.head.as_ptr().expose_provenance();
        // SAFETY: 1. a thread that pins from now on can't find the leaf; 2. the memory came from
        // `NewTreeLeaf::empty`; 3. its address is sent, not a reference.
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
    /// Nobody can use the leaf any more.
    pub(super) unsafe fn free(self) {
        let head = self.head();
        let layout = layout(head.words as usize, head.prefix as usize);
        // SAFETY: the memory was taken with this layout, whose sizes never change.
        unsafe { allocator::release(self.head.cast(), layout) };
    }
}

impl<'g> LockedTreeLeaf<'g> {
    /// The holder of the lock that was just taken.
    #[inline]
    fn new(leaf: TreeLeaf<'g>, before: u64) -> Self {
        LockedTreeLeaf {
            leaf,
            before,
            changed: false,
        }
    }

    /// The content as plain bytes, while this borrow of the lock lasts.
    #[inline]
    pub(super) fn content(&self) -> &[u8] {
        let words = self.leaf.words();
        // SAFETY: 1. the words are initialised, and alive as long as the lock is held; 2. only the
        // lock's holder writes, and writing takes `&mut self`, which this borrow excludes.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
    }

    /// Whether the node above has the leaf's count.
    #[inline(always)]
    pub(super) fn is_counted(&self) -> bool {
        // Ordering: Relaxed, only the lock's holder has anything to do with it.
        self.leaf.head().counted.load(Relaxed) != 0
    }

    /// The node above has the leaf's count, or doesn't any more.
    pub(super) fn set_counted(&self, counted: bool) {
        // Ordering: Relaxed, as above.
        self.leaf.head().counted.store(u64::from(counted), Relaxed);
    }

    /// Marks the leaf obsolete and lets go of it: a thread that meets it from now on begins again
    /// from the root.
    pub(super) fn obsolete(self) {
        self.leaf.head().version.obsolete(self.before);
        std::mem::forget(self);
    }
}

impl Drop for LockedTreeLeaf<'_> {
    /// Unlocks. A leaf that was not changed keeps its version, so that no reader has to read again.
    fn drop(&mut self) {
        self.leaf.head().version.unlock(self.before, self.changed);
    }
}

/// Words of samples in a leaf with so many words of content.
#[inline]
fn sample_words(words: usize) -> usize {
    words / SAMPLED
}

/// Bytes of memory of a leaf with so many bytes of content and of prefix.
pub(crate) fn memory(content: usize, prefix: usize) -> usize {
    layout(content.div_ceil(8), prefix).size()
}

/// The memory of a leaf.
fn layout(words: usize, prefix: usize) -> Layout {
    let bytes =
        size_of::<TreeLeafHead>() + (sample_words(words) + words) * 8 + prefix.next_multiple_of(8);
    Layout::from_size_align(bytes, align_of::<TreeLeafHead>())
        .expect("a leaf's size is far below the address space")
}

impl NewTreeLeaf {
    /// An empty leaf with room for `content` bytes.
    pub(crate) fn empty(content: usize, prefix: &Prefix<'_>) -> NewTreeLeaf {
        let words = content.div_ceil(8);
        let layout = layout(words, prefix.len());
        let head = allocator::allocate_zeroed(layout).cast::<TreeLeafHead>();
        // SAFETY: 1. the memory is ours alone and large enough for a head, `words` words and the
        // prefix; 2. zeroed memory is a valid head and valid words.
        unsafe {
            let head = head.as_ptr();
            (*head).words = words as u32;
            (*head).prefix = prefix.len() as u32;
            (*head).fenced = prefix.fenced() as u32;
            (*head).heap = AtomicU64::new(words as u64 * 8);
            (*head).spacing = AtomicU32::new(SPACING);
            let at = head.add(1).cast::<u64>();
            let at = at.add(sample_words(words) + words).cast::<u8>();
            std::ptr::copy_nonoverlapping(prefix.bytes().as_ptr(), at, prefix.len());
        }
        NewTreeLeaf(TreeLeaf {
            head,
            alive: PhantomData,
        })
    }

    /// A leaf with the entries `range` of the run, and room for `content` bytes.
    pub(crate) fn build(
        run: &Run,
        range: std::ops::Range<usize>,
        content: usize,
        prefix: &Prefix<'_>,
    ) -> NewTreeLeaf {
        let new = NewTreeLeaf::empty(content, prefix);
        let suffix = |i: usize| &run.position(i)[prefix.len()..];
        let records = range.clone().map(|i| run.stored(i).record(suffix(i).len()));
        let first = range.start;
        new.fill(range.len(), records.sum(), |i, writer| {
            let (suffix, stored) = (suffix(first + i), run.stored(first + i));
            write_record(writer, suffix, stored);
            head_of(suffix)
        });
        new
    }

    /// Writes entries to an empty leaf, the last one first: `write` writes a record and gives its
    /// head.
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
        let mut writer = words::Writer::new(words, heap);
        for i in (0..entries).rev() {
            let at = writer.at();
            let head = write(i, &mut writer);
            // Ordering: Relaxed, nobody else can reach the leaf yet.
            words[i].store(head | at as u64, Relaxed);
        }
        writer.finish();
        self.locked().filled(entries, heap, records);
    }

    /// As if its lock were held: nobody else can reach it.
    fn locked(&self) -> LockedTreeLeaf<'_> {
        LockedTreeLeaf {
            leaf: self.0,
            before: 0,
            changed: false,
        }
    }

    /// The content, as plain bytes: nobody else can reach it.
    pub(super) fn content(&mut self) -> &mut [u8] {
        let words = self.0.head().words as usize;
        // SAFETY: 1. the content follows head and samples, `words` words of it, by the layout of
        // the allocation; 2. it was zeroed, and the leaf is this one's alone, which is borrowed for
        // as long as the slice lives.
        unsafe {
            let at = self.0.head.as_ptr().add(1).cast::<u64>();
            let at = at.add(sample_words(words)).cast::<u8>();
            std::slice::from_raw_parts_mut(at, words * 8)
        }
    }

    /// It was empty, and has been filled: so many entries, whose records begin at `heap` and take
    /// so many bytes.
    pub(super) fn filled(&mut self, entries: usize, heap: usize, records: usize) {
        self.locked().filled(entries, heap, records);
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Takes over what another, whose lock is held, knows of the writers.
    pub(crate) fn inherit(&self, other: TreeLeaf<'_>) {
        // Ordering: Relaxed, both: the one is locked, the other not yet published.
        let known = other.head().statistics.load(Relaxed);
        self.0.head().statistics.store(known, Relaxed);
    }

    /// As `inherit` where the run of inserts goes on in this leaf, at slot `i`.
    pub(crate) fn inherit_at(&self, other: TreeLeaf<'_>, i: usize) {
        const WHERE: u64 = 0x7FFF << 49;
        self.inherit(other);
        let statistics = &self.0.head().statistics;
        // Ordering: Relaxed, both, as above.
        let known = statistics.load(Relaxed) & !WHERE;
        statistics.store(known | (i as u64) << 49 & WHERE, Relaxed);
    }

    /// Hands the leaf over to a slot.
    pub(super) fn publish(self) -> TreeLeaf<'static> {
        let leaf = self.0;
        std::mem::forget(self);
        leaf
    }
}

impl Drop for NewTreeLeaf {
    fn drop(&mut self) {
        // SAFETY: nobody else could ever reach it. Its handles, if any, belong to another leaf
        // still.
        unsafe { self.0.free() };
    }
}
