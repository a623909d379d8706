//! Larder's host interface for Erlang and Elixir: the native functions behind the Erlang modules
//! `larder_nif` and `larder`.
//!
//! [`terms`] encodes terms of the BEAM as stored bytes, and decodes them. The engine does
//! everything in between.
//!
//! | module | what it is |
//! |---|---|
//! | [`sys`] | the BEAM's C interface, as far as used; the external term format |
//! | [`layout`] | the layout of terms in memory, verified when the library is loaded |
//! | [`heap`] | memory on the heap of a process, in which results are written |
//! | [`resource`] | Rust values that the BEAM's garbage collector owns |
//! | [`terms`] | encoding and decoding terms: one writer, one reader |
//! | [`call`] | how each call begins and ends; catching panics |
//! | [`tables`] | table ids; processes as owners |
//! | [`ops`] | the functions |
//! | [`load`] | what is done once, when the library is loaded |
//!
//! Each module imports only those above it, except that [`resource`] imports `call::Call`.
//!
//! # Time
//!
//! No call runs for much longer than half a millisecond, whatever the size of a table. Long work is
//! done in slices, each of which schedules the next one. If a call finds that a list insert is
//! in progress in its table, it runs a slice of that insert, and is scheduled again.
//!
//! # Loading and upgrading
//!
//! The library refuses to load if the basic layout of terms isn't the expected one. It is never
//! unloaded. If it is loaded again, by a new version of the Erlang module for example, all tables
//! are kept. Another build of the library is refused, because tables can't be moved between two
//! builds. Erlang modules of another version are refused, too, whether they are the first or an
//! upgrade.
//!
//! # Version of the NIF interface
//!
//! 2.15, which OTP 22 and newer have.

#![deny(clippy::all)]

mod call;
mod heap;
mod layout;
mod load;
mod ops;
mod resource;
mod sys;
mod tables;
mod terms;

use std::ffi::{c_int, CStr};
use sys::Entry;

/// Terms are freed by other threads than those that allocated them. The allocator of the C library
/// would seldom give such memory back to the system.
#[global_allocator]
static HEAP: larder::Allocator = larder::Allocator;

// The native functions: the name and the arguments that Erlang sees, the function that does the
// work, and the schedulers that it runs on, if they are dirty ones. An entry without a parameter
// list can't be called from Erlang: it is a later slice of another function, which schedules it.
// One with `or Failure` returns {larder, Cause} where others raise it: see `Failure`.
// Everything else that names them is made from this table: here by `natives!`, and
// `erlang/src/larder_nif_stubs.hrl` by `make stubs`.
natives! {
    new(Name, Options) => admin::new;
    whereis(Name) => admin::whereis;
    all() => admin::all;
    delete_table(Table) => admin::delete;
    rename(Table, Name) => admin::rename;
    give_away(Table, Pid, Data) => admin::give_away;
    setopts(Table, Options) => admin::setopts;
    safe_fixtable(Table, Fix) => admin::safe_fixtable;
    delete_all_objects(Table) => admin::delete_all_objects;
    guard_wanted() => admin::guard_wanted;
    guard_of_next(Table, Pid) => admin::guard_of_next;
    structures() => structures::structures;
    fault(Options) => structures::fault;
    info(Table, Item) => info::info;
    info_list(Table, Items) => info::info_list;
    memory() => info::memory;
    huge_pages(Huge) => info::huge_pages;
    insert(Table, Object) => single::insert or Failure;
    insert_new(Table, Object) => single::insert_new or Failure;
    insert_with(Table, Object, Ttl) => bounds::insert_with;
    expire(Table, Key, Ttl) => bounds::expire;
    ttl(Table, Key) => bounds::ttl;
    insert_list(Table, Objects) => insert::insert_list or Failure;
    insert_new_list(Table, Objects) => insert::insert_new_list or Failure;
    insert_more => insert::insert_more or Failure;
    lookup(Table, Key) => single::lookup or Failure;
    lookup_many(Table, Keys, Done) => key_batch::lookup_many;
    lookup_more => key_batch::lookup_more;
    take_many(Table, Keys, Done) => key_batch::take_many;
    take_more => key_batch::take_more;
    lookup_element(Table, Key, Position) => single::lookup_element;
    lookup_element_default(Table, Key, Position, Default) => single::lookup_element_default;
    lookup_elements(Table, Key, Positions) => single::lookup_elements;
    lookup_elements_default(Table, Key, Positions, Default) => single::lookup_elements_default;
    member(Table, Key) => single::member or Failure;
    delete(Table, Key) => single::delete or Failure;
    delete_object(Table, Object) => single::delete_object or Failure;
    take(Table, Key) => single::take or Failure;
    update_counter(Table, Key, Ops) => update::update_counter or Failure;
    update_counter_default(Table, Key, Ops, Default) => update::update_counter or Failure;
    update_element(Table, Key, Elements) => update::update_element or Failure;
    update_element_default(Table, Key, Elements, Default) => update::update_element or Failure;
    update_map(Table, Key, Ops) => maps::update_map;
    first(Table) => traverse::first;
    last(Table) => traverse::last;
    next(Table, Key) => traverse::next;
    prev(Table, Key) => traverse::prev;
    first_lookup(Table) => traverse::first_lookup;
    last_lookup(Table) => traverse::last_lookup;
    next_lookup(Table, Key) => traverse::next_lookup;
    prev_lookup(Table, Key) => traverse::prev_lookup;
    slot(Table, Slot) => traverse::slot;
    rank(Table, Key) => rank::rank;
    nth(Table, N) => rank::nth;
    count_range(Table, Low, High) => rank::count_range;
    slice(Table, From, Count) => select::from_rank;
    fold_first(Table, Way) => traverse::fold_first;
    fold_next(Table, Way, Key, Stamp, Count) => traverse::fold_next;
    fold_holds(Table, Stamp) => traverse::fold_holds or Failure;
    select_all(Table, Kind, Spec, Direction) => select::select_all;
    every(Table) => select::every;
    select_some(Table, Kind, Spec, Limit, Direction) => select::select_some;
    select_again(Table, Limit, Direction, Place, Program) => select::select_again;
    select_count(Table, Spec) => select::select_count;
    select_delete(Table, Spec) => select::select_delete;
    match_delete(Table, Pattern) => select::match_delete;
    select_take(Table, Spec) => select::select_take;
    select_replace(Table, Spec) => select::select_replace;
    scan_more => select::scan_more;
    add_index(Table, Index) => index::add_index;
    drop_index(Table, Name) => index::drop_index;
    index_lookup(Table, Name, Value) => index::index_lookup;
    index_select_all(Table, Name, Spec) => index::index_select_all;
    index_select_some(Table, Name, Spec, Limit) => index::index_select_some;
    index_select_again(Table, Name, Limit, Place, Program) => index::index_select_again;
    explain(Table, Spec) => index::explain;
    subscribe(Table, Spec, Limit, Relay) => feed::subscribe;
    snapshot_and_subscribe(Table, Spec, Limit, Relay) => feed::snapshot_and_subscribe;
    feed_next(Feed, Most, Sleeps) => feed::feed_next;
    unsubscribe(Feed) => feed::unsubscribe;
    compile(Spec) => spec::compile_ref;
    prepare(Spec) => spec::prepare;
    parameters(Term) => spec::parameters;
    prepare_fault(Spec) => spec::prepare_fault;
    is_compiled(Term) => spec::is_compiled;
    run(Terms, Program, Done) => spec::run;
    test(Term, Spec) => spec::test;
    snapshot(Tables) => snapshot::snapshot;
    release(Snapshot) => snapshot::release;
    diff(Old, New) => snapshot::diff;
    diff_more => snapshot::diff_more;
    save(Table, Path, Sync, Extra) => files::save @ sys::DIRTY_IO;
    save_more => files::save_more @ sys::DIRTY_IO;
    load_table(Path, Verify, NewAtoms) => files::load_table @ sys::DIRTY_IO;
    load_more => files::load_more @ sys::DIRTY_IO;
    file_header(Path) => files::file_header @ sys::DIRTY_IO;
    begin_transaction(Tables, Urgent) => transaction::begin;
    commit_transaction(Transaction) => transaction::commit;
    commit_large => transaction::commit_large @ sys::DIRTY_CPU;
    end_transaction(Transaction) => transaction::end;
    commit(Operations, Urgent) => commit::commit;
    commit_many => commit::commit_many @ sys::DIRTY_CPU;
}

const MODULE: &CStr = c"larder_nif";

/// Called by the emulator to get the list of native functions.
#[no_mangle]
pub extern "C" fn nif_init() -> *const Entry {
    let functions = Box::leak(functions().into_boxed_slice());
    // This memory is never freed. It is allocated once for each load of the module.
    Box::leak(Box::new(Entry {
        major: 2,
        minor: 15,
        name: MODULE.as_ptr(),
        num_of_funcs: functions.len() as c_int,
        funcs: functions.as_mut_ptr(),
        load: Some(load::load),
        reload: None,
        upgrade: Some(load::upgrade),
        unload: Some(load::unload),
        vm_variant: c"beam.vanilla".as_ptr(),
        options: 1,
        sizeof_resource_type_init: std::mem::size_of::<sys::ResourceTypeInit>(),
        // The oldest release whose interface has all functions that are used.
        min_erts: c"erts-10.4".as_ptr(),
    }))
}
