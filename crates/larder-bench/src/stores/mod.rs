//! Stores from elsewhere under the same workload as Larder: libraries of Rust and C++, embedded
//! databases, servers on loopback, maps of the JVM.
//!
//! ```text
//!  study ── for each run, each peer in turn: a fresh process
//!             ├─ workload ── peer (a trait)
//!             │                ├─ rust      this crate's maps; std HashMap, congee
//!             │                ├─ cpp       cpp/*.cc, built by build.rs
//!             │                └─ servers   Redis, memcached
//!             └─ jvm  (java Bench)
//! ```
//!
//! Nothing here is built or installed by default. `make bench-peers` does it. The result names the
//! peers that aren't available, with the reason. A wrong answer of a peer fails the run. Each peer
//! is one file. CONTRIBUTING.md says how to add one.

#[cfg(feature = "cpp")]
mod cpp;
mod jvm;
pub mod peer;
mod rust;
pub mod servers;
mod study;
pub mod workload;

use crate::maps::peers::Filter;
use crate::result::{Failure, Outcome};
use peer::{Listed, Peer};
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

pub fn main(command: &Command, filter: &Filter, out: Option<PathBuf>) -> Outcome<ExitCode> {
    match command {
        Command::List { jvm } => {
            names().iter().for_each(|name| println!("{name}"));
            for [_, name] in jvm::all(jvm) {
                println!("{name} (JVM)");
            }
            missing()
                .iter()
                .for_each(|text| println!("not here: {text}"));
        }
        Command::Run(options) => {
            let out = out.unwrap_or_else(|| "_build/peers".into());
            study::run(options, filter, &out)?;
            crate::report::draw(&out, None, &out.join("report.html"))?;
        }
        Command::One {
            name,
            entries,
            appends,
        } => {
            let peer = make(name);
            match peer.and_then(|mut peer| workload::run(&mut *peer, *entries, *appends)) {
                Ok(figures) => figures
                    .iter()
                    .for_each(|(step, figure)| println!("{step},{figure}")),
                // The exit status tells whether the peer is absent or wrong.
                Err(why) => {
                    eprintln!("{why}");
                    let absent = matches!(why, Failure::Impossible(_));
                    return Ok(ExitCode::from(if absent { study::ABSENT } else { 1 }));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The peers of this build, except those of the JVM.
fn all() -> Vec<Listed> {
    let mut all = rust::all();
    #[cfg(feature = "cpp")]
    all.extend(cpp::all());
    for server in &servers::SERVERS {
        all.push((server.name, Box::new(|| server.start())));
    }
    all
}

/// The names of the peers of this build, except those of the JVM.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// An empty peer of this name. It is an error if there is none, or it can't be started.
pub fn make(name: &str) -> Outcome<Box<dyn Peer>> {
    let found = all().into_iter().find(|(known, _)| *known == name);
    let none = || Failure::Impossible(format!("no peer is called {name}"));
    found.ok_or_else(none).and_then(|(_, make)| make())
}

/// The peers that this build lacks, and how to install them.
fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    #[cfg(feature = "cpp")]
    for (name, package) in cpp::MISSING {
        missing.push(format!(
            "{name}: its header is not installed (Debian: {package})"
        ));
    }
    if !cfg!(feature = "cpp") {
        missing.push("C and C++: built without the feature `cpp`".into());
    }
    if !cfg!(feature = "peers") {
        missing.push("congee: built without the feature `peers`".into());
    }
    missing
}
