//! What is compared: for each map, how it does what the bench asks for.

use super::{TypedKey, TypedMap, TypedValue, RANGE};
use crate::maps::peers::larder::Index;
use larder::api::Larder;
use larder::typed::{Hashed, Ordered, Typed};
use larder_index::pin;
#[cfg(feature = "peers")]
use parking_lot::Mutex;
use parking_lot::RwLock;
use std::collections::BTreeMap;

/// What a table of these types never answers here.
const FINE: &str = "rows of the table's types";

/// A map's name, an empty one, and what its operations do; `range` if it has an order. In each of
/// them the first name stands for the map.
macro_rules! typed_map {
    ([$($generics:tt)*] $key:ty, $value:ty => $map:ty, $name:literal;
     empty $empty:expr;
     insert |$i:ident, $ik:ident, $iv:ident| $insert:expr;
     get |$g:ident, $gk:ident| $get:expr;
     remove |$r:ident, $rk:ident| $remove:expr;
     count |$c:ident, $ck:ident| $count:expr;
     $(range |$a:ident, $from:ident, $av:ident| $range:expr;)?
     each |$e:ident, $ev:ident| $each:expr;) => {
        impl<$($generics)*> TypedMap<$key, $value> for $map {
            const NAME: &'static str = $name;
            fn empty() -> Self {
                $empty
            }
            fn insert(&self, $ik: $key, $iv: $value) {
                let $i = self;
                $insert;
            }
            fn get(&self, $gk: &$key) -> Option<$value> {
                let $g = self;
                $get
            }
            fn remove(&self, $rk: &$key) -> bool {
                let $r = self;
                $remove
            }
            fn count(&self, $ck: &$key) {
                let $c = self;
                $count;
            }
            $(fn range(&self, $from: &$key, mut $av: impl FnMut(&$key, &$value)) -> bool {
                let $a = self;
                $range;
                true
            })?
            fn each(&self, mut $ev: impl FnMut(&$key, &$value)) {
                let $e = self;
                $each;
            }
        }
    };
}

/// The value, counted up.
fn counted<V: TypedValue>(mut value: V) -> V {
    value.count();
    value
}

/// A typed table, by its order.
macro_rules! larder_typed {
    ($order:ty, $name:literal, $make:ident; $($range:tt)*) => {
        typed_map! {
            [K: TypedKey, V: TypedValue] K, V => Typed<K, V, $order>, $name;
            empty Larder::new().table("typed").$make().expect(FINE);
            insert |map, key, value| map.put(&key, &value).expect(FINE);
            get |map, key| Typed::get(map, key).expect(FINE);
            remove |map, key| Typed::remove(map, key).expect(FINE).is_some();
            // Reads, decodes, encodes and replaces the value. If another thread was quicker, all of
            // it is repeated. A missing key stays missing: there is nothing to count.
            count |map, key| map.compute(key, |value| value.map(counted)).expect(FINE);
            $($range)*
            each |map, visit| map.iter().for_each(|row| {
                let (key, value) = row.expect(FINE);
                visit(&key, &value);
            });
        }
    };
}

larder_typed!(Hashed, "larder typed_hash", typed_hash;);
larder_typed!(Ordered, "larder typed", typed;
    range |map, from, visit| {
        // The range has no end. The iterator stops after the rows that are wanted.
        for row in Typed::range(map, from.clone()..).expect(FINE).take(RANGE) {
            let (key, value) = row.expect(FINE);
            visit(&key, &value);
        }
    };
);

// Larder's index of the key order without a table: a number's eight bytes under eight bytes.
typed_map! {
    [] u64, u64 => Index, "larder index of bytes";
    empty Index::larder(true);
    insert |map, key, value| map.put(&pin(), key, &value.to_le_bytes());
    get |map, key| map.word(&pin(), *key);
    remove |map, key| Index::remove(map, &pin(), *key);
    count |map, key| Index::count(map, &pin(), *key);
    range |map, from, visit| {
        // The index reads this number of entries at once, and then the walk ends.
        let mut left = RANGE;
        map.walk(Some(*from), RANGE, |key, value| {
            visit(&key, &value);
            left -= 1;
            left > 0
        });
    };
    each |map, visit| map.walk(None, 0, |key, value| {
        visit(&key, &value);
        true
    });
}

// The standard library's ordered map behind a lock of many readers or one writer. The lock is held
// for the whole of a count, so that is atomic; it also keeps all readers away.
typed_map! {
    [K: TypedKey, V: TypedValue] K, V => RwLock<BTreeMap<K, V>>, "RwLock<BTreeMap>";
    empty RwLock::default();
    insert |map, key, value| map.write().insert(key, value);
    get |map, key| map.read().get(key).cloned();
    remove |map, key| map.write().remove(key).is_some();
    count |map, key| map.write().get_mut(key).into_iter().for_each(V::count);
    range |map, from, visit| {
        let map = map.read();
        map.range(from.clone()..).take(RANGE).for_each(|(key, value)| visit(key, value));
    };
    each |map, visit| map.read().iter().for_each(|(key, value)| visit(key, value));
}

// Its values are shared, so that one that changes has a lock of its own.
#[cfg(feature = "peers")]
typed_map! {
    [K: TypedKey, V: TypedValue] K, V => crossbeam_skiplist::SkipMap<K, Mutex<V>>, "crossbeam SkipMap";
    empty Self::new();
    insert |map, key, value| Self::insert(map, key, Mutex::new(value));
    get |map, key| Self::get(map, key).map(|entry| entry.value().lock().clone());
    remove |map, key| Self::remove(map, key).is_some();
    count |map, key| Self::get(map, key).into_iter().for_each(|row| row.value().lock().count());
    range |map, from, visit| {
        let rows = Self::range(map, from.clone()..).take(RANGE);
        rows.for_each(|row| visit(row.key(), &row.value().lock()));
    };
    each |map, visit| map.iter().for_each(|row| visit(row.key(), &row.value().lock()));
}

#[cfg(feature = "peers")]
typed_map! {
    [K: TypedKey, V: TypedValue] K, V => dashmap::DashMap<K, V>, "dashmap";
    empty Self::new();
    insert |map, key, value| Self::insert(map, key, value);
    get |map, key| Self::get(map, key).map(|value| value.clone());
    remove |map, key| Self::remove(map, key).is_some();
    count |map, key| map.get_mut(key).into_iter().for_each(|mut value| value.count());
    each |map, visit| map.iter().for_each(|row| visit(row.key(), row.value()));
}

// papaya replaces values and never changes one in place.
#[cfg(feature = "peers")]
typed_map! {
    [K: TypedKey, V: TypedValue] K, V => papaya::HashMap<K, V>, "papaya";
    empty Self::new();
    insert |map, key, value| map.pin().insert(key, value);
    get |map, key| map.pin().get(key).cloned();
    remove |map, key| map.pin().remove(key).is_some();
    count |map, key| map.pin().update(key.clone(), |value| counted(value.clone()));
    each |map, visit| map.pin().iter().for_each(|(key, value)| visit(key, value));
}
