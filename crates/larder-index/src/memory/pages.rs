//! The source of regions. A region has two megabytes, is aligned, and is on a huge page where the
//! system has any.
//!
//! The system clears a page when it is first touched. This takes a millisecond for a huge page, or
//! several if the system must first make room. It would be the longest wait of an insert. So a
//! thread touches the next regions ahead, and an insert finds its region ready. While few regions
//! are in use, it touches one when the last has little room left (`soon`), so that hardly any
//! memory is unused. Later there is always one ready, and more if more are in use (`wanted`). A
//! region that is given back is returned to the system at once. Its addresses are kept and used
//! again.
//!
//! ```text
//!  map ─→ bare ──────────────────────→ take ─→ in use ─→ give ─→ bare
//!           └─ touch_ahead ─→ ready ──→ take
//! ```
//!
//! Invariants:
//! 1. A region is in one state: bare, ready, in use, or being touched by the thread.
//! 2. A region that isn't in use is all zero: the system has its memory, or only zeros were
//!    written.
//! 3. The lock is never held while pages are touched, which takes milliseconds. It is held during
//!    rare system calls: to map the addresses of sixteen regions, to advise, and to return one that
//!    was ready.
//!
//! Small pages for the first few regions, which need no such pause, were tried. In tables of 65,536
//! rows, which would have been on small pages, everything took a quarter to a half longer.

use crate::sync::Mutex;
use libc::{
    cpu_set_t, getpid, madvise, mmap, munmap, sched_getaffinity, sched_setaffinity, MADV_DONTNEED,
    MADV_HUGEPAGE, MADV_NOHUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE,
};
use parking_lot::Condvar;
use std::mem::MaybeUninit;
use std::ptr::{null_mut, NonNull};
use std::thread::JoinHandle;

/// The size of a region in bytes, and its alignment: those of a huge page.
pub(crate) const REGION: usize = 2 << 20;
/// The number of regions whose addresses are mapped by one system call.
const AT_ONCE: usize = 16;
/// The number of regions in use from which on one is always touched ahead. It is a sixteenth of
/// what is in use.
const ENOUGH: usize = 16;
/// For each of this number of regions in use, one more is touched ahead.
const AHEAD: usize = 64;
/// The maximum number of regions that are touched ahead.
const MOST_AHEAD: usize = 8;
/// The size of a small page in bytes.
const PAGE: usize = 4096;

/// The memory of a region that isn't in use.
struct Vacant(NonNull<u8>);
// SAFETY: The pointer is only an address. The memory at it is used by the holder of the `Vacant`
// alone.
unsafe impl Send for Vacant {}

/// The state, under one lock, which is taken once for hundreds of leaves.
struct Pages {
    /// Regions that were touched, and are zero.
    ready: Vec<Vacant>,
    /// Regions whose memory the system has.
    bare: Vec<Vacant>,
    in_use: usize,
    /// The number of regions that will be needed soon.
    asked: usize,
    /// Whether to use huge pages.
    huge: bool,
    /// Whether the thread that touches regions ahead was started.
    begun: bool,
    /// That thread.
    thread: Option<JoinHandle<()>>,
    /// Whether the thread should end.
    ending: bool,
}

static PAGES: Mutex<Pages> = Mutex::new(Pages {
    ready: Vec::new(),
    bare: Vec::new(),
    in_use: 0,
    asked: 0,
    huge: true,
    begun: false,
    thread: None,
    ending: false,
});
/// Signalled when fewer regions are ready than there should be.
static WANTED: Condvar = Condvar::new();

impl Pages {
    /// The number of regions that should be ready.
    fn wanted(&self) -> usize {
        match self.in_use {
            few if few < ENOUGH => self.asked,
            many => (1 + many / AHEAD).min(MOST_AHEAD),
        }
    }

    /// Lets the thread touch the regions that are needed.
    fn see_to(&mut self) {
        // This is called under the lock whenever a region is taken or requested, so no request is
        // missed.
        if self.ready.len() >= self.wanted() {
            return;
        }
        if self.begun {
            WANTED.notify_one();
        } else {
            self.begun = true;
            let thread = std::thread::Builder::new().name("larder-pages".to_owned());
            // The thread is started once, and again after `end`. Without it, inserts touch their
            // pages themselves.
            self.thread = thread.spawn(touch_ahead).ok();
        }
    }

    fn bare(&mut self) -> Option<Vacant> {
        if self.bare.is_empty() {
            self.bare = map(self.huge)?;
        }
        self.bare.pop()
    }
}

/// Takes a region, which is all zero. Returns `None` if the system has no memory.
pub(crate) fn take() -> Option<NonNull<u8>> {
    let mut pages = PAGES.lock();
    // None is ready: the thread that writes first will touch the pages.
    let region = match pages.ready.pop() {
        Some(region) => region,
        None => pages.bare()?,
    };
    pages.in_use += 1;
    // If any were requested, this is one of them.
    pages.asked = pages.asked.saturating_sub(1);
    pages.see_to();
    Some(region.0)
}

/// The number of bytes of the regions that were touched ahead.
pub(crate) fn ready() -> usize {
    PAGES.lock().ready.len() * REGION
}

/// Requests one more region to be touched ahead, since it will be needed soon.
pub(crate) fn soon() {
    let mut pages = PAGES.lock();
    // This is limited, because several shards may request one at the same time.
    pages.asked = (pages.asked + 1).min(MOST_AHEAD);
    pages.see_to();
}

/// Sets whether regions that are not in use yet, and those to come, use huge pages.
pub(crate) fn set_huge(huge: bool) {
    let mut pages = PAGES.lock();
    pages.huge = huge;
    for region in &pages.bare {
        advise(region.0, REGION, huge);
    }
}

/// Tells the system whether to use huge pages for these bytes.
fn advise(first: NonNull<u8>, bytes: usize, huge: bool) {
    let advice = match huge {
        true => MADV_HUGEPAGE,
        // Without advice, a system may use huge pages. So small pages are requested explicitly.
        false => MADV_NOHUGEPAGE,
    };
    // SAFETY: `map` has mapped these pages. The advice does not change their contents. If the
    // system has no huge pages, the memory is only slower.
    let _ = unsafe { madvise(first.as_ptr().cast(), bytes, advice) };
}

/// Ends the thread that touches regions ahead. It starts again when regions are needed.
pub(crate) fn end() {
    let mut pages = PAGES.lock();
    let Some(thread) = pages.thread.take() else {
        return;
    };
    // The flag is set under the lock, so the thread doesn't miss it before it waits.
    pages.ending = true;
    drop(pages);
    WANTED.notify_one();
    // It doesn't panic; if it had, it would have ended all the same.
    let _ = thread.join();
}

/// Gives a region back, and returns its memory to the system.
///
/// # Safety
/// It came from [`take`], and nobody uses it any more.
pub(crate) unsafe fn give(region: NonNull<u8>) {
    // Do this before the lock is taken: a system call takes long (invariant 3).
    // SAFETY: The caller gives up the region, which is whole pages. They are zero when they are
    // touched again.
    unsafe { clear(region, REGION) };
    let mut pages = PAGES.lock();
    // The setting may have changed while the region was in use.
    advise(region, REGION, pages.huge);
    pages.bare.push(Vacant(region));
    pages.in_use -= 1;
    // The next region won't be needed for long.
    pages.asked = 0;
    // If fewer are in use, fewer should be ready. Return one for each that is given back.
    if pages.ready.len() > pages.wanted() {
        if let Some(Vacant(more)) = pages.ready.pop() {
            // SAFETY: Ready regions are in use by nobody.
            unsafe { clear(more, REGION) };
            pages.bare.push(Vacant(more));
        }
    }
}

/// Returns the memory of whole pages of a region to the system. The pages are zero afterwards.
///
/// # Safety
/// Nobody uses what is in them.
pub(crate) unsafe fn clear(first: NonNull<u8>, bytes: usize) {
    // SAFETY: `map` has mapped these pages, and nobody uses them.
    let given = unsafe { madvise(first.as_ptr().cast(), bytes, MADV_DONTNEED) };
    // The system doesn't take them back, so clear them explicitly.
    if given != 0 {
        // SAFETY: The range is mapped, and nobody uses it.
        unsafe { first.as_ptr().write_bytes(0, bytes) };
    }
}

/// The thread that touches regions ahead.
fn touch_ahead() {
    // A thread inherits the affinity of the thread that starts it, which may be bound to a core.
    // This one should run on another core.
    let mut cores = MaybeUninit::<cpu_set_t>::zeroed();
    // SAFETY:
    // 1. the calls read and write a set of this size;
    // 2. zeros are a set. If the system refuses, the thread stays where it is.
    unsafe {
        if sched_getaffinity(getpid(), size_of::<cpu_set_t>(), cores.as_mut_ptr()) == 0 {
            sched_setaffinity(0, size_of::<cpu_set_t>(), cores.as_ptr());
        }
    }
    let mut pages = PAGES.lock();
    loop {
        // Do this under the lock: the next thread that checks sees consistently whether this one
        // runs.
        if pages.ending {
            pages.ending = false;
            pages.begun = false;
            return;
        }
        let few = pages.ready.len() < pages.wanted();
        // If there are no addresses, wait, too. The thread that takes the next region tries to map
        // some again.
        let Some(region) = few.then(|| pages.bare()).flatten() else {
            WANTED.wait(&mut pages);
            continue;
        };
        // Do this without the lock (invariant 3). The region belongs to this thread until it is
        // ready.
        drop(pages);
        for at in (0..REGION).step_by(PAGE) {
            // SAFETY: The region belongs to this thread.
            // The page is written, because reading it would not make the system provide memory. The
            // write is volatile, so that the compiler keeps it.
            unsafe { region.0.add(at).write_volatile(0) };
        }
        pages = PAGES.lock();
        pages.ready.push(region);
    }
}

/// Maps the addresses of regions, aligned to their size.
fn map(huge: bool) -> Option<Vec<Vacant>> {
    // Map one region more than is used, since an aligned address begins somewhere in the first one.
    let wanted = (AT_ONCE + 1) * REGION;
    let (access, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: This is a new mapping, at an address that the system chooses. It overlaps no other
    // memory.
    let base = unsafe { mmap(null_mut(), wanted, access, flags, -1, 0) };
    if base == MAP_FAILED {
        return None;
    }
    let base = NonNull::new(base.cast::<u8>())?;
    let lead = base.as_ptr().align_offset(REGION);
    let all = AT_ONCE * REGION;
    // SAFETY:
    // 1. Only parts of this mapping are unmapped: what precedes the first multiple of the size, and
    //    what follows the last region. Both are whole pages that nobody knows of.
    // 2. What stays is `AT_ONCE` regions.
    unsafe {
        if lead > 0 && munmap(base.as_ptr().cast(), lead) != 0 {
            return None;
        }
        let first = base.add(lead);
        if munmap(first.add(all).as_ptr().cast(), wanted - all - lead) != 0 {
            return None;
        }
        advise(first, all, huge);
        // Use the lowest address first.
        Some(
            (0..AT_ONCE)
                .rev()
                .map(|i| Vacant(first.add(i * REGION)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the system was told that the region is to be a huge page.
    fn is_advised_huge(region: NonNull<u8>) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let at = region.as_ptr().addr();
        let mut is_here = false;
        for line in maps.lines() {
            // A mapping is a line with its addresses, and then lines with names and values.
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(from), Some(to))) = range.map(|(a, b)| (number(a), number(b))) {
                is_here = (from..to).contains(&at);
            } else if let (true, Some(flags)) = (is_here, line.strip_prefix("VmFlags:")) {
                return flags.split_whitespace().any(|flag| flag == "hg");
            }
        }
        panic!("no mapping has the region");
    }

    #[test]
    fn regions_are_huge_pages_unless_they_are_not_to_be() {
        // A system without huge pages takes no advice.
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        for huge in [false, true] {
            set_huge(huge);
            // More than can be ready from before.
            let regions: Vec<_> = (0..2 * MOST_AHEAD).map(|_| take().unwrap()).collect();
            assert_eq!(is_advised_huge(regions[2 * MOST_AHEAD - 1]), huge);
            for region in regions {
                // SAFETY: The region came from `take`, and is not used any more.
                unsafe { give(region) };
            }
        }
    }

    #[test]
    fn regions_are_zero_each_time_and_aligned() {
        for _ in 0..3 {
            let regions: Vec<_> = (0..AT_ONCE * 2 + 1).map(|_| take().unwrap()).collect();
            for region in regions {
                assert_eq!(region.as_ptr().align_offset(REGION), 0);
                // SAFETY: The region belongs to this test until it is given back.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(region.as_ptr(), REGION);
                    assert!(bytes.iter().all(|b| *b == 0));
                    bytes.fill(7);
                    give(region);
                }
            }
        }
    }
}
