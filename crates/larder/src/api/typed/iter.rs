//! Iterators over all rows of a table by hash.

use super::key::OrderedKey;
use super::layout::Hashed;
use super::range::{gather, FIRST_PAGE, LARGEST_PAGE};
use super::row::Row;
use crate::api::Table;
use crate::scan::SelectJob;
use larder_index::Direction;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;

/// The rows of a table by hash, in no order: [`Typed::iter`](super::Typed::iter). Rows are read in
/// pages. Between two pages nothing is locked or pinned.
pub struct Iter<K, V> {
    table: Table,
    /// The scan; `None` at its end, and after an error.
    unread: Option<SelectJob>,
    rows: VecDeque<Row<K, V>>,
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
        job.set_limit(Some(self.page));
        self.page = (2 * self.page).min(LARGEST_PAGE);
        let rows = &mut self.rows;
        match gather::<_, _, Hashed>(&self.table, &mut job, |row| rows.push_back(row)) {
            Ok(true) => {}
            Ok(false) => self.unread = Some(job),
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
