//! Peers in Rust: every map of this crate, through the trait `Map`. Some can also append bytes.

use crate::maps::peers::larder::Index;
use crate::maps::peers::{each_map, each_other_map, Map, Only, Store};
use crate::stores::peer::{Listed, Peer, PeerError};
use std::collections::HashMap;

/// A map, and bytes if it has a way to append to them.
struct Mapped<M> {
    map: M,
    bytes: Option<Box<dyn Store>>,
}

impl<M: Map> Peer for Mapped<M> {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), PeerError> {
        let pairs = keys.iter().zip(values);
        pairs.for_each(|(key, value)| self.map.insert(*key, *value));
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, PeerError> {
        let mut found = 0;
        for (key, place) in keys.iter().zip(values) {
            if let Some(value) = self.map.get(*key) {
                *place = value;
                found += 1;
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, PeerError> {
        let Some(bytes) = &mut self.bytes else {
            return Ok(false);
        };
        keys.iter()
            .for_each(|key| bytes.append(*key, piece, usize::MAX));
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, PeerError> {
        Ok(self.bytes.as_mut().is_some_and(|bytes| bytes.get(key, out)))
    }
}

/// The peers in Rust.
pub fn all() -> Vec<Listed> {
    let (every, mut all) = (Only(Vec::new()), Vec::new());
    each_map!(every, M => all.push(listed::<M>()));
    each_other_map!(every, M => all.push(listed::<M>()));
    all
}

fn listed<M: Map>() -> Listed {
    (M::NAME, Box::new(|| Ok(mapped::<M>())))
}

fn mapped<M: Map>() -> Box<dyn Peer> {
    let bytes: Option<Box<dyn Store>> = match M::NAME {
        "larder hash" => Some(Box::new(Index::larder(false))),
        "larder ordered" => Some(Box::new(Index::larder(true))),
        "std HashMap" => Some(Box::new(HashMap::<u64, Vec<u8>>::new())),
        _ => None,
    };
    let map = M::empty();
    Box::new(Mapped { map, bytes })
}
