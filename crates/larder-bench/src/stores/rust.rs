//! Peers in Rust: every map of this crate through the trait `Map`; some have bytes to append to,
//! too.

use crate::maps::peers::larder::Index;
use crate::maps::peers::{each_map, each_other_map, Map, OnMap, Only, Store};
use crate::stores::peer::{Peer, Trouble};
use std::collections::HashMap;

/// A map, and bytes if it has a way to append to them.
struct Mapped<M> {
    map: M,
    bytes: Option<Box<dyn Store>>,
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
        keys.iter()
            .for_each(|key| bytes.append(*key, piece, usize::MAX));
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, Trouble> {
        Ok(self.bytes.as_mut().is_some_and(|bytes| bytes.get(key, out)))
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
            let bytes: Option<Box<dyn Store>> = match self.name {
                "larder hash" => Some(Box::new(Index::larder(false))),
                "larder ordered" => Some(Box::new(Index::larder(true))),
                "std HashMap" => Some(Box::new(HashMap::<u64, Vec<u8>>::new())),
                _ => None,
            };
            let map = M::empty();
            self.found = Some(Box::new(Mapped { map, bytes }));
        }
    }
}

fn each(work: &mut impl OnMap) {
    each_map(&Only(Vec::new()), work);
    each_other_map(work);
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
