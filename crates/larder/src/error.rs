//! The errors of operations.
//!
//! An [`enum@Error`] takes two words, so that results of operations are passed in registers. All
//! that it may hold takes a whole word: a result is then stored and loaded by words. If parts of
//! words were stored, the processor would wait for them when a word is loaded.

#[cfg(feature = "files")]
mod file;

use larder_term::{Atom, TryFromTermError};
use std::fmt;
use std::ops::Deref;

#[cfg(feature = "files")]
pub use file::FileError;

/// The reason why an operation was refused. It has changed nothing, unless the documentation of a
/// job says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The table doesn't exist, or was dropped.
    NoTable,
    /// The access rights of the table don't allow the caller to do this.
    Access,
    /// The table is a snapshot, which can't be written.
    ReadOnly,
    /// The table is a transaction's view. A view has no name, no heir and no owner that can be
    /// changed, and ends with the transaction.
    View,
    /// A list is being inserted into the table, or a write to a full table has found more timers
    /// due than one call processes. Call `EngineTable::help_batch`, then try again.
    Busy,
    /// The call would hold its thread for long, and the host has asked for none of these
    /// (`Local::is_impatient`). Try again on a thread that others don't wait for.
    Long,
    /// Another table has this name.
    AlreadyExists,
    /// The key must be in the table, and is not.
    BadKey,
    /// The object has no element at the key position, or an update would change the key.
    Keypos,
    /// The object has no element at this position.
    Position,
    /// A counter, an increment, a threshold or a set value is not an integer.
    NotInteger,
    /// The element isn't a map.
    NotMap,
    /// The map doesn't have the key of a counter.
    NoMapKey,
    /// Tables of this type don't have the operation.
    TableType,
    /// The table has no ranks.
    Unranked,
    /// The table has no bounds.
    Unbounded,
    /// The table has no limits.
    Unlimited,
    /// Another row has the same value in this unique index.
    NotUnique(IndexName),
    /// The table has no such index, or it is being added.
    NoIndex(IndexName),
    /// Only the table's owner may do this.
    NotOwner,
    /// The new owner already is the owner.
    AlreadyOwner,
    /// The given owner has ended, or never existed.
    NoOwner,
    /// A slot after the last one.
    BadSlot,
    /// The object isn't a tuple.
    NotTuple,
    /// The default object isn't a tuple, or is too short.
    BadDefault,
    /// The continuation doesn't belong to this operation.
    BadContinuation,
    /// The replacement might change the key of an object.
    KeyChanged,
    /// There is no such structure; the text names those that there are.
    UnknownStructure(Reason),
    /// An option is invalid; the text names it.
    BadOption(Reason),
    /// The table is full; the text has the limit.
    Full(Reason),
    /// A size exceeds what the engine can represent.
    SystemLimit(Reason),
    /// A typed table can't read a row, or can't store a key or a value; or a term isn't what it is
    /// to be converted to. The text says which and why.
    WrongType(Reason),
    /// A pattern or match specification doesn't compile, or a text can't be parsed; the text says
    /// where.
    BadSpec(Reason),
    /// A file could not be written or read.
    #[cfg(feature = "files")]
    #[cfg_attr(docsrs, doc(cfg(feature = "files")))]
    File(Box<FileError>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NoTable => "the table does not exist (any more)",
            Error::Access => "the table's access rights do not allow this",
            Error::ReadOnly => "the table is a snapshot, which can't be written",
            Error::View => "this can't be done with a transaction's view of a table",
            Error::Busy => {
                "an operation over many keys is being applied to the table; help with it \
                 and try again"
            }
            Error::Long => "the call would hold its thread for long",
            Error::AlreadyExists => "there is a table of this name already",
            Error::BadKey => "the key is not in the table",
            Error::Keypos => "the key's position is outside the object, or may not be changed",
            Error::Position => "the position is outside the object",
            Error::NotInteger => "not an integer",
            Error::NotMap => "the element is not a map",
            Error::NoMapKey => "the map has no such key",
            Error::TableType => "the operation is not for tables of this type",
            Error::Unranked => {
                "only tables of type ordered_set have ranks, and none on another \
                 structure or with bounds"
            }
            Error::Unbounded => {
                "the table has no bounds: make it with an option such as ttl, if only \
                 without a time"
            }
            Error::Unlimited => {
                "the table has no limits: make it with an option such as max_size, if \
                 only without one"
            }
            Error::NotUnique(index) => {
                let index = index.text();
                return write!(f, "another row has this value in the unique index {index}");
            }
            Error::NoIndex(index) => {
                let index = index.text();
                return write!(f, "the table has no index {index}, or it is not ready");
            }
            Error::NotOwner => "the caller is not the table's owner",
            Error::AlreadyOwner => "the table belongs to that owner already",
            Error::NoOwner => "that owner is not alive",
            Error::BadSlot => "the slot is past the end of the table",
            Error::NotTuple => "an object has to be a tuple",
            Error::BadDefault => {
                "the default object is no tuple, or is too short for the key or a \
                 position"
            }
            Error::BadContinuation => "the continuation does not belong to this operation",
            Error::KeyChanged => "the replacement could change the key of an object",
            Error::UnknownStructure(text)
            | Error::BadOption(text)
            | Error::Full(text)
            | Error::SystemLimit(text)
            | Error::WrongType(text)
            | Error::BadSpec(text) => text,
            #[cfg(feature = "files")]
            Error::File(error) => return error.fmt(f),
        })
    }
}

impl std::error::Error for Error {}

const _: () = assert!(size_of::<Result<usize, Error>>() <= 16);

#[cfg(feature = "files")]
impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Error::File(Box::new(error))
    }
}

impl From<TryFromTermError> for Error {
    fn from(error: TryFromTermError) -> Self {
        Error::WrongType(error.to_string().into())
    }
}

/// The name of an index in an [`enum@Error`].
// A whole word; see the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IndexName(u64);

impl IndexName {
    /// The text of the name.
    pub fn text(self) -> &'static str {
        Atom::from(self).text()
    }
}

impl fmt::Debug for IndexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Atom::from(*self).fmt(f)
    }
}

impl From<Atom> for IndexName {
    fn from(name: Atom) -> Self {
        IndexName(name.id().into())
    }
}

impl From<IndexName> for Atom {
    fn from(name: IndexName) -> Self {
        Atom::trusted(name.0 as u32)
    }
}

/// The text of an [`enum@Error`].
// Boxed twice, as a pointer to a `str` is two words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Box<Box<str>>);

impl Deref for Reason {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Reason(Box::new(text.into()))
    }
}
