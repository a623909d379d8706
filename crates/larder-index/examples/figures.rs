//! Nanoseconds an operation, and bytes a row, for the key order beside the standard library's maps.
//!
//! `cargo run --release --example figures [rows]`. Keys are numbers of eight bytes, values eight
//! bytes; all answers are checked.

use larder_index::{pin, unique, Batch, Change, Direction, Key, Start, UniqueKind};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::Instant;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Times `rows` calls.
fn time(name: &str, rows: u64, mut f: impl FnMut(u64)) {
    let begin = Instant::now();
    (0..rows).for_each(&mut f);
    let nanos = begin.elapsed().as_nanos() as f64 / rows as f64;
    println!("{name:<28} {nanos:8.1} ns");
}

fn index(rows: u64) {
    println!("-- ordered");
    let index = unique(UniqueKind::Ordered);
    let guard = pin();
    let bytes = |i: u64| mix(i).to_be_bytes();
    time("insert", rows, |i| {
        let k = bytes(i);
        let key = Key {
            bytes: &k,
            hash: mix(mix(i)),
        };
        index.update(&guard, key, &mut |_, new| {
            new.extend_from_slice(&k);
            Change::Put
        });
    });
    let mut out = Vec::new();
    time("lookup, random", rows, |i| {
        let i = mix(i + 77) % rows;
        let k = bytes(i);
        out.clear();
        assert!(index.get(
            &pin(),
            Key {
                bytes: &k,
                hash: mix(mix(i))
            },
            &mut out
        ));
        assert_eq!(out, k);
    });
    time("update in place, random", rows, |i| {
        let i = mix(i + 7) % rows;
        let k = bytes(i);
        let key = Key {
            bytes: &k,
            hash: mix(mix(i)),
        };
        index.update(&pin(), key, &mut |_, new| {
            new.extend_from_slice(&k);
            Change::Put
        });
    });
    let begin = Instant::now();
    let (mut batch, mut seen, mut at) = (Batch::default(), 0, Vec::new());
    loop {
        let start = if seen == 0 {
            Start::Edge
        } else {
            Start::At(&at)
        };
        index.scan(&guard, start, Direction::Forward, &mut batch);
        seen += batch.len();
        if batch.done {
            break;
        }
        at.clone_from(&batch.resume);
    }
    assert_eq!(seen as u64, rows);
    println!(
        "{:<28} {:8.1} ns",
        "scan, a row",
        begin.elapsed().as_nanos() as f64 / rows as f64
    );
    println!(
        "{:<28} {:8.1} bytes  {:?}",
        "a row of 16 takes",
        index.memory() as f64 / rows as f64,
        index.stats()
    );
    time("remove, random order", rows, |i| {
        let k = bytes(i);
        let key = Key {
            bytes: &k,
            hash: mix(mix(i)),
        };
        assert!(index.update(&pin(), key, &mut |_, _| Change::Remove));
    });
}

fn maps(rows: u64) {
    println!("-- HashMap, BTreeMap");
    let mut hash: HashMap<u64, u64> = HashMap::new();
    let mut tree: BTreeMap<u64, u64> = BTreeMap::new();
    time("insert, HashMap", rows, |i| {
        hash.insert(mix(i), i);
    });
    time("insert, BTreeMap", rows, |i| {
        tree.insert(mix(i), i);
    });
    time("lookup, HashMap", rows, |i| {
        black_box(hash[&mix(mix(i + 77) % rows)]);
    });
    time("lookup, BTreeMap", rows, |i| {
        black_box(tree[&mix(mix(i + 77) % rows)]);
    });
}

fn main() {
    let rows = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    println!("{rows} rows");
    maps(rows);
    index(rows);
}
