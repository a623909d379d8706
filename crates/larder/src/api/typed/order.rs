//! The two kinds of typed tables. A kind is a type, so that what needs an order exists only for
//! tables that have one.

use super::iter::Iter;
use super::key::OrderedKey;
use super::layout::{Hashed, Layout, Ordered};
use super::range::Range;
use super::row::Row;
use crate::api::Table;
use serde::de::DeserializeOwned;

/// How a typed table arranges its rows: [`Ordered`] or [`Hashed`].
pub trait Order: Layout {
    /// The iterator over all rows.
    type Iter<K: OrderedKey, V: DeserializeOwned>: Iterator<Item = Row<K, V>>;

    #[doc(hidden)]
    fn all<K: OrderedKey, V: DeserializeOwned>(table: &Table) -> Self::Iter<K, V>;
}

impl Order for Ordered {
    type Iter<K: OrderedKey, V: DeserializeOwned> = Range<K, V>;

    fn all<K: OrderedKey, V: DeserializeOwned>(table: &Table) -> Range<K, V> {
        Range::all(table)
    }
}

impl Order for Hashed {
    type Iter<K: OrderedKey, V: DeserializeOwned> = Iter<K, V>;

    fn all<K: OrderedKey, V: DeserializeOwned>(table: &Table) -> Iter<K, V> {
        Iter::all(table)
    }
}
