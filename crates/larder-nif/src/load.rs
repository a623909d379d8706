//! What is done once, when the emulator loads the library: verifying layouts, and registering
//! resource types and atoms.

use crate::layout::{self, Samples};
use crate::sys::callback;
use crate::sys::*;
use crate::tables::{self, owners};
use crate::terms::{self, atoms, binaries};
use crate::{heap, ops, resource};
use std::ffi::{c_int, c_void};

/// The version of the library.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Its address identifies this copy of the library.
static IDENTITY: u8 = 0;

fn identity() -> *mut c_void {
    std::ptr::addr_of!(IDENTITY).cast_mut().cast()
}

/// Prepares the library: verifies the layout of terms, then registers resource types and atoms. If
/// it returns `false`, the library must not be used.
fn prepare(env: *mut Env, info: Word) -> bool {
    // Words, lists and tuples first: everything below reads them.
    if let Err(why) = layout::prove(env) {
        eprintln!("larder: this Erlang release is not supported: {why}");
        return false;
    }
    atoms::load(env);
    ops::options::load(env);
    let given = given(info);
    if !is_of_this_version(&given) {
        return false;
    }
    // Resource types must be registered in the callback. Without them there are no tables.
    if !open_resources(env) {
        return false;
    }
    // The proofs that follow may fail. Then the library works by official functions for these
    // kinds.
    layout::prove_magic(env, samples(env)[0].word);
    layout::find_largest_integer();
    if layout::is_wanted("heap_top") {
        heap::prove(env);
    }
    if layout::is_wanted("magic") {
        resource::prove(env, &samples(env));
    }
    larder_matchspec::set_exact_map_keys(given.exact_map_keys);
    larder_matchspec::set_native_records(given.native_records);
    ops::update::check_defaults(given.checks_defaults);
    owners::load(given.schedulers);
    layout::prove_kinds(env, &given.samples);
    // The objects are counted as binaries are, so this comes after the proof of their counts.
    resource::prove_objects(env, &samples(env), given.atomics);
    terms::share_counts();
    // SAFETY: the environment is the one that the emulator has passed to `load`.
    terms::prove_maps(&unsafe { heap::Heap::new(env) });
    true
}

/// Resources of several types and sizes, which live until the call ends.
fn samples(env: *mut Env) -> Vec<resource::Sample> {
    let blob = || binaries::BLOBS.sample(env, larder_term::blob::Blob::from_slice(&[]));
    vec![blob(), owners::sample(env), blob(), owners::sample(env)]
}

/// Whether the Erlang modules are of the library's version. Others would call functions that are
/// not there, or that have other arguments or results.
fn is_of_this_version(given: &Given) -> bool {
    let matches = given.version.as_deref() == Some(VERSION);
    if !matches {
        let modules = given.version.as_deref().unwrap_or("unknown (an older one)");
        eprintln!(
            "larder: the native library's version is {VERSION}, that of the Erlang modules is \
             {modules}; install both from one build, and restart the node"
        );
    }
    matches
}

fn open_resources(env: *mut Env) -> bool {
    // If a type can't be registered, the library isn't loaded.
    tables::TABLES.open(env, c"larder_table", None)
        && binaries::BLOBS.open(env, c"larder_binary", None)
        && owners::OWNERS.open(env, c"larder_owner", Some(owners::down))
        && owners::GUARDS.open(env, c"larder_guard", None)
        && ops::insert::INSERTIONS.open(env, c"larder_insertion", None)
        && ops::select::SCANS.open(env, c"larder_scan", None)
        && ops::transaction::TRANSACTIONS.open(env, c"larder_transaction", None)
        && ops::snapshot::DIFFS.open(env, c"larder_diff", None)
        && ops::files::SAVES.open(env, c"larder_save", None)
        && ops::files::LOADS.open(env, c"larder_load", None)
        && ops::feed::FEEDS.open(env, c"larder_feed", Some(ops::feed::down))
        && ops::spec::PROGRAMS.open(env, c"larder_program", None)
        && ops::spec::PREPARED.open(env, c"larder_prepared", None)
}

/// Called when the library is loaded for the first time.
pub unsafe extern "C" fn load(env: *mut Env, data: *mut *mut c_void, info: Word) -> c_int {
    let mut ready = false;
    callback::run(env, || ready = prepare(env, info));
    if !ready {
        return 1;
    }
    // SAFETY: the emulator passes the place of the library's data.
    unsafe { *data = identity() };
    0
}

/// Called when a newer version of the Erlang module loads the library again.
pub unsafe extern "C" fn upgrade(
    env: *mut Env,
    data: *mut *mut c_void,
    old: *mut *mut c_void,
    info: Word,
) -> c_int {
    // SAFETY: the emulator passes the place where the library of the old code has put its data.
    if unsafe { *old } != identity() {
        eprintln!(
            "larder: another build of the native library than this one, {VERSION}, is in use; \
             restart the node to change it"
        );
        return 2;
    }
    let mut ready = false;
    callback::run(env, || {
        ready = is_of_this_version(&given(info)) && open_resources(env);
    });
    // SAFETY: as in `load`.
    unsafe { *data = identity() };
    c_int::from(!ready)
}

/// Called when the code of a module is unloaded. The library stays.
pub unsafe extern "C" fn unload(_env: *mut Env, _data: *mut c_void) {}

/// What Erlang passes to the library.
struct Given {
    samples: Samples,
    /// Whether `ets` takes a key with a map as an exact key, not as a pattern.
    exact_map_keys: bool,
    /// The number of schedulers.
    schedulers: u64,
    /// The version of the Erlang modules, if they say it.
    version: Option<String>,
    /// Whether `is_record/3` of a match specification asks for native records.
    native_records: bool,
    /// Whether `ets` refuses a default without a key also if it isn't needed.
    checks_defaults: bool,
    /// A reference to atomics.
    atomics: Option<Word>,
}

/// What is in `[Alias, Fun, Free1, Free2, Export1, Export2, ExactMapKeys, Schedulers, Version,
/// NativeRecords, ChecksDefaults, Atomics]`.
fn given(list: Word) -> Given {
    // The list has a fixed order. What is missing at its end is absent.
    let mut given = layout::elements(list);
    let mut next = || given.next();
    let (alias, fun) = (next(), next());
    let free = [(); 2].map(|()| next().unwrap_or(layout::NIL));
    let exports = [(); 2].map(|()| next());
    let samples = Samples {
        alias,
        fun,
        free,
        exports,
    };
    Given {
        samples,
        exact_map_keys: next() == Some(atoms::TRUE.word()),
        schedulers: next()
            .and_then(layout::small)
            .map_or(u64::MAX, |n| n as u64),
        version: next().and_then(text),
        native_records: next() == Some(atoms::TRUE.word()),
        checks_defaults: next() == Some(atoms::TRUE.word()),
        atomics: next(),
    }
}

/// The text of a list of bytes; `None` for any other term.
fn text(list: Word) -> Option<String> {
    let mut elements = layout::elements(list);
    let byte = |element| u8::try_from(layout::small(element)?).ok();
    let bytes = elements.by_ref().map(byte).collect::<Option<_>>()?;
    String::from_utf8(bytes)
        .ok()
        .filter(|_| elements.rest == layout::NIL)
}
