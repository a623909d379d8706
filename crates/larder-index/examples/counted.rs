//! One operation, many times, for a tool that counts instructions:
//!
//! ```text
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*measured*' \
//!   target/release/examples/counted hash 1000 get 100000
//! ```
//!
//! Arguments: the order (`hash` or `ordered`), rows, the operation, how many times. Keys are
//! integers as tables keep them, values about as long. All that is not the operation itself is made
//! before; `nothing` is the loop around it. With `--cache-sim=yes --D1=49152,12,64
//! --LL=2097152,16,64` the tool counts misses of caches of those sizes, too, and with
//! `--D1=262144,4,4096 --LL=8388608,8,4096`, "lines" of a page, those of a table of pages'
//! addresses. Without an operation it lists them, and with the word `time` for the operation it
//! prints nanoseconds for each.

use larder_index::{
    pin, unique, Batch, Change, Direction, Guard, Key, KeyRule, Lookup, Previous, Start, Unique,
    UniqueKind, SHORT_VALUE,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const OPERATIONS: [&str; 21] = [
    "nothing",
    "get",
    "miss",
    "short",
    "contains",
    "put",
    "update",
    "counter",
    "insert",
    "remove",
    "update-insert",
    "update-remove",
    "next",
    "scan",
    "get-in-order",
    "put-in-order",
    "next-in-order",
    "fill",
    "fill-in-order",
    "empty",
    "empty-in-order",
];

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Keys as the term layer writes integers: a byte that says how many follow, low ones first. In key
/// order: high ones first.
struct Ints;

impl KeyRule for Ints {
    fn hash(&self, key: &[u8]) -> u64 {
        let n = key.iter().rev().fold(0, |n: u64, b| n << 8 | u64::from(*b));
        mix(n ^ 0x9E37_79B9_7F4A_7C15)
    }
    fn is_self_delimiting(&self) -> bool {
        true
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        match bytes[0] {
            0x80.. => 1,
            n => 1 + n as usize,
        }
    }
}

/// A row's bytes.
struct Row {
    key: Vec<u8>,
    hash: u64,
    value: Vec<u8>,
}

impl Row {
    fn new(n: u64, ordered: bool) -> Row {
        let len = 8 - (n << 1).leading_zeros() as usize / 8;
        let key = match (n, ordered) {
            (_, true) => [&[len as u8], &n.to_be_bytes()[8 - len..]].concat(),
            (0..=127, false) => vec![0x80 + n as u8],
            (_, false) => [&[len as u8], &n.to_le_bytes()[..len]].concat(),
        };
        let hash = Ints.hash(&key);
        let value = [&[0x20], &key[..]].concat();
        Row { key, hash, value }
    }

    fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.key,
            hash: self.hash,
        }
    }
}

/// An index, and what the operations need.
struct Counted {
    kind: UniqueKind,
    index: Box<dyn Unique>,
    /// Rows that are there, in the order in which they are asked for.
    rows: Vec<Row>,
    /// Rows that are not.
    others: Vec<Row>,
    batch: Batch<'static>,
    out: Vec<u8>,
    short: [u8; SHORT_VALUE],
}

impl Counted {
    fn new(ordered: bool, n: u64, in_order: bool) -> Counted {
        let kind = match ordered {
            true => UniqueKind::Ordered,
            false => UniqueKind::Hash(Arc::new(Ints)),
        };
        // Made in the order in which they are asked for: they lie in that order, and cost few
        // misses.
        let mut numbers: Vec<u64> = (0..n).collect();
        if !in_order {
            numbers.sort_by_key(|&i| mix(mix(i)));
        }
        let rows: Vec<Row> = numbers.iter().map(|&i| Row::new(i, ordered)).collect();
        let counted = Counted {
            index: unique(kind.clone()),
            kind,
            rows,
            others: (n..n + n.min(4096))
                .map(|i| Row::new(mix(i) % n + n, ordered))
                .collect(),
            batch: Batch::default(),
            out: Vec::with_capacity(256),
            short: [0; SHORT_VALUE],
        };
        for row in &counted.rows {
            counted
                .index
                .put(&pin(), row.key(), &row.value, &mut |_| true);
        }
        counted
    }

    /// Does the operation on row `i`.
    #[inline]
    fn one(&mut self, operation: &str, guard: &Guard, i: usize) {
        let row = &self.rows[i];
        let index = &self.index;
        match operation {
            "nothing" => {
                black_box((row.key().bytes.last(), row.hash, row.value.len()));
            }
            "get" | "get-in-order" => {
                self.out.clear();
                assert!(index.get(guard, row.key(), &mut self.out));
            }
            "miss" => {
                self.out.clear();
                let other = &self.others[i & (self.others.len() - 1)];
                assert!(!index.get(guard, other.key(), &mut self.out));
            }
            "short" => {
                let got = index.get_into(guard, row.key(), &mut self.short, None);
                assert!(got == Lookup::Short(row.value.len()));
            }
            "contains" => assert!(index.contains(guard, row.key())),
            "put" | "put-in-order" => {
                let was = index.put(guard, row.key(), &row.value, &mut |_| true);
                assert!(was == Previous::Present);
            }
            "update" => {
                assert!(index.update(guard, row.key(), &mut |_, new| {
                    new.extend_from_slice(&row.value);
                    Change::Put
                }));
            }
            "counter" => {
                let done =
                    index.update_with(guard, row.key(), &mut self.out, &mut |old, scratch| {
                        scratch.extend_from_slice(old.unwrap_or_default());
                        Change::Put
                    });
                assert!(done);
            }
            "next" | "next-in-order" => {
                let key = Some(row.key());
                let here = self
                    .batch
                    .lend(|batch| index.step(guard, key, Direction::Forward, batch));
                assert!(here);
            }
            "insert" | "fill" => {
                let was = index.put(guard, row.key(), &row.value, &mut |_| true);
                assert!(was == Previous::Absent);
            }
            "remove" | "empty" => {
                let was = index.remove(guard, row.key(), &mut |_| true);
                assert!(was == Previous::Present);
            }
            "update-insert" => {
                index.update(guard, row.key(), &mut |_, new| {
                    new.extend_from_slice(&row.value);
                    Change::Put
                });
            }
            "update-remove" => {
                index.update(guard, row.key(), &mut |_, _| Change::Remove);
            }
            other => panic!("no such operation: {other}"),
        }
    }

    /// Does the operation on these rows; a tool counts what happens in here.
    #[inline(never)]
    fn measured(&mut self, operation: &str, rows: std::ops::Range<usize>) {
        let guard = pin();
        match operation {
            "scan" => self.scan(&guard, rows.len()),
            // One loop for each, so that the choice is made outside of it.
            "nothing" => rows.for_each(|i| self.one("nothing", &guard, i)),
            "get" | "get-in-order" => rows.for_each(|i| self.one("get", &guard, i)),
            "miss" => rows.for_each(|i| self.one("miss", &guard, i)),
            "short" => rows.for_each(|i| self.one("short", &guard, i)),
            "contains" => rows.for_each(|i| self.one("contains", &guard, i)),
            "put" | "put-in-order" => rows.for_each(|i| self.one("put", &guard, i)),
            "update" => rows.for_each(|i| self.one("update", &guard, i)),
            "counter" => rows.for_each(|i| self.one("counter", &guard, i)),
            "next" | "next-in-order" => rows.for_each(|i| self.one("next", &guard, i)),
            "insert" => rows.for_each(|i| self.one("insert", &guard, i)),
            "remove" => rows.for_each(|i| self.one("remove", &guard, i)),
            "fill" | "fill-in-order" => rows.for_each(|i| self.one("fill", &guard, i)),
            "empty" | "empty-in-order" => rows.for_each(|i| self.one("empty", &guard, i)),
            other => rows.for_each(|i| self.one(other, &guard, i)),
        }
    }

    /// As many rows as asked for, in whole batches, from the beginning again and again.
    fn scan(&mut self, guard: &Guard, mut rows: usize) {
        let mut at = Vec::new();
        while rows > 0 {
            let start = if at.is_empty() {
                Start::Edge
            } else {
                Start::At(&at)
            };
            let index = &self.index;
            self.batch.want = 0;
            let read = self.batch.lend(|batch| {
                index.scan(guard, start, Direction::Forward, batch);
                for i in 0..batch.len() {
                    black_box((batch.key(i).first(), batch.value(i).len()));
                }
                (batch.len(), std::mem::take(&mut batch.resume))
            });
            rows = rows.saturating_sub(read.0);
            at = read.1;
        }
    }

    /// Does the operation so many times, in rounds; between them what was inserted goes and what
    /// went comes back. Gives the nanoseconds of the quickest round in ten, an operation.
    fn run(&mut self, operation: &str, times: usize) -> f64 {
        let n = self.rows.len();
        let (fills, empties) = (
            operation.starts_with("fill"),
            operation.starts_with("empty"),
        );
        let round = if operation == "scan" || fills || empties {
            n
        } else {
            (n / 10).clamp(1, 1000)
        };
        let (mut done, mut rounds) = (0, Vec::new());
        while done < times {
            let from = done % (n - round + 1);
            let rows = from..from + round;
            if fills {
                self.index = unique(self.kind.clone());
            }
            if operation.ends_with("insert") {
                rows.clone().for_each(|i| self.one("remove", &pin(), i));
            }
            let begin = Instant::now();
            self.measured(operation, rows.clone());
            rounds.push(begin.elapsed().as_nanos() as f64 / round as f64);
            if operation.ends_with("remove") || empties {
                rows.clone().for_each(|i| self.one("insert", &pin(), i));
            }
            done += round;
        }
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 10]
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [order, rows, operation, times] = &arguments[..] else {
        println!(
            "counted hash|ordered ROWS time|{} TIMES",
            OPERATIONS.join("|")
        );
        return;
    };
    let (rows, times) = (rows.parse().expect("rows"), times.parse().expect("times"));
    let ordered = order == "ordered";
    let chosen = OPERATIONS
        .iter()
        .filter(|o| operation == "time" || operation == *o);
    for operation in chosen {
        let in_order = operation.ends_with("in-order");
        let nanoseconds = Counted::new(ordered, rows, in_order).run(operation, times);
        println!("{order} {rows} {operation} {nanoseconds:.1} ns");
    }
}
