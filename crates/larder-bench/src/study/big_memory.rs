//! Large tables in memory: how they grow, how much memory they take, appends, values of all sizes.
//!
//! To add a structure: an implementation of `Store`, named in [`stores`]. The maps from u64 to u64
//! of `peers` take part in growth by themselves.

use super::run::Run;
use super::tables::size_option;
use super::Plan;
use crate::maps::peers::index::Index;
use crate::maps::peers::{each_map, Handle, Map, Store};
use crate::result::{ensure, Outcome};
use crate::stats::{ends, median, quantile, sorted};
use crate::table::grouped;
use crate::time::counting::counted;
use crate::time::{timed, timed_parts};
use crate::workload::{random, random_key, shuffled, value_of, Zipf};
use fastrand::Rng;
use larder_studies::{build_unique, structures, Order};
use larder_term::hash::Seed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub const STUDY: Plan = Plan {
    name: "big-memory",
    title: "Large in-memory tables: growth by the million, bytes an entry, appends, value sizes",
    source: "what users of large in-memory hash tables measure: inserts a second while a table grows, appends to values by popular keys",
    about: "The structures alone (larder_index::Unique), keys of eight bytes to values of bytes, one thread; beside them std's BTreeMap and hashbrown, and \
            the peers of this build in the growth of u64 to u64. An append reads, extends and writes a value in one step.",
    quick_seconds: 55.0,
    full_hours: 3.7,
    run,
};

const GROWTH: &str = "
growth | Inserts a second while a table grows | entries, linear | millions of inserts a second, log | M op/s, more | u64 to u64, random keys; each point is {part} inserts from the one before it
slowest | The slowest part of growth | , names | ms, log | ms, less | {part} inserts; the median part beside it
entry | Bytes an entry | , names | bytes, linear | bytes, less | as the structure says, or as Rust's allocator counts; 16 of them are key and value
load | Load: keys and values of all bytes | , names | %, linear | %, more | 16 bytes of each entry's
";

const APPENDS: &str = "
append-rate | Appends of 16 bytes by Zipf popularity: writes a second | , names | millions of writes a second, linear | M op/s, more | {keys} keys, exponent 0.99; a value that would be longer than 16 KiB begins anew; asked for: at or above 0.2
append-latency | Latency of an append at 200,000 a second | percentile, names | us, log | us, less | from the moment at which it was due to its end, so that a pause counts for all who wait; includes what the system does to the thread
";

const SIZES: &str = "
sizes | Writes of values by their size | bytes of a value, log | millions of writes a second, log | M op/s, more | values take the place of others, keys by Zipf popularity; {total} MB of values in all, at most {most} keys; asked for: at or above 0.2
";

/// The shares of the time until the end of growth, and of appends.
const SHARES: [f64; 2] = [0.45, 0.75];

/// Writes a second that users ask for.
const ASKED: f64 = 200_000.0;

const USERS: &str = "users of large tables";

#[rustfmt::skip]
const PERCENTILES: [(&str, f64); 6] = [
    ("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("99.99 %", 0.9999), ("slowest", 1.0),
];

/// Bytes of the key and the value of an entry in growth.
const ENTRY: f64 = 16.0;

/// The most memory of a growing structure, relative to that in the end.
const PEAK: f64 = 2.3;

/// The length of an appended piece, and of the longest value.
const PIECE: usize = 16;
const LONGEST: usize = 16 << 10;

fn run(run: &mut Run) -> Outcome {
    let stores = stores(run)?;
    growth(run, &stores)?;
    appends(run, &stores)?;
    sizes(run, &stores)
}

/// A name, and what makes an empty store for about so many entries.
type NamedStore = (String, Box<dyn Fn(usize) -> Box<dyn Store>>);

/// Larder's default structures, maps of `Vec`s, and all other structures.
fn stores(run: &Run) -> Outcome<Vec<NamedStore>> {
    fn store<S: Store + 'static>(name: &str, make: impl Fn(usize) -> S + 'static) -> NamedStore {
        let make = move |entries| Box::new(make(entries)) as Box<dyn Store>;
        (name.to_owned(), Box::new(make))
    }
    let mut all = vec![
        store("default hash", |_| Index::default_structure(false)),
        store("default ordered", |_| Index::default_structure(true)),
        store("hashbrown of Vec", |_| hashbrown::HashMap::new()),
        store("BTreeMap of Vec", |_| BTreeMap::new()),
    ];
    all.extend(structures().iter().map(|structure| {
        let order = match structure.ordered {
            true => Order::Key,
            false => Order::Hash,
        };
        store(structure.name, move |entries| {
            let options: Vec<_> = size_option(structure.name, entries).into_iter().collect();
            let index = build_unique(structure.name, &options, order);
            let index = index.expect("it is listed, and the option is its own");
            Index::new(index, Seed::random())
        })
    }));
    let planted = || {
        store("planted fault", |_| {
            Forgetful(Index::default_structure(false))
        })
    };
    run.chosen(all, |store| &store.0, planted)
}

/// A planted fault: a store that loses keys.
struct Forgetful(Index);

impl Store for Forgetful {
    fn put(&mut self, key: u64, value: &[u8]) {
        if key % 8 != 3 {
            Store::put(&mut self.0, key, value);
        }
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        Store::append(&mut self.0, key, piece, most);
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        Store::get(&mut self.0, key, out)
    }
}

/// A store in growth, with values of eight bytes.
impl Handle for Box<dyn Store> {
    fn insert(&mut self, key: u64, value: u64) {
        self.put(key, &value.to_le_bytes());
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        let mut out = Vec::new();
        let found = Store::get(&mut **self, key, &mut out);
        let word = out.first_chunk().copied().map_or(0, u64::from_le_bytes);
        found.then_some(word)
    }
    fn remove(&mut self, _: u64) -> bool {
        unreachable!("nothing is removed while stores grow")
    }
    fn own_bytes(&mut self) -> Option<usize> {
        self.bytes()
    }
}

/// Bytes per entry of a small store.
fn bytes_per_entry((_, make): &NamedStore) -> f64 {
    const SMALL: u64 = 20_000;
    let (mut made, allocated) = counted(|| {
        let mut made = make(SMALL as usize);
        let keys = (0..SMALL).map(random_key);
        keys.for_each(|key| made.insert(key, value_of(key)));
        made
    });
    made.own_bytes().unwrap_or(allocated) as f64 / SMALL as f64
}

fn growth(run: &mut Run, stores: &[NamedStore]) -> Outcome {
    const MOST: &[u64] = &[1_000_000_000, 100_000_000, 10_000_000];
    let entries: &[u64] = run.extent.pick(&[20_000], &[1_000_000], MOST);
    let goal = Goal {
        entries,
        part: run.extent.pick(2_000, 50_000, 1_000_000),
    };
    run.setting("growth entries", entries[0]);
    if entries[0] < 100_000_000 {
        run.skip("growth to 100,000,000 and a billion entries: asked for by --full alone".into());
    }
    run.plots(GROWTH, &[("part", &grouped(goal.part as usize))]);
    // Larder's own maps are among the stores.
    let mut peers = each_map!(run.filter, M => grow_peer::<M> as fn(&mut _, _, _, &mut _) -> _);
    peers.retain(|(name, _)| !name.starts_with("larder"));
    let mut left = stores.len() + peers.len();
    run.progress.part("big-memory, growth", left);
    for store in stores {
        let bytes = bytes_per_entry(store);
        grow(run, goal, &store.0, bytes, &mut left, &store.1)?;
    }
    for (name, grow_peer) in peers {
        grow_peer(run, goal, name, &mut left)?;
    }
    run.check(
        "after growth: every thousandth key has its value, a key that was never put has none",
    );
    Ok(())
}

/// How far a structure grows: to the first of these numbers of entries that there is memory for, in
/// parts of this number.
#[derive(Clone, Copy)]
struct Goal<'e> {
    entries: &'e [u64],
    part: u64,
}

/// Lets a structure grow in parts to the first of the numbers of entries that there is memory for,
/// as far as time allows. Each of the `left` structures has an equal share of the time.
fn grow<H: Handle>(
    run: &mut Run,
    goal: Goal<'_>,
    name: &str,
    bytes_per_entry: f64,
    left: &mut usize,
    make: impl FnOnce(usize) -> H,
) -> Outcome {
    run.progress.at(name);
    let Goal { entries, part } = goal;
    let entries = entries.iter().copied().find(|&n| {
        let what = format!("growth of {name} to {} entries", grouped(n as usize));
        run.fits(&what, n as f64 * bytes_per_entry * PEAK)
    });
    // Fill the structure, part by part, until it is full or its time is over.
    if let Some(mut entries) = entries {
        let limit = run.clock.time_for_each(SHARES[0], *left);
        let mut map = make(entries as usize);
        let (parts, allocated) = counted(|| {
            timed_parts(entries, part, limit, |i| {
                let key = random_key(i);
                map.insert(key, value_of(key));
            })
        });
        // Where the time was over, say so, and report the parts that were measured.
        let grown = parts.len() as u64 * part;
        if grown + part <= entries {
            let seconds: f64 = parts.iter().sum();
            let limit = limit.map_or(0.0, |limit| limit.as_secs_f64());
            let why = match name {
                "lfcatree" => "; its leaves never change, so each insert copies a path of nodes, and one thread alone never divides the one leaf",
                _ => "",
            };
            run.skip(format!("growth of {name} beyond {} entries: these took {seconds:.1} s, and it had {limit:.1} s{why}", grouped(grown as usize)));
            entries = grown;
        }
        check_growth(name, entries, |key| map.get(key))?;
        let bytes = map.own_bytes().unwrap_or(allocated);
        report_growth(run, name, entries, part, &parts, bytes);
        run.save()?;
    }
    *left -= 1;
    run.progress.step();
    Ok(())
}

fn grow_peer<M: Map>(run: &mut Run, goal: Goal<'_>, name: &str, left: &mut usize) -> Outcome {
    // Maps that double are at their worst just afterwards.
    grow(run, goal, name, 45.0, left, |_| M::empty())
}

/// Checks a sample of the entries, and keys that were never put.
fn check_growth(name: &str, entries: u64, mut get: impl FnMut(u64) -> Option<u64>) -> Outcome {
    let sample = (0..entries).step_by(997.min(entries as usize / 100).max(1));
    for key in sample.map(random_key) {
        let (found, value) = (get(key), value_of(key));
        let right = found == Some(value);
        ensure!(right, name; "under {key} there is {found:?}, not {value}");
    }
    for key in (entries..entries + 1_000).map(random_key) {
        let found = get(key);
        ensure!(found.is_none(), name; "under a key that was never put there is {found:?}");
    }
    Ok(())
}

fn report_growth(run: &mut Run, name: &str, entries: u64, part: u64, parts: &[f64], bytes: usize) {
    // A plot has room for about a hundred points.
    let together = parts.len().div_ceil(100).max(1);
    for (i, some) in parts.chunks(together).enumerate() {
        let inserts = |parts: usize| (parts as u64 * part) as f64;
        let rate = inserts(some.len()) / some.iter().sum::<f64>() / 1e6;
        run.figure("growth", name, inserts(i * together + some.len()), rate);
    }
    run.figure("slowest", name, "slowest", ends(parts)[1] * 1e3);
    run.figure("slowest", name, "median", median(parts) * 1e3);
    let x = format!("{} entries", grouped(entries as usize));
    let per_entry = bytes as f64 / entries as f64;
    run.figure("entry", name, &*x, per_entry);
    run.figure("load", name, &*x, 100.0 * ENTRY / per_entry);
}

/// Popular keys: ranks follow Zipf's law, and each rank has a key.
struct Popular {
    zipf: Zipf,
    order: Vec<u32>,
}

impl Popular {
    fn new(keys: usize, seed: u64) -> Popular {
        let (zipf, order) = (Zipf::new(keys, 0.99), shuffled(keys, seed));
        Popular { zipf, order }
    }

    fn key_of(&self, rank: usize) -> u64 {
        random_key(u64::from(self.order[rank]))
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        self.key_of(self.zipf.next(random))
    }
}

/// The piece of a key. Its values consist of such pieces.
fn piece(key: u64) -> [u8; PIECE] {
    let mut piece = [0; PIECE];
    piece[..8].copy_from_slice(&value_of(key).to_le_bytes());
    piece[8..].copy_from_slice(&key.to_le_bytes());
    piece
}

/// Measures appends at full speed, and then the latency of appends at a given rate.
fn appends(run: &mut Run, stores: &[NamedStore]) -> Outcome {
    let keys = run.extent.pick(2_000, 100_000, 10_000_000);
    let writes = run.extent.pick(20_000, 300_000, 100_000_000);
    let seconds = run.extent.pick(0.1, 0.5, 60.0);
    run.setting("append keys", keys);
    run.setting("append writes", writes);
    run.plots(APPENDS, &[("keys", &keys.to_string())]);
    run.published("append-rate", "asked for", "full speed", ASKED / 1e6, USERS);
    let popular = Popular::new(keys, run.options.seed);
    run.progress.part("big-memory, appends", stores.len());
    for (i, (name, make)) in stores.iter().enumerate() {
        run.progress.at(name);
        // Values that grow by copying leave garbage behind.
        let bytes = writes as f64 * PIECE as f64 * 2.5 + keys as f64 * 250.0;
        let what = format!("appends, {name}");
        if !run.is_over(&what, 1.0, 0.0) && run.fits(&what, bytes) {
            let limit = run.clock.time_for_each(SHARES[1], stores.len() - i);
            let limit = limit.map(|both| both / 2);
            let seconds = limit.map_or(seconds, |half| f64::min(seconds, half.as_secs_f64()));
            let (mut store, mut random) = (make(keys), random(run.options.seed));
            let full = full_speed(&mut *store, name, &popular, &mut random, writes, limit)?;
            run.figure("append-rate", name, "full speed", full);
            let (latencies, rate) = paced(&mut *store, &popular, &mut random, seconds);
            let x = "200,000 a second asked for";
            run.figure("append-rate", name, x, rate / 1e6);
            for (x, part) in PERCENTILES {
                let us = quantile(&latencies, part) * 1e6;
                run.figure("append-latency", name, x, us);
            }
            run.save()?;
        }
        run.progress.step();
    }
    run.check("after appends: every value is whole pieces of its key's, as many as the number of writes says while none began anew");
    Ok(())
}

/// Appends until the number of writes or the time limit is reached. Returns millions of writes a
/// second, after all values were checked.
fn full_speed(
    store: &mut dyn Store,
    name: &str,
    popular: &Popular,
    random: &mut Rng,
    writes: usize,
    limit: Option<Duration>,
) -> Outcome<f64> {
    let mut counts = vec![0usize; popular.order.len()];
    let (begin, mut done) = (Instant::now(), 0);
    // The clock is read now and then. There is at least one write.
    let late = || limit.is_some_and(|limit| begin.elapsed() > limit);
    while done == 0 || done < writes && !(done.is_multiple_of(1024) && late()) {
        let rank = popular.zipf.next(random);
        let key = popular.key_of(rank);
        counts[rank] += 1;
        store.append(key, &piece(key), LONGEST);
        done += 1;
    }
    let rate = done as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let mut out = Vec::new();
    for (rank, &count) in counts.iter().enumerate() {
        let key = popular.key_of(rank);
        out.clear();
        let found = Store::get(store, key, &mut out);
        // A full value begins anew with the next piece.
        let last = count.checked_sub(1);
        let pieces = last.map_or(0, |last| last % (LONGEST / PIECE) + 1);
        let right = found == (count > 0) && out == piece(key).repeat(pieces);
        let len = out.len();
        ensure!(right, name; "after {count} appends, {key} has {len} bytes, not {pieces} pieces");
    }
    Ok(rate)
}

/// Appends 200,000 times a second. Returns the seconds from when each append was due to its end, in
/// ascending order, and the rate that was achieved.
///
/// When an append is due doesn't depend on the one before: what a slow append delays counts as
/// slow, too (no coordinated omission).
fn paced(
    store: &mut dyn Store,
    popular: &Popular,
    random: &mut Rng,
    seconds: f64,
) -> (Vec<f64>, f64) {
    let writes = (ASKED * seconds) as usize;
    // The memory is there before the clock starts.
    let mut latencies = vec![0.0; writes];
    let (begin, mut done, mut end) = (Instant::now(), 0, 0.0);
    // A store that can't keep up has three times as long.
    while done < writes && end <= 3.0 * seconds {
        let due = done as f64 / ASKED;
        while begin.elapsed().as_secs_f64() < due {
            std::hint::spin_loop();
        }
        let key = popular.draw(random);
        store.append(key, &piece(key), LONGEST);
        end = begin.elapsed().as_secs_f64();
        latencies[done] = end - due;
        done += 1;
    }
    latencies.truncate(done);
    (sorted(latencies), done as f64 / end)
}

/// Measures writes of values by their size.
fn sizes(run: &mut Run, stores: &[NamedStore]) -> Outcome {
    let total = run.extent.pick(1 << 20, 8 << 20, 2 << 30usize);
    let most = run.extent.pick(2_000, 50_000, 10_000_000);
    let runs = run.runs(run.extent.pick(1, 3, 3));
    let (megabytes, keys) = ((total >> 20).to_string(), most.to_string());
    run.plots(SIZES, &[("total", &megabytes), ("most", &keys)]);
    let sizes = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10];
    for size in sizes {
        run.published("sizes", "asked for", size, ASKED / 1e6, USERS);
    }
    let popular = sizes.map(|size| Popular::new((total / size).clamp(64, most), run.options.seed));
    let mut all = Vec::new();
    for (size, popular) in sizes.into_iter().zip(&popular) {
        let bytes = popular.order.len() as f64 * (size as f64 * 2.5 + 250.0);
        for store in stores {
            let what = format!("values of {size} bytes, {}", store.0);
            if run.fits(&what, bytes) {
                all.push((what, (size, popular, store)));
            }
        }
    }
    let turns = (runs, 1.0);
    run.in_turns("values of all sizes", turns, &all, |run, seed, item| {
        let &(size, popular, store) = item;
        let rate = overwrite(store, popular, size, total, seed)?;
        run.figure("sizes", &store.0, size, rate);
        Ok(())
    })?;
    run.check("after writes of all sizes: every value has its size and is its key's");
    Ok(())
}

/// Overwrites the values of a full store. Returns millions of writes a second.
fn overwrite(
    (name, make): &NamedStore,
    popular: &Popular,
    size: usize,
    total: usize,
    seed: u64,
) -> Outcome<f64> {
    // The value of a key repeats the bytes of its number. All sizes are multiples of eight.
    let fill = |key: u64, value: &mut [u8]| {
        let chunks = value.chunks_exact_mut(8);
        chunks.for_each(|chunk| chunk.copy_from_slice(&value_of(key).to_le_bytes()));
    };
    let keys = popular.order.len();
    let (mut store, mut value) = (make(keys), vec![0; size]);
    for key in (0..keys).map(|rank| popular.key_of(rank)) {
        fill(key, &mut value);
        store.put(key, &value);
    }
    // Twice the total is written, within limits.
    let writes = (2 * total / size).clamp(2_000, keys.max(20_000));
    let mut random = random(seed);
    let ((), seconds) = timed(|| {
        for _ in 0..writes {
            let key = popular.draw(&mut random);
            fill(key, &mut value);
            store.put(key, &value);
        }
    });
    let rate = writes as f64 / seconds / 1e6;
    // A sample of the values is checked.
    let mut out = Vec::new();
    for rank in (0..keys).step_by(keys.div_ceil(10_000).max(1)) {
        let key = popular.key_of(rank);
        out.clear();
        fill(key, &mut value);
        let right = Store::get(&mut *store, key, &mut out) && out == value;
        let len = out.len();
        ensure!(right, name; "the value of {key} is not what was put: {len} bytes of {size}");
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that pauses once.
    struct Pausing(Option<Duration>);

    impl Store for Pausing {
        fn put(&mut self, _: u64, _: &[u8]) {}
        fn append(&mut self, _: u64, _: &[u8], _: usize) {
            self.0.take().into_iter().for_each(std::thread::sleep);
        }
        fn get(&mut self, _: u64, _: &mut Vec<u8>) -> bool {
            false
        }
    }

    #[test]
    fn a_pause_counts_for_all_who_wait() {
        let pause = Duration::from_millis(40);
        let (mut store, popular) = (Pausing(Some(pause)), Popular::new(100, 1));
        let (latencies, rate) = paced(&mut store, &popular, &mut random(1), 0.1);
        // One append waits for all of the pause. A fifth of them waits for more than half of it:
        // 4,000 are due in 20 milliseconds, of 20,000 in all.
        let pause = pause.as_secs_f64();
        assert!(quantile(&latencies, 1.0) >= pause);
        assert!(quantile(&latencies, 0.85) >= pause / 2.0 - 1e-3);
        assert!(rate > 0.0);
    }
}
