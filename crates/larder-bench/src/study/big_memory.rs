//! Large in-memory tables: how they grow, what they take, appends, values of all sizes.
//!
//! To add a structure: an implementation of [`Store`], named in [`stores`]. Maps from u64 to u64 of `peers` take part in growth by themselves.

use super::run::{Failure, Run};
use super::Study;
use crate::counting::counted;
use crate::peers::{each_map, larder as own, Map, OnMap};
use crate::report::median;
use crate::result::{Better, Scale};
use crate::workloads::{random_key, shuffled, value_of, Random, Zipf};
use hdrhistogram::Histogram;
use larder_index::{pin, Change, Unique};
use larder_structures::{build_unique, structures, Order};
use larder_term::hash::Seed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The study.
pub const STUDY: Study = Study {
    name: "big-memory",
    title: "Large in-memory tables: growth by the million, bytes an entry, appends, value sizes",
    source: "what users of large in-memory hash tables measure: inserts a second while a table grows, appends to values by popular keys",
    about: "The structures alone (larder_index::Unique), keys of eight bytes to values of bytes, one thread; beside them std's BTreeMap and hashbrown, and \
            the peers of this build in the growth of u64 to u64. An append reads, extends and writes a value in one step.",
    run,
};

/// A map from numbers to runs of bytes.
trait Store {
    fn put(&mut self, key: u64, value: &[u8]);
    /// Adds to the end of a value; one that would be longer than `most` begins anew.
    fn append(&mut self, key: u64, piece: &[u8], most: usize);
    /// Puts the value into `out`, which is empty.
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
    /// Bytes that it holds, if it knows.
    fn bytes(&self) -> Option<usize>;
}

/// An index of Larder's.
struct Index {
    index: Box<dyn Unique>,
    seed: Seed,
}

impl Store for Index {
    fn put(&mut self, key: u64, value: &[u8]) {
        let bytes = key.to_be_bytes();
        let key = own::key(&self.seed, &bytes);
        self.index.put(&pin(), key, value, &mut |_| true);
    }

    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        let bytes = key.to_be_bytes();
        let key = own::key(&self.seed, &bytes);
        self.index.update(&pin(), key, &mut |old, scratch| {
            match old {
                Some(old) if old.len() + piece.len() <= most => scratch.extend_from_slice(old),
                _ => {}
            }
            scratch.extend_from_slice(piece);
            Change::PutScratch
        });
    }

    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let bytes = key.to_be_bytes();
        self.index.get(&pin(), own::key(&self.seed, &bytes), out)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.index.memory())
    }
}

fn extend(value: &mut Vec<u8>, piece: &[u8], most: usize) {
    if value.len() + piece.len() > most {
        value.clear();
    }
    value.extend_from_slice(piece);
}

fn replace(old: &mut Vec<u8>, value: &[u8]) {
    old.clear();
    old.extend_from_slice(value);
}

impl Store for BTreeMap<u64, Vec<u8>> {
    fn put(&mut self, key: u64, value: &[u8]) {
        replace(self.entry(key).or_default(), value);
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        extend(self.entry(key).or_default(), piece, most);
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let found = BTreeMap::get(self, &key);
        found.is_some_and(|value| {
            out.extend_from_slice(value);
            true
        })
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
}

impl Store for hashbrown::HashMap<u64, Vec<u8>> {
    fn put(&mut self, key: u64, value: &[u8]) {
        replace(self.entry(key).or_default(), value);
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        extend(self.entry(key).or_default(), piece, most);
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let found = hashbrown::HashMap::get(self, &key);
        found.is_some_and(|value| {
            out.extend_from_slice(value);
            true
        })
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A store that loses what it is given now and then: what the study must find.
struct Forgetful(Box<dyn Store>);

impl Store for Forgetful {
    fn put(&mut self, key: u64, value: &[u8]) {
        if key % 89 != 11 {
            self.0.put(key, value);
        }
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        if key % 89 != 11 {
            self.0.append(key, piece, most);
        }
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        self.0.get(key, out)
    }
    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }
}

type Make = Box<dyn Fn() -> Box<dyn Store>>;

/// A store by name.
struct Named {
    name: String,
    make: Make,
}

/// Larder's own, all other structures, std's and hashbrown's maps of `Vec`s.
fn stores(run: &Run) -> Result<Vec<Named>, Failure> {
    let named = |name: &str, make: Make| Named {
        name: name.to_owned(),
        make,
    };
    let default = |ordered| -> Make {
        Box::new(move || {
            let seed = Seed::random();
            let index = own::index(ordered, &seed, true);
            Box::new(Index { index, seed })
        })
    };
    let mut all = vec![
        named("default hash", default(false)),
        named("default ordered", default(true)),
        named(
            "hashbrown of Vec",
            Box::new(|| Box::new(hashbrown::HashMap::<u64, Vec<u8>>::new())),
        ),
        named(
            "BTreeMap of Vec",
            Box::new(|| Box::new(BTreeMap::<u64, Vec<u8>>::new())),
        ),
    ];
    for structure in structures() {
        let order = if structure.ordered {
            Order::Key
        } else {
            Order::Hash
        };
        let make: Make = Box::new(move || {
            let index =
                build_unique(structure.name, &[], order).expect("it is listed, with its defaults");
            let seed = Seed::random();
            Box::new(Index { index, seed })
        });
        all.push(named(structure.name, make));
    }
    all.retain(|s| run.wants(&s.name));
    if run.plant {
        let planted = default(false);
        all.push(named(
            "planted fault",
            Box::new(move || Box::new(Forgetful(planted()))),
        ));
    }
    match all.is_empty() {
        true => Err(Failure::Impossible(
            "no structure of this study is called so (--only)".into(),
        )),
        false => Ok(all),
    }
}

fn run(run: &mut Run) -> Result<(), Failure> {
    let stores = stores(run)?;
    growth(run, &stores)?;
    appends(run, &stores)?;
    sizes(run, &stores)
}

// --- growth -----------------------------------------------------------------------------------------------------------

/// Bytes of key and value of an entry in growth.
const ENTRY: f64 = 16.0;

/// How much more than in the end a structure may take on its way, and what allocators keep.
const PEAK: f64 = 2.3;

fn growth(run: &mut Run, stores: &[Named]) -> Result<(), Failure> {
    let steps: &[u64] = run.scale.pick(
        &[20_000],
        &[10_000_000],
        &[1_000_000_000, 100_000_000, 10_000_000],
    );
    run.setting("growth entries", steps[0]);
    let part = run.scale.pick(2_000, 1_000_000, 1_000_000);
    if steps[0] < 100_000_000 {
        run.skip("growth to 100,000,000 and a billion entries: asked for by --full alone".into());
    }
    let millions = ("entries", Scale::Linear);
    let rate = ("millions of inserts a second", Scale::Log);
    let note =
        format!("u64 to u64, random keys; each point is {part} inserts from the one before it");
    run.plot(
        "growth",
        "Inserts a second while a table grows",
        millions,
        rate,
        note,
    );
    let names = ("", Scale::Names);
    run.plot(
        "slowest",
        "The slowest part of growth",
        names,
        ("ms", Scale::Log),
        format!("{part} inserts; the median part beside it"),
    );
    run.plot(
        "entry",
        "Bytes an entry",
        names,
        ("bytes", Scale::Linear),
        "as the structure says, or as Rust's allocator counts; 16 of them are key and value",
    );
    run.plot(
        "load",
        "Load: keys and values of all bytes",
        names,
        ("%", Scale::Linear),
        "16 bytes of each entry's",
    );
    run.check(
        "after growth: every thousandth key has its value, a key that was never put has none",
    );
    run.progress.part("big-memory, growth", stores.len());
    for store in stores {
        run.progress.at(&store.name);
        let an_entry = bytes_of(store);
        if let Some(entries) = affordable(run, &store.name, steps, an_entry) {
            let made = (store.make)();
            grow_store(run, &store.name, made, entries, part)?;
        }
        run.progress.step();
    }
    let only = run.only();
    let mut peers = Peers {
        run,
        steps,
        part,
        failure: None,
    };
    each_map(&only, &mut peers);
    peers.failure.map_or(Ok(()), Err)
}

/// Bytes an entry, of a small one.
fn bytes_of(store: &Named) -> f64 {
    let n = 20_000;
    let (made, allocated) = counted(|| {
        let mut made = (store.make)();
        for i in 0..n {
            let key = random_key(i);
            made.put(key, &value_of(key).to_le_bytes());
        }
        made
    });
    made.bytes().unwrap_or(allocated) as f64 / n as f64
}

/// The most entries that fit, of those asked for.
fn affordable(run: &mut Run, name: &str, steps: &[u64], an_entry: f64) -> Option<u64> {
    steps.iter().copied().find(|&n| {
        run.fits(
            &format!("growth of {name} to {n} entries"),
            n as f64 * an_entry * PEAK,
        )
    })
}

fn grow_store(
    run: &mut Run,
    name: &str,
    mut store: Box<dyn Store>,
    entries: u64,
    part: u64,
) -> Result<(), Failure> {
    let (grown, allocated) = counted(|| {
        watch(entries, part, |i| {
            let key = random_key(i);
            store.put(key, &value_of(key).to_le_bytes());
        })
    });
    let bytes = store.bytes().unwrap_or(allocated);
    let mut out = Vec::new();
    grown_right(name, entries, |key| {
        out.clear();
        let found = store.get(key, &mut out);
        found.then(|| {
            out.get(..8)
                .map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
        })
    })?;
    report(run, name, entries, part, &grown, bytes);
    Ok(())
}

/// Seconds of each part.
fn watch(entries: u64, part: u64, mut insert: impl FnMut(u64)) -> Vec<f64> {
    let mut parts = Vec::new();
    let mut begin = Instant::now();
    for i in 0..entries {
        insert(i);
        if (i + 1) % part == 0 {
            let now = Instant::now();
            parts.push((now - begin).as_secs_f64());
            begin = now;
        }
    }
    parts
}

fn grown_right(
    name: &str,
    entries: u64,
    mut get: impl FnMut(u64) -> Option<u64>,
) -> Result<(), Failure> {
    for i in (0..entries).step_by(997.min(entries as usize / 100).max(1)) {
        let key = random_key(i);
        let found = get(key);
        if found != Some(value_of(key)) {
            let what = format!("under {key} there is {found:?}, not {}", value_of(key));
            return Err(Failure::wrong(name, what));
        }
    }
    for i in entries..entries + 1_000 {
        if let Some(value) = get(random_key(i)) {
            return Err(Failure::wrong(
                name,
                format!("a key that was never put has the value {value}"),
            ));
        }
    }
    Ok(())
}

fn report(run: &mut Run, name: &str, entries: u64, part: u64, parts: &[f64], bytes: usize) {
    // No more points than a plot can show: neighbours are taken together.
    let together = parts.len().div_ceil(100).max(1);
    for (i, some) in parts.chunks(together).enumerate() {
        let seconds: f64 = some.iter().sum();
        let rate = (some.len() as u64 * part) as f64 / seconds / 1e6;
        let x = ((i * together + some.len()) as u64 * part) as f64;
        run.figure("growth", name, x, rate, ("M op/s", Better::More));
    }
    let slowest = parts.iter().copied().fold(0.0, f64::max);
    run.figure(
        "slowest",
        name,
        "slowest",
        slowest * 1e3,
        ("ms", Better::Less),
    );
    run.figure(
        "slowest",
        name,
        "median",
        median(parts) * 1e3,
        ("ms", Better::Less),
    );
    let x = format!("{entries} entries");
    let an_entry = bytes as f64 / entries as f64;
    run.figure("entry", name, x.as_str(), an_entry, ("bytes", Better::Less));
    run.figure(
        "load",
        name,
        x.as_str(),
        100.0 * ENTRY / an_entry,
        ("%", Better::More),
    );
}

/// The growth of other maps from u64 to u64.
struct Peers<'r> {
    run: &'r mut Run,
    steps: &'r [u64],
    part: u64,
    failure: Option<Failure>,
}

impl OnMap for Peers<'_> {
    fn on<M: Map>(&mut self) {
        if self.failure.is_some() || M::NAME.starts_with("larder") {
            return;
        }
        self.run.progress.at(M::NAME);
        // Maps that double are at their worst just after they did.
        let an_entry = 45.0;
        if let Some(entries) = affordable(self.run, M::NAME, self.steps, an_entry) {
            self.failure = self.grow::<M>(entries).err();
        }
    }
}

impl Peers<'_> {
    fn grow<M: Map>(&mut self, entries: u64) -> Result<(), Failure> {
        let mut map = M::empty();
        let (grown, allocated) = counted(|| {
            watch(entries, self.part, |i| {
                let key = random_key(i);
                map.insert(key, value_of(key));
            })
        });
        grown_right(M::NAME, entries, |key| map.get(key))?;
        let bytes = map.own_bytes().unwrap_or(allocated);
        report(self.run, M::NAME, entries, self.part, &grown, bytes);
        Ok(())
    }
}

// --- appends ----------------------------------------------------------------------------------------------------------

const PIECE: usize = 16;
const MOST: usize = 16 << 10;

/// Writes a second that a user asks for.
const ASKED: f64 = 200_000.0;

/// A key's piece, of which its values are made.
fn piece(key: u64) -> [u8; PIECE] {
    let mut piece = [0; PIECE];
    piece[..8].copy_from_slice(&value_of(key).to_le_bytes());
    piece[8..].copy_from_slice(&key.to_le_bytes());
    piece
}

/// Which keys are popular: a rank by Zipf's law, and the key of that rank.
struct Popular {
    zipf: Zipf,
    order: Vec<u32>,
}

impl Popular {
    fn new(keys: usize, seed: u64) -> Popular {
        Popular {
            zipf: Zipf::new(keys, 0.99),
            order: shuffled(keys, seed),
        }
    }

    fn key(&self, random: &mut Random) -> u64 {
        random_key(u64::from(self.order[self.zipf.next(random)]))
    }
}

fn appends(run: &mut Run, stores: &[Named]) -> Result<(), Failure> {
    let (keys, writes, seconds) = run.scale.pick(
        (2_000, 20_000, 0.1),
        (1_000_000, 3_000_000, 4.0),
        (10_000_000, 100_000_000, 60.0),
    );
    run.setting("append keys", keys);
    run.setting("append writes", writes);
    run.plot(
        "append-rate",
        "Appends of 16 bytes by Zipf popularity: writes a second",
        ("", Scale::Names),
        ("millions of writes a second", Scale::Linear),
        format!("{keys} keys, exponent 0.99; a value that would be longer than 16 KiB begins anew; asked for: at or above 0.2"),
    );
    run.plot(
        "append-latency",
        "Latency of an append at 200,000 a second",
        ("percentile", Scale::Names),
        ("us", Scale::Log),
        "from the moment at which it was due to its end, so that a pause counts for all who wait; includes what the system does to the thread",
    );
    run.published(
        "append-rate",
        "asked for",
        "full speed",
        (ASKED / 1e6, "M op/s"),
        "users of large tables",
    );
    let popular = Popular::new(keys, run.seed);
    run.progress.part("big-memory, appends", stores.len());
    for store in stores {
        run.progress.at(&store.name);
        let bytes = writes as f64 * PIECE as f64 * 2.5 + keys as f64 * 250.0;
        if run.fits(&format!("appends, {}", store.name), bytes) {
            append(run, store, &popular, writes, seconds)?;
        }
        run.progress.step();
    }
    run.check("after appends: every value is whole pieces of its key's, as many as the number of writes says while none began anew");
    Ok(())
}

fn append(
    run: &mut Run,
    named: &Named,
    popular: &Popular,
    writes: usize,
    seconds: f64,
) -> Result<(), Failure> {
    let mut store = (named.make)();
    let mut random = Random::new(run.seed);
    let mut counts = vec![0u32; popular.order.len()];
    let begin = Instant::now();
    for _ in 0..writes {
        let rank = popular.zipf.next(&mut random);
        let key = random_key(u64::from(popular.order[rank]));
        counts[rank] += 1;
        store.append(key, &piece(key), MOST);
    }
    let rate = writes as f64 / begin.elapsed().as_secs_f64() / 1e6;
    appended(&mut *store, &named.name, popular, &counts)?;
    run.figure(
        "append-rate",
        &named.name,
        "full speed",
        rate,
        ("M op/s", Better::More),
    );
    let (paced, achieved) = paced(&mut *store, popular, &mut random, seconds);
    let x = "200,000 a second asked for";
    run.figure(
        "append-rate",
        &named.name,
        x,
        achieved / 1e6,
        ("M op/s", Better::More),
    );
    for (x, part) in [
        ("50 %", 0.5),
        ("90 %", 0.9),
        ("99 %", 0.99),
        ("99.9 %", 0.999),
        ("99.99 %", 0.9999),
        ("slowest", 1.0),
    ] {
        let us = paced.value_at_quantile(part) as f64 / 1e3;
        run.figure("append-latency", &named.name, x, us, ("us", Better::Less));
    }
    Ok(())
}

/// Whether every value is what so many appends make.
fn appended(
    store: &mut dyn Store,
    name: &str,
    popular: &Popular,
    counts: &[u32],
) -> Result<(), Failure> {
    let mut out = Vec::new();
    let full = (MOST / PIECE) as u32;
    for (rank, &count) in counts.iter().enumerate() {
        let key = random_key(u64::from(popular.order[rank]));
        out.clear();
        let found = store.get(key, &mut out);
        let right = if count == 0 {
            0
        } else {
            (count - 1) % full + 1
        } as usize
            * PIECE;
        let whole = out.chunks(PIECE).all(|p| p == piece(key));
        if found != (count > 0) || out.len() != right || !whole {
            let what = format!(
                "after {count} appends, {key} has {} bytes, not {right}",
                out.len()
            );
            return Err(Failure::wrong(name, what));
        }
    }
    Ok(())
}

/// Appends when they are due, 200,000 a second: nanoseconds from then to the end of each, and how many a second it came to.
fn paced(
    store: &mut dyn Store,
    popular: &Popular,
    random: &mut Random,
    seconds: f64,
) -> (Histogram<u64>, f64) {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    let all = (ASKED * seconds) as u64;
    // One that can't keep up is not waited for longer than three times as long.
    let patience = Duration::from_secs_f64(3.0 * seconds);
    let begin = Instant::now();
    for i in 0..all {
        let due = Duration::from_secs_f64(i as f64 / ASKED);
        while begin.elapsed() < due {
            std::hint::spin_loop();
        }
        let key = popular.key(random);
        store.append(key, &piece(key), MOST);
        let end = begin.elapsed();
        histogram.saturating_record((end - due).as_nanos() as u64);
        if end > patience {
            return (histogram, i as f64 / end.as_secs_f64());
        }
    }
    (histogram, all as f64 / begin.elapsed().as_secs_f64())
}

// --- sizes of values --------------------------------------------------------------------------------------------------

fn sizes(run: &mut Run, stores: &[Named]) -> Result<(), Failure> {
    let total = run.scale.pick(1 << 20, 64 << 20, 2 << 30usize);
    let most = run.scale.pick(2_000, 500_000, 10_000_000);
    let runs = run.runs(run.scale.pick(1, 3, 3));
    run.plot(
        "sizes",
        "Writes of values by their size",
        ("bytes of a value", Scale::Log),
        ("millions of writes a second", Scale::Log),
        format!("values take the place of others, keys by Zipf popularity; {} MB of values in all, at most {most} keys; asked for: at or above 0.2", total >> 20),
    );
    let sizes = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10];
    run.progress
        .part("big-memory, sizes", runs * sizes.len() * stores.len());
    for size in sizes {
        run.published(
            "sizes",
            "asked for",
            size as f64,
            (ASKED / 1e6, "M op/s"),
            "users of large tables",
        );
        let keys = (total / size).clamp(64, most);
        let popular = Popular::new(keys, run.seed);
        for turn in 0..runs {
            for i in 0..stores.len() {
                let store = &stores[(i + turn) % stores.len()];
                run.progress.at(&format!("{size} bytes, {}", store.name));
                let bytes = keys as f64 * (size as f64 * 2.5 + 250.0);
                if run.fits(&format!("values of {size} bytes, {}", store.name), bytes) {
                    let rate = overwrite(store, &popular, size, total, run.seed + turn as u64)?;
                    run.figure(
                        "sizes",
                        &store.name,
                        size as f64,
                        rate,
                        ("M op/s", Better::More),
                    );
                }
                run.progress.step();
            }
        }
    }
    run.check("after writes of all sizes: every value has its size and is its key's");
    Ok(())
}

/// A key's value of some size.
fn fill(key: u64, value: &mut [u8]) {
    value.chunks_mut(8).for_each(|chunk| {
        let bytes = value_of(key).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    });
}

fn overwrite(
    named: &Named,
    popular: &Popular,
    size: usize,
    total: usize,
    seed: u64,
) -> Result<f64, Failure> {
    let mut store = (named.make)();
    let mut value = vec![0; size];
    for &i in &popular.order {
        let key = random_key(u64::from(i));
        fill(key, &mut value);
        store.put(key, &value);
    }
    let writes = (2 * total / size).clamp(2_000, popular.order.len().max(20_000));
    let mut random = Random::new(seed);
    let begin = Instant::now();
    for _ in 0..writes {
        let key = popular.key(&mut random);
        fill(key, &mut value);
        store.put(key, &value);
    }
    let rate = writes as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let mut out = Vec::new();
    for &i in popular
        .order
        .iter()
        .step_by(popular.order.len().div_ceil(10_000).max(1))
    {
        let key = random_key(u64::from(i));
        out.clear();
        fill(key, &mut value);
        if !store.get(key, &mut out) || out != value {
            let what = format!(
                "the value of {key} is not what was put: {} bytes of {size}",
                out.len()
            );
            return Err(Failure::wrong(&named.name, what));
        }
    }
    Ok(rate)
}
