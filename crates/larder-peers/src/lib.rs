//! Stores from elsewhere under the same workload as Larder: libraries of Rust and C++, embedded
//! databases, servers on loopback, maps of the JVM.
//!
//! ```text
//!  study ── for each run, each peer in turn: a fresh process ── workload ── peer (a trait)
//!                                            │                              ├─ rust/     larder-bench's maps; std HashMap, congee
//!                                            └─ jvm  (java Bench)           ├─ cpp       cpp/*.cc, built by build.rs
//!                                                                           └─ servers/  Redis, memcached
//! ```
//!
//! Nothing here is built or installed unless somebody asks: `make bench-peers` does. A peer that
//! can't be had is named in the result, with the reason; a peer that gives a wrong answer fails the
//! run. Each peer is one file; CONTRIBUTING.md says how one is added.

#![deny(unsafe_code)]

#[cfg(feature = "cpp")]
pub mod cpp;
pub mod jvm;
pub mod peer;
pub mod rust;
pub mod servers;
pub mod study;
pub mod workload;

use peer::{Peer, Trouble};

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
    let crates = (!cfg!(feature = "crates"))
        .then(|| "congee: built without the feature `crates`".to_string());
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
