//! Large in-memory tables: how they grow, what they take, appends, values of all sizes.
//!
//! To add a structure: an implementation of `Store`, named in `stores`, both in `big_memory/stores.rs`. Maps from u64 to u64 of `peers` take part in growth by themselves.

mod stores;
mod writes;

use super::run::{Failure, Run};
use super::Study;
use crate::counting::counted;
use crate::peers::{each_map, Map, OnMap};
use crate::report::median;
use crate::result::{Better, Scale};
use crate::workloads::{random_key, value_of};
use std::time::Instant;
use stores::{Named, Store};

/// The study.
pub const STUDY: Study = Study {
    name: "big-memory",
    title: "Large in-memory tables: growth by the million, bytes an entry, appends, value sizes",
    source: "what users of large in-memory hash tables measure: inserts a second while a table grows, appends to values by popular keys",
    about: "The structures alone (larder_index::Unique), keys of eight bytes to values of bytes, one thread; beside them std's BTreeMap and hashbrown, and \
            the peers of this build in the growth of u64 to u64. An append reads, extends and writes a value in one step.",
    run,
};

fn run(run: &mut Run) -> Result<(), Failure> {
    let stores = stores::stores(run)?;
    growth(run, &stores)?;
    writes::appends(run, &stores)?;
    writes::sizes(run, &stores)
}

/// Bytes of key and value of an entry in growth.
const ENTRY: f64 = 16.0;

/// How much more than in the end a structure may take on its way, and what allocators keep.
const PEAK: f64 = 2.3;

fn growth(run: &mut Run, stores: &[Named]) -> Result<(), Failure> {
    let steps: &[u64] = run.scale.pick(
        &[20_000],
        &[3_000_000],
        &[1_000_000_000, 100_000_000, 10_000_000],
    );
    run.setting("growth entries", steps[0]);
    let part = run.scale.pick(2_000, 100_000, 1_000_000);
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
            let made = (store.make)(entries as usize);
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
        let mut made = (store.make)(n as usize);
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
