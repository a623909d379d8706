//! Terms of the host that are kept: copies in environments of their own.
//!
//! So that a table is one of those who hold what a magic reference refers to, the reference is
//! stored with an *anchor*, a kept copy of it or of the term that has it.

use crate::sys::*;
use larder_term::blob::Anchor;
use std::sync::Arc;

/// A term of the host, kept in an environment of its own.
pub struct KeptTerm {
    env: *mut Env,
    word: Word,
    /// It is the reference itself, and no term that has it.
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

/// An anchor that is a copy of this term.
pub fn anchor(word: Word, reference: bool) -> Anchor {
    Anchor::new(Arc::new(KeptTerm::new(word, reference)))
}
