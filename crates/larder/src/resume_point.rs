//! How far a scan has advanced between two batches.

use larder_index::{Batch, Direction, Start};

/// The point at which a scan resumes. On a path of keys it is a point under the current key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResumePoint {
    /// At the beginning, of the path or of the current key.
    #[default]
    Begin,
    /// After the entry with this position.
    Past(Vec<u8>),
    /// At the position where the next batch begins, as the last one returned.
    Next(Vec<u8>),
    /// At the end of the path.
    End,
}

impl ResumePoint {
    /// The resume point after a batch.
    pub(crate) fn after(batch: &Batch) -> Self {
        match batch.done {
            true => ResumePoint::End,
            false => ResumePoint::Next(batch.resume.clone()),
        }
    }

    /// Moves the resume point past a batch. Swaps the memory of the two positions instead of
    /// copying.
    pub(crate) fn move_past(&mut self, batch: &mut Batch) {
        match self {
            ResumePoint::Next(position) if !batch.done => {
                std::mem::swap(position, &mut batch.resume);
            }
            resume => *resume = ResumePoint::after(batch),
        }
    }

    /// Where the next batch starts: here, or at `first` if the scan is at the beginning.
    pub(crate) fn start<'p>(&'p self, first: Start<'p>, direction: Direction) -> Start<'p> {
        match self {
            ResumePoint::Past(position) => Start::Past(position),
            ResumePoint::Next(position) => Start::resume(position, direction),
            ResumePoint::Begin | ResumePoint::End => first,
        }
    }

    /// The encoded resume point: a tag, the number of the current key, and the position.
    pub(crate) fn to_bytes(&self, key: usize) -> Vec<u8> {
        // Tags are part of continuations, which hosts keep.
        let (tag, position): (u8, &[u8]) = match self {
            ResumePoint::Begin => (0, &[]),
            ResumePoint::Past(p) => (1, p),
            ResumePoint::Next(p) => (2, p),
            ResumePoint::End => (3, &[]),
        };
        let mut bytes = Vec::with_capacity(1 + size_of::<u64>() + position.len());
        bytes.push(tag);
        bytes.extend_from_slice(&(key as u64).to_le_bytes());
        bytes.extend_from_slice(position);
        bytes
    }

    /// The resume point that `to_bytes` wrote, and the number of the current key. `None` if it
    /// can't have written these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<(Self, u64)> {
        let (tag, rest) = bytes.split_first()?;
        let (key, position) = rest.split_first_chunk()?;
        let resume = match (tag, position.is_empty()) {
            (0, true) => ResumePoint::Begin,
            (1, false) => ResumePoint::Past(position.to_vec()),
            (2, false) => ResumePoint::Next(position.to_vec()),
            (3, true) => ResumePoint::End,
            _ => return None,
        };
        Some((resume, u64::from_le_bytes(*key)))
    }
}
