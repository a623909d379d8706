//! Writing terms, head by head, without recursion.
//!
//! ```text
//!  begin_tuple(2)  atom  begin_map(1)  key  value  end_map(token)        a container's head, then as many terms as it has children
//! ```
//!
//! Invariants: `pending` is how many terms the open containers still lack. `boundary` is the value
//! of `pending` at which the next term to begin is a direct child of the innermost open map (0 when
//! there is no map: the next term is a new outermost one), so that a map learns where its keys and
//! values begin from one comparison a term.

use crate::{
    atom::Atom,
    blob::{Anchor, Blob},
    contents::{has_tree_map, is_negative_zero},
    map_order::{DuplicateKey, Moves},
    node::{Node, NodeName},
    skip::{head, Heads},
    tags::*,
    varint,
    view::{RefRef, TermRef, View},
};
use num_bigint::{BigInt, Sign};
use smallvec::SmallVec;

/// What may lie outside the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: index keys are written so.
    Inline,
    /// Anchors, but no binary: compressed objects are written so.
    Anchored,
    /// Anchors, and binaries over 127 bytes: values are written so.
    Shared,
}

/// Proof that a map was begun; [`Encoder::end_map`] takes it back.
#[derive(Debug)]
#[must_use = "a map that is not ended is not sorted"]
pub struct MapToken(usize);

/// Appends terms to a buffer.
///
/// The caller pushes a container's head and then its children; [`Encoder::is_complete`] tells
/// whether everything begun has all its children. The bytes own one count for each handle in them
/// (see [`crate::blob`]).
pub struct Encoder<'b> {
    out: &'b mut Vec<u8>,
    mode: Mode,
    handles: bool,
    negative_zero: bool,
    broken: bool,
    pending: u64,
    boundary: u64,
    terms: usize,
    maps: Option<Box<Maps>>,
}

/// No shorter term holds a handle, a float or a long binary.
const SHORTEST_OF_NOTE: usize = 9;

/// The open maps, where their keys and values begin, and what is to be moved when the outermost
/// ends.
#[derive(Default)]
struct Maps {
    frames: Vec<MapFrame>,
    marks: Vec<usize>,
    moves: Moves,
}

struct MapFrame {
    pairs: usize,
    first_mark: usize,
    outer_boundary: u64,
}

impl<'b> Encoder<'b> {
    /// Appends to `out` in `mode`.
    #[inline]
    pub fn new(out: &'b mut Vec<u8>, mode: Mode) -> Self {
        Encoder {
            out,
            mode,
            handles: false,
            negative_zero: false,
            broken: false,
            pending: 0,
            boundary: 0,
            terms: 0,
            maps: None,
        }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many outermost terms were begun.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Whether every term begun has all its children, and every map was ended.
    pub fn is_complete(&self) -> bool {
        self.pending == 0 && !self.broken && self.open_maps() == 0
    }

    /// Whether a handle was written.
    pub fn has_handles(&self) -> bool {
        self.handles
    }

    /// Whether a −0.0 was written.
    pub fn has_negative_zero(&self) -> bool {
        self.negative_zero
    }

    fn open_maps(&self) -> usize {
        self.maps.as_ref().map_or(0, |maps| maps.frames.len())
    }

    /// A term with this many children begins here.
    #[inline]
    fn begin(&mut self, children: u64) {
        if self.pending == self.boundary {
            self.at_boundary();
        }
        self.pending = self.pending.wrapping_sub(1).wrapping_add(children);
    }

    fn at_boundary(&mut self) {
        let here = self.out.len();
        let open = self.maps.as_mut().filter(|maps| !maps.frames.is_empty());
        let Some(maps) = open else {
            self.terms += 1;
            self.pending = 1;
            return;
        };
        // A child of the innermost open map begins here, unless that has all of its pairs.
        let full = match maps.frames.last() {
            Some(frame) => maps.marks.len() - frame.first_mark == 2 * frame.pairs,
            None => true,
        };
        if full {
            // A map has all its pairs and was not ended. What follows is accepted, and the whole is
            // never complete.
            self.broken = true;
            self.pending += 1;
            self.boundary = self.boundary.wrapping_add(1);
            return;
        }
        // Keys and values in turn. The next one begins when this one is complete: `pending` is one
        // less then.
        maps.marks.push(here);
        self.boundary = self.boundary.wrapping_sub(1);
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, n: i64) {
        self.begin(0);
        push_int(self.out, n);
    }

    /// An integer of any size: its sign and its magnitude, low bytes first.
    pub fn big(&mut self, negative: bool, magnitude: &[u8]) {
        // Identical integers have identical bytes: no zeros on top, and none as a large one that
        // fits into 64 bits.
        let used = magnitude.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
        let magnitude = &magnitude[..used];
        if let Some(n) = as_i64(negative, magnitude) {
            return self.int(n);
        }
        self.begin(0);
        self.out.push(if negative { BIG_NEG } else { BIG_POS });
        varint::push(self.out, used as u64);
        self.out.extend_from_slice(magnitude);
    }

    /// An integer of any size.
    pub fn bigint(&mut self, n: &BigInt) {
        let (sign, magnitude) = n.to_bytes_le();
        self.big(sign == Sign::Minus, &magnitude);
    }

    /// A float. Erlang has finite ones only, so the caller passes no other.
    #[inline]
    pub fn float(&mut self, x: f64) {
        debug_assert!(x.is_finite());
        self.begin(0);
        self.negative_zero |= x == 0.0 && x.is_sign_negative();
        self.out.push(FLOAT);
        self.out.extend_from_slice(&x.to_bits().to_le_bytes());
    }

    /// An atom.
    #[inline]
    pub fn atom(&mut self, atom: Atom) {
        self.begin(0);
        push_atom(self.out, atom);
    }

    /// `[]`.
    #[inline]
    pub fn nil(&mut self) {
        self.begin(0);
        self.out.push(NIL);
    }

    /// A proper list: `n` terms follow.
    #[inline]
    pub fn begin_list(&mut self, n: usize) {
        if n == 0 {
            return self.nil();
        }
        self.begin(n as u64);
        self.out.push(LIST);
        varint::push(self.out, n as u64);
    }

    /// An improper list: `n` terms (at least one) follow, then the tail, which is no list (the
    /// caller adds a list's elements to `n` instead).
    #[inline]
    pub fn begin_improper(&mut self, n: usize) {
        self.begin(n as u64 + 1);
        self.out.push(ILIST);
        varint::push(self.out, n as u64);
    }

    /// A tuple: `n` terms follow.
    #[inline]
    pub fn begin_tuple(&mut self, n: usize) {
        self.begin(n as u64);
        self.out.push(TUPLE);
        varint::push(self.out, n as u64);
    }

    /// A map: `n` keys follow, each with its value behind it, in any order; then
    /// [`Encoder::end_map`].
    pub fn begin_map(&mut self, n: usize) -> MapToken {
        self.begin(2 * n as u64);
        self.out.push(MAP);
        varint::push(self.out, n as u64);
        let outer_boundary = self.boundary;
        self.boundary = self.pending;
        let maps = self.maps.get_or_insert_with(Box::default);
        maps.frames.push(MapFrame {
            pairs: n,
            first_mark: maps.marks.len(),
            outer_boundary,
        });
        MapToken(maps.frames.len())
    }

    /// A map whose `n` pairs follow in the order that the encoding wants, as another encoded map
    /// has them. There is no end to call.
    pub fn begin_sorted_map(&mut self, n: usize) {
        self.begin(2 * n as u64);
        self.out.push(MAP);
        varint::push(self.out, n as u64);
    }

    /// Ends the innermost map: sorts its pairs into the order of the encoding.
    ///
    /// # Errors
    /// [`DuplicateKey`] if two keys are identical; the map then has both, and the caller drops what
    /// it was writing.
    ///
    /// # Complexity
    /// O(n log n) comparisons of keys; if pairs were out of order, one move of the bytes of the
    /// outermost map, and one of a key's for each level of maps that are nested in keys.
    pub fn end_map(&mut self, token: MapToken) -> Result<(), DuplicateKey> {
        let Some(maps) = self.maps.as_mut() else {
            self.broken = true;
            return Ok(());
        };
        let innermost = maps.frames.len() == token.0;
        let Some(frame) = maps.frames.pop() else {
            self.broken = true;
            return Ok(());
        };
        // The places of this map's keys and values. A map around it goes on with its own.
        let marks = maps.marks.split_off(frame.first_mark);
        let complete = marks.len() == 2 * frame.pairs && self.pending == self.boundary;
        self.boundary = frame.outer_boundary;
        if !innermost || !complete {
            self.broken = true;
        }
        if self.broken {
            return Ok(());
        }
        // Only the outermost map has its bytes moved; see `map_order`.
        let outermost = maps.frames.is_empty();
        maps.moves.end_map(self.out, &marks, outermost)
    }

    /// A binary. In shared mode one over 127 bytes is put outside, which copies it once.
    #[inline]
    pub fn binary(&mut self, bytes: &[u8]) {
        if self.mode == Mode::Shared && bytes.len() > INLINE_BINARY {
            return self.put_outside(Blob::from_slice(bytes));
        }
        self.begin(0);
        self.out.push(BIN);
        varint::push(self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// A binary that is already counted. In shared mode, over 127 bytes, it is not copied.
    pub fn blob(&mut self, blob: Blob) {
        if self.mode == Mode::Shared && blob.len() > INLINE_BINARY {
            self.put_outside(blob);
        } else {
            self.binary(&blob);
        }
    }

    fn put_outside(&mut self, blob: Blob) {
        self.begin(0);
        self.handles = true;
        self.out.push(BLOB);
        varint::push(self.out, blob.len() as u64);
        self.out.extend_from_slice(&blob.into_handle());
    }

    /// The first `bits` bits of `bytes`: a binary if they are whole bytes. Bits beyond the end of
    /// `bytes` are not there.
    pub fn bits(&mut self, bytes: &[u8], bits: usize) {
        let bits = bits.min(bytes.len().saturating_mul(8));
        let (whole, rest) = (bits / 8, bits % 8);
        if rest == 0 {
            return self.binary(&bytes[..whole]);
        }
        self.begin(0);
        self.out.push(BITS);
        varint::push(self.out, bits as u64);
        self.out.extend_from_slice(&bytes[..whole]);
        self.out.push(bytes[whole] & (0xFFu8 << (8 - rest)));
    }

    fn identifier(&mut self, node: Node, local: u8, external: u8) {
        self.begin(0);
        match node {
            Node::Local => self.out.push(local),
            Node::External(NodeName { name, creation }) => {
                self.out.push(external);
                push_atom(self.out, name);
                self.out.extend_from_slice(&creation.to_le_bytes());
            }
        }
    }

    /// A pid.
    pub fn pid(&mut self, node: Node, id: u32, serial: u32) {
        self.identifier(node, PID, PID_EXT);
        varint::push(self.out, u64::from(id));
        varint::push(self.out, u64::from(serial));
    }

    /// A port.
    pub fn port(&mut self, node: Node, id: u64) {
        self.identifier(node, PORT, PORT_EXT);
        varint::push(self.out, id);
    }

    /// A reference, its words in the order of the external format. Zero words at the end do not
    /// count beyond the third, and are added up to it.
    pub fn reference(&mut self, node: Node, words: &[u32]) {
        self.identifier(node, REF, REF_EXT);
        self.words(words);
    }

    /// A reference of this node that keeps something alive. In inline mode it keeps nothing.
    pub fn reference_kept(&mut self, words: &[u32], anchor: Anchor) {
        if self.mode == Mode::Inline {
            return self.reference(Node::Local, words);
        }
        self.begin(0);
        self.handles = true;
        self.out.push(REF_KEPT);
        self.words(words);
        self.out.extend_from_slice(&anchor.into_handle());
    }

    fn words(&mut self, words: &[u32]) {
        let used = words.iter().rposition(|&w| w != 0).map_or(0, |i| i + 1);
        let count = used.max(3);
        varint::push(self.out, count as u64);
        for i in 0..count {
            let word = words.get(i).copied().unwrap_or(0);
            self.out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// A local fun: `free` terms follow, its free variables.
    #[allow(clippy::too_many_arguments)]
    pub fn begin_fun(
        &mut self,
        module: Atom,
        arity: u8,
        uniq: &[u8; 16],
        index: u32,
        old_index: i64,
        old_uniq: i64,
        free: usize,
    ) {
        self.begin(free as u64);
        self.out.push(FUN);
        push_atom(self.out, module);
        varint::push(self.out, u64::from(arity));
        self.out.extend_from_slice(uniq);
        self.out.extend_from_slice(&index.to_le_bytes());
        push_int(self.out, old_index);
        push_int(self.out, old_uniq);
        varint::push(self.out, free as u64);
    }

    /// `fun M:F/A`.
    pub fn export(&mut self, module: Atom, function: Atom, arity: u8) {
        self.begin(0);
        self.out.push(EXPORT);
        push_atom(self.out, module);
        push_atom(self.out, function);
        varint::push(self.out, u64::from(arity));
    }

    /// A whole term, in this encoder's mode. Takes counts of its own on what it shares.
    ///
    /// # Complexity
    /// Linear; a copy of the bytes when they are short.
    #[inline]
    pub fn term(&mut self, term: TermRef<'_>) {
        let bytes = term.bytes();
        self.begin(0);
        if bytes.len() < SHORTEST_OF_NOTE {
            self.out.extend_from_slice(bytes);
        } else {
            self.long_term(bytes);
        }
    }

    /// Copies runs of heads as they are; only what the mode keeps elsewhere is written anew.
    fn long_term(&mut self, bytes: &[u8]) {
        if self.mode == Mode::Inline && has_tree_map(bytes) {
            return self.sorted(bytes);
        }
        let mut copied = 0;
        for (start, end) in Heads::new(bytes) {
            // What the mode keeps elsewhere: handles in inline mode become bytes, long binaries in
            // shared mode become handles.
            let moves = match bytes[start] {
                BLOB | REF_KEPT => true,
                BIN => self.mode == Mode::Shared && end - start > INLINE_BINARY + 2,
                FLOAT => {
                    self.negative_zero |= is_negative_zero(&bytes[start..end]);
                    false
                }
                _ => false,
            };
            if moves {
                self.out.extend_from_slice(&bytes[copied..start]);
                self.moved(TermRef::within(&bytes[start..end]));
                copied = end;
            }
        }
        self.out.extend_from_slice(&bytes[copied..]);
    }

    /// As `long_term`, with the pairs of all maps sorted, whose order in the bytes may be that of a
    /// tree.
    #[cold]
    fn sorted(&mut self, bytes: &[u8]) {
        let mut inner = Encoder::new(self.out, self.mode);
        // The open maps: their token, and how many terms were pending around them.
        let mut maps = Vec::new();
        let mut pending = 1;
        for (at, end) in Heads::new(bytes) {
            let children = head(bytes, at).1;
            pending = pending - 1 + children;
            match bytes[at] {
                TREE_MAP => maps.push((inner.begin_map(children as usize / 2), pending - children)),
                _ if children == 0 => inner.term(TermRef::within(&bytes[at..end])),
                _ => inner.raw_head(&bytes[at..end], children),
            }
            while maps.last().is_some_and(|&(_, around)| around == pending) {
                // The keys of a map of the host's are all different.
                let _ended = maps.pop().map(|(token, _)| inner.end_map(token));
            }
        }
        let zero = inner.negative_zero;
        self.negative_zero |= zero;
    }

    /// Takes over one whole term that was written elsewhere, with the counts of its handles.
    ///
    /// # Safety
    /// The bytes are what an encoder of this mode would have written in this process; the caller
    /// owns one count for each handle in them and gives it up. `handles` and `negative_zero` say
    /// whether a handle and a −0.0 are among them.
    pub unsafe fn adopt(&mut self, term: &[u8], handles: bool, negative_zero: bool) {
        self.begin(0);
        self.out.extend_from_slice(term);
        self.handles |= handles;
        self.negative_zero |= negative_zero;
    }

    /// A head that an encoder wrote in inline mode, and that is no map's.
    pub(crate) fn raw_head(&mut self, head: &[u8], children: u64) {
        self.begin(children);
        self.out.extend_from_slice(head);
    }

    /// A leaf inside a term that is being copied, in this mode; the outermost term has been
    /// counted.
    fn moved(&mut self, leaf: TermRef<'_>) {
        let mut inner = Encoder::new(self.out, self.mode);
        match (leaf.view(), leaf.blob(), leaf.anchor()) {
            (_, Some(blob), _) => inner.blob(blob),
            (View::Ref(reference), _, Some(anchor)) => {
                let words: SmallVec<[u32; 8]> = RefRef::words(reference).collect();
                inner.reference_kept(&words, anchor);
            }
            (View::Bin(bytes), _, _) => inner.binary(bytes),
            _ => debug_assert!(false, "only binaries and kept references move"),
        }
        let handles = inner.handles;
        self.handles |= handles;
    }
}

#[inline]
pub(crate) fn push_int(out: &mut Vec<u8>, n: i64) {
    if (0..=127).contains(&n) {
        return out.push(SMALL + n as u8);
    }
    let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
    let len = bits.div_ceil(8);
    push_tagged(out, INT1 + len as u8 - 1, n as u64, len);
}

/// Appends a tag and the low bytes of a payload, so many.
#[inline]
fn push_tagged(out: &mut Vec<u8>, tag: u8, payload: u64, len: usize) {
    // All eight, and then not those behind: a copy of known length is two instructions.
    let mut bytes = [tag, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[1..].copy_from_slice(&payload.to_le_bytes());
    let end = out.len() + 1 + len;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

#[inline]
pub(crate) fn push_atom(out: &mut Vec<u8>, atom: Atom) {
    let id = atom.id();
    let len = (4 - id.leading_zeros() as usize / 8).max(1);
    push_tagged(out, ATOM1 + len as u8 - 1, u64::from(id), len);
}

/// The number, if it fits; the magnitude has no leading zero byte.
fn as_i64(negative: bool, magnitude: &[u8]) -> Option<i64> {
    if magnitude.len() > 8 {
        return None;
    }
    let mut wide = [0; 8];
    wide[..magnitude.len()].copy_from_slice(magnitude);
    let magnitude = u64::from_le_bytes(wide);
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}
