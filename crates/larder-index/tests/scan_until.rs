//! A scan of an ordered index that knows where its range ends: it gives all entries up to there
//! and, in the default structure, none beyond.

use larder_index::{pin, unique_with, Batch, Direction, LeafConfig, Start, Unique, UniqueKind};
use larder_testing::{key, put, Hashes};
use proptest::prelude::*;
use std::ops::Bound;

/// Few different keys of different lengths, so that bounds meet them, and lie between them.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4u8, 0..6).prop_map(|mut key| {
        // No key is the beginning of another.
        key.push(9);
        key
    })
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        any_key().prop_map(Bound::Included),
        any_key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

/// All keys that a scan gives, batch by batch.
fn scan(
    index: &dyn Unique,
    from: Option<&[u8]>,
    until: &Bound<Vec<u8>>,
    direction: Direction,
    want: usize,
) -> Vec<Vec<u8>> {
    let guard = pin();
    let mut batch = Batch::default().with_until(until.clone()).with_want(want);
    let (mut keys, mut resume) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let start = match (&resume, from, direction) {
            (Some(at), _, Direction::Forward) => Start::At(at),
            (Some(at), _, Direction::Backward) => Start::Past(at),
            (None, Some(key), _) => Start::Past(key),
            (None, None, _) => Start::Edge,
        };
        index.scan(&guard, start, direction, &mut batch);
        keys.extend((0..batch.len()).map(|i| batch.key(i).to_vec()));
        if batch.done {
            return keys;
        }
        assert!(
            !batch.is_empty(),
            "a batch that is not the last has an entry"
        );
        resume = Some(std::mem::take(&mut batch.resume));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_beyond_the_bound_is_given_and_all_before_it(
        keys in prop::collection::btree_set(any_key(), 0..300),
        from in prop::option::of(any_key()),
        until in any_bound(),
        want in 0..5usize,
        backward: bool,
    ) {
        let index = unique_with(UniqueKind::Ordered, LeafConfig::tiny());
        for bytes in &keys {
            put(&*index, key(bytes, Hashes::Good), b"value");
        }
        let direction = if backward { Direction::Backward } else { Direction::Forward };
        let is_wanted = |key: &&Vec<u8>| {
            let begun = from.as_ref().is_none_or(|from| if backward { *key < from } else { *key > from });
            begun && match &until {
                Bound::Included(end) if backward => *key >= end,
                Bound::Excluded(end) if backward => *key > end,
                Bound::Included(end) => *key <= end,
                Bound::Excluded(end) => *key < end,
                Bound::Unbounded => true,
            }
        };
        let mut wanted: Vec<Vec<u8>> = keys.iter().filter(is_wanted).cloned().collect();
        if backward {
            wanted.reverse();
        }
        let found = scan(&*index, from.as_deref(), &until, direction, want);
        prop_assert_eq!(found, wanted);
    }
}
