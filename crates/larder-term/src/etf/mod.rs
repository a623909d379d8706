//! Erlang's external term format, in and out.
//!
//! Out: what `term_to_binary` writes today (identifiers with 32-bit creations, UTF-8 atoms),
//! without compression. In: that, and every older form that is still read (Latin-1 atoms, short
//! creations, float texts), compressed terms too. Bytes from strangers give an error, never a
//! panic, and never ask for more memory than they justify.

mod decode;
mod encode;
mod walk;

pub use decode::{decode, decode_term, decode_to};
pub use encode::encode;

/// What decoding may do.
#[derive(Clone, Copy, Debug)]
pub struct EtfOptions {
    /// Makes no atom that is not there yet, and no fun of another node's making: for bytes from
    /// strangers.
    pub safe: bool,
    /// The most bytes that a compressed term may unfold to.
    pub max_plain: usize,
}

impl Default for EtfOptions {
    fn default() -> Self {
        EtfOptions {
            safe: false,
            max_plain: 1 << 31,
        }
    }
}

/// Why bytes are no term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EtfError {
    /// The first byte is not 131.
    #[error("not a term in the external format")]
    Version,
    /// The bytes end inside the term.
    #[error("the bytes end inside the term")]
    Truncated,
    /// A tag that means nothing here.
    #[error("no term begins with tag {0}")]
    Tag(u8),
    /// Something other than an atom stands where an atom must.
    #[error("an atom is missing")]
    NoAtom,
    /// An atom's text is no UTF-8, or too long, or there is no room for more atoms.
    #[error("an atom's text is malformed")]
    BadAtom,
    /// The atom does not exist, and none may be made.
    #[error("an unknown atom")]
    UnknownAtom,
    /// A fun that another node made, and none may be taken.
    #[error("a fun of another node's making")]
    ForeignFun,
    /// A float that is none, or not finite.
    #[error("a malformed float")]
    BadFloat,
    /// A bitstring or a reference with an impossible length.
    #[error("a malformed bitstring, reference or fun")]
    Malformed,
    /// A map has two identical keys.
    #[error("a map has two identical keys")]
    DuplicateKey,
    /// The compressed bytes do not unfold to what they say.
    #[error("malformed compression")]
    Compression,
    /// The compressed bytes would unfold to more than is allowed, or a tuple has more elements than
    /// Erlang allows.
    #[error("the term is too large")]
    TooLarge,
}

/// The first byte of a term.
const VERSION: u8 = 131;

/// The tags of the external format.
mod tag {
    pub const NEW_FLOAT: u8 = 70;
    pub const BIT_BINARY: u8 = 77;
    pub const COMPRESSED: u8 = 80;
    pub const NEW_PID: u8 = 88;
    pub const NEW_PORT: u8 = 89;
    pub const NEWER_REFERENCE: u8 = 90;
    pub const SMALL_INTEGER: u8 = 97;
    pub const INTEGER: u8 = 98;
    pub const FLOAT: u8 = 99;
    pub const ATOM: u8 = 100;
    pub const REFERENCE: u8 = 101;
    pub const PORT: u8 = 102;
    pub const PID: u8 = 103;
    pub const SMALL_TUPLE: u8 = 104;
    pub const LARGE_TUPLE: u8 = 105;
    pub const NIL: u8 = 106;
    pub const STRING: u8 = 107;
    pub const LIST: u8 = 108;
    pub const BINARY: u8 = 109;
    pub const SMALL_BIG: u8 = 110;
    pub const LARGE_BIG: u8 = 111;
    pub const NEW_FUN: u8 = 112;
    pub const EXPORT: u8 = 113;
    pub const NEW_REFERENCE: u8 = 114;
    pub const SMALL_ATOM: u8 = 115;
    pub const MAP: u8 = 116;
    pub const ATOM_UTF8: u8 = 118;
    pub const SMALL_ATOM_UTF8: u8 = 119;
    pub const V4_PORT: u8 = 120;
}
