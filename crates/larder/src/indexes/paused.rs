//! What a select by an index of a view has read for its next page.

use larder_index::sync::Mutex;
use std::any::Any;

/// What the last job that stopped at its limit has read of a view, until a job continues there. A
/// store has it, and the code that reads views is above stores: so its type isn't known here.
#[derive(Default)]
pub(crate) struct PausedEntries(Mutex<Option<Left>>);

/// What was left, and its memory in bytes.
type Left = (Box<dyn Any + Send>, usize);

impl PausedEntries {
    /// Leaves what a job has read, of this memory, in place of what another one has left.
    pub(super) fn leave(&self, read: Box<dyn Any + Send>, memory: usize) {
        let before = self.0.lock().replace((read, memory));
        // It may be large. Free it without the lock.
        drop(before);
    }

    /// Takes what was left, if it is of this type and fits.
    pub(super) fn take_if<T: 'static>(&self, fits: impl FnOnce(&T) -> bool) -> Option<Box<T>> {
        let mut left = self.0.lock();
        if !left.as_ref()?.0.downcast_ref().is_some_and(fits) {
            return None;
        }
        left.take()?.0.downcast().ok()
    }

    /// The memory of what was left, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.lock().as_ref().map_or(0, |(_, memory)| *memory)
    }
}
