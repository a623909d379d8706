//! The JVM's maps. `scripts/peers.sh` compiles `jvm/*.java` and fetches the jars into one folder.
//! Each measurement runs in a new JVM.
//!
//! The folder contains `classes/`, `jars/`, and `peers.txt` with a line `CLASS<TAB>NAME` for each
//! map that is available.

use crate::stores::peer::{PeerError, PeerResult};
use crate::stores::workload::{parse, Figure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A map of the JVM.
pub struct Java {
    pub name: String,
    class: String,
    folder: PathBuf,
}

/// The maps in the folder. There are none if the folder doesn't exist.
pub fn all(folder: &Path) -> Vec<Java> {
    let list = std::fs::read_to_string(folder.join("peers.txt")).unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.split_once('\t'));
    let java = |(class, name): (&str, &str)| {
        let [class, name] = [class, name].map(String::from);
        Java {
            name,
            class,
            folder: folder.to_path_buf(),
        }
    };
    lines.map(java).collect()
}

/// The serial collector returns memory after each full collection, so resident bytes are those of
/// the entries.
const FLAGS: &str = "-XX:+UseSerialGC -XX:MinHeapFreeRatio=2 -XX:MaxHeapFreeRatio=5 -Xmx12g -cp";

impl Java {
    /// Measures the map in a new JVM.
    pub fn run(&self, entries: usize) -> PeerResult<Vec<Figure>> {
        let path = format!("{0}/classes:{0}/jars/*", self.folder.display());
        let output = Command::new("java")
            .args(FLAGS.split(' '))
            .args([&path, "Bench", &self.class, &entries.to_string()])
            .output()
            .map_err(|error| PeerError::Absent(format!("java: {error}")))?;
        let [out, error] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
        match output.status.success() {
            true => parse(&out),
            false => Err(PeerError::Wrong(error.trim().to_string())),
        }
    }
}
