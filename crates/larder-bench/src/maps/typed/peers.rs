//! The maps that are compared, and how each does what the bench calls.

use super::{TypedKey, TypedMap, TypedValue, RANGE};
use crate::maps::peers::index::Index;
use larder::api::Larder;
use larder::typed::{Hashed, Ordered, Typed};
use larder_index::pin;
#[cfg(feature = "peers")]
use parking_lot::Mutex;
use parking_lot::RwLock;
use std::collections::BTreeMap;
#[cfg(feature = "peers")]
use std::sync::Arc;

/// Operations on rows of a table's own types don't fail.
const TYPED: &str = "rows of the table's types";

/// Implements `TypedMap` from expressions of `$map`, `$key`, `$value` and `$visit`, the names of
/// the first line. Maps with an order have `range`, in which `$key` is the first key.
macro_rules! typed_map {
    (|$map:ident, $key:ident, $value:ident, $visit:ident| [$($generics:tt)*] $k:ty, $v:ty;
     $type:ty, $name:literal, $empty:expr; insert $insert:expr; get $get:expr; remove $remove:expr;
     increment $increment:expr; $(range $range:expr;)? each $each:expr;) => {
        impl<$($generics)*> TypedMap for $type {
            type Key = $k;
            type Value = $v;
            const NAME: &'static str = $name;
            fn empty() -> Self {
                $empty
            }
            fn insert(&self, $key: $k, $value: $v) {
                let $map = self;
                $insert;
            }
            fn get(&self, $key: &$k) -> Option<$v> {
                let $map = self;
                $get
            }
            fn remove(&self, $key: &$k) -> bool {
                let $map = self;
                $remove
            }
            fn increment(&self, $key: &$k) {
                let $map = self;
                $increment;
            }
            $(fn range(&self, $key: &$k, mut $visit: impl FnMut(&$k, &$v)) -> bool {
                let $map = self;
                $range;
                true
            })?
            fn each(&self, mut $visit: impl FnMut(&$k, &$v)) {
                let $map = self;
                $each;
            }
        }
    };
}

fn incremented<V: TypedValue>(mut value: V) -> V {
    value.increment();
    value
}

/// A typed table, by its order.
macro_rules! larder_typed {
    (|$map:ident, $key:ident, $value:ident, $visit:ident| $order:ty, $name:literal, $make:ident; $($range:tt)*) => {
        typed_map! { |$map, $key, $value, $visit| [K: TypedKey, V: TypedValue] K, V;
            Typed<K, V, $order>, $name, Larder::new().table("typed").$make().expect(TYPED);
            insert $map.put(&$key, &$value).expect(TYPED);
            get Typed::get($map, $key).expect(TYPED);
            remove Typed::remove($map, $key).expect(TYPED).is_some();
            // Reads, decodes, encodes and replaces the value, and begins again if another thread
            // has changed it meanwhile.
            increment $map.compute($key, |value| value.map(incremented)).expect(TYPED);
            $($range)*
            each $map.iter().for_each(|row| {
                let (key, value) = row.expect(TYPED);
                $visit(&key, &value);
            });
        }
    };
}

larder_typed!(|map, key, value, visit| Hashed, "larder typed_hash", typed_hash;);
larder_typed!(|map, key, value, visit| Ordered, "larder typed", typed;
    range for row in Typed::range(map, key.clone()..).expect(TYPED).take(RANGE) {
        let (key, value) = row.expect(TYPED);
        visit(&key, &value);
    };
);

// Larder's ordered index without a table.
typed_map! { |map, key, value, visit| [] u64, u64;
    Index, "larder index of bytes", Index::default_structure(true);
    insert map.put(&pin(), key, &value.to_le_bytes());
    get map.word(&pin(), *key);
    remove Index::remove(map, &pin(), *key);
    increment Index::increment(map, &pin(), *key);
    range {
        // The index reads as many entries at once as the range has.
        let mut left = RANGE;
        map.walk(Some(*key), RANGE, |key, value| {
            visit(&key, &value);
            left -= 1;
            left > 0
        });
    };
    each map.walk(None, 0, |key, value| {
        visit(&key, &value);
        true
    });
}

// The standard library's ordered map behind a lock of many readers or one writer.
typed_map! { |map, key, value, visit| [K: TypedKey, V: TypedValue] K, V;
    RwLock<BTreeMap<K, V>>, "RwLock<BTreeMap>", RwLock::default();
    insert map.write().insert(key, value);
    get map.read().get(key).cloned();
    remove map.write().remove(key).is_some();
    increment map.write().get_mut(key).into_iter().for_each(V::increment);
    range map.read().range(key.clone()..).take(RANGE).for_each(|(key, value)| visit(key, value));
    each map.read().iter().for_each(|(key, value)| visit(key, value));
}

// The map shares its values, so a value that changes needs a lock of its own.
#[cfg(feature = "peers")]
typed_map! { |map, key, value, visit| [K: TypedKey, V: TypedValue] K, V;
    crossbeam_skiplist::SkipMap<K, Mutex<V>>, "crossbeam SkipMap", Self::new();
    insert Self::insert(map, key, Mutex::new(value));
    get Self::get(map, key).map(|entry| entry.value().lock().clone());
    remove Self::remove(map, key).is_some();
    increment Self::get(map, key).into_iter().for_each(|row| row.value().lock().increment());
    range Self::range(map, key.clone()..).take(RANGE).for_each(|row| visit(row.key(), &row.value().lock()));
    each map.iter().for_each(|row| visit(row.key(), &row.value().lock()));
}

// The tree clones its values when it moves them, so that they are shared.
#[cfg(feature = "peers")]
typed_map! { |map, key, value, visit| [K: TypedKey, V: TypedValue] K, V;
    scc::TreeIndex<K, Arc<Mutex<V>>>, "scc TreeIndex", Self::new();
    insert Self::upsert_sync(map, key, Arc::new(Mutex::new(value)));
    get map.peek_with(key, |_, value| value.lock().clone());
    remove map.remove_sync(key);
    increment map.peek_with(key, |_, value| value.lock().increment());
    range {
        let guard = scc::Guard::new();
        let rows = Self::range(map, key.clone().., &guard).take(RANGE);
        rows.for_each(|(key, value)| visit(key, &value.lock()));
    };
    each map.iter(&scc::Guard::new()).for_each(|(key, value)| visit(key, &value.lock()));
}

#[cfg(feature = "peers")]
typed_map! { |map, key, value, visit| [K: TypedKey, V: TypedValue] K, V;
    dashmap::DashMap<K, V>, "dashmap", Self::new();
    insert Self::insert(map, key, value);
    get Self::get(map, key).map(|value| value.clone());
    remove Self::remove(map, key).is_some();
    increment map.get_mut(key).into_iter().for_each(|mut value| value.increment());
    each map.iter().for_each(|row| visit(row.key(), row.value()));
}

// papaya replaces values. It never changes one in place.
#[cfg(feature = "peers")]
typed_map! { |map, key, value, visit| [K: TypedKey, V: TypedValue] K, V;
    papaya::HashMap<K, V>, "papaya", Self::new();
    insert map.pin().insert(key, value);
    get map.pin().get(key).cloned();
    remove map.pin().remove(key).is_some();
    increment map.pin().update(key.clone(), |value| incremented(value.clone()));
    each map.pin().iter().for_each(|(key, value)| visit(key, value));
}
