//! The clock at its end. A process of its own: the clock can't be moved back.

use larder::advance_clock;
use larder::api::Larder;
use larder_term::term;
use std::time::Duration;

#[test]
fn the_clock_never_goes_back() {
    let t = Larder::new()
        .table("t")
        .ttl(Duration::from_secs(1))
        .create()
        .unwrap();
    for _ in 0..3 {
        t.insert(&term!({1, 2})).unwrap();
        assert_eq!(t.len(), 1);
        advance_clock(u64::MAX);
    }
    t.insert(&term!({1, 2})).unwrap();
    assert_eq!(t.lookup(&term!(1)).unwrap().len(), 1);
}
