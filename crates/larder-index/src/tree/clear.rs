//! Removing all entries whose positions begin alike, leaf by leaf.

use super::Tree;
use crate::raw::leaf::Locked;
use crate::raw::outside::Handle;
use crate::raw::sought::Sought;
use crate::raw::words::Torn;
use crate::route::{End, Found, Route, Seek};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

impl<R: Route> Tree<R> {
    /// Removes all entries whose positions begin so, and calls `f` with the value of each, in
    /// order; gives how many there were. Each leaf's entries go at one instant. Nobody else writes
    /// to these positions meanwhile.
    ///
    /// 1. Go to the leaf that has the next of them, and lock it.
    /// 2. Remove its own. A leaf that has no others is emptied at once.
    /// 3. A leaf that is mostly empty then merges with its neighbour, as after any removal.
    /// 4. On from the leaf's upper fence, unless what begins so ended in the leaf.
    pub(crate) fn remove_within(
        &self,
        guard: &Guard,
        within: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let (mut cursor, mut gone) = (within.to_vec(), 0);
        loop {
            // (1)
            let found = self.route.find_fenced(Seek::At(&cursor), End::High, guard);
            let Some(Found { leaf, fence }) = found else {
                return gone;
            };
            let Ok((mut locked, _)) = leaf.lock() else {
                continue;
            };
            // (2)
            let own = those_within(&locked, within).expect("the lock's holder reads nothing torn");
            let ends = own.end < locked.len();
            gone += own.len();
            let handles = take_out(&mut locked, own, f);
            // (3)
            if locked.used() < self.shared.config.most / 4 {
                self.tidy(guard, Sought::new(&cursor), locked);
            } else {
                drop(locked);
            }
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            // (4)
            match fence {
                Some(high) if !ends && high.starts_with(within) => cursor = high,
                _ => return gone,
            }
        }
    }
}

/// Which entries of a leaf have positions that begin so.
fn those_within(leaf: &Locked<'_>, within: &[u8]) -> Result<Range<usize>, Torn> {
    let view = leaf.view();
    let (first, _) = view.search_any(within)?;
    let Some(sought) = view.behind_prefix(within) else {
        return Ok(first..first);
    };
    let mut end = first;
    while end < view.len() && view.begins_with(end, sought)? {
        end += 1;
    }
    Ok(first..end)
}

/// Removes some entries of a leaf; gives their handles, which the caller retires.
fn take_out(
    leaf: &mut Locked<'_>,
    range: Range<usize>,
    f: &mut dyn FnMut(&[u8]),
) -> SmallVec<[Handle; 8]> {
    let mut handles = SmallVec::new();
    for i in range.clone() {
        let record = leaf.record_of(i);
        f(leaf.value(i, &record));
        handles.extend(leaf.handle(&record));
    }
    if range.len() == leaf.len() {
        if !range.is_empty() {
            leaf.clear();
        }
        return handles;
    }
    for i in range.rev() {
        let record = leaf.record_of(i);
        leaf.remove(i, &record);
    }
    handles
}
