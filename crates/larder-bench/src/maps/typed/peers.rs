//! What is compared.

use super::{Contender, TypedKey, TypedValue, RANGE};
use crate::maps::peers::larder::{index, key};
use larder::api::Larder;
use larder_index::{pin, Batch, Change, Direction, Lookup, Start, Unique, SHORT};
use larder_term::hash::Seed;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// A typed table.
pub struct Typed<K, V>(larder::typed::Typed<K, V>);

/// What a table of these types never answers here.
const FINE: &str = "rows of the table's types";

impl<K: TypedKey, V: TypedValue> Contender<K, V> for Typed<K, V> {
    const NAME: &'static str = "larder typed";

    fn empty() -> Self {
        Typed(Larder::new().table("typed").typed().expect(FINE))
    }

    fn insert(&self, key: K, value: V) {
        self.0.put(&key, &value).expect(FINE);
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).expect(FINE)
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.0.remove(key).expect(FINE)
    }

    fn count(&self, key: &K) {
        let counted = self.0.compute(key, |value| {
            value.map(|mut value| {
                value.count();
                value
            })
        });
        counted.expect(FINE);
    }

    fn range(&self, from: &K, mut visit: impl FnMut(&K, &V)) -> bool {
        for row in self.0.range(from.clone()..).expect(FINE).take(RANGE) {
            let (key, value) = row.expect(FINE);
            visit(&key, &value);
        }
        true
    }

    fn each(&self, mut visit: impl FnMut(&K, &V)) {
        for row in self.0.iter() {
            let (key, value) = row.expect(FINE);
            visit(&key, &value);
        }
    }
}

/// Larder's index of the key order without a table: a number's eight bytes under eight bytes.
pub struct Bytes {
    index: Box<dyn Unique>,
    seed: Seed,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

impl Contender<u64, u64> for Bytes {
    const NAME: &'static str = "larder index of bytes";

    fn empty() -> Self {
        let seed = Seed::from_number(7);
        let index = index(true, &seed, true);
        Bytes { index, seed }
    }

    fn insert(&self, k: u64, value: u64) {
        let (k, value) = (k.to_be_bytes(), value.to_be_bytes());
        self.index
            .put(&pin(), key(&self.seed, &k), &value, &mut |_| true);
    }

    fn get(&self, k: &u64) -> Option<u64> {
        let mut short = [0; SHORT];
        let k = k.to_be_bytes();
        match self
            .index
            .get_short(&pin(), key(&self.seed, &k), &mut short, None)
        {
            Lookup::Short(_) => Some(number(&short)),
            _ => None,
        }
    }

    fn remove(&self, k: &u64) -> Option<u64> {
        let (k, mut was) = (k.to_be_bytes(), None);
        self.index.remove(&pin(), key(&self.seed, &k), &mut |old| {
            was = old.map(number);
            true
        });
        was
    }

    fn count(&self, k: &u64) {
        let k = k.to_be_bytes();
        self.index
            .update(&pin(), key(&self.seed, &k), &mut |old, new| {
                let n = old.map_or(0, number).wrapping_add(1);
                new.extend_from_slice(&n.to_be_bytes());
                Change::PutScratch
            });
    }

    fn range(&self, from: &u64, mut visit: impl FnMut(&u64, &u64)) -> bool {
        let mut left = RANGE;
        self.walk(Start::At(&from.to_be_bytes()), RANGE, |key, value| {
            visit(&key, &value);
            left -= 1;
            left > 0
        });
        true
    }

    fn each(&self, mut visit: impl FnMut(&u64, &u64)) {
        self.walk(Start::Edge, 0, |key, value| {
            visit(&key, &value);
            true
        });
    }
}

impl Bytes {
    /// Visits rows until `visit` answers false.
    fn walk(&self, start: Start<'_>, want: usize, mut visit: impl FnMut(u64, u64) -> bool) {
        let (mut batch, mut position) = (Batch::default(), Vec::new());
        batch.want = want;
        self.index
            .scan(&pin(), start, Direction::Forward, &mut batch);
        loop {
            for i in 0..batch.len() {
                if !visit(number(batch.key(i)), number(batch.value(i))) {
                    return;
                }
            }
            if batch.done {
                return;
            }
            std::mem::swap(&mut position, &mut batch.resume);
            let start = Start::At(&position);
            self.index
                .scan(&pin(), start, Direction::Forward, &mut batch);
        }
    }
}

/// The standard library's ordered map behind a lock of many readers or one writer.
pub struct Locked<K, V>(RwLock<BTreeMap<K, V>>);

impl<K: TypedKey, V: TypedValue> Contender<K, V> for Locked<K, V> {
    const NAME: &'static str = "RwLock<BTreeMap>";

    fn empty() -> Self {
        Locked(RwLock::default())
    }

    fn insert(&self, key: K, value: V) {
        self.0.write().insert(key, value);
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.read().get(key).cloned()
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.0.write().remove(key)
    }

    fn count(&self, key: &K) {
        self.0.write().get_mut(key).into_iter().for_each(V::count);
    }

    fn range(&self, from: &K, mut visit: impl FnMut(&K, &V)) -> bool {
        let map = self.0.read();
        let rows = map.range(from.clone()..).take(RANGE);
        rows.for_each(|(key, value)| visit(key, value));
        true
    }

    fn each(&self, mut visit: impl FnMut(&K, &V)) {
        self.0
            .read()
            .iter()
            .for_each(|(key, value)| visit(key, value));
    }
}

#[cfg(feature = "peers")]
mod crates {
    use super::*;
    use parking_lot::Mutex;

    // Its values are shared, so that one that changes has a lock of its own.
    impl<K: TypedKey, V: TypedValue> Contender<K, V> for crossbeam_skiplist::SkipMap<K, Mutex<V>> {
        const NAME: &'static str = "crossbeam SkipMap";

        fn empty() -> Self {
            Self::new()
        }

        fn insert(&self, key: K, value: V) {
            Self::insert(self, key, Mutex::new(value));
        }

        fn get(&self, key: &K) -> Option<V> {
            Self::get(self, key).map(|entry| entry.value().lock().clone())
        }

        fn remove(&self, key: &K) -> Option<V> {
            Self::remove(self, key).map(|entry| entry.value().lock().clone())
        }

        fn count(&self, key: &K) {
            Self::get(self, key)
                .into_iter()
                .for_each(|entry| entry.value().lock().count());
        }

        fn range(&self, from: &K, mut visit: impl FnMut(&K, &V)) -> bool {
            let rows = Self::range(self, from.clone()..).take(RANGE);
            rows.for_each(|row| visit(row.key(), &row.value().lock()));
            true
        }

        fn each(&self, mut visit: impl FnMut(&K, &V)) {
            self.iter()
                .for_each(|row| visit(row.key(), &row.value().lock()));
        }
    }

    impl<K: TypedKey, V: TypedValue> Contender<K, V> for dashmap::DashMap<K, V> {
        const NAME: &'static str = "dashmap";

        fn empty() -> Self {
            Self::new()
        }

        fn insert(&self, key: K, value: V) {
            Self::insert(self, key, value);
        }

        fn get(&self, key: &K) -> Option<V> {
            Self::get(self, key).map(|value| value.clone())
        }

        fn remove(&self, key: &K) -> Option<V> {
            Self::remove(self, key).map(|(_, value)| value)
        }

        fn count(&self, key: &K) {
            self.get_mut(key)
                .into_iter()
                .for_each(|mut value| value.count());
        }

        fn range(&self, _: &K, _: impl FnMut(&K, &V)) -> bool {
            false
        }

        fn each(&self, mut visit: impl FnMut(&K, &V)) {
            self.iter().for_each(|row| visit(row.key(), row.value()));
        }
    }

    impl<K: TypedKey, V: TypedValue> Contender<K, V> for papaya::HashMap<K, V> {
        const NAME: &'static str = "papaya";

        fn empty() -> Self {
            Self::new()
        }

        fn insert(&self, key: K, value: V) {
            self.pin().insert(key, value);
        }

        fn get(&self, key: &K) -> Option<V> {
            self.pin().get(key).cloned()
        }

        fn remove(&self, key: &K) -> Option<V> {
            self.pin().remove(key).cloned()
        }

        fn count(&self, key: &K) {
            self.pin().update(key.clone(), |value| {
                let mut value = value.clone();
                value.count();
                value
            });
        }

        fn range(&self, _: &K, _: impl FnMut(&K, &V)) -> bool {
            false
        }

        fn each(&self, mut visit: impl FnMut(&K, &V)) {
            self.pin().iter().for_each(|(key, value)| visit(key, value));
        }
    }
}
