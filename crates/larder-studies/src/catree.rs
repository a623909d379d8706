//! A contention-adapting tree: `ordered_set` with write concurrency since OTP 22.
//!
//! ```text
//!                 ( k )                    routes: inner nodes, which readers don't lock
//!                /     \
//!            ( d )    [lock | k l p]       bases: a lock, a contention count, a structure
//!           /     \
//!     [lock | a c] [lock | d f]
//!
//!  split: many threads wait for [ k l p ]         join: few threads use [ d f ]
//!              ( l )                                              ( k )
//!             /     \                                            /     \
//!     [lock | k] [lock | l p]                       [lock | a c d f] [lock | k l p]
//! ```
//!
//! Invariants:
//! * **CT1** The entries left of a route are before its position. Those right of it are at or past
//!   it.
//! * **CT2** An invalid base has been replaced. A base becomes invalid under its lock, and stays
//!   so.
//! * **CT3** Routes are immutable, and slots change under the mutex `shape`. A thread that waits
//!   for it holds the lock of one base at most. A thread that holds it waits for no base. So there
//!   is no deadlock.
//!
//! Steps of a change:
//! 1. Descend the routes to a base.
//! 2. Lock the base. If it is invalid, start again.
//! 3. Change its structure.
//! 4. Add to its contention count, by whether the thread had to wait.
//! 5. If the count is high, split the base. If it is low, join it with its neighbour.
//!
//! | what is counted | name | in OTP |
//! |---|---|---|
//! | a writer that had to wait | `contended` | 250 |
//! | a writer that didn't | `quiet` | −1 |
//! | a scan that continues after the base | `more_than_one` | −10 |
//! | one of 512 writes, at random, with `random_join` | | −500 |
//! | a base is split above | `high` | 1,000 |
//! | a base is joined below | `low` | −1,000 |
//! | the bounds of a count | `clamp` | ±20,000 |
//!
//! Because of `random_join`, a tree whose bases are seldom used becomes small again.
//!
//! Linearisation point of an operation: any instant at which it holds the lock of a valid base.
//!
//! Source: K. Sagonas, K. Winblad, "A contention adapting approach to concurrent ordered sets",
//! JPDC 115, 2018; OTP's documented behaviour. Deviations: changes of the shape take one mutex. The
//! paper locks the routes that change. Because of the counts such changes are rare. Readers don't
//! count, nor do writers that found an invalid base. A scan locks one base at a time, and each
//! batch is as of one instant.
//!
//! When not to use it: for a single thread, since the structure alone is faster; for scans that
//! must be fast while many threads write.

use crate::counts::Counts;
use crate::raw::slot::Slot;
use crate::scheme::{pop_past, Changer, Old, Reader, Scheme, EMPTY_AT_ONCE};
use crate::sequential::{Divisible, Visitor};
use crate::{Cut, Position};
use larder_index::sync::{planted, random, Fault, Mutex, RwLock, RwLockWriteGuard};
use larder_index::{Guard, Start, Stats};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// The numbers by which a tree adapts.
#[derive(Clone, Copy, Debug)]
pub struct Adaptation {
    /// Added by a writer that had to wait.
    pub contended: i64,
    /// Added by a writer that didn't have to wait.
    pub quiet: i64,
    /// Added by a scan that continues after the base.
    pub more_than_one: i64,
    /// A base is split above this count.
    pub high: i64,
    /// A base is joined with its neighbour below this count.
    pub low: i64,
    /// The maximum of a count. Its negative is the minimum.
    pub clamp: i64,
    /// The maximum number of routes on a path.
    pub depth: usize,
    /// Whether one of 512 writes, at random, adds [`RANDOM`], too.
    pub random_join: bool,
}

/// Added by one of 512 writes.
const RANDOM: i64 = -500;

impl Default for Adaptation {
    fn default() -> Self {
        Adaptation {
            contended: 250,
            quiet: -1,
            more_than_one: -10,
            high: 1_000,
            low: -1_000,
            clamp: 20_000,
            depth: 16,
            random_join: true,
        }
    }
}

enum CaTreeNode<S> {
    Route(Route<CaTreeNode<S>>),
    Base(Base<S>),
}

/// An inner node of a contention-adapting tree: the subtree of the positions below `at`, and that
/// of the others.
pub(crate) struct Route<N> {
    pub(crate) at: Position,
    pub(crate) kids: [Slot<N>; 2],
}

struct Base<S> {
    /// Identifies the base to watchers.
    number: u64,
    part: RwLock<BaseContent<S>>,
    contention: AtomicI64,
}

struct BaseContent<S> {
    valid: bool,
    structure: S,
}

/// A contention-adapting tree over sequential structures.
pub struct CaTree<W, S> {
    root: Slot<CaTreeNode<S>>,
    shape: Mutex<()>,
    adaptation: Adaptation,
    routes: AtomicUsize,
    splits: AtomicU64,
    joins: AtomicU64,
    contended: AtomicU64,
    /// The number of bases that were made.
    made: AtomicU64,
    /// The memory of the bases' structures.
    counts: Counts,
    /// The position at which `pop` continues.
    popped: Mutex<Position>,
    watcher: Option<Watcher>,
    words: PhantomData<fn() -> W>,
}

/// A base, and one end of its range.
struct FoundBase<'g, S> {
    base: &'g Base<S>,
    /// The position at which the next base in the direction of the walk begins (forward), or before
    /// which it ends (backward). `None` if there is no next base.
    bound: Option<&'g Position>,
}

/// The path to a base, while the shape is locked.
struct BasePath<'g, S> {
    /// The slots of the routes and of the base, from the root down.
    slots: Vec<&'g Slot<CaTreeNode<S>>>,
    routes: Vec<(&'g Route<CaTreeNode<S>>, usize)>,
}

fn base<S: Send + Sync + 'static>(structure: S, number: u64) -> Arc<CaTreeNode<S>> {
    Arc::new(CaTreeNode::Base(Base {
        number,
        part: RwLock::new(BaseContent {
            valid: true,
            structure,
        }),
        contention: AtomicI64::new(0),
    }))
}

/// The positions of the routes left and right of the base at the end of a path.
fn bounds<'g, S>(path: &BasePath<'g, S>) -> (Option<&'g [u8]>, Option<&'g [u8]>) {
    let last = |side| {
        let mut above = path.routes.iter().rev();
        above
            .find(|(_, went)| *went == side)
            .map(|(r, _)| &r.at[..])
    };
    (last(1), last(0))
}

/// Returns `true` with a probability of one in 512.
fn by_chance() -> bool {
    random() >> 55 == 0
}

impl<S> BaseContent<S> {
    /// Makes the base invalid, and takes its structure. Threads that wait for its lock start again.
    fn invalidate<W>(&mut self) -> S
    where
        S: Divisible<W>,
    {
        // It never becomes valid again (CT2). Leave an empty structure.
        self.valid = false;
        let empty = self.structure.like();
        std::mem::replace(&mut self.structure, empty)
    }
}

impl<W, S: Divisible<W> + 'static> CaTree<W, S> {
    /// A tree with one base, which has this structure.
    pub fn new(structure: S, adaptation: Adaptation) -> Self {
        let counts = Counts::default();
        counts.add(0, structure.memory() as isize);
        CaTree {
            root: Slot::new(Some(base(structure, 0))),
            shape: Mutex::new(()),
            adaptation,
            routes: AtomicUsize::new(0),
            splits: AtomicU64::new(0),
            joins: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            made: AtomicU64::new(1),
            counts,
            popped: Mutex::default(),
            watcher: None,
            words: PhantomData,
        }
    }

    /// The number of a new base.
    fn number(&self) -> u64 {
        // Ordering: Relaxed, the numbers only have to be unique.
        self.made.fetch_add(1, Relaxed)
    }

    /// Step 1: descends to a base, to the right of the routes for which `right` returns `true`.
    fn descend<'g>(
        &'g self,
        guard: &'g Guard,
        forward: bool,
        right: impl Fn(&[u8]) -> bool,
    ) -> FoundBase<'g, S> {
        // No lock is needed. Routes are immutable, and a slot is only changed to a replacement of
        // its content. If the base is replaced meanwhile, the caller finds it invalid under its
        // lock.
        let mut bound = None;
        let mut slot = &self.root;
        loop {
            match slot.load(guard) {
                Some(CaTreeNode::Route(route)) => {
                    let right = right(&route.at);
                    // The descent goes to the side of the route that the walk visits first. So the
                    // walk comes to the other side later. The last such route on the path is where
                    // the next base begins.
                    if right != forward {
                        bound = Some(&route.at);
                    }
                    slot = &route.kids[usize::from(right)];
                }
                Some(CaTreeNode::Base(base)) => return FoundBase { base, bound },
                None => unreachable!("slots of a tree are never empty"),
            }
        }
    }

    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> &'g Base<S> {
        self.descend(guard, true, |at| at <= position).base
    }

    /// The path to the base of a position. The shape is locked.
    fn path<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> BasePath<'g, S> {
        let mut path = BasePath {
            slots: vec![&self.root],
            routes: Vec::new(),
        };
        // Routes don't change while the shape is locked, so that the path stays valid.
        let mut slot = &self.root;
        while let Some(CaTreeNode::Route(route)) = slot.load(guard) {
            // A route's position is the first one of its right side.
            let side = usize::from(&route.at[..] <= position);
            slot = &route.kids[side];
            path.routes.push((route, side));
            path.slots.push(slot);
        }
        path
    }

    /// Counts the memory of structures that was `before` and is `now`, each modulo 2⁶⁴.
    fn count_memory(&self, before: usize, now: usize) {
        self.counts.add(0, now.wrapping_sub(before) as isize);
    }

    /// Step 4: adds to the count of a base. Returns the new count.
    fn count(&self, base: &Base<S>, by: i64) -> i64 {
        // Ordering, both: Relaxed, the count is a hint. The lock of the base serialises writers.
        // The count is clamped, so that a base that was quiet for a long time can still be split
        // soon.
        let clamp = self.adaptation.clamp;
        let now = (base.contention.load(Relaxed) + by).clamp(-clamp, clamp);
        base.contention.store(now, Relaxed);
        now
    }

    /// Steps 4 and 5. The base is valid and locked.
    fn adapt(
        &self,
        guard: &Guard,
        position: &[u8],
        base: &Base<S>,
        part: &mut BaseContent<S>,
        waited: bool,
    ) {
        let Adaptation {
            contended, quiet, ..
        } = self.adaptation;
        // (4) The base is locked, so no addition of another writer is lost.
        let mut by = if waited { contended } else { quiet };
        if self.adaptation.random_join && by_chance() {
            by += RANDOM;
        }
        // (5)
        let now = self.count(base, by);
        if now > self.adaptation.high {
            self.split(guard, position, base, part);
        } else if now < self.adaptation.low {
            self.join(guard, position, base, part);
        }
    }

    /// Step 5: replaces the base by a route with two bases. The base is locked.
    fn split(&self, guard: &Guard, position: &[u8], old: &Base<S>, part: &mut BaseContent<S>) {
        let _shape = self.shape.lock();
        // Ordering: Relaxed, the base is locked.
        let count = old.contention.swap(0, Relaxed);
        let measured = Measured {
            count,
            entries: self.entries_for_watcher(part),
        };
        let path = self.path(guard, position);
        // Don't split if the path is long, or if the base has fewer than two entries.
        if path.routes.len() >= self.adaptation.depth {
            return;
        }
        let before = part.structure.memory();
        let Some((at, upper)) = part.structure.divide() else {
            return;
        };
        let now = part.structure.memory().wrapping_add(upper.memory());
        self.count_memory(before, now);
        // The upper entries have been moved out of the structure, so the split must be completed.
        let numbers = [self.number(), self.number()];
        self.tell_split(&path, old, measured, &at, numbers);
        // Make the old base invalid before the new ones can be reached. A thread that finds it from
        // here on waits for the lock, and then starts again.
        let kids = [(part.invalidate(), numbers[0]), (upper, numbers[1])]
            .map(|(structure, number)| Slot::new(Some(base(structure, number))));
        let route = CaTreeNode::Route(Route { at, kids });
        // Publish the route and both bases by one store.
        path.slots[path.routes.len()].store(Some(Arc::new(route)), guard);
        // Ordering, both: Relaxed, statistics.
        self.routes.fetch_add(1, Relaxed);
        self.splits.fetch_add(1, Relaxed);
    }

    /// Step 5: replaces the base and its neighbour by one base, and removes the route between them.
    /// The base is locked.
    fn join(&self, guard: &Guard, position: &[u8], old: &Base<S>, part: &mut BaseContent<S>) {
        let _shape = self.shape.lock();
        // Ordering: Relaxed, the base is locked.
        let count = old.contention.swap(0, Relaxed);
        let measured = Measured {
            count,
            entries: self.entries_for_watcher(part),
        };
        let path = self.path(guard, position);
        // A single base has no neighbour.
        let Some(&(parent, side)) = path.routes.last() else {
            return;
        };
        let sibling = &parent.kids[1 - side];
        let Some((slot, other, mut neighbour)) = lock_edge(sibling, side, guard) else {
            // The neighbour is locked. A later operation will try again.
            return;
        };
        // Both bases are locked. Other threads only see them when they are invalid.
        let (mut low, mut high) = (part.invalidate(), neighbour.invalidate());
        if side == 1 {
            std::mem::swap(&mut low, &mut high);
        }
        let before = low.memory().wrapping_add(high.memory());
        low.join(high);
        self.count_memory(before, low.memory());
        let number = self.number();
        let joined = base(low, number);
        // Replace the parent route by its other child, which has the joined base.
        let above = path.slots[path.routes.len() - 1];
        if std::ptr::eq(slot, sibling) {
            above.store(Some(joined), guard);
        } else {
            // The neighbour is deeper in the sibling. Replace it first, and then the parent by the
            // sibling. A thread that reaches `old` between the two stores finds it invalid, and
            // starts again.
            slot.store(Some(joined), guard);
            above.store(sibling.share(guard), guard);
        }
        self.tell_join(guard, position, old, other, measured, number);
        // Ordering, both: Relaxed, statistics.
        self.routes.fetch_sub(1, Relaxed);
        self.joins.fetch_add(1, Relaxed);
    }

    /// All bases, in order, and the maximum number of routes above one.
    fn bases<'g>(&'g self, guard: &'g Guard) -> (Vec<&'g Base<S>>, usize) {
        // Descend with an explicit stack. The right side is pushed first, so the left one is
        // visited first.
        let (mut bases, mut depth) = (Vec::new(), 0);
        let mut waiting = vec![(&self.root, 0)];
        while let Some((slot, level)) = waiting.pop() {
            match slot.load(guard) {
                Some(CaTreeNode::Route(route)) => {
                    waiting.extend([(&route.kids[1], level + 1), (&route.kids[0], level + 1)]);
                }
                Some(CaTreeNode::Base(base)) => bases.push(base),
                None => {}
            }
            depth = depth.max(level);
        }
        (bases, depth)
    }
}

/// The slot of a base, its number, and its lock.
type Edge<'g, S> = (
    &'g Slot<CaTreeNode<S>>,
    u64,
    RwLockWriteGuard<'g, BaseContent<S>>,
);

/// Locks the base at one side of a subtree. `None` if another thread holds its lock.
fn lock_edge<'g, S: Send + Sync + 'static>(
    top: &'g Slot<CaTreeNode<S>>,
    side: usize,
    guard: &'g Guard,
) -> Option<Edge<'g, S>> {
    let mut slot = top;
    loop {
        // Follow one side down to its outermost base. Don't wait for its lock, since the shape is
        // locked (CT3).
        match slot.load(guard)? {
            CaTreeNode::Route(route) => slot = &route.kids[side],
            CaTreeNode::Base(base) => return Some((slot, base.number, base.part.try_write()?)),
        }
    }
}

impl<W: Send + Sync, S: Divisible<W> + 'static> Scheme<W> for CaTree<W, S> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        loop {
            let part = self.find(guard, position).part.read();
            if part.valid {
                return f(part.structure.get(position));
            }
        }
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        loop {
            // (1), (2)
            let base = self.find(guard, position);
            // Try first, to find out whether another thread holds the lock.
            let (mut part, waited) = match base.part.try_write() {
                Some(part) => (part, false),
                None => (base.part.write(), true),
            };
            if !part.valid && !planted(Fault::Obsolete) {
                continue;
            }
            if waited {
                self.counts.contended();
                // Ordering: Relaxed, a statistic.
                self.contended.fetch_add(1, Relaxed);
            }
            // (3) The lock excludes readers, so the word can be changed in place.
            let before = part.structure.memory();
            part.structure
                .change(position, &mut |word| f(word.map_or(Old::Absent, Old::Mine)));
            self.count_memory(before, part.structure.memory());
            // (4), (5) Keep the lock, so that the base can be split or joined.
            self.adapt(guard, position, base, &mut part, waited);
            return waited;
        }
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let mut cut = cut;
        loop {
            let found = self.descend(guard, cut.is_forward(), |at| cut.begins_right_of(at));
            // The entries of a base are read under its lock, so they are of one instant.
            let part = found.base.part.read();
            if !part.valid {
                continue;
            }
            let mut visited = false;
            let ended = part.structure.walk(cut, &mut |position, word| {
                visited = true;
                f(position, word)
            });
            let (true, Some(bound)) = (ended, found.bound) else {
                return ended;
            };
            // The walk continues in the next base. If many walks do, bases should be joined.
            self.count(found.base, self.adaptation.more_than_one);
            // The entries of the next base would be of another instant. They are the next batch.
            if visited {
                return false;
            }
            // No entry was visited. Continue in the next base, since a batch must not be empty.
            let start = match cut.is_forward() {
                true => Start::At(bound),
                false => Start::Past(bound),
            };
            cut = Cut::new(start, cut.direction());
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let (mut left, mut from) = (limit, self.popped.lock());
        // A bounded number of bases, since many may be empty, and the caller works in slices.
        for _ in 0..EMPTY_AT_ONCE {
            // No other thread writes, so no base is split or joined meanwhile.
            let found = self.descend(guard, true, |at| *at <= from[..]);
            let mut part = found.base.part.write();
            let before = part.structure.memory();
            while left > 0 {
                let Some(word) = part.structure.pop() else {
                    break;
                };
                left -= 1;
                f(word);
            }
            self.count_memory(before, part.structure.memory());
            if !part.structure.is_empty() {
                return false;
            }
            if pop_past(&mut from, found.bound) {
                return true;
            }
        }
        false
    }

    fn memory(&self, _guard: &Guard) -> usize {
        // A node is an `Arc`, with two counts. A tree of n routes has n + 1 bases. Ordering:
        // Relaxed, a statistic.
        let nodes = self.routes.load(Relaxed) * 2 + 1;
        nodes * (size_of::<CaTreeNode<S>>() + 16) + self.counts.bytes()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let (bases, depth) = self.bases(guard);
        Stats {
            leaves: bases.len(),
            depth,
            // Ordering, of these four: Relaxed, statistics.
            inner_nodes: self.routes.load(Relaxed),
            splits: self.splits.load(Relaxed),
            merges: self.joins.load(Relaxed),
            contended: self.contended.load(Relaxed),
            more: Vec::new(),
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests;
mod watch;

use watch::Measured;
pub use watch::{Adapted, BaseNow, Watcher};
