//! Order keys, written from the words of a term.
//!
//! The common kinds of terms, and containers of them, are written from their words. Any other part
//! of a term is encoded first, and its order key made of the encoding: so are maps, funs, large
//! integers, bitstrings, and what lies below [`DEPTH`](super::DEPTH) levels.

use super::{Unreadable, Writer};
use crate::layout::{self, Bits, Kind};
use crate::sys::*;
use crate::terms::atoms;
use crate::terms::buffer::stack_bytes;
use larder_term::{order_key, Atom, Mode};

impl Writer<'_> {
    /// Writes the order key of a term, of which at most `depth` levels of containers recursively.
    /// Returns whether the term can be restored from it (`order_key::comes_back`).
    #[inline]
    pub(super) fn order_key(&mut self, word: Word, depth: u32) -> Result<bool, Unreadable> {
        if let Some(n) = layout::small(word) {
            order_key::push_int(n, &mut self.out);
            return Ok(true);
        }
        if layout::is_atom(word) {
            order_key::push_atom(Atom::trusted(atoms::id_of(self.env, word)), &mut self.out);
            return Ok(false);
        }
        self.uncommon_order_key(word, depth)
    }

    /// As `order_key`, for a term that is neither a small integer nor an atom.
    #[inline(never)]
    fn uncommon_order_key(&mut self, word: Word, depth: u32) -> Result<bool, Unreadable> {
        if layout::is_boxed(word) {
            match layout::kind(word) {
                // Its elements one after the other, without encoding the tuple first.
                Kind::Tuple if depth > 0 => return self.tuple_order_key(word, depth - 1),
                Kind::HeapBinary
                | Kind::SharedBinary
                | Kind::PartOfBinary
                | Kind::RangeOfBinary => {
                    if let Some(Bits { bytes, more: 0, .. }) = layout::bits(word) {
                        self.binary_order_key(bytes);
                        return Ok(true);
                    }
                }
                Kind::Float => {
                    let x = f64::from_bits(layout::float_bits(word));
                    order_key::push_float(x, &mut self.out);
                    // A float without a fraction has the order key of an integer.
                    return Ok(x.fract() != 0.0);
                }
                Kind::Reference => {
                    // `None`: it may keep a resource alive, or is of another node.
                    if let Some(numbers) = layout::reference(word) {
                        order_key::push_reference(numbers, &mut self.out);
                        return Ok(true);
                    }
                }
                _ => {}
            }
        } else if layout::is_cell(word) && depth > 0 {
            return self.list_order_key(word, depth - 1);
        } else if word == layout::NIL {
            order_key::push_nil(&mut self.out);
            return Ok(true);
        } else if let (true, Some(pids)) = (layout::is_local_pid(word), layout::pids()) {
            let (id, serial) = pids.parts(word);
            order_key::push_pid(u64::from(id), u64::from(serial), &mut self.out);
            return Ok(true);
        }
        // Any other kind, or a deep term: encode it, and make the order key of the bytes.
        self.encoded_order_key(word)
    }

    #[inline]
    fn tuple_order_key(&mut self, word: Word, depth: u32) -> Result<bool, Unreadable> {
        let elements = layout::tuple(word).ok_or(Unreadable)?;
        order_key::push_tuple(elements.len() as u64, &mut self.out);
        let mut comes_back = true;
        for &element in elements {
            comes_back &= self.order_key(element, depth)?;
        }
        Ok(comes_back)
    }

    #[inline(never)]
    fn list_order_key(&mut self, word: Word, depth: u32) -> Result<bool, Unreadable> {
        let mut rest = word;
        while let Some((head, tail)) = layout::cell(rest) {
            order_key::push_cons(&mut self.out);
            self.order_key(head, depth)?;
            rest = tail;
        }
        // The terminator of a proper list is `[]`.
        self.order_key(rest, depth)?;
        Ok(false)
    }

    #[inline]
    fn binary_order_key(&mut self, bytes: &[u8]) {
        // It takes at most two bytes for each byte, and a continuation byte for each group.
        let spare = self.out.spare(2 * bytes.len() + 64);
        let len = order_key::encode_binary(bytes, spare);
        debug_assert!(len.is_some(), "the space suffices for any bytes");
        let len = len.unwrap_or(0);
        // SAFETY: it wrote so many bytes.
        unsafe { self.out.written(len) }
    }

    /// Writes the order key of a term from its encoding.
    #[inline(never)]
    fn encoded_order_key(&mut self, word: Word) -> Result<bool, Unreadable> {
        let mut stack = stack_bytes();
        // In this mode large maps have the order of the emulator's trees, and a reference that may
        // keep a resource alive isn't one that comes back.
        let mut exact = Writer::at(&mut stack, self.env, Mode::Anchored);
        exact.term(word)?;
        let term = exact.as_term();
        // The order key of most terms can be written in place in one pass.
        let most = 2 * term.bytes().len() + 64;
        if let Some((len, comes_back)) = order_key::encode_flat(term, self.out.spare(most)) {
            // SAFETY: it wrote so many bytes.
            unsafe { self.out.written(len) }
            return Ok(comes_back);
        }
        // Large maps, and deeply nested lists or maps, need the general encoder.
        let mut bytes = Vec::with_capacity(most);
        order_key::encode_general(term, &mut bytes);
        self.out.slice(&bytes);
        Ok(order_key::comes_back(term))
    }
}
