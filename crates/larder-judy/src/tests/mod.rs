//! The word arrays against a naive oracle, with the invariants checked.

mod forms;
mod suite;
mod text;

use std::collections::BTreeMap;

use crate::{Judy1, JudyL};

/// What both word arrays can do, so that one suite serves both. A set's values are zeros.
pub(crate) trait Words {
    fn new() -> Self;
    fn put(&mut self, key: u64, value: u64) -> bool;
    fn take(&mut self, key: u64) -> Option<u64>;
    fn value(&self, key: u64) -> Option<u64>;
    fn near(&self, key: u64) -> [Option<(u64, u64)>; 4];
    fn gaps(&self, key: u64) -> [Option<u64>; 4];
    fn count(&self, from: u64, to: u64) -> u64;
    fn nth(&self, n: u64) -> Option<(u64, u64)>;
    fn up(&self, from: u64) -> Vec<(u64, u64)>;
    fn down(&self, from: u64) -> Vec<(u64, u64)>;
    fn len(&self) -> u64;
    fn check(&self);
    fn stats(&self) -> crate::Stats;
    fn memory(&self) -> usize;
    fn clear_later(&mut self);
    fn free_some(&mut self, limit: usize) -> bool;
    const VALUES: bool;
}

macro_rules! words {
    ($array:ty, $values:literal, $put:expr, $take:expr, $value:expr, $pair:expr) => {
        impl Words for $array {
            fn new() -> Self {
                <$array>::new()
            }
            fn put(&mut self, key: u64, value: u64) -> bool {
                $put(self, key, value)
            }
            fn take(&mut self, key: u64) -> Option<u64> {
                $take(self, key)
            }
            fn value(&self, key: u64) -> Option<u64> {
                $value(self, key)
            }
            fn near(&self, key: u64) -> [Option<(u64, u64)>; 4] {
                [
                    self.at_or_after(key),
                    self.after(key),
                    self.at_or_before(key),
                    self.before(key),
                ]
                .map(|x| x.map($pair))
            }
            fn gaps(&self, key: u64) -> [Option<u64>; 4] {
                let down = [self.empty_at_or_before(key), self.empty_before(key)];
                [
                    self.empty_at_or_after(key),
                    self.empty_after(key),
                    down[0],
                    down[1],
                ]
            }
            fn count(&self, from: u64, to: u64) -> u64 {
                self.count(from..=to)
            }
            fn nth(&self, n: u64) -> Option<(u64, u64)> {
                self.nth(n).map($pair)
            }
            fn up(&self, from: u64) -> Vec<(u64, u64)> {
                self.iter_from(from).map($pair).collect()
            }
            fn down(&self, from: u64) -> Vec<(u64, u64)> {
                self.iter_down_from(from).map($pair).collect()
            }
            fn len(&self) -> u64 {
                self.len()
            }
            fn check(&self) {
                self.check()
            }
            fn stats(&self) -> crate::Stats {
                self.stats()
            }
            fn memory(&self) -> usize {
                self.memory_used()
            }
            fn clear_later(&mut self) {
                self.clear_later()
            }
            fn free_some(&mut self, limit: usize) -> bool {
                self.free_some(limit)
            }
            const VALUES: bool = $values;
        }
    };
}

words!(
    JudyL,
    true,
    |a: &mut JudyL, k, v| a.insert(k, v).is_none(),
    |a: &mut JudyL, k| a.remove(k),
    |a: &JudyL, k| a.get(k),
    |pair| pair
);
words!(
    Judy1,
    false,
    |a: &mut Judy1, k, _| a.insert(k),
    |a: &mut Judy1, k| a.remove(k).then_some(0),
    |a: &Judy1, k| a.contains(k).then_some(0),
    |key| (key, 0)
);

/// An array beside its oracle.
pub(crate) struct CheckedArray<A> {
    pub(crate) array: A,
    pub(crate) oracle: BTreeMap<u64, u64>,
}

impl<A: Words> CheckedArray<A> {
    pub(crate) fn new() -> Self {
        CheckedArray {
            array: A::new(),
            oracle: BTreeMap::new(),
        }
    }

    pub(crate) fn put(&mut self, key: u64, value: u64) {
        let value = if A::VALUES { value } else { 0 };
        assert_eq!(
            self.array.put(key, value),
            self.oracle.insert(key, value).is_none(),
            "insert {key:#x}"
        );
    }

    pub(crate) fn take(&mut self, key: u64) {
        assert_eq!(
            self.array.take(key),
            self.oracle.remove(&key),
            "remove {key:#x}"
        );
    }

    /// Everything that can be asked about one index.
    pub(crate) fn ask(&self, key: u64) {
        let (array, oracle) = (&self.array, &self.oracle);
        let copied = |(key, value): (&u64, &u64)| (*key, *value);
        assert_eq!(array.value(key), oracle.get(&key).copied(), "get {key:#x}");
        let beyond = key
            .checked_add(1)
            .and_then(|key| oracle.range(key..).next())
            .map(copied);
        let near = [
            oracle.range(key..).next().map(copied),
            beyond,
            oracle.range(..=key).next_back().map(copied),
            oracle.range(..key).next_back().map(copied),
        ];
        assert_eq!(array.near(key), near, "near {key:#x}");
        let up = |from: Option<u64>| {
            let mut at = from?;
            while oracle.contains_key(&at) {
                at = at.checked_add(1)?;
            }
            Some(at)
        };
        let down = |from: Option<u64>| {
            let mut at = from?;
            while oracle.contains_key(&at) {
                at = at.checked_sub(1)?;
            }
            Some(at)
        };
        let gaps = [
            up(Some(key)),
            up(key.checked_add(1)),
            down(Some(key)),
            down(key.checked_sub(1)),
        ];
        assert_eq!(array.gaps(key), gaps, "gaps {key:#x}");
        let below = oracle.range(..key).count();
        assert_eq!(
            array.count(0, key),
            (below + oracle.contains_key(&key) as usize) as u64,
            "count to {key:#x}"
        );
        assert_eq!(
            array.count(key, u64::MAX),
            (oracle.len() - below) as u64,
            "count from {key:#x}"
        );
        assert_eq!(array.nth(below as u64), near[0], "nth {below}");
    }

    /// The whole array, both ways, and its invariants.
    pub(crate) fn compare(&self) {
        self.array.check();
        assert_eq!(self.array.len(), self.oracle.len() as u64);
        let mut all: Vec<_> = self
            .oracle
            .iter()
            .map(|(key, value)| (*key, *value))
            .collect();
        assert_eq!(self.array.up(0), all);
        all.reverse();
        assert_eq!(self.array.down(u64::MAX), all);
    }
}
