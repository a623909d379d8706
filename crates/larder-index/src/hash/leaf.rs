//! A leaf of the hash order: buckets in one run of memory, under one lock. `hash::shape` has the
//! drawing.
//!
//! The [`Shape`] of a leaf never changes: to change it, the leaf is replaced. So the slots of the
//! trie contain the shape beside the address. A reader knows the address of its bucket from the
//! slot, and prefetches the leaf's head and the bucket together, before it has read a byte of the
//! leaf.

use crate::hash::bucket::{copy_all, entries, Bucket, Home};
use crate::hash::shape::{Probe, Shape, SMALLEST};
use crate::memory::{self, prefetch};
use crate::outside::{Handle, Outside};
pub(crate) use crate::seqlock::version::Obsolete;
use crate::seqlock::version::{HeldVersion, Version};
use crate::seqlock::words;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The head of a leaf, with which its memory begins.
#[repr(C, align(64))]
pub(super) struct HashLeafHead {
    version: Version,
    /// The number of entries.
    pub(super) count: AtomicU32,
    /// The bytes of their objects and slot entries.
    pub(super) live: AtomicU32,
    /// The contention counter, as an `i32`.
    pub(super) contention: AtomicU32,
    /// The number of buckets. The slots of the trie have it, too, unless it is too large.
    buckets: u32,
    bounds: LiveBounds,
    /// The mark of those entries that have one (see `marks`).
    pub(super) mark: AtomicU64,
    /// For how many entries of each bucket there is a bit that says whether they have the mark.
    pub(super) marked: u32,
    /// The last words of these bits; all of them, in a leaf of few buckets.
    pub(super) head_marks: [AtomicU64; HEAD_MARKS],
}

/// The number of words of the head with bits of marks.
const HEAD_MARKS: usize = 2;

/// The number of words with bits of marks after the buckets of a leaf of this shape. A size class
/// of leaves has this much space left after head and buckets, except in small leaves.
fn tail_marks(shape: Shape) -> usize {
    if shape.buckets > 3 {
        8
    } else {
        0
    }
}

/// The bounds of a leaf's live bytes. They follow from its range and shape, and never change.
#[derive(Clone, Copy)]
pub(crate) struct LiveBounds {
    /// A leaf with fewer live bytes should be replaced by a smaller one, or merge with its buddy.
    pub(crate) least: u32,
    /// A leaf should not have more live bytes.
    pub(crate) most: u32,
}

/// A leaf that is alive for `'g`, as the word of the slot that led to it. The word has the leaf's
/// address, and as much of its shape as fits (see `slot` for the layout).
#[derive(Clone, Copy)]
pub(crate) struct HashLeaf<'g> {
    word: u64,
    alive: PhantomData<&'g Guard>,
}

/// The number of bits of an address.
pub(super) const ADDRESS_BITS: u32 = 48;
/// The bits of a word that are the address. Leaves are aligned to 64 bytes.
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 64;
/// The bit at which the number of buckets begins.
const BUCKETS_AT: u32 = ADDRESS_BITS + 6;
/// The bit at which the class begins.
const CLASS_AT: u32 = BUCKETS_AT + 7;
/// The largest number of buckets that fits in the word.
const MOST_BUCKETS: u32 = 127;

/// The address of a pointer. Panics if it uses bits of the word that are needed otherwise.
pub(super) fn address_of<T>(pointer: NonNull<T>) -> u64 {
    let address = pointer.as_ptr().expose_provenance() as u64;
    assert!(
        address & !ADDRESS == 0,
        "memory lies beyond the 48 bits of an address"
    );
    address
}

/// The pointer in a word.
#[inline]
pub(super) fn pointer_to<T>(word: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut((word & ADDRESS) as usize)
}

/// A leaf that nobody else can reach yet. It is freed if it is never published.
pub(crate) struct NewHashLeaf(HashLeaf<'static>);

/// The lock of a leaf. While it is held, no other thread writes to the leaf, and no reader's
/// validation succeeds. It is released when this value is dropped.
pub(crate) struct LockedHashLeaf<'g> {
    pub(super) leaf: HashLeaf<'g>,
    held: HeldVersion,
}

/// A view of a leaf: of a reader, who validates the version afterwards, or of the holder of the
/// lock, who needn't.
#[derive(Clone, Copy)]
pub(crate) struct HashView<'g> {
    pub(super) leaf: HashLeaf<'g>,
    /// The version at which the leaf is read; [`ALWAYS`] for the holder of the lock.
    version: u64,
}

/// A value that isn't the version of any unlocked leaf.
const ALWAYS: u64 = u64::MAX;

impl<'g> HashLeaf<'g> {
    /// The leaf of a word.
    ///
    /// # Safety
    /// There is a leaf with this word, and it isn't freed during `'g`.
    #[inline]
    pub(super) unsafe fn at(word: u64) -> HashLeaf<'g> {
        HashLeaf {
            word,
            alive: PhantomData,
        }
    }

    /// The leaf of this shape at this address.
    ///
    /// # Safety
    /// There is a leaf of this shape at this address, and it isn't freed during `'g`.
    unsafe fn of(head: NonNull<HashLeafHead>, shape: Shape) -> HashLeaf<'g> {
        // A number of buckets that doesn't fit in the word is read from the head.
        let buckets = if shape.buckets > MOST_BUCKETS {
            0
        } else {
            u64::from(shape.buckets)
        };
        let (class, depth) = (u64::from(shape.class), u64::from(shape.depth));
        let fixed = class << CLASS_AT | buckets << BUCKETS_AT | depth << ADDRESS_BITS;
        HashLeaf {
            word: address_of(head) | fixed,
            alive: PhantomData,
        }
    }

    /// The word for the slots that lead to the leaf.
    pub(super) fn word(self) -> u64 {
        self.word
    }

    /// The shape of the leaf.
    #[inline]
    pub(crate) fn shape(self) -> Shape {
        let buckets = (self.word >> BUCKETS_AT) as u32 & MOST_BUCKETS;
        Shape {
            buckets: if buckets == 0 {
                self.bucket_count_in_head()
            } else {
                buckets
            },
            class: self.class(),
            depth: (self.word >> ADDRESS_BITS) as u8 & 63,
        }
    }

    /// The class of its buckets.
    #[inline]
    pub(crate) fn class(self) -> u8 {
        (self.word >> CLASS_AT) as u8
    }

    /// The number of its buckets, from the leaf's head: for one that doesn't fit in the word.
    #[cold]
    fn bucket_count_in_head(self) -> u32 {
        self.head().buckets
    }

    #[inline]
    fn address(self) -> NonNull<HashLeafHead> {
        // SAFETY: The word was made from the address of a leaf, which is not null.
        unsafe { NonNull::new_unchecked(pointer_to(self.word)) }
    }

    #[inline]
    pub(super) fn head(self) -> &'g HashLeafHead {
        // SAFETY: The leaf is alive for `'g`. The fields of its head are atomics, or never change.
        unsafe { self.address().as_ref() }
    }

    /// The first word of its buckets.
    #[inline]
    fn first(self) -> NonNull<AtomicU64> {
        // SAFETY: In the allocation of a leaf, the buckets follow the head (`layout`).
        unsafe { self.address().add(1).cast() }
    }

    /// The words of all buckets.
    #[inline]
    pub(super) fn words(self) -> &'g [AtomicU64] {
        let len = self.shape().content() / 8;
        // SAFETY:
        // 1. In the allocation of a leaf, the buckets follow the head (`layout`).
        // 2. They are alive for `'g`.
        // 3. Every bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), len) }
    }

    /// The words after the buckets with bits of marks.
    #[inline]
    pub(super) fn tail_marks(self) -> &'g [AtomicU64] {
        let shape = self.shape();
        // SAFETY:
        // 1. In the allocation of a leaf, these words follow the buckets (`layout`).
        // 2. They are alive for `'g`.
        // 3. Every bit pattern is a valid word.
        unsafe {
            let at = self.first().add(shape.content() / 8);
            std::slice::from_raw_parts(at.as_ptr(), tail_marks(shape))
        }
    }

    /// The bucket with this number.
    #[inline]
    pub(super) fn bucket(self, bucket: usize) -> Bucket<'g> {
        assert!(bucket < self.shape().buckets as usize);
        // SAFETY: The number was checked above.
        unsafe { self.bucket_unchecked(bucket) }
    }

    /// The bucket with this number.
    ///
    /// # Safety
    /// There are more buckets than `bucket`.
    #[inline]
    unsafe fn bucket_unchecked(self, bucket: usize) -> Bucket<'g> {
        // A shift takes fewer cycles than a multiplication.
        const WORDS: u8 = (SMALLEST / 8).trailing_zeros() as u8;
        let shift = self.class() + WORDS;
        // SAFETY:
        // 1. The number of words of a bucket is a power of two.
        // 2. The caller says that the leaf has this bucket. So the words are some of those that
        //    `words` returns, and alive for `'g`.
        unsafe { Bucket::at(self.first().add(bucket << shift), 1 << shift) }
    }

    /// The home of a hash.
    #[inline]
    pub(crate) fn home(self, hash: u64) -> Home<'g> {
        let Probe { home, tag } = self.shape().probe(hash);
        // SAFETY: `probe` returns the whole part of a fraction below 1 times the number of buckets.
        // So the leaf has a bucket of this number.
        let bucket = unsafe { self.bucket_unchecked(home) };
        Home { bucket, tag }
    }

    /// The number of a bucket.
    pub(super) fn number(self, bucket: Bucket<'_>) -> usize {
        let first = self.first().as_ptr() as usize;
        (bucket.address() as usize - first) >> self.shape().bucket().trailing_zeros()
    }

    /// The memory of the leaf in bytes. The bits of marks don't count: they lie in what the leaf's
    /// size class has beyond the buckets.
    pub(crate) fn memory(self) -> usize {
        size_of::<HashLeafHead>() + self.shape().content()
    }

    /// The number of entries. Without the lock it may be out of date.
    pub(crate) fn count(self) -> usize {
        // Ordering: Relaxed, a hint unless the lock is held.
        self.head().count.load(Relaxed) as usize
    }

    /// The number of entries of a bucket. Without the lock it may be out of date.
    pub(crate) fn entries_of(self, bucket: usize) -> usize {
        entries(self.bucket(bucket).word(0))
    }

    /// The bytes of objects and slot entries. Without the lock the number may be out of date.
    pub(crate) fn live_bytes(self) -> usize {
        // Ordering: Relaxed, a hint unless the lock is held.
        self.head().live.load(Relaxed) as usize
    }

    /// The bounds of the live bytes.
    #[inline]
    pub(crate) fn bounds(self) -> LiveBounds {
        self.head().bounds
    }

    /// Prefetches the head, and the first four lines from the home bucket on.
    #[inline]
    pub(crate) fn prefetch(self, home: &Home<'g>) {
        let at = home.bucket.address();
        prefetch(self.address().as_ptr().cast());
        prefetch(at);
        prefetch(at.wrapping_add(64));
        // Four lines: of a 128-byte bucket, the bucket and the next one, where displaced entries
        // are. Of a larger bucket, its first four lines: its slot entries, and some objects.
        // (64-byte buckets exist in tests only.) After the last bucket the lines belong to other
        // memory, which does no harm.
        if home.bucket.len() >= 128 {
            prefetch(at.wrapping_add(128));
            prefetch(at.wrapping_add(192));
        }
    }

    /// Begins an optimistic read. Waits while the leaf is locked.
    #[inline]
    pub(crate) fn read(self) -> Result<HashView<'g>, Obsolete> {
        Ok(HashView {
            leaf: self,
            version: self.head().version.read()?,
        })
    }

    /// Begins an optimistic read, and returns the version alone. Waits while the leaf is locked.
    #[inline]
    pub(crate) fn version(self) -> Result<u64, Obsolete> {
        self.head().version.read()
    }

    /// Whether a writer holds the lock, or the leaf is obsolete. A hint, which says nothing of the
    /// next instant.
    #[inline]
    pub(super) fn is_locked(self) -> bool {
        self.head().version.is_locked()
    }

    /// Whether everything that was read since this version was loaded is correct.
    #[inline]
    pub(crate) fn validate(self, version: u64) -> bool {
        self.head().version.validate(version)
    }

    /// Takes the lock if it is free. Returns `Ok(None)` if it isn't.
    #[inline]
    pub(crate) fn try_lock(self) -> Result<Option<LockedHashLeaf<'g>>, Obsolete> {
        let before = self.head().version.try_lock()?;
        Ok(before.map(|before| LockedHashLeaf::new(self, before)))
    }

    /// Takes the lock if the version is still this one, which a read has validated.
    #[inline]
    pub(crate) fn try_lock_at(self, version: u64) -> Option<LockedHashLeaf<'g>> {
        let locked = self.head().version.try_lock_at(version);
        locked.then(|| LockedHashLeaf::new(self, version))
    }

    /// Takes the lock.
    #[inline]
    pub(crate) fn lock(self) -> Result<LockedHashLeaf<'g>, Obsolete> {
        let (before, _) = self.head().version.lock()?;
        Ok(LockedHashLeaf::new(self, before))
    }

    /// Frees the leaf when no reader can use it any more, but not its outside objects.
    ///
    /// # Safety
    /// The leaf is obsolete, no thread that pins from now on can find it, and nobody retires it
    /// again.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        let (block, whole) = (self.address().cast(), layout(self.shape()));
        // SAFETY:
        // 1. A thread that pins from now on cannot find the leaf. So when the closure runs, nobody
        //    has it.
        // 2. The memory was allocated by `NewHashLeaf::empty` with this layout.
        // 3. The closure has the address, not a reference. It is a plain pointer, so that leak
        //    checkers see that the block is reachable.
        unsafe { guard.defer_unchecked(move || memory::release(block, whole)) };
    }

    /// Frees the leaf's memory now.
    ///
    /// # Safety
    /// Nobody can use the leaf any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: The memory was allocated with this layout, since the shape of a leaf never
        // changes. The caller says that nobody can use it.
        unsafe { memory::release(self.address().cast(), layout(self.shape())) };
    }

    /// Frees the leaf and its outside objects.
    ///
    /// # Safety
    /// Nobody can use the leaf any more; the handles in it are not in another leaf.
    pub(super) unsafe fn free_all(self) {
        // SAFETY: The caller says that nobody can use the leaf, so nobody writes to it.
        for handle in unsafe { self.handles() } {
            // SAFETY: An outside object belongs to the one leaf that has its handle.
            unsafe { handle.free() };
        }
        // SAFETY: The caller says that nobody can use the leaf.
        unsafe { self.free() };
    }

    /// All handles in the leaf.
    ///
    /// # Safety
    /// Nobody writes to the leaf meanwhile.
    unsafe fn handles(self) -> Vec<Handle> {
        use crate::hash::plain;
        // SAFETY: The caller says that nobody writes meanwhile.
        let bytes = unsafe { self.plain() };
        let mut handles = Vec::new();
        let shape = self.shape();
        // All entries of all buckets. Only those outside have handles.
        for bucket in 0..shape.buckets as usize {
            for e in plain::entries(bytes, bucket * shape.bucket(), shape) {
                if e.outside {
                    handles.push(Handle::from_bits(plain::handle_bits(&bytes[e.from..e.end])));
                }
            }
        }
        handles
    }

    /// The buckets as plain bytes.
    ///
    /// # Safety
    /// Nobody writes to the leaf during `'a`.
    unsafe fn plain<'a>(self) -> &'a [u8] {
        let words = self.words();
        // SAFETY:
        // 1. The words are initialised, and alive as long as the leaf.
        // 2. The caller says that nobody writes to them. Other threads may load them.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) }
    }
}

impl<'g> HashView<'g> {
    /// The number of entries of the leaf. It may be out of date.
    pub(crate) fn count(&self) -> usize {
        self.leaf.count()
    }

    /// The version at which the leaf is read.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether everything that was read so far is correct.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.version == ALWAYS || self.leaf.head().version.validate(self.version)
    }

    /// Appends the bytes of a bucket to `out`.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) {
        copy_all(self.leaf.bucket(bucket).words(), out);
    }

    /// Appends the bytes of all buckets to `out`.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) {
        copy_all(self.leaf.words(), out);
    }

    /// The outside object of a handle that was read from this leaf.
    #[inline]
    pub(crate) fn object(&self, handle: Handle) -> Result<Outside<'g>, words::Torn> {
        if !self.is_valid() {
            return Err(words::Torn);
        }
        // SAFETY:
        // 1. The check has shown that the handle was in the leaf while the guard of `'g` was held.
        // 2. So the object is not freed before that guard is dropped.
        Ok(unsafe { handle.object() })
    }
}

impl<'g> LockedHashLeaf<'g> {
    /// The lock of a leaf that was just taken. `before` is the version before that.
    #[inline]
    fn new(leaf: HashLeaf<'g>, before: u64) -> Self {
        let held = HeldVersion::at(before);
        LockedHashLeaf { leaf, held }
    }

    /// Whether nothing was changed between loading this version and taking the lock.
    pub(crate) fn was_at(&self, version: u64) -> bool {
        self.held.before() == version
    }

    /// The version before the lock was taken.
    #[inline]
    pub(super) fn version_before(&self) -> u64 {
        self.held.before()
    }

    /// The version once the lock is released.
    #[inline]
    pub(super) fn version_after(&self) -> u64 {
        self.held.after()
    }

    /// Records that something is about to be changed.
    #[inline]
    pub(super) fn change(&mut self) {
        self.held.change();
    }

    /// The leaf.
    #[inline]
    pub(crate) fn leaf(&self) -> HashLeaf<'g> {
        self.leaf
    }

    /// A view that needs no validation.
    #[inline]
    pub(crate) fn view(&self) -> HashView<'g> {
        HashView {
            leaf: self.leaf,
            version: ALWAYS,
        }
    }

    /// All buckets as plain bytes, while this borrow of the lock lasts.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The lock is held, so no other thread writes. This one writes through `&mut self`,
        // which the borrow excludes.
        unsafe { self.leaf.plain() }
    }

    /// A bucket of this leaf as plain bytes, while this borrow of the lock lasts.
    #[inline]
    pub(super) fn plain<'a>(&'a self, bucket: Bucket<'a>) -> &'a [u8] {
        // SAFETY: The lock is held, so no other thread writes. This one writes through `&mut self`,
        // which the borrow excludes.
        unsafe { bucket.plain() }
    }

    /// The outside object of a handle that is in this leaf, or that the lock's holder has made to
    /// put it there.
    pub(crate) fn object(&self, handle: Handle) -> Outside<'_> {
        // SAFETY: The handle is in a locked leaf, or in none yet. So its object stays alive while
        // the lock is held.
        unsafe { handle.object() }
    }

    /// Marks the leaf obsolete, which also unlocks it. A thread that finds it from now on searches
    /// again from the root.
    pub(super) fn mark_obsolete(self) {
        self.leaf.head().version.mark_obsolete(self.held.before());
        std::mem::forget(self);
    }
}

impl Drop for LockedHashLeaf<'_> {
    /// Unlocks the leaf. If it wasn't changed, it keeps its version, so that no reader has to
    /// retry.
    #[inline]
    fn drop(&mut self) {
        self.leaf.head().version.unlock(self.held);
    }
}

const _: () = assert!(size_of::<HashLeafHead>() == crate::hash::shape::HEAD);

/// For how many entries of each bucket there is a bit of a mark.
fn marked(shape: Shape) -> u32 {
    let words = tail_marks(shape) + HEAD_MARKS;
    (words as u32 * u64::BITS / shape.buckets).min(u64::BITS)
}

/// The memory of a leaf.
fn layout(shape: Shape) -> Layout {
    Layout::from_size_align(
        size_of::<HashLeafHead>() + shape.content() + tail_marks(shape) * 8,
        align_of::<HashLeafHead>(),
    )
    .expect("a leaf's size is far below the address space")
}

impl NewHashLeaf {
    /// An empty leaf.
    pub(crate) fn empty(shape: Shape, bounds: LiveBounds) -> NewHashLeaf {
        let head = memory::allocate_zeroed(layout(shape)).cast::<HashLeafHead>();
        // SAFETY: The memory is new, belongs to this thread, and is large enough for a head. Zeroed
        // memory is a valid head.
        unsafe {
            (*head.as_ptr()).buckets = shape.buckets;
            (*head.as_ptr()).bounds = bounds;
            (*head.as_ptr()).marked = marked(shape);
        }
        // SAFETY: The memory now has a leaf of this shape, which belongs to this thread until it is
        // published.
        NewHashLeaf(unsafe { HashLeaf::of(head, shape) })
    }

    /// The bytes of all buckets, to be filled.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let head = self.0.address().as_ptr();
        // SAFETY:
        // 1. The buckets follow the head.
        // 2. The allocator has zeroed them.
        // 3. The leaf is not published, so it belongs to this thread.
        unsafe {
            std::slice::from_raw_parts_mut(head.add(1).cast::<u8>(), self.0.shape().content())
        }
    }

    /// Sets the count and the live bytes after the leaf was filled.
    pub(crate) fn filled(&mut self, count: usize, live: usize) {
        let head = self.0.head();
        // Ordering: Relaxed, both: the leaf is not published.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, as above.
        head.live.store(live as u32, Relaxed);
    }

    /// Starts from a greater version than any of this leaf, which it will replace, and returns that
    /// version.
    pub(super) fn succeed(&mut self, old: &LockedHashLeaf<'_>) -> u64 {
        self.0.head().version.succeed(old.held.before())
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> Shape {
        self.0.shape()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Gives up the ownership of the leaf, which is about to be stored to a slot.
    pub(super) fn publish(self) -> HashLeaf<'static> {
        let leaf = self.0;
        std::mem::forget(self);
        leaf
    }

    /// The same as `publish`, with the leaf locked. It stays locked until all of its slots have
    /// been stored to.
    pub(super) fn publish_locked(self, _guard: &Guard) -> LockedHashLeaf<'_> {
        let before = self.0.head().version.lock_new();
        LockedHashLeaf::new(self.publish(), before)
    }
}

impl Drop for NewHashLeaf {
    fn drop(&mut self) {
        // SAFETY: The leaf was never published, so nobody else has it. Its handles, if there are
        // any, still belong to another leaf.
        unsafe { self.0.free() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::size_class;
    use crate::hash::shape::TOP_CLASS;

    /// The bits of marks lie in bytes that the leaf's size class has in any case.
    #[test]
    fn marks_take_no_memory() {
        // Blocks of these sizes are whole units of 256 bytes (`memory::regions`).
        let block = |bytes: usize| match bytes {
            1280..=16384 => bytes.next_multiple_of(256),
            _ => size_class(bytes),
        };
        for class in 1..=TOP_CLASS {
            for buckets in 1..=16384 / (SMALLEST as u32) {
                let shape = Shape {
                    buckets,
                    class,
                    depth: 0,
                };
                let bytes = size_of::<HashLeafHead>() + shape.content();
                assert_eq!(block(layout(shape).size()), block(bytes), "{shape:?}");
            }
        }
    }
}
