//! Positions whose ranks are known. They are positions of a snapshot, which doesn't change, or of a
//! transaction's view, which only the transaction changes. A change doesn't affect the ranks below
//! it, and shifts those above it by one, if at all.

use larder_index::sync::Mutex;

/// A position, and the number of entries below it. The default is the beginning.
#[derive(Clone, Default)]
pub(super) struct Checkpoint {
    pub(super) position: Vec<u8>,
    pub(super) rank: u64,
}

/// The checkpoints, in order.
#[derive(Default)]
pub(super) struct Checkpoints(Mutex<Vec<Checkpoint>>);

impl Checkpoints {
    /// The last checkpoint that isn't above a position; the beginning if there is none.
    pub(super) fn at(&self, position: Option<&[u8]>) -> Checkpoint {
        self.last(|checkpoint| {
            position.is_none_or(|position| checkpoint.position.as_slice() <= position)
        })
    }

    /// The last checkpoint with at most this number of entries below it, and the next one.
    pub(super) fn with_rank(&self, rank: u64) -> (Checkpoint, Option<Checkpoint>) {
        let checkpoints = self.0.lock();
        let after = checkpoints.partition_point(|checkpoint| checkpoint.rank <= rank);
        let last = after.checked_sub(1).map(|i| checkpoints[i].clone());
        (last.unwrap_or_default(), checkpoints.get(after).cloned())
    }

    fn last(&self, is_before: impl Fn(&Checkpoint) -> bool) -> Checkpoint {
        let checkpoints = self.0.lock();
        let after = checkpoints.partition_point(is_before);
        after
            .checked_sub(1)
            .map(|i| checkpoints[i].clone())
            .unwrap_or_default()
    }

    pub(super) fn put(&self, position: &[u8], rank: u64) {
        let mut checkpoints = self.0.lock();
        let found = checkpoints.binary_search_by(|other| other.position.as_slice().cmp(position));
        if let Err(i) = found {
            let position = position.to_vec();
            checkpoints.insert(i, Checkpoint { position, rank });
        }
    }

    /// Shifts the ranks above a position, where the number of entries changes by this.
    pub(super) fn shift_above(&self, position: &[u8], change: i64) {
        let mut checkpoints = self.0.lock();
        let below =
            checkpoints.partition_point(|checkpoint| checkpoint.position.as_slice() <= position);
        for checkpoint in &mut checkpoints[below..] {
            checkpoint.rank = checkpoint.rank.saturating_add_signed(change);
        }
    }
}
