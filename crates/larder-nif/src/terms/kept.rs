//! Terms of the host that are kept alive, as copies in environments of their own.
//!
//! A table must keep alive what a magic reference refers to. So the reference is stored with an
//! *anchor*, which is a copy of it, or of a term that contains it.

use crate::sys::*;
use larder_term::blob::Anchor;
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

/// Makes an anchor with a copy of this term.
pub fn anchor(word: Word, reference: bool) -> Anchor {
    Anchor::new(Arc::new(KeptTerm::new(word, reference)))
}
