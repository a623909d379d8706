//! Blocks of the sizes of leaves, adjacent to each other in regions.
//!
//! ```text
//!  region   head: bitmap of the allocated units | unit | unit | … two megabytes, aligned
//!  block    5 to 64 adjacent units of 256 bytes, at the first place where they fit
//! ```
//!
//! Leaves of the hash order grow in step. While a table grows, nearly all of its leaves change from
//! one size to the next. An allocator with separate pages for each size is left with pages of the
//! old sizes, each with a few blocks that stay. Resident bytes per 25-byte row: 36 to 38 (mimalloc
//! 3, a million rows and sixteen). Here memory that some leaves free is available to leaves of any
//! size.
//!
//! 1. The size of a block determines its allocator. Blocks of `LEAST` bytes to `MAX_BLOCK_UNITS`
//!    units are allocated here, all others by the general allocator. So `dealloc` needs no search.
//! 2. `find` tries the first region that may have room (M5). If none has, another shard's may
//!    (`take_elsewhere`). Otherwise a new region is taken.
//! 3. `give` finds the region by the block's address, because regions are aligned to their size.
//! 4. A region without blocks is returned to the system, except for one of each shard.
//!
//! Invariants:
//! * **M3** An allocated unit belongs to the head or to exactly one block.
//! * **M4** The lists of heads, and what is `locked` in them, are accessed only under their shard's
//!   lock. `shard` is written before the first block is returned, and never changes.
//! * **M5** Region `i` of a shard's list has at most `longest_free[i]` adjacent free units. No
//!   region before index `search_from[n]` has `n` adjacent free units. `search_from` ascends with
//!   `n`.
//! * **M6** `empty` is the number of regions of the list without blocks. Between two calls it is at
//!   most one.
//! * **M7** `free` is the sum of the regions' free units. `returned` is the number of their chunks
//!   that the system has, those of the bits of each head's `returned`. All units of such a chunk
//!   are free.
//!
//! When a region that was full has become sparse, its free pieces of 64 KiB are returned to the
//! system. This is repeated each time that half of the rest was freed. If another table grew at the
//! same time, a dropped table seldom leaves whole regions.
//!
//! A thread uses the same shard until it has found it locked a number of times. Then it changes to
//! the next one. So threads that seldom collide share a shard, whose regions are full, and threads
//! that often collide use different ones. Before a shard grows, its thread changes to one that
//! other threads have left.
//!
//! Source: first fit over a bitmap (`units`). Deviation: `longest_free` is an upper bound. It is
//! only lowered when a search in the region fails, so that taking a block needs no second search.
//!
//! When not to use it: for small blocks, which would waste much of a unit, and for blocks over 16
//! KiB, of which there are few.

use crate::memory::general::General;
use crate::memory::pages::{self, Region, REGION};
use crate::memory::units::{Units, CHUNK, MAX_BLOCK_UNITS, UNITS};
use crate::sync::{Mutex, MutexGuard};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::mem::size_of;
use std::ptr::{null_mut, NonNull};
use std::sync::Once;

const UNIT: usize = REGION / UNITS;
const HEAD: usize = size_of::<Head>().div_ceil(UNIT);
const SHARDS: usize = 4;
/// How often a thread waits for a shard before it changes to the next one.
const PATIENCE: usize = 64;

/// A shard is roomy if more than one in this number of its units is free, and not returned to the
/// system. First fit leaves fewer.
const ROOMY: usize = 6;

/// A region is sparse if this number of its units is free.
const SPARSE: usize = UNITS / 4 * 3;

/// The size of the smallest blocks that are allocated here. Smaller ones would waste too much of
/// their last unit.
const LEAST: usize = 5 * UNIT;

/// When a shard's last region has at most this number of free units, an eighth, the next region is
/// requested ahead.
const REQUEST_AHEAD_AT: usize = UNITS / 8;
/// The size of a block from which on it is a leaf that will soon have the size [`LEAST`].
const NEARLY: usize = 3 * UNIT;

/// The head of a region.
struct Head {
    /// Read by owners of blocks, without a lock.
    shard: usize,
    locked: LockedHead,
}

/// What is accessed under the shard's lock.
struct LockedHead {
    /// What is given back in the end.
    region: Region,
    units: Units,
    /// Its index in the shard's list.
    index: usize,
    /// The number of free units at which the free pieces are returned to the system. `None` until a
    /// search in the region has failed.
    sparse: Option<usize>,
    /// Bit `i` is set if chunk `i` was returned to the system, and no block has been there since.
    returned: u32,
}
const _: () = assert!(UNITS / CHUNK <= u32::BITS as usize, "a bit for each chunk");

/// Some regions.
struct Shard {
    regions: Vec<NonNull<Head>>,
    /// A bound for each region, so that those without room are skipped without an access to them.
    longest_free: Vec<u8>,
    search_from: [usize; MAX_BLOCK_UNITS + 1],
    /// The number of regions without blocks. One of them is kept, the others are returned.
    empty: usize,
    /// The sum of their free units.
    free: usize,
    /// The number of their chunks that were returned to the system.
    returned: usize,
    /// Whether the next region was requested ahead.
    has_requested: bool,
}
// SAFETY: Regions belong to no thread. Only the holder of the shard's lock follows the pointers.
unsafe impl Send for Shard {}

static ALL: [Mutex<Shard>; SHARDS] = [const { Mutex::new(Shard::new()) }; SHARDS];

thread_local! {
    /// How often this thread found a shard locked. Each [`PATIENCE`] times, it changes to the next
    /// shard.
    static WAITED: Cell<usize> = const { Cell::new(0) };
}

/// Allocates blocks in regions. Smaller and larger ones are allocated by the general allocator.
pub(crate) struct Regions;

// SAFETY:
// 1. A block of a region consists of units that no other block has (M3). They are as many as the
//    layout needs, and are aligned to a unit.
// 2. All other blocks are those of the general allocator.
// 3. The layout alone determines which of the two a block is. So `dealloc` decides as `alloc` did.
unsafe impl GlobalAlloc for Regions {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_ours(layout) {
            request_first(layout);
            // SAFETY: The caller keeps the contract of `GlobalAlloc`.
            return unsafe { General.alloc(layout) };
        }
        // (2) The lock covers the search in the bitmap, not the first touch of the memory.
        let (number, mut shard) = lock_mine();
        let block = shard.find(units(layout)).or_else(|| {
            drop(shard);
            take_elsewhere(units(layout), number)
        });
        block.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_ours(layout) {
            request_first(layout);
            // SAFETY: The caller keeps the contract of `GlobalAlloc`.
            return unsafe { General.alloc_zeroed(layout) };
        }
        // A block is reused with its old content, so clear it, without the lock.
        // SAFETY: The caller keeps the contract of `GlobalAlloc`. A block that is not null has at
        // least this many bytes, and belongs to this thread alone.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match NonNull::new(block) {
            // SAFETY: The caller owns the block. For such a layout, `alloc` has returned units of a
            // region.
            Some(block) if is_ours(layout) => unsafe { give(block, units(layout)) },
            // SAFETY: The caller owns the block. For such a layout, it came from `General`.
            _ => unsafe { General.dealloc(block, layout) },
        }
    }
}

#[inline]
fn is_ours(layout: Layout) -> bool {
    (LEAST..=MAX_BLOCK_UNITS * UNIT).contains(&layout.size()) && layout.align() <= UNIT
}

/// Requests the very first region when a leaf is nearly large enough for one.
#[inline]
fn request_first(layout: Layout) {
    static REQUESTED: Once = Once::new();
    if layout.size() >= NEARLY && layout.size() < LEAST {
        REQUESTED.call_once(pages::request);
    }
}

/// Frees a block.
///
/// # Safety
/// It is a block of this number of units, and nobody uses it any more.
unsafe fn give(block: NonNull<u8>, units: usize) {
    // (3)
    // SAFETY:
    // 1. The block is in a region. The region begins with a head, and stays while it has a block.
    // 2. `shard` was written before the first block of the region was returned (M4). So the owner
    //    of a block sees it. Others may have a reference to what is locked beside it.
    let number = unsafe { (*head_of(block).as_ptr()).shard };
    // SAFETY: The region belongs to this shard. The caller owns the block, and gives it up.
    let empty = unsafe { ALL[number].lock().give(block, units) };
    if let Some(region) = empty {
        // (4) Do this without the lock: a system call takes long.
        // SAFETY: The region has no block, and is no longer in the list of its shard. So nobody
        // knows of it.
        unsafe { pages::give(region) };
    }
}

fn units(layout: Layout) -> usize {
    layout.size().div_ceil(UNIT)
}

/// The head of the region that contains a block.
///
/// # Safety
/// The block is in a region.
unsafe fn head_of(block: NonNull<u8>) -> NonNull<Head> {
    let into = block.addr().get() % REGION;
    // SAFETY: Regions are aligned to their size. So the result is in the same region.
    unsafe { block.sub(into).cast() }
}

/// The thread's shard, locked, and its number.
fn lock_mine() -> (usize, MutexGuard<'static, Shard>) {
    // A thread that is ending has no counter any more.
    let waited = WAITED.try_with(Cell::get).unwrap_or(0);
    // A block is freed to the shard of its region, whichever shard the thread uses now.
    let number = waited / PATIENCE % SHARDS;
    let shard = ALL[number].try_lock().unwrap_or_else(|| {
        let _ = WAITED.try_with(|count| count.set(waited.wrapping_add(1)));
        ALL[number].lock()
    });
    (number, shard)
}

/// Allocates a block when the thread's shard has no room. If another shard is roomy, the thread
/// changes to that one. Otherwise its own shard gets a new region.
///
/// Threads change shards, and memory is freed to the shard that it is from. So a shard that its
/// threads have left is full of free units, which nobody would use otherwise.
#[cold]
fn take_elsewhere(units: usize, number: usize) -> Option<NonNull<u8>> {
    for on in 1..SHARDS {
        // Don't wait for a shard that is in use: the others may be roomy, too.
        let other = (number + on) % SHARDS;
        let Some(mut shard) = ALL[other].try_lock().filter(|shard| shard.is_roomy()) else {
            continue;
        };
        if let Some(block) = shard.find(units) {
            // From now on the thread asks this shard first.
            let _ = WAITED.try_with(|count| count.set(other * PATIENCE));
            return Some(block);
        }
    }
    // Another thread may have freed something meanwhile.
    if let Some(block) = ALL[number].lock().find(units) {
        return Some(block);
    }
    // Touch a region's head without the lock. On a huge page this touches all of the region.
    let region = pages::take()?;
    // SAFETY: The region is new, and belongs to this thread.
    unsafe { region.first.write_volatile(0) };
    let mut shard = ALL[number].lock();
    let block = shard.find(units);
    if block.is_some() {
        drop(shard);
        // SAFETY: It came from `take`, and nobody else knows of it.
        unsafe { pages::give(region) };
        return block;
    }
    shard.add(region, number);
    shard.find(units)
}

/// The number of bytes in the regions that belong to no block, without those that were returned to
/// the system.
pub(crate) fn free() -> usize {
    let of = |shard: &Mutex<Shard>| {
        let shard = shard.lock();
        shard.kept() * UNIT
    };
    ALL.iter().map(of).sum()
}

/// The bits of the chunks that contain these units.
fn chunks_of(unit: usize, count: usize) -> u32 {
    let (first, last) = (unit / CHUNK, (unit + count - 1) / CHUNK);
    (u32::MAX << first) & (u32::MAX >> (u32::BITS as usize - 1 - last))
}

/// Returns the memory of a region's free pieces to the system. Returns by how many the chunks that
/// the system has have increased.
///
/// # Safety
/// `first` begins the region, whose head this is, and its shard's lock is held.
unsafe fn give_pieces(first: NonNull<u8>, head: &mut LockedHead) -> usize {
    let free = head.units.free_chunks();
    let before = head.returned.count_ones();
    for &(unit, count) in &free {
        head.returned |= chunks_of(unit, count);
    }
    let more = head.returned.count_ones() - before;
    for (unit, count) in free {
        // SAFETY: The region came from `take`. These are whole pages of free units, which nobody
        // uses while the lock is held. The units of the head are allocated, so they are not among
        // them.
        unsafe { pages::clear(first.add(unit * UNIT), count * UNIT) };
    }
    more as usize
}

impl Shard {
    const fn new() -> Self {
        Shard {
            regions: Vec::new(),
            longest_free: Vec::new(),
            search_from: [0; MAX_BLOCK_UNITS + 1],
            empty: 0,
            free: 0,
            returned: 0,
            has_requested: false,
        }
    }

    /// Takes a block from one of the existing regions.
    fn find(&mut self, units: usize) -> Option<NonNull<u8>> {
        // M5: no region before this index has room. The list may be shorter now, since a region may
        // have been returned.
        let mut from = self.search_from[units].min(self.regions.len());
        loop {
            let fits = |longest: &u8| usize::from(*longest) >= units;
            let Some(on) = self.longest_free[from..].iter().position(fits) else {
                // The next search for this number of units begins here.
                self.none_before(self.regions.len(), units);
                return None;
            };
            from += on;
            let region = self.regions[from];
            // SAFETY: The region belongs to this shard, whose lock is held. So nobody else has a
            // reference to this part of its head.
            let head = unsafe { &mut (*region.as_ptr()).locked };
            let was_empty = head.units.free() == UNITS - HEAD;
            // `longest_free` is an upper bound, and was too high: there are fewer adjacent free
            // units. From now on the region counts as having been full.
            let Some(unit) = head.units.take(units) else {
                head.sparse = Some(SPARSE);
                self.longest_free[from] = units as u8 - 1;
                continue;
            };
            // Keep M6 and M7. The next block of this size begins its search here.
            self.empty -= usize::from(was_empty);
            self.none_before(from, units);
            self.free -= units;
            if head.returned != 0 {
                let back = head.returned & chunks_of(unit, units);
                head.returned -= back;
                self.returned -= back.count_ones() as usize;
            }
            // A search ends at the last region of the list. If that one is nearly full, the next
            // region will be needed soon. Request it once.
            let left = head.units.free();
            if left <= REQUEST_AHEAD_AT && !self.has_requested && from + 1 == self.regions.len() {
                self.has_requested = true;
                pages::request();
            }
            // SAFETY: The unit is in the region.
            return Some(unsafe { region.cast::<u8>().add(unit * UNIT) });
        }
    }

    /// The number of units that belong neither to a block nor to the system.
    fn kept(&self) -> usize {
        self.free - self.returned * CHUNK
    }

    /// Whether the shard has enough free units for threads of other shards.
    fn is_roomy(&self) -> bool {
        self.kept() > self.regions.len() * UNITS / ROOMY
    }

    /// Adds a region at the end of the list.
    #[cold]
    fn add(&mut self, region: Region, number: usize) {
        let head = region.first.cast::<Head>();
        self.has_requested = false;
        let index = self.regions.len();
        let new = Head {
            shard: number,
            locked: LockedHead {
                region,
                units: Units::new(HEAD),
                index,
                sparse: None,
                returned: 0,
            },
        };
        // SAFETY: The region is new, and belongs to this thread. It is aligned. Its first units
        // have room for a head, and no block has them.
        unsafe { head.write(new) };
        // Write the head before any block is returned, because the owner of a block may read
        // `shard`.
        self.regions.push(head);
        self.longest_free.push(MAX_BLOCK_UNITS as u8);
        self.empty += 1;
        self.free += UNITS - HEAD;
        self.may_have(index, MAX_BLOCK_UNITS);
    }

    /// Marks the units of a block as free. If its region has no block now, and there is another
    /// such region, removes the region from the list and returns it. The caller then owns it.
    ///
    /// # Safety
    /// It is a block of this number of units in a region of this shard, and nobody uses it any
    /// more.
    unsafe fn give(&mut self, block: NonNull<u8>, count: usize) -> Option<Region> {
        // SAFETY: The block is in a region.
        let region = unsafe { head_of(block) };
        let unit = (block.addr().get() - region.addr().get()) / UNIT;
        // SAFETY: The region belongs to this shard, whose lock is held. So nobody else has a
        // reference to this part of its head.
        let head = unsafe { &mut (*region.as_ptr()).locked };
        let index = head.index;
        // `around` is the number of adjacent free units there now, for M5.
        let around = head.units.give(unit, count);
        let free = head.units.free();
        self.free += count;
        self.may_have(index, around);
        if free < UNITS - HEAD {
            if head.sparse.is_some_and(|sparse| free >= sparse) {
                // The next time is when half of what is allocated now was freed, so such calls are
                // rare.
                head.sparse = Some(free + (UNITS - free) / 2);
                // SAFETY: The region begins with this head, and its shard's lock is held.
                self.returned += unsafe { give_pieces(region.cast(), head) };
            }
            return None;
        }
        // No block is left. Keep the first such region, so that a block which is repeatedly
        // allocated and freed at the edge of a region doesn't cost a system call each time.
        if self.empty == 0 {
            self.empty = 1;
            return None;
        }
        // The last region replaces the removed one in the list. Update its head and the bounds of
        // M5.
        self.has_requested = false;
        self.free -= UNITS - HEAD;
        self.returned -= head.returned.count_ones() as usize;
        self.regions.swap_remove(index);
        self.longest_free.swap_remove(index);
        if let Some(&moved) = self.regions.get(index) {
            // SAFETY: As above. This is another region than the one of `head`.
            unsafe { (*moved.as_ptr()).locked.index = index };
            self.may_have(index, self.longest_free[index].into());
        }
        // SAFETY: The region is in no list, so its head is read for the last time.
        Some(unsafe { region.read() }.locked.region)
    }

    /// Updates the bounds of M5, when the region at this index may have this number of adjacent
    /// free units.
    fn may_have(&mut self, index: usize, side_by_side: usize) {
        self.longest_free[index] = self.longest_free[index].max(side_by_side as u8);
        // Room for this number is also room for fewer units. They need not all be looked at, since
        // `search_from` ascends.
        let beyond = self.search_from[1..=side_by_side].iter_mut().rev();
        beyond
            .take_while(|from| **from > index)
            .for_each(|from| *from = index);
    }

    /// Updates the bounds of M5, when no region before this index has this number of adjacent free
    /// units. None has more of them, either.
    fn none_before(&mut self, index: usize, side_by_side: usize) {
        let below = self.search_from[side_by_side..].iter_mut();
        below
            .take_while(|from| **from < index)
            .for_each(|from| *from = index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A shard of the test's own, with its blocks, each filled with a byte.
    struct Own {
        shard: Shard,
        blocks: Vec<(NonNull<u8>, usize, u8)>,
    }

    impl Own {
        fn new() -> Self {
            let (shard, blocks) = (Shard::new(), Vec::new());
            Own { shard, blocks }
        }

        fn take(&mut self, units: usize, byte: u8) {
            let block = self.shard.find(units).unwrap_or_else(|| {
                self.shard.add(pages::take().unwrap(), 0);
                self.shard.find(units).unwrap()
            });
            // SAFETY: so many units are the test's.
            unsafe { block.as_ptr().write_bytes(byte, units * UNIT) };
            self.blocks.push((block, units, byte));
        }

        fn give(&mut self, which: usize) {
            let (block, units, byte) = self.blocks.swap_remove(which);
            // SAFETY: the block is the test's, who gives it back once; a region that left the list
            // is nobody's.
            unsafe {
                let bytes = std::slice::from_raw_parts(block.as_ptr(), units * UNIT);
                assert!(bytes.iter().all(|b| *b == byte), "nobody else wrote there");
                if let Some(region) = self.shard.give(block, units) {
                    pages::give(region);
                }
            }
        }

        /// M7.
        fn is_counted(&self) -> bool {
            let (mut free, mut returned) = (0, 0);
            for region in &self.shard.regions {
                // SAFETY: the region is the test's.
                let head = unsafe { &region.as_ref().locked };
                let chunks = head.units.free_chunks();
                let whole = |bits, &(unit, count): &_| bits | chunks_of(unit, count);
                assert_eq!(head.returned & !chunks.iter().fold(0, whole), 0);
                free += head.units.free();
                returned += head.returned.count_ones() as usize;
            }
            (self.shard.free, self.shard.returned) == (free, returned)
        }

        fn in_use(&self) -> usize {
            self.blocks.iter().map(|b| b.1 * UNIT).sum()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn blocks_are_apart_and_regions_go(
            steps in prop::collection::vec((1usize..=MAX_BLOCK_UNITS, any::<u32>(), any::<u8>()), 1..3000),
            grows in 0u8..4,
        ) {
            let mut user = Own::new();
            for (units, chance, byte) in steps {
                if user.blocks.is_empty() || chance % 4 <= u32::from(grows) {
                    user.take(units, byte);
                } else {
                    user.give(chance as usize / 4 % user.blocks.len());
                }
                prop_assert!(user.is_counted());
            }
            while !user.blocks.is_empty() {
                user.give(user.blocks.len() / 2);
            }
            let regions = user.shard.regions.len();
            prop_assert!(regions <= 1 && user.shard.empty == regions);
        }
    }

    /// Every hundredth block stays.
    #[test]
    fn a_sparse_region_gives_its_pieces() {
        let mut user = Own::new();
        (0..6 * UNITS / 16).for_each(|_| user.take(16, 7));
        for which in (0..user.blocks.len()).rev() {
            if which % 100 > 0 {
                user.give(which);
            }
        }
        let full = user.shard.regions.len() - 1;
        let mut zero = 0;
        for region in &user.shard.regions[..full] {
            // SAFETY: the region is the test's, and none of it is written meanwhile.
            let (units, bytes) = unsafe {
                let bytes = std::slice::from_raw_parts(region.cast::<u8>().as_ptr(), REGION);
                (&(*region.as_ptr()).locked.units, bytes)
            };
            for (unit, count) in units.free_chunks() {
                let piece = &bytes[unit * UNIT..(unit + count) * UNIT];
                zero += piece.iter().filter(|b| **b == 0).count();
            }
        }
        assert!(zero * 10 > full * REGION * 8, "{zero} of {full} regions");
        // All of it is counted, until it is used again.
        assert!(user.is_counted());
        assert!(user.shard.returned * CHUNK * UNIT * 10 > full * REGION * 8);
        (0..6 * UNITS / 16).for_each(|_| user.take(16, 7));
        assert!(user.is_counted());
        assert_eq!(user.shard.returned, 0);
    }

    /// What leaves of a table do that doubles: all of one size, then one after another gives way to
    /// the next size, or to two of half of it.
    #[test]
    fn what_grows_in_step_wastes_little() {
        let mut user = Own::new();
        let sizes = [10, 12, 14, 16, 20, 24];
        (0..1000).for_each(|_| user.take(sizes[0], 1));
        for _doubling in 0..4 {
            for &size in &sizes[1..] {
                for which in (0..user.blocks.len()).rev() {
                    user.take(size, 1);
                    user.give(which);
                }
            }
            for which in (0..user.blocks.len()).rev() {
                user.take(sizes[1], 1);
                user.take(sizes[1], 1);
                user.give(which);
            }
        }
        let resident = user.shard.regions.len() * REGION;
        assert!(
            resident * 10 < user.in_use() * 13 + 2 * REGION,
            "{resident} for {}",
            user.in_use()
        );
    }

    #[test]
    fn the_next_region_is_asked_for_when_the_last_is_nearly_full() {
        let mut user = Own::new();
        let left = |user: &Own| {
            let last = user.shard.regions.last().unwrap();
            // SAFETY: the region is the test's.
            unsafe { (*last.as_ptr()).locked.units.free() }
        };
        for region in 1..=3 {
            while user.shard.regions.len() < region || !user.shard.has_requested {
                user.take(16, 7);
                assert!(user.shard.has_requested || left(&user) > REQUEST_AHEAD_AT);
            }
            assert_eq!(user.shard.regions.len(), region);
        }
        // A region that goes takes the question with it.
        (0..user.blocks.len()).for_each(|_| user.give(0));
        assert!(!user.shard.has_requested);
    }

    /// For tests that use all shards.
    static SHARDS_OF_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// A thread fills one shard, gives every second block back, and goes on to another shard, as
    /// it does where it has found the first one locked too often.
    #[test]
    fn a_shard_does_not_grow_while_another_is_roomy() {
        let _alone = SHARDS_OF_TESTS.lock();
        let regions = || ALL.iter().map(|shard| shard.lock().regions.len());
        let layout = Layout::from_size_align(16 * UNIT, 64).unwrap();
        // SAFETY: each block is given back once.
        let (take, give) = (
            || unsafe { Regions.alloc(layout) },
            |block| unsafe { Regions.dealloc(block, layout) },
        );
        WAITED.set(0);
        let mut blocks: Vec<_> = (0..4000).map(|_| take()).collect();
        for which in (0..2000).rev() {
            give(blocks.swap_remove(2 * which));
        }
        let before: usize = regions().sum();
        WAITED.set(PATIENCE);
        blocks.extend((0..1500).map(|_| take()));
        let after: usize = regions().sum();
        assert!(after <= before + 1, "{before} regions, then {after}");
        blocks.into_iter().for_each(give);
    }

    /// Threads take blocks and give back each other's, in all shards.
    #[test]
    fn threads_give_back_blocks_of_others() {
        let _alone = SHARDS_OF_TESTS.lock();
        const THREADS: usize = 4;
        let pool = std::sync::Mutex::new(Vec::<(usize, usize)>::new());
        let work = |thread: usize| {
            let mut chance = thread as u64 + 1;
            for step in 0..20_000 {
                chance = chance.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                let size = LEAST + (chance >> 33) as usize % (MAX_BLOCK_UNITS * UNIT - LEAST);
                let layout = |size| Layout::from_size_align(size, 64).unwrap();
                // SAFETY: blocks are written within their layouts, and given back once, with these.
                unsafe {
                    let block = Regions.alloc(layout(size));
                    assert_eq!(block.align_offset(64), 0);
                    block.cast::<usize>().write(size);
                    block.add(size - 1).write(0xA5);
                    let mut pool = pool.lock().unwrap();
                    pool.push((block.expose_provenance(), size));
                    if step % 8 > 0 {
                        let which = (chance >> 20) as usize % pool.len();
                        let (address, size) = pool.swap_remove(which);
                        drop(pool);
                        let block = std::ptr::with_exposed_provenance_mut::<u8>(address);
                        assert_eq!(block.cast::<usize>().read(), size);
                        assert_eq!(block.add(size - 1).read(), 0xA5);
                        Regions.dealloc(block, layout(size));
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|thread| drop(scope.spawn(move || work(thread))));
        });
        let pool = pool.into_inner().unwrap();
        assert_eq!(pool.len(), THREADS * 20_000 / 8);
        for (address, size) in pool {
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: as above; nobody else has it.
            unsafe { Regions.dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
        }
    }
}
