//! Long elements are stored outside of their rows: what a table counts of them, and who sees which.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder_term::blob::Blob;
use larder_term::{term, Term};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A list that takes about `len` bytes.
fn list(len: i64) -> Term {
    Term::list((0..len).map(|n| Term::from(n % 100)).collect::<Vec<_>>())
}

/// Waits until the memory of a table is at most this.
fn soon_at_most(larder: &Larder, table: &Table, most: usize) {
    for _ in 0..1000 {
        assert!(larder.engine().reaper_idle(LONG));
        larder_index::pin().flush();
        if table.memory() <= most {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(table.memory() <= most, "{} of {most}", table.memory());
}

#[test]
fn a_table_counts_long_elements_until_they_are_freed() {
    let larder = Larder::new();
    for kind in KINDS {
        let t = table(larder.table(kind), kind);
        let empty = t.memory() + 30_000;
        let fill = || {
            for i in 0..20i64 {
                t.insert(&term!({(i), 0, (list(50_000)), x})).unwrap();
            }
            assert!(
                (1_000_000..1_100_000).contains(&t.memory()),
                "{}",
                t.memory()
            );
        };
        fill();
        for i in 0..20i64 {
            t.delete(&term!((i))).unwrap();
        }
        soon_at_most(&larder, &t, empty);
        fill();
        t.clear().unwrap();
        soon_at_most(&larder, &t, empty);
        fill();
        // A row that isn't stored counts only while it is encoded.
        for i in 0..20i64 {
            assert_eq!(t.insert_new(&term!({(i), 0, (list(60_000)), x})), Ok(false));
        }
        soon_at_most(&larder, &t, 1_100_000);
    }
}

#[test]
fn counters_beside_a_long_element_leave_it_where_it_is() {
    let larder = Larder::new();
    for kind in ["set", "ordered_set"] {
        let t = table(larder.table(kind), kind);
        t.insert(&term!({k, 0, (list(100_000)), x})).unwrap();
        let before = t.memory();
        // Each copy of the element would count until its readers are gone.
        let guard = larder_index::pin();
        for n in 1..=1000i64 {
            assert_eq!(t.add(&term!(k), 2, 1), Ok(Term::from(n)));
        }
        t.update(&term!(k), 4, &term!([y, z])).unwrap();
        assert!(t.memory() < before + 100_000, "{} {before}", t.memory());
        drop(guard);
        let row = term!({k, 1000, (list(100_000)), [y, z]});
        assert_eq!(t.lookup(&term!(k)), Ok(vec![row]));
    }
}

#[test]
fn snapshots_and_transactions_see_the_element_of_their_time() {
    let larder = Larder::new();
    for kind in ["set", "ordered_set"] {
        let t = table(larder.table(kind), kind);
        let row = |n: i64| term!({k, (n), (list(3000 + n))});
        t.insert(&row(0)).unwrap();
        let empty = t.memory();
        let snapshots: Vec<_> = (0..5)
            .map(|n| {
                let snapshot = t.snapshot().unwrap();
                t.update(&term!(k), 3, &list(3001 + n)).unwrap();
                t.add(&term!(k), 2, 1).unwrap();
                snapshot
            })
            .collect();
        for (n, snapshot) in snapshots.iter().enumerate() {
            assert_eq!(snapshot.lookup(&term!(k)), Ok(vec![row(n as i64)]));
        }
        assert!(t.memory() >= empty + 5 * 3000);
        drop(snapshots);
        soon_at_most(&larder, &t, empty + 100);
        let changed = larder.transaction(&[&t], |views| {
            views[0].update(&term!(k), 3, &list(9000))?;
            assert_eq!(
                views[0].lookup(&term!(k))?,
                vec![term!({k, 5, (list(9000))})]
            );
            Ok(())
        });
        assert_eq!(changed, Ok(()));
        assert_eq!(t.lookup(&term!(k)), Ok(vec![term!({k, 5, (list(9000))})]));
        soon_at_most(&larder, &t, empty + 8_000);
    }
}

/// A binary of 100,000 bytes whose copies can be counted.
struct Owned(#[allow(dead_code)] Arc<()>, Vec<u8>);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

/// A table that transactions write to keeps its versions, but not when they lead to much.
#[test]
fn versions_that_lead_to_much_go_beside_transactions() {
    const BYTES: usize = 4 << 20;
    let larder = Larder::new();
    let counter = Arc::new(());
    let binary = || {
        let owned = Owned(Arc::clone(&counter), vec![7; BYTES]);
        Term::build(|encoder| encoder.blob(Blob::from_owner(owned))).unwrap()
    };
    let values: [&dyn Fn() -> Term; 2] = [&|| list(BYTES as i64), &binary];
    for value in values {
        let t = larder.table("t").set().create().unwrap();
        t.insert(&term!({k, 0, (value())})).unwrap();
        let before = t.memory();
        for round in 0..8i64 {
            let snapshot = t.snapshot().unwrap();
            let row = term!({k, (round), (value())});
            let put = larder.transaction(&[&t], |views| views[0].insert(&row));
            assert_eq!(put, Ok(()));
            drop(snapshot);
        }
        // Versions of 16 MiB may stay.
        soon_at_most(&larder, &t, before + 5 * BYTES);
        let is_held = || Arc::strong_count(&counter) > 8;
        for _ in 0..1000 {
            if is_held() {
                assert!(larder.engine().reaper_idle(LONG));
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        assert!(!is_held(), "{}", Arc::strong_count(&counter));
        t.drop_table().unwrap();
    }
}

/// Readers see whole rows while others replace and patch them, in a table that weighs its rows and
/// keeps versions.
#[test]
fn rows_are_whole_beside_writers() {
    let larder = Larder::new();
    for kind in ["set", "ordered_set"] {
        let t = table(larder.table(kind).max_memory(1 << 30), kind);
        // The list is out of line, and refers to binaries. The last element says which one it is.
        let long = |n: i64| Term::list(vec![Term::binary(&[n as u8; 200]); 300]);
        let row = |n: i64| term!({k, 0, (long(n)), (n)});
        t.insert(&row(0)).unwrap();
        let is_whole = |found: &Term| {
            let found = found.as_ref().as_tuple().unwrap();
            let n = found.get(3).unwrap().as_int().unwrap();
            found.get(2).unwrap().identical(long(n).as_ref())
        };
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for writer in 0..2i64 {
                let (t, row, done) = (&t, &row, &done);
                scope.spawn(move || {
                    for n in 0..400 {
                        t.insert(&row(n % 50 + 50 * writer)).unwrap();
                        t.add(&term!(k), 2, 1).unwrap();
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
            for reader in 0..2 {
                let (t, is_whole, done) = (&t, &is_whole, &done);
                scope.spawn(move || {
                    while done.load(Ordering::SeqCst) < 2 {
                        let rows = match reader {
                            0 => t.lookup(&term!(k)).unwrap(),
                            _ => t.snapshot().unwrap().to_vec().unwrap(),
                        };
                        assert!(rows.len() == 1 && rows.iter().all(is_whole));
                    }
                });
            }
        });
        t.delete(&term!(k)).unwrap();
        assert_eq!(t.engine_table().weight(), Some(0));
        soon_at_most(&larder, &t, 100_000);
    }
}
