//! Searching the tags of a bucket's slot entries, eight at a time.
//!
//! ```text
//!  slot entry    outside | displaced | tag, 6 bits       | offset, 8 bits
//!  rank          0       | distance from `low`, 7 bits   | number of the slot entry, 8 bits
//! ```
//!
//! The least tag is found by one pass over the slot entries:
//!
//! 1. Rank each slot entry by the distance of its tag from `low`, and then by its number. The
//!    distance is modulo 128, and the flag of displaced entries is its bit 6. So displaced entries
//!    and tags below `low` have greater distances than all others.
//! 2. In each of the eight columns, keep the least rank and the second.
//! 3. Reduce the eight columns to one. If the two ranks that are left have the same distance,
//!    several entries have the least tag.
//!
//! A search that also looks for the entry of a key needs the three least ranks: those of the entry
//! and of the next one, and whether the next one's tag is shared.
//!
//! Differences from a loop over the slot entries: no branch depends on a tag, and a step takes
//! about as many instructions for eight slot entries as for one.

use crate::hash::bucket::{entries, Bucket};
use crate::hash::eight::{Columns, Eight, Vector, NONE};
use crate::hash::shape::DISPLACED;

/// One more than the greatest tag.
pub(super) const TAGS: u8 = 64;
/// The bits of a rank that are the distance.
const DISTANCE: u16 = 0x7F00;

/// The numbers of the first eight slot entries, one in each column.
const NUMBERS: [u64; 2] = [0x0003_0002_0001_0000, 0x0007_0006_0005_0004];

/// The least tag among those that a search considers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeastTag {
    pub(super) tag: u8,
    /// The number of the first slot entry with this tag.
    pub(super) slot: usize,
    /// Whether other slot entries have this tag, too.
    pub(super) is_shared: bool,
}

/// Tags, and whether the entries with them are displaced.
#[derive(Clone, Copy)]
pub(super) struct TagRange {
    pub(super) from: u8,
    /// The last one.
    pub(super) to: u8,
    pub(super) displaced: bool,
}

/// The words of a bucket's slot entries, and the number of the last one. Slot entry 0, which is the
/// bucket's head, is replaced by `first`.
#[inline]
fn slot_entries(
    bucket: Bucket<'_>,
    first: u16,
) -> (impl Iterator<Item = [u64; 2]> + use<'_>, usize) {
    // `n` may be torn, but `pairs` has words of this bucket alone.
    let n = entries(bucket.word(0));
    let mut head = (!0xFFFF, u64::from(first));
    let pairs = bucket.pairs(n / 8 + 1).map(move |[low, high]| {
        let low = low & head.0 | head.1;
        head = (!0, 0);
        [low, high]
    });
    (pairs, n)
}

/// The least tag that is not below `low`, among the entries that are at home in a bucket, except
/// that of slot entry `except`. There is no entry 0.
#[inline]
pub(super) fn least_tag(bucket: Bucket<'_>, low: u8, except: usize) -> Option<LeastTag> {
    least::<Vector>(bucket, low, except)
}

#[inline]
fn least<E: Eight>(bucket: Bucket<'_>, low: u8, except: usize) -> Option<LeastTag> {
    let (pairs, n) = slot_entries(bucket, DISPLACED);
    let (lows, distance) = (E::splat(u16::from(low) << 8), E::splat(DISTANCE));
    let (last, except) = (E::splat(n as u16), E::splat(except as u16));
    let mut numbers = E::words(NUMBERS);
    let (mut least, mut second) = (E::splat(NONE), E::splat(NONE));
    for pair in pairs {
        // (1) Rank eight slot entries. Those after the last one, and slot entry `except`, get the
        // greatest rank.
        let distances = E::words(pair).and(distance).minus(lows).and(distance);
        let not_ours = numbers.exceeds(last).or(numbers.equals(except));
        let ranks = distances.or(numbers).or(not_ours);
        // (2) The new second rank of a column is the second so far, or the greater one of the new
        // rank and the least so far, whichever is less.
        second = second.min(least.max(ranks));
        least = least.min(ranks);
        numbers = numbers.plus(E::splat(8));
    }
    // (3) Each step halves the number of columns.
    for columns in [Columns::Eight, Columns::Four, Columns::Two] {
        let (upper, upper_second) = (least.upper_half(columns), second.upper_half(columns));
        second = second.min(upper_second).min(least.max(upper));
        least = least.min(upper);
    }
    let (least, second) = (least.first(), second.first());
    // A greater distance is that of a displaced entry, of a tag below `low`, or of no entry.
    let distance = (least >> 8) as u8;
    (distance < TAGS - low).then_some(LeastTag {
        tag: low + distance,
        slot: usize::from(least & 0xFF),
        is_shared: second >> 8 == least >> 8,
    })
}

/// The only entry at home with a tag, and what follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OnlyTag {
    /// The number of its slot entry.
    pub(super) slot: usize,
    /// The least tag among those that are greater.
    pub(super) next: Option<LeastTag>,
}

/// The entry with this tag that is at home in a bucket, and the least tag after it. `None` if there
/// is no such entry, or if there are several.
#[inline]
pub(super) fn only_tag(bucket: Bucket<'_>, tag: u8) -> Option<OnlyTag> {
    only::<Vector>(bucket, tag)
}

#[inline]
fn only<E: Eight>(bucket: Bucket<'_>, tag: u8) -> Option<OnlyTag> {
    let (pairs, n) = slot_entries(bucket, DISPLACED);
    let (lows, distance) = (E::splat(u16::from(tag) << 8), E::splat(DISTANCE));
    let last = E::splat(n as u16);
    let mut numbers = E::words(NUMBERS);
    let mut least = [E::splat(NONE); 3];
    for pair in pairs {
        // (1) As in `least`, without an exception.
        let distances = E::words(pair).and(distance).minus(lows).and(distance);
        let ranks = distances.or(numbers).or(numbers.exceeds(last));
        // (2) Keep the three least ranks of each column.
        least = with_rank(least, ranks);
        numbers = numbers.plus(E::splat(8));
    }
    // (3) The ranks of the upper half are ascending, too.
    for columns in [Columns::Eight, Columns::Four, Columns::Two] {
        let [first, second, third] = least.map(|ranks| ranks.upper_half(columns));
        least = with_rank(least, first);
        let greater = least[1].max(second);
        least = [
            least[0],
            least[1].min(second),
            least[2].min(greater).min(third),
        ];
    }
    let [first, second, third] = least.map(E::first);
    // The least distance isn't 0: no entry at home has the tag. Or two distances are: several have
    // it.
    if first >> 8 != 0 || second >> 8 == 0 {
        return None;
    }
    // As in `least`: a greater distance is that of no entry after the tag.
    let distance = (second >> 8) as u8;
    Some(OnlyTag {
        slot: usize::from(first & 0xFF),
        next: (distance < TAGS - tag).then_some(LeastTag {
            tag: tag + distance,
            slot: usize::from(second & 0xFF),
            is_shared: third >> 8 == second >> 8,
        }),
    })
}

/// The three least ranks of each column, given those before, and another one.
#[inline]
fn with_rank<E: Eight>([first, second, third]: [E; 3], rank: E) -> [E; 3] {
    let greater = first.max(rank);
    [
        first.min(rank),
        second.min(greater),
        third.min(second.max(greater)),
    ]
}

/// The numbers of a bucket's slot entries with these tags, in ascending order.
#[inline]
pub(super) fn with_tags(
    bucket: Bucket<'_>,
    tags: TagRange,
) -> impl Iterator<Item = usize> + use<'_> {
    with::<Vector>(bucket, tags)
}

#[inline]
fn with<E: Eight + 'static>(
    bucket: Bucket<'_>,
    tags: TagRange,
) -> impl Iterator<Item = usize> + use<'_, E> {
    // The bucket's head doesn't belong to the range.
    let flag = if tags.displaced { DISPLACED } else { 0 };
    let (mut pairs, n) = slot_entries(bucket, flag ^ DISPLACED);
    let (from, distance) = (
        E::splat(u16::from(tags.from) << 8 | flag),
        E::splat(DISTANCE),
    );
    let (last, greatest) = (
        E::splat(n as u16),
        E::splat(u16::from(tags.to - tags.from) << 8),
    );
    let mut numbers = E::words(NUMBERS);
    // The columns of the current eight slot entries that are left, and the number of the first.
    let (mut columns, mut first) = (0u8, 0);
    std::iter::from_fn(move || {
        while columns == 0 {
            let pair = pairs.next()?;
            // The same distances as in `least`, so all others are greater.
            let distances = E::words(pair).and(distance).minus(from).and(distance);
            let others = distances.exceeds(greatest).or(numbers.exceeds(last));
            columns = !others.columns();
            first = usize::from(numbers.first());
            numbers = numbers.plus(E::splat(8));
        }
        let column = columns.trailing_zeros() as usize;
        columns &= columns - 1;
        Some(first + column)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::bucket::tests::with_words;
    use crate::hash::eight::Portable;

    /// The same as `least_tag`, entry by entry.
    fn one_by_one(slots: &[u16], low: u8, except: usize) -> Option<LeastTag> {
        let n = usize::from(slots[0] & 0xFF);
        let tag = |slot: usize| (slots[slot] >> 8 & 0x7F) as u8;
        let ours = || (1..=n).filter(|&slot| slot != except && (low..TAGS).contains(&tag(slot)));
        let slot = ours().min_by_key(|&slot| tag(slot))?;
        let is_shared = ours().filter(|&other| tag(other) == tag(slot)).count() > 1;
        Some(LeastTag {
            tag: tag(slot),
            slot,
            is_shared,
        })
    }

    /// The same as `only_tag`, entry by entry.
    fn only_one_by_one(slots: &[u16], tag: u8) -> Option<OnlyTag> {
        let first = one_by_one(slots, tag, 0)?;
        (first.tag == tag && !first.is_shared).then(|| OnlyTag {
            slot: first.slot,
            next: one_by_one(slots, tag, first.slot),
        })
    }

    #[test]
    fn tags_are_those_found_one_by_one() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (random >> 40) as u16
        };
        for round in 0..4000 {
            // Few different tags make shared ones likely.
            let tags = [0xFFFF, 0x07FF, 0xC0FF, 0x3FFF][round % 4];
            let mut slots: Vec<u16> = (0..64).map(|_| next() & tags).collect();
            let n = next() % 33;
            slots[0] = slots[0] & 0xFF00 | n;
            let words: Vec<u64> = slots
                .chunks(4)
                .map(|four| {
                    four.iter()
                        .rfold(0, |word, &slot| word << 16 | u64::from(slot))
                })
                .collect();
            let tags = TagRange {
                from: next() as u8 % 64,
                to: 63,
                displaced: round % 3 == 0,
            };
            let to = tags.from + next() as u8 % (64 - tags.from);
            let tags = TagRange { to, ..tags };
            let slots_with: Vec<usize> = (1..=usize::from(n))
                .filter(|&slot| {
                    let (tag, flag) = (slots[slot] >> 8 & 0x3F, slots[slot] & DISPLACED != 0);
                    (tags.from..=tags.to).contains(&(tag as u8)) && flag == tags.displaced
                })
                .collect();
            let (low, except) = ((next() % 65) as u8, usize::from(next() % 34));
            let expect = one_by_one(&slots, low, except);
            with_words(&words, |bucket| {
                assert_eq!(
                    only_tag(bucket, tags.from),
                    only_one_by_one(&slots, tags.from)
                );
                assert_eq!(
                    only::<Portable>(bucket, tags.from),
                    only_one_by_one(&slots, tags.from)
                );
                assert_eq!(least_tag(bucket, low, except), expect);
                assert_eq!(least::<Portable>(bucket, low, except), expect);
                assert_eq!(with_tags(bucket, tags).collect::<Vec<_>>(), slots_with);
                assert_eq!(
                    with::<Portable>(bucket, tags).collect::<Vec<_>>(),
                    slots_with
                );
            });
        }
    }
}
