//! Sorting the pairs of maps that are being written into the order of the encoding.
//!
//! The pairs of a map are sorted by their keys when it ends. If they were moved then, the bytes of
//! nested maps would be moved once for each level. So while another map is open around the map,
//! only the order of the pairs is recorded. All bytes are moved once, when the outermost map ends.
//! But keys must be in order before they are compared: a map within a key is moved when the map
//! that has the key ends.
//!
//! ```text
//!   #{ 2 => #{9 => x, 8 => y}, 1 => z }
//!      ^      ^                              two moves, of the pairs from here on; the inner
//!                                            one lies within a run of the outer one
//! ```
//!
//! Invariants: a move permutes the bytes from the first key of its map to the end of the map, and
//! no others. So offsets outside stay the same. A map has a head in front of its first key. So
//! moves that are nested begin at different offsets.

use crate::{
    host::{atom_order, maps_as_stored},
    view::TermRef,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// The error that a map has two identical keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateKey;

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map has two identical keys")
    }
}

impl std::error::Error for DuplicateKey {}

/// The order of keys in the encoding of a map, which is that of the host: as `cmp_exact`, except
/// that the host may have an order of its own for keys that are atoms. Then it may also compare
/// small maps in keys by their pairs as they lie, which are in that order.
pub fn key_order(a: TermRef<'_>, b: TermRef<'_>) -> Ordering {
    match (atom_order(), a.as_atom(), b.as_atom()) {
        (Some(order), Some(a), Some(b)) => order(a, b),
        _ if maps_as_stored() => a.cmp_stored(b),
        _ => a.cmp_exact(b),
    }
}

/// The pairs of a map in the new order: where each begins and ends.
struct Move {
    end: usize,
    runs: Vec<(usize, usize)>,
}

/// Moves that haven't been made yet, by the offsets at which they begin.
#[derive(Default)]
pub(crate) struct Moves(BTreeMap<usize, Move>);

impl Moves {
    /// Ends a map at the end of the bytes. `starts` are the offsets of its keys and values, in
    /// turn. Another map is open around it, unless `outermost` is set.
    pub(crate) fn end_map(
        &mut self,
        out: &mut [u8],
        starts: &[usize],
        outermost: bool,
    ) -> Result<(), DuplicateKey> {
        let (Some(&start), end) = (starts.first(), out.len()) else {
            return Ok(());
        };
        if starts.len() > 2 {
            // Keys must have their final order to be compared. So first make the moves within them.
            if !self.0.is_empty() {
                starts
                    .chunks(2)
                    .for_each(|pair| self.make_moves(out, pair[0], pair[1]));
            }
            // Record the order of this map's pairs. Its bytes stay in place.
            if let Some(runs) = order_of(out, starts)? {
                self.0.insert(start, Move { end, runs });
            }
        }
        // This is the outermost map: make all moves at once.
        if outermost && !self.0.is_empty() {
            self.make_moves(out, start - 1, end);
        }
        Ok(())
    }

    /// Makes all moves that begin after `from` and before `to`. They also end there.
    fn make_moves(&mut self, out: &mut [u8], from: usize, to: usize) {
        let within: Vec<usize> = self.0.range(from + 1..to).map(|(&at, _)| at).collect();
        if within.is_empty() {
            return;
        }
        let mut moved = Vec::with_capacity(to - from);
        // The runs that are still to be copied. The next one is the last. A run that contains a
        // move is split there.
        let mut waiting = vec![(from, to)];
        while let Some((from, to)) = waiting.pop() {
            let Some((&start, next)) = self.0.range(from + 1..to).next() else {
                moved.extend_from_slice(&out[from..to]);
                continue;
            };
            moved.extend_from_slice(&out[from..start]);
            // The run continues after the move.
            if next.end < to {
                waiting.push((next.end, to));
            }
            waiting.extend(next.runs.iter().rev());
        }
        out[from..to].copy_from_slice(&moved);
        for at in within {
            self.0.remove(&at);
        }
    }
}

/// The pairs, sorted by their keys. `None` if they are already in order.
fn order_of(out: &[u8], starts: &[usize]) -> Result<Option<Vec<(usize, usize)>>, DuplicateKey> {
    let pairs = starts.len() / 2;
    let key = |i: usize| TermRef::within(&out[starts[2 * i]..starts[2 * i + 1]]);
    let order = |&a: &usize, &b: &usize| key_order(key(a), key(b));
    // They are usually in order, since a host passes them in order.
    if (1..pairs).all(|i| order(&(i - 1), &i).is_lt()) {
        return Ok(None);
    }
    let mut places: Vec<usize> = (0..pairs).collect();
    places.sort_unstable_by(order);
    // Two keys that compare as equal are identical, which a map can't have.
    if !places.windows(2).all(|w| order(&w[0], &w[1]).is_lt()) {
        return Err(DuplicateKey);
    }
    let run = |&i: &usize| {
        let end = starts.get(2 * i + 2).copied().unwrap_or(out.len());
        (starts[2 * i], end)
    };
    Ok(Some(places.iter().map(run).collect()))
}
