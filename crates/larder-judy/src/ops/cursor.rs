//! Going through a tree in order, without a new descent for each index.

use smallvec::SmallVec;

use super::seek::{with_digit, Found};
use super::ROOT;
use crate::layout::{digit, mask, Kind};
use crate::raw::jp::branch::Branch;
use crate::raw::jp::{Jp, Run, View};

/// A branch on the path from the root, and the byte that was followed there.
struct Step<'a, K> {
    branch: Branch<'a, K>,
    k: usize,
    path: u64,
    byte: u8,
}

/// The run that the cursor is in.
struct Here<'a, K> {
    run: Run<'a, K>,
    base: u64,
    /// The place of the next index; in a bitmap leaf its last byte or more. Nothing when the run is
    /// done.
    next: Option<usize>,
}

/// A place between the indexes of a tree, which moves upwards or downwards.
pub(crate) struct Cursor<'a, K, const UP: bool> {
    steps: SmallVec<[Step<'a, K>; 8]>,
    here: Option<Here<'a, K>>,
}

impl<'a, K: Kind, const UP: bool> Cursor<'a, K, UP> {
    /// A cursor that begins at `key`, itself included.
    pub(crate) fn from(root: &'a Jp<K>, key: u64) -> Self {
        let mut cursor = Cursor {
            steps: SmallVec::new(),
            here: None,
        };
        cursor.descend(root, ROOT, key, true);
        cursor
    }

    /// Goes down from a slot, to `key` if `exact`, else to the slot's edge; `key` gives the bytes
    /// above the slot.
    fn descend(&mut self, jp: &'a Jp<K>, slot: usize, key: u64, exact: bool) {
        let (mut jp, mut slot, mut path, mut exact) = (jp, slot, key, exact);
        loop {
            // Bytes that the pair skips are compared first.
            let (view, k) = jp.view(slot);
            if k < slot {
                let base = jp.base(k, path);
                // The whole subtree lies on one side of the key. If it is the far side, its edge
                // comes next.
                if exact && jp.strays(k, path) {
                    if (base > path) != UP {
                        return;
                    }
                    exact = false;
                }
                path = base | (path & mask(k));
            }
            // From here on the nearest index is the subtree's edge: all remaining bytes are the
            // least, or the greatest.
            if !exact {
                path = path & !mask(k) | if UP { 0 } else { mask(k) };
            }
            match view {
                View::Null => return,
                View::Run(run) => {
                    let next = first_place::<UP, K>(&run, path & mask(k));
                    self.here = Some(Here {
                        run,
                        base: path & !mask(k),
                        next,
                    });
                    return;
                }
                View::Branch(branch) => {
                    // The nearest child in the direction. Only the key's own child is entered
                    // exactly.
                    let Some((byte, child)) = branch.seek::<UP>(digit(path, k)) else {
                        return;
                    };
                    exact &= byte == digit(path, k);
                    self.steps.push(Step {
                        branch,
                        k,
                        path,
                        byte,
                    });
                    path = with_digit(path, k, byte);
                    (jp, slot) = (child, k - 1);
                }
            }
        }
    }

    /// The next index.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Found<'a>> {
        loop {
            // The run at hand usually has more. Then nothing is climbed.
            if let Some(found) = self.here.as_mut().and_then(Here::step::<UP>) {
                return Some(found);
            }
            self.here = None;
            // Climb to the lowest branch that has a child beyond the one that was left.
            let step = self.steps.last_mut()?;
            let Some((byte, child)) = step.branch.beyond::<UP>(step.byte) else {
                self.steps.pop();
                continue;
            };
            step.byte = byte;
            let (path, slot) = (with_digit(step.path, step.k, byte), step.k - 1);
            self.descend(child, slot, path, false);
        }
    }
}

/// Where a run goes on from an index given by its low bytes.
fn first_place<const UP: bool, K: Kind>(run: &Run<'_, K>, low: u64) -> Option<usize> {
    // In a bitmap the place is the last byte itself, whether it is there or not.
    if let Run::Bits(_) = run {
        return Some(low as usize);
    }
    match run.search(low) {
        Ok(at) => Some(at),
        // Upwards the next greater index is at the place of the insertion. Downwards the one before
        // it is next.
        Err(at) if UP => Some(at),
        Err(at) => at.checked_sub(1),
    }
}

impl<'a, K: Kind> Here<'a, K> {
    #[inline]
    fn step<const UP: bool>(&mut self) -> Option<Found<'a>> {
        let at = self.next?;
        let (at, low, value) = match &self.run {
            // A bitmap finds its next index by its bits. Other runs have it at the next place.
            Run::Bits(bits) => {
                let (low, value) = bits.seek::<UP>(u8::try_from(at).ok()?)?;
                (low as usize, low, value)
            }
            run if at < run.len() => (at, run.key(at), run.value(at)),
            _ => return None,
        };
        self.next = if UP { Some(at + 1) } else { at.checked_sub(1) };
        Some((self.base | low, value))
    }
}
