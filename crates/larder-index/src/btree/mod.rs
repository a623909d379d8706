//! The core of both defaults: entries at positions, in leaves, to which inner levels lead.
//!
//! A read: find the leaf, look, check (see `seqlock`). A write: find the leaf, lock it, look,
//! change it in place, or
//!
//! 1. move its records together, if that makes enough room;
//! 2. else replace it by a larger one of the same range, up to the size at which leaves split;
//! 3. else split it. The entry that had no room goes straight to the successors.
//!
//! A leaf at which writers meet often splits early. A leaf that removals leave nearly empty merges
//! with a neighbour.

mod clear;
pub(crate) mod entries;
#[allow(unsafe_code)]
pub(crate) mod inner;
pub(crate) mod key_order;
#[allow(unsafe_code)]
pub(crate) mod leaf;
mod locked;
mod node;
mod prefix;
mod record;
#[allow(unsafe_code)]
mod restructure;
pub(crate) mod run;
mod scan;
pub(crate) mod search_key;
mod sizes;
#[allow(unsafe_code)]
mod slot;
mod tail;
#[allow(unsafe_code)]
mod view;

use crate::btree::entries::{with_entries, Entries};
use crate::btree::inner::{FencedLeaf, InnerLevels, RangeEnd, Seek};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, Obsolete, TreeLeaf, MOST_CONTENT};
use crate::btree::locked::lives_outside;
use crate::btree::prefix::Prefix;
use crate::btree::record::{Record, Stored, SLOT};
use crate::btree::run::with_run;
use crate::btree::search_key::SearchKey;
use crate::btree::view::{SearchResult, TreeView};
use crate::config::LeafConfig;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::outside::Handle;
use crate::scratch::with_scratch;
use crate::seqlock::words::Torn;
use crate::shared::Shared;
use crate::sync::{Backoff, Mutex};
use crate::{Change, Lookup, Predicate, Previous, Stats, Updater, SHORT};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

pub(crate) use scan::{ScanRequest, StepStart};

/// Entries at positions.
pub(crate) struct BPlusTree {
    inner: InnerLevels,
    shared: Shared,
    /// How far `free_some` has come.
    freed: Mutex<Vec<u8>>,
}

impl BPlusTree {
    /// An empty tree.
    pub(crate) fn new(config: LeafConfig) -> Self {
        let shared = Shared {
            config,
            ..Shared::default()
        };
        BPlusTree {
            inner: InnerLevels::new(&shared),
            shared,
            freed: Mutex::default(),
        }
    }

    /// The same tree, whose users hold locks of their own: they say when what is large may be
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

    /// Reads at a position until what was read is true: `look` gets the record there, if there is
    /// one.
    #[inline]
    fn read<T>(
        &self,
        guard: &Guard,
        position: &[u8],
        mut look: impl FnMut(&TreeView<'_>, Option<Record>) -> Result<T, Torn>,
    ) -> T {
        let key = SearchKey::new(position);
        let backoff = Backoff::new();
        loop {
            let leaf = self.inner.find(key, guard);
            if let Ok(view) = leaf.read() {
                let prefix = leaf.prefix_len();
                let suffix = key.suffix(prefix);
                let found = match suffix.filter(|_| leaf.beside_prefix(key).is_eq()) {
                    Some(suffix) => view.search(key.head(prefix), suffix),
                    None => Ok(SearchResult { i: 0, record: None }),
                };
                let result = found.and_then(|spot| look(&view, spot.record));
                if view.is_valid() {
                    if let Ok(result) = result {
                        return result;
                    }
                }
            }
            backoff.snooze();
        }
    }

    /// Copies the value at the position to the end of `out`; false if there is none.
    #[inline]
    pub(crate) fn get(&self, guard: &Guard, position: &[u8], out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.read(guard, position, |view, record| {
            out.truncate(from);
            match record {
                Some(record) => view.copy_value(&record, out).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// As `Unique::get_short`.
    #[inline]
    pub(crate) fn get_short(
        &self,
        guard: &Guard,
        position: &[u8],
        out: &mut [u8; SHORT],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        self.read(guard, position, |view, record| {
            let Some(record) = record else {
                return Ok(Lookup::Absent);
            };
            if let Some(len) = view.copy_short(&record, out)? {
                return Ok(Lookup::Short(len));
            }
            if let Some(long) = &mut long {
                long.clear();
                view.copy_value(&record, long)?;
            }
            Ok(Lookup::Long)
        })
    }

    /// Whether there is a value at the position.
    pub(crate) fn contains(&self, guard: &Guard, position: &[u8]) -> bool {
        self.read(guard, position, |_, record| Ok(record.is_some()))
    }

    /// As `Unique::prefetch`, in three passes over the positions: leaves, slots, records.
    pub(crate) fn prefetch<'p>(&self, guard: &Guard, positions: impl Iterator<Item = &'p [u8]>) {
        /// Leaves at a time: more loads than these are not under way at once.
        const AT_ONCE: usize = 32;
        let mut positions = positions.peekable();
        while positions.peek().is_some() {
            let leaves: SmallVec<[(TreeLeaf<'_>, SearchKey<'_>); AT_ONCE]> = positions
                .by_ref()
                .take(AT_ONCE)
                .map(|position| {
                    let key = SearchKey::new(position);
                    (self.inner.find(key, guard), key)
                })
                .collect();
            let views: SmallVec<[(TreeView<'_>, u64); AT_ONCE]> = leaves
                .iter()
                .map(|(leaf, key)| (leaf.glance(), key.head(leaf.prefix_len())))
                .collect();
            views.iter().for_each(|(view, head)| view.ask(*head));
            for (view, head) in &views {
                view.ask_record(*head);
            }
        }
    }

    /// The leaf that has the position, locked, and its contention.
    #[inline]
    fn lock<'g>(&self, guard: &'g Guard, key: SearchKey<'_>) -> (LockedTreeLeaf<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            match self.inner.find(key, guard).lock() {
                Ok((mut locked, contended)) => {
                    if contended {
                        self.shared.counters.contended();
                    }
                    let contention =
                        locked.add_contention(if contended { CONTENDED } else { UNCONTENDED });
                    return (locked, contention);
                }
                Err(Obsolete) => backoff.snooze(),
            }
        }
    }

    /// Locks the leaf that has the position, and finds the place there; gives the leaf's contention
    /// with it.
    #[inline(always)]
    fn find_locked<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> (LockedTreeLeaf<'g>, Place<'p>, i32) {
        if let Some(leaf) = self.inner.tail.find(key, guard) {
            if let Some(mut locked) = self.lock_tail(leaf, key) {
                let contention = locked.add_contention(UNCONTENDED);
                let (i, record) = (locked.len(), None);
                let place = Place::new(key, &locked, i, record);
                return (locked, place, contention);
            }
        }
        self.find_there(guard, key)
    }

    /// As `find_locked`, for a position that is hardly above all that are there.
    #[inline(always)]
    fn find_there<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> (LockedTreeLeaf<'g>, Place<'p>, i32) {
        let (locked, contention) = self.lock(guard, key);
        let spot = locked.search(key);
        let place = Place::new(key, &locked, spot.i, spot.record);
        (locked, place, contention)
    }

    /// Locks the last leaf, if nobody else has, and if the position is above all that are there.
    #[inline]
    fn lock_tail<'g>(&self, leaf: TreeLeaf<'g>, key: SearchKey<'_>) -> Option<LockedTreeLeaf<'g>> {
        let locked = leaf.try_lock().ok().flatten()?;
        if locked.is_below(key) {
            self.inner.tail.hit();
            return Some(locked);
        }
        self.inner.tail.missed();
        None
    }

    /// As `Unique::update_with`.
    pub(crate) fn update(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, '_>,
    ) -> bool {
        let (locked, place, contention) = self.find_locked(guard, SearchKey::new(position));
        scratch.clear();
        let change = f(place.value(&locked), scratch);
        let value = match change {
            Change::Keep => return false,
            Change::Remove => {
                let Some(record) = &place.record else {
                    return false;
                };
                self.remove_at(guard, &place, locked, record, contention);
                return true;
            }
            Change::Put(value) => value,
            Change::PutScratch => &scratch[..],
        };
        self.put_at(guard, &place, locked, value, contention);
        true
    }

    /// As `Unique::put`.
    pub(crate) fn put(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let key = SearchKey::new(position);
        match self.append(guard, key, value, predicate) {
            Some(was) => was,
            None => self.put_anywhere(guard, key, value, predicate),
        }
    }

    /// Stores a short value at the end of the last leaf, if inserts go on there and it has room.
    /// Otherwise None, and nothing was done or asked.
    #[inline]
    fn append(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Option<Previous> {
        let mut locked = self.inner.tail.find(key, guard)?.try_lock().ok()??;
        let next = locked.next_of_run(key, value.len())?;
        self.inner.tail.hit();
        if !predicate(None) {
            return Some(Previous::Refused);
        }
        locked.put_next(next, value);
        Some(Previous::Absent)
    }

    #[inline(never)]
    fn put_anywhere(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let (locked, place, contention) = self.find_locked(guard, key);
        if !predicate(place.value(&locked)) {
            return Previous::Refused;
        }
        let was = Previous::of(place.record.is_some());
        self.put_at(guard, &place, locked, value, contention);
        was
    }

    /// As `Unique::remove`.
    pub(crate) fn remove(
        &self,
        guard: &Guard,
        position: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let (locked, place, contention) = self.find_there(guard, SearchKey::new(position));
        if !predicate(place.value(&locked)) {
            return Previous::Refused;
        }
        let Some(record) = &place.record else {
            return Previous::Absent;
        };
        self.remove_at(guard, &place, locked, record, contention);
        Previous::Present
    }

    #[inline(always)]
    fn remove_at(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        record: &Record,
        contention: i32,
    ) {
        let handle = leaf.handle(record);
        leaf.remove(at.i, record);
        let len = leaf.len();
        if contention < HIGH_CONTENTION
            && (len < 8 || len.is_multiple_of(4))
            && leaf.used() < self.shared.config.most / 4
        {
            self.tidy(guard, at.key, leaf);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, handle);
    }

    /// Gives room back that removals have left: a leaf that is mostly empty gets a smaller one in
    /// its place, or merges with a neighbour.
    fn tidy(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let mut leaf = leaf;
        let (used, config) = (leaf.used(), &self.shared.config);
        if used < leaf.leaf().capacity() / 4
            && config.capacity_for(used, leaf.leaf().prefix_len()) < leaf.leaf().capacity()
        {
            self.shrink(guard, position, leaf);
            match self.inner.find(position, guard).try_lock() {
                Ok(Some(next)) => leaf = next,
                _ => return,
            }
        }
        if used < config.most / 4 {
            self.merge(guard, position, leaf);
        }
    }

    /// Puts a leaf of the same range and entries, of no more room than it needs, in the place of
    /// this one.
    fn shrink(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let capacity = self
            .shared
            .config
            .capacity_for(leaf.used(), leaf.leaf().prefix_len());
        with_entries(|entries| {
            entries.collect(&leaf);
            let prefix = leaf.leaf().prefix_and_fences();
            self.replace(guard, position, leaf, (entries, &prefix), capacity);
        });
    }

    /// Puts a leaf with the same range and these entries, and this room, in the place of one.
    fn replace(
        &self,
        guard: &Guard,
        position: SearchKey<'_>,
        leaf: LockedTreeLeaf<'_>,
        (entries, prefix): (&Entries, &Prefix<'_>),
        capacity: usize,
    ) {
        let new = entries.build(&leaf, 0..entries.len(), capacity, prefix);
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, position, new, guard);
    }

    /// Merges the leaf with a neighbour, and the result with its neighbour, while they are sparse.
    fn merge(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let mut leaf = leaf;
        while self.inner.merge(&self.shared, leaf, position, guard) {
            match self.inner.find(position, guard).try_lock() {
                Ok(Some(next)) if next.used() < self.shared.config.most / 4 => leaf = next,
                _ => return,
            }
        }
    }
}

/// Where an entry is or would be.
struct Place<'a> {
    key: SearchKey<'a>,
    /// What the leaf's slots have of the position.
    head: u64,
    /// The position without the leaf's prefix.
    suffix: &'a [u8],
    i: usize,
    /// The entry's record, if it is there.
    record: Option<Record>,
}

impl<'a> Place<'a> {
    #[inline]
    fn new(
        key: SearchKey<'a>,
        leaf: &LockedTreeLeaf<'_>,
        i: usize,
        record: Option<Record>,
    ) -> Self {
        let prefix = leaf.leaf().prefix_len();
        Place {
            key,
            head: key.head(prefix),
            suffix: key.suffix(prefix).unwrap_or(&[]),
            i,
            record,
        }
    }

    /// The value there, if there is one; nothing is written to the leaf while it is looked at.
    #[inline]
    fn value<'l>(&self, leaf: &'l LockedTreeLeaf<'_>) -> Option<&'l [u8]> {
        let record = self.record.as_ref();
        record.map(|record| leaf.value(self.i, record))
    }
}

impl BPlusTree {
    /// Stores a value, making room if there is none.
    #[inline(always)]
    fn put_at(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        value: &[u8],
        contention: i32,
    ) {
        let mut leaf = leaf;
        if at.record.is_none() && leaf.leaf().beside_prefix(at.key).is_ne() {
            return self.shorten_prefix(guard, at, leaf, value);
        }
        let stored = self.stored(at.key, at.suffix.len(), value);
        let old = at.record.and_then(|record| leaf.handle(&record));
        let (done, appends) = match &at.record {
            Some(record) => {
                let done = leaf.put_again(at.i, at.head, at.suffix, stored, record);
                (done, 0)
            }
            None => {
                let appends = leaf.insert_run(at.i);
                let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
                (done, appends)
            }
        };
        if !done {
            self.make_room(guard, at, leaf, stored, appends);
        } else if contention > HIGH_CONTENTION && leaf.len() > 1 {
            self.split_early(guard, at, leaf);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, old);
    }

    /// What a leaf stores for a value, under a position that has so many bytes behind its prefix.
    #[inline(always)]
    fn stored<'v>(&self, key: SearchKey<'_>, suffix: usize, value: &'v [u8]) -> Stored<'v> {
        if !lives_outside(suffix, value.len(), self.shared.config.most) {
            return Stored::Inline(value);
        }
        let (handle, bytes) = Handle::new(key.bytes(), value);
        self.shared.counters.add_bytes(bytes as isize);
        Stored::Outside(handle)
    }

    /// Stores a value under a position that doesn't begin as all entries of its leaf do, and so
    /// comes before them or behind them: puts a leaf with a shorter prefix in the leaf's place. It
    /// may be larger than others; then the next entry that has no room splits it.
    #[cold]
    #[inline(never)]
    fn shorten_prefix(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        value: &[u8],
    ) {
        let (mut leaf, position) = (leaf, at.key.bytes());
        let old = leaf.leaf().prefix_and_fences();
        let prefix = old.shared_with(position);
        let stored = self.stored(at.key, position.len() - prefix.len(), value);
        let appends = leaf.insert_run(at.i);
        let new = with_run(|run| {
            if at.i == 0 {
                run.push(position, stored);
            }
            leaf.collect_all(run);
            if at.i > 0 {
                run.push(position, stored);
            }
            let need = run.sizes(0..run.len(), prefix.len());
            let capacity = self.capacity(need, appends > run.len() / 4, prefix.len());
            NewTreeLeaf::build(run, 0..run.len(), capacity, &prefix)
        });
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, at.key, new, guard);
    }

    /// The content of a leaf that needs so much, and more soon where inserts run on.
    fn capacity(&self, need: usize, runs: bool, prefix: usize) -> usize {
        let config = &self.shared.config;
        let more = if runs { need / 2 } else { 0 };
        let most = config.most_beside(prefix).max(need);
        config.capacity_for((need + more).min(most), prefix)
    }

    /// Steps 1 to 3 of the module's head: the entry has no room in the leaf.
    #[inline(never)]
    fn make_room(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        stored: Stored<'_>,
        appends: usize,
    ) {
        let mut leaf = leaf;
        let config = &self.shared.config;
        if let Some(record) = &at.record {
            // The new entry takes its place; readers see both changes at once.
            leaf.remove(at.i, record);
        }
        let need = leaf.used() + SLOT + stored.record(at.suffix.len());
        let (capacity, prefix) = (leaf.leaf().capacity(), leaf.leaf().prefix_len());
        // Moving everything for the sake of a few bytes would happen again soon.
        let spare = if capacity < config.most_beside(prefix) {
            capacity / 8
        } else {
            capacity / 16
        };
        if need + spare <= capacity {
            with_entries(|entries| with_scratch(|buffer| leaf.compact(entries, buffer)));
            let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
            debug_assert!(done, "moving together made room");
            return;
        }
        with_entries(|entries| {
            entries.collect(&leaf);
            entries.insert(at.i, at.suffix, stored);
            // What has more in common than the old leaf's prefix needs less now.
            let all = 0..entries.len();
            let prefix = entries.prefix(&leaf, all.clone(), leaf.leaf().prefix_and_fences());
            let need = entries.sizes(all, prefix.len() - leaf.leaf().prefix_len());
            let runs = appends > entries.len() / 4;
            if need <= config.most_beside(prefix.len()) {
                let capacity = self.capacity(need, runs, prefix.len());
                self.replace(guard, at.key, leaf, (entries, &prefix), capacity);
            } else if entries.len() < 2 {
                let capacity = (need + need / 8).min(MOST_CONTENT);
                self.replace(guard, at.key, leaf, (entries, &prefix), capacity);
            } else {
                // A run of inserts that went each beside the one before leaves a full leaf behind.
                let cut = runs.then_some(at.i + usize::from(leaf.descends()));
                self.inner
                    .split(&self.shared, leaf, at.key, entries, cut, guard);
            }
        });
    }

    /// Writers meet here often: two leaves let them pass each other.
    fn split_early(&self, guard: &Guard, at: &Place<'_>, leaf: LockedTreeLeaf<'_>) {
        with_entries(|entries| {
            entries.collect(&leaf);
            self.inner
                .split(&self.shared, leaf, at.key, entries, None, guard);
        });
    }

    /// As `Unique::free_some`.
    pub(crate) fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let mut freed = 0;
        while freed < limit.max(1) {
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, guard);
            let FencedLeaf { leaf, fence } = found;
            let Ok((mut locked, _)) = leaf.lock() else {
                continue;
            };
            let n = locked.len();
            let mut handles: SmallVec<[Handle; 8]> = SmallVec::new();
            for i in 0..n {
                let record = locked.record_of(i);
                f(locked.value(i, &record));
                handles.extend(locked.handle(&record));
            }
            locked.clear();
            freed += n + 1;
            if leaf.capacity() > self.shared.config.first {
                let new = NewTreeLeaf::empty(0, &leaf.prefix_of_fences());
                self.inner
                    .replace(&self.shared, locked, SearchKey::new(&cursor), new, guard);
            } else {
                drop(locked);
            }
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            match fence {
                Some(high) => *cursor = high,
                None => {
                    cursor.clear();
                    return true;
                }
            }
        }
        false
    }

    /// Entries, counted leaf by leaf.
    pub(crate) fn len(&self) -> usize {
        let (guard, backoff) = (crate::pin(), Backoff::new());
        let (mut len, mut cursor) = (0, Vec::new());
        loop {
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, &guard);
            let FencedLeaf { leaf, fence } = found;
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            len += view.len();
            match fence {
                Some(high) => cursor = high,
                None => return len,
            }
        }
    }

    /// Bytes of memory, apart from the tree's own fields.
    pub(crate) fn memory(&self) -> usize {
        self.shared.counters.bytes()
    }

    /// Figures of the structure.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.counters.stats(self.inner.depth(&crate::pin()))
    }
}
