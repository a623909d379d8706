//! The trait of an index with at most one value per key.

use super::{
    Batch, Change, Container, Direction, Key, Lookup, MarkedUpdater, Predicate, Preparation,
    Previous, Seen, ShortValues, Start, StepEntry, Stepped, Updater, SHORT_VALUE,
};
use crate::hint::Hint;
use crate::ranked::Ranked;
use crate::scratch::with_scratch;
use crossbeam_epoch::Guard;

/// An index with at most one value per key. All operations of this trait are linearizable, and any
/// number of threads may call them. No operation waits longer than it takes another one to change a
/// leaf. (A layer over an index may add waits; see the layer.)
///
/// # Complexity
/// In the hash order, an operation on one key takes expected O(1) plus the length of key and value,
/// in the key order O(log n) plus these. A method that takes more or less says so. Other structures
/// have complexities of their own.
pub trait Unique: Container {
    /// Whether positions are keys. Otherwise they are hashes followed by keys.
    fn is_ordered(&self) -> bool;

    /// Appends the value under `key` to `out`. Returns `false` if there is none. Takes no lock.
    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool;

    /// Like `get`, as a part of a scan: an index that records reads doesn't record this one.
    fn get_in_scan(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.get(guard, key, out)
    }

    /// Returns whether there is a value under `key`. Takes no lock.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool;

    /// Returns whether the index was seen empty at an instant. May return `false` for an empty
    /// index, if a single look doesn't suffice to tell.
    fn is_seen_empty(&self, _guard: &Guard) -> bool {
        false
    }

    /// Prefetches the memory that operations on the keys will touch, so that the cache misses of
    /// several keys overlap. This is a hint, which may do nothing. It works best with 8 to 64 keys.
    fn prefetch(&self, _guard: &Guard, _keys: &[Key<'_>]) {}

    /// Prefetches the first memory that an operation on the key will wait for. It doesn't wait for
    /// it itself, so the miss overlaps with what the caller does before that operation. Returns a
    /// hint for `put_absent`. This may do nothing.
    fn prefetch_entry<'g>(&'g self, _guard: &'g Guard, _key: Key<'_>) -> Hint<'g> {
        Hint::default()
    }

    /// Locks the entry of `key`, calls `f` once, and performs the change that it returns. `f` gets
    /// the value under the key (`None` if absent) and an empty scratch buffer. It must be short,
    /// and must not call the index. Returns whether the index was changed.
    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool;

    /// Like `get`, for values that are probably short. A value of at most [`SHORT_VALUE`] bytes is
    /// copied to the beginning of `out`. The other bytes of `out` are unspecified. A longer value
    /// replaces the content of `long`, if that is given.
    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        // `get` appends to a buffer, so the length of the value is known before any of it is
        // copied.
        with_scratch(|value| match self.get(guard, key, value) {
            true => Lookup::copied(value, out, long),
            false => Lookup::Absent,
        })
    }

    /// Like `get_into` with a buffer for long values. But if the value lies in memory of its own,
    /// the index may lend it instead of copying it to `long`: it is then in `lent`, which is `None`
    /// otherwise, and the result is `Long`, however short it is.
    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        *lent = None;
        self.get_into(guard, key, out, Some(long))
    }

    /// Like `get_into` of each of the keys, at most
    /// [`MAX_KEYS_PER_LOOKUP`](super::MAX_KEYS_PER_LOOKUP). If `prefetch_first` is set, first
    /// prefetches the memory of all of them, so that the cache misses overlap.
    fn get_many(
        &self,
        guard: &Guard,
        keys: &[Key<'_>],
        prefetch_first: bool,
        out: &mut ShortValues,
    ) {
        if prefetch_first {
            self.prefetch(guard, keys);
        }
        out.fill(keys.iter(), |&key, value| {
            self.get_into(guard, key, value, None)
        });
    }

    /// Locks the entry of `key`, and stores the value if `predicate` returns `true`. `predicate` is
    /// called once, with the value under the key (`None` if absent). It must be short, and must not
    /// call the index. Equivalent to an `update` that returns `Put` or `Keep`, but cheaper.
    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        put_by_update(self, guard, key, value, predicate)
    }

    /// Like `put`, but only if there is no value under `key`. Otherwise the result is `Refused`,
    /// and `predicate` isn't called. If the index can tell without a lock that there is a value, it
    /// takes none.
    fn put_new(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.put(guard, key, value, &mut |old| {
            old.is_none() && predicate(old)
        })
    }

    /// Stores a value under a key that has none. The caller guarantees that, and that no other
    /// thread writes the key meanwhile. Equivalent to a `put`, but cheaper. `hint` is that of a
    /// `prefetch_entry` of the key, with a guard that is still pinned, or the default.
    fn put_absent(&self, guard: &Guard, key: Key<'_>, value: &[u8], _hint: &Hint<'_>) {
        self.put(guard, key, value, &mut |_| true);
    }

    /// Like `get_into` with a buffer for long values. Writes to `hint`, which is `default`, where
    /// the value was found, for a `put_with_hint` under the same key. It is the first half of a
    /// write: an index that records reads doesn't record this one.
    fn get_with_hint<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
        _hint: &mut Hint<'g>,
    ) -> Lookup {
        self.get_into(guard, key, out, long)
    }

    /// Like `put`. `hint` is that of a `get_with_hint` under the same key, in this index or another
    /// one, with a guard that is still pinned. If it is of this index, and its leaf hasn't changed
    /// since, this saves the search. Otherwise it has no effect.
    fn put_with_hint(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        _hint: &Hint<'_>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        self.put(guard, key, value, predicate)
    }

    /// Locks the entry of `key`, and removes it if it exists and `predicate` returns `true`.
    /// `predicate` is called as by `put`, but only if there is a value. If the index can tell
    /// without a lock that the key is absent, it takes none.
    fn remove(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        let mut was = Previous::Absent;
        // As in `put`.
        self.update(guard, key, &mut |old, _| {
            // `was` stays `Absent`.
            let Some(old) = old else {
                return Change::Keep;
            };
            if !predicate(old) {
                was = Previous::Refused;
                return Change::Keep;
            }
            was = Previous::Present;
            Change::Remove
        });
        was
    }

    /// Like `put`, with the entry's mark. If `predicate` returns `true`, the change is prepared
    /// before it is made.
    ///
    /// A *mark* is a number that the user keeps beside an entry. It is set by the closure of a
    /// write with a mark, which may be the insert of the entry, and stays until another such write.
    /// The index may forget a mark at any time. If an entry gets another mark, the index forgets
    /// the marks of entries that lie together with it. An entry without a mark has the mark 0;
    /// others are less than 2^61.
    fn put_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
        preparation: &mut Preparation<'_>,
    ) -> Previous {
        // This index keeps no marks, so no entry is ready, and each change is prepared. The closure
        // of `put` is called under the lock, before anything is changed.
        self.put(guard, key, value, &mut |old| {
            let puts = predicate(old);
            if puts {
                preparation.run(old, 0);
            }
            puts
        })
    }

    /// Like `update`, with the entry's mark (see `put_marked`).
    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedUpdater<'_>) -> bool {
        self.update(guard, key, &mut |old, scratch| f(old, scratch, &mut 0))
    }

    /// Like `remove`, with the entry's mark (see `put_marked`).
    fn remove_marked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Previous {
        self.remove(guard, key, &mut |old| predicate(old, 0))
    }

    /// Removes some entries of a batch in one change. The batch must be one that `scan` has
    /// returned to a caller who uses entries in any order ([`Batch::any_order`]). The numbers of
    /// the entries ascend. `key` is the key of the first of them. `predicate` is called once, under
    /// the lock, before anything is changed. Returns `false`, and changes nothing, if the leaf has
    /// changed since the scan, if the index can't tell, or if `predicate` returns `false`.
    fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        let _ = (guard, key, batch, chosen, predicate);
        false
    }

    /// Like `update`, with a scratch buffer of the caller, which is cleared first. The index
    /// needn't fetch a buffer of its own then.
    fn update_with(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        scratch.clear();
        // `update` stores the content of its own buffer, so copy a new value there.
        self.update(guard, key, &mut |old, buffer| {
            let change = f(old, scratch);
            if let Change::Put | Change::Splice(_) = change {
                buffer.extend_from_slice(scratch);
            }
            change
        })
    }

    /// Like `update_with`, but `f` is only called if there is a value under `key`. If the index can
    /// tell without a lock that the key is absent, it takes none.
    fn update_present(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        self.update_with(guard, key, scratch, &mut |old, scratch| match old {
            Some(_) => f(old, scratch),
            None => Change::Keep,
        })
    }

    /// Frees memory that writes have retired and kept until the thread holds no lock; see
    /// [`ordered_under_locks`](crate::ordered_under_locks).
    fn flush_postponed(&self, _guard: &Guard) {}

    /// Fills `batch`, which is cleared first, with the next entries from `start` in `direction`.
    /// There is at least one entry, unless the scan is at its end or pauses (`Batch::may_pause`),
    /// and there are at most those of one leaf. All are read at one instant.
    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    );

    /// Returns whether all entries of a batch are in the index now, unchanged. `seen` is that of
    /// the batch, and `key` is one of its keys. If the result is `true`, there is no other entry
    /// between two neighbouring ones of the batch. Returns `false` if the index can't tell.
    /// Linearisation point: the load of the leaf's version.
    fn is_unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
        false
    }

    /// Fills `batch`, which is cleared first, with the entry next to `key` in a direction. `key`
    /// need not be in the index. Without a `key`, the entry is the first one in the direction. If
    /// there is no such entry, the batch is empty and `done`. Its `resume` must not be used. If
    /// there is no `key` and the batch has a `seen`, the entry is the first one as long as
    /// `is_unchanged` says so. Returns whether there was a value under `key` at some instant during
    /// the call. O(1) (ordered: O(log n)).
    fn step<'g>(
        &'g self,
        guard: &'g Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) -> bool {
        step_by_scan(self, guard, key, direction, batch)
    }

    /// Makes one attempt at what `step` does, and copies the next entry to `entry`. `None` if the
    /// index can't tell without further attempts, or without a look at another leaf. The content of
    /// `entry` is unspecified if there is no next entry.
    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        let _ = (guard, key, direction, entry);
        None
    }

    /// Fills `batch`, which is cleared first, with a sample of the entries, in any order: about as
    /// many as the batch wants, or those of one leaf. Each entry is read at an instant.
    ///
    /// `point`, a fraction of 2⁶⁴, determines the sampled points. Returns the point of the next
    /// sample. Samples that follow each other have all entries about equally often. An index that
    /// can't sample returns its first entries.
    fn sample<'g>(&'g self, guard: &'g Guard, point: u64, batch: &mut Batch<'g>) -> u64 {
        self.scan(guard, Start::Edge, Direction::Forward, batch);
        point
    }

    /// Returns the interface for rank queries, if the index has ranks.
    fn ranked(&self) -> Option<&dyn Ranked> {
        None
    }

    /// Writes the position of `key` to `out` (cleared first).
    fn position(&self, key: Key<'_>, out: &mut Vec<u8>);
}

/// Implements [`Unique::step`] by a scan.
pub(crate) fn step_by_scan<'g, U: Unique + ?Sized>(
    index: &'g U,
    guard: &'g Guard,
    key: Option<Key<'_>>,
    direction: Direction,
    batch: &mut Batch<'g>,
) -> bool {
    // One entry suffices. Restore the caller's hint at the end.
    let want = std::mem::replace(&mut batch.want, 1);
    let found = key.is_some_and(|key| index.contains(guard, key));
    match key {
        Some(key) => with_scratch(|position| {
            index.position(key, position);
            // Start strictly past the key, so that its own entry isn't found again.
            index.scan(guard, Start::Past(position), direction, batch);
        }),
        None => {
            index.scan(guard, Start::Edge, direction, batch);
            // There may be leaves without entries before the one that was read.
            batch.seen = None;
        }
    }
    batch.want = want;
    found
}

/// `Unique::put` by an update, whose closure is called under the lock.
pub fn put_by_update<U: Unique + ?Sized>(
    index: &U,
    guard: &Guard,
    key: Key<'_>,
    value: &[u8],
    predicate: &mut Predicate<'_>,
) -> Previous {
    let mut was = Previous::Refused;
    index.update(guard, key, &mut |old, new| {
        // `was` stays `Refused`.
        if !predicate(old) {
            return Change::Keep;
        }
        was = Previous::of(old.is_some());
        new.extend_from_slice(value);
        Change::Put
    });
    was
}
