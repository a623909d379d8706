//! The errors of operations.
//!
//! An [`enum@Error`] takes two words, so that results of operations are passed in registers.

use larder_term::{Atom, TryFromTermError};
use std::fmt;
use std::ops::Deref;
use thiserror::Error;

/// The reason why an operation was refused. It has changed nothing, unless the documentation of a
/// job says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The table doesn't exist, or was dropped.
    #[error("the table does not exist (any more)")]
    NoTable,
    /// The access rights of the table don't allow the caller to do this.
    #[error("the table's access rights do not allow this")]
    Access,
    /// The table is a snapshot, which can't be written.
    #[error("the table is a snapshot, which can't be written")]
    ReadOnly,
    /// The table is a transaction's view. A view has no name, no heir and no owner that can be
    /// changed, and ends with the transaction.
    #[error("this can't be done with a transaction's view of a table")]
    View,
    /// A list is being inserted into the table. Call `Table::help_batch`, then try again.
    #[error(
        "an operation over many keys is being applied to the table; help with it and try again"
    )]
    Busy,
    /// Another table has this name.
    #[error("there is a table of this name already")]
    AlreadyExists,
    /// The key must be in the table, and is not.
    #[error("the key is not in the table")]
    BadKey,
    /// The object has no element at the key position, or an update would change the key.
    #[error("the key's position is outside the object, or may not be changed")]
    Keypos,
    /// The object has no element at this position.
    #[error("the position is outside the object")]
    Position,
    /// A counter, an increment, a threshold or a set value is not an integer.
    #[error("not an integer")]
    NotInteger,
    /// The element isn't a map.
    #[error("the element is not a map")]
    NotMap,
    /// The map doesn't have the key of a counter.
    #[error("the map has no such key")]
    NoMapKey,
    /// Tables of this type don't have the operation.
    #[error("the operation is not for tables of this type")]
    TableType,
    /// The table has no ranks.
    #[error(
        "only tables of type ordered_set have ranks, and none on another structure or with bounds"
    )]
    Unranked,
    /// The table has no bounds.
    #[error("the table has no bounds: make it with an option such as ttl, if only without a time")]
    Unbounded,
    /// The table has no limits.
    #[error(
        "the table has no limits: make it with an option such as max_size, if only without one"
    )]
    Unlimited,
    /// Another row has the same value in this unique index.
    #[error("another row has this value in the unique index {}", .0.text())]
    NotUnique(Atom),
    /// The table has no such index, or it is being added.
    #[error("the table has no index {}, or it is not ready", .0.text())]
    NoIndex(Atom),
    /// Only the table's owner may do this.
    #[error("the caller is not the table's owner")]
    NotOwner,
    /// The new owner already is the owner.
    #[error("the table belongs to that owner already")]
    AlreadyOwner,
    /// The given owner has ended, or never existed.
    #[error("that owner is not alive")]
    NoOwner,
    /// A slot behind the last one.
    #[error("the slot is past the end of the table")]
    BadSlot,
    /// The object isn't a tuple.
    #[error("an object has to be a tuple")]
    NotTuple,
    /// The default object isn't a tuple, or is too short.
    #[error("the default object is no tuple, or is too short for the key or a position")]
    BadDefault,
    /// The continuation doesn't belong to this operation.
    #[error("the continuation does not belong to this operation")]
    BadContinuation,
    /// The replacement might change the key of an object.
    #[error("the replacement could change the key of an object")]
    KeyChanged,
    /// There is no such structure; the text names those that there are.
    #[error("{0}")]
    UnknownStructure(Reason),
    /// An option is invalid; the text names it.
    #[error("{0}")]
    BadOption(Reason),
    /// The table is full; the text has the limit.
    #[error("{0}")]
    Full(Reason),
    /// A size exceeds what the engine can represent.
    #[error("{0}")]
    SystemLimit(Reason),
    /// A typed table can't read a row, or can't store a key or a value; or a term isn't what it is
    /// to be converted to. The text says which and why.
    #[error("{0}")]
    WrongType(Reason),
    /// A pattern or match specification doesn't compile, or a text can't be parsed; the text says
    /// where.
    #[error("{0}")]
    BadSpec(Reason),
    /// A file could not be written or read.
    #[error(transparent)]
    File(Box<FileError>),
}

const _: () = assert!(size_of::<Result<usize, Error>>() <= 16);

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

/// The errors of reading or writing the file of a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file doesn't begin like the file of a table.
    #[error("not a Larder table file")]
    NotLarder,
    /// The file was written by a later version of Larder.
    #[error("the file has format version {found}; this Larder reads versions up to {known}")]
    NewerVersion {
        /// The file's version.
        found: u16,
        /// The newest version that can be read.
        known: u16,
    },
    /// The file ends before its end mark.
    #[error("the file is cut short")]
    CutShort,
    /// A checksum is wrong, or the content is invalid; the text says what.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The number of objects differs from that in the footer.
    #[error("the file should hold {expected} objects and holds {found}")]
    Count {
        /// The number in the footer.
        expected: u64,
        /// The number of objects that were read.
        found: u64,
    },
    /// The file would create more atoms than the loader allows.
    #[error("the file would make more than {most} new atoms")]
    Atoms {
        /// The maximum number of new atoms.
        most: usize,
    },
    /// An error of the operating system.
    #[error("{what}: {kind}")]
    Io {
        /// What was being done.
        what: String,
        /// The kind of the system's error.
        kind: std::io::ErrorKind,
    },
}

impl FileError {
    /// Makes an error of one of the operating system.
    pub(crate) fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return FileError::CutShort;
        }
        FileError::Io {
            what: what.into(),
            kind: error.kind(),
        }
    }
}
