//! Walks over several leaves at one instant.
//!
//! ```text
//!   load leaf 1, and visit it        1 |-------------------------------|
//!   load leaf 2                                   2 |------------------|
//!   load leaf 1 again: unchanged                        ^ at this instant both were current
//! ```
//!
//! Leaves are immutable, and the guard prevents the reuse of their addresses. So if a slot still
//! has the same leaf, the leaf was current all the time. If a walk finds that an earlier leaf has
//! been replaced, it ends its batch there, or starts again if it has visited no entry. A range must
//! be read as a whole, so it is read again. After some attempts its leaves are frozen until all are
//! loaded. Only writers of these leaves wait then.

use super::{freeze, FoundLeaf, LfCaTree, LfCaTreeNode};
use crate::persistent_tree;
use crate::position::Entry;
use crate::raw::slot::Slot;
use crate::sequential::Visitor;
use crate::word::Word;
use crate::Cut;
use larder_index::sync::atomic::{fence, Ordering};
use larder_index::{Guard, Start};
use smallvec::SmallVec;

/// The reason why a walk has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    /// There are no more entries.
    ToTheEnd,
    /// The visitor has returned `false`.
    Enough,
    /// The next entries would be of another instant.
    Torn,
}

/// A slot, and the leaf that was loaded from it.
type Seen<'g, W> = (&'g Slot<LfCaTreeNode<W>>, &'g LfCaTreeNode<W>);

/// The number of attempts of a strict walk. After that, the leaves of a range are frozen, and a
/// scan walks without `strict`.
pub(super) const TRIES: usize = 16;

/// The cut at which the walk continues in the next leaf.
fn after<'b>(bound: &'b [u8], cut: Cut<'_>) -> Cut<'b> {
    let start = match cut.is_forward() {
        true => Start::At(bound),
        false => Start::Past(bound),
    };
    Cut::new(start, cut.direction())
}

/// Whether these slots still have their leaves, at an instant after the last leaf was loaded.
fn are_still<W: Word>(before: &[Seen<'_, W>], guard: &Guard) -> bool {
    // Ordering: SeqCst fence. The loads below come after the load of the last leaf.
    fence(Ordering::SeqCst);
    before.iter().all(|(slot, node)| {
        let (now, frozen) = slot.load_marked(guard);
        !frozen && now.is_some_and(|now| std::ptr::eq(now, *node))
    })
}

impl<W: Word> LfCaTree<W> {
    fn leaf_at<'g>(&'g self, guard: &'g Guard, cut: Cut<'_>) -> FoundLeaf<'g, W> {
        self.descend(guard, false, cut.is_forward(), |at| cut.begins_right_of(at))
    }

    /// Visits entries from the cut on, all at one instant. If `strict` is set, there were no
    /// entries before them at that instant. Otherwise each leaf that was passed before the first
    /// entry was empty at some instant of the walk.
    pub(super) fn walk_once<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        strict: bool,
        f: &mut dyn FnMut(&'g Entry<W>) -> bool,
    ) -> Walked {
        let mut before: SmallVec<[Seen<'g, W>; 8]> = SmallVec::new();
        // Whether the walk ends if a leaf of `before` has been replaced.
        let (mut must_be_consistent, mut at): (bool, Option<&'g [u8]>) = (strict, None);
        loop {
            // Descend from the root to each leaf, since routes may have been replaced.
            let cut = at.map_or(cut, |bound| after(bound, cut));
            let found = self.leaf_at(guard, cut);
            let (mut looked, mut end) = (false, None);
            persistent_tree::walk(&found.leaf.tree, cut, &mut |entry| {
                if !looked {
                    looked = true;
                    // This is the first entry of the leaf. Check the leaves before it. A frozen
                    // leaf may already have been replaced, by a join that has removed its route.
                    let same = before.is_empty() || !found.frozen && are_still(&before, guard);
                    if !same && must_be_consistent {
                        end = Some(Walked::Torn);
                        return false;
                    }
                    // Not strict, and only empty leaves were passed. So the batch begins with this
                    // leaf, at its instant.
                    if !same {
                        before.clear();
                    }
                    must_be_consistent = true;
                }
                if !f(entry) {
                    end = Some(Walked::Enough);
                }
                end.is_none()
            });
            if let Some(end) = end {
                return end;
            }
            // All entries of the leaf were visited. Continue with the next one.
            before.push((found.slot, found.node));
            match found.bound {
                Some(bound) => at = Some(bound),
                None if must_be_consistent && before.len() > 1 && !are_still(&before, guard) => {
                    return Walked::Torn
                }
                None => return Walked::ToTheEnd,
            }
        }
    }

    /// Calls `f` with the entries from the cut on, in order, until `f` returns `false`, or `past`
    /// returns `true` for a position, which is then past the range. All entries are as of one
    /// instant, in however many leaves they are. Writers don't wait, unless writers of these leaves
    /// have made the range start again many times. Then they wait until all leaves are loaded.
    /// Returns whether the end of the range was reached.
    pub fn range<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        past: &dyn Fn(&[u8]) -> bool,
        f: &mut Visitor<'_, W>,
    ) -> bool {
        // Wait for changes in progress, as all scans of this structure do.
        self.keys.settle_all();
        // Collect references to entries, which the guard keeps. They are passed to `f` only when
        // all are known to be of one instant.
        let mut visited = Vec::new();
        let take = |visited: &mut Vec<_>, entry: &'g Entry<W>| {
            let inside = !past(&entry.position);
            if inside {
                visited.push(entry);
            }
            inside
        };
        // One attempt: collects the entries of all leaves, and checks afterwards that none was
        // replaced.
        let torn = |visited: &mut Vec<_>| {
            visited.clear();
            self.walk_once(guard, cut, true, &mut |entry| take(visited, entry)) == Walked::Torn
        };
        // All attempts have failed. Freeze the leaves, so that writers wait.
        if (0..TRIES).all(|_| torn(&mut visited)) {
            visited.clear();
            for leaf in self.frozen_leaves(guard, cut, past) {
                persistent_tree::walk(&leaf.tree, cut, &mut |entry| take(&mut visited, entry));
            }
        }
        visited
            .into_iter()
            .all(|entry| f(&entry.position, &entry.word))
    }

    /// The leaves from the cut to the end of the range, at an instant at which all of them were
    /// frozen.
    pub(super) fn frozen_leaves<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        past: &dyn Fn(&[u8]) -> bool,
    ) -> Vec<&'g super::Leaf<W>> {
        // Only this thread freezes slots and removes routes meanwhile (LF3).
        let _joins = self.joins.lock();
        let mut frozen: Vec<(&Slot<LfCaTreeNode<W>>, &super::Leaf<W>)> = Vec::new();
        let mut at: Option<&[u8]> = None;
        loop {
            let found = self.leaf_at(guard, at.map_or(cut, |bound| after(bound, cut)));
            // If a writer has replaced the leaf, find it again.
            let Some(leaf) = freeze(found.slot, guard) else {
                continue;
            };
            frozen.push((found.slot, leaf));
            match found.bound {
                Some(bound) if !past(bound) => at = Some(bound),
                _ => break,
            }
        }
        // All leaves are frozen now: this is the instant. Unfreeze them, by storing them without
        // the mark.
        for (slot, _) in &frozen {
            slot.store(slot.share(guard), guard);
        }
        frozen.into_iter().map(|(_, leaf)| leaf).collect()
    }
}
