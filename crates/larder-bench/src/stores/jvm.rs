//! The JVM's maps. `scripts/peers.sh` compiles `jvm/*.java` and fetches the jars into one folder.
//! Each measurement runs in a new JVM.
//!
//! The folder contains `classes/`, `jars/`, and `peers.txt` with a line `CLASS<TAB>NAME` for each
//! map that is available.

use crate::stores::peer::PeerError;
use crate::stores::workload::{Figure, STEPS};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A map of the JVM.
pub struct Java {
    /// What reports call it.
    pub name: String,
    class: String,
    folder: PathBuf,
}

/// The maps in the folder. There are none if the folder doesn't exist.
pub fn all(folder: &Path) -> Vec<Java> {
    let list = std::fs::read_to_string(folder.join("peers.txt")).unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.split_once('\t'));
    lines
        .map(|(class, name)| Java {
            name: name.to_string(),
            class: class.to_string(),
            folder: folder.to_path_buf(),
        })
        .collect()
}

impl Java {
    /// Runs it. The collector is the serial one, which returns memory after each full collection.
    /// So resident bytes are those of entries.
    ///
    /// # Errors
    /// If there is no JVM, it fails, or an answer is wrong.
    pub fn run(&self, entries: usize) -> Result<Vec<Figure>, PeerError> {
        let path = format!("{0}/classes:{0}/jars/*", self.folder.display());
        // A JVM of its own for each measurement: what was compiled or loaded for one map must not
        // help another.
        let output = Command::new("java")
            .args([
                "-XX:+UseSerialGC",
                "-XX:MinHeapFreeRatio=2",
                "-XX:MaxHeapFreeRatio=5",
            ])
            .args(["-Xmx12g", "-cp", &path, "Bench"])
            .args([&self.class, &entries.to_string()])
            .output()
            .map_err(|error| PeerError::Absent(format!("java: {error}")))?;
        if !output.status.success() {
            return Err(PeerError::Wrong(
                String::from_utf8_lossy(&output.stderr).trim().to_string(),
            ));
        }
        read(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Lines `step,figure`, as this program and `Bench.java` print them.
///
/// # Errors
/// If there is another line.
pub fn read(text: &str) -> Result<Vec<Figure>, PeerError> {
    let figure = |line: &str| {
        let (step, figure) = line.split_once(',')?;
        let step = STEPS.iter().find(|known| **known == step)?;
        Some((*step, figure.parse().ok()?))
    };
    let lines = text.lines().map(|line| {
        figure(line).ok_or_else(|| PeerError::Wrong(format!("unexpected line {line:?}")))
    });
    lines.collect()
}
