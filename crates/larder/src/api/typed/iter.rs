//! Iterators over all rows of a table by hash.

use super::key::OrderedKey;
use super::layout::Hashed;
use super::range::{gather, FIRST_PAGE};
use super::row::Row;
use crate::api::Table;
use crate::scan::KeyBounds;
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::fmt;
use std::iter::FusedIterator;
use std::vec::IntoIter;

/// The rows of a table by hash, in no order: [`Typed::iter`](super::Typed::iter). Rows are read in
/// pages: a few rows at first, for callers that need no more, and then a leaf at a time, as its
/// entries lie. Between two pages nothing is locked or pinned.
pub struct Iter<K, V> {
    table: Table,
    /// The positions that were not read yet; `None` at the end, and after an error.
    unread: Option<KeyBounds>,
    rows: IntoIter<Row<K, V>>,
    /// About how many rows the next page has; 0 for all of a leaf.
    page: usize,
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
            rows: Vec::new().into_iter(),
            page: FIRST_PAGE,
        }
    }

    /// Reads a page.
    #[cold]
    fn read(&mut self) {
        let Some(bounds) = &mut self.unread else {
            return;
        };
        let (end, wanted) = (Direction::Forward, std::mem::take(&mut self.page));
        let (rows, is_more) = gather::<_, _, Hashed>(&self.table, bounds, end, wanted);
        self.rows = rows;
        if !is_more {
            self.unread = None;
        }
    }
}

impl<K: OrderedKey, V: DeserializeOwned> Iterator for Iter<K, V> {
    type Item = Row<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.rows.next() {
            return Some(row);
        }
        self.read();
        self.rows.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let read = self.rows.len();
        (read, self.unread.is_none().then_some(read))
    }
}

impl<K: OrderedKey, V: DeserializeOwned> FusedIterator for Iter<K, V> {}
