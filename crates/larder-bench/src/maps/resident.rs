//! The resident bytes of a structure, measured in a new process that only fills it.

use crate::maps::peers::{each_map, Map, Only};
use crate::time::memory;
use crate::workload::{random_key, value_of};
use std::hint::black_box;
use std::process::Command;

/// Which structure, how many entries, and how many such structures.
#[derive(clap::Args)]
pub struct ResidentOptions {
    name: String,
    entries: u64,
    count: u64,
}

/// The system gives memory in large pieces. So several small structures are filled, until they have
/// this number of entries together.
const ENOUGH: usize = 1 << 20;

/// Fills, and prints by how many bytes this process grew.
pub fn run(options: &ResidentOptions) {
    each_map!(Only(vec![format!("={}", options.name)]), M => fill::<M>(options));
}

fn fill<M: Map>(options: &ResidentOptions) {
    let fill = |entries: u64| {
        let mut map = M::empty();
        let keys = (0..entries).map(random_key);
        keys.for_each(|key| map.insert(key, value_of(key)));
        map
    };
    // What the first one brings with it is not the entries'.
    let first = fill(1);
    let before = memory::own();
    // Several maps, if one is small, so that the pages which the process takes say something about
    // the entries.
    let maps: Vec<M> = (0..options.count).map(|_| fill(options.entries)).collect();
    println!("{}", memory::own().saturating_sub(before));
    // Keep the maps until the memory was read.
    black_box((first, maps));
}

/// Resident bytes an entry of `entries` random ones in the structure of that name.
///
/// # Panics
/// If the process can't be started or does not do its work.
pub fn of(name: &str, entries: usize) -> f64 {
    // So many maps that all together have enough entries.
    let count = (ENOUGH / entries).max(1);
    let program = std::env::current_exe().expect("this program has a path");
    // This program once more, as a fresh process.
    let output = Command::new(program)
        .args(["resident", name, &entries.to_string(), &count.to_string()])
        .output()
        .expect("this program can be started once more");
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes: f64 = text
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("resident {name}: {output:?}"));
    bytes / (count * entries) as f64
}
