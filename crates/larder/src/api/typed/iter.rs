//! Iterators over all rows of a table by hash.

use super::key::OrderedKey;
use super::layout::Hashed;
use super::range::{next_page, FIRST_PAGE};
use super::row::{self, Row};
use crate::api::Table;
use crate::budget::Step;
use crate::error::Error;
use crate::scan::{KeyBounds, Page};
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// The rows of a table by hash, in no order: [`Typed::iter`](super::Typed::iter). Rows are read in
/// pages: a few rows at first, for callers that need no more, and then a leaf at a time, as its
/// entries lie. Between two pages nothing is locked or pinned.
pub struct Iter<K, V> {
    table: Table,
    /// The positions that were not read yet; `None` at the end, and after an error.
    unread: Option<KeyBounds>,
    page: Page,
    /// About how many rows the next page has; 0 for all of a leaf.
    wanted: usize,
    rows: PhantomData<fn() -> (K, V)>,
}

impl<K, V> fmt::Debug for Iter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows of {:?}", self.table)
    }
}

impl<K: OrderedKey, V: DeserializeOwned> Iter<K, V> {
    pub(super) fn all(table: &Table) -> Self {
        Iter {
            table: table.clone(),
            unread: Some(KeyBounds::ALL),
            page: Page::default(),
            wanted: FIRST_PAGE,
            rows: PhantomData,
        }
    }

    /// Reads a page. If that fails, the iteration has ended.
    fn read(&mut self) -> Result<(), Error> {
        let Some(bounds) = &mut self.unread else {
            return Ok(());
        };
        let (end, wanted) = (Direction::Forward, std::mem::take(&mut self.wanted));
        match next_page(&self.table, bounds, end, wanted, &mut self.page) {
            Ok(Step::More) => Ok(()),
            Ok(Step::Done) => {
                self.unread = None;
                Ok(())
            }
            Err(error) => Err(self.ended_by(error)),
        }
    }

    /// The next row, when the page is used up.
    #[cold]
    #[inline(never)]
    fn turn_page(&mut self) -> Option<Row<K, V>> {
        if let Err(error) = self.read() {
            return Some(Err(error));
        }
        let row = row::row::<_, _, Hashed>(self.page.next()?);
        Some(row.map_err(|error| self.ended_by(error)))
    }

    /// Ends the iteration with an error.
    #[cold]
    fn ended_by(&mut self, error: Error) -> Error {
        self.unread = None;
        self.page.clear();
        error
    }
}

impl<K: OrderedKey, V: DeserializeOwned> Iterator for Iter<K, V> {
    type Item = Row<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.page.next() {
            Some(stored) => {
                let row = row::row::<_, _, Hashed>(stored);
                Some(row.map_err(|error| self.ended_by(error)))
            }
            None => self.turn_page(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The next row may be an error, which is the last item.
        let read = self.page.len();
        (read.min(1), self.unread.is_none().then_some(read))
    }
}

impl<K: OrderedKey, V: DeserializeOwned> FusedIterator for Iter<K, V> {}
