//! The hash order beside hashbrown: nanoseconds an operation and bytes a row, at several sizes.
//!
//! `cargo run --release --example figures_hash [ROWS…]`. Keys and values are numbers of eight
//! bytes, or, with the word `ints`, rows of two small integers as tables keep them (about ten
//! bytes). All answers are checked.

use larder_index::{
    pin, unique, Batch, Change, Direction, Key, KeyRule, Start, Unique, UniqueKind,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Times `rows` calls, in groups of a thousand: the quickest twentieth of the groups is below the
/// first figure (what a machine of one's own would show), half of them below the second; the third
/// is the mean.
fn time(name: &str, rows: u64, mut f: impl FnMut(u64)) {
    let mut groups = Vec::new();
    let mut i = 0;
    while i < rows {
        let end = (i + 1000).min(rows);
        let begin = Instant::now();
        (i..end).for_each(&mut f);
        groups.push(begin.elapsed().as_nanos() as f64 / (end - i) as f64);
        i = end;
    }
    let mean = groups.iter().sum::<f64>() / groups.len() as f64;
    groups.sort_by(f64::total_cmp);
    let (least, half) = (groups[groups.len() / 20], groups[groups.len() / 2]);
    println!("{name:<28} {least:8.1} {half:8.1} {mean:8.1} ns");
}

/// How rows are made of numbers.
#[derive(Clone, Copy)]
struct Rows {
    ints: bool,
}

/// Some bytes on the stack.
#[derive(Clone, Copy)]
struct Few([u8; 9], usize);

impl std::ops::Deref for Few {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl Rows {
    /// An integer as the term layer writes it.
    fn int(n: u64) -> Few {
        let mut bytes = [0; 9];
        if n < 128 {
            bytes[0] = 0x80 + n as u8;
            return Few(bytes, 1);
        }
        let len = 8 - (n << 1).leading_zeros() as usize / 8;
        bytes[0] = len as u8;
        bytes[1..].copy_from_slice(&n.to_le_bytes());
        Few(bytes, 1 + len)
    }

    fn key(self, i: u64) -> Few {
        if self.ints {
            return Rows::int(i);
        }
        let mut bytes = [0; 9];
        bytes[..8].copy_from_slice(&mix(i).to_le_bytes());
        Few(bytes, 8)
    }

    fn value(self, i: u64) -> Few {
        if !self.ints {
            return self.key(i);
        }
        let int = Rows::int(i);
        let mut bytes = [0; 9];
        bytes[0] = 16;
        bytes[1..].copy_from_slice(&int.0[..8]);
        Few(bytes, 1 + int.1)
    }
}

impl KeyRule for Rows {
    fn hash(&self, key: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        if self.ints {
            bytes[..key.len().min(8)].copy_from_slice(&key[..key.len().min(8)]);
        } else {
            bytes.copy_from_slice(key);
        }
        mix(u64::from_le_bytes(bytes) ^ 0x9E37_79B9_7F4A_7C15)
    }
    fn is_self_delimiting(&self) -> bool {
        true
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        match bytes[0] {
            _ if !self.ints => 8,
            0x80.. => 1,
            n => 1 + n as usize,
        }
    }
}

struct Bench {
    rows: u64,
    how: Rows,
    index: Box<dyn Unique>,
}

impl Bench {
    fn with<T>(&self, i: u64, f: impl FnOnce(Key<'_>) -> T) -> T {
        let bytes = self.how.key(i);
        f(Key {
            hash: self.how.hash(&bytes),
            bytes: &bytes,
        })
    }

    fn insert(&self) {
        let mut memory = Vec::new();
        let step = (self.rows / 8).max(1);
        time("insert, random", self.rows, |i| {
            let value = self.how.value(i);
            self.with(i, |key| {
                self.index.update(&pin(), key, &mut |_, new| {
                    new.extend_from_slice(&value);
                    Change::Put
                })
            });
            if (i + 1) % step == 0 {
                memory.push(self.index.memory() as f64 / (i + 1) as f64);
            }
        });
        println!("bytes a row on the way       {memory:8.1?}");
    }

    /// The slowest of all inserts into an index of its own.
    fn slowest(&self) {
        let index = unique(UniqueKind::Hash(Arc::new(self.how)));
        let mut slowest = 0;
        let mut last = Instant::now();
        for i in 0..self.rows {
            let value = self.how.value(i);
            self.with(i, |key| {
                index.update(&pin(), key, &mut |_, new| {
                    new.extend_from_slice(&value);
                    Change::Put
                })
            });
            let now = Instant::now();
            slowest = slowest.max((now - last).as_nanos());
            last = now;
        }
        println!("{:<28} {slowest:8} ns", "slowest insert");
    }

    fn lookups(&self) {
        let rows = self.rows;
        let mut out = Vec::new();
        let times = rows.clamp(500_000, 4_000_000);
        time("lookup, random", times, |i| {
            let i = mix(i + 77) % rows;
            out.clear();
            assert!(self.with(i, |key| self.index.get(&pin(), key, &mut out)));
            assert!(out[..] == *self.how.value(i));
        });
        let mut last = 0;
        time("lookup, dependent", times, |i| {
            let i = mix(i + 77 + last) % rows;
            out.clear();
            assert!(self.with(i, |key| self.index.get(&pin(), key, &mut out)));
            last = u64::from(out[0] >> 7 & out[1] >> 7 & 1);
        });
        time("lookup, miss", times, |i| {
            let i = mix(i + 77) % rows + rows;
            out.clear();
            assert!(!self.with(i, |key| self.index.get(&pin(), key, &mut out)));
        });
        let keys: Vec<_> = (0..100_000u64)
            .map(|i| self.how.key(mix(i) % rows))
            .collect();
        time("prefetch and lookup", times, |round| {
            if round % 32 != 0 {
                return;
            }
            let guard = pin();
            let from = (round as usize * 7) % (keys.len() - 32);
            let keys: Vec<_> = keys[from..from + 32]
                .iter()
                .map(|bytes| Key {
                    bytes,
                    hash: self.how.hash(bytes),
                })
                .collect();
            for group in keys.chunks(32) {
                self.index.prefetch(&guard, group);
                for key in group {
                    out.clear();
                    assert!(self.index.get(&guard, *key, &mut out));
                }
            }
        });
        time("update in place, random", times, |i| {
            let i = mix(i + 7) % rows;
            let value = self.how.value(i);
            self.with(i, |key| {
                self.index.update(&pin(), key, &mut |old, scratch| {
                    scratch.extend_from_slice(old.expect("it is there"));
                    black_box(&value);
                    Change::Put
                })
            });
        });
    }

    fn scans(&self) {
        let (guard, mut batch) = (pin(), Batch::default());
        let mut at = Vec::new();
        time("scan, a row", self.rows, {
            let (mut left, mut whole) = (0, 0);
            let (guard, batch, at) = (&guard, &mut batch, &mut at);
            move |i| {
                if left == 0 {
                    let start = if i == 0 { Start::Edge } else { Start::At(at) };
                    self.index.scan(guard, start, Direction::Forward, batch);
                    at.clone_from(&batch.resume);
                    left = batch.len();
                    whole += left as u64;
                    assert_eq!(batch.done, whole == self.rows);
                }
                left -= 1;
                black_box((batch.key(left)[0], batch.value(left).len()));
            }
        });
        let mut key = Vec::new();
        for (name, want) in [("next", 1), ("next as the engine asks", 2)] {
            batch.want = want;
            self.index
                .scan(&guard, Start::Edge, Direction::Forward, &mut batch);
            time(name, self.rows.min(1_000_000) - 1, |_| {
                key.clear();
                key.extend_from_slice(batch.key(0));
                let hash = self.how.hash(&key);
                self.index.position(Key { bytes: &key, hash }, &mut at);
                let start = if want == 1 {
                    Start::Past(&at)
                } else {
                    Start::At(&at)
                };
                self.index
                    .scan(&guard, start, Direction::Forward, &mut batch);
                if want == 2 && batch.len() > 1 {
                    batch.remove(0);
                } else if want == 2 {
                    self.index
                        .scan(&guard, Start::Past(&at), Direction::Forward, &mut batch);
                }
                assert!(!batch.is_empty());
            });
        }
    }

    fn all(&self) {
        println!(
            "-- {} rows{}",
            self.rows,
            if self.how.ints {
                " of two integers"
            } else {
                ""
            }
        );
        self.insert();
        self.slowest();
        self.lookups();
        self.scans();
        let a_row = self.index.memory() as f64 / self.rows as f64;
        println!(
            "{:<28} {a_row:8.2} bytes  {:?}",
            "a row takes",
            self.index.stats()
        );
        time("remove", self.rows, |i| {
            assert!(self.with(i, |key| self
                .index
                .update(&pin(), key, &mut |_, _| Change::Remove)));
        });
        println!(
            "memory in the end            {:8} bytes",
            self.index.memory()
        );
    }
}

fn hashbrown(rows: u64) {
    println!("-- hashbrown, {rows} rows");
    let mut map: hashbrown::HashMap<u64, u64, std::hash::BuildHasherDefault<Hash>> =
        Default::default();
    time("insert", rows, |i| {
        map.insert(mix(i), i);
    });
    let times = rows.clamp(500_000, 4_000_000);
    time("lookup, random", times, |i| {
        assert!(map[&mix(mix(i + 77) % rows)] < rows);
    });
    let mut last = 0;
    time("lookup, dependent", times, |i| {
        last = map[&mix(mix(i + 77 + last) % rows)] >> 40;
    });
    time("remove", rows, |i| {
        assert!(map.remove(&mix(i)).is_some());
    });
}

/// A hasher for numbers.
#[derive(Default)]
struct Hash(u64);

impl std::hash::Hasher for Hash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = mix(n ^ 0x9E37_79B9_7F4A_7C15);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ints = arguments.iter().any(|a| a == "ints");
    let mut sizes: Vec<u64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1000, 65_536, 1_000_000];
    }
    for rows in sizes {
        hashbrown(rows);
        let how = Rows { ints };
        let index = unique(UniqueKind::Hash(Arc::new(how)));
        Bench { rows, how, index }.all();
    }
}
