//! The tag bytes with which encoded terms begin. `docs/design.md` §2.1 has the table of payloads.

/// `SMALL + n` is the integer `n`, for `n` in `0..=127`.
pub const SMALL: u8 = 0x80;
/// An integer in one byte. `INT1 + k` has `k + 1` bytes, in two's complement, little endian; as few
/// as possible.
pub const INT1: u8 = 0x01;
/// An integer in eight bytes.
pub const INT8: u8 = 0x08;
/// An integer above `i64::MAX`.
pub const BIG_POS: u8 = 0x09;
/// An integer below `i64::MIN`.
pub const BIG_NEG: u8 = 0x0A;
/// A float: its IEEE bits in eight bytes, little endian.
pub const FLOAT: u8 = 0x0B;
/// An atom whose id takes one byte. `ATOM1 + k` has an id of `k + 1` bytes.
pub const ATOM1: u8 = 0x0C;
/// An atom whose id takes four bytes.
pub const ATOM4: u8 = 0x0F;
/// The empty list.
pub const NIL: u8 = 0x10;
/// A proper list of at least one element.
pub const LIST: u8 = 0x11;
/// An improper list of at least one element.
pub const ILIST: u8 = 0x12;
/// A tuple.
pub const TUPLE: u8 = 0x13;
/// A map.
pub const MAP: u8 = 0x14;
/// A binary whose bytes are inline.
pub const BIN: u8 = 0x15;
/// A binary whose bytes are outside, stored as a handle.
pub const BLOB: u8 = 0x16;
/// A bitstring whose length isn't a multiple of eight.
pub const BITS: u8 = 0x17;
/// A pid of this node.
pub const PID: u8 = 0x18;
/// A pid of another node.
pub const PID_EXT: u8 = 0x19;
/// A port of this node.
pub const PORT: u8 = 0x1A;
/// A port of another node.
pub const PORT_EXT: u8 = 0x1B;
/// A reference of this node.
pub const REF: u8 = 0x1C;
/// A reference of another node.
pub const REF_EXT: u8 = 0x1D;
/// A reference of this node that keeps something alive, stored with a handle.
pub const REF_KEPT: u8 = 0x1E;
/// A local fun.
pub const FUN: u8 = 0x1F;
/// `fun M:F/A`.
pub const EXPORT: u8 = 0x20;
/// A map of many pairs, in the order of the host's tree. The tag is followed by the number of
/// pairs, the length of the tree's layout, the layout (how the tree branches), and the pairs. Index
/// keys never contain one.
pub const TREE_MAP: u8 = 0x21;
/// The length in bytes of the container that follows. It stands in front of the long elements of
/// objects ([`crate::object`]), and nowhere else.
pub const SIZED: u8 = 0x22;
/// A very long element of an object, which is stored out of line: its length in bytes and a handle.
/// It takes the place of an element ([`crate::object`]), and occurs nowhere else.
pub const OUT_OF_LINE: u8 = 0x23;

/// The size of a handle in bytes.
pub const HANDLE: usize = 8;
/// The longest binary that is inline in shared mode. Copying it costs less than counting
/// references, and its length takes one byte.
pub const INLINE_BINARY: usize = 127;
/// The size of the shortest term that has a handle: tag, length, handle.
pub const SHORTEST_WITH_HANDLE: usize = 2 + HANDLE;
