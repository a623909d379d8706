//! What the validation of a transaction costs.

use larder::api::Larder;
use larder_term::term;
use std::time::{Duration, Instant};

/// A transaction that has scanned a table many times is validated as fast as one that has scanned
/// it once, also beside a snapshot for which all rows have versions.
#[test]
fn what_was_scanned_again_is_validated_once() {
    const ROWS: i64 = 20_000;
    let larder = Larder::new();
    for builder in [
        larder.table("t").set(),
        larder.table("t").ordered_set(),
        larder.table("t").bag(),
    ] {
        let t = builder.create().unwrap();
        (0..ROWS).for_each(|k| t.insert(&term!({(k), 1})).unwrap());
        let _old = t.snapshot().unwrap();
        (0..ROWS).for_each(|k| t.insert(&term!({(k), 2})).unwrap());
        let commit = |scans: u32| {
            let mut transaction = larder.begin(&[&t]).unwrap();
            let view = &transaction.views()[0];
            for _ in 0..scans {
                assert!(view.len() >= ROWS as usize);
            }
            view.insert(&term!({0, 3})).unwrap();
            let begun = Instant::now();
            assert!(transaction.commit().unwrap());
            begun.elapsed()
        };
        let least = |scans| (0..4).map(|_| commit(scans)).min().unwrap();
        let (one, many) = (least(1), least(40));
        // Forty passes take some hundred milliseconds.
        assert!(
            many < 8 * one + Duration::from_millis(20),
            "{many:?} after many scans, {one:?} after one"
        );
    }
}
