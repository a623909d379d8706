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
//! 2. Find the next overridden keys, at most [`SEGMENT`], among at most [`RECORDS`] records. They
//!    form a segment, which ends before the next record.
//! 3. Count the entries of the base between them, and those of them that the snapshot has.
//! 4. Find the overridden keys again. If there are others by now, repeat (3) with them. If there
//!    are too many, return to (2): the segment becomes shorter.
//! 5. At the end of a full segment, put a checkpoint.
//!
//! If the overrides are the writes of a transaction, each knows whether its base has the key, which
//! doesn't change. So the entries of the base in a segment are counted at once, and steps (3) and
//! (4) are one sum.
//!
//! Invariants:
//! * **S14** A key that isn't overridden in step 4 wasn't changed between the snapshot and step 3:
//!   the base has it if and only if the snapshot has. So the count of a segment is that of the
//!   snapshot, even if other threads write meanwhile.
//! * **S15** A snapshot doesn't change, and neither does the rank of a checkpoint. A view is
//!   changed only by its own transaction, one call at a time, and each write that adds or removes
//!   an entry shifts the checkpoints above it.
//!
//! Cost: O(log n) for each overridden key after the checkpoint, and O(1) for each record of a key
//! that isn't: it has versions for other snapshots alone. There are at most [`SEGMENT`] and
//! [`RECORDS`] of them once checkpoints were put. The first query puts those that it passes, in
//! slices.

use super::checkpoints::Checkpoint;
use super::merged::Merged;
use super::own_writes::Writes;
use super::scan::MOST;
use super::undo::Override;
use larder_index::{Batch, Counted, Direction, Guard, Ranked, Start, Unique};
use std::ops::Bound;

/// The maximum number of overridden keys in a segment.
const SEGMENT: usize = 32;
/// The same for the writes of a transaction.
const OWN_SEGMENT: usize = 64;
/// The maximum number of records of a segment, when its end is found.
const RECORDS: usize = 1024;
/// The cost of an overridden key, in leaves that are counted.
const KEY: usize = 4;
/// The number of records that cost as much as a leaf that is counted.
const RECORDS_A_LEAF: usize = 4;
/// The number of leaves that a question to the base may count, whatever the budget is. A call whose
/// budget is exhausted before its first segment ends repeats what it has done. If the base counted
/// nothing then, no call would get further.
const LEAST: usize = 128;
/// The number of entries that are passed one by one, rather than to guess again. No segment has
/// more overridden keys.
const FEW: u64 = OWN_SEGMENT as u64;

/// Overridden keys, each with whether the snapshot has it.
struct OverriddenKeys {
    keys: Vec<(Vec<u8>, bool)>,
    /// The next record, if these are not all.
    next: Option<Vec<u8>>,
    /// The number of records that were passed.
    passed: usize,
}

/// The number of entries of a segment, and the key that follows it, if any.
type Segment = (u64, Option<Vec<u8>>);

/// The first position after a key. Keys are prefix-free.
fn just_after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Asks the base, which may count `LEAST` leaves at least.
fn with_least<R>(work: &mut usize, ask: impl FnOnce(&mut usize) -> R) -> R {
    let given = (*work).max(LEAST);
    let mut left = given;
    let answer = ask(&mut left);
    *work = work.saturating_sub(given - left);
    answer
}

impl Merged<dyn Unique> {
    fn base(&self) -> Option<&dyn Ranked> {
        self.base.ranked()
    }

    /// Counts the entries of the base between two positions.
    fn count_base(
        &self,
        guard: &Guard,
        (low, high): (Option<&[u8]>, Option<&[u8]>),
        work: &mut usize,
    ) -> Option<u64> {
        let base = self.base()?;
        let counted = with_least(work, |work| base.count_between(guard, low, high, work))?;
        Some(counted.entries)
    }

    /// The first overridden keys at or above one position and below another, at most `most` of
    /// them, among this number of records.
    fn overridden(
        &self,
        guard: &Guard,
        from: &[u8],
        to: Option<&[u8]>,
        (most, records): (usize, usize),
    ) -> OverriddenKeys {
        let mut found = OverriddenKeys {
            keys: Vec::new(),
            next: None,
            passed: 0,
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
            // Records at or after `to` are not part of the range.
            for i in 0..batch.len() {
                let (key, record) = batch.entry(i);
                if to.is_some_and(|to| key >= to) {
                    return found;
                }
                // There is a further one.
                if found.keys.len() == most || found.passed == records {
                    found.next = Some(key.to_vec());
                    return found;
                }
                found.passed += 1;
                // Skip records that have no version for this snapshot.
                if let Some(value) = self.overrides.read(record) {
                    found.keys.push((key.to_vec(), value != Override::Absent));
                }
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
        let from = self.overrides.checkpoints.at(to);
        self.count_from(guard, from, to, work)
    }

    /// Steps 2 to 5, from a checkpoint that isn't above the position.
    fn count_from(
        &self,
        guard: &Guard,
        from: Checkpoint,
        to: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<u64> {
        let Checkpoint {
            position: mut from,
            mut rank,
        } = from;
        loop {
            // (2) to (4)
            let segment = match self.overrides.own_writes() {
                Some(writes) => self.count_own(guard, writes, (&from, to), work)?,
                None => self.count_versions(guard, (&from, to), work)?,
            };
            // Too many keys are overridden by now. Divide the segment again.
            let Some((count, next)) = segment else {
                continue;
            };
            rank += count;
            let Some(end) = next else {
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

    /// Steps 2 to 4 for the writes of a transaction. Returns the entries of the segment, and the
    /// key that follows it, if any. The result is as that of `count_versions`.
    fn count_own(
        &self,
        guard: &Guard,
        writes: &Writes,
        (from, to): (&[u8], Option<&[u8]>),
        work: &mut usize,
    ) -> Option<Option<Segment>> {
        let (growth, next) = writes.growth(from, to, OWN_SEGMENT);
        let below = self.count_base(guard, (Some(from), next.as_deref().or(to)), work)?;
        *work = work.saturating_sub(OWN_SEGMENT / RECORDS_A_LEAF);
        Some(Some((below.saturating_add_signed(growth), next)))
    }

    /// Steps 2 to 4 for versions. `None` if the budget is exhausted. `Some(None)` if more keys are
    /// overridden by now than a segment may have.
    fn count_versions(
        &self,
        guard: &Guard,
        (from, to): (&[u8], Option<&[u8]>),
        work: &mut usize,
    ) -> Option<Option<Segment>> {
        // (2)
        let found = self.overridden(guard, from, to, (SEGMENT, RECORDS));
        *work = work.saturating_sub(found.passed / RECORDS_A_LEAF);
        let end = found.next.as_deref().or(to);
        // (3), (4)
        let count = self.count_segment(guard, from, end, found.keys, work)?;
        Some(count.map(|count| (count, found.next)))
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
        loop {
            // Between two overridden keys, count the base's entries. An overridden key itself
            // counts if the snapshot has it, whatever the base has.
            let (mut sum, mut at) = (0, from.to_vec());
            for (key, is_there) in &keys {
                sum += self.count_base(guard, (Some(&at), Some(key)), work)?;
                sum += u64::from(*is_there);
                at = just_after(key);
            }
            sum += self.count_base(guard, (Some(&at), end), work)?;
            *work = work.saturating_sub(KEY * keys.len());
            // The base was read before this. If no further key is overridden now, no key in the
            // segment changed while the base was counted. Otherwise count again with the new keys.
            let now = self.overridden(guard, from, end, (2 * SEGMENT, usize::MAX));
            if now.keys == keys {
                return Some(Some(sum));
            }
            if now.next.is_some() {
                return Some(None);
            }
            keys = now.keys;
        }
    }

    /// Puts checkpoints between two that are neighbours, if more keys have been overridden there
    /// since than a segment has. The n-th entry is between them. Returns whether it has other
    /// neighbours now. `None` if the budget is exhausted; the next call then has less to do.
    fn divide(
        &self,
        guard: &Guard,
        n: u64,
        (from, next): (Checkpoint, Option<&[u8]>),
        work: &mut usize,
    ) -> Option<bool> {
        let before = from.position.clone();
        self.count_from(guard, from, next, work)?;
        let (from, after) = self.overrides.checkpoints.with_rank(n);
        let after = after.map(|after| after.position);
        Some(from.position != before || after.as_deref() != next)
    }

    /// Passes entries from a position with this rank to the n-th one, and copies that. If many were
    /// left out on the path, puts a checkpoint at its end. `None` if the budget is exhausted; the
    /// next call then begins where this one has ended.
    fn pass<'g>(
        &'g self,
        guard: &'g Guard,
        (start, rank): (Start<'_>, u64),
        n: u64,
        work: &mut usize,
        batch: &mut Batch<'g>,
    ) -> Option<bool> {
        // `left` is the number of entries between the position and the n-th one, in that direction.
        let (direction, mut left) = match n >= rank {
            true => (Direction::Forward, n - rank),
            false => (Direction::Backward, rank - n - 1),
        };
        // Scan the merged view, since overridden keys must be passed correctly. It may have few
        // entries among many of the base.
        let mut read = Batch::default().with_want((left as usize).saturating_add(1).min(MOST));
        read.may_pause = true;
        Unique::scan(self, guard, start, direction, &mut read);
        let (mut at, mut left_out) = (Vec::new(), 0);
        loop {
            left_out += read.skipped;
            // The entry is in this batch.
            if let Some(i) = usize::try_from(left).ok().filter(|&i| i < read.len()) {
                let (key, value) = read.entry(i);
                batch.push(key, value);
                if left_out >= SEGMENT {
                    self.overrides.checkpoints.put(key, n);
                }
                return Some(true);
            }
            // There is no n-th entry.
            if read.done {
                return Some(false);
            }
            // Pass the whole batch.
            left -= read.len() as u64;
            std::mem::swap(&mut at, &mut read.resume);
            *work = work.saturating_sub(read.len() + read.skipped);
            // The budget is exhausted. Keep how far this has got as a checkpoint: the position, and
            // its rank.
            if *work == 0 {
                let rank = match direction {
                    Direction::Forward => n - left,
                    Direction::Backward => n + left + 1,
                };
                self.overrides.checkpoints.put(&at, rank);
                return None;
            }
            let start = Start::resume(&at, direction);
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
        loop {
            // Guess that the base and the snapshot have the same entries between the last
            // checkpoint and the entry. So find the base's entry there.
            let (from, next) = self.overrides.checkpoints.with_rank(n);
            let before = self.count_base(guard, (None, Some(&from.position)), work)?;
            let guess = before + (n - from.rank);
            let forward = Direction::Forward;
            let is_there = with_least(work, |work| base.nth(guard, guess, forward, work, batch))?;
            let mut near = is_there.then(|| batch.key(0).to_vec());
            // The entry is before the next checkpoint, wherever the base's is: many may have been
            // deleted there.
            let next = next.map(|next| next.position);
            if next.is_some() && (near.is_none() || near > next) {
                near.clone_from(&next);
            }
            let near = near.as_deref();
            // Count its rank in the snapshot. This also stores checkpoints, so that the next guess
            // is better.
            let rank = self.count_to(guard, near, work)?;
            // There is nothing after the end.
            if near.is_none() && n >= rank {
                batch.clear();
                return Some(false);
            }
            // If it is far away, more keys are overridden than a segment has, so checkpoints were
            // put; or they are before the next checkpoint, and were overridden since that was put.
            // If most entries of the base are new, it takes many guesses.
            let is_far = n.abs_diff(rank) > FEW;
            let is_end = near == next.as_deref();
            if is_far && (!is_end || self.divide(guard, n, (from, near), work)?) {
                if *work == 0 {
                    return None;
                }
                continue;
            }
            // The entry is near. Walk the rest of the way.
            batch.clear();
            let start = match near {
                Some(near) if n >= rank => Start::At(near),
                Some(near) => Start::Past(near),
                None => Start::Edge,
            };
            return self.pass(guard, (start, rank), n, work, batch);
        }
    }
}
