//! The resident bytes of a map, measured in a new process that only fills it.

use crate::maps::peers::{each_map, Filter, Map};
use crate::time::memory;
use crate::workload::{random_key, value_of};
use std::hint::black_box;
use std::process::Command;

/// The name of a map, the number of its entries, and how many such maps are filled.
#[derive(clap::Args)]
pub struct ResidentOptions {
    name: String,
    entries: u64,
    count: u64,
}

/// The least number of entries in all maps together. The system gives memory in large pieces, so
/// small maps are filled several times.
const ENOUGH: usize = 1 << 20;

/// Fills the maps, and prints by how many bytes this process grew.
pub fn run(options: &ResidentOptions) {
    let name = Filter(vec![format!("={}", options.name)]);
    for (_, fill) in each_map!(name, M => fill::<M> as fn(&_)) {
        fill(options);
    }
}

/// A map with these keys.
pub fn filled<M: Map>(keys: impl Iterator<Item = u64>) -> M {
    let mut map = M::empty();
    keys.for_each(|key| map.insert(key, value_of(key)));
    map
}

fn fill<M: Map>(options: &ResidentOptions) {
    let fill = |entries| filled((0..entries).map(random_key));
    // Allocations that only the first map makes don't belong to the entries.
    let first: M = fill(1);
    let before = memory::of_this_process();
    let maps: Vec<M> = (0..options.count).map(|_| fill(options.entries)).collect();
    println!("{}", memory::of_this_process().saturating_sub(before));
    // The maps live until the memory was read.
    black_box((first, maps));
}

/// Resident bytes per entry of a map with random entries. Panics if the process fails.
pub fn of(name: &str, entries: usize) -> f64 {
    let count = (ENOUGH / entries).max(1);
    let program = std::env::current_exe().expect("this program has a path");
    let arguments = ["resident", name, &entries.to_string(), &count.to_string()];
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("this program can be started once more");
    let bytes: Result<f64, _> = String::from_utf8_lossy(&output.stdout).trim().parse();
    bytes.unwrap_or_else(|_| panic!("resident {name}: {output:?}")) / (count * entries) as f64
}
