//! Iterators over all rows of a table by hash.

use super::key::OrderedKey;
use super::layout::Hashed;
use super::range::{gather, FIRST_PAGE};
use super::row::Row;
use crate::api::Table;
use crate::scan::SelectJob;
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;

/// The rows of a table by hash, in no order: [`Typed::iter`](super::Typed::iter). Rows are read in
/// pages: a few rows at first, for callers that need no more, and then a leaf at a time, as its
/// entries lie. Between two pages nothing is locked or pinned.
pub struct Iter<K, V> {
    table: Table,
    /// The scan; `None` at its end, and after an error.
    unread: Option<SelectJob>,
    rows: VecDeque<Row<K, V>>,
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
        let mut rows = VecDeque::new();
        let job = table.engine_table().each(table.me(), Direction::Forward);
        // An error is returned in place of the first row.
        let unread = job.map_err(|error| rows.push_back(Err(error))).ok();
        Iter {
            table: table.clone(),
            unread,
            rows,
            page: FIRST_PAGE,
        }
    }

    /// Reads a page.
    #[cold]
    fn read(&mut self) {
        let Some(mut job) = self.unread.take() else {
            return;
        };
        let (wanted, rows) = (std::mem::take(&mut self.page), &mut self.rows);
        match gather::<_, _, Hashed>(&self.table, &mut job, wanted, |row| rows.push_back(row)) {
            Ok(true) => self.unread = Some(job),
            Ok(false) => {}
            Err(error) => rows.push_back(Err(error)),
        }
    }
}

impl<K: OrderedKey, V: DeserializeOwned> Iterator for Iter<K, V> {
    type Item = Row<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            self.read();
        }
        self.rows.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let read = self.rows.len();
        (read, self.unread.is_none().then_some(read))
    }
}

impl<K: OrderedKey, V: DeserializeOwned> FusedIterator for Iter<K, V> {}
