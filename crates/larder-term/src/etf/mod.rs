//! Erlang's external term format: encoding and decoding.
//!
//! The encoder writes what `term_to_binary` writes today (identifiers with creations of 32 bits,
//! atoms in UTF-8), without compression. The decoder also reads older forms that are still valid
//! (Latin-1 atoms, short creations, floats as texts), and compressed terms. Untrusted bytes cause
//! an error, never a panic, and never an allocation larger than they justify.

mod decode;
mod encode;
mod walk;

pub use decode::{decode, decode_term, decode_to};
pub use encode::encode;
use std::fmt;

/// Options for decoding.
#[derive(Clone, Copy, Debug)]
pub struct EtfOptions {
    /// Create no new atoms, and no funs of other nodes. For untrusted bytes.
    pub safe: bool,
    /// The greatest size of a compressed term after decompression, in bytes.
    pub max_plain: usize,
    /// Create no new atom while this process has so many.
    pub max_atoms: usize,
    /// The greatest number of bits of an integer, rounded up to whole bytes.
    pub max_bits: u64,
}

impl Default for EtfOptions {
    fn default() -> Self {
        EtfOptions {
            safe: false,
            max_plain: 1 << 31,
            max_atoms: usize::MAX,
            max_bits: u64::MAX,
        }
    }
}

/// The reason why bytes aren't a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EtfError {
    /// The first byte is not 131.
    Version,
    /// The bytes end inside the term.
    Truncated,
    /// An unknown tag, or one that isn't allowed here.
    Tag(u8),
    /// There is another term where an atom must be.
    NoAtom,
    /// The text of an atom isn't UTF-8, or is too long, or there is no room for more atoms.
    BadAtom,
    /// The atom doesn't exist, and none may be created.
    UnknownAtom,
    /// The atom doesn't exist, and there are as many as allowed.
    TooManyAtoms,
    /// A fun of another node, and none may be created.
    ForeignFun,
    /// A float is malformed, or not finite.
    BadFloat,
    /// A bitstring or a reference with an impossible length.
    Malformed,
    /// A map has two identical keys.
    DuplicateKey,
    /// The decompressed bytes don't have the declared size, or are invalid.
    Compression,
    /// The compressed bytes would exceed the allowed size when they are decompressed, a tuple has
    /// more elements than Erlang allows, or an integer more bits than allowed.
    TooLarge,
}

impl fmt::Display for EtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EtfError::Version => "not a term in the external format",
            EtfError::Truncated => "the bytes end inside the term",
            EtfError::Tag(tag) => return write!(f, "no term begins with tag {tag}"),
            EtfError::NoAtom => "an atom is missing",
            EtfError::BadAtom => "an atom's text is malformed",
            EtfError::UnknownAtom => "an unknown atom",
            EtfError::TooManyAtoms => "too many new atoms",
            EtfError::ForeignFun => "a fun of another node's making",
            EtfError::BadFloat => "a malformed float",
            EtfError::Malformed => "a malformed bitstring, reference or fun",
            EtfError::DuplicateKey => "a map has two identical keys",
            EtfError::Compression => "malformed compression",
            EtfError::TooLarge => "the term is too large",
        })
    }
}

impl std::error::Error for EtfError {}

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
