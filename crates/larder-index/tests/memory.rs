//! What an index says that it holds is what it holds, and dropping it gives all of it back.
//!
//! One test in a process of its own: the allocators count for all threads.
#![cfg(debug_assertions)]

use larder_index::{multi_with, pin, Unique};
use larder_testing::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, a mere count.
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // Ordering: Relaxed, a mere count.
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes held once all that was retired is freed.
fn held() -> usize {
    for _ in 0..600 {
        pin().flush();
    }
    HELD.load(Relaxed) + larder_index::bytes_allocated() as usize
}

/// Thousands of keys come, change their sizes, and half of them go.
fn fill(index: &dyn Unique) {
    for i in 0..12_000u64 {
        let n = mix(i) % 4000;
        let size = if i % 50 == 0 {
            5000
        } else {
            (mix(i) >> 40) as usize % 60
        };
        let bytes = n.to_be_bytes();
        match i % 3 {
            0 => remove(index, key(&bytes, Hashes::Good)),
            _ => put(index, key(&bytes, Hashes::Good), &vec![1; size]),
        };
    }
}

/// `said` is what the index says, `real` what the allocator says: they differ by the index's box,
/// and by what the epoch's machinery keeps.
fn assert_close(said: usize, real: usize) {
    assert!(
        said.abs_diff(real) < 20_000 + real / 50,
        "said {said}, really {real}"
    );
}

#[test]
fn memory_is_as_reported_and_comes_back() {
    // The machinery of epochs and threads takes its memory once.
    for config in configs() {
        fill(&*make(Kind::Hash, config));
    }
    let before = held();
    for round in 0..2 {
        for config in configs() {
            for kind in [Kind::Hash, Kind::Ordered] {
                let index = make(kind, config);
                fill(&*index);
                assert_close(index.memory(), held() - before);
                if round == 1 {
                    while !index.free_some(&pin(), 100, &mut |_| ()) {}
                    assert_close(index.memory(), held() - before);
                    // The rest is dropped in one piece.
                    assert!(index.stats().leaves <= 2, "{:?}", index.stats());
                }
                drop(index);
                assert_close(0, held().saturating_sub(before));
            }
            let bag = multi_with(Hashes::Few, config);
            for i in 0..6000u64 {
                let bytes = (i % 97).to_be_bytes();
                bag.update(&pin(), key(&bytes, Hashes::Few), &mut |objects| {
                    objects.push(&vec![3; i as usize % 90]);
                });
            }
            assert_close(bag.memory(), held() - before);
            drop(bag);
            assert_close(0, held().saturating_sub(before));
        }
    }
}
