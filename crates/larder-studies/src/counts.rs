//! How many values there are and how much memory they hold, counted by threads that don't meet.

use larder_index::Striped;

/// Values and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    len: Striped,
    bytes: Striped,
}

impl Counts {
    /// Values and bytes came, or went.
    pub(crate) fn add(&self, len: isize, bytes: isize) {
        if len != 0 {
            self.len.add(len);
        }
        if bytes != 0 {
            self.bytes.add(bytes);
        }
    }

    /// A writer met contention: from now on threads count apart.
    pub(crate) fn contended(&self) {
        self.len.stripe();
        self.bytes.stripe();
    }

    /// Values.
    pub(crate) fn len(&self) -> usize {
        self.len.sum().max(0) as usize
    }

    /// Bytes of the values, and of the counts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.sum().max(0) as usize + self.len.memory() + self.bytes.memory()
    }
}
