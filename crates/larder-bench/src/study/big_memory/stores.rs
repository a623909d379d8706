//! What the study of large tables measures: maps from numbers to runs of bytes.

use crate::peers::larder as own;
use crate::study::contender::size_options;
use crate::study::run::{Failure, Run};
use larder_index::{pin, Change, Unique};
use larder_studies::{build_unique, structures, Order};
use larder_term::hash::Seed;
use std::collections::BTreeMap;

/// A map from numbers to runs of bytes.
pub(super) trait Store {
    fn put(&mut self, key: u64, value: &[u8]);
    /// Adds to the end of a value; one that would be longer than `most` begins anew.
    fn append(&mut self, key: u64, piece: &[u8], most: usize);
    /// Puts the value into `out`, which is empty.
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
    /// Bytes that it holds, if it knows.
    fn bytes(&self) -> Option<usize>;
}

/// An index of Larder's.
struct Index {
    index: Box<dyn Unique>,
    seed: Seed,
}

impl Store for Index {
    fn put(&mut self, key: u64, value: &[u8]) {
        let bytes = key.to_be_bytes();
        let key = own::key(&self.seed, &bytes);
        self.index.put(&pin(), key, value, &mut |_| true);
    }

    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        let bytes = key.to_be_bytes();
        let key = own::key(&self.seed, &bytes);
        self.index.update(&pin(), key, &mut |old, scratch| {
            match old {
                Some(old) if old.len() + piece.len() <= most => scratch.extend_from_slice(old),
                _ => {}
            }
            scratch.extend_from_slice(piece);
            Change::PutScratch
        });
    }

    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let bytes = key.to_be_bytes();
        self.index.get(&pin(), own::key(&self.seed, &bytes), out)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.index.memory())
    }
}

fn extend(value: &mut Vec<u8>, piece: &[u8], most: usize) {
    if value.len() + piece.len() > most {
        value.clear();
    }
    value.extend_from_slice(piece);
}

fn replace(old: &mut Vec<u8>, value: &[u8]) {
    old.clear();
    old.extend_from_slice(value);
}

impl Store for BTreeMap<u64, Vec<u8>> {
    fn put(&mut self, key: u64, value: &[u8]) {
        replace(self.entry(key).or_default(), value);
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        extend(self.entry(key).or_default(), piece, most);
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let found = BTreeMap::get(self, &key);
        found.is_some_and(|value| {
            out.extend_from_slice(value);
            true
        })
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
}

impl Store for hashbrown::HashMap<u64, Vec<u8>> {
    fn put(&mut self, key: u64, value: &[u8]) {
        replace(self.entry(key).or_default(), value);
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        extend(self.entry(key).or_default(), piece, most);
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let found = hashbrown::HashMap::get(self, &key);
        found.is_some_and(|value| {
            out.extend_from_slice(value);
            true
        })
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A store that loses what it is given now and then: what the study must find.
struct Forgetful(Box<dyn Store>);

impl Store for Forgetful {
    fn put(&mut self, key: u64, value: &[u8]) {
        if key % 89 != 11 {
            self.0.put(key, value);
        }
    }
    fn append(&mut self, key: u64, piece: &[u8], most: usize) {
        if key % 89 != 11 {
            self.0.append(key, piece, most);
        }
    }
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        self.0.get(key, out)
    }
    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }
}

pub(super) type Make = Box<dyn Fn(usize) -> Box<dyn Store>>;

/// A store by name.
pub(super) struct Named {
    /// What the study calls it.
    pub(super) name: String,
    /// An empty one, for about so many entries.
    pub(super) make: Make,
}

/// Larder's own, all other structures, std's and hashbrown's maps of `Vec`s.
pub(super) fn stores(run: &Run) -> Result<Vec<Named>, Failure> {
    let named = |name: &str, make: Make| Named {
        name: name.to_owned(),
        make,
    };
    let default = |ordered| -> Make {
        Box::new(move |_| {
            let seed = Seed::random();
            let index = own::index(ordered, &seed, true);
            Box::new(Index { index, seed })
        })
    };
    let mut all = vec![
        named("default hash", default(false)),
        named("default ordered", default(true)),
        named(
            "hashbrown of Vec",
            Box::new(|_| Box::new(hashbrown::HashMap::<u64, Vec<u8>>::new())),
        ),
        named(
            "BTreeMap of Vec",
            Box::new(|_| Box::new(BTreeMap::<u64, Vec<u8>>::new())),
        ),
    ];
    for structure in structures() {
        let order = if structure.ordered {
            Order::Key
        } else {
            Order::Hash
        };
        let make: Make = Box::new(move |entries| {
            let options: Vec<_> = size_options(structure.name, entries).into_iter().collect();
            let index = build_unique(structure.name, &options, order)
                .expect("it is listed, and the option is its own");
            let seed = Seed::random();
            Box::new(Index { index, seed })
        });
        all.push(named(structure.name, make));
    }
    all.retain(|s| run.wants(&s.name));
    if run.plant {
        let planted = default(false);
        all.push(named(
            "planted fault",
            Box::new(move |n| Box::new(Forgetful(planted(n)))),
        ));
    }
    match all.is_empty() {
        true => Err(Failure::Impossible(
            "no structure of this study is called so (--only)".into(),
        )),
        false => Ok(all),
    }
}
