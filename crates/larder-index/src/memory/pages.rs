//! Where regions come from: two megabytes each, aligned, each on a huge page where the system gives
//! any.
//!
//! The system clears a page when it is first touched, which takes a millisecond for a huge one, or
//! several if it must make room first: the longest that an insert would ever wait. So a thread
//! touches the next regions ahead, and an insert finds its region ready: while there are few, one
//! when the last has little room left (`soon`), so that hardly any memory waits; then always one,
//! and more the more are in use (`wanted`). What is given back goes to the system at once;
//! addresses are kept and used again.
//!
//! ```text
//!  map ─→ bare ──────────────────────→ take ─→ in use ─→ give ─→ bare
//!           └─ touch_ahead ─→ ready ──→ take
//! ```
//!
//! Invariants:
//! 1. A region is in one place: bare, ready, in use, or the thread's that touches it.
//! 2. A region that isn't in use is all zero: its memory is the system's, or was touched with zeros
//!    alone.
//! 3. The lock is never held while pages are touched, which takes milliseconds. It is held for rare
//!    calls of the system: to ask for the addresses of sixteen regions, and to give back one that
//!    was ready.
//!
//! Small pages for the first few regions, which would be touched without a pause, were tried: in
//! tables of 65,536 rows, which would have lain there, everything took a quarter to a half longer.

use crate::sync::Mutex;
use parking_lot::Condvar;
use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};
use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::ptr::{null_mut, NonNull};
use std::thread::JoinHandle;

/// Bytes of a region, and their alignment: those of a huge page.
pub(crate) const REGION: usize = 2 << 20;
/// Regions whose addresses the system is asked for at once.
const AT_ONCE: usize = 16;
/// Regions in use from which on one is touched ahead, a sixteenth more than there is.
const ENOUGH: usize = 16;
/// For so many regions in use one more is touched ahead.
const AHEAD: usize = 64;
/// The most that are touched ahead.
const MOST_AHEAD: usize = 8;
/// Bytes of a small page.
const PAGE: usize = 4096;

/// Two megabytes that are nobody's.
struct Vacant(NonNull<u8>);
// SAFETY: an address, of memory that only its holder uses.
unsafe impl Send for Vacant {}

/// What is there, under one lock, which is taken once for hundreds of leaves.
struct Pages {
    /// Touched, and cleared.
    ready: Vec<Vacant>,
    /// Addresses alone: the system has the memory.
    bare: Vec<Vacant>,
    in_use: usize,
    /// Regions that will be wanted soon.
    asked: usize,
    /// Whether regions are to be huge pages.
    huge: bool,
    /// Whether the thread that touches regions ahead was begun.
    begun: bool,
    /// That thread.
    thread: Option<JoinHandle<()>>,
    /// Whether it is to end.
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
/// Fewer regions are ready than there should be.
static WANTED: Condvar = Condvar::new();

impl Pages {
    /// How many should be ready.
    fn wanted(&self) -> usize {
        match self.in_use {
            few if few < ENOUGH => self.asked,
            many => (1 + many / AHEAD).min(MOST_AHEAD),
        }
    }

    /// Has the thread touch what is wanted.
    fn see_to(&mut self) {
        // Called under the lock whenever a region is taken or asked for: no wish is missed.
        if self.ready.len() >= self.wanted() {
            return;
        }
        if self.begun {
            WANTED.notify_one();
        } else {
            self.begun = true;
            let thread = std::thread::Builder::new().name("larder-pages".to_owned());
            // It is begun once, and again after `end`. Without it inserts touch their pages
            // themselves.
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

/// A region, all zero; None if the system has none.
pub(crate) fn take() -> Option<NonNull<u8>> {
    let mut pages = PAGES.lock();
    // None that is ready: its pages are touched by whoever writes there first.
    let region = match pages.ready.pop() {
        Some(region) => region,
        None => pages.bare()?,
    };
    pages.in_use += 1;
    // It is one of those that were asked for, if any were.
    pages.asked = pages.asked.saturating_sub(1);
    pages.see_to();
    Some(region.0)
}

/// Bytes of the regions that were touched ahead.
pub(crate) fn ready() -> usize {
    PAGES.lock().ready.len() * REGION
}

/// One more region will be taken soon: it is touched ahead.
pub(crate) fn soon() {
    let mut pages = PAGES.lock();
    // Bounded: several shards may ask at once.
    pages.asked = (pages.asked + 1).min(MOST_AHEAD);
    pages.see_to();
}

/// Whether regions that nobody has taken yet are to be huge pages, and those to come.
pub(crate) fn set_huge(huge: bool) {
    let mut pages = PAGES.lock();
    pages.huge = huge;
    for region in &pages.bare {
        advise(region.0, REGION, huge);
    }
}

/// Says whether these bytes are to be huge pages.
fn advise(first: NonNull<u8>, bytes: usize, huge: bool) {
    let advice = match huge {
        true => Advice::LinuxHugepage,
        // A system may make huge pages of what is not said to be small.
        false => Advice::LinuxNoHugepage,
    };
    // SAFETY: `map` got these pages; their contents stay. Without huge pages everything works, only
    // slower.
    let _ = unsafe { madvise(first.as_ptr().cast(), bytes, advice) };
}

/// Ends the thread that touches regions ahead. It begins anew when regions are wanted.
pub(crate) fn end() {
    let mut pages = PAGES.lock();
    let Some(thread) = pages.thread.take() else {
        return;
    };
    pages.ending = true;
    drop(pages);
    WANTED.notify_one();
    // It doesn't panic; if it had, it would have ended all the same.
    let _ = thread.join();
}

/// Gives a region back, and its memory to the system.
///
/// # Safety
/// It came from [`take`], and nobody uses it any more.
pub(crate) unsafe fn give(region: NonNull<u8>) {
    // Before the lock: a call of the system takes long (invariant 3).
    // SAFETY: the caller's promise: whole pages that nobody uses. They are zero when they are
    // touched again.
    unsafe { clear(region, REGION) };
    let mut pages = PAGES.lock();
    pages.bare.push(Vacant(region));
    pages.in_use -= 1;
    // It will be long until the next one is taken.
    pages.asked = 0;
    // Fewer in use want fewer ready: one goes for each that comes back.
    if pages.ready.len() > pages.wanted() {
        if let Some(Vacant(more)) = pages.ready.pop() {
            // SAFETY: nobody uses what is ready.
            unsafe { clear(more, REGION) };
            pages.bare.push(Vacant(more));
        }
    }
}

/// Gives the memory of whole pages of a region to the system, which has zeros in their place.
///
/// # Safety
/// Nobody uses what is in them.
pub(crate) unsafe fn clear(first: NonNull<u8>, bytes: usize) {
    // SAFETY: `map` got these pages, and nobody uses them.
    let given = unsafe { madvise(first.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
    // A system that doesn't take them back: they are cleared by hand.
    if given.is_err() {
        // SAFETY: so many bytes can be written, and nobody uses them.
        unsafe { first.as_ptr().write_bytes(0, bytes) };
    }
}

/// What the thread does that touches regions ahead.
fn touch_ahead() {
    // A thread may run where the one may that began it, which may be bound to a core; this one is
    // to run beside it.
    if let Ok(cores) = sched_getaffinity(Some(getpid())) {
        // If the system refuses, it runs where it is.
        let _ = sched_setaffinity(None, &cores);
    }
    let mut pages = PAGES.lock();
    loop {
        // Under the lock: whoever looks next finds it begun, or not.
        if pages.ending {
            pages.ending = false;
            pages.begun = false;
            return;
        }
        let few = pages.ready.len() < pages.wanted();
        // Without addresses it waits, too: the thread that takes the next region asks for them
        // again.
        let Some(region) = few.then(|| pages.bare()).flatten() else {
            WANTED.wait(&mut pages);
            continue;
        };
        // Not under the lock (invariant 3). The region is this thread's until it is ready.
        drop(pages);
        for at in (0..REGION).step_by(PAGE) {
            // SAFETY: the region is this thread's. A write, and volatile, for the system gives
            // memory for that alone.
            unsafe { region.0.add(at).write_volatile(0) };
        }
        pages = PAGES.lock();
        pages.ready.push(region);
    }
}

/// Addresses of regions, on a whole multiple of their size.
fn map(huge: bool) -> Option<Vec<Vacant>> {
    // One region more than is used: somewhere in the first one a multiple begins.
    let wanted = (AT_ONCE + 1) * REGION;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address of the system's choice, that has nothing to do with any
    // other.
    let base = unsafe { mmap_anonymous(null_mut(), wanted, access, MapFlags::PRIVATE).ok()? };
    let base = NonNull::new(base.cast::<u8>())?;
    let lead = base.as_ptr().align_offset(REGION);
    let all = AT_ONCE * REGION;
    // SAFETY: 1. what is unmapped is the part of this mapping before the first multiple and the one
    // after the last region, whole pages that nobody knows of; 2. the rest stays, and is `AT_ONCE`
    // regions.
    unsafe {
        if lead > 0 {
            munmap(base.as_ptr().cast(), lead).ok()?;
        }
        let first = base.add(lead);
        munmap(first.add(all).as_ptr().cast(), wanted - all - lead).ok()?;
        advise(first, all, huge);
        // The lowest address is used first.
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
                // SAFETY: from `take`, and nobody uses it.
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
                // SAFETY: two megabytes that are this test's until they are given back.
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
