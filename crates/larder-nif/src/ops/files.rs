//! Saving tables to files, and loading them. These functions run on the dirty schedulers for I/O,
//! in slices: the node has few of these schedulers, and all other work on files waits for them. A
//! job between two slices is a resource. If the calling process ends, the job is dropped with it.

use super::{info, options};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::layout::node;
use crate::resource::Registered;
use crate::sys::callback::with_env;
use crate::sys::*;
use crate::tables::owners::{self, ENGINE};
use crate::tables::{self, caller_id, reply_or_raise};
use crate::terms::atoms::{self, Known};
use crate::terms::binaries::bytes as binary_bytes;
use larder::host::{read_header, Header, LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder::host::{Budget, EngineTable, Error, FileError, Step};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A path, as the bytes of the file system.
fn path(call: &Call<'_>, word: Word) -> Result<PathBuf, Raise> {
    let bytes = binary_bytes(call.env, word).ok_or(BADARG)?;
    #[cfg(unix)]
    let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    let path = PathBuf::from(std::str::from_utf8(bytes).map_err(|_| BADARG)?);
    Ok(path)
}

/// A save between two slices.
pub struct Saving {
    table: Arc<EngineTable>,
    job: SaveJob,
}

/// The resource type of saves; `None` after the last slice.
pub static SAVES: Registered<Mutex<Option<Saving>>> = Registered::new();

/// The resource type of loads; `None` after the last slice.
pub static LOADS: Registered<Mutex<Option<LoadJob>>> = Registered::new();

/// The budget of a slice, which is longer than on a normal scheduler.
fn slice() -> Budget {
    Budget::new(20_000, Duration::from_millis(20))
}

/// save(Table, Path, Sync, Extra) -> ok | {error, Why}.
pub fn save(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let path = path(call, call.args[1])?;
    // The options are read before the file is touched.
    let options = SaveOptions {
        sync: options::flag(call.args[2])?,
        node: node::look_here(call.env).name,
        extra: binary_bytes(call.env, call.args[3]).ok_or(BADARG)?.to_vec(),
    };
    match SaveJob::begin(&table, caller_id(call), &path, options) {
        Ok(job) => {
            let mut saving = Saving { table, job };
            match saving.slice(call)? {
                Some(answer) => Ok(answer),
                None => {
                    let resource = SAVES.make(Mutex::new(Some(saving)));
                    Ok(call.later(entry::save_more, &[resource.term(call.env)]))
                }
            }
        }
        Err(error) => not_saved(call, &table, &error),
    }
}

/// save_more(Saving): runs a slice after the first.
pub fn save_more(call: &Call<'_>) -> Reply {
    let mut running = SAVES.get(call, call.args[0]).ok_or(BADARG)?.lock();
    let saving = running.as_mut().ok_or(BADARG)?;
    let sliced = saving.slice(call);
    if let Ok(None) = sliced {
        return Ok(call.later(entry::save_more, &[call.args[0]]));
    }
    // An unfinished file is removed now, not when the resource is collected.
    *running = None;
    sliced.map(|answer| answer.unwrap_or(atoms::OK.word()))
}

impl Saving {
    /// Runs a slice. Returns the answer of the call, or `None` if more is left to be saved.
    fn slice(&mut self, call: &Call<'_>) -> Result<Option<Word>, Raise> {
        let mut budget = slice();
        match self.job.step(&mut budget) {
            Ok(Step::Done) => Ok(Some(atoms::OK.word())),
            Ok(Step::More) => Ok(None),
            // A list is being inserted. The save continues where it was.
            Err(Error::Busy) => {
                self.table.help_batch(&mut budget);
                Ok(None)
            }
            Err(error) => not_saved(call, &self.table, &error).map(Some),
        }
    }
}

fn not_saved(call: &Call<'_>, table: &Arc<EngineTable>, error: &Error) -> Reply {
    match error {
        Error::File(error) => Ok(failed(call, error)),
        error => Err(tables::refused(call, table, error)),
    }
}

/// load_table(Path, Verify, NewAtoms) -> {ok, Table} | {error, Why}. NewAtoms is the greatest
/// number of new atoms, a half of those that the emulator can still have. Atoms that files have
/// brought before, and that the emulator doesn't know yet, take a part of these. If the file isn't
/// one of Larder, Why is {not_larder, NewAtoms} without that part.
pub fn load_table(call: &Call<'_>) -> Reply {
    let path = path(call, call.args[0])?;
    let new_atoms = tables::natural(call.args[2])?.saturating_sub(atoms::unknown_count() / 2);
    let options = LoadOptions {
        verify: options::flag(call.args[1])?,
        node: node::look_here(call.env).name,
        legacy_zero: options::legacy_zero(),
        new_atoms,
    };
    // The loaded table belongs to the caller.
    owners::watch(call.env, call.self_pid());
    let begun = with_env(call.env, || {
        LoadJob::begin(&ENGINE, caller_id(call), &path, options)
    });
    match begun {
        Ok(mut job) => match load_slice(call, &mut job) {
            Some(answer) => Ok(answer),
            None => {
                let resource = LOADS.make(Mutex::new(Some(job)));
                Ok(call.later(entry::load_more, &[resource.term(call.env)]))
            }
        },
        Err(Error::File(error)) if matches!(*error, FileError::NotLarder) => {
            let why = call.tuple(&[atoms::NOT_LARDER.word(), call.int(new_atoms as i64)]);
            Ok(call.tuple(&[atoms::ERROR.word(), why]))
        }
        // As in `rename`: the name may be about to become free.
        Err(Error::AlreadyExists) if !holds_name(call, &path) => Err(Raise::Again),
        Err(error) => Ok(not_loaded(call, &error)),
    }
}

/// load_more(Loading): runs a slice after the first.
pub fn load_more(call: &Call<'_>) -> Reply {
    let mut running = LOADS.get(call, call.args[0]).ok_or(BADARG)?.lock();
    let job = running.as_mut().ok_or(BADARG)?;
    match load_slice(call, job) {
        Some(answer) => {
            // The table of a load that has failed is dropped now.
            *running = None;
            Ok(answer)
        }
        None => Ok(call.later(entry::load_more, &[call.args[0]])),
    }
}

/// Runs a slice. Returns the answer of the call, or `None` if more is left to be loaded.
fn load_slice(call: &Call<'_>, job: &mut LoadJob) -> Option<Word> {
    match job.step(&mut slice()) {
        Ok(Step::Done) => {
            let table = tables::term(call.env, job.table());
            Some(call.tuple(&[atoms::OK.word(), table]))
        }
        Ok(Step::More) => None,
        Err(error) => Some(not_loaded(call, &error)),
    }
}

fn not_loaded(call: &Call<'_>, error: &Error) -> Word {
    match error {
        Error::File(error) => failed(call, error),
        // Its name is in use, or its options are invalid.
        _ => call.tuple(&[atoms::ERROR.word(), atoms::ALREADY_EXISTS.word()]),
    }
}

/// Whether a living process has a table with the name in a file.
fn holds_name(call: &Call<'_>, path: &Path) -> bool {
    read_header(path).is_ok_and(|header| owners::holds_name(call.env, header.options.name))
}

/// file_header(Path) -> {ok, {Name, Type, Protection, Named, Keypos, Objects, Extra, Version}} |
/// {error, Why}.
pub fn file_header(call: &Call<'_>) -> Reply {
    match read_header(&path(call, call.args[0])?) {
        Ok(header) => Ok(call.tuple(&[atoms::OK.word(), described(call, &header)])),
        Err(Error::File(error)) => Ok(failed(call, &error)),
        Err(error) => Err(Raise::Cause(crate::call::cause(&error))),
    }
}

fn described(call: &Call<'_>, header: &Header) -> Word {
    let options = &header.options;
    call.tuple(&[
        atoms::to_word(call.env, options.name),
        info::kind(options.kind).word(),
        info::access(options.access).word(),
        boolean(options.named),
        call.int(options.keypos as i64),
        call.int(header.objects as i64),
        call.binary(&header.extra),
        call.int(i64::from(header.version)),
    ])
}

/// {error, Why}, which the Erlang side expresses as `ets` does.
fn failed(call: &Call<'_>, error: &FileError) -> Word {
    // Each error has a name, and some have a detail.
    let why = match error {
        FileError::NotLarder => atoms::NOT_LARDER.word(),
        FileError::CutShort => atoms::CUT_SHORT.word(),
        FileError::Damaged(_) => atoms::DAMAGED.word(),
        FileError::Count { .. } => atoms::COUNT.word(),
        FileError::Atoms { .. } => atoms::SYSTEM_LIMIT.word(),
        FileError::NewerVersion { found, .. } => {
            call.tuple(&[atoms::NEWER_VERSION.word(), call.int(i64::from(*found))])
        }
        FileError::Io { kind, code, .. } => {
            call.tuple(&[atoms::IO.word(), posix(*kind, *code).word()])
        }
        _ => atoms::DAMAGED.word(),
    };
    call.tuple(&[atoms::ERROR.word(), why])
}

/// Erlang's name of an error of the system. Some have no kind, or share one.
fn posix(kind: ErrorKind, code: Option<i32>) -> Known {
    match code {
        Some(libc::EPERM) => atoms::EPERM,
        Some(libc::EMFILE) => atoms::EMFILE,
        Some(libc::ENFILE) => atoms::ENFILE,
        Some(libc::ELOOP) => atoms::ELOOP,
        Some(libc::EINVAL) => atoms::EINVAL,
        Some(libc::ENXIO) => atoms::ENXIO,
        Some(libc::ENODEV) => atoms::ENODEV,
        Some(libc::ENOMEM) => atoms::ENOMEM,
        _ => posix_of_kind(kind),
    }
}

fn posix_of_kind(kind: ErrorKind) -> Known {
    match kind {
        ErrorKind::NotFound => atoms::ENOENT,
        ErrorKind::PermissionDenied => atoms::EACCES,
        ErrorKind::AlreadyExists => atoms::EEXIST,
        ErrorKind::InvalidFilename => atoms::ENAMETOOLONG,
        ErrorKind::StorageFull => atoms::ENOSPC,
        ErrorKind::QuotaExceeded => atoms::EDQUOT,
        ErrorKind::FileTooLarge => atoms::EFBIG,
        ErrorKind::IsADirectory => atoms::EISDIR,
        ErrorKind::NotADirectory => atoms::ENOTDIR,
        ErrorKind::ReadOnlyFilesystem => atoms::EROFS,
        ErrorKind::ResourceBusy => atoms::EBUSY,
        ErrorKind::ExecutableFileBusy => atoms::ETXTBSY,
        ErrorKind::StaleNetworkFileHandle => atoms::ESTALE,
        _ => atoms::EIO,
    }
}
