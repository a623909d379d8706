//! A contention-adapting tree: `ordered_set` with write concurrency since OTP 22.
//!
//! ```text
//!                 ( k )                    routes: which way to go; readers lock nothing here
//!                /     \
//!            ( d )    [lock | k l p]       bases: a lock, a count of contention, a sequential structure
//!           /     \
//!     [lock | a c] [lock | d f]
//!
//!     threads met at [ k l p ]:  a route takes its place        threads left [ d f ] alone:  it is joined to its neighbour
//!              ( l )                                                            ( k )
//!             /     \                                                          /     \
//!     [lock | k] [lock | l p]                                    [lock | a c d f] [lock | k l p]
//! ```
//!
//! Invariants:
//! 1. Entries left of a route are before its position, those right of it at or past it.
//! 2. A base is valid or not; what is not has been replaced. That changes under its lock, and never
//!    back.
//! 3. Routes and slots change under the mutex of the shape; whoever waits for it has at most one
//!    base locked, and whoever has it waits for no base.
//!
//! Steps of a change: (1) down the routes; (2) lock the base; begin again if it is not valid; (3)
//! change its structure; (4) count; (5) if the count is high, divide the base; if it is low, join
//! it to its neighbour.
//!
//! A writer that had to wait counts as `contended` (250), one that didn't as `quiet` (−1), a scan
//! that goes over the end of a base as `more_than_one` (−10). Beyond `high` (1,000) a base is
//! divided, below `low` (−1,000) joined; a count goes no further than ±`clamp` (20,000). With
//! `random_join` each 512th write, by chance, counts −500 more, so that a tree whose bases are
//! seldom met by anyone becomes small again. These are OTP's numbers.
//!
//! Linearisation point of an operation: any while it holds the lock of a valid base.
//!
//! Source: K. Sagonas, K. Winblad, "A contention adapting approach to concurrent ordered sets",
//! JPDC 115, 2018; OTP's documented behaviour.
//! Deviations: changes of the shape take one mutex, where the paper locks the routes concerned;
//! they are rare by the counts. Readers don't count. A scan locks one base at a time, and each
//! batch is as of one instant. Neither writers that met an invalid base count.
//!
//! Not for: one thread (the structure alone is quicker); scans that must be quick while many write.

use crate::raw::slot::Slot;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Divisible, Visitor};
use crate::{Cut, Position};
use larder_index::sync::{planted, random, Fault, Mutex, RwLock, RwLockWriteGuard};
use larder_index::{Guard, Start, Stats};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// When a tree adapts.
#[derive(Clone, Copy, Debug)]
pub struct Adaptation {
    /// What a writer counts that had to wait.
    pub contended: i64,
    /// What a writer counts that had not.
    pub quiet: i64,
    /// What a scan counts that goes over the end of a base.
    pub more_than_one: i64,
    /// Beyond this a base is divided.
    pub high: i64,
    /// Below this a base is joined to its neighbour.
    pub low: i64,
    /// A count is at most this, and at least minus this.
    pub clamp: i64,
    /// The most routes one above the other.
    pub depth: usize,
    /// Whether one of 512 writes counts [`RANDOM`] more.
    pub random_join: bool,
}

/// What one of 512 writes counts more.
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

enum Node<S> {
    Route(Route<S>),
    Base(Base<S>),
}

struct Route<S> {
    at: Position,
    kids: [Slot<Node<S>>; 2],
}

struct Base<S> {
    /// A name for those who watch.
    number: u64,
    part: RwLock<Part<S>>,
    contention: AtomicI64,
}

struct Part<S> {
    valid: bool,
    structure: S,
}

/// A contention-adapting tree over sequential structures.
pub struct CaTree<W, S> {
    root: Slot<Node<S>>,
    shape: Mutex<()>,
    adaptation: Adaptation,
    routes: AtomicUsize,
    splits: AtomicU64,
    joins: AtomicU64,
    contended: AtomicU64,
    /// Bases that were made.
    made: AtomicU64,
    watcher: Option<Watcher>,
    words: PhantomData<fn() -> W>,
}

/// A base, and what was met on the way to it.
struct Found<'g, S> {
    base: &'g Base<S>,
    /// The position past which (forward; before which, backward) the next base lies.
    bound: Option<&'g Position>,
}

/// A base and the slots above it, while the shape is locked.
struct Way<'g, S> {
    /// The slot of each route and of the base, from the root down.
    slots: Vec<&'g Slot<Node<S>>>,
    routes: Vec<(&'g Route<S>, usize)>,
}

fn base<S: Send + Sync + 'static>(structure: S, number: u64) -> Arc<Node<S>> {
    Arc::new(Node::Base(Base {
        number,
        part: RwLock::new(Part {
            valid: true,
            structure,
        }),
        contention: AtomicI64::new(0),
    }))
}

/// What lies left and right of a way's end.
fn bounds<'g, S>(way: &Way<'g, S>) -> (Option<&'g [u8]>, Option<&'g [u8]>) {
    let last = |side| {
        let mut above = way.routes.iter().rev();
        above
            .find(|(_, went)| *went == side)
            .map(|(r, _)| &r.at[..])
    };
    (last(1), last(0))
}

/// True one of 512 times.
fn by_chance() -> bool {
    random() >> 55 == 0
}

impl<S> Part<S> {
    /// Takes the structure away; whoever waits for the base begins again.
    fn invalidate<W>(&mut self) -> S
    where
        S: Divisible<W>,
    {
        // Never valid again (invariant 2). An empty structure stays, so that whoever comes late
        // finds nothing to change.
        self.valid = false;
        let empty = self.structure.like();
        std::mem::replace(&mut self.structure, empty)
    }
}

impl<W, S: Divisible<W> + 'static> CaTree<W, S> {
    /// A tree of one base, with this structure.
    pub fn new(structure: S, adaptation: Adaptation) -> Self {
        CaTree {
            root: Slot::new(Some(base(structure, 0))),
            shape: Mutex::new(()),
            adaptation,
            routes: AtomicUsize::new(0),
            splits: AtomicU64::new(0),
            joins: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            made: AtomicU64::new(1),
            watcher: None,
            words: PhantomData,
        }
    }

    /// The number of a new base.
    fn number(&self) -> u64 {
        // Ordering: Relaxed, numbers differ and mean nothing else.
        self.made.fetch_add(1, Relaxed)
    }

    /// Step 1: down the routes, right of those for which `right` answers true.
    fn descend<'g>(
        &'g self,
        guard: &'g Guard,
        forward: bool,
        right: impl Fn(&[u8]) -> bool,
    ) -> Found<'g, S> {
        // No lock: routes never change, and slots only lead to what replaces what was there. A base
        // that is out of date is found invalid under its lock.
        let mut bound = None;
        let mut slot = &self.root;
        loop {
            match slot.load(guard) {
                Some(Node::Route(route)) => {
                    let right = right(&route.at);
                    // The search goes away from where the walk is heading: what lies past this
                    // route comes later. The innermost such route is the one where the next base
                    // begins.
                    if right != forward {
                        bound = Some(&route.at);
                    }
                    slot = &route.kids[usize::from(right)];
                }
                Some(Node::Base(base)) => return Found { base, bound },
                None => unreachable!("slots of a tree are never empty"),
            }
        }
    }

    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> &'g Base<S> {
        self.descend(guard, true, |at| at <= position).base
    }

    /// The way to the base of the position. The shape is locked.
    fn way<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Way<'g, S> {
        let mut way = Way {
            slots: vec![&self.root],
            routes: Vec::new(),
        };
        let mut slot = &self.root;
        while let Some(Node::Route(route)) = slot.load(guard) {
            let side = usize::from(&route.at[..] <= position);
            slot = &route.kids[side];
            way.routes.push((route, side));
            way.slots.push(slot);
        }
        way
    }

    /// Step 4; answers what the count is now.
    fn count(&self, base: &Base<S>, by: i64) -> i64 {
        // Ordering, of both: Relaxed. A count is a hint; writers of one base are one after the
        // other. It is clamped, so that a base that was left alone for long is divided soon after
        // threads meet there.
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
        part: &mut Part<S>,
        waited: bool,
    ) {
        let Adaptation {
            contended, quiet, ..
        } = self.adaptation;
        // The base is valid and locked, so each writer's count is added to the last one's.
        let mut by = if waited { contended } else { quiet };
        if self.adaptation.random_join && by_chance() {
            by += RANDOM;
        }
        let now = self.count(base, by);
        if now > self.adaptation.high {
            self.split(guard, position, base, part);
        } else if now < self.adaptation.low {
            self.join(guard, position, base, part);
        }
    }

    /// Step 5: a route and two bases in place of the base.
    fn split(&self, guard: &Guard, position: &[u8], old: &Base<S>, part: &mut Part<S>) {
        let _shape = self.shape.lock();
        // Ordering: Relaxed, the base is locked.
        let count = old.contention.swap(0, Relaxed);
        let entries = self.entries_told(part);
        let way = self.way(guard, position);
        if way.routes.len() >= self.adaptation.depth {
            return;
        }
        let Some((at, upper)) = part.structure.divide() else {
            return;
        };
        // From here on nothing can refuse: the upper entries are out of the structure already.
        let numbers = [self.number(), self.number()];
        self.tell_split(&way, old, (count, entries), (&at, numbers));
        // The base is locked and invalid until it is replaced: a search that comes to it waits for
        // the lock, and begins again.
        let kids = [(part.invalidate(), numbers[0]), (upper, numbers[1])]
            .map(|(structure, number)| Slot::new(Some(base(structure, number))));
        let route = Node::Route(Route { at, kids });
        // Both bases are whole before the slot leads to them.
        way.slots[way.routes.len()].store(Some(Arc::new(route)), guard);
        // Ordering, of both: Relaxed, figures for people.
        self.routes.fetch_add(1, Relaxed);
        self.splits.fetch_add(1, Relaxed);
    }

    /// Step 5: one base in place of the base and its neighbour, one route less.
    fn join(&self, guard: &Guard, position: &[u8], old: &Base<S>, part: &mut Part<S>) {
        let _shape = self.shape.lock();
        // Ordering: Relaxed, the base is locked.
        let count = old.contention.swap(0, Relaxed);
        let entries = self.entries_told(part);
        let way = self.way(guard, position);
        // The only base has no neighbour.
        let Some(&(parent, side)) = way.routes.last() else {
            return;
        };
        let sibling = &parent.kids[1 - side];
        let Some((slot, other, mut neighbour)) = lock_edge(sibling, side, guard) else {
            // Somebody is at work there: not the time to join.
            return;
        };
        // Both are locked: from here to the unlocking nobody sees one of them without its entries.
        let (mut low, mut high) = (part.invalidate(), neighbour.invalidate());
        if side == 1 {
            std::mem::swap(&mut low, &mut high);
        }
        low.join(high);
        let number = self.number();
        let joined = base(low, number);
        // The parent's slot: what is stored there takes the route out.
        let above = way.slots[way.routes.len() - 1];
        if std::ptr::eq(slot, sibling) {
            above.store(Some(joined), guard);
        } else {
            // First the new base where the neighbour was, then the sibling where the parent was:
            // who comes to `old` meanwhile begins again.
            slot.store(Some(joined), guard);
            above.store(sibling.share(guard), guard);
        }
        self.tell_join(guard, position, (old, other), (count, entries), number);
        // Ordering, of both: Relaxed, figures for people.
        self.routes.fetch_sub(1, Relaxed);
        self.joins.fetch_add(1, Relaxed);
    }

    /// All bases, in order; and the most routes above one.
    fn bases<'g>(&'g self, guard: &'g Guard) -> (Vec<&'g Base<S>>, usize) {
        let (mut bases, mut depth) = (Vec::new(), 0);
        let mut waiting = vec![(&self.root, 0)];
        while let Some((slot, level)) = waiting.pop() {
            match slot.load(guard) {
                Some(Node::Route(route)) => {
                    waiting.extend([(&route.kids[1], level + 1), (&route.kids[0], level + 1)]);
                }
                Some(Node::Base(base)) => bases.push(base),
                None => {}
            }
            depth = depth.max(level);
        }
        (bases, depth)
    }
}

/// A base's slot, its number, and the base locked.
type Edge<'g, S> = (&'g Slot<Node<S>>, u64, RwLockWriteGuard<'g, Part<S>>);

/// The base at one side of a subtree, locked if nobody has it.
fn lock_edge<'g, S: Send + Sync + 'static>(
    top: &'g Slot<Node<S>>,
    side: usize,
    guard: &'g Guard,
) -> Option<Edge<'g, S>> {
    let mut slot = top;
    loop {
        // An attempt, and no wait: the shape is locked (invariant 3).
        match slot.load(guard)? {
            Node::Route(route) => slot = &route.kids[side],
            Node::Base(base) => return Some((slot, base.number, base.part.try_write()?)),
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
            // Only a failed attempt tells that another thread is here.
            let (mut part, waited) = match base.part.try_write() {
                Some(part) => (part, false),
                None => (base.part.write(), true),
            };
            if !part.valid && !planted(Fault::Obsolete) {
                continue;
            }
            if waited {
                // Ordering: Relaxed, a figure for people.
                self.contended.fetch_add(1, Relaxed);
            }
            // (3)
            part.structure
                .change(position, &mut |word| f(word.map_or(Old::Absent, Old::Mine)));
            // (4), (5) The lock is kept: what becomes of the base is decided, and done, before
            // anyone else comes to it.
            self.adapt(guard, position, base, &mut part, waited);
            return waited;
        }
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let mut cut = cut;
        loop {
            let found = self.descend(guard, cut.is_forward(), |at| cut.begins_right_of(at));
            // The entries of one base are read under one lock, so they are of one instant.
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
            // The walk goes over the end of the base: if many do, it should be joined.
            self.count(found.base, self.adaptation.more_than_one);
            // The next base's entries would be of another instant: they are the next batch.
            if visited {
                return false;
            }
            // Nothing was visited, so the walk may go on in the next base: the entries of its batch
            // are still of one instant.
            let start = match cut.is_forward() {
                true => Start::At(bound),
                false => Start::Past(bound),
            };
            cut = Cut::new(start, cut.direction());
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let mut left = limit;
        for base in self.bases(guard).0 {
            // Nobody else comes here any more: no base is divided or joined meanwhile.
            let mut part = base.part.write();
            while left > 0 {
                let Some(word) = part.structure.pop() else {
                    break;
                };
                left -= 1;
                f(word);
            }
            if !part.structure.is_empty() {
                return false;
            }
        }
        true
    }

    fn memory(&self, guard: &Guard) -> usize {
        let (bases, _) = self.bases(guard);
        let structures = bases.iter().map(|base| base.part.read().structure.memory());
        // The sum is right, whatever each says (see `Divisible`).
        let structures = structures.fold(0, usize::wrapping_add);
        // A node has two counts before it; a tree of n bases has n − 1 routes.
        let nodes = (bases.len() * 2 - 1) * (size_of::<Node<S>>() + 16);
        nodes.wrapping_add(structures)
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let (bases, depth) = self.bases(guard);
        Stats {
            leaves: bases.len(),
            depth,
            // Ordering, of these four: Relaxed, figures for people.
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

pub use watch::{Adapted, BaseNow, Watcher};
