//! Peers in Rust: every map of this crate. Some can also append bytes.

use crate::maps::peers::index::Owned;
use crate::maps::peers::{each, each_map, Filter, Map, Store};
use crate::result::Outcome;
use crate::stores::peer::{Listed, Peer};
use std::collections::HashMap;

/// A map, and a store of bytes if the peer has appends.
struct RustPeer<M> {
    map: M,
    bytes: Option<Box<dyn Store>>,
}

impl<M: Map> Peer for RustPeer<M> {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome {
        let pairs = keys.iter().zip(values);
        pairs.for_each(|(key, value)| self.map.insert(*key, *value));
        Ok(())
    }
    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize> {
        let mut found = 0;
        for (key, place) in keys.iter().zip(values) {
            if let Some(value) = self.map.get(*key) {
                (*place, found) = (value, found + 1);
            }
        }
        Ok(found)
    }
    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool> {
        if let Some(bytes) = &mut self.bytes {
            keys.iter()
                .for_each(|key| bytes.append(*key, piece, usize::MAX));
        }
        Ok(self.bytes.is_some())
    }
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool> {
        Ok(self.bytes.as_mut().is_some_and(|bytes| bytes.get(key, out)))
    }
}

pub fn all() -> Vec<Listed> {
    let mut all = each_map!(Filter::default(), M => make::<M> as fn() -> _);
    // The maps that are measured here alone.
    all.extend(each!(Filter::default(), M => make::<M> as fn() -> _;
        HashMap<u64, u64>, #[cfg(feature = "peers")] crate::maps::peers::crates::Art));
    let listed = all
        .into_iter()
        .map(|(name, make)| -> Listed { (name, Box::new(move || Ok(make()))) });
    listed.collect()
}

fn make<M: Map>() -> Box<dyn Peer> {
    // Larder's share the pin of the map, which would keep the epoch otherwise.
    let bytes: Option<Box<dyn Store>> = match M::NAME {
        "larder hash" => Some(Box::new(Owned::<false>::empty())),
        "larder ordered" => Some(Box::new(Owned::<true>::empty())),
        "std HashMap" => Some(Box::new(HashMap::<u64, Vec<u8>>::new())),
        _ => None,
    };
    let map = M::empty();
    Box::new(RustPeer { map, bytes })
}
