//! Entries: the place of a key, with or without a value.

use super::change::Next;
use super::key::OrderedKey;
use super::layout::Ordered;
use super::order::Order;
use super::Typed;
use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// The place of a key in a table, empty or not: [`Typed::entry`]. It holds no lock. The changes
/// that are requested take effect at one instant, when the entry is consumed.
pub struct Entry<'t, K, V, O = Ordered, F = fn(&mut V)> {
    table: &'t Typed<K, V, O>,
    key: K,
    modify: Option<F>,
}

impl<K: OrderedKey, V: Serialize + DeserializeOwned, O: Order> Typed<K, V, O> {
    /// Returns the place of a key, to insert or change its value.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let hits = Larder::new().typed::<String, u64>("hits")?;
    /// assert_eq!(hits.entry("/".into()).or_insert(0)?, 0);
    /// assert_eq!(hits.entry("/".into()).and_modify(|n| *n += 1).or_insert(1)?, 1);
    /// assert_eq!(hits.get("/")?, Some(1));
    /// # Ok(()) }
    /// ```
    pub fn entry(&self, key: K) -> Entry<'_, K, V, O> {
        Entry {
            table: self,
            key,
            modify: None,
        }
    }
}

impl<'t, K, V, O, F> Entry<'t, K, V, O, F>
where
    K: OrderedKey,
    V: Serialize + DeserializeOwned,
    O: Order,
    F: FnMut(&mut V),
{
    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// If there is a value when the entry is consumed, changes it by `f`. `f` is called again if
    /// another thread changes the value meanwhile.
    pub fn and_modify<G: FnMut(&mut V)>(self, mut f: G) -> Entry<'t, K, V, O, impl FnMut(&mut V)> {
        let Entry {
            table,
            key,
            mut modify,
        } = self;
        // Several calls of `and_modify` make all of their changes, in order.
        let both = move |value: &mut V| {
            modify.iter_mut().for_each(|before| before(value));
            f(value);
        };
        Entry {
            table,
            key,
            modify: Some(both),
        }
    }

    /// Inserts `value` if there is none. Returns the value that is there then. Atomic, like
    /// [`Typed::compute`].
    ///
    /// # Errors
    /// Those of [`Typed::compute`].
    pub fn or_insert(self, value: V) -> Result<V, Error> {
        self.or_insert_with(|| value)
    }

    /// Like `or_insert` with the result of `f`, which is called once, and only if there is no
    /// value.
    ///
    /// # Errors
    /// Those of [`Typed::compute`].
    pub fn or_insert_with(mut self, f: impl FnOnce() -> V) -> Result<V, Error> {
        // `f` may only be called once, but the change may be repeated. So its result is kept for
        // the next attempt.
        let (mut f, mut default, mut made) = (Some(f), None, None);
        self.table.change(&self.key, |old, then| {
            match (old, &mut self.modify) {
                (None, _) => {
                    default = default.take().or_else(|| f.take().map(|f| f()));
                    default
                        .iter()
                        .try_for_each(|value| then(Next::Put(value)))?;
                    made = None;
                }
                (Some(value), None) => {
                    then(Next::Keep)?;
                    made = Some(value);
                }
                (Some(mut value), Some(modify)) => {
                    modify(&mut value);
                    then(Next::Put(&value))?;
                    made = Some(value);
                }
            }
            Ok(())
        })?;
        // Either the default was inserted, or another value was found.
        made.or(default).ok_or(Error::BadKey)
    }

    /// Like `or_insert` with the default of the type.
    ///
    /// # Errors
    /// Those of [`Typed::compute`].
    pub fn or_default(self) -> Result<V, Error>
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Makes the change of `and_modify`, and nothing if there is no value. Returns the value that
    /// is there then.
    ///
    /// # Errors
    /// Those of [`Typed::compute`].
    pub fn or_nothing(mut self) -> Result<Option<V>, Error> {
        let mut made = None;
        self.table.change(&self.key, |old, then| {
            made = old;
            match (&mut made, &mut self.modify) {
                (Some(value), Some(modify)) => {
                    modify(value);
                    then(Next::Put(value))
                }
                _ => then(Next::Keep),
            }
        })?;
        Ok(made)
    }
}
