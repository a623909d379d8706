//! Processes as owners of tables: how we learn that one is gone, and what its heirs are told.
//!
//! An owner's number is its pid's word. A process becomes an owner when it makes, fixes or is given a table, or is named as an heir; then a
//! resource of ours monitors it.
//!
//! ```text
//!  the process exits     1. its timers are cancelled  ─▶  a guard's reference goes  ─▶  GUARDS' destructor ─┐
//!                        2. links fire ('EXIT')                                                             ├─▶ Engine::down
//!                        3. monitors fire ('DOWN', and our own)                ─▶  OWNERS' `down`  ─────────┤
//!  somebody meets its table  (whereis, info, a name in use, a right refused)   ─▶  `settle`  ───────────────┘
//! ```
//!
//! `ets` promises that an heir's 'ETS-TRANSFER' comes before any 'EXIT' or 'DOWN' of the owner. A monitor of ours fires too late for that, and the
//! destructor of a resource runs on the scheduler only after the exiting process has yielded. So an owner of a table with an heir is
//! given a *guard*: timers that will never fire, one of which holds the only reference to a resource. At exit their cancellation comes
//! first, and costs so many reductions that the process has to yield; the destructor runs, the heir is told, and only then do links and
//! monitors fire. Should the process go on at once on another scheduler, the order is not certain; `settle` still makes what is seen right.

use crate::atoms;
use crate::call::{self, Call, Reply};
use crate::resource::{Held, Kind};
use crate::sys::*;
use crate::{decode, tables};
use larder::{Door, Engine, OwnerId, Table, TableId};
use larder_term::Term;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// A process that is watched.
pub struct Owner {
    pid: Pid,
    guarded: AtomicBool,
}

/// What the destructor of which tells that a process is going.
pub struct Guard {
    pid: Pid,
}

/// Watched processes.
pub static OWNERS: Kind<Owner> = Kind::new();
/// Guards.
pub static GUARDS: Kind<Guard> = Kind::new();

/// All tables of the node.
pub static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Arc::new(BeamDoor)));

const SHARDS: usize = 64;
type Shard = Mutex<HashMap<Word, Held<Owner>>>;
static WATCHED: LazyLock<Vec<Shard>> =
    LazyLock::new(|| (0..SHARDS).map(|_| Shard::default()).collect());

fn shard(pid: Pid) -> &'static Shard {
    &WATCHED[(pid.pid >> 4) % SHARDS]
}

/// The owner that a process is, whether or not it has anything.
#[inline]
pub fn id(pid: Pid) -> OwnerId {
    OwnerId::from_raw(pid.pid as u64)
}

/// The process that an owner is.
pub fn pid(owner: OwnerId) -> Pid {
    Pid {
        pid: owner.raw() as Word,
    }
}

/// Whether the process runs.
pub fn is_alive(env: *mut Env, pid: Pid) -> bool {
    let mut pid = pid;
    // SAFETY: `env` is the running callback's or null on a thread of ours; the pid is a local one.
    unsafe { enif_is_process_alive(env, &mut pid) != 0 }
}

/// Sees to it that the end of the process is noticed; false if it is gone already.
pub fn watch(env: *mut Env, pid: Pid) -> bool {
    let mut watched = shard(pid).lock();
    if watched.contains_key(&pid.pid) {
        return true;
    }
    ENGINE.register_as(pid.pid as u64);
    let owner = OWNERS.make(Owner {
        pid,
        guarded: AtomicBool::new(false),
    });
    if owner.monitor(env, &pid) {
        watched.insert(pid.pid, owner);
        return true;
    }
    drop(watched);
    call::with_env(env, || ENGINE.down(id(pid)));
    false
}

/// The emulator's word that a watched process is gone.
///
/// # Safety
/// Called by the emulator alone, with a resource of `OWNERS`.
pub unsafe extern "C" fn down(
    env: *mut Env,
    object: *mut c_void,
    _pid: *mut Pid,
    _monitor: *mut Monitor,
) {
    call::outside(env, || {
        // SAFETY: resources with this callback hold an `Owner`, alive during the callback.
        let owner = unsafe { &*object.cast::<Owner>() };
        end(owner.pid);
    });
}

/// Ends an owner whose process is gone, once or more often.
fn end(pid: Pid) {
    let watched = shard(pid).lock().remove(&pid.pid);
    ENGINE.down(id(pid));
    drop(watched);
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Anything else that frees the guard (there is nothing today) must not end a process that runs.
        if !is_alive(call::current_env(), self.pid) {
            end(self.pid);
        }
    }
}

/// If the table's owner is gone and nobody has said so yet, sees to the tables that it left. True if there was something to see to.
pub fn settle(env: *mut Env, table: &Table) -> bool {
    let owner = table.owner();
    let gone = table.is_alive() && !is_alive(env, pid(owner));
    if gone {
        call::with_env(env, || end(pid(owner)));
    }
    gone
}

/// guard_wanted() -> reference() | false. A reference to be put where the process's exit drops it first; false if there is one.
pub fn guard_wanted(call: &Call<'_>) -> Reply {
    let pid = call.self_pid();
    if !watch(call.env, pid) {
        return Ok(atoms::FALSE.word());
    }
    let wanted = match shard(pid).lock().get(&pid.pid) {
        // Ordering: Relaxed; the process itself is the only one to ask.
        Some(owner) => !owner.guarded.swap(true, Ordering::Relaxed),
        None => false,
    };
    if !wanted {
        return Ok(atoms::FALSE.word());
    }
    Ok(GUARDS.make(Guard { pid }).term(call.env))
}

/// What the engine tells us.
struct BeamDoor;

impl Door for BeamDoor {
    fn transfer(&self, table: &Arc<Table>, from: OwnerId, to: OwnerId, data: &Term) {
        // The data is in a 1-tuple; anything else says that the heir wants no message.
        if let Some(data) = data.as_ref().as_tuple().and_then(|tuple| tuple.get(0)) {
            send_transfer(table, pid(from), pid(to), |env| decode::term(env, data));
        }
    }

    fn gone(&self, table: TableId) {
        tables::forget(table);
    }
}

/// Sends {'ETS-TRANSFER', Table, From, Data}.
pub fn send_transfer(table: &Arc<Table>, from: Pid, to: Pid, data: impl FnOnce(*mut Env) -> Word) {
    // SAFETY: a fresh environment is made, filled, sent (which empties it) and freed here; the caller's is that of the running callback, or
    // null on a thread of our own, as `enif_send` wants it.
    unsafe {
        let env = enif_alloc_env();
        let data = data(env);
        let message = call::tuple(
            env,
            &[
                atoms::TRANSFER.word(),
                tables::term(env, table),
                from.pid,
                data,
            ],
        );
        enif_send(call::current_env(), &to, env, message);
        enif_free_env(env);
    }
}
