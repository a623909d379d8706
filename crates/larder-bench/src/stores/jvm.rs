//! The JVM's maps. `scripts/peers.sh` fetches and compiles those of `jvm/maps.txt`. Each
//! measurement runs in a new JVM.
//!
//! The folder contains `classes/`, `jars/`, and `peers.txt` with a line `CLASS<TAB>NAME` for each
//! map that is available.

use std::path::Path;
use std::process::Command;

/// The classes and the names of the maps in the folder. There are none if the folder doesn't exist.
pub fn all(folder: &Path) -> Vec<[String; 2]> {
    let list = std::fs::read_to_string(folder.join("peers.txt")).unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.split_once('\t'));
    let owned = |(class, name): (&str, &str)| [class.into(), name.into()];
    lines.map(owned).collect()
}

/// The serial collector returns memory after each full collection, so resident bytes are those of
/// the entries.
const FLAGS: &str = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=2 -XX:MaxHeapFreeRatio=5 -Xmx12g -cp";

/// The JVM that measures a map.
pub fn command(folder: &Path, class: &str, entries: usize) -> Command {
    let path = format!("{0}/classes:{0}/jars/*", folder.display());
    let mut command = Command::new("java");
    command.args(FLAGS.split(' '));
    command.args([&path, "Bench", class, &entries.to_string()]);
    command
}
