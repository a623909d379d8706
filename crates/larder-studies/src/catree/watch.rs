//! Observing the adaptation of a tree: splits and joins of its bases, and the state of all bases at
//! some time. This is for measurements and drawings. Otherwise it costs no more than one number per
//! base.
//!
//! Each base has a number. The first base has the number 0, and a base that replaces another one
//! has a new number.

use super::{bounds, Base, BasePath, CaTree, CaTreeNode};
use crate::sequential::Divisible;
use crate::Position;
use larder_index::Guard;
use std::sync::atomic::Ordering::Relaxed;

/// A base that was split, or two bases that were joined.
#[derive(Debug)]
pub struct Adapted<'t> {
    /// The base whose contention count has passed a limit.
    pub base: u64,
    /// Its neighbour, if the two were joined.
    pub with: Option<u64>,
    /// The numbers of the one or two bases that replace them.
    pub becomes: &'t [u64],
    /// The lower end of their range, included; `None` for the first base.
    pub from: Option<&'t [u8]>,
    /// The upper end of their range, excluded; `None` for the last base.
    pub to: Option<&'t [u8]>,
    /// The position at which the base was split.
    pub at: Option<&'t [u8]>,
    /// The contention count when it passed the limit.
    pub count: i64,
    /// The number of entries of the base, without its neighbour's.
    pub entries: usize,
}

/// What was measured of a base before it is adapted; see [`Adapted`].
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) count: i64,
    pub(super) entries: usize,
}

/// The state of a base at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseNow {
    /// Its number.
    pub base: u64,
    /// The lower end of its range, included; `None` for the first base.
    pub from: Option<Position>,
    /// The number of routes above it.
    pub depth: usize,
    /// Its contention count.
    pub count: i64,
    /// The number of its entries.
    pub entries: usize,
}

/// A callback for each adaptation. It is called by the thread that makes the adaptation, while the
/// shape of the tree is locked. So it must be short, and must not use the tree.
pub type Watcher = Box<dyn Fn(&Adapted<'_>) + Send + Sync>;

impl<W, S: Divisible<W> + 'static> CaTree<W, S> {
    /// The same tree, with a watcher that is called for each adaptation.
    pub fn watched(mut self, watcher: Watcher) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// The state of all bases in the order of their positions, each as of its own instant. Takes
    /// time linear in their number, and waits for each base's writer.
    pub fn bases_now(&self, guard: &Guard) -> Vec<BaseNow> {
        let mut bases = Vec::new();
        // Each waiting slot, with the least position below it, which is that of the last route at
        // which the descent went right.
        let mut waiting = vec![(&self.root, None::<&Position>, 0)];
        while let Some((slot, from, depth)) = waiting.pop() {
            match slot.load(guard) {
                Some(CaTreeNode::Route(route)) => {
                    waiting.push((&route.kids[1], Some(&route.at), depth + 1));
                    waiting.push((&route.kids[0], from, depth + 1));
                }
                Some(CaTreeNode::Base(base)) => bases.push(BaseNow {
                    base: base.number,
                    from: from.cloned(),
                    depth,
                    // Ordering: Relaxed, a statistic.
                    count: base.contention.load(Relaxed),
                    entries: base.part.read().structure.len(),
                }),
                None => {}
            }
        }
        bases
    }

    /// The number of entries of a base, for the watcher. Without a watcher returns 0, since the
    /// entries may have to be counted.
    pub(super) fn entries_for_watcher(&self, part: &super::BaseContent<S>) -> usize {
        match &self.watcher {
            Some(_) => part.structure.len(),
            None => 0,
        }
    }

    /// Tells the watcher about a base that was split at `at`. The shape is locked. `path` is the
    /// path to the base before the split.
    pub(super) fn tell_split(
        &self,
        path: &BasePath<'_, S>,
        old: &Base<S>,
        measured: Measured,
        at: &[u8],
        becomes: [u64; 2],
    ) {
        if let Some(watcher) = &self.watcher {
            let (from, to) = bounds(path);
            watcher(&Adapted {
                base: old.number,
                with: None,
                becomes: &becomes,
                from,
                to,
                at: Some(at),
                count: measured.count,
                entries: measured.entries,
            });
        }
    }

    /// Tells the watcher about two bases that were joined. The shape is locked, and already has the
    /// new base.
    pub(super) fn tell_join(
        &self,
        guard: &Guard,
        position: &[u8],
        old: &Base<S>,
        neighbour: u64,
        measured: Measured,
        becomes: u64,
    ) {
        if let Some(watcher) = &self.watcher {
            let path = self.path(guard, position);
            let (from, to) = bounds(&path);
            watcher(&Adapted {
                base: old.number,
                with: Some(neighbour),
                becomes: &[becomes],
                from,
                to,
                at: None,
                count: measured.count,
                entries: measured.entries,
            });
        }
    }
}
