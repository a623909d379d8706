//! Decoding the external format.

use super::{
    tag::COMPRESSED,
    walk::{walk, Creator, FunHead, Head, HeadSink, Tail, Text},
    EtfError, EtfOptions, VERSION,
};
use crate::{
    atom::{Atom, MAX_CHARS},
    encoder::{Encoder, MapToken, Mode},
    node::{Node, NodeName},
    skip::skip,
    term::{Term, TermBuf},
};
use flate2::read::ZlibDecoder;
use smallvec::SmallVec;
use std::io::Read;

/// Decodes the term at the beginning of `bytes`, and appends it to `out` in `mode`. Returns the
/// number of bytes that it took. Identifiers of the node `local` become those of this node.
///
/// In a mode with handles, the appended bytes own their counts (see [`crate::blob`]). On an error
/// nothing is appended.
///
/// # Errors
/// [`EtfError`] says what is wrong with the bytes.
///
/// # Complexity
/// Two passes over the bytes, plus the sorting of maps. No recursion. If keys of maps are out of
/// order, their bytes are moved once, when the outermost map ends; maps within keys are moved once
/// for each such level.
pub fn decode(
    bytes: &[u8],
    local: &NodeName,
    out: &mut Vec<u8>,
    mode: Mode,
) -> Result<usize, EtfError> {
    // Decode to a buffer of its own first. So an error in the middle leaves `out` as it was.
    let mut plain = Vec::new();
    let length = decode_to(
        bytes,
        local,
        &EtfOptions::default(),
        &mut Encoder::new(&mut plain, Mode::Inline),
    )?;
    // The caller's mode is applied afterwards, when the term is known to be whole.
    let term = crate::view::TermRef::within(&plain[..skip(&plain)]);
    Encoder::new(out, mode).term(term);
    Ok(length)
}

/// Decodes the term at the beginning of `bytes`. Returns it, and the number of bytes that it took.
///
/// # Errors
/// [`EtfError`] says what is wrong with the bytes.
pub fn decode_term(
    bytes: &[u8],
    local: &NodeName,
    options: &EtfOptions,
) -> Result<(Term, usize), EtfError> {
    let mut buf = TermBuf::new(Mode::Shared);
    let length = buf.encode(|enc| decode_to(bytes, local, options, enc))?;
    let term = buf.into_term().ok_or(EtfError::Malformed)?;
    Ok((term, length))
}

/// Decodes the term at the beginning of `bytes`, and pushes it. Returns the number of bytes that it
/// took.
///
/// # Errors
/// [`EtfError`] says what is wrong with the bytes; what was pushed until then is no whole term.
pub fn decode_to(
    bytes: &[u8],
    local: &NodeName,
    options: &EtfOptions,
    enc: &mut Encoder<'_>,
) -> Result<usize, EtfError> {
    // The first byte is the version of the format.
    let (&version, rest) = bytes.split_first().ok_or(EtfError::Truncated)?;
    if version != VERSION {
        return Err(EtfError::Version);
    }
    match rest.first() {
        Some(&COMPRESSED) => {
            // Compressed data must contain exactly one term.
            let (plain, length) = unfold(&rest[1..], options)?;
            let used = decode_plain(&plain, local, options, enc)?;
            match used == plain.len() {
                true => Ok(2 + length),
                false => Err(EtfError::Compression),
            }
        }
        _ => decode_plain(rest, local, options, enc).map(|length| length + 1),
    }
}

/// The greatest number of bytes to which one byte of compressed data can expand.
const MOST_UNFOLDED: usize = 1040;

/// Decompresses a term: its size in four bytes, then the compressed data. Returns the bytes, and
/// the number of bytes that were read.
fn unfold(bytes: &[u8], options: &EtfOptions) -> Result<(Vec<u8>, usize), EtfError> {
    let (size, data) = bytes.split_first_chunk::<4>().ok_or(EtfError::Truncated)?;
    let size = u32::from_be_bytes(*size) as usize;
    // Check that the declared size is within the limit, and that this much data can expand to it.
    if size > options.max_plain {
        return Err(EtfError::TooLarge);
    }
    if size / MOST_UNFOLDED > data.len() {
        return Err(EtfError::Compression);
    }
    let mut plain = Vec::new();
    // Ask for one byte more than allowed, to notice a result that is too long.
    let mut unfolding = ZlibDecoder::new(data);
    let read = unfolding
        .by_ref()
        .take(size as u64 + 1)
        .read_to_end(&mut plain);
    match read {
        Ok(n) if n == size => Ok((plain, 4 + unfolding.total_in() as usize)),
        _ => Err(EtfError::Compression),
    }
}

fn decode_plain(
    bytes: &[u8],
    local: &NodeName,
    options: &EtfOptions,
    enc: &mut Encoder<'_>,
) -> Result<usize, EtfError> {
    // 1. Check everything, and find out how long each list is with the lists in its tail.
    let mut lists = Lists::default();
    walk(bytes, &mut lists)?;
    let mut writer = TermWriter {
        enc,
        lists: lists.0,
        maps: Vec::new(),
        local: *local,
        safe: options.safe,
        max_atoms: options.max_atoms,
        max_bits: options.max_bits,
    };
    // 2. Walk again, and write.
    walk(bytes, &mut writer)
}

/// The number of elements of a list, including those of the lists in its tail.
struct ListHead {
    elements: u64,
    /// The list is the tail of another one, whose head counts its elements.
    merged: bool,
    improper: bool,
}

/// The first walk: collects the lengths of the lists, by their numbers.
#[derive(Default)]
struct Lists(Vec<ListHead>);

impl<'a> HeadSink<'a> for Lists {
    fn head(&mut self, _head: Head<'a>) -> Result<(), EtfError> {
        Ok(())
    }

    fn list(&mut self, number: usize, elements: u64, tail: bool) {
        debug_assert_eq!(number, self.0.len());
        let (merged, improper) = (tail, false);
        self.0.push(ListHead {
            elements,
            merged,
            improper,
        });
    }

    fn string_tail(&mut self, _bytes: &'a [u8]) -> Result<(), EtfError> {
        Ok(())
    }

    fn end_list(&mut self, number: usize, tail: Tail) {
        let (more, improper) = match tail {
            Tail::Nil => (0, false),
            Tail::String(n) => (n as u64, false),
            // The tail has ended before, so its own elements are already counted.
            Tail::List(tail) => (self.0[tail].elements, self.0[tail].improper),
            Tail::Other => (0, true),
        };
        self.0[number].elements += more;
        self.0[number].improper = improper;
    }

    fn end_map(&mut self) -> Result<(), EtfError> {
        Ok(())
    }
}

/// The second walk: writes.
struct TermWriter<'e, 'b> {
    enc: &'e mut Encoder<'b>,
    lists: Vec<ListHead>,
    maps: Vec<MapToken>,
    local: NodeName,
    safe: bool,
    max_atoms: usize,
    max_bits: u64,
}

impl<'a> HeadSink<'a> for TermWriter<'_, '_> {
    fn head(&mut self, head: Head<'a>) -> Result<(), EtfError> {
        match head {
            Head::Int(n) => self.enc.int(n),
            Head::Big {
                negative,
                magnitude,
            } => {
                if 8 * magnitude.len() as u64 > self.max_bits {
                    return Err(EtfError::TooLarge);
                }
                self.enc.big(negative, magnitude);
            }
            Head::Float(x) => self.enc.float(x),
            Head::Atom(text) => {
                let atom = self.atom(text)?;
                self.enc.atom(atom);
            }
            Head::Nil => self.enc.nil(),
            // A string is a list of bytes in one head. Lists in its tail make it longer.
            Head::String(bytes) => {
                self.enc.begin_list(bytes.len());
                return self.string_tail(bytes);
            }
            Head::Tuple(n) => self.enc.begin_tuple(n as usize),
            Head::Map(n) => {
                let token = self.enc.begin_map(n as usize);
                // The pairs may be in any order. They are sorted when the map ends.
                self.maps.push(token);
            }
            Head::Binary(bytes) => self.enc.binary(bytes),
            Head::Bits(bytes, bits) => self.enc.bits(bytes, bits),
            Head::Pid(owner, id, serial) => {
                let node = self.node(owner)?;
                self.enc.pid(node, id, serial);
            }
            Head::Port(owner, id) => {
                let node = self.node(owner)?;
                self.enc.port(node, id);
            }
            Head::Ref(owner, words) => {
                let node = self.node(owner)?;
                // The words are big-endian in this format.
                let words: SmallVec<[u32; 5]> = words
                    .chunks_exact(4)
                    .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
                    .collect();
                self.enc.reference(node, &words);
            }
            Head::Fun(fun) => self.fun(fun)?,
            Head::Export(module, function, arity) => {
                let (module, function) = (self.atom(module)?, self.atom(function)?);
                self.enc.export(module, function, arity);
            }
            Head::List(_) => debug_assert!(false, "lists have a call of their own"),
        }
        Ok(())
    }

    fn list(&mut self, number: usize, _elements: u64, _tail: bool) {
        let list = &self.lists[number];
        match (list.merged, list.improper, list.elements as usize) {
            // There are no elements before a tail that isn't a list. Write the tail alone.
            (true, ..) | (_, true, 0) => {}
            (_, false, n) => self.enc.begin_list(n),
            (_, true, n) => self.enc.begin_improper(n),
        }
    }

    fn string_tail(&mut self, bytes: &'a [u8]) -> Result<(), EtfError> {
        bytes.iter().for_each(|&byte| self.enc.int(i64::from(byte)));
        Ok(())
    }

    fn end_list(&mut self, _number: usize, _tail: Tail) {}

    fn end_map(&mut self) -> Result<(), EtfError> {
        let token = self.maps.pop().ok_or(EtfError::Malformed)?;
        self.enc.end_map(token).map_err(|_| EtfError::DuplicateKey)
    }
}

impl TermWriter<'_, '_> {
    fn node(&self, owner: Creator<'_>) -> Result<Node, EtfError> {
        let creation = owner.creation;
        let name = self.atom(owner.name)?;
        // An identifier of this node, with its present creation, is stored without the node.
        let name = NodeName { name, creation };
        Ok(match name == self.local {
            true => Node::Local,
            false => Node::External(name),
        })
    }

    fn fun(&mut self, fun: FunHead<'_>) -> Result<(), EtfError> {
        let module = self.atom(fun.module)?;
        // A fun of another node refers to code that may not be here. The safe mode refuses it.
        if self.safe && self.node(fun.creator)? != Node::Local {
            return Err(EtfError::ForeignFun);
        }
        self.enc.begin_fun(
            module,
            fun.arity,
            &fun.uniq,
            fun.index,
            fun.old_index,
            fun.old_uniq,
            fun.free as usize,
        );
        Ok(())
    }

    fn atom(&self, text: Text<'_>) -> Result<Atom, EtfError> {
        match text {
            Text::Utf8(bytes) => {
                self.named(std::str::from_utf8(bytes).map_err(|_| EtfError::BadAtom)?)
            }
            Text::Latin1(bytes) if bytes.len() > MAX_CHARS => Err(EtfError::BadAtom),
            Text::Latin1(bytes) => {
                let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
                self.named(&text)
            }
        }
    }

    fn named(&self, text: &str) -> Result<Atom, EtfError> {
        match Atom::existing(text) {
            Some(atom) => Ok(atom),
            None if self.safe => Err(EtfError::UnknownAtom),
            None if Atom::count() >= self.max_atoms => Err(EtfError::TooManyAtoms),
            None => Atom::try_new(text).map_err(|_| EtfError::BadAtom),
        }
    }
}
