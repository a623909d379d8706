//! The allocator of blocks that are not in regions.
//!
//! With the feature `mimalloc` it is mimalloc, which is called by name: the program keeps its
//! global allocator. Otherwise it is the program's global allocator.
//!
//! Miri and the sanitizers watch Rust's allocators, so there the feature has no effect on blocks.

#[cfg(all(feature = "mimalloc", not(any(miri, larder_model, larder_sanitize))))]
mod chosen {
    pub(crate) use self::Allocator as General;
    use mimalloc::MiMalloc;
    use std::alloc::{GlobalAlloc, Layout};
    use std::ffi::c_void;

    unsafe extern "C" {
        fn mi_malloc(size: usize) -> *mut c_void;
        fn mi_zalloc(size: usize) -> *mut c_void;
        fn mi_realloc(block: *mut c_void, size: usize) -> *mut c_void;
        fn mi_collect(force: bool);
    }

    /// mimalloc, which is told the alignment only where it wouldn't choose it by itself. If it is
    /// told, an allocation takes twice as long, and sometimes a larger block than it needs.
    pub struct Allocator;

    /// Whether mimalloc aligns all blocks of this size as wanted. Blocks of more than 8 bytes are
    /// aligned to 16, smaller ones to 8.
    #[inline]
    fn is_natural(size: usize, align: usize) -> bool {
        align <= 16 && align <= size
    }

    // SAFETY: The functions of `MiMalloc` keep the contract. The others are mimalloc's, too:
    // 1. They return a block of this size, or null. `mi_zalloc` clears it, and `mi_realloc` keeps
    //    what was in the old block.
    // 2. It is aligned as wanted, since `is_natural`.
    // 3. `mi_free` and `mi_realloc` take blocks of all functions.
    unsafe impl GlobalAlloc for Allocator {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if is_natural(layout.size(), layout.align()) {
                // SAFETY: Any size may be asked for.
                return unsafe { mi_malloc(layout.size()) }.cast();
            }
            // SAFETY: The caller keeps the contract of `GlobalAlloc`.
            unsafe { MiMalloc.alloc(layout) }
        }

        #[inline]
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            if is_natural(layout.size(), layout.align()) {
                // SAFETY: Any size may be asked for.
                return unsafe { mi_zalloc(layout.size()) }.cast();
            }
            // SAFETY: As in `alloc`.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: As in `alloc`.
            unsafe { MiMalloc.dealloc(block, layout) }
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if is_natural(size, layout.align()) {
                // SAFETY: The caller owns the block, which is mimalloc's.
                return unsafe { mi_realloc(block.cast(), size) }.cast();
            }
            // SAFETY: As in `alloc`.
            unsafe { MiMalloc.realloc(block, layout, size) }
        }
    }

    pub fn trim() {
        // SAFETY: The function may be called by any thread, at any time. It is linked, because
        // `MiMalloc` uses mimalloc.
        unsafe { mi_collect(true) }
    }
}

#[cfg(not(all(feature = "mimalloc", not(any(miri, larder_model, larder_sanitize)))))]
mod chosen {
    #[cfg(feature = "mimalloc")]
    pub use std::alloc::System as Allocator;
    use std::alloc::{alloc, alloc_zeroed, dealloc, GlobalAlloc, Layout};

    /// The program's global allocator.
    pub(crate) struct General;

    // SAFETY: Each function passes its arguments on to the global allocator, which keeps the
    // contract.
    unsafe impl GlobalAlloc for General {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: The caller keeps the contract of `GlobalAlloc`.
            unsafe { alloc(layout) }
        }

        #[inline]
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: As in `alloc`.
            unsafe { alloc_zeroed(layout) }
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: As in `alloc`.
            unsafe { dealloc(block, layout) }
        }
    }

    pub fn trim() {}
}

/// An allocator for the other memory of a program. [`trim`] returns its free pages to the system,
/// whichever thread freed them. The C library's allocator keeps most of the memory that one thread
/// allocated and another freed.
#[cfg(feature = "mimalloc")]
pub use chosen::Allocator;
pub(crate) use chosen::General;

/// Returns free pages of mimalloc to the system. By itself, mimalloc does so only when some thread
/// allocates again, which may never happen. Without the feature `mimalloc` it does nothing.
///
/// # Complexity
/// Reads a bit for each 64 KiB that the process has ever used, and makes a system call for each run
/// of pages that were freed since the last time. Other threads can allocate and free meanwhile.
pub fn trim() {
    chosen::trim();
}

#[cfg(all(
    test,
    feature = "mimalloc",
    not(any(miri, larder_model, larder_sanitize))
))]
mod tests {
    use super::Allocator;
    use std::alloc::{GlobalAlloc, Layout};

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        for (size, align) in (1..300).flat_map(|size| (0..8).map(move |bits| (size, 1 << bits))) {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: The layout has a size. Each block is written within its size, and freed once
            // with its layout.
            unsafe {
                let zeroed = Allocator.alloc_zeroed(layout);
                assert_eq!(zeroed.addr() % align, 0, "{layout:?}");
                assert!((0..size).all(|i| zeroed.add(i).read() == 0));
                let block = Allocator.alloc(layout);
                assert_eq!(block.addr() % align, 0, "{layout:?}");
                block.write_bytes(7, size);
                let grown = Allocator.realloc(block, layout, 2 * size);
                assert_eq!(grown.addr() % align, 0, "{layout:?}");
                assert!((0..size).all(|i| grown.add(i).read() == 7));
                Allocator.dealloc(zeroed, layout);
                Allocator.dealloc(grown, Layout::from_size_align(2 * size, align).unwrap());
            }
        }
    }
}
