//! Large tables in memory: how they grow, how much memory they take, appends, values of all sizes.
//!
//! To add a structure: an implementation of `Store`, named in `stores`, both in
//! `big_memory/stores.rs`. Maps from u64 to u64 of `peers` take part in growth by themselves.

mod stores;
mod writes;

use super::run::Run;
use super::{Extent, Plan};
use crate::maps::peers::{each_map, map_names, Hand, Map, Store};
use crate::result::{ensure, Outcome};
use crate::stats::{ends, median};
use crate::table::grouped;
use crate::time::counting::counted;
use crate::time::{timed, timed_parts};
use crate::workload::{random_key, value_of};
use std::time::Duration;
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

const PLOTS: &str = "
growth | Inserts a second while a table grows | entries, linear | millions of inserts a second, log | M op/s, more | u64 to u64, random keys; each point is {part} inserts from the one before it
slowest | The slowest part of growth | , names | ms, log | ms, less | {part} inserts; the median part beside it
entry | Bytes an entry | , names | bytes, linear | bytes, less | as the structure says, or as Rust's allocator counts; 16 of them are key and value
load | Load: keys and values of all bytes | , names | %, linear | %, more | 16 bytes of each entry's
";

fn run(run: &mut Run) -> Outcome {
    let stores = stores::stores(run)?;
    if run.scale == Extent::Full {
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

fn growth(run: &mut Run, stores: &[Named]) -> Outcome {
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
    run.plots(PLOTS, &[("part", &grouped(goal.part as usize))]);
    // Larder's own are among the stores, so they aren't measured again as maps.
    let mut peers = map_names(&run.only);
    peers.retain(|name| !name.starts_with("larder"));
    let mut left = stores.len() + peers.len();
    run.progress.part("big-memory, growth", left);
    for store in stores {
        let who = (store.name.as_str(), bytes_of(store));
        // Each has an equal part of the time that is left.
        grow(run, &goal, who, &mut left, &store.make, |made| made.bytes())?;
    }
    // Maps that double are at their worst just after they did.
    let an_entry = 45.0;
    each_map!(run.only, M => {
        if peers.contains(&M::NAME) {
            let make = |_| M::empty();
            grow(run, &goal, (M::NAME, an_entry), &mut left, make, M::own_bytes)?;
        }
    });
    run.check(
        "after growth: every thousandth key has its value, a key that was never put has none",
    );
    Ok(())
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

/// A store of words, for growth.
impl Hand for Box<dyn Store> {
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
        unreachable!("stores grow alone")
    }
}

/// Lets a structure grow as far as memory and time allow. It takes `an_entry` bytes for each entry.
fn grow<H: Hand>(
    run: &mut Run,
    goal: &Goal,
    (name, an_entry): (&str, f64),
    left: &mut usize,
    make: impl FnOnce(usize) -> H,
    own_bytes: impl FnOnce(&mut H) -> Option<usize>,
) -> Outcome {
    run.progress.at(name);
    if let Some(entries) = affordable(run, name, goal.steps, an_entry) {
        let patience = run.clock.patience(SHARES[0], *left);
        let growth = (entries, goal.part, patience);
        let mut hand = make(entries as usize);
        let (grown, allocated) = counted(|| {
            timed_parts((entries, goal.part), patience, |i| {
                let key = random_key(i);
                hand.insert(key, value_of(key));
            })
        });
        // The time may have been over before all entries were there.
        let entries = reached(run, name, growth, &grown);
        grown_right(name, entries, |key| hand.get(key))?;
        let bytes = own_bytes(&mut hand).unwrap_or(allocated);
        report(run, name, (entries, goal.part), &grown, bytes);
        // Save after each, since the study may take hours.
        run.save()?;
    }
    *left -= 1;
    run.progress.step();
    Ok(())
}

/// How many entries came; if not all did, that is said.
fn reached(run: &mut Run, name: &str, (entries, part, patience): Growth, grown: &[f64]) -> u64 {
    let came = grown.len() as u64 * part;
    // Fewer than all parts: it is said how far it came, and why it stopped.
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

fn grown_right(name: &str, entries: u64, mut get: impl FnMut(u64) -> Option<u64>) -> Outcome {
    // About a hundred samples at least, spread over all keys.
    for i in (0..entries).step_by(997.min(entries as usize / 100).max(1)) {
        let key = random_key(i);
        let found = get(key);
        ensure!(
            found == Some(value_of(key)),
            name,
            "under {key} there is {found:?}, not {}",
            value_of(key)
        );
    }
    // Keys that were never put must not be found.
    for i in entries..entries + 1_000 {
        let found = get(random_key(i));
        ensure!(
            found.is_none(),
            name,
            "under a key that was never put there is {found:?}"
        );
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
        run.figure("growth", name, x, rate);
    }
    // What a single slow part means is seen beside the median.
    let slowest = ends(parts)[1].max(0.0);
    for (x, seconds) in [("slowest", slowest), ("median", median(parts))] {
        run.figure("slowest", name, x, seconds * 1e3);
    }
    let x = format!("{} entries", grouped(entries as usize));
    let an_entry = bytes as f64 / entries as f64;
    run.figure("entry", name, &*x, an_entry);
    run.figure("load", name, &*x, 100.0 * ENTRY / an_entry);
}
