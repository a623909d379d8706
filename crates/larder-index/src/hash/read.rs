//! Reads of the hash order.
//!
//! 1. Find the leaf through the trie (`trie`). The trie's slot encodes the leaf's shape, so the
//!    address of the home bucket is known before the leaf is touched. (If there are more than 127
//!    buckets, their number is read from the leaf.) The cache lines of the leaf's head and of the
//!    bucket's beginning are prefetched together.
//! 2. Load the leaf's version. Wait while the leaf is locked.
//! 3. Search the home bucket, and later buckets if an entry with such a tag has overflowed
//!    (`search`).
//! 4. Copy the value, or whatever part of the entry the caller needs.
//! 5. Validate the version. If it has changed, restart from step 1.
//!
//! The *fast read* (`try_read`) makes one attempt, with the fast search. It gives up with
//! [`Undecided`] in four cases: the key isn't short (it is empty, has more than 32 bytes, or its
//! length is stored), the leaf is obsolete, an object outside the leaf has the key's tag and
//! another key, or a writer changed the leaf meanwhile. Then the *general read* (`read_general`)
//! restarts from step 1. It handles all keys and objects, and retries until the version is
//! unchanged.

use super::successor::LowerBound;
use super::HashOrder;
use crate::hash::bucket::Home;
use crate::hash::hit::Hit;
use crate::hash::key_rule::KeyRule;
use crate::hash::leaf::{HashLeaf, HashView, Obsolete};
use crate::hash::resize::MOST_EMPTY;
use crate::hash::search::Undecided;
use crate::hash::shape::truncated;
use crate::hint::Hint;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::{Batch, Key, Lookup, Seen, StepEntry, Stepped, SHORT_VALUE};
use crossbeam_epoch::Guard;

/// Where a key belongs, after step 1: the leaf isn't locked.
#[derive(Clone, Copy)]
pub(super) struct LocatedKey<'g> {
    pub(super) leaf: HashLeaf<'g>,
    /// The key's home in the leaf.
    pub(super) home: Home<'g>,
}

/// What was read from a leaf, and the version of the leaf that it is true of.
pub(super) struct Validated<T> {
    pub(super) result: T,
    pub(super) version: u64,
}

/// The result of searching a leaf for the entry after a bound.
pub(super) struct LeafStep {
    pub(super) next: Stepped,
    /// The first hash after the leaf's range; `None` for the last leaf.
    pub(super) end: Option<u64>,
}

impl<R: KeyRule> HashOrder<R> {
    /// The fast read: returns the result of `look` for the key's entry, or for `None` if the key is
    /// absent.
    ///
    /// # Errors
    /// `Undecided` if it gave up. The caller then makes the general read. `look` may
    /// already have been called, on torn data.
    #[inline]
    pub(super) fn try_read<'g, T>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
        look: impl FnOnce(&HashView<'g>, Option<Hit<'g>>) -> Result<T, Torn>,
    ) -> Result<T, Undecided> {
        let found = self.try_read_at(self.locate(guard, key), key, look)?;
        Ok(found.result)
    }

    /// Step 1: finds and prefetches the leaf of a key, and the key's home bucket in it.
    #[inline]
    pub(super) fn locate<'g>(&self, guard: &'g Guard, key: Key<'_>) -> LocatedKey<'g> {
        let hash = truncated(key.hash);
        let leaf = self.trie.find(hash, guard);
        // The home follows from the shape in the trie's slot, if the leaf has at most 127 buckets.
        // Then no memory of the leaf has been touched so far, so the head and the bucket can miss
        // the cache at the same time.
        let home = leaf.home(hash);
        leaf.prefetch(&home);
        LocatedKey { leaf, home }
    }

    /// Steps 2 to 5 of the fast read.
    #[inline(always)]
    pub(super) fn try_read_at<'g, T>(
        &self,
        LocatedKey { leaf, home }: LocatedKey<'g>,
        key: Key<'_>,
        look: impl FnOnce(&HashView<'g>, Option<Hit<'g>>) -> Result<T, Torn>,
    ) -> Result<Validated<T>, Undecided> {
        // The fast search only compares short keys whose length isn't stored.
        if !self.keys.is_short(key.bytes) {
            return Err(Undecided);
        }
        // (2) Load the version. If the leaf is obsolete, its successors can only be found by
        // another search from the root.
        let view = leaf.read().map_err(|Obsolete| Undecided)?;
        // (3), (4) A concurrent writer may change the leaf while we search and copy. The result is
        // then an arbitrary mixture of the leaf's old and new bytes, which (5) discards.
        let hit = view.search(&home, key.bytes)?;
        let result = look(&view, hit).map_err(|Torn| Undecided)?;
        // (5) If the version is unchanged, no writer held the lock in between. Everything that was
        // read is the state of the leaf at the load in (2), which is the linearisation point.
        let version = view.version();
        if leaf.validate(version) {
            Ok(Validated { result, version })
        } else {
            Err(Undecided)
        }
    }

    /// The general read: handles all keys and objects, and retries until the version is unchanged.
    /// `look` may be called several times; all calls but the last may see torn data.
    #[inline]
    fn read_general<'g, T>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
        mut look: impl FnMut(&HashView<'g>, Option<&Hit<'g>>) -> Result<T, Torn>,
    ) -> T {
        let hash = truncated(key.hash);
        let backoff = Backoff::new();
        loop {
            // (1) Find the leaf anew: the one of the last attempt may have been replaced.
            let leaf = self.trie.find(hash, guard);
            leaf.prefetch(&leaf.home(hash));
            // (2) Load the version. This waits while a writer holds the lock.
            if let Ok(view) = leaf.read() {
                // (3), (4) The search fails with `Torn` where it would have to follow a handle that
                // a writer may have changed. Any other torn result is discarded by (5).
                let found = view.find_general(hash, key.bytes, self.keys.length_prefixed);
                let result = found.and_then(|hit| look(&view, hit.as_ref()));
                // (5) Return the result if the version is unchanged.
                if let (Ok(result), true) = (result, view.is_valid()) {
                    return result;
                }
            }
            // The leaf was obsolete or was changed meanwhile. Its writer needs a moment.
            backoff.snooze();
        }
    }

    #[inline(never)]
    pub(super) fn get_general(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read_general(guard, key, |view, hit| {
            // Discard what a failed attempt has copied.
            out.truncate(from);
            match hit {
                Some(hit) => view.copy_value(hit, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// [`Unique::get_into`](crate::Unique::get_into) of a key that `locate` has located.
    #[inline]
    pub(super) fn get_into_at(
        &self,
        guard: &Guard,
        located: LocatedKey<'_>,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let found = self.get_noting(located, key, out, long, |_, _| ());
        found.unwrap_or_else(|long| self.get_into_general(guard, key, out, long))
    }

    /// [`Unique::get_with_hint`](crate::Unique::get_with_hint) of a key that `locate` has located.
    #[inline]
    pub(super) fn get_with_hint_at<'g>(
        &'g self,
        guard: &Guard,
        located: LocatedKey<'g>,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
        hint: &mut Hint<'g>,
    ) -> Lookup {
        let (LocatedKey { leaf, home }, index) = (located, self.shared.number.0);
        // The hint is written to its place at once: copies of it soon afterwards would wait until
        // the stores are done. It is only valid if the version is, which is checked afterwards.
        let note = |version, hit| *hint = Hint::of_hash(index, leaf, version, home, hit);
        let found = self.get_noting(located, key, out, long, note);
        found.unwrap_or_else(|long| {
            *hint = Hint::default();
            self.get_into_general(guard, key, out, long)
        })
    }

    /// Reads the value of a key that `locate` has located, and calls `note` with the version and
    /// the entry before the version is validated.
    ///
    /// # Errors
    /// The buffer for long values, if the fast read gave up.
    #[inline(always)]
    fn get_noting<'g, 'l>(
        &self,
        located: LocatedKey<'g>,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&'l mut Vec<u8>>,
        mut note: impl FnMut(u64, Hit<'g>),
    ) -> Result<Lookup, Option<&'l mut Vec<u8>>> {
        // The closure sees bytes that aren't validated yet, so it only copies them.
        let found = self.try_read_at(located, key, |view, hit| {
            let Some(hit) = hit else {
                return Ok(Lookup::Absent);
            };
            let lookup = match &mut long {
                // The value is outside the leaf. The version is validated before its handle is
                // followed. This case comes first: such a hit has no length.
                _ if hit.outside => {
                    view.copy_outside_to(hit.bucket, hit.from, out, long.as_deref_mut())?
                }
                // A long value, which the caller wants.
                Some(long) if hit.value_len() > SHORT_VALUE => {
                    long.clear();
                    hit.copy(long);
                    Lookup::Long
                }
                // A short value; or a long one that the caller doesn't want, of which nothing is
                // copied.
                _ => hit.copy_short(out),
            };
            note(view.version(), hit);
            Ok(lookup)
        });
        match found {
            Ok(Validated { result, .. }) => Ok(result),
            Err(Undecided) => Err(long),
        }
    }

    /// See [`Unique::get_or_lend`](crate::Unique::get_or_lend).
    #[inline]
    pub(super) fn get_or_lend_at<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        // Nearly every lookup ends with this attempt.
        let found = self.try_read(guard, key, |view, hit| {
            copy_or_lend(view, hit, out, long, lent)
        });
        match found {
            Ok(lookup) => lookup,
            // The attempt may have written torn bytes to the buffers, which the general read
            // overwrites.
            Err(Undecided) => self.get_or_lend_general(guard, key, out, long, lent),
        }
    }

    #[inline(never)]
    fn get_or_lend_general<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.read_general(guard, key, |view, hit| {
            copy_or_lend(view, hit.copied(), out, long, lent)
        })
    }

    #[inline(never)]
    fn get_into_general(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        // The closure may run several times. Each attempt overwrites what the one before has
        // written.
        self.read_general(guard, key, |view, hit| {
            let Some(hit) = hit else {
                return Ok(Lookup::Absent);
            };
            let lookup = view.copy_short(hit, out)?;
            if let (Lookup::Long, Some(long)) = (lookup, &mut long) {
                long.clear();
                view.copy_value(hit, long)?;
            }
            Ok(lookup)
        })
    }

    #[inline(never)]
    pub(super) fn contains_general(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.read_general(guard, key, |_, hit| Ok(hit.is_some()))
    }

    /// The leaf of a hash, if all leaves before it are empty. Otherwise `None`. The caller then
    /// reads from the first leaf on.
    ///
    /// Of a run of empty leaves a reader leaves at most `2 * MOST_EMPTY`: the first `MOST_EMPTY`,
    /// and those to which it has merged the others (`pass_empty`). If there are more, returns
    /// `None`, too.
    #[inline]
    pub(super) fn find_past_empty<'g>(
        &'g self,
        guard: &'g Guard,
        hash: u64,
    ) -> Option<HashLeaf<'g>> {
        // Begin with the first leaf. `first` is the least hash of the range of `leaf`.
        let mut leaf = self.trie.find(0, guard);
        let (mut first, mut passed) = (0, 0);
        // While the range of `leaf` ends at or before the hash, the leaf must be empty.
        while let Some(next) = leaf.shape().end_hash(first).filter(|&next| next <= hash) {
            let view = leaf.read().ok()?;
            // The count is only true if the version is still the same.
            if view.count() > 0 || !view.is_valid() || passed == 2 * MOST_EMPTY {
                return None;
            }
            passed += 1;
            (first, leaf) = (next, self.trie.find(next, guard));
        }
        // The range of `leaf` has the hash.
        Some(leaf)
    }

    /// Makes one attempt to copy the first entry after the bound. `None` if it is undecided: the
    /// leaf is being changed, or the entry, if there is one, is in a later leaf.
    #[inline(always)]
    pub(super) fn try_step_in_leaf(
        &self,
        guard: &Guard,
        bound: LowerBound<'_>,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        // (1) Find the leaf.
        let leaf = self.trie.find(bound.hash, guard);
        let home = leaf.home(bound.hash);
        leaf.prefetch(&home);
        // (2) Load the version.
        let view = leaf.read().ok()?;
        // (3) to (5) `next_copied` validates the version before it returns.
        let next = view
            .next_copied(bound, &home, &self.keys, entry)
            .ok()
            .filter(|next| next.found || leaf.shape().end_hash(bound.hash).is_none())?;
        entry.seen = Some(Seen {
            index: self.shared.number.0,
            version: view.version(),
            from_edge: bound.key.is_none(),
        });
        Some(next)
    }

    /// Copies the first entry after the bound to the empty batch, if there is one in the bound's
    /// leaf.
    #[inline]
    pub(super) fn step_in_leaf<'g>(
        &'g self,
        guard: &'g Guard,
        bound: LowerBound<'_>,
        batch: &mut Batch<'g>,
    ) -> LeafStep {
        let backoff = Backoff::new();
        loop {
            // (1) Find the leaf.
            let leaf = self.trie.find(bound.hash, guard);
            leaf.prefetch(&leaf.home(bound.hash));
            // (2) Load the version.
            if let Ok(view) = leaf.read() {
                // (3) to (5) `next` validates the version before it returns.
                if let Ok(next) = view.next(bound, &self.keys, batch) {
                    // Keep the version, so that a later step can ask whether the leaf has changed.
                    let version = view.version();
                    let index = self.shared.number.0;
                    batch.seen = Some(Seen {
                        index,
                        version,
                        from_edge: false,
                    });
                    let end = leaf.shape().end_hash(bound.hash);
                    return LeafStep { next, end };
                }
                batch.clear();
            }
            backoff.snooze();
        }
    }
}

/// Copies or lends the value of a hit, for `get_or_lend`. Overwrites what an earlier attempt has
/// written.
#[inline(always)]
fn copy_or_lend<'g>(
    view: &HashView<'g>,
    hit: Option<Hit<'g>>,
    out: &mut [u8; SHORT_VALUE],
    long: &mut Vec<u8>,
    lent: &mut Option<&'g [u8]>,
) -> Result<Lookup, Torn> {
    *lent = None;
    Ok(match hit {
        None => Lookup::Absent,
        // The value is outside the leaf. It is immutable, and the guard keeps it, so it needs no
        // copy. `outside` validates the version before it follows the handle (O3).
        Some(hit) if hit.outside => {
            *lent = Some(view.outside(&hit)?.value());
            Lookup::Long
        }
        // The value is in the leaf. The caller validates the copy. Torn offsets don't lead out of
        // the bucket.
        Some(hit) if hit.value_len() > SHORT_VALUE => {
            long.clear();
            hit.copy(long);
            Lookup::Long
        }
        Some(hit) => hit.copy_short(out),
    })
}
