//! The string arrays against a naive oracle: one suite, stamped on both.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{JudyESL, JudySL, TextStats, ZeroByte};

type Near = [Option<(Vec<u8>, u64)>; 4];

trait Strings {
    fn new() -> Self;
    fn put(&mut self, key: &[u8], value: u64) -> Option<u64>;
    fn take(&mut self, key: &[u8]) -> Option<u64>;
    fn value(&self, key: &[u8]) -> Option<u64>;
    fn change(&mut self, key: &[u8]) -> Option<u64>;
    fn near(&self, key: &[u8]) -> Near;
    fn ends(&self) -> [Option<(Vec<u8>, u64)>; 2];
    fn all(&self) -> Vec<(Vec<u8>, u64)>;
    fn len(&self) -> u64;
    /// Strings from the first key on and before the second, and the string that has so many before
    /// it.
    fn ranks(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> u64;
    fn at(&self, n: u64) -> Option<(Vec<u8>, u64)>;
    fn check(&self);
    fn stats(&self) -> TextStats;
    fn memory(&self) -> usize;
    fn clear_later(&mut self);
    fn free_some(&mut self, limit: usize) -> bool;
    /// The array's kind of key made of any bytes.
    fn key(bytes: Vec<u8>) -> Vec<u8>;
}

macro_rules! strings {
    ($array:ty, $put:expr, $key:expr) => {
        impl Strings for $array {
            fn new() -> Self {
                <$array>::new()
            }
            fn put(&mut self, key: &[u8], value: u64) -> Option<u64> {
                $put(self, key, value)
            }
            fn take(&mut self, key: &[u8]) -> Option<u64> {
                self.remove(key)
            }
            fn value(&self, key: &[u8]) -> Option<u64> {
                self.get(key)
            }
            fn change(&mut self, key: &[u8]) -> Option<u64> {
                let value = self.get_mut(key)?;
                *value = value.wrapping_add(1);
                Some(*value)
            }
            fn near(&self, key: &[u8]) -> Near {
                [
                    Self::at_or_after,
                    Self::after,
                    Self::at_or_before,
                    Self::before,
                ]
                .map(|ask| {
                    let mut found = key.to_vec();
                    let value = ask(self, &mut found);
                    assert!(
                        value.is_some() || found == key,
                        "without an answer the key stays"
                    );
                    value.map(|value| (found, value))
                })
            }
            fn ends(&self) -> [Option<(Vec<u8>, u64)>; 2] {
                [Self::first, Self::last].map(|ask| {
                    let mut found = b"before".to_vec();
                    let value = ask(self, &mut found);
                    value.map(|value| (found, value))
                })
            }
            fn all(&self) -> Vec<(Vec<u8>, u64)> {
                self.iter().collect()
            }
            fn len(&self) -> u64 {
                self.len()
            }
            fn ranks(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> u64 {
                self.count((from, to))
            }
            fn at(&self, n: u64) -> Option<(Vec<u8>, u64)> {
                let mut key = b"before".to_vec();
                let value = self.nth(n, &mut key);
                assert!(value.is_some() || key == b"before");
                value.map(|value| (key, value))
            }
            fn check(&self) {
                self.check()
            }
            fn stats(&self) -> TextStats {
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
            fn key(bytes: Vec<u8>) -> Vec<u8> {
                $key(bytes)
            }
        }
    };
}

strings!(
    JudySL,
    |array: &mut JudySL, key, value| array.insert(key, value).expect("no zero byte"),
    |bytes: Vec<u8>| bytes.into_iter().map(|byte| byte.max(1)).collect()
);
strings!(
    JudyESL,
    |array: &mut JudyESL, key, value| array.insert(key, value),
    |bytes| bytes
);

struct CheckedStringArray<A> {
    array: A,
    oracle: BTreeMap<Vec<u8>, u64>,
}

impl<A: Strings> CheckedStringArray<A> {
    fn new() -> Self {
        CheckedStringArray {
            array: A::new(),
            oracle: BTreeMap::new(),
        }
    }

    fn put(&mut self, key: &[u8], value: u64) {
        assert_eq!(
            self.array.put(key, value),
            self.oracle.insert(key.to_vec(), value),
            "insert {key:?}"
        );
    }

    fn take(&mut self, key: &[u8]) {
        assert_eq!(
            self.array.take(key),
            self.oracle.remove(key),
            "remove {key:?}"
        );
    }

    fn ask(&mut self, key: &[u8]) {
        let oracle = &mut self.oracle;
        if let Some(value) = oracle.get_mut(key) {
            *value = value.wrapping_add(1);
        }
        assert_eq!(self.array.change(key), oracle.get(key).copied());
        assert_eq!(self.array.value(key), oracle.get(key).copied());
        let cloned = |(key, value): (&Vec<u8>, &u64)| (key.clone(), *value);
        let near = [
            oracle.range(key.to_vec()..).next().map(cloned),
            oracle
                .range::<[u8], _>((Excluded(key), Unbounded))
                .next()
                .map(cloned),
            oracle.range(..=key.to_vec()).next_back().map(cloned),
            oracle.range(..key.to_vec()).next_back().map(cloned),
        ];
        assert_eq!(self.array.near(key), near, "near {key:?}");
        let below = oracle.range(..key.to_vec()).count() as u64;
        let there = oracle.contains_key(key) as u64;
        let array = &self.array;
        assert_eq!(array.ranks(Unbounded, Excluded(key)), below, "{key:?}");
        assert_eq!(array.ranks(Unbounded, Included(key)), below + there);
        let rest = oracle.len() as u64 - below;
        assert_eq!(array.ranks(Included(key), Unbounded), rest);
        assert_eq!(array.ranks(Excluded(key), Unbounded), rest - there);
        let half = &key[..key.len() / 2];
        let between = oracle.range(half.to_vec()..key.to_vec()).count() as u64;
        assert_eq!(array.ranks(Included(half), Excluded(key)), between);
        assert_eq!(array.ranks(Excluded(key), Included(half)), 0);
    }

    fn compare(&self) {
        self.array.check();
        assert_eq!(self.array.len(), self.oracle.len() as u64);
        let all: Vec<_> = self
            .oracle
            .iter()
            .map(|(key, value)| (key.clone(), *value))
            .collect();
        assert_eq!(self.array.all(), all);
        for n in [0, 1, all.len() / 2, all.len().saturating_sub(1), all.len()] {
            assert_eq!(self.array.at(n as u64), all.get(n).cloned());
        }
        assert_eq!(
            self.array.ends(),
            [all.first().cloned(), all.last().cloned()]
        );
    }
}

/// Few different bytes, so that strings share much; lengths around the words' ends; some long ones.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => vec(0..3u8, 0..20),
        2 => vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..18),
        1 => vec(any::<u8>(), 0..12),
        1 => (0..3u8, 5..9usize).prop_map(|(byte, n)| vec![byte; n]),
    ];
    prop_oneof![
        6 => part.clone(),
        3 => (0..40usize, part.clone()).prop_map(|(n, part)| [vec![7; n], part].concat()),
        1 => (240..300usize, part).prop_map(|(n, part)| [vec![7; n], part].concat()),
    ]
}

#[derive(Clone, Debug)]
enum StringOperation {
    Put(Vec<u8>, u64),
    Take(Vec<u8>),
    Ask(Vec<u8>),
}

fn step() -> impl Strategy<Value = StringOperation> {
    prop_oneof![
        5 => (key(), any::<u64>()).prop_map(|(key, value)| StringOperation::Put(key, value)),
        2 => key().prop_map(StringOperation::Take),
        2 => key().prop_map(StringOperation::Ask),
    ]
}

fn play<A: Strings>(steps: &[StringOperation], beside: &mut CheckedStringArray<A>) {
    for step in steps {
        match step.clone() {
            StringOperation::Put(key, value) => beside.put(&A::key(key), value),
            StringOperation::Take(key) => beside.take(&A::key(key)),
            StringOperation::Ask(key) => beside.ask(&A::key(key)),
        }
    }
}

fn behaves<A: Strings>(steps: &[StringOperation], salt: u64) {
    let mut beside = CheckedStringArray::<A>::new();
    play(steps, &mut beside);
    beside.compare();
    let mut keys: Vec<_> = beside.oracle.keys().cloned().collect();
    for key in &keys {
        beside.ask(key);
        beside.ask(&key[..key.len() / 2]);
        beside.ask(&[key, &[1][..]].concat());
    }
    keys.sort_by_key(|key| {
        key.iter().fold(salt, |hash, &byte| {
            (hash ^ byte as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    });
    for (at, key) in keys.iter().enumerate() {
        beside.take(key);
        if at % 17 == 0 {
            beside.compare();
        }
    }
    assert_eq!(beside.array.memory(), 0, "an empty array takes no memory");
}

fn frees<A: Strings>(steps: &[StringOperation], limit: usize) {
    let mut beside = CheckedStringArray::<A>::new();
    play(steps, &mut beside);
    beside.array.clear_later();
    beside.oracle.clear();
    play(&steps[..steps.len() / 2], &mut beside);
    beside.compare();
    while beside.array.free_some(limit) {}
    beside.compare();
    beside.array.clear_later();
    while beside.array.free_some(limit) {}
    assert_eq!(beside.array.memory(), 0);
}

const CASES: u32 = if cfg!(miri) { 3 } else { 300 };
const STEPS: usize = if cfg!(miri) { 14 } else { 120 };

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    }
}

/// Arrays come where strings share a word, and go where one is alone again.
fn splits_and_folds<A: Strings>() {
    let mut beside = CheckedStringArray::<A>::new();
    let long = vec![b'x'; 4000];
    let with = |end: &str| [&long, end.as_bytes()].concat();
    beside.put(&with("one"), 1);
    let alone = (beside.array.memory(), beside.array.stats());
    assert_eq!((alone.1.arrays, alone.1.short_cuts), (1, 1));
    beside.put(&with("two"), 2);
    beside.compare();
    assert!(beside.array.stats().arrays > 400 && beside.array.stats().short_cuts <= 2);
    beside.put(&long[..100], 3);
    beside.ask(&long);
    beside.take(&with("two"));
    beside.compare();
    assert_eq!(
        beside.array.stats().short_cuts,
        1,
        "the lone rest is in a short-cut leaf again"
    );
    beside.take(&long[..100]);
    assert_eq!((beside.array.memory(), beside.array.stats()), alone);
    beside.take(&with("one"));
    assert_eq!(beside.array.memory(), 0);
}

macro_rules! stamp {
    ($($name:ident: $array:ty),*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn behaves_as_the_oracle(steps in vec(step(), 1..STEPS), salt in any::<u64>()) {
                    behaves::<$array>(&steps, salt);
                }

                #[test]
                fn frees_in_slices(steps in vec(step(), 1..STEPS), limit in 1..50usize) {
                    frees::<$array>(&steps, limit);
                }
            }

            #[test]
            fn arrays_come_and_go() {
                splits_and_folds::<$array>();
            }

            #[test]
            fn many_strings() {
                let mut beside = CheckedStringArray::<$array>::new();
                let count = if cfg!(miri) { 60 } else { 20_000u64 };
                let key = |at: u64| format!("{}/{}", at % 97, at.wrapping_mul(0x9e37_79b9)).into_bytes();
                (0..count).for_each(|at| beside.put(&key(at), at));
                beside.compare();
                (0..count).step_by(3).for_each(|at| beside.take(&key(at)));
                beside.compare();
                (0..count).for_each(|at| beside.take(&key(at)));
                assert_eq!(beside.array.memory(), 0);
            }

            /// Each in a moment, however many words the strings share.
            #[test]
            fn long_strings_by_their_number() {
                let length = if cfg!(miri) { 200 } else { 1_000_000 };
                let strings = [&b"b"[..], b"c", b"cc"].map(|end| [&vec![b'a'; length][..], end].concat());
                let mut array = <$array as Strings>::new();
                for (at, string) in strings.iter().enumerate() {
                    array.put(string, at as u64);
                }
                for (at, string) in strings.iter().enumerate() {
                    assert!(array.at(at as u64) == Some((string.clone(), at as u64)));
                    assert!(array.ranks(Unbounded, Excluded(string)) == at as u64);
                }
                assert!(array.at(3).is_none());
            }
        }
    )*};
}

stamp!(judysl: JudySL, judyesl: JudyESL);

#[test]
fn a_zero_byte_is_an_error_and_has_a_place_in_the_order() {
    let mut array = JudySL::new();
    assert_eq!(array.insert(b"twelve bytes\0", 1), Err(ZeroByte { at: 12 }));
    assert_eq!(array.insert(b"ab", 1), Ok(None));
    assert_eq!(array.insert(b"ac", 2), Ok(None));
    assert_eq!(
        (
            array.get(b"ab\0"),
            array.remove(b"ab\0"),
            array.get_mut(b"ab\0")
        ),
        (None, None, None)
    );
    let near = array
        .near(b"ab\0z")
        .map(|found| found.map(|(_, value)| value));
    assert_eq!(near, [Some(2), Some(2), Some(1), Some(1)]);
    assert_eq!(array.near(b"ac\0")[0], None);
}

/// Keys that differ from those that are there by zero bytes, anywhere in or after them, are not
/// found: lookups and removals look at no byte before they come to it.
#[test]
fn keys_with_zero_bytes_are_never_there() {
    let text = b"seventeen letters and some more of them";
    let mut array = JudySL::new();
    for n in 0..text.len() {
        array.insert(&text[..n], n as u64).expect("no zero byte");
    }
    let before = array.len();
    for n in 0..text.len() {
        for zeros in 1..12 {
            for at in 0..=n {
                let key = [&text[..at], &[0; 12][..zeros], &text[at..n]].concat();
                assert_eq!(array.get(&key), None);
                assert_eq!((array.remove(&key), array.get_mut(&key)), (None, None));
            }
            let mut key = text[..n].to_vec();
            key[n.saturating_sub(zeros)..].fill(0);
            assert_eq!(array.get(&key), (n == 0).then_some(0));
        }
    }
    assert_eq!(array.len(), before);
    array.check();
    (0..text.len()).for_each(|n| assert_eq!(array.remove(&text[..n]), Some(n as u64)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Keys with zero bytes have the neighbours that their bytes say.
    #[test]
    fn keys_with_zero_bytes_have_their_place(strings in vec(key(), 0..60), asked in vec(key(), 1..40)) {
        let (mut array, mut oracle) = (JudySL::new(), BTreeMap::new());
        for (n, bytes) in strings.iter().enumerate() {
            let string = <JudySL as Strings>::key(bytes.clone());
            array.insert(&string, n as u64).expect("no zero byte");
            oracle.insert(string, n as u64);
        }
        let cloned = |(key, value): (&Vec<u8>, &u64)| (key.clone(), *value);
        for asked in asked.iter().chain(&strings) {
            let near = [
                oracle.range(asked.clone()..).next().map(cloned),
                oracle.range::<[u8], _>((Excluded(&asked[..]), Unbounded)).next().map(cloned),
                oracle.range(..=asked.clone()).next_back().map(cloned),
                oracle.range(..asked.clone()).next_back().map(cloned),
            ];
            prop_assert_eq!(array.near(asked), near, "near {:?}", asked);
            prop_assert_eq!(array.get(asked), oracle.get(asked).copied());
            let below = oracle.range(..asked.clone()).count() as u64;
            prop_assert_eq!(array.ranks(Unbounded, Excluded(asked)), below);
        }
    }
}
