//! Erlang's text syntax for terms.

mod print;

pub use print::print;
pub(crate) use print::write_atom;

