//! Ranks in key order: beside a sorted set, and while threads write.

use larder_index::{pin, Change, LeafConfig, Unique};
use larder_testing::environment::{seed, times};
use larder_testing::*;
use std::collections::BTreeSet;
use std::thread;

fn ordered(config: LeafConfig) -> Box<dyn Unique> {
    make(Kind::Ordered, config)
}

#[test]
fn answers_are_those_of_a_sorted_set() {
    for (round, config) in configs().into_iter().cycle().take(times(40)).enumerate() {
        let index = ordered(config);
        let mut keys = BTreeSet::new();
        let seed = mix(seed(20_261_125) ^ round as u64);
        for step in 0..times(600) as u64 {
            let chance = mix(seed ^ step << 20);
            let bytes = key_bytes((chance % 400) as u16);
            let there = key(&bytes, Hashes::Good);
            // Values of all lengths: leaves move together, split, and have objects outside.
            let value = vec![3; [2, 9, 40, 600][(chance >> 20 & 3) as usize]];
            match chance >> 32 & 7 {
                0..4 => {
                    put(&*index, there, &value);
                    keys.insert(bytes);
                }
                4 | 5 => {
                    remove(&*index, there);
                    keys.remove(&bytes);
                }
                6 => {
                    index.update(&pin(), there, &mut |_, _| Change::Remove);
                    keys.remove(&bytes);
                }
                _ => ranks::compare(&*index, &keys, chance),
            }
        }
        ranks::compare(&*index, &keys, seed);
    }
}

/// Keys in order are inserted without a search: counts hear of them, too.
#[test]
fn inserts_at_the_end_count() {
    let index = ordered(LeafConfig::default());
    for i in 0..times(20_000) as u32 {
        index.put(
            &pin(),
            key(&i.to_be_bytes(), Hashes::Good),
            &[1],
            &mut |_| true,
        );
        if i % 61 == 0 {
            let all = ranks::count(&*index, None, None, usize::MAX);
            assert_eq!(all, u64::from(i) + 1);
        }
    }
}

/// With work for a few leaves at a time the answer comes in the end, and each call has less left.
#[test]
fn work_is_bounded() {
    let index = ordered(LeafConfig::tiny());
    for i in 0..times(3_000) as u32 {
        put(&*index, key(&i.to_be_bytes(), Hashes::Good), &[1]);
    }
    let mut calls = 0;
    let counted = loop {
        let (mut work, high) = (50, [255; 4]);
        let counted = ranks::ranked(&*index).count_between(&pin(), None, Some(&high), &mut work);
        calls += 1;
        if let Some(counted) = counted {
            break counted.entries;
        }
    };
    assert_eq!(counted, times(3_000) as u64);
    assert!(cfg!(miri) || calls > 2, "{calls}");
}

/// The part of the entries below a position is about that of the positions.
#[test]
fn parts_are_estimated() {
    let (index, many) = (ordered(LeafConfig::default()), times(20_000) as u32);
    let part = |i: u32| ranks::ranked(&*index).part_below(&pin(), &i.to_be_bytes());
    assert_eq!(part(7), Some(0.0));
    for i in 0..many {
        put(&*index, key(&i.to_be_bytes(), Hashes::Good), &[1]);
    }
    for i in 0..=many {
        let (part, exact) = (part(i).expect("a tree"), f64::from(i) / f64::from(many));
        assert!(
            cfg!(miri) || (part - exact).abs() < 0.2,
            "{part} for {exact}"
        );
    }
}

#[test]
fn ranges_of_one_writer_are_exact() {
    for config in configs() {
        let (index, width) = (ordered(config), times(400) as u64);
        ranks::stay(&*index, 4 * width..5 * width);
        let counts = thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|thread| {
                let (index, range) = (&index, thread * width..(thread + 1) * width);
                scope.spawn(move || {
                    ranks::own_range(&**index, range, times(8_000) as u64, mix(thread))
                })
            });
            scope.spawn(|| ranks::look(&*index, width, 4 * width, times(300) as u64));
            threads.map(|thread| thread.join().expect("no panic"))
        });
        ranks::look(&*index, width + counts.iter().sum::<u64>(), 0, 1);
    }
}

/// Memory that counts take is accounted for, and goes with the nodes.
#[test]
fn memory_of_counts_is_known() {
    let index = ordered(LeafConfig::tiny());
    for i in 0..500u32 {
        put(&*index, key(&i.to_be_bytes(), Hashes::Good), &[1]);
    }
    let before = index.memory();
    assert_eq!(ranks::count(&*index, None, None, usize::MAX), 500);
    assert!(index.memory() > before);
    for i in 0..500u32 {
        remove(&*index, key(&i.to_be_bytes(), Hashes::Good));
    }
    assert!(index.memory() < before);
}
