//! Giving a tree's memory back, all at once or in slices.

use crate::layout::Kind;
use crate::raw::jp::{Form, Jp};
use crate::raw::mem::Mem;

/// Subtrees to be given back. Taking a branch apart puts its children here, the last of which goes
/// next: so of a word array it holds 256 for each level at most. Taking a run of a string array
/// apart puts the arrays below its words here: then it is 256 for each level of each array on the
/// way down.
pub(crate) struct Doomed<K> {
    pairs: Vec<Jp<K>>,
}

impl<K: Kind> Doomed<K> {
    pub(crate) const fn new() -> Self {
        Doomed { pairs: Vec::new() }
    }

    /// Adds a subtree.
    pub(crate) fn add(&mut self, jp: Jp<K>) {
        if !jp.is_null() {
            self.pairs.push(jp);
        }
    }

    /// Gives back at most `limit` nodes, and says how many it were: fewer only when nothing is
    /// left. Calls `each` with the runs, before they go, and with the subtrees still to be given
    /// back, to add what the runs' values lead to.
    pub(crate) fn free(
        &mut self,
        limit: usize,
        mem: &mut Mem,
        mut each: impl FnMut(&Jp<K>, &mut Vec<Jp<K>>, &mut Mem),
    ) -> usize {
        // The stack has the pairs that are still to be given back. A slice takes some of them off.
        let mut nodes = 0;
        while nodes < limit {
            let Some(mut jp) = self.pairs.pop() else {
                break;
            };
            nodes += 1;
            match jp.form() {
                // A branch's children go onto the stack, and its block is given back.
                Form::Linear(_) | Form::Bitmap(_) | Form::Wide(_) => {
                    jp.dismantle(mem, |_, child| self.pairs.push(child));
                }
                _ => {
                    each(&jp, &mut self.pairs, mem);
                    jp.drop_run(mem);
                }
            }
        }
        // Nothing is left, so the stack's own memory goes, too.
        if self.pairs.is_empty() {
            self.pairs = Vec::new();
        }
        nodes
    }

    /// Whether nothing is left to give back.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}
