//! Borrowed terms: [`TermRef`], a run of encoded bytes, and [`View`], its opened head.

use crate::{
    atom::Atom,
    blob::{self, Anchor, Blob},
    node::{Node, NodeName},
    skip::{end_of, head},
    tags::*,
    varint,
};
use num_bigint::{BigInt, Sign};

/// One term as a borrowed run of encoded bytes. Copying it copies no term.
///
/// A handle inside is good while the bytes are: who makes a `TermRef` of bytes of their own says so
/// ([`TermRef::trusted`]).
#[derive(Clone, Copy)]
pub struct TermRef<'a>(&'a [u8]);

/// What a term is, ranked as Erlang orders terms (integers and floats share a rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Integer,
    Float,
    Atom,
    Reference,
    Fun,
    Port,
    Pid,
    Tuple,
    Map,
    Nil,
    List,
    Bitstring,
}

impl Kind {
    /// The place in Erlang's order of types: number < atom < reference < fun < port < pid < tuple <
    /// map < nil < list < bitstring.
    #[inline]
    pub fn rank(self) -> u8 {
        (self as u8).saturating_sub(1)
    }
}

/// The opened head of a term.
#[derive(Clone, Copy)]
pub enum View<'a> {
    /// An integer that fits into 64 bits.
    Int(i64),
    /// An integer that does not.
    Big(BigRef<'a>),
    /// A float.
    Float(f64),
    /// An atom.
    Atom(Atom),
    /// The empty list.
    Nil,
    /// A list of at least one element.
    List(ListRef<'a>),
    /// A tuple.
    Tuple(TupleRef<'a>),
    /// A map.
    Map(MapRef<'a>),
    /// A binary, wherever it is kept.
    Bin(&'a [u8]),
    /// A bitstring whose length in bits is no multiple of eight; the last byte's unused low bits
    /// are zero.
    Bits {
        /// The bits, high ones first.
        bytes: &'a [u8],
        /// How many there are.
        bits: usize,
    },
    /// A pid.
    Pid(PidRef),
    /// A port.
    Port(PortRef),
    /// A reference.
    Ref(RefRef<'a>),
    /// A local fun.
    Fun(FunRef<'a>),
    /// `fun M:F/A`.
    Export {
        /// The module.
        module: Atom,
        /// The function's name.
        function: Atom,
        /// The arity.
        arity: u64,
    },
}

/// An integer beyond 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BigRef<'a> {
    /// Whether it is below zero.
    pub negative: bool,
    /// The magnitude, low bytes first, the last one not zero.
    pub magnitude: &'a [u8],
}

impl BigRef<'_> {
    /// The number.
    pub fn to_bigint(self) -> BigInt {
        let sign = if self.negative {
            Sign::Minus
        } else {
            Sign::Plus
        };
        BigInt::from_bytes_le(sign, self.magnitude)
    }
}

/// A pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidRef {
    /// Whose it is.
    pub node: Node,
    /// The number.
    pub id: u32,
    /// The serial.
    pub serial: u32,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// Whose it is.
    pub node: Node,
    /// The number.
    pub id: u64,
}

/// A reference.
#[derive(Clone, Copy)]
pub struct RefRef<'a> {
    /// Whose it is.
    pub node: Node,
    words: &'a [u8],
    kept: bool,
}

impl<'a> RefRef<'a> {
    /// The words, in the order of the external format.
    pub fn words(self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + 'a {
        self.words
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    /// Whether it keeps something of the host alive ([`TermRef::anchor`] gives it).
    pub fn is_kept(self) -> bool {
        self.kept
    }
}

/// A local fun.
#[derive(Clone, Copy)]
pub struct FunRef<'a> {
    /// The module.
    pub module: Atom,
    /// The arity.
    pub arity: u64,
    /// The module's digest.
    pub uniq: [u8; 16],
    /// The index.
    pub index: u32,
    /// The old index: an integer.
    pub old_index: TermRef<'a>,
    /// The old digest: an integer.
    pub old_uniq: TermRef<'a>,
    free: Terms<'a>,
}

impl<'a> FunRef<'a> {
    /// The free variables.
    pub fn free(self) -> Terms<'a> {
        self.free
    }
}

/// A tuple's elements.
#[derive(Clone, Copy)]
pub struct TupleRef<'a>(Terms<'a>);

impl<'a> TupleRef<'a> {
    /// How many elements there are.
    #[inline]
    pub fn arity(self) -> usize {
        self.0.left
    }

    /// The element at `index`, from 0. Linear in what stands before it.
    #[inline]
    pub fn get(self, index: usize) -> Option<TermRef<'a>> {
        self.0.clone().nth(index)
    }

    /// The elements in order.
    #[inline]
    pub fn iter(self) -> Terms<'a> {
        self.0
    }
}

/// A list's elements, at least one.
#[derive(Clone, Copy)]
pub struct ListRef<'a> {
    elements: Terms<'a>,
    proper: bool,
}

static NIL_BYTES: [u8; 1] = [NIL];

impl<'a> ListRef<'a> {
    /// How many elements stand before the tail.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.elements.left
    }

    /// Whether the tail is `[]`.
    pub fn is_proper(self) -> bool {
        self.proper
    }

    /// The elements in order, without the tail.
    pub fn iter(self) -> Terms<'a> {
        self.elements
    }

    /// The tail: `[]` for a proper list. Linear for an improper one.
    pub fn tail(self) -> TermRef<'a> {
        if self.proper {
            return TermRef(&NIL_BYTES);
        }
        let mut elements = self.elements;
        elements.by_ref().for_each(drop);
        TermRef(&elements.bytes[..end_of(elements.bytes, 0)])
    }
}

/// A map's pairs, in the order of their encoding (no order that a person would expect, but the same
/// for equal maps).
#[derive(Clone, Copy)]
pub struct MapRef<'a>(Terms<'a>);

impl<'a> MapRef<'a> {
    /// How many pairs there are.
    pub fn len(self) -> usize {
        self.0.left / 2
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0.left == 0
    }

    /// The value under the key that is identical to `key`. Linear in the map.
    pub fn get(self, key: TermRef<'_>) -> Option<TermRef<'a>> {
        self.iter()
            .find_map(|(k, value)| k.identical(key).then_some(value))
    }

    /// The pairs.
    pub fn iter(self) -> Pairs<'a> {
        Pairs(self.0)
    }
}

/// Neighbouring terms, in order.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Terms<'a> {
    /// `left` terms that begin at the start of `bytes`, which an encoder wrote and whose handles
    /// are good.
    pub(crate) fn new(bytes: &'a [u8], left: usize) -> Self {
        Terms { bytes, left }
    }

    /// The bytes from the next term on; what follows the last term is undefined.
    /// The bytes that the terms lie in, one after another.
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Terms<'a> {
    type Item = TermRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<TermRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (term, rest) = self.bytes.split_at(end_of(self.bytes, 0));
        self.bytes = rest;
        Some(TermRef(term))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Terms<'_> {}

/// The pairs of a map.
#[derive(Clone, Copy)]
pub struct Pairs<'a>(Terms<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = (TermRef<'a>, TermRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left / 2, Some(self.0.left / 2))
    }
}

impl ExactSizeIterator for Pairs<'_> {}

impl<'a> TermRef<'a> {
    /// The term that these bytes are.
    ///
    /// # Safety
    /// The bytes are exactly one term that an [`crate::Encoder`] wrote in this process, and the
    /// counts of the handles in them are held by somebody for all of `'a`.
    #[inline]
    pub unsafe fn trusted(bytes: &'a [u8]) -> TermRef<'a> {
        TermRef(bytes)
    }

    /// The first of a run of terms, and the bytes after it.
    ///
    /// # Safety
    /// As for [`TermRef::trusted`], for a run of at least one term.
    #[inline]
    pub unsafe fn split_first(run: &'a [u8]) -> (TermRef<'a>, &'a [u8]) {
        let (term, rest) = run.split_at(end_of(run, 0));
        (TermRef(term), rest)
    }

    /// As `trusted`, within this crate: every caller takes the bytes from a whole that was trusted,
    /// or that it encoded.
    #[inline]
    pub(crate) fn within(bytes: &'a [u8]) -> TermRef<'a> {
        TermRef(bytes)
    }

    /// The bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// What it is.
    #[inline]
    pub fn kind(self) -> Kind {
        kind_at(self.0, 0)
    }

    /// Opens the head.
    #[inline]
    pub fn view(self) -> View<'a> {
        let bytes = self.0;
        let tag = bytes[0];
        if tag >= SMALL {
            return View::Int(i64::from(tag - SMALL));
        }
        match tag {
            INT1..=INT8 => View::Int(small_int(bytes)),
            ATOM1..=ATOM4 => View::Atom(atom(bytes, 0).0),
            FLOAT => View::Float(f64::from_bits(u64::from_le_bytes(array(bytes, 1)))),
            NIL => View::Nil,
            TUPLE => View::Tuple(TupleRef(terms(bytes))),
            BIN => {
                let (n, at) = varint::read(bytes, 1);
                View::Bin(&bytes[at..at + n as usize])
            }
            _ => self.rare_view(),
        }
    }

    fn rare_view(self) -> View<'a> {
        let bytes = self.0;
        match bytes[0] {
            LIST | ILIST => View::List(ListRef {
                elements: terms(bytes),
                proper: bytes[0] == LIST,
            }),
            MAP => {
                let (n, at) = varint::read(bytes, 1);
                View::Map(MapRef(Terms::new(&bytes[at..], 2 * n as usize)))
            }
            TREE_MAP => {
                let (at, children) = head(bytes, 0);
                View::Map(MapRef(Terms::new(&bytes[at..], children as usize)))
            }
            BLOB => View::Bin(blob::bytes(self)),
            BITS => {
                let (bits, at) = varint::read(bytes, 1);
                let bits = bits as usize;
                let bytes = &bytes[at..at + bits.div_ceil(8)];
                View::Bits { bytes, bits }
            }
            BIG_POS | BIG_NEG => {
                let (n, at) = varint::read(bytes, 1);
                View::Big(BigRef {
                    negative: bytes[0] == BIG_NEG,
                    magnitude: &bytes[at..at + n as usize],
                })
            }
            _ => self.identifier_view(),
        }
    }

    fn identifier_view(self) -> View<'a> {
        let bytes = self.0;
        let tag = bytes[0];
        let (node, at) = match tag {
            PID_EXT | PORT_EXT | REF_EXT => external(bytes, 1),
            _ => (Node::Local, 1),
        };
        match tag {
            PID | PID_EXT => {
                let (id, at) = varint::read(bytes, at);
                let (serial, _) = varint::read(bytes, at);
                let (id, serial) = (id as u32, serial as u32);
                View::Pid(PidRef { node, id, serial })
            }
            PORT | PORT_EXT => {
                let (id, _) = varint::read(bytes, at);
                View::Port(PortRef { node, id })
            }
            REF | REF_EXT | REF_KEPT => {
                let (n, at) = varint::read(bytes, at);
                let words = &bytes[at..at + 4 * n as usize];
                let kept = tag == REF_KEPT;
                View::Ref(RefRef { node, words, kept })
            }
            FUN => View::Fun(fun(bytes)),
            EXPORT => {
                let (module, at) = atom(bytes, 1);
                let (function, at) = atom(bytes, at);
                let (arity, _) = varint::read(bytes, at);
                View::Export {
                    module,
                    function,
                    arity,
                }
            }
            _ => panic!("no term begins with byte {tag:#04x}"),
        }
    }

    /// The integer, if it is one that fits.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        match self.0[0] {
            tag @ SMALL.. => Some(i64::from(tag - SMALL)),
            INT1..=INT8 => Some(small_int(self.0)),
            _ => None,
        }
    }

    /// The atom, if it is one.
    #[inline]
    pub fn as_atom(self) -> Option<Atom> {
        let is_atom = (ATOM1..=ATOM4).contains(&self.0[0]);
        is_atom.then(|| atom(self.0, 0).0)
    }

    /// The tuple, if it is one.
    #[inline]
    pub fn as_tuple(self) -> Option<TupleRef<'a>> {
        (self.0[0] == TUPLE).then(|| TupleRef(terms(self.0)))
    }

    /// The bytes of a binary, if it is one.
    #[inline]
    pub fn as_binary(self) -> Option<&'a [u8]> {
        match self.view() {
            View::Bin(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a proper list (none for `[]`), if it is one.
    pub fn as_list(self) -> Option<Terms<'a>> {
        match self.0[0] {
            NIL => Some(Terms::new(&[], 0)),
            LIST => Some(terms(self.0)),
            _ => None,
        }
    }

    /// A count of one's own on a binary that is kept outside; `None` for everything else, inline
    /// binaries too.
    pub fn blob(self) -> Option<Blob> {
        (self.0[0] == BLOB).then(|| Blob(blob::owned(self)))
    }

    /// The host's owner of a binary that is kept outside, if there is one of this type.
    #[inline]
    pub fn blob_owner<T: std::any::Any>(self) -> Option<&'a T> {
        if self.0[0] != BLOB {
            return None;
        }
        blob::payload(self)?.owner()
    }

    /// The address of the host's binary that a binary is, if it is kept outside as one
    /// ([`Blob::of_host`]).
    #[inline]
    pub fn host_binary(self) -> Option<usize> {
        if self.0[0] != BLOB {
            return None;
        }
        blob::host_address(self)
    }

    /// A count of one's own on what a reference keeps alive; `None` for everything else.
    pub fn anchor(self) -> Option<Anchor> {
        if self.0[0] != REF_KEPT {
            return None;
        }
        match blob::owned(self) {
            blob::Kept::Payload(payload) => Some(Anchor(payload)),
            blob::Kept::Host(_) => None,
        }
    }

    /// Whether a handle lies somewhere in it.
    pub fn has_handles(self) -> bool {
        blob::has_handles(self.0)
    }

    /// Bytes of the binaries that are kept outside of it. O(n) in the term.
    pub fn outside_bytes(self) -> usize {
        blob::outside_bytes(self.0)
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// The value of an `INT1..=INT8`.
#[inline(never)]
fn small_int(bytes: &[u8]) -> i64 {
    let n = (bytes[0] - INT1) as usize + 1;
    little_endian(&bytes[1..1 + n])
}

/// The signed number that one to eight bytes are, low ones first; 0 for no bytes or more.
#[inline]
pub fn little_endian(bytes: &[u8]) -> i64 {
    // Loads of fixed widths: bytes gathered one by one would have to be stored before they could be
    // loaded as a word.
    match *bytes {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c] => i64::from(c as i8) << 16 | i64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, .., w, x, y, z] if bytes.len() <= 8 => {
            // The two may overlap: where they do, they agree.
            let high = i64::from(i32::from_le_bytes([w, x, y, z]));
            high << (8 * (bytes.len() - 4)) | i64::from(u32::from_le_bytes([a, b, c, d]))
        }
        [a, b, c, d, e] => i64::from(e as i8) << 32 | i64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f] => {
            i64::from(i16::from_le_bytes([e, f])) << 32
                | i64::from(u32::from_le_bytes([a, b, c, d]))
        }
        [a, b, c, d, e, f, g] => {
            i64::from(g as i8) << 48
                | i64::from(u16::from_le_bytes([e, f])) << 32
                | i64::from(u32::from_le_bytes([a, b, c, d]))
        }
        _ => 0,
    }
}

/// The terms after a tag and a count.
#[inline]
fn terms(bytes: &[u8]) -> Terms<'_> {
    let (n, at) = varint::read(bytes, 1);
    Terms::new(&bytes[at..], n as usize)
}

/// The atom at `at` and the place after it.
#[inline]
pub(crate) fn atom(bytes: &[u8], at: usize) -> (Atom, usize) {
    let n = (bytes[at] - ATOM1) as usize + 1;
    let id = little_endian(&bytes[at + 1..at + 1 + n]) as u32 & (u32::MAX >> (32 - 8 * n as u32));
    (Atom::trusted(id), at + 1 + n)
}

fn external(bytes: &[u8], at: usize) -> (Node, usize) {
    let (name, at) = atom(bytes, at);
    let creation = u32::from_le_bytes(array(bytes, at));
    (Node::External(NodeName { name, creation }), at + 4)
}

fn fun(bytes: &[u8]) -> FunRef<'_> {
    let (module, at) = atom(bytes, 1);
    let (arity, at) = varint::read(bytes, at);
    let uniq = array(bytes, at);
    let index = u32::from_le_bytes(array(bytes, at + 16));
    let old_index = at + 20;
    let old_uniq = head(bytes, old_index).0;
    let after = head(bytes, old_uniq).0;
    let (free, at) = varint::read(bytes, after);
    FunRef {
        module,
        arity,
        uniq,
        index,
        old_index: TermRef(&bytes[old_index..old_uniq]),
        old_uniq: TermRef(&bytes[old_uniq..after]),
        free: Terms::new(&bytes[at..], free as usize),
    }
}

/// What the term at `at` is.
#[inline]
pub(crate) fn kind_at(bytes: &[u8], at: usize) -> Kind {
    let tag = bytes[at];
    if tag >= SMALL {
        return Kind::Integer;
    }
    match tag {
        INT1..=BIG_NEG => Kind::Integer,
        FLOAT => Kind::Float,
        ATOM1..=ATOM4 => Kind::Atom,
        NIL => Kind::Nil,
        LIST | ILIST => Kind::List,
        TUPLE => Kind::Tuple,
        MAP | TREE_MAP => Kind::Map,
        BIN..=BITS => Kind::Bitstring,
        PID | PID_EXT => Kind::Pid,
        PORT | PORT_EXT => Kind::Port,
        REF..=REF_KEPT => Kind::Reference,
        FUN | EXPORT => Kind::Fun,
        _ => panic!("no term begins with byte {tag:#04x}"),
    }
}
