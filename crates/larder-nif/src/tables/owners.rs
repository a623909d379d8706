//! Processes as owners of tables: how this library learns that one has ended, and what it tells the
//! heirs.
//!
//! An owner's number is the word of its pid. A process becomes an owner when it creates, fixes or
//! is given a table, or is named as an heir. From then on a resource monitors it.
//!
//! ```text
//!  the process exits
//!    1. its timers are cancelled ─▶ a guard's reference goes ─▶ GUARDS' destructor ┐
//!    2. links fire ('EXIT')                                                        ├▶ Engine::down
//!    3. monitors fire ('DOWN', and our own)            ─▶ OWNERS' `down` ──────────┤
//!  somebody meets its table (whereis, info,                                        │
//!  a name in use, a right refused)                     ─▶ `end_dead_owner` ────────┘
//! ```
//!
//! `Engine::down` leaves all but the first 256 tables to a thread in the background. So a process
//! that accesses one of these also settles it (`Engine::settle`).
//!
//! `ets` guarantees that an heir receives 'ETS-TRANSFER' before any 'EXIT' or 'DOWN' of the owner.
//! A monitor of this library fires too late for that. The destructor of a resource runs on the
//! scheduler, but only after the exiting process has yielded.
//!
//! So the owner of a table with an heir is given a few *guards*. A guard is a timer that never
//! fires, and holds the only reference to a resource. When the process exits, its timers are
//! cancelled first. Each cancellation costs enough reductions that the process must yield. Then the
//! destructor of the resource runs, and the heir is notified. Only then do links and monitors fire.
//!
//! If the system stops a scheduler between the yield and the destructor, another scheduler may
//! continue the process. There the destructor of the next guard runs. So the message is late only
//! if as many schedulers are stopped at that point as there are guards, and yet another one
//! continues the process. Even then, `end_dead_owner` makes the effects visible in order. When a
//! stopped scheduler goes on, it runs the destructor before any process. So if there are no more
//! schedulers than guards, the message is never late: a node with one or two schedulers needs one
//! or two guards.
//!
//! Timers belong to the process that they would wake, whoever starts them. So a process that gives
//! away a table with an heir first makes guards for the new owner. An heir that has inherited a
//! table needs no guard: the table's heir is then the process itself, until it names another.

use super::ids;
use crate::call;
use crate::heap::Heap;
use crate::layout;
use crate::resource::{Registered, ResourceRef, Sample};
use crate::sys::callback::{self, current_env, with_env};
use crate::sys::*;
use crate::terms::{atoms, decode};
use larder::host::{ByNumber, Engine, EngineTable, Host, OwnerId};
use larder_term::{Atom, Term};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};

/// A monitored process.
pub struct Owner {
    pid: Pid,
    guards: Guards,
}

/// A resource whose destructor tells that a process is exiting.
pub struct Guard {
    pid: Pid,
}

/// The number of guards of a process on a node with as many schedulers or more; see the module.
const MAX_GUARDS: u8 = 3;

/// The number of guards of a process.
static WANTED_GUARDS: AtomicU8 = AtomicU8::new(MAX_GUARDS);

/// Called when the library is loaded, with the number of schedulers of the node.
pub fn load(schedulers: u64) {
    let wanted = schedulers.clamp(1, MAX_GUARDS.into()) as u8;
    // Ordering: Relaxed; written before any process has a guard.
    WANTED_GUARDS.store(wanted, Ordering::Relaxed);
}

/// The number of guards that a process has.
#[derive(Default)]
struct Guards(AtomicU8);

impl Guards {
    /// Counts one more guard. Returns `false` if there are already enough.
    fn take_place(&self) -> bool {
        // Ordering: Relaxed, as in `load`.
        let wanted = WANTED_GUARDS.load(Ordering::Relaxed);
        let one_more = |n| (n < wanted).then_some(n + 1);
        // Ordering: Relaxed; a count, which orders nothing: of several that ask for the last place,
        // one gets it.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    fn leave_place(&self) {
        // Ordering: Relaxed, as above. There is none to leave if the process has been seen to end.
        let one_less = |n: u8| n.checked_sub(1);
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}

/// The resource type of monitored processes.
pub static OWNERS: Registered<Owner> = Registered::new();
/// The resource type of guards.
pub static GUARDS: Registered<Guard> = Registered::new();

/// All tables of the node.
pub static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Arc::new(BeamHost)));

const SHARDS: usize = 64;
type Shard = Mutex<HashMap<Word, ResourceRef<Owner>, ByNumber>>;
static WATCHED: LazyLock<Vec<Shard>> =
    LazyLock::new(|| (0..SHARDS).map(|_| Shard::default()).collect());

fn number(pid: Pid) -> usize {
    (pid.pid >> 4) % SHARDS
}

fn shard(pid: Pid) -> &'static Shard {
    &WATCHED[number(pid)]
}

/// The owner's id of a process, whether it owns anything or not.
#[inline]
pub fn id(pid: Pid) -> OwnerId {
    OwnerId::from_raw(pid.pid as u64)
}

/// A sample of a resource.
pub fn sample(env: *mut Env) -> Sample {
    let pid = Pid { pid: layout::NIL };
    let guards = Guards::default();
    OWNERS.sample(env, Owner { pid, guards })
}

/// The process with this owner's id.
pub fn pid(owner: OwnerId) -> Pid {
    Pid {
        pid: owner.raw() as Word,
    }
}

/// Whether the process is alive.
pub fn is_alive(env: *mut Env, pid: Pid) -> bool {
    let mut pid = pid;
    // SAFETY: `env` is the running callback's or null on a thread of ours; the pid is a local one.
    unsafe { enif_is_process_alive(env, &mut pid) != 0 }
}

/// Monitors a process. Returns `false` if it has already ended.
pub fn watch(env: *mut Env, pid: Pid) -> bool {
    // Hold the lock until the process is monitored. Another thread then finds that the process is
    // monitored, or has ended.
    let mut watched = shard(pid).lock();
    if watched.contains_key(&pid.pid) {
        return true;
    }
    // Tell the engine about the owner before the monitor can fire.
    ENGINE.register_as(pid.pid as u64);
    let owner = OWNERS.make(Owner {
        pid,
        guards: Guards::default(),
    });
    if owner.monitor(env, &pid) {
        watched.insert(pid.pid, owner);
        return true;
    }
    drop(watched);
    with_env(env, || ENGINE.down(id(pid)));
    false
}

/// Called by the emulator when a monitored process has ended.
///
/// # Safety
/// Only the emulator calls this, with a resource of `OWNERS`.
pub unsafe extern "C" fn down(
    env: *mut Env,
    object: *mut c_void,
    _pid: *mut Pid,
    _monitor: *mut Monitor,
) {
    callback::run(env, || {
        // SAFETY: resources with this callback hold an `Owner`, alive during the callback.
        let owner = unsafe { &*object.cast::<Owner>() };
        end(owner.pid);
    });
}

/// Ends an owner whose process has ended. Doing so again is harmless. If another thread is doing
/// it, waits for that thread: when this returns, the heirs have been notified. No function that is
/// called here calls this one.
pub fn end(pid: Pid) {
    static ENDING: [Mutex<()>; SHARDS] = [const { Mutex::new(()) }; SHARDS];
    // 1. Remove the process from the monitored ones. Drop its resource at the end, without the
    //    lock.
    let watched = shard(pid).lock().remove(&pid.pid);
    // 2. Only one thread at a time ends owners of a shard. A second one waits until the first has
    //    notified the heirs.
    let ending = ENDING[number(pid)].lock();
    // 3. The engine passes on the tables, or drops them. The second time it finds none.
    ENGINE.down(id(pid));
    drop(ending);
    drop(watched);
}

impl Drop for Guard {
    fn drop(&mut self) {
        if is_alive(current_env(), self.pid) {
            // The process that was to keep the guard has ended before it could. So the owner has
            // one guard less.
            with_owner(self.pid, |owner| owner.guards.leave_place());
        } else {
            end(self.pid);
        }
    }
}

/// If the table's owner has ended, and the table wasn't passed on or dropped yet, ends the owner
/// and settles the table. Returns whether that was the case.
pub fn end_dead_owner(env: *mut Env, table: &Arc<EngineTable>) -> bool {
    // Read the owner first. If the table is passed on meanwhile, its new owner is alive.
    let owner = table.owner();
    let dead = table.is_alive() && !is_alive(env, pid(owner));
    if dead {
        with_env(env, || end_for(owner, table));
    }
    dead
}

/// Ends owners that have fixed the table and whose processes have ended. Returns whether there were
/// any.
pub fn end_dead_fixers(env: *mut Env, table: &Arc<EngineTable>) -> bool {
    let mut dead: Vec<OwnerId> = table.fixers();
    dead.retain(|&owner| !is_alive(env, pid(owner)));
    with_env(env, || dead.iter().for_each(|&owner| end_for(owner, table)));
    !dead.is_empty()
}

/// Ends an owner whose process has ended, with what that means for this table.
fn end_for(owner: OwnerId, table: &Arc<EngineTable>) {
    end(pid(owner));
    ENGINE.settle(table);
}

/// Whether a living process has a table of this name. If an owner has ended, its tables are passed
/// on or dropped first. A table that is just being dropped may keep its name for a moment.
pub fn holds_name(env: *mut Env, name: Atom) -> bool {
    let holds = |table: &Arc<EngineTable>| !end_dead_owner(env, table) && table.is_alive();
    ENGINE.with_named(name, holds) == Some(true)
}

/// Makes a guard for a process, which Erlang must keep where the exit of the process drops it
/// first. `None` if the process has ended, or has enough guards.
pub fn guard(env: *mut Env, pid: Pid) -> Option<Word> {
    let take_place = || with_owner(pid, |owner| owner.guards.take_place());
    // The owner counts the guard. A process that isn't one yet is monitored first.
    let wanted = match take_place() {
        None => watch(env, pid) && take_place().unwrap_or(false),
        Some(wanted) => wanted,
    };
    wanted.then(|| GUARDS.make(Guard { pid }).term(env))
}

fn with_owner<R>(pid: Pid, f: impl FnOnce(&Owner) -> R) -> Option<R> {
    shard(pid).lock().get(&pid.pid).map(|owner| f(owner))
}

/// Receives the notifications of the engine.
struct BeamHost;

impl Host for BeamHost {
    fn transfer(&self, table: &Arc<EngineTable>, from: OwnerId, to: OwnerId, data: &Term) {
        // The data is in a 1-tuple. Any other term means that the heir wants no message.
        if let Some(data) = data.as_ref().as_tuple().and_then(|tuple| tuple.get(0)) {
            send_transfer(table, pid(from), pid(to), |env| {
                // SAFETY: `send_transfer` passes a new environment, and sends it afterwards.
                decode::term(&unsafe { Heap::new(env) }, data)
            });
        }
    }
}

/// Sends {'ETS-TRANSFER', Table, From, Data}.
pub fn send_transfer(
    table: &Arc<EngineTable>,
    from: Pid,
    to: Pid,
    data: impl FnOnce(*mut Env) -> Word,
) {
    // SAFETY: a fresh environment is made, filled, sent (which empties it) and freed here; the
    // caller's is that of the running call or callback, or null if no process is to be the
    // sender.
    unsafe {
        // A message is made in an environment of its own, which sending empties.
        let env = enif_alloc_env();
        let data = data(env);
        let message = call::tuple(
            env,
            &[
                atoms::TRANSFER.word(),
                ids::term(env, table),
                from.pid,
                data,
            ],
        );
        // A process that was killed while it runs on a dirty scheduler sends nothing any more, but
        // the heir has the table. There the message comes from nobody.
        let caller = match enif_thread_type() {
            NORMAL_SCHEDULER => current_env(),
            _ => std::ptr::null_mut(),
        };
        enif_send(caller, &to, env, message);
        enif_free_env(env);
    }
}
