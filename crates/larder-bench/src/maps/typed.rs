//! Typed tables compared with what a Rust program would use instead: shared maps whose keys and
//! values are of Rust's own types.
//!
//! Keys are random `u64`s of 56 bits, or texts of 21 bytes made from them. Values are numbers of 32
//! bits, or orders that contain a text. Each step goes through all keys in a random order, each
//! thread through a part of them. All answers are compared. What a peer doesn't have, such as
//! ranges of an unordered map, is left out.
//!
//! Peers store Rust's values, and return a clone. Larder stores terms, which are encoded and
//! decoded each time, but which files, snapshots and other languages can use. `index of bytes` is
//! Larder's index without a table: values of eight bytes under the bytes of the key.

mod peers;

use crate::maps::peers::larder::Index;
use crate::maps::peers::Only;
use crate::result::{ensure, Outcome};
use crate::table::Report;
use crate::time::progress::Progress;
use crate::time::timed_each;
use crate::time::workers::work;
use crate::workload::{random_key, shuffled, value_of};
use larder::typed::{Hashed, Ordered, OrderedKey, Typed};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is measured.
#[derive(clap::Args)]
pub struct TypedOptions {
    /// Entries.
    #[arg(long, value_delimiter = ',', default_value = "1000,1000000")]
    sizes: Vec<usize>,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// How often each is measured, in turns; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// About how many operations of each kind a measurement of a small structure has.
    #[arg(long, default_value_t = 400_000)]
    operations: usize,
}

/// A key of a Rust program.
pub trait TypedKey: OrderedKey + Ord + Hash + Clone + Debug + Send + Sync + 'static {
    /// What reports call it.
    const NAME: &'static str;
    /// The key of a number; not in its order.
    fn of(n: u64) -> Self;
}

impl TypedKey for u64 {
    const NAME: &'static str = "u64";

    fn of(n: u64) -> Self {
        n
    }
}

impl TypedKey for String {
    const NAME: &'static str = "String";

    fn of(n: u64) -> Self {
        format!("user:{n:016x}")
    }
}

/// A value of a Rust program.
pub trait TypedValue:
    Serialize + DeserializeOwned + Clone + PartialEq + Debug + Send + Sync + 'static
{
    /// What reports call it.
    const NAME: &'static str;
    /// The value of a number.
    fn of(n: u64) -> Self;
    /// Its number.
    fn number(&self) -> u64;
    /// Counts it up.
    fn count(&mut self);
}

impl TypedValue for u64 {
    const NAME: &'static str = "u64";

    fn of(n: u64) -> Self {
        n
    }

    fn number(&self) -> u64 {
        *self
    }

    fn count(&mut self) {
        *self = self.wrapping_add(1);
    }
}

/// A row as programs have them.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Order {
    symbol: String,
    quantity: u64,
    price: f64,
    open: bool,
}

impl TypedValue for Order {
    const NAME: &'static str = "struct";

    fn of(n: u64) -> Self {
        Order {
            symbol: "ACME".into(),
            quantity: n,
            price: 12.5,
            open: true,
        }
    }

    fn number(&self) -> u64 {
        self.quantity
    }

    fn count(&mut self) {
        self.quantity = self.quantity.wrapping_add(1);
    }
}

/// Rows that a range reads.
const RANGE: usize = 100;

/// A map that threads share.
pub trait TypedMap<K, V>: Sync + Sized {
    /// What reports call it.
    const NAME: &'static str;
    /// An empty one.
    fn empty() -> Self;
    /// Puts a value under a key.
    fn insert(&self, key: K, value: V);
    /// The value under a key.
    fn get(&self, key: &K) -> Option<V>;
    /// Removes a key; whether it was there.
    fn remove(&self, key: &K) -> bool;
    /// Counts the value under a key up, atomically.
    fn count(&self, key: &K);
    /// Visits up to [`RANGE`] rows from a key on, in order; false if it can't.
    fn range(&self, _from: &K, _visit: impl FnMut(&K, &V)) -> bool {
        false
    }
    /// Visits all rows.
    fn each(&self, visit: impl FnMut(&K, &V));
}

/// Keys, prepared once for all.
struct Prepared<K> {
    /// Each key and its number.
    keys: Vec<(K, u64)>,
    visit: Vec<u32>,
    sum: u64,
}

impl<K: TypedKey> Prepared<K> {
    fn new(size: usize) -> Self {
        let numbers = (0..size as u64).map(random_key);
        let keys: Vec<_> = numbers
            .map(|n| (K::of(n >> 8), value_of(n) >> 32))
            .collect();
        let sum = keys.iter().fold(0u64, |sum, (_, n)| sum.wrapping_add(*n));
        let visit = shuffled(size, 3);
        Prepared { keys, visit, sum }
    }

    /// Calls `job` with all keys in random order, `rounds` times. The threads share the keys.
    /// Returns the nanoseconds of a call, all threads together.
    fn through(
        &self,
        threads: usize,
        rounds: usize,
        job: impl Fn(&K, u64) -> Outcome + Sync,
    ) -> Outcome<f64> {
        // Each thread has a part of the keys, so that threads don't write the same ones.
        let part = self.visit.len().div_ceil(threads);
        let done = work(threads, None, |worker| {
            let mine = self.visit.chunks(part).nth(worker.number).unwrap_or(&[]);
            for _ in 0..rounds {
                for &i in mine {
                    let (key, value) = &self.keys[i as usize];
                    job(key, *value)?;
                }
            }
            Ok(())
        })?;
        // The time of all threads together, by all their operations.
        Ok(done.seconds * 1e9 / (rounds * self.visit.len()) as f64)
    }
}

/// Steps of a measurement, and the nanoseconds of an operation.
type Spent = Vec<(&'static str, f64)>;

struct TypedBench<'a> {
    report: Report,
    progress: Progress,
    only: &'a Only,
    size: usize,
    threads: usize,
    rounds: usize,
}

impl TypedBench<'_> {
    fn of<K: TypedKey, V: TypedValue, C: TypedMap<K, V>>(&mut self, data: &Prepared<K>) -> Outcome {
        if !self.only.has(C::NAME) {
            return Ok(());
        }
        self.progress.at(C::NAME);
        // Small ones are filled and emptied several times; what reads goes through them as often.
        let fills = self.rounds.min(20);
        let (mut insert, mut remove, mut reads) = (0.0, 0.0, None);
        for _ in 0..fills {
            let map = C::empty();
            insert += data.through(self.threads, 1, |key, n| {
                map.insert(key.clone(), V::of(n));
                Ok(())
            })?;
            // Reads are measured once, in the first map.
            if reads.is_none() {
                reads = Some(self.reads::<K, V, C>(data, &map)?);
            }
            remove += data.through(self.threads, 1, |key, _| {
                ensure!(map.remove(key), C::NAME, "it lost a key");
                Ok(())
            })?;
            // An empty map at the end, or the removals did nothing.
            let left = data.keys.iter().any(|(key, _)| map.get(key).is_some());
            ensure!(!left, C::NAME, "it keeps what was removed");
        }
        let (size, threads) = (self.size.to_string(), self.threads.to_string());
        let key = [&size[..], K::NAME, V::NAME, &threads, C::NAME];
        let [insert, remove] = [insert, remove].map(|all| all / fills as f64);
        let reads = reads.unwrap_or_default();
        for (step, time) in [vec![("insert", insert)], reads, vec![("remove", remove)]].concat() {
            self.report.add(&key, step, 1, time);
        }
        Ok(())
    }

    /// All structures, with keys and values of a pair of types.
    fn each<K: TypedKey, V: TypedValue>(&mut self, data: &Prepared<K>) -> Outcome {
        self.of::<K, V, Typed<K, V, Ordered>>(data)?;
        self.of::<K, V, Typed<K, V, Hashed>>(data)?;
        self.of::<K, V, RwLock<BTreeMap<K, V>>>(data)?;
        #[cfg(feature = "peers")]
        {
            self.of::<K, V, crossbeam_skiplist::SkipMap<K, parking_lot::Mutex<V>>>(data)?;
            self.of::<K, V, dashmap::DashMap<K, V>>(data)?;
            self.of::<K, V, papaya::HashMap<K, V>>(data)?;
        }
        Ok(())
    }

    /// What a full map takes for all but inserts and removals; ranges only if it has any.
    fn reads<K: TypedKey, V: TypedValue, C: TypedMap<K, V>>(
        &self,
        data: &Prepared<K>,
        map: &C,
    ) -> Outcome<Spent> {
        let (threads, rounds) = (self.threads, self.rounds);
        // Lookups compare what they find, within the time.
        let lookup = data.through(threads, rounds, |key, n| {
            let found = map.get(key);
            let right = found.as_ref().is_some_and(|value| value.number() == n);
            ensure!(right, C::NAME, "{key:?}: {found:?}");
            Ok(())
        })?;
        // Overwriting gives each key the same value, so the map stays as it is.
        let overwrite = data.through(threads, rounds, |key, n| {
            map.insert(key.clone(), V::of(n));
            Ok(())
        })?;
        let each = data.all(rounds, map)?;
        let range = self.ranges(data, map)?;
        let count = data.through(threads, rounds, |key, _| {
            map.count(key);
            Ok(())
        })?;
        // `count` has added one in each round. A sum that is less has lost an update.
        let counted = |(key, n): &(K, u64)| {
            let value = map.get(key);
            value.is_some_and(|value| value.number() == n.wrapping_add(rounds as u64))
        };
        let all = data.keys.iter().all(counted);
        ensure!(all, C::NAME, "it lost an update");
        let mut spent = vec![
            ("lookup", lookup),
            ("overwrite", overwrite),
            ("count", count),
        ];
        spent.extend(range.map(|range| ("range of 100", range)));
        spent.push(("each", each));
        Ok(spent)
    }

    /// Nanoseconds of a row in walks over a hundred rows, one from each hundredth key. `None` if
    /// the map has no ranges.
    fn ranges<K: TypedKey, V: TypedValue, C: TypedMap<K, V>>(
        &self,
        data: &Prepared<K>,
        map: &C,
    ) -> Outcome<Option<f64>> {
        let ranged = AtomicUsize::new(0);
        let time = data.through(self.threads, 1, |key, n| {
            // A range from each hundredth key only, since each reads a hundred rows.
            if !n.is_multiple_of(RANGE as u64) {
                return Ok(());
            }
            let (mut last, mut rows) = (None, 0);
            let can = map.range(key, |key, value| {
                // Rows must ascend, and the first one must be there.
                rows += usize::from(last.as_ref() < Some(key));
                last = Some(key.clone());
                std::hint::black_box(value.number());
            });
            // Ordering: Relaxed; a count that is read when all threads are done.
            ranged.fetch_add(rows, Ordering::Relaxed);
            ensure!(
                !can || rows > 0,
                C::NAME,
                "a range without its first row, or out of order"
            );
            Ok(())
        })?;
        let rows = ranged.into_inner();
        // The time was divided by the number of keys. It is wanted by that of rows.
        Ok((rows > 0).then(|| time * data.keys.len() as f64 / rows as f64))
    }
}

impl<K: TypedKey> Prepared<K> {
    /// Nanoseconds of a row, going over all.
    fn all<V: TypedValue, C: TypedMap<K, V>>(&self, rounds: usize, map: &C) -> Outcome<f64> {
        let (sum, each) = timed_each(rounds * self.keys.len(), || {
            let mut sum = 0u64;
            for _ in 0..rounds {
                map.each(|_, value| sum = sum.wrapping_add(value.number()));
            }
            sum
        });
        let right = sum == self.sum.wrapping_mul(rounds as u64);
        ensure!(right, C::NAME, "a walk has other rows");
        Ok(each)
    }
}

/// Measures.
///
/// # Errors
/// A wrong answer, with the name of what gave it.
pub fn run(options: &TypedOptions, only: &Only) -> Outcome<Report> {
    let title = "Tables of Rust's types beside maps; nanoseconds an operation, all threads together (medians); ranges and each: of a row";
    let keys = ["entries", "keys", "values", "threads", "structure"];
    let mut bench = TypedBench {
        report: Report::new(title, &keys),
        progress: Progress::new(false),
        only,
        size: 0,
        threads: 0,
        rounds: 0,
    };
    for &size in &options.sizes {
        bench.size = size;
        bench.rounds = options.operations.div_ceil(size).max(1);
        let steps = options.runs * options.threads.len();
        bench.progress.part(&format!("{size} entries"), steps);
        let (numbers, texts) = (Prepared::new(size), Prepared::new(size));
        for _ in 0..options.runs {
            for &threads in &options.threads {
                bench.threads = threads;
                bench.of::<_, _, Index>(&numbers)?;
                bench.each::<u64, u64>(&numbers)?;
                bench.each::<String, u64>(&texts)?;
                bench.each::<u64, Order>(&numbers)?;
                bench.progress.step();
            }
        }
    }
    bench.progress.end();
    Ok(bench.report)
}
