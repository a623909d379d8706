//! Builds the emulator's tree of a large map, node by node, from its stored layout (see
//! [`trees`](crate::terms::trees)).

use super::fill;
use super::reader::Reader;
use crate::heap::{Heap, Slot, Slots};
use crate::sys::*;
use crate::terms::trees::{headers, ALL, PRESENT};

/// Makes a map of the layout of its tree, the number of its pairs and the pairs themselves, and
/// puts it into a slot. Returns the reader at the end of the pairs, or `None` if the emulator's
/// layout of trees is not known.
pub fn make<'b>(
    heap: &Heap,
    tree_layout: &[u8],
    pairs: usize,
    input: Reader<'b>,
    slot: Slot,
    depth: u32,
) -> Option<Reader<'b>> {
    let headers = headers();
    // The proof has failed, so a node's header isn't known.
    if headers[0] == 0 {
        return None;
    }
    let mut maker = TreeBuilder {
        heap,
        tree_layout,
        input,
        node: headers[2],
        depth,
    };
    // A root with all 16 children may have a header of its own.
    let (present, nodes) = maker.numbers()?;
    let header = match present {
        ALL => headers[0],
        _ => headers[1] | present << PRESENT,
    };
    let children = heap.root(slot, header, pairs, present.count_ones() as usize);
    maker.children(children, present, nodes)?;
    Some(maker.input)
}

struct TreeBuilder<'m, 'b> {
    heap: &'m Heap,
    /// The rest of the tree layout.
    tree_layout: &'m [u8],
    /// The rest of the pairs.
    input: Reader<'b>,
    /// The header of an inner node, without the bitmap.
    node: Word,
    /// How many levels of containers in the pairs may be decoded recursively.
    depth: u32,
}

impl TreeBuilder<'_, '_> {
    /// Reads two bitmaps of a node from the layout: which children it has, and which of them are
    /// nodes.
    fn numbers(&mut self) -> Option<(Word, Word)> {
        let (&[a, b, c, d], rest) = self.tree_layout.split_first_chunk()?;
        self.tree_layout = rest;
        Some((
            Word::from(u16::from_le_bytes([a, b])),
            Word::from(u16::from_le_bytes([c, d])),
        ))
    }

    /// Fills the slots of a node's children.
    fn children(&mut self, mut slots: Slots, present: Word, nodes: Word) -> Option<()> {
        // The children are in the order of their bits, the lowest first: runs of pairs, with a node
        // after each run but the last. `left` has the bits of the children still to be made.
        let mut left = present;
        loop {
            // The lowest bit of a node, and the bits of the pairs below it.
            let node = left & nodes & (left & nodes).wrapping_neg();
            let pairs = left & node.wrapping_sub(1);
            if pairs != 0 {
                let places = slots.first(pairs.count_ones() as usize);
                let halves = self.heap.pairs(places);
                self.input = fill(self.heap, self.input, halves, self.depth);
            }
            let Some(slot) = slots.next() else {
                return Some(());
            };
            // A child that is a node. The recursion ends at the depth of the emulator's own trees.
            left ^= pairs | node;
            let (present, nodes) = self.numbers()?;
            let header = self.node | present << PRESENT;
            let children = self.heap.node(slot, header, present.count_ones() as usize);
            self.children(children, present, nodes)?;
        }
    }
}
