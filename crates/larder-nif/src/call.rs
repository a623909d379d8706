//! How each call from Erlang begins and ends.
//!
//! ```text
//!  Erlang ─▶ extern "C" entry (made by `natives!`) ─▶ enter() ─▶ the function: fn(&Call) -> Reply
//!                                                       │
//!   a word ◀──────────── Ok(word)                       │ no panic passes
//!   error:{larder, Cause} ◀── Err(Raise::Cause(..))     │ or {Cause, Name}; see `Failure`
//!   the same call again ◀──── Err(Raise::Again)         │ "busy: I helped, now let others run"
//!   error:{larder, larder_internal} ◀── a panic ────────┘
//! ```

use crate::heap::Heap;
use crate::layout;
use crate::sys::*;
use crate::terms::atoms::{self, Known};
use larder::Error;
use larder_term::Atom;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A call that is running.
pub struct Call<'a> {
    /// The environment of the call.
    pub env: *mut Env,
    /// The arguments.
    pub args: &'a [Word],
    /// The heap on which the result is written.
    pub heap: Heap,
    /// The name that is raised with the cause of an error, if there is one.
    pub name: &'a Cell<Option<Atom>>,
}

/// A function that can be scheduled.
#[derive(Clone, Copy)]
pub struct Native {
    /// The name, terminated by a zero byte.
    pub name: &'static std::ffi::CStr,
    /// The code.
    pub code: Nif,
    /// The schedulers that it runs on: `DIRTY_*`, or 0.
    pub flags: c_uint,
    /// How it fails.
    pub failure: Failure,
}

/// How a function fails. Erlang raises an exception of its own in any case, and two take twice as
/// long as one.
#[derive(Clone, Copy)]
pub enum Failure {
    /// It raises error:{larder, Cause}.
    Exception,
    /// It returns {larder, Cause}, which is never its result otherwise.
    Answer,
}

/// The outcome of a call that has no result.
#[derive(Debug)]
pub enum Raise {
    /// error:{larder, Cause}, or error:{larder, {Cause, Name}} if the call has a name. The name
    /// isn't part of this value, so that a result fits in two registers.
    Cause(Known),
    /// The same call is scheduled again. Something was in its way, and a slice of work has been
    /// done to remove it.
    Again,
    /// The same call is scheduled again, on a dirty scheduler. It would hold this one for long.
    Dirty,
}

/// The result of a function of the library.
pub type Reply = Result<Word, Raise>;

/// A plain badarg.
pub const BADARG: Raise = Raise::Cause(atoms::NONE);

/// Runs a function of the library.
///
/// # Safety
/// `env`, `argc` and `argv` are those that the emulator has passed to the running function.
#[inline]
pub unsafe fn enter(
    entry: Native,
    env: *mut Env,
    argc: c_int,
    argv: *const Word,
    f: impl Fn(&Call<'_>) -> Reply,
) -> Word {
    let args: &[Word] = if argc <= 0 {
        &[]
    } else {
        // SAFETY: the emulator passes `argc` words at `argv`.
        unsafe { std::slice::from_raw_parts(argv, argc as usize) }
    };
    let name = Cell::new(None);
    let call = Call {
        env,
        args,
        // SAFETY: the environment is that of the running function.
        heap: unsafe { Heap::new(env) },
        name: &name,
    };
    // Catch panics. Unwinding has dropped the iterators of the slots of unfinished terms (`Slots`,
    // `Cells`), which filled them with `[]`. So the heap is whole.
    match catch_unwind(AssertUnwindSafe(|| f(&call))) {
        Ok(Ok(word)) => word,
        Ok(Err(Raise::Cause(cause))) => call.fail(entry.failure, cause),
        Ok(Err(Raise::Again)) => call.later(entry, args),
        Ok(Err(Raise::Dirty)) => {
            let flags = DIRTY_CPU;
            call.later(Native { flags, ..entry }, args)
        }
        Err(_) => call.fail(entry.failure, atoms::INTERNAL),
    }
}

impl Call<'_> {
    #[cold]
    fn fail(&self, failure: Failure, cause: Known) -> Word {
        let cause = match self.name.take() {
            None => cause.word(),
            Some(name) => self.tuple(&[cause.word(), atoms::to_word(self.env, name)]),
        };
        let reason = self.tuple(&[atoms::LARDER.word(), cause]);
        match failure {
            Failure::Answer => reason,
            // SAFETY: the environment is the running call's, and the result is returned at once.
            Failure::Exception => unsafe { enif_raise_exception(self.env, reason) },
        }
    }

    /// Schedules `entry` with these arguments, to run after other processes.
    pub fn later(&self, entry: Native, args: &[Word]) -> Word {
        self.spent_all();
        // SAFETY: the environment is the running call's, the name ends with a zero byte, the terms
        // are the call's.
        unsafe {
            enif_schedule_nif(
                self.env,
                entry.name.as_ptr().cast::<c_char>(),
                entry.flags as c_int,
                entry.code,
                args.len() as c_int,
                args.as_ptr(),
            )
        }
    }

    /// Tells the emulator that the call has used all of its time slice.
    pub fn spent_all(&self) {
        // SAFETY: the environment is the running call's.
        unsafe { enif_consume_timeslice(self.env, 100) };
    }

    /// Tells the emulator that the call has used `units` of the 2,000 units of a time slice.
    pub fn spent(&self, units: u64) {
        let percent = (units / 20).clamp(1, 100) as c_int;
        if units >= 20 {
            // SAFETY: the environment is the running call's.
            unsafe { enif_consume_timeslice(self.env, percent) };
        }
    }

    /// Whether the call runs on a scheduler that other processes wait for.
    pub fn is_on_scheduler(&self) -> bool {
        // SAFETY: the function has no conditions.
        unsafe { enif_thread_type() == NORMAL_SCHEDULER }
    }

    /// A tuple.
    pub fn tuple(&self, terms: &[Word]) -> Word {
        self.heap.tuple_of(terms)
    }

    /// An integer.
    #[inline]
    pub fn int(&self, value: i64) -> Word {
        self.heap.int(value)
    }

    /// A list of these terms, in order.
    pub fn list(&self, terms: &[Word]) -> Word {
        self.list_before(terms, layout::NIL)
    }

    /// A list that begins with these terms, in order, and continues with `tail`.
    pub fn list_before(&self, terms: &[Word], tail: Word) -> Word {
        self.heap.list(terms, tail)
    }

    /// A binary with a copy of the bytes.
    pub fn binary(&self, bytes: &[u8]) -> Word {
        self.heap.binary(bytes, bytes.len())
    }

    /// The calling process.
    #[inline]
    pub fn self_pid(&self) -> Pid {
        let mut pid = Pid { pid: 0 };
        // SAFETY: the environment is the running call's, and a process runs it.
        unsafe { enif_self(self.env, &mut pid) };
        pid
    }
}

/// A tuple in any environment.
pub fn tuple(env: *mut Env, terms: &[Word]) -> Word {
    // SAFETY: all terms belong to `env`, which the caller may use.
    unsafe { enif_make_tuple_from_array(env, terms.as_ptr(), terms.len() as u32) }
}

/// Calls `f` with each element of a list. A bad argument if the list is improper, which shows after
/// its elements.
#[inline]
pub fn each(list: Word, f: impl FnMut(Word) -> Result<(), Raise>) -> Result<(), Raise> {
    let mut elements = layout::elements(list);
    elements.by_ref().try_for_each(f)?;
    match elements.rest {
        layout::NIL => Ok(()),
        _ => Err(BADARG),
    }
}

/// `true` or `false`.
#[inline]
pub fn boolean(value: bool) -> Word {
    if value {
        atoms::TRUE.word()
    } else {
        atoms::FALSE.word()
    }
}

/// The exception for an error of the engine; see `cause`.
pub fn raised(call: &Call<'_>, error: &Error) -> Raise {
    if let Error::NotUnique(index) | Error::NoIndex(index) = error {
        call.name.set(Some((*index).into()));
    }
    Raise::Cause(cause(error))
}

/// The cause of an exception for an error of the engine, as `ets` names it. `Busy` never gets here:
/// `tables::reply_or_raise` helps the list batch and schedules the call again.
pub fn cause(error: &Error) -> Known {
    // Names are those that `ets` uses in its errors. The Erlang side turns them into its texts.
    match error {
        Error::NoTable => atoms::ID,
        Error::Access => atoms::ACCESS,
        Error::ReadOnly => atoms::READ_ONLY,
        Error::BadKey => atoms::BADKEY,
        Error::Keypos => atoms::KEYPOS,
        Error::Position => atoms::POSITION,
        Error::NotMap => atoms::BADMAP,
        Error::NoMapKey => atoms::BAD_MAP_KEY,
        Error::TableType => atoms::TABLE_TYPE,
        Error::NotOwner => atoms::NOT_OWNER,
        Error::AlreadyOwner => atoms::OWNER,
        Error::AlreadyExists => atoms::ALREADY_EXISTS,
        Error::View => atoms::VIEW,
        Error::Unbounded => atoms::UNBOUNDED,
        Error::Unlimited => atoms::UNLIMITED,
        Error::Full(_) => atoms::FULL,
        Error::Unranked => atoms::UNRANKED,
        Error::NotUnique(_) => atoms::NOT_UNIQUE,
        Error::NoIndex(_) => atoms::NO_INDEX,
        Error::SystemLimit(_) => atoms::SYSTEM_LIMIT,
        Error::UnknownStructure(_) | Error::BadOption(_) => atoms::STRUCTURE,
        _ => atoms::NONE,
    }
}

/// Defines native functions. For each, makes an `extern "C"` function and its [`Native`]. Also
/// makes the list of those that Erlang can call.
#[macro_export]
macro_rules! natives {
    (@fails) => { $crate::call::Failure::Exception };
    (@fails $failure:ident) => { $crate::call::$failure::Answer };
    ($($name:ident $(($($argument:ident),*))? => $area:ident::$function:ident $(or $failure:ident)? $(@ $flags:expr)?;)*) => {
        /// The entries, for functions that schedule themselves.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod entry {
            use $crate::sys;
            $(pub static $name: $crate::call::Native = $crate::call::Native {
                name: match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zero byte"),
                },
                code: super::native::$name,
                flags: 0 $(| $flags)?,
                failure: $crate::natives!(@fails $($failure)?),
            };)*
        }
        mod native {
            $(pub unsafe extern "C" fn $name(
                env: *mut $crate::sys::Env,
                argc: std::ffi::c_int,
                argv: *const $crate::sys::Word,
            ) -> $crate::sys::Word {
                // SAFETY: the emulator calls this with its environment and arguments, which are
                // passed on as they are.
                unsafe { $crate::call::enter(super::entry::$name, env, argc, argv, $crate::ops::$area::$function) }
            })*
        }
        /// The list that the emulator reads. It is made once, when the library is loaded.
        fn functions() -> Vec<$crate::sys::Func> {
            // One function for each line of the table. Slices, which have no arguments, aren't
            // listed.
            let mut functions = Vec::new();
            $($(
                let arguments: &[&str] = &[$(stringify!($argument)),*];
                functions.push($crate::sys::Func {
                    name: entry::$name.name.as_ptr(),
                    arity: arguments.len() as std::ffi::c_uint,
                    fptr: entry::$name.code,
                    flags: entry::$name.flags,
                });
            )?)*
            functions
        }
    };
}
