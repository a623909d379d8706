//! The emulator's layout of terms, and the proofs, made when the library is loaded, that the
//! running emulator uses it.
//!
//! The official functions can do everything, but a call takes a few nanoseconds. Terms are read and
//! written so often that it pays to do so in place. Each file describes one layout: a drawing, the
//! functions that read it, and the function that verifies it on samples that the emulator makes.
//!
//! | file | what | if the proof fails |
//! |---|---|---|
//! | [`words`] | immediates, lists, tuples | the library refuses to load |
//! | [`kinds`] | the kind of a term, by its header | |
//! | [`numbers`], [`binaries`], [`maps`] | boxed terms, kind by kind | official functions |
//! | [`references`], [`funs`], [`foreign`] | the same | official functions |
//! | [`pids`] | pids and ports of this node | external term format |
//! | [`node`] | the name of this node in its identifiers | |
//!
//! The environment variable `LARDER_UNPROVED`, a list of kinds separated by commas, makes the
//! proofs of these kinds fail. It is for tests.

mod binaries;
mod foreign;
mod funs;
mod kinds;
mod maps;
pub mod node;
mod numbers;
mod pids;
mod references;
mod words;

pub use binaries::*;
pub use foreign::*;
pub use funs::*;
pub use kinds::*;
pub use maps::*;
pub use numbers::*;
pub use pids::*;
pub use references::*;
pub use words::*;

use crate::sys::*;

/// Verifies the layout of words and of the most common boxed terms. After an error, which is a
/// text, the library can't be used on this emulator.
pub fn prove(env: *mut Env) -> Result<(), &'static str> {
    prove_words(env)?;
    prove_floats(env);
    prove_heap_binaries(env);
    prove_flatmaps(env);
    note_common(env);
    prove_pids(env);
    Ok(())
}

/// Terms that the Erlang module passes as samples, as far as its release has them: an alias; a fun
/// with two free variables, and these; and two funs `fun M:F/A` for different functions.
#[derive(Default)]
pub struct Samples {
    pub alias: Option<Word>,
    pub fun: Option<Word>,
    pub free: [Word; 2],
    pub exports: [Option<Word>; 2],
}

/// Whether the proof of a kind is to be tried.
pub fn is_wanted(kind: &str) -> bool {
    std::env::var("LARDER_UNPROVED").map_or(true, |kinds| kinds.split(',').all(|k| k != kind))
}

/// Verifies the kinds of boxed terms, one by one.
pub fn prove_kinds(env: *mut Env, samples: &Samples) {
    // SAFETY: `env` is the environment of the running load callback.
    unsafe {
        // Each kind is noted with the header of a sample. A header that was never noted is
        // `Kind::Other`.
        note(
            enif_make_tuple_from_array(env, [NIL].as_ptr(), 1),
            Kind::Tuple,
        );
        if float_header().is_some() {
            note(enif_make_double(env, 0.5), Kind::Float);
        }
        if flatmap_header().is_some() {
            note(enif_make_new_map(env), Kind::Map);
        }
        let mut bytes = NIL;
        enif_make_new_binary(env, 1, &mut bytes).write(7);
        if heap_binary(bytes) == Some(&[7]) {
            note(bytes, Kind::HeapBinary);
        }
    }
    // A kind whose proof fails stays unknown: the functions that would read it in place are never
    // called.
    if is_wanted("integer") {
        prove_integers(env);
    }
    if is_wanted("reference") {
        prove_references(env, samples.alias);
    }
    if is_wanted("binary") {
        match prove_shared(env) {
            Some(Kind::RangeOfBinary) => prove_ranges(env),
            Some(_) => prove_parts(env),
            None => {}
        }
    }
    if is_wanted("foreign") {
        prove_foreign(env);
    }
    if is_wanted("fun") {
        let _unknown_otherwise = prove_funs(samples);
    }
}
