//! The structures that are compared: maps from `u64` to `u64`, and to bytes.
//!
//! Benches are generic over them, so that a peer's calls are as direct as in a program that uses it
//! alone. [`each_map`] and [`each_shared`] go through all that this build has.

mod bytes;
mod crates;
#[cfg(feature = "judy")]
mod judy;
pub mod larder;

pub use bytes::Store;

/// What all of them can do.
pub trait Operations {
    /// Puts a value under a key that may be there already; whether an old value stays is the peer's
    /// affair, as long as every thread puts the same one.
    fn insert(&mut self, key: u64, value: u64);
    /// The value under the key.
    fn get(&mut self, key: u64) -> Option<u64>;
    /// Removes the key.
    fn remove(&mut self, key: u64);
}

/// A structure in the hands of one thread.
pub trait Map: Operations + Sized + 'static {
    /// What reports call it.
    const NAME: &'static str;
    /// Whether a scan gives the keys in order.
    const ORDERED: bool;
    /// An empty one.
    fn empty() -> Self;
    /// Calls `each` with all entries.
    fn scan(&mut self, each: impl FnMut(u64, u64));
    /// Bytes that it holds, if it has them from elsewhere than Rust's allocator.
    fn own_bytes(&mut self) -> Option<usize> {
        None
    }
}

/// A structure in the hands of many.
pub trait Shared: Sync + Sized + 'static {
    /// What reports call it.
    const NAME: &'static str;
    /// Whether it keeps its keys in order.
    const ORDERED: bool;
    /// What a thread works through.
    type Hand<'a>: Operations
    where
        Self: 'a;
    /// An empty one.
    fn empty() -> Self;
    /// A thread's way to it.
    fn hand(&self) -> Self::Hand<'_>;
}

/// Work to be done with each map.
pub trait OnMap {
    /// Does it.
    fn on<M: Map>(&mut self);
}

/// Work to be done with each shared structure.
pub trait OnShared {
    /// Does it.
    fn on<S: Shared>(&mut self);
}

/// Which structures are wanted: those with one of these in their names, or called just so where it
/// begins with `=`; all, if it is empty.
pub struct Only(pub Vec<String>);

impl Only {
    /// Whether this one is wanted.
    pub fn has(&self, name: &str) -> bool {
        let is = |part: &String| match part.strip_prefix('=') {
            Some(whole) => name == whole,
            None => name.contains(part.as_str()),
        };
        self.0.is_empty() || self.0.iter().any(is)
    }
}

/// Counts those that it is given.
pub struct Count(pub usize);

impl OnMap for Count {
    fn on<M: Map>(&mut self) {
        self.0 += 1;
    }
}

impl OnShared for Count {
    fn on<S: Shared>(&mut self) {
        self.0 += 1;
    }
}

/// Goes through the maps.
pub fn each_map(only: &Only, work: &mut impl OnMap) {
    on_map::<larder::Alone<false>>(only, work);
    on_map::<hashbrown::HashMap<u64, u64>>(only, work);
    on_map::<larder::Alone<true>>(only, work);
    on_map::<std::collections::BTreeMap<u64, u64>>(only, work);
    #[cfg(feature = "judy")]
    on_map::<judy::JudyL>(only, work);
}

/// Goes through the maps that `make bench-peers` alone measures.
pub fn each_other_map(work: &mut impl OnMap) {
    work.on::<std::collections::HashMap<u64, u64>>();
    #[cfg(feature = "peers")]
    work.on::<crates::Art>();
}

fn on_map<M: Map>(only: &Only, work: &mut impl OnMap) {
    if only.has(M::NAME) {
        work.on::<M>();
    }
}

/// Goes through the shared structures.
pub fn each_shared(only: &Only, work: &mut impl OnShared) {
    on_shared::<larder::Larder<false>>(only, work);
    #[cfg(feature = "peers")]
    {
        on_shared::<dashmap::DashMap<u64, u64>>(only, work);
        on_shared::<papaya::HashMap<u64, u64>>(only, work);
        on_shared::<scc::HashIndex<u64, u64>>(only, work);
    }
    on_shared::<larder::Larder<true>>(only, work);
    #[cfg(feature = "peers")]
    {
        on_shared::<scc::TreeIndex<u64, u64>>(only, work);
        on_shared::<crossbeam_skiplist::SkipMap<u64, u64>>(only, work);
        on_shared::<crates::Concurrent>(only, work);
    }
}

fn on_shared<S: Shared>(only: &Only, work: &mut impl OnShared) {
    if only.has(S::NAME) {
        work.on::<S>();
    }
}

#[cfg(test)]
mod tests {
    use super::Only;

    #[test]
    fn a_part_or_a_whole_name() {
        let only = Only(vec!["=set".into(), "btree".into()]);
        let names = ["set", "default set", "btree", "btree m=32", "avl"];
        assert_eq!(
            names.map(|name| only.has(name)),
            [true, false, true, true, false]
        );
        assert!(Only(Vec::new()).has("avl"));
    }
}
