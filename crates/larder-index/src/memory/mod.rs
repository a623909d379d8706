//! The allocators of leaves, inner nodes and outside objects.
//!
//! Nearly all leaves are blocks of 1.3 to 16 KiB. These are allocated in `memory::regions`, on huge
//! pages. Smaller and larger blocks are allocated by the general allocator (`memory::general`):
//! mimalloc with the feature of that name, and otherwise the program's global allocator. Huge pages
//! matter: with 80,000 blocks of 2 to 4 KiB, dependent random reads take 534 ns on them, and 664 ns
//! in the C library's memory, since there are fewer TLB misses.
//!
//! The sizes of leaves are a quarter of a power of two apart: 2048, 2560, 3072, 3584, 4096.
//!
//! ```text
//!  allocate, allocate_zeroed ─→ HEAP: regions, general       release
//!  allocate_lazily           ─→ HEAP, or from 256 KiB on     release_lazy
//!                               the system's allocator
//! ```
//!
//! Invariants:
//! * **M1** A block is freed by the function of its kind, with the layout with which it was
//!   allocated.
//! * **M2** No function here returns null. Without memory the process ends, as with Rust's
//!   containers.

#[cfg_attr(larder_model, allow(dead_code, unused_imports))]
mod general;
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

pub use general::trim;
#[cfg(feature = "mimalloc")]
pub use general::Allocator;
use std::alloc::{handle_alloc_error, GlobalAlloc, Layout, System};
use std::ptr::NonNull;

// Miri knows only Rust's allocators, and detects use after free and double frees with them. So do
// the sanitizers, in builds with `--cfg larder_sanitize`.
#[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
static HEAP: regions::Regions = crate::memory::regions::Regions;
#[cfg(not(any(
    all(target_os = "linux", not(any(miri, larder_sanitize))),
    larder_model
)))]
static HEAP: general::General = crate::memory::general::General;
#[cfg(larder_model)]
static HEAP: quarantine::Quarantine = crate::memory::quarantine::Quarantine;

/// Returns the free pages of the C library's arenas to the system. By itself, the C library does so
/// only at the end of an arena. So one block that stays keeps the free memory before it.
///
/// # Complexity
/// Linear in the number of free blocks of all arenas. One arena at a time is locked meanwhile.
pub fn trim_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: The function may be called by any thread, at any time.
        unsafe { malloc_trim(0) };
    }
}

/// The number of bytes that are kept for future leaves: those in regions that belong to no block,
/// unless they were returned to the system. 0 on systems without regions: what the general
/// allocator keeps is not counted.
///
/// # Complexity
/// O(1). Each shard of the regions is locked for a moment.
pub fn bytes_kept() -> usize {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    return regions::free() + pages::ready();
    #[cfg(not(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize)))))]
    return 0;
}

/// Whether to store leaves on huge pages, where the system has them. The default is `true`. It
/// applies to memory that was not taken yet.
pub fn huge_pages(huge: bool) {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    pages::set_huge(huge);
    #[cfg(not(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize)))))]
    let _ = huge;
}

/// Ends the thread that pre-faults memory, if it runs. It starts again when memory is needed.
/// Call it for an orderly shutdown. Waits some milliseconds at most.
pub fn end_thread() {
    #[cfg(all(target_os = "linux", not(any(miri, larder_model, larder_sanitize))))]
    pages::end();
}

/// The number of bytes that all indexes have allocated and not freed. Only counted in builds with
/// debug assertions, for tests.
#[cfg(debug_assertions)]
pub fn bytes_allocated() -> isize {
    // Ordering: Relaxed, a mere count.
    ALLOCATED.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(debug_assertions)]
static ALLOCATED: std::sync::atomic::AtomicIsize = std::sync::atomic::AtomicIsize::new(0);

#[inline]
fn count(_bytes: isize) {
    #[cfg(debug_assertions)]
    // Ordering: Relaxed, a mere count.
    ALLOCATED.fetch_add(_bytes, std::sync::atomic::Ordering::Relaxed);
}

/// Allocates zeroed memory. Ends the process if there is none, like all of Rust's containers.
pub(crate) fn allocate_zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "nothing asks for no memory");
    count(layout.size() as isize);
    // SAFETY: The size was checked: it is not zero.
    let memory = unsafe { HEAP.alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Like [`allocate_zeroed`], but the content is unspecified.
pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "nothing asks for no memory");
    count(layout.size() as isize);
    // SAFETY: The size was checked: it is not zero.
    let memory = unsafe { HEAP.alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// The size from which on [`allocate_lazily`] uses the system's allocator.
const LAZY: usize = 1 << 18;

/// Like [`allocate_zeroed`], for memory that is touched late and in small parts. The system maps a
/// large block, and clears each page when it is first touched. Other allocators, such as mimalloc,
/// would clear memory that they have used before, all at once.
pub(crate) fn allocate_lazily(layout: Layout) -> NonNull<u8> {
    if layout.size() < LAZY {
        return allocate_zeroed(layout);
    }
    count(layout.size() as isize);
    // SAFETY: The size is at least `LAZY`, so it is not zero.
    let base = unsafe { System.alloc_zeroed(around(layout)) };
    let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
    // For an alignment greater than `SYSTEM`, `System` would clear the memory explicitly, and so
    // touch all of it. So shift the block to the beginning of a line. If it already begins on a
    // line, shift it by a whole one, because there must be room for the word before it.
    let shift = LINE - base.addr().get() % LINE;
    // SAFETY:
    // 1. `around` has asked for `LINE` bytes more than the caller. So the shifted block has its
    //    full size.
    // 2. The shift is at least `SYSTEM` bytes, since the block is aligned to that. So there is room
    //    for a word in front of the memory. It records the shift.
    unsafe {
        let memory = base.add(shift);
        memory.cast::<usize>().sub(1).write(shift);
        memory
    }
}

/// The maximum alignment of lazily allocated memory, and the greatest alignment for which the
/// system clears pages only when they are touched.
const LINE: usize = 64;
const SYSTEM: usize = 16;

/// The layout to request from the system, with room for the shift to a line.
fn around(layout: Layout) -> Layout {
    assert!(layout.align() <= LINE, "lines are the largest alignment");
    Layout::from_size_align(layout.size() + LINE, SYSTEM)
        .expect("memory is far below the address space")
}

/// Frees memory that [`allocate_lazily`] has returned.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn release_lazy(memory: NonNull<u8>, layout: Layout) {
    if layout.size() < LAZY {
        // SAFETY: The caller owns the memory. Memory of this size was allocated by
        // `allocate_zeroed`.
        return unsafe { release(memory, layout) };
    }
    count(-(layout.size() as isize));
    // SAFETY:
    // 1. `allocate_lazily` has written the shift to the word in front of the memory.
    // 2. The block begins that many bytes before the memory. It was allocated by `System` with this
    //    layout.
    unsafe {
        let shift = memory.cast::<usize>().sub(1).read();
        System.dealloc(memory.sub(shift).as_ptr(), around(layout));
    }
}

/// Frees memory.
///
/// # Safety
/// It came from one of the first two with this layout, and nobody uses it any more.
pub(crate) unsafe fn release(memory: NonNull<u8>, layout: Layout) {
    count(-(layout.size() as isize));
    #[cfg(all(larder_sanitize, not(larder_model)))]
    planted::read_and_release_too_often(memory, layout);
    // SAFETY: The caller owns the memory, which came from `HEAP` with this layout.
    unsafe { HEAP.dealloc(memory.as_ptr(), layout) };
}

/// Planted faults for memcheck (scripts/memcheck.sh). With `LARDER_PLANTED` in the environment, the
/// first block that is freed is read past its end, read after it was freed, and freed twice. Only
/// builds for sanitizers look at `LARDER_PLANTED`.
#[cfg(all(larder_sanitize, not(larder_model)))]
mod planted {
    use super::{GlobalAlloc, Layout, NonNull, HEAP};
    use std::sync::Once;

    static FIRST: Once = Once::new();

    pub(crate) fn read_and_release_too_often(memory: NonNull<u8>, layout: Layout) {
        FIRST.call_once(|| {
            if std::env::var_os("LARDER_PLANTED").is_some() {
                // SAFETY: None. These are three deliberate faults, for checkers to find. The
                // release by the caller is the second one.
                unsafe {
                    let _ = memory.as_ptr().add(layout.size()).read_volatile();
                    HEAP.dealloc(memory.as_ptr(), layout);
                    let _ = memory.as_ptr().read_volatile();
                }
            }
        });
    }
}

/// Prefetches the cache line at an address, which need not be one of ours. A hint.
#[inline]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: A prefetch has no visible effect, and can't fault, whatever the address is.
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
        // SAFETY: The layout has a size. The memory is written within that size, and released once.
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
                // SAFETY: The memory has this many bytes, and belongs to this test alone.
                let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), size) };
                assert!(bytes.iter().all(|&b| b == 0));
                bytes.fill(7);
                // SAFETY: It was allocated above with this layout, and is not used again.
                unsafe { release_lazy(memory, layout) };
            }
        }
    }
}
