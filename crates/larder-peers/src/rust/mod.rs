//! Peers in Rust: every map of `larder-bench`, and those of this folder, through the same trait
//! `Map`; some have bytes to append to, too.

pub mod std_hash;

#[cfg(feature = "crates")]
pub mod congee;
mod larder_bytes;

use crate::peer::{Peer, Trouble};
use larder_bench::peers::{each_map, Map, OnMap, Only};

/// Bytes under keys.
pub trait Bytes {
    /// Appends the piece to what is there.
    fn append(&mut self, key: u64, piece: &[u8]);
    /// Puts the bytes to the end of `out`; false if there are none.
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
}

/// A map, and bytes if it has a way to append to them.
struct Mapped<M> {
    map: M,
    bytes: Option<Box<dyn Bytes>>,
}

impl<M: Map> Peer for Mapped<M> {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), Trouble> {
        let pairs = keys.iter().zip(values);
        pairs.for_each(|(key, value)| self.map.insert(*key, *value));
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, Trouble> {
        let mut found = 0;
        for (key, place) in keys.iter().zip(values) {
            if let Some(value) = self.map.get(*key) {
                *place = value;
                found += 1;
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, Trouble> {
        let Some(bytes) = &mut self.bytes else {
            return Ok(false);
        };
        keys.iter().for_each(|key| bytes.append(*key, piece));
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, Trouble> {
        Ok(self
            .bytes
            .as_mut()
            .is_some_and(|bytes| bytes.read(key, out)))
    }
}

/// The names of all.
struct Names(Vec<&'static str>);

impl OnMap for Names {
    fn on<M: Map>(&mut self) {
        self.0.push(M::NAME);
    }
}

/// The one of this name.
struct Find<'a> {
    name: &'a str,
    found: Option<Box<dyn Peer>>,
}

impl OnMap for Find<'_> {
    fn on<M: Map>(&mut self) {
        if M::NAME == self.name {
            let bytes: Option<Box<dyn Bytes>> = match self.name {
                "larder hash" => Some(Box::new(larder_bytes::LarderBytes::new(false))),
                "larder ordered" => Some(Box::new(larder_bytes::LarderBytes::new(true))),
                std_hash::NAME => Some(Box::new(std_hash::Texts::default())),
                _ => None,
            };
            let map = M::empty();
            self.found = Some(Box::new(Mapped { map, bytes }));
        }
    }
}

fn each(work: &mut impl OnMap) {
    each_map(&Only(Vec::new()), work);
    work.on::<std_hash::StdHash>();
    #[cfg(feature = "crates")]
    work.on::<congee::Art>();
}

/// The names of the peers in Rust.
pub fn names() -> Vec<&'static str> {
    let mut names = Names(Vec::new());
    each(&mut names);
    names.0
}

/// An empty one of this name.
pub fn make(name: &str) -> Option<Box<dyn Peer>> {
    let mut find = Find { name, found: None };
    each(&mut find);
    find.found
}
