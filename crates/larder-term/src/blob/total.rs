//! The bytes of a table's elements that are stored out of line.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The total length of the elements of a table that are stored out of line, in bytes.
#[derive(Debug, Default)]
pub struct OutOfLineBytes(AtomicUsize);

impl OutOfLineBytes {
    /// The total. Exact when no other thread makes or frees elements.
    pub fn get(&self) -> usize {
        // Ordering: Relaxed, here and below; a statistic, on which nothing else depends.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}
