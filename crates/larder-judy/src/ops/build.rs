//! Building a subtree from sorted indexes, and collecting the indexes of a subtree.
//!
//! Every change of form that concerns more than one node is made here: collect the indexes, which
//! are a few dozen, and build the new form of them. That happens once in many inserts. So only one
//! place decides which form a subtree has.

use smallvec::SmallVec;

use crate::layout::{digit, mask, Kind};
use crate::raw::jp::branch::Children;
use crate::raw::jp::{Form, Jp, View};
use crate::raw::mem::Mem;

/// Sorted indexes and their values. The values of a set are zeros, so that both kinds are handled
/// alike.
#[derive(Default)]
pub(crate) struct Pile {
    pub(crate) keys: SmallVec<[u64; 64]>,
    pub(crate) values: SmallVec<[u64; 64]>,
}

impl Pile {
    /// Everything below a pair in a slot of level `slot`, whose decoded bytes are those of `path`.
    pub(crate) fn of<K: Kind>(jp: &Jp<K>, slot: usize, path: u64) -> Pile {
        let mut pile = Pile::default();
        pile.gather(jp, slot, path);
        pile
    }

    fn gather<K: Kind>(&mut self, jp: &Jp<K>, slot: usize, path: u64) {
        let (view, k) = jp.view(slot);
        // A narrow pair skips bytes. They are in its field, the others in the path.
        let base = if k < slot {
            jp.base(k, path)
        } else {
            path & !low(k)
        };
        match view {
            View::Null => {}
            // A set has no values. Zeros keep both lists equally long.
            View::Run(run) => run.for_each(|key, value| {
                self.keys.push(base | key);
                self.values.push(value.copied().unwrap_or(0));
            }),
            View::Branch(branch) => {
                for (digit, child) in branch.children() {
                    self.gather(child, k - 1, base | (digit as u64) << (8 * (k - 1)));
                }
            }
        }
    }

    /// Adds an index that is missing, with the value zero.
    pub(crate) fn add(&mut self, key: u64) {
        let at = self.keys.partition_point(|&other| other < key);
        self.keys.insert(at, key);
        self.values.insert(at, 0);
    }

    /// Takes an index out, and returns its value.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u64> {
        let at = self.keys.binary_search(&key).ok()?;
        self.keys.remove(at);
        Some(self.values.remove(at))
    }
}

fn low(k: usize) -> u64 {
    mask(k)
}

/// The highest byte in which two different indexes differ.
pub(crate) fn parting(a: u64, b: u64) -> usize {
    8 - (a ^ b).leading_zeros() as usize / 8
}

/// What these sorted indexes, with their values, are in a slot of level `slot`.
///
/// 1. None, one, or as many as fit go into the pair.
/// 2. The bytes that all share are skipped: what is left may be a linear leaf, or a bitmap leaf.
///    The root is not narrow.
/// 3. Else a branch of the first byte in which they differ.
pub(crate) fn build<K: Kind>(slot: usize, keys: &[u64], values: &[u64], mem: &mut Mem) -> Jp<K> {
    let n = keys.len();
    // 1. What fits into the pair.
    if n == 0 {
        return Jp::NULL;
    }
    if slot < 8 {
        if n == 1 {
            return Jp::one(keys[0], values[0]);
        }
        if Jp::<K>::immed_fits(n, slot) {
            return Jp::immed(slot, keys, values, mem);
        }
    }
    // 2. The root's pair has no field for the eighth byte, so its node always has level 8.
    let k = if slot == 8 {
        8
    } else {
        parting(keys[0], keys[n - 1])
    };
    if n <= K::LEAF_MOST[k] {
        return Jp::leaf(k, keys, values, mem);
    }
    if k == 1 {
        return Jp::dense(keys, values, mem);
    }
    // 3. Neighbours with the same byte go into one child.
    let mut children = Children::new();
    let mut from = 0;
    while from < n {
        let first = digit(keys[from], k);
        let here = keys[from..]
            .iter()
            .take_while(|&&key| digit(key, k) == first)
            .count();
        let to = from + here;
        children.push((first, build(k - 1, &keys[from..to], &values[from..to], mem)));
        from = to;
    }
    Jp::branch(k, keys[0], n as u64, children, mem)
}

/// What these sorted indexes are in a slot: in the pair if they fit, else a linear leaf of level
/// `k`, for which they are few enough.
pub(crate) fn settle<K: Kind>(slot: usize, k: usize, pile: &Pile, mem: &mut Mem) -> Jp<K> {
    let n = pile.keys.len();
    if n < 2 || slot < 8 && Jp::<K>::immed_fits(n, slot) {
        return build(slot, &pile.keys, &pile.values, mem);
    }
    Jp::leaf(k, &pile.keys, &pile.values, mem)
}

/// Gives back everything below a pair that holds no more than a few leaves' indexes, and leaves
/// nothing.
pub(crate) fn drop_small<K: Kind>(jp: &mut Jp<K>, mem: &mut Mem) {
    if !matches!(jp.form(), Form::Linear(_) | Form::Bitmap(_) | Form::Wide(_)) {
        return jp.drop_run(mem);
    }
    let mut children = Children::new();
    // The branch is given back before its children are, since it only has their pairs.
    jp.dismantle(mem, |digit, child| children.push((digit, child)));
    children
        .iter_mut()
        .for_each(|(_, child)| drop_small(child, mem));
}
