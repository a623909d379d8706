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

use smallvec::SmallVec;

/// The number of a pending snapshot.
pub(super) const PENDING: u64 = u64::MAX;

/// A registered snapshot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Registered {
    /// Its number; `PENDING` while it is being taken.
    pub(super) number: u64,
    /// A lower bound of its number.
    pub(super) lower_bound: u64,
}

/// The state under the lock of a history.
#[derive(Default)]
pub(super) struct Live {
    /// The live and pending snapshots.
    pub(super) snapshots: Vec<Registered>,
    /// The table no longer leads to this history, so no further snapshot is taken of it.
    pub(super) is_retired: bool,
}

/// The numbers of snapshots at an instant.
pub(super) struct SnapshotNumbers {
    /// Those that are known, in order.
    known: SmallVec<[u64; 8]>,
    /// A lower bound of all others; `PENDING` if there are none.
    others: u64,
}

impl Live {
    /// The numbers of the live and pending snapshots.
    pub(super) fn numbers(&self) -> SnapshotNumbers {
        let mut numbers = SnapshotNumbers::at_least(PENDING);
        for snapshot in &self.snapshots {
            match snapshot.number {
                PENDING => numbers.others = numbers.others.min(snapshot.lower_bound),
                number => numbers.known.push(number),
            }
        }
        numbers.known.sort_unstable();
        numbers
    }
}

impl SnapshotNumbers {
    /// Any numbers from this one on.
    pub(super) fn at_least(least: u64) -> Self {
        SnapshotNumbers {
            known: SmallVec::new(),
            others: least,
        }
    }

    /// Whether one of the snapshots needs the version with this number. `before` is the number of
    /// the version before it, or 0.
    pub(super) fn need(&self, before: u64, version: u64) -> bool {
        let next = self.known.partition_point(|&number| number <= before);
        let is_known = self
            .known
            .get(next)
            .is_some_and(|&number| number <= version);
        is_known || version >= self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_needs_the_next_version() {
        let registered = |number, lower_bound| Registered {
            number,
            lower_bound,
        };
        let mut live = Live {
            snapshots: vec![registered(10, 10), registered(4, 4)],
            is_retired: false,
        };
        let needed = |live: &Live| {
            let numbers = live.numbers();
            let versions = [(0, 2), (2, 5), (5, 9), (9, 13)];
            versions.map(|(before, version)| numbers.need(before, version))
        };
        assert_eq!(needed(&live), [false, true, false, true]);
        // A version is that of a snapshot with its own number, too.
        live.snapshots[0].number = 9;
        assert_eq!(needed(&live), [false, true, true, false]);
        // A pending one may get any number from its bound on.
        live.snapshots[0] = registered(PENDING, 7);
        assert_eq!(needed(&live), [false, true, true, true]);
        live.snapshots.clear();
        assert_eq!(needed(&live), [false; 4]);
    }
}
