//! The programs of match specifications, which scans, indexes and feeds run on rows.
//!
//! With the feature `matchspec` they are those of the crate `larder-matchspec`. Without it there
//! are none: [`Program`] has no value then. So the engine has the same code in both builds, and the
//! compiler drops what would run a program. Only what makes or takes programs in the interface is
//! left out: the modules `api::matching` and `scan::matching`.

#[cfg(not(feature = "matchspec"))]
mod absent;

#[cfg(not(feature = "matchspec"))]
pub use absent::{BuiltTerm, Context, KeyAccess, Outcome, Plan, Program, Scratch};
#[cfg(not(feature = "matchspec"))]
pub(crate) use absent::{Filter, Known, Matcher, Shown, Verdict};
#[cfg(feature = "matchspec")]
pub use larder_matchspec::{BuiltTerm, Context, KeyAccess, Outcome, Plan, Program, Scratch};
#[cfg(feature = "matchspec")]
pub(crate) use larder_matchspec::{Filter, Known, Matcher, Shown, Verdict};

use crate::error::Error;
use larder_term::text;
use std::fmt;

/// Compiles a specification, written as in Erlang.
///
/// # Errors
/// `BadSpec` with the reason.
pub(crate) fn compile(spec: &str) -> Result<Program, Error> {
    let term = text::parse(spec).map_err(|e| bad(&e))?;
    Program::compile(term.as_ref()).map_err(|e| bad(&e))
}

pub(crate) fn bad(what: &dyn fmt::Display) -> Error {
    Error::BadSpec(what.to_string().into())
}
