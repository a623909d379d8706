//! A place that has an `Arc`, which many read while one replaces it.
//!
//! ```text
//!   slot --> [ count | value ]      the slot has one count
//!              |
//!              +-- readers borrow the value for as long as their guard lives, and write nothing
//! ```
//!
//! Invariants:
//! 1. What a slot points to came from an `Arc`, and the slot has one of its counts.
//! 2. A count that a shared slot gives up is dropped after all guards that are alive then.
//!
//! A slot has one bit beside the pointer, the *mark*, for lists whose nodes are marked before they
//! are taken out.
//!
//! Guards must come from [`larder_index::pin`], as for all indexes: those of another collector
//! protect nothing here.

use crossbeam_epoch::{Atomic, Guard, Shared};
use larder_index::sync::{planted, point, Fault};
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;

/// A place for an `Arc`, or for none.
pub(crate) struct Slot<T>(Atomic<T>);

// SAFETY: a slot is an `Arc<T>` that is handed out as `&T` and `Arc<T>` to all threads.
unsafe impl<T: Send + Sync> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

/// Makes what a slot keeps of an `Arc`, and its mark.
fn share<'g, T>(new: Option<Arc<T>>, marked: bool) -> Shared<'g, T> {
    let pointer = new.map_or(std::ptr::null(), Arc::into_raw);
    Shared::from(pointer).with_tag(usize::from(marked))
}

/// Gives back the count that `share` kept.
///
/// # Safety
/// The pointer came from `share`, and its count was not given back before.
unsafe fn unshare<T>(kept: Shared<'_, T>) -> Option<Arc<T>> {
    let pointer = kept.with_tag(0).as_raw();
    // SAFETY: it came from `Arc::into_raw`, in `share`, and its count is this caller's.
    (!pointer.is_null()).then(|| unsafe { Arc::from_raw(pointer) })
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// A slot with this in it.
    pub(crate) fn new(value: Option<Arc<T>>) -> Self {
        let slot = Atomic::null();
        // Ordering: Relaxed, nobody else has the slot yet.
        slot.store(share(value, false), std::sync::atomic::Ordering::Relaxed);
        Slot(slot)
    }

    /// What is in the slot, and its mark. Wait-free.
    #[inline]
    pub(crate) fn load_marked<'g>(&'g self, guard: &'g Guard) -> (Option<&'g T>, bool) {
        point();
        // Ordering: Acquire, pairs with the release in `swap` and `replace_if`: the value is seen
        // as it was made.
        let kept = self.0.load(Acquire, guard);
        // SAFETY: 1. By invariant 1 the value is alive while the slot has its count. 2. Once the
        // slot gives it up it lives, by invariant 2, until `guard`, which is alive now, is dropped;
        // a slot that is dropped is borrowed by nobody for 'g.
        let value = unsafe { kept.with_tag(0).as_ref() };
        (value, kept.tag() == 1)
    }

    /// What is in the slot. Wait-free.
    #[inline]
    pub(crate) fn load<'g>(&'g self, guard: &'g Guard) -> Option<&'g T> {
        self.load_marked(guard).0
    }

    /// A count of what is in the slot.
    pub(crate) fn share(&self, guard: &Guard) -> Option<Arc<T>> {
        self.share_marked(guard).0
    }

    /// As `share`, and the mark.
    pub(crate) fn share_marked(&self, guard: &Guard) -> (Option<Arc<T>>, bool) {
        point();
        // Ordering: Acquire, as in `load_marked`. The pointer is the slot's own: one made of a `&T`
        // may not reach the counts before the value.
        let kept = self.0.load(Acquire, guard);
        let pointer = kept.with_tag(0).as_raw();
        // SAFETY: `pointer` came from `Arc::into_raw` (invariant 1), and a count is alive while
        // `guard` is (invariant 2): one more is counted, and given to the new `Arc`.
        let value = (!pointer.is_null()).then(|| unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        });
        (value, kept.tag() == 1)
    }

    /// Puts another value in the slot. Unmarked.
    pub(crate) fn store(&self, new: Option<Arc<T>>, guard: &Guard) {
        point();
        // Ordering: AcqRel, pairs with the load of readers, and with who stored what goes now.
        let old = self.0.swap(share(new, false), AcqRel, guard);
        self.retire(old, guard);
    }

    /// Puts another value and mark in the slot if it has this value and mark; says whether it did.
    pub(crate) fn replace_if(
        &self,
        current: (Option<&T>, bool),
        new: (Option<Arc<T>>, bool),
        guard: &Guard,
    ) -> bool {
        let pointer = current.0.map_or(std::ptr::null(), std::ptr::from_ref);
        point();
        // Ordering: Relaxed, the exchange below looks again. What the slot gives up must be its own
        // pointer, not one made of a `&T`.
        let kept = self.0.load(std::sync::atomic::Ordering::Relaxed, guard);
        if kept.with_tag(0).as_raw() != pointer || (kept.tag() == 1) != current.1 {
            return false;
        }
        let new = share(new.0, new.1);
        point();
        // Ordering: AcqRel and Acquire, pair with the load of readers, and with who stored what is
        // there.
        match self.0.compare_exchange(kept, new, AcqRel, Acquire, guard) {
            Ok(_) => {
                self.retire(kept, guard);
                true
            }
            Err(error) => {
                // SAFETY: `new` was made above and came into no slot.
                drop(unsafe { unshare(error.new) });
                false
            }
        }
    }

    /// Drops a count that the slot had, later.
    fn retire(&self, old: Shared<'_, T>, guard: &Guard) {
        if old.with_tag(0).is_null() {
            return;
        }
        let pointer = old.with_tag(0).as_raw();
        if planted(Fault::EarlyDrop) {
            // SAFETY: none: this is the fault, for the quarantine of the model checker's builds to
            // show.
            return drop(unsafe { Arc::from_raw(pointer) });
        }
        // SAFETY: 1. The count was the slot's, which has another value now, so that it is dropped
        // once. 2. `T` is Send, Sync and 'static, so that any thread may drop it at any time. 3.
        // Who loaded it did so under a guard that was alive before this is deferred.
        unsafe {
            guard.defer_unchecked(move || drop(Arc::from_raw(pointer)));
        }
    }

    /// Takes the value out of a slot that nobody else has.
    pub(crate) fn take(&mut self) -> Option<Arc<T>> {
        let slot = std::mem::replace(&mut self.0, Atomic::null());
        // SAFETY: `&mut self`: nobody else has the slot, whose count goes to the caller.
        unsafe {
            let guard = crossbeam_epoch::unprotected();
            // Ordering: Relaxed, as nobody else has the slot.
            unshare(slot.load(std::sync::atomic::Ordering::Relaxed, guard))
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else has the slot, whose count is dropped once.
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
        // What was deferred is done in the end, once no other test has an old guard.
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
