//! The default for tables without order: entries by hash, then by key.
//!
//! ```text
//!  trie over the bits of hashes ─→ leaf: head | bucket | bucket | … | bucket      (hash::trie, hash::shape)
//!                                               ╰─ tags, places, and the objects themselves
//! ```
//!
//! A position is the top 48 bits of the hash (6 bytes, big endian) and then the key. Leaves keep no
//! hashes but six bits of each: the rest is made anew, by the index's [`KeyRule`](crate::KeyRule),
//! when a leaf is replaced.
//!
//! A read: find the leaf, look in the home bucket, check (see `seqlock`). The slot that leads to
//! the leaf says where the bucket is, so that its lines and the head's are asked for together. A
//! write: find the leaf, lock it, look, change the bucket in place, or change the leaves
//! (`hash::resize`).
//!
//! What each operation does when all goes well is one piece of code, as short as it can be; what
//! happens otherwise (a writer was at work, there is no room, an object is outside) is set apart,
//! so that its cost is its own.
//!
//! A leaf at which writers meet often splits early. A leaf that removals leave half empty is
//! replaced by a smaller one, or merges with its neighbour. Hashes that are all alike make one leaf
//! that grows without end, and is searched from end to end: it works, slowly.

#[allow(unsafe_code)]
mod bucket;
mod build;
mod change;
mod gather;
pub(crate) mod key_rule;
#[allow(unsafe_code)]
mod leaf;
mod plain;
mod redistribute;
mod resize;
mod scan;
mod search;
mod shape;
#[allow(unsafe_code)]
mod slot;
mod successor;
#[allow(unsafe_code)]
mod trie;

use crate::hash::bucket::Home;
use crate::hash::build::{is_sparse, Sizes};
use crate::hash::change::Body;
use crate::hash::key_rule::{KeyRule, Keys, Rule};
use crate::hash::leaf::{Leaf, Locked, Look, Obsolete};
use crate::hash::resize::FEW;
use crate::hash::search::{Hit, QUICK};
use crate::hash::shape::{body_size, counting, lives_inside, LANE};
use crate::hash::successor::{Behind, Next};
use crate::hash::trie::Trie;
use crate::outside::Handle;
use crate::scratch::with_scratch;
use crate::seqlock::words::Torn;
use crate::shared::Shared;
use crate::sync::{Backoff, Mutex};
use crate::traits::{step_by_scan, HASH};
use crate::{
    Batch, Change, Direction, Key, LeafConfig, Lookup, Predicate, Previous, Seen, Shorts, Start,
    Stats, Unique, Updater, SHORT, TOGETHER,
};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a meeting of writers adds to a leaf's contention, and what a quiet write takes from it (as
/// in contention-adapting trees).
const MET: i32 = 250;
const QUIET: i32 = -1;
/// The contention at which a leaf splits early.
const HOT: i32 = 1000;

/// Entries by hash, then by key.
pub struct HashOrder<R: KeyRule = Rule> {
    pub(crate) trie: Trie,
    pub(crate) keys: Keys<R>,
    pub(crate) shared: Shared,
    pub(crate) sizes: Sizes,
    /// The longest key that quick searches are for; 0 if its length is told in leaves.
    quick: usize,
    /// How far `free_some` has come; None at the end.
    freed: Mutex<Option<u64>>,
    /// Its own among the indexes of this process.
    pub(crate) number: u64,
}

/// How many indexes there have been.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl<R: KeyRule> HashOrder<R> {
    /// An empty index, whose keys follow this rule.
    pub fn new(rule: R, config: LeafConfig) -> Self {
        let sizes = Sizes::new(&config);
        let shared = Shared {
            config,
            ..Shared::default()
        };
        let keys = Keys::new(rule);
        HashOrder {
            trie: Trie::new(&shared, sizes.empty(sizes.first(), 0)),
            quick: if keys.told { 0 } else { QUICK },
            keys,
            shared,
            sizes,
            freed: Mutex::new(Some(0)),
            // Ordering: Relaxed; only that each number is given once matters.
            number: NEXT.fetch_add(1, Relaxed),
        }
    }

    /// The same index, whose users hold locks of their own: they say when what is large may be
    /// freed, by `free_large`.
    pub(crate) fn under_locks(mut self) -> Self {
        self.shared.holds_more = true;
        self
    }

    /// Frees what was left for when no lock is held, if there is anything.
    #[inline]
    pub(crate) fn free_large(&self, guard: &Guard) {
        self.shared.free_large(guard);
    }

    /// Whether quick searches are for keys like this one.
    #[inline(always)]
    fn is_quick(&self, key: Key<'_>) -> bool {
        key.bytes.len().wrapping_sub(1) < self.quick
    }

    /// Looks for a key, and gives what `look` made of it: the way that nearly all reads go.
    ///
    /// It knows small keys that end themselves, of objects that are inside. Errors, when it can't
    /// tell or a writer was at work: then `read_any` must do it, from the beginning, so that
    /// nothing has to be kept for it.
    #[inline(always)]
    fn read_quick<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        look: impl FnOnce(Option<Hit<'_>>) -> T,
    ) -> Result<T, Torn> {
        self.read_quick_at(self.locate(guard, key), key, look)
    }

    /// Where a key is at home; the memory is asked for.
    #[inline(always)]
    fn locate<'g>(&self, guard: &'g Guard, key: Key<'_>) -> (Leaf<'g>, Home<'g>) {
        let hash = counting(key.hash);
        let leaf = self.trie.find(hash, guard);
        let home = leaf.home(hash);
        leaf.prefetch(&home);
        (leaf, home)
    }

    /// As `read_quick`, where the key is at home.
    #[inline(always)]
    fn read_quick_at<T>(
        &self,
        (leaf, home): (Leaf<'_>, Home<'_>),
        key: Key<'_>,
        look: impl FnOnce(Option<Hit<'_>>) -> T,
    ) -> Result<T, Torn> {
        if !self.is_quick(key) {
            return Err(Torn);
        }
        let version = leaf.version().map_err(|Obsolete| Torn)?;
        let result = look(leaf.quick(&home, key.bytes).ok_or(Torn)?);
        if leaf.is_still(version) {
            Ok(result)
        } else {
            Err(Torn)
        }
    }

    /// As `read_quick`, for all keys and leaves, until what was read is true.
    #[inline]
    fn read_any<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut look: impl FnMut(&Look<'_>, Option<&Hit<'_>>) -> Result<T, Torn>,
    ) -> T {
        let hash = counting(key.hash);
        let backoff = Backoff::new();
        loop {
            let leaf = self.trie.find(hash, guard);
            leaf.prefetch(&leaf.home(hash));
            if let Ok(view) = leaf.read() {
                let found = view.find_slowly(hash, key.bytes, (self.is_quick(key), self.keys.told));
                let result = found.and_then(|hit| look(&view, hit.as_ref()));
                if let (Ok(result), true) = (result, view.holds()) {
                    return result;
                }
            }
            backoff.snooze();
        }
    }

    #[inline(never)]
    fn get_any(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read_any(guard, key, |view, hit| {
            out.truncate(from);
            match hit {
                Some(hit) => view.copy_value(hit, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// As `get_short`, of a key that is at home there.
    #[inline(always)]
    fn get_short_at(
        &self,
        guard: &Guard,
        place: (Leaf<'_>, Home<'_>),
        key: Key<'_>,
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let quick = self.read_quick_at(place, key, |hit| match (hit, &mut long) {
            (Some(hit), Some(long)) if hit.value_len() > SHORT => {
                long.clear();
                hit.copy(long);
                Lookup::Long
            }
            (Some(hit), _) => hit.copy_short(out),
            (None, _) => Lookup::Absent,
        });
        match quick {
            Ok(got) => got,
            Err(Torn) => self.get_short_any(guard, key, out, long),
        }
    }

    #[inline(never)]
    fn get_short_any(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.read_any(guard, key, |view, hit| {
            let Some(hit) = hit else {
                return Ok(Lookup::Absent);
            };
            let got = view.copy_short(hit, out)?;
            if let (Lookup::Long, Some(long)) = (got, &mut long) {
                long.clear();
                view.copy_value(hit, long)?;
            }
            Ok(got)
        })
    }

    #[inline(never)]
    fn contains_any(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.read_any(guard, key, |_, hit| Ok(hit.is_some()))
    }

    /// Copies the entry behind the bound to the empty batch, if its leaf has one. Also gives the
    /// first hash after the leaf's range.
    #[inline(always)]
    fn step_in_leaf(
        &self,
        guard: &Guard,
        bound: Behind<'_>,
        batch: &mut Batch,
    ) -> (Next, Option<u64>) {
        let told = self.keys.told;
        let quick = |bytes: &[u8]| bytes.len().wrapping_sub(1) < self.quick;
        let how = (bound.key.is_some_and(quick), told);
        let backoff = Backoff::new();
        loop {
            let leaf = self.trie.find(bound.hash, guard);
            leaf.prefetch(&leaf.home(bound.hash));
            if let Ok(look) = leaf.read() {
                if let Ok(next) = look.next(bound, &self.keys, how, batch) {
                    let version = look.version();
                    let index = self.number;
                    batch.seen = Some(Seen { index, version });
                    return (next, leaf.shape().end_hash(bound.hash));
                }
                batch.clear();
            }
            backoff.snooze();
        }
    }

    /// The leaf that has the hash, locked, and its contention.
    #[inline(always)]
    fn lock<'g>(&self, guard: &'g Guard, hash: u64) -> (Locked<'g>, Home<'g>, i32) {
        let mut met = false;
        loop {
            let leaf = self.trie.find(hash, guard);
            let home = leaf.home(hash);
            leaf.prefetch(&home);
            if let Ok(Some(mut locked)) = leaf.try_lock() {
                let heat = locked.contention(if met { MET } else { QUIET });
                return (locked, home, heat);
            }
            met |= self.wait(leaf);
        }
    }

    /// Waits until a leaf is free, if it isn't obsolete: then another had it.
    #[cold]
    #[inline(never)]
    fn wait(&self, leaf: Leaf<'_>) -> bool {
        let met = leaf.version().is_ok();
        if met {
            self.shared.counters.met();
        } else {
            Backoff::new().snooze();
        }
        met
    }

    /// Locks the leaf of a key, and finds what is under it; gives the leaf's contention, too.
    #[inline(always)]
    fn find_locked<'g>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
    ) -> (Locked<'g>, Home<'g>, Option<Hit<'g>>, i32) {
        let hash = counting(key.hash);
        let (locked, home, heat) = self.lock(guard, hash);
        let how = (self.is_quick(key), self.keys.told);
        // The lock's holder reads nothing torn.
        let found = locked.look().find((hash, &home), key.bytes, how);
        let hit = found.unwrap_or_default();
        (locked, home, hit, heat)
    }

    /// Stores a value, in the place of the one of the hit if there is one.
    #[inline(always)]
    fn store(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (mut leaf, home, hit, heat): (Locked<'_>, Home<'_>, Option<Hit<'_>>, i32),
        value: &[u8],
    ) {
        let done = match &hit {
            Some(hit) if !hit.outside && hit.value_len() == value.len() => {
                leaf.overwrite(hit, value);
                true
            }
            Some(hit) => !hit.outside && leaf.resize(hit, value),
            None => self.insert(&home, key.bytes, &mut leaf, value),
        };
        if !done {
            return self.store_anew(guard, key, leaf, value, heat);
        }
        if heat > HOT {
            self.cool(guard, leaf);
        }
    }

    /// Inserts an entry that lives inside its leaf, if that has room.
    #[inline(always)]
    fn insert(&self, home: &Home<'_>, key: &[u8], leaf: &mut Locked<'_>, value: &[u8]) -> bool {
        let class = leaf.leaf().class();
        let len = body_size(key.len(), value.len(), self.keys.told);
        let body = Body::Inside(key, value, self.keys.told);
        lives_inside(len, class) && has_room(leaf.leaf(), body) && leaf.insert(home, body)
    }

    /// Stores a value for which there is no room in its bucket, making room if there is none. It
    /// looks for the entry again: what it was told would have to be kept by those who are done
    /// sooner.
    #[inline(never)]
    fn store_anew(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut leaf: Locked<'_>,
        value: &[u8],
        heat: i32,
    ) {
        let (hash, shape) = (counting(key.hash), leaf.leaf().shape());
        let (home, how) = (leaf.leaf().home(hash), (self.is_quick(key), self.keys.told));
        // The lock's holder reads nothing torn.
        let found = leaf.look().find_slowly(hash, key.bytes, how);
        let hit = found.unwrap_or_default();
        let len = body_size(key.bytes.len(), value.len(), self.keys.told);
        let body = if lives_inside(len, shape.class) {
            Body::Inside(key.bytes, value, self.keys.told)
        } else {
            Body::Outside(self.outside(key.bytes, value))
        };
        let old = hit.and_then(|hit| leaf.handle(&hit));
        if let Some(hit) = &hit {
            // The new entry takes its place; readers see both changes at once.
            leaf.remove(&home, hit);
        }
        if !(has_room(leaf.leaf(), body) && leaf.insert(&home, body)) {
            self.make_room(guard, (hash, key.bytes, value), leaf, body);
        } else if heat > HOT {
            self.cool(guard, leaf);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, old);
    }

    /// Writers meet here often.
    #[cold]
    fn cool(&self, guard: &Guard, leaf: Locked<'_>) {
        if leaf.leaf().count() > 1 {
            self.split_early(guard, leaf);
        }
    }

    /// Moves an object to a place of its own.
    fn outside(&self, key: &[u8], value: &[u8]) -> Handle {
        let (handle, bytes) = Handle::new(key, value);
        self.shared.counters.add_bytes(bytes as isize);
        handle
    }

    /// Removes an entry.
    #[inline(always)]
    fn take(
        &self,
        guard: &Guard,
        hash: u64,
        (mut leaf, home, hit, heat): (Locked<'_>, Home<'_>, &Hit<'_>, i32),
    ) {
        let handle = leaf.handle(hit);
        leaf.remove(&home, hit);
        if leaf.leaf().live() < leaf.leaf().bounds().least as usize && heat < HOT {
            self.thin_out(guard, hash, leaf, heat);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, handle);
    }

    /// A leaf has so little that it may be for a smaller one, or for its neighbour.
    #[cold]
    #[inline(never)]
    fn thin_out(&self, guard: &Guard, hash: u64, leaf: Locked<'_>, heat: i32) {
        let (shape, live, count) = (leaf.leaf().shape(), leaf.leaf().live(), leaf.leaf().count());
        // Who must not be made smaller now tries again later, not each time.
        let sparse = is_sparse(shape, live) && (count % 8 == 0 || count <= FEW);
        let lonely = shape.depth > 0 && heat < 0 && self.sizes.lonely(shape.class, live);
        // Who can't merge now tries again later, not each time.
        if sparse || lonely && count % 4 == 0 {
            self.tidy(guard, counting(hash), leaf, lonely);
        }
    }
}

impl<R: KeyRule> HashOrder<R> {
    /// As `thin_out`, after several entries went. The leaf merges with its neighbour if that lies
    /// before it: what a scan has still to read keeps its leaves.
    #[cold]
    fn thin_out_read<'g>(&self, guard: &'g Guard, hash: u64, mut leaf: Locked<'g>) {
        let (shape, live, heat) = (leaf.leaf().shape(), leaf.leaf().live(), leaf.contention(0));
        let is_second = shape.depth > 0 && hash >> (64 - u32::from(shape.depth)) & 1 == 1;
        if is_second && heat < 0 && self.sizes.lonely(shape.class, live) {
            match self.merge(guard, hash, leaf) {
                Ok(()) => return,
                Err(alone) => leaf = alone,
            }
        }
        if heat < HOT {
            self.tidy(guard, hash, leaf, false);
        }
    }
}

/// Whether an entry may be added to what is live in a leaf.
#[inline(always)]
fn has_room(leaf: Leaf<'_>, body: Body<'_>) -> bool {
    leaf.live() + body.size(leaf.class()) + LANE <= leaf.bounds().most as usize
}

impl<R: KeyRule> Unique for HashOrder<R> {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        let quick = self.read_quick(guard, key, |hit| {
            if let Some(hit) = &hit {
                hit.copy(out);
            }
            hit.is_some()
        });
        match quick {
            Ok(found) => found,
            Err(Torn) => {
                out.truncate(from);
                self.get_any(guard, key, out)
            }
        }
    }

    fn get_short(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.get_short_at(guard, self.locate(guard, key), key, out, long)
    }

    fn get_short_many(&self, guard: &Guard, keys: &[Key<'_>], _far: bool, out: &mut Shorts) {
        // Where all is near, too: a way is gone once.
        let places = keys.iter().map(|&key| (key, self.locate(guard, key)));
        let places: SmallVec<[_; TOGETHER]> = places.take(TOGETHER).collect();
        out.fill(places.iter(), |&(key, place), value| {
            self.get_short_at(guard, place, key, value, None)
        });
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        match self.read_quick(guard, key, |hit| hit.is_some()) {
            Ok(found) => found,
            Err(Torn) => self.contains_any(guard, key),
        }
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        for &key in keys {
            self.locate(guard, key);
        }
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let (locked, home, hit, heat) = self.find_locked(guard, key);
        if !predicate(hit.as_ref().map(|hit| locked.value(hit))) {
            return Previous::Refused;
        }
        let was = Previous::of(hit.is_some());
        self.store(guard, key, (locked, home, hit, heat), value);
        was
    }

    fn remove(&self, guard: &Guard, key: Key<'_>, predicate: &mut Predicate<'_>) -> Previous {
        let (locked, home, hit, heat) = self.find_locked(guard, key);
        if !predicate(hit.as_ref().map(|hit| locked.value(hit))) {
            return Previous::Refused;
        }
        let Some(hit) = hit else {
            return Previous::Absent;
        };
        self.take(guard, key.hash, (locked, home, &hit, heat));
        Previous::Present
    }

    fn remove_read(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        let Some(seen) = batch.seen.filter(|seen| seen.index == self.number) else {
            return false;
        };
        let hash = counting(key.hash);
        let Ok((mut leaf, _)) = self.trie.find(hash, guard).lock() else {
            return false;
        };
        // An unordered batch has the leaf's entries as they lie, and at this version they lie so
        // still (see `unchanged`).
        if !batch.unordered || !leaf.was_at(seen.version) || !predicate() {
            return false;
        }
        let handles = leaf.remove_chosen(chosen);
        if leaf.leaf().live() < leaf.leaf().bounds().least as usize {
            self.thin_out_read(guard, hash, leaf);
        } else {
            drop(leaf);
        }
        for handle in handles {
            self.shared.retire(guard, Some(handle));
        }
        true
    }

    fn update<'v>(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_, 'v>) -> bool {
        with_scratch(|scratch| self.update_with(guard, key, scratch, f))
    }

    fn update_with<'v>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, 'v>,
    ) -> bool {
        scratch.clear();
        let (locked, home, hit, heat) = self.find_locked(guard, key);
        let change = f(hit.as_ref().map(|hit| locked.value(hit)), scratch);
        let value = match (change, &hit) {
            (Change::Keep, _) | (Change::Remove, None) => return false,
            (Change::Remove, Some(hit)) => {
                self.take(guard, key.hash, (locked, home, hit, heat));
                return true;
            }
            (Change::Put(value), _) => value,
            (Change::PutScratch, _) => &scratch[..],
        };
        self.store(guard, key, (locked, home, hit, heat), value);
        true
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        crate::hash::scan::scan(self, guard, start, direction, batch);
    }

    fn step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        if direction == Direction::Backward {
            return step_by_scan(self, guard, key, direction, batch);
        }
        batch.clear();
        let mut bound = match key {
            Some(key) => Behind {
                hash: counting(key.hash),
                key: Some(key.bytes),
            },
            None => Behind { hash: 0, key: None },
        };
        let mut here = false;
        loop {
            let (next, end) = self.step_in_leaf(guard, bound, batch);
            here |= next.here;
            match end {
                _ if next.found => return here,
                Some(hash) => bound = Behind { hash, key: None },
                None => {
                    batch.done = true;
                    return here;
                }
            }
        }
    }

    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        // Versions of what holds a key only grow (see `seqlock::version`), so a version that is met
        // again is that of the same leaf, with the same entries.
        seen.index == self.number
            && self
                .trie
                .find(counting(key.hash), guard)
                .version()
                .is_ok_and(|version| version == seen.version)
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
        out.extend_from_slice(key.bytes);
    }

    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let mut freed = 0;
        while let Some(hash) = *cursor {
            if freed >= limit.max(1) {
                return false;
            }
            let Ok((locked, _)) = self.trie.find(hash, guard).lock() else {
                continue;
            };
            let end = locked.leaf().shape().end_hash(hash);
            freed += 1 + self.empty(guard, hash, locked, f);
            self.fold(guard, hash);
            *cursor = end;
        }
        // Whoever calls again finds what has come since.
        *cursor = Some(0);
        true
    }

    fn len(&self) -> usize {
        let guard = crate::pin();
        let (mut len, mut at) = (0, Some(0));
        while let Some(hash) = at {
            let leaf = self.trie.find(hash, &guard);
            len += leaf.count();
            at = leaf.shape().end_hash(hash);
        }
        len
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.shared.counters.bytes()
    }

    fn stats(&self) -> Stats {
        let depth = self.trie.depth(&crate::pin());
        self.shared.counters.stats(depth)
    }
}
