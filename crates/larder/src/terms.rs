//! Terms: what tables contain. The types that own, borrow, build and read them, and their text.
//!
//! ```
//! use larder::terms::{Atom, Term, View};
//! use std::collections::BTreeMap;
//!
//! let row: Term = "{user, 17, #{name => <<\"Ann\">>}}".parse()?;
//! let View::Tuple(tuple) = row.view() else { panic!("a tuple") };
//! assert_eq!(tuple.get(1).and_then(|id| id.as_int()), Some(17));
//! // To and from the types of the standard library.
//! let (kind, id, names): (Atom, u64, BTreeMap<Atom, String>) = row.try_into()?;
//! assert_eq!((kind, id), (Atom::new("user"), 17));
//! assert_eq!(names[&Atom::new("name")], "Ann");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "etf")]
#[cfg_attr(docsrs, doc(cfg(feature = "etf")))]
pub use larder_term::etf;
pub use larder_term::{
    atoms, term, text, AsTerm, Atom, AtomError, BigInt, BigRef, DuplicateKey, Encoder, FunRef,
    Incomplete, Kind, ListRef, MapRef, MapToken, Mode, Node, NodeName, NotFinite, Pairs, PidRef,
    PortRef, RefRef, Term, TermRef, Terms, TryFromTermError, TupleRef, View,
};
