//! Peers in C and C++, through the tables of functions in `cpp/peer.h` (feature `cpp`).

#![allow(unsafe_code)]

use crate::result::Outcome;
use crate::stores::peer::{Listed, Peer};
use std::ffi::{c_char, c_void, CStr};

/// `struct larder_peer`. Every table is a constant of the C++ library. Its name ends with a zero.
/// Its functions do what the header says with stores of the table's own `make`, and touch nothing
/// else.
#[repr(C)]
pub struct Table {
    name: *const c_char,
    make: extern "C" fn() -> *mut c_void,
    drop: unsafe extern "C" fn(*mut c_void),
    insert: unsafe extern "C" fn(*mut c_void, *const u64, *const u64, usize),
    get: unsafe extern "C" fn(*mut c_void, *const u64, *mut u64, usize) -> usize,
    append: Option<unsafe extern "C" fn(*mut c_void, *const u64, usize, *const u8, usize)>,
    read: Option<unsafe extern "C" fn(*mut c_void, u64, *mut u8, usize) -> usize>,
}

// SAFETY: a table is constant.
unsafe impl Sync for Table {}

include!(concat!(env!("OUT_DIR"), "/peers.rs"));

impl Table {
    pub fn name(&self) -> &'static str {
        // SAFETY: the name is a constant of the library that ends with a zero (see Table).
        let name = unsafe { CStr::from_ptr::<'static>(self.name) };
        name.to_str().expect("names are plain text")
    }
}

/// A store of a table. Invariant: `store` is a result of the table's `make`. Only this value uses
/// and drops it.
struct Foreign {
    table: &'static Table,
    store: *mut c_void,
}

pub fn all() -> Vec<Listed> {
    let listed = |table: &'static Table| -> Listed {
        let make = move || {
            let store = (table.make)();
            Foreign { table, store }
        };
        (table.name(), Box::new(move || Ok(Box::new(make()))))
    };
    here().into_iter().map(listed).collect()
}

impl Peer for Foreign {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome {
        assert_eq!(keys.len(), values.len());
        // SAFETY: the store is the table's (invariant); both arrays have as many words.
        unsafe { (self.table.insert)(self.store, keys.as_ptr(), values.as_ptr(), keys.len()) };
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize> {
        assert_eq!(keys.len(), values.len());
        // SAFETY: as above; the values may be written.
        let found =
            unsafe { (self.table.get)(self.store, keys.as_ptr(), values.as_mut_ptr(), keys.len()) };
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool> {
        let Some(append) = self.table.append else {
            return Ok(false);
        };
        let (keys, count, bytes) = (keys.as_ptr(), keys.len(), piece.as_ptr());
        // SAFETY: the store is the table's (invariant); the lengths are those of the arrays.
        unsafe { append(self.store, keys, count, bytes, piece.len()) };
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool> {
        let Some(read) = self.table.read else {
            return Ok(false);
        };
        let (before, mut room) = (out.len(), 256);
        loop {
            out.resize(before + room, 0);
            // SAFETY: the store is the table's (invariant); `out` has `room` more bytes.
            let size = unsafe { read(self.store, key, out.as_mut_ptr().add(before), room) };
            // The key is missing.
            if size == usize::MAX {
                out.truncate(before);
                return Ok(false);
            }
            if size <= room {
                out.truncate(before + size);
                return Ok(true);
            }
            // The value is longer, and its length is known now.
            room = size;
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the store is the table's, and this is its last use (invariant).
        unsafe { (self.table.drop)(self.store) };
    }
}
