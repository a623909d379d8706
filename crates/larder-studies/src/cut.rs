//! The start of a walk, as a cut between two neighbouring positions.
//!
//! ```text
//!    a   c   f | h   k        the cut before `h`: a, c and f are left of it
//!              ------>        a walk forward begins with h
//!    <------                  a walk backward begins with f
//! ```
//!
//! A structure doesn't need to know the kind of a cut. It calls [`Cut::has_left`] with the
//! positions that it visits. The result is monotone: if a position is left of the cut, all smaller
//! ones are.

use larder_index::{Direction, Start};

/// The positions left of the cut.
#[derive(Clone, Copy, Debug)]
enum Left<'a> {
    Nothing,
    All,
    Less(&'a [u8]),
    LessOrSame(&'a [u8]),
    /// Less, but not a prefix of the bytes.
    LessApart(&'a [u8]),
}

/// A cut, and the direction of the walk from there.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    left: Left<'a>,
    direction: Direction,
}

impl<'a> Cut<'a> {
    /// The cut at which a scan from `start` begins.
    pub fn new(start: Start<'a>, direction: Direction) -> Self {
        let forward = direction == Direction::Forward;
        // A position is the first one of the walk. Forward, it is the least that is admitted, so
        // what is less is left of the cut. Backward, it is the greatest.
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

    /// The cut for a walk that begins with the entry whose position is a prefix of `bytes`. If
    /// there is none, a walk forward begins with the first entry past `bytes`, and a walk backward
    /// with the last one before it.
    pub fn around(bytes: &'a [u8], direction: Direction) -> Self {
        let left = match direction {
            Direction::Forward => Left::LessApart(bytes),
            Direction::Backward => Left::LessOrSame(bytes),
        };
        Cut { left, direction }
    }

    /// Whether a position is left of the cut. O(length).
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

    /// Whether the walk visits a position.
    #[inline]
    pub fn admits(&self, position: &[u8]) -> bool {
        self.has_left(position) != self.is_forward()
    }

    /// Given two parts, of which the right one begins at `at`: whether the walk begins in the right
    /// one.
    pub(crate) fn begins_right_of(&self, at: &[u8]) -> bool {
        match self.direction {
            // Everything before the bytes of the cut is to its left, for every kind of cut.
            Direction::Forward => self.bytes().is_some_and(|p| at <= p),
            Direction::Backward => self.has_left(at),
        }
    }

    /// The same cut among positions without their first `n` bytes.
    pub(crate) fn skip(&self, n: usize) -> Cut<'a> {
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

    /// The bytes at which the cut is. `None` at an edge.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.left {
            Left::Nothing | Left::All => None,
            Left::Less(p) | Left::LessOrSame(p) | Left::LessApart(p) => Some(p),
        }
    }

    /// Whether this walk continues one that has visited this position last. Positions are
    /// prefix-free. So there is none between a position and the same with a zero byte appended.
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
