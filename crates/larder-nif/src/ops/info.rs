//! What is known of a table.

use crate::atoms::{self, Known};
use crate::call::{boolean, with_env, Call, Raise, Reply};
use crate::owners;
use crate::sys::*;
use crate::tables;
use larder::{Access, Concurrency, Error, Info, OwnerId, Table, TableKind};
use std::sync::Arc;

/// info(Table) -> {Id, Name, Named, Type, KeyPos, Protection, Owner, Heir, Size, MemoryBytes, Compressed, WriteConcurrency,
/// ReadConcurrency, DecentralizedCounters, Structure, SafeFixed, Stats, MoreStats} | undefined. Items are put in their places by the Erlang side.
pub fn info(call: &Call<'_>) -> Reply {
    let table = match tables::get(call, call.args[0]) {
        Ok(table) => table,
        Err(Raise::Cause(atoms::ID)) => return Ok(atoms::UNDEFINED.word()),
        Err(other) => return Err(other),
    };
    if owners::settle(call.env, &table) || settle_fixers(call, &table) {
        return Err(Raise::Again);
    }
    let size = match table.settled_size() {
        Err(Error::NoTable) => return Ok(atoms::UNDEFINED.word()),
        size => tables::answer(call, &table, size)?,
    };
    Ok(table.info().map_or(atoms::UNDEFINED.word(), |info| {
        tuple(call, &table, &Info { size, ..info })
    }))
}

/// Sees to processes that have fixed the table and are gone.
fn settle_fixers(call: &Call<'_>, table: &Table) -> bool {
    let mut gone: Vec<OwnerId> = table.fixers();
    gone.retain(|&owner| !owners::is_alive(call.env, owners::pid(owner)));
    with_env(call.env, || {
        gone.iter()
            .for_each(|&owner| owners::end(owners::pid(owner)));
    });
    !gone.is_empty()
}

fn tuple(call: &Call<'_>, table: &Arc<Table>, info: &Info) -> Word {
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
    call.tuple(&[
        tables::reference(call.env, table),
        atoms::to_word(call.env, info.name),
        boolean(info.named),
        kind(info.kind).word(),
        int(info.keypos),
        access(info.access).word(),
        owners::pid(info.owner).pid,
        info.heir
            .map_or(atoms::NONE.word(), |heir| owners::pid(heir).pid),
        int(info.size),
        int(info.memory),
        boolean(info.compressed),
        concurrency(info.write_concurrency).word(),
        boolean(info.read_concurrency),
        boolean(info.decentralized_counters),
        atoms::to_word(
            call.env,
            larder_term::Atom::try_new(&info.structure).unwrap_or(larder_term::atoms::UNDEFINED),
        ),
        fixed(call, info),
        call.tuple(&figures.map(int)),
        call.list(&more),
    ])
}

fn fixed(call: &Call<'_>, info: &Info) -> Word {
    let Some(fixed) = &info.safe_fixed else {
        return atoms::FALSE.word();
    };
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

/// A table's type.
pub fn kind(kind: TableKind) -> Known {
    match kind {
        TableKind::Set => atoms::SET,
        TableKind::OrderedSet => atoms::ORDERED_SET,
        TableKind::Bag => atoms::BAG,
        TableKind::DuplicateBag => atoms::DUPLICATE_BAG,
    }
}

/// Who may read and write.
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
