//! Larder's door for Erlang and Elixir: the native functions behind the Erlang modules `larder_nif`
//! and `larder`.
//!
//! Terms of the BEAM become stored bytes ([`encode`]) and bytes become terms ([`decode`]);
//! everything between is the engine's.
//!
//! | module | what it is |
//! |---|---|
//! | [`sys`] | the C interface of the BEAM, as far as used |
//! | [`layout`] | what is known of a term's bits, tried at load |
//! | [`atoms`], [`identifiers`] | atoms both ways; what goes through the external term format |
//! | [`boxed`] | how boxed terms lie, kind by kind, tried at load |
//! | [`encode`], [`decode`] | terms to bytes and back: one writer, one reader |
//! | [`binaries`], [`funs`], [`trees`] | what is shared with the emulator, or lies in a tree |
//! | [`buffer`], [`room`], [`heap`] | where bytes and results are written |
//! | [`call`] | how every call begins and ends: no panic passes |
//! | [`resource`], [`magic`] | Rust values that the BEAM's garbage collector owns, and where they lie |
//! | [`owners`], [`tables`] | processes as owners; table ids |
//! | [`ops`] | the functions |
//!
//! # Time
//!
//! No call runs for much longer than half a millisecond, whatever the size of a table: long work is
//! done in slices, each of which schedules the next. A call that finds a table busy with a list
//! insert does a slice of that insert and is scheduled again.
//!
//! # Loading and upgrading
//!
//! The library refuses to load where the layout of terms is not what it knows. It is never
//! unloaded. Loading it again (a new version of the Erlang module, say) keeps all tables; another
//! build of the library is refused, because tables cannot move between two.
//!
//! # Version of the NIF interface
//!
//! 2.15, which OTP 22 and newer have.

#![deny(clippy::all)]

mod atoms;
mod binaries;
mod boxed;
mod buffer;
mod call;
mod decode;
mod encode;
mod funs;
mod heap;
mod identifiers;
mod layout;
mod magic;
mod ops;
mod owners;
mod resource;
mod room;
mod sys;
mod tables;
mod trees;

use std::ffi::{c_int, c_void, CStr};
use sys::{Entry, Env, Word};

/// Terms are freed by other threads than those that took their memory, which the C library's
/// allocator would seldom give back to the system.
#[global_allocator]
static HEAP: larder::Allocator = larder::Allocator;

entries! {
    {
        new => admin::new;
        whereis => admin::whereis;
        all => admin::all;
        delete_table => admin::delete;
        rename => admin::rename;
        give_away => admin::give_away;
        setopts => admin::setopts;
        safe_fixtable => admin::safe_fixtable;
        delete_all_objects => admin::delete_all_objects;
        guard_wanted => admin::guard_wanted;
        structures => structures::structures;
        fault => structures::fault;
        guard_of_next => admin::guard_of_next;
        info => info::info;
        info_list => info::info_list;
        insert => single::insert;
        insert_new => single::insert_new;
        insert_list => insert::insert_list;
        insert_new_list => insert::insert_new_list;
        insert_more => insert::insert_more;
        lookup => single::lookup;
        lookup_many => many::lookup_many;
        take_many => many::take_many;
        take_more => many::take_more;
        lookup_element => single::lookup_element;
        lookup_element_default => single::lookup_element_default;
        member => single::member;
        delete => single::delete;
        delete_object => single::delete_object;
        take => single::take;
        update_counter => update::update_counter;
        update_counter_default => update::update_counter_default;
        update_element => update::update_element;
        update_element_default => update::update_element_default;
        first => traverse::first;
        last => traverse::last;
        next => traverse::next;
        prev => traverse::prev;
        first_lookup => traverse::first_lookup;
        last_lookup => traverse::last_lookup;
        next_lookup => traverse::next_lookup;
        prev_lookup => traverse::prev_lookup;
        slot => traverse::slot;
        fold_first => traverse::fold_first;
        fold_next => traverse::fold_next;
        fold_holds => traverse::fold_holds;
        select_all => select::select_all;
        every => select::every;
        select_some => select::select_some;
        select_again => select::select_again;
        select_count => select::select_count;
        select_delete => select::select_delete;
        match_delete => select::match_delete;
        select_replace => select::select_replace;
        scan_more => select::scan_more;
        compile => spec::compile_ref;
        is_compiled => spec::is_compiled;
        run => spec::run;
        test => spec::test;
        save => files::save @ crate::sys::DIRTY_IO;
        load_table => files::load_table @ crate::sys::DIRTY_IO;
        file_header => files::file_header @ crate::sys::DIRTY_IO;
    } exported {
        new / 2;
        whereis / 1;
        all / 0;
        delete_table / 1;
        rename / 2;
        give_away / 3;
        setopts / 2;
        safe_fixtable / 2;
        delete_all_objects / 1;
        guard_wanted / 0;
        structures / 0;
        fault / 1;
        guard_of_next / 2;
        info / 2;
        info_list / 2;
        insert / 2;
        insert_new / 2;
        insert_list / 2;
        insert_new_list / 2;
        lookup / 2;
        lookup_many / 3;
        take_many / 3;
        lookup_element / 3;
        lookup_element_default / 4;
        member / 2;
        delete / 2;
        delete_object / 2;
        take / 2;
        update_counter / 3;
        update_counter_default / 4;
        update_element / 3;
        update_element_default / 4;
        first / 1;
        last / 1;
        next / 2;
        prev / 2;
        first_lookup / 1;
        last_lookup / 1;
        next_lookup / 2;
        prev_lookup / 2;
        slot / 2;
        fold_first / 2;
        fold_next / 5;
        fold_holds / 2;
        select_all / 4;
        every / 1;
        select_some / 5;
        select_again / 5;
        select_count / 2;
        select_delete / 2;
        match_delete / 2;
        select_replace / 2;
        compile / 1;
        is_compiled / 1;
        run / 3;
        test / 2;
        save / 4;
        load_table / 3;
        file_header / 1;
    }
}

/// What tells this copy of the library from another.
static IDENTITY: u8 = 0;

fn identity() -> *mut c_void {
    std::ptr::addr_of!(IDENTITY).cast_mut().cast()
}

/// Makes ready: looks at the layout of terms, then registers resources and atoms. False: the
/// library must not be used.
fn prepare(env: *mut Env, info: Word) -> bool {
    if let Err(why) = layout::check(env) {
        eprintln!("larder: this Erlang release is not supported: {why}");
        return false;
    }
    atoms::load(env);
    ops::options::load(env);
    if !open_resources(env) {
        return false;
    }
    identifiers::check_magic(env, decode::sample_reference(env));
    identifiers::check_integers();
    if boxed::is_wanted("room") {
        room::check(env);
    }
    if boxed::is_wanted("magic") {
        magic::check(env, &samples(env));
    }
    let said = boxed::Samples::of(info);
    larder_matchspec::set_exact_map_keys(said.exact_map_keys);
    boxed::check(env, &said);
    binaries::ready();
    trees::check(&heap::Heap::new(env));
    true
}

/// Resources of several types and sizes, for the time of the call.
fn samples(env: *mut Env) -> Vec<magic::Sample> {
    let blob = || decode::BLOBS.sample(env, larder_term::blob::Blob::from_slice(&[]));
    vec![blob(), owners::sample(env), blob(), owners::sample(env)]
}

fn open_resources(env: *mut Env) -> bool {
    tables::TABLES.open(env, c"larder_table", None)
        && decode::BLOBS.open(env, c"larder_binary", None)
        && owners::OWNERS.open(env, c"larder_owner", Some(owners::down))
        && owners::GUARDS.open(env, c"larder_guard", None)
        && ops::insert::INSERTIONS.open(env, c"larder_insertion", None)
        && ops::select::SCANS.open(env, c"larder_scan", None)
        && ops::spec::PROGRAMS.open(env, c"larder_program", None)
}

unsafe extern "C" fn load(env: *mut Env, data: *mut *mut c_void, info: Word) -> c_int {
    let mut ready = false;
    call::outside(env, || ready = prepare(env, info));
    if !ready {
        return 1;
    }
    // SAFETY: the emulator gives a place for the library's data.
    unsafe { *data = identity() };
    0
}

unsafe extern "C" fn upgrade(
    env: *mut Env,
    data: *mut *mut c_void,
    old: *mut *mut c_void,
    _info: Word,
) -> c_int {
    // SAFETY: the emulator gives the place where the old code's library put its data.
    if unsafe { *old } != identity() {
        eprintln!(
            "larder: another build of the native library is in use; restart the node to change it"
        );
        return 2;
    }
    let mut ready = false;
    call::outside(env, || ready = open_resources(env));
    // SAFETY: as in `load`.
    unsafe { *data = identity() };
    c_int::from(!ready)
}

unsafe extern "C" fn unload(_env: *mut Env, _data: *mut c_void) {}

const MODULE: &CStr = c"larder_nif";

/// What the emulator calls to learn what the library has.
#[no_mangle]
pub extern "C" fn nif_init() -> *const Entry {
    let functions = Box::leak(functions().into_boxed_slice());
    // Once for each load of the module, for as long as the emulator runs.
    Box::leak(Box::new(Entry {
        major: 2,
        minor: 15,
        name: MODULE.as_ptr(),
        num_of_funcs: functions.len() as c_int,
        funcs: functions.as_mut_ptr(),
        load: Some(load),
        reload: None,
        upgrade: Some(upgrade),
        unload: Some(unload),
        vm_variant: c"beam.vanilla".as_ptr(),
        options: 1,
        sizeof_resource_type_init: std::mem::size_of::<sys::ResourceTypeInit>(),
        min_erts: c"erts-10.4".as_ptr(),
    }))
}
