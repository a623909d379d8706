//! How the hash order is read.
//!
//! 1. Find the leaf, through the trie (`trie`). Its word says where the key's home bucket lies, so
//!    the lines of the leaf's head and of the bucket are prefetched together.
//! 2. Take the leaf's version; wait while it is locked.
//! 3. Search the home bucket, and further ones if it passed on entries like this (`search`).
//! 4. Copy the value, or whatever the caller wants of the entry.
//! 5. Validate the version. If it has changed, begin again.
//!
//! There are two reads. The *fast read* (`try_read`) makes one attempt, by the fast search. It
//! gives up with [`Torn`] in four cases: the key is long, the leaf is obsolete, an object with the
//! key's tag lies outside, or a writer was at work. Then the *general read* (`read_general`) begins
//! again from step 1. It knows all keys and objects, and repeats the steps until the version is
//! confirmed.

use super::successor::{LowerBound, Successor};
use super::HashOrder;
use crate::hash::bucket::Home;
use crate::hash::hit::Hit;
use crate::hash::key_rule::KeyRule;
use crate::hash::leaf::{HashLeaf, HashView, Obsolete};
use crate::hash::shape::counting;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::{Batch, Key, Lookup, Seen, SHORT};
use crossbeam_epoch::Guard;

impl<R: KeyRule> HashOrder<R> {
    /// The fast read of a key: gives what `look` makes of the entry, if there is one.
    ///
    /// # Errors
    /// `Torn` if it gives up: then the caller makes the general read. `look` may have been called.
    #[inline(always)]
    pub(super) fn try_read<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        look: impl FnOnce(Option<Hit<'_>>) -> T,
    ) -> Result<T, Torn> {
        self.try_read_at(self.locate(guard, key), key, look)
    }

    /// Step 1: the leaf of a key, and its home bucket there. Both are prefetched.
    #[inline(always)]
    pub(super) fn locate<'g>(&self, guard: &'g Guard, key: Key<'_>) -> (HashLeaf<'g>, Home<'g>) {
        let hash = counting(key.hash);
        let leaf = self.trie.find(hash, guard);
        // Neither the head nor the bucket was touched so far: the leaf's word gave its shape.
        let home = leaf.home(hash);
        leaf.prefetch(&home);
        (leaf, home)
    }

    /// Steps 2 to 5 of `try_read`.
    #[inline(always)]
    fn try_read_at<T>(
        &self,
        (leaf, home): (HashLeaf<'_>, Home<'_>),
        key: Key<'_>,
        look: impl FnOnce(Option<Hit<'_>>) -> T,
    ) -> Result<T, Torn> {
        // The fast search compares short keys alone, and stores no length of them.
        if !self.keys.is_short(key.bytes) {
            return Err(Torn);
        }
        // (2) An obsolete leaf has successors, which only a new search from the root finds.
        let version = leaf.version().map_err(|Obsolete| Torn)?;
        // (3), (4) A writer may change the leaf meanwhile. Then what is found and copied is any
        // mixture of bytes of the leaf, and (5) discards it.
        let result = look(leaf.search(&home, key.bytes).ok_or(Torn)?);
        // (5) If the version is the one from before, nobody wrote in between: all that was read was
        // true when the version was loaded in (2). That load is the read's linearisation point.
        if leaf.validate(version) {
            Ok(result)
        } else {
            Err(Torn)
        }
    }

    /// As `try_read`, for all keys and leaves, until what was read is true.
    #[inline]
    fn read_general<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut look: impl FnMut(&HashView<'_>, Option<&Hit<'_>>) -> Result<T, Torn>,
    ) -> T {
        let hash = counting(key.hash);
        let backoff = Backoff::new();
        loop {
            // (1)
            let leaf = self.trie.find(hash, guard);
            leaf.prefetch(&leaf.home(hash));
            // (2)
            if let Ok(view) = leaf.read() {
                // (3), (4) Torn bytes end the search where they would lead to an invalid place or
                // handle. All others are discarded by (5).
                let found = view.find_general(hash, key.bytes, self.keys.length_prefixed);
                let result = found.and_then(|hit| look(&view, hit.as_ref()));
                // (5)
                if let (Ok(result), true) = (result, view.is_valid()) {
                    return result;
                }
            }
            backoff.snooze();
        }
    }

    #[inline(never)]
    pub(super) fn get_general(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read_general(guard, key, |view, hit| {
            // What an attempt before this one has copied was torn.
            out.truncate(from);
            match hit {
                Some(hit) => view.copy_value(hit, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// As `Unique::get_short`, of a key whose leaf and home bucket `locate` has found.
    #[inline(always)]
    pub(super) fn get_short_at(
        &self,
        guard: &Guard,
        place: (HashLeaf<'_>, Home<'_>),
        key: Key<'_>,
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let found = self.try_read_at(place, key, |hit| match (hit, &mut long) {
            (Some(hit), Some(long)) if hit.value_len() > SHORT => {
                long.clear();
                hit.copy(long);
                Lookup::Long
            }
            (Some(hit), _) => hit.copy_short(out),
            (None, _) => Lookup::Absent,
        });
        match found {
            Ok(lookup) => lookup,
            Err(Torn) => self.get_short_general(guard, key, out, long),
        }
    }

    #[inline(never)]
    fn get_short_general(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
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

    /// Copies the entry behind the bound to the empty batch, if its leaf has one. Also gives the
    /// first hash after the leaf's range.
    #[inline(always)]
    pub(super) fn step_in_leaf(
        &self,
        guard: &Guard,
        bound: LowerBound<'_>,
        batch: &mut Batch,
    ) -> (Successor, Option<u64>) {
        let backoff = Backoff::new();
        loop {
            // (1)
            let leaf = self.trie.find(bound.hash, guard);
            leaf.prefetch(&leaf.home(bound.hash));
            // (2)
            if let Ok(view) = leaf.read() {
                // (3) to (5): what `next` gives was checked by it.
                if let Ok(next) = view.next(bound, &self.keys, batch) {
                    // A later step can ask whether the leaf is as it was.
                    let version = view.version();
                    let index = self.number;
                    batch.seen = Some(Seen { index, version });
                    return (next, leaf.shape().end_hash(bound.hash));
                }
                batch.clear();
            }
            backoff.snooze();
        }
    }
}
