//! Ranks in a snapshot or a transaction's view: those in the base, corrected by the overridden
//! keys. The base of a view is its snapshot. A key is *overridden* if an override determines its
//! value.
//!
//! ```text
//!  base        a   c   d   f   g   k   …      counts of what lies between overridden keys
//!  overrides       c       f                  each is there in the snapshot, or isn't
//!  segments    ├─────────────┤
//!              from          end              so many overridden keys, at most
//! ```
//!
//! To count the entries of the snapshot below a position:
//!
//! 1. Start at the last checkpoint that isn't above it.
//! 2. Find the next overridden keys, at most [`SEGMENT`]. They form a segment, which ends behind
//!    the last of them.
//! 3. Count the entries of the base between them, and those of them that the snapshot has.
//! 4. Find the overridden keys again. If there are others by now, repeat (3) with them. If there
//!    are too many, return to (2): the segment becomes shorter.
//! 5. At the end of a full segment, put a checkpoint.
//!
//! Invariants:
//! 1. A key that isn't overridden in step 4 wasn't changed between the snapshot and step 3: the
//!    base has it if and only if the snapshot has. So the count of a segment is that of the
//!    snapshot, even if other threads write meanwhile.
//! 2. A snapshot doesn't change, and neither does the rank of a checkpoint. A view is changed only
//!    by its own transaction, one call at a time, and each write drops the checkpoints above it.
//!
//! Cost: O(log n) for each overridden key behind the checkpoint. There are at most [`SEGMENT`] of
//! them once checkpoints were put. The first query puts those that it passes, in slices.

use super::checkpoints::Checkpoint;
use super::merged::Merged;
use super::undo::Override;
use larder_index::{Batch, Counted, Direction, Guard, Ranked, Start, Unique};
use std::ops::Bound;

/// The maximum number of overridden keys in a segment.
const SEGMENT: usize = 32;
/// The cost of an overridden key, in leaves that are counted.
const KEY: usize = 4;
/// The number of entries that are passed one by one.
const FEW: u64 = 2 * SEGMENT as u64;
/// The number of guesses of a place. After that, entries are passed one by one, however many.
const GUESSES: usize = 8;

/// Overridden keys, each with whether the snapshot has it, and whether these are all.
struct OverriddenKeys {
    keys: Vec<(Vec<u8>, bool)>,
    all: bool,
}

/// The first position behind a key. Keys are prefix-free.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Merged<dyn Unique> {
    fn base(&self) -> Option<&dyn Ranked> {
        self.base.ranked()
    }

    /// The first overridden keys at or above one position and below another.
    fn overridden(
        &self,
        guard: &Guard,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
    ) -> OverriddenKeys {
        let mut found = OverriddenKeys {
            keys: Vec::new(),
            all: true,
        };
        let Some(index) = self.overrides.index() else {
            return found;
        };
        // One more than wanted, which shows whether there are more.
        let mut batch = Batch::default()
            .with_until(to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec())))
            .with_want(most + 1);
        let mut at = from.to_vec();
        loop {
            index.scan(guard, Start::At(&at), Direction::Forward, &mut batch);
            // Records at or behind `to` are not part of the range.
            for i in 0..batch.len() {
                let (key, record) = batch.entry(i);
                if to.is_some_and(|to| key >= to) {
                    return found;
                }
                // Skip records that have no version for this snapshot.
                let Some(value) = self.overrides.read(record) else {
                    continue;
                };
                // There is a further one.
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

    /// Counts the entries of the snapshot below a position, or all of them. `None` if the budget is
    /// exhausted; the next call then has less to do.
    fn count_to(&self, guard: &Guard, to: Option<&[u8]>, work: &mut usize) -> Option<u64> {
        // (1)
        let Checkpoint {
            position: mut from,
            mut rank,
        } = self.overrides.checkpoints.at(to);
        loop {
            // (2)
            let found = self.overridden(guard, &from, to, SEGMENT);
            let end = match found.keys.last() {
                Some((key, _)) if !found.all => Some(behind(key)),
                _ => to.map(<[u8]>::to_vec),
            };
            let all = found.all;
            // (3), (4)
            let count = self.count_segment(guard, &from, end.as_deref(), found.keys, work)?;
            // Too many keys are overridden by now. Divide the segment again.
            let Some(count) = count else {
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

    /// Counts the entries of a segment with these overridden keys. `None` if the budget is
    /// exhausted. `Some(None)` if more keys are overridden by now than a segment may have.
    fn count_segment(
        &self,
        guard: &Guard,
        from: &[u8],
        end: Option<&[u8]>,
        mut keys: Vec<(Vec<u8>, bool)>,
        work: &mut usize,
    ) -> Option<Option<u64>> {
        let base = self.base()?;
        loop {
            // Between two overridden keys, count the base's entries. An overridden key itself
            // counts if the snapshot has it, whatever the base has.
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
            // The base was read before this. If no further key is overridden now, no key in the
            // segment changed while the base was counted. Otherwise count again with the new keys.
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

    /// Passes `n` entries, from a position in a direction, and copies the next one.
    fn pass<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        mut n: u64,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) -> bool {
        // Scan the merged view, since overridden keys must be passed correctly.
        let mut read = Batch::default().with_want(n as usize + 1);
        Unique::scan(self, guard, start, direction, &mut read);
        let mut at = Vec::new();
        loop {
            // The entry is in this batch.
            if let Some(i) = usize::try_from(n).ok().filter(|&n| n < read.len()) {
                let (key, value) = read.entry(i);
                batch.push(key, value);
                return true;
            }
            if read.done {
                return false;
            }
            n -= read.len() as u64;
            std::mem::swap(&mut at, &mut read.resume);
            let start = Start::behind(&at, direction);
            Unique::scan(self, guard, start, direction, &mut read);
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
        // Both counts begin at the front. The number of entries in between is the difference.
        let below = match low {
            Some(low) => self.count_to(guard, Some(low), work)?,
            None => 0,
        };
        let entries = self.count_to(guard, high, work)?.saturating_sub(below);
        // Whether the key itself exists is read separately, from the merged view.
        let is_there = |high| self.contains(guard, self.overrides.key(high));
        Some(Counted {
            entries,
            high_is_there: high.is_some_and(is_there),
        })
    }

    /// The base's entry with about that rank is near. Its rank in the snapshot says how near.
    fn nth<'g>(
        &'g self,
        guard: &'g Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch<'g>,
    ) -> Option<bool> {
        let base = self.base()?;
        // Convert a rank from the end to one from the beginning.
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
            // Guess that the base and the snapshot have the same entries between the last
            // checkpoint and the entry. So find the base's entry there.
            let Checkpoint {
                position: from,
                rank,
            } = self.overrides.checkpoints.with_rank(n);
            let before = base.count_between(guard, None, Some(&from), work)?;
            let guess = before.entries + (n - rank);
            let is_there = base.nth(guard, guess, Direction::Forward, work, batch)?;
            let near = is_there.then(|| batch.key(0).to_vec());
            // Count its rank in the snapshot. This also stores checkpoints, so that the next guess
            // is better.
            let rank = self.count_to(guard, near.as_deref(), work)?;
            guesses += 1;
            let off = n.abs_diff(rank);
            if off > FEW && guesses < GUESSES {
                continue;
            }
            // The entry is near. Walk the rest of the way.
            batch.clear();
            let near = near.as_deref();
            return Some(match n >= rank {
                // There is nothing behind the end.
                true => near.is_some_and(|near| {
                    self.pass(guard, Start::At(near), off, Direction::Forward, batch)
                }),
                false => {
                    let start = near.map_or(Start::Edge, Start::Past);
                    self.pass(guard, start, off - 1, Direction::Backward, batch)
                }
            });
        }
    }
}
