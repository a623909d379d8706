//! What the study of large tables measures: maps from numbers to runs of bytes.

use crate::maps::peers::larder::Index;
use crate::maps::peers::Store;
use crate::result::Outcome;
use crate::study::contender::size_options;
use crate::study::run::Run;
use larder_studies::{build_unique, structures, Order};
use larder_term::hash::Seed;
use std::collections::BTreeMap;

/// A store that loses what it is given now and then: what the study must find.
struct ForgetfulStore(Box<dyn Store>);

impl Store for ForgetfulStore {
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
    /// Makes an empty store for about this number of entries.
    pub(super) make: Make,
}

/// Larder's own, all other structures, std's and hashbrown's maps of `Vec`s.
pub(super) fn stores(run: &Run) -> Outcome<Vec<Named>> {
    let named = |name: &str, make: Make| Named {
        name: name.to_owned(),
        make,
    };
    let default = |ordered| -> Make { Box::new(move |_| Box::new(Index::larder(ordered))) };
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
    // All other structures, with the options that fit this number of entries.
    for structure in structures() {
        let order = if structure.ordered {
            Order::Key
        } else {
            Order::Hash
        };
        let make: Make = Box::new(move |entries| {
            // A structure that never grows is made with a bucket for each entry.
            let options: Vec<_> = size_options(structure.name, entries).into_iter().collect();
            let index = build_unique(structure.name, &options, order)
                .expect("it is listed, and the option is its own");
            Box::new(Index::new(index, Seed::random()))
        });
        all.push(named(structure.name, make));
    }
    // A store that forgets some keys, to see that the study notices.
    let planted = || {
        let whole = default(false);
        let make: Make = Box::new(move |n| Box::new(ForgetfulStore(whole(n))));
        named("planted fault", make)
    };
    run.wanted(all, |store| &store.name, planted)
}
