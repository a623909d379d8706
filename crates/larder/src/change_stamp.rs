//! The change stamp: whether a table has changed since objects were read.
//!
//! A fold passes object after object to a function that may change the table, each as it is at its
//! turn. It reads them in chunks, and checks before each object whether the chunk is still current.
//! A step from key to key that is answered from the read-ahead batch does the same.
//!
//! ```text
//!   word = replacing << 48 | number of changes noted << 1 | armed
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
//! A walk may change the object that it stands on. If its stamp w is valid and its own change
//! concerns nothing that it has read ahead, the note counts one up and leaves the word armed. That
//! word is the walk's stamp from then on.
//!
//! # Invariants
//!
//! * **CS1** *No change is missed.* A writer loads the word after it has the lock of a leaf. The
//!   reader reads leaves after it has armed the stamp. Either the lock came before the read of that
//!   leaf, which then waited for the change and saw it, or the writer sees the word armed.
//! * **CS2** *Readers share the word.* A change changes the count for all of them but the walk that
//!   keeps its stamp, if any. A reader that arms the word again keeps the new count.
//! * **CS3** Scans of a bag don't wait for the lock of a stripe. So writers of a bag note a second
//!   time after the change. Entries that were read in between are invalidated by that.
//! * **CS4** *A stamp that is kept misses no change of another thread.* The word is exchanged only
//!   if it is still w, so nobody has noted a change since w was taken. It is armed before and
//!   after.
//! * **CS5** A stamp that was taken after a table's store was replaced is not kept by a reader of
//!   the old store (`EngineTable::look` in `ops/step.rs`).
//! * **CS6** *No stamp holds while the table is emptied or dropped.* That is seen by all threads at
//!   one instant, without the lock of a leaf. So it is announced before that instant: the number of
//!   threads that replace the store is in the word, and in no stamp.

use larder_index::sync::atomic::{fence, AtomicU64, Ordering};
use std::cell::Cell;
use std::num::NonZeroU64;

const ARMED: u64 = 1;
/// One thread that replaces the store. Counts of changes stay below, for years.
const REPLACING: u64 = 1 << 48;

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
pub struct Stamp(NonZeroU64);

impl Stamp {
    /// The stamp with this word. `None` if it is 0: the word of a stamp is armed.
    #[inline]
    pub fn of(word: u64) -> Option<Self> {
        NonZeroU64::new(word).map(Stamp)
    }

    /// The word, from which `of` makes the stamp again.
    #[inline]
    pub fn word(self) -> u64 {
        self.0.get()
    }
}

/// A replacement of the table's store that is in progress.
#[must_use]
pub(crate) struct Replacing<'c>(&'c ChangeStamp);

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        self.0.replace_word(|word| word - REPLACING);
    }
}

/// The stamp of a walk while its thread changes the table; `None` if it isn't valid.
pub(crate) type WalkStamp = Cell<Option<Stamp>>;

impl ChangeStamp {
    /// The number of the table in this process.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Arms the stamp. What is read afterwards is current as long as `holds` returns `true` for the
    /// result.
    pub(crate) fn arm(&self) -> Stamp {
        // Ordering: SeqCst, against the load in `note_beside` (see the module). If it is armed
        // already, nothing is stored: anything that is noted from here on changes the word that was
        // loaded.
        let before = match self.word.load(Ordering::SeqCst) {
            word if word & ARMED != 0 => word,
            // Ordering: as above.
            _ => self.word.fetch_or(ARMED, Ordering::SeqCst),
        };
        // Ordering: SeqCst; for every thread, the caller reads leaves after the arming.
        fence(Ordering::SeqCst);
        // While the store is replaced, this isn't the word, and it never will be: the count grows
        // when that is over.
        Stamp(NonZeroU64::MIN | (before % REPLACING))
    }

    /// Announces that the table's store is about to be replaced. Until the result is dropped, no
    /// stamp holds, and none that was taken before or meanwhile holds afterwards.
    pub(crate) fn replacing(&self) -> Replacing<'_> {
        self.replace_word(|word| word + REPLACING);
        Replacing(self)
    }

    /// Changes the word, counts one up and disarms.
    fn replace_word(&self, change: impl Fn(u64) -> u64) {
        // Ordering: SeqCst; a thread that sees the new store sees the word before or after it.
        let mut word = self.word.load(Ordering::SeqCst);
        loop {
            let next = (change(word) & !ARMED).wrapping_add(2);
            // Ordering: as above.
            let changed =
                self.word
                    .compare_exchange(word, next, Ordering::SeqCst, Ordering::SeqCst);
            match changed {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Whether nothing has changed since.
    #[inline]
    pub(crate) fn holds(&self, stamp: Stamp) -> bool {
        // Ordering: SeqCst; a thread that knows that a change is over sees its note, which was made
        // before the change could be seen.
        self.word.load(Ordering::SeqCst) == stamp.word()
    }

    /// Whether a reader has armed the stamp, and no change was noted since.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        // Ordering: Relaxed; a hint.
        self.word.load(Ordering::Relaxed) & ARMED != 0
    }

    /// Notes a change that is about to be seen. Called under the leaf's lock, after
    /// `fence_after_lock`.
    #[inline]
    pub(crate) fn note(&self) {
        self.note_beside(None);
    }

    /// Like `note`, for a change that concerns nothing that was read ahead with the stamp of
    /// `walk`. The stamp becomes one that is as valid; `None` if it isn't valid any more.
    #[inline]
    pub(crate) fn note_beside(&self, walk: Option<&WalkStamp>) {
        // Ordering: SeqCst, against the change in `arm`. On the machines in use it costs what a
        // plain load costs.
        let word = self.word.load(Ordering::SeqCst);
        if word & ARMED != 0 {
            self.count(word, walk);
        }
    }

    #[cold]
    fn count(&self, word: u64, walk: Option<&WalkStamp>) {
        let walk = walk.and_then(|walk| Some((walk, walk.take()?)));
        let Some((walk, kept)) = walk else {
            return self.disarm(word);
        };
        // The count changes, so the stamps of other readers are invalid. It stays armed.
        let next = NonZeroU64::MIN | kept.word().wrapping_add(2);
        // Ordering: SeqCst, as in `note_beside`.
        match self.word.compare_exchange(
            kept.word(),
            next.get(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => walk.set(Some(Stamp(next))),
            // Another thread has noted a change since.
            Err(now) => self.disarm(now),
        }
    }

    fn disarm(&self, mut word: u64) {
        while word & ARMED != 0 {
            // The count changes, so no earlier stamp is valid again, even after the word is armed
            // again.
            let next = (word & !ARMED).wrapping_add(2);
            // Ordering: SeqCst, as in `note_beside`.
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

    /// A table is seen to be emptied at one instant between the two ends of the announcement.
    #[test]
    fn no_stamp_holds_while_the_store_is_replaced() {
        let changes = ChangeStamp::default();
        let before = changes.arm();
        let (one, other) = (changes.replacing(), changes.replacing());
        assert!(!changes.holds(before));
        let meanwhile = changes.arm();
        assert!(!changes.holds(meanwhile));
        let own = WalkStamp::new(Some(meanwhile));
        changes.note_beside(Some(&own));
        assert_eq!(own.get(), None);
        drop(one);
        let late = changes.arm();
        assert!(!changes.holds(late));
        drop(other);
        assert!([before, meanwhile, late]
            .iter()
            .all(|stamp| !changes.holds(*stamp)));
        let afterwards = changes.arm();
        assert!(changes.holds(afterwards) && afterwards.word() < REPLACING);
    }

    #[test]
    fn a_walk_keeps_its_stamp_beside_its_own_changes() {
        let changes = ChangeStamp::default();
        let (own, other) = (WalkStamp::new(Some(changes.arm())), changes.arm());
        for _ in 0..2 {
            changes.note_beside(Some(&own));
            assert!(own.get().is_some_and(|stamp| changes.holds(stamp)));
            assert!(!changes.holds(other));
        }
        let before = own.get();
        changes.note();
        changes.arm();
        // The word is armed as before, but the count isn't that of the walk's stamp.
        changes.note_beside(Some(&own));
        assert_eq!(own.get(), None);
        assert!(before.is_some_and(|stamp| !changes.holds(stamp)) && !changes.is_armed());
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
