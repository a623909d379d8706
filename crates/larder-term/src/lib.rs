//! Erlang's terms as bytes: identity, order, hash, text and the external format.
//!
//! This is the lowest layer of Larder. It has no notion of a table, but encodes and decodes all
//! that tables store.
//!
//! # Terms
//!
//! [`Term`] owns a term, [`TermRef`] borrows one, and [`View`] is the opened head of one. The macro
//! [`term!`] makes a term of a literal. [`text`] prints and parses terms, and [`etf`] reads and
//! writes Erlang's external format.
//!
//! ```
//! use larder_term::{term, Term, View};
//!
//! let row = term!({user, 17, #{name => "Ann", score => 2.5}});
//! assert_eq!(row.to_string(), "{user,17,#{name => <<\"Ann\">>,score => 2.5}}");
//! assert_eq!("{user, 17, #{score => 2.5, name => <<\"Ann\">>}}".parse::<Term>()?, row);
//!
//! let View::Tuple(tuple) = row.view() else { panic!("a tuple") };
//! assert_eq!(tuple.arity(), 3);
//! assert_eq!(tuple.get(1).and_then(|id| id.as_int()), Some(17));
//!
//! // Identity tells 1 from 1.0, Erlang's order does not.
//! let (int, float) = (term!(1), term!(1.0));
//! assert!(int != float && int.as_ref().eq_term(float.as_ref()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bytes
//!
//! A term is a run of bytes that determines its own end: no encoding is a prefix of another. An
//! [`Encoder`] writes it head by head. In inline mode the encoding is canonical: two terms are
//! identical if and only if their bytes are. In shared mode a binary of more than 127 bytes is
//! outside, reference-counted, and the bytes contain a handle to it ([`blob`] says who owns which
//! count). A large map may have its pairs in the order of the host's tree. An [`order_key`] is
//! another encoding of a term; order keys compare as terms do.
//!
//! ```
//! use larder_term::{order_key, term};
//!
//! let key = |t: &larder_term::Term| {
//!     let mut out = Vec::new();
//!     order_key::encode(t.as_ref(), &mut out);
//!     out
//! };
//! assert!(key(&term!({a, 2})) < key(&term!({a, 2.5})));
//! assert_eq!(key(&term!({a, 2})), key(&term!({a, 2.0})));
//! ```
//!
//! # Objects
//!
//! A table stores tuples. [`object`] splits a tuple into the key and the value that an index
//! stores, and reads it in place.
//!
//! ```
//! use larder_term::{object::{self, KeyForm, ObjectBuf}, term};
//!
//! let mut object = ObjectBuf::new();
//! let row = term!({17, "Ann", [a, b]});
//! object::encode(row.as_ref(), 1, KeyForm::Hash { legacy_zero: false }, false, &mut object)?;
//! let mut scratch = Vec::new();
//! let view = object.view(1, &mut scratch);
//! assert_eq!(view.key().as_int(), Some(17));
//! assert_eq!(view.element(2).and_then(|name| name.as_binary()), Some(&b"Ann"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! * No function recurses over the depth of a term: a million nested lists are no problem.
//! * No untrusted input causes a panic: [`etf`] and [`text`] check what they read.
//!   [`TermRef::trusted`] and similar functions don't check, and are `unsafe`.
//! * Atoms are never removed ([`atom`]). So parsing untrusted text can use up memory for good.
//! * Some settings are global to the process. The host makes them when it is loaded:
//!   [`set_legacy_zero`] (−0.0 is identical to 0.0), [`set_atom_order`], [`set_maps_as_stored`] and
//!   [`set_tree_maps`] (how the host orders the pairs of its maps), [`blob::set_host_objects`] (how
//!   it counts its binaries and other objects). [`node::set_local`] sets the name of this node,
//!   which matters only when identifiers of this node are compared with those of others.
//!
//! Only [`blob`] turns handles into pointers, and [`object`] passes the handles of values to it.
//! Besides, `unsafe` is in functions that trust bytes, such as [`TermRef::trusted`] and
//! [`Encoder::adopt`], and in one check for ASCII.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod atom;
pub mod blob;
mod compare;
mod contents;
mod convert;
mod encoder;
#[cfg(feature = "etf")]
#[cfg_attr(docsrs, doc(cfg(feature = "etf")))]
pub mod etf;
pub mod hash;
mod host;
mod identity;
mod interner;
mod macros;
mod map_edit;
mod map_order;
mod maps;
pub mod node;
pub mod number;
pub mod object;
pub mod order_key;
pub mod simple;
mod skip;
pub mod tags;
mod term;
pub mod text;
mod utf8;
pub mod varint;
mod view;

pub use atom::{atoms, Atom, AtomError};
pub use convert::TryFromTermError;
pub use encoder::{stored_words, Encoder, MapToken, Mode};
pub use host::{
    legacy_zero, set_atom_order, set_legacy_zero, set_maps_as_stored, set_tree_maps, tree_maps,
    AtomOrder,
};
pub use identity::without_negative_zero;
#[doc(hidden)]
pub use macros::Literal;
pub use map_edit::{MapEdit, MapSearch, PairChange};
pub use map_order::{key_order, DuplicateKey};
pub use node::{Node, NodeName};
pub use num_bigint::BigInt;
pub use skip::{fixed_len, head, skip};
pub use term::{AsTerm, Incomplete, NotFinite, Term, TermBuf};
pub use utf8::utf8;
pub use view::{
    little_endian, BigRef, FunRef, Kind, ListRef, MapRef, Pairs, PidRef, PortRef, RefRef, TermRef,
    Terms, TupleRef, View,
};
