//! The default for tables without order: entries by hash, then by key.
//!
//! ```text
//!  trie over the bits of hashes ─→ leaf: head | bucket | bucket | … | bucket      (raw::trie, hash::shape)
//!                                               ╰─ tags, places, and the objects themselves
//! ```
//!
//! A position is the top 48 bits of the hash (6 bytes, big endian) and then the key. Leaves keep no hashes but six bits of each: the rest is made
//! anew, by the index's [`KeyRule`](crate::KeyRule), when a leaf is replaced.
//!
//! A read: find the leaf, look in the home bucket, check (see `raw`). The slot that leads to the leaf says where the bucket is, so that its lines and
//! the head's are asked for together. A write: find the leaf, lock it, look, change the bucket in place, or
//!
//! 1. replace the leaf by one of some buckets more, up to the size at which leaves split (`hash::build`);
//! 2. else split it. The entry that had no room goes straight to the successors.
//!
//! A leaf at which writers meet often splits early. A leaf that removals leave half empty is replaced by a smaller one, or merges with its
//! neighbour. Hashes that are all alike make one leaf that grows without end, and is searched from end to end: it works, slowly.

pub(crate) use crate::batches::scan;
use crate::hash::build::{build, has_room, is_sparse, plan, Built, KeySplit, Plan, Sizes, Why};
use crate::hash::gather::{inside, lives_inside, with_gather, Gather, Keys, Rule};
use crate::hash::plain;
use crate::hash::shape::{body_size, counting, lead, object_size, HANDLE, HASH_BITS, LANE};
use crate::raw::bucket::{Body, Hit};
use crate::raw::bucket_leaf::{Leaf, Locked, Look, NewLeaf, Obsolete};
use crate::raw::outside::Handle;
use crate::raw::retire;
use crate::raw::trie::Trie;
use crate::raw::trie_split::Part;
use crate::raw::words::Torn;
use crate::route::Shared;
use crate::run::with_scratch;
use crate::sync::{Backoff, Mutex};
use crate::traits::HASH;
use crate::{Batch, Change, Direction, Key, LeafConfig, Start, Stats, Unique, Updater};
use crossbeam_epoch::Guard;

/// What a meeting of writers adds to a leaf's contention, and what a quiet write takes from it (as in contention-adapting trees).
const MET: i32 = 250;
const QUIET: i32 = -1;
/// The contention at which a leaf splits early.
const HOT: i32 = 1000;
/// Bits that all hashes of a leaf may share before it grows instead of splitting.
const SHARED_BITS: u32 = 16;

/// Entries by hash, then by key.
pub struct HashOrder {
    pub(crate) trie: Trie,
    pub(crate) keys: Keys,
    shared: Shared,
    sizes: Sizes,
    /// How far `free_some` has come; None at the end.
    freed: Mutex<Option<u64>>,
}

impl HashOrder {
    /// An empty index, whose keys follow this rule.
    pub fn new(rule: Rule, config: LeafConfig) -> Self {
        let sizes = Sizes::new(&config);
        let shared = Shared {
            config,
            ..Shared::default()
        };
        HashOrder {
            trie: Trie::new(&shared, NewLeaf::empty(sizes.first())),
            keys: Keys::new(rule),
            shared,
            sizes,
            freed: Mutex::new(Some(0)),
        }
    }

    /// Reads until what was read is true.
    #[inline]
    fn read<T>(
        &self,
        guard: &Guard,
        hash: u64,
        mut look: impl FnMut(Look<'_>) -> Result<T, Torn>,
    ) -> T {
        let backoff = Backoff::new();
        loop {
            let leaf = self.trie.find(hash, guard);
            leaf.prefetch(hash);
            if let Ok(view) = leaf.read() {
                let result = look(view);
                if view.holds() {
                    if let Ok(result) = result {
                        return result;
                    }
                }
            }
            backoff.snooze();
        }
    }

    /// The leaf that has the hash, locked, and its contention.
    #[inline]
    fn lock<'g>(&self, guard: &'g Guard, hash: u64) -> (Locked<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            let leaf = self.trie.find(hash, guard);
            leaf.prefetch(hash);
            match leaf.lock() {
                Ok((mut locked, met)) => {
                    if met {
                        self.shared.counters.met();
                    }
                    let heat = locked.contention(if met { MET } else { QUIET });
                    return (locked, heat);
                }
                Err(Obsolete) => backoff.snooze(),
            }
        }
    }

    /// Stores a value, making room if there is none.
    fn put(&self, guard: &Guard, at: &Place<'_>, mut leaf: Locked<'_>, value: &[u8], heat: i32) {
        let shape = leaf.leaf().shape();
        if let Some(hit) = at
            .hit
            .filter(|h| !h.outside && h.value_len() == value.len())
        {
            leaf.overwrite(&hit, value);
        } else {
            let len = body_size(at.key.len(), value.len(), self.keys.told);
            let (body, need) = if lives_inside(len, shape.class) {
                (
                    inside(at.key, value, &self.keys),
                    object_size(len, shape.class),
                )
            } else {
                (Body::Outside(self.outside(at.key, value)), HANDLE)
            };
            let old = at.hit.and_then(|hit| leaf.handle(&hit));
            match &at.hit {
                // The new entry takes its place; readers see both changes at once.
                Some(hit) => leaf.remove(at.hash, hit),
                None => self.shared.counters.add_len(1),
            }

            let done =
                has_room(shape, leaf.leaf().live(), need + LANE) && leaf.insert(at.hash, body);
            if !done {
                self.make_room(guard, at, leaf, value, body);
                self.retire(guard, old);
                return;
            }
            self.retire(guard, old);
        }
        if heat > HOT && leaf.leaf().count() > 1 {
            self.split_early(guard, leaf);
        }
    }

    /// Moves an object to a place of its own.
    fn outside(&self, key: &[u8], value: &[u8]) -> Handle {
        let (handle, bytes) = Handle::new(key, value);
        self.shared.counters.add_bytes(bytes as isize);
        handle
    }

    /// An outside object that has just been taken out of a locked leaf.
    fn retire(&self, guard: &Guard, handle: Option<Handle>) {
        if let Some(handle) = handle {
            let bytes = retire::outside(handle, guard);
            self.shared.counters.add_bytes(-(bytes as isize));
        }
    }

    /// Steps 1 and 2 of the module's head: the entry has no room in the leaf.
    #[cold]
    fn make_room(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: Locked<'_>,
        value: &[u8],
        body: Body<'_>,
    ) {
        let handle = match body {
            Body::Outside(handle) => Some(handle),
            Body::Inside(..) => None,
        };
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            gather.push(at.hash, at.key, value, handle, &self.keys);
            let shape = leaf.leaf().shape();
            let plan = plan(&gather.items, &self.sizes, Why::Grows(shape));
            let common = common_bits(gather);
            let splits =
                plan.splits && (common < u32::from(shape.depth) + SHARED_BITS || plan.huge);
            if splits && common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            } else {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Writers meet here often: two leaves let them pass each other.
    #[cold]
    fn split_early(&self, guard: &Guard, leaf: Locked<'_>) {
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            let common = common_bits(gather);
            if common < HASH_BITS {
                self.split(guard, leaf, gather, common);
            }
        });
    }

    fn build(
        &self,
        gather: &Gather,
        items: std::ops::Range<usize>,
        plan: Plan,
        depth: u8,
    ) -> Built {
        let split: &KeySplit<'_> = &|body| {
            let key = self.keys.key_in(body);
            (&body[key.clone()], &body[key.end..])
        };
        build(
            gather,
            &gather.items[items],
            plan,
            depth,
            &self.shared,
            split,
        )
    }

    /// Puts a leaf of the same range with all that was gathered in the place of this one.
    fn replace(&self, guard: &Guard, leaf: Locked<'_>, gather: &Gather, plan: Plan) {
        let Some(hash) = gather.items.first().map(|i| i.hash) else {
            return;
        };
        let built = self.build(
            gather,
            0..gather.items.len(),
            plan,
            leaf.leaf().shape().depth,
        );
        self.trie
            .replace(&self.shared, leaf, hash, built.leaf, guard);
        built
            .inside_now
            .into_iter()
            .for_each(|h| self.retire(guard, Some(h)));
    }

    /// Splits the leaf at bit `common`, the first in which the gathered hashes differ.
    fn split(&self, guard: &Guard, leaf: Locked<'_>, gather: &mut Gather, common: u32) {
        let right = |hash: u64| hash >> (63 - common) & 1 == 1;
        gather.items.sort_by_key(|i| right(i.hash));
        let cut = gather.items.partition_point(|i| !right(i.hash));
        let (first, shape) = (gather.items[0].hash, leaf.leaf().shape());
        let mut parts = Vec::new();
        for depth in shape.depth + 1..=common as u8 {
            let hash = lead(first, depth) ^ 1 << (64 - depth);
            let leaf = NewLeaf::empty(self.sizes.least(depth));
            parts.push(Part { hash, leaf });
        }
        let mut inside_now = Vec::new();
        for items in [0..cut, cut..gather.items.len()] {
            let hash = gather.items[items.start].hash;
            let plan = plan(&gather.items[items.clone()], &self.sizes, Why::Splits);
            let built = self.build(gather, items, plan, common as u8 + 1);
            inside_now.extend(built.inside_now);
            parts.push(Part {
                hash,
                leaf: built.leaf,
            });
        }
        self.trie.split(&self.shared, leaf, parts, guard);
        inside_now
            .into_iter()
            .for_each(|h| self.retire(guard, Some(h)));
    }

    fn remove(&self, guard: &Guard, hash: u64, mut leaf: Locked<'_>, hit: &Hit, heat: i32) {
        let handle = leaf.handle(hit);
        leaf.remove(hash, hit);
        self.shared.counters.add_len(-1);
        self.retire(guard, handle);
        let (shape, live, count) = (leaf.leaf().shape(), leaf.leaf().live(), leaf.leaf().count());
        let sparse = is_sparse(shape, live);
        let lonely = shape.depth > 0 && heat < 0 && self.sizes.lonely(shape.class, live);
        if heat < HOT && (sparse || lonely && count % 4 == 0) {
            self.tidy(guard, hash, leaf, lonely);
        }
    }

    /// Gives room back that removals have left: the leaf merges with its neighbour, or a smaller one takes its place.
    #[cold]
    fn tidy(&self, guard: &Guard, hash: u64, leaf: Locked<'_>, lonely: bool) {
        let mut leaf = leaf;
        if lonely {
            loop {
                match self.merge(guard, hash, leaf) {
                    Ok(()) => {}
                    Err(alone) => {
                        leaf = alone;
                        break;
                    }
                }
                match self.trie.find(hash, guard).try_lock() {
                    Ok(Some(next)) => leaf = next,
                    _ => return,
                }
            }
        }
        if is_sparse(leaf.leaf().shape(), leaf.leaf().live()) {
            self.shrink(guard, hash, leaf);
        }
    }

    fn shrink(&self, guard: &Guard, hash: u64, leaf: Locked<'_>) {
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            let shape = leaf.leaf().shape();
            if gather.items.is_empty() {
                let new = NewLeaf::empty(self.sizes.least(shape.depth));
                self.trie.replace(&self.shared, leaf, hash, new, guard);
                return;
            }
            let plan = plan(&gather.items, &self.sizes, Why::Shrinks);
            if !plan.is_as(shape) {
                self.replace(guard, leaf, gather, plan);
            }
        });
    }

    /// Merges the leaf with its buddy, if both are small and nobody is at work there; gives it back if not.
    fn merge<'g>(&self, guard: &'g Guard, hash: u64, leaf: Locked<'g>) -> Result<(), Locked<'g>> {
        let shape = leaf.leaf().shape();
        let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
            return Err(leaf);
        };
        let live = leaf.leaf().live() + buddy.leaf().live();
        if !self
            .sizes
            .unite(shape.class.min(buddy.leaf().shape().class), live)
        {
            return Err(leaf);
        }
        with_gather(|gather| {
            gather.add_leaf(&leaf, &self.keys);
            gather.add_leaf(&buddy, &self.keys);
            let plan = plan(&gather.items, &self.sizes, Why::Shrinks);
            let built = self.build(gather, 0..gather.items.len(), plan, shape.depth - 1);
            self.trie
                .unite(&self.shared, [leaf, buddy], hash, built.leaf, guard);
            built
                .inside_now
                .into_iter()
                .for_each(|h| self.retire(guard, Some(h)));
        });
        Ok(())
    }

    /// Empties a leaf, calling `f` with each value; returns how many there were.
    fn empty(&self, guard: &Guard, hash: u64, leaf: Locked<'_>, f: &mut dyn FnMut(&[u8])) -> usize {
        let shape = leaf.leaf().shape();
        let mut handles = Vec::new();
        let mut n = 0;
        for bucket in 0..shape.buckets as usize {
            let bytes = leaf.bytes();
            for e in plain::entries(bytes, bucket * shape.bucket(), shape) {
                n += 1;
                let body = &bytes[e.from..e.end];
                if e.outside {
                    let handle = Handle::from_bits(plain::handle_bits(bytes, e.from..e.end));
                    f(leaf.object(handle).value());
                    handles.push(handle);
                } else {
                    f(&body[self.keys.key_in(body).end..]);
                }
            }
        }
        if n > 0 {
            let new = NewLeaf::empty(self.sizes.least(shape.depth));
            self.trie.replace(&self.shared, leaf, hash, new, guard);
            self.shared.counters.add_len(-(n as isize));
            handles
                .into_iter()
                .for_each(|h| self.retire(guard, Some(h)));
        }
        n
    }

    /// Merges the leaf with its buddy as long as both are empty.
    fn fold(&self, guard: &Guard, hash: u64) {
        while let Ok(Some(leaf)) = self.trie.find(hash, guard).try_lock() {
            let empty = |leaf: Leaf<'_>| leaf.count() == 0;
            let Some(buddy) = self.trie.buddy(leaf.leaf(), hash, guard) else {
                return;
            };
            if !empty(leaf.leaf()) || !empty(buddy.leaf()) {
                return;
            }
            let depth = leaf.leaf().shape().depth - 1;
            let new = NewLeaf::empty(self.sizes.least(depth));
            self.trie
                .unite(&self.shared, [leaf, buddy], hash, new, guard);
        }
    }
}

/// Where an entry is or would be.
struct Place<'a> {
    hash: u64,
    key: &'a [u8],
    hit: Option<Hit>,
}

/// How many leading bits all gathered hashes share.
fn common_bits(gather: &Gather) -> u32 {
    let first = gather.items.first().map_or(0, |i| i.hash);
    let differ = gather.items.iter().fold(0, |d, i| d | (i.hash ^ first));
    differ.leading_zeros().min(HASH_BITS)
}

impl Unique for HashOrder {
    fn is_ordered(&self) -> bool {
        false
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let (from, hash) = (out.len(), counting(key.hash));
        self.read(guard, hash, |view| {
            out.truncate(from);
            match view.find(hash, key.bytes, self.keys.told)? {
                Some(hit) => view.copy_value(&hit, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let hash = counting(key.hash);
        self.read(guard, hash, |view| {
            Ok(view.find(hash, key.bytes, self.keys.told)?.is_some())
        })
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        for key in keys {
            let hash = counting(key.hash);
            self.trie.find(hash, guard).prefetch(hash);
        }
    }

    fn update<'v>(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_, 'v>) -> bool {
        let hash = counting(key.hash);
        let (locked, heat) = self.lock(guard, hash);
        let found = locked.look().find(hash, key.bytes, self.keys.told);
        let hit = found.expect("the lock's holder reads nothing torn");
        with_scratch(|scratch| {
            let change = f(hit.as_ref().map(|hit| locked.value(hit)), scratch);
            let value = match change {
                Change::Keep => return false,
                Change::Remove => {
                    let Some(hit) = hit else {
                        return false;
                    };
                    self.remove(guard, hash, locked, &hit, heat);
                    return true;
                }
                Change::Put(value) => value,
                Change::PutScratch => &scratch[..],
            };
            let place = Place {
                hash,
                key: key.bytes,
                hit,
            };
            self.put(guard, &place, locked, value, heat);
            true
        })
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        crate::hash::scan::scan(self, guard, start, direction, batch);
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
        self.shared.counters.len()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.shared.counters.bytes()
    }

    fn stats(&self) -> Stats {
        let depth = self.trie.depth(&crossbeam_epoch::pin());
        self.shared.counters.stats(depth)
    }
}
