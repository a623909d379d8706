//! The operations of every store from elsewhere. A call has many keys, so that a server gets many
//! commands at once, and the loops of C++ stores are in C++.

use crate::result::Outcome;
use std::process::id;

/// A store that one thread uses. A call fails if the peer can't execute it.
pub trait Peer {
    /// Puts values under keys.
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome;
    /// Writes the value of each key that is present to the same index of `values`. Returns how many
    /// are present.
    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize>;
    /// Appends the piece to the bytes under each key. Returns false if this peer has no appends.
    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool>;
    /// Appends the bytes under a key to `out`. Returns false if there are none.
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool>;
    /// The process whose memory holds the entries.
    fn process(&self) -> u32 {
        id()
    }
}

/// A peer's name, and the function that starts an empty one. It fails with `Failure::Impossible` if
/// the peer isn't installed, or can't be started.
pub type Listed = (&'static str, Box<dyn Fn() -> Outcome<Box<dyn Peer>>>);
