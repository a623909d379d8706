//! Pages: the next few objects between two positions of a set or ordered_set, as iterators read
//! them.
//!
//! A page is a batch of the index, which is of one leaf. What is left is given by two positions
//! alone, so nothing is locked, pinned or lent between two pages. Each end of a range may be read.
//!
//! ```text
//!  bounds   [ low ─────────────────────────── high ]
//!  page       ████████                                 forward: `low` moves past it
//!                                         ████         backward: `high` moves before it
//! ```
//!
//! The objects of a page are copies, which are taken one by one. So a caller decodes an object when
//! it uses it, and what it allocates for one is free again before the next one.
//!
//! Invariants:
//! * **PG1** Between two calls, a page refers to nothing that a guard protects: its batch owns all
//!   bytes.
//! * **PG2** While `holds_counts` is set, the page owns one count of each handle in the values of
//!   its batch. It releases them before the batch changes.

use super::range::{move_past, scan_to, start_at, KeyBounds};
use crate::budget::Step;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::raw;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction};
use std::cell::Cell;
use std::ops::Range;

/// Pages with more memory than this, in bytes, aren't kept for others.
const MAX_KEPT_CAPACITY: usize = 256 << 10;

/// Objects that were read at one instant, and were not taken yet. Empty at first.
#[derive(Default)]
pub(crate) struct Page(Option<Box<PageObjects>>);

#[derive(Default)]
struct PageObjects {
    batch: Batch<'static>,
    /// The entries that were not taken.
    left: Range<usize>,
    keypos: usize,
    /// Whether the page owns counts (PG2).
    holds_counts: bool,
    /// The buffer for the unpacked elements of a compressed object.
    plain: Vec<u8>,
}

thread_local! {
    /// The memory of the page that the thread has dropped last.
    static KEPT: Cell<Option<Box<PageObjects>>> = const { Cell::new(None) };
}

impl Page {
    /// The number of objects.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |objects| objects.left.len())
    }

    /// Takes the next object, in the direction in which the page was read.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Stored<'_>> {
        let objects = self.0.as_deref_mut()?;
        let i = objects.left.next()?;
        Some(objects.stored(i))
    }

    /// Takes the last object.
    #[inline]
    pub(crate) fn next_back(&mut self) -> Option<Stored<'_>> {
        let objects = self.0.as_deref_mut()?;
        let i = objects.left.next_back()?;
        Some(objects.stored(i))
    }

    /// Forgets all objects.
    pub(crate) fn clear(&mut self) {
        if let Some(objects) = &mut self.0 {
            objects.clear();
        }
    }

    /// The page without objects, and with memory for some.
    fn emptied(&mut self) -> &mut PageObjects {
        let objects = self.0.get_or_insert_with(|| {
            let kept = KEPT.try_with(Cell::take).ok().flatten();
            kept.unwrap_or_default()
        });
        objects.clear();
        objects
    }
}

impl PageObjects {
    #[inline]
    fn stored(&mut self, i: usize) -> Stored<'_> {
        let (key, value) = self.batch.entry(i);
        Stored::new(key, value, self.keypos, &mut self.plain)
    }

    fn clear(&mut self) {
        self.left = 0..0;
        if std::mem::take(&mut self.holds_counts) {
            (0..self.batch.len()).for_each(|i| raw::release_value(self.batch.value(i)));
        }
    }

    /// Makes all objects of the batch those of the page, which takes counts of their handles. The
    /// caller's guard still protects what the handles refer to.
    fn hold(&mut self) {
        let batch = &self.batch;
        // Few objects have handles: those with long binaries.
        if batch.value_heads().any(|head| raw::has_handles(&[head])) {
            (0..batch.len()).for_each(|i| raw::retain_value(batch.value(i)));
            self.holds_counts = true;
        }
        self.left = 0..batch.len();
    }
}

impl Drop for PageObjects {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let Some(mut objects) = self.0.take() else {
            return;
        };
        objects.clear();
        if objects.batch.capacity() + objects.plain.capacity() <= MAX_KEPT_CAPACITY {
            // A thread that is ending keeps no page.
            let _ = KEPT.try_with(|kept| kept.set(Some(objects)));
        }
    }
}

impl EngineTable {
    /// Fills a page with the next objects between two positions, and moves the bound at that end
    /// past them: about `wanted` objects, or as many as the index reads at once if that is 0.
    /// Then an unordered table reads them in any order, which takes less time. Returns whether
    /// there may be more.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `Busy`. The page is empty then, and the bounds are as before.
    ///
    /// # Consistency
    /// The objects are of one instant. None is read twice.
    pub(crate) fn page(
        &self,
        who: OwnerId,
        bounds: &mut KeyBounds,
        direction: Direction,
        wanted: usize,
        page: &mut Page,
    ) -> Result<Step, Error> {
        let objects = page.emptied();
        self.may_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        let direction = self.scan_direction(direction);
        let (near, far) = bounds.near_and_far(direction);
        let batch = &mut objects.batch;
        (batch.want, batch.any_order) = (wanted, wanted == 0);
        // The objects outside the leaf are copied in the end (PG1). They don't change, so writers
        // may change the leaf meanwhile.
        let step = batch.lend_owned(|batch| loop {
            scan_to(&op, start_at(near), far, direction, batch);
            if batch.done {
                return Step::Done;
            }
            move_past(near, batch, direction);
            // An empty batch isn't the end.
            if !batch.is_empty() {
                return Step::More;
            }
        });
        objects.keypos = self.keypos();
        objects.hold();
        Ok(step)
    }
}
