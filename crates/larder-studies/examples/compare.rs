//! Inserts, lookups and a whole scan on every structure, one thread, keys and values of eight
//! bytes: nanoseconds each, and bytes a row.
//!
//! `cargo run --release -p larder-studies --example compare [ROWS]`

use larder_index::{
    pin, unique, Batch, Change, Direction, Key, KeyRule, Start, Unique, UniqueKind,
};
use larder_studies::{build_unique, structures, Order};
use std::sync::Arc;
use std::time::Instant;

struct Words;

impl KeyRule for Words {
    fn hash(&self, key: &[u8]) -> u64 {
        mix(key.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn each(rows: u64, mut f: impl FnMut(Key<'_>)) -> f64 {
    let start = Instant::now();
    for i in 0..rows {
        let bytes = mix(i * 7_919 % rows).to_be_bytes();
        let hash = Words.hash(&bytes);
        f(Key {
            bytes: &bytes,
            hash,
        });
    }
    start.elapsed().as_nanos() as f64 / rows as f64
}

fn scan(index: &dyn Unique) -> usize {
    let (guard, mut batch) = (pin(), Batch::default());
    let (mut resume, mut met) = (Vec::new(), 0);
    index.scan(&guard, Start::Edge, Direction::Forward, &mut batch);
    loop {
        met += batch.len();
        if batch.done {
            return met;
        }
        std::mem::swap(&mut resume, &mut batch.resume);
        index.scan(&guard, Start::At(&resume), Direction::Forward, &mut batch);
    }
}

fn measure(name: &str, index: &dyn Unique, rows: u64) {
    let insert = each(rows, |key| {
        index.update(&pin(), key, &mut |_, new| {
            new.extend_from_slice(b"12345678");
            Change::Put
        });
    });
    let bytes = index.memory() as f64 / rows as f64;
    let mut out = Vec::new();
    let lookup = each(rows, |key| {
        out.clear();
        assert!(index.get(&pin(), key, &mut out));
    });
    let start = Instant::now();
    assert_eq!(scan(index), rows as usize);
    let a_row = start.elapsed().as_nanos() as f64 / rows as f64;
    println!("{name:24} {insert:8.0} {lookup:8.0} {a_row:8.1} {bytes:8.1}");
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let rows = rows.unwrap_or(200_000);
    println!("{rows} rows                  insert   lookup     scan    bytes");
    let default = [UniqueKind::Hash(Arc::new(Words)), UniqueKind::Ordered];
    for (name, kind) in ["default, hash order", "default, key order"]
        .into_iter()
        .zip(default)
    {
        measure(name, &*unique(kind), rows);
    }
    for structure in structures() {
        let order = if structure.ordered {
            Order::Key
        } else {
            Order::Hash
        };
        let index = build_unique(structure.name, &[], order).expect("it is listed");
        measure(structure.name, &*index, rows);
    }
}
