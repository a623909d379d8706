//! The source of regions. A region has two megabytes, is aligned, and is on a huge page where the
//! system has any.
//!
//! The system clears a page when it is first touched. For a huge page this takes 0.2 ms, several if
//! the system must first make room, and 20 if the host of a virtual machine must supply the memory.
//! It would be the longest wait of an insert. So a thread pre-faults the next regions, and an
//! insert finds its region ready. While few regions are in use, it touches one when the last has
//! little room left (`request`), so that hardly any memory is unused. Later, and where touches take
//! long, there is always one ready, and more if more are in use (`wanted`). A region that is given
//! back is returned to the system at once. Its addresses are kept and used again.
//!
//! If no region is ready, the insert takes an unbacked one and touches it itself. If touches take
//! long (`LONG_TOUCH`), it takes one on small pages, and waits for one of them at a time.
//!
//! ```text
//!  map ─→ unbacked ───────────────────→ take ─→ in use ─→ give ─→ unbacked
//!             └─ prefault ──→ ready ──→ take
//! ```
//!
//! Invariants:
//! * **M12** A region is in one state: unbacked, ready, in use, or being touched by the thread.
//! * **M13** A region that isn't in use is all zero: the system has its memory, or only zeros were
//!   written.
//! * **M14** The lock is never held while pages are touched, which takes milliseconds. It is held
//!   during rare system calls: to map the addresses of sixteen regions, and to return one that was
//!   ready.
//! * **M15** A mapping is changed by no call while a region of it is touched: the call would wait
//!   for the touch. So a region is on huge or small pages for good, and mappings don't merge:
//!   addresses without access lie between them.

use crate::sync::Mutex;
use libc::{
    cpu_set_t, getpid, madvise, mmap, mprotect, munmap, sched_getaffinity, sched_setaffinity,
    MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE,
    PROT_NONE, PROT_READ, PROT_WRITE,
};
use parking_lot::Condvar;
use std::mem::MaybeUninit;
use std::ptr::{null_mut, NonNull};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The size of a region in bytes, and its alignment: those of a huge page.
pub(crate) const REGION: usize = 2 << 20;
/// The number of regions whose addresses are mapped by one system call.
const REGIONS_PER_MAPPING: usize = 16;
/// From this number of regions in use on, one is always kept ready: at most a sixteenth more
/// memory.
const ALWAYS_READY_FROM: usize = 16;
/// For each of this number of regions in use, one more is pre-faulted.
const IN_USE_PER_READY: usize = 64;
/// The maximum number of regions that are pre-faulted.
const MOST_READY: usize = 8;
/// From this time on, a touch of a region takes too long to be done by an insert.
const LONG_TOUCH: Duration = Duration::from_micros(750);
/// The size of a small page in bytes.
const PAGE: usize = 4096;

/// A region. Its memory is used by the holder alone, or as the holder allows.
pub(crate) struct Region {
    pub(crate) first: NonNull<u8>,
    /// Whether it is on a huge page, where the system has any.
    huge: bool,
}
// SAFETY: The pointer is only an address. The memory at it is used as the holder of the `Region`
// allows.
unsafe impl Send for Region {}

/// The state, under one lock, which is taken once for hundreds of leaves.
struct Pages {
    /// Regions that were touched, and are zero.
    ready: Vec<Region>,
    /// Regions whose memory the system has, for huge and for small pages.
    unbacked_huge: Vec<Region>,
    unbacked_small: Vec<Region>,
    in_use: usize,
    /// The number of regions that will be needed soon.
    requested: usize,
    /// Whether to use huge pages.
    huge: bool,
    /// How long the thread's last touch of a region took.
    last_touch: Duration,
    /// When the thread began the touch that it is at.
    touching_since: Option<Instant>,
    /// Whether the thread that pre-faults regions is there.
    has_thread: bool,
    /// That thread, until `end` waits for it.
    thread: Option<JoinHandle<()>>,
    /// Whether the thread should end.
    ending: bool,
}

static PAGES: Mutex<Pages> = Mutex::new(Pages::new());
/// Signalled when fewer regions are ready than there should be, or the thread should end.
static WANTED: Condvar = Condvar::new();

impl Pages {
    const fn new() -> Self {
        Pages {
            ready: Vec::new(),
            unbacked_huge: Vec::new(),
            unbacked_small: Vec::new(),
            in_use: 0,
            requested: 0,
            huge: true,
            last_touch: Duration::ZERO,
            touching_since: None,
            has_thread: false,
            thread: None,
            ending: false,
        }
    }

    /// Takes a region, or `None` if the system has no memory.
    fn take(&mut self) -> Option<Region> {
        self.ready.pop().or_else(|| {
            // None is ready: the thread that writes first will touch the pages.
            self.unbacked(self.huge && !self.is_touch_long())
        })
    }

    /// Whether a touch of a region presently takes too long for an insert.
    fn is_touch_long(&self) -> bool {
        let current = self.touching_since.map(|start| start.elapsed());
        self.last_touch.max(current.unwrap_or_default()) >= LONG_TOUCH
    }

    /// The number of regions that should be ready.
    fn wanted(&self) -> usize {
        match self.in_use {
            few if few < ALWAYS_READY_FROM && !self.is_touch_long() => self.requested,
            many => (1 + many / IN_USE_PER_READY).min(MOST_READY),
        }
    }

    /// Wakes or starts the thread, if it has regions to touch.
    fn wake_thread(&mut self) {
        // This is called under the lock whenever a region is taken or requested, so no request is
        // missed.
        if self.ready.len() >= self.wanted() {
            return;
        }
        if self.has_thread {
            WANTED.notify_one();
            return;
        }
        let thread = std::thread::Builder::new().name("larder-pages".to_owned());
        // If it can't be started, inserts touch their pages, and the next request tries again.
        self.thread = thread.spawn(prefault as fn()).ok();
        self.has_thread = self.thread.is_some();
    }

    fn all_unbacked(&mut self, huge: bool) -> &mut Vec<Region> {
        match huge {
            true => &mut self.unbacked_huge,
            false => &mut self.unbacked_small,
        }
    }

    /// A region that isn't backed, preferably of this kind: of the other one if the system has no
    /// more addresses.
    fn unbacked(&mut self, huge: bool) -> Option<Region> {
        if self.all_unbacked(huge).is_empty() {
            match map(huge) {
                Some(regions) => *self.all_unbacked(huge) = regions,
                None => return self.all_unbacked(!huge).pop(),
            }
        }
        self.all_unbacked(huge).pop()
    }
}

/// Takes a region, which is all zero. Returns `None` if the system has no memory.
pub(crate) fn take() -> Option<Region> {
    let mut pages = PAGES.lock();
    let region = pages.take()?;
    pages.in_use += 1;
    // If any were requested, this is one of them.
    pages.requested = pages.requested.saturating_sub(1);
    pages.wake_thread();
    Some(region)
}

/// The number of bytes of the regions that were pre-faulted.
pub(crate) fn ready() -> usize {
    PAGES.lock().ready.len() * REGION
}

/// Requests one more region to be pre-faulted, since it will be needed soon.
pub(crate) fn request() {
    let mut pages = PAGES.lock();
    // This is limited, because several shards may request one at the same time.
    pages.requested = (pages.requested + 1).min(MOST_READY);
    pages.wake_thread();
}

/// Sets whether regions that are touched from now on use huge pages.
pub(crate) fn set_huge(huge: bool) {
    PAGES.lock().huge = huge;
}

/// Ends the thread that pre-faults regions. It starts again when regions are needed.
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
pub(crate) unsafe fn give(region: Region) {
    // Do this before the lock is taken: a system call takes long (M14).
    // SAFETY: The region came from `take`, and the caller gives it up. It is whole pages.
    unsafe { clear(region.first, REGION) };
    let mut pages = PAGES.lock();
    pages.all_unbacked(region.huge).push(region);
    pages.in_use -= 1;
    // The shard that gives this one back needs its next region later. Others may need theirs.
    pages.requested = pages.requested.saturating_sub(1);
    // If fewer are in use, fewer should be ready. Return one for each that is given back.
    if pages.ready.len() > pages.wanted() {
        if let Some(more) = pages.ready.pop() {
            // SAFETY: The region was ready, so nobody uses it.
            unsafe { clear(more.first, REGION) };
            pages.all_unbacked(more.huge).push(more);
        }
    }
}

/// Returns the memory of whole pages of a region to the system. The pages are zero afterwards.
///
/// # Safety
/// 1. They are in a region that came from [`take`] or is ready.
/// 2. Nobody uses what is in them.
pub(crate) unsafe fn clear(first: NonNull<u8>, bytes: usize) {
    // SAFETY: Regions are mapped (1), and nobody uses these pages (2).
    let given = unsafe { madvise(first.as_ptr().cast(), bytes, MADV_DONTNEED) };
    // The system doesn't take them back, so clear them explicitly.
    if given != 0 {
        // SAFETY: As above.
        unsafe { first.as_ptr().write_bytes(0, bytes) };
    }
}

/// The thread that pre-faults regions.
fn prefault() {
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
            pages.has_thread = false;
            return;
        }
        let few = pages.ready.len() < pages.wanted();
        let huge = pages.huge;
        // If there are no addresses, wait, too. The thread that takes the next region tries to map
        // some again.
        let Some(region) = few.then(|| pages.unbacked(huge)).flatten() else {
            WANTED.wait(&mut pages);
            continue;
        };
        // Do this without the lock (M14). The region belongs to this thread until it is ready.
        let start = Instant::now();
        pages.touching_since = Some(start);
        drop(pages);
        for at in (0..REGION).step_by(PAGE) {
            // SAFETY: The region belongs to this thread.
            // The page is written, because reading it would not make the system provide memory. The
            // write is volatile, so that the compiler keeps it.
            unsafe { region.first.add(at).write_volatile(0) };
        }
        pages = PAGES.lock();
        pages.touching_since = None;
        pages.last_touch = start.elapsed();
        pages.ready.push(region);
    }
}

/// Maps the addresses of regions, aligned to their size.
fn map(huge: bool) -> Option<Vec<Region>> {
    let all = REGIONS_PER_MAPPING * REGION;
    // Without access, and one region more than is used: an aligned address begins somewhere in the
    // first one. What is left before and after keeps two mappings apart (M15).
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    // SAFETY: This is a new mapping, at an address that the system chooses. It overlaps no other
    // memory.
    let base = unsafe { mmap(null_mut(), all + REGION, PROT_NONE, flags, -1, 0) };
    if base == MAP_FAILED {
        return None;
    }
    let base = NonNull::new(base.cast::<u8>())?;
    let advice = match huge {
        true => MADV_HUGEPAGE,
        // Without advice, a system may use huge pages. So small pages are requested explicitly.
        false => MADV_NOHUGEPAGE,
    };
    // SAFETY:
    // 1. The first multiple of the size is in the first region, so the mapping has `all` bytes
    //    from there on. They are whole pages that nobody knows of.
    // 2. The advice doesn't change contents. Where the system has no huge pages it fails, and the
    //    memory is only slower.
    unsafe {
        let first = base.add(base.align_offset(REGION));
        if mprotect(first.as_ptr().cast(), all, PROT_READ | PROT_WRITE) != 0 {
            munmap(base.as_ptr().cast(), all + REGION);
            return None;
        }
        let _ = madvise(first.as_ptr().cast(), all, advice);
        let region = |i| Region {
            first: first.add(i * REGION),
            huge,
        };
        // Use the lowest address first.
        Some((0..REGIONS_PER_MAPPING).rev().map(region).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the system was told that the region is to be a huge page.
    fn is_advised_huge(region: &Region) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let at = region.first.addr().get();
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
    fn regions_are_on_huge_pages_unless_they_are_not_to_be() {
        // A system without huge pages takes no advice.
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        // Its own, in which no thread touches regions. What it maps stays mapped.
        let mut pages = Pages::new();
        for huge in [true, false, true] {
            pages.huge = huge;
            let region = pages.take().unwrap();
            assert_eq!((is_advised_huge(&region), region.huge), (huge, huge));
            pages.all_unbacked(huge).push(region);
        }
    }

    #[test]
    fn a_region_that_is_not_ready_is_on_small_pages_if_touches_take_long() {
        // As above.
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        let mut pages = Pages::new();
        let is_huge = |pages: &mut Pages| is_advised_huge(&pages.take().unwrap());
        assert!(is_huge(&mut pages));
        assert_eq!(pages.wanted(), 0);
        pages.last_touch = LONG_TOUCH;
        assert_eq!(pages.wanted(), 1);
        assert!(!is_huge(&mut pages));
        pages.last_touch = Duration::ZERO;
        // However late the next line is.
        pages.touching_since = Some(Instant::now() + Duration::from_secs(60));
        assert!(is_huge(&mut pages));
        pages.touching_since = Some(Instant::now() - LONG_TOUCH);
        assert!(!is_huge(&mut pages));
        // A region that is ready was touched, so it stays as it is.
        let ready = pages.unbacked(true).unwrap();
        pages.ready.push(ready);
        assert!(is_huge(&mut pages));
        assert!(!is_huge(&mut pages));
    }

    #[test]
    fn regions_are_zero_each_time_and_aligned() {
        for _ in 0..3 {
            let regions: Vec<_> = (0..REGIONS_PER_MAPPING * 2 + 1)
                .map(|_| take().unwrap())
                .collect();
            for region in regions {
                assert_eq!(region.first.align_offset(REGION), 0);
                // SAFETY: The region belongs to this test until it is given back.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(region.first.as_ptr(), REGION);
                    assert!(bytes.iter().all(|b| *b == 0));
                    bytes.fill(7);
                    give(region);
                }
            }
        }
    }
}
