//! Typed tables beside what a Rust program would use instead: shared maps of Rust's own types.
//!
//! Keys are random `u64`s of 56 bits, or texts of 21 bytes made from them. Values are numbers of 32
//! bits, or orders that contain a text. Each step goes through all keys in a random order, and the
//! threads share the keys. Each round has another order, up to [`ORDERS`]: a processor learns the
//! branches of a thousand searches that are repeated in one order, which no program does. Keys are
//! inserted in an order that no other step of the map begins with: entries often lie in memory in
//! the order of insertion. All answers are compared. Ranges of maps without an order are left out.
//! One thread walks over all rows, also where there are several.
//!
//! Peers store Rust's values and return a clone. Larder stores terms, which are encoded and decoded
//! each time, but which files, snapshots and other languages can use. `index of bytes` is Larder's
//! index without a table: values of eight bytes under the bytes of the key.

mod peers;

use crate::maps::peers::index::Index;
use crate::maps::peers::Filter;
use crate::result::{ensure, Outcome};
use crate::table::Report;
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
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

/// A type of keys, its name in reports, and the key of a number.
trait TypedKey: OrderedKey + Ord + Hash + Clone + Debug + Send + Sync + 'static {
    const NAME: &'static str;
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

/// A type of values, its name in reports, the value of a number, and the number in a value.
trait TypedValue:
    Serialize + DeserializeOwned + Clone + PartialEq + Debug + Send + Sync + 'static
{
    const NAME: &'static str;
    fn of(n: u64) -> Self;
    fn number(&self) -> u64;
    fn increment(&mut self);
}

impl TypedValue for u64 {
    const NAME: &'static str = "u64";
    fn of(n: u64) -> Self {
        n
    }
    fn number(&self) -> u64 {
        *self
    }
    fn increment(&mut self) {
        *self = self.wrapping_add(1);
    }
}

/// A row as programs have them.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Order {
    symbol: String,
    quantity: u64,
    price: f64,
    open: bool,
}

impl TypedValue for Order {
    const NAME: &'static str = "struct";
    fn of(quantity: u64) -> Self {
        Order {
            symbol: "ACME".into(),
            quantity,
            price: 12.5,
            open: true,
        }
    }
    fn number(&self) -> u64 {
        self.quantity
    }
    fn increment(&mut self) {
        self.quantity = self.quantity.wrapping_add(1);
    }
}

/// Rows that a range reads.
const RANGE: usize = 100;

/// A map that threads share.
trait TypedMap: Sync + Sized {
    type Key: TypedKey;
    type Value: TypedValue;
    const NAME: &'static str;
    fn empty() -> Self;
    fn insert(&self, key: Self::Key, value: Self::Value);
    fn get(&self, key: &Self::Key) -> Option<Self::Value>;
    /// Removes a key. Returns whether it was present.
    fn remove(&self, key: &Self::Key) -> bool;
    /// Adds one to the number in a value, atomically.
    fn increment(&self, key: &Self::Key);
    /// Visits up to [`RANGE`] rows from a key on, in order. Returns false if the map can't.
    fn range(&self, _from: &Self::Key, _visit: impl FnMut(&Self::Key, &Self::Value)) -> bool {
        false
    }
    fn each(&self, visit: impl FnMut(&Self::Key, &Self::Value));
}

/// Orders in which keys are visited.
const ORDERS: usize = 16;

/// Keys with their numbers, the orders in which they are visited, and how often and by how many
/// threads.
struct TypedBench<K> {
    keys: Vec<(K, u64)>,
    orders: Vec<Vec<u32>>,
    rounds: usize,
    threads: usize,
}

/// Steps of a measurement, and the nanoseconds per operation.
type StepTimes = Vec<(&'static str, f64)>;

impl<K: TypedKey> TypedBench<K> {
    fn new(size: usize, rounds: usize) -> Self {
        let numbers = (0..size as u64).map(random_key);
        let keys = numbers.map(|n| (K::of(n >> 8), value_of(n) >> 32));
        TypedBench {
            keys: keys.collect(),
            orders: Vec::new(),
            rounds,
            threads: 1,
        }
    }

    /// Divides the keys among threads. Each has its own in all orders, so threads don't write the
    /// same ones.
    fn divide(&mut self, threads: usize) {
        self.threads = threads;
        let (size, part) = (self.keys.len(), self.keys.len().div_ceil(threads));
        let all = shuffled(size, 3);
        let order = |seed| {
            let parts = all.chunks(part).flat_map(|keys| {
                let order = shuffled(keys.len(), seed).into_iter();
                order.map(|i| keys[i as usize])
            });
            parts.collect()
        };
        // The first order is that of the first insert.
        self.orders = (0..=self.rounds.min(ORDERS) as u64).map(order).collect();
    }

    /// Calls `job` with keys in the order of each round: all of them, or each `step`-th, from
    /// another one on in each round. Returns the nanoseconds per key of the table, of all threads
    /// together.
    fn run(
        &self,
        rounds: Range<usize>,
        step: usize,
        job: impl Fn(&K, u64) -> Outcome + Sync,
    ) -> Outcome<f64> {
        let size = self.keys.len();
        let part = size.div_ceil(self.threads);
        let done = work(self.threads, None, |worker| {
            for round in rounds.clone() {
                let order = &self.orders[round % self.orders.len()];
                let mine = order.chunks(part).nth(worker.number).unwrap_or(&[]);
                for &i in mine.iter().skip(round % step).step_by(step) {
                    let (key, value) = &self.keys[i as usize];
                    job(key, *value)?;
                }
            }
            Ok(())
        })?;
        Ok(done.seconds * 1e9 / (rounds.len() * size) as f64)
    }

    /// The rounds of the steps that are repeated: all but that of the first insert.
    fn repeated(&self) -> Range<usize> {
        1..1 + self.rounds
    }

    /// All steps of a map.
    fn map<C: TypedMap<Key = K>>(&self) -> Outcome<StepTimes> {
        // Small maps are filled and emptied several times. Reads are measured in the first one.
        let fills = self.rounds.min(20);
        let (mut insert, mut remove, mut reads) = (0.0, 0.0, Vec::new());
        for fill in 0..fills {
            let map = C::empty();
            insert += self.run(fill..fill + 1, 1, |key, n| {
                map.insert(key.clone(), C::Value::of(n));
                Ok(())
            })?;
            if fill == 0 {
                reads = self.reads(&map)?;
            }
            remove += self.run(fill + 1..fill + 2, 1, |key, _| {
                ensure!(map.remove(key), C::NAME; "it lost a key");
                Ok(())
            })?;
            let left = self.keys.iter().any(|(key, _)| map.get(key).is_some());
            ensure!(!left, C::NAME; "it keeps what was removed");
        }
        reads.insert(0, ("insert", insert / fills as f64));
        reads.push(("remove", remove / fills as f64));
        Ok(reads)
    }

    /// The steps that leave the keys of a full map as they are.
    fn reads<C: TypedMap<Key = K>>(&self, map: &C) -> Outcome<StepTimes> {
        let lookup = self.run(self.repeated(), 1, |key, n| {
            let found = map.get(key);
            let right = found.as_ref().is_some_and(|value| value.number() == n);
            ensure!(right, C::NAME; "{key:?}: {found:?}");
            Ok(())
        })?;
        // Each key gets the value that it has.
        let overwrite = self.run(self.repeated(), 1, |key, n| {
            map.insert(key.clone(), C::Value::of(n));
            Ok(())
        })?;
        let each = self.each(map)?;
        let range = self.ranges(map)?;
        let count = self.run(self.repeated(), 1, |key, _| {
            map.increment(key);
            Ok(())
        })?;
        // Each round has added one. A smaller number has lost an update.
        let counted = |(key, n): &(K, u64)| {
            let right = n.wrapping_add(self.rounds as u64);
            map.get(key).is_some_and(|value| value.number() == right)
        };
        let all = self.keys.iter().all(counted);
        ensure!(all, C::NAME; "it lost an update");
        let mut times = vec![
            ("lookup", lookup),
            ("overwrite", overwrite),
            ("count", count),
        ];
        times.extend(range.map(|range| ("range of 100", range)));
        times.push(("each", each));
        Ok(times)
    }

    /// Nanoseconds per row in ranges of a hundred rows, which begin at each hundredth key. `None`
    /// if the map has no ranges.
    fn ranges<C: TypedMap<Key = K>>(&self, map: &C) -> Outcome<Option<f64>> {
        let all_rows = AtomicUsize::new(0);
        let time = self.run(self.repeated(), RANGE, |key, _| {
            let (mut last, mut rows) = (None, 0);
            let can = map.range(key, |key, value| {
                // Only rows in ascending order count.
                rows += usize::from(last.as_ref() < Some(key));
                last = Some(key.clone());
                std::hint::black_box(value.number());
            });
            // Ordering: Relaxed. The sum is read when all threads have ended.
            all_rows.fetch_add(rows, Relaxed);
            let right = !can || rows > 0;
            ensure!(right, C::NAME; "a range without its first row, or out of order");
            Ok(())
        })?;
        let (rows, keys) = (all_rows.into_inner(), self.keys.len());
        // The time was divided by the number of keys. The result is per row.
        Ok((rows > 0).then(|| time * (self.rounds * keys) as f64 / rows as f64))
    }

    /// Nanoseconds per row of a walk over all rows.
    fn each<C: TypedMap<Key = K>>(&self, map: &C) -> Outcome<f64> {
        let mut sum = 0u64;
        let ((), each) = timed_each(self.rounds * self.keys.len(), || {
            for _ in 0..self.rounds {
                map.each(|_, value| sum = sum.wrapping_add(value.number()));
            }
        });
        let numbers = self.keys.iter().map(|(_, n)| *n);
        let once = numbers.fold(0u64, u64::wrapping_add);
        let right = sum == once.wrapping_mul(self.rounds as u64);
        ensure!(right, C::NAME; "a walk has other rows");
        Ok(each)
    }
}

/// Measures one map, if the filter accepts it.
fn map<C: TypedMap>(report: &mut Report, filter: &Filter, bench: &TypedBench<C::Key>) -> Outcome {
    if filter.accepts(C::NAME) {
        let (size, threads) = (bench.keys.len().to_string(), bench.threads.to_string());
        let key = [&size, C::Key::NAME, C::Value::NAME, &threads, C::NAME];
        for (step, time) in bench.map::<C>()? {
            report.add(&key, step, 1, time);
        }
    }
    Ok(())
}

/// Measures all maps of a pair of types.
fn maps<K, V>(report: &mut Report, filter: &Filter, bench: &TypedBench<K>) -> Outcome
where
    K: TypedKey,
    V: TypedValue,
{
    map::<Typed<K, V, Ordered>>(report, filter, bench)?;
    map::<Typed<K, V, Hashed>>(report, filter, bench)?;
    map::<RwLock<BTreeMap<K, V>>>(report, filter, bench)?;
    #[cfg(feature = "peers")]
    {
        use {parking_lot::Mutex, std::sync::Arc};
        map::<crossbeam_skiplist::SkipMap<K, Mutex<V>>>(report, filter, bench)?;
        map::<scc::TreeIndex<K, Arc<Mutex<V>>>>(report, filter, bench)?;
        map::<dashmap::DashMap<K, V>>(report, filter, bench)?;
        map::<papaya::HashMap<K, V>>(report, filter, bench)?;
    }
    Ok(())
}

/// Measures all maps of all pairs of types, in turns. A wrong answer is an error.
pub fn run(options: &TypedOptions, filter: &Filter) -> Outcome<Report> {
    let title = "Tables of Rust's types beside maps; nanoseconds an operation, all threads together (medians); ranges and each: of a row";
    let keys = &["entries", "keys", "values", "threads", "structure"];
    let mut report = Report::new(title, keys);
    let counts: Vec<_> = options
        .threads
        .iter()
        .map(|n| (format!("{n} threads"), *n))
        .collect();
    for &size in &options.sizes {
        let rounds = options.operations.div_ceil(size).max(1);
        let mut numbers = TypedBench::<u64>::new(size, rounds);
        let mut texts = TypedBench::<String>::new(size, rounds);
        let part = format!("{size} entries");
        report.in_turns(&part, options.runs, &counts, |report, (_, threads)| {
            numbers.divide(*threads);
            texts.divide(*threads);
            map::<Index>(report, filter, &numbers)?;
            maps::<_, u64>(report, filter, &numbers)?;
            maps::<_, u64>(report, filter, &texts)?;
            maps::<_, Order>(report, filter, &numbers)
        })?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// A single round, too, looks the keys up in another order than that of their insertion.
    #[test]
    fn lookups_have_an_order_of_their_own() {
        let mut bench = TypedBench::<u64>::new(1000, 1);
        bench.divide(1);
        let order = |rounds| {
            let met = Mutex::new(Vec::new());
            let done = bench.run(rounds, 1, |key, _| {
                met.lock().push(*key);
                Ok(())
            });
            done.expect("no answer is wrong");
            met.into_inner()
        };
        let [mut inserted, mut visited] = [0..1, bench.repeated()].map(order);
        assert_ne!(inserted, visited);
        inserted.sort_unstable();
        visited.sort_unstable();
        assert_eq!(inserted, visited);
    }
}
