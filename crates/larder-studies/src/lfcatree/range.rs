//! Walks over more than one leaf, as of one instant.
//!
//! ```text
//!   leaf 1 is loaded, and visited        1 |-------------------------------|
//!   leaf 2 is loaded                                  2 |------------------|
//!   leaf 1 is looked at again: it is what it was           ^ so at this time both were there
//! ```
//!
//! Leaves never change, so that a slot which still has its leaf had it all the while, and what it
//! covers, too. A walk that finds that an earlier leaf was replaced meanwhile ends its batch there,
//! or begins again if it has met no entry. A range that was asked for as a whole is read again, and
//! after some tries its leaves are frozen for as long as it takes to load them all: writers of
//! these wait that long, nobody else does.

use super::{freeze, Found, LfCaTree, Node};
use crate::pure::{self, Entry};
use crate::raw::slot::Slot;
use crate::sequential::Visitor;
use crate::word::Word;
use crate::Cut;
use larder_index::sync::atomic::{fence, Ordering};
use larder_index::{Guard, Start};
use smallvec::SmallVec;

/// How a walk came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    /// Nothing follows.
    ToTheEnd,
    /// The visitor had enough.
    Enough,
    /// What follows is not of the same instant.
    Torn,
}

/// A slot, and the leaf that it had.
type Seen<'g, W> = (&'g Slot<Node<W>>, &'g Node<W>);

/// Times that a range is read before its leaves are frozen, and a walk that has met no entry before
/// it looks at the leaves without any but once.
pub(super) const TRIES: usize = 16;

/// The cut where the next leaf begins.
fn after<'b>(bound: &'b [u8], cut: Cut<'_>) -> Cut<'b> {
    let start = match cut.is_forward() {
        true => Start::At(bound),
        false => Start::Past(bound),
    };
    Cut::new(start, cut.direction())
}

/// Whether these slots still have the leaves that they had when another was loaded.
fn are_still<W: Word>(before: &[Seen<'_, W>], guard: &Guard) -> bool {
    // Ordering: SeqCst fence, the looks come after the load of the last leaf for every thread.
    fence(Ordering::SeqCst);
    before.iter().all(|(slot, node)| {
        let (now, frozen) = slot.load_marked(guard);
        !frozen && now.is_some_and(|now| std::ptr::eq(now, *node))
    })
}

impl<W: Word> LfCaTree<W> {
    fn leaf_at<'g>(&'g self, guard: &'g Guard, cut: Cut<'_>) -> Found<'g, W> {
        self.descend(guard, false, cut.is_forward(), |at| cut.begins_right_of(at))
    }

    /// Visits entries from the cut on, all as of one instant; `strict`: an instant at which there
    /// were none before them, either. Otherwise each leaf without entries that was passed before
    /// the first one had none at some time of the walk.
    pub(super) fn walk_once<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        strict: bool,
        f: &mut dyn FnMut(&'g Entry<W>) -> bool,
    ) -> Walked {
        let mut before: SmallVec<[Seen<'g, W>; 8]> = SmallVec::new();
        // Whether a leaf that was replaced ends the walk.
        let (mut bound_to, mut at): (bool, Option<&'g [u8]>) = (strict, None);
        loop {
            // Each leaf is found from the root: the one before may have been replaced meanwhile,
            // and the routes with it.
            let cut = at.map_or(cut, |bound| after(bound, cut));
            let found = self.leaf_at(guard, cut);
            let (mut looked, mut end) = (false, None);
            pure::walk(&found.leaf.tree, cut, &mut |entry| {
                if !looked {
                    looked = true;
                    // A leaf that is frozen may have been replaced already, by a join that took its
                    // route out.
                    let same = before.is_empty() || !found.frozen && are_still(&before, guard);
                    if !same && bound_to {
                        end = Some(Walked::Torn);
                        return false;
                    }
                    // Not bound to the leaves without entries that were passed: the instant of the
                    // batch is that of this leaf.
                    if !same {
                        before.clear();
                    }
                    bound_to = true;
                }
                if !f(entry) {
                    end = Some(Walked::Enough);
                }
                end.is_none()
            });
            if let Some(end) = end {
                return end;
            }
            // The leaf is wholly visited, or has nothing from the cut on.
            before.push((found.slot, found.node));
            match found.bound {
                Some(bound) => at = Some(bound),
                None if bound_to && before.len() > 1 && !are_still(&before, guard) => {
                    return Walked::Torn
                }
                None => return Walked::ToTheEnd,
            }
        }
    }

    /// Calls `f` with the entries from the cut on, in order, until it answers false or `past` says
    /// of a position that it lies past the range: all as of one instant, however many leaves they
    /// lie in. Stops no writer, unless writers of these leaves made it begin again many times: then
    /// they wait until all leaves are loaded. Answers whether the range's end was reached.
    pub fn range<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        past: &dyn Fn(&[u8]) -> bool,
        f: &mut Visitor<'_, W>,
    ) -> bool {
        self.keys.settle_all();
        // Entries are borrowed from leaves that don't change, and shown only when all of them are
        // known to be of one instant.
        let mut visited = Vec::new();
        let take = |visited: &mut Vec<_>, entry: &'g Entry<W>| {
            let inside = !past(&entry.position);
            if inside {
                visited.push(entry);
            }
            inside
        };
        let torn = |visited: &mut Vec<_>| {
            visited.clear();
            self.walk_once(guard, cut, true, &mut |entry| take(visited, entry)) == Walked::Torn
        };
        // Writers of these leaves were quicker each time: they are made to wait.
        if (0..TRIES).all(|_| torn(&mut visited)) {
            visited.clear();
            for leaf in self.frozen_leaves(guard, cut, past) {
                pure::walk(&leaf.tree, cut, &mut |entry| take(&mut visited, entry));
            }
        }
        visited
            .into_iter()
            .all(|entry| f(&entry.position, &entry.word))
    }

    /// The leaves from the cut to the end of the range, as of the instant when all of them were
    /// frozen.
    pub(super) fn frozen_leaves<'g>(
        &'g self,
        guard: &'g Guard,
        cut: Cut<'_>,
        past: &dyn Fn(&[u8]) -> bool,
    ) -> Vec<&'g super::Leaf<W>> {
        // No other thread freezes, so none of these slots is marked by anyone else (invariant 3),
        // and no route goes.
        let _joins = self.joins.lock();
        let mut frozen: Vec<(&Slot<Node<W>>, &super::Leaf<W>)> = Vec::new();
        let mut at: Option<&[u8]> = None;
        loop {
            let found = self.leaf_at(guard, at.map_or(cut, |bound| after(bound, cut)));
            // A writer was quicker: the leaf is looked for again.
            let Some(leaf) = freeze(found.slot, guard) else {
                continue;
            };
            frozen.push((found.slot, leaf));
            match found.bound {
                Some(bound) if !past(bound) => at = Some(bound),
                _ => break,
            }
        }
        // All are frozen at once here: this is the instant. A store of the same leaf lets writers
        // in again.
        for (slot, _) in &frozen {
            slot.store(slot.share(guard), guard);
        }
        frozen.into_iter().map(|(_, leaf)| leaf).collect()
    }
}
