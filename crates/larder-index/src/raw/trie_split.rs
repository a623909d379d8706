//! How a leaf of the trie splits.
//!
//! 1. The leaf's positions first differ in bit C. Two leaves of depth C+1 get them; bits between the leaf's depth and C that all
//!    positions share get an empty leaf each for the other side.
//! 2. Leaves that are deeper than the node reaches go to new nodes below it, which are complete before they can be reached.
//! 3. The old leaf is marked obsolete; then its slots are stored to; then it is retired.

use super::leaf::{Locked, NewLeaf};
use super::slot::Address;
use super::trie::{bit, lead, point, prefix, slots_of, Node, Trie, BITS};
use crate::route::Shared;
use crate::run::Run;
use crossbeam_epoch::Guard;
use std::ops::Range;

/// A leaf that is to be, with the bits that lead to it.
struct Part {
    lead: Vec<u8>,
    depth: usize,
    leaf: NewLeaf,
}

/// How many leading bits two positions share, padded with zeros.
pub(super) fn common_bits(a: &[u8], b: &[u8]) -> usize {
    let longest = a.len().max(b.len());
    for i in 0..longest {
        let byte = |p: &[u8]| p.get(i).copied().unwrap_or(0);
        let differ = byte(a) ^ byte(b);
        if differ != 0 {
            return i * 8 + differ.leading_zeros() as usize;
        }
    }
    longest * 8
}

fn part(shared: &Shared, run: &Run, range: Range<usize>, lead: Vec<u8>, depth: usize) -> Part {
    let prefix = prefix(&lead, depth);
    let need = run.sizes(range.clone(), prefix.len());
    let leaf = NewLeaf::build(run, range, shared.config.capacity(need), prefix, depth);
    Part { lead, depth, leaf }
}

/// The leaves that take the place of one of this depth (step 1).
fn parts(shared: &Shared, run: &Run, depth: usize) -> Vec<Part> {
    let (first, last) = (run.position(0), run.position(run.len() - 1));
    let common = common_bits(first, last);
    let mut parts = Vec::new();
    for depth in depth + 1..=common {
        let mut other = lead(first, depth, 0);
        other[(depth - 1) / 8] ^= 1 << (7 - (depth - 1) % 8);
        parts.push(part(shared, run, 0..0, other, depth));
    }
    let cut = (0..run.len())
        .find(|&i| bit(run.position(i), common))
        .unwrap_or(run.len());
    parts.push(part(
        shared,
        run,
        0..cut,
        lead(first, common + 1, 0),
        common + 1,
    ));
    parts.push(part(
        shared,
        run,
        cut..run.len(),
        lead(last, common + 1, 0),
        common + 1,
    ));
    parts
}

/// A node on `level` for the parts, all of which are deeper than the level above (step 2).
///
/// Works from the deepest level up: the parts of a level, and one slot for the node below it.
fn build(shared: &Shared, mut parts: Vec<Part>, level: usize) -> Address<Node> {
    let deepest = parts.iter().map(|p| p.depth).max().unwrap_or(1);
    let mut below: Option<(Vec<u8>, Address<Node>)> = None;
    for level in (level..=(deepest - 1) / BITS).rev() {
        let node = Node::unset();
        if let Some((lead, address)) = below.take() {
            node.slots[super::trie::bits(&lead, level * BITS, 0)].store(address);
        }
        let mut lead_here = Vec::new();
        let first = parts.partition_point(|p| p.depth <= level * BITS);
        for part in parts.drain(first..) {
            lead_here.clone_from(&part.lead);
            let slots = slots_of(&part.lead, level, part.depth);
            shared.counters.leaf_came(part.leaf.memory());
            let address = Address::of_new(part.leaf);
            slots.for_each(|i| node.slots[i].store(address));
        }
        shared.counters.node_came(size_of::<Node>());
        below = Some((lead_here, Address::of_node(node)));
    }
    below.expect("there is at least one level").1
}

/// Splits the leaf: `run` is what its successors have.
pub(super) fn split(
    trie: &Trie,
    shared: &Shared,
    leaf: Locked<'_>,
    position: &[u8],
    run: &Run,
    guard: &Guard,
) {
    let old = leaf.leaf();
    let path = trie.path(position, guard);
    let mut parts = parts(shared, run, old.depth());
    // The node that has the leaf takes the parts that it reaches; parts are sorted by depth.
    let reach = path.len() * BITS;
    let deep = parts.split_off(parts.partition_point(|p| p.depth <= reach));
    let mut stores: Vec<(Range<usize>, Address<Node>)> = Vec::new();
    if let Some(first) = deep.first() {
        let slots = match path.len() {
            0 => 0..1,
            n => slots_of(&first.lead, n - 1, reach),
        };
        stores.push((slots, build(shared, deep, path.len())));
    }
    for part in parts {
        let slots = slots_of(&part.lead, path.len() - 1, part.depth);
        shared.counters.leaf_came(part.leaf.memory());
        stores.push((slots, Address::of_new(part.leaf)));
    }
    shared.counters.leaf_went(old.memory());
    shared.counters.split();
    // Step 3.
    leaf.obsolete();
    for (slots, address) in stores {
        match path.last() {
            None => point(trie, &path, position, 0, address),
            Some(node) => slots.for_each(|i| node.slots[i].store(address)),
        }
    }
    // SAFETY: obsolete, and all its slots lead elsewhere now; only the holder of its lock gets here.
    unsafe { old.retire(guard) };
}
