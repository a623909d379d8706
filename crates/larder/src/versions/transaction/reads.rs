//! The read set of a transaction in one table: keys, and ranges of positions.
//!
//! What was not there counts as read, too: a key that was looked for, and all of a range. So what
//! comes into a range later, a phantom, is noticed.
//!
//! A range has the positions of keys, from `low` to `high`, both included, so it may say a little
//! more than was read; never less.

use super::super::history::History;
use super::super::undo;
use larder_index::{Batch, Direction, Guard, Start};
use std::collections::BTreeSet;

/// A range of positions; None where it has no end.
struct Range {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

/// What a transaction has read of a table.
#[derive(Default)]
pub(super) struct Reads {
    keys: BTreeSet<Vec<u8>>,
    ranges: Vec<Range>,
}

impl Reads {
    pub(super) fn key(&mut self, key: &[u8]) {
        if !self.keys.contains(key) {
            self.keys.insert(key.to_vec());
        }
    }

    /// A scan has read from one position to another in this direction.
    pub(super) fn range(&mut self, from: Option<&[u8]>, to: Option<&[u8]>, direction: Direction) {
        let (low, high) = match direction {
            Direction::Forward => (from, to),
            Direction::Backward => (to, from),
        };
        // A scan goes on where it was: one range for all of it.
        if let Some(last) = self.ranges.last_mut() {
            match direction {
                Direction::Forward if last.high.is_some() && last.high.as_deref() == low => {
                    last.high = high.map(<[u8]>::to_vec);
                    return;
                }
                Direction::Backward if last.low.is_some() && last.low.as_deref() == high => {
                    last.low = low.map(<[u8]>::to_vec);
                    return;
                }
                _ => {}
            }
        }
        self.ranges.push(Range {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
        });
    }

    /// The keys that were read.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &key[..])
    }

    /// Whether a range was read.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Whether no key in the ranges has changed since the snapshot with this number.
    pub(super) fn ranges_hold(&self, history: &History, guard: &Guard, number: u64) -> bool {
        let Some(index) = history.undo() else {
            return true;
        };
        let mut batch = Batch::default();
        let mut position = Vec::new();
        self.ranges.iter().all(|range| {
            let mut resume = Vec::new();
            let mut start = match &range.low {
                Some(low) => Start::At(low),
                None => Start::Edge,
            };
            loop {
                index.scan(guard, start, Direction::Forward, &mut batch);
                for i in 0..batch.len() {
                    let (bytes, record) = batch.entry(i);
                    index.position(history.key(bytes), &mut position);
                    if range.high.as_ref().is_some_and(|high| position > *high) {
                        return true;
                    }
                    if undo::newest(record) >= number {
                        return false;
                    }
                }
                if batch.done {
                    return true;
                }
                std::mem::swap(&mut resume, &mut batch.resume);
                start = Start::At(&resume);
            }
        })
    }
}
