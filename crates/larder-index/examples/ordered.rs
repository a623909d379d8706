//! Nanoseconds an operation, and bytes a row, of the key order beside the standard library's
//! `BTreeMap`.
//!
//! `cargo run --release --example ordered [rows]… [random] [ascending] [descending] [dense]`. Keys
//! are numbers of eight bytes, values eight bytes; all answers are checked.

use larder_index::{pin, unique, Batch, Change, Direction, Key, Start, Unique, UniqueKind};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Nanoseconds that this thread has had a processor, by steps of some milliseconds.
fn cpu() -> Option<u64> {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    said.split(' ').next()?.parse().ok()
}

/// Nanoseconds of work: of the processor's time where they are many and the system says, else of
/// the wall's.
fn spent(f: impl FnOnce()) -> f64 {
    let (begin, before) = (Instant::now(), cpu());
    f();
    let wall = begin.elapsed().as_nanos() as u64;
    let used = cpu().zip(before).map(|(after, before)| after - before);
    used.filter(|_| wall > 50_000_000).unwrap_or(wall) as f64
}

/// Nanoseconds a call, for so many calls.
fn time(calls: u64, f: impl FnMut(u64)) -> f64 {
    spent(|| (0..calls).for_each(f)) / calls as f64
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { bytes, hash: 0 }
}

fn put(index: &dyn Unique, i: u64) -> bool {
    let bytes = i.to_be_bytes();
    index.update(&pin(), key(&bytes), &mut |_, new| {
        new.extend_from_slice(&bytes);
        Change::Put
    })
}

/// Walks with `Start::Past`, one entry at a time.
fn walk(index: &dyn Unique, direction: Direction, rows: u64) -> f64 {
    let (guard, mut batch) = (pin(), Batch::default().with_want(1));
    let mut at = Vec::new();
    let mut seen = 0;
    let nanos = time(rows, |_| {
        let start = match seen {
            0 => Start::Edge,
            _ => Start::Past(&at),
        };
        index.scan(&guard, start, direction, &mut batch);
        at.clear();
        at.extend_from_slice(batch.key(0));
        seen += 1;
    });
    index.scan(&guard, Start::Past(&at), direction, &mut batch);
    assert!(batch.is_empty());
    nanos
}

/// Scans all, leaf by leaf.
fn scan(index: &dyn Unique, rows: u64) -> f64 {
    let (guard, mut batch) = (pin(), Batch::default());
    let (mut seen, mut at, mut sum) = (0, Vec::new(), 0);
    let nanos = spent(|| loop {
        let start = if seen == 0 {
            Start::Edge
        } else {
            Start::At(&at)
        };
        index.scan(&guard, start, Direction::Forward, &mut batch);
        seen += batch.len();
        sum += (0..batch.len())
            .map(|i| batch.value(i).len())
            .sum::<usize>();
        if batch.done {
            break;
        }
        at.clone_from(&batch.resume);
    }) / rows as f64;
    assert_eq!((seen as u64, sum as u64), (rows, rows * 8));
    nanos
}

/// Every operation, for one way to fill the index.
fn index(name: &str, rows: u64, nth: impl Fn(u64) -> u64) {
    let index = unique(UniqueKind::Ordered);
    let calls = rows.clamp(1_000_000, 4_000_000);
    let insert = time(rows, |i| assert!(put(&*index, nth(i))));
    let mut out = Vec::new();
    let mut hit = |i: u64| {
        let k = i.to_be_bytes();
        out.clear();
        assert!(index.get(&pin(), key(&k), &mut out));
        assert_eq!(out, k);
    };
    let lookup = time(calls, |i| hit(nth(mix(i + 77) % rows)));
    let inorder = time(rows, |i| hit(nth(i)));
    let miss = time(calls, |i| {
        assert!(!index.contains(&pin(), key(&mix(!i).to_be_bytes())));
    });
    let update = time(calls, |i| assert!(put(&*index, nth(mix(i + 7) % rows))));
    let next = walk(&*index, Direction::Forward, rows);
    let prev = walk(&*index, Direction::Backward, rows);
    let scanned = scan(&*index, rows);
    let bytes = index.memory() as f64 / rows as f64;
    let stats = index.stats();
    let remove = time(rows, |i| {
        let k = nth(i).to_be_bytes();
        assert!(index.update(&pin(), key(&k), &mut |_, _| Change::Remove));
    });
    println!(
        "{rows:>9} {name:<10} insert {insert:6.1} lookup {lookup:6.1} as inserted {inorder:6.1} miss {miss:6.1} update {update:6.1} \
         next {next:5.1} prev {prev:5.1} scan {scanned:5.1} remove {remove:6.1} bytes {bytes:5.2} leaves {} nodes {} depth {}",
        stats.leaves, stats.inner_nodes, stats.depth
    );
}

fn btreemap(name: &str, rows: u64, nth: impl Fn(u64) -> u64) {
    let mut map: BTreeMap<u64, u64> = BTreeMap::new();
    let calls = rows.clamp(1_000_000, 4_000_000);
    let insert = time(rows, |i| assert!(map.insert(nth(i), i).is_none()));
    let lookup = time(calls, |i| {
        black_box(map[&nth(mix(i + 77) % rows)]);
    });
    let miss = time(calls, |i| assert!(!map.contains_key(&mix(!i))));
    let remove = time(rows, |i| assert!(map.remove(&nth(i)).is_some()));
    println!(
        "{rows:>9} {name:<10} insert {insert:6.1} lookup {lookup:6.1} miss {miss:6.1} remove {remove:6.1}   BTreeMap"
    );
}

fn main() {
    let mut given: Vec<u64> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.parse() {
            Ok(rows) => given.push(rows),
            Err(_) => names.push(arg),
        }
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let sizes = if given.is_empty() {
        vec![1000, 65_536, 1_000_000]
    } else {
        given
    };
    for rows in sizes {
        let dense = rows.next_power_of_two().trailing_zeros();
        if wanted("random") {
            index("random", rows, mix);
            btreemap("random", rows, mix);
        }
        if wanted("ascending") {
            index("ascending", rows, |i| i);
            btreemap("ascending", rows, |i| i);
        }
        if wanted("descending") {
            index("descending", rows, |i| u64::MAX / 2 - i);
        }
        // A dense range in random order.
        if wanted("dense") {
            index("dense", 1 << dense, |i| i.reverse_bits() >> (64 - dense));
        }
    }
}
