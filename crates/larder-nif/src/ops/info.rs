//! Information about tables: the items that `fact` reads. Module `larder_info` derives all others
//! from these. Each item is read at an instant of its own.

use super::{index, options};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, owners, owners::ENGINE};
use crate::terms::atoms::{self, Known};
use larder::host::{Access, Concurrency, EngineTable, Evict, Fixed, TableKind};
use std::sync::Arc;

/// info(Table, Item) -> Fact | undefined. `undefined` if the table doesn't exist, whatever the item
/// is.
pub fn info(call: &Call<'_>) -> Reply {
    about(call, |table| fact(call, table, call.args[1]))
}

/// info_list(Table, Items) -> [Fact] | undefined.
pub fn info_list(call: &Call<'_>) -> Reply {
    about(call, |table| {
        // Facts in the order of the items. An unknown item is an error.
        let facts = layout::elements(call.args[1]).map(|item| fact(call, table, item));
        Ok(call.list(&facts.collect::<Result<Vec<_>, _>>()?))
    })
}

/// memory() -> {Waiting, Kept}, in bytes.
pub fn memory(call: &Call<'_>) -> Reply {
    let memory = ENGINE.memory();
    let int = |n: usize| call.int(n as i64);
    Ok(call.tuple(&[int(memory.waiting), int(memory.kept)]))
}

/// huge_pages(Huge) -> ok.
pub fn huge_pages(call: &Call<'_>) -> Reply {
    larder::api::Larder::huge_pages(options::flag(call.args[0])?);
    Ok(atoms::OK.word())
}

/// Runs `f` with the call's table, whose owner must be alive; `undefined` if there is none.
#[inline]
fn about(call: &Call<'_>, f: impl FnOnce(&Arc<EngineTable>) -> Reply) -> Reply {
    let found = tables::with(call, call.args[0], |table| {
        // The caller is alive.
        if table.owner() != tables::caller_id(call) && owners::end_dead_owner(call.env, table) {
            // The owner has died, and the table is being deleted, or passed on. Answer as of
            // afterwards.
            return Err(Raise::Again);
        }
        if !table.is_alive() {
            return Err(Raise::Cause(atoms::ID));
        }
        f(table)
    });
    // A table that doesn't exist is no error here, as in `ets`.
    match found {
        Err(Raise::Cause(atoms::ID)) => Ok(atoms::UNDEFINED.word()),
        other => other,
    }
}

/// The information about a table with this name. Most items are those of `info/2`. The Erlang side
/// derives the others from them.
fn fact(call: &Call<'_>, table: &Arc<EngineTable>, item: Word) -> Reply {
    let is = |known: Known| item == known.word();
    // Settings and properties come from different places. Each item reads only what it needs.
    let int = |n: usize| call.int(n as i64);
    let options = table.options();
    Ok(match () {
        // The size may have to wait for a list that is being inserted.
        _ if is(atoms::SIZE) => {
            tables::off_scheduler(call, table.counts_slowly())?;
            int(tables::reply_or_raise(call, table, table.exact_size())?)
        }
        _ if is(atoms::MEMORY) => int(table.memory().div_ceil(size_of::<Word>())),
        _ if is(atoms::OWNER) => owners::pid(table.owner()).pid,
        _ if is(atoms::TYPE) => kind(table.kind()).word(),
        _ if is(atoms::NAME) => atoms::to_word(call.env, table.name()),
        _ if is(atoms::ID) => tables::reference(call.env, table),
        _ if is(atoms::KEYPOS) => int(table.keypos()),
        _ if is(atoms::PROTECTION) => access(table.access()).word(),
        _ if is(atoms::NAMED_TABLE) => boolean(table.is_named()),
        _ if is(atoms::COMPRESSED) => boolean(table.compressed()),
        _ if is(atoms::READ_CONCURRENCY) => boolean(options.read_concurrency),
        _ if is(atoms::WRITE_CONCURRENCY) => concurrency(options.write_concurrency).word(),
        _ if is(atoms::DECENTRALIZED_COUNTERS) => boolean(options.decentralized_counters),
        _ if is(atoms::HEIR) => heir(call, table),
        _ if is(atoms::FIXED) => boolean(fixation(call, table)?.is_some()),
        _ if is(atoms::SAFE_FIXED) => fixed(call, fixation(call, table)?),
        _ if is(atoms::STRUCTURE) => {
            let name = larder_term::Atom::try_new(&options.structure);
            atoms::to_word(call.env, name.unwrap_or(larder_term::atoms::UNDEFINED))
        }
        _ if is(atoms::BOUNDS) => bounds(call, table),
        _ if is(atoms::INDEXES) => index::described(call, &table.indexes()),
        _ if is(atoms::STATS) => stats(call, table),
        _ if is(atoms::SNAPSHOT) => snapshot(call, table),
        _ if is(atoms::SNAPSHOTS) => int(table.snapshots().0),
        _ if is(atoms::SNAPSHOT_MEMORY) => int(table.snapshots().1),
        _ => return Err(BADARG),
    })
}

/// {Ttl, Idle} | {Ttl, Idle, MaxSize, MaxMemory, Evict} | false.
fn bounds(call: &Call<'_>, table: &EngineTable) -> Word {
    // A time that is not limited is `infinity`.
    let time = |ms: Option<u64>| ms.map_or(atoms::INFINITY.word(), |ms| call.int(ms as i64));
    let Some(bounds) = table.bounds() else {
        return atoms::FALSE.word();
    };
    // Times first, which every bounded table has.
    let times = [time(bounds.ttl), time(bounds.idle)];
    let Some(limits) = bounds.limits else {
        return call.tuple(&times);
    };
    let most = |most: Option<usize>| time(most.map(|most| most as u64));
    let evict = match limits.evict {
        Evict::None => atoms::NONE,
        Evict::Lru => atoms::LRU,
        Evict::TinyLfu => atoms::TINYLFU,
        Evict::Sieve => atoms::SIEVE,
    };
    let [ttl, idle] = times;
    call.tuple(&[
        ttl,
        idle,
        most(limits.max_size),
        most(limits.max_memory),
        evict.word(),
    ])
}

/// {Table | undefined, Number, AgeMs} | false.
fn snapshot(call: &Call<'_>, table: &EngineTable) -> Word {
    let Some(of) = table.snapshot_info() else {
        return atoms::FALSE.word();
    };
    // The table may be dropped while its snapshot stays.
    let source = table
        .snapshot_source()
        .map_or(atoms::UNDEFINED.word(), |source| {
            tables::term(call.env, &source)
        });
    let age = i64::try_from(of.age.as_millis()).unwrap_or(i64::MAX);
    call.tuple(&[source, call.int(of.number as i64), call.int(age)])
}

/// The heir, if there is one and it is alive.
fn heir(call: &Call<'_>, table: &EngineTable) -> Word {
    // The heir may have ended since it was set.
    let heir = table.heir().map(owners::pid);
    heir.filter(|&heir| owners::is_alive(call.env, heir))
        .map_or(atoms::NONE.word(), |heir| heir.pid)
}

/// The living processes that have fixed the table.
fn fixation(call: &Call<'_>, table: &Arc<EngineTable>) -> Result<Option<Fixed>, Raise> {
    // Processes that have ended don't count. If there was one, its fixation has been released now,
    // and the call begins again.
    if owners::end_dead_fixers(call.env, table) {
        return Err(Raise::Again);
    }
    Ok(table.fixed())
}

/// {{Leaves, InnerNodes, Depth, Splits, Merges, Contended}, [{Name, Figure}]}.
fn stats(call: &Call<'_>, table: &EngineTable) -> Word {
    let stats = table.stats();
    let int = |n: usize| call.int(n as i64);
    let figures = [
        stats.leaves,
        stats.inner_nodes,
        stats.depth,
        stats.splits as usize,
        stats.merges as usize,
        stats.contended as usize,
    ];
    let more: Vec<Word> = stats
        .more
        .iter()
        .filter_map(|(name, n)| {
            let name = larder_term::Atom::try_new(name).ok()?;
            Some(call.tuple(&[atoms::to_word(call.env, name), int(*n as usize)]))
        })
        .collect();
    call.tuple(&[call.tuple(&figures.map(int)), call.list(&more)])
}

/// {MonotonicNs, SystemNs, [{Pid, Times}]} | false.
fn fixed(call: &Call<'_>, fixed: Option<Fixed>) -> Word {
    let Some(fixed) = fixed else {
        return atoms::FALSE.word();
    };
    // Each process, with the number of times that it has fixed the table.
    let by: Vec<Word> = fixed
        .by
        .iter()
        .map(|(owner, times)| call.tuple(&[owners::pid(*owner).pid, call.int(*times as i64)]))
        .collect();
    call.tuple(&[
        call.int(fixed.since.monotonic_ns),
        call.int(fixed.since.system_ns),
        call.list(&by),
    ])
}

/// The type of a table.
pub fn kind(kind: TableKind) -> Known {
    match kind {
        TableKind::Set => atoms::SET,
        TableKind::OrderedSet => atoms::ORDERED_SET,
        TableKind::Bag => atoms::BAG,
        TableKind::DuplicateBag => atoms::DUPLICATE_BAG,
    }
}

/// The protection of a table.
pub fn access(access: Access) -> Known {
    match access {
        Access::Public => atoms::PUBLIC,
        Access::Protected => atoms::PROTECTED,
        Access::Private => atoms::PRIVATE,
    }
}

fn concurrency(concurrency: Concurrency) -> Known {
    match concurrency {
        Concurrency::Off => atoms::FALSE,
        Concurrency::On => atoms::TRUE,
        Concurrency::Auto => atoms::AUTO,
    }
}
