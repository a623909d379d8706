//! What an operation may answer instead of its result.
//!
//! An [`enum@Error`] is two words, whatever it has to say, so that the results of operations travel
//! in registers.

use larder_term::Atom;
use std::fmt;
use std::ops::Deref;
use thiserror::Error;

/// Why an operation was refused. Nothing is changed when one is returned, unless a job says
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The table is gone.
    #[error("the table does not exist (any more)")]
    NoTable,
    /// The caller has not the right to do this with the table.
    #[error("the table's access rights do not allow this")]
    Access,
    /// The table is a snapshot, which nobody writes.
    #[error("the table is a snapshot, which can't be written")]
    ReadOnly,
    /// A transaction's view of a table is no table of its own: it has no name, no heir, no owner to
    /// give it to, and goes with the transaction.
    #[error("this can't be done with a transaction's view of a table")]
    View,
    /// An operation over many keys holds the table: `Table::help_batch` with it, then try again.
    #[error(
        "an operation over many keys is being applied to the table; help with it and try again"
    )]
    Busy,
    /// The name is another table's.
    #[error("there is a table of this name already")]
    AlreadyExists,
    /// The key has to be in the table, and is not.
    #[error("the key is not in the table")]
    BadKey,
    /// The object is shorter than the key position, or an update names the key's own position.
    #[error("the key's position is outside the object, or may not be changed")]
    Keypos,
    /// A position that the object has not.
    #[error("the position is outside the object")]
    Position,
    /// A counter, an increment, a threshold or a set value is not an integer.
    #[error("not an integer")]
    NotInteger,
    /// An element of which a key was named is not a map.
    #[error("the element is not a map")]
    NotMap,
    /// A counter is a key of a map that the map has not.
    #[error("the map has no such key")]
    NoMapKey,
    /// The operation is not for tables of this type.
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
    /// The table was to be given to its owner.
    #[error("the table belongs to that owner already")]
    AlreadyOwner,
    /// The owner named is gone, or never was.
    #[error("that owner is not alive")]
    NoOwner,
    /// A slot past the last.
    #[error("the slot is past the end of the table")]
    BadSlot,
    /// An object has to be a tuple.
    #[error("an object has to be a tuple")]
    NotTuple,
    /// The default object is no tuple, or too short.
    #[error("the default object is no tuple, or is too short for the key or a position")]
    BadDefault,
    /// A continuation that does not fit the operation.
    #[error("the continuation does not belong to this operation")]
    BadContinuation,
    /// A replacement that might change its object's key.
    #[error("the replacement could change the key of an object")]
    KeyChanged,
    /// A structure that is not built in; the text says which are.
    #[error("{0}")]
    UnknownStructure(Reason),
    /// An option out of range; the text says which.
    #[error("{0}")]
    BadOption(Reason),
    /// The table's structure is full; the text says how many objects it holds.
    #[error("{0}")]
    Full(Reason),
    /// Something grew beyond what the engine can represent.
    #[error("{0}")]
    SystemLimit(Reason),
    /// A typed table can't read a row, or can't keep a key or a value; the text says which and why.
    #[error("{0}")]
    WrongType(Reason),
    /// A pattern or match specification that does not compile, or a text that does not parse; the
    /// text says where.
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

/// The text of an [`enum@Error`]: which option, where in a specification.
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

/// What is wrong with a table's file, or with reaching it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not begin as a Larder file does.
    #[error("not a Larder table file")]
    NotLarder,
    /// A later Larder wrote it.
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
    /// A checksum does not fit, or the content makes no sense; the text says what.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The number of objects is not what the footer says.
    #[error("the file should hold {expected} objects and holds {found}")]
    Count {
        /// As the footer says.
        expected: u64,
        /// As read.
        found: u64,
    },
    /// The file has more atoms that are new here than the loader allows.
    #[error("the file would make more than {most} new atoms")]
    Atoms {
        /// The most that may be new.
        most: usize,
    },
    /// The operating system refused; `what` says during what.
    #[error("{what}: {kind}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system answered.
        kind: std::io::ErrorKind,
    },
}

impl FileError {
    /// Makes an error of the system's answer.
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
