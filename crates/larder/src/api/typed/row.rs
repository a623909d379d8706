//! Rows of typed tables, read in place.

use super::de;
use super::key::OrderedKey;
use super::layout::Layout;
use super::ser::ValueError;
use crate::error::Error;
use crate::raw;
use crate::stored::Stored;
use larder_term::object::{self, ObjectView};
use larder_term::{text, Term, TermRef, View as Opened};
use serde::Deserialize;
use std::any::type_name;
use std::fmt;

/// What an iterator returns for a row.
pub type Row<K, V> = Result<(K, V), Error>;

/// The maximum number of characters of a row in an error.
const SHOWN: usize = 120;

/// A value in place; see [`Typed::with`](super::Typed::with).
#[derive(Clone, Copy)]
pub struct View<'v>(TermRef<'v>);

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'v> View<'v> {
    /// Reads the value as any type that fits: one that borrows, such as `&str`, or one that skips
    /// parts, by `serde::de::IgnoredAny`.
    ///
    /// # Errors
    /// `WrongType`.
    #[inline]
    pub fn read<T: Deserialize<'v>>(self) -> Result<T, Error> {
        de::read(self.0).map_err(|why| wrong_value(self.0, &why, type_name::<T>()))
    }

    /// Reads a field of a tuple or struct, by its place from 0, or an element of a sequence.
    ///
    /// # Errors
    /// `WrongType`, also if there is no such field.
    pub fn field<T: Deserialize<'v>>(self, place: usize) -> Result<T, Error> {
        let field = match self.0.view() {
            Opened::Tuple(tuple) => tuple.get(place),
            Opened::List(list) => list.iter().nth(place),
            _ => None,
        };
        match field {
            Some(field) => View(field).read(),
            None => Err(wrong(&format!("it has no field {place}"), self.0)),
        }
    }

    /// The value's term.
    pub fn term(self) -> TermRef<'v> {
        self.0
    }
}

/// A view of the value of a row that was found under its key. The key is not read.
///
/// # Errors
/// `WrongType` if the row is no pair.
#[inline]
pub(super) fn view(stored: Stored<'_>) -> Result<View<'_>, Error> {
    // Usually the value is all that is stored beside the key.
    match object::beside_key_of_pair(stored.value()) {
        Some(value) => Ok(View(raw::stored_element(value))),
        None => other(stored),
    }
}

/// `view` of a row that is compressed, or whose key is kept beside the value.
#[cold]
fn other(stored: Stored<'_>) -> Result<View<'_>, Error> {
    let object = &stored.view();
    match (object.arity(), object.element(2)) {
        (2, Some(value)) => Ok(View(value)),
        _ => Err(no_pair(object)),
    }
}

#[cold]
fn no_pair(object: &ObjectView<'_>) -> Error {
    let mut bytes = Vec::new();
    object.to_tuple(&mut bytes);
    wrong("it is no pair of a key and a value", raw::stored(&bytes))
}

/// The value of a row that was found under its key.
///
/// # Errors
/// `WrongType`.
#[inline]
pub(super) fn value<V: for<'v> Deserialize<'v>>(stored: Stored<'_>) -> Result<V, Error> {
    view(stored)?.read()
}

/// The key and the value of a row.
///
/// # Errors
/// `WrongType`.
#[inline]
pub(super) fn row<K: OrderedKey, V: for<'v> Deserialize<'v>, O: Layout>(
    stored: Stored<'_>,
) -> Result<(K, V), Error> {
    match parts::<K, O>(&stored) {
        Some((key, value)) => Ok((key, value.read()?)),
        None => opened(&stored.view()),
    }
}

/// The key and the value of a row, and the value's term.
///
/// # Errors
/// `WrongType`.
pub(super) fn with_term<K: OrderedKey, V: for<'v> Deserialize<'v>, O: Layout>(
    stored: Stored<'_>,
) -> Result<(K, V, Term), Error> {
    if let Some((key, value)) = parts::<K, O>(&stored) {
        return Ok((key, value.read()?, Term::from(value.term())));
    }
    let object = stored.view();
    let (key, value) = opened(&object)?;
    // A pair has one element beside its key.
    let term = object.others().next().map(Term::from);
    Ok((key, value, term.unwrap_or_else(Term::nil)))
}

/// The key and the view of the value, if the key can be read from the index key, as most can. The
/// value lies beside it, and is read where it is. `None` for a row that must be opened as a whole.
#[inline]
fn parts<'v, K: OrderedKey, O: Layout>(stored: &Stored<'v>) -> Option<(K, View<'v>)> {
    let value = object::beside_key_of_pair(stored.value())?;
    Some((O::key_of(stored)?, View(raw::stored_element(value))))
}

/// The key and the value of a row that is open.
///
/// # Errors
/// `WrongType`.
pub(super) fn opened<K: OrderedKey, V: for<'v> Deserialize<'v>>(
    object: &ObjectView<'_>,
) -> Result<(K, V), Error> {
    let (2, Some(value)) = (object.arity(), object.others().next()) else {
        return Err(no_pair(object));
    };
    Ok((key(object.key())?, View(value).read()?))
}

/// The key and the value of a row that is a term.
///
/// # Errors
/// `WrongType`.
pub(super) fn of_term<K: OrderedKey, V: for<'v> Deserialize<'v>>(
    row: TermRef<'_>,
) -> Result<(K, V), Error> {
    // Only pairs are rows of a typed table.
    let pair = row.as_tuple().filter(|tuple| tuple.arity() == 2);
    match pair.and_then(|pair| Some((pair.get(0)?, pair.get(1)?))) {
        Some((key_term, value)) => Ok((key(key_term)?, View(value).read()?)),
        None => Err(wrong("it is no pair of a key and a value", row)),
    }
}

#[inline]
fn key<K: OrderedKey>(term: TermRef<'_>) -> Result<K, Error> {
    K::decode_key(term).ok_or_else(|| wrong_key(term, type_name::<K>()))
}

#[cold]
fn wrong_key(term: TermRef<'_>, wanted: &str) -> Error {
    wrong(&format!("it is no key of type {wanted}"), term)
}

#[cold]
fn wrong_value(term: TermRef<'_>, why: &ValueError, wanted: &str) -> Error {
    wrong(&format!("it is no {wanted}: {why}"), term)
}

#[cold]
fn wrong(why: &str, term: TermRef<'_>) -> Error {
    let shown = text::beginning(term, SHOWN);
    Error::WrongType(format!("what is stored has another type: {shown}: {why}").into())
}
