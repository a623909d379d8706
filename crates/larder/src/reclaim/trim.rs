//! When free memory is given back to the system.
//!
//! Once a second mimalloc's, which costs little where there is none. The C library's after some
//! megabytes were freed: to look through its arenas takes as long as there are free blocks in them.

use larder_term::blob::live_bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So often at most.
const EVERY: Duration = Duration::from_secs(1);

/// Bytes freed after which the C library's arenas are worth a look.
const MUCH: usize = 4 << 20;

/// At most one part in this many of the time goes into looks through the C library's arenas.
const SHARE: u32 = 10;

/// Bytes of tables freed since the C library's arenas were looked through, about.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Notes that about this many bytes of a table, or of what one left behind, were freed.
pub(crate) fn freed(bytes: usize) {
    // Ordering: Relaxed; a figure to go by, which orders nothing.
    FREED.fetch_add(bytes, Ordering::Relaxed);
}

/// What a thread that frees knows of the last time.
pub(crate) struct Trimmer {
    last: Instant,
    /// The bytes of living blobs then; what has gone since counts as freed, too.
    blobs: usize,
    /// The C library's arenas are left alone until then.
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

    /// Gives free memory to the system when it is time.
    pub(crate) fn pass(&mut self) {
        if self.last.elapsed() < EVERY {
            return;
        }
        larder_index::trim();
        self.last = Instant::now();
        // Blobs are freed by whoever gives back the last count, with no call of `freed`: the fall
        // of their number stands for that. It misses those that came meanwhile.
        let blobs = live_bytes();
        freed(self.blobs.saturating_sub(blobs));
        self.blobs = blobs;
        // Ordering: Relaxed, as in `freed`.
        if self.last >= self.arenas && FREED.load(Ordering::Relaxed) >= MUCH {
            FREED.store(0, Ordering::Relaxed);
            larder_index::trim_arenas();
            // What has passed since `last` is the time that the look took.
            self.arenas = Instant::now() + SHARE * self.last.elapsed();
        }
    }
}
