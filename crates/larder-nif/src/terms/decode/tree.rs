//! The tree of a large map, made node by node from its stored shape (see
//! [`trees`](crate::terms::trees)).

use super::child;
use crate::heap::{Heap, Slot, Slots};
use crate::sys::*;
use crate::terms::trees::{headers, ALL, PRESENT};

/// Makes the map of a shape whose pairs begin at `next`, and puts it in its place; gives the place
/// behind the pairs. None if it isn't known how maps lie.
pub fn make(
    heap: &Heap,
    (bytes, shape): (&[u8], &[u8]),
    (pairs, next): (usize, usize),
    slot: Slot,
    depth: u32,
) -> Option<usize> {
    let headers = headers();
    if headers[0] == 0 {
        return None;
    }
    let mut maker = Maker {
        heap,
        bytes,
        shape,
        next,
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
    Some(maker.next)
}

struct Maker<'m> {
    heap: &'m Heap,
    bytes: &'m [u8],
    /// What is left of the shape.
    shape: &'m [u8],
    next: usize,
    node: Word,
    depth: u32,
}

impl Maker<'_> {
    fn numbers(&mut self) -> Option<(Word, Word)> {
        let (&[a, b, c, d], rest) = self.shape.split_first_chunk()?;
        self.shape = rest;
        Some((
            Word::from(u16::from_le_bytes([a, b])),
            Word::from(u16::from_le_bytes([c, d])),
        ))
    }

    fn children(&mut self, mut slots: Slots, present: Word, nodes: Word) -> Option<()> {
        let mut left = present;
        while let Some(slot) = slots.next() {
            // Children lie in the order of their bits, lowest first.
            let bit = left & left.wrapping_neg();
            left ^= bit;
            if nodes & bit != 0 {
                let (present, nodes) = self.numbers()?;
                let header = self.node | present << PRESENT;
                let children = self.heap.node(slot, header, present.count_ones() as usize);
                self.children(children, present, nodes)?;
            } else {
                // A pair is a cell, key and value.
                let (cell, head, tail) = self.heap.open_cell();
                slot.fill(cell);
                for half in [head, tail] {
                    self.next = child(self.heap, self.bytes, self.next, half, self.depth);
                }
            }
        }
        Some(())
    }
}
