//! Questions about ranks, beside a sorted set of the keys, and while others write.

use crate::{key, mix, put, remove, Hashes};
use larder_index::{pin, Batch, Direction, Ranked, Unique};
use std::collections::BTreeSet;
use std::ops::Range;

/// The index's questions about ranks, which it answers.
pub fn ranked(index: &dyn Unique) -> &dyn Ranked {
    index.ranked().expect("an ordered index has ranks")
}

/// The keys between two, counted with so much work at a time.
pub fn count(index: &dyn Unique, low: Option<&[u8]>, high: Option<&[u8]>, work: usize) -> u64 {
    // Ask until there is an answer. Only an attempt that used up its work may have none.
    loop {
        let mut left = work;
        let counted = ranked(index).count_between(&pin(), low, high, &mut left);
        match counted {
            Some(counted) => return counted.entries,
            None => assert_eq!(left, 0, "no answer, and work is left"),
        }
    }
}

/// The n-th key of a direction.
pub fn nth(index: &dyn Unique, n: u64, direction: Direction) -> Option<Vec<u8>> {
    let (guard, mut batch, mut work) = (pin(), Batch::default(), usize::MAX);
    let there = ranked(index).nth(&guard, n, direction, &mut work, &mut batch);
    assert_eq!(there, Some(!batch.is_empty()));
    (!batch.is_empty()).then(|| batch.key(0).to_vec())
}

/// Compares all kinds of questions with a sorted set of the same keys.
///
/// # Panics
/// If an answer differs.
pub fn compare(index: &dyn Unique, keys: &BTreeSet<Vec<u8>>, seed: u64) {
    let sorted: Vec<_> = keys.iter().collect();
    let n = sorted.len() as u64;
    for turn in 0..4 {
        // A few random pairs of keys, and the edges.
        let chance = mix(seed << 8 | turn);
        let at = |chance: u64| {
            sorted
                .get((chance % n.max(1)) as usize)
                .map(|k| k.as_slice())
        };
        let (a, b) = (at(chance), at(chance >> 32));
        // Keys that are there, and that lie after one: keys are prefix-free.
        let after = a.map(|key| [key, &[0]].concat());
        for (low, high) in [
            (None, None),
            (None, a),
            (a, None),
            (a.min(b), a.max(b)),
            (a, a),
        ] {
            // Bounds that are keys of the set, and bounds that lie between two keys.
            for low in [low, low.and(after.as_deref())] {
                if low.zip(high).is_some_and(|(low, high)| low > high) {
                    continue;
                }
                // The definition of the answer: from `low`, included, to `high`, not included.
                let inside = |key: &&Vec<u8>| {
                    low.is_none_or(|low| key.as_slice() >= low)
                        && high.is_none_or(|high| key.as_slice() < high)
                };
                let expected = keys.iter().filter(inside).count() as u64;
                // Different limits of work: each answer is the same, in one attempt or in many.
                let work = [1, 3, usize::MAX][(chance % 3) as usize];
                assert_eq!(
                    count(index, low, high, work),
                    expected,
                    "{low:?} to {high:?}"
                );
            }
        }
        // A count up to a key also says whether that key is there.
        if let Some(a) = a {
            for (high, is_there) in [(a, true), (after.as_deref().unwrap_or(a), false)] {
                let mut work = usize::MAX;
                let counted = ranked(index).count_between(&pin(), None, Some(high), &mut work);
                assert_eq!(counted.map(|c| c.high_is_there), Some(is_there));
            }
        }
        // Places at random, at both ends, and after the end.
        for place in [chance % (n + 2), 0, n.saturating_sub(1), n] {
            let expected = sorted.get(place as usize).map(|k| k.to_vec());
            assert_eq!(nth(index, place, Direction::Forward), expected);
            let from_end = n.checked_sub(place + 1).map(|i| sorted[i as usize].clone());
            assert_eq!(nth(index, place, Direction::Backward), from_end);
        }
    }
}

/// A key of a number.
fn bytes(n: u64) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

/// Inserts and removes keys of a range that is this thread's alone, and asks how many there are
/// between two of them: that is exact, whatever others do to the same nodes. Gives how many there
/// are in the end.
///
/// # Panics
/// If an answer is wrong.
pub fn own_range(index: &dyn Unique, range: Range<u64>, steps: u64, seed: u64) -> u64 {
    let mut oracle = BTreeSet::new();
    // The range is the thread's own, but the nodes at its ends hold other threads' keys, too.
    let width = range.end - range.start;
    for step in 0..steps {
        let chance = mix(seed << 32 | step);
        let k = range.start + chance % width;
        match chance >> 32 & 3 {
            0 | 1 => {
                put(index, key(&bytes(k), Hashes::Good), &[7; 3]);
                oracle.insert(k);
            }
            2 => {
                let removed = remove(index, key(&bytes(k), Hashes::Good));
                assert_eq!(removed, oracle.remove(&k));
            }
            _ => {
                // The whole range, or one side of its middle.
                let (low, high) = match chance >> 40 & 1 {
                    0 => (range.start, range.end),
                    _ => (
                        k.min(range.start + width / 2),
                        k.max(range.start + width / 2),
                    ),
                };
                let expected = oracle.range(low..high).count() as u64;
                let counted = count(index, Some(&bytes(low)), Some(&bytes(high)), usize::MAX);
                assert_eq!(counted, expected, "{low} to {high}");
            }
        }
    }
    let counted = count(
        index,
        Some(&bytes(range.start)),
        Some(&bytes(range.end)),
        usize::MAX,
    );
    assert_eq!(counted, oracle.len() as u64, "all of {range:?}");
    counted
}

/// Asks about ranks of a table of which `there` keys stay, and at most `more` others come and go.
///
/// # Panics
/// If an answer can't be.
pub fn look(index: &dyn Unique, there: u64, more: u64, looks: u64) {
    for _ in 0..looks {
        let all = count(index, None, None, usize::MAX);
        assert!((there..=there + more).contains(&all), "{all} of {there}");
        assert!(nth(index, there - 1, Direction::Forward).is_some());
        assert!(nth(index, there - 1, Direction::Backward).is_some());
    }
}

/// Keys that stay, above those of all ranges: `look` counts them.
pub fn stay(index: &dyn Unique, keys: Range<u64>) {
    keys.for_each(|k| {
        put(index, key(&bytes(k), Hashes::Good), &[1]);
    });
}
