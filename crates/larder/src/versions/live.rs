//! The live and pending snapshots of a history, and the versions that they need.
//!
//! ```text
//!  versions of a key    2      5         9      13         newest on the right
//!  snapshots              4               10              each needs the next version on its right
//! ```
//!
//! Invariant:
//! * **S11** A snapshot that is registered later gets a greater number than all versions that are
//!   there then. So it needs none of them.

use std::collections::VecDeque;
use std::sync::Arc;

/// The number of a pending snapshot.
pub(super) const PENDING: u64 = u64::MAX;

/// A registered snapshot.
#[derive(Clone, Copy)]
pub(super) enum Registered {
    /// It is being taken. Its number will be at least this.
    Pending(u64),
    /// Its number.
    Live(u64),
}

impl Registered {
    /// Its number; `PENDING` while it is being taken.
    pub(super) fn number(self) -> u64 {
        match self {
            Registered::Pending(_) => PENDING,
            Registered::Live(number) => number,
        }
    }
}

/// The state under the lock of a history.
#[derive(Default)]
pub(super) struct Live {
    /// The numbers of the live snapshots, in order. Shared with the writes that look at them, so
    /// that none copies them. Snapshots are added at the end, or near it, and often removed from
    /// the front.
    known: Arc<VecDeque<u64>>,
    /// Lower bounds of the numbers of the pending snapshots. They are few.
    pending: Vec<u64>,
    /// The table no longer leads to this history, so no further snapshot is taken of it.
    pub(super) is_retired: bool,
}

/// The numbers of snapshots at an instant.
pub(super) struct SnapshotNumbers {
    /// Those that are known, in order; `None` if none is.
    known: Option<Arc<VecDeque<u64>>>,
    /// A lower bound of all others; `PENDING` if there are none.
    others: u64,
}

impl Live {
    /// The number of live and pending snapshots.
    pub(super) fn count(&self) -> usize {
        self.known.len() + self.pending.len()
    }

    /// Adds a snapshot. O(1), unless its number is less than that of many others.
    pub(super) fn add(&mut self, snapshot: Registered) {
        match snapshot {
            Registered::Pending(lower_bound) => self.pending.push(lower_bound),
            Registered::Live(number) => {
                // They are copied if a write is looking at them.
                let known = Arc::make_mut(&mut self.known);
                let place = known.partition_point(|&other| other <= number);
                known.insert(place, number);
            }
        }
    }

    /// Removes a snapshot. O(log k) for the oldest or the newest of k.
    pub(super) fn remove(&mut self, snapshot: Registered) {
        match snapshot {
            Registered::Pending(lower_bound) => {
                let place = self.pending.iter().position(|&other| other == lower_bound);
                place.map(|place| self.pending.swap_remove(place));
            }
            Registered::Live(number) => {
                if let Ok(place) = self.known.binary_search(&number) {
                    Arc::make_mut(&mut self.known).remove(place);
                }
            }
        }
    }

    /// The number of the newest snapshot; 0 if there is none.
    pub(super) fn newest(&self) -> u64 {
        // The number of a pending one isn't known, and may be the greatest.
        match self.pending.is_empty() {
            true => self.known.back().copied().unwrap_or(0),
            false => PENDING,
        }
    }

    /// A lower bound of all numbers; `PENDING` if there are none.
    pub(super) fn oldest(&self) -> u64 {
        let oldest = self.known.front().copied().unwrap_or(PENDING);
        oldest.min(self.oldest_pending())
    }

    fn oldest_pending(&self) -> u64 {
        self.pending.iter().copied().min().unwrap_or(PENDING)
    }

    /// The numbers of the live and pending snapshots.
    pub(super) fn numbers(&self) -> SnapshotNumbers {
        SnapshotNumbers {
            known: Some(Arc::clone(&self.known)),
            others: self.oldest_pending(),
        }
    }
}

impl SnapshotNumbers {
    /// Any numbers from this one on.
    pub(super) fn at_least(least: u64) -> Self {
        SnapshotNumbers {
            known: None,
            others: least,
        }
    }

    /// Whether one of the snapshots needs the version with this number. `before` is the number of
    /// the version before it, or 0.
    pub(super) fn need(&self, before: u64, version: u64) -> bool {
        // A snapshot reads the version with the least number that isn't less than its own (S2). So
        // this one is needed by those with numbers above `before`, up to its own number. The first
        // one above `before` decides.
        let is_known = self.known.as_ref().is_some_and(|known| {
            let next = known.partition_point(|&number| number <= before);
            known.get(next).is_some_and(|&number| number <= version)
        });
        // A pending snapshot may get any number from its lower bound on.
        is_known || version >= self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_needs_the_next_version() {
        let mut live = Live::default();
        live.add(Registered::Live(10));
        live.add(Registered::Live(4));
        let needed = |live: &Live| {
            let numbers = live.numbers();
            let versions = [(0, 2), (2, 5), (5, 9), (9, 13)];
            versions.map(|(before, version)| numbers.need(before, version))
        };
        assert_eq!(needed(&live), [false, true, false, true]);
        assert_eq!((live.newest(), live.oldest()), (10, 4));
        // A version is that of a snapshot with its own number, too.
        live.remove(Registered::Live(10));
        live.add(Registered::Live(9));
        assert_eq!(needed(&live), [false, true, true, false]);
        // A pending one may get any number from its bound on.
        live.remove(Registered::Live(9));
        live.add(Registered::Pending(7));
        assert_eq!(needed(&live), [false, true, true, true]);
        assert_eq!((live.newest(), live.oldest()), (PENDING, 4));
        live.remove(Registered::Pending(7));
        live.remove(Registered::Live(4));
        assert_eq!(needed(&live), [false; 4]);
        assert_eq!(
            (live.newest(), live.oldest(), live.count()),
            (0, PENDING, 0)
        );
    }
}
