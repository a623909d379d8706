//! Keys, and where scans begin.

/// A key as bytes, with its hash. Only hash-ordered indexes read `hash`. It must be a function of
/// `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    /// A seeded hash of `bytes`.
    pub hash: u64,
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending positions.
    Forward,
    /// Descending positions.
    Backward,
}

/// The start of a scan. Positions are opaque byte strings that compare in the order of the scan. In
/// key order a position is the key itself. In hash order it is the top 48 bits of the hash (6
/// bytes, big endian), followed by the key. Use `position` to make one, and don't rely on this
/// format.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At the first entry in the direction of the scan.
    Edge,
    /// At the position. An entry at the position is included.
    At(&'a [u8]),
    /// Past the position: strictly after it in a forward scan, strictly before it in a backward
    /// scan.
    Past(&'a [u8]),
}

impl<'a> Start<'a> {
    /// Where a scan continues after a batch that ended at this position
    /// ([`Batch::resume`](crate::Batch::resume)). In a backward scan the position is the fence
    /// below which the next batch begins.
    #[inline]
    pub fn resume(resume: &'a [u8], direction: Direction) -> Self {
        match direction {
            Direction::Forward => Start::At(resume),
            Direction::Backward => Start::Past(resume),
        }
    }
}

/// The number of bytes of a hash in a position.
pub(crate) const HASH: usize = 6;
