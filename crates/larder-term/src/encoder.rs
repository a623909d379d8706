//! Writing terms, head by head, without recursion.
//!
//! ```text
//!  begin_tuple(2)  atom  begin_map(1)  key  value  end_map(token)
//!
//!  a container's head, then as many terms as it has children
//! ```
//!
//! Invariants: `pending` is the number of terms that the open containers still lack. `boundary` is
//! the value of `pending` at which the next term to begin is a direct child of the innermost open
//! map. (It is 0 when no map is open: the next term is then a new outermost one.) So one comparison
//! for each term tells a map where its keys and values begin.

use crate::{
    atom::Atom,
    blob::{Anchor, Blob},
    contents::{has_tree_map, is_negative_zero},
    map_order::{DuplicateKey, Moves},
    node::{Node, NodeName},
    object::Run,
    simple,
    skip::{head, Heads},
    tags::*,
    varint,
    view::{RefRef, TermRef, View},
};
use num_bigint::{BigInt, Sign};
use smallvec::SmallVec;

/// The parts of a term that an encoding may keep outside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing. This is the mode of index keys.
    Inline,
    /// Anchors, but no binaries. This is the mode of compressed objects.
    Anchored,
    /// Anchors, and binaries of more than 127 bytes. This is the mode of values.
    Shared,
}

/// Proof that a map was begun, which [`Encoder::end_map`] takes.
#[derive(Debug)]
#[must_use = "a map that is not ended is not sorted"]
pub struct MapToken(usize);

/// Appends terms to a buffer.
///
/// The caller pushes a container's head and then its children. [`Encoder::is_complete`] says
/// whether each container has all its children. The bytes own one count for each handle in them
/// (see [`crate::blob`]).
pub struct Encoder<'b> {
    out: &'b mut Vec<u8>,
    mode: Mode,
    /// Whether a handle was written.
    handles: bool,
    /// Whether a −0.0 was written.
    negative_zero: bool,
    /// Whether the calls can't make a complete term any more.
    broken: bool,
    /// See the invariants of the module.
    pending: u64,
    /// See the invariants of the module.
    boundary: u64,
    /// The number of outermost terms that were begun.
    terms: usize,
    /// `None` until the first map is begun, so that other terms don't pay for it.
    maps: Option<Box<Maps>>,
    /// The outermost terms, if these are the elements of an object. The length of each is put in
    /// front of it when the next one begins.
    elements: Option<&'b mut Run>,
}

/// How many words of a reference are stored. Words of zero at the end are left out, and added again
/// up to the third.
pub fn stored_words(words: &[u32]) -> usize {
    let used = words
        .iter()
        .rposition(|&word| word != 0)
        .map_or(0, |i| i + 1);
    used.max(3)
}

/// No shorter term holds a handle, a float or a long binary.
const SHORTEST_OF_NOTE: usize = 9;

/// The open maps, the offsets of their keys and values, and the moves that are due when the
/// outermost map ends.
#[derive(Default)]
struct Maps {
    frames: Vec<MapFrame>,
    starts: Vec<usize>,
    moves: Moves,
}

struct MapFrame {
    pairs: usize,
    first_start: usize,
    outer_boundary: u64,
}

impl<'b> Encoder<'b> {
    /// An encoder that appends to `out` in `mode`.
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
            elements: None,
        }
    }

    /// An encoder that appends elements of an object to those that `out` ends with.
    #[inline]
    pub(crate) fn of_elements(out: &'b mut Vec<u8>, mode: Mode, elements: &'b mut Run) -> Self {
        Encoder {
            elements: Some(elements),
            ..Encoder::new(out, mode)
        }
    }

    /// The mode of the encoding.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The number of outermost terms that were begun.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Whether each term that was begun has all its children, and each map was ended.
    pub fn is_complete(&self) -> bool {
        self.pending == 0 && !self.broken && self.open_maps() == 0
    }

    /// Whether it appends to this buffer. A function that gets an encoder could have put another
    /// one in its place, which says nothing of the buffer.
    #[inline]
    pub fn appends_to(&self, buffer: *const Vec<u8>) -> bool {
        std::ptr::eq(&raw const *self.out, buffer)
    }

    /// Whether exactly `n` outermost terms were written, each with all its children; whether a
    /// handle was. Ends the encoding: without an open map there is nothing to drop.
    #[inline]
    pub(crate) fn end(self, n: usize) -> (bool, bool) {
        let Encoder {
            pending,
            broken,
            terms,
            handles,
            maps,
            ..
        } = self;
        let is_whole = pending == 0 && !broken && terms == n;
        match maps {
            None => (is_whole, handles),
            Some(maps) => (is_whole && maps.frames.is_empty(), handles),
        }
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

    /// Begins a term with this number of children.
    #[inline]
    fn begin(&mut self, children: u64) {
        if self.pending == self.boundary {
            self.at_boundary();
        }
        // More children than can be counted never come, so the encoding stays incomplete.
        self.pending = self.pending.wrapping_sub(1).saturating_add(children);
    }

    fn at_boundary(&mut self) {
        let open = self.maps.as_mut().filter(|maps| !maps.frames.is_empty());
        let Some(maps) = open else {
            if let Some(elements) = self.elements.as_deref_mut() {
                elements.element(self.out);
            }
            self.terms += 1;
            self.pending = 1;
            return;
        };
        // A child of the innermost open map begins here, unless the map already has all its pairs.
        let full = match maps.frames.last() {
            Some(frame) => maps.starts.len() - frame.first_start == frame.pairs.saturating_mul(2),
            None => true,
        };
        if full {
            // The map has all its pairs but was not ended. Accept what follows, but never report
            // the encoding as complete.
            self.broken = true;
            self.pending += 1;
            self.boundary = self.boundary.wrapping_add(1);
            return;
        }
        // Record where this key or value begins. The next one begins when this one is complete, and
        // `pending` is then one less.
        maps.starts.push(self.out.len());
        self.boundary = self.boundary.wrapping_sub(1);
    }

    /// Pushes an integer.
    #[inline]
    pub fn int(&mut self, n: i64) {
        self.begin(0);
        push_int(self.out, n);
    }

    /// Pushes an integer of any size, given its sign and its magnitude, little endian.
    pub fn big(&mut self, negative: bool, magnitude: &[u8]) {
        // Identical integers must have identical bytes. So cut off leading zeros, and write an
        // integer that fits into 64 bits as such.
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

    /// Pushes an integer of any size.
    pub fn bigint(&mut self, n: &BigInt) {
        let (sign, magnitude) = n.to_bytes_le();
        self.big(sign == Sign::Minus, &magnitude);
    }

    /// Pushes a float. The caller passes only finite ones, since Erlang has no others.
    #[inline]
    pub fn float(&mut self, x: f64) {
        debug_assert!(x.is_finite());
        self.begin(0);
        self.negative_zero |= x == 0.0 && x.is_sign_negative();
        self.out.push(FLOAT);
        self.out.extend_from_slice(&x.to_bits().to_le_bytes());
    }

    /// Pushes an atom.
    #[inline]
    pub fn atom(&mut self, atom: Atom) {
        self.begin(0);
        push_atom(self.out, atom);
    }

    /// Pushes `[]`.
    #[inline]
    pub fn nil(&mut self) {
        self.begin(0);
        self.out.push(NIL);
    }

    /// Begins a proper list. Its `n` elements follow.
    #[inline]
    pub fn begin_list(&mut self, n: usize) {
        if n == 0 {
            return self.nil();
        }
        self.begin(n as u64);
        self.out.push(LIST);
        varint::push(self.out, n as u64);
    }

    /// Begins an improper list. Its `n` elements (at least one) and its tail follow. The tail must
    /// not be a list: the caller pushes the elements of that list as elements of this one.
    #[inline]
    pub fn begin_improper(&mut self, n: usize) {
        self.begin((n as u64).saturating_add(1));
        self.out.push(ILIST);
        varint::push(self.out, n as u64);
    }

    /// Begins a tuple. Its `n` elements follow.
    #[inline]
    pub fn begin_tuple(&mut self, n: usize) {
        self.begin(n as u64);
        self.out.push(TUPLE);
        varint::push(self.out, n as u64);
    }

    /// Begins a map. Its `n` keys follow, each with its value after it, in any order of keys. Then
    /// the caller calls [`Encoder::end_map`].
    pub fn begin_map(&mut self, n: usize) -> MapToken {
        self.begin((n as u64).saturating_mul(2));
        self.out.push(MAP);
        varint::push(self.out, n as u64);
        // From here on, `pending` equals the boundary whenever a key or a value of this map begins.
        // The map around it gets its own boundary back when this one ends.
        let outer_boundary = self.boundary;
        self.boundary = self.pending;
        let maps = self.maps.get_or_insert_with(Box::default);
        maps.frames.push(MapFrame {
            pairs: n,
            first_start: maps.starts.len(),
            outer_boundary,
        });
        MapToken(maps.frames.len())
    }

    /// Begins a map whose `n` pairs follow in the order of the encoding, as in another encoded map.
    /// `end_map` must not be called for it.
    pub fn begin_sorted_map(&mut self, n: usize) {
        self.begin((n as u64).saturating_mul(2));
        self.out.push(MAP);
        varint::push(self.out, n as u64);
    }

    /// Ends the innermost map, and sorts its pairs into the order of the encoding.
    ///
    /// # Errors
    /// [`DuplicateKey`] if two keys are identical. The map then contains both, and the caller must
    /// discard the term.
    ///
    /// # Complexity
    /// O(n log n) comparisons of keys. If pairs were out of order, the bytes of the outermost map
    /// are moved once, and those of a key once for each level of maps that are nested in keys.
    pub fn end_map(&mut self, token: MapToken) -> Result<(), DuplicateKey> {
        // A wrong use of the encoder is remembered, not reported here: the caller learns of it
        // once, from `is_complete`.
        let Some(maps) = self.maps.as_mut() else {
            self.broken = true;
            return Ok(());
        };
        // A token is the depth of its map. So maps that are ended in the wrong order are noticed.
        let innermost = maps.frames.len() == token.0;
        let Some(frame) = maps.frames.pop() else {
            self.broken = true;
            return Ok(());
        };
        // Take the offsets of this map's keys and values. A map around it keeps its own.
        let starts = maps.starts.split_off(frame.first_start);
        let has_all = starts.len() == frame.pairs.saturating_mul(2);
        let complete = has_all && self.pending == self.boundary;
        self.boundary = frame.outer_boundary;
        if !innermost || !complete {
            self.broken = true;
        }
        if self.broken {
            return Ok(());
        }
        // Bytes are moved only when the outermost map ends; see `map_order`.
        let outermost = maps.frames.is_empty();
        maps.moves.end_map(self.out, &starts, outermost)
    }

    /// Pushes a binary. In shared mode, the bytes of a binary of more than 127 bytes are copied
    /// once, to the outside.
    #[inline]
    pub fn binary(&mut self, bytes: &[u8]) {
        // Copied once to the outside, where all terms that contain it share it.
        if self.mode == Mode::Shared && bytes.len() > INLINE_BINARY {
            return self.put_outside(Blob::from_slice(bytes));
        }
        self.begin(0);
        self.out.push(BIN);
        varint::push(self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Pushes a binary that is already reference-counted. In shared mode, a binary of more than 127
    /// bytes is not copied.
    pub fn blob(&mut self, blob: Blob) {
        if self.mode == Mode::Shared && blob.len() > INLINE_BINARY {
            self.put_outside(blob);
        } else {
            self.binary(&blob);
        }
    }

    /// Pushes a binary as a handle, which takes over the count.
    fn put_outside(&mut self, blob: Blob) {
        self.begin(0);
        self.handles = true;
        self.out.push(BLOB);
        varint::push(self.out, blob.len() as u64);
        self.out.extend_from_slice(&blob.into_handle());
    }

    /// Pushes the first `bits` bits of `bytes`: a binary, if they are whole bytes. If `bytes` has
    /// fewer bits, pushes all of them.
    pub fn bits(&mut self, bytes: &[u8], bits: usize) {
        // Never more bits than there are bytes for.
        let bits = bits.min(bytes.len().saturating_mul(8));
        let (whole, rest) = (bits / 8, bits % 8);
        if rest == 0 {
            return self.binary(&bytes[..whole]);
        }
        self.begin(0);
        self.out.push(BITS);
        varint::push(self.out, bits as u64);
        self.out.extend_from_slice(&bytes[..whole]);
        // Unused bits are zero, so that equal bitstrings have equal bytes.
        self.out.push(bytes[whole] & (0xFFu8 << (8 - rest)));
    }

    /// Writes the tag of an identifier, and its node if it is another one.
    fn identifier(&mut self, node: Node, local: u8, external: u8) {
        self.begin(0);
        // Identifiers of this node have no node in them, so that they stay valid if the node is
        // renamed.
        match node {
            Node::Local => self.out.push(local),
            Node::External(NodeName { name, creation }) => {
                self.out.push(external);
                push_atom(self.out, name);
                self.out.extend_from_slice(&creation.to_le_bytes());
            }
        }
    }

    /// Pushes a pid.
    pub fn pid(&mut self, node: Node, id: u32, serial: u32) {
        self.identifier(node, PID, PID_EXT);
        varint::push(self.out, u64::from(id));
        varint::push(self.out, u64::from(serial));
    }

    /// Pushes a port.
    pub fn port(&mut self, node: Node, id: u64) {
        self.identifier(node, PORT, PORT_EXT);
        varint::push(self.out, id);
    }

    /// Pushes a reference, given its words in the order of the external format. Zero words at the
    /// end are removed beyond the third word, and added up to it.
    pub fn reference(&mut self, node: Node, words: &[u32]) {
        self.identifier(node, REF, REF_EXT);
        self.words(words);
    }

    /// Pushes a reference of this node that keeps something alive. In inline mode, the written
    /// reference keeps nothing alive.
    pub fn reference_kept(&mut self, words: &[u32], anchor: Anchor) {
        // Inline terms have no handles.
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
        let count = stored_words(words);
        varint::push(self.out, count as u64);
        for i in 0..count {
            let word = words.get(i).copied().unwrap_or(0);
            self.out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Begins a local fun. Its `free` free variables follow.
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
        // The free variables are the only children. All else is part of the head.
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

    /// Pushes `fun M:F/A`.
    pub fn export(&mut self, module: Atom, function: Atom, arity: u8) {
        self.begin(0);
        self.out.push(EXPORT);
        push_atom(self.out, module);
        push_atom(self.out, function);
        varint::push(self.out, u64::from(arity));
    }

    /// Pushes a whole term, in this encoder's mode. Takes counts of what the written term shares.
    ///
    /// # Complexity
    /// Linear. A short term is only copied.
    #[inline]
    pub fn term(&mut self, term: TermRef<'_>) {
        let bytes = term.bytes();
        // A whole term counts as one, however many children it has.
        self.begin(0);
        // A short term has no handle and no map that must be looked at.
        if bytes.len() < SHORTEST_OF_NOTE {
            self.out.extend_from_slice(bytes);
        } else {
            self.long_term(bytes);
        }
    }

    /// Copies a term. Only binaries and references that this mode stores in another way are encoded
    /// anew; the bytes between them are copied.
    fn long_term(&mut self, bytes: &[u8]) {
        // Inline bytes have one form of each map only, the sorted one.
        if self.mode == Mode::Inline && has_tree_map(bytes) {
            return self.sorted(bytes);
        }
        // `copied` is the end of what is in the output. The bytes after it wait for the next leaf
        // that is encoded anew, or the end, and are copied at once.
        let mut copied = 0;
        for (start, end) in Heads::new(bytes) {
            // Decide whether the term is encoded anew: in inline mode, handles become bytes; in
            // shared mode, long binaries become handles.
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

    /// As `long_term`, but sorts the pairs of all maps, which may be in the order of a tree.
    #[cold]
    fn sorted(&mut self, bytes: &[u8]) {
        // The inner encoder has a stack of maps of its own: the open maps of the caller know this
        // term as one child.
        let mut inner = Encoder::new(self.out, self.mode);
        // For each open map: its token, and the number of terms that were pending around it.
        let mut maps = Vec::new();
        let mut pending = 1;
        for (at, end) in Heads::new(bytes) {
            let children = head(bytes, at).1;
            pending = pending - 1 + children;
            match bytes[at] {
                TREE_MAP => maps.push((inner.begin_map(children as usize / 2), pending - children)),
                _ if children == 0 => inner.term(TermRef::within(&bytes[at..end])),
                // Heads of other containers have the same bytes in all modes.
                _ => inner.raw_head(&bytes[at..end], children),
            }
            while maps.last().is_some_and(|&(_, around)| around == pending) {
                // The keys of a map of the host are all different.
                let _ended = maps.pop().map(|(token, _)| inner.end_map(token));
            }
        }
        // Properties that the inner encoder has seen concern the whole term.
        let zero = inner.negative_zero;
        self.negative_zero |= zero;
    }

    /// Appends one whole term that was encoded elsewhere, and takes over the counts of its handles.
    ///
    /// # Safety
    /// The bytes are what an encoder of this mode would have written in this process. The caller
    /// owns one count for each handle in them, and gives it up. `handles` and `negative_zero` say
    /// whether the term contains a handle and a −0.0.
    pub unsafe fn adopt(&mut self, term: &[u8], handles: bool, negative_zero: bool) {
        self.begin(0);
        self.out.extend_from_slice(term);
        self.handles |= handles;
        self.negative_zero |= negative_zero;
    }

    /// Appends a head that an encoder wrote in inline mode. It must not be that of a map.
    pub(crate) fn raw_head(&mut self, head: &[u8], children: u64) {
        self.begin(children);
        self.out.extend_from_slice(head);
    }

    /// Encodes anew a leaf of a term that is being copied. The outermost term has already been
    /// counted.
    fn moved(&mut self, leaf: TermRef<'_>) {
        // An encoder of its own, since the outer one has counted the term as a whole.
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
    // Append all nine bytes, then cut off the rest: a copy of constant length is few instructions.
    let (bytes, used) = simple::int(n);
    let end = out.len() + used;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Appends a tag and the `len` low bytes of a payload.
#[inline]
fn push_tagged(out: &mut Vec<u8>, tag: u8, payload: u64, len: usize) {
    // As in `push_int`.
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

/// The integer, if it fits into 64 bits. The magnitude has no leading zero byte.
fn as_i64(negative: bool, magnitude: &[u8]) -> Option<i64> {
    if magnitude.len() > 8 {
        return None;
    }
    // The magnitude is little-endian, so the missing bytes are zeros at the end.
    let mut wide = [0; 8];
    wide[..magnitude.len()].copy_from_slice(magnitude);
    let magnitude = u64::from_le_bytes(wide);
    // The least number has no positive counterpart.
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}
