//! A leaf's version: the lock of its writers, and what tells readers whether what they read was
//! true (steps 1 and 2 of `seqlock`).
//!
//! ```text
//!  bits 2..64   a count of changes        bit 1   obsolete        bit 0   locked
//!
//!  unlocked n ──try_lock──→ locked n ──unlock──→ unlocked n + 1, or n if nothing was changed
//!                              ╰──────obsolete──→ obsolete n + 1, for ever
//! ```
//!
//! Invariants:
//! 1. Only the holder of the lock writes to the leaf's words.
//! 2. A leaf of the hash order starts from the largest count of the leaves that it replaces
//!    (`succeed`). So the count that a reader finds under a position only grows, and an equal
//!    version later is that of the same leaf, unchanged. Leaves of a B+-tree start from zero: their
//!    versions are compared within one read alone.
//!
//! Source: seqlocks with atomics after Boehm 2012; the obsolete mark after optimistic lock coupling
//! (Leis, Scheibner, Kemper and Neumann 2016).

use crate::sync::atomic::{fence, AtomicU64, Ordering::*};
use crate::sync::{planted, Backoff, Fault};

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const COUNT: u64 = 4;

/// The version of a leaf. Zeroed memory is the version of a leaf that replaces no other; see
/// invariant 2 for one that does.
#[repr(transparent)]
pub(crate) struct Version(AtomicU64);

/// The leaf is obsolete: what it had is elsewhere. Begin again from the root.
#[derive(Debug)]
pub(crate) struct Obsolete;

impl Version {
    /// Begins an optimistic read; waits while a writer is at work.
    #[inline]
    pub(crate) fn read(&self) -> Result<u64, Obsolete> {
        // Ordering: Acquire (R1), pairs with the unlocking store (L2).
        let version = self.0.load(Acquire);
        // Unlocked: the words are those of this count, until another thread takes the lock.
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
            if version & OBSOLETE != 0 {
                return Err(Obsolete);
            }
            if version & LOCKED == 0 {
                return Ok(version);
            }
            backoff.snooze();
        }
    }

    /// Whether nobody wrote since `version` was read: all that was read since is true.
    #[inline]
    pub(crate) fn validate(&self, version: u64) -> bool {
        // Ordering: Acquire fence (R2), pairs with the fence in `try_lock` (L1).
        fence(Acquire);
        // If the reader has seen a word of a later writer, it now sees that writer's lock, or a
        // greater count.
        // Ordering: Relaxed, the fence above keeps it after the reads.
        self.0.load(Relaxed) == version || planted(Fault::BlindRead)
    }

    /// Takes the lock if it is free, and gives the version of before: `Ok(None)` if it isn't.
    #[inline]
    pub(crate) fn try_lock(&self) -> Result<Option<u64>, Obsolete> {
        // Ordering: Relaxed, only a guess for the exchange below.
        let now = self.0.load(Relaxed);
        if now & OBSOLETE != 0 {
            return Err(Obsolete);
        }
        // Ordering: Acquire, pairs with the unlocking store (L2): what the last writer wrote is
        // seen. Relaxed on failure: nothing is read then.
        let taken = now & LOCKED == 0
            && self
                .0
                .compare_exchange(now, now | LOCKED, Acquire, Relaxed)
                .is_ok();
        if !taken {
            return Ok(None);
        }
        // Ordering: Release fence (L1), pairs with R2: a reader that sees a word written after it
        // sees the locked version.
        fence(Release);
        Ok(Some(now))
    }

    /// Takes the lock, and gives the version of before. Also says whether another had it.
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
            backoff.snooze();
            if let Some(before) = self.try_lock()? {
                return Ok(before);
            }
        }
    }

    /// Unlocks. If nothing was changed the version is again that of before, so that no reader has
    /// to read again.
    #[inline]
    pub(crate) fn unlock(&self, before: u64, changed: bool) {
        let version = before + if changed { COUNT } else { 0 };
        // Ordering: Release (L2), pairs with R1 and with the next lock.
        self.0.store(version, Release);
    }

    /// Makes this version, of a leaf that is not published yet, larger than all versions of a leaf
    /// whose place it takes (invariant 2). `before` is the version that the old leaf had when its
    /// lock was taken.
    pub(crate) fn succeed(&self, before: u64) {
        // Ordering: Relaxed, both: nobody else can reach the leaf.
        let least = self.0.load(Relaxed);
        // The old leaf's last version, when it is obsolete, is `before + COUNT`.
        // Ordering: as above.
        self.0.store(least.max(before + 2 * COUNT), Relaxed);
    }

    /// Locks that of a leaf that is not published yet, and gives the version of before.
    pub(crate) fn lock_new(&self) -> u64 {
        // Ordering: Relaxed, both: nobody else can reach the leaf. A thread that does so later sees
        // this with the slot that leads there.
        let before = self.0.load(Relaxed);
        self.0.store(before | LOCKED, Relaxed);
        before
    }

    /// Unlocks for good: a thread that meets the leaf from now on begins again from the root.
    pub(crate) fn obsolete(&self, before: u64) {
        // Ordering: Release (L2), pairs with R1 and with the next attempt to lock.
        self.0.store((before + COUNT) | OBSOLETE, Release);
    }
}
