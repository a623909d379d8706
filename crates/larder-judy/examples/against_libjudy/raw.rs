//! The few functions of libJudy that the comparison calls, and the C library's count of its heap.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

#[link(name = "Judy")]
extern "C" {
    fn JudyLIns(array: *mut *mut c_void, index: u64, error: *mut c_void) -> *mut u64;
    fn JudyLGet(array: *const c_void, index: u64, error: *mut c_void) -> *mut u64;
    fn JudyLDel(array: *mut *mut c_void, index: u64, error: *mut c_void) -> c_int;
    fn JudyLFirst(array: *const c_void, index: *mut u64, error: *mut c_void) -> *mut u64;
    fn JudyLNext(array: *const c_void, index: *mut u64, error: *mut c_void) -> *mut u64;
    fn JudyLFreeArray(array: *mut *mut c_void, error: *mut c_void) -> u64;
    fn JudyLMemUsed(array: *const c_void) -> u64;
    fn Judy1Set(array: *mut *mut c_void, index: u64, error: *mut c_void) -> c_int;
    fn Judy1Test(array: *const c_void, index: u64, error: *mut c_void) -> c_int;
    fn Judy1Unset(array: *mut *mut c_void, index: u64, error: *mut c_void) -> c_int;
    fn Judy1First(array: *const c_void, index: *mut u64, error: *mut c_void) -> c_int;
    fn Judy1Next(array: *const c_void, index: *mut u64, error: *mut c_void) -> c_int;
    fn Judy1FreeArray(array: *mut *mut c_void, error: *mut c_void) -> u64;
    fn Judy1MemUsed(array: *const c_void) -> u64;
    fn JudySLIns(array: *mut *mut c_void, index: *const u8, error: *mut c_void) -> *mut u64;
    fn JudySLGet(array: *const c_void, index: *const u8, error: *mut c_void) -> *mut u64;
    fn JudySLDel(array: *mut *mut c_void, index: *const u8, error: *mut c_void) -> c_int;
    fn JudySLFirst(array: *const c_void, index: *mut u8, error: *mut c_void) -> *mut u64;
    fn JudySLNext(array: *const c_void, index: *mut u8, error: *mut c_void) -> *mut u64;
    fn JudySLFreeArray(array: *mut *mut c_void, error: *mut c_void) -> u64;
    fn mallinfo2() -> MallInfo;
}

/// glibc's `struct timespec`.
#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
}

/// Nanoseconds that this thread has run: the processor's time, which others' work does not lengthen
/// but for the caches.
pub fn cpu_time() -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
    let mut time = TimeSpec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the function fills in the struct, as glibc declares it.
    let failed = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert!(failed == 0, "Linux has this clock");
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// glibc's `struct mallinfo2`.
#[repr(C)]
struct MallInfo {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// The bytes of the C heap in use, the allocator's own headers included.
pub fn heap() -> usize {
    // SAFETY: the function only fills in and returns the struct, as glibc declares it.
    let info = unsafe { mallinfo2() };
    info.uordblks + info.hblkhd
}

/// libJudy's JudyL.
pub struct LibL(*mut c_void);
/// libJudy's Judy1.
pub struct Lib1(*mut c_void);
/// libJudy's JudySL.
pub struct LibSl(*mut c_void);

impl LibL {
    pub fn new() -> Self {
        LibL(null_mut())
    }
    pub fn insert(&mut self, key: u64, value: u64) {
        // SAFETY: the array is libJudy's own; without an error struct it returns the value's place
        // or aborts.
        unsafe { *JudyLIns(&mut self.0, key, null_mut()) = value }
    }
    pub fn get(&self, key: u64) -> Option<u64> {
        // SAFETY: as above; null says that the index is missing.
        unsafe { JudyLGet(self.0, key, null_mut()).as_ref().copied() }
    }
    pub fn remove(&mut self, key: u64) -> bool {
        // SAFETY: as above.
        unsafe { JudyLDel(&mut self.0, key, null_mut()) == 1 }
    }
    pub fn walk(&self) -> (u64, u64) {
        let (mut key, mut count, mut sum) = (0, 0, 0u64);
        // SAFETY: as above; the index's place is ours.
        unsafe {
            let mut value = JudyLFirst(self.0, &mut key, null_mut());
            while !value.is_null() {
                (count, sum) = (count + 1, sum.wrapping_add(*value));
                value = JudyLNext(self.0, &mut key, null_mut());
            }
        }
        (count, sum)
    }
    pub fn memory(&self) -> usize {
        // SAFETY: as above.
        unsafe { JudyLMemUsed(self.0) as usize }
    }
}

impl Lib1 {
    pub fn new() -> Self {
        Lib1(null_mut())
    }
    pub fn insert(&mut self, key: u64) -> bool {
        // SAFETY: the array is libJudy's own.
        unsafe { Judy1Set(&mut self.0, key, null_mut()) == 1 }
    }
    pub fn contains(&self, key: u64) -> bool {
        // SAFETY: as above.
        unsafe { Judy1Test(self.0, key, null_mut()) == 1 }
    }
    pub fn remove(&mut self, key: u64) -> bool {
        // SAFETY: as above.
        unsafe { Judy1Unset(&mut self.0, key, null_mut()) == 1 }
    }
    pub fn walk(&self) -> (u64, u64) {
        let (mut key, mut count, mut sum) = (0, 0, 0u64);
        // SAFETY: as above; the index's place is ours.
        unsafe {
            let mut found = Judy1First(self.0, &mut key, null_mut());
            while found == 1 {
                (count, sum) = (count + 1, sum.wrapping_add(key));
                found = Judy1Next(self.0, &mut key, null_mut());
            }
        }
        (count, sum)
    }
    pub fn memory(&self) -> usize {
        // SAFETY: as above.
        unsafe { Judy1MemUsed(self.0) as usize }
    }
}

/// Longer than any key of the comparison, its zero byte included.
pub const LONGEST: usize = 256;

/// A key with its zero byte, checked.
fn terminated(key: &[u8]) -> *const u8 {
    assert!(key.last() == Some(&0) && key.len() <= LONGEST);
    key.as_ptr()
}

impl LibSl {
    pub fn new() -> Self {
        LibSl(null_mut())
    }
    /// Keys come with their zero byte here.
    pub fn insert(&mut self, key: &[u8], value: u64) {
        // SAFETY: the array is libJudy's own; the key ends in a zero byte.
        unsafe { *JudySLIns(&mut self.0, terminated(key), null_mut()) = value }
    }
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        // SAFETY: as above; null says that the key is missing.
        unsafe {
            JudySLGet(self.0, terminated(key), null_mut())
                .as_ref()
                .copied()
        }
    }
    pub fn remove(&mut self, key: &[u8]) -> bool {
        // SAFETY: as above.
        unsafe { JudySLDel(&mut self.0, terminated(key), null_mut()) == 1 }
    }
    pub fn walk(&self) -> (u64, u64) {
        let (mut key, mut count, mut sum) = ([0u8; LONGEST], 0, 0u64);
        // SAFETY: as above; the buffer is longer than any key that was inserted.
        unsafe {
            let mut value = JudySLFirst(self.0, key.as_mut_ptr(), null_mut());
            while !value.is_null() {
                (count, sum) = (count + 1, sum.wrapping_add(*value));
                value = JudySLNext(self.0, key.as_mut_ptr(), null_mut());
            }
        }
        (count, sum)
    }
}

impl Drop for LibL {
    fn drop(&mut self) {
        // SAFETY: the array is libJudy's own, and gone afterwards.
        unsafe { JudyLFreeArray(&mut self.0, null_mut()) };
    }
}

impl Drop for Lib1 {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { Judy1FreeArray(&mut self.0, null_mut()) };
    }
}

impl Drop for LibSl {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { JudySLFreeArray(&mut self.0, null_mut()) };
    }
}
