//! Iterators over ranges, from both ends.
//!
//! ```text
//!  low ─▶ front page  │ what was not read yet │ back page  ◀─ high
//!         next ◀──────┘ low'            high' └──────▶ next_back
//! ```
//!
//! 1. Each end reads a page of rows, of one leaf, and returns them one by one. The bound of that
//!    end is moved past the page, so no row is read by both ends.
//! 2. When nothing is left between the bounds, each end continues with the rows that the other one
//!    has read.
//!
//! Pages are small at first, so that a caller that needs few rows pays for few. Between two pages
//! nothing is locked or pinned.

use super::key::{EncodeKey, OrderedKey};
use super::layout::{Layout, Ordered};
use super::row::Row;
use super::{bytes, key, row};
use crate::api::Table;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::scan::{KeyBounds, ScanStep, SelectJob};
use crate::stored::Stored;
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::vec::IntoIter;

/// About how many rows the first page has: few, for callers that need no more.
pub(super) const FIRST_PAGE: usize = 16;
/// About how many rows the largest page has.
const LARGEST_PAGE: usize = 512;

/// The rows of a range of keys, in order: [`Typed::range`](super::Typed::range).
pub struct Range<K, V> {
    table: Table,
    /// The part that was not read yet; `None` if there is nothing between the bounds.
    unread: Option<KeyBounds>,
    front: IntoIter<Row<K, V>>,
    /// In the order in which `next_back` returns them.
    back: IntoIter<Row<K, V>>,
    /// How many rows were read.
    read: usize,
}

impl<K, V> fmt::Debug for Range<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range of {:?}", self.table)
    }
}

impl<K: OrderedKey, V: DeserializeOwned> Range<K, V> {
    pub(super) fn new<Q: EncodeKey + ?Sized>(
        table: &Table,
        range: &impl RangeBounds<Q>,
    ) -> Result<Self, Error> {
        const { key::found_by::<K, Q>() };
        // Bounds are converted once, so an invalid one is an error before anything is read.
        let low = index_bound(range.start_bound())?;
        let high = index_bound(range.end_bound())?;
        Ok(Range {
            unread: Some(KeyBounds { low, high }),
            ..Self::all(table)
        })
    }

    pub(super) fn all(table: &Table) -> Self {
        Range {
            table: table.clone(),
            unread: Some(KeyBounds::ALL),
            front: Vec::new().into_iter(),
            back: Vec::new().into_iter(),
            read: 0,
        }
    }

    /// (1) Reads a page for one end.
    #[cold]
    fn read(&mut self, end: Direction) {
        // `unread` is empty when the two ends have met. Then there is nothing left to read.
        let Some(bounds) = &mut self.unread else {
            return;
        };
        // Pages grow, so a long iteration makes few searches. They grow slowly: a caller may stop
        // anywhere, and the rest of the page was read in vain.
        let wanted = (self.read / 4).clamp(FIRST_PAGE, LARGEST_PAGE);
        // No row of the page lies between the bounds any more.
        let (rows, is_more) = gather::<_, _, Ordered>(&self.table, bounds, end, wanted);
        self.read += rows.len();
        match end {
            Direction::Forward => self.front = rows,
            Direction::Backward => self.back = rows,
        }
        if !is_more {
            self.unread = None;
        }
    }
}

fn index_bound<Q: EncodeKey + ?Sized>(bound: Bound<&Q>) -> Result<Bound<Vec<u8>>, Error> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(bytes::index_key(key)?),
        Bound::Excluded(key) => Bound::Excluded(bytes::index_key(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// The rows of the next page (see [`EngineTable::page`]), and whether there may be more. A row of
/// other types is an error, and ends the scan.
///
/// [`EngineTable::page`]: crate::host::EngineTable::page
pub(super) fn gather<K: OrderedKey, V: DeserializeOwned, O: Layout>(
    table: &Table,
    bounds: &mut KeyBounds,
    end: Direction,
    wanted: usize,
) -> (IntoIter<Row<K, V>>, bool) {
    let mut rows = Vec::with_capacity(wanted);
    let mut is_over = false;
    let (engine_table, me) = (table.engine_table(), table.me());
    let step = table.patiently(|| {
        engine_table.page(me, bounds, end, wanted, |stored| {
            // The scan can't be stopped in the middle of a page. Rows after a row of other types
            // are not reported: the iterator has ended.
            is_over = is_over || !row::push::<_, _, O>(stored, &mut rows);
        })
    });
    let is_more = match step {
        Ok(step) => !is_over && step == Step::More,
        Err(error) => {
            rows.push(Err(error));
            false
        }
    };
    (rows.into_iter(), is_more)
}

/// All rows of a scan, up to its limit.
///
/// # Errors
/// `NoTable`, `WrongType`.
pub(super) fn all_of<K: OrderedKey, V: DeserializeOwned>(
    table: &Table,
    mut job: SelectJob,
) -> Result<Vec<(K, V)>, Error> {
    let mut rows = Vec::new();
    let mut visit = |stored: Stored<'_>| rows.push(row::row::<_, _, Ordered>(stored));
    let mut slice = || job.step_each(&mut Budget::unlimited(), &mut visit);
    while table.patiently(&mut slice)? == ScanStep::More {}
    rows.into_iter().collect()
}

impl<K: OrderedKey, V: DeserializeOwned> Iterator for Range<K, V> {
    type Item = Row<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.front.next() {
            return Some(row);
        }
        self.read(Direction::Forward);
        // (2)
        self.front.next().or_else(|| self.back.next_back())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let read = self.front.len() + self.back.len();
        (read, self.unread.is_none().then_some(read))
    }
}

impl<K: OrderedKey, V: DeserializeOwned> DoubleEndedIterator for Range<K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.back.next() {
            return Some(row);
        }
        self.read(Direction::Backward);
        self.back.next().or_else(|| self.front.next_back())
    }
}

impl<K: OrderedKey, V: DeserializeOwned> FusedIterator for Range<K, V> {}
