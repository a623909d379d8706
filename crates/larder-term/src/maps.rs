//! Where the keys and values of all maps of a term begin, found in one pass.
//!
//! Order keys and texts have the keys of a map in term order. But pairs are stored side by side, in
//! another order, possibly that of the host's tree. So keys and values are visited out of order. If
//! each map were searched for them separately, the costs would be quadratic in the depth of nested
//! maps. This pass walks over the term once.
//!
//! Invariant of the pass: as in the encoder, `boundary` is the value of `pending` at which the next
//! term to begin is a child of the innermost map, or is directly after it if all its offsets have
//! been recorded.

use crate::{
    skip::head,
    tags::{MAP, TREE_MAP},
};

/// The offsets of all maps with more than one pair.
pub(crate) struct MapIndex {
    /// For each map: where it begins, and the index of its first offset. Ascending.
    maps: Vec<(usize, usize)>,
    /// The offsets of all maps. Each has: key, value, key, value, …, end.
    offsets: Vec<usize>,
}

struct Frame {
    next: usize,
    last: usize,
    outer: u64,
}

impl MapIndex {
    pub(crate) fn new(bytes: &[u8]) -> MapIndex {
        let mut index = MapIndex {
            maps: Vec::new(),
            offsets: Vec::new(),
        };
        let mut frames: Vec<Frame> = Vec::new();
        // Without an open map, `boundary` is a value that `pending` never has.
        let (mut at, mut pending, mut boundary) = (0, 1u64, u64::MAX);
        while pending > 0 {
            // The next term is a key or a value of the innermost map, or is directly after the
            // map.
            while pending == boundary {
                boundary = index.record(&mut frames, at, boundary);
            }
            // Read one head. Its children are pending instead of itself.
            let (next, children) = head(bytes, at);
            pending = pending - 1 + children;
            // A map of one pair needs no offsets: its key and value follow its head in any case.
            if matches!(bytes[at], MAP | TREE_MAP) && children > 2 {
                frames.push(index.open(at, children as usize / 2, boundary));
                boundary = pending;
            }
            at = next;
        }
        // Maps that end with the whole term have not seen a term after them. Their last offset is
        // the end.
        for frame in frames {
            index.offsets[frame.last] = at;
        }
        index
    }

    fn open(&mut self, at: usize, pairs: usize, outer: u64) -> Frame {
        let next = self.offsets.len();
        let last = next + 2 * pairs;
        self.maps.push((at, next));
        self.offsets.resize(last + 1, 0);
        Frame { next, last, outer }
    }

    /// Records an offset of the innermost map. Returns the new boundary.
    fn record(&mut self, frames: &mut Vec<Frame>, at: usize, boundary: u64) -> u64 {
        let Some(frame) = frames.last_mut() else {
            return u64::MAX;
        };
        self.offsets[frame.next] = at;
        if frame.next == frame.last {
            let outer = frame.outer;
            frames.pop();
            return outer;
        }
        frame.next += 1;
        // This wraps around if `boundary` is 0: the whole term then ends with the last value of
        // this map.
        boundary.wrapping_sub(1)
    }

    /// The number of the map that begins at `start`.
    pub(crate) fn find(&self, start: usize) -> usize {
        self.maps.partition_point(|&(at, _)| at < start)
    }

    pub(crate) fn offsets(&self, map: usize) -> MapOffsets<'_> {
        let first = self.maps[map].1;
        let last = self
            .maps
            .get(map + 1)
            .map_or(self.offsets.len(), |next| next.1);
        MapOffsets(&self.offsets[first..last])
    }
}

/// The offsets of one map.
#[derive(Clone, Copy)]
pub(crate) struct MapOffsets<'i>(&'i [usize]);

impl MapOffsets<'_> {
    pub(crate) fn pairs(self) -> usize {
        self.0.len() / 2
    }
    pub(crate) fn key(self, i: usize) -> usize {
        self.0[2 * i]
    }
    pub(crate) fn value(self, i: usize) -> usize {
        self.0[2 * i + 1]
    }
    pub(crate) fn end(self) -> usize {
        self.0[self.0.len() - 1]
    }
}
