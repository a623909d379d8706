//! Where a view has no entries: positions that a scan of it has passed without finding one, as the
//! transaction has removed what was there. A later scan needn't pass them again.

use super::sorted_key::SortedKey;
use larder_index::{Direction, Start};
use std::borrow::Cow;

/// The most gaps that are known at a time, as a table may be emptied at several places.
const MOST: usize = 8;

/// The positions from one, included, to another, excluded. `None` is the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) from: Vec<u8>,
    pub(super) to: Option<Vec<u8>>,
}

impl Gap {
    /// An empty gap where a scan begins.
    pub(super) fn at(start: Start<'_>, direction: Direction) -> Gap {
        let edge = edge(start, direction).map(Cow::into_owned);
        Gap {
            from: edge.clone().unwrap_or_default(),
            to: edge,
        }
    }

    /// Where a scan that begins in the gap finds entries.
    pub(super) fn end(&self, direction: Direction) -> Option<Start<'_>> {
        match direction {
            Direction::Forward => self.to.as_deref().map(Start::At),
            Direction::Backward => Some(Start::Past(&self.from)),
        }
    }

    /// Makes the gap longer, in the direction of a scan that has found nothing up to a position.
    pub(super) fn extend(&mut self, direction: Direction, position: Vec<u8>) {
        match direction {
            Direction::Forward => self.to = Some(position),
            Direction::Backward => self.from = position,
        }
    }

    /// Whether a scan from this edge begins in the gap.
    fn has(&self, edge: Option<&[u8]>, direction: Direction) -> bool {
        let (from, to) = (&self.from[..], self.to.as_deref());
        // A forward scan begins at the edge, so a scan from `to` finds what is there. A backward
        // one begins below the edge, so one from `from` begins before the gap.
        match direction {
            Direction::Forward => {
                edge.is_some_and(|edge| from <= edge && to.is_some_and(|to| edge < to))
            }
            Direction::Backward => match edge {
                Some(edge) => from < edge && to.is_none_or(|to| edge <= to),
                None => to.is_none(),
            },
        }
    }

    /// Whether all of another gap is in this one.
    fn covers(&self, other: &Gap) -> bool {
        let ends_later = match (&self.to, &other.to) {
            (Some(to), Some(other)) => other <= to,
            (to, _) => to.is_none(),
        };
        self.from <= other.from && ends_later
    }
}

/// The position at which a forward scan begins, or below which a backward one does. `None` is the
/// end.
fn edge(start: Start<'_>, direction: Direction) -> Option<Cow<'_, [u8]>> {
    // The least position after another is that with one more byte.
    let after = |position: &[u8]| Cow::Owned([position, &[0]].concat());
    Some(match (start, direction) {
        (Start::Edge, Direction::Forward) => Cow::Borrowed(&[]),
        (Start::Edge, Direction::Backward) => return None,
        (Start::At(position), Direction::Forward)
        | (Start::Past(position), Direction::Backward) => Cow::Borrowed(position),
        (Start::At(position) | Start::Past(position), _) => after(position),
    })
}

/// The gaps of a view.
#[derive(Default)]
pub(super) struct Gaps(Vec<KnownGap>);

struct KnownGap {
    gap: Gap,
    /// The keys at its ends.
    low: SortedKey,
    high: Option<SortedKey>,
}

impl Gaps {
    /// The gap in which a scan begins.
    pub(super) fn at(&self, start: Start<'_>, direction: Direction) -> Option<Gap> {
        if self.0.is_empty() {
            return None;
        }
        let edge = edge(start, direction);
        let known = self.0.iter();
        let mut gaps = known.map(|known| &known.gap);
        gaps.find(|gap| gap.has(edge.as_deref(), direction))
            .cloned()
    }

    /// Adds a gap with the keys at its ends. The oldest one is forgotten if there are too many.
    pub(super) fn add(&mut self, gap: Gap, low: SortedKey, high: Option<SortedKey>) {
        // What a longer gap covers says nothing more.
        self.0.retain(|known| !gap.covers(&known.gap));
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(KnownGap { gap, low, high });
    }

    /// Forgets the gaps in which a key may lie. If the table isn't `ordered`, keys with the same
    /// word may have any order.
    pub(super) fn forget(&mut self, key: &SortedKey, ordered: bool) {
        // Keep the gaps whose ends are both on one side of the key.
        self.0.retain(|KnownGap { low, high, .. }| {
            let is_same = |end: &SortedKey| !ordered && end.word() == key.word();
            let is_before = key < low && !is_same(low);
            let is_after = high
                .as_ref()
                .is_some_and(|high| key > high && !is_same(high));
            is_before || is_after
        });
    }
}
