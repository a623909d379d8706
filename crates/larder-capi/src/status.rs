//! Statuses, messages, and the guard that each entry runs under.

use larder::api::Table;
use larder::Error;
use larder_term::{text, TermRef};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// How a call ended. `LARDER_OK` is 0 and `LARDER_NONE` 1; everything from 2 on is a failure, of
/// which nothing is left in the table unless its line says otherwise, and `larder_message` tells
/// more.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Done, and there is nothing: no such key, no next one, no more rows, or nothing was inserted
    /// by what inserts only what is new.
    None = 1,
    /// The table was dropped.
    NoTable = 2,
    /// The name is another table's.
    AlreadyExists = 3,
    /// A key that has to be there is not.
    BadKey = 4,
    /// A row or default that is no tuple or too short to have a key, or a position that the row has
    /// not or that may not be changed.
    BadRow = 5,
    /// The element at the position is not an integer.
    NotInteger = 6,
    /// Done; but the sum does not fit into 64 bits. It is in the table.
    BigSum = 7,
    /// The operation is not for tables of this type.
    TableType = 8,
    /// An option that is out of range, or that the structure has not; or no such structure.
    BadOption = 9,
    /// A match specification that does not compile.
    BadSpec = 10,
    /// Text or bytes that are no term, a term that is not finished, a view of nothing.
    BadTerm = 11,
    /// A null pointer or a number out of range among the arguments.
    BadArgument = 12,
    /// The structure holds so many rows and no more.
    Full = 13,
    /// Beyond what the engine can represent.
    SystemLimit = 14,
    /// A file that can't be written or read, or is damaged.
    File = 15,
    /// A fault of the library. The process goes on; please report it, with the message.
    Panic = 16,
    /// The table is a snapshot, which can't be written.
    ReadOnly = 17,
    /// The element at the position is not a map.
    NotMap = 18,
    /// Another row has the value, and the index is unique.
    NotUnique = 19,
    /// The table has no such index.
    NoIndex = 20,
    /// Others have changed what the transaction has read: it had no effect, and has begun anew.
    Conflict = 21,
    /// The value under the key is of another type than the one that was asked for.
    ValueType = 22,
}

impl Status {
    fn name(self) -> &'static [u8] {
        match self {
            Status::Ok => b"LARDER_OK\0",
            Status::None => b"LARDER_NONE\0",
            Status::NoTable => b"LARDER_NO_TABLE\0",
            Status::AlreadyExists => b"LARDER_ALREADY_EXISTS\0",
            Status::BadKey => b"LARDER_BAD_KEY\0",
            Status::BadRow => b"LARDER_BAD_ROW\0",
            Status::NotInteger => b"LARDER_NOT_INTEGER\0",
            Status::BigSum => b"LARDER_BIG_SUM\0",
            Status::TableType => b"LARDER_TABLE_TYPE\0",
            Status::BadOption => b"LARDER_BAD_OPTION\0",
            Status::BadSpec => b"LARDER_BAD_SPEC\0",
            Status::BadTerm => b"LARDER_BAD_TERM\0",
            Status::BadArgument => b"LARDER_BAD_ARGUMENT\0",
            Status::Full => b"LARDER_FULL\0",
            Status::SystemLimit => b"LARDER_SYSTEM_LIMIT\0",
            Status::File => b"LARDER_FILE\0",
            Status::Panic => b"LARDER_PANIC\0",
            Status::ReadOnly => b"LARDER_READ_ONLY\0",
            Status::NotMap => b"LARDER_NOT_MAP\0",
            Status::NotUnique => b"LARDER_NOT_UNIQUE\0",
            Status::NoIndex => b"LARDER_NO_INDEX\0",
            Status::Conflict => b"LARDER_CONFLICT\0",
            Status::ValueType => b"LARDER_VALUE_TYPE\0",
        }
    }

    const ALL: [Status; 23] = [
        Status::Ok,
        Status::None,
        Status::NoTable,
        Status::AlreadyExists,
        Status::BadKey,
        Status::BadRow,
        Status::NotInteger,
        Status::BigSum,
        Status::TableType,
        Status::BadOption,
        Status::BadSpec,
        Status::BadTerm,
        Status::BadArgument,
        Status::Full,
        Status::SystemLimit,
        Status::File,
        Status::Panic,
        Status::ReadOnly,
        Status::NotMap,
        Status::NotUnique,
        Status::NoIndex,
        Status::Conflict,
        Status::ValueType,
    ];
}

/// Why a call failed.
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { status, text }
    }

    /// The same of a failure in a table, on something that the caller has named: a key, a row.
    pub(crate) fn on(self, table: &Table, what: &str, it: TermRef<'_>) -> Self {
        /// More of a long term is no help.
        const MOST: usize = 100;
        let mut term = text::print(it);
        if term.chars().count() > MOST {
            term = term.chars().take(MOST).chain("...".chars()).collect();
        }
        let name = table.engine_table().info().map(|info| info.name);
        let of = name.map_or(String::new(), |name| format!("table {name}, "));
        Failure {
            text: format!("{} ({of}{what} {term})", self.text),
            ..self
        }
    }

    /// An argument that must not be null is.
    pub(crate) fn null(what: &str) -> Self {
        Failure::new(Status::BadArgument, format!("{what} is a null pointer"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::NoTable => Status::NoTable,
            Error::ReadOnly => Status::ReadOnly,
            Error::AlreadyExists => Status::AlreadyExists,
            Error::BadKey | Error::NoMapKey => Status::BadKey,
            Error::NotMap => Status::NotMap,
            Error::Keypos | Error::Position | Error::NotTuple | Error::BadDefault => Status::BadRow,
            Error::NotInteger => Status::NotInteger,
            Error::TableType | Error::KeyChanged | Error::Unranked | Error::Unbounded => {
                Status::TableType
            }
            Error::UnknownStructure(_) | Error::BadOption(_) => Status::BadOption,
            Error::BadSpec(_) => Status::BadSpec,
            Error::NotUnique(_) => Status::NotUnique,
            Error::NoIndex(_) => Status::NoIndex,
            Error::Full(_) => Status::Full,
            Error::SystemLimit(_) => Status::SystemLimit,
            Error::File(_) => Status::File,
            // A transaction's view of a table, asked for what a table can do: to be renamed,
            // saved, dropped. Owners, access, slots, continuations: nothing that can be asked for
            // here.
            _ => Status::BadArgument,
        };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Keeps a message for the thread. Where a thread that ends has given its own up already, nobody
/// can ask for it.
fn remember(text: &str) {
    let plain: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    let message = CString::new(plain).unwrap_or_default();
    let _ = MESSAGE.try_with(|kept| kept.replace(message));
}

/// Runs an entry: a failure is remembered, a panic stays here.
pub(crate) fn guarded(f: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let failure = match caught(f) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) | Err(failure) => failure,
    };
    remember(&failure.text);
    failure.status
}

/// Runs an entry that gives something other than a status; `otherwise` after a failure.
pub(crate) fn guarded_or<R>(otherwise: R, f: impl FnOnce() -> Result<R, Failure>) -> R {
    match caught(f) {
        Ok(Ok(result)) => result,
        Ok(Err(failure)) | Err(failure) => {
            remember(&failure.text);
            otherwise
        }
    }
}

/// What is shared survives a panic: tables are made so that one leaves them as they were, and terms
/// are whole or not there.
fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = format!("the library panicked: {}", said(&*panic));
        // What a panic carries may panic when it is dropped.
        std::mem::forget(panic);
        Failure::new(Status::Panic, text)
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it said nothing")
}

/// Why the last call of this thread that failed did so: a text in UTF-8, empty if none has failed.
/// Valid until another one of the thread fails or the thread ends.
#[no_mangle]
pub extern "C" fn larder_message() -> *const c_char {
    // The text stays where it is until it is replaced, which this thread alone does.
    MESSAGE
        .try_with(|kept| kept.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// The name of a status as it is in the header, for logs; "?" for a number that is none. Static.
#[no_mangle]
pub extern "C" fn larder_status_name(status: i32) -> *const c_char {
    let known = Status::ALL
        .into_iter()
        .find(|known| *known as i32 == status);
    known.map_or(c"?".as_ptr(), |known| known.name().as_ptr().cast())
}
