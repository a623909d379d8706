//! The C interface of the BEAM that this crate uses: types and functions of `erl_nif.h`, NIF
//! version 2.15 (OTP 22 and newer).
//!
//! These are our own declarations, because only some sixty of the functions are needed, and because
//! [`crate::terms::encode`] and [`crate::terms::decode`] work on plain words. The rest of the crate
//! calls them through small safe functions where possible.
//!
//! Functions that take an environment require that it is the one that was passed to the running
//! callback, or one that `enif_alloc_env` made and that no other thread uses meanwhile. Terms must
//! belong to the environment with which they are used; immediate terms belong to all.
#![allow(non_camel_case_types)]

pub mod callback;
pub mod external;

use std::ffi::{c_char, c_int, c_uint, c_void};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Larder's NIF knows the term layout of 64-bit emulators only");

/// An Erlang term in the BEAM's NIF interface: one machine word.
pub type Word = usize;

/// The environment of a call, a callback or a message.
#[repr(C)]
pub struct Env {
    _opaque: [u8; 0],
}

/// A registered type of resource.
#[repr(C)]
pub struct ResourceType {
    _opaque: [u8; 0],
}

/// `ErlNifPid`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pid {
    /// The pid as a term.
    pub pid: Word,
}

/// `ErlNifMonitor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Monitor {
    data: [usize; 4],
}

impl Monitor {
    /// Memory for a monitor that hasn't been made yet.
    pub const fn empty() -> Self {
        Monitor { data: [0; 4] }
    }
}

/// `ErlNifBinary`.
#[repr(C)]
pub struct Binary {
    /// The number of bytes.
    pub size: usize,
    /// The address of the bytes.
    pub data: *mut u8,
    /// The reference-counted object of a binary that was allocated, or that a call made.
    pub counted: *mut c_void,
    spare: [*mut c_void; 2],
}

impl Binary {
    /// Memory for a binary that a call fills in.
    pub const fn empty() -> Self {
        Binary {
            size: 0,
            data: std::ptr::null_mut(),
            counted: std::ptr::null_mut(),
            spare: [std::ptr::null_mut(); 2],
        }
    }

    /// As `enif_alloc_binary` fills it in.
    pub const fn of(size: usize, data: *mut u8, counted: *mut c_void) -> Self {
        Binary {
            size,
            data,
            counted,
            spare: [std::ptr::null_mut(); 2],
        }
    }
}

/// A native function.
pub type Nif = unsafe extern "C" fn(*mut Env, c_int, *const Word) -> Word;

/// `ErlNifFunc`.
#[repr(C)]
pub struct Func {
    /// Its name, ended by a zero byte.
    pub name: *const c_char,
    /// Its arity.
    pub arity: c_uint,
    /// The code.
    pub fptr: Nif,
    /// `DIRTY_*` or 0.
    pub flags: c_uint,
}

/// The type of a thread that is a scheduler, but not a dirty one.
pub const NORMAL_SCHEDULER: c_int = 1;

/// Run on a dirty scheduler for work that takes long.
pub const DIRTY_CPU: c_uint = 1;
/// Run on a dirty scheduler for work that waits for files.
pub const DIRTY_IO: c_uint = 2;

/// `ErlNifResourceTypeInit` as version 2.15 has it.
#[repr(C)]
pub struct ResourceTypeInit {
    /// Called when the last reference is gone.
    pub dtor: Option<unsafe extern "C" fn(*mut Env, *mut c_void)>,
    /// For `enif_select`; unused.
    pub stop: Option<unsafe extern "C" fn(*mut Env, *mut c_void, c_int, c_int)>,
    /// Called when a monitored process is gone.
    pub down: Option<unsafe extern "C" fn(*mut Env, *mut c_void, *mut Pid, *mut Monitor)>,
}

/// Make the resource type.
pub const RT_CREATE: c_uint = 1;
/// Take the resource type over from the module's old code.
pub const RT_TAKEOVER: c_uint = 2;
/// The only character encoding of version 2.15.
pub const LATIN1: c_uint = 1;
/// Nanoseconds (`ErlNifTimeUnit`).
pub const NANOSECONDS: c_int = 3;

/// What kind of term a word is (`ErlNifTermType`).
pub mod term_type {
    use std::ffi::c_int;
    /// A binary or bitstring.
    pub const BITSTRING: c_int = 2;
    /// A float.
    pub const FLOAT: c_int = 3;
    /// An integer of any size.
    pub const INTEGER: c_int = 5;
    /// A map.
    pub const MAP: c_int = 7;
    /// A reference.
    pub const REFERENCE: c_int = 10;
}

/// `ErlNifEntry`.
#[repr(C)]
pub struct Entry {
    /// 2.
    pub major: c_int,
    /// 15.
    pub minor: c_int,
    /// The Erlang module.
    pub name: *const c_char,
    /// The number of functions.
    pub num_of_funcs: c_int,
    /// The functions.
    pub funcs: *mut Func,
    /// The first load.
    pub load: Option<unsafe extern "C" fn(*mut Env, *mut *mut c_void, Word) -> c_int>,
    /// Unused since OTP 20.
    pub reload: Option<unsafe extern "C" fn(*mut Env, *mut *mut c_void, Word) -> c_int>,
    /// A load while old code is there.
    pub upgrade:
        Option<unsafe extern "C" fn(*mut Env, *mut *mut c_void, *mut *mut c_void, Word) -> c_int>,
    /// Called when the code is unloaded.
    pub unload: Option<unsafe extern "C" fn(*mut Env, *mut c_void)>,
    /// "beam.vanilla".
    pub vm_variant: *const c_char,
    /// 1: knows dirty schedulers.
    pub options: c_uint,
    /// The size of `ResourceTypeInit`.
    pub sizeof_resource_type_init: usize,
    /// The least ERTS it loads in.
    pub min_erts: *const c_char,
}

// The functions, each as `erl_nif(3)` documents it.
#[allow(missing_docs)]
extern "C" {
    // Environments, processes and messages.
    pub fn enif_alloc_env() -> *mut Env;
    pub fn enif_free_env(env: *mut Env);
    pub fn enif_make_copy(to: *mut Env, term: Word) -> Word;
    pub fn enif_send(env: *mut Env, to: *const Pid, message_env: *mut Env, message: Word) -> c_int;
    pub fn enif_thread_type() -> c_int;
    pub fn enif_self(env: *mut Env, pid: *mut Pid) -> *mut Pid;
    pub fn enif_get_local_pid(env: *mut Env, term: Word, pid: *mut Pid) -> c_int;
    pub fn enif_is_process_alive(env: *mut Env, pid: *mut Pid) -> c_int;
    pub fn enif_monitor_process(
        env: *mut Env,
        object: *mut c_void,
        pid: *const Pid,
        monitor: *mut Monitor,
    ) -> c_int;

    // Resources: memory of this library that terms refer to.
    pub fn enif_open_resource_type_x(
        env: *mut Env,
        name: *const c_char,
        init: *const ResourceTypeInit,
        flags: c_uint,
        tried: *mut c_uint,
    ) -> *mut ResourceType;
    pub fn enif_alloc_resource(kind: *mut ResourceType, size: usize) -> *mut c_void;
    pub fn enif_release_resource(object: *mut c_void);
    pub fn enif_keep_resource(object: *mut c_void);
    pub fn enif_make_resource(env: *mut Env, object: *mut c_void) -> Word;
    pub fn enif_get_resource(
        env: *mut Env,
        term: Word,
        kind: *mut ResourceType,
        object: *mut *mut c_void,
    ) -> c_int;
    pub fn enif_make_resource_binary(
        env: *mut Env,
        object: *mut c_void,
        data: *const c_void,
        size: usize,
    ) -> Word;

    // Terms: their kinds, reading them and making them.
    pub fn enif_term_type(env: *mut Env, term: Word) -> c_int;
    pub fn enif_inspect_binary(env: *mut Env, term: Word, binary: *mut Binary) -> c_int;
    pub fn enif_alloc_binary(size: usize, binary: *mut Binary) -> c_int;
    pub fn enif_release_binary(binary: *mut Binary);
    pub fn enif_make_binary(env: *mut Env, binary: *mut Binary) -> Word;
    pub fn enif_make_new_binary(env: *mut Env, size: usize, term: *mut Word) -> *mut u8;
    pub fn enif_term_to_binary(env: *mut Env, term: Word, binary: *mut Binary) -> c_int;
    pub fn enif_binary_to_term(
        env: *mut Env,
        data: *const u8,
        size: usize,
        term: *mut Word,
        options: c_uint,
    ) -> usize;
    pub fn enif_get_atom(
        env: *mut Env,
        term: Word,
        buffer: *mut c_char,
        size: c_uint,
        encoding: c_uint,
    ) -> c_int;
    pub fn enif_make_atom_len(env: *mut Env, name: *const c_char, length: usize) -> Word;
    pub fn enif_get_double(env: *mut Env, term: Word, value: *mut f64) -> c_int;
    pub fn enif_make_double(env: *mut Env, value: f64) -> Word;
    // On 64-bit Unix the 64-bit integers of erl_nif.h are other names for its longs.
    #[cfg_attr(unix, link_name = "enif_get_long")]
    pub fn enif_get_int64(env: *mut Env, term: Word, value: *mut i64) -> c_int;
    #[cfg_attr(unix, link_name = "enif_make_long")]
    pub fn enif_make_int64(env: *mut Env, value: i64) -> Word;
    pub fn enif_make_list_cell(env: *mut Env, head: Word, tail: Word) -> Word;
    pub fn enif_make_list_from_array(env: *mut Env, terms: *const Word, count: c_uint) -> Word;
    pub fn enif_get_tuple(
        env: *mut Env,
        term: Word,
        arity: *mut c_int,
        elements: *mut *const Word,
    ) -> c_int;
    pub fn enif_make_tuple_from_array(env: *mut Env, terms: *const Word, count: c_uint) -> Word;
    pub fn enif_make_map_from_arrays(
        env: *mut Env,
        keys: *const Word,
        values: *const Word,
        count: usize,
        map: *mut Word,
    ) -> c_int;
    pub fn enif_get_map_size(env: *mut Env, map: Word, size: *mut usize) -> c_int;
    pub fn enif_get_map_value(env: *mut Env, map: Word, key: Word, value: *mut Word) -> c_int;
    pub fn enif_make_new_map(env: *mut Env) -> Word;
    pub fn enif_make_map_put(
        env: *mut Env,
        map: Word,
        key: Word,
        value: Word,
        out: *mut Word,
    ) -> c_int;
    pub fn enif_make_map_remove(env: *mut Env, map: Word, key: Word, out: *mut Word) -> c_int;
    pub fn enif_compare(one: Word, other: Word) -> c_int;
    pub fn enif_is_identical(one: Word, other: Word) -> c_int;
    pub fn enif_make_ref(env: *mut Env) -> Word;
    pub fn enif_make_sub_binary(env: *mut Env, binary: Word, at: usize, size: usize) -> Word;

    // The call itself: its failure, its continuation, its reductions, the time.
    pub fn enif_raise_exception(env: *mut Env, reason: Word) -> Word;
    pub fn enif_schedule_nif(
        env: *mut Env,
        name: *const c_char,
        flags: c_int,
        code: Nif,
        argc: c_int,
        argv: *const Word,
    ) -> Word;
    pub fn enif_consume_timeslice(env: *mut Env, percent: c_int) -> c_int;
    pub fn enif_monotonic_time(unit: c_int) -> i64;
    pub fn enif_time_offset(unit: c_int) -> i64;
}
