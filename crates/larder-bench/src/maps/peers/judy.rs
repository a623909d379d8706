//! libJudy's JudyL, a radix tree of words (feature `judy`, Debian's libjudy-dev).

#![allow(unsafe_code)]

use super::{Handle, Map, Named};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, NonNull};

// The functions of Judy.h. The last argument may receive the reason of an error. It may be null.
#[link(name = "Judy")]
extern "C" {
    fn JudyLIns(array: *mut *mut c_void, index: usize, error: *mut c_void) -> *mut usize;
    fn JudyLGet(array: *const c_void, index: usize, error: *mut c_void) -> *mut usize;
    fn JudyLDel(array: *mut *mut c_void, index: usize, error: *mut c_void) -> c_int;
    fn JudyLFirst(array: *const c_void, index: *mut usize, error: *mut c_void) -> *mut usize;
    fn JudyLNext(array: *const c_void, index: *mut usize, error: *mut c_void) -> *mut usize;
    fn JudyLFreeArray(array: *mut *mut c_void, error: *mut c_void) -> usize;
    fn JudyLMemUsed(array: *const c_void) -> usize;
}

/// A JudyL array. Invariant: `self.0` is null or an array of Judy's that only this value uses.
pub struct JudyL(*mut c_void);

/// Judy's result if there is no memory.
const FAILED: *mut usize = usize::MAX as *mut usize;

impl Handle for JudyL {
    fn insert(&mut self, key: u64, value: u64) {
        // SAFETY: the array is Judy's (invariant).
        let place = unsafe { JudyLIns(&mut self.0, key as usize, null_mut()) };
        assert!(place != FAILED, "JudyLIns has no memory");
        // SAFETY: a result that is no failure is the place of the key's word, good until the array
        // changes.
        unsafe { place.write(value as usize) };
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        // SAFETY: the array is Judy's (invariant).
        let place = NonNull::new(unsafe { JudyLGet(self.0, key as usize, null_mut()) })?;
        // SAFETY: as in `insert`; JudyLGet fails for a damaged array alone.
        Some(unsafe { place.read() } as u64)
    }
    fn remove(&mut self, key: u64) -> bool {
        // SAFETY: the array is Judy's (invariant).
        unsafe { JudyLDel(&mut self.0, key as usize, null_mut()) == 1 }
    }
    fn own_bytes(&mut self) -> Option<usize> {
        // SAFETY: the array is Judy's (invariant).
        Some(unsafe { JudyLMemUsed(self.0) })
    }
}

impl Named for JudyL {
    const NAME: &'static str = "JudyL";
    const ORDERED: bool = true;
}

impl Map for JudyL {
    fn empty() -> Self {
        JudyL(null_mut())
    }

    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        let mut key = 0;
        // SAFETY: the array is Judy's (invariant), `key` a place for its word.
        let mut place = unsafe { JudyLFirst(self.0, &mut key, null_mut()) };
        while let Some(word) = NonNull::new(place) {
            // SAFETY: the place of the word of `key`; nothing changes the array meanwhile.
            each(key as u64, unsafe { word.read() } as u64);
            // SAFETY: as for JudyLFirst.
            place = unsafe { JudyLNext(self.0, &mut key, null_mut()) };
        }
    }
}

impl Drop for JudyL {
    fn drop(&mut self) {
        // SAFETY: the array is Judy's (invariant), and this is its last use.
        unsafe { JudyLFreeArray(&mut self.0, null_mut()) };
    }
}
