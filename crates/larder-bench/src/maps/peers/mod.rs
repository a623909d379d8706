//! The maps that are compared, from `u64` to `u64` and from `u64` to bytes.
//!
//! Benches are generic over the maps, so that calls are as direct as in a program that uses one map
//! only. [`each!`] lists an instance of generic code for every type; [`each_map!`]
//! and [`each_shared!`] are the lists of this build.

#[cfg(feature = "peers")]
pub mod crates;
pub mod index;
#[cfg(feature = "judy")]
pub mod judy;
mod std_maps;

pub trait Named {
    const NAME: &'static str;
    /// Whether scans return the keys in order.
    const ORDERED: bool = false;
}

/// The operations of one thread on a map. The caller checks the answers.
pub trait Handle {
    /// Puts a value under a key. Maps may keep an older value: all threads put the same one.
    fn insert(&mut self, key: u64, value: u64);
    /// The value under a key. For rows `{K}`, the key.
    fn get(&mut self, key: u64) -> Option<u64>;
    /// Removes a key. Returns whether it was present.
    fn remove(&mut self, key: u64) -> bool;
    /// The bytes of a map that doesn't allocate with Rust's allocator.
    fn own_bytes(&mut self) -> Option<usize> {
        None
    }
    /// The operations that only tables of the engine have.
    fn table(&mut self) -> &mut dyn TableHandle {
        unreachable!("studies of tables have no peers")
    }
}

/// The operations of one thread on a table of the engine.
pub trait TableHandle {
    /// Adds one to the value under a key. Returns the sum.
    fn add(&mut self, key: u64) -> Option<u64>;
    fn first(&mut self) -> NextKey;
    fn next(&mut self, key: u64) -> NextKey;
    /// Counts all rows with a match specification.
    fn count_all(&mut self) -> u64;
    /// Counts the rows of keys in `(after, up_to]` with the guards of a match specification.
    fn count_between(&mut self, after: u64, up_to: u64) -> u64;
}

/// The result of a step from one key to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    Key(u64),
    End,
    /// The key of the step isn't in the table. Without an order, it has no successor.
    Missing,
}

/// A map that one thread owns.
pub trait Map: Named + Handle + Sized + 'static {
    fn empty() -> Self;
    fn scan(&mut self, each: impl FnMut(u64, u64));
}

/// A map from numbers to byte strings.
pub trait Store {
    fn put(&mut self, key: u64, value: &[u8]);
    /// Appends to a value. A value that would be longer than `most` is replaced by the piece.
    fn append(&mut self, key: u64, piece: &[u8], most: usize);
    /// Appends the value to `out`. Returns whether the key is present.
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
    /// The bytes of a store that counts them.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// A map that threads share.
pub trait Shared: Named + Sync + Sized + 'static {
    type Handle<'a>: Handle
    where
        Self: 'a;
    fn empty() -> Self;
    fn handle(&self) -> Self::Handle<'_>;
}

/// `--only`: accepts names that contain one of the parts, or are equal to one that begins with `=`.
/// Without parts it accepts all names.
#[derive(Clone, Default)]
pub struct Filter(pub Vec<String>);

impl Filter {
    pub fn accepts(&self, name: &str) -> bool {
        let matches = |part: &String| match part.strip_prefix('=') {
            Some(whole) => name == whole,
            None => name.contains(part.as_str()),
        };
        self.0.is_empty() || self.0.iter().any(matches)
    }
}

/// The names of the types that the filter accepts, and what `$item` is for each. `$T` stands for
/// the type.
macro_rules! each {
    ($filter:expr, $T:ident => $item:expr; $($(#[$cfg:meta])? $type:ty),* $(,)?) => {{
        let mut all = Vec::new();
        $($(#[$cfg])? {
            type $T = $type;
            all.push((<$T as $crate::maps::peers::Named>::NAME, $item));
        })*
        all.retain(|(name, _)| $filter.accepts(name));
        all
    }};
}

/// The maps of one thread: `each_map!(filter, M => measure::<M> as fn(&_))`.
macro_rules! each_map {
    ($filter:expr, $M:ident => $item:expr) => {
        $crate::maps::peers::each!($filter, $M => $item;
            $crate::maps::peers::index::Owned<false>, hashbrown::HashMap<u64, u64>,
            $crate::maps::peers::index::Owned<true>, std::collections::BTreeMap<u64, u64>,
            #[cfg(feature = "judy")] $crate::maps::peers::judy::JudyL)
    };
}

/// The maps that threads share.
macro_rules! each_shared {
    ($filter:expr, $S:ident => $item:expr) => {
        $crate::maps::peers::each!($filter, $S => $item;
            $crate::maps::peers::index::SharedIndex<false>,
            #[cfg(feature = "peers")] dashmap::DashMap<u64, u64>,
            #[cfg(feature = "peers")] papaya::HashMap<u64, u64>,
            #[cfg(feature = "peers")] scc::HashIndex<u64, u64>,
            $crate::maps::peers::index::SharedIndex<true>,
            #[cfg(feature = "peers")] scc::TreeIndex<u64, u64>,
            #[cfg(feature = "peers")] crossbeam_skiplist::SkipMap<u64, u64>,
            #[cfg(feature = "peers")] $crate::maps::peers::crates::Concurrent)
    };
}

pub(crate) use {each, each_map, each_shared};

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn a_filter_accepts_parts_and_whole_names() {
        let filter = Filter(vec!["=set".into(), "btree".into()]);
        let names = ["set", "default set", "btree", "btree m=32", "avl"];
        let accepted = names.map(|name| filter.accepts(name));
        assert_eq!(accepted, [true, false, true, true, false]);
        assert!(Filter::default().accepts("avl"));
    }
}
