//! What rows took is the system's again after they are gone, whatever size they had, in a program
//! with the allocator that the libraries for Erlang and C have. One test, since resident memory is
//! the whole process's.
#![cfg(target_os = "linux")]

use larder::api::{Larder, Table};
use larder_term::{term, Term};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: larder::Allocator = larder::Allocator;

const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that rows may leave.
const LEFT: usize = 20 << 20;

/// Bytes that each case stores, about.
const STORED: usize = 64 << 20;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = status
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number of pages");
    pages * 4096
}

/// Waits until no more is resident than `limit`.
fn comes_back(what: &str, limit: usize) {
    let begun = Instant::now();
    while resident() > limit {
        let (now, waited) = (resident() >> 20, begun.elapsed());
        assert!(
            waited < PATIENCE,
            "{what}: {now} MB, may be {}",
            limit >> 20
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Rows with a binary of so many bytes, stored by several threads, which end.
fn fill(table: &Table, bytes: usize, rows: i64) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for k in (thread..rows).step_by(4) {
                    let value = Term::binary(&vec![k as u8; bytes]);
                    table.insert(&term!({(k), (value)})).unwrap();
                }
            });
        }
    });
}

#[test]
fn memory_comes_back() {
    let larder = Larder::new();
    let table = || larder.table("t").create().unwrap();
    // What the machinery takes once; some small blocks that stay behind whatever comes.
    let warm = table();
    fill(&warm, 1000, 1000);
    warm.drop_table().unwrap();
    assert!(larder.engine().reaper_idle(PATIENCE));
    let stays = table();
    let before = resident();
    for bytes in [1, 64, 200, 1000, 5000, 40_000, 1_000_000, 10_000_000] {
        let rows = (STORED / (bytes + 40)).clamp(4, 300_000) as i64;
        for each in [false, true] {
            let t = table();
            fill(&t, bytes, rows);
            fill(&stays, 100, rows.min(500));
            let full = resident();
            assert!(full > before + rows as usize * bytes / 2, "{bytes}: {full}");
            if each {
                (0..rows).for_each(|k| assert_eq!(t.delete(&term!((k))).unwrap(), 1));
            } else {
                t.drop_table().unwrap();
            }
            comes_back(
                &format!("{rows} rows of {bytes} bytes, {each}"),
                before + LEFT,
            );
        }
    }
    churn(&larder, before);
}

/// A hundred kilobytes, alive for a moment each, ten thousand times.
fn churn(larder: &Larder, before: usize) {
    let t = larder.table("churn").create().unwrap();
    let mut most = 0;
    for round in 0..10_000u32 {
        for k in 0..20i64 {
            t.insert(&term!({(k), (Term::binary(&[round as u8; 5000]))}))
                .unwrap();
        }
        t.clear().unwrap();
        if round % 100 == 0 {
            most = most.max(resident());
        }
    }
    assert!(most < before + (100 << 20), "{} MB", most >> 20);
    comes_back("churn", before + LEFT);
}
