//! A large structure is emptied bit by bit, in time that is in proportion to it.

use larder_index::pin;
use larder_studies::{build_unique, Order, Value};
use larder_testing::{key, put, Hashes};
use std::time::{Duration, Instant};

#[test]
fn many_empty_buckets_are_passed_once() {
    const ENTRIES: u64 = 100_000;
    let most = [("buckets".to_owned(), Value::Int(1 << 22))];
    for (name, options) in [("lockfree_hash", &most[..]), ("split_ordered", &[])] {
        let index = build_unique(name, options, Order::Hash).expect("a structure that is listed");
        for n in 0..ENTRIES {
            put(&*index, key(&n.to_be_bytes(), Hashes::Good), &[0; 8]);
        }
        let (start, mut freed) = (Instant::now(), 0);
        while !index.free_some(&pin(), 64, &mut |_| freed += 1) {}
        assert_eq!(freed, ENTRIES, "{name}");
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{name}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn a_tree_of_many_bases_is_passed_once() {
    const ENTRIES: u64 = 30_000;
    // Each write divides its base, up to the depth, and none joins two.
    let most = ["high", "low"].map(|name| (name.to_owned(), Value::Int(-1_000_000)));
    let index = build_unique("catree", &most, Order::Key).expect("a structure that is listed");
    for n in 0..ENTRIES {
        let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        put(&*index, key(&scattered, Hashes::Good), &[0; 8]);
    }
    assert!(index.stats().leaves > 10_000);
    let (start, mut freed, mut memory) = (Instant::now(), 0, index.memory());
    while !index.free_some(&pin(), 64, &mut |_| freed += 1) {
        let now = index.memory();
        assert!(now < memory);
        memory = now;
    }
    assert_eq!(freed, ENTRIES);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}
