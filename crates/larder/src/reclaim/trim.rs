//! When free memory is returned to the system.
//!
//! mimalloc, if it is used, is trimmed once a second, which costs little if it has no free pages.
//! The C library is trimmed after some megabytes were freed, because searching its arenas takes
//! time in proportion to their free blocks.

use larder_term::blob::live_bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The minimum time between two trims.
const EVERY: Duration = Duration::from_secs(1);

/// The number of freed bytes after which the C library's arenas are searched.
const MUCH: usize = 4 << 20;

/// At most one part in this number of the time is spent on searching the C library's arenas.
const SHARE: u32 = 10;

/// The approximate number of bytes of tables that were freed since the C library's arenas were last
/// searched.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Records that about this many bytes of a table, or of its garbage, were freed.
pub(crate) fn freed(bytes: usize) {
    // Ordering: Relaxed; an estimate, which orders nothing.
    FREED.fetch_add(bytes, Ordering::Relaxed);
}

/// The state of a thread that frees memory.
pub(crate) struct Trimmer {
    last: Instant,
    /// The bytes of live blobs at the last search. Those that were dropped since count as freed,
    /// too.
    blobs: usize,
    /// The C library's arenas are not searched before this time.
    arenas: Instant,
}

impl Trimmer {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Trimmer {
            last: now,
            blobs: live_bytes(),
            arenas: now,
        }
    }

    /// Returns free memory to the system, if it is time.
    pub(crate) fn pass(&mut self) {
        if self.last.elapsed() < EVERY {
            return;
        }
        larder_index::trim();
        self.last = Instant::now();
        // Blobs are freed by the thread that drops the last count, without a call of `freed`. The
        // decrease of their number stands for that. Blobs that were added meanwhile make it too
        // small.
        let blobs = live_bytes();
        freed(self.blobs.saturating_sub(blobs));
        self.blobs = blobs;
        // Ordering: Relaxed, as in `freed`.
        if self.last >= self.arenas && FREED.load(Ordering::Relaxed) >= MUCH {
            FREED.store(0, Ordering::Relaxed);
            larder_index::trim_arenas();
            // The time since `last` is the time that the search took.
            self.arenas = Instant::now() + SHARE * self.last.elapsed();
        }
    }
}
