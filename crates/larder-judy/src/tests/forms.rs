//! Every form is reached, grown out of and shrunk back to.

use super::{CheckedArray, Words};
use crate::layout::{Kind, Map, Set};
use crate::{Judy1, JudyL, Stats};

/// Grows an array by these indexes in order, shrinks it by `away` in order, and notes the stats on
/// the way.
fn swell<A: Words>(keys: &[u64], away: &[u64]) -> Vec<Stats> {
    let mut beside = CheckedArray::<A>::new();
    let mut seen = Vec::new();
    for &key in keys {
        beside.put(key, !key);
        seen.push(beside.array.stats());
    }
    beside.compare();
    for &key in away {
        beside.take(key);
        seen.push(beside.array.stats());
    }
    beside.compare();
    assert!(!beside.oracle.is_empty() || beside.array.memory() == 0);
    seen
}

fn reversed(keys: &[u64]) -> Vec<u64> {
    keys.iter().rev().copied().collect()
}

/// In what order a trait of the stats shows up, without repeats.
fn phases(seen: &[Stats], of: impl Fn(&Stats) -> &'static str) -> Vec<&'static str> {
    let mut phases: Vec<_> = seen.iter().map(of).collect();
    phases.dedup();
    phases
}

fn leaf(stats: &Stats) -> &'static str {
    match stats {
        s if s.full_leaves > 0 => "full",
        s if s.bitmap_leaves > 0 => "bitmap",
        s if s.linear_leaves.iter().sum::<usize>() > 0 => "linear",
        s if s.immediate > 0 => "immediate",
        _ => "nothing",
    }
}

fn branch(stats: &Stats) -> &'static str {
    match stats {
        s if s.wide_branches > 0 => "wide",
        s if s.bitmap_branches > 0 => "bitmap",
        s if s.linear_branches > 0 => "linear",
        _ => "none",
    }
}

/// Two clusters far apart make a branch below which the leaves of one byte live.
fn cluster(dense: u64) -> Vec<u64> {
    (0..40)
        .map(|at| at << 48)
        .chain((0..dense).map(|at| 0x0700_0000_0000_0000 | at))
        .collect()
}

#[test]
fn last_byte_leaves_grow_and_shrink() {
    fn check<A: Words>() {
        let keys = cluster(256);
        let seen = swell::<A>(&keys, &reversed(&keys));
        let forms = phases(&seen, leaf);
        for pair in [
            ["linear", "bitmap"],
            ["bitmap", "full"],
            ["full", "bitmap"],
            ["bitmap", "linear"],
        ] {
            assert!(forms.windows(2).any(|w| w == pair), "{pair:?} in {forms:?}");
        }
    }
    check::<JudyL>();
    check::<Judy1>();
}

/// So many children of the root, so many indexes each, child by child.
fn children(children: u64, each: u64) -> Vec<u64> {
    (0..children * each)
        .map(|at| (at / each) << 56 | (at % each) << 40)
        .collect()
}

#[test]
fn branches_grow_and_shrink() {
    fn check<A: Words>() {
        let keys = children(256, 40);
        let mut across = keys.clone();
        across.sort_by_key(|key| std::cmp::Reverse((key & !(0xff << 56), key >> 56)));
        let forms = phases(&swell::<A>(&keys, &across), branch);
        assert_eq!(
            forms,
            ["none", "linear", "bitmap", "wide", "bitmap", "none"]
        );
        let keys = children(20, 40);
        let forms = phases(&swell::<A>(&keys, &reversed(&keys)), branch);
        assert_eq!(forms, ["none", "linear", "bitmap", "linear", "none"]);
    }
    check::<JudyL>();
    check::<Judy1>();
}

#[test]
fn linear_leaves_of_every_level() {
    fn check<A: Words>(most: [usize; 9]) {
        for k in 1..8usize {
            let mut beside = CheckedArray::<A>::new();
            // The root is a branch; what differs in the last k bytes alone is a leaf of level 7
            // until there are too many.
            (0..most[8] as u64 + 1).for_each(|at| beside.put(at << 56, at));
            let n = most[7] as u64 + (k < 7) as u64;
            (0..n).for_each(|at| beside.put((0xabcd << 48) | (at << (8 * (k - 1))), at));
            beside.compare();
            let stats = beside.array.stats();
            if k > 1 {
                assert_eq!(
                    (stats.linear_leaves[k], stats.narrow),
                    (1, (k < 7) as usize),
                    "level {k}: {stats:?}"
                );
                continue;
            }
            assert_eq!((stats.bitmap_leaves, stats.narrow), (1, 1));
            (16..n).for_each(|at| beside.take((0xabcd << 48) | at));
            beside.compare();
            let stats = beside.array.stats();
            assert_eq!(
                (stats.linear_leaves[1], stats.bitmap_leaves, stats.narrow),
                (1, 0, 1)
            );
        }
        let mut beside = CheckedArray::<A>::new();
        (0..30u64).for_each(|at| beside.put(at.wrapping_mul(0x9e37_79b9_7f4a_7c15), at));
        assert_eq!(beside.array.stats().linear_leaves[8], 1);
    }
    check::<JudyL>(Map::LEAF_MOST);
    check::<Judy1>(Set::LEAF_MOST);
}

#[test]
fn immediates_of_every_length() {
    fn check<A: Words>(bytes: usize) {
        for k in 2..8usize {
            let most = bytes / (k - 1);
            let mut beside = CheckedArray::<A>::new();
            // A branch of level k with 250 indexes in other children, and one child for the
            // immediates.
            let base = 0x1122_3344_5566_7788 & !(!0 >> (64 - 8 * k));
            (0..250u64).for_each(|at| beside.put(base | ((at + 1) << (8 * (k - 1))) | at, at));
            (64..124u64).for_each(|at| beside.put(at << 56, at));
            for n in 1..=most as u64 {
                let before = beside.array.stats().immediate;
                beside.put(base | (n * 3), n);
                let after = beside.array.stats().immediate;
                assert_eq!(
                    after,
                    before + (n == 1) as usize,
                    "level {k}, {n} of {most}"
                );
            }
            beside.compare();
            let immediate = beside.array.stats().immediate;
            beside.put(base | ((most as u64 + 1) * 3), 0);
            assert_eq!(
                beside.array.stats().immediate,
                immediate - 1,
                "level {k}: one more than fit"
            );
            beside.take(base | 6);
            assert_eq!(
                beside.array.stats().immediate,
                immediate,
                "level {k}: they fit again"
            );
            beside.compare();
            (0..=most as u64 + 1).for_each(|n| beside.take(base | (n * 3)));
            beside.compare();
        }
    }
    check::<JudyL>(7);
    check::<Judy1>(15);
}

#[test]
fn narrow_pointers_part_and_close() {
    fn check<A: Words>() {
        let mut beside = CheckedArray::<A>::new();
        let far = 0x0102_0304_0506_0000;
        (0..5000u64).for_each(|at| beside.put(far | at, at));
        assert!(beside.array.stats().narrow > 0);
        let depth = beside.array.stats().depth;
        for byte in 2..7 {
            let stray = far ^ (0x80 << (8 * byte));
            beside.put(stray, 1);
            beside.compare();
            beside.ask(stray);
            assert!(
                beside.array.stats().depth > depth,
                "a stray at byte {byte} parts the path"
            );
            beside.take(stray);
            assert_eq!(
                beside.array.stats().depth,
                depth,
                "and its branch closes again"
            );
            beside.compare();
        }
    }
    check::<JudyL>();
    check::<Judy1>();
}

#[test]
fn full_subtrees_have_no_gaps() {
    fn check<A: Words>() {
        let mut beside = CheckedArray::<A>::new();
        (0..65536u64).for_each(|at| beside.put(0xab0000 | at, at));
        assert_eq!(
            beside.array.gaps(0xab0000),
            [
                Some(0xac0000),
                Some(0xac0000),
                Some(0xaaffff),
                Some(0xaaffff)
            ]
        );
        assert_eq!(
            beside.array.gaps(0xab1234),
            [
                Some(0xac0000),
                Some(0xac0000),
                Some(0xaaffff),
                Some(0xaaffff)
            ]
        );
        beside.take(0xab8000);
        assert_eq!(beside.array.gaps(0xab1234)[0], Some(0xab8000));
        assert_eq!(beside.array.gaps(0xabffff)[2], Some(0xab8000));
        beside.put(0xab8000, 0);
        (0..300u64).for_each(|at| beside.put(u64::MAX - at, at));
        assert_eq!(
            beside.array.gaps(u64::MAX - 3)[..3],
            [None, None, Some(u64::MAX - 300)]
        );
        beside.compare();
    }
    check::<JudyL>();
    check::<Judy1>();
}

#[test]
fn a_wide_branch_with_few_children_closes() {
    fn check<A: Words>() {
        let mut beside = CheckedArray::<A>::new();
        (0..65536u64).for_each(|at| beside.put(at, at));
        assert_eq!(branch(&beside.array.stats()), "wide");
        (256..65536u64).for_each(|at| beside.take(at));
        beside.compare();
        let stats = beside.array.stats();
        assert_eq!((branch(&stats), stats.full_leaves), ("linear", 1));
        (0..65536u64).for_each(|at| beside.put(at, !at));
        beside.compare();
        assert_eq!(branch(&beside.array.stats()), "wide");
    }
    check::<JudyL>();
    check::<Judy1>();
}

#[test]
fn wide_branches_one_below_the_other_close() {
    fn check<A: Words>() {
        let mut beside = CheckedArray::<A>::new();
        (0..4096u64).for_each(|at| beside.put(at, at));
        let strays: Vec<u64> = (2..7)
            .flat_map(|byte| (1..=10).map(move |at| at << (8 * byte)))
            .collect();
        strays.iter().for_each(|&key| beside.put(key, key));
        beside.compare();
        assert_eq!(beside.array.stats().wide_branches, 6);
        strays.iter().for_each(|&key| beside.take(key));
        beside.compare();
        (121..4096u64).rev().for_each(|at| beside.take(at));
        beside.compare();
        let stats = beside.array.stats();
        assert_eq!((stats.wide_branches, stats.bitmap_leaves), (0, 1));
        (1..121u64).for_each(|at| beside.take(at));
        beside.compare();
    }
    check::<JudyL>();
    check::<Judy1>();
}

#[test]
fn bitmap_leaves_with_few_gaps() {
    fn check<A: Words>() {
        for gaps in [
            &[0, 255][..],
            &[1],
            &[63, 64],
            &[127, 192, 254],
            &[5, 6, 7, 130],
        ] {
            let mut beside = CheckedArray::<A>::new();
            (1..60u64).for_each(|at| beside.put(at << 48, at));
            (0..256u64)
                .filter(|low| !gaps.contains(low))
                .for_each(|low| beside.put(0xab00 | low, low));
            assert_eq!(beside.array.stats().bitmap_leaves, 1);
            (0xaaff..=0xac00).for_each(|key| beside.ask(key));
            beside.compare();
        }
    }
    check::<JudyL>();
    check::<Judy1>();
}
