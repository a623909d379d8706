//! The change stamp: whether a table has changed since objects were read.
//!
//! A fold passes object after object to a function that may change the table, each as it is at its
//! turn. It reads them in chunks, and checks before each object whether the chunk is still current.
//! A step from key to key that is answered from the read-ahead batch does the same.
//!
//! ```text
//!   word = number of changes noted << 1 | armed
//!
//!   reader  arm: sets the low bit, keeps the word as its stamp w, then reads objects
//!   writer  note: under the leaf's lock, before its change can be seen: if armed, counts one up
//!           and disarms
//!   reader  holds: the word is still w
//! ```
//!
//! While it isn't armed, a writer only loads the word. After it was armed, only one writer stores
//! to it.
//!
//! # Invariants
//!
//! 1. *No change is missed.* A writer loads the word after it has the lock of a leaf. The reader
//!    reads leaves after it has armed the stamp. Either the lock came before the read of that leaf,
//!    which then waited for the change and saw it, or the writer sees the word armed.
//! 2. *Readers share the word.* A change disarms it and changes the count for all of them. A reader
//!    that arms it again keeps the new count.
//! 3. Scans of a bag don't wait for the lock of a stripe. So writers of a bag note a second time
//!    after the change. Entries that were read in between are invalidated by that.
//! 4. A stamp that was taken after a table's store was replaced is not kept by a reader of the old
//!    store (`EngineTable::look` in `ops/step.rs`).

use larder_index::sync::atomic::{fence, AtomicU64, Ordering};

const ARMED: u64 = 1;

/// The stamp word of a table (see the module).
pub(crate) struct ChangeStamp {
    word: AtomicU64,
    /// A number that is unique in this process, and never 0.
    number: u64,
}

/// The number of stamps so far.
static STAMPS: AtomicU64 = AtomicU64::new(0);

impl Default for ChangeStamp {
    fn default() -> Self {
        ChangeStamp {
            word: AtomicU64::new(0),
            // Ordering: Relaxed; only that each number is given once matters.
            number: STAMPS.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}

/// The word of a table at the time when objects were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub u64);

impl ChangeStamp {
    /// The number of the table in this process.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Arms the stamp. What is read afterwards is current as long as `holds` returns `true` for the
    /// result.
    pub(crate) fn arm(&self) -> Stamp {
        // Ordering: SeqCst, against the load in `note` (see the module). If it is armed already
        // nothing is stored: anything that is noted from here on changes the word that was loaded.
        let before = match self.word.load(Ordering::SeqCst) {
            word if word & ARMED != 0 => word,
            // Ordering: as above.
            _ => self.word.fetch_or(ARMED, Ordering::SeqCst),
        };
        // Ordering: SeqCst; for every thread, the caller reads leaves after the arming.
        fence(Ordering::SeqCst);
        Stamp(before | ARMED)
    }

    /// Whether nothing has changed since.
    #[inline]
    pub(crate) fn holds(&self, stamp: Stamp) -> bool {
        // Ordering: SeqCst; a thread that knows that a change is over sees its note, which was made
        // before the change could be seen.
        self.word.load(Ordering::SeqCst) == stamp.0
    }

    /// Notes a change that is about to be seen. Called under the leaf's lock, after
    /// `fence_after_lock`.
    #[inline]
    pub(crate) fn note(&self) {
        // Ordering: SeqCst, against the change in `arm`. On the machines in use it costs what a
        // plain load costs.
        let word = self.word.load(Ordering::SeqCst);
        if word & ARMED != 0 {
            self.disarm(word);
        }
    }

    #[cold]
    fn disarm(&self, mut word: u64) {
        while word & ARMED != 0 {
            // The count changes, so no earlier stamp is valid again, even after the word is armed
            // again.
            let next = (word & !ARMED).wrapping_add(2);
            // Ordering: SeqCst, as in `note`.
            match self
                .word
                .compare_exchange(word, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_every_stamp() {
        let changes = ChangeStamp::default();
        changes.note();
        let (one, two) = (changes.arm(), changes.arm());
        assert!(changes.holds(one) && changes.holds(two));
        changes.note();
        assert!(!changes.holds(one) && !changes.holds(two));
        let again = changes.arm();
        assert!(changes.holds(again) && !changes.holds(one));
        changes.note();
        changes.note();
        assert!(!changes.holds(again));
    }

    #[test]
    fn no_change_is_missed_among_threads() {
        const CHANGES: u64 = 20_000;
        let (changes, value) = (ChangeStamp::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=CHANGES {
                    changes.note();
                    // Ordering: SeqCst; stands for a change that is seen after it was noted.
                    value.store(n, Ordering::SeqCst);
                }
            });
            let mut seen = 0;
            while seen < CHANGES {
                // Ordering: SeqCst; what was there before the word was armed may change unnoted,
                // as a leaf's lock would not let it.
                let before = value.load(Ordering::SeqCst);
                let stamp = changes.arm();
                seen = value.load(Ordering::SeqCst);
                std::hint::spin_loop();
                let after = value.load(Ordering::SeqCst);
                // One change may have been noted before and be made after: no lock holds it here.
                assert!(!changes.holds(stamp) || after <= seen.max(before) + 1);
            }
        });
    }
}
