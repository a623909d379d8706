//! Order keys: bytes that compare as Erlang's terms do, with `==`.
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
//! Invariants: byte order is term order; no order key is a prefix of another; only what is `==`
//! shares bytes. `0xFF` begins nothing.
//!
//! * *Numbers.* A number's magnitude is its whole part `i` and its fraction. `w = 2i + (1 if there
//!   is a fraction)` is written in as few bytes as it takes, its length in the first byte (`w < 96`
//!   is the first byte alone), and then the fraction as eight IEEE bytes, high ones first, if there
//!   is one. The magnitude of a negative number has all its bits turned. In the keys of maps
//!   integers precede floats, so there a float is `EF` and its IEEE bits, turned so that they
//!   compare.
//! * *Texts* end with 00; inside, 00 is `01 01` and 01 is `01 02`. *Bits*: see `order_key/bits.rs`.
//! * *Maps* have their keys in term order, then the values in that order.
//! * *This node's* pids, ports and references sort before all other nodes' of the same number
//!   (pids) and before all other nodes' (ports and references). Erlang would place them by the
//!   node's name, which a node may change while its tables stay.

mod bits;
mod counts;
mod decode;
mod flat;
mod numbers;
mod sink;

pub use decode::{comes_back, decode};
pub use flat::{encode_binary, encode_flat};
pub use numbers::{of_int, of_large, to_int};
pub use sink::OutputByte;

use counts::{count_parts, push_count};
use sink::Sink;

use crate::{
    atom::Atom,
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

/// Where this node stands among the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalNode {
    /// Before them, whatever its name.
    First,
    /// Where its name puts it now.
    ByName,
}

/// Appends the order key of a term.
///
/// # Complexity
/// Linear in the term, O(n log n) in the keys of its maps; no recursion.
#[inline]
pub fn encode(term: TermRef<'_>, out: &mut Vec<u8>) {
    if let View::Int(n) = term.view() {
        return numbers::push_int(n, out);
    }
    // Most terms have an order key that one walk writes, of at most two bytes for each of theirs
    // and the texts of their atoms. Where that is not enough the general way begins anew.
    let start = out.len();
    out.resize(start + 2 * term.bytes().len() + TEXT_ROOM, 0);
    match encode_flat(term, &mut out[start..]) {
        Some((len, _)) => out.truncate(start + len),
        None => {
            out.truncate(start);
            encode_general(term, out);
        }
    }
}

/// As [`encode`](encode()), by the way that knows all terms: for those of which [`encode_flat`]
/// gives none.
pub fn encode_general(term: TermRef<'_>, out: &mut Vec<u8>) {
    encode_as(term, false, LocalNode::First, out);
}

/// Room for the texts of a term's atoms.
const TEXT_ROOM: usize = 64;

/// Appends a run of bytes with which exactly the order keys of tuples of this arity begin that have
/// these first elements.
pub fn tuple_prefix(arity: usize, firsts: &[TermRef<'_>], out: &mut Vec<u8>) {
    out.push(TUPLE_KEY);
    push_count(arity as u64, out);
    firsts.iter().for_each(|&first| encode(first, out));
}

/// Appends a run of bytes with which exactly the order keys of lists begin that have these first
/// elements (and any tail after them).
pub fn list_prefix(firsts: &[TermRef<'_>], out: &mut Vec<u8>) {
    for &first in firsts {
        out.push(CONS);
        encode(first, out);
    }
}

/// Turns a prefix into the least run of bytes that is greater than everything that begins with it;
/// `false` if there is none (the prefix is empty or all `FF`, which no order key is), and then
/// `prefix` is empty.
pub fn successor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}

/// What is still to be written, innermost last.
enum Pending {
    /// So many terms, from the cursor on.
    Terms { left: u64, exact: bool },
    /// A list: so many elements, from the cursor on, then the end or the tail.
    List {
        left: u64,
        improper: bool,
        exact: bool,
    },
    /// A map's keys, which are being written in the order of the encoding.
    Keys {
        map: usize,
        done: usize,
        starts: Vec<usize>,
        exact: bool,
    },
    /// A map's values: where they begin, in the order of the keys; the next one last.
    Values {
        places: Vec<usize>,
        end: usize,
        exact: bool,
    },
}

struct KeyWriter<'a, 'o> {
    bytes: &'a [u8],
    at: usize,
    local: LocalNode,
    out: &'o mut Vec<u8>,
    open: Vec<Pending>,
    maps: Option<MapIndex>,
}

/// Appends the order key of a term. `exact`: integers before floats, as in the keys of maps.
pub(crate) fn encode_as(term: TermRef<'_>, exact: bool, local: LocalNode, out: &mut Vec<u8>) {
    let mut writer = KeyWriter {
        bytes: term.bytes(),
        at: 0,
        local,
        out,
        open: Vec::new(),
        maps: None,
    };
    writer.term(exact);
    while let Some(open) = writer.open.pop() {
        writer.step(open);
    }
}

impl KeyWriter<'_, '_> {
    /// Writes the next piece of an open container, and opens it again if it has more.
    fn step(&mut self, open: Pending) {
        match open {
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
                // No element is left: an end mark, or the tail, which is announced by nothing.
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
                // Each element is announced. So a list that ends earlier has the end mark, which is
                // less, in the place of the announcement.
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
                mut places,
                end,
                exact,
            } => match places.pop() {
                // All values are written: on behind the map.
                None => self.at = end,
                Some(place) => {
                    self.open.push(Pending::Values { places, end, exact });
                    self.at = place;
                    self.term(exact);
                }
            },
        }
    }

    /// Writes the head at the cursor and opens what has children.
    fn term(&mut self, exact: bool) {
        let start = self.at;
        // The cursor moves behind the head; children are written by later steps.
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
                // A list has no count in its key: its elements decide before its length does.
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
                let leaf = TermRef::within(&self.bytes[start..end]);
                push_leaf(leaf, exact, self.local, self.out);
                self.open_free_variables(children, exact);
            }
        }
    }

    fn open_free_variables(&mut self, left: u64, exact: bool) {
        if left > 0 {
            self.open.push(Pending::Terms { left, exact });
        }
    }

    fn map(&mut self, start: usize, pairs: u64, exact: bool) {
        self.out.push(MAP_KEY);
        push_count(pairs, self.out);
        // One pair is in order as it is: the key, exact, and then the value.
        if pairs < 2 {
            self.open.push(Pending::Terms { left: pairs, exact });
            self.open.push(Pending::Terms {
                left: pairs,
                exact: true,
            });
            return;
        }
        let bytes = self.bytes;
        // Others are written key by key and sorted afterwards. Where they begin is found once for
        // all maps of the term.
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

    fn next_key(&mut self, map: usize, done: usize, mut starts: Vec<usize>, exact: bool) {
        // Where this key begins, or the last one ended.
        starts.push(self.out.len());
        let Some(index) = &self.maps else { return };
        let places = index.places(map);
        if done < places.pairs() {
            self.at = places.key(done);
            let done = done + 1;
            self.open.push(Pending::Keys {
                map,
                done,
                starts,
                exact,
            });
            return self.term(true);
        }
        // All keys are written: they are sorted as bytes, which is term order, and the values
        // follow in the same order.
        let order = sort_runs(self.out, &starts);
        let end = places.end();
        let places = order.into_iter().rev().map(|i| places.value(i)).collect();
        self.open.push(Pending::Values { places, end, exact });
    }
}

/// Writes what has no children, or the head of a fun.
fn push_leaf(leaf: TermRef<'_>, exact: bool, local: LocalNode, out: &mut impl Sink) {
    match leaf.view() {
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

fn push_node(node: Node, local: LocalNode, out: &mut impl Sink) {
    let name = match (node, local) {
        (Node::Local, LocalNode::First) => return out.byte(0),
        (node, _) => node.name(),
    };
    let NodeName { name, creation } = name;
    out.byte(1);
    push_text(name, out);
    out.run(creation.to_be_bytes(), 4);
}

/// A fun without its free variables.
fn push_fun(fun: FunRef<'_>, out: &mut impl Sink) {
    out.byte(LOCAL_FUN);
    push_text(fun.module, out);
    for integer in [fun.old_index, fun.old_uniq] {
        push_leaf(integer, false, LocalNode::First, out);
    }
    out.run(fun.index.to_be_bytes(), 4);
    out.run(fun.uniq, 16);
    push_count(fun.arity, out);
    push_count(fun.free().len() as u64, out);
}

fn push_text(atom: Atom, out: &mut impl Sink) {
    let mut rest = atom.text().as_bytes();
    // Few texts have bytes of another form, and most are short: eight bytes are looked at together.
    if is_plain(rest) {
        out.slice(rest);
        return out.byte(0);
    }
    // Whole runs between bytes that have another form.
    while let Some(at) = rest.iter().position(|&byte| byte <= 1) {
        out.slice(&rest[..at]);
        out.run([1, rest[at] + 1], 2);
        rest = &rest[at + 1..];
    }
    out.slice(rest);
    out.byte(0);
}

/// Whether no byte is 0 or 1.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xFF;
    // Without bit 0 both are 0. A borrow begins at the lowest byte that is 0, and only there.
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

/// Sorts neighbouring runs of `out` that begin at `starts` (the last of which is the end), and says
/// in which order they were.
fn sort_runs(out: &mut Vec<u8>, starts: &[usize]) -> Vec<usize> {
    let run = |i: usize| &out[starts[i]..starts[i + 1]];
    let mut order: Vec<usize> = (0..starts.len() - 1).collect();
    // Often they are in order already.
    if order.is_sorted_by(|&a, &b| run(a) <= run(b)) {
        return order;
    }
    order.sort_by(|&a, &b| run(a).cmp(run(b)));
    let mut sorted = Vec::with_capacity(out.len() - starts[0]);
    order.iter().for_each(|&i| sorted.extend_from_slice(run(i)));
    out.truncate(starts[0]);
    out.extend_from_slice(&sorted);
    order
}
