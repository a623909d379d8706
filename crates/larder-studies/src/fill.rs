//! The size of a batch of a scan.

use larder_index::{Batch, Direction};

/// The maximum number of entries in a batch.
const MOST: usize = 64;
/// A batch with this number of bytes is full.
const ENOUGH: usize = 16 << 10;

/// Whether the batch is full.
pub(crate) fn is_full(batch: &Batch) -> bool {
    let most = match batch.want {
        0 => MOST,
        want => want.min(MOST),
    };
    batch.len() >= most || batch.copied_bytes() >= ENOUGH
}

/// Writes to `resume` where a scan continues after the entry at a position, which is given in
/// parts.
pub(crate) fn resume_after(position: &[&[u8]], direction: Direction, resume: &mut Vec<u8>) {
    resume.clear();
    position
        .iter()
        .for_each(|part| resume.extend_from_slice(part));
    if direction == Direction::Forward {
        // Positions are prefix-free. So no position is between this one and the same with a zero
        // byte appended.
        resume.push(0);
    }
}

/// Records whether the scan is at its end.
pub(crate) fn end(batch: &mut Batch, done: bool) {
    batch.done = done;
    if done {
        batch.resume.clear();
    }
}
