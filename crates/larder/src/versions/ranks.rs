//! Ranks in a snapshot or a transaction's view: the base's, put right by what overrides it. The
//! base of a view is its snapshot.
//!
//! ```text
//!  base        a   c   d   f   g   k   …      counts of what lies between overridden keys
//!  overrides       c       f                  each is there in the snapshot, or isn't
//!  segments    ├─────────────┤
//!              from          end              so many overridden keys, at most
//! ```
//!
//! To count what the snapshot has below a position:
//!
//! 1. Begin at the last checkpoint that isn't above it.
//! 2. Find the next overridden keys, [`SEGMENT`] at most: a segment ends behind the last of them.
//! 3. Count what the base has between them, and those of them that the snapshot has.
//! 4. Look for the overridden keys again. If there are others by now, go back to 3 with them, or if
//!    they are many, to 2: the segment gets shorter.
//! 5. At the end of a segment that is full, put a checkpoint.
//!
//! Invariants:
//! 1. A key that isn't overridden at step 4 wasn't changed between the snapshot and step 3: the
//!    base has it if and only if the snapshot has. So a segment's count is the snapshot's, whoever
//!    writes meanwhile.
//! 2. A snapshot doesn't change: nor does the rank of a checkpoint. A view changes by its own
//!    transaction alone, one call at a time, and each write forgets the checkpoints above it.
//!
//! Costs: O(log n) for each overridden key behind the checkpoint, of which there are
//! [`SEGMENT`] at most once checkpoints have been put; the first question puts those that it
//! passes, in slices.

use super::merged::Merged;
use super::undo::Override;
use larder_index::{Batch, Counted, Direction, Guard, Ranked, Start, Unique};
use std::ops::Bound;

/// Overridden keys of a segment.
const SEGMENT: usize = 32;
/// What an overridden key costs, in leaves that are counted.
const KEY: usize = 4;
/// Entries that are passed one by one.
const FEW: u64 = 2 * SEGMENT as u64;
/// Times that a place is guessed before entries are passed one by one, however many.
const GUESSES: usize = 8;

/// Overridden keys, each with whether the snapshot has it; and whether these are all.
struct Overridden {
    keys: Vec<(Vec<u8>, bool)>,
    all: bool,
}

/// The first position behind a key: keys are prefix-free.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Merged<dyn Unique> {
    fn base(&self) -> Option<&dyn Ranked> {
        self.base.ranked()
    }

    /// The first overridden keys from a position on and before another.
    fn overridden(&self, guard: &Guard, from: &[u8], to: Option<&[u8]>, most: usize) -> Overridden {
        let mut found = Overridden {
            keys: Vec::new(),
            all: true,
        };
        let Some(index) = self.overrides.index() else {
            return found;
        };
        let mut batch = Batch {
            until: to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec())),
            want: most + 1,
            ..Batch::default()
        };
        let mut at = from.to_vec();
        loop {
            index.scan(guard, Start::At(&at), Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                let (key, record) = batch.entry(i);
                if to.is_some_and(|to| key >= to) {
                    return found;
                }
                // Other snapshots' records say nothing of this one.
                let Some(value) = self.overrides.read(record) else {
                    continue;
                };
                if found.keys.len() == most {
                    found.all = false;
                    return found;
                }
                found.keys.push((key.to_vec(), value != Override::Absent));
            }
            if batch.done {
                return found;
            }
            std::mem::swap(&mut at, &mut batch.resume);
        }
    }

    /// How many entries the snapshot has below a position; of all for none. None: the work is used
    /// up, and the next call has less to do.
    fn count_to(&self, guard: &Guard, to: Option<&[u8]>, work: &mut usize) -> Option<u64> {
        // (1)
        let (mut from, mut rank) = self.overrides.checkpoints.at(to);
        loop {
            // (2)
            let found = self.overridden(guard, &from, to, SEGMENT);
            let end = match found.keys.last() {
                Some((key, _)) if !found.all => Some(behind(key)),
                _ => to.map(<[u8]>::to_vec),
            };
            let all = found.all;
            // (3), (4)
            let segment = (from.as_slice(), end.as_deref());
            let Some(count) = self.count_segment(guard, segment, found.keys, work)? else {
                continue;
            };
            rank += count;
            let Some(end) = end.filter(|_| !all) else {
                return Some(rank);
            };
            // (5)
            self.overrides.checkpoints.put(&end, rank);
            from = end;
            if *work == 0 {
                return None;
            }
        }
    }

    /// The entries of a segment, whose overridden keys were these. None: the work is used up.
    /// `Some(None)`: more keys are overridden by now than a segment may have.
    fn count_segment(
        &self,
        guard: &Guard,
        (from, end): (&[u8], Option<&[u8]>),
        mut keys: Vec<(Vec<u8>, bool)>,
        work: &mut usize,
    ) -> Option<Option<u64>> {
        let base = self.base()?;
        loop {
            let (mut sum, mut at) = (0, from.to_vec());
            for (key, is_there) in &keys {
                sum += base
                    .count_between(guard, Some(&at), Some(key), work)?
                    .entries;
                sum += u64::from(*is_there);
                at = behind(key);
            }
            sum += base.count_between(guard, Some(&at), end, work)?.entries;
            *work = work.saturating_sub(KEY * keys.len());
            // The base was read before the overrides.
            let now = self.overridden(guard, from, end, 2 * SEGMENT);
            if now.keys == keys {
                return Some(Some(sum));
            }
            if !now.all {
                return Some(None);
            }
            keys = now.keys;
        }
    }

    /// Passes `n` entries from a position on in a direction, and copies the next one.
    fn pass(
        &self,
        guard: &Guard,
        start: Start<'_>,
        (mut n, direction): (u64, Direction),
        batch: &mut Batch,
    ) -> bool {
        let mut own = Batch {
            want: n as usize + 1,
            ..Batch::default()
        };
        Unique::scan(self, guard, start, direction, &mut own);
        let mut at = Vec::new();
        loop {
            if let Some(i) = usize::try_from(n).ok().filter(|&n| n < own.len()) {
                let (key, value) = own.entry(i);
                batch.push(key, value);
                return true;
            }
            if own.done {
                return false;
            }
            n -= own.len() as u64;
            std::mem::swap(&mut at, &mut own.resume);
            let start = match direction {
                Direction::Forward => Start::At(&at),
                Direction::Backward => Start::Past(&at),
            };
            Unique::scan(self, guard, start, direction, &mut own);
        }
    }
}

impl Ranked for Merged<dyn Unique> {
    fn count_between(
        &self,
        guard: &Guard,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<Counted> {
        let below = match low {
            Some(low) => self.count_to(guard, Some(low), work)?,
            None => 0,
        };
        let entries = self.count_to(guard, high, work)?.saturating_sub(below);
        let is_there = |high| self.contains(guard, self.overrides.key(high));
        Some(Counted {
            entries,
            high_is_there: high.is_some_and(is_there),
        })
    }

    /// The base's entry with about that rank is near; how near, its rank in the snapshot says.
    fn nth(
        &self,
        guard: &Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch,
    ) -> Option<bool> {
        let base = self.base()?;
        let n = match direction {
            Direction::Forward => n,
            Direction::Backward => {
                let all = self.count_to(guard, None, work)?;
                let Some(n) = all.checked_sub(n + 1) else {
                    batch.clear();
                    return Some(false);
                };
                n
            }
        };
        let mut guesses = 0;
        loop {
            let (from, rank) = self.overrides.checkpoints.with_rank(n);
            let before = base.count_between(guard, None, Some(&from), work)?;
            let guess = before.entries + (n - rank);
            let is_there = base.nth(guard, guess, Direction::Forward, work, batch)?;
            let near = is_there.then(|| batch.key(0).to_vec());
            let rank = self.count_to(guard, near.as_deref(), work)?;
            guesses += 1;
            let off = n.abs_diff(rank);
            if off > FEW && guesses < GUESSES {
                continue;
            }
            batch.clear();
            let near = near.as_deref();
            return Some(match n >= rank {
                // Nothing is behind the end.
                true => near.is_some_and(|near| {
                    self.pass(guard, Start::At(near), (off, Direction::Forward), batch)
                }),
                false => {
                    let start = near.map_or(Start::Edge, Start::Past);
                    self.pass(guard, start, (off - 1, Direction::Backward), batch)
                }
            });
        }
    }
}
