//! The tree of a large map, made node by node from its stored shape (see
//! [`trees`](crate::terms::trees)).

use super::fill;
use super::reader::Reader;
use crate::heap::{Heap, Slot, Slots};
use crate::sys::*;
use crate::terms::trees::{headers, ALL, PRESENT};

/// Makes the map of a shape, a number of pairs, and those pairs, and puts it in its place; gives a
/// reader behind the pairs. None if it isn't known how maps lie.
pub fn make<'b>(
    heap: &Heap,
    (shape, pairs, input): (&[u8], usize, Reader<'b>),
    slot: Slot,
    depth: u32,
) -> Option<Reader<'b>> {
    let headers = headers();
    if headers[0] == 0 {
        return None;
    }
    let mut maker = Maker {
        heap,
        shape,
        input,
        node: headers[2],
        depth,
    };
    // The root: its header depends on whether all of its children are there.
    let (present, nodes) = maker.numbers()?;
    let header = match present {
        ALL => headers[0],
        _ => headers[1] | present << PRESENT,
    };
    let children = heap.root(slot, header, pairs, present.count_ones() as usize);
    maker.children(children, present, nodes)?;
    Some(maker.input)
}

struct Maker<'m, 'b> {
    heap: &'m Heap,
    /// What is left of the shape.
    shape: &'m [u8],
    /// The pairs that are left.
    input: Reader<'b>,
    node: Word,
    depth: u32,
}

impl Maker<'_, '_> {
    fn numbers(&mut self) -> Option<(Word, Word)> {
        let (&[a, b, c, d], rest) = self.shape.split_first_chunk()?;
        self.shape = rest;
        Some((
            Word::from(u16::from_le_bytes([a, b])),
            Word::from(u16::from_le_bytes([c, d])),
        ))
    }

    fn children(&mut self, mut slots: Slots, present: Word, nodes: Word) -> Option<()> {
        // Children lie in the order of their bits, lowest first: runs of pairs, and a node behind
        // each but the last.
        let mut left = present;
        loop {
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
            left ^= pairs | node;
            let (present, nodes) = self.numbers()?;
            let header = self.node | present << PRESENT;
            let children = self.heap.node(slot, header, present.count_ones() as usize);
            self.children(children, present, nodes)?;
        }
    }
}
