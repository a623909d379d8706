//! Small enough for Miri, which finds undefined behaviour and data races: `cargo +nightly miri test
//! --test undefined`, with `MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance
//! -Zmiri-disable-isolation -Zmiri-ignore-leaks"`.

use larder_index::{multi_with, pin, LeafConfig, Start, Unique};
use larder_testing::*;
use std::thread;

/// Few keys of all kinds come, change and go.
fn work(index: &dyn Unique, from: u16, rounds: u16) {
    for i in 0..rounds {
        let bytes = [(i * 7 % 11) as u8, from as u8];
        let k = key(&bytes, Hashes::Few);
        let mut out = Vec::new();
        match i % 4 {
            0 => assert!(remove(index, k) || !index.contains(&pin(), k)),
            n => {
                put(index, k, &vec![from as u8; usize::from(n) * 12]);
                assert!(index.get(&pin(), k, &mut out));
                assert_eq!(out, vec![from as u8; usize::from(n) * 12]);
            }
        }
    }
}

#[test]
fn one_thread_does_nothing_undefined() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make_with(kind, LeafConfig::tiny(), Hashes::Few);
        work(&*index, 1, 60);
        let all = scan_unique(&*index, Start::Edge, DIRECTIONS[0]);
        assert_eq!(all.len(), index.len());
        while !index.free_some(&pin(), 2, &mut |_| ()) {}
    }
}

#[test]
fn threads_do_nothing_undefined() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make_with(kind, LeafConfig::tiny(), Hashes::Few);
        thread::scope(|scope| {
            for t in 1..3 {
                let index = &index;
                scope.spawn(move || work(&**index, t, 24));
            }
            scope.spawn(|| {
                for direction in DIRECTIONS {
                    for (k, v) in scan_unique(&*index, Start::Edge, direction) {
                        assert!(v.iter().all(|b| *b == k[1]));
                    }
                }
            });
        });
    }
}

#[test]
fn threads_on_a_bag_do_nothing_undefined() {
    let index = multi_with(Hashes::One, LeafConfig::tiny());
    thread::scope(|scope| {
        for t in 0..2u8 {
            let index = &index;
            scope.spawn(move || {
                for i in 0..10u8 {
                    index.update(&pin(), key(b"k", Hashes::One), &mut |objects| {
                        if i == 6 {
                            objects.remove_if(&mut |v| v[0] == t);
                        }
                        objects.push(&[t; 14]);
                        objects.push(&[t; 30]);
                    });
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..6 {
                let n = index.get(&pin(), key(b"k", Hashes::One), &mut |v| assert!(v[0] < 2));
                assert_eq!(n % 2, 0);
            }
        });
    });
}
