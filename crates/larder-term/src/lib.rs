//! Erlang's terms as bytes: identity, order, hash, text and the external format.
//!
//! docs to come in this file's guide.

pub mod atom;
pub mod blob;
mod compare;
mod encoder;
pub mod etf;
mod macros;
pub mod hash;
mod maps;
pub mod node;
pub mod number;
pub mod object;
pub mod order_key;
pub mod skip;
pub mod tags;
mod term;
pub mod text;
pub mod varint;
mod view;

pub use atom::{atoms, Atom, AtomError};
pub use compare::{legacy_zero, set_legacy_zero};
pub use encoder::{DuplicateKey, Encoder, MapToken, Mode};
#[doc(hidden)]
pub use macros::Literal;
pub use node::{Node, NodeName};
pub use skip::skip;
pub use term::{AsTerm, Incomplete, NotFinite, Term, TermBuf};
pub use view::{BigRef, FunRef, Kind, ListRef, MapRef, Pairs, PidRef, PortRef, RefRef, TermRef, Terms, TupleRef, View};
