//! Encoding the external format.

use super::{tag, VERSION};
use crate::{
    atom::Atom,
    blob,
    node::{Node, NodeName},
    skip::Heads,
    tags::{FUN, ILIST, INT1, INT8, LIST, MAP, SMALL, TREE_MAP, TUPLE},
    view::{BigRef, FunRef, TermRef, View},
};

/// Appends a term in the external format, beginning with the version byte. `local` is the name of
/// this node, which is written in its identifiers.
///
/// Lengths in the format have 32 bits. A longer binary, list or tuple is written as something that
/// all decoders refuse.
///
/// # Complexity
/// Linear; no recursion.
pub fn encode(term: TermRef<'_>, local: &NodeName, out: &mut Vec<u8>) {
    out.push(VERSION);
    let mut writer = EtfWriter {
        out,
        local: *local,
        // One term is to be written. Heads of containers add their children.
        pending: 1,
        ends: Vec::new(),
    };
    let bytes = term.bytes();
    let mut heads = Heads::new(bytes);
    while let Some((at, end)) = heads.next() {
        let swallowed = writer.head(bytes, at, end);
        // The elements of a string have been written with its head.
        heads.by_ref().take(swallowed).for_each(drop);
        writer.close();
    }
}

/// What must be written when a container is complete.
enum End {
    Nil,
    /// The length of a fun, which is written at this offset.
    Fun(usize),
}

struct EtfWriter<'o> {
    out: &'o mut Vec<u8>,
    local: NodeName,
    /// The number of terms that the open containers still lack.
    pending: u64,
    /// The open containers with such an end, and the value of `pending` when they are complete.
    ends: Vec<(u64, End)>,
}

/// A length of the format.
fn length(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes()
}

impl EtfWriter<'_> {
    /// Writes the head at `at..end`. Returns the number of following heads that were written with
    /// it.
    fn head(&mut self, bytes: &[u8], at: usize, end: usize) -> usize {
        let children = crate::skip::head(bytes, at).1;
        // Count as the decoder does. `around` is what is pending when the children of this head are
        // complete, which is when its end must be written.
        self.pending -= 1;
        let around = self.pending;
        self.pending += children;
        let n = children as usize;
        match bytes[at] {
            LIST => {
                // A list of bytes is written as the emulator writes it: as one string, of at most
                // 65,535 bytes. Its elements are then no heads of their own.
                if let Some(string) = string(&bytes[end..], n) {
                    self.out.push(tag::STRING);
                    self.out.extend_from_slice(&(n as u16).to_be_bytes());
                    self.out.extend_from_slice(&string);
                    self.pending -= children;
                    return n;
                }
                self.counted(tag::LIST, n);
                self.ends.push((around, End::Nil));
            }
            // The tail of an improper list is its last child, and is written where a proper list
            // has its `NIL`.
            ILIST => self.counted(tag::LIST, n - 1),
            TUPLE if n < 256 => self.out.extend_from_slice(&[tag::SMALL_TUPLE, n as u8]),
            TUPLE => self.counted(tag::LARGE_TUPLE, n),
            MAP | TREE_MAP => self.counted(tag::MAP, n / 2),
            FUN => {
                // The size in front of a fun counts its free variables, too. It is filled in when
                // they are written.
                if let View::Fun(fun) = TermRef::within(&bytes[at..end]).view() {
                    self.fun(fun, around);
                }
            }
            _ => self.leaf(TermRef::within(&bytes[at..end])),
        }
        0
    }

    /// Ends the containers that are complete.
    fn close(&mut self) {
        while let Some(&(around, ref end)) = self.ends.last() {
            // Several containers may end at the same offset, the innermost first.
            if around != self.pending {
                return;
            }
            match *end {
                End::Nil => self.out.push(tag::NIL),
                // The size counts its own four bytes.
                End::Fun(at) => {
                    let size = length(self.out.len() - at);
                    self.out[at..at + 4].copy_from_slice(&size);
                }
            }
            self.ends.pop();
        }
    }

    fn counted(&mut self, tag: u8, n: usize) {
        self.out.push(tag);
        self.out.extend_from_slice(&length(n));
    }

    fn leaf(&mut self, leaf: TermRef<'_>) {
        // The tags of the format, each with what follows it.
        match leaf.view() {
            View::Int(n) => self.int(n),
            View::Big(n) => self.big(n),
            View::Float(x) => {
                self.out.push(tag::NEW_FLOAT);
                self.out.extend_from_slice(&x.to_be_bytes());
            }
            View::Atom(atom) => self.atom(atom),
            View::Nil => self.out.push(tag::NIL),
            View::Bin(bytes) => {
                self.counted(tag::BINARY, bytes.len());
                self.out.extend_from_slice(bytes);
            }
            View::Bits { bytes, bits } => {
                self.counted(tag::BIT_BINARY, bytes.len());
                self.out.push((bits % 8) as u8);
                self.out.extend_from_slice(bytes);
            }
            View::Pid(pid) => {
                let creation = self.named(tag::NEW_PID, pid.node);
                self.words([pid.id, pid.serial, creation]);
            }
            // Old decoders know ports of 28 bits only. The longer form is used for the others
            // alone.
            View::Port(port) => match u32::try_from(port.id) {
                Ok(id) if id < 1 << 28 => {
                    let creation = self.named(tag::NEW_PORT, port.node);
                    self.words([id, creation]);
                }
                _ => {
                    let creation = self.named(tag::V4_PORT, port.node);
                    self.out.extend_from_slice(&port.id.to_be_bytes());
                    self.words([creation]);
                }
            },
            View::Ref(reference) => {
                if reference.is_kept() {
                    blob::exported(leaf);
                }
                self.out.push(tag::NEWER_REFERENCE);
                let words = reference.words();
                // A reference that contains a pid has five words, including zeros at the end. Its
                // node accepts no fewer.
                let count = if words.len() > 3 { 5 } else { 3 };
                self.out.extend_from_slice(&[0, count]);
                let creation = self.node(reference.node);
                self.words([creation]);
                self.words(words.chain([0; 2]).take(count.into()));
            }
            View::Export {
                module,
                function,
                arity,
            } => {
                self.out.push(tag::EXPORT);
                self.atom(module);
                self.atom(function);
                self.int(arity as i64);
            }
            View::List(_) | View::Tuple(_) | View::Map(_) | View::Fun(_) => {
                debug_assert!(false, "not a leaf")
            }
        }
    }

    fn words(&mut self, words: impl IntoIterator<Item = u32>) {
        for word in words {
            self.out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Writes a tag and the name of a node. Returns the node's creation, which is written later.
    fn named(&mut self, tag: u8, node: Node) -> u32 {
        self.out.push(tag);
        self.node(node)
    }

    fn node(&mut self, node: Node) -> u32 {
        let name = match node {
            Node::Local => self.local,
            Node::External(name) => name,
        };
        self.atom(name.name);
        name.creation
    }

    fn int(&mut self, n: i64) {
        // The shortest of three forms, as the emulator chooses it.
        if let Ok(byte) = u8::try_from(n) {
            self.out.extend_from_slice(&[tag::SMALL_INTEGER, byte]);
        } else if let Ok(word) = i32::try_from(n) {
            self.out.push(tag::INTEGER);
            self.out.extend_from_slice(&word.to_be_bytes());
        } else {
            // An integer of more than 32 bits is written as a big one, without leading zero bytes.
            let magnitude = n.unsigned_abs().to_le_bytes();
            let used = magnitude.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
            self.big(BigRef {
                negative: n < 0,
                magnitude: &magnitude[..used],
            });
        }
    }

    fn big(&mut self, n: BigRef<'_>) {
        match u8::try_from(n.magnitude.len()) {
            Ok(len) => self.out.extend_from_slice(&[tag::SMALL_BIG, len]),
            Err(_) => self.counted(tag::LARGE_BIG, n.magnitude.len()),
        }
        self.out.push(u8::from(n.negative));
        self.out.extend_from_slice(n.magnitude);
    }

    fn atom(&mut self, atom: Atom) {
        let text = atom.text().as_bytes();
        // A short text has a length of one byte.
        match u8::try_from(text.len()) {
            Ok(len) => self.out.extend_from_slice(&[tag::SMALL_ATOM_UTF8, len]),
            Err(_) => {
                self.out.push(tag::ATOM_UTF8);
                self.out
                    .extend_from_slice(&(text.len() as u16).to_be_bytes());
            }
        }
        self.out.extend_from_slice(text);
    }

    /// Writes the head of a fun. The process that made it isn't stored, so a pid that never existed
    /// is written.
    fn fun(&mut self, fun: FunRef<'_>, around: u64) {
        self.out.push(tag::NEW_FUN);
        // The size of the fun is known when all of its free variables are written.
        self.ends.push((around, End::Fun(self.out.len())));
        self.words([0]);
        self.out.push(fun.arity as u8);
        self.out.extend_from_slice(&fun.uniq);
        self.words([fun.index, fun.free().len() as u32]);
        self.atom(fun.module);
        self.leaf(fun.old_index);
        self.leaf(fun.old_uniq);
        let creation = self.named(tag::NEW_PID, Node::Local);
        self.words([0, 0, creation]);
    }
}

/// The next `n` terms, if they are integers that fit into a byte each.
fn string(bytes: &[u8], n: usize) -> Option<Vec<u8>> {
    // The format has 16 bits for the length of a string.
    if n > usize::from(u16::MAX) {
        return None;
    }
    let mut string = Vec::new();
    let mut at = 0;
    for _ in 0..n {
        // Stop at the first element that is no small integer. So a long list of other terms costs
        // one look.
        if bytes[at] < SMALL && !(INT1..=INT8).contains(&bytes[at]) {
            return None;
        }
        let end = crate::skip::head(bytes, at).0;
        let code = TermRef::within(&bytes[at..end]).as_int()?;
        string.push(u8::try_from(code).ok()?);
        at = end;
    }
    Some(string)
}
