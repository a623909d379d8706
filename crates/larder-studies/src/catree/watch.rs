//! A tree's adaptation, seen from outside: what happens to its bases, and how they are at a time.
//! For those who measure and draw; nobody else pays more than a number a base.
//!
//! Each base has a number: 0 is the first, and whatever takes a base's place has a new one.

use super::{bounds, Base, CaTree, Node, Way};
use crate::sequential::Divisible;
use crate::Position;
use larder_index::Guard;
use std::sync::atomic::Ordering::Relaxed;

/// A base that was divided, or two that were joined.
#[derive(Debug)]
pub struct Adapted<'t> {
    /// The base whose count went over a limit.
    pub base: u64,
    /// Its neighbour, if the two were joined.
    pub with: Option<u64>,
    /// What took their place: one base, or two.
    pub becomes: &'t [u64],
    /// All positions of these are at or past this one; none where they begin with the first of all.
    pub from: Option<&'t [u8]>,
    /// And before this one; none where they end with the last of all.
    pub to: Option<&'t [u8]>,
    /// Where two bases meet that were one.
    pub at: Option<&'t [u8]>,
    /// The count when it went over.
    pub count: i64,
    /// Entries of the base (without its neighbour's).
    pub entries: usize,
}

/// A base at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseNow {
    /// Its number.
    pub base: u64,
    /// Its positions are at or past this one; none for the first base.
    pub from: Option<Position>,
    /// Routes above it.
    pub depth: usize,
    /// Its count of contention.
    pub count: i64,
    /// Its entries.
    pub entries: usize,
}

/// What is told of each adaptation, by the thread that does it, while the shape of the tree is
/// locked: it must be short and must not call the tree.
pub type Watcher = Box<dyn Fn(&Adapted<'_>) + Send + Sync>;

impl<W, S: Divisible<W> + 'static> CaTree<W, S> {
    /// The same tree, whose adaptations the watcher is told of.
    pub fn watched(mut self, watcher: Watcher) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// All bases in the order of their positions, each as of its own instant. Linear in their
    /// number; waits for each base's writer.
    pub fn bases_now(&self, guard: &Guard) -> Vec<BaseNow> {
        let mut bases = Vec::new();
        let mut waiting = vec![(&self.root, None::<&Position>, 0)];
        while let Some((slot, from, depth)) = waiting.pop() {
            match slot.load(guard) {
                Some(Node::Route(route)) => {
                    waiting.push((&route.kids[1], Some(&route.at), depth + 1));
                    waiting.push((&route.kids[0], from, depth + 1));
                }
                Some(Node::Base(base)) => bases.push(BaseNow {
                    base: base.number,
                    from: from.cloned(),
                    depth,
                    // Ordering: Relaxed, a figure for people.
                    count: base.contention.load(Relaxed),
                    entries: base.part.read().structure.len(),
                }),
                None => {}
            }
        }
        bases
    }

    /// The entries of a base, for whoever is told of what becomes of it. They may have to be
    /// counted: 0 if nobody is told.
    pub(super) fn entries_told(&self, part: &super::Part<S>) -> usize {
        match &self.watcher {
            Some(_) => part.structure.len(),
            None => 0,
        }
    }

    /// Tells of a base that was divided at `at`. The shape is locked; `way` is that of before.
    pub(super) fn tell_split(
        &self,
        way: &Way<'_, S>,
        old: &Base<S>,
        (count, entries): (i64, usize),
        (at, becomes): (&[u8], [u64; 2]),
    ) {
        if let Some(watcher) = &self.watcher {
            let (from, to) = bounds(way);
            watcher(&Adapted {
                base: old.number,
                with: None,
                becomes: &becomes,
                from,
                to,
                at: Some(at),
                count,
                entries,
            });
        }
    }

    /// Tells of two bases that were joined. The shape is locked, and as it is now.
    pub(super) fn tell_join(
        &self,
        guard: &Guard,
        position: &[u8],
        (old, neighbour): (&Base<S>, u64),
        (count, entries): (i64, usize),
        becomes: u64,
    ) {
        if let Some(watcher) = &self.watcher {
            let way = self.way(guard, position);
            let (from, to) = bounds(&way);
            watcher(&Adapted {
                base: old.number,
                with: Some(neighbour),
                becomes: &[becomes],
                from,
                to,
                at: None,
                count,
                entries,
            });
        }
    }
}
