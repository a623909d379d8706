//! How much a scan takes at once.

use larder_index::{Batch, Direction};

/// Entries that a batch takes at most: about a leaf's worth.
const MOST: usize = 64;
/// After so many bytes a batch takes no more.
const ENOUGH: usize = 16 << 10;

/// Whether the batch is full.
pub(crate) fn is_full(batch: &Batch) -> bool {
    let most = match batch.want {
        0 => MOST,
        want => want.min(MOST),
    };
    batch.len() >= most || batch.bytes.len() >= ENOUGH
}

/// Writes from where the scan goes on after an entry at this position.
pub(crate) fn resume_after(position: &[&[u8]], direction: Direction, resume: &mut Vec<u8>) {
    resume.clear();
    position
        .iter()
        .for_each(|part| resume.extend_from_slice(part));
    if direction == Direction::Forward {
        // Positions are prefix-free: nothing lies between a position and the same with a zero byte
        // after it.
        resume.push(0);
    }
}

/// Notes whether the scan is at its end.
pub(crate) fn end(batch: &mut Batch, done: bool) {
    batch.done = done;
    if done {
        batch.resume.clear();
    }
}
