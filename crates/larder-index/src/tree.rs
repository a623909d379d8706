//! The core of both defaults: entries at positions, in leaves, to which a [`Route`] leads.
//!
//! A read: find the leaf, look, check (see `raw`). A write: find the leaf, lock it, look, change it in place, or
//!
//! 1. move its records together, if that makes enough room;
//! 2. else replace it by a larger one of the same range, up to the size at which leaves split;
//! 3. else split it. The entry that had no room goes straight to the successors.
//!
//! A leaf at which writers meet often splits early. A leaf that removals leave nearly empty merges with a neighbour.

use crate::raw::leaf::{Leaf, Locked, NewLeaf, Obsolete, Stored, MOST_CONTENT, SLOT};
use crate::raw::locked::lives_outside;
use crate::raw::outside::Handle;
use crate::raw::retire;
use crate::raw::view::View;
use crate::raw::words::Torn;
use crate::route::{End, Found, LeafConfig, Route, Seek, Shared};
use crate::run::{with_run, Run};
use crate::sync::Backoff;
use crate::sync::Mutex;
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

    /// Reads until what was read is true.
    #[inline]
    fn read<T>(
        &self,
        guard: &Guard,
        position: &[u8],
        mut look: impl FnMut(Leaf<'_>, View<'_>) -> Result<T, Torn>,
    ) -> T {
        let backoff = Backoff::new();
        loop {
            let leaf = self.route.find(position, guard);
            if let Ok(view) = leaf.read() {
                let result = look(leaf, view);
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
        self.read(guard, position, |leaf, view| {
            out.truncate(from);
            let Some(suffix) = position.get(leaf.prefix_len()..) else {
                return Ok(false);
            };
            match view.search(suffix)? {
                (i, true) => view.copy_value(i, out).map(|()| true),
                (_, false) => Ok(false),
            }
        })
    }

    /// As `Unique::get_short`.
    #[inline]
    pub(crate) fn get_short(&self, guard: &Guard, position: &[u8], out: &mut [u8; SHORT]) -> Got {
        self.read(guard, position, |leaf, view| {
            let Some(suffix) = position.get(leaf.prefix_len()..) else {
                return Ok(Got::Absent);
            };
            let (i, true) = view.search(suffix)? else {
                return Ok(Got::Absent);
            };
            Ok(view.copy_short(i, out)?.map_or(Got::Long, Got::Short))
        })
    }

    /// Whether there is a value at the position.
    pub(crate) fn contains(&self, guard: &Guard, position: &[u8]) -> bool {
        self.read(guard, position, |leaf, view| {
            match position.get(leaf.prefix_len()..) {
                Some(suffix) => Ok(view.search(suffix)?.1),
                None => Ok(false),
            }
        })
    }

    /// As `Unique::prefetch`, in three passes over the positions: leaves, slots, records.
    pub(crate) fn prefetch<'p>(&self, guard: &Guard, positions: impl Iterator<Item = &'p [u8]>) {
        /// Leaves at a time: more loads than these are not under way at once.
        const AT_ONCE: usize = 32;
        let mut positions = positions.peekable();
        while positions.peek().is_some() {
            let leaves: SmallVec<[(Leaf<'_>, &[u8]); AT_ONCE]> = positions
                .by_ref()
                .take(AT_ONCE)
                .map(|position| (self.route.find(position, guard), position))
                .collect();
            let views = leaves.iter().filter_map(|(leaf, position)| {
                let suffix = position.get(leaf.prefix_len()..)?;
                Some((leaf.glance(), suffix))
            });
            let views: SmallVec<[(View<'_>, &[u8]); AT_ONCE]> = views.collect();
            views.iter().for_each(|(view, suffix)| view.ask(suffix));
            for (view, suffix) in &views {
                view.ask_record(suffix);
            }
        }
    }

    /// The leaf that has the position, locked, and its contention.
    fn lock<'g>(&self, guard: &'g Guard, position: &[u8]) -> (Locked<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            match self.route.find(position, guard).lock() {
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
    #[inline]
    fn find_locked<'g, 'p>(
        &self,
        guard: &'g Guard,
        position: &'p [u8],
    ) -> (Locked<'g>, Place<'p>, i32) {
        let (locked, heat) = self.lock(guard, position);
        let suffix = position.get(locked.leaf().prefix_len()..).unwrap_or(&[]);
        let (i, found) = match locked.beside_last(suffix) {
            Some(i) => (i, false),
            None => locked.search(suffix),
        };
        let place = Place {
            position,
            suffix,
            i,
            found,
        };
        (locked, place, heat)
    }

    /// As `Unique::update_with`.
    pub(crate) fn update(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, '_>,
    ) -> bool {
        let (locked, place, heat) = self.find_locked(guard, position);
        scratch.clear();
        let change = f(place.value(&locked), scratch);
        let value = match change {
            Change::Keep => return false,
            Change::Remove if !place.found => return false,
            Change::Remove => {
                self.remove_at(guard, position, locked, place.i, heat);
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
        let (locked, place, heat) = self.find_locked(guard, position);
        if !may(place.value(&locked)) {
            return Was::Refused;
        }
        let was = Was::of(place.found);
        self.put_at(guard, &place, locked, value, heat);
        was
    }

    /// As `Unique::remove`.
    pub(crate) fn remove(&self, guard: &Guard, position: &[u8], may: &mut Consent<'_>) -> Was {
        let (locked, place, heat) = self.find_locked(guard, position);
        if !may(place.value(&locked)) {
            return Was::Refused;
        }
        if place.found {
            self.remove_at(guard, position, locked, place.i, heat);
        }
        Was::of(place.found)
    }

    fn remove_at(&self, guard: &Guard, position: &[u8], mut leaf: Locked<'_>, i: usize, heat: i32) {
        let handle = leaf.handle(i);
        leaf.remove(i);
        self.shared.counters.add_len(-1);
        self.retire(guard, handle);
        if heat < HOT && (leaf.len() < 8 || leaf.len() % 4 == 0) {
            self.tidy(guard, position, leaf);
        }
    }

    /// Gives room back that removals have left: a leaf that is mostly empty gets a smaller one in its place, or merges with a neighbour.
    fn tidy(&self, guard: &Guard, position: &[u8], leaf: Locked<'_>) {
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
    fn shrink(&self, guard: &Guard, position: &[u8], leaf: Locked<'_>) {
        let room = self
            .shared
            .config
            .room(leaf.used(), leaf.leaf().prefix_len());
        let new = NewLeaf::copy(&leaf, room);
        self.route.replace(&self.shared, leaf, position, new, guard);
    }

    /// Merges the leaf with a neighbour, and the result with its neighbour, while they are sparse.
    fn merge(&self, guard: &Guard, position: &[u8], leaf: Locked<'_>) {
        let mut leaf = leaf;
        while self.route.merge(&self.shared, leaf, position, guard) {
            match self.route.find(position, guard).try_lock() {
                Ok(Some(next)) if next.used() < self.shared.config.most / 4 => leaf = next,
                _ => return,
            }
        }
    }

    /// An outside object that has just been taken out of a locked leaf.
    fn retire(&self, guard: &Guard, handle: Option<Handle>) {
        if let Some(handle) = handle {
            let bytes = retire::outside(handle, guard);
            self.shared.counters.add_bytes(-(bytes as isize));
        }
    }
}

/// Where an entry is or would be.
struct Place<'a> {
    position: &'a [u8],
    /// The position without the leaf's prefix.
    suffix: &'a [u8],
    i: usize,
    found: bool,
}

impl Place<'_> {
    /// The value there, if there is one; nothing is written to the leaf while it is looked at.
    #[inline]
    fn value<'l>(&self, leaf: &'l Locked<'_>) -> Option<&'l [u8]> {
        self.found.then(|| leaf.value(self.i))
    }
}

impl<R: Route> Tree<R> {
    /// Stores a value, making room if there is none.
    #[inline]
    fn put_at(&self, guard: &Guard, at: &Place<'_>, leaf: Locked<'_>, value: &[u8], heat: i32) {
        let mut leaf = leaf;
        let most = self.shared.config.most;
        let stored = if lives_outside(at.suffix.len(), value.len(), most) {
            let (handle, bytes) = Handle::new(at.position, value);
            self.shared.counters.add_bytes(bytes as isize);
            Stored::Outside(handle)
        } else {
            Stored::Inline(value)
        };
        let old = if at.found { leaf.handle(at.i) } else { None };
        let appends = if at.found {
            0
        } else {
            self.shared.counters.add_len(1);
            leaf.insert_run(at.i)
        };
        let done = if at.found {
            leaf.put_again(at.i, at.suffix, stored)
        } else {
            leaf.put_entry(at.i, at.suffix, stored)
        };
        if !done {
            self.make_room(guard, at, leaf, stored, appends);
        } else if heat > HOT && leaf.len() > 1 {
            self.split_early(guard, at, leaf);
        }
        self.retire(guard, old);
    }

    /// Steps 1 to 3 of the module's head: the entry has no room in the leaf.
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
        if at.found {
            // The new entry takes its place; readers see both changes at once.
            leaf.remove(at.i);
        }
        let need = leaf.used() + SLOT + stored.record(at.suffix.len());
        let capacity = leaf.leaf().capacity();
        with_run(|run| {
            // Moving everything for the sake of a few bytes would happen again soon.
            let spare = if capacity < config.most_beside(leaf.leaf().prefix_len()) {
                capacity / 8
            } else {
                capacity / 16
            };
            if need + spare <= capacity {
                leaf.compact(run);
                let done = leaf.put_entry(at.i, at.suffix, stored);
                debug_assert!(done, "moving together made room");
                return;
            }
            let old = leaf.leaf();
            if need <= config.most_beside(old.prefix_len()) {
                let room = config.room(need, old.prefix_len());
                return self.grow(guard, at, leaf, stored, room);
            }
            leaf.collect_all(run);
            run.insert(at.i, at.position, stored);
            let grows = self.route.grows(old, run, need, config);
            if run.len() < 2 || grows && need < MOST_CONTENT / 2 {
                self.grow(guard, at, leaf, stored, (need + need / 8).min(MOST_CONTENT));
            } else {
                // A run of inserts that went each beside the one before leaves a full leaf behind.
                let cut = (appends > run.len() / 4).then_some(at.i + usize::from(leaf.descends()));
                self.route
                    .split(&self.shared, leaf, at.position, run, cut, guard);
            }
        });
    }

    /// Step 2: puts a leaf with more room, and the new entry, in the place of this one.
    fn grow(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: Locked<'_>,
        stored: Stored<'_>,
        room: usize,
    ) {
        let new = NewLeaf::copy(&leaf, room);
        let done = new.put_entry(at.i, at.suffix, stored);
        debug_assert!(done, "a larger leaf has room");
        self.route
            .replace(&self.shared, leaf, at.position, new, guard);
    }

    /// Writers meet here often: two leaves let them pass each other.
    fn split_early(&self, guard: &Guard, at: &Place<'_>, leaf: Locked<'_>) {
        with_run(|run| {
            leaf.collect_all(run);
            self.route
                .split(&self.shared, leaf, at.position, run, None, guard);
        });
    }

    /// Appends the values of all entries whose positions begin so to `run`, without their positions, as of one instant, if it can be told from one leaf which those
    /// are. Otherwise false, whatever was appended: then `scan` must do it.
    #[inline]
    pub(crate) fn values_within(&self, guard: &Guard, within: &[u8], run: &mut Run) -> bool {
        // What begins so comes after `within` itself: none is in a leaf before the one that would have that.
        let Ok(view) = self.route.find(within, guard).read() else {
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
                view.copy_value(i, &mut run.bytes)?;
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
        let leaf = self.route.find(position, guard);
        let (Ok(view), Some(suffix)) = (leaf.read(), position.get(leaf.prefix_len()..)) else {
            return false;
        };
        let look = || -> Result<bool, Torn> {
            let (i, found) = view.search(suffix)?;
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
        resume.extend_from_slice(&bytes[..entries[0].1 as usize]);
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
            for i in (0..n).rev() {
                f(locked.value(i));
                let handle = locked.handle(i);
                locked.remove(i);
                self.retire(guard, handle);
            }
            self.shared.counters.add_len(-(n as isize));
            freed += n + 1;
            if leaf.capacity() > self.shared.config.first {
                let new = NewLeaf::empty(0, leaf.prefix());
                self.route
                    .replace(&self.shared, locked, &cursor, new, guard);
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
