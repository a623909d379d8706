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
/// The handles in the bytes are valid for `'a`. Whoever makes a `TermRef` of bytes of its own
/// promises this ([`TermRef::trusted`]).
#[derive(Clone, Copy)]
pub struct TermRef<'a>(&'a [u8]);

/// The kind of a term. Kinds are in Erlang's order of types, and integers and floats share a rank.
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
    /// An integer that doesn't fit into 64 bits.
    Big(BigRef<'a>),
    /// A float.
    Float(f64),
    /// An atom.
    Atom(Atom),
    /// The empty list.
    Nil,
    /// A list of at least one element, proper or improper.
    List(ListRef<'a>),
    /// A tuple.
    Tuple(TupleRef<'a>),
    /// A map.
    Map(MapRef<'a>),
    /// A binary, whether its bytes are inline or outside.
    Bin(&'a [u8]),
    /// A bitstring whose length in bits isn't a multiple of eight. The unused low bits of the last
    /// byte are zero.
    Bits {
        /// The bits, from the highest bit of each byte.
        bytes: &'a [u8],
        /// The number of bits.
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

/// An integer that doesn't fit into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BigRef<'a> {
    /// Whether the integer is negative.
    pub negative: bool,
    /// The magnitude, little endian. The last byte isn't zero.
    pub magnitude: &'a [u8],
}

impl BigRef<'_> {
    /// The integer.
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
    /// The node that it belongs to.
    pub node: Node,
    /// The id.
    pub id: u32,
    /// The serial.
    pub serial: u32,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// The node that it belongs to.
    pub node: Node,
    /// The id.
    pub id: u64,
}

/// A reference.
#[derive(Clone, Copy)]
pub struct RefRef<'a> {
    /// The node that it belongs to.
    pub node: Node,
    words: &'a [u8],
    kept: bool,
}

impl<'a> RefRef<'a> {
    /// The words of the id, in the order of the external format.
    pub fn words(self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + 'a {
        // Words are not aligned in the encoding, so each is read byte by byte.
        self.words
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    /// Whether the reference keeps something of the host alive. [`TermRef::anchor`] returns that.
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
    /// The index of the fun in its module.
    pub index: u32,
    /// The old index, which is an integer.
    pub old_index: TermRef<'a>,
    /// The old digest, which is an integer.
    pub old_uniq: TermRef<'a>,
    free: Terms<'a>,
}

impl<'a> FunRef<'a> {
    /// The free variables.
    pub fn free(self) -> Terms<'a> {
        self.free
    }
}

/// The elements of a tuple.
#[derive(Clone, Copy)]
pub struct TupleRef<'a>(Terms<'a>);

impl<'a> TupleRef<'a> {
    /// The number of elements.
    #[inline]
    pub fn arity(self) -> usize {
        self.0.left
    }

    /// The element at `index`, from 0. Linear in the elements before it.
    #[inline]
    pub fn get(self, index: usize) -> Option<TermRef<'a>> {
        self.0.clone().nth(index)
    }

    /// The elements, in order.
    #[inline]
    pub fn iter(self) -> Terms<'a> {
        self.0
    }
}

/// The elements of a list that isn't empty.
#[derive(Clone, Copy)]
pub struct ListRef<'a> {
    elements: Terms<'a>,
    proper: bool,
}

static NIL_BYTES: [u8; 1] = [NIL];

impl<'a> ListRef<'a> {
    /// The number of elements, without the tail.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.elements.left
    }

    /// Whether the tail is `[]`.
    pub fn is_proper(self) -> bool {
        self.proper
    }

    /// The elements, in order, without the tail.
    pub fn iter(self) -> Terms<'a> {
        self.elements
    }

    /// The tail, which is `[]` in a proper list. Constant for a proper list, and linear for an
    /// improper one.
    pub fn tail(self) -> TermRef<'a> {
        if self.proper {
            return TermRef(&NIL_BYTES);
        }
        // The tail is after the last element.
        let mut elements = self.elements;
        elements.by_ref().for_each(drop);
        TermRef(&elements.bytes[..end_of(elements.bytes, 0)])
    }
}

/// The pairs of a map, in the order of the encoding. The order is arbitrary to users, and may
/// differ between the two forms of a map (`MAP` and `TREE_MAP`).
#[derive(Clone, Copy)]
pub struct MapRef<'a>(Terms<'a>);

impl<'a> MapRef<'a> {
    /// The number of pairs.
    pub fn len(self) -> usize {
        self.0.left / 2
    }

    /// Whether the map is empty.
    pub fn is_empty(self) -> bool {
        self.0.left == 0
    }

    /// The value of the key that is identical to `key`. Linear in the map.
    pub fn get(self, key: TermRef<'_>) -> Option<TermRef<'a>> {
        // Identical keys may have different bytes if they contain handles, so bytes aren't
        // compared.
        self.iter()
            .find_map(|(k, value)| k.identical(key).then_some(value))
    }

    /// The pairs, in the order of the encoding.
    pub fn iter(self) -> Pairs<'a> {
        Pairs(self.0)
    }
}

/// A sequence of terms whose bytes are adjacent.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Terms<'a> {
    /// The first `left` terms of `bytes`, which an encoder wrote and whose handles are valid for
    /// `'a`.
    pub(crate) fn new(bytes: &'a [u8], left: usize) -> Self {
        Terms { bytes, left }
    }
}

impl<'a> Iterator for Terms<'a> {
    type Item = TermRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<TermRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The end of a term isn't stored. `end_of` walks over its heads.
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
    /// A term, given its bytes.
    ///
    /// # Safety
    /// The bytes are exactly one term that an [`crate::Encoder`] wrote in this process. For all of
    /// `'a`, somebody holds the counts of the handles in them.
    #[inline]
    pub unsafe fn trusted(bytes: &'a [u8]) -> TermRef<'a> {
        TermRef(bytes)
    }

    /// Splits a run of terms into the first one and the bytes of the others.
    ///
    /// # Safety
    /// As for [`TermRef::trusted`], but the bytes are a run of at least one term.
    #[inline]
    pub unsafe fn split_first(run: &'a [u8]) -> (TermRef<'a>, &'a [u8]) {
        let (term, rest) = run.split_at(end_of(run, 0));
        (TermRef(term), rest)
    }

    /// As `trusted`, for this crate. Every caller passes bytes that it encoded, or a part of bytes
    /// that were trusted.
    #[inline]
    pub(crate) fn within(bytes: &'a [u8]) -> TermRef<'a> {
        TermRef(bytes)
    }

    /// The encoded bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The kind of the term.
    #[inline]
    pub fn kind(self) -> Kind {
        kind_at(self.0, 0)
    }

    /// Opens the head of the term.
    #[inline]
    pub fn view(self) -> View<'a> {
        let bytes = self.0;
        // Small integers and atoms come first: most heads that are opened are theirs.
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
            BIN => View::Bin(binary(bytes)),
            _ => self.rare_view(),
        }
    }

    /// `view`, for the less common kinds.
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
            // The layout of the tree stands between the count and the pairs. `head` skips it.
            TREE_MAP => {
                let (at, children) = head(bytes, 0);
                View::Map(MapRef(Terms::new(&bytes[at..], children as usize)))
            }
            // The bytes of a blob are outside. It is viewed like any other binary.
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

    /// `view`, for pids, ports, references and funs.
    fn identifier_view(self) -> View<'a> {
        let bytes = self.0;
        let tag = bytes[0];
        // Identifiers of other nodes begin with the node. Those of this node have none.
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
            // A kept reference has a handle after its words.
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

    /// The integer, if the term is one that fits into 64 bits.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        match self.0[0] {
            // A small integer is its own tag.
            tag @ SMALL.. => Some(i64::from(tag - SMALL)),
            INT1..=INT8 => Some(small_int(self.0)),
            _ => None,
        }
    }

    /// The float, if the term is one.
    #[inline]
    pub fn as_float(self) -> Option<f64> {
        (self.0[0] == FLOAT).then(|| f64::from_bits(u64::from_le_bytes(array(self.0, 1))))
    }

    /// The atom, if the term is one.
    #[inline]
    pub fn as_atom(self) -> Option<Atom> {
        let is_atom = (ATOM1..=ATOM4).contains(&self.0[0]);
        // The number of bytes of the atom's id is a part of the tag.
        is_atom.then(|| atom(self.0, 0).0)
    }

    /// The tuple, if the term is one.
    #[inline]
    pub fn as_tuple(self) -> Option<TupleRef<'a>> {
        (self.0[0] == TUPLE).then(|| TupleRef(terms(self.0)))
    }

    /// The bytes of the binary, if the term is one.
    #[inline]
    pub fn as_binary(self) -> Option<&'a [u8]> {
        match self.0[0] {
            // An inline binary, or one whose bytes are outside.
            BIN => Some(binary(self.0)),
            BLOB => Some(blob::bytes(self)),
            _ => None,
        }
    }

    /// The elements, if the term is a proper list. `[]` has none.
    pub fn as_list(self) -> Option<Terms<'a>> {
        match self.0[0] {
            // `[]` has a tag of its own.
            NIL => Some(Terms::new(&[], 0)),
            LIST => Some(terms(self.0)),
            _ => None,
        }
    }

    /// Takes a count of the binary, if its bytes are outside. `None` for all other terms, and for
    /// inline binaries.
    pub fn blob(self) -> Option<Blob> {
        (self.0[0] == BLOB).then(|| Blob(blob::owned(self)))
    }

    /// The host's owner of the binary, if its bytes are outside and have an owner of this type.
    #[inline]
    pub fn blob_owner<T: std::any::Any>(self) -> Option<&'a T> {
        if self.0[0] != BLOB {
            return None;
        }
        blob::payload(self)?.owner()
    }

    /// The address of the host's object that the term is stored with: of a binary
    /// ([`Blob::of_host`]), or of what a reference keeps alive ([`Anchor::of_host`]).
    #[inline]
    pub fn host_object(self) -> Option<usize> {
        match self.0[0] {
            BLOB | REF_KEPT => blob::host_address(self),
            _ => None,
        }
    }

    /// Takes a count of what the reference keeps alive. `None` for all other terms.
    pub fn anchor(self) -> Option<Anchor> {
        if self.0[0] != REF_KEPT {
            return None;
        }
        Some(Anchor(blob::owned(self)))
    }

    /// Whether the term contains a handle.
    pub fn has_handles(self) -> bool {
        blob::has_handles(self.0)
    }

    /// The total size of the binaries that are outside. O(n) in the term.
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

/// The value of an integer with a tag of `INT1..=INT8`.
#[inline(never)]
fn small_int(bytes: &[u8]) -> i64 {
    // The tag says how many bytes follow.
    let n = (bytes[0] - INT1) as usize + 1;
    little_endian(&bytes[1..1 + n])
}

/// Reads a signed little-endian number of one to eight bytes. 0 if there are no bytes, or more than
/// eight.
#[inline]
pub fn little_endian(bytes: &[u8]) -> i64 {
    // From four bytes on, two loads that overlap if there are fewer than eight: they have the same
    // bits there. So no branch depends on which of these lengths it is.
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(low), Some(high)) if bytes.len() <= 8 => {
            let high = i64::from(i32::from_le_bytes(*high));
            high << (8 * (bytes.len() - 4)) | i64::from(u32::from_le_bytes(*low))
        }
        _ => match *bytes {
            [a] => i64::from(a as i8),
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c] => i64::from(c as i8) << 16 | i64::from(u16::from_le_bytes([a, b])),
            _ => 0,
        },
    }
}

/// The bytes of an inline binary.
#[inline]
fn binary(bytes: &[u8]) -> &[u8] {
    let (n, at) = varint::read(bytes, 1);
    &bytes[at..at + n as usize]
}

/// The terms after a tag and a count.
#[inline]
fn terms(bytes: &[u8]) -> Terms<'_> {
    let (n, at) = varint::read(bytes, 1);
    Terms::new(&bytes[at..], n as usize)
}

/// The atom at `at`, and the offset after it.
#[inline]
pub(crate) fn atom(bytes: &[u8], at: usize) -> (Atom, usize) {
    // The tag says how many bytes the id has. `little_endian` extends the sign, so mask the upper
    // bits.
    let n = (bytes[at] - ATOM1) as usize + 1;
    let id = little_endian(&bytes[at + 1..at + 1 + n]) as u32 & (u32::MAX >> (32 - 8 * n as u32));
    (Atom::trusted(id), at + 1 + n)
}

/// The name of another node at `at`, and the offset after it.
fn external(bytes: &[u8], at: usize) -> (Node, usize) {
    let (name, at) = atom(bytes, at);
    // The creation tells this node from earlier ones of the same name.
    let creation = u32::from_le_bytes(array(bytes, at));
    (Node::External(NodeName { name, creation }), at + 4)
}

fn fun(bytes: &[u8]) -> FunRef<'_> {
    let (module, at) = atom(bytes, 1);
    let (arity, at) = varint::read(bytes, at);
    let uniq = array(bytes, at);
    let index = u32::from_le_bytes(array(bytes, at + 16));
    // The old index and the old uniq are integers of any length, so they are skipped by their
    // heads.
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

/// The kind of the term at `at`.
#[inline]
pub(crate) fn kind_at(bytes: &[u8], at: usize) -> Kind {
    // Tags are in ranges, so that most kinds need one comparison.
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
