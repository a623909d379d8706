//! Whether a table was changed since somebody took many of its objects at once.
//!
//! A fold shows object after object to a function that may change the table, and each as it is at
//! its turn. It takes them in chunks, and before each object asks the watch whether the chunk still
//! tells the truth.
//!
//! ```text
//!   word = number of changes noted << 1 | armed
//!
//!   fold    arm: sets the low bit, remembers the word w, then reads objects
//!   writer  note: under the leaf's lock, before its change can be seen: if armed, counts one up and disarms
//!   fold    holds: the word is still w
//! ```
//!
//! While nobody folds, a writer reads the word and no more; while somebody does, one writer a chunk
//! writes it.
//!
//! # Why no change is missed
//!
//! A writer loads the word after it took the lock of a leaf; the fold reads leaves after it armed.
//! Either the lock came before the fold's reading of that leaf, which then waited for the change
//! and saw it, or the writer sees the word armed. Two folds share the word: a change disarms it and
//! changes the count for both, and whoever arms it again remembers the new count.
//!
//! A bag's scans wait for no lock of a key, so its writers note a second time after the change:
//! what was read in between ends with the change. And what was armed after a table's store was
//! replaced is not kept by who read the old one (`traverse.rs::look`).

use larder_index::sync::atomic::{fence, AtomicU64, Ordering};

const ARMED: u64 = 1;

/// See the module.
pub(crate) struct ChangeStamp {
    word: AtomicU64,
    /// A number that no other watch of this process has; never 0.
    number: u64,
}

/// How many watches there have been.
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

/// What the watch of a table said when objects were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub u64);

impl ChangeStamp {
    /// The number of the watch, and so of its table, in this process.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Begins to watch. What is read afterwards is true for as long as `holds`.
    pub(crate) fn arm(&self) -> Stamp {
        // Ordering: SeqCst, against the load in `note` (see the module). Who finds it armed writes
        // nothing: whatever is noted from here on changes the word that was loaded.
        let before = match self.word.load(Ordering::SeqCst) {
            word if word & ARMED != 0 => word,
            // Ordering: as above.
            _ => self.word.fetch_or(ARMED, Ordering::SeqCst),
        };
        fence(Ordering::SeqCst);
        Stamp(before | ARMED)
    }

    /// Whether nothing was changed since.
    #[inline]
    pub(crate) fn holds(&self, stamp: Stamp) -> bool {
        // Ordering: SeqCst; whoever knows that a change is over sees its note, made before the
        // change could be seen.
        self.word.load(Ordering::SeqCst) == stamp.0
    }

    /// Notes a change that is about to be seen. Called under the leaf's lock, after `after_lock`.
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
    fn a_change_is_seen_by_all_who_watch() {
        let watch = ChangeStamp::default();
        watch.note();
        let (one, two) = (watch.arm(), watch.arm());
        assert!(watch.holds(one) && watch.holds(two));
        watch.note();
        assert!(!watch.holds(one) && !watch.holds(two));
        let again = watch.arm();
        assert!(watch.holds(again) && !watch.holds(one));
        watch.note();
        watch.note();
        assert!(!watch.holds(again));
    }

    #[test]
    fn no_change_is_missed_among_threads() {
        const CHANGES: u64 = 20_000;
        let (watch, value) = (ChangeStamp::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=CHANGES {
                    watch.note();
                    // Ordering: SeqCst; stands for a change that is seen after it was noted.
                    value.store(n, Ordering::SeqCst);
                }
            });
            let mut seen = 0;
            while seen < CHANGES {
                // Ordering: SeqCst; what was there before the watch was armed may change unnoted,
                // as a leaf's lock would not let it.
                let before = value.load(Ordering::SeqCst);
                let stamp = watch.arm();
                seen = value.load(Ordering::SeqCst);
                std::hint::spin_loop();
                let after = value.load(Ordering::SeqCst);
                // One change may have been noted before and be made after: no lock holds it here.
                assert!(!watch.holds(stamp) || after <= seen.max(before) + 1);
            }
        });
    }
}
