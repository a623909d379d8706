//! What is kept alive for the host: objects to which magic references refer, and copies of terms in
//! environments of their own.
//!
//! A table must keep alive what a magic reference refers to. So the reference is stored with an
//! *anchor*, which is a count of the object. If the layout of references isn't known, or for a
//! reference within a term that is stored in the external format, it is a copy of the term. An
//! environment takes two kilobytes.

use crate::sys::*;
use larder_term::blob::Anchor;
use std::ffi::c_void;
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

/// A count of an object to which a reference refers.
pub struct KeptObject(*mut c_void);

// SAFETY: the count is the emulator's, and atomic. Any thread may give it back.
unsafe impl Send for KeptObject {}
// SAFETY: as above; making a term takes another count.
unsafe impl Sync for KeptObject {}

impl KeptObject {
    /// An anchor that counts an object.
    ///
    /// # Safety
    /// `resource::object` has returned it, for a term that lives during the call.
    pub unsafe fn anchor(object: *mut c_void) -> Anchor {
        // SAFETY: the caller's promise. The emulator counts all objects as it does resources.
        unsafe { enif_keep_resource(object) };
        Anchor::new(Arc::new(KeptObject(object)))
    }

    /// The reference to the object.
    pub fn term(&self, env: *mut Env) -> Word {
        // SAFETY: the count keeps the object alive; `env` is the running call's.
        unsafe { enif_make_resource(env, self.0) }
    }
}

impl Drop for KeptObject {
    fn drop(&mut self) {
        // SAFETY: gives back the count, once.
        unsafe { enif_release_resource(self.0) }
    }
}

/// Makes an anchor with a copy of this term.
pub fn anchor(word: Word, reference: bool) -> Anchor {
    Anchor::new(Arc::new(KeptTerm::new(word, reference)))
}
