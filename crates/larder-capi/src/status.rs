//! Statuses, messages, and the guard under which each entry runs.
//!
//! The body of an entry returns a `Status` or a `Failure`, which is a status with a text. `guarded`
//! runs it: it catches panics, stores the text for the thread (`larder_message`), and returns the
//! status to C.

use larder::api::Table;
use larder::Error;
use larder_term::blob::has_handles;
use larder_term::{text, TermRef, View};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The result of a call. `LARDER_OK` is 0 and `LARDER_NONE` is 1. All others are failures, which
/// `larder_message` explains. A failed call has changed nothing in the table, unless the
/// description of its status says otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// Success, but there is nothing: no such key, no next key, or no more rows. Or nothing was
    /// inserted because the key exists, or because a value is taken in a unique index.
    None = 1,
    /// The table was dropped.
    NoTable = 2,
    /// Another named table has the name.
    AlreadyExists = 3,
    /// The key must exist, but doesn't.
    BadKey = 4,
    /// A row or a default isn't a tuple, or is too short to have a key. Or the row has no such
    /// position, or the element there may not be changed.
    BadRow = 5,
    /// The element at the position is not an integer.
    NotInteger = 6,
    /// The sum doesn't fit in 64 bits. The addition has taken effect.
    BigSum = 7,
    /// The operation is not for tables of this type or structure, or needs bounds that the table
    /// doesn't have, or is not for tables with bounds.
    TableType = 8,
    /// An option is out of range, or the structure doesn't have it. Or there is no such structure.
    BadOption = 9,
    /// The match specification doesn't compile.
    BadSpec = 10,
    /// A text or bytes are not a term, a term isn't complete, or a view is of nothing.
    BadTerm = 11,
    /// An argument is a null pointer, a text that isn't UTF-8, or a number that is out of range. Or
    /// a table of a transaction can't be renamed or dropped.
    BadArgument = 12,
    /// There is no room for the row: the table has a limit and doesn't evict, or its structure has
    /// a fixed size. All functions that insert or change rows may return it.
    Full = 13,
    /// The operation exceeds what the engine can represent, such as an integer of more than 2^26
    /// bits.
    SystemLimit = 14,
    /// The file can't be written or read, or is damaged.
    File = 15,
    /// A bug in the library. The process continues. Please report it, with the message.
    Panic = 16,
    /// The table is a snapshot, which can't be changed.
    ReadOnly = 17,
    /// The element at the position is not a map.
    NotMap = 18,
    /// Another row already has the value in a unique index.
    NotUnique = 19,
    /// The table has no such index, or it is still being added.
    NoIndex = 20,
    /// Others have changed what the transaction has read. It had no effect, and has been restarted.
    Conflict = 21,
    /// The value under the key has another type than the requested one.
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

/// The reason why a call failed.
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { status, text }
    }

    /// Adds to the message the name of the table, and the term that the failure is about, such as a
    /// key or a row.
    pub(crate) fn with_context(self, table: &Table, what: &str, it: TermRef<'_>) -> Self {
        /// The number of characters after which a long term is truncated.
        const MAX_TERM_CHARS: usize = 100;
        // The term is for a person to read, so it needn't be whole.
        let mut term = shown(it);
        if term.chars().count() > MAX_TERM_CHARS {
            term = term
                .chars()
                .take(MAX_TERM_CHARS)
                .chain("...".chars())
                .collect();
        }
        // The name alone: `info` would count the rows of a snapshot or of a transaction's view, and
        // the transaction would have read all of them.
        let table = table.engine_table();
        let of = match table.is_alive() {
            true => format!("table {}, ", table.name()),
            false => String::new(),
        };
        Failure {
            text: format!("{} ({of}{what} {term})", self.text),
            ..self
        }
    }

    /// The failure that an argument is null.
    pub(crate) fn null(what: &str) -> Self {
        Failure::new(Status::BadArgument, format!("{what} is a null pointer"))
    }
}

/// The text of a row or a key, without elements that are long: a failure takes no time in
/// proportion to them.
fn shown(term: TermRef<'_>) -> String {
    /// The number of elements that are shown.
    const MAX_ELEMENTS: usize = 16;
    let View::Tuple(tuple) = term.view() else {
        return shown_element(term);
    };
    let elements: Vec<_> = tuple.iter().take(MAX_ELEMENTS).map(shown_element).collect();
    let more = match tuple.arity() > MAX_ELEMENTS {
        true => ",...",
        false => "",
    };
    format!("{{{}{more}}}", elements.join(","))
}

fn shown_element(term: TermRef<'_>) -> String {
    /// The number of bytes of an element that is long.
    const LONG: usize = 1024;
    match term.view() {
        View::Bin(bytes) if bytes.len() > LONG => format!("<<{} bytes>>", bytes.len()),
        View::Bin(_) => text::print(term),
        // Binaries of any length may be within it, beside its own bytes.
        _ if term.bytes().len() > LONG || has_handles(term.bytes()) => "...".to_owned(),
        _ => text::print(term),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // Errors that C programs distinguish have a status. The others share one, with the text.
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
            // The view of a table in a transaction can't be renamed or dropped. The other errors,
            // about owners, access, slots and continuations, can't occur here.
            _ => Status::BadArgument,
        };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Stores a message for the thread. If the thread is ending and has already dropped its message,
/// nobody can ask for it.
fn remember(text: &str) {
    let plain: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    let message = CString::new(plain).unwrap_or_default();
    let _ = MESSAGE.try_with(|kept| kept.replace(message));
}

/// Runs an entry. Stores the message of a failure. A panic is caught.
pub(crate) fn guarded(f: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let failure = match caught(f) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) | Err(failure) => failure,
    };
    remember(&failure.text);
    failure.status
}

/// Runs an entry that returns something other than a status. Returns `otherwise` after a failure.
pub(crate) fn guarded_or<R>(otherwise: R, f: impl FnOnce() -> Result<R, Failure>) -> R {
    match caught(f) {
        Ok(Ok(result)) => result,
        Ok(Err(failure)) | Err(failure) => {
            remember(&failure.text);
            otherwise
        }
    }
}

/// Frees an object that C has. Does nothing if it is null.
///
/// # Safety
/// `object` is null, or came from `Box::into_raw`, was not freed, and nobody uses it any more.
pub(crate) unsafe fn free<T>(object: *mut T) {
    guarded_or((), || {
        if !object.is_null() {
            // SAFETY: `object` is not null. So by contract, it came from `Box::into_raw`, was not
            // freed, and nobody uses it any more.
            drop(unsafe { Box::from_raw(object) });
        }
        Ok(())
    });
}

/// Runs `f`, and turns a panic into a failure. Shared objects survive a panic: it leaves tables as
/// they were, and terms are complete or don't exist.
fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = format!("the library panicked: {}", message(&*panic));
        // Dropping the payload of a panic may panic.
        std::mem::forget(panic);
        Failure::new(Status::Panic, text)
    })
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it said nothing")
}

/// Returns why the last failed call of this thread failed: a text in UTF-8, which is empty if none
/// has failed. A call that succeeds doesn't change it. It is valid until another call of the thread
/// fails, or the thread ends. O(1).
#[no_mangle]
pub extern "C" fn larder_message() -> *const c_char {
    // The text doesn't move until it is replaced, which only this thread does.
    MESSAGE
        .try_with(|kept| kept.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Returns the name of a status as in the header, for logs; "?" if there is no such status. The
/// name is never freed.
#[no_mangle]
pub extern "C" fn larder_status_name(status: i32) -> *const c_char {
    let known = Status::ALL
        .into_iter()
        .find(|known| *known as i32 == status);
    known.map_or(c"?".as_ptr(), |known| known.name().as_ptr().cast())
}
