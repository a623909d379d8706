//! The errors of files.

use std::fmt;

/// The errors of reading or writing the file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileError {
    /// The file doesn't begin like the file of a table.
    NotLarder,
    /// The file was written by a later version of Larder.
    NewerVersion {
        /// The file's version.
        found: u16,
        /// The newest version that can be read.
        known: u16,
    },
    /// The file ends before its footer.
    CutShort,
    /// A checksum is wrong, or the content is invalid; the text says what.
    Damaged(String),
    /// The number of objects differs from that in the footer.
    Count {
        /// The number in the footer.
        expected: u64,
        /// The number of objects that were read.
        found: u64,
    },
    /// The file would create more atoms than the loader allows.
    Atoms {
        /// The maximum number of new atoms.
        most: usize,
    },
    /// An error of the operating system.
    Io {
        /// What was being done.
        what: String,
        /// The kind of the system's error.
        kind: std::io::ErrorKind,
        /// The system's number of the error, unless Larder itself has refused what was asked.
        code: Option<i32>,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotLarder => f.write_str("not a Larder table file"),
            FileError::NewerVersion { found, known } => write!(
                f,
                "the file has format version {found}; this Larder reads versions up to {known}"
            ),
            FileError::CutShort => f.write_str("the file is cut short"),
            FileError::Damaged(what) => write!(f, "the file is damaged: {what}"),
            FileError::Count { expected, found } => write!(
                f,
                "the file should hold {expected} objects and holds {found}"
            ),
            FileError::Atoms { most } => {
                write!(f, "the file would make more than {most} new atoms")
            }
            // The system has words for more errors than there are kinds of them.
            FileError::Io { what, kind, code } => match code {
                Some(code) => write!(f, "{what}: {}", std::io::Error::from_raw_os_error(*code)),
                None => write!(f, "{what}: {kind}"),
            },
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    /// Makes an error of one of the operating system.
    pub(crate) fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return FileError::CutShort;
        }
        FileError::Io {
            what: what.into(),
            kind: error.kind(),
            code: error.raw_os_error(),
        }
    }
}
