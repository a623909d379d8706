//! The number of values and their memory, in counters that are striped under contention.

use larder_index::Striped;

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    len: Striped,
    bytes: Striped,
}

impl Counts {
    /// Adds to the number of values and of bytes.
    pub(crate) fn add(&self, len: isize, bytes: isize) {
        if len != 0 {
            self.len.add(len);
        }
        if bytes != 0 {
            self.bytes.add(bytes);
        }
    }

    /// Called if a writer had to wait. From here on, threads add to different stripes.
    pub(crate) fn contended(&self) {
        self.len.stripe();
        self.bytes.stripe();
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.len.sum().max(0) as usize
    }

    /// The memory of the values and of the counters in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.sum().max(0) as usize + self.len.memory() + self.bytes.memory()
    }
}
