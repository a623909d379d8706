//! Blocks of a leaf's size, side by side in regions.
//!
//! ```text
//!  region   head: which units are taken | unit | unit | … two megabytes, aligned
//!  block    1 to 64 units of 256 bytes, one after another, wherever they fit first
//! ```
//!
//! Leaves of the hash order grow in step with each other: while a table grows, nearly all of its
//! leaves leave one size for the next. An allocator that keeps blocks of each size in pages of
//! their own is left with pages of the old sizes, each with a few blocks that stay: 36 to 38 bytes
//! resident for a row that has 25 (mimalloc 3, a million rows and sixteen). Here what some leaves
//! give back is room for any others.
//!
//! 1. A block's size says whose it is: `LEAST` to `MOST` units are given here, all others by
//!    mimalloc. So `dealloc` needs no search.
//! 2. `find` goes to the first region that may have room (invariant 3). If none has, another
//!    shard's may (`take_elsewhere`); else there is a new one.
//! 3. `give` finds the region by the block's address, as regions are aligned to their size.
//! 4. A region without a block goes back to the system, but for one of each shard.
//!
//! Invariants:
//! 1. A unit is taken while it is the head's or one block's.
//! 2. Heads, and the lists of them, are read and written under their shard's lock alone; but for
//!    `shard`, which is written before the first block is given out.
//! 3. The region at a place of a shard's list has no more than `most[place]` free units side by
//!    side, and none before place `from[n]` has `n`.
//!
//! 4. `empty` is how many regions of the list have no block: one at most between two calls.
//! 5. `free` is the sum of the regions' free units. `away` is how many chunks of theirs the system
//!    has, those of the bits of each head's `away`: all units of such a chunk are free.
//!
//! A region that was full and has become sparse gives what it can in pieces of 64 KiB, and again
//! each time that half of the rest has gone: what a dropped table leaves is seldom whole regions,
//! if another one grew beside it.
//!
//! A thread uses the same shard until it has found it locked a number of times; then it goes on to
//! the next one. So threads that seldom meet share one, whose regions are full, and threads that
//! often do go out of each other's way. Before a shard grows, its thread goes on to one that others
//! have left.
//!
//! Source: first fit over a bitmap (`units`). Deviation: `most` is an upper bound, lowered only
//! when a search in the region fails, so that a block which is taken costs no second search.
//!
//! When not to use it: for small blocks, of which a unit would waste much, and for those over 16
//! KiB, which few leaves are.

use crate::memory::pages::{self, REGION};
use crate::memory::units::{Units, CHUNK, MOST, UNITS};
use crate::sync::{Mutex, MutexGuard};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::mem::size_of;
use std::ptr::{null_mut, NonNull};
use std::sync::Once;

const UNIT: usize = REGION / UNITS;
const HEAD: usize = size_of::<Head>().div_ceil(UNIT);
const SHARDS: usize = 4;
/// So often does a thread wait for a shard before it goes on to the next one.
const PATIENCE: usize = 64;

/// A shard is roomy when one of so many of its units is free: first fit leaves fewer.
const ROOMY: usize = 6;

/// A region is sparse when so many of its units are free.
const SPARSE: usize = UNITS / 4 * 3;

/// Bytes from which on blocks are given here: smaller ones would leave too much of their last unit.
const LEAST: usize = 5 * UNIT;

/// When a shard's last region has no more free units than these, an eighth, the next one is asked
/// for ahead.
const FEW: usize = UNITS / 8;
/// A block of so many bytes is a leaf that will soon be [`LEAST`].
const NEARLY: usize = 3 * UNIT;

/// What a region begins with.
struct Head {
    units: Units,
    /// Its place in its shard's list.
    place: usize,
    shard: usize,
    /// So many free units, and its free pieces go to the system. None while it was never full.
    sparse: Option<usize>,
    /// Bit `i`: the system has chunk `i`, and no block has been there since.
    away: u32,
}
const _: () = assert!(UNITS / CHUNK <= u32::BITS as usize, "a bit for each chunk");

/// Some regions, and what is known of them.
struct Shard {
    regions: Vec<NonNull<Head>>,
    /// Of each region, so that those that have no room are passed without a look at them.
    most: Vec<u8>,
    from: [usize; MOST + 1],
    /// How many of them have no block. One is kept, the others go.
    empty: usize,
    /// Free units of all of them.
    free: usize,
    /// Chunks of theirs that the system has.
    away: usize,
    /// Whether the next one was asked for ahead.
    asked: bool,
}
// SAFETY: regions are memory that belongs to no thread; the pointers are followed by whoever has
// the shard's lock.
unsafe impl Send for Shard {}

static ALL: [Mutex<Shard>; SHARDS] = [const { Mutex::new(Shard::new()) }; SHARDS];

thread_local! {
    /// How often this thread found a shard locked; so many times [`PATIENCE`], so many shards on.
    static WAITED: Cell<usize> = const { Cell::new(0) };
}

/// Blocks in regions, and by mimalloc those that are smaller or larger.
pub(crate) struct Regions;

// SAFETY: a block is units that no other block has (invariant 1), as many as its layout wants,
// aligned to a unit; or it is mimalloc's. Which, its layout says.
unsafe impl GlobalAlloc for Regions {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_ours(layout) {
            first_ahead(layout);
            // SAFETY: the caller's promise.
            return unsafe { MiMalloc.alloc(layout) };
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
            first_ahead(layout);
            // SAFETY: the caller's promise.
            return unsafe { MiMalloc.alloc_zeroed(layout) };
        }
        // Blocks are used again as they were left, so they are cleared, outside the lock.
        // SAFETY: the caller's promise; then, if it isn't null, a block of so many bytes that
        // nobody else has.
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
            // SAFETY: the caller's promise: it came from `alloc`, which gives units for such
            // layouts.
            Some(block) if is_ours(layout) => unsafe { give(block, units(layout)) },
            // SAFETY: the caller's promise.
            _ => unsafe { MiMalloc.dealloc(block, layout) },
        }
    }
}

#[inline]
fn is_ours(layout: Layout) -> bool {
    (LEAST..=MOST * UNIT).contains(&layout.size()) && layout.align() <= UNIT
}

/// The very first region is asked for when a leaf is nearly large enough for one.
#[inline]
fn first_ahead(layout: Layout) {
    static ASKED: Once = Once::new();
    if layout.size() >= NEARLY && layout.size() < LEAST {
        ASKED.call_once(pages::soon);
    }
}

/// Gives a block back.
///
/// # Safety
/// It is one, of so many units, and nobody uses it any more.
unsafe fn give(block: NonNull<u8>, units: usize) {
    // (3)
    let head = head_of(block);
    // SAFETY: 1. the block lies in a region, which lives while it has a block, and begins with a
    // head; 2. invariant 2: the owner of the block saw this written.
    let number = unsafe { (*head.as_ptr()).shard };
    // SAFETY: the region is this shard's, and the block is the caller's to give.
    let empty = unsafe { ALL[number].lock().give(block, units) };
    if let Some(region) = empty {
        // (4) Outside the lock: a call of the system takes long.
        // SAFETY: it left the shard's list without a block, so nobody knows of it.
        unsafe { pages::give(region.cast()) };
    }
}

fn units(layout: Layout) -> usize {
    layout.size().div_ceil(UNIT)
}

/// The head of the region in which a block lies.
fn head_of(block: NonNull<u8>) -> NonNull<Head> {
    let into = block.addr().get() % REGION;
    // SAFETY: regions are aligned to their size, and the block lies in one.
    unsafe { block.sub(into).cast() }
}

/// The thread's shard, and its number.
fn lock_mine() -> (usize, MutexGuard<'static, Shard>) {
    // A thread that is ending has no count any more.
    let waited = WAITED.try_with(Cell::get).unwrap_or(0);
    // A block goes back to the shard of its region, whichever the thread's is now.
    let number = waited / PATIENCE % SHARDS;
    let shard = ALL[number].try_lock().unwrap_or_else(|| {
        let _ = WAITED.try_with(|count| count.set(waited.wrapping_add(1)));
        ALL[number].lock()
    });
    (number, shard)
}

/// A block, where the thread's shard has no room: in another one that is roomy, which is the
/// thread's from now on, or in a new region of its own.
///
/// Threads go from shard to shard, and what is freed goes back to the shard that it is from. So a
/// shard that its threads have left is full of free units, which would be nobody's.
#[cold]
fn take_elsewhere(units: usize, number: usize) -> Option<NonNull<u8>> {
    for on in 1..SHARDS {
        let other = (number + on) % SHARDS;
        let Some(mut shard) = ALL[other].try_lock().filter(|shard| shard.is_roomy()) else {
            continue;
        };
        if let Some(block) = shard.find(units) {
            let _ = WAITED.try_with(|count| count.set(other * PATIENCE));
            return Some(block);
        }
    }
    // Another thread may have given something back meanwhile.
    let mut shard = ALL[number].lock();
    shard.find(units).or_else(|| match shard.add(number) {
        true => shard.find(units),
        false => None,
    })
}

/// Bytes of the regions that no block has, but for those that the system has.
pub(crate) fn free() -> usize {
    let of = |shard: &Mutex<Shard>| {
        let shard = shard.lock();
        shard.kept() * UNIT
    };
    ALL.iter().map(of).sum()
}

/// The bits of the chunks in which some units are.
fn chunks_of(unit: usize, count: usize) -> u32 {
    let (first, last) = (unit / CHUNK, (unit + count - 1) / CHUNK);
    (u32::MAX << first) & (u32::MAX >> (u32::BITS as usize - 1 - last))
}

/// Gives the memory of a region's free pieces to the system; how many chunks it has more than
/// before.
///
/// # Safety
/// `head` begins the region, and its shard's lock is held.
unsafe fn give_pieces(head: NonNull<Head>) -> usize {
    // SAFETY: the caller's promise; nobody else has a reference to the head.
    let known = unsafe { &mut *head.as_ptr() };
    let free = known.units.free_chunks();
    let before = known.away.count_ones();
    for &(unit, count) in &free {
        known.away |= chunks_of(unit, count);
    }
    let more = known.away.count_ones() - before;
    for (unit, count) in free {
        // SAFETY: whole pages of the region that are free, so nobody uses them; the head's own are
        // taken.
        unsafe { pages::clear(head.cast::<u8>().add(unit * UNIT), count * UNIT) };
    }
    more as usize
}

impl Shard {
    const fn new() -> Self {
        Shard {
            regions: Vec::new(),
            most: Vec::new(),
            from: [0; MOST + 1],
            empty: 0,
            free: 0,
            away: 0,
            asked: false,
        }
    }

    /// A block in one of the regions that there are.
    fn find(&mut self, units: usize) -> Option<NonNull<u8>> {
        // Invariant 3: no region before this place has room. A region that went may have made the
        // list shorter.
        let mut from = self.from[units].min(self.regions.len());
        loop {
            let has_room = |most: &u8| usize::from(*most) >= units;
            let Some(on) = self.most[from..].iter().position(has_room) else {
                // The next search for as much begins here.
                self.from[units] = self.regions.len();
                return None;
            };
            from += on;
            let head = self.regions[from];
            // SAFETY: the region is this shard's, whose lock we have; nobody else has a reference
            // to its head.
            let known = unsafe { &mut *head.as_ptr() };
            let was_empty = known.units.free() == UNITS - HEAD;
            // `most` is an upper bound, and was too high: fewer are side by side. The region counts
            // as having been full from now on.
            let Some(unit) = known.units.take(units) else {
                known.sparse = Some(SPARSE);
                self.most[from] = units as u8 - 1;
                continue;
            };
            // Invariants 4 and 5; and the next block of this size begins its search here.
            self.empty -= usize::from(was_empty);
            self.from[units] = from;
            self.free -= units;
            if known.away != 0 {
                let back = known.away & chunks_of(unit, units);
                known.away -= back;
                self.away -= back.count_ones() as usize;
            }
            // The search for room ends at the list's last region: when that is nearly full, the
            // next one will be needed soon. It is asked for once.
            let left = known.units.free();
            if left <= FEW && !self.asked && from + 1 == self.regions.len() {
                self.asked = true;
                pages::soon();
            }
            // SAFETY: the unit is in the region.
            return Some(unsafe { head.cast::<u8>().add(unit * UNIT) });
        }
    }

    /// Units that no block has, and the system neither.
    fn kept(&self) -> usize {
        self.free - self.away * CHUNK
    }

    /// Whether so many of its units are free that it has room for more than itself.
    fn is_roomy(&self) -> bool {
        self.kept() > self.regions.len() * UNITS / ROOMY
    }

    /// Adds a region at the list's end; false if the system has no memory.
    #[cold]
    fn add(&mut self, number: usize) -> bool {
        let Some(head) = pages::take() else {
            return false;
        };
        let head = head.cast::<Head>();
        self.asked = false;
        let place = self.regions.len();
        let new = Head {
            units: Units::new(HEAD),
            place,
            shard: number,
            sparse: None,
            away: 0,
        };
        // SAFETY: the region is ours, is aligned, and has room for a head in its first units, which
        // are no block's.
        unsafe { head.write(new) };
        // The head is written before any block is given out: who has a block may read `shard`.
        self.regions.push(head);
        self.most.push(MOST as u8);
        self.empty += 1;
        self.free += UNITS - HEAD;
        self.may_have(place, MOST);
        true
    }

    /// Marks a block's units as free. If its region has no block now, and there is another such
    /// one, it leaves the list: then it is the caller's.
    ///
    /// # Safety
    /// It is a block of so many units in a region of this shard, and nobody uses it any more.
    unsafe fn give(&mut self, block: NonNull<u8>, count: usize) -> Option<NonNull<Head>> {
        let head = head_of(block);
        let unit = (block.addr().get() - head.addr().get()) / UNIT;
        // SAFETY: the region is this shard's, whose lock we have; nobody else has a reference to
        // its head.
        let known = unsafe { &mut *head.as_ptr() };
        let place = known.place;
        // `around`: the free units side by side there now, which invariant 3 has to know of.
        let around = known.units.give(unit, count);
        let free = known.units.free();
        self.free += count;
        self.may_have(place, around);
        if free < UNITS - HEAD {
            if known.sparse.is_some_and(|sparse| free >= sparse) {
                // Again when half of what is taken now has gone: such calls are few.
                known.sparse = Some(free + (UNITS - free) / 2);
                // SAFETY: the region is this shard's, whose lock we have; `known` isn't used any
                // more.
                self.away += unsafe { give_pieces(head) };
            }
            return None;
        }
        // No block is left. The first such region stays, so that a block which comes and goes at a
        // region's edge doesn't call the system each time.
        if self.empty == 0 {
            self.empty = 1;
            return None;
        }
        // The last region takes the place of the one that goes: its head and invariant 3 must say
        // so.
        self.asked = false;
        self.free -= UNITS - HEAD;
        self.away -= known.away.count_ones() as usize;
        self.regions.swap_remove(place);
        self.most.swap_remove(place);
        if let Some(&moved) = self.regions.get(place) {
            // SAFETY: as above; it is another region than that one.
            unsafe { (*moved.as_ptr()).place = place };
            self.may_have(place, self.most[place].into());
        }
        Some(head)
    }

    /// Invariant 3, when the region at this place may have so many free units side by side.
    fn may_have(&mut self, place: usize, side_by_side: usize) {
        self.most[place] = self.most[place].max(side_by_side as u8);
        // Room for so many is room for fewer, too.
        for from in &mut self.from[1..=side_by_side] {
            *from = (*from).min(place);
        }
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
                assert!(self.shard.add(0));
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
                    pages::give(region.cast());
                }
            }
        }

        /// Invariant 5.
        fn is_counted(&self) -> bool {
            let (mut free, mut away) = (0, 0);
            for region in &self.shard.regions {
                // SAFETY: the region is the test's.
                let head = unsafe { region.as_ref() };
                let chunks = head.units.free_chunks();
                let whole = |bits, &(unit, count): &_| bits | chunks_of(unit, count);
                assert_eq!(head.away & !chunks.iter().fold(0, whole), 0);
                free += head.units.free();
                away += head.away.count_ones() as usize;
            }
            (self.shard.free, self.shard.away) == (free, away)
        }

        fn in_use(&self) -> usize {
            self.blocks.iter().map(|b| b.1 * UNIT).sum()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn blocks_are_apart_and_regions_go(
            steps in prop::collection::vec((1usize..=MOST, any::<u32>(), any::<u8>()), 1..3000),
            grows in 0u8..4,
        ) {
            let mut own = Own::new();
            for (units, chance, byte) in steps {
                if own.blocks.is_empty() || chance % 4 <= u32::from(grows) {
                    own.take(units, byte);
                } else {
                    own.give(chance as usize / 4 % own.blocks.len());
                }
                prop_assert!(own.is_counted());
            }
            while !own.blocks.is_empty() {
                own.give(own.blocks.len() / 2);
            }
            prop_assert!(own.shard.regions.len() <= 1 && own.shard.empty == own.shard.regions.len());
        }
    }

    /// Every hundredth block stays.
    #[test]
    fn a_sparse_region_gives_its_pieces() {
        let mut own = Own::new();
        (0..6 * UNITS / 16).for_each(|_| own.take(16, 7));
        for which in (0..own.blocks.len()).rev() {
            if which % 100 > 0 {
                own.give(which);
            }
        }
        let full = own.shard.regions.len() - 1;
        let mut zero = 0;
        for region in &own.shard.regions[..full] {
            // SAFETY: the region is the test's, and none of it is written meanwhile.
            let (units, bytes) = unsafe {
                let bytes = std::slice::from_raw_parts(region.cast::<u8>().as_ptr(), REGION);
                (&(*region.as_ptr()).units, bytes)
            };
            for (unit, count) in units.free_chunks() {
                let piece = &bytes[unit * UNIT..(unit + count) * UNIT];
                zero += piece.iter().filter(|b| **b == 0).count();
            }
        }
        assert!(zero * 10 > full * REGION * 8, "{zero} of {full} regions");
        // All of it is counted, until it is used again.
        assert!(own.is_counted());
        assert!(own.shard.away * CHUNK * UNIT * 10 > full * REGION * 8);
        (0..6 * UNITS / 16).for_each(|_| own.take(16, 7));
        assert!(own.is_counted());
        assert_eq!(own.shard.away, 0);
    }

    /// What leaves of a table do that doubles: all of one size, then one after another gives way to
    /// the next size, or to two of half of it.
    #[test]
    fn what_grows_in_step_wastes_little() {
        let mut own = Own::new();
        let sizes = [10, 12, 14, 16, 20, 24];
        (0..1000).for_each(|_| own.take(sizes[0], 1));
        for _doubling in 0..4 {
            for &size in &sizes[1..] {
                for which in (0..own.blocks.len()).rev() {
                    own.take(size, 1);
                    own.give(which);
                }
            }
            for which in (0..own.blocks.len()).rev() {
                own.take(sizes[1], 1);
                own.take(sizes[1], 1);
                own.give(which);
            }
        }
        let resident = own.shard.regions.len() * REGION;
        assert!(
            resident * 10 < own.in_use() * 13 + 2 * REGION,
            "{resident} for {}",
            own.in_use()
        );
    }

    #[test]
    fn the_next_region_is_asked_for_when_the_last_is_nearly_full() {
        let mut own = Own::new();
        let left = |own: &Own| {
            let last = own.shard.regions.last().unwrap();
            // SAFETY: the region is the test's.
            unsafe { (*last.as_ptr()).units.free() }
        };
        for region in 1..=3 {
            while own.shard.regions.len() < region || !own.shard.asked {
                own.take(16, 7);
                assert!(own.shard.asked || left(&own) > FEW);
            }
            assert_eq!(own.shard.regions.len(), region);
        }
        // A region that goes takes the question with it.
        (0..own.blocks.len()).for_each(|_| own.give(0));
        assert!(!own.shard.asked);
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
                let size = LEAST + (chance >> 33) as usize % (MOST * UNIT - LEAST);
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
