//! Iterators over ranges, from both ends.
//!
//! ```text
//!  low ─▶ front page  │ what was not read yet │ back page  ◀─ high
//!         next ◀──────┘ low'            high' └──────▶ next_back
//! ```
//!
//! 1. Each end reads a page of rows, of one leaf, and returns them one by one. The bound of that
//!    end is moved past the page, so no row is read by both ends. A row is decoded when it is
//!    returned.
//! 2. When nothing is left between the bounds, each end continues with the rows that the other one
//!    has read.
//!
//! Pages are small at first, so that a caller that needs few rows pays for few. Between two pages
//! nothing is locked or pinned.

use super::key::{EncodeKey, OrderedKey};
use super::layout::Ordered;
use super::row::Row;
use super::{bytes, key, row};
use crate::api::Table;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::scan::{KeyBounds, Page, ScanStep, SelectJob};
use crate::stored::Stored;
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// About how many rows the first page has: few, for callers that need no more.
pub(super) const FIRST_PAGE: usize = 16;
/// About how many rows the largest page has.
const LARGEST_PAGE: usize = 512;

/// The rows of a range of keys, in order: [`Typed::range`](super::Typed::range).
pub struct Range<K, V> {
    table: Table,
    /// The part that was not read yet; `None` if there is nothing between the bounds.
    unread: Option<KeyBounds>,
    front: Page,
    /// In the order in which `next_back` returns its rows.
    back: Page,
    /// How many rows were read.
    read: usize,
    rows: PhantomData<fn() -> (K, V)>,
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
            front: Page::default(),
            back: Page::default(),
            read: 0,
            rows: PhantomData,
        }
    }

    /// (1) Reads a page for one end. If that fails, the iteration has ended.
    fn read(&mut self, end: Direction) -> Result<(), Error> {
        // `unread` is empty when the two ends have met. Then there is nothing left to read.
        let Some(bounds) = &mut self.unread else {
            return Ok(());
        };
        // Pages grow, so a long iteration makes few searches. They grow slowly: a caller may stop
        // anywhere, and the rest of the page was read in vain.
        let wanted = (self.read / 4).clamp(FIRST_PAGE, LARGEST_PAGE);
        let page = match end {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        // No row of the page lies between the bounds any more.
        match next_page(&self.table, bounds, end, wanted, page) {
            Ok(step) => {
                self.read += page.len();
                if step != Step::More {
                    self.unread = None;
                }
                Ok(())
            }
            Err(error) => Err(self.ended_by(error)),
        }
    }

    /// The next row from this end, whose page is used up.
    #[cold]
    #[inline(never)]
    fn turn_page(&mut self, end: Direction) -> Option<Row<K, V>> {
        if let Err(error) = self.read(end) {
            return Some(Err(error));
        }
        let (near, far) = match end {
            Direction::Forward => (&mut self.front, &mut self.back),
            Direction::Backward => (&mut self.back, &mut self.front),
        };
        // (2)
        let stored = near.next().or_else(|| far.next_back())?;
        let row = row::row::<_, _, Ordered>(stored);
        Some(row.map_err(|error| self.ended_by(error)))
    }

    /// Ends the iteration with an error.
    #[cold]
    fn ended_by(&mut self, error: Error) -> Error {
        self.unread = None;
        self.front.clear();
        self.back.clear();
        error
    }
}

fn index_bound<Q: EncodeKey + ?Sized>(bound: Bound<&Q>) -> Result<Bound<Vec<u8>>, Error> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(bytes::index_key(key)?),
        Bound::Excluded(key) => Bound::Excluded(bytes::index_key(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// Reads the next page of a range ([`EngineTable::page`]). Waits for lists that are being inserted.
///
/// [`EngineTable::page`]: crate::host::EngineTable::page
pub(super) fn next_page(
    table: &Table,
    bounds: &mut KeyBounds,
    end: Direction,
    wanted: usize,
    page: &mut Page,
) -> Result<Step, Error> {
    let (engine_table, me) = (table.engine_table(), table.me());
    table.patiently(|| engine_table.page(me, bounds, end, wanted, page))
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
        match self.front.next() {
            Some(stored) => {
                let row = row::row::<_, _, Ordered>(stored);
                Some(row.map_err(|error| self.ended_by(error)))
            }
            None => self.turn_page(Direction::Forward),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The next row may be an error, which is the last item.
        let read = self.front.len() + self.back.len();
        (read.min(1), self.unread.is_none().then_some(read))
    }
}

impl<K: OrderedKey, V: DeserializeOwned> DoubleEndedIterator for Range<K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.back.next() {
            Some(stored) => {
                let row = row::row::<_, _, Ordered>(stored);
                Some(row.map_err(|error| self.ended_by(error)))
            }
            None => self.turn_page(Direction::Backward),
        }
    }
}

impl<K: OrderedKey, V: DeserializeOwned> FusedIterator for Range<K, V> {}
