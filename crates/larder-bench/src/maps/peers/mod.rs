//! The structures that are compared: maps from `u64` to `u64`, and to bytes.
//!
//! Benches are generic over the structures. So the calls of a peer are as direct as in a program
//! that uses only this peer. [`each_map`], [`each_other_map`] and [`each_shared`] go through all
//! that this build has.

mod bytes;
pub mod crates;
#[cfg(feature = "judy")]
pub mod judy;
pub mod larder;

pub use bytes::Store;

/// What one thread does to a structure. All can do the first three; tables of the engine have the
/// others, too. A wrong answer is for the caller to find.
pub trait Hand {
    /// Puts a value under a key that may be there already; whether an old value stays is the peer's
    /// affair, as long as every thread puts the same one.
    fn insert(&mut self, key: u64, value: u64);
    /// The value under the key; in rows {K}, the key.
    fn get(&mut self, key: u64) -> Option<u64>;
    /// Removes the key; whether it was there.
    fn remove(&mut self, key: u64) -> bool;
    /// Adds one to the value; the sum.
    fn add(&mut self, _key: u64) -> Option<u64> {
        unreachable!("{NO_TABLE}")
    }
    /// The first key.
    fn first(&mut self) -> Next {
        unreachable!("{NO_TABLE}")
    }
    /// The key after this one.
    fn next(&mut self, _key: u64) -> Next {
        unreachable!("{NO_TABLE}")
    }
    /// Counts all rows with a match specification.
    fn count_all(&mut self) -> u64 {
        unreachable!("{NO_TABLE}")
    }
    /// Counts the rows of keys after the first and up to the second, with guards of a match
    /// specification.
    fn count_between(&mut self, _after: u64, _up_to: u64) -> u64 {
        unreachable!("{NO_TABLE}")
    }
}

/// A peer's map, to which a study came that needs more than maps have.
const NO_TABLE: &str = "peers' maps take part where rows are inserted, looked up and deleted alone";

/// What comes after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one.
    Key(u64),
    /// None.
    End,
    /// In hash order, nobody knows: the key is not there.
    Gone,
}

/// A structure in the hands of one thread.
pub trait Map: Hand + Sized + 'static {
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
    type Hand<'a>: Hand
    where
        Self: 'a;
    /// An empty one.
    fn empty() -> Self;
    /// A thread's way to it.
    fn hand(&self) -> Self::Hand<'_>;
}

/// Which structures are wanted: those with one of these in their names, or called just so where it
/// begins with `=`; all, if it is empty.
#[derive(Clone)]
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

/// Does some work with each of these structures that is wanted; there `$T` is its type.
macro_rules! of_each {
    ($only:expr, $T:ident: $trait:ident => $work:expr; $($structure:ty),*) => {$({
        type $T = $structure;
        if $only.has(<$T as $crate::maps::peers::$trait>::NAME) {
            $work;
        }
    })*};
}

/// Does some work with each map: `each_map!(only, M => work::<M>())`.
macro_rules! each_map {
    ($only:expr, $M:ident => $work:expr) => {{
        use $crate::maps::peers::larder;
        $crate::maps::peers::of_each!($only, $M: Map => $work;
            larder::Alone<false>, hashbrown::HashMap<u64, u64>,
            larder::Alone<true>, std::collections::BTreeMap<u64, u64>);
        #[cfg(feature = "judy")]
        {
            $crate::maps::peers::of_each!($only, $M: Map => $work; $crate::maps::peers::judy::JudyL);
        }
    }};
}

/// The same with the maps that `make bench-peers` alone measures.
macro_rules! each_other_map {
    ($only:expr, $M:ident => $work:expr) => {{
        $crate::maps::peers::of_each!($only, $M: Map => $work; std::collections::HashMap<u64, u64>);
        #[cfg(feature = "peers")]
        {
            $crate::maps::peers::of_each!($only, $M: Map => $work; $crate::maps::peers::crates::Art);
        }
    }};
}

/// The same with each shared structure.
macro_rules! each_shared {
    ($only:expr, $S:ident => $work:expr) => {{
        use $crate::maps::peers::larder;
        $crate::maps::peers::of_each!($only, $S: Shared => $work; larder::Larder<false>);
        #[cfg(feature = "peers")]
        {
            $crate::maps::peers::of_each!($only, $S: Shared => $work;
                dashmap::DashMap<u64, u64>, papaya::HashMap<u64, u64>,
                scc::HashIndex<u64, u64>);
        }
        $crate::maps::peers::of_each!($only, $S: Shared => $work; larder::Larder<true>);
        #[cfg(feature = "peers")]
        {
            $crate::maps::peers::of_each!($only, $S: Shared => $work;
                scc::TreeIndex<u64, u64>, crossbeam_skiplist::SkipMap<u64, u64>,
                $crate::maps::peers::crates::Concurrent);
        }
    }};
}

pub(crate) use {each_map, each_other_map, each_shared, of_each};

/// The names of the maps that are wanted.
pub fn map_names(only: &Only) -> Vec<&'static str> {
    let mut names = Vec::new();
    each_map!(only, M => names.push(M::NAME));
    names
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
