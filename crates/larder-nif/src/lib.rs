//! Larder's door for Erlang and Elixir: the native functions behind the Erlang modules `larder_nif`
//! and `larder`.
//!
//! Terms of the BEAM become stored bytes and bytes become terms ([`terms`]); everything between is
//! the engine's.
//!
//! | module | what it is |
//! |---|---|
//! | [`sys`] | the C interface of the BEAM, as far as used; callbacks; the external term format |
//! | [`layout`] | how terms lie in memory, kind by kind, proved at load |
//! | [`heap`] | memory on the heap of a process, where results are written |
//! | [`resource`] | Rust values that the BEAM's garbage collector owns |
//! | [`terms`] | terms to bytes and back: one writer, one reader |
//! | [`call`] | how every call begins and ends: no panic passes |
//! | [`tables`] | table ids; processes as owners |
//! | [`ops`] | the functions |
//! | [`load`] | what is done once, when the library is loaded |
//!
//! Each imports those above it alone.
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
        load: Some(load::load),
        reload: None,
        upgrade: Some(load::upgrade),
        unload: Some(load::unload),
        vm_variant: c"beam.vanilla".as_ptr(),
        options: 1,
        sizeof_resource_type_init: std::mem::size_of::<sys::ResourceTypeInit>(),
        min_erts: c"erts-10.4".as_ptr(),
    }))
}
