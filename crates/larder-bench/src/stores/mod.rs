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
use peer::{Peer, Trouble};
use std::path::PathBuf;
use std::process::ExitCode;

/// What is to be done with stores from elsewhere.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The peers that are here, and what could not be had.
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
pub fn main(command: &Command, only: Vec<String>, out: Option<PathBuf>) -> ExitCode {
    match command {
        Command::List { jvm } => {
            // What can be had here, and what can't with the reason.
            let java = jvm::all(jvm).into_iter();
            let java = java.map(|java| format!("{} (JVM)", java.name));
            let missing = missing().into_iter();
            let missing = missing.map(|text| format!("not here: {text}"));
            let here = names().into_iter().map(str::to_owned);
            let all = here.chain(java).chain(missing);
            all.for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Command::Run(options) => {
            let out = out.unwrap_or_else(|| "_build/peers".into());
            // The report is drawn from the files that the study has just written.
            let done = study::run(options, Only(only), &out).and_then(|()| {
                let page = out.join("report.html");
                crate::report::draw(&out, None, &page).map_err(|error| error.to_string())
            });
            if let Err(why) = &done {
                eprintln!("larder-bench: {why}");
            }
            ExitCode::from(u8::from(done.is_err()))
        }
        Command::One {
            name,
            entries,
            appends,
        } => one(name, *entries, *appends),
    }
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
            let absent = matches!(why, Trouble::Absent(_));
            ExitCode::from(if absent { study::ABSENT } else { 1 })
        }
    }
}

/// The peers that this build has a name for, but those of the JVM.
pub fn names() -> Vec<&'static str> {
    let mut names = rust::names();
    #[cfg(feature = "cpp")]
    names.extend(cpp::here().iter().map(|table| table.name()));
    names.extend(servers::NAMES.map(|(name, _)| name));
    names
}

/// An empty peer of this name.
///
/// # Errors
/// If there is none of the name, or it can't be started.
pub fn make(name: &str) -> Result<Box<dyn Peer>, Trouble> {
    if let Some(peer) = rust::make(name) {
        return Ok(peer);
    }
    #[cfg(feature = "cpp")]
    if let Some(peer) = cpp::make(name) {
        return Ok(peer);
    }
    let none = || Err(Trouble::Absent(format!("no peer is called {name}")));
    servers::make(name).unwrap_or_else(none)
}

/// What this build could not get, and how it is got.
pub fn missing() -> Vec<String> {
    let crates =
        (!cfg!(feature = "peers")).then(|| "congee: built without the feature `peers`".to_string());
    missing_cpp().into_iter().chain(crates).collect()
}

#[cfg(feature = "cpp")]
fn missing_cpp() -> Vec<String> {
    let said = |(name, package): &(&str, &str)| {
        format!("{name}: its header is not installed (Debian: {package})")
    };
    cpp::MISSING.iter().map(said).collect()
}

#[cfg(not(feature = "cpp"))]
fn missing_cpp() -> Vec<String> {
    vec!["C and C++: built without the feature `cpp`".into()]
}
