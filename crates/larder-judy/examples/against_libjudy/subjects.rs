//! The arrays, ours and libJudy's, behind one trait.

use crate::raw::{Lib1, LibL, LibSl};
use larder_judy::{Judy1, JudyESL, JudyL, JudySL};

/// An array under test. Keys of strings come with a zero byte at their end, as C wants them.
pub trait Subject<Key: ?Sized> {
    fn new() -> Self;
    fn insert(&mut self, key: &Key, value: u64);
    fn get(&self, key: &Key) -> Option<u64>;
    /// All keys in order, by stateless steps: how many, and a sum of what was seen.
    fn walk(&self) -> (u64, u64);
    fn remove(&mut self, key: &Key) -> bool;
    /// The array's own count of its memory; libJudy has none for strings.
    fn memory(&self) -> Option<usize>;
}

impl Subject<u64> for JudyL {
    fn new() -> Self {
        JudyL::new()
    }
    fn insert(&mut self, key: &u64, value: u64) {
        *self.get_or_insert(*key) = value;
    }
    fn get(&self, key: &u64) -> Option<u64> {
        self.get(*key)
    }
    fn walk(&self) -> (u64, u64) {
        let (mut count, mut sum, mut next) = (0, 0u64, self.first());
        while let Some((key, value)) = next {
            (count, sum, next) = (count + 1, sum.wrapping_add(value), self.after(key));
        }
        (count, sum)
    }
    fn remove(&mut self, key: &u64) -> bool {
        self.remove(*key).is_some()
    }
    fn memory(&self) -> Option<usize> {
        Some(self.memory_used())
    }
}

impl Subject<u64> for Judy1 {
    fn new() -> Self {
        Judy1::new()
    }
    fn insert(&mut self, key: &u64, _: u64) {
        self.insert(*key);
    }
    fn get(&self, key: &u64) -> Option<u64> {
        self.contains(*key).then_some(0)
    }
    fn walk(&self) -> (u64, u64) {
        let (mut count, mut sum, mut next) = (0, 0u64, self.first());
        while let Some(key) = next {
            (count, sum, next) = (count + 1, sum.wrapping_add(key), self.after(key));
        }
        (count, sum)
    }
    fn remove(&mut self, key: &u64) -> bool {
        self.remove(*key)
    }
    fn memory(&self) -> Option<usize> {
        Some(self.memory_used())
    }
}

/// libJudy's arrays: how a key is put in, looked up and removed, and what they say of their memory.
macro_rules! of_libjudy {
    ($($array:ident, $key:ty, $put:expr, $get:expr, $remove:expr, $memory:expr;)*) => {$(
        impl Subject<$key> for $array {
            fn new() -> Self {
                $array::new()
            }
            fn insert(&mut self, key: &$key, value: u64) {
                let put: fn(&mut $array, &$key, u64) = $put;
                put(self, key, value);
            }
            fn get(&self, key: &$key) -> Option<u64> {
                let get: fn(&$array, &$key) -> Option<u64> = $get;
                get(self, key)
            }
            fn walk(&self) -> (u64, u64) {
                self.walk()
            }
            fn remove(&mut self, key: &$key) -> bool {
                let remove: fn(&mut $array, &$key) -> bool = $remove;
                remove(self, key)
            }
            fn memory(&self) -> Option<usize> {
                let memory: fn(&$array) -> Option<usize> = $memory;
                memory(self)
            }
        }
    )*};
}

of_libjudy! {
    LibL, u64,
        |array, key, value| array.insert(*key, value),
        |array, key| array.get(*key),
        |array, key| array.remove(*key),
        |array| Some(array.memory());
    Lib1, u64,
        |array, key, _| _ = array.insert(*key),
        |array, key| array.contains(*key).then_some(0),
        |array, key| array.remove(*key),
        |array| Some(array.memory());
    LibSl, [u8],
        |array, key, value| array.insert(key, value),
        |array, key| array.get(key),
        |array, key| array.remove(key),
        |_| None;
}

/// A key without the zero byte at its end.
fn bare(key: &[u8]) -> &[u8] {
    &key[..key.len() - 1]
}

/// Our arrays of strings: how a key is put in.
macro_rules! strings {
    ($($array:ident, $put:expr;)*) => {$(
        impl Subject<[u8]> for $array {
            fn new() -> Self {
                $array::new()
            }
            fn insert(&mut self, key: &[u8], value: u64) {
                let put: fn(&mut $array, &[u8], u64) = $put;
                put(self, bare(key), value);
            }
            fn get(&self, key: &[u8]) -> Option<u64> {
                self.get(bare(key))
            }
            fn walk(&self) -> (u64, u64) {
                let (mut count, mut sum, mut key) = (0, 0u64, Vec::new());
                let mut next = self.first(&mut key);
                while let Some(value) = next {
                    (count, sum, next) = (count + 1, sum.wrapping_add(value), self.after(&mut key));
                }
                (count, sum)
            }
            fn remove(&mut self, key: &[u8]) -> bool {
                self.remove(bare(key)).is_some()
            }
            fn memory(&self) -> Option<usize> {
                Some(self.memory_used())
            }
        }
    )*};
}

strings! {
    JudySL, |array, key, value| *array.get_or_insert(key).expect("no zero byte") = value;
    JudyESL, |array, key, value| *array.get_or_insert(key) = value;
}
