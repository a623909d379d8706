//! What is compared.

use super::{TypedKey, TypedMap, TypedValue, RANGE};
use crate::maps::peers::larder::Index;
use larder::api::Larder;
use larder::typed::{Hashed, Order, Ordered, TypedHash};
use larder_index::pin;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// A typed table.
pub struct Typed<K, V, O>(larder::typed::Typed<K, V, O>);

/// What a table of these types never answers here.
const FINE: &str = "rows of the table's types";

/// A kind of typed tables.
pub trait Kind: Order {
    /// What reports call it.
    const NAME: &'static str;
    /// An empty table.
    fn empty<K: TypedKey, V: TypedValue>() -> larder::typed::Typed<K, V, Self>
    where
        Self: Sized;
    /// Visits up to [`RANGE`] rows from a key on, in order; false if there is no order.
    fn range<K: TypedKey, V: TypedValue>(
        table: &larder::typed::Typed<K, V, Self>,
        from: &K,
        visit: impl FnMut(&K, &V),
    ) -> bool
    where
        Self: Sized;
}

impl Kind for Ordered {
    const NAME: &'static str = "larder typed";

    fn empty<K: TypedKey, V: TypedValue>() -> larder::typed::Typed<K, V> {
        Larder::new().table("typed").typed().expect(FINE)
    }

    fn range<K: TypedKey, V: TypedValue>(
        table: &larder::typed::Typed<K, V>,
        from: &K,
        mut visit: impl FnMut(&K, &V),
    ) -> bool {
        // The range has no end. The iterator stops after the rows that are wanted.
        for row in table.range(from.clone()..).expect(FINE).take(RANGE) {
            let (key, value) = row.expect(FINE);
            visit(&key, &value);
        }
        true
    }
}

impl Kind for Hashed {
    const NAME: &'static str = "larder typed_hash";

    fn empty<K: TypedKey, V: TypedValue>() -> TypedHash<K, V> {
        Larder::new().table("typed").typed_hash().expect(FINE)
    }

    fn range<K: TypedKey, V: TypedValue>(
        _: &TypedHash<K, V>,
        _: &K,
        _: impl FnMut(&K, &V),
    ) -> bool {
        false
    }
}

impl<K: TypedKey, V: TypedValue, O: Kind> TypedMap<K, V> for Typed<K, V, O> {
    const NAME: &'static str = O::NAME;

    fn empty() -> Self {
        Typed(O::empty())
    }

    fn insert(&self, key: K, value: V) {
        self.0.put(&key, &value).expect(FINE);
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).expect(FINE)
    }

    fn remove(&self, key: &K) -> bool {
        self.0.remove(key).expect(FINE).is_some()
    }

    fn count(&self, key: &K) {
        // Reads, decodes, encodes and replaces the value. If another thread was quicker, all of it
        // is repeated.
        let counted = self.0.compute(key, |value| {
            // A missing key stays missing: there is nothing to count.
            value.map(|mut value| {
                value.count();
                value
            })
        });
        counted.expect(FINE);
    }

    fn range(&self, from: &K, visit: impl FnMut(&K, &V)) -> bool {
        O::range(&self.0, from, visit)
    }

    fn each(&self, mut visit: impl FnMut(&K, &V)) {
        for row in self.0.iter() {
            let (key, value) = row.expect(FINE);
            visit(&key, &value);
        }
    }
}

/// Larder's index of the key order without a table: a number's eight bytes under eight bytes.
impl TypedMap<u64, u64> for Index {
    const NAME: &'static str = "larder index of bytes";

    fn empty() -> Self {
        Index::larder(true)
    }

    fn insert(&self, key: u64, value: u64) {
        self.put(&pin(), key, &value.to_le_bytes());
    }

    fn get(&self, key: &u64) -> Option<u64> {
        self.word(&pin(), *key)
    }

    fn remove(&self, key: &u64) -> bool {
        Index::remove(self, &pin(), *key)
    }

    fn count(&self, key: &u64) {
        Index::count(self, &pin(), *key);
    }

    fn range(&self, from: &u64, mut visit: impl FnMut(&u64, &u64)) -> bool {
        // The index reads this number of entries at once, and then the walk ends.
        let mut left = RANGE;
        self.walk(Some(*from), RANGE, |key, value| {
            visit(&key, &value);
            left -= 1;
            left > 0
        });
        true
    }

    fn each(&self, mut visit: impl FnMut(&u64, &u64)) {
        self.walk(None, 0, |key, value| {
            visit(&key, &value);
            true
        });
    }
}

/// The standard library's ordered map behind a lock of many readers or one writer.
pub struct Locked<K, V>(RwLock<BTreeMap<K, V>>);

impl<K: TypedKey, V: TypedValue> TypedMap<K, V> for Locked<K, V> {
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

    fn remove(&self, key: &K) -> bool {
        self.0.write().remove(key).is_some()
    }

    fn count(&self, key: &K) {
        // The lock is held for the whole operation, so it is atomic. It also keeps all readers
        // away.
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
    impl<K: TypedKey, V: TypedValue> TypedMap<K, V> for crossbeam_skiplist::SkipMap<K, Mutex<V>> {
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

        fn remove(&self, key: &K) -> bool {
            Self::remove(self, key).is_some()
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

    impl<K: TypedKey, V: TypedValue> TypedMap<K, V> for dashmap::DashMap<K, V> {
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

        fn remove(&self, key: &K) -> bool {
            Self::remove(self, key).is_some()
        }

        fn count(&self, key: &K) {
            self.get_mut(key)
                .into_iter()
                .for_each(|mut value| value.count());
        }

        fn each(&self, mut visit: impl FnMut(&K, &V)) {
            self.iter().for_each(|row| visit(row.key(), row.value()));
        }
    }

    impl<K: TypedKey, V: TypedValue> TypedMap<K, V> for papaya::HashMap<K, V> {
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

        fn remove(&self, key: &K) -> bool {
            self.pin().remove(key).is_some()
        }

        fn count(&self, key: &K) {
            // papaya replaces values and never changes one in place.
            self.pin().update(key.clone(), |value| {
                let mut value = value.clone();
                value.count();
                value
            });
        }

        fn each(&self, mut visit: impl FnMut(&K, &V)) {
            self.pin().iter().for_each(|(key, value)| visit(key, value));
        }
    }
}
