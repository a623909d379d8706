//! What is retired may free at once what others deferred before, whatever that does: nobody holds a
//! lock meanwhile.
//!
//! One test in a process of its own: no other thread's guard keeps the epoch from going on.
#![cfg(not(larder_model))]

use larder_index::{multi, pin, Change, Key, Multi, Unique};
use larder_testing::{key, make, Hashes, Kind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{mpsc, Arc};
use std::time::Duration;

/// A value that is freed at once where that can be.
const LARGE: usize = 2 << 20;

fn the_key() -> Key<'static> {
    key(b"a key", Hashes::Good)
}

/// Does `work`, after `deferred` was deferred, until that was done by it.
fn meets(deferred: impl Fn() + Clone + Send + 'static, work: impl Fn()) {
    for _ in 0..100 {
        let done = Arc::new(AtomicBool::new(false));
        let (mine, deferred) = (done.clone(), deferred.clone());
        let guard = pin();
        guard.defer(move || {
            deferred();
            // Ordering: Relaxed, here and below, one thread's alone.
            mine.store(true, Relaxed);
        });
        guard.flush();
        drop(guard);
        if done.load(Relaxed) {
            continue;
        }
        work();
        if done.load(Relaxed) {
            return;
        }
    }
    panic!("never was what had been deferred done in the midst of the work");
}

fn unique(kind: Kind) {
    let index: Arc<dyn Unique> = make(kind, Default::default()).into();
    let reader = index.clone();
    let read = move || {
        reader.get(&pin(), the_key(), &mut Vec::new());
    };
    let large = vec![7; LARGE];
    let put = |value: &[u8]| index.put(&pin(), the_key(), value, &mut |_| true);
    meets(read.clone(), || {
        put(&large);
        index.remove(&pin(), the_key(), &mut |_| true);
    });
    meets(read.clone(), || {
        put(&large);
        put(b"small");
    });
    meets(read.clone(), || {
        put(&large);
        index.update(&pin(), the_key(), &mut |_, new| {
            new.extend_from_slice(b"small");
            Change::Put
        });
    });
    meets(read, || {
        put(&large);
        while !index.free_some(&pin(), 10, &mut |_| ()) {}
    });
}

fn bag() {
    let index: Arc<dyn Multi> = multi(Hashes::Good).into();
    let reader = index.clone();
    let read = move || {
        reader.get(&pin(), the_key(), &mut |_| ());
    };
    let put = || {
        index.update(&pin(), the_key(), &mut |objects| {
            objects.push(&[7; LARGE]);
        });
    };
    meets(read.clone(), || {
        put();
        index.update(&pin(), the_key(), &mut |objects| {
            objects.remove_if(&mut |_| true);
        });
    });
    meets(read.clone(), || {
        put();
        index.update(&pin(), the_key(), &mut |objects| {
            objects.replace(0, b"small");
        });
    });
    meets(read, || {
        put();
        while !index.free_some(&pin(), 10, &mut |_| ()) {}
    });
}

/// Once a leaf, or a bag's stripe, was locked while a large object's end freed what waited: a
/// host's object that looked into the table when it went waited for ever for its own thread.
#[test]
fn what_goes_may_use_the_index() {
    let (said, done) = mpsc::channel();
    std::thread::spawn(move || {
        for kind in [Kind::Hash, Kind::Ordered] {
            unique(kind);
        }
        bag();
        said.send(()).expect("the test waits");
    });
    let waited = done.recv_timeout(Duration::from_secs(120));
    assert!(waited.is_ok(), "{waited:?}");
}
