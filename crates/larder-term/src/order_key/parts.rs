//! Parts of order keys, for a host that writes them from its own terms.
//!
//! The parts of an order key are in the order of the encoding. A tuple is its head, and then its
//! elements. A list has a marker in front of each element, and `[]` or its tail at the end. All
//! other terms are one part; those that aren't here are written by
//! [`encode_flat`](super::encode_flat()).

use super::counts::{count_parts, push_count};
use super::{push_text, sink::Sink, ATOM, CONS, NIL_KEY, PID_KEY, REFERENCE, TUPLE_KEY};
use crate::atom::Atom;

/// Writes an atom: its text, since atoms compare by their texts.
#[inline]
pub fn push_atom(atom: Atom, out: &mut impl Sink) {
    out.byte(ATOM);
    push_text(atom, out);
}

/// Writes the head of a tuple. The arity precedes the elements, as in term order.
#[inline]
pub fn push_tuple(arity: u64, out: &mut impl Sink) {
    let (first, rest, used) = count_parts(arity);
    out.run([TUPLE_KEY, first], 2);
    if used > 0 {
        out.run(rest, used);
    }
}

/// Writes the marker in front of an element of a list. The tail has none.
#[inline]
pub fn push_cons(out: &mut impl Sink) {
    out.byte(CONS);
}

/// Writes `[]`, which also is the end of a proper list.
#[inline]
pub fn push_nil(out: &mut impl Sink) {
    out.byte(NIL_KEY);
}

/// Writes a reference of this node with three numbers, which compare from the last one on.
#[inline]
pub fn push_reference([a, b, c]: [u32; 3], out: &mut impl Sink) {
    // The node is this one, which precedes the others.
    out.run([REFERENCE, 0, 3], 3);
    out.run((u64::from(c) << 32 | u64::from(b)).to_be_bytes(), 8);
    out.run(a.to_be_bytes(), 4);
}

/// Writes a pid of this node, which precedes the others.
#[inline]
pub fn push_pid(id: u64, serial: u64, out: &mut impl Sink) {
    out.byte(PID_KEY);
    push_count(serial, out);
    push_count(id, out);
    out.byte(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order_key::{encode, push_float, push_int};
    use crate::{term, Node, Term};

    /// Terms that are written part by part have the order keys of their encodings.
    #[test]
    fn parts_make_the_whole() {
        let atoms = ["", "user", "a\0b\u{1}", "é"].map(Atom::new);
        for (i, arity) in [0usize, 1, 3, 0xF7, 0xF8, 300].into_iter().enumerate() {
            let (atom, n) = (atoms[i % 4], 1i64 << (10 * i));
            let (id, serial, words) = (0xF8 << (4 * i), 3 << i, [7, 1 << i, u32::MAX - n as u32]);
            let x = 0.5 - (1u64 << (12 * i)) as f64;
            let parts = [
                Term::from(atom),
                Term::from(-n),
                Term::pid(Node::Local, id, serial),
                Term::reference(Node::Local, &words),
                Term::float(x).unwrap(),
                term!([]),
            ];
            let mut bytes = Vec::new();
            push_tuple(arity as u64 + 1, &mut bytes);
            for part in 0..arity {
                push_int(part as i64, &mut bytes);
            }
            for _ in &parts {
                push_cons(&mut bytes);
                push_cons(&mut bytes);
                push_atom(atom, &mut bytes);
                push_cons(&mut bytes);
                push_int(-n, &mut bytes);
                push_cons(&mut bytes);
                push_pid(id.into(), serial.into(), &mut bytes);
                push_cons(&mut bytes);
                push_reference(words, &mut bytes);
                push_cons(&mut bytes);
                push_float(x, &mut bytes);
                push_cons(&mut bytes);
                push_nil(&mut bytes);
                push_nil(&mut bytes);
            }
            push_nil(&mut bytes);
            let lists = Term::list(vec![Term::list(parts.to_vec()); parts.len()]);
            let numbers = (0..arity as i64).map(Term::from);
            let elements: Vec<Term> = numbers.chain([lists]).collect();
            let mut whole = Vec::new();
            encode(Term::tuple(elements).as_ref(), &mut whole);
            assert_eq!(bytes, whole, "{arity}");
        }
    }
}
