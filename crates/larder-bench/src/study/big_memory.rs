//! Large in-memory tables: how they grow, what they take, appends, values of all sizes.
//!
//! To add a structure: an implementation of `Store`, named in `stores`, both in
//! `big_memory/stores.rs`. Maps from u64 to u64 of `peers` take part in growth by themselves.

mod stores;
mod writes;

use super::run::{grouped, Run};
use super::Plan;
use crate::maps::peers::Store;
use crate::maps::peers::{each_map, Map, OnMap};
use crate::result::Failure;
use crate::result::{Better, Scale};
use crate::stats::{ends, median};
use crate::time::counting::counted;
use crate::time::timed;
use crate::workload::{random_key, value_of};
use std::time::{Duration, Instant};
use stores::Named;

/// The study.
pub const STUDY: Plan = Plan {
    name: "big-memory",
    title: "Large in-memory tables: growth by the million, bytes an entry, appends, value sizes",
    source: "what users of large in-memory hash tables measure: inserts a second while a table grows, appends to values by popular keys",
    about: "The structures alone (larder_index::Unique), keys of eight bytes to values of bytes, one thread; beside them std's BTreeMap and hashbrown, and \
            the peers of this build in the growth of u64 to u64. An append reads, extends and writes a value in one step.",
    quick_seconds: 55.0,
    run,
};

fn run(run: &mut Run) -> Result<(), Failure> {
    let stores = stores::stores(run)?;
    if run.scale == super::Extent::Full {
        foresee(run, &stores);
    }
    growth(run, &stores)?;
    writes::appends(run, &stores)?;
    writes::sizes(run, &stores)
}

/// Says about how long it will take: microseconds of an insert, of an append and its check, of a
/// value of some size.
fn foresee(run: &mut Run, stores: &[Named]) {
    let hundred_million = 100e6;
    let growth: f64 = stores
        .iter()
        .map(|s| hundred_million * seconds_of(s) * 3.0)
        .sum();
    run.announce(growth + stores.len() as f64 * (100e6 * 1.5e-6 + 70.0 + 3.0 * 60.0));
}

/// Bytes of key and value of an entry in growth.
const ENTRY: f64 = 16.0;

/// How much more than in the end a structure may take on its way, and what allocators keep.
const PEAK: f64 = 2.3;

/// The parts of the study's time that may be over after growth, and after appends.
const SHARES: [f64; 2] = [0.45, 0.75];

/// Entries that are wanted, the most first, and in which parts they are counted.
struct Goal {
    steps: &'static [u64],
    part: u64,
}

fn growth(run: &mut Run, stores: &[Named]) -> Result<(), Failure> {
    let goal = Goal {
        steps: run.scale.pick(
            &[20_000],
            &[1_000_000],
            &[1_000_000_000, 100_000_000, 10_000_000],
        ),
        part: run.scale.pick(2_000, 50_000, 1_000_000),
    };
    run.setting("growth entries", goal.steps[0]);
    if goal.steps[0] < 100_000_000 {
        run.skip("growth to 100,000,000 and a billion entries: asked for by --full alone".into());
    }
    declare(run, goal.part);
    let only = run.only();
    let mut peers = Counted(0);
    each_map(&only, &mut peers);
    let mut left = stores.len() + peers.0;
    run.progress.part("big-memory, growth", left);
    for store in stores {
        run.progress.at(&store.name);
        let an_entry = bytes_of(store);
        if let Some(entries) = affordable(run, &store.name, goal.steps, an_entry) {
            let patience = run.patience(SHARES[0], left);
            let made = (store.make)(entries as usize);
            grow_store(run, &store.name, made, (entries, goal.part, patience))?;
            run.save()?;
        }
        left -= 1;
        run.progress.step();
    }
    let mut peers = Peers {
        run,
        goal,
        left,
        failure: None,
    };
    each_map(&only, &mut peers);
    peers.failure.map_or(Ok(()), Err)
}

fn declare(run: &mut Run, part: u64) {
    let rate = ("millions of inserts a second", Scale::Log);
    run.plot(
        "growth",
        "Inserts a second while a table grows",
        ("entries", Scale::Linear),
        rate,
        format!(
            "u64 to u64, random keys; each point is {} inserts from the one before it",
            grouped(part as usize)
        ),
    );
    let names = ("", Scale::Names);
    run.plot(
        "slowest",
        "The slowest part of growth",
        names,
        ("ms", Scale::Log),
        format!(
            "{} inserts; the median part beside it",
            grouped(part as usize)
        ),
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
}

/// How many maps of other crates take part.
struct Counted(usize);

impl OnMap for Counted {
    fn on<M: Map>(&mut self) {
        self.0 += usize::from(!M::NAME.starts_with("larder"));
    }
}

/// Seconds of an insert into a small one.
fn seconds_of(store: &Named) -> f64 {
    timed(|| small(store)).1 / SMALL as f64
}

/// Bytes an entry, of a small one.
fn bytes_of(store: &Named) -> f64 {
    let (made, allocated) = counted(|| small(store));
    made.bytes().unwrap_or(allocated) as f64 / SMALL as f64
}

/// Entries of a small one.
const SMALL: u64 = 20_000;

fn small(store: &Named) -> Box<dyn Store> {
    let mut made = (store.make)(SMALL as usize);
    for key in (0..SMALL).map(random_key) {
        made.put(key, &value_of(key).to_le_bytes());
    }
    made
}

/// The most entries that fit, of those asked for.
fn affordable(run: &mut Run, name: &str, steps: &[u64], an_entry: f64) -> Option<u64> {
    steps.iter().copied().find(|&n| {
        run.fits(
            &format!("growth of {name} to {} entries", grouped(n as usize)),
            n as f64 * an_entry * PEAK,
        )
    })
}

/// Entries, how many are counted together, and how long it may take.
type Growth = (u64, u64, Option<Duration>);

fn grow_store(
    run: &mut Run,
    name: &str,
    mut store: Box<dyn Store>,
    growth: Growth,
) -> Result<(), Failure> {
    let (grown, allocated) = counted(|| {
        watch(growth, |i| {
            let key = random_key(i);
            store.put(key, &value_of(key).to_le_bytes());
        })
    });
    let entries = reached(run, name, growth, &grown);
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
    report(run, name, (entries, growth.1), &grown, bytes);
    Ok(())
}

/// Seconds of each part, until all entries are there or the time is over.
fn watch((entries, part, patience): Growth, mut insert: impl FnMut(u64)) -> Vec<f64> {
    let mut parts = Vec::new();
    let first = Instant::now();
    let mut begin = first;
    for i in 0..entries {
        insert(i);
        if (i + 1) % part == 0 {
            let now = Instant::now();
            parts.push((now - begin).as_secs_f64());
            begin = now;
            if patience.is_some_and(|most| now - first > most) {
                break;
            }
        }
    }
    parts
}

/// How many entries came; if not all did, that is said.
fn reached(run: &mut Run, name: &str, (entries, part, patience): Growth, grown: &[f64]) -> u64 {
    let came = grown.len() as u64 * part;
    if came + part <= entries {
        let seconds: f64 = grown.iter().sum();
        let most = patience.map_or(0.0, |most| most.as_secs_f64());
        run.skip(format!(
            "growth of {name} beyond {} entries: these took {seconds:.1} s, and it had {most:.1} s{}",
            grouped(came as usize),
            why(name)
        ));
        return came;
    }
    entries
}

/// Why a structure is as slow as it is, where that is no fault of its code.
fn why(name: &str) -> &'static str {
    match name {
        "lfcatree" => "; its leaves never change, so each insert copies a path of nodes, and one thread alone never divides the one leaf",
        _ => "",
    }
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

fn report(run: &mut Run, name: &str, (entries, part): (u64, u64), parts: &[f64], bytes: usize) {
    // No more points than a plot can show: neighbours are taken together.
    let together = parts.len().div_ceil(100).max(1);
    for (i, some) in parts.chunks(together).enumerate() {
        let seconds: f64 = some.iter().sum();
        let rate = (some.len() as u64 * part) as f64 / seconds / 1e6;
        let x = ((i * together + some.len()) as u64 * part) as f64;
        run.figure("growth", name, x, rate, ("M op/s", Better::More));
    }
    let slowest = ends(parts)[1].max(0.0);
    for (x, seconds) in [("slowest", slowest), ("median", median(parts))] {
        run.figure("slowest", name, x, seconds * 1e3, ("ms", Better::Less));
    }
    let x = format!("{} entries", grouped(entries as usize));
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
    goal: Goal,
    /// How many have not grown yet.
    left: usize,
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
        if let Some(entries) = affordable(self.run, M::NAME, self.goal.steps, an_entry) {
            self.failure = self.grow::<M>(entries).err();
        }
        self.left -= 1;
        self.run.progress.step();
    }
}

impl Peers<'_> {
    fn grow<M: Map>(&mut self, entries: u64) -> Result<(), Failure> {
        let mut map = M::empty();
        let patience = self.run.patience(SHARES[0], self.left);
        let growth = (entries, self.goal.part, patience);
        let (grown, allocated) = counted(|| {
            watch(growth, |i| {
                let key = random_key(i);
                map.insert(key, value_of(key));
            })
        });
        let entries = reached(self.run, M::NAME, growth, &grown);
        grown_right(M::NAME, entries, |key| map.get(key))?;
        let bytes = map.own_bytes().unwrap_or(allocated);
        report(self.run, M::NAME, (entries, self.goal.part), &grown, bytes);
        self.run.save()
    }
}
