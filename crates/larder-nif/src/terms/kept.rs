//! What is kept alive for the host: binaries, objects to which magic references refer, and copies
//! of terms in environments of their own.
//!
//! A table must keep alive what a magic reference refers to. So the reference is stored with an
//! *anchor*, which is a count of the object. If the layout of references isn't known, or for a
//! reference within a term that is stored in the external format, it is a copy of the term. An
//! environment takes two kilobytes.

use crate::layout::{self, Counted};
use crate::resource;
use crate::sys::external::external_format;
use crate::sys::*;
use larder_term::blob::{set_host_objects, Anchor, HostObjects};
use std::sync::Arc;

/// A copy of a term of the host in an environment of its own.
pub struct KeptTerm {
    env: *mut Env,
    word: Word,
    /// Whether the term is the reference itself, not a term that contains it.
    pub reference: bool,
}

// SAFETY: the environment belongs to this value alone and is only read (copied from) until it is
// freed; any thread may do either.
unsafe impl Send for KeptTerm {}
// SAFETY: as above: copying out of an environment does not change it.
unsafe impl Sync for KeptTerm {}

impl KeptTerm {
    /// A copy of the term.
    pub fn new(word: Word, reference: bool) -> KeptTerm {
        // SAFETY: the environment is fresh and ours; the term is alive during the call.
        unsafe {
            let env = enif_alloc_env();
            KeptTerm {
                env,
                word: enif_make_copy(env, word),
                reference,
            }
        }
    }

    /// A copy in the caller's environment.
    pub fn copy(&self, env: *mut Env) -> Word {
        // SAFETY: the kept term lives as long as `self`; `env` is the running call's.
        unsafe { enif_make_copy(env, self.word) }
    }
}

impl Drop for KeptTerm {
    fn drop(&mut self) {
        // SAFETY: the environment is this value's, freed once.
        unsafe { enif_free_env(self.env) }
    }
}

/// Makes an anchor that is a count of an object.
///
/// # Safety
/// `resource::object` has returned it, for a term that lives during the call.
pub unsafe fn anchor_of(object: *mut Counted) -> Anchor {
    // SAFETY: the term holds the object, which is counted as a binary is. The count is the
    // anchor's.
    unsafe {
        layout::retain(object);
        Anchor::of_host(object as usize)
    }
}

/// Makes an anchor with a copy of this term.
pub fn anchor(word: Word, reference: bool) -> Anchor {
    Anchor::new(Arc::new(KeptTerm::new(word, reference)))
}

/// Tells the term layer how the emulator counts references to binaries and other objects, if that
/// is known.
pub fn share_counts() {
    unsafe fn hold(address: usize) {
        // SAFETY: the caller's promise: somebody holds it.
        unsafe { layout::retain(address as *mut Counted) }
    }
    unsafe fn release(address: usize) {
        // SAFETY: the caller's promise: the count is given up.
        unsafe { layout::release(address as *mut Counted, layout::own_bytes(address), 0) }
    }
    unsafe fn bytes(address: usize) -> *const u8 {
        layout::own_bytes(address)
    }
    /// The emulator finds an object by the numbers of its reference only once it has written the
    /// external format of one.
    unsafe fn exported(address: usize) {
        // SAFETY: the caller's promise: somebody holds it. The environment is fresh, ours alone,
        // and freed once.
        unsafe {
            let env = enif_alloc_env();
            let word = resource::reference_to(env, address as *mut Counted);
            external_format(env, word, |_| ());
            enif_free_env(env);
        }
    }
    if layout::are_counts_known() {
        // SAFETY: the functions do what their documentation says, for counted binaries of the
        // emulator, and for the objects that `resource::object` returns, on any thread.
        unsafe {
            set_host_objects(HostObjects {
                hold,
                release,
                bytes,
                exported,
            });
        }
    }
}
