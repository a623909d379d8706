//! Stores from elsewhere under the same workload as Larder: libraries of Rust and C++, embedded
//! databases, servers on loopback, maps of the JVM.
//!
//! ```text
//!  study ── for each run, each peer in turn: a fresh process
//!             ├─ workload ── peer (a trait)
//!             │                ├─ rust      this crate's maps; std HashMap, congee
//!             │                ├─ cpp       cpp/*.cc, built by build.rs
//!             │                └─ servers/  Redis, memcached
//!             └─ jvm  (java Bench)
//! ```
//!
//! Nothing here is built or installed by default. `make bench-peers` does it. If a peer is not
//! available, the result says so, with the reason. If a peer gives a wrong answer, the run fails.
//! Each peer is one file. CONTRIBUTING.md says how to add one.

#[cfg(feature = "cpp")]
mod cpp;
mod jvm;
pub mod peer;
pub mod rust;
pub mod servers;
mod study;
pub mod workload;

use crate::maps::peers::Only;
use peer::{Listed, Peer, PeerError};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands for stores from elsewhere.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Lists the peers that are available, and those that are not.
    List {
        /// What `scripts/peers.sh` made for the JVM.
        #[arg(long, default_value = "_build/peers/jvm")]
        jvm: PathBuf,
    },
    /// Measures them in turns, each in a process of its own; writes peers.json, peers.csv and
    /// report.html.
    Run(study::PeersOptions),
    /// Measures one, in this process. `run` calls this.
    #[command(hide = true)]
    One {
        /// Its name.
        name: String,
        /// How many entries.
        entries: usize,
        /// How many appends.
        appends: usize,
    },
}

/// Executes the command. Returns the exit status.
///
/// # Errors
/// Those of the study and of the report.
pub fn main(
    command: &Command,
    only: &Only,
    out: Option<PathBuf>,
) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::List { jvm } => {
            // The available peers, and the others with the reason.
            let java = jvm::all(jvm).into_iter();
            let java = java.map(|java| format!("{} (JVM)", java.name));
            let missing = missing().into_iter();
            let missing = missing.map(|text| format!("not here: {text}"));
            let here = names().into_iter().map(str::to_owned);
            let all = here.chain(java).chain(missing);
            all.for_each(|line| println!("{line}"));
        }
        Command::Run(options) => {
            let out = out.unwrap_or_else(|| "_build/peers".into());
            study::run(options, only, &out)?;
            // The report is drawn from the files that the study has just written.
            crate::report::draw(&out, None, &out.join("report.html"))?;
        }
        Command::One {
            name,
            entries,
            appends,
        } => return Ok(one(name, *entries, *appends)),
    }
    Ok(ExitCode::SUCCESS)
}

fn one(name: &str, entries: usize, appends: usize) -> ExitCode {
    let figures = make(name).and_then(|mut peer| workload::run(&mut *peer, entries, appends));
    match figures {
        Ok(figures) => {
            let lines = figures.iter();
            lines.for_each(|(step, figure)| println!("{step},{figure}"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            // The exit status tells the parent whether the store is absent, or wrong.
            let absent = matches!(why, PeerError::Absent(_));
            ExitCode::from(if absent { study::ABSENT } else { 1 })
        }
    }
}

/// The peers of this build, except those of the JVM.
fn all() -> Vec<Listed> {
    let mut all = rust::all();
    #[cfg(feature = "cpp")]
    all.extend(cpp::all());
    for (name, _, start) in servers::SERVERS {
        all.push((name, Box::new(start)));
    }
    all
}

/// The names of the peers of this build, except those of the JVM.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// An empty peer of this name.
///
/// # Errors
/// If there is none of the name, or it can't be started.
pub fn make(name: &str) -> Result<Box<dyn Peer>, PeerError> {
    let found = all().into_iter().find(|(of, _)| *of == name);
    let none = || PeerError::Absent(format!("no peer is called {name}"));
    found.ok_or_else(none).and_then(|(_, make)| make())
}

/// The peers that this build lacks, and how to install them.
pub fn missing() -> Vec<String> {
    let crates =
        (!cfg!(feature = "peers")).then(|| "congee: built without the feature `peers`".to_string());
    missing_cpp().into_iter().chain(crates).collect()
}

#[cfg(feature = "cpp")]
fn missing_cpp() -> Vec<String> {
    let missing = |(name, package): &(&str, &str)| {
        format!("{name}: its header is not installed (Debian: {package})")
    };
    cpp::MISSING.iter().map(missing).collect()
}

#[cfg(not(feature = "cpp"))]
fn missing_cpp() -> Vec<String> {
    vec!["C and C++: built without the feature `cpp`".into()]
}
