//! Processes as owners of tables: how we learn that one is gone, and what its heirs are told.
//!
//! An owner's number is its pid's word. A process becomes an owner when it makes, fixes or is given
//! a table, or is named as an heir; then a resource of ours monitors it.
//!
//! ```text
//!  the process exits     1. its timers are cancelled  ─▶  a guard's reference goes  ─▶  GUARDS' destructor ─┐
//!                        2. links fire ('EXIT')                                                             ├─▶ Engine::down
//!                        3. monitors fire ('DOWN', and our own)                ─▶  OWNERS' `down`  ─────────┤
//!  somebody meets its table  (whereis, info, a name in use, a right refused)   ─▶  `settle`  ───────────────┘
//! ```
//!
//! `ets` promises that an heir's 'ETS-TRANSFER' comes before any 'EXIT' or 'DOWN' of the owner. A
//! monitor of ours fires too late for that, and the destructor of a resource runs on the scheduler
//! only after the exiting process has yielded. So an owner of a table with an heir is given
//! *guards*: timers that will never fire, a few of which hold the only references to a resource
//! each. At exit their cancellation comes first, and costs so many reductions that the process has
//! to yield after each of them; the destructor runs, the heir is told, and only then do links and
//! monitors fire. A scheduler that the system stops between the yield and the destructor can lose
//! the process to another scheduler, which goes on with it: there the next guard's destructor runs.
//! To hear too late an heir would have to see as many schedulers stopped there as there are guards,
//! and one more go on; `settle` makes what is seen right even then.
//! Timers belong to the process that they would wake, whoever starts them: so who gives a table
//! with an heir away guards the new owner beforehand. An heir that has inherited needs no guard:
//! the table's heir is then itself, until it names another.

use super::ids;
use crate::call;
use crate::heap::Heap;
use crate::layout;
use crate::resource::{Registered, ResourceRef, Sample};
use crate::sys::callback::{self, current_env, with_env};
use crate::sys::*;
use crate::terms::{atoms, decode};
use larder::{ByNumber, Engine, Host, OwnerId, Table};
use larder_term::{Atom, Term};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};

/// A process that is watched.
pub struct Owner {
    pid: Pid,
    guards: Guards,
}

/// What the destructor of which tells that a process is going.
pub struct Guard {
    pid: Pid,
}

/// Guards of a process: see the module.
const GUARDS_PER_OWNER: u8 = 3;

/// How many guards a process has.
#[derive(Default)]
struct Guards(AtomicU8);

impl Guards {
    /// Counts one more, unless there are enough.
    fn take_place(&self) -> bool {
        let one_more = |n| (n < GUARDS_PER_OWNER).then_some(n + 1);
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

/// Watched processes.
pub static OWNERS: Registered<Owner> = Registered::new();
/// Guards.
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

/// The owner that a process is, whether or not it has anything.
#[inline]
pub fn id(pid: Pid) -> OwnerId {
    OwnerId::from_raw(pid.pid as u64)
}

/// A resource to look at.
pub fn sample(env: *mut Env) -> Sample {
    let pid = Pid { pid: layout::NIL };
    let guards = Guards::default();
    OWNERS.sample(env, Owner { pid, guards })
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
    // The lock is held until the monitor is in place: whoever comes meanwhile finds the process
    // watched, or gone.
    let mut watched = shard(pid).lock();
    if watched.contains_key(&pid.pid) {
        return true;
    }
    // The engine knows the owner before the monitor can fire.
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
    callback::run(env, || {
        // SAFETY: resources with this callback hold an `Owner`, alive during the callback.
        let owner = unsafe { &*object.cast::<Owner>() };
        end(owner.pid);
    });
}

/// Ends an owner whose process is gone; to do so again is no error. A thread that comes while
/// another is at it waits: when this returns, the heirs have been told. Nothing called here calls
/// this.
pub fn end(pid: Pid) {
    static ENDING: [Mutex<()>; SHARDS] = [const { Mutex::new(()) }; SHARDS];
    // 1. Nobody finds the process watched any more. The resource is dropped last, outside of the
    // lock.
    let watched = shard(pid).lock().remove(&pid.pid);
    // 2. One thread at a time ends owners of a shard, so a second one waits until the first has
    // told the heirs.
    let ending = ENDING[number(pid)].lock();
    // 3. The engine passes the tables on, or drops them. A second time finds none.
    ENGINE.down(id(pid));
    drop(ending);
    drop(watched);
}

impl Drop for Guard {
    fn drop(&mut self) {
        if is_alive(current_env(), self.pid) {
            // Whoever was to put it into its place has died before it could: the process has one
            // less.
            with_owner(self.pid, |owner| owner.guards.leave_place());
        } else {
            end(self.pid);
        }
    }
}

/// If the table's owner is gone and nobody has said so yet, sees to the tables that it left. True
/// if there was something to see to.
pub fn settle(env: *mut Env, table: &Table) -> bool {
    // The owner first: a table that is passed on meanwhile has another one, who runs.
    let owner = table.owner();
    let gone = table.is_alive() && !is_alive(env, pid(owner));
    if gone {
        with_env(env, || end(pid(owner)));
    }
    gone
}

/// Whether a process that runs has a table of this name. One that was left by its owner is seen to;
/// one that is going may keep its name for a moment.
pub fn holds_name(env: *mut Env, name: Atom) -> bool {
    let holds = |table: &Arc<Table>| !settle(env, table) && table.is_alive();
    ENGINE.with_named(name, holds) == Some(true)
}

/// A resource whose destruction tells that the process is going, for Erlang to keep where the
/// process's exit drops it first; None if the process is gone, or has enough of them.
pub fn guard(env: *mut Env, pid: Pid) -> Option<Word> {
    // Watched first, so that the guard has an owner to count for.
    let wanted =
        watch(env, pid) && with_owner(pid, |owner| owner.guards.take_place()).unwrap_or(false);
    wanted.then(|| GUARDS.make(Guard { pid }).term(env))
}

fn with_owner<R>(pid: Pid, f: impl FnOnce(&Owner) -> R) -> Option<R> {
    shard(pid).lock().get(&pid.pid).map(|owner| f(owner))
}

/// What the engine tells us.
struct BeamHost;

impl Host for BeamHost {
    fn transfer(&self, table: &Arc<Table>, from: OwnerId, to: OwnerId, data: &Term) {
        // The data is in a 1-tuple; anything else says that the heir wants no message.
        if let Some(data) = data.as_ref().as_tuple().and_then(|tuple| tuple.get(0)) {
            send_transfer(table, pid(from), pid(to), |env| {
                decode::term(&Heap::new(env), data)
            });
        }
    }
}

/// Sends {'ETS-TRANSFER', Table, From, Data}.
pub fn send_transfer(table: &Arc<Table>, from: Pid, to: Pid, data: impl FnOnce(*mut Env) -> Word) {
    // SAFETY: a fresh environment is made, filled, sent (which empties it) and freed here; the
    // caller's is that of the running callback, or null on a thread of our own, as `enif_send`
    // wants it.
    unsafe {
        // A message is made in an environment of its own, which the send empties.
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
        enif_send(current_env(), &to, env, message);
        enif_free_env(env);
    }
}
