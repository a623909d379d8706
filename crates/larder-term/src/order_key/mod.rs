//! Order keys: byte strings that compare as Erlang's terms do, with `==`.
//!
//! ```text
//!  number   0x10..=0x7F negative   0x80..=0xEE not negative
//!           (0xEF a float where integers and floats are apart)
//!  atom     F0 text…          port   F4 node, id              nil    F8
//!  ref      F1 node, words    pid    F5 serial, id, node      list   F9 element  (F9 element)…
//!  fun      F2 …   F3 M:F/A   tuple  F6 arity, elements              then F8 or the tail
//!                             map    F7 size, keys, values    bits   FA bytes…, end
//! ```
//!
//! Invariants: byte order is term order; no order key is a prefix of another; two terms have the
//! same order key only if they are `==`. No order key begins with `0xFF`.
//!
//! * *Numbers.* The magnitude of a number is its whole part `i` and its fraction. `w = 2i + (1 if
//!   there is a fraction)` is written in as few bytes as possible. The first byte says how many
//!   there are; if `w < 96`, it is the whole of `w`. If there is a fraction, it follows as eight
//!   bytes of an IEEE float, big endian. In a negative number, all bits of the magnitude are
//!   inverted. In keys of maps, all integers precede all floats. So a float there is `EF` and its
//!   IEEE bits, changed so that they compare.
//! * *Texts* end with 00. Inside a text, 00 is written as `01 01`, and 01 as `01 02`. *Bits*: see
//!   `order_key/bits.rs`.
//! * *Maps* have their keys in term order, and then their values in the order of the keys.
//! * Identifiers of *this node* precede those of all other nodes: ports and references in any case,
//!   pids among those with the same numbers. Erlang would order them by the name of the node. But a
//!   node's name may change while its tables exist.

mod bits;
mod counts;
mod decode;
mod flat;
mod numbers;
mod parts;
mod sink;

pub use bits::to_binary;
pub use decode::{comes_back, decode};
pub use flat::{encode_binary, encode_flat};
pub use numbers::{int_bytes, of_int, of_large, push_float, push_int, to_int};
pub use parts::{push_atom, push_cons, push_nil, push_pid, push_reference, push_tuple};
pub use sink::{OutputByte, Sink};

use counts::push_count;

use crate::{
    atom::Atom,
    map_edit::MOST_SORTED,
    maps::MapIndex,
    node::{Node, NodeName},
    skip::head,
    tags::*,
    view::{kind_at, FunRef, Kind, TermRef, View},
};

const ATOM: u8 = 0xF0;
const REFERENCE: u8 = 0xF1;
const LOCAL_FUN: u8 = 0xF2;
const EXTERNAL_FUN: u8 = 0xF3;
const PORT_KEY: u8 = 0xF4;
const PID_KEY: u8 = 0xF5;
const TUPLE_KEY: u8 = 0xF6;
const MAP_KEY: u8 = 0xF7;
const NIL_KEY: u8 = 0xF8;
const CONS: u8 = 0xF9;
const BITSTRING: u8 = 0xFA;

/// How the identifiers of this node are ordered among those of others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalNode {
    /// Before the others, whatever the name of this node is.
    First,
    /// By the current name of this node.
    ByName,
}

/// Appends the order key of a term.
///
/// # Complexity
/// Linear in the term, and O(n log n) in the keys of its maps. No recursion.
#[inline]
pub fn encode(term: TermRef<'_>, out: &mut Vec<u8>) {
    match term.view() {
        View::Int(n) => return numbers::push_int(n, out),
        View::Bin(bytes) => return append_binary(bytes, out),
        _ => {}
    }
    // Try the fast encoder first. It writes the order keys of most terms in one walk: at most two
    // bytes for each byte of the term, and the texts of its atoms. If it fails, start again with
    // the general encoder.
    let start = out.len();
    out.resize(start + 2 * term.bytes().len() + TEXT_SPARE, 0);
    match encode_flat(term, &mut out[start..]) {
        Some((len, _)) => out.truncate(start + len),
        None => {
            out.truncate(start);
            encode_general(term, out);
        }
    }
}

#[inline(never)]
fn append_binary(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + TEXT_SPARE);
    bits::push(bytes, 8 * bytes.len(), out);
}

/// As [`encode`](encode()), with the general encoder, which knows all kinds of terms. For terms for
/// which [`encode_flat`] returns `None`.
pub fn encode_general(term: TermRef<'_>, out: &mut Vec<u8>) {
    encode_as(term, false, LocalNode::First, out);
}

/// Additional space for the texts of a term's atoms.
const TEXT_SPARE: usize = 64;

/// Appends a prefix that exactly the order keys of certain tuples have: those of this arity whose
/// first elements are these.
pub fn tuple_prefix(arity: usize, firsts: &[TermRef<'_>], out: &mut Vec<u8>) {
    out.push(TUPLE_KEY);
    push_count(arity as u64, out);
    firsts.iter().for_each(|&first| encode(first, out));
}

/// Appends a prefix that exactly the order keys of certain lists have: those whose first elements
/// are these, with any tail after them.
pub fn list_prefix(firsts: &[TermRef<'_>], out: &mut Vec<u8>) {
    for &first in firsts {
        out.push(CONS);
        encode(first, out);
    }
}

/// Turns a prefix into the least byte string that is greater than all byte strings with this
/// prefix. If there is none, because the prefix is empty or all `FF`, returns `false` and leaves
/// `prefix` empty. No order key is such a prefix.
pub fn successor(prefix: &mut Vec<u8>) -> bool {
    // The last byte that isn't `FF` is increased, and all after it are dropped.
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}

/// A part of an open container that is still to be written. The innermost container is the last in
/// the stack.
enum Pending {
    /// This number of terms, from the cursor on.
    Terms { left: u64, exact: bool },
    /// A list: this number of elements, from the cursor on, then the end or the tail.
    List {
        left: u64,
        improper: bool,
        exact: bool,
    },
    /// The keys of a map, which are being written in the order of the encoding.
    Keys {
        map: usize,
        done: usize,
        starts: Vec<usize>,
        exact: bool,
    },
    /// The values of a map: their offsets in the order of the keys. The next one is the last in the
    /// vector.
    Values {
        offsets: Vec<usize>,
        end: usize,
        exact: bool,
    },
}

/// Writes an order key, without recursion.
struct KeyWriter<'a, 'o> {
    /// The encoded term.
    bytes: &'a [u8],
    /// The cursor: the offset of the next head.
    at: usize,
    local: LocalNode,
    /// Whether small maps have their keys as they lie, not in term order.
    as_stored: bool,
    out: &'o mut Vec<u8>,
    /// The open containers, the innermost one last.
    open: Vec<Pending>,
    maps: Option<MapIndex>,
}

/// Appends the order key of a term. If `exact` is set, integers precede floats, as in the keys of
/// maps.
pub(crate) fn encode_as(term: TermRef<'_>, exact: bool, local: LocalNode, out: &mut Vec<u8>) {
    KeyWriter::new(term, local, false, out).all(exact);
}

/// As `encode_as` with `exact`, but small maps have their keys as they lie, and the values in this
/// order. So the bytes compare as [`TermRef::cmp_stored`] does. No order key of a table is like it.
pub(crate) fn encode_stored(term: TermRef<'_>, local: LocalNode, out: &mut Vec<u8>) {
    KeyWriter::new(term, local, true, out).all(true);
}

impl<'a, 'o> KeyWriter<'a, 'o> {
    fn new(term: TermRef<'a>, local: LocalNode, as_stored: bool, out: &'o mut Vec<u8>) -> Self {
        KeyWriter {
            bytes: term.bytes(),
            at: 0,
            local,
            as_stored,
            out,
            open: Vec::new(),
            maps: None,
        }
    }

    /// Writes the whole term.
    fn all(mut self, exact: bool) {
        self.term(exact);
        // The innermost open container is on top of the stack. Each step writes one of its
        // children, which may be pushed above it.
        while let Some(open) = self.open.pop() {
            self.step(open);
        }
    }

    /// Writes the next part of an open container. Pushes the container again if it has more parts.
    fn step(&mut self, open: Pending) {
        match open {
            // The last child of a tuple or a fun is written. It has no terminator: its count came
            // first.
            Pending::Terms { left: 0, .. } => {}
            Pending::Terms { left, exact } => {
                let left = left - 1;
                self.open.push(Pending::Terms { left, exact });
                self.term(exact);
            }
            Pending::List {
                left: 0,
                improper,
                exact,
                // No element is left. Write the terminator, or the tail, which has no marker in
                // front of it.
            } => match improper {
                true => self.term(exact),
                false => self.out.push(NIL_KEY),
            },
            Pending::List {
                left,
                improper,
                exact,
            } => {
                let left = left - 1;
                self.open.push(Pending::List {
                    left,
                    improper,
                    exact,
                });
                // Write a marker in front of each element. A list that ends earlier has the
                // terminator here, which is less.
                self.out.push(CONS);
                self.term(exact);
            }
            Pending::Keys {
                map,
                done,
                starts,
                exact,
            } => self.next_key(map, done, starts, exact),
            Pending::Values {
                mut offsets,
                end,
                exact,
            } => match offsets.pop() {
                // All values are written. Continue after the map.
                None => self.at = end,
                Some(offset) => {
                    self.open.push(Pending::Values {
                        offsets,
                        end,
                        exact,
                    });
                    self.at = offset;
                    self.term(exact);
                }
            },
        }
    }

    /// Writes the head at the cursor. If it has children, pushes the container.
    fn term(&mut self, exact: bool) {
        let start = self.at;
        // Move the cursor past the head. Later steps write the children.
        let (end, children) = head(self.bytes, start);
        self.at = end;
        match kind_at(self.bytes, start) {
            Kind::Tuple => {
                self.out.push(TUPLE_KEY);
                push_count(children, self.out);
                self.open.push(Pending::Terms {
                    left: children,
                    exact,
                });
            }
            Kind::List => {
                // The order key of a list has no count: the elements of two lists are compared
                // before their lengths.
                let improper = self.bytes[start] == ILIST;
                let left = children - u64::from(improper);
                self.open.push(Pending::List {
                    left,
                    improper,
                    exact,
                });
            }
            Kind::Map => self.map(start, children / 2, exact),
            _ => {
                // Leaves, and funs: their free variables are compared one by one after the head.
                let leaf = TermRef::within(&self.bytes[start..end]);
                push_leaf(leaf, exact, self.local, self.out);
                self.open_free_variables(children, exact);
            }
        }
    }

    /// Pushes the free variables of a fun, if it has any.
    fn open_free_variables(&mut self, left: u64, exact: bool) {
        if left > 0 {
            self.open.push(Pending::Terms { left, exact });
        }
    }

    /// Writes the head of a map, and pushes its keys and values.
    fn map(&mut self, start: usize, pairs: u64, exact: bool) {
        self.out.push(MAP_KEY);
        push_count(pairs, self.out);
        // The order of a single pair is known. Write the key, with `exact`, and then the value.
        if pairs < 2 {
            self.open.push(Pending::Terms { left: pairs, exact });
            self.open.push(Pending::Terms {
                left: pairs,
                exact: true,
            });
            return;
        }
        let bytes = self.bytes;
        // Write the keys one by one, and sort them afterwards. Find the offsets of the keys and
        // values of all maps of the term once.
        let map = self
            .maps
            .get_or_insert_with(|| MapIndex::new(bytes))
            .find(start);
        let starts = Vec::with_capacity(pairs as usize + 1);
        self.open.push(Pending::Keys {
            map,
            done: 0,
            starts,
            exact,
        });
    }

    /// Writes the next key of a map, or sorts the keys if all are written.
    fn next_key(&mut self, map: usize, done: usize, mut starts: Vec<usize>, exact: bool) {
        // Record where this key begins, or where the last one ended.
        starts.push(self.out.len());
        let Some(index) = &self.maps else { return };
        let offsets = index.offsets(map);
        if done < offsets.pairs() {
            self.at = offsets.key(done);
            let done = done + 1;
            self.open.push(Pending::Keys {
                map,
                done,
                starts,
                exact,
            });
            return self.term(true);
        }
        // All keys are written. Sort them as bytes, which is term order. The values follow in the
        // same order.
        let mut order: Vec<usize> = (0..starts.len() - 1).collect();
        let is_kept = self.as_stored && offsets.pairs() <= MOST_SORTED;
        if !is_kept && sort_runs(self.out, &starts, &mut order) {
            let key = |&i: &usize| &self.out[starts[i]..starts[i + 1]];
            let sorted = order.iter().map(key).collect::<Vec<_>>().concat();
            self.out[starts[0]..].copy_from_slice(&sorted);
        }
        let end = offsets.end();
        let offsets = order.into_iter().rev().map(|i| offsets.value(i)).collect();
        self.open.push(Pending::Values {
            offsets,
            end,
            exact,
        });
    }
}

/// Writes a term without children, or the head of a fun.
fn push_leaf(leaf: TermRef<'_>, exact: bool, local: LocalNode, out: &mut impl Sink) {
    match leaf.view() {
        // Integers and floats of the same value have the same bytes, unless `exact` is set.
        View::Int(n) => numbers::push_int(n, out),
        View::Big(n) => numbers::push_big(n, out),
        View::Float(x) if exact => numbers::push_exact_float(x, out),
        View::Float(x) => numbers::push_float(x, out),
        View::Atom(atom) => {
            out.byte(ATOM);
            push_text(atom, out);
        }
        View::Nil => out.byte(NIL_KEY),
        View::Bin(bytes) => bits::push(bytes, bytes.len() * 8, out),
        View::Bits { bytes, bits } => bits::push(bytes, bits, out),
        View::Pid(pid) => {
            // The parts of an identifier are in the order in which Erlang compares them.
            out.byte(PID_KEY);
            push_count(u64::from(pid.serial), out);
            push_count(u64::from(pid.id), out);
            push_node(pid.node, local, out);
        }
        View::Port(port) => {
            out.byte(PORT_KEY);
            push_node(port.node, local, out);
            push_count(port.id, out);
        }
        View::Ref(reference) => {
            out.byte(REFERENCE);
            push_node(reference.node, local, out);
            push_count(reference.words().len() as u64, out);
            // As in `push_reference`.
            let words = reference.words().rev();
            words.for_each(|word| out.run(word.to_be_bytes(), 4));
        }
        View::Fun(fun) => push_fun(fun, out),
        View::Export {
            module,
            function,
            arity,
        } => {
            out.byte(EXTERNAL_FUN);
            push_text(module, out);
            push_text(function, out);
            push_count(arity, out);
        }
        View::List(_) | View::Tuple(_) | View::Map(_) => debug_assert!(false, "not a leaf"),
    }
}

/// Writes the node of an identifier.
fn push_node(node: Node, local: LocalNode, out: &mut impl Sink) {
    let name = match (node, local) {
        // This node comes before all others, without its name.
        (Node::Local, LocalNode::First) => return out.byte(0),
        (node, _) => node.name(),
    };
    let NodeName { name, creation } = name;
    out.byte(1);
    push_text(name, out);
    // Big-endian, so that the bytes compare as the number does.
    out.run(creation.to_be_bytes(), 4);
}

/// Writes a fun without its free variables.
fn push_fun(fun: FunRef<'_>, out: &mut impl Sink) {
    out.byte(LOCAL_FUN);
    push_text(fun.module, out);
    // The integers of a fun compare as numbers do.
    for integer in [fun.old_index, fun.old_uniq] {
        push_leaf(integer, false, LocalNode::First, out);
    }
    out.run(fun.index.to_be_bytes(), 4);
    out.run(fun.uniq, 16);
    push_count(fun.arity, out);
    push_count(fun.free().len() as u64, out);
}

/// Writes the escaped text of an atom, and its terminator.
fn push_text(atom: Atom, out: &mut impl Sink) {
    let mut rest = atom.text().as_bytes();
    // The fast path: the text has no byte that must be escaped. Check eight bytes at a time.
    if is_plain(rest) {
        out.slice(rest);
        return out.byte(0);
    }
    // Copy the runs between escaped bytes.
    while let Some(at) = rest.iter().position(|&byte| byte <= 1) {
        out.slice(&rest[..at]);
        out.run([1, rest[at] + 1], 2);
        rest = &rest[at + 1..];
    }
    out.slice(rest);
    out.byte(0);
}

/// Whether no byte is 0 or 1, which are escaped.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xFF;
    // Clear bit 0 of each byte, so that both become 0. Then find a zero byte: in the subtraction,
    // borrows begin at the lowest byte that is 0, and only there.
    let plain = |word: u64| {
        let word = word & !ONES;
        word.wrapping_sub(ONES) & !word & (ONES << 7) == 0
    };
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter();
    let rest = rest.fold(u64::MAX, |word, &byte| word << 8 | u64::from(byte));
    let mut words = words.map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    plain(rest) && words.all(plain)
}

/// Sorts the indexes of adjacent runs of `bytes` by the runs. Run `i` is between `bounds[i]` and
/// `bounds[i + 1]`. Returns whether any index has moved.
#[inline]
fn sort_runs(bytes: &[u8], bounds: &[usize], order: &mut [usize]) -> bool {
    let run = |i: usize| &bytes[bounds[i]..bounds[i + 1]];
    // Often they are already sorted.
    if order.is_sorted_by(|&a, &b| run(a) <= run(b)) {
        return false;
    }
    // Equal runs stay in order.
    order.sort_unstable_by(|&a, &b| run(a).cmp(run(b)).then(a.cmp(&b)));
    true
}
