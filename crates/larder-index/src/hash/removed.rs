//! What a thread has removed from a leaf lately, so that a batch which it has read from the leaf
//! need not be read again.
//!
//! ```text
//!  batch, read at version 4       a  b  c  d  e        the thread stands on b, and removes a
//!  the thread's note              from 4 to 5: a       so b  c  d  e are what the leaf has at 5
//! ```
//!
//! A walk that deletes the keys that it has passed changes each leaf that it reads. These changes
//! are its own if it has always taken the lock at the version of its batch, or at the version with
//! which it has unlocked the leaf the last time.
//!
//! Invariants of a note:
//! * **H13** At version `before`, the leaf whose range has the hash `place` had a depth of `depth`.
//!   From then until version `after` only one thing has changed in the range of that leaf: entries
//!   were removed, and their hashes are at most `last`.
//! * **H14** A note is of one index, which it names by its number. Under one hash, versions only
//!   grow (I7). So a note never becomes untrue.

use super::shape::truncated;
use crate::{Key, Seen};
use std::cell::Cell;

/// A note of what the thread has removed from a leaf; see the module.
#[derive(Clone, Copy)]
struct Removals {
    /// The number of the index; 0 for none.
    index: u64,
    /// The leaf's version before the first removal.
    before: u64,
    /// Its version after the last one.
    after: u64,
    /// A hash of the leaf's range.
    place: u64,
    /// The depth of the leaf.
    depth: u8,
    /// The greatest hash of a removed entry.
    last: u64,
    /// The version after the last removal of an entry whose hash is `last`.
    last_at: u64,
}

thread_local! {
    static REMOVALS: Cell<Removals> = const {
        Cell::new(Removals {
            index: 0,
            before: 0,
            after: 0,
            place: 0,
            depth: 0,
            last: 0,
            last_at: 0,
        })
    };
}

/// What identifies a leaf: the number of its index, a hash of the leaf's range, and how many bits
/// all hashes of the range share.
#[derive(Clone, Copy)]
pub(super) struct LeafId {
    pub(super) index: u64,
    pub(super) hash: u64,
    pub(super) depth: u8,
}

/// Whether two hashes share this number of bits.
fn share(a: u64, b: u64, depth: u8) -> bool {
    (a ^ b).unbounded_shr(64 - u32::from(depth)) == 0
}

impl Removals {
    /// Whether the leaf, at this version, is the one that the note leads to.
    fn leads_to(&self, leaf: LeafId, version: u64) -> bool {
        self.index == leaf.index
            && self.after == version
            && share(self.place, leaf.hash, leaf.depth)
    }
}

/// Notes that the entry with the leaf's hash is removed between these two versions, under one lock.
#[inline]
pub(super) fn note(leaf: LeafId, before: u64, after: u64) {
    // If the thread is ending, nobody asks any more.
    let _ = REMOVALS.try_with(|removals| {
        let mut note = removals.get();
        // A leaf that has been merged is wider than the note, which says nothing of its other half.
        let is_within = share(note.place, leaf.hash, note.depth);
        if is_within && note.leads_to(leaf, before) {
            // The leaf is as this thread has left it.
            note.after = after;
            if leaf.hash >= note.last {
                (note.last, note.last_at) = (leaf.hash, after);
            }
        } else {
            note = Removals {
                index: leaf.index,
                before,
                after,
                place: leaf.hash,
                depth: leaf.depth,
                last: leaf.hash,
                last_at: after,
            };
        }
        removals.set(note);
    });
}

/// Notes that a leaf which is at this version was replaced by one that has all of its entries, and
/// whose version is `after`.
#[cold]
pub(super) fn note_replaced(leaf: LeafId, version: u64, after: u64) {
    let _ = REMOVALS.try_with(|removals| {
        let note = removals.get();
        if note.leads_to(leaf, version) {
            removals.set(Removals { after, ..note });
        }
    });
}

impl Removals {
    /// Whether the leaf with this hash in its range was changed only as noted, from where it was
    /// seen until `after`.
    fn covers(&self, hash: u64, seen: Seen) -> bool {
        // The leaf was at `before` when the first entry was removed, and at `after` once the last
        // one was. It was seen at a version between them, so in between, when all changes were
        // removals of the note.
        self.index == seen.index
            && (self.before..=self.after).contains(&seen.version)
            && share(self.place, hash, self.depth)
    }
}

/// The `Seen` that a batch would have if it were read now. Returns `None` unless it is known that
/// since the batch was read, its leaf was only changed by this thread, which has removed entries
/// before `key`. `key` is a key of the batch. While `is_unchanged` confirms the result, the index
/// has the entries of the batch from `key` on.
#[must_use]
pub fn seen_after_removals(key: Key<'_>, seen: Seen) -> Option<Seen> {
    let note = REMOVALS.try_with(Cell::get).ok()?;
    let hash = truncated(key.hash);
    // Entries with one hash are in the order of their keys, which the note doesn't have.
    (note.covers(hash, seen) && note.last < hash).then_some(Seen {
        version: note.after,
        ..seen
    })
}

/// Like `seen_after_removals`, for removals of entries up to `key`. At least one removed entry has
/// the hash of `key`. If no other entry of the batch has this hash, it is the entry of `key`.
#[must_use]
pub fn seen_after_removal_of(key: Key<'_>, seen: Seen) -> Option<Seen> {
    let note = REMOVALS.try_with(Cell::get).ok()?;
    let hash = truncated(key.hash);
    let is_last = note.last == hash && seen.version < note.last_at;
    (is_last && note.covers(hash, seen)).then_some(Seen {
        version: note.after,
        ..seen
    })
}
