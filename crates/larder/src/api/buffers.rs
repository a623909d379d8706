//! Index keys and objects of terms, in buffers that a thread keeps from call to call. So an
//! operation on one key allocates nothing for them.
//!
//! A buffer is taken out while it is used. A nested call finds none, and allocates its own.

use crate::error::Error;
use crate::table::EngineTable;
use larder_term::object::ObjectBuf;
use larder_term::TermRef;
use std::cell::Cell;
use std::mem::take;
use std::ops::Deref;

/// Larger buffers are dropped.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

thread_local! {
    static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static OBJECT: Cell<ObjectBuf> = const { Cell::new(ObjectBuf::new()) };
}

/// An index key.
pub(super) struct KeyBuf(Vec<u8>);

impl KeyBuf {
    /// The index key of a term, in the form of a table.
    pub(super) fn new(table: &EngineTable, key: TermRef<'_>) -> Self {
        // A thread that is ending keeps no buffer.
        let mut bytes = KEY.try_with(Cell::take).unwrap_or_default();
        bytes.clear();
        table.encode_key(key, &mut bytes);
        KeyBuf(bytes)
    }
}

impl Deref for KeyBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for KeyBuf {
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_KEPT_CAPACITY {
            let _ = KEY.try_with(|kept| kept.set(take(&mut self.0)));
        }
    }
}

/// An object of a table.
pub(super) struct TupleBuf(ObjectBuf);

impl TupleBuf {
    /// A tuple as an object of a table.
    ///
    /// # Errors
    /// `NotTuple`; `Keypos` if the tuple is too short to have a key.
    pub(super) fn new(table: &EngineTable, tuple: TermRef<'_>) -> Result<Self, Error> {
        let mut object = TupleBuf(OBJECT.try_with(Cell::take).unwrap_or_default());
        table.encode_object(tuple, &mut object.0)?;
        Ok(object)
    }

    /// The tuple of a key and a value as an object of a table.
    ///
    /// # Errors
    /// `Keypos` if the key isn't the first element of the table's tuples.
    pub(super) fn pair(
        table: &EngineTable,
        key: TermRef<'_>,
        value: TermRef<'_>,
    ) -> Result<Self, Error> {
        if table.keypos() != 1 {
            return Err(Error::Keypos);
        }
        let mut object = TupleBuf(OBJECT.try_with(Cell::take).unwrap_or_default());
        let mut enc = table.encoder(&mut object.0, 2);
        enc.key(|e| e.term(key));
        enc.element(|e| e.term(value));
        let finished = enc.finish();
        debug_assert!(finished);
        Ok(object)
    }
}

impl Deref for TupleBuf {
    type Target = ObjectBuf;

    fn deref(&self) -> &ObjectBuf {
        &self.0
    }
}

impl Drop for TupleBuf {
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_KEPT_CAPACITY {
            // The counts that the object has of its handles are released now.
            self.0.clear();
            let _ = OBJECT.try_with(|kept| kept.set(take(&mut self.0)));
        }
    }
}
