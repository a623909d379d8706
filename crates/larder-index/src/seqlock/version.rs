//! The version of a leaf: the lock of its writers, and the count by which readers validate (L1, L2,
//! R1 and R2 of `seqlock`).
//!
//! ```text
//!  bits 2..64   a count of changes        bit 1   obsolete        bit 0   locked
//!
//!  unlocked n ──try_lock──→ locked n ──unlock──→ unlocked n + 1, or n if nothing was changed
//!                              ╰──────obsolete──→ obsolete n + 1, for ever
//! ```
//!
//! Invariants (docs/design.md §4.2):
//! * I2: Only the holder of the lock writes to the leaf's words.
//! * I7: The count that is found under a position only grows: a new leaf starts from a greater
//!   count than those of the leaves that it replaces (`succeed`).
//!
//! Source: seqlocks with atomics after Boehm 2012; the obsolete bit after optimistic lock coupling
//! (Leis, Scheibner, Kemper and Neumann 2016).

use crate::sync::atomic::{fence, AtomicU64, Ordering::*};
use crate::sync::{planted, Backoff, Fault};

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const COUNT: u64 = 4;

/// The version of a leaf. Zeroed memory is the version of a leaf that replaces no other; see I7 for
/// one that does.
#[repr(transparent)]
pub(crate) struct Version(AtomicU64);

/// The state that the holder of a lock keeps: the version before the lock was taken, and in its
/// lowest bit whether anything has been changed since. That bit is clear in the version of an
/// unlocked leaf. It is one word, so that it is copied as one.
#[derive(Clone, Copy)]
pub(crate) struct HeldVersion(u64);

/// The flag in `HeldVersion`.
const CHANGED: u64 = 1;

impl HeldVersion {
    /// Nothing has been changed yet. `before` is the version before the lock was taken.
    #[inline]
    pub(crate) fn at(before: u64) -> HeldVersion {
        HeldVersion(before)
    }

    /// The version before the lock was taken.
    #[inline]
    pub(crate) fn before(self) -> u64 {
        self.0 & !CHANGED
    }

    /// The version once the lock is released.
    #[inline]
    pub(crate) fn after(self) -> u64 {
        self.before() + (self.0 & CHANGED) * COUNT
    }

    /// Records that something is about to be changed.
    #[inline]
    pub(crate) fn change(&mut self) {
        self.0 |= CHANGED;
    }
}

/// The error that a leaf is obsolete. Its entries are in other leaves, which a search from the root
/// finds.
#[derive(Debug)]
pub(crate) struct Obsolete;

impl Version {
    /// Begins an optimistic read. Waits while the leaf is locked.
    #[inline]
    pub(crate) fn read(&self) -> Result<u64, Obsolete> {
        // Ordering: Acquire (R1), pairs with the unlocking store (L2).
        let version = self.0.load(Acquire);
        // If it is unlocked, the words don't change until another thread takes the lock.
        if version & (LOCKED | OBSOLETE) != 0 {
            return self.wait();
        }
        Ok(version)
    }

    #[cold]
    fn wait(&self) -> Result<u64, Obsolete> {
        let backoff = Backoff::new();
        loop {
            // Ordering: Acquire (R1), as in `read`.
            let version = self.0.load(Acquire);
            // An obsolete leaf is never usable again.
            if version & OBSOLETE != 0 {
                return Err(Obsolete);
            }
            if version & LOCKED == 0 {
                return Ok(version);
            }
            backoff.snooze();
        }
    }

    /// Whether nobody has written since `version` was loaded, so that everything that was read
    /// since is consistent.
    #[inline]
    pub(crate) fn validate(&self, version: u64) -> bool {
        // Ordering: Acquire fence (R2), pairs with the fence in `try_lock` (L1).
        fence(Acquire);
        // If we have seen a word of a later writer, we now see that writer's lock, or a greater
        // count.
        // Ordering: Relaxed, the fence above keeps it after the reads.
        self.0.load(Relaxed) == version || planted(Fault::BlindRead)
    }

    /// Whether it is locked or obsolete, as a hint.
    #[inline]
    pub(crate) fn is_locked(&self) -> bool {
        // Ordering: Relaxed, nothing is read because of it.
        self.0.load(Relaxed) & (LOCKED | OBSOLETE) != 0
    }

    /// Takes the lock if it is free, and returns the version before that. Returns `Ok(None)` if it
    /// isn't free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Result<Option<u64>, Obsolete> {
        // Ordering: Relaxed, only a guess for the exchange below.
        let now = self.0.load(Relaxed);
        if now & OBSOLETE != 0 {
            return Err(Obsolete);
        }
        // Ordering: Acquire, pairs with the unlocking store (L2): what the last writer wrote is
        // seen. Relaxed on failure: nothing is read then.
        let locked = now & LOCKED == 0
            && self
                .0
                .compare_exchange(now, now | LOCKED, Acquire, Relaxed)
                .is_ok();
        if !locked {
            return Ok(None);
        }
        // Ordering: Release fence (L1), pairs with R2: a reader that sees a word written after it
        // sees the locked version.
        fence(Release);
        Ok(Some(now))
    }

    /// Takes the lock if the version is still `before`, which is neither locked nor obsolete.
    #[inline]
    pub(crate) fn try_lock_at(&self, before: u64) -> bool {
        debug_assert_eq!(before & (LOCKED | OBSOLETE), 0);
        // Ordering: Acquire, pairs with the unlocking store (L2). Relaxed on failure: nothing is
        // read then.
        let locked = self
            .0
            .compare_exchange(before, before | LOCKED, Acquire, Relaxed)
            .is_ok();
        // Ordering: Release fence (L1), as in `try_lock`.
        fence(Release);
        locked
    }

    /// Takes the lock, and returns the version before that. Also returns whether another thread
    /// held it.
    #[inline]
    pub(crate) fn lock(&self) -> Result<(u64, bool), Obsolete> {
        match self.try_lock()? {
            Some(before) => Ok((before, false)),
            None => Ok((self.lock_slow()?, true)),
        }
    }

    #[cold]
    fn lock_slow(&self) -> Result<u64, Obsolete> {
        let backoff = Backoff::new();
        loop {
            // Yield first: the lock was just found held.
            backoff.snooze();
            if let Some(before) = self.try_lock()? {
                return Ok(before);
            }
        }
    }

    /// Unlocks. If nothing was changed, restores the version from before, so that no reader has to
    /// retry.
    #[inline]
    pub(crate) fn unlock(&self, held: HeldVersion) {
        // Ordering: Release (L2), pairs with R1 and with the next lock.
        self.0.store(held.after(), Release);
    }

    /// Makes this version, of a leaf that isn't published yet, greater than all versions of a leaf
    /// that it will replace (I7). `before` is the version that the old leaf had before its lock was
    /// taken. Returns the new version.
    pub(crate) fn succeed(&self, before: u64) -> u64 {
        // Ordering: Relaxed, both: nobody else can reach the leaf.
        let least = self.0.load(Relaxed);
        // The old leaf's last version, when it is obsolete, is `before + COUNT`.
        let version = least.max(before + 2 * COUNT);
        // Ordering: as above.
        self.0.store(version, Relaxed);
        version
    }

    /// Locks a leaf that isn't published yet, and returns the version before that.
    pub(crate) fn lock_new(&self) -> u64 {
        // Ordering: Relaxed, both: nobody else can reach the leaf. A thread that does so later sees
        // this with the slot that leads there.
        let before = self.0.load(Relaxed);
        self.0.store(before | LOCKED, Relaxed);
        before
    }

    /// Unlocks, and marks the leaf obsolete. A thread that finds it from now on searches again from
    /// the root.
    pub(crate) fn mark_obsolete(&self, before: u64) {
        // Ordering: Release (L2), pairs with R1 and with the next attempt to lock.
        self.0.store((before + COUNT) | OBSOLETE, Release);
    }
}
