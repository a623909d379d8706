//! Where a walk begins, as a cut between two neighbours.
//!
//! ```text
//!    a   c   f | h   k        the cut before `h`: a, c, f lie left of it
//!              <------        a walk forward begins with h
//!    ------>                  a walk backward begins with f
//! ```
//!
//! A structure need not know why a walk begins where it does: it asks [`Cut::has_left`] of the
//! positions that it meets. The answers are monotone: if a position lies left of the cut, so do all
//! smaller ones.

use larder_index::{Direction, Start};

/// What lies left of the cut.
#[derive(Clone, Copy, Debug)]
enum Left<'a> {
    Nothing,
    All,
    Less(&'a [u8]),
    LessOrSame(&'a [u8]),
    /// Less, but not a beginning of the bytes.
    LessApart(&'a [u8]),
}

/// A place between two neighbours, and a direction from there.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    left: Left<'a>,
    direction: Direction,
}

impl<'a> Cut<'a> {
    /// The cut where a scan from `start` begins.
    pub fn new(start: Start<'a>, direction: Direction) -> Self {
        let forward = direction == Direction::Forward;
        let left = match start {
            Start::Edge if forward => Left::Nothing,
            Start::Edge => Left::All,
            Start::At(p) if forward => Left::Less(p),
            Start::At(p) => Left::LessOrSame(p),
            Start::Past(p) if forward => Left::LessOrSame(p),
            Start::Past(p) => Left::Less(p),
        };
        Cut { left, direction }
    }

    /// The cut before the entry whose position is a beginning of `bytes`; where there is none,
    /// before the first entry past `bytes`. A walk backward begins with that entry, or with the
    /// last one before `bytes`.
    pub fn around(bytes: &'a [u8], direction: Direction) -> Self {
        let left = match direction {
            Direction::Forward => Left::LessApart(bytes),
            Direction::Backward => Left::LessOrSame(bytes),
        };
        Cut { left, direction }
    }

    /// Whether the position lies left of the cut. O(length).
    #[inline]
    pub fn has_left(&self, position: &[u8]) -> bool {
        match self.left {
            Left::Nothing => false,
            Left::All => true,
            Left::Less(p) => position < p,
            Left::LessOrSame(p) => position <= p,
            Left::LessApart(p) => position < p && !p.starts_with(position),
        }
    }

    /// Whether a walk in this direction meets the position.
    #[inline]
    pub fn admits(&self, position: &[u8]) -> bool {
        self.has_left(position) != self.is_forward()
    }

    /// Where parts are divided at `at` (the right one begins there), whether the walk begins in the
    /// right one.
    pub(crate) fn begins_right_of(&self, at: &[u8]) -> bool {
        match self.direction {
            // What lies before a bound lies left of the cut at that bound, whatever kind of cut it
            // is.
            Direction::Forward => self.bytes().is_some_and(|p| at <= p),
            Direction::Backward => self.has_left(at),
        }
    }

    /// The same cut among what follows the first `n` bytes of the cut's own.
    pub(crate) fn behind(&self, n: usize) -> Cut<'a> {
        let left = match self.left {
            Left::Nothing | Left::All => self.left,
            Left::Less(p) => Left::Less(&p[n..]),
            Left::LessOrSame(p) => Left::LessOrSame(&p[n..]),
            Left::LessApart(p) => Left::LessApart(&p[n..]),
        };
        Cut {
            left,
            direction: self.direction,
        }
    }

    /// The direction of the walk.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether the walk goes forward.
    #[inline]
    pub fn is_forward(&self) -> bool {
        self.direction == Direction::Forward
    }

    /// The bytes at which the cut is; none at an edge.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.left {
            Left::Nothing | Left::All => None,
            Left::Less(p) | Left::LessOrSame(p) | Left::LessApart(p) => Some(p),
        }
    }

    /// Whether a walk that met this position last goes on from here. Positions are prefix-free, so
    /// that nothing lies between a position and the same with a zero byte after it.
    pub fn goes_on_after(&self, position: &[u8]) -> bool {
        match (self.left, self.direction) {
            (Left::LessOrSame(p), Direction::Forward) | (Left::Less(p), Direction::Backward) => {
                p == position
            }
            (Left::Less([p @ .., 0]), Direction::Forward) => p == position,
            _ => false,
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use Direction::{Backward, Forward};

    #[test]
    fn cuts_fall_where_scans_begin() {
        let all = ["aa", "bb", "cc"];
        let admitted = |cut: Cut<'_>| {
            let admitted = all.iter().filter(|p| cut.admits(p.as_bytes()));
            admitted.copied().collect::<Vec<_>>()
        };
        assert_eq!(admitted(Cut::new(Start::Edge, Forward)), all);
        assert_eq!(admitted(Cut::new(Start::Edge, Backward)), all);
        assert_eq!(admitted(Cut::new(Start::At(b"bb"), Forward)), ["bb", "cc"]);
        assert_eq!(admitted(Cut::new(Start::At(b"bb"), Backward)), ["aa", "bb"]);
        assert_eq!(admitted(Cut::new(Start::Past(b"bb"), Forward)), ["cc"]);
        assert_eq!(admitted(Cut::new(Start::Past(b"bb"), Backward)), ["aa"]);
        assert_eq!(admitted(Cut::around(b"bbx", Forward)), ["bb", "cc"]);
        assert_eq!(admitted(Cut::around(b"bx", Forward)), ["cc"]);
        assert_eq!(admitted(Cut::around(b"bbx", Backward)), ["aa", "bb"]);
        assert!(Cut::new(Start::At(b"bb\0"), Forward).goes_on_after(b"bb"));
        assert!(!Cut::new(Start::At(b"bb"), Forward).goes_on_after(b"bb"));
    }
}
