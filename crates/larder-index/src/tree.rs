//! The core of both defaults: entries at positions, in leaves, to which a [`Route`] leads.
//!
//! A read: find the leaf, look, check (see `raw`). A write: find the leaf, lock it, look, change it in place, or
//!
//! 1. move its records together, if that makes enough room;
//! 2. else replace it by a larger one of the same range, up to the size at which leaves split;
//! 3. else split it. The entry that had no room goes straight to the successors.
//!
//! A leaf at which writers meet often splits early. A leaf that removals leave nearly empty merges with a neighbour.

use crate::raw::entries::{with_entries, Entries};
use crate::raw::leaf::{Leaf, Locked, NewLeaf, Obsolete, Stored, MOST_CONTENT, SLOT};
use crate::raw::locked::lives_outside;
use crate::raw::outside::Handle;
use crate::raw::sought::Sought;
use crate::raw::view::{Record, Spot, View};
use crate::raw::words::Torn;
use crate::route::{End, Found, LeafConfig, Route, Seek, Shared};
use crate::run::{with_scratch, Run};
use crate::sync::{Backoff, Mutex};
use crate::{Batch, Change, Consent, Direction, Got, Start, Stats, Updater, Was, SHORT};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// What a meeting of writers adds to a leaf's contention, and what a quiet write takes from it (as in contention-adapting trees).
const MET: i32 = 250;
const QUIET: i32 = -1;
/// The contention at which a leaf splits early.
const HOT: i32 = 1000;
/// A scan's batch ends before its bytes pass this, if it has an entry.
const BATCH_BYTES: usize = 1 << 20;

/// Entries at positions.
pub(crate) struct Tree<R> {
    route: R,
    shared: Shared,
    /// How far `free_some` has come.
    freed: Mutex<Vec<u8>>,
}

/// What a scan wants.
pub(crate) struct Wish<'a> {
    pub(crate) start: Start<'a>,
    pub(crate) direction: Direction,
    /// Entries whose positions begin so; the first other one ends the scan.
    pub(crate) within: &'a [u8],
    /// The most entries.
    pub(crate) limit: usize,
}

impl<R: Route> Tree<R> {
    /// An empty tree.
    pub(crate) fn new(config: LeafConfig, route: impl FnOnce(&Shared) -> R) -> Self {
        let shared = Shared {
            config,
            ..Shared::default()
        };
        Tree {
            route: route(&shared),
            shared,
            freed: Mutex::default(),
        }
    }

    /// The same tree, whose users hold locks of their own: they say when what is large may be freed, by `free_large`.
    pub(crate) fn under_locks(mut self) -> Self {
        self.shared.holds_more = true;
        self
    }

    /// Frees what was left for when no lock is held, if there is anything.
    #[inline]
    pub(crate) fn free_large(&self, guard: &Guard) {
        self.shared.free_large(guard);
    }

    /// Reads at a position until what was read is true: `look` gets the record there, if there is one.
    #[inline]
    fn read<T>(
        &self,
        guard: &Guard,
        position: &[u8],
        mut look: impl FnMut(&View<'_>, Option<Record>) -> Result<T, Torn>,
    ) -> T {
        let sought = Sought::new(position);
        let backoff = Backoff::new();
        loop {
            let leaf = self.route.find(sought, guard);
            if let Ok(view) = leaf.read() {
                let prefix = leaf.prefix_len();
                let found = match sought.suffix(prefix) {
                    Some(suffix) => view.search(sought.head(prefix), suffix),
                    None => Ok(Spot { i: 0, record: None }),
                };
                let result = found.and_then(|spot| look(&view, spot.record));
                if view.holds() {
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
    pub(crate) fn get_short(&self, guard: &Guard, position: &[u8], out: &mut [u8; SHORT]) -> Got {
        self.read(guard, position, |view, record| match record {
            Some(record) => Ok(view.copy_short(&record, out)?.map_or(Got::Long, Got::Short)),
            None => Ok(Got::Absent),
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
            let leaves: SmallVec<[(Leaf<'_>, Sought<'_>); AT_ONCE]> = positions
                .by_ref()
                .take(AT_ONCE)
                .map(|position| {
                    let sought = Sought::new(position);
                    (self.route.find(sought, guard), sought)
                })
                .collect();
            let views: SmallVec<[(View<'_>, u64); AT_ONCE]> = leaves
                .iter()
                .map(|(leaf, sought)| (leaf.glance(), sought.head(leaf.prefix_len())))
                .collect();
            views.iter().for_each(|(view, head)| view.ask(*head));
            for (view, head) in &views {
                view.ask_record(*head);
            }
        }
    }

    /// The leaf that has the position, locked, and its contention.
    #[inline]
    fn lock<'g>(&self, guard: &'g Guard, sought: Sought<'_>) -> (Locked<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            match self.route.find(sought, guard).lock() {
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

    /// Locks the leaf that has the position, and finds the place there; gives the leaf's contention with it.
    #[inline(always)]
    fn find_locked<'g, 'p>(
        &self,
        guard: &'g Guard,
        sought: Sought<'p>,
    ) -> (Locked<'g>, Place<'p>, i32) {
        if let Some(leaf) = self.route.tail(guard) {
            if let Some(mut locked) = self.lock_tail(leaf, sought) {
                let heat = locked.contention(QUIET);
                let (i, record) = (locked.len(), None);
                let place = Place::new(sought, &locked, i, record);
                return (locked, place, heat);
            }
        }
        let (locked, heat) = self.lock(guard, sought);
        let spot = locked.search(sought);
        let place = Place::new(sought, &locked, spot.i, spot.record);
        (locked, place, heat)
    }

    /// Locks the last leaf, if nobody else has, and if the position is above all that are there. If it isn't, the next one is not sought there.
    #[inline]
    fn lock_tail<'g>(&self, leaf: Leaf<'g>, sought: Sought<'_>) -> Option<Locked<'g>> {
        let locked = leaf.try_lock().ok().flatten()?;
        if locked.is_below(sought) {
            return Some(locked);
        }
        self.route.forget_tail();
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
        let (locked, place, heat) = self.find_locked(guard, Sought::new(position));
        scratch.clear();
        let change = f(place.value(&locked), scratch);
        let value = match change {
            Change::Keep => return false,
            Change::Remove => {
                let Some(record) = &place.record else {
                    return false;
                };
                self.remove_at(guard, &place, locked, record, heat);
                return true;
            }
            Change::Put(value) => value,
            Change::PutScratch => &scratch[..],
        };
        self.put_at(guard, &place, locked, value, heat);
        true
    }

    /// As `Unique::put`.
    pub(crate) fn put(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        may: &mut Consent<'_>,
    ) -> Was {
        let sought = Sought::new(position);
        match self.append(guard, sought, value, may) {
            Some(was) => was,
            None => self.put_anywhere(guard, sought, value, may),
        }
    }

    /// Stores a short value at the end of the last leaf, if inserts go on there and it has room. Otherwise None, and nothing was done or asked.
    #[inline]
    fn append(
        &self,
        guard: &Guard,
        sought: Sought<'_>,
        value: &[u8],
        may: &mut Consent<'_>,
    ) -> Option<Was> {
        let mut locked = self.route.tail(guard)?.try_lock().ok()??;
        let next = locked.next_of_run(sought, value.len())?;
        if !may(None) {
            return Some(Was::Refused);
        }
        self.shared.counters.add_len(1);
        locked.put_next(next, value);
        Some(Was::Absent)
    }

    #[inline(never)]
    fn put_anywhere(
        &self,
        guard: &Guard,
        sought: Sought<'_>,
        value: &[u8],
        may: &mut Consent<'_>,
    ) -> Was {
        let (locked, place, heat) = self.find_locked(guard, sought);
        if !may(place.value(&locked)) {
            return Was::Refused;
        }
        let was = Was::of(place.record.is_some());
        self.put_at(guard, &place, locked, value, heat);
        was
    }

    /// As `Unique::remove`.
    pub(crate) fn remove(&self, guard: &Guard, position: &[u8], may: &mut Consent<'_>) -> Was {
        let (locked, place, heat) = self.find_locked(guard, Sought::new(position));
        if !may(place.value(&locked)) {
            return Was::Refused;
        }
        let Some(record) = &place.record else {
            return Was::Absent;
        };
        self.remove_at(guard, &place, locked, record, heat);
        Was::Present
    }

    #[inline(always)]
    fn remove_at(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        mut leaf: Locked<'_>,
        record: &Record,
        heat: i32,
    ) {
        let handle = leaf.handle(record);
        leaf.remove(at.i, record);
        self.shared.counters.add_len(-1);
        let len = leaf.len();
        if heat < HOT && (len < 8 || len % 4 == 0) && leaf.used() < self.shared.config.most / 4 {
            self.tidy(guard, at.sought, leaf);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, handle);
    }

    /// Gives room back that removals have left: a leaf that is mostly empty gets a smaller one in its place, or merges with a neighbour.
    fn tidy(&self, guard: &Guard, position: Sought<'_>, leaf: Locked<'_>) {
        let mut leaf = leaf;
        let (used, config) = (leaf.used(), &self.shared.config);
        if used < leaf.leaf().capacity() / 4
            && config.room(used, leaf.leaf().prefix_len()) < leaf.leaf().capacity()
        {
            self.shrink(guard, position, leaf);
            match self.route.find(position, guard).try_lock() {
                Ok(Some(next)) => leaf = next,
                _ => return,
            }
        }
        if used < config.most / 4 {
            self.merge(guard, position, leaf);
        }
    }

    /// Puts a leaf of the same range and entries, of no more room than it needs, in the place of this one.
    fn shrink(&self, guard: &Guard, position: Sought<'_>, leaf: Locked<'_>) {
        let room = self
            .shared
            .config
            .room(leaf.used(), leaf.leaf().prefix_len());
        with_entries(|entries| {
            entries.collect(&leaf);
            self.replace(guard, position, leaf, entries, room);
        });
    }

    /// Puts a leaf with the same range and these entries, and this room, in the place of one.
    fn replace(
        &self,
        guard: &Guard,
        position: Sought<'_>,
        leaf: Locked<'_>,
        entries: &Entries,
        room: usize,
    ) {
        let new = entries.build(&leaf, 0..entries.len(), room, leaf.leaf().prefix());
        new.inherit(leaf.leaf());
        self.route.replace(&self.shared, leaf, position, new, guard);
    }

    /// Merges the leaf with a neighbour, and the result with its neighbour, while they are sparse.
    fn merge(&self, guard: &Guard, position: Sought<'_>, leaf: Locked<'_>) {
        let mut leaf = leaf;
        while self.route.merge(&self.shared, leaf, position, guard) {
            match self.route.find(position, guard).try_lock() {
                Ok(Some(next)) if next.used() < self.shared.config.most / 4 => leaf = next,
                _ => return,
            }
        }
    }
}

/// Where an entry is or would be.
struct Place<'a> {
    sought: Sought<'a>,
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
    fn new(sought: Sought<'a>, leaf: &Locked<'_>, i: usize, record: Option<Record>) -> Self {
        let prefix = leaf.leaf().prefix_len();
        Place {
            sought,
            head: sought.head(prefix),
            suffix: sought.suffix(prefix).unwrap_or(&[]),
            i,
            record,
        }
    }

    /// The value there, if there is one; nothing is written to the leaf while it is looked at.
    #[inline]
    fn value<'l>(&self, leaf: &'l Locked<'_>) -> Option<&'l [u8]> {
        let record = self.record.as_ref();
        record.map(|record| leaf.value(self.i, record))
    }
}

impl<R: Route> Tree<R> {
    /// Stores a value, making room if there is none.
    #[inline(always)]
    fn put_at(&self, guard: &Guard, at: &Place<'_>, leaf: Locked<'_>, value: &[u8], heat: i32) {
        let mut leaf = leaf;
        let most = self.shared.config.most;
        let stored = if lives_outside(at.suffix.len(), value.len(), most) {
            let (handle, bytes) = Handle::new(at.sought.bytes(), value);
            self.shared.counters.add_bytes(bytes as isize);
            Stored::Outside(handle)
        } else {
            Stored::Inline(value)
        };
        let old = at.record.and_then(|record| leaf.handle(&record));
        let (done, appends) = match &at.record {
            Some(record) => {
                let done = leaf.put_again(at.i, at.head, at.suffix, stored, record);
                (done, 0)
            }
            None => {
                self.shared.counters.add_len(1);
                let appends = leaf.insert_run(at.i);
                let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
                (done, appends)
            }
        };
        if !done {
            self.make_room(guard, at, leaf, stored, appends);
        } else if heat > HOT && leaf.len() > 1 {
            self.split_early(guard, at, leaf);
        } else {
            drop(leaf);
        }
        self.shared.retire(guard, old);
    }

    /// Steps 1 to 3 of the module's head: the entry has no room in the leaf.
    #[inline(never)]
    fn make_room(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: Locked<'_>,
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
            if need <= config.most_beside(prefix) {
                // Where inserts run on, more will come soon.
                let more = if appends > entries.len() / 4 {
                    need / 2
                } else {
                    0
                };
                let room = config.room((need + more).min(config.most_beside(prefix)), prefix);
                self.replace(guard, at.sought, leaf, entries, room);
            } else if entries.len() < 2 {
                let room = (need + need / 8).min(MOST_CONTENT);
                self.replace(guard, at.sought, leaf, entries, room);
            } else {
                // A run of inserts that went each beside the one before leaves a full leaf behind.
                let runs = appends > entries.len() / 4;
                let cut = runs.then_some(at.i + usize::from(leaf.descends()));
                self.route
                    .split(&self.shared, leaf, at.sought, entries, cut, guard);
            }
        });
    }

    /// Writers meet here often: two leaves let them pass each other.
    fn split_early(&self, guard: &Guard, at: &Place<'_>, leaf: Locked<'_>) {
        with_entries(|entries| {
            entries.collect(&leaf);
            self.route
                .split(&self.shared, leaf, at.sought, entries, None, guard);
        });
    }

    /// Appends the values of all entries whose positions begin so to `run`, without their positions, as of one instant, if it can be told from one leaf which those
    /// are. Otherwise false, whatever was appended: then `scan` must do it.
    #[inline]
    pub(crate) fn values_within(&self, guard: &Guard, within: &[u8], run: &mut Run) -> bool {
        // What begins so comes after `within` itself: none is in a leaf before the one that would have that.
        let Ok(view) = self.route.find(Sought::new(within), guard).read() else {
            return false;
        };
        let copy = || -> Result<bool, Torn> {
            let (first, _) = view.search_any(within)?;
            let Some(sought) = view.behind_prefix(within) else {
                return Ok(first < view.len());
            };
            for i in first..view.len() {
                if !view.begins_with(i, sought)? {
                    return Ok(true);
                }
                let from = run.bytes.len();
                view.copy_value(&view.record_of(i)?, &mut run.bytes)?;
                run.end_entry(from, from, None);
            }
            // The next leaf may have more.
            Ok(false)
        };
        matches!({ copy }(), Ok(true)) && view.holds()
    }

    /// As `scan` into a batch, for one entry that lies in the same leaf as the position it is sought from. Otherwise false: then `scan` must do it.
    #[inline]
    pub(crate) fn scan_one(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        let (position, past) = match start {
            Start::Edge => return false,
            Start::At(position) => (position, false),
            Start::Past(position) => (position, true),
        };
        let forward = direction == Direction::Forward;
        let sought = Sought::new(position);
        let leaf = self.route.find(sought, guard);
        let prefix = leaf.prefix_len();
        let (Ok(view), Some(suffix)) = (leaf.read(), sought.suffix(prefix)) else {
            return false;
        };
        let look = || -> Result<bool, Torn> {
            let spot = view.search(sought.head(prefix), suffix)?;
            let (i, found) = (spot.i, spot.record.is_some());
            let i = match forward {
                true => Some(i + usize::from(found && past)).filter(|&i| i < view.len()),
                false => (i + usize::from(found && !past)).checked_sub(1),
            };
            batch.clear();
            i.map_or(Ok(false), |i| view.only(i, batch).map(|()| true))
        };
        if !matches!({ look }(), Ok(true)) || !view.holds() {
            return false;
        }
        let Batch {
            bytes,
            entries,
            resume,
            ..
        } = batch;
        resume.extend_from_slice(&bytes[..entries[0].1]);
        if forward {
            // Positions are prefix-free: nothing lies between.
            resume.push(0);
        }
        true
    }

    /// Fills `run` (cleared first) with the next entries as wished, all of one leaf and of one instant: none only at the end. `resume` gets
    /// the position from which to go on. Returns whether the end was reached.
    pub(crate) fn scan(
        &self,
        guard: &Guard,
        wish: &Wish<'_>,
        run: &mut Run,
        resume: &mut Vec<u8>,
    ) -> bool {
        let forward = wish.direction == Direction::Forward;
        let end = if forward { End::High } else { End::Low };
        let mut cursor = Cursor::new(wish);
        let backoff = Backoff::new();
        loop {
            run.clear();
            let Some(Found { leaf, fence }) = self.route.find_fenced(cursor.seek(), end, guard)
            else {
                resume.clear();
                return true;
            };
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            let collected = collect(&view, &cursor, wish, run);
            if !view.holds() {
                backoff.snooze();
                continue;
            }
            let Ok(stopped) = collected else {
                continue;
            };
            match (stopped, fence) {
                (Some(Stop::Outside), _) | (None, None) => {
                    resume.clear();
                    return true;
                }
                (Some(Stop::Full), _) => {
                    resume.clear();
                    resume.extend_from_slice(run.position(run.len() - 1));
                    if forward {
                        // Positions are prefix-free: nothing lies between.
                        resume.push(0);
                    }
                    return false;
                }
                (None, Some(fence)) if run.len() > 0 => {
                    *resume = fence;
                    return false;
                }
                (None, Some(fence)) => cursor.go_on(fence),
            }
        }
    }

    /// As `Unique::free_some`.
    pub(crate) fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let mut freed = 0;
        while freed < limit.max(1) {
            let Some(Found { leaf, fence }) =
                self.route.find_fenced(Seek::At(&cursor), End::High, guard)
            else {
                return true;
            };
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
            self.shared.counters.add_len(-(n as isize));
            freed += n + 1;
            if leaf.capacity() > self.shared.config.first {
                let new = NewLeaf::empty(0, leaf.prefix());
                self.route
                    .replace(&self.shared, locked, Sought::new(&cursor), new, guard);
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

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.shared.counters.len()
    }

    /// Bytes of memory, apart from the tree's own fields.
    pub(crate) fn memory(&self) -> usize {
        self.shared.counters.bytes()
    }

    /// Figures of the structure.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.counters.stats(self.route.depth(&crate::pin()))
    }
}

/// Why the copying of a leaf's entries stopped before its end.
enum Stop {
    /// The batch is full.
    Full,
    /// An entry is beyond what the scan wants.
    Outside,
}

/// How far a scan has come.
struct Cursor<'a> {
    start: Start<'a>,
    forward: bool,
    /// The fence that it goes on from, once it has left the first leaf.
    fence: Option<Vec<u8>>,
}

impl<'a> Cursor<'a> {
    fn new(wish: &Wish<'a>) -> Self {
        Cursor {
            start: wish.start,
            forward: wish.direction == Direction::Forward,
            fence: None,
        }
    }

    fn go_on(&mut self, fence: Vec<u8>) {
        self.fence = Some(fence);
    }

    /// The leaf to look at.
    fn seek(&self) -> Seek<'_> {
        match (&self.fence, self.start, self.forward) {
            (Some(fence), _, true) => Seek::At(fence),
            (Some(fence), _, false) => Seek::Before(fence),
            (None, Start::Edge, true) => Seek::First,
            (None, Start::Edge, false) => Seek::Last,
            (None, Start::Past(p), false) => Seek::Before(p),
            (None, Start::At(p) | Start::Past(p), _) => Seek::At(p),
        }
    }

    /// The entries of the leaf that the scan has before it.
    fn range(&self, view: &View<'_>) -> Result<(usize, usize), Torn> {
        let n = view.len();
        let start = match &self.fence {
            // All of a leaf that was reached over its fence lies before the scan; but when the leaf at hand is a new and larger one, not all.
            Some(fence) if self.forward => Start::At(fence),
            Some(fence) => Start::Past(fence),
            None => self.start,
        };
        let (position, past) = match start {
            Start::Edge => return Ok((0, n)),
            Start::At(p) => (p, false),
            Start::Past(p) => (p, true),
        };
        let (i, found) = view.search_any(position)?;
        Ok(match (self.forward, past) {
            (true, past) => (i + usize::from(found && past), n),
            (false, past) => (0, i + usize::from(found && !past)),
        })
    }
}

/// Copies the entries that the scan wants from a leaf. None: up to its end.
fn collect(
    view: &View<'_>,
    cursor: &Cursor<'_>,
    wish: &Wish<'_>,
    run: &mut Run,
) -> Result<Option<Stop>, Torn> {
    let (from, to) = cursor.range(view)?;
    run.reserve(to.saturating_sub(from).min(wish.limit));
    let mut one = |i: usize| {
        if run.len() >= wish.limit || run.bytes.len() > BATCH_BYTES {
            return Ok(Some(Stop::Full));
        }
        view.collect_whole(i, run)?;
        let within = wish.within.is_empty() || run.last_begins_with(wish.within);
        if !within {
            run.pop();
            return Ok(Some(Stop::Outside));
        }
        Ok(None)
    };
    let mut in_order = from..to;
    loop {
        let next = if cursor.forward {
            in_order.next()
        } else {
            in_order.next_back()
        };
        let Some(i) = next else { return Ok(None) };
        if let Some(stop) = one(i)? {
            return Ok(Some(stop));
        }
    }
}
