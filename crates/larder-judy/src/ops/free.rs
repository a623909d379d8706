//! Freeing a tree, all at once or in slices.

use crate::layout::Kind;
use crate::raw::jp::{Form, Jp};
use crate::raw::mem::Mem;

/// A stack of subtrees that wait to be freed. Freeing a branch pushes its children, and the last of
/// them is freed next. So the stack has at most 256 subtrees for each level of a word array. In a
/// string array, freeing a run also pushes the arrays below its words. Then the stack has at most
/// 256 subtrees for each level of each array on one path.
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

    /// Frees at most `limit` nodes. Returns their number, which is less only if nothing is left.
    /// Before it frees a run, it calls `each` with the run and the stack, so that `each` can push
    /// what the run's values lead to.
    pub(crate) fn free(
        &mut self,
        limit: usize,
        mem: &mut Mem,
        mut each: impl FnMut(&Jp<K>, &mut Vec<Jp<K>>, &mut Mem),
    ) -> usize {
        // Each slice pops some pairs of the stack.
        let mut nodes = 0;
        while nodes < limit {
            let Some(mut jp) = self.pairs.pop() else {
                break;
            };
            nodes += 1;
            match jp.form() {
                // Push the children of the branch, and free its block.
                Form::Linear(_) | Form::Bitmap(_) | Form::Wide(_) => {
                    jp.dismantle(mem, |_, child| self.pairs.push(child));
                }
                _ => {
                    each(&jp, &mut self.pairs, mem);
                    jp.drop_run(mem);
                }
            }
        }
        // If nothing is left, free the stack's own memory, too.
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
