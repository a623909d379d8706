//! The pairs of maps that are being written, put into the order of the encoding.
//!
//! A map's pairs are sorted by their keys when it ends. To move them then would move all that is
//! nested in them at every level; so the order alone is noted while another map is open around it,
//! and all is moved once, when the outermost map ends. Keys must be in order to be compared: a map
//! within a key is moved when the map ends that has the key.
//!
//! ```text
//!   #{ 2 => #{9 => x, 8 => y}, 1 => z }
//!      ^      ^                              two moves, of the pairs from here on; the inner one lies within a run of the outer one
//! ```
//!
//! Invariants: a move permutes the bytes from its map's first key to the map's end, and no others,
//! so places around it stay what they are. A map has a head before its first key, so that moves
//! within each other begin at different places.

use crate::{host::atom_order, view::TermRef};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A map has two identical keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a map has two identical keys")]
pub struct DuplicateKey;

/// The order of a map's keys in its encoding, which is the host's: as `cmp_exact`, except that the
/// host may have an order of its own for keys that are atoms.
pub fn key_order(a: TermRef<'_>, b: TermRef<'_>) -> Ordering {
    match (atom_order(), a.as_atom(), b.as_atom()) {
        (Some(order), Some(a), Some(b)) => order(a, b),
        _ => a.cmp_exact(b),
    }
}

/// The pairs of a map, in the order that is wanted, as where they begin and end.
struct Move {
    end: usize,
    runs: Vec<(usize, usize)>,
}

/// What is yet to be moved, by where it begins.
#[derive(Default)]
pub(crate) struct Moves(BTreeMap<usize, Move>);

impl Moves {
    /// A map ends where the bytes end; `marks` are where its keys and values begin, in turn.
    /// Another is open around it, unless it is the outermost.
    pub(crate) fn end_map(
        &mut self,
        out: &mut [u8],
        marks: &[usize],
        outermost: bool,
    ) -> Result<(), DuplicateKey> {
        let (Some(&start), end) = (marks.first(), out.len()) else {
            return Ok(());
        };
        if marks.len() > 2 {
            // Keys are compared as they are to be in the end: what is to be moved within them is
            // moved first.
            if !self.0.is_empty() {
                marks
                    .chunks(2)
                    .for_each(|pair| self.settle(out, pair[0], pair[1]));
            }
            // The order of this map's pairs is noted; its bytes stay where they are.
            if let Some(runs) = order_of(out, marks)? {
                self.0.insert(start, Move { end, runs });
            }
        }
        // The outermost map: now all is moved, once.
        if outermost && !self.0.is_empty() {
            self.settle(out, start - 1, end);
        }
        Ok(())
    }

    /// Moves all that begins behind `from` and before `to`. What begins there ends there.
    fn settle(&mut self, out: &mut [u8], from: usize, to: usize) {
        let within: Vec<usize> = self.0.range(from + 1..to).map(|(&at, _)| at).collect();
        if within.is_empty() {
            return;
        }
        let mut moved = Vec::with_capacity(to - from);
        // Runs yet to be copied, the next one last. A run with a move in it is taken apart at that.
        let mut waiting = vec![(from, to)];
        while let Some((from, to)) = waiting.pop() {
            let Some((&start, next)) = self.0.range(from + 1..to).next() else {
                moved.extend_from_slice(&out[from..to]);
                continue;
            };
            moved.extend_from_slice(&out[from..start]);
            // Behind the move the run goes on.
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

/// The pairs by their keys, unless they are in order as they are.
fn order_of(out: &[u8], marks: &[usize]) -> Result<Option<Vec<(usize, usize)>>, DuplicateKey> {
    let pairs = marks.len() / 2;
    let key = |i: usize| TermRef::within(&out[marks[2 * i]..marks[2 * i + 1]]);
    let order = |&a: &usize, &b: &usize| key_order(key(a), key(b));
    // Mostly they are in order: a host gives them so.
    if (1..pairs).all(|i| order(&(i - 1), &i).is_lt()) {
        return Ok(None);
    }
    let mut places: Vec<usize> = (0..pairs).collect();
    places.sort_by(order);
    // Two keys that tie are identical: there is no such map.
    if !places.windows(2).all(|w| order(&w[0], &w[1]).is_lt()) {
        return Err(DuplicateKey);
    }
    let run = |&i: &usize| {
        let end = marks.get(2 * i + 2).copied().unwrap_or(out.len());
        (marks[2 * i], end)
    };
    Ok(Some(places.iter().map(run).collect()))
}
