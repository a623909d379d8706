//! The allocator of blocks that are not in regions.
//!
//! With the feature `mimalloc` it is mimalloc, which is called by name: the program keeps its
//! global allocator. Otherwise it is the program's global allocator.
//!
//! Miri and the sanitizers watch Rust's allocators, so there the feature has no effect on blocks.

#[cfg(all(feature = "mimalloc", not(any(miri, larder_model, larder_sanitize))))]
mod chosen {
    pub(crate) use mimalloc::MiMalloc as General;
    pub use mimalloc::MiMalloc as Allocator;

    pub fn trim() {
        unsafe extern "C" {
            fn mi_collect(force: bool);
        }
        // SAFETY: The function may be called by any thread, at any time. It is linked, because
        // `General` uses mimalloc.
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
