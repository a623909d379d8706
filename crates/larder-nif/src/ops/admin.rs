//! Whole tables: making, dropping, renaming, giving away, fixing and listing them.

use super::options;
use crate::call::{self, Call, Raise, Reply, BADARG};
use crate::layout;
use crate::sys::callback::with_env;
use crate::sys::*;
use crate::tables::owners::{self, ENGINE};
use crate::tables::{self, caller_id, reply_or_raise};
use crate::terms::atoms;
use larder::host::FixTime;
use larder::host::{Access, EngineTable, Error, Evict};
use larder_term::Atom;
use std::sync::Arc;

/// new(Name, Options) -> Table.
pub fn new(call: &Call<'_>) -> Reply {
    let options = options::parse(call, call.args[0], call.args[1])?;
    let name = options.name;
    // The caller becomes an owner, so its end must be noticed.
    owners::watch(call.env, call.self_pid());
    match with_env(call.env, || ENGINE.create(options, caller_id(call))) {
        Ok(table) => Ok(tables::term(call.env, &table)),
        // The name's owner has ended, and the name is about to become free.
        Err(Error::AlreadyExists) if !owners::holds_name(call.env, name) => Err(Raise::Again),
        Err(error) => Err(Raise::Cause(call::cause(&error))),
    }
}

/// Runs `f` with a table whose owner may turn out to have ended.
fn with_owner_there<R>(
    call: &Call<'_>,
    id: Word,
    f: impl FnOnce(&Arc<EngineTable>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    tables::with(call, id, |table| {
        // The owner has just ended. The call is repeated when its tables have been passed on.
        if owners::end_dead_owner(call.env, table) {
            return Err(Raise::Again);
        }
        f(table)
    })
}

/// whereis(Name) -> reference() | undefined.
pub fn whereis(call: &Call<'_>) -> Reply {
    if !layout::is_atom(call.args[0]) {
        return Err(BADARG);
    }
    // A name that no table has is not an error here.
    let found = with_owner_there(call, call.args[0], |table| {
        Ok(tables::reference(call.env, table))
    });
    match found {
        Err(Raise::Cause(_)) => Ok(atoms::UNDEFINED.word()),
        other => other,
    }
}

/// The number of tables and owners up to which `all` lists the tables on a normal scheduler.
const FEW: usize = 1000;

/// all() -> [Table].
pub fn all(call: &Call<'_>) -> Reply {
    let most = if call.is_on_scheduler() {
        FEW
    } else {
        usize::MAX
    };
    let tables = ENGINE.all_of(most).ok_or(Raise::Dirty)?;
    let there: Vec<Word> = tables
        .iter()
        .filter(|table| table.is_alive() && has_owner(call.env, table))
        .map(|table| tables::term(call.env, table))
        .collect();
    Ok(call.list(&there))
}

/// Whether the table has a living owner, or an heir who is about to get it. The tables of a process
/// that has just ended are passed on one after another.
fn has_owner(env: *mut Env, table: &EngineTable) -> bool {
    let is_alive = |owner| owners::is_alive(env, owners::pid(owner));
    is_alive(table.owner()) || table.heir().is_some_and(is_alive)
}

/// delete(Table) -> true.
pub fn delete(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        reply_or_raise(
            call,
            table,
            table.drop_called(caller_id(call), given_name(call)),
        )?;
        Ok(atoms::TRUE.word())
    })
}

/// The name in the call's first argument, if it is a name. If the table has been renamed meanwhile,
/// it isn't the one that is meant.
fn given_name(call: &Call<'_>) -> Option<Atom> {
    let id = call.args[0];
    layout::is_atom(id).then(|| atoms::from_word(call.env, id))
}

/// rename(Table, Name) -> Name.
pub fn rename(call: &Call<'_>) -> Reply {
    let (id, to) = (call.args[0], call.args[1]);
    tables::with(call, id, |table| {
        reply_or_raise(call, table, table.check_write(caller_id(call)))?;
        if !layout::is_atom(to) {
            return Err(BADARG);
        }
        let name = atoms::from_word(call.env, to);
        // The name may still belong to a table whose owner has just died. Then it is about to be
        // free, so try again.
        match table.rename(caller_id(call), given_name(call), name) {
            Err(Error::AlreadyExists) if !owners::holds_name(call.env, name) => {
                return Err(Raise::Again)
            }
            Err(Error::AlreadyExists) => return Err(BADARG),
            other => reply_or_raise(call, table, other)?,
        }
        Ok(if table.is_named() { to } else { id })
    })
}

/// give_away(Table, Pid, Data) -> true.
pub fn give_away(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_write(caller_id(call)))?;
    let to = options::local_pid(call, call.args[1])?;
    // The checks are in the order of `ets`, so that a call with several faults has the same error.
    if !owners::is_alive(call.env, to) {
        return Err(BADARG);
    }
    if table.owner() != caller_id(call) {
        return Err(tables::refused(call, &table, &Error::NotOwner));
    }
    // The new owner may die at any time. From here on the library learns of it.
    if !owners::watch(call.env, to) {
        return Err(BADARG);
    }
    reply_or_raise(
        call,
        &table,
        table.give_away(caller_id(call), owners::id(to)),
    )?;
    // The caller sends the message: signals of one process to another keep their order, and what
    // it sends afterwards must not overtake this.
    with_env(call.env, || {
        owners::send_transfer(&table, call.self_pid(), to, |env| {
            // SAFETY: the data belongs to the running call, `env` is the message's.
            unsafe { enif_make_copy(env, call.args[2]) }
        });
    });
    Ok(atoms::TRUE.word())
}

/// setopts(Table, Opts) -> true. Sets the heir; the protection, which is undocumented, as in `ets`;
/// and the bounds of a bounded table.
pub fn setopts(call: &Call<'_>) -> Reply {
    // Errors in the table take precedence over those in the options, so the options' error is kept
    // until then.
    let wanted = settings(call, call.args[1]);
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_write(caller_id(call)))?;
    let Settings {
        heir,
        access,
        ttl,
        idle,
        limits,
    } = wanted?;
    let mut set = if table.owner() == caller_id(call) {
        Ok(())
    } else {
        Err(Error::NotOwner)
    };
    // First what the table may refuse, so that nothing is set then. Options that aren't given stay
    // as they are.
    if ttl.is_some() || idle.is_some() || limits.is_some() {
        let mut bounds = table.bounds().unwrap_or_default();
        bounds.ttl = ttl.unwrap_or(bounds.ttl);
        bounds.idle = idle.unwrap_or(bounds.idle);
        if let Some(wanted) = limits {
            let limits = bounds.limits.get_or_insert_default();
            limits.max_size = wanted.max_size.unwrap_or(limits.max_size);
            limits.max_memory = wanted.max_memory.unwrap_or(limits.max_memory);
            limits.evict = wanted.evict.unwrap_or(limits.evict);
        }
        set = set.and_then(|()| table.set_bounds(caller_id(call), &bounds));
    }
    if let Some(heir) = heir {
        set = set.and_then(|()| table.set_heir(caller_id(call), heir));
    }
    if let Some(access) = access {
        set = set.and_then(|()| table.set_access(caller_id(call), access));
    }
    // `ets` raises a plain `badarg` for a process that isn't the owner.
    match reply_or_raise(call, &table, set) {
        Err(Raise::Cause(atoms::NOT_OWNER)) => Err(BADARG),
        Err(other) => Err(other),
        Ok(()) => Ok(atoms::TRUE.word()),
    }
}

/// The options that setopts/2 sets.
#[derive(Default)]
struct Settings {
    heir: Option<options::Heir>,
    access: Option<Access>,
    ttl: Option<Option<u64>>,
    idle: Option<Option<u64>>,
    limits: Option<NewLimits>,
}

/// The limits that it sets.
#[derive(Default)]
struct NewLimits {
    max_size: Option<Option<usize>>,
    max_memory: Option<Option<usize>>,
    evict: Option<Evict>,
}

/// Reads one option, or a list of options without duplicates.
fn settings(call: &Call<'_>, options: Word) -> Result<Settings, Raise> {
    let mut settings = Settings::default();
    // A single option needs no list.
    if layout::tuple(options).is_some() {
        setting(call, options, &mut settings)?;
    } else {
        call::each(options, |option| setting(call, option, &mut settings))?;
    }
    Ok(settings)
}

fn setting(call: &Call<'_>, option: Word, settings: &mut Settings) -> Result<(), Raise> {
    // Each option may be given once. A second one is an error, as is an unknown one.
    let again = match layout::tuple(option) {
        Some([tag, parts @ ..]) if *tag == atoms::HEIR.word() => {
            settings.heir.replace(options::heir(call, parts)?).is_some()
        }
        Some(&[tag, access]) if tag == atoms::PROTECTION.word() => {
            settings.access.replace(protection(access)?).is_some()
        }
        Some(&[tag, ms]) if tag == atoms::TTL.word() => {
            settings.ttl.replace(options::time(call, ms)?).is_some()
        }
        Some(&[tag, ms]) if tag == atoms::IDLE.word() => {
            settings.idle.replace(options::time(call, ms)?).is_some()
        }
        Some(&[tag, most]) if tag == atoms::MAX_SIZE.word() => {
            let limit = &mut settings.limits.get_or_insert_default().max_size;
            limit.replace(options::most(call, most)?).is_some()
        }
        Some(&[tag, most]) if tag == atoms::MAX_MEMORY.word() => {
            let limit = &mut settings.limits.get_or_insert_default().max_memory;
            limit.replace(options::most(call, most)?).is_some()
        }
        Some(&[tag, policy]) if tag == atoms::EVICT.word() => {
            let limits = settings.limits.get_or_insert_default();
            limits.evict.replace(options::policy(policy)?).is_some()
        }
        _ => true,
    };
    match again {
        true => Err(BADARG),
        false => Ok(()),
    }
}

fn protection(word: Word) -> Result<Access, Raise> {
    match word {
        _ if word == atoms::PUBLIC.word() => Ok(Access::Public),
        _ if word == atoms::PROTECTED.word() => Ok(Access::Protected),
        _ if word == atoms::PRIVATE.word() => Ok(Access::Private),
        _ => Err(BADARG),
    }
}

/// safe_fixtable(Table, Bool) -> true.
pub fn safe_fixtable(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller = caller_id(call);
        reply_or_raise(call, table, table.check_read(caller))?;
        let done = if options::flag(call.args[1])? {
            // The fixation must end with the process.
            owners::watch(call.env, call.self_pid());
            table.safe_fix(caller, now())
        } else {
            table.safe_unfix(caller)
        };
        reply_or_raise(call, table, done)?;
        Ok(atoms::TRUE.word())
    })
}

fn now() -> FixTime {
    // SAFETY: plain questions to the emulator's clocks, from one of its threads.
    let (monotonic_ns, offset) = unsafe {
        (
            enif_monotonic_time(NANOSECONDS),
            enif_time_offset(NANOSECONDS),
        )
    };
    // Wall-clock time follows from the monotonic one and the present offset.
    FixTime {
        monotonic_ns,
        system_ns: monotonic_ns + offset,
    }
}

/// delete_all_objects(Table) -> true.
pub fn delete_all_objects(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    // A transaction deletes the objects of its view one by one.
    tables::off_scheduler(call, table.is_view())?;
    reply_or_raise(call, &table, table.delete_all_objects(caller_id(call)))?;
    Ok(atoms::TRUE.word())
}

/// guard_wanted() -> reference() | false. Returns a guard, which the caller must keep where its
/// exit drops it first; `false` if it has enough of them.
pub fn guard_wanted(call: &Call<'_>) -> Reply {
    Ok(guard(call, call.self_pid()))
}

/// guard_of_next(Table, Pid) -> reference() | false. Like `guard_wanted`, for a process to which
/// the caller is about to give its table. Also `false` if the table has no heir or isn't the
/// caller's, or if the process has ended. In these cases `give_away` reports the error.
pub fn guard_of_next(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0]);
    let wanted =
        table.is_ok_and(|table| table.owner() == caller_id(call) && table.heir().is_some());
    match options::local_pid(call, call.args[1]) {
        Ok(to) if wanted && owners::is_alive(call.env, to) => Ok(guard(call, to)),
        _ => Ok(atoms::FALSE.word()),
    }
}

fn guard(call: &Call<'_>, pid: Pid) -> Word {
    owners::guard(call.env, pid).unwrap_or(atoms::FALSE.word())
}
