//! A slot: an `Arc` that many threads can read while others replace it.
//!
//! ```text
//!   slot --> [ count | value ]      the slot owns one count
//!              |
//!              +-- readers borrow the value while their guard exists, and write nothing
//! ```
//!
//! Invariants:
//! * **RS1** The pointer of a slot came from an `Arc`, of which the slot owns one count.
//! * **RS2** When a shared slot gives up a count, the count is dropped after all guards that exist
//!   then.
//!
//! A slot has one tag bit, the *mark*. Lists mark a node before they unlink it.
//!
//! Guards must come from [`larder_index::pin`]. Those of another collector don't protect values
//! here.

use crossbeam_epoch::{Atomic, Guard, Shared};
use larder_index::sync::{planted, point, Fault};
use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;

/// An optional `Arc`, with a mark.
pub(crate) struct Slot<T>(Atomic<T>);

// SAFETY: a slot owns an `Arc<T>`, which any thread may get as `&T` or as `Arc<T>`.
unsafe impl<T: Send + Sync> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

// An empty slot is a word of zeros: this doesn't compile if it is anything else.
// SAFETY: `transmute` compares the sizes, and any bits are a number.
const _: () = assert!(unsafe { std::mem::transmute::<Atomic<u64>, usize>(Atomic::null()) } == 0);

/// Converts an `Arc` and a mark to the content of a slot, which owns the count.
fn share<'g, T>(new: Option<Arc<T>>, marked: bool) -> Shared<'g, T> {
    let pointer = new.map_or(std::ptr::null(), Arc::into_raw);
    Shared::from(pointer).with_tag(usize::from(marked))
}

/// Converts the content of a slot to the `Arc` again.
///
/// # Safety
/// The pointer came from `share`, and the caller takes over its count, which is done once.
unsafe fn unshare<T>(kept: Shared<'_, T>) -> Option<Arc<T>> {
    let pointer = kept.with_tag(0).as_raw();
    // SAFETY: it came from `Arc::into_raw`, in `share`, and the caller owns its count.
    (!pointer.is_null()).then(|| unsafe { Arc::from_raw(pointer) })
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// A slot with this value, unmarked.
    pub(crate) fn new(value: Option<Arc<T>>) -> Self {
        let slot = Atomic::null();
        // Ordering: Relaxed, no other thread has the slot yet.
        slot.store(share(value, false), std::sync::atomic::Ordering::Relaxed);
        Slot(slot)
    }

    /// This number of empty slots. The system clears the memory of many when they are first used,
    /// page by page, so this takes no time in proportion to their number.
    ///
    /// # Panics
    /// If there are more than an address space has.
    pub(crate) fn empty(n: usize) -> Box<[Self]> {
        if n == 0 {
            return Box::new([]);
        }
        let layout = Layout::array::<Self>(n).expect("capacity overflow");
        // SAFETY:
        // 1. The layout's size is not zero, since `n` and the size of a slot aren't.
        // 2. The memory is that of `n` slots by the global allocator, as a box has it. Zeros are
        //    empty slots (see above).
        unsafe {
            let slots = alloc_zeroed(layout).cast::<Self>();
            if slots.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(slots, n))
        }
    }

    /// The value and the mark. Wait-free.
    #[inline]
    pub(crate) fn load_marked<'g>(&'g self, guard: &'g Guard) -> (Option<&'g T>, bool) {
        point();
        // Ordering: Acquire, pairs with the Release half in `store` and `replace_if`: the value is
        // seen initialised.
        let kept = self.0.load(Acquire, guard);
        // SAFETY:
        // 1. The value lives while the slot owns its count (RS1).
        // 2. If the slot gives up the count, the value lives until `guard` is dropped (RS2).
        // 3. The slot isn't dropped during 'g, since it is borrowed.
        let value = unsafe { kept.with_tag(0).as_ref() };
        (value, kept.tag() == 1)
    }

    /// The value. Wait-free.
    #[inline]
    pub(crate) fn load<'g>(&'g self, guard: &'g Guard) -> Option<&'g T> {
        self.load_marked(guard).0
    }

    /// The value, as an `Arc` with a count of its own.
    pub(crate) fn share(&self, guard: &Guard) -> Option<Arc<T>> {
        self.share_marked(guard).0
    }

    /// Like `share`. Also returns the mark.
    pub(crate) fn share_marked(&self, guard: &Guard) -> (Option<Arc<T>>, bool) {
        point();
        // Ordering: Acquire, as in `load_marked`. Use the pointer of the slot: one that is made of
        // a `&T` must not be used to access the counts, which are in front of the value.
        let kept = self.0.load(Acquire, guard);
        let pointer = kept.with_tag(0).as_raw();
        // SAFETY: `pointer` came from `Arc::into_raw` (RS1), and a count exists while `guard` does
        // (RS2). The new `Arc` gets a count of its own.
        let value = (!pointer.is_null()).then(|| unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        });
        (value, kept.tag() == 1)
    }

    /// Replaces the value, and clears the mark.
    pub(crate) fn store(&self, new: Option<Arc<T>>, guard: &Guard) {
        point();
        // Ordering: AcqRel. Release pairs with the loads of readers, Acquire with the store of the
        // old value, which is dropped later.
        let old = self.0.swap(share(new, false), AcqRel, guard);
        self.retire(old, guard);
    }

    /// Replaces the value and the mark if they are these. Returns whether it did.
    pub(crate) fn replace_if(
        &self,
        current: (Option<&T>, bool),
        new: (Option<Arc<T>>, bool),
        guard: &Guard,
    ) -> bool {
        let pointer = current.0.map_or(std::ptr::null(), std::ptr::from_ref);
        point();
        // Ordering: Relaxed, the exchange below checks again. This load is needed because the old
        // pointer, which is retired, must be that of the slot, and not one made of a `&T`.
        let kept = self.0.load(std::sync::atomic::Ordering::Relaxed, guard);
        if kept.with_tag(0).as_raw() != pointer || (kept.tag() == 1) != current.1 {
            return false;
        }
        let new = share(new.0, new.1);
        point();
        // Ordering: AcqRel on success, as in `store`. Acquire on failure.
        match self.0.compare_exchange(kept, new, AcqRel, Acquire, guard) {
            Ok(_) => {
                self.retire(kept, guard);
                true
            }
            Err(error) => {
                // SAFETY: `new` was made above, and isn't in a slot.
                drop(unsafe { unshare(error.new) });
                false
            }
        }
    }

    /// Drops a count that the slot has given up, when no reader is left (RS2).
    fn retire(&self, old: Shared<'_, T>, guard: &Guard) {
        if old.with_tag(0).is_null() {
            return;
        }
        let pointer = old.with_tag(0).as_raw();
        if planted(Fault::EarlyDrop) {
            // SAFETY: none. This is the planted fault, which the quarantine of the model checker's
            // builds detects.
            return drop(unsafe { Arc::from_raw(pointer) });
        }
        // SAFETY:
        // 1. The slot owned the count, and has another value now. So the count is dropped once.
        // 2. `T` is Send, Sync and 'static, so any thread may drop it at any time.
        // 3. A reader that has loaded the pointer has a guard that was pinned before this is
        //    deferred.
        unsafe {
            guard.defer_unchecked(move || drop(Arc::from_raw(pointer)));
        }
    }

    /// Takes the value out. No other thread has the slot.
    pub(crate) fn take(&mut self) -> Option<Arc<T>> {
        let slot = std::mem::replace(&mut self.0, Atomic::null());
        // SAFETY: `&mut self` shows that no other thread has the slot. Its count goes to the
        // caller.
        unsafe {
            let guard = crossbeam_epoch::unprotected();
            // Ordering: Relaxed, as nobody else has the slot.
            unshare(slot.load(std::sync::atomic::Ordering::Relaxed, guard))
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` shows that no other thread has the slot. Its count is dropped once.
        unsafe {
            let guard = crossbeam_epoch::unprotected();
            // Ordering: Relaxed, as nobody else has the slot.
            drop(unshare(
                self.0.load(std::sync::atomic::Ordering::Relaxed, guard),
            ));
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use larder_index::pin;

    /// Under Miri this once found counts reached through a pointer that was made of a `&T`.
    #[test]
    fn counts_come_out_even() {
        let values: Vec<_> = (0..4u64).map(Arc::new).collect();
        {
            let mut slot = Slot::new(Some(values[0].clone()));
            let guard = pin();
            assert_eq!(slot.load(&guard), Some(&0));
            slot.store(Some(values[1].clone()), &guard);
            let one = slot.share(&guard).unwrap();
            assert!(Arc::ptr_eq(&one, &values[1]));
            assert!(!slot.replace_if((Some(&*values[0]), false), (None, false), &guard));
            let new = (Some(values[2].clone()), true);
            assert!(slot.replace_if((Some(&*one), false), new, &guard));
            assert_eq!(slot.load_marked(&guard), (Some(&2), true));
            assert!(!slot.replace_if((Some(&*values[2]), false), (None, false), &guard));
            drop(guard);
            assert!(Arc::ptr_eq(&slot.take().unwrap(), &values[2]));
            assert_eq!(slot.load(&pin()), None);
            slot.store(Some(values[3].clone()), &pin());
        }
        // Deferred work is done in the end, once no other test has an old guard.
        for _ in 0..20_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let mut guard = pin();
            guard.flush();
            guard.repin();
            if values.iter().all(|value| Arc::strong_count(value) == 1) {
                return;
            }
        }
        panic!(
            "{:?}",
            values.iter().map(Arc::strong_count).collect::<Vec<_>>()
        );
    }

    #[test]
    fn slots_that_are_made_together_are_empty() {
        let value = Arc::new(7u64);
        let mut few = Slot::<u64>::empty(3);
        few[1] = Slot::new(Some(value.clone()));
        let guard = pin();
        let seen: Vec<_> = few.iter().map(|slot| slot.load_marked(&guard)).collect();
        assert_eq!(seen, [(None, false), (Some(&7), false), (None, false)]);
        drop((guard, few));
        assert!(Arc::strong_count(&value) == 1 && Slot::<u64>::empty(0).is_empty());
    }

    #[test]
    fn readers_see_whole_values() {
        let slot = Slot::new(Some(Arc::new(vec![0u64; 8])));
        let rounds = if cfg!(miri) { 30 } else { 3000 };
        std::thread::scope(|scope| {
            for t in 0..2 {
                let slot = &slot;
                scope.spawn(move || {
                    for i in 0..rounds {
                        slot.store(Some(Arc::new(vec![i * 2 + t; 8])), &pin());
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..rounds {
                    let guard = pin();
                    let value = slot.load(&guard).unwrap();
                    assert!(value.iter().all(|n| *n == value[0]));
                }
            });
        });
    }
}
