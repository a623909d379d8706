//! The registry of the structures: the name of each, its order, its options, when to use it, and
//! how it is made.
//!
//! To add a structure, write a file that implements [`crate::Sequential`] or [`crate::Scheme`], and
//! add an entry here. The suites run over all structures that are listed here.

use crate::choices::{BuildError, Choice, Chosen, Range, Value};
use crate::{
    Adaptation, Avl, Btree, CaTree, Chained, Divisible, FixedBuckets, JudyHash, JudyText, LfCaTree,
    LinearHash, ListHash, MultiAdapter, Object, OneLock, Order, RelaxedAvl, Scheme, SkipList,
    SplitOrder, Stripes, UniqueAdapter, ValueList, Word,
};
use larder_index::{Multi, Unique};
use larder_judy::{Counted, Terminated};

/// A data structure that an index can use.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its name.
    pub name: &'static str,
    /// Other names that are accepted for it.
    pub aliases: &'static [&'static str],
    /// Whether it can sort by keys, and so supports `ordered_set`, too. Other structures only sort
    /// by hashes.
    pub ordered: bool,
    /// Its options.
    pub options: &'static [Choice],
    /// A description of one line: its kind, and when to use it.
    pub about: &'static str,
    one: fn(&Chosen) -> Box<dyn Scheme<Object>>,
    many: fn(&Chosen) -> Box<dyn Scheme<ValueList>>,
}

impl Structure {
    /// The table types that it supports.
    pub fn types(&self) -> &'static [&'static str] {
        if self.ordered {
            &["set", "ordered_set", "bag", "duplicate_bag"]
        } else {
            &["set", "bag", "duplicate_bag"]
        }
    }
}

/// An option.
const fn choice(name: &'static str, range: Range, about: &'static str) -> Choice {
    Choice { name, range, about }
}

#[rustfmt::skip]
const READER_GROUPS: Choice = choice("reader_groups", Range::Int(1, 1024, 1), "the number of groups of readers; those of different groups don't share a cache line, and a writer takes one lock per group");

#[rustfmt::skip]
const AVL: &[Choice] = &[
    choice("static_stack", Range::Flag(true), "whether next and prev continue with the stack of the last one"),
    READER_GROUPS,
];

#[rustfmt::skip]
const BTREE: &[Choice] = &[
    choice("m", Range::Int(3, 1024, 4), "the maximum number of children of a node"),
    READER_GROUPS,
];

#[rustfmt::skip]
const LINEAR_HASH: &[Choice] = &[
    choice("chain", Range::Int(1, 1024, 1), "the number of entries per bucket at which the table grows: 6 in 2003, 1 today"),
    choice("locks", Range::IntOrAuto(0, 8192, 0), "the number of locks for parts of the table, rounded down to a power of two: 16 in R11B, 64 later, auto as in OTP 25; 0 is one lock for the whole table"),
    READER_GROUPS,
];

#[rustfmt::skip]
const CATREE: &[Choice] = &[
    choice("over", Range::OneOf(&["avl", "btree", "judysl", "judyesl"]), "the structure of its bases"),
    choice("m", Range::Int(3, 1024, 4), "the maximum number of children of a node, if the bases are B-trees"),
    choice("contended", Range::Int(0, 1_000_000, 250), "added to a base's count by a writer that had to wait"),
    choice("quiet", Range::Int(-1_000_000, 1_000_000, -1), "added by a writer that didn't have to wait"),
    choice("more_than_one", Range::Int(-1_000_000, 0, -10), "added by a scan that continues after the base"),
    choice("high", Range::Int(-1_000_000, 1_000_000, 1_000), "a base is split above this count"),
    choice("low", Range::Int(-1_000_000, 1_000_000, -1_000), "a base is joined with its neighbour below this count"),
    choice("clamp", Range::Int(1, 1_000_000, 20_000), "the maximum of a count; its negative is the minimum"),
    choice("depth", Range::Int(0, 64, 16), "the maximum number of routes on a path"),
    choice("random_join", Range::Flag(true), "whether one of 512 writes, at random, adds -500, too"),
];

#[rustfmt::skip]
const LFCATREE: &[Choice] = &[
    choice("high", Range::Int(-1_000_000, 1_000_000, 1_000), "a leaf is split above this contention count, which is 20000 at most"),
    choice("low", Range::Int(-1_000_000, 1_000_000, -1_000), "a leaf is joined with its neighbour below this count, which is -20000 at least"),
];

#[rustfmt::skip]
const SPLIT_ORDERED: &[Choice] = &[
    choice("load", Range::Int(1, 1024, 2), "the number of entries per bucket at which the number of buckets doubles"),
];

#[rustfmt::skip]
const LOCKFREE_HASH: &[Choice] = &[
    choice("buckets", Range::Int(1, 1 << 24, 1 << 12), "the number of buckets, which never changes, rounded up to a power of two: about as many as there will be keys"),
    choice("chain", Range::Int(1, 1_000_000, 64), "the average number of objects per bucket at which the table is full"),
];

#[rustfmt::skip]
const JUDYL_HASH: &[Choice] = &[
    choice("bits", Range::Int(1, 48, 32), "the number of bits of the hash that are the number of a bucket; only buckets with entries take memory"),
    READER_GROUPS,
];

/// A structure each: its name, which is that of the function that makes it, whether it can sort by
/// keys, its options, and its description.
macro_rules! structures {
    ($($name:ident $(or $alias:literal)?, ordered: $ordered:literal, $options:expr, $about:literal;)*) => {
        &[$(Structure {
            name: stringify!($name),
            aliases: &[$($alias)?],
            ordered: $ordered,
            options: $options,
            about: $about,
            one: $name,
            many: $name,
        }),*]
    };
}

static ALL: &[Structure] = structures! {
    avl, ordered: true, AVL,
        "an AVL tree under one lock, as ordered_set was up to OTP 21: to compare with, or for small tables with one writer";
    btree, ordered: true, BTREE,
        "a B-tree under one lock, as in the study of 2003: for small ordered tables with one writer; try m = 32";
    catree, ordered: true, CATREE,
        "a contention-adapting tree, as ordered_set with write concurrency since OTP 22: for ordered tables with many writers";
    lfcatree, ordered: true, LFCATREE,
        "a contention-adapting tree whose leaves never change: for ordered tables that many read and scan while others write";
    relaxed_avl, ordered: true, &[],
        "Bronson's AVL tree with relaxed balance: lookups take no lock, batches of scans are atomic; for ordered tables in cache that many read and write and few scan";
    skiplist, ordered: true, &[],
        "a lazy skip list, as in the study of 2013: lookups take no lock; for ordered tables in cache that many read and some write";
    linear_hash, ordered: false, LINEAR_HASH,
        "linear hashing as in set and bag of OTP, with one lock or many: to compare with, at any of its releases' settings";
    split_ordered, ordered: false, SPLIT_ORDERED,
        "one lock-free list in split order, which grows: for tables in cache that many threads read and write";
    lockfree_hash, ordered: false, LOCKFREE_HASH,
        "Michael's lock-free buckets, whose number never changes: for tables whose size is known";
    judyl_hash or "judyeh", ordered: false, JUDYL_HASH,
        "2^32 hash buckets in a JudyL array under one lock, as judyeh in the study of 2003: for large tables with one writer that never resize";
    judysl, ordered: true, &[READER_GROUPS],
        "a Judy array over zero-terminated strings under one lock, ordered: for many keys without zero bytes that begin alike";
    judyesl, ordered: true, &[READER_GROUPS],
        "a Judy array over strings of any bytes under one lock, ordered: for many keys that begin alike, numbers and tuples among them";
    chained, ordered: false, &[READER_GROUPS],
        "hashbrown under one lock: for one writer and tables that are looked up and seldom traversed";
};

fn avl<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    // A structure for one thread, under one lock.
    let tree = Avl::<W>::new(chosen.flag("static_stack"));
    Box::new(OneLock::new(tree, chosen.size("reader_groups")))
}

fn btree<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let tree = Btree::<W>::new(chosen.size("m"));
    Box::new(OneLock::new(tree, chosen.size("reader_groups")))
}

fn catree<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let number = |option| chosen.number(option).unwrap_or_default();
    let adaptation = Adaptation {
        contended: number("contended"),
        quiet: number("quiet"),
        more_than_one: number("more_than_one"),
        high: number("high"),
        low: number("low"),
        clamp: number("clamp"),
        depth: chosen.size("depth"),
        random_join: chosen.flag("random_join"),
    };
    // The sequential structure below the bases.
    match chosen.name("over") {
        "btree" => over(Btree::<W>::new(chosen.size("m")), adaptation),
        "judysl" => over(JudyText::<Terminated, W>::new(), adaptation),
        "judyesl" => over(JudyText::<Counted, W>::new(), adaptation),
        // A stack of the last walk is of use where one lock keeps the tree as it is; bases come and
        // go.
        _ => over(Avl::<W>::new(false), adaptation),
    }
}

fn over<W: Word, S: Divisible<W> + 'static>(
    structure: S,
    adaptation: Adaptation,
) -> Box<dyn Scheme<W>> {
    Box::new(CaTree::new(structure, adaptation))
}

fn skiplist<W: Word>(_chosen: &Chosen) -> Box<dyn Scheme<W>> {
    Box::new(SkipList::<W>::new())
}

fn relaxed_avl<W: Word>(_chosen: &Chosen) -> Box<dyn Scheme<W>> {
    Box::new(RelaxedAvl::<W>::new())
}

fn split_ordered<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    Box::new(ListHash::new(SplitOrder::<W>::new(chosen.size("load"))))
}

fn lockfree_hash<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    // The bucket is the top bits of a hash, so their number is a power of two.
    let bits = chosen.size("buckets").next_power_of_two().ilog2();
    Box::new(ListHash::new(FixedBuckets::<W>::new(
        bits,
        chosen.size("chain"),
    )))
}

fn lfcatree<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    // All options have a value: those that were not given have their default.
    let number = |option| chosen.number(option).unwrap_or_default();
    Box::new(LfCaTree::<W>::new(number("high"), number("low")))
}

fn linear_hash<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let (chain, groups) = (chosen.size("chain"), chosen.size("reader_groups"));
    // 0 is one lock around the whole table. A number is that of the stripes, each a table under its
    // own lock. With `auto`, the number adapts.
    match chosen.number("locks") {
        Some(0) => Box::new(OneLock::new(LinearHash::<W>::new(chain, 0), groups)),
        Some(n) => Box::new(Stripes::<W>::new(Some(n.ilog2()), chain, groups)),
        None => Box::new(Stripes::<W>::new(None, chain, groups)),
    }
}

fn chained<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let table = Chained::<W>::new();
    Box::new(OneLock::new(table, chosen.size("reader_groups")))
}

fn judyl_hash<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let table = JudyHash::<W>::new(chosen.size("bits") as u32);
    Box::new(OneLock::new(table, chosen.size("reader_groups")))
}

fn judysl<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let array = JudyText::<Terminated, W>::new();
    Box::new(OneLock::new(array, chosen.size("reader_groups")))
}

fn judyesl<W: Word>(chosen: &Chosen) -> Box<dyn Scheme<W>> {
    let array = JudyText::<Counted, W>::new();
    Box::new(OneLock::new(array, chosen.size("reader_groups")))
}

/// All structures.
pub fn structures() -> &'static [Structure] {
    ALL
}

fn names(of: impl Fn(&Structure) -> bool) -> String {
    let names = ALL.iter().filter(|s| of(s)).map(|s| s.name);
    names.collect::<Vec<_>>().join(", ")
}

/// The structure of this name, or of this other name.
pub fn named(name: &str) -> Option<&'static Structure> {
    ALL.iter()
        .find(|s| s.name == name || s.aliases.contains(&name))
}

fn find(name: &str) -> Result<&'static Structure, BuildError> {
    named(name).ok_or_else(|| BuildError::Unknown {
        name: name.to_owned(),
        there: names(|_| true),
    })
}

/// Whether an index can be made so: of this structure, with these options, in this order of keys.
///
/// # Errors
/// As [`build_unique`].
pub fn check(name: &str, options: &[(String, Value)], order: Order) -> Result<(), BuildError> {
    prepare(name, options, order).map(drop)
}

fn prepare(
    name: &str,
    options: &[(String, Value)],
    order: Order,
) -> Result<(&'static Structure, Chosen), BuildError> {
    // Check the name first, and then the options, so that an error is about what was wrong first.
    let structure = find(name)?;
    let chosen = Chosen::new(name, structure.options, options)?;
    // A structure without order can't serve a table that is sorted by keys.
    if order == Order::Key && !structure.ordered {
        return Err(BuildError::Order {
            name: name.to_owned(),
            there: names(|s| s.ordered),
        });
    }
    Ok((structure, chosen))
}

/// An empty index with at most one value under a key, in the given order.
///
/// # Errors
/// There is no such structure; it has no such option, or the option no such value; it has no order
/// of keys. The text says what there is.
pub fn build_unique(
    name: &str,
    options: &[(String, Value)],
    order: Order,
) -> Result<Box<dyn Unique>, BuildError> {
    let (structure, chosen) = prepare(name, options, order)?;
    Ok(Box::new(UniqueAdapter::new(
        (structure.one)(&chosen),
        order,
    )))
}

/// An empty index with any number of values under a key.
///
/// # Errors
/// As [`build_unique`].
pub fn build_multi(name: &str, options: &[(String, Value)]) -> Result<Box<dyn Multi>, BuildError> {
    let (structure, chosen) = prepare(name, options, Order::Hash)?;
    Ok(Box::new(MultiAdapter::new((structure.many)(&chosen))))
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    fn said(option: &str, value: Value) -> [(String, Value); 1] {
        [(option.to_owned(), value)]
    }

    #[test]
    fn errors_are_described() {
        let error = check("alv", &[], Order::Key).unwrap_err().to_string();
        assert!(error.contains("'alv'") && error.contains("avl"), "{error}");
        let error = check("avl", &said("stack", Value::Int(1)), Order::Key).unwrap_err();
        assert!(error.to_string().contains("static_stack"), "{error}");
        let error = check("avl", &said("reader_groups", Value::Int(0)), Order::Key).unwrap_err();
        assert!(error.to_string().contains("from 1 to 1024"), "{error}");
    }

    #[test]
    fn other_names_lead_to_structures_of_one() {
        assert_eq!(named("judyeh").unwrap().name, "judyl_hash");
        for structure in structures() {
            let all = structure.aliases.iter().chain([&structure.name]);
            for name in all {
                let found = structures()
                    .iter()
                    .filter(|s| s.name == *name || s.aliases.contains(name));
                assert_eq!(found.count(), 1, "{name}");
                assert_eq!(named(name).unwrap().name, structure.name);
            }
        }
    }

    #[test]
    fn every_structure_is_made_with_its_defaults() {
        for structure in structures() {
            for order in [Order::Hash, Order::Key] {
                let made = build_unique(structure.name, &[], order);
                assert_eq!(made.is_ok(), structure.ordered || order == Order::Hash);
                assert!(
                    made.is_ok_and(|i| i.is_empty() && i.is_ordered() == (order == Order::Key))
                        || !structure.ordered
                );
            }
            assert!(build_multi(structure.name, &[]).is_ok_and(|i| i.is_empty()));
            for choice in structure.options {
                assert!(
                    choice.range.takes(&choice.range.default()),
                    "{}",
                    choice.name
                );
            }
        }
    }
}
