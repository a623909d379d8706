//! Where leaves, inner nodes and outside objects have their memory from.
//!
//! Blocks of 1.3 to 16 KiB, which nearly all leaves are, lie in `memory::regions`, on huge pages;
//! what is smaller or larger is mimalloc's, called by name: a program that uses this crate keeps
//! the allocator that it has. Huge pages matter: with 80,000 blocks of 2 to 4 KiB dependent random
//! reads take 534 ns on them, 664 in the C library's memory (fewer misses of the address
//! translation).
//!
//! Leaves have sizes a quarter of a power of two apart: 2048, 2560, 3072, 3584, 4096.
//!
//! ```text
//!  allocate, allocate_zeroed ─→ HEAP: regions, mimalloc      release
//!  allocate_lazily           ─→ HEAP, or from 256 KiB on     release_lazy
//!                               the system's allocator
//! ```
//!
//! Invariants:
//! 1. A block goes back by the function of its kind, with the layout that it was asked for with.
//! 2. No function here returns null: without memory the process ends, as with Rust's containers.

#[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
mod pages;
#[cfg(larder_model)]
pub(crate) mod quarantine;
#[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
mod regions;
#[cfg(any(
    test,
    all(target_os = "linux", not(any(miri, larder_model, larder_sanitize)))
))]
#[deny(unsafe_code)]
mod units;

use std::alloc::{handle_alloc_error, GlobalAlloc, Layout, System};
use std::ptr::NonNull;

// Miri knows Rust's allocator alone, and finds with it what is used after it was freed, or freed
// twice. So do the sanitizers, in builds with `--cfg larder_sanitize`.
#[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
static HEAP: regions::Regions = crate::memory::regions::Regions;
#[cfg(not(any(target_os = "linux", miri, larder_model, larder_sanitize)))]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;
#[cfg(all(any(miri, larder_sanitize), not(larder_model)))]
static HEAP: System = System;
#[cfg(larder_model)]
static HEAP: quarantine::Quarantine = crate::memory::quarantine::Quarantine;

/// An allocator for a program's other memory whose free pages [`trim`] gives back, whichever thread
/// freed them. The C library's keeps most of what one thread took and another freed.
#[cfg(not(any(miri, larder_model, larder_sanitize)))]
pub use mimalloc::MiMalloc as Allocator;
#[cfg(any(miri, larder_model, larder_sanitize))]
pub use std::alloc::System as Allocator;

/// Gives free pages to the system. mimalloc puts it off until some thread allocates again, which
/// may be never.
///
/// # Complexity
/// Looks at a bit for each 64 KiB that the process has ever used, and calls the system for each run
/// of pages that were freed since the last time. Other threads allocate and free meanwhile.
pub fn trim() {
    #[cfg(not(any(miri, larder_model, larder_sanitize)))]
    {
        unsafe extern "C" {
            fn mi_collect(force: bool);
        }
        // SAFETY: any thread may call it at any time. mimalloc is linked, as `Allocator` and `HEAP`
        // use it.
        unsafe { mi_collect(true) }
    }
}

/// Gives the free pages of the C library's arenas to the system. It does so by itself at an arena's
/// end alone, so one block that stays keeps what was freed before it.
///
/// # Complexity
/// Linear in the free blocks of all arenas. One arena at a time is locked meanwhile.
pub fn trim_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: any thread may call it at any time.
        unsafe { malloc_trim(0) };
    }
}

/// Bytes that are kept for leaves to come: those of regions that no block has, unless the system
/// has them back. None where there are no regions: what mimalloc keeps is not counted, and goes
/// back when it is next trimmed.
///
/// # Complexity
/// O(1). Each shard of the regions is locked for a moment.
pub fn bytes_kept() -> usize {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    return regions::free() + pages::ready();
    #[cfg(not(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize)))))]
    return 0;
}

/// Whether leaves are to lie on huge pages, where the system has them: so it is unless said
/// otherwise. It holds for memory that nobody has taken yet.
pub fn huge_pages(huge: bool) {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    pages::set_huge(huge);
    #[cfg(not(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize)))))]
    let _ = huge;
}

/// Ends the thread that touches memory ahead, if it was begun. It begins anew when memory is
/// wanted. For orderly ends; waits some milliseconds at most.
pub fn end_thread() {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    pages::end();
}

/// Bytes taken and not given back, by all indexes together. Counted in builds with debug assertions
/// alone, for tests.
#[cfg(debug_assertions)]
pub fn bytes_taken() -> isize {
    // Ordering: Relaxed, a mere count.
    TAKEN.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(debug_assertions)]
static TAKEN: std::sync::atomic::AtomicIsize = std::sync::atomic::AtomicIsize::new(0);

#[inline]
fn count(_bytes: isize) {
    #[cfg(debug_assertions)]
    // Ordering: Relaxed, a mere count.
    TAKEN.fetch_add(_bytes, std::sync::atomic::Ordering::Relaxed);
}

/// Memory for `layout`, zeroed. Like all of Rust's containers, it ends the process if there is none
/// left.
pub(crate) fn allocate_zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "nothing asks for no memory");
    count(layout.size() as isize);
    // SAFETY: the size is not zero, checked above.
    let memory = unsafe { HEAP.alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Memory for `layout`, with anything in it. As [`allocate_zeroed`].
pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "nothing asks for no memory");
    count(layout.size() as isize);
    // SAFETY: the size is not zero, checked above.
    let memory = unsafe { HEAP.alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Bytes from which on [`allocate_lazily`] leaves it to the system's allocator.
const LAZY: usize = 1 << 18;

/// As [`allocate_zeroed`], where much of it is touched late and little by little: what is large is
/// mapped by the system, which clears each page when it is first touched. mimalloc would clear
/// memory that it has used before, all at once.
pub(crate) fn allocate_lazily(layout: Layout) -> NonNull<u8> {
    if layout.size() < LAZY {
        return allocate_zeroed(layout);
    }
    count(layout.size() as isize);
    // SAFETY: the size is not zero.
    let base = unsafe { System.alloc_zeroed(around(layout)) };
    let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
    // For a larger alignment than `SYSTEM`, `System` would clear the memory by hand, and so touch
    // all of it. The block is moved to a line instead: by a whole line if it began on one, as the
    // word in front must have room.
    let shift = LINE - base.addr().get() % LINE;
    // SAFETY: 1. there are `LINE` bytes more than were asked for; 2. the word before the memory,
    // which no smaller shift than `SYSTEM` leaves out, says by how much it was shifted.
    unsafe {
        let memory = base.add(shift);
        memory.cast::<usize>().sub(1).write(shift);
        memory
    }
}

/// The alignment of what is allocated lazily, at most, and the one that the system clears pages for
/// only when they are touched.
const LINE: usize = 64;
const SYSTEM: usize = 16;

/// What the system is asked for so that the layout has room on a line.
fn around(layout: Layout) -> Layout {
    assert!(layout.align() <= LINE, "lines are the largest alignment");
    Layout::from_size_align(layout.size() + LINE, SYSTEM)
        .expect("memory is far below the address space")
}

/// Gives memory back that [`allocate_lazily`] gave.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn release_lazy(memory: NonNull<u8>, layout: Layout) {
    if layout.size() < LAZY {
        // SAFETY: the caller's promise; so much came from `allocate_zeroed`.
        return unsafe { release(memory, layout) };
    }
    count(-(layout.size() as isize));
    // SAFETY: 1. the word before it was written when it was allocated; 2. so it came from the
    // system at that address, with this layout.
    unsafe {
        let shift = memory.cast::<usize>().sub(1).read();
        System.dealloc(memory.sub(shift).as_ptr(), around(layout));
    }
}

/// Gives memory back.
///
/// # Safety
/// It came from one of the first two with this layout, and nobody uses it any more.
pub(crate) unsafe fn release(memory: NonNull<u8>, layout: Layout) {
    count(-(layout.size() as isize));
    #[cfg(all(larder_sanitize, not(larder_model)))]
    planted::read_and_release_too_often(memory, layout);
    // SAFETY: the caller's promise.
    unsafe { HEAP.dealloc(memory.as_ptr(), layout) };
}

/// Faults for memcheck to find (scripts/memcheck.sh): with `LARDER_PLANTED` in the environment the
/// first block that goes back is read beside its end, read after it went, and goes back twice.
/// There is a `LARDER_PLANTED` in builds for sanitizers alone.
#[cfg(all(larder_sanitize, not(larder_model)))]
mod planted {
    use super::{GlobalAlloc, Layout, NonNull, HEAP};
    use std::sync::Once;

    static FIRST: Once = Once::new();

    pub(crate) fn read_and_release_too_often(memory: NonNull<u8>, layout: Layout) {
        FIRST.call_once(|| {
            if std::env::var_os("LARDER_PLANTED").is_some() {
                // SAFETY: none: three faults, which are what they are for. The caller's release is
                // the second.
                unsafe {
                    let _ = memory.as_ptr().add(layout.size()).read_volatile();
                    HEAP.dealloc(memory.as_ptr(), layout);
                    let _ = memory.as_ptr().read_volatile();
                }
            }
        });
    }
}

/// Asks for the line at an address, which need not be one of ours: a hint.
#[inline]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that a program could see and faults at no address.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that lie before one that stays.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    fn the_arenas_are_trimmed() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = status.split_whitespace().nth(1).unwrap();
            pages.parse::<usize>().unwrap() * 4096
        };
        let layout = Layout::from_size_align(64 << 10, 16).unwrap();
        // SAFETY: the layout has a size; what was given is written within it, and goes back once.
        unsafe {
            let blocks: Vec<_> = (0..2000).map(|_| System.alloc_zeroed(layout)).collect();
            blocks
                .iter()
                .for_each(|block| block.write_bytes(7, layout.size()));
            let (last, others) = blocks.split_last().unwrap();
            others
                .iter()
                .for_each(|block| System.dealloc(*block, layout));
            let before = resident();
            trim_arenas();
            let after = resident();
            assert!(after + (100 << 20) < before, "{before} to {after} bytes");
            System.dealloc(*last, layout);
        }
    }

    #[test]
    fn lazy_memory_is_zeroed_on_a_line_and_goes_back() {
        for size in [64, LAZY - 64, LAZY, LAZY + 64, 4 * LAZY] {
            let layout = Layout::from_size_align(size, LINE).unwrap();
            for _ in 0..3 {
                let memory = allocate_lazily(layout);
                assert_eq!(memory.addr().get() % LINE, 0);
                // SAFETY: so many bytes were given, and are used by nobody else.
                let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), size) };
                assert!(bytes.iter().all(|&b| b == 0));
                bytes.fill(7);
                // SAFETY: it came from there, with this layout, and is not used again.
                unsafe { release_lazy(memory, layout) };
            }
        }
    }
}
