//! A leaf of the hash order: buckets in one run of memory, under one lock. `hash::shape` has the
//! drawing.
//!
//! The [`Shape`] of a leaf never changes: a leaf whose shape would change is replaced. So the
//! trie's slots carry the shape beside the address. A reader knows from the slot where its bucket
//! lies, and prefetches the leaf's head and the bucket together, before it has read a byte of the
//! leaf.

use crate::hash::bucket::{copy_all, entries, Bucket, Home};
use crate::hash::shape::{Shape, SMALLEST};
use crate::memory::{self, prefetch};
use crate::outside::{Handle, Outside};
pub(crate) use crate::seqlock::version::Obsolete;
use crate::seqlock::version::Version;
use crate::seqlock::words;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What a leaf's memory begins with.
#[repr(C, align(64))]
pub(super) struct HashLeafHead {
    version: Version,
    /// Entries.
    pub(super) count: AtomicU32,
    /// Bytes of their objects and slot entries.
    pub(super) live: AtomicU32,
    /// The contention counter, as an `i32`.
    pub(super) contention: AtomicU32,
    /// How many buckets. The slots say it, too, if there are not too many.
    buckets: u32,
    bounds: LiveBounds,
}

/// Between which bytes of objects and slot entries a leaf has nothing to do. They never change:
/// they follow from its shape.
#[derive(Clone, Copy)]
pub(crate) struct LiveBounds {
    /// When it has fewer, a smaller leaf should take its place, or it should merge with its
    /// neighbour.
    pub(crate) least: u32,
    /// It should not have more.
    pub(crate) most: u32,
}

/// A leaf that is alive for `'g`: the word of the slot that led to it, which has the leaf's address
/// and as much of its shape as there is room for (`slot` has the drawing).
#[derive(Clone, Copy)]
pub(crate) struct HashLeaf<'g> {
    word: u64,
    alive: PhantomData<&'g Guard>,
}

/// Bits of an address.
pub(super) const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 64;
/// Where the number of buckets and the class lie.
const BUCKETS_AT: u32 = ADDRESS_BITS + 6;
const CLASS_AT: u32 = BUCKETS_AT + 7;
/// The most buckets that the word has room for.
const MOST_BUCKETS: u32 = 127;

/// The address as a number, checked to leave the bits free that say more.
pub(super) fn address_of<T>(pointer: NonNull<T>) -> u64 {
    let address = pointer.as_ptr().expose_provenance() as u64;
    assert!(
        address & !ADDRESS == 0,
        "memory lies beyond the 48 bits of an address"
    );
    address
}

/// Where a word leads.
#[inline(always)]
pub(super) fn pointer_to<T>(word: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut((word & ADDRESS) as usize)
}

/// A leaf that nobody else can reach yet. Freed if it is never published.
pub(crate) struct NewHashLeaf(HashLeaf<'static>);

/// What a writer holds: no other writer is at work on the leaf, and no reader believes what it
/// reads.
pub(crate) struct LockedHashLeaf<'g> {
    pub(super) leaf: HashLeaf<'g>,
    /// The version before the lock was taken, and in its lowest bit, which is free in a version
    /// without lock, whether anything was changed since.
    before: u64,
}

/// In `LockedHashLeaf::before`: something was changed.
const CHANGED: u64 = 1;

/// A view of a leaf: by a reader, who checks afterwards whether it was true, or by the lock's
/// holder, who has nothing to check.
#[derive(Clone, Copy)]
pub(crate) struct HashView<'g> {
    pub(super) leaf: HashLeaf<'g>,
    /// What was read is true while the leaf's version is this; [`ALWAYS`] for the lock's holder.
    version: u64,
}

/// No version at which a leaf can be read.
const ALWAYS: u64 = u64::MAX;

impl<'g> HashLeaf<'g> {
    /// From the word of a leaf.
    ///
    /// # Safety
    /// A leaf with this word was published, and is not freed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn at(word: u64) -> HashLeaf<'g> {
        HashLeaf {
            word,
            alive: PhantomData,
        }
    }

    /// A leaf of this shape, which lies there.
    ///
    /// # Safety
    /// As for `at`.
    unsafe fn of(head: NonNull<HashLeafHead>, shape: Shape) -> HashLeaf<'g> {
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

    /// What a slot that leads to it has.
    pub(super) fn word(self) -> u64 {
        self.word
    }

    /// What never changes of it.
    #[inline(always)]
    pub(crate) fn shape(self) -> Shape {
        let buckets = (self.word >> BUCKETS_AT) as u32 & MOST_BUCKETS;
        Shape {
            buckets: if buckets == 0 { self.many() } else { buckets },
            class: self.class(),
            depth: (self.word >> ADDRESS_BITS) as u8 & 63,
        }
    }

    /// The class of its buckets.
    #[inline(always)]
    pub(crate) fn class(self) -> u8 {
        (self.word >> CLASS_AT) as u8
    }

    /// The number of its buckets, if the word can't tell.
    #[cold]
    fn many(self) -> u32 {
        self.head().buckets
    }

    #[inline(always)]
    fn address(self) -> NonNull<HashLeafHead> {
        // SAFETY: the address of a leaf is not null.
        unsafe { NonNull::new_unchecked(pointer_to(self.word)) }
    }

    #[inline(always)]
    pub(super) fn head(self) -> &'g HashLeafHead {
        // SAFETY: a `HashLeaf` is alive for `'g`; the head is shared by atomics and what never
        // changes.
        unsafe { self.address().as_ref() }
    }

    /// Where its buckets begin.
    #[inline(always)]
    fn first(self) -> NonNull<AtomicU64> {
        // SAFETY: the buckets follow the head, by the layout of the allocation.
        unsafe { self.address().add(1).cast() }
    }

    /// The words of all buckets.
    #[inline]
    pub(super) fn words(self) -> &'g [AtomicU64] {
        let len = self.shape().content() / 8;
        // SAFETY: 1. the buckets follow the head, by the layout of the allocation; 2. they are
        // alive for `'g`; 3. all bit patterns are words.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), len) }
    }

    /// A bucket.
    #[inline]
    pub(super) fn bucket(self, bucket: usize) -> Bucket<'g> {
        assert!(bucket < self.shape().buckets as usize);
        // SAFETY: checked above.
        unsafe { self.bucket_unchecked(bucket) }
    }

    /// A bucket.
    ///
    /// # Safety
    /// There are more buckets than `bucket`.
    #[inline(always)]
    pub(super) unsafe fn bucket_unchecked(self, bucket: usize) -> Bucket<'g> {
        // A shift takes fewer cycles than a multiplication.
        const WORDS: u8 = (SMALLEST / 8).trailing_zeros() as u8;
        let shift = self.class() + WORDS;
        // SAFETY: 1. the size of a bucket is a power of two; 2. it is a part of what `words` gives:
        // there are more buckets than `bucket`, says the caller, each of so many words, alive for
        // `'g`.
        unsafe { Bucket::at(self.first().add(bucket << shift), 1 << shift) }
    }

    /// Where the hash is at home.
    #[inline(always)]
    pub(crate) fn home(self, hash: u64) -> Home<'g> {
        let (number, tag) = self.shape().place(hash);
        // SAFETY: a leaf has at least one bucket, and `place` gives the whole part of a fraction
        // times their number, which is below it.
        let bucket = unsafe { self.bucket_unchecked(number) };
        Home { bucket, tag }
    }

    /// Which bucket of the leaf it is.
    pub(super) fn number(self, bucket: Bucket<'_>) -> usize {
        let first = self.first().as_ptr() as usize;
        (bucket.address() as usize - first) >> self.shape().bucket().trailing_zeros()
    }

    /// Bytes of memory.
    pub(crate) fn memory(self) -> usize {
        layout(self.shape()).size()
    }

    /// Entries, as of some moment.
    pub(crate) fn count(self) -> usize {
        // Ordering: Relaxed, a hint unless the lock is held.
        self.head().count.load(Relaxed) as usize
    }

    /// Entries of a bucket, as of some moment.
    pub(crate) fn entries_of(self, bucket: usize) -> usize {
        entries(self.bucket(bucket).word(0))
    }

    /// Bytes of objects and slot entries, as of some moment.
    pub(crate) fn live(self) -> usize {
        // Ordering: Relaxed, a hint unless the lock is held.
        self.head().live.load(Relaxed) as usize
    }

    /// Between how many bytes of objects and slot entries it should have.
    #[inline(always)]
    pub(crate) fn bounds(self) -> LiveBounds {
        self.head().bounds
    }

    /// Prefetches the head and the home bucket, all lines at once.
    #[inline(always)]
    pub(crate) fn prefetch(self, home: &Home<'g>) {
        let at = home.bucket.address();
        prefetch(self.address().as_ptr().cast());
        // The smallest buckets have one line, the next larger ones two. Displaced entries lie in
        // the next bucket, so as many lines behind the home are prefetched, too. Behind the last
        // bucket these are lines of other memory, which does no harm.
        prefetch(at);
        prefetch(at.wrapping_add(64));
        // Of a bucket of more than 128 bytes these are the first four lines. Where its objects lie
        // is known only from its slot entries.
        if home.bucket.len() >= 128 {
            prefetch(at.wrapping_add(128));
            prefetch(at.wrapping_add(192));
        }
    }

    /// Begins an optimistic read; waits while a writer is at work.
    #[inline]
    pub(crate) fn read(self) -> Result<HashView<'g>, Obsolete> {
        Ok(HashView {
            leaf: self,
            version: self.head().version.read()?,
        })
    }

    /// As `read`, of which nothing but the version is kept.
    #[inline(always)]
    pub(crate) fn version(self) -> Result<u64, Obsolete> {
        self.head().version.read()
    }

    /// Whether all that was read since the version was is true.
    #[inline(always)]
    pub(crate) fn validate(self, version: u64) -> bool {
        self.head().version.validate(version)
    }

    /// Takes the lock if it is free: `Ok(None)` if it isn't.
    #[inline(always)]
    pub(crate) fn try_lock(self) -> Result<Option<LockedHashLeaf<'g>>, Obsolete> {
        let before = self.head().version.try_lock()?;
        Ok(before.map(|before| LockedHashLeaf::new(self, before)))
    }

    /// Takes the lock. Also says whether another had it.
    #[inline]
    pub(crate) fn lock(self) -> Result<(LockedHashLeaf<'g>, bool), Obsolete> {
        let (before, contended) = self.head().version.lock()?;
        Ok((LockedHashLeaf::new(self, before), contended))
    }

    /// Frees the leaf's memory when no reader can have it any more; what its handles lead to stays.
    ///
    /// # Safety
    /// The leaf is obsolete, no slot leads to it any more, and nobody retires it again.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        let (block, whole) = (self.address().cast(), layout(self.shape()));
        // SAFETY: 1. a thread that pins from now on can't find the leaf; 2. the memory came from
        // `NewHashLeaf::empty`; 3. its address is sent, not a reference: a plain one, by which a
        // checker of leaks sees that the block isn't lost.
        unsafe { guard.defer_unchecked(move || memory::release(block, whole)) };
    }

    /// Frees the leaf's memory now.
    ///
    /// # Safety
    /// Nobody can use the leaf any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: the memory was allocated with this layout, which never changes.
        unsafe { memory::release(self.address().cast(), layout(self.shape())) };
    }

    /// Frees the leaf and the outside objects that it leads to.
    ///
    /// # Safety
    /// Nobody can use the leaf any more; the handles in it are not in another leaf.
    pub(super) unsafe fn free_all(self) {
        // SAFETY: nobody writes.
        for handle in unsafe { self.handles() } {
            // SAFETY: only this leaf had the handle.
            unsafe { handle.free() };
        }
        // SAFETY: the caller's promise.
        unsafe { self.free() };
    }

    /// All handles in the leaf.
    ///
    /// # Safety
    /// Nobody writes to the leaf meanwhile.
    unsafe fn handles(self) -> Vec<Handle> {
        use crate::hash::plain;
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.plain() };
        let mut handles = Vec::new();
        let shape = self.shape();
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
        // SAFETY: 1. the words are initialised and alive, as long as nobody frees the leaf; 2.
        // nobody writes to them, says the caller; others only load.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) }
    }
}

impl<'g> HashView<'g> {
    /// Entries of the leaf, as of some moment.
    pub(crate) fn count(&self) -> usize {
        self.leaf.count()
    }

    /// The version that what was read is true at.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether all that was read so far is true.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.version == ALWAYS || self.leaf.head().version.validate(self.version)
    }

    /// Appends the bytes of a bucket to `out`, as they are.
    pub(crate) fn copy_bucket(&self, bucket: usize, out: &mut Vec<u8>) {
        copy_all(self.leaf.bucket(bucket).words(), out);
    }

    /// Appends the bytes of all buckets to `out`, as they are.
    pub(crate) fn copy_buckets(&self, out: &mut Vec<u8>) {
        copy_all(self.leaf.words(), out);
    }

    /// The outside object of a handle that was read from this leaf.
    #[inline]
    pub(crate) fn object(&self, handle: Handle) -> Result<Outside<'g>, words::Torn> {
        if !self.is_valid() {
            return Err(words::Torn);
        }
        // SAFETY: 1. the check says that the handle was in the leaf, while the guard that `'g`
        // stands for was held; 2. it is held on for `'g`.
        Ok(unsafe { handle.object() })
    }
}

impl<'g> LockedHashLeaf<'g> {
    /// The holder of the lock that was just taken.
    #[inline]
    fn new(leaf: HashLeaf<'g>, before: u64) -> Self {
        LockedHashLeaf { leaf, before }
    }

    /// Whether nothing was changed between the reading of a version and the taking of the lock.
    pub(crate) fn was_at(&self, version: u64) -> bool {
        self.before & !CHANGED == version
    }

    /// Notes that something is about to be changed.
    #[inline(always)]
    pub(super) fn change(&mut self) {
        self.before |= CHANGED;
    }

    /// The leaf.
    #[inline]
    pub(crate) fn leaf(&self) -> HashLeaf<'g> {
        self.leaf
    }

    /// A view that needs no check.
    #[inline(always)]
    pub(crate) fn view(&self) -> HashView<'g> {
        HashView {
            leaf: self.leaf,
            version: ALWAYS,
        }
    }

    /// All buckets as plain bytes, while this borrow of the lock lasts.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the lock is held; writing takes `&mut self`, which this borrow excludes.
        unsafe { self.leaf.plain() }
    }

    /// A bucket of this leaf as plain bytes, while this borrow of the lock lasts.
    #[inline(always)]
    pub(super) fn plain<'a>(&'a self, bucket: Bucket<'a>) -> &'a [u8] {
        // SAFETY: the lock is held; writing takes `&mut self`, which this borrow excludes.
        unsafe { bucket.plain() }
    }

    /// The outside object of a handle that is in this leaf.
    pub(crate) fn object(&self, handle: Handle) -> Outside<'_> {
        // SAFETY: the handle is in a locked leaf, so its object is alive while the lock is held.
        unsafe { handle.object() }
    }

    /// Marks the leaf obsolete and lets go of it: a thread that meets it from now on begins again
    /// from the root.
    pub(super) fn obsolete(self) {
        self.leaf.head().version.obsolete(self.before & !CHANGED);
        std::mem::forget(self);
    }
}

impl Drop for LockedHashLeaf<'_> {
    /// Unlocks. A leaf that was not changed keeps its version, so that no reader has to read again.
    #[inline]
    fn drop(&mut self) {
        let changed = self.before & CHANGED != 0;
        let version = &self.leaf.head().version;
        version.unlock(self.before & !CHANGED, changed);
    }
}

const _: () = assert!(size_of::<HashLeafHead>() == crate::hash::shape::HEAD);

/// The memory of a leaf.
fn layout(shape: Shape) -> Layout {
    Layout::from_size_align(
        size_of::<HashLeafHead>() + shape.content(),
        align_of::<HashLeafHead>(),
    )
    .expect("a leaf's size is far below the address space")
}

impl NewHashLeaf {
    /// An empty leaf.
    pub(crate) fn empty(shape: Shape, bounds: LiveBounds) -> NewHashLeaf {
        let head = memory::allocate_zeroed(layout(shape)).cast::<HashLeafHead>();
        // SAFETY: the memory is ours alone and large enough for a head; zeroed memory is a valid
        // one.
        unsafe {
            (*head.as_ptr()).buckets = shape.buckets;
            (*head.as_ptr()).bounds = bounds;
        }
        // SAFETY: a leaf of this shape lies there, ours alone until it is published.
        NewHashLeaf(unsafe { HashLeaf::of(head, shape) })
    }

    /// All buckets, to be filled.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let head = self.0.address().as_ptr();
        // SAFETY: 1. the buckets follow the head; 2. zeroed by the allocator; 3. the leaf is not
        // published: it is ours alone.
        unsafe {
            std::slice::from_raw_parts_mut(head.add(1).cast::<u8>(), self.0.shape().content())
        }
    }

    /// Says what it was filled with.
    pub(crate) fn filled(&mut self, count: usize, live: usize) {
        let head = self.0.head();
        // Ordering: Relaxed, both: the leaf is not published.
        head.count.store(count as u32, Relaxed);
        // Ordering: Relaxed, as above.
        head.live.store(live as u32, Relaxed);
    }

    /// It will take the place of this leaf, or of a part of it.
    pub(super) fn succeed(&mut self, old: &LockedHashLeaf<'_>) {
        self.0.head().version.succeed(old.before & !CHANGED);
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> Shape {
        self.0.shape()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Hands the leaf over to a slot.
    pub(super) fn publish(self) -> HashLeaf<'static> {
        let leaf = self.0;
        std::mem::forget(self);
        leaf
    }

    /// As `publish`, locked: for a leaf to which several slots will lead, one after the other.
    pub(super) fn publish_locked(self, _guard: &Guard) -> LockedHashLeaf<'_> {
        let before = self.0.head().version.lock_new();
        LockedHashLeaf::new(self.publish(), before)
    }
}

impl Drop for NewHashLeaf {
    fn drop(&mut self) {
        // SAFETY: nobody else could ever reach it. Its handles, if any, belong to another leaf
        // still.
        unsafe { self.0.free() };
    }
}
