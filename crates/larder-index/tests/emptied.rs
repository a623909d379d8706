//! How many leaves of an index by hash remain after scans have removed all entries, or most.

use larder_index::{multi, pin, unique, Batch, Direction, Multi, Start, Unique, UniqueKind};
use larder_testing::{key, mix, put, remove, Hashes};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;

const KEYS: u64 = if cfg!(miri) { 500 } else { 200_000 };

/// An index whose entries are the numbers of keys.
trait Emptied {
    fn of(keys: &[u64]) -> Self;
    fn leaves(&self) -> usize;
    fn memory_now(&self) -> usize;
    fn count(&self) -> usize;
    /// Reads one batch, and removes what is wanted of it. Returns where the scan resumes.
    fn remove_some(&self, at: Option<&[u8]>, wanted: &dyn Fn(u64) -> bool) -> Option<Vec<u8>>;
}

macro_rules! emptied {
    ($index:ty, $new:expr, $put:expr) => {
        impl Emptied for $index {
            fn of(keys: &[u64]) -> Self {
                let index: Self = $new;
                keys.iter().for_each(|k| $put(&*index, &k.to_be_bytes()));
                index
            }
            fn memory_now(&self) -> usize {
                self.memory()
            }
            fn leaves(&self) -> usize {
                self.stats().leaves
            }
            fn count(&self) -> usize {
                self.len()
            }
            fn remove_some(
                &self,
                at: Option<&[u8]>,
                wanted: &dyn Fn(u64) -> bool,
            ) -> Option<Vec<u8>> {
                let (guard, mut batch) = (pin(), Batch::default().in_any_order());
                let start = at.map_or(Start::Edge, Start::At);
                self.scan(&guard, start, Direction::Forward, &mut batch);
                // The leaves that the scan has yet to read are as they were.
                assert!(batch.unordered || batch.is_empty());
                let number = |i: u32| batch.key(i as usize).try_into().map(u64::from_be_bytes);
                let chosen: Vec<u32> = (0..batch.len() as u32)
                    .filter(|&i| wanted(number(i).unwrap()))
                    .collect();
                if let Some(&first) = chosen.first() {
                    let first = key(batch.key(first as usize), Hashes::Good);
                    assert!(self.remove_scanned(&guard, first, (&batch, &chosen), &mut || true));
                }
                (!batch.done).then(|| batch.resume.clone())
            }
        }
    };
}

emptied!(
    Box<dyn Unique>,
    unique(UniqueKind::Hash(Arc::new(Hashes::Good))),
    |index: &dyn Unique, k: &[u8]| assert!(put(index, key(k, Hashes::Good), b"value"))
);
emptied!(
    Box<dyn Multi>,
    multi(Hashes::Good),
    |index: &dyn Multi, k: &[u8]| {
        index.update(&pin(), key(k, Hashes::Good), &mut |objects| {
            objects.push(b"value")
        })
    }
);

fn remove_all<I: Emptied>(index: &I, wanted: impl Fn(u64) -> bool) {
    let mut at = None;
    loop {
        at = index.remove_some(at.as_deref(), &wanted);
        if at.is_none() {
            return;
        }
    }
}

fn few_leaves_remain<I: Emptied>() {
    let keys: Vec<u64> = (0..KEYS).collect();
    for stays in [
        // Nothing; every tenth entry; and those of a few leaves.
        (|_| false) as fn(u64) -> bool,
        |k| mix(k).is_multiple_of(10),
        |k| k.is_multiple_of(KEYS / 3),
    ] {
        let (index, rest) = (I::of(&keys), keys.iter().copied().filter(|&k| stays(k)));
        let (rest, before) = (rest.collect::<Vec<_>>(), index.leaves());
        remove_all(&index, |k| !stays(k));
        assert_eq!(index.count(), rest.len());
        let (left, fresh) = (index.leaves(), I::of(&rest).leaves());
        // Leaves merge as long as they are at most half full, and leaves of an index that grows are
        // mostly fuller. Those that are less full are smaller.
        let all = format!("{before} leaves, {left} left, {fresh} of the rest");
        assert!(2 * left <= 5 * fresh, "{all}");
        let (bytes, of_rest) = (index.memory_now(), I::of(&rest).memory_now());
        assert!(4 * bytes <= 5 * of_rest, "{all}: {bytes} bytes, {of_rest}");
        // What is emptied step by step is empty in the end.
        remove_all(&index, |_| true);
        assert_eq!((index.count(), index.leaves()), (0, 1));
    }
}

#[test]
fn few_leaves_of_a_set_remain() {
    few_leaves_remain::<Box<dyn Unique>>();
}

#[test]
fn few_leaves_of_a_bag_remain() {
    few_leaves_remain::<Box<dyn Multi>>();
}

/// Threads put and remove keys of their own, while others remove by scans what nobody owns.
#[test]
fn scans_that_remove_leave_what_others_own() {
    const OWN: u64 = 1 << 40;
    let rounds = if cfg!(miri) { 1 } else { 20 };
    let (index, removed) = (&<Box<dyn Unique>>::of(&[]), &AtomicUsize::new(0));
    let sweep = || {
        let mut at = None::<Vec<u8>>;
        loop {
            let (guard, mut batch) = (pin(), Batch::default().in_any_order());
            let start = at.as_deref().map_or(Start::Edge, Start::At);
            index.scan(&guard, start, Direction::Forward, &mut batch);
            let is_common = |&i: &u32| batch.key(i as usize) < &OWN.to_be_bytes()[..];
            let chosen: Vec<u32> = (0..batch.len() as u32).filter(is_common).collect();
            if let Some(&first) = chosen.first() {
                let first = key(batch.key(first as usize), Hashes::Good);
                // It is refused if the leaf has changed since.
                if index.remove_scanned(&guard, first, (&batch, &chosen), &mut || true) {
                    removed.fetch_add(chosen.len(), Relaxed);
                }
            }
            if batch.done {
                return;
            }
            at = Some(batch.resume.clone());
        }
    };
    thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                for round in 0..rounds {
                    for i in 0..KEYS / 100 {
                        let common = (2 * (round * KEYS + i) + writer).to_be_bytes();
                        assert!(put(&**index, key(&common, Hashes::Good), b"common"));
                        let own = (OWN * (writer + 1) + i).to_be_bytes();
                        assert!(put(&**index, key(&own, Hashes::Good), b"own"));
                    }
                    for i in 0..KEYS / 100 {
                        let own = (OWN * (writer + 1) + i).to_be_bytes();
                        assert!(remove(&**index, key(&own, Hashes::Good)), "{i}");
                    }
                }
            });
            scope.spawn(|| (0..20 * rounds).for_each(|_| sweep()));
        }
    });
    sweep();
    let put = 2 * rounds * (KEYS / 100);
    assert_eq!((index.len(), removed.load(Relaxed) as u64), (0, put));
}
