//! The key that a thread has removed last from a table with snapshots, and the mark that its entry
//! had.
//!
//! A key that is removed loses its mark with its entry. Mostly it is the removing thread that
//! inserts the key again. The note tells it that the newest snapshot has its version already, so
//! that it need not look at the undo index.
//!
//! What the note says of its history and its key stays true as long as S6 does. A history at the
//! address of an earlier one has no live snapshot with the same number.

use super::history::History;
use larder_index::sync::each_thread;
use larder_index::Key;
use std::cell::Cell;

/// The bytes of the longest key that is noted.
const MAX_NOTED_KEY: usize = 32;

/// A short key that was removed.
#[derive(Clone, Copy)]
struct RemovedKey {
    /// The address of the history; 0 if there is no key.
    history: usize,
    mark: u64,
    len: usize,
    bytes: [u8; MAX_NOTED_KEY],
}

impl RemovedKey {
    const NONE: RemovedKey = RemovedKey {
        history: 0,
        mark: 0,
        len: 0,
        bytes: [0; MAX_NOTED_KEY],
    };
}

each_thread! {
    static LAST: Cell<RemovedKey> = const { Cell::new(RemovedKey::NONE) };
}

impl History {
    /// Notes that a key is about to be removed, whose entry has this mark.
    #[inline]
    pub(crate) fn note_removed(&self, key: Key<'_>, mark: u64) {
        let len = key.bytes.len();
        if mark == 0 || len > MAX_NOTED_KEY {
            return;
        }
        let mut bytes = [0; MAX_NOTED_KEY];
        bytes[..len].copy_from_slice(key.bytes);
        LAST.with(|last| {
            last.set(RemovedKey {
                history: std::ptr::from_ref(self).addr(),
                mark,
                len,
                bytes,
            });
        });
    }

    /// Whether the thread has noted the removal of this key with this mark.
    #[inline]
    pub(super) fn was_removed(&self, key: Key<'_>, mark: u64) -> bool {
        LAST.with(|last| {
            let last = last.get();
            last.mark == mark
                && last.history == std::ptr::from_ref(self).addr()
                && last.bytes.get(..last.len) == Some(key.bytes)
        })
    }
}
