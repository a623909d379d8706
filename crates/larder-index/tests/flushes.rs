//! Garbage that a thread leaves while it holds locks is flushed by this thread, whatever others do.
#![cfg(debug_assertions)]

use larder_index::{bytes_allocated, multi, pin};
use larder_testing::{key, Hashes};
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn another_thread_does_not_take_the_flush() {
    const OBJECTS: usize = 100;
    const SIZE: usize = 200_000;
    for meets in [false, true] {
        let index = multi(Hashes::Good);
        let index = &*index;
        let (done, wait) = channel::<()>();
        thread::scope(|scope| {
            let (removed, is_removed) = channel::<()>();
            scope.spawn(move || {
                for i in 0..OBJECTS {
                    let mut object = vec![7; SIZE];
                    object[..8].copy_from_slice(&i.to_be_bytes());
                    index.update(&pin(), key(b"many", Hashes::Good), &mut |objects| {
                        objects.push(&object)
                    });
                }
                let many = key(b"many", Hashes::Good);
                index.update(&pin(), many, &mut |objects| {
                    let mut n = 0;
                    objects.remove_if(&mut |_| {
                        n += 1;
                        n <= 40
                    });
                    // The stripe of the other key is another one.
                    if meets {
                        thread::scope(|scope| {
                            scope.spawn(|| {
                                let other = key(b"other", Hashes::Good);
                                index.update(&pin(), other, &mut |objects| objects.push(b"x"));
                            });
                        });
                    }
                });
                removed.send(()).unwrap();
                // It is idle, but there.
                wait.recv().unwrap();
            });
            is_removed.recv().unwrap();
            let mut left = 0;
            for _ in 0..200 {
                pin().flush();
                left = bytes_allocated();
                thread::sleep(std::time::Duration::from_millis(1));
            }
            done.send(()).unwrap();
            let alive = ((OBJECTS - 40) * SIZE) as isize;
            assert!(left < alive + (1 << 20), "{left} bytes, {alive} alive");
        });
    }
}
