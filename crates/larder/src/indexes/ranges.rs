//! Ranges of the entries of an index, and reading them leaf by leaf.

use super::values::SearchValue;
use super::Entries;
use crate::programs::{Plan, Program};
use larder_index::{Batch, Direction, Guard, Start};
use larder_term::{order_key, TermRef};
use smallvec::{smallvec, SmallVec};
use std::ops::Bound;

/// A range of positions of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryRange {
    /// The entries of this value: the positions that begin with it.
    Value(SearchValue),
    /// The positions at or above `low`, and below `high`.
    Between {
        low: Option<Vec<u8>>,
        high: Option<Vec<u8>>,
    },
}

impl EntryRange {
    /// All entries.
    pub(super) const ALL: Self = EntryRange::Between {
        low: None,
        high: None,
    };

    /// The entries of a value. `buffer` is for its order key.
    pub(super) fn of_value(term: TermRef<'_>, buffer: &mut Vec<u8>) -> Self {
        EntryRange::Value(SearchValue::new(term, buffer))
    }

    /// The entries of the values in a range.
    fn of_values(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Self {
        EntryRange::Between {
            low: match low {
                Bound::Included(value) => Some(value),
                // If there is no position after it, the range is empty.
                Bound::Excluded(value) => Some(prefix_end(value).unwrap_or(vec![u8::MAX])),
                Bound::Unbounded => None,
            },
            high: match high {
                Bound::Included(value) => prefix_end(value),
                Bound::Excluded(value) => Some(value),
                Bound::Unbounded => None,
            },
        }
    }

    /// The value, if these are the entries of one value.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.wanted().map(|wanted| &wanted.value[..])
    }

    /// The value in both forms, if these are the entries of one value.
    pub(super) fn wanted(&self) -> Option<&SearchValue> {
        match self {
            EntryRange::Value(wanted) => Some(wanted),
            EntryRange::Between { .. } => None,
        }
    }

    /// The first position.
    pub(super) fn low(&self) -> Option<&[u8]> {
        match self {
            EntryRange::Value(wanted) => Some(&wanted.value),
            EntryRange::Between { low, .. } => low.as_deref(),
        }
    }

    /// Whether a position is in the range.
    fn has(&self, position: &[u8]) -> bool {
        match self {
            EntryRange::Value(wanted) => position.starts_with(&wanted.value),
            EntryRange::Between { low, high } => {
                low.as_ref().is_none_or(|low| position >= &low[..])
                    && high.as_ref().is_none_or(|high| position < &high[..])
            }
        }
    }

    /// The first position after the range, in the memory of `buffer`. `None` if there is none.
    pub(super) fn high(&self, mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        buffer.clear();
        match self {
            EntryRange::Value(wanted) => {
                buffer.extend_from_slice(&wanted.value);
                prefix_end(buffer)
            }
            EntryRange::Between { high, .. } => high.as_ref().map(|high| {
                buffer.extend_from_slice(high);
                buffer
            }),
        }
    }
}

/// The first position after all that begin with `value`.
fn prefix_end(mut value: Vec<u8>) -> Option<Vec<u8>> {
    order_key::successor(&mut value).then_some(value)
}

/// Ranges of positions, in order. Mostly there is one.
pub(super) type EntryRanges = SmallVec<[EntryRange; 1]>;

/// The ranges in which an index has the entries of rows that match a program. `buffer` is for order
/// keys.
pub(super) fn ranges(program: &Program, entries: &Entries, buffer: &mut Vec<u8>) -> EntryRanges {
    match entries.extractor.plan(program) {
        Plan::Nothing => SmallVec::new(),
        Plan::AllKeys => smallvec![EntryRange::ALL],
        Plan::Keys(terms) => {
            let each = terms.iter();
            let mut ranges: EntryRanges = each
                .map(|term| EntryRange::of_value(term.as_ref(), buffer))
                .collect();
            // Identifiers of this node have another place among order keys than among terms.
            ranges.sort_unstable_by(|one, other| one.low().cmp(&other.low()));
            // Several terms may be one value.
            ranges.dedup_by(|one, other| one.low() == other.low());
            ranges
        }
        Plan::Range { low, high } => smallvec![EntryRange::of_values(low, high)],
    }
}

/// Whether a position is in one of some ranges, which are in order and have no position in common.
pub(super) fn is_within(ranges: &[EntryRange], position: &[u8]) -> bool {
    let begins = |range: &EntryRange| range.low().is_none_or(|low| low <= position);
    let after = ranges.partition_point(begins);
    ranges[..after]
        .last()
        .is_some_and(|range| range.has(position))
}

impl Entries {
    /// Fills `batch` with the next entries of a range, all of one leaf and of one instant. They
    /// begin at `from`, or at the edge of the range; a backward read begins before `from`. Returns
    /// where to continue, if the range has more. `buffer` is for the end of the range.
    pub(super) fn read_leaf<'g>(
        &'g self,
        guard: &'g Guard,
        range: &EntryRange,
        from: Option<&[u8]>,
        direction: Direction,
        buffer: &mut Vec<u8>,
        batch: &mut Batch<'g>,
    ) -> Option<Vec<u8>> {
        // Begin at the resume point, or at the near edge of the range. The far edge is lent to the
        // batch as a hint to the tree not to copy entries beyond it.
        let end = std::mem::take(buffer);
        let edge;
        let start = match direction {
            Direction::Forward => {
                batch.until = range.high(end).map_or(Bound::Unbounded, Bound::Excluded);
                from.max(range.low()).map_or(Start::Edge, Start::At)
            }
            Direction::Backward => {
                edge = range.high(end);
                let low = range.low().map(<[u8]>::to_vec);
                batch.until = low.map_or(Bound::Unbounded, Bound::Included);
                let from = from.or(edge.as_deref());
                from.map_or(Start::Edge, Start::Past)
            }
        };
        self.tree.scan(guard, start, direction, batch);
        // The tree may ignore the hint. The entries are in order, so drop those beyond the range
        // from the end.
        let is_within = |i: &usize| match &batch.until {
            Bound::Excluded(high) => batch.key(*i) < &high[..],
            Bound::Included(low) => batch.key(*i) >= &low[..],
            Bound::Unbounded => true,
        };
        let within = (0..batch.len()).rev().find(is_within);
        let within = within.map_or(0, |i| i + 1);
        let is_over = batch.done || within < batch.len();
        batch.truncate(within);
        // Take the far edge back, so that its memory serves the next call.
        if let Bound::Excluded(end) | Bound::Included(end) =
            std::mem::replace(&mut batch.until, Bound::Unbounded)
        {
            *buffer = end;
        }
        (!is_over).then(|| std::mem::take(&mut batch.resume))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::{term, Term};

    #[test]
    fn a_position_is_searched_in_the_range_before_it() {
        let value = |n: i64| EntryRange::of_value(Term::from(n).as_ref(), &mut Vec::new());
        let ranges = [2, 5, 7].map(value);
        for n in 0..10i64 {
            let mut position = Vec::new();
            order_key::encode(Term::from(n).as_ref(), &mut position);
            position.extend_from_slice(b"key");
            let expected = ranges.iter().any(|range| range.has(&position));
            assert_eq!(is_within(&ranges, &position), expected, "{n}");
            assert_eq!(expected, [2, 5, 7].contains(&n), "{n}");
            assert!(is_within(&[EntryRange::ALL], &position));
            assert!(!is_within(&[], &position));
        }
        let mut atom = Vec::new();
        order_key::encode(term!(a).as_ref(), &mut atom);
        assert!(!is_within(&ranges, &atom));
    }
}
